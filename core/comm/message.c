/* message.c: messages between two ranks.
 *
 * The sender fills a part and offers the size, which the receiver accepts or refuses. Then the sender fills its two parts in turn,
 * and the receiver empties them. Each side rings the other's bell after a step that the other waits for.
 *
 * A device that reaches the segment fills and empties the parts itself, up to two at a time (comm_stage::copy). Each part is passed on
 * when its copy is complete.
 *
 * A large message is offered with its address, and as many parts as the receiver will read there (direct.c) before it answers. A
 * receiver that cannot read it answers that it wants it in the parts of the segment. */
#include "base/error.h"
#include "comm/comm.h"

#include <string.h>

enum { STEP_NONE, STEP_DONE, STEP_MORE, STEP_FAILED };
enum { ACCEPTED, REFUSED, WANTS_PARTS }; /* comm_pair::refused */

/* One direction of one message. */
struct message {
    struct gg_comm *comm;
    int32_t peer;
    bool sends, open, refused; /* open: offered, or accepted */
    struct comm_side side;
    size_t nbytes, at; /* at: the next part's beginning */
    uint32_t copying;  /* parts that the device copies */
    gg_status failed;  /* of STEP_FAILED */
    uint64_t offered;  /* what the other side sends */
    uint32_t left;     /* parts that the receiver has not taken */
    char offered_type[GG_COMM_TYPE_NAME_SIZE];
};

static struct comm_pair *message_pair(const struct message *self)
{
    return self->sends ? comm_pair(self->comm, self->comm->rank, self->peer)
                       : comm_pair(self->comm, self->peer, self->comm->rank);
}

static void message_ring(const struct message *self)
{
    struct comm_word *bell = &comm_rank(self->comm, self->peer)->bell;
    atomic_fetch_add(&bell->value, 1);
    ggi_comm_word_wake(bell);
}

static size_t message_part(const struct message *self, size_t most)
{
    const size_t left = self->nbytes - self->at;
    return left < most ? left : most;
}

/* Where the next part is, in memory that the processor can access. */
static char *message_data(struct message *self, size_t part)
{
    struct comm_view view = {NULL, 0};
    self->failed = ggi_comm_side_view(&self->side, self->nbytes, self->at, part, &view);
    return self->failed ? NULL : view.data;
}

/* Let the device copy the next part, which has this number. */
static int message_copy(struct message *self, uint32_t number)
{
    struct comm_stage *stage = self->side.stage;
    const int32_t sender = self->sends ? self->comm->rank : self->peer;
    const struct comm_parts parts = {.data = comm_part(self->comm, sender, number),
                                     .at = self->at,
                                     .nbytes = message_part(self, self->comm->part),
                                     .blocks = 1};
    self->failed = stage->copy(stage, number, &parts);
    if (self->failed)
        return STEP_FAILED;
    self->at += parts.nbytes;
    self->copying++;
    return STEP_MORE;
}

/* Whether the device has copied its first part, which has this number. */
static int message_copied(struct message *self, uint32_t number)
{
    struct comm_stage *stage = self->side.stage;
    const gg_status status = self->copying ? stage->copied(stage, number, false) : GG_NOT_READY;
    if (status == GG_NOT_READY)
        return STEP_NONE;
    self->failed = status;
    self->copying--;
    return status ? STEP_FAILED : STEP_DONE;
}

/* The processor copies the next part between its place and the segment. */
static int message_copy_here(struct message *self, uint32_t number)
{
    const size_t part = message_part(self, self->comm->part);
    char *data = message_data(self, part);
    if (!data)
        return STEP_FAILED;
    if (self->sends)
        memcpy(comm_part(self->comm, self->comm->rank, number), data, part);
    else
        memcpy(data, comm_part(self->comm, self->peer, number), part);
    self->at += part;
    return STEP_DONE;
}

