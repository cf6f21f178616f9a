/* pool_grow.c: allocation where no free block is found: reclaim blocks of idle streams, then allocate from the
 * driver. If that fails, take blocks from busy streams, free cached blocks, and try again. */
#include "base/error.h"
#include "memory/pool.h"
#include "memory/uses.h"

#include <time.h>

/* From the driver for blocks of less than SEGMENT_PART, and split. */
#define SEGMENT ((size_t)2 << 20)
#define SEGMENT_PART ((size_t)1 << 20)
/* Beyond this part of the most that was in use, and at least so many bytes, free blocks are freed before the pool grows. */
#define GROWTH_PART 8
#define GROWTH_LEAST ((uint64_t)32 << 20)
/* Where so little memory waits for a drain, drains that are due poll few streams. */
#define WAITING_LEAST ((uint64_t)24 << 20)
/* After so many searches of other streams' lists the pool adds a slab, if it holds no more than SPARE_MOST beyond what is in use. */
#define SEARCHES_MOST 128
#define SPARE_MOST ((uint64_t)64 << 20)
#define LARGE_PART 8 /* free large blocks are kept up to this part of the device's memory */

/* With drain_lock held: try all that needs neither more memory nor a wait of the host. @p all: poll all streams. True if *out or
 * the loan has a block. */
static bool pool_alloc_reclaimed(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, bool all,
                                 struct ggi_pool_loan *loan, gg_memory **out)
{
    struct ggi_internal_scope own;
    const struct ggi_request request = ggi_pool_request(pool, nbytes);
    if (pool->direct || request.size_class == GGI_NO_CLASS)
        return false;
    ggi_internal_begin(pool->device, &own);
    if (all)
        ggi_pool_reclaim(pool);
    else
        ggi_pool_reclaim_class(pool, request, stream);
    bool found = ggi_pool_try_again(pool, nbytes, stream, out) ||
                 ggi_pool_borrow(pool, nbytes, stream, loan);
    ggi_internal_end(pool->device, &own);
    return found;
}

/* ---- memory from the driver ---- */

/* 0 where the driver does not report it. */
static uint64_t pool_total_memory(const struct ggi_pool *pool)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    struct ggi_internal_scope own;
    ggi_internal_begin(pool->device, &own);
    ggi_suppress_errors(1);
    const gg_status status = gg_device_info(pool->device, &info);
    ggi_suppress_errors(-1);
    ggi_internal_end(pool->device, &own);
    return status ? 0 : info.total_memory;
}

/* Before the first large block of the device: set how many bytes of free large blocks are kept. They are kept only where the
 * driver's free may wait, since other libraries cannot use the memory. */
static void pool_bound_large(struct ggi_pool *pool, size_t nbytes)
{
    if (!pool->by_stream || nbytes <= GGI_FIXED_MAX || !ggi_pool_free_may_wait(pool))
        return;
    pthread_mutex_lock(&pool->lock);
    const bool known = pool->large_known;
    pthread_mutex_unlock(&pool->lock);
    const uint64_t kept = known ? 0 : pool_total_memory(pool) / LARGE_PART;
    if (!kept)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->large_known = true;
    if (!pool->threshold_set)
        pool->large_kept = kept;
    pthread_mutex_unlock(&pool->lock);
    if (kept > GGI_FIXED_MAX)
        atomic_store(&pool->pooled_max, kept < GGI_POOLED_MAX ? (size_t)kept : GGI_POOLED_MAX);
}

