/* sim_cuda_ipc.c: CUDA: device memory shared between processes. */
#include "sim_cuda.h"
#include "sim_ipc.h"

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct sim_context *context;
    CUresult result = cuda_enter_context("cuIpcGetMemHandle", &context);
    return result ? result : cuda_leave(sim_ipc_export(dptr, pHandle));
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    struct sim_context *context;
    uint64_t address = 0;
    int status;
    CUresult result = cuda_enter_context("cuIpcOpenMemHandle_v2", &context);
    if (result)
        return result;
    if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return cuda_leave(SIM_INVALID);
    status = sim_ipc_open(context, &handle, &address);
    if (!status)
        *pdptr = address;
    return cuda_leave(status == SIM_ALREADY_REGISTERED ? CUDA_ERROR_ALREADY_MAPPED : status);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    CUresult result;
    cuda_attempt_memory(dptr);
    result = cuda_enter("cuIpcCloseMemHandle");
    return result ? result : cuda_leave(sim_ipc_close(dptr));
}
