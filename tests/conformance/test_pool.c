/* test_pool.c: reuse of memory: for which stream, and when. */
#include "pool_blocks.h"

#include <pthread.h>
#include <time.h>

/* ---- which stream gets a block ---- */

static void a_released_block_is_reused_on_its_stream_at_once(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < SIZES; i++) {
        gg_memory *memory = alloc(f, sizes[i], f->stream);
        void *pointer = gg_memory_pointer(memory), *gate = i ? NULL : hold(f, f->stream);
        (void)gate; /* the first holds the stream: its reuse needs no wait */
        assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
        gg_memory_release(memory);
        assert_reuses(f, sizes[i], f->stream, pointer);
    }
}

static void reusing_a_block_makes_no_driver_call(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < SIZES; i++)
        alloc_and_free(f, sizes[i], f->stream);
    uint64_t calls = figures(f).driver_calls, allocations = figures(f).allocations;
    for (int n = 0; n < 100; n++)
        for (size_t i = 0; i < SIZES; i++)
            alloc_and_free(f, sizes[i], f->stream);
    assert_int_equal(figures(f).driver_calls, calls);
    assert_int_equal(figures(f).allocations, allocations + 100 * SIZES);
}

static void try_alloc_succeeds_only_without_a_driver_call(void **state)
{
    struct fixture *f = *state;
    gg_memory *const untouched = (gg_memory *)(uintptr_t)16;
    gg_memory *memory = untouched;
    assert_int_equal(gg_memory_try_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->stream, &memory),
                     GG_NOT_READY);
    assert_ptr_equal(memory, untouched);
    void *pointer = alloc_and_free(f, BLOCK, f->stream);
    assert_int_equal(gg_memory_try_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->stream, &memory),
                     GG_OK);
    keep(f, memory);
    assert_ptr_equal(gg_memory_pointer(memory), pointer);
}

static void a_block_that_another_stream_still_uses_is_not_reused(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, f->second);
    assert_int_equal(fill_bytes(memory, 1, f->second), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(figures(f).retired_blocks, 1);
    assert_does_not_reuse(f, BLOCK, f->stream, pointer);
    gate_open(gate);
    finish(f->second);
    assert_reuses(f, BLOCK, f->stream, pointer);
}

/* gpuglue does not know work through a raw pointer: what counts is that the block's stream is
 * busy. */
static void blocks_of_a_busy_stream_are_not_reused_on_another(void **state)
{
    struct fixture *f = *state;
    void *gate, *pointer;
    finish(f->stream);
    gate = hold_unseen(f, f->stream);
    pointer = alloc_and_free(f, BLOCK, f->stream);
    assert_does_not_reuse(f, BLOCK, f->second, pointer);
    gate_open(gate);
    finish(f->stream);
    assert_reuses(f, BLOCK, f->second, pointer);
}

static void blocks_of_a_closed_stream_are_reused_after_its_work(void **state)
{
    struct fixture *f = *state;
    gg_stream *closed = NULL;
    assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &closed), GG_OK);
    finish(closed);
    void *gate = hold_unseen(f, closed), *pointer = alloc_and_free(f, BLOCK, closed);
    gg_stream_release(closed);
    assert_does_not_reuse(f, BLOCK, f->stream, pointer);
    gg_stream *next = new_stream(f); /* its native handle may be the old one */
    assert_does_not_reuse(f, BLOCK, next, pointer);
    gate_open(gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_reuses(f, BLOCK, next, pointer);
}

static void a_block_may_outlive_the_stream_it_was_allocated_for(void **state)
{
    struct fixture *f = *state;
    gg_stream *closed = NULL;
    assert_int_equal(gg_stream_create(f->device, 0, 0, &closed), GG_OK);
    gg_memory *memory = alloc(f, BLOCK, closed);
    void *pointer = gg_memory_pointer(memory);
    gg_stream_release(closed);
    assert_int_equal(gg_device_trim(f->device), GG_OK); /* destroys the stream */
    assert_int_equal(fill_bytes(memory, 7, f->stream), GG_OK);
    assert_filled(f, memory, BLOCK, 7);
    finish(f->stream); /* a single query of an idle stream may say that it is busy */
    gg_memory_release(memory);
    assert_reuses(f, BLOCK, f->second, pointer);
}

static void *wait_for_it(void *memory)
{
    return gg_memory_wait(memory) ? memory : NULL;
}

