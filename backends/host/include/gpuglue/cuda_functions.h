/* cuda_functions.h: CUDA's functions on numbers, for cuda_dialect.h. Functions with a rounding mode are only
 * available for "to nearest", which the processor uses; conversions for all four modes. */
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
GG_FUNCTION(int, __popcll, (unsigned long long x), __builtin_popcountll(x))
GG_FUNCTION(int, __clzll, (long long x),
            x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64)
GG_FUNCTION(int, __ffsll, (long long x), __builtin_ffsll(x))
static inline unsigned long long __brevll(unsigned long long x)
{
    unsigned long long result = 0;
    for (int i = 0; i < 64; i++, x >>= 1)
        result = result << 1 | (x & 1);
    return result;
}
GG_FUNCTION(unsigned, __brev, (unsigned x), static_cast<unsigned>(__brevll(x) >> 32))

/* ---- integers ---- */

GG_FUNCTION(unsigned, __umul24, (unsigned a, unsigned b), (a & 0xffffffu) * (b & 0xffffffu))
GG_FUNCTION(int, __mulhi, (int a, int b), static_cast<int>(static_cast<long long>(a) * b >> 32))
GG_FUNCTION(unsigned, __umulhi, (unsigned a, unsigned b),
            static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32))
GG_FUNCTION(unsigned, umin, (unsigned a, unsigned b), b < a ? b : a)
GG_FUNCTION(unsigned, umax, (unsigned a, unsigned b), a < b ? b : a)

/* ---- floating-point numbers ---- */

#define GG_NEAREST(type, add, sub, mul, div, fma_, rcp, sqrt_)           \
    GG_FUNCTION(type, add, (type a, type b), a + b)                      \
    GG_FUNCTION(type, sub, (type a, type b), a - b)                      \
    GG_FUNCTION(type, mul, (type a, type b), (a * b))                    \
    GG_FUNCTION(type, div, (type a, type b), a / b)                      \
    GG_FUNCTION(type, fma_, (type a, type b, type c), std::fma(a, b, c)) \
    GG_FUNCTION(type, rcp, (type a), 1 / a)                              \
    GG_FUNCTION(type, sqrt_, (type a), std::sqrt(a))
GG_NEAREST(float, __fadd_rn, __fsub_rn, __fmul_rn, __fdiv_rn, __fmaf_rn, __frcp_rn, __fsqrt_rn)
GG_NEAREST(double, __dadd_rn, __dsub_rn, __dmul_rn, __ddiv_rn, __fma_rn, __drcp_rn, __dsqrt_rn)
#undef GG_NEAREST

#define GG_ROUND(name, from, to)                                         \
    GG_FUNCTION(to, name##_rn, (from x), static_cast<to>(std::rint(x)))  \
    GG_FUNCTION(to, name##_rz, (from x), static_cast<to>(x))             \
    GG_FUNCTION(to, name##_rd, (from x), static_cast<to>(std::floor(x))) \
    GG_FUNCTION(to, name##_ru, (from x), static_cast<to>(std::ceil(x)))
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

GG_FUNCTION(float, rcbrtf, (float x), 1 / cbrtf(x))
GG_FUNCTION(double, rcbrt, (double x), 1 / cbrt(x))
GG_FUNCTION(float, norm3df, (float a, float b, float c), sqrtf((a * a) + b * b + c * c))
GG_FUNCTION(double, norm3d, (double a, double b, double c), std::hypot(a, b, c))
/* Macros, since the C library declares functions of these names. */
#define __tanf tanf
#define __log2f log2f
#define __log10f log10f
#define __exp10f exp10f
#define __sincosf sincosf

/* CUDA overloads sincos; the C library has the one of double. */
static inline void sincos(float x, float *sine, float *cosine)
{
    sincosf(x, sine, cosine);
}
/* sin(pi x) and cos(pi x): x is reduced first, so that large values and quarters are exact. */
static inline void sincospi(double x, double *sine, double *cosine)
{
    const double turn = std::remainder(x, 2.0), quarter = std::rint(2 * turn);
    const double angle = (turn - quarter / 2) * M_PI, s = std::sin(angle), c = std::cos(angle);
    const double sines[] = {s, c, -s, -c};
    const int at = static_cast<int>(quarter) & 3;
    *sine = sines[at] + 0.0; /* no -0 */
    *cosine = sines[(at + 1) & 3] + 0.0;
}
static inline void sincospi(float x, float *sine, float *cosine)
{
    double s, c;
    sincospi(static_cast<double>(x), &s, &c);
    *sine = static_cast<float>(s);
    *cosine = static_cast<float>(c);
}
#define sincospif sincospi
#define sinpi gg_host_sinpi
#define cospi gg_host_cospi
#define sinpif gg_host_sinpif
#define cospif gg_host_cospif
static inline double sinpi(double x)
{
    double s, c;
    sincospi(x, &s, &c);
    return s;
}
static inline double cospi(double x)
{
    double s, c;
    sincospi(x, &s, &c);
    return c;
}
GG_FUNCTION(float, sinpif, (float x), static_cast<float>(sinpi(x)))
GG_FUNCTION(float, cospif, (float x), static_cast<float>(cospi(x)))

/* ---- memory and time ---- */

#define __ldca __ldg
#define __ldcg __ldg
#define __ldcs __ldg
template <class T> static inline T __ldcv(const T *at)
{
    __asm__ volatile("" ::: "memory"); /* read again, not from a register */
    return *at;
}
template <class T> static inline void __stcg(T *at, typename gg_host_same<T>::type value)
{
    *at = value;
}
#define __stcs __stcg
#define __stwb __stcg
#define __stwt __stcg

/* In nanoseconds instead of clock cycles. clock() is the C library's. */
static inline long long clock64()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

#undef GG_FUNCTION

#endif
