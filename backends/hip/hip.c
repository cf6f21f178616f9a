/* hip.c: what is specific to HIP: names, numbers, and functions with other prototypes than CUDA's. HIP has a
 * current device instead of a current context. */
#include "hip_driver.h"
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

/* HIP 6 changed two structs and some numbers. The version number does not show it: other implementations of HIP have
 * their own. */
static bool hip_is_6_or_newer(void)
{
    return hip.properties_0600 != NULL;
}

/* ---- contexts: the ordinal plus one, so that no context is NULL ----------------------------------------- */

static void *hip_context_of(int device)
{
    return (void *)(uintptr_t)((unsigned)device + 1);
}

static int32_t hip_context_ordinal(void *context)
{
    const uintptr_t ordinal = (uintptr_t)context - 1;
    return ordinal < (uintptr_t)cuhip_device_count ? (int32_t)ordinal : -1;
}

static int hip_context_retain(int device, void **out)
{
    *out = hip_context_of(device);
    return 0;
}

static int hip_context_release(int device)
{
    (void)device; /* it belongs to the runtime, and other code may use it */
    return 0;
}

static int hip_context_get(void **current)
{
    int device = 0;
    const int code = hip.device_now(&device);
    if (!code)
        *current = hip_context_of(device);
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

/* True for a name such as gfx90a:sramecc+:xnack-, false for other bytes in a struct of another layout. */
static bool arch_is_valid(const char *text, size_t room)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_:+-";
    const size_t length = strnlen(text, room);
    return length > 3 && length < room && text[0] >= 'a' && text[0] <= 'z' &&
           strspn(text, letters) == length && strpbrk(text, "0123456789");
}

static int hip_device_arch(int device, char *out, size_t size)
{
    enum { ROOM = 4096 }; /* much more than any version's struct */
    char *properties = calloc(1, ROOM);
    int (*get_properties)(void *properties, int device) =
        hip_is_6_or_newer() ? hip.properties_0600 : hip.properties_0000;
    const char *arch = properties + (hip_is_6_or_newer() ? (int)NEW_HIP_PROPERTIES_ARCH
                                                         : (int)OLD_HIP_PROPERTIES_ARCH);
    if (!properties)
        return hipErrorOutOfMemory;
    const int code = get_properties ? get_properties(properties, device) : 0;
    out[0] = '\0';
    if (!code && arch_is_valid(arch, size))
        snprintf(out, size, "%s", arch);
    free(properties);
    return code;
}

/* AMD's runtime returns text: the 16 hexadecimal digits that rocminfo shows behind "GPU-", or "XX" for a device that has
 * no UUID. Other implementations of HIP return 16 bytes. */
static void uuid_read(const char text[17], uint8_t uuid[16])
{
    uint64_t number = 0;
    memcpy(uuid, text, 16);
    if (strspn(text, "0123456789abcdef") != 16)
        return;
    number = strtoull(text, NULL, 16);
    for (int i = 15; i >= 0; i--, number >>= 8)
        uuid[i] = (uint8_t)number;
}

static int hip_device_uuid(int device, uint8_t uuid[16], bool *known)
{
    char text[17] = "";
    *known = hip.uuid && !cuhip_clear_error(hip.uuid(text, device)) && strcmp(text, "XX") != 0;
    if (*known)
        uuid_read(text, uuid);
    return 0;
}

static void hip_device_native(int device, void *context, uint64_t handles[4])
{
    (void)context;
    handles[0] = (uint64_t)device;
}

/* ---- events ------------------------------------------------------------------------------------- */

/* From 6.2 on hipEventQuery reads the stream that the event was recorded on, which may have been destroyed, and HIP 6
 * invalidates a capture that runs there now. The time from an event to itself is not ready in the same cases, and
 * is found without the stream. It is not valid for borrowed events without timing, and after no record. */
static int hip_event_query(void *event)
{
    float none;
    const int code = cuhip_driver.event_elapsed(&none, event, event);
    if (code != hipErrorInvalidHandle)
        return code;
    cuhip_clear_error(code);
    return cuhip_driver.event_query(event);
}

/* ---- pointers ----------------------------------------------------------------------------------- */

struct pointer { /* hipPointerAttribute_t of all versions; a later one may be longer */
    int type, device;
    void *device_pointer, *host_pointer;
    int managed;
    unsigned flags;
    char more[224];
};

