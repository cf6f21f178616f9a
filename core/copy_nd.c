/* copy_nd.c: the ways of a box. The device copies it itself where that takes few calls of long rows; else
 * its elements pass through pinned memory in pieces, which the host packs or spreads. */
#include "staging.h"

#include <stdlib.h>

#define FEW_CALLS 64u     /* which cost less than the host's work */
#define MOST_CALLS 65536u /* where the caller insists */
#define LONG_RUN 256u     /* bytes; copy engines are slow with shorter rows */
#define WASTE 4u          /* times the bytes that are read rather than picked out one by one */

/* ---- by the device ---- */

static size_t calls_of(const struct ggi_job *job, const struct ggi_box *box)
{
    struct ggi_tiling tiling;
    ggi_box_tile(box, box->axes && gg_device_supports(job->device, GG_OP_copy_region), &tiling);
    return tiling.calls;
}

static gg_status direct(struct ggi_job *job, enum gg_copy_kind kind)
{
    uint64_t ticket;
    bool early = job->flags & GG_COPY_ASYNC || kind == GG_COPY_D2D || job->capturing;
    gg_status status = ggi_submit(job, job->dst.pointer, job->src.pointer, job->box, kind, &ticket);
    if (!status && !early)
        status = ggi_stream_finish(job->stream, true);
    if (early || status)
        ggi_keep_owners(job, ticket);
    return status;
}

static gg_status too_many_calls(const struct ggi_job *job)
{
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "%s: these strides take more than %u copies of the device's own, or go through "
                    "the host: copy a contiguous array",
                    job->capturing ? "stream is capturing" : "copy: without waiting", MOST_CALLS);
}

/* ---- through pinned memory ---- */

void ggi_passage_make(struct ggi_passage *passage, struct ggi_job *job, enum gg_copy_kind kind)
{
    const enum ggi_side side = kind == GG_COPY_H2D ? GGI_DST : GGI_SRC;
    const struct ggi_box *box = job->box;
    ptrdiff_t strides[GG_COPY_MAX_DIMS];
    passage->job = job;
    passage->kind = kind;
    ggi_box_pack(box, true, side, passage->strides);
    for (int i = 0; i < box->axes; i++)
        strides[i] = side == GGI_DST ? box->axis[i].dst : box->axis[i].src;
    size_t packed = ggi_box_span(box, passage->strides, 0), span = ggi_box_span(box, strides, 0);
    passage->whole = kind == GG_COPY_D2H && span / WASTE <= packed &&
                     (box->run < LONG_RUN || calls_of(job, box) > FEW_CALLS);
    for (int i = 0; passage->whole && i < box->axes; i++)
        passage->strides[i] = strides[i];
}

void ggi_passage_piece(const struct ggi_passage *passage, const struct ggi_cut *cut, size_t index,
                       struct ggi_piece *piece)
{
    const struct ggi_job *job = passage->job;
    ptrdiff_t dst, src;
    ggi_cut_piece(cut, job->box, index, &piece->box, &dst, &src);
    piece->dst = job->dst.pointer + dst;
    piece->src = job->src.pointer + src;
    piece->strides = passage->strides + cut->axis;
}

/* One side of the piece becomes the slot. */
static void with_slot(const struct ggi_piece *piece, bool dst, struct ggi_box *box)
{
    box->run = piece->box.run;
    box->axes = piece->box.axes;
    for (int i = 0; i < box->axes; i++) {
        box->axis[i] = piece->box.axis[i];
        *(dst ? &box->axis[i].dst : &box->axis[i].src) = piece->strides[i];
    }
}

void ggi_piece_on_host(const struct ggi_passage *passage, const struct ggi_piece *piece,
                       struct ggi_box *box)
{
    with_slot(piece, passage->kind == GG_COPY_H2D, box);
}

gg_status ggi_piece_submit(const struct ggi_passage *passage, const struct ggi_piece *piece,
                           void *slot, uint64_t *ticket)
{
    const bool up = passage->kind == GG_COPY_H2D;
    ptrdiff_t no_shift;
    struct ggi_box box;
    with_slot(piece, !up, &box);
    if (passage->whole) {
        box.run = ggi_box_span(&piece->box, piece->strides, 0);
        box.axes = 0;
    }
    for (int i = 0; i < box.axes; i++) /* what stands still on the device is read once */
        if (!(up ? box.axis[i].dst : box.axis[i].src))
            box.axis[i].count = 1;
    ggi_box_order(&box, up ? GGI_DST : GGI_SRC, &no_shift, &no_shift);
    return ggi_submit(passage->job, up ? (void *)piece->dst : slot,
                      up ? (const char *)slot : piece->src, &box, passage->kind, ticket);
}

