/* memory.c: device memory, pinned memory, and the attributes of a pointer. */
#include "driver.h"

#include <inttypes.h>

static gg_status alloc_device_failed(struct gg_device_impl *device, int code, size_t nbytes)
{
    size_t free = 0, total = 0;
    const int failed =
        CUHIP_IN_CONTEXT(memory_info, device, NULL, cuhip_driver.memory_info(&free, &total));
    if (failed)
        return cuhip_fail(code, "%zu bytes of device memory", nbytes);
    return cuhip_fail(code, "%zu bytes of device memory; %zu of %zu are free", nbytes, free, total);
}

static gg_status alloc_device(struct gg_device_impl *device, size_t nbytes, void **out)
{
    void *pointer = NULL;
    const int code =
        CUHIP_IN_CONTEXT(mem_alloc, device, NULL, cuhip_driver.mem_alloc(&pointer, nbytes));
    if (code)
        return alloc_device_failed(device, code, nbytes);
    *out = pointer;
    return GG_OK;
}

static gg_status alloc_pinned(struct gg_device_impl *device, size_t nbytes, void **out)
{
    void *pointer = NULL;
    const int code =
        CUHIP_IN_CONTEXT(pinned_alloc, device, NULL,
                         cuhip_driver.pinned_alloc(&pointer, nbytes, cuhip.pinned_flags));
    if (code)
        return cuhip_fail(code, "%zu bytes of pinned memory (see `ulimit -l` and free memory)",
                          nbytes);
    *out = pointer;
    return GG_OK;
}

gg_status cuhip_mem_alloc(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                          void **out)
{
    switch (kind) {
    case GG_MEMORY_DEVICE:
        return alloc_device(device, nbytes, out);
    case GG_MEMORY_PINNED:
        return alloc_pinned(device, nbytes, out);
    case GG_MEMORY_MANAGED:
        return cuhip_alloc_managed(device, nbytes, out);
    case GG_MEMORY_HOST:
        break;
    }
    return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "memory of kind %d", (int)kind);
}

gg_status cuhip_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer)
{
    const bool pinned = kind == GG_MEMORY_PINNED;
    const int code =
        pinned ? CUHIP_RELEASE(pinned_free, device, NULL, cuhip_driver.pinned_free(pointer))
               : CUHIP_RELEASE(mem_free, device, NULL, cuhip_driver.mem_free(pointer));
    return code ? cuhip_fail(code, "freeing %s memory at %p", pinned ? "pinned" : "device", pointer)
                : GG_OK;
}

gg_status cuhip_pointer_known(struct gg_device_impl *device, const void *pointer, int32_t *known)
{
    (void)device; /* no context is needed */
    return cuhip.pointer_known && !cuhip.pointer_known(pointer, known) ? GG_OK : GG_NOT_READY;
}

gg_status cuhip_pointer_info(struct gg_device_impl *device, const void *pointer,
                             struct gg_pointer_info *info)
{
    struct gg_pointer_info found = {.struct_size = info->struct_size, .device = -1};
    const int code = CUHIP_IN_CONTEXT(mem_alloc, device, NULL, cuhip.pointer_info(pointer, &found));
    if (code)
        return cuhip_fail(code, "attributes of pointer %p", pointer);
    *info = found;
    return GG_OK;
}
