/* progress.c: queries of a stream, and waits for it and for its tickets. */
#include "base/error.h"
#include "runtime/call.h"
#include "runtime/event.h"
#include "runtime/stream.h"

#include <time.h>

/* Whether work that gpuglue did not queue may be on the stream, or ahead of it. */
static bool progress_has_foreign_work(const gg_stream *stream)
{
    const bool shared = stream->device->flags & GG_DEVICE_SHARED_DEFAULT;
    return atomic_load_explicit(&stream->capturable, memory_order_relaxed) == GGI_CAPTURABLE ||
           stream->borrowed || (shared && !(stream->flags & GG_STREAM_NONBLOCKING));
}

bool ggi_stream_may_write_host(gg_stream *stream)
{
    return progress_has_foreign_work(stream) ||
           !ggi_stream_has_passed(stream,
                                  atomic_load_explicit(&stream->writer, memory_order_relaxed));
}

bool ggi_stream_is_known_idle(gg_stream *stream)
{
    return !progress_has_foreign_work(stream) && !atomic_load(&stream->failed) &&
           ggi_stream_has_passed(stream,
                                 atomic_load_explicit(&stream->submitted, memory_order_acquire));
}

gg_status ggi_stream_is_complete_or_lost(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    if (!atomic_load(&device->gone))
        return GG_OK;
    ggi_call_begin(device, GG_OP_stream_wait, stream, 0);
    ggi_fail(GG_ERR_DEVICE_LOST, "the work that was waited for may not have run");
    return ggi_call_end(device, GG_OP_stream_wait, stream, 0, GG_ERR_DEVICE_LOST);
}

gg_status ggi_stream_wrong_thread(const gg_stream *stream)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s:%d: the per-thread default stream was borrowed in another thread and means "
                    "another stream here: borrow it in this thread",
                    stream->device->backend->name, (int)stream->device->ordinal);
}

uint64_t ggi_stream_mark_ownerless(gg_stream *stream, uint64_t ticket)
{
    struct ggi_internal_scope own;
    ggi_internal_begin(stream->device, &own);
    gg_status status = ggi_stream_mark_again(stream) ? GG_OK : ggi_stream_synchronize(stream, false);
    if (status && atomic_load(&stream->device->gone))
        ggi_stream_advance(stream, ticket);
    else if (status)
        atomic_store(&stream->unmarked, true);
    ggi_internal_end(stream->device, &own);
    return ticket;
}

/* The begin of a capture by another thread waits until this has returned. */
static inline gg_status progress_poll_driver(gg_stream *stream, gg_op op, uint64_t timeout_ns)
{
    const struct gg_backend_ops *ops = stream->device->ops;
    gg_status status;
    atomic_fetch_add(&stream->waits, 1);
    if (ggi_stream_wait_disturbs_capture(stream))
        status = ggi_capture_fail_wait();
    else if (op == GG_OP_stream_query)
        status = ops->stream_query(stream->impl);
    else
        status = ops->stream_wait(stream->impl, timeout_ns);
    atomic_fetch_sub_explicit(&stream->waits, 1, memory_order_release);
    return status;
}

/* A query, or one slice of a wait. Raises `completed` where all work is done. */
static inline gg_status progress_poll(gg_stream *stream, gg_op op, uint64_t timeout_ns)
{
    struct gg_device *device = stream->device;
    uint64_t before = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    gg_status status = ggi_stream_check(stream);
    if (status)
        return status;
    ggi_call_begin(device, op, stream, 0);
    status = progress_poll_driver(stream, op, timeout_ns);
    status = ggi_call_end(device, op, stream, 0, status);
    if (status == GG_ERR_DEVICE && ggi_error_record()->suppress_depth)
        ggi_stream_stash_error(stream, status);
    if (status)
        return status;
    ggi_stream_advance(stream, before);
    return ggi_stream_raise_stashed(stream, op);
}

gg_status ggi_stream_query(gg_stream *stream)
{
    return progress_poll(stream, GG_OP_stream_query, 0);
}

/* With stream->lock held. Of a stream without an owner only the marker is queried. */
static gg_status progress_query_inside(gg_stream *stream)
{
    const uint64_t before = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    gg_status status = GG_OK;
    if (!ggi_stream_is_ownerless(stream) && !ggi_stream_wait_disturbs_capture(stream)) {
        status = progress_poll_driver(stream, GG_OP_stream_query, 0);
        if (!status)
            ggi_stream_pass(stream, before);
    } else if (stream->marker_ticket) {
        status = stream->device->ops->event_query(stream->marker);
    }
    return status;
}

