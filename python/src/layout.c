/* layout.c: from shape, dtype and order arguments to sizes that are known to fit. */
#include "layout.h"
#include "numpy_bridge.h"

PyObject *py_sizes(const Py_ssize_t *sizes, int count)
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

static int refuse_shape(struct py_state *state, PyObject *shape, const char *why)
{
    PyObject *shown = py_shown(shape);
    if (shown)
        py_invalid(state, "shape %S %s", shown, why);
    Py_XDECREF(shown);
    return -1;
}

/* One dimension; an int that does not fit is as impossible as a negative one. */
static int read_dimension(struct py_state *state, PyObject *item, PyObject *shape, Py_ssize_t *out)
{
    int overflow;
    PyObject *number = PyNumber_Index(item);
    if (!number)
        return -1;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow > 0)
        return refuse_shape(state, shape, "is too large: a dimension does not fit in 64 bits");
    if (overflow || value < 0)
        return refuse_shape(state, shape, "has a negative dimension: each must be 0 or more");
    *out = (Py_ssize_t)value;
    return 0;
}

static int read_item(struct py_state *state, PyObject *shape, Py_ssize_t i, Py_ssize_t *out)
{
    PyObject *item = PySequence_GetItem(shape, i);
    int failed;
    if (!item)
        return -1;
    if (!PyIndex_Check(item)) {
        PyErr_Format(
            PyExc_TypeError,
            "a shape consists of ints, got %R in %R; pass data as an array or another buffer, "
            "such as numpy.array(...)",
            item, shape);
        Py_DECREF(item);
        return -1;
    }
    failed = read_dimension(state, item, shape, out);
    Py_DECREF(item);
    return failed;
}

static int read_shape(struct py_state *state, PyObject *shape, struct py_layout *layout)
{
    Py_ssize_t count;
    if (py_is_index(shape)) {
        layout->ndim = 1;
        return read_dimension(state, shape, shape, &layout->shape[0]);
    }
    if (!PySequence_Check(shape) || PyBytes_Check(shape)) {
        PyErr_Format(PyExc_TypeError, "a shape is an int or a tuple or list of ints, got %R", shape);
        return -1;
    }
    count = PySequence_Size(shape);
    if (count < 0)
        return -1;
    if (count > numpy_max_dims()) {
        py_invalid(state, "shape with %zd dimensions: at most %d are possible", count,
                   numpy_max_dims());
        return -1;
    }
    layout->ndim = (int)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_item(state, shape, i, &layout->shape[i]))
            return -1;
    }
    return 0;
}

/* Like NumPy, refuse what would be too large even where another dimension is 0. */
static int measure(struct py_state *state, struct py_layout *layout, PyObject *shape)
{
    const Py_ssize_t itemsize = numpy_itemsize(layout->dtype);
    Py_ssize_t bytes = itemsize ? itemsize : 1;
    bool empty = false;
    for (int i = 0; i < layout->ndim; i++) {
        Py_ssize_t size = layout->shape[i];
        if (!size)
            empty = true;
        else if (__builtin_mul_overflow(bytes, size, &bytes)) {
            py_invalid(state, "shape %R of dtype %S is too large: its size does not fit in 63 bits",
                       shape, layout->dtype);
            return -1;
        }
    }
    layout->size = empty ? 0 : bytes / (itemsize ? itemsize : 1);
    layout->nbytes = itemsize ? (size_t)(layout->size * itemsize) : 0;
    return 0;
}

char py_order(PyObject *object, char usual)
{
    Py_ssize_t length = 0;
    const char *text;
    if (!object || object == Py_None)
        return usual;
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
    if (read_shape(state, shape, layout) || measure(state, layout, shape)) {
        Py_CLEAR(layout->dtype);
        return -1;
    }
    return 0;
}

void py_layout_of(struct py_layout *layout, PyObject *array)
{
    struct numpy_view view;
    numpy_look(array, &view);
    layout->dtype = Py_NewRef(view.dtype);
    layout->ndim = view.ndim;
    layout->size = 1;
    for (int i = 0; i < view.ndim; i++) {
        layout->shape[i] = view.shape[i];
        layout->size *= view.shape[i];
    }
    layout->nbytes = view.nbytes;
    layout->fortran = view.f && !view.c;
}

void py_layout_close(struct py_layout *layout)
{
    Py_CLEAR(layout->dtype);
}
