/* Level Zero face: modules and kernels; see sim_module.c for what a launch does here. */
#include "sim_ze.h"
#include "sim_module.h"

#include <string.h>

enum { MAGIC = 0x07230203 };

static int check_module(const ze_module_desc_t *desc)
{
    if (desc->stype != ZE_STRUCTURE_TYPE_MODULE_DESC)
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    if (desc->format != ZE_MODULE_FORMAT_IL_SPIRV)
        return ZE_RESULT_ERROR_INVALID_NATIVE_BINARY;
    uint32_t magic = 0;
    if (desc->inputSize >= sizeof magic)
        memcpy(&magic, desc->pInputModule, sizeof magic);
    return magic == MAGIC ? SIM_OK : ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
}

ze_result_t zeModuleCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice,
                           const ze_module_desc_t *desc, ze_module_handle_t *phModule,
                           ze_module_build_log_handle_t *phBuildLog)
{
    struct sim_context *context;
    struct sim_module *module;
    int status;
    const ze_result_t result = ze_enter_context("zeModuleCreate", hContext, &context);
    if (result)
        return result;
    struct sim_device *device = ze_device(hDevice);
    status = device && desc && phModule ? check_module(desc) : SIM_BAD_HANDLE;
    if (!status)
        status = sim_module_load(device->primary, desc->pInputModule, desc->inputSize, &module);
    if (!status)
        *phModule = (ze_module_handle_t)(void *)module;
    if (phBuildLog) /* made in any case */
        *phBuildLog = (ze_module_build_log_handle_t)(void *)context;
    return ze_leave(status);
}

ze_result_t zeModuleDestroy(ze_module_handle_t hModule)
{
    ze_attempt(&sim_modules, hModule);
    const ze_result_t result = ze_enter("zeModuleDestroy");
    if (result)
        return result;
    struct sim_module *module = sim_table_find(&sim_modules, hModule);
    if (!module)
        return ze_leave(SIM_BAD_HANDLE);
    sim_module_unload(module);
    return ze_leave(SIM_OK);
}

ze_result_t zeModuleBuildLogDestroy(ze_module_build_log_handle_t hModuleBuildLog)
{
    const ze_result_t result = ze_enter("zeModuleBuildLogDestroy");
    return result ? result : ze_leave(hModuleBuildLog ? SIM_OK : SIM_BAD_HANDLE);
}

ze_result_t zeModuleBuildLogGetString(ze_module_build_log_handle_t hModuleBuildLog, size_t *pSize,
                                      char *pBuildLog)
{
    const ze_result_t result = ze_enter("zeModuleBuildLogGetString");
    if (result)
        return result;
    if (!hModuleBuildLog || !pSize)
        return ze_leave(SIM_BAD_HANDLE);
    if (pBuildLog && *pSize)
        pBuildLog[0] = 0;
    *pSize = 1;
    return ze_leave(SIM_OK);
}

ze_result_t zeModuleGetGlobalPointer(ze_module_handle_t hModule, const char *pGlobalName,
                                     size_t *pSize, void **pptr)
{
    uint64_t address = 0;
    size_t size = 0;
    const ze_result_t result = ze_enter("zeModuleGetGlobalPointer");
    if (result)
        return result;
    struct sim_module *module = sim_table_find(&sim_modules, hModule);
    if (!module || !pGlobalName)
        return ze_leave(SIM_BAD_HANDLE);
    int status = sim_module_global(module, pGlobalName, &address, &size);
    if (status == SIM_NOT_FOUND)
        status = ZE_RESULT_ERROR_INVALID_GLOBAL_NAME;
    if (!status && pSize)
        *pSize = size;
    if (!status && pptr)
        *pptr = (void *)(uintptr_t)address;
    return ze_leave(status);
}

/* ---- kernels ---- */

ze_result_t zeKernelCreate(ze_module_handle_t hModule, const ze_kernel_desc_t *desc,
                           ze_kernel_handle_t *phKernel)
{
    struct sim_function *function;
    const ze_result_t result = ze_enter("zeKernelCreate");
    if (result)
        return result;
    struct sim_module *module = sim_table_find(&sim_modules, hModule);
    if (!module || !desc || desc->stype != ZE_STRUCTURE_TYPE_KERNEL_DESC)
        return ze_leave(module ? SIM_INVALID : SIM_BAD_HANDLE);
    int status = sim_module_function(module, desc->pKernelName, &function);
    if (status == SIM_NOT_FOUND)
        status = ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
    if (!status)
        *phKernel = (ze_kernel_handle_t)(void *)function;
    return ze_leave(status);
}

