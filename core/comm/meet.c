/* meet.c: how rank 0 gathers the others. */
#include "base/error.h"
#include "base/process_state.h"
#include "base/text.h"
#include "comm/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/small.h"

#define MEET_STRANGERS 16 /* connections whose rank is not known yet */
#define MEET_ROOM (GG_COMM_SIZE_MAX + MEET_STRANGERS)

struct guest {
    int socket;
    int32_t rank; /* -1: not known */
    size_t got;   /* of hello */
    struct comm_hello hello;
};

struct rendezvous {
    struct gg_comm *comm;
    const struct gg_comm_options *options;
    uint64_t until;
    int listener;
    int count;
    struct guest guests[MEET_ROOM];
    struct comm_hello mine;
    struct comm_ranks present, failed;
    bool apart;        /* a guest shares no memory with rank 0 */
    char refusal[500]; /* why the last one was refused */
};

/* ---- to listen ---- */

static gg_status listener_failed(const struct rendezvous *self, int error)
{
    const struct comm_ranks none = {{0}};
    return ggi_comm_fail(&none, "gg_comm_create: rank 0 cannot listen on %s port %d: %s; %s",
                         self->options->host ? self->options->host : "127.0.0.1",
                         self->options->port, strerror(error),
                         error == EADDRNOTAVAIL ? "rank 0 must run on that machine"
                                                : "choose another port, the same on all ranks");
}

static gg_status rendezvous_listen(struct rendezvous *self)
{
    struct addrinfo *addresses;
    gg_status status = ggi_comm_resolve(self->options, &addresses);
    if (status)
        return status;
    self->listener = ggi_comm_listen(addresses, MEET_ROOM);
    const int error = errno;
    freeaddrinfo(addresses);
    return self->listener < 0 ? listener_failed(self, error) : GG_OK;
}

/* ---- guests ---- */

static void guest_drop(struct rendezvous *self, int at)
{
    struct guest *guest = &self->guests[at];
    if (guest->rank >= 0)
        ggi_comm_ranks_remove(&self->present, guest->rank);
    close(guest->socket);
    *guest = self->guests[--self->count];
}

static void rendezvous_report(const struct rendezvous *self, uint32_t kind, const char *text)
{
    for (int i = 0; i < self->count; i++)
        if (self->guests[i].rank >= 0)
            ggi_comm_reply_write(self->guests[i].socket, kind, &self->failed, text);
}

static bool hello_same_process(const struct comm_hello *a, const struct comm_hello *b)
{
    return !strcmp(a->process, b->process) && !strcmp(a->machine, b->machine);
}

static bool guest_same_process(const struct rendezvous *self, const struct comm_hello *hello)
{
    bool same = hello_same_process(hello, &self->mine);
    for (int i = 0; i < self->count; i++)
        same = same ||
               (self->guests[i].rank >= 0 && hello_same_process(hello, &self->guests[i].hello));
    return same;
}

/* Containers of one machine may share no memory either. */
static bool guest_is_apart(const struct rendezvous *self, const struct comm_hello *hello)
{
    if (!hello->several || !self->mine.several)
        return false;
    return strcmp(hello->machine, self->mine.machine) != 0 ||
           (!ggi_comm_pass_send(&hello->pass, -1) && errno != EPERM);
}

struct id_text {
    char text[64];
};
static struct id_text id_printable(const char *id)
{
    struct id_text out;
    snprintf(out.text, sizeof out.text, "%s", id);
    ggi_comm_make_printable(out.text);
    return out;
}

/* Why rank 0 does not accept a guest; empty if it does. */
static void guest_judge(const struct rendezvous *self, const struct comm_hello *hello, bool apart,
                        struct ggi_text *why)
{
    if (strcmp(hello->id, self->mine.id))
        ggi_text_add(why,
                     "its id is '%s', and rank 0 has '%s'; give all ranks the same id, and "
                     "each communicator a port of its own",
                     id_printable(hello->id).text, id_printable(self->mine.id).text);
    else if (hello->size != self->mine.size)
        ggi_text_add(why, "its size is %d, and rank 0 has %d; give all ranks the same size",
                     hello->size, self->mine.size);
    else if (hello->rank < 1 || hello->rank >= self->mine.size)
        ggi_text_add(why, "its rank is not between 1 and %d", self->mine.size - 1);
    else if (!apart && strcmp(hello->machine, self->mine.machine))
        ggi_text_add(why, "it runs on another machine than rank 0, and shared memory is within "
                          "one; between machines ranks need devices that NCCL or RCCL connects, "
                          "or MPI (Communicator.from_mpi)");
    else if (ggi_comm_ranks_has(&self->present, hello->rank))
        ggi_text_add(why, "another process has connected as rank %d; give each process its own rank",
                     hello->rank);
    else if (!apart && !ggi_comm_pass_send(&hello->pass, -1))
        ggi_text_add(why, "%s",
                     errno == EPERM
                         ? "it belongs to another user; start all ranks as the same user"
                         : "its Unix socket cannot be reached; all ranks need the same network "
                           "namespace (containers: --network=host)");
    else if (guest_same_process(self, hello))
        ggi_text_add(why, "it is in the same process as another rank; each rank needs a process "
                          "of its own");
}

