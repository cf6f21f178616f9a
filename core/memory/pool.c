/* pool.c: blocks that are allocated without a driver call: from a list, or carved from a slab. */
#include "base/env.h"
#include "memory/pool.h"
#include "memory/uses.h"

#include <stdlib.h>

#define RETURNED_MOST 16 /* blocks that are added to the lists with the lock taken once */

bool ggi_pool_free_may_wait(const struct ggi_pool *pool)
{
    return pool->kind != GG_MEMORY_DEVICE || !(pool->device->flags & GG_DEVICE_FREE_NEVER_WAITS);
}

struct gg_pool_stats ggi_pool_stats(struct ggi_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    ggi_stashes_close(pool);
    struct gg_pool_stats stats = pool->stats;
    pthread_mutex_unlock(&pool->lock);
    return stats;
}

bool ggi_pool_is_over(struct ggi_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    const bool over = pool->stats.cached_bytes > pool->stats.release_threshold ||
                      pool->large_bytes > pool->large_kept;
    pthread_mutex_unlock(&pool->lock);
    return over;
}

void ggi_pool_count_alloc(struct ggi_pool *pool, size_t nbytes)
{
    struct gg_pool_stats *stats = &pool->stats;
    stats->allocations++;
    stats->used_blocks++;
    stats->used_bytes += nbytes;
    if (stats->used_bytes > stats->used_peak)
        stats->used_peak = stats->used_bytes;
}

/* Work through the raw address of a block, on its alloc_stream, is not recorded: before the driver frees the
 * block, that stream is polled: by the drain, once for all blocks that wait for it. A free that may wait needs no poll. With
 * drain_lock held, which keeps the stream. */
static bool block_stream_is_done(gg_memory *memory)
{
    gg_stream *stream = memory->alloc_stream;
    if (memory->retired.may_wait || !stream || stream->gone)
        return true;
    const bool ownerless = ggi_stream_is_ownerless(stream);
    if (!ownerless && !memory->release_ticket)
        memory->release_ticket = ggi_stream_counted(stream);
    memory->retired.after = stream;
    memory->retired.ticket = ownerless ? atomic_load(&memory->ready_ticket) : memory->release_ticket;
    return ggi_stream_is_complete(stream, memory->retired.ticket, false);
}

/* The driver frees an async block in the order of its alloc_stream, unless that stream may be destroyed or belongs to
 * another thread: see ggi_driver_free. */
static bool block_frees_in_order(const gg_memory *memory)
{
    const gg_stream *stream = memory->alloc_stream;
    return memory->pool->async && (!stream || !ggi_stream_is_ownerless(stream));
}

/* The free would become part of the capture of its stream or, on the default stream, invalidate that of a stream which is
 * ordered with it, also one of other code. */
static bool block_free_disturbs_capture(const gg_memory *memory)
{
    return memory->pool->async &&
           ggi_other_capturing(ggi_driver_free_stream(memory->device, memory->alloc_stream));
}

static bool block_idle(gg_memory *memory)
{
    if (block_free_disturbs_capture(memory))
        return false;
    if (memory->size_class != GGI_NO_CLASS || block_frees_in_order(memory))
        return ggi_memory_prune_foreign(memory) ||
               ggi_memory_wait_for_use(memory, memory->alloc_stream);
    if (!ggi_memory_prune(memory, false))
        return ggi_memory_wait_for_use(memory, NULL);
    return block_stream_is_done(memory);
}

/* With the lock held. */
static void block_uncount_retired(struct ggi_pool *pool, const gg_memory *memory)
{
    if (pool->by_stream && memory->alloc_stream)
        ggi_stash_count(pool, memory->alloc_stream->bins);
    ggi_pool_uncount_retired(pool, memory->block_size);
}

/* With the lock held. A drain has found the uses by other streams done; if the alloc stream is known to be, too, any stream
 * may take the block. Pieces stay with their stream, for they are merged with others of it. */
static void block_leave_stream(const struct ggi_pool *pool, gg_memory *memory)
{
    if (pool->by_stream && memory->alloc_stream && !memory->segment &&
        ggi_block_is_done(memory, memory->alloc_stream))
        ggi_block_set_stream(memory, NULL);
}

void ggi_pool_take_returned(struct ggi_pool *pool)
{
    gg_memory *memory;
    if (!pool->returned)
        return;
    pthread_mutex_lock(&pool->lock);
    while ((memory = pool->returned)) {
        pool->returned = (gg_memory *)memory->retired.next;
        block_uncount_retired(pool, memory);
        block_leave_stream(pool, memory);
        ggi_pool_insert(pool, memory);
    }
    pthread_mutex_unlock(&pool->lock);
    pool->returned_count = 0;
}

