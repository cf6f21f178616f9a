/* hip.c: AMD's half of the twins: names, numbers, and the functions whose prototypes are its own.
 * HIP has a current device instead of a current context; what torch or others made current in the
 * thread is restored. */
#include "hip_driver.h"
#include "hip_probe.h"
#include "hip_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hip_driver hip;

enum hip_old {
#define OLD(name, value) OLD_##name = value,
#define NEW(name, value)
#include "hip_layouts.def"
#undef OLD
#undef NEW
};

enum hip_new {
#define OLD(name, value)
#define NEW(name, value) NEW_##name = value,
#include "hip_layouts.def"
#undef OLD
#undef NEW
};

/* HIP 6 changed two structs and an enum. Its version number is not trusted to say so: another maker's
 * HIP has its own. */
static bool is_new(void)
{
    return hip.properties_0600 != NULL;
}

/* ---- contexts: the ordinal plus one, so that none is NULL ----------------------------------------- */

static void *context_of(int device)
{
    return (void *)(uintptr_t)((unsigned)device + 1);
}

static int32_t hip_context_ordinal(void *context)
{
    const uintptr_t ordinal = (uintptr_t)context - 1;
    return ordinal < (uintptr_t)twin_device_count ? (int32_t)ordinal : -1;
}

static int hip_context_retain(int device, void **out)
{
    *out = context_of(device);
    return 0;
}

static int hip_context_release(int device)
{
    (void)device; /* it is the runtime's own, and other code may be using it */
    return 0;
}

static int hip_context_get(void **current)
{
    int device = 0;
    const int code = hip.device_now(&device);
    if (!code)
        *current = context_of(device);
    return code;
}

static int hip_context_set(void *context)
{
    return context ? hip.device_set((int)((uintptr_t)context - 1)) : 0;
}

static int hip_context_record(void *context, void *event)
{
    (void)context;
    (void)event;
    return hipErrorNotSupported;
}

/* ---- facts -------------------------------------------------------------------------------------- */

static void hip_version_text(int version, char *out, size_t size)
{
    snprintf(out, size, "%d.%d.%d", version / HIP_MAJOR, version % HIP_MAJOR / HIP_MINOR,
             version % HIP_MINOR);
}

/* A name such as gfx90a:sramecc+:xnack-, and not what lies there in a struct of another layout. */
static bool is_arch(const char *text, size_t room)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_:+-";
    const size_t length = strnlen(text, room);
    return length > 3 && length < room && text[0] >= 'a' && text[0] <= 'z' &&
           strspn(text, letters) == length && strpbrk(text, "0123456789");
}

static int hip_device_arch(int device, char *out, size_t size)
{
    enum { ROOM = 4096 }; /* far more than any version's struct */
    char *properties = calloc(1, ROOM);
    int (*ask)(void *properties, int device) = is_new() ? hip.properties_0600 : hip.properties_0000;
    const char *arch =
        properties + (is_new() ? (int)NEW_HIP_PROPERTIES_ARCH : (int)OLD_HIP_PROPERTIES_ARCH);
    if (!properties)
        return hipErrorOutOfMemory;
    const int code = ask ? ask(properties, device) : 0;
    out[0] = '\0';
    if (!code && is_arch(arch, size))
        snprintf(out, size, "%s", arch);
    free(properties);
    return code;
}

static int hip_device_uuid(int device, uint8_t uuid[16], bool *known)
{
    *known = hip.uuid && !twin_clear(hip.uuid(uuid, device));
    return 0;
}

static void hip_device_native(int device, void *context, uint64_t handles[4])
{
    (void)context;
    handles[0] = (uint64_t)device;
}

/* ---- pointers ----------------------------------------------------------------------------------- */

struct pointer { /* hipPointerAttribute_t of all versions; a later one may be longer */
    int type, device;
    void *device_pointer, *host_pointer;
    int managed;
    unsigned flags;
    char more[224];
};

static enum gg_memory_kind kind_of(const struct pointer *pointer)
{
    const int host = is_new() ? (int)NEW_HIP_MEMORY_HOST : (int)OLD_HIP_MEMORY_HOST;
    if (pointer->managed || (is_new() && pointer->type == NEW_HIP_MEMORY_MANAGED))
        return GG_MEMORY_MANAGED;
    if (pointer->type == host)
        return GG_MEMORY_PINNED;
    return is_new() && pointer->type < host ? GG_MEMORY_HOST : GG_MEMORY_DEVICE;
}

