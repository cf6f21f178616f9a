/* test_pool_pieces.c: larger free blocks are split, and their pieces merged again; growth frees idle blocks first. */
#include "pool_blocks.h"

#include <string.h>

#define MIB ((size_t)1 << 20)
#define WHOLE (16 * MIB)
#define PART (6 * MIB)

/* The address of a free block of @p nbytes, of which pieces will be allocated. Skips where blocks are not split. */
static char *free_block(struct fixture *f, size_t nbytes, gg_stream *stream)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (info.flags & GG_DEVICE_FREE_NEVER_WAITS)
        skip_because("the driver's free never waits, so that blocks are not split");
    return alloc_and_free(f, nbytes, stream);
}

static bool is_within(const gg_memory *memory, const char *block, size_t nbytes)
{
    const char *pointer = gg_memory_pointer(memory);
    return pointer >= block && pointer < block + nbytes;
}

static void a_larger_free_block_serves_smaller_requests_without_a_driver_call(void **state)
{
    struct fixture *f = *state;
    char *block = free_block(f, WHOLE, f->stream);
    const uint64_t calls = figures(f).driver_calls;
    assert_reuses(f, PART, f->stream, block);
    assert_reuses(f, PART, f->stream, block + PART);
    assert_reuses(f, WHOLE - 2 * PART, f->stream, block + 2 * PART);
    assert_int_equal(figures(f).driver_calls, calls);
    assert_int_equal(figures(f).cached_blocks, 0);
}

static void pieces_that_are_free_again_are_one_block(void **state)
{
    struct fixture *f = *state;
    for (int order = 0; order < 2; order++) {
        char *block = free_block(f, WHOLE, f->stream);
        gg_memory *parts[2] = {alloc(f, PART, f->stream), alloc(f, PART, f->stream)};
        assert_true(is_within(parts[1], block, WHOLE));
        gg_memory_release(parts[order]);
        gg_memory_release(parts[1 - order]);
        assert_int_equal(figures(f).cached_blocks, 1);
        assert_ptr_equal(alloc_and_free(f, WHOLE, f->stream), block);
    }
}

static void assert_waits_on(struct fixture *f, gg_memory *memory, gg_stream *stream)
{
    keep(f, memory);
    assert_int_equal(fill_bytes(memory, 1, stream), GG_OK);
    assert_waits(stream);
}

static void each_piece_of_a_block_waits_for_the_work_that_may_use_the_block(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        char *block = free_block(f, WHOLE, f->stream);
        gg_memory *memory = alloc(f, WHOLE, f->stream);
        void *gate = hold(f, f->stream);
        gg_memory_release(memory);
        gg_memory *parts[2] = {alloc(f, PART, f->stream), alloc(f, PART, f->stream)};
        assert_true(is_within(parts[i], block, WHOLE));
        assert_waits_on(f, parts[i], f->second);
        gate_open(gate);
        finish(f->second);
        gg_memory_release(f->memories[--f->memory_count]);
        gg_memory_release(parts[1 - i]);
        finish(f->stream);
        assert_int_equal(gg_device_trim(f->device), GG_OK);
    }
}

static void a_merged_block_waits_for_the_work_that_may_use_any_of_its_pieces(void **state)
{
    struct fixture *f = *state;
    for (int first = 0; first < 2; first++) {
        char *block = free_block(f, WHOLE, f->stream);
        gg_memory *parts[2] = {alloc(f, PART, f->stream), alloc(f, WHOLE - PART, f->stream)};
        gg_memory_release(parts[first]);
        finish(f->stream);
        void *gate = hold(f, f->stream);
        gg_memory_release(parts[1 - first]);
        gg_memory *whole = alloc(f, WHOLE, f->stream);
        assert_ptr_equal(gg_memory_pointer(whole), block);
        assert_waits_on(f, whole, f->second);
        gate_open(gate);
        finish(f->second);
        gg_memory_release(f->memories[--f->memory_count]);
        finish(f->stream);
        assert_int_equal(gg_device_trim(f->device), GG_OK);
    }
}

