"""PyGPU's low-level allocators: HostAllocator_<dtype>, PagelockedAllocator_<dtype>, DeviceAllocator_<dtype>."""

import numpy as np

import gpuglue

from . import _pygpu_pointers
from ._pygpu_errors import _INVALID_VALUE, SUPPORTED_DTYPES, _attempt, failed


class _Allocator:
    """Memory for elements of one type. There is none before `allocate`.

    Notes
    -----
    The memory lives as long as the allocator or a pointer to it.

    Examples
    --------
    >>> for kind in PyGPU.HostAllocator_float32, PyGPU.PagelockedAllocator_float32, PyGPU.DeviceAllocator_float32:
    ...     allocator = kind()
    ...     error = allocator.allocate(100)
    ...     assert int(allocator.ptr()) != 0
    """

    _dtype: str

    def __init__(self):
        self._memory, self._address, self._count = None, 0, 0

    def _use(self, memory, address, count):
        self._memory, self._address, self._count = memory, address, count

    def ptr(self):
        """Return the address of the memory.

        Returns
        -------
        ptr_wrapper
            0 before `allocate`. The memory of a device is not safe to read.

        Examples
        --------
        >>> PyGPU.HostAllocator_float32().ptr()
        <pointer 0x0>
        """
        kind = getattr(_pygpu_pointers, "ptr_wrapper_" + self._dtype)
        return kind(self._address, isinstance(self._memory, np.ndarray), self._memory)

    def __repr__(self):
        return f"<{type(self).__name__}: {self._count} elements at {self._address:#x}>"


class _HostAllocator(_Allocator):
    __doc__ = _Allocator.__doc__

    def allocate(self, count):
        """Allocate memory in place of what there was.

        Parameters
        ----------
        count : int
            Number of elements.

        Raises
        ------
        ValueError
            If the number is negative.

        Examples
        --------
        >>> PyGPU.HostAllocator_float32().allocate(100)
        """
        if count < 0:
            raise ValueError(f"allocate: expected a number of elements, got {count}")
        self._use(None, 0, 0)
        memory = np.empty(count, self._dtype)
        self._use(memory, memory.ctypes.data, count)


class _DeviceAllocator(_Allocator):
    __doc__ = _Allocator.__doc__

    def _new(self, count):
        buffer = gpuglue.alloc(count * np.dtype(self._dtype).itemsize)
        return buffer, buffer.ptr

    def allocate(self, count):
        """Allocate memory in place of what there was.

        Parameters
        ----------
        count : int
            Number of elements.

        Returns
        -------
        cudaError_t
            0 for success, 2 if there is not enough memory.

        Examples
        --------
        >>> PyGPU.DeviceAllocator_float32().allocate(100)
        <cudaError: code=0>
        """
        self._use(None, 0, 0)  # first, so that its memory can be used again
        if count < 0:
            return failed(_INVALID_VALUE)
        found, error = _attempt(self._new, count)
        if found is not None:
            self._use(*found, count)
        return error


class _PagelockedAllocator(_DeviceAllocator):
    __doc__ = _Allocator.__doc__

    def _new(self, count):
        array = gpuglue.empty_pinned((count,), self._dtype)
        return array, array.ctypes.data


for _kind in (_HostAllocator, _DeviceAllocator, _PagelockedAllocator):
    for _name in SUPPORTED_DTYPES:
        _title = f"{_kind.__name__[1:]}_{_name}"
        globals()[_title] = type(_title, (_kind,), {"__doc__": _Allocator.__doc__, "_dtype": _name})
