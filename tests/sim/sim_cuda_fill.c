/* sim_cuda_fill.c: CUDA: fills. All of them are asynchronous, as on the hardware. */
#include "sim_cuda.h"

static CUresult fill(const char *name, const struct sim_fill *fill, CUstream stream, bool now)
{
    struct sim_work work = {.kind = SIM_FILL, .fill = *fill};
    struct sim_queue *queue;
    size_t bytes = fill->width * fill->element;
    int status;
    CUresult result = cuda_enter_stream(name, stream, &queue);
    if (result)
        return result;
    status = now ? sim_capture_unsafe() : SIM_OK;
    if (status || !bytes || !fill->height)
        return cuda_leave(status);
    if (fill->dst % fill->element || (fill->height > 1 && fill->pitch < bytes))
        return cuda_leave(SIM_INVALID);
    if (!cuda_end_valid(fill->dst, sim_region_span(bytes, fill->height, 1, fill->pitch, 0),
                        CUDA_DEVICE_END, &work.dst_tracked))
        return cuda_leave(SIM_INVALID);
    return cuda_leave(sim_queue_submit(queue, &work));
}

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    struct sim_fill work = {dstDevice, 0, N, 1, uc, 1};
    return fill("cuMemsetD8_v2", &work, CU_STREAM_LEGACY, true);
}

CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
    struct sim_fill work = {dstDevice, 0, N, 1, us, 2};
    return fill("cuMemsetD16_v2", &work, CU_STREAM_LEGACY, true);
}

CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    struct sim_fill work = {dstDevice, 0, N, 1, ui, 4};
    return fill("cuMemsetD32_v2", &work, CU_STREAM_LEGACY, true);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                         size_t Height)
{
    struct sim_fill work = {dstDevice, dstPitch, Width, Height, uc, 1};
    return fill("cuMemsetD2D8_v2", &work, CU_STREAM_LEGACY, true);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                          size_t Height)
{
    struct sim_fill work = {dstDevice, dstPitch, Width, Height, us, 2};
    return fill("cuMemsetD2D16_v2", &work, CU_STREAM_LEGACY, true);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                          size_t Height)
{
    struct sim_fill work = {dstDevice, dstPitch, Width, Height, ui, 4};
    return fill("cuMemsetD2D32_v2", &work, CU_STREAM_LEGACY, true);
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    struct sim_fill work = {dstDevice, 0, N, 1, uc, 1};
    return fill("cuMemsetD8Async", &work, hStream, false);
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    struct sim_fill work = {dstDevice, 0, N, 1, us, 2};
    return fill("cuMemsetD16Async", &work, hStream, false);
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    struct sim_fill work = {dstDevice, 0, N, 1, ui, 4};
    return fill("cuMemsetD32Async", &work, hStream, false);
}

CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                           size_t Height, CUstream hStream)
{
    struct sim_fill work = {dstDevice, dstPitch, Width, Height, uc, 1};
    return fill("cuMemsetD2D8Async", &work, hStream, false);
}

CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                            size_t Height, CUstream hStream)
{
    struct sim_fill work = {dstDevice, dstPitch, Width, Height, us, 2};
    return fill("cuMemsetD2D16Async", &work, hStream, false);
}

CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                            size_t Height, CUstream hStream)
{
    struct sim_fill work = {dstDevice, dstPitch, Width, Height, ui, 4};
    return fill("cuMemsetD2D32Async", &work, hStream, false);
}
