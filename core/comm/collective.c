/* collective.c: the collective operations.
 *
 * An operation is a sequence of rounds. In a round each rank copies a piece of its source to its chunk, publishes the round,
 * waits until all ranks have published it, and takes what it needs from their chunks; its own block comes from its source. There are
 * two chunks per rank, used in turn: once all have published round k + 1, nobody reads what was published in round k. So a round has
 * one wait.
 *
 * A device that reaches the chunks copies from and to them itself (comm_stage::copy). Its copies from the chunks of a round are complete
 * when the next round is published; meanwhile it fills the other chunk.
 *
 * Ranks read large blocks where they are (direct.c). All publish the addresses of their sources, read a part, and publish the next
 * round when they have. If any rank then publishes no address, all exchange that part and the rest in chunks. */
#include "base/error.h"
#include "base/text.h"
#include "comm/comm.h"

#include <string.h>

#define COLLECTIVE_SPLIT 16384 /* bytes from which an all-reduce is shared between the ranks */

struct collective {
    struct gg_comm *comm;
    struct comm_call call;
    struct comm_side dst, src; /* without a source this rank gives nothing */
    int32_t pieces;            /* blocks of the source: 1, or one for each rank */
    size_t step;               /* bytes of each block that a round moves at most */
    size_t at, nbytes;         /* the part of each block that this round moves */
    struct comm_view in, out;  /* where it is read, and written */
    void (*take)(struct collective *self);
    bool met;    /* the others are in this operation, too */
    bool direct; /* this round reads what the others have published addresses of */
};

/* ---- rounds ---- */

static bool round_missing(const void *what, int32_t rank)
{
    const struct gg_comm *comm = what;
    return (int32_t)(atomic_load_explicit(&comm_rank(comm, rank)->round.value, memory_order_acquire) -
                     comm->round) < 0;
}

static gg_status round_wait_for(struct gg_comm *comm, struct comm_wait *wait, int32_t rank)
{
    struct comm_word *word = &comm_rank(comm, rank)->round;
    while (round_missing(comm, rank)) {
        uint32_t value = atomic_load(&word->value);
        gg_status status = round_missing(comm, rank)
                               ? ggi_comm_wait_slice(wait, word, value, round_missing, comm)
                               : GG_OK;
        if (status && (status == GG_ERR_INTERRUPTED || round_missing(comm, rank)))
            return status;
    }
    return GG_OK;
}

/* Publish this rank's chunk of the next round, and wait for those of all others. */
static gg_status round_exchange(struct gg_comm *comm, const struct comm_call *call)
{
    struct comm_rank *mine = comm_rank(comm, comm->rank);
    struct comm_wait wait = ggi_comm_wait_begin(comm);
    gg_status status = GG_OK;
    mine->call[(comm->round + 1) & 1] = *call;
    comm->round++;
    atomic_store(&mine->round.value, comm->round);
    ggi_comm_word_wake(&mine->round);
    for (int32_t rank = 0; rank < comm->size && status == GG_OK; rank++)
        status = round_wait_for(comm, &wait, rank);
    return status;
}

static const struct comm_call *round_call(const struct gg_comm *comm, int32_t rank)
{
    return &comm_rank(comm, rank)->call[comm->round & 1];
}

static char *round_slot(const struct collective *self, int32_t rank)
{
    return comm_half(self->comm, rank, self->comm->round);
}

/* ---- whether the ranks agree ---- */

static const char *const call_names[] = {
    "barrier",    "broadcast",  "all_gather", "gather",         "scatter",
    "all_to_all", "all_reduce", "reduce",     "reduce_scatter",
};
static const char *call_text(char data[160], const struct comm_call *call)
{
    const uint32_t operation = call->operation;
    const bool known = operation < sizeof call_names / sizeof call_names[0];
    struct ggi_text text = ggi_text_begin(data, 160);
    ggi_text_add(&text, "%s of %llu bytes", known ? call_names[operation] : "unknown",
                 (unsigned long long)call->nbytes);
    if (call->type_name[0])
        ggi_text_add(&text, " of '%.*s'", GG_COMM_TYPE_NAME_SIZE, call->type_name);
    if (operation >= CALL_ALL_REDUCE)
        ggi_text_add(&text, ", '%s' of %s", ggi_comm_reduction_name(call->reduction),
                     ggi_comm_type_name(call->type));
    if (operation == CALL_BROADCAST || operation == CALL_GATHER || operation == CALL_SCATTER ||
        operation == CALL_REDUCE)
        ggi_text_add(&text, ", root %d", call->root);
    return data;
}

