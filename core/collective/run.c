/* run.c: queues checked operations on a stream. */
#include "collective/collective.h"
#include "memory/uses.h"
#include "runtime/call.h"
#include "runtime/scope.h"

#include <gpuglue/copy.h>

#include <stdlib.h>
#include <string.h>

const char *const ggi_collective_names[COLLECTIVE_OPERATIONS] = {
    [GG_COMM_BROADCAST] = "broadcast",
    [GG_COMM_ALL_GATHER] = "all_gather",
    [GG_COMM_GATHER] = "gather",
    [GG_COMM_SCATTER] = "scatter",
    [GG_COMM_ALL_TO_ALL] = "all_to_all",
    [GG_COMM_ALL_REDUCE] = "all_reduce",
    [GG_COMM_REDUCE] = "reduce",
    [GG_COMM_REDUCE_SCATTER] = "reduce_scatter",
    [GG_COMM_SEND] = "send",
    [GG_COMM_RECV] = "recv",
    [GG_COMM_SEND_RECV] = "send_recv"};

/* ---- the first call of a kind may wait for other ranks, while the library connects them ---- */

static uint64_t run_size_bit(size_t count)
{
    return UINT64_C(1) << (count ? 63 - __builtin_clzll((unsigned long long)count) : 0);
}

static bool run_knows_peer(uint8_t *bits, int32_t rank, bool learn)
{
    const uint8_t bit = (uint8_t)(1u << rank % 8);
    const bool known = bits[rank / 8] & bit;
    if (learn)
        bits[rank / 8] |= bit;
    return known;
}

/* Whether such an operation has succeeded before. With @p learn this one has. */
static bool run_knows(struct ggi_collective *self, const struct gg_comm_task *task, bool learn)
{
    bool known = true;
    if (collective_is_message(task->operation)) {
        if (task->operation != GG_COMM_RECV)
            known = run_knows_peer(self->peers[0], task->root, learn);
        if (task->operation != GG_COMM_SEND)
            known =
                run_knows_peer(self->peers[1],
                               task->operation == GG_COMM_RECV ? task->root : task->from, learn) &&
                known;
        return known;
    }
    uint64_t *sizes = &self->connected[task->operation];
    const uint64_t bit = run_size_bit(task->count * collective_unit(task));
    known = *sizes & bit;
    if (learn)
        *sizes |= bit;
    return known;
}

struct run_call {
    struct collective_call call;
    struct ggi_collective *self; /* a reference, and a call of it */
    struct gg_stream_impl *stream;
    size_t count;
    struct gg_comm_task tasks[];
};

static gg_status run_run_call(struct collective_call *call)
{
    struct run_call *own = (struct run_call *)(void *)call;
    return own->self->ops->run(own->self->impl, own->stream, own->tasks, own->count);
}

static void run_call_free(struct collective_call *call)
{
    struct run_call *own = (struct run_call *)(void *)call;
    atomic_fetch_sub(&own->self->guarded, 1);
    atomic_fetch_sub(&own->self->calls, 1);
    ggi_collective_release(own->self);
    free(call);
}

/* A call that has not returned uses them for the rest of the process. */
static void run_keep(const struct collective_item *items, size_t count, gg_stream *stream)
{
    gg_stream_retain(stream);
    for (size_t i = 0; i < count; i++) {
        if (items[i].dst)
            gg_memory_retain(items[i].dst);
        if (items[i].src)
            gg_memory_retain(items[i].src);
    }
}

static gg_status run_run_guarded(struct gg_comm *comm, const struct collective_item *items,
                                 struct gg_stream *stream, const struct gg_comm_task *tasks,
                                 size_t count)
{
    bool left;
    struct run_call *own = calloc(1, sizeof *own + count * sizeof *tasks);
    if (!own)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory for %zu operations", count);
    own->call.run = run_run_call;
    own->call.abandoned = run_call_free;
    own->self = comm->collective;
    own->stream = stream->impl;
    own->count = count;
    memcpy(own->tasks, tasks, count * sizeof *tasks);
    atomic_fetch_add(&own->self->refs, 1);
    atomic_fetch_add(&own->self->calls, 1);
    atomic_fetch_add(&own->self->guarded, 1);
    const uint64_t now = ggi_now_ns(), limit = comm->timeout_ns;
    const uint64_t until = limit > UINT64_MAX - now ? UINT64_MAX : now + limit;
    const gg_status status = ggi_collective_guard(comm, &own->call, until, !comm->external, &left);
    if (left)
        run_keep(items, count, stream);
    else
        run_call_free(&own->call);
    return status;
}

