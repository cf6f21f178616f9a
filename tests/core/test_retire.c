/* test_retire.c: what drains do with released objects. */
#include "inside.h"

#include "memory/pool.h"
#include "memory/uses.h"
#include "runtime/stream.h"

#define ITEMS 1000

static struct gg_device device;
static gg_stream streams[2];
static struct ggi_retired items[ITEMS];

static void start(void)
{
    device = (struct gg_device){.ordinal = 0};
    streams[0] = streams[1] = (gg_stream){.device = &device};
}

#define VISITED 64 /* streams that a drain visits */

/* A device of which a drain needs no driver. */
static void start_drains(void)
{
    static struct gg_backend_ops ops;
    static struct ggi_pool pinned;
    start();
    pthread_mutex_init(&pinned.lock, NULL);
    pthread_mutex_init(&device.lock, NULL);
    device.ops = &ops;
    device.pools[1] = &pinned;
}

static void pass(gg_stream *stream, uint64_t ticket)
{
    atomic_store(&stream->submitted, ticket);
    atomic_store(&stream->completed, ticket);
}

static uint64_t next_ticket;
static int destroyed, examined;

/* In use until ticket 2, and each time until the next one. */
static bool is_idle_after_two_waits(struct ggi_retired *self)
{
    self->after = &streams[0];
    self->ticket = ++next_ticket;
    return next_ticket > 2;
}

static void note_destroyed(struct ggi_retired *self)
{
    (void)self;
    destroyed++;
}

#define CROWD 128 /* more streams than a drain polls; a multiple of those that it visits */

static gg_stream crowd[CROWD];
static struct ggi_retired held[CROWD];

/* A driver that counts the queries of each stream. It is busy, unless the count is negative. */
static gg_status count_as_busy(struct gg_stream_impl *impl)
{
    return ++*(int *)impl > 0 ? GG_NOT_READY : GG_OK;
}

static gg_status record_nothing(struct gg_event_impl *event, struct gg_stream_impl *impl)
{
    (void)event, (void)impl;
    return GG_ERR_UNSUPPORTED;
}

/* Each busy, with an object that waits for it. */
static void start_crowd(int polls[CROWD])
{
    start_drains();
    device.ops->stream_query = count_as_busy;
    device.ops->event_record = record_nothing;
    for (int i = 0; i < CROWD; i++) {
        polls[i] = 0;
        crowd[i] =
            (gg_stream){.device = &device, .serial = (uint64_t)i + 1, .refs = 1, .submitted = 1};
        crowd[i].impl = (struct gg_stream_impl *)&polls[i];
        crowd[i].marker = (struct gg_event_impl *)&polls[i];
        held[i] = (struct ggi_retired){.after = &crowd[i], .ticket = 1};
        ggi_retire_keep(&device, &held[i]);
    }
}

static void find_all_busy(int polls[CROWD])
{
    for (int i = 0; i < CROWD; i++)
        ggi_drain_locked(&device, GGI_DRAIN_SOME);
    for (int i = 0; i < CROWD; i++) {
        assert_int_not_equal(polls[i], 0);
        polls[i] = 0;
    }
}

static void a_stream_with_a_new_object_is_polled_before_those_that_stay_busy(void **state)
{
    static int polls[CROWD];
    (void)state;
    start_crowd(polls);
    find_all_busy(polls);
    for (int i = 0; i < CROWD; i++) {
        const int before = polls[i];
        items[i] = (struct ggi_retired){.after = &crowd[i], .ticket = 1};
        ggi_retire_keep(&device, &items[i]);
        ggi_drain_locked(&device, GGI_DRAIN_SOME);
        assert_int_not_equal(polls[i], before);
    }
}

static void streams_that_stay_busy_are_polled_beside_those_with_new_objects(void **state)
{
    static int polls[CROWD];
    (void)state;
    start_crowd(polls);
    find_all_busy(polls);
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (struct ggi_retired){.after = &crowd[i % 20], .ticket = 1};
        ggi_retire_keep(&device, &items[i]);
        if (i % 20 == 19) /* these are more than a drain polls */
            ggi_drain_locked(&device, GGI_DRAIN_SOME);
    }
    for (int i = 0; i < CROWD; i++)
        assert_int_not_equal(polls[i], 0);
}

static bool waits_for_the_last(struct ggi_retired *self)
{
    self->after = &crowd[CROWD - 1];
    self->ticket = 1;
    return false;
}

