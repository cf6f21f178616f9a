/* condition.h: conditions whose time limits do not move when the clock is set. */
#ifndef GPUGLUE_BASE_CONDITION_H
#define GPUGLUE_BASE_CONDITION_H

#include <pthread.h>
#include <time.h>

static inline void ggi_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

#endif
