"""stack and concatenate: new arrays from old ones, by copies on the device."""

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from . import _core

_AxisError = getattr(np, "exceptions", np).AxisError


def _checked(arrays: Any) -> "list[_core.GPUArray]":
    found = list(arrays)
    for array in found:
        if not isinstance(array, _core.GPUArray):
            raise TypeError(f"expected GPUArrays to join, got {type(array)!r}: wrap it with asarray()")
    if not found:
        raise ValueError("need at least one array to join")
    for array in found[1:]:
        if array.dtype != found[0].dtype:
            raise TypeError(f"the dtypes differ: {found[0].dtype} and {array.dtype}; convert with astype")
        if array.device != found[0].device:
            raise ValueError(f"the devices differ: {found[0].device} and {array.device}; use to_device")
    return found


def _axis(axis: int, ndim: int) -> int:
    axis = index(axis)
    if not -ndim <= axis < ndim:
        raise _AxisError(axis, ndim)
    return axis % ndim


def _flattened(found: "list[_core.GPUArray]", stream: Any) -> "_core.GPUArray":
    """Straight to where they belong: a ravel() would copy on the current stream, which stream does not wait for."""
    size = sum(array.size for array in found)
    result = _core.empty(size, found[0].dtype, "C", found[0].device, stream)
    at = 0
    for array in found:
        result[at : at + array.size].reshape(array.shape).set(array, stream)
        at += array.size
    return result


def concatenate(
    arrays: "Sequence[_core.GPUArray]", axis: "int | None" = 0, *, stream: Any = None
) -> "_core.GPUArray":
    """Join arrays of one dtype and device along an axis that they have; axis=None joins them flattened."""
    found = _checked(arrays)
    if axis is None:
        return _flattened(found, stream)
    first = found[0]
    if not first.ndim:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis = _axis(axis, first.ndim)
    for array in found:
        if array.ndim != first.ndim or any(
            a != b for i, (a, b) in enumerate(zip(array.shape, first.shape)) if i != axis
        ):
            raise ValueError(f"the shapes {first.shape} and {array.shape} differ in more than axis {axis}")
    shape = list(first.shape)
    shape[axis] = sum(array.shape[axis] for array in found)
    fortran = all(array.flags.fnc for array in found)
    result = _core.empty(tuple(shape), first.dtype, "F" if fortran else "C", first.device, stream)
    at = 0
    for array in found:
        part = (slice(None),) * axis + (slice(at, at + array.shape[axis]),)
        result[part].set(array, stream)
        at += array.shape[axis]
    return result


def stack(arrays: "Sequence[_core.GPUArray]", axis: int = 0, *, stream: Any = None) -> "_core.GPUArray":
    """Join arrays of one shape, dtype and device along a new axis."""
    found = _checked(arrays)
    if any(array.shape != found[0].shape for array in found):
        raise ValueError("all input arrays must have the same shape")
    axis = _axis(axis, found[0].ndim + 1)
    where = (slice(None),) * axis + (None,)
    return concatenate([array[where] for array in found], axis, stream=stream)
