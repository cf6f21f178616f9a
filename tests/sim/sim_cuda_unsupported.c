/* sim_cuda_unsupported.c: CUDA: functions that are not simulated: they return "not supported" and
 * write no output. */
#include "sim_cuda.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

static CUresult unsupported(const char *name)
{
    CUresult result = cuda_enter(name);
    return result ? result : cuda_leave(SIM_UNSUPPORTED);
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
    return unsupported("cuModuleLoad");
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return unsupported("cuModuleLoadFatBinary");
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                           void **jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption *libraryOptions, void **libraryOptionValues,
                           unsigned int numLibraryOptions)
{
    return unsupported("cuLibraryLoadData");
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption *libraryOptions, void **libraryOptionValues,
                               unsigned int numLibraryOptions)
{
    return unsupported("cuLibraryLoadFromFile");
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return unsupported("cuLibraryUnload");
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    return unsupported("cuLibraryGetKernel");
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    return unsupported("cuLibraryGetModule");
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    return unsupported("cuLibraryGetGlobal");
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    return unsupported("cuKernelGetFunction");
}

CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
    return unsupported("cuKernelGetAttribute");
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
    return unsupported("cuKernelSetAttribute");
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset,
                              size_t *paramSize)
{
    return unsupported("cuKernelGetParamInfo");
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    return unsupported("cuFuncSetCacheConfig");
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
                            size_t *paramSize)
{
    return unsupported("cuFuncGetParamInfo");
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    return unsupported("cuFuncGetModule");
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                          void **extra)
{
    return unsupported("cuLaunchKernelEx");
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
                                                              int blockSize, size_t dynamicSMemSize,
                                                              unsigned int flags)
{
    return unsupported("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags");
}

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
                         CUlinkState *stateOut)
{
    return unsupported("cuLinkCreate_v2");
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                          const char *name, unsigned int numOptions, CUjit_option *options,
                          void **optionValues)
{
    return unsupported("cuLinkAddData_v2");
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                          unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    return unsupported("cuLinkAddFile_v2");
}

CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    return unsupported("cuLinkComplete");
}

CUresult cuLinkDestroy(CUlinkState state)
{
    return unsupported("cuLinkDestroy");
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    return unsupported("cuIpcGetEventHandle");
}

CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
    return unsupported("cuIpcOpenEventHandle");
}

CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
                                          CUmemAllocationHandleType handleType,
                                          unsigned long long flags)
{
    return unsupported("cuMemPoolExportToShareableHandle");
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                            CUmemAllocationHandleType handleType,
                                            unsigned long long flags)
{
    return unsupported("cuMemPoolImportFromShareableHandle");
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    return unsupported("cuMemPoolExportPointer");
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
                                CUmemPoolPtrExportData *shareData)
{
    return unsupported("cuMemPoolImportPointer");
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags)
{
    return unsupported("cuMemAddressReserve");
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    return unsupported("cuMemAddressFree");
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    return unsupported("cuMemCreate");
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return unsupported("cuMemRelease");
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    return unsupported("cuMemMap");
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    return unsupported("cuMemUnmap");
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    return unsupported("cuMemSetAccess");
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
    return unsupported("cuMemGetAccess");
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    return unsupported("cuMemGetAllocationGranularity");
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                       CUmemRangeHandleType handleType, unsigned long long flags)
{
    return unsupported("cuMemGetHandleForAddressRange");
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                            size_t *failIdx, CUstream hStream)
{
    return unsupported("cuMemcpyBatchAsync");
}

CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                              unsigned long long flags, CUstream hStream)
{
    return unsupported("cuMemcpy3DBatchAsync");
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                               CUstream hStream)
{
    return unsupported("cuMemcpyBatchAsync_v2");
}

CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
                                 unsigned long long flags, CUstream hStream)
{
    return unsupported("cuMemcpy3DBatchAsync_v2");
}

CUresult cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev)
{
    return unsupported("cuDeviceGetLuid");
}

CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                unsigned int flags)
{
    return unsupported("cuStreamAttachMemAsync");
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                     const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode)
{
    return unsupported("cuStreamBeginCaptureToGraph");
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                              const CUgraphEdgeData *dependencyData,
                                              size_t numDependencies, unsigned int flags)
{
    return unsupported("cuStreamUpdateCaptureDependencies_v2");
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
    return unsupported("cuCtxWaitEvent");
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    return unsupported("cuDeviceGetDevResource");
}

CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
    return unsupported("cuCtxGetDevResource");
}

/* Tables of private functions, which NVRTC requests. */
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    return unsupported("cuGetExportTable");
}
