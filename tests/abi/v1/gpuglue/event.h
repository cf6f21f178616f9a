/* event.h: points in a stream's order that others can wait for. */
#ifndef GG_EVENT_H
#define GG_EVENT_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

enum gg_event_flag {
    GG_EVENT_TIMING = 1,  /* usable with gg_event_elapsed */
    GG_EVENT_BLOCKING = 2 /* a host wait sleeps at once instead of spinning first */
};

/** Create an event that is not recorded yet. @p flags: enum gg_event_flag.
 *  Errors  GG_ERR_INVALID_ARGUMENT: unknown flag. */
GG_API gg_status gg_event_create(gg_device *device, uint32_t flags, gg_event **out);

/** Wrap a native event that another library owns; ownership as in gg_stream_borrow. */
GG_API gg_status gg_event_borrow(gg_device *device, uint64_t native, void (*release)(void *owner),
                                 void *owner, gg_event **out);

/** Add a reference; drop one (NULL is allowed). */
GG_API void gg_event_retain(gg_event *event);
GG_API void gg_event_release(gg_event *event);

/** The device of the event. */
GG_API gg_device *gg_event_device(const gg_event *event);

/** Native handles, valid as long as the event. Unused entries are 0. */
GG_API gg_status gg_event_native(gg_event *event, uint64_t handles[4]);

/** Record the event after all work queued so far on @p stream, a stream of the event's device.
 *  Recording again replaces the earlier recording. */
GG_API gg_status gg_event_record(gg_event *event, gg_stream *stream);

/** GG_OK if the last recording is complete or there was none, GG_NOT_READY otherwise. */
GG_API gg_status gg_event_query(gg_event *event);

/** Wait at most @p timeout_ns for the last recording; GG_NOT_READY if the time is up. */
GG_API gg_status gg_event_wait(gg_event *event, uint64_t timeout_ns);

/** Milliseconds from @p start to @p stop. GG_NOT_READY if either is not complete.
 *  Errors  GG_ERR_INVALID_ARGUMENT: not recorded, created without GG_EVENT_TIMING, or of two devices. */
GG_API gg_status gg_event_elapsed(gg_event *start, gg_event *stop, double *milliseconds);

GG_END_DECLS
#endif