bool ggi_stream_query_fails(gg_stream *stream)
{
    struct ggi_internal_scope own;
    ggi_internal_begin(stream->device, &own);
    pthread_mutex_lock(&stream->lock);
    const gg_status status = progress_query_inside(stream);
    if (status == GG_ERR_DEVICE)
        ggi_stream_stash_error(stream, status);
    pthread_mutex_unlock(&stream->lock);
    ggi_internal_end(stream->device, &own);
    return status && status != GG_NOT_READY && status != GG_ERR_UNSUPPORTED;
}

static gg_status progress_wait_slice(gg_stream *stream, uint64_t timeout_ns)
{
    return progress_poll(stream, GG_OP_stream_wait,
                         timeout_ns < GGI_SLICE_NS ? timeout_ns : GGI_SLICE_NS);
}

/* The counted work is complete. The marker recorded after it may not be, and a query would report that, so wait one
 * slice for it. If the device is lost, the slice returns the driver's own error. */
static gg_status progress_last_slice(gg_stream *stream, uint64_t ticket)
{
    gg_status status = GG_OK;
    if (atomic_load(&stream->submitted) == ticket || /* nothing was queued since */
        atomic_load(&stream->device->gone))
        status = progress_wait_slice(stream, GGI_SLICE_NS);
    if (status <= GG_NOT_READY)
        status = ggi_stream_is_complete_or_lost(stream);
    return status ? status : ggi_stream_raise_stashed(stream, GG_OP_stream_wait);
}

static gg_status progress_fail_lost_peer(gg_stream *stream)
{
    struct gg_device *peer = atomic_load(&stream->behind);
    ggi_fail(GG_ERR_DEVICE_LOST, "the stream of %s:%d waits for its work, and that device was lost",
             stream->device->backend->name, (int)stream->device->ordinal);
    return ggi_op_failed(peer, GG_OP_stream_wait, GG_ERR_DEVICE_LOST);
}

gg_status (*_Atomic ggi_raise_staying)(gg_stream *stream);

/* A slice of the backend's wait includes work queued meanwhile. A ticket taken after the first slice marks the
 * end of the work to wait for. */
gg_status ggi_stream_wait(gg_stream *stream, uint64_t timeout_ns, bool hook)
{
    uint64_t start = 0, ticket = 0;
    gg_status status = progress_wait_slice(stream, timeout_ns);
    while (status == GG_NOT_READY && timeout_ns > GGI_SLICE_NS) {
        uint64_t now = ggi_now_ns();
        if (!start) {
            start = now - GGI_SLICE_NS;
            ticket = ggi_stream_submitted(stream);
            ggi_stream_mark(stream);
        }
        if (hook && ggi_interrupted())
            return ggi_fail_interrupted();
        if (now - start >= timeout_ns)
            return GG_NOT_READY;
        if (ggi_stream_is_complete(stream, ticket, true))
            return progress_last_slice(stream, ticket);
        if (ggi_peer_is_lost(stream))
            return progress_fail_lost_peer(stream);
        status = ggi_stream_raise_staying(stream);
        if (status)
            return status;
        status = progress_wait_slice(stream, timeout_ns - (now - start));
    }
    return status;
}

