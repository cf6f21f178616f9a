/* array_item.c: single elements. */
#include "array.h"
#include "ends.h"
#include "numpy_bridge.h"

/* An index from 0 to size - 1; negative ones count from the end. */
static int read_index(PyObject *object, Py_ssize_t size, Py_ssize_t *out)
{
    Py_ssize_t index = PyNumber_AsSsize_t(object, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
        return -1;
    if (index < -size || index >= size) {
        PyErr_Format(PyExc_IndexError, "index %R is out of bounds for a length of %zd", object,
                     size);
        return -1;
    }
    *out = index < 0 ? index + size : index;
    return 0;
}

/* Bytes from the first element to the one with a flat index in C order. */
static size_t flat_offset(const struct py_array *array, Py_ssize_t flat)
{
    Py_ssize_t offset = 0;
    for (int axis = array->ndim - 1; axis >= 0; axis--) {
        offset += flat % array->shape[axis] * array->strides[axis];
        flat /= array->shape[axis];
    }
    return (size_t)offset;
}

static int offset_of(const struct py_array *array, PyObject *const *index, Py_ssize_t count,
                     size_t *out)
{
    Py_ssize_t position = 0;
    if (count == 1 && array->ndim != 1) {
        if (read_index(index[0], array->size, &position))
            return -1;
        *out = flat_offset(array, position);
        return 0;
    }
    *out = 0;
    for (int axis = 0; axis < array->ndim; axis++) {
        if (read_index(index[axis], array->shape[axis], &position))
            return -1;
        *out += (size_t)(position * array->strides[axis]);
    }
    return 0;
}

/* The element at a byte offset as a 0-d ndarray. */
static PyObject *fetch_element(struct py_state *state, struct py_array *array, size_t offset)
{
    PyObject *element = numpy_empty(array->dtype, 0, NULL, false);
    struct py_end dst, src;
    if (!element)
        return NULL;
    py_end_host(&dst, element);
    py_end_array(&src, array);
    src.end.offset += offset;
    src.c = true; /* one element is contiguous wherever it is */
    if (py_transfer(state, &dst, &src, (size_t)array->itemsize, NULL, 0))
        Py_CLEAR(element);
    py_end_close(&src);
    py_end_close(&dst);
    return element;
}

static PyObject *take(PyObject *self, PyObject *const *index, Py_ssize_t count)
{
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    size_t offset = 0;
    PyObject *element, *scalar;
    if (count && offset_of(array, index, count, &offset))
        return NULL;
    element = fetch_element(state, array, offset);
    if (!element)
        return NULL;
    scalar = PyObject_CallMethod(element, "item", NULL);
    Py_DECREF(element);
    return scalar;
}

static PyObject *take_at(PyObject *self, PyObject *tuple) /* item((i, j)) is item(i, j) */
{
    PyObject *index[PY_MAX_DIMS];
    const Py_ssize_t count = PyTuple_Size(tuple);
    if (count != py_array_of(self)->ndim)
        return PyErr_Format(PyExc_ValueError, "item: %zd indices for %d dimensions", count,
                            py_array_of(self)->ndim);
    for (Py_ssize_t i = 0; i < count; i++)
        index[i] = PyTuple_GetItem(tuple, i); /* borrowed */
    return take(self, index, count);
}

PyObject *py_array_item(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    const struct py_array *array = py_array_of(self);
    if (nargs == 1 && PyTuple_Check(args[0]))
        return take_at(self, args[0]);
    if (nargs == 0 && array->size != 1)
        return PyErr_Format(PyExc_ValueError,
                            "item() without an index needs an array of one element, this has %zd",
                            array->size);
    if (nargs > 1 && nargs != array->ndim)
        return PyErr_Format(PyExc_ValueError, "item: %zd indices for %d dimensions", nargs,
                            array->ndim);
    return take(self, args, nargs);
}

int py_array_bool(PyObject *self)
{
    PyObject *element;
    int truth;
    if (py_array_of(self)->size != 1) {
        PyErr_Format(
            PyExc_ValueError,
            "the truth value of a GPUArray of %zd elements is ambiguous: use .get().any() or "
            ".get().all(), or .size",
            py_array_of(self)->size);
        return -1;
    }
    element = fetch_element(py_state_of(self), py_array_of(self), 0);
    if (!element)
        return -1;
    truth = PyObject_IsTrue(element);
    Py_DECREF(element);
    return truth;
}

/* The element of a 0-d array. Without these int() would read the bytes of memory that the host reaches as
 * digits. */
static PyObject *only_element(PyObject *self)
{
    if (!py_array_of(self)->ndim)
        return take(self, NULL, 0);
    return PyErr_Format(PyExc_TypeError,
                        "only a 0-d GPUArray is a number, this has %d dimensions: use item()",
                        py_array_of(self)->ndim);
}

PyObject *py_array_int(PyObject *self)
{
    PyObject *element = only_element(self), *number;
    if (!element)
        return NULL;
    number = PyNumber_Long(element);
    Py_DECREF(element);
    return number;
}

PyObject *py_array_float(PyObject *self)
{
    PyObject *element = only_element(self), *number;
    if (!element)
        return NULL;
    number = PyNumber_Float(element);
    Py_DECREF(element);
    return number;
}
