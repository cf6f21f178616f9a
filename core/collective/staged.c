/* staged.c: operations on device memory without a library of the vendor: on the host, behind a stage. */
#include "collective/collective.h"
#include "runtime/scope.h"

/* The stream's work is complete, and nothing is captured. */
static gg_status staged_settle(const char *name, gg_memory *memory, gg_stream *stream)
{
    bool implicit, complete;
    gg_status status =
        memory ? ggi_choose_stream(memory->device, &stream, &implicit, &complete) : GG_OK;
    if (status || !memory)
        return status;
    if (ggi_stream_is_captured(stream))
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "%s: without a library of the vendor the ranks exchange through the host, "
                        "which cannot be captured; call it after the capture",
                        name);
    return ggi_stream_synchronize(stream, true);
}

/* Memory of the host as it is, other memory behind the stage. */
static struct comm_side staged_side(void *address, gg_memory *memory, struct ggi_stage *stage)
{
    return (struct comm_side){.data = address, .stage = memory ? &stage->base : NULL};
}

static gg_status staged_exchange(struct gg_comm *comm, const struct gg_comm_task *task,
                                 struct comm_side dst, struct comm_side src)
{
    switch (task->operation) {
    case GG_COMM_SEND:
        return ggi_comm_send(comm, src, task->count, task->root);
    case GG_COMM_RECV:
        return ggi_comm_recv(comm, dst, task->count, task->root);
    case GG_COMM_SEND_RECV:
        return ggi_comm_send_recv(comm, src, task->count, task->root, dst, task->dst_count,
                                  task->from);
    case GG_COMM_ALL_REDUCE:
    case GG_COMM_REDUCE:
    case GG_COMM_REDUCE_SCATTER:
        return ggi_comm_reduce(comm, (enum comm_operation)(task->operation + 1), dst, src,
                               task->count, task->type, task->reduction, task->root);
    case GG_COMM_BROADCAST:
    case GG_COMM_ALL_GATHER:
    case GG_COMM_GATHER:
    case GG_COMM_SCATTER:
    case GG_COMM_ALL_TO_ALL:
        break;
    }
    return ggi_comm_move(comm, (enum comm_operation)(task->operation + 1), dst, src, task->count,
                         task->root);
}

gg_status ggi_collective_run_staged(struct gg_comm *comm, const struct collective_item *item,
                                    gg_stream *stream)
{
    const struct gg_comm_task *task = &item->task;
    const char *name = ggi_collective_names[task->operation];
    gg_memory *dst = item->dst, *src = item->src;
    struct ggi_stage out =
        ggi_stage_of(dst, dst ? (size_t)((char *)task->dst - (char *)dst->pointer) : 0, true);
    struct ggi_stage in = ggi_stage_of(
        src, src ? (size_t)((const char *)task->src - (const char *)src->pointer) : 0, false);
    gg_status status = staged_settle(name, src, stream);
    if (!status && (!src || !dst || src->device != dst->device))
        status = staged_settle(name, dst, stream);
    if (status)
        return status;
    return staged_exchange(comm, task, staged_side(task->dst, dst, &out),
                           staged_side((void *)(uintptr_t)task->src, src, &in));
}
