/* copy.c: the public calls: checks both operands, chooses the stream and makes it wait for earlier work. */
#include "base/error.h"
#include "runtime/scope.h"
#include "memory/memory.h"
#include "transfer/copy_job.h"

#include <stdlib.h>

/* ---- the operands ---- */

static inline gg_status operand_resolve(struct ggi_copy_operand *operand, size_t nbytes,
                                        const char *what)
{
    const struct gg_copy_operand *given = operand->given;
    size_t offset = given->offset, low = (size_t)0 - (size_t)operand->reach.low;
    gg_memory *memory = given->memory;
    if (!memory) {
        if (!nbytes)
            return GG_OK;
        if (!given->host)
            return ggi_fail(GG_ERR_INVALID_ARGUMENT, "copy: the %s is a NULL pointer", what);
        operand->pointer = (char *)given->host + offset;
        memory = ggi_pinned_find(operand->pointer - low, low + (size_t)operand->reach.high, &offset);
        if (!memory)
            return GG_OK;
        operand->found = memory;
        offset += low;
    }
    gg_status status = ggi_copy_check_range(memory, what, offset, &operand->reach);
    if (status)
        return status;
    operand->memory = memory;
    operand->pointer = memory->pointer ? (char *)memory->pointer + offset : NULL;
    operand->device = memory->kind == GG_MEMORY_DEVICE;
    operand->pinned = !operand->device;
    return GG_OK;
}

static gg_status job_check_overlap(const struct ggi_copy_job *job)
{
    uintptr_t dst = (uintptr_t)job->dst.pointer + (uintptr_t)job->dst.reach.low;
    uintptr_t src = (uintptr_t)job->src.pointer + (uintptr_t)job->src.reach.low;
    uintptr_t dst_end = (uintptr_t)job->dst.pointer + (uintptr_t)job->dst.reach.high;
    uintptr_t src_end = (uintptr_t)job->src.pointer + (uintptr_t)job->src.reach.high;
    if (job->dst.device != job->src.device)
        return GG_OK;
    if (dst_end <= src || src_end <= dst)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "copy: source and destination overlap (%zu bytes, %zu apart); copy through a "
                    "third block",
                    job->nbytes, (size_t)(dst > src ? dst - src : src - dst));
}

/* Where the copy runs: the source's device if it is on one. */
static gg_status job_choose_device(struct ggi_copy_job *job)
{
    gg_memory *dst = job->dst.memory, *src = job->src.memory;
    gg_memory *at = job->src.device ? src : job->dst.device ? dst : src ? src : dst;
    if (!at && !job->nbytes)
        return GG_OK;
    if (!at)
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "copy: source and destination are both ordinary host memory; use memcpy or NumPy");
    job->device = at->device;
    if (job->src.device)
        job->kind = job->dst.device ? GG_COPY_D2D : GG_COPY_D2H;
    else if (job->dst.device)
        job->kind = GG_COPY_H2D;
    job->dst.pinned &= !dst || dst->device->backend == at->device->backend;
    job->src.pinned &= !src || src->device->backend == at->device->backend;
    return GG_OK;
}

static gg_status job_wait_memory(struct ggi_copy_job *job)
{
    gg_status status = GG_OK;
    if (job->src.memory)
        status = ggi_memory_wait_before_use(job->src.memory, job->stream, job->implicit);
    if (!status && job->dst.memory)
        status = ggi_memory_wait_before_use(job->dst.memory, job->stream, job->implicit);
    return status;
}

/* An upload to memory that was allocated on its stream, which other code may capture: it waits for nothing unless the stream is
 * captured. The query of the default stream finds captures of other streams. */
static bool job_is_ordered(const struct ggi_copy_job *job)
{
    const gg_memory *dst = job->dst.memory;
    return ggi_stream_is_capturable(job->stream) && !job->src.memory && !job->implicit &&
           !job->stream->is_default &&
           atomic_load_explicit(&dst->ready_ticket, memory_order_relaxed) &&
           dst->alloc_stream == job->stream;
}

/* One query then serves the memory and the copy. */
static gg_status job_wait_ordered(struct ggi_copy_job *job)
{
    job->capturing = ggi_stream_capturing(job->stream);
    if (job->capturing)
        return ggi_memory_wait_ready_slow(job->dst.memory, job->stream);
    atomic_store_explicit(&job->dst.memory->ready_waiter, job->stream->serial,
                          memory_order_relaxed); /* a later capture does not wait either */
    return GG_OK;
}

