/* memory.c: device and host memory (USM), and what a pointer points at. */
#include "ze.h"

#include <inttypes.h>

#define ALIGNMENT 256u

/* One block may be larger than the driver's limit, which is often 4 GiB, if that is asked for. */
static int alloc_device(struct gg_device_impl *device, size_t nbytes, void **out)
{
    static const struct ze_plain_desc relaxed = {
        .stype = ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
        .flags = ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE};
    const bool large = nbytes > device->gpu->properties.largest_alloc;
    const struct ze_device_memory_desc desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
                                               .next = large ? &relaxed : NULL};
    return ze.alloc_device(device->context, &desc, nbytes, ALIGNMENT, device->gpu->handle, out);
}

static int alloc_host(struct gg_device_impl *device, size_t nbytes, void **out)
{
    static const struct ze_plain_desc relaxed = {
        .stype = ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
        .flags = ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE};
    const bool large = nbytes > device->gpu->properties.largest_alloc;
    const struct ze_plain_desc desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC,
                                       .next = large ? &relaxed : NULL};
    return ze.alloc_host(device->context, &desc, nbytes, ALIGNMENT, out);
}

gg_status ze_mem_alloc(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                       void **out)
{
    void *pointer = NULL;
    int code = 0;
    if (kind != GG_MEMORY_DEVICE && kind != GG_MEMORY_PINNED)
        return ze_host->fail(GG_ERR_UNSUPPORTED, NULL,
                             "no managed memory on Level Zero: use device memory and copies, or "
                             "page-locked memory, which kernels can read and write too");
    if (kind == GG_MEMORY_DEVICE)
        code = alloc_device(device, nbytes, &pointer);
    else
        code = alloc_host(device, nbytes, &pointer);
    if (code)
        return ze_fail(code, "%zu bytes of %s memory; one block may have %" PRIu64 " by default",
                       nbytes, kind == GG_MEMORY_DEVICE ? "device" : "page-locked",
                       device->gpu->properties.largest_alloc);
    *out = pointer;
    return GG_OK;
}

gg_status ze_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer)
{
    const int code = ze.mem_free(device->context, pointer);
    if (!code || ze_is_gone(code))
        return GG_OK;
    return ze_fail(code, "freeing %s memory at %p", kind == GG_MEMORY_PINNED ? "pinned" : "device",
                   pointer);
}

static enum gg_memory_kind kind_of(uint32_t type)
{
    if (type == ZE_MEMORY_TYPE_HOST)
        return GG_MEMORY_PINNED;
    if (type == ZE_MEMORY_TYPE_DEVICE)
        return GG_MEMORY_DEVICE;
    return type == ZE_MEMORY_TYPE_SHARED ? GG_MEMORY_MANAGED : GG_MEMORY_HOST;
}

static int32_t ordinal_of(const void *handle)
{
    for (int i = 0; handle && i < ze_gpu_count; i++)
        if (ze_gpus[i].handle == handle)
            return i;
    return -1;
}

/* Host memory belongs to no device; it is reported for the one that was asked. */
gg_status ze_pointer_info(struct gg_device_impl *device, const void *pointer,
                          struct gg_pointer_info *info)
{
    struct ze_pointer_properties properties = {.stype =
                                                   ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    struct gg_pointer_info found = {.struct_size = info->struct_size, .device = -1};
    void *owner = NULL;
    int code = ze.pointer_properties(device->context, pointer, &properties, &owner);
    found.kind = kind_of(properties.type);
    if (!code && found.kind != GG_MEMORY_HOST) {
        found.device = owner ? ordinal_of(owner) : device->ordinal;
        code = ze.pointer_range(device->context, pointer, &found.base, &found.size);
    }
    if (code)
        return ze_fail(code, "asking about pointer %p", pointer);
    *info = found;
    return GG_OK;
}
