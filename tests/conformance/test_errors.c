/* test_errors.c: the error record of a failed call, and interrupts. */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A call that fails in the core's own checks, with a message of its own. */
static gg_status fail_somehow(struct fixture *f)
{
    return fill_bytes(new_memory(f, 0), 1, NULL) ? GG_ERR_INTERNAL
                                                 : gg_fill(f->memories[0], 0, "x", 1, 5, NULL);
}

static void every_status_has_a_name_and_a_message(void **state)
{
    (void)state;
    for (int i = GG_OK; i <= GG_ERR_INTERNAL; i++) {
        assert_string_not_equal(gg_status_name((gg_status)i), "unknown");
        assert_true(gg_status_message((gg_status)i)[0] != '\0');
    }
    assert_string_equal(gg_status_name(GG_ERR_OUT_OF_MEMORY), "ERR_OUT_OF_MEMORY");
    assert_non_null(gg_status_name((gg_status)9999));
    assert_non_null(gg_status_message((gg_status)-1));
}

static void every_operation_and_probe_status_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < GG_OP_COUNT; i++)
        assert_string_not_equal(gg_op_name((gg_op)i), "unknown");
    assert_string_equal(gg_op_name(GG_OP_mem_alloc), "mem_alloc");
    assert_non_null(gg_op_name((gg_op)9999));
    assert_string_equal(gg_probe_status_name(GG_PROBE_NO_DEVICE), "no-device");
    assert_non_null(gg_probe_status_name((gg_probe_status)9999));
}

static void versions_are_those_of_the_header(void **state)
{
    (void)state;
    assert_string_equal(gg_version(), GG_VERSION);
    assert_int_equal(gg_abi() >> 16, GG_ABI_MAJOR);
    assert_in_range(gg_abi() & 0xffff, GG_ABI_MINOR, 0xffff);
}

/* ---- the record ---- */

static void a_failed_call_reports_the_given_and_the_expected_value(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(fail_somehow(f), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(last_error().status, GG_ERR_INVALID_ARGUMENT);
    assert_message_has("5");
    assert_message_has("0");
}

static void a_failed_operation_names_backend_device_and_operation(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    struct gg_error error;
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, (size_t)1 << 60, NULL, &memory),
                     GG_ERR_OUT_OF_MEMORY);
    error = last_error();
    assert_string_equal(error.backend, backend_name());
    assert_string_equal(error.op, "mem_alloc");
    assert_int_equal(error.device, 0);
    assert_non_null(strstr(error.message, backend_name()));
}

static void success_does_not_change_the_error_record(void **state)
{
    struct fixture *f = *state;
    struct gg_error before;
    assert_fails(fail_somehow(f));
    before = last_error();
    assert_filled(f, new_memory_with(f, "aaaa", 4), 4, 'a');
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_string_equal(last_error().message, before.message);
    assert_int_equal(last_error().status, before.status);
}

static void releases_and_internal_calls_do_not_change_the_error_record(void **state)
{
    struct fixture *f = *state;
    struct gg_error before;
    gg_memory *memory = NULL;
    gg_event *event = NULL;
    assert_fails(fail_somehow(f));
    before = last_error();
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 16, NULL, &memory), GG_OK);
    assert_int_equal(gg_event_create(f->device, 0, &event), GG_OK);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    gg_memory_release(memory);
    gg_event_release(event);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_string_equal(last_error().message, before.message);
}

static void not_ready_is_not_an_error(void **state)
{
    struct fixture *f = *state;
    struct gg_error before;
    void *gate = hold(f, f->stream);
    assert_fails(fail_somehow(f));
    before = last_error();
    assert_int_equal(gg_stream_query(f->stream), GG_NOT_READY);
    assert_int_equal(gg_stream_wait(f->stream, 1000), GG_NOT_READY);
    assert_string_equal(last_error().message, before.message);
    gate_open(gate);
}

static void *last_error_of_a_new_thread(void *out)
{
    *(struct gg_error *)out = last_error();
    return NULL;
}

static void each_thread_has_its_own_error_record(void **state)
{
    struct fixture *f = *state;
    struct gg_error theirs;
    pthread_t thread;
    assert_fails(fail_somehow(f));
    assert_int_equal(pthread_create(&thread, NULL, last_error_of_a_new_thread, &theirs), 0);
    pthread_join(thread, NULL);
    assert_int_equal(theirs.status, GG_OK);
    assert_string_equal(theirs.message, "");
}

