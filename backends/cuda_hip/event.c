/* event.c: events. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

static unsigned event_native_flags(uint32_t flags)
{
    return (flags & GG_EVENT_TIMING ? 0 : cuhip.event_no_timing) |
           (flags & GG_EVENT_BLOCKING ? cuhip.event_blocking : 0);
}

gg_status cuhip_event_create(struct gg_device_impl *device, uint32_t flags,
                             struct gg_event_impl **out)
{
    if (flags & ~(uint32_t)(GG_EVENT_TIMING | GG_EVENT_BLOCKING))
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "event flags 0x%x", flags);
    struct gg_event_impl *event = calloc(1, sizeof *event);
    if (!event)
        return cuhip_no_memory(sizeof *event, "an event");
    *event = (struct gg_event_impl){
        .device = device, .owned = true, .blocking = (flags & GG_EVENT_BLOCKING) != 0};
    const int code =
        CUHIP_IN_CONTEXT(event_create, device, NULL,
                         cuhip_driver.event_create(&event->native, event_native_flags(flags)));
    if (code) {
        free(event);
        return cuhip_fail(code, "event flags 0x%x", flags);
    }
    *out = event;
    return GG_OK;
}

void cuhip_event_destroy(struct gg_event_impl *event)
{
    if (!event)
        return;
    if (event->owned)
        cuhip_log_failure(cuhip_driver.event_destroy(event->native), "destroying an event");
    free(event);
}

gg_status cuhip_event_borrow(struct gg_device_impl *device, uint64_t native,
                             struct gg_event_impl **out)
{
    struct gg_event_impl *event = calloc(1, sizeof *event);
    if (!event)
        return cuhip_no_memory(sizeof *event, "a borrowed event");
    *event = (struct gg_event_impl){
        .native = (void *)(uintptr_t)native, .device = device, .shared = true};
    *out = event;
    return GG_OK;
}

gg_status cuhip_event_native(struct gg_event_impl *event, uint64_t handles[4])
{
    memset(handles, 0, 4 * sizeof *handles);
    handles[0] = (uintptr_t)event->native;
    atomic_store(&event->shared, true);
    return GG_OK;
}

gg_status cuhip_event_record(struct gg_event_impl *event, struct gg_stream_impl *stream)
{
    const int code = CUHIP_IN_CONTEXT(event_record, stream->device, stream,
                                      cuhip_driver.event_record(event->native, stream->native));
    if (!code && atomic_load(&event->shared))
        atomic_store(&event->captured, cuhip_captures_partly(stream));
    return code ? cuhip_fail(code, "recording an event") : GG_OK;
}

gg_status cuhip_event_query(struct gg_event_impl *event)
{
    const int code = cuhip_query_event(event->native);
    return code ? cuhip_fail(code, "querying an event") : GG_OK;
}

gg_status cuhip_event_wait(struct gg_event_impl *event, uint64_t timeout_ns)
{
    const int code = cuhip_poll(cuhip_query_event, event->native, event->blocking, timeout_ns);
    return code ? cuhip_fail(code, "waiting for an event") : GG_OK;
}

gg_status cuhip_event_elapsed(struct gg_event_impl *start, struct gg_event_impl *stop,
                              double *milliseconds)
{
    float elapsed = 0;
    const int code = cuhip_driver.event_elapsed(&elapsed, start->native, stop->native);
    if (code)
        return cuhip_fail(code, "time between two events");
    *milliseconds = elapsed;
    return GG_OK;
}
