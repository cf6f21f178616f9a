/* managed.c: memory beside the plain kind: managed, registered, and allocated in the order of a stream. */
#include "driver.h"

gg_status twin_alloc_managed(struct gg_device_impl *device, size_t nbytes, void **out)
{
    struct twin_guard guard;
    void *pointer = NULL;
    int has = 0;
    if (!twin_driver.managed_alloc)
        return twin_missing(offsetof(struct twin_driver, managed_alloc));
    if (!twin_driver.device_attribute(&has, twin.attributes[GG_ATTR_MANAGED_MEMORY], device->device) &&
        !has)
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "this device has no managed memory");
    int code = twin_enter(&guard, TWIN_AT_managed_alloc, device, NULL);
    if (!code)
        code = twin_driver.managed_alloc(&pointer, nbytes, twin.managed_flags);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "%zu bytes of managed memory", nbytes);
    *out = pointer;
    return GG_OK;
}

gg_status twin_mem_register(struct gg_device_impl *device, void *pointer, size_t nbytes)
{
    struct twin_guard guard;
    if (!twin_driver.host_register || !twin_driver.host_unregister)
        return twin_missing(offsetof(struct twin_driver, host_register));
    int code = twin_enter(&guard, TWIN_AT_host_register, device, NULL);
    if (!code)
        code = twin_driver.host_register(pointer, nbytes, twin.register_flags);
    twin_leave(&guard);
    return code ? twin_fail(code, "page-locking %zu bytes at %p (see `ulimit -l`)", nbytes, pointer)
                : GG_OK;
}

gg_status twin_mem_unregister(struct gg_device_impl *device, void *pointer)
{
    struct twin_guard guard;
    twin_forget(twin_enter(&guard, TWIN_AT_host_unregister, device, NULL),
                "entering a context to unlock pages");
    const int code = twin_driver.host_unregister(pointer);
    twin_leave(&guard);
    if (!code || twin_is_gone(code))
        return GG_OK;
    return twin_fail(code, "unlocking the pages at %p", pointer);
}

/* Both vendors call the processor device -1. */
gg_status twin_mem_prefetch(struct gg_stream_impl *stream, const void *pointer, size_t nbytes,
                            int32_t to_host)
{
    struct twin_guard guard;
    if (!twin_driver.prefetch)
        return twin_missing(offsetof(struct twin_driver, prefetch));
    int code = twin_enter(&guard, TWIN_AT_prefetch, stream->device, stream);
    if (!code)
        code = twin_driver.prefetch(pointer, nbytes, to_host ? -1 : stream->device->device,
                                    stream->native);
    twin_leave(&guard);
    return code ? twin_fail(code, "moving %zu bytes at %p", nbytes, pointer) : GG_OK;
}

/* enum gg_advice has both vendors' numbers. */
gg_status twin_mem_advise(struct gg_device_impl *device, const void *pointer, size_t nbytes,
                          enum gg_advice advice, int32_t for_host)
{
    struct twin_guard guard;
    if (!twin_driver.advise)
        return twin_missing(offsetof(struct twin_driver, advise));
    if (advice < GG_ADVICE_READ_MOSTLY || advice > GG_ADVICE_NOT_ACCESSED_BY)
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "advice %d", (int)advice);
    int code = twin_enter(&guard, TWIN_AT_advise, device, NULL);
    if (!code)
        code = twin_driver.advise(pointer, nbytes, (int)advice, for_host ? -1 : device->device);
    twin_leave(&guard);
    return code ? twin_fail(code, "advice on %zu bytes at %p", nbytes, pointer) : GG_OK;
}

gg_status twin_mem_alloc_async(struct gg_stream_impl *stream, size_t nbytes, void **out)
{
    struct twin_guard guard;
    void *pointer = NULL;
    if (!twin_driver.alloc_async || !twin_driver.free_async)
        return twin_missing(offsetof(struct twin_driver, alloc_async));
    int code = twin_enter(&guard, TWIN_AT_alloc_async, stream->device, stream);
    if (!code)
        code = twin_driver.alloc_async(&pointer, nbytes, stream->native);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "%zu bytes from the driver's own pool", nbytes);
    *out = pointer;
    return GG_OK;
}

gg_status twin_mem_free_async(struct gg_stream_impl *stream, void *pointer)
{
    struct twin_guard guard;
    /* Freed even where the context cannot be entered: the pointer says what it belongs to. */
    twin_forget(twin_enter(&guard, TWIN_AT_free_async, stream->device, stream),
                "entering a context to free memory");
    const int code = twin_driver.free_async(pointer, stream->native);
    twin_leave(&guard);
    if (!code || twin_is_gone(code))
        return GG_OK;
    return twin_fail(code, "giving memory at %p back to the driver's pool", pointer);
}
