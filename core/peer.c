/* peer.c: copies between two devices of one backend that reach each other. Their driver does them without
 * the host, once it was seen that what is sent so does arrive: there are machines where it does not. */
#include "copy.h"

#include <string.h>

#define PROOF_BYTES 4096u
#define SENT UINT64_C(0x6770756775756c65)
#define MASKED 64 /* devices of a backend that a mask has a bit for; others go through the host */

static gg_status call(const struct ggi_crossing *crossing, gg_stream *stream)
{
    struct gg_device *device = stream->device;
    ggi_begin(device, GG_OP_copy_peer, stream, crossing->nbytes);
    gg_status status = device->ops->copy_peer(
        stream->impl, atomic_load(&crossing->dst->device->impl), crossing->to,
        atomic_load(&crossing->src->device->impl), crossing->from, crossing->nbytes);
    return ggi_end(device, GG_OP_copy_peer, stream, crossing->nbytes, status);
}

/* ---- the proof, once for each direction ---- */

struct proof {
    gg_stream *out, *in; /* of the source's device, of the destination's */
    gg_memory *src, *dst;
};

static void end_proof(struct proof *proof)
{
    gg_memory_release(proof->src);
    gg_memory_release(proof->dst);
    gg_stream_release(proof->out);
    gg_stream_release(proof->in);
}

/* Streams of its own: it waits for nobody's work. */
static gg_status begin_proof(struct proof *proof, gg_device *dst, gg_device *src)
{
    gg_status status = gg_stream_create(src, GG_STREAM_NONBLOCKING, 0, &proof->out);
    if (!status)
        status = gg_stream_create(dst, GG_STREAM_NONBLOCKING, 0, &proof->in);
    if (!status)
        status = gg_memory_alloc(src, GG_MEMORY_DEVICE, PROOF_BYTES, proof->out, &proof->src);
    if (!status)
        status = gg_memory_alloc(dst, GG_MEMORY_DEVICE, PROOF_BYTES, proof->in, &proof->dst);
    return status;
}

static gg_status write(gg_memory *memory, uint64_t value, gg_stream *stream)
{
    const size_t count = PROOF_BYTES / sizeof value;
    gg_status status = gg_fill(memory, 0, &value, sizeof value, count, stream);
    return status ? status : ggi_stream_finish(stream, false);
}

static gg_status send(const struct proof *proof, gg_stream *stream)
{
    const struct ggi_crossing crossing = {.dst = proof->dst,
                                          .src = proof->src,
                                          .to = proof->dst->pointer,
                                          .from = proof->src->pointer,
                                          .nbytes = PROOF_BYTES};
    gg_status status = call(&crossing, stream);
    return status ? status : ggi_stream_finish(stream, false);
}

/* Whether a copy on @p stream arrives whole. */
static gg_status arrives(const struct proof *proof, gg_stream *stream, bool *out)
{
    uint64_t back[PROOF_BYTES / sizeof(uint64_t)];
    const struct gg_end src = {.memory = proof->dst}, dst = {.host = back};
    gg_status status = write(proof->src, SENT, proof->out);
    if (!status)
        status = write(proof->dst, ~SENT, proof->in);
    if (!status)
        status = send(proof, stream);
    if (!status)
        status = gg_copy(&dst, &src, PROOF_BYTES, proof->in, 0);
    for (size_t i = 0; !status && i < PROOF_BYTES / sizeof *back; i++)
        *out = *out && back[i] == SENT;
    return status;
}

static gg_status enable(gg_device *device, gg_device *peer)
{
    ggi_begin(device, GG_OP_peer_enable, NULL, 0);
    gg_status status =
        device->ops->peer_enable(atomic_load(&device->impl), atomic_load(&peer->impl));
    return ggi_end(device, GG_OP_peer_enable, NULL, 0, status);
}

static gg_status prove(gg_device *dst, gg_device *src, bool *out)
{
    struct proof proof = {0};
    gg_status status = enable(src, dst);
    if (!status)
        status = enable(dst, src);
    if (!status)
        status = begin_proof(&proof, dst, src);
    *out = true;
    if (!status)
        status = arrives(&proof, proof.out, out);
    if (!status)
        status = arrives(&proof, proof.in, out);
    end_proof(&proof);
    return status;
}

/* ---- what is known of a pair ---- */

static gg_status may_access(gg_device *device, gg_device *peer, int32_t *out)
{
    const struct gg_backend_ops *ops = device->ops;
    *out = 0;
    if (!gg_device_supports(device, GG_OP_peer_access) ||
        !gg_device_supports(device, GG_OP_copy_peer))
        return GG_OK;
    ggi_begin(device, GG_OP_peer_access, NULL, 0);
    gg_status status = ops->peer_access(atomic_load(&device->impl), atomic_load(&peer->impl), out);
    return ggi_end(device, GG_OP_peer_access, NULL, 0, status);
}

gg_status gg_device_can_access(gg_device *device, gg_device *peer, int32_t *out)
{
    int32_t there = 0, back = 0;
    gg_status status = ggi_device_ready(device);
    if (!status)
        status = ggi_device_ready(peer);
    if (!status && device->backend == peer->backend && device != peer)
        status = may_access(device, peer, &there);
    if (!status && there)
        status = may_access(peer, device, &back);
    if (!status)
        *out = device == peer || (there && back);
    return status;
}

/* A failure may pass, so it is not remembered; the copy at hand goes through the host. An interrupt is the
 * caller's, though. */