static enum gg_memory_kind pointer_kind(const struct pointer *pointer)
{
    const int host = hip_is_6_or_newer() ? (int)NEW_HIP_MEMORY_HOST : (int)OLD_HIP_MEMORY_HOST;
    if (pointer->managed || (hip_is_6_or_newer() && pointer->type == NEW_HIP_MEMORY_MANAGED))
        return GG_MEMORY_MANAGED;
    if (pointer->type == host)
        return GG_MEMORY_PINNED;
    return hip_is_6_or_newer() && pointer->type < host ? GG_MEMORY_HOST : GG_MEMORY_DEVICE;
}

/* Up to HIP 5 an unknown pointer is an error, from HIP 6 on it is of type 0, "unregistered". */
/* Not every kind of memory has a range. */
static int hip_address_range(const void *pointer, struct gg_pointer_info *info)
{
    void *base = NULL;
    size_t size = 0;
    const int code = cuhip_clear_error(hip.address_range(&base, &size, (void *)(uintptr_t)pointer));
    if (code == hipErrorInvalidValue || code == hipErrorInvalidDevicePointer ||
        code == hipErrorNotFound)
        return 0;
    info->base = base;
    info->size = size;
    return code;
}

static int hip_pointer_info(const void *pointer, struct gg_pointer_info *info)
{
    struct pointer found = {.device = -1};
    if (!hip.pointer_attributes)
        return hipErrorNotSupported;
    const int code = cuhip_clear_error(hip.pointer_attributes(&found, pointer));
    if (code && code != hipErrorInvalidValue)
        return code;
    info->kind = code ? GG_MEMORY_HOST : pointer_kind(&found);
    if (info->kind == GG_MEMORY_HOST)
        return 0;
    info->device = found.device;
    return hip.address_range ? hip_address_range(pointer, info) : 0;
}

static unsigned hip_ipc_flags(void)
{
    return hip_is_6_or_newer() ? NEW_HIP_IPC_LAZY_PEER_ACCESS : OLD_HIP_IPC_LAZY_PEER_ACCESS;
}

/* ---- host functions in versions of HIP without them ---------------------------------------------------------- */

struct call {
    void (*function)(void *);
    void *argument;
};

/* Also called if the stream has failed: other code may wait for the function. */
static void host_call_run(void *stream, int code, void *argument)
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
    const int code = hip.add_callback(stream, host_call_run, call, 0);
    if (code)
        free(call);
    return code;
}

/* From HIP 7 on "not ready" is not recorded, and a successful call keeps what is: the last error may be the
 * application's. */
static void hip_clear_error(int code)
{
    if (hip.peek_error && hip.last_error && hip.peek_error() == code)
        hip.last_error();
}

static int hip_suggest(void *function, size_t shared, int limit, int *blocks, int *threads)
{
    return hip.function_suggest ? hip.function_suggest(blocks, threads, function, shared, limit)
                                : hipErrorNotSupported;
}

static int hip_exec_create(void **exec, void *graph)
{
    return hip.exec_create ? hip.exec_create(exec, graph, NULL, NULL, 0) : hipErrorNotSupported;
}

static int hip_exec_update(void *exec, void *graph)
{
    void *node = NULL;
    int result = 0;
    return hip.exec_update ? hip.exec_update(exec, graph, &node, &result) : hipErrorNotSupported;
}

