/* copy_path.c: how a copy between two operands is done: path_choose decides, ggi_copy_run does it. */
#include "base/error.h"
#include "runtime/call.h"
#include "memory/memory.h"
#include "transfer/ring.h"
#include "transfer/staging.h"

#include <string.h>

#define RING_LINE ((size_t)2 * GGI_SLOT_SIZE)
static const struct ggi_box one_slot = {.run = GGI_SLOT_SIZE};

/* docs/architecture.md has the table: when each is taken, and what the host waits for. */
enum path {
    PATH_WORD,           /* one aligned word, whose value is part of the command */
    PATH_RING,           /* through one slot of the pinned ring */
    PATH_DIRECT,         /* the device copies between the two operands */
    PATH_VENDOR,         /* the driver's copy of pageable memory, or staged where that is faster */
    PATH_STAGED,         /* in chunks through pinned memory, which the host packs and unpacks */
    PATH_BOUNCE,         /* within one device: to a bounce buffer on the host, and back */
    PATH_HOST,           /* the host copies between two host blocks */
    PATH_REFUSE_CAPTURE, /* this and all below are errors */
    PATH_REFUSE_WAITING,
    PATH_REFUSE_HOST,
    PATH_REFUSE_CALLS
};

/* ---- which path ---- */

/* Whether some of its pages are pinned for other memory: drivers refuse such a range. */
static bool operand_is_mixed(const struct ggi_copy_operand *host)
{
    char *first = host->memory ? NULL : (char *)host->given->host + host->given->offset;
    return first && ggi_pinned_shares_page(first + host->reach.low,
                                           (size_t)(host->reach.high - host->reach.low));
}

/* Whether the driver knows it, or has pinned a part of it. */
static bool operand_is_shared(const struct ggi_copy_operand *host, struct gg_device *device)
{
    struct gg_device_impl *impl = atomic_load(&device->impl);
    struct gg_pointer_info info;
    struct ggi_internal_scope own;
    int32_t known = 0;
    if (host->shared || operand_is_mixed(host))
        return true;
    if (device->ops->pointer_known && !device->ops->pointer_known(impl, host->pointer, &known))
        return known;
    if (!device->ops->pointer_info)
        return false;
    info = (struct gg_pointer_info){.struct_size = sizeof info};
    ggi_internal_begin(device, &own);
    gg_status status = device->ops->pointer_info(impl, host->pointer, &info);
    ggi_internal_end(device, &own);
    return !status && info.kind != GG_MEMORY_HOST;
}

/* One aligned word needs no slot: its value is an argument of the driver call. */
static bool path_is_word(const struct ggi_copy_job *job)
{
    const size_t size = job->nbytes, largest = job->device->writes_words ? 8 : 4;
    const bool power_of_two = (size & (size - 1)) == 0;
    return size <= largest && power_of_two && ((uintptr_t)job->dst.pointer & (size - 1)) == 0;
}

/* The device reaches both operands. @p worthwhile: its rows are long enough for the copy engine. */
static enum path path_choose_by_calls(const struct ggi_copy_job *job, bool worthwhile,
                                      enum path otherwise)
{
    if (!job->box->axes)
        return PATH_DIRECT;
    const size_t calls = ggi_copy_calls(job, job->box);
    if (job->capturing || job->flags & GG_COPY_REQUIRE_ASYNC)
        return calls <= GGI_COPY_CALLS_MOST ? PATH_DIRECT : PATH_REFUSE_CALLS;
    return worthwhile && calls <= GGI_COPY_CALLS_FEW ? PATH_DIRECT : otherwise;
}

static enum path path_choose_on_device(const struct ggi_copy_job *job)
{
    if (job->flags & GG_COPY_REQUIRE_ASYNC && job->complete)
        return PATH_REFUSE_WAITING;
    return path_choose_by_calls(job, true, PATH_BOUNCE);
}