/* Up to HIP 5 an unknown pointer is an error, from HIP 6 on it is of type 0, "unregistered". */
static int hip_pointer_info(const void *pointer, struct gg_pointer_info *info)
{
    struct pointer found = {.device = -1};
    void *base = NULL;
    size_t size = 0;
    if (!hip.pointer_attributes)
        return hipErrorNotSupported;
    const int code = twin_clear(hip.pointer_attributes(&found, pointer));
    if (code && code != hipErrorInvalidValue)
        return code;
    info->kind = code ? GG_MEMORY_HOST : kind_of(&found);
    if (info->kind == GG_MEMORY_HOST)
        return 0;
    info->device = found.device;
    void *address = (void *)(uintptr_t)pointer;
    if (hip.address_range && !twin_clear(hip.address_range(&base, &size, address))) {
        info->base = base;
        info->size = size;
    }
    return 0;
}

/* ---- host functions before HIP had them ---------------------------------------------------------- */

struct call {
    void (*function)(void *);
    void *argument;
};

/* Called also where the stream has failed: the function may be what others wait for. */
static void run_call(void *stream, int code, void *argument)
{
    const struct call call = *(struct call *)argument;
    (void)stream;
    (void)code;
    free(argument);
    call.function(call.argument);
}

static int hip_host_func(void *stream, void (*function)(void *), void *argument)
{
    if (!hip.add_callback)
        return hipErrorNotSupported;
    struct call *call = malloc(sizeof *call);
    if (!call)
        return hipErrorOutOfMemory;
    *call = (struct call){function, argument};
    const int code = hip.add_callback(stream, run_call, call, 0);
    if (code)
        free(call);
    return code;
}

static void hip_clear_error(void)
{
    if (hip.last_error)
        hip.last_error();
}

static int hip_suggest(void *function, size_t shared, int limit, int *blocks, int *threads)
{
    return hip.function_suggest ? hip.function_suggest(blocks, threads, function, shared, limit)
                                : hipErrorNotSupported;
}

static bool hip_supports(gg_op op)
{
    if (op == GG_OP_kernel_parameter || op == GG_OP_kernel_allow_shared || op == GG_OP_module_names)
        return false; /* the image tells; there is no further memory to be had */
    if (op == GG_OP_kernel_suggest)
        return hip.function_suggest != NULL;
    if (op == GG_OP_device_record)
        return false;
    if (op == GG_OP_peer_enable || op == GG_OP_copy_peer)
        return hip.peer_enable && hip.copy_peer;
    if (op == GG_OP_copy_region)
        return hip.copy_2d && hip.copy_3d;
    if (op == GG_OP_stream_host_func)
        return hip.add_callback != NULL;
    return op != GG_OP_pointer_info || hip.pointer_attributes != NULL;
}

/* ---- the plugin --------------------------------------------------------------------------------- */