static bool hip_supports(gg_op op)
{
    if (op == GG_OP_capture_begin)
        return hip.exec_create != NULL;
    if (op == GG_OP_graph_update)
        return hip.exec_update != NULL;
    if (op == GG_OP_kernel_parameter || op == GG_OP_kernel_allow_shared || op == GG_OP_module_names)
        return false; /* the image describes parameters and names; the limit of shared memory is fixed */
    if (op == GG_OP_kernel_suggest_block_size)
        return hip.function_suggest != NULL;
    if (op == GG_OP_device_record || op == GG_OP_pointer_known)
        return false;
    if (op == GG_OP_device_stats)
        return cuhip_driver.device_pci && hip_has_stats();
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
    {#hip, offsetof(struct cuhip_driver, slot), need},
#include "../cuda_hip/driver.def"
#undef FN
};

static const struct gg_symbol own_symbols[] = {
#define OWN(slot, parameters, symbol, need) {#symbol, offsetof(struct hip_driver, slot), need},
#include "hip.def"
#undef OWN
};

static const struct cuhip_error errors[] = {
#define ERROR(name, code, status, text) {code, status, #name, text},
#include "hip_errors.def"
#undef ERROR
};

static const int attributes[GG_ATTR_COUNT] = {
#define NUMBER(name, value)
#define ATTRIBUTE(attribute, name, value) [GG_ATTR_##attribute] = name,
#include "hip_numbers.def"
#undef ATTRIBUTE
#undef NUMBER
    [GG_ATTR_SHARED_MEMORY_OPTIN] = -1,
};

/* Added directories come first: the wheels of torch and AMD contain a copy, and two copies in one process do not
 * work. torch's copy and development packages have the unversioned name. */
static const char *const library_names[] = {"libamdhip64.so.8", "libamdhip64.so.7",
                                            "libamdhip64.so.6", "libamdhip64.so.5",
                                            "libamdhip64.so",   NULL};
static const char *const library_directories[] = {"$CONDA_PREFIX/lib",    "$ROCM_PATH/lib",
                                                  "$ROCM_HOME/lib",       "$HIP_PATH/lib",
                                                  "/opt/rocm/lib",        "/opt/rocm-*/lib",
                                                  "/opt/rocm/core-*/lib", "/opt/rocm/hip/lib",
                                                  "/usr/lib/wsl/lib",     NULL};

static const char *const comm_names[] = {"librccl.so.1", NULL};
static const char *const comm_directories[] = {"/opt/rocm/lib", "/opt/rocm-*/lib", NULL};

const struct cuhip_vendor cuhip = {
    .name = "hip",
    .priority = 200,
    .aliases = "rocm,amd",
    .library = {.struct_size = sizeof(struct gg_library_spec),
                .flags = GG_LIBRARY_ADDED_DIRECTORIES,
                .names = library_names,
                .variable = "GPUGLUE_HIP_LIBRARY",
                .stem = "libamdhip64",
                .directories = library_directories},
    .comm_name = "rccl",
    .comm_library = {.struct_size = sizeof(struct gg_library_spec),
                     .flags = GG_LIBRARY_ADDED_DIRECTORIES,
                     .names = comm_names,
                     .variable = "GPUGLUE_RCCL_LIBRARY",
                     .stem = "librccl",
                     .directories = comm_directories},
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
    .registered_attribute = hipDeviceAttributeCanUseHostPointerForRegisteredMem,
    .word_attribute = -1,
    .writes_words = false, /* documented for signal memory only */
    .stream_nonblocking = hipStreamNonBlocking,
    .event_no_timing = 0, /* hip_event_query needs it; HIP measures the times in any case */
    .event_blocking = hipEventBlockingSync,
    /* With Portable alone it is not coherent: a kernel would not see what the host writes meanwhile. */
    .pinned_flags = hipHostMallocPortable | hipHostMallocCoherent,
    .advice_coarse = hipMemAdviseSetCoarseGrain,
    .managed_flags = hipMemAttachGlobal,
    .register_flags = hipHostRegisterPortable,
    .capture_relaxed = hipStreamCaptureModeRelaxed,
    .capture_error_first = hipErrorStreamCaptureUnsupported,
    .capture_error_last = hipErrorStreamCaptureWrongThread,
    .captures_partly = true,
    .updates_partly = true,
    .version_min = HIP_OLDEST * HIP_MAJOR,
    .default_stream =
        0, /* the null stream; old versions lack handle 1, and the meaning of 2 differs */
    .per_thread_stream = 0,
    .version_text = hip_version_text,
    .diagnose = hip_diagnose,
    .skip_reason = hip_skip_reason,
    .add_notes = hip_add_notes,
    .check_bundle = hip_check_bundle,
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
    .ipc_flags = hip_ipc_flags,
    .copy_region = hip_copy_region,
    .peer_enable = hip_peer_enable,
    .peer_enabled = hipErrorPeerAccessAlreadyEnabled,
    .copy_peer = hip_copy_peer,
    .host_func = hip_host_func,
    .event_query = hip_event_query,
    .clear_error = hip_clear_error,
    .suggest = hip_suggest,
    .not_found = hipErrorNotFound,
    .exec_create = hip_exec_create,
    .exec_update = hip_exec_update,
    .stats = hip_stats,
    .range_tool = hip_range_tool,
    .supports = hip_supports,
};