static enum path path_choose_on_host(const struct ggi_copy_job *job)
{
    if (job->capturing)
        return PATH_REFUSE_CAPTURE;
    return job->flags & GG_COPY_REQUIRE_ASYNC ? PATH_REFUSE_HOST : PATH_HOST;
}

/* Whether queued work may write to the host's memory, which an upload that need not wait would read before that. */
static bool path_has_writers(const struct ggi_copy_job *job, const struct ggi_copy_operand *host)
{
    return job->kind == GG_COPY_H2D && job->nbytes <= RING_LINE && !host->memory &&
           !job->capturing && ggi_stream_may_write_host(job->stream);
}

/* What most small uploads are: of pageable memory that no queued work writes to. */
static inline bool path_is_plain_upload(struct ggi_copy_job *job)
{
    struct ggi_copy_operand *host = &job->src;
    if (job->kind != GG_COPY_H2D || host->memory || job->nbytes > GGI_SLOT_SIZE || job->box->axes ||
        job->complete || job->capturing)
        return false;
    host->shared = ggi_stream_may_write_host(job->stream) && operand_is_shared(host, job->device);
    return !host->shared;
}

static enum path path_choose_host_and_device(struct ggi_copy_job *job)
{
    if (path_is_plain_upload(job))
        return path_is_word(job) ? PATH_WORD : PATH_RING;
    struct ggi_copy_operand *host = ggi_copy_host(job);
    const bool line = !job->box->axes, small = job->nbytes <= GGI_SLOT_SIZE;
    const bool async = job->flags & GG_COPY_ASYNC;
    const bool slot = job->kind == GG_COPY_H2D && small && !job->capturing;
    const bool query =
        !host->pinned && (host->shared || path_has_writers(job, host) || job->capturing ||
                          (async && !(slot && (line || !host->memory))));
    const bool mixed = (query || (line && !small)) && operand_is_mixed(host);
    if (query)
        host->shared = operand_is_shared(host, job->device);
    host->pinned |= host->shared && !mixed && (async || job->capturing);
    if (job->capturing && !host->pinned)
        return PATH_REFUSE_CAPTURE;
    bool queued = host->pinned ? async || (slot && line) : slot && !host->memory && !host->shared;
    if (job->flags & GG_COPY_REQUIRE_ASYNC && (!queued || job->complete))
        return PATH_REFUSE_WAITING;
    if (host->pinned)
        return path_choose_by_calls(job, async || job->box->run >= GGI_COPY_RUN_LONG, PATH_STAGED);
    if (!line || (!small && mixed))
        return PATH_STAGED;
    if (!small)
        return PATH_VENDOR;
    return job->kind == GG_COPY_H2D && path_is_word(job) ? PATH_WORD : PATH_RING;
}

static enum path path_choose(struct ggi_copy_job *job)
{
    if (job->kind == GG_COPY_D2D)
        return path_choose_on_device(job);
    return job->kind ? path_choose_host_and_device(job) : path_choose_on_host(job);
}

/* ---- the paths ---- */

/* An interrupt can end the call before a large transfer begins. */
static gg_status path_wait_for_stream(struct ggi_copy_job *job)
{
    return ggi_stream_is_known_idle(job->stream) ? GG_OK : ggi_stream_synchronize(job->stream, true);
}

/* Before the host reads or writes memory that queued work may be using. Large copies wait as well. */
static inline gg_status path_wait(struct ggi_copy_job *job)
{
    const struct ggi_copy_operand *host = ggi_copy_host(job);
    const bool large = job->nbytes > GGI_SLOT_SIZE,
               shared = host->pinned || host->memory || host->shared;
    return large || shared ? path_wait_for_stream(job) : GG_OK;
}