static void a_trim_frees_a_block_once_all_of_its_pieces_are_free(void **state)
{
    struct fixture *f = *state;
    const uint64_t held = figures(f).reserved_bytes;
    char *block = free_block(f, WHOLE, f->stream);
    gg_memory *part = alloc(f, PART, f->stream);
    assert_true(is_within(part, block, WHOLE));
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(figures(f).reserved_bytes, held + WHOLE);
    assert_int_equal(fill_bytes(part, 5, f->stream), GG_OK);
    assert_filled(f, part, PART, 5);
    gg_memory_release(part);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(figures(f).reserved_bytes, 0);
}

static void pieces_of_several_streams_are_merged_when_these_are_idle(void **state)
{
    struct fixture *f = *state;
    char *block = free_block(f, WHOLE, f->stream);
    gg_memory *first = alloc(f, PART, f->stream), *second = NULL;
    finish(f->stream);
    second = alloc(f, PART, f->second); /* of the idle stream's rest */
    assert_true(is_within(second, block, WHOLE));
    gg_memory_release(first);
    gg_memory_release(second);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(figures(f).reserved_bytes, 0);
}

static void pieces_released_after_their_streams_were_destroyed_are_merged(void **state)
{
    struct fixture *f = *state;
    char *block = free_block(f, WHOLE, f->stream);
    gg_memory *parts[2];
    finish(f->stream);
    for (int i = 0; i < 2; i++) {
        gg_stream *stream = NULL;
        assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &stream), GG_OK);
        parts[i] = alloc(f, PART, stream);
        assert_true(is_within(parts[i], block, WHOLE));
        gg_stream_release(stream);
    }
    assert_int_equal(gg_device_trim(f->device), GG_OK); /* which also destroys the streams */
    gg_memory_release(parts[0]);
    gg_memory_release(parts[1]);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(figures(f).cached_bytes, 0);
    assert_int_equal(figures(f).reserved_bytes, 0);
}

static void a_piece_of_a_busy_streams_block_is_not_allocated_on_another(void **state)
{
    struct fixture *f = *state;
    char *block = free_block(f, WHOLE, f->stream);
    gg_memory *part = alloc(f, PART, f->stream);
    assert_true(is_within(part, block, WHOLE));
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(part, 1, f->stream), GG_OK);
    for (int i = 0; i < 4; i++) {
        gg_memory *other = alloc(f, PART, f->second);
        keep(f, other);
        assert_false(is_within(other, block, WHOLE));
        if (!i)
            gg_memory_release(part);
    }
    gate_open(gate);
}

static void a_piece_is_not_merged_with_that_of_another_busy_stream(void **state)
{
    struct fixture *f = *state;
    char *block = free_block(f, WHOLE, f->stream);
    gg_memory *first = alloc(f, PART, f->stream);
    finish(f->stream);
    gg_memory *second = alloc(f, PART, f->second);
    assert_true(is_within(second, block, WHOLE));
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(first, 1, f->stream), GG_OK);
    gg_memory_release(first);
    gg_memory_release(second);
    for (int i = 0; i < 2; i++) {
        gg_memory *memory = alloc(f, WHOLE - PART, f->second);
        keep(f, memory);
        assert_false(is_within(memory, block, PART));
    }
    gate_open(gate);
}

static void a_piece_merged_with_an_idle_one_belongs_to_its_stream(void **state)
{
    struct fixture *f = *state;
    char *block = free_block(f, WHOLE, f->stream);
    gg_memory *left = alloc(f, PART, f->stream), *right = alloc(f, PART, f->stream);
    assert_true(is_within(right, block, WHOLE));
    gg_memory_release(left);
    finish(f->stream);
    assert_int_equal(gg_pool_trim(f->device, GG_MEMORY_DEVICE, UINT64_MAX), GG_OK); /* left is idle */
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(right, 1, f->stream), GG_OK);
    gg_memory_release(right);
    assert_does_not_reuse(f, WHOLE, f->second, block);
    gate_open(gate);
}