/* Several blocks are added to the lists at once, since other threads may want the lock. */
static void block_return(struct ggi_pool *pool, gg_memory *memory)
{
    memory->retired.next = (struct ggi_retired *)pool->returned;
    pool->returned = memory;
    if (++pool->returned_count >= RETURNED_MOST)
        ggi_pool_take_returned(pool);
}

static bool block_free(gg_memory *memory)
{
    struct ggi_pool *pool = memory->pool;
    if (memory->size_class != GGI_NO_CLASS) { /* by a drain */
        block_return(pool, memory);
        return false;
    }
    /* First: once freed, the addresses may be another thread's. */
    if (memory->kind != GG_MEMORY_DEVICE)
        ggi_pinned_remove(memory);
    if (!ggi_driver_free(pool, memory->pointer, memory->block_size, memory->alloc_stream)) {
        memory->retired.after = NULL; /* a later drain tries again */
        ggi_retire_keep(pool->device, &memory->retired);
        return false;
    }
    pthread_mutex_lock(&pool->lock);
    block_uncount_retired(pool, memory);
    pthread_mutex_unlock(&pool->lock);
    return true;
}

gg_memory *ggi_pool_new_block(struct ggi_pool *pool, void *pointer, size_t block_size,
                              uint32_t size_class)
{
    static const struct ggi_backing pooled = {block_idle, block_free};
    gg_memory *memory = ggi_memory_new_handle(pool->device, pool->kind, pointer, block_size);
    if (!memory)
        return NULL;
    memory->backing = &pooled;
    memory->pool = pool;
    memory->block_size = block_size;
    memory->size_class = size_class;
    /* Last: other threads read its size from the index. */
    if (pool->kind == GG_MEMORY_DEVICE || !ggi_pinned_add(memory))
        return memory;
    ggi_memory_delete(memory);
    return NULL;
}

struct ggi_pool *ggi_pool_new(struct gg_device *device, enum gg_memory_kind kind)
{
    static const struct ggi_block_handles handles = {ggi_pool_new_block, ggi_memory_delete};
    struct ggi_pool *pool = calloc(1, sizeof *pool);
    const int64_t allocator = ggi_env_value(GGI_ENV_ALLOCATOR, GGI_ALLOCATOR_POOL);
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pool->device = device;
    pool->handles = &handles;
    pool->kind = kind;
    pool->drain_interval = ggi_drain_interval(device);
    pool->by_stream = kind == GG_MEMORY_DEVICE;
    pool->async = pool->by_stream && allocator == GGI_ALLOCATOR_ASYNC;
    pool->direct = kind == GG_MEMORY_MANAGED || pool->async || allocator == GGI_ALLOCATOR_DIRECT;
    pool->splits = pool->by_stream && !pool->direct && ggi_pool_free_may_wait(pool);
    for (uint32_t i = 0; i < GGI_CLASSES; i++)
        pool->lenders[i].next = pool->lenders[i].previous = &pool->lenders[i];
    pool->stats.release_threshold = pool->by_stream ? UINT64_MAX : GGI_PINNED_CACHED;
    pool->large_kept = UINT64_MAX;
    atomic_init(&pool->pooled_max, GGI_FIXED_MAX);
    return pool;
}

void ggi_pool_prepare(gg_memory *memory, size_t nbytes, gg_stream *stream, uint64_t ready_ticket)
{
    ggi_block_set_stream(memory, stream);
    memory->nbytes = nbytes;
    atomic_store_explicit(&memory->untracked, 0, memory_order_relaxed);
    atomic_store_explicit(&memory->captured, 0, memory_order_relaxed);
    atomic_store_explicit(&memory->ready_waiter, 0, memory_order_relaxed);
    atomic_store_explicit(&memory->ready_ticket, ready_ticket, memory_order_relaxed);
    atomic_store_explicit(&memory->result, 0, memory_order_relaxed);
    atomic_store_explicit(&memory->refs, 1, memory_order_release); /* see ggi_pinned_find */
}

/* With the lock held: the next block of a slab. */
static gg_memory *pool_carve(struct ggi_pool *pool, struct ggi_request request)
{
    struct ggi_slab *slab = request.of_slab ? pool->slab[request.size_class] : NULL;
    if (!slab)
        return NULL;
    gg_memory *memory = ggi_pool_new_block(pool, slab->base + slab->carved * request.block_size,
                                           request.block_size, request.size_class);
    if (!memory)
        return NULL;
    memory->slab = slab;
    if (++slab->carved == slab->capacity)
        pool->slab[request.size_class] = slab->next_open;
    return memory;
}

