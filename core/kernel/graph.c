/* graph.c: captures that gpuglue begins, and the graphs that they become. */
#include "base/error.h"
#include "base/process_state.h"
#include "memory/captured.h"
#include "runtime/replay.h"
#include "runtime/scope.h"
#include "kernel/kernel.h"

#include <stdlib.h>
#include <time.h>

#define CAPTURE_PATIENCE_NS 10000000000u

struct gg_graph {
    _Atomic(int64_t) refs;
    struct gg_device *device;
    struct gg_graph_impl *impl;
    gg_memory *body; /* has the uses by launches: the graph is destroyed once it is idle */
    /* A launch or an update runs; taken before all other locks. */
    pthread_mutex_t lock;
    struct ggi_captured *uses; /* under lock */
};

/* ---- the backend's operations, or the core's ---- */

static gg_status call_capture_begin(gg_stream *stream)
{
    return stream->device->replays ? ggi_replay_capture_begin(stream, gg_stream_release)
                                   : stream->device->ops->capture_begin(stream->impl);
}

/* Without @p out the capture is dropped. Where the core replays, *commands are returned in place of the graph. */
static gg_status call_capture_end(gg_stream *stream, struct gg_graph_impl **out,
                                  struct ggi_commands **commands)
{
    return stream->device->replays ? ggi_replay_capture_end(stream, out ? commands : NULL)
                                   : stream->device->ops->capture_end(stream->impl, out);
}

static gg_status call_capture_id(gg_stream *stream, uint64_t *id)
{
    return stream->device->replays ? ggi_replay_capture_id(stream, id)
                                   : stream->device->ops->capture_id(stream->impl, id);
}

static gg_status call_launch(gg_stream *stream, struct gg_graph_impl *graph)
{
    return stream->device->replays ? ggi_replay_graph_launch(stream, graph)
                                   : stream->device->ops->graph_launch(stream->impl, graph);
}

static gg_status call_update(const struct gg_device *device, struct gg_graph_impl *graph,
                             struct gg_graph_impl *other)
{
    return device->replays ? ggi_replay_graph_update(graph, other)
                           : device->ops->graph_update(graph, other);
}

static void call_destroy(const struct gg_device *device, struct gg_graph_impl *graph)
{
    if (device->replays)
        ggi_replay_graph_destroy(device, graph);
    else
        device->ops->graph_destroy(graph);
}

/* ---- captures ---- */

/* Of the body of a list: no launch uses it any more. */
static void captured_free(void *pointer)
{
    struct ggi_captured *uses = pointer;
    struct ggi_captured_owner *owner = uses->owners, *next;
    for (; owner; owner = next) {
        next = owner->next;
        owner->release(owner->owner);
        free(owner);
    }
    for (size_t i = 0; i < uses->count; i++)
        gg_memory_release(uses->memories[i]);
    free(uses->memories);
    free(uses);
}

static gg_status captured_new(gg_device *device, struct ggi_captured **out)
{
    struct ggi_captured *uses = calloc(1, sizeof *uses);
    if (!uses)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a capture");
    const gg_status status =
        gg_memory_wrap(device, GG_MEMORY_DEVICE, uses, 1, captured_free, uses, &uses->body);
    if (status)
        free(uses);
    else
        *out = uses;
    return status;
}

static gg_status capture_new(gg_stream *stream, struct ggi_capture **out)
{
    struct ggi_capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a capture");
    const gg_status status = captured_new(stream->device, &capture->uses);
    if (status) {
        free(capture);
        return status;
    }
    gg_stream_retain(stream);
    capture->stream = stream;
    *out = capture;
    return GG_OK;
}

/* And its uses, unless a graph has taken them. */
static void capture_delete(struct ggi_capture *capture)
{
    ggi_capture_forget_users(capture);
    if (capture->uses)
        gg_memory_release(capture->uses->body);
    gg_stream_release(capture->helper);
    gg_stream_release(capture->stream);
    free(capture);
}

static gg_status graph_check_stream(gg_stream *stream)
{
    static const gg_op needed[] = {GG_OP_capture_begin, GG_OP_capture_end,
                                   GG_OP_capture_id,    GG_OP_graph_launch,
                                   GG_OP_graph_destroy, GG_OP_stream_capturing};
    struct gg_device *device = stream->device;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0] && !device->replays; i++)
        if (!gg_device_supports(device, needed[i]))
            return ggi_unsupported(device, needed[i]);
    if (stream->is_default)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s:%d: the default stream cannot be captured: create a stream",
                        device->backend->name, (int)device->ordinal);
    if (stream->of_thread) /* no other thread could end the capture, and this one may end first */
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s:%d: the per-thread default stream cannot be captured: create a stream",
                        device->backend->name, (int)device->ordinal);
    if (ggi_stream_capturing(stream))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "stream is capturing already: end that capture first, or use another "
                        "stream");
    return GG_OK;
}

