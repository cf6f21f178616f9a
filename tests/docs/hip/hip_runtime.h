/* hip_runtime.h: what a kernel and its launch need, so that clang checks the HIP half of the documents' sources. */
#include <stddef.h>
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
struct dim3 {
    unsigned x, y, z;
    __attribute__((device)) __attribute__((host))
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1)
        : x(a), y(b), z(c)
    {
    }
};
typedef struct ihipStream_t *hipStream_t;
extern const __device__ __attribute__((weak)) dim3 blockIdx, blockDim, threadIdx;
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, size_t, hipStream_t);
extern "C" int __hipPushCallConfiguration(dim3, dim3, size_t = 0, hipStream_t = 0);
extern "C" int hipConfigureCall(dim3, dim3, size_t = 0, hipStream_t = 0);
