/* test_drain_pace.c: how many streams a drain polls, and how many objects it examines, by the call that drains. */
#include "inside.h"

#include "memory/memory.h"
#include "memory/pool.h"
#include "runtime/stream.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define STREAMS 128 /* more than a drain of an allocation polls */

static struct gg_device device;
static gg_stream streams[STREAMS];
static struct ggi_retired held[STREAMS];
static int polled, destroyed;

static gg_status count_as_idle(struct gg_stream_impl *impl)
{
    (void)impl;
    polled++;
    return GG_OK;
}

static void count_destroyed(struct ggi_retired *self)
{
    (void)self;
    destroyed++;
}

static void start_device(void)
{
    static struct gg_backend_ops ops = {.stream_query = count_as_idle};
    static struct ggi_pool pinned;
    pthread_mutex_init(&pinned.lock, NULL);
    device = (struct gg_device){.ops = &ops};
    pthread_mutex_init(&device.lock, NULL);
    pthread_mutex_init(&device.drain_lock, NULL);
    device.pools[1] = &pinned;
    polled = destroyed = 0;
}

/* Each idle, which only a poll shows, with an object that waits for it. */
static void start(void)
{
    start_device();
    for (int i = 0; i < STREAMS; i++) {
        streams[i] =
            (gg_stream){.device = &device, .serial = (uint64_t)i + 1, .refs = 1, .submitted = 1};
        pthread_mutex_init(&streams[i].lock, NULL);
        held[i] =
            (struct ggi_retired){.destroy = count_destroyed, .after = &streams[i], .ticket = 1};
        ggi_retire_keep(&device, &held[i]);
    }
    ggi_retire_note_waiting(&device);
}

static int polled_by_a_drain(enum ggi_drain_pace pace)
{
    start();
    ggi_drain_paced(&device, pace);
    assert_int_equal(destroyed, polled);
    return polled;
}

static void a_drain_that_is_due_polls_few_streams_although_they_are_idle(void **state)
{
    (void)state;
    assert_in_range(polled_by_a_drain(GGI_PACE_LIGHT), 1, 4);
    assert_in_range(polled_by_a_drain(GGI_PACE_FULL), 5, 32);
    assert_int_equal(polled_by_a_drain(GGI_PACE_NONE), STREAMS);
}

static void drains_that_poll_few_streams_poll_each_in_turn(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < STREAMS && destroyed < STREAMS; i++)
        ggi_drain_paced(&device, GGI_PACE_LIGHT);
    assert_int_equal(destroyed, STREAMS);
    assert_int_equal(polled, STREAMS);
}

static int examined;

static bool is_never_idle(struct ggi_retired *self)
{
    (void)self;
    examined++;
    return false;
}

static int examined_beside(uint32_t count)
{
    static struct ggi_retired objects[10000];
    start_device();
    for (uint32_t i = 0; i < count; i++) {
        objects[i] = (struct ggi_retired){.idle = is_never_idle};
        ggi_retire_keep(&device, &objects[i]);
    }
    examined = 0;
    ggi_retire_note_waiting(&device);
    ggi_drain_paced(&device, GGI_PACE_LIGHT);
    return examined;
}

static void a_light_drain_examines_as_many_of_10000_objects_as_of_100(void **state)
{
    (void)state;
    const int of_few = examined_beside(100);
    assert_in_range(of_few, 1, 99);
    assert_int_equal(examined_beside(10000), of_few);
}

/* ---- before a stream is created, while another thread drains ---- */

static atomic_bool draining, ending;

static void *drain_for_a_while(void *argument)
{
    pthread_mutex_lock(&device.drain_lock);
    atomic_store(&draining, true);
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    atomic_store(&ending, true);
    pthread_mutex_unlock(&device.drain_lock);
    return argument;
}

/* Whether it was called while the other thread drained, and then drained itself. */
static bool drains_after_another_thread(uint32_t count)
{
    pthread_t thread;
    start();
    atomic_store(&device.stream_count, count);
    atomic_store(&draining, false);
    atomic_store(&ending, false);
    assert_int_equal(pthread_create(&thread, NULL, drain_for_a_while, NULL), 0);
    while (!atomic_load(&draining))
        sched_yield();
    const bool beside = !atomic_load(&ending);
    ggi_drain_for_stream(&device);
    const bool drained = beside && destroyed > 0;
    pthread_join(thread, NULL);
    return drained;
}

/* The threads that create them take turns with those that drain. Not each time, as the wait is short. */
static void a_stream_beyond_many_waits_for_a_drain(void **state)
{
    bool drained = false;
    (void)state;
    for (int i = 0; i < 100 && !drained; i++)
        drained = drains_after_another_thread(1000);
    assert_true(drained);
}

static void few_streams_wait_for_no_drain(void **state)
{
    (void)state;
    start();
    atomic_store(&device.stream_count, 10);
    pthread_mutex_lock(&device.drain_lock);
    ggi_drain_for_stream(&device);
    pthread_mutex_unlock(&device.drain_lock);
    assert_int_equal(destroyed, 0);
}

/* Which waits for a host function, for example. */
static void many_streams_are_created_beside_a_drain_that_does_not_end(void **state)
{
    (void)state;
    start();
    atomic_store(&device.stream_count, 1000);
    pthread_mutex_lock(&device.drain_lock);
    ggi_drain_for_stream(&device);
    pthread_mutex_unlock(&device.drain_lock);
    assert_int_equal(destroyed, 0);
}

/* Until it has drained, the allocations of other threads need not take the slow path. */
static void one_thread_drains_where_that_is_due(void **state)
{
    static char bytes[4096];
    enum ggi_attempt attempt = GGI_ATTEMPT_FIRST, other = GGI_ATTEMPT_FIRST;
    (void)state;
    start();
    struct ggi_pool *pool = ggi_pool_new(&device, GG_MEMORY_DEVICE);
    const size_t nbytes = ggi_pool_block_size(pool, 1);
    gg_memory *out = NULL,
              *block = ggi_pool_new_block(pool, bytes, nbytes, ggi_size_class_of(nbytes));
    pthread_mutex_lock(&pool->lock);
    ggi_pool_insert(pool, block);
    pool->since_drain = pool->drain_interval;
    pthread_mutex_unlock(&pool->lock);
    assert_false(ggi_pool_try_alloc(pool, 1, NULL, &attempt, &out));
    assert_int_equal(attempt, GGI_ATTEMPT_DUE);
    assert_true(ggi_pool_try_alloc(pool, 1, NULL, &other, &out));
    assert_ptr_equal(out, block);
    ggi_memory_delete(block);
    free(pool);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_thread_drains_where_that_is_due),
    cmocka_unit_test(a_drain_that_is_due_polls_few_streams_although_they_are_idle),
    cmocka_unit_test(drains_that_poll_few_streams_poll_each_in_turn),
    cmocka_unit_test(a_light_drain_examines_as_many_of_10000_objects_as_of_100),
    cmocka_unit_test(a_stream_beyond_many_waits_for_a_drain),
    cmocka_unit_test(few_streams_wait_for_no_drain),
    cmocka_unit_test(many_streams_are_created_beside_a_drain_that_does_not_end),
};
SUITE(drain_pace, tests);
