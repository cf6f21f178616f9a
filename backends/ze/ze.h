/* ze.h: what the files of the Level Zero backend share.
 *
 * A stream is an in-order immediate command list: from API 1.7 on the driver's own kind, before that a list with a
 * barrier after each append. Large copies between host and device run on a copy engine: from API 1.14 on the driver
 * does this by itself, before that the stream has a second list. A native event has two states and no history, so each record of an event takes
 * another native event from a pool. Waiters hold references to it, and it is reset only after it was signalled and
 * every list that waits for it has passed it.
 *
 * Locks, in the order in which they may be held together: device, kernel, task, stream, event, pool. None is held
 * while waiting. Level Zero forbids two threads on one list or on one event pool. */
#ifndef GPUGLUE_BACKENDS_ZE_H
#define GPUGLUE_BACKENDS_ZE_H

#include "ze_types.h"

#include <gpuglue/backend.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define ZE_CHUNK_EVENTS 64 /* events of one native pool */
#define ZE_MAX_DRIVERS 16  /* some may have no GPU */
#define ZE_MAX_GPUS 128

_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "64-bit only");

/* ---- the loader's functions --------------------------------------------------------------------- */

struct ze_functions {
#define FN(slot, parameters, symbol, need) int(*slot) parameters;
#define GIVES(slot, parameters, symbol, need) void *(*slot)parameters;
#include "ze.def"
#undef GIVES
#undef FN
};

extern const struct gg_host_api *ze_api; /* set by gg_backend_query */
extern struct ze_functions ze;           /* filled by the first probe that finds the loader */

/* ---- pooled events: event_pool.c ------------------------------------------------------------------ */

struct ze_driver;

/* One use of a native event: it is signalled once. Events, streams, waits and tasks hold references. */
struct ze_pooled_event {
    struct ze_pooled_event *next;   /* in one of the pool's lists */
    struct ze_pooled_event *before; /* the event that this one's list waits for first: a reference */
    struct ze_driver *driver;       /* NULL: a borrowed event, not of the pool */
    struct ze_chunk *chunk;
    void *event;
    uint64_t *time; /* host memory that the device writes; NULL until first used */
    atomic_int refs;
    atomic_bool passed; /* was found signalled */
};

struct ze_chunk {
    struct ze_chunk *next;
    void *pool;
    uint64_t *times;  /* ZE_CHUNK_EVENTS of them; NULL until first used */
    uint32_t used;    /* how many of `events` have a native event */
    atomic_bool left; /* to the driver, since the device may still signal one of them */
    struct ze_pooled_event events[ZE_CHUNK_EVENTS];
};

struct ze_pool {
    pthread_mutex_t lock;
    struct ze_chunk *chunks;
    struct ze_pooled_event *free;           /* reset */
    struct ze_pooled_event *parked, **last; /* without references, perhaps not yet signalled */
};

/* A pooled event that is not signalled, with one reference. Returns the driver's code. */
int ze_pooled_event_take(struct ze_driver *driver, bool timed, struct ze_pooled_event **out);
/* For a borrowed native event; NULL: out of memory. */
struct ze_pooled_event *ze_pooled_event_wrap(void *event);
struct ze_pooled_event *ze_pooled_event_retain(struct ze_pooled_event *pooled);
void ze_pooled_event_release(struct ze_pooled_event *pooled); /* NULL is allowed */
/* The device may signal it at any later time: it is never reused or destroyed. NULL and a borrowed one are allowed. */
void ze_pooled_event_leave(struct ze_pooled_event *pooled);
/* Return an event to the pool whose signal could not be appended. There is no other reference. */
void ze_pooled_event_abandon(struct ze_pooled_event *pooled);
/* 0 if it is signalled, ZE_RESULT_NOT_READY, or an error. */
int ze_pooled_event_query(struct ze_pooled_event *pooled);
int ze_pooled_event_wait(struct ze_pooled_event *pooled, uint64_t timeout_ns);
void ze_pool_close(struct ze_driver *driver);

/* ---- objects -------------------------------------------------------------------------------------- */

/* Functions of the driver, beside the specification: import.c */
struct ze_import {
    void *driver; /* the driver's own handle, which a loader may have wrapped */
    int (*add)(void *driver, void *pointer, size_t nbytes);
    int (*release)(void *driver, void *pointer);
    int (*base)(void *driver, void *pointer, void **base); /* an error: not imported */
    bool works;
};

