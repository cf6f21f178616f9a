/* peer.c: access and copies between two devices of this driver. */
#include "driver.h"

gg_status cuhip_peer_access(struct gg_device_impl *device, struct gg_device_impl *peer, int32_t *out)
{
    int can = 0;
    if (!cuhip_driver.peer_access)
        return cuhip_missing(offsetof(struct cuhip_driver, peer_access));
    const int code = cuhip_driver.peer_access(&can, device->device, peer->device);
    if (code)
        return cuhip_fail(code, "from device %d to device %d", (int)device->ordinal,
                          (int)peer->ordinal);
    *out = can != 0;
    return GG_OK;
}

gg_status cuhip_peer_enable(struct gg_device_impl *device, struct gg_device_impl *peer)
{
    const int code = CUHIP_IN_CONTEXT(mem_alloc, device, NULL, cuhip.peer_enable(peer));
    if (code == cuhip.peer_enabled) { /* by us or by another library */
        cuhip_clear_error(code);
        return GG_OK;
    }
    return code ? cuhip_fail(code, "from device %d to device %d", (int)device->ordinal,
                             (int)peer->ordinal)
                : GG_OK;
}

gg_status cuhip_copy_peer(struct gg_stream_impl *stream, struct gg_device_impl *dst_device,
                          void *dst, struct gg_device_impl *src_device, const void *src,
                          size_t nbytes)
{
    const gg_status status = cuhip_check_capturable(stream, "a copy between devices");
    if (status)
        return status;
    const int code =
        CUHIP_IN_CONTEXT(copy_d2d, stream->device, stream,
                         cuhip.copy_peer(dst, dst_device, src, src_device, nbytes, stream->native));
    return code ? cuhip_fail(code, "%zu bytes, %p on device %d to %p on device %d", nbytes, src,
                             (int)src_device->ordinal, dst, (int)dst_device->ordinal)
                : GG_OK;
}
