/* pool_bins.c: size classes, and the lists of free blocks. */
#include "memory/pool.h"

/* ---- size classes: steps of 256 bytes up to 2 KiB, then eight steps for each doubling ----
 * Above 256 MiB the blocks of a class have different sizes, so that no eighth of a large block is lost. */

#define FINE_CLASSES 8u
#define FINE_STEP 256u
#define LARGE_STEP ((size_t)2 << 20)
#define FINE_UNIT ((size_t)4096)
/* Bytes of the last one of so many classes. */
#define CLASSES_MAX(classes) ((size_t)FINE_CLASSES * FINE_STEP << ((classes) / 8 - 1))

static inline uint32_t class_of(size_t nbytes)
{
    if (nbytes > GGI_POOLED_MAX)
        return GGI_NO_CLASS;
    if (nbytes <= FINE_CLASSES * FINE_STEP)
        return nbytes ? (uint32_t)((nbytes - 1) / FINE_STEP) : 0;
    uint32_t power = 63u - (uint32_t)__builtin_clzll(nbytes - 1); /* 2^power < nbytes */
    uint32_t step = (uint32_t)((nbytes - 1 - ((size_t)1 << power)) >> (power - 3));
    return FINE_CLASSES + (power - 11) * 8 + step;
}

uint32_t ggi_size_class_of(size_t nbytes)
{
    return class_of(nbytes);
}

static inline size_t class_bytes(uint32_t size_class)
{
    if (size_class < FINE_CLASSES)
        return (size_class + 1) * (size_t)FINE_STEP;
    uint32_t power = 11 + (size_class - FINE_CLASSES) / 8, step = (size_class - FINE_CLASSES) % 8;
    return ((size_t)1 << power) + (((size_t)step + 1) << (power - 3));
}

size_t ggi_size_class_bytes(uint32_t size_class)
{
    return class_bytes(size_class);
}

static inline uint32_t class_below(size_t block_size)
{
    return block_size < FINE_STEP         ? GGI_NO_CLASS
           : block_size >= GGI_POOLED_MAX ? GGI_CLASSES - 1
                                          : class_of(block_size + 1) - 1;
}

uint32_t ggi_size_class_below(size_t block_size)
{
    return class_below(block_size);
}

/* Sizes of blocks that may be split: in 64 to 128 steps for each doubling. */
static size_t fine_size(size_t nbytes)
{
    const uint32_t power = 63u - (uint32_t)__builtin_clzll(nbytes);
    const size_t step = (size_t)1 << (power - 6);
    const size_t unit = step < FINE_UNIT ? FINE_UNIT : step > LARGE_STEP ? LARGE_STEP : step;
    return (nbytes + unit - 1) & ~(unit - 1);
}

/* Whether a block of so many bytes is carved from a slab. */
static inline bool size_is_of_slab(const struct ggi_pool *pool, size_t nbytes)
{
    return nbytes <= CLASSES_MAX(pool->splits ? GGI_SPLIT_SLAB_CLASSES : GGI_SLAB_CLASSES);
}

static inline size_t pool_block_size(const struct ggi_pool *pool, size_t nbytes)
{
    if (pool->splits && !size_is_of_slab(pool, nbytes))
        return fine_size(nbytes);
    const uint32_t size_class = class_of(nbytes);
    return size_class < GGI_FIXED_CLASSES ? class_bytes(size_class)
                                          : (nbytes + LARGE_STEP - 1) / LARGE_STEP * LARGE_STEP;
}

size_t ggi_pool_block_size(const struct ggi_pool *pool, size_t nbytes)
{
    return pool_block_size(pool, nbytes);
}

struct ggi_request ggi_pool_request(struct ggi_pool *pool, size_t nbytes)
{
    if (nbytes > atomic_load_explicit(&pool->pooled_max, memory_order_relaxed))
        return (struct ggi_request){GGI_NO_CLASS, false, nbytes};
    if (size_is_of_slab(pool, nbytes)) {
        const uint32_t size_class = class_of(nbytes);
        return (struct ggi_request){size_class, true, class_bytes(size_class)};
    }
    const size_t block_size = pool_block_size(pool, nbytes);
    return (struct ggi_request){class_below(block_size), false, block_size};
}

