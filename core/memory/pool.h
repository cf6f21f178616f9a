/* pool.h: the pool keeps free blocks by size class and by the stream that they were allocated on, so that
 * reusing one takes one lock and no driver call. Where the driver's free may wait, a larger free block is split if none of the
 * right size is free; its pieces are merged again as they become free. A released block is added
 *   - to the list of its alloc_stream, if no other stream uses it. The next allocation on that stream can reuse it
 *     at once, since work on a stream runs in order;
 *   - to the list for any stream, if its alloc_stream is destroyed, or is idle when polled;
 *   - to the device's retired objects, if another stream uses it, until that use has finished. Then it is added to the list for
 *     any stream if the work of its alloc_stream from before the release is known to be done, else to that stream's list.
 * A block in a stream's list whose work from before the release is known to be done serves other streams, too. */
#ifndef GPUGLUE_POOL_H
#define GPUGLUE_POOL_H

#include "memory/memory.h"

#include <stddef.h>

#define GGI_CLASSES 224u                   /* of 256 bytes to GGI_POOLED_MAX */
#define GGI_FIXED_CLASSES 144u             /* up to 256 MiB: all blocks of a class have one size */
#define GGI_NO_CLASS GGI_CLASSES           /* of a block that is not cached */
#define GGI_POOLED_MAX ((size_t)256 << 30) /* larger blocks bypass every pool */
#define GGI_FIXED_MAX ((size_t)256 << 20)  /* the largest size of a fixed class */
#define GGI_SLAB_CLASSES 80u               /* up to 1 MiB: blocks are carved from slabs */
#define GGI_SPLIT_SLAB_CLASSES 48u /* up to 64 KiB: the same where larger blocks are split */
#define GGI_LENDERS 16             /* streams that an allocation polls at most */
#define GGI_EXAMINED 16            /* blocks of a list that it compares at most */
#define GGI_PINNED_CACHED ((uint64_t)256 << 20) /* cached pinned memory, by default */

/* Free blocks of a class: at least of its size, and smaller than the next class. */
struct ggi_bin {
    struct ggi_free_link blocks;     /* the ring's head; `next` is NULL before the first block */
    struct ggi_bin *next, *previous; /* in pool->lenders, if it is listed there; else NULL */
};

/* Where threads wait for the pool's lock, blocks of a stream are kept beside it for a number of releases: pool_stash.c. */
#define GGI_STASH 8
struct ggi_stash {
    _Atomic(uintptr_t) blocks[GGI_STASH]; /* with bits of their size class; they count as used */
    _Atomic(uint32_t) releases;           /* that it still takes; 0: it is closed */
    /* Not counted in the pool's stats yet: */
    _Atomic(uint64_t) used_change, allocations, retired_blocks, retired_bytes;
    struct ggi_bins *next; /* in pool->stashes, under the lock */
    _Atomic(bool) listed;
};

struct ggi_bins {
    struct ggi_stash stash;
    uint64_t filled[(GGI_CLASSES + 63) / 64]; /* a bit for each bin: 0 if it is empty */
    gg_stream *stream;                        /* NULL: for any stream */
    struct ggi_bin bin[GGI_CLASSES];
};

