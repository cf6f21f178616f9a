/* test_sim_capture.c: stream capture: recorded work, invalidation, and graphs. */
#include "test_sim_driver.h"

static CUstream capturing(CUstreamCaptureMode mode)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    assert_int_equal(cu.cuStreamBeginCapture_v2(stream, mode), CUDA_SUCCESS);
    return stream;
}

static void captured_work_runs_when_its_graph_is_launched(void **state)
{
    CUstream stream = new_stream(0), fork = new_stream(0);
    CUevent event;
    CUgraph graph;
    CUgraphExec exec;
    int value = 1;
    CUdeviceptr memory = new_memory(sizeof value);
    (void)state;
    assert_int_equal(cu.cuMemcpyHtoD_v2(memory, &value, sizeof value), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    assert_int_equal(cu.cuEventRecord(event, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamWaitEvent(fork, event, 0), CUDA_SUCCESS); /* joins the capture */
    assert_int_equal(cu.cuMemsetD32Async(memory, 2, 1, fork), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventRecord(event, fork), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyDtoH_v2(&value, memory, sizeof value), CUDA_SUCCESS);
    assert_int_equal(value, 1);
    assert_int_equal(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuGraphDestroy(graph), CUDA_SUCCESS);
    assert_int_equal(cu.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyDtoH_v2(&value, memory, sizeof value), CUDA_SUCCESS);
    assert_int_equal(value, 2);
    assert_int_equal(cu.cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

static CUgraph fill_in_a_graph(CUdeviceptr memory, unsigned value, int times)
{
    CUstream stream = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
    CUgraph graph = NULL;
    for (int i = 0; i < times; i++)
        assert_int_equal(cu.cuMemsetD32Async(memory, value, 1, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    return graph;
}

static void an_update_changes_arguments_and_not_the_shape(void **state)
{
    int value = 0;
    CUdeviceptr memory = new_memory(sizeof value);
    CUgraph one = fill_in_a_graph(memory, 1, 1), two = fill_in_a_graph(memory, 2, 1),
            longer = fill_in_a_graph(memory, 3, 2);
    CUgraphExecUpdateResultInfo info;
    CUgraphExec exec;
    (void)state;
    assert_int_equal(cu.cuGraphInstantiateWithFlags(&exec, one, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuGraphExecUpdate_v2(exec, two, &info), CUDA_SUCCESS);
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    assert_int_equal(cu.cuGraphExecUpdate_v2(exec, longer, &info),
                     CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(cu.cuGraphLaunch(exec, new_stream(0)), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemcpyDtoH_v2(&value, memory, sizeof value), CUDA_SUCCESS);
    assert_int_equal(value, 2);
    assert_int_equal(cu.cuGraphExecDestroy(exec), CUDA_SUCCESS);
    assert_int_equal(cu.cuGraphDestroy(one), CUDA_SUCCESS);
    assert_int_equal(cu.cuGraphDestroy(two), CUDA_SUCCESS);
    assert_int_equal(cu.cuGraphDestroy(longer), CUDA_SUCCESS);
}

static void assert_invalidated(CUstream stream)
{
    CUgraph graph = (CUgraph)7;
    CUstreamCaptureStatus status;
    assert_int_equal(cu.cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_ptr_equal(graph, (CUgraph)7);
    assert_int_equal(cu.cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

static void unsafe_calls_invalidate_a_global_capture(void **state)
{
    const CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL;
    const CUresult refused = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    CUstream other = new_stream(CU_STREAM_NON_BLOCKING), stream;
    CUdeviceptr memory = new_memory(64), fresh;
    CUevent event;
    void *pinned;
    (void)state;
    cu.cuEventCreate(&event, 0);
    stream = capturing(global);
    assert_int_equal(cu.cuEventQuery(event), refused);
    assert_invalidated(stream);
    stream = capturing(global);
    assert_int_equal(cu.cuStreamSynchronize(other), refused);
    assert_invalidated(stream);
    stream = capturing(global);
    assert_int_equal(cu.cuMemAlloc_v2(&fresh, 64), refused);
    assert_invalidated(stream);
    stream = capturing(global);
    assert_int_equal(cu.cuMemFree_v2(memory), refused);
    assert_invalidated(stream);
    stream = capturing(global);
    assert_int_equal(cu.cuMemHostAlloc(&pinned, 64, 0), refused);
    assert_invalidated(stream);
    stream = capturing(global);
    assert_int_equal(cu.cuCtxSynchronize(), refused);
    assert_invalidated(stream);
    assert_int_equal(cu.cuMemFree_v2(memory), CUDA_SUCCESS);
}

/* As seen on an H200: in no mode, and without a current context too. */
static void a_query_of_an_address_invalidates_no_capture(void **state)
{
    static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                                CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                CU_STREAM_CAPTURE_MODE_RELAXED};
    CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    CUdeviceptr memory = new_memory(64);
    CUcontext context;
    CUgraph graph;
    unsigned type = 0;
    void *result = &type;
    (void)state;
    cu.cuCtxGetCurrent(&context);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        CUstream stream = capturing(modes[i]);
        assert_int_equal(cu.cuCtxSetCurrent(NULL), CUDA_SUCCESS);
        assert_int_equal(cu.cuPointerGetAttributes(1, &wanted, &result, memory), CUDA_SUCCESS);
        assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
        assert_int_equal(cu.cuPointerGetAttributes(1, &wanted, &result, (uintptr_t)&type), 0);
        assert_int_equal(type, 0);
        assert_int_equal(cu.cuCtxSetCurrent(context), CUDA_SUCCESS);
        assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
        assert_int_equal(cu.cuGraphDestroy(graph), CUDA_SUCCESS);
    }
}

/* As seen on an H200: whatever the mode of the capture. */
static void an_event_of_a_whole_context_invalidates_every_capture(void **state)
{
    CUcontext context;
    CUevent event;
    (void)state;
    cu.cuCtxGetCurrent(&context);
    cu.cuEventCreate(&event, 0);
    CUstream first = capturing(CU_STREAM_CAPTURE_MODE_GLOBAL);
    CUstream second = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_int_equal(cu.cuCtxRecordEvent(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_invalidated(first);
    assert_invalidated(second);
}

static void a_relaxed_thread_invalidates_nothing(void **state)
{
    CUstream stream = capturing(CU_STREAM_CAPTURE_MODE_GLOBAL);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUgraph graph;
    CUdeviceptr memory;
    (void)state;
    assert_int_equal(cu.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    memory = new_memory(64);
    assert_int_equal(cu.cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_int_equal(cu.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    assert_int_equal(cu.cuGraphDestroy(graph), CUDA_SUCCESS);
}

static void a_capturing_stream_cannot_be_asked_or_awaited(void **state)
{
    CUstream stream = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
    CUevent event;
    (void)state;
    assert_int_equal(cu.cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_invalidated(stream);
    stream = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
    cu.cuEventCreate(&event, 0);
    assert_int_equal(cu.cuEventRecord(event, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    assert_invalidated(stream);
}

static void an_event_of_a_capture_that_has_ended_is_refused(void **state)
{
    CUstream stream = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
    CUevent event;
    CUgraph graph;
    (void)state;
    cu.cuEventCreate(&event, 0);
    assert_int_equal(cu.cuEventRecord(event, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    assert_int_equal(cu.cuGraphDestroy(graph), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    assert_int_equal(cu.cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT);
    assert_int_equal(cu.cuEventRecord(event, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuEventSynchronize(event), CUDA_SUCCESS);
}

static void null_stream_work_beside_a_blocking_capture_is_refused(void **state)
{
    CUstream stream = new_stream(0);
    CUdeviceptr memory = new_memory(64);
    (void)state;
    assert_int_equal(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    assert_int_equal(cu.cuMemsetD8Async(memory, 0, 64, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_invalidated(stream);
    assert_int_equal(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    assert_int_equal(cu.cuMemAllocAsync(&memory, 64, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_invalidated(stream);
    assert_int_equal(cu.cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void a_capture_is_separate_from_other_work(void **state)
{
    CUstream stream, other = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event;
    CUgraph graph;
    CUdeviceptr memory = new_memory(64);
    (void)state;
    cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    assert_int_equal(cu.cuEventRecord(event, other), CUDA_SUCCESS);
    stream = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_int_equal(cu.cuStreamWaitEvent(stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    assert_invalidated(stream);
    stream = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_int_equal(cu.cuEventRecord(event, stream), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
    assert_int_equal(cu.cuMemsetD8Async(memory, 0, 64, other), CUDA_SUCCESS);
    assert_int_equal(cu.cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    assert_int_equal(cu.cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

int run_capture_tests(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(captured_work_runs_when_its_graph_is_launched),
        SIM_TEST(an_update_changes_arguments_and_not_the_shape),
        SIM_TEST(unsafe_calls_invalidate_a_global_capture),
        SIM_TEST(a_query_of_an_address_invalidates_no_capture),
        SIM_TEST(an_event_of_a_whole_context_invalidates_every_capture),
        SIM_TEST(a_relaxed_thread_invalidates_nothing),
        SIM_TEST(a_capturing_stream_cannot_be_asked_or_awaited),
        SIM_TEST(an_event_of_a_capture_that_has_ended_is_refused),
        SIM_TEST(null_stream_work_beside_a_blocking_capture_is_refused),
        SIM_TEST(a_capture_is_separate_from_other_work),
    };
    return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
