"""Arithmetic by kernels, for devices without a library that computes: formulas in CUDA C++, or OpenCL C for Level Zero, compiled at their
first use."""

import functools

import numpy as np

import gpuglue

from ._compute import is_array
from ._errors import LogicError
from ._generated import blocks_for, launch, number_of
from ._memory import argument_of
from .elementwise import ElementwiseKernel
from .reduction import ReductionKernel
from .tools import dtype_to_ctype

_NUMPY = "copy with get() and use NumPy"
_CUPY = f"install CuPy (cupy-cuda12x, cupy-cuda13x, or its build for ROCm), which then computes on the same memory; or {_NUMPY}"
_DLPACK = f"use torch or dpnp, which take the array by DLPack; or {_NUMPY}"


def _on_ze():
    return gpuglue.current_device().backend == "ze"


class Refused(Exception):
    """Kernels cannot compute it. `error` is for a program where no library can either."""

    def __init__(self, kind, what, before=": ", after=""):
        self.error = kind(f"{what}{before}{_DLPACK if _on_ze() else _CUPY}{after}")


# Of the operands a, b and c, which have the type of the loop. Integers divide as in Python; what has no value is 0.
_DIVIDE = """
template <class T> __device__ T gg_remainder(T a, T b)
{{
  if (b == 0)
    return {undefined};
  T rest = {rest};
  if (rest != 0 && (rest < 0) != (b < 0))
    rest += b;
  return rest;
}}
template <class T> __device__ T gg_floor_divide(T a, T b)
{{
  return b == 0 ? {quotient} : {floor}((a - gg_remainder(a, b)) / b{half});
}}
"""
_DIVIDE_FLOATS = _DIVIDE.format(undefined="fmod(a, b)", rest="fmod(a, b)", quotient="a / b", floor="floor", half=" + (T)0.5")
_DIVIDE_WHOLE = _DIVIDE.format(undefined="0", rest="a % b", quotient="(T)0", floor="", half="")
_POWER = """
template <class T> __device__ T gg_power(T a, T b)
{
  T result = b < 0 ? (a == 1 ? 1 : 0) : 1;
  for (; b > 0; b /= 2, a *= a)
    if (b % 2)
      result *= a;
  return result;
}
"""
# NumPy's order of complex numbers: by the real part, and where these are equal by the imaginary part.
_ORDER = """
template <class T> __device__ bool gg_less(pycuda::complex<T> a, pycuda::complex<T> b, bool or_equal)
{
  const T x = a.imag(), y = b.imag();
  return (a.real() < b.real() && x == x && y == y) || (a.real() == b.real() && (x < y || (or_equal && x == y)));
}
"""
_FORMULAS = {
    "add": "a + b", "subtract": "a - b", "multiply": "a * b", "true_divide": "a / b", "negative": "-a", "positive": "a",
    "floor_divide": "gg_floor_divide(a, b)", "remainder": "gg_remainder(a, b)", "fmod": "fmod(a, b)",
    "equal": "a == b", "not_equal": "a != b", "less": "a < b", "less_equal": "a <= b", "greater": "a > b",
    "greater_equal": "a >= b", "logical_and": "a && b", "logical_or": "a || b", "logical_not": "!a",
    "bitwise_and": "a & b", "bitwise_or": "a | b", "bitwise_xor": "a ^ b",
    "maximum": "a > b || a != a ? a : b", "minimum": "a < b || a != a ? a : b",
    "arcsin": "asin(a)", "arccos": "acos(a)", "arctan": "atan(a)", "conjugate": "a", "real": "a", "imag": "0", "ldexp": "ldexp(a, (int)b)",
    **{name: f"{name}(a)" for name in "fabs ceil floor exp log log10 sqrt sin cos tan sinh cosh tanh".split()}}
