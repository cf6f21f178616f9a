/* cuda_dialect.h: as much of CUDA C++ as lets one source run on the host backend too: the built-in variables,
 * shared memory, barriers, atomics, vector types. C++17. gpuglue.compile includes it and adds the table
 * of kernels (host_kernel.h). What needs a warp of more than one thread is not here (shuffles, votes, __syncwarp),
 * nor are textures, surfaces, cooperative groups, half-precision types and clusters. */
#ifndef GPUGLUE_CUDA_DIALECT_H
#define GPUGLUE_CUDA_DIALECT_H

#include <gpuglue/host_kernel.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <math.h>
#include <type_traits>
#include <utility>

#define __GPUGLUE_HOST__ 1

/* gpuglue.compile looks for exactly this to find the kernels. */
#define __global__ __attribute__((__visibility__("default"), __used__, __hot__))
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __shared__ thread_local
#define __forceinline__ inline
#define __noinline__ /* nothing: the C++ library uses the word within attributes */
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

namespace gg_host
{
/* Which thread runs: set when it begins, and again after each barrier. */
__attribute__((__visibility__("hidden"))) inline thread_local const gg_host_thread *current;

inline void barrier()
{
    const gg_host_thread *self = current;
    self->barrier(self);
    current = self;
}

/* Of the block that runs, whose threads are all on one thread of the system. */
__attribute__((__visibility__("hidden"))) inline thread_local int votes;

/* How many threads of the block say so. The first barrier is for those that still read the last answer. */
inline int count_votes(bool mine)
{
    barrier();
    votes = 0;
    barrier();
    votes += mine;
    barrier();
    return votes;
}

namespace
{
/* Pointers that stand for `extern __shared__` arrays outside of functions; gpuglue.compile writes it. */
void take_shared(const gg_host_thread *thread);
} // namespace

/* Each shared object has its own: two may have kernels of one name that differ in their parameters. */
namespace
{
template <class T> constexpr std::uint32_t kind_of()
{
    if (std::is_pointer_v<T>)
        return GG_PARAMETER_POINTER;
    if (std::is_floating_point_v<T>)
        return GG_PARAMETER_FLOAT;
    if (std::is_integral_v<T>)
        return std::is_signed_v<T> ? GG_PARAMETER_SIGNED : GG_PARAMETER_UNSIGNED;
    return std::is_enum_v<T> ? GG_PARAMETER_INTEGER : GG_PARAMETER_BYTES;
}

template <auto function> struct entry;
template <class... A, void (*function)(A...)> struct entry<function> {
    static constexpr std::size_t count = sizeof...(A);

    struct parameters {
        gg_parameter list[count + 1] = {};
        constexpr parameters()
        {
            const std::uint32_t sizes[] = {sizeof(A)..., 0}, aligns[] = {alignof(A)..., 1};
            const std::uint32_t kinds[] = {kind_of<std::remove_cv_t<A>>()..., 0};
            std::uint32_t offset = 0;
            for (std::size_t i = 0; i < count; i++) {
                offset = (offset + aligns[i] - 1) / aligns[i] * aligns[i];
                list[i] = gg_parameter{offset, sizes[i], kinds[i], 0};
                offset += sizes[i];
            }
        }
    };
    static constexpr parameters told{};

    template <std::size_t... i>
    static void call(const void *const *arguments, std::index_sequence<i...>)
    {
        (void)arguments;
        function(*static_cast<const std::remove_cv_t<A> *>(arguments[i])...);
    }
    static void run(const gg_host_thread *thread, const void *const *arguments)
    {
        current = thread;
        take_shared(thread);
        call(arguments, std::index_sequence_for<A...>());
    }
};

template <auto function> constexpr gg_host_kernel describe(const char *name)
{
    using kernel = entry<function>;
    return gg_host_kernel{sizeof(gg_host_kernel),
                          static_cast<std::int32_t>(kernel::count),
                          name,
                          kernel::told.list,
                          kernel::run,
                          0,
                          0};
}
} // namespace
} // namespace gg_host

/* ---- types ---- */

typedef gg_host_dim uint3;
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 d) : x(d.x), y(d.y), z(d.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};

#define GG_VECTORS(name, type)                                            \
    struct alignas(sizeof(type)) name##1                                  \
    {                                                                     \
        type x;                                                           \
    };                                                                    \
    struct alignas(2 * sizeof(type)) name##2                              \
    {                                                                     \
        type x, y;                                                        \
    };                                                                    \
    struct alignas(4 * sizeof(type) > 16 ? 16 : 4 * sizeof(type)) name##4 \
    {                                                                     \
        type x, y, z, w;                                                  \
    };                                                                    \
    static inline name##2 make_##name##2(type x, type y)                  \
    {                                                                     \
        return {x, y};                                                    \
    }                                                                     \
    static inline name##4 make_##name##4(type x, type y, type z, type w)  \
    {                                                                     \
        return {x, y, z, w};                                              \
    }
