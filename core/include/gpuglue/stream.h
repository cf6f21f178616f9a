/** @file
 *  Streams: queues of device work.
 *
 *  @par Ordering
 *  Work on one stream runs in the order in which it was queued. Work on two streams has no order, unless one stream
 *  waits for the other (gg_stream_wait_event, gg_stream_wait_stream), or an operation without a stream waits for
 *  unfinished work on its memory. On cuda and hip a stream without GG_STREAM_NONBLOCKING also runs in order with the
 *  legacy default stream.
 *  @par Threads
 *  Any thread. If several threads queue work on one stream, each call queues its work as a whole. */
#ifndef GG_STREAM_H
#define GG_STREAM_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** How a stream behaves. */
enum gg_stream_flag {
    GG_STREAM_NONBLOCKING = 1 /**< not synchronized with the legacy default stream */
};

/** Create a stream.
 *
 *  @param device    any device
 *  @param flags     of enum gg_stream_flag, or 0
 *  @param priority  lower is more urgent; clamped to gg_stream_priority_range; usually 0
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  an unknown flag */
GG_API gg_status gg_stream_create(gg_device *device, uint32_t flags, int32_t priority,
                                  gg_stream **out);

/** Wrap a native stream that another library owns; gpuglue never destroys it.
 *
 *  @param device    the device of the native stream
 *  @param native    the vendor's handle. On cuda and hip, 0 and 1 are the legacy default stream; on cuda, 2 is the
 *                   per-thread default stream
 *  @param release   called once with @p owner when gpuglue no longer needs the stream, but not if this call fails. NULL:
 *                   the caller keeps the native stream alive only during each call that uses it, and gpuglue records an
 *                   event after each use
 *  @param owner     passed to @p release
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNSUPPORTED  the backend has no native streams */
GG_API gg_status gg_stream_borrow(gg_device *device, uint64_t native, void (*release)(void *owner),
                                  void *owner, gg_stream **out);

/** The device's default stream.
 *
 *  @param device    any device
 *  @param[out] out  not a reference; it lives as long as the process
 *  @return GG_OK, or a common error */
GG_API gg_status gg_device_default_stream(gg_device *device, gg_stream **out);

/** Add a reference.
 *
 *  @param stream  any stream */
GG_API void gg_stream_retain(gg_stream *stream);

/** Drop a reference. Never waits: queued work continues after the last release.
 *
 *  @param stream  may be NULL */
GG_API void gg_stream_release(gg_stream *stream);

/** The device of the stream.
 *
 *  @param stream  any stream
 *  @return the device, not a reference */
GG_API gg_device *gg_stream_device(const gg_stream *stream);

/** Native handles of the stream.
 *
 *  @param stream        any stream
 *  @param[out] handles  valid as long as the stream. cuda and hip: the stream; host: an identifier; ze: see
 *                       docs/backends.md. Unused entries are 0
 *  @return GG_OK, or a common error */
GG_API gg_status gg_stream_native(gg_stream *stream, uint64_t handles[4]);

/** Whether all work on the stream is complete. Never waits.
 *
 *  @param stream  any stream
 *  @return one of these, a common error, or the error of work on the stream
 *  @retval GG_OK         complete
 *  @retval GG_NOT_READY  not complete */
GG_API gg_status gg_stream_query(gg_stream *stream);

/** Wait for all work on the stream. Calls the wait hook.
 *
 *  @param stream      any stream
 *  @param timeout_ns  nanoseconds to wait at most, or GG_FOREVER; 0 is a query
 *  @return one of these, a common error, or the error of work on the stream
 *  @retval GG_OK               complete
 *  @retval GG_NOT_READY        the timeout has expired
 *  @retval GG_ERR_INTERRUPTED  ended by the wait hook */
GG_API gg_status gg_stream_wait(gg_stream *stream, uint64_t timeout_ns);

/** Make later work on a stream wait, on the device, for the last recording of an event. Returns at once.
 *
 *  @param stream  any stream
 *  @param event   does nothing if it was never recorded
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  an event of another backend, or of a capture that the stream cannot join */
GG_API gg_status gg_stream_wait_event(gg_stream *stream, gg_event *event);

/** Make later work on a stream wait, on the device, for all work queued so far on another. Returns at once.
 *
 *  @param stream  the stream that waits
 *  @param other   may belong to another device of the same backend
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  a stream of another backend */
GG_API gg_status gg_stream_wait_stream(gg_stream *stream, gg_stream *other);

/** Make later work on a stream wait, on the device, for all work on a memory that gpuglue knows. An operation without a
 *  stream does this by itself. Returns at once.
 *
 *  @param stream  the stream that waits
 *  @param memory  of the same backend
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  memory of another backend */
GG_API gg_status gg_stream_wait_memory(gg_stream *stream, gg_memory *memory);

/** Queue a host function. It runs in stream order, on a thread of the driver or of the backend.
 *
 *  @param stream    any stream
 *  @param function  must call neither gpuglue nor the driver, nor wait for a thread that does: AMD's runtime runs the
 *                   functions of all streams in one thread, and may wait for it when a stream is destroyed
 *  @param argument  passed to @p function
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNSUPPORTED  the backend cannot run host functions */
GG_API gg_status gg_stream_host_func(gg_stream *stream, void (*function)(void *), void *argument);

/** Range of stream priorities of a device.
 *
 *  @param device         any device
 *  @param[out] least     the least urgent, such as 0
 *  @param[out] greatest  the most urgent, such as -5
 *  @return GG_OK, or a common error */
GG_API gg_status gg_stream_priority_range(gg_device *device, int32_t *least, int32_t *greatest);

GG_END_DECLS
#endif
