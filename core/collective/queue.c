/* queue.c: checks an operation of a communicator, and queues it on a stream. */
#include "base/sized.h"
#include "collective/collective.h"
#include "memory/uses.h"
#include "runtime/call.h"
#include "runtime/scope.h"

#include <gpuglue/comm_device.h>
#include <gpuglue/copy.h>

#include <stdlib.h>
#include <string.h>

static const char *const queue_names[] = {[GG_COMM_BROADCAST] = "broadcast",
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

static bool queue_reduces(gg_comm_operation operation)
{
    return operation == GG_COMM_ALL_REDUCE || operation == GG_COMM_REDUCE ||
           operation == GG_COMM_REDUCE_SCATTER;
}
static bool queue_is_message(gg_comm_operation operation)
{
    return operation >= GG_COMM_SEND;
}

/* ---- what an operation reads and writes on this rank ---- */

struct queue_sides {
    size_t dst, src; /* blocks; 0: none */
};

static struct queue_sides queue_sides_of(const struct gg_comm *comm, const struct gg_comm_task *task)
{
    const size_t all = (size_t)comm->size, at_root = comm->rank == task->root;
    switch (task->operation) {
    case GG_COMM_BROADCAST:
        return (struct queue_sides){1, at_root};
    case GG_COMM_ALL_GATHER:
        return (struct queue_sides){all, 1};
    case GG_COMM_GATHER:
        return (struct queue_sides){at_root ? all : 0, 1};
    case GG_COMM_SCATTER:
        return (struct queue_sides){1, at_root ? all : 0};
    case GG_COMM_ALL_TO_ALL:
        return (struct queue_sides){all, all};
    case GG_COMM_REDUCE:
        return (struct queue_sides){at_root, 1};
    case GG_COMM_REDUCE_SCATTER:
        return (struct queue_sides){1, all};
    case GG_COMM_SEND:
        return (struct queue_sides){0, 1};
    case GG_COMM_RECV:
        return (struct queue_sides){1, 0};
    case GG_COMM_ALL_REDUCE:
    case GG_COMM_SEND_RECV:
        break;
    }
    return (struct queue_sides){1, 1};
}

static size_t queue_unit(const struct gg_comm_task *task)
{
    if (!queue_reduces(task->operation))
        return 1;
    return task->type < COMM_TYPES ? ggi_comm_type_sizes[task->type] : 1;
}

static size_t queue_dst_count(const struct gg_comm_task *task)
{
    return task->operation == GG_COMM_SEND_RECV ? task->dst_count : task->count;
}

/* ---- checks ---- */

static gg_status queue_check_memory(const struct gg_comm *comm, const char *name, const char *side,
                                    gg_memory *memory, size_t offset, size_t nbytes)
{
    struct gg_device *device = comm->collective->device;
    if (!memory)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s of rank %d: %s is NULL", name, comm->rank,
                        side);
    if (memory->device != device)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s of rank %d: %s is on %s:%d, expected the communicator's device %s:%d",
                        name, comm->rank, side, memory->device->backend->name,
                        (int)memory->device->ordinal, device->backend->name, (int)device->ordinal);
    return ggi_memory_check_range(memory, name, offset, nbytes);
}

static gg_status queue_check_rank(const struct gg_comm *comm, const char *name, const char *what,
                                  int32_t rank)
{
    if (rank >= 0 && rank < comm->size)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s: %s is %d, expected a rank: 0 to %d", name, what,
                    rank, comm->size - 1);
}

static gg_status queue_check_reduction(const struct gg_comm *comm, const struct gg_comm_work *work,
                                       const char *name)
{
    const struct ggi_collective *self = comm->collective;
    const bool average = work->reduction == GG_COMM_AVG;
    if ((unsigned)work->type > GG_COMM_FLOAT8_E5M2 || (unsigned)work->reduction > GG_COMM_AVG)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s: type %d, reduction %d: expected a gg_comm_type and a "
                        "gg_comm_reduction",
                        name, (int)work->type, (int)work->reduction);
    if ((average && work->type < GG_COMM_FLOAT16) ||
        !self->ops->reduces(work->type, work->reduction))
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "%s: the transport '%s' has no reduction %d of elements of type %d (int16, "
                        "uint16, products of complex numbers, averages of integers, and in old "
                        "versions 8-bit floats); convert them, or use the transport 'staged'",
                        name, self->transport, (int)work->reduction, (int)work->type);
    return GG_OK;
}

static gg_status queue_check_ranks(const struct gg_comm *comm, const struct gg_comm_work *work,
                                   const char *name)
{
    const bool message = queue_is_message(work->operation);
    gg_status status = queue_check_rank(comm, name, message ? "the other rank" : "root", work->root);
    if (!status && work->operation == GG_COMM_SEND_RECV)
        return queue_check_rank(comm, name, "from", work->from);
    if (!status && message && work->root == comm->rank)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s: %d is this rank; use send_recv to exchange with it", name, work->root);
    return status;
}

