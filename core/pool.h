/* pool.h: what the files of the pool share: blocks are kept by size class and by the stream that used
 * them last, so that giving one out again takes one lock and no driver call.
 *
 * Where a released block goes:
 *   - used by its home stream alone (known, or by its bare address): on that stream's list. The next
 *     allocation for that stream may have it at once, since work on a stream runs in order;
 *   - still used by another stream: on the retire list, until that use is over;
 *   - a home stream that was seen idle since: its blocks are for anybody. */
#ifndef GPUGLUE_POOL_H
#define GPUGLUE_POOL_H

#include "internal.h"

#define GGI_CLASSES 144u                        /* of 256 bytes to GGI_POOLED_MAX */
#define GGI_NO_CLASS GGI_CLASSES                /* of a block that goes back to the driver */
#define GGI_POOLED_MAX ((size_t)256 << 20)      /* larger blocks bypass the pool */
#define GGI_CARVED_MAX ((size_t)1 << 20)        /* up to here blocks are pieces of slabs */
#define GGI_CARVED_CLASSES 80u                  /* … which is so many classes */
#define GGI_PINNED_CACHED ((uint64_t)256 << 20) /* idle pinned memory that is kept by default */

struct ggi_bin {
    gg_memory *first, *last; /* by next_free */
};

struct ggi_bins {
    uint64_t count;
    struct ggi_bin bin[GGI_CLASSES];
};

/* One piece of driver memory that blocks of one class are carved from. */
struct ggi_slab {
    struct ggi_retired retired;
    struct ggi_pool *pool;
    struct ggi_slab *next;    /* in pool->slabs */
    struct ggi_slab *another; /* of the same class that is being carved, too */
    char *base;
    size_t size;
    uint32_t size_class;
    uint32_t carved, room_for; /* blocks made, and how many fit */
    uint32_t idle;             /* of them, those that a trim found on the list for anybody */
    bool leaving;
};

struct ggi_pool {
    pthread_mutex_t lock; /* all below; never held in a driver call */
    struct gg_device *device;
    enum gg_memory_kind kind;
    bool by_stream; /* device memory: lists by stream. The host looks at pinned memory at once */
    struct ggi_bins any; /* idle blocks */
    bool direct;         /* GPUGLUE_ALLOCATOR=direct or async: nothing is kept here */
    bool async;          /* … async: the vendor's own pool keeps it */
    struct ggi_slab *slab[GGI_CARVED_CLASSES]; /* that are being carved */
    struct ggi_slab *slabs;                    /* all */
    uint32_t since_drain;                      /* hits since the retire list was looked at */
    struct gg_pool_stats figures;
    uint64_t busy_blocks; /* of figures.cached_blocks, those on the lists of streams */
};

uint32_t ggi_class_of(size_t nbytes); /* GGI_NO_CLASS above GGI_POOLED_MAX */
size_t ggi_class_room(uint32_t size_class);

/* pool.c: no driver call */

/* Out of a list, or a new piece of a slab. @p stream is NULL for pinned memory. */
bool ggi_pool_take(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out);
/* A block whose last reference is gone: false where it has to go on the retire list. */
bool ggi_pool_give(gg_memory *memory);
/* A block that comes off the retire list: on a list of free ones, or only out of the figures. */
void ggi_pool_take_back(gg_memory *memory);
/* Whether all uses but those of its home stream are over. */
bool ggi_pool_only_home(gg_memory *memory, bool look);
void ggi_pool_forget_uses(gg_memory *memory);
/* Make a block ready for its new user; another stream than @p stream first waits for @p handed, a ticket
 * of it. */
void ggi_pool_hand_out(gg_memory *memory, size_t nbytes, gg_stream *stream, uint64_t handed);
/* With the lock held. */
void ggi_pool_put(struct ggi_pool *pool, gg_memory *memory);
void ggi_pool_count_out(struct ggi_pool *pool, size_t nbytes);
gg_memory *ggi_bin_pop(struct ggi_bins *bins, uint32_t size_class);
void ggi_bin_push(struct ggi_bins *bins, gg_memory *memory);
void ggi_bins_splice(struct ggi_bins *to, struct ggi_bins *from);

/* pool_grow.c: where no list has a block */

gg_status ggi_pool_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out);
/* With drain_lock held: the blocks of streams that are idle become anybody's. */
void ggi_pool_gather(struct ggi_pool *pool, const gg_stream *except);
/* The stream is idle and about to be destroyed. */
void ggi_pool_part(gg_stream *stream);

/* pool_steal.c: where there is no more memory */

/* With drain_lock held: a block that other streams still use, once @p stream waits for them. */
gg_status ggi_pool_steal(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out);

/* pool_trim.c */

struct ggi_pool *ggi_pool_new(struct gg_device *device, enum gg_memory_kind kind);
/* With drain_lock held: idle blocks beyond @p keep bytes go on the retire list, to be freed there. */
void ggi_pool_shed(struct ggi_pool *pool, uint64_t keep);
struct gg_pool_stats ggi_pool_figures(struct ggi_pool *pool);
/* At the end of the process, with drain_lock held and all streams idle. */
void ggi_pools_empty(struct gg_device *device);
/* Whether the driver's free may wait for the whole device. */
bool ggi_free_may_wait(const struct ggi_pool *pool);

/* allocator.c */

bool ggi_allocator_set(void);
gg_status ggi_allocator_alloc(gg_device *device, size_t nbytes, gg_stream *stream, gg_memory **out);

/* memory.c: the driver's own calls, counted and held to the limit */

/* @p stream: what an async pool takes it for; NULL in other calls. */
gg_status ggi_driver_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, void **out);
void ggi_driver_free(struct ggi_pool *pool, void *pointer, size_t nbytes, gg_stream *stream);
/* A handle; new also notes where host memory lies. */
gg_memory *ggi_memory_blank(gg_device *device, enum gg_memory_kind kind, void *pointer,
                            size_t nbytes);
gg_memory *ggi_memory_new(gg_device *device, enum gg_memory_kind kind, void *pointer, size_t nbytes);
void ggi_memory_delete(gg_memory *memory); /* the handle alone */
/* The memory that a retired object is, or NULL. */
gg_memory *ggi_memory_retired(const struct ggi_retired *item);

#endif