/* ---- tracers ---- */

static struct gg_trace run_trace(const struct collective_item *items, size_t count,
                                 const gg_stream *stream)
{
    struct gg_trace trace = {.op = GG_OP_collective,
                             .stream = stream,
                             .name = count == 1 ? ggi_collective_names[items->task.operation]
                                                : "group"};
    for (size_t i = 0; i < count; i++)
        trace.bytes +=
            items[i].dst_nbytes > items[i].src_nbytes ? items[i].dst_nbytes : items[i].src_nbytes;
    return trace;
}

void ggi_collective_observe_begin(struct gg_device *device, const struct collective_item *items,
                                  size_t count, gg_stream *stream)
{
    if (!atomic_load_explicit(&ggi_observed, memory_order_acquire))
        return;
    struct gg_trace trace = run_trace(items, count, stream);
    ggi_call_observe(device, &trace, false);
}

void ggi_collective_observe_end(struct gg_device *device, const struct collective_item *items,
                                size_t count, gg_stream *stream, gg_status status)
{
    if (!atomic_load_explicit(&ggi_observed, memory_order_acquire))
        return;
    struct gg_trace trace = run_trace(items, count, stream);
    trace.status = status;
    ggi_call_observe(device, &trace, true);
}

/* ---- to queue ---- */

static gg_status run_call_library(struct gg_comm *comm, const struct collective_item *items,
                                  size_t count, gg_stream *stream)
{
    struct ggi_collective *self = comm->collective;
    struct gg_comm_task *copies = NULL;
    bool known = true;
    if (count > 1 && !(copies = malloc(count * sizeof *copies)))
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory for %zu operations", count);
    for (size_t i = 0; i < count; i++) {
        known = run_knows(self, &items[i].task, false) && known;
        if (copies)
            copies[i] = items[i].task;
    }
    const struct gg_comm_task *tasks = copies ? copies : &items->task;
    const gg_status status = known || stream->of_thread || comm->size == 1
                                 ? self->ops->run(self->impl, stream->impl, tasks, count)
                                 : run_run_guarded(comm, items, stream, tasks, count);
    for (size_t i = 0; i < count && !status && !known; i++)
        run_knows(self, &tasks[i], true);
    free(copies);
    return status;
}

/* Returns the ticket; 0: captured. */
static uint64_t run_note(const struct ggi_collective *self, const struct collective_item *items,
                         size_t count, gg_stream *stream, bool captured)
{
    const uint64_t watchers = self->watcher | ggi_stream_watchers(stream);
    const uint64_t ticket = captured ? 0 : ggi_stream_submitted(stream);
    for (size_t i = 0; i < count; i++) {
        if (items[i].dst)
            ggi_memory_note_use(items[i].dst, stream, ticket, captured);
        if (items[i].dst && !captured)
            ggi_memory_note_result(items[i].dst, stream, ticket, watchers);
        if (items[i].src && items[i].src != items[i].dst)
            ggi_memory_note_use(items[i].src, stream, ticket, captured);
    }
    return ticket;
}

