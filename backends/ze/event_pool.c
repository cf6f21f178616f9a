/* event_pool.c: the pool of native events. */
#include "ze.h"

#include <stdlib.h>

#define POLLS 8 /* parked events that are polled when an event is acquired */

/* ---- the pool's lists; pool->lock is held ---- */

static void pool_park(struct ze_pool *pool, struct ze_pooled_event *pooled)
{
    pooled->next = NULL;
    *pool->last = pooled;
    pool->last = &pooled->next;
}

static struct ze_pooled_event *pool_pop_parked(struct ze_pool *pool)
{
    struct ze_pooled_event *pooled = pool->parked;
    pool->parked = pooled->next;
    if (!pool->parked)
        pool->last = &pool->parked;
    return pooled;
}

static int event_query(struct ze_pooled_event *pooled)
{
    int code = 0;
    if (atomic_load_explicit(&pooled->passed, memory_order_acquire))
        return code;
    code = ze.event_query(pooled->event);
    if (!code)
        atomic_store_explicit(&pooled->passed, true, memory_order_release);
    return code;
}

/* The event was signalled, so the list has passed what it waited for. An event that cannot be reset stays unused
 * until the pool is closed. */
static void pool_recycle(struct ze_pool *pool, struct ze_pooled_event *pooled)
{
    struct ze_pooled_event *before = pooled->before;
    const int code = ze.event_reset(pooled->event);
    pooled->before = NULL;
    if (before && !before->driver)
        ze_pooled_event_release(before);
    else if (before && atomic_fetch_sub(&before->refs, 1) == 1)
        pool_park(pool, before);
    ze_log_failure(code, "resetting an event");
    if (code)
        return;
    pooled->next = pool->free;
    pool->free = pooled;
}

static void pool_reclaim(struct ze_pool *pool)
{
    for (int polls = 0; polls < POLLS && pool->parked; polls++) {
        struct ze_pooled_event *pooled = pool_pop_parked(pool);
        const int code = event_query(pooled);
        if (!code)
            pool_recycle(pool, pooled);
        else
            pool_park(pool, pooled);
    }
}

/* ---- growing; pool->lock is held ---- */

static int pool_add_chunk(struct ze_driver *driver)
{
    const struct ze_pool_desc desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
                                      .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE,
                                      .count = ZE_CHUNK_EVENTS};
    struct ze_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    const int code = ze.pool_create(driver->context, &desc, 0, NULL, &chunk->pool);
    if (code) {
        free(chunk);
        return code;
    }
    chunk->next = driver->pool.chunks;
    driver->pool.chunks = chunk;
    return 0;
}

/* Create the next event of the newest chunk and add it to the free ones. */
static int pool_add_event(struct ze_driver *driver)
{
    struct ze_chunk *chunk = driver->pool.chunks;
    int code = !chunk || chunk->used == ZE_CHUNK_EVENTS ? pool_add_chunk(driver) : 0;
    if (code)
        return code;
    chunk = driver->pool.chunks;
    struct ze_pooled_event *pooled = &chunk->events[chunk->used];
    const struct ze_event_desc desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                                       .index = chunk->used,
                                       .signal = ZE_EVENT_SCOPE_FLAG_HOST,
                                       .wait = ZE_EVENT_SCOPE_FLAG_HOST};
    code = ze.event_create(chunk->pool, &desc, &pooled->event);
    if (code)
        return code;
    pooled->driver = driver;
    pooled->chunk = chunk;
    pooled->next = driver->pool.free;
    driver->pool.free = pooled;
    chunk->used++;
    return 0;
}

static int event_add_time(struct ze_driver *driver, struct ze_pooled_event *pooled)
{
    const struct ze_plain_desc desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    struct ze_chunk *chunk = pooled->chunk;
    void *times = chunk->times;
    int code = 0;
    if (!times)
        code = ze.alloc_host(driver->context, &desc, ZE_CHUNK_EVENTS * sizeof *pooled->time,
                             sizeof *pooled->time, &times);
    if (code)
        return code;
    chunk->times = times;
    pooled->time = chunk->times + (pooled - chunk->events);
    return 0;
}

static int pool_acquire(struct ze_driver *driver, bool timed, struct ze_pooled_event **out)
{
    struct ze_pool *pool = &driver->pool;
    pool_reclaim(pool);
    int code = pool->free ? 0 : pool_add_event(driver);
    if (!code && timed && !pool->free->time)
        code = event_add_time(driver, pool->free);
    if (code)
        return code;
    *out = pool->free;
    pool->free = pool->free->next;
    return 0;
}

/* ---- pooled events ---- */

