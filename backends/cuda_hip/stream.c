/* stream.c: streams: created, borrowed, and the device's default stream. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

gg_status cuhip_stream_default(struct gg_device_impl *device, struct gg_stream_impl **out)
{
    *out = &device->default_stream;
    return GG_OK;
}

gg_status cuhip_stream_create(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                              struct gg_stream_impl **out)
{
    if (flags & ~(uint32_t)GG_STREAM_NONBLOCKING)
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "stream flags 0x%x", flags);
    struct gg_stream_impl *stream = calloc(1, sizeof *stream);
    if (!stream)
        return cuhip_no_memory(sizeof *stream, "a stream");
    *stream = (struct gg_stream_impl){.device = device,
                                      .flags = flags ? cuhip.stream_nonblocking : 0,
                                      .priority = priority,
                                      .owned = true};
    const int code =
        CUHIP_IN_CONTEXT(stream_create, device, NULL,
                         cuhip_driver.stream_create(&stream->native, stream->flags, priority));
    if (code) {
        free(stream);
        return cuhip_fail(code, "flags 0x%x, priority %d", flags, (int)priority);
    }
    *out = stream;
    return GG_OK;
}

void cuhip_stream_destroy(struct gg_stream_impl *stream)
{
    if (!stream || stream == &stream->device->default_stream)
        return;
    if (stream->owned)
        cuhip_log_failure(cuhip_driver.stream_destroy(stream->native), "destroying a stream");
    free(stream);
}

/* Whether a borrowed stream is ordered with the default one; if that is unknown, it is not. */
static uint32_t stream_external_flags(const struct gg_stream_impl *stream)
{
    unsigned flags = 0;
    if (!cuhip_driver.stream_flags ||
        cuhip_clear_error(cuhip_driver.stream_flags(stream->native, &flags)))
        return GG_STREAM_NONBLOCKING;
    return flags & cuhip.stream_nonblocking ? (uint32_t)GG_STREAM_NONBLOCKING : 0;
}

/* Most calls on a stream of another context fail, but not all. */
static gg_status stream_check_context(const struct gg_stream_impl *stream)
{
    const struct gg_device_impl *device = stream->device;
    void *context = NULL;
    if (!cuhip.stream_context || cuhip_clear_error(cuhip.stream_context(stream->native, &context)) ||
        context == device->context)
        return GG_OK;
    return cuhip_api->fail(
        GG_ERR_INVALID_ARGUMENT, NULL,
        "stream %p belongs to the context %p, which is not the primary context of "
        "device %d (%p): borrow it on its own device, or create it while that "
        "context is current",
        stream->native, context, (int)device->ordinal, device->context);
}

/* These queries would invalidate a capture, so a stream that is being captured is not queried. */
static gg_status stream_query_external(const struct gg_stream_impl *stream, uint32_t *flags)
{
    int capturing = 0;
    *flags = 0;
    if (stream->enters)
        return GG_OK;
    *flags = GG_STREAM_NONBLOCKING;
    if (cuhip_driver.stream_capturing &&
        (cuhip_clear_error(cuhip_driver.stream_capturing(stream->native, &capturing)) || capturing))
        return GG_OK;
    *flags = stream_external_flags(stream);
    return stream_check_context(stream);
}

gg_status cuhip_stream_borrow(struct gg_device_impl *device, uint64_t native, uint32_t *flags,
                              int32_t *is_default, struct gg_stream_impl **out)
{
    if (native <= 1) {
        *flags = 0;
        *is_default = 1;
        return cuhip_stream_default(device, out);
    }
    if (native == 2 && !cuhip.per_thread_stream)
        return cuhip_api->fail(
            GG_ERR_UNSUPPORTED, NULL,
            "handle 2 is the per-thread default stream, which this backend does not have");
    struct gg_stream_impl *stream = calloc(1, sizeof *stream);
    if (!stream)
        return cuhip_no_memory(sizeof *stream, "a borrowed stream");
    const bool special = native == cuhip.per_thread_stream;
    *stream = (struct gg_stream_impl){
        .native = (void *)(uintptr_t)native, .device = device, .enters = special ? device : NULL};
    const gg_status status = stream_query_external(stream, flags);
    if (status) {
        free(stream);
        return status;
    }
    *flags |= special ? (uint32_t)GG_STREAM_OF_THREAD : 0;
    *is_default = 0;
    *out = stream;
    return GG_OK;
}

