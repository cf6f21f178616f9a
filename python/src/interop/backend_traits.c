/* backend_traits.c: how DLPack and the CUDA Array Interface name each backend: the only table of the binding. */
#include "interop/backend_traits.h"
#include "runtime/device.h"
#include "runtime/registry.h"

static const struct py_backend_traits all_traits[] = {
    {.backend = "cuda",
     .device = kDLCUDA,
     .pinned = kDLCUDAHost,
     .managed = kDLCUDAManaged,
     .has_ordinals = true,
     .has_streams = true,
     .cuda_like = true,
     .null_is_one = true},
    {.backend = "hip",
     .device = kDLROCM,
     .pinned = kDLROCMHost,
     .managed = kDLROCM,
     .has_ordinals = true,
     .has_streams = true,
     .cuda_like = true},
    {.backend = "ze",
     .device = kDLOneAPI,
     .pinned = kDLOneAPI,
     .managed = kDLOneAPI,
     .has_ordinals = true,
     .sycl_numbers = true},
    {.backend = "host", .device = kDLCPU, .pinned = kDLCPU, .managed = kDLCPU},
};

const struct py_backend_traits *py_traits_of(const gg_device *device)
{
    const char *backend = gg_device_backend(device);
    for (size_t i = 0; i < sizeof all_traits / sizeof all_traits[0]; i++)
        if (!strcmp(all_traits[i].backend, backend))
            return &all_traits[i];
    return NULL;
}

const struct py_backend_traits *py_traits_or_error(const gg_device *device)
{
    const struct py_backend_traits *traits = py_traits_of(device);
    if (!traits)
        PyErr_Format(PyExc_BufferError, "DLPack has no device type for backend \"%s\"",
                     gg_device_backend(device));
    return traits;
}

/* dpctl's number of the device (gpuglue/_sycl.py), if the process uses dpctl; torch needs none. */
static int32_t sycl_number(const gg_device *device)
{
    const int32_t ordinal = gg_device_ordinal(device);
    PyObject *modules = PyImport_GetModuleDict();
    if (!modules || !PyDict_GetItemString(modules, "dpctl"))
        return ordinal;
    PyObject *module = PyImport_ImportModule("gpuglue._sycl");
    PyObject *number = module ? PyObject_CallMethod(module, "number", "i", (int)ordinal) : NULL;
    const long value = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    Py_XDECREF(module);
    if (PyErr_Occurred())
        PyErr_Clear(); /* a dpctl without devices, or of another SYCL: the ordinal is all there is */
    return value >= 0 && value <= INT32_MAX ? (int32_t)value : ordinal;
}

DLDevice py_dl_device_of(const struct py_backend_traits *traits, const gg_memory *memory)
{
    const enum gg_memory_kind kind = gg_memory_get_kind(memory);
    const DLDeviceType type = kind == GG_MEMORY_DEVICE    ? traits->device
                              : kind == GG_MEMORY_MANAGED ? traits->managed
                                                          : traits->pinned;
    const bool numbered =
        traits->has_ordinals && (type == traits->device || kind == GG_MEMORY_DEVICE);
    const gg_device *device = gg_memory_device(memory);
    if (!numbered)
        return (DLDevice){type, 0};
    return (DLDevice){type, traits->sycl_numbers ? sycl_number(device) : gg_device_ordinal(device)};
}

bool py_dl_is_host_type(DLDeviceType type)
{
    return type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost;
}

const struct py_backend_traits *py_traits_of_type(DLDeviceType type, enum gg_memory_kind *kind)
{
    for (size_t i = 0; i < sizeof all_traits / sizeof all_traits[0]; i++) {
        const struct py_backend_traits *traits = &all_traits[i];
        if (type != traits->device && type != traits->pinned && type != traits->managed)
            continue;
        *kind = type == traits->device && type != kDLCPU ? GG_MEMORY_DEVICE : GG_MEMORY_PINNED;
        if (type == traits->managed && type != traits->device)
            *kind = GG_MEMORY_MANAGED;
        return traits;
    }
    return NULL;
}

int py_dl_device_find(struct py_state *state, DLDevice device, gg_device **out,
                      enum gg_memory_kind *kind)
{
    const struct py_backend_traits *traits = py_traits_of_type(device.device_type, kind);
    const bool numbered = traits && traits->has_ordinals && *kind == GG_MEMORY_DEVICE;
    gg_status status;
    if (!traits)
        return PY_FAIL(PyExc_BufferError, "gpuglue has no backend for DLPack device type %d",
                       (int)device.device_type);
    if (py_registry_prepare(state))
        return -1;
    PY_WITHOUT_GIL(status = gg_device_get(traits->backend, numbered ? device.device_id : 0, out));
    if (status && traits->sycl_numbers)
        PY_WITHOUT_GIL(status = gg_device_get(traits->backend, 0, out));
    if (!status)
        return py_device_open(state, *out);
    struct gg_error error = {.struct_size = sizeof error};
    gg_last_error(&error);
    return PY_FAIL(PyExc_BufferError, "there is no DLPack device (%d, %d): %s",
                   (int)device.device_type, (int)device.device_id, error.message);
}

int py_dl_tensor_device(struct py_state *state, DLDevice device, const void *data, gg_device **out,
                        enum gg_memory_kind *kind)
{
    struct gg_pointer_info info = {.struct_size = sizeof info};
    const struct py_backend_traits *traits = py_traits_of_type(device.device_type, kind);
    gg_device *owner = NULL;
    gg_status status = GG_OK;
    if (py_dl_device_find(state, device, out, kind) || !data || !traits->sycl_numbers)
        return PyErr_Occurred() ? -1 : 0;
    PY_WITHOUT_GIL(status = gg_pointer_query(data, &owner, &info));
    if (py_check(state, status))
        return -1;
    if (!owner || strcmp(gg_device_backend(owner), traits->backend))
        return PY_FAIL(PyExc_BufferError,
                       "no driver of %s knows the memory at %p, which is said to be on DLPack "
                       "device (%d, %d)",
                       traits->backend, data, (int)device.device_type, (int)device.device_id);
    *out = owner;
    return py_device_open(state, owner);
}
