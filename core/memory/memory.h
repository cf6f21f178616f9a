/* memory.h: handles of memory blocks, and the index of pinned host memory. */
#ifndef GPUGLUE_MEMORY_H
#define GPUGLUE_MEMORY_H

#include "runtime/stream.h"

#define GGI_UNTRACKED UINT64_MAX
#define GGI_SHARED 2
#define GGI_NEWEST 4 /* streams whose uses are recorded without the lock */

/* What depends on where a block was allocated. */
struct ggi_backing {
    /* Whether all known uses have finished; never waits. NULL: ggi_memory_prune. */
    bool (*idle)(gg_memory *memory);
    /* Free the block. False: the handle must not be deleted. NULL: nothing to free. */
    bool (*free)(gg_memory *memory);
};

/* A place in a ring of free blocks. */
struct ggi_free_link {
    struct ggi_free_link *next, *previous;
};

struct gg_memory {
    /* First what the pool and drains read: thousands of released blocks may wait for streams, more than a cache holds. */
    struct ggi_retired retired;
    _Atomic(int) captured; /* a graph uses it that another library has captured */
    uint32_t size_class;   /* GGI_NO_CLASS: not cached, but freed to the driver */
    const struct ggi_backing *backing;
    _Atomic(uint64_t) untracked; /* 0; or GGI_UNTRACKED: unknown streams use it; after the release, the
                                       round of the device's epoch that must have finished */
    struct ggi_pool *pool;       /* that allocated it: pool.h; or NULL */
    gg_stream *alloc_stream;     /* a use of the stream that it was allocated on; or NULL */
    uint64_t release_ticket; /* after all work of alloc_stream at the last release; 0: not taken yet, or there was none */
    uint32_t use_count, use_capacity;
    struct ggi_use *uses; /* inline_uses, or allocated; `newest` may have later tickets */
    struct ggi_use inline_uses[3];
    struct ggi_free_link free; /* in a list of free blocks; `next` is NULL in none */
    size_t block_size;         /* at least nbytes */
    struct ggi_segment *segment; /* of a piece; NULL: a block of a slab, or one that the driver allocated */
    struct ggi_slab *slab; /* that contains it; or NULL */
    /* a launch reads from here on to copies_only */
    _Atomic(uint64_t) newest[GGI_NEWEST]; /* tickets of uses, by serial: uses.h */
    _Atomic(uint64_t) ready_ticket;       /* ready after this ticket of alloc_stream; 0: ready */
    _Atomic(int64_t) refs;
    struct gg_device *device;
    void *pointer;
    gg_memory *parent; /* a reference to the pinned memory that contains this one and has its uses; or NULL */
    bool copies_only; /* registered memory that the device has at another address */
    bool wrapped;
    bool waits; /* it was released, and counts in device->others_waiting */
    enum gg_memory_kind kind;
    size_t nbytes;
    _Atomic(uint64_t) result; /* a word as of `newest`: the last collective operation that writes it; or 0 */
    _Atomic(uint64_t) ready_waiter; /* serial of the last stream that waited for ready_ticket */
    gg_stream *shared[GGI_SHARED]; /* other libraries use it on these streams until the release; uses of the streams */
    pthread_mutex_t lock;              /* of the uses, and shared */
    _Atomic(uint64_t) result_watchers; /* who may end the operation of `result`, or what is before it */
    /* Serials of the newest capture of gpuglue that holds it, and of the newest that knows a user of it, with the number of
     * the last user there. Under the lock of the captures. */
    uint64_t held_by, used_in;
    size_t last_user;
    void (*release)(void *owner); /* of wrapped memory */
    void *owner;
    struct ggi_import *import; /* the mapping of another process's block that contains it; or NULL */
    void *first_page; /* of registered memory: block_size is the size of its pages; else NULL */
    size_t locked_size; /* bytes that the driver locked: other memory may share the first and last page */
    gg_memory *left, *right; /* of a piece: the pieces beside it; under the pool's lock */
    uint64_t released;       /* of a free large block: the count of releases before it */
};

/* A handle without references. It frees nothing until its backing is set. NULL without host memory. */
gg_memory *ggi_memory_new_handle(gg_device *device, enum gg_memory_kind kind, void *pointer,
                                 size_t nbytes);
void ggi_memory_delete(gg_memory *memory); /* the handle only */
gg_status ggi_memory_no_handle(void);      /* the error */
/* The first reference of external memory. @p release is called once nothing uses the memory. */
gg_status ggi_memory_wrapped(gg_memory *memory, void (*release)(void *), void *owner,
                             gg_memory **out);
/* The memory that contains @p item, or NULL. */
gg_memory *ggi_memory_retired(const struct ggi_retired *item);
/* The released memory is not idle, and need not be examined again before one use by a stream other than @p ignored is over.
 * Returns false. */
bool ggi_memory_wait_for_use(gg_memory *memory, const gg_stream *ignored);
/* The memory no longer waits for a round of the device's epoch. */
void ggi_memory_leave_epoch(gg_memory *memory);

/* The error of a request that the next function refuses. */
gg_status ggi_memory_refuse_request(const gg_device *device, enum gg_memory_kind kind,
                                    size_t nbytes, const gg_stream *stream);
static inline gg_status ggi_memory_check_request(gg_device *device, enum gg_memory_kind kind,
                                                 size_t nbytes, const gg_stream *stream)
{
    const gg_status status = ggi_device_ready(device);
    const bool known =
        kind == GG_MEMORY_DEVICE || kind == GG_MEMORY_PINNED || kind == GG_MEMORY_MANAGED;
    return status || (known && nbytes <= PTRDIFF_MAX && (!stream || stream->device == device))
               ? status
               : ggi_memory_refuse_request(device, kind, nbytes, stream);
}
gg_status ggi_memory_check_range(const gg_memory *memory, const char *what, size_t offset,
                                 size_t nbytes);

/* ---- pinned host memory by address: pinned_index.c ---- */

/* ggi_memory_new_handle, which also adds host memory to the index; its backing removes it. */
gg_memory *ggi_memory_new(gg_device *device, enum gg_memory_kind kind, void *pointer, size_t nbytes);

gg_status ggi_pinned_add(gg_memory *memory);
/* Fails if memory in the index is on the same pages. */
gg_status ggi_pinned_add_alone(gg_memory *memory);
void ggi_pinned_remove(gg_memory *memory);
/* A reference to the memory that contains [pointer, pointer + nbytes), or NULL. */
gg_memory *ggi_pinned_find(const void *pointer, size_t nbytes, size_t *offset);
/* Whether host memory that is not in the index shares a page with registered memory. */
bool ggi_pinned_shares_page(const void *pointer, size_t nbytes);

/* ---- the cache of host memory for readbacks: host_cache.c ---- */

#define GGI_HUGE_PAGE ((size_t)2 << 20) /* to which large readbacks are aligned */

/* Whether the cache pinned the memory. */
bool ggi_host_cache_owns(const gg_memory *memory);
/* Free the cached memory of the device. */
void ggi_host_cache_trim(struct gg_device *device);

#endif
