/* link.c: of ranks on several machines, connections in place of shared memory.
 *
 * Each rank keeps the connection to rank 0 by which it was created, and has a segment of its own. What a rank writes about
 * itself there is sent to rank 0, which passes it on: so each segment has what all ranks have written, a tenth of a second
 * later. The kernel closes the connection of a process that ends. No data of operations pass through it. */
#include "base/error.h"
#include "base/process_state.h"
#include "comm/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/small.h"

#define LINK_SECONDS 20 /* until a machine that does not answer is one whose ranks have ended */
#define LINK_BUFFER (256 << 10)    /* so that what is not acknowledged has room */
#define LINK_BLOCK_MAX 4096        /* bytes that a rank gives to a gather */
#define LINK_GRACE_NS 5000000000u  /* for rank 0's report, whose timeout ends first */
#define LINK_SPREAD_NS 1000000000u /* at least, for all ranks to read what rank 0 has gathered */

enum { LINK_STATE, LINK_MESSAGES, LINK_FAILURE, LINK_BLOCK };
enum {
    STATE_CLOSED = 1,
    STATE_CREATED = 2,
    STATE_WORKING = 4,
    STATE_FINISHED = 8,
    STATE_GONE = 16,
    STATE_ENDED = 32,
    STATE_HELD = 64,
    STATE_ASKS = 128
};

struct link_state {
    uint32_t flags, beats;
    uint64_t collective, complete, incomplete;
};

struct link_messages {
    uint32_t sends, receives;
};

/* Begins each message; nbytes follow. */
struct link_head {
    uint32_t kind, nbytes;
    int32_t rank; /* STATE: whose; MESSAGES: of rank 0 whose, to rank 0 with whom; FAILURE: why */
    struct link_messages messages; /* MESSAGES */
    struct link_state state;       /* STATE */
};

struct link_failure {
    struct comm_ranks ranks;
    char text[COMM_BROKEN_TEXT];
};

/* The other end of a connection: of rank 0 each other rank, of each other rank only rank 0. */
struct link_peer {
    int socket;                 /* -1: there is none, or it has ended */
    struct comm_ranks news;     /* ranks whose state it does not have yet */
    struct comm_ranks messages; /* ranks of whose messages it does not have the numbers */
    bool reported;              /* it has the failure */
    size_t got;                 /* of head, then of data */
    struct link_head head;
    char *data;
};

/* Of a gather. */
struct link_block {
    char *data; /* NULL: it has not come */
    size_t nbytes;
};

struct comm_link {
    pthread_mutex_t lock;
    struct link_state *states;      /* of all ranks */
    struct link_messages *messages; /* of this rank with all others, as they were sent */
    struct link_block *blocks;      /* of all ranks */
    struct link_peer peers[];
};

/* ---- what ranks know of each other ---- */

/* What a rank has queued to send to another, and to receive from it. */
static struct link_messages link_messages_of(const struct gg_comm *comm, int32_t from, int32_t to)
{
    return (struct link_messages){.sends = atomic_load(&comm_pair(comm, from, to)->sends),
                                  .receives = atomic_load(&comm_pair(comm, to, from)->receives)};
}

/* Rank 0 passes on what it learns; the others send only what is theirs. */
static void link_spread(struct gg_comm *comm, int32_t rank)
{
    for (int32_t peer = 0; peer < comm->size; peer++)
        if (peer != rank && (comm->rank == 0 || rank == comm->rank))
            ggi_comm_ranks_add(&comm->link->peers[peer].news, rank);
}

/* Whether a rank waits for beats. */
static bool link_asks(const struct gg_comm *comm)
{
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (atomic_load(&comm_rank(comm, rank)->asks))
            return true;
    return false;
}

