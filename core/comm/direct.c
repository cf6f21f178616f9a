/* direct.c: reading the memory of another rank where it is: one copy, where the segment takes two.
 *
 * The kernel copies from the other process (process_vm_readv), if it lets this process trace the other. A rank only reads, into
 * memory of its own. The segment has the address of a word of each rank; a communicator is direct on a rank that has read the words of all others.
 * A part that cannot be read later, since the kernel refuses or the other rank has ended, is exchanged through the segment, which
 * finds out. */
#include "comm/comm.h"

#include <sys/uio.h>

void ggi_comm_direct_try(struct gg_comm *comm)
{
    uint64_t word;
    comm->direct = true;
    for (int32_t rank = 0; rank < comm->size && comm->direct; rank++) {
        const struct comm_rank *other = comm_rank(comm, rank);
        comm->direct = rank == comm->rank ||
                       (ggi_comm_direct_read(comm, rank, &word, other->word_at, sizeof word) &&
                        word == other->word);
    }
}

/* What the kernel copied before it failed is dropped. */
static bool direct_copy(pid_t process, char *to, uint64_t from, size_t nbytes)
{
    while (nbytes) {
        const struct iovec here = {to, nbytes}, there = {(void *)(uintptr_t)from, nbytes};
        const ssize_t got = process_vm_readv(process, &here, 1, &there, 1, 0);
        if (got <= 0)
            return false;
        to += got;
        from += (uint64_t)got;
        nbytes -= (size_t)got;
    }
    return true;
}

/* A rank returns from a failed operation only after it has declared the failure, so what was read before is right. Another
 * process may have the number of one that has ended. */
bool ggi_comm_direct_read(const struct gg_comm *comm, int32_t rank, void *to, uint64_t from,
                          size_t nbytes)
{
    const bool got = direct_copy(comm_rank(comm, rank)->process, to, from, nbytes);
    atomic_thread_fence(memory_order_acquire);
    return got && !atomic_load(&comm->segment->failed) && !ggi_comm_rank_ended(comm, rank);
}
