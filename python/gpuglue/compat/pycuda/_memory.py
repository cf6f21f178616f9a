"""Allocations. PyCUDA programs keep addresses as numbers, so a table maps each address to its
allocation. Work on a number is then ordered after the pending work on the allocation."""

import bisect
import threading

import numpy as np

import gpuglue
from gpuglue import _core

from ._errors import LogicError, of, translated


class _Table:
    """Allocations by address. Several may share one, as those of a module's global do; find() returns the newest."""

    def __init__(self):
        self.lock, self.starts, self.buffers = threading.RLock(), [], {}

    def add(self, allocation):
        """The address of an allocation becomes a number: from now on it is found by it."""
        with self.lock:
            if allocation._entry is not None:
                return
            entry = allocation._entry = _Entry(allocation._address, allocation._gpuglue)
            known = self.buffers.setdefault(entry.address, [])
            if not known:
                bisect.insort(self.starts, entry.address)
            known.append(entry.buffer)

    def remove(self, address, buffer):
        with self.lock:  # a garbage collection inside may call this again
            known = self.buffers[address]
            del known[[one is buffer for one in known].index(True)]
            if not known:
                del self.buffers[address]
                self.starts.pop(bisect.bisect_left(self.starts, address))

    def find(self, address):
        """(Buffer, offset) or None."""
        with self.lock:
            at = bisect.bisect_right(self.starts, address) - 1
            if at < 0:
                return None
            start = self.starts[at]
            buffer = self.buffers[start][-1]
        return (buffer, address - start) if address - start < buffer.nbytes else None


_table = _Table()


class _Entry:
    """An allocation in the table, which it leaves with the allocation. Most are in no table, and end without Python code."""

    def __init__(self, address, buffer):
        self.address, self.buffer = address, buffer

    def remove(self):
        buffer, self.buffer = self.buffer, None
        if buffer is not None:
            _table.remove(self.address, buffer)

    __del__ = remove


def locate(pointer, nbytes):
    """(Buffer, offset) of an address: of a number, an allocation or an array."""
    ours = getattr(pointer, "_gpuglue", None)
    if ours is not None:
        return ours, 0
    address = address_of(pointer)
    found = _table.find(address)
    if found:
        return found
    return _core._wrap_pointer(address, nbytes, gpuglue.current_device(), pointer), 0


def at(address):
    """The launch argument for an address: a view of its allocation, so that the launch waits for pending work."""
    found = _table.find(address)
    if found is None:
        return np.uintp(address)
    buffer, offset = found
    return gpuglue.asarray(buffer)[offset:] if offset else buffer


def argument_of(memory):
    """The launch argument for an array or an allocation."""
    ours = getattr(getattr(memory, "gpudata", memory), "_gpuglue", None)
    return ours if ours is not None else at(address_of(memory))


def address_of(pointer):
    if isinstance(pointer, (int, np.integer)):
        return int(pointer)
    for name in ("ptr", "gpudata"):
        inner = getattr(pointer, name, None)
        if inner is not None and inner is not pointer:
            return address_of(inner)
    if isinstance(pointer, (np.ndarray, float)) or not hasattr(pointer, "__int__"):  # an array of one element is a number for int()
        raise TypeError(f"expected an allocation, an array of gpuarray or an address, got {type(pointer).__name__}: upload host memory by "
                        "to_device() or gpuarray.to_gpu()")
    return int(pointer)


