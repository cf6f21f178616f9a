/* sim_hip_stream.c: HIP: streams and host functions. */
#include "sim_hip.h"

#include <stdlib.h>

enum { LOWEST = 1, HIGHEST = -1 };

static hipError_t create(const char *name, hipStream_t *out, unsigned flags, int priority)
{
    struct sim_context *context;
    struct sim_queue *queue;
    int status;
    hipError_t result = hip_enter_context(name, &context);
    if (result)
        return result;
    if (!out || flags & ~(unsigned)hipStreamNonBlocking)
        return hip_leave(SIM_INVALID);
    if (priority > LOWEST)
        priority = LOWEST;
    if (priority < HIGHEST)
        priority = HIGHEST;
    status = sim_queue_create(context, flags == hipStreamNonBlocking, priority, &queue);
    if (!status)
        *out = (hipStream_t)(void *)queue;
    return hip_leave(status);
}

hipError_t hipStreamCreate(hipStream_t *stream)
{
    return create("hipStreamCreate", stream, 0, 0);
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags)
{
    return create("hipStreamCreateWithFlags", stream, flags, 0);
}

hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority)
{
    return create("hipStreamCreateWithPriority", stream, flags, priority);
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
    struct sim_queue *queue;
    hipError_t result;
    hip_attempt(&sim_queues, stream);
    result = hip_enter_stream("hipStreamDestroy", stream, &queue);
    if (result)
        return result;
    if (queue->slot.internal)
        return hip_leave(SIM_BAD_HANDLE);
    sim_queue_destroy(queue);
    return hip_leave(SIM_OK);
}

/* A query or wait of a stream outside a capture can invalidate captures of other streams. */
static int disturb(const struct sim_queue *queue)
{
    return queue->capture || queue->legacy ? SIM_OK : sim_capture_unsafe();
}

hipError_t hipStreamQuery(hipStream_t stream)
{
    struct sim_queue *queue;
    int status;
    hipError_t result = hip_enter_stream("hipStreamQuery", stream, &queue);
    if (result)
        return result;
    status = disturb(queue);
    return hip_leave(status ? status : sim_queue_query(queue));
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
    struct sim_queue *queue;
    int status;
    hipError_t result = hip_enter_stream("hipStreamSynchronize", stream, &queue);
    if (result)
        return result;
    status = disturb(queue);
    return hip_leave(status ? status : sim_queue_wait(queue));
}

/* ROCm/clr since 5.7, hipStreamWaitEvent_common: no stream waits for an event that was recorded, before the capture, on a
 * stream which is captured now. The capture stays valid. */
static bool is_hidden_by_capture(const struct sim_event *event)
{
    const struct sim_queue *queue = event->recorded_on;
    return SIM_HIP_57 && queue && sim_table_find(&sim_queues, queue) &&
           queue->id == event->recorded_id && queue->capture && !queue->capture->invalid &&
           queue->capture->id != event->capture_id;
}

/* The same function, in every version: only an event's own capture takes the wait. A wait for other work is queued at once,
 * on a captured stream too, and is not in the graph. */
static int wait_on(struct sim_queue *queue, struct sim_event *event)
{
    if (is_hidden_by_capture(event))
        return SIM_CAPTURE_ISOLATION;
    if (!queue->capture || sim_capture_find(event->capture_id))
        return sim_event_wait_on(queue, event);
    return sim_command_busy(event->record) ? sim_queue_mark(queue, event->record, NULL) : SIM_OK;
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
    struct sim_queue *queue;
    struct sim_event *found;
    hipError_t result = hip_enter_stream("hipStreamWaitEvent", stream, &queue);
    if (result == hipErrorContextIsDestroyed && (!event || SIM_HIP_57))
        return hip_note(hipErrorInvalidHandle);
    if (result)
        return result;
    found = sim_table_find(&sim_events, event);
    if (!found)
        return hip_leave(SIM_BAD_HANDLE);
    if (flags)
        return hip_leave(SIM_INVALID);
    return hip_leave(wait_on(queue, found));
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *flags)
{
    struct sim_queue *queue;
    hipError_t result = hip_enter_stream("hipStreamGetFlags", stream, &queue);
    if (result)
        return result;
    if (!flags || !stream)
        return hip_leave(SIM_INVALID);
    *flags = queue->nonblocking ? hipStreamNonBlocking : 0;
    return hip_leave(SIM_OK);
}

hipError_t hipStreamGetPriority(hipStream_t stream, int *priority)
{
    struct sim_queue *queue;
    hipError_t result = hip_enter_stream("hipStreamGetPriority", stream, &queue);
    if (result)
        return result;
    if (!priority)
        return hip_leave(SIM_INVALID);
    *priority = queue->priority;
    return hip_leave(SIM_OK);
}

/* ---- host functions */

static int submit(struct sim_queue *queue, void (*run)(void *), void *data)
{
    struct sim_work work = {.kind = SIM_HOST};
    work.host.run = run;
    work.host.data = data;
    return sim_queue_submit(queue, &work);
}

/* Kept until exit: a lost device drops work without running its callback. */
struct callback {
    struct callback *next;
    hipStreamCallback_t run;
    hipStream_t stream;
    void *data;
};

static void run_callback(void *data)
{
    struct callback *callback = data;
    callback->run(callback->stream, hipSuccess, callback->data);
}

static struct callback *callbacks; /* guarded by sim.lock */

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *userData,
                                unsigned int flags)
{
    struct sim_queue *queue;
    struct callback *call;
    int status;
    hipError_t result = hip_enter_stream("hipStreamAddCallback", stream, &queue);
    if (result)
        return result;
    if (!callback || flags)
        return hip_leave(SIM_INVALID);
    if (queue->capture)
        return hip_leave(sim_capture_refuse(queue));
    call = malloc(sizeof *call);
    if (!call)
        return hip_leave(SIM_NO_MEMORY);
    *call = (struct callback){callbacks, callback, stream, userData};
    callbacks = call;
    status = submit(queue, run_callback, call);
    return hip_leave(status);
}

#if SIM_HIP_57
hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn, void *userData)
{
    struct sim_queue *queue;
    hipError_t result = hip_enter_stream("hipLaunchHostFunc", stream, &queue);
    if (result)
        return result;
    return hip_leave(fn ? submit(queue, fn, userData) : SIM_INVALID);
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device)
{
    struct sim_queue *queue;
    hipError_t result = hip_enter_stream("hipStreamGetDevice", stream, &queue);
    if (result)
        return result;
    if (!device)
        return hip_leave(SIM_INVALID);
    *device = queue->context->device->ordinal;
    return hip_leave(SIM_OK);
}
#endif