static void capture_drop(gg_stream *stream)
{
    struct ggi_internal_scope own;
    ggi_internal_begin(stream->device, &own);
    call_capture_end(stream, NULL, NULL);
    ggi_internal_end(stream->device, &own);
}

/* With both of the stream's locks held, so that no poll of another thread queries the stream once it is captured, or records its
 * marker into the graph. */
static gg_status capture_begin_locked(struct ggi_capture *capture)
{
    gg_stream *stream = capture->stream;
    struct gg_device *device = stream->device;
    uint64_t id = 0;
    ggi_stream_begin_capture(stream);
    gg_status status = GGI_RELAXED(
        device, GGI_CALL_AS(device, capture_begin, stream, 0, NULL, call_capture_begin(stream)));
    if (!status) {
        status = GGI_CALL_AS(device, capture_id, stream, 0, NULL, call_capture_id(stream, &id));
        if (status)
            capture_drop(stream);
    }
    if (status) {
        ggi_stream_end_capture(stream);
        return status;
    }
    atomic_store(&stream->capture, id);
    ggi_capture_start(capture, id);
    return GG_OK;
}

/* With stream->record_lock held. */
static gg_status capture_begin(struct ggi_capture *capture)
{
    gg_stream *stream = capture->stream;
    gg_status status = graph_check_stream(stream);
    if (!status)
        status = ggi_stream_mark_before_capture(stream, capture->helper);
    if (status)
        return status;
    pthread_mutex_lock(&stream->lock);
    status = capture_begin_locked(capture);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/* Work that is not known to be done needs a helper stream for its marker. It is created without holding the lock. */
static gg_status capture_make_helper(struct ggi_capture *capture)
{
    gg_stream *stream = capture->stream;
    if (capture->helper || !gg_device_supports(stream->device, GG_OP_capture_begin) ||
        ggi_stream_is_complete(stream, atomic_load(&stream->submitted), true))
        return GG_OK;
    return gg_stream_create(stream->device, GG_STREAM_NONBLOCKING, 0, &capture->helper);
}

/* Lock record_lock while no other thread is about to make a stream wait for an event of this one. Some drivers refuse that for an
 * event from before a capture, or read the native stream then, which the end of a capture may destroy. Nothing is locked
 * meanwhile, because the driver may wait for room in a queue. An error is not stored, and the lock is held all the same. */
static gg_status capture_lock(gg_stream *stream, bool interruptible)
{
    const uint64_t began = ggi_now_ns();
    uint64_t polled = began;
    gg_status status = GG_OK;
    pthread_mutex_lock(&stream->record_lock);
    while (!status && atomic_load(&stream->fences)) {
        pthread_mutex_unlock(&stream->record_lock);
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        const uint64_t now = ggi_now_ns();
        if (now - began >= CAPTURE_PATIENCE_NS) {
            status = GG_NOT_READY;
        } else if (interruptible && now - polled >= GGI_SLICE_NS) {
            status = ggi_interrupted() ? GG_ERR_INTERRUPTED : GG_OK;
            polled = now;
        }
        pthread_mutex_lock(&stream->record_lock);
    }
    return status;
}

static gg_status capture_fail_begin(gg_status status)
{
    if (status == GG_ERR_INTERRUPTED)
        return ggi_fail(status, "gg_graph_begin_capture: the wait was interrupted");
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "gg_graph_begin_capture: for %u s another thread has been making a stream wait "
                    "for this one: the queue of that stream is full; begin when it has room",
                    (unsigned)(CAPTURE_PATIENCE_NS / 1000000000u));
}

/* Other threads may queue work meanwhile. */
static gg_status capture_begin_marked(struct ggi_capture *capture)
{
    gg_stream *stream = capture->stream;
    gg_status status = GG_OK;
    bool ready = false;
    while (!status && !ready) {
        status = capture_make_helper(capture);
        if (status)
            return status;
        status = capture_lock(stream, true);
        ready = capture->helper ||
                ggi_stream_is_complete(stream, atomic_load(&stream->submitted), false);
        if (status)
            status = capture_fail_begin(status);
        else if (ready)
            status = capture_begin(capture);
        pthread_mutex_unlock(&stream->record_lock);
    }
    return status;
}

gg_status gg_graph_begin_capture(gg_stream *stream)
{
    struct ggi_capture *capture = NULL;
    gg_status status = ggi_stream_check(stream);
    if (!status)
        status = graph_check_stream(stream);
    if (!status)
        status = capture_new(stream, &capture);
    if (status)
        return status;
    ggi_stream_stop_waits(stream);
    status = capture_begin_marked(capture);
    ggi_stream_allow_waits(stream);
    if (status)
        capture_delete(capture);
    return status;
}

