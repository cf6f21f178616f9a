/* managed.c: managed memory, registered host memory, and memory that is allocated in stream order. */
#include "driver.h"

gg_status cuhip_alloc_managed(struct gg_device_impl *device, size_t nbytes, void **out)
{
    void *pointer = NULL;
    int has = 0;
    if (!cuhip_driver.managed_alloc)
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL,
                               "this driver has no function for managed memory: it is too old");
    if (!cuhip_driver.device_attribute(&has, cuhip.attributes[GG_ATTR_MANAGED_MEMORY],
                                       device->device) &&
        !has)
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "this device has no managed memory");
    const int code =
        CUHIP_IN_CONTEXT(managed_alloc, device, NULL,
                         cuhip_driver.managed_alloc(&pointer, nbytes, cuhip.managed_flags));
    if (code)
        return cuhip_fail(code, "%zu bytes of managed memory", nbytes);
    *out = pointer;
    return GG_OK;
}

/* Without the attribute the driver may have used that address all the same. */
static bool registered_at(struct gg_device_impl *device, void *pointer)
{
    int same = 0;
    void *on_device = NULL;
    if (!cuhip_clear_error(
            cuhip_driver.device_attribute(&same, cuhip.registered_attribute, device->device)) &&
        same)
        return true;
    return cuhip_driver.host_pointer &&
           !cuhip_clear_error(CUHIP_IN_CONTEXT(
               host_pointer, device, NULL, cuhip_driver.host_pointer(&on_device, pointer, 0))) &&
           on_device == pointer;
}

gg_status cuhip_mem_register(struct gg_device_impl *device, void *pointer, size_t nbytes)
{
    if (!cuhip_driver.host_register || !cuhip_driver.host_unregister)
        return cuhip_missing(offsetof(struct cuhip_driver, host_register));
    const int code =
        CUHIP_IN_CONTEXT(host_register, device, NULL,
                         cuhip_driver.host_register(pointer, nbytes, cuhip.register_flags));
    if (code)
        return cuhip_fail(code, "pinning %zu bytes at %p (see `ulimit -l`)", nbytes, pointer);
    return registered_at(device, pointer) ? GG_OK : GG_NOT_READY;
}

gg_status cuhip_mem_unregister(struct gg_device_impl *device, void *pointer)
{
    const int code =
        CUHIP_RELEASE(host_unregister, device, NULL, cuhip_driver.host_unregister(pointer));
    return code ? cuhip_fail(code, "unlocking the pages at %p", pointer) : GG_OK;
}

/* For both vendors device -1 is the host. */
gg_status cuhip_mem_prefetch(struct gg_stream_impl *stream, const void *pointer, size_t nbytes,
                             int32_t to_host)
{
    if (!cuhip_driver.prefetch)
        return cuhip_missing(offsetof(struct cuhip_driver, prefetch));
    const int code = CUHIP_IN_CONTEXT(prefetch, stream->device, stream,
                                      cuhip_driver.prefetch(pointer, nbytes,
                                                            to_host ? -1 : stream->device->device,
                                                            stream->native));
    return code ? cuhip_fail(code, "prefetching %zu bytes at %p", nbytes, pointer) : GG_OK;
}

/* enum gg_advice has the numbers of both vendors, but for coarse-grained coherence, which one of them has. */
static int advice_number(enum gg_advice advice)
{
    if (advice < GG_ADVICE_COARSE_GRAINED)
        return (int)advice;
    return cuhip.advice_coarse < 0 ? -1
                                   : cuhip.advice_coarse + (int)advice - GG_ADVICE_COARSE_GRAINED;
}

gg_status cuhip_mem_advise(struct gg_device_impl *device, const void *pointer, size_t nbytes,
                           enum gg_advice advice, int32_t for_host)
{
    if (!cuhip_driver.advise)
        return cuhip_missing(offsetof(struct cuhip_driver, advise));
    if (advice < GG_ADVICE_READ_MOSTLY || advice > GG_ADVICE_NOT_COARSE_GRAINED)
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "advice %d", (int)advice);
    const int number = advice_number(advice);
    if (number < 0)
        return GG_OK; /* a hint */
    const int code = CUHIP_IN_CONTEXT(
        advise, device, NULL,
        cuhip_driver.advise(pointer, nbytes, number, for_host ? -1 : device->device));
    return code ? cuhip_fail(code, "advice on %zu bytes at %p", nbytes, pointer) : GG_OK;
}

gg_status cuhip_mem_alloc_async(struct gg_stream_impl *stream, size_t nbytes, void **out)
{
    void *pointer = NULL;
    if (!cuhip_driver.alloc_async || !cuhip_driver.free_async)
        return cuhip_missing(offsetof(struct cuhip_driver, alloc_async));
    const int code = CUHIP_IN_CONTEXT(alloc_async, stream->device, stream,
                                      cuhip_driver.alloc_async(&pointer, nbytes, stream->native));
    if (code)
        return cuhip_fail(code, "%zu bytes from the driver's own pool", nbytes);
    *out = pointer;
    return GG_OK;
}

gg_status cuhip_mem_free_async(struct gg_stream_impl *stream, void *pointer)
{
    const int code = CUHIP_RELEASE(free_async, stream->device, stream,
                                   cuhip_driver.free_async(pointer, stream->native));
    return code ? cuhip_fail(code, "giving memory at %p back to the driver's pool", pointer) : GG_OK;
}
