/* sim_cuda_graph.c: CUDA: stream capture and its graphs. */
#include "sim_cuda.h"

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream("cuStreamBeginCapture_v2", hStream, &queue);
    if (result)
        return result;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return cuda_leave(SIM_INVALID);
    return cuda_leave(sim_capture_begin(queue, (enum sim_capture_mode)mode));
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    struct sim_queue *queue;
    struct sim_graph *graph = NULL;
    int status;
    CUresult result = cuda_enter_stream("cuStreamEndCapture", hStream, &queue);
    if (result)
        return result;
    if (!phGraph)
        return cuda_leave(SIM_INVALID);
    status = sim_capture_end(queue, false, &graph);
    if (!status)
        *phGraph = (CUgraph)(void *)graph;
    return cuda_leave(status);
}

static CUstreamCaptureStatus status_of(const struct sim_queue *queue)
{
    if (!queue->capture)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return queue->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUresult capture_info(const char *name, CUstream stream, struct sim_queue **queue,
                             CUstreamCaptureStatus *out)
{
    CUresult result = cuda_enter_stream(name, stream, queue);
    if (result)
        return result;
    if (!out)
        return cuda_leave(SIM_INVALID);
    if ((*queue)->legacy && sim_capture_beside((*queue)->context)) /* an H200 keeps it */
        return cuda_leave(SIM_CAPTURE_IMPLICIT);
    *out = status_of(*queue);
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    struct sim_queue *queue;
    CUresult result = capture_info("cuStreamIsCapturing", hStream, &queue, captureStatus);
    return result ? result : cuda_leave(SIM_OK);
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                cuuint64_t *id_out)
{
    struct sim_queue *queue;
    CUresult result = capture_info("cuStreamGetCaptureInfo", hStream, &queue, captureStatus_out);
    if (result)
        return result;
    if (id_out && queue->capture)
        *id_out = queue->capture->id;
    return cuda_leave(SIM_OK);
}

static void describe(const struct sim_capture *capture, cuuint64_t *id, CUgraph *graph,
                     const CUgraphNode **nodes, size_t *count)
{
    if (id)
        *id = capture->id;
    if (graph)
        *graph = (CUgraph)(void *)capture->graph;
    if (nodes)
        *nodes = NULL;
    if (count)
        *count = 0;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                   cuuint64_t *id_out, CUgraph *graph_out,
                                   const CUgraphNode **nodes_out, size_t *count_out)
{
    struct sim_queue *queue;
    CUresult result = capture_info("cuStreamGetCaptureInfo_v2", hStream, &queue, captureStatus_out);
    if (result)
        return result;
    if (queue->capture)
        describe(queue->capture, id_out, graph_out, nodes_out, count_out);
    return cuda_leave(SIM_OK);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                   cuuint64_t *id_out, CUgraph *graph_out,
                                   const CUgraphNode **nodes_out,
                                   const CUgraphEdgeData **edgeData_out, size_t *count_out)
{
    struct sim_queue *queue;
    CUresult result = capture_info("cuStreamGetCaptureInfo_v3", hStream, &queue, captureStatus_out);
    if (result)
        return result;
    if (queue->capture) {
        describe(queue->capture, id_out, graph_out, nodes_out, count_out);
        if (edgeData_out)
            *edgeData_out = NULL;
    }
    return cuda_leave(SIM_OK);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    enum sim_capture_mode before;
    CUresult result = cuda_enter("cuThreadExchangeStreamCaptureMode");
    if (result)
        return result;
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return cuda_leave(SIM_INVALID);
    before = sim_capture_thread_mode;
    sim_capture_thread_mode = (enum sim_capture_mode) * mode;
    *mode = (CUstreamCaptureMode)before;
    return cuda_leave(SIM_OK);
}

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    struct sim_graph *graph;
    CUresult result = cuda_enter("cuGraphCreate");
    if (result)
        return result;
    if (!phGraph || flags)
        return cuda_leave(SIM_INVALID);
    graph = sim_table_take(&sim_graphs);
    if (!graph)
        return cuda_leave(SIM_NO_MEMORY);
    *phGraph = (CUgraph)(void *)graph;
    return cuda_leave(SIM_OK);
}