/* @p block_size: what the driver allocates. A larger block than needed is split. 0: exactly @p nbytes, which no list keeps. */
static gg_status pool_alloc_block(struct ggi_pool *pool, size_t nbytes, size_t block_size,
                                  gg_stream *stream, gg_memory **out)
{
    const struct ggi_request request = ggi_pool_request(pool, nbytes);
    const bool exact = !block_size || pool->direct || request.size_class == GGI_NO_CLASS;
    const size_t taken = exact ? nbytes : block_size;
    void *pointer = NULL;
    gg_status status = ggi_driver_alloc(pool, taken, stream, &pointer);
    if (status)
        return status;
    gg_memory *memory = ggi_pool_new_block(pool, pointer, taken,
                                           exact ? GGI_NO_CLASS : ggi_size_class_below(taken));
    if (!memory) {
        ggi_driver_free(pool, pointer, taken, stream);
        return ggi_memory_no_handle();
    }
    memory->retired.may_wait = exact && !pool->async && ggi_pool_free_may_wait(pool);
    if (!exact && pool->splits) {
        pthread_mutex_lock(&pool->lock);
        ggi_piece_split(pool, &pool->any, memory, request.block_size);
        pthread_mutex_unlock(&pool->lock);
    }
    /* The stream must first run the driver's own allocation. */
    *out = ggi_pool_first_reference(memory, nbytes, stream,
                                    pool->async ? ggi_stream_counted(stream) : 0);
    return GG_OK;
}

/* Add a slab for small blocks, and for others allocate a block, or a segment that is split; without memory for these, one
 * block. */
static gg_status pool_grow(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out)
{
    pool_bound_large(pool, nbytes);
    const struct ggi_request request = ggi_pool_request(pool, nbytes);
    gg_status status = GG_ERR_OUT_OF_MEMORY;
    if (!pool->direct && request.of_slab) {
        status = ggi_pool_add_slab(pool, request.size_class);
        if (!status && ggi_pool_try_again(pool, nbytes, stream, out))
            return GG_OK;
    } else if (pool->splits && request.block_size < SEGMENT_PART) {
        status = pool_alloc_block(pool, nbytes, SEGMENT, stream, out);
        if (!status)
            return GG_OK;
    }
    if (status && status != GG_ERR_OUT_OF_MEMORY)
        return status;
    return pool_alloc_block(pool, nbytes, request.block_size, stream, out);
}

/* ---- growth ---- */

/* By how many bytes the pool would exceed its bound if it grew for a block; 0 if by none, or if nothing can be freed. */
static uint64_t pool_excess(struct ggi_pool *pool, size_t nbytes)
{
    const struct gg_pool_stats *stats = &pool->stats;
    const size_t block_size = ggi_pool_request(pool, nbytes).block_size;
    pthread_mutex_lock(&pool->lock);
    const uint64_t used = stats->used_bytes + nbytes;
    const uint64_t peak = used > stats->used_peak ? used : stats->used_peak;
    const uint64_t bound = peak + peak / GROWTH_PART + GROWTH_LEAST,
                   held = stats->reserved_bytes + block_size;
    const uint64_t excess = held > bound && pool->whole_bytes ? held - bound : 0;
    pthread_mutex_unlock(&pool->lock);
    return excess;
}

/* With drain_lock held. Before the pool grows: if it then held much more than was ever in use, merge and free blocks of idle
 * streams, where the driver's free waits for nothing that is known here. True if a merged block suffices. */
static bool pool_alloc_or_shrink(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                                 gg_memory **out)
{
    struct ggi_internal_scope own;
    const uint64_t excess = pool->by_stream && !pool->direct ? pool_excess(pool, nbytes) : 0;
    bool found = false;
    if (!excess)
        return false;
    ggi_internal_begin(pool->device, &own);
    if (!ggi_pool_free_may_wait(pool) || ggi_device_is_idle(pool->device)) {
        ggi_pool_reclaim(pool);
        found = ggi_pool_try_again(pool, nbytes, stream, out);
        if (!found) {
            ggi_pool_shrink(pool, excess);
            ggi_drain_locked(pool->device, GGI_DRAIN_SOME);
        }
    }
    ggi_internal_end(pool->device, &own);
    return found;
}

struct size_request {
    const struct ggi_pool *pool;
    struct ggi_request request;
};

/* ---- idle memory that a trim has retired, but that the driver may get back only while all streams are idle ---- */

static bool trimmed_fits(const struct ggi_retired *item, const void *what)
{
    const struct size_request *request = what;
    const struct ggi_slab *slab = (const struct ggi_slab *)item;
    gg_memory *memory = ggi_memory_retired(item);
    if (!memory)
        return ggi_slab_is(item) && slab->pool == request->pool && request->request.of_slab &&
               slab->size_class == request->request.size_class;
    return memory->pool == request->pool && memory->size_class == GGI_NO_CLASS &&
           ggi_block_suits(memory, &request->request) && !atomic_load(&memory->captured) &&
           !atomic_load(&memory->untracked) && ggi_memory_prune(memory, true);
}