static gg_status find_out(gg_device *dst, gg_device *src, uint64_t bit, bool *out)
{
    int32_t can = 0;
    bool arrived = false;
    struct ggi_own there, back;
    ggi_own_begin(src, &there);
    ggi_own_begin(dst, &back);
    gg_status status = gg_device_can_access(src, dst, &can);
    if (!status && can)
        status = prove(dst, src, &arrived);
    ggi_own_end(dst, &back);
    ggi_own_end(src, &there);
    if (status == GG_ERR_INTERRUPTED)
        return ggi_fail(status, "the first copy between two devices was interrupted");
    if (status)
        return GG_OK;
    atomic_fetch_or(arrived ? &src->peers_direct : &src->peers_apart, bit);
    if (can && !arrived)
        ggi_log(GG_LOG_WARN,
                "%s: what device %d sends to device %d directly does not arrive, so "
                "copies between them go through the host",
                src->backend->name, (int)src->ordinal, (int)dst->ordinal);
    *out = arrived;
    return GG_OK;
}

gg_status ggi_peer_is_direct(gg_device *dst, gg_device *src, bool may_ask, bool *out)
{
    *out = false;
    if (dst->backend != src->backend || dst->ordinal >= MASKED)
        return GG_OK;
    const uint64_t bit = UINT64_C(1) << dst->ordinal;
    *out = atomic_load_explicit(&src->peers_direct, memory_order_acquire) & bit;
    if (*out || !may_ask || atomic_load_explicit(&src->peers_apart, memory_order_relaxed) & bit)
        return GG_OK;
    return find_out(dst, src, bit, out);
}

/* Where streams are ordered with the default one, a look at that may spoil somebody's capture. */
bool ggi_peer_is_lost(gg_stream *stream)
{
    struct gg_device *peer = atomic_load_explicit(&stream->behind, memory_order_relaxed);
    struct ggi_own own;
    if (!peer || atomic_load(&peer->gone) || atomic_load(&ggi_down) ||
        peer->flags & GG_DEVICE_SHARED_DEFAULT)
        return peer && atomic_load(&peer->gone);
    ggi_own_begin(peer, &own);
    gg_status status = peer->ops->stream_query(peer->default_stream->impl);
    ggi_stream_asked(peer->default_stream, status);
    ggi_own_end(peer, &own);
    if (status == GG_ERR_DEVICE_LOST)
        atomic_store(&peer->gone, true);
    return status == GG_ERR_DEVICE_LOST;
}

/* ---- the copy ---- */

static void keep_owner(gg_stream *stream, uint64_t ticket, const struct gg_end *end)
{
    if (!end->release)
        return;
    const gg_status status = ticket ? ggi_stream_keep(stream, ticket, end->release, end->owner)
                                    : ggi_device_keep(stream->device, end->release, end->owner);
    if (status && ticket) { /* no memory for the note: wait here instead */
        ggi_stream_finish(stream, false);
        end->release(end->owner);
    }
}

/* In a capture nothing runs, so nothing is counted. */
static void note(struct ggi_crossing *crossing, gg_stream *stream, bool capturing)
{
    uint64_t ticket = capturing ? 0 : ggi_stream_submitted(stream);
    if (capturing) {
        atomic_store(&crossing->src->captured, 1);
        atomic_store(&crossing->dst->captured, 1);
    } else {
        ggi_memory_used(crossing->src, stream, ticket);
        ggi_memory_used(crossing->dst, stream, ticket);
    }
    keep_owner(stream, ticket, crossing->src_end);
    keep_owner(stream, ticket, crossing->dst_end);
    crossing->kept = true;
}

/* The other end's current stream has its place in the order too: the copy runs behind what is there, and what
 * comes there later behind the copy. */
static gg_status between_streams(struct ggi_crossing *crossing, gg_stream *stream, gg_stream *other)
{
    gg_status status = ggi_crossing_order(crossing, stream, stream);
    if (!status)
        status = ggi_stream_fence(stream, other, false);
    if (status)
        return status;
    status = call(crossing, stream);
    note(crossing, stream, false);
    return status ? status : ggi_stream_fence(other, stream, false);
}

/* Into a graph goes the copy alone. */
static gg_status into_graph(struct ggi_crossing *crossing, gg_stream *stream)
{
    gg_status status = ggi_memory_enter(crossing->src, stream);
    if (!status)
        status = ggi_memory_enter(crossing->dst, stream);
    if (!status)
        status = call(crossing, stream);
    if (!status)
        note(crossing, stream, true);
    return status;
}

gg_status ggi_copy_direct(struct ggi_crossing *crossing, gg_stream *given, uint32_t flags)
{
    gg_stream *stream = given ? given : crossing->out;
    gg_stream *other = stream == crossing->out ? crossing->in : crossing->out;
    if (flags & GG_COPY_REQUIRE_ASYNC && crossing->complete)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "copy: work without a stream is finished on this device when a call "
                        "returns: give a stream, or leave require_async out");
    if (given && ggi_stream_captures(stream))
        return into_graph(crossing, stream);
    if (ggi_stream_captures(stream) || ggi_stream_captures(other))
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "stream is capturing: a copy between two devices becomes part of its graph "
                        "only where the stream is given");
    gg_status status = between_streams(crossing, stream, other);
    return status || !crossing->complete ? status : ggi_stream_finish(stream, true);
}
