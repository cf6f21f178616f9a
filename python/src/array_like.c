/* array_like.c: empty_like, zeros_like, ones_like, full_like. */
#include "array.h"
#include "numpy_bridge.h"

/* The shape, dtype and order of a GPUArray or an ndarray. */
static int layout_of_prototype(struct py_state *state, PyObject *prototype, struct py_layout *layout)
{
    int is_array;
    if (PyObject_TypeCheck(prototype, state->array_type)) {
        py_array_layout(py_array_of(prototype), layout);
        return 0;
    }
    is_array = numpy_is_array(prototype);
    if (is_array > 0)
        py_layout_of(layout, prototype);
    if (is_array == 0)
        PyErr_Format(PyExc_TypeError, "expected a GPUArray or a NumPy array to imitate, got %R",
                     Py_TYPE(prototype));
    return is_array > 0 ? 0 : -1;
}

/* Change what was asked for; sizes are computed anew, for the dtype may be wider. */
static int adapt(struct py_state *state, struct py_layout *layout, PyObject *dtype, PyObject *order)
{
    const char letter = py_order(order, 'K');
    struct py_layout wanted;
    PyObject *shape, *letters;
    int failed;
    if (!letter)
        return -1;
    shape = py_sizes(layout->shape, layout->ndim);
    letters = PyUnicode_FromString(letter == 'F' || (letter != 'C' && layout->fortran) ? "F" : "C");
    failed = !shape || !letters ||
             py_layout_open(state, &wanted, shape,
                            dtype && dtype != Py_None ? dtype : layout->dtype, letters);
    Py_XDECREF(shape);
    Py_XDECREF(letters);
    if (failed)
        return -1;
    py_layout_close(layout);
    *layout = wanted;
    return 0;
}

/* Without device= and stream= the new array lives where its model does. */
static int open_place(struct py_state *state, PyObject *prototype, PyObject *device,
                      PyObject *stream, struct py_place *place)
{
    const bool given = (device && device != Py_None) || (stream && stream != Py_None);
    if (given || !PyObject_TypeCheck(prototype, state->array_type))
        return py_place_open(state, device, stream, place);
    place->device = gg_memory_device(py_array_of(prototype)->memory);
    place->stream = NULL;
    return 0;
}

enum content { UNINITIALISED, ZEROS, VALUE };

static PyObject *make(struct py_state *state, struct py_layout *layout,
                      const struct py_place *place, enum content content, PyObject *value)
{
    switch (content) {
    case UNINITIALISED:
        return py_array_make(state, layout, place);
    case ZEROS:
        return py_array_zeros(state, layout, place);
    case VALUE:
        return py_array_full(state, layout, place, value);
    }
    return NULL;
}

/* order='K' of a prototype that is contiguous in neither order. */
static void restride(struct py_state *state, struct py_array *array, PyObject *prototype)
{
    struct numpy_view view;
    const struct py_array *model = py_array_of(prototype);
    if (PyObject_TypeCheck(prototype, state->array_type)) {
        if (!model->c && !model->f)
            py_array_restride(array, model->strides);
        return;
    }
    numpy_look(prototype, &view);
    if (!view.c && !view.f)
        py_array_restride(array, view.strides);
}

/* values: prototype, dtype, order, device, stream */
static PyObject *make_like(struct py_state *state, PyObject *const *values, enum content content,
                           PyObject *value)
{
    struct py_layout layout;
    struct py_place place;
    PyObject *array = NULL;
    if (layout_of_prototype(state, values[0], &layout))
        return NULL;
    if (!adapt(state, &layout, values[1], values[2]) &&
        !open_place(state, values[0], values[3], values[4], &place)) {
        array = make(state, &layout, &place, content, value);
        py_place_close(&place);
    }
    py_layout_close(&layout);
    if (array && py_order(values[2], 'K') == 'K')
        restride(state, py_array_of(array), values[0]);
    return array;
}

static PyObject *like_function(PyObject *module, const char *name, enum content content,
                               PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                               PyObject *value)
{
    static const char *const names[] = {"a", "dtype", "order", "device", "stream"};
    PyObject *values[5];
    if (py_parse(name, names, 5, 5, 1, args, nargs, kwnames, values))
        return NULL;
    return make_like(PyModule_GetState(module), values, content, value);
}

static PyObject *empty_like(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames)
{
    return like_function(module, "empty_like", UNINITIALISED, args, nargs, kwnames, NULL);
}

static PyObject *zeros_like(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames)
{
    return like_function(module, "zeros_like", ZEROS, args, nargs, kwnames, NULL);
}

static PyObject *ones_like(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames)
{
    PyObject *one = PyLong_FromLong(1), *array;
    if (!one)
        return NULL;
    array = like_function(module, "ones_like", VALUE, args, nargs, kwnames, one);
    Py_DECREF(one);
    return array;
}

static PyObject *full_like(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames)
{
    static const char *const names[] = {"a", "fill_value", "dtype", "order", "device", "stream"};
    PyObject *values[6], *value;
    if (py_parse("full_like", names, 6, 6, 2, args, nargs, kwnames, values))
        return NULL;
    value = values[1];
    values[1] = values[0]; /* make_like's order */
    return make_like(PyModule_GetState(module), values + 1, VALUE, value);
}

PyMethodDef py_like_functions[] = {
    {"empty_like", PY_METHOD(empty_like), METH_FASTCALL | METH_KEYWORDS,
     "empty_like(a, dtype=None, order='K', device=None, stream=None)\n--\n\n"
     "An uninitialised GPUArray with the shape, dtype, order and device of a."},
    {"zeros_like", PY_METHOD(zeros_like), METH_FASTCALL | METH_KEYWORDS,
     "zeros_like(a, dtype=None, order='K', device=None, stream=None)\n--\n\nZeros in the likeness "
     "of a."},
    {"ones_like", PY_METHOD(ones_like), METH_FASTCALL | METH_KEYWORDS,
     "ones_like(a, dtype=None, order='K', device=None, stream=None)\n--\n\nOnes in the likeness of "
     "a."},
    {"full_like", PY_METHOD(full_like), METH_FASTCALL | METH_KEYWORDS,
     "full_like(a, fill_value, dtype=None, order='K', device=None, stream=None)\n--\n\n"
     "One value in the likeness of a."},
    {NULL, NULL, 0, NULL},
};