/* Its native stream, which the other thread's wait polls, must not be destroyed by the clean-up
 * of other calls. */
static void a_wait_for_memory_keeps_the_closed_stream_that_used_it(void **state)
{
    struct fixture *f = *state;
    const struct timespec a_while = {.tv_nsec = 100000000};
    gg_stream *closed = NULL;
    pthread_t thread;
    void *failed = NULL;
    assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &closed), GG_OK);
    void *gate = hold(f, closed), *pointer = alloc_and_free(f, BLOCK, closed);
    assert_reuses(f, BLOCK, closed, pointer);
    gg_stream_release(closed);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, f->memories[f->memory_count - 1]),
                     0);
    nanosleep(&a_while, NULL); /* so that it polls less often */
    gate_open(gate);
    while (pthread_tryjoin_np(thread, &failed))
        assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_null(failed);
}

/* On other backends the driver itself waits before it frees. */
static void a_block_that_is_not_kept_is_freed_after_untracked_work_on_its_stream(void **state)
{
    struct fixture *f = *state;
    const size_t large = (size_t)257 << 20;
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (info.flags & GG_DEVICE_SHARED_DEFAULT)
        skip_because("the driver waits before it frees");
    void *gate = hold_unseen(f, f->stream);
    alloc_and_free(f, large, f->stream);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_true(figures(f).reserved_bytes >= large);
    gate_open(gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_true(figures(f).reserved_bytes < large);
}

/* ---- the first use ---- */

static void the_first_use_on_another_stream_waits_for_the_allocation(void **state)
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

static void no_stream_waits_for_a_new_block(void **state)
{
    struct fixture *f = *state;
    hold(f, f->stream);
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    keep(f, memory);
    assert_int_equal(fill_bytes(memory, 2, f->second), GG_OK);
    finish(f->second);
}

/* Which the release came before: it cannot use the block. */
static void the_first_use_on_another_stream_does_not_wait_for_later_work(void **state)
{
    struct fixture *f = *state;
    void *pointer, *gate;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    pointer = gg_memory_pointer(memory);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    gg_memory_release(memory);
    finish(f->stream);
    gate = hold(f, f->stream);
    assert_reuses(f, BLOCK, f->stream, pointer);
    memory = f->memories[f->memory_count - 1];
    assert_int_equal(fill_bytes(memory, 2, f->second), GG_OK);
    finish(f->second);
    gate_open(gate);
    assert_filled(f, memory, BLOCK, 2);
}

/* Through its raw address, which is not recorded. */
static void the_first_use_on_another_stream_waits_for_work_from_before_the_release(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, f->stream);
    gg_memory_release(memory);
    assert_reuses(f, BLOCK, f->stream, pointer);
    memory = f->memories[f->memory_count - 1];
    assert_int_equal(fill_bytes(memory, 2, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    finish(f->second);
}

/* The driver itself orders the first stream and the second, without an event on the second. */
static void a_third_stream_waits_for_the_first_stream_of_a_block(void **state)
{
    struct fixture *f = *state;
    struct gg_device_info info = {.struct_size = sizeof info};
    gg_stream *earlier = NULL, *later = NULL;
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (!(info.flags & GG_DEVICE_SHARED_DEFAULT))
        skip_because("the default stream is not shared");
    assert_int_equal(gg_device_default_stream(f->device, &earlier), GG_OK);
    assert_int_equal(gg_stream_create(f->device, 0, 0, &later), GG_OK);
    f->streams[f->stream_count++] = later;
    gg_memory *memory = alloc(f, BLOCK, earlier);
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, earlier);
    assert_int_equal(fill_bytes(memory, 7, earlier), GG_OK);
    gg_memory_release(memory);
    assert_reuses(f, BLOCK, later, pointer);
    memory = f->memories[f->memory_count - 1];
    assert_int_equal(fill_bytes(memory, 9, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    finish(f->second);
    assert_filled(f, memory, BLOCK, 9);
}

/* It may be destroyed before its block is allocated again, and then it can be neither polled nor
 * waited for. */
static void pending_work_of_a_borrowed_stream_without_an_owner_prevents_reuse(void **state)
{
    struct fixture *f = *state;
    struct gg_device_info info = {.struct_size = sizeof info};
    uint64_t handles[4] = {0};
    gg_stream *blocking = NULL, *earlier = NULL, *later = NULL;
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (!(info.flags & GG_DEVICE_SHARED_DEFAULT))
        skip_because("the default stream is not shared");
    assert_int_equal(gg_device_default_stream(f->device, &later), GG_OK);
    assert_int_equal(gg_stream_create(f->device, 0, 0, &blocking), GG_OK);
    f->streams[f->stream_count++] = blocking;
    assert_int_equal(gg_stream_native(blocking, handles), GG_OK);
    assert_int_equal(gg_stream_borrow(f->device, handles[0], NULL, NULL, &earlier), GG_OK);
    f->streams[f->stream_count++] = earlier;
    void *gate = hold(f, earlier), *pointer = alloc_and_free(f, BLOCK, earlier);
    assert_does_not_reuse(f, BLOCK, later, pointer);
    gate_open(gate);
    finish(earlier);
}

static void
a_block_that_its_second_stream_did_not_use_is_not_reused_before_the_first_is_done(void **state)
{
    struct fixture *f = *state;
    struct gg_device_info info = {.struct_size = sizeof info};
    gg_stream *earlier = NULL, *later = NULL;
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (!(info.flags & GG_DEVICE_SHARED_DEFAULT))
        skip_because("the default stream is not shared");
    assert_int_equal(gg_device_default_stream(f->device, &earlier), GG_OK);
    assert_int_equal(gg_stream_create(f->device, 0, 0, &later), GG_OK);
    f->streams[f->stream_count++] = later;
    finish(earlier);
    void *gate = hold_unseen(f, earlier), *pointer = alloc_and_free(f, BLOCK, earlier);
    assert_ptr_equal(alloc_and_free(f, BLOCK, later), pointer);
    assert_does_not_reuse(f, BLOCK, f->second, pointer);
    gate_open(gate);
}

/* ---- unknown streams ---- */

static void memory_that_unknown_streams_use_waits_for_the_whole_device(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, f->second);
    assert_int_equal(gg_memory_record_use(memory, NULL), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(figures(f).retired_blocks, 1);
    for (int i = 0; i < 8; i++) /* each passes the retired blocks */
        assert_does_not_reuse(f, BLOCK, f->stream, pointer);
    gate_open(gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(figures(f).retired_blocks, 0);
    assert_reuses(f, BLOCK, f->stream, pointer);
}

/* Without a call that synchronizes the device: that could invalidate a capture. */
static void memory_that_unknown_streams_used_is_reused_before_memory_runs_out(void **state)
{
    struct fixture *f = *state;
    const uint64_t limit = figures(f).reserved_bytes + 4 * BLOCK;
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, limit), GG_OK);
    gg_status status = GG_OK;
    for (int i = 0; i < 40 && !status; i++) {
        gg_memory *memory = NULL; /* also blocks of slabs */
        status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, i % 4 ? BLOCK : BLOCK / 4, f->stream,
                                 &memory);
        if (!status)
            status = gg_memory_record_use(memory, NULL);
        gg_memory_release(memory);
    }
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
    assert_int_equal(status, GG_OK);
}

static void memory_shared_with_its_stream_is_reused_there_at_once(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, f->stream);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gg_memory_share(memory, f->stream), GG_OK);
    gg_memory_release(memory);
    assert_reuses(f, BLOCK, f->stream, pointer);
    gate_open(gate);
}