/* The reason is self->refusal. */
static void guest_refuse(struct rendezvous *self, int at)
{
    const struct comm_ranks none = {{0}};
    char text[sizeof self->refusal + 20];
    snprintf(text, sizeof text, "gg_comm_create: %s", self->refusal);
    ggi_comm_reply_write(self->guests[at].socket, COMM_REFUSED, &none, text);
    guest_drop(self, at);
}

/* False: dropped, since it is another program or has another version. */
static bool guest_check_head(struct rendezvous *self, int at)
{
    const struct comm_head head = self->guests[at].hello.head;
    if (head.magic != COMM_MAGIC) {
        guest_drop(self, at);
        return false;
    }
    if (head.protocol == COMM_PROTOCOL)
        return true;
    snprintf(self->refusal, sizeof self->refusal,
             "rank 0 has version %d of the protocol, and a process that connected has version %u; "
             "all ranks need the same version of gpuglue",
             COMM_PROTOCOL, head.protocol);
    guest_refuse(self, at);
    return false;
}

static void guest_admit(struct rendezvous *self, int at)
{
    struct guest *guest = &self->guests[at];
    struct comm_hello *hello = &guest->hello;
    struct ggi_text why = GGI_TEXT(300);
    hello->id[sizeof hello->id - 1] = hello->machine[sizeof hello->machine - 1] = 0;
    hello->process[sizeof hello->process - 1] = 0;
    const bool apart = guest_is_apart(self, hello);
    guest_judge(self, hello, apart, &why);
    if (why.used) {
        snprintf(self->refusal, sizeof self->refusal, "rank 0 refused rank %d: %s", hello->rank,
                 why.data);
        guest_refuse(self, at);
        return;
    }
    guest->rank = hello->rank;
    self->apart = self->apart || apart;
    ggi_comm_ranks_add(&self->present, guest->rank);
    if (!ggi_comm_reply_write(guest->socket, COMM_WAIT, NULL, ""))
        guest_drop(self, at);
}

/* A guest whose rank is known sends nothing more at this point: a readable socket means that its process has ended. */
static void guest_read(struct rendezvous *self, int at)
{
    struct guest *guest = &self->guests[at];
    const size_t room = sizeof guest->hello - guest->got;
    const bool known = guest->rank >= 0;
    char extra;
    const ssize_t got =
        known ? recv(guest->socket, &extra, 1, MSG_DONTWAIT)
              : recv(guest->socket, (char *)&guest->hello + guest->got, room, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0 || known) {
        guest_drop(self, at);
        return;
    }
    guest->got += (size_t)got;
    if (guest->got >= sizeof guest->hello.head && !guest_check_head(self, at))
        return;
    if (guest->got == sizeof guest->hello)
        guest_admit(self, at);
}

static bool guest_make_room(struct rendezvous *self)
{
    for (int i = 0; self->count == MEET_ROOM && i < self->count; i++)
        if (self->guests[i].rank < 0)
            guest_drop(self, i);
    return self->count < MEET_ROOM;
}

