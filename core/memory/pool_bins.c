/* pool_bins.c: size classes, the lists of free blocks, and the release of a block. */
#include "memory/pool.h"
#include "memory/uses.h"

#include <stddef.h>

/* ---- size classes: steps of 256 bytes up to 2 KiB, then eight steps for each doubling ----
 * Above 256 MiB the blocks of a class have different sizes, so that no eighth of a large block is lost. */

#define FINE_CLASSES 8u
#define FINE_STEP 256u
#define LARGE_STEP ((size_t)2 << 20)

uint32_t ggi_size_class_of(size_t nbytes)
{
    if (nbytes > GGI_POOLED_MAX)
        return GGI_NO_CLASS;
    if (nbytes <= FINE_CLASSES * FINE_STEP)
        return nbytes ? (uint32_t)((nbytes - 1) / FINE_STEP) : 0;
    uint32_t power = 63u - (uint32_t)__builtin_clzll(nbytes - 1); /* 2^power < nbytes */
    uint32_t step = (uint32_t)((nbytes - 1 - ((size_t)1 << power)) >> (power - 3));
    return FINE_CLASSES + (power - 11) * 8 + step;
}

size_t ggi_size_class_bytes(uint32_t size_class)
{
    if (size_class < FINE_CLASSES)
        return (size_class + 1) * (size_t)FINE_STEP;
    uint32_t power = 11 + (size_class - FINE_CLASSES) / 8, step = (size_class - FINE_CLASSES) % 8;
    return ((size_t)1 << power) + (((size_t)step + 1) << (power - 3));
}

size_t ggi_pool_block_size(size_t nbytes)
{
    const uint32_t size_class = ggi_size_class_of(nbytes);
    return size_class < GGI_FIXED_CLASSES ? ggi_size_class_bytes(size_class)
                                          : (nbytes + LARGE_STEP - 1) / LARGE_STEP * LARGE_STEP;
}

/* ---- lists, with the pool's lock held ---- */

gg_memory *ggi_bin_take_best(struct ggi_bin *bin, size_t nbytes)
{
    gg_memory **best = NULL, *before = NULL, *last = NULL;
    for (gg_memory **at = &bin->first; *at; last = *at, at = &(*at)->next_free)
        if ((*at)->block_size >= nbytes && (!best || (*at)->block_size < (*best)->block_size)) {
            best = at;
            before = last;
        }
    if (!best)
        return NULL;
    gg_memory *memory = *best;
    *best = memory->next_free;
    if (bin->last == memory)
        bin->last = before;
    return memory;
}

static void bin_list(struct ggi_bin *ring, struct ggi_bin *bin)
{
    bin->next = ring;
    bin->previous = ring->previous;
    ring->previous->next = bin;
    ring->previous = bin;
}

static void bin_unlist(struct ggi_bin *bin)
{
    bin->previous->next = bin->next;
    bin->next->previous = bin->previous;
    bin->next = bin->previous = NULL;
}

/* The bin is about to have blocks. */
static void bins_note_lender(struct ggi_pool *pool, struct ggi_bins *bins, uint32_t size_class)
{
    if (bins->stream && !bins->bin[size_class].next)
        bin_list(&pool->lenders[size_class], &bins->bin[size_class]);
}

static void bins_push(struct ggi_pool *pool, struct ggi_bins *bins, gg_memory *memory)
{
    struct ggi_bin *bin = &bins->bin[memory->size_class];
    memory->next_free = bin->first;
    if (!bin->first) {
        bin->last = memory;
        bins_note_lender(pool, bins, memory->size_class);
    }
    bin->first = memory;
    bins->count++;
}

void ggi_bins_splice(struct ggi_pool *pool, struct ggi_bins *to, struct ggi_bins *from)
{
    for (uint32_t i = 0; i < GGI_CLASSES && from->count; i++) {
        struct ggi_bin *bin = &from->bin[i];
        if (!bin->first)
            continue;
        bin->last->next_free = to->bin[i].first;
        if (!to->bin[i].first)
            to->bin[i].last = bin->last;
        to->bin[i].first = bin->first;
        bin->first = NULL;
        bins_note_lender(pool, to, i);
    }
    to->count += from->count;
    from->count = 0;
}

void ggi_bins_unlist(struct ggi_bins *bins)
{
    for (uint32_t i = 0; i < GGI_CLASSES; i++)
        if (bins->bin[i].next)
            bin_unlist(&bins->bin[i]);
}

static gg_stream *bin_stream(const struct ggi_bin *bin, uint32_t size_class)
{
    const struct ggi_bin *all = bin - size_class;
    return ((const struct ggi_bins *)((const char *)all - offsetof(struct ggi_bins, bin)))->stream;
}

gg_stream *ggi_pool_lender_after(struct ggi_pool *pool, uint32_t size_class, struct ggi_bin **at)
{
    struct ggi_bin *ring = &pool->lenders[size_class];
    do
        *at = *at ? (*at)->next : ring->next;
    while (*at != ring && !(*at)->first);
    return *at == ring ? NULL : bin_stream(*at, size_class);
}

gg_stream *ggi_pool_next_lender(struct ggi_pool *pool, uint32_t size_class)
{
    struct ggi_bin *ring = &pool->lenders[size_class], *bin;
    while ((bin = ring->next) != ring) {
        bin_unlist(bin);
        if (!bin->first)
            continue;
        bin_list(ring, bin);
        return bin_stream(bin, size_class);
    }
    return NULL;
}

/* A stream whose bins were released was idle, and has no list of its own any more. */
void ggi_pool_insert(struct ggi_pool *pool, gg_memory *memory)
{
    struct gg_pool_stats *stats = &pool->stats;
    gg_stream *alloc_stream = pool->by_stream ? memory->alloc_stream : NULL;
    bool busy = alloc_stream && !alloc_stream->bins_released;
    bins_push(pool, busy ? alloc_stream->bins : &pool->any, memory);
    pool->busy_blocks += busy;
    stats->cached_blocks++;
    stats->cached_bytes += memory->block_size;
    if (memory->size_class >= GGI_FIXED_CLASSES) {
        pool->large_bytes += memory->block_size;
        memory->released = ++pool->large_releases;
    }
    if (stats->cached_bytes > stats->release_threshold || pool->large_bytes > pool->large_kept)
        atomic_store_explicit(&pool->device->over, 1, memory_order_relaxed);
}

/* ---- released blocks ---- */

bool ggi_pool_free(gg_memory *memory)
{
    struct ggi_pool *pool = memory->pool;
    struct gg_pool_stats *stats = &pool->stats;
    bool free = memory->size_class != GGI_NO_CLASS &&
                !atomic_load_explicit(&memory->untracked, memory_order_relaxed) &&
                !atomic_load_explicit(&memory->captured, memory_order_relaxed) &&
                ggi_memory_prune_foreign(memory);
    pthread_mutex_lock(&pool->lock);
    stats->used_blocks--;
    stats->used_bytes -= memory->nbytes;
    if (free)
        ggi_pool_insert(pool, memory);
    else
        ggi_pool_count_retired(pool, memory->block_size);
    pthread_mutex_unlock(&pool->lock);
    return free;
}
