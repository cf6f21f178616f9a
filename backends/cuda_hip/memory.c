/* memory.c: device and pinned memory, and what a pointer points at. */
#include "driver.h"

#include <inttypes.h>

static gg_status no_device_memory(struct gg_device_impl *device, int code, size_t nbytes)
{
    struct twin_guard guard;
    size_t free = 0, total = 0;
    int asked = twin_enter(&guard, TWIN_AT_memory_info, device, NULL);
    if (!asked)
        asked = twin_driver.memory_info(&free, &total);
    twin_leave(&guard);
    if (asked)
        return twin_fail(code, "%zu bytes of device memory", nbytes);
    return twin_fail(code, "%zu bytes of device memory; %zu of %zu are free", nbytes, free, total);
}

static gg_status alloc_device(struct gg_device_impl *device, size_t nbytes, void **out)
{
    struct twin_guard guard;
    void *pointer = NULL;
    int code = twin_enter(&guard, TWIN_AT_mem_alloc, device, NULL);
    if (!code)
        code = twin_driver.mem_alloc(&pointer, nbytes);
    twin_leave(&guard);
    if (code)
        return no_device_memory(device, code, nbytes);
    *out = pointer;
    return GG_OK;
}

static gg_status alloc_pinned(struct gg_device_impl *device, size_t nbytes, void **out)
{
    struct twin_guard guard;
    void *pointer = NULL;
    int code = twin_enter(&guard, TWIN_AT_pinned_alloc, device, NULL);
    if (!code)
        code = twin_driver.pinned_alloc(&pointer, nbytes, twin.pinned_flags);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "%zu bytes of page-locked memory (see `ulimit -l` and free memory)",
                         nbytes);
    *out = pointer;
    return GG_OK;
}

gg_status twin_mem_alloc(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                         void **out)
{
    switch (kind) {
    case GG_MEMORY_DEVICE:
        return alloc_device(device, nbytes, out);
    case GG_MEMORY_PINNED:
        return alloc_pinned(device, nbytes, out);
    case GG_MEMORY_MANAGED:
        return twin_alloc_managed(device, nbytes, out);
    case GG_MEMORY_HOST:
        break;
    }
    return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "memory of kind %d", (int)kind);
}

gg_status twin_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer)
{
    const bool pinned = kind == GG_MEMORY_PINNED;
    struct twin_guard guard;
    /* Freed even where the context cannot be entered: the pointer says what it belongs to. */
    twin_forget(twin_enter(&guard, pinned ? TWIN_AT_pinned_free : TWIN_AT_mem_free, device, NULL),
                "entering a context to free memory");
    const int code = pinned ? twin_driver.pinned_free(pointer) : twin_driver.mem_free(pointer);
    twin_leave(&guard);
    if (!code || twin_is_gone(code))
        return GG_OK;
    return twin_fail(code, "freeing %s memory at %p", pinned ? "pinned" : "device", pointer);
}

gg_status twin_pointer_info(struct gg_device_impl *device, const void *pointer,
                            struct gg_pointer_info *info)
{
    struct twin_guard guard;
    struct gg_pointer_info found = {.struct_size = info->struct_size, .device = -1};
    int code = twin_switch(device, &guard);
    if (!code)
        code = twin.pointer_info(pointer, &found);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "asking about pointer %p", pointer);
    *info = found;
    return GG_OK;
}
