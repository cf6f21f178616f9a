/* sim_engine.h: the vendor-neutral engine of every simulated library: devices, memory,
 * queues, events. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Engine functions return 0, one of these, or an injected vendor code (positive). */
enum sim_error {
    SIM_OK = 0,
    SIM_INVALID = -1,
    SIM_NO_MEMORY = -2,
    SIM_NOT_READY = -3,
    SIM_BAD_HANDLE = -4,
    SIM_NO_CONTEXT = -5,
    SIM_CONTEXT_DESTROYED = -6,
    SIM_ILLEGAL_ADDRESS = -7,
    SIM_ALREADY_REGISTERED = -8,
    SIM_NOT_REGISTERED = -9,
    SIM_PEER_ENABLED = -10,
    SIM_PEER_DISABLED = -11,
    SIM_UNSUPPORTED = -12,
    SIM_ILLEGAL_STATE = -13,
    SIM_CAPTURE_UNSUPPORTED = -14,
    SIM_CAPTURE_INVALIDATED = -15,
    SIM_CAPTURE_MERGE = -16,
    SIM_CAPTURE_UNMATCHED = -17,
    SIM_CAPTURE_UNJOINED = -18,
    SIM_CAPTURE_ISOLATION = -19,
    SIM_CAPTURE_IMPLICIT = -20,
    SIM_CAPTURED_EVENT = -21,
    SIM_CAPTURE_WRONG_THREAD = -22,
    SIM_NO_DEVICE = -23,
    SIM_NOT_FOUND = -24,
    SIM_INVALID_IMAGE = -25,
    SIM_UPDATE_FAILURE = -26
};

enum { SIM_MAX_DEVICES = 16, SIM_ALIGNMENT = 512 };

/* ---- sim_table.c: handles that can be checked after their object was destroyed */

struct sim_slot { /* the first member of every object that has a client handle */
    struct sim_slot *next_free;
    bool alive, attempted, internal; /* attempted: a destroy was called, even if it failed */
};

struct sim_table {
    const char *kind;
    size_t stride, capacity, used, alive;
    char *base;
    struct sim_slot *free;
};

extern struct sim_table sim_contexts, sim_queues, sim_events, sim_pools, sim_graphs, sim_execs,
    sim_modules, sim_functions;

void *sim_table_take(struct sim_table *table); /* zeroed; reuses the newest freed handle */
void *sim_table_find(struct sim_table *table, const void *handle); /* NULL unless alive */
void *sim_table_next(struct sim_table *table, const void *previous);
void sim_table_drop(struct sim_table *table, void *object);
size_t sim_table_unattempted(const struct sim_table *table);

/* ---- sim_device.c: devices and global state */

struct sim_device {
    int ordinal;       /* after the visibility mask */
    int physical;      /* before the visibility mask */
    uint64_t base;     /* client addresses: reserved, never accessible */
    char *alias;       /* the engine's mapping of the same pages, with access */
    size_t size, used; /* bytes of device memory */
    int file;          /* descriptor of the file that backs these pages */
    struct sim_context *primary;
    struct sim_pool *default_pool, *current_pool;
};

enum sim_peers {
    SIM_PEERS_APART, /* no device can access another */
    SIM_PEERS_REACH,
    SIM_PEERS_LOSE /* peer access is reported, but the copied bytes do not arrive */
};

struct sim_machine {
    pthread_mutex_t lock;   /* everything below, and all objects */
    pthread_cond_t changed; /* a command finished, or hold was switched */
    struct sim_device devices[SIM_MAX_DEVICES];
    int device_count;
    uint64_t base, limit;          /* client addresses of all devices */
    uint64_t far_base;             /* not 0: devices start here, and nothing is mapped */
    uint64_t clock_hz;             /* clock rate of SIM_TIME */
    _Atomic(uint64_t) clock_start; /* 0: no timestamp so far */
    uint64_t peers;                /* enum sim_peers */
    bool host_pointers;            /* devices access registered memory at its host address */
    bool serial_host;              /* the host functions of all queues run one at a time */
    bool joins_idle; /* a queue that joined a capture and has no work there need not join back */
    uint64_t random;
    uint64_t serial;
    bool hold;
    int room, waiting; /* of sim_room and sim_waiting */
    bool room_blocks;  /* of sim_room_blocks */
};

extern struct sim_machine sim;

int sim_init(const char *visible); /* visible: the vendor's mask variable, NULL when unset */
bool sim_initialised(void);
bool sim_forked(void);   /* true in a forked child of an initialised process */
bool sim_finished(void); /* true after the exit handlers have run */
void sim_finish(void);
uint64_t sim_random(uint64_t below);
uint64_t sim_serial(void);
uint64_t sim_setting(const char *name, uint64_t otherwise);

