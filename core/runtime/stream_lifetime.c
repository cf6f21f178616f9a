/* stream_lifetime.c: the life of a stream: created, released, closed while blocks still refer to it, destroyed. */
#include "base/error.h"
#include "base/list.h"
#include "runtime/stream.h"

#include <stdlib.h>

static bool stream_idle(struct ggi_retired *self)
{
    gg_stream *stream = (gg_stream *)self;
    if (stream->gone)
        return true;
    if (!stream->borrowed &&
        ggi_other_capturing(stream)) /* it may have joined another stream's capture */
        return false;
    return ggi_stream_poll_locked(stream, atomic_load(&stream->submitted));
}

static void stream_unlink(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    pthread_mutex_lock(&device->lock);
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        device->streams = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    atomic_fetch_sub_explicit(&device->stream_count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&device->lock);
    if (device->next_visit == stream)
        device->next_visit = stream->next;
    if (device->busy == stream)
        device->busy = NULL;
}

static void stream_destroy_native(gg_stream *stream)
{
    stream_unlink(stream);
    ggi_device_parts.stream_gone(stream);
    ggi_stream_release_events(stream);
    ggi_stream_run_releases(stream, true);
    stream->device->ops->stream_destroy(stream->impl);
    if (stream->release)
        stream->release(stream->owner);
}

static void stream_destroy(struct ggi_retired *self)
{
    gg_stream *stream = (gg_stream *)self;
    if (!stream->gone)
        stream_destroy_native(stream);
    pthread_mutex_destroy(&stream->lock);
    pthread_mutex_destroy(&stream->record_lock);
    free(atomic_load(&stream->failed));
    free(stream->bins);
    free(stream);
}

/* A ticket after all work, since work through the native handle is not counted. */
static void stream_take_final_ticket(gg_stream *stream)
{
    if (!stream->final_ticket_taken && !ggi_stream_is_ownerless(stream))
        ggi_stream_submitted(stream);
    stream->final_ticket_taken = true;
}

/* Set `gone` unless the stream was pinned, when it is not written: a thread that has pinned it reads it without the lock. Later
 * pins read it under the lock. */
static bool stream_mark_gone(gg_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    const bool gone = atomic_load(&stream->completed) >= atomic_load(&stream->submitted) &&
                      ggi_stream_has_only_uses(atomic_load(&stream->refs));
    if (gone)
        stream->gone = true;
    pthread_mutex_unlock(&stream->lock);
    return gone;
}

bool ggi_stream_destroy_closed(gg_stream *stream)
{
    int64_t refs = atomic_load(&stream->refs);
    if (stream->is_default || !refs || !ggi_stream_has_only_uses(refs))
        return true;
    stream_take_final_ticket(stream);
    if (!stream_idle(&stream->retired) || !stream_mark_gone(stream))
        return false;
    stream_destroy_native(stream);
    return true;
}

size_t ggi_device_pin_streams(struct gg_device *device, struct ggi_use **out)
{
    size_t count = 0, held = 0;
    pthread_mutex_lock(&device->lock);
    for (gg_stream *stream = device->streams; stream; stream = stream->next)
        count++;
    struct ggi_use *uses = malloc(count * sizeof *uses);
    for (gg_stream *stream = device->streams; stream && uses; stream = stream->next)
        if (ggi_refs_try_retain(&stream->refs))
            uses[held++] = (struct ggi_use){stream, atomic_load(&stream->submitted)};
    pthread_mutex_unlock(&device->lock);
    *out = uses;
    return held;
}

gg_stream *ggi_stream_of_native(struct gg_device *device, uint64_t native)
{
    gg_stream *found = NULL;
    pthread_mutex_lock(
        &device->lock); /* a stream leaves the list before its native one is destroyed */
    for (gg_stream *stream = device->streams; stream && !found; stream = stream->next)
        if ((stream->borrowed ? stream->native : atomic_load(&stream->handle)) == native &&
            !ggi_stream_is_ownerless(stream) && ggi_stream_try_retain_open(stream))
            found = stream;
    pthread_mutex_unlock(&device->lock);
    return found;
}

static _Atomic(uint64_t) last_serial;

gg_status ggi_stream_new(struct gg_device *device, struct gg_stream_impl *impl, uint32_t flags,
                         gg_stream **out)
{
    gg_stream *stream = calloc(1, sizeof *stream);
    gg_status status = stream ? ggi_device_parts.stream_new(stream) : GG_ERR_OUT_OF_MEMORY;
    if (status) {
        free(stream);
        return ggi_fail(status, "no host memory for a stream");
    }
    stream->retired.idle = stream_idle;
    stream->retired.polled = true;
    stream->retired.destroy = stream_destroy;
    atomic_init(&stream->refs, 1);
    stream->device = device;
    stream->impl = impl;
    stream->serial = atomic_fetch_add(&last_serial, 1) + 1;
    stream->flags = flags;
    ggi_stream_set_capturable(stream);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_mutex_init(&stream->record_lock, NULL);
    *out = stream;
    return GG_OK;
}

gg_stream *ggi_device_streams(struct gg_device *device)
{
    pthread_mutex_lock(&device->lock);
    gg_stream *first = device->streams;
    pthread_mutex_unlock(&device->lock);
    return first;
}

gg_device *gg_stream_device(const gg_stream *stream)
{
    return stream->device;
}