CUresult cuGraphDestroy(CUgraph hGraph)
{
    struct sim_graph *graph;
    CUresult result;
    cuda_attempt(&sim_graphs, hGraph);
    result = cuda_enter("cuGraphDestroy");
    if (result)
        return result;
    graph = sim_table_find(&sim_graphs, hGraph);
    if (!graph || graph->slot.internal)
        return cuda_leave(SIM_INVALID);
    sim_graph_destroy(&sim_graphs, graph);
    return cuda_leave(SIM_OK);
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    const struct sim_graph *graph;
    CUresult result = cuda_enter("cuGraphGetNodes");
    if (result)
        return result;
    graph = sim_table_find(&sim_graphs, hGraph);
    if (!graph || !numNodes)
        return cuda_leave(SIM_INVALID);
    if (nodes)
        return cuda_leave(SIM_UNSUPPORTED);
    *numNodes = graph->count;
    return cuda_leave(SIM_OK);
}

static CUresult instantiate(const char *name, CUgraphExec *out, CUgraph handle, uint64_t flags)
{
    const struct sim_graph *graph;
    struct sim_graph *exec = NULL;
    int status;
    CUresult result = cuda_enter(name);
    if (result)
        return result;
    graph = sim_table_find(&sim_graphs, handle);
    if (!out || !graph || flags > 15)
        return cuda_leave(SIM_INVALID);
    status = sim_graph_copy(&sim_execs, graph, &exec);
    if (!status)
        *out = (CUgraphExec)(void *)exec;
    return cuda_leave(status);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                     unsigned long long flags)
{
    return instantiate("cuGraphInstantiateWithFlags", phGraphExec, hGraph, flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    CUresult result;
    if (!instantiateParams)
        return CUDA_ERROR_INVALID_VALUE;
    result =
        instantiate("cuGraphInstantiateWithParams", phGraphExec, hGraph, instantiateParams->flags);
    if (!result)
        instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return result;
}

static CUresult launch(const char *name, CUgraphExec handle, CUstream stream, bool run)
{
    const struct sim_graph *exec;
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream(name, stream, &queue);
    if (result)
        return result;
    exec = sim_table_find(&sim_execs, handle);
    if (!exec)
        return cuda_leave(SIM_INVALID);
    return cuda_leave(run ? sim_graph_launch(exec, queue) : SIM_OK);
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    return launch("cuGraphLaunch", hGraphExec, hStream, true);
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
    return launch("cuGraphUpload", hGraphExec, hStream, false);
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    struct sim_graph *exec;
    CUresult result;
    cuda_attempt(&sim_execs, hGraphExec);
    result = cuda_enter("cuGraphExecDestroy");
    if (result)
        return result;
    exec = sim_table_find(&sim_execs, hGraphExec);
    if (!exec)
        return cuda_leave(SIM_INVALID);
    sim_graph_destroy(&sim_execs, exec);
    return cuda_leave(SIM_OK);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo *resultInfo)
{
    struct sim_graph *exec, *graph;
    int status;
    CUresult result = cuda_enter("cuGraphExecUpdate_v2");
    if (result)
        return result;
    exec = sim_table_find(&sim_execs, hGraphExec);
    graph = sim_table_find(&sim_graphs, hGraph);
    if (!exec || !graph || graph->slot.internal || !resultInfo)
        return cuda_leave(SIM_INVALID);
    status = sim_graph_update(exec, graph, false);
    *resultInfo =
        (CUgraphExecUpdateResultInfo){.result = status ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
                                                       : CU_GRAPH_EXEC_UPDATE_SUCCESS};
    return cuda_leave(status);
}
