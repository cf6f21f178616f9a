/* fill.c: patterns for gg_fill. */
#include "copy/fill.h"
#include "numpy/bridge.h"
#include "runtime/stream.h"
#include "memory/buffer.h"
#include "copy/transfer.h"

#include <stdlib.h>

#define LONGEST_PATTERN 65536 /* that gg_fill takes */

static int fill_linear(struct py_state *state, gg_memory *memory, size_t offset,
                       const void *pattern, size_t size, size_t count, gg_stream *stream)
{
    gg_status status;
    if (!size || !count)
        return 0;
    PY_WITHOUT_GIL(status = gg_fill(memory, offset, pattern, size, count, stream));
    return py_check(state, status);
}

int py_fill_zero(struct py_state *state, struct py_array *array, gg_stream *stream)
{
    return fill_linear(state, array->memory, array->offset, "", 1, array->nbytes, stream);
}

/* A host element with strides 0 is the source of every element of the array. */
static int fill_with_copy(struct py_state *state, struct py_array *array, PyObject *element,
                          gg_stream *stream)
{
    static const Py_ssize_t none[PY_MAX_DIMS];
    struct py_operand dst, src;
    if (!array->size)
        return 0;
    py_operand_array(&dst, array);
    py_operand_ndarray(&src, element);
    src.shape = array->shape;
    src.strides = none;
    src.ndim = array->ndim;
    dst.c = dst.f = src.c = src.f = array->size == 1;
    return py_transfer_and_close(state, &dst, &src, array->nbytes, stream, 0);
}

/* @p run: only these bytes of each element. */
static int fill_strided(struct py_state *state, struct py_array *array, const char *element,
                        const struct numpy_run *run, gg_stream *stream)
{
    size_t shape[PY_MAX_DIMS];
    gg_status status;
    if (!run->count || !array->size)
        return 0;
    for (int i = 0; i < array->ndim; i++)
        shape[i] = (size_t)array->shape[i];
    PY_WITHOUT_GIL(status = gg_fill_nd(array->memory, array->offset + (size_t)run->first,
                                       array->strides, array->ndim, shape, element + run->first,
                                       (size_t)run->count, stream));
    return py_check(state, status);
}

/* A view leaves bytes alone that belong to none of its fields. */
static int fill_fields(struct py_state *state, struct py_array *array, const char *element,
                       const struct numpy_run *runs, int count, gg_stream *stream)
{
    int failed = 0;
    for (int i = 0; i < count && !failed; i++)
        failed = fill_strided(state, array, element, &runs[i], stream);
    return failed;
}

static int fill_whole(struct py_state *state, struct py_array *array,
                      const struct numpy_desc *element, gg_stream *stream)
{
    const struct numpy_run all = {0, (Py_ssize_t)element->nbytes};
    if (!(array->c || array->f))
        return fill_strided(state, array, element->data, &all, stream);
    return fill_linear(state, array->memory, array->offset, element->data, element->nbytes,
                       (size_t)array->size, stream);
}

int py_fill_element(struct py_state *state, struct py_array *array, PyObject *element,
                    gg_stream *stream)
{
    struct numpy_desc desc;
    struct numpy_run *runs = NULL;
    int failed, count = 0;
    numpy_describe(element, &desc);
    if (desc.nbytes > LONGEST_PATTERN)
        return fill_with_copy(state, array, element, stream);
    if (array->base && numpy_field_runs(array->dtype, &runs, &count))
        return -1;
    failed = runs ? fill_fields(state, array, desc.data, runs, count, stream)
                  : fill_whole(state, array, &desc, stream);
    free(runs);
    return failed;
}

int py_fill_array(struct py_state *state, PyObject *object, PyObject *value, PyObject *stream_object)
{
    struct py_array *array = (struct py_array *)object;
    gg_stream *stream = NULL;
    PyObject *element;
    int failed;
    if (array->readonly)
        return PY_FAIL(state->invalid_argument, "the array is read-only");
    element = numpy_0d(array->dtype, value);
    if (!element)
        return -1;
    failed = py_stream_arg(state, stream_object, gg_memory_device(array->memory), &stream);
    if (!failed)
        failed = py_fill_element(state, array, element, stream);
    gg_stream_release(stream);
    Py_DECREF(element);
    return failed;
}

/* ---- a Buffer: bytes ---- */

struct pattern {
    Py_buffer view; /* view.obj NULL: the one byte below */
    unsigned char byte;
    const void *data;
    size_t size;
};

static int pattern_from_byte(struct py_state *state, struct pattern *pattern, PyObject *value)
{
    Py_ssize_t number = PyNumber_AsSsize_t(value, NULL); /* clipped */
    if (number == -1 && PyErr_Occurred())
        return -1;
    if (number < 0 || number > 255) {
        PyObject *shown = py_safe_repr(value);
        if (shown)
            py_invalid(state,
                       "a Buffer can be filled with an int from 0 to 255, got %S; for wider values "
                       "pass bytes, such as numpy.float32(1.5)",
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

static int pattern_open(struct py_state *state, struct pattern *pattern, PyObject *value)
{
    if (PyLong_Check(value))
        return pattern_from_byte(state, pattern, value);
    if (!PyObject_CheckBuffer(value))
        return PY_FAIL(PyExc_TypeError,
                       "a Buffer can be filled with an int from 0 to 255 or with bytes, got %R",
                       Py_TYPE(value));
    if (PyObject_GetBuffer(value, &pattern->view, PyBUF_SIMPLE))
        return -1;
    pattern->data = pattern->view.buf;
    pattern->size = (size_t)pattern->view.len;
    return 0;
}

static int pattern_check(struct py_state *state, size_t size, size_t nbytes)
{
    if (size && size <= LONGEST_PATTERN && nbytes % size == 0)
        return 0;
    return PY_FAIL(state->invalid_argument,
                   "a pattern of %zu bytes does not fit a Buffer of %zu bytes: its size must be "
                   "from 1 to %d and divide the Buffer's size",
                   size, nbytes, LONGEST_PATTERN);
}

static int fill_memory(struct py_state *state, gg_memory *memory, const struct pattern *pattern,
                       PyObject *stream_object)
{
    const size_t nbytes = gg_memory_size(memory);
    gg_stream *stream = NULL;
    int failed;
    if (pattern_check(state, pattern->size, nbytes) ||
        py_stream_arg(state, stream_object, gg_memory_device(memory), &stream))
        return -1;
    failed =
        fill_linear(state, memory, 0, pattern->data, pattern->size, nbytes / pattern->size, stream);
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
    gg_memory_retain(
        memory); /* the Buffer may be closed meanwhile, also by Python code of the value */
    failed = pattern_open(state, &pattern, value);
    if (!failed) {
        py_buffer_touch(buffer);
        failed = fill_memory(state, memory, &pattern, stream);
        if (pattern.view.obj)
            PyBuffer_Release(&pattern.view);
    }
    gg_memory_release(memory);
    return failed;
}
