/* marker.c: the marker of a stream, an event that is recorded behind its work and polled.
 *
 * The driver waits in a record while the stream's queue of commands is full. So a thread records with record_lock held and no
 * other: any other caller that needs record_lock records on the same stream, and a poll only tries it. The stream's own lock is
 * taken for its queries before, and for the result after the record. Meanwhile other threads know what they knew: a query of the
 * event can only report that the work before the new record is done, or that before the last one, whose ticket is stored. */
#include "base/error.h"
#include "runtime/call.h"
#include "runtime/event.h"
#include "runtime/stream.h"

/* So many unfinished operations, of a few commands each, leave room in a queue: the vendors' have about a thousand. */
#define MARKER_ROOM 64u

/* With record_lock held. The marker comes after all work counted so far. */
static bool marker_record(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    const uint64_t ticket = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    struct gg_event_impl *marker = stream->marker;
    if (!marker && ggi_event_acquire(device, false, &marker))
        return false;
    const bool recorded = !device->ops->event_record(marker, stream->impl);
    pthread_mutex_lock(&stream->lock);
    stream->marker = marker;
    if (recorded)
        stream->marker_ticket = ticket;
    pthread_mutex_unlock(&stream->lock);
    if (recorded)
        atomic_store(&stream->unmarked, false);
    return recorded;
}

/* With stream->lock held, and no marker pending: take record_lock, and a reference. Not while another thread records, and not on
 * a closed stream: it gets no more work, so a query reports as much. */
static bool marker_begin(gg_stream *stream)
{
    if (pthread_mutex_trylock(&stream->record_lock))
        return false;
    if (ggi_stream_try_retain_open(stream))
        return true;
    pthread_mutex_unlock(&stream->record_lock);
    return false;
}

static void marker_end(gg_stream *stream)
{
    marker_record(stream);
    pthread_mutex_unlock(&stream->record_lock);
    gg_stream_release(stream);
}

/* Whether a query has found that the work is complete, or will never run. */
static bool marker_is_passed(gg_stream *stream, gg_status status)
{
    return !status || (status == GG_ERR_DEVICE_LOST && ggi_device_is_lost(stream->device));
}

/* With stream->lock held. */
static void marker_poll(gg_stream *stream)
{
    if (!stream->marker_ticket)
        return;
    if (!marker_is_passed(stream, stream->device->ops->event_query(stream->marker)))
        return;
    ggi_stream_advance(stream, stream->marker_ticket);
    stream->marker_ticket = 0;
}

void ggi_stream_pass(gg_stream *stream, uint64_t ticket)
{
    stream->marker_ticket = 0;
    ggi_stream_advance(stream, ticket);
}

/* With stream->lock held: query the driver for what is up to @p ticket. Returns whether a marker is needed. Of a stream without an
 * owner only the marker is queried, since its native stream may have been destroyed. */
static bool marker_ask_driver(gg_stream *stream, uint64_t ticket)
{
    uint64_t before = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    if (atomic_load(&stream->device->gone)) {
        ggi_stream_pass(stream, before);
        return false;
    }
    marker_poll(stream);
    if (ggi_stream_is_ownerless(stream) || stream->marker_ticket ||
        ggi_stream_has_passed(stream, ticket < before ? ticket : before))
        return false;
    if (ggi_stream_capturing(stream)) {
        if (ggi_stream_in_own_capture(stream)) /* the marker was after all work that runs */
            ggi_stream_advance(stream, before);
        return false;
    }
    gg_status status = stream->device->ops->stream_query(stream->impl);
    if (marker_is_passed(stream, status))
        ggi_stream_advance(stream, before);
    else if (status != GG_NOT_READY)
        ggi_stream_stash_error(stream, status);
    return status == GG_NOT_READY;
}

/* ---- streams of all devices that need a marker, each with a reference ---- */

_Atomic(gg_stream *) ggi_unmarked;
static pthread_mutex_t unmarked_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(unmarked_lock)

/* With stream->lock held. At the shutdown no more work is queued, so no marker is needed. */
static void marker_want(gg_stream *stream)
{
    if (atomic_load(&ggi_shutting_down))
        return;
    pthread_mutex_lock(&unmarked_lock);
    if (!stream->marker_wanted && ggi_stream_try_retain_open(stream)) {
        stream->marker_wanted = true;
        stream->next_unmarked = atomic_load(&ggi_unmarked);
        atomic_store(&ggi_unmarked, stream);
    }
    pthread_mutex_unlock(&unmarked_lock);
}

