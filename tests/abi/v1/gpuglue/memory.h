/* memory.h: memory that the device can reach, and the work that uses it. */
#ifndef GG_MEMORY_H
#define GG_MEMORY_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

enum gg_memory_kind {
    GG_MEMORY_HOST,   /* ordinary (pageable) host memory; returned by queries only */
    GG_MEMORY_DEVICE, /* on the device */
    GG_MEMORY_PINNED, /* page-locked host memory that the device can access */
    GG_MEMORY_MANAGED /* migrated by the driver */
};

/** Allocate @p nbytes of device, pinned or managed memory, aligned to at least 256 bytes. 0 bytes give
 *  memory with a NULL pointer. @p stream (NULL: the current stream) is the stream that the memory is
 *  allocated for: the first use on another stream waits, see pool.h.
 *  Errors  GG_ERR_OUT_OF_MEMORY, with sizes, after released idle memory was returned to the driver;
 *          GG_ERR_UNSUPPORTED: the device has no managed memory. */
GG_API gg_status gg_memory_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                                 gg_stream *stream, gg_memory **out);

/** Allocate from the pool without a driver call and without waiting. GG_NOT_READY if the pool has no
 *  free block: gg_memory_alloc then calls the driver. Takes well under a microsecond. */
GG_API gg_status gg_memory_try_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                                     gg_stream *stream, gg_memory **out);

/** Wrap memory that another library owns.
 *  Ownership  @p release(@p owner) is called once, from any thread, when the last reference is dropped
 *             and all queued work is complete. NULL: no callback. */
GG_API gg_status gg_memory_wrap(gg_device *device, enum gg_memory_kind kind, void *pointer,
                                size_t nbytes, void (*release)(void *owner), void *owner,
                                gg_memory **out);

/** Page-lock existing host memory, so that copies from and to it are asynchronous. Only these bytes are
 *  registered with the driver; the operating system locks their whole pages.
 *  Ownership  @p release(@p owner) is called once when the memory is unlocked; it must exist until then.
 *             If the driver refuses to unlock it, release is never called and the memory must never be
 *             freed.
 *  Errors     GG_ERR_INVALID_ARGUMENT: 0 bytes, or gpuglue has already locked one of its pages;
 *             GG_ERR_UNSUPPORTED: the backend cannot register memory. */
GG_API gg_status gg_memory_host_register(gg_device *device, void *pointer, size_t nbytes,
                                         void (*release)(void *owner), void *owner, gg_memory **out);

/** Add a reference; drop one (NULL is allowed). The memory is freed when its work is complete. */
GG_API void gg_memory_retain(gg_memory *memory);
GG_API void gg_memory_release(gg_memory *memory);

/** Address of the first byte: a device address, or a host address for pinned memory. NULL for 0 bytes.
 *  Valid as long as the memory. */
GG_API void *gg_memory_pointer(const gg_memory *memory);

/** Size in bytes and kind, as requested, and the device. */
GG_API size_t gg_memory_size(const gg_memory *memory);
GG_API enum gg_memory_kind gg_memory_get_kind(const gg_memory *memory);
GG_API gg_device *gg_memory_device(const gg_memory *memory);

/** Record that work which gpuglue did not submit uses @p memory: all work queued so far on @p stream.
 *  With @p stream NULL, unknown streams use it from now on: after its release the memory is reused only
 *  when all work that the device had at the release is complete. */
GG_API gg_status gg_memory_record_use(gg_memory *memory, gg_stream *stream);

/** Declare that wrapped memory becomes valid at the current position of @p stream, as memory from
 *  cudaMallocAsync does. The first use on another stream then waits for that position, also when that
 *  stream was given explicitly. */
GG_API gg_status gg_memory_ready_after(gg_memory *memory, gg_stream *stream);

/** Wait until no work known to gpuglue uses @p memory. Calls the wait hook. */
GG_API gg_status gg_memory_wait(gg_memory *memory);

/** GG_OK if no work known to gpuglue uses @p memory, GG_NOT_READY otherwise. Never waits. */
GG_API gg_status gg_memory_query(gg_memory *memory);

enum gg_completion_flag {
    GG_COMPLETION_ALLOW_DEFAULT = 1 /* the device's default stream may be returned */
};

/** A stream whose order covers all unfinished work on @p memory, for a library that will wait on the
 *  device: the stream of that work, or an internal stream that waits for several streams. Returns
 *  a reference, or NULL in @p out if no work is pending. Never waits; queries the driver at most for
 *  work that preceded the allocation. */
GG_API gg_status gg_memory_completion_stream(gg_memory *memory, uint32_t flags, gg_stream **out);

/** Memory that was used during stream capture is neither reused nor freed, since its graph may run
 *  again. Declare that no such graph will run any more. */
GG_API void gg_memory_release_captured(gg_memory *memory);

GG_END_DECLS
#endif
