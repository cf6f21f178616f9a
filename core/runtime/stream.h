/* stream.h: streams: their lifetime, their progress, and the order between two of them. */
#ifndef GPUGLUE_STREAM_H
#define GPUGLUE_STREAM_H

#include "base/error.h"
#include "runtime/device.h"
#include "runtime/retire.h"

/* Whether the driver must be queried to find out if a stream is captured. */
enum ggi_capturable {
    GGI_NOT_CAPTURABLE, /* nobody else knows its handle */
    GGI_CAPTURED_HERE,  /* only now, by gg_graph_begin_capture */
    GGI_CAPTURABLE      /* others know its handle, or it waited for such a stream */
};

/* Work on a stream is counted: after each submission `submitted` is raised, and the new value is that
 * work's ticket. All tickets up to `completed` are known to be done. */
struct gg_stream {
    struct ggi_retired retired;
    /* What allocations and polls read is together, as a program may have so many streams that the cache holds only a part. */
    _Atomic(int64_t)
        refs; /* the high half counts those held by uses of memory. One word, so that both change at once */
    struct gg_device *device;
    struct gg_stream_impl *impl;
    uint64_t serial; /* never reused, unlike native handles */
    _Atomic(uint64_t) submitted, completed;
    struct ggi_bins *bins; /* free blocks that other streams must wait for; under the pool's lock */
    uint32_t flags;
    bool is_default, borrowed;
    bool of_thread; /* a per-thread default stream: the handle is valid in `thread` only */
    bool gone;      /* closed and idle: the native stream is destroyed, the counts are still read */
    pthread_mutex_t lock; /* marker; the driver is only queried with it, which never waits */
    void (*release)(void *owner); /* of a borrowed stream; NULL if it has no owner to keep it alive */
    struct gg_event_impl *marker; /* polled to raise completed; changed with both locks held */
    uint64_t marker_ticket;       /* 0: not recorded, or done */
    /* Objects that wait for a ticket: those that came in the order of their tickets, and a heap of the others; and the newest
     * ticket that any has waited for. Under drain_lock, as are the next three. */
    struct ggi_retired_queue held_in_order;
    struct ggi_retired *held;
    uint64_t held_ticket;
    struct ggi_holding *holding; /* the list of the device that it is in, by the next two; or NULL */
    struct gg_stream *next_holding, *previous_holding;
    _Atomic(struct ggi_deferred_release *) deferred; /* each until its ticket has passed */
    _Atomic(int) capturable;                         /* enum ggi_capturable */
    bool final_ticket_taken; /* closed, and a ticket after all its work was taken */
    bool bins_released;      /* any stream may take its free blocks; under the pool's lock */
    atomic_bool unmarked; /* it has no owner, and an event could not be recorded after its work */
    bool marker_wanted;   /* it is in ggi_unmarked */
    uint64_t native;      /* the handle of a borrowed one; else 0 */
    _Atomic(uint64_t) handle;   /* of another one, if other code knows it; else 0 */
    _Atomic(uint64_t) capture;  /* the driver's id of the capture that gpuglue began on it; or 0 */
    _Atomic(int) captures_soon; /* threads that begin a capture of it */
    _Atomic(int) waits;         /* threads in a query or a slice of a wait */
    pthread_t thread;
    void *owner;
    _Atomic(struct ggi_kept_error *) failed; /* an error that the next wait reports; or NULL */
    _Atomic(uint64_t) watchers;              /* who may end its work up to the ticket `watched` */
    _Atomic(uint64_t) watched;
    _Atomic(uint64_t) ended_by;         /* those that have ended work of it */
    _Atomic(struct gg_device *) behind; /* another device whose work it waits for, or NULL */
    _Atomic(uint64_t) writer; /* ticket of the last work that may write to host memory of other code */
    _Atomic(uint64_t) to_host; /* ticket of the last copy to the host; the shutdown waits for it */
    pthread_mutex_t
        record_lock; /* taken before `lock`. With it events are recorded on the stream: see marker.c */
    _Atomic(struct gg_event_impl *)
        fence; /* other streams wait for it; NULL: a thread has taken it, or there is none */
    _Atomic(int) fences; /* threads that have taken or created one; raised with record_lock held */
    struct gg_stream *next_unmarked;   /* in ggi_unmarked */
    struct gg_stream *next, *previous; /* in device->streams */
    uint64_t found_busy; /* `submitted` when a drain found it busy; under drain_lock */
};

