/* copy_device.c: copies between two devices. Those of one backend that reach each other copy directly (peer.c);
 * others, of one backend or of two, through the host: to the host through the source's pinned ring, to the device
 * through the destination's, a bounded part at a time.
 *
 * A thread that waits for a slot of one ring holds none of the other, and no second one of the same, so copies in
 * opposite directions cannot block each other: between the two the bytes are in an ordinary bounce buffer. */
#include "base/error.h"
#include "runtime/scope.h"
#include "memory/pool.h"
#include "transfer/peer.h"
#include "transfer/ring.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_SLOTS 16u /* in flight to the host at a time, and the size of the bounce buffer */

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- through the host ---- */

static gg_status bounce_call(gg_stream *stream, void *dst, const void *src, size_t nbytes,
                             enum gg_copy_kind kind, gg_memory *memory, uint64_t *ticket)
{
    gg_status status = ggi_copy_call(stream, dst, src, nbytes, kind, false);
    *ticket = ggi_stream_submitted(stream);
    ggi_memory_used(memory, stream, *ticket);
    return status;
}

/* Copies from @p done on, as many bytes as the free slots hold; waits for the first slot only. */
static gg_status bounce_to_host(const struct ggi_device_copy *copy, size_t done, char *buffer,
                                size_t *size)
{
    const struct ggi_copy_job *job = copy->job;
    struct gg_device *device = copy->out->device;
    struct ggi_slot *slot[BATCH_SLOTS];
    size_t count = 0, end = done;
    uint64_t ticket = 0;
    gg_status status = ggi_ring_acquire(device, &slot[0]);
    if (status)
        return status;
    do {
        size_t part = min_size(job->nbytes - end, GGI_SLOT_SIZE);
        status = bounce_call(copy->out, slot[count++]->data, job->src.pointer + end, part,
                             GG_COPY_D2H, job->src.memory, &ticket);
        end += part;
    } while (!status && count < BATCH_SLOTS && end < job->nbytes &&
             (slot[count] = ggi_ring_try_acquire(device)));
    if (!status)
        status = ggi_stream_synchronize(copy->out, true);
    *size = end - done;
    for (size_t i = 0; i < count; i++) {
        size_t at = i * GGI_SLOT_SIZE;
        if (!status)
            memcpy(buffer + at, slot[i]->data, min_size(*size - at, GGI_SLOT_SIZE));
        ggi_ring_release(device, slot[i], copy->out, status ? ticket : 0);
    }
    return status;
}

static gg_status bounce_to_device(const struct ggi_device_copy *copy, size_t done,
                                  const char *buffer, size_t size)
{
    const struct ggi_copy_job *job = copy->job;
    struct gg_device *device = copy->in->device;
    gg_status status = GG_OK;
    for (size_t at = 0; !status && at < size; at += GGI_SLOT_SIZE) {
        size_t part = min_size(size - at, GGI_SLOT_SIZE);
        struct ggi_slot *slot;
        uint64_t ticket;
        status = ggi_ring_acquire(device, &slot);
        if (status)
            return status;
        memcpy(slot->data, buffer + at, part);
        status = bounce_call(copy->in, job->dst.pointer + done + at, slot->data, part, GG_COPY_H2D,
                             job->dst.memory, &ticket);
        ggi_ring_release(device, slot, copy->in, ticket);
    }
    return status;
}

/* One part goes to the device while the next comes to the host. */
static gg_status bounce_copy(const struct ggi_device_copy *copy)
{
    const size_t nbytes = copy->job->nbytes;
    char *buffer = ggi_bounce_alloc(min_size(nbytes, (size_t)BATCH_SLOTS * GGI_SLOT_SIZE));
    gg_status status = GG_OK;
    size_t size = 0;
    if (!buffer)
        return GG_ERR_OUT_OF_MEMORY;
    for (size_t done = 0; !status && done < nbytes; done += size) {
        status = bounce_to_host(copy, done, buffer, &size);
        if (!status)
            status = bounce_to_device(copy, done, buffer, size);
    }
    free(buffer);
    return status ? status : ggi_stream_synchronize(copy->in, true);
}

/* ---- before and after ---- */

static gg_status device_copy_refuse(const struct ggi_device_copy *copy, const char *before,
                                    const char *after)
{
    const struct gg_device *from = copy->out->device, *to = copy->in->device;
    return ggi_fail(GG_ERR_UNSUPPORTED, "%sa copy from %s:%d to %s:%d goes through the host%s",
                    before, from->backend->name, (int)from->ordinal, to->backend->name,
                    (int)to->ordinal, after);
}