static bool call_same(const struct comm_call *a, const struct comm_call *b)
{
    return a->operation == b->operation && a->type == b->type && a->reduction == b->reduction &&
           a->root == b->root && a->nbytes == b->nbytes &&
           ggi_comm_types_agree(a->type_name, b->type_name);
}

/* All ranks compare the same calls, so all of them find the same difference. */
static gg_status calls_compare(const struct gg_comm *comm)
{
    const struct comm_call *first = round_call(comm, 0);
    int32_t rank_of_first = 0;
    for (int32_t rank = 1; rank < comm->size; rank++) {
        const struct comm_call *other = round_call(comm, rank);
        char one[160], two[160];
        if (!call_same(first, other))
            return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                            "%s: the ranks disagree: rank %d calls %s, rank %d calls %s; all ranks "
                            "must call the same operations in the same order",
                            comm->call, rank_of_first, call_text(one, first), rank,
                            call_text(two, other));
        if (!first->type_name[0] && other->type_name[0]) { /* the others must agree with its type */
            first = other;
            rank_of_first = rank;
        }
    }
    return GG_OK;
}

/* ---- the steps of an operation ---- */

static int32_t blocks_of_dst(const struct collective *self)
{
    const uint32_t operation = self->call.operation;
    const bool all =
        operation == CALL_ALL_GATHER || operation == CALL_GATHER || operation == CALL_ALL_TO_ALL;
    return all ? self->comm->size : 1;
}

/* Once the others are in the operation, a failure ends it for all. */
static gg_status collective_failed(const struct collective *self, gg_status status)
{
    return status && self->met ? ggi_comm_stage_failed(self->comm, status) : status;
}

/* Bytes of each block that the round which begins at @p at moves. */
static size_t collective_part(const struct collective *self, size_t at)
{
    const size_t left = (size_t)self->call.nbytes - at;
    return left < self->step ? left : self->step;
}

/* Let the device fill this rank's chunk of the next round, with the part at @p at. */
static gg_status collective_give_early(struct collective *self, size_t at)
{
    struct comm_stage *stage = self->src.stage;
    const struct gg_comm *comm = self->comm;
    const size_t nbytes = collective_part(self, at);
    const struct comm_parts parts = {.data = comm_half(comm, comm->rank, comm->round + 1),
                                     .pitch = nbytes,
                                     .at = at,
                                     .nbytes = nbytes,
                                     .blocks = self->pieces};
    if (!comm_side_attached(&self->src) || !nbytes)
        return GG_OK;
    return collective_failed(self, stage->copy(stage, comm->round + 1, &parts));
}

/* In an all_to_all no other rank needs this rank's block for itself. */
static bool collective_skips(const struct collective *self, int32_t piece)
{
    return self->call.operation == CALL_ALL_TO_ALL && piece == self->comm->rank &&
           !comm_side_attached(&self->dst);
}

static gg_status collective_give(struct collective *self)
{
    const uint32_t round = self->comm->round + 1;
    char *slot = comm_half(self->comm, self->comm->rank, round);
    gg_status status = GG_OK;
    if (!self->src.data || !self->nbytes)
        return GG_OK;
    if (comm_side_attached(&self->src))
        return self->src.stage->copied(self->src.stage, round, true);
    status = ggi_comm_side_view(&self->src, (size_t)self->call.nbytes, self->at, self->nbytes,
                                &self->in);
    for (int32_t piece = 0; !status && piece < self->pieces; piece++)
        if (!collective_skips(self, piece))
            memcpy(slot + (size_t)piece * self->nbytes,
                   self->in.data + (size_t)piece * self->in.pitch, self->nbytes);
    return status;
}

