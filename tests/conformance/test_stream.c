/* test_stream.c: streams run their work in order, wait for each other on the device, and can be
 * borrowed from other libraries. */
#include "conformance.h"

#include <stdatomic.h>
#include <string.h>

static gg_stream *const untouched = (gg_stream *)(uintptr_t)16;

/* The functions that ran, in their order. */
struct journal {
    atomic_int count;
    int entry[32];
};
struct line {
    struct journal *journal;
    int number;
};

static void write_line(void *argument)
{
    const struct line *line = argument;
    line->journal->entry[atomic_fetch_add(&line->journal->count, 1)] = line->number;
}

static void work_runs_in_the_order_in_which_it_was_queued(void **state)
{
    struct fixture *f = *state;
    struct journal journal = {0};
    struct line lines[32];
    need(f, GG_OP_stream_host_func);
    for (int i = 0; i < 32; i++) {
        lines[i] = (struct line){&journal, i};
        assert_int_equal(gg_stream_host_func(f->stream, write_line, &lines[i]), GG_OK);
    }
    finish(f->stream);
    assert_int_equal(atomic_load(&journal.count), 32);
    for (int i = 0; i < 32; i++)
        assert_int_equal(journal.entry[i], i);
}

static void copies_and_functions_keep_their_order(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 64), *pinned = new_pinned(f, 64, 0);
    for (unsigned char value = 1; value < 50; value++) {
        assert_int_equal(fill_bytes(memory, value, f->stream), GG_OK);
        assert_int_equal(copy(at(pinned, 0), at(memory, 0), 64, f->stream, GG_COPY_ASYNC), GG_OK);
    }
    finish(f->stream);
    assert_int_equal(*(unsigned char *)gg_memory_pointer(pinned), 49);
}

static void a_query_reports_whether_work_is_pending(void **state)
{
    struct fixture *f = *state;
    void *gate;
    assert_int_equal(gg_stream_query(f->stream), GG_OK);
    gate = hold(f, f->stream);
    assert_int_equal(gg_stream_query(f->stream), GG_NOT_READY);
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(gg_stream_query(f->stream), GG_OK);
}

static void a_wait_ends_at_its_time_limit(void **state)
{
    struct fixture *f = *state;
    const uint64_t limits[] = {0, 1, 1000000, 120000000};
    void *gate = hold(f, f->stream);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        assert_int_equal(gg_stream_wait(f->stream, limits[i]), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_stream_wait(f->stream, GG_FOREVER - 1), GG_OK);
    assert_int_equal(gg_stream_wait(f->stream, 0), GG_OK);
}

static void a_stream_works_after_a_wait_that_ended_at_its_limit(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 64), *pinned = new_pinned(f, 64, 0);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_stream_wait(f->stream, 51000000), GG_NOT_READY);
    assert_int_equal(fill_bytes(memory, 7, f->stream), GG_OK);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), 64, f->stream, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(gg_stream_wait(f->stream, 1000000), GG_NOT_READY);
    assert_int_equal(*(char *)gg_memory_pointer(pinned), 0);
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(*(char *)gg_memory_pointer(pinned), 7);
}

static void a_null_host_function_is_refused(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_stream_host_func);
    assert_int_equal(gg_stream_host_func(f->stream, NULL, NULL), GG_ERR_INVALID_ARGUMENT);
    finish(f->stream);
}

static void streams_do_not_wait_for_each_other_by_themselves(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 64);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->second), GG_OK);
    finish(f->second);
    assert_true(busy(f->stream));
    gate_open(gate);
}

/* ---- waiting on the device ---- */

static void a_stream_waits_for_an_event_of_another(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_event(f->second, event), GG_OK);
    assert_int_equal(gg_stream_wait(f->second, 2000000), GG_NOT_READY);
    gate_open(gate);
    finish(f->second);
    assert_int_equal(gg_event_query(event), GG_OK);
}

static void a_stream_wait_refers_to_the_record_at_the_time_of_the_call(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    gg_stream *third = new_stream(f);
    void *gate = hold_first(f, f->stream), *late;
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_event(f->second, event), GG_OK);
    late = hold(f, third);
    assert_int_equal(gg_event_record(event, third),
                     GG_OK); /* moves the event, for later waits only */
    gate_open(gate);
    finish(f->second);
    assert_int_equal(gg_event_query(event), GG_NOT_READY);
    gate_open(late);
}

static void waiting_for_an_event_that_was_never_recorded_does_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(gg_stream_wait_event(f->stream, new_event(f, 0)), GG_OK);
    finish(f->stream);
}

