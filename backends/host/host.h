/* host.h: what the files of the host backend share.
 *
 * This backend is the reference implementation: a device made of ordinary memory and threads that behaves
 * like a GPU. A stream is a queue with its own worker thread, an event is a point that workers reach, and all
 * work is asynchronous.
 *
 * Locks, in the order in which they may be held together: export, pause, device, event, stream, point, team. No lock but
 * the first is held while work runs. */
#ifndef GPUGLUE_BACKENDS_HOST_H
#define GPUGLUE_BACKENDS_HOST_H

#include <gpuglue/backend.h>
#include <gpuglue/host_kernel.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The functions of the core; set before any operation is called. */
extern const struct gg_host_api *host_api;

/* In place of gg_backend_query: this backend is linked into the core. */
const struct gg_backend_desc *ggi_host_backend(const struct gg_host_api *host);

#define HOST_DEVICES_MAX 64
#define HOST_FAILURE_SIZE 320u /* of the text why a command failed; "": it did not */

/* ---- time: host.c ---- */

uint64_t host_now_ns(void);                     /* monotonic */
uint64_t host_deadline(uint64_t timeout_ns);    /* GG_FOREVER stays GG_FOREVER */
void host_cond_init(pthread_cond_t *condition); /* uses the clock of host_now_ns */
/* False when @p deadline has passed. */
bool host_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline);

/* ---- native handles: object.c ---- */

/* First member of streams and events. Their native handle is their address. */
struct host_object {
    struct host_object *next, *previous;
    int refs; /* under device->lock */
};
void host_object_add(struct gg_device_impl *device, struct host_object **list,
                     struct host_object *object);
/* The live object with handle @p native, with a reference; NULL if there is none. Takes any number. */
struct host_object *host_object_find(struct gg_device_impl *device, struct host_object **list,
                                     uint64_t native);
/* True if that was the last reference: the caller destroys the object. */
bool host_object_drop(struct gg_device_impl *device, struct host_object **list,
                      struct host_object *object);

/* ---- objects ---- */

/* More than any kernel has: it refuses a mask that is smaller than its own. */
#define HOST_CPUS_MAX 65536
struct host_processors {
    cpu_set_t set[HOST_CPUS_MAX / CPU_SETSIZE]; /* one mask: for the macros CPU_…_S */
};

struct host_block {
    char *base;
    size_t size;
    enum gg_memory_kind kind;
    bool mapped;     /* by mmap */
    bool registered; /* by mem_register: owned by the user */
    bool global;     /* a module's variable: freed with its module */
    bool imported;   /* mapped from another process */
    bool shared;     /* in a file, which other processes can map */
    uint64_t inode, offset;
};

/* Threads that run blocks of large grids, besides the streams' workers. */
struct host_team {
    int32_t ordinal;      /* of the device */
    int size;             /* threads that may run one grid, with its worker */
    pthread_mutex_t lock; /* what follows */
    pthread_cond_t work, done;
    struct host_job *jobs;
    pthread_t *threads;
    int started;
    bool start_tried; /* it is not repeated: the workers alone are enough */
    bool stopping;
};

struct gg_device_impl {
    int32_t ordinal, node; /* node: of its memory and threads, or -1 */
    /* Devices of other nodes that may use its memory, and whose memory it may use: by ordinal, or NULL. */
    _Atomic(struct gg_device_impl *) peers[HOST_DEVICES_MAX];
    struct host_team team;
    pthread_mutex_t lock; /* streams, events */
    struct host_object *streams, *events;
    struct host_object *ending; /* streams whose workers have yet to stop */
    struct gg_stream_impl *default_stream;
    pthread_mutex_t memory_lock; /* what follows */
    struct host_block *blocks;   /* sorted by address */
    size_t block_count, block_room;
    uint64_t used, total; /* bytes of device memory */
    int file;             /* of shared.c; -1: there is none yet */
    uint64_t file_inode, file_end;
    pthread_mutex_t pause_lock;
    pthread_cond_t pause_changed; /* a command has ended while paused; the pause has ended */
    atomic_bool paused;           /* written under pause_lock: no command that uses memory begins */
};

