/** @file
 *  Cached host memory for data copied from a device.
 *
 *  @par Ordering
 *  Nothing here orders work. A block must not be freed before the copy that fills it is complete.
 *  @par Threads
 *  Any thread. A block may be freed on another thread than the one that allocated it. */
#ifndef GG_READBACK_H
#define GG_READBACK_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Allocate private host memory for copies from a device, aligned to 2 MiB. A forked child gets its own copy.
 *
 *  Freed blocks are cached, so that their pages are already mapped: at most 1 GiB (GPUGLUE_RESULT_CACHE, in MiB);
 *  gg_device_trim empties the cache. From its second use on a block is also pinned if the device supports it. May call
 *  the driver.
 *
 *  @param device      from which it will be filled
 *  @param nbytes      bytes, at least
 *  @param[out] out    the block
 *  @param[out] fresh  1 if the pages are not mapped yet: pass GG_COPY_DST_UNTOUCHED to the copy that fills the block
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_OUT_OF_MEMORY  of the host */
GG_API gg_status gg_readback_alloc(gg_device *device, size_t nbytes, void **out, int32_t *fresh);

/** Resize a block as realloc does. Also works in a forked child and after shutdown, without pinning.
 *
 *  @param block     from gg_readback_alloc
 *  @param nbytes    bytes, at least
 *  @param[out] out  the block, possibly at another address
 *  @return GG_OK
 *  @retval GG_ERR_OUT_OF_MEMORY  the old block is unchanged */
GG_API gg_status gg_readback_resize(void *block, size_t nbytes, void **out);

/** Free a block. Never waits and never calls the driver.
 *
 *  @param block  may be NULL */
GG_API void gg_readback_free(void *block);

/** The device that a block was allocated for.
 *
 *  @param block  from gg_readback_alloc
 *  @return the device, not a reference */
GG_API gg_device *gg_readback_device(const void *block);

/** Size of a block.
 *
 *  @param block  from gg_readback_alloc
 *  @return bytes, at least what was requested */
GG_API size_t gg_readback_size(const void *block);

GG_END_DECLS
#endif
