/* driver_alloc.c: memory from the driver, counted, within the pool's limit. */
#include "base/error.h"
#include "runtime/call.h"
#include "memory/numa.h"
#include "memory/pool.h"
#include "memory/uses.h"

/* A free that waits for the device ends a round of its epoch. */
static void driver_free_now(struct ggi_pool *pool, void *pointer, size_t nbytes)
{
    struct gg_device *device = pool->device;
    const bool waits = pool->kind == GG_MEMORY_DEVICE && device->flags & GG_DEVICE_FREE_WAITS;
    const uint64_t round = waits ? ggi_epoch_begin(device) : 0;
    if (!GGI_CALL(device, mem_free, NULL, nbytes, (atomic_load(&device->impl), pool->kind, pointer)) &&
        waits)
        ggi_epoch_end(device, round);
}

/* If @p stream is destroyed, or may be, its work has finished: use one that is not ordered with others. The last blocks are
 * freed after that is destroyed, at the shutdown. */
gg_stream *ggi_driver_free_stream(struct gg_device *device, gg_stream *stream)
{
    gg_stream *join = atomic_load(&device->join_stream);
    if (stream && !stream->gone && !ggi_stream_is_ownerless(stream))
        return stream;
    return join ? join : device->default_stream;
}

static bool driver_free_async(struct ggi_pool *pool, void *pointer, size_t nbytes, gg_stream *stream)
{
    struct gg_device *device = pool->device;
    gg_stream *on = ggi_driver_free_stream(device, stream);
    const gg_status status = GGI_CALL(device, mem_free_async, on, nbytes, (on->impl, pointer));
    return !status || status == GG_ERR_DEVICE_LOST;
}

bool ggi_driver_free(struct ggi_pool *pool, void *pointer, size_t nbytes, gg_stream *stream)
{
    bool freed = true;
    if (pool->async)
        freed = driver_free_async(pool, pointer, nbytes, stream);
    else
        driver_free_now(pool, pointer, nbytes);
    pthread_mutex_lock(&pool->lock);
    pool->stats.driver_calls++;
    pool->stats.reserved_bytes -= freed ? nbytes : 0;
    pthread_mutex_unlock(&pool->lock);
    return freed;
}

/* Counts the bytes before the driver allocates them; false beyond the limit. */
static bool driver_reserve(struct ggi_pool *pool, size_t nbytes)
{
    struct gg_pool_stats *stats = &pool->stats;
    bool fits = true;
    pthread_mutex_lock(&pool->lock);
    if (stats->limit &&
        (stats->reserved_bytes > stats->limit || nbytes > stats->limit - stats->reserved_bytes))
        fits = false;
    stats->reserved_bytes += fits ? nbytes : 0;
    stats->driver_calls += fits;
    pthread_mutex_unlock(&pool->lock);
    return fits;
}

static void driver_count_reserved(struct ggi_pool *pool, size_t nbytes, bool allocated)
{
    struct gg_pool_stats *stats = &pool->stats;
    pthread_mutex_lock(&pool->lock);
    if (!allocated)
        stats->reserved_bytes -= nbytes;
    else if (stats->reserved_bytes > stats->reserved_peak)
        stats->reserved_peak = stats->reserved_bytes;
    pthread_mutex_unlock(&pool->lock);
}

static gg_status driver_alloc_async(struct gg_device *device, size_t nbytes, gg_stream *stream,
                                    void **out)
{
    if (!gg_device_supports(device, GG_OP_mem_alloc_async) || !device->ops->mem_free_async)
        return ggi_fail(
            GG_ERR_UNSUPPORTED,
            "GPUGLUE_ALLOCATOR=async: the driver of %s:%d has no pool; set it to pool or direct",
            device->backend->name, (int)device->ordinal);
    if (ggi_stream_is_captured(stream))
        return ggi_fail(
            GG_ERR_UNSUPPORTED,
            "stream is capturing: memory that the driver allocates there would belong to "
            "the graph; allocate before the capture begins");
    gg_stream *join;
    gg_status status = ggi_join_stream(device, &join); /* since no drain can create it */
    if (status)
        return status;
    const bool beside = stream->is_default && ggi_stream_capturing(stream);
    if (beside) /* the driver refuses an allocation on the default stream */
        stream = join;
    status = GGI_CALL(device, mem_alloc_async, stream, nbytes, (stream->impl, nbytes, out));
    if (beside && !status)
        ggi_stream_synchronize_uninterruptible(join);
    return status;
}

/* Copies from and to another node's memory are slower. */
static gg_status driver_alloc_now(struct gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                                  void **out)
{
    const bool preferred =
        ggi_numa_prefer(kind == GG_MEMORY_PINNED ? ggi_numa_of_device(device) : -1);
    const gg_status status =
        GGI_CALL(device, mem_alloc, NULL, nbytes, (atomic_load(&device->impl), kind, nbytes, out));
    ggi_numa_restore(preferred);
    return status;
}

gg_status ggi_driver_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, void **out)
{
    struct gg_device *device = pool->device;
    struct ggi_internal_scope own;
    if (!driver_reserve(pool, nbytes))
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "the pool's limit would be exceeded");
    ggi_capture_relax_begin(device, &own); /* an allocation must not end a capture */
    gg_status status = pool->async ? driver_alloc_async(device, nbytes, stream, out)
                                   : driver_alloc_now(device, pool->kind, nbytes, out);
    ggi_capture_relax_end(device, &own);
    driver_count_reserved(pool, nbytes, !status);
    return status;
}
