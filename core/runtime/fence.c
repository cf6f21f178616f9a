/* fence.c: makes one stream wait for another on the device. */
#include "base/error.h"
#include "runtime/call.h"
#include "runtime/event.h"
#include "runtime/replay.h"
#include "runtime/stream.h"

/* What another stream waits for. */
struct fence {
    struct gg_event_impl *event; /* NULL: nothing */
    bool taken;                  /* from the stream: no other thread records it before fence_end */
    bool counted;                /* in other->fences */
};

/* With other->record_lock held: no capture of @p other begins or ends before fence_end. */
static void fence_count(gg_stream *other, struct fence *fence)
{
    fence->counted = true;
    atomic_fetch_add(&other->fences, 1);
}

/* With other->record_lock held: an event recorded after all counted work of @p other. */
static gg_status fence_begin(gg_stream *other, bool counted, struct fence *fence)
{
    gg_status status = GG_OK;
    fence_count(other, fence);
    if (counted && ggi_stream_is_ownerless(other) && other->marker) {
        fence->event = other->marker;
        return GG_OK;
    }
    fence->event = atomic_exchange(&other->fence, NULL);
    if (!fence->event)
        status = ggi_event_acquire(other->device, false, &fence->event);
    if (status)
        return status;
    fence->taken = true;
    return ggi_queue_event_record(other, fence->event);
}

/* An event that is recorded on the default stream would invalidate the capture of a stream which is ordered with it, also one of
 * other code. */
static gg_status fence_refuse_default(void)
{
    return ggi_fail(
        GG_ERR_UNSUPPORTED,
        "stream is capturing: the default stream is ordered with it, so its earlier work "
        "cannot be waited for; synchronize it before the capture begins");
}

/* The stream keeps one event; one more of a thread that did the same at the same time is destroyed. */
static void fence_return(gg_stream *other, struct gg_event_impl *event)
{
    struct gg_event_impl *none = NULL;
    if (atomic_compare_exchange_strong(&other->fence, &none, event))
        return;
    ggi_replay_forget_event(event);
    other->device->ops->event_destroy(event);
}

/* After fence_begin, with its status, and without a lock: the driver may wait for room in the queue of @p stream, while other
 * threads use @p other. */
static gg_status fence_end(gg_stream *stream, gg_stream *other, const struct fence *fence,
                           gg_status status)
{
    if (!status && fence->event) {
        if (atomic_load_explicit(&other->capturable, memory_order_relaxed))
            ggi_stream_set_capturable(stream);
        status = ggi_queue_wait_event(stream, fence->event);
    }
    if (fence->taken)
        fence_return(other, fence->event);
    if (fence->counted)
        atomic_fetch_sub(&other->fences, 1);
    return status;
}

/* With other->record_lock held, while @p other is captured, or is the default stream and one that is ordered with it is: an event
 * that is recorded now would belong to the graph, and the stream would join the capture. The marker is from before it, and of
 * the capture's helper, which lives until its end. */
static gg_status fence_before_capture(gg_stream *other, uint64_t ticket, struct fence *fence)
{
    fence_count(other, fence);
    pthread_mutex_lock(&other->lock);
    const bool marked = other->marker_ticket >= ticket || ggi_stream_in_own_capture(other);
    if (other->marker_ticket) /* else it is done */
        fence->event = other->marker;
    pthread_mutex_unlock(&other->lock);
    if (marked)
        return GG_OK;
    return other->is_default ? fence_refuse_default() : ggi_capture_fail_earlier_work();
}

/* Without a lock: ggi_stream_submitted may record an event. */
static void fence_note(gg_stream *stream, gg_stream *other)
{
    const uint64_t watchers = ggi_stream_watchers(other);
    if (other->device != stream->device)
        atomic_store(&stream->behind, other->device);
    const uint64_t ticket = ggi_stream_is_captured(stream) ? 0 : ggi_stream_submitted(stream);
    if (watchers && ticket)
        ggi_stream_watch(stream, watchers, ticket);
}

