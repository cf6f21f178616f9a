/* test_sim_cuda.c: the simulated NVIDIA driver follows the rules of the real driver. argv[1] is the
 * library. */
#include "test_sim_driver.h"

#include <stdio.h>

static void contexts_of_others_are_stacked_and_restored(void **state)
{
    CUcontext primary, own, now;
    (void)state;
    assert_int_equal(cu.cuCtxGetCurrent(&primary), CUDA_SUCCESS);
    assert_int_equal(cu.cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
    assert_ptr_not_equal(own, primary);
    cu.cuCtxGetCurrent(&now);
    assert_ptr_equal(now, own);
    assert_int_equal(cu.cuCtxPopCurrent_v2(&now), CUDA_SUCCESS);
    cu.cuCtxGetCurrent(&now);
    assert_ptr_equal(now, primary);
    assert_int_equal(cu.cuCtxDestroy_v2(own), CUDA_SUCCESS);
    assert_int_equal(cu.cuCtxSetCurrent(own), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cu.cuCtxCreate_v2(&own, 1u << 20, 0), CUDA_ERROR_INVALID_VALUE);
}

static void without_a_context_only_explicit_objects_work(void **state)
{
    CUstream stream = new_stream(0), other;
    CUdeviceptr memory = new_memory(64), fresh = 7;
    CUevent event, unborn;
    char *pinned = new_pinned(64);
    (void)state;
    assert_int_equal(cu.cuEventCreate(&event, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuCtxSetCurrent(NULL), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyHtoDAsync_v2(memory, pinned, 64, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventRecord(event, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventSynchronize(event), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventQuery(event), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamQuery(NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cu.cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cu.cuMemAlloc_v2(&fresh, 64), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cu.cuStreamCreate(&other, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cu.cuEventCreate(&unborn, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fresh, 7);
}

static void a_released_primary_context_is_gone(void **state)
{
    CUcontext context;
    CUdeviceptr memory;
    unsigned flags;
    int active = 1;
    (void)state;
    cu.cuCtxGetCurrent(&context);
    new_stream(0);
    new_memory(64);
    assert_int_equal(cu.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    assert_int_equal(cu.cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
    assert_int_equal(active, 0);
    assert_int_equal(cu.sim_alive("stream"), 0);
    assert_int_equal(cu.cuMemAlloc_v2(&memory, 64), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cu.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cu.cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
}

static void devices_have_names_places_and_attributes(void **state)
{
    char bus[32];
    int value = 5;
    CUdevice found = -1;
    (void)state;
    assert_int_equal(cu.cuDeviceGetPCIBusId(bus, sizeof bus, 1), CUDA_SUCCESS);
    assert_int_equal(cu.cuDeviceGetByPCIBusId(&found, bus), CUDA_SUCCESS);
    assert_int_equal(found, 1);
    assert_int_equal(cu.cuDeviceGetAttribute(&value, (CUdevice_attribute)10, 0), CUDA_SUCCESS);
    assert_int_equal(value, 32);
    assert_int_equal(cu.cuDeviceGetAttribute(&value, (CUdevice_attribute)9999, 0),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuDeviceGetAttribute(&value, (CUdevice_attribute)10, 2),
                     CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(value, 32);
}

static void proc_address_gives_the_form_of_the_version_asked_for(void **state)
{
    void *old = NULL, *new = NULL, *plain = NULL, *none = &none;
    CUdriverProcAddressQueryResult result = (CUdriverProcAddressQueryResult)9;
    (void)state;
    assert_int_equal(cu.cuGetProcAddress_v2("cuMemPrefetchAsync", &old, 12000, 0, &result), 0);
    assert_int_equal(cu.cuGetProcAddress_v2("cuMemPrefetchAsync", &new, 13000, 0, &result), 0);
    assert_int_equal(cu.cuGetProcAddress_v2("cuMemAlloc", &plain, 3020, 0, &result), 0);
    assert_ptr_equal(old, *(void **)&cu.cuMemPrefetchAsync);
    assert_ptr_equal(new, *(void **)&cu.cuMemPrefetchAsync_v2);
    assert_ptr_equal(plain, *(void **)&cu.cuMemAlloc_v2);
    cu.cuGetProcAddress_v2("cuNoSuchThing", &none, 13000, 0, &result);
    assert_int_equal(result, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    assert_null(none);
    cu.cuGetProcAddress_v2("cuMemPrefetchAsync", &none, 5000, 0, &result);
    assert_int_equal(result, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

static void functions_that_are_not_simulated_report_it_and_write_nothing(void **state)
{
    CUmodule module = (CUmodule)7;
    CUipcEventHandle handle;
    (void)state;
    assert_int_equal(cu.cuModuleLoadData(&module, "x"), CUDA_ERROR_INVALID_IMAGE);
    assert_ptr_equal(module, (CUmodule)7);
    assert_int_equal(cu.cuIpcGetEventHandle(&handle, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

static const struct CMUnitTest context_tests[] = {
    SIM_TEST(contexts_of_others_are_stacked_and_restored),
    SIM_TEST(without_a_context_only_explicit_objects_work),
    SIM_TEST(a_released_primary_context_is_gone),
    SIM_TEST(devices_have_names_places_and_attributes),
    SIM_TEST(proc_address_gives_the_form_of_the_version_asked_for),
    SIM_TEST(functions_that_are_not_simulated_report_it_and_write_nothing),
};

int main(int argc, char **argv)
{
    int failed;
    if (argc < 2) {
        fprintf(stderr, "usage: %s path/of/libcuda.so.1\n", argv[0]);
        return 2;
    }
    open_driver(argv[1]);
    failed = run_process_tests(); /* first: a child forked after cuInit cannot use the driver */
    failed += cmocka_run_group_tests_name("contexts", context_tests, NULL, NULL);
    failed += run_memory_tests() + run_stream_tests() + run_event_tests();
    return failed + run_capture_tests() + run_pool_tests() + run_fault_tests();
}
