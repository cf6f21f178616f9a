/* test_event.c: an event marks a point of a stream; recording it again moves it. */
#include "conformance.h"

#include <stdatomic.h>
#include <string.h>

static gg_event *const untouched = (gg_event *)(uintptr_t)16;

static void an_event_that_was_never_recorded_is_done(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    assert_int_equal(gg_event_query(event), GG_OK);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
    assert_ptr_equal(gg_event_device(event), f->device);
}

static void an_event_is_done_when_its_stream_has_passed_it(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    void *gate = hold(f, f->stream), *after;
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    after = hold(f, f->stream);
    assert_int_equal(gg_event_query(event), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
    assert_int_equal(gg_event_query(event), GG_OK);
    assert_true(busy(f->stream)); /* work after the event is not waited for */
    gate_open(after);
}

static void a_poll_of_an_event_finds_what_a_query_does(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    assert_int_equal(gg_event_poll(event), GG_OK); /* never recorded */
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_event_poll(event), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
    assert_int_equal(gg_event_poll(event), GG_OK);
}

static void an_event_follows_those_before_it_on_its_stream(void **state)
{
    struct fixture *f = *state;
    gg_event *first = new_event(f, 0), *second = new_event(f, 0), *other = new_event(f, 0);
    assert_int_equal(gg_event_follows(first, second), 0); /* never recorded */
    assert_int_equal(gg_event_record(first, f->stream), GG_OK);
    assert_int_equal(gg_event_follows(first, second), 0);
    assert_int_equal(fill_bytes(new_memory(f, 16), 1, f->stream), GG_OK);
    assert_int_equal(gg_event_record(second, f->stream), GG_OK);
    assert_int_equal(gg_event_record(other, f->second), GG_OK);
    assert_int_equal(gg_event_follows(second, first), 1);
    assert_int_equal(gg_event_follows(first, first), 1);
    assert_int_equal(gg_event_follows(first, second), 0);
    assert_int_equal(gg_event_follows(other, first), 0);
    assert_int_equal(gg_event_follows(first, other), 0);
    assert_int_equal(gg_event_record(first, f->stream), GG_OK); /* moves it */
    assert_int_equal(gg_event_follows(first, second), 1);
}

static void a_wait_for_an_event_ends_at_its_time_limit(void **state)
{
    struct fixture *f = *state;
    const uint64_t limits[] = {0, 1, 1000000, 120000000};
    gg_event *event = new_event(f, 0);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        assert_int_equal(gg_event_wait(event, limits[i]), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_event_wait(event, GG_FOREVER - 1), GG_OK);
}

static void recording_again_moves_an_event(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    void *gate;
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
    gate = hold(f, f->second);
    assert_int_equal(gg_event_record(event, f->second), GG_OK);
    assert_int_equal(gg_event_query(event), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
}

static void an_event_that_moved_to_an_idle_stream_is_done(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_event_record(event, f->second), GG_OK);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
    assert_true(busy(f->stream));
    gate_open(gate);
}

static void an_event_may_be_recorded_any_number_of_times(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, GG_EVENT_TIMING);
    void *gate = hold(f, f->stream);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_event_query(event), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
}

static void a_blocking_event_can_be_waited_for_like_any_other(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, GG_EVENT_BLOCKING);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_event_wait(event, 1000000), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
}

static void unknown_event_flags_are_refused(void **state)
{
    struct fixture *f = *state;
    gg_event *event = untouched;
    assert_fails(gg_event_create(f->device, 0x80000000u, &event));
    assert_ptr_equal(event, untouched);
}

static void a_stream_of_another_device_is_refused_for_an_event(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    gg_stream *stream = NULL;
    assert_int_equal(gg_device_default_stream(other_device(f), &stream), GG_OK);
    assert_int_equal(gg_event_record(event, stream), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_event_query(event), GG_OK);
}

/* ---- time ---- */

/* The first test that measures: a simulated clock wraps after its first timestamp. */
static void elapsed_is_not_negative_and_counts_from_start_to_stop(void **state)
{
    struct fixture *f = *state;
    gg_event *start = new_event(f, GG_EVENT_TIMING), *stop = new_event(f, GG_EVENT_TIMING);
    double forward = -1, back = 1;
    need(f, GG_OP_event_elapsed);
    assert_int_equal(gg_event_record(start, f->stream), GG_OK);
    assert_int_equal(fill_bytes(new_memory(f, MANY_BYTES), 1, f->stream), GG_OK);
    assert_int_equal(gg_event_record(stop, f->stream), GG_OK);
    assert_int_equal(gg_event_wait(stop, GG_FOREVER), GG_OK);
    assert_int_equal(gg_event_elapsed(start, stop, &forward), GG_OK);
    assert_true(forward >= 0);
    assert_int_equal(gg_event_elapsed(stop, start, &back), GG_OK);
    assert_true(back <= 0);
}

