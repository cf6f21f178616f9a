/* The vendor-neutral machine behind every simulated library: devices, memory, queues, events. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Engine functions answer 0, one of these, or (positive) a vendor's own code that was injected. */
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
    SIM_INVALID_IMAGE = -25
};

enum { SIM_MAX_DEVICES = 16, SIM_ALIGNMENT = 512 };

/* ---- sim_table.c: handles that can be checked after their object is gone */

struct sim_slot { /* first member of every object that a client holds a handle to */
    struct sim_slot *next_free;
    bool alive, attempted, internal; /* attempted: a destroy was called, whatever it answered */
};

struct sim_table {
    const char *kind;
    size_t stride, capacity, used, alive;
    char *base;
    struct sim_slot *free;
};

extern struct sim_table sim_contexts, sim_queues, sim_events, sim_pools, sim_graphs, sim_execs,
    sim_modules, sim_functions;

void *sim_table_take(struct sim_table *table); /* zeroed; newest freed handle first */
void *sim_table_find(struct sim_table *table, const void *handle); /* NULL unless alive */
void *sim_table_next(struct sim_table *table, const void *previous);
void sim_table_drop(struct sim_table *table, void *object);
size_t sim_table_unattempted(const struct sim_table *table);

/* ---- sim_device.c: the machine */

struct sim_device {
    int ordinal;       /* as the client sees it */
    int physical;      /* before the visibility mask */
    uint64_t base;     /* client addresses: reserved, never accessible */
    char *alias;       /* the same pages, readable and writable by the engine only */
    size_t size, used; /* bytes of device memory */
    int file;          /* which they are */
    struct sim_context *primary;
    struct sim_pool *default_pool, *current_pool;
};

enum sim_peers {
    SIM_PEERS_APART, /* no device reaches another */
    SIM_PEERS_REACH,
    SIM_PEERS_LOSE /* they say that they do, and what is sent does not arrive */
};

struct sim_machine {
    pthread_mutex_t lock;   /* everything below, and all objects */
    pthread_cond_t changed; /* a command finished, or hold was switched */
    struct sim_device devices[SIM_MAX_DEVICES];
    int device_count;
    uint64_t base, limit; /* client addresses of all devices */
    uint64_t far_base;    /* not 0: there, and nothing is mapped (beyond what a process may map) */
    uint64_t clock_hz;    /* of SIM_TIME */
    _Atomic(uint64_t) clock_start; /* 0: no stamp so far */
    uint64_t peers;                /* enum sim_peers */
    uint64_t random;
    uint64_t serial;
    bool hold;
};

extern struct sim_machine sim;

int sim_init(const char *visible); /* visible: the vendor's mask variable, NULL when unset */
bool sim_initialised(void);
bool sim_forked(void);   /* in a child of a process that had initialised */
bool sim_finished(void); /* the process is past its exit handlers */
void sim_finish(void);
uint64_t sim_random(uint64_t below);
uint64_t sim_serial(void);
uint64_t sim_setting(const char *name, uint64_t otherwise);

/* ---- sim_fault.c: counts, faults, hangs, crashes */

int sim_fault(const char *name); /* counts the call; the injected code, or 0 */

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

