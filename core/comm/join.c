/* join.c: how a rank other than 0 connects to rank 0. */
#include "base/error.h"
#include "base/process_state.h"
#include "comm/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/small.h"

/* The pause before the next attempt to connect is a fourth of the time since the first attempt, within these limits. */
#define JOIN_FIRST_PAUSE_NS 1000000u  /* at least */
#define JOIN_PAUSE_NS 20000000u       /* at most */
#define JOIN_LONG_PAUSE_NS 100000000u /* … after the first second */
#define JOIN_GRACE_NS 5000000000u     /* for the report of rank 0, whose timeout ends first */
#define JOIN_CONNECT_NS 1000000000u   /* for one attempt: the next address may answer */

struct join {
    struct gg_comm *comm;
    const struct gg_comm_options *options;
    uint64_t began, until;
    bool heard;        /* rank 0 has answered, and decides from then on which ranks are missing */
    int pass;          /* listens for the file of the segment */
    int socket, error; /* error: of the last attempt to connect; 0: closed without an answer */
};

/* ---- to connect ---- */

static gg_status join_finish_connect(struct join *self, int made)
{
    socklen_t size = sizeof self->error;
    const uint64_t limit = ggi_now_ns() + JOIN_CONNECT_NS;
    gg_status status =
        ggi_comm_socket_wait(made, POLLOUT, limit < self->until ? limit : self->until);
    self->error = ETIMEDOUT;
    if (status == GG_OK)
        getsockopt(made, SOL_SOCKET, SO_ERROR, &self->error, &size);
    return status;
}

/* GG_NOT_READY: no connection yet. */
static gg_status join_connect_to(struct join *self, const struct addrinfo *address)
{
    gg_status status = GG_OK;
    const int made = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    self->error = made < 0 || connect(made, address->ai_addr, address->ai_addrlen) ? errno : 0;
    if (made < 0)
        return GG_NOT_READY;
    if (self->error == EINPROGRESS)
        status = join_finish_connect(self, made);
    if (self->error == 0 && ggi_comm_socket_is_own(made)) /* and would keep rank 0 from listening */
        self->error = ECONNREFUSED;
    if (self->error == 0) {
        self->socket = made;
        return GG_OK;
    }
    close(made);
    return status ? status : GG_NOT_READY;
}

static uint64_t join_pause_ns(uint64_t waited)
{
    const uint64_t most = waited < 1000000000u ? JOIN_PAUSE_NS : JOIN_LONG_PAUSE_NS;
    if (waited / 4 < JOIN_FIRST_PAUSE_NS)
        return JOIN_FIRST_PAUSE_NS;
    return waited / 4 < most ? waited / 4 : most;
}

static gg_status join_pause(struct join *self)
{
    const uint64_t now = ggi_now_ns();
    gg_status status = ggi_comm_socket_wait(-1, 0, now + join_pause_ns(now - self->began));
    if (status == GG_ERR_INTERRUPTED)
        return status;
    return ggi_now_ns() >= self->until ? GG_NOT_READY : GG_OK;
}

/* GG_OK: connected. Rank 0 may start later than this one. */
static gg_status join_connect(struct join *self, const struct addrinfo *addresses)
{
    gg_status status = GG_OK;
    while (!status) {
        for (const struct addrinfo *one = addresses; one; one = one->ai_next)
            if ((status = join_connect_to(self, one)) != GG_NOT_READY)
                return status;
        status = join_pause(self);
    }
    return status;
}

/* ---- to talk ---- */

/* Rank 0 has passed the file before it says so. */
static gg_status join_open(const struct join *self)
{
    const int file = ggi_comm_pass_receive(self->pass);
    if (file >= 0)
        return ggi_comm_segment_open(self->comm, file);
    return ggi_fail(
        GG_ERR_UNSUPPORTED,
        "gg_comm_create: rank 0 passed no shared memory: it belongs to another user, or "
        "this process has too many open files");
}

static void join_reply(const struct join *self, gg_status status)
{
    if (status)
        ggi_comm_reply_write(self->socket, COMM_FAILED, NULL, ggi_comm_reason());
    else
        ggi_comm_reply_write(self->socket, COMM_READY, NULL, "");
}

static const char *join_host(const struct join *self)
{
    return self->options->host ? self->options->host : "127.0.0.1";
}

static gg_status join_other_program(const struct join *self)
{
    const struct comm_ranks none = {{0}};
    return ggi_comm_fail(&none,
                         "gg_comm_create: what listens on %s port %d is not rank 0 of a "
                         "communicator, but another program; choose another port, the same on all "
                         "ranks",
                         join_host(self), self->options->port);
}

/* GG_NOT_READY: rank 0 will say more. */
static gg_status join_answer(struct join *self, const struct comm_reply *reply)
{
    gg_status status;
    switch (reply->kind) {
    case COMM_WAIT:
        return GG_NOT_READY;
    case COMM_MAP:
    case COMM_APART:
        if (self->comm->segment)
            return join_other_program(self);
        if (reply->kind == COMM_APART && !(self->options->flags & GG_COMM_SEVERAL_MACHINES))
            return join_other_program(self);
        status = reply->kind == COMM_MAP ? join_open(self) : ggi_comm_link_open(self->comm);
        join_reply(self, status);
        return status ? status : GG_NOT_READY;
    case COMM_GO:
        return self->comm->segment ? GG_OK : join_other_program(self);
    default:
        return ggi_comm_fail(&reply->ranks, "%s", reply->text);
    }
}

