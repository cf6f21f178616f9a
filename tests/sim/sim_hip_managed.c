/* sim_hip_managed.c: HIP: prefetch and advice for managed memory. */
#include "sim_hip.h"

static int check_range(uint64_t address, size_t size, int device)
{
    const struct sim_alloc *alloc = sim_memory_range(address, size);
    if (!size || !alloc || alloc->kind != SIM_MANAGED)
        return SIM_INVALID;
    return device == hipCpuDeviceId || hip_device(device) ? SIM_OK : hipErrorInvalidDevice;
}

hipError_t hipMemPrefetchAsync(const void *dev_ptr, size_t count, int device, hipStream_t stream)
{
    struct sim_work work = {.kind = SIM_MARK};
    struct sim_queue *queue;
    int status;
    hipError_t result = hip_enter_stream("hipMemPrefetchAsync", stream, &queue);
    if (result)
        return result;
    status = check_range((uintptr_t)dev_ptr, count, device);
    return hip_leave(status ? status : sim_queue_submit_uncaptured(queue, &work));
}

/* Advice that has no location ignores its device argument. */
hipError_t hipMemAdvise(const void *dev_ptr, size_t count, hipMemoryAdvise advice, int device)
{
    hipError_t result = hip_enter("hipMemAdvise");
    if (result)
        return result;
    const bool coarse =
        advice == hipMemAdviseSetCoarseGrain || advice == hipMemAdviseUnsetCoarseGrain;
    if (!coarse && (advice < hipMemAdviseSetReadMostly || advice > hipMemAdviseUnsetAccessedBy))
        return hip_leave(SIM_INVALID);
    if (advice <= hipMemAdviseUnsetReadMostly || advice == hipMemAdviseUnsetPreferredLocation)
        device = hipCpuDeviceId;
    return hip_leave(check_range((uintptr_t)dev_ptr, count, device));
}