/* Publish a round. In the first one ranks compare what they call. */
static gg_status collective_meet(struct collective *self)
{
    gg_status status = round_exchange(self->comm, &self->call);
    if (!status && !self->met)
        status = calls_compare(self->comm);
    self->met = true;
    return status;
}

/* The first part of a round, after which all ranks have given theirs. */
static gg_status collective_begin_round(struct collective *self)
{
    struct comm_stage *stage = self->dst.stage;
    gg_status status = collective_give(self);
    if (!status && comm_side_attached(&self->dst)) /* from chunks that others fill after this round */
        status = stage->copied(stage, self->comm->round, true);
    if (status)
        return collective_failed(self, status);
    status = collective_meet(self);
    if (status || !self->take || !self->nbytes || comm_side_attached(&self->dst))
        return status;
    status = ggi_comm_side_view(&self->dst, (size_t)self->call.nbytes, self->at, self->nbytes,
                                &self->out);
    return collective_failed(self, status);
}

/* Let the device copy what is taken: a piece of one rank, or of each. */
static gg_status collective_take_early(struct collective *self)
{
    const struct gg_comm *comm = self->comm;
    struct comm_stage *stage = self->dst.stage;
    const uint32_t operation = self->call.operation;
    const int32_t blocks = blocks_of_dst(self);
    const bool mine = operation == CALL_ALL_TO_ALL || operation == CALL_SCATTER;
    const bool of_root = operation == CALL_BROADCAST || operation == CALL_SCATTER;
    const struct comm_parts parts = {.data = round_slot(self, of_root ? self->call.root : 0) +
                                             (mine ? (size_t)comm->rank * self->nbytes : 0),
                                     .pitch = 4 * comm->chunk,
                                     .at = self->at,
                                     .nbytes = self->nbytes,
                                     .blocks = blocks};
    return collective_failed(self, stage->copy(stage, comm->round, &parts));
}

static gg_status collective_take(struct collective *self)
{
    if (!self->take || !self->nbytes)
        return GG_OK;
    if (comm_side_attached(&self->dst))
        return collective_take_early(self);
    self->take(self);
    return GG_OK;
}

/* Once a round is published, no rank uses the chunks of the one before. */
static gg_status collective_run(struct collective *self)
{
    gg_status status = collective_give_early(self, self->at);
    if (status)
        return status;
    do {
        self->nbytes = collective_part(self, self->at);
        status = collective_begin_round(self);
        if (!status)
            status = collective_give_early(self, self->at + self->nbytes);
        if (!status)
            status = collective_take(self);
        self->at += self->nbytes;
    } while (!status && self->at < self->call.nbytes);
    return status;
}

/* Copy a piece of a rank's source to @p to; this rank's own from where it is. */
static void collective_fetch(struct collective *self, int32_t rank, size_t piece, char *to)
{
    const struct gg_comm *comm = self->comm;
    const char *from = round_slot(self, rank) + piece * self->nbytes;
    if (rank == comm->rank && !comm_side_attached(&self->src))
        from = self->in.data + piece * self->in.pitch;
    else if (self->direct) {
        const size_t at = piece * (size_t)self->call.nbytes + self->at;
        if (self->call.source &&
            !ggi_comm_direct_read(comm, rank, to, round_call(comm, rank)->source + at, self->nbytes))
            self->call.source = 0;
        return;
    }
    if (to != from)
        memcpy(to, from, self->nbytes);
}

/* dst block r = the piece of rank r. This rank's own comes first: the others may be written to where it is. Then each rank begins
 * with another one. */
static void take_from_each(struct collective *self, size_t piece)
{
    const int32_t size = self->comm->size;
    for (int32_t i = 0; i < size; i++) {
        const int32_t rank = (self->comm->rank + i) % size;
        collective_fetch(self, rank, piece, self->out.data + (size_t)rank * self->out.pitch);
    }
}
static void take_gathered(struct collective *self)
{
    take_from_each(self, 0);
}
static void take_mine_of_each(struct collective *self)
{
    take_from_each(self, (size_t)self->comm->rank);
}

