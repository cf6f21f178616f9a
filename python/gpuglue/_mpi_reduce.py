"""Arithmetic of reductions with NumPy, which gives the results of core/comm/reduce.c."""

from typing import Any

import numpy as np

_FUNCTIONS: "dict[str, Any]" = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "avg": np.add}


def combine(parts: "list[Any]", dtype: str, op: str) -> Any:
    """Bytes of several ranks, combined in their order. Numbers of 16 bits are computed in 32, and rounded once."""
    function = _FUNCTIONS[op]
    with np.errstate(all="ignore"):
        if dtype not in ("float16", "bfloat16"):
            total = parts[0].view(dtype).copy()
            for part in parts[1:]:
                function(total, part.view(dtype), out=total)
            return _divided(total, op, len(parts)).view("u1")
        widen = _widen_bfloat16 if dtype == "bfloat16" else _widen_float16
        total = widen(parts[0])
        for part in parts[1:]:
            function(total, widen(part), out=total)
        total = _divided(total, op, len(parts))
        return (_narrow_bfloat16(total) if dtype == "bfloat16" else total.astype("f2")).view("u1")


def _divided(total: Any, op: str, count: int) -> Any:
    """A complex number in two parts."""
    if op == "avg":
        real = total.view(total.real.dtype)
        real /= real.dtype.type(count)
    return total


def _widen_float16(part: Any) -> Any:
    return part.view("f2").astype("f4")


def _widen_bfloat16(part: Any) -> Any:
    return (part.view("u2").astype("u4") << 16).view("f4")


def _narrow_bfloat16(total: Any) -> Any:
    """To the nearest, or to even; NaN stays NaN."""
    bits = total.view("u4")
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(total), bits >> 16 | 0x40, rounded).astype("u2")
