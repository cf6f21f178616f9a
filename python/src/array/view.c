/* view.c: view(dtype): the same bytes as elements of another type, by NumPy's rules. */
#include "base/arguments.h"
#include "numpy/bridge.h"
#include "array/array.h"

static PyObject *view_raise(const char *why)
{
    PyErr_SetString(PyExc_ValueError, why);
    return NULL;
}

static PyObject *view_same_size(struct py_array *array, PyObject *dtype)
{
    return py_array_view(array, 0, dtype, array->ndim, array->shape, array->strides);
}

static PyObject *view_other_size(struct py_array *array, PyObject *dtype, Py_ssize_t itemsize)
{
    Py_ssize_t shape[PY_MAX_DIMS], strides[PY_MAX_DIMS];
    const int last = array->ndim - 1;
    if (last < 0)
        return view_raise("changing the dtype of a 0-d array needs an equal itemsize");
    if (array->shape[last] != 1 && array->size && array->strides[last] != array->itemsize)
        return view_raise("to change to a dtype of another size the last axis must be contiguous");
    memcpy(shape, array->shape, (size_t)array->ndim * sizeof *shape);
    memcpy(strides, array->strides, (size_t)array->ndim * sizeof *strides);
    if (itemsize < array->itemsize) {
        if (!itemsize || array->itemsize % itemsize)
            return view_raise(
                "the size of a smaller dtype must divide the size of the present one");
        if (__builtin_mul_overflow(shape[last], array->itemsize / itemsize, &shape[last]))
            return view_raise("the size of the shape does not fit in 63 bits");
    } else {
        if (shape[last] * array->itemsize % itemsize)
            return view_raise(
                "the size of a larger dtype must divide the size of the last axis in bytes");
        shape[last] = shape[last] * array->itemsize / itemsize;
    }
    strides[last] = itemsize;
    return py_array_view(array, 0, dtype, array->ndim, shape, strides);
}

/* A void dtype without a size gets the array's item size. On failure -1, and *dtype is released. */
static int view_fit_void(const struct py_array *array, PyObject **dtype)
{
    PyObject *text;
    if (!numpy_is_unsized(*dtype) || numpy_dtype_kind(*dtype) != 'V')
        return 0;
    Py_DECREF(*dtype);
    text = PyUnicode_FromFormat("V%zd", array->itemsize);
    if (!text || numpy_dtype(text, dtype)) {
        Py_XDECREF(text);
        return -1;
    }
    Py_DECREF(text);
    return 0;
}

PY_FASTCALL(py_array_view_as)
{
    static const char *const names[] = {"dtype"};
    struct py_array *array = py_array_of(self);
    PyObject *values[1], *dtype, *view;
    Py_ssize_t itemsize;
    if (py_parse("view", names, 1, 1, 0, args, nargs, kwnames, values))
        return NULL;
    if (!values[0])
        return view_same_size(array, array->dtype);
    if (numpy_dtype_for_cast(values[0], &dtype) || view_fit_void(array, &dtype))
        return NULL;
    itemsize = numpy_itemsize(dtype);
    view = itemsize == array->itemsize ? view_same_size(array, dtype)
                                       : view_other_size(array, dtype, itemsize);
    Py_DECREF(dtype);
    return view;
}
