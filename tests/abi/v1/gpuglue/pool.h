/* pool.h: statistics and limits of the memory pools.
 *
 * Each device has one pool of device memory, one of pinned and one of managed memory. Released blocks stay
 * in their pool and are reused without a driver call: at once by the stream that they were allocated for,
 * since work on a stream runs in order, and by other streams when all streams that used the block have
 * completed that work. The first use on another stream than the one of the allocation waits, on the
 * device, for the work that preceded the allocation. Blocks above 256 MiB bypass the pool. When the driver
 * is out of memory, idle blocks are returned and the allocation is tried again.
 * GPUGLUE_ALLOCATOR=direct turns the pools off. */
#ifndef GG_POOL_H
#define GG_POOL_H

#include <gpuglue/memory.h>

GG_BEGIN_DECLS

/** Memory that gpuglue holds on a device, over all kinds. */
struct gg_memory_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t blocks, bytes;                 /* allocated and not released */
    uint64_t retired_blocks, retired_bytes; /* released, not yet returned to the driver */
};
/** Read the statistics. Other threads may change them between two members.
 *  Errors  GG_ERR_INVALID_ARGUMENT: struct_size is too small. */
GG_API gg_status gg_device_memory_stats(gg_device *device, struct gg_memory_stats *stats);

/** Return released idle memory of all pools of @p device to the driver. Never waits for user work: if the
 *  driver's free synchronizes the device, the memory is freed when all of gpuglue's streams are idle. */
GG_API gg_status gg_device_trim(gg_device *device);

/** gg_device_trim for every device in use. */
GG_API gg_status gg_trim(void);

struct gg_pool_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t used_blocks, used_bytes;     /* allocated and not released; bytes as requested */
    uint64_t used_peak;                   /* highest used_bytes */
    uint64_t cached_blocks, cached_bytes; /* free blocks */
    /* Released blocks that queued work still uses, or that wait to be freed. */
    uint64_t retired_blocks, retired_bytes;
    uint64_t reserved_bytes, reserved_peak; /* obtained from the driver: now, and the highest */
    uint64_t allocations;                   /* since the process started */
    uint64_t driver_calls;                  /* to allocate and to free */
    uint64_t limit;                         /* of reserved_bytes; 0: none */
    /* Free bytes above it are returned to the driver; UINT64_MAX: none. 256 MiB for pinned memory. */
    uint64_t release_threshold;
};
/** Read the statistics of one pool. */
GG_API gg_status gg_pool_stats(gg_device *device, enum gg_memory_kind kind,
                               struct gg_pool_stats *stats);

/** Return free blocks to the driver until at most @p keep bytes are left. See gg_device_trim. */
GG_API gg_status gg_pool_trim(gg_device *device, enum gg_memory_kind kind, uint64_t keep);

/** Limit the bytes obtained from the driver; 0: no limit. An allocation beyond the limit is
 *  GG_ERR_OUT_OF_MEMORY after idle blocks were returned.
 *  Errors  GG_ERR_INVALID_ARGUMENT: more is in use already. */
GG_API gg_status gg_pool_set_limit(gg_device *device, enum gg_memory_kind kind, uint64_t limit);

/** Keep at most @p threshold bytes of free blocks (UINT64_MAX: any number) and return the others to the
 *  driver, as CUDA's release threshold does. */
GG_API gg_status gg_pool_set_release_threshold(gg_device *device, enum gg_memory_kind kind,
                                               uint64_t threshold);

GG_END_DECLS
#endif
