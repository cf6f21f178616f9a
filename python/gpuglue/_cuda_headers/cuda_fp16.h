/* cuda_fp16.h: CUDA's numbers of half precision on the host, which computes with float or double and rounds the result to
 * nearest: sums, products, quotients and roots have the bits that a GPU's have. */
#ifndef GPUGLUE_CUDA_FP16_H
#define GPUGLUE_CUDA_FP16_H

#include <cmath>
#include <cstring>
#include <type_traits>

struct __half_raw {
    unsigned short x;
};

namespace gg_host
{
inline unsigned short half_bits(double value)
{
    const unsigned short sign = std::signbit(value) ? 0x8000 : 0;
    const double size = std::fabs(value);
    if (!(size < 65520)) /* rounds to infinity; or NaN */
        return static_cast<unsigned short>(size >= 65520 ? sign | 0x7c00 : 0x7fff);
    if (size < 0x1p-14) /* subnormal: in units of 2^-24 */
        return static_cast<unsigned short>(sign | static_cast<unsigned>(std::rint(size * 0x1p24)));
    int exponent;
    const double units = std::ldexp(std::frexp(size, &exponent), 11);
    /* 2048 units carry into the exponent, as they should. */
    return static_cast<unsigned short>(sign | ((static_cast<unsigned>(exponent + 14) << 10) +
                                               static_cast<unsigned>(std::rint(units)) - 1024));
}
inline float half_value(unsigned short bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent ? std::ldexp(static_cast<float>(fraction + 1024), exponent - 25)
                                  : static_cast<float>(fraction) * 0x1p-24f;
    return bits & 0x8000 ? -size : size;
}
} // namespace gg_host

struct alignas(2) __half {
    unsigned short __x;

    __half() = default; /* trivial: shared memory may have arrays of them */
    __half(const __half_raw &raw) : __x(raw.x) {}
    template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
    __half(T value) : __x(gg_host::half_bits(static_cast<double>(value)))
    {
    }
    operator float() const { return gg_host::half_value(__x); }
    operator __half_raw() const { return __half_raw{__x}; }
    __half &operator++() { return *this = __half(float(*this) + 1); }
    __half &operator--() { return *this = __half(float(*this) - 1); }
    __half operator+() const { return *this; }
    __half operator-() const { return __half_raw{static_cast<unsigned short>(__x ^ 0x8000)}; }
};
typedef __half half;

struct alignas(4) __half2 {
    __half x, y;

    __half2() = default;
    __half2(__half x, __half y) : x(x), y(y) {}
    __half2 operator-() const { return __half2(-x, -y); }
};
typedef __half2 half2;

/* ---- operators, and the functions of the same meaning ---- */

#define GG_ARITHMETIC(op, name)                                    \
    inline __half operator op(const __half &a, const __half &b)    \
    {                                                              \
        return float(a) op float(b);                               \
    }                                                              \
    inline __half &operator op##=(__half &a, const __half &b)      \
    {                                                              \
        return a = a op b;                                         \
    }                                                              \
    inline __half name(__half a, __half b)                         \
    {                                                              \
        return a op b;                                             \
    }                                                              \
    inline __half name##_rn(__half a, __half b)                    \
    {                                                              \
        return a op b;                                             \
    }                                                              \
    inline __half2 operator op(const __half2 &a, const __half2 &b) \
    {                                                              \
        return __half2(a.x op b.x, a.y op b.y);                    \
    }                                                              \
    inline __half2 &operator op##=(__half2 &a, const __half2 &b)   \
    {                                                              \
        return a = a op b;                                         \
    }
GG_ARITHMETIC(+, __hadd)
GG_ARITHMETIC(-, __hsub)
GG_ARITHMETIC(*, __hmul)
GG_ARITHMETIC(/, __hdiv)
#undef GG_ARITHMETIC
inline __half2 __hadd2(__half2 a, __half2 b)
{
    return a + b;
}
inline __half2 __hsub2(__half2 a, __half2 b)
{
    return a - b;
}
inline __half2 __hmul2(__half2 a, __half2 b)
{
    return a * b;
}
inline __half2 __h2div(__half2 a, __half2 b)
{
    return a / b;
}

#define GG_COMPARISON(op, name)                               \
    inline bool operator op(const __half &a, const __half &b) \
    {                                                         \
        return float(a) op float(b);                          \
    }                                                         \
    inline bool name(__half a, __half b)                      \
    {                                                         \
        return a op b;                                        \
    }
