/* pool_stash.c: the release of a block. Where threads wait for the pool's lock, the blocks of a stream go through a few words of
 * its own for a number of releases, so that threads with streams of their own do not meet. Most programs never open a stash. */
#include "memory/pool.h"
#include "memory/uses.h"

#include <stddef.h>

#define OPEN_FOR 256 /* releases, until the lock is tried again */
#define WAYS 4       /* places for a size class */
#define CLASS_BITS 15u
#define UNCOUNTED_MOST \
    ((uint64_t)1 << 20) /* bytes of a stream that the pool still counts as used */

_Static_assert(_Alignof(max_align_t) > CLASS_BITS, "a handle's address has bits for its class");

/* ---- places: a word has a block and bits of its class, so that those of other classes stay where they are ---- */

static uintptr_t stash_word(const gg_memory *memory)
{
    return (uintptr_t)memory | (memory->size_class & CLASS_BITS);
}

static gg_memory *stash_block(uintptr_t word)
{
    return (gg_memory *)(word & ~(uintptr_t)CLASS_BITS);
}

static _Atomic(uintptr_t) *stash_place(struct ggi_stash *stash, uint32_t size_class, uint32_t way)
{
    return &stash->blocks[(size_class + way) % GGI_STASH];
}

static _Atomic(uintptr_t) *stash_free_place(struct ggi_stash *stash, uint32_t size_class)
{
    for (uint32_t way = 0; way < WAYS; way++)
        if (!atomic_load_explicit(stash_place(stash, size_class, way), memory_order_relaxed))
            return stash_place(stash, size_class, way);
    return NULL;
}

/* ---- open and closed; with the lock held ---- */

void ggi_stash_count_slow(struct ggi_pool *pool, struct ggi_stash *stash)
{
    struct gg_pool_stats *stats = &pool->stats;
    const uint64_t retired = atomic_exchange(&stash->retired_blocks, 0);
    stats->used_blocks -= retired;
    stats->retired_blocks += retired;
    stats->retired_bytes += atomic_exchange(&stash->retired_bytes, 0);
    stats->allocations += atomic_exchange(&stash->allocations, 0);
    stats->used_bytes += atomic_exchange(&stash->used_change, 0);
    if (stats->used_bytes > stats->used_peak)
        stats->used_peak = stats->used_bytes;
}

/* A block is no longer used. */
static void pool_uncount_used(struct ggi_pool *pool, const gg_memory *memory)
{
    if (memory->alloc_stream && pool->by_stream)
        ggi_stash_count(pool, memory->alloc_stream->bins);
    pool->stats.used_blocks--;
    pool->stats.used_bytes -= memory->nbytes;
}

static void stash_return(struct ggi_pool *pool, gg_memory *memory)
{
    pool_uncount_used(pool, memory);
    ggi_pool_insert(pool, memory);
}

static void stash_empty(struct ggi_pool *pool, struct ggi_bins *bins)
{
    uintptr_t word;
    for (int i = 0; i < GGI_STASH; i++)
        if ((word = atomic_exchange(&bins->stash.blocks[i], 0)))
            stash_return(pool, stash_block(word));
    ggi_stash_count(pool, bins);
}

/* Blocks that no allocation has taken lately make room for others. */
static void stash_open(struct ggi_pool *pool, struct ggi_bins *bins)
{
    if (bins->stash.listed)
        stash_empty(pool, bins);
    atomic_store(&bins->stash.releases, OPEN_FOR);
    if (bins->stash.listed)
        return;
    bins->stash.listed = true;
    bins->stash.next = pool->stashes;
    pool->stashes = bins;
}

void ggi_pool_lock_contended(struct ggi_pool *pool, struct ggi_bins *bins)
{
    pthread_mutex_lock(&pool->lock);
    if (bins && !bins->stream->bins_released && !atomic_load(&bins->stash.releases))
        stash_open(pool, bins);
}

