/* copy.c: stream-ordered copies and fills. */
#include "ze.h"

/* Smaller copies take less time than a change of the list. Copies within the memory of devices run where kernels do,
 * since that is faster there; Intel's driver decides likewise (isCopyOffloadAllowed). */
#define LARGE_COPY (64u << 10)

static enum ze_engine copy_engine(enum gg_copy_kind kind, size_t nbytes)
{
    if (kind == GG_COPY_D2D)
        return ZE_ENGINE_COMPUTE;
    return nbytes > LARGE_COPY ? ZE_ENGINE_COPY : ZE_ENGINE_ANY;
}

/* The driver determines the kind of both pointers itself, and whether they are pinned. */
gg_status ze_copy(struct gg_stream_impl *stream, void *dst, const void *src, size_t nbytes,
                  enum gg_copy_kind kind, int32_t pageable)
{
    (void)pageable;
    if (kind != GG_COPY_H2D && kind != GG_COPY_D2H && kind != GG_COPY_D2D)
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL, "copy of kind %d", (int)kind);
    const int code = ZE_APPEND_ON(stream, copy_engine(kind, nbytes),
                                  ze.append_copy(stream->tail, dst, src, nbytes, NULL, 0, NULL));
    return code ? ze_fail(code, "%zu bytes, %p to %p", nbytes, src, dst) : GG_OK;
}

/* ---- peers: devices of one context; nothing needs to be enabled ---- */

gg_status ze_peer_access(struct gg_device_impl *device, struct gg_device_impl *peer, int32_t *out)
{
    uint8_t can = 0;
    int code = 0;
    if (!ze.device_peer)
        return ze_missing("zeDeviceCanAccessPeer");
    if (device->context == peer->context)
        code = ze.device_peer(device->gpu->handle, peer->gpu->handle, &can);
    if (code)
        return ze_fail(code, "from device %d to device %d", (int)device->ordinal,
                       (int)peer->ordinal);
    *out = can != 0;
    return GG_OK;
}

gg_status ze_peer_enable(struct gg_device_impl *device, struct gg_device_impl *peer)
{
    int32_t can = 0;
    const gg_status status = ze_peer_access(device, peer, &can);
    if (status || can)
        return status;
    return ze_api->fail(GG_ERR_UNSUPPORTED, NULL,
                        "devices %d and %d cannot access each other's memory", (int)device->ordinal,
                        (int)peer->ordinal);
}

gg_status ze_copy_peer(struct gg_stream_impl *stream, struct gg_device_impl *dst_device, void *dst,
                       struct gg_device_impl *src_device, const void *src, size_t nbytes)
{
    (void)dst_device;
    (void)src_device;
    return ze_copy(stream, dst, src, nbytes, GG_COPY_D2D, 0);
}

/* ---- rectangular regions and fills ---- */

/* The core keeps all sizes below 2^31. */
gg_status ze_copy_region(struct gg_stream_impl *stream, void *dst, const void *src,
                         const struct gg_region *region, enum gg_copy_kind kind)
{
    const struct ze_copy_region box = {.width = (uint32_t)region->width,
                                       .height = (uint32_t)region->height,
                                       .depth = region->depth > 1 ? (uint32_t)region->depth : 0};
    const size_t nbytes = region->width * region->height * region->depth;
    if (!ze.append_region)
        return ze_missing("zeCommandListAppendMemoryCopyRegion");
    const int code = ZE_APPEND_ON(
        stream, copy_engine(kind, nbytes),
        ze.append_region(stream->tail, dst, &box, (uint32_t)region->dst_pitch,
                         (uint32_t)region->dst_slice, src, &box, (uint32_t)region->src_pitch,
                         (uint32_t)region->src_slice, NULL, 0, NULL));
    return code ? ze_fail(code, "%zu x %zu x %zu bytes, %p to %p", region->depth, region->height,
                          region->width, src, dst)
                : GG_OK;
}

/* The pattern is read before the call returns. It is little-endian: its first bytes are the value's lowest. */
gg_status ze_fill(struct gg_stream_impl *stream, void *dst, uint32_t pattern, uint32_t pattern_size,
                  size_t count)
{
    if (pattern_size != 1 && pattern_size != 2 && pattern_size != 4)
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL, "a pattern of %u bytes",
                            (unsigned)pattern_size);
    const int code = ZE_APPEND(stream, ze.append_fill(stream->list, dst, &pattern, pattern_size,
                                                      count * pattern_size, NULL, 0, NULL));
    return code ? ze_fail(code, "%zu times a pattern of %u bytes at %p", count,
                          (unsigned)pattern_size, dst)
                : GG_OK;
}
