/* dlpack_import.c: other libraries' DLPack tensors become GPUArrays over their memory. The producer's deleter
 * runs under the GIL, once gpuglue's last reference and its queued work are gone. */
#include "array.h"
#include "dlpack.h"
#include "numpy_bridge.h"

/* ---- what was taken --------------------------------------------------------------------------- */

static const char taken_versioned[] = "gpuglue.taken_versioned", taken_legacy[] = "gpuglue.taken";

/* A deleter may be Python, which must not meet the exception that the tensor is refused with. */
static void drop_versioned(PyObject *capsule)
{
    struct dl_managed_versioned *managed = PyCapsule_GetPointer(capsule, taken_versioned);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (managed->deleter)
        managed->deleter(managed);
    PyErr_Restore(type, value, trace);
}

static void drop_legacy(PyObject *capsule)
{
    struct dl_managed *managed = PyCapsule_GetPointer(capsule, taken_legacy);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (managed->deleter)
        managed->deleter(managed);
    PyErr_Restore(type, value, trace);
}

/* A tensor that is ours now: freeing keep calls its deleter. */
struct taken {
    PyObject *keep;
    const struct dl_tensor *tensor;
    bool readonly, unversioned;
};

/* The struct of a version that is not known is not looked into, but for its deleter. */
static int take_versioned(struct dl_managed_versioned *managed, struct taken *out)
{
    const uint32_t major = managed->version.major, minor = managed->version.minor;
    out->keep = PyCapsule_New(managed, taken_versioned, drop_versioned);
    if (!out->keep) {
        if (managed->deleter)
            managed->deleter(managed);
        return -1;
    }
    if (major != DL_MAJOR) {
        Py_CLEAR(out->keep);
        PyErr_Format(PyExc_BufferError,
                     "the tensor is of DLPack %u.%u: gpuglue takes version 1, and 0 as "
                     "an unversioned capsule",
                     major, minor);
        return -1;
    }
    out->tensor = &managed->tensor;
    out->readonly = managed->flags & DL_READ_ONLY;
    out->unversioned = false;
    return 0;
}

/* It cannot say whether it may be written: @p readonly. */
static int take_legacy(struct dl_managed *managed, bool readonly, struct taken *out)
{
    out->keep = PyCapsule_New(managed, taken_legacy, drop_legacy);
    if (!out->keep) {
        if (managed->deleter)
            managed->deleter(managed);
        return -1;
    }
    out->tensor = &managed->tensor;
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
    if (!PyCapsule_CheckExact(capsule)) {
        PyErr_Format(PyExc_TypeError, "__dlpack__ gave a %R, expected a capsule", Py_TYPE(capsule));
        return -1;
    }
    name = PyCapsule_GetName(capsule);
    PyErr_Clear();
    PyErr_Format(
        PyExc_BufferError,
        "a capsule named \"%s\" is no DLPack tensor, or one that was taken already: each is "
        "taken once",
        name ? name : "");
    return -1;
}

/* ---- from a tensor to an array ---------------------------------------------------------------- */

static int refuse(const char *why)
{
    PyErr_Format(PyExc_BufferError, "the DLPack tensor is not valid: %s", why);
    return -1;
}

struct geometry {
    Py_ssize_t shape[PY_MAX_DIMS], strides[PY_MAX_DIMS]; /* strides in bytes */
    Py_ssize_t low, high; /* the first byte and the one behind the last, from element 0 */
    bool empty;
};

static int read_lengths(const struct dl_tensor *tensor, struct geometry *out)
{
    if (tensor->ndim < 0)
        return refuse("ndim is negative");
    if (tensor->ndim > numpy_max_dims())
        return refuse("it has more dimensions than NumPy");
    if (tensor->ndim && !tensor->shape)
        return refuse("shape is NULL");
    out->empty = false;
    for (int i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] < 0)
            return refuse("a length is negative");
        out->shape[i] = tensor->shape[i];
        out->empty = out->empty || !tensor->shape[i];
    }
    return 0;
}