static void rendezvous_accept(struct rendezvous *self)
{
    const int made = accept4(self->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (made < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            poll(NULL, 0, (int)(GGI_SLICE_NS / 1000000)); /* the listener remains readable */
        return;
    }
    if (!guest_make_room(self)) {
        close(made);
        return;
    }
    self->guests[self->count++] = (struct guest){.socket = made, .rank = -1};
}

/* ---- to gather ---- */

static gg_status rendezvous_late(struct rendezvous *self, const char *did_not)
{
    char text[400], time[32];
    ggi_comm_timeout_text(time, sizeof time, self->options->timeout_ns);
    return ggi_comm_fail(&self->failed,
                         "gg_comm_create: %s of %d did not %s within %s; start all "
                         "ranks, with the same host, port and size%s%s%s",
                         ggi_comm_ranks_text(text, sizeof text, &self->failed), self->comm->size,
                         did_not, time, self->refusal[0] ? " (" : "", self->refusal,
                         self->refusal[0] ? ")" : "");
}

static void rendezvous_find_missing(struct rendezvous *self)
{
    for (int32_t rank = 0; rank < self->comm->size; rank++)
        if (!ggi_comm_ranks_has(&self->present, rank))
            ggi_comm_ranks_add(&self->failed, rank);
}

/* Read what arrives within one slice. From the last guest to the first, since dropping one moves the last to its place. */
static void rendezvous_slice(struct rendezvous *self)
{
    struct pollfd pollers[MEET_ROOM + 1];
    const int count = self->count;
    for (int i = 0; i < count; i++)
        pollers[i] = (struct pollfd){.fd = self->guests[i].socket, .events = POLLIN};
    pollers[count] = (struct pollfd){.fd = self->listener, .events = POLLIN};
    if (poll(pollers, (nfds_t)count + 1, (int)(GGI_SLICE_NS / 1000000)) <= 0)
        return;
    for (int i = count - 1; i >= 0; i--)
        if (pollers[i].revents && i < self->count && self->guests[i].socket == pollers[i].fd)
            guest_read(self, i);
    if (pollers[count].revents)
        rendezvous_accept(self);
}

static gg_status rendezvous_gather(struct rendezvous *self)
{
    ggi_comm_ranks_add(&self->present, 0);
    while (ggi_comm_ranks_count(&self->present) < self->comm->size) {
        rendezvous_slice(self);
        if (ggi_interrupted())
            return ggi_fail(GG_ERR_INTERRUPTED, "gg_comm_create: the wait was interrupted");
        if (ggi_now_ns() >= self->until && ggi_comm_ranks_count(&self->present) < self->comm->size) {
            rendezvous_find_missing(self);
            return rendezvous_late(self, "connect");
        }
    }
    return GG_OK;
}

/* ---- to agree ---- */

static gg_status guest_confirm(struct rendezvous *self, const struct guest *guest)
{
    struct comm_reply reply;
    gg_status status = ggi_comm_socket_read(guest->socket, &reply, sizeof reply, self->until);
    const bool ready = status == GG_OK && reply.head.magic == COMM_MAGIC && reply.kind == COMM_READY;
    if (ready && !ggi_comm_rank_ended(self->comm, guest->rank))
        return GG_OK;
    if (status == GG_ERR_INTERRUPTED)
        return status;
    ggi_comm_ranks_add(&self->failed, guest->rank);
    if (ready)
        return ggi_comm_fail(&self->failed,
                             "gg_comm_create: rank %d did not lock the shared memory, or rank 0 "
                             "cannot see its lock; communicators need record locks (fcntl)",
                             guest->rank);
    if (status == GG_NOT_READY)
        return rendezvous_late(self, self->apart ? "answer" : "map the shared memory");
    reply.text[sizeof reply.text - 1] = 0;
    if (!status)
        ggi_comm_make_printable(reply.text);
    return ggi_comm_fail(&self->failed, "gg_comm_create: rank %d: %s", guest->rank,
                         status ? "it ended while the ranks connected" : reply.text);
}

/* A rank that has ended is found when it does not confirm. */
static void rendezvous_pass(struct rendezvous *self)
{
    for (int i = 0; i < self->count; i++)
        if (self->guests[i].rank >= 0)
            ggi_comm_pass_send(&self->guests[i].hello.pass, self->comm->file);
    rendezvous_report(self, COMM_MAP, "");
}

static gg_status rendezvous_confirm(struct rendezvous *self)
{
    gg_status status =
        self->apart ? ggi_comm_link_open(self->comm) : ggi_comm_segment_create(self->comm);
    if (!status && self->apart)
        rendezvous_report(self, COMM_APART, "");
    else if (!status)
        rendezvous_pass(self);
    for (int i = 0; i < self->count && !status; i++)
        if (self->guests[i].rank >= 0)
            status = guest_confirm(self, &self->guests[i]);
    return status;
}

/* Send the failure to the other ranks. A failure of rank 0 alone, such as an interrupt, is marked as rank 0's. */
static void rendezvous_report_failure(struct rendezvous *self, gg_status status)
{
    char text[600];
    snprintf(text, sizeof text, "gg_comm_create: %s%s",
             status == GG_ERR_COMMUNICATOR ? "" : "rank 0: ", ggi_comm_reason());
    if (ggi_comm_ranks_count(&self->failed) == 0)
        ggi_comm_ranks_add(&self->failed, 0);
    rendezvous_report(self, COMM_FAILED, text);
}

/* The port is free for the next communicator before any rank can go on to it. */
static gg_status rendezvous_end(struct rendezvous *self, gg_status status)
{
    if (self->listener >= 0)
        close(self->listener);
    if (status)
        rendezvous_report_failure(self, status);
    else
        rendezvous_report(self, COMM_GO, "");
    for (int i = 0; i < self->count; i++)
        if (!status && self->apart && self->guests[i].rank >= 0)
            ggi_comm_link_add(self->comm, self->guests[i].rank, self->guests[i].socket);
        else
            close(self->guests[i].socket);
    free(self);
    return status;
}

gg_status ggi_comm_meet(struct gg_comm *comm, const struct gg_comm_options *options)
{
    if (comm->size == 1)
        return ggi_comm_segment_create(comm);
    struct rendezvous *self = calloc(1, sizeof *self);
    if (!self)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_create: no memory for %d ranks", comm->size);
    self->comm = comm;
    self->options = options;
    self->until = ggi_comm_until(options);
    self->listener = -1;
    ggi_comm_hello_fill(&self->mine, options);
    gg_status status = rendezvous_listen(self);
    if (!status)
        status = rendezvous_gather(self);
    if (!status)
        status = rendezvous_confirm(self);
    return rendezvous_end(self, status);
}
