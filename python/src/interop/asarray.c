/* asarray.c: asarray() and from_dlpack(): arrays of other libraries, without a copy where possible. */
#include "interop/asarray.h"
#include "base/owners.h"
#include "numpy/bridge.h"
#include "runtime/device.h"
#include "runtime/registry.h"
#include "runtime/stream.h"
#include "memory/buffer.h"
#include "interop/cuda_interface.h"
#include "interop/sycl_interface.h"
#include "interop/dlpack.h"
#include "interop/external_array.h"

/* ---- memory of the host ---- */

static PyObject *host_alias(struct py_state *state, PyObject *ndarray, gg_device *device)
{
    struct numpy_desc desc;
    struct py_external external = {.owner = ndarray};
    numpy_describe(ndarray, &desc);
    if (numpy_check_dtype(desc.dtype))
        return NULL;
    external.first = desc.data;
    external.dtype = desc.dtype;
    external.ndim = desc.ndim;
    external.readonly = !desc.writeable;
    external.empty = !desc.nbytes;
    for (int i = 0; i < desc.ndim; i++) { /* of a 0-d array both are NULL */
        external.shape[i] = desc.shape[i];
        external.strides[i] = desc.strides[i];
    }
    return py_external_wrap(state, &external, device, GG_MEMORY_PINNED);
}

static PyObject *raise_copy_needed(const char *what)
{
    return PyErr_Format(PyExc_ValueError, "%s by a copy, which copy=False forbids", what);
}

/* Cast; strings become as long as the object's own. Takes over @p host. */
static PyObject *host_cast(PyObject *object, PyObject *host, PyObject *dtype)
{
    const bool is_list = PyList_Check(object) || PyTuple_Check(object);
    struct numpy_desc desc;
    PyObject *wanted, *result;
    if (numpy_dtype_for_cast(dtype, &wanted)) {
        Py_DECREF(host);
        return NULL;
    }
    numpy_describe(host, &desc);
    result = numpy_needs_cast(desc.dtype, wanted)
                 ? numpy_asarray(is_list ? object : host, wanted, 'K')
                 : Py_NewRef(host);
    Py_DECREF(wanted);
    Py_DECREF(host);
    return result;
}

/* An ndarray of the object's elements, over its own memory where that needs no copy. */
static PyObject *host_array(PyObject *object, const struct py_asarray_request *request)
{
    PyObject *host = numpy_asanyarray(object), *as_it_was = host;
    if (!host)
        return NULL;
    Py_INCREF(as_it_was);
    if (request->dtype)
        host = host_cast(object, host, request->dtype);
    if (host && request->copy == 0 &&
        (host != as_it_was || (host != object && numpy_owns_data(host)))) {
        Py_CLEAR(host);
        raise_copy_needed(request->dtype ? "this becomes an array of that dtype"
                                         : "this becomes an array");
    }
    Py_DECREF(as_it_was);
    return host;
}

/* The elements of host data on the requested device: on a host device, in their own memory. */
static PyObject *array_from_host(struct py_state *state, PyObject *object,
                                 const struct py_asarray_request *request)
{
    struct py_alloc_target target = {.device = request->alias ? request->alias : request->device};
    PyObject *host, *array;
    if (!target.device && py_device_arg(state, NULL, &target.device))
        return NULL;
    if (py_device_open(state, target.device))
        return NULL;
    host = host_array(object, request);
    if (!host)
        return NULL;
    if (py_is_host_device(target.device) && request->copy <= 0) {
        array = host_alias(state, host, target.device);
        Py_DECREF(host);
        return array;
    }
    if (request->copy == 0) {
        Py_DECREF(host);
        return raise_copy_needed("host memory goes to a device");
    }
    return py_array_upload(state, numpy_ensure_contiguous(host), &target);
}

/* ---- all together ---- */

/* The dtype comes first: to import NumPy takes long, and Python code that runs meanwhile may close the Buffer. */
static PyObject *array_from_buffer(struct py_state *state, PyObject *object)
{
    const Py_ssize_t stride = 1;
    PyObject *dtype = numpy_builtin_dtype('u', 1);
    struct py_array *array = NULL;
    gg_memory *memory = dtype ? py_buffer_memory(object) : NULL;
    Py_ssize_t length;
    if (memory) {
        gg_memory_retain(memory); /* the collector may run in py_array_wrap */
        py_buffer_touch(object);
        length = (Py_ssize_t)gg_memory_size(memory);
        array = py_array_wrap(state->array_type, memory, 0, dtype, 1, &length, &stride);
        gg_memory_release(memory);
    }
    Py_XDECREF(dtype);
    if (array)
        array->base = Py_NewRef(object);
    return (PyObject *)array;
}

/* DLPack, by table or by method: 1 with an array, 0 where the object has neither, -1. */
static int array_from_dlpack(struct py_state *state, PyObject *object, PyObject **out)
{
    PyObject *method;
    int found = py_from_exchange(state, object, out);
    if (found)
        return found;
    found = py_optional_attribute(object, "__dlpack_device__", &method);
    if (found < 1)
        return found;
    Py_DECREF(method);
    *out = py_from_dlpack(state, object, NULL);
    return *out ? 1 : -1;
}