static void a_stream_waits_for_all_enqueued_work_of_another(void **state)
{
    struct fixture *f = *state;
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_stream_wait_stream(f->second, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait(f->second, 2000000), GG_NOT_READY);
    gate_open(gate);
    finish(f->second);
}

static void a_stream_does_not_wait_for_later_work_of_another(void **state)
{
    struct fixture *f = *state;
    void *gate;
    assert_int_equal(gg_stream_wait_stream(f->second, f->stream), GG_OK);
    gate = hold(f, f->stream);
    finish(f->second);
    gate_open(gate);
}

static void a_stream_may_be_made_to_wait_for_itself(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    assert_int_equal(gg_stream_wait_stream(f->stream, f->stream), GG_OK);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_event(f->stream, event), GG_OK);
    finish(f->stream);
}

/* ---- creating streams ---- */

static void unknown_stream_flags_are_refused(void **state)
{
    struct fixture *f = *state;
    gg_stream *stream = untouched;
    assert_fails(gg_stream_create(f->device, 0x80000000u, 0, &stream));
    assert_ptr_equal(stream, untouched);
}

static void a_stream_may_be_blocking_or_not(void **state)
{
    struct fixture *f = *state;
    for (uint32_t flags = 0; flags <= GG_STREAM_NONBLOCKING; flags++) {
        gg_stream *stream = NULL;
        assert_int_equal(gg_stream_create(f->device, flags, 0, &stream), GG_OK);
        assert_ptr_equal(gg_stream_device(stream), f->device);
        finish(stream);
        gg_stream_release(stream);
    }
}

static void a_priority_is_clamped_to_the_range(void **state)
{
    struct fixture *f = *state;
    const int32_t priorities[] = {INT32_MIN, -1, 0, 1, INT32_MAX};
    int32_t least = 0, greatest = 0;
    if (gg_device_supports(f->device, GG_OP_stream_priority_range))
        assert_int_equal(gg_stream_priority_range(f->device, &least, &greatest), GG_OK);
    assert_true(greatest <= least);
    for (size_t i = 0; i < sizeof priorities / sizeof priorities[0]; i++) {
        gg_stream *stream = NULL;
        assert_int_equal(gg_stream_create(f->device, 0, priorities[i], &stream), GG_OK);
        gg_stream_release(stream);
    }
}

static void the_default_stream_is_always_the_same(void **state)
{
    struct fixture *f = *state;
    gg_stream *first = NULL, *again = NULL;
    assert_int_equal(gg_device_default_stream(f->device, &first), GG_OK);
    gg_stream_retain(first);
    gg_stream_release(first);
    assert_int_equal(gg_device_default_stream(f->device, &again), GG_OK);
    assert_ptr_equal(first, again);
    finish(again);
}

static void release_never_waits_and_queued_work_still_runs(void **state)
{
    struct fixture *f = *state;
    struct journal journal = {0};
    struct line line = {&journal, 5};
    gg_stream *stream = NULL;
    void *gate;
    assert_int_equal(gg_stream_create(f->device, 0, 0, &stream), GG_OK);
    gate = hold(f, stream);
    assert_int_equal(gg_stream_host_func(stream, write_line, &line), GG_OK);
    gg_stream_release(stream);
    assert_int_equal(atomic_load(&journal.count), 0);
    gate_open(gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(atomic_load(&journal.count), 1);
}

/* ---- native handles ---- */

static uint64_t native_of(struct fixture *f, gg_stream *stream)
{
    uint64_t handles[4] = {0};
    need(f, GG_OP_stream_native);
    need(f, GG_OP_stream_borrow);
    assert_int_equal(gg_stream_native(stream, handles), GG_OK);
    return handles[0];
}

static void a_borrowed_stream_has_the_handle_of_its_original(void **state)
{
    struct fixture *f = *state;
    gg_stream *borrowed = NULL;
    uint64_t native = native_of(f, f->stream);
    void *gate;
    assert_int_equal(gg_stream_borrow(f->device, native, NULL, NULL, &borrowed), GG_OK);
    assert_int_equal(native_of(f, borrowed), native);
    gate = hold(f, f->stream);
    assert_true(busy(borrowed));
    gate_open(gate);
    finish(borrowed);
    assert_false(busy(f->stream));
    gg_stream_release(borrowed);
}

static void a_copy_is_ordered_for_all_users_of_its_stream(void **state)
{
    struct fixture *f = *state;
    gg_stream *theirs = NULL;
    char byte = 1;
    gg_memory *memory = new_memory(f, 1), *pinned = new_pinned(f, 1, 0);
    void *gate;
    assert_int_equal(gg_stream_borrow(f->device, native_of(f, f->stream), NULL, NULL, &theirs),
                     GG_OK);
    gate = hold(f, f->stream);
    assert_int_equal(copy(at(memory, 0), host_at(&byte), 1, f->stream, 0), GG_OK);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), 1, theirs, GG_COPY_ASYNC), GG_OK);
    gate_open(gate);
    finish(theirs);
    assert_int_equal(*(char *)gg_memory_pointer(pinned), 1);
    gg_stream_release(theirs);
}

