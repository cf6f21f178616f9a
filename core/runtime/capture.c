/* capture.c: stream captures, and internal calls that do not disturb them. */
#include "base/error.h"
#include "runtime/replay.h"

#include <time.h>

/* Drivers refuse the query of the default stream while one that is ordered with it is captured: it counts as captured, too. */
bool ggi_stream_query_capture(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    int32_t capturing = 0;
    if (!device->ops->stream_capturing && !device->replays)
        return false;
    if (device->replays)
        return ggi_stream_is_replayed(stream);
    gg_status status = device->ops->stream_capturing(stream->impl, &capturing);
    return status == GG_ERR_UNSUPPORTED ? stream->is_default : !status && capturing;
}

gg_status ggi_stream_capture_id(gg_stream *stream, uint64_t *id)
{
    struct gg_device *device = stream->device;
    const uint64_t own = atomic_load(&stream->capture);
    *id = own;
    if (own && atomic_load(&stream->capturable) == GGI_CAPTURED_HERE)
        return GG_OK;
    *id = 0;
    if (device->replays)
        return ggi_replay_capture_id(stream, id);
    if (!device->ops->capture_id)
        return GG_ERR_UNSUPPORTED;
    const gg_status status = device->ops->capture_id(stream->impl, id);
    if (!status || !own)
        return status;
    *id = own; /* if the driver cannot report it, the capture that gpuglue began continues */
    return GG_OK;
}

bool ggi_stream_in_own_capture(gg_stream *stream)
{
    const uint64_t own = atomic_load(&stream->capture);
    uint64_t id = 0;
    return own && !ggi_stream_capture_id(stream, &id) && id == own;
}

/* A slice that has begun ends by itself, after 50 ms at most. */
void ggi_stream_stop_waits(gg_stream *stream)
{
    atomic_fetch_add(&stream->captures_soon, 1);
    atomic_fetch_add(&ggi_captures, 1);
    while (atomic_load(&stream->waits))
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

void ggi_stream_allow_waits(gg_stream *stream)
{
    atomic_fetch_sub(&ggi_captures, 1);
    atomic_fetch_sub(&stream->captures_soon, 1);
}

void ggi_stream_begin_capture(gg_stream *stream)
{
    int known = GGI_NOT_CAPTURABLE;
    atomic_compare_exchange_strong(&stream->capturable, &known, GGI_CAPTURED_HERE);
    atomic_fetch_add(&ggi_captures, 1);
    atomic_fetch_add(&stream->device->captures, 1);
    if (!(stream->flags & GG_STREAM_NONBLOCKING))
        atomic_fetch_add(&stream->device->blocking_captures, 1);
}

void ggi_stream_end_capture(gg_stream *stream)
{
    int known = GGI_CAPTURED_HERE;
    atomic_store(&stream->capture, 0);
    atomic_compare_exchange_strong(&stream->capturable, &known, GGI_NOT_CAPTURABLE);
    atomic_fetch_sub(&stream->device->captures, 1);
    atomic_fetch_sub(&ggi_captures, 1);
    if (!(stream->flags & GG_STREAM_NONBLOCKING))
        atomic_fetch_sub(&stream->device->blocking_captures, 1);
}

gg_status ggi_capture_fail_wait(void)
{
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "stream is capturing: what is captured does not run yet, so it can be neither "
                    "queried nor waited for; do so after the end of the capture");
}

gg_status ggi_capture_fail_outside(void)
{
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "stream is capturing: it cannot wait for work outside of the capture: "
                    "synchronize that work before the capture begins, or let its stream wait for "
                    "this one first");
}

gg_status ggi_capture_fail_earlier_work(void)
{
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "stream is capturing: its work from before the capture cannot be waited for; "
                    "synchronize it before the capture begins");
}

/* The device of the outermost scope of this thread that has relaxed the mode: nested ones need no driver call. */
static _Thread_local const struct gg_device *capture_relaxed;

void ggi_capture_relax_begin(struct gg_device *device, struct ggi_internal_scope *own)
{
    own->relaxed = false;
    if (!device->ops->capture_mode || capture_relaxed == device)
        return;
    ggi_suppress_errors(1);
    own->relaxed = !device->ops->capture_mode(atomic_load(&device->impl), 1, &own->mode);
    ggi_suppress_errors(-1);
    if (own->relaxed && !capture_relaxed)
        capture_relaxed = device;
}

void ggi_capture_relax_end(struct gg_device *device, const struct ggi_internal_scope *own)
{
    int32_t mode = own->mode;
    if (!own->relaxed)
        return;
    if (capture_relaxed == device)
        capture_relaxed = NULL;
    ggi_suppress_errors(1);
    device->ops->capture_mode(atomic_load(&device->impl), 0, &mode);
    ggi_suppress_errors(-1);
}

void ggi_internal_begin(struct gg_device *device, struct ggi_internal_scope *own)
{
    ggi_capture_relax_begin(device, own);
    ggi_suppress_errors(1);
}

void ggi_internal_end(struct gg_device *device, struct ggi_internal_scope *own)
{
    ggi_suppress_errors(-1);
    ggi_capture_relax_end(device, own);
}
