"""pycuda.gpuarray: arrays on the device, the functions that create them, and those that compute."""

import builtins

import numpy as np

from gpuglue import _core

from . import _memory, driver
from ._array import GPUArray
from ._functions import (
    if_positive, logical_and, logical_not, logical_or, maximum, minimum, take, transpose, where)
from ._layouts import phantom
from ._missing import refusing
from ._reductions import all, any, dot, max, min, subset_dot, subset_max, subset_min, subset_sum, sum
from ._vectors import vec

__all__ = [
    "GPUArray", "all", "any", "arange", "concatenate", "dot", "empty", "empty_like", "if_positive", "logical_and", "logical_not",
    "logical_or", "max", "maximum", "min", "minimum", "ones", "ones_like", "stack", "subset_dot", "subset_max", "subset_min",
    "subset_sum", "sum", "take", "to_gpu", "to_gpu_async", "transpose", "vec", "where", "zeros", "zeros_like"]

# ---- creation


def to_gpu(ary, allocator=driver.mem_alloc):
    """Copy an array of the host to a new array.

    Parameters
    ----------
    ary : array_like
        The source, in any order.
    allocator : function, default driver.mem_alloc
        Called with a number of bytes; returns the memory.

    Returns
    -------
    GPUArray
        A copy in the same order.

    Examples
    --------
    >>> gpuarray.to_gpu(np.arange(3)).get()
    array([0, 1, 2])
    """
    ary = np.asarray(ary)
    if not ary.flags.forc:
        ary = ary.copy(order="K")
    result = GPUArray(ary.shape, ary.dtype, allocator, strides=_compact(ary))
    result.set(ary)
    return result


def _compact(ary):
    return ary.strides if ary.flags.forc else None


def to_gpu_async(ary, allocator=driver.mem_alloc, stream=None):
    """Queue a copy of an array of the host to a new array.

    Parameters
    ----------
    ary : array_like
        The source, contiguous. If it is page-locked, do not write to it before the copy has run.
    allocator : function, default driver.mem_alloc
        Called with a number of bytes; returns the memory.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The array.

    Examples
    --------
    >>> stream = drv.Stream()
    >>> a = gpuarray.to_gpu_async(np.arange(3), stream=stream)
    >>> stream.synchronize()
    """
    ary = np.asarray(ary)
    result = GPUArray(ary.shape, ary.dtype, allocator, strides=_compact(ary))
    result.set_async(ary, stream)
    return result


def empty(shape, dtype=np.float64, allocator=driver.mem_alloc, order="C"):
    """Allocate an array without initialising it.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype, default numpy.float64
        Type of the elements.
    allocator : function, default driver.mem_alloc
        Called with a number of bytes; returns the memory.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.

    Returns
    -------
    GPUArray
        An uninitialised array.

    Examples
    --------
    >>> gpuarray.empty((2, 3), np.float32).nbytes
    24
    """
    return GPUArray(shape, dtype, allocator, order=order)


def zeros(shape, dtype=np.float64, allocator=driver.mem_alloc, order="C"):
    """Make an array of zeros.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype, default numpy.float64
        Type of the elements.
    allocator : function, default driver.mem_alloc
        Called with a number of bytes; returns the memory.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.

    Returns
    -------
    GPUArray
        An array of zeros.

    Examples
    --------
    >>> gpuarray.zeros(3).get()
    array([0., 0., 0.])
    """
    return empty(shape, dtype, allocator, order).fill(np.zeros((), dtype))


def ones(shape, dtype=np.float64, allocator=driver.mem_alloc, order="C"):
    """Make an array of ones.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype, default numpy.float64
        Type of the elements.
    allocator : function, default driver.mem_alloc
        Called with a number of bytes; returns the memory.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.

    Returns
    -------
    GPUArray
        An array of ones.

    Examples
    --------
    >>> gpuarray.ones(3).get()
    array([1., 1., 1.])
    """
    return empty(shape, dtype, allocator, order).fill(np.ones((), dtype))


