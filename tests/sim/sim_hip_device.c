/* sim_hip_device.c: HIP: initialisation, versions, devices and the current device. */
#include "sim_hip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As Debian's packages return it: major·10⁷ + minor·10⁵ + patch. */
enum {
    VERSION = SIM_HIP == 5   ? SIM_HIP_57 ? 50731921 : 50221153
              : SIM_HIP == 6 ? 60443484
                             : 70253211
};

static hipError_t version(const char *name, int *out)
{
    int fault = sim_fault(name);
    if (fault)
        return hip_note((hipError_t)fault);
    if (!out)
        return hip_note(hipErrorInvalidValue);
    *out = (int)sim_setting("GPUGLUE_SIM_VERSION", VERSION);
    return hipSuccess;
}

hipError_t hipDriverGetVersion(int *driverVersion)
{
    return version("hipDriverGetVersion", driverVersion);
}

hipError_t hipRuntimeGetVersion(int *runtimeVersion)
{
    return version("hipRuntimeGetVersion", runtimeVersion);
}

hipError_t hipInit(unsigned int flags)
{
    hipError_t result = hip_enter("hipInit");
    if (result)
        return result;
    return hip_leave(flags ? SIM_INVALID : SIM_OK);
}

hipError_t hipGetDeviceCount(int *count)
{
    hipError_t result = hip_enter("hipGetDeviceCount");
    if (count && (result == hipErrorNoDevice || result == hipErrorInvalidDevice)) {
        *count = 0;
        return hip_note(hipErrorNoDevice);
    }
    if (result)
        return result;
    if (!count)
        return hip_leave(SIM_INVALID);
    *count = sim.device_count;
    return hip_leave(SIM_OK);
}

/* ---- partitions: GPUGLUE_SIM_PARTITIONS, see README.md */

static const char *hip_partitions(void)
{
    return getenv("GPUGLUE_SIM_PARTITIONS");
}

static bool hip_partitions_are(const char *word)
{
    return hip_partitions() && !strcmp(hip_partitions(), word);
}

int hip_bus(const struct sim_device *device)
{
    return HIP_FIRST_BUS + (hip_partitions() ? 0 : device->physical);
}

/* ---- the current device of each thread */

hipError_t hipGetDevice(int *deviceId)
{
    hipError_t result = hip_enter("hipGetDevice");
    if (result)
        return result;
    if (!deviceId)
        return hip_leave(SIM_INVALID);
    *deviceId = hip_current_device;
    return hip_leave(SIM_OK);
}

hipError_t hipSetDevice(int deviceId)
{
    struct sim_device *device;
    hipError_t result = hip_enter_device("hipSetDevice", deviceId, &device);
    if (result)
        return result;
    hip_current_device = deviceId;
    return hip_leave(SIM_OK);
}

hipError_t hipDeviceSynchronize(void)
{
    struct sim_context *context;
    int status;
    hipError_t result = hip_enter_context("hipDeviceSynchronize", &context);
    if (result)
        return result;
    status = sim_capture_refuse_all(NULL);
    if (status)
        return hip_leave(status);
    sim_wait_context(context);
    return hip_leave(context->lost);
}

hipError_t hipDeviceGetLimit(size_t *pValue, enum hipLimit_t limit)
{
    struct sim_context *context;
    hipError_t result = hip_enter_context("hipDeviceGetLimit", &context);
    return result ? result : hip_leave(sim_context_get_limit(context, limit, pValue));
}

#if SIM_HIP >= 6 /* 5.2 does not have it */
hipError_t hipDeviceSetLimit(enum hipLimit_t limit, size_t value)
{
    struct sim_context *context;
    hipError_t result = hip_enter_context("hipDeviceSetLimit", &context);
    return result ? result : hip_leave(sim_context_set_limit(context, limit, value));
}
#endif

hipError_t hipDeviceReset(void)
{
    hipError_t result = hip_enter("hipDeviceReset");
    if (result)
        return result;
    if (hip_device(hip_current_device)->primary)
        sim_context_destroy(hip_device(hip_current_device)->primary);
    return hip_leave(SIM_OK);
}

hipError_t hipDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct sim_context *context;
    hipError_t result = hip_enter_context("hipDeviceGetStreamPriorityRange", &context);
    if (result)
        return result;
    if (leastPriority)
        *leastPriority = 1;
    if (greatestPriority)
        *greatestPriority = -1;
    return hip_leave(SIM_OK);
}

/* ---- device properties */

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal)
{
    struct sim_device *found;
    hipError_t result = hip_enter_device("hipDeviceGet", ordinal, &found);
    if (result)
        return result;
    if (!device)
        return hip_leave(SIM_INVALID);
    *device = ordinal;
    return hip_leave(SIM_OK);
}