/* It leaves the list while a drain walks over it. */
static void a_drain_ends_where_its_last_stream_gets_a_new_object(void **state)
{
    static int polls[CROWD];
    (void)state;
    start_crowd(polls);
    ggi_drain_locked(&device, GGI_DRAIN_ALL); /* all are found busy */
    held[0].idle = waits_for_the_last;
    pass(&crowd[0], 1);
    for (int i = 0; i < CROWD; i++)
        polls[i] = 0;
    ggi_drain_locked(&device, GGI_DRAIN_ALL);
    for (int i = 1; i < CROWD - 1; i++)
        assert_in_range(polls[i], 1, 4);
    assert_ptr_equal(device.holding.first, &crowd[CROWD - 1]);
}

/* So that drains visit the streams. */
static void defer_a_release(gg_stream *stream, void (*release)(void *))
{
    assert_int_equal(ggi_stream_defer_release(stream, 1, release, &device), GG_OK);
}

static void note_released(void *owner)
{
    (void)owner;
    destroyed++;
}

/* Streams of which only a visit notices that they are idle. The first has the owner of a copy, for ever. */
static void start_visits(int polls[CROWD])
{
    start_crowd(polls);
    ggi_retire_flatten(&device);
    device.pending = (struct ggi_retired_queue){NULL, NULL};
    for (int i = 0; i < CROWD; i++) {
        crowd[i].next = i + 1 < CROWD ? &crowd[i + 1] : NULL;
    }
    device.streams = &crowd[0];
    defer_a_release(&crowd[0], note_released);
    destroyed = 0;
}

static void the_owner_of_a_copy_is_released_beside_many_busy_streams(void **state)
{
    static int polls[CROWD];
    (void)state;
    start_visits(polls);
    find_all_busy(polls);
    for (int i = 1; i < CROWD; i++) {
        atomic_store(&crowd[i].submitted, 2);
        polls[i] = -1000;
        defer_a_release(&crowd[i], note_released);
        for (int drain = 0; drain < 1 + CROWD / VISITED; drain++)
            ggi_drain_locked(&device, GGI_DRAIN_SOME);
        assert_int_equal(destroyed, i);
    }
    atomic_store(&crowd[0].completed, 1);
    ggi_stream_run_releases(&crowd[0], false);
}

static void drains_visit_all_streams_that_stay_busy(void **state)
{
    static int polls[CROWD];
    (void)state;
    start_visits(polls);
    for (int i = 0; i < 4 * CROWD; i++)
        ggi_drain_locked(&device, GGI_DRAIN_SOME);
    for (int i = 0; i < CROWD; i++)
        assert_in_range(polls[i], 10, 4 * CROWD);
    atomic_store(&crowd[0].completed, 1);
    ggi_stream_run_releases(&crowd[0], false);
}

static void an_object_may_wait_twice_for_the_same_stream(void **state)
{
    (void)state;
    start_drains();
    items[0] = (struct ggi_retired){.idle = is_idle_after_two_waits, .destroy = note_destroyed};
    destroyed = 0;
    ggi_retire(&device, &items[0]);
    for (uint64_t ticket = 0; ticket < 2; ticket++) {
        pass(&streams[0], ticket);
        ggi_drain_locked(&device, GGI_DRAIN_SOME);
        assert_non_null(streams[0].holding);
        assert_ptr_equal(streams[0].holding->first, &streams[0]);
        assert_int_equal(device.holding.count + device.busy_holding.count, 1);
        assert_null(streams[0].next_holding);
        assert_null(streams[0].previous_holding);
    }
    pass(&streams[0], 2);
    ggi_drain_locked(&device, GGI_DRAIN_SOME);
    assert_int_equal(destroyed, 1);
    assert_null(device.holding.first);
    assert_null(device.busy_holding.first);
}

/* Otherwise each later drain would visit them. */
static void drains_stop_visiting_streams_after_their_rounds(void **state)
{
    static gg_stream many[VISITED + 1];
    (void)state;
    for (int count = VISITED - 1; count <= VISITED + 1; count++) {
        start_drains();
        for (int i = 0; i < count; i++)
            many[i] = (gg_stream){.device = &device, .refs = 1, .next = i ? &many[i - 1] : NULL};
        device.streams = &many[count - 1];
        atomic_store(&device.closed, 1);
        for (int i = 0; i < 8; i++)
            ggi_drain_locked(&device, GGI_DRAIN_SOME);
        assert_int_equal(device.closed_rounds, 0);
        assert_int_equal(atomic_load(&device.closed), 0);
    }
}

/* Objects in use, of which each drain may examine some. */
static bool is_never_idle(struct ggi_retired *self)
{
    (void)self;
    examined++;
    return false;
}

