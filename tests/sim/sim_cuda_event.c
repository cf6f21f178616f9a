/* sim_cuda_event.c: CUDA: events. */
#include "sim_cuda.h"

enum { EVENT_FLAGS = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS };

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    struct sim_context *context;
    struct sim_event *event;
    int status;
    CUresult result = cuda_enter_context("cuEventCreate", &context);
    if (result)
        return result;
    if (!phEvent || Flags & ~(unsigned)EVENT_FLAGS)
        return cuda_leave(SIM_INVALID);
    if (Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING))
        return cuda_leave(SIM_INVALID);
    status = sim_event_create(context, !(Flags & CU_EVENT_DISABLE_TIMING), &event);
    if (status)
        return cuda_leave(status);
    event->blocking = (Flags & CU_EVENT_BLOCKING_SYNC) != 0;
    *phEvent = (CUevent)(void *)event;
    return cuda_leave(SIM_OK);
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
    struct sim_event *event;
    CUresult result;
    cuda_attempt(&sim_events, hEvent);
    result = cuda_enter_event("cuEventDestroy_v2", hEvent, &event);
    if (result)
        return result;
    sim_event_destroy(event);
    return cuda_leave(SIM_OK);
}

static CUresult record(const char *name, CUevent hEvent, CUstream hStream, unsigned flags)
{
    struct sim_event *event;
    struct sim_queue *queue;
    int status;
    CUresult result = cuda_enter_event(name, hEvent, &event);
    if (result)
        return result;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return cuda_leave(SIM_INVALID);
    status = cuda_find_stream(hStream, &queue);
    if (!status)
        status = sim_event_record(event, queue, flags == CU_EVENT_RECORD_EXTERNAL);
    return cuda_leave(status);
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return record("cuEventRecord", hEvent, hStream, 0);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    return record("cuEventRecordWithFlags", hEvent, hStream, flags);
}

CUresult cuEventQuery(CUevent hEvent)
{
    struct sim_event *event;
    int status = SIM_OK;
    CUresult result = cuda_enter_event("cuEventQuery", hEvent, &event);
    if (result)
        return result;
    sim_wait_for_others_room();
    if (!sim_capture_find(event->capture_id))
        status = event->capture_id ? SIM_CAPTURED_EVENT : sim_capture_unsafe();
    return cuda_leave(status ? status : sim_event_query(event));
}

CUresult cuEventSynchronize(CUevent hEvent)
{
    struct sim_event *event;
    int status = SIM_OK;
    CUresult result = cuda_enter_event("cuEventSynchronize", hEvent, &event);
    if (result)
        return result;
    if (!sim_capture_find(event->capture_id))
        status = event->capture_id ? SIM_CAPTURED_EVENT : sim_capture_unsafe();
    return cuda_leave(status ? status : sim_event_wait(event));
}

static CUresult elapsed(const char *name, float *ms, CUevent hStart, CUevent hEnd)
{
    struct sim_event *start, *stop;
    CUresult result = cuda_enter_event(name, hStart, &start);
    if (result)
        return result;
    stop = sim_table_find(&sim_events, hEnd);
    if (!stop)
        return cuda_leave(SIM_BAD_HANDLE);
    return cuda_leave(ms ? sim_event_elapsed(start, stop, ms) : SIM_INVALID);
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return elapsed("cuEventElapsedTime", pMilliseconds, hStart, hEnd);
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return elapsed("cuEventElapsedTime_v2", pMilliseconds, hStart, hEnd);
}
