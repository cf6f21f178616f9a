/* Level Zero face: device and host memory. Frees wait for nothing: what is still queued hits memory that
 * is gone, and the device is lost. */
#include "sim_ze.h"

static bool relaxed(const void *next)
{
    const ze_relaxed_allocation_limits_exp_desc_t *desc = next;
    return desc && desc->stype == ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC &&
           desc->flags & ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE;
}

static int check(size_t size, size_t alignment, const void *next)
{
    if (!size || (size > sim.devices[0].size / 4 && !relaxed(next)))
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    if (alignment & (alignment - 1) || alignment > SIM_ALIGNMENT)
        return ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT;
    return SIM_OK;
}

ze_result_t zeMemAllocDevice(ze_context_handle_t hContext, const ze_device_mem_alloc_desc_t *desc,
                             size_t size, size_t alignment, ze_device_handle_t hDevice, void **pptr)
{
    struct sim_context *context;
    struct sim_block block = {.size = size};
    uint64_t address = 0;
    int status;
    const ze_result_t result = ze_enter_context("zeMemAllocDevice", hContext, &context);
    if (result)
        return result;
    struct sim_device *device = ze_device(hDevice);
    if (!desc || !pptr || !device)
        return ze_leave(device ? ZE_RESULT_ERROR_INVALID_NULL_POINTER
                               : ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    if (desc->stype != ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC || desc->flags || desc->ordinal)
        return ze_leave(ZE_RESULT_ERROR_INVALID_ENUMERATION);
    block.context = device->primary;
    status = check(size, alignment, desc->pNext);
    if (!status)
        status = sim_memory_device(device, &block, &address);
    if (!status)
        *pptr = (void *)(uintptr_t)address;
    return ze_leave(status);
}

ze_result_t zeMemAllocHost(ze_context_handle_t hContext, const ze_host_mem_alloc_desc_t *desc,
                           size_t size, size_t alignment, void **pptr)
{
    struct sim_context *context;
    struct sim_block block = {.size = size};
    uint64_t address = 0;
    int status;
    const ze_result_t result = ze_enter_context("zeMemAllocHost", hContext, &context);
    if (result)
        return result;
    if (!desc || !pptr)
        return ze_leave(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    if (desc->stype != ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC || desc->flags)
        return ze_leave(ZE_RESULT_ERROR_INVALID_ENUMERATION);
    status = check(size, alignment, desc->pNext);
    if (!status)
        status = sim_memory_host(SIM_PINNED, &block, &address);
    if (!status)
        *pptr = (void *)(uintptr_t)address;
    return ze_leave(status);
}

static void attempt(const void *pointer)
{
    struct sim_alloc *alloc;
    if (!sim_initialised() || sim_forked() || sim_finished())
        return;
    pthread_mutex_lock(&sim.lock);
    alloc = sim_memory_find((uintptr_t)pointer);
    if (alloc)
        alloc->attempted = true;
    pthread_mutex_unlock(&sim.lock);
}

ze_result_t zeMemFree(ze_context_handle_t hContext, void *ptr)
{
    struct sim_context *context;
    attempt(ptr);
    const ze_result_t result = ze_enter_context("zeMemFree", hContext, &context);
    if (result)
        return result;
    struct sim_alloc *alloc = sim_memory_find((uintptr_t)ptr);
    if (!alloc || alloc->base != (uintptr_t)ptr)
        return ze_leave(SIM_INVALID);
    sim_memory_release(alloc);
    return ze_leave(SIM_OK);
}

ze_result_t zeMemGetAllocProperties(ze_context_handle_t hContext, const void *ptr,
                                    ze_memory_allocation_properties_t *properties,
                                    ze_device_handle_t *phDevice)
{
    struct sim_context *context;
    const ze_result_t result = ze_enter_context("zeMemGetAllocProperties", hContext, &context);
    if (result)
        return result;
    if (properties->stype != ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES)
        return ze_leave(SIM_INVALID);
    const struct sim_alloc *alloc = sim_memory_find((uintptr_t)ptr);
    properties->type = ZE_MEMORY_TYPE_UNKNOWN;
    properties->id = properties->pageSize = 0;
    if (alloc) {
        properties->type = alloc->kind == SIM_DEVICE ? ZE_MEMORY_TYPE_DEVICE : ZE_MEMORY_TYPE_HOST;
        properties->id = alloc->serial;
        properties->pageSize = 4096;
    }
    if (phDevice)
        *phDevice = alloc ? (ze_device_handle_t)(void *)alloc->device : NULL;
    return ze_leave(SIM_OK);
}

ze_result_t zeMemGetAddressRange(ze_context_handle_t hContext, const void *ptr, void **pBase,
                                 size_t *pSize)
{
    struct sim_context *context;
    const ze_result_t result = ze_enter_context("zeMemGetAddressRange", hContext, &context);
    if (result)
        return result;
    const struct sim_alloc *alloc = sim_memory_find((uintptr_t)ptr);
    if (!alloc)
        return ze_leave(SIM_INVALID);
    if (pBase)
        *pBase = (void *)(uintptr_t)alloc->base;
    if (pSize)
        *pSize = alloc->size;
    return ze_leave(SIM_OK);
}
