/* queue.c: checks an operation of a communicator, and queues it on a stream. */
#include "base/sized.h"
#include "collective/collective.h"
#include "memory/memory.h"

#include <gpuglue/comm_device.h>

#include <string.h>

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

static size_t queue_dst_count(const struct gg_comm_task *task)
{
    return task->operation == GG_COMM_SEND_RECV ? task->dst_count : task->count;
}

/* ---- checks ---- */

static gg_status queue_check_memory(const struct gg_comm *comm, const char *name, const char *side,
                                    gg_memory *memory, size_t offset, size_t nbytes)
{
    const struct gg_device *device =
        ggi_collective_has_library(comm) ? comm->collective->device : NULL;
    if (!memory)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s of rank %d: %s is NULL", name, comm->rank,
                        side);
    if (device && memory->device != device)
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
    if (!ggi_collective_has_library(comm))
        return GG_OK; /* the host's reductions are checked where they begin */
    if ((average && work->type < GG_COMM_FLOAT16) ||
        !self->ops->reduces(work->type, work->reduction))
        return ggi_fail(
            GG_ERR_UNSUPPORTED, "%s: the transport '%s' has no '%s' of %s; convert the elements%s",
            name, self->transport, ggi_comm_reduction_name(work->reduction),
            ggi_comm_type_name(work->type),
            ggi_comm_can_reduce(work->type, work->reduction) ? ", or use the transport 'staged'"
                                                             : "");
    return GG_OK;
}

static gg_status queue_check_ranks(const struct gg_comm *comm, const struct gg_comm_work *work,
                                   const char *name)
{
    const bool message = collective_is_message(work->operation);
    const bool grouped =
        ggi_collective_has_library(comm) && ggi_collective_in_group(comm->collective);
    gg_status status = queue_check_rank(comm, name, message ? "the other rank" : "root", work->root);
    if (!status && work->operation == GG_COMM_SEND_RECV)
        return queue_check_rank(comm, name, "from", work->from);
    if (!status && message && !grouped && work->root == comm->rank)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s: %d is this rank; use send_recv to exchange with it", name, work->root);
    return status;
}

static gg_status queue_check_sizes(const struct gg_comm *comm, const struct gg_comm_work *work,
                                   struct collective_item *item)
{
    const struct gg_comm_task *task = &item->task;
    const struct queue_sides sides = queue_sides_of(comm, task);
    const char *name = ggi_collective_names[task->operation];
    const size_t unit = collective_unit(task), most = SIZE_MAX / 2 / GG_COMM_SIZE_MAX / 16;
    const size_t src_nbytes = sides.src * unit * task->count;
    const size_t dst_nbytes = sides.dst * unit * queue_dst_count(task);
    gg_status status = GG_OK;
    item->dst_nbytes = dst_nbytes;
    item->src_nbytes = src_nbytes;
    if (task->count > most || task->dst_count > most)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s of rank %d: %zu elements are too many", name,
                        comm->rank, task->count > most ? task->count : task->dst_count);
    if (sides.src && task->count && !work->src_host)
        status = queue_check_memory(comm, name, "src", item->src, work->src_offset, src_nbytes);
    if (!status && sides.dst && queue_dst_count(task) && !work->dst_host)
        status = queue_check_memory(comm, name, "dst", item->dst, work->dst_offset, dst_nbytes);
    return status;
}

/* In place: one address, or one side is this rank's block of the other. */
static gg_status queue_check_overlap(const struct gg_comm *comm, const struct collective_item *item)
{
    const struct gg_comm_task *task = &item->task;
    const struct queue_sides sides = queue_sides_of(comm, task);
    const size_t block = collective_unit(task) * task->count;
    const char *dst = task->dst, *src = task->src;
    if (!collective_overlap(dst, item->dst_nbytes, src, item->src_nbytes))
        return GG_OK;
    const bool in_place = sides.dst == sides.src
                              ? dst == src && !collective_is_message(task->operation)
                          : sides.dst > sides.src ? src == dst + (size_t)comm->rank * block
                                                  : dst == src + (size_t)comm->rank * block;
    if (in_place)
        return GG_OK;
    return ggi_fail(
        GG_ERR_INVALID_ARGUMENT,
        "%s: %zu bytes at the destination overlap %zu bytes at the source; give separate "
        "memory, or one that is in place",
        ggi_collective_names[task->operation], item->dst_nbytes, item->src_nbytes);
}

/* What a side that the rank does not use refers to is ignored. */
static gg_status queue_check(const struct gg_comm *comm, const struct gg_comm_work *work,
                             struct collective_item *item)
{
    if ((unsigned)work->operation >= COLLECTIVE_OPERATIONS)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_comm_queue: operation %d does not exist",
                        (int)work->operation);
    const char *name = ggi_collective_names[work->operation];
    gg_status status = queue_check_ranks(comm, work, name);
    if (!status && collective_reduces(work->operation))
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
    item->task.src = item->src ? (const char *)item->src->pointer + work->src_offset : NULL;
    return ggi_collective_has_library(comm) ? queue_check_overlap(comm, item) : GG_OK;
}

static gg_status queue_refuse_host(const struct gg_comm *comm)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: dst_host and src_host are for transports without a library, and this one "
                    "is '%s'",
                    comm->call, comm->collective->transport);
}

static bool queue_is_empty(const struct gg_comm_task *task)
{
    return !task->count && !queue_dst_count(task);
}

static const char *queue_name(const struct gg_comm_work *work)
{
    const bool known = (unsigned)work->operation < COLLECTIVE_OPERATIONS;
    return known ? ggi_collective_names[work->operation] : "gg_comm_queue";
}

static gg_status queue_run_library(gg_comm *comm, const struct gg_comm_work *work, gg_stream *stream)
{
    struct collective_item item;
    gg_status status = ggi_collective_enter(comm, queue_name(work));
    if (status)
        return status;
    status =
        work->dst_host || work->src_host ? queue_refuse_host(comm) : queue_check(comm, work, &item);
    if (!status && !queue_is_empty(&item.task))
        status = ggi_collective_in_group(comm->collective)
                     ? ggi_collective_group_add(comm->collective, &item, stream)
                     : ggi_collective_run(comm, &item, 1, stream);
    return ggi_comm_leave(comm, status);
}

/* The host's operations have their own checks of the communicator, and of what is in place. */
static gg_status queue_run_staged(gg_comm *comm, const struct gg_comm_work *work, gg_stream *stream)
{
    struct collective_item item;
    gg_status status = ggi_comm_check_process(comm, queue_name(work));
    if (!status)
        status = queue_check(comm, work, &item);
    if (status)
        return status;
    const struct queue_sides sides = queue_sides_of(comm, &item.task);
    if (sides.dst && work->dst_host) {
        item.dst = NULL;
        item.task.dst = work->dst_host;
    }
    if (sides.src && work->src_host) {
        item.src = NULL;
        item.task.src = work->src_host;
    }
    return ggi_collective_run_staged(comm, &item, stream);
}

gg_status gg_comm_queue(gg_comm *comm, const struct gg_comm_work *work, gg_stream *stream)
{
    const size_t first = GGI_SIZE_TO(struct gg_comm_work, from);
    struct gg_comm_work known = {.struct_size = sizeof known};
    if (!ggi_sized_fits(work, first))
        return ggi_sized_refuse("gg_comm_queue", "gg_comm_work", work, first);
    memcpy(&known, work, work->struct_size < sizeof known ? work->struct_size : sizeof known);
    return ggi_collective_has_library(comm) ? queue_run_library(comm, &known, stream)
                                            : queue_run_staged(comm, &known, stream);
}
