/* call.c: calling a Kernel: options, arguments, launch. */
#include "runtime/stream.h"
#include "kernel/launch_args.h"

#define OFFSET_FLAG ((size_t)1 << (8 * sizeof(size_t) - 1)) /* PY_VECTORCALL_ARGUMENTS_OFFSET */

enum option { OPTION_STREAM, OPTION_GRID, OPTION_BLOCK, OPTION_SMEM, OPTIONS };
static const char *const option_names[OPTIONS] = {"stream", "grid", "block", "smem"};

/* Keyword names are almost always interned, as option_names are. */
static int launch_option(const struct py_state *state, PyObject *name)
{
    int i = 0;
    while (i < OPTIONS && name != state->launch_options[i])
        i++;
    if (i < OPTIONS)
        return i;
    for (i = 0; i < OPTIONS && PyUnicode_CompareWithASCIIString(name, option_names[i]);)
        i++;
    return i;
}

int py_kernel_call_add(struct py_state *state)
{
    _Static_assert(OPTIONS == sizeof state->launch_options / sizeof state->launch_options[0],
                   "one place for each name");
    for (int i = 0; i < OPTIONS; i++) {
        state->launch_options[i] = PyUnicode_InternFromString(option_names[i]);
        if (!state->launch_options[i])
            return -1;
    }
    return 0;
}

static int launch_find_options(const struct py_state *state, PyObject *const *args,
                               PyObject *kwnames, PyObject *values[OPTIONS])
{
    const Py_ssize_t given = kwnames ? PyTuple_Size(kwnames) : 0;
    for (int i = 0; i < OPTIONS; i++)
        values[i] = NULL;
    for (Py_ssize_t k = 0; k < given; k++) {
        PyObject *name = PyTuple_GetItem(kwnames, k); /* borrowed */
        const int i = launch_option(state, name);
        if (i == OPTIONS)
            return PY_FAIL(
                PyExc_TypeError,
                "a launch has no argument '%U': the kernel's arguments are positional, and "
                "grid=, block=, smem= and stream= configure the launch",
                name);
        values[i] = args[k];
    }
    return 0;
}

static int launch_fill_shape(struct py_kernel *self, PyObject *values[OPTIONS],
                             struct gg_launch *launch)
{
    struct py_state *state = self->state;
    uint32_t smem[3];
    *launch = self->shape;
    if (values[OPTION_GRID] && py_launch_dims(state, values[OPTION_GRID], "grid", launch->grid))
        return -1;
    if (values[OPTION_BLOCK] && py_launch_dims(state, values[OPTION_BLOCK], "block", launch->block))
        return -1;
    if (values[OPTION_SMEM]) {
        if (!PyIndex_Check(values[OPTION_SMEM]))
            return PY_FAIL(PyExc_TypeError, "smem must be an int, in bytes, got %R",
                           Py_TYPE(values[OPTION_SMEM]));
        if (py_launch_dims(state, values[OPTION_SMEM], "smem", smem))
            return -1;
        launch->shared = smem[0];
    }
    if ((values[OPTION_GRID] || self->has_grid) && (values[OPTION_BLOCK] || self->has_block))
        return 0;
    return PY_FAIL(
        PyExc_TypeError,
        "%.64s(): a launch needs grid= (blocks) and block= (threads per block), each an int "
        "or a tuple of up to three",
        gg_kernel_name(self->kernel));
}

static PyObject *launch_run(struct py_kernel *self, const struct gg_launch *launch,
                            gg_stream *stream)
{
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_kernel_launch(self->kernel, launch, stream); /* the caller holds self */
    PyEval_RestoreThread(thread);
    return py_none(self->state, status);
}

static PyObject *launch_with(struct py_kernel *self, PyObject *const *args, Py_ssize_t count,
                             PyObject *values[OPTIONS])
{
    struct py_launch_args launch_args;
    struct py_stream_use use;
    PyObject *result = NULL;
    if (launch_fill_shape(self, values, &launch_args.launch) ||
        (!py_stream_use_plain(self->state, values[OPTION_STREAM], &use) &&
         py_stream_arg(self->state, values[OPTION_STREAM], gg_kernel_device(self->kernel),
                       &use.stream)))
        return NULL;
    if (!count && !self->count) {
        launch_args.launch.arguments =
            launch_args.inline_arguments; /* the other members are 0, as in the shape */
        result = launch_run(self, &launch_args.launch, use.stream);
    } else if (!py_launch_args_fill(&launch_args, self, args, count, use.stream)) {
        result = launch_run(self, &launch_args.launch, use.stream);
        py_launch_args_release(&launch_args);
    }
    py_stream_use_end(&use);
    return result;
}

PyObject *py_kernel_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const Py_ssize_t count = (Py_ssize_t)(nargsf & ~OFFSET_FLAG);
    PyObject *values[OPTIONS];
    struct py_kernel *self = py_kernel_of(object);
    if (launch_find_options(self->state, args + count, kwnames, values))
        return NULL;
    return launch_with(self, args, count, values);
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
        Py_XINCREF(values[i]); /* another thread may change the dict */
        known += values[i] != NULL;
    }
    if (kwargs && PyDict_Size(kwargs) != known)
        PyErr_SetString(PyExc_TypeError, "a launch takes the kernel's arguments and the keywords "
                                         "grid=, block=, smem= and stream=, and no others");
    else
        result = launch_with(py_kernel_of(object), items, count, values);
    for (int i = 0; i < OPTIONS; i++)
        Py_XDECREF(values[i]);
    PyMem_Free((void *)items);
    return result;
}
