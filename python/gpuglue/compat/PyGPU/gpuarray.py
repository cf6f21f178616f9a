"""PyGPU.gpuarray, PybindGPU.gpuarray: the arrays and allocators, under the name of the module that defines them there."""

from .._pygpu_arrays import Allocator, GPUArray, HostAllocator, PagelockedAllocator, to_gpu
from .._pygpu_errors import SUPPORTED_DTYPES, UnsupportedDataType, dtype
from . import backend

__all__ = ["Allocator", "GPUArray", "HostAllocator", "PagelockedAllocator", "SUPPORTED_DTYPES", "UnsupportedDataType",
           "backend", "dtype", "to_gpu"]
