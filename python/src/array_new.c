/* array_new.c: GPUArray(...), to_gpu and the functions that make an array from a shape. */
#include "array.h"
#include "ends.h"
#include "fill.h"
#include "numpy_bridge.h"

/* ---- from data ------------------------------------------------------------------------------- */

/* Copy a contiguous ndarray to a new array; the host's side is finished on return. */
static PyObject *upload(struct py_state *state, PyObject *host, const struct py_place *place)
{
    struct py_layout layout;
    struct py_end dst, src;
    PyObject *array;
    int failed;
    py_layout_of(&layout, host);
    array = py_array_make(state, &layout, place);
    py_layout_close(&layout);
    if (!array)
        return NULL;
    py_end_array(&dst, py_array_of(array));
    py_end_host(&src, host);
    failed = py_transfer(state, &dst, &src, dst.nbytes, place->stream, 0);
    py_end_close(&src);
    py_end_close(&dst);
    if (failed)
        Py_CLEAR(array);
    return array;
}

PyObject *py_array_upload(struct py_state *state, PyObject *host, const struct py_place *place)
{
    struct numpy_view view;
    PyObject *array = NULL;
    if (!host)
        return NULL;
    numpy_look(host, &view);
    if (!numpy_check_dtype(view.dtype))
        array = upload(state, host, place);
    Py_DECREF(host);
    return array;
}

static int refuse_device_data(struct py_state *state, PyObject *data)
{
    if (!PyObject_TypeCheck(data, state->array_type) && !PyObject_TypeCheck(data, state->buffer_type))
        return 0;
    PyErr_Format(PyExc_TypeError,
                 "expected host data, got a %R: use copy(destination, source) or GPUArray.copy()",
                 Py_TYPE(data));
    return -1;
}

static PyObject *from_data(struct py_state *state, PyObject *data, PyObject *dtype_object,
                           char order, const struct py_place *place)
{
    PyObject *dtype = NULL, *host;
    if (refuse_device_data(state, data) || numpy_load() ||
        (dtype_object && dtype_object != Py_None && numpy_dtype_to_cast(dtype_object, &dtype)))
        return NULL;
    host = numpy_from(data, dtype, order);
    Py_XDECREF(dtype);
    return py_array_upload(state, host, place);
}

static PyObject *to_gpu(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"a", "device", "stream"};
    struct py_state *state = PyModule_GetState(module);
    struct py_place place;
    PyObject *values[3], *array;
    if (py_parse("to_gpu", names, 3, 3, 1, args, nargs, kwnames, values) ||
        py_place_open(state, values[1], values[2], &place))
        return NULL;
    array = from_data(state, values[0], NULL, 'K', &place);
    py_place_close(&place);
    return array;
}

static PyObject *arange(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"start", "stop", "step", "dtype", "device", "stream"};
    struct py_state *state = PyModule_GetState(module);
    struct py_place place;
    PyObject *values[6], *dtype = NULL, *array;
    if (py_parse("arange", names, 6, 4, 1, args, nargs, kwnames, values) || numpy_load() ||
        (values[3] && values[3] != Py_None && numpy_dtype_to_cast(values[3], &dtype)))
        return NULL;
    if (py_place_open(state, values[4], values[5], &place)) {
        Py_XDECREF(dtype);
        return NULL;
    }
    array = py_array_upload(state, numpy_arange(values[0], values[1], values[2], dtype), &place);
    py_place_close(&place);
    Py_XDECREF(dtype);
    return array;
}

/* ---- from a shape ---------------------------------------------------------------------------- */

PyObject *py_array_zeros(struct py_state *state, const struct py_layout *layout,
                         const struct py_place *place)
{
    PyObject *array = py_array_make(state, layout, place);
    if (array && py_fill_zero(state, py_array_of(array), place->stream))
        Py_CLEAR(array);
    return array;
}

PyObject *py_array_full(struct py_state *state, struct py_layout *layout,
                        const struct py_place *place, PyObject *value)
{
    PyObject *element = numpy_element(layout->dtype, value), *array;
    if (!element)
        return NULL;
    array = py_array_make(state, layout, place);
    if (array && py_fill_element(state, py_array_of(array), element, place->stream))
        Py_CLEAR(array);
    Py_DECREF(element);
    return array;
}

static PyObject *make_ones(struct py_state *state, struct py_layout *layout,
                           const struct py_place *place)
{
    PyObject *one = PyLong_FromLong(1), *array;
    if (!one)
        return NULL;
    array = py_array_full(state, layout, place, one);
    Py_DECREF(one);
    return array;
}

enum content { UNINITIALISED, ZEROS, ONES };

static PyObject *make(struct py_state *state, struct py_layout *layout,
                      const struct py_place *place, enum content content)
{
    switch (content) {
    case UNINITIALISED:
        return py_array_make(state, layout, place);
    case ZEROS:
        return py_array_zeros(state, layout, place);
    case ONES:
        return make_ones(state, layout, place);
    }
    return NULL;
}

/* values: shape, dtype, order, device, stream */
static PyObject *make_from(struct py_state *state, PyObject *const *values, enum content content)
{
    struct py_layout layout;
    struct py_place place;
    PyObject *array = NULL;
    if (py_layout_open(state, &layout, values[0], values[1], values[2]))
        return NULL;
    if (!py_place_open(state, values[3], values[4], &place)) {
        array = make(state, &layout, &place, content);
        py_place_close(&place);
    }
    py_layout_close(&layout);
    return array;
}

