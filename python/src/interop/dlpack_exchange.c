/* dlpack_exchange.c: DLPack's exchange table, with which extensions pass arrays without Python calls: the tables of
 * other types, and that of GPUArray. */
#include "base/arguments.h"
#include "numpy/bridge.h"
#include "interop/dlpack.h"
#include "interop/external_array.h"

static struct py_state *exchange_state; /* of the only module instance */

/* ---- the table of GPUArray ---- */

/* A consumer uses the tensor on the stream that current_work_stream returns: that stream waits, on the device, for
 * pending work. Where there are no streams, the host waits. */
static int exchange_order(gg_memory *memory, const struct py_backend_traits *traits)
{
    const bool on_device =
        traits->has_streams && !py_dl_is_host_type(py_dl_device_of(traits, memory).device_type);
    gg_stream *stream;
    gg_status status = gg_memory_query(memory);
    if (status == GG_NOT_READY) {
        PyThreadState *thread = PyEval_SaveThread();
        status = on_device ? gg_current_stream(gg_memory_device(memory), &stream)
                           : gg_memory_wait(memory);
        if (!status && on_device)
            status = gg_stream_wait_memory(stream, memory);
        PyEval_RestoreThread(thread);
    }
    return py_check(exchange_state, status);
}

/* The consumer's stream; NULL where streams are not numbers, and for host memory. */
static gg_stream *exchange_stream(gg_memory *memory, const struct py_backend_traits *traits)
{
    gg_stream *stream;
    if (!traits->has_streams || py_dl_is_host_type(py_dl_device_of(traits, memory).device_type) ||
        gg_current_stream(gg_memory_device(memory), &stream))
        return NULL;
    return stream;
}

static int exchange_from_object(void *object, DLManagedTensorVersioned **out)
{
    struct py_array *array = py_array_of(object);
    const struct py_backend_traits *traits;
    if (!Py_IS_TYPE((PyObject *)object, exchange_state->array_type))
        return PY_FAIL(PyExc_TypeError, "this exchange table is for GPUArrays, not for %R",
                       Py_TYPE((PyObject *)object));
    traits = py_traits_or_error(gg_memory_device(array->memory));
    if (!traits || exchange_order(array->memory, traits))
        return -1;
    *out = py_dl_export(array, py_dl_device_of(traits, array->memory),
                        exchange_stream(array->memory, traits), false);
    return *out ? 0 : -1;
}

/* The producer used the stream that current_work_stream returns: gpuglue's work on other streams waits for it. */
static int exchange_to_object(DLManagedTensorVersioned *managed, void **out)
{
    gg_device *device;
    gg_stream *stream;
    PyObject *array;
    if (numpy_load()) {
        if (managed->deleter)
            managed->deleter(managed);
        return -1;
    }
    array = py_dl_import(exchange_state, managed, &device);
    if (!array)
        return -1;
    if (py_traits_of(device)->has_streams &&
        (py_check(exchange_state, gg_current_stream(device, &stream)) ||
         py_check(exchange_state, gg_memory_record_use(py_array_of(array)->memory, stream)))) {
        Py_DECREF(array);
        return -1;
    }
    *out = array;
    return 0;
}

static int exchange_current_stream(DLDeviceType type, int32_t id, void **out)
{
    const DLDevice where = {type, id};
    uint64_t handles[4] = {0};
    enum gg_memory_kind kind;
    gg_device *device;
    gg_stream *stream;
    if (py_dl_device_find(exchange_state, where, &device, &kind))
        return -1;
    if (py_traits_of(device)->has_streams && !py_dl_is_host_type(type) &&
        (py_check(exchange_state, gg_current_stream(device, &stream)) ||
         py_check(exchange_state, gg_stream_native(stream, handles))))
        return -1;
    *out = (void *)(uintptr_t)handles[0];
    return 0;
}

/* Bytes of a tensor; false where they do not fit in 63 bits, or a length is negative. */
static bool exchange_nbytes(const DLTensor *tensor, size_t *out)
{
    const size_t bits = (size_t)tensor->dtype.bits * tensor->dtype.lanes;
    size_t bytes = (bits + 7) / 8;
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] < 0 || __builtin_mul_overflow(bytes, (size_t)tensor->shape[i], &bytes))
            return false;
    *out = bytes;
    return bytes <= PTRDIFF_MAX;
}

static int exchange_fail(void *context, void (*set_error)(void *, const char *, const char *),
                         const char *kind, const char *why)
{
    set_error(context, kind, why);
    return -1;
}

