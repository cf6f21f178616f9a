/* graph.c: captures of streams into graphs, and their launches. */
#include "driver.h"

#include <stdlib.h>

/* Relaxed: the core refuses what must not be captured. The other modes would also invalidate the capture for calls of
 * other code that are harmless, such as an allocation or a free by a garbage collector, and tie its end to this thread. */
gg_status cuhip_capture_begin(struct gg_stream_impl *stream)
{
    if (!cuhip_driver.begin_capture)
        return cuhip_missing(offsetof(struct cuhip_driver, begin_capture));
    const int code =
        CUHIP_IN_CONTEXT(begin_capture, stream->device, stream,
                         cuhip_driver.begin_capture(stream->native, cuhip.capture_relaxed));
    return code ? cuhip_fail(code, "beginning a capture") : GG_OK;
}

static bool stream_is_captured(const struct gg_stream_impl *stream)
{
    int state = 0;
    return cuhip_driver.stream_capturing &&
           !cuhip_clear_error(
               CUHIP_IN_CONTEXT(stream_capturing, stream->device, stream,
                                cuhip_driver.stream_capturing(stream->native, &state))) &&
           state;
}

gg_status cuhip_capture_id(struct gg_stream_impl *stream, uint64_t *id)
{
    enum { VALID = 1 };
    unsigned long long number = 0;
    int state = 0;
    if (!cuhip_driver.capture_info)
        return cuhip_missing(offsetof(struct cuhip_driver, capture_info));
    const int code = CUHIP_IN_CONTEXT(capture_info, stream->device, stream,
                                      cuhip_driver.capture_info(stream->native, &state, &number));
    *id = !code && state == VALID ? number + 1 : 0; /* never 0 */
    return code ? cuhip_fail(code, "the id of a capture") : GG_OK;
}

bool cuhip_captures_partly(const struct gg_stream_impl *stream)
{
    return cuhip.captures_partly && stream != &stream->device->default_stream &&
           stream_is_captured(stream);
}

/* For work that the driver does not capture but runs at once, in @p stream or not in any order. */
gg_status cuhip_check_capturable(const struct gg_stream_impl *stream, const char *what)
{
    if (!cuhip_captures_partly(stream))
        return GG_OK;
    return cuhip_api->fail(
        GG_ERR_UNSUPPORTED, NULL,
        "stream is capturing: this driver would run %s at once; do so before the "
        "capture begins",
        what);
}

static void recording_release(struct cuhip_recording *recording)
{
    if (!recording || atomic_fetch_sub(&recording->references, 1) != 1)
        return;
    cuhip_log_failure(CUHIP_RELEASE(graph_destroy, recording->device, NULL,
                                    cuhip_driver.graph_destroy(recording->native)),
                      "destroying a graph");
    pthread_mutex_destroy(&recording->lock);
    free(recording);
}

/* Codes of an end that has reached the capture. A second end would read what the first has freed. */
static bool is_capture_error(int code)
{
    return code >= cuhip.capture_error_first && code <= cuhip.capture_error_last;
}

/* A destroyed stream leaves its capture, and with it the streams that joined. Its own earlier work goes on. False if
 * the stream must remain, because other code may have its handle. */
static bool stream_replace(struct gg_stream_impl *stream)
{
    void *replaced = stream->native, *made = NULL;
    if (!stream->owned || atomic_load(&stream->exported) ||
        cuhip_clear_error(
            CUHIP_IN_CONTEXT(stream_create, stream->device, NULL,
                             cuhip_driver.stream_create(&made, stream->flags, stream->priority))))
        return false;
    stream->native = made;
    cuhip_log_failure(cuhip_driver.stream_destroy(replaced), "destroying a captured stream");
    return true;
}

/* Whatever has failed, the stream should not remain captured: nothing would run on it any more. */
static int stream_end_capture(struct gg_stream_impl *stream, void **native, bool *left)
{
    void *dropped = NULL;
    const int code = CUHIP_IN_CONTEXT(end_capture, stream->device, stream,
                                      cuhip_driver.end_capture(stream->native, native));
    if (!code || !stream_is_captured(stream))
        return code;
    if (is_capture_error(code)) {
        *left = !stream_replace(stream);
        return code;
    }
    const int again = CUHIP_IN_CONTEXT(end_capture, stream->device, stream,
                                       cuhip_driver.end_capture(stream->native, &dropped));
    cuhip_log_failure(again, "ending a capture again");
    if (!again)
        cuhip_log_failure(
            CUHIP_RELEASE(graph_destroy, stream->device, NULL, cuhip_driver.graph_destroy(dropped)),
            "destroying a dropped graph");
    return code;
}