static PyObject *shape_function(PyObject *module, const char *name, enum content content,
                                PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"shape", "dtype", "order", "device", "stream"};
    PyObject *values[5];
    if (py_parse(name, names, 5, 5, 1, args, nargs, kwnames, values))
        return NULL;
    return make_from(PyModule_GetState(module), values, content);
}

static PyObject *empty(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return shape_function(module, "empty", UNINITIALISED, args, nargs, kwnames);
}

static PyObject *zeros(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return shape_function(module, "zeros", ZEROS, args, nargs, kwnames);
}

static PyObject *ones(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return shape_function(module, "ones", ONES, args, nargs, kwnames);
}

/* full()'s dtype, if none is given, is that of its value. */
static int value_dtype(PyObject *value, PyObject **out)
{
    PyObject *element = numpy_load() ? NULL : numpy_element(NULL, value);
    struct numpy_view view;
    if (!element)
        return -1;
    numpy_look(element, &view);
    *out = Py_NewRef(view.dtype);
    Py_DECREF(element);
    return 0;
}

static PyObject *full(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"shape", "fill_value", "dtype",
                                        "order", "device",     "stream"};
    struct py_state *state = PyModule_GetState(module);
    struct py_layout layout;
    struct py_place place;
    PyObject *values[6], *dtype, *array = NULL;
    if (py_parse("full", names, 6, 6, 2, args, nargs, kwnames, values))
        return NULL;
    if (values[2] && values[2] != Py_None)
        dtype = Py_NewRef(values[2]);
    else if (value_dtype(values[1], &dtype))
        return NULL;
    if (!py_layout_open(state, &layout, values[0], dtype, values[3])) {
        if (!py_place_open(state, values[4], values[5], &place)) {
            array = py_array_full(state, &layout, &place, values[1]);
            py_place_close(&place);
        }
        py_layout_close(&layout);
    }
    Py_DECREF(dtype);
    return array;
}

/* ---- GPUArray(shape | data, ...) ------------------------------------------------------------- */

/* Ints, and tuples or lists (of ints, it is to be hoped), are a shape. Arrays have __index__ too, and NumPy's
 * integers are buffers. */
static int is_shape(PyObject *object)
{
    int is_array;
    if (PyLong_Check(object) || PyTuple_Check(object) || PyList_Check(object))
        return 1;
    is_array = numpy_is_array(object);
    if (is_array)
        return -(is_array < 0);
    if (!PyIndex_Check(object))
        return 0;
    return numpy_is_scalar(object) ||
           !(PyObject_CheckBuffer(object) || PyObject_HasAttrString(object, "__array__") ||
             PyObject_HasAttrString(object, "__dlpack__"));
}

static PyObject *new_from_data(struct py_state *state, PyObject *const *values)
{
    const char order = py_order(values[2], 'K');
    struct py_place place;
    PyObject *array;
    if (!order || py_place_open(state, values[3], values[4], &place))
        return NULL;
    array = from_data(state, values[0], values[1], order, &place);
    py_place_close(&place);
    return array;
}

static int refuse_what_is_neither(PyObject *object)
{
    if (PyObject_CheckBuffer(object) || PyObject_HasAttrString(object, "__array_interface__"))
        return 0;
    PyErr_Format(
        PyExc_TypeError,
        "GPUArray takes a shape (an int, or a tuple or list of ints) or data with the buffer "
        "protocol, got %R",
        Py_TYPE(object));
    return -1;
}

PyObject *py_array_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shape_or_data", "dtype", "order", "device", "stream", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *values[5] = {NULL};
    int shape;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOO:GPUArray", names, &values[0], &values[1],
                                     &values[2], &values[3], &values[4]))
        return NULL;
    shape = is_shape(values[0]);
    if (shape < 0)
        return NULL;
    if (shape)
        return make_from(state, values, UNINITIALISED);
    if (refuse_device_data(state, values[0]) || refuse_what_is_neither(values[0]))
        return NULL;
    return new_from_data(state, values);
}

PyMethodDef py_array_functions[] = {
    {"to_gpu", PY_METHOD(to_gpu), METH_FASTCALL | METH_KEYWORDS,
     "to_gpu(a, device=None, stream=None)\n--\n\n"
     "Copy a NumPy array, or what numpy.asarray makes one of, to a new GPUArray; C and Fortran "
     "order\n"
     "are kept. a may be changed as soon as this returns."},
    {"empty", PY_METHOD(empty), METH_FASTCALL | METH_KEYWORDS,
     "empty(shape, dtype='float64', order='C', device=None, stream=None)\n--\n\n"
     "A new, uninitialised GPUArray."},
    {"zeros", PY_METHOD(zeros), METH_FASTCALL | METH_KEYWORDS,
     "zeros(shape, dtype='float64', order='C', device=None, stream=None)\n--\n\nA GPUArray of "
     "zeros."},
    {"ones", PY_METHOD(ones), METH_FASTCALL | METH_KEYWORDS,
     "ones(shape, dtype='float64', order='C', device=None, stream=None)\n--\n\nA GPUArray of "
     "ones."},
    {"full", PY_METHOD(full), METH_FASTCALL | METH_KEYWORDS,
     "full(shape, fill_value, dtype=None, order='C', device=None, stream=None)\n--\n\n"
     "A GPUArray of one value, by default of the value's dtype."},
    {"arange", PY_METHOD(arange), METH_FASTCALL | METH_KEYWORDS,
     "arange(start, stop=None, step=1, dtype=None, *, device=None, stream=None)\n--\n\n"
     "numpy.arange, computed on the host and copied to a new GPUArray."},
    {NULL, NULL, 0, NULL},
};
