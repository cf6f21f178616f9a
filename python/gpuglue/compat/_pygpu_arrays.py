"""PyGPU's pointers and arrays: DeviceArray_<dtype> and GPUArray."""

import ctypes

import numpy as np

import gpuglue
from gpuglue import _core

from ._pygpu_errors import _INVALID_VALUE, _SUCCESS, SUPPORTED_DTYPES, UnsupportedDataType, _attempt, cudaError_t

# ---- pointers


class pointer_wrapper:
    """An address. get() tells it only where reading it is safe: for host memory that Python holds."""

    def __init__(self, address, safe, owner=None):
        self._address, self._safe, self._owner = int(address or 0), bool(safe), owner

    def get(self):
        return (self._address, True) if self._safe else (None, False)

    def is_safe(self):
        return self._safe

    def unsafe_get(self):
        return self._address

    def __int__(self):
        return self._address

    __index__ = __int__

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self._address)

    def __repr__(self):
        return f"<pointer 0x{self._address:x}>"


ptr_wrapper = pointer_wrapper
for _name in SUPPORTED_DTYPES:
    globals()["pointer_wrapper_" + _name] = type("pointer_wrapper_" + _name, (pointer_wrapper,), {})


# ---- arrays, the low level


class _DeviceArray:
    """Two sides: host_data(), which is the buffer that was handed in, and device_data(), once allocated."""

    _dtype = None

    def __init__(self, buffer, *more):
        self._status = cudaError_t(_SUCCESS)
        self._device, self._address = None, 0
        if isinstance(buffer, (list, tuple)):
            self._host = np.empty(tuple(buffer), self._dtype, order="C" if not more or more[0] else "F")
        elif isinstance(buffer, (int, np.integer)):
            self._host, self._address = _existing(int(buffer), int(more[0]), more[1], self._dtype, more[2:])
        else:
            self._host = np.asarray(buffer)
        if self._host.dtype != self._dtype:
            raise TypeError(f"DeviceArray_{self._dtype}: the buffer is of {self._host.dtype}")

    def size(self):
        return self._host.size

    def nbytes(self):
        return self._host.nbytes

    def shape(self):
        return list(self._host.shape)

    def ndim(self):
        return self._host.ndim

    def strides(self):
        return list(self._host.strides)

    def host_data(self):
        return globals()["pointer_wrapper_" + self._dtype](self._host.ctypes.data, True, self._host)

    def device_data(self):
        address = self._device.ptr if self._device is not None else 0
        return globals()["pointer_wrapper_" + self._dtype](address, False, self._device)

    def last_status(self):
        return self._status

    def allocate(self):
        device, self._status = _attempt(gpuglue.alloc, self._host.nbytes)
        self._device = device

    def _copy(self, function):
        if self._device is None and self._address:
            self._device, self._status = _attempt(lambda: _core._wrap_pointer(
                self._address, self._host.nbytes, gpuglue.current_device(), None))
        self._status = _attempt(function)[1] if self._device is not None else cudaError_t(_INVALID_VALUE)

    # The device's side of a buffer with gaps has none: its elements are in C order.

    def _upload(self):
        host = self._host if self._host.flags.forc else self._host.copy(order="C")
        _core._copy_bytes(self._device, 0, host, 0, host.nbytes, None, False)

    def _download(self):
        host = self._host if self._host.flags.forc else np.empty(self._host.shape, self._host.dtype)
        _core._copy_bytes(host, 0, self._device, 0, host.nbytes, None, False)
        if host is not self._host:
            self._host[...] = host

    def to_device(self):
        self._copy(self._upload)

    def to_host(self):
        self._copy(self._download)

    def _set(self, index, element):
        flags = self._host.flags
        if isinstance(index, tuple):
            index = np.ravel_multi_index(index, self._host.shape, order="F" if flags.fnc else "C")
        _core._copy_bytes(self._device, int(index) * element.nbytes, element, 0, element.nbytes, None, False)

    def set_val(self, index, value):
        """One element of the device side, by its place in memory or by a tuple of indices."""
        element = np.array(value, self._host.dtype)
        if element.ndim:
            raise TypeError(f"set_val: one value is expected, not {value!r}")
        self._copy(lambda: self._set(index, element))

    def __array__(self, dtype=None, copy=None):
        return np.array(self._host, dtype=dtype, copy=True) if copy or dtype is not None else self._host


def _existing(host, device, shape, dtype, order):
    """Host memory and device memory that are there already."""
    count = int(np.prod(shape, dtype=np.int64))
    kind = ctypes.c_char * (count * np.dtype(dtype).itemsize)
    array = np.frombuffer(kind.from_address(host), dtype).reshape(shape, order="C" if not order or order[0] else "F")
    return array, device


