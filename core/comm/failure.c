/* failure.c: which ranks failed, and the error that names them. */
#include "base/error.h"
#include "base/text.h"
#include "comm/comm.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/small.h"

void ggi_comm_ranks_add(struct comm_ranks *ranks, int32_t rank)
{
    ranks->bits[rank / 8] |= (uint8_t)(1u << rank % 8);
}

void ggi_comm_ranks_remove(struct comm_ranks *ranks, int32_t rank)
{
    ranks->bits[rank / 8] &= (uint8_t) ~(1u << rank % 8);
}

bool ggi_comm_ranks_has(const struct comm_ranks *ranks, int32_t rank)
{
    return ranks->bits[rank / 8] >> rank % 8 & 1;
}

int32_t ggi_comm_ranks_count(const struct comm_ranks *ranks)
{
    int32_t count = 0;
    for (int32_t rank = 0; rank < GG_COMM_SIZE_MAX; rank++)
        count += ggi_comm_ranks_has(ranks, rank);
    return count;
}

size_t gg_comm_failed_ranks(int32_t *ranks, size_t room)
{
    struct comm_ranks failed;
    size_t count = 0;
    memcpy(failed.bits, ggi_error_record()->ranks, sizeof failed.bits);
    for (int32_t rank = 0; rank < GG_COMM_SIZE_MAX; rank++) {
        if (!ggi_comm_ranks_has(&failed, rank))
            continue;
        if (count < room)
            ranks[count] = rank;
        count++;
    }
    return count;
}

const char *ggi_comm_ranks_text(char *data, size_t size, const struct comm_ranks *ranks)
{
    struct ggi_text text = ggi_text_begin(data, size);
    const int32_t count = ggi_comm_ranks_count(ranks);
    ggi_text_add(&text, count == 1 ? "rank" : "ranks");
    for (int32_t rank = 0, seen = 0; rank < GG_COMM_SIZE_MAX; rank++)
        if (ggi_comm_ranks_has(ranks, rank)) {
            seen++;
            ggi_text_add(&text, "%s%d", seen == 1 ? " " : seen == count ? " and " : ", ", rank);
        }
    return data;
}

gg_status ggi_comm_fail(const struct comm_ranks *ranks, const char *format, ...)
{
    struct ggi_text text = GGI_TEXT(700);
    va_list arguments;
    va_start(arguments, format);
    ggi_text_addv(&text, format, arguments);
    va_end(arguments);
    memcpy(ggi_error_record()->ranks, ranks->bits, sizeof ranks->bits);
    return ggi_fail(GG_ERR_COMMUNICATOR, "%s", text.data);
}

void ggi_comm_mark(struct gg_comm *comm, int32_t rank, uint32_t why)
{
    uint32_t fine = COMM_FINE;
    atomic_compare_exchange_strong(&comm_rank(comm, rank)->lost, &fine, why);
}

/* Only the first failure counts. Its ranks are marked before: a rank that reads this word finds all marks. */
static void failure_declare(struct gg_comm *comm, uint32_t why)
{
    uint32_t fine = COMM_FINE;
    atomic_compare_exchange_strong(&comm->segment->failed, &fine, why);
    for (int32_t i = 0; i < comm->size; i++) {
        ggi_comm_word_wake(&comm_rank(comm, i)->round);
        ggi_comm_word_wake(&comm_rank(comm, i)->bell);
    }
    ggi_comm_link_sync(comm);
}

void ggi_comm_declare(struct gg_comm *comm)
{
    for (uint32_t why = COMM_ENDED; why <= COMM_BROKEN; why++)
        for (int32_t rank = 0; rank < comm->size; rank++)
            if (atomic_load(&comm_rank(comm, rank)->lost) == why) {
                failure_declare(comm, why);
                return;
            }
}

void ggi_comm_declare_unmarked(struct gg_comm *comm, uint32_t why)
{
    failure_declare(comm, why);
}

