/* stream.c: streams as the user sees them: made, borrowed, asked, waited for. */
#include "copy.h"
#include "pool.h"

#include <stdlib.h>
#include <time.h>

/* ---- making them ---- */

static _Atomic(uint64_t) last_serial;

gg_status ggi_stream_new(struct gg_device *device, struct gg_stream_impl *impl, uint32_t flags,
                         gg_stream **out)
{
    gg_stream *stream = calloc(1, sizeof *stream);
    if (stream && !(stream->bins = calloc(1, sizeof *stream->bins))) {
        free(stream);
        stream = NULL;
    }
    if (!stream)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a stream");
    ggi_stream_endable(stream);
    atomic_init(&stream->refs, 1);
    stream->device = device;
    stream->impl = impl;
    stream->serial = atomic_fetch_add(&last_serial, 1) + 1;
    stream->flags = flags;
    pthread_mutex_init(&stream->lock, NULL);
    *out = stream;
    return GG_OK;
}

gg_stream *ggi_streams_of(struct gg_device *device)
{
    pthread_mutex_lock(&device->lock);
    gg_stream *first = device->streams;
    pthread_mutex_unlock(&device->lock);
    return first;
}

static void link_stream(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    pthread_mutex_lock(&device->lock);
    stream->next = device->streams;
    device->streams->previous = stream; /* the default stream is always there */
    device->streams = stream;
    pthread_mutex_unlock(&device->lock);
}

static gg_status adopt(struct gg_device *device, struct gg_stream_impl *impl, uint32_t flags,
                       gg_stream **out)
{
    gg_status status = ggi_stream_new(device, impl, flags, out);
    if (status)
        device->ops->stream_destroy(impl);
    else
        link_stream(*out);
    return status;
}

static int32_t clamp_priority(struct gg_device *device, int32_t priority)
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
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "stream flags 0x%x hold an unknown bit",
                        (unsigned)flags);
    ggi_drain(device);
    if (priority)
        priority = clamp_priority(device, priority);
    ggi_begin(device, GG_OP_stream_create, NULL, 0);
    status = device->ops->stream_create(atomic_load(&device->impl), flags, priority, &impl);
    status = ggi_end(device, GG_OP_stream_create, NULL, 0, status);
    return status ? status : adopt(device, impl, flags, out);
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
    if (!device->ops->stream_borrow)
        return ggi_unsupported(device, GG_OP_stream_borrow);
    ggi_begin(device, GG_OP_stream_borrow, NULL, 0);
    status =
        device->ops->stream_borrow(atomic_load(&device->impl), native, &flags, &is_default, &impl);
    status = ggi_end(device, GG_OP_stream_borrow, NULL, 0, status);
    if (!status && is_default) {
        *out = device->default_stream;
        gg_stream_retain(*out);
        if (release)
            release(owner);
        return GG_OK;
    }
    if (!status)
        status = adopt(device, impl, flags & GG_STREAM_NONBLOCKING, out);
    if (status)
        return status;
    (*out)->borrowed = true;
    (*out)->of_thread = flags & GG_STREAM_OF_THREAD;
    (*out)->thread = pthread_self();
    (*out)->release = release;
    (*out)->owner = owner;
    return GG_OK;
}

void gg_stream_retain(gg_stream *stream)
{
    atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
}

bool ggi_stream_try_retain(gg_stream *stream)
{
    int64_t refs = atomic_load(&stream->refs);
    while (refs > 0)
        if (atomic_compare_exchange_weak(&stream->refs, &refs, refs + 1))
            return true;
    return false;
}

gg_device *gg_stream_device(const gg_stream *stream)
{
    return stream->device;
}

gg_status gg_stream_native(gg_stream *stream, uint64_t handles[4])
{
    struct gg_device *device = stream->device;
    gg_status status = ggi_check(device);
    if (status)
        return status;
    if (!device->ops->stream_native)
        return ggi_unsupported(device, GG_OP_stream_native);
    ggi_begin(device, GG_OP_stream_native, stream, 0);
    status = device->ops->stream_native(stream->impl, handles);
    return ggi_end(device, GG_OP_stream_native, stream, 0, status);
}

/* ---- asking and waiting ---- */

gg_status ggi_stream_refuse(const gg_stream *stream)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s:%d: the per-thread default stream was borrowed in another thread and means "
                    "another stream here: borrow it in this thread",
                    stream->device->backend->name, (int)stream->device->ordinal);
}

/* A query, or one slice of a wait; what it saw finished is noted. */
static inline gg_status ask(gg_stream *stream, gg_op op, uint64_t timeout_ns)
{
    struct gg_device *device = stream->device;
    uint64_t before = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    gg_status status = ggi_stream_check(stream);
    if (status)
        return status;
    ggi_begin(device, op, stream, 0);
    if (op == GG_OP_stream_query)
        status = device->ops->stream_query(stream->impl);
    else
        status = device->ops->stream_wait(stream->impl, timeout_ns);
    status = ggi_end(device, op, stream, 0, status);
    if (status == GG_ERR_DEVICE && ggi_thread()->quiet)
        ggi_stream_asked(stream, status);
    if (status)
        return status;
    ggi_stream_advance(stream, before);
    return ggi_stream_tell(stream, op);
}

gg_status gg_stream_query(gg_stream *stream)
{
    return ask(stream, GG_OP_stream_query, 0);
}

