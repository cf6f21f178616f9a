/* split.c: communicators of some ranks of another one. */
#include "base/error.h"
#include "comm/socket.h"

#include <stdio.h>
#include <unistd.h>

/* What each rank sends to all others. */
struct split_part {
    int32_t color, key, port;
};

/* A port that no other process gets while the socket is open; rank 0 of a new communicator can listen on it. 0: there is none. */
static int split_reserve(int32_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    const int yes = 1, holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *port = 0;
    if (holder >= 0 && !setsockopt(holder, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) &&
        !bind(holder, (struct sockaddr *)&address, size) &&
        !getsockname(holder, (struct sockaddr *)&address, &size))
        *port = ntohs(address.sin_port);
    return holder;
}

static bool split_is_before(const struct split_part *all, int32_t a, int32_t b)
{
    return all[a].key < all[b].key || (all[a].key == all[b].key && a < b);
}

static gg_status split_create(const struct gg_comm *comm, const struct split_part *all,
                              gg_comm **out)
{
    struct gg_comm_options options = {.struct_size = sizeof options, .timeout_ns = comm->timeout_ns};
    char id[64];
    int32_t first = comm->rank;
    for (int32_t rank = 0; rank < comm->size; rank++) {
        if (all[rank].color != all[comm->rank].color)
            continue;
        options.size++;
        options.rank += split_is_before(all, rank, comm->rank);
        if (split_is_before(all, rank, first))
            first = rank;
    }
    snprintf(id, sizeof id, "split.%d.%d", (int)all[first].port, (int)all[first].color);
    options.id = id;
    options.port = all[first].port;
    if (options.size > 1 && !options.port)
        return ggi_fail(GG_ERR_COMMUNICATOR, "gg_comm_split: rank %d found no free port",
                        (int)first);
    return gg_comm_create(&options, out);
}

static gg_status split_check(const struct gg_comm *comm, int32_t color)
{
    if (comm->external)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "gg_comm_split: this communicator was borrowed from other code, which can "
                        "split it: use gg_comm_borrow for the parts");
    if (comm->local)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "gg_comm_split: the ranks are of one process: use gg_comm_create_all for "
                        "the devices of each part");
    if (comm->link)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "gg_comm_split: the ranks are on several machines: use gg_comm_create with "
                        "a host and port for each part");
    if (color < GG_COMM_NO_COLOR)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_comm_split: color is %d, expected at least 0, or GG_COMM_NO_COLOR",
                        (int)color);
    return GG_OK;
}

gg_status gg_comm_split(gg_comm *comm, int32_t color, int32_t key, gg_comm **out)
{
    struct split_part all[GG_COMM_SIZE_MAX], mine = {color, key, 0};
    gg_status status = ggi_comm_check_process(comm, "gg_comm_split");
    if (!status)
        status = split_check(comm, color);
    if (status)
        return status;
    const int holder = split_reserve(&mine.port);
    status = gg_comm_all_gather(comm, all, &mine, sizeof mine);
    if (!status && color == GG_COMM_NO_COLOR)
        *out = NULL;
    else if (!status)
        status = split_create(comm, all, out);
    if (holder >= 0)
        close(holder);
    return status;
}
