"""Fills of device memory."""

import numpy as np

import gpuglue
from gpuglue import _core

from ._errors import LogicError, translated
from ._memory import _stream, locate


@translated
def _memset(dest, data, count, dtype, stream):
    pattern = np.array(data, dtype).tobytes()
    buffer, offset = locate(dest, len(pattern) * count)
    _core._fill_bytes(buffer, offset, pattern, int(count), _stream(stream))


def memset_d8(dest, data, count):
    """Queue a fill with one byte on the current stream.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    data : int
        The byte, from 0 to 255.
    count : int
        Number of bytes.

    Examples
    --------
    >>> allocation = drv.mem_alloc(4)
    >>> drv.memset_d8(allocation, 7, 4)
    >>> drv.from_device(allocation, 4, np.uint8)
    array([7, 7, 7, 7], dtype=uint8)
    """
    _memset(dest, data, count, np.uint8, None)


def memset_d16(dest, data, count):
    """Queue a fill with a value of 16 bits on the current stream.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    data : int
        The value.
    count : int
        Number of values.

    Examples
    --------
    >>> allocation = drv.mem_alloc(4)
    >>> drv.memset_d16(allocation, 7, 2)
    >>> drv.from_device(allocation, 2, np.uint16)
    array([7, 7], dtype=uint16)
    """
    _memset(dest, data, count, np.uint16, None)


def memset_d32(dest, data, count):
    """Queue a fill with a value of 32 bits on the current stream.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    data : int
        The value.
    count : int
        Number of values.

    Examples
    --------
    >>> allocation = drv.mem_alloc(8)
    >>> drv.memset_d32(allocation, 7, 2)
    >>> drv.from_device(allocation, 2, np.uint32)
    array([7, 7], dtype=uint32)
    """
    _memset(dest, data, count, np.uint32, None)


def memset_d8_async(dest, data, count, stream=None):
    """Queue a fill with one byte.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    data : int
        The byte, from 0 to 255.
    count : int
        Number of bytes.
    stream : Stream, optional
        The stream. None is the current one.

    Examples
    --------
    >>> allocation, stream = drv.mem_alloc(4), drv.Stream()
    >>> drv.memset_d8_async(allocation, 7, 4, stream)
    >>> stream.synchronize()
    """
    _memset(dest, data, count, np.uint8, stream)


def memset_d16_async(dest, data, count, stream=None):
    """Queue a fill with a value of 16 bits.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    data : int
        The value.
    count : int
        Number of values.
    stream : Stream, optional
        The stream. None is the current one.

    Examples
    --------
    >>> allocation, stream = drv.mem_alloc(4), drv.Stream()
    >>> drv.memset_d16_async(allocation, 7, 2, stream)
    >>> stream.synchronize()
    """
    _memset(dest, data, count, np.uint16, stream)


def memset_d32_async(dest, data, count, stream=None):
    """Queue a fill with a value of 32 bits.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    data : int
        The value.
    count : int
        Number of values.
    stream : Stream, optional
        The stream. None is the current one.

    Examples
    --------
    >>> allocation, stream = drv.mem_alloc(8), drv.Stream()
    >>> drv.memset_d32_async(allocation, 7, 2, stream)
    >>> stream.synchronize()
    """
    _memset(dest, data, count, np.uint32, stream)


# ---- rows


@translated
def _memset_rows(dest, pitch, data, width, height, dtype, stream):
    nbytes, before = width * np.dtype(dtype).itemsize, pitch * (height - 1)
    if not width or not height:
        return
    if nbytes > pitch and height > 1:
        raise LogicError(f"a fill of rows: {width} elements have {nbytes} bytes, which is more than the pitch of {pitch}")
    buffer, offset = locate(dest, before + nbytes)
    memory = gpuglue.asarray(buffer)[offset:offset + before + nbytes]
    if memory.nbytes < before + nbytes:
        raise LogicError(f"a fill of {height} rows needs {before + nbytes} bytes, there are {memory.nbytes}")
    # The last row may end before its pitch does.
    for rows in (memory[:before].reshape(height - 1, pitch)[:, :nbytes], memory[before:].reshape(1, nbytes)):
        if rows.size:
            rows.view(dtype).fill(np.array(data, dtype), stream=_stream(stream))


def memset_d2d8(dest, pitch, data, width, height):
    """Queue a fill of rows with one byte on the current stream.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    pitch : int
        Bytes from one row to the next.
    data : int
        The value.
    width : int
        Values of a row.
    height : int
        Number of rows.

    Examples
    --------
    >>> allocation, pitch = drv.mem_alloc_pitch(12, 3, 4)
    >>> drv.memset_d2d8(allocation, pitch, 7, 3, 3)
    """
    _memset_rows(dest, pitch, data, width, height, np.uint8, None)


def memset_d2d16(dest, pitch, data, width, height):
    """Queue a fill of rows with a value of 16 bits on the current stream.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    pitch : int
        Bytes from one row to the next.
    data : int
        The value.
    width : int
        Values of a row.
    height : int
        Number of rows.

    Examples
    --------
    >>> allocation, pitch = drv.mem_alloc_pitch(12, 3, 4)
    >>> drv.memset_d2d16(allocation, pitch, 7, 3, 3)
    """
    _memset_rows(dest, pitch, data, width, height, np.uint16, None)


def memset_d2d32(dest, pitch, data, width, height):
    """Queue a fill of rows with a value of 32 bits on the current stream.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    pitch : int
        Bytes from one row to the next.
    data : int
        The value.
    width : int
        Values of a row.
    height : int
        Number of rows.

    Examples
    --------
    >>> allocation, pitch = drv.mem_alloc_pitch(12, 3, 4)
    >>> drv.memset_d2d32(allocation, pitch, 7, 3, 3)
    """
    _memset_rows(dest, pitch, data, width, height, np.uint32, None)


def memset_d2d8_async(dest, pitch, data, width, height, stream=None):
    """Queue a fill of rows with one byte.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    pitch : int
        Bytes from one row to the next.
    data : int
        The value.
    width : int
        Values of a row.
    height : int
        Number of rows.
    stream : Stream, optional
        The stream. None is the current one.

    Examples
    --------
    >>> allocation, pitch = drv.mem_alloc_pitch(12, 3, 4)
    >>> drv.memset_d2d8_async(allocation, pitch, 7, 3, 3)
    """
    _memset_rows(dest, pitch, data, width, height, np.uint8, stream)


def memset_d2d16_async(dest, pitch, data, width, height, stream=None):
    """Queue a fill of rows with a value of 16 bits.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    pitch : int
        Bytes from one row to the next.
    data : int
        The value.
    width : int
        Values of a row.
    height : int
        Number of rows.
    stream : Stream, optional
        The stream. None is the current one.

    Examples
    --------
    >>> allocation, pitch = drv.mem_alloc_pitch(12, 3, 4)
    >>> drv.memset_d2d16_async(allocation, pitch, 7, 3, 3)
    """
    _memset_rows(dest, pitch, data, width, height, np.uint16, stream)


def memset_d2d32_async(dest, pitch, data, width, height, stream=None):
    """Queue a fill of rows with a value of 32 bits.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    pitch : int
        Bytes from one row to the next.
    data : int
        The value.
    width : int
        Values of a row.
    height : int
        Number of rows.
    stream : Stream, optional
        The stream. None is the current one.

    Examples
    --------
    >>> allocation, pitch = drv.mem_alloc_pitch(12, 3, 4)
    >>> drv.memset_d2d32_async(allocation, pitch, 7, 3, 3)
    """
    _memset_rows(dest, pitch, data, width, height, np.uint32, stream)