/* ---- sim_fault.c: counts, faults, hangs, crashes */

int sim_fault(const char *name); /* counts the call and returns the injected code, or 0 */

/* ---- sim_report.c */

void sim_report(void);
void sim_fault_each(void (*visit)(const char *name, int calls, void *data), void *data);

/* ---- sim_command.c: work as a graph of dependencies */

typedef void (*sim_host_function)(void *);

struct sim_region { /* bytes; client addresses */
    uint64_t dst, src;
    size_t width, height, depth;
    size_t dst_pitch, src_pitch, dst_slice, src_slice;
};

struct sim_fill {
    uint64_t dst;
    size_t pitch, width, height; /* width in elements */
    uint32_t value;
    unsigned element; /* 1, 2 or 4 bytes */
};

enum sim_compare { SIM_GREATER_EQUAL, SIM_EQUAL, SIM_ANY_BIT, SIM_NOR };

struct sim_word {
    uint64_t address, value;
    unsigned bytes;
    enum sim_compare compare;
};

enum sim_kind { SIM_MARK, SIM_COPY, SIM_FILL, SIM_HOST, SIM_WRITE, SIM_WAIT, SIM_FREE, SIM_TIME };

/* What executes a command. The engine does not schedule by it; sim_record.c writes it down. */
enum sim_unit { SIM_NO_UNIT, SIM_COMPUTE_UNIT, SIM_COPY_UNIT };

struct sim_work {
    enum sim_kind kind;
    enum sim_unit unit;
    bool dst_tracked, src_tracked; /* that end was in an allocation when the work was queued */
    union {
        struct sim_region copy;
        struct sim_fill fill;
        struct sim_word word;
        struct {
            sim_host_function run;
            void *data;
            bool kernel; /* else the client's function */
        } host;
        struct {
            uint64_t address, serial;
        } free;
    };
};

enum sim_state { SIM_HELD, SIM_RELEASED, SIM_RUNNING, SIM_DONE };

struct sim_command {
    struct sim_work work;
    struct sim_command *next, *previous; /* all unfinished commands, oldest first */
    struct sim_command *chain;           /* link of the ready list, or of a graph traversal */
    struct sim_command **needs, **feeds; /* dependencies; dependents */
    size_t need_count, feed_count, waiting;
    struct sim_context *context;
    uint64_t serial, time_ns, queue_id; /* queue_id: 0 for a mark of the context */
    unsigned references, polls;         /* polls: queries that will still return "not ready" */
    enum sim_state state;
    bool blocking, tail; /* blocking: ordered with the null stream; tail: last of its queue */
    bool loose;          /* of an unordered list: may run before earlier ready commands */
};

extern struct sim_command *sim_oldest;

struct sim_command *sim_command_new(struct sim_context *context, const struct sim_work *work);
int sim_command_need(struct sim_command *command, struct sim_command *earlier);
void sim_command_submit(struct sim_command *command);
void sim_command_finish(struct sim_command *command);
void sim_command_demand(struct sim_command *command);
void sim_command_drop(struct sim_command *command);
bool sim_command_busy(const struct sim_command *command);
bool sim_command_poll(struct sim_command *command); /* a query: true when done */
/* Call it at the end of each driver function, without the lock. Sleeps briefly if this thread's last queries all found unfinished work,
 * so that the worker threads can run. */
void sim_pause_poll(int status);
void sim_command_wait(struct sim_command *command);
/* Wait for what lost devices were doing when they were lost, so that the client may unmap memory. */
void sim_command_wait_lost(void);
void sim_wait_device(const struct sim_device *device); /* NULL: all devices */
void sim_wait_context(const struct sim_context *context);

/* ---- sim_record.c */

void sim_record(const struct sim_command *command); /* it is about to be queued */

/* ---- sim_worker.c: the threads that run commands */

void sim_worker_ready(struct sim_command *command);
void sim_worker_wake(void);
void sim_worker_retry(void); /* commands that wait for a value in memory check it again */
int sim_worker_start(void);
extern _Thread_local bool sim_in_host_function;

/* ---- sim_ops.c: the effect of a command */

int sim_run(struct sim_command *command); /* without the lock; SIM_NOT_READY: call it again */
size_t sim_region_span(size_t width, size_t height, size_t depth, size_t pitch, size_t slice);

/* ---- sim_context.c */

struct sim_queue;

enum { SIM_LIMITS = 7 };

struct sim_context {
    struct sim_slot slot;
    struct sim_device *device;
    struct sim_queue *legacy;
    uint64_t id;
    unsigned references, flags, peers;
    int lost; /* sticky error */
    bool primary;
    size_t limits[SIM_LIMITS];
};

