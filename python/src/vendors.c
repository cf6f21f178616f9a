/* vendors.c: what protocols call each backend's devices. The only place of the binding that knows. */
#include "dlpack.h"

static const struct py_vendor vendors[] = {
    {.backend = "cuda",
     .device = DL_CUDA,
     .pinned = DL_CUDA_HOST,
     .managed = DL_CUDA_MANAGED,
     .numbered = true,
     .streams = true,
     .cuda_like = true,
     .null_is_one = true},
    {.backend = "hip",
     .device = DL_ROCM,
     .pinned = DL_ROCM_HOST,
     .managed = DL_ROCM,
     .numbered = true,
     .streams = true,
     .cuda_like = true},
    {.backend = "ze",
     .device = DL_ONE_API,
     .pinned = DL_ONE_API,
     .managed = DL_ONE_API,
     .numbered = true},
    {.backend = "host", .device = DL_CPU, .pinned = DL_CPU, .managed = DL_CPU},
};

const struct py_vendor *py_vendor_of(const gg_device *device)
{
    const char *backend = gg_device_backend(device);
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
        if (!strcmp(vendors[i].backend, backend))
            return &vendors[i];
    return NULL;
}

const struct py_vendor *py_vendor_known(const gg_device *device)
{
    const struct py_vendor *vendor = py_vendor_of(device);
    if (!vendor)
        PyErr_Format(PyExc_BufferError, "DLPack has no device type for backend \"%s\"",
                     gg_device_backend(device));
    return vendor;
}

struct dl_device py_vendor_device(const struct py_vendor *vendor, const gg_memory *memory)
{
    const enum gg_memory_kind kind = gg_memory_kind_of(memory);
    const int32_t type = kind == GG_MEMORY_DEVICE    ? vendor->device
                         : kind == GG_MEMORY_MANAGED ? vendor->managed
                                                     : vendor->pinned;
    const bool numbered = vendor->numbered && (type == vendor->device || kind == GG_MEMORY_DEVICE);
    return (struct dl_device){type, numbered ? gg_device_ordinal(gg_memory_device(memory)) : 0};
}

bool py_host_reaches(const gg_memory *memory)
{
    const struct py_vendor *vendor = py_vendor_of(gg_memory_device(memory));
    return gg_memory_kind_of(memory) != GG_MEMORY_DEVICE || (vendor && vendor->device == DL_CPU);
}

bool py_dl_is_host(int32_t type)
{
    return type == DL_CPU || type == DL_CUDA_HOST || type == DL_ROCM_HOST;
}

const struct py_vendor *py_vendor_of_type(int32_t type, enum gg_memory_kind *kind)
{
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++) {
        const struct py_vendor *vendor = &vendors[i];
        if (type != vendor->device && type != vendor->pinned && type != vendor->managed)
            continue;
        *kind = type == vendor->device && type != DL_CPU ? GG_MEMORY_DEVICE : GG_MEMORY_PINNED;
        if (type == vendor->managed && type != vendor->device)
            *kind = GG_MEMORY_MANAGED;
        return vendor;
    }
    return NULL;
}

int py_vendor_find(struct py_state *state, struct dl_device device, gg_device **out,
                   enum gg_memory_kind *kind)
{
    const struct py_vendor *vendor = py_vendor_of_type(device.type, kind);
    const bool numbered = vendor && vendor->numbered && *kind == GG_MEMORY_DEVICE;
    gg_status status;
    if (!vendor) {
        PyErr_Format(PyExc_BufferError,
                     "DLPack device type %d is none that gpuglue has a backend for", device.type);
        return -1;
    }
    if (py_prepare(state))
        return -1;
    PyThreadState *thread = PyEval_SaveThread();
    status = gg_device_get(vendor->backend, numbered ? device.id : 0, out);
    PyEval_RestoreThread(thread);
    if (!status)
        return py_device_open(state, *out);
    struct gg_error error = {.struct_size = sizeof error};
    gg_last_error(&error);
    PyErr_Format(PyExc_BufferError, "the DLPack device (%d, %d) is not there: %s", device.type,
                 device.id, error.message);
    return -1;
}
