/* test_held.c: the objects that wait for tickets of a stream, in order, and found again in a list. */
#include "inside.h"

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

/* Keep all with one stream, @p step places apart. */
static void keep_all(uint64_t step)
{
    for (uint64_t i = 0; i < ITEMS; i++) {
        items[i] = (struct ggi_retired){.after = &streams[0], .ticket = 1 + i * step % ITEMS};
        ggi_retire_keep(&device, &items[i]);
    }
}

static void objects_leave_in_the_order_of_their_tickets(void **state)
{
    static const uint64_t steps[] = {1, ITEMS - 1, 0, 7, 333, 501}; /* up, down, equal, mixed */
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        uint64_t before = 0;
        start();
        keep_all(steps[i]);
        for (int n = 0; n < ITEMS; n++) {
            const struct ggi_retired *item = ggi_retire_pop(&streams[0]);
            assert_true(item->ticket >= before);
            before = item->ticket;
        }
        assert_null(ggi_retire_first(&streams[0]));
    }
}

/* Thousands of blocks may wait: to add one reads none of them. */
static void objects_that_come_in_order_need_no_heap(void **state)
{
    (void)state;
    start();
    keep_all(1);
    assert_null(streams[0].held);
    assert_ptr_equal(ggi_retire_first(&streams[0]), &items[0]);
    assert_ptr_equal(ggi_retire_pop(&streams[0]), &items[0]);
    assert_ptr_equal(ggi_retire_first(&streams[0]), &items[1]);
}

static uint32_t length_of_right_path(const struct ggi_retired *heap)
{
    uint32_t length = 0;
    for (; heap; heap = heap->next)
        length++;
    return length;
}

/* Otherwise one removal would take as long as there are objects. */
static void merging_follows_short_paths(void **state)
{
    (void)state;
    start();
    keep_all(333);
    assert_in_range(length_of_right_path(streams[0].held), 1, 10); /* 2^10 > ITEMS */
}

static bool has_ticket(const struct ggi_retired *item, const void *ticket)
{
    return item->ticket == *(const uint64_t *)ticket;
}

static void an_object_that_waits_is_found_in_the_list(void **state)
{
    const uint64_t wanted = 500;
    (void)state;
    start();
    keep_all(7);
    ggi_retire_flatten(&device);
    assert_null(device.holding.first);
    const struct ggi_retired *found = ggi_retire_pick(&device, has_ticket, &wanted);
    assert_non_null(found);
    assert_int_equal(found->ticket, wanted);
    assert_null(ggi_retire_pick(&device, has_ticket, &wanted));
    assert_int_equal(atomic_load(&device.waiting), 1);
}

static void each_stream_with_objects_is_listed_once(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 6; i++) {
        items[i] = (struct ggi_retired){.after = &streams[i % 2], .ticket = 1};
        ggi_retire_keep(&device, &items[i]);
    }
    assert_int_equal(device.holding.count, 2);
    assert_ptr_equal(device.holding.first, &streams[0]);
    assert_ptr_equal(device.holding.first->next_holding, &streams[1]);
    assert_null(streams[1].next_holding);
}

static void an_object_whose_destruction_may_wait_does_not_leave_with_a_ticket(void **state)
{
    (void)state;
    start();
    items[0] = (struct ggi_retired){.after = &streams[0], .ticket = 1, .may_wait = true};
    ggi_retire_keep(&device, &items[0]);
    assert_null(device.holding.first);
    assert_ptr_equal(device.may_wait.first, &items[0]);
}

static void an_object_that_must_not_be_destroyed_is_not_examined_again(void **state)
{
    (void)state;
    start();
    items[0] = (struct ggi_retired){.never = true, .may_wait = true};
    items[1] = (struct ggi_retired){.after = &streams[0], .ticket = 1, .never = true};
    ggi_retire_keep(&device, &items[0]);
    ggi_retire_keep(&device, &items[1]);
    ggi_retire_note_waiting(&device);
    assert_int_equal(atomic_load(&device.waiting), 0);
    assert_ptr_equal(device.never.first, &items[0]);
}

static void a_stream_leaves_the_list_of_those_with_objects_at_any_place(void **state)
{
    static gg_stream three[3];
    (void)state;
    for (int middle = 0; middle < 3; middle++) {
        start();
        for (int i = 0; i < 3; i++) {
            three[i] = (gg_stream){.device = &device};
            ggi_retire_list(&device.holding, &three[i]);
        }
        ggi_retire_unlist(&three[middle]);
        uint32_t left = 0;
        for (const gg_stream *stream = device.holding.first; stream;
             stream = stream->next_holding, left++)
            assert_ptr_not_equal(stream, &three[middle]);
        assert_int_equal(left, 2);
        assert_int_equal(device.holding.count, 2);
        assert_ptr_equal(device.holding.last, &three[middle == 2 ? 1 : 2]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(objects_leave_in_the_order_of_their_tickets),
    cmocka_unit_test(objects_that_come_in_order_need_no_heap),
    cmocka_unit_test(merging_follows_short_paths),
    cmocka_unit_test(an_object_that_waits_is_found_in_the_list),
    cmocka_unit_test(each_stream_with_objects_is_listed_once),
    cmocka_unit_test(an_object_whose_destruction_may_wait_does_not_leave_with_a_ticket),
    cmocka_unit_test(an_object_that_must_not_be_destroyed_is_not_examined_again),
    cmocka_unit_test(a_stream_leaves_the_list_of_those_with_objects_at_any_place),
};
SUITE(held, tests);
