/* pool.h: the pool keeps free blocks by size class and by the stream that they were allocated on, so that
 * reusing one takes one lock and no driver call. A released block is added
 *   - to the list of its alloc_stream, if no other stream uses it. The next allocation on that stream can reuse it
 *     at once, since work on a stream runs in order;
 *   - to the list for any stream, if its alloc_stream is destroyed, or is idle when polled;
 *   - to the device's retired objects, if another stream uses it, until that use has finished. */
#ifndef GPUGLUE_POOL_H
#define GPUGLUE_POOL_H

#include "memory/memory.h"

#define GGI_CLASSES 224u                   /* of 256 bytes to GGI_POOLED_MAX */
#define GGI_FIXED_CLASSES 144u             /* up to 256 MiB: all blocks of a class have one size */
#define GGI_NO_CLASS GGI_CLASSES           /* of a block that is not cached */
#define GGI_POOLED_MAX ((size_t)256 << 30) /* larger blocks bypass every pool */
#define GGI_FIXED_MAX ((size_t)256 << 20)  /* the largest size of a fixed class */
#define GGI_SLAB_BLOCK_MAX ((size_t)1 << 20)    /* smaller blocks are carved from slabs */
#define GGI_SLAB_CLASSES 80u                    /* size classes up to that size */
#define GGI_LENDERS 16                          /* streams that an allocation polls at most */
#define GGI_PINNED_CACHED ((uint64_t)256 << 20) /* cached pinned memory, by default */

struct ggi_bin {
    gg_memory *first, *last;         /* by next_free */
    struct ggi_bin *next, *previous; /* in pool->lenders, if it is listed there; else NULL */
};

struct ggi_bins {
    uint64_t count;
    gg_stream *stream; /* NULL: for any stream */
    struct ggi_bin bin[GGI_CLASSES];
};

/* A driver allocation that blocks of one size class are carved from. */
struct ggi_slab {
    struct ggi_retired retired;
    struct ggi_pool *pool;
    struct ggi_slab *next;      /* in pool->slabs */
    struct ggi_slab *next_open; /* in pool->slab[size_class] */
    char *base;
    size_t size;
    uint32_t size_class;
    uint32_t carved, capacity; /* blocks: made so far, and at most */
    uint32_t idle;             /* set by a trim: blocks on the list for any stream */
    bool trimmed;
};

struct ggi_pool {
    pthread_mutex_t lock; /* of the fields below; never held in a driver call */
    struct gg_device *device;
    enum gg_memory_kind kind;
    bool by_stream; /* device memory; pinned memory has no stream, since the host may write to it at once */
    struct ggi_bins any; /* idle blocks, for any stream */
    /* By size class: a ring of the streams' bins; the bin that was polled last is at the end. The next search removes empty
     * bins, so that an allocation and a release change no list of streams. */
    struct ggi_bin lenders[GGI_CLASSES];
    bool direct; /* GPUGLUE_ALLOCATOR=direct or async: nothing is cached here */
    bool async;  /* async: the driver's own pool caches */
    struct ggi_slab *slab[GGI_SLAB_CLASSES]; /* with space for another block */
    struct ggi_slab *slabs;                  /* all */
    uint32_t since_drain;    /* allocations; at least drain_interval until one has drained */
    uint32_t drain_interval; /* see ggi_drain_interval */
    struct gg_pool_stats stats;
    uint64_t busy_blocks; /* of stats.cached_blocks: on lists of streams */
    uint64_t large_bytes; /* of stats.cached_bytes: in blocks without a fixed size */
    uint64_t large_kept;  /* of these, unless a threshold was set; known with the first one */
    uint64_t large_releases;
    bool large_known, threshold_set;
    _Atomic(size_t) pooled_max; /* larger blocks bypass this pool */
};

/* ---- pool_bins.c: size classes and free lists; calls no driver ---- */

uint32_t ggi_size_class_of(size_t nbytes); /* GGI_NO_CLASS above GGI_POOLED_MAX */
size_t ggi_size_class_bytes(uint32_t size_class);
/* GGI_NO_CLASS above pool->pooled_max. */
static inline uint32_t ggi_pool_class(struct ggi_pool *pool, size_t nbytes)
{
    return nbytes > atomic_load_explicit(&pool->pooled_max, memory_order_relaxed)
               ? GGI_NO_CLASS
               : ggi_size_class_of(nbytes);
}
/* The size of a new block: that of its class, or of a large one @p nbytes in steps of 2 MiB. */
size_t ggi_pool_block_size(size_t nbytes);
/* With the lock held: move all blocks. */
void ggi_bins_splice(struct ggi_pool *pool, struct ggi_bins *to, struct ggi_bins *from);
/* With the lock held: remove the bins from pool->lenders. */
void ggi_bins_unlist(struct ggi_bins *bins);
/* With the lock held: the first bin of streams that has blocks of the class, moved to the end; or NULL. Its stream. */
gg_stream *ggi_pool_next_lender(struct ggi_pool *pool, uint32_t size_class);
/* With the lock held: the stream of the bin with blocks that follows *at in the ring, which stays as it is; NULL at its end.
 * *at is NULL at first. */
