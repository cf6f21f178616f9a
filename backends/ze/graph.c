/* graph.c: graphs, by the extension ZE_extension_record_replay_graph of API 1.17. The core records what is captured, and
 * lets the driver record it once more, on a list of its own. The user's lists are not captured, because the driver would
 * put the work of a second device on the first one (GraphInstatiateSettings::ForkPolicyFlat of intel/compute-runtime), and
 * because events of pools, which this backend uses, are shared by all launches and stay signalled after the first one
 * (zeGraphInstantiateExt in the specification). So no event is in a capture. Nor are kernels that print: those of a graph
 * are clones, and ModuleImp::getPrintfKernelWeakPtr, by which a wait finds their output, knows only the originals. */
#include "ze.h"

#include <stdlib.h>

struct gg_graph_impl {
    void *recording; /* must live as long as the graph */
    void *native;
};

bool ze_gpu_has_graphs(const struct ze_gpu *gpu)
{
    struct ze_plain_desc graphs = {.stype = ZE_STRUCTURE_TYPE_RECORD_REPLAY_GRAPH_EXT_PROPERTIES};
    struct ze_device_properties properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2,
                                              .next = &graphs};
    return !ze.device_properties(gpu->handle, &properties) &&
           graphs.flags & ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_IMMUTABLE_GRAPH;
}

/* A list that is not in order needs barriers, and a second list for copies would not be captured. That the loader has the
 * functions is known from ze_device_supports. */
gg_status ze_capture_begin(struct gg_stream_impl *stream)
{
    if (!stream->device->gpu->has_graphs || !stream->in_order || stream->needs_copy_list)
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL,
                            "the device reports no graphs, or has no single list in order");
    ze_stream_lock(stream);
    const int code = ze.capture_begin(stream->list, NULL);
    stream->captured = !code;
    pthread_mutex_unlock(&stream->lock);
    return code ? ze_fail(code, "beginning a capture") : GG_OK;
}

static void recording_destroy(void *recording)
{
    ze_log_failure(ze.recording_destroy(recording), "destroying a recorded graph");
}

/* Takes over @p recording. */
static gg_status graph_new(void *recording, struct gg_graph_impl **out)
{
    struct gg_graph_impl *graph = malloc(sizeof *graph);
    if (!graph) {
        recording_destroy(recording);
        return ze_no_memory("a graph");
    }
    *graph = (struct gg_graph_impl){.recording = recording};
    const int code = ze.recording_instantiate(recording, NULL, &graph->native);
    if (code) {
        recording_destroy(recording);
        free(graph);
        return ze_fail(code, "making a graph executable");
    }
    *out = graph;
    return GG_OK;
}

/* The driver returns what it has recorded with an error, too. */
gg_status ze_capture_end(struct gg_stream_impl *stream, struct gg_graph_impl **out)
{
    void *recording = NULL;
    ze_stream_lock(stream);
    const int code = ze.capture_end(stream->list, NULL, &recording);
    stream->captured = code != 0;
    pthread_mutex_unlock(&stream->lock);
    if (!code && out)
        return graph_new(recording, out);
    if (recording)
        recording_destroy(recording);
    return code ? ze_fail(code, "ending a capture") : GG_OK;
}

gg_status ze_graph_launch(struct gg_stream_impl *stream, struct gg_graph_impl *graph)
{
    const int code =
        ZE_APPEND(stream, ze.append_graph(stream->list, graph->native, NULL, NULL, 0, NULL));
    return code ? ze_fail(code, "launching a graph") : GG_OK;
}

void ze_graph_destroy(struct gg_graph_impl *graph)
{
    ze_log_failure(ze.graph_destroy(graph->native), "destroying an executable graph");
    recording_destroy(graph->recording);
    free(graph);
}
