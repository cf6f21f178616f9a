/* test_pool.c: memory that is given out again: to whom, when, and how much of it is kept. */
#include "conformance.h"

#include <stdio.h>

#define BLOCK ((size_t)3 << 20) /* too large for a slab, small enough for a list */

static struct gg_pool_stats figures_of(gg_device *device, enum gg_memory_kind kind)
{
    struct gg_pool_stats figures = {.struct_size = sizeof figures};
    assert_int_equal(gg_pool_stats(device, kind, &figures), GG_OK);
    return figures;
}

static struct gg_pool_stats figures(struct fixture *f)
{
    return figures_of(f->device, GG_MEMORY_DEVICE);
}

static gg_memory *alloc(struct fixture *f, size_t nbytes, gg_stream *stream)
{
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, stream, &memory), GG_OK);
    return memory;
}

static gg_memory *alloc_pinned(struct fixture *f, size_t nbytes)
{
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_PINNED, nbytes, NULL, &memory), GG_OK);
    return memory;
}

/* Give one out and back; its address, to be recognised by. */
static void *come_and_go(struct fixture *f, size_t nbytes, gg_stream *stream)
{
    gg_memory *memory = alloc(f, nbytes, stream);
    void *pointer = gg_memory_pointer(memory);
    gg_memory_release(memory);
    return pointer;
}

static void keep(struct fixture *f, gg_memory *memory) /* until the end of the test */
{
    assert_true(f->memory_count < OWNED_ROOM);
    f->memories[f->memory_count++] = memory;
}

static void assert_comes(struct fixture *f, size_t nbytes, gg_stream *stream, const void *pointer)
{
    gg_memory *memory = alloc(f, nbytes, stream);
    keep(f, memory);
    assert_ptr_equal(gg_memory_pointer(memory), pointer);
}

static void assert_does_not_come(struct fixture *f, size_t nbytes, gg_stream *stream,
                                 const void *pointer)
{
    gg_memory *memory = alloc(f, nbytes, stream);
    keep(f, memory);
    assert_ptr_not_equal(gg_memory_pointer(memory), pointer);
}

/* A simulated driver says "not ready" a few times in any case. */
static void assert_waits(gg_stream *stream)
{
    for (int i = 0; i < 2000; i++)
        assert_true(busy(stream));
}

/* Hold a stream by its native handle, as other libraries queue work that gpuglue does not know. */
static void *hold_unseen(struct fixture *f, gg_stream *stream)
{
    uint64_t handles[4] = {0};
    gg_stream *borrowed = NULL;
    need(f, GG_OP_stream_native);
    need(f, GG_OP_stream_borrow);
    assert_int_equal(gg_stream_native(stream, handles), GG_OK);
    assert_int_equal(gg_stream_borrow(f->device, handles[0], NULL, NULL, &borrowed), GG_OK);
    assert_true(f->stream_count < OWNED_ROOM);
    f->streams[f->stream_count++] = borrowed;
    return hold(f, borrowed);
}

static const size_t sizes[] = {1, 255, 256, 257, 4096, 70001, (size_t)1 << 20, BLOCK};
#define SIZES (sizeof sizes / sizeof sizes[0])

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

/* ---- how much is kept ---- */

static void a_trim_gives_everything_back(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < SIZES; i++)
        come_and_go(f, sizes[i], f->stream);
    gg_memory_release(alloc_pinned(f, 5000));
    assert_true(figures(f).cached_blocks >= 2);
    assert_int_equal(gg_trim(), GG_OK);
    assert_int_equal(figures(f).held_bytes, 0);
    assert_int_equal(figures(f).cached_bytes, 0);
    assert_int_equal(figures_of(f->device, GG_MEMORY_PINNED).held_bytes, 0);
}

static void a_trim_keeps_what_it_is_told_and_what_is_used(void **state)
{
    struct fixture *f = *state;
    gg_memory *used = alloc(f, 100, f->stream);
    keep(f, used);
    for (size_t i = 1; i <= 4; i++)
        come_and_go(f, i * BLOCK, f->stream);
    assert_int_equal(gg_pool_trim(f->device, GG_MEMORY_DEVICE, 7 * BLOCK), GG_OK);
    assert_true(figures(f).cached_bytes <= 7 * BLOCK && figures(f).cached_bytes >= 3 * BLOCK);
    assert_int_equal(gg_pool_trim(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
    assert_int_equal(figures(f).cached_bytes, 0);
    assert_int_equal(fill_bytes(used, 3, f->stream), GG_OK);
    assert_filled(f, used, 100, 3);
}

static void a_trim_while_work_runs_waits_for_nothing(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    keep(f, memory);
    come_and_go(f, BLOCK, f->second);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 9, f->stream), GG_OK);
    assert_int_equal(gg_trim(), GG_OK);
    assert_true(busy(f->stream));
    gate_open(gate);
    assert_filled(f, memory, BLOCK, 9);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(figures(f).cached_blocks + figures(f).retired_blocks, 0);
}

static void blocks_above_256_mib_are_not_kept(void **state)
{
    struct fixture *f = *state;
    uint64_t held = figures(f).held_bytes;
    gg_memory *memory = NULL;
    if (gg_memory_alloc(f->device, GG_MEMORY_DEVICE, ((size_t)256 << 20) + 1, f->stream, &memory))
        skip(); /* not so much memory */
    gg_memory_release(memory);
    assert_int_equal(figures(f).cached_blocks, 0);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(figures(f).held_bytes, held);
}

