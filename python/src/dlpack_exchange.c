/* dlpack_exchange.c: DLPack's exchange table, by which extensions pass arrays without a call of Python: those of other
 * types are used, and GPUArray has one. */
#include "array.h"
#include "array_foreign.h"
#include "numpy_bridge.h"

static struct py_state *state_of_calls; /* the one module's */

/* ---- given: the table of GPUArray -------------------------------------------------------------- */

/* Who takes a tensor uses it on the stream that current_stream names: that one is made to wait for pending work on
 * the device, and where there is none, the host waits. */
static int order(gg_memory *memory, const struct py_vendor *vendor)
{
    const bool on_device = vendor->streams && !py_dl_is_host(py_vendor_device(vendor, memory).type);
    gg_stream *stream;
    gg_status status = gg_memory_query(memory);
    if (status == GG_NOT_READY) {
        PyThreadState *thread = PyEval_SaveThread();
        status = on_device ? gg_current_stream(gg_memory_device(memory), &stream)
                           : gg_memory_wait(memory);
        if (!status && on_device)
            status = gg_memory_order(memory, stream);
        PyEval_RestoreThread(thread);
    }
    return py_check(state_of_calls, status);
}

static int from_object(void *object, struct dl_managed_versioned **out)
{
    struct py_array *array = py_array_of(object);
    const struct py_vendor *vendor;
    if (!Py_IS_TYPE((PyObject *)object, state_of_calls->array_type)) {
        PyErr_Format(PyExc_TypeError, "this exchange table is for GPUArrays, not for %R",
                     Py_TYPE((PyObject *)object));
        return -1;
    }
    vendor = py_vendor_known(gg_memory_device(array->memory));
    if (!vendor || order(array->memory, vendor))
        return -1;
    *out = py_dl_export(array, py_vendor_device(vendor, array->memory), false);
    return *out ? 0 : -1;
}

/* Its maker used the stream that current_stream names: work of ours on others has to wait for that. */
static int to_object(struct dl_managed_versioned *managed, void **out)
{
    gg_device *device;
    gg_stream *stream;
    PyObject *array;
    if (numpy_load()) {
        if (managed->deleter)
            managed->deleter(managed);
        return -1;
    }
    array = py_dl_import(state_of_calls, managed, &device);
    if (!array)
        return -1;
    if (py_vendor_of(device)->streams &&
        (py_check(state_of_calls, gg_current_stream(device, &stream)) ||
         py_check(state_of_calls, gg_memory_record_use(py_array_of(array)->memory, stream)))) {
        Py_DECREF(array);
        return -1;
    }
    *out = array;
    return 0;
}

static int current_stream(int32_t type, int32_t id, void **out)
{
    const struct dl_device where = {type, id};
    uint64_t handles[4] = {0};
    enum gg_memory_kind kind;
    gg_device *device;
    gg_stream *stream;
    if (py_vendor_find(state_of_calls, where, &device, &kind))
        return -1;
    if (py_vendor_of(device)->streams && !py_dl_is_host(type) &&
        (py_check(state_of_calls, gg_current_stream(device, &stream)) ||
         py_check(state_of_calls, gg_stream_native(stream, handles))))
        return -1;
    *out = (void *)(uintptr_t)handles[0];
    return 0;
}

/* Bytes of a tensor; false where they are more than an address can reach, or a length is negative. */
static bool measure(const struct dl_tensor *tensor, size_t *out)
{
    const size_t bits = (size_t)tensor->dtype.bits * tensor->dtype.lanes;
    size_t bytes = (bits + 7) / 8;
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] < 0 || __builtin_mul_overflow(bytes, (size_t)tensor->shape[i], &bytes))
            return false;
    *out = bytes;
    return bytes <= PTRDIFF_MAX;
}

static int fail(void *context, void (*set_error)(void *, const char *, const char *),
                const char *kind, const char *why)
{
    set_error(context, kind, why);
    return -1;
}

