// cuda_headers.cc: every driver function, number and code that backends/cuda declares for itself, against
// NVIDIA's cuda.h. There is nothing to run: it compiles or it does not.
//
// The macro shows the prototypes behind the exported names, not those that cuda.h renames to newer ones.
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
extern const not_yet cuCtxRecordEvent;
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
#include "../../backends/cuda/cuda_numbers.def"
#undef NUMBER

#define PLACE(ours, theirs) \
    static_assert(offsetof(cuda_copy_3d, ours) == offsetof(CUDA_MEMCPY3D, theirs), #theirs)
static_assert(sizeof(cuda_copy_3d) == sizeof(CUDA_MEMCPY3D), "CUDA_MEMCPY3D");
PLACE(src.x, srcXInBytes);
PLACE(src.lod, srcLOD);
PLACE(src.type, srcMemoryType);
PLACE(src.host, srcHost);
PLACE(src.device, srcDevice);
PLACE(src.pitch, srcPitch);
PLACE(src.rows, srcHeight);
PLACE(dst.x, dstXInBytes);
PLACE(dst.type, dstMemoryType);
PLACE(dst.host, dstHost);
PLACE(dst.device, dstDevice);
PLACE(dst.pitch, dstPitch);
PLACE(dst.rows, dstHeight);
PLACE(width, WidthInBytes);
PLACE(height, Height);
PLACE(depth, Depth);

// What twin.default_stream and twin.per_thread_stream say, and the capture states that mean "no".
static_assert(sizeof(CUuuid) == 16 && sizeof(CUdevice) == sizeof(int), "sizes");
static_assert(CU_STREAM_CAPTURE_STATUS_NONE == 0, "capture status");

int main()
{
    return reinterpret_cast<std::uintptr_t>(CU_STREAM_LEGACY) != 1 ||
           reinterpret_cast<std::uintptr_t>(CU_STREAM_PER_THREAD) != 2;
}
