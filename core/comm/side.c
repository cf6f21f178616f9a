/* side.c: what an operation reads and writes: memory that the processor can access, or what is behind a stage. */
#include "base/error.h"
#include "comm/comm.h"

gg_status ggi_comm_side_begin(const struct comm_side *side, struct gg_comm *comm, int32_t blocks,
                              size_t nbytes, size_t step, bool attach)
{
    struct comm_stage *stage = side->stage;
    const gg_status status = attach ? stage->attach(stage, comm, nbytes) : GG_NOT_READY;
    return status == GG_NOT_READY ? stage->begin(stage, comm, blocks, nbytes, step) : status;
}

gg_status ggi_comm_side_view(const struct comm_side *side, size_t block, size_t at, size_t nbytes,
                             struct comm_view *view)
{
    if (side->stage)
        return side->stage->view(side->stage, at, nbytes, view);
    *view = (struct comm_view){side->data + at, block};
    return GG_OK;
}

gg_status ggi_comm_side_check(const struct gg_comm *comm, const char *name,
                              const struct comm_side *side, size_t nbytes)
{
    if (!nbytes || side->data || side->stage)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s: %s is NULL, expected %zu bytes", comm->call, name,
                    nbytes);
}

static gg_status side_finish(const struct comm_side *side, gg_status status)
{
    const gg_status end = side->stage ? side->stage->finish(side->stage, status) : GG_OK;
    return status ? status : end;
}

gg_status ggi_comm_sides_finish(const struct comm_side *dst, const struct comm_side *src,
                                gg_status status)
{
    return side_finish(src, side_finish(dst, status));
}

gg_status ggi_comm_stage_failed(struct gg_comm *comm, gg_status status)
{
    if (status == GG_ERR_INTERRUPTED) {
        ggi_comm_mark(comm, comm->rank, COMM_ABORTED);
        ggi_comm_declare(comm);
    } else {
        ggi_comm_break(comm);
    }
    return status;
}
