/* sim_cuda_init.c: CUDA: initialisation and version. */
#include "sim_cuda.h"

#include <stdlib.h>

enum { DRIVER_VERSION = 13000 };

CUresult cuInit(unsigned int Flags)
{
    CUresult result = cuda_enter_plain("cuInit");
    if (result)
        return result;
    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    return cuda_code(sim_init(getenv("CUDA_VISIBLE_DEVICES")));
}

CUresult cuDriverGetVersion(int *driverVersion)
{
    int fault = sim_fault("cuDriverGetVersion");
    if (fault)
        return (CUresult)fault;
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = (int)sim_setting("GPUGLUE_SIM_VERSION", DRIVER_VERSION);
    return CUDA_SUCCESS;
}
