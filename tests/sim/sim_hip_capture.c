/* HIP face: stream capture and the graphs that come of it. */
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
    status = sim_capture_end(queue, &graph);
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
    if (result)
        return result;
    if (!pCaptureStatus)
        return hip_leave(SIM_INVALID);
    if (queue->legacy)
        status = sim_capture_implicit(queue->context);
    if (!status)
        *pCaptureStatus = status_of(queue);
    return hip_leave(status);
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
