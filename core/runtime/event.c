/* event.c: events. */
#include "base/error.h"
#include "runtime/call.h"
#include "runtime/event.h"
#include "runtime/replay.h"
#include "runtime/stream.h"

#include <stdlib.h>

/* Whether a past query has found it done. */
static bool event_known_done(const gg_event *event)
{
    return atomic_load(&event->done) == atomic_load(&event->recorded);
}

static bool event_idle(struct ggi_retired *self)
{
    gg_event *event = (gg_event *)self;
    struct ggi_internal_scope own;
    if (event_known_done(event) || atomic_load(&event->captured))
        return true;
    ggi_internal_begin(event->device, &own);
    gg_status status = event->device->ops->event_query(event->impl);
    ggi_internal_end(event->device, &own);
    return !status || status == GG_ERR_DEVICE_LOST;
}

static bool event_is_reusable(const gg_event *event)
{
    return !event->borrowed && !(event->flags & GG_EVENT_BLOCKING) && !atomic_load(&event->captured);
}

static void event_destroy(struct ggi_retired *self)
{
    gg_event *event = (gg_event *)self;
    if (atomic_load(&event->captured))
        ggi_replay_forget_event(event->impl);
    if (event_is_reusable(event))
        ggi_event_recycle(event->device, event->flags & GG_EVENT_TIMING, event->impl);
    else
        event->device->ops->event_destroy(event->impl);
    if (event->release)
        event->release(event->owner);
    free(event);
}

static gg_status event_new(gg_device *device, uint32_t flags, gg_event **out)
{
    gg_event *event = calloc(1, sizeof *event);
    if (!event)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for an event");
    event->retired.idle = event_idle;
    event->retired.polled = true;
    event->retired.destroy = event_destroy;
    atomic_init(&event->refs, 1);
    event->device = device;
    event->flags = flags;
    *out = event;
    return GG_OK;
}

static gg_status event_new_native(gg_device *device, uint32_t flags, struct gg_event_impl **out)
{
    if (!(flags & GG_EVENT_BLOCKING))
        return ggi_event_acquire(device, flags & GG_EVENT_TIMING, out);
    return GGI_CALL(device, event_create, NULL, 0, (atomic_load(&device->impl), flags, out));
}

gg_status gg_event_create(gg_device *device, uint32_t flags, gg_event **out)
{
    gg_event *event = NULL;
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (flags & ~(uint32_t)(GG_EVENT_TIMING | GG_EVENT_BLOCKING))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "event flags 0x%x contain an unknown bit",
                        (unsigned)flags);
    status = event_new(device, flags, &event);
    if (status)
        return status;
    status = event_new_native(device, flags, &event->impl);
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
    status = event_new(device, GG_EVENT_TIMING, &event);
    if (status)
        return status;
    status = GGI_CALL_OPTIONAL(device, event_borrow, NULL, 0,
                               (atomic_load(&device->impl), native, &event->impl));
    if (status) {
        free(event);
        return status;
    }
    event->borrowed = true;
    event->release = release;
    event->owner = owner;
    atomic_store(&event->recorded, 1); /* its owner may have recorded it already */
    *out = event;
    return GG_OK;
}

void gg_event_retain(gg_event *event)
{
    atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
}

/* An event that was never recorded, or is known to be done, goes to the cache at once. */
void gg_event_release(gg_event *event)
{
    if (!event || atomic_fetch_sub(&event->refs, 1) != 1)
        return;
    if (ggi_device_usable(event->device) && event_is_reusable(event) && event_known_done(event) &&
        ggi_event_keep_spare(event->device, event->flags & GG_EVENT_TIMING, event->impl))
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
    gg_status status = ggi_device_check(device);
    atomic_store_explicit(&event->exported, true, memory_order_relaxed);
    return status ? status
                  : GGI_CALL_OPTIONAL(device, event_native, NULL, 0, (event->impl, handles));
}

static void event_note_capture(gg_event *event, gg_stream *stream)
{
    uint64_t id = 0;
    ggi_suppress_errors(1);
    ggi_stream_capture_id(stream, &id);
    ggi_suppress_errors(-1);
    atomic_store_explicit(&event->capture, id, memory_order_relaxed);
}

#define TICKET_BITS 40
#define COUNTED (UINT64_C(1) << 63)