/* With the lock held: after some allocations one fails, so that its thread takes the slow path, which drains. The others go on. */
static bool pool_drain_is_due(struct ggi_pool *pool, enum ggi_attempt *attempt)
{
    if (*attempt == GGI_ATTEMPT_LATER || ++pool->since_drain < pool->drain_interval)
        return false;
    const bool waiting = ggi_drain_waiting(pool->device);
    if (waiting && *attempt == GGI_ATTEMPT_ONLY)
        return pool->since_drain % pool->drain_interval == 0;
    pool->since_drain = 0;
    if (waiting)
        *attempt = GGI_ATTEMPT_DUE;
    return waiting;
}

/* With the lock held. *own: the block was in the stream's own list. */
static gg_memory *pool_find(struct ggi_pool *pool, struct ggi_request request, gg_stream *stream,
                            bool *own)
{
    gg_memory *memory = stream ? ggi_pool_pop(pool, stream, request) : NULL;
    *own = memory;
    if (!memory)
        memory = ggi_pool_pop(pool, NULL, request);
    if (!memory)
        memory = pool_carve(pool, request);
    if (!memory && stream) {
        memory = ggi_pool_pop_larger(pool, stream, request);
        *own = memory;
    }
    return memory ? memory : ggi_pool_pop_larger(pool, NULL, request);
}

/* A ticket after all work on the stream, including work through raw addresses: another stream waits for it before
 * it uses the block. 0: the work from before the release is known to be done. On a stream without an owner no marker can be
 * recorded. */
static uint64_t pool_ready_ticket(const gg_memory *memory, gg_stream *stream)
{
    if (ggi_block_is_done(memory, stream))
        return 0;
    if (ggi_stream_is_ownerless(stream))
        return atomic_load_explicit(&stream->submitted, memory_order_acquire);
    return ggi_stream_counted(stream);
}

/* With the lock, which this takes. */
static gg_memory *pool_take(struct ggi_pool *pool, struct ggi_request request, gg_stream *stream,
                            enum ggi_attempt *attempt, size_t nbytes, bool *own)
{
    gg_memory *memory = NULL;
    ggi_pool_lock(pool, stream ? stream->bins : NULL);
    if (!pool_drain_is_due(pool, attempt))
        memory = pool_find(pool, request, stream, own);
    if (memory && stream && pool->by_stream) /* else the peak would have what was released already */
        ggi_stash_count(pool, stream->bins);
    if (memory)
        ggi_pool_count_alloc(pool, nbytes);
    if (memory && *own && atomic_load_explicit(&stream->bins->stash.releases, memory_order_relaxed))
        ggi_stash_fill(pool, stream, request.size_class);
    pthread_mutex_unlock(&pool->lock);
    return memory;
}

bool ggi_pool_try_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                        enum ggi_attempt *attempt, gg_memory **out)
{
    bool own = false;
    gg_memory *memory = NULL;
    const struct ggi_request request = ggi_pool_request(pool, nbytes);
    if (request.size_class == GGI_NO_CLASS)
        return false;
    if (stream)
        memory = ggi_stash_take(pool, stream, request, nbytes);
    own = memory;
    if (!memory)
        memory = pool_take(pool, request, stream, attempt, nbytes, &own);
    if (!memory)
        return false;
    if (!own)
        ggi_memory_forget_uses(memory);
    ggi_pool_prepare(memory, nbytes, stream, own ? pool_ready_ticket(memory, stream) : 0);
    *out = memory;
    return true;
}

/* With the lock held. */
static gg_memory *pool_find_done(struct ggi_pool *pool, struct ggi_request request)
{
    gg_memory *memory = NULL;
    gg_stream *other;
    struct ggi_bin *at = NULL;
    for (int i = 0; !memory && i < GGI_LENDERS; i++) {
        other = ggi_pool_lender_after(pool, request.size_class, &at);
        if (!other)
            break;
        memory = ggi_pool_pop_done(pool, other, request);
    }
    return memory;
}

bool ggi_pool_alloc_done(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out)
{
    gg_memory *memory = NULL;
    const struct ggi_request request = ggi_pool_request(pool, nbytes);
    if (!pool->by_stream || request.size_class == GGI_NO_CLASS)
        return false;
    pthread_mutex_lock(&pool->lock);
    memory = pool_find_done(pool, request);
    if (memory) {
        ggi_stash_count(pool, stream->bins);
        ggi_pool_count_alloc(pool, nbytes);
    }
    pthread_mutex_unlock(&pool->lock);
    if (!memory)
        return false;
    ggi_memory_forget_uses(memory);
    ggi_pool_prepare(memory, nbytes, stream, 0);
    *out = memory;
    return true;
}