/* A piece through a slot of the ring. To the device it is queued, to the host waited for. */
static gg_status by_ring(const struct ggi_passage *passage, const struct ggi_piece *piece)
{
    const struct ggi_job *job = passage->job;
    struct ggi_slot *slot;
    struct ggi_box box;
    uint64_t ticket;
    bool up = passage->kind == GG_COPY_H2D;
    gg_status status = ggi_ring_take(job->device, &slot);
    if (status)
        return status;
    ggi_piece_on_host(passage, piece, &box);
    if (up)
        ggi_box_copy(slot->data, piece->src, &box);
    status = ggi_piece_submit(passage, piece, slot->data, &ticket);
    if (!status && !up)
        status = ggi_stream_finish(job->stream, true);
    if (!status && !up)
        ggi_box_copy(piece->dst, slot->data, &box);
    ggi_ring_give(job->device, slot, job->stream, status || up ? ticket : 0);
    return status;
}

static gg_status through_ring(const struct ggi_passage *passage)
{
    struct ggi_piece piece;
    struct ggi_cut cut;
    gg_status status = GG_OK;
    ggi_cut_make(&cut, passage->job->box, passage->strides, GGI_SLOT_SIZE);
    for (size_t i = 0; !status && i < cut.count; i++) {
        ggi_passage_piece(passage, &cut, i, &piece);
        status = by_ring(passage, &piece);
    }
    return status;
}

gg_status ggi_copy_through_host(struct ggi_job *job, enum gg_copy_kind kind)
{
    struct ggi_passage passage;
    const struct ggi_end *host = kind == GG_COPY_H2D ? &job->src : &job->dst;
    const bool large = job->nbytes > GGI_SLOT_SIZE;
    const bool shared = host->page_locked || host->memory; /* queued work may be using it */
    gg_status status = GG_OK;
    if (large || shared)
        status = ggi_stream_finish(job->stream, true);
    if (status)
        return status;
    ggi_passage_make(&passage, job, kind);
    status = large ? ggi_stage(&passage) : GG_NOT_READY;
    return status == GG_NOT_READY ? through_ring(&passage) : status;
}

/* ---- which way ---- */

static gg_status host_and_device(struct ggi_job *job, enum gg_copy_kind kind)
{
    struct ggi_end *host = kind == GG_COPY_H2D ? &job->src : &job->dst;
    bool insists = job->capturing || job->flags & GG_COPY_REQUIRE_ASYNC;
    bool queued = kind == GG_COPY_H2D && job->nbytes <= GGI_SLOT_SIZE && !job->capturing &&
                  !host->page_locked && !host->memory;
    size_t calls = calls_of(job, job->box);
    if (!host->page_locked && (job->capturing || (job->flags & GG_COPY_ASYNC && !queued)) &&
        !ggi_end_is_mixed(host))
        host->page_locked = ggi_driver_knows(job, host->pointer);
    if (job->capturing && !host->page_locked)
        return ggi_refuse_capture();
    if (job->flags & GG_COPY_REQUIRE_ASYNC &&
        (job->complete || (!queued && !(host->page_locked && job->flags & GG_COPY_ASYNC))))
        return ggi_refuse_waiting(job, host->page_locked);
    if (insists && !queued)
        return calls <= MOST_CALLS ? direct(job, kind) : too_many_calls(job);
    if (host->page_locked && calls <= FEW_CALLS &&
        (job->flags & GG_COPY_ASYNC || job->box->run >= LONG_RUN))
        return direct(job, kind);
    return ggi_copy_through_host(job, kind);
}