/* Fill the next part. STEP_DONE: it was passed on. */
static int message_fill(struct message *self, struct comm_pair *pair)
{
    const uint32_t sent = atomic_load(&pair->sent);
    const int step = comm_side_attached(&self->side) ? message_copied(self, sent)
                                                     : message_copy_here(self, sent);
    if (step == STEP_DONE)
        atomic_store(&pair->sent, sent + 1);
    return step;
}

/* A part may be filled once the one before the last has been emptied. */
static int message_send_part(struct message *self, struct comm_pair *pair)
{
    const uint32_t sent = atomic_load(&pair->sent),
                   under_way = sent + self->copying - atomic_load(&pair->taken);
    const bool next = self->at < self->nbytes && under_way < 2;
    if (self->at == self->nbytes && under_way == 0)
        return STEP_DONE;
    if (next && comm_side_attached(&self->side))
        return message_copy(self, sent + self->copying);
    if (!next && !self->copying)
        return STEP_NONE;
    const int step = message_fill(self, pair);
    if (step != STEP_DONE)
        return step;
    message_ring(self);
    return STEP_MORE;
}

/* The parts of the whole message. */
static void message_fill_directly(struct message *self, struct comm_pair *pair)
{
    self->at = self->nbytes;
    atomic_fetch_add(&pair->sent, (uint32_t)((self->nbytes - 1) / COMM_DIRECT_PART) + 1);
}

/* While the receiver reads. */
static int message_progress(struct message *self, const struct comm_pair *pair)
{
    const uint32_t left = atomic_load(&pair->sent) - atomic_load(&pair->taken);
    const bool moved = left != self->left;
    self->left = left;
    return moved ? STEP_MORE : STEP_NONE;
}

static int message_offer(struct message *self, struct comm_pair *pair)
{
    struct gg_comm *comm = self->comm;
    const bool direct = comm->direct && self->nbytes >= COMM_DIRECT && !self->side.stage;
    const int step = direct || !self->nbytes ? STEP_DONE : message_fill(self, pair);
    if (step != STEP_DONE)
        return step;
    memcpy(comm_rank(comm, comm->rank)->sends, comm->type_name, sizeof comm->type_name);
    pair->nbytes = self->nbytes;
    pair->source = direct ? (uintptr_t)self->side.data : 0;
    if (direct)
        message_fill_directly(self, pair);
    message_progress(self, pair);
    atomic_fetch_add(&pair->offered, 1);
    message_ring(self);
    self->open = true;
    return STEP_MORE;
}

static int message_send_step(struct message *self)
{
    struct comm_pair *pair = message_pair(self);
    if (!self->open)
        return message_offer(self, pair);
    if (atomic_load(&pair->answered) != atomic_load(&pair->offered))
        return message_progress(self, pair);
    const uint32_t refused = atomic_load(&pair->refused);
    self->refused = refused == REFUSED;
    if (refused == WANTS_PARTS && pair->source)
        self->at = pair->source = 0;
    return self->refused ? STEP_DONE : message_send_part(self, pair);
}

/* Read the next part. STEP_DONE: there is none to be read. */
static int message_read(struct message *self, struct comm_pair *pair)
{
    const size_t part = message_part(self, COMM_DIRECT_PART);
    if (!pair->source || !part)
        return STEP_DONE;
    if (self->side.stage || !self->comm->direct ||
        !ggi_comm_direct_read(self->comm, self->peer, self->side.data + self->at,
                              pair->source + self->at, part)) {
        self->at = 0;
        return STEP_DONE;
    }
    self->at += part;
    atomic_fetch_add(&pair->taken, 1);
    if (self->at < self->nbytes)
        message_ring(self);
    return STEP_MORE;
}

