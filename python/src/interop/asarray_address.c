/* asarray_address.c: arrays at an address, given as a number or by an object's attribute. */
#include "numpy/bridge.h"
#include "runtime/device.h"
#include "interop/asarray.h"
#include "interop/external_array.h"

int py_is_address(PyObject *object, const struct py_asarray_request *request)
{
    unsigned char value[8];
    size_t size;
    char kind = 0;
    if (PyLong_Check(object))
        return 1;
    if (!request->shape || numpy_is_array(object))
        return 0;
    return numpy_scalar(object, value, sizeof value, &size, &kind) < 0 ? -1
                                                                       : kind == 'i' || kind == 'u';
}

PyObject *py_from_address(struct py_state *state, PyObject *number,
                          const struct py_asarray_request *request, PyObject *owner)
{
    struct py_external external = {.owner = owner};
    gg_device *device = request->device;
    enum gg_memory_kind kind;
    PyObject *array = NULL;
    uint64_t address;
    if (!request->shape || !request->dtype)
        return PyErr_Format(
            PyExc_TypeError,
            "an address needs shape= and dtype=, and owner= for the object that owns the memory");
    if (py_uint64(state, number, "an address", &address) ||
        numpy_dtype_for_cast(request->dtype, &external.dtype))
        return NULL;
    external.first = (char *)(uintptr_t)address;
    if (numpy_is_unsized(external.dtype))
        PyErr_Format(PyExc_ValueError, "an array at an address needs a dtype with a length, got %S",
                     external.dtype);
    else if (!py_external_layout(&external, request->shape, request->strides)) {
        if (!external.first && !external.empty)
            py_invalid(state, "an array at address 0 must have no elements");
        else if ((device || !py_device_current(state, &device)) && !py_device_open(state, device) &&
                 !py_external_locate(state, &external, request->device != NULL, &device, &kind))
            array = py_external_wrap(state, &external, device, kind);
    }
    Py_DECREF(external.dtype);
    return array;
}

/* The value of object.name, or of object.name(): 1, 0 without it, -1. */
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

int py_from_pointer_object(struct py_state *state, PyObject *object,
                           const struct py_asarray_request *request, PyObject **out)
{
    static const char *const names[] = {"ptr", "gpudata", "data_ptr"};
    struct py_asarray_request full = *request;
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
               : py_from_address(state, address, &full, request->owner ? request->owner : object);
    Py_XDECREF(strides);
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    Py_DECREF(address);
    return *out ? 1 : -1;
}