static gg_status join_other_version(const struct join *self, uint32_t protocol)
{
    const struct comm_ranks root = {{1}};
    return ggi_comm_fail(&root,
                         "gg_comm_create: rank 0 has version %u of the protocol, and rank %d has "
                         "version %d; all ranks need the same version of gpuglue",
                         protocol, self->comm->rank, COMM_PROTOCOL);
}

static gg_status join_read(struct join *self, struct comm_reply *reply)
{
    const size_t rest = sizeof *reply - offsetof(struct comm_reply, kind);
    gg_status status =
        ggi_comm_socket_read(self->socket, &reply->head, sizeof reply->head, self->until);
    if (status)
        return status;
    if (reply->head.magic != COMM_MAGIC)
        return join_other_program(self);
    if (reply->head.protocol != COMM_PROTOCOL)
        return join_other_version(self, reply->head.protocol);
    status = ggi_comm_socket_read(self->socket, &reply->kind, rest, self->until);
    reply->text[sizeof reply->text - 1] = 0;
    if (!status)
        ggi_comm_make_printable(reply->text);
    for (int32_t rank = self->comm->size; rank < GG_COMM_SIZE_MAX; rank++)
        ggi_comm_ranks_remove(&reply->ranks, rank);
    return status;
}

/* It may have started as long after this rank as the timeout allows. */
static void join_wait_for_decision(struct join *self)
{
    const uint64_t most = ggi_comm_until(self->options);
    if (!self->heard)
        self->until = most > UINT64_MAX - JOIN_GRACE_NS ? UINT64_MAX : most + JOIN_GRACE_NS;
    self->heard = true;
}

static gg_status join_late(const struct join *self)
{
    const struct comm_ranks root = {{1}};
    char time[32];
    ggi_comm_timeout_text(time, sizeof time, self->options->timeout_ns);
    if (self->socket < 0)
        return ggi_comm_fail(&root,
                             "gg_comm_create: rank 0 did not listen within %s: no connection to %s "
                             "port %d: %s; start rank 0 there, with the same port",
                             time, join_host(self), self->options->port,
                             self->error ? strerror(self->error)
                                         : "what listens there closed the connection");
    if (!self->heard)
        return ggi_comm_fail(&root,
                             "gg_comm_create: what listens on %s port %d did not answer within %s; "
                             "if it is another program than rank 0, choose another port",
                             join_host(self), self->options->port, time);
    return ggi_comm_fail(
        &root,
        "gg_comm_create: rank 0 answered, but did not complete the creation within "
        "%s; it hangs, or has a longer timeout: give all ranks the same",
        time);
}

static gg_status join_lost(void)
{
    const struct comm_ranks root = {{1}};
    return ggi_comm_fail(&root, "gg_comm_create: rank 0 ended while the ranks connected");
}

/* GG_ERR_CLOSED without an answer: rank 0 of another communicator stopped listening at this moment. */
static gg_status join_talk(struct join *self, const struct comm_hello *hello)
{
    struct comm_reply reply;
    gg_status status = GG_NOT_READY;
    if (!ggi_comm_socket_write(self->socket, hello, sizeof *hello))
        return GG_ERR_CLOSED;
    while (status == GG_NOT_READY) {
        status = join_read(self, &reply);
        if (status == GG_NOT_READY)
            return join_late(self);
        if (status)
            return status == GG_ERR_CLOSED && self->heard ? join_lost() : status;
        join_wait_for_decision(self);
        status = join_answer(self, &reply);
    }
    return status;
}

static gg_status join_introduce(struct join *self)
{
    struct comm_hello hello;
    ggi_comm_hello_fill(&hello, self->options);
    self->pass = ggi_comm_pass_listen(&hello.pass);
    if (self->pass < 0)
        return ggi_fail(GG_ERR_UNSUPPORTED, "gg_comm_create: a Unix socket cannot be created: %s",
                        strerror(errno));
    gg_status status = join_talk(self, &hello);
    close(self->pass);
    return status;
}

static gg_status join_attempt(struct join *self, const struct addrinfo *addresses)
{
    gg_status status = join_connect(self, addresses);
    if (status == GG_NOT_READY)
        return join_late(self);
    if (status)
        return status;
    status = join_introduce(self);
    if (!status && self->comm->link)
        ggi_comm_link_add(self->comm, 0, self->socket);
    else
        close(self->socket);
    self->socket = -1;
    return status;
}

gg_status ggi_comm_join(struct gg_comm *comm, const struct gg_comm_options *options)
{
    struct join self = {.comm = comm,
                        .options = options,
                        .began = ggi_now_ns(),
                        .until = ggi_comm_until(options),
                        .socket = -1,
                        .error = ECONNREFUSED};
    struct addrinfo *addresses;
    gg_status status = ggi_comm_resolve(options, &addresses);
    if (status)
        return status;
    while ((status = join_attempt(&self, addresses)) == GG_ERR_CLOSED) {
        status = join_pause(&self);
        if (status)
            break;
    }
    freeaddrinfo(addresses);
    return status == GG_NOT_READY ? join_late(&self) : status;
}
