/* work.c: the streams on which a communicator has queued work, the calls that queue it, and the graphs that contain it. */
#include "collective/collective.h"
#include "memory/captured.h"

#include <stdlib.h>
#include <string.h>

/* ---- streams, with self->lock held ---- */

static void work_forget(struct ggi_collective *self, uint32_t at)
{
    ggi_stream_use_release(self->used[at].stream);
    self->used[at] = self->used[--self->used_count];
}

void ggi_collective_forget_work(struct ggi_collective *self)
{
    while (self->used_count)
        work_forget(self, 0);
    ggi_collective_forget_marks(self);
    free(self->used);
    self->used = NULL;
    self->used_room = 0;
}

static struct collective_use *work_find(struct ggi_collective *self, const gg_stream *stream)
{
    for (uint32_t i = 0; i < self->used_count; i++)
        if (self->used[i].stream == stream)
            return &self->used[i];
    return NULL;
}

static void work_forget_complete(struct ggi_collective *self)
{
    for (uint32_t i = self->used_count; i > 0; i--) {
        const struct collective_use *use = &self->used[i - 1];
        if (!use->calls && ggi_stream_is_complete(use->stream, use->ticket, false))
            work_forget(self, i - 1);
    }
}

/* NULL without memory. */
static struct collective_use *work_add(struct ggi_collective *self, gg_stream *stream)
{
    if (self->used_count == self->used_room)
        work_forget_complete(self);
    if (self->used_count == self->used_room) {
        const uint32_t room = self->used_room ? 2 * self->used_room : 4;
        struct collective_use *larger = realloc(self->used, room * sizeof *larger);
        if (!larger)
            return NULL;
        self->used = larger;
        self->used_room = room;
    }
    ggi_stream_use_retain(stream);
    self->used[self->used_count] = (struct collective_use){.stream = stream};
    return &self->used[self->used_count++];
}

/* ---- around what queues work ---- */

static gg_status work_refuse(const struct ggi_collective *self)
{
    if (self->closing)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the communicator of this operation or graph is closed");
    return ggi_error_restore(&self->failure);
}

gg_status ggi_collective_begin(struct ggi_collective *self, gg_stream *stream)
{
    struct collective_use *use = NULL;
    gg_status status = GG_OK;
    pthread_mutex_lock(&self->lock);
    if (self->closing || atomic_load(&self->failed))
        status = work_refuse(self);
    else if (!(use = work_find(self, stream)) && !(use = work_add(self, stream)))
        status = ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory to watch a stream");
    if (use) {
        use->calls++;
        atomic_fetch_add(&self->calls, 1);
    }
    pthread_mutex_unlock(&self->lock);
    return status;
}

gg_status ggi_collective_end(struct ggi_collective *self, gg_stream *stream, uint64_t ticket,
                             gg_status status)
{
    pthread_mutex_lock(&self->lock);
    struct collective_use *use = work_find(self, stream);
    if (use) { /* else the watcher has ended, after a failure */
        use->calls--;
        use->ticket = ticket ? ticket : use->ticket;
        if (ticket) {
            ggi_stream_watch(stream, self->watcher, ticket);
            ggi_collective_mark(self, stream, ticket);
        }
    }
    if (!status && atomic_load(&self->failed)) /* the abort may have ended this work */
        status = work_refuse(self);
    pthread_mutex_unlock(&self->lock);
    atomic_fetch_sub(&self->calls, 1);
    return status;
}

bool ggi_collective_pending(struct ggi_collective *self, bool *moved, uint32_t *oldest)
{
    bool pending = false;
    pthread_mutex_lock(&self->lock);
    for (uint32_t i = 0; i < self->used_count; i++)
        if (!ggi_stream_is_complete(self->used[i].stream, self->used[i].ticket, true))
            pending = true;
    if (oldest) {
        *moved = ggi_collective_marks_move(self);
        *oldest = ggi_collective_oldest_mark(self);
    }
    pthread_mutex_unlock(&self->lock);
    return pending;
}

bool ggi_collective_queries_fail(struct ggi_collective *self)
{
    bool fails = false;
    pthread_mutex_lock(&self->lock);
    for (uint32_t i = 0; i < self->used_count && !fails; i++)
        fails = !ggi_stream_is_complete(self->used[i].stream, self->used[i].ticket, false) &&
                ggi_stream_query_fails(self->used[i].stream);
    pthread_mutex_unlock(&self->lock);
    return fails;
}

void ggi_collective_fail_work(struct ggi_collective *self, const struct ggi_kept_error *error,
                              bool leaves_work)
{
    const struct ggi_watcher watcher = {self->watcher, leaves_work};
    pthread_mutex_lock(&self->lock);
    self->failure = *error;
    for (uint32_t i = 0; i < self->used_count; i++)
        if (self->untracked ||
            !ggi_stream_is_complete(self->used[i].stream, self->used[i].ticket, false))
            ggi_stream_end_work(self->used[i].stream, &watcher, error);
    atomic_store(&self->failed, true);
    pthread_mutex_unlock(&self->lock);
    ggi_streams_end_work(self->device->backend, &watcher, error);
}

/* ---- graphs ---- */

static void work_graph_gone(void *owner)
{
    struct ggi_collective *self = owner;
    atomic_fetch_sub(&self->graphs, 1);
    ggi_collective_release(self);
}
static gg_status work_graph_begin(void *owner, gg_stream *stream)
{
    return ggi_collective_begin(owner, stream);
}
static gg_status work_graph_end(void *owner, gg_stream *stream, uint64_t ticket, gg_status status)
{
    return ggi_collective_end(owner, stream, ticket, status);
}

gg_status ggi_collective_captured(struct ggi_collective *self, gg_stream *stream)
{
    static const struct ggi_captured_hooks hooks = {work_graph_gone, work_graph_begin,
                                                    work_graph_end};
    uint64_t id = 0;
    bool kept;
    if (ggi_stream_capture_id(stream, &id) || id == self->capture)
        return GG_OK;
    atomic_fetch_add(&self->refs, 1);
    atomic_fetch_add(&self->graphs, 1);
    const gg_status status = ggi_captured_keep(stream, &hooks, self, &kept);
    if (!kept)
        work_graph_gone(self);
    if (!kept && !status) { /* other code's graph, which may be launched there at any time */
        ggi_stream_watch(stream, self->watcher, UINT64_MAX);
        atomic_store(&self->untracked, true);
    }
    if (!status)
        self->capture = id;
    return status;
}