int ze_pooled_event_take(struct ze_driver *driver, bool timed, struct ze_pooled_event **out)
{
    pthread_mutex_lock(&driver->pool.lock);
    const int code = pool_acquire(driver, timed, out);
    pthread_mutex_unlock(&driver->pool.lock);
    if (code)
        return code;
    atomic_store_explicit(&(*out)->passed, false, memory_order_relaxed);
    atomic_store_explicit(&(*out)->refs, 1, memory_order_relaxed);
    return 0;
}

struct ze_pooled_event *ze_pooled_event_wrap(void *event)
{
    struct ze_pooled_event *pooled = calloc(1, sizeof *pooled);
    if (!pooled)
        return NULL;
    pooled->event = event;
    atomic_init(&pooled->refs, 1);
    return pooled;
}

struct ze_pooled_event *ze_pooled_event_retain(struct ze_pooled_event *pooled)
{
    atomic_fetch_add_explicit(&pooled->refs, 1, memory_order_relaxed);
    return pooled;
}

void ze_pooled_event_release(struct ze_pooled_event *pooled)
{
    if (!pooled || atomic_fetch_sub(&pooled->refs, 1) != 1)
        return;
    if (!pooled->driver) {
        free(pooled);
        return;
    }
    pthread_mutex_lock(&pooled->driver->pool.lock);
    pool_park(&pooled->driver->pool, pooled);
    pthread_mutex_unlock(&pooled->driver->pool.lock);
}

/* Nothing will signal it, so it can be reused at once. */
void ze_pooled_event_abandon(struct ze_pooled_event *pooled)
{
    struct ze_pool *pool = &pooled->driver->pool;
    pthread_mutex_lock(&pool->lock);
    pooled->next = pool->free;
    pool->free = pooled;
    pthread_mutex_unlock(&pool->lock);
}

void ze_pooled_event_leave(struct ze_pooled_event *pooled)
{
    if (pooled && pooled->driver)
        pooled->chunk->left = true;
}

/* A borrowed event may be reset by its owner, so its state is not cached. */
int ze_pooled_event_query(struct ze_pooled_event *pooled)
{
    return pooled->driver ? event_query(pooled) : ze.event_query(pooled->event);
}

int ze_pooled_event_wait(struct ze_pooled_event *pooled, uint64_t timeout_ns)
{
    int code = ze_pooled_event_query(pooled);
    if (code != ZE_RESULT_NOT_READY || !timeout_ns)
        return code;
    code = ze.event_synchronize(pooled->event, timeout_ns);
    if (!code && pooled->driver)
        atomic_store_explicit(&pooled->passed, true, memory_order_release);
    return code;
}

/* ---- closing ---- */

/* Chunks whose events the device may still signal: they stay until the process ends. */
static _Atomic(struct ze_chunk *) chunks_left;

static void chunk_leave(struct ze_chunk *chunk)
{
    chunk->next = atomic_load(&chunks_left);
    while (!atomic_compare_exchange_weak(&chunks_left, &chunk->next, chunk)) {
    }
}

/* Whether the device will not signal it any more. */
static bool event_is_over(struct ze_pooled_event *pooled)
{
    int code = event_query(pooled);
    for (int tries = 1; tries < ZE_TRIES && code && code != ZE_RESULT_NOT_READY; tries++)
        code = event_query(pooled);
    return !code || ze_is_over(code);
}

/* The parked events that the device has not signalled, or may not have. */
static void pool_leave_unsignalled(struct ze_pool *pool)
{
    for (struct ze_pooled_event *pooled = pool->parked; pooled; pooled = pooled->next)
        if (!event_is_over(pooled))
            ze_pooled_event_leave(pooled);
}

static void chunk_destroy(struct ze_driver *driver, struct ze_chunk *chunk)
{
    for (uint32_t i = 0; i < chunk->used; i++)
        ze_log_failure(ze.event_destroy(chunk->events[i].event), "destroying an event");
    ze_log_failure(ze.pool_destroy(chunk->pool), "destroying an event pool");
    if (chunk->times)
        ze_log_failure(ze.mem_free(driver->context, chunk->times), "freeing timestamps");
    free(chunk);
}

void ze_pool_close(struct ze_driver *driver)
{
    struct ze_pool *pool = &driver->pool;
    pool_leave_unsignalled(pool);
    while (pool->chunks) {
        struct ze_chunk *chunk = pool->chunks;
        pool->chunks = chunk->next;
        if (chunk->left)
            chunk_leave(chunk);
        else
            chunk_destroy(driver, chunk);
    }
    pool->free = pool->parked = NULL;
    pool->last = &pool->parked;
}
