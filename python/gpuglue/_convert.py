"""astype on the device, by kernels that compile() builds, bit for bit as NumPy. Where NumPy could warn, or its result depends on the
processor, the kernel reports the elements concerned, and NumPy converts on the host. The first use of each kernel on a device is
compared with NumPy."""

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np

from . import _core

BLOCK, EACH = 256, 4  # threads of a block, elements of a thread
# (CUDA C++, OpenCL C) of the numbers that a dtype consists of; float16 by its bits
TYPES = {
    "i1": ("signed char", "char"), "i2": ("short", "short"), "i4": ("int", "int"), "i8": ("long long", "long"),
    "u1": ("unsigned char", "uchar"), "u2": ("unsigned short", "ushort"), "u4": ("unsigned int", "uint"),
    "u8": ("unsigned long long", "ulong"), "f4": ("float", "float"), "f8": ("double", "double"), "b1": ("unsigned char", "uchar"),
    "f2": ("unsigned short", "ushort"),
}
WHOLE = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
PARTS = {"c8": "f4", "c16": "f8"}
# By bits: units without subnormal numbers or with one NaN must not change a result.
FUNCTIONS = {
    "gg_widen": """
INLINE double gg_widen(unsigned int x)
{
    WORD sign = (WORD)(x >> 31) << 63, low = x & 0x7fffffu;
    unsigned int exponent = x >> 23 & 255;
    gg_double out;
    if (exponent == 255)
        out.bits = (WORD)0x7ff << 52 | low << 29 | (low ? (WORD)WIDE_QUIET << 51 : 0);
    else if (exponent == 0)
        out.value = (double)low * 1.40129846432481707092372958328991613e-45;
    else
        out.bits = (WORD)(exponent + 896) << 52 | low << 29;
    out.bits = (out.bits & ~((WORD)1 << 63)) | sign;
    return out.value;
}
""",
    "gg_odd": """
/* The bits of a float for gg_to_half: the last one also stands for all that are cut off. */
INLINE unsigned int gg_odd(WORD x)
{
    unsigned int sign = (unsigned int)(x >> 32) & 0x80000000u, cut = (x & 0x1fffffffu) != 0;
    int exponent = (int)(x >> 52 & 2047) - 896;
    unsigned int low = (unsigned int)(x >> 29) & 0x7fffffu;
    if (exponent >= 2047 - 896)
        return sign | 0x7f800000u | low | (low ? 0 : cut);
    if (exponent >= 255)
        return sign | 0x7f7fffffu;
    return exponent <= 0 ? sign | ((x << 1) != 0) : sign | (unsigned int)exponent << 23 | low | cut;
}
""",
    "gg_to_half": """
INLINE unsigned short gg_to_half(unsigned int x, GLOBAL unsigned int *found)
{
    unsigned int sign = x >> 16 & 0x8000u, a = x & 0x7fffffffu, shift, low, h;
    if (a > 0x7f800000u) {
        if (!(a & 0x400000u))
            found[0] = 1;
        return (unsigned short)(sign | 0x7c00u | (a >> 13 & 0x3ffu));
    }
    if (a >= 0x38800000u) {
        h = a >= 0x47800000u ? 0x7c00u : ((a + 0xfffu + (a >> 13 & 1u)) >> 13) - (112u << 10);
        if (h == 0x7c00u && a != 0x7f800000u)
            found[1] = 1;
        return (unsigned short)(sign | h);
    }
    shift = 126u - (a >> 23);
    if (shift > 24u) {
        if (a)
            found[2] = 1;
        return (unsigned short)sign;
    }
    a = (a & 0x7fffffu) | 0x800000u;
    low = a << (32u - shift);
    h = a >> shift;
    if (low)
        found[2] = 1;
    return (unsigned short)(sign | (h + (low > 0x80000000u || (low == 0x80000000u && (h & 1u)))));
}
""",
    "gg_half": """
INLINE unsigned int gg_half(unsigned int x)
{
    unsigned int sign = (x & 0x8000u) << 16, low = x & 0x3ffu, exponent = x >> 10 & 31u;
    if (exponent == 31u)
        return sign | 0x7f800000u | low << 13 | (low ? QUIET << 22 : 0u);
    if (exponent)
        return sign | (exponent + 112u) << 23 | low << 13;
    if (!low)
        return sign;
    for (exponent = 113u; !(low & 0x400u); exponent--)
        low <<= 1;
    return sign | exponent << 23 | (low & 0x3ffu) << 13;
}
""",
    "gg_narrow": """
INLINE unsigned int gg_narrow(WORD x, GLOBAL unsigned int *found)
{
    gg_double in;
    gg_float out;
    unsigned int size;
    in.bits = x;
    if ((x << 1) > (WORD)0x7ff << 53) {
        if (!(x >> 51 & 1))
            found[0] = 1;
        return ((unsigned int)(x >> 32) & 0x80000000u) | 0x7f800000u | ((unsigned int)(x >> 29) & 0x7fffffu);
    }
    out.value = (float)in.value;
    size = out.bits & 0x7fffffffu;
    if (size == 0x7f800000u && (x << 1) != (WORD)0x7ff << 53)
        found[1] = 1;
    if (size <= 0x800000u && (double)out.value != in.value)
        found[2] = 1;
    return out.bits;
}
""",
    "gg_value": """
INLINE float gg_value(unsigned int x)
{
    gg_float out;
    out.bits = x;
    return out.value;
}
""",
    "gg_bits": """
INLINE unsigned int gg_bits(float x)
{
    gg_float out;
    out.value = x;
    return out.bits;
}
""",
}
KERNEL = """
#ifdef __OPENCL_C_VERSION__
#define KERNEL kernel void
#define GLOBAL global
#define INLINE static inline
#define WORD ulong
#define FIRST (get_group_id(0) * get_local_size(0) * %(each)d + get_local_id(0))
#define STEP get_local_size(0)
#ifdef DOUBLES
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#else
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define INLINE static __device__ inline
#define WORD unsigned long long
#define FIRST ((WORD)blockIdx.x * blockDim.x * %(each)d + threadIdx.x)
#define STEP blockDim.x
#endif
#ifdef DOUBLES
typedef union { WORD bits; double value; } gg_double;
#endif
typedef union { unsigned int bits; float value; } gg_float;
%(functions)s
KERNEL gg_astype(GLOBAL const %(source)s *from, GLOBAL %(target)s *to, WORD count%(parameter)s)
{
    WORD i = FIRST;
    int turn;
    for (turn = 0; turn < %(each)d && i < count; turn++, i += STEP) {
        %(source)s x = from[%(lanes)si];
        %(store)s
    }
}
"""
COMPLEX_WARNING = "Casting complex values to real discards the imaginary part"