static void link_read_flags(struct gg_comm *comm)
{
    const struct comm_rank *own = comm_rank(comm, comm->rank);
    struct link_state *last = &comm->link->states[comm->rank], now = {0};
    now.beats =
        link_asks(comm) ? atomic_load(&own->beats) : last->beats; /* before what they are for */
    now.flags = (atomic_load(&own->closed) ? STATE_CLOSED : 0) |
                (atomic_load(&own->created) ? STATE_CREATED : 0) |
                (atomic_load(&own->working) ? STATE_WORKING : 0) |
                (atomic_load(&own->finished) ? STATE_FINISHED : 0) |
                (atomic_load(&own->gone) ? STATE_GONE : 0) |
                (atomic_load(&own->held) ? STATE_HELD : 0) |
                (atomic_load(&own->asks) ? STATE_ASKS : 0);
    now.collective = atomic_load(&own->collective);
    now.complete = atomic_load(&own->complete);
    now.incomplete = atomic_load(&own->incomplete);
    if (memcmp(&now, last, sizeof now) != 0) {
        *last = now;
        link_spread(comm, comm->rank);
    }
}

/* The flags are read before what was queued, and sent behind it: a rank that has finished has all of it. */
static void link_read_own(struct gg_comm *comm)
{
    link_read_flags(comm);
    for (int32_t rank = 0; rank < comm->size; rank++) {
        struct link_messages *last = &comm->link->messages[rank];
        const struct link_messages now = link_messages_of(comm, comm->rank, rank);
        if (now.sends == last->sends && now.receives == last->receives)
            continue;
        *last = now;
        if (comm->rank == 0)
            ggi_comm_ranks_add(&comm->link->peers[rank].messages, 0);
        else
            ggi_comm_ranks_add(&comm->link->peers[0].messages, rank);
    }
}

static void link_learn_messages(struct gg_comm *comm, int32_t peer, const struct link_head *head)
{
    const int32_t from = comm->rank ? head->rank : peer;
    const int32_t to = comm->rank ? comm->rank : head->rank;
    atomic_store(&comm_pair(comm, from, to)->sends, head->messages.sends);
    atomic_store(&comm_pair(comm, to, from)->receives, head->messages.receives);
    if (to != comm->rank)
        ggi_comm_ranks_add(&comm->link->peers[to].messages, from);
}

static void link_learn(struct gg_comm *comm, int32_t rank, struct link_state state)
{
    struct comm_rank *other = comm_rank(comm, rank);
    atomic_store(&other->complete, state.complete);
    atomic_store(&other->incomplete, state.incomplete);
    atomic_store(&other->held, (state.flags & STATE_HELD) != 0);
    atomic_store(&other->asks, (state.flags & STATE_ASKS) != 0);
    atomic_store(&other->collective, state.collective);
    atomic_store(&other->created, state.flags & STATE_CREATED ? COMM_CREATION_FAILED : 0);
    atomic_store(&other->working, (state.flags & STATE_WORKING) != 0);
    if (!atomic_exchange(&other->finished, (state.flags & STATE_FINISHED) != 0))
        atomic_fetch_add(&comm->segment->finished, (state.flags & STATE_FINISHED) != 0);
    atomic_store(&other->gone, (state.flags & STATE_GONE) != 0);
    atomic_store(&other->closed, (state.flags & STATE_CLOSED) != 0);
    atomic_store(&other->ended, (state.flags & STATE_ENDED) != 0);
    atomic_store(&other->beats, state.beats);
    comm->link->states[rank] = state;
    link_spread(comm, rank);
}

static void link_learn_failure(struct gg_comm *comm, uint32_t why, struct link_failure *failure)
{
    bool first = true;
    if (why >= COMM_STUCK) {
        ggi_comm_declare_unmarked(comm, why);
        return;
    }
    failure->text[sizeof failure->text - 1] = 0;
    ggi_comm_make_printable(failure->text);
    for (int32_t rank = 0; rank < comm->size; rank++) {
        if (!ggi_comm_ranks_has(&failure->ranks, rank))
            continue;
        if (first && rank != comm->rank && !atomic_load(&comm_rank(comm, rank)->lost))
            memcpy(comm_rank(comm, rank)->broken, failure->text, sizeof failure->text);
        ggi_comm_mark(comm, rank, why);
        first = false;
    }
    ggi_comm_declare(comm);
}

/* ---- to read ---- */

