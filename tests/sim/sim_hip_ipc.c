/* sim_hip_ipc.c: HIP: device memory shared between processes. */
#include "sim_hip.h"
#include "sim_ipc.h"

#include <string.h>

/* hipIpcOpenMemHandle takes this value only (ROCm/clr, hip_memory.cpp). ROCm 6.0 changed it: see CHANGELOG.md of clr. */
enum { LAZY_ENABLE_PEER_ACCESS = SIM_HIP >= 6 ? 1 : 0 };

/* Bytes at the end of a handle that the runtime does not write: seen with libamdhip64 7.2 (make test-hip-model). */
enum { UNWRITTEN = 8 };

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *devPtr)
{
    struct sim_context *context;
    char made[sizeof *handle];
    int status;
    hipError_t result = hip_enter_context("hipIpcGetMemHandle", &context);
    if (result)
        return result;
    status = handle ? sim_ipc_export((uintptr_t)devPtr, made) : SIM_INVALID;
    if (!status)
        memcpy(handle, made, sizeof made - UNWRITTEN);
    return hip_leave(status);
}

hipError_t hipIpcOpenMemHandle(void **devPtr, hipIpcMemHandle_t handle, unsigned int flags)
{
    struct sim_context *context;
    uint64_t address = 0;
    int status;
    hipError_t result = hip_enter_context("hipIpcOpenMemHandle", &context);
    if (result)
        return result;
    status = devPtr && flags == LAZY_ENABLE_PEER_ACCESS ? sim_ipc_open(context, &handle, &address)
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
