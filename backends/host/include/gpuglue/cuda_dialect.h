/* cuda_dialect.h: the part of CUDA C++ with which one source also runs on the host backend: built-in variables,
 * shared memory, barriers, warps, atomics, vector types. C++17. gpuglue.compile includes it and adds the table of kernels
 * (host_kernel.h). Not supported: lockstep of a warp without __syncwarp, textures, surfaces, and clusters. */
#ifndef GPUGLUE_CUDA_DIALECT_H
#define GPUGLUE_CUDA_DIALECT_H

#include <gpuglue/host_kernel.h>

#include <climits>
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

/* gpuglue.compile finds the kernels by exactly this text. */
#define __global__ __attribute__((__visibility__("default"), __used__, __hot__))
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __shared__ thread_local
#define __forceinline__ inline
#define __noinline__ /* empty: the C++ library uses the word in attributes */
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

/* A function of one expression. */
#define GG_FUNCTION(type, name, parameters, value) \
    static inline type name parameters             \
    {                                              \
        return value;                              \
    }

namespace gg_host
{
/* The thread that runs: set when it starts, and again after each barrier. */
__attribute__((__visibility__("hidden"))) inline thread_local const gg_host_thread *current;

inline void barrier()
{
    const gg_host_thread *self = current;
    self->barrier(self);
    current = self;
}

/* Of the running block: all its threads run on one thread of the system. */
__attribute__((__visibility__("hidden"))) inline thread_local int count;

/* The number of threads of the block that pass true. The first barrier protects reads of the last result. */
inline int count_true(bool mine)
{
    barrier();
    count = 0;
    barrier();
    count += mine;
    barrier();
    return count;
}

namespace
{
/* Sets the pointers that replace `extern __shared__` arrays outside of functions; written by gpuglue.compile. */
void take_shared(const gg_host_thread *thread);
} // namespace

/* In an unnamed namespace, since two shared objects may have kernels of the same name with other parameters. */
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
    static constexpr parameters described{};

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
                          kernel::described.list,
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

#define GG_VECTOR(name, alignment, ...) \
    struct alignas(alignment) name {    \
        __VA_ARGS__;                    \
    };
#define GG_VECTORS_124(name, type)                                                     \
    GG_VECTOR(name##1, sizeof(type), type x)                                           \
    GG_VECTOR(name##2, 2 * sizeof(type), type x, y)                                    \
    GG_VECTOR(name##4, 4 * sizeof(type) > 16 ? 16 : 4 * sizeof(type), type x, y, z, w) \
    GG_FUNCTION(name##2, make_##name##2, (type x, type y), (name##2 {x, y}))           \
    GG_FUNCTION(name##4, make_##name##4, (type x, type y, type z, type w), (name##4 {x, y, z, w}))
#define GG_VECTORS(name, type)                      \
    GG_VECTORS_124(name, type)                      \
    GG_VECTOR(name##3, alignof(type), type x, y, z) \
    GG_FUNCTION(name##3, make_##name##3, (type x, type y, type z), (name##3 {x, y, z}))
GG_VECTORS(char, signed char)
GG_VECTORS(uchar, unsigned char)
GG_VECTORS(short, short)
GG_VECTORS(ushort, unsigned short)
GG_VECTORS(int, int)
GG_VECTORS(long, long)
GG_VECTORS(ulong, unsigned long)
GG_VECTORS(longlong, long long)
GG_VECTORS(ulonglong, unsigned long long)
GG_VECTORS(float, float)
GG_VECTORS(double, double)
GG_VECTORS_124(uint, unsigned)
GG_FUNCTION(uint3, make_uint3, (unsigned x, unsigned y, unsigned z), (uint3{x, y, z}))
#undef GG_VECTORS
#undef GG_VECTORS_124
#undef GG_VECTOR

/* ---- built-in variables and barriers ---- */

#define threadIdx (::gg_host::current->thread)
#define blockIdx (::gg_host::current->block)
#define blockDim (::gg_host::current->block_dim)
#define gridDim (::gg_host::current->grid_dim)

GG_FUNCTION(void, __syncthreads, (), ::gg_host::barrier())
GG_FUNCTION(int, __syncthreads_count, (int mine), ::gg_host::count_true(mine != 0))
GG_FUNCTION(int, __syncthreads_or, (int mine), ::gg_host::count_true(mine != 0) != 0)
GG_FUNCTION(int, __syncthreads_and, (int mine), ::gg_host::count_true(mine == 0) == 0)
GG_FUNCTION(void, __threadfence, (), __atomic_thread_fence(__ATOMIC_SEQ_CST))
GG_FUNCTION(void, __threadfence_block, (), __threadfence())
GG_FUNCTION(void, __threadfence_system, (), __threadfence())

/* ---- atomics: each returns the old value ---- */

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
/* Macros, since C23 has these names, and sinpi and cospi below: glibc declares them since 2.41 and 2.42. */
#define rsqrtf gg_host_rsqrtf
#define rsqrt gg_host_rsqrt
GG_FUNCTION(float, rsqrtf, (float x), 1 / sqrtf(x))
GG_FUNCTION(double, rsqrt, (double x), 1 / sqrt(x))
GG_FUNCTION(float, __fdividef, (float a, float b), a / b)
/* Macros, since the C library declares functions of these names. */
#define __expf expf
#define __logf logf
#define __sinf sinf
#define __cosf cosf
#define __powf powf
GG_FUNCTION(float, saturate, (float x), x > 0 ? x < 1 ? x : 1 : 0) /* 0 for NaN */
#define __saturatef saturate
GG_FUNCTION(int, __mul24, (int a, int b), (a * b))
GG_FUNCTION(int, __popc, (unsigned x), __builtin_popcount(x))
GG_FUNCTION(int, __clz, (int x), x ? __builtin_clz(static_cast<unsigned>(x)) : 32)
GG_FUNCTION(int, __ffs, (int x), __builtin_ffs(x))
template <class T> GG_FUNCTION(T, __ldg, (const T *at), *at)

#include <gpuglue/cuda_functions.h>
#include <gpuglue/cuda_warps.h>

#endif
