/* progress.c: how far a stream has come, as core sees it: tickets, the events that tell, the order
 * between two streams, and what is let go when a ticket has passed. */
#include "internal.h"

#include <stdlib.h>

void ggi_stream_advance(gg_stream *stream, uint64_t ticket)
{
    uint64_t known = atomic_load_explicit(&stream->completed, memory_order_relaxed);
    while (known < ticket &&
           !atomic_compare_exchange_weak_explicit(&stream->completed, &known, ticket,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
    }
    if (atomic_load_explicit(&stream->keeps, memory_order_relaxed))
        ggi_stream_release_keeps(stream, false);
}

bool ggi_stream_capturing(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    int32_t capturing = 0;
    if (!device->ops->stream_capturing)
        return false;
    gg_status status = device->ops->stream_capturing(stream->impl, &capturing);
    return status == GG_ERR_UNSUPPORTED ? stream->is_default : !status && capturing;
}

/* ---- the marker: an event that is recorded behind the work and polled ---- */

/* With stream->lock held. All work counted so far stands before the marker. */
static bool record_marker(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    uint64_t ticket = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    if (!stream->marker && ggi_event_take(device, false, &stream->marker))
        return false;
    if (device->ops->event_record(stream->marker, stream->impl))
        return false;
    stream->marker_ticket = ticket;
    atomic_store(&stream->unmarked, false);
    return true;
}

/* With stream->lock held. */
static void poll_marker(gg_stream *stream)
{
    if (!stream->marker_ticket)
        return;
    gg_status status = stream->device->ops->event_query(stream->marker);
    if (status == GG_ERR_DEVICE_LOST)
        atomic_store(&stream->device->gone, true);
    else if (status)
        return;
    ggi_stream_advance(stream, stream->marker_ticket);
    stream->marker_ticket = 0;
}

/* With stream->lock held: the work counted so far is over, or will never run. */
static void pass(gg_stream *stream, uint64_t ticket)
{
    stream->marker_ticket = 0;
    ggi_stream_advance(stream, ticket);
}

void ggi_stream_asked(gg_stream *stream, gg_status status)
{
    const struct gg_error *told = &ggi_thread()->hushed;
    struct gg_error *none = NULL, *kept = status == GG_ERR_DEVICE ? malloc(sizeof *kept) : NULL;
    if (!kept)
        return;
    *kept = *told;
    if (!atomic_compare_exchange_strong(&stream->failed, &none, kept)) /* the first one counts */
        free(kept);
}

gg_status ggi_stream_tell(gg_stream *stream, gg_op op)
{
    if (!atomic_load_explicit(&stream->failed, memory_order_acquire))
        return GG_OK;
    struct gg_error *kept = atomic_exchange(&stream->failed, NULL);
    if (!kept)
        return GG_OK;
    if (!ggi_thread()->quiet)
        ggi_thread()->error = *kept;
    free(kept);
    return ggi_op_failed(stream->device, op, GG_ERR_DEVICE);
}

/* With stream->lock held: ask the driver, and leave a marker behind where work is under way. The
 * native handle of a stream without an owner may be gone, so there only its marker is asked. */
static void look_at(gg_stream *stream)
{
    uint64_t before = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    if (atomic_load(&stream->device->gone)) {
        pass(stream, before);
        return;
    }
    poll_marker(stream);
    if (ggi_stream_ownerless(stream) || stream->marker_ticket ||
        atomic_load_explicit(&stream->completed, memory_order_acquire) >= before)
        return;
    if (ggi_stream_capturing(stream))
        return;
    gg_status status = stream->device->ops->stream_query(stream->impl);
    if (status == GG_ERR_DEVICE_LOST) /* nothing runs any more */
        atomic_store(&stream->device->gone, true);
    if (!status || status == GG_ERR_DEVICE_LOST)
        ggi_stream_advance(stream, before);
    else if (status == GG_NOT_READY)
        record_marker(stream);
    else
        ggi_stream_asked(stream, status);
}

bool ggi_stream_passed(gg_stream *stream, uint64_t ticket, bool look)
{
    struct ggi_own own;
    if (atomic_load_explicit(&stream->completed, memory_order_acquire) >= ticket)
        return true;
    if (!look)
        return false;
    ggi_own_begin(stream->device, &own);
    pthread_mutex_lock(&stream->lock);
    look_at(stream);
    pthread_mutex_unlock(&stream->lock);
    ggi_own_end(stream->device, &own);
    return atomic_load_explicit(&stream->completed, memory_order_acquire) >= ticket;
}

gg_status ggi_stream_ask_marker(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    gg_status status = GG_OK;
    pthread_mutex_lock(&stream->lock);
    const bool unmarked = stream->unmarked;
    ggi_begin(device, GG_OP_event_query, stream, 0);
    if (stream->marker_ticket)
        status = device->ops->event_query(stream->marker);
    status = ggi_end(device, GG_OP_event_query, stream, 0, status);
    pthread_mutex_unlock(&stream->lock);
    if (!status && unmarked)
        status = ggi_fail(GG_ERR_DEVICE,
                          "no event could be recorded behind the work of a borrowed stream, so it "
                          "cannot be waited for: synchronize it where it was made");
    return status == GG_NOT_READY ? GG_OK : status;
}

gg_status ggi_stream_passed_or_lost(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    if (!atomic_load(&device->gone))
        return GG_OK;
    ggi_begin(device, GG_OP_stream_wait, stream, 0);
    ggi_fail(GG_ERR_DEVICE_LOST, "the work that was waited for may not have run");
    return ggi_end(device, GG_OP_stream_wait, stream, 0, GG_ERR_DEVICE_LOST);
}

void ggi_stream_mark(gg_stream *stream)
{
    struct ggi_own own;
    ggi_own_begin(stream->device, &own);
    pthread_mutex_lock(&stream->lock);
    poll_marker(stream);
    if (!stream->marker_ticket && !ggi_stream_capturing(stream))
        record_marker(stream);
    pthread_mutex_unlock(&stream->lock);
    ggi_own_end(stream->device, &own);
}

uint64_t ggi_stream_submitted(gg_stream *stream)
{
    uint64_t ticket = atomic_fetch_add_explicit(&stream->submitted, 1, memory_order_acq_rel) + 1;
    struct ggi_own own;
    if (!ggi_stream_ownerless(stream))
        return ticket;
    ggi_own_begin(stream->device, &own);
    pthread_mutex_lock(&stream->lock);
    poll_marker(stream);
    bool marked = record_marker(stream);
    pthread_mutex_unlock(&stream->lock);
    gg_status status = marked ? GG_OK : ggi_stream_finish(stream, false);
    if (status == GG_ERR_DEVICE_LOST)
        ggi_stream_advance(stream, ticket);
    else if (status)
        atomic_store(&stream->unmarked, true);
    ggi_own_end(stream->device, &own);
    return ticket;
}

void ggi_stream_strip(gg_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->marker)
        ggi_event_give(stream->device, false, stream->marker);
    if (stream->fence)
        ggi_event_give(stream->device, false, stream->fence);
    stream->marker = stream->fence = NULL;
    stream->marker_ticket = 0;
    pthread_mutex_unlock(&stream->lock);
}