static int message_answer(struct message *self, struct comm_pair *pair)
{
    const uint32_t offered = atomic_load(&pair->offered);
    if (offered == atomic_load(&pair->answered))
        return STEP_NONE;
    self->offered = pair->nbytes;
    memcpy(self->offered_type, comm_rank(self->comm, self->peer)->sends, sizeof self->offered_type);
    self->refused = self->offered != self->nbytes ||
                    !ggi_comm_types_agree(self->offered_type, self->comm->type_name);
    if (!self->refused && message_read(self, pair) == STEP_MORE)
        return STEP_MORE;
    const bool direct = pair->source, wants_parts = direct && self->at != self->nbytes;
    if (self->refused || wants_parts) /* what was offered is dropped */
        atomic_store(&pair->taken, atomic_load(&pair->sent));
    self->open = true;
    atomic_store(&pair->refused, self->refused ? REFUSED : wants_parts ? WANTS_PARTS : ACCEPTED);
    atomic_store(&pair->answered, offered);
    /* A message of one part is answered when it is taken. */
    if (self->refused || direct || !self->nbytes || self->nbytes > self->comm->part)
        message_ring(self);
    return self->refused ? STEP_DONE : STEP_MORE;
}

static int message_recv_part(struct message *self, struct comm_pair *pair)
{
    const uint32_t taken = atomic_load(&pair->taken), there = atomic_load(&pair->sent) - taken;
    const bool attached = comm_side_attached(&self->side);
    if (self->at == self->nbytes && !self->copying)
        return STEP_DONE;
    if (attached && there > self->copying)
        return message_copy(self, taken + self->copying);
    if (there == 0)
        return STEP_NONE;
    const int step = attached ? message_copied(self, taken) : message_copy_here(self, taken);
    if (step != STEP_DONE)
        return step;
    atomic_store(&pair->taken, taken + 1);
    message_ring(self);
    return STEP_MORE;
}

static int message_recv_step(struct message *self)
{
    struct comm_pair *pair = message_pair(self);
    return self->open ? message_recv_part(self, pair) : message_answer(self, pair);
}

/* Wait for the device's first copy. False: it failed. */
static bool message_wait(struct message *self)
{
    const struct comm_pair *pair = message_pair(self);
    struct comm_stage *stage = self->side.stage;
    self->failed = stage->copied(stage, atomic_load(self->sends ? &pair->sent : &pair->taken), true);
    return !self->failed;
}

/* ---- one or two messages at a time ---- */

struct exchange {
    struct message messages[2];
    int count;
    bool done[2];
    int polls; /* since a message has moved */
    gg_status failed;
};

/* Whether any message has moved. */
static bool exchange_step(struct exchange *self)
{
    bool moved = false;
    for (int i = 0; i < self->count; i++) {
        if (self->done[i])
            continue;
        struct message *message = &self->messages[i];
        const int step = message->sends ? message_send_step(message) : message_recv_step(message);
        self->done[i] = step == STEP_DONE;
        if (step == STEP_FAILED)
            self->failed = message->failed;
        moved = moved || step != STEP_NONE;
    }
    return moved;
}

/* Whether this rank no longer needs its peer. Since the last step the receiver may have answered and emptied all parts, and
 * may then leave. */
static bool message_complete(const struct message *self)
{
    const struct comm_pair *pair = message_pair(self);
    if (!self->sends || !self->open || atomic_load(&pair->answered) != atomic_load(&pair->offered))
        return false;
    const uint32_t refused = atomic_load(&pair->refused);
    if (refused == REFUSED || (refused == WANTS_PARTS && pair->source))
        return refused == REFUSED;
    return self->at == self->nbytes && !self->copying &&
           atomic_load(&pair->taken) == atomic_load(&pair->sent);
}

static bool exchange_missing(const void *what, int32_t rank)
{
    const struct exchange *self = what;
    for (int i = 0; i < self->count; i++)
        if (!self->done[i] && self->messages[i].peer == rank && !message_complete(&self->messages[i]))
            return true;
    return false;
}

static bool exchange_done(const struct exchange *self)
{
    return self->done[0] && (self->count == 1 || self->done[1]);
}

/* How often devices are polled before the host waits for the first copy. The other message does not move during that wait. */
#define EXCHANGE_POLLS 64