static void a_borrowed_stream_is_never_destroyed(void **state)
{
    struct fixture *f = *state;
    gg_stream *borrowed = NULL;
    assert_int_equal(gg_stream_borrow(f->device, native_of(f, f->stream), NULL, NULL, &borrowed),
                     GG_OK);
    gg_stream_release(borrowed);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_filled(f, new_memory_with(f, "\1\1", 2), 2, 1);
    finish(f->stream);
}

static void the_owner_of_a_borrowed_stream_is_released_once_and_after_its_work(void **state)
{
    struct fixture *f = *state;
    gg_stream *borrowed = NULL;
    atomic_int released = 0;
    void *gate;
    assert_int_equal(
        gg_stream_borrow(f->device, native_of(f, f->stream), count_release, &released, &borrowed),
        GG_OK);
    gate = hold(f, borrowed);
    gg_stream_release(borrowed);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 0);
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 1);
}

static void copies_that_are_done_do_not_keep_the_owner_of_their_stream(void **state)
{
    struct fixture *f = *state;
    gg_stream *borrowed = NULL;
    atomic_int released = 0;
    char bytes[8] = "1234567";
    gg_memory *memory = new_memory(f, 64);
    assert_int_equal(
        gg_stream_borrow(f->device, native_of(f, f->stream), count_release, &released, &borrowed),
        GG_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(copy(at(memory, 0), host_at(bytes), 8, borrowed, 0), GG_OK);
        assert_int_equal(copy(host_at(bytes), at(memory, 0), 8, borrowed, 0), GG_OK);
        assert_int_equal(gg_fill(memory, 0, bytes, 8, 8, borrowed), GG_OK); /* copies the pattern */
    }
    finish(borrowed);
    gg_stream_release(borrowed);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 1);
}

static void borrowing_the_default_streams_handle_gives_the_default_stream(void **state)
{
    struct fixture *f = *state;
    gg_stream *stream = NULL, *borrowed = NULL;
    atomic_int released = 0;
    assert_int_equal(gg_device_default_stream(f->device, &stream), GG_OK);
    assert_int_equal(
        gg_stream_borrow(f->device, native_of(f, stream), count_release, &released, &borrowed),
        GG_OK);
    assert_ptr_equal(borrowed, stream);
    gg_stream_release(borrowed);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(work_runs_in_the_order_in_which_it_was_queued),
    cmocka_unit_test(copies_and_functions_keep_their_order),
    cmocka_unit_test(a_query_reports_whether_work_is_pending),
    cmocka_unit_test(a_wait_ends_at_its_time_limit),
    cmocka_unit_test(a_stream_works_after_a_wait_that_ended_at_its_limit),
    cmocka_unit_test(a_null_host_function_is_refused),
    cmocka_unit_test(streams_do_not_wait_for_each_other_by_themselves),
    cmocka_unit_test(a_stream_waits_for_an_event_of_another),
    cmocka_unit_test(a_stream_wait_refers_to_the_record_at_the_time_of_the_call),
    cmocka_unit_test(waiting_for_an_event_that_was_never_recorded_does_nothing),
    cmocka_unit_test(a_stream_waits_for_all_enqueued_work_of_another),
    cmocka_unit_test(a_stream_does_not_wait_for_later_work_of_another),
    cmocka_unit_test(a_stream_may_be_made_to_wait_for_itself),
    cmocka_unit_test(unknown_stream_flags_are_refused),
    cmocka_unit_test(a_stream_may_be_blocking_or_not),
    cmocka_unit_test(a_priority_is_clamped_to_the_range),
    cmocka_unit_test(the_default_stream_is_always_the_same),
    cmocka_unit_test(release_never_waits_and_queued_work_still_runs),
    cmocka_unit_test(a_borrowed_stream_has_the_handle_of_its_original),
    cmocka_unit_test(a_copy_is_ordered_for_all_users_of_its_stream),
    cmocka_unit_test(a_borrowed_stream_is_never_destroyed),
    cmocka_unit_test(the_owner_of_a_borrowed_stream_is_released_once_and_after_its_work),
    cmocka_unit_test(copies_that_are_done_do_not_keep_the_owner_of_their_stream),
    cmocka_unit_test(borrowing_the_default_streams_handle_gives_the_default_stream),
};
SUITE(stream, tests);