gg_status ggi_stream_fence(gg_stream *stream, gg_stream *other, bool counted)
{
    struct fence fence = {NULL, false, false};
    gg_status status = ggi_stream_raise_staying(other);
    if (status || other->gone) /* it was idle when it was destroyed */
        return status;
    pthread_mutex_lock(&other->record_lock);
    status = other->is_default && ggi_stream_capturing(other) ? fence_refuse_default()
                                                              : fence_begin(other, counted, &fence);
    pthread_mutex_unlock(&other->record_lock);
    status = fence_end(stream, other, &fence, status);
    if (status)
        return status;
    fence_note(stream, other);
    return ggi_stream_raise_ended(other);
}

gg_status ggi_stream_fence_uncaptured(gg_stream *stream, gg_stream *other, bool counted)
{
    struct fence fence = {NULL, false, false};
    pthread_mutex_lock(&other->record_lock);
    gg_status status = !ggi_stream_is_ownerless(other) && ggi_stream_capturing(other)
                           ? GG_ERR_UNSUPPORTED
                           : fence_begin(other, counted, &fence);
    pthread_mutex_unlock(&other->record_lock);
    status = fence_end(stream, other, &fence, status);
    if (!status)
        fence_note(stream, other);
    return status;
}

/* Some drivers let no stream wait for an event that was recorded on a stream which is captured now, so the marker is recorded
 * on the helper. */
gg_status ggi_stream_mark_before_capture(gg_stream *stream, gg_stream *helper)
{
    struct gg_device *device = stream->device;
    const uint64_t ticket = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    struct gg_event_impl *marker = stream->marker;
    struct fence fence = {NULL, false, false};
    gg_status status = GG_OK;
    if (!helper || ggi_stream_has_passed(stream, ticket))
        return GG_OK;
    if (!marker)
        status = ggi_event_acquire(device, false, &marker);
    if (!status)
        status = fence_begin(stream, false, &fence);
    status = fence_end(helper, stream, &fence, status);
    if (!status)
        status = GGI_CALL(device, event_record, helper, 0, (marker, helper->impl));
    ggi_stream_submitted(helper);
    pthread_mutex_lock(&stream->lock);
    stream->marker = marker;
    if (!status)
        stream->marker_ticket = ticket;
    pthread_mutex_unlock(&stream->lock);
    return status;
}

static gg_status fence_up_to(gg_stream *stream, gg_stream *other, uint64_t ticket)
{
    struct fence fence = {NULL, false, false};
    if (other->gone)
        return GG_OK;
    pthread_mutex_lock(&other->record_lock);
    gg_status status = !ggi_stream_is_ownerless(other) && ggi_stream_capturing(other)
                           ? fence_before_capture(other, ticket, &fence)
                           : fence_begin(other, true, &fence);
    pthread_mutex_unlock(&other->record_lock);
    status = fence_end(stream, other, &fence, status);
    if (status)
        return status;
    fence_note(stream, other);
    return ggi_stream_raise_ended(other);
}

/* The driver makes the next operation of @p stream wait. */
static gg_status fence_follow(gg_stream *stream, gg_stream *other)
{
    const uint64_t watchers = ggi_stream_watchers(other);
    if (watchers)
        ggi_stream_watch(stream, watchers, atomic_load(&stream->submitted) + 1);
    return ggi_stream_raise_ended(other);
}

gg_status ggi_stream_wait_on_device(gg_stream *stream, gg_stream *other, uint64_t ticket)
{
    if (stream == other)
        return GG_OK;
    if (ggi_stream_is_complete(other, ticket, false))
        return ggi_stream_has_ended(other, ticket) ? ggi_stream_raise_ended(other) : GG_OK;
    const gg_status left = ggi_stream_raise_staying(other);
    if (left)
        return left;
    bool capturing = ggi_stream_is_captured(stream);
    if (!capturing && ggi_stream_implicitly_ordered(stream, other))
        return fence_follow(stream, other);
    if (capturing && !ggi_stream_is_complete(other, ticket, true))
        return ggi_fail(
            GG_ERR_UNSUPPORTED,
            "stream is capturing: it would have to wait for work that another stream has "
            "not finished; synchronize that stream before the capture begins");
    if (capturing)
        return GG_OK;
    if (stream->device->backend != other->device->backend) /* no event works in both drivers */
        return ggi_stream_wait_ticket(other, ticket);
    return fence_up_to(stream, other, ticket);
}
