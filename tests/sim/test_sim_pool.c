/* test_sim_pool.c: pools: a freed block is reused at once on its stream, and later on other
 * streams. */
#include "test_sim_driver.h"

static void a_freed_block_is_reused_on_its_stream_at_once(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr first, elsewhere, again;
    struct gate gate;
    (void)state;
    assert_int_equal(cu.cuMemAllocAsync(&first, 4096, stream), CUDA_SUCCESS);
    close_gate(&gate, stream);
    assert_int_equal(cu.cuMemFreeAsync(first, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemFreeAsync(first, stream), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemAllocAsync(&elsewhere, 4096, other), CUDA_SUCCESS);
    assert_int_not_equal(elsewhere, first);
    assert_int_equal(cu.cuMemAllocAsync(&again, 4096, stream), CUDA_SUCCESS);
    assert_int_equal(again, first);
    open_gate(&gate);
    assert_int_equal(cu.cuMemsetD8Async(again, 1, 4096, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemFreeAsync(again, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemFree_v2(elsewhere), CUDA_SUCCESS);
}

static void a_queued_fill_reaches_the_old_end_of_a_block_that_was_reused_smaller(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr first, again;
    struct gate gate;
    size_t size = 0;
    (void)state;
    assert_int_equal(cu.cuMemAllocAsync(&first, 4096, stream), CUDA_SUCCESS);
    close_gate(&gate, stream);
    assert_int_equal(cu.cuMemsetD8Async(first + 4000, 1, 96, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemFreeAsync(first, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemAllocAsync(&again, 64, stream), CUDA_SUCCESS);
    assert_int_equal(again, first);
    assert_int_equal(cu.cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, again),
                     CUDA_SUCCESS);
    assert_int_equal(size, 64);
    assert_int_equal(cu.cuMemsetD8Async(again, 1, 65, stream), CUDA_ERROR_INVALID_VALUE);
    open_gate(&gate);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemFreeAsync(again, stream), CUDA_SUCCESS);
}

static void an_allocation_larger_than_the_device_waits_for_no_stream(void **state)
{
    CUstream held = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr memory;
    struct gate gate;
    (void)state;
    close_gate(&gate, held);
    assert_int_equal(cu.cuMemAllocAsync(&memory, (size_t)1 << 60, stream), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cu.cuStreamQuery(held), CUDA_ERROR_NOT_READY);
    open_gate(&gate);
    assert_int_equal(cu.cuStreamSynchronize(held), CUDA_SUCCESS);
}

static void use_after_a_stream_ordered_free_kills_the_context(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr memory = new_memory(64);
    (void)state;
    cu.sim_hold(1);
    assert_int_equal(cu.cuMemFreeAsync(memory, stream), CUDA_SUCCESS); /* cuMemAlloc memory too */
    assert_int_equal(cu.cuMemsetD8Async(memory, 1, 64, stream), CUDA_SUCCESS);
    cu.sim_hold(0);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void pools_count_their_allocations(void **state)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
    CUmemoryPool pool, standard;
    CUdeviceptr memory;
    uint64_t used = 0;
    int ordinal = -1;
    (void)state;
    assert_int_equal(cu.cuDeviceGetDefaultMemPool(&standard, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
    properties.location.id = 5;
    assert_int_equal(cu.cuMemPoolCreate(&pool, &properties), CUDA_ERROR_INVALID_VALUE);
    properties.location.id = 1;
    assert_int_equal(cu.cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemAllocFromPoolAsync(&memory, 1000, pool, NULL), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), 0);
    assert_int_equal(used, 1024);
    assert_int_equal(
        cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory), 0);
    assert_int_equal(ordinal, 1);
    assert_int_equal(cu.cuMemFreeAsync(memory, NULL), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemPoolDestroy(pool), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
}

int run_pool_tests(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(a_freed_block_is_reused_on_its_stream_at_once),
        SIM_TEST(a_queued_fill_reaches_the_old_end_of_a_block_that_was_reused_smaller),
        SIM_TEST(an_allocation_larger_than_the_device_waits_for_no_stream),
        SIM_TEST(use_after_a_stream_ordered_free_kills_the_context),
        SIM_TEST(pools_count_their_allocations),
    };
    return cmocka_run_group_tests_name("pools", tests, NULL, NULL);
}