/* A point on a stream. */
struct ggi_use {
    gg_stream *stream; /* a reference */
    uint64_t ticket;
};

/* ---- lifetime: stream_lifetime.c ---- */

gg_status ggi_stream_new(struct gg_device *device, struct gg_stream_impl *impl, uint32_t flags,
                         gg_stream **out);
/* With drain_lock held: destroy the native stream of a closed and idle one. False if it is closed but has work
 * or was pinned. */
bool ggi_stream_destroy_closed(gg_stream *stream);
/* The newest stream of the device; `next` leads to the others. With drain_lock held no stream leaves the list:
 * streams are added at the head, and only a drain removes them. */
gg_stream *ggi_device_streams(struct gg_device *device);

/* Reference all streams of a device, each with its last ticket, so that no lock is held while they are used. */
size_t ggi_device_pin_streams(struct gg_device *device, struct ggi_use **out);

/* A reference to the open stream with that handle whose native stream gpuglue keeps alive; or NULL. */
gg_stream *ggi_stream_of_native(struct gg_device *device, uint64_t native);

/* ---- references: stream_refs.c ---- */

/* References of uses. A stream without other references is closed: only its counts are used. */
static inline bool ggi_stream_has_only_uses(int64_t refs)
{
    return (refs & 0xffffffff) == refs >> 32;
}
void ggi_stream_use_retain(gg_stream *stream);
void ggi_stream_use_release(gg_stream *stream);
/* Add a reference to a stream found through a use, so that its native stream is not destroyed. False, without
 * a reference, if it is destroyed already: all its tickets have passed. */
bool ggi_stream_try_pin(gg_stream *stream);
/* Add a reference, unless it is closed. */
bool ggi_stream_try_retain_open(gg_stream *stream);

/* ---- progress: tickets.c, marker.c and progress.c ---- */

/* Its owner may destroy an ownerless stream at any time, so a marker is recorded after each piece of work. Returns @p ticket. */
uint64_t ggi_stream_mark_ownerless(gg_stream *stream, uint64_t ticket);
/* Its native handle may be destroyed at any time, or is a per-thread default stream: only its marker is
 * queried. */
static inline bool ggi_stream_is_ownerless(const gg_stream *stream)
{
    return (stream->borrowed && !stream->release) || stream->of_thread;
}
/* Count work that was just submitted and return its ticket. Not for a stream in capture, which runs nothing. For work that
 * writes to no host memory but what gpuglue allocated. */