GG_COMPARISON(==, __heq)
GG_COMPARISON(<, __hlt)
GG_COMPARISON(<=, __hle)
GG_COMPARISON(>, __hgt)
GG_COMPARISON(>=, __hge)
#undef GG_COMPARISON
inline bool operator!=(const __half &a, const __half &b)
{
    return float(a) != float(b);
}
inline bool __hne(__half a, __half b)
{
    return float(a) < float(b) || float(a) > float(b);
} /* false for NaN */
inline bool operator==(const __half2 &a, const __half2 &b)
{
    return a.x == b.x && a.y == b.y;
}

inline bool __hisnan(__half a)
{
    return std::isnan(float(a));
}
inline int __hisinf(__half a)
{
    return std::isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0;
}
inline __half __hneg(__half a)
{
    return -a;
}
inline __half __habs(__half a)
{
    return __half_raw{static_cast<unsigned short>(a.__x & 0x7fff)};
}
inline __half2 __hneg2(__half2 a)
{
    return -a;
}
inline __half2 __habs2(__half2 a)
{
    return __half2(__habs(a.x), __habs(a.y));
}
inline __half __hmax(__half a, __half b)
{
    return std::fmax(float(a), float(b));
}
inline __half __hmin(__half a, __half b)
{
    return std::fmin(float(a), float(b));
}
/* Of the exact product: a double holds it. */
inline __half __hfma(__half a, __half b, __half c)
{
    return double(float(a)) * double(float(b)) + double(float(c));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c)
{
    return __half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}

/* ---- functions of mathematics ---- */

#define GG_MATHEMATICS(name, value)                 \
    inline __half h##name(__half a)                 \
    {                                               \
        const double x = float(a);                  \
        return value;                               \
    }                                               \
    inline __half2 h2##name(__half2 a)              \
    {                                               \
        return __half2(h##name(a.x), h##name(a.y)); \
    }
GG_MATHEMATICS(sqrt, std::sqrt(x))
GG_MATHEMATICS(rsqrt, 1 / std::sqrt(x))
GG_MATHEMATICS(rcp, 1 / x)
GG_MATHEMATICS(exp, std::exp(x))
GG_MATHEMATICS(exp2, std::exp2(x))
GG_MATHEMATICS(exp10, std::pow(10.0, x))
GG_MATHEMATICS(log, std::log(x))
GG_MATHEMATICS(log2, std::log2(x))
GG_MATHEMATICS(log10, std::log10(x))
GG_MATHEMATICS(sin, std::sin(x))
GG_MATHEMATICS(cos, std::cos(x))
GG_MATHEMATICS(floor, std::floor(x))
GG_MATHEMATICS(ceil, std::ceil(x))
GG_MATHEMATICS(trunc, std::trunc(x))
GG_MATHEMATICS(rint, std::rint(x))
#undef GG_MATHEMATICS

/* ---- conversions ---- */

inline __half __float2half(float a)
{
    return a;
}
inline __half __float2half_rn(float a)
{
    return a;
}
inline __half __double2half(double a)
{
    return a;
}
inline __half __int2half_rn(int a)
{
    return a;
}
inline __half __uint2half_rn(unsigned a)
{
    return a;
}
inline float __half2float(__half a)
{
    return a;
}
inline int __half2int_rn(__half a)
{
    return static_cast<int>(std::rint(float(a)));
}
inline int __half2int_rz(__half a)
{
    return static_cast<int>(float(a));
}
inline unsigned short __half_as_ushort(__half a)
{
    return a.__x;
}
inline short __half_as_short(__half a)
{
    return static_cast<short>(a.__x);
}
inline __half __ushort_as_half(unsigned short bits)
{
    return __half_raw{bits};
}
inline __half __short_as_half(short bits)
{
    return __half_raw{static_cast<unsigned short>(bits)};
}

inline __half2 make_half2(__half x, __half y)
{
    return __half2(x, y);
}
inline __half2 __halves2half2(__half x, __half y)
{
    return __half2(x, y);
}
inline __half2 __half2half2(__half a)
{
    return __half2(a, a);
}
inline __half2 __float2half2_rn(float a)
{
    return __half2(a, a);
}
inline __half2 __floats2half2_rn(float a, float b)
{
    return __half2(a, b);
}
inline __half2 __float22half2_rn(float2 a)
{
    return __half2(a.x, a.y);
}
inline float2 __half22float2(__half2 a)
{
    return make_float2(a.x, a.y);
}
inline __half __low2half(__half2 a)
{
    return a.x;
}
inline __half __high2half(__half2 a)
{
    return a.y;
}
inline float __low2float(__half2 a)
{
    return a.x;
}
inline float __high2float(__half2 a)
{
    return a.y;
}
inline __half2 __lowhigh2highlow(__half2 a)
{
    return __half2(a.y, a.x);
}

GG_SHUFFLES(__half)
GG_SHUFFLES(__half2)

#endif
