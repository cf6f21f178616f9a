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

/* @p again: nothing needs what it was recorded for. */
static void mark_end_event(struct ggi_collective *self, struct gg_event_impl *event, bool again)
{
    if (event && again && self->spare_count < COLLECTIVE_SPARES)
        self->spares[self->spare_count++] = event;
    else if (event && !atomic_load(&ggi_shutting_down)) /* then the driver may be gone */
        self->device->ops->event_destroy(event);
}

static void mark_release(struct ggi_collective *self, struct collective_mark *mark, bool again)
{
    mark_end_event(self, mark->event, again);
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
    while (self->spare_count)
        mark_end_event(self, self->spares[--self->spare_count], false);
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
    mark_end_event(self, last->event, true);
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
    if (now - self->marked < MARKS_NS && mark->operations % MARKS_OPERATIONS)
        return false;
    self->marked = now;
    return mark->recording = true;
}

/* A mark whose query fails is complete when its stream is. */
static bool mark_complete(const struct ggi_collective *self, const struct collective_mark *mark)
{
    struct ggi_internal_scope own;
    const bool known = ggi_stream_is_complete(mark->stream, mark->ticket, false);
    if (known || !mark->event)
        return known;
    ggi_internal_begin(self->device, &own);
    const gg_status status = self->device->ops->event_query(mark->event);
    ggi_stream_stash_error(mark->stream, status);
    ggi_internal_end(self->device, &own);
    return status == GG_OK;
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
    marks_query_start(self);
    for (; done < self->mark_count && mark_complete(self, &self->marks[done]); done++) {
        if (self->marks[done].collective)
            atomic_store(&mine->complete, self->marks[done].collective);
        mark_release(self, &self->marks[done], true);
    }
    self->mark_count -= done;
    if (done)
        memmove(self->marks, self->marks + done, self->mark_count * sizeof *self->marks);
    atomic_store(&mine->held, self->starts);
    atomic_store(&mine->incomplete,
                 self->mark_count && !self->messages ? self->marks[0].collective : 0);
    const bool moved = done || self->moved;
    self->moved = false;
    return moved;
}

void ggi_collective_marks_pass(struct ggi_collective *self)
{
    self->starts = false;
    if (self->mark_count)
        self->moved = ggi_collective_marks_move(self);
}

uint32_t ggi_collective_oldest_mark(const struct ggi_collective *self)
{
    return self->mark_count ? self->marks[0].operations : 1;
}

/* ---- without the lock ---- */

/* NULL: it failed. */
static struct gg_event_impl *mark_record(struct ggi_collective *self, gg_stream *stream)
{
    struct gg_device *device = self->device;
    struct ggi_internal_scope own;
    struct gg_event_impl *event = NULL;
    pthread_mutex_lock(&self->lock);
    if (self->spare_count)
        event = self->spares[--self->spare_count];
    pthread_mutex_unlock(&self->lock);
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

void ggi_collective_record_start(struct ggi_collective *self, gg_stream *stream)
{
    struct gg_event_impl *event = mark_record(self, stream);
    pthread_mutex_lock(&self->lock);
    mark_end_event(self, self->ended ? event : self->start, !self->ended);
    self->start = self->ended ? NULL : event;
    self->starts = self->start != NULL;
    pthread_mutex_unlock(&self->lock);
}

/* Without an event the stream's own progress shows when the mark is complete. The mark may be gone: it was merged with a later one,
 * or the watcher has ended. */
void ggi_collective_record_mark(struct ggi_collective *self, gg_stream *stream, uint64_t ticket)
{
    struct gg_event_impl *event = mark_record(self, stream);
    pthread_mutex_lock(&self->lock);
    uint32_t at = self->mark_count;
    while (at && (!self->marks[at - 1].recording || self->marks[at - 1].stream != stream ||
                  self->marks[at - 1].ticket != ticket))
        at--;
    if (at) {
        self->marks[at - 1].recording = false;
        self->marks[at - 1].event = event;
        event = NULL;
    }
    pthread_mutex_unlock(&self->lock);
    if (event && !atomic_load(&ggi_shutting_down))
        self->device->ops->event_destroy(event);
}