/* Without the GIL: a new tensor, uninitialised, in C order, like @p prototype in device, shape and dtype. */
static int allocate(struct dl_tensor *prototype, struct dl_managed_versioned **out, void *context,
                    void (*set_error)(void *context, const char *kind, const char *message))
{
    struct gg_error error = {.struct_size = sizeof error};
    enum gg_memory_kind kind;
    const struct py_vendor *vendor = py_vendor_of_type(prototype->device.type, &kind);
    const bool numbered = vendor && vendor->numbered && kind == GG_MEMORY_DEVICE;
    gg_memory *memory;
    gg_device *device;
    size_t bytes;
    if (!vendor)
        return fail(context, set_error, "BufferError", "gpuglue has no such DLPack device type");
    if (prototype->ndim < 0 || !measure(prototype, &bytes))
        return fail(context, set_error, "ValueError", "the shape is not possible");
    if (gg_device_get(vendor->backend, numbered ? prototype->device.id : 0, &device) ||
        gg_memory_alloc(device, kind, bytes, NULL, &memory)) {
        gg_last_error(&error);
        return fail(context, set_error,
                    error.status == GG_ERR_OUT_OF_MEMORY ? "MemoryError" : "BufferError",
                    error.message);
    }
    *out = py_dl_over(memory, prototype);
    if (*out)
        return 0;
    gg_memory_release(memory);
    return fail(context, set_error, "MemoryError", "no memory for a tensor's shape");
}

/* No row borrow: of a tensor that nobody holds, gpuglue could not know how long it is used. */
static const struct dl_exchange table = {
    .header = {.version = {DL_MAJOR, DL_MINOR}},
    .allocate = allocate,
    .from_object = from_object,
    .to_object = to_object,
    .current_stream = current_stream,
};

int py_exchange_add(struct py_state *state)
{
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&table, DL_EXCHANGE_NAME, NULL);
    int failed;
    if (!capsule)
        return -1;
    state_of_calls = state;
    failed =
        PyObject_SetAttrString((PyObject *)state->array_type, "__dlpack_c_exchange_api__", capsule);
    Py_DECREF(capsule);
    return failed;
}

/* ---- taken: the tables of others --------------------------------------------------------------------------- */

static const struct dl_exchange *exchange_of(PyObject *capsule)
{
    struct dl_exchange_header *header;
    if (!PyCapsule_IsValid(capsule, DL_EXCHANGE_NAME))
        return NULL;
    header = PyCapsule_GetPointer(capsule, DL_EXCHANGE_NAME);
    while (header && header->version.major > DL_MAJOR)
        header = header->previous;
    return header && header->version.major == DL_MAJOR ? (const struct dl_exchange *)(void *)header
                                                       : NULL;
}

/* Its work goes on the producer's current stream, for ours to wait for. */
static int follow_producer(struct py_state *state, const struct dl_exchange *exchange,
                           struct dl_device where, gg_device *device, gg_memory *memory)
{
    const struct py_vendor *vendor = py_vendor_of(device);
    void *native = NULL;
    if (!vendor->streams || py_dl_is_host(where.type))
        return 0;
    if (exchange->current_stream(where.type, where.id, &native)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_BufferError, "the producer could not tell its current stream");
        return -1;
    }
    return py_foreign_follow(state, device, (uint64_t)(uintptr_t)native, memory);
}

static PyObject *take_exchanged(struct py_state *state, PyObject *object,
                                const struct dl_exchange *exchange)
{
    struct dl_managed_versioned *managed = NULL;
    struct dl_device where;
    gg_device *device;
    PyObject *array;
    if (numpy_load())
        return NULL;
    if (exchange->from_object(object, &managed) || !managed) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_BufferError, "the producer gave no tensor and no reason");
        return NULL;
    }
    where = managed->version.major == DL_MAJOR ? managed->tensor.device : (struct dl_device){0};
    array = py_dl_import(state, managed, &device);
    if (array && follow_producer(state, exchange, where, device, py_array_of(array)->memory))
        Py_CLEAR(array);
    return array;
}

int py_from_exchange(struct py_state *state, PyObject *object, PyObject **out)
{
    const struct dl_exchange *exchange;
    PyObject *capsule;
    int found =
        py_optional_attribute((PyObject *)Py_TYPE(object), "__dlpack_c_exchange_api__", &capsule);
    if (found < 1)
        return found;
    exchange = exchange_of(capsule); /* static data of its library */
    Py_DECREF(capsule);
    if (!exchange || !exchange->from_object || !exchange->current_stream)
        return 0;
    *out = take_exchanged(state, object, exchange);
    return *out ? 1 : -1;
}
