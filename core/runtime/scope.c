/* scope.c: this thread's current device and stream, and the scopes that change them. */
#include "base/error.h"
#include "runtime/call.h"
#include "runtime/scope.h"

#include <stdlib.h>

_Thread_local struct ggi_scope_thread *ggi_scope_mine;
static struct ggi_scope_thread scope_shared; /* used by threads if memory runs out */
static pthread_key_t scope_key;
static pthread_once_t scope_key_once = PTHREAD_ONCE_INIT;

/* A scope may outlive its thread, as in a Python generator. Then it belongs to no thread. */
static void scope_end_thread(void *pointer)
{
    struct ggi_scope_thread *thread = pointer;
    struct gg_scope *scope = thread->innermost, *outer;
    for (; scope; scope = outer) {
        outer = scope->outer; /* after the store, another thread may leave the scope and free it */
        atomic_store(&scope->thread, NULL);
    }
    ggi_scope_mine = NULL;
    free(thread);
}

static void scope_make_key(void)
{
    pthread_key_create(&scope_key, scope_end_thread);
}

static struct ggi_scope_thread *scope_of_thread(void)
{
    if (ggi_scope_mine)
        return ggi_scope_mine;
    pthread_once(&scope_key_once, scope_make_key);
    struct ggi_scope_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return &scope_shared;
    pthread_setspecific(scope_key, thread);
    ggi_scope_mine = thread;
    return thread;
}

/* ---- the current device ---- */

gg_status gg_device_set_current(gg_device *device)
{
    void *saved;
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    status = GGI_CALL(device, device_enter, NULL, 0, (atomic_load(&device->impl), &saved));
    if (status)
        return status;
    scope_of_thread()->current = device;
    return GG_OK;
}

/* ---- scopes ---- */

gg_status gg_scope_enter(gg_device *device, gg_stream *stream, gg_scope **out)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (stream && stream->device != device)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "the stream belongs to %s:%d, not to %s:%d",
                        stream->device->backend->name, (int)stream->device->ordinal,
                        device->backend->name, (int)device->ordinal);
    gg_scope *scope = calloc(1, sizeof *scope);
    if (!scope)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a scope");
    status = GGI_CALL(device, device_enter, stream, 0, (atomic_load(&device->impl), &scope->saved));
    if (status) {
        free(scope);
        return status;
    }
    if (stream)
        gg_stream_retain(stream);
    scope->device = device;
    scope->stream = stream;
    struct ggi_scope_thread *thread = scope_of_thread();
    atomic_init(&scope->thread, thread);
    scope->outer = thread->innermost;
    thread->innermost = scope;
    *out = scope;
    return GG_OK;
}

/* If scopes are left out of order, the next inner scope on the same backend restores what this one saved. */
static struct gg_scope *scope_heir(struct gg_scope *scope, struct ggi_scope_thread *thread,
                                   struct gg_scope ***link)
{
    struct gg_scope *heir = NULL, **at = &thread->innermost;
    while (*at && *at != scope) {
        if ((*at)->device->backend == scope->device->backend)
            heir = *at;
        at = &(*at)->outer;
    }
    *link = at;
    return heir;
}

gg_status gg_scope_leave(gg_scope *scope)
{
    struct gg_scope **link, *heir;
    gg_device *device = scope->device;
    struct ggi_scope_thread *thread = atomic_load(&scope->thread);
    if (thread && thread != ggi_scope_mine)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "a device or stream scope must be left on the thread that entered it");
    if (thread) {
        heir = scope_heir(scope, thread, &link);
        *link = scope->outer;
        if (heir)
            heir->saved = scope->saved;
        else if (ggi_device_usable(device))
            device->ops->device_leave(scope->saved);
    }
    gg_stream_release(scope->stream);
    free(scope);
    return GG_OK;
}

/* ---- the current stream ---- */

static gg_stream *scope_stream(const gg_device *device)
{
    struct gg_scope *scope = ggi_scope_mine ? ggi_scope_mine->innermost : NULL;
    for (; scope; scope = scope->outer)
        if (scope->stream && scope->device == device)
            return scope->stream;
    return NULL;
}

void ggi_implicit_stream(gg_device *device, gg_stream **out, bool *complete)
{
    gg_stream *stream = scope_stream(device);
    *complete = !stream && !(device->flags & GG_DEVICE_SHARED_DEFAULT);
    *out = stream ? stream : device->default_stream;
}

gg_status ggi_choose_stream_slow(gg_device *device, gg_stream **stream, bool *complete)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (!*stream) {
        ggi_implicit_stream(device, stream, complete);
        return GG_OK;
    }
    if ((*stream)->device == device)
        return ggi_stream_check(*stream);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "the stream belongs to %s:%d, but the work is on %s:%d: pass a stream of that "
                    "device, or none",
                    (*stream)->device->backend->name, (int)(*stream)->device->ordinal,
                    device->backend->name, (int)device->ordinal);
}

gg_status gg_current_stream(gg_device *device, gg_stream **out)
{
    bool complete;
    gg_status status = ggi_device_ready(device);
    if (!status)
        ggi_implicit_stream(device, out, &complete);
    return status;
}
