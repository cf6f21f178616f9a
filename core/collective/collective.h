/* collective.h: the part of a communicator that queues operations on a device. */
#ifndef GPUGLUE_COLLECTIVE_H
#define GPUGLUE_COLLECTIVE_H

#include "base/error.h"
#include "comm/comm.h"
#include "memory/memory.h"
#include "runtime/stream.h"

#define COLLECTIVE_KINDS 64 /* of sizes: powers of two */
#define COLLECTIVE_OPERATIONS 11
#define COLLECTIVE_MARKS 1024          /* at most; more operations than a stream queues */
#define COLLECTIVE_SPARES 32           /* events that are kept for marks */
#define COLLECTIVE_CHECK_NS 100000000u /* between two checks of the watcher */

/* An operation that was checked, and what it uses. */
struct collective_item {
    struct gg_comm_task task;
    gg_memory *dst, *src; /* either may be NULL */
    gg_stream *stream;    /* of a group: a reference, or NULL; else borrowed */
    size_t dst_nbytes, src_nbytes;
};

/* A stream with work of the communicator. */
struct collective_use {
    gg_stream *stream; /* a reference as of a use */
    uint64_t ticket;   /* of its last work */
    uint32_t calls;    /* that queue work now */
};

/* Work of a stream, one or more operations, whose end is seen. */
struct collective_mark {
    gg_stream *stream; /* a reference as of a use */
    uint64_t ticket;
    struct gg_event_impl *event; /* behind it; NULL: more may follow, unless */
    bool recording;              /* a thread records the event */
    uint32_t operations;
    uint64_t collective; /* as comm_rank has it, with them; 0: unknown */
};

/* What the watcher has seen of another rank. */
struct collective_other {
    uint32_t beats;
    uint32_t answers;   /* beats since this rank asks */
    uint64_t silent_ns; /* without a beat, while this rank looked */
};

/* What a launch of a graph queues: the other ranks see it as if it were queued one by one. */
struct collective_graph {
    struct ggi_collective *self; /* a reference */
    uint64_t collective;
    struct {
        uint32_t sends, receives;
    } with[]; /* of each rank */
};

struct ggi_collective {
    _Atomic(int) refs;             /* of the communicator, graphs, and threads in the library */
    struct gg_comm *comm;          /* until it is closing */
    const struct gg_comm_ops *ops; /* NULL: staged */
    struct gg_device *device;
    uint64_t watcher; /* its bits in gg_stream::watchers */
    uint32_t watcher_index;
    struct gg_comm_impl *impl; /* NULL: staged */
    char transport[16], reason[400];
    const char *path; /* of the library */
    int32_t version;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    struct collective_use *used;
    uint32_t used_count, used_room;
    struct collective_mark *marks; /* of unfinished work, in the order of the calls */
    uint32_t mark_count, mark_room;
    struct gg_event_impl *spares[COLLECTIVE_SPARES]; /* to be recorded again */
    uint32_t spare_count;
    bool moved;                  /* marks were removed since the watcher has looked at them */
    struct gg_event_impl *start; /* recorded before work that was queued while none was unfinished, */
    uint64_t started;            /* then */
    bool starts;                 /* it is not complete */
    atomic_bool messages;        /* some of its work was messages */
    uint64_t marked;             /* when an event was recorded last */
    bool closing, ended;         /* there will be no more work; the watcher has ended */
    bool released;               /* the watcher owns the communicator */
    bool hangs;                  /* the library's abort does not return; of the watcher */
    struct ggi_kept_error failure; /* of `failed` */
    atomic_bool failed;            /* its work was ended; set by the watcher */
    _Atomic(int) calls;            /* calls of the library that have not returned */
    _Atomic(int) guarded; /* operations whose call may connect ranks; each counts as two calls */
    atomic_bool overdue;  /* the timeout of such a call has passed */
    _Atomic(uint32_t) returned; /* operations whose call has returned, */
    uint32_t returned_before;   /* and how many the watcher has seen; */
    bool waits;                 /* it has seen that one waits, so it does not ask the driver */
    atomic_bool untracked;      /* other code's graph has work of it */
    uint64_t pending_since;     /* 0: nothing is unfinished. Of the watcher, as are: */
    uint64_t pending_collective;
    uint64_t pending_others;
    uint64_t closed_since;           /* another rank has closed while work is unfinished; or 0 */
    uint64_t looked;                 /* when it has looked at the others last */
    struct collective_other *others; /* of all ranks; during the creation its caller's */
    _Atomic(int) graphs;             /* with work of it, of gpuglue */
    uint64_t capture; /* the last with work of it; 0: none. Under graphs_lock, as is: */
    struct collective_graph *graph; /* what is captured in it; NULL: the graph is other code's */
    /* Of the caller, as is what follows: sizes of operations that have succeeded before. */
    uint64_t connected[COLLECTIVE_OPERATIONS + 1];
    uint8_t peers[2][GG_COMM_SIZE_MAX / 8]; /* ranks that were sent to, and received from */
    struct collective_item *group;
    size_t group_count, group_room;
    bool grouping;
    pthread_t group_thread;
};

