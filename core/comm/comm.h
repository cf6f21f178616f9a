/* comm.h: a communicator, and the shared memory through which its ranks exchange data. */
#ifndef GPUGLUE_COMM_H
#define GPUGLUE_COMM_H

#include <gpuglue/comm.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the segment, which all ranks map ---- */

/* Why a rank cannot take part; or, of the communicator alone, COMM_STUCK and COMM_UNCONNECTED: work, or a call of the library, does
 * not end, and no rank is known to be behind. The first failure is kept. */
enum {
    COMM_FINE,
    COMM_ENDED,
    COMM_CLOSED,
    COMM_LATE,
    COMM_ABORTED,
    COMM_BROKEN,
    COMM_STUCK,
    COMM_UNCONNECTED
};

#define COMM_CREATION_FAILED 1
#define COMM_BROKEN_TEXT 320

/* What a rank calls. All ranks compare it in the first round. */
struct comm_call {
    uint32_t operation, type, reduction;
    int32_t root;
    uint64_t nbytes; /* of a block */
    char type_name[GG_COMM_TYPE_NAME_SIZE];
    uint64_t source; /* where the others may read this rank's source; 0: in its chunk. Not compared */
};

/* A word on which other processes wait. */
struct comm_word {
    _Atomic uint32_t value, waiters;
};

struct comm_rank {
    _Alignas(128) struct comm_word round; /* the rounds that this rank has published */
    _Alignas(128) struct comm_word bell;  /* changes when something happens to its messages */
    _Atomic uint32_t closed, lost;        /* lost: COMM_ENDED … COMM_BROKEN */
    /* Of collective operations on the device, which another layer has. */
    _Atomic uint32_t created; /* COMM_CREATION_FAILED: the library cannot create this rank's part */
    _Atomic uint32_t working; /* some of its work may be unfinished */
    _Atomic uint32_t finished; /* its work is complete, and there will be no more */
    _Atomic uint32_t gone;     /* its part is destroyed */
    _Atomic uint32_t ended;    /* its connection is: see link.c */
    _Atomic uint32_t held;     /* its device has not begun its oldest unfinished operation */
    _Atomic uint32_t beats; /* checks of its watcher, each of which updates what is above and below;
                             * and of its creation */
    _Atomic uint32_t asks;  /* it waits for the others' beats, which a link passes on only then */
    _Atomic uint64_t collective; /* how many it has queued, messages excepted */
    _Atomic uint64_t complete;   /* of these, so many at least are complete, */
    _Atomic uint64_t incomplete; /* and one of the first so many is not; 0: unknown */
    struct comm_call call[2];    /* of the round, in its half */
    uint64_t word_at,
        word; /* where this rank's process has a word that the others try to read, and the word */
    int32_t process;
    char sends[GG_COMM_TYPE_NAME_SIZE]; /* the type of the message that it offers */
    char broken[COMM_BROKEN_TEXT];      /* the error of COMM_BROKEN, written before it is */
};

/* Messages from one rank to another. The sender writes `offered`, nbytes, source and `sent`; the receiver the others. */
struct comm_pair {
    _Atomic uint32_t offered, answered, refused, sent, taken;
    _Atomic uint32_t sends, receives; /* on the device: how many the two ranks have queued */
    uint64_t nbytes, source;          /* source: where the receiver may read it; 0: in parts */
};

struct comm_segment {
    _Atomic uint32_t failed;   /* COMM_ENDED … COMM_UNCONNECTED */
    _Atomic uint32_t finished; /* so many ranks are, at least */
    struct comm_rank
        ranks[]; /* then size * size pairs, then per rank four chunks: two for rounds, two for messages */
};

/* ---- a rank's own part ---- */

/* It is unmapped when neither a rank of this process uses it nor a driver that has locked its pages. */
struct comm_mapping {
    _Atomic uint32_t users;
    size_t nbytes;
    void *base;
    _Atomic(struct gg_comm *) parts[]; /* of ranks of one process: what a split leaves for each */
};

struct gg_comm {
    _Atomic uint32_t references;
    _Atomic bool busy; /* a thread is in an operation */
    int32_t rank, size;
    uint32_t generation; /* of the fork in which it was created */
    uint32_t round;      /* that this rank has published */
    int file; /* of the segment; -1 if one process has all ranks. Closing it releases this rank's lock */
    bool local;                   /* all ranks are in this process */
    struct comm_mapping *mapping; /* of the segment */
    _Atomic(uint64_t) timeout_ns;
    uint64_t word; /* what comm_rank::word_at points to */
    bool direct;   /* this rank can read the memory of all others */
    size_t chunk;  /* bytes */
    size_t part;   /* of a chunk that is used; all ranks use the same */
    struct comm_segment *segment;
    struct comm_pair *pairs;
    char *chunks;
    _Atomic(const char *) call; /* the name of the operation, for messages; a watcher reads it */
    char type_name[GG_COMM_TYPE_NAME_SIZE];
    bool external; /* no segment connects the ranks */
    struct comm_link *link; /* NULL; or the ranks are on several machines, and each has a segment of its own */
    void (*sync)(struct gg_comm *comm); /* of the link, or NULL */
    /* What core/collective adds: NULL, or its part, and the function that takes over the last reference. */
    struct ggi_collective *collective;
    void (*close)(struct gg_comm *comm);
    struct ggi_comm_staging
        *staging; /* likewise: NULL, or buffers of comm_stage, and the function that frees them */
    void (*free_staging)(struct ggi_comm_staging *staging);
};

