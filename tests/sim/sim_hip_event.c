/* HIP face: events. */
#include "sim_hip.h"

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

static int disturb(const struct sim_event *event)
{
    return sim_capture_find(event->capture_id) ? SIM_OK : sim_capture_unsafe();
}

hipError_t hipEventQuery(hipEvent_t event)
{
    struct sim_event *found;
    int status;
    hipError_t result = hip_enter_event("hipEventQuery", event, &found);
    if (result)
        return result;
    status = disturb(found);
    return hip_leave(status ? status : sim_event_query(found));
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
    struct sim_event *found;
    int status;
    hipError_t result = hip_enter_event("hipEventSynchronize", event, &found);
    if (result)
        return result;
    status = disturb(found);
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
