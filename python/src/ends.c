/* ends.c: what the ends of a copy are, and whether they fit. */
#include "ends.h"
#include "layout.h"
#include "memory.h"
#include "numpy_bridge.h"

static void end_clear(struct py_end *end, enum py_end_kind kind)
{
    memset(end, 0, sizeof *end);
    end->kind = kind;
}

void py_end_array(struct py_end *end, struct py_array *array)
{
    end_clear(end, PY_END_ARRAY);
    end->end.memory = array->memory;
    end->end.offset = array->offset;
    end->dtype = array->dtype;
    end->shape = array->shape;
    end->strides = array->strides;
    end->itemsize = array->itemsize;
    end->ndim = array->ndim;
    end->nbytes = array->nbytes;
    end->c = array->c;
    end->f = array->f;
}

void py_end_host(struct py_end *end, PyObject *array)
{
    struct numpy_view view;
    numpy_look(array, &view);
    end_clear(end, PY_END_HOST);
    end->keep = Py_NewRef(array);
    end->end.host = view.data;
    end->dtype = view.dtype;
    end->shape = view.shape;
    end->strides = view.strides;
    end->itemsize = numpy_itemsize(view.dtype);
    end->ndim = view.ndim;
    end->nbytes = view.nbytes;
    end->c = view.c;
    end->f = view.f;
}

static int open_block(struct py_end *end, PyObject *buffer)
{
    gg_memory *memory = py_buffer_memory(buffer);
    if (!memory)
        return -1;
    py_buffer_touch(buffer);
    end_clear(end, PY_END_BLOCK);
    gg_memory_retain(memory); /* the Buffer may be closed while we copy */
    end->end.memory = memory;
    end->nbytes = gg_memory_size(memory);
    end->c = end->f = true;
    return 0;
}

static int refuse_read_only(struct py_state *state, PyObject *object)
{
    py_invalid(state, "the destination is read-only: %R", Py_TYPE(object));
    return -1;
}

static int open_host(struct py_state *state, struct py_end *end, PyObject *array, bool destination)
{
    struct numpy_view view;
    numpy_look(array, &view);
    if (destination && !view.writeable)
        return refuse_read_only(state, array);
    if (numpy_check_dtype(view.dtype))
        return -1;
    py_end_host(end, array);
    return 0;
}

/* The memoryview keeps the export, so that the address stays good when `view` is let go. */
static int open_raw(struct py_state *state, struct py_end *end, PyObject *object, bool destination)
{
    Py_buffer view;
    PyObject *keep = PyMemoryView_FromObject(object);
    if (!keep)
        return -1;
    if (PyObject_GetBuffer(keep, &view, PyBUF_STRIDED_RO)) {
        Py_DECREF(keep);
        return -1;
    }
    end_clear(end, PY_END_RAW);
    end->keep = keep;
    end->end.host = view.buf;
    end->nbytes = (size_t)view.len;
    end->c = PyBuffer_IsContiguous(&view, 'C');
    end->f = PyBuffer_IsContiguous(&view, 'F');
    destination = destination && view.readonly;
    PyBuffer_Release(&view);
    if (!destination)
        return 0;
    Py_CLEAR(end->keep);
    return refuse_read_only(state, object);
}

int py_end_open(struct py_state *state, struct py_end *end, PyObject *object, bool destination)
{
    int is_array;
    if (PyObject_TypeCheck(object, state->array_type)) {
        if (destination && ((struct py_array *)object)->readonly)
            return refuse_read_only(state, object);
        py_end_array(end, (struct py_array *)object);
        return 0;
    }
    if (PyObject_TypeCheck(object, state->buffer_type))
        return open_block(end, object);
    is_array = numpy_is_array(object);
    if (is_array < 0)
        return -1;
    if (is_array)
        return open_host(state, end, object, destination);
    if (PyObject_CheckBuffer(object))
        return open_raw(state, end, object, destination);
    PyErr_Format(
        PyExc_TypeError,
        "the %s of a copy is a GPUArray, a Buffer, a NumPy array or another object with the "
        "buffer protocol, got %R",
        destination ? "destination" : "source", Py_TYPE(object));
    return -1;
}

void py_end_close(struct py_end *end)
{
    if (end->kind != PY_END_ARRAY)
        gg_memory_release(end->end.memory);
    end->end.memory = NULL;
    Py_CLEAR(end->keep);
}

/* ---- do they fit? ---------------------------------------------------------------------------- */

/* Beside an array a raw buffer is an array too, of its own format. */
static int give_type(struct py_end *end)
{
    PyObject *array, *keep = end->keep;
    if (end->kind != PY_END_RAW)
        return 0;
    array = numpy_from_memoryview(keep);
    if (!array)
        return -1;
    py_end_host(end, array);
    Py_DECREF(array); /* the end holds one, and it holds the memoryview */
    Py_DECREF(keep);
    return 0;
}

static int refuse_shapes(struct py_state *state, const struct py_end *dst, const struct py_end *src)
{
    PyObject *to = py_sizes(dst->shape, dst->ndim), *from = py_sizes(src->shape, src->ndim);
    if (to && from)
        py_invalid(state, "the shapes differ: destination %R, source %R", to, from);
    Py_XDECREF(to);
    Py_XDECREF(from);
    return -1;
}

int py_ends_same_dtype(const struct py_end *dst, const struct py_end *src)
{
    if (numpy_same_dtype(dst->dtype, src->dtype))
        return 0;
    PyErr_Format(PyExc_TypeError,
                 "the dtypes differ: destination %S, source %S; convert the source with astype",
                 dst->dtype, src->dtype);
    return -1;
}

static int match_arrays(struct py_state *state, struct py_end *dst, struct py_end *src)
{
    if (give_type(dst) || give_type(src) || py_ends_same_dtype(dst, src))
        return -1;
    if (dst->ndim != src->ndim ||
        (dst->ndim && memcmp(dst->shape, src->shape, (size_t)dst->ndim * sizeof *dst->shape)))
        return refuse_shapes(state, dst, src);
    return 0;
}

static int match_bytes(struct py_state *state, const struct py_end *dst, const struct py_end *src,
                       size_t nbytes)
{
    const struct py_end *shorter = dst->nbytes < nbytes ? dst : src;
    if (shorter->nbytes >= nbytes)
        return 0;
    py_invalid(state, "a copy of %zu bytes goes past the end: the %s has %zu bytes", nbytes,
               shorter == dst ? "destination" : "source", shorter->nbytes);
    return -1;
}

int py_ends_match(struct py_state *state, struct py_end *dst, struct py_end *src, size_t *nbytes)
{
    if (!dst->end.memory && !src->end.memory) {
        PyErr_SetString(PyExc_TypeError,
                        "one end of a copy must be a GPUArray or a Buffer; between "
                        "host arrays use numpy.copyto");
        return -1;
    }
    if (dst->kind != PY_END_BLOCK && src->kind != PY_END_BLOCK) {
        *nbytes = src->nbytes;
        return match_arrays(state, dst, src);
    }
    *nbytes = src->kind == PY_END_BLOCK && dst->kind != PY_END_BLOCK ? dst->nbytes : src->nbytes;
    return match_bytes(state, dst, src, *nbytes);
}