struct sim_work {
    enum sim_kind kind;
    bool dst_tracked, src_tracked; /* that end was in a known allocation when it was queued */
    union {
        struct sim_region copy;
        struct sim_fill fill;
        struct sim_word word;
        struct {
            sim_host_function run;
            void *data;
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
    struct sim_command *chain;           /* a worker's or a walk's list */
    struct sim_command **needs, **feeds; /* must end before it; wait for it */
    size_t need_count, feed_count, waiting;
    struct sim_context *context;
    uint64_t serial, time_ns;
    unsigned references, polls; /* polls: queries that still find it held back */
    enum sim_state state;
    bool blocking, tail; /* ordered with the null stream; last of its queue */
    bool loose;          /* of a list without order: may overtake what is ready */
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
void sim_command_wait(struct sim_command *command);
void sim_wait_device(const struct sim_device *device); /* NULL: all devices */
void sim_wait_context(const struct sim_context *context);

/* ---- sim_worker.c: who runs it */

void sim_worker_ready(struct sim_command *command);
void sim_worker_wake(void);
void sim_worker_retry(void); /* whoever waits for a value in memory looks again */
int sim_worker_start(void);
extern _Thread_local bool sim_in_host_function;

/* ---- sim_ops.c: what it does */

int sim_run(struct sim_command *command); /* without the lock; SIM_NOT_READY: try again later */
size_t sim_region_span(size_t width, size_t height, size_t depth, size_t pitch, size_t slice);

/* ---- sim_context.c */

struct sim_queue;

struct sim_context {
    struct sim_slot slot;
    struct sim_device *device;
    struct sim_queue *legacy;
    uint64_t id;
    unsigned references, flags, peers;
    int lost; /* sticky error */
    bool primary;
};

int sim_context_create(struct sim_device *device, bool primary, struct sim_context **out);
void sim_context_destroy(struct sim_context *context);
struct sim_context *sim_context_top(void); /* may be a destroyed one; NULL when there is none */
int sim_context_push(struct sim_context *context);
struct sim_context *sim_context_pop(void);
int sim_context_replace(struct sim_context *context);
int sim_context_check(struct sim_context *context); /* alive and not lost */
void sim_context_lose(struct sim_context *context, int code);

/* ---- sim_memory.c */

enum sim_memory { SIM_DEVICE, SIM_PINNED, SIM_MANAGED, SIM_REGISTERED, SIM_MEMORY_KINDS };

struct sim_alloc {
    uint64_t base, serial;
    size_t size, reserved;
    enum sim_memory kind;
    struct sim_device *device;
    struct sim_context *context;
    struct sim_pool *pool;
    struct sim_queue *freed_on; /* a stream-ordered free is queued */
    uint64_t freed_queue_id;
    unsigned flags;
    bool attempted;
    uint64_t imported; /* the client's address in pages of another process; 0: its own memory */
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
struct sim_alloc *sim_memory_range(uint64_t address, size_t size); /* wholly inside one */
/* Host memory that a copy may name: all of it known, or nothing (an H200 refuses what leaves registered memory). */
bool sim_memory_copyable(uint64_t address, size_t size);
bool sim_memory_reserved(uint64_t address); /* a device address, allocated or not */
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
    unsigned access; /* bit per device */
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
    /* Of lists: in a loose one only barriers order. */
    bool loose;
    struct sim_command *barrier, **open;
    size_t open_count, open_room;
    unsigned threads; /* that are in a call on it */
};

int sim_queue_create(struct sim_context *context, bool nonblocking, int priority,
                     struct sim_queue **out);
void sim_queue_destroy(struct sim_queue *queue);
int sim_queue_per_thread(struct sim_context *context, struct sim_queue **out);
int sim_queue_submit(struct sim_queue *queue, const struct sim_work *work);
int sim_queue_mark(struct sim_queue *queue, struct sim_command *after, struct sim_command **out);
int sim_queue_mark_context(struct sim_context *context, struct sim_command *after,
                           struct sim_command **out);
int sim_queue_query(struct sim_queue *queue);
int sim_queue_wait(struct sim_queue *queue);

/* ---- sim_event.c */

struct sim_event {
    struct sim_slot slot;
    struct sim_context *context;
    struct sim_command *record;
    uint64_t capture_id;
    struct sim_queue *captured_on;
    bool timing, blocking;
    /* Of two-state events: */
    struct sim_pool *pool;
    struct sim_command *signal; /* the last that was queued */
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

/* ---- sim_list.c: lists that keep an order only where they say so, and two-state events */

struct sim_append {
    struct sim_work work;
    struct sim_event *signal; /* set once the work is done; may be NULL */
    struct sim_event **waits; /* set before the work begins */
    size_t wait_count;
    bool barrier; /* what comes later waits for it, and it for what came before unless it has waits */
};

void sim_list_append(struct sim_queue *list, const struct sim_append *append);
bool sim_list_poll(struct sim_queue *list);
int sim_list_wait(struct sim_queue *list, uint64_t timeout_ns);
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
    struct sim_work *work; /* in an order that keeps every dependency */
    size_t count;
};

struct sim_capture {
    struct sim_capture *next;
    struct sim_graph *graph;
    struct sim_queue *origin;
    uint64_t id;
    unsigned long thread;
    enum sim_capture_mode mode;
    bool invalid;
};

extern _Thread_local enum sim_capture_mode sim_capture_thread_mode;

int sim_capture_begin(struct sim_queue *queue, enum sim_capture_mode mode);
int sim_capture_end(struct sim_queue *queue, struct sim_graph **out);
int sim_capture_work(struct sim_queue *queue, const struct sim_work *work);
int sim_capture_wait(struct sim_queue *queue, struct sim_event *event);
int sim_capture_unsafe(void); /* a call that no capture allows; invalidates those that forbid it */
int sim_capture_refuse(struct sim_queue *queue);       /* a query or wait of this very queue */
int sim_capture_implicit(struct sim_context *context); /* null-stream work beside a capture */
bool sim_capture_beside(struct sim_context *context);  /* whether there is one; disturbs nothing */
void sim_capture_forget(struct sim_queue *queue);
struct sim_capture *sim_capture_find(uint64_t id);
int sim_graph_add(struct sim_graph *graph, const struct sim_work *work);
int sim_graph_copy(struct sim_table *table, const struct sim_graph *from, struct sim_graph **out);
int sim_graph_launch(const struct sim_graph *graph, struct sim_queue *queue);
void sim_graph_destroy(struct sim_table *table, struct sim_graph *graph);

#endif
