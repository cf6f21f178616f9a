/* sim_cuda_memory.c: CUDA: allocation of device, pinned and managed memory. */
#include "sim_cuda.h"

enum {
    HOST_ALLOC_FLAGS =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED,
    REGISTER_FLAGS = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                     CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY,
    PITCH = 512
};

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct sim_block block = {.size = bytesize};
    uint64_t address = 0;
    int status;
    CUresult result = cuda_enter_context("cuMemAlloc_v2", &block.context);
    if (result)
        return result;
    status = dptr ? sim_capture_unsafe() : SIM_INVALID;
    if (!status)
        status = sim_memory_device(block.context->device, &block, &address);
    if (!status)
        *dptr = address;
    return cuda_leave(status);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes)
{
    size_t pitch = (WidthInBytes + PITCH - 1) / PITCH * PITCH;
    CUresult result;
    if (!pPitch || (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    result = cuMemAlloc_v2(dptr, pitch * Height);
    if (!result)
        *pPitch = pitch;
    return result;
}

/* A free waits for all streams of the device. */
static CUresult free_memory(const char *name, uint64_t address, unsigned kinds)
{
    struct sim_alloc *alloc;
    int status;
    CUresult result;
    cuda_attempt_memory(address);
    result = cuda_enter(name);
    if (result)
        return result;
    alloc = sim_memory_find(address);
    if (!alloc || alloc->base != address || alloc->freed_on || alloc->imported ||
        !(kinds & 1u << alloc->kind))
        return cuda_leave(SIM_INVALID);
    status = alloc->context->lost;
    if (!status)
        status = sim_capture_unsafe();
    if (status)
        return cuda_leave(status);
    sim_wait_device(alloc->device);
    sim_command_wait_lost();          /* of another device */
    alloc = sim_memory_find(address); /* the table may have been reallocated */
    if (!alloc || alloc->base != address)
        return cuda_leave(SIM_INVALID);
    status = alloc->context->lost;
    if (!status)
        sim_memory_release(alloc);
    return cuda_leave(status);
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    return free_memory("cuMemFree_v2", dptr, 1u << SIM_DEVICE | 1u << SIM_MANAGED);
}

CUresult cuMemFreeHost(void *p)
{
    return free_memory("cuMemFreeHost", (uintptr_t)p, 1u << SIM_PINNED);
}

CUresult cuMemHostUnregister(void *p)
{
    CUresult result = free_memory("cuMemHostUnregister", (uintptr_t)p, 1u << SIM_REGISTERED);
    if (result == CUDA_ERROR_INVALID_VALUE && p)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    return result;
}

static CUresult allocate_host(const char *name, void **out, size_t size, unsigned flags)
{
    struct sim_block block = {.size = size, .flags = flags};
    uint64_t address = 0;
    int status;
    CUresult result = cuda_enter_context(name, &block.context);
    if (result)
        return result;
    status = out && !(flags & ~(unsigned)HOST_ALLOC_FLAGS) ? sim_capture_unsafe() : SIM_INVALID;
    if (!status)
        status = sim_memory_host(SIM_PINNED, &block, &address);
    if (!status)
        *out = (void *)(uintptr_t)address;
    return cuda_leave(status);
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return allocate_host("cuMemAllocHost_v2", pp, bytesize, 0);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    return allocate_host("cuMemHostAlloc", pp, bytesize, Flags);
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    struct sim_block block = {.size = bytesize, .flags = flags};
    uint64_t address = 0;
    int status;
    CUresult result = cuda_enter_context("cuMemAllocManaged", &block.context);
    if (result)
        return result;
    status = dptr && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST)
                 ? sim_capture_unsafe()
                 : SIM_INVALID;
    if (!status)
        status = sim_memory_host(SIM_MANAGED, &block, &address);
    if (!status)
        *dptr = address;
    return cuda_leave(status);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    struct sim_block block = {.size = bytesize, .flags = Flags};
    int status;
    CUresult result = cuda_enter_context("cuMemHostRegister_v2", &block.context);
    if (result)
        return result;
    status = Flags & ~(unsigned)REGISTER_FLAGS ? SIM_INVALID : sim_capture_unsafe();
    return cuda_leave(status ? status : sim_memory_register((uintptr_t)p, &block));
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    struct sim_context *context;
    CUresult result = cuda_enter_context("cuMemGetInfo_v2", &context);
    if (result)
        return result;
    if (!free || !total)
        return cuda_leave(SIM_INVALID);
    *free = context->device->size - context->device->used;
    *total = context->device->size;
    return cuda_leave(SIM_OK);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    const struct sim_alloc *alloc;
    CUresult result = cuda_enter("cuMemGetAddressRange_v2");
    if (result)
        return result;
    alloc = sim_memory_find(dptr);
    if (!alloc)
        return cuda_leave(CUDA_ERROR_NOT_FOUND);
    if (pbase)
        *pbase = alloc->base;
    if (psize)
        *psize = alloc->size;
    return cuda_leave(SIM_OK);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    const struct sim_alloc *alloc;
    CUresult result = cuda_enter("cuMemHostGetDevicePointer_v2");
    if (result)
        return result;
    alloc = sim_memory_find((uintptr_t)p);
    if (!pdptr || Flags || !alloc || alloc->kind == SIM_DEVICE)
        return cuda_leave(SIM_INVALID);
    *pdptr = sim_memory_on_device(alloc, (uintptr_t)p);
    return cuda_leave(SIM_OK);
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    const struct sim_alloc *alloc;
    CUresult result = cuda_enter("cuMemHostGetFlags");
    if (result)
        return result;
    alloc = sim_memory_find((uintptr_t)p);
    if (!pFlags || !alloc || (alloc->kind != SIM_PINNED && alloc->kind != SIM_REGISTERED))
        return cuda_leave(SIM_INVALID);
    *pFlags = alloc->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return cuda_leave(SIM_OK);
}
