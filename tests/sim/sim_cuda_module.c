/* sim_cuda_module.c: CUDA: modules, functions and launches; sim_module.c explains what a simulated
 * launch does. */
#include "sim_cuda.h"
#include "sim_module.h"

#include <string.h>

enum { ELF_OFFSET = 40, ELF_COUNT = 60, SECTION_SIZE = 64, FAT_HEADER = 6, FAT_SIZE = 8 };
enum { USUAL_SHARED = 49152 }; /* bytes that a launch may request without cuFuncSetAttribute */

static uint64_t number(const char *at, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, at, size);
    return value;
}

/* The driver gets no size and reads it from the image. Returns 0 if it is not an image. PTX text may be
 * shorter than a magic number. */
static size_t size_of(const char *image)
{
    if (!strncmp(image, "\177ELF", 4))
        return (size_t)(number(image + ELF_OFFSET, 8) + number(image + ELF_COUNT, 2) * SECTION_SIZE);
    if (!strncmp(image, "\x50\xed\x55\xba", 4))
        return (size_t)(number(image + FAT_HEADER, 2) + number(image + FAT_SIZE, 8));
    return strstr(image, ".version") && strstr(image, ".target") ? strlen(image) : 0;
}

static CUresult load(const char *name, CUmodule *out, const void *image)
{
    struct sim_context *context;
    struct sim_module *module;
    int status;
    CUresult result = cuda_enter_context(name, &context);
    if (result)
        return result;
    status = out && image ? sim_capture_unsafe() : SIM_INVALID;
    if (!status)
        status = sim_module_load(context, image, size_of(image), &module);
    if (!status)
        *out = (CUmodule)(void *)module;
    return cuda_leave(status);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return load("cuModuleLoadData", module, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                            CUjit_option *options, void **optionValues)
{
    if (numOptions && (!options || !optionValues))
        return CUDA_ERROR_INVALID_VALUE;
    return load("cuModuleLoadDataEx", module, image);
}

CUresult cuModuleUnload(CUmodule hmod)
{
    struct sim_module *module;
    CUresult result;
    cuda_attempt(&sim_modules, hmod);
    result = cuda_enter("cuModuleUnload");
    if (result)
        return result;
    module = sim_table_find(&sim_modules, hmod);
    if (!module)
        return cuda_leave(SIM_BAD_HANDLE);
    sim_module_unload(module);
    return cuda_leave(SIM_OK);
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct sim_context *context;
    struct sim_function *function;
    struct sim_module *module;
    int status = SIM_INVALID;
    CUresult result = cuda_enter_context("cuModuleGetFunction", &context);
    if (result)
        return result;
    module = sim_table_find(&sim_modules, hmod);
    if (module && hfunc && name)
        status = sim_module_one_function(module, name, USUAL_SHARED, &function);
    if (!status)
        *hfunc = (CUfunction)(void *)function;
    return cuda_leave(module ? status : SIM_BAD_HANDLE);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    struct sim_context *context;
    struct sim_module *module;
    uint64_t address = 0;
    size_t size = 0;
    int status = SIM_BAD_HANDLE;
    CUresult result = cuda_enter_context("cuModuleGetGlobal_v2", &context);
    if (result)
        return result;
    module = sim_table_find(&sim_modules, hmod);
    if (module)
        status = name ? sim_module_global(module, name, &address, &size) : SIM_INVALID;
    if (!status && dptr)
        *dptr = address;
    if (!status && bytes)
        *bytes = size;
    return cuda_leave(status);
}

/* Not supported, as in drivers before 12.4: it would have to read every image format. */
CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    CUresult result = cuda_enter("cuModuleGetFunctionCount");
    (void)count;
    (void)mod;
    return result ? result : cuda_leave(SIM_UNSUPPORTED);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
    CUresult result = cuda_enter("cuModuleEnumerateFunctions");
    (void)functions;
    (void)numFunctions;
    (void)mod;
    return result ? result : cuda_leave(SIM_UNSUPPORTED);
}

/* ---- functions ---- */