/* ---- what an operation reads and writes ---- */

/* A part of each block, of which block b's is at data + b * pitch. */
struct comm_view {
    char *data;
    size_t pitch;
};
/* Parts of some blocks, one part every @p pitch bytes of the segment's chunks. */
struct comm_parts {
    char *data;
    size_t pitch;
    size_t at, nbytes; /* of each block */
    int32_t blocks;
};
/* Blocks that the processor cannot access. They are behind buffers, of which views are requested in ascending order, each valid until
 * the next; or the device copies from and to the segment itself. */
struct comm_stage {
    /* Before the first view: @p blocks of @p nbytes each, whose views have at most @p step bytes. */
    gg_status (*begin)(struct comm_stage *self, struct gg_comm *comm, int32_t blocks, size_t nbytes,
                       size_t step);
    gg_status (*view)(struct comm_stage *self, size_t at, size_t nbytes, struct comm_view *view);
    /* Instead of begin and views: blocks of @p nbytes each that are copied from and to chunks. GG_NOT_READY: they cannot be. */
    gg_status (*attach)(struct comm_stage *self, struct gg_comm *comm, size_t nbytes);
    /* Begin a copy between the first blocks and chunks. Of the last two copies one has an even @p number, one an odd one. */
    gg_status (*copy)(struct comm_stage *self, uint32_t number, const struct comm_parts *parts);
    /* Whether the last copy with this number is complete, or GG_NOT_READY; with @p wait, wait until it is. */
    gg_status (*copied)(struct comm_stage *self, uint32_t number, bool wait);
    /* After the last view, or copy; with a failure nothing more is written. */
    gg_status (*finish)(struct comm_stage *self, gg_status status);
    bool attached; /* between attach and finish */
};
/* Equal blocks, one after the other. */
struct comm_side {
    char *data;               /* NULL: none. Behind a stage only compared with the other side's */
    struct comm_stage *stage; /* or NULL */
};
/* Memory that the processor can access. A source is only read. */
static inline struct comm_side comm_side_of(const void *data)
{
    return (struct comm_side){.data = (char *)(uintptr_t)data};
}
static inline bool comm_side_attached(const struct comm_side *side)
{
    return side->stage && side->stage->attached;
}
/* Begin, or attach if that is possible and @p attach. */
gg_status ggi_comm_side_begin(const struct comm_side *side, struct gg_comm *comm, int32_t blocks,
                              size_t nbytes, size_t step, bool attach);
gg_status ggi_comm_side_view(const struct comm_side *side, size_t block, size_t at, size_t nbytes,
                             struct comm_view *view);
/* GG_ERR_INVALID_ARGUMENT if @p nbytes are expected, and there is nothing. */
gg_status ggi_comm_side_check(const struct gg_comm *comm, const char *name,
                              const struct comm_side *side, size_t nbytes);
/* Around an operation on both sides, of which either may be unused. */
gg_status ggi_comm_sides_finish(const struct comm_side *dst, const struct comm_side *src,
                                gg_status status);
/* After a failure of a stage while the ranks are in an operation: it ends for all. */
gg_status ggi_comm_stage_failed(struct gg_comm *comm, gg_status status);

static inline struct comm_rank *comm_rank(const struct gg_comm *comm, int32_t rank)
{
    return &comm->segment->ranks[rank];
}
static inline struct comm_pair *comm_pair(const struct gg_comm *comm, int32_t from, int32_t to)
{
    return &comm->pairs[(size_t)from * (size_t)comm->size + (size_t)to];
}
/* What a rank has published in a round. */
static inline char *comm_half(const struct gg_comm *comm, int32_t rank, uint32_t round)
{
    return comm->chunks + ((size_t)rank * 4 + (round & 1)) * comm->chunk;
}
/* A part of a message of a rank. */
static inline char *comm_part(const struct gg_comm *comm, int32_t rank, uint32_t number)
{
    return comm->chunks + ((size_t)rank * 4 + 2 + (number & 1)) * comm->chunk;
}