static gg_status job_wait(struct ggi_copy_job *job)
{
    if (job_is_ordered(job))
        return job_wait_ordered(job);
    const gg_status status = job_wait_memory(job);
    if (!status)
        job->capturing = ggi_stream_is_captured(job->stream);
    return status;
}

static bool job_has_two_devices(const struct ggi_copy_job *job)
{
    return job->kind == GG_COPY_D2D && job->src.memory->device != job->dst.memory->device;
}

static gg_status job_prepare(struct ggi_copy_job *job)
{
    gg_status status = operand_resolve(&job->dst, job->nbytes, "destination");
    if (!status)
        status = operand_resolve(&job->src, job->nbytes, "source");
    if (!status)
        status = job_choose_device(job);
    if (!status && job->device && !job_has_two_devices(job))
        status = ggi_choose_stream(job->device, &job->stream, &job->implicit, &job->complete);
    return status;
}

/* Put the axes of the box in order; it may turn out to be one line. */
static void job_order_axes(struct ggi_copy_job *job)
{
    ptrdiff_t dst, src;
    if (!job->box->axes)
        return;
    ggi_box_order(job->box, ggi_copy_device_side(job), &dst, &src);
    job->dst.pointer += dst;
    job->src.pointer += src;
}

/* ---- running it ---- */

/* The operand from its first element on. */
static struct gg_copy_operand operand_at_element(const struct ggi_copy_operand *operand)
{
    gg_memory *memory = operand->memory;
    return (struct gg_copy_operand){.memory = memory,
                                    .offset = (size_t)(operand->pointer - (char *)memory->pointer)};
}

/* From device memory to device memory through a bounce buffer: the host packs on the way down and unpacks on
 * the way up. Either stream may be NULL. */
static gg_status copy_through_bounce(struct ggi_copy_job *job, gg_stream *down, gg_stream *up)
{
    const struct ggi_box *box = job->box;
    struct gg_copy_operand dst = operand_at_element(&job->dst), src = operand_at_element(&job->src);
    struct gg_copy_operand bounce = {.host = ggi_bounce_alloc(job->nbytes)};
    ptrdiff_t to[GG_COPY_MAX_DIMS], from[GG_COPY_MAX_DIMS];
    size_t shape[GG_COPY_MAX_DIMS];
    if (!bounce.host)
        return GG_ERR_OUT_OF_MEMORY;
    for (int i = 0; i < box->axes; i++) {
        shape[i] = box->axis[i].count;
        to[i] = box->axis[i].dst;
        from[i] = box->axis[i].src;
    }
    gg_status status = gg_copy_nd(&bounce, NULL, &src, from, box->axes, shape, box->run, down, 0);
    if (!status)
        status = gg_copy_nd(&dst, to, &bounce, NULL, box->axes, shape, box->run, up, 0);
    free(bounce.host);
    return status;
}

static bool job_waits_for_result(const struct ggi_copy_job *job)
{
    return job->kind == GG_COPY_D2H && !(job->flags & (GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC));
}

static gg_status copy_within_device(struct ggi_copy_job *job)
{
    gg_status status = job_check_overlap(job);
    if (!status)
        status = job_wait(job);
    if (status)
        return status;
    job_order_axes(job);
    status = ggi_copy_run(job);
    if (status == GG_NOT_READY)
        status = copy_through_bounce(job, job->stream, job->stream);
    if (!status && job->complete)
        status = ggi_stream_synchronize(job->stream, true);
    ggi_drain_others(job->stream, job_waits_for_result(job));
    return status;
}

static gg_status copy_between_devices(struct ggi_copy_job *job)
{
    const bool for_dst = job->stream && job->stream->device == job->dst.memory->device;
    job_order_axes(job);
    if (!job->box->axes)
        return ggi_copy_devices(job);
    gg_status status = job->nbytes ? ggi_copy_devices_strided(job) : GG_OK;
    if (status != GG_NOT_READY)
        return status;
    if (job->flags & GG_COPY_REQUIRE_ASYNC)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "copy: a strided copy to another device goes through the host, and the "
                        "call waits for it; omit require_async");
    return copy_through_bounce(job, for_dst ? NULL : job->stream, for_dst ? job->stream : NULL);
}

