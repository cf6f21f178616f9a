/* marks.c: what of a communicator's work is complete, in the order in which it was queued. A mark is an event behind one or more
 * operations of a stream: of four, or of those of a millisecond, and of more if very many are unfinished. */
#include "collective/collective.h"
#include "runtime/event.h"
#include "runtime/stream.h"

#include <stdlib.h>
#include <string.h>

#define MARKS_NS 1000000u  /* between two events, */
#define MARKS_OPERATIONS 4 /* or so many operations */
#define MARKS_FIRST 32     /* room for them */

/* ---- all with self->lock held ---- */

static void mark_end_event(struct ggi_collective *self, struct gg_event_impl *event, bool idle)
{
    if (event && idle)
        ggi_event_recycle(self->device, false, event);
    else if (event && !atomic_load(&ggi_shutting_down)) /* then the driver may be gone */
        self->device->ops->event_destroy(event);
}

static void mark_release(struct ggi_collective *self, struct collective_mark *mark, bool idle)
{
    mark_end_event(self, mark->event, idle);
    ggi_stream_use_release(mark->stream);
}

void ggi_collective_forget_marks(struct ggi_collective *self)
{
    while (self->mark_count)
        mark_release(self, &self->marks[--self->mark_count], false);
    free(self->marks);
    self->marks = NULL;
    self->mark_room = 0;
    mark_end_event(self, self->start, false);
    self->start = NULL;
    self->starts = false;
}

static bool marks_have_room(struct ggi_collective *self)
{
    const uint32_t room = self->mark_room ? 2 * self->mark_room : MARKS_FIRST;
    if (self->mark_count < self->mark_room)
        return true;
    struct collective_mark *larger =
        room > COLLECTIVE_MARKS ? NULL : realloc(self->marks, room * sizeof *larger);
    if (!larger)
        return false;
    self->marks = larger;
    self->mark_room = room;
    return true;
}

/* NULL: of many streams the first show the progress. Without room the last mark stands for what follows on its stream. */
static struct collective_mark *marks_last(struct ggi_collective *self, gg_stream *stream)
{
    struct collective_mark *last = self->mark_count ? &self->marks[self->mark_count - 1] : NULL;
    if (last && !last->event && !last->recording && last->stream == stream)
        return last;
    if (marks_have_room(self)) {
        ggi_stream_use_retain(stream);
        last = &self->marks[self->mark_count++];
        *last = (struct collective_mark){.stream = stream};
        return last;
    }
    if (!last || last->stream != stream)
        return NULL;
    mark_end_event(self, last->event, false);
    last->event = NULL;
    last->recording = false;
    return last;
}

bool ggi_collective_mark(struct ggi_collective *self, gg_stream *stream, uint64_t ticket)
{
    const uint64_t now = ggi_now_ns();
    struct collective_mark *mark = marks_last(self, stream);
    if (!mark)
        return false;
    mark->ticket = ticket;
    mark->operations++;
    /* Another thread's operation is counted, but may not be queued. */
    mark->collective = atomic_load(&self->calls) > 1
                           ? 0
                           : atomic_load(&comm_rank(self->comm, self->comm->rank)->collective);
    if (now - self->marked < MARKS_NS && mark->operations < MARKS_OPERATIONS)
        return false;
    self->marked = now;
    return mark->recording = true;
}

/* A mark whose query fails is complete when its stream is: its event is not used again. */
static bool mark_complete(const struct ggi_collective *self, const struct collective_mark *mark,
                          bool *idle)
{
    struct ggi_internal_scope own;
    gg_status status = GG_ERR_INTERNAL;
    if (mark->event) {
        ggi_internal_begin(self->device, &own);
        status = self->device->ops->event_query(mark->event);
        ggi_stream_stash_error(mark->stream, status);
        ggi_internal_end(self->device, &own);
    }
    *idle = status == GG_OK;
    return *idle ||
           (status != GG_NOT_READY && ggi_stream_is_complete(mark->stream, mark->ticket, false));
}

static void marks_query_start(struct ggi_collective *self)
{
    struct ggi_internal_scope own;
    if (!self->start || !self->starts)
        return;
    ggi_internal_begin(self->device, &own);
    self->starts = self->device->ops->event_query(self->start) == GG_NOT_READY;
    ggi_internal_end(self->device, &own);
}

bool ggi_collective_marks_move(struct ggi_collective *self)
{
    struct comm_rank *mine = comm_rank(self->comm, self->comm->rank);
    uint32_t done = 0;
    bool idle;
    marks_query_start(self);
    for (; done < self->mark_count && mark_complete(self, &self->marks[done], &idle); done++) {
        if (self->marks[done].collective)
            atomic_store(&mine->complete, self->marks[done].collective);
        mark_release(self, &self->marks[done], idle);
    }
    self->mark_count -= done;
    if (done)
        memmove(self->marks, self->marks + done, self->mark_count * sizeof *self->marks);
    atomic_store(&mine->held, self->starts);
    atomic_store(&mine->incomplete,
                 self->mark_count && !self->messages ? self->marks[0].collective : 0);
    return done > 0;
}

uint32_t ggi_collective_oldest_mark(const struct ggi_collective *self)
{
    return self->mark_count ? self->marks[0].operations : 1;
}

/* ---- without the lock ---- */

/* Record @p event, or a new one if it is NULL. NULL: it failed. */
static struct gg_event_impl *mark_record(struct gg_device *device, gg_stream *stream,
                                         struct gg_event_impl *event)
{
    struct ggi_internal_scope own;
    ggi_internal_begin(device, &own);
    if (!event && ggi_event_acquire(device, false, &event))
        event = NULL;
    if (event && device->ops->event_record(event, stream->impl)) {
        device->ops->event_destroy(event);
        event = NULL;
    }
    ggi_internal_end(device, &own);
    return event;
}

/* One event serves again: what it was recorded for is complete. */
void ggi_collective_record_start(struct ggi_collective *self, gg_stream *stream)
{
    pthread_mutex_lock(&self->lock);
    struct gg_event_impl *event = self->start;
    self->start = NULL;
    pthread_mutex_unlock(&self->lock);
    event = mark_record(self->device, stream, event);
    pthread_mutex_lock(&self->lock);
    if (self->start || self->ended)
        mark_end_event(self, event, false);
    else
        self->start = event;
    self->starts = self->start != NULL;
    pthread_mutex_unlock(&self->lock);
}

/* Without an event the stream's own progress shows when the mark is complete. The mark may be gone: it was merged with a later one,
 * or the watcher has ended. */
void ggi_collective_record_mark(struct ggi_collective *self, gg_stream *stream, uint64_t ticket)
{
    struct gg_event_impl *event = mark_record(self->device, stream, NULL);
    pthread_mutex_lock(&self->lock);
    for (uint32_t i = 0; i < self->mark_count; i++) {
        struct collective_mark *mark = &self->marks[i];
        if (!mark->recording || mark->stream != stream || mark->ticket != ticket)
            continue;
        mark->recording = false;
        mark->event = event;
        event = NULL;
    }
    pthread_mutex_unlock(&self->lock);
    if (event && !atomic_load(&ggi_shutting_down))
        self->device->ops->event_destroy(event);
}