/* Takes over @p native. */
static gg_status recording_new(struct gg_device_impl *device, void *native,
                               struct cuhip_recording **out)
{
    struct cuhip_recording *recording = malloc(sizeof *recording);
    if (!recording) {
        cuhip_log_failure(
            CUHIP_RELEASE(graph_destroy, device, NULL, cuhip_driver.graph_destroy(native)),
            "destroying a graph");
        return cuhip_no_memory(sizeof *recording, "a graph");
    }
    *recording = (struct cuhip_recording){.references = 1, .device = device, .native = native};
    pthread_mutex_init(&recording->lock, NULL);
    *out = recording;
    return GG_OK;
}

static gg_status graph_new(struct cuhip_recording *recording, struct gg_graph_impl **out)
{
    struct gg_device_impl *device = recording->device;
    struct gg_graph_impl *graph = calloc(1, sizeof *graph);
    if (!graph)
        return cuhip_no_memory(sizeof *graph, "a graph");
    *graph = (struct gg_graph_impl){.device = device, .recording = recording};
    const int code = CUHIP_IN_CONTEXT(graph_destroy, device, NULL,
                                      cuhip.exec_create(&graph->exec, recording->native));
    if (code) {
        free(graph);
        return cuhip_fail(code, "making a graph executable");
    }
    *out = graph;
    return GG_OK;
}

gg_status cuhip_capture_end(struct gg_stream_impl *stream, struct gg_graph_impl **out)
{
    struct cuhip_recording *recording = NULL;
    void *native = NULL;
    bool left = false;
    const int code = stream_end_capture(stream, &native, &left);
    if (code)
        return cuhip_fail(code, "ending a capture%s",
                          left
                              ? "; this driver leaves the stream captured after an error: close it "
                                "and create another stream"
                              : "");
    gg_status status = recording_new(stream->device, native, &recording);
    if (!status && out)
        status = graph_new(recording, out);
    if (status || !out)
        recording_release(recording);
    return status;
}

gg_status cuhip_graph_launch(struct gg_stream_impl *stream, struct gg_graph_impl *graph)
{
    if (graph->broken)
        return cuhip_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                               "an update of the graph has failed and could not be undone: capture "
                               "the work again");
    const int code = CUHIP_IN_CONTEXT(exec_launch, stream->device, stream,
                                      cuhip_driver.exec_launch(graph->exec, stream->native));
    return code ? cuhip_fail(code, "launching a graph") : GG_OK;
}

/* Several executable graphs may have one recording, which the driver does not protect. */
static int exec_update(const struct gg_graph_impl *graph, struct cuhip_recording *recording)
{
    pthread_mutex_lock(&recording->lock);
    const int code = CUHIP_IN_CONTEXT(graph_destroy, graph->device, NULL,
                                      cuhip.exec_update(graph->exec, recording->native));
    pthread_mutex_unlock(&recording->lock);
    return code;
}

gg_status cuhip_graph_update(struct gg_graph_impl *graph, struct gg_graph_impl *other)
{
    struct cuhip_recording *replaced = graph->recording;
    const int code = exec_update(graph, other->recording);
    if (code) { /* a driver may have changed the first operations */
        const gg_status status = cuhip_fail(code, "updating a graph");
        graph->broken = cuhip.updates_partly && cuhip_clear_error(exec_update(graph, replaced));
        return status;
    }
    graph->recording = other->recording;
    graph->broken = false;
    atomic_fetch_add(&graph->recording->references, 1);
    recording_release(replaced);
    return GG_OK;
}

void cuhip_graph_destroy(struct gg_graph_impl *graph)
{
    cuhip_log_failure(
        CUHIP_RELEASE(exec_destroy, graph->device, NULL, cuhip_driver.exec_destroy(graph->exec)),
        "destroying an executable graph");
    recording_release(graph->recording);
    free(graph);
}
