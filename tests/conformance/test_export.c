/* test_export.c: memory that other libraries use: the work they have to wait for, the allocation of an
 * address, the release. */
#include "conformance.h"

#include <stdatomic.h>

static gg_stream *const untouched = (gg_stream *)(uintptr_t)16;

static void fill_on(gg_memory *memory, gg_stream *stream)
{
    assert_int_equal(gg_fill(memory, 0, "\7", 1, gg_memory_size(memory), stream), GG_OK);
}

static gg_stream *pending(gg_memory *memory, uint32_t flags)
{
    gg_stream *stream = untouched;
    assert_int_equal(gg_memory_completion_stream(memory, flags, &stream), GG_OK);
    return stream;
}

static void memory_without_work_has_nothing_pending(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 1000);
    assert_int_equal(gg_memory_query(memory), GG_OK);
    assert_null(pending(memory, 0));
}

static void a_query_reports_work_that_has_not_run_and_never_waits(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 1000);
    void *gate = hold(f, f->stream);
    fill_on(memory, f->stream);
    assert_int_equal(gg_memory_query(memory), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_stream_wait(f->stream, UINT64_MAX), GG_OK);
    assert_int_equal(gg_memory_query(memory), GG_OK);
}

static void pending_work_is_reported_as_one_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 1000);
    void *gate = hold(f, f->stream);
    fill_on(memory, f->stream);
    gg_stream *one = pending(memory, 0);
    assert_ptr_equal(one, f->stream);
    fill_on(memory, f->second); /* on two streams now, of which one is held */
    assert_int_equal(gg_stream_wait_stream(f->second, f->stream), GG_OK);
    fill_on(memory, f->second);
    gg_stream *both = pending(memory, 0);
    assert_ptr_not_equal(both, f->stream);
    assert_ptr_not_equal(both, f->second);
    assert_int_equal(gg_stream_query(both), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_stream_wait(both, UINT64_MAX), GG_OK);
    assert_int_equal(gg_memory_query(memory), GG_OK);
    gg_stream_release(one);
    gg_stream_release(both);
}

static void unknown_flags_are_refused(void **state)
{
    struct fixture *f = *state;
    gg_stream *stream = untouched;
    gg_memory *memory = new_memory(f, 10);
    assert_int_equal(gg_memory_completion_stream(memory, 0x80, &stream), GG_ERR_INVALID_ARGUMENT);
    assert_ptr_equal(stream, untouched);
}

static void a_stream_is_made_to_wait_for_all_work_on_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 1000), *out = new_pinned(f, 1000, 0);
    void *gate = hold(f, f->stream);
    fill_on(memory, f->stream);
    assert_int_equal(gg_stream_wait_memory(f->second, memory), GG_OK);
    assert_int_equal(copy(at(out, 0), at(memory, 0), 1000, f->second, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(gg_stream_query(f->second), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_stream_wait(f->second, UINT64_MAX), GG_OK);
    assert_int_equal(((unsigned char *)gg_memory_pointer(out))[999], 7);
}

static void memory_that_unknown_streams_use_can_be_released(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory;
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 1000, NULL, &memory), GG_OK);
    assert_int_equal(gg_memory_record_use(memory, NULL), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
}

static int interrupt(void)
{
    return 1;
}

/* The block had an earlier user, whose work on it was not recorded. */
static void work_before_the_allocation_of_a_block_is_pending(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 1000, f->stream, &memory), GG_OK);
    void *gate = hold(f, f->stream);
    gg_memory_release(memory);
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 1000, f->stream, &memory), GG_OK);
    f->memories[f->memory_count++] = memory;
    assert_int_equal(gg_memory_query(memory), GG_NOT_READY);
    gg_stream *one = pending(memory, 0);
    assert_ptr_equal(one, f->stream);
    gg_stream_release(one);
    gg_set_wait_hook(interrupt);
    assert_int_equal(gg_memory_wait(memory), GG_ERR_INTERRUPTED);
    gg_set_wait_hook(NULL);
    gate_open(gate);
    assert_int_equal(gg_memory_wait(memory), GG_OK);
    assert_int_equal(gg_memory_query(memory), GG_OK);
    assert_null(pending(memory, 0));
}

