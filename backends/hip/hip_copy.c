/* hip_copy.c: copies with prototypes of HIP's own: rectangular regions, and between two devices. */
#include "hip_driver.h"
#include "hip_types.h"

/* ---- rectangular regions -------------------------------------------------------------------------------------- */

static int copy_kind_number(enum gg_copy_kind kind)
{
    return kind == GG_COPY_H2D   ? hipMemcpyHostToDevice
           : kind == GG_COPY_D2H ? hipMemcpyDeviceToHost
                                 : hipMemcpyDeviceToDevice;
}

static struct hip_pitched hip_pitched_pointer(const void *pointer, size_t pitch, size_t slice,
                                              size_t width)
{
    return (struct hip_pitched){(void *)(uintptr_t)pointer, pitch, width, slice / pitch};
}

int hip_copy_region(void *dst, const void *src, const struct gg_region *region,
                    enum gg_copy_kind kind, void *stream)
{
    const struct hip_copy_3d copy = {
        .src = hip_pitched_pointer(src, region->src_pitch, region->src_slice, region->width),
        .dst = hip_pitched_pointer(dst, region->dst_pitch, region->dst_slice, region->width),
        .width = region->width,
        .height = region->height,
        .depth = region->depth,
        .kind = copy_kind_number(kind)};
    if (region->depth > 1)
        return hip.copy_3d ? hip.copy_3d(&copy, stream) : hipErrorNotSupported;
    return hip.copy_2d ? hip.copy_2d(dst, region->dst_pitch, src, region->src_pitch, region->width,
                                     region->height, copy_kind_number(kind), stream)
                       : hipErrorNotSupported;
}

/* ---- peers -------------------------------------------------------------------------------------- */

int hip_peer_enable(struct gg_device_impl *peer)
{
    return hip.peer_enable ? hip.peer_enable(peer->device, 0) : hipErrorNotSupported;
}

int hip_copy_peer(void *dst, struct gg_device_impl *dst_device, const void *src,
                  struct gg_device_impl *src_device, size_t nbytes, void *stream)
{
    return hip.copy_peer
               ? hip.copy_peer(dst, dst_device->device, src, src_device->device, nbytes, stream)
               : hipErrorNotSupported;
}