/* With the lock held. */
static void pool_restore(struct ggi_pool *pool, struct ggi_retired *item)
{
    struct ggi_slab *slab = (struct ggi_slab *)item;
    gg_memory *memory = ggi_memory_retired(item);
    ggi_pool_uncount_retired(pool, memory ? memory->block_size : slab->size);
    if (memory) {
        memory->size_class = ggi_size_class_below(memory->block_size);
        memory->retired.may_wait = false;
        ggi_pool_insert(pool, memory);
    } else { /* the handles of its blocks were deleted */
        slab->carved = 0;
        slab->trimmed = false;
        ggi_pool_list_slab(pool, slab);
    }
}

/* With drain_lock held: move a block or slab of the class back to the pool. */
static bool pool_take_back(struct ggi_pool *pool, size_t nbytes)
{
    const struct size_request request = {pool, ggi_pool_request(pool, nbytes)};
    if (pool->direct || request.request.size_class == GGI_NO_CLASS ||
        !ggi_pool_stats(pool).retired_blocks)
        return false;
    struct ggi_retired *item = ggi_retire_pick(pool->device, trimmed_fits, &request);
    if (!item)
        return false;
    pthread_mutex_lock(&pool->lock);
    pool_restore(pool, item);
    pthread_mutex_unlock(&pool->lock);
    return true;
}

/* ---- where the driver has no memory ---- */

/* Memory that the driver may get back later. @p idle: all streams were idle, so that no idle block waits for that. */
static bool pool_has_busy(struct ggi_pool *pool, bool idle)
{
    pthread_mutex_lock(&pool->lock);
    const bool waits = !idle && ggi_pool_free_may_wait(pool) && pool->stats.cached_blocks;
    const bool any = waits || pool->stats.retired_blocks || ggi_pool_has_lenders(pool);
    pthread_mutex_unlock(&pool->lock);
    return any;
}

/* A whole block that only unknown streams may still use. */
static bool exported_fits(const struct ggi_retired *item, const void *pool)
{
    gg_memory *memory = ggi_memory_retired(item);
    return memory && memory->pool == pool && !memory->slab && !memory->segment &&
           !atomic_load(&memory->captured) && atomic_load(&memory->untracked) &&
           ggi_memory_prune(memory, true);
}

/* With drain_lock held, all known streams idle: after the unlock, wait for the unknown streams, which may use exported
 * memory. Freeing one exported block does that; there may be no memory for a new block to free. */
static void pool_want_exported(struct ggi_pool *pool)
{
    struct gg_device *device = pool->device;
    const bool frees =
        device->flags & GG_DEVICE_FREE_WAITS && pool->kind == GG_MEMORY_DEVICE && !pool->async;
    struct ggi_retired *item = frees ? ggi_retire_pick(device, exported_fits, pool) : NULL;
    if (!item) {
        ggi_epoch_poll(device, true);
        return;
    }
    ggi_memory_retired(item)->size_class = GGI_NO_CLASS;
    item->next = device->ready;
    device->ready = item;
}

/* With drain_lock held. Try idle blocks first, including those of a trim; then blocks of busy streams, for which @p stream will
 * wait. *idle: all streams were. True if *out or the loan has a block. */
static bool pool_alloc_held(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, bool *idle,
                            struct ggi_pool_loan *loan, gg_memory **out)
{
    struct ggi_internal_scope own;
    ggi_internal_begin(pool->device, &own);
    *idle = ggi_drain_locked(pool->device, GGI_DRAIN_ALL);
    const bool found = pool_alloc_reclaimed(pool, nbytes, stream, true, loan, out) ||
                       (pool_take_back(pool, nbytes) &&
                        pool_alloc_reclaimed(pool, nbytes, stream, true, loan, out)) ||
                       ggi_pool_steal(pool, nbytes, stream, loan);
    ggi_internal_end(pool->device, &own);
    return found;
}

