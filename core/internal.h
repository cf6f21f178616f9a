/* internal.h: what the files of core/ share. Nothing here is seen by plugins or users. */
#ifndef GPUGLUE_INTERNAL_H
#define GPUGLUE_INTERNAL_H

#include <gpuglue/backend.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GGI_NAME_SIZE 16         /* of a backend, with its NUL */
#define GGI_SLICE_NS 50000000ull /* a wait looks for an interrupt this often */
#define GGI_SLOT_SIZE 65536u     /* of the pinned ring */
#define GGI_PINNED_BACKLOG \
    (64u << 20)       /* bytes of idle pinned memory that may wait for a quiet moment */
#define GGI_POOLS 3   /* of device, pinned and managed memory */
#define GGI_SPARES 16 /* idle native events kept per device and kind */

/* ---- backends: registry.c (plugins), probe.c (reports), select.c (the default) --------------------- */

struct gg_backend {
    char name[GGI_NAME_SIZE];
    int32_t priority;
    struct gg_backend_ops ops; /* zero-extended copy of the plugin's table */
    char *plugin_path;         /* NULL: linked into the core */
    char *plugin_version;
    char *library_path, *library_version; /* once probed; never NULL */

    pthread_mutex_t lock;     /* probing and opening */
    uint32_t lock_generation; /* in which the lock was made; registry.c */
    _Atomic(bool) named;      /* by the user, for good; see struct gg_probe_result */
    bool begun; /* an active probe was begun, perhaps by a thread that a fork left behind */
    _Atomic(int) opened;          /* 1: devices and device_count may be read */
    _Atomic(uint32_t) generation; /* ggi_generation when it was initialised; see life.c */
    int32_t device_count;
    struct gg_device *devices; /* device_count of them, immortal */
    struct ggi_record *record; /* what the last probe found; probe.c */
    struct gg_backend *next;
};

/* The backend called @p name, its plugin loaded. GG_ERR_UNAVAILABLE with the paths tried. */
gg_status ggi_backend_find(const char *name, struct gg_backend **out);
/* Initialise it (an active probe, once) so that its devices may be read. GG_ERR_FORKED in a child. */
gg_status ggi_backend_open(struct gg_backend *backend);
/* The default backend, opened. */
gg_status ggi_backend_default(struct gg_backend **out);
/* The default backend if it has been decided, else NULL; decides nothing. */
struct gg_backend *ggi_backend_decided(void);
/* Every backend that was opened: start with NULL, ends with NULL. */
struct gg_backend *ggi_backend_next_open(struct gg_backend *after);

const struct gg_host_api *ggi_host_api(void);                                   /* host_api.c */
const struct gg_backend_desc *ggi_host_backend(const struct gg_host_api *host); /* backends/host */

/* ---- errors, log, trace ------------------------------------------------------------------------ */

