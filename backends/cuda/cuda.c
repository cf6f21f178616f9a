/* cuda.c: what is specific to CUDA: names, numbers, and functions with other prototypes than HIP's. Only the
 * driver library is used, and of each device only the primary context, which is shared with all other users of
 * the driver or the runtime in the process. */
#include "cuda_probe.h"
#include "cuda_ranges.h"
#include "cuda_stats.h"
#include "cuda_types.h"

#include <stdio.h>
#include <string.h>

static struct cuda_driver {
#define OWN(slot, parameters, symbol, need) int(*slot) parameters;
#include "cuda.def"
#undef OWN
} cuda;

/* ---- contexts ----------------------------------------------------------------------------------- */

static int cuda_context_retain(int device, void **out)
{
    return cuda.primary_retain(out, device);
}

static int cuda_context_release(int device)
{
    return cuda.primary_release ? cuda.primary_release(device) : CUDA_ERROR_NOT_SUPPORTED;
}

static int cuda_context_get(void **current)
{
    return cuda.context_get(current);
}

static int cuda_context_set(void *context)
{
    return cuda.context_set(context);
}

static int cuda_context_record(void *context, void *event)
{
    return cuda.context_record ? cuda.context_record(context, event) : CUDA_ERROR_NOT_SUPPORTED;
}

/* For a stream of a green context this is the primary one, which it belongs to. The old function returns another one,
 * and CUDA 12.4 has green contexts and no other function. */
static int cuda_stream_context(void *stream, void **context)
{
    void *green = NULL;
    int version = 0;
    if (cuda.stream_context)
        return cuda.stream_context(stream, context, &green);
    if (!cuda.stream_context_old || cuhip_driver.version(&version) || version / 10 == 1204)
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuda.stream_context_old(stream, context);
}

static int32_t cuda_device_ordinal(int device)
{
    int other = 0;
    for (int i = 0; i < cuhip_device_count; i++)
        if (cuhip_driver.device_get(&other, i) == 0 && other == device)
            return i;
    return -1;
}

static int32_t cuda_context_ordinal(void *context)
{
    int device = 0, active = 0;
    unsigned flags = 0;
    void *primary = NULL;
    if (!cuda.context_device || !cuda.primary_state || !cuda.primary_release)
        return -1;
    if (cuda.context_device(&device) || cuda.primary_state(device, &flags, &active) || !active)
        return -1;
    if (cuda.primary_retain(&primary, device)) /* the only way to get its handle */
        return -1;
    cuhip_log_failure(cuda.primary_release(device), "releasing a device's context");
    return primary == context ? cuda_device_ordinal(device) : -1;
}

/* ---- facts -------------------------------------------------------------------------------------- */

static void cuda_version_text(int version, char *out, size_t size)
{
    snprintf(out, size, "%d.%d", version / 1000, version % 1000 / 10);
}

static int cuda_device_arch(int device, char *out, size_t size)
{
    int major = 0, minor = 0;
    int code =
        cuhip_driver.device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (!code)
        code = cuhip_driver.device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                             device);
    if (!code)
        snprintf(out, size, "sm_%d%d", major, minor);
    return code;
}

static int cuda_device_uuid(int device, uint8_t uuid[16], bool *known)
{
    *known = cuda.uuid || cuda.uuid_old;
    if (!*known)
        return 0;
    return cuda.uuid ? cuda.uuid(uuid, device) : cuda.uuid_old(uuid, device);
}

static void cuda_device_native(int device, void *context, uint64_t handles[4])
{
    handles[0] = (uint64_t)device;
    handles[1] = (uintptr_t)context;
}

static bool cuda_type_is_known(unsigned type)
{
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
           type == CU_MEMORYTYPE_UNIFIED;
}

/* For an unknown pointer this call succeeds. cuPointerGetAttribute would fail, and tools that watch for errors report that. */
static int cuda_pointer_known(const void *pointer, int32_t *known)
{
    unsigned type = 0;
    int wanted = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *result = &type;
    if (!cuda.pointer_attributes)
        return CUDA_ERROR_NOT_SUPPORTED;
    const int code = cuda.pointer_attributes(1, &wanted, &result, (uintptr_t)pointer);
    *known = cuda_type_is_known(type);
    return code;
}

static int cuda_pointer_info(const void *pointer, struct gg_pointer_info *info)
{
    unsigned type = 0, managed = 0; /* the driver writes 0 for an unknown pointer */
    int device = -1;
    size_t size = 0;
    int wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                    CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *base = NULL;
    void *results[] = {&type, &managed, &device, &base, &size};
    if (!cuda.pointer_attributes)
        return CUDA_ERROR_NOT_SUPPORTED;
    const int code = cuda.pointer_attributes(5, wanted, results, (uintptr_t)pointer);
    if (code && code != CUDA_ERROR_INVALID_VALUE)
        return code;
    info->kind = GG_MEMORY_HOST;
    if (code || !cuda_type_is_known(type))
        return 0;
    info->kind = type == CU_MEMORYTYPE_HOST ? GG_MEMORY_PINNED : GG_MEMORY_DEVICE;
    if (managed)
        info->kind = GG_MEMORY_MANAGED;
    info->device = cuda_device_ordinal(device);
    info->base = base;
    info->size = size;
    return 0;
}

