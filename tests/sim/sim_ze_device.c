/* sim_ze_device.c: Level Zero: devices and their properties. The old driver does not correct a
 * count that is too large, as Intel's old driver did not. */
#include "sim_ze.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMER_HZ = 12000000, TIMER_NS = 83, TIMER_BITS = 36, CLOCK_MHZ = 1550 };

/* ---- cards with several tiles */

static uint32_t tiles(void)
{
    return (uint32_t)sim_setting("GPUGLUE_SIM_ZE_TILES", 1);
}

/* ZE_FLAT_DEVICE_HIERARCHY. Older drivers of Intel return cards, newer ones tiles. */
static bool hierarchy_is(const char *name)
{
    const char *set = getenv("ZE_FLAT_DEVICE_HIERARCHY");
    return !strcmp(set && SIM_ZE_SINCE(7) ? set : SIM_ZE_SINCE(7) ? "FLAT" : "COMPOSITE", name);
}

ze_result_t zeDeviceGet(ze_driver_handle_t hDriver, uint32_t *pCount, ze_device_handle_t *phDevices)
{
    const uint32_t step = hierarchy_is("COMPOSITE") ? tiles() : 1;
    const uint32_t count = (uint32_t)sim.device_count / step;
    const ze_result_t result = ze_enter_driver("zeDeviceGet", hDriver);
    if (result)
        return result;
    for (uint32_t i = 0; phDevices && i < *pCount && i < count; i++)
        phDevices[i] = (ze_device_handle_t)(void *)&sim.devices[i * step];
    if (!*pCount || (SIM_ZE_SINCE(7) && *pCount > count))
        *pCount = count;
    return ze_leave(SIM_OK);
}

/* A card's tiles; a tile has none. */
ze_result_t zeDeviceGetSubDevices(ze_device_handle_t hDevice, uint32_t *pCount,
                                  ze_device_handle_t *phSubdevices)
{
    struct sim_device *device;
    const ze_result_t result = ze_enter_device("zeDeviceGetSubDevices", hDevice, &device);
    if (result)
        return result;
    const uint32_t count = tiles() > 1 && hierarchy_is("COMPOSITE") ? tiles() : 0;
    for (uint32_t i = 0; phSubdevices && i < *pCount && i < count; i++)
        phSubdevices[i] = (ze_device_handle_t)(void *)(device + i);
    if (!*pCount || *pCount > count)
        *pCount = count;
    return ze_leave(SIM_OK);
}

/* The card of a tile that COMBINED lists; else none. */
ze_result_t sim_zeDeviceGetRootDevice(ze_device_handle_t hDevice, ze_device_handle_t *root)
{
    struct sim_device *device;
    const ze_result_t result = ze_enter_device("zeDeviceGetRootDevice", hDevice, &device);
    if (result)
        return result;
    *root = NULL;
    if (tiles() > 1 && hierarchy_is("COMBINED"))
        *root = (ze_device_handle_t)(void *)(device - (uint32_t)device->physical % tiles());
    return ze_leave(SIM_OK);
}

/* No module runs without GPUGLUE_SIM_OPENCL, which has these. */
ze_result_t zeDeviceGetModuleProperties(ze_device_handle_t hDevice,
                                        ze_device_module_properties_t *properties)
{
    struct sim_device *device;
    const ze_result_t result = ze_enter_device("zeDeviceGetModuleProperties", hDevice, &device);
    if (result)
        return result;
    if (properties->stype != ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES)
        return ze_leave(SIM_INVALID);
    properties->spirvVersionSupported = ZE_MAKE_VERSION(1, 2);
    properties->flags = ZE_DEVICE_MODULE_FLAG_FP64 | ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS;
    properties->fp32flags = properties->fp64flags =
        ZE_DEVICE_FP_FLAG_DENORM | ZE_DEVICE_FP_FLAG_INF_NAN | ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST |
        ZE_DEVICE_FP_FLAG_FMA;
    properties->fp16flags = 0;
    properties->maxArgumentsSize = 2048;
    properties->printfBufferSize = 4 << 20;
    return ze_leave(SIM_OK);
}

/* One cache, whose size the user cannot change. */
ze_result_t zeDeviceGetCacheProperties(ze_device_handle_t hDevice, uint32_t *pCount,
                                       ze_device_cache_properties_t *properties)
{
    struct sim_device *device;
    const ze_result_t result = ze_enter_device("zeDeviceGetCacheProperties", hDevice, &device);
    if (result)
        return result;
    if (properties && *pCount) {
        properties->flags = 0;
        properties->cacheSize = 8 << 20;
    }
    *pCount = 1;
    return ze_leave(SIM_OK);
}

struct usable_memory {
    uint32_t stype;
    void *next;
    uint64_t bytes;
};

struct graph_properties {
    uint32_t stype;
    void *next;
    uint32_t flags;
};

