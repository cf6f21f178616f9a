/* allocator.h: a user's allocator in place of the device memory pool. */
#ifndef GG_ALLOCATOR_H
#define GG_ALLOCATOR_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Source of device memory for all devices. Both functions may be called from any thread, including
 *  gpuglue's internal maintenance, and must not call gpuglue except where noted. */
struct gg_allocator {
    uint32_t struct_size;
    uint32_t reserved;
    void *user;
    /* Allocate @p nbytes > 0 of device memory that is ready for use on @p stream. May call
     * gg_stream_native. Any status but GG_OK is a failed allocation. */
    gg_status (*alloc)(void *user, gg_device *device, size_t nbytes, gg_stream *stream, void **out);
    /* Free it. All work known to gpuglue is complete. */
    void (*free)(void *user, gg_device *device, void *pointer, size_t nbytes);
};

/** Use @p allocator, which is copied, from now on; NULL restores the pool. Existing memory is freed by the
 *  allocator that it came from. Returned addresses are checked as far as the driver knows them.
 *  Errors  GG_ERR_INVALID_ARGUMENT: a function is missing. An allocation fails with it if the address is
 *          NULL, on another device, or too short. */
GG_API gg_status gg_set_allocator(const struct gg_allocator *allocator);

GG_END_DECLS
#endif