/* ---- segment.c ---- */

/* A segment without other processes, for a rank whose transport is not the host. */
gg_status ggi_comm_segment_alone(struct gg_comm *comm);
/* One segment for all ranks of a communicator, which are in this process. */
gg_status ggi_comm_segment_share(struct gg_comm *const *comms);
/* Exchange larger parts, at which devices are fast, or those that the processors' caches hold. All ranks do the same. */
void ggi_comm_segment_use_large(struct gg_comm *comm, bool large);
/* Rank 0: create the segment, and comm->file. */
gg_status ggi_comm_segment_create(struct gg_comm *comm);
/* The others: map what rank 0 has passed. @p file becomes comm->file. */
gg_status ggi_comm_segment_open(struct gg_comm *comm, int file);
void ggi_comm_segment_close(struct gg_comm *comm);
/* The chunks of all ranks. They are mapped until ggi_comm_mapping_drop, which may follow the close. */
char *ggi_comm_chunks(struct gg_comm *comm, size_t *nbytes);
void ggi_comm_mapping_drop(void *mapping);
/* Whether the process of another rank has ended. False for a rank of this process. */
bool ggi_comm_rank_ended(const struct gg_comm *comm, int32_t rank);

/* ---- direct.c ---- */

/* Bytes of a block, or of a message, from which ranks read each other's memory. */
#define COMM_DIRECT (256u << 10)
/* Bytes that a rank reads until it reports its progress. */
#define COMM_DIRECT_PART (4u << 20)

/* Set comm->direct, once all ranks have mapped the segment. */
void ggi_comm_direct_try(struct gg_comm *comm);
/* Read the memory of another rank. False: it could not be read, or the rank may no longer be in the operation. */
bool ggi_comm_direct_read(const struct gg_comm *comm, int32_t rank, void *to, uint64_t from,
                          size_t nbytes);

/* ---- failure.c ---- */