/* ---- the calls ---- */

static gg_status check_flags(uint32_t flags)
{
    if (flags & ~(uint32_t)(GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC | GG_COPY_DST_UNTOUCHED))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "copy flags 0x%x contain an unknown bit",
                        (unsigned)flags);
    return GG_OK;
}

/* What the copy reads may be the result of an operation that was ended without one. */
static gg_status copy_check_source(struct ggi_copy_job *job)
{
    gg_memory *const memory = job->src.memory;
    if (!memory || !atomic_load_explicit(&ggi_memory_whole(memory)->result, memory_order_relaxed))
        return GG_OK;
    job->result = ggi_memory_result(memory);
    return ggi_memory_raise_result(memory, job->result);
}

/* The copy has waited: another thread may have got the stream's error meanwhile. */
static gg_status copy_check_result(const struct ggi_copy_job *job, gg_status status)
{
    if (!job->result || (status && status != GG_ERR_COMMUNICATOR))
        return status;
    if (!status)
        return ggi_memory_raise_result(job->src.memory, job->result);
    ggi_memory_forget_result(job->src.memory);
    return status;
}

/* @p status: of making the box. In every case the owners and the references are released. */
static gg_status copy(struct ggi_copy_job *job, gg_status status)
{
    const struct gg_copy_operand *dst = job->dst.given, *src = job->src.given;
    if (!status)
        status = check_flags(job->flags);
    if (!status)
        status = job_prepare(job);
    if (!status)
        status = copy_check_source(job);
    if (!status && job->dst.memory)
        ggi_memory_forget_result(job->dst.memory);
    if (!status && job_has_two_devices(job)) {
        status = copy_between_devices(job);
        ggi_drain_others(job->src.memory->device->default_stream, false);
        ggi_drain_others(job->dst.memory->device->default_stream, false);
    } else if (!status && job->nbytes)
        status = copy_within_device(job);
    if (job_waits_for_result(job))
        status = copy_check_result(job, status);
    if (!job->owners_kept && dst->release)
        dst->release(dst->owner);
    if (!job->owners_kept && src->release)
        src->release(src->owner);
    if (job->dst.found)
        gg_memory_release(job->dst.found);
    if (job->src.found)
        gg_memory_release(job->src.found);
    return status;
}

/* By parts: clearing the whole struct at once would cost more than all of this. */
static inline void job_begin(struct ggi_copy_job *job, struct ggi_box *box,
                             const struct gg_copy_operand *dst, const struct gg_copy_operand *src,
                             gg_stream *stream, uint32_t flags)
{
    job->dst = (struct ggi_copy_operand){.given = dst};
    job->src = (struct ggi_copy_operand){.given = src};
    job->box = box;
    job->kind = 0;
    job->result = 0;
    job->device = NULL;
    job->stream = stream;
    job->flags = flags;
    job->implicit = job->complete = job->capturing = job->owners_kept = false;
}

gg_status gg_copy(const struct gg_copy_operand *dst, const struct gg_copy_operand *src,
                  size_t nbytes, gg_stream *stream, uint32_t flags)
{
    struct ggi_box line;
    struct ggi_copy_job job;
    job_begin(&job, &line, dst, src, stream, flags);
    job.nbytes = line.run = nbytes;
    line.axes = 0;
    job.dst.reach.high = job.src.reach.high = (ptrdiff_t)nbytes; /* read as a size_t again */
    return copy(&job, GG_OK);
}

gg_status gg_copy_nd(const struct gg_copy_operand *dst, const ptrdiff_t *dst_strides,
                     const struct gg_copy_operand *src, const ptrdiff_t *src_strides, int32_t ndim,
                     const size_t *shape, size_t itemsize, gg_stream *stream, uint32_t flags)
{
    struct ggi_box box;
    struct ggi_copy_job job;
    job_begin(&job, &box, dst, src, stream, flags);
    gg_status status =
        ggi_box_make(&box, ndim, shape, dst_strides, src_strides, itemsize, &job.nbytes);
    if (!status && job.nbytes) {
        ggi_box_reach(&box, GGI_DST, &job.dst.reach);
        ggi_box_reach(&box, GGI_SRC, &job.src.reach);
    }
    return copy(&job, status);
}
