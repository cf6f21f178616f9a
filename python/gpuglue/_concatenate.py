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
    """Copy each directly: a ravel() would copy on the current stream, which `stream` does not wait for."""
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
    """Join arrays along an existing axis.

    Parameters
    ----------
    arrays : sequence of GPUArray
        Arrays of one dtype and one device, whose shapes differ in that axis only.
    axis : int or None, default 0
        The axis; None joins the arrays flattened.
    stream : stream, optional
        Stream on which the copies run. None is the current stream.

    Returns
    -------
    GPUArray
        A new array, in Fortran order if all are.

    Raises
    ------
    TypeError
        If the dtypes differ, or one is not a GPUArray.
    ValueError
        If there are no arrays, or their devices or shapes differ, or the axis does not exist.
    OutOfMemoryError
        If there is not enough device memory.

    See Also
    --------
    stack : Join along a new axis.

    Notes
    -----
    The arrays are copied on the device, one after the other; the call does not wait.

    Examples
    --------
    >>> gg.concatenate([gg.arange(2), gg.arange(3)]).get()
    array([0, 1, 0, 1, 2])
    """
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
    """Join arrays along a new axis.

    Parameters
    ----------
    arrays : sequence of GPUArray
        Arrays of one shape, one dtype and one device.
    axis : int, default 0
        The new axis.
    stream : stream, optional
        Stream on which the copies run. None is the current stream.

    Returns
    -------
    GPUArray
        A new array with one dimension more.

    Raises
    ------
    TypeError
        If the dtypes differ, or one is not a GPUArray.
    ValueError
        If there are no arrays, or their devices or shapes differ, or the axis does not exist.
    OutOfMemoryError
        If there is not enough device memory.

    See Also
    --------
    concatenate : Join along an existing axis.

    Examples
    --------
    >>> gg.stack([gg.arange(2), gg.arange(2)]).get()
    array([[0, 1],
           [0, 1]])
    """
    found = _checked(arrays)
    if any(array.shape != found[0].shape for array in found):
        raise ValueError("all input arrays must have the same shape")
    axis = _axis(axis, found[0].ndim + 1)
    where = (slice(None),) * axis + (None,)
    return concatenate([array[where] for array in found], axis, stream=stream)
