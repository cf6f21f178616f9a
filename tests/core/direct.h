/* direct.h: tests of ranks that read each other's memory. */
#ifndef GPUGLUE_TESTS_DIRECT_H
#define GPUGLUE_TESTS_DIRECT_H

#include "ranks.h"

#include <errno.h>
#include <pthread.h>
#include <sys/uio.h>

#define LARGE ((size_t)3 << 19) /* in two parts if three ranks read each other's blocks */

/* If set, it is called instead of process_vm_readv, in this process. */
typedef ssize_t read_hook(pid_t process, const struct iovec *here, const struct iovec *there);
extern read_hook *hook;

/* The linker calls the second instead of the first: tests/meson.build. */
ssize_t __real_process_vm_readv(pid_t process, const struct iovec *here, unsigned long here_count,
                                const struct iovec *there, unsigned long there_count,
                                unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t process, const struct iovec *here, unsigned long here_count,
                                const struct iovec *there, unsigned long there_count,
                                unsigned long flags);

static inline ssize_t read_really(pid_t process, const struct iovec *here, const struct iovec *there)
{
    return __real_process_vm_readv(process, here, 1, there, 1, 0);
}

/* The kernel may read less than it is asked for. */
static inline ssize_t read_some(pid_t process, const struct iovec *here, const struct iovec *there)
{
    const size_t some = here->iov_len < 50001 ? here->iov_len : 50001;
    const struct iovec to = {here->iov_base, some}, from = {there->iov_base, some};
    return read_really(process, &to, &from);
}

struct place {
    gg_comm *comm;
    int32_t rank, size, root;
    size_t nbytes;
    unsigned char *src, *dst; /* of all blocks; src has those of this rank */
};

static inline struct place place_begin(gg_comm *comm, size_t nbytes)
{
    const int32_t rank = gg_comm_rank(comm), size = gg_comm_size(comm);
    return (struct place){.comm = comm,
                          .rank = rank,
                          .size = size,
                          .root = size - 1,
                          .nbytes = nbytes,
                          .src = bytes_of(rank, nbytes * (size_t)size),
                          .dst = bytes_of(99, nbytes * (size_t)size)};
}

static inline void place_end(struct place *self)
{
    free(self->src);
    free(self->dst);
}

#endif
