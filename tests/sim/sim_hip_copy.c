/* sim_hip_copy.c: HIP: copies. */
#include "sim_hip.h"

struct side {
    const void *pointer;
    size_t pitch;
    enum hip_end end;
};

struct request {
    struct side dst, src;
    size_t width, height, depth; /* depth 0: one slice */
    size_t dst_slice, src_slice;
};

static int submit(struct sim_queue *queue, const struct request *request)
{
    const size_t height = request->height, width = request->width;
    const size_t depth = request->depth ? request->depth : 1;
    const struct side *dst = &request->dst, *src = &request->src;
    struct sim_work work = {.kind = SIM_COPY};
    if (!width || !height)
        return SIM_OK;
    if (height > 1 && (dst->pitch < width || src->pitch < width))
        return SIM_INVALID;
    if (depth > 1 &&
        (request->dst_slice < height * dst->pitch || request->src_slice < height * src->pitch))
        return SIM_INVALID;
    if (!hip_end_valid(dst->pointer,
                       sim_region_span(width, height, depth, dst->pitch, request->dst_slice),
                       dst->end, &work.dst_tracked) ||
        !hip_end_valid(src->pointer,
                       sim_region_span(width, height, depth, src->pitch, request->src_slice),
                       src->end, &work.src_tracked))
        return SIM_INVALID;
    work.copy.dst = (uintptr_t)dst->pointer;
    work.copy.src = (uintptr_t)src->pointer;
    work.copy.dst_pitch = dst->pitch;
    work.copy.src_pitch = src->pitch;
    work.copy.width = width;
    work.copy.height = height;
    work.copy.depth = depth;
    work.copy.dst_slice = request->dst_slice;
    work.copy.src_slice = request->src_slice;
    return sim_queue_submit(queue, &work);
}

static hipError_t copy_async(const char *name, const struct request *request, hipStream_t stream)
{
    struct sim_queue *queue;
    hipError_t result = hip_enter_stream(name, stream, &queue);
    if (result)
        return result;
    return hip_leave(submit(queue, request));
}

/* Synchronous copies run on the null stream or the given one; only copies of host memory wait. */
static hipError_t copy_now(const char *name, const struct request *request, hipStream_t stream)
{
    const bool wait = request->dst.end != HIP_DEVICE_END || request->src.end != HIP_DEVICE_END;
    struct sim_context *context;
    struct sim_queue *queue;
    int status;
    hipError_t result = hip_enter_stream(name, stream, &queue);
    if (result)
        return result;
    context = queue->context;
    status = sim_capture_unsafe();
    if (!status)
        status = submit(queue, request);
    if (status || !wait)
        return hip_leave(status);
    sim_command_wait(queue->last);
    return hip_leave(context->lost);
}

static struct request linear(void *dst, enum hip_end to, const void *src, enum hip_end from,
                             size_t size)
{
    return (struct request){{dst, 0, to}, {src, 0, from}, size, 1, 1, 0, 0};
}

/* Returns false for an unknown kind. */
static bool set_ends(struct request *request, hipMemcpyKind kind)
{
    const bool any = kind == hipMemcpyDefault;
    request->dst.end = any ? HIP_ANY_END
                       : kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice
                           ? HIP_DEVICE_END
                           : HIP_HOST_END;
    request->src.end = any ? HIP_ANY_END
                       : kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice
                           ? HIP_DEVICE_END
                           : HIP_HOST_END;
    return (unsigned)kind <= hipMemcpyDefault;
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t dst, HIP_SOURCE *src, size_t sizeBytes)
{
    struct request request = linear(dst, HIP_DEVICE_END, src, HIP_HOST_END, sizeBytes);
    return copy_now("hipMemcpyHtoD", &request, NULL);
}

hipError_t hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t sizeBytes)
{
    struct request request = linear(dst, HIP_HOST_END, src, HIP_DEVICE_END, sizeBytes);
    return copy_now("hipMemcpyDtoH", &request, NULL);
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes)
{
    struct request request = linear(dst, HIP_DEVICE_END, src, HIP_DEVICE_END, sizeBytes);
    return copy_now("hipMemcpyDtoD", &request, NULL);
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t dst, HIP_SOURCE *src, size_t sizeBytes,
                              hipStream_t stream)
{
    struct request request = linear(dst, HIP_DEVICE_END, src, HIP_HOST_END, sizeBytes);
    return copy_async("hipMemcpyHtoDAsync", &request, stream);
}

