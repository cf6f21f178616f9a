/* sim_ze_module.c: Level Zero: modules and kernels; sim_module.c explains what a simulated launch
 * does. */
#include "sim_ze_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char build_log[256];

static int build(const struct ze_program *program, struct sim_program **out)
{
    if (!sim_opencl_wanted())
        return SIM_OK;
    if (program->first != program->size)
        return SIM_UNSUPPORTED; /* OpenCL links no SPIR-V */
    return sim_opencl_build(program->bytes, program->size, out);
}

static int load(struct sim_device *device, const ze_module_desc_t *desc, struct sim_module **out)
{
    struct sim_program *code = NULL;
    struct ze_program program;
    int status = ze_program_make(desc, &program, build_log);
    if (!status)
        status = build(&program, &code);
    if (!status)
        status = sim_module_load(device->primary, program.bytes, program.size, out);
    if (status) {
        sim_opencl_release(code);
    } else {
        sim_module_use(*out, code);
        (*out)->stateful = program.stateful;
        (*out)->unlinked = program.unlinked;
        (*out)->first = program.first;
        (*out)->constant_count = program.constant_count;
        memcpy((*out)->constants, program.constants, sizeof program.constants);
    }
    free(program.bytes);
    return status == SIM_INVALID_IMAGE ? ZE_RESULT_ERROR_MODULE_BUILD_FAILURE : status;
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
    status = device && desc && phModule ? load(device, desc, &module) : SIM_BAD_HANDLE;
    if (!status)
        *phModule = (ze_module_handle_t)(void *)module;
    if (phBuildLog) /* created even if the build fails */
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
    const char *set = getenv("GPUGLUE_SIM_ZE_LOG");
    const char *text = build_log[0]                  ? build_log
                       : sim_opencl_wanted() || !set ? sim_opencl_log()
                                                     : set;
    if (pBuildLog && *pSize)
        snprintf(pBuildLog, *pSize, "%s", text);
    *pSize = strlen(text) + 1;
    return ze_leave(SIM_OK);
}

ze_result_t zeModuleGetNativeBinary(ze_module_handle_t hModule, size_t *pSize,
                                    uint8_t *pModuleNativeBinary)
{
    const ze_result_t result = ze_enter("zeModuleGetNativeBinary");
    if (result)
        return result;
    const struct sim_module *module = sim_table_find(&sim_modules, hModule);
    if (!module || !pSize)
        return ze_leave(SIM_BAD_HANDLE);
    struct ze_program program = {.bytes = (unsigned char *)module->image,
                                 .size = module->size,
                                 .first = module->first,
                                 .constant_count = module->constant_count,
                                 .stateful = module->stateful,
                                 .unlinked = module->unlinked};
    memcpy(program.constants, module->constants, sizeof program.constants);
    ze_program_binary(&program, pSize, pModuleNativeBinary);
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
    if (module->unlinked)
        return ze_leave(ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED);
    int status = sim_module_function(module, desc->pKernelName, &function);
    if (status == SIM_NOT_FOUND)
        status = ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
    if (!status)
        *phKernel = (ze_kernel_handle_t)(void *)function;
    return ze_leave(status);
}

/* The function itself is destroyed with the module. */
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

/* As KernelHelper::getMaxWorkGroupCount of intel/compute-runtime, for the simulated device's 2 x 6 x 16 units with 7
 * threads of 32 lanes each. */
uint32_t ze_most_groups(const struct sim_function *function)
{
    enum { HARDWARE_THREADS = 2 * 6 * 16 * 7, LANES = 32 };
    const uint32_t size = function->block[0] * function->block[1] * function->block[2];
    return HARDWARE_THREADS / ((size + LANES - 1) / LANES);
}

ze_result_t zeKernelSuggestMaxCooperativeGroupCount(ze_kernel_handle_t hKernel,
                                                    uint32_t *totalGroupCount)
{
    struct sim_function *function;
    const ze_result_t result =
        enter_kernel("zeKernelSuggestMaxCooperativeGroupCount", hKernel, &function);
    if (result)
        return result;
    if (!function->block[0] || !function->block[1] || !function->block[2]) {
        fprintf(stderr, "gpuglue sim: a kernel without a group size\n");
        abort(); /* UNRECOVERABLE_IF in that driver */
    }
    *totalGroupCount = ze_most_groups(function);
    return ze_leave(SIM_OK);
}