static void take_broadcast(struct collective *self)
{
    collective_fetch(self, self->call.root, 0, self->out.data);
}

static void take_scattered(struct collective *self)
{
    collective_fetch(self, self->call.root, (size_t)self->comm->rank, self->out.data);
}

/* ---- reductions ---- */

/* Combine the same @p nbytes of all ranks' chunks. */
static void combine_chunks(const struct collective *self, char *out, size_t from, size_t nbytes)
{
    const char *in[GG_COMM_SIZE_MAX];
    for (int32_t rank = 0; rank < self->comm->size; rank++)
        in[rank] = round_slot(self, rank) + from;
    ggi_comm_combine(out, in, self->comm->size, nbytes / ggi_comm_type_sizes[self->call.type],
                     self->call.type, self->call.reduction);
}

static void take_reduced(struct collective *self)
{
    combine_chunks(self, self->out.data, 0, self->nbytes);
}

static void take_reduced_piece(struct collective *self)
{
    combine_chunks(self, self->out.data, (size_t)self->comm->rank * self->nbytes, self->nbytes);
}

/* The part of a chunk that a rank combines for all. */
static size_t split_begin(const struct collective *self, int32_t rank)
{
    const size_t share = self->nbytes / (size_t)self->comm->size / 16 * 16;
    return rank == self->comm->size ? self->nbytes : (size_t)rank * share;
}

/* The part that a rank has combined. */
static gg_status split_take(const struct collective *self, int32_t rank)
{
    const size_t begin = split_begin(self, rank), nbytes = split_begin(self, rank + 1) - begin;
    struct comm_stage *stage = self->dst.stage;
    const struct comm_parts parts = {.data = round_slot(self, rank) + begin,
                                     .at = self->at + begin,
                                     .nbytes = nbytes,
                                     .blocks = nbytes > 0};
    if (comm_side_attached(&self->dst))
        return collective_failed(self, stage->copy(stage, self->comm->round, &parts));
    memcpy(self->out.data + begin, parts.data, nbytes);
    return GG_OK;
}

/* A second round: each rank combines its part into its other chunk, and copies the parts of all. */
static gg_status split_round(struct collective *self)
{
    struct gg_comm *comm = self->comm;
    const size_t from = split_begin(self, comm->rank), to = split_begin(self, comm->rank + 1);
    combine_chunks(self, comm_half(comm, comm->rank, comm->round + 1) + from, from, to - from);
    gg_status status = round_exchange(comm, &self->call);
    if (!status)
        status = collective_give_early(self, self->at + self->nbytes);
    for (int32_t rank = 0; !status && rank < comm->size; rank++)
        status = split_take(self, rank);
    return status;
}

static gg_status split_run(struct collective *self)
{
    gg_status status = collective_give_early(self, self->at);
    while (!status && self->at < self->call.nbytes) {
        self->nbytes = collective_part(self, self->at);
        status = collective_begin_round(self);
        if (!status)
            status = split_round(self);
        self->at += self->nbytes;
    }
    return status;
}

/* ---- checks ---- */

/* In place is the same address, or this rank's block. Each round reads its part of all blocks before it writes it. */
static bool collective_in_place(const struct collective *self)
{
    const size_t mine = (size_t)self->comm->rank * (size_t)self->call.nbytes;
    const char *dst = self->dst.data, *src = self->src.data;
    return dst == src || dst + mine == src || dst == src + mine;
}

