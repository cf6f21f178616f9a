/* HIP face: attributes, and the struct of properties in the layout of HIP 5 and in that of HIP 6. The
 * values are an MI300X's where it matters. */
#include "sim_hip.h"

#include <stdio.h>
#include <string.h>

static const char arch[] = "gfx942:sramecc+:xnack-";

struct attribute_row {
    hipDeviceAttribute_t attribute;
    int value;
};

static const struct attribute_row rows[] = {
    {hipDeviceAttributeAsyncEngineCount, 2},
    {hipDeviceAttributeCanMapHostMemory, 1},
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
        *pi = HIP_FIRST_BUS + device->physical;
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

/* The old symbol keeps the old struct, in HIP 6 and 7 too. */
hipError_t hipGetDeviceProperties(hipDeviceProp_t *prop, int deviceId)
{
    struct sim_device *device;
    hipError_t result = hip_enter_device("hipGetDeviceProperties", deviceId, &device);
    if (result)
        return result;
    if (!prop)
        return hip_leave(SIM_INVALID);
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "Simulated MI300X %d", device->physical);
    snprintf(prop->gcnArchName, sizeof prop->gcnArchName, "%s", arch);
    prop->totalGlobalMem = device->size;
    prop->warpSize = 64;
    prop->multiProcessorCount = 304;
    prop->pciBusID = HIP_FIRST_BUS + device->physical;
    return hip_leave(SIM_OK);
}

#if SIM_HIP >= 6
/* hipDeviceProp_tR0600: 1472 bytes, of which we set a few. The debris shows who reads elsewhere. */
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
    snprintf(out + R0600_ARCH, 256, "%s", arch);
    return hip_leave(SIM_OK);
}
#endif
