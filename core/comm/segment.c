/* segment.c: the shared memory of a communicator, and the locks that show which ranks exist.
 *
 * The segment is a file in memory without a name, which rank 0 passes to the others. Its size is sealed: no rank can end the
 * others by making it smaller.
 *
 * Each rank holds a POSIX record lock on one byte of it. The kernel releases the lock when the process ends, however it ends,
 * and a forked child does not inherit it. So a rank that no longer exists is one whose byte is not locked. The kernel also
 * releases it if the program closes another descriptor of the same file; nothing else in the process knows the file, but a
 * program that closes all descriptors ends its rank. Ranks of one process need neither file nor lock: none ends alone. */
#include "base/error.h"
#include "base/process_state.h"
#include "base/text.h"
#include "comm/comm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/small.h"

#define SEGMENT_BUDGET (32u << 20) /* of all chunks */
#define SEGMENT_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define SEGMENT_PAGE 4096u
#define SEGMENT_PART ((size_t)256 << 10) /* of a chunk, unless devices copy */

static size_t segment_chunk(int32_t size)
{
    const size_t most = 1u << 20;
    size_t chunk = SEGMENT_BUDGET / 4 / (size_t)size / SEGMENT_PAGE * SEGMENT_PAGE;
    return chunk > most ? most : chunk;
}

static size_t segment_up(size_t nbytes)
{
    return (nbytes + SEGMENT_PAGE - 1) / SEGMENT_PAGE * SEGMENT_PAGE;
}

static size_t segment_head(int32_t size)
{
    return segment_up(sizeof(struct comm_segment) + (size_t)size * sizeof(struct comm_rank));
}

static size_t segment_pairs(int32_t size)
{
    return segment_up((size_t)size * (size_t)size * sizeof(struct comm_pair));
}

static size_t segment_chunks(const struct gg_comm *comm)
{
    return (size_t)comm->size * 4 * comm->chunk;
}

void ggi_comm_segment_use_large(struct gg_comm *comm, bool large)
{
    comm->part = large || comm->chunk < SEGMENT_PART ? comm->chunk : SEGMENT_PART;
}

static gg_status segment_measure(struct gg_comm *comm)
{
    comm->chunk = segment_chunk(comm->size);
    ggi_comm_segment_use_large(comm, false);
    comm->mapping =
        calloc(1, sizeof *comm->mapping + (size_t)comm->size * sizeof comm->mapping->parts[0]);
    if (!comm->mapping)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "%s: no memory for a communicator", comm->call);
    atomic_store(&comm->mapping->users, 1);
    comm->mapping->nbytes =
        segment_head(comm->size) + segment_pairs(comm->size) + segment_chunks(comm);
    return GG_OK;
}

static gg_status segment_map(struct gg_comm *comm)
{
    const int flags = comm->file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    const size_t nbytes = comm->mapping->nbytes;
    char *base = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, flags, comm->file, 0);
    if (base == MAP_FAILED)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "%s: %zu bytes of shared memory cannot be mapped: %s",
                        comm->call, nbytes, strerror(errno));
    comm->mapping->base = base;
    comm->segment = (struct comm_segment *)(void *)base;
    comm->pairs = (struct comm_pair *)(void *)(base + segment_head(comm->size));
    comm->chunks = base + segment_head(comm->size) + segment_pairs(comm->size);
    return GG_OK;
}

static struct flock segment_byte(int32_t rank)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
}

static gg_status segment_lock(struct gg_comm *comm)
{
    struct flock lock = segment_byte(comm->rank);
    if (fcntl(comm->file, F_SETLK, &lock) == 0)
        return GG_OK;
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "gg_comm_create: the shared memory cannot be locked: %s; communicators need "
                    "record locks (fcntl) of files in memory",
                    strerror(errno));
}

/* Beyond the limit of `ulimit -f` the kernel ends the program by SIGXFSZ. */
static int segment_extend(const struct gg_comm *comm)
{
    struct rlimit limit;
    int error;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && comm->mapping->nbytes > limit.rlim_cur)
        return EFBIG;
    do /* a signal may arrive, and its handler restarts only system calls */
        error = posix_fallocate(comm->file, 0, (off_t)comm->mapping->nbytes);
    while (error == EINTR);
    return error;
}

/* Reserve the memory now: if none were left, a later write to it would end the process with SIGBUS. */
static gg_status segment_reserve(const struct gg_comm *comm)
{
    struct ggi_size text;
    int error = segment_extend(comm);
    if (!error && fcntl(comm->file, F_ADD_SEALS, SEGMENT_SEALS | F_SEAL_SEAL))
        error = errno;
    if (!error)
        return GG_OK;
    return ggi_fail(GG_ERR_OUT_OF_MEMORY,
                    "gg_comm_create: %s of shared memory cannot be reserved for %d ranks: %s; free "
                    "memory, or raise the limits of the process or container%s",
                    ggi_text_size(&text, comm->mapping->nbytes), comm->size, strerror(error),
                    error == EFBIG ? " (ulimit -f)" : "");
}