void ggi_comm_break(struct gg_comm *comm)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* two threads may find errors */
    struct comm_rank *mine = comm_rank(comm, comm->rank);
    pthread_mutex_lock(&lock);
    if (atomic_load(&mine->lost) == COMM_FINE)
        snprintf(mine->broken, sizeof mine->broken, "%.*s", (int)sizeof mine->broken - 1,
                 ggi_error_record()->error.message);
    ggi_comm_mark(comm, comm->rank, COMM_BROKEN);
    ggi_comm_declare(comm);
    pthread_mutex_unlock(&lock);
}

static const char *failure_reason(uint32_t why)
{
    switch (why) {
    case COMM_ENDED:
        return "ended without closing the communicator: the process was killed, crashed or exited";
    case COMM_LATE:
        return "did not take part within the timeout";
    case COMM_CLOSED:
        return "closed the communicator, which the others still use";
    case COMM_BROKEN:
        return "got an error from the library of collective operations";
    default:
        return "aborted the communicator";
    }
}

/* The error of the first broken rank. */
static void failure_add_error(struct ggi_text *text, const struct gg_comm *comm,
                              const struct comm_ranks *lost)
{
    int32_t rank = 0;
    while (!ggi_comm_ranks_has(lost, rank))
        rank++;
    const char *error = comm_rank(comm, rank)->broken;
    if (*error)
        ggi_text_add(text, ": %.*s", COMM_BROKEN_TEXT - 1, error);
}

/* Of a failure that names no rank; else NULL. Of a borrowed communicator no segment shows what the other ranks do. */
static const char *failure_unmarked(const struct gg_comm *comm, uint32_t why)
{
    if (comm->external && (why == COMM_LATE || why >= COMM_STUCK))
        return "not all ranks took part within the timeout; which did not is unknown, since other "
               "code created the communicator: abort it there, which also ends the work on the "
               "device";
    if (why == COMM_STUCK)
        return "all ranks have queued their part, and it did not end within the timeout; the cause "
               "may be a kernel or copy before it that does not end, a rank that queued another "
               "operation, size or type, or the network; close this communicator, and create a new "
               "one";
    if (why == COMM_UNCONNECTED)
        return "the library did not connect the ranks within the timeout, and all of them wait for "
               "it; check its network interfaces, with NCCL_DEBUG=INFO, and that all ranks call "
               "the same operation";
    return NULL;
}

static gg_status failure_report(const struct gg_comm *comm, uint32_t why, const char *call)
{
    struct ggi_text error = GGI_TEXT(COMM_BROKEN_TEXT + 2);
    struct comm_ranks lost = {{0}};
    char text[400];
    const char *unmarked = failure_unmarked(comm, why);
    if (unmarked)
        return ggi_comm_fail(&lost, "%s: %s", call, unmarked);
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (atomic_load(&comm_rank(comm, rank)->lost) == why)
            ggi_comm_ranks_add(&lost, rank);
    if (why == COMM_BROKEN)
        failure_add_error(&error, comm, &lost);
    const char *more = "";
    if (comm->local && why == COMM_LATE)
        more = " (each rank of a process needs a thread of its own)";
    else if (comm->link && why == COMM_ENDED)
        more = ", or its machine does not answer";
    return ggi_comm_fail(&lost,
                         "%s: %s%s %s%s%s; close this communicator, and create a new one from the "
                         "remaining ranks",
                         call, ggi_comm_ranks_text(text, sizeof text, &lost),
                         ggi_comm_ranks_has(&lost, comm->rank) ? " (this rank)" : "",
                         failure_reason(why), error.data, more);
}

gg_status ggi_comm_state_of(struct gg_comm *comm, const char *call)
{
    const uint32_t why = atomic_load(&comm->segment->failed);
    return why == COMM_FINE ? GG_OK : failure_report(comm, why, call);
}

gg_status ggi_comm_state(struct gg_comm *comm)
{
    return ggi_comm_state_of(comm, comm->call);
}