static gg_status collective_check(const struct collective *self)
{
    const size_t block = (size_t)self->call.nbytes;
    gg_status status = ggi_comm_rank_check(self->comm, "root", self->call.root);
    if (status)
        return status;
    if (block > SIZE_MAX / 2 / GG_COMM_SIZE_MAX)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s: %zu bytes are more than memory can have",
                        self->comm->call, block);
    const uint32_t operation = self->call.operation;
    const bool of_root = operation == CALL_BROADCAST || operation == CALL_SCATTER;
    if (!of_root || self->comm->rank == self->call.root)
        status = ggi_comm_side_check(self->comm, "src", &self->src, block);
    if (!status && self->take)
        status = ggi_comm_side_check(self->comm, "dst", &self->dst, block);
    if (status || !self->src.data || !self->take || !block || collective_in_place(self))
        return status;
    return ggi_comm_overlap_check(self->comm, self->dst.data, block * (size_t)blocks_of_dst(self),
                                  self->src.data, block * (size_t)self->pieces);
}

/* ---- without chunks ---- */

/* Where the others may read this rank's source until all have read: not if this rank writes there meanwhile. 1: nobody reads it. */
static uint64_t direct_source(const struct collective *self)
{
    const size_t mine = (size_t)self->comm->rank * (size_t)self->call.nbytes;
    if (!self->comm->direct || self->src.stage || self->dst.stage)
        return 0;
    if (!self->src.data)
        return 1;
    if (!self->take || !collective_in_place(self))
        return (uintptr_t)self->src.data;
    const char *to = self->dst.data + (blocks_of_dst(self) > 1 ? mine : 0);
    const char *from = self->src.data + (self->pieces > 1 ? mine : 0);
    return to == from && self->call.operation != CALL_ALL_TO_ALL ? (uintptr_t)self->src.data : 0;
}

/* Whether this round can be direct. All ranks find the same. */
static bool direct_agreed(const struct collective *self)
{
    bool all = true;
    for (int32_t rank = 0; rank < self->comm->size; rank++)
        all = all && round_call(self->comm, rank)->source;
    return all;
}

static void direct_take(struct collective *self)
{
    const size_t block = (size_t)self->call.nbytes;
    if (!self->take)
        return;
    self->out = (struct comm_view){self->dst.data + self->at, block};
    if (self->src.data)
        self->in = (struct comm_view){self->src.data + self->at, block};
    self->take(self);
}

/* If a rank cannot read, this ends without an error before all is read. */
static gg_status direct_run(struct collective *self)
{
    const size_t share = COMM_DIRECT_PART / (size_t)blocks_of_dst(self) / 4096 * 4096;
    const size_t step = share < COMM_DIRECT ? COMM_DIRECT : share;
    self->call.source = direct_source(self);
    gg_status status = collective_meet(self);
    self->direct = true;
    while (!status && direct_agreed(self) && self->at < self->call.nbytes) {
        const size_t left = (size_t)self->call.nbytes - self->at;
        self->nbytes = left < step ? left : step;
        direct_take(self);
        status = collective_meet(self);
        if (!status && direct_agreed(self))
            self->at += self->nbytes;
    }
    self->direct = false;
    return status;
}

/* ---- an operation ---- */

/* Before the other ranks see anything of the operation. */
static gg_status collective_begin_sides(const struct collective *self, bool split)
{
    struct gg_comm *comm = self->comm;
    const size_t block = (size_t)self->call.nbytes;
    const bool moves = self->call.operation < CALL_ALL_REDUCE || split; /* what is in the chunks */
    gg_status status = GG_OK;
    if (self->src.stage && block)
        status = ggi_comm_side_begin(&self->src, comm, self->pieces, block, self->step, true);
    if (!status && self->dst.stage && block && self->take)
        status =
            ggi_comm_side_begin(&self->dst, comm, blocks_of_dst(self), block, self->step, moves);
    return status;
}

/* Not a broadcast to several ranks: they would read the same pages, on whose counts they contend in the kernel. A chunk is in the
 * processor's cache when they read it. */
static bool collective_is_direct(const struct collective *self)
{
    return self->call.operation < CALL_ALL_REDUCE && self->call.nbytes >= COMM_DIRECT &&
           (self->call.operation != CALL_BROADCAST || self->comm->size == 2);
}

