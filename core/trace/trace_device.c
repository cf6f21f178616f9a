/* trace_device.c: the times of operations on their device, by an event before and one after each. */
#include "runtime/call.h"
#include "trace/trace.h"

#include <stdlib.h>

#define PENDING_MAX 4096 /* measured operations of a device that may be unfinished at a time */
#define COLLECTED 4      /* at each operation, which adds one */
#define REBASE_MS 1000.0 /* times since the base are floats in some drivers, so the base follows */

struct trace_pending {
    struct trace_pending *next;
    gg_stream *stream; /* a use: the stream may be closed */
    uint64_t ticket;
    gg_event *begin, *end;
    struct ggi_trace_record *record;
};

/* The measured operations of one device, in the order of their submission. */
struct trace_clock {
    struct trace_clock *next;
    struct gg_device *device;
    gg_event *base; /* an event whose time is base_ms since the first */
    double base_ms;
    struct trace_pending *first, **last;
    int count;
    bool collecting; /* a thread takes from the front, and owns the base */
};

static pthread_mutex_t trace_clock_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(trace_clock_lock)
static struct trace_clock *trace_clocks;

/* With the lock held. */
static struct trace_clock *trace_clock_of(struct gg_device *device)
{
    struct trace_clock *clock = trace_clocks;
    while (clock && clock->device != device)
        clock = clock->next;
    if (clock || !(clock = calloc(1, sizeof *clock)))
        return clock;
    clock->device = device;
    clock->last = &clock->first;
    clock->next = trace_clocks;
    return trace_clocks = clock;
}

static bool trace_clock_has_room(struct gg_device *device)
{
    pthread_mutex_lock(&trace_clock_lock);
    struct trace_clock *clock = trace_clock_of(device);
    bool room = clock && clock->count < PENDING_MAX;
    pthread_mutex_unlock(&trace_clock_lock);
    return room;
}

/* A timed event after the stream's work so far. */
static gg_event *trace_event(struct gg_device *device, gg_stream *stream)
{
    gg_event *event = NULL;
    struct ggi_internal_scope own;
    ggi_internal_begin(device, &own);
    if (!gg_event_create(device, GG_EVENT_TIMING, &event) && gg_event_record(event, stream)) {
        gg_event_release(event);
        event = NULL;
    }
    ggi_internal_end(device, &own);
    return event;
}

gg_event *ggi_trace_device_begin(struct gg_device *device, gg_op op, gg_stream *stream)
{
    if (!stream || !ggi_op_is_submission(op) || !device->ops->event_elapsed ||
        ggi_stream_is_captured(stream) || !trace_clock_has_room(device))
        return NULL;
    return trace_event(device, stream);
}

/* The events are done: known, so that they go back to the cache. */
static void trace_event_recycle(gg_event *event)
{
    atomic_store(&event->done, atomic_load(&event->recorded));
    gg_event_release(event);
}

/* The operation is done. */
static void trace_measure(struct trace_clock *clock, struct trace_pending *done)
{
    double ms = 0, duration = 0;
    struct ggi_internal_scope own;
    ggi_internal_begin(clock->device, &own);
    bool good = !gg_event_elapsed(done->begin, done->end, &duration) &&
                (!clock->base || !gg_event_elapsed(clock->base, done->begin, &ms));
    ggi_internal_end(clock->device, &own);
    trace_event_recycle(done->end);
    if (good) {
        done->record->device_begin_ms = clock->base_ms + ms;
        done->record->device_ms = (float)duration;
    }
    if (!good || (clock->base && ms < REBASE_MS)) {
        trace_event_recycle(done->begin);
        return;
    }
    if (clock->base)
        trace_event_recycle(clock->base);
    clock->base = done->begin;
    clock->base_ms += ms;
}

/* The lock is not held while the stream is polled: that may run the program's callbacks. */
static struct trace_pending *trace_clock_front(struct trace_clock *clock)
{
    pthread_mutex_lock(&trace_clock_lock);
    struct trace_pending *front = clock->first;
    pthread_mutex_unlock(&trace_clock_lock);
    return front && ggi_stream_is_complete(front->stream, front->ticket, true) ? front : NULL;
}

static void trace_clock_pop(struct trace_clock *clock)
{
    pthread_mutex_lock(&trace_clock_lock);
    clock->first = clock->first->next;
    if (!clock->first)
        clock->last = &clock->first;
    clock->count--;
    pthread_mutex_unlock(&trace_clock_lock);
}

static bool trace_clock_collecting(struct trace_clock *clock, bool start)
{
    pthread_mutex_lock(&trace_clock_lock);
    bool before = clock->collecting;
    clock->collecting = start;
    pthread_mutex_unlock(&trace_clock_lock);
    return before;
}

/* Take up to @p most finished operations from the front, unless another thread does. */
static void trace_collect(struct trace_clock *clock, int most)
{
    struct trace_pending *done;
    if (trace_clock_collecting(clock, true))
        return;
    for (; most > 0 && (done = trace_clock_front(clock)); most--) {
        trace_clock_pop(clock);
        trace_measure(clock, done);
        ggi_stream_use_release(done->stream);
        free(done);
    }
    trace_clock_collecting(clock, false);
}

static void trace_clock_add(struct trace_clock *clock, struct trace_pending *pending)
{
    pending->next = NULL;
    *clock->last = pending;
    clock->last = &pending->next;
    clock->count++;
}

void ggi_trace_device_end(gg_stream *stream, gg_event *begin, struct ggi_trace_record *record)
{
    struct trace_pending *pending = malloc(sizeof *pending);
    gg_event *end = pending ? trace_event(stream->device, stream) : NULL;
    if (!end) {
        gg_event_release(begin);
        free(pending);
        return;
    }
    ggi_stream_use_retain(stream);
    *pending = (struct trace_pending){.stream = stream,
                                      .ticket = atomic_load(&stream->submitted),
                                      .begin = begin,
                                      .end = end,
                                      .record = record};
    pthread_mutex_lock(&trace_clock_lock);
    struct trace_clock *clock = trace_clock_of(stream->device); /* exists since the first event */
    trace_clock_add(clock, pending);
    pthread_mutex_unlock(&trace_clock_lock);
    trace_collect(clock, COLLECTED);
}

static void trace_clock_free(struct trace_clock *clock)
{
    for (struct trace_pending *left = clock->first, *next; left; left = next) {
        next = left->next;
        gg_event_release(left->begin);
        gg_event_release(left->end);
        ggi_stream_use_release(left->stream);
        free(left);
    }
    if (clock->base)
        trace_event_recycle(clock->base);
    free(clock);
}

/* No other thread is inside the recorder. */
void ggi_trace_device_finish(void)
{
    for (struct trace_clock *clock = trace_clocks, *next; clock; clock = next) {
        next = clock->next;
        trace_collect(clock, PENDING_MAX);
        trace_clock_free(clock);
    }
    trace_clocks = NULL;
}

/* Its objects are the parent's: the child may neither use nor release them. */
void ggi_trace_device_reset(void)
{
    trace_clocks = NULL;
}
