/* peer.c: two devices of this driver. */
#include "driver.h"

gg_status twin_peer_access(struct gg_device_impl *device, struct gg_device_impl *peer, int32_t *out)
{
    int can = 0;
    if (!twin_driver.peer_access)
        return twin_missing(offsetof(struct twin_driver, peer_access));
    const int code = twin_driver.peer_access(&can, device->device, peer->device);
    if (code)
        return twin_fail(code, "from device %d to device %d", (int)device->ordinal,
                         (int)peer->ordinal);
    *out = can != 0;
    return GG_OK;
}

gg_status twin_peer_enable(struct gg_device_impl *device, struct gg_device_impl *peer)
{
    struct twin_guard guard;
    int code = twin_enter(&guard, TWIN_AT_mem_alloc, device, NULL);
    if (!code)
        code = twin.peer_enable(peer);
    const bool before = code == twin.peer_enabled; /* by us or by another library */
    if (before)
        twin_clear(code);
    twin_leave(&guard);
    return code && !before ? twin_fail(code, "from device %d to device %d", (int)device->ordinal,
                                       (int)peer->ordinal)
                           : GG_OK;
}

gg_status twin_copy_peer(struct gg_stream_impl *stream, struct gg_device_impl *dst_device, void *dst,
                         struct gg_device_impl *src_device, const void *src, size_t nbytes)
{
    struct twin_guard guard;
    int code = twin_enter(&guard, TWIN_AT_copy_d2d, stream->device, stream);
    if (!code)
        code = twin.copy_peer(dst, dst_device, src, src_device, nbytes, stream->native);
    twin_leave(&guard);
    return code ? twin_fail(code, "%zu bytes, %p on device %d to %p on device %d", nbytes, src,
                            (int)src_device->ordinal, dst, (int)dst_device->ordinal)
                : GG_OK;
}
