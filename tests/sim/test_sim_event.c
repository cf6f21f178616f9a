/* test_sim_event.c: events: order between streams, elapsed time, and errors. */
#include "test_sim_driver.h"

static CUevent new_event(unsigned flags)
{
    CUevent event = NULL;
    assert_int_equal(cu.cuEventCreate(&event, flags), CUDA_SUCCESS);
    return event;
}

static void a_wait_orders_two_streams(void **state)
{
    CUstream first = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream second = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
    struct gate gate;
    (void)state;
    close_gate(&gate, first);
    assert_int_equal(cu.cuEventRecord(event, first), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(cu.cuStreamQuery(second), CUDA_ERROR_NOT_READY);
        assert_int_equal(cu.cuEventQuery(event), CUDA_ERROR_NOT_READY);
    }
    open_gate(&gate);
    assert_int_equal(cu.cuStreamSynchronize(second), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventQuery(event), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamWaitEvent(second, event, 4), CUDA_ERROR_INVALID_VALUE);
}

static void a_wait_takes_the_event_as_it_is_at_the_call(void **state)
{
    CUstream blocked = new_stream(CU_STREAM_NON_BLOCKING),
             other = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event(0);
    struct gate gate;
    (void)state;
    close_gate(&gate, blocked);
    assert_int_equal(cu.cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS); /* never recorded */
    assert_int_equal(cu.cuEventRecord(event, blocked), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(other), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventRecord(event, other), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventDestroy_v2(event), CUDA_SUCCESS); /* queued waits keep the record */
    assert_int_equal(cu.cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    assert_int_equal(cu.cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    open_gate(&gate);
    assert_int_equal(cu.cuStreamSynchronize(other), CUDA_SUCCESS);
}

static void elapsed_time_needs_two_finished_timed_events(void **state)
{
    CUstream stream = new_stream(0);
    CUevent start = new_event(0), stop = new_event(CU_EVENT_BLOCKING_SYNC),
            untimed = new_event(CU_EVENT_DISABLE_TIMING);
    struct gate gate;
    float ms = -7;
    (void)state;
    assert_int_equal(cu.cuEventQuery(start), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventElapsedTime(&ms, start, stop), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cu.cuEventRecord(start, stream), CUDA_SUCCESS);
    close_gate(&gate, stream);
    assert_int_equal(cu.cuEventRecord(stop, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventRecord(untimed, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventElapsedTime(&ms, start, stop), CUDA_ERROR_NOT_READY);
    open_gate(&gate);
    assert_int_equal(cu.cuEventSynchronize(stop), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventElapsedTime(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
    assert_true(ms == -7);
    assert_int_equal(cu.cuEventElapsedTime(&ms, start, stop), CUDA_SUCCESS);
    assert_true(ms > 0);
}

static void unknown_event_flags_and_foreign_streams_are_refused(void **state)
{
    CUevent event = (CUevent)7, own;
    CUcontext there;
    CUstream foreign;
    (void)state;
    assert_int_equal(cu.cuEventCreate(&event, 64), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    assert_ptr_equal(event, (CUevent)7);
    own = new_event(0);
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&there, 1), CUDA_SUCCESS);
    cu.cuCtxPushCurrent_v2(there);
    foreign = new_stream(0);
    cu.cuCtxPopCurrent_v2(NULL);
    assert_int_equal(cu.cuEventRecord(own, foreign), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cu.cuEventRecord(own, NULL), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamWaitEvent(foreign, own, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamSynchronize(foreign), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventRecord((CUevent)0x99, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void a_context_event_comes_after_all_work(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
    CUcontext context;
    struct gate gate;
    (void)state;
    cu.cuCtxGetCurrent(&context);
    close_gate(&gate, stream);
    assert_int_equal(cu.cuCtxRecordEvent(context, event), CUDA_SUCCESS);
    for (int i = 0; i < 20; i++)
        assert_int_equal(cu.cuEventQuery(event), CUDA_ERROR_NOT_READY);
    open_gate(&gate);
    assert_int_equal(cu.cuEventSynchronize(event), CUDA_SUCCESS);
}

int run_event_tests(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(a_wait_orders_two_streams),
        SIM_TEST(a_wait_takes_the_event_as_it_is_at_the_call),
        SIM_TEST(elapsed_time_needs_two_finished_timed_events),
        SIM_TEST(unknown_event_flags_and_foreign_streams_are_refused),
        SIM_TEST(a_context_event_comes_after_all_work),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
