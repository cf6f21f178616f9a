/* dlpack_export.c: GPUArray.__dlpack__. */
#include "memory/buffer.h"
#include "interop/dlpack.h"

/* ---- the consumer's stream ---- */

enum waiting { ON_DEVICE, ON_HOST, NOT_AT_ALL };

/* stream=: what waits for pending work, and for ON_DEVICE the stream's native handle. */
struct consumer {
    enum waiting waiting;
    uint64_t handle;
};

static int consumer_raise(PyObject *object, const struct py_backend_traits *traits,
                          const char *expected)
{
    return PY_FAIL(PyExc_ValueError, "stream=%R is not valid for %s memory: expected %s", object,
                   traits->backend, expected);
}

/* -1, 1, 2 and handles on cuda; -1, 0 and handles on hip, where 1 and 2 are not valid. */
static int consumer_read_handle(PyObject *object, const struct py_backend_traits *traits,
                                long long number, struct consumer *out)
{
    const bool null = number == 0, small = number == 1 || number == 2;
    if (number < 0 || (traits->null_is_one ? null : small))
        return consumer_raise(object, traits,
                              traits->null_is_one
                                  ? "None, -1, 1 (legacy), 2 (per-thread) or a stream's handle"
                                  : "None, -1, 0 (the default stream) or a stream's handle");
    out->waiting = ON_DEVICE;
    out->handle = (uint64_t)number;
    return 0;
}

