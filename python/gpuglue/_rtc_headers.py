"""C headers that sources include and that NVRTC and HIPRTC lack. Most of their declarations are built into these
compilers; the rest is here."""

MATH = ("sqrt fabs abs pow exp exp2 log log2 log10 log1p expm1 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh "
        "atanh ceil floor round trunc rint nearbyint lround llround lrint fmod remainder fmin fmax fma hypot cbrt erf erfc "
        "tgamma lgamma ldexp frexp modf scalbn ilogb logb copysign nextafter fdim isnan isinf isfinite signbit")
WIDTHS = {"int8_t": "signed char", "uint8_t": "unsigned char", "int16_t": "short", "uint16_t": "unsigned short",
          "int32_t": "int", "uint32_t": "unsigned int", "int64_t": "long long", "uint64_t": "unsigned long long"}
INTEGERS = {**WIDTHS, **{name.replace("int", f"int_{kind}"): text for kind in ("least", "fast")
                         for name, text in WIDTHS.items()},
            "uintptr_t": "unsigned long long", "intptr_t": "long long", "intmax_t": "long long",
            "uintmax_t": "unsigned long long"}


def _header(text, names="", macros=()):
    """A header with macros, and with names of the global namespace that are in std, too."""
    lines = ["#pragma once", text, *(f"#ifndef {name.partition('(')[0]}\n#define {name} {value}\n#endif" for name, value in dict(macros).items())]
    if names:  # HIPRTC has its own std
        lines += ["#ifndef __HIPCC_RTC__", "namespace std {", *(f"using ::{name};" for name in names.split()), "}", "#endif"]
    return "\n".join(lines) + "\n"


def _integer_macros():
    yield from (("INT8_C(x)", "x"), ("INT16_C(x)", "x"), ("INT32_C(x)", "x"), ("INT64_C(x)", "x##ll"),
                ("UINT8_C(x)", "x"), ("UINT16_C(x)", "x"), ("UINT32_C(x)", "x##u"), ("UINT64_C(x)", "x##ull"))
    for bits, suffix in ((8, ""), (16, ""), (32, ""), (64, "ll")):
        top = f"{2 ** (bits - 1) - 1}{suffix}"
        yield from ((f"INT{bits}_MAX", top), (f"INT{bits}_MIN", f"(-{top} - 1)"),
                    (f"UINT{bits}_MAX", f"{2 ** bits - 1}{'u' if bits == 32 else 'ull' if bits == 64 else ''}"))
    yield from (("INTPTR_MAX", "INT64_MAX"), ("UINTPTR_MAX", "UINT64_MAX"), ("SIZE_MAX", "18446744073709551615ul"))


LIMITS = {
    "CHAR_BIT": 8, "SCHAR_MAX": 127, "SCHAR_MIN": -128, "UCHAR_MAX": 255, "CHAR_MAX": 127, "CHAR_MIN": -128, "SHRT_MAX": 32767,
    "SHRT_MIN": -32768, "USHRT_MAX": 65535, "INT_MAX": 2147483647, "INT_MIN": "(-2147483647 - 1)", "UINT_MAX": "4294967295u",
    "LONG_MAX": "9223372036854775807l", "LONG_MIN": "(-9223372036854775807l - 1)", "ULONG_MAX": "18446744073709551615ul",
    "LLONG_MAX": "9223372036854775807ll", "LLONG_MIN": "(-9223372036854775807ll - 1)",
    "ULLONG_MAX": "18446744073709551615ull"}
FLOATS = {
    "FLT_RADIX": 2, "FLT_DIG": 6, "FLT_MANT_DIG": 24, "FLT_MIN_EXP": -125, "FLT_MAX_EXP": 128, "FLT_MIN_10_EXP": -37,
    "FLT_MAX_10_EXP": 38, "FLT_MAX": "3.402823466e+38f", "FLT_MIN": "1.175494351e-38f", "FLT_EPSILON": "1.192092896e-07f",
    "FLT_TRUE_MIN": "1.401298464e-45f", "DBL_DIG": 15, "DBL_MANT_DIG": 53, "DBL_MIN_EXP": -1021, "DBL_MAX_EXP": 1024,
    "DBL_MIN_10_EXP": -307, "DBL_MAX_10_EXP": 308, "DBL_MAX": "1.7976931348623157e+308", "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16", "DBL_TRUE_MIN": "4.9406564584124654e-324"}
CONSTANTS = {
    "M_E": "2.7182818284590452354", "M_LOG2E": "1.4426950408889634074", "M_LOG10E": "0.43429448190325182765",
    "M_LN2": "0.69314718055994530942", "M_LN10": "2.30258509299404568402", "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923", "M_PI_4": "0.78539816339744830962", "M_1_PI": "0.31830988618379067154",
    "M_2_PI": "0.63661977236758134308", "M_2_SQRTPI": "1.12837916709551257390", "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440", "INFINITY": "__int_as_float(0x7f800000)", "NAN": "__int_as_float(0x7fffffff)",
    "HUGE_VALF": "INFINITY", "HUGE_VAL": "((double)INFINITY)"}
TYPES = "\n".join(f"typedef {text} {name};" for name, text in INTEGERS.items())

EMPTY = ("stdio.h", "cstdio", "stdbool.h", "cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h",
         "hip/hip_runtime.h", "assert.h", "cassert", "stdlib.h", "string.h", "time.h")
HEADERS = {
    **dict.fromkeys(EMPTY, "#pragma once\n"),
    "stdint.h": _header(TYPES, "", _integer_macros()),
    "cstdint": _header("#include <stdint.h>", " ".join(INTEGERS)),
    "limits.h": _header("", "", LIMITS), "climits": _header("", "", LIMITS),
    "float.h": _header("", "", FLOATS), "cfloat": _header("", "", FLOATS),
    "math.h": _header("", "", CONSTANTS), "cmath": _header("#include <math.h>", MATH),
    # NVRTC 13.0 has no __builtin_offsetof.
    "stddef.h": _header("", "", {"offsetof(type, member)": "((size_t)&((type *)0)->member)"}),
    "cstddef": _header("#include <stddef.h>", "size_t ptrdiff_t"),
    "cstring": _header("", "size_t memcpy memset"), "cstdlib": _header("", "size_t abs labs llabs malloc free"),
    "ctime": _header("", "clock clock_t"),
}


def _since_6(what):
    """HIPRTC includes it since that version."""
    return f"#pragma once\n#if HIP_VERSION_MAJOR < 6\n#error {what} need HIPRTC 6 or newer\n#endif\n"


def _renamed(what, names):
    """A header whose names, with cu, are built into HIPRTC with hip."""
    return _since_6(what) + "\n".join(f"#define {name.format('cu')} {name.format('hip')}" for name in names.split()) + "\n"


# CUDA's headers whose contents are built into HIPRTC. NVRTC finds those of the toolkit.
HIP_HEADERS = {
    "cuda_fp16.h": "#pragma once\n", "cooperative_groups.h": _since_6("cooperative groups"),
    "cuComplex.h": _renamed(
        "complex numbers", "{}FloatComplex {}DoubleComplex {}Complex make_{}FloatComplex make_{}DoubleComplex make_{}Complex {}ComplexFloatToDouble "
        "{}ComplexDoubleToFloat " + " ".join(f"{{}}C{name}{kind}" for kind in ("f", "") for name in
                                             "real imag onj add sub mul div fma abs".split())),
}
