/* fence.c: makes one stream wait for another on the device. */
#include "base/error.h"
#include "runtime/call.h"
#include "runtime/event.h"
#include "runtime/replay.h"
#include "runtime/stream.h"

/* With other->lock held: an event recorded after all counted work of @p other. */
static gg_status fence_event_behind(gg_stream *other, bool counted, struct gg_event_impl **out)
{
    struct gg_device *device = other->device;
    gg_status status = GG_OK;
    if (counted && ggi_stream_is_ownerless(other) && other->marker) {
        *out = other->marker;
        return GG_OK;
    }
    if (!other->fence)
        status = ggi_event_acquire(device, false, &other->fence);
    if (status)
        return status;
    *out = other->fence;
    return ggi_queue_event_record(other, other->fence);
}

/* With other->lock held. */
static gg_status fence_all_work(gg_stream *stream, gg_stream *other, bool counted)
{
    struct gg_event_impl *event = NULL;
    if (atomic_load_explicit(&other->capturable, memory_order_relaxed))
        ggi_stream_set_capturable(stream);
    const gg_status status = fence_event_behind(other, counted, &event);
    return status ? status : ggi_queue_wait_event(stream, event);
}

/* With other->lock held, while @p other is captured: an event that is recorded now would belong to the graph, and
 * @p stream would join the capture. The marker is from before it. */
static gg_status fence_before_capture(gg_stream *stream, gg_stream *other, uint64_t ticket)
{
    struct gg_device *device = stream->device;
    const bool marked = other->marker_ticket >= ticket || ggi_stream_in_own_capture(other);
    if (!marked)
        return ggi_capture_fail_earlier_work();
    if (!other->marker_ticket) /* done */
        return GG_OK;
    return GGI_CALL(device, stream_wait_event, stream, 0, (stream->impl, other->marker));
}

/* Without other->lock: ggi_stream_submitted may take stream->lock. */
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
    gg_status status = ggi_stream_raise_staying(other);
    if (status)
        return status;
    pthread_mutex_lock(&other->lock);
    const bool gone = other->gone; /* it was idle when it was destroyed */
    status = gone ? GG_OK : fence_all_work(stream, other, counted);
    pthread_mutex_unlock(&other->lock);
    if (status || gone)
        return status;
    fence_note(stream, other);
    return ggi_stream_raise_ended(other);
}

gg_status ggi_stream_fence_uncaptured(gg_stream *stream, gg_stream *other, bool counted)
{
    gg_status status = GG_OK;
    pthread_mutex_lock(&other->lock);
    const bool gone = other->gone;
    if (!gone && !ggi_stream_is_ownerless(other) && ggi_stream_capturing(other))
        status = GG_ERR_UNSUPPORTED;
    else if (!gone)
        status = fence_all_work(stream, other, counted);
    pthread_mutex_unlock(&other->lock);
    if (!status && !gone)
        fence_note(stream, other);
    return status;
}

/* Some drivers let no stream wait for an event that was recorded on a stream which is captured now, so the marker is recorded
 * on the helper. */
gg_status ggi_stream_mark_before_capture(gg_stream *stream, gg_stream *helper)
{
    struct gg_device *device = stream->device;
    const uint64_t ticket = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    gg_status status = GG_OK;
    if (!helper || ggi_stream_has_passed(stream, ticket))
        return GG_OK;
    if (!stream->marker)
        status = ggi_event_acquire(device, false, &stream->marker);
    if (!status)
        status = fence_all_work(helper, stream, false);
    if (!status)
        status = GGI_CALL(device, event_record, helper, 0, (stream->marker, helper->impl));
    ggi_stream_submitted(helper);
    if (!status)
        stream->marker_ticket = ticket;
    return status;
}

static gg_status fence_up_to(gg_stream *stream, gg_stream *other, uint64_t ticket)
{
    gg_status status = GG_OK;
    pthread_mutex_lock(&other->lock);
    const bool gone = other->gone;
    if (!gone && !ggi_stream_is_ownerless(other) && ggi_stream_is_captured(other))
        status = fence_before_capture(stream, other, ticket);
    else if (!gone)
        status = fence_all_work(stream, other, true);
    pthread_mutex_unlock(&other->lock);
    if (status || gone)
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