static int raise_unknown_object(PyObject *object)
{
    return PY_FAIL(
        PyExc_TypeError,
        "asarray takes a GPUArray, a Buffer, an array of any library with DLPack or "
        "__cuda_array_interface__, an object with ptr, gpudata or data_ptr() and shape and "
        "dtype, host data, or an address with shape= and dtype=, got %R",
        Py_TYPE(object));
}

static int found_array(PyObject *array)
{
    return array ? 1 : -1;
}

/* An object that describes its own elements: 1 with an array, 0 for any other object, -1. */
static int array_from_protocol(struct py_state *state, PyObject *object,
                               const struct py_asarray_request *request, PyObject **out)
{
    int found = numpy_is_array(object);
    if (Py_IS_TYPE(object, state->array_type))
        return found_array(*out = Py_NewRef(object));
    if (Py_IS_TYPE(object, state->buffer_type))
        return found_array(*out = array_from_buffer(state, object));
    if (found)
        return found < 0 ? -1 : found_array(*out = array_from_host(state, object, request));
    found = array_from_dlpack(state, object, out);
    if (!found)
        found = py_from_cuda_interface(state, object, NULL, out);
    if (!found)
        found = py_from_sycl_interface(object, out);
    if (found)
        return found;
    if (PyObject_CheckBuffer(object) || PyList_Check(object) || PyTuple_Check(object) ||
        PyFloat_Check(object) || PyObject_HasAttrString(object, "__array_interface__"))
        return found_array(*out = array_from_host(state, object, request));
    return 0;
}

static PyObject *array_from_any(struct py_state *state, PyObject *object,
                                const struct py_asarray_request *request)
{
    PyObject *array = NULL;
    int found = py_is_address(object, request);
    if (found)
        return found < 0 ? NULL : py_from_address(state, object, request, request->owner);
    found = array_from_protocol(state, object, request, &array);
    if (found > 0 && (request->shape || request->strides || request->owner)) {
        Py_CLEAR(array);
        PyErr_Format(
            PyExc_TypeError, "shape=, strides= and owner= are valid only with an address, got %R: reshape() the array",
            Py_TYPE(object));
    }
    if (!found)
        found = py_from_pointer_object(state, object, request, &array);
    if (!found && PyObject_HasAttrString(object, "__array__"))
        return array_from_host(state, object, request);
    if (!found)
        raise_unknown_object(object);
    return array;
}

/* The array on the requested device, and a copy if requested. Takes over @p array. */
static PyObject *array_place(struct py_state *state, PyObject *array,
                             const struct py_asarray_request *request, bool fresh)
{
    struct py_alloc_target target = {0};
    PyObject *result;
    if (!array)
        return NULL;
    target.device = gg_memory_device(py_array_of(array)->memory);
    if (!request->device || request->device == target.device) {
        if (request->copy <= 0 || fresh)
            return array;
        result = py_array_copy_at(state, py_array_of(array), &target);
        Py_DECREF(array);
        return result;
    }
    if (request->copy == 0) {
        Py_DECREF(array);
        return raise_copy_needed("another device gets the array");
    }
    target.device = request->device;
    result = py_host_accessible(py_array_of(array)->memory)
                 ? py_array_upload(state, py_array_to_host(state, py_array_of(array), NULL), &target)
                 : py_array_copy_to_device(state, py_array_of(array), target.device, NULL);
    Py_DECREF(array);
    return result;
}

/* CPU tensors of other libraries are host data, which goes to the current device. */
static int asarray_default_device(struct py_state *state, PyObject *object, PyObject *array,
                                  struct py_asarray_request *request)
{
    if (!array || request->device || Py_IS_TYPE(object, state->array_type) ||
        Py_IS_TYPE(object, state->buffer_type) || py_is_address(object, request) ||
        !py_is_host_device(gg_memory_device(py_array_of(array)->memory)))
        return 0;
    return py_device_arg(state, NULL, &request->device);
}

/* Takes over @p array. */
static PyObject *array_convert(PyObject *array, const struct py_asarray_request *request)
{
    PyObject *result = NULL, *dtype;
    if (!array || !request->dtype)
        return array;
    if (!numpy_dtype_for_cast(request->dtype, &dtype)) {
        if (!numpy_needs_cast(py_array_of(array)->dtype, dtype))
            result = Py_NewRef(array);
        else if (request->copy == 0)
            raise_copy_needed("an array gets another dtype");
        else
            result = PyObject_CallMethod(array, "astype", "Os", dtype, "K");
        Py_DECREF(dtype);
    }
    Py_DECREF(array);
    return result;
}

static int request_host_alias(struct py_state *state, struct py_asarray_request *request)
{
    return py_registry_prepare(state) ? -1
                                      : py_check(state, gg_device_get("host", 0, &request->alias));
}

