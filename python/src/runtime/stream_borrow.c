/* stream_borrow.c: stream= arguments: from stream objects of any library to a handle and a device. */
#include "base/owners.h"
#include "runtime/device.h"
#include "runtime/stream.h"

/* A stream of another library. */
struct external_stream {
    uint64_t handle;
    bool number;       /* a bare int: nothing to keep alive, and of any backend */
    long ordinal;      /* of its device, or -1 */
    gg_device *device; /* if the library names it in another way; else NULL */
};

static int is_cuda_like(const char *backend)
{
    return !strcmp(backend, "cuda") || !strcmp(backend, "hip");
}

/* (version, handle) of __cuda_stream__, which is a method or, with old producers, an attribute. 1 found, 0 absent,
 * -1 exception. */
static int stream_protocol_handle(struct py_state *state, PyObject *object, uint64_t *handle)
{
    PyObject *answer, *method;
    long long number;
    int found = py_optional_attribute(object, "__cuda_stream__", &method);
    if (found < 1)
        return found;
    answer = PyCallable_Check(method) ? PyObject_CallNoArgs(method) : Py_NewRef(method);
    Py_DECREF(method);
    if (!answer)
        return -1;
    PyObject *pair = PySequence_Tuple(answer), *version, *value;
    Py_DECREF(answer);
    if (!pair)
        return -1;
    found = -1;
    if (!PyArg_ParseTuple(pair, "OO:__cuda_stream__", &version, &value) ||
        py_integer(state, version, "the version of __cuda_stream__", 0, INT32_MAX, &number))
        goto drop_pair;
    if (number)
        py_invalid(state, "__cuda_stream__ of %.200R has version %lld, expected 0", object, number);
    else if (!py_uint64(state, value, "stream handle", handle))
        found = 1;
drop_pair:
    Py_DECREF(pair);
    return found;
}

/* An attribute that is an integer: 1 found, 0 absent or of another type, -1 exception. */
static int stream_integer_attribute(struct py_state *state, PyObject *object, const char *name,
                                    uint64_t *out)
{
    PyObject *value;
    int found = py_optional_attribute(object, name, &value);
    if (found < 1)
        return found;
    found = 0;
    if (PyIndex_Check(value))
        found = py_uint64(state, value, name, out) ? -1 : 1;
    Py_DECREF(value);
    return found;
}

/* Events and memory blocks have handles as well; only a stream has @p method. */
static int stream_has_method(PyObject *object, const char *method)
{
    PyObject *value;
    int found = py_optional_attribute(object, method, &value);
    if (found < 1)
        return found;
    found = PyCallable_Check(value);
    Py_DECREF(value);
    return found;
}

static int cupy_handle(struct py_state *state, PyObject *object, uint64_t *handle)
{
    int found = stream_has_method(object, "wait_event");
    return found < 1 ? found : stream_integer_attribute(state, object, "ptr", handle);
}

/* numba keeps a ctypes pointer, whose value is None for the default stream. */
static int numba_handle(struct py_state *state, PyObject *object, uint64_t *handle)
{
    PyObject *pointer, *value;
    int found = stream_has_method(object, "auto_synchronize");
    if (found == 1)
        found = py_optional_attribute(object, "handle", &pointer);
    if (found < 1)
        return found;
    found = py_optional_attribute(pointer, "value", &value);
    Py_DECREF(pointer);
    if (found < 1)
        return found;
    if (value == Py_None)
        *handle = 0;
    else if (py_uint64(state, value, "stream handle", handle))
        found = -1;
    Py_DECREF(value);
    return found;
}

static int external_handle(struct py_state *state, PyObject *object, uint64_t *handle)
{
    int found = stream_protocol_handle(state, object, handle);
    if (!found)
        found = stream_integer_attribute(state, object, "cuda_stream", handle); /* torch */
    if (!found)
        found = cupy_handle(state, object, handle);
    return found ? found : numba_handle(state, object, handle);
}

/* Its device's ordinal: CuPy has device_id, torch device.index, cuda.core device.device_id. */
static int external_ordinal(struct py_state *state, PyObject *object, long *ordinal)
{
    uint64_t value = 0;
    PyObject *device;
    int found = stream_integer_attribute(state, object, "device_id", &value);
    if (!found) {
        found = py_optional_attribute(object, "device", &device);
        if (found == 1) {
            found = stream_integer_attribute(state, device, "index", &value);
            if (!found)
                found = stream_integer_attribute(state, device, "device_id", &value);
            Py_DECREF(device);
        }
    }
    *ordinal = found == 1 && value <= INT32_MAX ? (long)value : -1;
    if (found < 0 && PyErr_ExceptionMatches(state->invalid_argument)) {
        PyErr_Clear(); /* CuPy returns -1 where it does not know */
        found = 0;
    }
    return found < 0 ? -1 : 0;
}

