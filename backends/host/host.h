/* host.h: what the files of the host backend share.
 *
 * This backend is the reference: a device made of ordinary memory and threads that behaves as a GPU
 * does. A stream is a queue with a worker thread of its own, an event is a point that workers pass,
 * and nothing is done before it was queued. Other backends are copies of this folder whose rows call
 * a vendor's driver instead.
 *
 * Locks, in the order in which they may be held together: device, event, stream, point. No lock is
 * held while work runs. */
#ifndef GPUGLUE_BACKENDS_HOST_H
#define GPUGLUE_BACKENDS_HOST_H

#include <gpuglue/backend.h>
#include <gpuglue/host_kernel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* What the core lends us; set before any operation is called. */
extern const struct gg_host_api *host_api;

/* Linked into the core instead of loaded, so this stands for gg_backend_query. */
const struct gg_backend_desc *ggi_host_backend(const struct gg_host_api *host);

/* ---- time: host.c ---- */

uint64_t host_now_ns(void);                     /* monotonic */
uint64_t host_deadline(uint64_t timeout_ns);    /* GG_FOREVER stays what it is */
void host_cond_init(pthread_cond_t *condition); /* one that understands host_now_ns */
/* False when @p deadline has passed. */
bool host_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline);

/* ---- native handles: device.c ---- */

/* First member of what can be borrowed by its native handle, which is its address. */
struct host_object {
    struct host_object *next, *previous;
    int refs; /* under device->lock */
};
void host_object_add(struct gg_device_impl *device, struct host_object **list,
                     struct host_object *object);
/* The living object that @p native names, with a reference, or NULL: it may be any number. */
struct host_object *host_object_find(struct gg_device_impl *device, struct host_object **list,
                                     uint64_t native);
/* True when that was the last reference: destroy it. */
bool host_object_drop(struct gg_device_impl *device, struct host_object **list,
                      struct host_object *object);

/* ---- objects ---- */

struct host_block {
    char *base;
    size_t size;
    enum gg_memory_kind kind;
    bool mapped;     /* by mmap */
    bool registered; /* others own it */
    bool lent;       /* a module's variable: not ours to free */
};

struct gg_device_impl {
    pthread_mutex_t lock; /* the two lists */
    struct host_object *streams, *events;
    struct gg_stream_impl *default_stream;
    pthread_mutex_t memory_lock; /* the rest */
    struct host_block *blocks;   /* sorted by address */
    size_t block_count, block_room;
    uint64_t used, total; /* bytes of device memory */
};

/* Work in a queue. `run` belongs to the row that queued it, and reads the members it needs. */
struct host_command {
    struct host_command *next;
    void (*run)(const struct host_command *command);
    bool brief; /* never waits: may run with the stream locked */
    void *dst;
    const void *src;
    size_t size;
    uint64_t pattern;
    struct host_point *point; /* a reference */
    void (*function)(void *);
    void *argument;
    struct gg_region region;
};

struct gg_stream_impl {
    struct host_object object;
    struct gg_device_impl *device;
    pthread_mutex_t lock;              /* what follows */
    pthread_cond_t work, progress;     /* for the worker; for those who wait for it */
    struct host_command *first, *last; /* queued */
    struct host_command *spare;        /* to be used again */
    uint64_t submitted, completed;     /* counts of commands */
    pthread_t worker;
    bool started, stopping;
    _Atomic(const char *) failure; /* what went wrong in a command; static; for the next who waits */
};

/* A place in one or more queues. It is kept by the event that was recorded there, by the commands
 * that reach it and by those that wait for it, so that recording the event again disturbs none. */
struct host_point {
    atomic_int refs;
    atomic_uint pending; /* queues that have yet to reach it */
    uint64_t time_ns;    /* when the last of them did */
    pthread_mutex_t lock;
    pthread_cond_t reached;
};

struct gg_event_impl {
    struct host_object object;
    struct gg_device_impl *device;
    pthread_mutex_t lock;
    struct host_point *point; /* NULL: never recorded */
};

/* The launches of a kernel. */
struct gg_kernel_impl {
    struct gg_module_impl *module;
    const struct gg_host_kernel *told; /* the shared object's own */
};

/* ---- what the rows use of each other ---- */

/* stream.c: queue a copy of @p work, starting the worker if need be. Takes work->point over on success. */
gg_status host_submit(struct gg_stream_impl *stream, const struct host_command *work);

/* memory.c: GG_OK when [pointer, pointer + nbytes) lies in one block. */
gg_status host_check_device_range(struct gg_device_impl *device, const void *pointer, size_t nbytes);

/* memory.c: a module's variable is memory of the device too. False without memory for the note. */
bool host_lend(struct gg_device_impl *device, void *pointer, size_t nbytes);
void host_take_back(struct gg_device_impl *device, void *pointer);

/* block.c: run every thread of every block. NULL, or what went wrong (static). */
struct host_grid {
    const struct gg_host_kernel *kernel;
    const void *const *arguments;
    struct gg_host_dim grid, block;
    uint32_t shared; /* bytes */
};
const char *host_run_grid(const struct host_grid *grid);

/* event.c */
struct host_point *host_point_new(void); /* reached, until it is queued; NULL: out of memory */
void host_point_release(struct host_point *point);
/* Have @p stream reach it too. A failure leaves the point as it was. */
gg_status host_point_queue(struct host_point *point, struct gg_stream_impl *stream);
gg_status host_point_wait(struct host_point *point, uint64_t timeout_ns);
gg_status host_no_point(void); /* the error for NULL */

