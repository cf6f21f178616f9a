/* stream.h: queues of device work. */
#ifndef GG_STREAM_H
#define GG_STREAM_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

enum gg_stream_flag {
    GG_STREAM_NONBLOCKING = 1 /* not synchronized with the legacy default stream */
};

/** Create a stream. @p priority has the vendor's meaning (lower is more urgent) and is clamped to the
 *  device's range.
 *  Errors  GG_ERR_INVALID_ARGUMENT: unknown flag. */
GG_API gg_status gg_stream_create(gg_device *device, uint32_t flags, int32_t priority,
                                  gg_stream **out);

/** Wrap a native stream that another library owns; gpuglue never destroys it. On cuda and hip, 0 and 1
 *  are the legacy default stream; on cuda, 2 is the per-thread default stream.
 *  Ownership  @p release(@p owner) is called once when gpuglue no longer needs the stream, but not if
 *             this call fails. With @p release NULL the caller keeps the native stream alive only during
 *             each call that uses it, and gpuglue records an event after each use. */
GG_API gg_status gg_stream_borrow(gg_device *device, uint64_t native, void (*release)(void *owner),
                                  void *owner, gg_stream **out);

/** The device's default stream. Returns no reference; it lives as long as the process. */
GG_API gg_status gg_device_default_stream(gg_device *device, gg_stream **out);

/** Add a reference; drop one (NULL is allowed). Queued work continues after the last release. */
GG_API void gg_stream_retain(gg_stream *stream);
GG_API void gg_stream_release(gg_stream *stream);

/** The device of the stream. */
GG_API gg_device *gg_stream_device(const gg_stream *stream);

/** Native handles, valid as long as the stream. cuda and hip: the stream; host: an identifier; ze: see
 *  docs/backends.md. Unused entries are 0. */
GG_API gg_status gg_stream_native(gg_stream *stream, uint64_t handles[4]);

/** GG_OK if all work on the stream is complete, GG_NOT_READY otherwise. */
GG_API gg_status gg_stream_query(gg_stream *stream);

/** Wait at most @p timeout_ns for all work on the stream; GG_NOT_READY if the time is up. 0 is a query. */
GG_API gg_status gg_stream_wait(gg_stream *stream, uint64_t timeout_ns);

/** Make later work on @p stream wait, on the device, for the last recording of @p event. Does nothing for
 *  an event that was never recorded. */
GG_API gg_status gg_stream_wait_event(gg_stream *stream, gg_event *event);

/** Make later work on @p stream wait, on the device, for all work queued so far on @p other, which may
 *  belong to another device. */
GG_API gg_status gg_stream_wait_stream(gg_stream *stream, gg_stream *other);

/** Make later work on @p stream wait, on the device, for all work on @p memory that gpuglue knows. An
 *  operation without a stream does this by itself. Both belong to the same backend. */
GG_API gg_status gg_stream_wait_memory(gg_stream *stream, gg_memory *memory);

/** Queue a host function. It runs in stream order, on a thread of the driver or of the backend, and must
 *  call neither gpuglue nor the driver. */
GG_API gg_status gg_stream_host_func(gg_stream *stream, void (*function)(void *), void *argument);

/** Range of stream priorities, such as least 0 and greatest -5. */
GG_API gg_status gg_stream_priority_range(gg_device *device, int32_t *least, int32_t *greatest);

GG_END_DECLS
#endif