/* A driver allocation that was split into pieces. */
struct ggi_segment {
    char *base;
    size_t size;
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

/* How the handles of pieces are made. */
struct ggi_block_handles {
    gg_memory *(*create)(struct ggi_pool *pool, void *pointer, size_t block_size,
                         uint32_t size_class);
    void (*destroy)(gg_memory *memory);
};

struct ggi_pool {
    /* Read without the lock in each call, so not near it: threads that take it would slow down those that use stashes. */
    struct gg_device *device;
    const struct ggi_block_handles *handles;
    enum gg_memory_kind kind;
    bool by_stream; /* device memory; pinned memory has no stream, since the host may write to it at once */
    bool splits;                /* larger free blocks serve smaller requests */
    bool direct;                /* GPUGLUE_ALLOCATOR=direct or async: nothing is cached here */
    bool async;                 /* async: the driver's own pool caches */
    _Atomic(size_t) pooled_max; /* larger blocks bypass this pool */
    struct ggi_bins any;        /* idle blocks, for any stream; its stash is not used */
    pthread_mutex_t lock;       /* of it and the fields below; never held in a driver call */
    /* By size class: a ring of the streams' bins; the bin that was polled last is at the end. The next search removes empty
     * bins, so that an allocation and a release change no list of streams. */
    struct ggi_bin lenders[GGI_CLASSES];
    struct ggi_bins *stashes;                       /* that were opened */
    struct ggi_slab *slab[GGI_SLAB_CLASSES];        /* with space for another block */
    struct ggi_slab *slabs;                         /* all */
    uint8_t slab_doublings[GGI_SPLIT_SLAB_CLASSES]; /* of the size of the next slab */
    uint32_t since_drain;    /* allocations; at least drain_interval until one is about to drain */
    uint32_t drain_interval; /* see ggi_drain_interval */
    uint32_t searches; /* by allocations of small blocks, in the lists of other streams, since a slab was added */
    gg_memory *returned; /* idle blocks that a drain has not added to the lists yet; under drain_lock, as is */
    uint32_t returned_count;
    uint64_t full_at; /* stats.reserved_bytes when there was no memory for another one; or 0 */
    struct gg_pool_stats stats;
    bool unmerged; /* blocks have moved to the list for any stream since their neighbours were merged */
    uint64_t whole_bytes; /* of stats.cached_bytes: in blocks that can be freed, without those of slabs */
    uint64_t piece_bytes; /* of these: in pieces */
    uint64_t large_bytes; /* of these: in whole blocks of more than GGI_FIXED_MAX */
    uint64_t large_kept;  /* of these, unless a threshold was set; known with the first one */
    uint64_t large_releases;
    bool large_known, threshold_set;
};

/* ---- pool_bins.c: size classes and free lists; calls no driver ---- */

/* The smallest class whose size suffices; GGI_NO_CLASS above GGI_POOLED_MAX. */
uint32_t ggi_size_class_of(size_t nbytes);
/* The class of a free block: the largest one that it suffices for; GGI_NO_CLASS if it suffices for none. */
uint32_t ggi_size_class_below(size_t block_size);
size_t ggi_size_class_bytes(uint32_t size_class);
static inline uint32_t ggi_pool_slab_classes(const struct ggi_pool *pool)
{
    return pool->splits ? GGI_SPLIT_SLAB_CLASSES : GGI_SLAB_CLASSES;
}
/* The size of a block for @p nbytes. */
size_t ggi_pool_block_size(const struct ggi_pool *pool, size_t nbytes);
/* What an allocation needs: a free block of this class and at least this size, or one of a larger class. */
struct ggi_request {
    uint32_t size_class; /* GGI_NO_CLASS above pool->pooled_max */
    bool of_slab;        /* it can be carved from a slab; the class alone does not decide that */
    size_t block_size;
};
struct ggi_request ggi_pool_request(struct ggi_pool *pool, size_t nbytes);
static inline bool ggi_block_suits(const gg_memory *memory, const struct ggi_request *request)
{
    return memory->block_size >= request->block_size &&
           ggi_size_class_below(memory->block_size) == request->size_class;
}

static inline gg_memory *ggi_free_memory(struct ggi_free_link *link)
{
    return (gg_memory *)((char *)link - offsetof(struct gg_memory, free));
}
void ggi_link_add(struct ggi_free_link *ring, gg_memory *memory);
gg_memory *ggi_link_take(struct ggi_free_link *ring); /* the first one; or NULL */
void ggi_link_splice(struct ggi_free_link *to,
                     struct ggi_free_link *from); /* all of a ring with blocks, to the front */

/* All with the lock held. */

static inline bool ggi_bin_is_empty(const struct ggi_bin *bin)
{
    return !bin->blocks.next || bin->blocks.next == &bin->blocks;
}
/* Add a free block to a list, and count it. */
void ggi_bins_push(struct ggi_pool *pool, struct ggi_bins *bins, gg_memory *memory);
/* Remove a free block from the list that it is in, and from the counts. */
void ggi_pool_unlist(struct ggi_pool *pool, gg_memory *memory);
/* Move all blocks. False: there were none. */
bool ggi_bins_splice(struct ggi_pool *pool, struct ggi_bins *to, struct ggi_bins *from);
void ggi_bins_unlist(struct ggi_bins *bins); /* remove the bins from pool->lenders */
/* The first bin of streams that has blocks of the class, moved to the end; or NULL. Its stream. */
gg_stream *ggi_pool_next_lender(struct ggi_pool *pool, uint32_t size_class);
/* The stream of the bin with blocks that follows *at in the ring, whose order stays; NULL at its end. *at is NULL at
 * first. */
gg_stream *ggi_pool_lender_after(struct ggi_pool *pool, uint32_t size_class, struct ggi_bin **at);
/* Whether a stream's list has blocks. */
bool ggi_pool_has_lenders(struct ggi_pool *pool);

/* ---- pool_pieces.c: blocks are added to the lists and taken; larger ones are split, and pieces merged again ---- */

/* Unrecorded work on this stream may use the block through its raw address. */
void ggi_block_change_stream(gg_memory *memory, gg_stream *stream);
static inline void ggi_block_set_stream(gg_memory *memory, gg_stream *stream)
{
    if (memory->alloc_stream != stream)
        ggi_block_change_stream(memory, stream);
}
/* Whether the stream's work from before the release of the block is known to be done. On a stream whose handle other code has,
 * there may be work that is not counted. */
static inline bool ggi_block_is_done(const gg_memory *memory, const gg_stream *stream)
{
    return !ggi_stream_is_capturable(stream) &&
           ggi_stream_has_passed(stream, memory->release_ticket);
}

/* All with the lock held. */

/* Add the block to the list of its alloc_stream, or to the list for any stream; a piece is first merged with free ones beside
 * it, and then the handle may be gone. */
void ggi_pool_insert(struct ggi_pool *pool, gg_memory *memory);
/* A free block of the request's class, from the list of @p stream or from the list for any stream (NULL). */
gg_memory *ggi_pool_pop(struct ggi_pool *pool, gg_stream *stream, struct ggi_request request);
/* Of a driver's allocation of more than 256 MiB: such free blocks are kept within pool->large_kept. */
static inline bool ggi_block_is_large(const gg_memory *memory)
{
    return memory->block_size > GGI_FIXED_MAX && !memory->slab && !memory->segment;
}

/* Shorten a block that no list has to @p block_size. The rest is added to @p bins. Nothing happens if the rest is too small. */
void ggi_piece_split(struct ggi_pool *pool, struct ggi_bins *bins, gg_memory *memory,
                     size_t block_size);
/* The block of the request's class that @p stream released first, if it is known to be done with that: for any stream. Or NULL. */
gg_memory *ggi_pool_pop_done(struct ggi_pool *pool, gg_stream *stream, struct ggi_request request);
/* A block of a larger class from a list, shortened. */
gg_memory *ggi_pool_pop_larger(struct ggi_pool *pool, gg_stream *stream, struct ggi_request request);
/* Merge the pieces of the list for any stream, although they come from several. */
void ggi_pool_merge_idle(struct ggi_pool *pool);

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
/* False: it is not freed, and still counted. @p stream, which drain_lock keeps: the one that it was allocated on. */
bool ggi_driver_free(struct ggi_pool *pool, void *pointer, size_t nbytes, gg_stream *stream);
/* On which the driver's own pool frees it. */
gg_stream *ggi_driver_free_stream(struct gg_device *device, gg_stream *stream);

/* ---- pool.c ---- */

struct ggi_pool *ggi_pool_new(struct gg_device *device, enum gg_memory_kind kind);
struct gg_pool_stats ggi_pool_stats(struct ggi_pool *pool);
/* Whether the free blocks exceed the threshold, or the large ones their bound. */
bool ggi_pool_is_over(struct ggi_pool *pool);
/* Whether the driver's free may wait for the whole device. */
bool ggi_pool_free_may_wait(const struct ggi_pool *pool);
enum ggi_attempt {
    GGI_ATTEMPT_ONLY,  /* of gg_memory_try_alloc: fails once in a while where a drain is due */
    GGI_ATTEMPT_FIRST, /* of gg_memory_alloc: where a drain is due, it fails and becomes the next */
    GGI_ATTEMPT_DUE,   /* this thread drains: ggi_pool_alloc follows */
    GGI_ATTEMPT_LATER, /* of ggi_pool_alloc: a drain is not due */
};
/* A block from a list or a slab, without a driver call. @p stream is NULL for pinned memory. */
bool ggi_pool_try_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                        enum ggi_attempt *attempt, gg_memory **out);
static inline bool ggi_pool_try_again(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                                      gg_memory **out)
{
    enum ggi_attempt later = GGI_ATTEMPT_LATER;
    return ggi_pool_try_alloc(pool, nbytes, stream, &later, out);
}
/* After that: a block of another stream that is known to be done with it. Compares at most GGI_LENDERS blocks; no driver call
 * either. */
