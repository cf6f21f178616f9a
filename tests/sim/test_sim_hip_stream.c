/* test_sim_hip_stream.c: the simulated HIP runtime's streams, events and captures. */
#include "test_sim_hip.h"

#include <string.h>

enum { SIZE = 4096 };

static hipEvent_t new_event(unsigned flags)
{
    hipEvent_t event = NULL;
    assert_int_equal(hip.hipEventCreateWithFlags(&event, flags), hipSuccess);
    return event;
}

static void a_pageable_source_is_read_late(void **state)
{
    char *memory = new_memory(8), *pinned = new_pinned(8), source[8] = "before";
    struct gate gate;
    hipStream_t stream = new_stream(hipStreamNonBlocking);
    (void)state;
    close_gate(&gate, stream);
    assert_int_equal(hip.hipMemcpyHtoDAsync(memory, source, 8, stream), hipSuccess);
    memcpy(source, "after!", 7);
    open_gate(&gate);
    assert_int_equal(hip.hipMemcpyDtoHAsync(pinned, memory, 8, stream), hipSuccess);
    assert_int_equal(hip.hipStreamSynchronize(stream), hipSuccess);
    assert_string_equal(pinned, "after!");
}

static void the_null_stream_waits_for_blocking_streams_only(void **state)
{
    struct gate gate;
    hipStream_t blocking = new_stream(0), free = new_stream(hipStreamNonBlocking);
    (void)state;
    close_gate(&gate, free);
    assert_int_equal(hip.hipStreamSynchronize(NULL), hipSuccess);
    open_gate(&gate);
    assert_int_equal(hip.hipStreamSynchronize(free), hipSuccess);
    close_gate(&gate, blocking);
    assert_int_equal(hip.hipStreamQuery(NULL), hipErrorNotReady);
    open_gate(&gate);
    assert_int_equal(hip.hipStreamSynchronize(NULL), hipSuccess);
}

static void a_null_stream_is_that_of_the_current_device(void **state)
{
    struct gate gate;
    (void)state;
    close_gate(&gate, NULL);
    assert_int_equal(hip.hipStreamQuery(NULL), hipErrorNotReady);
    assert_int_equal(hip.hipSetDevice(1), hipSuccess);
    assert_int_equal(hip.hipStreamQuery(NULL), hipSuccess);
    assert_int_equal(hip.hipSetDevice(0), hipSuccess);
    open_gate(&gate);
    assert_int_equal(hip.hipDeviceSynchronize(), hipSuccess);
}

static void streams_have_flags_and_priorities(void **state)
{
    hipStream_t stream = NULL;
    unsigned flags = 7;
    int priority = 7, least = 7, greatest = 7;
    (void)state;
    assert_int_equal(hip.hipDeviceGetStreamPriorityRange(&least, &greatest), hipSuccess);
    assert_int_equal(hip.hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, -9), hipSuccess);
    assert_int_equal(hip.hipStreamGetFlags(stream, &flags), hipSuccess);
    assert_int_equal(hip.hipStreamGetPriority(stream, &priority), hipSuccess);
    assert_int_equal(flags, hipStreamNonBlocking);
    assert_int_equal(priority, greatest);
    assert_int_equal(hip.hipStreamCreateWithPriority(&stream, 8, 0), hipErrorInvalidValue);
}

static void the_null_stream_has_no_flags(void **state)
{
    unsigned flags = 7;
    (void)state;
    assert_int_equal(hip.hipStreamGetFlags(NULL, &flags), hipErrorInvalidValue);
    assert_int_equal(flags, 7);
}

static void an_event_that_was_destroyed_is_an_error(void **state)
{
    hipEvent_t event = new_event(0);
    (void)state;
    assert_int_equal(hip.hipEventDestroy(event), hipSuccess);
    assert_int_equal(hip.hipEventQuery(event), hipErrorInvalidHandle);
}

static void not_ready_is_the_last_error_up_to_6_only(void **state)
{
    struct gate gate;
    (void)state;
    hip.hipGetLastError();
    close_gate(&gate, NULL);
    assert_int_equal(hip.hipStreamQuery(NULL), hipErrorNotReady);
    assert_int_equal(hip.hipPeekAtLastError(), SIM_HIP < 7 ? hipErrorNotReady : hipSuccess);
    open_gate(&gate);
    assert_int_equal(hip.hipDeviceSynchronize(), hipSuccess);
}

