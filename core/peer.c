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
static bool arrives(gg_memory *to, gg_memory *from)
{
    unsigned char sent[PROBE_SIZE], got[PROBE_SIZE];
    struct gg_end host = {.host = sent}, there = {.memory = from};
    fill_probe(sent);
    memset(got, 0, sizeof got);
    if (gg_copy(&there, &host, sizeof sent, from->device->default_stream, 0) ||
        gg_fill(to, 0, "\xaa", 1, sizeof got, to->device->default_stream) || send(to, from))
        return false;
    host.host = got;
    there.memory = to;
    return !gg_copy(&host, &there, sizeof got, to->device->default_stream, 0) &&
           !memcmp(sent, got, sizeof got);
}

static bool enable(struct gg_device *device, struct gg_device *peer)
{
    if (!device->ops->peer_enable || !gg_device_supports(device, GG_OP_peer_enable))
        return false;
    ggi_begin(device, GG_OP_peer_enable, NULL, 0);
    gg_status status =
        device->ops->peer_enable(atomic_load(&device->impl), atomic_load(&peer->impl));
    return !ggi_end(device, GG_OP_peer_enable, NULL, 0, status);
}

static bool try_pair(struct gg_device *device, struct gg_device *peer)
{
    gg_memory *to = NULL, *from = NULL;
    struct ggi_own own;
    ggi_own_begin(device, &own);
    bool enabled = enable(device, peer);
    bool works = enabled && !gg_memory_alloc(device, GG_MEMORY_DEVICE, PROBE_SIZE, NULL, &from) &&
                 !gg_memory_alloc(peer, GG_MEMORY_DEVICE, PROBE_SIZE, NULL, &to) &&
                 arrives(to, from);
    gg_memory_release(to);
    gg_memory_release(from);
    ggi_own_end(device, &own);
    if (enabled && !works)
        ggi_log(
            GG_LOG_WARN, device->backend->name,
            "device %d says that it reaches the memory of device %d, but bytes that went that way "
            "were not there: copies go through the host",
            (int)device->ordinal, (int)peer->ordinal);
    return works;
}

bool ggi_peer_reaches(struct gg_device *device, struct gg_device *peer)
{
    const uint64_t bit = peer->ordinal < 64 ? (uint64_t)1 << peer->ordinal : 0;
    if (device->backend != peer->backend || device == peer || !bit)
        return false;
    if (!(atomic_load_explicit(&device->peers_known, memory_order_acquire) & bit)) {
        pthread_once(&peer_once, survive_forks);
        pthread_mutex_lock(&peer_lock);
        if (!(atomic_load(&device->peers_known) & bit)) {
            if (try_pair(device, peer))
                atomic_fetch_or(&device->peers, bit);
            atomic_fetch_or(&device->peers_known, bit);
        }
        pthread_mutex_unlock(&peer_lock);
    }
    return atomic_load(&device->peers) & bit;
}

gg_status gg_device_can_access(gg_device *device, gg_device *peer, int32_t *can)
{
    gg_status status = ggi_device_ready(device);
    if (!status)
        status = ggi_device_ready(peer);
    if (!status)
        *can = device == peer || ggi_peer_reaches(device, peer);
    return status;
}