static bool extend(const struct sim_device *device, void *next)
{
    struct usable_memory *usable = next;
    struct graph_properties *graphs = next;
    if (!usable)
        return true;
    if (SIM_ZE_SINCE(17) && graphs->stype == SIM_ZE_GRAPH_PROPERTIES) {
        graphs->flags = ze_has_graphs() ? SIM_ZE_GRAPH_IMMUTABLE : 0;
        return true;
    }
    if (!SIM_ZE_SINCE(14) || usable->stype != SIM_ZE_USABLE_MEMORY)
        return false;
    usable->bytes = device->size - device->used;
    return true;
}

static void describe(const struct sim_device *device, ze_device_properties_t *out)
{
    const uint64_t integrated = sim_setting("GPUGLUE_SIM_INTEGRATED", 0);
    const bool hz = out->stype == ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
    out->type = (ze_device_type_t)(int)sim_setting("GPUGLUE_SIM_ZE_TYPE", ZE_DEVICE_TYPE_GPU);
    out->vendorId = 0x8086;
    out->deviceId = 0x4905;
    out->flags =
        integrated >> device->physical & 1 ? (uint32_t)ZE_DEVICE_PROPERTY_FLAG_INTEGRATED : 0;
    /* As DeviceImp::getProperties of intel/compute-runtime: FLAT's devices have no parent. */
    out->subdeviceId = (uint32_t)device->physical % tiles();
    if (tiles() > 1 && hierarchy_is("COMBINED"))
        out->flags |= ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE;
    out->coreClockRate = CLOCK_MHZ;
    out->maxMemAllocSize = device->size / 4;
    out->maxHardwareContexts = 65536;
    out->maxCommandQueuePriority = 0;
    out->numThreadsPerEU = 7;
    out->physicalEUSimdWidth = 8;
    out->numEUsPerSubslice = 16;
    out->numSubslicesPerSlice = 6;
    out->numSlices = 2;
    out->timerResolution = hz ? TIMER_HZ : TIMER_NS;
    out->timestampValidBits = TIMER_BITS;
    out->kernelTimestampValidBits = 32;
    memset(&out->uuid, device->physical + 1, sizeof out->uuid);
    if (tiles() > 1 && !hierarchy_is("COMPOSITE"))
        out->uuid.id[14] = (uint8_t)(0xf0 + out->subdeviceId);
    out->uuid.id[15] = (uint8_t)(SIM_ZE_API & 0xff);
    snprintf(out->name, sizeof out->name, "Simulated GPU %d", device->physical);
}

ze_result_t zeDeviceGetProperties(ze_device_handle_t hDevice, ze_device_properties_t *properties)
{
    struct sim_device *device;
    const ze_result_t result = ze_enter_device("zeDeviceGetProperties", hDevice, &device);
    if (result)
        return result;
    if (properties->stype != ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES &&
        properties->stype != ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2)
        return ze_leave(SIM_INVALID);
    if (!extend(device, properties->pNext) && !SIM_ZE_SINCE(7))
        return ze_leave(SIM_INVALID);
    describe(device, properties);
    return ze_leave(SIM_OK);
}

ze_result_t zeDeviceGetComputeProperties(ze_device_handle_t hDevice,
                                         ze_device_compute_properties_t *properties)
{
    struct sim_device *device;
    const ze_result_t result = ze_enter_device("zeDeviceGetComputeProperties", hDevice, &device);
    if (result)
        return result;
    if (properties->stype != ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES)
        return ze_leave(SIM_INVALID);
    properties->maxTotalGroupSize = 1024;
    properties->maxGroupSizeX = properties->maxGroupSizeY = properties->maxGroupSizeZ = 1024;
    properties->maxGroupCountX = properties->maxGroupCountY = properties->maxGroupCountZ = ~0u;
    properties->maxSharedLocalMemory = 65536;
    properties->numSubGroupSizes = 3;
    for (uint32_t i = 0; i < 3; i++)
        properties->subGroupSizes[i] = 8u << i;
    return ze_leave(SIM_OK);
}

ze_result_t zeDeviceGetMemoryProperties(ze_device_handle_t hDevice, uint32_t *pCount,
                                        ze_device_memory_properties_t *properties)
{
    struct sim_device *device;
    const ze_result_t result = ze_enter_device("zeDeviceGetMemoryProperties", hDevice, &device);
    if (result)
        return result;
    if (properties && *pCount) {
        if (properties->stype != ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES)
            return ze_leave(SIM_INVALID);
        properties->flags = 0;
        properties->maxClockRate = 2000;
        properties->maxBusWidth = 128;
        properties->totalSize = device->size;
        snprintf(properties->name, sizeof properties->name, "DDR");
    }
    if (!*pCount || SIM_ZE_SINCE(7))
        *pCount = 1;
    return ze_leave(SIM_OK);
}