/* The other library queues its work after the export. */
static void assert_release_waits_for_second(struct fixture *f, gg_memory *memory)
{
    void *pointer = gg_memory_pointer(memory), *gate = hold_unseen(f, f->second);
    gg_memory_release(memory);
    for (int i = 0; i < 8; i++) /* each passes the retired blocks */
        assert_does_not_reuse(f, BLOCK, f->stream, pointer);
    gate_open(gate);
    finish(f->second);
    assert_reuses(f, BLOCK, f->stream, pointer);
}

static void memory_shared_with_another_stream_waits_for_its_work_at_the_release(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    finish(f->second);
    assert_int_equal(gg_memory_share(memory, f->second), GG_OK);
    assert_release_waits_for_second(f, memory);
}

/* As a consumer of DLPack passes it. */
static void memory_shared_with_the_handle_of_a_known_stream_waits_for_that_stream(void **state)
{
    struct fixture *f = *state;
    uint64_t handles[4];
    gg_stream *same = NULL;
    need(f, GG_OP_stream_native);
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    finish(f->second);
    assert_int_equal(gg_stream_native(f->second, handles), GG_OK);
    if (gg_stream_borrow(f->device, handles[0], NULL, NULL, &same))
        skip_because("the backend borrows no streams");
    assert_int_equal(gg_memory_share(memory, same), GG_OK);
    gg_stream_release(same);
    assert_release_waits_for_second(f, memory);
}