/* The rest goes with the module. */
ze_result_t zeKernelDestroy(ze_kernel_handle_t hKernel)
{
    ze_attempt(&sim_functions, hKernel);
    const ze_result_t result = ze_enter("zeKernelDestroy");
    if (result)
        return result;
    return ze_leave(sim_table_find(&sim_functions, hKernel) ? SIM_OK : SIM_BAD_HANDLE);
}

static ze_result_t enter_kernel(const char *name, ze_kernel_handle_t handle,
                                struct sim_function **function)
{
    const ze_result_t result = ze_enter(name);
    if (result)
        return result;
    *function = sim_table_find(&sim_functions, handle);
    return *function ? ZE_RESULT_SUCCESS : ze_leave(SIM_BAD_HANDLE);
}

ze_result_t zeKernelSetGroupSize(ze_kernel_handle_t hKernel, uint32_t groupSizeX,
                                 uint32_t groupSizeY, uint32_t groupSizeZ)
{
    struct sim_function *function;
    const ze_result_t result = enter_kernel("zeKernelSetGroupSize", hKernel, &function);
    if (result)
        return result;
    function->block[0] = groupSizeX;
    function->block[1] = groupSizeY;
    function->block[2] = groupSizeZ;
    return ze_leave(SIM_OK);
}

ze_result_t zeKernelSuggestGroupSize(ze_kernel_handle_t hKernel, uint32_t globalSizeX,
                                     uint32_t globalSizeY, uint32_t globalSizeZ,
                                     uint32_t *groupSizeX, uint32_t *groupSizeY,
                                     uint32_t *groupSizeZ)
{
    struct sim_function *function;
    const ze_result_t result = enter_kernel("zeKernelSuggestGroupSize", hKernel, &function);
    (void)globalSizeY;
    (void)globalSizeZ;
    if (result)
        return result;
    *groupSizeX = globalSizeX < 256 ? globalSizeX : 256;
    *groupSizeY = *groupSizeZ = 1;
    return ze_leave(SIM_OK);
}

ze_result_t zeKernelSetArgumentValue(ze_kernel_handle_t hKernel, uint32_t argIndex, size_t argSize,
                                     const void *pArgValue)
{
    struct sim_function *function;
    const ze_result_t result = enter_kernel("zeKernelSetArgumentValue", hKernel, &function);
    if (result)
        return result;
    if (!function->kernel)
        return ze_leave(SIM_OK);
    if (argIndex >= function->kernel->count)
        return ze_leave(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX);
    if (argSize != function->kernel->sizes[argIndex])
        return ze_leave(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE);
    memcpy(function->values[argIndex], pArgValue, argSize);
    return ze_leave(SIM_OK);
}

ze_result_t zeKernelSetIndirectAccess(ze_kernel_handle_t hKernel,
                                      ze_kernel_indirect_access_flags_t flags)
{
    struct sim_function *function;
    const ze_result_t result = enter_kernel("zeKernelSetIndirectAccess", hKernel, &function);
    (void)flags;
    return result ? result : ze_leave(SIM_OK);
}

ze_result_t zeKernelGetProperties(ze_kernel_handle_t hKernel, ze_kernel_properties_t *properties)
{
    struct sim_function *function;
    const ze_result_t result = enter_kernel("zeKernelGetProperties", hKernel, &function);
    if (result)
        return result;
    if (properties->stype != ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES)
        return ze_leave(SIM_INVALID);
    properties->numKernelArgs = function->kernel ? function->kernel->count : 0;
    properties->maxSubgroupSize = 32;
    return ze_leave(SIM_OK);
}

int ze_prepare(struct sim_queue *list, const struct sim_function *function,
               const ze_group_count_t *groups, struct sim_work *work)
{
    const struct sim_launch shape = {
        .grid = {groups->groupCountX, groups->groupCountY, groups->groupCountZ},
        .block = {function->block[0], function->block[1], function->block[2]}};
    void *arguments[SIM_MAX_ARGUMENTS];
    for (unsigned i = 0; i < SIM_MAX_ARGUMENTS; i++)
        arguments[i] = (void *)(uintptr_t)function->values[i];
    return sim_module_prepare(list, function, &shape, arguments, work);
}