/* A failure while the library is called ends this work too, so the watcher knows of it before. */
static gg_status run_queue(struct gg_comm *comm, const struct collective_item *items, size_t count,
                           gg_stream *stream)
{
    struct ggi_collective *self = comm->collective;
    const bool captured = ggi_stream_is_captured(stream); /* a driver call, if other code has it */
    bool in_graph = false;
    gg_status status = captured ? ggi_collective_captured(self, stream, &in_graph) : GG_OK;
    if (!status)
        status = ggi_collective_begin(self, stream, captured);
    if (status)
        return status;
    if (!in_graph)
        ggi_collective_count(comm, items, count, 1);
    _Atomic uint32_t *working = &comm_rank(comm, comm->rank)->working;
    if (!atomic_load(working))
        atomic_store(working, 1);
    ggi_collective_observe_begin(self->device, items, count, stream);
    /* An operation that a finished rank lacks would not end, and would use memory that this rank may free. */
    status = !in_graph && ggi_collective_find_finished(comm)
                 ? ggi_comm_state(comm)
                 : run_call_library(comm, items, count, stream);
    ggi_collective_observe_end(self->device, items, count, stream, status);
    if (!in_graph && status) /* it may leave the communicator usable */
        ggi_collective_count(comm, items, count, -1);
    if (in_graph && !status) /* else no launch has it */
        ggi_collective_count_captured(comm, items, count);
    const uint64_t ticket =
        run_note(self, items, count, stream, captured); /* also if it failed: it may have begun */
    return ggi_collective_end(self, stream, status ? 0 : ticket, status);
}

static gg_status run_wait(const struct collective_item *items, size_t count, gg_stream *stream,
                          bool implicit)
{
    gg_status status = GG_OK;
    for (size_t i = 0; i < count && !status; i++) {
        if (items[i].dst)
            status = ggi_memory_wait_before_use(items[i].dst, stream, implicit);
        if (!status && items[i].src && items[i].src != items[i].dst)
            status = ggi_memory_wait_before_use(items[i].src, stream, implicit);
    }
    return status;
}

/* A send and a receive cannot be in place: copy what is sent. */
static gg_status run_separate(struct collective_item *item, gg_stream *stream, gg_memory **copy)
{
    const size_t nbytes = item->task.count * (size_t)item->task.from;
    gg_status status = gg_memory_alloc(stream->device, GG_MEMORY_DEVICE, nbytes, stream, copy);
    if (status)
        return status;
    const struct gg_copy_operand dst = {.memory = *copy};
    const struct gg_copy_operand src = {
        .memory = item->src,
        .offset = (size_t)((const char *)item->task.src - (const char *)item->src->pointer)};
    status = gg_copy(&dst, &src, nbytes, stream, 0);
    item->src = *copy;
    item->task.src = (*copy)->pointer;
    return status;
}

/* The library's failure, unless an argument was wrong, is the end of the communicator. */
static gg_status run_failed(struct gg_comm *comm, const char *name, gg_status status)
{
    if (status == GG_ERR_INTERRUPTED)
        return status;
    if (atomic_load(&comm->segment->failed))
        return ggi_comm_state(comm);
    if (status == GG_ERR_OUT_OF_MEMORY)
        return status;
    ggi_named_op_failed(comm->collective->device, name, status);
    if (status == GG_ERR_INVALID_ARGUMENT || status == GG_ERR_UNSUPPORTED)
        return status;
    return ggi_collective_broken(comm, status);
}

gg_status ggi_collective_run(struct gg_comm *comm, struct collective_item *items, size_t count,
                             gg_stream *stream)
{
    gg_memory *copy = NULL;
    bool implicit, complete;
    gg_status status = ggi_choose_stream(comm->collective->device, &stream, &implicit, &complete);
    if (!status)
        status = run_wait(items, count, stream, implicit);
    if (!status && count == 1 && items->task.operation == GG_COMM_ALL_TO_ALL &&
        items->task.dst == items->task.src) {
        items->task.from = comm->size;
        status = run_separate(items, stream, &copy);
    }
    if (!status) {
        status = run_queue(comm, items, count, stream);
        if (status)
            status = run_failed(comm, ggi_collective_names[items->task.operation], status);
    }
    gg_memory_release(copy);
    if (!status && (complete || atomic_load_explicit(&ggi_debug_sync, memory_order_relaxed)) &&
        !ggi_stream_is_captured(stream))
        status = ggi_stream_synchronize(stream, true);
    if (!status)
        ggi_drain_others(stream, false);
    return status;
}