static gg_status queue_check_sizes(const struct gg_comm *comm, const struct gg_comm_work *work,
                                   const struct collective_item *item)
{
    const struct gg_comm_task *task = &item->task;
    const struct queue_sides sides = queue_sides_of(comm, task);
    const char *name = queue_names[task->operation];
    const size_t unit = queue_unit(task), most = SIZE_MAX / 2 / GG_COMM_SIZE_MAX / 16;
    gg_status status = GG_OK;
    if (task->count > most || task->dst_count > most)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s of rank %d: %zu elements are too many", name,
                        comm->rank, task->count > most ? task->count : task->dst_count);
    if (sides.src && task->count)
        status = queue_check_memory(comm, name, "src", item->src, work->src_offset,
                                    sides.src * unit * task->count);
    if (!status && sides.dst && queue_dst_count(task))
        status = queue_check_memory(comm, name, "dst", item->dst, work->dst_offset,
                                    sides.dst * unit * queue_dst_count(task));
    return status;
}

/* In place: one address, or one side is this rank's block of the other. */
static gg_status queue_check_overlap(const struct gg_comm *comm, const struct gg_comm_task *task)
{
    const struct queue_sides sides = queue_sides_of(comm, task);
    const size_t unit = queue_unit(task), block = unit * task->count;
    const char *dst = task->dst, *src = task->src;
    const size_t dst_size = sides.dst * unit * queue_dst_count(task), src_size = sides.src * block;
    if (!dst || !src || !dst_size || !src_size || src >= dst + dst_size || dst >= src + src_size)
        return GG_OK;
    const bool in_place = sides.dst == sides.src  ? dst == src && !queue_is_message(task->operation)
                          : sides.dst > sides.src ? src == dst + (size_t)comm->rank * block
                                                  : dst == src + (size_t)comm->rank * block;
    if (in_place)
        return GG_OK;
    return ggi_fail(
        GG_ERR_INVALID_ARGUMENT,
        "%s: %zu bytes at the destination overlap %zu bytes at the source; give separate "
        "memory, or one that is in place",
        queue_names[task->operation], dst_size, src_size);
}

/* What a side that the rank does not use refers to is ignored. */
static gg_status queue_check(const struct gg_comm *comm, const struct gg_comm_work *work,
                             struct collective_item *item)
{
    if ((unsigned)work->operation >= COLLECTIVE_OPERATIONS)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_comm_queue: operation %d does not exist",
                        (int)work->operation);
    const char *name = queue_names[work->operation];
    gg_status status = queue_check_ranks(comm, work, name);
    if (!status && queue_reduces(work->operation))
        status = queue_check_reduction(comm, work, name);
    if (status)
        return status;
    *item = (struct collective_item){.task = {.struct_size = sizeof item->task,
                                              .operation = work->operation,
                                              .count = work->count,
                                              .dst_count = work->dst_count,
                                              .type = work->type,
                                              .reduction = work->reduction,
                                              .root = work->root,
                                              .from = work->from}};
    const struct queue_sides sides = queue_sides_of(comm, &item->task);
    item->dst = sides.dst ? work->dst : NULL;
    item->src = sides.src ? work->src : NULL;
    status = queue_check_sizes(comm, work, item);
    if (status)
        return status;
    item->task.dst = item->dst ? (char *)item->dst->pointer + work->dst_offset : NULL;
    item->task.src = item->src ? (char *)item->src->pointer + work->src_offset : NULL;
    return queue_check_overlap(comm, &item->task);
}

/* ---- the first call of a kind may wait for other ranks, while the library connects them ---- */

static uint64_t queue_size_bit(size_t count)
{
    return UINT64_C(1) << (count ? 63 - __builtin_clzll((unsigned long long)count) : 0);
}

static bool queue_set_peer(uint8_t *bits, int32_t rank)
{
    const uint8_t bit = (uint8_t)(1u << rank % 8);
    const bool known = bits[rank / 8] & bit;
    bits[rank / 8] |= bit;
    return known;
}

/* Whether such an operation was called before; it counts as one from now on. */
static bool queue_is_known(struct ggi_collective *self, const struct gg_comm_task *task)
{
    bool known = true;
    if (queue_is_message(task->operation)) {
        if (task->operation != GG_COMM_RECV)
            known = queue_set_peer(self->peers[0], task->root);
        if (task->operation != GG_COMM_SEND)
            known = queue_set_peer(self->peers[1],
                                   task->operation == GG_COMM_RECV ? task->root : task->from) &&
                    known;
        self->last_peer = task->root;
        return known;
    }
    uint64_t *sizes = &self->connected[task->operation];
    const uint64_t bit = queue_size_bit(task->count * queue_unit(task));
    known = *sizes & bit;
    *sizes |= bit;
    return known;
}

struct queue_call {
    struct collective_call call;
    struct ggi_collective *self;
    struct gg_stream_impl *stream;
    size_t count;
    struct gg_comm_task tasks[];
};

static gg_status queue_run_call(struct collective_call *call)
{
    struct queue_call *own = (struct queue_call *)(void *)call;
    return own->self->ops->run(own->self->impl, own->stream, own->tasks, own->count);
}

static void queue_call_left(struct collective_call *call)
{
    free(call);
}