static void another_stream_waits_for_an_event(void **state)
{
    char *memory = new_memory(8), *pinned = new_pinned(8);
    struct gate gate;
    hipStream_t first = new_stream(hipStreamNonBlocking), second = new_stream(hipStreamNonBlocking);
    hipEvent_t event = new_event(hipEventDisableTiming);
    (void)state;
    close_gate(&gate, first);
    assert_int_equal(hip.hipMemsetD32Async(memory, 0x01010101, 2, first), hipSuccess);
    assert_int_equal(hip.hipEventRecord(event, first), hipSuccess);
    assert_int_equal(hip.hipStreamWaitEvent(second, event, 0), hipSuccess);
    assert_int_equal(hip.hipMemcpyDtoHAsync(pinned, memory, 8, second), hipSuccess);
    assert_int_equal(hip.hipStreamQuery(second), hipErrorNotReady);
    assert_int_equal(hip.hipEventQuery(event), hipErrorNotReady);
    open_gate(&gate);
    assert_int_equal(hip.hipStreamSynchronize(second), hipSuccess);
    assert_memory_equal(pinned, "\1\1\1\1\1\1\1\1", 8);
}

static void events_without_timing_have_no_times(void **state)
{
    hipEvent_t start = new_event(0), stop = new_event(0), plain = new_event(hipEventDisableTiming);
    float ms = -1;
    (void)state;
    assert_int_equal(hip.hipEventElapsedTime(&ms, start, stop), hipErrorInvalidHandle);
    assert_int_equal(hip.hipEventRecord(start, NULL), hipSuccess);
    assert_int_equal(hip.hipEventRecord(stop, NULL), hipSuccess);
    assert_int_equal(hip.hipEventRecord(plain, NULL), hipSuccess);
    assert_int_equal(hip.hipEventSynchronize(plain), hipSuccess);
    assert_int_equal(hip.hipEventElapsedTime(&ms, start, plain), hipErrorInvalidHandle);
    assert_true(ms < 0);
    assert_int_equal(hip.hipEventElapsedTime(&ms, start, stop), hipSuccess);
    assert_true(ms >= 0);
}

static void a_free_waits_for_the_whole_device(void **state)
{
    char *memory = new_memory(SIZE), *pinned = new_pinned(SIZE);
    hipStream_t stream = new_stream(hipStreamNonBlocking);
    (void)state;
    memset(pinned, 5, SIZE);
    assert_int_equal(hip.hipMemcpyHtoDAsync(memory, pinned, SIZE, stream), hipSuccess);
    assert_int_equal(hip.hipFree(memory), hipSuccess);
    assert_int_equal(hip.hipStreamQuery(stream), hipSuccess);
}

static void allocation_and_free_are_ordered_on_a_stream(void **state)
{
    void *memory = NULL;
    char *pinned = new_pinned(8);
    hipStream_t stream = new_stream(hipStreamNonBlocking);
    (void)state;
    assert_int_equal(hip.hipMallocAsync(&memory, 8, stream), hipSuccess);
    assert_int_equal(hip.hipMemsetD16Async(memory, 0x0202, 4, stream), hipSuccess);
    assert_int_equal(hip.hipMemcpyDtoHAsync(pinned, memory, 8, stream), hipSuccess);
    assert_int_equal(hip.hipFreeAsync(memory, stream), hipSuccess);
    assert_int_equal(hip.hipStreamSynchronize(stream), hipSuccess);
    assert_memory_equal(pinned, "\2\2\2\2\2\2\2\2", 8);
}

