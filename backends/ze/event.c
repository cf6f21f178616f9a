/* event.c: events: each holds the pooled event of its last record. */
#include "ze.h"

#include <stdlib.h>
#include <string.h>

static gg_status event_new(struct gg_device_impl *device, struct gg_event_impl **out)
{
    struct gg_event_impl *event = calloc(1, sizeof *event);
    if (!event)
        return ze_no_memory("an event");
    event->device = device;
    pthread_mutex_init(&event->lock, NULL);
    *out = event;
    return GG_OK;
}

/* The driver decides how it waits, so GG_EVENT_BLOCKING has no effect. */
gg_status ze_event_create(struct gg_device_impl *device, uint32_t flags, struct gg_event_impl **out)
{
    if (flags & ~(uint32_t)(GG_EVENT_TIMING | GG_EVENT_BLOCKING))
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL, "event flags 0x%x", (unsigned)flags);
    const gg_status status = event_new(device, out);
    if (!status)
        (*out)->timed = flags & GG_EVENT_TIMING;
    return status;
}

void ze_event_destroy(struct gg_event_impl *event)
{
    if (!event)
        return;
    ze_pooled_event_release(event->pooled);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

/* A borrowed event is signalled and reset by its owner: it can be waited for and not recorded. */
gg_status ze_event_borrow(struct gg_device_impl *device, uint64_t native, struct gg_event_impl **out)
{
    struct gg_event_impl *event = NULL;
    if (!native)
        return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL, "the handle 0 is not an event");
    const gg_status status = event_new(device, &event);
    if (status)
        return status;
    event->borrowed = true;
    event->pooled = ze_pooled_event_wrap((void *)(uintptr_t)native);
    if (!event->pooled) {
        ze_event_destroy(event);
        return ze_no_memory("a borrowed event");
    }
    *out = event;
    return GG_OK;
}

struct ze_pooled_event *ze_event_current(struct gg_event_impl *event)
{
    pthread_mutex_lock(&event->lock);
    struct ze_pooled_event *pooled = event->pooled ? ze_pooled_event_retain(event->pooled) : NULL;
    pthread_mutex_unlock(&event->lock);
    return pooled;
}

gg_status ze_event_record(struct gg_event_impl *event, struct gg_stream_impl *stream)
{
    struct ze_pooled_event *pooled = NULL, *before;
    if (event->borrowed)
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL,
                            "a borrowed event cannot be recorded, because only its owner can reset "
                            "it: create an event and record that");
    const int code =
        event->timed ? ze_stream_record_time(stream, &pooled) : ze_stream_record(stream, &pooled);
    if (code)
        return ze_fail(code, "recording an event");
    pthread_mutex_lock(&event->lock);
    before = event->pooled;
    event->pooled = pooled;
    pthread_mutex_unlock(&event->lock);
    ze_pooled_event_release(before);
    return GG_OK;
}

static int event_wait(struct gg_event_impl *event, uint64_t timeout_ns)
{
    struct ze_pooled_event *pooled = ze_event_current(event);
    const int code = pooled ? ze_pooled_event_wait(pooled, timeout_ns) : 0;
    ze_pooled_event_release(pooled);
    return code;
}

gg_status ze_event_query(struct gg_event_impl *event)
{
    const int code = event_wait(event, 0);
    return code ? ze_fail(code, "querying an event") : GG_OK;
}

gg_status ze_event_wait(struct gg_event_impl *event, uint64_t timeout_ns)
{
    const int code = event_wait(event, timeout_ns);
    return code ? ze_fail(code, "waiting for an event") : GG_OK;
}

/* ---- time ---- */

static int event_get_ticks(struct gg_event_impl *event, uint64_t *ticks)
{
    struct ze_pooled_event *pooled = ze_event_current(event);
    int code = pooled && pooled->time ? ze_pooled_event_query(pooled) : ZE_RESULT_NOT_READY;
    if (!code)
        *ticks = *pooled->time;
    ze_pooled_event_release(pooled);
    return code;
}

/* The counter has few bits and wraps: the upper half of the range of a difference is negative. */
static double ticks_to_milliseconds(const struct ze_device_properties *properties, uint64_t ticks)
{
    const unsigned unused = 64 - properties->timer_bits;
    const int64_t difference = (int64_t)(ticks << unused) >> unused;
    return (double)difference * 1e3 / (double)properties->timer_hz;
}

gg_status ze_event_elapsed(struct gg_event_impl *start, struct gg_event_impl *stop,
                           double *milliseconds)
{
    uint64_t from = 0, to = 0;
    int code = event_get_ticks(start, &from);
    if (!code)
        code = event_get_ticks(stop, &to);
    if (code)
        return ze_fail(code, "time between two events");
    *milliseconds = ticks_to_milliseconds(&stop->device->gpu->properties, to - from);
    return GG_OK;
}
