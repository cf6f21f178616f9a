"""pycuda.cumath: functions of mathematics for each element of an array. NumPy, gpuglue's own kernels or CuPy compute."""

import numpy as np

from . import _compute, driver
from ._missing import refusing

_DOC = """Return {what} each element.

    Parameters
    ----------
    array : GPUArray
        The array.
    stream_or_out : Stream or GPUArray, optional
        As `stream` or as `out`.
    out : GPUArray, optional
        Array for the result. None makes a new one.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The result; of integers it is float64.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> from gpuglue.compat.pycuda import cumath
    >>> x = gpuarray.to_gpu(np.array([0.5]))
    >>> bool(np.isclose(cumath.{name}(x).get()[0], np.{numpy}(0.5)))
    True
    """


def _function(name, what, numpy=None):
    numpy = numpy or name

    def function(array, stream_or_out=None, *, out=None, stream=None):
        if isinstance(stream_or_out, driver.Stream):
            stream = stream_or_out
        elif stream_or_out is not None:
            out = stream_or_out
        return _compute.elementwise(numpy, array, out=out, stream=stream)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(name=name, what=what, numpy=numpy)
    return function


fabs = _function("fabs", "the absolute value of")
ceil = _function("ceil", "the least whole number that is not less than")
floor = _function("floor", "the greatest whole number that is not greater than")
exp = _function("exp", "the exponential of")
log = _function("log", "the natural logarithm of")
log10 = _function("log10", "the logarithm to base 10 of")
sqrt = _function("sqrt", "the square root of")
sin = _function("sin", "the sine of")
cos = _function("cos", "the cosine of")
tan = _function("tan", "the tangent of")
asin = _function("asin", "the inverse sine of", "arcsin")
acos = _function("acos", "the inverse cosine of", "arccos")
atan = _function("atan", "the inverse tangent of", "arctan")
sinh = _function("sinh", "the hyperbolic sine of")
cosh = _function("cosh", "the hyperbolic cosine of")
tanh = _function("tanh", "the hyperbolic tangent of")


def fmod(arg, mod, stream=None):
    """Return the remainder of a division, with the sign of the dividend.

    Parameters
    ----------
    arg : GPUArray
        The dividends.
    mod : GPUArray
        The divisors.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The remainders.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> from gpuglue.compat.pycuda import cumath
    >>> cumath.fmod(gpuarray.to_gpu(np.array([7.0])), gpuarray.to_gpu(np.array([4.0]))).get()
    array([3.])
    """
    return _compute.elementwise("fmod", arg, mod, stream=stream)


def ldexp(significand, exponent, stream=None):
    """Return ``significand * 2**exponent`` for each element.

    Parameters
    ----------
    significand : GPUArray
        The significands.
    exponent : GPUArray
        The exponents, whole numbers of any type.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The products.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> from gpuglue.compat.pycuda import cumath
    >>> cumath.ldexp(gpuarray.to_gpu(np.array([0.5])), gpuarray.to_gpu(np.array([3.0]))).get()
    array([4.])
    """
    _compute.check(exponent)
    return _compute.elementwise("ldexp", significand, exponent.astype(np.int32, stream), stream=stream)


_PARTS = """
template <class T> __device__ T gg_significand(T v) { int e; return frexp(v, &e); }
template <class T> __device__ T gg_exponent(T v) { int e; frexp(v, &e); return e; }
template <class T> __device__ T gg_fraction(T v) { T whole; return modf(v, &whole); }
template <class T> __device__ T gg_whole(T v) { T whole; modf(v, &whole); return whole; }
"""


def _pair(name, formulas, arg, stream):
    """The two results of a function."""
    _compute.check(arg)
    dtype = np.result_type(arg.dtype, np.float32)
    results = [_compute.new([arg], dtype) for _ in formulas]
    if not arg.size:
        return results
    runs = [_compute.by_kernels("prepared", f"{formula}(a)", [arg], [dtype], results[0]._form, _PARTS) for formula in formulas]
    if all(runs):
        for run, result in zip(runs, results):
            run(result, [arg], stream)
        return results
    chosen = _compute.library()
    with chosen.views([*results, arg], stream) as (first, second, view):
        first[...], second[...] = getattr(chosen.module, name)(view)
    return results


def frexp(arg, stream=None):
    """Return the significands and the exponents to base 2.

    Parameters
    ----------
    arg : GPUArray
        The array.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    significands : GPUArray
        From 0.5 up to 1, or 0.
    exponents : GPUArray
        Of the type of the significands.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> from gpuglue.compat.pycuda import cumath
    >>> significands, exponents = cumath.frexp(gpuarray.to_gpu(np.array([4.0])))
    >>> significands.get(), exponents.get()
    (array([0.5]), array([3.]))
    """
    return tuple(_pair("frexp", ("gg_significand", "gg_exponent"), arg, stream))


def modf(arg, stream=None):
    """Return the fractional and the whole parts.

    Parameters
    ----------
    arg : GPUArray
        The array.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    fracpart : GPUArray
        The fractional parts.
    intpart : GPUArray
        The whole parts.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> from gpuglue.compat.pycuda import cumath
    >>> fractions, wholes = cumath.modf(gpuarray.to_gpu(np.array([2.5])))
    >>> fractions.get(), wholes.get()
    (array([0.5]), array([2.]))
    """
    return tuple(_pair("modf", ("gg_fraction", "gg_whole"), arg, stream))


__getattr__ = refusing(__name__)