static const struct gg_symbol symbols[] = {
#define FN(slot, parameters, cuda, hip, need, context) \
    {#hip, offsetof(struct twin_driver, slot), need},
#include "../cuda_hip/driver.def"
#undef FN
};

static const struct gg_symbol own_symbols[] = {
#define OWN(slot, parameters, symbol, need) {#symbol, offsetof(struct hip_driver, slot), need},
#include "hip.def"
#undef OWN
};

static const struct twin_error errors[] = {
#define ERROR(name, code, status, text) {code, status, #name, text},
#include "hip_errors.def"
#undef ERROR
};

static const int attributes[GG_ATTR_COUNT] = {
    [GG_ATTR_WARP_SIZE] = hipDeviceAttributeWarpSize,
    [GG_ATTR_MULTIPROCESSORS] = hipDeviceAttributeMultiprocessorCount,
    [GG_ATTR_MAX_THREADS_PER_BLOCK] = hipDeviceAttributeMaxThreadsPerBlock,
    [GG_ATTR_MAX_BLOCK_X] = hipDeviceAttributeMaxBlockDimX,
    [GG_ATTR_MAX_BLOCK_Y] = hipDeviceAttributeMaxBlockDimY,
    [GG_ATTR_MAX_BLOCK_Z] = hipDeviceAttributeMaxBlockDimZ,
    [GG_ATTR_MAX_GRID_X] = hipDeviceAttributeMaxGridDimX,
    [GG_ATTR_MAX_GRID_Y] = hipDeviceAttributeMaxGridDimY,
    [GG_ATTR_MAX_GRID_Z] = hipDeviceAttributeMaxGridDimZ,
    [GG_ATTR_SHARED_MEMORY_PER_BLOCK] = hipDeviceAttributeMaxSharedMemoryPerBlock,
    [GG_ATTR_CLOCK_KHZ] = hipDeviceAttributeClockRate,
    [GG_ATTR_COMPUTE_MAJOR] = hipDeviceAttributeComputeCapabilityMajor,
    [GG_ATTR_COMPUTE_MINOR] = hipDeviceAttributeComputeCapabilityMinor,
    [GG_ATTR_ASYNC_ENGINES] = hipDeviceAttributeAsyncEngineCount,
    [GG_ATTR_MANAGED_MEMORY] = hipDeviceAttributeManagedMemory,
    [GG_ATTR_CONCURRENT_KERNELS] = hipDeviceAttributeConcurrentKernels,
    [GG_ATTR_SHARED_MEMORY_OPTIN] = -1,
    [GG_ATTR_COOPERATIVE_LAUNCH] = hipDeviceAttributeCooperativeLaunch,
};

/* The directories handed in come first: torch's and AMD's wheels bring a copy of their own, and two in
 * one process do not work. The unversioned name is that of torch's copy and of development packages. */
static const char *const library_names[] = {"libamdhip64.so.8", "libamdhip64.so.7",
                                            "libamdhip64.so.6", "libamdhip64.so.5",
                                            "libamdhip64.so",   NULL};
static const char *const library_directories[] = {"$CONDA_PREFIX/lib",    "$ROCM_PATH/lib",
                                                  "$ROCM_HOME/lib",       "$HIP_PATH/lib",
                                                  "/opt/rocm/lib",        "/opt/rocm-*/lib",
                                                  "/opt/rocm/core-*/lib", "/opt/rocm/hip/lib",
                                                  "/usr/lib/wsl/lib",     NULL};

const struct twin twin = {
    .name = "hip",
    .library = {.struct_size = sizeof(struct gg_library_spec),
                .flags = GG_LIBRARY_HANDED_IN,
                .names = library_names,
                .variable = "GPUGLUE_HIP_LIBRARY",
                .stem = "libamdhip64",
                .directories = library_directories},
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .own_symbols = own_symbols,
    .own_symbol_count = sizeof own_symbols / sizeof own_symbols[0],
    .own = &hip,
    .errors = errors,
    .error_count = sizeof errors / sizeof errors[0],
    .invalid_value = hipErrorInvalidValue,
    .not_ready = hipErrorNotReady,
    .not_supported = hipErrorNotSupported,
    .attributes = attributes,
    .integrated = hipDeviceAttributeIntegrated,
    .word_attribute = -1,
    .writes_words = false, /* documented for signal memory only */
    .stream_nonblocking = hipStreamNonBlocking,
    .event_no_timing = hipEventDisableTiming,
    .event_blocking = hipEventBlockingSync,
    .pinned_flags = hipHostMallocPortable,
    .managed_flags = hipMemAttachGlobal,
    .register_flags = hipHostRegisterPortable,
    .capture_relaxed = hipStreamCaptureModeRelaxed,
    .version_min = HIP_OLDEST * HIP_MAJOR,
    .default_stream = 0, /* the null stream; handle 1 came late, and 2 means other things to others */
    .per_thread_stream = 0,
    .version_text = hip_version_text,
    .explain = hip_explain,
    .in_vain = hip_in_vain,
    .remark = hip_remark,
    .device_arch = hip_device_arch,
    .device_uuid = hip_device_uuid,
    .device_native = hip_device_native,
    .context_retain = hip_context_retain,
    .context_release = hip_context_release,
    .context_get = hip_context_get,
    .context_set = hip_context_set,
    .context_ordinal = hip_context_ordinal,
    .context_record = hip_context_record,
    .pointer_info = hip_pointer_info,
    .copy_region = hip_copy_region,
    .peer_enable = hip_peer_enable,
    .peer_enabled = hipErrorPeerAccessAlreadyEnabled,
    .copy_peer = hip_copy_peer,
    .host_func = hip_host_func,
    .clear_error = hip_clear_error,
    .suggest = hip_suggest,
    .not_found = hipErrorNotFound,
    .supports = hip_supports,
};

static const struct gg_backend_desc hip_backend = {
    .magic = GG_BACKEND_MAGIC,
    .struct_size = sizeof(struct gg_backend_desc),
    .abi_major = GG_BACKEND_ABI_MAJOR,
    .abi_minor = GG_BACKEND_ABI_MINOR,
    .priority = 200,
    .name = "hip",
    .version = GG_VERSION,
    .ops = &twin_ops,
};

int gg_backend_query(uint32_t core_abi, const struct gg_host_api *host,
                     const struct gg_backend_desc **out)
{
    if (core_abi >> 16 != GG_ABI_MAJOR || host->struct_size < sizeof *host)
        return 1;
    twin_host = host;
    *out = &hip_backend;
    return 0;
}
