/* sim_hip_memory.c: HIP: allocation of device, pinned and managed memory. */
#include "sim_hip.h"

enum { REGISTER_FLAGS = hipHostRegisterPortable | hipHostRegisterMapped | hipHostRegisterIoMemory };
static const unsigned host_flags = hipHostMallocPortable | hipHostMallocMapped |
                                   hipHostMallocWriteCombined | hipHostMallocNumaUser |
                                   hipHostMallocCoherent | hipHostMallocNonCoherent;

/* A size of 0 succeeds and returns NULL. */
static int allocate(enum sim_memory kind, const struct sim_block *block, void **out)
{
    uint64_t address = 0;
    int status = sim_capture_unsafe();
    if (status)
        return status;
    if (block->size && kind == SIM_DEVICE)
        status = sim_memory_device(block->context->device, block, &address);
    else if (block->size)
        status = sim_memory_host(kind, block, &address);
    if (!status)
        *out = (void *)(uintptr_t)address;
    return status;
}

hipError_t hipMalloc(void **ptr, size_t size)
{
    struct sim_block block = {.size = size};
    hipError_t result = hip_enter_context("hipMalloc", &block.context);
    if (result)
        return result;
    return hip_leave(ptr ? allocate(SIM_DEVICE, &block, ptr) : SIM_INVALID);
}

static hipError_t allocate_host(const char *name, void **out, size_t size, unsigned flags)
{
    struct sim_block block = {.size = size, .flags = flags};
    hipError_t result = hip_enter_context(name, &block.context);
    if (result)
        return result;
    return hip_leave(out && !(flags & ~host_flags) ? allocate(SIM_PINNED, &block, out)
                                                   : SIM_INVALID);
}

hipError_t hipHostMalloc(void **ptr, size_t size, unsigned int flags)
{
    return allocate_host("hipHostMalloc", ptr, size, flags);
}

hipError_t hipHostAlloc(void **ptr, size_t size, unsigned int flags)
{
    return allocate_host("hipHostAlloc", ptr, size, flags);
}

hipError_t hipMallocHost(void **ptr, size_t size)
{
    return allocate_host("hipMallocHost", ptr, size, 0);
}

hipError_t hipMallocManaged(void **dev_ptr, size_t size, unsigned int flags)
{
    struct sim_block block = {.size = size, .flags = flags};
    hipError_t result = hip_enter_context("hipMallocManaged", &block.context);
    if (result)
        return result;
    if (!dev_ptr || (flags != hipMemAttachGlobal && flags != hipMemAttachHost))
        return hip_leave(SIM_INVALID);
    return hip_leave(allocate(SIM_MANAGED, &block, dev_ptr));
}

/* A free waits for all streams of the device. Freeing NULL succeeds. */
static hipError_t free_memory(const char *name, void *pointer, unsigned kinds)
{
    const uint64_t address = (uintptr_t)pointer;
    struct sim_alloc *alloc;
    int status;
    hipError_t result;
    hip_attempt_memory(pointer);
    result = hip_enter(name);
    if (result)
        return result;
    if (!pointer)
        return hip_leave(SIM_OK);
    alloc = sim_memory_find(address);
    if (!alloc || alloc->base != address || alloc->freed_on || alloc->imported ||
        !(kinds & 1u << alloc->kind))
        return hip_leave(SIM_INVALID);
    status = alloc->context->lost;
    if (!status)
        status = sim_capture_unsafe();
    if (status)
        return hip_leave(status);
    sim_wait_device(alloc->device);
    sim_command_wait_lost();          /* of another device */
    alloc = sim_memory_find(address); /* the table may have been reallocated */
    if (!alloc || alloc->base != address)
        return hip_leave(SIM_INVALID);
    status = alloc->context->lost;
    if (!status)
        sim_memory_release(alloc);
    return hip_leave(status);
}

hipError_t hipFree(void *ptr)
{
    return free_memory("hipFree", ptr, 1u << SIM_DEVICE | 1u << SIM_MANAGED);
}

hipError_t hipHostFree(void *ptr)
{
    return free_memory("hipHostFree", ptr, 1u << SIM_PINNED);
}

hipError_t hipFreeHost(void *ptr)
{
    return free_memory("hipFreeHost", ptr, 1u << SIM_PINNED);
}

hipError_t hipHostRegister(void *hostPtr, size_t sizeBytes, unsigned int flags)
{
    struct sim_block block = {.size = sizeBytes, .flags = flags};
    int status;
    hipError_t result = hip_enter_context("hipHostRegister", &block.context);
    if (result)
        return result;
    status = flags & ~(unsigned)REGISTER_FLAGS ? SIM_INVALID : sim_capture_unsafe();
    return hip_leave(status ? status : sim_memory_register((uintptr_t)hostPtr, &block));
}

hipError_t hipHostUnregister(void *hostPtr)
{
    hipError_t result = free_memory("hipHostUnregister", hostPtr, 1u << SIM_REGISTERED);
    if (result == hipErrorInvalidValue && hostPtr)
        return hip_note(hipErrorHostMemoryNotRegistered);
    return result;
}

hipError_t hipMemGetInfo(size_t *free, size_t *total)
{
    struct sim_context *context;
    hipError_t result = hip_enter_context("hipMemGetInfo", &context);
    if (result)
        return result;
    if (!free || !total)
        return hip_leave(SIM_INVALID);
    *free = context->device->size - context->device->used;
    *total = context->device->size;
    return hip_leave(SIM_OK);
}

/* ---- stream-ordered allocation, from the device's pool */

hipError_t hipMallocAsync(void **dev_ptr, size_t size, hipStream_t stream)
{
    struct sim_queue *queue;
    uint64_t address = 0;
    int status = SIM_OK;
    hipError_t result = hip_enter_stream("hipMallocAsync", stream, &queue);
    if (result)
        return result;
    if (!dev_ptr)
        return hip_leave(SIM_INVALID);
    if (size)
        status = sim_pool_alloc(queue->context->device->current_pool, queue, size, &address);
    if (!status)
        *dev_ptr = (void *)(uintptr_t)address;
    return hip_leave(status);
}

hipError_t hipFreeAsync(void *dev_ptr, hipStream_t stream)
{
    struct sim_queue *queue;
    hipError_t result;
    hip_attempt_memory(dev_ptr);
    result = hip_enter_stream("hipFreeAsync", stream, &queue);
    if (result)
        return result;
    return hip_leave(dev_ptr ? sim_pool_free((uintptr_t)dev_ptr, queue) : SIM_INVALID);
}