class PointerHolderBase:
    """Base of objects that represent device memory: a subclass defines get_pointer().

    Examples
    --------
    >>> class Holder(drv.PointerHolderBase):
    ...     def get_pointer(self):
    ...         return 4096
    >>> int(Holder())
    4096
    """

    def get_pointer(self):
        """Return the address; a subclass defines it.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError("a PointerHolderBase needs get_pointer()")

    def __int__(self):
        return self.get_pointer()

    __index__ = __int__

    def as_buffer(self, size, offset=0):
        """Return the memory as a buffer, where the host can access it.

        Parameters
        ----------
        size : int
            Size in bytes.
        offset : int, default 0
            Where it begins.

        Returns
        -------
        memoryview
            Bytes.

        Raises
        ------
        LogicError
            If the host cannot (it can on host): copy with memcpy_dtoh.
        ValueError
            If the memory is smaller.
        """
        buffer, start = locate(self, offset + size)
        array = gpuglue.asarray(buffer)
        if not hasattr(array, "__array_interface__"):
            raise LogicError("device memory cannot be read on the host: copy it with memcpy_dtoh")
        start += offset
        if size < 0 or offset < 0 or start + size > buffer.nbytes:
            raise ValueError(f"{size} bytes at {start} are not in memory of {buffer.nbytes}")
        return memoryview(np.asarray(array))[start:start + size]


class DeviceAllocation(PointerHolderBase):
    """Device memory, released by free() or with the last reference.

    Parameters
    ----------
    buffer : gpuglue.Buffer
        The memory: mem_alloc makes the allocation.

    Examples
    --------
    >>> allocation = drv.mem_alloc(1024)
    >>> int(allocation) != 0
    True
    """

    _entry = _gpuglue = None

    def __init__(self, buffer):
        self._gpuglue, self._address = buffer, buffer.ptr or 0

    def get_pointer(self):
        """Return the address.

        Returns
        -------
        int
            The address on the device.

        Raises
        ------
        LogicError
            If the memory was freed.

        Examples
        --------
        >>> allocation = drv.mem_alloc(1024)
        >>> allocation.get_pointer() == int(allocation)
        True
        """
        if self._gpuglue is None:
            raise LogicError("this allocation was freed")
        if self._entry is None and self._address:
            _table.add(self)
        return self._address

    def free(self):
        """Release the memory, once queued work on it is done.

        Raises
        ------
        LogicError
            If it was freed already.

        Examples
        --------
        >>> drv.mem_alloc(1024).free()
        """
        buffer, self._gpuglue = self._gpuglue, None
        if buffer is None:
            raise LogicError("this allocation was already freed")
        if self._entry is not None:
            self._entry.remove()
        buffer.close()

    def __bool__(self):
        return self._address != 0

    def __hash__(self):
        return hash(self._address)

    def __eq__(self, other):
        return isinstance(other, DeviceAllocation) and self._address == other._address


def mem_alloc(nbytes):
    """Allocate device memory.

    Parameters
    ----------
    nbytes : int
        Size in bytes.

    Returns
    -------
    DeviceAllocation
        Uninitialised memory.

    Raises
    ------
    MemoryError
        If the device has not enough memory.

    Examples
    --------
    >>> allocation = drv.mem_alloc(1024)
    """
    try:
        return DeviceAllocation(gpuglue.alloc(int(nbytes)))
    except gpuglue.Error as error:
        raise of(error) from error


def mem_alloc_like(ary):
    """Allocate device memory of the size of an array.

    Parameters
    ----------
    ary : ndarray
        The array. Only its size is used.

    Returns
    -------
    DeviceAllocation
        Uninitialised memory.

    Examples
    --------
    >>> allocation = drv.mem_alloc_like(np.zeros(3))
    """
    return mem_alloc(ary.nbytes)


def mem_alloc_pitch(width, height, access_size):
    """Allocate device memory for rows that begin at multiples of 512 bytes.

    Parameters
    ----------
    width : int
        Bytes of a row.
    height : int
        Number of rows.
    access_size : int
        Not used.

    Returns
    -------
    allocation : DeviceAllocation
        The memory.
    pitch : int
        Bytes from one row to the next.

    Examples
    --------
    >>> allocation, pitch = drv.mem_alloc_pitch(100, 4, 4)
    >>> pitch
    512
    """
    pitch = (int(width) + 511) // 512 * 512
    return mem_alloc(pitch * int(height)), pitch


@translated
def mem_get_info():
    """Return the free and the total memory of the current device.

    Returns
    -------
    free : int
        Free bytes.
    total : int
        Bytes of the device.

    Raises
    ------
    Error
        If the driver fails.

    Examples
    --------
    >>> free, total = drv.mem_get_info()
    >>> free <= total
    True
    """
    free, total = gpuglue.current_device().memory_info()[:2]
    return free, total


def _stream(stream):
    try:
        return stream._stream if stream is not None else None
    except AttributeError:
        raise TypeError(f"stream= is a driver.Stream or None, got {type(stream).__name__}") from None
