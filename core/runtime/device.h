/* device.h: devices. */
#ifndef GPUGLUE_DEVICE_H
#define GPUGLUE_DEVICE_H

#include "base/process_state.h"
#include "runtime/backend.h"

#define GGI_POOLS 3   /* of device, pinned and managed memory */
#define GGI_SPARES 16 /* idle native events kept per device and kind */

/* The end of all work of a device, also in streams unknown to gpuglue. A released block that such streams use
 * waits until the round in which it was released is over. */
struct ggi_device_epoch {
    _Atomic(uint64_t) round, done; /* the current one, and the last that is over */
    _Atomic(uint64_t) waiting;     /* blocks */
    _Atomic(uint64_t) held;        /* bytes in them */
    _Atomic(void *) spare;         /* a byte of device memory that ggi_epoch_wait frees; or NULL */
    _Atomic(bool) prepared;        /* it is there, or a thread allocates it */
    uint64_t recorded;             /* the round that the event ends, or 0; under drain_lock */
    bool wanted;                 /* a wait by ggi_epoch_wait, without the lock; under drain_lock */
    struct gg_event_impl *event; /* under drain_lock */
};

struct ggi_retired_queue {
    struct ggi_retired *first, *last;
};

/* Streams with objects that wait for a ticket of theirs: gg_stream.held. */
struct ggi_holding {
    struct gg_stream *first, *last;
    uint32_t count;
};

struct gg_device {
    struct gg_backend *backend;
    struct gg_backend_ops *ops;
    int32_t ordinal;
    _Atomic(uint32_t) generation;
    uint32_t flags;                        /* enum gg_device_flag */
    _Atomic(int32_t) node;                 /* of memory/numa.c */
    _Atomic(struct gg_device_impl *) impl; /* NULL until the first call that needs it */
    struct gg_stream *default_stream;      /* set before impl */
    pthread_t opener;                      /* the thread that opened it */
    _Atomic(bool) shared; /* other threads have used it: at the shutdown one may be inside a call */
    _Atomic(int) inside; /* threads of gpuglue that may be in a library: the shutdown waits for them */
    _Atomic(int) helpers;      /* threads of gpuglue that call the backend now and then */
    bool writes_words;         /* ops->write_word works; set before impl */
    bool replays;              /* the backend cannot capture any stream as it is: replay.h does */
    pthread_mutex_t lock;      /* opening, the list of streams */
    struct gg_stream *streams; /* all that are alive; under lock */
    _Atomic(uint32_t) stream_count;
    pthread_mutex_t spare_lock;
    struct gg_event_impl *spare[2][GGI_SPARES]; /* idle native events, without and with timing */
    int spares[2];                              /* under spare_lock, never held in a vendor call */
    _Atomic(struct ggi_retired *) retired;      /* pushed by releases, taken by a drain */
    struct ggi_retired *fresh;         /* taken, but not examined yet; under drain_lock, as */
    struct ggi_retired_queue pending;  /* in use; no ticket shows when they become idle */
    struct ggi_retired_queue may_wait; /* to be destroyed only while all streams are idle */
    struct ggi_retired_queue never;    /* never to be destroyed: a graph may use them */
    struct ggi_retired_queue unknown; /* used by unknown streams, until a round of the epoch is over */
    uint64_t unknown_done;            /* epoch.done when those were examined last */
    uint64_t pending_polls;           /* extra examinations of `pending` that are due */
    struct ggi_retired *ready;        /* idle, to be destroyed without that lock */
    _Atomic(uint32_t) others_waiting; /* released objects of memory that no pool allocated */
    _Atomic(uint32_t) others_passed;  /* calls that found many of them */
    _Atomic(uint32_t) drain_debt;     /* how far drains were behind the releases lately */
    uint32_t due_debt; /* the same for the most frequent drains that are due; under drain_lock */
    struct ggi_holding holding;      /* that got an object since they were polled */
    struct ggi_holding busy_holding; /* that were found busy since */
    uint32_t visit_rounds;           /* how often drains have come to the end of the streams */
    struct gg_stream *next_visit;    /* by a drain; NULL: the first */
    struct gg_stream *busy;          /* the stream that was found busy last, or NULL */
    int closed_rounds; /* how many more times drains must reach the end of the streams before `closed` is reset */
    atomic_bool all_wanted; /* a call needs a drain of all objects, while another thread drains */
    _Atomic(int) waiting;   /* a list above is not empty */
    _Atomic(int) closed; /* there may be streams that only uses hold: 1, or 2 if a drain knows that */
    pthread_mutex_t drain_lock;
    _Atomic(int) over; /* a cache is beyond its threshold: the next drain calls before_sweep */
    struct ggi_device_epoch epoch;
    _Atomic(int) captures, blocking_captures; /* that gpuglue began; those of blocking streams */
    _Atomic(int64_t) deferred;                /* number of deferred releases of its streams */
    _Atomic(struct ggi_deferred_release *)
        captured; /* owners of memory used by graphs, which may run at any time */
    _Atomic(struct gg_stream *) join_stream;         /* joins several streams into one */
    _Atomic(uint64_t) peers_direct, peers_apart;     /* bits by ordinal: copies to that device */
    _Atomic(uint64_t) regions_direct, regions_apart; /* the same for copy_region */
    struct gg_error lost; /* the first GG_ERR_DEVICE_LOST; under spare_lock */
    atomic_bool gone;     /* lost: nothing runs, and events may never complete */
    /* The parts that ggi_device_parts opens. Set before impl, and read in most calls: not near what these write. */
    struct ggi_pool *pools[GGI_POOLS];
    struct ggi_ring *ring;       /* pinned slots for small copies */
    struct ggi_staging *staging; /* lanes for large ones */
};