/* What other ranks try to read in this process's memory. */
static void segment_offer(struct gg_comm *comm)
{
    struct comm_rank *mine = comm_rank(comm, comm->rank);
    mine->word = comm->word = ggi_now_ns() << 8 | (uint64_t)comm->rank;
    mine->word_at = (uintptr_t)&comm->word;
    mine->process = getpid();
}

static gg_status segment_use(struct gg_comm *comm)
{
    gg_status status = segment_map(comm);
    if (!status)
        segment_offer(comm);
    return status ? status : segment_lock(comm);
}

/* Linux from 6.3 on wants to know whether the file is a program; before, the flag is an error. In glibc since 2.27. */
static int segment_file(void)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING, not_executable = 8;
    const int made = (int)syscall(SYS_memfd_create, "gpuglue-comm", flags | not_executable);
    return made < 0 && errno == EINVAL ? (int)syscall(SYS_memfd_create, "gpuglue-comm", flags)
                                       : made;
}

gg_status ggi_comm_segment_alone(struct gg_comm *comm)
{
    gg_status status = segment_measure(comm);
    return status ? status : segment_map(comm);
}

/* The counter is not part of the segment, in which a forked child would change its parent's. */
gg_status ggi_comm_segment_share(struct gg_comm *const *comms)
{
    struct gg_comm *first = comms[0];
    gg_status status = ggi_comm_segment_alone(first);
    if (status)
        return status;
    atomic_store(&first->mapping->users, (uint32_t)first->size);
    for (int32_t rank = 0; rank < first->size; rank++) {
        struct gg_comm *comm = comms[rank];
        comm->local = true;
        comm->mapping = first->mapping;
        comm->chunk = first->chunk;
        comm->part = first->part;
        comm->segment = first->segment;
        comm->pairs = first->pairs;
        comm->chunks = first->chunks;
        segment_offer(comm);
    }
    return GG_OK;
}

gg_status ggi_comm_segment_create(struct gg_comm *comm)
{
    gg_status status = segment_measure(comm);
    if (status || comm->size == 1)
        return status ? status : segment_map(comm);
    comm->file = segment_file();
    if (comm->file < 0)
        return ggi_fail(GG_ERR_UNSUPPORTED, "gg_comm_create: shared memory cannot be created: %s",
                        strerror(errno));
    status = segment_reserve(comm);
    return status ? status : segment_use(comm);
}

/* Without the seals, or with another size, an access could end this process with SIGBUS. */
static gg_status segment_check(const struct gg_comm *comm)
{
    struct stat file;
    const int seals = fcntl(comm->file, F_GET_SEALS);
    if (seals < 0 || (seals & SEGMENT_SEALS) != SEGMENT_SEALS)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "gg_comm_create: what rank 0 passed is not shared memory whose size is "
                        "sealed; another program listens on the port");
    if (fstat(comm->file, &file))
        return ggi_fail(GG_ERR_INTERNAL, "gg_comm_create: fstat: %s", strerror(errno));
    if ((size_t)file.st_size != comm->mapping->nbytes)
        return ggi_fail(GG_ERR_INTERNAL,
                        "gg_comm_create: rank 0's shared memory has %lld bytes, expected %zu: all "
                        "ranks need the same version of gpuglue",
                        (long long)file.st_size, comm->mapping->nbytes);
    return GG_OK;
}

gg_status ggi_comm_segment_open(struct gg_comm *comm, int file)
{
    comm->file = file;
    gg_status status = segment_measure(comm);
    if (!status)
        status = segment_check(comm);
    return status ? status : segment_use(comm);
}

void ggi_comm_segment_close(struct gg_comm *comm)
{
    if (comm->mapping)
        ggi_comm_mapping_drop(comm->mapping);
    if (comm->file >= 0)
        close(comm->file);
}

char *ggi_comm_chunks(struct gg_comm *comm, size_t *nbytes)
{
    atomic_fetch_add(&comm->mapping->users, 1);
    *nbytes = segment_chunks(comm);
    return comm->chunks;
}

void ggi_comm_mapping_drop(void *mapping)
{
    struct comm_mapping *self = mapping;
    if (atomic_fetch_sub(&self->users, 1) > 1)
        return;
    if (self->base)
        munmap(self->base, self->nbytes);
    free(self);
}

bool ggi_comm_rank_ended(const struct gg_comm *comm, int32_t rank)
{
    struct flock lock = segment_byte(rank);
    if (comm->link)
        return atomic_load(&comm_rank(comm, rank)->ended);
    return comm->file >= 0 && fcntl(comm->file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}
