/* cuComplex.h: CUDA's complex numbers of this header on the host, which are vectors of two elements. */
#ifndef GPUGLUE_CUCOMPLEX_H
#define GPUGLUE_CUCOMPLEX_H

#include <cmath>
#include <complex>

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define GG_COMPLEX(type, part, f, make)                                  \
    inline type make(part re, part im)                                   \
    {                                                                    \
        return type{re, im};                                             \
    }                                                                    \
    inline part cuCreal##f(type a)                                       \
    {                                                                    \
        return a.x;                                                      \
    }                                                                    \
    inline part cuCimag##f(type a)                                       \
    {                                                                    \
        return a.y;                                                      \
    }                                                                    \
    inline type cuConj##f(type a)                                        \
    {                                                                    \
        return type{a.x, -a.y};                                          \
    }                                                                    \
    inline type cuCadd##f(type a, type b)                                \
    {                                                                    \
        return type{a.x + b.x, a.y + b.y};                               \
    }                                                                    \
    inline type cuCsub##f(type a, type b)                                \
    {                                                                    \
        return type{a.x - b.x, a.y - b.y};                               \
    }                                                                    \
    inline type cuCmul##f(type a, type b)                                \
    {                                                                    \
        return type{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};       \
    }                                                                    \
    inline type cuCdiv##f(type a, type b)                                \
    {                                                                    \
        const std::complex<part> found =                                 \
            std::complex<part>(a.x, a.y) / std::complex<part>(b.x, b.y); \
        return type{found.real(), found.imag()};                         \
    }                                                                    \
    inline type cuCfma##f(type a, type b, type c)                        \
    {                                                                    \
        return cuCadd##f(cuCmul##f(a, b), c);                            \
    }                                                                    \
    inline part cuCabs##f(type a)                                        \
    {                                                                    \
        return std::hypot(a.x, a.y);                                     \
    }
GG_COMPLEX(cuFloatComplex, float, f, make_cuFloatComplex)
GG_COMPLEX(cuDoubleComplex, double, , make_cuDoubleComplex)
#undef GG_COMPLEX

inline cuComplex make_cuComplex(float re, float im)
{
    return cuComplex{re, im};
}
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a)
{
    return cuDoubleComplex{a.x, a.y};
}
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a)
{
    return cuFloatComplex{static_cast<float>(a.x), static_cast<float>(a.y)};
}

#endif
