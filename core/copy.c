/* copy.c: one copy for every pair of ends and layouts: what is checked, what it waits for. Which way it
 * then goes is copy_flat.c's and copy_nd.c's. */
#include "copy.h"

#include <string.h>

/* ---- the ends ---- */

gg_status ggi_check_inside(const gg_memory *memory, const char *what, size_t offset,
                           const struct ggi_reach *reach)
{
    size_t below = (size_t)0 - (size_t)reach->low, above = (size_t)reach->high;
    if (!reach->low)
        return ggi_check_range(memory, what, offset, above);
    if (offset <= memory->nbytes && below <= offset && above <= memory->nbytes - offset)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: elements from %zu bytes before to %zu behind offset %zu do not fit into "
                    "the memory's %zu bytes",
                    what, below, above, offset, memory->nbytes);
}

static gg_status resolve(struct ggi_end *side, const struct gg_end *end, size_t nbytes,
                         const char *what)
{
    size_t offset = end->offset, low = (size_t)0 - (size_t)side->reach.low;
    gg_memory *memory = end->memory;
    side->end = end;
    if (!memory) {
        if (!end->host && nbytes)
            return ggi_fail(GG_ERR_INVALID_ARGUMENT, "copy: the %s is a NULL pointer", what);
        side->pointer = nbytes ? (char *)end->host + offset : NULL;
        side->found = memory =
            nbytes ? ggi_pinned_find(side->pointer - low, low + (size_t)side->reach.high, &offset)
                   : NULL;
        if (memory)
            offset += low;
    }
    if (!memory)
        return GG_OK;
    gg_status status = ggi_check_inside(memory, what, offset, &side->reach);
    if (status)
        return status;
    side->memory = memory;
    side->pointer = memory->pointer ? (char *)memory->pointer + offset : NULL;
    side->device = memory->kind == GG_MEMORY_DEVICE;
    side->page_locked = !side->device;
    return GG_OK;
}

static gg_status check_overlap(const struct ggi_job *job)
{
    uintptr_t dst = (uintptr_t)job->dst.pointer + (uintptr_t)job->dst.reach.low;
    uintptr_t src = (uintptr_t)job->src.pointer + (uintptr_t)job->src.reach.low;
    uintptr_t dst_end = (uintptr_t)job->dst.pointer + (uintptr_t)job->dst.reach.high;
    uintptr_t src_end = (uintptr_t)job->src.pointer + (uintptr_t)job->src.reach.high;
    if (job->dst.device != job->src.device ||
        (job->dst.device && job->dst.memory->device != job->src.memory->device))
        return GG_OK;
    if (dst_end <= src || src_end <= dst)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "copy: source and destination overlap (%zu bytes, %zu apart); copy through a "
                    "third block",
                    job->nbytes, (size_t)(dst > src ? dst - src : src - dst));
}

/* Where the copy runs: the source's device if it is on one. */
static gg_status choose_device(struct ggi_job *job)
{
    gg_memory *dst = job->dst.memory, *src = job->src.memory;
    gg_memory *at = job->src.device ? src : job->dst.device ? dst : src ? src : dst;
    if (!at && !job->nbytes)
        return GG_OK;
    if (!at)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "copy: both ends are ordinary host memory; use memcpy or NumPy");
    job->device = at->device;
    job->dst.page_locked &= !dst || dst->device->backend == at->device->backend;
    job->src.page_locked &= !src || src->device->backend == at->device->backend;
    return GG_OK;
}

static gg_status order(struct ggi_job *job)
{
    gg_status status = GG_OK;
    if (job->implicit && job->src.memory)
        status = ggi_memory_order(job->src.memory, job->stream);
    else if (job->src.memory)
        status = ggi_memory_enter(job->src.memory, job->stream);
    if (!status && job->implicit && job->dst.memory)
        status = ggi_memory_order(job->dst.memory, job->stream);
    else if (!status && job->dst.memory)
        status = ggi_memory_enter(job->dst.memory, job->stream);
    return status;
}

/* ---- queueing ---- */

static void mark_captured(struct ggi_job *job)
{
    if (job->src.memory)
        atomic_store(&job->src.memory->captured, 1);
    if (job->dst.memory)
        atomic_store(&job->dst.memory->captured, 1);
}

