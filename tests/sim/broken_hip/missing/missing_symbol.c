/* missing_symbol.c: a runtime that initialises and lacks nearly everything else. */
#define __HIP_PLATFORM_AMD__ 1
#pragma GCC visibility push(default)
#include <hip/hip_runtime_api.h>
#pragma GCC visibility pop

hipError_t hipInit(unsigned int flags)
{
    return flags ? hipErrorInvalidValue : hipSuccess;
}

hipError_t hipRuntimeGetVersion(int *runtimeVersion)
{
    *runtimeVersion = 60443484;
    return hipSuccess;
}

hipError_t hipGetDeviceCount(int *count)
{
    *count = 1;
    return hipSuccess;
}