int sim_context_create(struct sim_device *device, bool primary, struct sim_context **out);
void sim_context_destroy(struct sim_context *context);
struct sim_context *sim_context_top(void); /* may be destroyed; NULL if the stack is empty */
int sim_context_push(struct sim_context *context);
struct sim_context *sim_context_pop(void);
int sim_context_replace(struct sim_context *context);
int sim_context_get_limit(struct sim_context *context, unsigned limit, size_t *value);
int sim_context_set_limit(struct sim_context *context, unsigned limit, size_t value);
int sim_context_check(struct sim_context *context); /* 0 if it is alive and not lost */
void sim_context_lose(struct sim_context *context, int code);

/* ---- sim_memory.c */

enum sim_memory { SIM_DEVICE, SIM_PINNED, SIM_MANAGED, SIM_REGISTERED, SIM_MEMORY_KINDS };

struct sim_alloc {
    uint64_t base, serial;
    size_t size, reserved;
    size_t reach; /* of queued work: the largest size that the memory had, as that of a pool may be reused smaller */
    enum sim_memory kind;
    struct sim_device *device;
    struct sim_context *context;
    struct sim_pool *pool;
    struct sim_queue *freed_on; /* a stream-ordered free is queued */
    uint64_t freed_queue_id;
    unsigned flags;
    bool attempted;
    uint64_t imported; /* the client's address of another process's memory; 0: not imported */
};

struct sim_block {
    struct sim_context *context;
    struct sim_pool *pool;
    size_t size;
    unsigned flags;
};

int sim_memory_device(struct sim_device *device, const struct sim_block *block, uint64_t *out);
int sim_memory_host(enum sim_memory kind, const struct sim_block *block, uint64_t *out);
int sim_memory_register(uint64_t address, const struct sim_block *block);
struct sim_alloc *sim_memory_find(uint64_t address);
/* The device's address of pinned memory. */
uint64_t sim_memory_on_device(const struct sim_alloc *alloc, uint64_t address);
/* NULL unless one allocation contains the whole range. */
struct sim_alloc *sim_memory_range(uint64_t address, size_t size);
/* The same for work that runs now, and that may be of an earlier user of the memory. */
struct sim_alloc *sim_memory_reach(uint64_t address, size_t size);
/* True where all or none of the range is registered. An H200 refuses a copy that is partly outside
 * registered memory. */
bool sim_memory_copyable(uint64_t address, size_t size);
bool sim_memory_reserved(uint64_t address); /* in a device's address range, allocated or not */
char *sim_memory_alias(const struct sim_alloc *alloc, uint64_t address);
void sim_memory_release(struct sim_alloc *alloc);
void sim_memory_release_context(const struct sim_context *context);
struct sim_alloc *sim_memory_reuse(const struct sim_pool *pool, const struct sim_queue *queue,
                                   size_t size);
void sim_memory_forget_pool(const struct sim_pool *pool);
size_t sim_memory_count(enum sim_memory kind, bool unattempted_only);

/* ---- sim_pool.c */

enum { SIM_POOL_ATTRIBUTES = 32 };

struct sim_pool {
    struct sim_slot slot;
    struct sim_device *device;
    bool host;
    uint64_t used, used_high, reserved, reserved_high;
    uint64_t values[SIM_POOL_ATTRIBUTES];
    unsigned access; /* one bit per device */
};

int sim_pool_create(struct sim_device *device, bool host, struct sim_pool **out);
void sim_pool_destroy(struct sim_pool *pool);
int sim_pool_alloc(struct sim_pool *pool, struct sim_queue *queue, size_t size, uint64_t *out);
void sim_pool_account(struct sim_pool *pool, int64_t change);
int sim_pool_free(uint64_t address, struct sim_queue *queue);

/* ---- sim_queue.c */

struct sim_queue {
    struct sim_slot slot;
    struct sim_context *context;
    struct sim_command *last;
    struct sim_capture *capture;
    uint64_t id;
    int priority;
    bool nonblocking, legacy, unjoined;
    /* For command lists. Only barriers order the commands of a loose list. */
    bool loose;
    bool copies_only, offloads; /* offloads: copies run on a copy unit */
    struct sim_command *barrier, **open;
    size_t open_count, open_room;
    unsigned threads; /* threads that are in a call on it */
};

int sim_queue_create(struct sim_context *context, bool nonblocking, int priority,
                     struct sim_queue **out);
void sim_queue_destroy(struct sim_queue *queue);
int sim_queue_per_thread(struct sim_context *context, struct sim_queue **out);
int sim_queue_submit(struct sim_queue *queue, const struct sim_work *work);
int sim_queue_submit_uncaptured(struct sim_queue *queue, const struct sim_work *work);
int sim_queue_mark(struct sim_queue *queue, struct sim_command *after, struct sim_command **out);
int sim_queue_mark_context(struct sim_context *context, struct sim_command *after,
                           struct sim_command **out);
