"""PyGPU (PybindGPU) on gpuglue: `import PyGPU as gpuarray` after gpuglue.compat.install("PyGPU").

Nothing here raises for what a driver refuses: each call answers with a cudaError_t, or with a value and one.
The numbers are those of CUDA's runtime, whatever the backend is. Host sides of arrays are the buffers that
were handed in; device sides are gpuglue's Buffers."""

import ctypes

import gpuglue

from . import _pygpu_arrays
from ._pygpu_arrays import *  # noqa: F403
from ._pygpu_arrays import Allocator, GPUArray, HostAllocator, PagelockedAllocator, pointer_wrapper, to_gpu  # noqa: F401
from ._pygpu_errors import (  # noqa: F401
    _INVALID_DEVICE, _INVALID_HANDLE, _NAMES, _NOT_READY, SUPPORTED_DTYPES, UnsupportedDataType, _attempt, cudaError_t,
    failed, take_last)

for _dtype in SUPPORTED_DTYPES:
    for _kind in ("DeviceArray_", "pointer_wrapper_"):
        globals()[_kind + _dtype] = getattr(_pygpu_arrays, _kind + _dtype)

major_version, minor_version, release_version = 0, 2, 0
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
        return failed(_INVALID_DEVICE)


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
    return take_last()


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


def _status_of(function, *handles):
    """What came of function(their objects...), which the first handle remembers. None is the current stream; a
    handle that was never made is refused."""
    if any(handle is not None and handle._object is None for handle in handles):
        return failed(_INVALID_HANDLE)
    _, handles[0]._status = _attempt(lambda: function(*(
        handle._object if handle is not None else gpuglue.current_stream() for handle in handles)))
    return handles[0]._status


def cudaEventRecord(event, stream=None):
    return _status_of(lambda mine, where: where.record(mine), event, stream)


def cudaEventSynchronize(event):
    return _status_of(lambda mine: mine.synchronize(), event)


def _query(handle):
    done = []
    status = _status_of(lambda mine: done.append(mine.done), handle)
    return status if int(status) or done[0] else cudaError_t(_NOT_READY)


def cudaEventQuery(event):
    return _query(event)


def cudaEventElapsedTime(start, end):
    """(milliseconds, error)"""
    took = []
    error = _status_of(lambda first, last: took.append(last.elapsed_since(first)), start, end)
    return (took[0] if took else 0.0), error


def cudaStreamSynchronize(stream):
    return _status_of(lambda mine: mine.synchronize(), stream)


def cudaStreamQuery(stream):
    return _query(stream)


def cudaStreamWaitEvent(stream, event, flags=0):
    return _status_of(lambda mine, what: mine.wait(what), stream, event)


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
