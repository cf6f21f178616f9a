/* sim_hip_module.c: HIP: modules, functions and launches; sim_module.c explains what a simulated
 * launch does. */
#include "sim_hip.h"
#include "sim_module.h"

#include <string.h>

enum { ELF_OFFSET = 40, ELF_COUNT = 60, SECTION_SIZE = 64 };
static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";

#if SIM_HIP_57 && !HIP_HEADERS_57
#pragma GCC visibility push(default)
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned int gridDimX,
                                            unsigned int gridDimY, unsigned int gridDimZ,
                                            unsigned int blockDimX, unsigned int blockDimY,
                                            unsigned int blockDimZ, unsigned int sharedMemBytes,
                                            hipStream_t stream, void **kernelParams);
#pragma GCC visibility pop
#endif

static uint64_t number(const char *at, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, at, size);
    return value;
}

static size_t elf_size(const char *image)
{
    return (size_t)(number(image + ELF_OFFSET, 8) + number(image + ELF_COUNT, 2) * SECTION_SIZE);
}

/* The runtime gets no size and reads it from the image. Returns 0 if it is not an image. A bundle ends
 * with its last code object. */
static size_t size_of(const char *image)
{
    const char *entry = image + sizeof bundle_magic - 1 + 8;
    size_t end = 0;
    if (!memcmp(image, "\177ELF", 4))
        return elf_size(image);
    if (memcmp(image, bundle_magic, sizeof bundle_magic - 1))
        return 0;
    for (uint64_t left = number(entry - 8, 8); left; left--) {
        const size_t last = (size_t)(number(entry, 8) + number(entry + 8, 8));
        end = last > end ? last : end;
        entry += 24 + number(entry + 16, 8);
    }
    return end;
}

static hipError_t load(const char *name, hipModule_t *out, const void *image)
{
    struct sim_context *context;
    struct sim_module *module;
    int status;
    hipError_t result = hip_enter_context(name, &context);
    if (result)
        return result;
    status = out && image ? sim_module_load(context, image, size_of(image), &module) : SIM_INVALID;
    if (!status)
        *out = (hipModule_t)(void *)module;
    return hip_leave(status);
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image)
{
    return load("hipModuleLoadData", module, image);
}

hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned int numOptions,
                               hipJitOption *options, void **optionValues)
{
    (void)numOptions;
    (void)options;
    (void)optionValues;
    return load("hipModuleLoadDataEx", module, image);
}

hipError_t hipModuleUnload(hipModule_t handle)
{
    struct sim_module *module;
    hipError_t result;
    hip_attempt(&sim_modules, handle);
    result = hip_enter("hipModuleUnload");
    if (result)
        return result;
    module = sim_table_find(&sim_modules, handle);
    if (!module)
        return hip_leave(SIM_BAD_HANDLE);
    sim_module_unload(module);
    return hip_leave(SIM_OK);
}

hipError_t hipModuleGetFunction(hipFunction_t *out, hipModule_t handle, const char *kname)
{
    struct sim_function *function;
    struct sim_module *module;
    int status = SIM_BAD_HANDLE;
    hipError_t result = hip_enter("hipModuleGetFunction");
    if (result)
        return result;
    module = sim_table_find(&sim_modules, handle);
    if (module)
        status = out && kname ? sim_module_one_function(module, kname, SIM_MAX_SHARED, &function)
                              : SIM_INVALID;
    if (!status)
        *out = (hipFunction_t)(void *)function;
    return hip_leave(status);
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t *dptr, size_t *bytes, hipModule_t hmod,
                              const char *name)
{
    struct sim_module *module;
    uint64_t address = 0;
    size_t size = 0;
    int status = SIM_BAD_HANDLE;
    hipError_t result = hip_enter("hipModuleGetGlobal");
    if (result)
        return result;
    module = sim_table_find(&sim_modules, hmod);
    if (module)
        status = name ? sim_module_global(module, name, &address, &size) : SIM_INVALID;
    if (!status) {
        *dptr = (hipDeviceptr_t)(uintptr_t)address;
        *bytes = size;
    }
    return hip_leave(status);
}

