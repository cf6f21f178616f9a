/* layout.c: shape, dtype and order arguments; sizes that are known to fit. */
#include "numpy/layout.h"
#include "base/arguments.h"
#include "numpy/bridge.h"

PyObject *py_ssize_tuple(const Py_ssize_t *sizes, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *size = PyLong_FromSsize_t(sizes[i]);
        if (!size || PyTuple_SetItem(tuple, i, size)) /* takes over size */
            Py_CLEAR(tuple);
    }
    return tuple;
}

bool py_is_index(PyObject *object)
{
    if (PyLong_Check(object))
        return true;
    if (!PyIndex_Check(object))
        return false;
    if (!PySequence_Check(object) || PySequence_Size(object) < 0) { /* an array without axes */
        PyErr_Clear();
        return true;
    }
    return false;
}

static int layout_raise_shape(struct py_state *state, PyObject *shape, const char *why)
{
    PyObject *shown = py_safe_repr(shape);
    if (shown)
        py_invalid(state, "shape %S %s", shown, why);
    Py_XDECREF(shown);
    return -1;
}

/* One dimension. An int that does not fit in 64 bits is an error, like a negative one. */
static int layout_read_dimension(struct py_state *state, PyObject *item, PyObject *shape,
                                 Py_ssize_t *out)
{
    int overflow;
    PyObject *number = PyNumber_Index(item);
    if (!number)
        return -1;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow > 0)
        return layout_raise_shape(state, shape, "is too large: a dimension does not fit in 64 bits");
    if (overflow || value < 0)
        return layout_raise_shape(state, shape, "has a negative dimension: each must be 0 or more");
    *out = (Py_ssize_t)value;
    return 0;
}

static int layout_read_item(struct py_state *state, PyObject *shape, Py_ssize_t i, Py_ssize_t *out)
{
    PyObject *item = PySequence_GetItem(shape, i);
    int failed;
    if (!item)
        return -1;
    if (!PyIndex_Check(item)) {
        PyErr_Format(PyExc_TypeError,
                     "a shape must consist of ints, got %R in %R; pass data as an array or another "
                     "buffer, such as numpy.array(...)",
                     item, shape);
        Py_DECREF(item);
        return -1;
    }
    failed = layout_read_dimension(state, item, shape, out);
    Py_DECREF(item);
    return failed;
}

static int layout_read_shape(struct py_state *state, PyObject *shape, struct py_layout *layout)
{
    Py_ssize_t count;
    if (py_is_index(shape)) {
        layout->ndim = 1;
        return layout_read_dimension(state, shape, shape, &layout->shape[0]);
    }
    if (!PySequence_Check(shape) || PyBytes_Check(shape))
        return PY_FAIL(PyExc_TypeError, "a shape must be an int or a tuple or list of ints, got %R",
                       shape);
    count = PySequence_Size(shape);
    if (count < 0)
        return -1;
    if (count > numpy_max_dims())
        return PY_FAIL(state->invalid_argument, "shape with %zd dimensions: expected at most %d",
                       count, numpy_max_dims());
    layout->ndim = (int)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (layout_read_item(state, shape, i, &layout->shape[i]))
            return -1;
    }
    return 0;
}

/* Like NumPy, reject sizes that would be too large even where another dimension is 0. */
static int layout_measure(struct py_state *state, struct py_layout *layout, PyObject *shape)
{
    const Py_ssize_t itemsize = numpy_itemsize(layout->dtype);
    Py_ssize_t bytes = itemsize ? itemsize : 1;
    bool empty = false;
    for (int i = 0; i < layout->ndim; i++) {
        Py_ssize_t size = layout->shape[i];
        if (!size)
            empty = true;
        else if (__builtin_mul_overflow(bytes, size, &bytes))
            return PY_FAIL(state->invalid_argument,
                           "shape %R of dtype %S is too large: its size does not fit in 63 bits",
                           shape, layout->dtype);
    }
    layout->size = empty ? 0 : bytes / (itemsize ? itemsize : 1);
    layout->nbytes = itemsize ? (size_t)(layout->size * itemsize) : 0;
    return 0;
}

char py_order(PyObject *object, char otherwise)
{
    Py_ssize_t length = 0;
    const char *text;
    if (!py_given(object))
        return otherwise;
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "order must be a str, got %R", object);
        return 0;
    }
    text = PyUnicode_AsUTF8AndSize(object, &length);
    if (text && length == 1 && strchr("CFAKcfak", text[0]))
        return (char)(text[0] & ~0x20); /* upper case */
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "order must be one of 'C', 'F', 'A', 'K', got %R", object);
    return 0;
}

int py_layout_open(struct py_state *state, struct py_layout *layout, PyObject *shape,
                   PyObject *dtype, PyObject *order)
{
    const char letter = py_order(order, 'C');
    if (!letter || numpy_dtype(dtype, &layout->dtype))
        return -1;
    layout->fortran = letter == 'F';
    if (layout_read_shape(state, shape, layout) || layout_measure(state, layout, shape)) {
        Py_CLEAR(layout->dtype);
        return -1;
    }
    return 0;
}

void py_layout_set(struct py_layout *layout, PyObject *dtype, int ndim, const Py_ssize_t *shape,
                   bool fortran)
{
    layout->dtype = Py_NewRef(dtype);
    layout->ndim = ndim;
    layout->size = 1;
    for (int i = 0; i < ndim; i++) {
        layout->shape[i] = shape[i];
        layout->size *= shape[i];
    }
    layout->nbytes = (size_t)(layout->size * numpy_itemsize(dtype));
    layout->fortran = fortran;
}

void py_layout_close(struct py_layout *layout)
{
    Py_CLEAR(layout->dtype);
}
