/* pool.h: the memory that gpuglue keeps: how much, and giving it back. Included by gpuglue.h.
 *
 * Each device has two pools, of device and of pinned memory. What is released stays with its pool and is given
 * out again without a driver call: at once for the stream that it was allocated for, since work there runs
 * in order, and for others when that stream and all others that used it were seen to be done. The first
 * use on another stream than the one it was allocated for waits, on the device, for what that stream had
 * at the allocation. Blocks above 256 MiB go back to the driver instead. Where memory runs out, idle
 * blocks are given back and the driver is asked again. GPUGLUE_ALLOCATOR=direct keeps nothing. */
#ifndef GPUGLUE_POOLS_H
#define GPUGLUE_POOLS_H

#include <gpuglue/gpuglue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What gpuglue keeps of a device's memory. */
struct gg_memory_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t blocks, bytes;                 /* given out and not released */
    uint64_t retired_blocks, retired_bytes; /* released, not yet given back to the driver */
};
/** The counts now; between two of them other threads may have been at work.
 *  Errors  GG_ERR_INVALID_ARGUMENT: struct_size. */
GG_API gg_status gg_device_memory_stats(gg_device *device, struct gg_memory_stats *stats);

/** Give back to the driver what was released and is idle, of both pools. Waits for nothing of the user's:
 *  where a driver's free waits for the whole device, it comes when all of gpuglue's streams are idle. */
GG_API gg_status gg_device_trim(gg_device *device);
/** The same of every device that was used. */
GG_API gg_status gg_trim(void);

struct gg_pool_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t used_blocks, used_bytes;     /* given out and not released; bytes as asked for */
    uint64_t peak_bytes;                  /* the most that were used at a time */
    uint64_t cached_blocks, cached_bytes; /* free blocks, of this or that stream */
    uint64_t retired_blocks,
        retired_bytes; /* released: queued work still uses it, or it waits to be freed */
    uint64_t held_bytes, held_peak; /* that the driver gave: now, and the most at a time */
    uint64_t allocations;           /* since the beginning */
    uint64_t driver_calls;          /* to allocate and to free */
    uint64_t limit;                 /* of held_bytes; 0: none */
    uint64_t keep; /* of cached_bytes; UINT64_MAX: none. 256 MiB for pinned memory */
};
GG_API gg_status gg_pool_stats(gg_device *device, enum gg_memory_kind kind,
                               struct gg_pool_stats *stats);

/** Give back to the driver what is idle beyond @p keep bytes. See gg_device_trim. */
GG_API gg_status gg_pool_trim(gg_device *device, enum gg_memory_kind kind, uint64_t keep);

/** Take at most @p limit bytes from the driver; 0: no limit. An allocation beyond it is out of memory,
 *  after idle blocks were given back.
 *  Errors  GG_ERR_INVALID_ARGUMENT: more than that is in use. */
GG_API gg_status gg_pool_set_limit(gg_device *device, enum gg_memory_kind kind, uint64_t limit);

/** Keep at most @p keep bytes of free blocks (UINT64_MAX: any number); what is more goes back. */
GG_API gg_status gg_pool_set_keep(gg_device *device, enum gg_memory_kind kind, uint64_t keep);

/** Where device memory comes from in place of the pool, for all devices. Both functions may be called from
 *  any thread, and by gpuglue's own housekeeping: they must not call gpuglue otherwise
 *  than is said here. */
struct gg_allocator {
    uint32_t struct_size;
    uint32_t reserved;
    void *user;
    /* @p nbytes > 0 of device memory, ready for use on @p stream. gg_stream_native alone may be called
     * here. Not GG_OK: there is none. */
    gg_status (*alloc)(void *user, gg_device *device, size_t nbytes, gg_stream *stream, void **out);
    /* All work that gpuglue knows of is done. */
    void (*free)(void *user, gg_device *device, void *pointer, size_t nbytes);
};

/** Use @p allocator (copied) from now on; NULL: the pool again. Memory that exists goes back to where it
 *  came from. What it gives is checked as far as the driver knows the address.
 *  Errors  GG_ERR_INVALID_ARGUMENT: a function is missing; of an allocation: a pointer that is NULL, of
 *          another device or too short. */
GG_API gg_status gg_set_allocator(const struct gg_allocator *allocator);

#ifdef __cplusplus
}
#endif
#endif