static void an_object_whose_ticket_is_known_is_not_examined_before(void **state)
{
    (void)state;
    start_drains();
    int queries = 0;
    device.ops->stream_query = count_as_busy;
    streams[0].impl = (struct gg_stream_impl *)&queries;
    pass(&streams[0], 1);
    atomic_store(&streams[0].submitted, 2);
    destroyed = 0;
    for (uint64_t i = 0; i < 2; i++) { /* idle at once, if they were examined */
        items[i] = (struct ggi_retired){
            .destroy = note_destroyed, .after = &streams[0], .ticket = 1 + i, .known = true};
        ggi_retire(&device, &items[i]);
    }
    ggi_drain_locked(&device, GGI_DRAIN_SOME);
    assert_int_equal(destroyed, 1);
    pass(&streams[0], 2);
    ggi_drain_locked(&device, GGI_DRAIN_SOME);
    assert_int_equal(destroyed, 2);
    assert_null(ggi_retire_first(&streams[0]));
}

static int examined_by_a_drain(enum ggi_drain_pace pace, uint32_t debt)
{
    start_drains();
    atomic_store(&device.drain_debt, debt);
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (struct ggi_retired){.idle = is_never_idle};
        ggi_retire_keep(&device, &items[i]);
    }
    examined = 0;
    ggi_retire_note_waiting(&device);
    ggi_drain_paced(&device, pace);
    return examined;
}

/* So that a single allocation does not take longer. */
static void drains_become_more_frequent_before_they_become_longer(void **state)
{
    (void)state;
    const int without_debt = examined_by_a_drain(GGI_PACE_FULL, 0);
    uint32_t debt = 0, before = ggi_drain_interval(&device), interval = before;
    while ((interval = ggi_drain_interval(&device)) >= before / 16 && examined == without_debt)
        examined_by_a_drain(GGI_PACE_FULL, ++debt);
    assert_in_range(without_debt, 1, ITEMS / 4);
    assert_int_equal(interval, before / 16);
    assert_int_equal(examined, 2 * without_debt);
}

static struct ggi_retired many_items[4 * ITEMS]; /* more than a drain examines */

static void release_many(void (*destroy)(struct ggi_retired *self))
{
    for (int i = 0; i < 4 * ITEMS; i++) {
        many_items[i] = (struct ggi_retired){.destroy = destroy};
        ggi_retire(&device, &many_items[i]);
    }
}

/* Calls such as the creation of a stream. */
static void other_drains_become_longer_at_once(void **state)
{
    (void)state;
    start_drains();
    destroyed = 0;
    release_many(note_destroyed);
    ggi_drain(&device);
    const int first = destroyed;
    ggi_drain(&device);
    assert_int_equal(destroyed, 3 * first);
}

static void want_all(struct ggi_retired *self)
{
    (void)self;
    destroyed++;
    ggi_drain_all(&device); /* cannot drain now */
}

static void a_drain_goes_on_with_all_objects_where_another_call_wants_that(void **state)
{
    (void)state;
    for (int wanted = 0; wanted < 2; wanted++) {
        start_drains();
        destroyed = 0;
        release_many(wanted ? want_all : note_destroyed);
        ggi_drain(&device);
        if (wanted)
            assert_int_equal(destroyed, 4 * ITEMS);
        else
            assert_in_range(destroyed, 1, 4 * ITEMS - 1);
    }
}

/* Those of which the driver has to be asked, beside one that it need not be asked for. */
static void many_new_objects_in_use_hold_up_no_other(void **state)
{
    (void)state;
    start_drains();
    items[0] = (struct ggi_retired){.destroy = note_destroyed};
    ggi_retire(&device, &items[0]);
    for (int i = 1; i < ITEMS / 2; i++) {
        items[i] = (struct ggi_retired){.idle = is_never_idle, .polled = true};
        ggi_retire(&device, &items[i]);
    }
    ggi_drain_locked(&device, GGI_DRAIN_SOME);
    assert_int_equal(destroyed, 1);
    assert_in_range(examined, 1, ITEMS / 2 - 1);
}

static int queries;

static gg_status count_query(struct gg_stream_impl *impl)
{
    (void)impl;
    queries++;
    return GG_OK;
}

/* Such as memory that another device's stream uses. To poll all streams for it would take time for each of them. */
static void an_object_in_use_for_another_reason_makes_no_drain_poll_the_streams(void **state)
{
    (void)state;
    start_drains();
    device.ops->stream_query = count_query;
    streams[0].refs = 1;
    device.streams = &streams[0];
    atomic_store(&streams[0].submitted, 1);
    items[0] = (struct ggi_retired){.idle = is_never_idle, .may_wait = true};
    ggi_retire(&device, &items[0]);
    examined = queries = 0;
    for (int i = 1; i <= 3; i++) {
        ggi_drain_locked(&device, GGI_DRAIN_SOME);
        assert_int_equal(examined, i);
    }
    assert_int_equal(queries, 0);
    items[1] = (struct ggi_retired){.destroy = note_destroyed, .may_wait = true};
    ggi_retire(&device, &items[1]);
    ggi_drain_locked(&device, GGI_DRAIN_SOME);
    assert_int_equal(queries, 1);
    assert_int_equal(atomic_load(&streams[0].completed), 1);
    assert_ptr_equal(device.ready, &items[1]);
}