/* Work in a queue. `run` reads the members that it needs. */
struct host_command {
    struct host_command *next;
    void (*run)(const struct host_command *command);
    bool brief;    /* never waits: runs with the stream locked */
    bool unpaused; /* may wait for other streams, and uses no device memory: runs in a pause too */
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
    pthread_cond_t work, progress;     /* signalled to the worker; to waiting threads */
    struct host_command *first, *last; /* queued */
    struct host_command *spare;        /* for reuse */
    bool uses_memory;                  /* a command that does runs now */
    uint64_t submitted, completed;     /* numbers of commands */
    pthread_t worker;
    bool started, stopping;
    char failure[HOST_FAILURE_SIZE]; /* why a command failed, under lock; reported by the next wait */
};

/* A position in one or more queues. The event that was recorded there holds a reference, and so do the
 * commands that reach it or wait for it: recording the event again does not affect them. */
struct host_point {
    atomic_int refs;
    atomic_uint pending; /* queues that have not reached it */
    uint64_t time_ns;    /* when the last one did */
    pthread_mutex_t lock;
    pthread_cond_t reached;
};

struct gg_event_impl {
    struct host_object object;
    struct gg_device_impl *device;
    pthread_mutex_t lock;
    struct host_point *point; /* NULL: never recorded */
};

struct gg_kernel_impl {
    struct gg_module_impl *module;
    const struct gg_host_kernel *entry; /* in the shared object's table */
};

/* ---- what these files call of each other ---- */

int32_t host_module_ordinal(const struct gg_module_impl *module); /* module.c: of its device */

/* stream.c: queue a copy of @p work; starts the worker if necessary. On success takes over work->point. */
gg_status host_submit(struct gg_stream_impl *stream, const struct host_command *work);

/* stream.c: from the first to the second call no command runs that uses the device's memory. Waits for those that do;
 * waits for events and host functions go on, so that no stream waits for one that is held. */
void host_device_pause(struct gg_device_impl *device);
void host_device_resume(struct gg_device_impl *device);

/* memory.c: GG_OK when [pointer, pointer + nbytes) is inside one block of the device or of its peers. */
gg_status host_check_device_range(struct gg_device_impl *device, const void *pointer, size_t nbytes);

/* numa.c: devices are one, or one for each NUMA node */
int32_t host_device_count(void);
int32_t host_device_node(int32_t ordinal); /* that its memory and threads are bound to; -1: none */
int32_t host_numa_node(int32_t ordinal);   /* of its processors; -1: unknown, or several nodes */
/* Those that the device's threads may use. False if the system refuses them. */
bool host_device_processors(int32_t ordinal, struct host_processors *out);
uint64_t host_node_memory(int32_t node); /* bytes; 0: unknown */
/* Place pages that nothing has used yet on a node; -1: nothing to do. */
void host_node_prefer(int32_t node, void *base, size_t nbytes);
/* team.c: the processors of the process's first thread. False if the system refuses them. */
bool host_processors_get(struct host_processors *out);

/* memory.c: the list of blocks, under its lock. `base` is the start of a block. */
bool host_block_insert(struct gg_device_impl *device, const struct host_block *block);
bool host_block_get(struct gg_device_impl *device, const void *base, struct host_block *out);
void host_block_set(struct gg_device_impl *device, const struct host_block *changed);
void host_block_drop(struct gg_device_impl *device, const void *base);

/* shared.c: memory that other processes can map; false if there is none. */
#define HOST_FILE_NAME "gpuglue-memory" /* as /proc shows it */
bool host_shared_allocate(struct gg_device_impl *device, struct host_block *block);
/* Whether its file is still the device's. */
bool host_shared_is_current(const struct gg_device_impl *device, const struct host_block *block);
void host_shared_close(struct gg_device_impl *device);
void host_shared_free(struct gg_device_impl *device, const struct host_block *block);
/* Move a private block there, at the same address. Waits for the device's work. */
gg_status host_shared_convert(struct gg_device_impl *device, struct host_block *block);

/* memory.c: list a module's variable as device memory. False if host memory is exhausted. */
bool host_block_add_global(struct gg_device_impl *device, void *pointer, size_t nbytes);
void host_block_remove_global(struct gg_device_impl *device, void *pointer);