gg_stream *ggi_pool_lender_after(struct ggi_pool *pool, uint32_t size_class, struct ggi_bin **at);
/* With the lock held: add the block to the list of its alloc_stream, or to the list for any stream. */
void ggi_pool_insert(struct ggi_pool *pool, gg_memory *memory);
/* Cache a block whose last reference was released. False: it has to be retired. */
bool ggi_pool_free(gg_memory *memory);

/* With the lock held: take the smallest large block of at least @p nbytes; NULL if there is none. */
gg_memory *ggi_bin_take_best(struct ggi_bin *bin, size_t nbytes);
/* With the lock held: a block has left the lists. */
static inline void ggi_pool_uncount_cached(struct ggi_pool *pool, const gg_memory *memory)
{
    pool->stats.cached_blocks--;
    pool->stats.cached_bytes -= memory->block_size;
    if (memory->size_class >= GGI_FIXED_CLASSES)
        pool->large_bytes -= memory->block_size;
}

/* With the lock held: a free block of the class of @p nbytes from the list of @p stream, or from the list for any stream (NULL). */
static inline gg_memory *ggi_pool_pop(struct ggi_pool *pool, gg_stream *stream, uint32_t size_class,
                                      size_t nbytes)
{
    struct ggi_bins *bins = stream ? stream->bins : &pool->any;
    struct ggi_bin *bin = &bins->bin[size_class];
    gg_memory *memory = bin->first;
    if (memory && size_class < GGI_FIXED_CLASSES)
        bin->first = memory->next_free;
    else if (memory)
        memory = ggi_bin_take_best(bin, nbytes);
    if (!memory)
        return NULL;
    bins->count--;
    pool->busy_blocks -= stream != NULL;
    ggi_pool_uncount_cached(pool, memory);
    return memory;
}
/* With the lock held. */
static inline void ggi_pool_count_retired(struct ggi_pool *pool, size_t nbytes)
{
    pool->stats.retired_blocks++;
    pool->stats.retired_bytes += nbytes;
}
static inline void ggi_pool_uncount_retired(struct ggi_pool *pool, size_t nbytes)
{
    pool->stats.retired_blocks--;
    pool->stats.retired_bytes -= nbytes;
}

/* ---- driver_alloc.c: the driver's own calls, counted, within the pool's limit ---- */

/* @p stream: for the driver's own pool; may be NULL in other calls. */
gg_status ggi_driver_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, void **out);
void ggi_driver_free(struct ggi_pool *pool, void *pointer, size_t nbytes, gg_stream *stream);

/* ---- pool.c ---- */

struct ggi_pool *ggi_pool_new(struct gg_device *device, enum gg_memory_kind kind);
struct gg_pool_stats ggi_pool_stats(struct ggi_pool *pool);
/* Whether the free blocks exceed the threshold, or the large ones their bound. */
bool ggi_pool_is_over(struct ggi_pool *pool);
/* Whether the driver's free may wait for the whole device. */
bool ggi_pool_free_may_wait(const struct ggi_pool *pool);
enum ggi_attempt {
    GGI_ATTEMPT_ONLY, /* of gg_memory_try_alloc: fails once in a while where a drain is due */
    GGI_ATTEMPT_FIRST, /* of gg_memory_alloc: fails where a drain is due, and ggi_pool_alloc follows */
    GGI_ATTEMPT_LATER, /* after that drain: a drain is not due */
};
/* A block from a list or a slab, without a driver call. @p stream is NULL for pinned memory. */
bool ggi_pool_try_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                        enum ggi_attempt attempt, gg_memory **out);
/* The handle of a block; NULL without host memory. */
gg_memory *ggi_pool_new_block(struct ggi_pool *pool, void *pointer, size_t block_size,
                              uint32_t size_class);
/* The first reference. Streams other than @p stream first wait for its @p ready_ticket. */
void ggi_pool_prepare(gg_memory *memory, size_t nbytes, gg_stream *stream, uint64_t ready_ticket);
/* With the lock held. */
void ggi_pool_count_alloc(struct ggi_pool *pool, size_t nbytes);

/* ---- pool_trim.c ---- */

/* With drain_lock held: move the blocks of streams that are idle to the list for any stream. */
void ggi_pool_reclaim(struct ggi_pool *pool);
/* The same until a block of the class was moved, with at most GGI_LENDERS polls: another call goes on from there. */
void ggi_pool_reclaim_class(struct ggi_pool *pool, uint32_t size_class, const gg_stream *except);
/* The same for an idle stream that is about to be destroyed. */
void ggi_pool_release_bins(gg_stream *stream);
/* With drain_lock held: retire idle blocks beyond @p keep bytes, to be freed by the next drain. */
void ggi_pool_trim(struct ggi_pool *pool, uint64_t keep);
/* Without drain_lock: reclaim, trim, and free blocks where that cannot wait. */
void ggi_pool_trim_now(struct ggi_pool *pool, uint64_t keep);
/* At the end of the process, with drain_lock held and all streams idle. */
void ggi_pools_empty(struct gg_device *device);

/* ---- pool_grow.c: after ggi_pool_try_alloc found no block ---- */

gg_status ggi_pool_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out);

#endif
