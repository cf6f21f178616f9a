/* peer.h: copies between two devices of one backend without the host. */
#ifndef GPUGLUE_PEER_H
#define GPUGLUE_PEER_H

#include "transfer/copy_job.h"

struct ggi_device_copy {
    struct ggi_copy_job *job; /* between memory of two devices */
    gg_stream *in, *out;      /* of the destination's device, of the source's */
    bool wait_src, wait_dst;  /* no stream was given for it: wait for its known uses */
};

/* Make the streams wait for earlier uses of the memory. */
gg_status ggi_device_copy_wait(const struct ggi_device_copy *copy, gg_stream *for_src,
                               gg_stream *for_dst);

/* Whether direct copies arrive. If this is unknown and @p may_ask, it is tested; the test fails only if it is
 * interrupted. */
gg_status ggi_peer_is_direct(gg_device *dst, gg_device *src, bool may_ask, bool *out);
/* The same for boxes, by the devices' copy_region. */
gg_status ggi_peer_regions_are_direct(gg_device *dst, gg_device *src, bool may_ask, bool *out);
gg_status ggi_peer_copy(struct ggi_device_copy *copy);

#endif
