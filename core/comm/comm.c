/* comm.c: communicators: creation, references, and what surrounds each operation. */
#include "base/error.h"
#include "base/process_state.h"
#include "base/sized.h"
#include "comm/comm.h"

#include <stdlib.h>
#include <string.h>

#include "base/small.h"

#define COMM_ID_MAX 63

/* ---- creation ---- */

static gg_status options_check(const struct gg_comm_options *options)
{
    if (options->size < 1 || options->size > GG_COMM_SIZE_MAX)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_comm_create: size is %d, expected 1 to %d",
                        options->size, GG_COMM_SIZE_MAX);
    if (options->rank < 0 || options->rank >= options->size)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_comm_create: rank is %d, expected 0 to %d",
                        options->rank, options->size - 1);
    if (options->size > 1 && (options->port < 1 || options->port > 65535))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_comm_create: port is %d, expected 1 to 65535",
                        options->port);
    if (options->id && strlen(options->id) > COMM_ID_MAX)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_comm_create: id has %zu bytes, expected at most %d",
                        strlen(options->id), COMM_ID_MAX);
    if (options->flags & ~(uint32_t)GG_COMM_SEVERAL_MACHINES)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_comm_create: flags 0x%x contain an unknown bit", options->flags);
    return GG_OK;
}

static gg_status comm_connect(struct gg_comm *comm, const struct gg_comm_options *options)
{
    return comm->rank == 0 ? ggi_comm_meet(comm, options) : ggi_comm_join(comm, options);
}

void ggi_comm_free(struct gg_comm *comm)
{
    if (comm->staging && comm->generation == atomic_load(&ggi_generation))
        comm->free_staging(comm->staging);
    if (comm->link)
        ggi_comm_link_close(comm);
    ggi_comm_segment_close(comm);
    free(comm);
}

static struct gg_comm *comm_new(int32_t rank, int32_t size, uint64_t timeout_ns, const char *call)
{
    struct gg_comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    ggi_watch_forks();
    comm->references = 1;
    comm->rank = rank;
    comm->size = size;
    comm->generation = atomic_load(&ggi_generation);
    comm->timeout_ns = timeout_ns;
    comm->file = -1;
    comm->call = call;
    return comm;
}

static gg_status comm_create(const struct gg_comm_options *options, gg_comm **out)
{
    gg_status status = options_check(options);
    if (status)
        return status;
    struct gg_comm *comm =
        comm_new(options->rank, options->size, options->timeout_ns, "gg_comm_create");
    if (!comm)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_create: no memory for a communicator");
    status = comm_connect(comm, options);
    if (status) {
        ggi_comm_free(comm);
        return status;
    }
    if (!comm->link)
        ggi_comm_direct_try(comm);
    *out = comm;
    return GG_OK;
}

gg_status gg_comm_create(const struct gg_comm_options *options, gg_comm **out)
{
    const size_t first = GGI_SIZE_TO(struct gg_comm_options, timeout_ns);
    struct gg_comm_options full = {.flags = 0};
    if (!ggi_sized_fits(options, first))
        return ggi_sized_refuse("gg_comm_create", "gg_comm_options", options, first);
    memcpy(&full, options, options->struct_size < sizeof full ? options->struct_size : sizeof full);
    return comm_create(&full, out);
}

static gg_status comms_new(int32_t size, uint64_t timeout_ns, struct gg_comm **out)
{
    for (int32_t rank = 0; rank < size; rank++) {
        out[rank] = comm_new(rank, size, timeout_ns, "gg_comm_create_all");
        if (!out[rank])
            return ggi_fail(GG_ERR_OUT_OF_MEMORY,
                            "gg_comm_create_all: no memory for %d communicators", size);
    }
    gg_status status = ggi_comm_segment_share(out);
    if (!status)
        ggi_comm_direct_try(out[0]);
    for (int32_t rank = 1; rank < size && !status; rank++)
        out[rank]->direct = out[0]->direct;
    return status;
}

gg_status ggi_comm_create_all(int32_t size, uint64_t timeout_ns, struct gg_comm **out)
{
    struct gg_comm *made[GG_COMM_SIZE_MAX] = {NULL};
    gg_status status = comms_new(size, timeout_ns, made);
    for (int32_t rank = 0; rank < size; rank++)
        if (!status)
            out[rank] = made[rank];
        else if (made[rank])
            ggi_comm_free(made[rank]);
    return status;
}

/* ---- references ---- */

gg_comm *gg_comm_retain(gg_comm *comm)
{
    atomic_fetch_add(&comm->references, 1);
    return comm;
}

static bool comm_is_forked(const struct gg_comm *comm)
{
    return comm->generation != atomic_load(&ggi_generation);
}

