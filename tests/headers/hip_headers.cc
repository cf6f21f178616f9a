// hip_headers.cc: compares every function, constant, error code and struct offset that backends/hip
// declares with AMD's hip_runtime_api.h. Compiling it is the test.
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include "../../backends/hip/hip_types.h"
#include "../../backends/cuda_hip/ipc.h"
#include "prototypes.h"

#include <cstddef>
#include <cstdint>

// For C++ the header adds templates of the same names. These are the exported functions.
#define C_FUNCTION(name, ...) \
    extern decltype(static_cast<hipError_t (&)(__VA_ARGS__)>(name)) c_##name
C_FUNCTION(hipMalloc, void **, size_t);
C_FUNCTION(hipHostMalloc, void **, size_t, unsigned);
C_FUNCTION(hipMallocManaged, void **, size_t, unsigned);
C_FUNCTION(hipMallocAsync, void **, size_t, hipStream_t);
C_FUNCTION(hipGetDeviceProperties, hipDeviceProp_t *, int);
#define hipMalloc c_hipMalloc
#define hipHostMalloc c_hipHostMalloc
#define hipMallocManaged c_hipMallocManaged
#define hipMallocAsync c_hipMallocAsync

// Functions that old headers lack. From HIP 6 on, headers map hipGetDeviceProperties to the new struct.
#if HIP_VERSION_MAJOR < 5 || (HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR < 7)
extern const not_yet hipDrvGetErrorName, hipDrvGetErrorString, hipModuleLaunchCooperativeKernel;
#endif
#if HIP_VERSION_MAJOR < 6
extern const not_yet hipGetDevicePropertiesR0600;
#define hipGetDeviceProperties c_hipGetDeviceProperties
#endif

#define FN(slot, parameters, cuda, hip, need, context) \
    static_assert(same_shape<int(*) parameters, decltype(&hip)>::value, #hip);
#include "../../backends/cuda_hip/driver.def"
#undef FN

#define OWN(slot, parameters, symbol, need) \
    static_assert(same_shape<int(*) parameters, decltype(&symbol)>::value, #symbol);
#include "../../backends/hip/hip.def"
#undef OWN

#define ERROR(name, code, status, text) static_assert(name == code, #name);
#include "../../backends/hip/hip_errors.def"
#undef ERROR

#define NUMBER(name, value) static_assert(name == value, #name);
#define ATTRIBUTE(attribute, name, value) NUMBER(name, value)
#include "../../backends/hip/hip_numbers.def"
#undef ATTRIBUTE
#undef NUMBER

#define OLD(name, value) constexpr std::size_t OLD_##name = value;
#define NEW(name, value) constexpr std::size_t NEW_##name = value;
#include "../../backends/hip/hip_layouts.def"
#undef OLD
#undef NEW

#if HIP_VERSION_MAJOR < 6
static_assert(sizeof(hipDeviceProp_t) == OLD_HIP_PROPERTIES_SIZE, "size of the old properties");
static_assert(offsetof(hipDeviceProp_t, gcnArchName) == OLD_HIP_PROPERTIES_ARCH, "old gcnArchName");
static_assert(hipMemoryTypeHost == OLD_HIP_MEMORY_HOST &&
                  hipMemoryTypeDevice == OLD_HIP_MEMORY_DEVICE &&
                  hipMemoryTypeArray == OLD_HIP_MEMORY_ARRAY &&
                  hipMemoryTypeUnified == OLD_HIP_MEMORY_UNIFIED,
              "old memory types");
static_assert(hipIpcMemLazyEnablePeerAccess == OLD_HIP_IPC_LAZY_PEER_ACCESS, "old IPC flag");
#else
static_assert(sizeof(hipDeviceProp_t) == NEW_HIP_PROPERTIES_SIZE, "size of the new properties");
static_assert(offsetof(hipDeviceProp_t, gcnArchName) == NEW_HIP_PROPERTIES_ARCH, "new gcnArchName");
static_assert(hipMemoryTypeHost == NEW_HIP_MEMORY_HOST &&
                  hipMemoryTypeDevice == NEW_HIP_MEMORY_DEVICE &&
                  hipMemoryTypeManaged == NEW_HIP_MEMORY_MANAGED &&
                  hipMemoryTypeArray == NEW_HIP_MEMORY_ARRAY &&
                  hipMemoryTypeUnified == NEW_HIP_MEMORY_UNIFIED,
              "new memory types");
static_assert(hipIpcMemLazyEnablePeerAccess == NEW_HIP_IPC_LAZY_PEER_ACCESS, "new IPC flag");
#endif

// The backend's own copy of hipPointerAttribute_t. HIP 6 renamed its first member.
static_assert(sizeof(hipPointerAttribute_t) == 32 && offsetof(hipPointerAttribute_t, device) == 4 &&
                  offsetof(hipPointerAttribute_t, devicePointer) == 8 &&
                  offsetof(hipPointerAttribute_t, hostPointer) == 16 &&
                  offsetof(hipPointerAttribute_t, isManaged) == 24 &&
                  offsetof(hipPointerAttribute_t, allocationFlags) == 28,
              "hipPointerAttribute_t");
static_assert(sizeof(hipUUID) == 16 && sizeof(hipDevice_t) == sizeof(int), "sizes");
static_assert(hipStreamCaptureStatusNone == 0, "capture status");

#define OFFSET(own, vendor) \
    static_assert(offsetof(hip_copy_3d, own) == offsetof(hipMemcpy3DParms, vendor), #vendor)
static_assert(sizeof(hip_copy_3d) == sizeof(hipMemcpy3DParms), "hipMemcpy3DParms");
OFFSET(src_array, srcArray);
OFFSET(src_x, srcPos.x);
OFFSET(src.pointer, srcPtr.ptr);
OFFSET(src.pitch, srcPtr.pitch);
OFFSET(src.width, srcPtr.xsize);
OFFSET(src.rows, srcPtr.ysize);
OFFSET(dst_x, dstPos.x);
OFFSET(dst.pointer, dstPtr.ptr);
OFFSET(dst.pitch, dstPtr.pitch);
OFFSET(dst.rows, dstPtr.ysize);
OFFSET(width, extent.width);
OFFSET(height, extent.height);
OFFSET(depth, extent.depth);
OFFSET(kind, kind);

int main()
{
    return reinterpret_cast<std::uintptr_t>(hipStreamPerThread) != 2;
}
