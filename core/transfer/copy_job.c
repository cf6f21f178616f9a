/* copy_job.c: submits a copy to the device, counts it, and keeps the owners of its operands. */
#include "base/error.h"
#include "memory/captured.h"
#include "transfer/copy_job.h"

#include <stdlib.h>

gg_status ggi_copy_check_range(const gg_memory *memory, const char *what, size_t offset,
                               const struct ggi_reach *reach)
{
    size_t below = (size_t)0 - (size_t)reach->low, above = (size_t)reach->high;
    if (offset <= memory->nbytes && below <= offset && above <= memory->nbytes - offset)
        return GG_OK;
    if (!below)
        return ggi_memory_check_range(memory, what, offset, above); /* its message is simpler */
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: elements from %zu bytes before to %zu after offset %zu do not fit into "
                    "the memory's %zu bytes",
                    what, below, above, offset, memory->nbytes);
}

void *ggi_bounce_alloc(size_t nbytes)
{
    void *buffer = malloc(nbytes);
    if (!buffer)
        ggi_fail(GG_ERR_OUT_OF_MEMORY,
                 "copy: cannot allocate %zu bytes of host memory for a bounce buffer", nbytes);
    return buffer;
}

/* ---- the calls ---- */

static void job_tile(const struct ggi_copy_job *job, const struct ggi_box *box,
                     struct ggi_tiling *out)
{
    ggi_box_tile(box, box->axes && gg_device_supports(job->device, GG_OP_copy_region), out);
}

size_t ggi_copy_calls(const struct ggi_copy_job *job, const struct ggi_box *box)
{
    struct ggi_tiling tiling;
    job_tile(job, box, &tiling);
    return tiling.calls;
}

/* The two axes that one call takes, as the backend contract describes them. */
static struct gg_region region_of(const struct ggi_box *box, const struct ggi_tiling *tiling)
{
    const struct ggi_axis *row = &box->axis[tiling->row];
    struct gg_region region = {.struct_size = sizeof region,
                               .width = box->run,
                               .height = row->count,
                               .depth = 1,
                               .dst_pitch = (size_t)row->dst,
                               .src_pitch = (size_t)row->src};
    if (tiling->slice >= 0) {
        const struct ggi_axis *slice = &box->axis[tiling->slice];
        region.depth = slice->count;
        region.dst_slice = (size_t)slice->dst;
        region.src_slice = (size_t)slice->src;
    }
    return region;
}

static gg_status region_call(struct ggi_copy_job *job, char *dst, const char *src,
                             const struct gg_region *region)
{
    const size_t nbytes = region->width * region->height * region->depth;
    return GGI_QUEUE(job->device, copy_region, job->stream, nbytes, dst, src, region, job->kind);
}

gg_status ggi_copy_submit_axes(struct ggi_copy_job *job, char *dst, const char *src,
                               const struct ggi_box *box)
{
    size_t index[GG_COPY_MAX_DIMS] = {0};
    struct ggi_tiling tiling;
    struct gg_region region;
    gg_status status = GG_OK;
    job_tile(job, box, &tiling);
    if (tiling.row >= 0)
        region = region_of(box, &tiling);
    do
        status = tiling.row >= 0 ? region_call(job, dst, src, &region)
                                 : ggi_copy_call(job->stream, dst, src, box->run, job->kind, false);
    while (!status && ggi_box_step(box, &tiling, index, &dst, &src));
    return status;
}

gg_status ggi_copy_submit(struct ggi_copy_job *job, void *dst, const void *src,
                          const struct ggi_box *box, uint64_t *ticket)
{
    gg_status status = box->axes ? ggi_copy_submit_axes(job, dst, src, box)
                                 : ggi_copy_call(job->stream, dst, src, box->run, job->kind, false);
    *ticket = ggi_copy_count(job);
    return status;
}

/* ---- after submission ---- */

uint64_t ggi_copy_count(struct ggi_copy_job *job)
{
    const bool pinned = job->kind == GG_COPY_D2H && job->dst.pinned;
    const uint64_t ticket = job->capturing ? 0
                            : pinned       ? ggi_copy_count_write(job->stream, job->dst.memory)
                                           : ggi_stream_counted(job->stream);
    if (job->src.memory)
        ggi_memory_note_use(job->src.memory, job->stream, ticket, !ticket);
    if (job->dst.memory)
        ggi_memory_note_use(job->dst.memory, job->stream, ticket, !ticket);
    if (ticket && job->src.device && !job->dst.device)
        atomic_store_explicit(&job->stream->to_host, ticket, memory_order_relaxed);
    return ticket;
}

void ggi_copy_keep_owner(const struct ggi_copy_operand *operand, gg_stream *stream, uint64_t ticket)
{
    const struct gg_copy_operand *given = operand->given;
    if (!given->release)
        return;
    const gg_status status =
        ticket ? ggi_stream_defer_release(stream, ticket, given->release, given->owner)
               : ggi_captured_keep_owner(stream, given->release, given->owner);
    if (!status || !ticket)
        return;
    ggi_stream_synchronize(stream, false); /* out of memory: wait here instead */
    given->release(given->owner);
}

void ggi_copy_keep_owners(struct ggi_copy_job *job, gg_stream *stream, uint64_t ticket)
{
    ggi_copy_keep_owner(&job->dst, stream, ticket);
    ggi_copy_keep_owner(&job->src, stream, ticket);
    job->owners_kept = true;
}
