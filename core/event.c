/* event.c: events, and the few native ones that each device keeps ready. */
#include "internal.h"

#include <stdlib.h>

/* ---- native events ---- */

gg_status ggi_event_take(struct gg_device *device, bool timing, struct gg_event_impl **out)
{
    struct gg_event_impl *spare = NULL;
    pthread_mutex_lock(&device->spare_lock);
    if (device->spares[timing] > 0)
        spare = device->spare[timing][--device->spares[timing]];
    pthread_mutex_unlock(&device->spare_lock);
    if (spare) {
        *out = spare;
        return GG_OK;
    }
    ggi_begin(device, GG_OP_event_create, NULL, 0);
    gg_status status =
        device->ops->event_create(atomic_load(&device->impl), timing ? GG_EVENT_TIMING : 0, out);
    return ggi_end(device, GG_OP_event_create, NULL, 0, status);
}

static bool keep_spare(struct gg_device *device, bool timing, struct gg_event_impl *impl)
{
    pthread_mutex_lock(&device->spare_lock);
    bool room = device->spares[timing] < GGI_SPARES;
    if (room)
        device->spare[timing][device->spares[timing]++] = impl;
    pthread_mutex_unlock(&device->spare_lock);
    return room;
}

void ggi_event_give(struct gg_device *device, bool timing, struct gg_event_impl *impl)
{
    if (!keep_spare(device, timing, impl))
        device->ops->event_destroy(impl);
}

/* ---- the user's ---- */

/* Done with all that it recorded, as far as is known without asking. */
static bool known_done(const gg_event *event)
{
    return atomic_load(&event->done) == atomic_load(&event->recorded);
}

static bool event_idle(struct ggi_retired *self)
{
    gg_event *event = (gg_event *)self;
    struct ggi_own own;
    if (known_done(event) || atomic_load(&event->captured))
        return true;
    ggi_own_begin(event->device, &own);
    gg_status status = event->device->ops->event_query(event->impl);
    ggi_own_end(event->device, &own);
    return !status || status == GG_ERR_DEVICE_LOST;
}

static bool reusable(const gg_event *event)
{
    return !event->borrowed && !(event->flags & GG_EVENT_BLOCKING) && !atomic_load(&event->captured);
}

static void event_destroy(struct ggi_retired *self)
{
    gg_event *event = (gg_event *)self;
    if (reusable(event))
        ggi_event_give(event->device, event->flags & GG_EVENT_TIMING, event->impl);
    else
        event->device->ops->event_destroy(event->impl);
    if (event->release)
        event->release(event->owner);
    free(event);
}

static gg_status new_event(gg_device *device, uint32_t flags, gg_event **out)
{
    gg_event *event = calloc(1, sizeof *event);
    if (!event)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for an event");
    event->retired.idle = event_idle;
    event->retired.destroy = event_destroy;
    atomic_init(&event->refs, 1);
    event->device = device;
    event->flags = flags;
    *out = event;
    return GG_OK;
}

static gg_status native_event(gg_device *device, uint32_t flags, struct gg_event_impl **out)
{
    if (!(flags & GG_EVENT_BLOCKING))
        return ggi_event_take(device, flags & GG_EVENT_TIMING, out);
    ggi_begin(device, GG_OP_event_create, NULL, 0);
    gg_status status = device->ops->event_create(atomic_load(&device->impl), flags, out);
    return ggi_end(device, GG_OP_event_create, NULL, 0, status);
}

gg_status gg_event_create(gg_device *device, uint32_t flags, gg_event **out)
{
    gg_event *event = NULL;
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (flags & ~(uint32_t)(GG_EVENT_TIMING | GG_EVENT_BLOCKING))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "event flags 0x%x hold an unknown bit",
                        (unsigned)flags);
    status = new_event(device, flags, &event);
    if (status)
        return status;
    status = native_event(device, flags, &event->impl);
    if (status) {
        free(event);
        return status;
    }
    *out = event;
    return GG_OK;
}

gg_status gg_event_borrow(gg_device *device, uint64_t native, void (*release)(void *), void *owner,
                          gg_event **out)
{
    gg_event *event = NULL;
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (!device->ops->event_borrow)
        return ggi_unsupported(device, GG_OP_event_borrow);
    status = new_event(device, GG_EVENT_TIMING, &event);
    if (status)
        return status;
    ggi_begin(device, GG_OP_event_borrow, NULL, 0);
    status = device->ops->event_borrow(atomic_load(&device->impl), native, &event->impl);
    status = ggi_end(device, GG_OP_event_borrow, NULL, 0, status);
    if (status) {
        free(event);
        return status;
    }
    event->borrowed = true;
    event->release = release;
    event->owner = owner;
    atomic_store(&event->recorded, 1); /* its owner may have recorded it; the driver knows */
    *out = event;
    return GG_OK;
}

void gg_event_retain(gg_event *event)
{
    atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
}