static gg_stream *marker_take_unmarked(void)
{
    pthread_mutex_lock(&unmarked_lock);
    gg_stream *stream = atomic_load(&ggi_unmarked);
    if (stream) {
        stream->marker_wanted = false;
        atomic_store(&ggi_unmarked, stream->next_unmarked);
    }
    pthread_mutex_unlock(&unmarked_lock);
    return stream;
}

/* One at a time, so that other threads take the others while this one waits in the driver. */
void ggi_record_markers_wanted(void)
{
    for (gg_stream *stream; (stream = marker_take_unmarked());) {
        if (ggi_device_usable(stream->device))
            ggi_stream_mark(stream);
        gg_stream_release(stream);
    }
}

bool ggi_stream_is_complete(gg_stream *stream, uint64_t ticket, bool poll)
{
    struct ggi_internal_scope own;
    if (ggi_stream_has_passed(stream, ticket))
        return true;
    if (!poll)
        return false;
    ggi_internal_begin(stream->device, &own);
    pthread_mutex_lock(&stream->lock);
    const bool record = marker_ask_driver(stream, ticket) && marker_begin(stream);
    pthread_mutex_unlock(&stream->lock);
    if (record)
        marker_end(stream);
    ggi_internal_end(stream->device, &own);
    return ggi_stream_has_passed(stream, ticket);
}

bool ggi_stream_poll_locked(gg_stream *stream, uint64_t ticket)
{
    struct ggi_internal_scope own;
    if (ggi_stream_has_passed(stream, ticket))
        return true;
    ggi_internal_begin(stream->device, &own);
    pthread_mutex_lock(&stream->lock);
    if (marker_ask_driver(stream, ticket))
        marker_want(stream);
    pthread_mutex_unlock(&stream->lock);
    ggi_internal_end(stream->device, &own);
    return ggi_stream_has_passed(stream, ticket);
}

bool ggi_stream_poll_with_room(gg_stream *stream, uint64_t ticket)
{
    struct ggi_internal_scope own;
    if (atomic_load(&stream->submitted) - atomic_load(&stream->completed) <= MARKER_ROOM)
        return ggi_stream_is_complete(stream, ticket, true);
    ggi_internal_begin(stream->device, &own);
    pthread_mutex_lock(&stream->lock);
    marker_ask_driver(stream, ticket);
    pthread_mutex_unlock(&stream->lock);
    ggi_internal_end(stream->device, &own);
    return ggi_stream_has_passed(stream, ticket);
}

gg_status ggi_stream_query_marker(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    gg_status status = GG_OK;
    pthread_mutex_lock(&stream->lock);
    const bool unmarked = stream->unmarked;
    ggi_call_begin(device, GG_OP_event_query, stream, 0);
    if (stream->marker_ticket)
        status = device->ops->event_query(stream->marker);
    status = ggi_call_end(device, GG_OP_event_query, stream, 0, status);
    pthread_mutex_unlock(&stream->lock);
    if (!status && unmarked)
        status =
            ggi_fail(GG_ERR_DEVICE,
                     "no event could be recorded after the work of a borrowed stream, so gpuglue "
                     "cannot wait for it: synchronize it in the library that created it");
    return status == GG_NOT_READY ? GG_OK : status;
}

void ggi_stream_mark(gg_stream *stream)
{
    struct ggi_internal_scope own;
    ggi_internal_begin(stream->device, &own);
    pthread_mutex_lock(&stream->lock);
    marker_poll(stream);
    const bool record = !stream->marker_ticket &&
                        !ggi_stream_has_passed(stream, atomic_load(&stream->submitted)) &&
                        !ggi_stream_capturing(stream) && marker_begin(stream);
    pthread_mutex_unlock(&stream->lock);
    if (record)
        marker_end(stream);
    ggi_internal_end(stream->device, &own);
}

bool ggi_stream_mark_again(gg_stream *stream)
{
    pthread_mutex_lock(&stream->record_lock);
    pthread_mutex_lock(&stream->lock);
    marker_poll(stream);
    pthread_mutex_unlock(&stream->lock);
    const bool marked = marker_record(stream);
    pthread_mutex_unlock(&stream->record_lock);
    return marked;
}

void ggi_stream_release_events(gg_stream *stream)
{
    struct gg_event_impl *fence = atomic_exchange(&stream->fence, NULL);
    pthread_mutex_lock(&stream->lock);
    if (stream->marker)
        ggi_event_recycle(stream->device, false, stream->marker);
    if (fence)
        ggi_event_recycle(stream->device, false, fence);
    stream->marker = NULL;
    stream->marker_ticket = 0;
    pthread_mutex_unlock(&stream->lock);
}
