/* watch.c: the thread of a communicator that watches the other processes and the library, and ends work that cannot complete. */
#include "collective/collective.h"
#include "base/thread.h"
#include "runtime/call.h"

#include <stdlib.h>
#include <time.h>

/* Queries that fail in a row: then a communicator that is closed does not wait for its work. */
#define WATCH_FAILED_QUERIES 100
#define WATCH_CLOSED_NS 5000000000u  /* for work that a closed rank has a part in */
#define WATCH_PARTING_NS 2000000000u /* for the others to finish, too */
#define WATCH_STUCK_NS 1000000000u /* before none is named: another rank may see which is behind */
#define WATCH_CALL_NS 5000000      /* after which a call of the library is seen as waiting */

/* ---- the others ---- */

/* Ranks without unfinished work: those that have not launched other code's graph with their part of it. */
static bool watch_mark_idle(struct gg_comm *comm)
{
    bool any = false;
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank && !comm->external && !atomic_load(&comm_rank(comm, rank)->working)) {
            ggi_comm_mark(comm, rank, COMM_LATE);
            any = true;
        }
    return any;
}

/* Whether a rank is seen to be behind; else, if the work is @p late, those that have queued less than this one had when the wait
 * began. If no rank is, none is named once the work is @p stuck: another rank may wait for one that this rank does not need. */
static void watch_judge(struct gg_comm *comm, struct ggi_collective *self, bool late, bool all_late,
                        bool stuck)
{
    ggi_collective_ask(comm, true);
    if (!ggi_collective_answered(comm))
        return;
    if (ggi_collective_mark_behind(comm, all_late) ||
        (late && ggi_collective_mark_late(comm, self->pending_collective)) ||
        (late && atomic_load(&self->untracked) && watch_mark_idle(comm)))
        ggi_comm_declare(comm);
    else if (stuck)
        ggi_comm_declare_unmarked(comm, COMM_STUCK);
}

static bool watch_any_gone(const struct gg_comm *comm)
{
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank && atomic_load(&comm_rank(comm, rank)->gone))
            return true;
    return false;
}

static void watch_mark_closed(struct gg_comm *comm)
{
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank && atomic_load(&comm_rank(comm, rank)->gone))
            ggi_comm_mark(comm, rank, COMM_CLOSED);
    ggi_comm_declare(comm);
}

/* Whether this rank has queued an operation that @p rank did not queue, and never will. */
static bool watch_lacks(const struct gg_comm *comm, int32_t rank)
{
    const struct comm_rank *other = comm_rank(comm, rank), *own = comm_rank(comm, comm->rank);
    return atomic_load(&other->finished) &&
           (atomic_load(&other->collective) < atomic_load(&own->collective) ||
            ggi_collective_lacks_message(comm, rank));
}

/* Work that needs a rank which has queued its last operation would wait for it, and that rank for this one. */
static void watch_find_lacking(struct gg_comm *comm)
{
    bool any = false;
    for (int32_t rank = 0; rank < comm->size && !comm->external; rank++)
        if (rank != comm->rank && watch_lacks(comm, rank)) {
            ggi_comm_mark(comm, rank, COMM_CLOSED);
            any = true;
        }
    if (any)
        ggi_comm_declare(comm);
}

/* What the ranks that are behind have queued; *any: there are such ranks. */
static uint64_t watch_behind(const struct gg_comm *comm, const struct ggi_collective *self,
                             bool *any)
{
    uint64_t queued = 0;
    *any = false;
    for (int32_t rank = 0; rank < comm->size && !comm->external; rank++) {
        if (!ggi_collective_is_behind(comm, rank, self->pending_collective))
            continue;
        queued += atomic_load(&comm_rank(comm, rank)->collective) +
                  atomic_load(&comm_pair(comm, comm->rank, rank)->receives) +
                  atomic_load(&comm_pair(comm, rank, comm->rank)->sends);
        *any = true;
    }
    return queued;
}

static uint64_t watch_product(uint64_t ns, uint32_t factor)
{
    return ns > UINT64_MAX / factor ? UINT64_MAX : ns * factor;
}