/* A thread that adds a block reads `releases` afterwards, and takes it back if the stash was closed. */
void ggi_stash_close(struct ggi_pool *pool, struct ggi_bins *bins)
{
    if (!bins->stash.listed)
        return;
    atomic_store(&bins->stash.releases, 0);
    stash_empty(pool, bins);
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

/* So that the next allocations need no lock, although blocks that other streams use do not return to the stash. */
void ggi_stash_fill(struct ggi_pool *pool, gg_stream *stream, uint32_t size_class)
{
    const struct ggi_request request = {size_class, true, ggi_size_class_bytes(size_class)};
    struct ggi_stash *stash = &stream->bins->stash;
    _Atomic(uintptr_t) *place;
    gg_memory *memory;
    if (size_class >= ggi_pool_slab_classes(pool)) /* their sizes differ */
        return;
    while ((place = stash_free_place(stash, size_class)) &&
           (memory = ggi_pool_pop(pool, stream, request))) {
        uintptr_t none = 0;
        if (memory->segment || memory->block_size != request.block_size) {
            ggi_pool_insert(pool, memory); /* ggi_stash_take would refuse it */
            return;
        }
        pool->stats.used_blocks++;
        pool->stats.used_bytes += memory->nbytes;
        if (!atomic_compare_exchange_strong(place, &none, stash_word(memory))) {
            stash_return(pool, memory);
            return;
        }
    }
}

/* ---- without the lock ---- */

/* One release less is left; false if the stash is closed. */
static bool stash_accepts(struct ggi_stash *stash)
{
    uint32_t left = atomic_load_explicit(&stash->releases, memory_order_relaxed);
    return left && atomic_compare_exchange_strong(&stash->releases, &left, left - 1);
}

/* Whether the block was released, into the stash of its stream or, if that was closed meanwhile, into the lists. */
static bool stash_put(struct ggi_pool *pool, gg_memory *memory)
{
    gg_stream *stream = memory->alloc_stream;
    if (memory->segment || ggi_block_is_large(memory) || !stream || !pool->by_stream)
        return false;
    struct ggi_stash *stash = &stream->bins->stash;
    if (!stash_accepts(stash))
        return false;
    _Atomic(uintptr_t) *place = stash_free_place(stash, memory->size_class);
    uintptr_t none = 0, word = stash_word(memory);
    if (!place)
        return false;
    ggi_stream_use_retain(stream); /* from now on other threads may take the block */
    const bool put = atomic_compare_exchange_strong(place, &none, word);
    if (put && !atomic_load(&stash->releases) && (word = atomic_exchange(place, 0))) {
        pthread_mutex_lock(&pool->lock);
        stash_return(pool, stash_block(word));
        pthread_mutex_unlock(&pool->lock);
    }
    ggi_stream_use_release(stream);
    return put;
}

/* If the stash was closed meanwhile, nothing else might count what was done without the lock. */
static void stash_count_if_closed(struct ggi_pool *pool, struct ggi_bins *bins)
{
    if (atomic_load(&bins->stash.releases))
        return;
    pthread_mutex_lock(&pool->lock);
    ggi_stash_count(pool, bins);
    pthread_mutex_unlock(&pool->lock);
}

static void stash_count_taken(struct ggi_pool *pool, struct ggi_bins *bins, uint64_t used_change)
{
    atomic_fetch_add(&bins->stash.used_change, used_change);
    atomic_fetch_add(&bins->stash.allocations, 1);
    stash_count_if_closed(pool, bins);
}

/* Whether the release of a block that has to be retired is counted without the lock. */
static bool stash_count_retired(struct ggi_pool *pool, const gg_memory *memory)
{
    if (!memory->alloc_stream || !pool->by_stream)
        return false;
    struct ggi_bins *bins = memory->alloc_stream->bins;
    if (atomic_load_explicit(&bins->stash.retired_bytes, memory_order_relaxed) >= UNCOUNTED_MOST ||
        !stash_accepts(&bins->stash))
        return false;
    atomic_fetch_sub(&bins->stash.used_change, memory->nbytes);
    atomic_fetch_add(&bins->stash.retired_bytes, memory->block_size);
    atomic_fetch_add(&bins->stash.retired_blocks, 1);
    stash_count_if_closed(pool, bins);
    return true;
}

/* 0 if no place has a block of these bits. */
static uintptr_t stash_take_word(struct ggi_stash *stash, uint32_t size_class)
{
    for (uint32_t way = 0; way < WAYS; way++) {
        _Atomic(uintptr_t) *place = stash_place(stash, size_class, way);
        uintptr_t word = atomic_load_explicit(place, memory_order_relaxed);
        if (word && (word & CLASS_BITS) == (size_class & CLASS_BITS) &&
            atomic_compare_exchange_strong(place, &word, 0))
            return word;
    }
    return 0;
}

gg_memory *ggi_stash_take_listed(struct ggi_pool *pool, gg_stream *stream,
                                 struct ggi_request request, size_t nbytes)
{
    struct ggi_stash *stash = &stream->bins->stash;
    gg_memory *memory = stash_block(stash_take_word(stash, request.size_class));
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

/* Other code may queue work that is not counted on a stream whose handle it has. */
static inline void block_note_release(gg_memory *memory)
{
    const gg_stream *stream = memory->alloc_stream;
    const bool known =
        stream && atomic_load_explicit(&stream->capturable, memory_order_relaxed) != GGI_CAPTURABLE;
    memory->release_ticket =
        known ? atomic_load_explicit(&stream->submitted, memory_order_acquire) : 0;
}

bool ggi_pool_free(gg_memory *memory)
{
    struct ggi_pool *pool = memory->pool;
    block_note_release(memory);
    bool free = memory->size_class != GGI_NO_CLASS &&
                !atomic_load_explicit(&memory->untracked, memory_order_relaxed) &&
                !atomic_load_explicit(&memory->captured, memory_order_relaxed) &&
                ggi_memory_prune_foreign(memory);
    if (free ? stash_put(pool, memory) : stash_count_retired(pool, memory))
        return free;
    ggi_pool_lock(pool, pool->by_stream && memory->alloc_stream ? memory->alloc_stream->bins : NULL);
    pool_uncount_used(pool, memory);
    if (free)
        ggi_pool_insert(pool, memory);
    else
        ggi_pool_count_retired(pool, memory->block_size);
    pthread_mutex_unlock(&pool->lock);
    return free;
}

/* What a drain would find out that examined the block: see block_idle. The words of its uses were folded. */
bool ggi_block_knows_use(gg_memory *memory)
{
    if (!memory->pool || memory->size_class == GGI_NO_CLASS ||
        atomic_load_explicit(&memory->untracked, memory_order_relaxed) ||
        atomic_load_explicit(&memory->captured, memory_order_relaxed))
        return false;
    const struct ggi_use *found = NULL;
    for (uint32_t i = 0; i < memory->use_count; i++) {
        const struct ggi_use *use = &memory->uses[i];
        if (use->stream->device != memory->device)
            return false;
        if (!found && use->stream != memory->alloc_stream)
            found = use;
    }
    if (!found)
        return false;
    memory->retired.after = found->stream;
    memory->retired.ticket = found->ticket;
    return true;
}