hipError_t hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream)
{
    struct request request = linear(dst, HIP_HOST_END, src, HIP_DEVICE_END, sizeBytes);
    return copy_async("hipMemcpyDtoHAsync", &request, stream);
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes,
                              hipStream_t stream)
{
    struct request request = linear(dst, HIP_DEVICE_END, src, HIP_DEVICE_END, sizeBytes);
    return copy_async("hipMemcpyDtoDAsync", &request, stream);
}

hipError_t hipMemcpy(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind)
{
    struct request request = linear(dst, HIP_ANY_END, src, HIP_ANY_END, sizeBytes);
    if (!set_ends(&request, kind))
        return hip_note(hipErrorInvalidMemcpyDirection);
    return copy_now("hipMemcpy", &request, NULL);
}

hipError_t hipMemcpyWithStream(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind,
                               hipStream_t stream)
{
    struct request request = linear(dst, HIP_ANY_END, src, HIP_ANY_END, sizeBytes);
    if (!set_ends(&request, kind))
        return hip_note(hipErrorInvalidMemcpyDirection);
    return copy_now("hipMemcpyWithStream", &request, stream);
}

hipError_t hipMemcpyAsync(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind,
                          hipStream_t stream)
{
    struct request request = linear(dst, HIP_ANY_END, src, HIP_ANY_END, sizeBytes);
    if (!set_ends(&request, kind))
        return hip_note(hipErrorInvalidMemcpyDirection);
    return copy_async("hipMemcpyAsync", &request, stream);
}

/* A copy between devices is not captured. */
static int submit_at_once(struct sim_queue *queue, const struct request *request)
{
    struct sim_capture *capture = queue->capture;
    queue->capture = NULL;
    const int status = submit(queue, request);
    queue->capture = capture;
    return status;
}

hipError_t hipMemcpyPeerAsync(void *dst, int dstDeviceId, const void *src, int srcDevice,
                              size_t sizeBytes, hipStream_t stream)
{
    struct request request = linear(dst, HIP_DEVICE_END, src, HIP_DEVICE_END, sizeBytes);
    const struct sim_alloc *to, *from;
    struct sim_queue *queue;
    hipError_t result = hip_enter_stream("hipMemcpyPeerAsync", stream, &queue);
    if (result)
        return result;
    to = sim_memory_range((uintptr_t)dst, sizeBytes);
    from = sim_memory_range((uintptr_t)src, sizeBytes);
    if (!hip_device(dstDeviceId) || !hip_device(srcDevice))
        return hip_leave(hipErrorInvalidDevice);
    if (sizeBytes && (!to || !from || to->device != hip_device(dstDeviceId) ||
                      from->device != hip_device(srcDevice)))
        return hip_leave(SIM_INVALID);
    return hip_leave(submit_at_once(queue, &request));
}

hipError_t hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                            size_t height, hipMemcpyKind kind, hipStream_t stream)
{
    struct request request = {
        {dst, dpitch, HIP_ANY_END}, {src, spitch, HIP_ANY_END}, width, height, 1, 0, 0};
    if (!set_ends(&request, kind))
        return hip_note(hipErrorInvalidMemcpyDirection);
    return copy_async("hipMemcpy2DAsync", &request, stream);
}

hipError_t hipMemcpy3DAsync(const struct hipMemcpy3DParms *p, hipStream_t stream)
{
    if (!p || p->srcArray || p->dstArray)
        return hip_note(p ? hipErrorNotSupported : hipErrorInvalidValue);
    const size_t dst_slice = p->dstPtr.pitch * p->dstPtr.ysize;
    const size_t src_slice = p->srcPtr.pitch * p->srcPtr.ysize;
    const char *dst = (char *)p->dstPtr.ptr + p->dstPos.z * dst_slice +
                      p->dstPos.y * p->dstPtr.pitch + p->dstPos.x;
    const char *src = (char *)p->srcPtr.ptr + p->srcPos.z * src_slice +
                      p->srcPos.y * p->srcPtr.pitch + p->srcPos.x;
    struct request request = {{dst, p->dstPtr.pitch, HIP_ANY_END},
                              {src, p->srcPtr.pitch, HIP_ANY_END},
                              p->extent.width,
                              p->extent.height,
                              p->extent.depth,
                              dst_slice,
                              src_slice};
    if (!set_ends(&request, p->kind))
        return hip_note(hipErrorInvalidMemcpyDirection);
    return copy_async("hipMemcpy3DAsync", &request, stream);
}