static void link_lost(struct gg_comm *comm, int32_t rank)
{
    struct link_peer *peer = &comm->link->peers[rank];
    struct link_state state = comm->link->states[rank];
    ggi_close_file(peer->socket);
    peer->socket = -1;
    state.flags |= STATE_ENDED;
    link_learn(comm, rank, state);
}

/* Whether a rank may say this: of another rank only rank 0 does. */
static bool link_head_is_good(const struct gg_comm *comm, int32_t peer, const struct link_head *head)
{
    const size_t blocks = comm->rank ? (size_t)comm->size : 1;
    if (head->kind == LINK_STATE)
        return !head->nbytes && head->rank >= 0 && head->rank < comm->size &&
               head->rank != comm->rank && (comm->rank || head->rank == peer);
    if (head->kind == LINK_MESSAGES)
        return !head->nbytes && head->rank >= 0 && head->rank < comm->size &&
               head->rank != (comm->rank ? comm->rank : peer);
    if (head->kind == LINK_FAILURE)
        return head->nbytes == sizeof(struct link_failure) && head->rank >= COMM_ENDED &&
               head->rank <= COMM_UNCONNECTED;
    return head->kind == LINK_BLOCK && head->nbytes && head->nbytes <= blocks * LINK_BLOCK_MAX &&
           !comm->link->blocks[peer].data;
}

static void link_take(struct gg_comm *comm, int32_t rank)
{
    struct link_peer *peer = &comm->link->peers[rank];
    const struct link_head *head = &peer->head;
    char *data = peer->data;
    peer->data = NULL;
    peer->got = 0;
    if (head->kind == LINK_STATE)
        link_learn(comm, head->rank, head->state);
    else if (head->kind == LINK_MESSAGES)
        link_learn_messages(comm, rank, head);
    else if (head->kind == LINK_FAILURE)
        link_learn_failure(comm, (uint32_t)head->rank, (struct link_failure *)(void *)data);
    else {
        comm->link->blocks[rank] = (struct link_block){data, head->nbytes};
        return;
    }
    free(data);
}

