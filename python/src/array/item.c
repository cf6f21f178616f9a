/* item.c: single elements. */
#include "numpy/bridge.h"
#include "copy/transfer.h"
#include "array/array.h"

/* An index from 0 to size - 1; negative ones count from the end. */
static int item_read_index(PyObject *object, Py_ssize_t size, Py_ssize_t *out)
{
    Py_ssize_t index = PyNumber_AsSsize_t(object, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
        return -1;
    if (index < -size || index >= size)
        return PY_FAIL(PyExc_IndexError, "index %R is out of bounds for a length of %zd", object,
                       size);
    *out = index < 0 ? index + size : index;
    return 0;
}

/* Bytes from the first element to the one with a flat index in C order. */
static size_t item_flat_offset(const struct py_array *array, Py_ssize_t flat)
{
    Py_ssize_t offset = 0;
    for (int axis = array->ndim - 1; axis >= 0; axis--) {
        offset += flat % array->shape[axis] * array->strides[axis];
        flat /= array->shape[axis];
    }
    return (size_t)offset;
}

static int item_offset(const struct py_array *array, PyObject *const *index, Py_ssize_t count,
                       size_t *out)
{
    Py_ssize_t position = 0;
    if (count == 1 && array->ndim != 1) {
        if (item_read_index(index[0], array->size, &position))
            return -1;
        *out = item_flat_offset(array, position);
        return 0;
    }
    *out = 0;
    for (int axis = 0; axis < array->ndim; axis++) {
        if (item_read_index(index[axis], array->shape[axis], &position))
            return -1;
        *out += (size_t)(position * array->strides[axis]);
    }
    return 0;
}

/* The element at a byte offset as a 0-d ndarray. */
static PyObject *item_copy(struct py_state *state, struct py_array *array, size_t offset)
{
    PyObject *element = numpy_empty(array->dtype, 0, NULL, false);
    struct py_operand dst, src;
    if (!element)
        return NULL;
    py_operand_ndarray(&dst, element);
    py_operand_array(&src, array);
    src.native.offset += offset;
    src.c = true; /* one element is always contiguous */
    if (py_transfer_and_close(state, &dst, &src, (size_t)array->itemsize, NULL, 0))
        Py_CLEAR(element);
    return element;
}

static PyObject *item_get(PyObject *self, PyObject *const *index, Py_ssize_t count)
{
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    size_t offset = 0;
    PyObject *element, *scalar;
    if (count && item_offset(array, index, count, &offset))
        return NULL;
    element = item_copy(state, array, offset);
    if (!element)
        return NULL;
    scalar = PyObject_CallMethod(element, "item", NULL);
    Py_DECREF(element);
    return scalar;
}

static PyObject *item_get_tuple(PyObject *self, PyObject *tuple) /* item((i, j)) is item(i, j) */
{
    PyObject *index[PY_MAX_DIMS];
    const Py_ssize_t count = PyTuple_Size(tuple);
    if (count != py_array_of(self)->ndim)
        return PyErr_Format(PyExc_ValueError, "item: got %zd indices for %d dimensions", count,
                            py_array_of(self)->ndim);
    for (Py_ssize_t i = 0; i < count; i++)
        index[i] = PyTuple_GetItem(tuple, i); /* borrowed */
    return item_get(self, index, count);
}

PyObject *py_array_item(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    const struct py_array *array = py_array_of(self);
    if (nargs == 1 && PyTuple_Check(args[0]))
        return item_get_tuple(self, args[0]);
    if (nargs == 0 && array->size != 1)
        return PyErr_Format(
            PyExc_ValueError,
            "item() without an index needs an array of one element, this one has %zd", array->size);
    if (nargs > 1 && nargs != array->ndim)
        return PyErr_Format(PyExc_ValueError, "item: got %zd indices for %d dimensions", nargs,
                            array->ndim);
    return item_get(self, args, nargs);
}

int py_array_bool(PyObject *self)
{
    PyObject *element;
    int truth;
    if (py_array_of(self)->size != 1)
        return PY_FAIL(
            PyExc_ValueError,
            "the truth value of a GPUArray of %zd elements is ambiguous: use .get().any() or "
            ".get().all(), or .size",
            py_array_of(self)->size);
    element = item_copy(py_state_of(self), py_array_of(self), 0);
    if (!element)
        return -1;
    truth = PyObject_IsTrue(element);
    Py_DECREF(element);
    return truth;
}

/* A number from the element of a 0-d array. Without these slots int() would parse the bytes of host memory as
 * digits. */
static PyObject *item_number(PyObject *self, PyObject *(*convert)(PyObject *))
{
    PyObject *element, *number;
    if (py_array_of(self)->ndim)
        return PyErr_Format(
            PyExc_TypeError, "only a 0-d GPUArray can be converted to a number, this one has %d dimensions: use item()",
            py_array_of(self)->ndim);
    element = item_get(self, NULL, 0);
    number = element ? convert(element) : NULL;
    Py_XDECREF(element);
    return number;
}

PyObject *py_array_int(PyObject *self)
{
    return item_number(self, PyNumber_Long);
}

PyObject *py_array_float(PyObject *self)
{
    return item_number(self, PyNumber_Float);
}

static PyObject *item_to_complex(PyObject *element)
{
    return PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, element, NULL);
}

PyObject *py_array_complex(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return item_number(self, item_to_complex);
}
