"""PyGPU's high-level arrays: GPUArray, and the allocators whose memory it takes."""

import ctypes

import numpy as np

import gpuglue

from . import _pygpu_pointers
from ._pygpu_device_arrays import _class_for, _supported
from ._pygpu_errors import UnsupportedDataType


class Allocator:
    """Memory of another library's array, for a GPUArray.

    Parameters
    ----------
    data : object
        An array with ``shape`` and ``dtype``, and an address in ``ptr`` or ``data.ptr``.
    host_data : ndarray, optional
        Host mirror of the same shape and dtype. None makes one.

    Examples
    --------
    >>> allocator = PyGPU.Allocator(gg.zeros(3))
    >>> PyGPU.GPUArray(allocator=allocator).get()
    array([0., 0., 0.])
    """

    def __init__(self, data, host_data=None):
        self.data, self._shape, self._dtype = data, tuple(data.shape), np.dtype(data.dtype).name
        self.host_data = np.empty(self._shape, self._dtype) if host_data is None else host_data

    def ptr(self):
        """Return the address of the memory.

        Returns
        -------
        int
            The address on the device.

        Examples
        --------
        >>> a = gg.zeros(3)
        >>> PyGPU.Allocator(a).ptr() == a.ptr
        True
        """
        inner = getattr(self.data, "data", self.data)
        pointer = getattr(self.data, "ptr", getattr(inner, "ptr", None))
        return int(pointer() if callable(pointer) else pointer)

    def host_ptr(self):
        """Return the address of the host mirror.

        Returns
        -------
        int
            The address on the host.

        Examples
        --------
        >>> PyGPU.Allocator(gg.zeros(3)).host_ptr() != 0
        True
        """
        return self.host_data.ctypes.data


class PagelockedAllocator:
    """Page-locked host memory, which the device accesses at the same address.

    Parameters
    ----------
    shape : sequence of int
        Length of each dimension.
    dtype : dtype
        Type of the elements.

    Raises
    ------
    UnsupportedDataType
        If the dtype is not one of SUPPORTED_DTYPES.

    Examples
    --------
    >>> PyGPU.PagelockedAllocator((2, 3), "float32").get().shape
    (2, 3)
    """

    def __init__(self, shape, dtype):
        self._array = self._allocated(tuple(shape), _supported(dtype))
        self.shape, self.dtype = self._array.shape, self._array.dtype

    def _allocated(self, shape, dtype):
        return gpuglue.empty_pinned(shape, dtype)

    def __repr__(self):
        return f"<{type(self).__name__}: {self.dtype}, shape {self.shape}>"

    def get(self):
        """Return the memory as an array.

        Returns
        -------
        ndarray
            The array itself, not a copy.

        Examples
        --------
        >>> PyGPU.HostAllocator((3,), "float32").get().dtype
        dtype('float32')
        """
        return self._array

    def ptr(self):
        """Return the address of the memory.

        Returns
        -------
        ptr_wrapper
            The address. It keeps the memory alive.

        Examples
        --------
        >>> memory = PyGPU.HostAllocator((3,), "float32")
        >>> PyGPU.DeviceArray_float32(memory.ptr(), [3]).shape()
        [3]
        """
        return getattr(_pygpu_pointers, "ptr_wrapper_" + self.dtype.name)(self._array.ctypes.data, True, self._array)


class HostAllocator(PagelockedAllocator):
    """Ordinary host memory.

    Parameters
    ----------
    shape : sequence of int
        Length of each dimension.
    dtype : dtype
        Type of the elements.

    Raises
    ------
    UnsupportedDataType
        If the dtype is not one of SUPPORTED_DTYPES.

    Examples
    --------
    >>> PyGPU.HostAllocator((3,), "float32").shape
    (3,)
    """

    def _allocated(self, shape, dtype):
        return np.empty(shape, dtype)


