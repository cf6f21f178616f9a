/* new.c: GPUArray(), to_gpu(), arange(), empty() and similar functions. */
#include "base/arguments.h"
#include "numpy/bridge.h"
#include "copy/fill.h"
#include "copy/transfer.h"
#include "array/array.h"

/* ---- from data ---- */

/* Copy a contiguous ndarray to a new array; the host memory has been read on return. */
static PyObject *array_upload(struct py_state *state, PyObject *host,
                              const struct py_alloc_target *target)
{
    struct numpy_desc desc;
    PyObject *array;
    numpy_describe(host, &desc);
    if (numpy_check_dtype(desc.dtype))
        return NULL;
    array = py_array_empty_as(state, &desc, target);
    if (array && py_transfer_up(state, py_array_of(array), host, desc.data, target->stream))
        Py_CLEAR(array);
    return array;
}

PyObject *py_array_upload(struct py_state *state, PyObject *host,
                          const struct py_alloc_target *target)
{
    PyObject *array = host ? array_upload(state, host, target) : NULL;
    Py_XDECREF(host);
    return array;
}

static int raise_if_device_data(struct py_state *state, PyObject *data)
{
    if (numpy_is_exact(data) || (!PyObject_TypeCheck(data, state->array_type) &&
                                 !PyObject_TypeCheck(data, state->buffer_type)))
        return 0;
    return PY_FAIL(PyExc_TypeError,
                   "expected host data, got a %R: use copy(destination, source) or GPUArray.copy()",
                   Py_TYPE(data));
}

static PyObject *array_from_data(struct py_state *state, PyObject *data, PyObject *dtype_object,
                                 char order, const struct py_alloc_target *target)
{
    PyObject *dtype = NULL, *host;
    if (raise_if_device_data(state, data) || numpy_load() ||
        (py_given(dtype_object) && numpy_dtype_for_cast(dtype_object, &dtype)))
        return NULL;
    host = numpy_asarray(data, dtype, order);
    Py_XDECREF(dtype);
    return py_array_upload(state, host, target);
}

static PY_FASTCALL(to_gpu)
{
    static const char *const names[] = {"a", "device", "stream"};
    struct py_state *state = PyModule_GetState(self);
    struct py_alloc_target target;
    PyObject *values[3], *array;
    if (py_parse("to_gpu", names, 3, 3, 1, args, nargs, kwnames, values) ||
        py_alloc_target_open(state, values[1], values[2], &target))
        return NULL;
    array = numpy_is_contiguous(values[0]) ? array_upload(state, values[0], &target)
                                           : array_from_data(state, values[0], NULL, 'K', &target);
    py_alloc_target_close(&target);
    return array;
}

static PY_FASTCALL(arange)
{
    static const char *const names[] = {"start", "stop", "step", "dtype", "device", "stream"};
    struct py_state *state = PyModule_GetState(self);
    struct py_alloc_target target;
    PyObject *values[6], *dtype = NULL, *array;
    if (py_parse("arange", names, 6, 4, 1, args, nargs, kwnames, values) || numpy_load() ||
        (py_given(values[3]) && numpy_dtype_for_cast(values[3], &dtype)))
        return NULL;
    if (py_alloc_target_open(state, values[4], values[5], &target)) {
        Py_XDECREF(dtype);
        return NULL;
    }
    array = py_array_upload(state, numpy_arange(values[0], values[1], values[2], dtype), &target);
    py_alloc_target_close(&target);
    Py_XDECREF(dtype);
    return array;
}

/* ---- from a shape ---- */

static PyObject *array_zeros(struct py_state *state, const struct py_layout *layout,
                             const struct py_alloc_target *target)
{
    PyObject *array = py_array_empty(state, layout, target);
    if (array && py_fill_zero(state, py_array_of(array), target->stream))
        Py_CLEAR(array);
    return array;
}

static PyObject *array_full(struct py_state *state, const struct py_layout *layout,
                            const struct py_alloc_target *target, PyObject *value)
{
    PyObject *element = numpy_0d(layout->dtype, value), *array;
    if (!element)
        return NULL;
    array = py_array_empty(state, layout, target);
    if (array && py_fill_element(state, py_array_of(array), element, target->stream))
        Py_CLEAR(array);
    Py_DECREF(element);
    return array;
}

