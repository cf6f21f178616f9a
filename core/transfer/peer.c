/* peer.c: direct copies between two devices of one backend. On some machines the driver reports that two devices
 * can access each other but the bytes do not arrive, so a pair is tested first. */
#include "base/error.h"
#include "base/log.h"
#include "memory/uses.h"
#include "transfer/peer.h"

#define PROOF_WORDS 512u
#define SENT UINT64_C(0x6770756775756c65)
#define PROOF_RUN 8u    /* of the test copy of a region, in words: */
#define PROOF_PITCH 16u /* runs with spaces between them */
#define PROOF_ROWS 8u
#define MASK_BITS \
    64 /* devices of a backend that a mask has a bit for; others go through the host */

static gg_status peer_call(gg_stream *stream, gg_memory *dst, void *to, gg_memory *src,
                           const void *from, size_t nbytes)
{
    return GGI_QUEUE(stream->device, copy_peer, stream, nbytes, atomic_load(&dst->device->impl), to,
                     atomic_load(&src->device->impl), from, nbytes);
}

/* ---- the test copy, once for each direction and kind ---- */

struct proof {
    gg_stream *out, *in; /* of the source's device, of the destination's */
    gg_memory *src, *dst;
    bool regions; /* by copy_region */
};

static void proof_end(struct proof *proof)
{
    gg_memory_release(proof->src);
    gg_memory_release(proof->dst);
    gg_stream_release(proof->out);
    gg_stream_release(proof->in);
}

/* On new streams, so that no other work delays it. */
static gg_status proof_begin(struct proof *proof, gg_device *dst, gg_device *src)
{
    const size_t nbytes = PROOF_WORDS * sizeof(uint64_t);
    gg_status status = gg_stream_create(src, GG_STREAM_NONBLOCKING, 0, &proof->out);
    if (!status)
        status = gg_stream_create(dst, GG_STREAM_NONBLOCKING, 0, &proof->in);
    if (!status)
        status = gg_memory_alloc(src, GG_MEMORY_DEVICE, nbytes, proof->out, &proof->src);
    if (!status)
        status = gg_memory_alloc(dst, GG_MEMORY_DEVICE, nbytes, proof->in, &proof->dst);
    return status;
}

/* Between the host's words and the memory. */
static gg_status proof_copy(gg_memory *memory, uint64_t *words, enum gg_copy_kind kind,
                            gg_stream *stream)
{
    const struct ggi_copy_operand host = {.pointer = (char *)words};
    const struct ggi_copy_operand device = {
        .memory = memory, .pointer = memory->pointer, .device = true};
    struct ggi_box line;
    struct ggi_copy_job job = {.dst = kind == GG_COPY_H2D ? device : host,
                               .src = kind == GG_COPY_H2D ? host : device,
                               .nbytes = memory->nbytes,
                               .box = &line,
                               .kind = kind,
                               .device = memory->device,
                               .stream = stream};
    line.run = memory->nbytes;
    line.axes = 0;
    return ggi_copy_run(&job);
}

static gg_status proof_write(gg_memory *memory, uint64_t value, gg_stream *stream)
{
    uint64_t words[PROOF_WORDS];
    for (size_t i = 0; i < PROOF_WORDS; i++)
        words[i] = value;
    gg_status status = proof_copy(memory, words, GG_COPY_H2D, stream);
    return status ? status : ggi_stream_synchronize(stream, false);
}

static gg_status proof_submit(const struct proof *proof, gg_stream *stream)
{
    const size_t word = sizeof(uint64_t);
    const struct gg_region region = {
        .struct_size = sizeof region,
        .width = PROOF_RUN * word,
        .height = PROOF_ROWS,
        .depth = PROOF_WORDS / PROOF_PITCH / PROOF_ROWS,
        .dst_pitch = PROOF_PITCH * word,
        .src_pitch = PROOF_PITCH * word,
        .dst_slice = PROOF_ROWS * PROOF_PITCH * word,
        .src_slice = PROOF_ROWS * PROOF_PITCH * word,
    };
    if (!proof->regions)
        return peer_call(stream, proof->dst, proof->dst->pointer, proof->src, proof->src->pointer,
                         PROOF_WORDS * word);
    return GGI_CALL(stream->device, copy_region, stream, PROOF_WORDS / 2 * word,
                    (stream->impl, proof->dst->pointer, proof->src->pointer, &region, GG_COPY_D2D));
}

/* If the wait fails, the copy may still run when the memories are released. */
static void proof_record_use(const struct proof *proof, gg_stream *stream)
{
    const uint64_t ticket = ggi_stream_submitted(stream);
    ggi_memory_used(proof->src, stream, ticket);
    ggi_memory_used(proof->dst, stream, ticket);
}

