/* sim_cuda_region.c: CUDA: two- and three-dimensional copies between linear memory. */
#include "sim_cuda.h"

struct side {
    CUmemorytype type;
    uint64_t host, device;
    size_t x, y, z, pitch, rows;
};

struct placed {
    uint64_t address;
    size_t pitch, slice;
    bool tracked;
};

/* Finds the start of a side and checks that the whole region is in memory of its kind. */
static int place(const struct side *side, const struct sim_region *extent, struct placed *out)
{
    size_t width = extent->width, height = extent->height, depth = extent->depth;
    size_t pitch = side->pitch ? side->pitch : side->x + width;
    size_t slice = pitch * (side->rows ? side->rows : side->y + height);
    enum cuda_end end = side->type == CU_MEMORYTYPE_HOST     ? CUDA_HOST_END
                        : side->type == CU_MEMORYTYPE_DEVICE ? CUDA_DEVICE_END
                                                             : CUDA_ANY_END;
    uint64_t base = side->type == CU_MEMORYTYPE_HOST ? side->host : side->device;
    if (side->type == CU_MEMORYTYPE_ARRAY)
        return SIM_UNSUPPORTED;
    if (side->type < CU_MEMORYTYPE_HOST || side->type > CU_MEMORYTYPE_UNIFIED || !base)
        return SIM_INVALID;
    if (side->x + width > pitch || (depth > 1 && side->rows && side->y + height > side->rows))
        return SIM_INVALID;
    out->address = base + side->z * slice + side->y * pitch + side->x;
    out->pitch = pitch;
    out->slice = slice;
    if (!cuda_end_valid(out->address, sim_region_span(width, height, depth, pitch, slice), end,
                        &out->tracked))
        return SIM_INVALID;
    return SIM_OK;
}

static int submit(struct sim_queue *queue, const struct side *dst, const struct side *src,
                  const struct sim_region *extent)
{
    struct sim_work work = {.kind = SIM_COPY};
    struct placed to = {0}, from = {0};
    int status;
    if (!extent->width || !extent->height || !extent->depth)
        return SIM_OK;
    status = place(dst, extent, &to);
    if (!status)
        status = place(src, extent, &from);
    if (status)
        return status;
    work.copy = *extent;
    work.copy.dst = to.address;
    work.copy.dst_pitch = to.pitch;
    work.copy.dst_slice = to.slice;
    work.copy.src = from.address;
    work.copy.src_pitch = from.pitch;
    work.copy.src_slice = from.slice;
    work.dst_tracked = to.tracked;
    work.src_tracked = from.tracked;
    return sim_queue_submit(queue, &work);
}

static int submit_2d(struct sim_queue *queue, const CUDA_MEMCPY2D *copy)
{
    struct side dst = {copy->dstMemoryType, (uintptr_t)copy->dstHost,
                       copy->dstDevice,     copy->dstXInBytes,
                       copy->dstY,          0,
                       copy->dstPitch,      0};
    struct side src = {copy->srcMemoryType, (uintptr_t)copy->srcHost,
                       copy->srcDevice,     copy->srcXInBytes,
                       copy->srcY,          0,
                       copy->srcPitch,      0};
    struct sim_region extent = {.width = copy->WidthInBytes, .height = copy->Height, .depth = 1};
    return submit(queue, &dst, &src, &extent);
}

static int submit_3d(struct sim_queue *queue, const CUDA_MEMCPY3D *copy)
{
    struct side dst = {copy->dstMemoryType, (uintptr_t)copy->dstHost,
                       copy->dstDevice,     copy->dstXInBytes,
                       copy->dstY,          copy->dstZ,
                       copy->dstPitch,      copy->dstHeight};
    struct side src = {copy->srcMemoryType, (uintptr_t)copy->srcHost,
                       copy->srcDevice,     copy->srcXInBytes,
                       copy->srcY,          copy->srcZ,
                       copy->srcPitch,      copy->srcHeight};
    struct sim_region extent = {
        .width = copy->WidthInBytes, .height = copy->Height, .depth = copy->Depth};
    if (copy->srcLOD || copy->dstLOD)
        return SIM_INVALID;
    return submit(queue, &dst, &src, &extent);
}

static int submit_peer(struct sim_queue *queue, const CUDA_MEMCPY3D_PEER *copy)
{
    struct side dst = {copy->dstMemoryType, (uintptr_t)copy->dstHost,
                       copy->dstDevice,     copy->dstXInBytes,
                       copy->dstY,          copy->dstZ,
                       copy->dstPitch,      copy->dstHeight};
    struct side src = {copy->srcMemoryType, (uintptr_t)copy->srcHost,
                       copy->srcDevice,     copy->srcXInBytes,
                       copy->srcY,          copy->srcZ,
                       copy->srcPitch,      copy->srcHeight};
    struct sim_region extent = {
        .width = copy->WidthInBytes, .height = copy->Height, .depth = copy->Depth};
    if (copy->srcLOD || copy->dstLOD)
        return SIM_INVALID;
    return submit(queue, &dst, &src, &extent);
}

static CUresult finish(struct sim_queue *queue, int status, bool wait)
{
    struct sim_context *context = queue->context;
    if (status || !wait)
        return cuda_leave(status);
    sim_command_wait(queue->last);
    return cuda_leave(context->lost);
}

static CUresult copy_2d(const char *name, const CUDA_MEMCPY2D *copy, CUstream stream, bool wait)
{
    struct sim_queue *queue;
    int status;
    CUresult result = cuda_enter_stream(name, stream, &queue);
    if (result)
        return result;
    status = wait ? sim_capture_unsafe() : SIM_OK;
    if (!status)
        status = copy ? submit_2d(queue, copy) : SIM_INVALID;
    return finish(queue, status, wait);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d("cuMemcpy2D_v2", pCopy, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d("cuMemcpy2DUnaligned_v2", pCopy, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return copy_2d("cuMemcpy2DAsync_v2", pCopy, hStream, false);
}

static CUresult copy_3d(const char *name, const CUDA_MEMCPY3D *copy, CUstream stream, bool wait)
{
    struct sim_queue *queue;
    int status;
    CUresult result = cuda_enter_stream(name, stream, &queue);
    if (result)
        return result;
    status = wait ? sim_capture_unsafe() : SIM_OK;
    if (!status)
        status = copy ? submit_3d(queue, copy) : SIM_INVALID;
    return finish(queue, status, wait);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
    return copy_3d("cuMemcpy3D_v2", pCopy, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return copy_3d("cuMemcpy3DAsync_v2", pCopy, hStream, false);
}

static CUresult copy_3d_peer(const char *name, const CUDA_MEMCPY3D_PEER *copy, CUstream stream,
                             bool wait)
{
    struct sim_queue *queue;
    int status;
    CUresult result = cuda_enter_stream(name, stream, &queue);
    if (result)
        return result;
    status = wait ? sim_capture_unsafe() : SIM_OK;
    if (!status)
        status = copy ? submit_peer(queue, copy) : SIM_INVALID;
    return finish(queue, status, wait);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
    return copy_3d_peer("cuMemcpy3DPeer", pCopy, CU_STREAM_LEGACY, true);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    return copy_3d_peer("cuMemcpy3DPeerAsync", pCopy, hStream, false);
}