/* With drain_lock held, if no block was found: free idle blocks to the driver. They are freed only once all streams are idle
 * (*idle): earlier, the free might wait for work that waits for this thread. Until then the blocks stay in the pool, where other
 * allocations find them. For the same reason the device is waited for only then. */
static void pool_free_held(struct ggi_pool *pool, bool *wait, bool *idle)
{
    struct ggi_internal_scope own;
    ggi_internal_begin(pool->device, &own);
    ggi_pool_reclaim(pool); /* a direct pool's too, and what was released meanwhile */
    if (*idle || !ggi_pool_free_may_wait(pool))
        ggi_pool_trim(pool, 0);
    *idle = ggi_drain_locked(pool->device, GGI_DRAIN_ALL) && *idle;
    if (*idle && *wait && atomic_load(&pool->device->epoch.waiting)) {
        *wait = false;
        pool_want_exported(pool);
    }
    ggi_internal_end(pool->device, &own);
}

/* Without a lock. */
static bool pool_alloc_after_trim(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                                  bool *wait, bool *idle, gg_memory **out)
{
    struct gg_device *device = pool->device;
    struct ggi_pool_loan loan = {.memory = NULL};
    pthread_mutex_lock(&device->drain_lock);
    bool down = atomic_load(&ggi_shutting_down);
    bool found = !down && pool_alloc_held(pool, nbytes, stream, idle, &loan, out);
    if (loan.memory) {
        ggi_drain_unlock(device);
        found = ggi_pool_use_loan(pool, nbytes, stream, &loan, out);
        pthread_mutex_lock(&device->drain_lock);
        down = atomic_load(&ggi_shutting_down);
    }
    if (!down && !found)
        pool_free_held(pool, wait, idle);
    ggi_drain_unlock(device);
    return found;
}

/* Beyond the device's memory or the limit: freeing blocks would not help. */
static bool pool_can_never_alloc(struct ggi_pool *pool, size_t nbytes)
{
    const struct gg_pool_stats stats = ggi_pool_stats(pool);
    if (stats.limit && nbytes > stats.limit)
        return true;
    const uint64_t total = pool_total_memory(pool);
    return pool->kind == GG_MEMORY_DEVICE && total && nbytes > total;
}

/* Wait a short time, interruptibly, for work that still uses released blocks. Try the driver again whenever memory
 * was freed to it, and at the end. */
static gg_status pool_alloc_wait(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                                 gg_memory **out)
{
    const struct timespec pause = {0, 100000};
    struct gg_device *device = pool->device;
    const size_t block_size = ggi_pool_request(pool, nbytes).block_size;
    uint64_t limit = ggi_now_ns() + 40 * GGI_SLICE_NS;
    bool last = pool_can_never_alloc(pool, nbytes);
    bool wait = true, idle = false;
    gg_status status = GG_ERR_OUT_OF_MEMORY;
    while (!last && status == GG_ERR_OUT_OF_MEMORY) {
        uint64_t held = ggi_pool_stats(pool).reserved_bytes;
        last = !pool_has_busy(pool, idle) || ggi_now_ns() > limit;
        if (ggi_interrupted())
            return ggi_fail(GG_ERR_INTERRUPTED, "the wait for memory was interrupted");
        if (pool_alloc_after_trim(pool, nbytes, stream, &wait, &idle, out))
            return GG_OK;
        if (atomic_load(&ggi_shutting_down))
            return ggi_device_unusable(device);
        if (last || ggi_pool_stats(pool).reserved_bytes < held)
            status = pool_alloc_block(pool, nbytes, block_size, stream, out);
        if (status == GG_ERR_OUT_OF_MEMORY && last) /* without rounding up it may fit */
            status = pool_alloc_block(pool, nbytes, 0, stream, out);
        if (status == GG_ERR_OUT_OF_MEMORY && !last)
            nanosleep(&pause, NULL);
    }
    return status;
}