/* ---- order between two streams ---- */

/* With other->lock held: an event that stands behind all work counted on @p other. */
static gg_status event_behind(gg_stream *other, bool counted, struct gg_event_impl **out)
{
    struct gg_device *device = other->device;
    gg_status status = GG_OK;
    if (counted && ggi_stream_ownerless(other) && other->marker) {
        *out = other->marker;
        return GG_OK;
    }
    if (!other->fence)
        status = ggi_event_take(device, false, &other->fence);
    if (status)
        return status;
    ggi_begin(device, GG_OP_event_record, other, 0);
    status = device->ops->event_record(other->fence, other->impl);
    if (!status)
        *out = other->fence;
    return ggi_end(device, GG_OP_event_record, other, 0, status);
}

gg_status ggi_stream_fence(gg_stream *stream, gg_stream *other, bool counted)
{
    struct gg_device *device = stream->device;
    struct gg_event_impl *event = NULL;
    pthread_mutex_lock(&other->lock);
    if (other->gone) { /* it was idle when it was destroyed */
        pthread_mutex_unlock(&other->lock);
        return GG_OK;
    }
    gg_status status = event_behind(other, counted, &event);
    if (!status) {
        ggi_begin(device, GG_OP_stream_wait_event, stream, 0);
        status = device->ops->stream_wait_event(stream->impl, event);
        status = ggi_end(device, GG_OP_stream_wait_event, stream, 0, status);
    }
    pthread_mutex_unlock(&other->lock);
    if (!status && other->device != device)
        atomic_store(&stream->behind, other->device);
    if (!status && !ggi_stream_captures(stream))
        ggi_stream_submitted(stream);
    return status;
}