struct ze_driver {
    void *handle;
    uint32_t api;         /* ZE_API(1, 3) */
    pthread_mutex_t lock; /* context, opened */
    void *context;
    bool owns_context;
    int opened; /* devices */
    struct ze_pool pool;
    bool reports_free_memory, shares_memory, links, extends_kernels, records_graphs;
    struct ze_import imports;
    atomic_bool no_list_wait, no_host_func; /* reported by the driver */
};

/* The GPUs that the probe found, by ordinal. */
struct ze_gpu {
    struct ze_driver *driver;
    void *handle;
    struct ze_device_properties properties;
    bool has_shared; /* memory that the device and the host access at one address */
    bool has_graphs;
};
/* graph.c: whether the device reports that its work can be recorded. */
bool ze_gpu_has_graphs(const struct ze_gpu *gpu);
/* memory.c: queries whether the device has such memory. Returns the driver's code. */
int ze_gpu_find_shared(const struct ze_gpu *gpu, bool *out);
extern struct ze_gpu ze_gpus[ZE_MAX_GPUS];
extern int ze_gpu_count;

struct gg_device_impl {
    struct ze_gpu *gpu;
    struct ze_driver *driver;
    void *context;
    int32_t ordinal;
    uint32_t group, queues;           /* the queues of lists */
    uint32_t copy_group, copy_queues; /* of engines that only copy; 0 queues: none */
    bool reports_free_memory;
    bool large_blocks; /* a block may be larger than the driver's limit: see memory.c */
    atomic_uint next_queue, next_copy_queue;
    struct gg_stream_impl *default_stream;
    pthread_mutex_t lock;           /* the lists of streams, with their refs, and of exports */
    struct gg_stream_impl *streams; /* of this backend: native handles are looked up here */
    struct ze_export *exports;      /* blocks with a handle: ipc.c */
};

struct gg_stream_impl {
    struct gg_stream_impl *next, *previous;
    int refs;
    struct gg_device_impl *device;
    void *list;
    void *copy_list; /* for large copies; NULL until the first, or if the driver uses copy engines itself */
    void *tail; /* the list of the two with the newest append, which comes after all others */
    bool owned;
    bool in_order;        /* the driver keeps the order */
    bool needs_copy_list; /* large copies need a list of their own */
    bool captured; /* from ze_capture_begin to a ze_capture_end that succeeds; one thread calls both */
    uint32_t priority;    /* of both lists */
    atomic_bool shared;   /* other code has the handle and may append to the list */
    atomic_uint lockers;  /* threads that want `lock` for an append */
    pthread_mutex_t lock; /* the list, and what follows */
    bool barrier_due;     /* a barrier could not be appended */
    uint64_t submitted;   /* number of appends */
    /* The first and the last event after the first `recorded_at` appends. */
    struct ze_pooled_event *first_recorded, *recorded;
    uint64_t recorded_at;
    struct ze_tasks *tasks; /* host functions; NULL until there is one */
    /* Tasks run in the order in which they were queued; this keeps the list in the same order. */
    pthread_mutex_t task_lock;
};

/* Group size and arguments are state of the kernel until it is appended: one launch at a time. */
struct gg_kernel_impl {
    struct gg_kernel_impl *next; /* in its module's list */
    struct gg_module_impl *module;
    void *native;
    pthread_mutex_t lock; /* acquired before a stream's */
    uint32_t arguments;
    struct ze_kernel_properties properties;
    uint32_t max_threads, registers; /* 0: unknown */
    char name[];
};

struct gg_module_impl {
    struct gg_device_impl *device;
    void *native;
    bool prints;          /* a kernel may; known only where the device has graphs */
    pthread_mutex_t lock; /* kernels */
    struct gg_kernel_impl *kernels;
};

struct gg_event_impl {
    struct gg_device_impl *device;
    bool timed, borrowed;
    pthread_mutex_t lock;
    struct ze_pooled_event *pooled; /* NULL: never recorded */
};

/* ---- status: ze.c ---------------------------------------------------------------------------------- */