/* How long the oldest work has been unfinished. A rank that is behind makes progress while it queues operations. If none is
 * behind, the @p oldest operations, whose end is only known for all of them together, have the timeout of one for each. */
static void watch_time(struct gg_comm *comm, struct ggi_collective *self, bool moved,
                       uint32_t oldest)
{
    const uint64_t now = ggi_now_ns();
    bool behind;
    const uint64_t others = watch_behind(comm, self, &behind);
    if (moved || !self->pending_since) {
        self->pending_collective = atomic_load(&comm_rank(comm, comm->rank)->collective);
        self->closed_since = 0;
    }
    if (moved || !self->pending_since || others > self->pending_others) {
        self->pending_since = now;
        ggi_collective_ask(comm, false);
    }
    self->pending_others = others;
    if (watch_any_gone(comm) && !self->closed_since)
        self->closed_since = now;
    if (self->closed_since && now - self->closed_since > WATCH_CLOSED_NS)
        watch_mark_closed(comm);
    else if (now - self->pending_since > comm->timeout_ns) {
        const uint64_t waited = now - self->pending_since;
        const uint64_t most = watch_product(comm->timeout_ns, oldest);
        const bool all = waited > most;
        watch_judge(comm, self, behind || all, all, all && waited - most > WATCH_STUCK_NS);
    }
}

/* Work, or a call that connects ranks, which the timeout ends. */
static void watch_late(struct gg_comm *comm, struct ggi_collective *self, bool pending, bool moved,
                       uint32_t oldest)
{
    if (atomic_load(&self->overdue))
        ggi_collective_judge_call(comm, true);
    else if (pending)
        watch_time(comm, self, moved, oldest);
    else
        ggi_collective_ask(comm, false);
}

/* ---- the end of work that cannot complete ---- */

struct watch_abort {
    struct collective_call call;
    struct ggi_collective *self; /* a reference */
    int32_t abort;
};

static gg_status watch_run_abort(struct collective_call *call)
{
    struct watch_abort *own = (struct watch_abort *)(void *)call;
    own->self->ops->destroy(own->self->impl, own->abort);
    return GG_OK;
}

static void watch_abort_left(struct collective_call *call)
{
    ggi_collective_release(((struct watch_abort *)(void *)call)->self);
    free(call);
}

/* Destroy or abort the library's part. The library waits for graphs that have its work, and so would the caller: each such
 * graph has a reference, and the part ends when they do. */
static void watch_end_part_now(struct ggi_collective *self, int32_t how)
{
    struct watch_abort *abort = calloc(1, sizeof *abort);
    if (!abort)
        return;
    atomic_fetch_add(&self->refs, 1);
    abort->abort = how;
    abort->call.run = watch_run_abort;
    abort->call.abandoned = watch_abort_left;
    abort->self = self;
    const bool graphs = ggi_collective_has_graphs(self); /* other threads may close them meanwhile */
    if (ggi_collective_bounded(self->device, &abort->call, graphs))
        watch_abort_left(&abort->call);
    else
        self->hangs = !graphs;
}

/* Not at the end of the process, whose driver may be gone, nor behind an abort that hangs, for which a destroy waits. */
static void watch_end_part(struct ggi_collective *self, int32_t how)
{
    atomic_fetch_add(&self->device->inside, 1);
    if (!atomic_load(&ggi_shutting_down) && !self->hangs)
        watch_end_part_now(self, how);
    atomic_fetch_sub(&self->device->inside, 1);
}

/* The error is stored before the work ends, so that a wait which it ends finds the error. */
static void watch_fail(struct gg_comm *comm, struct ggi_collective *self)
{
    struct ggi_kept_error kept;
    ggi_comm_state_of(comm, "a queued operation");
    ggi_error_keep(&kept);
    ggi_collective_fail_work(self, &kept, comm->external);
    watch_end_part(self, 1);
}

/* Whether a call of the library waits, perhaps in the driver for room in the queue of a stream. Then a driver may let the queries of
 * other threads wait, too: the watcher, which can end that call, must not ask it. Calls that connect ranks wait for those. */
