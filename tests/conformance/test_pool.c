/* test_pool.c: memory that is given out again: to whom, and when. */
#include "pool_blocks.h"

/* ---- who gets it ---- */

static void a_released_block_comes_back_to_its_stream_at_once(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < SIZES; i++) {
        gg_memory *memory = alloc(f, sizes[i], f->stream);
        void *pointer = gg_memory_pointer(memory), *gate = i ? NULL : hold(f, f->stream);
        (void)gate; /* the first holds the stream: coming back needs no wait */
        assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
        gg_memory_release(memory);
        assert_comes(f, sizes[i], f->stream, pointer);
    }
}

static void no_driver_call_is_made_for_a_block_that_comes_back(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < SIZES; i++)
        come_and_go(f, sizes[i], f->stream);
    uint64_t calls = figures(f).driver_calls, allocations = figures(f).allocations;
    for (int n = 0; n < 100; n++)
        for (size_t i = 0; i < SIZES; i++)
            come_and_go(f, sizes[i], f->stream);
    assert_int_equal(figures(f).driver_calls, calls);
    assert_int_equal(figures(f).allocations, allocations + 100 * SIZES);
}

static void an_allocation_that_needs_no_driver_call_can_be_tried(void **state)
{
    struct fixture *f = *state;
    gg_memory *const untouched = (gg_memory *)(uintptr_t)16;
    gg_memory *memory = untouched;
    assert_int_equal(gg_memory_try_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->stream, &memory),
                     GG_NOT_READY);
    assert_ptr_equal(memory, untouched);
    void *pointer = come_and_go(f, BLOCK, f->stream);
    assert_int_equal(gg_memory_try_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->stream, &memory),
                     GG_OK);
    keep(f, memory);
    assert_ptr_equal(gg_memory_pointer(memory), pointer);
}

static void a_block_that_another_stream_still_uses_does_not_come_back(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, f->second);
    assert_int_equal(fill_bytes(memory, 1, f->second), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(figures(f).retired_blocks, 1);
    assert_does_not_come(f, BLOCK, f->stream, pointer);
    gate_open(gate);
    finish(f->second);
    assert_comes(f, BLOCK, f->stream, pointer);
}

/* Work by the bare address is not known: what counts is that the home stream is busy. */
static void a_busy_streams_blocks_go_to_no_other_stream(void **state)
{
    struct fixture *f = *state;
    void *gate, *pointer;
    finish(f->stream);
    gate = hold_unseen(f, f->stream);
    pointer = come_and_go(f, BLOCK, f->stream);
    assert_does_not_come(f, BLOCK, f->second, pointer);
    gate_open(gate);
    finish(f->stream);
    assert_comes(f, BLOCK, f->second, pointer);
}

static void a_closed_streams_blocks_wait_for_its_work(void **state)
{
    struct fixture *f = *state;
    gg_stream *closed = NULL;
    assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &closed), GG_OK);
    finish(closed);
    void *gate = hold_unseen(f, closed), *pointer = come_and_go(f, BLOCK, closed);
    gg_stream_release(closed);
    assert_does_not_come(f, BLOCK, f->stream, pointer);
    gg_stream *next = new_stream(f); /* its native handle may be the old one */
    assert_does_not_come(f, BLOCK, next, pointer);
    gate_open(gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_comes(f, BLOCK, next, pointer);
}

static void a_block_may_outlive_the_stream_it_was_allocated_for(void **state)
{
    struct fixture *f = *state;
    gg_stream *closed = NULL;
    assert_int_equal(gg_stream_create(f->device, 0, 0, &closed), GG_OK);
    gg_memory *memory = alloc(f, BLOCK, closed);
    void *pointer = gg_memory_pointer(memory);
    gg_stream_release(closed);
    assert_int_equal(gg_device_trim(f->device), GG_OK); /* the stream is gone */
    assert_int_equal(fill_bytes(memory, 7, f->stream), GG_OK);
    assert_filled(f, memory, BLOCK, 7);
    gg_memory_release(memory);
    assert_comes(f, BLOCK, f->second, pointer);
}