_OF_COMPLEX = {
    "less": "gg_less(a, b, false)", "less_equal": "gg_less(a, b, true)", "greater": "gg_less(b, a, false)",
    "greater_equal": "gg_less(b, a, true)", "logical_and": "a != 0 && b != 0", "logical_or": "a != 0 || b != 0", "logical_not": "a == 0",
    "maximum": "a != a || gg_less(b, a, true) ? a : b", "minimum": "a != a || gg_less(a, b, true) ? a : b",
    "absolute": "abs(a)", "conjugate": "conj(a)", "real": "a.real()", "imag": "a.imag()", "power": "pow(a, b)"}
_OF_OPERANDS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_not",
                "absolute", "real", "imag")  # whose result has another type than the operands


def _kind(dtype):
    """The C++ name of a dtype."""
    kinds = "biuf" if _on_ze() else "biufc"
    if dtype.kind not in kinds or dtype == np.float16 or dtype.itemsize > (16 if dtype.kind == "c" else 8) or not dtype.isnative:
        raise Refused(TypeError, f"gpuglue's kernels compute with integers, float and double{', and complex numbers of these' * (kinds[-1] == 'c')}"
                      f", not with {dtype}")
    return dtype_to_ctype(dtype)


def _formula(name, loop):
    """(expression, functions before the kernel)."""
    if loop.kind == "c" and name in _OF_COMPLEX:
        return _OF_COMPLEX[name], _ORDER if "gg_less" in _OF_COMPLEX[name] else ""
    whole = loop.kind in "biu"
    if name in ("floor_divide", "remainder"):
        return _FORMULAS[name], _DIVIDE_WHOLE if whole else _DIVIDE_FLOATS
    if name == "power":
        return ("gg_power(a, b)", _POWER) if whole else ("pow(a, b)", "")
    if name == "absolute":
        return "a" if loop.kind in "bu" else "a < 0 ? -a : a" if whole else "fabs(a)", ""
    if name in ("ceil", "floor") and whole:
        return "a", ""
    return _FORMULAS[name], ""


@functools.lru_cache(maxsize=None)
def _elementwise(expression, preamble, target, operands):
    """The kernel of an expression: `operands` has (type read, type computed with, index) of each; no index is a number."""
    letters = "abc"[:len(operands)]
    declared = [f"const {kind} *gg_{one}" if index else f"{kind} gg_{one}" for one, (kind, _, index) in zip(letters, operands)]
    values = "".join(f"const {loop} {one} = ({loop})gg_{one}{index}; " for one, (_, loop, index) in zip(letters, operands))
    return ElementwiseKernel(", ".join([f"{target} *gg_out", *declared]), f"{values}gg_out[i] = ({target})({expression})",
                             "gg_elementwise", preamble=preamble)


def prepared(expression, args, loops, form, preamble=""):
    """What computes an expression of a, b and c, which are arrays and numbers, for each element of an array of that Form: a function of
    (out, args, stream)."""
    operands, converters, size = [], [], form.size
    for one, loop in zip(args, loops):
        whole = is_array(one) and one.shape == form.shape
        if is_array(one) and not whole and one.size != 1:
            raise Refused(NotImplementedError, f"operands of the shapes {one.shape} and {form.shape}, without a library")
        if whole and not (one.flags.c_contiguous and form.flags.c_contiguous or one.flags.f_contiguous and form.flags.f_contiguous):
            raise Refused(RuntimeError, "without a library, arrays are combined in one order of their elements only: copy one of them, or",
                          " ")
        read = one.dtype if is_array(one) else loop if loop.kind != "b" else np.dtype(np.uint8)  # OpenCL C has no arguments of type bool
        operands.append((_kind(read), _kind(loop), "[i]" if whole else "[0]" if is_array(one) else ""))
        converters.append(argument_of if is_array(one) else number_of(read))
    if _on_ze():  # OpenCL C has no templates
        preamble = f"#define T {_kind(loops[0])}\n" + preamble.replace("template <class T> ", "")
    kernel, = _compiled(_elementwise(expression, preamble, _kind(form.dtype), tuple(operands)))
    blocks = blocks_for(size)

    def run(out, args, stream):
        values = [convert(one) for convert, one in zip(converters, args)]
        launch(kernel, (argument_of(out), *values, size, 0, size, 1), blocks, stream)

    return run