static bool watch_call_waits(struct ggi_collective *self)
{
    const uint32_t returned = atomic_load(&self->returned);
    if (atomic_load(&self->calls) <= 2 * atomic_load(&self->guarded))
        return false;
    nanosleep(&(struct timespec){.tv_nsec = WATCH_CALL_NS}, NULL);
    return atomic_load(&self->calls) && atomic_load(&self->returned) == returned;
}

/* A call that waits is unfinished work, even if nothing is queued before it. */
static bool watch_pending(struct ggi_collective *self, bool *moved, uint32_t *oldest)
{
    const uint32_t before = self->returned_before;
    self->waits = watch_call_waits(self);
    self->returned_before = atomic_load(&self->returned);
    if (!self->waits)
        return ggi_collective_pending(self, moved, oldest);
    *moved = self->returned_before != before;
    return true;
}

static void watch_check(struct gg_comm *comm, struct ggi_collective *self)
{
    bool moved;
    uint32_t oldest = 1;
    ggi_comm_link_sync(comm);
    if (atomic_load(&self->failed))
        return;
    const bool calls =
        atomic_load(&self->calls) > 0; /* before: a call that has ended has a ticket */
    const bool pending = watch_pending(self, &moved, &oldest);
    const bool busy = pending || calls || atomic_load(&self->untracked);
    atomic_store(&comm_rank(comm, comm->rank)->working, pending || calls);
    ggi_collective_look(comm);
    if (busy)
        watch_find_lacking(comm);
    bool failed = atomic_load(&comm->segment->failed) != COMM_FINE;
    if (!failed && busy)
        failed = ggi_collective_find_ended(comm);
    const gg_status state = !failed && busy ? self->ops->state(self->impl) : GG_OK;
    if (state) {
        ggi_named_op_failed(self->device, "collective operations", state);
        ggi_collective_broken(comm, state);
        failed = true;
    }
    if (!pending)
        self->pending_since = 0;
    if (!failed) {
        watch_late(comm, self, pending, moved, oldest);
        failed = atomic_load(&comm->segment->failed) != COMM_FINE;
    }
    if (failed)
        watch_fail(comm, self);
}

/* ---- the end ---- */

static bool watch_all_finished(const struct gg_comm *comm)
{
    for (int32_t rank = 0; rank < comm->size && !comm->external; rank++)
        if (!atomic_load(&comm_rank(comm, rank)->finished))
            return false;
    return true;
}

/* Another rank may still receive what this one has sent: its work reads memory of this rank's part. */
static bool watch_any_working(const struct gg_comm *comm)
{
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank && !atomic_load(&comm_rank(comm, rank)->finished) &&
            atomic_load(&comm_rank(comm, rank)->working) && !ggi_comm_rank_ended(comm, rank))
            return true;
    return false;
}

/* Wait for the others, whose work may need this rank's part. Ranks of this process cannot end without closing. */
static void watch_part(struct gg_comm *comm, struct ggi_collective *self)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    uint64_t until = comm->local ? UINT64_MAX : ggi_now_ns() + WATCH_PARTING_NS;
    while (!atomic_load(&self->failed) && !watch_all_finished(comm) && ggi_now_ns() < until &&
           !atomic_load(&comm->segment->failed) && !atomic_load(&ggi_shutting_down)) {
        nanosleep(&pause, NULL);
        ggi_comm_link_sync(comm);
        if (!comm->local && watch_any_working(comm))
            until = ggi_now_ns() + WATCH_PARTING_NS;
    }
}

