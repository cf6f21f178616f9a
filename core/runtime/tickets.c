/* tickets.c: which of a stream's tickets have passed, the releases that wait for one, and errors that the user's next call reports. */
#include "base/error.h"
#include "base/list.h"
#include "runtime/call.h"
#include "runtime/stream.h"

#include <stdlib.h>

static gg_status release_defer(_Atomic(struct ggi_deferred_release *) *list, uint64_t ticket,
                               void (*release)(void *), void *owner)
{
    struct ggi_deferred_release *item = malloc(sizeof *item);
    if (!item)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to keep a copy's owner");
    *item = (struct ggi_deferred_release){.ticket = ticket, .release = release, .owner = owner};
    ggi_list_push(list, item);
    return GG_OK;
}

gg_status ggi_stream_defer_release(gg_stream *stream, uint64_t ticket, void (*release)(void *),
                                   void *owner)
{
    atomic_fetch_add(&stream->device->deferred, 1);
    gg_status status = release_defer(&stream->deferred, ticket, release, owner);
    if (status)
        atomic_fetch_sub(&stream->device->deferred, 1);
    return status;
}

gg_status ggi_device_defer_release(struct gg_device *device, void (*release)(void *), void *owner)
{
    return release_defer(&device->captured, 0, release, owner);
}

/* Takes the whole list, runs what has passed and puts the rest back, so that the list needs no lock. A release
 * callback must not call gpuglue: it may run with locks held. */
void ggi_stream_run_releases(gg_stream *stream, bool all)
{
    uint64_t passed = atomic_load_explicit(&stream->completed, memory_order_acquire);
    struct ggi_deferred_release *item = atomic_exchange(&stream->deferred, NULL), *next;
    for (; item; item = next) {
        next = item->next;
        if (all || item->ticket <= passed) {
            item->release(item->owner);
            free(item);
            atomic_fetch_sub(&stream->device->deferred, 1);
            continue;
        }
        ggi_list_push(&stream->deferred, item);
    }
}

void ggi_stream_advance(gg_stream *stream, uint64_t ticket)
{
    uint64_t known = atomic_load_explicit(&stream->completed, memory_order_relaxed);
    while (known < ticket &&
           !atomic_compare_exchange_weak_explicit(&stream->completed, &known, ticket,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
    }
    if (atomic_load_explicit(&stream->deferred, memory_order_relaxed))
        ggi_stream_run_releases(stream, false);
}

void ggi_stream_stash_error(gg_stream *stream, gg_status status)
{
    struct ggi_kept_error error = {.error = ggi_error_record()->suppressed};
    if (status == GG_ERR_DEVICE)
        ggi_stream_keep_error(stream, &error);
}

void ggi_stream_keep_error(gg_stream *stream, const struct ggi_kept_error *error)
{
    struct ggi_kept_error *none = NULL, *kept = malloc(sizeof *kept);
    if (!kept)
        return;
    *kept = *error;
    if (!atomic_compare_exchange_strong(&stream->failed, &none, kept)) /* the first one is kept */
        free(kept);
}

gg_status ggi_stream_raise_stashed(gg_stream *stream, gg_op op)
{
    if (!atomic_load_explicit(&stream->failed, memory_order_acquire) ||
        ggi_error_record()->suppress_depth)
        return GG_OK; /* an internal wait leaves it for the user */
    struct ggi_kept_error *kept = atomic_exchange(&stream->failed, NULL);
    if (!kept)
        return GG_OK;
    const gg_status status = ggi_error_restore(kept);
    free(kept);
    return ggi_op_failed(stream->device, op, status);
}