/* A stream of torch.xpu or a queue of dpctl: SYCL returns the command list (gpuglue/_sycl.py). */
static int sycl_stream_read(struct py_state *state, PyObject *object, struct external_stream *out)
{
    PyObject *queue, *module, *pair = NULL, *list, *device;
    int found = py_optional_attribute(object, "sycl_queue", &queue); /* torch */
    if (!found)
        found = py_optional_attribute(object, "sycl_device", &queue); /* dpctl */
    if (found < 1)
        return found;
    Py_DECREF(queue);
    found = -1;
    module = PyImport_ImportModule("gpuglue._sycl");
    if (module)
        pair = PyObject_CallMethod(module, "stream", "O", object);
    Py_XDECREF(module);
    if (pair && PyArg_ParseTuple(pair, "OO!", &list, state->device_type, &device) &&
        !py_uint64(state, list, "command list", &out->handle) &&
        !py_device_arg(state, device, &out->device))
        found = 1;
    Py_XDECREF(pair);
    return found;
}

static int external_stream_read(struct py_state *state, PyObject *object,
                                struct external_stream *out)
{
    *out = (struct external_stream){.ordinal = -1};
    PyObject *number = PyIndex_Check(object) ? PyNumber_Index(object) : NULL;
    if (number) {
        out->number = true;
        int failed = py_uint64(state, number, "stream handle", &out->handle);
        Py_DECREF(number);
        return failed;
    }
    PyErr_Clear(); /* a NumPy array with more than one element */
    int found = sycl_stream_read(state, object, out);
    if (found)
        return found < 0 ? -1 : 0;
    found = external_handle(state, object, &out->handle);
    if (!found)
        PyErr_Format(PyExc_TypeError,
                     "stream must be a Stream, an object with __cuda_stream__, a stream of torch, "
                     "CuPy, numba or dpctl, or a native handle, got %.200R",
                     object);
    return found < 1 ? -1 : external_ordinal(state, object, &out->ordinal);
}

/* The device of a stream that names an ordinal only: of the backend of *out (NULL: the current device) if that has
 * CUDA-like streams, else of cuda. One without an ordinal is assumed to be on *out. */
static int external_device(struct py_state *state, const struct external_stream *external_stream,
                           gg_device **out)
{
    const bool given = *out;
    const char *backend;
    if (external_stream->device) {
        *out = external_stream->device;
        return 0;
    }
    if (!given && py_device_current(state, out))
        return -1;
    backend = gg_device_backend(*out);
    if (external_stream->ordinal < 0 || (given && !is_cuda_like(backend)))
        return 0; /* the caller rejects the latter */
    return py_check(state, gg_device_get(is_cuda_like(backend) ? backend : "cuda",
                                         (int32_t)external_stream->ordinal, out));
}

int py_stream_borrow(struct py_state *state, PyObject *object, gg_device *device, gg_stream **out)
{
    struct external_stream external_stream;
    if (Py_IS_TYPE(object, state->stream_type))
        return py_stream_arg(state, object, device, out);
    if (external_stream_read(state, object, &external_stream) ||
        external_device(state, &external_stream, &device) || py_device_open(state, device))
        return -1;
    if (!external_stream.number && !external_stream.device &&
        !is_cuda_like(gg_device_backend(device)))
        return PY_FAIL(state->unsupported,
                       "%.200R is a stream of CUDA or HIP, expected a stream of %s:%d", object,
                       gg_device_backend(device), (int)gg_device_ordinal(device));
    if (external_stream.number)
        return py_check(state, gg_stream_borrow(device, external_stream.handle, NULL, NULL, out));
    Py_INCREF(object);
    gg_status status =
        gg_stream_borrow(device, external_stream.handle, py_owner_release, object, out);
    if (status)
        Py_DECREF(object);
    return py_check(state, status);
}

int py_stream_borrow_on(struct py_state *state, PyObject *object, gg_device *device, gg_stream **out)
{
    gg_device *found;
    if (py_stream_borrow(state, object, device, out))
        return -1;
    found = gg_stream_device(*out);
    if (!device || found == device)
        return 0;
    gg_stream_release(*out);
    return PY_FAIL(state->invalid_argument, "the stream belongs to %s:%d, expected %s:%d",
                   gg_device_backend(found), (int)gg_device_ordinal(found),
                   gg_device_backend(device), (int)gg_device_ordinal(device));
}

int py_stream_arg(struct py_state *state, PyObject *object, gg_device *device, gg_stream **out)
{
    if (!py_given(object)) {
        *out = NULL;
        return 0;
    }
    if (!Py_IS_TYPE(object, state->stream_type))
        return py_stream_borrow(state, object, device, out);
    *out = py_stream_handle(object);
    if (!*out)
        return -1;
    gg_stream_retain(*out);
    return 0;
}