static gg_status path_word(struct ggi_copy_job *job)
{
    struct gg_stream_impl *stream = job->stream->impl;
    const uint32_t size = (uint32_t)job->nbytes;
    uint64_t word = 0;
    uint32_t low;
    gg_status status = path_wait(job);
    if (status)
        return status;
    memcpy(&word, job->src.pointer, size);
    memcpy(&low, &word, sizeof low); /* fill writes the low bytes first */
    status = size == 8 ? GGI_CALL(job->device, write_word, job->stream, size,
                                  (stream, job->dst.pointer, word))
                       : GGI_CALL(job->device, fill, job->stream, size,
                                  (stream, job->dst.pointer, low, size, 1));
    ggi_copy_count(job);
    return status;
}

static gg_status path_direct(struct ggi_copy_job *job)
{
    uint64_t ticket;
    bool early = job->flags & GG_COPY_ASYNC || job->kind == GG_COPY_D2D || job->capturing;
    gg_status status = ggi_copy_submit(job, job->dst.pointer, job->src.pointer, job->box, &ticket);
    if (!status && !early)
        status = ggi_stream_synchronize(job->stream, true);
    if (early || status) /* after a failed wait the copy may still run */
        ggi_copy_keep_owners(job, job->stream, ticket);
    return status;
}

/* Of so many bytes or more a GPU fetches the slot itself, and faster if the processor's caches do not have it: uploads of 32 to 128 KiB
 * take 0.83 to 0.95 times as long (H200, driver 580). Smaller uploads take 1.2 to 1.6 times as long, since the driver's call reads the
 * slot. The figures are of devices that write words; others were not measured, and on host the processor is the reader. */
#define SLOT_PAST_CACHES ((size_t)32 << 10)

static void ring_fill(const struct ggi_copy_job *job, struct ggi_slot *slot, const char *src,
                      size_t nbytes)
{
    const struct gg_device *device = job->device;
    if (nbytes >= SLOT_PAST_CACHES && device->writes_words && !(device->flags & GG_DEVICE_INTEGRATED))
        ggi_copy_past_caches(slot->data, src, nbytes);
    else
        memcpy(slot->data, src, nbytes);
}

/* An upload, or a part, into a slot: queued once the host has filled the slot. */
static inline gg_status ring_upload(struct ggi_copy_job *job, struct ggi_slot *slot, char *dst,
                                    const char *src, const struct ggi_box *host,
                                    const struct ggi_box *device)
{
    uint64_t ticket;
    if (host->axes)
        ggi_box_copy(slot->data, src, host);
    else
        ring_fill(job, slot, src, host->run);
    const gg_status status = ggi_copy_submit(job, dst, slot->data, device, &ticket);
    ggi_ring_release(job->device, slot, job->stream, ticket);
    return status;
}

static gg_status ring_copy_up(struct ggi_copy_job *job, char *dst, const char *src,
                              const struct ggi_box *host, const struct ggi_box *device)
{
    struct ggi_slot *slot;
    const gg_status status = ggi_ring_acquire(job->device, &slot);
    return status ? status : ring_upload(job, slot, dst, src, host, device);
}

static gg_status ring_copy_down(struct ggi_copy_job *job, char *dst, const char *src,
                                const struct ggi_box *host, const struct ggi_box *device)
{
    struct ggi_slot *slot;
    uint64_t ticket;
    gg_status status = ggi_ring_acquire(job->device, &slot);
    if (status)
        return status;
    status = ggi_copy_submit(job, slot->data, src, device, &ticket);
    if (!status) {
        const bool line = host->run == job->nbytes;
        status = line ? ggi_ring_wait(job->device, slot, job->stream, job->nbytes, true)
                      : ggi_stream_synchronize(job->stream, true);
    }
    if (!status)
        ggi_box_copy(dst, slot->data, host);
    ggi_ring_release(job->device, slot, job->stream, status ? ticket : 0);
    return status;
}

/* Through one slot of the ring: the host copies @p host between the caller's memory and the slot, the device
 * @p device between the slot and its memory. Up: queued, and the caller may reuse its memory. Down: finished. */