struct host_grid {
    const struct gg_host_kernel *kernel;
    const void *const *arguments;
    struct gg_host_dim grid, block;
    uint32_t shared; /* bytes */
};

/* A grid that runs. Each of its threads takes the next chunk of blocks until there is none. */
struct host_job {
    const struct host_grid *grid;
    uint64_t blocks, chunk;
    _Atomic(uint64_t) next_block;
    atomic_bool failed;              /* no further chunk is taken */
    char failure[HOST_FAILURE_SIZE]; /* by the first that failed */
    uint64_t offer_at;               /* when other threads are woken to help; 0: at once */
    bool offered;
    struct host_job *next; /* in team->jobs, under its lock, like `helpers` */
    int helpers;           /* other threads that run blocks now */
    bool no_room;          /* there is no memory for one more of them */
};

/* team.c: run every thread of every block. Writes why it failed, or "". */
void host_run_grid(struct host_team *team, const struct host_grid *grid,
                   char failure[HOST_FAILURE_SIZE]);
/* Called by the stream's worker, once: the other threads may take blocks. */
void host_job_offer(struct host_job *job, struct host_team *team);
/* Ends that, and waits for the blocks that they run. */
void host_job_withdraw(struct host_job *job, struct host_team *team);
void host_team_init(struct host_team *team, int32_t ordinal);
void host_team_destroy(struct host_team *team);
int host_thread_count(int32_t ordinal); /* that run blocks at a time */

/* block.c: run blocks until none is left, on the stream's worker. @p team: may help; or NULL. */
void host_run_blocks(struct host_job *job, struct host_team *team);
/* The same on another thread. False: there is no memory for it, and it took no block. */
bool host_help_with_blocks(struct host_job *job);

/* A thread of a block that is suspended. */
struct host_lane {
    struct host_lane *next;
    uint32_t index; /* in the block */
    uint32_t mask;  /* this and what follows: of a call that waits for other lanes of the warp */
    const struct gg_host_operation *operation;
    void *argument;
    const void *site;
};

/* A queue of them. */
struct host_lanes {
    struct host_lane *first, **last;
};
static inline void host_lanes_clear(struct host_lanes *lanes)
{
    lanes->first = NULL;
    lanes->last = &lanes->first;
}
static inline void host_lanes_append(struct host_lanes *lanes, struct host_lane *lane)
{
    lane->next = NULL;
    *lanes->last = lane;
    lanes->last = &lane->next;
}

/* warp.c: the warps of a block. Lanes that may go on are appended to `ready`. */
struct host_warps;
struct host_warps *host_warps_new(uint32_t threads, struct host_lanes *ready); /* or NULL */
void host_warps_begin(struct host_warps *warps); /* a block, of which no thread has ended */
/* @p lane calls `warp` of gg_host_thread, and waits then. */
void host_warps_call(struct host_warps *warps, struct host_lane *lane, char *failure);
/* The thread with that index has ended. */
void host_warps_end(struct host_warps *warps, uint32_t index, char *failure);
/* No thread can go on. Releases the lanes that wait at a site. If there are none, but others wait for lanes that do not come,
 * it writes the failure. */
void host_warps_stalled(struct host_warps *warps, char *failure);

/* stream.c: start a thread that receives no signals, on the processors of a device. Returns an errno or 0. */
int host_thread_start(pthread_t *thread, int32_t ordinal, const char *name, void *(*run)(void *),
                      void *argument);

/* event.c */
struct host_point *host_point_new(void); /* counts as reached until it is queued; NULL: out of memory */
void host_point_release(struct host_point *point);
/* Enqueue it on @p stream too. On failure the point is unchanged. */
gg_status host_point_queue(struct host_point *point, struct gg_stream_impl *stream);
gg_status host_point_wait(struct host_point *point, uint64_t timeout_ns);
gg_status host_point_no_memory(void); /* the error for NULL */

/* ---- the operations: backend.h describes each; host.c sets those that do not exist to NULL ---- */

#define OP(slot, need) __typeof__(*((struct gg_backend_ops *)0)->slot) host_##slot;
#include <gpuglue/ops.def>
#undef OP

#endif