int sim_queue_query(struct sim_queue *queue);
void sim_wait_for_others_room(void); /* of sim_room_blocks */
int sim_queue_wait(struct sim_queue *queue);

/* ---- sim_event.c */

struct sim_event {
    struct sim_slot slot;
    struct sim_context *context;
    struct sim_command *record;
    uint64_t capture_id;
    struct sim_queue *captured_on, *recorded_on;
    uint64_t recorded_id; /* of recorded_on, whose handle may be reused */
    bool timing, blocking;
    /* For two-state events: */
    struct sim_pool *pool;
    struct sim_command *signal; /* the last signal that was queued */
    uint64_t state;
    unsigned index;
};

int sim_event_create(struct sim_context *context, bool timing, struct sim_event **out);
void sim_event_destroy(struct sim_event *event);
int sim_event_record(struct sim_event *event, struct sim_queue *queue, bool external);
int sim_event_record_context(struct sim_event *event, struct sim_context *context);
int sim_event_wait_on(struct sim_queue *queue, struct sim_event *event);
int sim_event_query(struct sim_event *event);
int sim_event_wait(struct sim_event *event);
int sim_event_elapsed(const struct sim_event *start, const struct sim_event *stop, float *ms);

/* ---- sim_list.c: command lists, in order or not, and two-state events */

struct sim_append {
    struct sim_work work;
    struct sim_event *signal; /* set after the work; may be NULL */
    struct sim_event **waits; /* the work starts after they are set */
    size_t wait_count;
    bool barrier; /* later work waits for it; it waits for earlier work unless it has waits */
};

void sim_list_append(struct sim_queue *list, const struct sim_append *append);
bool sim_list_poll(struct sim_queue *list);
int sim_list_wait(struct sim_queue *list, uint64_t timeout_ns);
bool sim_any_lost(void); /* whether a device is lost; sim.lock is held */
void sim_list_destroy(struct sim_queue *list);
void sim_flag_set(struct sim_event *event);
void sim_flag_reset(struct sim_event *event);
int sim_flag_query(struct sim_event *event);
int sim_flag_wait(struct sim_event *event, uint64_t timeout_ns);
void sim_flag_destroy(struct sim_event *event);

/* ---- sim_capture.c */

enum sim_capture_mode { SIM_CAPTURE_GLOBAL, SIM_CAPTURE_THREAD, SIM_CAPTURE_RELAXED };

struct sim_graph {
    struct sim_slot slot;
    struct sim_work *work; /* in capture order, which respects every dependency */
    size_t count;
    /* For command lists: */
    bool copies_only;         /* as the list that was captured */
    struct sim_graph *source; /* of an executable graph */
    size_t copies;            /* executable graphs of this one */
    struct sim_command *last; /* of the last launch */
};

struct sim_capture {
    struct sim_capture *next;
    struct sim_graph *graph;
    struct sim_queue *origin;
    uint64_t id;
    unsigned long thread;
    enum sim_capture_mode mode;
    bool invalid;
    bool left; /* its end has failed and left the queues captured */
};

extern _Thread_local enum sim_capture_mode sim_capture_thread_mode;

int sim_capture_begin(struct sim_queue *queue, enum sim_capture_mode mode);
/* @p leave: after a failure the queues remain captured, until the first one is destroyed. */
int sim_capture_end(struct sim_queue *queue, bool leave, struct sim_graph **out);
int sim_capture_work(struct sim_queue *queue, const struct sim_work *work);
int sim_capture_wait(struct sim_queue *queue, struct sim_event *event);
/* For a call that is unsafe in a capture: invalidates the captures that forbid it. */
int sim_capture_unsafe(void);
int sim_capture_refuse(struct sim_queue *queue); /* a query or wait of a capturing queue */
/* A call for a whole context, or for all (NULL): invalidates their captures, whatever the modes. */
int sim_capture_refuse_all(const struct sim_context *context);
int sim_capture_implicit(struct sim_context *context); /* null-stream work during a capture */
bool sim_capture_beside(struct sim_context *context);  /* whether there is one */
void sim_capture_forget(struct sim_queue *queue);
struct sim_capture *sim_capture_find(uint64_t id);
int sim_graph_add(struct sim_graph *graph, const struct sim_work *work);
int sim_graph_copy(struct sim_table *table, const struct sim_graph *from, struct sim_graph **out);
int sim_graph_launch(const struct sim_graph *graph, struct sim_queue *queue);
/* Replace the work of an executable graph by that of a graph of the same shape. @p partly: what is before the first
 * difference is replaced even so. */
int sim_graph_update(struct sim_graph *exec, const struct sim_graph *graph, bool partly);
void sim_graph_destroy(struct sim_table *table, struct sim_graph *graph);

#endif
