/* convert.c: astype() and to_device(): the same elements as another dtype, or on another device. */
#include "numpy/bridge.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "array/array.h"

#include <string.h>

#define CONVERT_FROM ((size_t)1 << 20) /* bytes */

/* An uninitialised array for the result of astype(): its axes in memory as they are ('K'), or in one order. */
static PyObject *astype_empty(struct py_state *state, struct py_array *array, PyObject *dtype,
                              char order, bool fortran)
{
    const struct py_alloc_target target = py_array_target(array);
    struct py_layout layout;
    PyObject *result;
    if (order == 'K')
        return py_array_empty_like(state, array, dtype, &target);
    py_layout_set(&layout, dtype, array->ndim, array->shape, fortran);
    result = py_array_empty(state, &layout, &target);
    py_layout_close(&layout);
    return result;
}

/* Through NumPy on the host. The cast determines how long strings become. */
static PyObject *astype_on_host(struct py_state *state, struct py_array *array, PyObject *dtype,
                                char order, bool fortran)
{
    PyObject *host = py_array_to_host(state, array, NULL), *cast, *result = NULL;
    struct numpy_desc desc;
    cast = host ? numpy_asarray(host, dtype, 'K') : NULL;
    Py_XDECREF(host);
    if (!cast)
        return NULL;
    numpy_describe(cast, &desc);
    result = astype_empty(state, array, desc.dtype, order, fortran);
    if (result && py_array_copy_from(state, py_array_of(result), cast, NULL))
        Py_CLEAR(result);
    Py_DECREF(cast);
    return result;
}

/* By a kernel (gpuglue/_convert.py), which is worth its launch and the first one's compilation for large arrays. The host
 * device's memory is NumPy's already. Py_None: not possible. */
static PyObject *astype_on_device(struct py_array *array, PyObject *dtype, char order)
{
    PyObject *module, *result;
    if (array->nbytes < CONVERT_FROM ||
        !strcmp(gg_device_backend(gg_memory_device(array->memory)), "host"))
        return Py_NewRef(Py_None);
    module = PyImport_ImportModule("gpuglue._convert");
    result = module ? PyObject_CallMethod(module, "astype", "OOC", array, dtype, order) : NULL;
    Py_XDECREF(module);
    return result;
}

static PyObject *astype(struct py_state *state, struct py_array *array, PyObject *dtype, char order,
                        bool always)
{
    const bool fortran = order == 'F' || (order == 'A' && array->f && !array->c);
    const bool in_order = order == 'K' || (fortran ? array->f : array->c);
    PyObject *result;
    if (!numpy_needs_cast(array->dtype, dtype)) {
        if (!always && in_order)
            return Py_NewRef((PyObject *)array);
        result = astype_empty(state, array, array->dtype, order, fortran);
        if (result && py_array_copy_from(state, py_array_of(result), (PyObject *)array, NULL))
            Py_CLEAR(result);
        return result;
    }
    result = astype_on_device(array, dtype, order);
    if (result != Py_None)
        return result;
    Py_DECREF(result);
    return astype_on_host(state, array, dtype, order, fortran);
}

PY_FASTCALL(py_array_astype)
{
    static const char *const names[] = {"dtype", "order", "copy"};
    PyObject *values[3], *dtype, *result;
    char order;
    int always;
    if (py_parse("astype", names, 3, 3, 1, args, nargs, kwnames, values))
        return NULL;
    order = py_order(values[1], 'K');
    always = values[2] ? PyObject_IsTrue(values[2]) : 1;
    if (!order || always < 0 || numpy_dtype_for_cast(values[0], &dtype))
        return NULL;
    result = astype(py_state_of(self), py_array_of(self), dtype, order, always);
    Py_DECREF(dtype);
    return result;
}

static bool is_cpu(PyObject *device)
{
    return PyUnicode_Check(device) && !PyUnicode_CompareWithASCIIString(device, "cpu");
}

static PyObject *array_to_cpu(struct py_state *state, struct py_array *array,
                              PyObject *stream_object)
{
    gg_stream *stream = NULL;
    PyObject *host;
    if (py_stream_arg(state, stream_object, gg_memory_device(array->memory), &stream))
        return NULL;
    host = py_array_to_host(state, array, stream);
    gg_stream_release(stream);
    return host;
}

PyObject *py_array_copy_to_device(struct py_state *state, struct py_array *array, gg_device *device,
                                  PyObject *stream_object)
{
    const struct py_alloc_target target = {.device = device};
    gg_stream *stream = NULL;
    PyObject *copy;
    int failed;
    if (py_stream_arg(state, stream_object, gg_memory_device(array->memory), &stream))
        return NULL;
    copy = py_array_empty_like(state, array, array->dtype, &target);
    failed = copy ? py_array_copy_from(state, py_array_of(copy), (PyObject *)array, stream) : 0;
    gg_stream_release(stream);
    if (failed)
        Py_CLEAR(copy);
    return copy;
}

PY_FASTCALL(py_array_to_device)
{
    static const char *const names[] = {"device", "stream"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    gg_device *device;
    PyObject *values[2];
    if (py_parse("to_device", names, 2, 1, 1, args, nargs, kwnames, values))
        return NULL;
    if (is_cpu(values[0]))
        return array_to_cpu(state, array, values[1]);
    if (py_device_arg(state, values[0], &device))
        return NULL;
    if (device == gg_memory_device(array->memory))
        return Py_NewRef(self);
    return py_array_copy_to_device(state, array, device, values[1]);
}