gg_status ggi_device_setup(struct gg_device *device, struct gg_backend *backend, int32_t ordinal);
/* The error if ggi_device_usable is false; GG_OK if a forked child may use the device. */
gg_status ggi_device_unusable(struct gg_device *device);
gg_status ggi_unsupported(struct gg_device *device, gg_op op);
gg_status ggi_device_open(struct gg_device *device); /* unless it is open */

/* False after a fork or the shutdown. Every public call tests it first: two loads, no lock. */
static inline bool ggi_device_usable(const struct gg_device *device)
{
    return atomic_load_explicit(&device->generation, memory_order_relaxed) ==
               atomic_load_explicit(&ggi_generation, memory_order_relaxed) &&
           !atomic_load_explicit(&ggi_shutting_down, memory_order_relaxed);
}
static inline gg_status ggi_device_check(struct gg_device *device)
{
    return ggi_device_usable(device) ? GG_OK : ggi_device_unusable(device);
}
/* At the shutdown a device is closed only if no other thread than its opener has used it. */
static inline void ggi_device_note_thread(struct gg_device *device)
{
    if (!atomic_load_explicit(&device->shared, memory_order_relaxed) &&
        !pthread_equal(device->opener, pthread_self()))
        atomic_store_explicit(&device->shared, true, memory_order_relaxed);
}
/* Check and open the device: device->impl is set afterwards. */
static inline gg_status ggi_device_ready(struct gg_device *device)
{
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    if (!atomic_load_explicit(&device->impl, memory_order_acquire))
        return ggi_device_open(device);
    ggi_device_note_thread(device);
    return GG_OK;
}

/* ---- device_epoch.c ---- */

/* With drain_lock held: end the round if that needs no wait and cannot invalidate a capture. @p wait: even if it
 * waits; where only a free does, epoch.wanted is set. */
void ggi_epoch_poll(struct gg_device *device, bool wait);
/* Before unknown streams use memory: keep what ggi_epoch_wait frees where the device is full then. */
void ggi_epoch_prepare(struct gg_device *device);
/* Wait for the device; where that may invalidate captures, by means of a free, which does not. */
void ggi_epoch_wait(struct gg_device *device);
bool ggi_epoch_free_spare(struct gg_device *device); /* false if there is none */
/* Around a synchronize of the device. */
uint64_t ggi_epoch_begin(struct gg_device *device);
void ggi_epoch_end(struct gg_device *device, uint64_t round);
void ggi_epoch_destroy(struct gg_device *device);

/* ---- what a device owns beside its streams and events ---- */

/* core/process fills in the table, so that the runtime need not know the types of pools and staging lanes. */
struct ggi_device_parts {
    gg_status (*open)(struct gg_device *device); /* called again after an open that failed */
    gg_status (*stream_new)(gg_stream *stream);
    void (*stream_gone)(gg_stream *stream); /* it is idle; its native stream is destroyed next */
    /* With drain_lock held: true if a drain must free now, even where that blocks. */
    bool (*must_free)(struct gg_device *device);
    /* With drain_lock held, after device->over was set: retire what is cached beyond its threshold or bound. */
    void (*before_sweep)(struct gg_device *device);
    /* With drain_lock held, at the end of a drain: what it found idle can be used again. */
    void (*after_sweep)(struct gg_device *device);
};
extern const struct ggi_device_parts ggi_device_parts; /* core/process/device_parts.c */

#endif