/* A step is a multiple of 16, the largest element. */
static gg_status collective_execute(struct collective *self)
{
    struct gg_comm *comm = self->comm;
    const bool split = self->call.operation == CALL_ALL_REDUCE && comm->size > 2 &&
                       self->call.nbytes >= COLLECTIVE_SPLIT;
    self->step = split ? comm->part : comm->part / (size_t)self->pieces / 16 * 16;
    gg_status status = collective_begin_sides(self, split);
    if (!status && collective_is_direct(self))
        status = direct_run(self);
    if (!status && (!self->met || self->at < self->call.nbytes))
        status = split ? split_run(self) : collective_run(self);
    return ggi_comm_sides_finish(&self->dst, &self->src, status);
}

static gg_status collective_call(struct collective *self)
{
    struct gg_comm *comm = self->comm;
    gg_status status = ggi_comm_enter(comm, call_names[self->call.operation]);
    if (status)
        return status;
    memcpy(self->call.type_name, comm->type_name, sizeof comm->type_name);
    status = collective_check(self);
    return ggi_comm_leave(comm, status ? status : collective_execute(self));
}

/* ---- the operations ---- */

gg_status ggi_comm_move(struct gg_comm *comm, enum comm_operation operation, struct comm_side dst,
                        struct comm_side src, size_t nbytes, int32_t root)
{
    const bool at_root = comm->rank == root;
    struct collective self = {.comm = comm,
                              .call = {.operation = operation, .nbytes = nbytes, .root = root},
                              .dst = dst,
                              .src = src,
                              .pieces = 1};
    if ((operation == CALL_BROADCAST || operation == CALL_SCATTER) && !at_root)
        self.src = (struct comm_side){NULL, NULL};
    if (operation == CALL_SCATTER || operation == CALL_ALL_TO_ALL)
        self.pieces = comm->size;
    if (operation == CALL_BROADCAST)
        self.take = at_root && dst.data == src.data ? NULL : take_broadcast;
    else if (operation == CALL_ALL_GATHER || (operation == CALL_GATHER && at_root))
        self.take = take_gathered;
    else if (operation == CALL_SCATTER)
        self.take = take_scattered;
    else if (operation == CALL_ALL_TO_ALL)
        self.take = take_mine_of_each;
    return collective_call(&self);
}

/* The call of a reduction; GG_ERR_INVALID_ARGUMENT for a type or operator that does not exist. */
static gg_status reduction_call(const struct gg_comm *comm, struct comm_call *call, size_t count,
                                gg_comm_type type, gg_comm_reduction reduction)
{
    if (!ggi_comm_can_reduce((uint32_t)type, (uint32_t)reduction))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s: %s (type %d) has no '%s' (reduction %d): expected a gg_comm_type and "
                        "a gg_comm_reduction; complex numbers have no minimum and no maximum",
                        call_names[call->operation], ggi_comm_type_name((uint32_t)type), (int)type,
                        ggi_comm_reduction_name((uint32_t)reduction), (int)reduction);
    if (count > SIZE_MAX / 2 / GG_COMM_SIZE_MAX / 16)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s of rank %d: %zu elements are too many",
                        call_names[call->operation], comm->rank, count);
    call->type = (uint32_t)type;
    call->reduction = (uint32_t)reduction;
    call->nbytes = count * ggi_comm_type_sizes[type];
    return GG_OK;
}

gg_status ggi_comm_reduce(struct gg_comm *comm, enum comm_operation operation, struct comm_side dst,
                          struct comm_side src, size_t count, gg_comm_type type,
                          gg_comm_reduction reduction, int32_t root)
{
    struct collective self = {.comm = comm,
                              .call = {.operation = operation, .root = root},
                              .dst = dst,
                              .src = src,
                              .pieces = operation == CALL_REDUCE_SCATTER ? comm->size : 1,
                              .take = take_reduced};
    gg_status status = reduction_call(comm, &self.call, count, type, reduction);
    if (operation == CALL_REDUCE_SCATTER)
        self.take = take_reduced_piece;
    else if (operation == CALL_REDUCE && comm->rank != root)
        self.take = NULL;
    return status ? status : collective_call(&self);
}