static void elapsed_is_not_ready_until_both_events_are_done(void **state)
{
    struct fixture *f = *state;
    gg_event *start = new_event(f, GG_EVENT_TIMING), *stop = new_event(f, GG_EVENT_TIMING);
    double time = -5;
    void *gate;
    need(f, GG_OP_event_elapsed);
    assert_int_equal(gg_event_record(start, f->stream), GG_OK);
    finish(f->stream);
    gate = hold(f, f->stream);
    assert_int_equal(gg_event_record(stop, f->stream), GG_OK);
    assert_int_equal(gg_event_elapsed(start, stop, &time), GG_NOT_READY);
    assert_int_equal(gg_event_elapsed(stop, start, &time), GG_NOT_READY);
    assert_true(time == -5);
    gate_open(gate);
}

static void elapsed_requires_recorded_events(void **state)
{
    struct fixture *f = *state;
    gg_event *start = new_event(f, GG_EVENT_TIMING), *stop = new_event(f, GG_EVENT_TIMING);
    double time = -5;
    assert_int_equal(gg_event_record(start, f->stream), GG_OK);
    finish(f->stream);
    assert_int_equal(gg_event_elapsed(start, stop, &time), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_event_elapsed(stop, start, &time), GG_ERR_INVALID_ARGUMENT);
    assert_true(time == -5);
}

static void elapsed_requires_events_with_timing(void **state)
{
    struct fixture *f = *state;
    gg_event *timed = new_event(f, GG_EVENT_TIMING), *plain = new_event(f, 0);
    double time = -5;
    assert_int_equal(gg_event_record(timed, f->stream), GG_OK);
    assert_int_equal(gg_event_record(plain, f->stream), GG_OK);
    finish(f->stream);
    assert_int_equal(gg_event_elapsed(timed, plain, &time), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_event_elapsed(plain, timed, &time), GG_ERR_INVALID_ARGUMENT);
    assert_true(time == -5);
}

/* ---- lifetime and native handles ---- */

static void a_stream_wait_outlives_its_event(void **state)
{
    struct fixture *f = *state;
    gg_event *event = NULL;
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_event_create(f->device, 0, &event), GG_OK);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_event(f->second, event), GG_OK);
    gg_event_release(event);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(gg_event_query(new_event(f, 0)), GG_OK); /* may be the same native event */
    assert_true(busy(f->second));
    gate_open(gate);
    finish(f->second);
}

static void a_borrowed_event_has_the_handle_of_its_original(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0), *borrowed = NULL;
    uint64_t handles[4] = {0};
    atomic_int released = 0;
    void *gate;
    need(f, GG_OP_event_native);
    need(f, GG_OP_event_borrow);
    assert_int_equal(gg_event_native(event, handles), GG_OK);
    assert_int_equal(gg_event_borrow(f->device, handles[0], count_release, &released, &borrowed),
                     GG_OK);
    gate = hold(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_event_query(borrowed), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_event_wait(borrowed, GG_FOREVER), GG_OK);
    gg_event_release(borrowed);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 1);
    assert_int_equal(gg_event_query(event), GG_OK);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(elapsed_is_not_negative_and_counts_from_start_to_stop),
    cmocka_unit_test(an_event_that_was_never_recorded_is_done),
    cmocka_unit_test(an_event_is_done_when_its_stream_has_passed_it),
    cmocka_unit_test(a_poll_of_an_event_finds_what_a_query_does),
    cmocka_unit_test(an_event_follows_those_before_it_on_its_stream),
    cmocka_unit_test(a_wait_for_an_event_ends_at_its_time_limit),
    cmocka_unit_test(recording_again_moves_an_event),
    cmocka_unit_test(an_event_that_moved_to_an_idle_stream_is_done),
    cmocka_unit_test(an_event_may_be_recorded_any_number_of_times),
    cmocka_unit_test(a_blocking_event_can_be_waited_for_like_any_other),
    cmocka_unit_test(unknown_event_flags_are_refused),
    cmocka_unit_test(a_stream_of_another_device_is_refused_for_an_event),
    cmocka_unit_test(elapsed_is_not_ready_until_both_events_are_done),
    cmocka_unit_test(elapsed_requires_recorded_events),
    cmocka_unit_test(elapsed_requires_events_with_timing),
    cmocka_unit_test(a_stream_wait_outlives_its_event),
    cmocka_unit_test(a_borrowed_event_has_the_handle_of_its_original),
};
SUITE(event, tests);
