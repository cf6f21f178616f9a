/* ze.h: what the files of the Level Zero backend share.
 *
 * A stream is one in-order immediate command list: the driver's own kind from API 1.7 on, below that a
 * list with a barrier behind each append. A ze_event has two states and no memory, so an event of ours
 * is a box: each record puts a new point into it, a ze_event of its own that waiters hold, and which is
 * reset only when it was signalled and every list that waits for it has passed.
 *
 * Locks, in the order in which they may be held together: device, kernel, task, stream, event, pool. None is held
 * while waiting. Level Zero forbids two threads on one list and on one event pool. */
#ifndef GPUGLUE_BACKENDS_ZE_H
#define GPUGLUE_BACKENDS_ZE_H

#include "ze_types.h"

#include <gpuglue/backend.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define ZE_CHUNK 64       /* events of one native pool */
#define ZE_MAX_DRIVERS 16 /* of which some may have no GPU */
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

extern const struct gg_host_api *ze_host; /* set by gg_backend_query */
extern struct ze_functions ze;            /* filled by the first probe that finds the loader */

/* ---- points: point.c ------------------------------------------------------------------------------ */

struct ze_driver;

/* A place in a list: one ze_event, signalled once. Counted: by events, streams, waits and tasks. */
struct ze_point {
    struct ze_point *next;    /* in one of the pool's lists */
    struct ze_point *before;  /* what this one's list waits for first: a reference */
    struct ze_driver *driver; /* NULL: somebody else's event */
    struct ze_chunk *chunk;
    void *event;
    uint64_t *time; /* host memory that the device writes; NULL until it is wanted */
    atomic_int refs;
    atomic_bool passed; /* seen signalled */
};

struct ze_chunk {
    struct ze_chunk *next;
    void *pool;
    uint64_t *times; /* ZE_CHUNK of them; NULL until one is wanted */
    uint32_t used;   /* points that have been given an event */
    struct ze_point points[ZE_CHUNK];
};

struct ze_pool {
    pthread_mutex_t lock;
    struct ze_chunk *chunks;
    struct ze_point *free;           /* reset */
    struct ze_point *flying, **last; /* nobody's any more, and perhaps not signalled yet */
};

/* A point that is not signalled, with one reference. Codes are the driver's. */
int ze_point_take(struct ze_driver *driver, bool timed, struct ze_point **out);
/* One for an event that belongs to somebody else; NULL: out of memory. */
struct ze_point *ze_point_wrap(void *event);
struct ze_point *ze_point_retain(struct ze_point *point);
void ze_point_release(struct ze_point *point); /* NULL is allowed */
/* Give back a point of which the signal could not be appended, and which nobody else has. */
void ze_point_abandon(struct ze_point *point);
/* 0 when it is passed, ZE_RESULT_NOT_READY, or an error. */
int ze_point_query(struct ze_point *point);
int ze_point_wait(struct ze_point *point, uint64_t timeout_ns);
void ze_pool_close(struct ze_driver *driver);

/* ---- objects -------------------------------------------------------------------------------------- */

struct ze_driver {
    void *handle;
    uint32_t api;         /* ZE_API(1, 3) */
    pthread_mutex_t lock; /* context, opened */
    void *context;
    bool owns_context;
    int opened; /* devices */
    struct ze_pool pool;
    bool tells_free_memory;
    atomic_bool no_list_wait, no_host_func; /* the driver said so */
};

/* By ordinal, what the probe found. */
struct ze_gpu {
    struct ze_driver *driver;
    void *handle;
    struct ze_device_properties properties;
};
extern struct ze_gpu ze_gpus[ZE_MAX_GPUS];
extern int ze_gpu_count;

struct gg_device_impl {
    struct ze_gpu *gpu;
    struct ze_driver *driver;
    void *context;
    int32_t ordinal;
    uint32_t group, queues; /* where lists run */
    bool tells_free_memory;
    atomic_uint next_queue;
    struct gg_stream_impl *default_stream;
    pthread_mutex_t lock;           /* the list of streams, and their refs */
    struct gg_stream_impl *streams; /* ours: a native handle is looked up here */
};

