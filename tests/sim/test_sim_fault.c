/* test_sim_fault.c: injected faults: the nth call, all calls from the nth on, a lost device, and
 * failures of queued work. */
#include "test_sim_driver.h"

#include <pthread.h>
#include <string.h>

static pthread_t client;
static atomic_int reads_elsewhere;
extern char **environ;

/* Replaces libc's getenv, for the library under test too. */
char *getenv(const char *name)
{
    size_t length = strlen(name);
    if (client && !pthread_equal(pthread_self(), client))
        atomic_fetch_add(&reads_elsewhere, 1);
    for (char **entry = environ; entry && *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

static void the_nth_call_fails_and_writes_nothing(void **state)
{
    CUdeviceptr memory = 7;
    (void)state;
    cu.sim_fail("cuMemAlloc_v2:2=2,cuEventCreate:1");
    new_memory(64);
    assert_int_equal(cu.cuMemAlloc_v2(&memory, 64), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(memory, 7);
    new_memory(64);
    assert_int_equal(cu.cuEventCreate((CUevent *)&memory, 0), CUDA_ERROR_UNKNOWN);
}

static void from_the_nth_call_on_all_fail(void **state)
{
    CUdeviceptr memory;
    (void)state;
    cu.sim_fail("cuMemAlloc_v2:2+=2");
    new_memory(64);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cu.cuMemAlloc_v2(&memory, 64), CUDA_ERROR_OUT_OF_MEMORY);
    cu.sim_fail("");
    new_memory(64);
}

static void a_lost_device_answers_nothing_else(void **state)
{
    CUstream stream = new_stream(0);
    CUdeviceptr memory = new_memory(64), fresh;
    CUevent event;
    (void)state;
    cu.cuEventCreate(&event, 0);
    cu.sim_fail("cuStreamQuery:1=719");
    assert_int_equal(cu.cuStreamQuery(stream), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cu.cuMemAlloc_v2(&fresh, 64), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cu.cuMemFree_v2(memory), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cu.cuEventRecord(event, stream), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cu.cuEventDestroy_v2(event), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cu.sim_alive("device"), 1);
}

static void a_failure_of_queued_work_surfaces_later(void **state)
{
    CUstream stream = new_stream(0);
    CUdeviceptr memory = new_memory(64);
    (void)state;
    cu.sim_fail("@fill:1=700");
    assert_int_equal(cu.cuMemsetD8Async(memory, 1, 64, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu.cuMemsetD8Async(memory, 1, 64, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* The client may change the environment while work runs. */
static void work_that_is_queued_reads_no_environment(void **state)
{
    CUstream stream = new_stream(0);
    CUdeviceptr memory = new_memory(64);
    (void)state;
    client = pthread_self();
    assert_int_equal(cu.cuMemsetD8Async(memory, 1, 64, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(reads_elsewhere, 0);
}

int run_fault_tests(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(the_nth_call_fails_and_writes_nothing),
        SIM_TEST(from_the_nth_call_on_all_fail),
        SIM_TEST(a_lost_device_answers_nothing_else),
        SIM_TEST(a_failure_of_queued_work_surfaces_later),
        SIM_TEST(work_that_is_queued_reads_no_environment),
    };
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
