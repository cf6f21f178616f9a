"""Ordinary memory of the host at aligned addresses."""

import numpy as np

from ._errors import LogicError
from ._host_memory import order_of, shape_of


class AlignedHostAllocation:
    """The memory of aligned_empty() and similar functions: the base of their arrays.

    Parameters
    ----------
    array : ndarray
        Bytes at the aligned address.
    like : ndarray
        An array of the same form.

    Examples
    --------
    >>> isinstance(drv.aligned_empty(3, np.float64).base, drv.AlignedHostAllocation)
    True
    """

    def __init__(self, array, like):
        self._array = array
        self.__array_interface__ = dict(like.__array_interface__, data=(array.ctypes.data, False))

    def free(self):
        """Free the memory now. Arrays on it must not be used afterwards.

        Raises
        ------
        LogicError
            If it was already freed.

        Examples
        --------
        >>> drv.aligned_empty(3, np.float64).base.free()
        """
        array, self._array = self._array, None
        if array is None:
            raise LogicError("this memory was already freed")


def aligned_empty(shape, dtype, order="C", alignment=4096):
    """Make an array of the host at an aligned address.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    alignment : int, default 4096
        The address is a multiple of this number of bytes.

    Returns
    -------
    ndarray
        An uninitialised array. Its base is an AlignedHostAllocation.

    Examples
    --------
    >>> drv.aligned_empty(3, np.float64).ctypes.data % 4096
    0
    """
    shape, dtype = shape_of(shape), np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(nbytes + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    aligned = raw[start:start + nbytes]
    like = aligned.view(dtype).reshape(shape, order=order)
    return np.asarray(AlignedHostAllocation(aligned, like)) if nbytes and not dtype.hasobject else like


def aligned_zeros(shape, dtype, order="C", alignment=4096):
    """Make an array of zeros of the host at an aligned address.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    alignment : int, default 4096
        The address is a multiple of this number of bytes.

    Returns
    -------
    ndarray
        An array of zeros.

    Examples
    --------
    >>> drv.aligned_zeros(3, np.float64)
    array([0., 0., 0.])
    """
    array = aligned_empty(shape, dtype, order, alignment)
    array.fill(0)
    return array


def aligned_empty_like(array, alignment=4096):
    """Make an array of the form of another at an aligned address.

    Parameters
    ----------
    array : ndarray
        The other array.
    alignment : int, default 4096
        The address is a multiple of this number of bytes.

    Returns
    -------
    ndarray
        An uninitialised array.

    Examples
    --------
    >>> drv.aligned_empty_like(np.zeros(3)).shape
    (3,)
    """
    return aligned_empty(array.shape, array.dtype, order_of(array), alignment)


def aligned_zeros_like(array, alignment=4096):
    """Make an array of zeros of the form of another at an aligned address.

    Parameters
    ----------
    array : ndarray
        The other array.
    alignment : int, default 4096
        The address is a multiple of this number of bytes.

    Returns
    -------
    ndarray
        An array of zeros.

    Examples
    --------
    >>> drv.aligned_zeros_like(np.ones(3))
    array([0., 0., 0.])
    """
    return aligned_zeros(array.shape, array.dtype, order_of(array), alignment)