struct gg_stream_impl {
    struct gg_stream_impl *next, *previous;
    int refs;
    struct gg_device_impl *device;
    void *list;
    bool owned;
    bool in_order;         /* by the driver's own doing */
    atomic_bool shared;    /* others know the handle and may append to the list too */
    pthread_mutex_t lock;  /* the list, and what follows */
    bool barrier_due;      /* one could not be appended */
    uint64_t submitted;    /* appends; each is work that a mark stands behind */
    struct ze_point *mark; /* behind the first `marked` appends */
    uint64_t marked;
    struct ze_tasks *tasks; /* host functions; NULL until there is one */
    /* Tasks run in the order in which they were queued, so they must stand in that order in the list too. */
    pthread_mutex_t task_lock;
};

/* Group size and arguments are set in the kernel before it is appended: one launch at a time. */
struct gg_kernel_impl {
    struct gg_kernel_impl *next; /* in its module's list */
    struct gg_module_impl *module;
    void *native;
    pthread_mutex_t lock; /* taken before a stream's */
    uint32_t arguments;
    struct ze_kernel_properties properties;
    char name[];
};

struct gg_module_impl {
    struct gg_device_impl *device;
    void *native;
    pthread_mutex_t lock; /* kernels */
    struct gg_kernel_impl *kernels;
};

struct gg_event_impl {
    struct gg_device_impl *device;
    bool timed, borrowed;
    pthread_mutex_t lock;
    struct ze_point *point; /* NULL: never recorded */
};

/* ---- status: ze.c ---------------------------------------------------------------------------------- */

/* GG_NOT_READY, or record what the driver said, and return the status for it. @p format: the figures. */
gg_status ze_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
gg_status ze_no_memory(const char *what);
const char *ze_code_name(int code); /* NULL: not known */
bool ze_is_gone(int code);          /* the driver has shut down: nothing is left to destroy */
/* What a loader answers for a call that the driver behind it is too old for; 1.32 says, where it intercepts,
 * that nothing is initialised. */
bool ze_is_lacking(int code);
/* A call that nobody can be told the failure of. */
void ze_forget(int code, const char *what);

/* ---- lists: list.c --------------------------------------------------------------------------------- */

int ze_list_create(struct gg_device_impl *device, int32_t priority, void **list, bool *in_order);
void ze_list_destroy(void *list);
/* 0 when all that was appended is done; ZE_RESULT_NOT_READY when the time has passed. */
int ze_list_wait(struct gg_stream_impl *stream, uint64_t timeout_ns);

/* Around each append: takes the lock; gives it back, having made what was appended (unless @p code says
 * that it was not) stand in order. Both return the driver's code, and the second is called in any case. */
int ze_append_begin(struct gg_stream_impl *stream);
int ze_append_end(struct gg_stream_impl *stream, int code);
/* With a reference: a point behind all that was appended. */
int ze_stream_mark(struct gg_stream_impl *stream, struct ze_point **out);
/* The same, with the device's time. */
int ze_stream_mark_time(struct gg_stream_impl *stream, struct ze_point **out);
/* What is appended from now on waits for @p point, which is of the same driver. */
int ze_stream_wait_point(struct gg_stream_impl *stream, struct ze_point *point);

/* stream.c: wait for all that the device's streams have. */
int ze_streams_wait(struct gg_device_impl *device);

/* host_task.c: when @p after is passed, run @p function (may be NULL) on the host, then let the stream go
 * on. Takes no reference of the caller's over. */
int ze_stream_task(struct gg_stream_impl *stream, struct ze_point *after, void (*function)(void *),
                   void *argument);
void ze_tasks_end(struct gg_stream_impl *stream); /* the stream is idle */

/* ---- the operations, by row; backend.h says what each does ------------------------------------------ */

void ze_probe(enum gg_probe_level level, struct gg_probe_result *result);

gg_status ze_device_info(int32_t ordinal, struct gg_device_info *info);
gg_status ze_device_attribute(int32_t ordinal, gg_attribute attribute, int64_t *value);
gg_status ze_device_open(int32_t ordinal, struct gg_device_impl **out);
void ze_device_close(struct gg_device_impl *device);
gg_status ze_device_memory_info(struct gg_device_impl *device, uint64_t *free, uint64_t *total);
gg_status ze_device_synchronize(struct gg_device_impl *device);
gg_status ze_device_native(struct gg_device_impl *device, uint64_t handles[4]);
gg_status ze_device_enter(struct gg_device_impl *device, void **saved);
void ze_device_leave(void *saved);
int32_t ze_device_supports(struct gg_device_impl *device, gg_op op);

