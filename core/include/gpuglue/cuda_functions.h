/* cuda_functions.h: CUDA's functions on numbers, for cuda_dialect.h. Those that name a way to round are here for
 * "to nearest", which is how the processor computes, and conversions for all four. */
#ifndef GPUGLUE_CUDA_FUNCTIONS_H
#define GPUGLUE_CUDA_FUNCTIONS_H

/* ---- bits ---- */

template <class To, class From> static inline To gg_host_bits(From value)
{
    To result;
    static_assert(sizeof result == sizeof value, "of one size");
    std::memcpy(&result, &value, sizeof result);
    return result;
}
#define __float_as_int(x) gg_host_bits<int, float>(x)
#define __float_as_uint(x) gg_host_bits<unsigned, float>(x)
#define __int_as_float(x) gg_host_bits<float, int>(x)
#define __uint_as_float(x) gg_host_bits<float, unsigned>(x)
#define __double_as_longlong(x) gg_host_bits<long long, double>(x)
#define __longlong_as_double(x) gg_host_bits<double, long long>(x)
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline int __clzll(long long x)
{
    return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
static inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
static inline unsigned long long __brevll(unsigned long long x)
{
    unsigned long long result = 0;
    for (int i = 0; i < 64; i++, x >>= 1)
        result = result << 1 | (x & 1);
    return result;
}
static inline unsigned __brev(unsigned x)
{
    return static_cast<unsigned>(__brevll(x) >> 32);
}

/* ---- integers ---- */

static inline unsigned __umul24(unsigned a, unsigned b)
{
    return (a & 0xffffffu) * (b & 0xffffffu);
}
static inline int __mulhi(int a, int b)
{
    return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
static inline unsigned umin(unsigned a, unsigned b)
{
    return b < a ? b : a;
}
static inline unsigned umax(unsigned a, unsigned b)
{
    return a < b ? b : a;
}

/* ---- floating-point numbers ---- */

#define GG_NEAREST(type, add, sub, mul, div, fma_, rcp, sqrt_) \
    static inline type add(type a, type b)                     \
    {                                                          \
        return a + b;                                          \
    }                                                          \
    static inline type sub(type a, type b)                     \
    {                                                          \
        return a - b;                                          \
    }                                                          \
    static inline type mul(type a, type b)                     \
    {                                                          \
        return a * b;                                          \
    }                                                          \
    static inline type div(type a, type b)                     \
    {                                                          \
        return a / b;                                          \
    }                                                          \
    static inline type fma_(type a, type b, type c)            \
    {                                                          \
        return std::fma(a, b, c);                              \
    }                                                          \
    static inline type rcp(type a)                             \
    {                                                          \
        return 1 / a;                                          \
    }                                                          \
    static inline type sqrt_(type a)                           \
    {                                                          \
        return std::sqrt(a);                                   \
    }
GG_NEAREST(float, __fadd_rn, __fsub_rn, __fmul_rn, __fdiv_rn, __fmaf_rn, __frcp_rn, __fsqrt_rn)
GG_NEAREST(double, __dadd_rn, __dsub_rn, __dmul_rn, __ddiv_rn, __fma_rn, __drcp_rn, __dsqrt_rn)
#undef GG_NEAREST

#define GG_ROUND(name, from, to)               \
    static inline to name##_rn(from x)         \
    {                                          \
        return static_cast<to>(std::rint(x));  \
    }                                          \
    static inline to name##_rz(from x)         \
    {                                          \
        return static_cast<to>(x);             \
    }                                          \
    static inline to name##_rd(from x)         \
    {                                          \
        return static_cast<to>(std::floor(x)); \
    }                                          \
    static inline to name##_ru(from x)         \
    {                                          \
        return static_cast<to>(std::ceil(x));  \
    }
GG_ROUND(__float2int, float, int)
GG_ROUND(__float2uint, float, unsigned)
GG_ROUND(__float2ll, float, long long)
GG_ROUND(__float2ull, float, unsigned long long)
GG_ROUND(__double2int, double, int)
GG_ROUND(__double2uint, double, unsigned)
GG_ROUND(__double2ll, double, long long)
GG_ROUND(__double2ull, double, unsigned long long)
#undef GG_ROUND
#define __int2float_rn(x) static_cast<float>(static_cast<int>(x))
#define __uint2float_rn(x) static_cast<float>(static_cast<unsigned>(x))
#define __ll2float_rn(x) static_cast<float>(static_cast<long long>(x))
#define __int2double_rn(x) static_cast<double>(static_cast<int>(x))
#define __ll2double_rn(x) static_cast<double>(static_cast<long long>(x))
#define __double2float_rn(x) static_cast<float>(static_cast<double>(x))

static inline float rcbrtf(float x)
{
    return 1 / cbrtf(x);
}
static inline double rcbrt(double x)
{
    return 1 / cbrt(x);
}
static inline float norm3df(float a, float b, float c)
{
    return sqrtf(a * a + b * b + c * c);
}
static inline double norm3d(double a, double b, double c)
{
    return std::hypot(a, b, c);
}
/* The C library declares functions of these names for itself. */
#define __tanf tanf
#define __log2f log2f
#define __log10f log10f
#define __exp10f exp10f
#define __sincosf sincosf

/* ---- memory and time ---- */

#define __ldca __ldg
#define __ldcg __ldg
#define __ldcs __ldg
template <class T> static inline T __ldcv(const T *at)
{
    __asm__ volatile("" ::: "memory"); /* not what was read before */
    return *at;
}
template <class T> static inline void __stcg(T *at, typename gg_host_same<T>::type value)
{
    *at = value;
}
#define __stcs __stcg
#define __stwb __stcg
#define __stwt __stcg

/* Nanoseconds stand for clocks. clock() is the C library's. */
static inline long long clock64()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

#endif