class Recipe(NamedTuple):
    """How one dtype becomes another."""

    read: str  # the type of the numbers read
    written: str
    value: str  # of x
    reads: int = 1  # numbers of an element
    writes: int = 1
    low: str = ""  # x must be in the range; "": any
    high: str = ""
    checked: bool = False  # the kernel reports elements for which NumPy may warn
    warns: bool = False  # NumPy always warns
    lanes: int = 1  # numbers of an element that are converted alike


def _name(dtype: "np.dtype[Any]") -> str:
    return f"{dtype.kind}{dtype.itemsize}" if dtype.isnative and dtype.names is None and dtype.subdtype is None else ""


def _range(bits: int, target: str) -> "tuple[str, str]":
    """The smallest condition and the largest on a float with so many bits that a whole number of type `target` holds."""
    limits = np.iinfo(target)
    size, suffix = 8 * int(target[1]), "f" if bits < 53 else ""
    low = "-1.0" if limits.min == 0 else f"{limits.min}.0" if size > bits else f"{limits.min - 1}.0"
    return (">= " if limits.min and size > bits else "> ") + low + suffix, f"< {limits.max + 1}.0{suffix}"


def _to_whole(s: str, t: str) -> Recipe:
    low, high = _range(53 if s == "f8" else 24, t)
    if s == "f2":
        return Recipe("f2", t, "gg_value(gg_half(x))", low=low, high=high, checked=True)
    return Recipe(s, t, "x", low=low, high=high, checked=True)