/* Records the driver's error with @p format as detail, and returns its status; or returns GG_NOT_READY. */
gg_status ze_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
gg_status ze_no_memory(const char *what);
/* The error for a function that this loader is too old for. */
gg_status ze_missing(const char *function);
const char *ze_error_name(int code); /* NULL: unknown */
/* Of a wait or query at the end of a stream or pool, which an error leaves to the driver. */
#define ZE_TRIES 3
bool ze_is_shut_down(int code); /* the driver has shut down: there is nothing left to destroy */
bool ze_is_over(int code); /* it has, or the device is lost: nothing will be signalled any more */
/* Whether a loader returns @p code for a call that the driver is too old for. An intercepting loader 1.32 reports
 * "not initialised". */
bool ze_is_unsupported(int code);
/* Logs the failure of a call that has no caller to report to. */
void ze_log_failure(int code, const char *what);

/* ---- lists: list.c --------------------------------------------------------------------------------- */

/* Creates the stream's list. Returns the driver's code. */
int ze_list_create(struct gg_stream_impl *stream, int32_t priority);
void ze_lists_destroy(struct gg_stream_impl *stream);
/* For every use of the list but a wait, which lets other threads go first. */
static inline void ze_stream_lock(struct gg_stream_impl *stream)
{
    atomic_fetch_add(&stream->lockers, 1);
    pthread_mutex_lock(&stream->lock);
    atomic_fetch_sub(&stream->lockers, 1);
}
/* 0 when everything that was appended is complete; ZE_RESULT_NOT_READY after the timeout. */
int ze_list_wait(struct gg_stream_impl *stream, uint64_t timeout_ns);

enum ze_engine {
    ZE_ENGINE_COMPUTE, /* the stream's list */
    ZE_ENGINE_COPY,    /* the list for large copies, if there is one */
    ZE_ENGINE_ANY      /* the list of the newest append */
};

/* Before and after each append. _begin acquires the stream's lock, and makes the engine's list the stream's tail. _end
 * puts the append in order, unless @p code is an error, and releases the lock; it is called after a failure too. Both
 * return the driver's code. */
int ze_append_begin(struct gg_stream_impl *stream, enum ze_engine engine);
int ze_append_end(struct gg_stream_impl *stream, int code);
/* The code of @p call, an append to the stream's tail, between _begin and _end. */
#define ZE_APPEND_ON(stream, engine, call)             \
    __extension__({                                    \
        int code_ = ze_append_begin((stream), engine); \
        if (!code_)                                    \
            code_ = (call);                            \
        ze_append_end(stream, code_);                  \
    })
#define ZE_APPEND(stream, call) ZE_APPEND_ON(stream, ZE_ENGINE_COMPUTE, call)
/* From now on all work is on the stream's list, which other code may use. Returns the driver's code. */
int ze_stream_share(struct gg_stream_impl *stream);
/* A pooled event after everything that was appended, with a reference. */
int ze_stream_record(struct gg_stream_impl *stream, struct ze_pooled_event **out);
/* The same, with the device's timestamp. */
int ze_stream_record_time(struct gg_stream_impl *stream, struct ze_pooled_event **out);
/* Later appends wait for @p pooled, which belongs to the same driver. */
int ze_stream_wait_pooled(struct gg_stream_impl *stream, struct ze_pooled_event *pooled);

/* stream.c: wait for the work of all streams of the device. */
int ze_streams_wait(struct gg_device_impl *device);

/* host_task.c: when @p after is signalled, run @p function (may be NULL) on the host, then let the stream continue.
 * The caller keeps its reference to @p after. */
int ze_stream_task(struct gg_stream_impl *stream, struct ze_pooled_event *after,
                   void (*function)(void *), void *argument);
void ze_tasks_end(struct gg_stream_impl *stream); /* the stream is idle */

/* event.c: the pooled event of the last record, with a reference; NULL: it was never recorded. */
struct ze_pooled_event *ze_event_current(struct gg_event_impl *event);

void ze_import_init(struct ze_driver *driver); /* import.c */

/* ipc.c: @p pointer is about to be freed. */
void ze_ipc_forget(struct gg_device_impl *device, const void *pointer);

bool ze_has_stats(void); /* stats.c: loads Sysman */

/* ---- the operations: backend.h describes each; ze.c sets those that do not exist to NULL ----------- */

#define OP(slot, need) __typeof__(*((struct gg_backend_ops *)0)->slot) ze_##slot;
#include <gpuglue/ops.def>
#undef OP

#endif