/* Whether a copy on @p stream arrives whole, and changes nothing else. */
static gg_status proof_test(const struct proof *proof, gg_stream *stream, bool *out)
{
    uint64_t words[PROOF_WORDS];
    gg_status status = proof_write(proof->src, SENT, proof->out);
    if (!status)
        status = proof_write(proof->dst, ~SENT, proof->in);
    if (!status)
        status = proof_submit(proof, stream);
    proof_record_use(proof, stream);
    if (!status)
        status = ggi_stream_synchronize(stream, false);
    if (!status)
        status = proof_copy(proof->dst, words, GG_COPY_D2H, proof->in);
    for (size_t i = 0; !status && i < PROOF_WORDS; i++)
        *out = *out && words[i] == (proof->regions && i % PROOF_PITCH >= PROOF_RUN ? ~SENT : SENT);
    return status;
}

static gg_status peer_enable(gg_device *device, gg_device *peer)
{
    return GGI_CALL(device, peer_enable, NULL, 0,
                    (atomic_load(&device->impl), atomic_load(&peer->impl)));
}

static gg_status peer_prove(gg_device *dst, gg_device *src, bool regions, bool *out)
{
    struct proof proof = {.regions = regions};
    gg_status status = peer_enable(src, dst);
    if (!status)
        status = peer_enable(dst, src);
    if (!status)
        status = proof_begin(&proof, dst, src);
    *out = true;
    if (!status)
        status = proof_test(&proof, proof.out, out);
    if (!status)
        status = proof_test(&proof, proof.in, out);
    proof_end(&proof);
    return status;
}

/* ---- what is known of a pair ---- */

static gg_status peer_may_access(gg_device *device, gg_device *peer, int32_t *out)
{
    *out = 0;
    if (!gg_device_supports(device, GG_OP_peer_access) ||
        !gg_device_supports(device, GG_OP_copy_peer))
        return GG_OK;
    return GGI_CALL(device, peer_access, NULL, 0,
                    (atomic_load(&device->impl), atomic_load(&peer->impl), out));
}

gg_status gg_device_can_access(gg_device *device, gg_device *peer, int32_t *out)
{
    int32_t there = 0, back = 0;
    gg_status status = ggi_device_ready(device);
    if (!status)
        status = ggi_device_ready(peer);
    if (!status && device->backend == peer->backend && device != peer)
        status = peer_may_access(device, peer, &there);
    if (!status && there)
        status = peer_may_access(peer, device, &back);
    if (!status)
        *out = device == peer || (there && back);
    return status;
}

/* A failure is not remembered, since it may be temporary; this copy goes through the host. Only an interrupt is
 * reported. */
static gg_status peer_find_out(gg_device *dst, gg_device *src, uint64_t bit, bool *out)
{
    int32_t can = 0;
    bool arrived = false;
    struct ggi_internal_scope there, back;
    ggi_internal_begin(src, &there);
    ggi_internal_begin(dst, &back);
    gg_status status = gg_device_can_access(src, dst, &can);
    if (!status && can)
        status = peer_prove(dst, src, false, &arrived);
    ggi_internal_end(dst, &back);
    ggi_internal_end(src, &there);
    if (status == GG_ERR_INTERRUPTED)
        return ggi_fail(status, "the first copy between two devices was interrupted");
    if (status)
        return GG_OK;
    atomic_fetch_or(arrived ? &src->peers_direct : &src->peers_apart, bit);
    if (can && !arrived)
        ggi_log(GG_LOG_WARN, src->backend->name,
                "a test copy from device %d to device %d did not arrive, so copies between them "
                "go through the host",
                (int)src->ordinal, (int)dst->ordinal);
    *out = arrived;
    return GG_OK;
}

gg_status ggi_peer_is_direct(gg_device *dst, gg_device *src, bool may_ask, bool *out)
{
    *out = false;
    if (dst->backend != src->backend || dst->ordinal >= MASK_BITS)
        return GG_OK;
    const uint64_t bit = UINT64_C(1) << dst->ordinal;
    *out = atomic_load_explicit(&src->peers_direct, memory_order_acquire) & bit;
    if (*out || !may_ask || atomic_load_explicit(&src->peers_apart, memory_order_relaxed) & bit)
        return GG_OK;
    return peer_find_out(dst, src, bit, out);
}