/* The handle of the right piece, which recorded that work, is gone. */
static void
the_first_use_of_a_merged_block_on_another_stream_waits_for_the_work_on_its_pieces(void **state)
{
    struct fixture *f = *state;
    char *block = free_block(f, WHOLE, f->stream);
    gg_memory *left = alloc(f, PART, f->stream), *right = alloc(f, PART, f->stream);
    assert_true(is_within(right, block, WHOLE));
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(right, 1, f->stream), GG_OK);
    gg_memory_release(left);
    gg_memory_release(right);
    gg_memory *merged = alloc(f, WHOLE, f->stream);
    keep(f, merged);
    assert_ptr_equal(gg_memory_pointer(merged), block);
    assert_int_equal(fill_bytes(merged, 2, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    finish(f->second);
    assert_filled(f, merged, WHOLE, 2);
}

static void a_piece_that_another_stream_still_uses_is_not_merged(void **state)
{
    struct fixture *f = *state;
    char *block = free_block(f, WHOLE, f->stream);
    gg_memory *part = alloc(f, PART, f->stream);
    void *gate = hold(f, f->second);
    assert_int_equal(fill_bytes(part, 1, f->second), GG_OK);
    gg_memory_release(part);
    assert_int_equal(figures(f).retired_blocks, 1);
    assert_does_not_reuse(f, WHOLE, f->stream, block);
    gate_open(gate);
    finish(f->second);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_reuses(f, WHOLE, f->stream, block);
}

static void a_small_request_does_not_split_a_huge_block(void **state)
{
    struct fixture *f = *state;
    char *block = free_block(f, 128 * MIB, f->stream);
    gg_memory *memory = alloc(f, MIB + MIB / 2, f->stream);
    keep(f, memory);
    assert_false(is_within(memory, block, 128 * MIB));
}

static void a_small_rest_is_not_split_off(void **state)
{
    struct fixture *f = *state;
    char *block = free_block(f, WHOLE, f->stream);
    assert_reuses(f, WHOLE - MIB / 2, f->stream, block);
    assert_int_equal(figures(f).cached_blocks, 0);
}

static void many_pieces_do_not_overlap(void **state)
{
    struct fixture *f = *state;
    gg_memory *memories[48];
    free_block(f, WHOLE, f->stream);
    for (size_t i = 0; i < 48; i++) { /* on both sides of the largest block of a slab */
        memories[i] = alloc(f, (size_t)(60 + i) << 10, f->stream);
        const char *begin = gg_memory_pointer(memories[i]);
        for (size_t j = 0; j < i; j++)
            assert_true(!is_within(memories[j], begin, gg_memory_size(memories[i])) &&
                        !is_within(memories[i], gg_memory_pointer(memories[j]),
                                   gg_memory_size(memories[j])));
    }
    for (size_t i = 0; i < 48; i++)
        gg_memory_release(memories[i]);
}

static void the_driver_reports_the_whole_block_of_a_piece(void **state)
{
    struct fixture *f = *state;
    struct gg_pointer_info info = {.struct_size = sizeof info};
    gg_device *owner = NULL;
    need(f, GG_OP_pointer_info);
    char *block = free_block(f, WHOLE, f->stream);
    keep(f, alloc(f, PART, f->stream));
    keep(f, alloc(f, PART, f->stream));
    const gg_memory *second = f->memories[f->memory_count - 1];
    assert_ptr_equal(gg_memory_pointer(second), block + PART);
    assert_int_equal(gg_pointer_query(block + PART, &owner, &info), GG_OK);
    assert_ptr_equal(owner, f->device);
    if (info.base)
        assert_ptr_equal(info.base, block);
}

static void a_handle_of_a_piece_names_its_place_in_the_whole_block(void **state)
{
    struct fixture *f = *state;
    struct gg_ipc_handle handle = {.struct_size = sizeof handle};
    need(f, GG_OP_ipc_export);
    char *block = free_block(f, WHOLE, f->stream);
    keep(f, alloc(f, PART, f->stream));
    gg_memory *second = alloc(f, PART, f->stream);
    keep(f, second);
    assert_ptr_equal(gg_memory_pointer(second), block + PART);
    gg_status status = gg_ipc_export(second, &handle);
    if (status == GG_ERR_UNSUPPORTED)
        skip_because("%s", last_error().message);
    assert_int_equal(status, GG_OK);
    assert_int_equal(handle.offset, PART);
    assert_int_equal(handle.nbytes, PART);
    assert_int_equal(handle.block, WHOLE);
}

/* ---- growth ---- */

#define STEPS 12u

/* Each block is too small for the next request. */
static void alloc_growing_blocks(struct fixture *f)
{
    for (size_t i = 1; i <= STEPS; i++)
        alloc_and_free(f, (16 + 4 * i) * MIB, f->stream);
}

static void idle_blocks_are_freed_before_the_pool_holds_much_more_than_was_in_use(void **state)
{
    struct fixture *f = *state;
    finish(f->stream);
    finish(f->second);
    alloc_growing_blocks(f);
    const size_t largest = (16 + 4 * STEPS) * MIB;
    assert_true(figures(f).reserved_bytes <= largest + largest / 8 + 32 * MIB);
}

/* It would have to wait: the driver's free may wait for the device. */
static void beside_a_busy_stream_the_pool_grows_without_a_wait(void **state)
{
    struct fixture *f = *state;
    void *gate = hold(f, f->second);
    free_block(f, PART, f->stream);
    alloc_growing_blocks(f);
    assert_true(busy(f->second));
    assert_true(figures(f).reserved_bytes > STEPS * 16 * MIB);
    gate_open(gate);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_larger_free_block_serves_smaller_requests_without_a_driver_call),
    cmocka_unit_test(pieces_that_are_free_again_are_one_block),
    cmocka_unit_test(each_piece_of_a_block_waits_for_the_work_that_may_use_the_block),
    cmocka_unit_test(a_merged_block_waits_for_the_work_that_may_use_any_of_its_pieces),
    cmocka_unit_test(a_trim_frees_a_block_once_all_of_its_pieces_are_free),
    cmocka_unit_test(pieces_of_several_streams_are_merged_when_these_are_idle),
    cmocka_unit_test(pieces_released_after_their_streams_were_destroyed_are_merged),
    cmocka_unit_test(a_piece_of_a_busy_streams_block_is_not_allocated_on_another),
    cmocka_unit_test(a_piece_is_not_merged_with_that_of_another_busy_stream),
    cmocka_unit_test(a_piece_merged_with_an_idle_one_belongs_to_its_stream),
    cmocka_unit_test(
        the_first_use_of_a_merged_block_on_another_stream_waits_for_the_work_on_its_pieces),
    cmocka_unit_test(a_piece_that_another_stream_still_uses_is_not_merged),
    cmocka_unit_test(a_small_request_does_not_split_a_huge_block),
    cmocka_unit_test(a_small_rest_is_not_split_off),
    cmocka_unit_test(many_pieces_do_not_overlap),
    cmocka_unit_test(the_driver_reports_the_whole_block_of_a_piece),
    cmocka_unit_test(a_handle_of_a_piece_names_its_place_in_the_whole_block),
    cmocka_unit_test(idle_blocks_are_freed_before_the_pool_holds_much_more_than_was_in_use),
    cmocka_unit_test(beside_a_busy_stream_the_pool_grows_without_a_wait),
};
SUITE(pool_pieces, tests);
