/* dlpack_import.c: DLPack tensors of other libraries as GPUArrays over their memory. The producer's deleter runs under
 * the GIL, once gpuglue's last reference and its queued work are gone. */
#include "base/errors.h"
#include "base/owners.h"
#include "numpy/bridge.h"
#include "interop/dlpack.h"
#include "interop/external_array.h"

/* ---- taking a tensor over ---- */

static const char taken_versioned[] = "gpuglue.taken_versioned", taken_legacy[] = "gpuglue.taken";

static void delete_legacy(void *managed)
{
    DLManagedTensor *tensor = managed;
    if (tensor->deleter)
        tensor->deleter(tensor);
}

static void delete_versioned(void *managed)
{
    DLManagedTensorVersioned *tensor = managed;
    if (tensor->deleter)
        tensor->deleter(tensor);
}

/* A deleter may run Python code, which must not see the exception of a rejected tensor. */
static void taken_destructor(PyObject *capsule)
{
    const bool versioned = PyCapsule_IsValid(capsule, taken_versioned);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    (versioned ? delete_versioned : delete_legacy)(
        PyCapsule_GetPointer(capsule, versioned ? taken_versioned : taken_legacy));
    PyErr_Restore(type, value, trace);
}

/* A tensor that gpuglue owns: freeing keep calls its deleter. */
struct taken {
    PyObject *keep;
    const DLTensor *tensor;
    bool readonly, unversioned;
};

/* Of an unknown version only the deleter is used. */
static int take_versioned(DLManagedTensorVersioned *managed, struct taken *out)
{
    const uint32_t major = managed->version.major, minor = managed->version.minor;
    out->keep = PyCapsule_New(managed, taken_versioned, taken_destructor);
    if (!out->keep) {
        delete_versioned(managed);
        return -1;
    }
    if (major != DLPACK_MAJOR_VERSION) {
        Py_CLEAR(out->keep);
        return PY_FAIL(
            PyExc_BufferError,
            "the tensor has DLPack version %u.%u: expected 1, or 0 as an unversioned capsule",
            major, minor);
    }
    out->tensor = &managed->dl_tensor;
    out->readonly = managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
    out->unversioned = false;
    return 0;
}

/* It cannot declare whether it may be written: @p readonly. */
static int take_legacy(DLManagedTensor *managed, bool readonly, struct taken *out)
{
    out->keep = PyCapsule_New(managed, taken_legacy, taken_destructor);
    if (!out->keep) {
        delete_legacy(managed);
        return -1;
    }
    out->tensor = &managed->dl_tensor;
    out->readonly = readonly;
    out->unversioned = true;
    return 0;
}

static int take_capsule(PyObject *capsule, bool knows_versions, struct taken *out)
{
    const char *name;
    if (PyCapsule_IsValid(capsule, DL_NAME_VERSIONED)) {
        void *managed = PyCapsule_GetPointer(capsule, DL_NAME_VERSIONED);
        return PyCapsule_SetName(capsule, DL_NAME_VERSIONED_USED) ? -1
                                                                  : take_versioned(managed, out);
    }
    if (PyCapsule_IsValid(capsule, DL_NAME)) {
        void *managed = PyCapsule_GetPointer(capsule, DL_NAME);
        return PyCapsule_SetName(capsule, DL_NAME_USED) ? -1
                                                        : take_legacy(managed, knows_versions, out);
    }
    if (!PyCapsule_CheckExact(capsule))
        return PY_FAIL(PyExc_TypeError, "__dlpack__ returned a %R, expected a capsule",
                       Py_TYPE(capsule));
    name = PyCapsule_GetName(capsule);
    PyErr_Clear();
    return PY_FAIL(PyExc_BufferError,
                   "a capsule named \"%s\" is not a DLPack tensor, or was already consumed: each "
                   "can be consumed once",
                   name ? name : "");
}

/* ---- from a tensor to an array ---- */

static int tensor_raise(const char *why)
{
    return PY_FAIL(PyExc_BufferError, "the DLPack tensor is not valid: %s", why);
}

struct geometry {
    Py_ssize_t shape[PY_MAX_DIMS], strides[PY_MAX_DIMS]; /* strides in bytes */
    Py_ssize_t low, high; /* the range of bytes, relative to element 0 */
    char *begin;          /* the address of the first of them */
    bool empty;
};