bool ggi_pool_alloc_done(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out);
/* The handle of a block; NULL without host memory. */
gg_memory *ggi_pool_new_block(struct ggi_pool *pool, void *pointer, size_t block_size,
                              uint32_t size_class);
/* The first reference. Streams other than @p stream first wait for its @p ready_ticket. */
void ggi_pool_prepare(gg_memory *memory, size_t nbytes, gg_stream *stream, uint64_t ready_ticket);
/* With the lock held. */
void ggi_pool_count_alloc(struct ggi_pool *pool, size_t nbytes);

/* With drain_lock held, at the end of a drain: add the blocks that it found idle to the lists. */
void ggi_pool_take_returned(struct ggi_pool *pool);

/* ---- pool_refuse.c ---- */

/* GG_ERR_OUT_OF_MEMORY, with a message of what the pool holds, and the driver's code. */
gg_status ggi_pool_refuse(struct ggi_pool *pool, size_t nbytes);

/* ---- pool_trim.c ---- */

/* With drain_lock held: move the blocks of streams that are idle to the list for any stream. */
void ggi_pool_reclaim(struct ggi_pool *pool);
/* The same until a block of the class was moved, with at most GGI_LENDERS polls: another call goes on from there. */
void ggi_pool_reclaim_class(struct ggi_pool *pool, struct ggi_request request,
                            const gg_stream *except);