static unsigned cuda_ipc_flags(void)
{
    return CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
}

/* ---- rectangular regions -------------------------------------------------------------------------------------- */

static struct cuda_side cuda_side(const void *pointer, bool host, size_t pitch, size_t slice)
{
    struct cuda_side side = {.type = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                             .pitch = pitch,
                             .rows = slice / pitch};
    if (host)
        side.host = (void *)(uintptr_t)pointer;
    else
        side.device = (uintptr_t)pointer;
    return side;
}

static int cuda_copy_region(void *dst, const void *src, const struct gg_region *region,
                            enum gg_copy_kind kind, void *stream)
{
    const struct cuda_copy_3d copy = {
        .src = cuda_side(src, kind == GG_COPY_H2D, region->src_pitch, region->src_slice),
        .dst = cuda_side(dst, kind == GG_COPY_D2H, region->dst_pitch, region->dst_slice),
        .width = region->width,
        .height = region->height,
        .depth = region->depth};
    return cuda.copy_3d ? cuda.copy_3d(&copy, stream) : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- peers -------------------------------------------------------------------------------------- */

static int cuda_peer_enable(struct gg_device_impl *peer)
{
    return cuda.peer_enable ? cuda.peer_enable(peer->context, 0) : CUDA_ERROR_NOT_SUPPORTED;
}

static int cuda_copy_peer(void *dst, struct gg_device_impl *dst_device, const void *src,
                          struct gg_device_impl *src_device, size_t nbytes, void *stream)
{
    return cuda.copy_peer ? cuda.copy_peer(dst, dst_device->context, (void *)(uintptr_t)src,
                                           src_device->context, nbytes, stream)
                          : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- kernels ------------------------------------------------------------------------------------- */

static int cuda_allow_shared(void *function, int nbytes)
{
    return cuda.function_set_attribute
               ? cuda.function_set_attribute(
                     function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, nbytes)
               : CUDA_ERROR_NOT_SUPPORTED;
}

static int cuda_suggest(void *function, size_t shared, int limit, int *blocks, int *threads)
{
    return cuda.function_suggest
               ? cuda.function_suggest(blocks, threads, function, NULL, shared, limit)
               : CUDA_ERROR_NOT_SUPPORTED;
}

static int cuda_parameter(void *function, size_t index, size_t *offset, size_t *size)
{
    return cuda.function_parameter ? cuda.function_parameter(function, index, offset, size)
                                   : CUDA_ERROR_NOT_SUPPORTED;
}

static int cuda_names(void *module, void (*each)(void *user, const char *name), void *user)
{
    void *functions[64];
    unsigned count = 0;
    const char *name = NULL;
    if (!cuda.module_function_count || !cuda.module_functions || !cuda.function_name)
        return CUDA_ERROR_NOT_SUPPORTED;
    int code = cuda.module_function_count(&count, module);
    if (count > sizeof functions / sizeof functions[0])
        count = sizeof functions / sizeof functions[0];
    if (!code && count)
        code = cuda.module_functions(functions, count, module);
    for (unsigned i = 0; i < count && !code; i++) {
        code = cuda.function_name(&name, functions[i]);
        if (!code)
            each(user, name);
    }
    return code;
}

static int cuda_exec_create(void **exec, void *graph)
{
    return cuda.exec_create ? cuda.exec_create(exec, graph, 0) : CUDA_ERROR_NOT_SUPPORTED;
}

static int cuda_exec_update(void *exec, void *graph)
{
    struct {
        int result;
        void *node, *from;
    } info = {.result =
                  0}; /* CUgraphExecUpdateResultInfo: what the nodes are is unknown to the user */
    return cuda.exec_update ? cuda.exec_update(exec, graph, &info) : CUDA_ERROR_NOT_SUPPORTED;
}

static bool cuda_supports(gg_op op)
{
    if (op == GG_OP_capture_begin)
        return cuda.exec_create != NULL;
    if (op == GG_OP_graph_update)
        return cuda.exec_update != NULL;
    if (op == GG_OP_device_stats)
        return (cuda.uuid || cuda.uuid_old || cuhip_driver.device_pci) && cuda_has_stats();
    if (op == GG_OP_copy_region)
        return cuda.copy_3d != NULL;
    if (op == GG_OP_peer_enable || op == GG_OP_copy_peer)
        return cuda.peer_enable && cuda.copy_peer;
    if (op == GG_OP_kernel_parameter)
        return cuda.function_parameter != NULL;
    if (op == GG_OP_kernel_suggest_block_size)
        return cuda.function_suggest != NULL;
    if (op == GG_OP_kernel_allow_shared)
        return cuda.function_set_attribute != NULL;
    if (op == GG_OP_module_names)
        return cuda.module_functions && cuda.module_function_count && cuda.function_name;
    if (op == GG_OP_pointer_info || op == GG_OP_pointer_known)
        return cuda.pointer_attributes != NULL;
    return op != GG_OP_device_record || cuda.context_record != NULL;
}

/* ---- the plugin --------------------------------------------------------------------------------- */

static const struct gg_symbol symbols[] = {
#define FN(slot, parameters, cuda, hip, need, context) \
    {#cuda, offsetof(struct cuhip_driver, slot), need},
#include "../cuda_hip/driver.def"
#undef FN
};

static const struct gg_symbol own_symbols[] = {
#define OWN(slot, parameters, symbol, need) {#symbol, offsetof(struct cuda_driver, slot), need},
#include "cuda.def"
#undef OWN
};

static const struct cuhip_error errors[] = {
#define ERROR(name, code, status, text) {code, status, #name, text},
#include "cuda_errors.def"
#undef ERROR
};

static const int attributes[GG_ATTR_COUNT] = {
#define NUMBER(name, value)
#define ATTRIBUTE(attribute, name, value) [GG_ATTR_##attribute] = name,
#include "cuda_numbers.def"
#undef ATTRIBUTE
#undef NUMBER
};

/* The driver has the same name everywhere. The directories are often missing from the loader's path: WSL, old
 * containers, NixOS, Jetson, and the forward compatibility package. */
static const char *const library_names[] = {"libcuda.so.1", NULL};
static const char *const library_directories[] = {"/usr/lib/wsl/lib",
                                                  "/usr/local/nvidia/lib64",
                                                  "/usr/local/nvidia/lib",
                                                  "/run/opengl-driver/lib",
                                                  "/usr/lib/aarch64-linux-gnu/nvidia",
                                                  "$CONDA_PREFIX/cuda-compat",
                                                  "/usr/local/cuda/compat",
                                                  NULL};

static const char *const comm_names[] = {"libnccl.so.2", NULL};
static const char *const comm_directories[] = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib",
                                               "$CONDA_PREFIX/lib", NULL};

const struct cuhip_vendor cuhip = {
    .name = "cuda",
    .priority = 300,
    .aliases = "nvidia",
    .library = {.struct_size = sizeof(struct gg_library_spec),
                .names = library_names,
                .variable = "GPUGLUE_CUDA_LIBRARY",
                .stem = "libcuda",
                .directories = library_directories},
    .comm_name = "nccl",
    .comm_library = {.struct_size = sizeof(struct gg_library_spec),
                     .flags = GG_LIBRARY_ADDED_DIRECTORIES,
                     .names = comm_names,
                     .variable = "GPUGLUE_NCCL_LIBRARY",
                     .stem = "libnccl",
                     .directories = comm_directories},
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .own_symbols = own_symbols,
    .own_symbol_count = sizeof own_symbols / sizeof own_symbols[0],
    .own = &cuda,
    .errors = errors,
    .error_count = sizeof errors / sizeof errors[0],
    .invalid_value = CUDA_ERROR_INVALID_VALUE,
    .not_ready = CUDA_ERROR_NOT_READY,
    .not_supported = CUDA_ERROR_NOT_SUPPORTED,
    .attributes = attributes,
    .integrated = CU_DEVICE_ATTRIBUTE_INTEGRATED,
    .registered_attribute = CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
    .word_attribute = CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
    .writes_words = true,
    .stream_nonblocking = CU_STREAM_NON_BLOCKING,
    .event_no_timing = CU_EVENT_DISABLE_TIMING,
    .event_blocking = CU_EVENT_BLOCKING_SYNC,
    .pinned_flags = CU_MEMHOSTALLOC_PORTABLE,
    .advice_coarse = -1,
    .managed_flags = CU_MEM_ATTACH_GLOBAL,
    .register_flags = CU_MEMHOSTREGISTER_PORTABLE,
    .capture_relaxed = CU_STREAM_CAPTURE_MODE_RELAXED,
    .capture_error_first = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
    .capture_error_last = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
    .version_min = 11000,
    .default_stream = 1, /* CU_STREAM_LEGACY: independent of how a program was compiled */
    .per_thread_stream = 2,
    .version_text = cuda_version_text,
    .diagnose = cuda_diagnose,
    .add_notes = cuda_add_notes,
    .device_arch = cuda_device_arch,
    .device_uuid = cuda_device_uuid,
    .device_native = cuda_device_native,
    .context_retain = cuda_context_retain,
    .context_release = cuda_context_release,
    .context_get = cuda_context_get,
    .context_set = cuda_context_set,
    .context_ordinal = cuda_context_ordinal,
    .context_record = cuda_context_record,
    .stream_context = cuda_stream_context,
    .pointer_info = cuda_pointer_info,
    .pointer_known = cuda_pointer_known,
    .ipc_flags = cuda_ipc_flags,
    .copy_region = cuda_copy_region,
    .peer_enable = cuda_peer_enable,
    .peer_enabled = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
    .copy_peer = cuda_copy_peer,
    .allow_shared = cuda_allow_shared,
    .suggest = cuda_suggest,
    .parameter = cuda_parameter,
    .names = cuda_names,
    .not_found = CUDA_ERROR_NOT_FOUND,
    .exec_create = cuda_exec_create,
    .exec_update = cuda_exec_update,
    .stats = cuda_stats,
    .range_tool = cuda_range_tool,
    .supports = cuda_supports,
};
