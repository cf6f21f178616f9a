/* stream.c: the public stream functions: create, borrow, query, wait. */
#include "base/error.h"
#include "runtime/call.h"
#include "runtime/replay.h"
#include "runtime/event.h"
#include "runtime/stream.h"

static void stream_link(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    pthread_mutex_lock(&device->lock);
    stream->next = device->streams;
    device->streams->previous = stream; /* the list always contains the default stream */
    device->streams = stream;
    atomic_fetch_add_explicit(&device->stream_count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&device->lock);
}

static gg_status stream_adopt(struct gg_device *device, struct gg_stream_impl *impl, uint32_t flags,
                              gg_stream **out)
{
    gg_status status = ggi_stream_new(device, impl, flags, out);
    if (status)
        device->ops->stream_destroy(impl);
    else
        stream_link(*out);
    return status;
}

static int32_t stream_clamp_priority(struct gg_device *device, int32_t priority)
{
    int32_t least = 0, greatest = 0;
    if (!device->ops->stream_priority_range ||
        device->ops->stream_priority_range(atomic_load(&device->impl), &least, &greatest))
        return 0;
    return priority > least ? least : priority < greatest ? greatest : priority;
}

gg_status gg_stream_create(gg_device *device, uint32_t flags, int32_t priority, gg_stream **out)
{
    struct gg_stream_impl *impl;
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (flags & ~(uint32_t)GG_STREAM_NONBLOCKING)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "stream flags 0x%x contain an unknown bit",
                        (unsigned)flags);
    ggi_drain_for_stream(device);
    if (priority)
        priority = stream_clamp_priority(device, priority);
    status = GGI_CALL(device, stream_create, NULL, 0,
                      (atomic_load(&device->impl), flags, priority, &impl));
    if (!status)
        status = stream_adopt(device, impl, flags, out);
    if (!status) /* nobody else can begin a capture */
        atomic_store_explicit(&(*out)->capturable, GGI_NOT_CAPTURABLE, memory_order_relaxed);
    return status;
}

gg_status gg_stream_borrow(gg_device *device, uint64_t native, void (*release)(void *), void *owner,
                           gg_stream **out)
{
    struct gg_stream_impl *impl = NULL;
    uint32_t flags = GG_STREAM_NONBLOCKING;
    int32_t is_default = 0;
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    status = GGI_CALL_OPTIONAL(device, stream_borrow, NULL, 0,
                               (atomic_load(&device->impl), native, &flags, &is_default, &impl));
    if (!status && is_default) {
        *out = device->default_stream;
        gg_stream_retain(*out);
        if (release)
            release(owner);
        return GG_OK;
    }
    if (!status)
        status = stream_adopt(device, impl, flags & GG_STREAM_NONBLOCKING, out);
    if (status)
        return status;
    (*out)->borrowed = true;
    (*out)->native = native;
    (*out)->of_thread = flags & GG_STREAM_OF_THREAD;
    (*out)->thread = pthread_self();
    (*out)->release = release;
    (*out)->owner = owner;
    return GG_OK;
}

gg_status gg_stream_native(gg_stream *stream, uint64_t handles[4])
{
    struct gg_device *device = stream->device;
    gg_status status = ggi_device_check(device);
    ggi_stream_set_capturable(stream);
    if (!status)
        status = GGI_CALL_OPTIONAL(device, stream_native, stream, 0, (stream->impl, handles));
    if (!status)
        atomic_store_explicit(&stream->handle, handles[0], memory_order_relaxed);
    return status;
}

gg_status gg_stream_query(gg_stream *stream)
{
    return ggi_stream_query(stream);
}

gg_status gg_stream_wait(gg_stream *stream, uint64_t timeout_ns)
{
    gg_status status = ggi_stream_wait(stream, timeout_ns, true);
    if (!status)
        ggi_drain_after_wait(stream->device, stream);
    return status;
}

/* The wait makes the stream join the capture of the event, which must not have ended: drivers then do nothing,
 * or refuse. */
