/* scope.h: this thread's current device and stream. */
#ifndef GPUGLUE_SCOPE_H
#define GPUGLUE_SCOPE_H

#include "runtime/stream.h"

struct gg_scope {
    struct gg_scope *outer;
    gg_device *device;
    gg_stream *stream;                         /* or NULL */
    void *saved;                               /* of ops->device_enter */
    _Atomic(struct ggi_scope_thread *) thread; /* NULL after the thread has ended */
};
struct ggi_scope_thread {
    struct gg_scope *innermost;
    gg_device *current; /* gg_device_set_current */
};
extern _Thread_local struct ggi_scope_thread *ggi_scope_mine; /* NULL before the first use */

/* The device that this thread entered or set; NULL if it uses the default device. */
static inline gg_device *ggi_scope_device(void)
{
    const struct ggi_scope_thread *thread = ggi_scope_mine;
    if (!thread)
        return NULL;
    return thread->innermost ? thread->innermost->device : thread->current;
}
/* The stream of an operation without a stream argument. *complete: the operation must have finished when the
 * call returns, since no other library shares this default stream. */
void ggi_implicit_stream(gg_device *device, gg_stream **out, bool *complete);
/* Check *stream; if it is NULL, set it to the implicit stream. */
gg_status ggi_choose_stream_slow(gg_device *device, gg_stream **stream, bool *complete);
static inline gg_status ggi_choose_stream(gg_device *device, gg_stream **stream, bool *implicit,
                                          bool *complete)
{
    *implicit = !*stream;
    *complete = false;
    if (*stream && (*stream)->device == device && !(*stream)->of_thread)
        return ggi_device_ready(device);
    return ggi_choose_stream_slow(device, stream, complete);
}

#endif
