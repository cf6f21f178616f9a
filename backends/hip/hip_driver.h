/* hip_driver.h: what the files of this folder share. */
#ifndef GPUGLUE_HIP_DRIVER_H
#define GPUGLUE_HIP_DRIVER_H

#include "../cuda_hip/driver.h"

extern struct hip_driver {
#define OWN(slot, parameters, symbol, need) int(*slot) parameters;
#include "hip.def"
#undef OWN
} hip;

int hip_copy_region(void *dst, const void *src, const struct gg_region *region,
                    enum gg_copy_kind kind, void *stream);
int hip_peer_enable(struct gg_device_impl *peer);
int hip_copy_peer(void *dst, struct gg_device_impl *dst_device, const void *src,
                  struct gg_device_impl *src_device, size_t nbytes, void *stream);

#endif
