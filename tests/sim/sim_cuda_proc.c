/* sim_cuda_proc.c: CUDA: cuGetProcAddress, which returns the newest form of a function that the
 * caller's CUDA version has. */
#include "sim_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 128, OLDEST = 2000, NEWEST_SUFFIX = 4 };

/* Functions whose newer form was added in this version; all other _v2 forms are older than 11. */
struct version_row {
    const char *name, *exported;
    int since;
};

static const struct version_row rows[] = {
    {"cuCtxCreate", "cuCtxCreate_v4", 12050},
    {"cuCtxCreate", "cuCtxCreate_v2", 3020},
    {"cuCtxGetDevice", "cuCtxGetDevice_v2", 13000},
    {"cuCtxGetDevice", "cuCtxGetDevice", OLDEST},
    {"cuCtxSynchronize", "cuCtxSynchronize_v2", 13000},
    {"cuCtxSynchronize", "cuCtxSynchronize", OLDEST},
    {"cuDeviceGetUuid", "cuDeviceGetUuid_v2", 11040},
    {"cuDeviceGetUuid", "cuDeviceGetUuid", 9020},
    {"cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", 11000},
    {"cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease", 7000},
    {"cuEventElapsedTime", "cuEventElapsedTime_v2", 12080},
    {"cuEventElapsedTime", "cuEventElapsedTime", OLDEST},
    {"cuGetProcAddress", "cuGetProcAddress_v2", 12000},
    {"cuGetProcAddress", "cuGetProcAddress", 11030},
    {"cuGraphInstantiate", "cuGraphInstantiateWithFlags", 12000},
    {"cuMemAdvise", "cuMemAdvise_v2", 13000},
    {"cuMemAdvise", "cuMemAdvise", 8000},
    {"cuMemPrefetchAsync", "cuMemPrefetchAsync_v2", 13000},
    {"cuMemPrefetchAsync", "cuMemPrefetchAsync", 8000},
    {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v3", 12030},
    {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v2", 11030},
    {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo", 10010},
    {"cuStreamGetCtx", "cuStreamGetCtx_v2", 12050},
    {"cuStreamGetCtx", "cuStreamGetCtx", 9020},
};

static void *exported(const char *name)
{
    static void *self;
    void *handle = __atomic_load_n(&self, __ATOMIC_ACQUIRE);
    if (!handle) {
        Dl_info here;
        if (!dladdr((const void *)&rows, &here))
            return NULL;
        handle = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
        __atomic_store_n(&self, handle, __ATOMIC_RELEASE);
    }
    return handle && !strncmp(name, "cu", 2) ? dlsym(handle, name) : NULL;
}

static void *by_suffix(const char *name)
{
    char full[LONGEST];
    for (int version = NEWEST_SUFFIX; version > 1; version--) {
        void *found;
        snprintf(full, sizeof full, "%s_v%d", name, version);
        found = exported(full);
        if (found)
            return found;
    }
    return exported(name);
}

static void *choose(const char *name, int version, bool *too_old)
{
    bool listed = false;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name))
            continue;
        listed = true;
        if (version >= rows[i].since)
            return exported(rows[i].exported);
    }
    *too_old = listed;
    return listed ? NULL : by_suffix(name);
}

/* The per-thread forms of stream functions are not simulated: a request for one finds nothing. */
CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolStatus)
{
    bool too_old = false;
    void *found;
    int fault = sim_fault("cuGetProcAddress_v2");
    if (fault)
        return (CUresult)fault;
    if (!symbol || !pfn || cudaVersion < OLDEST || flags > 3)
        return CUDA_ERROR_INVALID_VALUE;
    found = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                ? NULL
                : choose(symbol, cudaVersion, &too_old);
    *pfn = found;
    if (symbolStatus)
        *symbolStatus = found     ? CU_GET_PROC_ADDRESS_SUCCESS
                        : too_old ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}
