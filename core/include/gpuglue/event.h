/** @file
 *  Events: points in a stream's order that others can wait for.
 *
 *  @par Ordering
 *  An event stands for its last recording: all work that was queued on the recorded stream before it. An event that was
 *  never recorded counts as complete. One that was recorded in a capture only orders the captured work: a query of it
 *  or a host wait for it is an error.
 *  @par Threads
 *  Any thread. If two threads record the same event, the later recording replaces the earlier one. */
#ifndef GG_EVENT_H
#define GG_EVENT_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** How an event behaves. */
enum gg_event_flag {
    GG_EVENT_TIMING = 1,  /**< usable with gg_event_elapsed */
    GG_EVENT_BLOCKING = 2 /**< a host wait sleeps at once instead of spinning first */
};

/** Create an event that is not recorded yet.
 *
 *  @param device    whose streams will record it
 *  @param flags     of enum gg_event_flag, or 0
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  an unknown flag */
GG_API gg_status gg_event_create(gg_device *device, uint32_t flags, gg_event **out);

/** Wrap a native event that another library owns; gpuglue never destroys it.
 *
 *  @param device    the device of the native event
 *  @param native    the vendor's handle
 *  @param release   called once with @p owner when gpuglue no longer needs the event, but not if this call fails. NULL:
 *                   the caller keeps the native event alive during each call that uses it
 *  @param owner     passed to @p release
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNSUPPORTED  the backend has no native events */
GG_API gg_status gg_event_borrow(gg_device *device, uint64_t native, void (*release)(void *owner),
                                 void *owner, gg_event **out);

/** Add a reference.
 *
 *  @param event  any event */
GG_API void gg_event_retain(gg_event *event);

/** Drop a reference. Never waits.
 *
 *  @param event  may be NULL */
GG_API void gg_event_release(gg_event *event);

/** The device of the event.
 *
 *  @param event  any event
 *  @return the device, not a reference */
GG_API gg_device *gg_event_device(const gg_event *event);

/** Native handles of the event.
 *
 *  @param event         any event
 *  @param[out] handles  valid as long as the event; unused entries are 0
 *  @return GG_OK, or a common error */
GG_API gg_status gg_event_native(gg_event *event, uint64_t handles[4]);

/** Record the event after all work queued so far on a stream. Recording again replaces the earlier recording.
 *
 *  @param event   any event
 *  @param stream  of the event's device
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  a stream of another device */
GG_API gg_status gg_event_record(gg_event *event, gg_stream *stream);

/** Whether the last recording is complete. Never waits.
 *
 *  @param event  any event
 *  @return one of these, a common error, or the error of work before the recording
 *  @retval GG_OK                    complete, or never recorded
 *  @retval GG_NOT_READY             not complete
 *  @retval GG_ERR_INVALID_ARGUMENT  recorded in a capture */
GG_API gg_status gg_event_query(gg_event *event);

/** The same as gg_event_query, for a thread that polls events on behalf of others: it does not invalidate captures of
 *  other threads, and does not appear in the tracer or in a recording. Never waits.
 *
 *  @param event  any event
 *  @return one of these, a common error, or the error of work before the recording
 *  @retval GG_OK                    complete, or never recorded
 *  @retval GG_NOT_READY             not complete
 *  @retval GG_ERR_INVALID_ARGUMENT  recorded in a capture */
GG_API gg_status gg_event_poll(gg_event *event);

/** Whether the last recording is on the same stream as that of another event, and not before it. Never waits.
 *
 *  @param event    any event
 *  @param earlier  any event
 *  @return 1, or 0: no, or it is not known, as of events that were recorded in a capture or outside of gpuglue */
GG_API int32_t gg_event_follows(const gg_event *event, const gg_event *earlier);

/** Wait for the last recording. Calls the wait hook.
 *
 *  @param event       any event
 *  @param timeout_ns  nanoseconds to wait at most, or GG_FOREVER; 0 is a query
 *  @return one of these, a common error, or the error of work before the recording
 *  @retval GG_OK                    complete, or never recorded
 *  @retval GG_NOT_READY             the timeout has expired
 *  @retval GG_ERR_INTERRUPTED       ended by the wait hook
 *  @retval GG_ERR_INVALID_ARGUMENT  recorded in a capture */
GG_API gg_status gg_event_wait(gg_event *event, uint64_t timeout_ns);

/** Time between two recordings, as the device measured it.
 *
 *  @param start              created with GG_EVENT_TIMING, and recorded
 *  @param stop               the same
 *  @param[out] milliseconds  from @p start to @p stop
 *  @return GG_OK, or a common error
 *  @retval GG_NOT_READY             one of the two is not complete
 *  @retval GG_ERR_INVALID_ARGUMENT  not recorded, created without GG_EVENT_TIMING, or of two devices */
GG_API gg_status gg_event_elapsed(gg_event *start, gg_event *stop, double *milliseconds);

GG_END_DECLS
#endif
