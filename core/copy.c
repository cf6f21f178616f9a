/* copy.c: one copy for every pair of ends: what is checked, what it waits for, which way it goes. */
#include "internal.h"

#include <string.h>

/* An end, resolved. A host pointer into pinned memory of ours becomes that memory. */
struct side {
    const struct gg_end *end;
    gg_memory *memory; /* NULL: ordinary host memory */
    gg_memory *found;  /* the reference that ggi_pinned_find gave */
    char *pointer;
    bool device;      /* on a device */
    bool page_locked; /* host memory that the copy's device reaches by itself */
};

struct job {
    struct side dst, src;
    size_t nbytes;
    gg_device *device;
    gg_stream *stream;
    uint32_t flags;
    bool implicit; /* no stream was given */
    bool complete; /* must have finished on the device when the call returns */
    bool kept;     /* the ends' owners wait for a ticket */
};

/* ---- the ends ---- */

static gg_status resolve(struct side *side, const struct gg_end *end, size_t nbytes,
                         const char *what)
{
    size_t offset = end->offset;
    gg_memory *memory = end->memory;
    side->end = end;
    if (!memory) {
        if (!end->host && nbytes)
            return ggi_fail(GG_ERR_INVALID_ARGUMENT, "copy: the %s is a NULL pointer", what);
        side->pointer = nbytes ? (char *)end->host + offset : NULL;
        side->found = memory = nbytes ? ggi_pinned_find(side->pointer, nbytes, &offset) : NULL;
    }
    if (!memory)
        return GG_OK;
    gg_status status = ggi_check_range(memory, what, offset, nbytes);
    if (status)
        return status;
    side->memory = memory;
    side->pointer = memory->pointer ? (char *)memory->pointer + offset : NULL;
    side->device = memory->kind == GG_MEMORY_DEVICE;
    side->page_locked = !side->device;
    return GG_OK;
}

static gg_status check_overlap(const struct job *job)
{
    uintptr_t dst = (uintptr_t)job->dst.pointer, src = (uintptr_t)job->src.pointer;
    if (job->dst.device != job->src.device ||
        (job->dst.device && job->dst.memory->device != job->src.memory->device))
        return GG_OK;
    if (dst + job->nbytes <= src || src + job->nbytes <= dst)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "copy: source and destination overlap (%zu bytes, %zu apart); copy through a "
                    "third block",
                    job->nbytes, (size_t)(dst > src ? dst - src : src - dst));
}

/* Where the copy runs: the source's device if it is on one. */
static gg_status choose_device(struct job *job)
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

static gg_status order(struct job *job)
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

/* ---- one way or the other ---- */

static void mark_captured(struct job *job)
{
    if (job->src.memory)
        atomic_store(&job->src.memory->captured, 1);
    if (job->dst.memory)
        atomic_store(&job->dst.memory->captured, 1);
}

static void count(struct job *job, uint64_t *ticket)
{
    *ticket = ggi_stream_submitted(job->stream);
    if (job->src.memory)
        ggi_memory_used(job->src.memory, job->stream, *ticket);
    if (job->dst.memory)
        ggi_memory_used(job->dst.memory, job->stream, *ticket);
}

/* Queue it and count it. On a capturing stream nothing runs, so there is nothing to count. */
static gg_status submit(struct job *job, void *dst, const void *src, enum gg_copy_kind kind,
                        bool pageable, bool capturing, uint64_t *ticket)
{
    gg_stream *stream = job->stream;
    ggi_begin(job->device, GG_OP_copy, stream, job->nbytes);
    gg_status status = job->device->ops->copy(stream->impl, dst, src, job->nbytes, kind, pageable);
    status = ggi_end(job->device, GG_OP_copy, stream, job->nbytes, status);
    *ticket = 0;
    if (capturing) {
        mark_captured(job);
        return status;
    }
    count(job, ticket);
    if (kind == GG_COPY_D2H)
        atomic_store_explicit(&stream->to_host, *ticket, memory_order_relaxed);
    return status;
}

/* One aligned word needs no slot: drivers take its value with the command. */
static bool is_word(const struct job *job)
{
    size_t size = job->nbytes;
    bool fits = size == 1 || size == 2 || size == 4 || (size == 8 && job->device->writes_words);
    return fits && (uintptr_t)job->dst.pointer % size == 0;
}

static gg_status word_to_device(struct job *job)
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
    count(job, &ticket);
    return status;
}

/* Up to a slot: the source is free again after one memcpy. */
static gg_status through_ring_to_device(struct job *job)
{
    struct ggi_slot *slot;
    uint64_t ticket;
    gg_status status = ggi_ring_take(job->device, &slot);
    if (status)
        return status;
    memcpy(slot->data, job->src.pointer, job->nbytes);
    status = submit(job, job->dst.pointer, slot->data, GG_COPY_H2D, false, false, &ticket);
    ggi_ring_give(job->device, slot, job->stream, ticket);
    return status;
}

