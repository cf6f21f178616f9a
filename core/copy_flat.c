/* copy_flat.c: the ways of bytes that lie in one line on both sides. */
#include "staging.h"

#include <string.h>

static gg_status submit(struct ggi_job *job, void *dst, const void *src, enum gg_copy_kind kind,
                        bool pageable, uint64_t *ticket)
{
    gg_stream *stream = job->stream;
    ggi_begin(job->device, GG_OP_copy, stream, job->nbytes);
    gg_status status = job->device->ops->copy(stream->impl, dst, src, job->nbytes, kind, pageable);
    status = ggi_end(job->device, GG_OP_copy, stream, job->nbytes, status);
    ggi_count(job, ticket);
    return status;
}

/* One aligned word needs no slot: drivers take its value with the command. */
static bool is_word(const struct ggi_job *job)
{
    size_t size = job->nbytes;
    bool fits = size == 1 || size == 2 || size == 4 || (size == 8 && job->device->writes_words);
    return fits && (uintptr_t)job->dst.pointer % size == 0;
}

static gg_status word_to_device(struct ggi_job *job)
{
    struct gg_stream_impl *stream = job->stream->impl;
    const struct gg_backend_ops *ops = job->device->ops;
    gg_op op = job->nbytes == 8 ? GG_OP_write_word : GG_OP_fill;
    uint64_t word = 0, ticket;
    uint32_t half;
    memcpy(&word, job->src.pointer, job->nbytes);
    memcpy(&half, &word, sizeof half); /* fill writes the low bytes first */
    ggi_begin(job->device, op, job->stream, job->nbytes);
    gg_status status = op == GG_OP_write_word
                           ? ops->write_word(stream, job->dst.pointer, word)
                           : ops->fill(stream, job->dst.pointer, half, (uint32_t)job->nbytes, 1);
    status = ggi_end(job->device, op, job->stream, job->nbytes, status);
    ggi_count(job, &ticket);
    return status;
}

/* Up to a slot: the source is free again after one memcpy. */
static gg_status through_ring_to_device(struct ggi_job *job)
{
    struct ggi_slot *slot;
    uint64_t ticket;
    gg_status status = ggi_ring_take(job->device, &slot);
    if (status)
        return status;
    memcpy(slot->data, job->src.pointer, job->nbytes);
    status = submit(job, job->dst.pointer, slot->data, GG_COPY_H2D, false, &ticket);
    ggi_ring_give(job->device, slot, job->stream, ticket);
    return status;
}

static gg_status through_ring_to_host(struct ggi_job *job)
{
    struct ggi_slot *slot;
    uint64_t ticket;
    gg_status status = ggi_ring_take(job->device, &slot);
    if (status)
        return status;
    status = submit(job, slot->data, job->src.pointer, GG_COPY_D2H, false, &ticket);
    if (!status) {
        status = ggi_ring_watch(job->device, slot, job->stream);
        if (status == GG_NOT_READY)
            status = ggi_stream_finish(job->stream, true);
    }
    if (!status)
        memcpy(job->dst.pointer, slot->data, job->nbytes);
    ggi_ring_give(job->device, slot, job->stream, status ? ticket : 0);
    return status;
}

static gg_status staged_copy(struct ggi_job *job, enum gg_copy_kind kind)
{
    struct ggi_box line = {.run = job->nbytes};
    struct ggi_passage passage;
    job->box = &line;
    ggi_passage_make(&passage, job, kind);
    gg_status status = ggi_stage(&passage);
    job->box = NULL;
    return status;
}

/* Without the driver seeing the caller's memory, however slow the way that is left. */
static gg_status mixed_copy(struct ggi_job *job, enum gg_copy_kind kind)
{
    struct ggi_box line = {.run = job->nbytes};
    job->box = &line;
    gg_status status = ggi_copy_through_host(job, kind);
    job->box = NULL;
    return status;
}

