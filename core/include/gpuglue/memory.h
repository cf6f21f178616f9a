/** @file
 *  Memory that the device can reach, and the work that uses it.
 *
 *  @par Ordering
 *  gpuglue tracks the work that it queued on a memory, and the work that gg_memory_record_use declares. Operations without
 *  a stream wait for this work, and memory is reused or freed when the work is complete. New memory may be used at once on
 *  the stream that it was allocated for; the first use on another stream waits, on the device (pool.h).
 *  @par Threads
 *  Any thread. Releases never wait and may come from a destructor or a garbage collector. */
#ifndef GG_MEMORY_H
#define GG_MEMORY_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Where memory is. */
enum gg_memory_kind {
    GG_MEMORY_HOST,   /**< ordinary (pageable) host memory; returned by queries only */
    GG_MEMORY_DEVICE, /**< on the device */
    GG_MEMORY_PINNED, /**< page-locked host memory that the device can access */
    GG_MEMORY_MANAGED /**< migrated by the driver */
};

/** Allocate device, pinned or managed memory, aligned to at least 256 bytes.
 *
 *  @param device    any device
 *  @param kind      not GG_MEMORY_HOST
 *  @param nbytes    bytes; 0 gives memory with a NULL pointer
 *  @param stream    the stream that the memory is allocated for; NULL: the current stream
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_OUT_OF_MEMORY  also after gpuglue returned its idle memory to the driver; the message has the sizes
 *  @retval GG_ERR_UNSUPPORTED    the device has no managed memory */
GG_API gg_status gg_memory_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                                 gg_stream *stream, gg_memory **out);

/** Allocate from the pool without a driver call and without waiting. Takes well under a microsecond.
 *
 *  @param device    any device
 *  @param kind      not GG_MEMORY_HOST
 *  @param nbytes    bytes
 *  @param stream    as for gg_memory_alloc
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_NOT_READY  the pool has no free block: call gg_memory_alloc, which calls the driver */
GG_API gg_status gg_memory_try_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                                     gg_stream *stream, gg_memory **out);

/** Wrap memory that another library owns.
 *
 *  @param device    the device that can access it
 *  @param kind      what it is
 *  @param pointer   its first byte
 *  @param nbytes    its size in bytes
 *  @param release   called once with @p owner, from any thread, when the last reference is dropped and all queued work is
 *                   complete. NULL: no callback
 *  @param owner     passed to @p release
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  @p pointer is NULL and @p nbytes is not 0 */
GG_API gg_status gg_memory_wrap(gg_device *device, enum gg_memory_kind kind, void *pointer,
                                size_t nbytes, void (*release)(void *owner), void *owner,
                                gg_memory **out);

/** Pin existing host memory, so that copies from and to it are asynchronous. Only these bytes are registered with the
 *  driver; the operating system locks their whole pages.
 *
 *  @param device    a device that will use it
 *  @param pointer   its first byte
 *  @param nbytes    its size in bytes
 *  @param release   called once with @p owner when the memory is unlocked; the memory must exist until then. If the driver
 *                   refuses to unlock it, release is never called and the memory must never be freed. NULL: no callback
 *  @param owner     passed to @p release
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  0 bytes, or gpuglue has already locked one of its pages
 *  @retval GG_ERR_UNSUPPORTED       the backend cannot register memory */
GG_API gg_status gg_memory_host_register(gg_device *device, void *pointer, size_t nbytes,
                                         void (*release)(void *owner), void *owner, gg_memory **out);

/** Add a reference.
 *
 *  @param memory  any memory */
GG_API void gg_memory_retain(gg_memory *memory);

/** Drop a reference. Never waits: the memory is freed when its work is complete.
 *
 *  @param memory  may be NULL */
GG_API void gg_memory_release(gg_memory *memory);

/** Address of the first byte: a device address, or a host address for pinned memory.
 *
 *  @param memory  any memory
 *  @return valid as long as the memory; NULL for 0 bytes */
GG_API void *gg_memory_pointer(const gg_memory *memory);

/** Size of the memory.
 *
 *  @param memory  any memory
 *  @return bytes, as requested */
