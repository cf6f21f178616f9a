/* kernel_call.c: a Kernel is called: its options, the arguments, the launch. */
#include "kernel.h"

#define OFFSET_FLAG ((size_t)1 << (8 * sizeof(size_t) - 1)) /* PY_VECTORCALL_ARGUMENTS_OFFSET */

static struct py_kernel *as_kernel(PyObject *self)
{
    return (struct py_kernel *)self;
}

enum option { OPTION_GRID, OPTION_BLOCK, OPTION_SMEM, OPTION_STREAM, OPTIONS };
static const char *const option_names[OPTIONS] = {"grid", "block", "smem", "stream"};

static int find_options(PyObject *const *args, PyObject *kwnames, PyObject *values[OPTIONS])
{
    const Py_ssize_t given = kwnames ? PyTuple_Size(kwnames) : 0;
    for (int i = 0; i < OPTIONS; i++)
        values[i] = NULL;
    for (Py_ssize_t k = 0; k < given; k++) {
        PyObject *name = PyTuple_GetItem(kwnames, k); /* borrowed */
        int i = 0;
        while (i < OPTIONS && PyUnicode_CompareWithASCIIString(name, option_names[i]))
            i++;
        if (i == OPTIONS) {
            PyErr_Format(
                PyExc_TypeError,
                "a launch has no argument '%U': the kernel's arguments are positional, and "
                "grid=, block=, smem= and stream= say how it runs",
                name);
            return -1;
        }
        values[i] = args[k];
    }
    return 0;
}

static int fill_shape(struct py_kernel *self, PyObject *values[OPTIONS], struct gg_launch *launch)
{
    struct py_state *state = self->state;
    uint32_t smem[3];
    *launch = self->shape;
    if (values[OPTION_GRID] && py_dims(state, values[OPTION_GRID], "grid", launch->grid))
        return -1;
    if (values[OPTION_BLOCK] && py_dims(state, values[OPTION_BLOCK], "block", launch->block))
        return -1;
    if (values[OPTION_SMEM]) {
        if (!PyIndex_Check(values[OPTION_SMEM])) {
            PyErr_Format(PyExc_TypeError, "smem is an int, in bytes, got %R",
                         Py_TYPE(values[OPTION_SMEM]));
            return -1;
        }
        if (py_dims(state, values[OPTION_SMEM], "smem", smem))
            return -1;
        launch->shared = smem[0];
    }
    if ((values[OPTION_GRID] || self->has_grid) && (values[OPTION_BLOCK] || self->has_block))
        return 0;
    PyErr_Format(
        PyExc_TypeError,
        "%.64s(): a launch needs grid= (blocks) and block= (threads per block), each an int "
        "or a tuple of up to three",
        gg_kernel_name(self->kernel));
    return -1;
}

static PyObject *run(struct py_kernel *self, struct gg_launch *launch, struct py_pack *pack,
                     gg_stream *stream)
{
    launch->argument_count = (uint32_t)pack->count;
    launch->arguments = pack->arguments;
    launch->sizes = pack->sizes;
    launch->memories = pack->memories;
    launch->memory_count = pack->memory_count;
    gg_kernel *kernel = self->kernel;
    gg_kernel_retain(kernel);
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_kernel_launch(kernel, launch, stream);
    PyEval_RestoreThread(thread);
    gg_kernel_release(kernel);
    if (status)
        return py_raise(self->state, status);
    Py_RETURN_NONE;
}

static PyObject *launch_with(struct py_kernel *self, PyObject *const *args, Py_ssize_t count,
                             PyObject *values[OPTIONS])
{
    struct gg_launch launch;
    struct py_pack pack;
    gg_stream *stream = NULL;
    PyObject *result = NULL;
    if (fill_shape(self, values, &launch) ||
        (values[OPTION_STREAM] && py_stream_arg(self->state, values[OPTION_STREAM],
                                                gg_kernel_device(self->kernel), &stream)))
        return NULL;
    if (!py_pack(&pack, self, args, count, stream)) {
        result = run(self, &launch, &pack, stream);
        py_pack_release(&pack);
    }
    gg_stream_release(stream);
    return result;
}

PyObject *py_kernel_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const Py_ssize_t count = (Py_ssize_t)(nargsf & ~OFFSET_FLAG);
    PyObject *values[OPTIONS];
    if (find_options(args + count, kwnames, values))
        return NULL;
    return launch_with(as_kernel(object), args, count, values);
}

/* For callers that have a tuple and a dict, such as functools.partial in some versions. */
PyObject *py_kernel_call_tuple(PyObject *object, PyObject *args, PyObject *kwargs)
{
    const Py_ssize_t count = PyTuple_Size(args);
    PyObject *values[OPTIONS], *result = NULL;
    PyObject **items = PyMem_Calloc(count ? (size_t)count : 1, sizeof *items);
    if (!items)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++)
        items[i] = PyTuple_GetItem(args, i);
    Py_ssize_t known = 0;
    for (int i = 0; i < OPTIONS; i++) {
        values[i] = kwargs ? PyDict_GetItemString(kwargs, option_names[i]) : NULL;
        known += values[i] != NULL;
    }
    if (kwargs && PyDict_Size(kwargs) != known)
        PyErr_SetString(PyExc_TypeError,
                        "a launch takes grid=, block=, smem= and stream= beside the "
                        "kernel's arguments, and no other keyword");
    else
        result = launch_with(as_kernel(object), items, count, values);
    PyMem_Free((void *)items);
    return result;
}
