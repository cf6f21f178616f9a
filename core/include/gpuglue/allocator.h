/** @file
 *  A user's allocator in place of the pool of device memory.
 *
 *  @par Ordering
 *  alloc returns memory that is ready for use on the stream it receives. gpuglue calls free when all work that it knows
 *  of on the memory is complete.
 *  @par Threads
 *  Both functions of an allocator may be called from any thread, also gpuglue's own. They must not call gpuglue, except
 *  where noted. */
#ifndef GG_ALLOCATOR_H
#define GG_ALLOCATOR_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Source of device memory for all devices. */
struct gg_allocator {
    uint32_t struct_size; /**< sizeof(struct gg_allocator) */
    uint32_t reserved;    /**< 0 */
    void *user;           /**< passed to both functions */
    /** Allocate @p nbytes > 0 of device memory that is ready for use on @p stream, and store its device address in
     *  @p out. May call gg_stream_native. Any status but GG_OK is a failed allocation. */
    gg_status (*alloc)(void *user, gg_device *device, size_t nbytes, gg_stream *stream, void **out);
    /** Free memory from alloc, of @p nbytes as requested there. All work known to gpuglue is complete. */
    void (*free)(void *user, gg_device *device, void *pointer, size_t nbytes);
};

/** Use an allocator for all device memory from now on. Existing memory is freed by the allocator that it came from.
 *
 *  gpuglue checks returned addresses if the driver can identify them: an allocation fails with GG_ERR_INVALID_ARGUMENT if
 *  the address is NULL, is on another device, or has fewer bytes than requested.
 *
 *  @param allocator  is copied; NULL restores the pool
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  a function is missing, or struct_size is too small */
GG_API gg_status gg_set_allocator(const struct gg_allocator *allocator);

GG_END_DECLS
#endif