bool ggi_stream_ordered_anyway(const gg_stream *stream, const gg_stream *other)
{
    return stream->device == other->device && (stream->device->flags & GG_DEVICE_SHARED_DEFAULT) &&
           ((stream->is_default && !(other->flags & GG_STREAM_NONBLOCKING)) ||
            (other->is_default && !(stream->flags & GG_STREAM_NONBLOCKING)));
}

gg_status ggi_stream_after(gg_stream *stream, gg_stream *other, uint64_t ticket)
{
    if (stream == other || ggi_stream_passed(other, ticket, false))
        return GG_OK;
    bool capturing = ggi_stream_captures(stream);
    if (!capturing && ggi_stream_ordered_anyway(stream, other))
        return GG_OK;
    if (capturing && !ggi_stream_passed(other, ticket, true))
        return ggi_fail(
            GG_ERR_UNSUPPORTED,
            "stream is capturing: it would have to wait for work that another stream has "
            "not finished; synchronize that stream before the capture begins");
    if (capturing)
        return GG_OK;
    if (stream->device->backend != other->device->backend) /* no event that both drivers know */
        return ggi_stream_wait_ticket(other, ticket);
    return ggi_stream_fence(stream, other, true);
}

/* ---- what is let go when a ticket has passed ---- */

gg_status ggi_stream_keep(gg_stream *stream, uint64_t ticket, void (*release)(void *), void *owner)
{
    struct ggi_keep *keep = malloc(sizeof *keep);
    if (!keep)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to keep a copy's owner");
    *keep = (struct ggi_keep){.ticket = ticket, .release = release, .owner = owner};
    atomic_fetch_add(&stream->device->keeps, 1);
    keep->next = atomic_load(&stream->keeps);
    while (!atomic_compare_exchange_weak(&stream->keeps, &keep->next, keep)) {
    }
    return GG_OK;
}

gg_status ggi_device_keep(struct gg_device *device, void (*release)(void *), void *owner)
{
    struct ggi_keep *keep = malloc(sizeof *keep);
    if (!keep)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to keep a copy's owner");
    *keep = (struct ggi_keep){.release = release, .owner = owner};
    keep->next = atomic_load(&device->captured);
    while (!atomic_compare_exchange_weak(&device->captured, &keep->next, keep)) {
    }
    return GG_OK;
}

/* Takes the whole list, lets go of what has passed and puts the rest back: the list needs no lock. A
 * release callback may run under locks of ours, which is why it must not call gpuglue. */
void ggi_stream_release_keeps(gg_stream *stream, bool all)
{
    uint64_t passed = atomic_load_explicit(&stream->completed, memory_order_acquire);
    struct ggi_keep *keep = atomic_exchange(&stream->keeps, NULL), *next;
    for (; keep; keep = next) {
        next = keep->next;
        if (all || keep->ticket <= passed) {
            keep->release(keep->owner);
            free(keep);
            atomic_fetch_sub(&stream->device->keeps, 1);
            continue;
        }
        keep->next = atomic_load(&stream->keeps);
        while (!atomic_compare_exchange_weak(&stream->keeps, &keep->next, keep)) {
        }
    }
}
