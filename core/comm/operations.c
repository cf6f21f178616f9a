/* operations.c: the operations in memory that the processor can access. */
#include "comm/comm.h"

gg_status gg_comm_barrier(gg_comm *comm)
{
    char all[GG_COMM_SIZE_MAX];
    const char mine = 0;
    if (comm->link)
        return ggi_comm_gather_apart(comm, "gg_comm_barrier", all, &mine, sizeof mine);
    return ggi_comm_move(comm, CALL_BARRIER, comm_side_of(NULL), comm_side_of(NULL), 0, 0);
}

gg_status gg_comm_broadcast(gg_comm *comm, void *dst, const void *src, size_t nbytes, int32_t root)
{
    return ggi_comm_move(comm, CALL_BROADCAST, comm_side_of(dst), comm_side_of(src), nbytes, root);
}

gg_status gg_comm_all_gather(gg_comm *comm, void *dst, const void *src, size_t nbytes)
{
    return ggi_comm_move(comm, CALL_ALL_GATHER, comm_side_of(dst), comm_side_of(src), nbytes, 0);
}

gg_status gg_comm_gather(gg_comm *comm, void *dst, const void *src, size_t nbytes, int32_t root)
{
    return ggi_comm_move(comm, CALL_GATHER, comm_side_of(dst), comm_side_of(src), nbytes, root);
}

gg_status gg_comm_scatter(gg_comm *comm, void *dst, const void *src, size_t nbytes, int32_t root)
{
    return ggi_comm_move(comm, CALL_SCATTER, comm_side_of(dst), comm_side_of(src), nbytes, root);
}

gg_status gg_comm_all_to_all(gg_comm *comm, void *dst, const void *src, size_t nbytes)
{
    return ggi_comm_move(comm, CALL_ALL_TO_ALL, comm_side_of(dst), comm_side_of(src), nbytes, 0);
}

gg_status gg_comm_all_reduce(gg_comm *comm, void *dst, const void *src, size_t count,
                             gg_comm_type type, gg_comm_reduction reduction)
{
    return ggi_comm_reduce(comm, CALL_ALL_REDUCE, comm_side_of(dst), comm_side_of(src), count, type,
                           reduction, 0);
}

gg_status gg_comm_reduce(gg_comm *comm, void *dst, const void *src, size_t count, gg_comm_type type,
                         gg_comm_reduction reduction, int32_t root)
{
    return ggi_comm_reduce(comm, CALL_REDUCE, comm_side_of(dst), comm_side_of(src), count, type,
                           reduction, root);
}

gg_status gg_comm_reduce_scatter(gg_comm *comm, void *dst, const void *src, size_t count,
                                 gg_comm_type type, gg_comm_reduction reduction)
{
    return ggi_comm_reduce(comm, CALL_REDUCE_SCATTER, comm_side_of(dst), comm_side_of(src), count,
                           type, reduction, 0);
}

/* ---- messages ---- */

gg_status gg_comm_send(gg_comm *comm, const void *src, size_t nbytes, int32_t to)
{
    return ggi_comm_send(comm, comm_side_of(src), nbytes, to);
}

gg_status gg_comm_recv(gg_comm *comm, void *dst, size_t nbytes, int32_t from)
{
    return ggi_comm_recv(comm, comm_side_of(dst), nbytes, from);
}

gg_status gg_comm_send_recv(gg_comm *comm, const void *src, size_t src_nbytes, int32_t to,
                            void *dst, size_t dst_nbytes, int32_t from)
{
    return ggi_comm_send_recv(comm, comm_side_of(src), src_nbytes, to, comm_side_of(dst),
                              dst_nbytes, from);
}