static void a_capture_is_seen_and_invalidated_by_a_careless_call(void **state)
{
    hipStream_t stream = new_stream(hipStreamNonBlocking);
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    hipGraph_t graph = NULL;
    void *memory = NULL;
    (void)state;
    assert_int_equal(hip.hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
    assert_int_equal(hip.hipStreamIsCapturing(stream, &status), hipSuccess);
    assert_int_equal(status, hipStreamCaptureStatusActive);
    assert_int_equal(hip.hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
    assert_int_equal(hip.hipMalloc(&memory, SIZE), hipSuccess);
    assert_int_equal(hip.hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
    assert_int_equal(hip.hipMalloc(&memory, SIZE), hipErrorStreamCaptureUnsupported);
    assert_int_equal(hip.hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
}

#if FROM_57
static void no_stream_waits_for_an_event_of_a_stream_that_is_captured_now(void **state)
{
    hipStream_t stream = new_stream(hipStreamNonBlocking), other = new_stream(hipStreamNonBlocking);
    hipEvent_t event = NULL;
    hipGraph_t graph = NULL;
    (void)state;
    assert_int_equal(hip.hipEventCreateWithFlags(&event, 0), hipSuccess);
    assert_int_equal(hip.hipEventRecord(event, stream), hipSuccess);
    assert_int_equal(hip.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
    assert_int_equal(hip.hipStreamWaitEvent(other, event, 0), hipErrorStreamCaptureIsolation);
    assert_int_equal(hip.hipStreamEndCapture(stream, &graph), hipSuccess);
    assert_int_equal(hip.hipStreamWaitEvent(other, event, 0), hipSuccess);
}
#endif

/* The answers about an event that was recorded before its stream began a capture, and whether the capture is valid then. */
static void answer_is(hipError_t (*ask)(hipEvent_t), hipError_t answer, hipError_t end)
{
    hipStream_t stream = new_stream(hipStreamNonBlocking);
    hipEvent_t event = new_event(0);
    hipGraph_t graph = NULL;
    assert_int_equal(hip.hipEventRecord(event, stream), hipSuccess);
    assert_int_equal(hip.hipStreamSynchronize(stream), hipSuccess);
    assert_int_equal(hip.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
    assert_int_equal(ask(event), answer);
    assert_int_equal(hip.hipStreamEndCapture(stream, &graph), end);
}

/* ROCm/clr: hipEventQuery, and hipEventSynchronize, which refused it in 5.7 already. */
static void an_event_of_a_stream_that_is_captured_now_is_refused_as_in_its_version(void **state)
{
    const bool ends = SIM_HIP == 6;
    const hipError_t end = ends ? hipErrorStreamCaptureInvalidated : hipSuccess;
    const hipError_t waited =
        SIM_HIP == 5 && FROM_57 ? hipErrorStreamCaptureUnsupported : hipSuccess;
    (void)state;
    answer_is(hip.hipEventQuery, ends ? hipErrorCapturedEvent : hipSuccess, end);
    answer_is(hip.hipEventSynchronize, ends ? hipErrorCapturedEvent : waited, end);
}

/* ROCm/clr, hipStreamWaitEvent_common: the wait is queued on the stream as if it were not captured. */
static void a_wait_for_work_outside_of_a_capture_is_not_captured(void **state)
{
    hipStream_t stream = new_stream(hipStreamNonBlocking), other = new_stream(hipStreamNonBlocking);
    hipEvent_t event = new_event(hipEventDisableTiming);
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    hipGraph_t graph = NULL;
    struct gate gate;
    (void)state;
    close_gate(&gate, other);
    assert_int_equal(hip.hipEventRecord(event, other), hipSuccess);
    assert_int_equal(hip.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
    assert_int_equal(hip.hipStreamWaitEvent(stream, event, 0), hipSuccess);
    assert_int_equal(hip.hipStreamIsCapturing(stream, &status), hipSuccess);
    assert_int_equal(status, hipStreamCaptureStatusActive);
    assert_int_equal(hip.hipStreamEndCapture(stream, &graph), hipSuccess);
    assert_int_equal(hip.hipStreamQuery(stream), hipErrorNotReady);
    open_gate(&gate);
    assert_int_equal(hip.hipStreamSynchronize(stream), hipSuccess);
    assert_int_equal(hip.hipGraphDestroy(graph), hipSuccess);
}

static void note_call(hipStream_t stream, hipError_t status, void *called)
{
    (void)stream;
    (void)status;
    atomic_store((atomic_int *)called, 1);
}

static void host_functions_of_two_streams_run_one_at_a_time(void **state)
{
    hipStream_t stream = new_stream(hipStreamNonBlocking), other = new_stream(hipStreamNonBlocking);
    static atomic_int called;
    struct gate gate;
    (void)state;
    close_gate(&gate, stream);
    assert_int_equal(hip.hipStreamAddCallback(other, note_call, &called, 0), hipSuccess);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(hip.hipStreamQuery(other), hipErrorNotReady);
    assert_int_equal(atomic_load(&called), 0);
    open_gate(&gate);
    assert_int_equal(hip.hipStreamSynchronize(other), hipSuccess);
    assert_int_equal(atomic_load(&called), 1);
}

static void the_null_stream_can_be_asked_beside_a_blocking_capture(void **state)
{
    hipStream_t stream = new_stream(0);
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    hipGraph_t graph = NULL;
    (void)state;
    assert_int_equal(hip.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
    assert_int_equal(hip.hipStreamIsCapturing(NULL, &status), hipErrorStreamCaptureImplicit);
    assert_int_equal(hip.hipStreamEndCapture(stream, &graph), hipSuccess);
}

/* ROCm/clr: CHECK_SUPPORTED_DURING_CAPTURE has no regard to modes. */
static void a_synchronize_of_the_device_invalidates_any_capture(void **state)
{
    hipStream_t stream = new_stream(hipStreamNonBlocking);
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    hipGraph_t graph = NULL;
    (void)state;
    assert_int_equal(hip.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
    assert_int_equal(hip.hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
    assert_int_equal(hip.hipDeviceSynchronize(), hipErrorStreamCaptureUnsupported);
    assert_int_equal(hip.hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
    assert_int_equal(hip.hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
}

static hipGraph_t fill_in_a_graph(void *memory, int value, int times)
{
    hipStream_t stream = new_stream(hipStreamNonBlocking);
    hipGraph_t graph = NULL;
    assert_int_equal(hip.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
    for (int i = 0; i < times; i++)
        assert_int_equal(hip.hipMemsetD32Async((hipDeviceptr_t)memory, value, 2, stream),
                         hipSuccess);
    assert_int_equal(hip.hipStreamEndCapture(stream, &graph), hipSuccess);
    return graph;
}

static void a_graph_runs_at_its_launch_and_is_updated_by_one_of_its_shape(void **state)
{
    char *memory = new_memory(8), *pinned = new_pinned(8);
    hipGraph_t one = fill_in_a_graph(memory, 1, 1), two = fill_in_a_graph(memory, 2, 1),
               longer = fill_in_a_graph(memory, 3, 2);
    hipStream_t stream = new_stream(hipStreamNonBlocking);
    hipGraphExecUpdateResult result;
    hipGraphNode_t node;
    hipGraphExec_t exec;
    (void)state;
    assert_int_equal(hip.hipGraphInstantiate(&exec, one, NULL, NULL, 0), hipSuccess);
    assert_int_equal(hip.hipGraphExecUpdate(exec, two, &node, &result), hipSuccess);
    assert_int_equal(hip.hipGraphExecUpdate(exec, longer, &node, &result),
                     hipErrorGraphExecUpdateFailure);
    assert_int_equal(hip.hipGraphLaunch(exec, stream), hipSuccess);
    assert_int_equal(hip.hipMemcpyDtoHAsync(pinned, (hipDeviceptr_t)memory, 8, stream), hipSuccess);
    assert_int_equal(hip.hipStreamSynchronize(stream), hipSuccess);
    assert_memory_equal(pinned, "\2\0\0\0\2\0\0\0", 8);
    assert_int_equal(hip.hipGraphExecDestroy(exec), hipSuccess);
    assert_int_equal(hip.hipGraphDestroy(one), hipSuccess);
    assert_int_equal(hip.hipGraphDestroy(two), hipSuccess);
    assert_int_equal(hip.hipGraphDestroy(longer), hipSuccess);
}

/* ROCm/clr, hipStreamEndCapture: only a success resets the streams. */
static void a_failed_end_leaves_its_streams_captured_until_the_first_is_destroyed(void **state)
{
    hipStream_t stream = new_stream(hipStreamNonBlocking), joined = new_stream(hipStreamNonBlocking);
    hipEvent_t event = new_event(hipEventDisableTiming);
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    char *memory = new_memory(8);
    unsigned long long id = 0, other = 0;
    hipGraph_t graph = NULL;
    (void)state;
    assert_int_equal(hip.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
    assert_int_equal(hip.hipEventRecord(event, stream), hipSuccess);
    assert_int_equal(hip.hipStreamWaitEvent(joined, event, 0), hipSuccess);
    assert_int_equal(hip.hipStreamGetCaptureInfo(stream, &status, &id), hipSuccess);
    assert_int_equal(hip.hipStreamGetCaptureInfo(joined, &status, &other), hipSuccess);
    assert_true(id && id == other);
    assert_int_equal(hip.hipMemsetD32Async((hipDeviceptr_t)memory, 1, 2, joined), hipSuccess);
    assert_int_equal(hip.hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureUnjoined);
    assert_int_equal(hip.hipStreamIsCapturing(joined, &status), hipSuccess);
    assert_int_equal(status, hipStreamCaptureStatusInvalidated);
    assert_int_equal(hip.hipDeviceSynchronize(), hipSuccess);
    assert_int_equal(hip.hipStreamDestroy(stream), hipSuccess);
    assert_int_equal(hip.hipStreamIsCapturing(joined, &status), hipSuccess);
    assert_int_equal(status, hipStreamCaptureStatusNone);
}

static void a_stream_without_work_in_a_capture_need_not_join_again(void **state)
{
    hipStream_t stream = new_stream(hipStreamNonBlocking), joined = new_stream(hipStreamNonBlocking);
    hipEvent_t event = new_event(hipEventDisableTiming);
    hipGraph_t graph = NULL;
    (void)state;
    assert_int_equal(hip.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
    assert_int_equal(hip.hipEventRecord(event, stream), hipSuccess);
    assert_int_equal(hip.hipStreamWaitEvent(joined, event, 0), hipSuccess);
    assert_int_equal(hip.hipStreamEndCapture(stream, &graph), hipSuccess);
    assert_int_equal(hip.hipGraphDestroy(graph), hipSuccess);
}

/* ROCm/clr, hipGraphExecUpdate: changes node by node until one differs. */
static void an_update_that_fails_has_changed_the_first_operations(void **state)
{
    char *memory = new_memory(8), *other = new_memory(8), *pinned = new_pinned(8);
    hipStream_t stream = new_stream(hipStreamNonBlocking);
    hipGraph_t one = fill_in_a_graph(memory, 1, 2), two = NULL;
    hipGraphExecUpdateResult result;
    hipGraphNode_t node;
    hipGraphExec_t exec;
    (void)state;
    assert_int_equal(hip.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
    assert_int_equal(hip.hipMemsetD32Async((hipDeviceptr_t)other, 2, 2, stream), hipSuccess);
    assert_int_equal(hip.hipMemcpyDtoHAsync(pinned, (hipDeviceptr_t)other, 8, stream), hipSuccess);
    assert_int_equal(hip.hipStreamEndCapture(stream, &two), hipSuccess);
    assert_int_equal(hip.hipGraphInstantiate(&exec, one, NULL, NULL, 0), hipSuccess);
    assert_int_equal(hip.hipGraphExecUpdate(exec, two, &node, &result),
                     hipErrorGraphExecUpdateFailure);
    assert_int_equal(hip.hipGraphLaunch(exec, stream), hipSuccess);
    assert_int_equal(hip.hipMemcpyDtoHAsync(pinned, (hipDeviceptr_t)other, 8, stream), hipSuccess);
    assert_int_equal(hip.hipStreamSynchronize(stream), hipSuccess);
    assert_memory_equal(pinned, "\2\0\0\0\2\0\0\0", 8);
    assert_int_equal(hip.hipGraphExecDestroy(exec), hipSuccess);
    assert_int_equal(hip.hipGraphDestroy(one), hipSuccess);
    assert_int_equal(hip.hipGraphDestroy(two), hipSuccess);
}

static const struct CMUnitTest tests[] = {
    HIP_TEST(a_pageable_source_is_read_late),
    HIP_TEST(the_null_stream_waits_for_blocking_streams_only),
    HIP_TEST(a_null_stream_is_that_of_the_current_device),
    HIP_TEST(streams_have_flags_and_priorities),
    HIP_TEST(the_null_stream_has_no_flags),
    HIP_TEST(an_event_that_was_destroyed_is_an_error),
    HIP_TEST(not_ready_is_the_last_error_up_to_6_only),
    HIP_TEST(another_stream_waits_for_an_event),
    HIP_TEST(events_without_timing_have_no_times),
    HIP_TEST(a_free_waits_for_the_whole_device),
    HIP_TEST(allocation_and_free_are_ordered_on_a_stream),
    HIP_TEST(a_capture_is_seen_and_invalidated_by_a_careless_call),
    HIP_TEST(an_event_of_a_stream_that_is_captured_now_is_refused_as_in_its_version),
    HIP_TEST(a_wait_for_work_outside_of_a_capture_is_not_captured),
    HIP_TEST(host_functions_of_two_streams_run_one_at_a_time),
    HIP_TEST(a_stream_without_work_in_a_capture_need_not_join_again),
    HIP_TEST(the_null_stream_can_be_asked_beside_a_blocking_capture),
#if FROM_57
    HIP_TEST(no_stream_waits_for_an_event_of_a_stream_that_is_captured_now),
#endif
    HIP_TEST(a_synchronize_of_the_device_invalidates_any_capture),
    HIP_TEST(a_graph_runs_at_its_launch_and_is_updated_by_one_of_its_shape),
    HIP_TEST(a_failed_end_leaves_its_streams_captured_until_the_first_is_destroyed),
    HIP_TEST(an_update_that_fails_has_changed_the_first_operations),
};

int run_stream_tests(void)
{
    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
