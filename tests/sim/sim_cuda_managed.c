/* sim_cuda_managed.c: CUDA: prefetch and advice for managed memory, in their old and new form. */
#include "sim_cuda.h"

static bool location_valid(const CUmemLocation *location)
{
    switch ((int)location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return cuda_device(location->id) != NULL;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return true;
    default:
        return false;
    }
}

static CUmemLocation location_of(CUdevice device)
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    location.id = device;
    if (device == CU_DEVICE_CPU) {
        location.type = CU_MEM_LOCATION_TYPE_HOST;
        location.id = 0;
    }
    return location;
}

static int check_range(uint64_t address, size_t size, const CUmemLocation *location)
{
    const struct sim_alloc *alloc = sim_memory_range(address, size);
    if (!size || !alloc || alloc->kind != SIM_MANAGED)
        return SIM_INVALID;
    return location_valid(location) ? SIM_OK : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult prefetch(const char *name, uint64_t address, size_t size,
                         const CUmemLocation *location, CUstream stream)
{
    struct sim_work work = {.kind = SIM_MARK};
    struct sim_queue *queue;
    int status;
    CUresult result = cuda_enter_stream(name, stream, &queue);
    if (result)
        return result;
    status = queue->capture ? sim_capture_refuse(queue)
                            : check_range(address, size, location); /* as on an H200 */
    return cuda_leave(status ? status : sim_queue_submit(queue, &work));
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
    CUmemLocation location = location_of(dstDevice);
    return prefetch("cuMemPrefetchAsync", devPtr, count, &location, hStream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                               unsigned int flags, CUstream hStream)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    return prefetch("cuMemPrefetchAsync_v2", devPtr, count, &location, hStream);
}

/* Advice that has no location ignores its location argument. */
static CUresult advise(const char *name, uint64_t address, size_t size, CUmem_advise advice,
                       CUmemLocation location)
{
    CUresult result = cuda_enter(name);
    if (result)
        return result;
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return cuda_leave(SIM_INVALID);
    if (advice <= CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
        advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
        location = location_of(0);
    return cuda_leave(check_range(address, size, &location));
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return advise("cuMemAdvise", devPtr, count, advice, location_of(device));
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                        CUmemLocation location)
{
    return advise("cuMemAdvise_v2", devPtr, count, advice, location);
}
