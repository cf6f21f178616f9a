/* operand.c: source and destination of a copy: describing them, and whether they match. */
#include "copy/operand.h"
#include "numpy/bridge.h"
#include "memory/buffer.h"

/* By parts: compilers clear a whole struct of this size by an instruction that costs more than all of these. */
static void operand_clear(struct py_operand *operand, enum py_operand_kind kind)
{
    operand->kind = kind;
    operand->native = (struct gg_copy_operand){.memory = NULL};
    operand->keep = operand->dtype = NULL;
    operand->shape = operand->strides = NULL;
    operand->ndim = 0;
    operand->itemsize = 0;
    operand->nbytes = 0;
    operand->c = operand->f = operand->readonly = operand->view = false;
}

void py_operand_array(struct py_operand *operand, struct py_array *array)
{
    operand_clear(operand, PY_OPERAND_ARRAY);
    operand->native.memory = array->memory;
    operand->native.offset = array->offset;
    operand->dtype = array->dtype;
    operand->shape = array->shape;
    operand->strides = array->strides;
    operand->itemsize = array->itemsize;
    operand->ndim = array->ndim;
    operand->nbytes = array->nbytes;
    operand->c = array->c;
    operand->f = array->f;
    operand->readonly = array->readonly;
    operand->view = array->base != NULL;
}

void py_operand_ndarray(struct py_operand *operand, PyObject *array)
{
    struct numpy_desc desc;
    numpy_describe(array, &desc);
    operand_clear(operand, PY_OPERAND_NDARRAY);
    operand->keep = Py_NewRef(array);
    operand->native.host = desc.data;
    operand->dtype = desc.dtype;
    operand->shape = desc.shape;
    operand->strides = desc.strides;
    operand->itemsize = numpy_itemsize(desc.dtype);
    operand->ndim = desc.ndim;
    operand->nbytes = desc.nbytes;
    operand->c = desc.c;
    operand->f = desc.f;
    operand->readonly = !desc.writeable;
    operand->view = !numpy_owns_data(array);
}

static int operand_open_buffer(struct py_operand *operand, PyObject *buffer)
{
    gg_memory *memory = py_buffer_memory(buffer);
    if (!memory)
        return -1;
    py_buffer_touch(buffer);
    operand_clear(operand, PY_OPERAND_BUFFER);
    gg_memory_retain(memory); /* the Buffer may be closed during the copy */
    operand->native.memory = memory;
    operand->nbytes = gg_memory_size(memory);
    operand->c = operand->f = true;
    return 0;
}

/* The memoryview keeps the export, so that the address stays valid after `view` is released. */
static int operand_open_host_buffer(struct py_operand *operand, PyObject *object)
{
    Py_buffer view;
    PyObject *keep = PyMemoryView_FromObject(object);
    if (!keep)
        return -1;
    if (PyObject_GetBuffer(keep, &view, PyBUF_STRIDED_RO)) {
        Py_DECREF(keep);
        return -1;
    }
    operand_clear(operand, PY_OPERAND_HOST_BUFFER);
    operand->keep = keep;
    operand->native.host = view.buf;
    operand->nbytes = (size_t)view.len;
    operand->c = PyBuffer_IsContiguous(&view, 'C');
    operand->f = PyBuffer_IsContiguous(&view, 'F');
    operand->readonly = view.readonly;
    PyBuffer_Release(&view);
    return 0;
}

static int operand_describe(struct py_state *state, struct py_operand *operand, PyObject *object,
                            const char *role)
{
    int is_array;
    if (PyObject_TypeCheck(object, state->array_type)) {
        py_operand_array(operand, (struct py_array *)object);
        return 0;
    }
    if (PyObject_TypeCheck(object, state->buffer_type))
        return operand_open_buffer(operand, object);
    is_array = numpy_is_array(object);
    if (is_array > 0)
        py_operand_ndarray(operand, object);
    if (is_array)
        return is_array > 0 ? 0 : -1;
    if (PyObject_CheckBuffer(object))
        return operand_open_host_buffer(operand, object);
    return PY_FAIL(PyExc_TypeError,
                   "the %s of a copy must be a GPUArray, a Buffer, a NumPy array or another object "
                   "with the buffer protocol, got %R",
                   role, Py_TYPE(object));
}