static gg_status through_ring_to_host(struct job *job)
{
    struct ggi_slot *slot;
    uint64_t ticket;
    gg_status status = ggi_ring_take(job->device, &slot);
    if (status)
        return status;
    status = submit(job, slot->data, job->src.pointer, GG_COPY_D2H, false, false, &ticket);
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

/* The vendor copies pageable memory when it likes, so the stream is waited for: first so that an
 * interrupt can still come, then, once the transfer has begun, to its end. */
static gg_status pageable_copy(struct job *job, enum gg_copy_kind kind)
{
    uint64_t ticket;
    gg_status status = ggi_stream_finish(job->stream, true);
    if (status)
        return status;
    status = submit(job, job->dst.pointer, job->src.pointer, kind, true, false, &ticket);
    gg_status finished = ggi_stream_settle(job->stream);
    return status ? status : finished;
}

/* The owners of the ends are needed until the ticket has passed; in a graph, which may run again, always. */
static void keep_owners(struct job *job, bool capturing, uint64_t ticket)
{
    const struct gg_end *ends[2] = {job->dst.end, job->src.end};
    gg_status status = GG_OK;
    for (int i = 0; i < 2; i++) {
        if (!ends[i]->release)
            continue;
        if (!status && capturing)
            status = ggi_device_keep(job->device, ends[i]->release, ends[i]->owner);
        else if (!status)
            status = ggi_stream_keep(job->stream, ticket, ends[i]->release, ends[i]->owner);
        if (status && !capturing) { /* no memory for the note: wait here instead */
            ggi_stream_finish(job->stream, false);
            ends[i]->release(ends[i]->owner);
        }
    }
    job->kept = true;
}

static gg_status direct_copy(struct job *job, enum gg_copy_kind kind, bool capturing)
{
    uint64_t ticket;
    gg_status status =
        submit(job, job->dst.pointer, job->src.pointer, kind, false, capturing, &ticket);
    bool early = job->flags & GG_COPY_ASYNC || kind == GG_COPY_D2D || capturing;
    if (!status && !early)
        status = ggi_stream_finish(job->stream, true);
    if (early || status) /* after a failed wait it may run yet */
        keep_owners(job, capturing, ticket);
    return status;
}

/* Neither end is on a device: wait for what still uses them, then it is a memcpy. */
static gg_status host_copy(struct job *job)
{
    if (job->flags & GG_COPY_REQUIRE_ASYNC)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "copy: the host itself copies between two host blocks, and waits for the "
                        "stream first; leave require_async out");
    gg_status status = ggi_stream_finish(job->stream, true);
    if (!status)
        memcpy(job->dst.pointer, job->src.pointer, job->nbytes);
    return status;
}

static bool driver_knows(struct job *job, const void *pointer)
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

static gg_status refuse_waiting(const struct job *job, bool page_locked)
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

static gg_status refuse_capture(void)
{
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "stream is capturing: only copies with page-locked memory can become part of a "
                    "graph; use pinned memory");
}

static gg_status host_and_device(struct job *job, enum gg_copy_kind kind, bool capturing)
{
    struct side *host = kind == GG_COPY_H2D ? &job->src : &job->dst;
    bool small = job->nbytes <= GGI_SLOT_SIZE;
    if (!host->page_locked && (capturing || job->flags & GG_COPY_ASYNC) &&
        !(small && kind == GG_COPY_H2D && !capturing))
        host->page_locked = driver_knows(job, host->pointer);
    if (capturing && !host->page_locked)
        return refuse_capture();
    bool queued = (kind == GG_COPY_H2D && small && !capturing) ||
                  (host->page_locked && job->flags & GG_COPY_ASYNC);
    if (job->flags & GG_COPY_REQUIRE_ASYNC && (!queued || job->complete))
        return refuse_waiting(job, host->page_locked);
    if (host->page_locked && (capturing || !small || host->memory || job->flags & GG_COPY_ASYNC))
        return direct_copy(job, kind, capturing);
    if (!small)
        return pageable_copy(job, kind);
    if (kind == GG_COPY_D2H)
        return through_ring_to_host(job);
    return is_word(job) ? word_to_device(job) : through_ring_to_device(job);
}

static gg_status run(struct job *job)
{
    bool capturing = !job->stream->is_default && ggi_stream_capturing(job->stream);
    gg_status status;
    bool on_device = job->src.device && job->dst.device;
    if (on_device && job->complete && job->flags & GG_COPY_REQUIRE_ASYNC)
        return refuse_waiting(job, true);
    if (on_device)
        status = direct_copy(job, GG_COPY_D2D, capturing);
    else if (job->dst.device)
        status = host_and_device(job, GG_COPY_H2D, capturing);
    else if (job->src.device)
        status = host_and_device(job, GG_COPY_D2H, capturing);
    else
        status = capturing ? refuse_capture() : host_copy(job);
    if (!status && job->complete)
        status = ggi_stream_finish(job->stream, true);
    return status;
}

static bool between_devices(const struct job *job)
{
    return job->src.device && job->dst.device && job->src.memory->device != job->dst.memory->device;
}

static gg_status copy_between(struct job *job)
{
    struct ggi_crossing crossing = {.dst_end = job->dst.end,
                                    .src_end = job->src.end,
                                    .dst = job->dst.memory,
                                    .src = job->src.memory,
                                    .to = job->dst.pointer,
                                    .from = job->src.pointer,
                                    .nbytes = job->nbytes};
    gg_status status = ggi_copy_between(&crossing, job->stream, job->flags);
    job->kept = crossing.kept;
    return status;
}

static gg_status prepare(struct job *job, const struct gg_end *dst, const struct gg_end *src)
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
    if (flags & ~(uint32_t)(GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "copy flags 0x%x hold an unknown bit",
                        (unsigned)flags);
    return GG_OK;
}

gg_status gg_copy(const struct gg_end *dst, const struct gg_end *src, size_t nbytes,
                  gg_stream *stream, uint32_t flags)
{
    struct job job = {.nbytes = nbytes, .stream = stream, .flags = flags};
    gg_status status = check_flags(flags);
    if (!status)
        status = prepare(&job, dst, src);
    if (!status && between_devices(&job)) {
        status = copy_between(&job);
    } else if (!status && nbytes) {
        status = check_overlap(&job);
        if (!status)
            status = order(&job);
        if (!status)
            status = run(&job);
    }
    if (!job.kept && dst->release)
        dst->release(dst->owner);
    if (!job.kept && src->release)
        src->release(src->owner);
    gg_memory_release(job.dst.found);
    gg_memory_release(job.src.found);
    return status;
}
