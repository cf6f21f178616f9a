/* HIP face: device memory of one process in another. */
#include "sim_hip.h"
#include "sim_ipc.h"

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *devPtr)
{
    struct sim_context *context;
    hipError_t result = hip_enter_context("hipIpcGetMemHandle", &context);
    return result ? result : hip_leave(sim_ipc_export((uintptr_t)devPtr, handle));
}

hipError_t hipIpcOpenMemHandle(void **devPtr, hipIpcMemHandle_t handle, unsigned int flags)
{
    struct sim_context *context;
    uint64_t address = 0;
    int status;
    hipError_t result = hip_enter_context("hipIpcOpenMemHandle", &context);
    if (result)
        return result;
    status = devPtr && flags == hipIpcMemLazyEnablePeerAccess
                 ? sim_ipc_open(context, &handle, &address)
                 : SIM_INVALID;
    if (!status)
        *devPtr = (void *)(uintptr_t)address;
    return hip_leave(status);
}

hipError_t hipIpcCloseMemHandle(void *devPtr)
{
    hipError_t result;
    hip_attempt_memory(devPtr);
    result = hip_enter("hipIpcCloseMemHandle");
    return result ? result : hip_leave(sim_ipc_close((uintptr_t)devPtr));
}
