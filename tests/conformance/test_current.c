/* test_current.c: the current device and stream of a thread, and the scopes that change them. */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static gg_device *current_device(void)
{
    gg_device *device = NULL;
    assert_int_equal(gg_current_device(&device), GG_OK);
    return device;
}

static gg_stream *current_stream(gg_device *device)
{
    gg_stream *stream = NULL;
    assert_int_equal(gg_current_stream(device, &stream), GG_OK);
    return stream;
}

static gg_stream *default_stream(gg_device *device)
{
    gg_stream *stream = NULL;
    assert_int_equal(gg_device_default_stream(device, &stream), GG_OK);
    return stream;
}

static gg_scope *enter(gg_device *device, gg_stream *stream)
{
    gg_scope *scope = NULL;
    assert_int_equal(gg_scope_enter(device, stream, &scope), GG_OK);
    return scope;
}

/* Runs @p body in a new thread, whose current device was never set. */
static void in_new_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    void *problem = "";
    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    pthread_join(thread, &problem);
    assert_null(problem);
}

/* ---- the device ---- */

static void device_0_of_the_default_backend_is_current_at_first(void **state)
{
    struct fixture *f = *state;
    assert_ptr_equal(current_device(), f->device);
}

static void an_entered_device_is_current_until_it_is_left(void **state)
{
    struct fixture *f = *state;
    gg_device *other = other_device(f);
    gg_scope *scope = enter(other, NULL);
    assert_ptr_equal(current_device(), other);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    assert_ptr_equal(current_device(), f->device);
}

static void entering_a_stream_enters_its_device(void **state)
{
    struct fixture *f = *state;
    gg_device *other = other_device(f);
    gg_stream *stream = NULL;
    gg_scope *scope;
    assert_int_equal(gg_stream_create(other, 0, 0, &stream), GG_OK);
    scope = enter(other, stream);
    assert_ptr_equal(current_device(), other);
    assert_ptr_equal(current_stream(other), stream);
    assert_ptr_equal(current_stream(f->device), default_stream(f->device));
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    gg_stream_release(stream);
}

static void *use_the_other(void *device)
{
    gg_device *now = NULL;
    if (gg_device_set_current(device) || gg_current_device(&now) || now != device)
        return "the device that is used is not current";
    return NULL;
}

static void set_current_affects_only_its_thread(void **state)
{
    struct fixture *f = *state;
    in_new_thread(use_the_other, other_device(f));
    assert_ptr_equal(current_device(), f->device);
}

struct two {
    gg_device *used, *entered;
};

static void *use_inside_a_scope(void *argument)
{
    struct two *two = argument;
    gg_device *now = NULL;
    gg_scope *scope;
    if (gg_scope_enter(two->entered, NULL, &scope) || gg_device_set_current(two->used) ||
        gg_current_device(&now) || now != two->entered)
        return "an entered device must beat a used one";
    if (gg_scope_leave(scope) || gg_current_device(&now) || now != two->used)
        return "the device of set_current must be current after the scope";
    return NULL;
}

static void an_entered_device_takes_precedence_over_set_current(void **state)
{
    struct fixture *f = *state;
    struct two two = {other_device(f), f->device};
    in_new_thread(use_inside_a_scope, &two);
}

static void operations_do_not_change_the_current_device(void **state)
{
    struct fixture *f = *state;
    gg_device *other = other_device(f);
    gg_stream *stream = NULL;
    gg_memory *memory = NULL;
    char byte = 1;
    assert_int_equal(gg_stream_create(other, 0, 0, &stream), GG_OK);
    assert_int_equal(gg_memory_alloc(other, GG_MEMORY_DEVICE, 64, stream, &memory), GG_OK);
    assert_int_equal(copy(at(memory, 0), host_at(&byte), 1, NULL, 0), GG_OK);
    assert_fails(copy(at(memory, 64), host_at(&byte), 1, NULL, 0));
    assert_fails(gg_memory_alloc(other, GG_MEMORY_DEVICE, (size_t)1 << 60, NULL, &memory));
    assert_ptr_equal(current_device(), f->device);
    gg_memory_release(memory);
    gg_stream_release(stream);
}