def _between_floats(s: str, t: str) -> Recipe:
    bits = "f2" if s == "f2" else "u" + s[1]
    if s == t:
        return Recipe(bits, "f2" if t == "f2" else "u" + t[1], "x")
    if t == "f8":
        return Recipe(bits, t, "gg_widen(x)" if s == "f4" else "gg_widen(gg_half(x))")
    if s == "f2":
        return Recipe(bits, "u4", "gg_half(x)")
    if t == "f4":
        return Recipe(bits, "u4", "gg_narrow(x, found)", checked=True)
    return Recipe(bits, "f2", f"gg_to_half({'x' if s == 'f4' else 'gg_odd(x)'}, found)", checked=True)


def _numbers(s: str, t: str) -> "Recipe | None":
    """For real numbers."""
    if s not in TYPES or t not in TYPES:
        return None
    if s in WHOLE:
        value = "(x != 0)" if s == "b1" or t == "b1" else "x"
        if t == "f2":
            return Recipe(s, t, f"gg_to_half(gg_bits((float){value}), found)", checked=s != "b1" and np.iinfo(s).max >= 65520)
        return Recipe(s, t, value)
    if t == "b1":  # also true for subnormal numbers and NaN
        return Recipe("f2", t, "((x & 0x7fffu) != 0)") if s == "f2" else Recipe("u" + s[1], t, "((x << 1) != 0)")
    return _to_whole(s, t) if t in WHOLE else _between_floats(s, t)


def recipe(source: "np.dtype[Any]", target: "np.dtype[Any]") -> "Recipe | None":
    """None: NumPy converts on the host."""
    s, t = _name(source), _name(target)
    found = _numbers(PARTS.get(s, s), PARTS.get(t, t))
    if not found or s == t:
        return None
    if s in PARTS and t in PARTS:
        return found._replace(lanes=2)
    if s in PARTS and t == "b1":
        return found._replace(reads=2, value="((x << 1) != 0 || (from[2 * i + 1] << 1) != 0)")
    return found._replace(reads=2, warns=True) if s in PARTS else found._replace(writes=2 if t in PARTS else 1)


def _quiet(target: str) -> int:
    """Whether NumPy here makes signalling NaN of float16 quiet, which depends on the processor and on the result."""
    with np.errstate(invalid="ignore"):
        made = np.array([0x7C01], "u2").view("f2").astype(target)
    return int(made.view(f"u{made.itemsize}")[0]) >> (22 if target == "f4" else 51) & 1


