/* cuda_on_hip.h: CUDA's spellings for HIPRTC, which compile(lang="cuda") puts before a source. A warp has 32 lanes, as CUDA's
 * programs expect: where AMD's wavefront has 64, it is two warps. Masks of 64 bits keep HIP's own meaning. */
#ifndef GPUGLUE_CUDA_ON_HIP_H
#define GPUGLUE_CUDA_ON_HIP_H

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define warpSize 32
#define __grid_constant__
#define __trap() __builtin_trap()
#define __nanosleep(ns) ((void)(ns), __builtin_amdgcn_s_sleep(1))
#ifndef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                                     \
    ((condition) ? (void)0                                                                    \
                 : (printf("%s:%d: assertion `%s' failed\n", __FILE__, __LINE__, #condition), \
                    __builtin_trap()))
#endif
#endif

/* Of a block's own scope: those of the device's are as good. */
#define atomicAdd_block atomicAdd
#define atomicSub_block atomicSub
#define atomicExch_block atomicExch
#define atomicMin_block atomicMin
#define atomicMax_block atomicMax
#define atomicCAS_block atomicCAS
#define atomicAnd_block atomicAnd
#define atomicOr_block atomicOr
#define atomicXor_block atomicXor

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc++17-extensions" /* HIPRTC 5 compiles C++14 */
namespace gg_cuda
{
static __device__ inline unsigned lane()
{
    return __lane_id() & 31;
}

static __device__ inline unsigned ballot(bool predicate)
{
    return static_cast<unsigned>(__ballot(predicate) >> (__lane_id() & 32));
}

/* Which lanes a mask means: those of a mask of 64 bits are HIP's. */
template <class M> struct wide {
    static constexpr bool value = sizeof(M) == 8;
};

template <class M> static __device__ inline void syncwarp(M)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

static __device__ inline void syncwarp()
{
    syncwarp(~0u);
}

template <class M> static __device__ inline auto ballot_sync(M mask, bool predicate)
{
    if constexpr (wide<M>::value)
        return __ballot_sync(mask, predicate);
    else
        return ballot(predicate) & static_cast<unsigned>(mask);
}

template <class M> static __device__ inline int any_sync(M mask, bool predicate)
{
    return ballot_sync(mask, predicate) != 0;
}

template <class M> static __device__ inline int all_sync(M mask, bool predicate)
{
    return ballot_sync(mask, !predicate) == 0;
}

template <class M, class T>
static __device__ inline T shfl_sync(M, T value, int from, int width = wide<M>::value ? 64 : 32)
{
    return __shfl(value, from, width);
}

template <class M, class T>
static __device__ inline T shfl_up_sync(M, T value, unsigned by,
                                        int width = wide<M>::value ? 64 : 32)
{
    return __shfl_up(value, by, width);
}

template <class M, class T>
static __device__ inline T shfl_down_sync(M, T value, unsigned by,
                                          int width = wide<M>::value ? 64 : 32)
{
    return __shfl_down(value, by, width);
}

template <class M, class T>
static __device__ inline T shfl_xor_sync(M, T value, int by, int width = wide<M>::value ? 64 : 32)
{
    return __shfl_xor(value, by, width);
}

template <class T> static __device__ inline unsigned match_any_sync(unsigned mask, T value)
{
    unsigned found = 0;
    for (unsigned left = ballot(true) & mask; left;) {
        const T first = __shfl(value, __ffs(static_cast<int>(left)) - 1, 32);
        const unsigned same = ballot(value == first) & mask;
        found = value == first ? same : found;
        left &= ~same;
    }
    return found;
}

template <class T>
static __device__ inline unsigned match_all_sync(unsigned mask, T value, int *every)
{
    const unsigned there = ballot(true) & mask;
    const T first = __shfl(value, __ffs(static_cast<int>(there)) - 1, 32);
    *every = (ballot(value != first) & mask) == 0;
    return *every ? mask : 0;
}

template <class T, class F> static __device__ inline T reduce(unsigned mask, T value, F combine)
{
    unsigned left = ballot(true) & mask;
    T result = __shfl(value, __ffs(static_cast<int>(left)) - 1, 32);
    while (left &= left - 1)
        result = combine(result, __shfl(value, __ffs(static_cast<int>(left)) - 1, 32));
    return result;
}

/* Of before CUDA 9, which have no mask. */
template <class T> static __device__ inline T shfl(T value, int from, int width = 32)
{
    return __shfl(value, from, width);
}

template <class T> static __device__ inline T shfl_up(T value, unsigned by, int width = 32)
{
    return __shfl_up(value, by, width);
}

template <class T> static __device__ inline T shfl_down(T value, unsigned by, int width = 32)
{
    return __shfl_down(value, by, width);
}

template <class T> static __device__ inline T shfl_xor(T value, int by, int width = 32)
{
    return __shfl_xor(value, by, width);
}

static __device__ inline int dp4a(int a, int b, int c)
{
    for (int i = 0; i < 32; i += 8)
        c += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
    return c;
}

static __device__ inline unsigned dp4a(unsigned a, unsigned b, unsigned c)
{
    for (int i = 0; i < 32; i += 8)
        c += (a >> i & 255) * (b >> i & 255);
    return c;
}
} // namespace gg_cuda
#pragma clang diagnostic pop

#define GG_REDUCE(name, type, expression)                                               \
    static __device__ inline type gg_reduce_##name(unsigned mask, type value)           \
    {                                                                                   \
        return gg_cuda::reduce(mask, value, [](type a, type b) { return expression; }); \
    }
GG_REDUCE(add, int, a + b)
GG_REDUCE(add, unsigned, a + b)
GG_REDUCE(min, int, a < b ? a : b)
GG_REDUCE(min, unsigned, a < b ? a : b)
GG_REDUCE(max, int, a > b ? a : b)
GG_REDUCE(max, unsigned, a > b ? a : b)
GG_REDUCE(and, unsigned, a &b)
GG_REDUCE(or, unsigned, a | b)
GG_REDUCE(xor, unsigned, a ^ b)
#undef GG_REDUCE

#define __syncwarp gg_cuda::syncwarp
#define __activemask() gg_cuda::ballot(true)
#define __ballot_sync gg_cuda::ballot_sync
#define __any_sync gg_cuda::any_sync
#define __all_sync gg_cuda::all_sync
#define __shfl_sync gg_cuda::shfl_sync
#define __shfl_up_sync gg_cuda::shfl_up_sync
#define __shfl_down_sync gg_cuda::shfl_down_sync
#define __shfl_xor_sync gg_cuda::shfl_xor_sync
#define __match_any_sync gg_cuda::match_any_sync
#define __match_all_sync gg_cuda::match_all_sync
#define __reduce_add_sync gg_reduce_add
#define __reduce_min_sync gg_reduce_min
#define __reduce_max_sync gg_reduce_max
#define __reduce_and_sync gg_reduce_and
#define __reduce_or_sync gg_reduce_or
#define __reduce_xor_sync gg_reduce_xor
#define __shfl gg_cuda::shfl
#define __shfl_up gg_cuda::shfl_up
#define __shfl_down gg_cuda::shfl_down
#define __shfl_xor gg_cuda::shfl_xor
#define __ballot gg_cuda::ballot
#define __any(predicate) gg_cuda::any_sync(~0u, predicate)
#define __all(predicate) gg_cuda::all_sync(~0u, predicate)
#define __dp4a gg_cuda::dp4a
#endif