static void native_handles_are_the_same_inside_a_scope(void **state)
{
    struct fixture *f = *state;
    uint64_t before[4], inside[4], after[4];
    gg_scope *scope;
    need(f, GG_OP_device_native);
    assert_int_equal(gg_device_native(f->device, before), GG_OK);
    scope = enter(f->device, f->stream);
    assert_int_equal(gg_device_native(f->device, inside), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    assert_int_equal(gg_device_native(f->device, after), GG_OK);
    assert_memory_equal(before, inside, sizeof before);
    assert_memory_equal(before, after, sizeof before);
}

/* ---- the stream ---- */

static void the_default_stream_is_current_at_first(void **state)
{
    struct fixture *f = *state;
    assert_ptr_equal(current_stream(f->device), default_stream(f->device));
}

static void scopes_nest_and_restore(void **state)
{
    struct fixture *f = *state;
    gg_scope *outer = enter(f->device, f->stream), *inner = enter(f->device, f->second);
    assert_ptr_equal(current_stream(f->device), f->second);
    assert_int_equal(gg_scope_leave(inner), GG_OK);
    assert_ptr_equal(current_stream(f->device), f->stream);
    assert_int_equal(gg_scope_leave(outer), GG_OK);
    assert_ptr_equal(current_stream(f->device), default_stream(f->device));
}

static void entering_a_device_keeps_the_stream_entered_on_it(void **state)
{
    struct fixture *f = *state;
    gg_scope *outer = enter(f->device, f->stream), *inner = enter(f->device, NULL);
    assert_ptr_equal(current_stream(f->device), f->stream);
    assert_int_equal(gg_scope_leave(inner), GG_OK);
    assert_int_equal(gg_scope_leave(outer), GG_OK);
}

static void scopes_may_be_left_out_of_order(void **state)
{
    struct fixture *f = *state;
    gg_scope *first = enter(f->device, f->stream), *second = enter(f->device, f->second);
    assert_int_equal(gg_scope_leave(first), GG_OK);
    assert_ptr_equal(current_stream(f->device), f->second);
    assert_int_equal(gg_scope_leave(second), GG_OK);
    assert_ptr_equal(current_stream(f->device), default_stream(f->device));
    assert_ptr_equal(current_device(), f->device);
}

/* Only the vendor's current context determines the current device here. */
static void *leave_out_of_order(void *argument)
{
    struct two *two = argument;
    gg_device *before = NULL, *now = NULL;
    gg_scope *first, *second, *third;
    if (gg_current_device(&before) || before != two->entered ||
        gg_scope_enter(two->used, NULL, &first) || gg_scope_enter(two->entered, NULL, &second) ||
        gg_scope_enter(two->used, NULL, &third))
        return "no scopes";
    if (gg_scope_leave(first) || gg_scope_leave(third) || gg_current_device(&now) ||
        now != two->entered)
        return "the scope that is left last must be the current one";
    if (gg_scope_leave(second) || gg_current_device(&now) || now != before)
        return "what was current is not restored";
    if (gg_scope_enter(two->used, NULL, &first) || gg_scope_enter(two->entered, NULL, &second) ||
        gg_scope_leave(first) || gg_scope_leave(second) || gg_current_device(&now) || now != before)
        return "what was current before both is not restored";
    return NULL;
}

static void scopes_left_out_of_order_restore_the_state_before_them(void **state)
{
    struct fixture *f = *state;
    struct two two = {other_device(f), f->device};
    in_new_thread(leave_out_of_order, &two);
}

static void a_scope_holds_a_reference_to_its_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 100);
    gg_stream *stream = NULL;
    gg_scope *scope;
    assert_int_equal(gg_stream_create(f->device, 0, 0, &stream), GG_OK);
    scope = enter(f->device, stream);
    gg_stream_release(stream);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_ptr_equal(current_stream(f->device), stream);
    assert_int_equal(fill_bytes(memory, 6, NULL), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    assert_filled(f, memory, 100, 6);
}

static void a_stream_cannot_be_entered_on_another_device(void **state)
{
    struct fixture *f = *state;
    gg_scope *const untouched = (gg_scope *)(uintptr_t)16;
    gg_scope *scope = untouched;
    assert_int_equal(gg_scope_enter(other_device(f), f->stream, &scope), GG_ERR_INVALID_ARGUMENT);
    assert_ptr_equal(scope, untouched);
    assert_ptr_equal(current_device(), f->device);
}

static void *stream_of_this_thread(void *device)
{
    gg_stream *current = NULL, *usual = NULL;
    if (gg_current_stream(device, &current) || gg_device_default_stream(device, &usual))
        return "no current stream";
    return current == usual ? NULL : "a scope of another thread is seen";
}

static void a_scope_belongs_to_its_thread(void **state)
{
    struct fixture *f = *state;
    gg_scope *scope = enter(f->device, f->stream);
    in_new_thread(stream_of_this_thread, f->device);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
}

