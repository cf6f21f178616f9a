/* test_sim_stream.c: streams: delayed work, gates, the null stream's rules, handle reuse and frees
 * that wait. */
#include "test_sim_driver.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

static void held_work_has_not_touched_memory_yet(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    int *pinned = new_pinned(2 * sizeof *pinned), late = 0;
    CUdeviceptr memory = new_memory(sizeof late);
    (void)state;
    pinned[0] = 1;
    cu.sim_hold(1);
    assert_int_equal(cu.cuMemcpyHtoDAsync_v2(memory, pinned, sizeof *pinned, stream), 0);
    assert_int_equal(cu.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    pinned[0] = 2; /* the copy reads its source when it runs */
    cu.sim_hold(0);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyDtoH_v2(&late, memory, sizeof late), CUDA_SUCCESS);
    assert_int_equal(late, 2);
}

static void polling_finds_an_end(void **state)
{
    CUstream stream = new_stream(0);
    CUdeviceptr memory = new_memory(64);
    int polls = 0;
    (void)state;
    for (int round = 0; round < 20; round++) {
        assert_int_equal(cu.cuMemsetD8Async(memory, 1, 64, stream), CUDA_SUCCESS);
        while (cu.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
            polls++;
        assert_int_equal(cu.cuStreamQuery(stream), CUDA_SUCCESS);
    }
    assert_true(polls >= 10);
}

static void work_that_is_never_queried_runs_at_last(void **state)
{
    CUstream stream = new_stream(0);
    volatile uint32_t *word = new_pinned(sizeof *word);
    (void)state;
    __atomic_store_n(word, 0, __ATOMIC_RELEASE);
    assert_int_equal(cu.cuStreamWriteValue32_v2(stream, (uintptr_t)word, 5, 0), CUDA_SUCCESS);
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 5)
        sched_yield();
}

static void a_blocked_stream_leaves_others_alone(void **state)
{
    CUstream blocked = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(0);
    struct gate gate;
    int value = 0;
    CUdeviceptr memory = new_memory(sizeof value);
    (void)state;
    close_gate(&gate, blocked);
    assert_int_equal(cu.cuMemsetD32Async(memory, 9, 1, other), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(other), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyDtoH_v2(&value, memory, sizeof value), CUDA_SUCCESS);
    assert_int_equal(value, 9);
    assert_int_equal(cu.cuStreamQuery(blocked), CUDA_ERROR_NOT_READY);
    open_gate(&gate);
    assert_int_equal(cu.cuStreamSynchronize(blocked), CUDA_SUCCESS);
}