/* A forked child only releases its copy of the handle; the rank continues in the parent. */
void gg_comm_release(gg_comm *comm)
{
    if (!comm || atomic_fetch_sub(&comm->references, 1) > 1)
        return;
    if (!comm_is_forked(comm)) { /* the others see it at their next check */
        atomic_store(&comm_rank(comm, comm->rank)->closed, 1);
        ggi_comm_link_sync(comm);
        if (comm->close) {
            comm->close(comm);
            return;
        }
    }
    ggi_comm_free(comm);
}

int32_t gg_comm_rank(gg_comm *comm)
{
    return comm->rank;
}

int32_t gg_comm_size(gg_comm *comm)
{
    return comm->size;
}

static gg_status comm_fork_error(const char *call)
{
    return ggi_fail(GG_ERR_FORKED,
                    "%s: the communicator belongs to the process that created it, and this is a "
                    "forked child; create one after the fork",
                    call);
}

gg_status ggi_comm_check_process(const struct gg_comm *comm, const char *call)
{
    return comm_is_forked(comm) ? comm_fork_error(call) : GG_OK;
}

gg_status gg_comm_abort(gg_comm *comm)
{
    if (comm_is_forked(comm))
        return comm_fork_error("gg_comm_abort");
    if (atomic_load(&comm->segment->failed) == COMM_FINE) { /* else this rank would be named as well */
        ggi_comm_mark(comm, comm->rank, COMM_ABORTED);
        ggi_comm_declare(comm);
    }
    return GG_OK;
}

bool ggi_comm_types_agree(const char *a, const char *b)
{
    return !a[0] || !b[0] || !strncmp(a, b, GG_COMM_TYPE_NAME_SIZE);
}

/* ---- around each operation ---- */

static gg_status comm_acquire(struct gg_comm *comm, const char *call)
{
    if (comm_is_forked(comm))
        return comm_fork_error(call);
    if (comm->external)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "%s: this communicator was borrowed from other code, and has only "
                        "operations on its device's memory",
                        call);
    if (comm->link && strcmp(call, "gg_comm_barrier") && strcmp(call, "gg_comm_split"))
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "%s: the ranks are on several machines: this communicator has only "
                        "operations on its device's memory",
                        call);
    if (atomic_exchange(&comm->busy, true))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s: another thread is in an operation of this communicator; call one at a "
                        "time, or give each thread a communicator of its own",
                        call);
    return GG_OK;
}

gg_status ggi_comm_enter(struct gg_comm *comm, const char *call)
{
    gg_status status = comm_acquire(comm, call);
    if (status)
        return status;
    comm->call = call;
    status = ggi_comm_state(comm);
    return status ? ggi_comm_leave(comm, status) : GG_OK;
}

gg_status ggi_comm_leave(struct gg_comm *comm, gg_status status)
{
    atomic_store(&comm->busy, false);
    return status;
}

gg_status ggi_comm_gather_apart(struct gg_comm *comm, const char *call, void *all, const void *mine,
                                size_t nbytes)
{
    gg_status status = comm_acquire(comm, call);
    if (status)
        return status;
    comm->call = call;
    return ggi_comm_leave(comm, ggi_comm_link_gather(comm, all, mine, nbytes));
}

gg_status gg_comm_set_type_name(gg_comm *comm, const char *name)
{
    const size_t size = name ? strlen(name) : 0;
    if (size >= sizeof comm->type_name)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_comm_set_type_name: name has %zu bytes, expected at most %zu", size,
                        sizeof comm->type_name - 1);
    gg_status status = comm_acquire(comm, "gg_comm_set_type_name");
    if (status)
        return status;
    memset(comm->type_name, 0, sizeof comm->type_name);
    if (size)
        memcpy(comm->type_name, name, size);
    return ggi_comm_leave(comm, GG_OK);
}

gg_status gg_comm_set_timeout(gg_comm *comm, uint64_t timeout_ns)
{
    if (comm_is_forked(comm))
        return comm_fork_error("gg_comm_set_timeout");
    atomic_store(&comm->timeout_ns, timeout_ns);
    return GG_OK;
}

gg_status ggi_comm_rank_check(const struct gg_comm *comm, const char *what, int32_t rank)
{
    if (rank >= 0 && rank < comm->size)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s: %s is %d, expected a rank: 0 to %d", comm->call,
                    what, rank, comm->size - 1);
}

gg_status ggi_comm_overlap_check(const struct gg_comm *comm, const void *dst, size_t dst_nbytes,
                                 const void *src, size_t src_nbytes)
{
    const uintptr_t to = (uintptr_t)dst, from = (uintptr_t)src;
    if (to >= from + src_nbytes || from >= to + dst_nbytes)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: %zu bytes at the destination overlap %zu bytes at the source; give "
                    "separate memory, or one that is in place",
                    comm->call, dst_nbytes, src_nbytes);
}