static void *leave_here(void *scope)
{
    return gg_scope_leave(scope) == GG_ERR_INVALID_ARGUMENT ? NULL : "the scope was left";
}

static void leaving_a_scope_on_another_thread_is_refused(void **state)
{
    struct fixture *f = *state;
    gg_scope *scope = enter(f->device, f->stream);
    in_new_thread(leave_here, scope);
    assert_ptr_equal(current_stream(f->device), f->stream);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
}

/* ---- GPUGLUE_DEVICE ---- */

static int print_current(void)
{
    gg_device *device = NULL;
    gg_status status = gg_current_device(&device);
    if (status)
        printf("%s: %s", gg_status_name(status), last_error().message);
    else
        printf("%s:%d", gg_device_backend(device), (int)gg_device_ordinal(device));
    return 0;
}

/* Without the backend that GPUGLUE_DEVICE names. */
static int print_current_without(void)
{
    char selection[64];
    snprintf(selection, sizeof selection, "^%s", backend_name());
    setenv("GPUGLUE_BACKEND", selection, 1);
    return print_current();
}

static const struct scenario scenarios[] = {{"print_current", print_current},
                                            {"print_current_without", print_current_without}};

static void assert_environment_gives(const char *value, const char *expected)
{
    char output[1024];
    assert_int_equal(
        start_scenario("print_current", "GPUGLUE_DEVICE", value, output, sizeof output), 0);
    if (!strstr(output, expected))
        fail_msg("GPUGLUE_DEVICE=%s gives \"%s\"", value, output);
}

static void the_environment_selects_the_current_device(void **state)
{
    char name[64];
    (void)state;
    snprintf(name, sizeof name, "%s:0", backend_name());
    assert_environment_gives("0", name);
    assert_environment_gives(name, name);
}

static void an_environment_that_names_no_device_is_an_error(void **state)
{
    (void)state;
    assert_environment_gives("9999", "ERR_NO_SUCH_DEVICE");
    assert_environment_gives("nosuch:0", "ERR_");
}

static void a_device_and_a_backend_that_disagree_are_an_error(void **state)
{
    const char *other = strcmp(backend_name(), "host") ? "host:0" : "cuda:0";
    (void)state;
    assert_environment_gives(other, "ERR_INVALID_ARGUMENT");
    assert_environment_gives(other, backend_name());
}

static void a_device_of_an_excluded_backend_is_an_error(void **state)
{
    char device[64], excluded[64], output[1024];
    (void)state;
    snprintf(device, sizeof device, "%s:0", backend_name());
    snprintf(excluded, sizeof excluded, "GPUGLUE_BACKEND=^%s", backend_name());
    assert_int_equal(
        start_scenario("print_current_without", "GPUGLUE_DEVICE", device, output, sizeof output), 0);
    if (strncmp(output, "ERR_", 4) != 0 || !strstr(output, excluded))
        fail_msg("%s and GPUGLUE_DEVICE=%s give \"%s\"", excluded, device, output);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(device_0_of_the_default_backend_is_current_at_first),
    cmocka_unit_test(an_entered_device_is_current_until_it_is_left),
    cmocka_unit_test(entering_a_stream_enters_its_device),
    cmocka_unit_test(set_current_affects_only_its_thread),
    cmocka_unit_test(an_entered_device_takes_precedence_over_set_current),
    cmocka_unit_test(operations_do_not_change_the_current_device),
    cmocka_unit_test(native_handles_are_the_same_inside_a_scope),
    cmocka_unit_test(the_default_stream_is_current_at_first),
    cmocka_unit_test(scopes_nest_and_restore),
    cmocka_unit_test(entering_a_device_keeps_the_stream_entered_on_it),
    cmocka_unit_test(scopes_may_be_left_out_of_order),
    cmocka_unit_test(scopes_left_out_of_order_restore_the_state_before_them),
    cmocka_unit_test(a_scope_holds_a_reference_to_its_stream),
    cmocka_unit_test(a_stream_cannot_be_entered_on_another_device),
    cmocka_unit_test(a_scope_belongs_to_its_thread),
    cmocka_unit_test(leaving_a_scope_on_another_thread_is_refused),
    cmocka_unit_test(the_environment_selects_the_current_device),
    cmocka_unit_test(an_environment_that_names_no_device_is_an_error),
    cmocka_unit_test(a_device_and_a_backend_that_disagree_are_an_error),
    cmocka_unit_test(a_device_of_an_excluded_backend_is_an_error),
};
SUITE_AND_SCENARIOS(current, tests, scenarios);