GG_API size_t gg_memory_size(const gg_memory *memory);

/** Kind of the memory.
 *
 *  @param memory  any memory
 *  @return the kind, as requested */
GG_API enum gg_memory_kind gg_memory_get_kind(const gg_memory *memory);

/** The NUMA node of the memory's first page.
 *
 *  @param memory  any memory
 *  @return the node; -1 if the system does not report it: device memory of a GPU, and pages that nothing has touched */
GG_API int32_t gg_memory_numa_node(const gg_memory *memory);

/** The device that the memory was allocated for.
 *
 *  @param memory  any memory
 *  @return the device, not a reference */
GG_API gg_device *gg_memory_device(const gg_memory *memory);

/** Record that work which gpuglue did not submit uses the memory.
 *
 *  @param memory  any memory
 *  @param stream  all work queued on it so far uses the memory. NULL: unknown streams use it from now on; the memory is
 *                 then reused only when all work that the device had at the memory's release is complete. Where the driver
 *                 captures streams, gpuglue checks this only in gg_device_synchronize, in a free that waits for the
 *                 device, and when memory runs out
 *  @return GG_OK, or a common error */
GG_API gg_status gg_memory_record_use(gg_memory *memory, gg_stream *stream);

/** Record that another library uses the memory on a stream until its release: the memory is reused only when the work that
 *  the stream has at the release is complete. A borrowed stream without an owner may be destroyed earlier: for it the
 *  function uses another stream of gpuglue's with the same native handle, and if there is none does the same as
 *  gg_memory_record_use(memory, NULL).
 *
 *  @param memory  any memory
 *  @param stream  the other library's stream
 *  @return GG_OK, or a common error */
GG_API gg_status gg_memory_share(gg_memory *memory, gg_stream *stream);

/** Declare that wrapped memory becomes valid at the current position of a stream, as memory from cudaMallocAsync does. The
 *  first use on another stream then waits for that position, even if that stream is given explicitly.
 *
 *  @param memory  wrapped memory
 *  @param stream  on which the other library allocated it
 *  @return GG_OK, or a common error */
GG_API gg_status gg_memory_ready_after(gg_memory *memory, gg_stream *stream);

/** Wait for the work known to gpuglue that uses the memory at the time of the call. Work that other threads submit during
 *  the wait is not included. Calls the wait hook.
 *
 *  @param memory  any memory
 *  @return GG_OK, a common error, or the error of that work
 *  @retval GG_ERR_INTERRUPTED  ended by the wait hook
 *  @retval GG_ERR_UNSUPPORTED  used by work of a capture that this thread began: it does not run yet */
GG_API gg_status gg_memory_wait(gg_memory *memory);

/** Whether work known to gpuglue uses the memory. Does not wait for that work.
 *
 *  @param memory  any memory
 *  @return one of these, a common error, or the error of collective operations that ended without a result and that no wait has
 *      reported; the next wait reports it, too
 *  @retval GG_OK         no such work
 *  @retval GG_NOT_READY  there is unfinished work, or work of a capture that this thread began */
GG_API gg_status gg_memory_query(gg_memory *memory);

/** Flags of gg_memory_completion_stream. */
enum gg_completion_flag {
    GG_COMPLETION_ALLOW_DEFAULT = 1 /**< the device's default stream may be returned */
};

/** A stream whose order covers all unfinished work on the memory, for a library that will wait on the device: the stream of
 *  that work, or an internal stream that waits for several streams. Never waits, and queries the driver only for work from
 *  before the allocation.
 *
 *  @param memory    any memory
 *  @param flags     of enum gg_completion_flag, or 0
 *  @param[out] out  one reference; NULL if no work is pending
 *  @return GG_OK, or a common error */
GG_API gg_status gg_memory_completion_stream(gg_memory *memory, uint32_t flags, gg_stream **out);

/** Declare that no graph which was captured with this memory will run any more. Memory that was used during stream capture
 *  is otherwise neither reused nor freed.
 *
 *  @param memory  any memory */
GG_API void gg_memory_release_captured(gg_memory *memory);

GG_END_DECLS
#endif