/* NULL strides, which tensors had before 1.2: in C order. */
static int read_strides(const struct dl_tensor *tensor, Py_ssize_t itemsize, struct geometry *out)
{
    Py_ssize_t run = itemsize;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        if (!tensor->strides)
            out->strides[i] = run;
        else if (__builtin_mul_overflow(tensor->strides[i], itemsize, &out->strides[i]))
            return refuse("a stride does not fit in 63 bits");
        if (__builtin_mul_overflow(run, out->shape[i] ? out->shape[i] : 1, &run))
            return refuse("its size does not fit in 63 bits");
    }
    return 0;
}

static int measure(const struct dl_tensor *tensor, Py_ssize_t itemsize, struct geometry *out)
{
    out->low = 0;
    out->high = out->empty ? 0 : itemsize;
    for (int i = 0; i < tensor->ndim && !out->empty; i++) {
        Py_ssize_t reach;
        if (__builtin_mul_overflow(out->shape[i] - 1, out->strides[i], &reach) ||
            __builtin_add_overflow(reach < 0 ? out->low : out->high, reach,
                                   reach < 0 ? &out->low : &out->high))
            return refuse("its extent does not fit in 63 bits");
    }
    if (!out->empty && !tensor->data)
        return refuse("data is NULL, but there are elements");
    return 0;
}

/* Takes over taken->keep, also on failure. */
static PyObject *array_of(struct py_state *state, struct taken *taken, gg_device *device,
                          enum gg_memory_kind kind, PyObject *dtype, const struct geometry *geometry)
{
    const struct dl_tensor *tensor = taken->tensor;
    char *first = geometry->empty ? NULL : (char *)tensor->data + tensor->byte_offset;
    char *block = first ? first + geometry->low : NULL;
    gg_memory *memory = NULL;
    struct py_array *array;
    gg_status status = gg_memory_wrap(device, kind, block, (size_t)(geometry->high - geometry->low),
                                      py_owner_release, taken->keep, &memory);
    if (status) {
        Py_CLEAR(taken->keep);
        return py_raise(state, status);
    }
    taken->keep = NULL;
    array = py_array_over(state->array_type, memory, (size_t)-geometry->low, dtype, tensor->ndim,
                          geometry->shape, geometry->strides);
    gg_memory_release(memory);
    if (!array)
        return NULL;
    array->readonly = taken->readonly;
    array->unversioned = taken->unversioned;
    array->wrapped = true;
    return (PyObject *)array;
}

static PyObject *wrap_on(struct py_state *state, struct taken *taken, gg_device *device,
                         enum gg_memory_kind kind)
{
    const struct dl_tensor *tensor = taken->tensor;
    PyObject *dtype = py_dl_numpy(tensor->dtype), *array = NULL;
    struct geometry geometry;
    const Py_ssize_t itemsize = dtype ? numpy_itemsize(dtype) : 0;
    if (dtype && !read_lengths(tensor, &geometry) && !read_strides(tensor, itemsize, &geometry) &&
        !measure(tensor, itemsize, &geometry))
        array = array_of(state, taken, device, kind, dtype, &geometry);
    Py_XDECREF(dtype);
    return array;
}

/* An array over a tensor that was taken; @p device gets its device. */
static PyObject *wrap(struct py_state *state, struct taken *taken, gg_device **device)
{
    enum gg_memory_kind kind;
    PyObject *array = NULL;
    if (!py_vendor_find(state, taken->tensor->device, device, &kind))
        array = wrap_on(state, taken, *device, kind);
    Py_XDECREF(taken->keep);
    return array;
}

PyObject *py_dl_import(struct py_state *state, struct dl_managed_versioned *managed,
                       gg_device **device)
{
    struct taken taken;
    return take_versioned(managed, &taken) ? NULL : wrap(state, &taken, device);
}

/* ---- __dlpack__ ----------------------------------------------------------------------------------- */