static void the_null_stream_waits_for_blocking_streams_only(void **state)
{
    CUstream blocking = new_stream(0), free_stream = new_stream(CU_STREAM_NON_BLOCKING);
    struct gate gate, free_gate;
    CUdeviceptr memory = new_memory(4);
    (void)state;
    close_gate(&gate, blocking);
    close_gate(&free_gate, free_stream);
    assert_int_equal(cu.cuMemsetD32Async(memory, 1, 1, NULL), CUDA_SUCCESS);
    for (int i = 0; i < 50; i++)
        assert_int_equal(cu.cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    open_gate(&gate);
    assert_int_equal(cu.cuStreamSynchronize(NULL), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamQuery(free_stream), CUDA_ERROR_NOT_READY);
    open_gate(&free_gate);
    assert_int_equal(cu.cuStreamSynchronize(free_stream), CUDA_SUCCESS);
}

static void blocking_streams_wait_for_the_null_stream(void **state)
{
    CUstream blocking = new_stream(0), free_stream = new_stream(CU_STREAM_NON_BLOCKING);
    struct gate gate;
    CUdeviceptr memory = new_memory(12); /* one word for each stream: the three are unordered */
    (void)state;
    close_gate(&gate, CU_STREAM_LEGACY);
    assert_int_equal(cu.cuMemsetD32Async(memory, 1, 1, blocking), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemsetD32Async(memory + 4, 1, 1, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemsetD32Async(memory + 8, 1, 1, free_stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(free_stream), CUDA_SUCCESS);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(cu.cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
        assert_int_equal(cu.cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    }
    open_gate(&gate);
    assert_int_equal(cu.cuStreamSynchronize(blocking), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
}

static void a_synchronous_copy_ignores_non_blocking_streams(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    struct gate gate;
    int zero = 0;
    CUdeviceptr memory = new_memory(sizeof zero);
    (void)state;
    close_gate(&gate, stream);
    assert_int_equal(cu.cuMemcpyHtoD_v2(memory, &zero, sizeof zero), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    open_gate(&gate);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS); /* opened above */
}

static void the_handle_of_a_destroyed_stream_is_reused_for_an_idle_one(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), next;
    struct gate gate;
    int *done = new_pinned(sizeof *done);
    (void)state;
    *done = 0;
    close_gate(&gate, stream);
    assert_int_equal(cu.cuMemsetD32Async((uintptr_t)done, 3, 1, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cu.cuStreamDestroy_v2(stream), CUDA_ERROR_INVALID_HANDLE);
    next = new_stream(0);
    assert_ptr_equal(next, stream);
    assert_int_equal(cu.cuStreamQuery(next), CUDA_SUCCESS);
    open_gate(&gate);
    assert_int_equal(cu.cuCtxSynchronize(), CUDA_SUCCESS);
    assert_int_equal(*done, 3);
    assert_int_equal(cu.cuStreamQuery((CUstream)0x1234), CUDA_ERROR_INVALID_HANDLE);
}

struct freeing {
    CUdeviceptr memory;
    CUresult result;
    atomic_int done;
};

static void *free_it(void *data)
{
    struct freeing *freeing = data;
    freeing->result = cu.cuMemFree_v2(freeing->memory);
    atomic_store(&freeing->done, 1);
    return NULL;
}

static void a_free_waits_for_the_whole_device(void **state)
{
    CUstream unrelated = new_stream(CU_STREAM_NON_BLOCKING);
    struct freeing freeing = {.memory = new_memory(64)};
    struct gate gate;
    pthread_t thread;
    int calls = cu.sim_calls("cuMemFree_v2");
    (void)state;
    close_gate(&gate, unrelated);
    assert_int_equal(pthread_create(&thread, NULL, free_it, &freeing), 0);
    while (cu.sim_calls("cuMemFree_v2") == calls)
        sched_yield();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(atomic_load(&freeing.done), 0);
        sched_yield();
    }
    open_gate(&gate);
    pthread_join(thread, NULL);
    assert_int_equal(freeing.result, CUDA_SUCCESS);
}

static void a_value_in_memory_can_be_awaited(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    uint32_t *word = new_pinned(sizeof *word);
    (void)state;
    __atomic_store_n(word, 0, __ATOMIC_RELEASE);
    assert_int_equal(cu.cuStreamWaitValue32_v2(stream, (uintptr_t)word, 2, 0), /* at least 2 */
                     CUDA_SUCCESS);
    for (int i = 0; i < 20; i++)
        assert_int_equal(cu.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    __atomic_store_n(word, 3, __ATOMIC_RELEASE);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamWaitValue32_v2(stream, (uintptr_t)word, 2, 99),
                     CUDA_ERROR_INVALID_VALUE);
}

static void calls_inside_a_host_function(void *data)
{
    *(CUresult *)data = cu.cuStreamQuery(NULL);
}

static void a_host_function_may_not_call_the_driver(void **state)
{
    CUstream stream = new_stream(0);
    CUresult inside = CUDA_SUCCESS;
    (void)state;
    assert_int_equal(cu.cuLaunchHostFunc(stream, calls_inside_a_host_function, &inside), 0);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(inside, CUDA_ERROR_NOT_PERMITTED);
}

static void unknown_stream_flags_are_refused_and_priorities_clamped(void **state)
{
    CUstream stream = (CUstream)7;
    int priority = 0;
    (void)state;
    assert_int_equal(cu.cuStreamCreate(&stream, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    assert_ptr_equal(stream, (CUstream)7);
    assert_int_equal(cu.cuStreamCreateWithPriority(&stream, 1, -99), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
    assert_int_equal(priority, -5);
}

static CUdeviceptr filled_late;

static void *fill_late(void *stream)
{
    return (void *)(uintptr_t)cu.cuMemsetD8Async(filled_late, 1, 64, stream);
}

static void a_call_waits_while_its_stream_is_full(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr memory = new_memory(64);
    struct gate gate;
    pthread_t thread;
    void *result;
    (void)state;
    filled_late = new_memory(64);
    close_gate(&gate, stream);
    assert_int_equal(cu.cuMemsetD8Async(memory, 1, 64, stream), CUDA_SUCCESS);
    cu.sim_room(2);
    assert_int_equal(pthread_create(&thread, NULL, fill_late, stream), 0);
    while (!cu.sim_waiting())
        sched_yield();
    assert_int_equal(cu.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    assert_int_equal(cu.cuMemsetD8Async(memory, 1, 64, other), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(other), CUDA_SUCCESS);
    assert_int_equal(cu.sim_waiting(), 1);
    open_gate(&gate);
    pthread_join(thread, &result);
    assert_null(result);
    assert_int_equal(cu.sim_waiting(), 0);
    assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
}

int run_stream_tests(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(a_free_waits_for_the_whole_device),
        SIM_TEST(held_work_has_not_touched_memory_yet),
        SIM_TEST(polling_finds_an_end),
        SIM_TEST(work_that_is_never_queried_runs_at_last),
        SIM_TEST(a_blocked_stream_leaves_others_alone),
        SIM_TEST(a_call_waits_while_its_stream_is_full),
        SIM_TEST(the_null_stream_waits_for_blocking_streams_only),
        SIM_TEST(blocking_streams_wait_for_the_null_stream),
        SIM_TEST(a_synchronous_copy_ignores_non_blocking_streams),
        SIM_TEST(the_handle_of_a_destroyed_stream_is_reused_for_an_idle_one),
        SIM_TEST(a_value_in_memory_can_be_awaited),
        SIM_TEST(a_host_function_may_not_call_the_driver),
        SIM_TEST(unknown_stream_flags_are_refused_and_priorities_clamped),
    };
    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
