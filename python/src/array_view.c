/* array_view.c: view(dtype): the same bytes as elements of another type, by NumPy's rules. */
#include "array.h"
#include "numpy_bridge.h"

static PyObject *refuse(const char *why)
{
    PyErr_SetString(PyExc_ValueError, why);
    return NULL;
}

static PyObject *same_size(struct py_array *array, PyObject *dtype)
{
    return py_array_view(array, 0, dtype, array->ndim, array->shape, array->strides);
}

static PyObject *other_size(struct py_array *array, PyObject *dtype, Py_ssize_t itemsize)
{
    Py_ssize_t shape[PY_MAX_DIMS], strides[PY_MAX_DIMS];
    const int last = array->ndim - 1;
    if (last < 0)
        return refuse("changing the dtype of a 0-d array needs an equal itemsize");
    if (array->shape[last] != 1 && array->size && array->strides[last] != array->itemsize)
        return refuse("to change to a dtype of another size the last axis must be contiguous");
    memcpy(shape, array->shape, (size_t)array->ndim * sizeof *shape);
    memcpy(strides, array->strides, (size_t)array->ndim * sizeof *strides);
    if (itemsize < array->itemsize) {
        if (!itemsize || array->itemsize % itemsize)
            return refuse("a smaller dtype's size must divide the size of the one that is there");
        if (__builtin_mul_overflow(shape[last], array->itemsize / itemsize, &shape[last]))
            return refuse("the size of the shape does not fit in 63 bits");
    } else {
        if (shape[last] * array->itemsize % itemsize)
            return refuse("a larger dtype's size must divide the bytes of the last axis");
        shape[last] = shape[last] * array->itemsize / itemsize;
    }
    strides[last] = itemsize;
    return py_array_view(array, 0, dtype, array->ndim, shape, strides);
}

/* A void without a size is one of the size that is there. -1 with an exception, *dtype let go. */
static int fit_void(const struct py_array *array, PyObject **dtype)
{
    PyObject *text;
    if (!numpy_lacks_length(*dtype) || numpy_kind(*dtype) != 'V')
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
        return same_size(array, array->dtype);
    if (numpy_dtype_to_cast(values[0], &dtype) || fit_void(array, &dtype))
        return NULL;
    itemsize = numpy_itemsize(dtype);
    view =
        itemsize == array->itemsize ? same_size(array, dtype) : other_size(array, dtype, itemsize);
    Py_DECREF(dtype);
    return view;
}
