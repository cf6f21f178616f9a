"""Allocations, copies, fills. PyCUDA's users keep addresses as numbers, so a table tells which allocation an
address lies in: what gpuglue knows of the allocation's pending work then holds for the number too."""

import bisect
import threading

import numpy as np

import gpuglue
from gpuglue import _core

from ._errors import LogicError, translated


class _Table:
    """Allocations by address; several may be there, as those of a module's global are. The newest is found."""

    def __init__(self):
        self.lock, self.starts, self.buffers = threading.RLock(), [], {}

    def add(self, buffer):
        with self.lock:
            known = self.buffers.setdefault(buffer.ptr, [])
            if not known:
                bisect.insort(self.starts, buffer.ptr)
            known.append(buffer)

    def remove(self, address, buffer):
        with self.lock:  # a collection inside may come here again
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


def locate(pointer, nbytes):
    """(Buffer, offset) of memory that a number, an allocation or an array names."""
    address = address_of(pointer)
    found = _table.find(address)
    if found:
        return found
    ours = getattr(pointer, "_gpuglue", None)
    if ours is not None:
        return ours, address - ours.ptr
    return _core._wrap_pointer(address, nbytes, gpuglue.current_device(), pointer), 0


def address_of(pointer):
    if isinstance(pointer, (int, np.integer)):
        return int(pointer)
    for name in ("ptr", "gpudata"):
        inner = getattr(pointer, name, None)
        if inner is not None and inner is not pointer:
            return address_of(inner)
    return int(pointer)


class PointerHolderBase:
    """Base of what stands for device memory: override get_pointer()."""

    def get_pointer(self):
        raise NotImplementedError("a PointerHolderBase needs get_pointer()")

    def __int__(self):
        return self.get_pointer()

    __index__ = __int__

    def as_buffer(self, size, offset=0):
        raise LogicError("device memory cannot be read on the host: copy it with memcpy_dtoh")


class DeviceAllocation(PointerHolderBase):
    """Device memory, given back by free() or when nothing refers to it any more."""

    def __init__(self, buffer):
        self._buffer = self._gpuglue = buffer
        self._address = buffer.ptr or 0
        if self._address:
            _table.add(buffer)

    def get_pointer(self):
        if self._buffer is None:
            raise LogicError("this allocation was freed")
        return self._address

    def free(self):
        buffer, self._buffer = self._buffer, None
        if buffer is None:
            raise LogicError("this allocation was freed before")
        if self._address:
            _table.remove(self._address, buffer)
        buffer.close()

    def __del__(self):
        if getattr(self, "_buffer", None) is not None and self._address:
            _table.remove(self._address, self._buffer)

    def __bool__(self):
        return self._address != 0

    def __hash__(self):
        return hash(self._address)

    def __eq__(self, other):
        return isinstance(other, DeviceAllocation) and self._address == other._address


@translated
def mem_alloc(nbytes):
    return DeviceAllocation(gpuglue.alloc(int(nbytes)))


def mem_alloc_like(ary):
    return mem_alloc(ary.nbytes)


def mem_alloc_pitch(width, height, access_size):
    """(allocation, bytes from a row to the next)."""
    pitch = (int(width) + 511) // 512 * 512
    return mem_alloc(pitch * int(height)), pitch


@translated
def mem_get_info():
    """(free, total)"""
    free, total = gpuglue.current_device().memory_info()[:2]
    return free, total


# ---- host memory


def _host(obj):
    """What the copies take: contiguous, as bytes."""
    array = obj if isinstance(obj, np.ndarray) else np.frombuffer(obj, dtype=np.uint8)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError("the host array of a copy must be contiguous")
    return array


# ---- copies


def _stream(stream):
    return stream._stream if stream is not None else None


@translated
def memcpy_htod(dest, src):
    array = _host(src)
    buffer, offset = locate(dest, array.nbytes)
    _core._copy_bytes(buffer, offset, array, 0, array.nbytes, None, False)


@translated
def memcpy_htod_async(dest, src, stream=None):
    array = _host(src)
    buffer, offset = locate(dest, array.nbytes)
    _core._copy_bytes(buffer, offset, array, 0, array.nbytes, _stream(stream), True)


@translated
def memcpy_dtoh(dest, src):
    array = _host(dest)
    buffer, offset = locate(src, array.nbytes)
    _core._copy_bytes(array, 0, buffer, offset, array.nbytes, None, False)


@translated
def memcpy_dtoh_async(dest, src, stream=None):
    array = _host(dest)
    buffer, offset = locate(src, array.nbytes)
    _core._copy_bytes(array, 0, buffer, offset, array.nbytes, _stream(stream), True)


def memcpy_dtod(dest, src, size):
    memcpy_dtod_async(dest, src, size)


@translated
def memcpy_dtod_async(dest, src, size, stream=None):
    (to, to_offset), (source, offset) = locate(dest, size), locate(src, size)
    _core._copy_bytes(to, to_offset, source, offset, int(size), _stream(stream), stream is not None)


def memcpy_peer(dest, src, size, dest_context=None, src_context=None):
    memcpy_dtod(dest, src, size)


def memcpy_peer_async(dest, src, size, dest_context=None, src_context=None, stream=None):
    memcpy_dtod_async(dest, src, size, stream)


def to_device(bf_obj):
    array = _host(bf_obj)
    allocation = mem_alloc(array.nbytes)
    memcpy_htod(allocation, array)
    return allocation


def from_device(devptr, shape, dtype, order="C"):
    array = np.empty(shape, dtype, order)
    memcpy_dtoh(array, devptr)
    return array


def from_device_like(devptr, other_ary):
    array = np.empty_like(other_ary)
    memcpy_dtoh(array, devptr)
    return array


def matrix_to_array(*args, **kwargs):
    raise LogicError("textures and their arrays are not part of gpuglue")


# ---- fills


@translated
def _memset(dest, data, count, dtype, stream):
    pattern = np.array(data, dtype).tobytes()
    buffer, offset = locate(dest, len(pattern) * count)
    _core._fill_bytes(buffer, offset, pattern, int(count), _stream(stream))


def memset_d8(dest, data, count):
    _memset(dest, data, count, np.uint8, None)


def memset_d16(dest, data, count):
    _memset(dest, data, count, np.uint16, None)


def memset_d32(dest, data, count):
    _memset(dest, data, count, np.uint32, None)


def memset_d8_async(dest, data, count, stream=None):
    _memset(dest, data, count, np.uint8, stream)


def memset_d16_async(dest, data, count, stream=None):
    _memset(dest, data, count, np.uint16, stream)


def memset_d32_async(dest, data, count, stream=None):
    _memset(dest, data, count, np.uint32, stream)
