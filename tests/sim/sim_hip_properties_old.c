/* sim_hip_properties_old.c: HIP: hipDeviceProp_t in the layout of HIP 5, which the old symbol still fills in HIP 6 and 7.
 * Compiled with the headers of HIP 5 for each version. */
#include "sim_hip.h"

#include <stdio.h>
#include <string.h>

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
    snprintf(prop->gcnArchName, sizeof prop->gcnArchName, "%s", HIP_ARCH);
    prop->totalGlobalMem = device->size;
    prop->warpSize = 64;
    prop->multiProcessorCount = 304;
    prop->pciBusID = hip_bus(device);
    return hip_leave(SIM_OK);
}