static void no_more_is_kept_than_the_pool_may_keep(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(gg_pool_set_keep(f->device, GG_MEMORY_DEVICE, 4 * BLOCK), GG_OK);
    for (size_t i = 1; i <= 4; i++)
        come_and_go(f, i * BLOCK, f->stream);
    finish(f->stream); /* a wait comes by the retired objects */
    uint64_t cached = figures(f).cached_bytes;
    assert_int_equal(gg_pool_set_keep(f->device, GG_MEMORY_DEVICE, UINT64_MAX), GG_OK);
    assert_true(cached <= 4 * BLOCK);
}

/* ---- limits ---- */

static void end_of_limit(struct fixture *f)
{
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
}

static void an_allocation_beyond_the_limit_is_out_of_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 8 * BLOCK), GG_OK);
    gg_status first = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 6 * BLOCK, f->stream, &memory);
    gg_memory *second = NULL;
    gg_status refused = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 6 * BLOCK, f->stream, &second);
    struct gg_error error = last_error();
    gg_memory_release(memory);
    gg_status again = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 5 * BLOCK, f->second, &second);
    if (!again)
        keep(f, second);
    end_of_limit(f);
    assert_int_equal(first, GG_OK);
    assert_int_equal(refused, GG_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(error.message, "limit is 25165824"));
    assert_non_null(strstr(error.message, "18874368 bytes in 1 blocks are in use"));
    assert_int_equal(again, GG_OK); /* what was free, and of another size, went back */
}

static void a_limit_below_what_is_used_is_refused(void **state)
{
    struct fixture *f = *state;
    keep(f, alloc(f, BLOCK, f->stream));
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, BLOCK - 1),
                     GG_ERR_INVALID_ARGUMENT);
    assert_message_has("3145727");
    assert_message_has("in use");
    assert_int_equal(figures(f).limit, 0);
}

/* Where there is no more memory a busy stream's block is taken, by a stream that waits for it. */
static void at_the_limit_a_busy_streams_block_is_waited_for_on_the_device(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream), *next = NULL;
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, figures(f).held_bytes), GG_OK);
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->second, &next);
    end_of_limit(f);
    assert_int_equal(status, GG_OK);
    keep(f, next);
    assert_ptr_equal(gg_memory_pointer(next), pointer);
    assert_int_equal(fill_bytes(next, 2, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    assert_filled(f, next, BLOCK, 2);
}

static void at_the_limit_a_block_with_several_users_is_waited_for_on_the_device(void **state)
{
    struct fixture *f = *state;
    gg_stream *third = new_stream(f);
    gg_memory *memory = alloc(f, BLOCK, f->stream), *next = NULL;
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, third);
    assert_int_equal(fill_bytes(memory, 1, third), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, figures(f).held_bytes), GG_OK);
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->second, &next);
    end_of_limit(f);
    assert_int_equal(status, GG_OK);
    keep(f, next);
    assert_ptr_equal(gg_memory_pointer(next), pointer);
    assert_int_equal(fill_bytes(next, 2, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    assert_filled(f, next, BLOCK, 2);
}

/* ---- bad input ---- */

static void other_kinds_have_no_pool(void **state)
{
    struct fixture *f = *state;
    struct gg_pool_stats stats = {.struct_size = sizeof stats};
    assert_int_equal(gg_pool_stats(f->device, GG_MEMORY_HOST, &stats), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_pool_trim(f->device, GG_MEMORY_MANAGED, 0), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_pool_set_limit(f->device, (enum gg_memory_kind)9, 1),
                     GG_ERR_INVALID_ARGUMENT);
    stats.struct_size = 8;
    assert_int_equal(gg_pool_stats(f->device, GG_MEMORY_DEVICE, &stats), GG_ERR_INVALID_ARGUMENT);
}

/* ---- GPUGLUE_ALLOCATOR ---- */

static int keep_nothing(void)
{
    gg_device *device;
    gg_memory *memory = NULL;
    struct gg_pool_stats figures = {.struct_size = sizeof figures};
    if (gg_device_get(NULL, 0, &device))
        return 1;
    for (int i = 0; i < 10; i++) {
        if (gg_memory_alloc(device, GG_MEMORY_DEVICE, 100, NULL, &memory))
            return 2;
        gg_memory_release(memory);
    }
    if (gg_device_synchronize(device) || gg_pool_stats(device, GG_MEMORY_DEVICE, &figures))
        return 3;
    return figures.driver_calls == 20 && !figures.held_bytes ? 0 : 4;
}

static void the_direct_allocator_keeps_nothing(void **state)
{
    char output[256];
    (void)state;
    assert_int_equal(
        start_scenario("keep_nothing", "GPUGLUE_ALLOCATOR", "direct", output, sizeof output), 0);
}

static const struct scenario scenarios[] = {{"keep_nothing", keep_nothing}};

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
        cmocka_unit_test(a_trim_gives_everything_back),
        cmocka_unit_test(a_trim_keeps_what_it_is_told_and_what_is_used),
        cmocka_unit_test(a_trim_while_work_runs_waits_for_nothing),
        cmocka_unit_test(blocks_above_256_mib_are_not_kept),
        cmocka_unit_test(no_more_is_kept_than_the_pool_may_keep),
        cmocka_unit_test(an_allocation_beyond_the_limit_is_out_of_memory),
        cmocka_unit_test(a_limit_below_what_is_used_is_refused),
        cmocka_unit_test(at_the_limit_a_busy_streams_block_is_waited_for_on_the_device),
        cmocka_unit_test(at_the_limit_a_block_with_several_users_is_waited_for_on_the_device),
        cmocka_unit_test(other_kinds_have_no_pool),
        cmocka_unit_test(the_direct_allocator_keeps_nothing),
    };
    int scenario = run_scenario(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
    if (scenario >= 0)
        return scenario;
    return run_suite(argc, argv, "pool", tests, sizeof tests / sizeof tests[0]);
}