static inline uint64_t ggi_stream_counted(gg_stream *stream)
{
    const uint64_t ticket =
        atomic_fetch_add_explicit(&stream->submitted, 1, memory_order_acq_rel) + 1;
    return ggi_stream_is_ownerless(stream) ? ggi_stream_mark_ownerless(stream, ticket) : ticket;
}
/* The same for all other work. */
static inline uint64_t ggi_stream_submitted(gg_stream *stream)
{
    const uint64_t ticket = ggi_stream_counted(stream);
    uint64_t known = atomic_load_explicit(&stream->writer, memory_order_relaxed);
    while (known < ticket &&
           !atomic_compare_exchange_weak_explicit(&stream->writer, &known, ticket,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    return ticket;
}
/* Whether unfinished work before the next one may write to host memory of other code. Such code may queue work on streams that it
 * knows, and blocking streams are behind the default stream. */
bool ggi_stream_may_write_host(gg_stream *stream);
/* Whether all work before the next one is known to be done, so that a wait would only ask the driver. */
bool ggi_stream_is_known_idle(gg_stream *stream);
/* Whether all work up to @p ticket is known to be done. */
static inline bool ggi_stream_has_passed(const gg_stream *stream, uint64_t ticket)
{
    return atomic_load_explicit(&stream->completed, memory_order_acquire) >= ticket;
}
/* Whether all work up to @p ticket is done. @p poll: query the driver if necessary, and record the marker if work is pending: that
 * may wait while the stream's queue of commands is full, so no lock is held then. */
bool ggi_stream_is_complete(gg_stream *stream, uint64_t ticket, bool poll);
/* The same with @p poll for a caller that holds locks: ggi_record_markers records the marker later. Never waits. */
bool ggi_stream_poll_locked(gg_stream *stream, uint64_t ticket);
/* The same for a thread that must never wait, also without locks: it records the marker itself, but only if so few operations are
 * unfinished that the queue has room for it. */
bool ggi_stream_poll_with_room(gg_stream *stream, uint64_t ticket);
/* Without a lock: record the markers that such polls wanted. Costs one load if there are none. */
void ggi_record_markers_wanted(void);
extern _Atomic(gg_stream *) ggi_unmarked;
static inline void ggi_record_markers(void)
{
    if (atomic_load_explicit(&ggi_unmarked, memory_order_relaxed))
        ggi_record_markers_wanted();
}
/* Note that all work up to @p ticket is done, and run the releases deferred until then. */
void ggi_stream_advance(gg_stream *stream, uint64_t ticket);
/* With stream->lock held: the same, and the marker is done. */
void ggi_stream_pass(gg_stream *stream, uint64_t ticket);
/* Drivers report an asynchronous error once. If an internal query received it as @p status, keep it for the
 * user's next call. */
void ggi_stream_stash_error(gg_stream *stream, gg_status status);
/* Keep an error of the stream's work for the user's next call. */
void ggi_stream_keep_error(gg_stream *stream, const struct ggi_kept_error *error);
/* Report the stashed error as that of @p op; GG_OK if there is none. */
gg_status ggi_stream_raise_stashed(gg_stream *stream, gg_op op);
/* Whether work of the stream was ended, which no wait has reported. */
static inline bool ggi_stream_ended_unseen(const gg_stream *stream)
{
    return atomic_load_explicit(&stream->watchers, memory_order_relaxed) &&
           atomic_load(&stream->failed);
}
/* Report its error if there is such work. */
static inline gg_status ggi_stream_raise_ended(gg_stream *stream)
{
    return ggi_stream_ended_unseen(stream) ? ggi_stream_raise_stashed(stream, GG_OP_stream_wait)
                                           : GG_OK;
}
/* Without a lock: record the marker unless one is pending, or another thread records an event on the stream, so that a later poll
 * is cheap. */
void ggi_stream_mark(gg_stream *stream);
/* Without a lock: record it, even if one is pending. False: that failed. */
bool ggi_stream_mark_again(gg_stream *stream);
/* The error of the marker's query, which a poll ignores. GG_OK if the marker is pending. */
gg_status ggi_stream_query_marker(gg_stream *stream);
/* After a wait: GG_ERR_DEVICE_LOST on a lost device, where all tickets pass; else GG_OK. */
gg_status ggi_stream_is_complete_or_lost(gg_stream *stream);
/* Whether the driver answers a query by an error, which is kept for the user's next call. For threads of gpuglue. */
bool ggi_stream_query_fails(gg_stream *stream);
/* A query, or with GG_OP_stream_wait one slice of a wait. */
gg_status ggi_stream_query(gg_stream *stream);
/* Wait up to @p timeout_ns. With @p hook the wait can end in GG_ERR_INTERRUPTED. */
gg_status ggi_stream_wait(gg_stream *stream, uint64_t timeout_ns, bool hook);
/* Wait for all work. */
static inline gg_status ggi_stream_synchronize(gg_stream *stream, bool hook)
{
    return ggi_stream_wait(stream, GG_FOREVER, hook);
}
/* Wait for all queued work, even after errors and interrupts, before memory is released. */
gg_status ggi_stream_synchronize_uninterruptible(gg_stream *stream);
/* Wait until @p ticket has passed, even if the native stream may be destroyed. Calls the wait hook. */
gg_status ggi_stream_wait_ticket(gg_stream *stream, uint64_t ticket);
/* Whether the stream waits, or has waited, for a lost device: then its work may never complete. */
bool ggi_peer_is_lost(gg_stream *stream);
/* Recycle its marker and fence. */
void ggi_stream_release_events(gg_stream *stream);

/* ---- order between two streams: fence.c ----
 *
 * Without a lock, and with a reference to both streams: the driver may wait for room in either queue. */

/* Make @p stream wait on the device for all current work of @p other. */
gg_status ggi_stream_fence(gg_stream *stream, gg_stream *other, bool counted);
/* The same unless @p other, which is not destroyed, is captured: then GG_ERR_UNSUPPORTED without an error record. */
gg_status ggi_stream_fence_uncaptured(gg_stream *stream, gg_stream *other, bool counted);
/* With stream->record_lock held, before a capture: until its end the marker alone reports the unfinished work. @p helper is
 * another stream of the device, on which the marker is recorded behind that work; NULL if there is none. */
gg_status ggi_stream_mark_before_capture(gg_stream *stream, gg_stream *helper);
/* The same up to @p ticket, unless that has passed or the order is implicit. */
gg_status ggi_stream_wait_on_device(gg_stream *stream, gg_stream *other, uint64_t ticket);
/* The driver orders its default stream with blocking streams. */
static inline bool ggi_stream_implicitly_ordered(const gg_stream *stream, const gg_stream *other)
{
    return stream->device == other->device && (stream->device->flags & GG_DEVICE_SHARED_DEFAULT) &&
           ((stream->is_default && !(other->flags & GG_STREAM_NONBLOCKING)) ||
            (other->is_default && !(stream->flags & GG_STREAM_NONBLOCKING)));
}

/* ---- releases that wait for a ticket: tickets.c ---- */

struct ggi_deferred_release {
    struct ggi_deferred_release *next;
    uint64_t ticket;
    void (*release)(void *owner);
    void *owner;
};
gg_status ggi_stream_defer_release(gg_stream *stream, uint64_t ticket, void (*release)(void *),
                                   void *owner);
void ggi_stream_run_releases(gg_stream *stream, bool all);
/* Keep an owner until the process ends. */
gg_status ggi_device_defer_release(struct gg_device *device, void (*release)(void *), void *owner);

/* ---- kinds of streams ---- */

/* The error of using a per-thread default stream in another thread. */
gg_status ggi_stream_wrong_thread(const gg_stream *stream);
static inline gg_status ggi_stream_check(gg_stream *stream)
{
    gg_status status = ggi_device_check(stream->device);
    ggi_device_note_thread(stream->device);
    if (!status && stream->of_thread && !pthread_equal(stream->thread, pthread_self()))
        status = ggi_stream_wrong_thread(stream);
    return status;
}
static inline bool ggi_stream_is_capturable(const gg_stream *stream)
{
    return atomic_load_explicit(&stream->capturable, memory_order_relaxed);
}
/* capture.c: queries the driver. */
bool ggi_stream_query_capture(gg_stream *stream);
static inline bool ggi_stream_capturing(gg_stream *stream)
{
    const int known = atomic_load_explicit(&stream->capturable, memory_order_relaxed);
    return known && (known == GGI_CAPTURED_HERE || ggi_stream_query_capture(stream));
}
/* For a stream that other threads use: the end of a failed capture may replace its native stream,
 * so the driver is queried with stream->lock held. */
static inline bool ggi_other_capturing(gg_stream *other)
{
    if (atomic_load_explicit(&other->capturable, memory_order_relaxed) != GGI_CAPTURABLE)
        return ggi_stream_capturing(other);
    pthread_mutex_lock(&other->lock);
    const bool capturing = ggi_stream_capturing(other);
    pthread_mutex_unlock(&other->lock);
    return capturing;
}
/* Before the handle of @p stream leaves gpuglue, or it waits for what may be captured: the wait joins the capture. */
static inline void ggi_stream_set_capturable(gg_stream *stream)
{
    atomic_store_explicit(&stream->capturable, GGI_CAPTURABLE, memory_order_relaxed);
}
/* Around a capture by gpuglue, after which the stream is as before, unless it joined another stream meanwhile. */
void ggi_stream_begin_capture(gg_stream *stream);
void ggi_stream_end_capture(gg_stream *stream);
/* Around the begin: queries and slices of waits in other threads have ended, and new ones are refused. */
void ggi_stream_stop_waits(gg_stream *stream);
void ggi_stream_allow_waits(gg_stream *stream);
/* The captures that gpuglue began, on all devices: streams of any device may join one. */
extern _Atomic(int) ggi_captures;
/* Whether the stream is in a capture while gpuglue captures. Costs one load if it does not. */
static inline bool ggi_stream_in_known_capture(gg_stream *stream)
{
    return atomic_load_explicit(&ggi_captures, memory_order_relaxed) && !stream->is_default &&
           ggi_stream_capturing(stream);
}
/* Whether a query or a wait would invalidate a capture that gpuglue began, or begins now. */
static inline bool ggi_stream_wait_disturbs_capture(gg_stream *stream)
{
    if (!atomic_load(&ggi_captures))
        return false;
    if (stream->is_default)
        return atomic_load(&stream->device->blocking_captures) > 0;
    return atomic_load(&stream->captures_soon) || ggi_stream_capturing(stream);
}
/* The default stream itself is never captured; its query would report the capture of a stream that is ordered with it. */
static inline bool ggi_stream_is_captured(gg_stream *stream)
{
    return !stream->is_default && ggi_stream_capturing(stream);
}

/* ---- returning memory of other libraries: drain.c ---- */

void ggi_drain_others_now(gg_stream *stream, bool waited);
/* At the end of a call that has queued work on the stream: drain if much memory of other libraries was released and waits, as
 * nothing else may. @p waited: the call has waited for the stream; then drain if any waits. With no lock held. */
static inline void ggi_drain_others(gg_stream *stream, bool waited)
{
    const uint32_t waiting =
        atomic_load_explicit(&stream->device->others_waiting, memory_order_relaxed);
    if (__builtin_expect(waiting >= (waited ? 1u : 64u), 0))
        ggi_drain_others_now(stream, waited);
}

/* ---- work that may be ended without a result: ended.c ---- */

/* A watcher is one or more bits: it may be one of a set if all its bits are there. @p watchers may end the stream's work up to @p ticket, as may those of
 * its unfinished work. */
void ggi_stream_watch(gg_stream *stream, uint64_t watchers, uint64_t ticket);
/* Who may end work that is unfinished. */
static inline uint64_t ggi_stream_watchers(const gg_stream *stream)
{
    const uint64_t watchers = atomic_load_explicit(&stream->watchers, memory_order_relaxed);
    return watchers && atomic_load(&stream->completed) < atomic_load(&stream->watched) ? watchers
                                                                                       : 0;
}
struct ggi_watcher {
    uint64_t bits; /* in gg_stream::watchers */
    bool leaves_work; /* on the device, where only other code can end it: waits do not wait for it any more */
    bool unasked; /* the driver is not asked whether work is complete: it could wait */
};
/* Unfinished work of the stream will end without a result: waits for it, and for its events, report @p error. False: no
 * memory, so that its events do not. */
bool ggi_stream_end_work(gg_stream *stream, const struct ggi_watcher *watcher,
                         const struct ggi_kept_error *error);
/* The same of all streams with unfinished work of @p watcher that have no error yet, also of those that come to wait for one of
 * them meanwhile. */
void ggi_streams_end_work(const struct gg_backend *backend, const struct ggi_watcher *watcher,
                          const struct ggi_kept_error *error);
/* Whether any work was ended so far. */
bool ggi_ended_any(void);
#define GGI_ALL_WATCHERS UINT64_MAX
/* The work of a stream up to a ticket, as far as these watchers may have ended it. */
struct ggi_ended_use {
    uint64_t serial, ticket, watchers;
};
/* The error of the work, as that of @p op; GG_OK if it has not been ended. */
gg_status ggi_ended_report(struct gg_device *device, gg_op op, struct ggi_ended_use use);
/* Whether that work was left on the device: a wait for it might never end. */
bool ggi_ended_stays(struct ggi_ended_use use);
/* Report the error if a watcher of @p own has left work so on the stream with this number, or one of @p before on another one that
 * the driver orders before it. */
gg_status ggi_ended_raise_left(struct gg_device *device, uint64_t serial, uint64_t own,
                               uint64_t before);
/* The watchers that leave their work so; 0 in most processes. */
extern _Atomic(uint64_t) ggi_leaving_watchers;
uint64_t ggi_ended_watchers_before(gg_stream *stream);
/* Those with unfinished work on other streams that the driver orders before the next work of this one. Costs one load while there
 * are no such watchers. */
static inline uint64_t ggi_stream_watchers_before(gg_stream *stream)
{
    return atomic_load_explicit(&ggi_leaving_watchers, memory_order_relaxed)
               ? ggi_ended_watchers_before(stream)
               : 0;
}
/* NULL while no work was left so. */
extern gg_status (*_Atomic ggi_raise_staying)(gg_stream *stream);
/* Report the error if work was left so before the stream's unfinished work. */
static inline gg_status ggi_stream_raise_staying(gg_stream *stream)
{
    gg_status (*const raise)(gg_stream *) = atomic_load(&ggi_raise_staying);
    return raise ? raise(stream) : GG_OK;
}
/* Whether any of the stream's work up to @p ticket was ended, which no wait has reported. */
bool ggi_stream_has_ended(const gg_stream *stream, uint64_t ticket);
/* After ggi_stream_ended_unseen: what is behind that work, up to @p ticket, has no result either. Returns who ended it. */
uint64_t ggi_stream_extend_ended(const gg_stream *stream, uint64_t ticket);

/* ---- captures: capture.c ---- */

/* The driver's id of the valid capture that the stream is in; 0 if there is none. */
gg_status ggi_stream_capture_id(gg_stream *stream, uint64_t *id);
/* Whether it is the capture that gpuglue began on the stream. Other code may have ended that and begun its own. */
bool ggi_stream_in_own_capture(gg_stream *stream);
/* The error of waiting for work from before a capture, which cannot be waited for without joining the capture. */
gg_status ggi_capture_fail_earlier_work(void);
/* Of a call that would invalidate a capture. */
gg_status ggi_capture_fail_wait(void);
/* Of a wait of a captured stream for work outside of its capture. */
gg_status ggi_capture_fail_outside(void);

/* Internal calls between begin and end change neither stream captures nor this thread's error. */
struct ggi_internal_scope {
    int32_t mode;
    bool relaxed;
};
void ggi_internal_begin(struct gg_device *device, struct ggi_internal_scope *own);
void ggi_internal_end(struct gg_device *device, struct ggi_internal_scope *own);
/* The same for a user's call, whose failure is reported. */
void ggi_capture_relax_begin(struct gg_device *device, struct ggi_internal_scope *own);
void ggi_capture_relax_end(struct gg_device *device, const struct ggi_internal_scope *own);

#endif
