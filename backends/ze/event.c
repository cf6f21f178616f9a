/* event.c: an event is a box with the point that it recorded last. */
#include "ze.h"

#include <stdlib.h>
#include <string.h>

static gg_status new_event(struct gg_device_impl *device, struct gg_event_impl **out)
{
    struct gg_event_impl *event = calloc(1, sizeof *event);
    if (!event)
        return ze_no_memory("an event");
    event->device = device;
    pthread_mutex_init(&event->lock, NULL);
    *out = event;
    return GG_OK;
}

/* Waits are the driver's and take as little processor as it likes, so GG_EVENT_BLOCKING changes nothing. */
gg_status ze_event_create(struct gg_device_impl *device, uint32_t flags, struct gg_event_impl **out)
{
    if (flags & ~(uint32_t)(GG_EVENT_TIMING | GG_EVENT_BLOCKING))
        return ze_host->fail(GG_ERR_UNSUPPORTED, NULL, "event flags 0x%x", (unsigned)flags);
    const gg_status status = new_event(device, out);
    if (!status)
        (*out)->timed = flags & GG_EVENT_TIMING;
    return status;
}

void ze_event_destroy(struct gg_event_impl *event)
{
    if (!event)
        return;
    ze_point_release(event->point);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

/* Whoever made it says what it waits for, and resets it: it can be waited for, not recorded. */
gg_status ze_event_borrow(struct gg_device_impl *device, uint64_t native, struct gg_event_impl **out)
{
    struct gg_event_impl *event = NULL;
    if (!native)
        return ze_host->fail(GG_ERR_INVALID_ARGUMENT, NULL, "0 is no event");
    const gg_status status = new_event(device, &event);
    if (status)
        return status;
    event->borrowed = true;
    event->point = ze_point_wrap((void *)(uintptr_t)native);
    if (!event->point) {
        ze_event_destroy(event);
        return ze_no_memory("a borrowed event");
    }
    *out = event;
    return GG_OK;
}

struct ze_point *ze_event_last(struct gg_event_impl *event)
{
    pthread_mutex_lock(&event->lock);
    struct ze_point *point = event->point ? ze_point_retain(event->point) : NULL;
    pthread_mutex_unlock(&event->lock);
    return point;
}

gg_status ze_event_record(struct gg_event_impl *event, struct gg_stream_impl *stream)
{
    struct ze_point *point = NULL, *before;
    if (event->borrowed)
        return ze_host->fail(
            GG_ERR_UNSUPPORTED, NULL,
            "an event of somebody else has one state, which only he can reset: make "
            "an event to record");
    const int code =
        event->timed ? ze_stream_mark_time(stream, &point) : ze_stream_mark(stream, &point);
    if (code)
        return ze_fail(code, "recording an event");
    pthread_mutex_lock(&event->lock);
    before = event->point;
    event->point = point;
    pthread_mutex_unlock(&event->lock);
    ze_point_release(before);
    return GG_OK;
}

static int wait_for(struct gg_event_impl *event, uint64_t timeout_ns)
{
    struct ze_point *point = ze_event_last(event);
    const int code = point ? ze_point_wait(point, timeout_ns) : 0;
    ze_point_release(point);
    return code;
}

gg_status ze_event_query(struct gg_event_impl *event)
{
    const int code = wait_for(event, 0);
    return code ? ze_fail(code, "looking whether an event has happened") : GG_OK;
}

gg_status ze_event_wait(struct gg_event_impl *event, uint64_t timeout_ns)
{
    const int code = wait_for(event, timeout_ns);
    return code ? ze_fail(code, "waiting for an event") : GG_OK;
}

/* ---- time ---- */

static int time_of(struct gg_event_impl *event, uint64_t *ticks)
{
    struct ze_point *point = ze_event_last(event);
    int code = point && point->time ? ze_point_query(point) : ZE_RESULT_NOT_READY;
    if (!code)
        *ticks = *point->time;
    ze_point_release(point);
    return code;
}

/* The counter has few bits and wraps: of a difference the upper half is the negative ones. */
static double milliseconds_of(const struct ze_device_properties *properties, uint64_t ticks)
{
    const unsigned unused = 64 - properties->timer_bits;
    const int64_t difference = (int64_t)(ticks << unused) >> unused;
    return (double)difference * 1e3 / (double)properties->timer_hz;
}

gg_status ze_event_elapsed(struct gg_event_impl *start, struct gg_event_impl *stop,
                           double *milliseconds)
{
    uint64_t from = 0, to = 0;
    int code = time_of(start, &from);
    if (!code)
        code = time_of(stop, &to);
    if (code)
        return ze_fail(code, "time between two events");
    *milliseconds = milliseconds_of(&stop->device->gpu->properties, to - from);
    return GG_OK;
}
