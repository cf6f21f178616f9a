/* test_sim_memory.c: memory: sizes, ranges, copies of every kind, registration, and pointer
 * attributes. */
#include "test_sim_driver.h"

#include <stdlib.h>
#include <string.h>

static void a_round_trip_keeps_the_bytes(void **state)
{
    unsigned char out[256], in[256] = {0};
    CUdeviceptr memory = new_memory(sizeof out);
    (void)state;
    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (unsigned char)i;
    assert_int_equal(memory % 512, 0);
    assert_int_equal(cu.cuMemcpyHtoD_v2(memory, out, sizeof out), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyDtoH_v2(in, memory, sizeof in), CUDA_SUCCESS);
    assert_memory_equal(in, out, sizeof out);
}

static void memory_can_run_out_and_be_freed_again(void **state)
{
    size_t free_before, total, free_now;
    CUdeviceptr memory = 7, all;
    (void)state;
    assert_int_equal(cu.cuMemGetInfo_v2(&free_before, &total), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemAlloc_v2(&memory, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cu.cuMemAlloc_v2(&memory, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemAlloc_v2(&memory, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(memory, 7);
    all = new_memory(free_before);
    assert_int_equal(cu.cuMemAlloc_v2(&memory, 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cu.cuMemFree_v2(all), CUDA_SUCCESS);
    cu.cuMemGetInfo_v2(&free_now, &total);
    assert_int_equal(free_now, free_before);
    assert_int_equal(new_memory(1), all);
}

static void a_freed_or_unknown_address_is_an_error(void **state)
{
    CUdeviceptr memory = new_memory(1024);
    char byte = 0;
    (void)state;
    assert_int_equal(cu.cuMemFree_v2(memory + 512), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemcpyHtoD_v2(memory + 1024, &byte, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemcpyHtoD_v2((uintptr_t)&byte, &byte, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemsetD8_v2(memory + 1000, 0, 25), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemcpyHtoD_v2(memory, &byte, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemFreeHost(&byte), CUDA_ERROR_INVALID_VALUE);
}

static void fresh_and_freed_memory_holds_no_old_bytes(void **state)
{
    CUdeviceptr memory = new_memory(64), again;
    int zero = 0, found = 0;
    (void)state;
    assert_int_equal(cu.cuMemcpyHtoD_v2(memory, &zero, sizeof zero), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemFree_v2(memory), CUDA_SUCCESS);
    again = new_memory(64);
    assert_int_equal(again, memory);
    assert_int_equal(cu.cuMemcpyDtoH_v2(&found, again, sizeof found), CUDA_SUCCESS);
    assert_int_not_equal(found, 0);
}

static void a_region_copy_moves_only_its_rectangle(void **state)
{
    unsigned char out[8][8], in[8][8] = {{0}};
    CUdeviceptr memory = new_memory(1024);
    CUstream stream = new_stream(0);
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = out,
                          .srcPitch = 8,
                          .srcXInBytes = 2,
                          .srcY = 1,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = memory,
                          .dstPitch = 16,
                          .WidthInBytes = 4,
                          .Height = 3};
    CUDA_MEMCPY2D back = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = memory,
                          .srcPitch = 16,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = in,
                          .dstPitch = 8,
                          .WidthInBytes = 4,
                          .Height = 3};
    (void)state;
    for (int i = 0; i < 64; i++)
        out[i / 8][i % 8] = (unsigned char)(i + 1);
    assert_int_equal(cu.cuMemcpy2DAsync_v2(&copy, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpy2DAsync_v2(&back, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(in[0][0], out[1][2]);
    assert_int_equal(in[2][3], out[3][5]);
    assert_int_equal(in[0][4], 0);
    copy.srcPitch = 3;
    assert_int_equal(cu.cuMemcpy2DAsync_v2(&copy, stream), CUDA_ERROR_INVALID_VALUE);
}

static void registered_memory_may_not_overlap(void **state)
{
    char *memory = malloc(8192);
    (void)state;
    assert_int_equal(cu.cuMemHostRegister_v2(memory, 4096, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemHostRegister_v2(memory + 4000, 100, 0),
                     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    assert_int_equal(cu.cuMemHostRegister_v2(memory + 4096, 100, 512), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemHostUnregister(memory), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    free(memory);
}

static void a_copy_of_memory_that_is_registered_in_part_is_refused(void **state)
{
    char *memory = calloc(3, 4096);
    CUdeviceptr device;
    (void)state;
    assert_int_equal(cu.cuMemAlloc_v2(&device, 3 * 4096), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemHostRegister_v2(memory + 4096, 4096, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyHtoD_v2(device, memory, 4096), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyHtoD_v2(device, memory + 4096, 4096), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyHtoD_v2(device, memory, 4097), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemcpyDtoH_v2(memory + 8191, device, 4096), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemcpyHtoD_v2(device, memory, 3 * 4096), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemHostUnregister(memory + 4096), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyHtoD_v2(device, memory, 3 * 4096), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemFree_v2(device), CUDA_SUCCESS);
    free(memory);
}

static void managed_memory_is_reachable_from_both_sides(void **state)
{
    CUdeviceptr managed;
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    unsigned is_managed = 0;
    (void)state;
    assert_int_equal(cu.cuMemAllocManaged(&managed, 64, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemsetD32Async(managed, 0x01020304, 16, NULL), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemPrefetchAsync(managed, 64, 0, NULL), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemPrefetchAsync_v2(managed, 64, host, 0, NULL), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemPrefetchAsync(managed, 64, 9, NULL), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(cu.cuMemAdvise(managed, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemAdvise(managed, 64, (CUmem_advise)77, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuCtxSynchronize(), CUDA_SUCCESS);
    assert_int_equal(*(int *)(uintptr_t)managed, 0x01020304);
    assert_int_equal(
        cu.cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed), 0);
    assert_int_equal(is_managed, 1);
}

static void pointers_are_described_and_strangers_are_zero(void **state)
{
    CUdeviceptr memory = new_memory(100), start = 0;
    size_t size = 0;
    unsigned type = 0;
    int device = -1, stranger = 0;
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *outputs[] = {&type, &device, &start, &size};
    (void)state;
    assert_int_equal(cu.cuPointerGetAttributes(4, which, outputs, memory + 9), CUDA_SUCCESS);
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(device, 0);
    assert_int_equal(start, memory);
    assert_int_equal(size, 100);
    assert_int_equal(cu.cuPointerGetAttributes(4, which, outputs, (uintptr_t)&stranger), 0);
    assert_int_equal(type, 0);
    assert_int_equal(size, 0);
    assert_int_equal(cu.cuPointerGetAttribute(&type, which[0], (uintptr_t)&stranger),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuPointerGetAttribute(&type, which[0], (uintptr_t)new_pinned(8)),
                     CUDA_SUCCESS);
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
}

static void a_peer_copy_checks_whose_memory_it_is(void **state)
{
    CUcontext here, there;
    CUdeviceptr a = new_memory(64), b;
    CUstream stream = new_stream(0);
    int found = 0;
    (void)state;
    cu.cuCtxGetCurrent(&here);
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&there, 1), CUDA_SUCCESS);
    assert_int_equal(cu.cuCtxEnablePeerAccess(there, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuCtxEnablePeerAccess(there, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    cu.cuCtxPushCurrent_v2(there);
    b = new_memory(64);
    cu.cuCtxPopCurrent_v2(NULL);
    assert_int_equal(cu.cuMemsetD32Async(a, 77, 16, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyPeerAsync(b, here, a, here, 64, stream), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuMemcpyPeerAsync(b, there, a, here, 64, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyDtoH_v2(&found, b, sizeof found), CUDA_SUCCESS);
    assert_int_equal(found, 77);
}

int run_memory_tests(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(a_round_trip_keeps_the_bytes),
        SIM_TEST(memory_can_run_out_and_be_freed_again),
        SIM_TEST(a_freed_or_unknown_address_is_an_error),
        SIM_TEST(fresh_and_freed_memory_holds_no_old_bytes),
        SIM_TEST(a_region_copy_moves_only_its_rectangle),
        SIM_TEST(registered_memory_may_not_overlap),
        SIM_TEST(a_copy_of_memory_that_is_registered_in_part_is_refused),
        SIM_TEST(managed_memory_is_reachable_from_both_sides),
        SIM_TEST(pointers_are_described_and_strangers_are_zero),
        SIM_TEST(a_peer_copy_checks_whose_memory_it_is),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
