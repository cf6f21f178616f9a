/* event.c: events. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

static unsigned native_flags(uint32_t flags)
{
    return (flags & GG_EVENT_TIMING ? 0 : twin.event_no_timing) |
           (flags & GG_EVENT_BLOCKING ? twin.event_blocking : 0);
}

gg_status twin_event_create(struct gg_device_impl *device, uint32_t flags,
                            struct gg_event_impl **out)
{
    struct twin_guard guard;
    if (flags & ~(uint32_t)(GG_EVENT_TIMING | GG_EVENT_BLOCKING))
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "event flags 0x%x", flags);
    struct gg_event_impl *event = calloc(1, sizeof *event);
    if (!event)
        return twin_no_memory(sizeof *event, "an event");
    *event = (struct gg_event_impl){
        .device = device, .owned = true, .blocking = (flags & GG_EVENT_BLOCKING) != 0};
    int code = twin_enter(&guard, TWIN_AT_event_create, device, NULL);
    if (!code)
        code = twin_driver.event_create(&event->native, native_flags(flags));
    twin_leave(&guard);
    if (code) {
        free(event);
        return twin_fail(code, "event flags 0x%x", flags);
    }
    *out = event;
    return GG_OK;
}

void twin_event_destroy(struct gg_event_impl *event)
{
    if (!event)
        return;
    if (event->owned)
        twin_forget(twin_driver.event_destroy(event->native), "destroying an event");
    free(event);
}

gg_status twin_event_borrow(struct gg_device_impl *device, uint64_t native,
                            struct gg_event_impl **out)
{
    struct gg_event_impl *event = calloc(1, sizeof *event);
    if (!event)
        return twin_no_memory(sizeof *event, "a borrowed event");
    *event = (struct gg_event_impl){.native = (void *)(uintptr_t)native, .device = device};
    *out = event;
    return GG_OK;
}

gg_status twin_event_native(struct gg_event_impl *event, uint64_t handles[4])
{
    memset(handles, 0, 4 * sizeof *handles);
    handles[0] = (uintptr_t)event->native;
    return GG_OK;
}

gg_status twin_event_record(struct gg_event_impl *event, struct gg_stream_impl *stream)
{
    struct twin_guard guard;
    int code = twin_enter(&guard, TWIN_AT_event_record, stream->device, stream);
    if (!code)
        code = twin_driver.event_record(event->native, stream->native);
    twin_leave(&guard);
    return code ? twin_fail(code, "recording an event") : GG_OK;
}

gg_status twin_event_query(struct gg_event_impl *event)
{
    const int code = twin_driver.event_query(event->native);
    return code ? twin_fail(code, "looking whether an event has happened") : GG_OK;
}

gg_status twin_event_wait(struct gg_event_impl *event, uint64_t timeout_ns)
{
    const int code = twin_poll(twin_driver.event_query, event->native, event->blocking, timeout_ns);
    return code ? twin_fail(code, "waiting for an event") : GG_OK;
}

gg_status twin_event_elapsed(struct gg_event_impl *start, struct gg_event_impl *stop,
                             double *milliseconds)
{
    float elapsed = 0;
    if (!twin_driver.event_elapsed)
        return twin_missing(offsetof(struct twin_driver, event_elapsed));
    const int code = twin_driver.event_elapsed(&elapsed, start->native, stop->native);
    if (code)
        return twin_fail(code, "time between two events");
    *milliseconds = elapsed;
    return GG_OK;
}