def elementwise(name, args, dtype, form):
    """The same for a function of NumPy, which has that result type."""
    loop = np.result_type(*(one.dtype if is_array(one) else one for one in args)) if name in _OF_OPERANDS else dtype
    expression, preamble = _formula(name, loop)
    loops = [loop, np.dtype(np.int32)] if name == "ldexp" else [loop] * len(args)
    return prepared(expression, args, loops, form, preamble)


def _compiled(kernel):
    """The kernels for the current device; without a compiler the error names what to install."""
    try:
        return kernel._kernels.current()
    except LogicError as error:
        if not isinstance(error.__cause__, gpuglue.UnsupportedError):
            raise
        raise Refused(LogicError, f"nothing computes on {gpuglue.current_device()}", ": ",
                      f". gpuglue's own kernels need a compiler: {error}") from error


# ---- reductions


def _limit(dtype, greatest):
    """The greatest or the least value, in C."""
    if dtype.kind == "c":
        infinite = _limit(np.dtype(f"f{dtype.itemsize // 2}"), greatest)
        return f"{_kind(dtype)}({infinite}, {infinite})"
    if dtype.kind == "f":
        return f"({'' if greatest else '-'}1.0 / 0.0)"
    if dtype.kind == "b":
        return str(int(greatest))
    limits = np.iinfo(dtype)
    if greatest:
        return f"{limits.max}{'ULL' if dtype.kind == 'u' else 'LL'}"
    return f"({limits.min + 1}LL - 1)" if limits.min else "0"


def reduction(name, dtype, arrays, subset):
    """What combines the elements of arrays, or those that `subset` names: a function of (out, arrays, subset, stream)."""
    if not all(one._form.contiguous for one in (subset, *arrays) if one is not None):
        raise Refused(RuntimeError, "generated kernels take contiguous arrays: copy the array first, or", " ")
    kernel = _reduction(name, dtype, tuple(one.dtype for one in arrays), subset if subset is None else subset.dtype)
    _compiled(kernel)

    def run(out, arrays, subset, stream):
        kernel(*(arrays if subset is None else (subset, *arrays)), stream=stream, out=out)

    return run


@functools.lru_cache(maxsize=None)
def _reduction(name, target, kinds, subset):
    """The kernel of sum, dot, min, max, any and all, of all elements or of those that `subset` names."""
    at = "gg_subset[i]" if subset else "i"
    x, y = (f"gg_{letter}[{at}]" for letter in "xy")
    kind = _kind(target)
    neutral, combine, element = {
        "sum": ("0", "a + b", f"({kind}){x}"), "dot": ("0", "a + b", f"({kind}){x} * ({kind}){y}"),
        "any": ("false", "a || b", f"{x} != 0"), "all": ("true", "a && b", f"{x} != 0"),
        "min": (None, _FORMULAS["minimum"], x), "max": (None, _FORMULAS["maximum"], x)}[name]
    arguments = [f"const {_kind(subset)} *gg_subset"] if subset else []
    arguments += [f"const {_kind(one)} *gg_{letter}" for letter, one in zip("xy", kinds)]
    preamble = ""
    if target.kind == "c" and name in ("min", "max"):
        combine, preamble = _formula("minimum" if name == "min" else "maximum", target)
    return ReductionKernel(target, neutral or _limit(target, name == "min"), combine, element, ", ".join(arguments), f"gg_{name}",
                           preamble=preamble)


def take(a, indices):
    """What takes the elements at some indices: a function of (out, a, indices, stream)."""
    if not (a._form.contiguous and indices._form.contiguous):
        raise Refused(RuntimeError, "generated kernels take contiguous arrays: copy the array first, or", " ")
    kernel = _gather(a.dtype, indices.dtype)
    _compiled(kernel)
    return kernel


@functools.lru_cache(maxsize=None)
def _gather(kind, index):
    return ElementwiseKernel(f"{_kind(kind)} *gg_out, const {_kind(kind)} *gg_in, const {_kind(index)} *gg_at",
                             "gg_out[i] = gg_in[gg_at[i]]", "gg_take")