/* Wait for this rank's work. False: the driver does not report any more whether it is done. */
static bool watch_wait(struct gg_comm *comm, struct ggi_collective *self)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    uint32_t failures = 0;
    while (!atomic_load(&self->failed) && !atomic_load(&ggi_shutting_down) &&
           (atomic_load(&self->calls) || ggi_collective_pending(self, NULL, NULL))) {
        watch_check(comm, self);
        failures = ggi_collective_queries_fail(self) ? failures + 1 : 0;
        if (failures == WATCH_FAILED_QUERIES)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static void watch_finish(struct gg_comm *comm, struct ggi_collective *self)
{
    const bool known = watch_wait(comm, self);
    pthread_mutex_lock(&self->lock);
    atomic_store(&comm_rank(comm, comm->rank)->finished, 1);
    atomic_fetch_add(&comm->segment->finished, 1);
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    watch_part(comm, self);
    if (!atomic_load(&self->failed) &&
        (!known || atomic_load(&comm->segment->failed) != COMM_FINE || !watch_all_finished(comm)))
        watch_end_part(self, 1);
    watch_end_part(self, 0);
    atomic_store(&comm_rank(comm, comm->rank)->gone, 1);
    ggi_comm_link_sync(comm);
    pthread_mutex_lock(&self->lock);
    ggi_collective_forget_work(self);
    pthread_mutex_unlock(&self->lock);
}

static void watch_free(struct gg_comm *comm)
{
    ggi_collective_release(comm->collective);
    ggi_comm_free(comm);
}

static void watch_slice(struct ggi_collective *self, uint64_t ns)
{
    const uint64_t until = ggi_now_ns() + ns;
    const struct timespec limit = {.tv_sec = (time_t)(until / 1000000000u),
                                   .tv_nsec = (long)(until % 1000000000u)};
    pthread_cond_timedwait(&self->changed, &self->lock, &limit);
}

static void *watch_run(void *argument)
{
    struct gg_comm *comm = argument;
    struct ggi_collective *self = comm->collective;
    struct gg_device *device = self->device;
    pthread_setname_np(pthread_self(), "gpuglue-watch");
    pthread_mutex_lock(&self->lock);
    while (!self->closing) {
        watch_slice(self, COLLECTIVE_CHECK_NS);
        pthread_mutex_unlock(&self->lock);
        if (!atomic_load(&ggi_shutting_down))
            watch_check(comm, self);
        pthread_mutex_lock(&self->lock);
    }
    pthread_mutex_unlock(&self->lock);
    watch_finish(comm, self);
    atomic_fetch_sub(&device->helpers, 1);
    pthread_mutex_lock(&self->lock);
    self->ended = true;
    const bool released = self->released;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    if (released)
        watch_free(comm);
    return NULL;
}

/* The last reference: the watcher frees the communicator, unless it has ended. */
static void watch_close(struct gg_comm *comm)
{
    struct ggi_collective *self = comm->collective;
    ggi_collective_group_drop(self);
    pthread_mutex_lock(&self->lock);
    self->closing = self->released = true;
    const bool ended = self->ended || !self->impl;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    if (ended)
        watch_free(comm);
}

gg_status ggi_collective_watch(struct gg_comm *comm)
{
    comm->close = watch_close;
    if (!comm->collective->impl)
        return GG_OK;
    atomic_fetch_add(&comm->collective->device->helpers, 1);
    const gg_status status = ggi_thread_start(watch_run, comm);
    if (status)
        atomic_fetch_sub(&comm->collective->device->helpers, 1);
    return status;
}

/* Ranks of one process may be closed by one thread, one after the other: only the last waits for all. */
static bool close_is_done(const struct gg_comm *comm, const struct ggi_collective *self)
{
    return self->ended || (comm->local && atomic_load(&comm_rank(comm, comm->rank)->finished) &&
                           !watch_all_finished(comm));
}

gg_status gg_comm_close_device(gg_comm *comm)
{
    struct ggi_collective *self = comm->collective;
    gg_status status = ggi_comm_check_process(comm, "gg_comm_close_device");
    if (status || !self || !self->impl)
        return status;
    pthread_mutex_lock(&self->lock);
    self->closing = true;
    pthread_cond_broadcast(&self->changed);
    while (!close_is_done(comm, self) && !status) {
        watch_slice(self, GGI_SLICE_NS);
        pthread_mutex_unlock(&self->lock);
        ggi_drain(self->device); /* graphs that were closed: the library waits for them */
        if (ggi_interrupted())
            status = ggi_fail_interrupted();
        pthread_mutex_lock(&self->lock);
    }
    pthread_mutex_unlock(&self->lock);
    return status;
}
