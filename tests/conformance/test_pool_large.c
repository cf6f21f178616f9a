/* test_pool_large.c: free blocks of more than 256 MiB, which have no fixed size. */
#include "pool_blocks.h"

#include <stdlib.h>

#define LARGE ((size_t)300 << 20) /* of the size class from 288 to 320 MiB */

static struct gg_device_info info_of(struct fixture *f)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    return info;
}

/* The bytes of free large blocks that the pool keeps. Skips where they are fewer than @p wanted, or so much is not free. */
static uint64_t need_large(struct fixture *f, size_t wanted)
{
    const struct gg_device_info info = info_of(f);
    gg_memory *memory = NULL;
    if (info.flags & GG_DEVICE_FREE_NEVER_WAITS)
        skip_because("the driver's free never waits, so that large blocks are not kept");
    if (info.total_memory / 8 < wanted)
        skip_because("an eighth of the device's memory is too small");
    if (gg_memory_alloc(f->device, GG_MEMORY_DEVICE, wanted, f->stream, &memory))
        skip_because("the device has no large block free");
    gg_memory_release(memory);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    return info.total_memory / 8;
}

static void a_large_block_is_reused_without_a_driver_call(void **state)
{
    struct fixture *f = *state;
    need_large(f, LARGE);
    const void *pointer = alloc_and_free(f, LARGE, f->stream);
    const uint64_t calls = figures(f).driver_calls;
    assert_reuses(f, LARGE - ((size_t)3 << 20), f->stream, pointer);
    assert_int_equal(figures(f).driver_calls, calls);
}

static void a_large_block_takes_no_more_than_2_mib_beyond_its_size(void **state)
{
    struct fixture *f = *state;
    need_large(f, LARGE);
    const uint64_t held = figures(f).reserved_bytes;
    gg_memory *memory = alloc(f, LARGE + 1, f->stream);
    const uint64_t taken = figures(f).reserved_bytes - held;
    gg_memory_release(memory);
    assert_true(taken > LARGE && taken <= LARGE + ((size_t)2 << 20));
}

static void of_the_large_blocks_of_a_class_the_smallest_that_suffices_is_reused(void **state)
{
    struct fixture *f = *state;
    const size_t sizes[] = {LARGE, LARGE + ((size_t)16 << 20), LARGE + ((size_t)8 << 20)};
    gg_memory *memories[3];
    const void *pointers[3];
    need_large(f, 4 * LARGE);
    for (int i = 0; i < 3; i++)
        pointers[i] = gg_memory_pointer(memories[i] = alloc(f, sizes[i], f->stream));
    for (int i = 0; i < 3; i++)
        gg_memory_release(memories[i]);
    assert_reuses(f, LARGE + ((size_t)4 << 20), f->stream, pointers[2]);
    assert_reuses(f, LARGE, f->stream, pointers[0]);
    assert_reuses(f, LARGE, f->stream, pointers[1]);
    assert_int_equal(figures(f).cached_blocks, 0);
}

static void a_large_block_that_is_too_small_is_not_reused(void **state)
{
    struct fixture *f = *state;
    const size_t more = LARGE + ((size_t)10 << 20);
    need_large(f, 4 * LARGE);
    alloc_and_free(f, LARGE, f->stream);
    gg_memory *memory = alloc(f, more, f->stream);
    keep(f, memory);
    assert_int_equal(figures(f).cached_blocks, 1);
}

/* Releases a large block that a busy stream uses, and allocates @p nbytes where a second block would exceed the limit. */
static gg_status alloc_beside_a_busy_block(struct fixture *f, size_t nbytes, gg_memory **out,
                                           const void **busy_block)
{
    need(f, GG_OP_stream_host_func);
    need_large(f, 2 * LARGE);
    gg_memory *memory = alloc(f, LARGE, f->stream);
    *busy_block = gg_memory_pointer(memory);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_fill(memory, 0, "x", 1, 64, f->stream), GG_OK);
    gg_memory_release(memory);
    const uint64_t limit = figures(f).reserved_bytes + LARGE / 2;
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, limit), GG_OK);
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, f->second, out);
    gate_open(gate);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
    return status;
}

static void at_the_limit_a_busy_large_block_serves_a_smaller_request_of_its_class(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    const void *busy_block;
    assert_int_equal(alloc_beside_a_busy_block(f, LARGE - ((size_t)4 << 20), &memory, &busy_block),
                     GG_OK);
    keep(f, memory);
    assert_ptr_equal(gg_memory_pointer(memory), busy_block);
}

static void at_the_limit_a_busy_large_block_serves_no_larger_request(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    const void *busy_block;
    assert_int_equal(alloc_beside_a_busy_block(f, LARGE + ((size_t)4 << 20), &memory, &busy_block),
                     GG_ERR_OUT_OF_MEMORY);
}

static void at_the_limit_a_large_block_that_another_stream_uses_serves_no_larger_request(void **state)
{
    struct fixture *f = *state;
    gg_memory *next = NULL;
    need(f, GG_OP_stream_host_func);
    need_large(f, 2 * LARGE);
    gg_memory *memory = alloc(f, LARGE, f->stream);
    void *gate = hold(f, f->second);
    assert_int_equal(gg_fill(memory, 0, "x", 1, 64, f->second), GG_OK);
    gg_memory_release(memory);
    const uint64_t limit = figures(f).reserved_bytes + LARGE / 2;
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, limit), GG_OK);
    gg_status status =
        gg_memory_alloc(f->device, GG_MEMORY_DEVICE, LARGE + ((size_t)4 << 20), f->stream, &next);
    gate_open(gate);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
    assert_int_equal(status, GG_ERR_OUT_OF_MEMORY);
}