/* ---- the first use ---- */

static void the_first_use_on_another_stream_waits_for_the_hand_out(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    gg_memory_release(memory);
    memory = alloc(f, BLOCK, f->stream);
    keep(f, memory);
    assert_int_equal(fill_bytes(memory, 2, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    finish(f->second);
    assert_filled(f, memory, BLOCK, 2);
}

static void a_new_block_is_waited_for_by_nobody(void **state)
{
    struct fixture *f = *state;
    hold(f, f->stream);
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    keep(f, memory);
    assert_int_equal(fill_bytes(memory, 2, f->second), GG_OK);
    finish(f->second);
}

/* ---- streams that are not known ---- */

static void memory_that_unknown_streams_use_waits_for_the_whole_device(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, f->second);
    assert_int_equal(gg_memory_record_use(memory, NULL), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(figures(f).retired_blocks, 1);
    for (int i = 0; i < 8; i++) /* each comes by the retired blocks */
        assert_does_not_come(f, BLOCK, f->stream, pointer);
    gate_open(gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(figures(f).retired_blocks, 0);
    assert_comes(f, BLOCK, f->stream, pointer);
}

/* ---- pinned memory ---- */

static void pinned_memory_comes_back_when_no_stream_uses_it(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream), *pinned = alloc_pinned(f, 4096);
    void *pointer = gg_memory_pointer(pinned), *gate = hold(f, f->stream);
    keep(f, memory);
    assert_int_equal(copy(at(memory, 0), at(pinned, 0), 4096, f->stream, GG_COPY_ASYNC), GG_OK);
    gg_memory_release(pinned);
    gg_memory *other = alloc_pinned(f, 4096);
    keep(f, other);
    assert_ptr_not_equal(gg_memory_pointer(other), pointer);
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(
        gg_device_memory_info(f->device, &(uint64_t){0}, &(uint64_t){0}) > GG_ERR_UNSUPPORTED, 0);
    for (int i = 0; i < 8 && gg_memory_pointer(other) != pointer; i++)
        keep(f, other = alloc_pinned(f, 4096));
    assert_ptr_equal(gg_memory_pointer(other), pointer);
}

static void a_free_pinned_block_is_not_taken_for_pinned_memory_of_ours(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream), *pinned = alloc_pinned(f, BLOCK);
    void *pointer = gg_memory_pointer(pinned);
    keep(f, memory);
    gg_memory_release(pinned);
    assert_int_equal(copy(at(memory, 0), host_at(pointer), BLOCK, f->stream, 0), GG_OK);
    pinned = alloc_pinned(f, 100); /* the same block cannot come for another size */
    keep(f, pinned);
    assert_ptr_not_equal(gg_memory_pointer(pinned), pointer);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(a_released_block_comes_back_to_its_stream_at_once),
        cmocka_unit_test(no_driver_call_is_made_for_a_block_that_comes_back),
        cmocka_unit_test(an_allocation_that_needs_no_driver_call_can_be_tried),
        cmocka_unit_test(a_block_that_another_stream_still_uses_does_not_come_back),
        cmocka_unit_test(a_busy_streams_blocks_go_to_no_other_stream),
        cmocka_unit_test(a_closed_streams_blocks_wait_for_its_work),
        cmocka_unit_test(a_block_may_outlive_the_stream_it_was_allocated_for),
        cmocka_unit_test(the_first_use_on_another_stream_waits_for_the_hand_out),
        cmocka_unit_test(a_new_block_is_waited_for_by_nobody),
        cmocka_unit_test(memory_that_unknown_streams_use_waits_for_the_whole_device),
        cmocka_unit_test(pinned_memory_comes_back_when_no_stream_uses_it),
        cmocka_unit_test(a_free_pinned_block_is_not_taken_for_pinned_memory_of_ours),
    };
    return run_suite(argc, argv, "pool", tests, sizeof tests / sizeof tests[0]);
}