def text(source: "np.dtype[Any]", target: "np.dtype[Any]", language: int) -> "str | None":
    """The kernel, in CUDA C++ (0) or OpenCL C (1)."""
    found = recipe(source, target)
    if not found:
        return None
    to = TYPES[found.written][language]
    place = "to[2 * i]" if found.writes == 2 else "to[i]"
    store = f"{place} = ({to})({found.value});"
    if found.low:
        number = "double" if found.read == "f8" else "float"
        store = (f"{number} y = {found.value};\n        if (y {found.low} && y {found.high})\n            {place} = ({to})y;\n"
                 "        else\n            found[0] = 1;")  # fmt: skip
    if found.writes == 2:
        store += "\n        to[2 * i + 1] = 0;"
    head = f"#define QUIET {_quiet('f8' if found.written == 'f8' else 'f4')}u\n#define WIDE_QUIET {int(found.read != 'f2')}\n"
    if "f8" in (found.read, found.written) or "gg_narrow(" in found.value:
        head += "#define DOUBLES\n"
    given = ", GLOBAL unsigned int *found" if "found" in store else ""
    functions = "".join(code for name, code in FUNCTIONS.items() if f"{name}(" in found.value)
    return head + KERNEL % {"source": TYPES[found.read][language], "target": to, "store": store, "each": EACH, "parameter": given,
                            "functions": functions, "lanes": "2 * " if found.reads == 2 else ""}


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
        near = [limits.min, limits.max, limits.max // 2, limits.min // 2, 0, 1, 65504, 65519, 65520]
        near += [1 << bit for bit in range(dtype.itemsize * 8 - 1)]
        found = [value + more for value in near for more in (-3, -1, 0, 1, 3)]
        return np.array([value for value in found if limits.min <= value <= limits.max], dtype)
    size = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    whole, mantissa = size * 8, {2: 10, 4: 23, 8: 52}[size]
    top = (1 << whole - 1 - mantissa) - 1
    ties = {1 << mantissa - kept for kept in (1, 2, 8, 11, 12, 24, 25) if kept <= mantissa}
    ties |= {tie - 1 for tie in ties} | {3 * tie >> 1 for tie in ties}
    lows = sorted({0, 1, 5, (1 << mantissa) - 1, (1 << mantissa - 1) + 1} | ties)
    found = [sign << whole - 1 | exponent << mantissa | low for sign in (0, 1) for exponent in range(top + 1) for low in lows]
    return np.array(found, f"u{size}").view(dtype)


def plain(host: "np.ndarray[Any, Any]", target: "np.dtype[Any]") -> "np.ndarray[Any, Any]":
    """Which elements a checked kernel converts: those in range, without signalling NaN."""
    part = host.real if target.kind != "c" else host
    numbers = part.view(f"f{part.dtype.itemsize // 2}") if part.dtype.kind == "c" else part
    if numbers.dtype.kind != "f":
        good = np.ones(numbers.shape, bool)
    elif target.kind in "iu":
        with np.errstate(all="ignore"):
            whole, limits = np.trunc(numbers.astype("f8")), np.iinfo(target)
            good = (whole >= limits.min) & (whole < float(limits.max + 1))
    else:
        size = numbers.dtype.itemsize
        bits = np.ascontiguousarray(numbers).view(f"u{size}")
        good = ~np.isnan(numbers) | (bits >> np.array({2: 9, 4: 22, 8: 51}[size], bits.dtype) & 1).astype(bool)
    return np.asarray(good.reshape(host.shape + (-1,)).all(axis=-1))


def _agrees(kernel: Any, device: Any, source: "np.dtype[Any]", target: "np.dtype[Any]") -> bool:
    found, host = recipe(source, target), edges(source)
    assert found
    good = plain(host, target) if found.checked else np.ones(host.shape, bool)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = host[good].astype(target)
    given, result = _core.to_gpu(host[good], device=device), _core.empty(expected.size, target, device=device)
    reports = _launch(kernel, given, result)
    if result.get().tobytes() != expected.tobytes() or (found.checked and reports.get()[0]):
        return False
    rest = host[~good]
    return not rest.size or bool(_launch(kernel, _core.to_gpu(rest, device=device), _core.empty(rest.size, target, device=device)).get()[0])


def _launch(kernel: Any, array: Any, result: Any) -> Any:
    """What the kernel found (whether elements have no result of the device's, overflow, underflow), if it reports that."""
    found = recipe(array.dtype, result.dtype)
    assert found
    count = array.size * found.lanes
    reports = [_core.zeros(3, np.uint32, device=array.device)] if "found" in found.value or found.low else []
    kernel(array, result, np.uint64(count), *reports, grid=-(-count // (BLOCK * EACH)), block=BLOCK)
    return reports[0] if found.checked else None


def _leave_to_numpy(reports: Any) -> bool:
    """Waits for the kernel."""
    undefined, over, under = reports.get()
    modes = np.geterr()
    return bool(undefined or (over and modes["over"] != "ignore") or (under and modes["under"] != "ignore"))


def astype(array: Any, dtype: "np.dtype[Any]", order: "Literal['C', 'F', 'A', 'K']") -> Any:
    """The converted array, without waiting if NumPy could not warn; None: the host has to do it."""
    found = recipe(array.dtype, dtype)
    kernel = _kernel(array.device, array.dtype, dtype) if found else None
    if not found or kernel is None:
        return None
    result = _core.empty_like(array, dtype, order)
    if not _same_order(array, result):  # the axes in the order of the result, by the device's strided copies
        ordered = _core.empty_like(array, array.dtype, order)
        ordered.set(array)
        array = ordered
    reports = _launch(kernel, array, result)
    if found.checked and _leave_to_numpy(reports):
        return None
    if found.warns:
        warnings.warn(COMPLEX_WARNING, getattr(np, "exceptions", np).ComplexWarning, stacklevel=2)
    return result


def _same_order(array: Any, result: Any) -> bool:
    """Whether both have their elements in the same order in memory, without gaps."""
    scaled = tuple(stride // array.itemsize * result.itemsize for stride in array.strides)
    return bool(array.flags.c_contiguous or array.flags.f_contiguous) and scaled == tuple(result.strides)
