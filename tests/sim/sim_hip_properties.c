/* sim_hip_properties.c: HIP: device attributes, and hipDeviceProp_t in the layout of HIP 6. The values are those of an
 * MI300X where a test needs them. */
#include "sim_hip.h"

#include <stdio.h>
#include <string.h>

struct attribute_row {
    hipDeviceAttribute_t attribute;
    int value;
};

static const struct attribute_row rows[] = {
    {hipDeviceAttributeAsyncEngineCount, 2},
    {hipDeviceAttributeCanMapHostMemory, 1},
#if SIM_HIP >= \
    6 /* in ROCm/clr it is "host unified memory": 0 for a discrete GPU. ROCm 5.7 does not know it. */
    {hipDeviceAttributeCanUseHostPointerForRegisteredMem, 0},
#endif
    {hipDeviceAttributeClockRate, 2100000},
    {hipDeviceAttributeConcurrentKernels, 1},
    {hipDeviceAttributeIntegrated, 0},
    {hipDeviceAttributeComputeCapabilityMajor, 9},
    {hipDeviceAttributeComputeCapabilityMinor, 4},
    {hipDeviceAttributeManagedMemory, 1},
    {hipDeviceAttributeMaxBlockDimX, 1024},
    {hipDeviceAttributeMaxBlockDimY, 1024},
    {hipDeviceAttributeMaxBlockDimZ, 1024},
    {hipDeviceAttributeMaxGridDimX, 2147483647},
    {hipDeviceAttributeMaxGridDimY, 65536},
    {hipDeviceAttributeMaxGridDimZ, 65536},
    {hipDeviceAttributeMaxThreadsPerBlock, 1024},
    {hipDeviceAttributeMultiprocessorCount, 304},
    {hipDeviceAttributeMaxSharedMemoryPerBlock, 65536},
    {hipDeviceAttributeMemoryClockRate, 1300000},
    {hipDeviceAttributeMemoryBusWidth, 8192},
    {hipDeviceAttributeMaxRegistersPerBlock, 65536},
#if SIM_HIP >= 6 /* ROCm 5.7 does not know it */
    {hipDeviceAttributeMaxRegistersPerMultiprocessor, 131072},
#endif
    {hipDeviceAttributeMaxThreadsPerMultiProcessor, 2048},
    {hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, 65536},
    {hipDeviceAttributeTotalConstantMemory, 2147483647},
    {hipDeviceAttributeEccEnabled, 1},
    {hipDeviceAttributeWarpSize, 64},
    {hipDeviceAttributeL2CacheSize, 4194304},
    {hipDeviceAttributePciDeviceId, 0},
    {hipDeviceAttributePciDomainID, 0},
    {hipDeviceAttributeMemoryPoolsSupported, 1},
};

hipError_t hipDeviceGetAttribute(int *pi, hipDeviceAttribute_t attr, int deviceId)
{
    struct sim_device *device;
    hipError_t result = hip_enter_device("hipDeviceGetAttribute", deviceId, &device);
    if (result)
        return result;
    if (!pi)
        return hip_leave(SIM_INVALID);
    if (attr == hipDeviceAttributePciBusId) {
        *pi = hip_bus(device);
        return hip_leave(SIM_OK);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].attribute != attr)
            continue;
        *pi = rows[i].value;
        return hip_leave(SIM_OK);
    }
    return hip_leave(SIM_INVALID);
}

#if HIP_VERSION_MAJOR >= 6
/* Headers of HIP 6 and 7 give the struct and the function their new names. The bytes that are not set hold a pattern, so
 * that a read at a wrong offset is detected. */
hipError_t hipGetDeviceProperties(hipDeviceProp_t *prop, int deviceId)
{
    struct sim_device *device;
    hipError_t result = hip_enter_device("hipGetDevicePropertiesR0600", deviceId, &device);
    if (result)
        return result;
    if (!prop)
        return hip_leave(SIM_INVALID);
    memset(prop, 0xA5, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "Simulated MI300X %d", device->physical);
    snprintf(prop->gcnArchName, sizeof prop->gcnArchName, "%s", HIP_ARCH);
    prop->totalGlobalMem = device->size;
    prop->warpSize = 64;
    prop->multiProcessorCount = 304;
    prop->pciBusID = hip_bus(device);
    return hip_leave(SIM_OK);
}
#elif SIM_HIP >= 6
/* The same without the header of the version: 1472 bytes. */
enum { R0600_SIZE = 1472, R0600_MEMORY = 288, R0600_ARCH = 1160 };

hipError_t hipGetDevicePropertiesR0600(void *properties, int deviceId)
{
    char *out = properties;
    struct sim_device *device;
    hipError_t result = hip_enter_device("hipGetDevicePropertiesR0600", deviceId, &device);
    if (result)
        return result;
    if (!out)
        return hip_leave(SIM_INVALID);
    memset(out, 0xA5, R0600_SIZE);
    snprintf(out, 256, "Simulated MI300X %d", device->physical);
    memcpy(out + R0600_MEMORY, &device->size, sizeof device->size);
    snprintf(out + R0600_ARCH, 256, "%s", HIP_ARCH);
    return hip_leave(SIM_OK);
}
#endif
