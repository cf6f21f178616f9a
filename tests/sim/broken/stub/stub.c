/* stub.c: a stub driver: every function returns 34; a query of an error name ends the process. */
#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include <stdlib.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
    abort();
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
    abort();
}

CUresult cuInit(unsigned int Flags)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDriverGetVersion(int *driverVersion)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDeviceGetCount(int *count)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuCtxSynchronize(void)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemFreeHost(void *p)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                              CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuStreamSynchronize(CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuStreamQuery(CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuEventSynchronize(CUevent hEvent)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuEventQuery(CUevent hEvent)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                            CUjit_option *options, void **optionValues)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuModuleUnload(CUmodule hmod)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void **kernelParams, void **extra)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemHostUnregister(void *p)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                           CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                void **data, CUdeviceptr ptr)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolStatus)
{
    return CUDA_ERROR_STUB_LIBRARY;
}
