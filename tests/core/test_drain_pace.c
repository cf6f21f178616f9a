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

static void start_stream(int i)
{
    streams[i] =
        (gg_stream){.device = &device, .serial = (uint64_t)i + 1, .refs = 1, .submitted = 1};
    pthread_mutex_init(&streams[i].lock, NULL);
}

/* Each idle, which only a poll shows, with an object that waits for it. */
static void start(void)
{
    start_device();
    for (int i = 0; i < STREAMS; i++) {
        start_stream(i);
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

/* ---- many objects that become idle at once ---- */

#define MANY 100000 /* more than any drain examines */
#define FEW 128     /* objects of each kind that a drain may examine which is due */

static uint64_t waiting;

static void destroy_allocated(struct ggi_retired *self)
{
    destroyed++;
    waiting--;
    free(self);
}

static void release_idle(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct ggi_retired *item = calloc(1, sizeof *item);
        assert_non_null(item);
        item->destroy = destroy_allocated;
        ggi_retire(&device, item);
        waiting++;
    }
}

/* The most objects that one drain destroyed, until none was left. */
static int most_of_a_drain(enum ggi_drain_pace pace)
{
    int most = 0;
    for (int before = destroyed; waiting; before = destroyed) {
        ggi_drain_paced(&device, pace);
        assert_in_range(destroyed - before, 1, MANY);
        most = destroyed - before > most ? destroyed - before : most;
    }
    return most;
}

static void no_drain_that_is_due_examines_many_objects(void **state)
{
    (void)state;
    start_device();
    release_idle(MANY);
    assert_in_range(most_of_a_drain(GGI_PACE_LIGHT), 1, FEW);
    release_idle(MANY);
    assert_in_range(most_of_a_drain(GGI_PACE_DUE), 1, FEW);
}

static void no_drain_that_is_due_examines_many_objects_of_a_stream(void **state)
{
    (void)state;
    start_device();
    start_stream(0);
    release_idle(MANY);
    for (struct ggi_retired *item; (item = ggi_retire_next(&device));) {
        item->after = &streams[0];
        item->ticket = 1;
        ggi_retire_keep(&device, item);
    }
    ggi_retire_note_waiting(&device);
    assert_in_range(most_of_a_drain(GGI_PACE_LIGHT), 1, FEW);
}

/* Other calls have many objects to examine. */
static void drains_that_are_due_stay_short_where_others_are_long(void **state)
{
    (void)state;
    start_device();
    for (int i = 0; i < 4; i++) {
        release_idle(MANY);
        ggi_drain(&device);
    }
    assert_in_range(destroyed, 4 * FEW, 4 * MANY - 1);
    const int before = destroyed;
    ggi_drain_paced(&device, GGI_PACE_DUE);
    assert_in_range(destroyed - before, 1, FEW);
    ggi_drain_locked(&device, GGI_DRAIN_ALL);
    assert_int_equal(waiting, 0);
}

/* As there are no other calls that drain. */
static void drains_that_are_due_become_longer_where_more_is_released_for_long(void **state)
{
    const uint32_t released = FEW + FEW / 2;
    (void)state;
    start_device();
    for (int i = 0; i < 10000 && (!i || waiting); i++) {
        release_idle(released);
        ggi_drain_paced(&device, GGI_PACE_LIGHT);
    }
    assert_int_equal(waiting, 0);
}

static void drains_that_are_due_make_no_other_drain_examine_all_objects(void **state)
{
    (void)state;
    start_device();
    release_idle(2 * MANY);
    for (int i = 0; i < 500; i++)
        ggi_drain_paced(&device, GGI_PACE_LIGHT);
    const int before = destroyed;
    ggi_drain(&device);
    assert_in_range(destroyed - before, 1, MANY / 4);
    ggi_drain_locked(&device, GGI_DRAIN_ALL);
    assert_int_equal(waiting, 0);
}

/* It would need another slab. */
static void an_allocation_without_a_free_block_examines_more_objects(void **state)
{
    (void)state;
    start_device();
    release_idle(MANY);
    ggi_drain_paced(&device, GGI_PACE_FULL);
    assert_in_range(destroyed, 4 * FEW, MANY / 2);
    ggi_drain_locked(&device, GGI_DRAIN_ALL);
    assert_int_equal(waiting, 0);
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
    cmocka_unit_test(no_drain_that_is_due_examines_many_objects),
    cmocka_unit_test(no_drain_that_is_due_examines_many_objects_of_a_stream),
    cmocka_unit_test(drains_that_are_due_stay_short_where_others_are_long),
    cmocka_unit_test(drains_that_are_due_become_longer_where_more_is_released_for_long),
    cmocka_unit_test(drains_that_are_due_make_no_other_drain_examine_all_objects),
    cmocka_unit_test(an_allocation_without_a_free_block_examines_more_objects),
    cmocka_unit_test(a_stream_beyond_many_waits_for_a_drain),
    cmocka_unit_test(few_streams_wait_for_no_drain),
    cmocka_unit_test(many_streams_are_created_beside_a_drain_that_does_not_end),
};
SUITE(drain_pace, tests);
