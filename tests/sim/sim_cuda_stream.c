/* sim_cuda_stream.c: CUDA: streams. */
#include "sim_cuda.h"

#include <stdlib.h>

enum { LOWEST = 0, HIGHEST = -5 };

static CUresult create(const char *name, CUstream *out, unsigned flags, int priority)
{
    struct sim_context *context;
    struct sim_queue *queue;
    int status;
    CUresult result = cuda_enter_context(name, &context);
    if (result)
        return result;
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return cuda_leave(SIM_INVALID);
    if (priority > LOWEST)
        priority = LOWEST;
    if (priority < HIGHEST)
        priority = HIGHEST;
    status = sim_queue_create(context, flags == CU_STREAM_NON_BLOCKING, priority, &queue);
    if (!status)
        *out = (CUstream)(void *)queue;
    return cuda_leave(status);
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    return create("cuStreamCreate", phStream, Flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    return create("cuStreamCreateWithPriority", phStream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result;
    cuda_attempt(&sim_queues, hStream);
    result = cuda_enter_stream("cuStreamDestroy_v2", hStream, &queue);
    if (result)
        return result;
    if (queue->slot.internal)
        return cuda_leave(SIM_BAD_HANDLE);
    sim_queue_destroy(queue);
    return cuda_leave(SIM_OK);
}

static bool takes_part(const struct sim_queue *queue)
{
    return queue->capture != NULL;
}

CUresult cuStreamQuery(CUstream hStream)
{
    struct sim_queue *queue;
    int status = SIM_OK;
    CUresult result = cuda_enter_stream("cuStreamQuery", hStream, &queue);
    if (result)
        return result;
    sim_wait_for_others_room();
    if (!takes_part(queue) && !queue->legacy)
        status = sim_capture_unsafe();
    return cuda_leave(status ? status : sim_queue_query(queue));
}

CUresult cuStreamSynchronize(CUstream hStream)
{
    struct sim_queue *queue;
    int status = SIM_OK;
    CUresult result = cuda_enter_stream("cuStreamSynchronize", hStream, &queue);
    if (result)
        return result;
    if (!takes_part(queue) && !queue->legacy)
        status = sim_capture_unsafe();
    return cuda_leave(status ? status : sim_queue_wait(queue));
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    struct sim_queue *queue;
    struct sim_event *event;
    CUresult result = cuda_enter_stream("cuStreamWaitEvent", hStream, &queue);
    if (result)
        return result;
    event = sim_table_find(&sim_events, hEvent);
    if (!event)
        return cuda_leave(SIM_BAD_HANDLE);
    /* An H200's driver refuses an event of a capture that has ended. */
    if (Flags || (event->capture_id && !queue->capture && !sim_capture_find(event->capture_id)))
        return cuda_leave(SIM_INVALID);
    return cuda_leave(sim_event_wait_on(queue, event));
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream("cuStreamGetFlags", hStream, &queue);
    if (result)
        return result;
    if (!flags)
        return cuda_leave(SIM_INVALID);
    int status = sim_capture_refuse(queue); /* on an H200 this invalidates a capture too */
    if (!status)
        *flags = queue->nonblocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    return cuda_leave(status);
}

CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream("cuStreamGetPriority", hStream, &queue);
    if (result)
        return result;
    if (!priority)
        return cuda_leave(SIM_INVALID);
    *priority = queue->priority;
    return cuda_leave(SIM_OK);
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream("cuStreamGetId", hStream, &queue);
    if (result)
        return result;
    if (!streamId)
        return cuda_leave(SIM_INVALID);
    *streamId = queue->id;
    return cuda_leave(SIM_OK);
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream("cuStreamGetDevice", hStream, &queue);
    if (result)
        return result;
    if (!device)
        return cuda_leave(SIM_INVALID);
    *device = queue->context->device->ordinal;
    return cuda_leave(SIM_OK);
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream("cuStreamGetCtx", hStream, &queue);
    if (result)
        return result;
    if (!pctx)
        return cuda_leave(SIM_INVALID);
    int status = sim_capture_refuse(queue); /* not measured: taken from cuStreamGetFlags */
    if (!status)
        *pctx = (CUcontext)(void *)queue->context;
    return cuda_leave(status);
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream("cuStreamGetCtx_v2", hStream, &queue);
    if (result)
        return result;
    if (!pCtx || !pGreenCtx)
        return cuda_leave(SIM_INVALID);
    int status = sim_capture_refuse(queue);
    if (!status) {
        *pCtx = (CUcontext)(void *)queue->context;
        *pGreenCtx = NULL;
    }
    return cuda_leave(status);
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    struct sim_work work = {.kind = SIM_HOST};
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream("cuLaunchHostFunc", hStream, &queue);
    if (result)
        return result;
    if (!fn)
        return cuda_leave(SIM_INVALID);
    work.host.run = fn;
    work.host.data = userData;
    return cuda_leave(sim_queue_submit(queue, &work));
}

struct callback {
    CUstreamCallback run;
    CUstream stream;
    void *data;
};

static void run_callback(void *data)
{
    struct callback *callback = data;
    callback->run(callback->stream, CUDA_SUCCESS, callback->data);
    free(callback);
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
                             unsigned int flags)
{
    struct sim_work work = {.kind = SIM_HOST};
    struct sim_queue *queue;
    struct callback *call;
    int status;
    CUresult result = cuda_enter_stream("cuStreamAddCallback", hStream, &queue);
    if (result)
        return result;
    if (!callback || flags)
        return cuda_leave(SIM_INVALID);
    if (queue->capture)
        return cuda_leave(sim_capture_refuse(queue));
    call = malloc(sizeof *call);
    if (!call)
        return cuda_leave(SIM_NO_MEMORY);
    *call = (struct callback){callback, hStream, userData};
    work.host.run = run_callback;
    work.host.data = call;
    status = sim_queue_submit(queue, &work);
    if (status)
        free(call);
    return cuda_leave(status);
}
