/* sim_hip_event.c: HIP: events. */
#include "sim_hip.h"

#include <stdio.h>
#include <stdlib.h>

static const unsigned event_flags = hipEventBlockingSync | hipEventDisableTiming |
                                    hipEventInterprocess | hipEventReleaseToDevice |
                                    hipEventReleaseToSystem;

static hipError_t create(const char *name, hipEvent_t *out, unsigned flags)
{
    struct sim_context *context;
    struct sim_event *event;
    int status;
    hipError_t result = hip_enter_context(name, &context);
    if (result)
        return result;
    if (!out || flags & ~event_flags ||
        (flags & hipEventInterprocess && !(flags & hipEventDisableTiming)))
        return hip_leave(SIM_INVALID);
    status = sim_event_create(context, !(flags & hipEventDisableTiming), &event);
    if (status)
        return hip_leave(status);
    event->blocking = (flags & hipEventBlockingSync) != 0;
    *out = (hipEvent_t)(void *)event;
    return hip_leave(SIM_OK);
}

hipError_t hipEventCreate(hipEvent_t *event)
{
    return create("hipEventCreate", event, 0);
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
    return create("hipEventCreateWithFlags", event, flags);
}

hipError_t hipEventDestroy(hipEvent_t event)
{
    struct sim_event *found;
    hipError_t result;
    hip_attempt(&sim_events, event);
    result = hip_enter_event("hipEventDestroy", event, &found);
    if (result)
        return result;
    sim_event_destroy(found);
    return hip_leave(SIM_OK);
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
    struct sim_event *found;
    struct sim_queue *queue;
    int status;
    hipError_t result = hip_enter_event("hipEventRecord", event, &found);
    if (result)
        return result;
    status = hip_find_stream(stream, &queue);
    return hip_leave(status ? status : sim_event_record(found, queue, false));
}

/* ROCm/clr: from 6.2 on ihipEventQuery reads the state of the stream that the event was recorded on, also after it was
 * destroyed, and so does hipEventSynchronize from 5.7 on. The simulator of each version ends the process then, since
 * gpuglue has the same code for all. */
static const struct sim_queue *captured_stream(const struct sim_event *event)
{
    const struct sim_queue *queue = event->recorded_on;
    if (!queue || queue->legacy)
        return NULL;
    if (!sim_table_find(&sim_queues, queue) || queue->id != event->recorded_id) {
        fprintf(stderr, "sim: a query of an event whose stream was destroyed\n");
        abort();
    }
    return queue->capture ? queue : NULL;
}

/* HIP 6 invalidates a capture that runs on that stream now; 5.7 refuses the wait. */
static int disturb(const struct sim_event *event, bool waits)
{
    const struct sim_queue *queue = captured_stream(event);
    if (queue && SIM_HIP == 6) {
        queue->capture->invalid = true;
        return SIM_CAPTURED_EVENT;
    }
    if (queue && waits && SIM_HIP == 5 && SIM_HIP_57)
        return SIM_CAPTURE_UNSUPPORTED;
    return sim_capture_find(event->capture_id) ? SIM_OK : sim_capture_unsafe();
}

hipError_t hipEventQuery(hipEvent_t event)
{
    struct sim_event *found;
    int status;
    hipError_t result = hip_enter_event("hipEventQuery", event, &found);
    if (result)
        return result;
    status = disturb(found, false);
    return hip_leave(status ? status : sim_event_query(found));
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
    struct sim_event *found;
    int status;
    hipError_t result = hip_enter_event("hipEventSynchronize", event, &found);
    if (result)
        return result;
    status = disturb(found, true);
    return hip_leave(status ? status : sim_event_wait(found));
}

hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop)
{
    struct sim_event *first, *last;
    hipError_t result = hip_enter_event("hipEventElapsedTime", start, &first);
    if (result)
        return result;
    last = sim_table_find(&sim_events, stop);
    if (!last)
        return hip_leave(SIM_BAD_HANDLE);
    return hip_leave(ms ? sim_event_elapsed(first, last, ms) : SIM_INVALID);
}
