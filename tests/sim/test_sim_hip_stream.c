/* The simulated HIP runtime's streams, events and captures. */
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

static void streams_tell_their_flags_and_priorities(void **state)
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

static void a_stale_handle_is_an_error(void **state)
{
    hipStream_t stream = new_stream(0);
    hipEvent_t event = new_event(0);
    (void)state;
    assert_int_equal(hip.hipStreamDestroy(stream), hipSuccess);
    assert_int_equal(hip.hipStreamQuery(stream), hipErrorContextIsDestroyed);
    assert_int_equal(hip.hipEventDestroy(event), hipSuccess);
    assert_int_equal(hip.hipEventQuery(event), hipErrorInvalidHandle);
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

static void memory_comes_and_goes_in_the_order_of_a_stream(void **state)
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

static void a_capture_is_seen_and_spoilt_by_a_careless_call(void **state)
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

static const struct CMUnitTest tests[] = {
    HIP_TEST(a_pageable_source_is_read_late),
    HIP_TEST(the_null_stream_waits_for_blocking_streams_only),
    HIP_TEST(a_null_stream_is_that_of_the_current_device),
    HIP_TEST(streams_tell_their_flags_and_priorities),
    HIP_TEST(a_stale_handle_is_an_error),
    HIP_TEST(another_stream_waits_for_an_event),
    HIP_TEST(events_without_timing_have_no_times),
    HIP_TEST(a_free_waits_for_the_whole_device),
    HIP_TEST(memory_comes_and_goes_in_the_order_of_a_stream),
    HIP_TEST(a_capture_is_seen_and_spoilt_by_a_careless_call),
};

int run_stream_tests(void)
{
    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
