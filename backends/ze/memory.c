/* memory.c: device, host and shared memory (USM), and the attributes of a pointer. */
#include "ze.h"

#include <inttypes.h>

#define ALIGNMENT 256u

/* Chained to a descriptor, it allows a block above the driver's limit, which is often 4 GiB. */
static const struct ze_plain_desc relaxed_limits = {
    .stype = ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
    .flags = ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE};

/* Kinds that several devices share, or that the system allocates, are not used. */
int ze_gpu_find_shared(const struct ze_gpu *gpu, bool *out)
{
    struct ze_access_properties access = {.stype =
                                              ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES};
    *out = false;
    if (!ze.alloc_shared || !ze.access_properties)
        return 0;
    const int code = ze.access_properties(gpu->handle, &access);
    *out = !code && access.shared & ZE_MEMORY_ACCESS_CAP_FLAG_RW;
    return code;
}

/* The probe may have failed to find out. */
static gg_status shared_check(const struct ze_gpu *gpu)
{
    bool has = gpu->has_shared;
    const int code = has ? 0 : ze_gpu_find_shared(gpu, &has);
    if (code && !ze_is_unsupported(code))
        return ze_fail(code, "which memory the device shares with the host");
    if (has)
        return GG_OK;
    return ze_api->fail(GG_ERR_UNSUPPORTED, NULL,
                        "this device reports no shared memory, so it has no managed memory: use "
                        "device memory and copies, or pinned memory, which kernels can read "
                        "and write too");
}

static const char *kind_name(enum gg_memory_kind kind)
{
    if (kind == GG_MEMORY_MANAGED)
        return "managed";
    return kind == GG_MEMORY_DEVICE ? "device" : "pinned";
}

static int alloc_memory(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                        void **out)
{
    const bool large = nbytes > device->gpu->properties.largest_alloc;
    const struct ze_plain_desc *limits = large ? &relaxed_limits : NULL;
    const struct ze_device_memory_desc of_device = {
        .stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, .next = limits};
    const struct ze_plain_desc of_host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC,
                                          .next = limits};
    if (kind == GG_MEMORY_DEVICE)
        return ze.alloc_device(device->context, &of_device, nbytes, ALIGNMENT, device->gpu->handle,
                               out);
    if (kind == GG_MEMORY_MANAGED)
        return ze.alloc_shared(device->context, &of_device, &of_host, nbytes, ALIGNMENT,
                               device->gpu->handle, out);
    return ze.alloc_host(device->context, &of_host, nbytes, ALIGNMENT, out);
}

gg_status ze_mem_alloc(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                       void **out)
{
    void *pointer = NULL;
    if (kind != GG_MEMORY_DEVICE && kind != GG_MEMORY_PINNED && kind != GG_MEMORY_MANAGED)
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL, "memory of kind %d", (int)kind);
    const gg_status status = kind == GG_MEMORY_MANAGED ? shared_check(device->gpu) : GG_OK;
    if (status)
        return status;
    const int code = alloc_memory(device, kind, nbytes, &pointer);
    if (code)
        return ze_fail(code, "%zu bytes of %s memory; the default limit of one block is %" PRIu64,
                       nbytes, kind_name(kind), device->gpu->properties.largest_alloc);
    *out = pointer;
    return GG_OK;
}

gg_status ze_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer)
{
    if (kind == GG_MEMORY_DEVICE)
        ze_ipc_forget(device, pointer);
    const int code = ze.mem_free(device->context, pointer);
    if (!code || ze_is_shut_down(code))
        return GG_OK;
    return ze_fail(code, "freeing %s memory at %p", kind_name(kind), pointer);
}

static enum gg_memory_kind memory_kind(uint32_t type)
{
    if (type == ZE_MEMORY_TYPE_HOST)
        return GG_MEMORY_PINNED;
    if (type == ZE_MEMORY_TYPE_DEVICE)
        return GG_MEMORY_DEVICE;
    return type == ZE_MEMORY_TYPE_SHARED ? GG_MEMORY_MANAGED : GG_MEMORY_HOST;
}

static int32_t device_ordinal(const void *handle)
{
    for (int i = 0; handle && i < ze_gpu_count; i++)
        if (ze_gpus[i].handle == handle)
            return i;
    return -1;
}

/* Host memory belongs to no device; it is reported for @p device. */
gg_status ze_pointer_info(struct gg_device_impl *device, const void *pointer,
                          struct gg_pointer_info *info)
{
    struct ze_pointer_properties properties = {.stype =
                                                   ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    struct gg_pointer_info found = {.struct_size = info->struct_size, .device = -1};
    void *owner = NULL;
    int code = ze.pointer_properties(device->context, pointer, &properties, &owner);
    found.kind = memory_kind(properties.type);
    if (!code && found.kind != GG_MEMORY_HOST) {
        found.device = owner ? device_ordinal(owner) : device->ordinal;
        code = ze.pointer_range(device->context, pointer, &found.base, &found.size);
    }
    if (code)
        return ze_fail(code, "attributes of pointer %p", pointer);
    *info = found;
    return GG_OK;
}
