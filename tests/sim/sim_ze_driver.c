/* sim_ze_driver.c: Level Zero: initialisation, the driver, contexts. */
#include "sim_ze.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMER_HZ = 12000000 };

static int driver_object; /* its address is the handle */
static struct sim_context *default_context;

ze_driver_handle_t ze_driver(void)
{
    return (ze_driver_handle_t)(void *)&driver_object;
}

/* Each device has an internal engine context, which owns its work and can be lost. */
static int prepare(void)
{
    int status = SIM_OK;
    for (int i = 0; i < sim.device_count && !status; i++) {
        struct sim_device *device = &sim.devices[i];
        if (device->primary)
            continue;
        status = sim_context_create(device, true, &device->primary);
        if (!status)
            device->primary->slot.internal = true;
    }
    if (!status && !default_context)
        status = sim_context_create(&sim.devices[0], false, &default_context);
    if (!status)
        default_context->slot.internal = true;
    return status;
}

/* The clock wraps after its first timestamp. The new driver's memory is above the mapped range. */
static ze_result_t start(void)
{
    int status;
    pthread_mutex_lock(&sim.lock);
    sim.clock_hz = TIMER_HZ;
    if (!sim_initialised())
        sim.far_base = SIM_ZE_SINCE(7) ? 0xffffd55600000000u : 0;
    pthread_mutex_unlock(&sim.lock);
    status = sim_init(getenv("ZE_AFFINITY_MASK"));
    if (status)
        return ZE_RESULT_ERROR_UNINITIALIZED;
    pthread_mutex_lock(&sim.lock);
    status = prepare();
    pthread_mutex_unlock(&sim.lock);
    return status ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY : ZE_RESULT_SUCCESS;
}

ze_result_t zeInit(ze_init_flags_t flags)
{
    const int fault = sim_fault("zeInit");
    if (fault || sim_forked() || sim_finished())
        return fault ? (ze_result_t)fault : ZE_RESULT_ERROR_UNINITIALIZED;
    if (flags & ~(ze_init_flags_t)(ZE_INIT_FLAG_GPU_ONLY | ZE_INIT_FLAG_VPU_ONLY))
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    return flags == ZE_INIT_FLAG_VPU_ONLY ? ZE_RESULT_ERROR_UNINITIALIZED : start();
}

