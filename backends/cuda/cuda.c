/* cuda.c: NVIDIA's half of the twins: names, numbers, and the functions whose prototypes are its own.
 * The driver library alone is needed, and of each device only the primary context, which every other
 * user of the driver or the runtime in the process shares. */
#include "cuda_probe.h"
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

static int32_t cuda_ordinal(int device)
{
    int other = 0;
    for (int i = 0; i < twin_device_count; i++)
        if (twin_driver.device_get(&other, i) == 0 && other == device)
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
    if (cuda.primary_retain(&primary, device)) /* there is no other way to its handle */
        return -1;
    twin_forget(cuda.primary_release(device), "releasing a device's context");
    return primary == context ? cuda_ordinal(device) : -1;
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
        twin_driver.device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (!code)
        code = twin_driver.device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
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

static int cuda_pointer_info(const void *pointer, struct gg_pointer_info *info)
{
    unsigned type = 0, managed = 0; /* the driver writes 0 for a pointer that it does not know */
    int device = -1;
    size_t size = 0;
    int asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                   CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *base = NULL;
    void *answers[] = {&type, &managed, &device, &base, &size};
    if (!cuda.pointer_attributes)
        return CUDA_ERROR_NOT_SUPPORTED;
    const int code = cuda.pointer_attributes(5, asked, answers, (uintptr_t)pointer);
    if (code && code != CUDA_ERROR_INVALID_VALUE)
        return code;
    info->kind = GG_MEMORY_HOST;
    if (code || (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE &&
                 type != CU_MEMORYTYPE_UNIFIED))
        return 0;
    info->kind = type == CU_MEMORYTYPE_HOST ? GG_MEMORY_PINNED : GG_MEMORY_DEVICE;
    if (managed)
        info->kind = GG_MEMORY_MANAGED;
    info->device = cuda_ordinal(device);
    info->base = base;
    info->size = size;
    return 0;
}

/* ---- boxes -------------------------------------------------------------------------------------- */

static struct cuda_side side_of(const void *pointer, bool host, size_t pitch, size_t slice)
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
        .src = side_of(src, kind == GG_COPY_H2D, region->src_pitch, region->src_slice),
        .dst = side_of(dst, kind == GG_COPY_D2H, region->dst_pitch, region->dst_slice),
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

static bool cuda_supports(gg_op op)
{
    if (op == GG_OP_copy_region)
        return cuda.copy_3d != NULL;
    if (op == GG_OP_peer_enable || op == GG_OP_copy_peer)
        return cuda.peer_enable && cuda.copy_peer;
    if (op == GG_OP_kernel_parameter)
        return cuda.function_parameter != NULL;
    if (op == GG_OP_kernel_suggest)
        return cuda.function_suggest != NULL;
    if (op == GG_OP_kernel_allow_shared)
        return cuda.function_set_attribute != NULL;
    if (op == GG_OP_module_names)
        return cuda.module_functions && cuda.module_function_count && cuda.function_name;
    if (op == GG_OP_device_record)
        return cuda.context_record != NULL;
    return op != GG_OP_pointer_info || cuda.pointer_attributes != NULL;
}

/* ---- the plugin --------------------------------------------------------------------------------- */

static const struct gg_symbol symbols[] = {
#define FN(slot, parameters, cuda, hip, need, context) \
    {#cuda, offsetof(struct twin_driver, slot), need},
#include "../cuda_hip/driver.def"
#undef FN
};

static const struct gg_symbol own_symbols[] = {
#define OWN(slot, parameters, symbol, need) {#symbol, offsetof(struct cuda_driver, slot), need},
#include "cuda.def"
#undef OWN
};

static const struct twin_error errors[] = {
#define ERROR(name, code, status, text) {code, status, #name, text},
#include "cuda_errors.def"
#undef ERROR
};

static const int attributes[GG_ATTR_COUNT] = {
    [GG_ATTR_WARP_SIZE] = CU_DEVICE_ATTRIBUTE_WARP_SIZE,
    [GG_ATTR_MULTIPROCESSORS] = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    [GG_ATTR_MAX_THREADS_PER_BLOCK] = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    [GG_ATTR_MAX_BLOCK_X] = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
    [GG_ATTR_MAX_BLOCK_Y] = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
    [GG_ATTR_MAX_BLOCK_Z] = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
    [GG_ATTR_MAX_GRID_X] = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
    [GG_ATTR_MAX_GRID_Y] = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
    [GG_ATTR_MAX_GRID_Z] = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
    [GG_ATTR_SHARED_MEMORY_PER_BLOCK] = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
    [GG_ATTR_CLOCK_KHZ] = CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
    [GG_ATTR_COMPUTE_MAJOR] = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
    [GG_ATTR_COMPUTE_MINOR] = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    [GG_ATTR_ASYNC_ENGINES] = CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT,
    [GG_ATTR_MANAGED_MEMORY] = CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
    [GG_ATTR_CONCURRENT_KERNELS] = CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS,
    [GG_ATTR_SHARED_MEMORY_OPTIN] = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    [GG_ATTR_COOPERATIVE_LAUNCH] = CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,
};

/* The driver has one name everywhere. The folders are those that loaders are often not told of: WSL,
 * old containers, NixOS, Jetson, and the forward compatibility package. */
static const char *const library_names[] = {"libcuda.so.1", NULL};
static const char *const library_directories[] = {"/usr/lib/wsl/lib",
                                                  "/usr/local/nvidia/lib64",
                                                  "/usr/local/nvidia/lib",
                                                  "/run/opengl-driver/lib",
                                                  "/usr/lib/aarch64-linux-gnu/nvidia",
                                                  "$CONDA_PREFIX/cuda-compat",
                                                  "/usr/local/cuda/compat",
                                                  NULL};

const struct twin twin = {
    .name = "cuda",
    .library = {.struct_size = sizeof(struct gg_library_spec),
                .names = library_names,
                .variable = "GPUGLUE_CUDA_LIBRARY",
                .stem = "libcuda",
                .directories = library_directories},
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
    .word_attribute = CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
    .writes_words = true,
    .stream_nonblocking = CU_STREAM_NON_BLOCKING,
    .event_no_timing = CU_EVENT_DISABLE_TIMING,
    .event_blocking = CU_EVENT_BLOCKING_SYNC,
    .pinned_flags = CU_MEMHOSTALLOC_PORTABLE,
    .managed_flags = CU_MEM_ATTACH_GLOBAL,
    .register_flags = CU_MEMHOSTREGISTER_PORTABLE,
    .ipc_flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, /* the only value that is taken */
    .capture_relaxed = CU_STREAM_CAPTURE_MODE_RELAXED,
    .version_min = 11000,
    .default_stream = 1, /* CU_STREAM_LEGACY: the same stream whatever a program was compiled with */
    .per_thread_stream = 2,
    .version_text = cuda_version_text,
    .explain = cuda_explain,
    .remark = cuda_remark,
    .device_arch = cuda_device_arch,
    .device_uuid = cuda_device_uuid,
    .device_native = cuda_device_native,
    .context_retain = cuda_context_retain,
    .context_release = cuda_context_release,
    .context_get = cuda_context_get,
    .context_set = cuda_context_set,
    .context_ordinal = cuda_context_ordinal,
    .context_record = cuda_context_record,
    .pointer_info = cuda_pointer_info,
    .copy_region = cuda_copy_region,
    .peer_enable = cuda_peer_enable,
    .peer_enabled = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
    .copy_peer = cuda_copy_peer,
    .allow_shared = cuda_allow_shared,
    .suggest = cuda_suggest,
    .parameter = cuda_parameter,
    .names = cuda_names,
    .not_found = CUDA_ERROR_NOT_FOUND,
    .supports = cuda_supports,
};

static const struct gg_backend_desc cuda_backend = {
    .magic = GG_BACKEND_MAGIC,
    .struct_size = sizeof(struct gg_backend_desc),
    .abi_major = GG_BACKEND_ABI_MAJOR,
    .abi_minor = GG_BACKEND_ABI_MINOR,
    .priority = 300,
    .name = "cuda",
    .version = GG_VERSION,
    .ops = &twin_ops,
};

int gg_backend_query(uint32_t core_abi, const struct gg_host_api *host,
                     const struct gg_backend_desc **out)
{
    if (core_abi >> 16 != GG_ABI_MAJOR || host->struct_size < sizeof *host)
        return 1;
    twin_host = host;
    *out = &cuda_backend;
    return 0;
}
