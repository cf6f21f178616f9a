"""astype on the device, by kernels that compile() builds: conversions that NumPy does without a warning (except for signalling
NaN), bit for bit as NumPy does them. The first use of each on a device is compared with NumPy. All others are left to NumPy on the host."""

from typing import Any, Literal

import numpy as np

from . import _core

BLOCK = 256
# (CUDA C++, OpenCL C) of the integers and floats that a dtype consists of
TYPES = {
    "i1": ("signed char", "char"), "i2": ("short", "short"), "i4": ("int", "int"), "i8": ("long long", "long"),
    "u1": ("unsigned char", "uchar"), "u2": ("unsigned short", "ushort"), "u4": ("unsigned int", "uint"),
    "u8": ("unsigned long long", "ulong"), "f4": ("float", "float"), "f8": ("double", "double"), "b1": ("unsigned char", "uchar"),
}
WHOLE = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
# A double from the bits of a float: units without subnormal numbers or with one NaN must not change the result.
WIDEN = """
typedef union { WORD bits; double value; } gg_double;
typedef union { unsigned int bits; float value; } gg_float;
INLINE double gg_widen(unsigned int x)
{
    WORD sign = (WORD)(x >> 31) << 63, low = x & 0x7fffffu;
    unsigned int exponent = x >> 23 & 255;
    gg_double out;
    gg_float in;
    in.bits = x;
    if (exponent == 255)
        out.bits = (WORD)0x7ff << 52 | low << 29 | (low ? (WORD)1 << 51 : 0);
    else if (exponent == 0)
        out.value = (double)low * 1.40129846432481707092372958328991613e-45;
    else
        out.bits = (WORD)(exponent + 896) << 52 | low << 29;
    out.bits = (out.bits & ~((WORD)1 << 63)) | sign;
    return out.value;
}
"""
KERNEL = """
#ifdef __OPENCL_C_VERSION__
#define KERNEL kernel void
#define GLOBAL global
#define INLINE static inline
#define WORD ulong
#define INDEX get_global_id(0)
#ifdef DOUBLES
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#else
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define INLINE static __device__ inline
#define WORD unsigned long long
#define INDEX ((WORD)blockIdx.x * blockDim.x + threadIdx.x)
#endif
%(widen)s
KERNEL gg_astype(GLOBAL const %(source)s *from, GLOBAL %(target)s *to, WORD count)
{
    WORD i = INDEX;
    if (i >= count)
        return;
    %(source)s x = from[i];
    %(store)s
}
"""


def _name(dtype: "np.dtype[Any]") -> str:
    return f"{dtype.kind}{dtype.itemsize}" if dtype.isnative and dtype.names is None and dtype.subdtype is None else ""


def recipe(source: "np.dtype[Any]", target: "np.dtype[Any]") -> "tuple[str, str, str, int] | None":
    """(type read, type written, expression of x, elements written for each), or None where NumPy might warn."""
    s, t = _name(source), _name(target)
    part = {"c8": "f4", "c16": "f8"}.get(t)
    if s in WHOLE:
        value = "(x != 0)" if s == "b1" or t == "b1" else "x"
        if t in WHOLE:
            return s, t, value, 1
        return (s, part or t, value, 2 if part else 1) if part or t in ("f4", "f8") else None
    if s in ("f4", "f8"):
        bits = "u" + s[1]
        if t == "b1":  # also true for subnormal numbers and NaN
            return bits, t, "((x << 1) != 0)", 1
        if part == s:
            return bits, bits, "x", 2
        if s == "f4" and t in ("f8", "c16"):
            return bits, "f8", "gg_widen(x)", 2 if part else 1
    return ("u4", "f8", "gg_widen(x)", 1) if (s, t) == ("c8", "c16") else None