#define GG_VECTORS_3(name, type)                                 \
    struct name##3                                               \
    {                                                            \
        type x, y, z;                                            \
    };                                                           \
    static inline name##3 make_##name##3(type x, type y, type z) \
    {                                                            \
        return {x, y, z};                                        \
    }
GG_VECTORS(char, signed char)
GG_VECTORS(uchar, unsigned char)
GG_VECTORS(short, short)
GG_VECTORS(ushort, unsigned short)
GG_VECTORS(int, int)
GG_VECTORS(uint, unsigned)
GG_VECTORS(long, long)
GG_VECTORS(ulong, unsigned long)
GG_VECTORS(longlong, long long)
GG_VECTORS(ulonglong, unsigned long long)
GG_VECTORS(float, float)
GG_VECTORS(double, double)
GG_VECTORS_3(char, signed char)
GG_VECTORS_3(uchar, unsigned char)
GG_VECTORS_3(short, short)
GG_VECTORS_3(ushort, unsigned short)
GG_VECTORS_3(int, int)
GG_VECTORS_3(long, long)
GG_VECTORS_3(ulong, unsigned long)
GG_VECTORS_3(longlong, long long)
GG_VECTORS_3(ulonglong, unsigned long long)
GG_VECTORS_3(float, float)
GG_VECTORS_3(double, double)
#undef GG_VECTORS
#undef GG_VECTORS_3
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z)
{
    return {x, y, z};
}

/* ---- built-in variables and barriers ---- */

#define threadIdx (::gg_host::current->thread)
#define blockIdx (::gg_host::current->block)
#define blockDim (::gg_host::current->block_dim)
#define gridDim (::gg_host::current->grid_dim)
#define warpSize 1

static inline void __syncthreads()
{
    ::gg_host::barrier();
}
static inline int __syncthreads_count(int mine)
{
    return ::gg_host::count_votes(mine != 0);
}
static inline int __syncthreads_or(int mine)
{
    return ::gg_host::count_votes(mine != 0) != 0;
}
static inline int __syncthreads_and(int mine)
{
    return ::gg_host::count_votes(mine == 0) == 0;
}
static inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_block()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ---- atomics: each returns what was there ---- */

template <class T, class Change> static inline T gg_host_change(T *at, Change change)
{
    T was, is;
    __atomic_load(at, &was, __ATOMIC_SEQ_CST);
    do
        is = change(was);
    while (!__atomic_compare_exchange(at, &was, &is, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return was;
}
template <class T> struct gg_host_same {
    typedef T type;
};
#define GG_ATOMIC(name, expression)                                                      \
    template <class T> static inline T name(T *at, typename gg_host_same<T>::type value) \
    {                                                                                    \
        return gg_host_change(at, [=](T was) -> T { return expression; });               \
    }
GG_ATOMIC(atomicAdd, static_cast<T>(was + value))
GG_ATOMIC(atomicSub, static_cast<T>(was - value))
GG_ATOMIC(atomicExch, (void(was), value))
GG_ATOMIC(atomicMin, was < value ? was : value)
GG_ATOMIC(atomicMax, was > value ? was : value)
GG_ATOMIC(atomicAnd, was &value)
GG_ATOMIC(atomicOr, was | value)
GG_ATOMIC(atomicXor, was ^ value)
GG_ATOMIC(atomicInc, was >= value ? 0 : was + 1)
GG_ATOMIC(atomicDec, was == 0 || was > value ? value : was - 1)
#undef GG_ATOMIC
template <class T>
static inline T atomicCAS(T *at, typename gg_host_same<T>::type compare,
                          typename gg_host_same<T>::type value)
{
    return gg_host_change(at, [=](T was) { return was == compare ? value : was; });
}

#define atomicAdd_block atomicAdd
#define atomicAdd_system atomicAdd
#define atomicCAS_block atomicCAS
#define atomicCAS_system atomicCAS
#define atomicExch_block atomicExch
#define atomicExch_system atomicExch
#define atomicMax_block atomicMax
#define atomicMax_system atomicMax
#define atomicMin_block atomicMin
#define atomicMin_system atomicMin

/* ---- functions that the C library lacks ---- */

template <class A, class B> static inline std::common_type_t<A, B> min(A a, B b)
{
    return b < a ? b : a;
}
template <class A, class B> static inline std::common_type_t<A, B> max(A a, B b)
{
    return a < b ? b : a;
}
static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline double rsqrt(double x)
{
    return 1 / sqrt(x);
}
static inline float __fdividef(float a, float b)
{
    return a / b;
}
/* The C library declares functions of these names for itself. */
#define __expf expf
#define __logf logf
#define __sinf sinf
#define __cosf cosf
#define __powf powf
static inline float saturate(float x)
{
    return x > 0 ? x < 1 ? x : 1 : 0; /* 0 for what is no number */
}
#define __saturatef saturate
static inline int __mul24(int a, int b)
{
    return a * b;
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz(static_cast<unsigned>(x)) : 32;
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
template <class T> static inline T __ldg(const T *at)
{
    return *at;
}

#include <gpuglue/cuda_functions.h>

#endif
