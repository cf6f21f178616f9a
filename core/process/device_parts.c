/* device_parts.c: what each device owns above the runtime: pools, the pinned ring and the staging lanes. */
#include "base/error.h"
#include "memory/pool.h"
#include "runtime/device.h"
#include "transfer/ring.h"
#include "transfer/staging.h"

#include <stdlib.h>

#define PINNED_BACKLOG \
    (64u << 20) /* bytes of released pinned memory that may wait for idle streams */

/* An earlier attempt may have made some of them already. */
static gg_status parts_open(struct gg_device *device)
{
    static const enum gg_memory_kind kinds[GGI_POOLS] = {GG_MEMORY_DEVICE, GG_MEMORY_PINNED,
                                                         GG_MEMORY_MANAGED};
    if (!device->ring)
        device->ring = ggi_ring_new();
    if (!device->staging)
        device->staging = ggi_staging_new(device);
    bool complete = device->ring && device->staging;
    for (int i = 0; i < GGI_POOLS; i++) {
        if (!device->pools[i])
            device->pools[i] = ggi_pool_new(device, kinds[i]);
        complete = complete && device->pools[i];
    }
    return complete ? GG_OK : ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a device");
}

static gg_status parts_stream_new(gg_stream *stream)
{
    stream->bins = calloc(1, sizeof *stream->bins);
    if (!stream->bins)
        return GG_ERR_OUT_OF_MEMORY;
    stream->bins->stream = stream;
    return GG_OK;
}

static bool parts_must_free(struct gg_device *device)
{
    return ggi_pool_stats(device->pools[1]).retired_bytes > PINNED_BACKLOG;
}

/* Blocks whose free may wait for busy streams stay in the pool, where allocations find them, until all streams are idle. Much
 * pinned memory is freed even so: see parts_must_free. */
static void parts_trim(struct gg_device *device, struct ggi_pool *pool)
{
    const struct gg_pool_stats stats = ggi_pool_stats(pool);
    if (!ggi_pool_is_over(pool))
        return;
    if (pool->by_stream && ggi_pool_free_may_wait(pool) && !ggi_device_is_idle(device)) {
        atomic_store(&device->over, 1); /* for the next drain */
        return;
    }
    ggi_pool_reclaim(pool);
    ggi_pool_trim(pool, stats.release_threshold);
    if (ggi_pool_is_over(pool)) /* by blocks of a stream that other code keeps busy */
        atomic_store(&device->over, 1);
}

static void parts_before_sweep(struct gg_device *device)
{
    for (int i = 0; i < GGI_POOLS; i++)
        parts_trim(device, device->pools[i]);
}

static void parts_after_sweep(struct gg_device *device)
{
    for (int i = 0; i < GGI_POOLS; i++)
        if (device->pools[i])
            ggi_pool_take_returned(device->pools[i]);
}

const struct ggi_device_parts ggi_device_parts = {.open = parts_open,
                                                  .stream_new = parts_stream_new,
                                                  .stream_gone = ggi_pool_release_bins,
                                                  .must_free = parts_must_free,
                                                  .before_sweep = parts_before_sweep,
                                                  .after_sweep = parts_after_sweep};

gg_status gg_device_trim(gg_device *device)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    ggi_staging_trim(device);
    ggi_host_cache_trim(device);
    for (int i = 0; i < GGI_POOLS; i++)
        ggi_pool_trim_now(device->pools[i], 0);
    return GG_OK;
}

gg_status gg_trim(void)
{
    gg_status status = GG_OK;
    for (struct gg_backend *b = ggi_backend_next_opened(NULL); b; b = ggi_backend_next_opened(b))
        for (int32_t i = 0; i < b->device_count && !status; i++)
            if (atomic_load(&b->devices[i].impl))
                status = gg_device_trim(&b->devices[i]);
    return status;
}
