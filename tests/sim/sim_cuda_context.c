/* sim_cuda_context.c: CUDA: the current context, its settings and its peers. */
#include "sim_cuda.h"

static CUcontext handle_of(struct sim_context *context)
{
    return (CUcontext)(void *)context;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
    CUresult result = cuda_enter("cuCtxGetCurrent");
    if (result)
        return result;
    if (!pctx)
        return cuda_leave(SIM_INVALID);
    *pctx = handle_of(sim_context_top());
    return cuda_leave(SIM_OK);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    struct sim_context *context;
    CUresult result = cuda_enter("cuCtxSetCurrent");
    if (result)
        return result;
    context = ctx ? sim_table_find(&sim_contexts, ctx) : NULL;
    if (ctx && !context)
        return cuda_leave(SIM_NO_CONTEXT);
    return cuda_leave(sim_context_replace(context));
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    struct sim_context *context;
    CUresult result = cuda_enter("cuCtxPushCurrent_v2");
    if (result)
        return result;
    context = sim_table_find(&sim_contexts, ctx);
    return cuda_leave(context ? sim_context_push(context) : SIM_NO_CONTEXT);
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
    struct sim_context *context;
    CUresult result = cuda_enter("cuCtxPopCurrent_v2");
    if (result)
        return result;
    context = sim_context_pop();
    if (context && pctx)
        *pctx = handle_of(context);
    return cuda_leave(context ? SIM_OK : SIM_NO_CONTEXT);
}

static CUresult device_of(const char *name, CUdevice *device, CUcontext ctx)
{
    struct sim_context *context;
    int status;
    CUresult result = cuda_enter(name);
    if (result)
        return result;
    status = cuda_find_context(ctx, &context);
    if (!status && !device)
        status = SIM_INVALID;
    if (!status)
        *device = context->device->ordinal;
    return cuda_leave(status);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    return device_of("cuCtxGetDevice", device, NULL);
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    return device_of("cuCtxGetDevice_v2", device, ctx);
}

static CUresult synchronize(const char *name, CUcontext ctx)
{
    struct sim_context *context;
    int status;
    CUresult result = cuda_enter(name);
    if (result)
        return result;
    status = cuda_find_context(ctx, &context);
    if (!status)
        status = sim_capture_unsafe();
    if (!status)
        status = sim_capture_refuse_all(context);
    if (status)
        return cuda_leave(status);
    sim_wait_context(context);
    return cuda_leave(context->lost);
}

CUresult cuCtxSynchronize(void)
{
    return synchronize("cuCtxSynchronize", NULL);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
    return synchronize("cuCtxSynchronize_v2", ctx);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    struct sim_context *context;
    CUresult result = cuda_enter_context("cuCtxGetFlags", &context);
    if (result)
        return result;
    if (!flags)
        return cuda_leave(SIM_INVALID);
    *flags = context->flags;
    return cuda_leave(SIM_OK);
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    struct sim_context *context;
    int status;
    CUresult result = cuda_enter("cuCtxGetId");
    if (result)
        return result;
    status = cuda_find_context(ctx, &context);
    if (!status && !ctxId)
        status = SIM_INVALID;
    if (!status)
        *ctxId = context->id;
    return cuda_leave(status);
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    struct sim_context *context;
    int status;
    CUresult result = cuda_enter("cuCtxGetApiVersion");
    if (result)
        return result;
    status = cuda_find_context(ctx, &context);
    if (!status && !version)
        status = SIM_INVALID;
    if (!status)
        *version = 3020;
    return cuda_leave(status);
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct sim_context *context;
    CUresult result = cuda_enter_context("cuCtxGetStreamPriorityRange", &context);
    if (result)
        return result;
    if (leastPriority)
        *leastPriority = 0;
    if (greatestPriority)
        *greatestPriority = -5;
    return cuda_leave(SIM_OK);
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    struct sim_context *context;
    CUresult result = cuda_enter_context("cuCtxGetLimit", &context);
    return result ? result : cuda_leave(sim_context_get_limit(context, limit, pvalue));
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct sim_context *context;
    CUresult result = cuda_enter_context("cuCtxSetLimit", &context);
    return result ? result : cuda_leave(sim_context_set_limit(context, limit, value));
}

static CUresult change_peer(const char *name, CUcontext peer, unsigned flags, bool enable)
{
    struct sim_context *context, *other;
    unsigned bit;
    CUresult result = cuda_enter_context(name, &context);
    if (result)
        return result;
    other = sim_table_find(&sim_contexts, peer);
    if (!other)
        return cuda_leave(SIM_NO_CONTEXT);
    if (flags)
        return cuda_leave(SIM_INVALID);
    if (other->device == context->device)
        return cuda_leave(enable ? CUDA_ERROR_INVALID_DEVICE : SIM_PEER_DISABLED);
    bit = 1u << other->device->ordinal;
    if (enable == ((context->peers & bit) != 0))
        return cuda_leave(enable ? SIM_PEER_ENABLED : SIM_PEER_DISABLED);
    context->peers ^= bit;
    return cuda_leave(SIM_OK);
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    return change_peer("cuCtxEnablePeerAccess", peerContext, Flags, true);
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
    return change_peer("cuCtxDisablePeerAccess", peerContext, 0, false);
}

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    struct sim_context *context;
    struct sim_event *event;
    int status;
    CUresult result = cuda_enter_event("cuCtxRecordEvent", hEvent, &event);
    if (result)
        return result;
    status = cuda_find_context(hCtx, &context);
    if (!status)
        status = sim_capture_refuse_all(context);
    return cuda_leave(status ? status : sim_event_record_context(event, context));
}
