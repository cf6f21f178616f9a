/* sim_cuda_primary.c: CUDA: primary contexts. */
#include "sim_cuda.h"

static unsigned primary_flags[SIM_MAX_DEVICES];

static bool flags_valid(unsigned flags)
{
    unsigned sched = flags & CU_CTX_SCHED_MASK;
    return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) &&
           (sched <= CU_CTX_SCHED_YIELD || sched == CU_CTX_SCHED_BLOCKING_SYNC);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct sim_device *device;
    int status = SIM_OK;
    CUresult result = cuda_enter_device("cuDevicePrimaryCtxRetain", dev, &device);
    if (result)
        return result;
    if (!pctx)
        return cuda_leave(SIM_INVALID);
    if (device->primary)
        device->primary->references++;
    else
        status = sim_context_create(device, true, &device->primary);
    if (status)
        return cuda_leave(status);
    device->primary->flags = primary_flags[dev];
    *pctx = (CUcontext)(void *)device->primary;
    return cuda_leave(SIM_OK);
}

static void attempt(CUdevice dev)
{
    struct sim_device *device;
    if (!sim_initialised() || sim_forked() || sim_finished())
        return;
    pthread_mutex_lock(&sim.lock);
    device = cuda_device(dev);
    if (device && device->primary)
        device->primary->slot.attempted = true;
    pthread_mutex_unlock(&sim.lock);
}

static CUresult release(const char *name, CUdevice dev)
{
    struct sim_device *device;
    CUresult result;
    attempt(dev);
    result = cuda_enter_device(name, dev, &device);
    if (result)
        return result;
    if (!device->primary)
        return cuda_leave(SIM_NO_CONTEXT);
    if (--device->primary->references == 0)
        sim_context_destroy(device->primary);
    else
        device->primary->slot.attempted = false; /* it is still retained */
    return cuda_leave(SIM_OK);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return release("cuDevicePrimaryCtxRelease", dev);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    return release("cuDevicePrimaryCtxRelease_v2", dev);
}

static CUresult reset(const char *name, CUdevice dev)
{
    struct sim_device *device;
    CUresult result = cuda_enter_device(name, dev, &device);
    if (result)
        return result;
    if (device->primary)
        sim_context_destroy(device->primary);
    return cuda_leave(SIM_OK);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
    return reset("cuDevicePrimaryCtxReset", dev);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    return reset("cuDevicePrimaryCtxReset_v2", dev);
}

static CUresult set_flags(const char *name, CUdevice dev, unsigned flags)
{
    struct sim_device *device;
    CUresult result = cuda_enter_device(name, dev, &device);
    if (result)
        return result;
    if (!flags_valid(flags))
        return cuda_leave(SIM_INVALID);
    primary_flags[dev] = flags;
    if (device->primary)
        device->primary->flags = flags;
    return cuda_leave(SIM_OK);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    return set_flags("cuDevicePrimaryCtxSetFlags", dev, flags);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    return set_flags("cuDevicePrimaryCtxSetFlags_v2", dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    struct sim_device *device;
    CUresult result = cuda_enter_device("cuDevicePrimaryCtxGetState", dev, &device);
    if (result)
        return result;
    if (!flags || !active)
        return cuda_leave(SIM_INVALID);
    *flags = primary_flags[dev];
    *active = device->primary != NULL;
    return cuda_leave(SIM_OK);
}

static CUresult create(const char *name, CUcontext *pctx, unsigned flags, CUdevice dev)
{
    struct sim_device *device;
    struct sim_context *context;
    int status;
    CUresult result = cuda_enter_device(name, dev, &device);
    if (result)
        return result;
    if (!pctx || !flags_valid(flags))
        return cuda_leave(SIM_INVALID);
    status = sim_context_create(device, false, &context);
    if (status)
        return cuda_leave(status);
    context->flags = flags;
    status = sim_context_push(context);
    if (!status)
        *pctx = (CUcontext)(void *)context;
    return cuda_leave(status);
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return create("cuCtxCreate_v2", pctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
                        CUdevice dev)
{
    if (ctxCreateParams && (ctxCreateParams->numExecAffinityParams || ctxCreateParams->cigParams))
        return CUDA_ERROR_NOT_SUPPORTED;
    return create("cuCtxCreate_v4", pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    struct sim_context *context;
    CUresult result;
    cuda_attempt(&sim_contexts, ctx);
    result = cuda_enter("cuCtxDestroy_v2");
    if (result)
        return result;
    context = sim_table_find(&sim_contexts, ctx);
    if (!context || context->primary)
        return cuda_leave(SIM_NO_CONTEXT);
    if (sim_context_top() == context)
        sim_context_pop();
    sim_context_destroy(context);
    return cuda_leave(SIM_OK);
}