def empty_like(other_ary, dtype=None, order="K"):
    """Allocate an array of the form of another.

    Parameters
    ----------
    other_ary : GPUArray or ndarray
        The other array. Only its form is used.
    dtype : dtype, optional
        Type of the elements. None is that of the other.
    order : {'C', 'F', 'A', 'K'}, default 'K'
        Order of the axes in memory. 'K' is that of the other.

    Returns
    -------
    GPUArray
        An uninitialised array.

    Examples
    --------
    >>> gpuarray.empty_like(gpuarray.zeros((2, 3))).shape
    (2, 3)
    """
    dtype = np.dtype(other_ary.dtype if dtype is None else dtype)
    allocator = getattr(other_ary, "allocator", driver.mem_alloc)
    fortran = other_ary.flags.f_contiguous and not other_ary.flags.c_contiguous
    if order == "K" and not other_ary.flags.forc:
        like = np.empty_like(phantom(other_ary.shape, np.int8, tuple(s // other_ary.itemsize for s in other_ary.strides)),
                             subok=False, order="K")
        return GPUArray(other_ary.shape, dtype, allocator, strides=tuple(s * dtype.itemsize for s in like.strides))
    if order in ("A", "K"):
        order = "F" if fortran else "C"
    return GPUArray(other_ary.shape, dtype, allocator, order=order)


def zeros_like(other_ary, dtype=None, order="K"):
    """Make an array of zeros of the form of another.

    Parameters
    ----------
    other_ary : GPUArray or ndarray
        The other array. Only its form is used.
    dtype : dtype, optional
        Type of the elements. None is that of the other.
    order : {'C', 'F', 'A', 'K'}, default 'K'
        Order of the axes in memory. 'K' is that of the other.

    Returns
    -------
    GPUArray
        An array of zeros.

    Examples
    --------
    >>> gpuarray.zeros_like(np.ones(3)).get()
    array([0., 0., 0.])
    """
    return _filled(empty_like(other_ary, dtype, order), 0)


def ones_like(other_ary, dtype=None, order="K"):
    """Make an array of ones of the form of another.

    Parameters
    ----------
    other_ary : GPUArray or ndarray
        The other array. Only its form is used.
    dtype : dtype, optional
        Type of the elements. None is that of the other.
    order : {'C', 'F', 'A', 'K'}, default 'K'
        Order of the axes in memory. 'K' is that of the other.

    Returns
    -------
    GPUArray
        An array of ones.

    Examples
    --------
    >>> gpuarray.ones_like(np.zeros(3)).get()
    array([1., 1., 1.])
    """
    return _filled(empty_like(other_ary, dtype, order), 1)


def _filled(array, value):
    """Fill a contiguous array, in any order of its axes, as one block."""
    if array.size:
        buffer, offset = _memory.locate(array.gpudata, array.nbytes)
        _core._fill_bytes(buffer, offset, np.array(value, array.dtype).tobytes(), array.size, None)
    return array


def arange(*args, dtype=None, **kwargs):
    """Make an array of evenly spaced numbers, which NumPy computes on the host.

    Parameters
    ----------
    *args : number
        Start, stop and step, as of numpy.arange.
    dtype : dtype, optional
        Type of the elements. None is what NumPy chooses.
    **kwargs : object
        Further arguments of numpy.arange.

    Returns
    -------
    GPUArray
        One dimension.

    Examples
    --------
    >>> gpuarray.arange(2, 10, 3).get()
    array([2, 5, 8])
    """
    return to_gpu(np.arange(*args, dtype=dtype, **kwargs))


def stack(arrays, axis=0, allocator=None):
    """Join arrays along a new axis, by way of the host.

    Parameters
    ----------
    arrays : sequence of GPUArray
        Arrays of one shape and dtype.
    axis : int, default 0
        The new axis; -1 is the last.
    allocator : function, optional
        Called with a number of bytes; returns the memory. None is that of the first array.

    Returns
    -------
    GPUArray
        A new array.

    Raises
    ------
    ValueError
        If shapes or dtypes differ, or the axis does not exist.

    Examples
    --------
    >>> gpuarray.stack([gpuarray.arange(2), gpuarray.arange(2)]).shape
    (2, 2)
    """
    arrays = list(arrays)
    axis = arrays[0].ndim if axis == -1 else axis
    if builtins.any(array.shape != arrays[0].shape for array in arrays):
        raise ValueError("arrays must have the same shapes")
    if not 0 <= axis <= arrays[0].ndim:
        raise ValueError(f"axis {axis} is out of bounds for a result of {arrays[0].ndim + 1} dimensions")
    return _joined([array[(slice(None),) * axis + (None,)] for array in arrays], axis, allocator)


def concatenate(arrays, axis=0, allocator=None):
    """Join arrays along an existing axis, by way of the host.

    Parameters
    ----------
    arrays : sequence of GPUArray
        Arrays of one dtype, whose shapes differ in that axis only.
    axis : int, default 0
        The axis.
    allocator : function, optional
        Called with a number of bytes; returns the memory. None is that of the first array.

    Returns
    -------
    GPUArray
        A new array.

    Examples
    --------
    >>> gpuarray.concatenate([gpuarray.arange(2), gpuarray.arange(2)]).get()
    array([0, 1, 0, 1])
    """
    return _joined(list(arrays), axis, allocator)


def _joined(arrays, axis, allocator):
    if builtins.any(array.dtype != arrays[0].dtype for array in arrays):
        raise ValueError("arrays must have the same dtype")
    return to_gpu(np.concatenate([array.get() for array in arrays], axis), allocator or arrays[0].allocator)


__getattr__ = refusing(__name__)