/* ---- the operations, by row; backend.h says what each does ---- */

void host_probe(enum gg_probe_level level, struct gg_probe_result *result);

gg_status host_device_info(int32_t ordinal, struct gg_device_info *info);
gg_status host_device_attribute(int32_t ordinal, gg_attribute attribute, int64_t *value);
gg_status host_device_open(int32_t ordinal, struct gg_device_impl **out);
void host_device_close(struct gg_device_impl *device);
gg_status host_device_memory_info(struct gg_device_impl *device, uint64_t *free, uint64_t *total);
gg_status host_device_synchronize(struct gg_device_impl *device);
gg_status host_device_record(struct gg_device_impl *device, struct gg_event_impl *event);
gg_status host_device_native(struct gg_device_impl *device, uint64_t handles[4]);
gg_status host_device_enter(struct gg_device_impl *device, void **saved);
void host_device_leave(void *saved);
int32_t host_device_current(void);

gg_status host_mem_alloc(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                         void **out);
gg_status host_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer);
gg_status host_mem_register(struct gg_device_impl *device, void *pointer, size_t nbytes);
gg_status host_mem_unregister(struct gg_device_impl *device, void *pointer);
gg_status host_mem_prefetch(struct gg_stream_impl *stream, const void *pointer, size_t nbytes,
                            int32_t to_host);
gg_status host_mem_advise(struct gg_device_impl *device, const void *pointer, size_t nbytes,
                          enum gg_advice advice, int32_t for_host);
gg_status host_pointer_info(struct gg_device_impl *device, const void *pointer,
                            struct gg_pointer_info *info);

gg_status host_copy(struct gg_stream_impl *stream, void *dst, const void *src, size_t nbytes,
                    enum gg_copy_kind kind, int32_t pageable);
gg_status host_fill(struct gg_stream_impl *stream, void *dst, uint32_t pattern,
                    uint32_t pattern_size, size_t count);
gg_status host_write_word(struct gg_stream_impl *stream, void *dst, uint64_t value);
gg_status host_copy_region(struct gg_stream_impl *stream, void *dst, const void *src,
                           const struct gg_region *region, enum gg_copy_kind kind);

gg_status host_stream_default(struct gg_device_impl *device, struct gg_stream_impl **out);
gg_status host_stream_create(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                             struct gg_stream_impl **out);
void host_stream_destroy(struct gg_stream_impl *stream);
gg_status host_stream_borrow(struct gg_device_impl *device, uint64_t native, uint32_t *flags,
                             int32_t *is_default, struct gg_stream_impl **out);
gg_status host_stream_native(struct gg_stream_impl *stream, uint64_t handles[4]);
gg_status host_stream_query(struct gg_stream_impl *stream);
gg_status host_stream_wait(struct gg_stream_impl *stream, uint64_t timeout_ns);
gg_status host_stream_wait_event(struct gg_stream_impl *stream, struct gg_event_impl *event);
gg_status host_stream_priority_range(struct gg_device_impl *device, int32_t *least,
                                     int32_t *greatest);
gg_status host_stream_host_func(struct gg_stream_impl *stream, void (*function)(void *),
                                void *argument);

gg_status host_event_create(struct gg_device_impl *device, uint32_t flags,
                            struct gg_event_impl **out);
void host_event_destroy(struct gg_event_impl *event);
gg_status host_event_borrow(struct gg_device_impl *device, uint64_t native,
                            struct gg_event_impl **out);
gg_status host_event_native(struct gg_event_impl *event, uint64_t handles[4]);
gg_status host_event_record(struct gg_event_impl *event, struct gg_stream_impl *stream);
gg_status host_event_query(struct gg_event_impl *event);
gg_status host_event_wait(struct gg_event_impl *event, uint64_t timeout_ns);
gg_status host_event_elapsed(struct gg_event_impl *start, struct gg_event_impl *stop,
                             double *milliseconds);

gg_status host_module_load(struct gg_device_impl *device, const struct gg_image *image,
                           const void *bytes, size_t nbytes, struct gg_module_impl **out);
void host_module_unload(struct gg_module_impl *module);
gg_status host_module_global(struct gg_module_impl *module, const char *name, void **pointer,
                             size_t *nbytes);
gg_status host_module_kernel(struct gg_module_impl *module, const char *name,
                             struct gg_kernel_impl **out);
gg_status host_module_names(struct gg_module_impl *module,
                            void (*each)(void *user, const char *name), void *user);
gg_status host_kernel_parameter(struct gg_kernel_impl *kernel, uint32_t index,
                                struct gg_parameter *parameter);
gg_status host_kernel_attribute(struct gg_kernel_impl *kernel, gg_kernel_attribute attribute,
                                int64_t *value);
gg_status host_kernel_occupancy(struct gg_kernel_impl *kernel, uint32_t threads, size_t shared,
                                int32_t *blocks);
gg_status host_kernel_suggest(struct gg_kernel_impl *kernel, size_t shared, uint32_t limit,
                              uint32_t *threads, uint32_t *blocks);
gg_status host_kernel_launch(struct gg_stream_impl *stream, struct gg_kernel_impl *kernel,
                             const struct gg_launch *launch);

#endif
