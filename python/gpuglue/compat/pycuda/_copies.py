"""Copies between the host and devices, and between devices."""

import numpy as np

from gpuglue import _core

from ._errors import translated
from ._memory import _stream, locate, mem_alloc


def _host(obj):
    """The contiguous array of a copy; a buffer becomes an array of bytes."""
    array = obj if isinstance(obj, np.ndarray) else np.frombuffer(obj, dtype=np.uint8)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError("the host array of a copy must be contiguous: copy it with np.ascontiguousarray()")
    return array


@translated
def memcpy_htod(dest, src):
    """Copy from the host to the device.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination: an allocation, an array or an address.
    src : ndarray or buffer
        Source, contiguous. It has been read on return.

    Raises
    ------
    Error
        If the driver fails, or the destination is too small.

    Examples
    --------
    >>> allocation = drv.mem_alloc(24)
    >>> drv.memcpy_htod(allocation, np.arange(3.0))
    """
    array = _host(src)
    buffer, offset = locate(dest, array.nbytes)
    _core._copy_bytes(buffer, offset, array, 0, array.nbytes, None, False)


@translated
def memcpy_htod_async(dest, src, stream=None):
    """Queue a copy from the host to the device.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination: an allocation, an array or an address.
    src : ndarray or buffer
        Source, contiguous. If it is page-locked, do not write to it before the copy has run.
    stream : Stream, optional
        The stream. None is the current one.

    Raises
    ------
    Error
        If the driver fails, or the destination is too small.

    Examples
    --------
    >>> stream, allocation = drv.Stream(), drv.mem_alloc(24)
    >>> drv.memcpy_htod_async(allocation, drv.pagelocked_zeros(3, np.float64), stream)
    >>> stream.synchronize()
    """
    array = _host(src)
    buffer, offset = locate(dest, array.nbytes)
    _core._copy_bytes(buffer, offset, array, 0, array.nbytes, _stream(stream), True)


@translated
def memcpy_dtoh(dest, src):
    """Copy from the device to the host.

    Parameters
    ----------
    dest : ndarray or buffer
        Destination, contiguous and writable. It is complete on return.
    src : DeviceAllocation or int
        Source: an allocation, an array or an address.

    Raises
    ------
    Error
        If the driver fails, or the source is too small.

    Examples
    --------
    >>> allocation = drv.to_device(np.arange(3.0))
    >>> host = np.empty(3)
    >>> drv.memcpy_dtoh(host, allocation)
    >>> host
    array([0., 1., 2.])
    """
    array = _host(dest)
    buffer, offset = locate(src, array.nbytes)
    _core._copy_bytes(array, 0, buffer, offset, array.nbytes, None, False)


@translated
def memcpy_dtoh_async(dest, src, stream=None):
    """Queue a copy from the device to the host.

    Parameters
    ----------
    dest : ndarray or buffer
        Destination, contiguous and writable. If it is page-locked, wait for the stream before you read it.
    src : DeviceAllocation or int
        Source: an allocation, an array or an address.
    stream : Stream, optional
        The stream. None is the current one.

    Raises
    ------
    Error
        If the driver fails, or the source is too small.

    Examples
    --------
    >>> stream, allocation = drv.Stream(), drv.to_device(np.arange(3.0))
    >>> host = drv.pagelocked_empty(3, np.float64)
    >>> drv.memcpy_dtoh_async(host, allocation, stream)
    >>> stream.synchronize()
    >>> host
    array([0., 1., 2.])
    """
    array = _host(dest)
    buffer, offset = locate(src, array.nbytes)
    _core._copy_bytes(array, 0, buffer, offset, array.nbytes, _stream(stream), True)


def memcpy_dtod(dest, src, size):
    """Queue a copy from device to device on the current stream.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    src : DeviceAllocation or int
        Source.
    size : int
        Bytes.

    Examples
    --------
    >>> source, dest = drv.to_device(np.arange(3.0)), drv.mem_alloc(24)
    >>> drv.memcpy_dtod(dest, source, 24)
    >>> drv.from_device(dest, 3, np.float64)
    array([0., 1., 2.])
    """
    memcpy_dtod_async(dest, src, size)


@translated
def memcpy_dtod_async(dest, src, size, stream=None):
    """Queue a copy from device to device.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    src : DeviceAllocation or int
        Source.
    size : int
        Bytes.
    stream : Stream, optional
        The stream. None is the current one.

    Raises
    ------
    Error
        If the driver fails, or one of the two is too small.

    Examples
    --------
    >>> source, dest = drv.to_device(np.arange(3.0)), drv.mem_alloc(24)
    >>> drv.memcpy_dtod_async(dest, source, 24, drv.Stream())
    """
    (to, to_offset), (source, offset) = locate(dest, size), locate(src, size)
    _core._copy_bytes(to, to_offset, source, offset, int(size), _stream(stream), stream is not None)


def memcpy_peer(dest, src, size, dest_context=None, src_context=None):
    """Queue a copy between two devices on the current stream.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    src : DeviceAllocation or int
        Source.
    size : int
        Bytes.
    dest_context : Context, optional
        Not used: gpuglue knows the device of the memory.
    src_context : Context, optional
        Not used.

    Examples
    --------
    >>> source, dest = drv.to_device(np.arange(3.0)), drv.mem_alloc(24)
    >>> drv.memcpy_peer(dest, source, 24)
    """
    memcpy_dtod(dest, src, size)


def memcpy_peer_async(dest, src, size, dest_context=None, src_context=None, stream=None):
    """Queue a copy between two devices.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    src : DeviceAllocation or int
        Source.
    size : int
        Bytes.
    dest_context : Context, optional
        Not used: gpuglue knows the device of the memory.
    src_context : Context, optional
        Not used.
    stream : Stream, optional
        The stream, of either device. None is the current one.

    Examples
    --------
    >>> source, dest = drv.to_device(np.arange(3.0)), drv.mem_alloc(24)
    >>> drv.memcpy_peer_async(dest, source, 24, stream=drv.Stream())
    """
    memcpy_dtod_async(dest, src, size, stream)


def to_device(bf_obj):
    """Copy an array of the host to new device memory.

    Parameters
    ----------
    bf_obj : ndarray or buffer
        Source, contiguous.

    Returns
    -------
    DeviceAllocation
        A copy.

    Examples
    --------
    >>> drv.from_device(drv.to_device(np.arange(3.0)), 3, np.float64)
    array([0., 1., 2.])
    """
    array = _host(bf_obj)
    allocation = mem_alloc(array.nbytes)
    memcpy_htod(allocation, array)
    return allocation


def from_device(devptr, shape, dtype, order="C"):
    """Copy device memory to a new array of the host.

    Parameters
    ----------
    devptr : DeviceAllocation or int
        Source.
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.

    Returns
    -------
    ndarray
        A copy.

    Examples
    --------
    >>> drv.from_device(drv.to_device(np.arange(2.0)), (1, 2), np.float64)
    array([[0., 1.]])
    """
    array = np.empty(shape, dtype, order)
    memcpy_dtoh(array, devptr)
    return array


def from_device_like(devptr, other_ary):
    """Copy device memory to a new array of the form of another.

    Parameters
    ----------
    devptr : DeviceAllocation or int
        Source.
    other_ary : ndarray
        The other array. Only its form is used.

    Returns
    -------
    ndarray
        A copy.

    Examples
    --------
    >>> drv.from_device_like(drv.to_device(np.arange(2.0)), np.empty(2))
    array([0., 1.])
    """
    array = np.empty_like(other_ary)
    memcpy_dtoh(array, devptr)
    return array