ze_result_t zeDeviceGetMemoryAccessProperties(ze_device_handle_t hDevice,
                                              ze_device_memory_access_properties_t *properties)
{
    struct sim_device *device;
    const ze_result_t result =
        ze_enter_device("zeDeviceGetMemoryAccessProperties", hDevice, &device);
    if (result)
        return result;
    if (properties->stype != ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES)
        return ze_leave(SIM_INVALID);
    properties->hostAllocCapabilities = ZE_MEMORY_ACCESS_CAP_FLAG_RW;
    properties->deviceAllocCapabilities = ZE_MEMORY_ACCESS_CAP_FLAG_RW;
    properties->sharedSingleDeviceAllocCapabilities =
        ze_has_shared() ? (uint32_t)ZE_MEMORY_ACCESS_CAP_FLAG_RW : 0;
    properties->sharedCrossDeviceAllocCapabilities = 0;
    properties->sharedSystemAllocCapabilities = 0;
    return ze_leave(SIM_OK);
}

bool ze_has_copy_queue(void)
{
    return sim_setting("GPUGLUE_SIM_ZE_COPY", 1);
}

static void describe_group(bool copies, ze_command_queue_group_properties_t *out)
{
    out->flags = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
    if (!copies)
        out->flags |= ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
    if (!copies && SIM_ZE_COOPERATIVE)
        out->flags |= ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS;
    out->numQueues = copies ? 1 : SIM_ZE_QUEUES;
    out->maxMemoryFillPatternSize = copies ? 1 : SIM_ZE_FILL_MOST;
}

/* The first group can only copy, so that a caller that always takes the first group fails. */
ze_result_t zeDeviceGetCommandQueueGroupProperties(ze_device_handle_t hDevice, uint32_t *pCount,
                                                   ze_command_queue_group_properties_t *properties)
{
    const uint32_t groups = ze_has_copy_queue() ? 2 : 1;
    struct sim_device *device;
    const ze_result_t result =
        ze_enter_device("zeDeviceGetCommandQueueGroupProperties", hDevice, &device);
    if (result)
        return result;
    for (uint32_t i = 0; properties && i < *pCount && i < groups; i++) {
        if (properties[i].stype != ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES)
            return ze_leave(SIM_INVALID);
        describe_group(i + 1 < groups, &properties[i]);
    }
    if (!*pCount || SIM_ZE_SINCE(7))
        *pCount = groups;
    return ze_leave(SIM_OK);
}

ze_result_t zeDevicePciGetPropertiesExt(ze_device_handle_t hDevice,
                                        ze_pci_ext_properties_t *properties)
{
    struct sim_device *device;
    const ze_result_t result = ze_enter_device("zeDevicePciGetPropertiesExt", hDevice, &device);
    if (result)
        return result;
    if (properties->stype != ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES)
        return ze_leave(SIM_INVALID);
    properties->address =
        (ze_pci_address_ext_t){0, 0x3a + (uint32_t)device->physical / tiles(), 0, 0};
    properties->maxSpeed = (ze_pci_speed_ext_t){4, 8, -1};
    return ze_leave(SIM_OK);
}

ze_result_t zeDeviceCanAccessPeer(ze_device_handle_t hDevice, ze_device_handle_t hPeerDevice,
                                  ze_bool_t *value)
{
    struct sim_device *device, *peer;
    const ze_result_t result = ze_enter_device("zeDeviceCanAccessPeer", hDevice, &device);
    if (result)
        return result;
    peer = ze_device(hPeerDevice);
    if (!peer)
        return ze_leave(SIM_INVALID);
    *value = peer == device || sim.peers != SIM_PEERS_APART;
    return ze_leave(SIM_OK);
}

/* As Device::getStatus of intel/compute-runtime. The properties of a lost device are reported as before. */
ze_result_t zeDeviceGetP2PProperties(ze_device_handle_t hDevice, ze_device_handle_t hPeerDevice,
                                     ze_device_p2p_properties_t *properties)
{
    struct sim_device *device;
    const ze_result_t result = ze_enter_device("zeDeviceGetP2PProperties", hDevice, &device);
    if (result)
        return result;
    if (!ze_device(hPeerDevice) || properties->stype != ZE_STRUCTURE_TYPE_DEVICE_P2P_PROPERTIES)
        return ze_leave(SIM_INVALID);
    properties->flags = sim.peers ? (uint32_t)ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS : 0;
    return ze_leave(SIM_OK);
}

ze_result_t zeDeviceGetStatus(ze_device_handle_t hDevice)
{
    struct sim_device *device;
    const ze_result_t result = ze_enter_device("zeDeviceGetStatus", hDevice, &device);
    return result ? result : ze_leave(device->primary->lost);
}

ze_result_t sim_zeDeviceSynchronize(ze_device_handle_t hDevice)
{
    struct sim_device *device;
    const ze_result_t result = ze_enter_device("zeDeviceSynchronize", hDevice, &device);
    if (result)
        return result;
    if (!SIM_ZE_SINCE(14))
        return ze_leave(SIM_UNSUPPORTED);
    sim_wait_device(device);
    return ze_leave(device->primary->lost);
}