/* The vendor copies pageable memory when it likes, so the stream is waited for: first so that an
 * interrupt can still come, then, once the transfer has begun, to its end. */
static gg_status pageable_copy(struct ggi_job *job, enum gg_copy_kind kind)
{
    uint64_t ticket;
    bool staged = false;
    gg_status status = ggi_stream_finish(job->stream, true);
    if (!status)
        status = ggi_staging_pays(job, kind, &staged);
    if (status)
        return status;
    if (staged) {
        status = staged_copy(job, kind);
        if (status != GG_NOT_READY)
            return status;
    }
    status = submit(job, job->dst.pointer, job->src.pointer, kind, true, &ticket);
    gg_status finished = ggi_stream_settle(job->stream);
    return status ? status : finished;
}

static gg_status direct_copy(struct ggi_job *job, enum gg_copy_kind kind)
{
    uint64_t ticket;
    gg_status status = submit(job, job->dst.pointer, job->src.pointer, kind, false, &ticket);
    bool early = job->flags & GG_COPY_ASYNC || kind == GG_COPY_D2D || job->capturing;
    if (!status && !early)
        status = ggi_stream_finish(job->stream, true);
    if (early || status) /* after a failed wait it may run yet */
        ggi_keep_owners(job, ticket);
    return status;
}

/* Neither end is on a device: wait for what still uses them, then it is a memcpy. */
static gg_status host_copy(struct ggi_job *job)
{
    if (job->capturing)
        return ggi_refuse_capture();
    if (job->flags & GG_COPY_REQUIRE_ASYNC)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "copy: the host itself copies between two host blocks, and waits for the "
                        "stream first; leave require_async out");
    gg_status status = ggi_stream_finish(job->stream, true);
    if (!status)
        memcpy(job->dst.pointer, job->src.pointer, job->nbytes);
    return status;
}

static gg_status host_and_device(struct ggi_job *job, enum gg_copy_kind kind)
{
    struct ggi_end *host = kind == GG_COPY_H2D ? &job->src : &job->dst;
    const bool small = job->nbytes <= GGI_SLOT_SIZE, capturing = job->capturing;
    const bool may_be_locked = !host->page_locked && (capturing || job->flags & GG_COPY_ASYNC) &&
                               !(small && kind == GG_COPY_H2D && !capturing);
    const bool mixed = (may_be_locked || !small) && ggi_end_is_mixed(host);
    if (may_be_locked && !mixed)
        host->page_locked = ggi_driver_knows(job, host->pointer);
    if (capturing && !host->page_locked)
        return ggi_refuse_capture();
    bool foreign =
        host->memory && !host->page_locked; /* pinned by another backend, perhaps in use */
    bool queued = (kind == GG_COPY_H2D && small && !capturing && !foreign) ||
                  (host->page_locked && job->flags & GG_COPY_ASYNC);
    if (job->flags & GG_COPY_REQUIRE_ASYNC && (!queued || job->complete))
        return ggi_refuse_waiting(job, host->page_locked);
    if (host->page_locked && (capturing || !small || host->memory || job->flags & GG_COPY_ASYNC))
        return direct_copy(job, kind);
    if (!small)
        return mixed ? mixed_copy(job, kind) : pageable_copy(job, kind);
    gg_status status = foreign ? ggi_stream_finish(job->stream, true) : GG_OK;
    if (status)
        return status;
    if (kind == GG_COPY_D2H)
        return through_ring_to_host(job);
    return is_word(job) ? word_to_device(job) : through_ring_to_device(job);
}

gg_status ggi_copy_flat(struct ggi_job *job)
{
    if (job->src.device && job->dst.device)
        return direct_copy(job, GG_COPY_D2D);
    if (job->dst.device)
        return host_and_device(job, GG_COPY_H2D);
    return job->src.device ? host_and_device(job, GG_COPY_D2H) : host_copy(job);
}