/* Serial number and ticket together are used once, and cost less than to count the records of each event. @p ticket: 0 in a
 * capture. */
static uint64_t event_new_record(const gg_stream *stream, uint64_t ticket)
{
    static _Atomic(uint64_t) counted;
    if (ticket && !(ticket >> TICKET_BITS) && !(stream->serial >> (63 - TICKET_BITS)))
        return stream->serial << TICKET_BITS | ticket;
    return COUNTED | (atomic_fetch_add(&counted, 1) + 1);
}

/* @p ticket as above. The work before may already have ended without a result. */
static void event_note_watchers(gg_event *event, gg_stream *stream, uint64_t ticket)
{
    uint64_t watchers = ticket ? ggi_stream_watchers(stream) : 0;
    const uint64_t before = ticket ? ggi_stream_watchers_before(stream) : 0;
    if (ticket && ggi_stream_ended_unseen(stream))
        watchers = ggi_stream_extend_ended(stream, ticket) | atomic_load(&stream->watchers);
    atomic_store_explicit(&event->watchers, watchers, memory_order_relaxed);
    atomic_store_explicit(&event->before, before, memory_order_relaxed);
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
    status = ggi_queue_event_record(stream, event->impl);
    if (status)
        return status;
    const bool captured = ggi_stream_is_captured(stream);
    if (captured)
        event_note_capture(event, stream);
    else if (atomic_load_explicit(&event->captured, memory_order_relaxed))
        ggi_replay_forget_event(event->impl);
    atomic_store_explicit(&event->captured, captured, memory_order_relaxed);
    const uint64_t ticket = captured ? 0 : ggi_stream_counted(stream);
    event_note_watchers(event, stream, ticket);
    atomic_store_explicit(&event->recorded, event_new_record(stream, ticket), memory_order_release);
    return GG_OK;
}

static struct ggi_ended_use event_use(const gg_event *event, uint64_t recorded)
{
    return (struct ggi_ended_use){
        .serial = recorded >> TICKET_BITS,
        .ticket = recorded & ((UINT64_C(1) << TICKET_BITS) - 1),
        .watchers =
            recorded & COUNTED ? 0 : atomic_load_explicit(&event->watchers, memory_order_relaxed)};
}

/* Work that nobody can end has a result, even if work behind it was ended before the event was found done. */
gg_status ggi_event_result(const gg_event *event, gg_op op, uint64_t recorded)
{
    const struct ggi_ended_use use = event_use(event, recorded);
    return use.watchers ? ggi_ended_report(event->device, op, use) : GG_OK;
}

gg_status ggi_event_fail_captured(void)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "the event was recorded in a capture, where it only orders the captured work: "
                    "record an event on the stream after the launch of the graph");
}

/* Found done, and nothing but this library can have recorded it since. */
static bool event_stays_done(const gg_event *event, uint64_t recorded)
{
    return atomic_load_explicit(&event->done, memory_order_acquire) == recorded &&
           !event->borrowed && !atomic_load_explicit(&event->exported, memory_order_relaxed);
}

/* GG_NOT_READY: the driver must be queried. Querying a captured event would invalidate the capture;
 * after the capture some drivers report such an event as complete. */
static gg_status event_begin_poll(gg_event *event, uint64_t *recorded)
{
    struct gg_device *device = event->device;
    *recorded = atomic_load_explicit(&event->recorded, memory_order_acquire);
    gg_status status = ggi_device_check(device);
    ggi_device_note_thread(device);
    if (status || !*recorded)
        return status;
    if (atomic_load_explicit(&event->captured, memory_order_relaxed))
        return ggi_event_fail_captured();
    return GG_NOT_READY;
}

int32_t gg_event_follows(const gg_event *event, const gg_event *earlier)
{
    const uint64_t last = atomic_load_explicit(&event->recorded, memory_order_acquire);
    const uint64_t first = atomic_load_explicit(&earlier->recorded, memory_order_acquire);
    return !((last | first) & COUNTED) && last >> TICKET_BITS &&
           last >> TICKET_BITS == first >> TICKET_BITS && last >= first;
}

static bool event_is_left(const gg_event *event, uint64_t recorded)
{
    const struct ggi_ended_use use = event_use(event, recorded);
    return use.watchers && ggi_ended_stays(use);
}

