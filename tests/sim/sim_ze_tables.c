/* sim_ze_tables.c: Level Zero: the tables that the loader requests from a driver. The length of
 * a loader's table depends on its version, so newer entries are written by offset, and only
 * where the loader and the driver have them. */
#include "sim_ze.h"

#include <string.h>

enum { /* indices in the tables of 1.17 */
       GLOBAL_INIT_DRIVERS = 1,
       DRIVER_DEFAULT_CONTEXT = 8,
       DEVICE_ROOT = 18,
       DEVICE_SYNCHRONIZE = 22,
       MEM_PUT_IPC_HANDLE = 10,
       LIST_HOST_SYNCHRONIZE = 28,
       LIST_DEVICE_HANDLE = 29,
       LIST_IS_IMMEDIATE = 33,
       LIST_APPEND_HOST_FUNCTION = 51
};

static void put(void *table, int place, unsigned minor, ze_api_version_t version,
                void (*function)(void))
{
    if ((uint32_t)version >= (1u << 16 | minor) && SIM_ZE_SINCE(minor))
        memcpy((char *)table + (size_t)place * sizeof function, &function, sizeof function);
}

#pragma GCC visibility push(default)

ze_result_t zeGetGlobalProcAddrTable(ze_api_version_t version, ze_global_dditable_t *table)
{
    table->pfnInit = zeInit;
    put(table, GLOBAL_INIT_DRIVERS, 10, version, (void (*)(void))sim_zeInitDrivers);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGetDriverProcAddrTable(ze_api_version_t version, ze_driver_dditable_t *table)
{
    table->pfnGet = zeDriverGet;
    table->pfnGetApiVersion = zeDriverGetApiVersion;
    table->pfnGetProperties = zeDriverGetProperties;
    table->pfnGetIpcProperties = zeDriverGetIpcProperties;
    table->pfnGetExtensionProperties = zeDriverGetExtensionProperties;
    table->pfnGetExtensionFunctionAddress = zeDriverGetExtensionFunctionAddress;
    put(table, DRIVER_DEFAULT_CONTEXT, 17, version, (void (*)(void))sim_zeDriverGetDefaultContext);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGetDeviceProcAddrTable(ze_api_version_t version, ze_device_dditable_t *table)
{
    table->pfnGet = zeDeviceGet;
    table->pfnGetSubDevices = zeDeviceGetSubDevices;
    table->pfnGetProperties = zeDeviceGetProperties;
    table->pfnGetModuleProperties = zeDeviceGetModuleProperties;
    table->pfnGetCacheProperties = zeDeviceGetCacheProperties;
    table->pfnGetComputeProperties = zeDeviceGetComputeProperties;
    table->pfnGetCommandQueueGroupProperties = zeDeviceGetCommandQueueGroupProperties;
    table->pfnGetMemoryProperties = zeDeviceGetMemoryProperties;
    table->pfnGetMemoryAccessProperties = zeDeviceGetMemoryAccessProperties;
    table->pfnGetP2PProperties = zeDeviceGetP2PProperties;
    table->pfnCanAccessPeer = zeDeviceCanAccessPeer;
    table->pfnGetStatus = zeDeviceGetStatus;
    table->pfnPciGetPropertiesExt = zeDevicePciGetPropertiesExt;
    put(table, DEVICE_ROOT, 7, version, (void (*)(void))sim_zeDeviceGetRootDevice);
    put(table, DEVICE_SYNCHRONIZE, 17, version, (void (*)(void))sim_zeDeviceSynchronize);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGetContextProcAddrTable(ze_api_version_t version, ze_context_dditable_t *table)
{
    (void)version;
    table->pfnCreate = zeContextCreate;
    table->pfnDestroy = zeContextDestroy;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGetCommandListProcAddrTable(ze_api_version_t version,
                                          ze_command_list_dditable_t *table)
{
    table->pfnCreateImmediate = zeCommandListCreateImmediate;
    table->pfnDestroy = zeCommandListDestroy;
    table->pfnAppendBarrier = zeCommandListAppendBarrier;
    table->pfnAppendMemoryCopy = zeCommandListAppendMemoryCopy;
    table->pfnAppendMemoryFill = zeCommandListAppendMemoryFill;
    table->pfnAppendMemoryCopyRegion = zeCommandListAppendMemoryCopyRegion;
    table->pfnAppendMemoryPrefetch = zeCommandListAppendMemoryPrefetch;
    table->pfnAppendMemAdvise = zeCommandListAppendMemAdvise;
    table->pfnAppendLaunchCooperativeKernel = zeCommandListAppendLaunchCooperativeKernel;
    table->pfnAppendLaunchKernel = zeCommandListAppendLaunchKernel;
    table->pfnAppendSignalEvent = zeCommandListAppendSignalEvent;
    table->pfnAppendWaitOnEvents = zeCommandListAppendWaitOnEvents;
    table->pfnAppendWriteGlobalTimestamp = zeCommandListAppendWriteGlobalTimestamp;
    put(table, LIST_HOST_SYNCHRONIZE, 6, version, (void (*)(void))sim_zeCommandListHostSynchronize);
    put(table, LIST_DEVICE_HANDLE, 9, version, (void (*)(void))sim_zeCommandListGetDeviceHandle);
    put(table, LIST_IS_IMMEDIATE, 9, version, (void (*)(void))sim_zeCommandListIsImmediate);
    put(table, LIST_APPEND_HOST_FUNCTION, 17, version,
        (void (*)(void))sim_zeCommandListAppendHostFunction);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGetModuleProcAddrTable(ze_api_version_t version, ze_module_dditable_t *table)
{
    (void)version;
    table->pfnCreate = zeModuleCreate;
    table->pfnDestroy = zeModuleDestroy;
    table->pfnGetGlobalPointer = zeModuleGetGlobalPointer;
    table->pfnGetNativeBinary = zeModuleGetNativeBinary;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGetModuleBuildLogProcAddrTable(ze_api_version_t version,
                                             ze_module_build_log_dditable_t *table)
{
    (void)version;
    table->pfnDestroy = zeModuleBuildLogDestroy;
    table->pfnGetString = zeModuleBuildLogGetString;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGetKernelProcAddrTable(ze_api_version_t version, ze_kernel_dditable_t *table)
{
    (void)version;
    table->pfnCreate = zeKernelCreate;
    table->pfnDestroy = zeKernelDestroy;
    table->pfnSetGroupSize = zeKernelSetGroupSize;
    table->pfnSuggestMaxCooperativeGroupCount = zeKernelSuggestMaxCooperativeGroupCount;
    table->pfnSuggestGroupSize = zeKernelSuggestGroupSize;
    table->pfnSetArgumentValue = zeKernelSetArgumentValue;
    table->pfnSetIndirectAccess = zeKernelSetIndirectAccess;
    table->pfnGetProperties = zeKernelGetProperties;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGetEventPoolProcAddrTable(ze_api_version_t version, ze_event_pool_dditable_t *table)
{
    (void)version;
    table->pfnCreate = zeEventPoolCreate;
    table->pfnDestroy = zeEventPoolDestroy;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGetEventProcAddrTable(ze_api_version_t version, ze_event_dditable_t *table)
{
    (void)version;
    table->pfnCreate = zeEventCreate;
    table->pfnDestroy = zeEventDestroy;
    table->pfnHostSynchronize = zeEventHostSynchronize;
    table->pfnQueryStatus = zeEventQueryStatus;
    table->pfnHostReset = zeEventHostReset;
    table->pfnHostSignal = zeEventHostSignal;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeGetMemProcAddrTable(ze_api_version_t version, ze_mem_dditable_t *table)
{
    table->pfnAllocShared = zeMemAllocShared;
    table->pfnAllocDevice = zeMemAllocDevice;
    table->pfnAllocHost = zeMemAllocHost;
    table->pfnFree = zeMemFree;
    table->pfnGetIpcHandle = zeMemGetIpcHandle;
    table->pfnOpenIpcHandle = zeMemOpenIpcHandle;
    table->pfnCloseIpcHandle = zeMemCloseIpcHandle;
    put(table, MEM_PUT_IPC_HANDLE, 6, version, (void (*)(void))sim_zeMemPutIpcHandle);
    table->pfnGetAllocProperties = zeMemGetAllocProperties;
    table->pfnGetAddressRange = zeMemGetAddressRange;
    return ZE_RESULT_SUCCESS;
}

#pragma GCC visibility pop
