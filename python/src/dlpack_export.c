/* dlpack_export.c: GPUArray.__dlpack__. */
#include "array.h"
#include "dlpack.h"
#include "numpy_bridge.h"

/* ---- the consumer's stream -------------------------------------------------------------------- */

enum waiting { ON_DEVICE, ON_HOST, NOT_AT_ALL };

/* What stream= says: who waits for pending work, and for ON_DEVICE the stream's native handle. */
struct consumer {
    enum waiting waiting;
    uint64_t handle;
};

static int refuse_stream(PyObject *object, const struct py_vendor *vendor, const char *expected)
{
    PyErr_Format(PyExc_ValueError, "stream=%R means nothing for %s memory: expected %s", object,
                 vendor->backend, expected);
    return -1;
}

/* -1, 1, 2 and handles on cuda; -1, 0 and handles on hip: there 1 and 2 are no streams. */
static int read_handle(PyObject *object, const struct py_vendor *vendor, long long number,
                       struct consumer *out)
{
    const bool null = number == 0, small = number == 1 || number == 2;
    if (number < 0 || (vendor->null_is_one ? null : small))
        return refuse_stream(object, vendor,
                             vendor->null_is_one
                                 ? "None, -1, 1 (legacy), 2 (per-thread) or a stream's handle"
                                 : "None, -1, 0 (the default stream) or a stream's handle");
    out->waiting = ON_DEVICE;
    out->handle = (uint64_t)number;
    return 0;
}

/* Who names no stream may read memory that the host reaches at once, by whatever it is called. */
static int read_stream(PyObject *object, const struct py_vendor *vendor, int32_t type,
                       struct consumer *out)
{
    const bool on_host = !vendor->streams || py_dl_is_host(type) || type == DL_CUDA_MANAGED;
    long long number;
    *out = (struct consumer){.waiting = on_host ? ON_HOST : ON_DEVICE};
    if (!object || object == Py_None)
        return 0;
    number = PyLong_AsLongLong(object);
    if (number == -1 && PyErr_Occurred()) {
        if (vendor->streams || !PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear(); /* a queue object: the host waits instead */
        return 0;
    }
    if (number == -1) {
        out->waiting = NOT_AT_ALL;
        return 0;
    }
    if (!vendor->streams)
        return refuse_stream(object, vendor, "None or -1");
    return read_handle(object, vendor, number, out);
}

static gg_status wait_on_device(gg_memory *memory, uint64_t handle)
{
    gg_stream *stream = NULL;
    gg_status status = gg_stream_borrow(gg_memory_device(memory), handle, NULL, NULL, &stream);
    if (!status)
        status = gg_memory_order(memory, stream);
    gg_stream_release(stream);
    return status;
}

static int settle(struct py_state *state, gg_memory *memory, const struct consumer *consumer)
{
    gg_stream *pending = NULL;
    gg_status status;
    if (consumer->waiting == NOT_AT_ALL)
        return 0;
    status = consumer->waiting == ON_HOST
                 ? gg_memory_query(memory)
                 : gg_memory_pending(memory, GG_PENDING_DEFAULT_TOO, &pending);
    if (status == GG_OK && !pending)
        return 0;
    gg_stream_release(pending);
    if (status && status != GG_NOT_READY)
        return py_check(state, status);
    PyThreadState *thread = PyEval_SaveThread();
    status = consumer->waiting == ON_HOST ? gg_memory_wait(memory)
                                          : wait_on_device(memory, consumer->handle);
    PyEval_RestoreThread(thread);
    return py_check(state, status);
}

/* ---- copies ------------------------------------------------------------------------------------- */

/* The elements in page-locked memory, which is host memory for everybody. */
static PyObject *copy_to_host(struct py_state *state, struct py_array *array)
{
    const struct py_place place = {.device = gg_memory_device(array->memory)};
    gg_memory *memory = py_place_alloc(state, &place, GG_MEMORY_PINNED, array->nbytes);
    Py_ssize_t strides[PY_MAX_DIMS];
    PyObject *copy;
    if (!memory)
        return NULL;
    py_strides_contiguous(strides, array->shape, array->ndim, array->itemsize,
                          array->f && !array->c);
    copy = (PyObject *)py_array_over(state->array_type, memory, 0, array->dtype, array->ndim,
                                     array->shape, strides);
    gg_memory_release(memory);
    if (copy && py_array_copy_into(state, py_array_of(copy), array, NULL))
        Py_CLEAR(copy);
    return copy;
}

/* dl_device=: whether the host's memory is asked for. */
static int read_device(PyObject *object, struct dl_device own, bool *host)
{
    int type, id;
    *host = false;
    if (!object || object == Py_None)
        return 0;
    if (!PyTuple_Check(object) || !PyArg_ParseTuple(object, "ii:dl_device", &type, &id)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "dl_device is a tuple (type, id), got %R", object);
        return -1;
    }
    if (type == own.type && id == own.id)
        return 0;
    if (type == DL_CPU && id == 0) {
        *host = true;
        return 0;
    }
    PyErr_Format(
        PyExc_BufferError,
        "a GPUArray on the DLPack device (%d, %d) is given there or to the host's (1, 0), not "
        "to (%d, %d)",
        own.type, own.id, type, id);
    return -1;
}

