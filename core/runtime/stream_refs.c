/* stream_refs.c: references to a stream: the user's, and those of uses. */
#include "runtime/stream.h"

#define USE (((int64_t)1 << 32) + 1) /* a use's reference counts in both halves */

static void stream_unref(gg_stream *stream, int64_t refs)
{
    struct gg_device *device = stream->device;
    int64_t left = atomic_fetch_sub(&stream->refs, refs) - refs;
    if (!left)
        ggi_retire(device, &stream->retired);
    else if (ggi_stream_has_only_uses(
                 left)) /* the stream may be freed already, so it is not used below */
        atomic_store(&device->closed, 1);
}

void gg_stream_retain(gg_stream *stream)
{
    atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
}

void gg_stream_release(gg_stream *stream)
{
    if (stream)
        stream_unref(stream, 1);
}

bool ggi_stream_try_pin(gg_stream *stream)
{
    gg_stream_retain(stream);
    pthread_mutex_lock(&stream->lock);
    const bool gone = stream->gone;
    pthread_mutex_unlock(&stream->lock);
    if (gone)
        stream_unref(stream, 1);
    return !gone;
}

bool ggi_stream_try_retain_open(gg_stream *stream)
{
    int64_t refs = atomic_load(&stream->refs);
    do
        if (ggi_stream_has_only_uses(refs))
            return false;
    while (!atomic_compare_exchange_weak(&stream->refs, &refs, refs + 1));
    return true;
}

void ggi_stream_use_retain(gg_stream *stream)
{
    atomic_fetch_add(&stream->refs, USE);
}

void ggi_stream_use_release(gg_stream *stream)
{
    stream_unref(stream, USE);
}
