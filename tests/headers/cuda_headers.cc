// cuda_headers.cc: compares every function, constant and error code that backends/cuda declares with
// NVIDIA's cuda.h. Compiling it is the test.
//
// With this macro cuda.h declares the exported names and does not rename them to newer versions.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include "../../backends/cuda/cuda_types.h"
#include "../../backends/cuda_hip/ipc.h"
#include "prototypes.h"

#include <cstdint>

#if CUDA_VERSION < 11040
extern const not_yet cuDeviceGetUuid_v2;
#endif
#if CUDA_VERSION < 12050
extern const not_yet cuCtxRecordEvent, cuStreamGetCtx_v2;
#endif

#define FN(slot, parameters, cuda, hip, need, context) \
    static_assert(same_shape<int(*) parameters, decltype(&cuda)>::value, #cuda);
#include "../../backends/cuda_hip/driver.def"
#undef FN

#define OWN(slot, parameters, symbol, need) \
    static_assert(same_shape<int(*) parameters, decltype(&symbol)>::value, #symbol);
#include "../../backends/cuda/cuda.def"
#undef OWN

#define ERROR(name, code, status, text) static_assert(name == code, #name);
#include "../../backends/cuda/cuda_errors.def"
#undef ERROR

#define NUMBER(name, value) static_assert(name == value, #name);
#define ATTRIBUTE(attribute, name, value) NUMBER(name, value)
#include "../../backends/cuda/cuda_numbers.def"
#undef ATTRIBUTE
#undef NUMBER

#define OFFSET(own, vendor) \
    static_assert(offsetof(cuda_copy_3d, own) == offsetof(CUDA_MEMCPY3D, vendor), #vendor)
static_assert(sizeof(cuda_copy_3d) == sizeof(CUDA_MEMCPY3D), "CUDA_MEMCPY3D");
OFFSET(src.x, srcXInBytes);
OFFSET(src.lod, srcLOD);
OFFSET(src.type, srcMemoryType);
OFFSET(src.host, srcHost);
OFFSET(src.device, srcDevice);
OFFSET(src.pitch, srcPitch);
OFFSET(src.rows, srcHeight);
OFFSET(dst.x, dstXInBytes);
OFFSET(dst.type, dstMemoryType);
OFFSET(dst.host, dstHost);
OFFSET(dst.device, dstDevice);
OFFSET(dst.pitch, dstPitch);
OFFSET(dst.rows, dstHeight);
OFFSET(width, WidthInBytes);
OFFSET(height, Height);
OFFSET(depth, Depth);

// Sizes and constants on which the backend depends. main() checks its two stream constants.
static_assert(sizeof(CUuuid) == 16 && sizeof(CUdevice) == sizeof(int), "sizes");
static_assert(CU_STREAM_CAPTURE_STATUS_NONE == 0, "capture status");

int main()
{
    return reinterpret_cast<std::uintptr_t>(CU_STREAM_LEGACY) != 1 ||
           reinterpret_cast<std::uintptr_t>(CU_STREAM_PER_THREAD) != 2;
}