static inline bool ggi_collective_has_library(const struct gg_comm *comm)
{
    return comm->collective && comm->collective->impl;
}
static inline bool collective_reduces(gg_comm_operation operation)
{
    return operation == GG_COMM_ALL_REDUCE || operation == GG_COMM_REDUCE ||
           operation == GG_COMM_REDUCE_SCATTER;
}
static inline bool collective_is_message(gg_comm_operation operation)
{
    return operation >= GG_COMM_SEND;
}
/* Bytes of what is counted. */
static inline size_t collective_unit(const struct gg_comm_task *task)
{
    const bool typed = collective_reduces(task->operation) && task->type < COMM_TYPES;
    return typed ? ggi_comm_type_sizes[task->type] : 1;
}

/* Whether two pieces of memory have a byte in common. */
static inline bool collective_overlap(const void *a, size_t a_nbytes, const void *b, size_t b_nbytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_nbytes && b_nbytes && x < y + b_nbytes && y < x + a_nbytes;
}

/* ---- state.c ---- */

/* A communicator's part, without a library so far. NULL without memory. */
struct ggi_collective *ggi_collective_new(struct gg_comm *comm, struct gg_device *device);
/* May be called with any lock held. */
void ggi_collective_release(struct ggi_collective *self);
/* Before a call of a communicator with a library; ggi_comm_leave ends it. */
gg_status ggi_collective_enter(struct gg_comm *comm, const char *call);
/* Mark ranks whose process has ended. True if the communicator has failed. */
bool ggi_collective_find_ended(struct gg_comm *comm);
/* Mark ranks that have finished without the operations that this rank has queued. True: there are some. */
bool ggi_collective_find_finished(struct gg_comm *comm);
/* Whether @p rank has not queued a message that this rank has queued. */
bool ggi_collective_lacks_message(const struct gg_comm *comm, int32_t rank);
/* Whether @p rank has queued fewer than @p collective operations, or a message of it is missing. */
bool ggi_collective_is_behind(const struct gg_comm *comm, int32_t rank, uint64_t collective);
/* After the timeout: mark the ranks that have queued fewer than @p collective operations, else those whose messages are
 * missing. False: there are none. */
bool ggi_collective_mark_late(struct gg_comm *comm, uint64_t collective);
/* After a failure of the library: the failure of another rank that explains it, else @p status, which was recorded. */
gg_status ggi_collective_broken(struct gg_comm *comm, gg_status status);

/* ---- library.c ---- */

/* The backend's library. GG_ERR_UNSUPPORTED, with the reason: there is none, or it cannot be used. */
gg_status ggi_collective_library(struct gg_device *device, const char **path, int32_t *version);

/* ---- behind.c ---- */

/* Memory for what follows, once the size is known. */
gg_status ggi_collective_see_others(struct gg_comm *comm);
/* At each check: show the others what this rank has completed, and count their checks. */
void ggi_collective_look(struct gg_comm *comm);
/* Ask the others for beats, or no longer. */
void ggi_collective_ask(struct gg_comm *comm, bool asks);
/* Whether what is in the segment of each rank with unfinished work is newer than the question, or the rank does not answer. */
bool ggi_collective_answered(const struct gg_comm *comm);
/* Mark the ranks that are behind: whose process does not answer, whose device has not begun its work, or which have not queued
 * what this rank waits for; and if @p all_late, those that have not completed what others have. False: there are none. */
bool ggi_collective_mark_behind(struct gg_comm *comm, bool all_late);
/* At each check after the timeout of a call that connects ranks: declare the failure once the others have answered. Without what the
 * others answer, if not @p knows, declare it at once. */
void ggi_collective_judge_call(struct gg_comm *comm, bool knows);

/* ---- watch.c ---- */

/* Begin to watch a communicator whose part of the library exists. */
gg_status ggi_collective_watch(struct gg_comm *comm);

/* ---- work.c ---- */

/* Around what queues work on a stream: the watcher knows of the work from the begin on. Fails if the communicator has failed or
 * is closed; then no end follows. @p captured: it is not executed now. */
gg_status ggi_collective_begin(struct ggi_collective *self, gg_stream *stream, bool captured);
/* The work has this ticket; 0: none was queued, or it was captured. Returns @p status, or the failure that has ended the work. */
gg_status ggi_collective_end(struct ggi_collective *self, gg_stream *stream, uint64_t ticket,
                             gg_status status);
/* Work will be captured on the stream. *counts: its graph announces each launch; else the graph is other code's. */
gg_status ggi_collective_captured(struct ggi_collective *self, gg_stream *stream, bool *counts);
/* The other ranks see what this one queues. @p by: 1 before; -1 after a failure. */
void ggi_collective_count(struct gg_comm *comm, const struct collective_item *items, size_t count,
                          int32_t by);
/* They see what was captured at each launch of the graph. */
void ggi_collective_count_captured(struct gg_comm *comm, const struct collective_item *items,
                                   size_t count);