/* Whether a device copies. */
static bool exchange_copies(struct exchange *self)
{
    const struct message *messages = self->messages;
    int i = 0;
    while (i < self->count && !messages[i].copying)
        i++;
    if (i < self->count && self->polls++ >= EXCHANGE_POLLS && !message_wait(&self->messages[i]))
        self->failed = messages[i].failed;
    return i < self->count;
}

/* The other rank may have done its part and then ended: one more step is taken before the failure counts. */
static gg_status exchange_move(struct exchange *self)
{
    struct gg_comm *comm = self->messages[0].comm;
    struct comm_word *bell = &comm_rank(comm, comm->rank)->bell;
    struct comm_wait wait = ggi_comm_wait_begin(comm);
    gg_status status = GG_OK;
    for (;;) {
        const uint32_t value = atomic_load(&bell->value);
        const bool moved = exchange_step(self);
        if (moved) {
            wait = ggi_comm_wait_begin(comm);
            self->polls = 0;
        } else if (status || exchange_done(self))
            return exchange_done(self) ? GG_OK : status;
        else if (!exchange_copies(self))
            status = ggi_comm_wait_slice(&wait, bell, value, exchange_missing, self);
        if (self->failed)
            return ggi_comm_stage_failed(comm, self->failed);
        if (status == GG_ERR_INTERRUPTED)
            return status;
    }
}

static gg_status message_type_error(const struct message *self)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: rank %d sends elements of '%.*s', but this rank expects '%s'; nothing was "
                    "copied",
                    self->comm->call, self->peer, GG_COMM_TYPE_NAME_SIZE, self->offered_type,
                    self->comm->type_name);
}

static gg_status exchange_result(const struct exchange *self)
{
    for (int i = 0; i < self->count; i++) {
        const struct message *message = &self->messages[i];
        const unsigned long long here = message->nbytes, there = message->offered;
        if (message->refused && message->sends)
            return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                            "%s: rank %d expects another size or type than the %llu bytes that "
                            "this rank sends; nothing was copied",
                            message->comm->call, message->peer, here);
        if (message->refused && here == there)
            return message_type_error(message);
        if (message->refused)
            return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                            "%s: rank %d sends %llu bytes, but this rank expects %llu; nothing was "
                            "copied",
                            message->comm->call, message->peer, there, here);
    }
    return GG_OK;
}

static gg_status message_begin(struct message *self, bool attach)
{
    struct gg_comm *comm = self->comm;
    if (!self->side.stage || !self->nbytes)
        return GG_OK;
    gg_status status = ggi_comm_side_begin(&self->side, comm, 1, self->nbytes, comm->part, attach);
    if (!status && self->sends && comm_side_attached(&self->side))
        message_copy(self, atomic_load(&message_pair(self)->sent));
    return status ? status : self->failed;
}

/* Before the other ranks see anything of the operation. @p attach: where a device reaches the segment, it copies itself. */
static gg_status exchange_begin(struct exchange *self, bool attach)
{
    gg_status status = GG_OK;
    for (int i = 0; i < self->count && !status; i++)
        status = message_begin(&self->messages[i], attach);
    return status;
}

static gg_status exchange_run(struct exchange *self)
{
    static const struct comm_side none;
    gg_status status = exchange_begin(self, true);
    if (!status)
        status = exchange_move(self);
    if (!status)
        status = exchange_result(self);
    return ggi_comm_sides_finish(&self->messages[self->count - 1].side,
                                 self->count > 1 ? &self->messages[0].side : &none, status);
}

/* ---- the operations ---- */

static gg_status message_peer_check(const struct gg_comm *comm, const char *what, int32_t peer)
{
    gg_status status = ggi_comm_rank_check(comm, what, peer);
    if (status || peer != comm->rank)
        return status;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: %s is %d, the calling rank itself; expected another rank", comm->call,
                    what, peer);
}

static gg_status message_side_check(const struct message *self)
{
    return ggi_comm_side_check(self->comm, self->sends ? "src" : "dst", &self->side, self->nbytes);
}