/* An event that was never recorded, or seen done, goes straight back among the spares. */
void gg_event_release(gg_event *event)
{
    if (!event || atomic_fetch_sub(&event->refs, 1) != 1)
        return;
    if (ggi_usable(event->device) && reusable(event) && known_done(event) &&
        keep_spare(event->device, event->flags & GG_EVENT_TIMING, event->impl))
        free(event);
    else
        ggi_retire(event->device, &event->retired);
}

gg_device *gg_event_device(const gg_event *event)
{
    return event->device;
}

gg_status gg_event_native(gg_event *event, uint64_t handles[4])
{
    struct gg_device *device = event->device;
    gg_status status = ggi_check(device);
    if (status)
        return status;
    if (!device->ops->event_native)
        return ggi_unsupported(device, GG_OP_event_native);
    ggi_begin(device, GG_OP_event_native, NULL, 0);
    status = device->ops->event_native(event->impl, handles);
    return ggi_end(device, GG_OP_event_native, NULL, 0, status);
}

gg_status gg_event_record(gg_event *event, gg_stream *stream)
{
    struct gg_device *device = event->device;
    gg_status status = ggi_stream_check(stream);
    if (status)
        return status;
    if (stream->device != device)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "an event of %s:%d cannot be recorded on a stream of %s:%d",
                        device->backend->name, (int)device->ordinal, stream->device->backend->name,
                        (int)stream->device->ordinal);
    ggi_begin(device, GG_OP_event_record, stream, 0);
    status = device->ops->event_record(event->impl, stream->impl);
    status = ggi_end(device, GG_OP_event_record, stream, 0, status);
    if (status)
        return status;
    bool captured = ggi_stream_captures(stream);
    atomic_store_explicit(&event->captured, captured, memory_order_relaxed);
    atomic_fetch_add(&event->recorded, 1);
    if (!captured)
        ggi_stream_submitted(stream);
    return GG_OK;
}

gg_status gg_event_query(gg_event *event)
{
    struct gg_device *device = event->device;
    uint32_t recorded = atomic_load_explicit(&event->recorded, memory_order_acquire);
    gg_status status = ggi_check(device);
    ggi_note_user(device);
    if (status || !recorded)
        return status;
    ggi_begin(device, GG_OP_event_query, NULL, 0);
    status = device->ops->event_query(event->impl);
    status = ggi_end(device, GG_OP_event_query, NULL, 0, status);
    if (!status)
        atomic_store_explicit(&event->done, recorded, memory_order_release);
    return status;
}

static gg_status wait_slice(gg_event *event, uint64_t timeout_ns)
{
    struct gg_device *device = event->device;
    uint32_t recorded = atomic_load_explicit(&event->recorded, memory_order_acquire);
    gg_status status = ggi_check(device);
    ggi_note_user(device);
    if (status || !recorded)
        return status;
    ggi_begin(device, GG_OP_event_wait, NULL, 0);
    status = device->ops->event_wait(event->impl, timeout_ns);
    status = ggi_end(device, GG_OP_event_wait, NULL, 0, status);
    if (!status)
        atomic_store_explicit(&event->done, recorded, memory_order_release);
    return status;
}

gg_status gg_event_wait(gg_event *event, uint64_t timeout_ns)
{
    uint64_t start = 0;
    gg_status status = wait_slice(event, timeout_ns < GGI_SLICE_NS ? timeout_ns : GGI_SLICE_NS);
    while (status == GG_NOT_READY && timeout_ns > GGI_SLICE_NS) {
        uint64_t now = ggi_now_ns();
        if (!start)
            start = now - GGI_SLICE_NS;
        if (ggi_interrupted())
            return ggi_fail(GG_ERR_INTERRUPTED,
                            "the wait was interrupted; the queued work goes on");
        if (now - start >= timeout_ns)
            return GG_NOT_READY;
        uint64_t left = timeout_ns - (now - start);
        status = wait_slice(event, left < GGI_SLICE_NS ? left : GGI_SLICE_NS);
    }
    if (!status)
        ggi_drain(event->device);
    return status;
}

static gg_status check_timing(const gg_event *event, const char *which)
{
    if (!(event->flags & GG_EVENT_TIMING))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the %s event was not made for timing: create it with timing on", which);
    if (!atomic_load(&event->recorded))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "the %s event was never recorded", which);
    return GG_OK;
}

gg_status gg_event_elapsed(gg_event *start, gg_event *stop, double *milliseconds)
{
    struct gg_device *device = stop->device;
    gg_status status = ggi_check(device);
    if (!status)
        status = check_timing(start, "start");
    if (!status)
        status = check_timing(stop, "stop");
    if (status)
        return status;
    if (start->device != device)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "the events belong to two devices, %s:%d and %s:%d",
                        start->device->backend->name, (int)start->device->ordinal,
                        device->backend->name, (int)device->ordinal);
    if (!device->ops->event_elapsed)
        return ggi_unsupported(device, GG_OP_event_elapsed);
    ggi_begin(device, GG_OP_event_elapsed, NULL, 0);
    status = device->ops->event_elapsed(start->impl, stop->impl, milliseconds);
    return ggi_end(device, GG_OP_event_elapsed, NULL, 0, status);
}