/* ---- lists, with the pool's lock held ---- */

void ggi_link_add(struct ggi_free_link *ring, gg_memory *memory)
{
    memory->free.next = ring->next;
    memory->free.previous = ring;
    ring->next->previous = &memory->free;
    ring->next = &memory->free;
}

static void link_remove(gg_memory *memory)
{
    memory->free.previous->next = memory->free.next;
    memory->free.next->previous = memory->free.previous;
    memory->free.next = NULL;
}

gg_memory *ggi_link_take(struct ggi_free_link *ring)
{
    if (ring->next == ring)
        return NULL;
    gg_memory *memory = ggi_free_memory(ring->next);
    link_remove(memory);
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
static inline void bins_note_filled(struct ggi_pool *pool, struct ggi_bins *bins,
                                    uint32_t size_class)
{
    struct ggi_bin *bin = &bins->bin[size_class];
    bins->filled[size_class / 64] |= UINT64_C(1) << size_class % 64;
    if (!bin->blocks.next)
        bin->blocks.next = bin->blocks.previous = &bin->blocks;
    if (bins->stream && !bin->next)
        bin_list(&pool->lenders[size_class], bin);
}

/* @p sign: 1 or -1. */
static inline void pool_count_cached(struct ggi_pool *pool, const gg_memory *memory, uint64_t sign)
{
    const uint64_t bytes = sign * memory->block_size;
    pool->stats.cached_blocks += sign;
    pool->stats.cached_bytes += bytes;
    if (memory->segment)
        pool->piece_bytes += bytes;
    else if (!memory->slab)
        pool->whole_bytes += bytes;
    if (ggi_block_is_large(memory))
        pool->large_bytes += bytes;
}

void ggi_bins_push(struct ggi_pool *pool, struct ggi_bins *bins, gg_memory *memory)
{
    struct ggi_bin *bin = &bins->bin[memory->size_class];
    if (ggi_bin_is_empty(bin))
        bins_note_filled(pool, bins, memory->size_class);
    ggi_link_add(&bin->blocks, memory);
    pool_count_cached(pool, memory, 1);
}

void ggi_pool_unlist(struct ggi_pool *pool, gg_memory *memory)
{
    link_remove(memory);
    pool_count_cached(pool, memory, (uint64_t)-1);
}

void ggi_link_splice(struct ggi_free_link *to, struct ggi_free_link *from)
{
    from->previous->next = to->next;
    to->next->previous = from->previous;
    to->next = from->next;
    from->next->previous = to;
    from->next = from->previous = from;
}

bool ggi_bins_splice(struct ggi_pool *pool, struct ggi_bins *to, struct ggi_bins *from)
{
    bool moved = false;
    for (uint32_t word = 0; word < sizeof from->filled / sizeof from->filled[0]; word++) {
        for (uint64_t bits = from->filled[word]; bits; bits &= bits - 1) {
            const uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (ggi_bin_is_empty(&from->bin[i]))
                continue;
            bins_note_filled(pool, to, i);
            ggi_link_splice(&to->bin[i].blocks, &from->bin[i].blocks);
            moved = true;
        }
        from->filled[word] = 0;
    }
    pool->unmerged = pool->unmerged || (moved && to == &pool->any);
    return moved;
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
    struct ggi_bin *ring = &pool->lenders[size_class], *after = *at ? *at : ring, *bin;
    while ((bin = after->next) != ring && ggi_bin_is_empty(bin))
        bin_unlist(bin);
    *at = bin;
    return bin == ring ? NULL : bin_stream(bin, size_class);
}

gg_stream *ggi_pool_next_lender(struct ggi_pool *pool, uint32_t size_class)
{
    struct ggi_bin *ring = &pool->lenders[size_class], *bin;
    while ((bin = ring->next) != ring) {
        bin_unlist(bin);
        if (ggi_bin_is_empty(bin))
            continue;
        bin_list(ring, bin);
        return bin_stream(bin, size_class);
    }
    return NULL;
}

bool ggi_pool_has_lenders(struct ggi_pool *pool)
{
    struct ggi_bin *at = NULL;
    for (uint32_t i = 0; i < GGI_CLASSES; i++, at = NULL)
        if (ggi_pool_lender_after(pool, i, &at))
            return true;
    return false;
}