gg_status cuhip_stream_native(struct gg_stream_impl *stream, uint64_t handles[4])
{
    memset(handles, 0, 4 * sizeof *handles);
    atomic_store(&stream->exported, true);
    handles[0] = (uintptr_t)stream->native;
    return GG_OK;
}

gg_status cuhip_stream_query(struct gg_stream_impl *stream)
{
    const int code = CUHIP_IN_CONTEXT(stream_query, stream->device, stream,
                                      cuhip_driver.stream_query(stream->native));
    return code ? cuhip_fail(code, "querying a stream") : GG_OK;
}

gg_status cuhip_stream_wait(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    const int code = CUHIP_IN_CONTEXT(stream_query, stream->device, stream,
                                      cuhip_poll_stream(stream, timeout_ns));
    return code ? cuhip_fail(code, "waiting for a stream") : GG_OK;
}

/* Such a driver captures a wait only for an event of a capture, and does not say which are: the core knows those that no other
 * code could record. */
static gg_status stream_check_event(const struct gg_stream_impl *stream, struct gg_event_impl *event)
{
    return !atomic_load(&event->shared) || atomic_load(&event->captured)
               ? GG_OK
               : cuhip_check_capturable(stream, "a wait for an event whose handle other code has");
}

gg_status cuhip_stream_wait_event(struct gg_stream_impl *stream, struct gg_event_impl *event)
{
    const gg_status status = stream_check_event(stream, event);
    if (status)
        return status;
    const int code =
        CUHIP_IN_CONTEXT(stream_wait_event, stream->device, stream,
                         cuhip_driver.stream_wait_event(stream->native, event->native, 0));
    return code ? cuhip_fail(code, "making a stream wait for an event") : GG_OK;
}

gg_status cuhip_stream_capturing(struct gg_stream_impl *stream, int32_t *capturing)
{
    int state = 0;
    if (!cuhip_driver.stream_capturing) { /* a driver without the query has no captures either */
        *capturing = 0;
        return GG_OK;
    }
    /* While a stream that is ordered with the default stream is captured, the query of the default stream returns
     * an error and does not invalidate the capture. */
    const int code = CUHIP_IN_CONTEXT(stream_capturing, stream->device, stream,
                                      cuhip_driver.stream_capturing(stream->native, &state));
    if (!code)
        *capturing = state != 0;
    return cuhip_status_of(code);
}

gg_status cuhip_stream_priority_range(struct gg_device_impl *device, int32_t *least,
                                      int32_t *greatest)
{
    int low = 0, high = 0;
    if (!cuhip_driver.priority_range)
        return cuhip_missing(offsetof(struct cuhip_driver, priority_range));
    const int code =
        CUHIP_IN_CONTEXT(priority_range, device, NULL, cuhip_driver.priority_range(&low, &high));
    if (code)
        return cuhip_fail(code, "range of stream priorities");
    *least = low;
    *greatest = high;
    return GG_OK;
}

gg_status cuhip_stream_host_func(struct gg_stream_impl *stream, void (*function)(void *),
                                 void *argument)
{
    int (*queue)(void *stream, void (*function)(void *), void *argument) = cuhip_driver.host_func;
    if (!queue)
        queue = cuhip.host_func;
    if (!queue)
        return cuhip_missing(offsetof(struct cuhip_driver, host_func));
    if (queue == cuhip.host_func) {
        const gg_status status = cuhip_check_capturable(stream, "a host function");
        if (status)
            return status;
    }
    const int code = CUHIP_IN_CONTEXT(host_func, stream->device, stream,
                                      queue(stream->native, function, argument));
    return code ? cuhip_fail(code, "enqueueing a host function") : GG_OK;
}
