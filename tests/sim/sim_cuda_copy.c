/* sim_cuda_copy.c: CUDA: linear copies. */
#include "sim_cuda.h"

struct linear {
    uint64_t dst, src;
    size_t size;
    enum cuda_end dst_end, src_end;
};

static int submit(struct sim_queue *queue, const struct linear *copy)
{
    struct sim_work work = {.kind = SIM_COPY};
    if (!copy->size)
        return SIM_OK;
    if (!cuda_end_valid(copy->dst, copy->size, copy->dst_end, &work.dst_tracked) ||
        !cuda_end_valid(copy->src, copy->size, copy->src_end, &work.src_tracked))
        return SIM_INVALID;
    work.copy.dst = copy->dst;
    work.copy.src = copy->src;
    work.copy.width = copy->size;
    work.copy.height = work.copy.depth = 1;
    return sim_queue_submit(queue, &work);
}

static CUresult copy_async(const char *name, const struct linear *copy, CUstream stream)
{
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream(name, stream, &queue);
    if (result)
        return result;
    return cuda_leave(submit(queue, copy));
}

/* Synchronous copies run on the null stream; only those that touch the host wait for it. */
static CUresult copy_now(const char *name, const struct linear *copy, bool wait)
{
    struct sim_queue *queue;
    struct sim_context *context;
    int status;
    CUresult result = cuda_enter_stream(name, CU_STREAM_LEGACY, &queue);
    if (result)
        return result;
    context = queue->context;
    status = sim_capture_unsafe();
    if (!status)
        status = submit(queue, copy);
    if (status || !wait)
        return cuda_leave(status);
    sim_command_wait(queue->last);
    return cuda_leave(context->lost);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    struct linear copy = {dstDevice, (uintptr_t)srcHost, ByteCount, CUDA_DEVICE_END, CUDA_HOST_END};
    return copy_now("cuMemcpyHtoD_v2", &copy, true);
}

CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    struct linear copy = {(uintptr_t)dstHost, srcDevice, ByteCount, CUDA_HOST_END, CUDA_DEVICE_END};
    return copy_now("cuMemcpyDtoH_v2", &copy, true);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    struct linear copy = {dstDevice, srcDevice, ByteCount, CUDA_DEVICE_END, CUDA_DEVICE_END};
    return copy_now("cuMemcpyDtoD_v2", &copy, false);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    struct linear copy = {dst, src, ByteCount, CUDA_ANY_END, CUDA_ANY_END};
    return copy_now("cuMemcpy", &copy, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                              CUstream hStream)
{
    struct linear copy = {dstDevice, (uintptr_t)srcHost, ByteCount, CUDA_DEVICE_END, CUDA_HOST_END};
    return copy_async("cuMemcpyHtoDAsync_v2", &copy, hStream);
}

CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream)
{
    struct linear copy = {(uintptr_t)dstHost, srcDevice, ByteCount, CUDA_HOST_END, CUDA_DEVICE_END};
    return copy_async("cuMemcpyDtoHAsync_v2", &copy, hStream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream)
{
    struct linear copy = {dstDevice, srcDevice, ByteCount, CUDA_DEVICE_END, CUDA_DEVICE_END};
    return copy_async("cuMemcpyDtoDAsync_v2", &copy, hStream);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    struct linear copy = {dst, src, ByteCount, CUDA_ANY_END, CUDA_ANY_END};
    return copy_async("cuMemcpyAsync", &copy, hStream);
}

/* Each end must be on the device of the context that is passed for it. */
static int check_peers(const struct linear *copy, CUcontext dst, CUcontext src)
{
    const struct sim_context *to = sim_table_find(&sim_contexts, dst);
    const struct sim_context *from = sim_table_find(&sim_contexts, src);
    const struct sim_alloc *dst_alloc = sim_memory_range(copy->dst, copy->size);
    const struct sim_alloc *src_alloc = sim_memory_range(copy->src, copy->size);
    if (!to || !from)
        return SIM_NO_CONTEXT;
    if (!copy->size)
        return SIM_OK;
    if (!dst_alloc || !src_alloc || dst_alloc->device != to->device ||
        src_alloc->device != from->device)
        return SIM_INVALID;
    return SIM_OK;
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                           CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    struct linear copy = {dstDevice, srcDevice, ByteCount, CUDA_DEVICE_END, CUDA_DEVICE_END};
    struct sim_queue *queue;
    int status;
    CUresult result = cuda_enter_stream("cuMemcpyPeerAsync", hStream, &queue);
    if (result)
        return result;
    status = check_peers(&copy, dstContext, srcContext);
    return cuda_leave(status ? status : submit(queue, &copy));
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                      CUcontext srcContext, size_t ByteCount)
{
    struct linear copy = {dstDevice, srcDevice, ByteCount, CUDA_DEVICE_END, CUDA_DEVICE_END};
    struct sim_queue *queue;
    int status;
    CUresult result = cuda_enter_stream("cuMemcpyPeer", CU_STREAM_LEGACY, &queue);
    if (result)
        return result;
    status = sim_capture_unsafe();
    if (!status)
        status = check_peers(&copy, dstContext, srcContext);
    return cuda_leave(status ? status : submit(queue, &copy));
}