def text(source: "np.dtype[Any]", target: "np.dtype[Any]", language: int) -> "str | None":
    """The kernel, in CUDA C++ (0) or OpenCL C (1)."""
    found = recipe(source, target)
    if not found:
        return None
    read, written, value, each = found
    to = TYPES[written][language]
    store = f"to[i] = ({to})({value});" if each == 1 else f"to[2 * i] = ({to})({value}); to[2 * i + 1] = 0;"
    doubles = "#define DOUBLES\n" if written == "f8" else ""
    return doubles + KERNEL % {"source": TYPES[read][language], "target": to, "store": store, "widen": WIDEN if "widen" in value else ""}


# ---- the kernels of each device

_kernels: "dict[tuple[Any, str, str], Any]" = {}  # None: this device has no such kernel


def _kernel(device: Any, source: "np.dtype[Any]", target: "np.dtype[Any]") -> Any:
    key = (device, source.str, target.str)
    if key not in _kernels:  # without a lock: threads that come here at once may build the same kernel
        _kernels.setdefault(key, _build(device, source, target))
    return _kernels[key]


def _build(device: Any, source: "np.dtype[Any]", target: "np.dtype[Any]") -> Any:
    from ._compile import _plain, compile

    code = text(source, target, int(device.backend == "ze"))
    if code is None or not device.arch or not device.supports("module_load"):
        return None
    try:
        kernel = _core.Module(compile(code, backend=device.backend, arch=_plain(device.arch)), device)["gg_astype"]
        return kernel if _agrees(kernel, device, source, target) else None
    except (_core.Error, OSError, MemoryError):  # no compiler, a device without doubles, or no memory
        return None


def edges(dtype: "np.dtype[Any]") -> "np.ndarray[Any, Any]":
    """Elements of which a conversion may differ: limits, ties of rounding, subnormal numbers, NaN with any bits."""
    if dtype.kind == "b":
        return np.array([0, 1, 1, 0], dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        near = [limits.min, limits.max, limits.max // 2, limits.min // 2, 0, 1]
        near += [1 << bit for bit in range(dtype.itemsize * 8 - 1)]
        found = [value + more for value in near for more in (-3, -1, 0, 1, 3)]
        return np.array([value for value in found if limits.min <= value <= limits.max], dtype)
    size = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    whole, mantissa = size * 8, {4: 23, 8: 52}[size]
    top = (1 << whole - 1 - mantissa) - 1
    found = [sign << whole - 1 | exponent << mantissa | low for sign in (0, 1) for exponent in (0, 1, 2, top // 2, top - 1, top)
             for low in (0, 1, 5, 1 << mantissa - 1, (1 << mantissa) - 1, (1 << mantissa - 1) + 1)]
    return np.array(found, f"u{size}").view(dtype)


def _agrees(kernel: Any, device: Any, source: "np.dtype[Any]", target: "np.dtype[Any]") -> bool:
    host = edges(source)
    given, result = _core.to_gpu(host, device=device), _core.empty(host.size, target, device=device)
    _launch(kernel, given, result)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        expected = host.astype(target)
    return bool(result.get().tobytes() == expected.tobytes())


def _launch(kernel: Any, array: Any, result: Any) -> None:
    lanes = 2 if array.dtype.kind == "c" else 1
    count = array.size * lanes
    kernel(array, result, np.uint64(count), grid=-(-count // BLOCK), block=BLOCK)


def astype(array: Any, dtype: "np.dtype[Any]", order: "Literal['C', 'F', 'A', 'K']") -> Any:
    """The converted array, without waiting; None: the host has to do it."""
    if not recipe(array.dtype, dtype):
        return None
    kernel = _kernel(array.device, array.dtype, dtype)
    if kernel is None:
        return None
    result = _core.empty_like(array, dtype, order)
    if not _same_order(array, result):  # the axes in the order of the result, by the device's strided copies
        ordered = _core.empty_like(array, array.dtype, order)
        ordered.set(array)
        array = ordered
    _launch(kernel, array, result)
    return result


def _same_order(array: Any, result: Any) -> bool:
    """Whether both have their elements in the same order in memory, without gaps."""
    scaled = tuple(stride // array.itemsize * result.itemsize for stride in array.strides)
    return bool(array.flags.c_contiguous or array.flags.f_contiguous) and scaled == tuple(result.strides)
