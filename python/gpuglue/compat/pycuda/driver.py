"""pycuda.driver: devices, contexts, memory, copies, streams, events, modules."""

from ._aligned_memory import (
    AlignedHostAllocation, aligned_empty, aligned_empty_like, aligned_zeros, aligned_zeros_like)
from ._arguments import ArgumentHandler, In, InOut, Out
from ._arrays import (
    Array, ArrayDescriptor, ArrayDescriptor3D, address_mode, array3d_flags, array_cubemap_face, array_format, dtype_to_array_format,
    filter_mode, gpuarray_to_array, make_multichannel_2d_array, matrix_to_array, memcpy_atoa, memcpy_atod, memcpy_atoh, memcpy_dtoa,
    memcpy_htoa, np_to_array)
from ._context import Context, Device
from ._copies import (
    from_device, from_device_like, memcpy_dtod, memcpy_dtod_async, memcpy_dtoh, memcpy_dtoh_async,
    memcpy_htod, memcpy_htod_async, memcpy_peer, memcpy_peer_async, to_device)
from ._debugging import set_debugging
from ._enums import (
    compute_mode, ctx_flags, device_attribute, event_flags, func_cache, function_attribute, graphics_register_flags, host_alloc_flags,
    ipc_mem_flags, jit_fallback, jit_input_type, jit_option, jit_target, mem_attach_flags, mem_host_register_flags, memory_type,
    pointer_attribute, profiler_output_mode, shared_config)
from ._errors import CompileError, Error, LaunchError, LogicError, MemoryError, RuntimeError
from ._fills import (
    memset_d2d8, memset_d2d8_async, memset_d2d16, memset_d2d16_async, memset_d2d32, memset_d2d32_async, memset_d8,
    memset_d8_async, memset_d16, memset_d16_async, memset_d32, memset_d32_async)
from ._function import Function
from ._host_memory import (
    HostAllocation, HostPointer, ManagedAllocation, PagelockedHostAllocation, RegisteredHostMemory, managed_empty,
    managed_empty_like, managed_zeros, managed_zeros_like, pagelocked_empty, pagelocked_empty_like, pagelocked_zeros,
    pagelocked_zeros_like, register_host_memory)
from ._ipc import IPCMemoryHandle, mem_get_ipc_handle
from ._limits import limit
from ._memory import (
    DeviceAllocation, PointerHolderBase, mem_alloc, mem_alloc_like, mem_alloc_pitch, mem_get_info)
from ._module import Module, module_from_buffer, module_from_file
from ._missing import refusing
from ._profiler import start_profiler, stop_profiler
from ._regions import Memcpy2D, Memcpy3D, Memcpy3DPeer
from ._stream import Event, Stream
from ._version import get_driver_version, get_version, init

__all__ = [
    "AlignedHostAllocation", "ArgumentHandler", "Array", "ArrayDescriptor", "ArrayDescriptor3D", "CompileError", "Context", "Device", "DeviceAllocation", "Error", "Event", "Function",
    "HostAllocation", "HostPointer", "IPCMemoryHandle", "In", "InOut", "LaunchError", "LogicError", "ManagedAllocation", "Memcpy2D", "Memcpy3D", "Memcpy3DPeer",
    "MemoryError", "Module", "Out", "PagelockedHostAllocation", "PointerHolderBase", "RegisteredHostMemory",
    "RuntimeError", "Stream", "aligned_empty", "aligned_empty_like", "aligned_zeros", "aligned_zeros_like",
    "address_mode", "array3d_flags", "array_cubemap_face", "array_format", "dtype_to_array_format", "filter_mode", "gpuarray_to_array",
    "make_multichannel_2d_array", "memcpy_atoa", "memcpy_atod", "memcpy_atoh", "memcpy_dtoa", "memcpy_htoa", "np_to_array",
    "compute_mode", "ctx_flags", "device_attribute", "event_flags", "from_device", "from_device_like", "func_cache",
    "function_attribute", "get_driver_version", "get_version", "graphics_register_flags", "host_alloc_flags", "init", "ipc_mem_flags",
    "jit_fallback", "jit_input_type", "jit_option", "jit_target", "limit",
    "managed_empty", "managed_empty_like", "managed_zeros", "managed_zeros_like", "matrix_to_array", "mem_alloc",
    "mem_alloc_like", "mem_alloc_pitch", "mem_attach_flags", "mem_get_info", "mem_get_ipc_handle",
    "mem_host_register_flags", "memcpy_dtod", "memcpy_dtod_async", "memcpy_dtoh", "memcpy_dtoh_async",
    "memcpy_htod", "memcpy_htod_async", "memcpy_peer", "memcpy_peer_async", "memory_type", "memset_d16",
    "memset_d16_async", "memset_d2d16", "memset_d2d16_async", "memset_d2d32", "memset_d2d32_async", "memset_d2d8",
    "memset_d2d8_async", "memset_d32", "memset_d32_async", "memset_d8", "memset_d8_async", "module_from_buffer",
    "module_from_file", "pagelocked_empty", "pagelocked_empty_like", "pagelocked_zeros", "pagelocked_zeros_like",
    "pointer_attribute", "profiler_output_mode", "register_host_memory", "set_debugging", "shared_config", "start_profiler", "stop_profiler", "to_device"]


__getattr__ = refusing(__name__)