/* Of an allocation for which neither its stream nor the slabs had a block. Where that often happens, the pool has too few. */
static bool pool_has_few(struct ggi_pool *pool, size_t nbytes)
{
    if (pool->direct || !pool->by_stream || !ggi_pool_request(pool, nbytes).of_slab)
        return false;
    pthread_mutex_lock(&pool->lock);
    const bool few = pool->stats.reserved_bytes < pool->stats.used_bytes + SPARE_MOST &&
                     (!pool->full_at || pool->stats.reserved_bytes < pool->full_at) &&
                     ++pool->searches > SEARCHES_MOST;
    if (few)
        pool->searches = 0;
    pthread_mutex_unlock(&pool->lock);
    return few;
}

/* GG_OK with *out NULL: without memory for a slab, or as its blocks are taken already, the allocation goes on without it. */
static gg_status pool_add_blocks(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                                 gg_memory **out)
{
    *out = NULL;
    const gg_status status = ggi_pool_add_slab(pool, ggi_pool_request(pool, nbytes).size_class);
    pthread_mutex_lock(&pool->lock);
    pool->full_at = status == GG_ERR_OUT_OF_MEMORY ? pool->stats.reserved_bytes : 0;
    pthread_mutex_unlock(&pool->lock);
    if (!status)
        ggi_pool_try_again(pool, nbytes, stream, out);
    return status == GG_ERR_OUT_OF_MEMORY ? GG_OK : status;
}

/* A poll costs more than the rest of an allocation. One that is made later frees the blocks of several releases at once. */
static enum ggi_drain_pace pool_drain_pace(struct ggi_pool *pool, bool due)
{
    if (atomic_load_explicit(&pool->device->others_waiting, memory_order_relaxed))
        return GGI_PACE_OTHERS;
    if (!due)
        return GGI_PACE_FULL;
    pthread_mutex_lock(&pool->lock);
    const bool light = pool->stats.retired_bytes < WAITING_LEAST;
    pthread_mutex_unlock(&pool->lock);
    return light ? GGI_PACE_LIGHT : GGI_PACE_DUE;
}

/* This does not wait for another thread that drains. */
static bool pool_alloc_after_drain(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                                   bool due, gg_memory **out)
{
    ggi_drain_paced(pool->device, pool_drain_pace(pool, due));
    pthread_mutex_lock(&pool->lock);
    pool->since_drain = 0;
    pool->drain_interval = ggi_drain_interval(pool->device);
    pthread_mutex_unlock(&pool->lock);
    return ggi_pool_try_again(pool, nbytes, stream, out) ||
           ggi_pool_alloc_done(pool, nbytes, stream, out);
}

/* Waits for drain_lock only where no block was found without it: a thread that drains then returns blocks. To grow instead would
 * let the pool hold more than was ever in use, the more threads allocate the more. */
gg_status ggi_pool_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, bool due,
                         gg_memory **out)
{
    struct gg_device *device = pool->device;
    struct ggi_pool_loan loan = {.memory = NULL};
    gg_status status = GG_OK;
    bool found = false;
    if (!due && pool_has_few(pool, nbytes)) {
        status = pool_add_blocks(pool, nbytes, stream, out);
        if (status || *out)
            return status;
    }
    if (!due && ggi_pool_alloc_done(pool, nbytes, stream, out))
        return GG_OK;
    if (pool_alloc_after_drain(pool, nbytes, stream, due, out))
        return GG_OK;
    pthread_mutex_lock(&device->drain_lock);
    if (atomic_load(&ggi_shutting_down))
        status = ggi_device_unusable(device);
    if (!status)
        found = pool_alloc_reclaimed(pool, nbytes, stream, false, &loan, out) ||
                pool_alloc_or_shrink(pool, nbytes, stream, out);
    ggi_drain_unlock(device);
    if (loan.memory)
        found = ggi_pool_use_loan(pool, nbytes, stream, &loan, out);
    if (!status && !found)
        status = pool_grow(pool, nbytes, stream, out);
    if (status == GG_ERR_OUT_OF_MEMORY)
        status = pool_alloc_wait(pool, nbytes, stream, out);
    return status == GG_ERR_OUT_OF_MEMORY ? ggi_pool_refuse(pool, nbytes) : status;
}