static struct {
    struct fixture *f;
    gg_memory *memory;
    void *gate, *later; /* of the work before the wait, and of that during it */
    int calls;
} during;

/* If the wait includes the later work, it does not end, and the runner's time limit ends the test. */
static int use_it_again(void)
{
    if (during.calls++ == 0) {
        during.later = hold(during.f, during.f->stream);
        assert_int_equal(gg_memory_record_use(during.memory, during.f->stream), GG_OK);
        gate_open(during.gate);
    }
    return 0;
}

static void a_wait_for_memory_does_not_include_work_of_during_the_wait(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 64);
    finish(f->stream);
    during.f = f;
    during.memory = memory;
    during.calls = 0;
    during.gate = hold(f, f->second);
    assert_int_equal(fill_bytes(memory, 3, f->second), GG_OK);
    gg_set_wait_hook(use_it_again);
    assert_int_equal(gg_memory_wait(memory), GG_OK);
    gg_set_wait_hook(NULL);
    assert_true(busy(f->stream));
    gate_open(during.later);
    assert_int_equal(gg_memory_wait(memory), GG_OK);
}

/* A wrapped part neither hides the rest of its block nor has uses of its own. */
static void pinned_memory_is_found_beside_a_range_that_was_wrapped(void **state)
{
    struct fixture *f = *state;
    gg_memory *pinned = new_pinned(f, 8192, 0), *memory = new_memory(f, 1000), *part = NULL;
    char *bytes = gg_memory_pointer(pinned);
    assert_int_equal(
        gg_memory_wrap(f->device, GG_MEMORY_PINNED, bytes + 1024, 16, NULL, NULL, &part), GG_OK);
    f->memories[f->memory_count++] = part;
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    void *gate = hold(f, f->stream);
    assert_int_equal(copy(host_at(bytes + 4096), at(memory, 0), 1000, f->stream, GG_COPY_ASYNC),
                     GG_OK);
    assert_int_equal(gg_memory_query(pinned), GG_NOT_READY);
    assert_int_equal(gg_memory_query(part), GG_NOT_READY);
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(gg_memory_query(part), GG_OK);
}

static void note_release(void *owner)
{
    atomic_fetch_add((atomic_int *)owner, 1);
}

static void wrapped_memory_that_was_never_used_is_released_at_once(void **state)
{
    struct fixture *f = *state;
    static char host[100];
    atomic_int released = 0;
    gg_memory *memory;
    assert_int_equal(gg_memory_wrap(f->device, GG_MEMORY_PINNED, host, sizeof host, note_release,
                                    &released, &memory),
                     GG_OK);
    gg_memory_retain(memory);
    gg_memory_release(memory);
    assert_int_equal(atomic_load(&released), 0);
    gg_memory_release(memory);
    assert_int_equal(atomic_load(&released), 1);
}

static void wrapped_memory_that_unknown_streams_use_waits_for_the_device(void **state)
{
    struct fixture *f = *state;
    static char host[100];
    atomic_int released = 0;
    gg_memory *memory;
    assert_int_equal(gg_memory_wrap(f->device, GG_MEMORY_PINNED, host, sizeof host, note_release,
                                    &released, &memory),
                     GG_OK);
    void *gate = hold(f, f->second);
    assert_int_equal(gg_memory_record_use(memory, NULL), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(atomic_load(&released), 0);
    gate_open(gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_without_work_has_nothing_pending),
    cmocka_unit_test(a_query_reports_work_that_has_not_run_and_never_waits),
    cmocka_unit_test(pending_work_is_reported_as_one_stream),
    cmocka_unit_test(unknown_flags_are_refused),
    cmocka_unit_test(a_stream_is_made_to_wait_for_all_work_on_memory),
    cmocka_unit_test(memory_that_unknown_streams_use_can_be_released),
    cmocka_unit_test(wrapped_memory_that_was_never_used_is_released_at_once),
    cmocka_unit_test(work_before_the_allocation_of_a_block_is_pending),
    cmocka_unit_test(a_wait_for_memory_does_not_include_work_of_during_the_wait),
    cmocka_unit_test(pinned_memory_is_found_beside_a_range_that_was_wrapped),
    cmocka_unit_test(wrapped_memory_that_unknown_streams_use_waits_for_the_device),
};
SUITE(export, tests);