/* Ranks, for messages and for gg_comm_failed_ranks. */
struct comm_ranks {
    uint8_t bits[GG_COMM_SIZE_MAX / 8];
};
void ggi_comm_ranks_add(struct comm_ranks *ranks, int32_t rank);
void ggi_comm_ranks_remove(struct comm_ranks *ranks, int32_t rank);
bool ggi_comm_ranks_has(const struct comm_ranks *ranks, int32_t rank);
int32_t ggi_comm_ranks_count(const struct comm_ranks *ranks);
/* Record GG_ERR_COMMUNICATOR and the ranks that it names. @p format is the message. */
gg_status ggi_comm_fail(const struct comm_ranks *ranks, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "rank 1", "ranks 1, 2 and 5" */
const char *ggi_comm_ranks_text(char *text, size_t size, const struct comm_ranks *ranks);
/* Mark each rank that is lost, and why; then declare the failure of the communicator, which all ranks then find. */
void ggi_comm_mark(struct gg_comm *comm, int32_t rank, uint32_t why);
void ggi_comm_declare(struct gg_comm *comm);
/* Without marks: COMM_STUCK, or COMM_UNCONNECTED. */
void ggi_comm_declare_unmarked(struct gg_comm *comm, uint32_t why);
/* Mark this rank as broken by the error that is recorded, and declare it: all ranks get its text. */
void ggi_comm_break(struct gg_comm *comm);
/* GG_OK, or the failure of the communicator. */
gg_status ggi_comm_state(struct gg_comm *comm);
/* The same, of @p call instead of the last operation. */
gg_status ggi_comm_state_of(struct gg_comm *comm, const char *call);

/* ---- word.c ---- */

void ggi_comm_word_wake(struct comm_word *word);
/* Sleep while the word is @p value, at most for this long. */
void ggi_comm_word_sleep(struct comm_word *word, uint32_t value, uint64_t ns);
/* Whether the word changes within a short time. */
bool ggi_comm_word_spin(struct comm_word *word, uint32_t value);

/* ---- wait.c ---- */

/* A wait for something that other ranks do: begin, then slice until it has happened. */
struct comm_wait {
    struct gg_comm *comm;
    uint64_t until; /* the timeout */
    uint64_t slept; /* when the last slice ended */
    uint64_t check; /* when to check for ranks that have ended */
};
struct comm_wait ggi_comm_wait_begin(struct gg_comm *comm);
/* Wait until @p word is no longer @p value, at most for a slice. After each slice check for failures. @p missing reports
 * the ranks that the caller waits for, from what is in the segment: if one of them has ended, or the timeout has passed, the
 * communicator fails. Before it returns the failure, the caller checks its condition once more: the rank may have met it
 * before it ended. */
gg_status ggi_comm_wait_slice(struct comm_wait *wait, struct comm_word *word, uint32_t value,
                              bool (*missing)(const void *what, int32_t rank), const void *what);
/* The check alone, after a wait of the caller's own for at most a slice. */
gg_status ggi_comm_wait_check(struct comm_wait *wait,
                              bool (*missing)(const void *what, int32_t rank), const void *what);

/* ---- collective.c, message.c: the operations of comm.h on such sides ---- */

enum comm_operation {
    CALL_BARRIER,
    CALL_BROADCAST, /* from here on gg_comm_operation + 1 */
    CALL_ALL_GATHER,
    CALL_GATHER,
    CALL_SCATTER,
    CALL_ALL_TO_ALL,
    CALL_ALL_REDUCE,
    CALL_REDUCE,
    CALL_REDUCE_SCATTER,
};
/* @p nbytes of a block. */
gg_status ggi_comm_move(struct gg_comm *comm, enum comm_operation operation, struct comm_side dst,
                        struct comm_side src, size_t nbytes, int32_t root);
/* @p count elements of a block. */
gg_status ggi_comm_reduce(struct gg_comm *comm, enum comm_operation operation, struct comm_side dst,
                          struct comm_side src, size_t count, gg_comm_type type,
                          gg_comm_reduction reduction, int32_t root);
gg_status ggi_comm_send(struct gg_comm *comm, struct comm_side src, size_t nbytes, int32_t to);
gg_status ggi_comm_recv(struct gg_comm *comm, struct comm_side dst, size_t nbytes, int32_t from);
gg_status ggi_comm_send_recv(struct gg_comm *comm, struct comm_side src, size_t src_nbytes,
                             int32_t to, struct comm_side dst, size_t dst_nbytes, int32_t from);

/* ---- reduce.c ---- */

#define COMM_TYPES 14
#define COMM_REDUCTIONS 5
extern const uint8_t ggi_comm_type_sizes[COMM_TYPES];
/* For messages; of any number. */
const char *ggi_comm_type_name(uint32_t type);
const char *ggi_comm_reduction_name(uint32_t reduction);
bool ggi_comm_can_reduce(uint32_t type, uint32_t reduction);
/* out = in[0] op in[1] op …, of @p count elements. */
void ggi_comm_combine(void *out, const char *const *in, int32_t inputs, size_t count, uint32_t type,
                      uint32_t reduction);

/* ---- meet.c and join.c: ranks find each other over TCP ---- */

/* Returns when all ranks have mapped the segment. */
gg_status ggi_comm_meet(struct gg_comm *comm, const struct gg_comm_options *options);
gg_status ggi_comm_join(struct gg_comm *comm, const struct gg_comm_options *options);

/* ---- link.c: what connects ranks of several machines, none of which is large or frequent ---- */

gg_status ggi_comm_link_open(struct gg_comm *comm);
/* Rank 0 adds all others, and the others add rank 0. The link owns the socket. */
void ggi_comm_link_add(struct gg_comm *comm, int32_t rank, int socket);
void ggi_comm_link_close(struct gg_comm *comm);
/* Write what the other ranks have sent to the segment, and send them what has changed. Does not wait; no link: nothing. */
static inline void ggi_comm_link_sync(struct gg_comm *comm)
{
    if (comm->sync)
        comm->sync(comm);
}
/* gg_comm_all_gather of at most 4096 bytes. GG_ERR_INVALID_ARGUMENT on all ranks if they give blocks of different sizes. */
gg_status ggi_comm_link_gather(struct gg_comm *comm, void *all, const void *mine, size_t nbytes);

/* ---- comm.c: creation, and around each operation ---- */

/* The communicators of all @p size ranks, in this process. */
gg_status ggi_comm_create_all(int32_t size, uint64_t timeout_ns, struct gg_comm **out);
void ggi_comm_free(struct gg_comm *comm);
/* GG_ERR_FORKED in a child of the process that created it. */
gg_status ggi_comm_check_process(const struct gg_comm *comm, const char *call);
gg_status ggi_comm_enter(struct gg_comm *comm, const char *call);
gg_status ggi_comm_leave(struct gg_comm *comm, gg_status status);
/* Of a link: an operation that only gathers blocks. */
gg_status ggi_comm_gather_apart(struct gg_comm *comm, const char *call, void *all, const void *mine,
                                size_t nbytes);
/* Whether two ranks may mean the same type: one that named none agrees with all. */
bool ggi_comm_types_agree(const char *a, const char *b);
/* GG_ERR_INVALID_ARGUMENT if it is not a rank. */
gg_status ggi_comm_rank_check(const struct gg_comm *comm, const char *what, int32_t rank);
/* The same if @p nbytes at the two places overlap. */
gg_status ggi_comm_overlap_check(const struct gg_comm *comm, const void *dst, size_t dst_nbytes,
                                 const void *src, size_t src_nbytes);

#endif