/* A driver that refuses such a copy is not asked again. */
static gg_status regions_find_out(gg_device *dst, gg_device *src, uint64_t bit, bool *out)
{
    struct ggi_internal_scope there, back;
    ggi_internal_begin(src, &there);
    ggi_internal_begin(dst, &back);
    gg_status status = peer_prove(dst, src, true, out);
    ggi_internal_end(dst, &back);
    ggi_internal_end(src, &there);
    *out = *out && !status;
    if (status == GG_ERR_INTERRUPTED)
        return ggi_fail(status, "the first strided copy between two devices was interrupted");
    if (status != GG_ERR_OUT_OF_MEMORY)
        atomic_fetch_or(*out ? &src->regions_direct : &src->regions_apart, bit);
    return GG_OK;
}

gg_status ggi_peer_regions_are_direct(gg_device *dst, gg_device *src, bool may_ask, bool *out)
{
    gg_status status = ggi_peer_is_direct(dst, src, may_ask, out);
    if (status || !*out)
        return status;
    const uint64_t bit = UINT64_C(1) << dst->ordinal;
    *out = atomic_load_explicit(&src->regions_direct, memory_order_acquire) & bit;
    if (*out || !may_ask || atomic_load_explicit(&src->regions_apart, memory_order_relaxed) & bit ||
        !gg_device_supports(src, GG_OP_copy_region) || !gg_device_supports(dst, GG_OP_copy_region))
        return GG_OK;
    return regions_find_out(dst, src, bit, out);
}

/* ---- the copy ---- */

gg_status ggi_device_copy_wait(const struct ggi_device_copy *copy, gg_stream *for_src,
                               gg_stream *for_dst)
{
    gg_status status = ggi_memory_wait_before_use(copy->job->src.memory, for_src, copy->wait_src);
    return status ? status
                  : ggi_memory_wait_before_use(copy->job->dst.memory, for_dst, copy->wait_dst);
}

static gg_status peer_submit(struct ggi_device_copy *copy, gg_stream *stream)
{
    struct ggi_copy_job *job = copy->job;
    if (!job->box->axes)
        return peer_call(stream, job->dst.memory, job->dst.pointer, job->src.memory,
                         job->src.pointer, job->nbytes);
    job->device = stream->device;
    job->stream = stream;
    return ggi_copy_submit_axes(job, job->dst.pointer, job->src.pointer, job->box);
}

/* @p ticket 0: the copy became part of a graph. */
static void peer_count(struct ggi_device_copy *copy, gg_stream *stream, uint64_t ticket)
{
    ggi_memory_note_use(copy->job->src.memory, stream, ticket, !ticket);
    ggi_memory_note_use(copy->job->dst.memory, stream, ticket, !ticket);
    ggi_copy_keep_owners(copy->job, stream, ticket);
}

/* The copy is ordered on the other device's current stream, too: after its earlier work, before its later work. */
static gg_status peer_between_streams(struct ggi_device_copy *copy, gg_stream *stream,
                                      gg_stream *other)
{
    gg_status status = ggi_device_copy_wait(copy, stream, stream);
    if (!status)
        status = ggi_stream_fence(stream, other, false);
    if (status)
        return status;
    status = peer_submit(copy, stream);
    peer_count(copy, stream, ggi_stream_submitted(stream));
    return status ? status : ggi_stream_fence(other, stream, false);
}

/* Only the copy becomes part of the graph. */
static gg_status peer_into_graph(struct ggi_device_copy *copy, gg_stream *stream)
{
    gg_status status = ggi_memory_wait_ready(copy->job->src.memory, stream);
    if (!status)
        status = ggi_memory_wait_ready(copy->job->dst.memory, stream);
    if (!status)
        status = peer_submit(copy, stream);
    if (!status)
        peer_count(copy, stream, 0);
    return status;
}

gg_status ggi_peer_copy(struct ggi_device_copy *copy)
{
    const struct ggi_copy_job *job = copy->job;
    gg_stream *stream = job->stream ? job->stream : copy->out;
    gg_stream *other = stream == copy->out ? copy->in : copy->out;
    if (job->flags & GG_COPY_REQUIRE_ASYNC && job->complete)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "copy: on this device, work without a stream is complete when the call "
                        "returns: pass a stream, or omit require_async");
    if (job->stream && ggi_stream_is_captured(stream))
        return peer_into_graph(copy, stream);
    if (ggi_stream_is_captured(stream) || ggi_stream_is_captured(other))
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "stream is capturing: a copy between two devices can become part of the "
                        "graph only if the stream is passed explicitly");
    gg_status status = peer_between_streams(copy, stream, other);
    return status || !job->complete ? status : ggi_stream_synchronize(stream, true);
}