static void a_struct_that_is_too_small_does_not_lose_the_error_record(void **state)
{
    struct fixture *f = *state;
    struct gg_error error;
    memset(&error, 0x55, sizeof error);
    error.struct_size = sizeof error - 1;
    assert_fails(fail_somehow(f));
    assert_int_equal(gg_last_error(&error), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(error.message[0], 0x55);
    error.struct_size = sizeof error;
    assert_int_equal(gg_last_error(&error), GG_OK);
    assert_int_equal(error.status, GG_ERR_INVALID_ARGUMENT);
    assert_null(strstr(error.message, "struct_size"));
}

static void the_error_record_reports_to_a_newer_caller_how_much_was_written(void **state)
{
    struct fixture *f = *state;
    struct {
        struct gg_error error;
        char newer[8];
    } theirs = {.error.struct_size = sizeof theirs, .newer = "mine"};
    assert_fails(fail_somehow(f));
    assert_int_equal(gg_last_error(&theirs.error), GG_OK);
    assert_int_equal(theirs.error.status, GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(theirs.error.struct_size, sizeof theirs.error);
    assert_string_equal(theirs.newer, "mine");
}

static void a_long_message_is_truncated_to_the_record(void **state)
{
    char name[3000];
    gg_device *device = NULL;
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_fails(gg_device_find(name, &device));
    assert_true(strlen(last_error().message) < sizeof last_error().message);
}

static void unavailable_backends_are_named_with_every_reason(void **state)
{
    (void)state;
    assert_int_equal(gg_use_backend("nosuchbackend"), GG_ERR_UNAVAILABLE);
    assert_message_has("nosuchbackend");
    assert_int_equal(gg_use_backend(backend_name()), GG_OK);
}

/* ---- interrupts ---- */

static int interrupts;

static int interrupt_the_second_time(void)
{
    return ++interrupts == 2;
}

static void a_wait_can_be_interrupted_and_everything_stays_valid(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 64);
    void *gate = hold(f, f->stream);
    interrupts = 0;
    assert_int_equal(fill_bytes(memory, 8, f->stream), GG_OK);
    gg_set_wait_hook(interrupt_the_second_time);
    assert_int_equal(gg_stream_wait(f->stream, GG_FOREVER), GG_ERR_INTERRUPTED);
    gg_set_wait_hook(NULL);
    assert_int_equal(interrupts, 2);
    gate_open(gate);
    assert_filled(f, memory, 64, 8); /* the queued work continued */
}

static int interrupt(void)
{
    return 1;
}

static void every_wait_can_be_interrupted(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    gg_memory *memory = new_memory(f, 64);
    char bytes[64];
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    gg_set_wait_hook(interrupt);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_ERR_INTERRUPTED);
    assert_int_equal(gg_device_synchronize(f->device), GG_ERR_INTERRUPTED);
    assert_int_equal(copy(host_at(bytes), at(memory, 0), 64, NULL, 0), GG_ERR_INTERRUPTED);
    gg_set_wait_hook(NULL);
    gate_open(gate);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
}

static void *held;
static int turns;

/* Opens the gate in its third call and then sleeps, so that the wait polls while the stream
 * runs. */
static int open_the_held(void)
{
    if (++turns % 3)
        return 0;
    gate_open(held);
    nanosleep(&(struct timespec){.tv_nsec = turns * 1000}, NULL);
    return 0;
}

/* The hook is called between two slices of a wait. The stream's native handle was exported, so
 * that others may have queued work on it. */
static void after_a_wait_of_several_slices_a_query_finds_the_stream_done(void **state)
{
    struct fixture *f = *state;
    uint64_t handles[4];
    if (gg_device_supports(f->device, GG_OP_stream_native))
        assert_int_equal(gg_stream_native(f->stream, handles), GG_OK);
    turns = 0;
    for (int round = 0; round < 20; round++) {
        held = hold(f, f->stream);
        gg_set_wait_hook(open_the_held);
        assert_int_equal(gg_stream_wait(f->stream, GG_FOREVER), GG_OK);
        gg_set_wait_hook(NULL);
        assert_int_equal(gg_stream_query(f->stream), GG_OK);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_status_has_a_name_and_a_message),
    cmocka_unit_test(every_operation_and_probe_status_has_a_name),
    cmocka_unit_test(versions_are_those_of_the_header),
    cmocka_unit_test(a_failed_call_reports_the_given_and_the_expected_value),
    cmocka_unit_test(a_failed_operation_names_backend_device_and_operation),
    cmocka_unit_test(success_does_not_change_the_error_record),
    cmocka_unit_test(releases_and_internal_calls_do_not_change_the_error_record),
    cmocka_unit_test(not_ready_is_not_an_error),
    cmocka_unit_test(each_thread_has_its_own_error_record),
    cmocka_unit_test(a_struct_that_is_too_small_does_not_lose_the_error_record),
    cmocka_unit_test(the_error_record_reports_to_a_newer_caller_how_much_was_written),
    cmocka_unit_test(a_long_message_is_truncated_to_the_record),
    cmocka_unit_test(unavailable_backends_are_named_with_every_reason),
    cmocka_unit_test(a_wait_can_be_interrupted_and_everything_stays_valid),
    cmocka_unit_test(every_wait_can_be_interrupted),
    cmocka_unit_test(after_a_wait_of_several_slices_a_query_finds_the_stream_done),
};
SUITE(errors, tests);
