/* state.c: what a communicator's part for a device is: its transport, and whether it can be used. */
#include "base/condition.h"
#include "base/process_state.h"
#include "collective/collective.h"

#include <gpuglue/comm_device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STATE_EXPLAIN_NS 300000000u /* until a process that has ended is seen as such */

/* ---- the bits of watchers in gg_stream::watchers ---- */

/* One bit, or, while all of those are used, three of the other 31: a, b and a ^ b. Two of these threes share one bit at most, so
 * two together do not contain a third. */
#define WATCHERS_SINGLE 33u
#define WATCHERS 188u

static pthread_mutex_t watchers_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(watchers_lock)
static struct {
    uint32_t now, ever;
} watchers_used[WATCHERS];

static uint64_t watcher_bits(uint32_t index)
{
    if (index < WATCHERS_SINGLE)
        return UINT64_C(1) << index;
    index -= WATCHERS_SINGLE;
    for (uint32_t a = 1; a < 32; a++)
        for (uint32_t b = a + 1; b < 32; b++)
            if ((a ^ b) > b && !index--)
                return (UINT64_C(1) << a | UINT64_C(1) << b | UINT64_C(1) << (a ^ b))
                       << (WATCHERS_SINGLE - 1);
    return 0;
}

/* Of the first @p count the one that the fewest use, and have used: streams may still have the error of a former watcher. */
static uint32_t watcher_least_used(uint32_t count)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < count; i++)
        if (watchers_used[i].now < watchers_used[least].now ||
            (watchers_used[i].now == watchers_used[least].now &&
             watchers_used[i].ever < watchers_used[least].ever))
            least = i;
    return least;
}

static uint32_t watcher_take(void)
{
    pthread_mutex_lock(&watchers_lock);
    uint32_t index = watcher_least_used(WATCHERS_SINGLE);
    if (watchers_used[index].now)
        index = watcher_least_used(WATCHERS);
    watchers_used[index].now++;
    watchers_used[index].ever++;
    pthread_mutex_unlock(&watchers_lock);
    return index;
}

static void watcher_give_back(uint32_t index)
{
    pthread_mutex_lock(&watchers_lock);
    watchers_used[index].now--;
    pthread_mutex_unlock(&watchers_lock);
}

/* ---- the object ---- */

struct ggi_collective *ggi_collective_new(struct gg_comm *comm, struct gg_device *device)
{
    struct ggi_collective *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    atomic_store(&self->refs, 1);
    self->comm = comm;
    self->device = device;
    self->watcher_index = watcher_take();
    self->watcher = watcher_bits(self->watcher_index);
    self->path = "";
    if (device && device->backend->comm_ops)
        snprintf(self->transport, sizeof self->transport, "%s", device->backend->comm_ops->name);
    pthread_mutex_init(&self->lock, NULL);
    ggi_condition_init(&self->changed);
    return self;
}

void ggi_collective_release(struct ggi_collective *self)
{
    if (atomic_fetch_sub(&self->refs, 1) > 1)
        return;
    if (!atomic_load(&self->untracked)) /* else a stream has its bits for ever */
        watcher_give_back(self->watcher_index);
    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->changed);
    free(self->group);
    free(self->others);
    free(self);
}

const char *gg_comm_transport(gg_comm *comm)
{
    return comm->collective ? comm->collective->transport : "host";
}

const char *gg_comm_transport_reason(gg_comm *comm)
{
    return comm->collective ? comm->collective->reason : "";
}

gg_status gg_comm_library(gg_comm *comm, const char **path, int32_t *version)
{
    const struct ggi_collective *self = comm->collective;
    *path = self && self->impl ? self->path : "";
    *version = self && self->impl ? self->version : 0;
    return GG_OK;
}

/* ---- failures ---- */