/* The body's last reference is gone, and no launch is in flight. */
static void graph_destroy(void *pointer)
{
    gg_graph *graph = pointer;
    struct gg_device *device = graph->device;
    struct ggi_internal_scope own;
    if (graph->impl) {
        ggi_internal_begin(device, &own); /* not always in a drain */
        ggi_call_begin(device, GG_OP_graph_destroy, NULL, 0);
        call_destroy(device, graph->impl);
        ggi_call_end(device, GG_OP_graph_destroy, NULL, 0, GG_OK);
        ggi_internal_end(device, &own);
    }
    if (graph->uses)
        gg_memory_release(graph->uses->body);
    pthread_mutex_destroy(&graph->lock);
    free(graph);
}

static gg_status graph_new(gg_device *device, gg_graph **out)
{
    gg_graph *graph = calloc(1, sizeof *graph);
    gg_status status = graph ? GG_OK : ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a graph");
    if (!status)
        status =
            gg_memory_wrap(device, GG_MEMORY_DEVICE, graph, 1, graph_destroy, graph, &graph->body);
    if (status) {
        free(graph);
        return status;
    }
    atomic_init(&graph->refs, 1);
    graph->device = device;
    pthread_mutex_init(&graph->lock, NULL);
    *out = graph;
    return GG_OK;
}

/* With stream->lock held, after a failed end. The stream may still be captured, if the driver leaves it so or other code has
 * begun a capture: it is then queried before each use. Otherwise the backend may have replaced the native stream. */
static void capture_check_left(gg_stream *stream)
{
    struct ggi_internal_scope own;
    ggi_internal_begin(stream->device, &own);
    if (ggi_stream_query_capture(stream))
        ggi_stream_set_capturable(stream);
    else if (stream->marker_ticket)
        stream->device->ops->stream_wait_event(stream->impl, stream->marker);
    ggi_internal_end(stream->device, &own);
}

/* Other code that knows the stream's handle may have ended the capture and begun its own. */
static bool capture_is_replaced(const struct ggi_capture *capture)
{
    uint64_t id;
    return !ggi_stream_capture_id(capture->stream, &id) && id && id != capture->id;
}

/* The capture ends even if there is no memory for the graph. Both locks of the stream are held, so that no other thread uses a
 * native stream while the backend replaces it. */
static gg_status capture_finish(struct ggi_capture *capture, gg_graph *graph, bool whole,
                                struct ggi_commands **commands)
{
    gg_stream *stream = capture->stream;
    gg_status status;
    if (capture_is_replaced(capture))
        status =
            ggi_fail(GG_ERR_INVALID_ARGUMENT,
                     "gg_graph_end_capture: other code has ended this capture of the stream and "
                     "begun its own");
    else
        status = GGI_RELAXED(
            stream->device,
            GGI_CALL_AS(stream->device, capture_end, stream, 0, NULL,
                        call_capture_end(stream, graph && whole ? &graph->impl : NULL, commands)));
    ggi_stream_end_capture(stream);
    if (status)
        capture_check_left(stream);
    else if (!whole)
        status = ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for what the capture uses");
    return status;
}

gg_status gg_graph_end_capture(gg_stream *stream, gg_graph **out)
{
    gg_graph *graph = NULL;
    struct ggi_commands *commands = NULL;
    gg_status status = ggi_stream_check(stream), made = GG_OK;
    if (status)
        return status;
    struct ggi_capture *capture = ggi_capture_stop(stream);
    if (!capture)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_graph_end_capture: gg_graph_begin_capture was not called for this "
                        "stream, or its capture has ended");
    if (out)
        made = graph_new(stream->device, &graph);
    capture_lock(stream, false); /* it ends in any case */
    pthread_mutex_lock(&stream->lock);
    status = capture_finish(capture, graph, !capture->uses->incomplete, &commands);
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_unlock(&stream->record_lock);
    if (commands) /* not with the lock held: it may create streams, and so drain */
        status = ggi_replay_graph_new(stream->device, commands, &graph->impl);
    if (made)
        status = made;
    if (graph && !status) {
        graph->uses = capture->uses;
        capture->uses = NULL;
        *out = graph;
    } else {
        gg_graph_release(graph);
    }
    capture_delete(capture);
    return status;
}

/* ---- launches ---- */

static gg_status captured_wait(const struct ggi_captured *uses, gg_stream *stream, bool implicit)
{
    gg_status status = GG_OK;
    for (size_t i = 0; i < uses->count && !status; i++) {
        gg_memory *memory = uses->memories[i];
        gg_module *module = implicit ? ggi_module_of_code(memory) : NULL;
        status = module ? ggi_module_wait_uses(module, stream)
                        : ggi_memory_wait_before_use(memory, stream, implicit);
    }
    return status;
}