static inline bool ggi_collective_has_graphs(const struct ggi_collective *self)
{
    return atomic_load(&self->graphs) > 0 || atomic_load(&self->untracked);
}
/* Whether work is unfinished. With @p oldest: *moved, if the oldest was completed since the last such call; and *oldest, the
 * number of operations in the oldest mark, whose end is only known for all of them together. */
bool ggi_collective_pending(struct ggi_collective *self, bool *moved, uint32_t *oldest);
/* Whether the driver answers a query of unfinished work by an error. */
bool ggi_collective_queries_fail(struct ggi_collective *self);
/* The next wait for each stream with unfinished work reports the error, and so do calls that queue work. @p leaves_work: as
 * struct ggi_watcher has it. */
void ggi_collective_fail_work(struct ggi_collective *self, const struct ggi_kept_error *error,
                              bool leaves_work);
/* With self->lock held. */
void ggi_collective_forget_work(struct ggi_collective *self);

/* ---- marks.c, with self->lock held ---- */

/* An operation was queued on the stream. Whether the caller is to record an event behind it, without the lock. */
bool ggi_collective_mark(struct ggi_collective *self, gg_stream *stream, uint64_t ticket);
/* Without the lock, since the driver may wait for room in the stream's queue, and the watcher must go on. */
void ggi_collective_record_mark(struct ggi_collective *self, gg_stream *stream, uint64_t ticket);
/* Remove the oldest marks that are complete. False: there are none. */
bool ggi_collective_marks_move(struct ggi_collective *self);
/* The same for a thread that queues work and knows that all before is complete. The driver is not asked. */
void ggi_collective_marks_pass(struct ggi_collective *self);
/* Of how many operations the oldest one is. */
uint32_t ggi_collective_oldest_mark(const struct ggi_collective *self);
void ggi_collective_forget_marks(struct ggi_collective *self);
/* Without the lock: record an event before work, behind which the device has begun it. */
void ggi_collective_record_start(struct ggi_collective *self, gg_stream *stream);

/* ---- guard.c ---- */

/* A call that may wait for other ranks, on a thread of its own. */
struct collective_call {
    gg_status (*run)(struct collective_call *call);
    /* Instead of the caller, which has left before the end: release what run has made. */
    void (*abandoned)(struct collective_call *call);
    struct gg_device *device; /* it is not closed while the call runs */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done, left;
    gg_status status;
    struct ggi_kept_error error;
};
/* Run @p call, the beginning of an allocated struct, and wait for its end: GG_OK, or its error. An interrupt, a failure of the
 * communicator and @p until end the wait; if @p patient, the call is given ten more seconds, in which an abort ends it. *left: it
 * has not returned, and frees itself; else the caller frees it. */
gg_status ggi_collective_guard(struct gg_comm *comm, struct collective_call *call, uint64_t until,
                               bool patient, bool *left);
/* Whether @p call, which no rank waits for, ends within ten seconds, else a message says so; or with @p briefly within 200 ms. If no
 * thread can be started, it runs on this one. */
bool ggi_collective_bounded(struct gg_device *device, struct collective_call *call, bool briefly);

/* ---- run.c ---- */

/* Around operations: what observes calls gets them under one name. Without a @p stream they have no time on the device. */
void ggi_collective_observe_begin(struct gg_device *device, const struct collective_item *items,
                                  size_t count, gg_stream *stream);
void ggi_collective_observe_end(struct gg_device *device, const struct collective_item *items,
                                size_t count, gg_stream *stream, gg_status status);

extern const char *const ggi_collective_names[COLLECTIVE_OPERATIONS];
/* Queue checked operations, all on one stream. */
gg_status ggi_collective_run(struct gg_comm *comm, struct collective_item *items, size_t count,
                             gg_stream *stream);

/* ---- stage.c ---- */

/* Device memory as a side of an operation on the host. */
struct ggi_stage {
    struct comm_stage base;
    gg_memory *memory;
    size_t offset;
    bool writes;
    struct stage_buffers *buffers; /* until finish */
    gg_memory *chunks;             /* while it is attached */
    int32_t blocks;
    size_t block, unit; /* bytes of a block, and of the part of each that is copied at a time */
    size_t current,
        end; /* the unit of the last view, and where that view ended; 0: there was none */
};
struct ggi_stage ggi_stage_of(gg_memory *memory, size_t offset, bool writes);
/* Lock the memory that the ranks share for this rank's device. If that fails, part->reason has the error. */
void ggi_stage_prepare(struct gg_comm *comm, struct ggi_collective *part);

/* ---- staged.c ---- */

/* Run a checked operation. Its memory may be NULL, with the address of memory that the processor can access. */
gg_status ggi_collective_run_staged(struct gg_comm *comm, const struct collective_item *item,
                                    gg_stream *stream);

/* ---- group.c ---- */

/* Whether the calling thread collects a group. */
bool ggi_collective_in_group(const struct ggi_collective *self);
/* Forget a group that was not ended. */
void ggi_collective_group_drop(struct ggi_collective *self);
gg_status ggi_collective_group_add(struct ggi_collective *self, const struct collective_item *item,
                                   gg_stream *stream);

#endif