/* Without the GIL: an uninitialised tensor in C order with the device, shape and dtype of @p prototype. */
static int exchange_allocate(DLTensor *prototype, DLManagedTensorVersioned **out, void *context,
                             void (*set_error)(void *context, const char *kind, const char *message))
{
    struct gg_error error = {.struct_size = sizeof error};
    enum gg_memory_kind kind;
    const struct py_backend_traits *traits = py_traits_of_type(prototype->device.device_type, &kind);
    const bool numbered = traits && traits->has_ordinals && kind == GG_MEMORY_DEVICE;
    gg_memory *memory;
    gg_device *device;
    size_t bytes;
    if (!traits)
        return exchange_fail(context, set_error, "BufferError",
                             "gpuglue has no such DLPack device type");
    if (prototype->ndim < 0 || !exchange_nbytes(prototype, &bytes))
        return exchange_fail(context, set_error, "ValueError", "the shape is not valid");
    if (gg_device_get(traits->backend, numbered ? prototype->device.device_id : 0, &device) ||
        gg_memory_alloc(device, kind, bytes, NULL, &memory)) {
        gg_last_error(&error);
        return exchange_fail(context, set_error,
                             error.status == GG_ERR_OUT_OF_MEMORY ? "MemoryError" : "BufferError",
                             error.message);
    }
    *out = py_dl_wrap_memory(memory, prototype);
    if (*out)
        return 0;
    gg_memory_release(memory);
    return exchange_fail(context, set_error, "MemoryError", "no host memory for a tensor's shape");
}

/* Without dltensor_from_py_object: gpuglue could not track how long a borrowed tensor is used. */
static const DLPackExchangeAPI exchange_table = {
    .header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}},
    .managed_tensor_allocator = exchange_allocate,
    .managed_tensor_from_py_object_no_sync = exchange_from_object,
    .managed_tensor_to_py_object_no_sync = exchange_to_object,
    .current_work_stream = exchange_current_stream,
};

int py_exchange_add(struct py_state *state)
{
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&exchange_table, DL_EXCHANGE_NAME, NULL);
    int failed;
    if (!capsule)
        return -1;
    exchange_state = state;
    failed =
        PyObject_SetAttrString((PyObject *)state->array_type, "__dlpack_c_exchange_api__", capsule);
    Py_DECREF(capsule);
    return failed;
}

/* ---- the tables of other types ---- */

static const DLPackExchangeAPI *exchange_of(PyObject *capsule)
{
    DLPackExchangeAPIHeader *header;
    if (!PyCapsule_IsValid(capsule, DL_EXCHANGE_NAME))
        return NULL;
    header = PyCapsule_GetPointer(capsule, DL_EXCHANGE_NAME);
    while (header && header->version.major > DLPACK_MAJOR_VERSION)
        header = header->prev_api;
    return header && header->version.major == DLPACK_MAJOR_VERSION
               ? (const DLPackExchangeAPI *)(void *)header
               : NULL;
}

/* Pending work is on the producer's current stream: gpuglue's work waits for it. */
static int exchange_wait_producer(struct py_state *state, const DLPackExchangeAPI *exchange,
                                  DLDevice where, gg_device *device, gg_memory *memory)
{
    const struct py_backend_traits *traits = py_traits_of(device);
    void *native = NULL;
    if (!traits->has_streams || py_dl_is_host_type(where.device_type))
        return 0;
    if (exchange->current_work_stream(where.device_type, where.device_id, &native)) {
        if (!PyErr_Occurred())
            return PY_FAIL(PyExc_BufferError, "the producer did not return its current stream");
    }
    return py_external_wait_producer(state, device, (uint64_t)(uintptr_t)native, memory);
}

static PyObject *exchange_take(struct py_state *state, PyObject *object,
                               const DLPackExchangeAPI *exchange)
{
    DLManagedTensorVersioned *managed = NULL;
    DLDevice where;
    gg_device *device;
    PyObject *array;
    if (numpy_load())
        return NULL;
    if (exchange->managed_tensor_from_py_object_no_sync(object, &managed) || !managed) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_BufferError, "the producer returned no tensor and no reason");
        return NULL;
    }
    where =
        managed->version.major == DLPACK_MAJOR_VERSION ? managed->dl_tensor.device : (DLDevice){0};
    array = py_dl_import(state, managed, &device);
    if (array && exchange_wait_producer(state, exchange, where, device, py_array_of(array)->memory))
        Py_CLEAR(array);
    return array;
}

int py_from_exchange(struct py_state *state, PyObject *object, PyObject **out)
{
    const DLPackExchangeAPI *exchange;
    PyObject *capsule;
    int found =
        py_optional_attribute((PyObject *)Py_TYPE(object), "__dlpack_c_exchange_api__", &capsule);
    if (found < 1)
        return found;
    exchange = exchange_of(capsule); /* static data of its library */
    Py_DECREF(capsule);
    if (!exchange || !exchange->managed_tensor_from_py_object_no_sync ||
        !exchange->current_work_stream)
        return 0;
    *out = exchange_take(state, object, exchange);
    return *out ? 1 : -1;
}
