/* work.c: the streams on which a communicator has queued work, the calls that queue it, and the graphs that contain it. */
#include "base/process_state.h"
#include "collective/collective.h"
#include "memory/captured.h"

#include <stdlib.h>
#include <string.h>

#define WORK_START_NS 50000u /* at least, between two events before work */

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

/* The driver is not asked. */
static bool work_is_complete(const struct ggi_collective *self)
{
    bool complete = !atomic_load(&self->calls);
    for (uint32_t i = 0; i < self->used_count && complete; i++)
        complete = ggi_stream_is_complete(self->used[i].stream, self->used[i].ticket, false);
    return complete;
}

/* Before work that others do not precede. Whether an event shows where it begins: but not for each of many short operations. */
static bool work_starts(struct ggi_collective *self, bool captured)
{
    const uint64_t now = ggi_now_ns();
    ggi_collective_marks_pass(self);
    if (captured || self->comm->size == 1 || now - self->started < WORK_START_NS)
        return false;
    self->started = now;
    return true;
}

gg_status ggi_collective_begin(struct ggi_collective *self, gg_stream *stream, bool captured)
{
    struct collective_use *use = NULL;
    gg_status status = GG_OK;
    bool starts = false;
    pthread_mutex_lock(&self->lock);
    if (self->closing || atomic_load(&self->failed))
        status = work_refuse(self);
    else if (!(use = work_find(self, stream)) && !(use = work_add(self, stream)))
        status = ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory to watch a stream");
    if (use) {
        starts = work_is_complete(self) && work_starts(self, captured);
        use->calls++;
        atomic_fetch_add(&self->calls, 1);
    }
    pthread_mutex_unlock(&self->lock);
    if (starts)
        ggi_collective_record_start(self, stream);
    return status;
}

gg_status ggi_collective_end(struct ggi_collective *self, gg_stream *stream, uint64_t ticket,
                             gg_status status)
{
    bool record = false;
    pthread_mutex_lock(&self->lock);
    struct collective_use *use = work_find(self, stream);
    if (use) { /* else the watcher has ended, after a failure */
        use->calls--;
        if (ticket) {
            use->ticket = ticket;
            ggi_stream_watch(stream, self->watcher, ticket);
            record = ggi_collective_mark(self, stream, ticket);
        }
    }
    if (!status && atomic_load(&self->failed)) /* the abort may have ended this work */
        status = work_refuse(self);
    pthread_mutex_unlock(&self->lock);
    if (record)
        ggi_collective_record_mark(self, stream, ticket);
    atomic_fetch_sub(&self->calls, 1);
    atomic_fetch_add(&self->returned, 1);
    return status;
}