/* Between two polls. */
static void progress_sleep(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* Where the wait fails, a foreign capture may be open: query in relaxed mode. */
gg_status ggi_stream_synchronize_uninterruptible(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    struct ggi_internal_scope own;
    const uint64_t before = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    gg_status status, left;
    do
        status = device->ops->stream_wait(stream->impl, GGI_SLICE_NS);
    while (status == GG_NOT_READY);
    if (!status)
        ggi_stream_advance(stream, before);
    if (status && status != GG_ERR_DEVICE_LOST) {
        ggi_internal_begin(device, &own);
        while ((left = device->ops->stream_query(stream->impl)) == GG_NOT_READY)
            progress_sleep();
        if (left)
            ggi_epoch_wait(device);
        ggi_internal_end(device, &own);
    }
    return ggi_call_end(device, GG_OP_stream_wait, stream, 0, status);
}

/* One slice of a wait for the marker. Other threads may record it again meanwhile, after its work is done. */
static gg_status progress_wait_marker(gg_stream *stream, struct gg_event_impl *marker)
{
    struct gg_device *device = stream->device;
    ggi_call_begin(device, GG_OP_stream_wait, stream, 0);
    gg_status status = device->ops->event_wait(marker, GGI_SLICE_NS);
    status = ggi_call_end(device, GG_OP_stream_wait, stream, 0, status);
    if (status == GG_ERR_DEVICE && ggi_error_record()->suppress_depth)
        ggi_stream_stash_error(stream, status);
    return status == GG_NOT_READY ? GG_OK : status;
}

/* Whether another thread records an event on it, or begins or ends its capture. */
static bool progress_is_recording(gg_stream *stream)
{
    const bool recording = pthread_mutex_trylock(&stream->record_lock);
    if (!recording)
        pthread_mutex_unlock(&stream->record_lock);
    return recording;
}

/* After a poll, which has recorded a marker unless that failed, another thread records one or the stream was captured. */
static gg_status progress_wait_polled(gg_stream *stream, uint64_t ticket)
{
    pthread_mutex_lock(&stream->lock);
    struct gg_event_impl *marker = stream->marker_ticket ? stream->marker : NULL;
    const bool captured = ggi_stream_is_captured(stream);
    const bool marked = stream->marker_ticket >= ticket || ggi_stream_in_own_capture(stream);
    pthread_mutex_unlock(&stream->lock);
    if (ggi_stream_is_complete(stream, ticket, false))
        return GG_OK;
    if (captured && !marked)
        return ggi_capture_fail_earlier_work();
    if (marker)
        return progress_wait_marker(stream, marker);
    if (captured || !progress_is_recording(stream))
        return captured ? GG_OK : ggi_stream_synchronize(stream, true);
    progress_sleep();
    return GG_OK;
}

/* Its owner may record the marker again, or destroy the stream, at any time. */
static gg_status progress_wait_ownerless(gg_stream *stream)
{
    progress_sleep();
    return ggi_stream_query_marker(stream);
}

/* Get the failure of work that an event does not report. A backend without captures may report it through its streams only;
 * it can query them even while the core captures. */
static void progress_poll_failure(gg_stream *stream)
{
    struct ggi_internal_scope own;
    if (!stream->device->replays || ggi_stream_is_ownerless(stream))
        return;
    ggi_internal_begin(stream->device, &own);
    pthread_mutex_lock(&stream->lock);
    if (!stream->gone)
        ggi_stream_stash_error(stream, stream->device->ops->stream_query(stream->impl));
    pthread_mutex_unlock(&stream->lock);
    ggi_internal_end(stream->device, &own);
}

/* Another thread may begin a capture of the stream meanwhile, so the marker is waited for, not the stream. */
gg_status ggi_stream_wait_ticket(gg_stream *stream, uint64_t ticket)
{
    const bool ownerless = ggi_stream_is_ownerless(stream);
    gg_status status = GG_OK;
    if (ggi_stream_is_complete(stream, ticket, false))
        return ggi_stream_raise_ended(stream);
    if (!ownerless && !stream->device->ops->capture_begin && !stream->device->replays &&
        !ggi_stream_is_captured(stream))
        return ggi_stream_synchronize(stream, true);
    while (!status && !ggi_stream_is_complete(stream, ticket, true)) {
        status = ggi_device_check(stream->device);
        if (!status) /* a failure ends the wait */
            status =
                ownerless ? progress_wait_ownerless(stream) : progress_wait_polled(stream, ticket);
        if (!status && ggi_interrupted())
            status = ggi_fail_interrupted();
        if (!status && ggi_peer_is_lost(stream))
            status = progress_fail_lost_peer(stream);
        if (!status)
            status = ggi_stream_raise_staying(stream);
    }
    if (!status)
        status = ggi_stream_is_complete_or_lost(stream);
    if (!status)
        progress_poll_failure(stream);
    return status ? status : ggi_stream_raise_stashed(stream, GG_OP_stream_wait);
}

/* A default stream that orders other streams is not queried: that could invalidate a capture. */
bool ggi_peer_is_lost(gg_stream *stream)
{
    struct gg_device *peer = atomic_load_explicit(&stream->behind, memory_order_relaxed);
    struct ggi_internal_scope own;
    if (!peer || atomic_load(&peer->gone) || atomic_load(&ggi_shutting_down) ||
        peer->flags & GG_DEVICE_SHARED_DEFAULT)
        return peer && atomic_load(&peer->gone);
    ggi_internal_begin(peer, &own);
    gg_status status = peer->ops->stream_query(peer->default_stream->impl);
    ggi_stream_stash_error(peer->default_stream, status);
    ggi_internal_end(peer, &own);
    return status == GG_ERR_DEVICE_LOST && ggi_device_is_lost(peer);
}
