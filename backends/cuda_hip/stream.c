/* stream.c: streams of ours, of others, and the device's default stream. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

gg_status twin_stream_default(struct gg_device_impl *device, struct gg_stream_impl **out)
{
    *out = &device->default_stream;
    return GG_OK;
}

gg_status twin_stream_create(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                             struct gg_stream_impl **out)
{
    struct twin_guard guard;
    if (flags & ~(uint32_t)GG_STREAM_NONBLOCKING)
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "stream flags 0x%x", flags);
    struct gg_stream_impl *stream = calloc(1, sizeof *stream);
    if (!stream)
        return twin_no_memory(sizeof *stream, "a stream");
    *stream = (struct gg_stream_impl){.device = device, .owned = true};
    int code = twin_enter(&guard, TWIN_AT_stream_create, device, NULL);
    if (!code)
        code = twin_driver.stream_create(&stream->native, flags ? twin.stream_nonblocking : 0,
                                         priority);
    twin_leave(&guard);
    if (code) {
        free(stream);
        return twin_fail(code, "flags 0x%x, priority %d", flags, (int)priority);
    }
    *out = stream;
    return GG_OK;
}

void twin_stream_destroy(struct gg_stream_impl *stream)
{
    if (!stream || stream == &stream->device->default_stream)
        return;
    if (stream->owned)
        twin_forget(twin_driver.stream_destroy(stream->native), "destroying a stream");
    free(stream);
}

/* Whether a foreign stream is ordered with the default one; what is not known is taken as not. Asking a
 * stream that is being captured would spoil the capture. */
static uint32_t foreign_flags(const struct gg_stream_impl *stream)
{
    unsigned flags = 0;
    int capturing = 0;
    if (stream->enters)
        return 0;
    if (twin_driver.stream_capturing &&
        (twin_clear(twin_driver.stream_capturing(stream->native, &capturing)) || capturing))
        return GG_STREAM_NONBLOCKING;
    if (!twin_driver.stream_flags || twin_clear(twin_driver.stream_flags(stream->native, &flags)))
        return GG_STREAM_NONBLOCKING;
    return flags & twin.stream_nonblocking ? (uint32_t)GG_STREAM_NONBLOCKING : 0;
}

gg_status twin_stream_borrow(struct gg_device_impl *device, uint64_t native, uint32_t *flags,
                             int32_t *is_default, struct gg_stream_impl **out)
{
    if (native <= 1) {
        *flags = 0;
        *is_default = 1;
        return twin_stream_default(device, out);
    }
    if (native == 2 && !twin.per_thread_stream)
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL,
                               "handle 2 names a per-thread stream, which this backend has not");
    struct gg_stream_impl *stream = calloc(1, sizeof *stream);
    if (!stream)
        return twin_no_memory(sizeof *stream, "a borrowed stream");
    const bool special = native == twin.per_thread_stream;
    *stream = (struct gg_stream_impl){
        .native = (void *)(uintptr_t)native, .device = device, .enters = special ? device : NULL};
    *flags = foreign_flags(stream) | (special ? (uint32_t)GG_STREAM_OF_THREAD : 0);
    *is_default = 0;
    *out = stream;
    return GG_OK;
}

gg_status twin_stream_native(struct gg_stream_impl *stream, uint64_t handles[4])
{
    memset(handles, 0, 4 * sizeof *handles);
    handles[0] = (uintptr_t)stream->native;
    return GG_OK;
}

gg_status twin_stream_query(struct gg_stream_impl *stream)
{
    struct twin_guard guard;
    int code = twin_enter(&guard, TWIN_AT_stream_query, stream->device, stream);
    if (!code)
        code = twin_driver.stream_query(stream->native);
    twin_leave(&guard);
    return code ? twin_fail(code, "looking whether a stream is done") : GG_OK;
}

gg_status twin_stream_wait(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    struct twin_guard guard;
    struct gg_device_impl *device = stream->device;
    int code = twin_switch(device, &guard); /* a fence may have to be made */
    if (!code)
        code = twin_poll_stream(stream, timeout_ns);
    twin_leave(&guard);
    return code ? twin_fail(code, "waiting for a stream") : GG_OK;
}

gg_status twin_stream_wait_event(struct gg_stream_impl *stream, struct gg_event_impl *event)
{
    struct twin_guard guard;
    int code = twin_enter(&guard, TWIN_AT_stream_wait_event, stream->device, stream);
    if (!code)
        code = twin_driver.stream_wait_event(stream->native, event->native, 0);
    twin_leave(&guard);
    return code ? twin_fail(code, "making a stream wait for an event") : GG_OK;
}

gg_status twin_stream_capturing(struct gg_stream_impl *stream, int32_t *capturing)
{
    struct twin_guard guard;
    int state = 0;
    if (!twin_driver.stream_capturing)
        return GG_ERR_UNSUPPORTED;
    /* The default stream answers with an error, and disturbs nothing, while a stream that is ordered
     * with it is captured. */
    int code = twin_enter(&guard, TWIN_AT_stream_capturing, stream->device, stream);
    if (!code)
        code = twin_driver.stream_capturing(stream->native, &state);
    twin_leave(&guard);
    if (!code)
        *capturing = state != 0;
    return twin_answer(code);
}

gg_status twin_stream_priority_range(struct gg_device_impl *device, int32_t *least,
                                     int32_t *greatest)
{
    struct twin_guard guard;
    int low = 0, high = 0;
    if (!twin_driver.priority_range)
        return twin_missing(offsetof(struct twin_driver, priority_range));
    int code = twin_enter(&guard, TWIN_AT_priority_range, device, NULL);
    if (!code)
        code = twin_driver.priority_range(&low, &high);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "range of stream priorities");
    *least = low;
    *greatest = high;
    return GG_OK;
}

gg_status twin_stream_host_func(struct gg_stream_impl *stream, void (*function)(void *),
                                void *argument)
{
    struct twin_guard guard;
    int (*queue)(void *stream, void (*function)(void *), void *argument) = twin_driver.host_func;
    if (!queue)
        queue = twin.host_func;
    if (!queue)
        return twin_missing(offsetof(struct twin_driver, host_func));
    int code = twin_enter(&guard, TWIN_AT_host_func, stream->device, stream);
    if (!code)
        code = queue(stream->native, function, argument);
    twin_leave(&guard);
    return code ? twin_fail(code, "queueing a host function") : GG_OK;
}