static gg_status ring_copy(struct ggi_copy_job *job, char *dst, const char *src,
                           const struct ggi_box *host, const struct ggi_box *device)
{
    return job->kind == GG_COPY_H2D ? ring_copy_up(job, dst, src, host, device)
                                    : ring_copy_down(job, dst, src, host, device);
}

static gg_status path_ring(struct ggi_copy_job *job)
{
    gg_status status = path_wait(job);
    return status ? status : ring_copy(job, job->dst.pointer, job->src.pointer, job->box, job->box);
}

/* GG_NOT_READY: only one is free. */
static gg_status ring_acquire_two(struct ggi_copy_job *job, struct ggi_slot **one,
                                  struct ggi_slot **other)
{
    const gg_status status = ggi_ring_acquire(job->device, one);
    if (status)
        return status;
    *other = ggi_ring_try_acquire(job->device);
    if (*other)
        return GG_OK;
    ggi_ring_release(job->device, *one, job->stream, 0);
    return GG_NOT_READY;
}

/* To the device: the first part is under way while the host copies the rest into its slot. Queued, as in ring_copy. */
static gg_status ring_copy_two_up(struct ggi_copy_job *job, struct ggi_slot *one,
                                  struct ggi_slot *other, const struct ggi_box *rest)
{
    char *dst = job->dst.pointer;
    const char *src = job->src.pointer;
    gg_status status = ring_upload(job, one, dst, src, &one_slot, &one_slot);
    if (!status)
        return ring_upload(job, other, dst + GGI_SLOT_SIZE, src + GGI_SLOT_SIZE, rest, rest);
    ggi_ring_release(job->device, other, job->stream, 0);
    return status;
}

/* To the host with one wait for both. */
static gg_status ring_copy_two_down(struct ggi_copy_job *job, struct ggi_slot *one,
                                    struct ggi_slot *other, const struct ggi_box *rest)
{
    const char *src = job->src.pointer;
    uint64_t ticket = 0;
    gg_status status = ggi_copy_submit(job, one->data, src, &one_slot, &ticket);
    if (!status)
        status = ggi_copy_submit(job, other->data, src + GGI_SLOT_SIZE, rest, &ticket);
    if (!status)
        status = ggi_ring_wait(job->device, other, job->stream, job->nbytes, false);
    if (!status) {
        memcpy(job->dst.pointer, one->data, GGI_SLOT_SIZE);
        memcpy(job->dst.pointer + GGI_SLOT_SIZE, other->data, rest->run);
    }
    ggi_ring_release(job->device, other, job->stream, status ? ticket : 0);
    ggi_ring_release(job->device, one, job->stream, status ? ticket : 0);
    return status;
}

static gg_status ring_copy_two(struct ggi_copy_job *job)
{
    const struct ggi_box rest = {.run = job->nbytes - GGI_SLOT_SIZE};
    struct ggi_slot *one, *other;
    const gg_status status = ring_acquire_two(job, &one, &other);
    if (status)
        return status;
    return job->kind == GG_COPY_H2D ? ring_copy_two_up(job, one, other, &rest)
                                    : ring_copy_two_down(job, one, other, &rest);
}

/* A little more than a slot: faster than the driver's own copy where a wait is short. */
static bool path_is_two_slots(const struct ggi_copy_job *job)
{
    return job->nbytes <= RING_LINE && job->device->writes_words &&
           !(job->device->flags & GG_DEVICE_INTEGRATED);
}

static gg_status path_two_slots(struct ggi_copy_job *job)
{
    const struct ggi_copy_operand *host = ggi_copy_host(job);
    const bool waits = job->kind == GG_COPY_D2H || host->memory || host->shared;
    const gg_status status = waits ? path_wait_for_stream(job) : GG_OK;
    return status ? status : ring_copy_two(job);
}

