/* fill.c: patterns for gg_fill. */
#include "fill.h"
#include "ends.h"
#include "memory.h"
#include "numpy_bridge.h"

#define LONGEST_PATTERN 65536 /* of gg_fill */

static int fill(struct py_state *state, gg_memory *memory, size_t offset, const void *pattern,
                size_t size, size_t count, gg_stream *stream)
{
    gg_status status;
    if (!size || !count)
        return 0;
    PyThreadState *thread = PyEval_SaveThread();
    status = gg_fill(memory, offset, pattern, size, count, stream);
    PyEval_RestoreThread(thread);
    return py_check(state, status);
}

int py_fill_zero(struct py_state *state, struct py_array *array, gg_stream *stream)
{
    return fill(state, array->memory, array->offset, "", 1, array->nbytes, stream);
}

/* One element on the host for every element of the array: strides of 0. */
static int fill_by_copy(struct py_state *state, struct py_array *array, PyObject *element,
                        gg_stream *stream)
{
    static const Py_ssize_t none[PY_MAX_DIMS];
    struct py_end dst, src;
    int failed;
    if (!array->size)
        return 0;
    py_end_array(&dst, array);
    py_end_host(&src, element);
    src.shape = array->shape;
    src.strides = none;
    src.ndim = array->ndim;
    src.c = src.f = array->size == 1;
    dst.c = dst.f = array->size == 1;
    failed = py_transfer(state, &dst, &src, array->nbytes, stream, 0);
    py_end_close(&src);
    py_end_close(&dst);
    return failed;
}

static int fill_apart(struct py_state *state, struct py_array *array, const void *pattern,
                      size_t size, gg_stream *stream)
{
    size_t shape[PY_MAX_DIMS];
    gg_status status;
    if (!size || !array->size)
        return 0;
    for (int i = 0; i < array->ndim; i++)
        shape[i] = (size_t)array->shape[i];
    PyThreadState *thread = PyEval_SaveThread();
    status = gg_fill_nd(array->memory, array->offset, array->strides, array->ndim, shape, pattern,
                        size, stream);
    PyEval_RestoreThread(thread);
    return py_check(state, status);
}

int py_fill_element(struct py_state *state, struct py_array *array, PyObject *element,
                    gg_stream *stream)
{
    struct numpy_view view;
    numpy_look(element, &view);
    if (view.nbytes > LONGEST_PATTERN)
        return fill_by_copy(state, array, element, stream);
    if (!(array->c || array->f))
        return fill_apart(state, array, view.data, view.nbytes, stream);
    return fill(state, array->memory, array->offset, view.data, view.nbytes, (size_t)array->size,
                stream);
}

int py_fill_array(struct py_state *state, PyObject *object, PyObject *value, PyObject *stream_object)
{
    struct py_array *array = (struct py_array *)object;
    gg_stream *stream = NULL;
    PyObject *element;
    int failed;
    if (array->readonly) {
        py_invalid(state, "the array is read-only");
        return -1;
    }
    element = numpy_element(array->dtype, value);
    if (!element)
        return -1;
    failed = py_stream_arg(state, stream_object, gg_memory_device(array->memory), &stream);
    if (!failed)
        failed = py_fill_element(state, array, element, stream);
    gg_stream_release(stream);
    Py_DECREF(element);
    return failed;
}

/* ---- a Buffer: bytes ------------------------------------------------------------------------- */

struct pattern {
    Py_buffer view; /* view.obj NULL: the one byte below */
    unsigned char byte;
    const void *data;
    size_t size;
};

static int open_byte(struct py_state *state, struct pattern *pattern, PyObject *value)
{
    Py_ssize_t number = PyNumber_AsSsize_t(value, NULL); /* clipped */
    if (number == -1 && PyErr_Occurred())
        return -1;
    if (number < 0 || number > 255) {
        PyObject *shown = py_shown(value);
        if (shown)
            py_invalid(
                state,
                "a Buffer is filled with a byte from 0 to 255, got %S; for wider values pass "
                "the bytes, such as numpy.float32(1.5)",
                shown);
        Py_XDECREF(shown);
        return -1;
    }
    pattern->view.obj = NULL;
    pattern->byte = (unsigned char)number;
    pattern->data = &pattern->byte;
    pattern->size = 1;
    return 0;
}

static int open_pattern(struct py_state *state, struct pattern *pattern, PyObject *value)
{
    if (PyLong_Check(value))
        return open_byte(state, pattern, value);
    if (!PyObject_CheckBuffer(value)) {
        PyErr_Format(PyExc_TypeError,
                     "a Buffer is filled with an int from 0 to 255 or with bytes, got %R",
                     Py_TYPE(value));
        return -1;
    }
    if (PyObject_GetBuffer(value, &pattern->view, PyBUF_SIMPLE))
        return -1;
    pattern->data = pattern->view.buf;
    pattern->size = (size_t)pattern->view.len;
    return 0;
}

static int check_pattern(struct py_state *state, size_t size, size_t nbytes)
{
    if (size && size <= LONGEST_PATTERN && nbytes % size == 0)
        return 0;
    py_invalid(state,
               "a pattern of %zu bytes does not fit a Buffer of %zu: its size must divide the "
               "Buffer's and be from 1 to %d",
               size, nbytes, LONGEST_PATTERN);
    return -1;
}

static int fill_block(struct py_state *state, gg_memory *memory, const struct pattern *pattern,
                      PyObject *stream_object)
{
    const size_t nbytes = gg_memory_size(memory);
    gg_stream *stream = NULL;
    int failed;
    if (check_pattern(state, pattern->size, nbytes) ||
        py_stream_arg(state, stream_object, gg_memory_device(memory), &stream))
        return -1;
    failed = fill(state, memory, 0, pattern->data, pattern->size, nbytes / pattern->size, stream);
    gg_stream_release(stream);
    return failed;
}

int py_fill_buffer(struct py_state *state, PyObject *buffer, PyObject *value, PyObject *stream)
{
    struct pattern pattern;
    gg_memory *memory = py_buffer_memory(buffer);
    int failed;
    if (!memory)
        return -1;
    gg_memory_retain(memory); /* the Buffer may be closed meanwhile, by the value's own code, too */
    failed = open_pattern(state, &pattern, value);
    if (!failed) {
        py_buffer_touch(buffer);
        failed = fill_block(state, memory, &pattern, stream);
        if (pattern.view.obj)
            PyBuffer_Release(&pattern.view);
    }
    gg_memory_release(memory);
    return failed;
}