for _name in SUPPORTED_DTYPES:
    globals()["DeviceArray_" + _name] = type("DeviceArray_" + _name, (_DeviceArray,), {"_dtype": _name})


def _class_for(dtype):
    name = np.dtype(dtype).name
    if name not in SUPPORTED_DTYPES or np.dtype(dtype) != name:
        raise UnsupportedDataType(f"Data type: {name} is not supported: expected one of {', '.join(SUPPORTED_DTYPES)}")
    return globals()["DeviceArray_" + name]


# ---- arrays, the high level


class Allocator:
    """Memory of another library's array, or page-locked memory, for a GPUArray."""

    def __init__(self, data, host_data=None):
        self.data, self._shape, self._dtype = data, tuple(data.shape), np.dtype(data.dtype).name
        self.host_data = np.empty(self._shape, self._dtype) if host_data is None else host_data

    def ptr(self):
        inner = getattr(self.data, "data", self.data)
        pointer = getattr(self.data, "ptr", getattr(inner, "ptr", None))
        return int(pointer() if callable(pointer) else pointer)

    def host_ptr(self):
        return self.host_data.ctypes.data


class PagelockedAllocator:
    """Page-locked host memory, which the device reaches at the same address."""

    def __init__(self, shape, dtype):
        self._array = gpuglue.empty_pinned(tuple(shape), dtype)
        self.shape, self.dtype = self._array.shape, self._array.dtype

    def get(self):
        return self._array

    def ptr(self):
        return self._array.ctypes.data


class HostAllocator(PagelockedAllocator):
    """Ordinary host memory."""

    def __init__(self, shape, dtype):
        self._array = np.empty(tuple(shape), dtype)
        self.shape, self.dtype = self._array.shape, self._array.dtype


class GPUArray:
    """A device array with its host mirror, which is the array that was handed in."""

    __hash__ = None  # type: ignore

    def __init__(self, *args, **kwargs):
        allocator = kwargs.get("allocator")
        if allocator is not None:
            if args or "shape" in kwargs or "dtype" in kwargs:
                raise RuntimeError("when the allocator is given it must be the only argument")
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
        self._array = _class_for(allocator._dtype)(allocator.host_data)
        self._array._address = allocator.ptr()
        self._array._copy(lambda: None)

    size = property(lambda self: self._array.size())
    nbytes = property(lambda self: self._array.nbytes())
    shape = property(lambda self: tuple(self._array.shape()))
    strides = property(lambda self: tuple(self._array.strides()))
    dtype = property(lambda self: np.dtype(self._array._dtype))
    host_data = property(lambda self: self._array.host_data())
    device_data = property(lambda self: self._array.device_data())
    last_status = property(lambda self: self._array.last_status())
    ptr = property(lambda self: int(self._array.device_data()))
    gpudata = property(lambda self: self._array._device)

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self.ptr)

    @property
    def __cuda_array_interface__(self):
        if gpuglue.current_device().backend not in ("cuda", "hip"):
            raise AttributeError("__cuda_array_interface__")
        flags = self._array._host.flags
        return {"shape": self.shape, "strides": self.strides if flags.fnc else None, "data": (self.ptr, False),
                "typestr": self.dtype.str, "stream": None, "version": 3}

    def allocate(self):
        self._array.allocate()

    def to_device(self):
        self._array.to_device()

    def to_gpu(self):
        """The mirror's data to the device."""
        self._array.to_device()
        return self

    def to_host(self):
        self._array.to_host()

    def get(self, copy=False):
        """The mirror, filled from the device; a copy of it if asked for."""
        self._array.to_host()
        return self._array._host.copy() if copy else self._array._host

    def set(self, host_data):
        """Other data of the same shape and type to the device, and to the mirror."""
        if host_data.shape != self.shape or host_data.dtype != self.dtype:
            raise ValueError(f"expected {self.shape} of {self.dtype}, got {host_data.shape} of {host_data.dtype}")
        self._array._host[...] = host_data
        self._array.to_device()

    def set_val(self, index, value):
        self._array.set_val(index, value)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, index):
        """A new array of that part."""
        self._array.to_host()
        part = GPUArray(np.array(self._array._host[index], order="C", ndmin=0))
        part.to_device()
        return part

    def __setitem__(self, index, value):
        self._array.to_host()
        self._array._host[index] = value.get() if isinstance(value, GPUArray) else value
        self._array.to_device()


def to_gpu(cpu_data):
    """A device array whose host mirror is cpu_data."""
    array = GPUArray(np.asarray(cpu_data))
    array.to_device()
    return array


def empty(shape, dtype="float64"):
    return GPUArray(shape, dtype=dtype)


def zeros(shape, dtype="float64"):
    return to_gpu(np.zeros(shape, dtype))
