"""PyGPU.backend, PybindGPU.backend: the names that PybindGPU's compiled module defines."""

from .. import PyGPU

__all__ = [
    "cudaDeviceProp", "cudaDeviceReset", "cudaDeviceSynchronize", "cudaError_t", "cudaEventElapsedTime",
    "cudaEventRecord", "cudaEventSynchronize", "cudaEvent_t", "cudaGetDevice", "cudaGetDeviceCount", "cudaGetErrorName",
    "cudaGetErrorString", "cudaGetLastError", "cudaSetDevice", "cudaStream_t", "cuda_enabled", "dtype", "major_version",
    "minor_version", "nvmlDevice", "nvmlInit", "nvmlReturn_t", "nvmlShutdown", "release_version", "use_hip",
    *(kind + name for kind in ("DeviceAllocator_", "DeviceArray_", "HostAllocator_", "PagelockedAllocator_", "ptr_wrapper_")
      for name in PyGPU.SUPPORTED_DTYPES)]


def __getattr__(name):
    if name in __all__:
        return getattr(PyGPU, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