static gg_status message_call(struct gg_comm *comm, struct message message, const char *call)
{
    struct exchange exchange = {.messages = {message}, .count = 1};
    gg_status status = ggi_comm_enter(comm, call);
    if (status)
        return status;
    status = message_peer_check(comm, message.sends ? "to" : "from", message.peer);
    if (!status)
        status = message_side_check(&message);
    return ggi_comm_leave(comm, status ? status : exchange_run(&exchange));
}

static struct message message_to(struct gg_comm *comm, struct comm_side src, size_t nbytes,
                                 int32_t to)
{
    return (struct message){.comm = comm, .peer = to, .sends = true, .side = src, .nbytes = nbytes};
}
static struct message message_from(struct gg_comm *comm, struct comm_side dst, size_t nbytes,
                                   int32_t from)
{
    return (struct message){.comm = comm, .peer = from, .side = dst, .nbytes = nbytes};
}

gg_status ggi_comm_send(struct gg_comm *comm, struct comm_side src, size_t nbytes, int32_t to)
{
    return message_call(comm, message_to(comm, src, nbytes, to), "send");
}

gg_status ggi_comm_recv(struct gg_comm *comm, struct comm_side dst, size_t nbytes, int32_t from)
{
    return message_call(comm, message_from(comm, dst, nbytes, from), "recv");
}

/* In parts of the size that messages have. */
static gg_status exchange_copy(struct exchange *self)
{
    struct message *out = &self->messages[0], *in = &self->messages[1];
    const size_t chunk = out->comm->part;
    gg_status status = exchange_begin(self, false);
    for (size_t at = 0; at < in->nbytes && !status; at += chunk) {
        const size_t part = in->nbytes - at < chunk ? in->nbytes - at : chunk;
        out->at = in->at = at;
        const char *from = message_data(out, part);
        char *to = from ? message_data(in, part) : NULL;
        status = out->failed ? out->failed : in->failed;
        if (to)
            memcpy(to, from, part);
    }
    return ggi_comm_sides_finish(&in->side, &out->side, status);
}

static gg_status exchange_with_itself(struct exchange *self)
{
    const struct message *out = &self->messages[0], *in = &self->messages[1];
    if (out->nbytes != in->nbytes)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "send_recv: this rank sends %zu bytes to itself, but expects %zu",
                        out->nbytes, in->nbytes);
    return exchange_copy(self);
}

static gg_status exchange_check(const struct exchange *self)
{
    const struct message *out = &self->messages[0], *in = &self->messages[1];
    const struct gg_comm *comm = out->comm;
    gg_status status = ggi_comm_rank_check(comm, "to", out->peer);
    if (!status)
        status = ggi_comm_rank_check(comm, "from", in->peer);
    if (!status)
        status = message_side_check(out);
    if (!status)
        status = message_side_check(in);
    if (!status && (out->peer == comm->rank) != (in->peer == comm->rank))
        status = ggi_fail(GG_ERR_INVALID_ARGUMENT,
                          "send_recv: to is %d and from is %d, but a rank exchanges with itself on "
                          "both sides or on neither",
                          out->peer, in->peer);
    return status ? status
                  : ggi_comm_overlap_check(comm, in->side.data, in->nbytes, out->side.data,
                                           out->nbytes);
}

gg_status ggi_comm_send_recv(struct gg_comm *comm, struct comm_side src, size_t src_nbytes,
                             int32_t to, struct comm_side dst, size_t dst_nbytes, int32_t from)
{
    struct exchange exchange = {.messages = {message_to(comm, src, src_nbytes, to),
                                             message_from(comm, dst, dst_nbytes, from)},
                                .count = 2};
    gg_status status = ggi_comm_enter(comm, "send_recv");
    if (status)
        return status;
    status = exchange_check(&exchange);
    if (!status)
        status = to == comm->rank ? exchange_with_itself(&exchange) : exchange_run(&exchange);
    return ggi_comm_leave(comm, status);
}