gg_status ze_mem_alloc(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                       void **out);
gg_status ze_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer);
gg_status ze_pointer_info(struct gg_device_impl *device, const void *pointer,
                          struct gg_pointer_info *info);

gg_status ze_copy(struct gg_stream_impl *stream, void *dst, const void *src, size_t nbytes,
                  enum gg_copy_kind kind, int32_t pageable);
gg_status ze_copy_region(struct gg_stream_impl *stream, void *dst, const void *src,
                         const struct gg_region *region, enum gg_copy_kind kind);
gg_status ze_peer_access(struct gg_device_impl *device, struct gg_device_impl *peer, int32_t *out);
gg_status ze_peer_enable(struct gg_device_impl *device, struct gg_device_impl *peer);
gg_status ze_copy_peer(struct gg_stream_impl *stream, struct gg_device_impl *dst_device, void *dst,
                       struct gg_device_impl *src_device, const void *src, size_t nbytes);
gg_status ze_fill(struct gg_stream_impl *stream, void *dst, uint32_t pattern, uint32_t pattern_size,
                  size_t count);

gg_status ze_stream_default(struct gg_device_impl *device, struct gg_stream_impl **out);
gg_status ze_stream_create(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                           struct gg_stream_impl **out);
void ze_stream_destroy(struct gg_stream_impl *stream);
gg_status ze_stream_borrow(struct gg_device_impl *device, uint64_t native, uint32_t *flags,
                           int32_t *is_default, struct gg_stream_impl **out);
gg_status ze_stream_native(struct gg_stream_impl *stream, uint64_t handles[4]);
gg_status ze_stream_query(struct gg_stream_impl *stream);
gg_status ze_stream_wait(struct gg_stream_impl *stream, uint64_t timeout_ns);
gg_status ze_stream_wait_event(struct gg_stream_impl *stream, struct gg_event_impl *event);
gg_status ze_stream_priority_range(struct gg_device_impl *device, int32_t *least, int32_t *greatest);
gg_status ze_stream_host_func(struct gg_stream_impl *stream, void (*function)(void *),
                              void *argument);

gg_status ze_event_create(struct gg_device_impl *device, uint32_t flags, struct gg_event_impl **out);
void ze_event_destroy(struct gg_event_impl *event);
gg_status ze_event_borrow(struct gg_device_impl *device, uint64_t native,
                          struct gg_event_impl **out);
gg_status ze_event_record(struct gg_event_impl *event, struct gg_stream_impl *stream);
gg_status ze_event_query(struct gg_event_impl *event);
gg_status ze_event_wait(struct gg_event_impl *event, uint64_t timeout_ns);
gg_status ze_event_elapsed(struct gg_event_impl *start, struct gg_event_impl *stop,
                           double *milliseconds);
/* With a reference: what the event recorded last; NULL: never. */
struct ze_point *ze_event_last(struct gg_event_impl *event);

gg_status ze_module_load(struct gg_device_impl *device, const struct gg_image *image,
                         const void *bytes, size_t nbytes, struct gg_module_impl **out);
void ze_module_unload(struct gg_module_impl *module);
gg_status ze_module_global(struct gg_module_impl *module, const char *name, void **pointer,
                           size_t *nbytes);
gg_status ze_module_kernel(struct gg_module_impl *module, const char *name,
                           struct gg_kernel_impl **out);
gg_status ze_module_names(struct gg_module_impl *module, void (*each)(void *user, const char *name),
                          void *user);
gg_status ze_kernel_parameter(struct gg_kernel_impl *kernel, uint32_t index,
                              struct gg_parameter *parameter);
gg_status ze_kernel_attribute(struct gg_kernel_impl *kernel, gg_kernel_attribute attribute,
                              int64_t *value);
gg_status ze_kernel_suggest(struct gg_kernel_impl *kernel, size_t shared, uint32_t limit,
                            uint32_t *threads, uint32_t *blocks);
gg_status ze_kernel_launch(struct gg_stream_impl *stream, struct gg_kernel_impl *kernel,
                           const struct gg_launch *launch);

#endif
