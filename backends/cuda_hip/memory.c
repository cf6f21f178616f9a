/* memory.c: device and pinned memory, and what a pointer points at. */
#include "driver.h"

#include <inttypes.h>

/* Frees take microseconds, those of many GB tenths of a second; a driver may also keep them behind a
 * host function of somebody's. */
#define FREES_NS 20000000u
#define FREES_NEEDED_NS 2000000000u

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

bool twin_frees_ordered(void)
{
    return twin.frees_ordered && twin_driver.mem_free_ordered;
}

static void finish_frees(struct gg_device_impl *device, uint64_t limit_ns)
{
    if (!device->free_stream)
        return;
    int code = twin_poll(twin_driver.stream_query, device->free_stream, false, limit_ns);
    if (code != twin.not_ready)
        twin_forget(code, "waiting for memory to be freed");
}

void twin_finish_frees(struct gg_device_impl *device)
{
    finish_frees(device, FREES_NS);
}

static int alloc_or_retry(struct gg_device_impl *device, size_t nbytes, void **pointer)
{
    int code = twin_driver.mem_alloc(pointer, nbytes);
    if (code != twin.out_of_memory || !device->free_stream)
        return code;
    twin_clear(code);
    finish_frees(device, FREES_NEEDED_NS); /* some of it may be on its way back */
    return twin_driver.mem_alloc(pointer, nbytes);
}

static gg_status alloc_device(struct gg_device_impl *device, size_t nbytes, void **out)
{
    struct twin_guard guard;
    void *pointer = NULL;
    int code = twin_enter(&guard, TWIN_AT_mem_alloc, device, NULL);
    if (!code)
        code = alloc_or_retry(device, nbytes, &pointer);
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
    case GG_MEMORY_HOST:
    case GG_MEMORY_MANAGED:
        break;
    }
    return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "memory of kind %d", (int)kind);
}

/* The memory is idle, so any order will do: a stream of our own waits for nobody, where the plain
 * free waits for the whole device. */
static int free_device(struct gg_device_impl *device, void *pointer)
{
    if (device->free_stream) {
        const int code = twin_driver.mem_free_ordered(pointer, device->free_stream);
        if (code != twin.not_supported)
            return code;
    }
    return twin_driver.mem_free(pointer);
}

gg_status twin_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer)
{
    const bool pinned = kind == GG_MEMORY_PINNED;
    struct twin_guard guard;
    /* Freed even where the context cannot be entered: the pointer says what it belongs to. */
    twin_forget(twin_enter(&guard, pinned ? TWIN_AT_pinned_free : TWIN_AT_mem_free, device, NULL),
                "entering a context to free memory");
    const int code = pinned ? twin_driver.pinned_free(pointer) : free_device(device, pointer);
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