static void large_blocks_are_not_kept_where_the_drivers_free_never_waits(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    if (!(info_of(f).flags & GG_DEVICE_FREE_NEVER_WAITS))
        skip_because("the driver's free may wait");
    if (gg_memory_alloc(f->device, GG_MEMORY_DEVICE, LARGE, f->stream, &memory))
        skip_because("the device has no large block free");
    gg_memory_release(memory);
    assert_int_equal(figures(f).cached_blocks, 0);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(figures(f).reserved_bytes, 0);
}

static void of_the_free_large_blocks_the_one_released_first_is_freed_first(void **state)
{
    struct fixture *f = *state;
    const uint64_t kept = need_large(f, 4 * LARGE);
    gg_memory *stale = alloc(f, LARGE, f->stream), *memory = NULL;
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, (size_t)(kept - LARGE / 2),
                                       f->stream, &memory);
    gg_memory_release(stale);
    gg_memory_release(memory);
    if (status)
        skip_because("an eighth of the device's memory is not free");
    finish(f->stream); /* a wait passes the retired objects */
    assert_int_equal(figures(f).cached_blocks, 1);
    assert_true(figures(f).cached_bytes > kept - LARGE);
}

static void a_threshold_that_is_set_takes_the_place_of_the_eighth(void **state)
{
    struct fixture *f = *state;
    const size_t nbytes = (size_t)(need_large(f, LARGE) / 4 * 3);
    gg_memory *memories[2] = {NULL};
    gg_status status = gg_pool_set_release_threshold(f->device, GG_MEMORY_DEVICE, UINT64_MAX);
    for (int i = 0; i < 2 && !status; i++)
        status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, f->stream, &memories[i]);
    for (int i = 0; i < 2; i++)
        gg_memory_release(memories[i]);
    if (status)
        skip_because("three sixteenths of the device's memory are not free");
    finish(f->stream);
    assert_int_equal(figures(f).cached_blocks, 2);
}

static void blocks_of_more_than_an_eighth_of_the_device_are_not_kept(void **state)
{
    struct fixture *f = *state;
    const size_t nbytes = (size_t)need_large(f, LARGE) + ((size_t)2 << 20);
    gg_memory *memory = NULL;
    if (gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, f->stream, &memory))
        skip_because("an eighth of the device's memory is not free");
    gg_memory_release(memory);
    assert_int_equal(figures(f).cached_blocks, 0);
}

static void free_large_blocks_beyond_an_eighth_of_the_device_are_freed(void **state)
{
    struct fixture *f = *state;
    const uint64_t kept = need_large(f, LARGE);
    gg_memory *memories[3] = {NULL};
    gg_status status = GG_OK;
    for (int i = 0; i < 3 && !status; i++)
        status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, kept / 2 + ((size_t)2 << 20),
                                 f->stream, &memories[i]);
    for (int i = 0; i < 3; i++)
        gg_memory_release(memories[i]);
    if (status)
        skip_because("three sixteenths of the device's memory are not free");
    finish(f->stream); /* a wait passes the retired objects */
    assert_int_equal(figures(f).cached_blocks, 1);
    assert_true(figures(f).cached_bytes <= kept);
}

/* Just above 256 MiB, which is below the second size class of large blocks. */
static void
free_blocks_of_the_smallest_large_size_are_kept_up_to_an_eighth_of_the_device(void **state)
{
    enum { MOST = 64 };
    struct fixture *f = *state;
    const size_t nbytes = (size_t)258 << 20;
    const uint64_t kept = need_large(f, nbytes);
    const uint64_t count = kept / nbytes + 2;
    gg_memory *memories[MOST] = {NULL};
    gg_status status = GG_OK;
    if (count > MOST)
        skip_because("an eighth of the device is more than 64 such blocks");
    for (uint64_t i = 0; i < count && !status; i++)
        status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, f->stream, &memories[i]);
    for (uint64_t i = 0; i < count; i++)
        gg_memory_release(memories[i]);
    if (status)
        skip_because("an eighth of the device's memory is not free");
    finish(f->stream);
    assert_int_equal(figures(f).cached_blocks, kept / nbytes);
}

/* The simulated devices have 1 GiB otherwise. */
static void want_memory(void)
{
    setenv("GPUGLUE_SIM_MEMORY", "17179869184", 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_large_block_is_reused_without_a_driver_call),
    cmocka_unit_test(a_large_block_takes_no_more_than_2_mib_beyond_its_size),
    cmocka_unit_test(of_the_large_blocks_of_a_class_the_smallest_that_suffices_is_reused),
    cmocka_unit_test(a_large_block_that_is_too_small_is_not_reused),
    cmocka_unit_test(at_the_limit_a_busy_large_block_serves_a_smaller_request_of_its_class),
    cmocka_unit_test(at_the_limit_a_busy_large_block_serves_no_larger_request),
    cmocka_unit_test(at_the_limit_a_large_block_that_another_stream_uses_serves_no_larger_request),
    cmocka_unit_test(large_blocks_are_not_kept_where_the_drivers_free_never_waits),
    cmocka_unit_test(of_the_free_large_blocks_the_one_released_first_is_freed_first),
    cmocka_unit_test(a_threshold_that_is_set_takes_the_place_of_the_eighth),
    cmocka_unit_test(blocks_of_more_than_an_eighth_of_the_device_are_not_kept),
    cmocka_unit_test(free_blocks_of_the_smallest_large_size_are_kept_up_to_an_eighth_of_the_device),
    cmocka_unit_test(free_large_blocks_beyond_an_eighth_of_the_device_are_freed),
};
SUITE_PREPARED(pool_large, tests, want_memory);
