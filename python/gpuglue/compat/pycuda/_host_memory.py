"""Host memory that the device knows: page-locked, managed, registered. Each is a NumPy array whose base is the
allocation."""

import numpy as np

import gpuglue

from ._errors import LogicError, translated


def shape_of(shape):
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(map(int, shape))


def order_of(array):
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


class _Known:
    """Memory with an address on the host and on the device, as what NumPy makes arrays of."""

    def __init__(self, buffer, like):
        self._buffer = self._gpuglue = buffer
        self.__array_interface__ = dict(like.__array_interface__, data=(buffer.ptr, False))

    def get_device_pointer(self):
        if self._buffer is None:
            raise LogicError("this memory was freed")
        return self._buffer.ptr

    def _end(self):
        buffer, self._buffer = self._buffer, None
        if buffer is None:
            raise LogicError("this memory was freed before")
        buffer.close()


class PagelockedHostAllocation(_Known):
    """What pagelocked_empty() and its kin lie in. After free() their arrays must not be touched."""

    def free(self):
        self._end()


class ManagedAllocation(_Known):
    """What managed_empty() and its kin lie in: an address for host and device."""

    def free(self):
        self._end()

    def attach(self, mem_flags, stream=None):
        """Of use to devices that cannot share managed memory with the host while they run; on others nothing needs
        to be attached, and nothing is done."""
        if not isinstance(mem_flags, (int, np.integer)) or mem_flags not in (1, 2, 4):
            raise LogicError(f"attach: {mem_flags!r} is none of mem_attach_flags")
        if self._buffer is None:
            raise LogicError("this memory was freed")


class RegisteredHostMemory(_Known):
    """What an array of register_host_memory() lies in; unregister() gives the lock back, not the memory."""

    def __init__(self, buffer, like):
        super().__init__(buffer, like)
        self.base = like

    def unregister(self):
        self._end()


def _make(kind, alloc, shape, dtype, order):
    if order not in ("C", "F"):
        raise LogicError(f"order is C or F, not {order!r}")
    shape, dtype = shape_of(shape), np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(f"{dtype} holds Python objects, which a device cannot use")
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if not nbytes:
        return np.empty(shape, dtype, order)
    layout = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, _strides(shape, dtype, order))
    return np.asarray(kind(alloc(nbytes), layout))


def _strides(shape, dtype, order):
    """As NumPy has them: an array of nothing but its layout is too large to make."""
    strides, step = [], dtype.itemsize
    for size in (shape if order == "F" else shape[::-1]):
        strides.append(step)
        step *= size
    return tuple(strides if order == "F" else strides[::-1])


@translated
def pagelocked_empty(shape, dtype, order="C", mem_flags=0):
    """Flags change nothing: page-locked memory of gpuglue is portable and mapped in any case."""
    return _make(PagelockedHostAllocation, gpuglue.alloc_pinned, shape, dtype, order)


def pagelocked_zeros(shape, dtype, order="C", mem_flags=0):
    array = pagelocked_empty(shape, dtype, order, mem_flags)
    array.fill(0)
    return array


def pagelocked_empty_like(array, mem_flags=0):
    return pagelocked_empty(array.shape, array.dtype, order_of(array), mem_flags)


def pagelocked_zeros_like(array, mem_flags=0):
    return pagelocked_zeros(array.shape, array.dtype, order_of(array), mem_flags)


@translated
def managed_empty(shape, dtype, order="C", mem_flags=0):
    """An array that kernels take as an argument; between a launch and its end the host must not touch it."""
    return _make(ManagedAllocation, gpuglue.alloc_managed, shape, dtype, order)


def managed_zeros(shape, dtype, order="C", mem_flags=0):
    array = managed_empty(shape, dtype, order, mem_flags)
    array.fill(0)
    return array


def managed_empty_like(array, mem_flags=0):
    return managed_empty(array.shape, array.dtype, order_of(array), mem_flags)


def managed_zeros_like(array, mem_flags=0):
    return managed_zeros(array.shape, array.dtype, order_of(array), mem_flags)


def managed_owner(array):
    """The ManagedAllocation that an array or a view of one lies in, or None."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, ManagedAllocation) else None


@translated
def register_host_memory(ary, flags=0):
    """An array over the same memory, which is page-locked until base.unregister(), or until nothing refers to it."""
    if not isinstance(ary, np.ndarray):
        raise TypeError(f"register_host_memory() takes a NumPy array, not a {type(ary).__name__}")
    if not (ary.flags.c_contiguous or ary.flags.f_contiguous):
        raise ValueError("only contiguous memory can be page-locked")
    whole = ary if ary.flags.c_contiguous else ary.T
    return np.asarray(RegisteredHostMemory(gpuglue.register(whole), ary))


# ---- memory that nobody but the host knows


def aligned_empty(shape, dtype, order="C", alignment=4096):
    """Host memory that begins at a multiple of alignment."""
    shape, dtype = shape_of(shape), np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(nbytes + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start:start + nbytes].view(dtype).reshape(shape, order=order)


def aligned_zeros(shape, dtype, order="C", alignment=4096):
    array = aligned_empty(shape, dtype, order, alignment)
    array.fill(0)
    return array


def aligned_empty_like(array, alignment=4096):
    return aligned_empty(array.shape, array.dtype, order_of(array), alignment)


def aligned_zeros_like(array, alignment=4096):
    return aligned_zeros(array.shape, array.dtype, order_of(array), alignment)
