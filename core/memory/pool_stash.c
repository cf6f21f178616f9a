/* pool_stash.c: the release of a block. Where threads wait for the pool's lock, the blocks of a stream go through a few words of
 * its own for a number of releases, so that threads with streams of their own do not meet. Most programs never open a stash. */
#include "memory/pool.h"
#include "memory/uses.h"

#define OPEN_FOR 256 /* releases, until the lock is tried again */

/* ---- open and closed; with the lock held ---- */

static void stash_open(struct ggi_pool *pool, struct ggi_bins *bins)
{
    atomic_store(&bins->stash.releases, OPEN_FOR);
    if (bins->stash.listed)
        return;
    bins->stash.listed = true;
    bins->stash.next = pool->stashes;
    pool->stashes = bins;
}

void ggi_pool_lock(struct ggi_pool *pool, struct ggi_bins *bins)
{
    if (!pthread_mutex_trylock(&pool->lock))
        return;
    pthread_mutex_lock(&pool->lock);
    if (bins && !bins->stream->bins_released)
        stash_open(pool, bins);
}

static void stash_count(struct ggi_pool *pool, struct ggi_bins *bins)
{
    if (!atomic_load_explicit(&bins->stash.allocations, memory_order_relaxed))
        return;
    pool->stats.allocations += atomic_exchange(&bins->stash.allocations, 0);
    pool->stats.used_bytes += atomic_exchange(&bins->stash.used_change, 0);
    if (pool->stats.used_bytes > pool->stats.used_peak)
        pool->stats.used_peak = pool->stats.used_bytes;
}

/* A block is no longer used. */
static void pool_uncount_used(struct ggi_pool *pool, const gg_memory *memory)
{
    if (memory->alloc_stream && pool->by_stream)
        stash_count(pool, memory->alloc_stream->bins);
    pool->stats.used_blocks--;
    pool->stats.used_bytes -= memory->nbytes;
}

static void stash_return(struct ggi_pool *pool, gg_memory *memory)
{
    pool_uncount_used(pool, memory);
    ggi_pool_insert(pool, memory);
}

/* A thread that adds a block reads `releases` afterwards, and takes it back if the stash was closed. */
void ggi_stash_close(struct ggi_pool *pool, struct ggi_bins *bins)
{
    gg_memory *memory;
    if (!bins->stash.listed)
        return;
    atomic_store(&bins->stash.releases, 0);
    for (int i = 0; i < GGI_STASH; i++)
        if ((memory = atomic_exchange(&bins->stash.blocks[i], NULL)))
            stash_return(pool, memory);
    stash_count(pool, bins);
    struct ggi_bins **at = &pool->stashes;
    while (*at != bins)
        at = &(*at)->stash.next;
    *at = bins->stash.next;
    bins->stash.listed = false;
}

void ggi_stashes_close(struct ggi_pool *pool)
{
    while (pool->stashes)
        ggi_stash_close(pool, pool->stashes);
}

/* ---- without the lock ---- */

/* False if the block has to be released with the lock. */
static bool stash_put(struct ggi_pool *pool, gg_memory *memory)
{
    gg_stream *stream = memory->alloc_stream;
    if (memory->segment || ggi_block_is_large(memory) || !stream || !pool->by_stream)
        return false;
    struct ggi_stash *stash = &stream->bins->stash;
    _Atomic(gg_memory *) *place = &stash->blocks[memory->size_class % GGI_STASH];
    uint32_t left = atomic_load_explicit(&stash->releases, memory_order_relaxed);
    gg_memory *none = NULL;
    if (!left || !atomic_compare_exchange_strong(&stash->releases, &left, left - 1))
        return false;
    ggi_stream_use_retain(stream); /* from now on other threads may take the block */
    const bool put = atomic_compare_exchange_strong(place, &none, memory);
    gg_memory *back = put && !atomic_load(&stash->releases) ? atomic_exchange(place, NULL) : NULL;
    if (back) {
        pthread_mutex_lock(&pool->lock);
        stash_return(pool, back);
        pthread_mutex_unlock(&pool->lock);
    }
    ggi_stream_use_release(stream);
    return put;
}

/* If the stash was closed meanwhile, nothing else might count the block until it is released. */
static void stash_count_taken(struct ggi_pool *pool, struct ggi_bins *bins, uint64_t used_change)
{
    atomic_fetch_add(&bins->stash.used_change, used_change);
    atomic_fetch_add(&bins->stash.allocations, 1);
    if (atomic_load(&bins->stash.releases))
        return;
    pthread_mutex_lock(&pool->lock);
    stash_count(pool, bins);
    pthread_mutex_unlock(&pool->lock);
}

gg_memory *ggi_stash_take(struct ggi_pool *pool, gg_stream *stream, struct ggi_request request,
                          size_t nbytes)
{
    struct ggi_stash *stash = &stream->bins->stash;
    _Atomic(gg_memory *) *place = &stash->blocks[request.size_class % GGI_STASH];
    if (!atomic_load_explicit(place, memory_order_relaxed))
        return NULL;
    gg_memory *memory = atomic_exchange(place, NULL);
    if (memory && memory->size_class == request.size_class &&
        memory->block_size == request.block_size) {
        stash_count_taken(pool, stream->bins, (uint64_t)nbytes - memory->nbytes);
        return memory;
    }
    if (memory) {
        pthread_mutex_lock(&pool->lock);
        stash_return(pool, memory);
        pthread_mutex_unlock(&pool->lock);
    }
    return NULL;
}

bool ggi_pool_free(gg_memory *memory)
{
    struct ggi_pool *pool = memory->pool;
    bool free = memory->size_class != GGI_NO_CLASS &&
                !atomic_load_explicit(&memory->untracked, memory_order_relaxed) &&
                !atomic_load_explicit(&memory->captured, memory_order_relaxed) &&
                ggi_memory_prune_foreign(memory);
    if (free && stash_put(pool, memory))
        return true;
    ggi_pool_lock(pool, pool->by_stream && memory->alloc_stream ? memory->alloc_stream->bins : NULL);
    pool_uncount_used(pool, memory);
    if (free)
        ggi_pool_insert(pool, memory);
    else
        ggi_pool_count_retired(pool, memory->block_size);
    pthread_mutex_unlock(&pool->lock);
    return free;
}