/* The driver may copy pageable memory at any time until the stream is idle, so no interrupt ends this wait. */
static gg_status path_vendor(struct ggi_copy_job *job)
{
    gg_status status = path_is_two_slots(job) ? path_two_slots(job) : GG_NOT_READY;
    if (status != GG_NOT_READY)
        return status;
    status = path_wait_for_stream(job);
    if (!status)
        status = ggi_staging_copy_if_faster(job);
    if (status != GG_NOT_READY)
        return status;
    const uint64_t begin = ggi_now_ns();
    status = ggi_copy_call(job->stream, job->dst.pointer, job->src.pointer, job->nbytes, job->kind,
                           true);
    ggi_copy_count(job);
    gg_status finished = ggi_stream_synchronize_uninterruptible(job->stream);
    if (!status && !finished)
        ggi_staging_learn_driver(job, begin);
    return status ? status : finished;
}

static gg_status ring_copy_chunks(struct ggi_copy_job *job)
{
    struct ggi_staging_plan plan;
    struct ggi_chunk chunk;
    struct ggi_box host, device;
    struct ggi_cut cut;
    gg_status status = GG_OK;
    ggi_staging_plan_make(&plan, job);
    ggi_cut_make(&cut, job->box, plan.strides, GGI_SLOT_SIZE);
    for (size_t i = 0; !status && i < cut.count; i++) {
        ggi_staging_plan_chunk(&plan, &cut, i, &chunk);
        ggi_chunk_host_box(&plan, &chunk, &host);
        ggi_chunk_device_box(&plan, &chunk, &device);
        status = ring_copy(job, chunk.dst, chunk.src, &host, &device);
    }
    return status;
}

/* Small copies, and all if there is no pinned memory for a staging lane, go in chunks through ring slots. */
static gg_status path_staged(struct ggi_copy_job *job)
{
    gg_status status = path_wait(job);
    if (!status)
        status = job->nbytes > GGI_SLOT_SIZE ? ggi_staging_copy(job) : GG_NOT_READY;
    return status == GG_NOT_READY ? ring_copy_chunks(job) : status;
}

static gg_status path_host(struct ggi_copy_job *job)
{
    gg_status status = ggi_stream_synchronize(job->stream, true);
    if (!status)
        ggi_box_copy(job->dst.pointer, job->src.pointer, job->box);
    return status;
}

static gg_status path_refuse(struct ggi_copy_job *job, enum path path)
{
    if (path == PATH_REFUSE_CAPTURE)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "stream is capturing: only copies with pinned memory can become part "
                        "of a graph; use pinned memory");
    if (path == PATH_REFUSE_HOST)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "copy: a copy between two host blocks waits for the stream and runs on the "
                        "host; omit require_async");
    if (path == PATH_REFUSE_CALLS)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "%s: a copy with these strides takes more than %u driver calls, or goes "
                        "through the host: copy a contiguous array",
                        job->capturing ? "stream is capturing" : "copy: require_async",
                        GGI_COPY_CALLS_MOST);
    const char *why = job->complete ? "on this device, work without a stream is complete when the "
                                      "call returns: pass a stream"
                      : ggi_copy_host(job)->pinned
                          ? "a copy without the asynchronous flag waits: pass a stream"
                          : "the host memory is pageable: use pinned memory";
    return ggi_fail(
        GG_ERR_UNSUPPORTED,
        "copy: %zu bytes cannot be copied without waiting, because %s, or omit require_async",
        job->nbytes, why);
}

gg_status ggi_copy_run(struct ggi_copy_job *job)
{
    const enum path path = path_choose(job);
    switch (path) {
    case PATH_WORD:
        return path_word(job);
    case PATH_RING:
        return path_ring(job);
    case PATH_DIRECT:
        return path_direct(job);
    case PATH_VENDOR:
        return path_vendor(job);
    case PATH_STAGED:
        return path_staged(job);
    case PATH_BOUNCE:
        return GG_NOT_READY;
    case PATH_HOST:
        return path_host(job);
    case PATH_REFUSE_CAPTURE:
    case PATH_REFUSE_WAITING:
    case PATH_REFUSE_HOST:
    case PATH_REFUSE_CALLS:
        break;
    }
    return path_refuse(job, path);
}