bool ggi_collective_find_ended(struct gg_comm *comm)
{
    bool any = false;
    ggi_comm_link_sync(comm);
    for (int32_t rank = 0; rank < comm->size && !comm->external; rank++)
        if (rank != comm->rank && ggi_comm_rank_ended(comm, rank) &&
            !atomic_load(&comm_rank(comm, rank)->finished)) {
            ggi_comm_mark(comm, rank,
                          atomic_load(&comm_rank(comm, rank)->closed) ? COMM_CLOSED : COMM_ENDED);
            any = true;
        }
    if (any)
        ggi_comm_declare(comm);
    return atomic_load(&comm->segment->failed) != COMM_FINE;
}

bool ggi_collective_find_finished(struct gg_comm *comm)
{
    const uint64_t collective = atomic_load(&comm_rank(comm, comm->rank)->collective);
    bool any = false;
    if (!atomic_load(&comm->segment->finished))
        return false;
    for (int32_t rank = 0; rank < comm->size; rank++) {
        const struct comm_rank *other = comm_rank(comm, rank);
        if (atomic_load(&other->finished) && atomic_load(&other->collective) < collective) {
            ggi_comm_mark(comm, rank, COMM_CLOSED);
            any = true;
        }
    }
    if (any)
        ggi_comm_declare(comm);
    return any;
}

bool ggi_collective_lacks_message(const struct gg_comm *comm, int32_t rank)
{
    const struct comm_pair *to = comm_pair(comm, comm->rank, rank);
    const struct comm_pair *from = comm_pair(comm, rank, comm->rank);
    return atomic_load(&to->receives) < atomic_load(&to->sends) ||
           atomic_load(&from->sends) < atomic_load(&from->receives);
}

bool ggi_collective_is_behind(const struct gg_comm *comm, int32_t rank, uint64_t collective)
{
    return rank != comm->rank && (atomic_load(&comm_rank(comm, rank)->collective) < collective ||
                                  ggi_collective_lacks_message(comm, rank));
}

bool ggi_collective_mark_late(struct gg_comm *comm, uint64_t collective)
{
    bool any = false;
    for (int messages = 0; messages < 2 && !any && !comm->external; messages++)
        for (int32_t rank = 0; rank < comm->size; rank++)
            if (rank != comm->rank &&
                (messages ? ggi_collective_lacks_message(comm, rank)
                          : atomic_load(&comm_rank(comm, rank)->collective) < collective)) {
                ggi_comm_mark(comm, rank, COMM_LATE);
                any = true;
            }
    return any;
}

gg_status ggi_collective_broken(struct gg_comm *comm, gg_status status)
{
    struct ggi_kept_error kept = {.error = ggi_error_record()->error};
    const uint64_t until = ggi_now_ns() + STATE_EXPLAIN_NS;
    bool failed;
    while (!(failed = ggi_collective_find_ended(comm)) && !comm->external && comm->size > 1 &&
           ggi_now_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (failed)
        return ggi_comm_state(comm);
    ggi_error_record()->error = kept.error;
    ggi_comm_break(comm);
    memset(ggi_error_record()->ranks, 0, sizeof ggi_error_record()->ranks);
    return status;
}

/* ---- before a call ---- */

gg_status ggi_collective_enter(struct gg_comm *comm, const char *call)
{
    const struct ggi_collective *self = comm->collective;
    gg_status status = ggi_comm_check_process(comm, call);
    if (status)
        return status;
    if (!self || !self->impl)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "%s: the transport '%s' has no operations on device memory: copy to the "
                        "host, or create the communicator with a device%s%s",
                        call, gg_comm_transport(comm), self && self->reason[0] ? "; " : "",
                        self ? self->reason : "");
    if (atomic_exchange(&comm->busy, true))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s: another thread is in an operation of this communicator; call one at a "
                        "time, or give each thread a communicator of its own",
                        call);
    comm->call = call;
    status = ggi_comm_state(comm);
    return status ? ggi_comm_leave(comm, status) : GG_OK;
}
