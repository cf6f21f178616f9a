/* wait.c: waits for other ranks, with a timeout, interrupts and a check for ranks that have ended. */
#include "base/error.h"
#include "base/process_state.h"
#include "comm/comm.h"

struct comm_wait ggi_comm_wait_begin(struct gg_comm *comm)
{
    const uint64_t now = ggi_now_ns();
    const bool forever = comm->timeout_ns > UINT64_MAX - now;
    return (struct comm_wait){.comm = comm,
                              .until = forever ? UINT64_MAX : now + comm->timeout_ns,
                              .slept = now,
                              .check = now + GGI_SLICE_NS};
}

/* A slice is 50 ms. If much more time has passed, this process was suspended, perhaps together with the whole job. That time
 * does not count towards the timeout. */
static void wait_exclude_pause(struct comm_wait *wait, uint64_t now)
{
    const uint64_t passed = now - wait->slept;
    if (passed > 2 * GGI_SLICE_NS && wait->until != UINT64_MAX)
        wait->until += passed - GGI_SLICE_NS;
    wait->slept = now;
}

static gg_status wait_interrupted(struct gg_comm *comm)
{
    ggi_comm_mark(comm, comm->rank, COMM_ABORTED);
    ggi_comm_declare(comm);
    return ggi_fail(GG_ERR_INTERRUPTED, "%s: the wait was interrupted; the communicator is aborted",
                    comm->call);
}

/* All that a rank published before it ended or closed is valid. A rank that closes sets `closed` before it releases its lock,
 * so the lock is queried first. */
static uint32_t wait_absence(const struct gg_comm *comm, int32_t rank, bool late)
{
    const bool ended = ggi_comm_rank_ended(comm, rank);
    if (atomic_load(&comm_rank(comm, rank)->closed))
        return COMM_CLOSED;
    if (ended)
        return COMM_ENDED;
    return late ? COMM_LATE : COMM_FINE;
}

static gg_status wait_find_lost(struct comm_wait *wait, uint64_t now,
                                bool (*missing)(const void *what, int32_t rank), const void *what)
{
    struct gg_comm *comm = wait->comm;
    uint32_t absent, any = COMM_FINE;
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank && missing(what, rank) &&
            (absent = wait_absence(comm, rank, now >= wait->until)) &&
            missing(what, rank)) /* it may have done its part, then ended */
            ggi_comm_mark(comm, rank, any = absent);
    if (any)
        ggi_comm_declare(comm);
    return ggi_comm_state(comm);
}

gg_status ggi_comm_wait_check(struct comm_wait *wait,
                              bool (*missing)(const void *what, int32_t rank), const void *what)
{
    const uint64_t now = ggi_now_ns();
    if (atomic_load(&wait->comm->segment->failed))
        return ggi_comm_state(wait->comm);
    wait_exclude_pause(wait, now);
    if (now < wait->check && now < wait->until)
        return GG_OK;
    wait->check = now + GGI_SLICE_NS;
    if (ggi_interrupted())
        return wait_interrupted(wait->comm);
    return wait_find_lost(wait, now, missing, what);
}

gg_status ggi_comm_wait_slice(struct comm_wait *wait, struct comm_word *word, uint32_t value,
                              bool (*missing)(const void *what, int32_t rank), const void *what)
{
    if (ggi_comm_word_spin(word, value))
        return GG_OK;
    ggi_comm_word_sleep(word, value, GGI_SLICE_NS);
    return ggi_comm_wait_check(wait, missing, what);
}
