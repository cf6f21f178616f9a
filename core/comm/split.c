/* split.c: communicators of some ranks of another one. */
#include "base/error.h"
#include "comm/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/small.h"

/* What each rank sends to all others. */
struct split_part {
    int32_t color, key;
    int32_t beside_root;    /* on the machine of rank 0, which alone reaches this host */
    char host[64], port[8]; /* on which rank 0 of a new communicator can listen; "": there is none */
};

struct split {
    struct gg_comm *comm;
    const struct split_part *all;
    int32_t ranks[GG_COMM_SIZE_MAX]; /* of the new communicator, in their order */
    int32_t size, rank;
};

/* ---- the order ---- */

static bool split_is_before(const struct split_part *all, int32_t a, int32_t b)
{
    return all[a].key < all[b].key || (all[a].key == all[b].key && a < b);
}

static void split_order(struct split *self)
{
    const struct split_part *all = self->all;
    for (int32_t rank = 0; rank < self->comm->size; rank++) {
        if (all[rank].color != all[self->comm->rank].color)
            continue;
        int32_t at = self->size++;
        for (; at > 0 && split_is_before(all, rank, self->ranks[at - 1]); at--)
            self->ranks[at] = self->ranks[at - 1];
        self->ranks[at] = rank;
    }
    while (self->ranks[self->rank] != self->comm->rank)
        self->rank++;
}

/* ---- ranks of several processes ---- */

static socklen_t split_address(struct gg_comm *comm, struct sockaddr_storage *address)
{
    const struct sockaddr_in loopback = {.sin_family = AF_INET,
                                         .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (comm->link)
        return ggi_comm_link_address(comm, address);
    memcpy(address, &loopback, sizeof loopback);
    return sizeof loopback;
}

/* All addresses of this machine, with port 0. */
static void split_use_all(struct sockaddr_storage *address)
{
    const struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    const struct sockaddr_in four = {.sin_family = AF_INET};
    if (address->ss_family == AF_INET6)
        memcpy(address, &six, sizeof six);
    else
        memcpy(address, &four, sizeof four);
}

/* No other process gets the port while the socket is open. */
static int split_reserve(struct gg_comm *comm, struct split_part *mine)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    struct sockaddr *const any = (struct sockaddr *)&address;
    socklen_t size = split_address(comm, &address);
    const int yes = 1, holder = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (getnameinfo(any, size, mine->host, sizeof mine->host, NULL, 0, NI_NUMERICHOST))
        return holder;
    mine->beside_root = comm->link && comm->rank && ggi_comm_is_loopback(&address);
    if (mine->beside_root) /* it may have to listen on the address of rank 0 */
        split_use_all(&address);
    if (holder >= 0 && !setsockopt(holder, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) &&
        !bind(holder, any, size) && !getsockname(holder, any, &size) &&
        getnameinfo(any, size, NULL, 0, mine->port, sizeof mine->port, NI_NUMERICSERV))
        mine->port[0] = 0;
    return holder;
}

/* Where all ranks of the new communicator reach its rank 0. */
static const char *split_host(const struct split *self)
{
    const struct split_part *all = self->all, *first = &all[self->ranks[0]];
    bool apart = false;
    for (int32_t i = 0; i < self->size; i++)
        apart = apart || (self->ranks[i] && !all[self->ranks[i]].beside_root);
    return first->beside_root && apart ? all[0].host : first->host;
}

static gg_status split_connect(const struct split *self, gg_comm **out)
{
    const struct split_part *first = &self->all[self->ranks[0]];
    char id[64];
    snprintf(id, sizeof id, "split.%.8s.%d", first->port, (int)first->color);
    const struct gg_comm_options options = {.struct_size = sizeof options,
                                            .rank = self->rank,
                                            .size = self->size,
                                            .port = atoi(first->port),
                                            .host = split_host(self),
                                            .id = id,
                                            .timeout_ns = self->comm->timeout_ns,
                                            .flags =
                                                self->comm->link ? GG_COMM_SEVERAL_MACHINES : 0};
    if (self->size > 1 && !options.port)
        return ggi_fail(GG_ERR_COMMUNICATOR,
                        "gg_comm_split: rank %d could not reserve a port: it has too many open "
                        "files, or its machine has no free port",
                        (int)self->ranks[0]);
    return gg_comm_create(&options, out);
}

/* ---- ranks of one process: the first of a color creates all, and leaves the others theirs ---- */

static void split_leave(const struct split *self, struct ggi_kept_error *error)
{
    struct gg_comm *made[GG_COMM_SIZE_MAX];
    if (ggi_comm_create_all(self->size, self->comm->timeout_ns, made)) {
        ggi_error_keep(error);
        return;
    }
    for (int32_t rank = 0; rank < self->size; rank++)
        atomic_store(&self->comm->mapping->parts[self->ranks[rank]], made[rank]);
}

static struct gg_comm *split_take(const struct split *self, int32_t rank)
{
    return atomic_exchange(&self->comm->mapping->parts[rank], NULL);
}

/* After a failure no rank may come for its own. */
static gg_status split_share(const struct split *self, gg_comm **out)
{
    const bool first = self->rank == 0;
    struct ggi_kept_error error = {.ranks = {0}}; /* of the first */
    if (first && self->all[self->comm->rank].color != GG_COMM_NO_COLOR)
        split_leave(self, &error);
    gg_status status = gg_comm_barrier(self->comm);
    struct gg_comm *made = split_take(self, self->comm->rank);
    for (int32_t rank = 1; rank < self->size && status && first; rank++)
        gg_comm_release(split_take(self, self->ranks[rank]));
    if (!status && !made && self->all[self->comm->rank].color != GG_COMM_NO_COLOR)
        status = first ? ggi_error_restore(&error)
                       : ggi_fail(GG_ERR_COMMUNICATOR,
                                  "gg_comm_split: rank %d could not create the communicators",
                                  (int)self->ranks[0]);
    if (status)
        gg_comm_release(made);
    else
        *out = made;
    return status;
}

/* ---- both ---- */

static gg_status split_check(const struct gg_comm *comm, int32_t color)
{
    if (comm->external)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "gg_comm_split: this communicator was borrowed from other code, which can "
                        "split it: use gg_comm_borrow for the parts");
    if (color < GG_COMM_NO_COLOR)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_comm_split: color is %d, expected at least 0, or GG_COMM_NO_COLOR",
                        (int)color);
    return GG_OK;
}

static gg_status split_gather(struct gg_comm *comm, struct split_part *all,
                              const struct split_part *mine)
{
    if (comm->link)
        return ggi_comm_gather_apart(comm, "gg_comm_split", all, mine, sizeof *mine);
    return gg_comm_all_gather(comm, all, mine, sizeof *mine);
}

gg_status gg_comm_split(gg_comm *comm, int32_t color, int32_t key, gg_comm **out)
{
    struct split_part all[GG_COMM_SIZE_MAX], mine = {.color = color, .key = key};
    struct split self = {.comm = comm, .all = all};
    gg_status status = ggi_comm_check_process(comm, "gg_comm_split");
    if (!status)
        status = split_check(comm, color);
    if (status)
        return status;
    const int holder = comm->local ? -1 : split_reserve(comm, &mine);
    status = split_gather(comm, all, &mine);
    if (!status)
        split_order(&self);
    if (!status && comm->local)
        status = split_share(&self, out);
    else if (!status && color == GG_COMM_NO_COLOR)
        *out = NULL;
    else if (!status)
        status = split_connect(&self, out);
    if (holder >= 0)
        close(holder);
    return status;
}
