"""PyGPU (PybindGPU) on gpuglue: `import PyGPU as gpuarray` after gpuglue.compat.install("PyGPU").

Nothing here raises for what a driver refuses: each call answers with a cudaError_t, or with a value and one.
The numbers are those of CUDA's runtime, whatever the backend is. Host sides of arrays are the buffers that
were handed in; device sides are gpuglue's Buffers."""

import ctypes

import numpy as np

import gpuglue
from gpuglue import _core

major_version, minor_version, release_version = 0, 2, 0
SUPPORTED_DTYPES = ("int16", "int32", "int64", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128")

_SUCCESS, _INVALID_VALUE, _NO_MEMORY, _NOT_READY, _UNSUPPORTED = 0, 1, 2, 600, 801
_NO_DEVICE, _INVALID_DEVICE, _LAUNCH_FAILURE, _UNKNOWN, _INVALID_HANDLE = 100, 101, 719, 999, 400
_NAMES = {
    _SUCCESS: ("cudaSuccess", "no error"), _INVALID_VALUE: ("cudaErrorInvalidValue", "invalid argument"),
    _NO_MEMORY: ("cudaErrorMemoryAllocation", "out of memory"), _NOT_READY: ("cudaErrorNotReady", "device not ready"),
    _NO_DEVICE: ("cudaErrorNoDevice", "no CUDA-capable device is detected"),
    _INVALID_DEVICE: ("cudaErrorInvalidDevice", "invalid device ordinal"),
    700: ("cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    _LAUNCH_FAILURE: ("cudaErrorLaunchFailure", "unspecified launch failure"),
    _UNSUPPORTED: ("cudaErrorNotSupported", "operation not supported"),
    _INVALID_HANDLE: ("cudaErrorInvalidResourceHandle", "invalid resource handle"),
    _UNKNOWN: ("cudaErrorUnknown", "unknown error")}
_last = _SUCCESS


class UnsupportedDataType(Exception):
    """No DeviceArray has this type."""


class cudaError_t:
    """A number of CUDA's runtime."""

    def __init__(self, code):
        self._code = int(code)

    def as_int(self):
        return self._code

    __int__ = as_int

    def __eq__(self, other):
        return self._code == int(other) if isinstance(other, (cudaError_t, int)) else NotImplemented

    def __hash__(self):
        return hash(self._code)

    def __repr__(self):
        return f"<cudaError: code={self._code}>"


def _code_of(error):
    """The runtime's number for what was raised. The two drivers that are mirror images use the same ones."""
    if getattr(error, "code", None) and getattr(error, "backend", None) in ("cuda", "hip"):
        return int(error.code)
    for kind, code in ((gpuglue.OutOfMemoryError, _NO_MEMORY), (gpuglue.BackendUnavailableError, _NO_DEVICE),
                       (gpuglue.UnsupportedError, _UNSUPPORTED), (gpuglue.DeviceLostError, _LAUNCH_FAILURE),
                       (gpuglue.InvalidArgumentError, _INVALID_VALUE), (ValueError, _INVALID_VALUE)):
        if isinstance(error, kind):
            return code
    status = getattr(error, "status", "") or ""
    return _INVALID_DEVICE if "DEVICE" in status and "SUCH" in status else _UNKNOWN


def _attempt(function, *arguments):
    """(result or None, cudaError_t)"""
    global _last
    try:
        return function(*arguments), cudaError_t(_SUCCESS)
    except (gpuglue.Error, ValueError, MemoryError) as error:
        _last = _code_of(error)
        return None, cudaError_t(_last)


# ---- devices


def _device(number):
    return gpuglue.Device(int(number))


def cudaSetDevice(device):
    def use():
        count = len(gpuglue.devices(gpuglue.default_backend()))
        if not 0 <= int(device) < count:
            raise IndexError
        _device(device).use()

    try:
        return _attempt(use)[1]
    except IndexError:
        global _last
        _last = _INVALID_DEVICE
        return cudaError_t(_INVALID_DEVICE)


def cudaGetDevice():
    device, error = _attempt(gpuglue.current_device)
    return (device.ordinal if device is not None else -1), error


def cudaGetDeviceCount():
    devices, error = _attempt(lambda: gpuglue.devices(gpuglue.default_backend()))
    return len(devices or ()), error


def cudaDeviceSynchronize():
    return _attempt(gpuglue.synchronize)[1]


def cudaDeviceReset():
    """The context is shared with everyone in the process, so it stays; its work is waited for."""
    return cudaDeviceSynchronize()


def cudaGetLastError():
    global _last
    last, _last = _last, _SUCCESS
    return cudaError_t(last)


def cudaGetErrorName(error):
    return _NAMES.get(int(error), ("unrecognized error code",))[0]


def cudaGetErrorString(error):
    return _NAMES.get(int(error), ("", "unrecognized error code"))[1]


class cudaDeviceProp:
    """Facts of a device."""

    def __init__(self, device):
        self._device, self._status = _attempt(_device, device)

    def _pci(self, part):
        text = self._device.pci_bus_id if self._device is not None else ""
        domain, _, rest = (text or "0000:00:00.0").partition(":")
        bus, _, place = rest.partition(":")
        return int({"domain": domain, "bus": bus, "device": place.partition(".")[0]}[part], 16)

    def name(self):
        return self._device.name if self._device is not None else ""

    def uuid(self):
        """32 hexadecimal digits."""
        return str(self._device.uuid or "").replace("-", "").removeprefix("GPU") if self._device is not None else ""

    def pciBusID(self):
        return self._pci("bus")

    def pciDeviceID(self):
        return self._pci("device")

    def pciDomainID(self):
        return self._pci("domain")

    def last_status(self):
        return self._status


# ---- streams and events


class _Handle:
    def get(self):
        return pointer_wrapper(self._object.handle if self._object is not None else 0, False)

    def last_status(self):
        return self._status


class cudaStream_t(_Handle):
    """A stream; flags as of cudaStreamCreateWithFlags: 1 is non-blocking."""

    def __init__(self, flags=0, priority=0):
        self._object, self._status = _attempt(lambda: gpuglue.Stream(nonblocking=bool(flags & 1), priority=priority))


class cudaEvent_t(_Handle):
    """An event; flags as of cudaEventCreateWithFlags: 1 is blocking, 2 is without timing."""

    def __init__(self, flags=0):
        self._object, self._status = _attempt(
            lambda: gpuglue.Event(timing=not flags & 2, blocking=bool(flags & 1)))


def _status_of(handle, function):
    if handle._object is None:
        return cudaError_t(_INVALID_HANDLE)
    handle._status = _attempt(function)[1]
    return handle._status


def cudaEventRecord(event, stream=None):
    return _status_of(event, lambda: (stream._object if stream is not None else gpuglue.current_stream())
                      .record(event._object))


def cudaEventSynchronize(event):
    return _status_of(event, event._object.synchronize if event._object else None)


def _query(handle):
    status = _status_of(handle, lambda: handle._object.done)
    return status if int(status) or handle._object is None or handle._object.done else cudaError_t(_NOT_READY)


def cudaEventQuery(event):
    return _query(event)


def cudaEventElapsedTime(start, end):
    """(milliseconds, error)"""
    ms, error = _attempt(lambda: end._object.elapsed_since(start._object))
    return (ms if ms is not None else 0.0), error


def cudaStreamSynchronize(stream):
    return _status_of(stream, stream._object.synchronize if stream._object else None)


def cudaStreamQuery(stream):
    return _query(stream)


def cudaStreamWaitEvent(stream, event, flags=0):
    return _status_of(stream, lambda: stream._object.wait(event._object))


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
        if self._device is None:
            self._status = cudaError_t(_INVALID_VALUE)
        elif not self._host.flags.forc:
            self._status = cudaError_t(_INVALID_VALUE)
        else:
            self._status = _attempt(function)[1]

    def to_device(self):
        self._copy(lambda: _core._copy_bytes(self._device, 0, self._host, 0, self._host.nbytes, None, False))

    def to_host(self):
        self._copy(lambda: _core._copy_bytes(self._host, 0, self._device, 0, self._host.nbytes, None, False))

    def set_val(self, index, value):
        """One element of the device side."""
        element = np.array(value, self._host.dtype)
        offset = int(index) * element.nbytes
        self._copy(lambda: _core._copy_bytes(self._device, offset, element, 0, element.nbytes, None, False))

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
    if name not in SUPPORTED_DTYPES:
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

    __hash__ = None

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
        contiguous = self._array._host.flags.c_contiguous
        return {"shape": self.shape, "strides": None if contiguous else self.strides, "data": (self.ptr, False),
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


# ---- NVML, where the vendor has it


class nvmlReturn_t(cudaError_t):
    def __repr__(self):
        return f"<nvmlReturn: code={self._code}>"


def _nvml(name, *arguments):
    try:
        return nvmlReturn_t(getattr(ctypes.CDLL("libnvidia-ml.so.1"), name)(*arguments))
    except (OSError, AttributeError):
        return nvmlReturn_t(12)  # NVML_ERROR_LIBRARY_NOT_FOUND


def nvmlInit():
    return _nvml("nvmlInit_v2")


def nvmlShutdown():
    return _nvml("nvmlShutdown")


class nvmlDevice:
    """Readings of a device by NVML's number."""

    def __init__(self, device):
        self._handle = ctypes.c_void_p()
        self._status = _nvml("nvmlDeviceGetHandleByIndex_v2", int(device), ctypes.byref(self._handle))

    def utilization_rates(self):
        """(gpu, memory) in percent."""
        rates = (ctypes.c_uint * 2)()
        self._status = _nvml("nvmlDeviceGetUtilizationRates", self._handle, rates)
        return rates[0], rates[1]

    def memory_info(self):
        """(free, total, used) in bytes."""
        sizes = (ctypes.c_ulonglong * 3)()  # NVML's order: total, free, used
        self._status = _nvml("nvmlDeviceGetMemoryInfo", self._handle, sizes)
        return sizes[1], sizes[0], sizes[2]

    def last_status(self):
        return self._status


def __getattr__(name):
    if name in ("use_hip", "cuda_enabled"):
        backend = gpuglue.default_backend()
        return backend == "hip" if name == "use_hip" else backend == "cuda"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
