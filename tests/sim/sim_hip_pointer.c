/* sim_hip_pointer.c: HIP: attributes of a pointer. HIP 6 renumbered the memory types, and
 * returns success for unknown memory. */
#include "sim_hip.h"

#include <string.h>

enum kind_number {
#if HIP_HEADERS_57
    HOST = hipMemoryTypeHost,
    DEVICE = hipMemoryTypeDevice,
    MANAGED = hipMemoryTypeManaged
#elif SIM_HIP >= 6
    HOST = 1,
    DEVICE = 2,
    MANAGED = 3
#else
    HOST = hipMemoryTypeHost,
    DEVICE = hipMemoryTypeDevice,
    MANAGED = hipMemoryTypeDevice
#endif
};

#if HIP_HEADERS_57
#define MEMORY_TYPE type
#else
#define MEMORY_TYPE memoryType
#endif

static enum kind_number kind_of(const struct sim_alloc *alloc)
{
    switch (alloc->kind) {
    case SIM_PINNED:
    case SIM_REGISTERED:
        return HOST;
    case SIM_MANAGED:
        return MANAGED;
    case SIM_DEVICE:
    case SIM_MEMORY_KINDS:
        break;
    }
    return DEVICE;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr)
{
    const struct sim_alloc *alloc;
    hipError_t result = hip_enter("hipPointerGetAttributes");
    if (result)
        return result;
    alloc = sim_memory_find((uintptr_t)ptr);
    if (!attributes || !ptr || (!alloc && SIM_HIP < 6))
        return hip_leave(SIM_INVALID);
    memset(attributes, 0, sizeof *attributes);
    attributes->device = -2;
    if (!alloc)
        return hip_leave(SIM_OK);
    attributes->MEMORY_TYPE = (enum hipMemoryType)kind_of(alloc);
    attributes->device = alloc->device ? alloc->device->ordinal : 0;
    attributes->devicePointer = (void *)(uintptr_t)ptr;
    attributes->hostPointer = alloc->kind == SIM_DEVICE ? NULL : (void *)(uintptr_t)ptr;
    attributes->isManaged = alloc->kind == SIM_MANAGED;
    attributes->allocationFlags = alloc->flags;
    return hip_leave(SIM_OK);
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *pbase, size_t *psize, hipDeviceptr_t dptr)
{
    const struct sim_alloc *alloc;
    hipError_t result = hip_enter("hipMemGetAddressRange");
    if (result)
        return result;
    alloc = sim_memory_find((uintptr_t)dptr);
    if (!alloc)
        return hip_leave(hipErrorNotFound);
    if (pbase)
        *pbase = (void *)(uintptr_t)alloc->base;
    if (psize)
        *psize = alloc->size;
    return hip_leave(SIM_OK);
}

hipError_t hipHostGetDevicePointer(void **devPtr, void *hstPtr, unsigned int flags)
{
    const struct sim_alloc *alloc;
    hipError_t result = hip_enter("hipHostGetDevicePointer");
    if (result)
        return result;
    alloc = sim_memory_find((uintptr_t)hstPtr);
    if (!devPtr || flags || !alloc || alloc->kind == SIM_DEVICE)
        return hip_leave(SIM_INVALID);
    *devPtr = (void *)(uintptr_t)sim_memory_on_device(alloc, (uintptr_t)hstPtr);
    return hip_leave(SIM_OK);
}

hipError_t hipHostGetFlags(unsigned int *flagsPtr, void *hostPtr)
{
    const struct sim_alloc *alloc;
    hipError_t result = hip_enter("hipHostGetFlags");
    if (result)
        return result;
    alloc = sim_memory_find((uintptr_t)hostPtr);
    if (!flagsPtr || !alloc || (alloc->kind != SIM_PINNED && alloc->kind != SIM_REGISTERED))
        return hip_leave(SIM_INVALID);
    *flagsPtr = alloc->flags;
    return hip_leave(SIM_OK);
}
