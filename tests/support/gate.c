/* gate.c: a gate is a flag with a lock and a condition. */
#include "gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LIMIT_S 600

static atomic_int forced;

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int open, reached;
};

void *gate_new(void)
{
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate)
        return NULL;
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
    return gate;
}

static long forced_after(void)
{
    const char *seconds = getenv("GPUGLUE_TEST_GATE_SECONDS");
    return seconds ? atol(seconds) : 0;
}

/* A test that forgets to open its gate must fail, not hang. */
static void open_late(struct gate *gate)
{
    if (!forced_after()) {
        fprintf(stderr, "gate: not opened within %d s\n", LIMIT_S);
        abort();
    }
    gate->open = 1;
    atomic_fetch_add(&forced, 1);
}

void gate_wait(void *opaque)
{
    struct gate *gate = opaque;
    struct timespec limit;
    int failure = 0;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += forced_after() ? forced_after() : LIMIT_S;
    pthread_mutex_lock(&gate->lock);
    gate->reached = 1;
    while (!gate->open && !failure)
        failure = pthread_cond_timedwait(&gate->changed, &gate->lock, &limit);
    if (!gate->open)
        open_late(gate);
    pthread_mutex_unlock(&gate->lock);
}

int gates_forced(void)
{
    return atomic_load(&forced);
}

void gate_open(void *opaque)
{
    struct gate *gate = opaque;
    pthread_mutex_lock(&gate->lock);
    gate->open = 1;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

int gate_reached(void *opaque)
{
    struct gate *gate = opaque;
    int reached;
    pthread_mutex_lock(&gate->lock);
    reached = gate->reached;
    pthread_mutex_unlock(&gate->lock);
    return reached;
}

void gate_free(void *opaque)
{
    struct gate *gate = opaque;
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}