static gg_status stream_wait_captured(gg_stream *stream, gg_event *event)
{
    const uint64_t id = atomic_load_explicit(&event->capture, memory_order_relaxed);
    uint64_t own = 0;
    if (stream->is_default)
        return ggi_event_fail_captured();
    if (id && ggi_stream_capturing(stream) && !ggi_stream_capture_id(stream, &own) && own &&
        own != id)
        return ggi_event_fail_captured();
    ggi_stream_set_capturable(stream);
    const gg_status status = ggi_queue_wait_event(stream, event->impl);
    if (status ? status == GG_ERR_DEVICE && !atomic_load(&ggi_captures)
               : !ggi_stream_capturing(stream))
        return ggi_event_fail_captured();
    return status;
}

gg_status gg_stream_wait_event(gg_stream *stream, gg_event *event)
{
    struct gg_device *device = stream->device;
    gg_status status = ggi_stream_check(stream);
    if (status)
        return status;
    if (event->device->backend != device->backend)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "a stream of \"%s\" cannot wait for an event of \"%s\"",
                        device->backend->name, event->device->backend->name);
    if (!atomic_load_explicit(&event->recorded, memory_order_acquire))
        return GG_OK;
    if (atomic_load_explicit(&event->captured, memory_order_relaxed))
        return stream_wait_captured(stream, event);
    if (event->borrowed || atomic_load_explicit(&event->exported, memory_order_relaxed))
        ggi_stream_set_capturable(stream); /* other code may have recorded it in a capture */
    else if (ggi_stream_in_known_capture(stream))
        return ggi_capture_fail_outside();
    status = ggi_queue_wait_event(stream, event->impl);
    const uint64_t ticket = ggi_stream_submitted(stream);
    const uint64_t watchers = atomic_load_explicit(&event->watchers, memory_order_relaxed) |
                              atomic_load_explicit(&event->before, memory_order_relaxed);
    if (watchers && !status) {
        ggi_stream_watch(stream, watchers, ticket);
        status = ggi_event_result(event, GG_OP_stream_wait_event, atomic_load(&event->recorded));
    }
    return status;
}

/* A wait that would invalidate a capture: of a captured stream for one outside of its capture, or of the default stream for
 * a captured one. */
static gg_status stream_check_captures(gg_stream *stream, gg_stream *other)
{
    uint64_t id = 0, other_id = 0;
    if (stream->is_default && ggi_stream_in_known_capture(other))
        return ggi_capture_fail_wait();
    if (!ggi_stream_in_known_capture(stream) || ggi_stream_capture_id(stream, &id) || !id)
        return GG_OK; /* an invalidated capture has no id */
    if (!ggi_stream_is_captured(other) ||
        (!ggi_stream_capture_id(other, &other_id) && other_id && other_id != id))
        return ggi_capture_fail_outside();
    return GG_OK;
}

gg_status gg_stream_wait_stream(gg_stream *stream, gg_stream *other)
{
    gg_status status = ggi_stream_check(stream);
    if (!status)
        status = ggi_stream_check(other);
    if (status)
        return status;
    if (other->device->backend != stream->device->backend)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "a stream of \"%s\" cannot wait for one of \"%s\"",
                        stream->device->backend->name, other->device->backend->name);
    if (stream == other)
        return GG_OK;
    status = stream_check_captures(stream, other);
    return status ? status : ggi_stream_fence(stream, other, false);
}

gg_status gg_stream_host_func(gg_stream *stream, void (*function)(void *), void *argument)
{
    struct gg_device *device = stream->device;
    gg_status status = ggi_stream_check(stream);
    if (status)
        return status;
    if (!function)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_stream_host_func: the function is NULL");
    status = device->ops->stream_host_func
                 ? GGI_QUEUE(device, stream_host_func, stream, 0, function, argument)
                 : ggi_unsupported(device, GG_OP_stream_host_func);
    if (stream->is_default || !ggi_stream_capturing(stream))
        ggi_stream_submitted(stream);
    return status;
}
