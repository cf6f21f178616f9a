/* sim_ze_memory.c: Level Zero: device, host and shared memory. A free does not wait: queued work that
 * uses the freed memory loses the device. */
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

bool ze_has_shared(void)
{
    return sim_setting("GPUGLUE_SIM_ZE_SHARED", 1) != 0;
}

static bool known_types(const ze_device_mem_alloc_desc_t *device_desc,
                        const ze_host_mem_alloc_desc_t *host_desc)
{
    return device_desc->stype == ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC && !device_desc->flags &&
           !device_desc->ordinal && host_desc->stype == ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC &&
           !host_desc->flags;
}

/* As Context::allocSharedMem of intel/compute-runtime: only the device's descriptor may relax the limits. */
ze_result_t zeMemAllocShared(ze_context_handle_t hContext,
                             const ze_device_mem_alloc_desc_t *device_desc,
                             const ze_host_mem_alloc_desc_t *host_desc, size_t size,
                             size_t alignment, ze_device_handle_t hDevice, void **pptr)
{
    struct sim_context *context;
    struct sim_block block = {.size = size};
    uint64_t address = 0;
    const ze_result_t result = ze_enter_context("zeMemAllocShared", hContext, &context);
    if (result)
        return result;
    const struct sim_device *device = ze_device(hDevice);
    if (!device_desc || !host_desc || !pptr || (hDevice && !device))
        return ze_leave(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    if (!known_types(device_desc, host_desc))
        return ze_leave(ZE_RESULT_ERROR_INVALID_ENUMERATION);
    block.context = device ? device->primary : NULL;
    int status = ze_has_shared() ? check(size, alignment, device_desc->pNext) : (int)SIM_UNSUPPORTED;
    if (!status)
        status = sim_memory_host(SIM_MANAGED, &block, &address);
    if (!status)
        *pptr = (void *)(uintptr_t)address;
    return ze_leave(status);
}

void ze_attempt_free(const void *pointer)
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
    ze_attempt_free(ptr);
    const ze_result_t result = ze_enter_context("zeMemFree", hContext, &context);
    if (result)
        return result;
    sim_command_wait_lost();
    struct sim_alloc *alloc = sim_memory_find((uintptr_t)ptr);
    if (!alloc || alloc->kind == SIM_REGISTERED || alloc->base != (uintptr_t)ptr)
        return ze_leave(SIM_INVALID);
    ze_ipc_forget(alloc->base);
    sim_memory_release(alloc);
    return ze_leave(SIM_OK);
}

static ze_memory_type_t type_of(const struct sim_alloc *alloc)
{
    if (!alloc || alloc->kind == SIM_REGISTERED) /* an import is not an allocation */
        return ZE_MEMORY_TYPE_UNKNOWN;
    if (alloc->kind == SIM_MANAGED)
        return ZE_MEMORY_TYPE_SHARED;
    return alloc->kind == SIM_DEVICE ? ZE_MEMORY_TYPE_DEVICE : ZE_MEMORY_TYPE_HOST;
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
    properties->type = type_of(alloc);
    properties->id = properties->pageSize = 0;
    if (properties->type != ZE_MEMORY_TYPE_UNKNOWN) {
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
    if (!alloc || alloc->kind == SIM_REGISTERED)
        return ze_leave(SIM_INVALID);
    if (pBase)
        *pBase = (void *)(uintptr_t)alloc->base;
    if (pSize)
        *pSize = alloc->size;
    return ze_leave(SIM_OK);
}