void ggi_count(struct ggi_job *job, uint64_t *ticket)
{
    *ticket = 0;
    if (job->capturing) {
        mark_captured(job);
        return;
    }
    *ticket = ggi_stream_submitted(job->stream);
    if (job->src.memory)
        ggi_memory_used(job->src.memory, job->stream, *ticket);
    if (job->dst.memory)
        ggi_memory_used(job->dst.memory, job->stream, *ticket);
    if (job->src.device && !job->dst.device)
        atomic_store_explicit(&job->stream->to_host, *ticket, memory_order_relaxed);
}

/* The two axes that one call takes, as the contract has them. */
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

static gg_status call(struct ggi_job *job, char *dst, const char *src, const struct ggi_box *box,
                      const struct ggi_tiling *tiling, enum gg_copy_kind kind)
{
    const struct gg_backend_ops *ops = job->device->ops;
    gg_stream *stream = job->stream;
    gg_status status;
    if (tiling->row < 0) {
        ggi_begin(job->device, GG_OP_copy, stream, box->run);
        status = ops->copy(stream->impl, dst, src, box->run, kind, false);
        return ggi_end(job->device, GG_OP_copy, stream, box->run, status);
    }
    struct gg_region region = region_of(box, tiling);
    size_t nbytes = region.width * region.height * region.depth;
    ggi_begin(job->device, GG_OP_copy_region, stream, nbytes);
    status = ops->copy_region(stream->impl, dst, src, &region, kind);
    return ggi_end(job->device, GG_OP_copy_region, stream, nbytes, status);
}

/* Steps to the next place of the axes that no call takes; false after the last. */
static bool step(const struct ggi_box *box, const struct ggi_tiling *tiling, size_t *index,
                 char **dst, const char **src)
{
    for (int i = box->axes; i-- > 0;) {
        const struct ggi_axis *axis = &box->axis[i];
        if (i == tiling->row || i == tiling->slice)
            continue;
        *dst += axis->dst;
        *src += axis->src;
        if (++index[i] < axis->count)
            return true;
        index[i] = 0;
        *dst -= (ptrdiff_t)axis->count * axis->dst;
        *src -= (ptrdiff_t)axis->count * axis->src;
    }
    return false;
}

gg_status ggi_submit(struct ggi_job *job, void *dst, const void *src, const struct ggi_box *box,
                     enum gg_copy_kind kind, uint64_t *ticket)
{
    size_t index[GG_COPY_MAX_DIMS] = {0};
    struct ggi_tiling tiling;
    char *to = dst;
    const char *from = src;
    ggi_box_tile(box, box->axes && gg_device_supports(job->device, GG_OP_copy_region), &tiling);
    gg_status status = call(job, to, from, box, &tiling, kind);
    while (!status && step(box, &tiling, index, &to, &from))
        status = call(job, to, from, box, &tiling, kind);
    ggi_count(job, ticket);
    return status;
}

void ggi_keep_owners(struct ggi_job *job, uint64_t ticket)
{
    const struct gg_end *ends[2] = {job->dst.end, job->src.end};
    gg_status status = GG_OK;
    for (int i = 0; i < 2; i++) {
        if (!ends[i]->release)
            continue;
        if (!status && job->capturing)
            status = ggi_device_keep(job->device, ends[i]->release, ends[i]->owner);
        else if (!status)
            status = ggi_stream_keep(job->stream, ticket, ends[i]->release, ends[i]->owner);
        if (status && !job->capturing) { /* no memory for the note: wait here instead */
            ggi_stream_finish(job->stream, false);
            ends[i]->release(ends[i]->owner);
        }
    }
    job->kept = true;
}

bool ggi_driver_knows(const struct ggi_job *job, const void *pointer)
{
    struct gg_pointer_info info = {.struct_size = sizeof info};
    struct ggi_own own;
    if (!job->device->ops->pointer_info)
        return false;
    ggi_own_begin(job->device, &own);
    gg_status status =
        job->device->ops->pointer_info(atomic_load(&job->device->impl), pointer, &info);
    ggi_own_end(job->device, &own);
    return !status && info.kind != GG_MEMORY_HOST;
}

bool ggi_end_is_mixed(const struct ggi_end *host)
{
    char *first = host->memory ? NULL : (char *)host->end->host + host->end->offset;
    return first && ggi_pinned_shares_page(first + host->reach.low,
                                           (size_t)(host->reach.high - host->reach.low));
}

