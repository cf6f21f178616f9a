/* between.c: copies between two devices. Those of one backend that reach each other copy directly (peer.c);
 * others, of one backend or of two, through the host: down through the source's pinned ring, up through the
 * destination's, a bounded part at a time.
 *
 * Nobody who waits for a slot of one ring holds one of the other, nor a second of the same, so copies in
 * opposite directions cannot block each other: what came down lies in ordinary memory before it goes up. */
#include "copy.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 16u /* slots: what is on its way down at a time, and the size of the memory between */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- one part ---- */

static gg_status queue(gg_stream *stream, void *dst, const void *src, size_t nbytes,
                       enum gg_copy_kind kind, gg_memory *memory, uint64_t *ticket)
{
    struct gg_device *device = stream->device;
    ggi_begin(device, GG_OP_copy, stream, nbytes);
    gg_status status = device->ops->copy(stream->impl, dst, src, nbytes, kind, false);
    status = ggi_end(device, GG_OP_copy, stream, nbytes, status);
    *ticket = ggi_stream_submitted(stream);
    ggi_memory_used(memory, stream, *ticket);
    return status;
}

/* From @p done on, as much as there are free slots for: waits for the first one only. */
static gg_status bring_down(struct ggi_crossing *crossing, size_t done, char *between, size_t *size)
{
    struct gg_device *device = crossing->out->device;
    struct ggi_slot *slot[BATCH];
    size_t count = 0, end = done;
    uint64_t ticket = 0;
    gg_status status = ggi_ring_take(device, &slot[0]);
    if (status)
        return status;
    do {
        size_t part = least(crossing->nbytes - end, GGI_SLOT_SIZE);
        status = queue(crossing->out, slot[count++]->data, crossing->from + end, part, GG_COPY_D2H,
                       crossing->src, &ticket);
        end += part;
    } while (!status && count < BATCH && end < crossing->nbytes &&
             (slot[count] = ggi_ring_try(device)));
    if (!status)
        status = ggi_stream_finish(crossing->out, true);
    *size = end - done;
    for (size_t i = 0; i < count; i++) {
        size_t at = i * GGI_SLOT_SIZE;
        if (!status)
            memcpy(between + at, slot[i]->data, least(*size - at, GGI_SLOT_SIZE));
        ggi_ring_give(device, slot[i], crossing->out, status ? ticket : 0);
    }
    return status;
}

static gg_status send_up(struct ggi_crossing *crossing, size_t done, const char *between,
                         size_t size)
{
    struct gg_device *device = crossing->in->device;
    gg_status status = GG_OK;
    for (size_t at = 0; !status && at < size; at += GGI_SLOT_SIZE) {
        size_t part = least(size - at, GGI_SLOT_SIZE);
        struct ggi_slot *slot;
        uint64_t ticket;
        status = ggi_ring_take(device, &slot);
        if (status)
            return status;
        memcpy(slot->data, between + at, part);
        status = queue(crossing->in, crossing->to + done + at, slot->data, part, GG_COPY_H2D,
                       crossing->dst, &ticket);
        ggi_ring_give(device, slot, crossing->in, ticket);
    }
    return status;
}

/* What goes up runs while the next part comes down. */
static gg_status carry(struct ggi_crossing *crossing)
{
    size_t room = least(crossing->nbytes, (size_t)BATCH * GGI_SLOT_SIZE), size = 0;
    char *between = malloc(room);
    gg_status status = GG_OK;
    if (!between)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY,
                        "copy: no %zu bytes of host memory between two devices", room);
    for (size_t done = 0; !status && done < crossing->nbytes; done += size) {
        status = bring_down(crossing, done, between, &size);
        if (!status)
            status = send_up(crossing, done, between, size);
    }
    free(between);
    return status ? status : ggi_stream_finish(crossing->in, true);
}

/* ---- before and after ---- */

static gg_status refuse(const struct ggi_crossing *crossing, const char *before, const char *after)
{
    const struct gg_device *from = crossing->src->device, *to = crossing->dst->device;
    return ggi_fail(GG_ERR_UNSUPPORTED, "%sa copy from %s:%d to %s:%d goes through the host%s",
                    before, from->backend->name, (int)from->ordinal, to->backend->name,
                    (int)to->ordinal, after);
}

/* A given stream takes the place of the current one of its own device; the other end has no stream given,
 * so it is ordered behind the work that is known of it. */
static gg_status choose_streams(struct ggi_crossing *crossing, gg_stream *stream)
{
    bool out_complete = false, in_complete = false;
    bool for_dst = stream && stream->device == crossing->dst->device;
    crossing->in = for_dst ? stream : NULL;
    crossing->out = for_dst ? NULL : stream;
    gg_status status = ggi_choose_stream(crossing->src->device, &crossing->out, &crossing->wait_src,
                                         &out_complete);
    if (!status)
        status = ggi_choose_stream(crossing->dst->device, &crossing->in, &crossing->wait_dst,
                                   &in_complete);
    crossing->complete = stream == NULL && (out_complete || in_complete);
    return status;
}

gg_status ggi_crossing_order(const struct ggi_crossing *crossing, gg_stream *for_src,
                             gg_stream *for_dst)
{
    gg_status status = crossing->wait_src ? ggi_memory_order(crossing->src, for_src)
                                          : ggi_memory_enter(crossing->src, for_src);
    if (status)
        return status;
    return crossing->wait_dst ? ggi_memory_order(crossing->dst, for_dst)
                              : ggi_memory_enter(crossing->dst, for_dst);
}

static gg_status through_host(struct ggi_crossing *crossing, uint32_t flags, bool capturing)
{
    if (flags & GG_COPY_REQUIRE_ASYNC)
        return refuse(crossing, "copy: ", ", and the call waits for both; leave require_async out");
    if (capturing)
        return refuse(crossing, "stream is capturing: ", " and cannot become part of a graph");
    gg_status status = ggi_crossing_order(crossing, crossing->out, crossing->in);
    return status ? status : carry(crossing);
}

/* After a failure part of the work may still be queued. */
static void keep_owner(gg_stream *stream, const struct gg_end *end)
{
    uint64_t ticket = atomic_load(&stream->submitted);
    if (!end->release)
        return;
    if (!ggi_stream_passed(stream, ticket, true) &&
        !ggi_stream_keep(stream, ticket, end->release, end->owner))
        return;
    ggi_stream_finish(stream, false);
    end->release(end->owner);
}

gg_status ggi_copy_between(struct ggi_crossing *crossing, gg_stream *stream, uint32_t flags)
{
    bool direct = false;
    gg_status status = choose_streams(crossing, stream);
    if (status || !crossing->nbytes)
        return status;
    bool capturing = ggi_stream_captures(crossing->out) || ggi_stream_captures(crossing->in);
    status = ggi_peer_is_direct(crossing->dst->device, crossing->src->device, !capturing, &direct);
    if (status)
        return status;
    if (direct)
        return ggi_copy_direct(crossing, stream, flags);
    status = through_host(crossing, flags, capturing);
    if (status) {
        keep_owner(crossing->out, crossing->src_end);
        keep_owner(crossing->in, crossing->dst_end);
        crossing->kept = true;
    }
    return status;
}
