// hip_headers.cc: every function, number, code and place in a struct that backends/hip declares for itself,
// against AMD's hip_runtime_api.h. There is nothing to run: it compiles or it does not.
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include "../../backends/hip/hip_types.h"
#include "../../backends/cuda_hip/ipc.h"
#include "prototypes.h"

#include <cstddef>
#include <cstdint>

// For C++ the header adds templates of the same names; these are the functions that the library exports.
#define C_FUNCTION(name, ...) extern decltype(static_cast<hipError_t (&)(__VA_ARGS__)>(name)) c_##name
C_FUNCTION(hipMalloc, void **, size_t);
C_FUNCTION(hipHostMalloc, void **, size_t, unsigned);
C_FUNCTION(hipMallocManaged, void **, size_t, unsigned);
C_FUNCTION(hipMallocAsync, void **, size_t, hipStream_t);
C_FUNCTION(hipGetDeviceProperties, hipDeviceProp_t *, int);
#define hipMalloc c_hipMalloc
#define hipHostMalloc c_hipHostMalloc
#define hipMallocManaged c_hipMallocManaged
#define hipMallocAsync c_hipMallocAsync

// Later headers map the plain name to the newer struct, and declare what 5.2 lacks.
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
#include "../../backends/hip/hip_numbers.def"
#undef NUMBER

#define OLD(name, value) constexpr std::size_t OLD_##name = value;
#define NEW(name, value) constexpr std::size_t NEW_##name = value;
#include "../../backends/hip/hip_layouts.def"
#undef OLD
#undef NEW

#if HIP_VERSION_MAJOR < 6
static_assert(sizeof(hipDeviceProp_t) == OLD_HIP_PROPERTIES_SIZE, "size of the old properties");
static_assert(offsetof(hipDeviceProp_t, gcnArchName) == OLD_HIP_PROPERTIES_ARCH, "old gcnArchName");
static_assert(hipMemoryTypeHost == OLD_HIP_MEMORY_HOST && hipMemoryTypeDevice == OLD_HIP_MEMORY_DEVICE &&
                  hipMemoryTypeArray == OLD_HIP_MEMORY_ARRAY && hipMemoryTypeUnified == OLD_HIP_MEMORY_UNIFIED,
              "old kinds of memory");
#else
static_assert(sizeof(hipDeviceProp_t) == NEW_HIP_PROPERTIES_SIZE, "size of the new properties");
static_assert(offsetof(hipDeviceProp_t, gcnArchName) == NEW_HIP_PROPERTIES_ARCH, "new gcnArchName");
static_assert(hipMemoryTypeHost == NEW_HIP_MEMORY_HOST && hipMemoryTypeDevice == NEW_HIP_MEMORY_DEVICE &&
                  hipMemoryTypeManaged == NEW_HIP_MEMORY_MANAGED && hipMemoryTypeArray == NEW_HIP_MEMORY_ARRAY &&
                  hipMemoryTypeUnified == NEW_HIP_MEMORY_UNIFIED,
              "new kinds of memory");
#endif

// `struct pointer` of hip.c: the first of each pair of 32-bit numbers was renamed in HIP 6.
static_assert(sizeof(hipPointerAttribute_t) == 32 && offsetof(hipPointerAttribute_t, device) == 4 &&
                  offsetof(hipPointerAttribute_t, devicePointer) == 8 &&
                  offsetof(hipPointerAttribute_t, hostPointer) == 16 &&
                  offsetof(hipPointerAttribute_t, isManaged) == 24 &&
                  offsetof(hipPointerAttribute_t, allocationFlags) == 28,
              "hipPointerAttribute_t");
static_assert(sizeof(hipUUID) == 16 && sizeof(hipDevice_t) == sizeof(int), "sizes");
static_assert(hipStreamCaptureStatusNone == 0, "capture status");

#define PLACE(ours, theirs) \
    static_assert(offsetof(hip_copy_3d, ours) == offsetof(hipMemcpy3DParms, theirs), #theirs)
static_assert(sizeof(hip_copy_3d) == sizeof(hipMemcpy3DParms), "hipMemcpy3DParms");
PLACE(src_array, srcArray);
PLACE(src_x, srcPos.x);
PLACE(src.pointer, srcPtr.ptr);
PLACE(src.pitch, srcPtr.pitch);
PLACE(src.width, srcPtr.xsize);
PLACE(src.rows, srcPtr.ysize);
PLACE(dst_x, dstPos.x);
PLACE(dst.pointer, dstPtr.ptr);
PLACE(dst.pitch, dstPtr.pitch);
PLACE(dst.rows, dstPtr.ysize);
PLACE(width, extent.width);
PLACE(height, extent.height);
PLACE(depth, extent.depth);
PLACE(kind, kind);

int main()
{
    return reinterpret_cast<std::uintptr_t>(hipStreamPerThread) != 2;
}
