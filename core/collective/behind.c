/* behind.c: which ranks are behind when work does not end: what each rank shows the others, and what it concludes. */
#include "collective/collective.h"

#include <stdlib.h>

#define BEHIND_SILENT_NS 2000000000u /* without a beat: the process does not run */
#define BEHIND_ANSWERS 2             /* beats: the second check has begun after the question */

gg_status ggi_collective_see_others(struct gg_comm *comm)
{
    struct ggi_collective *self = comm->collective;
    self->others = calloc((size_t)comm->size, sizeof *self->others);
    return self->others ? GG_OK
                        : ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory to watch %d ranks", comm->size);
}

void ggi_collective_look(struct gg_comm *comm)
{
    struct ggi_collective *self = comm->collective;
    const uint64_t now = ggi_now_ns(), most = 2 * COLLECTIVE_CHECK_NS;
    const uint64_t passed = now - self->looked;
    for (int32_t rank = 0; rank < comm->size; rank++) {
        struct collective_other *other = &self->others[rank];
        const uint32_t beats = atomic_load(&comm_rank(comm, rank)->beats);
        other->silent_ns += passed < most ? passed : most; /* else this process did not run */
        if (beats == other->beats)
            continue;
        *other = (struct collective_other){.beats = beats, .answers = other->answers + 1};
    }
    self->looked = now;
    atomic_fetch_add(&comm_rank(comm, comm->rank)->beats, 1);
}

void ggi_collective_ask(struct gg_comm *comm, bool asks)
{
    struct comm_rank *mine = comm_rank(comm, comm->rank);
    for (int32_t rank = 0; rank < comm->size && asks && !atomic_load(&mine->asks); rank++) {
        struct collective_other *other = &comm->collective->others[rank];
        other->answers = 0;
        if (comm->link) /* which passes beats on from now on */
            other->silent_ns = 0;
    }
    atomic_store(&mine->asks, asks);
}

static bool behind_works(const struct gg_comm *comm, int32_t rank)
{
    const struct comm_rank *other = comm_rank(comm, rank);
    return atomic_load(&other->working) && !atomic_load(&other->finished);
}

/* A rank without unfinished work has completed all that it has queued, also if its process does not run. */
static bool behind_is_known(const struct gg_comm *comm, int32_t rank)
{
    return rank == comm->rank || !behind_works(comm, rank) ||
           comm->collective->others[rank].answers >= BEHIND_ANSWERS;
}

static bool behind_is_silent(const struct gg_comm *comm, int32_t rank)
{
    return rank != comm->rank && behind_works(comm, rank) &&
           comm->collective->others[rank].silent_ns > BEHIND_SILENT_NS;
}

/* Over a link, the beats of the others come through rank 0: without its own, they show nothing. */
static bool behind_is_hidden(const struct gg_comm *comm, int32_t rank)
{
    return comm->link && comm->rank && rank &&
           comm->collective->others[0].silent_ns > BEHIND_SILENT_NS / 2;
}

bool ggi_collective_answered(const struct gg_comm *comm)
{
    for (int32_t rank = 0; rank < comm->size && !comm->external; rank++)
        if (!behind_is_known(comm, rank) && !behind_is_silent(comm, rank))
            return false;
    return true;
}

/* Operations that some rank has completed, so that all others have begun them, or will not. */
static uint64_t behind_most_complete(const struct gg_comm *comm)
{
    uint64_t most = 0;
    for (int32_t rank = 0; rank < comm->size; rank++) {
        const uint64_t complete = atomic_load(&comm_rank(comm, rank)->complete);
        most = complete > most ? complete : most;
    }
    return most;
}

/* Operations that all ranks must have queued for this rank's oldest unfinished one. */
static uint64_t behind_needed(const struct gg_comm *comm)
{
    const struct comm_rank *mine = comm_rank(comm, comm->rank);
    const uint64_t complete = atomic_load(&mine->complete);
    return atomic_load(&mine->incomplete) > complete ? complete + 1 : 0;
}

static bool behind_has_completed_less(const struct gg_comm *comm, int32_t rank, uint64_t complete)
{
    const uint64_t incomplete = atomic_load(&comm_rank(comm, rank)->incomplete);
    return behind_works(comm, rank) && incomplete && incomplete <= complete;
}

static bool behind_is_held(const struct gg_comm *comm, int32_t rank)
{
    return behind_works(comm, rank) && atomic_load(&comm_rank(comm, rank)->held);
}

static bool behind_mark_held(struct gg_comm *comm)
{
    bool any = false;
    for (int32_t rank = 0; rank < comm->size && !comm->external; rank++)
        if (behind_is_held(comm, rank)) {
            ggi_comm_mark(comm, rank, COMM_LATE);
            any = true;
        }
    return any;
}

bool ggi_collective_mark_behind(struct gg_comm *comm, bool all_late)
{
    const uint64_t complete = all_late ? behind_most_complete(comm) : 0;
    const uint64_t needed = behind_needed(comm);
    bool any = false;
    for (int32_t rank = 0; rank < comm->size && !comm->external; rank++)
        if ((behind_is_silent(comm, rank) && !behind_is_hidden(comm, rank)) ||
            behind_is_held(comm, rank) || atomic_load(&comm_rank(comm, rank)->collective) < needed ||
            behind_has_completed_less(comm, rank, complete)) {
            ggi_comm_mark(comm, rank, COMM_LATE);
            any = true;
        }
    return any;
}

void ggi_collective_judge_call(struct gg_comm *comm, bool knows)
{
    const uint64_t queued = atomic_load(&comm_rank(comm, comm->rank)->collective);
    if (knows) {
        ggi_collective_ask(comm, true);
        if (!ggi_collective_answered(comm))
            return;
    }
    if ((knows ? ggi_collective_mark_behind(comm, false) : behind_mark_held(comm)) ||
        ggi_collective_mark_late(comm, queued))
        ggi_comm_declare(comm);
    else
        ggi_comm_declare_unmarked(comm, COMM_UNCONNECTED);
}
