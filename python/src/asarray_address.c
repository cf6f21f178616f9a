/* asarray_address.c: arrays at an address, which is given as it is or by an object. */
#include "array.h"
#include "asarray.h"
#include "memory.h"
#include "numpy_bridge.h"

int py_is_address(PyObject *object, const struct py_wish *wish)
{
    unsigned char value[8];
    size_t size;
    char kind = 0;
    if (PyLong_Check(object))
        return 1;
    if (!wish->shape || numpy_is_array(object))
        return 0;
    return numpy_scalar(object, value, sizeof value, &size, &kind) < 0 ? -1
                                                                       : kind == 'i' || kind == 'u';
}

PyObject *py_from_address(struct py_state *state, PyObject *number, const struct py_wish *wish,
                          PyObject *owner)
{
    struct py_foreign foreign = {.owner = owner};
    gg_device *device = wish->device;
    enum gg_memory_kind kind;
    PyObject *array = NULL;
    uint64_t address;
    if (!wish->shape || !wish->dtype)
        return PyErr_Format(
            PyExc_TypeError,
            "an address needs shape= and dtype=, and owner= for what keeps its memory");
    if (py_uint64(state, number, "an address", &address) ||
        numpy_dtype_to_cast(wish->dtype, &foreign.dtype))
        return NULL;
    foreign.first = (char *)(uintptr_t)address;
    if (numpy_lacks_length(foreign.dtype))
        PyErr_Format(PyExc_ValueError, "at an address, dtype %S needs a length", foreign.dtype);
    else if (!py_foreign_layout(&foreign, wish->shape, wish->strides)) {
        if (!foreign.first && !foreign.empty)
            py_invalid(state, "an address of 0 has no elements");
        else if ((device || !py_device_current(state, &device)) && !py_device_open(state, device) &&
                 !py_foreign_locate(state, &foreign, wish->device != NULL, &device, &kind))
            array = py_foreign_wrap(state, &foreign, device, kind);
    }
    Py_DECREF(foreign.dtype);
    return array;
}

/* What object.name, or object.name() is; 1, 0 without it, -1. */
static int attribute_or_call(PyObject *object, const char *name, PyObject **out)
{
    PyObject *value;
    int found = py_optional_attribute(object, name, out);
    if (found < 1 || PyIndex_Check(*out) || !PyCallable_Check(*out))
        return found;
    value = PyObject_CallNoArgs(*out);
    Py_DECREF(*out);
    *out = value;
    return value ? 1 : -1;
}

int py_from_pointer_object(struct py_state *state, PyObject *object, const struct py_wish *wish,
                           PyObject **out)
{
    static const char *const names[] = {"ptr", "gpudata", "data_ptr"};
    struct py_wish full = *wish;
    PyObject *address = NULL, *shape = NULL, *dtype = NULL, *strides = NULL;
    int found = 0;
    for (size_t i = 0; !found && i < sizeof names / sizeof names[0]; i++)
        found = attribute_or_call(object, names[i], &address);
    if (found < 1)
        return found;
    if (!full.shape && py_optional_attribute(object, "shape", &shape) > 0)
        full.shape = shape;
    if (!full.dtype && !PyErr_Occurred() && py_optional_attribute(object, "dtype", &dtype) > 0)
        full.dtype = dtype;
    if (!full.strides && shape && !PyErr_Occurred() &&
        py_optional_attribute(object, "strides", &strides) > 0)
        full.strides = strides;
    *out = PyErr_Occurred()
               ? NULL
               : py_from_address(state, address, &full, wish->owner ? wish->owner : object);
    Py_XDECREF(strides);
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    Py_DECREF(address);
    return *out ? 1 : -1;
}