/* Also of work that was left before the record, or is before the event only by the driver's order of streams. */
static gg_status event_raise_left(const gg_event *event, uint64_t recorded)
{
    const uint64_t own = atomic_load_explicit(&event->watchers, memory_order_relaxed);
    const uint64_t before = atomic_load_explicit(&event->before, memory_order_relaxed);
    if (recorded & COUNTED || !(own || before))
        return GG_OK;
    return ggi_ended_raise_left(event->device, recorded >> TICKET_BITS, own, before);
}

static gg_status event_end_poll(gg_event *event, gg_op op, uint64_t recorded, gg_status status)
{
    if (status == GG_NOT_READY && event_is_left(event, recorded))
        return ggi_event_result(event, op, recorded);
    if (status == GG_NOT_READY) {
        const gg_status left = event_raise_left(event, recorded);
        return left ? left : status;
    }
    if (!status)
        status = ggi_event_result(event, op, recorded);
    if (!status)
        atomic_store_explicit(&event->done, recorded, memory_order_release);
    return status;
}

gg_status gg_event_query(gg_event *event)
{
    uint64_t recorded;
    gg_status status = event_begin_poll(event, &recorded);
    if (status != GG_NOT_READY)
        return status;
    if (event_stays_done(event, recorded))
        return GG_OK;
    status = GGI_CALL(event->device, event_query, NULL, 0, (event->impl));
    return event_end_poll(event, GG_OP_event_query, recorded, status);
}

gg_status gg_event_poll(gg_event *event)
{
    struct gg_device *device = event->device;
    struct ggi_internal_scope own;
    uint64_t recorded;
    gg_status status = event_begin_poll(event, &recorded);
    if (status != GG_NOT_READY)
        return status;
    ggi_capture_relax_begin(device, &own);
    status = device->ops->event_query(event->impl);
    ggi_capture_relax_end(device, &own);
    if (!status || status == GG_NOT_READY)
        return event_end_poll(event, GG_OP_event_query, recorded, status);
    return ggi_op_failed(device, GG_OP_event_query, status);
}

static gg_status event_wait_slice(gg_event *event, uint64_t timeout_ns)
{
    const uint64_t slice = timeout_ns < GGI_SLICE_NS ? timeout_ns : GGI_SLICE_NS;
    uint64_t recorded;
    gg_status status = event_begin_poll(event, &recorded);
    if (status != GG_NOT_READY)
        return status;
    status = GGI_CALL(event->device, event_wait, NULL, 0, (event->impl, slice));
    return event_end_poll(event, GG_OP_event_wait, recorded, status);
}

gg_status gg_event_wait(gg_event *event, uint64_t timeout_ns)
{
    uint64_t start = 0;
    gg_status status = event_wait_slice(event, timeout_ns);
    while (status == GG_NOT_READY && timeout_ns > GGI_SLICE_NS) {
        uint64_t now = ggi_now_ns();
        if (!start)
            start = now - GGI_SLICE_NS;
        if (ggi_interrupted())
            return ggi_fail_interrupted();
        if (now - start >= timeout_ns)
            return GG_NOT_READY;
        status = event_wait_slice(event, timeout_ns - (now - start));
    }
    if (!status)
        ggi_drain_after_wait(event->device, NULL);
    return status;
}

static gg_status event_check_timing(const gg_event *event, const char *which)
{
    if (!(event->flags & GG_EVENT_TIMING))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the %s event has no timing: create it with timing enabled", which);
    if (!atomic_load(&event->recorded))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "the %s event was never recorded", which);
    if (atomic_load(&event->captured))
        return ggi_event_fail_captured();
    return GG_OK;
}

gg_status gg_event_elapsed(gg_event *start, gg_event *stop, double *milliseconds)
{
    struct gg_device *device = stop->device;
    gg_status status = ggi_device_check(device);
    if (!status)
        status = event_check_timing(start, "start");
    if (!status)
        status = event_check_timing(stop, "stop");
    if (status)
        return status;
    if (start->device != device)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "the events belong to two devices, %s:%d and %s:%d",
                        start->device->backend->name, (int)start->device->ordinal,
                        device->backend->name, (int)device->ordinal);
    return GGI_CALL_OPTIONAL(device, event_elapsed, NULL, 0,
                             (start->impl, stop->impl, milliseconds));
}
