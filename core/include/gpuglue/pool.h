/** @file
 *  Statistics and limits of the memory pools.
 *
 *  Each device has one pool of device memory, one of pinned and one of managed memory. Free blocks above 256 MiB return to
 *  the driver at once, unless the driver's free may wait for the device: then they are kept, up to an eighth of the
 *  device's memory. Where it may wait, larger free blocks are also split to serve smaller requests, and merged again. Before a
 *  pool of device memory holds much more than was ever in use, idle blocks are returned if all known streams are idle. When the
 *  driver is out of memory, idle blocks are returned and the allocation is tried again.
 *  GPUGLUE_ALLOCATOR=direct turns the pools off.
 *
 *  @par Ordering
 *  Released blocks stay in their pool and are reused without a driver call. The stream that a block was allocated for may
 *  reuse it at once, because work on a stream runs in order. Other streams may reuse it when all streams that used the block
 *  have completed that work. The first use of memory on a stream other than that of the allocation waits, on the device, for
 *  the work that preceded the allocation, unless what preceded the release of the block is known to be done.
 *  @par Threads
 *  Any thread. Other threads may change the statistics between two members. */
#ifndef GG_POOL_H
#define GG_POOL_H

#include <gpuglue/memory.h>

GG_BEGIN_DECLS

/** Memory that gpuglue holds on a device, over all kinds. */
struct gg_memory_stats {
    uint32_t struct_size;    /**< sizeof(struct gg_memory_stats) */
    uint32_t reserved;       /**< 0 */
    uint64_t blocks,         /**< allocated and not released: number of them */
        bytes;               /**< their size */
    uint64_t retired_blocks, /**< released, not yet returned to the driver: number of them */
        retired_bytes;       /**< their size */
};
/** Read the statistics of a device.
 *
 *  @param device         any device
 *  @param[in,out] stats  set its struct_size first
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  struct_size is too small */
GG_API gg_status gg_device_memory_stats(gg_device *device, struct gg_memory_stats *stats);

/** Return released idle memory of all pools of a device to the driver. Never waits for user work: if the driver's free
 *  synchronizes the device, the memory is freed when all of gpuglue's streams are idle.
 *
 *  @param device  any device
 *  @return GG_OK, or a common error */
GG_API gg_status gg_device_trim(gg_device *device);

/** gg_device_trim for every device in use.
 *
 *  @return GG_OK, or a common error */
GG_API gg_status gg_trim(void);

/** The state of one pool. */
struct gg_pool_stats {
    uint32_t struct_size;   /**< sizeof(struct gg_pool_stats) */
    uint32_t reserved;      /**< 0 */
    uint64_t used_blocks,   /**< allocated and not released: number of them */
        used_bytes;         /**< their size, as requested */
    uint64_t used_peak;     /**< highest used_bytes; an estimate while threads contend */
    uint64_t cached_blocks, /**< free blocks */
        cached_bytes;       /**< their size */
    uint64_t retired_blocks, /**< released blocks that queued work still uses, or that wait to be freed */
        retired_bytes;       /**< their size */
    uint64_t reserved_bytes, /**< obtained from the driver */
        reserved_peak;       /**< highest reserved_bytes */
    uint64_t allocations;    /**< since the process started */
    uint64_t driver_calls;   /**< to allocate and to free */
    uint64_t limit;          /**< of reserved_bytes; 0: none */
    /** Free bytes above it are returned to the driver; UINT64_MAX: none. 256 MiB for pinned memory. Until a threshold
     *  is set, free blocks of device memory above 256 MiB are returned beyond an eighth of the device's memory. */
    uint64_t release_threshold;
};
/** Read the statistics of one pool.
 *
 *  @param device         any device
 *  @param kind           which pool
 *  @param[in,out] stats  set its struct_size first
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  struct_size is too small, or there is no pool of that kind */
GG_API gg_status gg_pool_stats(gg_device *device, enum gg_memory_kind kind,
                               struct gg_pool_stats *stats);

/** Return free blocks to the driver. See gg_device_trim.
 *
 *  @param device  any device
 *  @param kind    which pool
 *  @param keep    bytes of free blocks that may stay
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  there is no pool of that kind */
GG_API gg_status gg_pool_trim(gg_device *device, enum gg_memory_kind kind, uint64_t keep);

/** Limit the memory of a pool. An allocation beyond the limit is GG_ERR_OUT_OF_MEMORY after idle blocks were returned.
 *
 *  @param device  any device
 *  @param kind    which pool
 *  @param limit   bytes obtained from the driver; 0: no limit
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  more is in use already, or there is no pool of that kind */
GG_API gg_status gg_pool_set_limit(gg_device *device, enum gg_memory_kind kind, uint64_t limit);

/** Limit the free blocks that a pool keeps, as CUDA's release threshold does. Device memory beyond it is freed as by
 *  gg_device_trim, and is reused until then.
 *
 *  @param device     any device
 *  @param kind       which pool
 *  @param threshold  bytes of free blocks to keep; more are returned to the driver. UINT64_MAX: no limit
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  there is no pool of that kind */
GG_API gg_status gg_pool_set_release_threshold(gg_device *device, enum gg_memory_kind kind,
                                               uint64_t threshold);

GG_END_DECLS
#endif
