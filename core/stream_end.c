/* stream_end.c: the end of a stream: released, closed but still named by blocks, destroyed. */
#include "pool.h"

#include <stdlib.h>

static bool stream_idle(struct ggi_retired *self)
{
    gg_stream *stream = (gg_stream *)self;
    if (stream->gone)
        return true;
    if (!stream->borrowed && ggi_stream_capturing(stream)) /* a fork of a capture, say */
        return false;
    return ggi_stream_passed(stream, atomic_load(&stream->submitted), true);
}

static void unlink_stream(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    pthread_mutex_lock(&device->lock);
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        device->streams = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    pthread_mutex_unlock(&device->lock);
}

static void destroy_native(gg_stream *stream)
{
    unlink_stream(stream);
    ggi_pool_part(stream);
    ggi_stream_strip(stream);
    ggi_stream_release_keeps(stream, true);
    stream->device->ops->stream_destroy(stream->impl);
    if (stream->release)
        stream->release(stream->owner);
}

static void stream_destroy(struct ggi_retired *self)
{
    gg_stream *stream = (gg_stream *)self;
    if (!stream->gone)
        destroy_native(stream);
    pthread_mutex_destroy(&stream->lock);
    free(atomic_load(&stream->failed));
    free(stream->bins);
    free(stream);
}

void ggi_stream_endable(gg_stream *stream)
{
    stream->retired.idle = stream_idle;
    stream->retired.destroy = stream_destroy;
}

/* ---- references ---- */

#define USE (((int64_t)1 << 32) + 1) /* a use's reference counts in both halves */

/* Nothing but uses holds it: it is closed. */
static bool only_uses(int64_t refs)
{
    return (refs & 0xffffffff) == refs >> 32;
}

static void let_go(gg_stream *stream, int64_t refs)
{
    struct gg_device *device = stream->device;
    int64_t left = atomic_fetch_sub(&stream->refs, refs) - refs;
    if (!left)
        ggi_retire(device, &stream->retired);
    else if (only_uses(left)) /* and from here on the stream may be gone */
        atomic_store(&device->closed, 1);
}

void gg_stream_release(gg_stream *stream)
{
    if (stream)
        let_go(stream, 1);
}

bool ggi_stream_enter(gg_stream *stream)
{
    gg_stream_retain(stream);
    pthread_mutex_lock(&stream->lock);
    const bool gone = stream->gone;
    pthread_mutex_unlock(&stream->lock);
    if (gone)
        let_go(stream, 1);
    return !gone;
}

void ggi_stream_use_retain(gg_stream *stream)
{
    atomic_fetch_add(&stream->refs, USE);
}

void ggi_stream_use_release(gg_stream *stream)
{
    let_go(stream, USE);
}

/* What is on it now and is not counted was queued by its bare handle, or on a block's bare address. */
static void seal(gg_stream *stream)
{
    if (!stream->sealed && !ggi_stream_ownerless(stream))
        ggi_stream_submitted(stream);
    stream->sealed = true;
}

/* Who comes to the stream through a use of it was here first, or finds under its lock that it is gone. */
static bool leave_stream(gg_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->gone = atomic_load(&stream->completed) >= atomic_load(&stream->submitted) &&
                   only_uses(atomic_load(&stream->refs));
    pthread_mutex_unlock(&stream->lock);
    return stream->gone;
}

bool ggi_stream_abandon(gg_stream *stream)
{
    int64_t refs = atomic_load(&stream->refs);
    if (stream->is_default || !refs || !only_uses(refs))
        return true;
    seal(stream);
    if (!stream_idle(&stream->retired) || !leave_stream(stream))
        return false;
    destroy_native(stream);
    return true;
}