static PyObject *raise_if_host(struct py_state *state, PyObject *object, PyObject *array)
{
    gg_device *device;
    const bool native =
        Py_IS_TYPE(object, state->array_type) || Py_IS_TYPE(object, state->buffer_type);
    if (!array || native || !py_is_host_device(gg_memory_device(py_array_of(array)->memory)))
        return array;
    Py_DECREF(array);
    if (py_device_current(state, &device))
        return NULL;
    return PyErr_Format(PyExc_TypeError,
                        "%R is host memory: pass it to gpuglue.asarray(), which copies it to %s:%d "
                        "unless that is a host device",
                        Py_TYPE(object), gg_device_backend(device), (int)gg_device_ordinal(device));
}

/* Objects that asarray() copies: a write to the array would be lost. */
static bool is_host_value(PyObject *object)
{
    return PyLong_Check(object) || PyFloat_Check(object) || PyList_Check(object) ||
           PyTuple_Check(object) || numpy_is_scalar(object);
}

PyObject *py_wrap_array(struct py_state *state, PyObject *object, bool host)
{
    struct py_asarray_request request = {.copy = 0};
    const int is_array = numpy_is_array(object);
    PyObject *array;
    if (is_array < 0 || (!is_array && is_host_value(object)))
        return is_array < 0
                   ? NULL
                   : PyErr_Format(
                         PyExc_TypeError,
                         "expected a GPUArray, a Buffer or an array of any library, got %R",
                         Py_TYPE(object));
    if (request_host_alias(state, &request))
        return NULL;
    array = array_from_any(state, object, &request);
    return host ? array : raise_if_host(state, object, array);
}

static int read_copy_arg(PyObject *object, int *out)
{
    *out = !py_given(object) ? -1 : PyObject_IsTrue(object);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *none_to_null(PyObject *object)
{
    return object == Py_None ? NULL : object;
}

static PY_FASTCALL(asarray)
{
    static const char *const names[] = {"obj",   "dtype",   "device", "copy",
                                        "shape", "strides", "owner"};
    struct py_state *state = PyModule_GetState(self);
    struct py_asarray_request request = {0};
    PyObject *values[7], *array;
    int address;
    if (py_parse("asarray", names, 7, 2, 1, args, nargs, kwnames, values) ||
        read_copy_arg(values[3], &request.copy) ||
        (py_given(values[2]) && py_device_arg(state, values[2], &request.device)))
        return NULL;
    request.dtype = none_to_null(values[1]);
    request.shape = none_to_null(values[4]);
    request.strides = none_to_null(values[5]);
    request.owner = none_to_null(values[6]);
    address = py_is_address(values[0], &request);
    py_owners_drain();
    array = array_from_any(state, values[0], &request);
    if (asarray_default_device(state, values[0], array, &request))
        Py_CLEAR(array);
    array = array_place(state, array, &request, numpy_is_array(values[0]) == 1);
    return address ? array : array_convert(array, &request);
}

int py_external_device_array(struct py_state *state, PyObject *object, PyObject **out)
{
    PyObject *probe;
    int found = py_from_cuda_interface(state, object, NULL, out);
    if (found)
        return found;
    found = py_optional_attribute(object, "__dlpack_device__", &probe);
    if (found < 1)
        return found;
    Py_DECREF(probe);
    *out = py_from_dlpack(state, object, NULL);
    if (!*out)
        return -1;
    if (!py_is_host_device(gg_memory_device(py_array_of(*out)->memory)))
        return 1;
    probe = PyObject_CallMethod(*out, "__array__", NULL); /* host data, which NumPy casts */
    Py_DECREF(*out);
    *out = probe;
    return probe ? 2 : -1;
}

static PY_FASTCALL(from_dlpack)
{
    static const char *const names[] = {"x", "device", "copy", "stream"};
    struct py_state *state = PyModule_GetState(self);
    struct py_asarray_request request = {0};
    gg_stream *stream = NULL;
    PyObject *values[4], *array;
    if (py_parse("from_dlpack", names, 4, 1, 1, args, nargs, kwnames, values) ||
        read_copy_arg(values[2], &request.copy) ||
        (py_given(values[1]) && py_device_arg(state, values[1], &request.device)))
        return NULL;
    if (py_given(values[3]) && py_stream_borrow(state, values[3], NULL, &stream))
        return NULL;
    py_owners_drain();
    array = array_place(state, py_from_dlpack(state, values[0], stream), &request, false);
    gg_stream_release(stream);
    return array;
}

PyMethodDef py_asarray_functions[] = {
    PY_FASTCALL_DEF("asarray", asarray, py_doc_asarray),
    PY_FASTCALL_DEF("from_dlpack", from_dlpack, py_doc_from_dlpack),
    {"_is_pending", py_array_is_pending, METH_O,
     "_is_pending(array, /)\n--\n\nWhether work that gpuglue knows of uses it now."},
    {"_wait", py_array_wait, METH_O, "_wait(array, /)\n--\n\nWait for that work."},
    {NULL, NULL, 0, NULL},
};