static struct ggi_pool *direct_pool(void)
{
    struct ggi_pool *pool = ggi_pool_new(&device, GG_MEMORY_DEVICE);
    assert_non_null(pool);
    pool->direct = true;
    device.flags = GG_DEVICE_FREE_NEVER_WAITS;
    device.pools[0] = pool;
    return pool;
}

#define BLOCKS 500

/* Before the driver frees them, the stream must have done what uses their raw addresses. */
static void a_stream_is_polled_once_for_all_blocks_that_wait_for_it(void **state)
{
    static int polls[CROWD];
    gg_memory *blocks[BLOCKS];
    (void)state;
    start_crowd(polls);
    struct ggi_pool *pool = direct_pool();
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = ggi_pool_new_block(pool, &items[i], 1, GGI_NO_CLASS);
        assert_non_null(blocks[i]);
        blocks[i]->alloc_stream = &crowd[0];
        ggi_retire(&device, &blocks[i]->retired);
    }
    ggi_drain_locked(&device, GGI_DRAIN_SOME);
    assert_in_range(polls[0], 1, 3);
}

/* Its drain_lock is not held: so the memory cannot be kept with the stream, and each examination queries it. */
static void memory_that_streams_of_another_device_use_is_polled_by_turns(void **state)
{
    static struct gg_device peer;
    static int polls[CROWD];
    (void)state;
    start_crowd(polls);
    atomic_store(&device.generation, atomic_load(&ggi_generation));
    peer = (struct gg_device){.ops = device.ops};
    crowd[0].device = &peer;
    polls[0] = 0;
    for (int i = 0; i < ITEMS; i++) {
        gg_memory *memory = ggi_memory_new_handle(&device, GG_MEMORY_DEVICE, NULL, 1);
        assert_non_null(memory);
        atomic_store(&memory->refs, 1);
        ggi_memory_used(memory, &crowd[0], 1);
        gg_memory_release(memory);
    }
    polls[0] = 0;
    ggi_drain_locked(&device, GGI_DRAIN_SOME);
    assert_in_range(polls[0], 1, ITEMS / 2);
}

/* As an async block is, whose stream need not be done. Otherwise the stream stays in memory for ever. */
static void memory_that_is_destroyed_while_a_stream_uses_it_releases_the_stream(void **state)
{
    (void)state;
    start_drains();
    streams[0].refs = 1;
    streams[0].serial = 1;
    gg_memory *memory = ggi_memory_new_handle(&device, GG_MEMORY_DEVICE, NULL, 1);
    assert_non_null(memory);
    atomic_store(&streams[0].submitted, 1);
    ggi_memory_used(memory, &streams[0], 1);
    assert_int_not_equal(atomic_load(&streams[0].refs), 1);
    ggi_memory_delete(memory);
    assert_int_equal(atomic_load(&streams[0].refs), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_stream_with_a_new_object_is_polled_before_those_that_stay_busy),
    cmocka_unit_test(streams_that_stay_busy_are_polled_beside_those_with_new_objects),
    cmocka_unit_test(a_drain_ends_where_its_last_stream_gets_a_new_object),
    cmocka_unit_test(the_owner_of_a_copy_is_released_beside_many_busy_streams),
    cmocka_unit_test(drains_visit_all_streams_that_stay_busy),
    cmocka_unit_test(an_object_whose_ticket_is_known_is_not_examined_before),
    cmocka_unit_test(an_object_may_wait_twice_for_the_same_stream),
    cmocka_unit_test(drains_stop_visiting_streams_after_their_rounds),
    cmocka_unit_test(drains_become_more_frequent_before_they_become_longer),
    cmocka_unit_test(other_drains_become_longer_at_once),
    cmocka_unit_test(a_drain_goes_on_with_all_objects_where_another_call_wants_that),
    cmocka_unit_test(a_stream_is_polled_once_for_all_blocks_that_wait_for_it),
    cmocka_unit_test(memory_that_streams_of_another_device_use_is_polled_by_turns),
    cmocka_unit_test(many_new_objects_in_use_hold_up_no_other),
    cmocka_unit_test(an_object_in_use_for_another_reason_makes_no_drain_poll_the_streams),
    cmocka_unit_test(memory_that_is_destroyed_while_a_stream_uses_it_releases_the_stream),
};
SUITE(retire, tests);