/* A consumer that names no stream may read host-accessible memory at once, whatever its device type. */
static int consumer_read_stream(PyObject *object, const struct py_backend_traits *traits,
                                DLDeviceType type, struct consumer *out)
{
    const bool on_host = !traits->has_streams || py_dl_is_host_type(type) || type == kDLCUDAManaged;
    long long number;
    *out = (struct consumer){.waiting = on_host ? ON_HOST : ON_DEVICE};
    if (!py_given(object))
        return 0;
    number = PyLong_AsLongLong(object);
    if (number == -1 && PyErr_Occurred()) {
        if (traits->has_streams || !PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear(); /* a queue object: the host waits instead */
        return 0;
    }
    if (number == -1) {
        out->waiting = NOT_AT_ALL;
        return 0;
    }
    if (!traits->has_streams)
        return consumer_raise(object, traits, "None or -1");
    return consumer_read_handle(object, traits, number, out);
}

static gg_status consumer_wait_on_device(gg_memory *memory, uint64_t handle)
{
    gg_stream *stream = NULL;
    gg_status status = gg_stream_borrow(gg_memory_device(memory), handle, NULL, NULL, &stream);
    if (!status)
        status = gg_stream_wait_memory(stream, memory);
    gg_stream_release(stream);
    return status;
}

/* A reference to the stream on which the consumer uses the memory until it is released. NULL: unknown. Another library's
 * stream may be destroyed before: gg_memory_share uses only the handles of gpuglue's. */
static gg_stream *consumer_stream(gg_memory *memory, const struct consumer *consumer)
{
    gg_device *device = gg_memory_device(memory);
    gg_stream *stream = NULL;
    if (consumer->waiting != ON_DEVICE)
        return NULL;
    if (consumer->handle > 1)
        gg_stream_borrow(device, consumer->handle, NULL, NULL, &stream);
    else if (!gg_device_default_stream(device, &stream))
        gg_stream_retain(stream);
    return stream;
}

static PyObject *consumer_capsule(struct py_array *array, DLDevice device,
                                  const struct consumer *consumer, bool versioned, bool copied)
{
    gg_stream *stream = consumer_stream(array->memory, consumer);
    PyObject *capsule = py_dl_capsule(array, device, stream, versioned, copied);
    gg_stream_release(stream);
    return capsule;
}

static int consumer_wait(struct py_state *state, gg_memory *memory, const struct consumer *consumer)
{
    gg_stream *pending = NULL;
    gg_status status;
    if (consumer->waiting == NOT_AT_ALL)
        return 0;
    status = consumer->waiting == ON_HOST
                 ? gg_memory_query(memory)
                 : gg_memory_completion_stream(memory, GG_COMPLETION_ALLOW_DEFAULT, &pending);
    if (status == GG_OK && !pending)
        return 0;
    gg_stream_release(pending);
    if (status && status != GG_NOT_READY)
        return py_check(state, status);
    PY_WITHOUT_GIL(status = consumer->waiting == ON_HOST
                                ? gg_memory_wait(memory)
                                : consumer_wait_on_device(memory, consumer->handle));
    return py_check(state, status);
}

/* ---- copies ---- */

/* The elements in pinned memory, which any consumer can use as host memory. */
static PyObject *export_host_copy(struct py_state *state, struct py_array *array)
{
    const struct py_alloc_target target = py_array_target(array);
    gg_memory *memory = py_alloc_target_alloc(state, &target, GG_MEMORY_PINNED, array->nbytes);
    Py_ssize_t strides[PY_MAX_DIMS];
    PyObject *copy;
    if (!memory)
        return NULL;
    py_strides_contiguous(strides, array->shape, array->ndim, array->itemsize,
                          array->f && !array->c);
    copy = (PyObject *)py_array_wrap(state->array_type, memory, 0, array->dtype, array->ndim,
                                     array->shape, strides);
    gg_memory_release(memory);
    if (copy && py_array_copy_from(state, py_array_of(copy), (PyObject *)array, NULL))
        Py_CLEAR(copy);
    return copy;
}

/* dl_device=: whether the consumer wants host memory. */
static int export_read_device(PyObject *object, DLDevice own, bool *host)
{
    int type, id;
    *host = false;
    if (!py_given(object))
        return 0;
    if (!PyTuple_Check(object) || !PyArg_ParseTuple(object, "ii:dl_device", &type, &id)) {
        PyErr_Clear();
        return PY_FAIL(PyExc_TypeError, "dl_device must be a tuple (type, id), got %R", object);
    }
    if (type == (int)own.device_type && id == own.device_id)
        return 0;
    if (type == kDLCPU && id == 0) {
        *host = true;
        return 0;
    }
    return PY_FAIL(PyExc_BufferError,
                   "a GPUArray on the DLPack device (%d, %d) can be exported there or to the host, "
                   "(1, 0), not "
                   "to (%d, %d)",
                   (int)own.device_type, (int)own.device_id, type, id);
}

static int export_read_copy(PyObject *object, bool *always, bool *never)
{
    int truth;
    *always = *never = false;
    if (!py_given(object))
        return 0;
    truth = PyObject_IsTrue(object);
    *always = truth > 0;
    *never = truth == 0;
    return truth < 0 ? -1 : 0;
}

/* max_version=(1, …) or more: a versioned capsule. */
static int export_read_version(PyObject *object, bool *versioned)
{
    int major, minor;
    *versioned = false;
    if (!py_given(object))
        return 0;
    if (!PyTuple_Check(object) || !PyArg_ParseTuple(object, "ii:max_version", &major, &minor)) {
        PyErr_Clear();
        return PY_FAIL(PyExc_TypeError, "max_version must be a tuple (major, minor), got %R",
                       object);
    }
    *versioned = major >= 1;
    return 0;
}

/* ---- __dlpack__ ---- */

struct request {
    struct consumer consumer;
    bool versioned, to_host, always, never;
};

static PyObject *export_to_host(struct py_state *state, struct py_array *array,
                                const struct request *request)
{
    const struct consumer host = {.waiting = ON_HOST};
    const DLDevice cpu = {kDLCPU, 0};
    PyObject *copy, *capsule;
    if (!request->always && py_host_accessible(array->memory))
        return consumer_wait(state, array->memory, &host)
                   ? NULL
                   : py_dl_capsule(array, cpu, NULL, request->versioned, false);
    if (request->never)
        return PyErr_Format(
            PyExc_ValueError,
            "exporting device memory to the host needs a copy, which copy=False forbids");
    copy = export_host_copy(state, array);
    if (!copy)
        return NULL;
    capsule = py_dl_capsule(py_array_of(copy), cpu, NULL, request->versioned, true);
    Py_DECREF(copy);
    return capsule;
}

static PyObject *export_copy(struct py_state *state, struct py_array *array,
                             const struct py_backend_traits *traits, const struct request *request)
{
    const struct py_alloc_target target = py_array_target(array);
    PyObject *copy = py_array_copy_at(state, array, &target), *capsule = NULL;
    if (!copy)
        return NULL;
    if (!consumer_wait(state, py_array_of(copy)->memory, &request->consumer))
        capsule =
            consumer_capsule(py_array_of(copy), py_dl_device_of(traits, py_array_of(copy)->memory),
                             &request->consumer, request->versioned, true);
    Py_DECREF(copy);
    return capsule;
}

PY_FASTCALL(py_array_dlpack)
{
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    const struct py_backend_traits *traits = py_traits_or_error(gg_memory_device(array->memory));
    struct request request;
    DLDevice own;
    PyObject *values[4];
    if (!traits || py_parse("__dlpack__", names, 4, 0, 0, args, nargs, kwnames, values))
        return NULL;
    own = py_dl_device_of(traits, array->memory);
    if (consumer_read_stream(values[0], traits, own.device_type, &request.consumer) ||
        export_read_version(values[1], &request.versioned) ||
        export_read_device(values[2], own, &request.to_host) ||
        export_read_copy(values[3], &request.always, &request.never))
        return NULL;
    if (array->readonly && !array->unversioned && !request.versioned && !request.always)
        return PyErr_Format(
            PyExc_BufferError,
            "a read-only array can only be exported to a consumer of DLPack 1.0 or newer: "
            "copy() it for older ones");
    if (request.to_host)
        return export_to_host(state, array, &request);
    if (request.always)
        return export_copy(state, array, traits, &request);
    return consumer_wait(state, array->memory, &request.consumer)
               ? NULL
               : consumer_capsule(array, own, &request.consumer, request.versioned, false);
}

PyObject *py_array_dlpack_device(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const struct py_backend_traits *traits =
        py_traits_or_error(gg_memory_device(py_array_of(self)->memory));
    DLDevice device;
    if (!traits)
        return NULL;
    device = py_dl_device_of(traits, py_array_of(self)->memory);
    return Py_BuildValue("(ii)", (int)device.device_type, (int)device.device_id);
}
