/* pycuda-complex.hpp: complex numbers in kernels, with the names of PyCUDA's header of this name. For NVRTC, HIPRTC and the
 * host's dialect. A number has the layout of NumPy's complex64 or complex128, aligned as one of its parts is. */
#ifndef GPUGLUE_PYCUDA_COMPLEX_HPP
#define GPUGLUE_PYCUDA_COMPLEX_HPP

extern "C++" { /* PyCUDA's programs include it in extern "C" */
namespace pycuda
{
template <bool> struct gg_if {
};
template <> struct gg_if<true> {
    typedef int type;
};

template <class T> struct complex {
    typedef T value_type;
    T _M_re, _M_im;

    complex() = default; /* trivial: shared memory may have arrays of them */
    __device__ complex(T re, T im = T(0)) : _M_re(re), _M_im(im) {}
    template <class U, typename gg_if<(sizeof(U) <= sizeof(T))>::type = 0>
    __device__ complex(const complex<U> &other) : _M_re(T(other._M_re)), _M_im(T(other._M_im))
    {
    }
    template <class U, typename gg_if<(sizeof(U) > sizeof(T))>::type = 0>
    explicit __device__ complex(const complex<U> &other)
        : _M_re(T(other._M_re)), _M_im(T(other._M_im))
    {
    }
    template <class U> __device__ complex &operator=(const complex<U> &other)
    {
        return *this = complex(other);
    }

    __device__ T real() const { return _M_re; }
    __device__ T imag() const { return _M_im; }
    __device__ void real(T value) { _M_re = value; }
    __device__ void imag(T value) { _M_im = value; }

    __device__ complex &operator+=(complex b) { return *this = *this + b; }
    template <class U> __device__ complex &operator+=(const complex<U> &b)
    {
        return *this = *this + complex(b);
    }
    __device__ complex &operator-=(complex b) { return *this = *this - b; }
    template <class U> __device__ complex &operator-=(const complex<U> &b)
    {
        return *this = *this - complex(b);
    }
    __device__ complex &operator*=(complex b) { return *this = *this * b; }
    template <class U> __device__ complex &operator*=(const complex<U> &b)
    {
        return *this = *this * complex(b);
    }
    __device__ complex &operator/=(complex b) { return *this = *this / b; }
    template <class U> __device__ complex &operator/=(const complex<U> &b)
    {
        return *this = *this / complex(b);
    }

    /* Not templates, so that a number of any type is an operand. */
    friend __device__ complex operator+(complex a) { return a; }
    friend __device__ complex operator-(complex a) { return complex(-a._M_re, -a._M_im); }
    friend __device__ complex operator+(complex a, complex b)
    {
        return complex(a._M_re + b._M_re, a._M_im + b._M_im);
    }
    friend __device__ complex operator-(complex a, complex b)
    {
        return complex(a._M_re - b._M_re, a._M_im - b._M_im);
    }
    friend __device__ complex operator*(complex a, complex b)
    {
        return complex(a._M_re * b._M_re - a._M_im * b._M_im, a._M_re * b._M_im + a._M_im * b._M_re);
    }
    /* By Smith's method, which does not overflow where the result does not. */
    friend __device__ complex operator/(complex a, complex b)
    {
        const T re = b._M_re < 0 ? -b._M_re : b._M_re, im = b._M_im < 0 ? -b._M_im : b._M_im;
        if (re == 0 && im == 0)
            return complex(a._M_re / re, a._M_im / re);
        if (re >= im) {
            const T ratio = b._M_im / b._M_re, by = b._M_re + b._M_im * ratio;
            return complex((a._M_re + a._M_im * ratio) / by, (a._M_im - a._M_re * ratio) / by);
        }
        const T ratio = b._M_re / b._M_im, by = b._M_im + b._M_re * ratio;
        return complex((a._M_re * ratio + a._M_im) / by, (a._M_im * ratio - a._M_re) / by);
    }
    friend __device__ bool operator==(complex a, complex b)
    {
        return a._M_re == b._M_re && a._M_im == b._M_im;
    }
    friend __device__ bool operator!=(complex a, complex b) { return !(a == b); }
};

/* ---- functions of one real number, for both precisions ---- */

#define GG_OF_REAL(name)                         \
    inline __device__ float gg_##name(float x)   \
    {                                            \
        return ::name##f(x);                     \
    }                                            \
    inline __device__ double gg_##name(double x) \
    {                                            \
        return ::name(x);                        \
    }
#define GG_OF_TWO(name)                                    \
    inline __device__ float gg_##name(float x, float y)    \
    {                                                      \
        return ::name##f(x, y);                            \
    }                                                      \
    inline __device__ double gg_##name(double x, double y) \
    {                                                      \
        return ::name(x, y);                               \
    }
GG_OF_REAL(exp)
GG_OF_REAL(log)
GG_OF_REAL(log1p)
GG_OF_REAL(sqrt)
GG_OF_REAL(sin)
GG_OF_REAL(cos)
GG_OF_REAL(tan)
GG_OF_REAL(sinh)
GG_OF_REAL(cosh)
GG_OF_REAL(asinh)
GG_OF_REAL(fabs)
GG_OF_REAL(floor)
GG_OF_TWO(hypot)
GG_OF_TWO(atan2)
GG_OF_TWO(copysign)
#undef GG_OF_REAL
#undef GG_OF_TWO

template <class T> inline __device__ bool gg_is_infinite(T x)
{
    return x == x && x - x != x - x;
}

/* ---- parts ---- */

template <class T> inline __device__ T real(const complex<T> &z)
{
    return z._M_re;
}
template <class T> inline __device__ T imag(const complex<T> &z)
{
    return z._M_im;
}
template <class T> inline __device__ complex<T> conj(const complex<T> &z)
{
    return complex<T>(z._M_re, -z._M_im);
}
template <class T> inline __device__ T norm(const complex<T> &z)
{
    return z._M_re * z._M_re + z._M_im * z._M_im;
}
template <class T> inline __device__ T abs(const complex<T> &z)
{
    return gg_hypot(z._M_re, z._M_im);
}
template <class T> inline __device__ T arg(const complex<T> &z)
{
    return gg_atan2(z._M_im, z._M_re);
}
template <class T> inline __device__ complex<T> polar(const T &length, const T &angle)
{
    return complex<T>(length * gg_cos(angle), length * gg_sin(angle));
}
template <class T> inline __device__ complex<T> polar(const T &length)
{
    return complex<T>(length);
}

/* ---- exponentials, roots and powers ---- */

template <class T> inline __device__ complex<T> exp(const complex<T> &z)
{
    const T length = gg_exp(z._M_re);
    return z._M_im == 0 ? complex<T>(length, z._M_im) : polar(length, z._M_im);
}

template <class T> inline __device__ complex<T> log(const complex<T> &z)
{
    const T re = gg_fabs(z._M_re), im = gg_fabs(z._M_im), length = gg_hypot(re, im);
    const T x = re > im ? re : im, y = re > im ? im : re;
    const bool near_one =
        length > T(0.7) && length < T(1.5); /* where the logarithm of the length is inexact */
    return complex<T>(near_one ? gg_log1p((x - 1) * (x + 1) + y * y) / 2 : gg_log(length), arg(z));
}
template <class T> inline __device__ complex<T> log10(const complex<T> &z)
{
    const complex<T> found = log(z);
    const T by = T(0.43429448190325182765);
    return complex<T>(found._M_re * by, found._M_im * by);
}

template <class T> inline __device__ complex<T> sqrt(const complex<T> &z)
{
    const T re = z._M_re, im = z._M_im, zero = 0;
    if (re == 0 && im == 0)
        return complex<T>(zero, im);
    if (gg_is_infinite(im))
        return complex<T>(gg_fabs(im), im);
    if (gg_is_infinite(re) && im == im)
        return re > 0 ? complex<T>(re, gg_copysign(zero, im))
                      : complex<T>(zero, gg_copysign(re, im));
    /* An eighth of the parts, so that their sum does not overflow. */
    const T root = 2 * gg_sqrt(gg_fabs(re) / 8 + gg_hypot(re / 8, im / 8)), other = im / root / 2;
    return re >= 0 ? complex<T>(root, other) : complex<T>(gg_fabs(other), gg_copysign(root, im));
}

template <class T> inline __device__ complex<T> pow(const complex<T> &z, int exponent)
{
    complex<T> result(1), square = z;
    for (unsigned left = exponent < 0 ? 0u - unsigned(exponent) : unsigned(exponent); left;
         left /= 2) {
        if (left % 2)
            result *= square;
        square *= square;
    }
    return exponent < 0 ? complex<T>(1) / result : result;
}
template <class T> inline __device__ complex<T> pow(const complex<T> &z, const complex<T> &exponent)
{
    const T re = exponent._M_re;
    if (exponent._M_im == 0 && re > -100 && re < 100 && gg_floor(re) == re)
        return pow(z, int(re));
    if (z == complex<T>(0)) {
        const T undefined = (z._M_re - z._M_re) / z._M_re;
        return re > 0 ? complex<T>(0) : complex<T>(undefined, undefined);
    }
    return exp(exponent * log(z));
}
template <class T> inline __device__ complex<T> pow(const complex<T> &z, const T &exponent)
{
    return pow(z, complex<T>(exponent));
}
template <class T> inline __device__ complex<T> pow(const T &base, const complex<T> &exponent)
{
    return pow(complex<T>(base), exponent);
}

/* ---- trigonometric and hyperbolic functions ---- */

template <class T> inline __device__ complex<T> sin(const complex<T> &z)
{
    return complex<T>(gg_sin(z._M_re) * gg_cosh(z._M_im), gg_cos(z._M_re) * gg_sinh(z._M_im));
}
template <class T> inline __device__ complex<T> cos(const complex<T> &z)
{
    return complex<T>(gg_cos(z._M_re) * gg_cosh(z._M_im), -gg_sin(z._M_re) * gg_sinh(z._M_im));
}
template <class T> inline __device__ complex<T> sinh(const complex<T> &z)
{
    return complex<T>(gg_sinh(z._M_re) * gg_cos(z._M_im), gg_cosh(z._M_re) * gg_sin(z._M_im));
}
template <class T> inline __device__ complex<T> cosh(const complex<T> &z)
{
    return complex<T>(gg_cosh(z._M_re) * gg_cos(z._M_im), gg_sinh(z._M_re) * gg_sin(z._M_im));
}

/* Kahan, "Branch cuts for complex elementary functions", 1987: tanh, asin and acos. */
template <class T> inline __device__ complex<T> tanh(const complex<T> &z)
{
    const T re = gg_fabs(z._M_re);
    if (re > 22) /* the real part is 1 in both precisions; its square would overflow */
        return complex<T>(gg_copysign(T(1), z._M_re),
                          4 * gg_sin(z._M_im) * gg_cos(z._M_im) * gg_exp(-2 * re));
    const T t = gg_tan(z._M_im), s = gg_sinh(z._M_re), beta = 1 + t * t, by = 1 + beta * s * s;
    return complex<T>(beta * gg_sqrt(1 + s * s) * s / by, t / by);
}
template <class T> inline __device__ complex<T> tan(const complex<T> &z)
{
    const complex<T> found = tanh(complex<T>(-z._M_im, z._M_re));
    return complex<T>(found._M_im, -found._M_re);
}
template <class T> inline __device__ complex<T> asin(const complex<T> &z)
{
    const complex<T> below = sqrt(complex<T>(1 - z._M_re, -z._M_im)),
                     above = sqrt(complex<T>(1 + z._M_re, z._M_im));
    return complex<T>(gg_atan2(z._M_re, (below * above)._M_re),
                      gg_asinh((conj(below) * above)._M_im));
}
template <class T> inline __device__ complex<T> acos(const complex<T> &z)
{
    const complex<T> below = sqrt(complex<T>(1 - z._M_re, -z._M_im)),
                     above = sqrt(complex<T>(1 + z._M_re, z._M_im));
    return complex<T>(2 * gg_atan2(below._M_re, above._M_re), gg_asinh((conj(above) * below)._M_im));
}
template <class T> inline __device__ complex<T> atan(const complex<T> &z)
{
    const T x = z._M_re, y = z._M_im, length = gg_hypot(x, y);
    if (length > T(1e8)) /* the squares below would overflow, or lose the 1 */
        return complex<T>(gg_copysign(T(1.57079632679489661923), x), y / length / length);
    const T below = x * x + (y - 1) * (y - 1), above = x * x + (y + 1) * (y + 1);
    /* log1p of a small number: the quotient of the two may be near 1. */
    const T im = y < 0 ? -gg_log1p(-4 * y / above) / 4 : gg_log1p(4 * y / below) / 4;
    return complex<T>(gg_atan2(2 * x, (1 - x) * (1 + x) - y * y) / 2, im);
}
} // namespace pycuda
}

#endif