int py_operand_open(struct py_state *state, struct py_operand *operand, PyObject *object,
                    bool destination)
{
    if (operand_describe(state, operand, object, destination ? "destination" : "source"))
        return -1;
    if (destination && operand->readonly)
        py_invalid(state, "the destination is read-only: %R", Py_TYPE(object));
    else if (operand->kind != PY_OPERAND_NDARRAY || !numpy_check_dtype(operand->dtype))
        return 0;
    py_operand_close(operand);
    return -1;
}

void py_operand_close(struct py_operand *operand)
{
    if (operand->kind != PY_OPERAND_ARRAY)
        gg_memory_release(operand->native.memory);
    operand->native.memory = NULL;
    Py_CLEAR(operand->keep);
}

int py_operands_open(struct py_state *state, struct py_operand *dst, PyObject *to,
                     struct py_operand *src, PyObject *from)
{
    if (py_operand_open(state, dst, to, true))
        return -1;
    if (!py_operand_open(state, src, from, false))
        return 0;
    py_operand_close(dst);
    return -1;
}

void py_operands_close(struct py_operand *dst, struct py_operand *src)
{
    py_operand_close(src);
    py_operand_close(dst);
}

/* ---- do they match? ---- */

/* Copied to or from an array, a host buffer is an array of its own format. */
static int operand_add_dtype(struct py_operand *operand)
{
    PyObject *array, *keep = operand->keep;
    if (operand->kind != PY_OPERAND_HOST_BUFFER)
        return 0;
    array = numpy_from_memoryview(keep);
    if (!array)
        return -1;
    py_operand_ndarray(operand, array);
    Py_DECREF(array); /* the operand keeps it, and it keeps the memoryview */
    Py_DECREF(keep);
    return 0;
}

static int operands_raise_shapes(struct py_state *state, const struct py_operand *dst,
                                 const struct py_operand *src)
{
    PyObject *to = py_ssize_tuple(dst->shape, dst->ndim),
             *from = py_ssize_tuple(src->shape, src->ndim);
    if (to && from)
        py_invalid(state, "the shapes differ: destination %R, source %R", to, from);
    Py_XDECREF(to);
    Py_XDECREF(from);
    return -1;
}

int py_operands_same_dtype(const struct py_operand *dst, const struct py_operand *src)
{
    if (numpy_same_dtype(dst->dtype, src->dtype))
        return 0;
    return PY_FAIL(PyExc_TypeError,
                   "the dtypes differ: destination %S, source %S; convert the source with astype",
                   dst->dtype, src->dtype);
}

static int operands_match_arrays(struct py_state *state, struct py_operand *dst,
                                 struct py_operand *src)
{
    if (operand_add_dtype(dst) || operand_add_dtype(src) || py_operands_same_dtype(dst, src))
        return -1;
    if (dst->ndim != src->ndim ||
        (dst->ndim && memcmp(dst->shape, src->shape, (size_t)dst->ndim * sizeof *dst->shape)))
        return operands_raise_shapes(state, dst, src);
    return 0;
}

static int operands_match_bytes(struct py_state *state, const struct py_operand *dst,
                                const struct py_operand *src, size_t nbytes)
{
    const struct py_operand *shorter = dst->nbytes < nbytes ? dst : src;
    if (shorter->nbytes >= nbytes)
        return 0;
    return PY_FAIL(state->invalid_argument,
                   "a copy of %zu bytes extends past the end: the %s has %zu bytes", nbytes,
                   shorter == dst ? "destination" : "source", shorter->nbytes);
}

int py_operands_match(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                      size_t *nbytes)
{
    if (!dst->native.memory && !src->native.memory)
        return PY_FAIL(PyExc_TypeError,
                       "the source or destination of a copy must be a GPUArray or a Buffer; "
                       "between host arrays use numpy.copyto");
    if (dst->kind != PY_OPERAND_BUFFER && src->kind != PY_OPERAND_BUFFER) {
        *nbytes = src->nbytes;
        return operands_match_arrays(state, dst, src);
    }
    *nbytes = src->kind == PY_OPERAND_BUFFER && dst->kind != PY_OPERAND_BUFFER ? dst->nbytes
                                                                               : src->nbytes;
    return operands_match_bytes(state, dst, src, *nbytes);
}