static int tensor_read_shape(const DLTensor *tensor, struct geometry *out)
{
    if (tensor->ndim < 0)
        return tensor_raise("ndim is negative");
    if (tensor->ndim > numpy_max_dims())
        return tensor_raise("it has more dimensions than NumPy");
    if (tensor->ndim && !tensor->shape)
        return tensor_raise("shape is NULL");
    out->empty = false;
    for (int i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] < 0)
            return tensor_raise("a length is negative");
        out->shape[i] = tensor->shape[i];
        out->empty = out->empty || !tensor->shape[i];
    }
    return 0;
}

/* NULL strides, allowed before DLPack 1.2: C order. */
static int tensor_read_strides(const DLTensor *tensor, Py_ssize_t itemsize, struct geometry *out)
{
    Py_ssize_t run = itemsize;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        if (!tensor->strides)
            out->strides[i] = run;
        else if (__builtin_mul_overflow(tensor->strides[i], itemsize, &out->strides[i]))
            return tensor_raise("a stride does not fit in 63 bits");
        if (__builtin_mul_overflow(run, out->shape[i] ? out->shape[i] : 1, &run))
            return tensor_raise("its size does not fit in 63 bits");
    }
    return 0;
}

static int tensor_measure(const DLTensor *tensor, Py_ssize_t itemsize, struct geometry *out)
{
    uintptr_t element;
    out->low = out->high = 0;
    out->begin = NULL;
    if (out->empty)
        return 0;
    if (!py_strides_extent(tensor->ndim, out->shape, out->strides, itemsize, &out->low, &out->high))
        return tensor_raise("its extent does not fit in 63 bits");
    if (!tensor->data)
        return tensor_raise("data is NULL, but the size is not 0");
    if (__builtin_add_overflow((uintptr_t)tensor->data, tensor->byte_offset, &element) ||
        !py_extent_begin(element, out->low, out->high, &out->begin))
        return tensor_raise("its elements are outside the address space");
    return 0;
}

/* Takes over taken->keep, also on failure. */
static PyObject *tensor_to_array(struct py_state *state, struct taken *taken, gg_device *device,
                                 enum gg_memory_kind kind, PyObject *dtype,
                                 const struct geometry *geometry)
{
    const DLTensor *tensor = taken->tensor;
    gg_memory *memory = NULL;
    struct py_array *array;
    gg_status status =
        gg_memory_wrap(device, kind, geometry->begin, (size_t)(geometry->high - geometry->low),
                       py_owner_release, taken->keep, &memory);
    if (status) {
        Py_CLEAR(taken->keep);
        return py_raise(state, status);
    }
    taken->keep = NULL;
    array = py_array_wrap(state->array_type, memory, (size_t)-geometry->low, dtype, tensor->ndim,
                          geometry->shape, geometry->strides);
    gg_memory_release(memory);
    if (!array)
        return NULL;
    array->readonly = taken->readonly;
    array->unversioned = taken->unversioned;
    array->wrapped = true;
    return (PyObject *)array;
}

static PyObject *tensor_wrap_on(struct py_state *state, struct taken *taken, gg_device *device,
                                enum gg_memory_kind kind)
{
    const DLTensor *tensor = taken->tensor;
    PyObject *dtype = py_dl_to_numpy(tensor->dtype), *array = NULL;
    struct geometry geometry;
    const Py_ssize_t itemsize = dtype ? numpy_itemsize(dtype) : 0;
    if (dtype && !tensor_read_shape(tensor, &geometry) &&
        !tensor_read_strides(tensor, itemsize, &geometry) &&
        !tensor_measure(tensor, itemsize, &geometry))
        array = tensor_to_array(state, taken, device, kind, dtype, &geometry);
    Py_XDECREF(dtype);
    return array;
}

/* An array over a taken tensor; *device is its device. */
static PyObject *tensor_wrap(struct py_state *state, struct taken *taken, gg_device **device)
{
    const DLTensor *tensor = taken->tensor;
    enum gg_memory_kind kind;
    PyObject *array = NULL;
    if (!py_dl_tensor_device(state, tensor->device, tensor->data, device, &kind))
        array = tensor_wrap_on(state, taken, *device, kind);
    Py_XDECREF(taken->keep);
    return array;
}

PyObject *py_dl_import(struct py_state *state, DLManagedTensorVersioned *managed, gg_device **device)
{
    struct taken taken;
    return take_versioned(managed, &taken) ? NULL : tensor_wrap(state, &taken, device);
}

/* ---- __dlpack__ ---- */