/* Continue with what has come. False: nothing more has. */
static bool link_continue(struct gg_comm *comm, int32_t rank)
{
    struct link_peer *peer = &comm->link->peers[rank];
    const size_t head = sizeof peer->head, at = peer->got;
    const size_t end = at < head ? head : head + peer->head.nbytes;
    void *to = at < head ? (char *)&peer->head + at : peer->data + (at - head);
    const ssize_t some = recv(peer->socket, to, end - at, MSG_DONTWAIT);
    if (some < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (some > 0)
        peer->got += (size_t)some;
    bool good = some > 0;
    if (good && at < head && peer->got == head) {
        good = link_head_is_good(comm, rank, &peer->head) &&
               (!peer->head.nbytes || (peer->data = malloc(peer->head.nbytes)));
    }
    if (!good)
        link_lost(comm, rank);
    else if (peer->got >= head && peer->got == head + peer->head.nbytes)
        link_take(comm, rank);
    return good;
}

/* ---- to write ---- */

static bool link_has_room(const struct link_peer *peer)
{
    struct pollfd poller = {.fd = peer->socket, .events = POLLOUT};
    return peer->socket >= 0 && poll(&poller, 1, 0) > 0 && poller.revents & POLLOUT;
}

static bool link_write_states(struct gg_comm *comm, struct link_peer *peer)
{
    struct link_head heads[GG_COMM_SIZE_MAX];
    size_t count = 0;
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (ggi_comm_ranks_has(&peer->news, rank))
            heads[count++] = (struct link_head){
                .kind = LINK_STATE, .rank = rank, .state = comm->link->states[rank]};
    peer->news = (struct comm_ranks){{0}};
    return !count || ggi_comm_socket_write(peer->socket, heads, count * sizeof heads[0]);
}

static bool link_write_messages(struct gg_comm *comm, int32_t peer)
{
    struct link_head heads[GG_COMM_SIZE_MAX];
    struct comm_ranks *news = &comm->link->peers[peer].messages;
    size_t count = 0;
    for (int32_t rank = 0; rank < comm->size; rank++) {
        if (!ggi_comm_ranks_has(news, rank))
            continue;
        const struct link_messages now = comm->rank ? link_messages_of(comm, comm->rank, rank)
                                                    : link_messages_of(comm, rank, peer);
        heads[count++] = (struct link_head){.kind = LINK_MESSAGES, .rank = rank, .messages = now};
    }
    *news = (struct comm_ranks){{0}};
    return !count ||
           ggi_comm_socket_write(comm->link->peers[peer].socket, heads, count * sizeof heads[0]);
}

static bool link_write_failure(struct gg_comm *comm, struct link_peer *peer, uint32_t why)
{
    struct {
        struct link_head head;
        struct link_failure failure;
    } message = {
        .head = {.kind = LINK_FAILURE, .nbytes = sizeof message.failure, .rank = (int32_t)why}};
    for (int32_t rank = comm->size - 1; rank >= 0; rank--)
        if (atomic_load(&comm_rank(comm, rank)->lost) == why) {
            ggi_comm_ranks_add(&message.failure.ranks, rank);
            memcpy(message.failure.text, comm_rank(comm, rank)->broken, COMM_BROKEN_TEXT);
        }
    peer->reported = true;
    return ggi_comm_socket_write(peer->socket, &message, sizeof message);
}

/* A message is written whole, since a socket that is ready has room for many. */
static void link_send_news(struct gg_comm *comm, int32_t rank)
{
    struct link_peer *peer = &comm->link->peers[rank];
    const uint32_t why = atomic_load(&comm->segment->failed);
    if (!link_has_room(peer))
        return;
    if (!link_write_messages(comm, rank) || !link_write_states(comm, peer) ||
        (why && !peer->reported && !link_write_failure(comm, peer, why)))
        link_lost(comm, rank);
}

/* With the lock held. Nothing is written to @p except. */
static void link_exchange(struct gg_comm *comm, int32_t except)
{
    struct comm_link *link = comm->link;
    for (int32_t rank = 0; rank < comm->size; rank++)
        while (link->peers[rank].socket >= 0 && link_continue(comm, rank))
            ;
    link_read_own(comm);
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (rank != except)
            link_send_news(comm, rank);
}

static void link_sync(struct gg_comm *comm)
{
    if (pthread_mutex_trylock(&comm->link->lock)) /* another thread does it */
        return;
    link_exchange(comm, -1);
    pthread_mutex_unlock(&comm->link->lock);
}

/* ---- to gather ---- */

static void link_poll(struct gg_comm *comm)
{
    struct pollfd pollers[GG_COMM_SIZE_MAX];
    for (int32_t rank = 0; rank < comm->size; rank++)
        pollers[rank] = (struct pollfd){.fd = comm->link->peers[rank].socket, .events = POLLIN};
    poll(pollers, (nfds_t)comm->size, (int)(GGI_SLICE_NS / 1000000));
    link_sync(comm);
}

static bool link_is_rank(const void *what, int32_t rank)
{
    return rank == *(const int32_t *)what;
}

/* The lock is held, so that nothing else is written into a block. The other ranks get their news meanwhile. */
static gg_status link_wait_for_room(struct comm_wait *wait, int32_t rank)
{
    const struct link_peer *peer = &wait->comm->link->peers[rank];
    struct pollfd poller = {.fd = peer->socket, .events = POLLOUT};
    gg_status status = GG_OK;
    while (!status && peer->socket >= 0 && poll(&poller, 1, (int)(GGI_SLICE_NS / 1000000)) <= 0) {
        link_exchange(wait->comm, rank);
        status = ggi_comm_wait_check(wait, link_is_rank, &rank);
    }
    return status;
}

/* Write a block, or all of them, for which the socket may lack room: a rank that is suspended reads nothing. */
static gg_status link_write_block(struct comm_wait *wait, int32_t rank, const void *data,
                                  size_t nbytes)
{
    const struct link_head head = {.kind = LINK_BLOCK, .nbytes = (uint32_t)nbytes};
    struct gg_comm *comm = wait->comm;
    struct link_peer *peer = &comm->link->peers[rank];
    size_t done = 0;
    pthread_mutex_lock(&comm->link->lock);
    gg_status status = link_wait_for_room(wait, rank);
    bool good = !status && ggi_comm_socket_write(peer->socket, &head, sizeof head);
    const bool begun = !status;
    while (good && done < nbytes) {
        const ssize_t some = send(peer->socket, (const char *)data + done, nbytes - done,
                                  MSG_DONTWAIT | MSG_NOSIGNAL);
        done += some > 0 ? (size_t)some : 0;
        good = some > 0 || errno == EAGAIN || errno == EINTR;
        if (some <= 0 && good)
            good = !(status = link_wait_for_room(wait, rank));
    }
    if (!good && begun && peer->socket >= 0)
        link_lost(comm, rank);
    pthread_mutex_unlock(&comm->link->lock);
    if (status)
        link_sync(comm); /* the failure was declared while the lock was held */
    return status;
}

/* Whether the gather waits for a rank: only rank 0 waits for others. */
static bool link_misses(const void *what, int32_t rank)
{
    const struct gg_comm *comm = what;
    return rank != comm->rank && (comm->rank == 0 || rank == 0) && !comm->link->blocks[rank].data;
}

static bool link_has_all(const struct gg_comm *comm)
{
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (link_misses(comm, rank))
            return false;
    return true;
}

/* False: its length is another one, so the rank calls another operation. */
static bool link_take_block(struct gg_comm *comm, int32_t rank, char *to, size_t nbytes)
{
    struct link_block *block = &comm->link->blocks[rank];
    const bool fits = block->nbytes == nbytes;
    if (fits)
        memcpy(to, block->data, nbytes);
    free(block->data);
    block->data = NULL;
    return fits;
}

static gg_status link_disagree(const struct gg_comm *comm, int32_t rank)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: ranks 0 and %d call different operations; all ranks must call the same "
                    "ones in the same order",
                    atomic_load(&comm->call), (int)rank);
}

