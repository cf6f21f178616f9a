/* peer.c: whether one device writes into another's memory by itself: asked once per pair, and believed when
 * bytes that went that way were read back. */
#include "copy.h"

#include <stdlib.h>
#include <string.h>

#define PROBE_SIZE 4096u

static pthread_mutex_t peer_lock = PTHREAD_MUTEX_INITIALIZER; /* one pair is tried at a time */
static pthread_once_t peer_once = PTHREAD_ONCE_INIT;

static void survive_forks(void)
{
    ggi_reset_in_child(&peer_lock);
}

/* Bytes that depend on their place. */
static void fill_probe(unsigned char *bytes)
{
    for (size_t i = 0; i < PROBE_SIZE; i++)
        bytes[i] = (unsigned char)(i * 37 + i / 256 + 11);
}

static gg_status send(gg_memory *to, gg_memory *from)
{
    gg_stream *stream = from->device->default_stream;
    struct gg_device *device = from->device;
    gg_status status = ggi_memory_order(from, stream);
    if (!status)
        status = ggi_memory_order(to, stream);
    if (status)
        return status;
    ggi_begin(device, GG_OP_copy, stream, PROBE_SIZE);
    status =
        device->ops->copy(stream->impl, to->pointer, from->pointer, PROBE_SIZE, GG_COPY_D2D, false);
    status = ggi_end(device, GG_OP_copy, stream, PROBE_SIZE, status);
    uint64_t ticket = ggi_stream_submitted(stream);
    ggi_memory_used(from, stream, ticket);
    ggi_memory_used(to, stream, ticket);
    return status ? status : ggi_stream_finish(stream, false);
}

/* Up on the one, across, down from the other. */
static gg_status look_what_arrives(gg_memory *to, gg_memory *from, bool *arrives)
{
    unsigned char sent[PROBE_SIZE], got[PROBE_SIZE];
    struct gg_end host = {.host = sent}, there = {.memory = from};
    fill_probe(sent);
    memset(got, 0, sizeof got);
    gg_status status = gg_copy(&there, &host, sizeof sent, from->device->default_stream, 0);
    if (!status)
        status = gg_fill(to, 0, "\xaa", 1, sizeof got, to->device->default_stream);
    if (!status)
        status = send(to, from);
    host.host = got;
    there.memory = to;
    if (!status)
        status = gg_copy(&host, &there, sizeof got, to->device->default_stream, 0);
    *arrives = !memcmp(sent, got, sizeof got);
    return status;
}

static gg_status enable(struct gg_device *device, struct gg_device *peer)
{
    if (!device->ops->peer_enable || !gg_device_supports(device, GG_OP_peer_enable))
        return GG_ERR_UNSUPPORTED;
    ggi_begin(device, GG_OP_peer_enable, NULL, 0);
    gg_status status =
        device->ops->peer_enable(atomic_load(&device->impl), atomic_load(&peer->impl));
    return ggi_end(device, GG_OP_peer_enable, NULL, 0, status);
}

static gg_status try_pair(struct gg_device *device, struct gg_device *peer, bool *works)
{
    gg_memory *to = NULL, *from = NULL;
    gg_status status = gg_memory_alloc(device, GG_MEMORY_DEVICE, PROBE_SIZE, NULL, &from);
    if (!status)
        status = gg_memory_alloc(peer, GG_MEMORY_DEVICE, PROBE_SIZE, NULL, &to);
    if (!status)
        status = look_what_arrives(to, from, works);
    gg_memory_release(to);
    gg_memory_release(from);
    if (!status && !*works)
        ggi_log(
            GG_LOG_WARN, device->backend->name,
            "device %d says that it reaches the memory of device %d, but bytes that went that way "
            "were not there: copies go through the host",
            (int)device->ordinal, (int)peer->ordinal);
    return status;
}

/* With the lock held. A failure leaves the question open. */
static gg_status find_out(struct gg_device *device, struct gg_device *peer, uint64_t bit)
{
    bool works = false;
    struct ggi_own own;
    const struct gg_error before = ggi_thread()->error;
    ggi_relax_begin(device, &own);
    gg_status status = enable(device, peer);
    ggi_relax_end(device, &own);
    if (status == GG_ERR_UNSUPPORTED) { /* which is no failure */
        ggi_thread()->error = before;
        status = GG_OK;
    } else if (!status) {
        status = try_pair(device, peer, &works);
    }
    if (status)
        return status;
    if (works)
        atomic_fetch_or(&device->peers, bit);
    atomic_fetch_or(&device->peers_known, bit);
    return GG_OK;
}

gg_status ggi_peer_reaches(struct gg_device *device, struct gg_device *peer, bool *out)
{
    const uint64_t bit = peer->ordinal < 64 ? (uint64_t)1 << peer->ordinal : 0;
    gg_status status = GG_OK;
    *out = false;
    if (device->backend != peer->backend || device == peer || !bit)
        return GG_OK;
    if (!(atomic_load_explicit(&device->peers_known, memory_order_acquire) & bit)) {
        pthread_once(&peer_once, survive_forks);
        pthread_mutex_lock(&peer_lock);
        if (!(atomic_load(&device->peers_known) & bit))
            status = find_out(device, peer, bit);
        pthread_mutex_unlock(&peer_lock);
    }
    *out = atomic_load(&device->peers) & bit;
    return status;
}

gg_status gg_device_can_access(gg_device *device, gg_device *peer, int32_t *can)
{
    bool reaches = device == peer;
    gg_status status = ggi_device_ready(device);
    if (!status)
        status = ggi_device_ready(peer);
    if (!status && !reaches)
        status = ggi_peer_reaches(device, peer, &reaches);
    if (!status)
        *can = reaches;
    return status;
}