static int read_copy(PyObject *object, bool *always, bool *never)
{
    int truth;
    *always = *never = false;
    if (!object || object == Py_None)
        return 0;
    truth = PyObject_IsTrue(object);
    *always = truth > 0;
    *never = truth == 0;
    return truth < 0 ? -1 : 0;
}

/* max_version=(1, …) or more: a versioned capsule. */
static int read_version(PyObject *object, bool *versioned)
{
    int major, minor;
    *versioned = false;
    if (!object || object == Py_None)
        return 0;
    if (!PyTuple_Check(object) || !PyArg_ParseTuple(object, "ii:max_version", &major, &minor)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "max_version is a tuple (major, minor), got %R", object);
        return -1;
    }
    *versioned = major >= 1;
    return 0;
}

/* ---- __dlpack__ --------------------------------------------------------------------------------- */

struct request {
    struct consumer consumer;
    bool versioned, to_host, always, never;
};

static PyObject *give_host(struct py_state *state, struct py_array *array,
                           const struct request *request)
{
    const struct consumer host = {.waiting = ON_HOST};
    const struct dl_device cpu = {DL_CPU, 0};
    PyObject *copy, *capsule;
    if (!request->always && py_host_reaches(array->memory))
        return settle(state, array->memory, &host)
                   ? NULL
                   : py_dl_capsule(array, cpu, request->versioned, false);
    if (request->never)
        return PyErr_Format(
            PyExc_ValueError,
            "device memory is given to the host by a copy, which copy=False forbids");
    copy = copy_to_host(state, array);
    if (!copy)
        return NULL;
    capsule = py_dl_capsule(py_array_of(copy), cpu, request->versioned, true);
    Py_DECREF(copy);
    return capsule;
}

static PyObject *give_copy(struct py_state *state, struct py_array *array,
                           const struct py_vendor *vendor, const struct request *request)
{
    const struct py_place place = {.device = gg_memory_device(array->memory)};
    PyObject *copy = py_array_copy_at(state, array, &place), *capsule = NULL;
    if (!copy)
        return NULL;
    if (!settle(state, py_array_of(copy)->memory, &request->consumer))
        capsule =
            py_dl_capsule(py_array_of(copy), py_vendor_device(vendor, py_array_of(copy)->memory),
                          request->versioned, true);
    Py_DECREF(copy);
    return capsule;
}

PY_FASTCALL(py_array_dlpack)
{
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    const struct py_vendor *vendor = py_vendor_known(gg_memory_device(array->memory));
    struct request request;
    struct dl_device own;
    PyObject *values[4];
    if (!vendor || py_parse("__dlpack__", names, 4, 0, 0, args, nargs, kwnames, values))
        return NULL;
    own = py_vendor_device(vendor, array->memory);
    if (read_stream(values[0], vendor, own.type, &request.consumer) ||
        read_version(values[1], &request.versioned) ||
        read_device(values[2], own, &request.to_host) ||
        read_copy(values[3], &request.always, &request.never))
        return NULL;
    if (array->readonly && !array->unversioned && !request.versioned && !request.always)
        return PyErr_Format(
            PyExc_BufferError,
            "a read-only array needs a consumer of DLPack 1.0, which can be told so: "
            "copy() it for older ones");
    if (request.to_host)
        return give_host(state, array, &request);
    if (request.always)
        return give_copy(state, array, vendor, &request);
    return settle(state, array->memory, &request.consumer)
               ? NULL
               : py_dl_capsule(array, own, request.versioned, false);
}

PyObject *py_array_dlpack_device(PyObject *self, PyObject *unused)
{
    const struct py_vendor *vendor = py_vendor_known(gg_memory_device(py_array_of(self)->memory));
    struct dl_device device;
    (void)unused;
    if (!vendor)
        return NULL;
    device = py_vendor_device(vendor, py_array_of(self)->memory);
    return Py_BuildValue("(ii)", device.type, device.id);
}