/* The error that was recorded last is about this backend. */
void ggi_fail_names(const char *backend);
/* Record an error of the core itself and return @p status. */
gg_status ggi_fail(gg_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
gg_status ggi_host_fail(gg_status status, const struct gg_vendor_error *error, const char *format,
                        ...) __attribute__((format(printf, 3, 4)));
/* A failed operation: add backend, device and operation to what the backend recorded. */
gg_status ggi_op_failed(struct gg_device *device, gg_op op, gg_status status);
/* While quiet, failures of this thread leave its error record alone (releases, own queries). */
void ggi_quiet(int delta);

void ggi_log(int32_t level, const char *backend, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool ggi_log_on(int32_t level);

extern _Atomic(const struct gg_tracer *) ggi_tracer;
void ggi_trace_start(void); /* before the first operation: the log may want them */
void ggi_trace_pre(struct gg_device *device, gg_op op, const void *stream, uint64_t bytes);
void ggi_trace_post(struct gg_device *device, gg_op op, const void *stream, uint64_t bytes,
                    gg_status status);

/* GPUGLUE_DEBUG=sync: each submission is waited for, so that its own failure is found at its own site. */
extern _Atomic(bool) ggi_debug_sync;
gg_status ggi_sync_after(struct gg_device *device, gg_op op, const void *stream, gg_status status);

/* Around each call of the table: two loads when no tracer is installed and all goes well. */
static inline void ggi_begin(struct gg_device *device, gg_op op, const void *stream, uint64_t bytes)
{
    if (atomic_load_explicit(&ggi_tracer, memory_order_acquire))
        ggi_trace_pre(device, op, stream, bytes);
}
static inline gg_status ggi_end(struct gg_device *device, gg_op op, const void *stream,
                                uint64_t bytes, gg_status status)
{
    if (atomic_load_explicit(&ggi_debug_sync, memory_order_relaxed))
        status = ggi_sync_after(device, op, stream, status);
    if (atomic_load_explicit(&ggi_tracer, memory_order_acquire))
        ggi_trace_post(device, op, stream, bytes, status);
    return status <= GG_NOT_READY ? status : ggi_op_failed(device, op, status);
}

/* ---- the life of the process: life.c --------------------------------------------------------------- */

/* Raised by one in a forked child: what was made under another generation is inert. */
extern _Atomic(uint32_t) ggi_generation;
extern _Atomic(int) ggi_down; /* gg_shutdown has begun */
void ggi_watch_forks(void);   /* once, before the first backend is initialised */
/* A lock that a forked child finds free. Static locks only. */
void ggi_reset_in_child(pthread_mutex_t *lock);
gg_status ggi_refuse(struct gg_device *device); /* the error for a device that ggi_usable refuses */
/* A child may use what the parent only counted: see GG_DEVICE_LAZY. True when it was so. */
bool ggi_backend_adopt(struct gg_backend *backend);

/* ---- device -------------------------------------------------------------------------------------- */

/* Released blocks that streams use which are not known: they wait until all that the device had when they
 * were released is done. Their round says when that was; quarantine.c. */
struct ggi_quarantine {
    _Atomic(uint64_t) round, done; /* the present one, and the last that is over */
    _Atomic(uint64_t) waiting;     /* blocks */
    uint64_t recorded; /* the round that the event stands behind, or 0; under drain_lock */
    struct gg_event_impl *event; /* under drain_lock */
};

struct gg_device {
    struct gg_backend *backend;
    struct gg_backend_ops *ops;
    int32_t ordinal;
    _Atomic(uint32_t) generation;
    uint32_t flags;                        /* enum gg_device_flag */
    _Atomic(struct gg_device_impl *) impl; /* NULL until the first call that needs it */
    struct gg_stream *default_stream;      /* set before impl */
    pthread_t opener;                      /* the thread that opened it */
    _Atomic(bool) shared; /* others have used it too: at the end one of them may be inside a call */
    bool writes_words;    /* ops->write_word works; set before impl */
    pthread_mutex_t lock; /* opening, the list of streams */
    struct gg_stream *streams; /* all that are alive; under lock */
    pthread_mutex_t spare_lock;
    struct gg_event_impl *spare[2][GGI_SPARES]; /* idle native events, without and with timing */
    int spares[2];                              /* under spare_lock, never held in a vendor call */
    _Atomic(struct ggi_retired *) retired;      /* pushed by releases, taken by a drain */
    struct ggi_retired *pending;                /* under drain_lock */
    _Atomic(int) waiting;                       /* pending is not empty */
    _Atomic(int) closed;                        /* there may be streams that only uses hold */
    pthread_mutex_t drain_lock;
    struct ggi_pool *pools[GGI_POOLS]; /* of device, pinned, managed memory; set before impl */
    _Atomic(int) over;                 /* a pool keeps more than it should */
    struct ggi_quarantine quarantine;
    _Atomic(int64_t) keeps;              /* owners that streams of this device still keep */
    _Atomic(struct ggi_keep *) captured; /* owners of memory in graphs, which may run again at any time */
    _Atomic(gg_stream *) meeting;        /* waits for several others as one; export.c */
    struct ggi_ring *ring;               /* pinned slots for small copies; made on first need */
    struct ggi_staging *staging;         /* lanes for large ones; staging.h */
    _Atomic(uint64_t) peers_direct, peers_apart; /* by ordinal, where copies go from here; peer.c */
    struct gg_error lost; /* where a sticky error was first seen; under spare_lock */
    atomic_bool gone;     /* it was: nothing runs any more, and events may never say so */
};

/* Fork and shutdown test, the first thing every public call does: no lock, no call. */
static inline bool ggi_usable(const struct gg_device *device)
{
    return atomic_load_explicit(&device->generation, memory_order_relaxed) ==
               atomic_load_explicit(&ggi_generation, memory_order_relaxed) &&
           !atomic_load_explicit(&ggi_down, memory_order_relaxed);
}
static inline gg_status ggi_check(struct gg_device *device)
{
    return ggi_usable(device) ? GG_OK : ggi_refuse(device);
}
gg_status ggi_device_open(struct gg_device *device); /* unless it is open */
/* At the shutdown a device is closed only where no thread but the opener's can be inside a call. */
static inline void ggi_note_user(struct gg_device *device)
{
    if (!atomic_load_explicit(&device->shared, memory_order_relaxed) &&
        !pthread_equal(device->opener, pthread_self()))
        atomic_store_explicit(&device->shared, true, memory_order_relaxed);
}
/* Checked and opened: afterwards device->impl is there. */
static inline gg_status ggi_device_ready(struct gg_device *device)
{
    gg_status status = ggi_check(device);
    if (status)
        return status;
    if (!atomic_load_explicit(&device->impl, memory_order_acquire))
        return ggi_device_open(device);
    ggi_note_user(device);
    return GG_OK;
}
gg_status ggi_device_setup(struct gg_device *device, struct gg_backend *backend, int32_t ordinal);
gg_status ggi_unsupported(struct gg_device *device, gg_op op);
/* Housekeeping of our own between these leaves stream captures and the error record alone. */
struct ggi_own {
    int32_t mode;
    bool relaxed;
};
void ggi_own_begin(struct gg_device *device, struct ggi_own *own);
void ggi_own_end(struct gg_device *device, struct ggi_own *own);
/* The same where the user asked and is to hear of failures. */
void ggi_relax_begin(struct gg_device *device, struct ggi_own *own);
void ggi_relax_end(struct gg_device *device, const struct ggi_own *own);

/* ---- retired objects: retire.c --------------------------------------------------------------------- */

/* Embedded in whatever is destroyed late. */
struct ggi_retired {
    struct ggi_retired *next;
    bool may_wait; /* destroying it may wait for the whole device */
    /* Whether the device is done with it; never waits. */
    bool (*idle)(struct ggi_retired *self);
    void (*destroy)(struct ggi_retired *self);
};
/* After shutdown, and in a forked child, nothing is taken off the list any more: what is on it belongs
 * to the process. */
void ggi_retire(struct gg_device *device, struct ggi_retired *item);
/* Destroy what is idle. Call with no lock held and, in Python, without the GIL. One load if empty.
 * A driver's free may wait for the whole device, so such memory goes only while our streams are idle,
 * or where too much pinned memory waits for that. */
void ggi_drain(struct gg_device *device);
/* The same with drain_lock held; @p force: wherever that may wait. For the shutdown. */
void ggi_drain_locked(struct gg_device *device, bool force);
bool ggi_drain_waiting(const struct gg_device *device); /* a drain would find something */
/* With drain_lock held: the first retired object that @p want takes, off the list; or NULL. */
struct ggi_retired *ggi_retire_pick(struct gg_device *device,
                                    bool (*want)(const struct ggi_retired *item, const void *what),
                                    const void *what);

/* ---- stream ---------------------------------------------------------------------------------------- */

/* Work on a stream is counted: after each submission `submitted` is raised, and the new value is that
 * work's ticket. All tickets up to `completed` are known to be done. */
struct gg_stream {
    struct ggi_retired retired;
    /* References; in the high half how many of them uses of memory hold. One word, so that nobody sees
     * the two change one after the other and takes a stream for closed. */
    _Atomic(int64_t) refs;
    struct gg_device *device;
    struct gg_stream_impl *impl;
    uint64_t serial; /* never reused, unlike native handles */
    _Atomic(uint64_t) submitted, completed;
    uint32_t flags;
    bool is_default, borrowed;
    bool of_thread; /* the handle means this stream in `thread` only */
    bool gone;   /* closed and idle: the native side is destroyed, the counts are still asked for */
    bool sealed; /* closed, and a ticket behind all that anybody can have queued was taken */
    bool parted; /* its free blocks are anybody's; under the pool's lock */
    struct ggi_bins *bins; /* free blocks that only this stream may take at once; under that lock */
    atomic_bool unmarked;  /* work of a stream without an owner that no event stands behind */
    pthread_t thread;
    void (*release)(void *owner); /* of a borrowed stream; NULL: nobody keeps the native stream alive */
    void *owner;
    _Atomic(struct gg_error *) failed; /* what a look of ours was told, for who asks next; or NULL */
    _Atomic(struct gg_device *) behind; /* another device whose work it was made to wait for, or NULL */
    _Atomic(uint64_t) to_host;    /* ticket of the last copy to the host: what shutdown waits for */
    pthread_mutex_t lock;         /* marker, fence */
    struct gg_event_impl *marker; /* polled to raise completed */
    uint64_t marker_ticket;       /* 0: not recorded, or done */
    struct gg_event_impl *fence;  /* others wait on it */
    _Atomic(struct ggi_keep *) keeps;  /* owners to be released, each at its ticket */
    struct gg_stream *next, *previous; /* in device->streams */
};

/* Something to be released when the stream has passed a ticket. */
struct ggi_keep {
    struct ggi_keep *next;
    uint64_t ticket;
    void (*release)(void *owner);
    void *owner;
};

/* Refused in another thread than the one that a stream of_thread belongs to. */
gg_status ggi_stream_refuse(const gg_stream *stream);
static inline gg_status ggi_stream_check(gg_stream *stream)
{
    gg_status status = ggi_check(stream->device);
    ggi_note_user(stream->device);
    if (!status && stream->of_thread && !pthread_equal(stream->thread, pthread_self()))
        status = ggi_stream_refuse(stream);
    return status;
}

gg_status ggi_stream_new(struct gg_device *device, struct gg_stream_impl *impl, uint32_t flags,
                         gg_stream **out);
void ggi_stream_endable(gg_stream *stream); /* set how it ends; stream_end.c */
/* A reference, unless the last one is gone already. */
bool ggi_stream_try_retain(gg_stream *stream);
/* The references of uses: a stream that has no other is closed, and lives on for its counts only. */
void ggi_stream_use_retain(gg_stream *stream);
void ggi_stream_use_release(gg_stream *stream);
/* A reference for who comes to the stream through a use, so that its native side stays. False, without one,
 * where that is gone: all its tickets have passed. */
bool ggi_stream_enter(gg_stream *stream);
/* With drain_lock held: destroy the native side of a stream that is closed and idle. False where it is
 * closed and still has work, or somebody entered it. */
bool ggi_stream_abandon(gg_stream *stream);
/* The newest stream of the device, and by `next` all others. What is reached stays in the list while
 * drain_lock is held: streams are added at the head, and only a drain takes them out. */
gg_stream *ggi_streams_of(struct gg_device *device);
/* Count work that was just submitted and return its ticket. Not for a stream that is being captured:
 * nothing runs there. */
uint64_t ggi_stream_submitted(gg_stream *stream);
/* Whether all work up to @p ticket is done, without waiting; `look` asks the driver if need be. */
bool ggi_stream_passed(gg_stream *stream, uint64_t ticket, bool look);
/* A query on our own account, with the thread quiet, answered @p status: a failure of the stream's work is
 * told once, so it is kept for the user. */
void ggi_stream_asked(gg_stream *stream, gg_status status);
/* What was kept, now that the user asks in @p op; or GG_OK. */
gg_status ggi_stream_tell(gg_stream *stream, gg_op op);
/* All up to @p ticket is done: somebody saw it. Lets go of what was kept for it. */
void ggi_stream_advance(gg_stream *stream, uint64_t ticket);
/* Make @p stream wait on the device for all that @p other has now. */
gg_status ggi_stream_fence(gg_stream *stream, gg_stream *other, bool counted);
/* The same up to @p ticket, if anything has to be done. */
gg_status ggi_stream_after(gg_stream *stream, gg_stream *other, uint64_t ticket);
/* Record the marker now unless one is on its way, so that a later look is cheap. */
void ggi_stream_mark(gg_stream *stream);
/* Whether asking the marker fails, which a look keeps to itself; not finished is success. */
gg_status ggi_stream_ask_marker(gg_stream *stream);
/* For a wait whose ticket has passed: all tickets pass on a lost device, but that is no success. */
gg_status ggi_stream_passed_or_lost(gg_stream *stream);
/* Wait for all that is queued, whatever else happens: memory is about to be let go. */
gg_status ggi_stream_settle(gg_stream *stream);
/* Wait until @p ticket has passed, also where the native stream may be gone; looks at the hook. */
gg_status ggi_stream_wait_ticket(gg_stream *stream, uint64_t ticket);
/* Wait for all work. With @p hook the wait can end in GG_ERR_INTERRUPTED. */
gg_status ggi_stream_finish(gg_stream *stream, bool hook);
bool ggi_stream_capturing(gg_stream *stream);
/* The default stream is not asked: that may spoil a capture elsewhere. */
static inline bool ggi_stream_captures(gg_stream *stream)
{
    return !stream->is_default && ggi_stream_capturing(stream);
}
/* The vendor's default stream and blocking streams wait for each other by themselves. */
bool ggi_stream_ordered_anyway(const gg_stream *stream, const gg_stream *other);
/* Whose native handle means nothing by itself later, or elsewhere: only its marker is asked. */
static inline bool ggi_stream_ownerless(const gg_stream *stream)
{
    return (stream->borrowed && !stream->release) || stream->of_thread;
}
/* Destroy the events that belong to it, not the stream. */
void ggi_stream_strip(gg_stream *stream);
gg_status ggi_stream_keep(gg_stream *stream, uint64_t ticket, void (*release)(void *), void *owner);
void ggi_stream_release_keeps(gg_stream *stream, bool all);
/* Keep an owner until the process ends. */
gg_status ggi_device_keep(struct gg_device *device, void (*release)(void *), void *owner);

/* ---- event ----------------------------------------------------------------------------------------- */

struct gg_event {
    struct ggi_retired retired;
    _Atomic(int64_t) refs;
    struct gg_device *device;
    struct gg_event_impl *impl;
    uint32_t flags;
    _Atomic(uint32_t) recorded; /* how often; 0: never */
    _Atomic(uint32_t) done;     /* the count at which it was last seen done */
    _Atomic(bool) captured; /* recorded into a graph last: asking for it would spoil a capture */
    void (*release)(void *owner);
    void *owner;
    bool borrowed;
};
/* A native event without (or with) timing: a spare one or a new one; and its way back when idle. */
gg_status ggi_event_take(struct gg_device *device, bool timing, struct gg_event_impl **out);
void ggi_event_give(struct gg_device *device, bool timing, struct gg_event_impl *impl);

/* ---- this thread: current.c ------------------------------------------------------------------------ */

struct gg_scope {
    struct gg_scope *outer;
    gg_device *device;
    gg_stream *stream;                   /* or NULL */
    void *saved;                         /* of ops->device_enter */
    _Atomic(struct ggi_thread *) thread; /* NULL: it is gone */
};

struct ggi_thread {
    struct gg_scope *scope; /* innermost */
    gg_device *used;        /* gg_device_use */
    int quiet;
    struct gg_error error;
    struct gg_error hushed; /* what was recorded while it was quiet */
};
/* This thread's record; never NULL (a shared one where memory ran out). */
struct ggi_thread *ggi_thread(void);
/* The stream that an operation without one runs on; *complete is set where it must also have finished
 * on the device when the call returns (a default stream that no other library shares). */
void ggi_implicit_stream(gg_device *device, gg_stream **out, bool *complete);
/* *stream is checked if given, else becomes the implicit one. */
gg_status ggi_choose_stream_slow(gg_device *device, gg_stream **stream, bool *complete);
static inline gg_status ggi_choose_stream(gg_device *device, gg_stream **stream, bool *implicit,
                                          bool *complete)
{
    *implicit = !*stream;
    *complete = false;
    if (*stream && (*stream)->device == device && !(*stream)->of_thread)
        return ggi_device_ready(device);
    return ggi_choose_stream_slow(device, stream, complete);
}

int ggi_interrupted(void); /* asks the wait hook */
uint64_t ggi_now_ns(void); /* monotonic */

#include "memory.h"

#endif