class GPUArray:
    """An array on the device, and its host mirror.

    Parameters
    ----------
    *args : ndarray or sequence of int, then dtype
        The mirror, which is shared; or a shape and a dtype, by default 'float64'.
    **kwargs : object
        ``shape``, ``dtype``, ``order`` ('C' or 'F'), ``copy`` (True: a mirror of its own), or ``allocator`` alone: an
        Allocator, or a HostAllocator or PagelockedAllocator, whose memory is the mirror.

    Raises
    ------
    UnsupportedDataType
        If the first argument is neither of these, or the dtype is not one of SUPPORTED_DTYPES.
    RuntimeError
        If ``allocator`` is not the only argument.
    TypeError
        If ``allocator`` has no shape, as HostAllocator_<dtype>.

    Notes
    -----
    No method raises a driver's error: `last_status` returns it.

    Examples
    --------
    >>> array = PyGPU.GPUArray(np.arange(3.0))
    >>> array.to_gpu().get()
    array([0., 1., 2.])
    """

    __hash__ = None  # type: ignore

    def __init__(self, *args, **kwargs):
        allocator = kwargs.get("allocator")
        if allocator is not None:
            if args or "shape" in kwargs or "dtype" in kwargs:
                raise RuntimeError("allocator= must be the only argument")
            self._over(allocator)
            return
        what = kwargs.get("shape", args[0] if args else None)
        if isinstance(what, (int, np.integer)):
            what = (int(what),)
        if isinstance(what, np.ndarray):
            mirror = what.copy() if kwargs.get("copy") else what
        elif isinstance(what, (tuple, list)):
            dtype = kwargs.get("dtype", args[1] if len(args) > 1 else "float64")
            mirror = np.empty(tuple(what), dtype, order="F" if kwargs.get("order") == "F" else "C")
        else:
            raise UnsupportedDataType("expected a NumPy array, or a shape as a tuple or a list")
        self._array = _class_for(mirror.dtype)(mirror)
        self._array.allocate()

    def _over(self, allocator):
        self._keep = allocator
        if isinstance(allocator, PagelockedAllocator):
            self._array = _class_for(allocator.dtype)(allocator.get())
            self._array.allocate()
            return
        if not isinstance(allocator, Allocator):
            raise TypeError("allocator=: expected an Allocator, HostAllocator or PagelockedAllocator, got "
                            f"{allocator!r}: it has no shape")
        self._array = _class_for(allocator._dtype)(allocator.host_data)
        self._array._address = allocator.ptr()
        self._array._copy(lambda: None)

    size = property(lambda self: self._array.size(), doc="Number of elements.")
    nbytes = property(lambda self: self._array.nbytes(), doc="Size of all elements in bytes.")
    shape = property(lambda self: tuple(self._array.shape()), doc="Length of each dimension.")
    strides = property(lambda self: tuple(self._array.strides()), doc="Bytes between elements per dimension, of the mirror.")
    dtype = property(lambda self: np.dtype(self._array._dtype), doc="Type of the elements.")
    host_data = property(lambda self: self._array.host_data(), doc="Address of the mirror.")
    device_data = property(lambda self: self._array.device_data(), doc="Address of the device memory.")
    last_status = property(lambda self: self._array.last_status(), doc="The result of the last method that used the driver.")
    flag_c_contiguous = property(lambda self: int(self._array._host.flags.c_contiguous), doc="1: the mirror is in C order.")
    ptr = property(lambda self: int(self._array.device_data()), doc="Address of the device memory, an int.")
    gpudata = property(lambda self: self._array._device, doc="The Buffer on the device.")

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self.ptr)

    @property
    def __cuda_array_interface__(self):
        backend = self.gpudata.device.backend
        if backend not in ("cuda", "hip"):
            raise AttributeError(f"__cuda_array_interface__ is of cuda and hip, and this array is on {backend}: use numpy.asarray(array.get())")
        flags = self._array._host.flags
        return {"shape": self.shape, "strides": self.strides if flags.fnc else None, "data": (self.ptr, False),
                "typestr": self.dtype.str, "stream": None, "version": 3}

    def allocate(self):
        """Allocate new memory on the current device.

        Examples
        --------
        >>> PyGPU.GPUArray((3,)).allocate()
        """
        self._array.allocate()

    def to_device(self):
        """Copy the mirror to the device.

        Examples
        --------
        >>> PyGPU.GPUArray(np.arange(3.0)).to_device()
        """
        self._array.to_device()

    def to_gpu(self):
        """Copy the mirror to the device.

        Returns
        -------
        GPUArray
            The array itself.

        Examples
        --------
        >>> array = PyGPU.GPUArray(np.arange(3.0))
        >>> array.to_gpu() is array
        True
        """
        self._array.to_device()
        return self

    def to_host(self):
        """Copy the device memory to the mirror.

        Examples
        --------
        >>> PyGPU.to_gpu(np.arange(3.0)).to_host()
        """
        self._array.to_host()

    def get(self, copy=False):
        """Copy the device memory to the mirror and return it.

        Parameters
        ----------
        copy : bool, default False
            Whether to return a copy of the mirror.

        Returns
        -------
        ndarray
            The mirror, or the copy.

        Examples
        --------
        >>> PyGPU.to_gpu(np.arange(3.0)).get()
        array([0., 1., 2.])
        """
        self._array.to_host()
        return self._array._host.copy() if copy else self._array._host

    def set(self, host_data):
        """Copy data to the mirror and to the device.

        Parameters
        ----------
        host_data : ndarray
            Data of the same shape and dtype.

        Raises
        ------
        ValueError
            If shape or dtype differ.

        Examples
        --------
        >>> array = PyGPU.zeros((3,))
        >>> array.set(np.arange(3.0))
        >>> array.get()
        array([0., 1., 2.])
        """
        if host_data.shape != self.shape or host_data.dtype != self.dtype:
            raise ValueError(f"expected {self.shape} of {self.dtype}, got {host_data.shape} of {host_data.dtype}")
        self._array._host[...] = host_data
        self._array.to_device()

    def set_val(self, index, value):
        """Set one element on the device.

        Parameters
        ----------
        index : int or tuple of int
            The element, by its index in memory or by one index per dimension.
        value : scalar
            The value.

        Examples
        --------
        >>> array = PyGPU.zeros((2,))
        >>> array.set_val(1, 2.5)
        >>> array.get()
        array([0. , 2.5])
        """
        self._array.set_val(index, value)

    def __repr__(self):
        return f"<GPUArray: {self.dtype}, shape {self.shape}, device {self.device_data}>"

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, index):
        """A new array of the selected elements."""
        self._array.to_host()
        part = GPUArray(np.array(self._array._host[index], order="C", ndmin=0))
        part.to_device()
        return part

    def __setitem__(self, index, value):
        self._array.to_host()
        self._array._host[index] = value.get() if isinstance(value, GPUArray) else value
        self._array.to_device()


def to_gpu(cpu_data):
    """Make a device array whose host mirror is an array.

    Parameters
    ----------
    cpu_data : array_like
        The mirror: an ndarray is shared.

    Returns
    -------
    GPUArray
        It has been copied to the device.

    Examples
    --------
    >>> PyGPU.to_gpu(np.arange(3.0)).nbytes
    24
    """
    array = GPUArray(np.asarray(cpu_data))
    array.to_device()
    return array


def empty(shape, dtype="float64"):
    """Allocate an array without initialising it.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype, default 'float64'
        Type of the elements.

    Returns
    -------
    GPUArray
        The array.

    Examples
    --------
    >>> PyGPU.empty((2, 3)).shape
    (2, 3)
    """
    return GPUArray(shape, dtype=dtype)


def zeros(shape, dtype="float64"):
    """Make an array of zeros.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype, default 'float64'
        Type of the elements.

    Returns
    -------
    GPUArray
        The array.

    Examples
    --------
    >>> PyGPU.zeros((3,)).get()
    array([0., 0., 0.])
    """
    return to_gpu(np.zeros(shape, dtype))
