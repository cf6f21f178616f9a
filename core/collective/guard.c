/* guard.c: calls of a library that may wait for other ranks run on a thread of their own, so that this one can stop waiting. */
#include "base/condition.h"
#include "base/log.h"
#include "base/thread.h"
#include "collective/collective.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define GUARD_PATIENCE_NS 10000000000u
#define GUARD_BRIEF_NS 200000000u
#define GUARD_WATCHER_NS 4000000000u /* for a watcher to judge, unless the driver keeps it */

static void *guard_run(void *argument)
{
    struct collective_call *call = argument;
    struct gg_device *device = call->device;
    pthread_setname_np(pthread_self(), "gpuglue-call");
    const gg_status status = call->run(call);
    pthread_mutex_lock(&call->lock);
    call->status = status;
    ggi_error_keep(&call->error);
    call->done = true;
    const bool left = call->left;
    pthread_cond_broadcast(&call->changed);
    pthread_mutex_unlock(&call->lock);
    if (left)
        call->abandoned(call);
    atomic_fetch_sub(&device->inside, 1);
    return NULL;
}

static gg_status guard_start(struct gg_device *device, struct collective_call *call)
{
    call->device = device;
    pthread_mutex_init(&call->lock, NULL);
    ggi_condition_init(&call->changed);
    atomic_fetch_add(&device->inside, 1);
    const gg_status status = ggi_thread_start(guard_run, call);
    if (status)
        atomic_fetch_sub(&device->inside, 1);
    return status;
}

/* Whether the call ends within a slice. */
static bool guard_slice(struct collective_call *call)
{
    const uint64_t until = ggi_now_ns() + GGI_SLICE_NS;
    const struct timespec limit = {.tv_sec = (time_t)(until / 1000000000u),
                                   .tv_nsec = (long)(until % 1000000000u)};
    int error = 0;
    pthread_mutex_lock(&call->lock);
    while (!call->done && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&call->changed, &call->lock, &limit);
    const bool done = call->done;
    pthread_mutex_unlock(&call->lock);
    return done;
}

/* True if the call has not ended: from now on it frees itself. */
static bool guard_leave(struct collective_call *call)
{
    pthread_mutex_lock(&call->lock);
    call->left = !call->done;
    const bool left = call->left;
    pthread_mutex_unlock(&call->lock);
    return left;
}

static gg_status guard_interrupt(struct gg_comm *comm)
{
    ggi_comm_mark(comm, comm->rank, COMM_ABORTED);
    ggi_comm_declare(comm);
    return ggi_fail(GG_ERR_INTERRUPTED, "%s: the wait was interrupted; the communicator is aborted",
                    comm->call);
}

/* While the ranks create their parts: one that has failed never completes the others' calls. */
static bool guard_other_failed(const struct gg_comm *comm)
{
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (atomic_load(&comm_rank(comm, rank)->created) == COMM_CREATION_FAILED)
            return true;
    return false;
}

/* After the timeout: the watcher knows which ranks are behind. While this rank's part is created, there is none. */
static void guard_judge(struct gg_comm *comm, bool creates, uint64_t late)
{
    atomic_store(&comm->collective->overdue, true);
    if (creates || late > GUARD_WATCHER_NS)
        ggi_collective_judge_call(comm, creates);
}

/* GG_NOT_READY: wait on. */
static gg_status guard_check(struct gg_comm *comm, uint64_t until)
{
    const struct comm_ranks none = {{0}};
    const bool creates = !comm->collective->impl;
    const uint64_t now = ggi_now_ns();
    if (ggi_interrupted())
        return guard_interrupt(comm);
    if (creates)
        ggi_collective_look(comm);
    if (ggi_collective_find_ended(comm))
        return ggi_comm_state(comm);
    if (guard_other_failed(comm))
        return ggi_comm_fail(&none, "%s: the library failed on another rank", comm->call);
    if (now < until)
        return GG_NOT_READY;
    guard_judge(comm, creates, now - until);
    return atomic_load(&comm->segment->failed) ? ggi_comm_state(comm) : GG_NOT_READY;
}

static gg_status guard_wait(struct gg_comm *comm, struct collective_call *call, uint64_t until)
{
    gg_status status = GG_NOT_READY;
    while (status == GG_NOT_READY && !guard_slice(call))
        status = guard_check(comm, until);
    atomic_store(&comm->collective->overdue, false);
    return status;
}

bool ggi_collective_bounded(struct gg_device *device, struct collective_call *call, bool briefly)
{
    if (guard_start(device, call)) {
        call->run(call);
        return true;
    }
    const uint64_t until = ggi_now_ns() + (briefly ? GUARD_BRIEF_NS : GUARD_PATIENCE_NS);
    while (!guard_slice(call) && ggi_now_ns() < until)
        ;
    const bool left = guard_leave(call);
    if (left && !briefly)
        ggi_log(GG_LOG_ERROR, device->backend->name,
                "the end of a communicator has not returned for 10 s: work on device %d may never "
                "end: end this process",
                (int)device->ordinal);
    return !left;
}

gg_status ggi_collective_guard(struct gg_comm *comm, struct collective_call *call, uint64_t until,
                               bool patient, bool *left)
{
    gg_status status = guard_start(comm->collective->device, call);
    *left = false;
    if (status)
        return status;
    status = guard_wait(comm, call, until);
    if (status != GG_NOT_READY) {
        const uint64_t last = ggi_now_ns() + GUARD_PATIENCE_NS;
        while (patient && !guard_slice(call) && ggi_now_ns() < last)
            ;
        *left = guard_leave(call);
        return status;
    }
    if (call->status)
        ggi_error_restore(&call->error);
    return call->status;
}
