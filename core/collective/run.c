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

static bool run_set_peer(uint8_t *bits, int32_t rank)
{
    const uint8_t bit = (uint8_t)(1u << rank % 8);
    const bool known = bits[rank / 8] & bit;
    bits[rank / 8] |= bit;
    return known;
}

/* Whether such an operation was called before; it counts as one from now on. */
static bool run_is_known(struct ggi_collective *self, const struct gg_comm_task *task)
{
    bool known = true;
    if (collective_is_message(task->operation)) {
        if (task->operation != GG_COMM_RECV)
            known = run_set_peer(self->peers[0], task->root);
        if (task->operation != GG_COMM_SEND)
            known = run_set_peer(self->peers[1],
                                 task->operation == GG_COMM_RECV ? task->root : task->from) &&
                    known;
        self->last_peer = task->root;
        return known;
    }
    uint64_t *sizes = &self->connected[task->operation];
    const uint64_t bit = run_size_bit(task->count * collective_unit(task));
    known = *sizes & bit;
    *sizes |= bit;
    return known;
}

struct run_call {
    struct collective_call call;
    struct ggi_collective *self;
    struct gg_stream_impl *stream;
    size_t count;
    struct gg_comm_task tasks[];
};

static gg_status run_run_call(struct collective_call *call)
{
    struct run_call *own = (struct run_call *)(void *)call;
    return own->self->ops->run(own->self->impl, own->stream, own->tasks, own->count);
}

static void run_call_left(struct collective_call *call)
{
    free(call);
}

static gg_status run_run_guarded(struct gg_comm *comm, struct gg_stream *stream,
                                 const struct gg_comm_task *tasks, size_t count)
{
    bool left;
    struct run_call *own = calloc(1, sizeof *own + count * sizeof *tasks);
    if (!own)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory for %zu operations", count);
    own->call.run = run_run_call;
    own->call.abandoned = run_call_left;
    own->self = comm->collective;
    own->stream = stream->impl;
    own->count = count;
    memcpy(own->tasks, tasks, count * sizeof *tasks);
    const uint64_t now = ggi_now_ns();
    const uint64_t until = comm->timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + comm->timeout_ns;
    const gg_status status = ggi_collective_guard(comm, &own->call, until, true, &left);
    comm->collective->stuck = comm->collective->stuck || left;
    if (!left)
        free(own);
    return status;
}

/* ---- to queue ---- */

static gg_status run_call_library(struct gg_comm *comm, const struct collective_item *items,
                                  size_t count, gg_stream *stream)
{
    struct ggi_collective *self = comm->collective;
    struct gg_comm_task one, *tasks = &one;
    bool known = true;
    if (count > 1 && !(tasks = malloc(count * sizeof *tasks)))
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory for %zu operations", count);
    for (size_t i = 0; i < count; i++) {
        tasks[i] = items[i].task;
        known = run_is_known(self, &tasks[i]) && known;
    }
    atomic_fetch_add(&self->calls, 1);
    const gg_status status = known || stream->of_thread || comm->size == 1
                                 ? self->ops->run(self->impl, stream->impl, tasks, count)
                                 : run_run_guarded(comm, stream, tasks, count);
    atomic_fetch_sub(&self->calls, 1);
    if (tasks != &one)
        free(tasks);
    return status;
}

static void run_note(struct gg_comm *comm, const struct collective_item *items, size_t count,
                     gg_stream *stream)
{
    const bool captured = ggi_stream_is_captured(stream);
    const uint64_t ticket = captured ? 0 : ggi_stream_submitted(stream);
    for (size_t i = 0; i < count; i++) {
        if (items[i].dst)
            ggi_memory_note_use(items[i].dst, stream, ticket, captured);
        if (items[i].src && items[i].src != items[i].dst)
            ggi_memory_note_use(items[i].src, stream, ticket, captured);
        if (!collective_is_message(items[i].task.operation))
            atomic_fetch_add(&comm_rank(comm, comm->rank)->collective, 1);
    }
    ggi_collective_note(comm->collective, stream, ticket);
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
    item->task.src = (*copy)->pointer;
    return status;
}

/* The library's failure, unless an argument was wrong, is the end of the communicator. */
static gg_status run_failed(struct gg_comm *comm, const char *name, gg_status status)
{
    if (status == GG_ERR_INTERRUPTED || status == GG_ERR_OUT_OF_MEMORY ||
        atomic_load(&comm->segment->failed))
        return status == GG_ERR_INTERRUPTED ? status : ggi_comm_state(comm);
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
        status = run_call_library(comm, items, count, stream);
        run_note(comm, items, count, stream); /* also if it failed: it may have begun */
        if (copy)
            ggi_memory_note_use(copy, stream, ggi_stream_submitted(stream),
                                ggi_stream_is_captured(stream));
        if (status)
            status = run_failed(comm, ggi_collective_names[items->task.operation], status);
    }
    gg_memory_release(copy);
    if (!status && (complete || atomic_load_explicit(&ggi_debug_sync, memory_order_relaxed)) &&
        !ggi_stream_is_captured(stream))
        status = ggi_stream_synchronize(stream, true);
    return status;
}
