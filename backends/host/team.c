/* team.c: a device's threads, with which a stream's worker shares the blocks of a large grid. */
#include "host.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "GPUGLUE_HOST_THREADS"
#define THREADS_MAX 1024
#define SHARED_FROM 32768u /* threads of a grid: waking the others costs less than running these */
#define SHARED_AFTER_NS 100000u /* a smaller grid is shared if it has run for so long */
#define CHUNKS_PER_THREAD \
    8u /* blocks are taken in chunks, so that no thread waits long for the last one */

/* ---- how many threads ---- */

/* The calling thread may be bound to one processor, as a server's or OpenMP's are. */
bool host_processors_get(struct host_processors *out)
{
    return !sched_getaffinity(getpid(), sizeof out->set, out->set);
}

/* An older core does not count them. */
static int threads_by_default(void)
{
    struct host_processors processors;
    if (host_api->struct_size > offsetof(struct gg_host_api, processor_count))
        return host_api->processor_count();
    return host_processors_get(&processors) ? CPU_COUNT_S(sizeof processors.set, processors.set) : 1;
}

static int thread_count;
static bool thread_count_given; /* by the variable */

static void threads_read_variable(void)
{
    const char *text = host_api->get_env(VARIABLE);
    char *end = NULL;
    const long number = text ? strtol(text, &end, 10) : 0;
    const bool good = text && *text && !*end && number >= 1 && number <= THREADS_MAX;
    thread_count_given = good;
    thread_count = good ? (int)number : threads_by_default();
    if (good || !text || !*text)
        return;
    host_api->log(GG_LOG_WARN, "host",
                  VARIABLE
                  "=%.64s is not understood: expected a number of threads from 1 to %d; using "
                  "the default",
                  text, THREADS_MAX);
}

int host_thread_count(int32_t ordinal)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct host_processors processors;
    pthread_once(&once, threads_read_variable);
    if (thread_count_given || host_device_node(ordinal) < 0 ||
        !host_device_processors(ordinal, &processors))
        return thread_count;
    const int own = CPU_COUNT_S(sizeof processors.set, processors.set);
    return own < thread_count ? own : thread_count;
}

/* ---- the threads ---- */

/* A grid with blocks that no thread has taken, and memory for one more thread; team->lock is held. */
static struct host_job *team_find_job(struct host_team *team)
{
    struct host_job *job = team->jobs;
    while (job && (job->no_room ||
                   atomic_load_explicit(&job->next_block, memory_order_relaxed) >= job->blocks))
        job = job->next;
    return job;
}

static void *team_main(void *argument)
{
    struct host_team *team = argument;
    pthread_mutex_lock(&team->lock);
    while (!team->stopping) {
        struct host_job *job = team_find_job(team);
        if (!job) {
            pthread_cond_wait(&team->work, &team->lock);
            continue;
        }
        job->helpers++;
        pthread_mutex_unlock(&team->lock);
        const bool helped = host_help_with_blocks(job);
        pthread_mutex_lock(&team->lock);
        job->no_room |= !helped;
        if (--job->helpers == 0)
            pthread_cond_broadcast(&team->done);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

/* As many as possible: the worker alone is enough. team->lock is held. */
static void team_start(struct host_team *team)
{
    if (team->start_tried || team->size < 2)
        return;
    team->start_tried = true;
    team->threads = calloc((size_t)team->size, sizeof *team->threads);
    while (team->threads && team->started < team->size - 1 &&
           !host_thread_start(&team->threads[team->started], team->ordinal, "gpuglue-grid",
                              team_main, team))
        team->started++;
}

void host_team_init(struct host_team *team, int32_t ordinal)
{
    *team = (struct host_team){.ordinal = ordinal, .size = host_thread_count(ordinal)};
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->work, NULL);
    pthread_cond_init(&team->done, NULL);
}

void host_team_destroy(struct host_team *team)
{
    pthread_mutex_lock(&team->lock);
    team->stopping = true;
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
    for (int i = 0; i < team->started; i++)
        pthread_join(team->threads[i], NULL);
    free(team->threads);
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->work);
    pthread_mutex_destroy(&team->lock);
}

/* ---- a grid ---- */

void host_job_offer(struct host_job *job, struct host_team *team)
{
    pthread_mutex_lock(&team->lock);
    team_start(team);
    job->next = team->jobs;
    team->jobs = job;
    job->offered = true;
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
}

void host_job_withdraw(struct host_job *job, struct host_team *team)
{
    struct host_job **at = &team->jobs;
    pthread_mutex_lock(&team->lock);
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    while (job->helpers)
        pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

void host_run_grid(struct host_team *team, const struct host_grid *grid,
                   char failure[HOST_FAILURE_SIZE])
{
    const uint64_t blocks = (uint64_t)grid->grid.x * grid->grid.y * grid->grid.z;
    const uint64_t threads = (uint64_t)grid->block.x * grid->block.y * grid->block.z;
    const bool alone = team->size < 2 || blocks < 2;
    struct host_job job = {.grid = grid, .blocks = blocks, .chunk = blocks};
    if (!alone) {
        const uint64_t chunks = (uint64_t)team->size * CHUNKS_PER_THREAD;
        job.chunk = blocks > chunks ? blocks / chunks : 1;
        if (blocks < SHARED_FROM / threads)
            job.offer_at = host_now_ns() + SHARED_AFTER_NS;
    }
    host_run_blocks(&job, alone ? NULL : team);
    failure[0] = '\0';
    if (job.failure[0])
        memcpy(failure, job.failure, sizeof job.failure);
}