static int set_value(struct sim_function *function, uint32_t index, size_t size, const void *bytes)
{
    const int status = sim_code_check(function->code, index, size, bytes);
    if (status)
        return status == SIM_NOT_FOUND ? ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX
                                       : ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE;
    struct sim_value *value = &function->values_set[index];
    void *copy = bytes ? malloc(size) : NULL;
    if (bytes && !copy)
        return SIM_NO_MEMORY;
    if (bytes)
        memcpy(copy, bytes, size);
    free(value->bytes);
    *value = (struct sim_value){.size = size, .bytes = copy};
    return SIM_OK;
}

ze_result_t zeKernelSetArgumentValue(ze_kernel_handle_t hKernel, uint32_t argIndex, size_t argSize,
                                     const void *pArgValue)
{
    struct sim_function *function;
    const ze_result_t result = enter_kernel("zeKernelSetArgumentValue", hKernel, &function);
    if (result)
        return result;
    if (function->code)
        return ze_leave(set_value(function, argIndex, argSize, pArgValue));
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

/* A chained struct with one number, which older headers lack. */
struct kernel_extra {
    uint32_t type;
    struct kernel_extra *next;
    uint32_t value;
};

/* Intel's driver of 22.43 looks at the first struct of a chain again and again: it ends only if that is the last one
 * (KernelImp::getProperties). Later ones read the whole chain. */
static void kernel_extend_properties(struct kernel_extra *first)
{
    if (!SIM_ZE_SINCE(4) && first && first->next) {
        fprintf(stderr, "gpuglue sim: zeKernelGetProperties does not return for a chain of two\n");
        abort();
    }
    for (struct kernel_extra *extra = first; extra && SIM_ZE_SINCE(4); extra = extra->next) {
        if (extra->type == 0x10013) /* ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES */
            extra->value = 512;
        else if (extra->type == 0x00030012) /* ZEX_STRUCTURE_KERNEL_REGISTER_FILE_SIZE_EXP */
            extra->value = 256;
    }
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
    if (function->code) {
        properties->numKernelArgs = sim_code_count(function->code);
        properties->localMemSize = sim_code_local(function->code);
    }
    properties->maxSubgroupSize = 32;
    properties->privateMemSize = 64;
    properties->spillMemSize = 32;
    kernel_extend_properties(properties->pNext);
    return ze_leave(SIM_OK);
}

/* Without the build flag a kernel addresses a buffer as a surface, with offsets of 32 bits: on Gen12, DG1, DG2 and Xe-LPG,
 * where CompilerProductHelper::isForceToStatelessRequired of intel/compute-runtime is false. */
static void wrap_address(const struct sim_function *function, void *value)
{
    uint64_t address;
    memcpy(&address, value, sizeof address);
    const struct sim_alloc *alloc = sim_memory_find(address);
    if (!function->module->stateful || !alloc)
        return;
    address = alloc->base + (uint32_t)(address - alloc->base);
    memcpy(value, &address, sizeof address);
}

int ze_prepare(struct sim_queue *list, const struct sim_function *function,
               const ze_group_count_t *groups, struct sim_work *work)
{
    const struct sim_launch shape = {
        .grid = {groups->groupCountX, groups->groupCountY, groups->groupCountZ},
        .block = {function->block[0], function->block[1], function->block[2]}};
    _Alignas(16) unsigned char values[SIM_MAX_ARGUMENTS][16];
    void *arguments[SIM_MAX_ARGUMENTS];
    memcpy(values, function->values, sizeof values);
    for (unsigned i = 0; function->code && i < sim_code_count(function->code); i++)
        if (sim_code_pointer(function->code, i) && function->values_set[i].bytes)
            wrap_address(function, function->values_set[i].bytes);
    for (unsigned i = 0; i < SIM_MAX_ARGUMENTS; i++) {
        if (function->kernel && i < function->kernel->count && function->kernel->sizes[i] == 8)
            wrap_address(function, values[i]);
        arguments[i] = values[i];
    }
    return sim_module_prepare(list, function, &shape, arguments, work);
}