/* The watcher must not wait in the driver: where a rank has died, the queue stays full until the watcher ends the work in it. */
bool ggi_collective_pending(struct ggi_collective *self, bool *moved, uint32_t *oldest)
{
    bool pending = false;
    pthread_mutex_lock(&self->lock);
    for (uint32_t i = 0; i < self->used_count; i++)
        if (!ggi_stream_poll_with_room(self->used[i].stream, self->used[i].ticket))
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
    const struct ggi_watcher watcher = {self->watcher, leaves_work, self->waits};
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

/* ---- what the other ranks see ---- */

/* Of a launch with @p graph, else now. @p by: 1; -1, if it was counted, and not queued. */
static void work_count(struct gg_comm *comm, struct collective_graph *graph,
                       const struct gg_comm_task *task, int32_t by)
{
    const gg_comm_operation operation = task->operation;
    const bool receives = operation == GG_COMM_RECV || operation == GG_COMM_SEND_RECV;
    const int32_t from = operation == GG_COMM_RECV ? task->root : task->from;
    if (collective_is_message(operation))
        atomic_store(&comm->collective->messages, true);
    if (!collective_is_message(operation) && graph)
        graph->collective++;
    else if (!collective_is_message(operation))
        atomic_fetch_add(&comm_rank(comm, comm->rank)->collective, (uint64_t)by);
    else if (operation != GG_COMM_RECV && graph)
        graph->with[task->root].sends++;
    else if (operation != GG_COMM_RECV)
        atomic_fetch_add(&comm_pair(comm, comm->rank, task->root)->sends, (uint32_t)by);
    if (receives && graph)
        graph->with[from].receives++;
    else if (receives)
        atomic_fetch_add(&comm_pair(comm, from, comm->rank)->receives, (uint32_t)by);
}

/* Graphs are released with any other lock held; none is taken under this one. */
static pthread_mutex_t graphs_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(graphs_lock)

void ggi_collective_count(struct gg_comm *comm, const struct collective_item *items, size_t count,
                          int32_t by)
{
    for (size_t i = 0; i < count; i++)
        work_count(comm, NULL, &items[i].task, by);
}

void ggi_collective_count_captured(struct gg_comm *comm, const struct collective_item *items,
                                   size_t count)
{
    pthread_mutex_lock(&graphs_lock);
    struct collective_graph *graph = comm->collective->graph;
    for (size_t i = 0; i < count && graph; i++)
        work_count(comm, graph, &items[i].task, 1);
    pthread_mutex_unlock(&graphs_lock);
}

static void work_count_launch(const struct collective_graph *graph, int32_t by)
{
    struct gg_comm *const comm = graph->self->comm;
    struct comm_rank *const own = comm_rank(comm, comm->rank);
    const uint32_t times = (uint32_t)by;
    atomic_fetch_add(&own->collective, graph->collective * (uint64_t)by);
    for (int32_t rank = 0; rank < comm->size; rank++) {
        atomic_fetch_add(&comm_pair(comm, comm->rank, rank)->sends, graph->with[rank].sends * times);
        atomic_fetch_add(&comm_pair(comm, rank, comm->rank)->receives,
                         graph->with[rank].receives * times);
    }
    atomic_store(&own->working, 1);
}

/* ---- graphs ---- */

static void work_enter_capture(struct ggi_collective *self, uint64_t id,
                               struct collective_graph *graph)
{
    pthread_mutex_lock(&graphs_lock);
    self->capture = id;
    self->graph = graph;
    pthread_mutex_unlock(&graphs_lock);
}

/* The driver may continue a capture whose end has failed: it is other code's then. */
static void work_leave_capture(struct ggi_collective *self, const struct collective_graph *graph)
{
    pthread_mutex_lock(&graphs_lock);
    if (self->graph == graph) {
        self->capture = 0;
        self->graph = NULL;
    }
    pthread_mutex_unlock(&graphs_lock);
}

/* *counts: launches of it will announce what is captured. */
static bool work_in_capture(struct ggi_collective *self, uint64_t id, bool *counts)
{
    pthread_mutex_lock(&graphs_lock);
    const bool same = id == self->capture;
    *counts = self->graph != NULL;
    pthread_mutex_unlock(&graphs_lock);
    return same;
}

static void work_graph_gone(void *owner)
{
    struct collective_graph *graph = owner;
    struct ggi_collective *self = graph->self;
    work_leave_capture(self, graph);
    atomic_fetch_sub(&self->graphs, 1);
    ggi_collective_release(self);
    free(graph);
}

static gg_status work_graph_begin(void *owner, gg_stream *stream)
{
    return ggi_collective_begin(((struct collective_graph *)owner)->self, stream, false);
}

/* Also if another thread has begun a close since: it waits for the launch. A communicator that has failed does not wait, and
 * may be freed once its watcher has ended. */
static void work_graph_count(void *owner, int32_t by)
{
    struct ggi_collective *self = ((struct collective_graph *)owner)->self;
    pthread_mutex_lock(&self->lock);
    if (!self->ended)
        work_count_launch(owner, by);
    pthread_mutex_unlock(&self->lock);
}

static gg_status work_graph_end(void *owner, gg_stream *stream, uint64_t ticket, gg_status status)
{
    return ggi_collective_end(((struct collective_graph *)owner)->self, stream, ticket, status);
}

static struct collective_graph *work_graph_new(struct ggi_collective *self)
{
    struct collective_graph *graph =
        calloc(1, sizeof *graph + (size_t)self->comm->size * sizeof graph->with[0]);
    if (!graph)
        return NULL;
    graph->self = self;
    atomic_fetch_add(&self->refs, 1);
    atomic_fetch_add(&self->graphs, 1);
    return graph;
}

static gg_status work_keep_graph(struct ggi_collective *self, gg_stream *stream, uint64_t id,
                                 struct collective_graph *graph, bool *kept)
{
    static const struct ggi_captured_hooks hooks = {work_graph_gone, work_graph_begin,
                                                    work_graph_count, work_graph_end};
    work_enter_capture(self, id, graph);
    const gg_status status = ggi_captured_keep(stream, &hooks, graph, kept);
    if (!*kept)
        work_graph_gone(graph);
    if (!*kept && !status) { /* other code's graph, which may be launched there at any time */
        work_enter_capture(self, id, NULL);
        ggi_stream_watch(stream, self->watcher, UINT64_MAX);
        atomic_store(&self->untracked, true);
    }
    return status;
}

gg_status ggi_collective_captured(struct ggi_collective *self, gg_stream *stream, bool *counts)
{
    uint64_t id = 0;
    *counts = false;
    if (ggi_stream_capture_id(stream, &id) || work_in_capture(self, id, counts))
        return GG_OK;
    struct collective_graph *graph = work_graph_new(self);
    return graph ? work_keep_graph(self, stream, id, graph, counts)
                 : ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a capture");
}