static uint64_t graph_note_uses(const gg_graph *graph, gg_stream *stream)
{
    const uint64_t ticket = ggi_stream_submitted(stream);
    ggi_memory_used(graph->body, stream, ticket);
    ggi_memory_used(graph->uses->body, stream, ticket);
    for (size_t i = 0; i < graph->uses->count; i++) {
        gg_memory *memory = graph->uses->memories[i];
        gg_module *module = ggi_module_of_code(memory);
        if (module)
            ggi_module_note_use(module, stream, ticket, false);
        else
            ggi_memory_used(memory, stream, ticket);
        if (!module && graph->uses->may_end) /* which of them it writes is not known */
            ggi_memory_note_result(memory, stream, ticket, GGI_ALL_WATCHERS);
    }
    if (graph->uses->to_host)
        atomic_store_explicit(&stream->to_host, ticket, memory_order_relaxed);
    return ticket;
}

/* Locks the graph, also on failure. A wait for its memory may call the wait hook, so it is made without the lock. */
static gg_status graph_lock_ready(gg_graph *graph, gg_stream *stream, bool implicit)
{
    gg_status status = GG_OK;
    bool current = false;
    pthread_mutex_lock(&graph->lock);
    while (!status && !current) {
        struct ggi_captured *uses = graph->uses;
        gg_memory_retain(uses->body);
        pthread_mutex_unlock(&graph->lock);
        status = captured_wait(uses, stream, implicit);
        pthread_mutex_lock(&graph->lock);
        current = graph->uses == uses;
        gg_memory_release(uses->body);
    }
    /* Not all drivers order the launches of one graph on several streams. */
    return status ? status : ggi_memory_wait_uses(graph->body, stream);
}

gg_status gg_graph_launch(gg_graph *graph, gg_stream *stream)
{
    struct gg_device *device = graph->device;
    bool implicit, complete;
    gg_status status = ggi_choose_stream(device, &stream, &implicit, &complete);
    if (status)
        return status;
    if (ggi_stream_is_captured(stream))
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "stream is capturing: a graph cannot be launched into another one");
    status = graph_lock_ready(graph, stream, implicit);
    if (!status)
        status = ggi_captured_begin(graph->uses, stream);
    if (status) {
        pthread_mutex_unlock(&graph->lock);
        return status;
    }
    ggi_call_begin(device, GG_OP_graph_launch, stream, 0);
    status = call_launch(stream, graph->impl);
    /* Also if it failed: it may have started. */
    status = ggi_captured_end(graph->uses, stream, graph_note_uses(graph, stream), status);
    pthread_mutex_unlock(&graph->lock);
    status = ggi_call_end(device, GG_OP_graph_launch, stream, 0, status); /* may wait */
    if (!status && complete)
        status = ggi_stream_synchronize(stream, true);
    ggi_drain_others(stream, false);
    return status;
}

/* Two graphs are always locked in the same order. */
static void graphs_lock(gg_graph *one, gg_graph *other)
{
    gg_graph *first = (uintptr_t)one < (uintptr_t)other ? one : other;
    pthread_mutex_lock(&first->lock);
    pthread_mutex_lock(first == one ? &other->lock : &one->lock);
}

gg_status gg_graph_update(gg_graph *graph, gg_graph *other)
{
    struct gg_device *device = graph->device;
    gg_status status = ggi_device_check(device);
    if (status || graph == other)
        return status;
    if (!gg_device_supports(device, GG_OP_graph_update))
        return ggi_unsupported(device, GG_OP_graph_update);
    if (other->device != device)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "a graph of %s:%d cannot be updated from one of %s:%d: capture the work on "
                        "the same device",
                        device->backend->name, (int)device->ordinal, other->device->backend->name,
                        (int)other->device->ordinal);
    graphs_lock(graph, other);
    status = GGI_RELAXED(device, GGI_CALL_AS(device, graph_update, NULL, 0, NULL,
                                             call_update(device, graph->impl, other->impl)));
    struct ggi_captured *replaced = graph->uses;
    if (!status) {
        gg_memory_retain(other->uses->body);
        graph->uses = other->uses;
    }
    pthread_mutex_unlock(&graph->lock);
    pthread_mutex_unlock(&other->lock);
    if (!status)
        gg_memory_release(replaced->body); /* launches in flight still use it */
    return status;
}

/* ---- references ---- */

void gg_graph_retain(gg_graph *graph)
{
    atomic_fetch_add_explicit(&graph->refs, 1, memory_order_relaxed);
}

void gg_graph_release(gg_graph *graph)
{
    if (graph && atomic_fetch_sub(&graph->refs, 1) == 1)
        gg_memory_release(graph->body);
}

gg_device *gg_graph_device(const gg_graph *graph)
{
    return graph->device;
}