PyObject *py_array_create(struct py_state *state, const struct py_layout *layout,
                          const struct py_alloc_target *target, enum py_array_content content,
                          PyObject *value)
{
    PyObject *one, *array;
    if (content == PY_UNINITIALISED)
        return py_array_empty(state, layout, target);
    if (content == PY_ZEROS)
        return array_zeros(state, layout, target);
    one = content == PY_ONES ? PyLong_FromLong(1) : Py_NewRef(value);
    array = one ? array_full(state, layout, target, one) : NULL;
    Py_XDECREF(one);
    return array;
}

/* values: shape, dtype, order, device, stream */
static PyObject *array_from_shape(struct py_state *state, PyObject *const *values,
                                  enum py_array_content content, PyObject *value)
{
    struct py_layout layout;
    struct py_alloc_target target;
    PyObject *array = NULL;
    if (py_layout_open(state, &layout, values[0], values[1], values[2]))
        return NULL;
    if (!py_alloc_target_open(state, values[3], values[4], &target)) {
        array = py_array_create(state, &layout, &target, content, value);
        py_alloc_target_close(&target);
    }
    py_layout_close(&layout);
    return array;
}

static PyObject *shape_function(PyObject *module, const char *name, enum py_array_content content,
                                PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"shape", "dtype", "order", "device", "stream"};
    PyObject *values[5];
    if (py_parse(name, names, 5, 5, 1, args, nargs, kwnames, values))
        return NULL;
    return array_from_shape(PyModule_GetState(module), values, content, NULL);
}

static PY_FASTCALL(empty)
{
    return shape_function(self, "empty", PY_UNINITIALISED, args, nargs, kwnames);
}

static PY_FASTCALL(zeros)
{
    return shape_function(self, "zeros", PY_ZEROS, args, nargs, kwnames);
}

static PY_FASTCALL(ones)
{
    return shape_function(self, "ones", PY_ONES, args, nargs, kwnames);
}

/* Without dtype=, full() takes the dtype of its value. */
static PyObject *full_dtype(PyObject *value)
{
    PyObject *element = numpy_load() ? NULL : numpy_0d(NULL, value), *dtype;
    struct numpy_desc desc;
    if (!element)
        return NULL;
    numpy_describe(element, &desc);
    dtype = Py_NewRef(desc.dtype);
    Py_DECREF(element);
    return dtype;
}

static PY_FASTCALL(full)
{
    static const char *const names[] = {"shape", "fill_value", "dtype",
                                        "order", "device",     "stream"};
    struct py_state *state = PyModule_GetState(self);
    PyObject *values[6], *value, *dtype, *array;
    if (py_parse("full", names, 6, 6, 2, args, nargs, kwnames, values))
        return NULL;
    value = values[1];
    dtype = py_given(values[2]) ? Py_NewRef(values[2]) : full_dtype(value);
    if (!dtype)
        return NULL;
    values[1] = values[0]; /* the order of array_from_shape */
    values[2] = dtype;
    array = array_from_shape(state, values + 1, PY_VALUE, value);
    Py_DECREF(dtype);
    return array;
}

/* ---- GPUArray(shape | data, ...) ---- */

/* Ints, tuples and lists are a shape. Arrays have __index__ too, and NumPy's integers are buffers. */
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

static PyObject *new_from_host(struct py_state *state, PyObject *const *values)
{
    const char order = py_order(values[2], 'K');
    struct py_alloc_target target;
    PyObject *array;
    if (!order || py_alloc_target_open(state, values[3], values[4], &target))
        return NULL;
    array = array_from_data(state, values[0], values[1], order, &target);
    py_alloc_target_close(&target);
    return array;
}

static int new_check_data(PyObject *object)
{
    if (PyObject_CheckBuffer(object) || PyObject_HasAttrString(object, "__array_interface__"))
        return 0;
    return PY_FAIL(
        PyExc_TypeError,
        "GPUArray takes a shape (an int, or a tuple or list of ints) or data with the buffer "
        "protocol, got %R",
        Py_TYPE(object));
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
        return array_from_shape(state, values, PY_UNINITIALISED, NULL);
    if (raise_if_device_data(state, values[0]) || new_check_data(values[0]))
        return NULL;
    return new_from_host(state, values);
}

PyMethodDef py_array_functions[] = {
    PY_FASTCALL_DEF("to_gpu", to_gpu, py_doc_to_gpu),
    PY_FASTCALL_DEF("empty", empty, py_doc_empty),
    PY_FASTCALL_DEF("zeros", zeros, py_doc_zeros),
    PY_FASTCALL_DEF("ones", ones, py_doc_ones),
    PY_FASTCALL_DEF("full", full, py_doc_full),
    PY_FASTCALL_DEF("arange", arange, py_doc_arange),
    {NULL, NULL, 0, NULL},
};