/* Instead of the blocks, all get the number of a rank whose operation is not that of rank 0: one byte, and so another length. */
static gg_status link_spread_blocks(struct comm_wait *wait, char *all, size_t nbytes)
{
    struct gg_comm *comm = wait->comm;
    const uint64_t least = ggi_now_ns() + LINK_SPREAD_NS;
    gg_status status = GG_OK;
    uint8_t other = 0;
    for (int32_t rank = 1; rank < comm->size; rank++)
        if (!link_take_block(comm, rank, all + (size_t)rank * nbytes, nbytes))
            other = (uint8_t)rank;
    const void *const data = other ? (const void *)&other : all;
    wait->until = wait->until < least ? least : wait->until;
    for (int32_t rank = 1; rank < comm->size && !status; rank++)
        if (comm->link->peers[rank].socket >= 0)
            status = link_write_block(wait, rank, data, other ? 1 : (size_t)comm->size * nbytes);
    return status || !other ? status : link_disagree(comm, other);
}

static gg_status link_unpack(struct comm_wait *wait, char *all, size_t nbytes)
{
    struct gg_comm *comm = wait->comm;
    const struct link_block *block = &comm->link->blocks[0];
    if (comm->rank == 0)
        return link_spread_blocks(wait, all, nbytes);
    const uint8_t other = block->nbytes == 1 ? *(const uint8_t *)block->data : 0;
    return link_take_block(comm, 0, all, (size_t)comm->size * nbytes) ? GG_OK
                                                                      : link_disagree(comm, other);
}

gg_status ggi_comm_link_gather(struct gg_comm *comm, void *all, const void *mine, size_t nbytes)
{
    struct comm_wait wait = ggi_comm_wait_begin(comm);
    gg_status status = ggi_comm_state(comm);
    if (status)
        return status;
    memcpy((char *)all + (size_t)comm->rank * nbytes, mine, nbytes);
    if (comm->rank) {
        wait.until =
            wait.until > UINT64_MAX - LINK_GRACE_NS ? UINT64_MAX : wait.until + LINK_GRACE_NS;
        status = link_write_block(&wait, 0, mine, nbytes);
    }
    if (status)
        return status;
    while (!link_has_all(comm)) {
        link_poll(comm);
        status = ggi_comm_wait_check(&wait, link_misses, comm);
        if (status && (status == GG_ERR_INTERRUPTED || !link_has_all(comm)))
            return status;
    }
    return link_unpack(&wait, all, nbytes);
}