/* A given stream takes the place of the current one of its own device; no stream is given for the other
 * operand, so the copy waits for its known uses. */
static gg_status device_copy_choose_streams(struct ggi_device_copy *copy)
{
    struct ggi_copy_job *job = copy->job;
    gg_device *dst = job->dst.memory->device, *src = job->src.memory->device;
    bool out_complete = false, in_complete = false;
    *(job->stream && job->stream->device == dst ? &copy->in : &copy->out) = job->stream;
    gg_status status = ggi_choose_stream(src, &copy->out, &copy->wait_src, &out_complete);
    if (!status)
        status = ggi_choose_stream(dst, &copy->in, &copy->wait_dst, &in_complete);
    job->complete = !job->stream && (out_complete || in_complete);
    return status;
}

/* Parts of a failed copy may still be queued. */
static void operand_keep_owner(const struct ggi_copy_operand *operand, gg_stream *stream)
{
    const uint64_t ticket = atomic_load(&stream->submitted);
    if (operand->given->release && ggi_stream_is_complete(stream, ticket, true)) {
        ggi_stream_synchronize(stream, false);
        operand->given->release(operand->given->owner);
        return;
    }
    ggi_copy_keep_owner(operand, stream, ticket);
}

static gg_status device_copy_bounce(struct ggi_device_copy *copy, bool capturing)
{
    struct ggi_copy_job *job = copy->job;
    gg_status status = GG_OK;
    if (job->flags & GG_COPY_REQUIRE_ASYNC)
        status =
            device_copy_refuse(copy, "copy: ", ", and the call waits for it; omit require_async");
    else if (capturing)
        status =
            device_copy_refuse(copy, "stream is capturing: ", " and cannot become part of a graph");
    else
        status = ggi_device_copy_wait(copy, copy->out, copy->in);
    if (!status)
        status = bounce_copy(copy);
    if (!status)
        return GG_OK;
    operand_keep_owner(&job->src, copy->out);
    operand_keep_owner(&job->dst, copy->in);
    job->owners_kept = true;
    return status;
}

/* Peer access covers memory that gpuglue allocated from the driver. Other memory, of the driver's own pool or of another
 * library, may be mapped for its device only; only copy_peer takes care of that. */
static bool operand_is_mapped(const struct ggi_copy_operand *operand)
{
    const gg_memory *memory = operand->memory;
    return memory->pool && !memory->pool->async && memory->kind == GG_MEMORY_DEVICE;
}

/* By regions alone: `copy` is for one device. @p must: the caller allows no other path. */
static bool device_copy_is_short(const struct ggi_copy_job *job, bool must)
{
    struct ggi_tiling tiling;
    ggi_box_tile(job->box, true, &tiling);
    return tiling.row >= 0 && tiling.calls <= (must ? GGI_COPY_CALLS_MOST : GGI_COPY_CALLS_FEW);
}

gg_status ggi_copy_devices_strided(struct ggi_copy_job *job)
{
    struct ggi_device_copy copy = {.job = job};
    bool direct = false;
    if (!operand_is_mapped(&job->dst) || !operand_is_mapped(&job->src))
        return GG_NOT_READY;
    gg_status status = device_copy_choose_streams(&copy);
    if (status)
        return status;
    const bool capturing = ggi_stream_is_captured(copy.out) || ggi_stream_is_captured(copy.in);
    const bool must = capturing || job->flags & GG_COPY_REQUIRE_ASYNC;
    if (!device_copy_is_short(job, must))
        return GG_NOT_READY;
    status = ggi_peer_regions_are_direct(copy.in->device, copy.out->device, !capturing, &direct);
    if (status)
        return status;
    return direct ? ggi_peer_copy(&copy) : GG_NOT_READY;
}

gg_status ggi_copy_devices(struct ggi_copy_job *job)
{
    struct ggi_device_copy copy = {.job = job};
    bool direct = false;
    gg_status status = device_copy_choose_streams(&copy);
    if (status || !job->nbytes)
        return status;
    bool capturing = ggi_stream_is_captured(copy.out) || ggi_stream_is_captured(copy.in);
    status = ggi_peer_is_direct(copy.in->device, copy.out->device, !capturing, &direct);
    if (status)
        return status;
    return direct ? ggi_peer_copy(&copy) : device_copy_bounce(&copy, capturing);
}
