/* readback.h: cached host memory for data copied from a device. */
#ifndef GG_READBACK_H
#define GG_READBACK_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Allocate at least @p nbytes of private host memory for copies from @p device, aligned to 2 MiB. A
 *  forked child gets its own copy. Freed blocks are cached, at most 1 GiB (GPUGLUE_RESULT_CACHE, in MiB;
 *  gg_device_trim empties the cache), so their pages are already mapped; from its second use on a block
 *  is also page-locked if the device supports it. @p fresh is set to 1 if the pages are not mapped yet:
 *  pass GG_COPY_DST_UNTOUCHED to the copy that fills the block. May call the driver.
 *  Errors  GG_ERR_OUT_OF_MEMORY. */
GG_API gg_status gg_readback_alloc(gg_device *device, size_t nbytes, void **out, int32_t *fresh);

/** Resize a block as realloc does. Also works in a forked child and after shutdown, without page-locking.
 *  Errors  GG_ERR_OUT_OF_MEMORY: the old block is unchanged. */
GG_API gg_status gg_readback_resize(void *block, size_t nbytes, void **out);

/** Free a block, from any thread. Never waits and never calls the driver. NULL is allowed. */
GG_API void gg_readback_free(void *block);

/** The device that the block was allocated for. */
GG_API gg_device *gg_readback_device(const void *block);

/** Size in bytes, at least what was requested. */
GG_API size_t gg_readback_size(const void *block);

GG_END_DECLS
#endif