hipError_t hipDeviceGetName(char *name, int len, hipDevice_t device)
{
    struct sim_device *found;
    hipError_t result = hip_enter_device("hipDeviceGetName", device, &found);
    if (result)
        return result;
    if (!name || len <= 0)
        return hip_leave(SIM_INVALID);
    name[0] = '\0'; /* as AMD's runtime where libdrm's table of names has none */
    if (sim_setting("GPUGLUE_SIM_NAMES", 1))
        snprintf(name, (size_t)len, "Simulated MI300X %d", found->physical);
    return hip_leave(SIM_OK);
}

/* KFD's unique_id is the GPU's own number, which its partitions share, or with newer kernels that of a partition. */
static int unique_number(const struct sim_device *device)
{
    return !hip_partitions() || hip_partitions_are("numbered") ? device->physical : 0;
}

hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device)
{
    struct sim_device *found;
    hipError_t result = hip_enter_device("hipDeviceGetUuid", device, &found);
    if (result)
        return result;
    if (!uuid)
        return hip_leave(SIM_INVALID);
    /* ROCr (ROCm/ROCR-Runtime, GpuAgent::GetInfo) has the text GPU- with 16 hexadecimal digits, or "GPU-XX" for a device
     * without a number. hipDeviceGetUuid of ROCm/clr returns the 16 bytes behind "GPU-". */
    char text[sizeof uuid->bytes + 1] = "XX";
    if (sim_setting("GPUGLUE_SIM_UNIQUE_IDS", 1))
        snprintf(text, sizeof text, "%016llx",
                 0x8f3c0a51e6d70240ull + (unsigned)unique_number(found));
    memcpy(uuid->bytes, text, sizeof uuid->bytes);
    return hip_leave(SIM_OK);
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
    struct sim_device *found;
    hipError_t result = hip_enter_device("hipDeviceTotalMem", device, &found);
    if (result)
        return result;
    if (!bytes)
        return hip_leave(SIM_INVALID);
    *bytes = found->size;
    return hip_leave(SIM_OK);
}

/* The function is that of KFD's location_id, in which kernels write the number of a partition, or do not, if it is in bits 28
 * to 31. HIP before 6.2 writes 0 (ROCm/clr, hipDeviceGetPCIBusId of rocm-6.1.2 and rocm-6.2.0). */
static unsigned pci_function(const struct sim_device *device)
{
    const bool written = sim_setting("GPUGLUE_SIM_VERSION", VERSION) >= 60200000;
    return written && hip_partitions() && !hip_partitions_are("location")
               ? (unsigned)device->physical
               : 0;
}

hipError_t hipDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    struct sim_device *found;
    hipError_t result = hip_enter_device("hipDeviceGetPCIBusId", device, &found);
    if (result)
        return result;
    if (!pciBusId || len <= 0)
        return hip_leave(SIM_INVALID);
    snprintf(pciBusId, (size_t)len, "0000:%02x:00.%x", (unsigned)hip_bus(found),
             pci_function(found));
    return hip_leave(SIM_OK);
}

hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device)
{
    struct sim_device *found;
    hipError_t result = hip_enter_device("hipDeviceComputeCapability", device, &found);
    if (result)
        return result;
    if (!major || !minor)
        return hip_leave(SIM_INVALID);
    *major = 9;
    *minor = 4;
    return hip_leave(SIM_OK);
}

/* ---- peers */

hipError_t hipDeviceCanAccessPeer(int *canAccessPeer, int deviceId, int peerDeviceId)
{
    struct sim_device *device;
    hipError_t result = hip_enter_device("hipDeviceCanAccessPeer", deviceId, &device);
    if (result)
        return result;
    if (!hip_device(peerDeviceId))
        return hip_leave(hipErrorInvalidDevice);
    if (!canAccessPeer)
        return hip_leave(SIM_INVALID);
    *canAccessPeer = deviceId != peerDeviceId && sim.peers != SIM_PEERS_APART;
    return hip_leave(SIM_OK);
}

static hipError_t change_peer(const char *name, int peer, unsigned flags, bool enable)
{
    struct sim_context *context;
    unsigned bit;
    hipError_t result = hip_enter_context(name, &context);
    if (result)
        return result;
    if (!hip_device(peer) || peer == hip_current_device)
        return hip_leave(hipErrorInvalidDevice);
    if (flags)
        return hip_leave(SIM_INVALID);
    bit = 1u << peer;
    if (enable == ((context->peers & bit) != 0))
        return hip_leave(enable ? SIM_PEER_ENABLED : SIM_PEER_DISABLED);
    context->peers ^= bit;
    return hip_leave(SIM_OK);
}

hipError_t hipDeviceEnablePeerAccess(int peerDeviceId, unsigned int flags)
{
    return change_peer("hipDeviceEnablePeerAccess", peerDeviceId, flags, true);
}

hipError_t hipDeviceDisablePeerAccess(int peerDeviceId)
{
    return change_peer("hipDeviceDisablePeerAccess", peerDeviceId, 0, false);
}
