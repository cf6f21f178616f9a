/* marks.c: what of a communicator's work is complete, in the order in which it was queued. A mark is an event behind one or more
 * operations of a stream. There are few: one a millisecond, and fewer where many operations are unfinished. */
#include "collective/collective.h"
#include "runtime/event.h"
#include "runtime/stream.h"

#include <string.h>

#define MARKS_NS 1000000u /* between two events */

/* ---- all with self->lock held ---- */

static void mark_release(struct ggi_collective *self, struct collective_mark *mark, bool idle)
{
    struct gg_device *device = self->device;
    if (mark->event && idle)
        ggi_event_recycle(device, false, mark->event);
    else if (mark->event && !atomic_load(&ggi_shutting_down)) /* then the driver may be gone */
        device->ops->event_destroy(mark->event);
    ggi_stream_use_release(mark->stream);
}

static void marks_remove(struct ggi_collective *self, uint32_t at, bool idle)
{
    struct collective_mark *marks = self->marks;
    mark_release(self, &marks[at], idle);
    self->mark_count--;
    memmove(&marks[at], &marks[at + 1], (self->mark_count - at) * sizeof *marks);
}

void ggi_collective_forget_marks(struct ggi_collective *self)
{
    while (self->mark_count)
        marks_remove(self, self->mark_count - 1, false);
}

/* Of each two neighbours on one stream the later stands for both. */
static void marks_merge(struct ggi_collective *self)
{
    for (uint32_t i = 0; i + 1 < self->mark_count; i++)
        if (self->marks[i].stream == self->marks[i + 1].stream) {
            self->marks[i + 1].operations += self->marks[i].operations;
            marks_remove(self, i, false);
        }
}

bool ggi_collective_mark(struct ggi_collective *self, gg_stream *stream, uint64_t ticket)
{
    const uint64_t now = ggi_now_ns();
    if (self->mark_count == COLLECTIVE_MARKS)
        marks_merge(self);
    struct collective_mark *last = self->mark_count ? &self->marks[self->mark_count - 1] : NULL;
    if (!last || last->event || last->recording || last->stream != stream) {
        if (self->mark_count == COLLECTIVE_MARKS)
            return false; /* of many streams: the first of them show the progress */
        ggi_stream_use_retain(stream);
        last = &self->marks[self->mark_count++];
        *last = (struct collective_mark){.stream = stream};
    }
    last->ticket = ticket;
    last->operations++;
    if (now - self->marked < MARKS_NS)
        return false;
    self->marked = now;
    return last->recording = true;
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

bool ggi_collective_marks_move(struct ggi_collective *self)
{
    bool moved = false, idle;
    while (self->mark_count && mark_complete(self, &self->marks[0], &idle)) {
        marks_remove(self, 0, idle);
        moved = true;
    }
    return moved;
}

uint32_t ggi_collective_oldest_mark(const struct ggi_collective *self)
{
    return self->mark_count ? self->marks[0].operations : 1;
}

/* ---- without the lock ---- */

static struct gg_event_impl *mark_record(struct gg_device *device, gg_stream *stream)
{
    struct ggi_internal_scope own;
    struct gg_event_impl *event = NULL;
    ggi_internal_begin(device, &own);
    if (!ggi_event_acquire(device, false, &event) && device->ops->event_record(event, stream->impl)) {
        device->ops->event_destroy(event);
        event = NULL;
    }
    ggi_internal_end(device, &own);
    return event;
}

/* Without an event the stream's own progress shows when the mark is complete. The mark may be gone: it was merged with a later one,
 * or the watcher has ended. */
void ggi_collective_record_mark(struct ggi_collective *self, gg_stream *stream, uint64_t ticket)
{
    struct gg_event_impl *event = mark_record(self->device, stream);
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