static CUresult enter_function(const char *name, CUfunction handle, struct sim_function **function)
{
    struct sim_context *context;
    CUresult result = cuda_enter_context(name, &context);
    if (result)
        return result;
    *function = sim_table_find(&sim_functions, handle);
    return *function ? CUDA_SUCCESS : cuda_leave(SIM_BAD_HANDLE);
}

CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
    struct sim_function *function;
    CUresult result = enter_function("cuFuncGetName", hfunc, &function);
    if (result)
        return result;
    *name = function->name;
    return cuda_leave(SIM_OK);
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    struct sim_function *function;
    CUresult result = enter_function("cuFuncGetAttribute", hfunc, &function);
    if (result)
        return result;
    if (!pi || (int)attrib < 0 || attrib >= CU_FUNC_ATTRIBUTE_MAX)
        return cuda_leave(SIM_INVALID);
    *pi = attrib == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK           ? SIM_MAX_THREADS
          : attrib == CU_FUNC_ATTRIBUTE_NUM_REGS                      ? 16
          : attrib == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? (int)function->shared_most
                                                                      : 0;
    return cuda_leave(SIM_OK);
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    struct sim_function *function;
    CUresult result = enter_function("cuFuncSetAttribute", hfunc, &function);
    if (result)
        return result;
    if (attrib != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > SIM_MAX_SHARED)
        return cuda_leave(SIM_INVALID);
    function->shared_most = (unsigned)value;
    return cuda_leave(SIM_OK);
}

static CUresult launch(const char *name, CUfunction handle, const struct sim_launch *shape,
                       CUstream stream, void **arguments)
{
    struct sim_function *function;
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream(name, stream, &queue);
    if (result)
        return result;
    function = sim_table_find(&sim_functions, handle);
    if (!function)
        return cuda_leave(SIM_BAD_HANDLE);
    if (function->kernel && function->kernel->count && !arguments)
        return cuda_leave(SIM_INVALID);
    return cuda_leave(sim_module_launch(queue, function, shape, arguments));
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void **kernelParams, void **extra)
{
    const struct sim_launch shape = {.grid = {gridDimX, gridDimY, gridDimZ},
                                     .block = {blockDimX, blockDimY, blockDimZ},
                                     .shared = sharedMemBytes};
    if (extra)
        return CUDA_ERROR_NOT_SUPPORTED;
    return launch("cuLaunchKernel", f, &shape, hStream, kernelParams);
}

enum { MULTIPROCESSORS = 132 };

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX,
                                   unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream,
                                   void **kernelParams)
{
    const struct sim_launch shape = {.grid = {gridDimX, gridDimY, gridDimZ},
                                     .block = {blockDimX, blockDimY, blockDimZ},
                                     .shared = sharedMemBytes};
    const uint64_t blocks = (uint64_t)gridDimX * gridDimY * gridDimZ,
                   threads = (uint64_t)blockDimX * blockDimY * blockDimZ;
    if (threads && blocks > MULTIPROCESSORS * (2 * SIM_MAX_THREADS / threads))
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return launch("cuLaunchCooperativeKernel", f, &shape, hStream, kernelParams);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize)
{
    struct sim_function *function;
    CUresult result = enter_function("cuOccupancyMaxActiveBlocksPerMultiprocessor", func, &function);
    if (result)
        return result;
    if (!numBlocks || blockSize < 1 || blockSize > SIM_MAX_THREADS)
        return cuda_leave(SIM_INVALID);
    *numBlocks = dynamicSMemSize > SIM_MAX_SHARED ? 0 : 2 * SIM_MAX_THREADS / blockSize;
    return cuda_leave(SIM_OK);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit)
{
    struct sim_function *function;
    CUresult result = enter_function("cuOccupancyMaxPotentialBlockSize", func, &function);
    (void)blockSizeToDynamicSMemSize;
    (void)dynamicSMemSize;
    if (result)
        return result;
    *blockSize =
        blockSizeLimit > 0 && blockSizeLimit < SIM_MAX_THREADS ? blockSizeLimit : SIM_MAX_THREADS;
    *minGridSize = 2 * MULTIPROCESSORS;
    return cuda_leave(SIM_OK);
}