/* ---- functions ---- */

static hipError_t enter_function(const char *name, hipFunction_t handle)
{
    hipError_t result = hip_enter(name);
    if (result)
        return result;
    return sim_table_find(&sim_functions, handle) ? hipSuccess : hip_leave(SIM_BAD_HANDLE);
}

hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute attrib, hipFunction_t hfunc)
{
    hipError_t result = enter_function("hipFuncGetAttribute", hfunc);
    if (result)
        return result;
    *value = attrib == HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK           ? SIM_MAX_THREADS
             : attrib == HIP_FUNC_ATTRIBUTE_NUM_REGS                      ? 24
             : attrib == HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? 65536
                                                                          : 0;
    return hip_leave(SIM_OK);
}

static hipError_t launch(const char *name, hipFunction_t handle, const struct sim_launch *shape,
                         hipStream_t stream, void **arguments, bool captured)
{
    struct sim_function *function;
    struct sim_capture *capture;
    struct sim_queue *queue;
    int status;
    hipError_t result = hip_enter_stream(name, stream, &queue);
    if (result)
        return result;
    function = sim_table_find(&sim_functions, handle);
    if (!function)
        return hip_leave(SIM_BAD_HANDLE);
    if (function->kernel && function->kernel->count && !arguments)
        return hip_leave(SIM_INVALID);
    capture = queue->capture;
    if (!captured)
        queue->capture = NULL;
    status = sim_module_launch(queue, function, shape, arguments);
    queue->capture = capture;
    return hip_leave(status);
}

hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned int gridDimX, unsigned int gridDimY,
                                 unsigned int gridDimZ, unsigned int blockDimX,
                                 unsigned int blockDimY, unsigned int blockDimZ,
                                 unsigned int sharedMemBytes, hipStream_t stream,
                                 void **kernelParams, void **extra)
{
    const struct sim_launch shape = {.grid = {gridDimX, gridDimY, gridDimZ},
                                     .block = {blockDimX, blockDimY, blockDimZ},
                                     .shared = sharedMemBytes};
    if (extra)
        return hip_note(hipErrorNotSupported);
    return launch("hipModuleLaunchKernel", f, &shape, stream, kernelParams, true);
}

#if SIM_HIP_57
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned int gridDimX,
                                            unsigned int gridDimY, unsigned int gridDimZ,
                                            unsigned int blockDimX, unsigned int blockDimY,
                                            unsigned int blockDimZ, unsigned int sharedMemBytes,
                                            hipStream_t stream, void **kernelParams)
{
    const struct sim_launch shape = {.grid = {gridDimX, gridDimY, gridDimZ},
                                     .block = {blockDimX, blockDimY, blockDimZ},
                                     .shared = sharedMemBytes};
    return launch("hipModuleLaunchCooperativeKernel", f, &shape, stream, kernelParams, false);
}
#endif

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, hipFunction_t f,
                                                              int blockSize,
                                                              size_t dynSharedMemPerBlk)
{
    hipError_t result = enter_function("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", f);
    if (result)
        return result;
    if (blockSize < 1 || blockSize > SIM_MAX_THREADS)
        return hip_leave(SIM_INVALID);
    *numBlocks = dynSharedMemPerBlk > 65536 ? 0 : 2 * SIM_MAX_THREADS / blockSize;
    return hip_leave(SIM_OK);
}

hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *gridSize, int *blockSize, hipFunction_t f,
                                                   size_t dynSharedMemPerBlk, int blockSizeLimit)
{
    hipError_t result = enter_function("hipModuleOccupancyMaxPotentialBlockSize", f);
    (void)dynSharedMemPerBlk;
    if (result)
        return result;
    *blockSize =
        blockSizeLimit > 0 && blockSizeLimit < SIM_MAX_THREADS ? blockSizeLimit : SIM_MAX_THREADS;
    *gridSize = 2 * 304;
    return hip_leave(SIM_OK);
}