gg_status ggi_refuse_waiting(const struct ggi_job *job, bool page_locked)
{
    const char *why = job->complete
                          ? "work without a stream is finished on this device when a call "
                            "returns: give a stream"
                      : page_locked ? "a copy that is not asynchronous waits: give a stream"
                                    : "their host memory is pageable: use pinned memory";
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "copy: %zu bytes cannot be copied without waiting, since %s; or leave "
                    "require_async out",
                    job->nbytes, why);
}

gg_status ggi_refuse_capture(void)
{
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "stream is capturing: only copies with page-locked memory can become part of a "
                    "graph; use pinned memory");
}

/* ---- the call ---- */

static gg_status run(struct ggi_job *job)
{
    job->capturing = ggi_stream_captures(job->stream);
    if (job->src.device && job->dst.device && job->complete && job->flags & GG_COPY_REQUIRE_ASYNC)
        return ggi_refuse_waiting(job, true);
    gg_status status = job->box ? ggi_copy_box(job) : ggi_copy_flat(job);
    if (!status && job->complete)
        status = ggi_stream_finish(job->stream, true);
    return status;
}

static bool between_devices(const struct ggi_job *job)
{
    return job->src.device && job->dst.device && job->src.memory->device != job->dst.memory->device;
}

static gg_status copy_between(struct ggi_job *job)
{
    struct ggi_crossing crossing = {.dst_end = job->dst.end,
                                    .src_end = job->src.end,
                                    .dst = job->dst.memory,
                                    .src = job->src.memory,
                                    .to = job->dst.pointer,
                                    .from = job->src.pointer,
                                    .nbytes = job->nbytes};
    if (job->box && job->nbytes && !ggi_box_is_line(job))
        return ggi_copy_box_between(job);
    gg_status status = ggi_copy_between(&crossing, job->stream, job->flags);
    job->kept = crossing.kept;
    return status;
}

static gg_status prepare(struct ggi_job *job, const struct gg_end *dst, const struct gg_end *src)
{
    gg_status status = resolve(&job->dst, dst, job->nbytes, "destination");
    if (!status)
        status = resolve(&job->src, src, job->nbytes, "source");
    if (!status)
        status = choose_device(job);
    if (!status && job->device && !between_devices(job))
        status = ggi_choose_stream(job->device, &job->stream, &job->implicit, &job->complete);
    return status;
}

static gg_status check_flags(uint32_t flags)
{
    if (flags & ~(uint32_t)(GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC | GG_COPY_FRESH))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "copy flags 0x%x hold an unknown bit",
                        (unsigned)flags);
    return GG_OK;
}

/* With @p status so far; whatever happens, the owners are let go and the references given back. */
static gg_status copy(struct ggi_job *job, gg_status status, const struct gg_end *dst,
                      const struct gg_end *src)
{
    if (!status)
        status = check_flags(job->flags);
    if (!status)
        status = prepare(job, dst, src);
    if (!status && between_devices(job)) {
        status = copy_between(job);
    } else if (!status && job->nbytes) {
        status = check_overlap(job);
        if (!status)
            status = order(job);
        if (!status)
            status = run(job);
    }
    if (!job->kept && dst->release)
        dst->release(dst->owner);
    if (!job->kept && src->release)
        src->release(src->owner);
    gg_memory_release(job->dst.found);
    gg_memory_release(job->src.found);
    return status;
}

gg_status gg_copy(const struct gg_end *dst, const struct gg_end *src, size_t nbytes,
                  gg_stream *stream, uint32_t flags)
{
    struct ggi_job job = {.nbytes = nbytes, .stream = stream, .flags = flags};
    job.dst.reach.high = job.src.reach.high = (ptrdiff_t)nbytes; /* read as a size_t again */
    return copy(&job, GG_OK, dst, src);
}

gg_status gg_copy_nd(const struct gg_end *dst, const ptrdiff_t *dst_strides,
                     const struct gg_end *src, const ptrdiff_t *src_strides, int32_t ndim,
                     const size_t *shape, size_t itemsize, gg_stream *stream, uint32_t flags)
{
    struct ggi_box box;
    struct ggi_job job = {.box = &box, .stream = stream, .flags = flags};
    gg_status status =
        ggi_box_make(&box, ndim, shape, dst_strides, src_strides, itemsize, &job.nbytes);
    if (!status && job.nbytes) {
        ggi_box_reach(&box, GGI_DST, &job.dst.reach);
        ggi_box_reach(&box, GGI_SRC, &job.src.reach);
    }
    return copy(&job, status, dst, src);
}