/* The same for an idle stream that is about to be destroyed. */
void ggi_pool_release_bins(gg_stream *stream);
/* With drain_lock held: retire idle blocks beyond @p keep bytes, to be freed by the next drain. */
void ggi_pool_trim(struct ggi_pool *pool, uint64_t keep);
/* With drain_lock held: retire idle blocks of about @p nbytes that the driver can get back. */
void ggi_pool_shrink(struct ggi_pool *pool, uint64_t nbytes);
/* Without drain_lock: reclaim, trim, and free blocks where that cannot wait. */
void ggi_pool_trim_now(struct ggi_pool *pool, uint64_t keep);
/* At the end of the process, with drain_lock held and all streams idle. */
void ggi_pools_empty(struct gg_device *device);

/* ---- pool_stash.c ---- */

/* Cache a block whose last reference was released. False: it has to be retired. */
bool ggi_pool_free(gg_memory *memory);
/* Whether it has to wait only for uses by streams of its device; then retired.after and .ticket are one of them. */
bool ggi_block_knows_use(gg_memory *memory);
/* Take the lock. If another thread has it, @p bins (of a stream, or NULL) opens its stash. */
void ggi_pool_lock_contended(struct ggi_pool *pool, struct ggi_bins *bins);
static inline void ggi_pool_lock(struct ggi_pool *pool, struct ggi_bins *bins)
{
    if (pthread_mutex_trylock(&pool->lock))
        ggi_pool_lock_contended(pool, bins);
}
/* Without the lock: a block of the request from the stream's stash; or NULL. */
gg_memory *ggi_stash_take_listed(struct ggi_pool *pool, gg_stream *stream,
                                 struct ggi_request request, size_t nbytes);
static inline gg_memory *ggi_stash_take(struct ggi_pool *pool, gg_stream *stream,
                                        struct ggi_request request, size_t nbytes)
{
    return atomic_load_explicit(&stream->bins->stash.listed, memory_order_relaxed)
               ? ggi_stash_take_listed(pool, stream, request, nbytes)
               : NULL;
}
/* With the lock held, after an allocation from the stream's own list: add more blocks of the class to its open stash. */
void ggi_stash_fill(struct ggi_pool *pool, gg_stream *stream, uint32_t size_class);
/* With the lock held: count in the pool's stats what was allocated and released without the lock. */
void ggi_stash_count_slow(struct ggi_pool *pool, struct ggi_stash *stash);
static inline void ggi_stash_count(struct ggi_pool *pool, struct ggi_bins *bins)
{
    if (atomic_load(&bins->stash.allocations) || atomic_load(&bins->stash.retired_blocks))
        ggi_stash_count_slow(pool, &bins->stash);
}
/* With the lock held: close the stash, and move its blocks to the lists. */
void ggi_stash_close(struct ggi_pool *pool, struct ggi_bins *bins);
void ggi_stashes_close(struct ggi_pool *pool);

/* ---- pool_slab.c ---- */

/* Add a slab; the allocation then takes its first block. */
gg_status ggi_pool_add_slab(struct ggi_pool *pool, uint32_t size_class);
void ggi_pool_list_slab(struct ggi_pool *pool, struct ggi_slab *slab); /* with the lock held */
bool ggi_slab_is(const struct ggi_retired *item);

/* ---- pool_loan.c ---- */

/* A block of a busy stream, taken with drain_lock held. The new stream is made to wait for its uses without that lock, since the
 * driver may wait for room in the queues of both. */
struct ggi_pool_loan {
    gg_memory *memory; /* NULL: none. No list has it, so no other thread uses it */
    gg_stream *lender; /* a reference, if the driver orders it with the new stream; else NULL */
    bool retired;      /* it was released while other streams used it */
};
/* With drain_lock held. False: there is none. */
bool ggi_pool_borrow(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                     struct ggi_pool_loan *loan); /* of a stream that the driver orders with @p stream */
bool ggi_pool_steal(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                    struct ggi_pool_loan *loan); /* of any other */
/* Without a lock: @p stream waits for what uses the block. False: it cannot, and other streams may take the block again. */
bool ggi_pool_use_loan(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                       const struct ggi_pool_loan *loan, gg_memory **out);
/* The first reference of a block that ggi_pool_try_alloc did not return. */
gg_memory *ggi_pool_first_reference(gg_memory *memory, size_t nbytes, gg_stream *stream,
                                    uint64_t ready_ticket);

/* ---- pool_grow.c: after ggi_pool_try_alloc found no block ---- */

/* @p due: a drain is due, and this thread does it. */
gg_status ggi_pool_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, bool due,
                         gg_memory **out);

#endif