static int read_producer_device(PyObject *object, struct dl_device *out)
{
    PyObject *pair = PyObject_CallMethod(object, "__dlpack_device__", NULL), *type;
    int failed = -1;
    if (!pair)
        return -1;
    type = PyTuple_Check(pair) && PyTuple_Size(pair) == 2
               ? PyNumber_Index(PyTuple_GetItem(pair, 0)) /* often an IntEnum */
               : NULL;
    if (type) {
        out->type = (int32_t)PyLong_AsLong(type);
        out->id = (int32_t)PyLong_AsLong(PyTuple_GetItem(pair, 1));
        failed = PyErr_Occurred() ? -1 : 0;
        Py_DECREF(type);
    } else if (!PyErr_Occurred())
        PyErr_Format(PyExc_BufferError, "__dlpack_device__ gave %R, expected a pair of ints", pair);
    Py_DECREF(pair);
    return failed;
}

/* The stream that the producer is asked to make wait, as its vendor writes it; NULL for none to give. */
static int stream_value(struct py_state *state, gg_device *device, gg_stream *stream, PyObject **out)
{
    const struct py_vendor *vendor = py_vendor_of(device);
    uint64_t handles[4] = {0};
    *out = NULL;
    if (!vendor->streams)
        return 0;
    if (py_check(state, gg_stream_native(stream, handles)))
        return -1;
    if (!handles[0] && vendor->null_is_one)
        handles[0] = 1;
    *out = PyLong_FromUnsignedLongLong(handles[0]);
    return *out ? 0 : -1;
}

static PyObject *call_dlpack(PyObject *object, PyObject *stream, bool new_style)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__"), *none = PyTuple_New(0), *names,
             *capsule = NULL;
    names = new_style ? Py_BuildValue("{s(ii)}", "max_version", DL_MAJOR, DL_MINOR) : PyDict_New();
    if (method && none && names && (!stream || !PyDict_SetItemString(names, "stream", stream)))
        capsule = PyObject_Call(method, none, names);
    Py_XDECREF(names);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

/* Who knows of versions and gives none may hide that its array is not to be written, as JAX does. */
static PyObject *ask_for_capsule(PyObject *object, PyObject *stream, bool *knows_versions)
{
    PyObject *capsule = call_dlpack(object, stream, true);
    *knows_versions = true;
    if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError))
        return capsule;
    *knows_versions = false;
    PyErr_Clear(); /* a producer from before version 1 */
    return call_dlpack(object, stream, false);
}

/* The producer has made the stream wait, so what comes on other streams of ours has to wait for it. */
static PyObject *take_from(struct py_state *state, PyObject *object, gg_stream *stream,
                           PyObject *stream_number)
{
    bool knows_versions;
    PyObject *capsule = ask_for_capsule(object, stream_number, &knows_versions), *array;
    struct taken taken;
    gg_device *device;
    if (!capsule)
        return NULL;
    array = take_capsule(capsule, knows_versions, &taken) ? NULL : wrap(state, &taken, &device);
    Py_DECREF(capsule);
    if (array && stream_number && device == gg_stream_device(stream) &&
        py_check(state, gg_memory_record_use(py_array_of(array)->memory, stream)))
        Py_CLEAR(array);
    return array;
}

PyObject *py_from_dlpack(struct py_state *state, PyObject *object, gg_stream *stream)
{
    struct dl_device where = {0};
    enum gg_memory_kind kind;
    gg_device *device;
    PyObject *number = NULL, *array;
    if (numpy_load() || read_producer_device(object, &where) ||
        py_vendor_find(state, where, &device, &kind))
        return NULL;
    if (!stream && py_check(state, gg_current_stream(device, &stream)))
        return NULL;
    if (gg_stream_device(stream) != device) {
        py_invalid(state, "the stream is of another device than the array");
        return NULL;
    }
    if (!py_dl_is_host(where.type) && stream_value(state, device, stream, &number))
        return NULL;
    gg_stream_retain(stream);
    array = take_from(state, object, stream, number);
    gg_stream_release(stream);
    Py_XDECREF(number);
    return array;
}
