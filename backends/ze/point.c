/* point.c: the pool of native events, and points, which are one use of one of them. */
#include "ze.h"

#include <stdlib.h>

#define LOOKS 8 /* flying points that are looked at when a new one is wanted */

/* ---- the pool's lists; pool->lock is held ---- */

static void fly(struct ze_pool *pool, struct ze_point *point)
{
    point->next = NULL;
    *pool->last = point;
    pool->last = &point->next;
}

static struct ze_point *land(struct ze_pool *pool)
{
    struct ze_point *point = pool->flying;
    pool->flying = point->next;
    if (!pool->flying)
        pool->last = &pool->flying;
    return point;
}

static int status_of(struct ze_point *point)
{
    int code = 0;
    if (atomic_load_explicit(&point->passed, memory_order_acquire))
        return code;
    code = ze.event_query(point->event);
    if (!code)
        atomic_store_explicit(&point->passed, true, memory_order_release);
    return code;
}

/* It was signalled, so the list has passed what it waited for. An event that cannot be reset is left
 * alone until the pool is closed. */
static void recycle(struct ze_pool *pool, struct ze_point *point)
{
    struct ze_point *before = point->before;
    const int code = ze.event_reset(point->event);
    point->before = NULL;
    if (before && !before->driver)
        ze_point_release(before);
    else if (before && atomic_fetch_sub(&before->refs, 1) == 1)
        fly(pool, before);
    ze_forget(code, "resetting an event");
    if (code)
        return;
    point->next = pool->free;
    pool->free = point;
}

static void look_at_flying(struct ze_pool *pool)
{
    for (int looks = 0; looks < LOOKS && pool->flying; looks++) {
        struct ze_point *point = land(pool);
        const int code = status_of(point);
        if (!code)
            recycle(pool, point);
        else
            fly(pool, point);
    }
}

/* ---- new ones; pool->lock is held ---- */

static int new_chunk(struct ze_driver *driver)
{
    const struct ze_pool_desc desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
                                      .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE,
                                      .count = ZE_CHUNK};
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

/* The next unused event of the newest chunk goes to the free ones. */
static int new_event(struct ze_driver *driver)
{
    struct ze_chunk *chunk = driver->pool.chunks;
    int code = !chunk || chunk->used == ZE_CHUNK ? new_chunk(driver) : 0;
    if (code)
        return code;
    chunk = driver->pool.chunks;
    struct ze_point *point = &chunk->points[chunk->used];
    const struct ze_event_desc desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                                       .index = chunk->used,
                                       .signal = ZE_EVENT_SCOPE_FLAG_HOST,
                                       .wait = ZE_EVENT_SCOPE_FLAG_HOST};
    code = ze.event_create(chunk->pool, &desc, &point->event);
    if (code)
        return code;
    point->driver = driver;
    point->chunk = chunk;
    point->next = driver->pool.free;
    driver->pool.free = point;
    chunk->used++;
    return 0;
}

static int give_time(struct ze_driver *driver, struct ze_point *point)
{
    const struct ze_plain_desc desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    struct ze_chunk *chunk = point->chunk;
    void *times = chunk->times;
    int code = 0;
    if (!times)
        code = ze.alloc_host(driver->context, &desc, ZE_CHUNK * sizeof *point->time,
                             sizeof *point->time, &times);
    if (code)
        return code;
    chunk->times = times;
    point->time = chunk->times + (point - chunk->points);
    return 0;
}

static int take(struct ze_driver *driver, bool timed, struct ze_point **out)
{
    struct ze_pool *pool = &driver->pool;
    look_at_flying(pool);
    int code = pool->free ? 0 : new_event(driver);
    if (!code && timed && !pool->free->time)
        code = give_time(driver, pool->free);
    if (code)
        return code;
    *out = pool->free;
    pool->free = pool->free->next;
    return 0;
}

/* ---- points ---- */

int ze_point_take(struct ze_driver *driver, bool timed, struct ze_point **out)
{
    pthread_mutex_lock(&driver->pool.lock);
    const int code = take(driver, timed, out);
    pthread_mutex_unlock(&driver->pool.lock);
    if (code)
        return code;
    atomic_store_explicit(&(*out)->passed, false, memory_order_relaxed);
    atomic_store_explicit(&(*out)->refs, 1, memory_order_relaxed);
    return 0;
}

struct ze_point *ze_point_wrap(void *event)
{
    struct ze_point *point = calloc(1, sizeof *point);
    if (!point)
        return NULL;
    point->event = event;
    atomic_init(&point->refs, 1);
    return point;
}

struct ze_point *ze_point_retain(struct ze_point *point)
{
    atomic_fetch_add_explicit(&point->refs, 1, memory_order_relaxed);
    return point;
}

void ze_point_release(struct ze_point *point)
{
    if (!point || atomic_fetch_sub(&point->refs, 1) != 1)
        return;
    if (!point->driver) {
        free(point);
        return;
    }
    pthread_mutex_lock(&point->driver->pool.lock);
    fly(&point->driver->pool, point);
    pthread_mutex_unlock(&point->driver->pool.lock);
}

/* Nothing will signal it, so it is as good as new. */
void ze_point_abandon(struct ze_point *point)
{
    struct ze_pool *pool = &point->driver->pool;
    pthread_mutex_lock(&pool->lock);
    point->next = pool->free;
    pool->free = point;
    pthread_mutex_unlock(&pool->lock);
}

/* Somebody else may reset his event, so of that nothing is remembered. */
int ze_point_query(struct ze_point *point)
{
    return point->driver ? status_of(point) : ze.event_query(point->event);
}

int ze_point_wait(struct ze_point *point, uint64_t timeout_ns)
{
    int code = ze_point_query(point);
    if (code != ZE_RESULT_NOT_READY || !timeout_ns)
        return code;
    code = ze.event_synchronize(point->event, timeout_ns);
    if (!code && point->driver)
        atomic_store_explicit(&point->passed, true, memory_order_release);
    return code;
}

/* ---- the end ---- */

static void close_chunk(struct ze_driver *driver, struct ze_chunk *chunk)
{
    for (uint32_t i = 0; i < chunk->used; i++)
        ze_forget(ze.event_destroy(chunk->points[i].event), "destroying an event");
    ze_forget(ze.pool_destroy(chunk->pool), "destroying an event pool");
    if (chunk->times)
        ze_forget(ze.mem_free(driver->context, chunk->times), "freeing the events' times");
    free(chunk);
}

void ze_pool_close(struct ze_driver *driver)
{
    struct ze_pool *pool = &driver->pool;
    while (pool->chunks) {
        struct ze_chunk *chunk = pool->chunks;
        pool->chunks = chunk->next;
        close_chunk(driver, chunk);
    }
    pool->free = pool->flying = NULL;
    pool->last = &pool->flying;
}