static gg_status queue_run_guarded(struct gg_comm *comm, struct gg_stream *stream,
                                   const struct gg_comm_task *tasks, size_t count)
{
    bool left;
    struct queue_call *own = calloc(1, sizeof *own + count * sizeof *tasks);
    if (!own)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory for %zu operations", count);
    own->call.run = queue_run_call;
    own->call.abandoned = queue_call_left;
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

static gg_status queue_call_library(struct gg_comm *comm, const struct collective_item *items,
                                    size_t count, gg_stream *stream)
{
    struct ggi_collective *self = comm->collective;
    struct gg_comm_task one, *tasks = &one;
    bool known = true;
    if (count > 1 && !(tasks = malloc(count * sizeof *tasks)))
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory for %zu operations", count);
    for (size_t i = 0; i < count; i++) {
        tasks[i] = items[i].task;
        known = queue_is_known(self, &tasks[i]) && known;
    }
    atomic_fetch_add(&self->calls, 1);
    const gg_status status = known || stream->of_thread || comm->size == 1
                                 ? self->ops->run(self->impl, stream->impl, tasks, count)
                                 : queue_run_guarded(comm, stream, tasks, count);
    atomic_fetch_sub(&self->calls, 1);
    if (tasks != &one)
        free(tasks);
    return status;
}

static void queue_note(struct gg_comm *comm, const struct collective_item *items, size_t count,
                       gg_stream *stream)
{
    const bool captured = ggi_stream_is_captured(stream);
    const uint64_t ticket = captured ? 0 : ggi_stream_submitted(stream);
    for (size_t i = 0; i < count; i++) {
        if (items[i].dst)
            ggi_memory_note_use(items[i].dst, stream, ticket, captured);
        if (items[i].src && items[i].src != items[i].dst)
            ggi_memory_note_use(items[i].src, stream, ticket, captured);
        if (!queue_is_message(items[i].task.operation))
            atomic_fetch_add(&comm_rank(comm, comm->rank)->collective, 1);
    }
    ggi_collective_note(comm->collective, stream, ticket);
}

static gg_status queue_wait(const struct collective_item *items, size_t count, gg_stream *stream,
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
static gg_status queue_separate(struct collective_item *item, gg_stream *stream, gg_memory **copy)
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
static gg_status queue_failed(struct gg_comm *comm, const char *name, gg_status status)
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
        status = queue_wait(items, count, stream, implicit);
    if (!status && count == 1 && items->task.operation == GG_COMM_ALL_TO_ALL &&
        items->task.dst == items->task.src) {
        items->task.from = comm->size;
        status = queue_separate(items, stream, &copy);
    }
    if (!status) {
        status = queue_call_library(comm, items, count, stream);
        queue_note(comm, items, count, stream); /* also if it failed: it may have begun */
        if (copy)
            ggi_memory_note_use(copy, stream, ggi_stream_submitted(stream),
                                ggi_stream_is_captured(stream));
        if (status)
            status = queue_failed(comm, queue_names[items->task.operation], status);
    }
    gg_memory_release(copy);
    if (!status && (complete || atomic_load_explicit(&ggi_debug_sync, memory_order_relaxed)) &&
        !ggi_stream_is_captured(stream))
        status = ggi_stream_synchronize(stream, true);
    return status;
}

gg_status ggi_collective_enter(struct gg_comm *comm, const char *call)
{
    const struct ggi_collective *self = comm->collective;
    gg_status status = ggi_comm_check_process(comm, call);
    if (status)
        return status;
    if (!self || !self->impl)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "%s: the transport '%s' has no operations on device memory: copy to the "
                        "host, or create the communicator with a device%s%s",
                        call, gg_comm_transport(comm), self && self->reason[0] ? "; " : "",
                        self ? self->reason : "");
    if (self->closing)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s: the device's operations were closed", call);
    if (atomic_exchange(&comm->busy, true))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s: another thread is in an operation of this communicator; call one at a "
                        "time, or give each thread a communicator of its own",
                        call);
    comm->call = call;
    status = ggi_comm_state(comm);
    return status ? ggi_comm_leave(comm, status) : GG_OK;
}

static bool queue_is_empty(const struct gg_comm_task *task)
{
    return !task->count && !queue_dst_count(task);
}

gg_status gg_comm_queue(gg_comm *comm, const struct gg_comm_work *work, gg_stream *stream)
{
    const size_t first = GGI_SIZE_TO(struct gg_comm_work, from);
    struct collective_item item;
    if (!ggi_sized_fits(work, first))
        return ggi_sized_refuse("gg_comm_queue", "gg_comm_work", work, first);
    gg_status status = ggi_collective_enter(comm, "gg_comm_queue");
    if (status)
        return status;
    if ((unsigned)work->operation < COLLECTIVE_OPERATIONS)
        comm->call = queue_names[work->operation];
    status = queue_check(comm, work, &item);
    if (!status && !queue_is_empty(&item.task))
        status = ggi_collective_in_group(comm->collective)
                     ? ggi_collective_group_add(comm->collective, &item, stream)
                     : ggi_collective_run(comm, &item, 1, stream);
    return ggi_comm_leave(comm, status);
}