/* ---- creation ---- */

gg_status ggi_comm_link_open(struct gg_comm *comm)
{
    const size_t size = (size_t)comm->size;
    struct comm_link *link = calloc(1, sizeof *link + size * sizeof link->peers[0]);
    if (link) {
        link->states = calloc(size, sizeof *link->states);
        link->messages = calloc(size, sizeof *link->messages);
        link->blocks = calloc(size, sizeof *link->blocks);
        pthread_mutex_init(&link->lock, NULL);
        for (size_t rank = 0; rank < size; rank++)
            link->peers[rank].socket = -1;
    }
    comm->link = link;
    if (!link || !link->states || !link->messages || !link->blocks)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_create: no memory for connections");
    comm->sync = link_sync;
    return ggi_comm_segment_alone(comm);
}

void ggi_comm_link_add(struct gg_comm *comm, int32_t rank, int socket)
{
    const struct {
        int level, name, value;
    } options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                   {SOL_SOCKET, SO_SNDBUF, LINK_BUFFER},
                   {IPPROTO_TCP, TCP_NODELAY, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, LINK_SECONDS / 4},
                   {IPPROTO_TCP, TCP_KEEPINTVL, LINK_SECONDS / 4},
                   {IPPROTO_TCP, TCP_KEEPCNT, 3},
                   {IPPROTO_TCP, TCP_USER_TIMEOUT, LINK_SECONDS * 1000}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        setsockopt(socket, options[i].level, options[i].name, &options[i].value, sizeof(int));
    comm->link->peers[rank].socket = socket;
    if (!ggi_close_in_child(socket)) /* a child would hide the end of this rank */
        link_lost(comm, rank);
}

bool ggi_comm_is_loopback(const struct sockaddr_storage *address)
{
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    const struct in_addr *four = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    if (address->ss_family == AF_INET)
        return ntohl(four->s_addr) >> 24 == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(six) ||
           (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == IN_LOOPBACKNET);
}

/* Other machines do not reach a loopback address, nor a link-local one of IPv6 by its number alone. */
static bool link_is_reachable(const struct sockaddr_storage *address)
{
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
    return !ggi_comm_is_loopback(address) &&
           !(address->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

socklen_t ggi_comm_link_address(struct gg_comm *comm, struct sockaddr_storage *address)
{
    socklen_t size = 0;
    bool reachable = false;
    pthread_mutex_lock(&comm->link->lock);
    for (int32_t rank = 0; rank < comm->size && !reachable; rank++) {
        struct sockaddr_storage other;
        socklen_t other_size = sizeof other;
        if (getsockname(comm->link->peers[rank].socket, (struct sockaddr *)&other, &other_size))
            continue;
        reachable = link_is_reachable(&other);
        if (size && !reachable)
            continue;
        memcpy(address, &other, sizeof other);
        size = other_size;
    }
    pthread_mutex_unlock(&comm->link->lock);
    ((struct sockaddr_in *)(void *)address)->sin_port = 0; /* that of IPv6 is at the same place */
    return size;
}

/* A forked child has closed its copies of the sockets. */
void ggi_comm_link_close(struct gg_comm *comm)
{
    struct comm_link *link = comm->link;
    const bool forked = comm->generation != atomic_load(&ggi_generation);
    for (int32_t rank = 0; rank < comm->size; rank++) {
        if (link->peers[rank].socket >= 0 && !forked)
            ggi_close_file(link->peers[rank].socket);
        free(link->peers[rank].data);
        if (link->blocks)
            free(link->blocks[rank].data);
    }
    pthread_mutex_destroy(&link->lock);
    free(link->states);
    free(link->messages);
    free(link->blocks);
    free(link);
}