ze_result_t zeDriverGet(uint32_t *pCount, ze_driver_handle_t *phDrivers)
{
    const ze_result_t result = ze_enter("zeDriverGet");
    if (result)
        return result;
    if (!pCount)
        return ze_leave(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    if (*pCount && phDrivers)
        phDrivers[0] = ze_driver();
    *pCount = 1;
    return ze_leave(SIM_OK);
}

struct driver_type {
    uint32_t stype;
    const void *next;
    uint32_t flags;
};

ze_result_t sim_zeInitDrivers(uint32_t *count, ze_driver_handle_t *drivers, void *desc)
{
    const struct driver_type *type = desc;
    const int fault = sim_fault("zeInitDrivers");
    ze_result_t result;
    if (fault || sim_forked() || sim_finished())
        return fault ? (ze_result_t)fault : ZE_RESULT_ERROR_UNINITIALIZED;
    if (!SIM_ZE_SINCE(10))
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    if (!count || !type)
        return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (type->stype != SIM_ZE_INIT_DRIVER_DESC || !type->flags)
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    result = type->flags & 1 ? start() : ZE_RESULT_ERROR_UNINITIALIZED;
    return result ? result : zeDriverGet(count, drivers);
}

ze_result_t zeDriverGetApiVersion(ze_driver_handle_t hDriver, ze_api_version_t *version)
{
    const ze_result_t result = ze_enter_driver("zeDriverGetApiVersion", hDriver);
    if (result)
        return result;
    *version = (ze_api_version_t)sim_setting("GPUGLUE_SIM_ZE_VERSION", SIM_ZE_API);
    return ze_leave(SIM_OK);
}

ze_result_t zeDriverGetProperties(ze_driver_handle_t hDriver, ze_driver_properties_t *properties)
{
    const ze_result_t result = ze_enter_driver("zeDriverGetProperties", hDriver);
    if (result)
        return result;
    if (properties->stype != ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES)
        return ze_leave(SIM_INVALID);
    memset(&properties->uuid, 7, sizeof properties->uuid);
    properties->driverVersion = 0x01000000 + (SIM_ZE_API & 0xffff);
    return ze_leave(SIM_OK);
}

ze_result_t zeDriverGetIpcProperties(ze_driver_handle_t hDriver,
                                     ze_driver_ipc_properties_t *properties)
{
    const ze_result_t result = ze_enter_driver("zeDriverGetIpcProperties", hDriver);
    if (result)
        return result;
    properties->flags =
        sim_setting("GPUGLUE_SIM_ZE_IPC", 1) ? (uint32_t)ZE_IPC_PROPERTY_FLAG_MEMORY : 0;
    return ze_leave(SIM_OK);
}

ze_result_t zeDriverGetExtensionProperties(ze_driver_handle_t hDriver, uint32_t *pCount,
                                           ze_driver_extension_properties_t *properties)
{
    static const char *const names[] = {
        "ZE_experimental_relaxed_allocation_limits", "ZE_experimental_module_program",
        "ZE_extension_device_usablemem_size_properties",
        "ZE_extension_kernel_max_group_size_properties", "ZE_extension_record_replay_graph"};
    const uint32_t count = SIM_ZE_SINCE(17) ? 5 : SIM_ZE_SINCE(14) ? 4 : 1;
    const ze_result_t result = ze_enter_driver("zeDriverGetExtensionProperties", hDriver);
    if (result)
        return result;
    for (uint32_t i = 0; properties && i < *pCount && i < count; i++) {
        snprintf(properties[i].name, sizeof properties[i].name, "%s", names[i]);
        properties[i].version = 1u << 16;
    }
    *pCount = count;
    return ze_leave(SIM_OK);
}

ze_context_handle_t sim_zeDriverGetDefaultContext(ze_driver_handle_t driver)
{
    if (!SIM_ZE_SINCE(14) || ze_enter_driver("zeDriverGetDefaultContext", driver))
        return NULL;
    ze_leave(SIM_OK);
    return (ze_context_handle_t)(void *)default_context;
}

/* Where this library also acts as the loader, its handles are driver handles. */
ze_result_t zelLoaderTranslateHandle(int kind, void *handle, void **out)
{
    (void)kind;
    *out = handle;
    return ZE_RESULT_SUCCESS;
}

/* ---- contexts */

ze_result_t zeContextCreate(ze_driver_handle_t hDriver, const ze_context_desc_t *desc,
                            ze_context_handle_t *phContext)
{
    struct sim_context *context;
    int status;
    const ze_result_t result = ze_enter_driver("zeContextCreate", hDriver);
    if (result)
        return result;
    if (!desc || !phContext)
        return ze_leave(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    if (desc->stype != ZE_STRUCTURE_TYPE_CONTEXT_DESC || desc->flags)
        return ze_leave(ZE_RESULT_ERROR_INVALID_ENUMERATION);
    status = sim_context_create(&sim.devices[0], false, &context);
    if (!status)
        *phContext = (ze_context_handle_t)(void *)context;
    return ze_leave(status);
}

/* Whether the context still has objects, or the client may not destroy it. */
static bool in_use(const struct sim_context *context)
{
    for (struct sim_pool *pool = sim_table_next(&sim_pools, NULL); pool;
         pool = sim_table_next(&sim_pools, pool))
        if (pool->values[0] == (uintptr_t)context)
            return true;
    return context->slot.internal;
}

ze_result_t zeContextDestroy(ze_context_handle_t hContext)
{
    struct sim_context *context;
    ze_result_t result;
    ze_attempt(&sim_contexts, hContext);
    result = ze_enter_context("zeContextDestroy", hContext, &context);
    if (result)
        return result;
    if (in_use(context))
        return ze_leave(SIM_ILLEGAL_STATE);
    sim_queue_destroy(context->legacy);
    sim_table_drop(&sim_contexts, context);
    return ze_leave(SIM_OK);
}