static gg_status wait_slice(gg_stream *stream, uint64_t timeout_ns)
{
    return ask(stream, GG_OP_stream_wait, timeout_ns);
}

/* All that counts is done; what our own looking left behind it gets a slice's time, as a query sees it. */
static gg_status last_slice(gg_stream *stream, uint64_t ticket)
{
    gg_status status = ggi_stream_passed_or_lost(stream);
    if (!status && atomic_load(&stream->submitted) == ticket) /* nothing else was queued since */
        status = wait_slice(stream, GGI_SLICE_NS);
    return status <= GG_NOT_READY ? ggi_stream_tell(stream, GG_OP_stream_wait) : status;
}

static gg_status refuse_lost_peer(gg_stream *stream)
{
    struct gg_device *peer = atomic_load(&stream->behind);
    ggi_fail(GG_ERR_DEVICE_LOST, "the stream of %s:%d waits for its work, and that device was lost",
             stream->device->backend->name, (int)stream->device->ordinal);
    return ggi_op_failed(peer, GG_OP_stream_wait, GG_ERR_DEVICE_LOST);
}

/* Each slice asks the backend anew, which then waits for what was queued meanwhile as well: a ticket taken
 * after the first slice says when the work that counts is done. */
static gg_status wait_in_slices(gg_stream *stream, uint64_t timeout_ns, bool hook)
{
    uint64_t start = 0, ticket = 0;
    gg_status status = wait_slice(stream, timeout_ns < GGI_SLICE_NS ? timeout_ns : GGI_SLICE_NS);
    while (status == GG_NOT_READY && timeout_ns > GGI_SLICE_NS) {
        uint64_t now = ggi_now_ns();
        if (!start) {
            start = now - GGI_SLICE_NS;
            ticket = ggi_stream_submitted(stream);
            ggi_stream_mark(stream);
        }
        if (hook && ggi_interrupted())
            return ggi_fail(GG_ERR_INTERRUPTED,
                            "the wait was interrupted; the queued work goes on");
        if (now - start >= timeout_ns)
            return GG_NOT_READY;
        if (ggi_stream_passed(stream, ticket, true))
            return last_slice(stream, ticket);
        if (ggi_peer_is_lost(stream))
            return refuse_lost_peer(stream);
        uint64_t left = timeout_ns - (now - start);
        status = wait_slice(stream, left < GGI_SLICE_NS ? left : GGI_SLICE_NS);
    }
    return status;
}

gg_status ggi_stream_finish(gg_stream *stream, bool hook)
{
    return wait_in_slices(stream, GG_FOREVER, hook);
}

/* Between two questions, where no wait of the driver's helps. */
static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

gg_status ggi_stream_settle(gg_stream *stream)
{
    struct gg_device *device = stream->device;
    gg_status status;
    do
        status = device->ops->stream_wait(stream->impl, GGI_SLICE_NS);
    while (status == GG_NOT_READY);
    ggi_quiet(1);
    if (status && status != GG_ERR_DEVICE_LOST &&
        device->ops->device_synchronize(atomic_load(&device->impl)))
        while (device->ops->stream_query(stream->impl) == GG_NOT_READY)
            nap();
    ggi_quiet(-1);
    return ggi_end(device, GG_OP_stream_wait, stream, 0, status);
}

gg_status ggi_stream_wait_ticket(gg_stream *stream, uint64_t ticket)
{
    gg_status status = GG_OK;
    if (ggi_stream_passed(stream, ticket, false))
        return GG_OK;
    if (!stream->of_thread && (!stream->borrowed || stream->release))
        return ggi_stream_finish(stream, true);
    while (!status && !ggi_stream_passed(stream, ticket, true)) {
        nap();
        status = ggi_check(stream->device);
        if (!status) /* a failure must end the wait */
            status = ggi_stream_ask_marker(stream);
        if (!status && ggi_interrupted())
            status =
                ggi_fail(GG_ERR_INTERRUPTED, "the wait was interrupted; the queued work goes on");
    }
    return status ? status : ggi_stream_passed_or_lost(stream);
}

gg_status gg_stream_wait(gg_stream *stream, uint64_t timeout_ns)
{
    gg_status status = wait_in_slices(stream, timeout_ns, true);
    if (!status)
        ggi_drain(stream->device);
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
    if (!atomic_load(&event->recorded))
        return GG_OK;
    ggi_begin(device, GG_OP_stream_wait_event, stream, 0);
    status = device->ops->stream_wait_event(stream->impl, event->impl);
    status = ggi_end(device, GG_OP_stream_wait_event, stream, 0, status);
    if (!atomic_load_explicit(&event->captured, memory_order_relaxed))
        ggi_stream_submitted(stream);
    return status;
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
    return ggi_stream_fence(stream, other, false);
}

gg_status gg_stream_host_func(gg_stream *stream, void (*function)(void *), void *argument)
{
    struct gg_device *device = stream->device;
    gg_status status = ggi_stream_check(stream);
    if (status)
        return status;
    if (!function)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_stream_host_func: the function is NULL");
    if (!device->ops->stream_host_func)
        return ggi_unsupported(device, GG_OP_stream_host_func);
    ggi_begin(device, GG_OP_stream_host_func, stream, 0);
    status = device->ops->stream_host_func(stream->impl, function, argument);
    status = ggi_end(device, GG_OP_stream_host_func, stream, 0, status);
    if (stream->is_default || !ggi_stream_capturing(stream))
        ggi_stream_submitted(stream);
    return status;
}