static void memory_may_be_shared_with_more_streams_than_are_recorded(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    for (int i = 0; i < 4; i++)
        assert_int_equal(gg_memory_share(memory, new_stream(f)), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(figures(f).retired_blocks, 1);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(figures(f).retired_blocks, 0);
}

/* ---- the driver ---- */

static void a_size_that_fits_the_limit_is_allocated_although_its_size_class_does_not_fit(void **state)
{
    struct fixture *f = *state;
    const size_t nbytes = ((size_t)8 << 20) + 4096;
    const size_t limit = figures(f).reserved_bytes + nbytes + 4096;
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, limit), GG_OK);
    gg_memory *memory = NULL;
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, f->stream, &memory);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
    assert_int_equal(status, GG_OK);
    keep(f, memory);
    assert_int_equal(fill_bytes(memory, 3, f->stream), GG_OK);
    assert_filled(f, memory, nbytes, 3);
}

static void an_allocation_that_the_driver_refused_does_not_count_as_reserved(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory;
    const size_t nbytes = (size_t)1 << 60;
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, f->stream, &memory),
                     GG_ERR_OUT_OF_MEMORY);
    assert_true(figures(f).reserved_peak < nbytes);
}

/* ---- pinned memory ---- */

static void pinned_memory_is_reused_when_no_stream_uses_it(void **state)
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

static void a_free_pinned_block_is_not_taken_for_pinned_memory_in_use(void **state)
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_released_block_is_reused_on_its_stream_at_once),
    cmocka_unit_test(reusing_a_block_makes_no_driver_call),
    cmocka_unit_test(try_alloc_succeeds_only_without_a_driver_call),
    cmocka_unit_test(a_block_that_another_stream_still_uses_is_not_reused),
    cmocka_unit_test(blocks_of_a_busy_stream_are_not_reused_on_another),
    cmocka_unit_test(blocks_of_a_closed_stream_are_reused_after_its_work),
    cmocka_unit_test(a_block_may_outlive_the_stream_it_was_allocated_for),
    cmocka_unit_test(the_first_use_on_another_stream_waits_for_the_allocation),
    cmocka_unit_test(the_first_use_on_another_stream_does_not_wait_for_later_work),
    cmocka_unit_test(the_first_use_on_another_stream_waits_for_work_from_before_the_release),
    cmocka_unit_test(no_stream_waits_for_a_new_block),
    cmocka_unit_test(memory_that_unknown_streams_use_waits_for_the_whole_device),
    cmocka_unit_test(memory_that_unknown_streams_used_is_reused_before_memory_runs_out),
    cmocka_unit_test(memory_shared_with_its_stream_is_reused_there_at_once),
    cmocka_unit_test(memory_shared_with_another_stream_waits_for_its_work_at_the_release),
    cmocka_unit_test(memory_shared_with_the_handle_of_a_known_stream_waits_for_that_stream),
    cmocka_unit_test(memory_may_be_shared_with_more_streams_than_are_recorded),
    cmocka_unit_test(pinned_memory_is_reused_when_no_stream_uses_it),
    cmocka_unit_test(a_free_pinned_block_is_not_taken_for_pinned_memory_in_use),
    cmocka_unit_test(a_third_stream_waits_for_the_first_stream_of_a_block),
    cmocka_unit_test(pending_work_of_a_borrowed_stream_without_an_owner_prevents_reuse),
    cmocka_unit_test(a_wait_for_memory_keeps_the_closed_stream_that_used_it),
    cmocka_unit_test(a_block_that_is_not_kept_is_freed_after_untracked_work_on_its_stream),
    cmocka_unit_test(
        a_block_that_its_second_stream_did_not_use_is_not_reused_before_the_first_is_done),
    cmocka_unit_test(a_size_that_fits_the_limit_is_allocated_although_its_size_class_does_not_fit),
    cmocka_unit_test(an_allocation_that_the_driver_refused_does_not_count_as_reserved),
};
SUITE(pool, tests);
