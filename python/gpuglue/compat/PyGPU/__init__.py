"""PyGPU (PybindGPU) on gpuglue: `import PyGPU as gpuarray` after gpuglue.compat.install("PyGPU").

A driver's error is not raised: each call returns a cudaError_t, or a value and a cudaError_t. The numbers are those
of CUDA's runtime on every backend. The host side of an array is the buffer that was passed in; the device side is a
gpuglue Buffer."""

import gpuglue

from .. import _pygpu_allocators, _pygpu_device_arrays, _pygpu_devices, _pygpu_nvml, _pygpu_pointers, _pygpu_streams
from .._pygpu_arrays import (  # noqa: F401
    Allocator, GPUArray, HostAllocator, PagelockedAllocator, empty, to_gpu, zeros)
from .._pygpu_devices import (  # noqa: F401
    cudaDeviceProp, cudaDeviceReset, cudaDeviceSynchronize, cudaGetDevice, cudaGetDeviceCount, cudaGetErrorName,
    cudaGetErrorString, cudaGetLastError, cudaSetDevice)
from .._pygpu_errors import SUPPORTED_DTYPES, UnsupportedDataType, cudaError_t, dtype  # noqa: F401
from .._pygpu_nvml import nvmlDevice, nvmlInit, nvmlReturn_t, nvmlShutdown  # noqa: F401
from .._pygpu_pointers import pointer_wrapper, ptr_wrapper  # noqa: F401
from .._pygpu_streams import (  # noqa: F401
    cudaEvent_t, cudaEventElapsedTime, cudaEventQuery, cudaEventRecord, cudaEventSynchronize, cudaStream_t,
    cudaStreamQuery, cudaStreamSynchronize, cudaStreamWaitEvent)

for _file, *_kinds in ((_pygpu_allocators, "DeviceAllocator_", "HostAllocator_", "PagelockedAllocator_"),
                       (_pygpu_device_arrays, "DeviceArray_"), (_pygpu_pointers, "pointer_wrapper_", "ptr_wrapper_")):
    for _name in [_kind + _dtype for _kind in _kinds for _dtype in SUPPORTED_DTYPES]:
        globals()[_name] = getattr(_file, _name)
for _value in [*globals().values()]:  # a name that users see, and that a pickle has
    if getattr(_value, "__module__", None) in (_pygpu_devices.__name__, _pygpu_nvml.__name__, _pygpu_streams.__name__):
        _value.__module__ = __name__

major_version, minor_version, release_version = 0, 2, 1


def __getattr__(name):
    if name in ("use_hip", "cuda_enabled"):
        backend = gpuglue.default_backend()
        return backend == "hip" if name == "use_hip" else backend == "cuda"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
