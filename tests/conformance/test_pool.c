/* test_pool.c: memory that is given out again: to whom, and when. */
#include "pool_blocks.h"

#include <pthread.h>
#include <time.h>

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

static void *wait_for_it(void *memory)
{
    return gg_memory_wait(memory) ? memory : NULL;
}

/* Its native stream, which the other thread's wait asks, must not go while other calls clear away. */
static void a_wait_for_memory_holds_the_closed_stream_that_had_it(void **state)
{
    struct fixture *f = *state;
    const struct timespec a_while = {.tv_nsec = 100000000};
    gg_stream *closed = NULL;
    pthread_t thread;
    void *failed = NULL;
    assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &closed), GG_OK);
    void *gate = hold(f, closed), *pointer = come_and_go(f, BLOCK, closed);
    assert_comes(f, BLOCK, closed, pointer);
    gg_stream_release(closed);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, f->memories[f->memory_count - 1]),
                     0);
    nanosleep(&a_while, NULL); /* so that it asks less often */
    gate_open(gate);
    while (pthread_tryjoin_np(thread, &failed))
        assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_null(failed);
}

/* Elsewhere the driver itself waits before it frees. */
static void a_block_that_is_not_kept_goes_after_unseen_work_on_its_stream(void **state)
{
    struct fixture *f = *state;
    const size_t large = (size_t)257 << 20;
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (info.flags & GG_DEVICE_SHARED_DEFAULT)
        skip();
    void *gate = hold_unseen(f, f->stream);
    come_and_go(f, large, f->stream);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_true(figures(f).held_bytes >= large);
    gate_open(gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_true(figures(f).held_bytes < large);
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

/* The vendor orders the lender and the borrower by itself, and nothing of the borrower's own says so. */
static void a_third_stream_waits_for_the_lender_of_a_block(void **state)
{
    struct fixture *f = *state;
    struct gg_device_info info = {.struct_size = sizeof info};
    gg_stream *lender = NULL, *borrower = NULL;
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (!(info.flags & GG_DEVICE_SHARED_DEFAULT))
        skip();
    assert_int_equal(gg_device_default_stream(f->device, &lender), GG_OK);
    assert_int_equal(gg_stream_create(f->device, 0, 0, &borrower), GG_OK);
    f->streams[f->stream_count++] = borrower;
    gg_memory *memory = alloc(f, BLOCK, lender);
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, lender);
    assert_int_equal(fill_bytes(memory, 7, lender), GG_OK);
    gg_memory_release(memory);
    assert_comes(f, BLOCK, borrower, pointer);
    memory = f->memories[f->memory_count - 1];
    assert_int_equal(fill_bytes(memory, 9, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    finish(f->second);
    assert_filled(f, memory, BLOCK, 9);
}

/* It may be gone by the time that somebody takes its block, and then it can be neither asked nor waited for. */
static void a_stream_without_an_owner_lends_nothing(void **state)
{
    struct fixture *f = *state;
    struct gg_device_info info = {.struct_size = sizeof info};
    uint64_t handles[4] = {0};
    gg_stream *blocking = NULL, *lender = NULL, *borrower = NULL;
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (!(info.flags & GG_DEVICE_SHARED_DEFAULT))
        skip();
    assert_int_equal(gg_device_default_stream(f->device, &borrower), GG_OK);
    assert_int_equal(gg_stream_create(f->device, 0, 0, &blocking), GG_OK);
    f->streams[f->stream_count++] = blocking;
    assert_int_equal(gg_stream_native(blocking, handles), GG_OK);
    assert_int_equal(gg_stream_borrow(f->device, handles[0], NULL, NULL, &lender), GG_OK);
    f->streams[f->stream_count++] = lender;
    void *gate = hold(f, lender), *pointer = come_and_go(f, BLOCK, lender);
    assert_does_not_come(f, BLOCK, borrower, pointer);
    gate_open(gate);
    finish(lender);
}

static void a_block_that_a_borrower_did_not_use_goes_to_nobody_before_the_lender_is_done(void **state)
{
    struct fixture *f = *state;
    struct gg_device_info info = {.struct_size = sizeof info};
    gg_stream *lender = NULL, *borrower = NULL;
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (!(info.flags & GG_DEVICE_SHARED_DEFAULT))
        skip();
    assert_int_equal(gg_device_default_stream(f->device, &lender), GG_OK);
    assert_int_equal(gg_stream_create(f->device, 0, 0, &borrower), GG_OK);
    f->streams[f->stream_count++] = borrower;
    finish(lender);
    void *gate = hold_unseen(f, lender), *pointer = come_and_go(f, BLOCK, lender);
    assert_ptr_equal(come_and_go(f, BLOCK, borrower), pointer);
    assert_does_not_come(f, BLOCK, f->second, pointer);
    gate_open(gate);
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

/* ---- the driver ---- */

static void what_fits_as_it_is_is_given_where_its_size_class_does_not_fit(void **state)
{
    struct fixture *f = *state;
    const size_t nbytes = ((size_t)8 << 20) + 4096;
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, nbytes + 4096), GG_OK);
    gg_memory *memory = NULL;
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, f->stream, &memory);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
    assert_int_equal(status, GG_OK);
    keep(f, memory);
    assert_int_equal(fill_bytes(memory, 3, f->stream), GG_OK);
    assert_filled(f, memory, nbytes, 3);
}

static void what_the_driver_refused_was_never_held(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory;
    const size_t nbytes = (size_t)1 << 60;
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, f->stream, &memory),
                     GG_ERR_OUT_OF_MEMORY);
    assert_true(figures(f).held_peak < nbytes);
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
        cmocka_unit_test(a_third_stream_waits_for_the_lender_of_a_block),
        cmocka_unit_test(a_stream_without_an_owner_lends_nothing),
        cmocka_unit_test(a_wait_for_memory_holds_the_closed_stream_that_had_it),
        cmocka_unit_test(a_block_that_is_not_kept_goes_after_unseen_work_on_its_stream),
        cmocka_unit_test(
            a_block_that_a_borrower_did_not_use_goes_to_nobody_before_the_lender_is_done),
        cmocka_unit_test(what_fits_as_it_is_is_given_where_its_size_class_does_not_fit),
        cmocka_unit_test(what_the_driver_refused_was_never_held),
    };
    return run_suite(argc, argv, "pool", tests, sizeof tests / sizeof tests[0]);
}
