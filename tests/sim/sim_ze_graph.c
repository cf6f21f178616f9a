/* sim_ze_graph.c: Level Zero: the extension ZE_extension_record_replay_graph of API 1.17, after its text in ze_api.h of
 * level-zero 1.32 and level_zero/api/core/ze_graph_api_entrypoints.cpp of intel/compute-runtime 26.31.
 *
 * Appends to a list that is captured are recorded and do not run. Waits for the list on the host, and launches of graphs in it
 * (the devices do not report ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_SUBGRAPHS), return ..._GRAPH_CAPTURE_UNSUPPORTED, and the
 * capture goes on. An executable graph must not be destroyed while it runs, nor its recorded graph before it, and its lists
 * must be like the captured one: here that means in order, and of the same group. Of the events of a capture, by which other lists
 * join it, this driver takes none: appends with events return ..._GRAPH_CAPTURE_UNSUPPORTED. */
#include "sim_ze.h"

#include <stdio.h>

bool ze_has_graphs(void)
{
    return sim_setting("GPUGLUE_SIM_ZE_GRAPHS", 1);
}

static int check(const void *next)
{
    if (!SIM_ZE_SINCE(17))
        return SIM_UNSUPPORTED;
    return next ? SIM_INVALID : SIM_OK;
}

ze_result_t sim_zeCommandListBeginGraphCaptureExt(ze_command_list_handle_t hCommandList,
                                                  const void *next)
{
    struct sim_queue *list;
    const ze_result_t result =
        ze_enter_list("zeCommandListBeginGraphCaptureExt", hCommandList, &list);
    if (result)
        return result;
    int status = check(next);
    if (!status)
        status = list->capture ? SIM_INVALID : sim_capture_begin(list, SIM_CAPTURE_RELAXED);
    return ze_leave_list(list, status);
}

ze_result_t sim_zeCommandListEndGraphCaptureExt(ze_command_list_handle_t hCommandList,
                                                const void *next, void **graph)
{
    struct sim_queue *list;
    struct sim_graph *recorded = NULL;
    const ze_result_t result = ze_enter_list("zeCommandListEndGraphCaptureExt", hCommandList, &list);
    if (result)
        return result;
    int status = check(next);
    if (!status && !list->capture)
        status = SIM_ZE_NOT_CAPTURING;
    if (!status)
        status = graph ? sim_capture_end(list, false, &recorded) : SIM_INVALID;
    if (!status) {
        recorded->copies_only = list->copies_only;
        *graph = recorded;
    }
    return ze_leave_list(list, status);
}

/* One that is still captured belongs to its list. */
static struct sim_graph *recorded_graph(const void *handle)
{
    struct sim_graph *graph = sim_table_find(&sim_graphs, handle);
    return graph && !graph->slot.internal ? graph : NULL;
}

ze_result_t sim_zeGraphInstantiateExt(void *graph, const void *next, void **executable)
{
    struct sim_graph *made;
    const ze_result_t result = ze_enter("zeGraphInstantiateExt");
    if (result)
        return result;
    struct sim_graph *recorded = recorded_graph(graph);
    int status = check(next);
    if (!status)
        status = recorded && executable ? sim_graph_copy(&sim_execs, recorded, &made) : SIM_INVALID;
    if (status)
        return ze_leave(status);
    made->copies_only = recorded->copies_only;
    made->source = recorded;
    made->copies = 0;
    made->last = NULL;
    recorded->copies++;
    *executable = made;
    return ze_leave(SIM_OK);
}

static int launch(struct sim_queue *list, struct sim_graph *executable)
{
    if (list->capture)
        return SIM_CAPTURE_UNSUPPORTED;
    if (list->loose || list->copies_only != executable->copies_only)
        return SIM_INVALID;
    for (size_t i = 0; i < executable->count; i++)
        sim_list_append(list, &(struct sim_append){.work = executable->work[i]});
    sim_command_drop(executable->last);
    executable->last = list->last;
    if (list->last)
        list->last->references++;
    return SIM_OK;
}

ze_result_t sim_zeCommandListAppendGraphExt(ze_command_list_handle_t hCommandList, void *executable,
                                            const void *next, ze_event_handle_t signal,
                                            uint32_t count, ze_event_handle_t *waits)
{
    struct sim_queue *list;
    const ze_result_t result = ze_enter_list("zeCommandListAppendGraphExt", hCommandList, &list);
    if (result)
        return result;
    struct sim_graph *graph = sim_table_find(&sim_execs, executable);
    int status = check(next);
    if (!status && (signal || count || waits)) /* not needed so far */
        status = SIM_UNSUPPORTED;
    if (!status)
        status = graph ? launch(list, graph) : SIM_BAD_HANDLE;
    return ze_leave_list(list, status);
}

ze_result_t sim_zeExecutableGraphDestroyExt(void *executable)
{
    ze_attempt(&sim_execs, executable);
    const ze_result_t result = ze_enter("zeExecutableGraphDestroyExt");
    if (result)
        return result;
    struct sim_graph *graph = sim_table_find(&sim_execs, executable);
    if (!graph)
        return ze_leave(SIM_BAD_HANDLE);
    if (sim_command_busy(graph->last))
        fprintf(stderr, "gpuglue sim: a graph is destroyed while it runs\n");
    sim_command_drop(graph->last);
    graph->last = NULL;
    graph->source->copies--;
    sim_graph_destroy(&sim_execs, graph);
    return ze_leave(SIM_OK);
}

ze_result_t sim_zeGraphDestroyExt(void *graph)
{
    ze_attempt(&sim_graphs, graph);
    const ze_result_t result = ze_enter("zeGraphDestroyExt");
    if (result)
        return result;
    struct sim_graph *recorded = recorded_graph(graph);
    if (!recorded)
        return ze_leave(SIM_BAD_HANDLE);
    if (recorded->copies) {
        fprintf(stderr,
                "gpuglue sim: a recorded graph is destroyed before its executable graphs\n");
        return ze_leave(SIM_ILLEGAL_STATE);
    }
    sim_graph_destroy(&sim_graphs, recorded);
    return ze_leave(SIM_OK);
}
