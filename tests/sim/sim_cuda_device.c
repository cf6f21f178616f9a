/* sim_cuda_device.c: CUDA: devices and their properties. */
#include "sim_cuda.h"

#include <stdio.h>
#include <string.h>

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = cuda_enter("cuDeviceGetCount");
    if (result)
        return result;
    if (!count)
        return cuda_leave(SIM_INVALID);
    *count = sim.device_count;
    return cuda_leave(SIM_OK);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    struct sim_device *found;
    CUresult result = cuda_enter_device("cuDeviceGet", ordinal, &found);
    if (result)
        return result;
    if (!device)
        return cuda_leave(SIM_INVALID);
    *device = ordinal;
    return cuda_leave(SIM_OK);
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
    struct sim_device *device;
    CUresult result = cuda_enter_device("cuDeviceGetName", dev, &device);
    if (result)
        return result;
    if (!name || len <= 0)
        return cuda_leave(SIM_INVALID);
    snprintf(name, (size_t)len, "Simulated H200 %d", device->physical);
    return cuda_leave(SIM_OK);
}

/* GPUGLUE_SIM_MIG: the devices are slices of one GPU, whose PCI address all have. */
static bool is_slice(void)
{
    return sim_setting("GPUGLUE_SIM_MIG", 0) != 0;
}

/* Of a slice the older function returns the UUID of its GPU. */
static CUresult uuid(const char *name, CUuuid *out, CUdevice dev, bool of_gpu)
{
    struct sim_device *device;
    CUresult result = cuda_enter_device(name, dev, &device);
    if (result)
        return result;
    if (!out)
        return cuda_leave(SIM_INVALID);
    memcpy(out->bytes, "gpuglue sim dev ", sizeof out->bytes);
    out->bytes[sizeof out->bytes - 1] = of_gpu ? 'G' : (char)('0' + device->physical);
    return cuda_leave(SIM_OK);
}

CUresult cuDeviceGetUuid(CUuuid *out, CUdevice dev)
{
    return uuid("cuDeviceGetUuid", out, dev, is_slice());
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice dev)
{
    return uuid("cuDeviceGetUuid_v2", out, dev, false);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    struct sim_device *device;
    CUresult result = cuda_enter_device("cuDeviceTotalMem_v2", dev, &device);
    if (result)
        return result;
    if (!bytes)
        return cuda_leave(SIM_INVALID);
    *bytes = device->size;
    return cuda_leave(SIM_OK);
}

enum { FIRST_BUS = 0x10 };

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    struct sim_device *device;
    CUresult result = cuda_enter_device("cuDeviceGetPCIBusId", dev, &device);
    if (result)
        return result;
    if (!pciBusId || len <= 0)
        return cuda_leave(SIM_INVALID);
    snprintf(pciBusId, (size_t)len, "0000:%02X:00.0",
             (unsigned)(FIRST_BUS + (is_slice() ? 0 : device->physical)));
    return cuda_leave(SIM_OK);
}

static bool parse_bus(const char *text, unsigned *bus)
{
    unsigned domain = 0, device = 0, function = 0;
    if (sscanf(text, "%x:%x:%x.%x", &domain, bus, &device, &function) != 4 &&
        sscanf(text, "%x:%x:%x", &domain, bus, &device) != 3 &&
        sscanf(text, "%x:%x.%x", bus, &device, &function) != 3)
        return false;
    return !domain && !device && !function;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    unsigned bus = 0;
    CUresult result = cuda_enter("cuDeviceGetByPCIBusId");
    if (result)
        return result;
    if (!dev || !pciBusId)
        return cuda_leave(SIM_INVALID);
    for (int i = 0; parse_bus(pciBusId, &bus) && i < sim.device_count; i++) {
        if (bus != (unsigned)(FIRST_BUS + (is_slice() ? 0 : sim.devices[i].physical)))
            continue;
        *dev = i;
        return cuda_leave(SIM_OK);
    }
    return cuda_leave(CUDA_ERROR_INVALID_DEVICE);
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    struct sim_device *device;
    CUresult result = cuda_enter_device("cuDeviceComputeCapability", dev, &device);
    if (result)
        return result;
    if (!major || !minor)
        return cuda_leave(SIM_INVALID);
    *major = 9;
    *minor = 0;
    return cuda_leave(SIM_OK);
}

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    struct sim_device *device;
    CUresult result = cuda_enter_device("cuDeviceCanAccessPeer", dev, &device);
    if (result)
        return result;
    if (!cuda_device(peerDev))
        return cuda_leave(CUDA_ERROR_INVALID_DEVICE);
    if (!canAccessPeer)
        return cuda_leave(SIM_INVALID);
    *canAccessPeer = dev != peerDev && sim.peers != SIM_PEERS_APART;
    return cuda_leave(SIM_OK);
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                 CUdevice dstDevice)
{
    struct sim_device *device;
    CUresult result = cuda_enter_device("cuDeviceGetP2PAttribute", srcDevice, &device);
    if (result)
        return result;
    if (!cuda_device(dstDevice) || srcDevice == dstDevice)
        return cuda_leave(CUDA_ERROR_INVALID_DEVICE);
    if (!value || attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
        attrib > CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED)
        return cuda_leave(SIM_INVALID);
    *value = attrib == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
    return cuda_leave(SIM_OK);
}