static gg_status half(struct ggi_job *job, struct ggi_end *dst, struct ggi_end *src, char *middle,
                      const ptrdiff_t *strides, bool up)
{
    struct ggi_job part = *job;
    struct ggi_box box = *job->box;
    ptrdiff_t dst_shift, src_shift;
    for (int i = 0; i < box.axes; i++)
        *(up ? &box.axis[i].src : &box.axis[i].dst) = strides[i];
    part.box = &box;
    part.dst = *dst;
    part.src = *src;
    if (up)
        part.src = (struct ggi_end){.end = src->end, .pointer = middle};
    else
        part.dst = (struct ggi_end){.end = dst->end, .pointer = middle};
    ggi_box_order(&box, up ? GGI_DST : GGI_SRC, &dst_shift, &src_shift);
    part.dst.pointer += dst_shift;
    part.src.pointer += src_shift;
    return ggi_copy_through_host(&part, up ? GG_COPY_H2D : GG_COPY_D2H);
}

static gg_status no_middle(const struct ggi_job *job)
{
    return ggi_fail(GG_ERR_OUT_OF_MEMORY, "copy: no %zu bytes of host memory on the way",
                    job->nbytes);
}

/* Down, and up again in the other order. */
static gg_status by_way_of_host(struct ggi_job *job)
{
    ptrdiff_t strides[GG_COPY_MAX_DIMS];
    char *middle = malloc(job->nbytes);
    if (!middle)
        return no_middle(job);
    ggi_box_pack(job->box, false, GGI_DST, strides);
    gg_status status = half(job, &job->dst, &job->src, middle, strides, false);
    if (!status)
        status = half(job, &job->dst, &job->src, middle, strides, true);
    free(middle);
    return status;
}

static gg_status on_device(struct ggi_job *job)
{
    bool insists = job->capturing || job->flags & GG_COPY_REQUIRE_ASYNC;
    size_t calls = calls_of(job, job->box);
    if (calls <= (insists ? MOST_CALLS : FEW_CALLS))
        return direct(job, GG_COPY_D2D);
    return insists ? too_many_calls(job) : by_way_of_host(job);
}

/* Neither end is on a device. */
static gg_status on_host(struct ggi_job *job)
{
    if (job->capturing)
        return ggi_refuse_capture();
    if (job->flags & GG_COPY_REQUIRE_ASYNC)
        return ggi_refuse_waiting(job, true);
    gg_status status = ggi_stream_finish(job->stream, true);
    if (!status)
        ggi_box_copy(job->dst.pointer, job->src.pointer, job->box);
    return status;
}

bool ggi_box_is_line(struct ggi_job *job)
{
    ptrdiff_t dst, src;
    bool down = job->src.device && !job->dst.device;
    ggi_box_order(job->box, down ? GGI_SRC : GGI_DST, &dst, &src);
    job->dst.pointer += dst;
    job->src.pointer += src;
    return !job->box->axes;
}

gg_status ggi_copy_box(struct ggi_job *job)
{
    if (ggi_box_is_line(job))
        return ggi_copy_flat(job);
    if (job->src.device && job->dst.device)
        return on_device(job);
    if (job->dst.device)
        return host_and_device(job, GG_COPY_H2D);
    return job->src.device ? host_and_device(job, GG_COPY_D2H) : on_host(job);
}

/* An end of one of the two, at its first element. */
static struct gg_end end_at(const struct ggi_end *end)
{
    return (struct gg_end){.memory = end->memory,
                           .offset = (size_t)(end->pointer - (char *)end->memory->pointer)};
}

gg_status ggi_copy_box_between(struct ggi_job *job)
{
    const struct ggi_box *box = job->box;
    const bool for_dst = job->stream && job->stream->device == job->dst.memory->device;
    ptrdiff_t to[GG_COPY_MAX_DIMS], from[GG_COPY_MAX_DIMS];
    size_t shape[GG_COPY_MAX_DIMS];
    struct gg_end dst = end_at(&job->dst), src = end_at(&job->src), middle = {0};
    if (job->flags & GG_COPY_REQUIRE_ASYNC)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "copy: elements that lie apart go through the host on their way to another "
                        "device, and the call waits for both; leave require_async out");
    for (int i = 0; i < box->axes; i++) {
        shape[i] = box->axis[i].count;
        to[i] = box->axis[i].dst;
        from[i] = box->axis[i].src;
    }
    middle.host = malloc(job->nbytes);
    if (!middle.host)
        return no_middle(job);
    gg_status status = gg_copy_nd(&middle, NULL, &src, from, box->axes, shape, box->run,
                                  for_dst ? NULL : job->stream, 0);
    if (!status)
        status = gg_copy_nd(&dst, to, &middle, NULL, box->axes, shape, box->run,
                            for_dst ? job->stream : NULL, 0);
    free(middle.host);
    return status;
}