static int producer_device(PyObject *object, DLDevice *out)
{
    PyObject *pair = PyObject_CallMethod(object, "__dlpack_device__", NULL), *type;
    int failed = -1;
    if (!pair)
        return -1;
    type = PyTuple_Check(pair) && PyTuple_Size(pair) == 2
               ? PyNumber_Index(PyTuple_GetItem(pair, 0)) /* often an IntEnum */
               : NULL;
    if (type) {
        out->device_type = (DLDeviceType)PyLong_AsLong(type);
        out->device_id = (int32_t)PyLong_AsLong(PyTuple_GetItem(pair, 1));
        failed = PyErr_Occurred() ? -1 : 0;
        Py_DECREF(type);
    } else if (!PyErr_Occurred())
        PyErr_Format(PyExc_BufferError, "__dlpack_device__ returned %R, expected a pair of ints",
                     pair);
    Py_DECREF(pair);
    return failed;
}

/* The stream= argument for __dlpack__, as the backend writes it; NULL where there are no streams. */
static int producer_stream(struct py_state *state, gg_device *device, gg_stream *stream,
                           PyObject **out)
{
    const struct py_backend_traits *traits = py_traits_of(device);
    uint64_t handles[4] = {0};
    *out = NULL;
    if (!traits->has_streams)
        return 0;
    if (py_check(state, gg_stream_native(stream, handles)))
        return -1;
    if (!handles[0] && traits->null_is_one)
        handles[0] = 1;
    *out = PyLong_FromUnsignedLongLong(handles[0]);
    return *out ? 0 : -1;
}

static PyObject *producer_call(PyObject *object, PyObject *stream, bool new_style)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__"), *none = PyTuple_New(0), *names,
             *capsule = NULL;
    names = new_style
                ? Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION)
                : PyDict_New();
    if (method && none && names && (!stream || !PyDict_SetItemString(names, "stream", stream)))
        capsule = PyObject_Call(method, none, names);
    Py_XDECREF(names);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

/* A producer that knows versions but returns an unversioned capsule may hide that its array is read-only, as JAX does. */
static PyObject *producer_capsule(PyObject *object, PyObject *stream, bool *knows_versions)
{
    PyObject *capsule = producer_call(object, stream, true);
    *knows_versions = true;
    if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError))
        return capsule;
    *knows_versions = false;
    PyErr_Clear(); /* a producer from before version 1 */
    return producer_call(object, stream, false);
}

/* The producer has made the stream wait, so gpuglue's work on other streams has to wait for that stream. */
static PyObject *producer_take(struct py_state *state, PyObject *object, gg_stream *stream,
                               PyObject *stream_number)
{
    bool knows_versions;
    PyObject *capsule = producer_capsule(object, stream_number, &knows_versions), *array;
    struct taken taken;
    gg_device *device;
    if (!capsule)
        return NULL;
    array =
        take_capsule(capsule, knows_versions, &taken) ? NULL : tensor_wrap(state, &taken, &device);
    Py_DECREF(capsule);
    if (array && stream_number && device == gg_stream_device(stream) &&
        py_check(state, gg_memory_record_use(py_array_of(array)->memory, stream)))
        Py_CLEAR(array);
    return array;
}

/* Of which device the array is, is known only with its address where SYCL numbers the devices; the stream does not matter
 * there, since the host waits. */
static bool stream_fits(const gg_stream *stream, const gg_device *device)
{
    const gg_device *its = gg_stream_device(stream);
    const struct py_backend_traits *traits = py_traits_of(device);
    return its == device ||
           (traits->sycl_numbers && !strcmp(gg_device_backend(its), gg_device_backend(device)));
}

PyObject *py_from_dlpack(struct py_state *state, PyObject *object, gg_stream *stream)
{
    DLDevice where = {0};
    enum gg_memory_kind kind;
    gg_device *device;
    PyObject *number = NULL, *array;
    if (numpy_load() || producer_device(object, &where) ||
        py_dl_device_find(state, where, &device, &kind))
        return NULL;
    if (!stream && py_check(state, gg_current_stream(device, &stream)))
        return NULL;
    if (!stream_fits(stream, device)) {
        py_invalid(state, "the stream and the array are on different devices");
        return NULL;
    }
    if (!py_dl_is_host_type(where.device_type) && producer_stream(state, device, stream, &number))
        return NULL;
    gg_stream_retain(stream);
    array = producer_take(state, object, stream, number);
    gg_stream_release(stream);
    Py_XDECREF(number);
    return array;
}
