/* sim_hip_capture.c: HIP: stream capture and its graphs. */
#include "sim_hip.h"

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
{
    struct sim_queue *queue;
    hipError_t result = hip_enter_stream("hipStreamBeginCapture", stream, &queue);
    if (result)
        return result;
    if ((unsigned)mode > hipStreamCaptureModeRelaxed)
        return hip_leave(SIM_INVALID);
    return hip_leave(sim_capture_begin(queue, (enum sim_capture_mode)mode));
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *pGraph)
{
    struct sim_queue *queue;
    struct sim_graph *graph = NULL;
    int status;
    hipError_t result = hip_enter_stream("hipStreamEndCapture", stream, &queue);
    if (result)
        return result;
    if (!pGraph)
        return hip_leave(SIM_INVALID);
    status = sim_capture_end(queue, true, &graph);
    if (!status)
        *pGraph = (hipGraph_t)(void *)graph;
    return hip_leave(status);
}

static hipStreamCaptureStatus status_of(const struct sim_queue *queue)
{
    if (!queue->capture)
        return hipStreamCaptureStatusNone;
    return queue->capture->invalid ? hipStreamCaptureStatusInvalidated
                                   : hipStreamCaptureStatusActive;
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus)
{
    struct sim_queue *queue;
    int status = SIM_OK;
    hipError_t result = hip_enter_stream("hipStreamIsCapturing", stream, &queue);
    if (!SIM_HIP_57 && result == hipErrorContextIsDestroyed) /* as HIP 5.2 does */
        return hip_note(hipErrorInvalidValue);
    if (result)
        return result;
    if (!pCaptureStatus)
        return hip_leave(SIM_INVALID);
    if (queue->legacy && sim_capture_beside(queue->context)) /* and the capture stays valid */
        status = SIM_CAPTURE_IMPLICIT;
    if (!status)
        *pCaptureStatus = status_of(queue);
    return hip_leave(status);
}

hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus,
                                   unsigned long long *pId)
{
    struct sim_queue *queue;
    hipError_t result = hip_enter_stream("hipStreamGetCaptureInfo", stream, &queue);
    if (result)
        return result;
    if (!pCaptureStatus)
        return hip_leave(SIM_INVALID);
    *pCaptureStatus = status_of(queue);
    if (pId && *pCaptureStatus == hipStreamCaptureStatusActive)
        *pId = queue->capture->id;
    return hip_leave(SIM_OK);
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode)
{
    enum sim_capture_mode before;
    hipError_t result = hip_enter("hipThreadExchangeStreamCaptureMode");
    if (result)
        return result;
    if (!mode || (unsigned)*mode > hipStreamCaptureModeRelaxed)
        return hip_leave(SIM_INVALID);
    before = sim_capture_thread_mode;
    sim_capture_thread_mode = (enum sim_capture_mode) * mode;
    *mode = (hipStreamCaptureMode)before;
    return hip_leave(SIM_OK);
}

hipError_t hipGraphDestroy(hipGraph_t graph)
{
    struct sim_graph *found;
    hipError_t result;
    hip_attempt(&sim_graphs, graph);
    result = hip_enter("hipGraphDestroy");
    if (result)
        return result;
    found = sim_table_find(&sim_graphs, graph);
    if (!found || found->slot.internal)
        return hip_leave(SIM_INVALID);
    sim_graph_destroy(&sim_graphs, found);
    return hip_leave(SIM_OK);
}

/* The error node and the log are optional, and stay as they are on success. */
hipError_t hipGraphInstantiate(hipGraphExec_t *pGraphExec, hipGraph_t graph,
                               hipGraphNode_t *pErrorNode, char *pLogBuffer, size_t bufferSize)
{
    const struct sim_graph *found;
    struct sim_graph *exec = NULL;
    int status;
    hipError_t result = hip_enter("hipGraphInstantiate");
    (void)pErrorNode;
    (void)pLogBuffer;
    (void)bufferSize;
    if (result)
        return result;
    found = sim_table_find(&sim_graphs, graph);
    if (!pGraphExec || !found || found->slot.internal)
        return hip_leave(SIM_INVALID);
    status = sim_graph_copy(&sim_execs, found, &exec);
    if (!status)
        *pGraphExec = (hipGraphExec_t)(void *)exec;
    return hip_leave(status);
}

hipError_t hipGraphLaunch(hipGraphExec_t graphExec, hipStream_t stream)
{
    const struct sim_graph *exec;
    struct sim_queue *queue;
    hipError_t result = hip_enter_stream("hipGraphLaunch", stream, &queue);
    if (result)
        return result;
    exec = sim_table_find(&sim_execs, graphExec);
    return hip_leave(exec ? sim_graph_launch(exec, queue) : SIM_INVALID);
}

hipError_t hipGraphExecUpdate(hipGraphExec_t hGraphExec, hipGraph_t hGraph,
                              hipGraphNode_t *hErrorNode_out,
                              hipGraphExecUpdateResult *updateResult_out)
{
    struct sim_graph *exec, *graph;
    int status;
    hipError_t result = hip_enter("hipGraphExecUpdate");
    if (result)
        return result;
    exec = sim_table_find(&sim_execs, hGraphExec);
    graph = sim_table_find(&sim_graphs, hGraph);
    if (!exec || !graph || graph->slot.internal || !hErrorNode_out || !updateResult_out)
        return hip_leave(SIM_INVALID);
    status = sim_graph_update(exec, graph, true);
    *updateResult_out = status ? hipGraphExecUpdateErrorTopologyChanged : hipGraphExecUpdateSuccess;
    return hip_leave(status);
}

hipError_t hipGraphExecDestroy(hipGraphExec_t graphExec)
{
    struct sim_graph *exec;
    hipError_t result;
    hip_attempt(&sim_execs, graphExec);
    result = hip_enter("hipGraphExecDestroy");
    if (result)
        return result;
    exec = sim_table_find(&sim_execs, graphExec);
    if (!exec)
        return hip_leave(SIM_INVALID);
    sim_graph_destroy(&sim_execs, exec);
    return hip_leave(SIM_OK);
}
