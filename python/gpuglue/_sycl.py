"""Devices and streams of libraries that use SYCL (torch.xpu, dpctl), and torch's devices.

SYCL's queues are C++ objects. Their native handles are what sycl::get_native returns, by two functions that libsycl exports
for it. A device of gpuglue and one of SYCL are the same if their UUIDs or their ze_device handles are equal: SYCL counts all its
devices, also those of OpenCL."""

import ctypes
import importlib
import os
import sys
import uuid
from typing import Any

from . import _core

LIBRARIES = ("libsycl.so.9", "libsycl.so.8", "libsycl.so.7")
LEVEL_ZERO = 2  # of enum class sycl::backend


def _library() -> ctypes.CDLL:
    """The copy of libsycl that the process uses."""
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:
            pass
    raise _core.UnsupportedError(f"this process has not loaded SYCL: expected one of {', '.join(LIBRARIES)}")


def _native(kind: str, address: int, *arguments: Any) -> int:
    """The native handle of the sycl::queue or sycl::device at an address."""
    length, types = len(kind), "Ri" if arguments else "v"
    try:
        backend = getattr(_library(), f"_ZNK4sycl3_V1{length}{kind}11get_backendEv")
        native = getattr(_library(), f"_ZNK4sycl3_V1{length}{kind}9getNativeE{types}")
    except AttributeError as error:
        raise _core.UnsupportedError(f"this version of SYCL returns no native handles: {error}") from None
    backend.restype, native.restype = ctypes.c_char, ctypes.c_uint64
    used = backend(ctypes.c_void_p(address))[0]
    if used != LEVEL_ZERO:
        raise _core.InvalidArgumentError(f"the SYCL {kind} uses backend {used}, expected Level Zero ({LEVEL_ZERO}): "
                                         "see ONEAPI_DEVICE_SELECTOR=level_zero:gpu")
    return int(native(ctypes.c_void_p(address), *arguments))


def _list_of(queue: int) -> int:
    """The command list of a sycl::queue."""
    immediate = ctypes.c_int32()
    handle = _native("queue", queue, ctypes.byref(immediate))
    if not immediate.value:
        raise _core.UnsupportedError("the SYCL queue is a command queue, expected an immediate command list: unset "
                                     "UR_L0_USE_IMMEDIATE_COMMANDLISTS")
    return handle


def stream(given: Any) -> "tuple[int, _core.Device]":
    """Command list and device of a stream of torch.xpu or a queue of dpctl. SYCL must run its work in order."""
    if isinstance(getattr(given, "sycl_queue", None), int):
        return _list_of(given.sycl_queue), from_torch(given.device)
    if not given.is_in_order:
        raise _core.InvalidArgumentError("the dpctl.SyclQueue is out of order, expected one with property='in_order'")
    return _list_of(given.addressof_ref()), _of_dpctl(given.sycl_device)


# ---- devices


def _of_dpctl(device: Any) -> "_core.Device":
    handle = _native("device", device.addressof_ref())
    for found in _core.devices("ze"):
        if found.native_handles[0] == handle:
            return found
    raise _core.InvalidArgumentError(f"{device} is none of gpuglue's devices: {_listed()}")


_numbers: "dict[int, int]" = {}  # of dpctl, by gpuglue's ordinal


def number(ordinal: int) -> int:
    """The position of device ze:ordinal among dpctl's devices, which dpctl expects in DLPack; -1: it has no such device."""
    if not _numbers:
        for position, device in enumerate(sys.modules["dpctl"].get_devices()):
            if "level_zero" in str(device.backend) and "gpu" in str(device.device_type):
                _numbers[_of_dpctl(device).ordinal] = position
    return _numbers.get(ordinal, -1)


def interface(array: "_core.GPUArray") -> "dict[str, Any]":
    """GPUArray.__sycl_usm_array_interface__."""
    if any(stride % array.itemsize for stride in array.strides):
        raise AttributeError(f"__sycl_usm_array_interface__ has strides in elements: got {array.strides} bytes and elements of "
                             f"{array.itemsize}")
    ordinal = array.device.ordinal
    position = number(ordinal) if "dpctl" in sys.modules else -1
    return {"shape": array.shape, "typestr": array.dtype.str, "data": (array.ptr, not array.flags.writeable),
            "strides": tuple(stride // array.itemsize for stride in array.strides), "offset": 0, "version": 1,
            "syclobj": str(position) if position >= 0 else f"level_zero:gpu:{ordinal}"}  # fmt: skip


def asarray(given: Any) -> "_core.GPUArray":
    """The array of an object with __sycl_usm_array_interface__. Its flag is read-only in dpctl's arrays, and the opposite in its memory."""
    described = given.__sycl_usm_array_interface__
    queue, strides, kind = described["syclobj"], described.get("strides"), described["typestr"]
    itemsize = int(kind[2:])
    if not hasattr(queue, "sycl_device"):
        raise _core.UnsupportedError(f"the syclobj of __sycl_usm_array_interface__ is {queue!r}, expected a dpctl.SyclQueue")
    return _core.asarray(described["data"][0] + described.get("offset", 0) * itemsize, kind, shape=described["shape"], owner=given,
                         strides=strides and tuple(stride * itemsize for stride in strides), device=_of_dpctl(queue.sycl_device))


def _listed() -> str:
    return ", ".join(f"ze:{found.ordinal} has {found.uuid}" for found in _core.devices("ze"))


def _of_xpu(torch: Any, index: int) -> "_core.Device":
    properties = torch.xpu.get_device_properties(index)
    if not hasattr(properties, "uuid"):
        raise _core.UnsupportedError(f"torch {torch.__version__} does not report the UUID of xpu:{index}: use a newer one, or name the "
                                     "device, such as gg.Device('ze:0')")
    wanted = str(uuid.UUID(bytes=bytes(properties.uuid.bytes)))
    for found in _core.devices("ze"):
        if found.uuid == wanted:
            return found
    raise _core.InvalidArgumentError(f"xpu:{index} has UUID {wanted}, and {_listed()}: torch and gpuglue use different drivers or "
                                     "settings, see ZE_AFFINITY_MASK, ZE_FLAT_DEVICE_HIERARCHY and ONEAPI_DEVICE_SELECTOR")


def from_torch(given: Any) -> "_core.Device":
    """Device.from_torch."""
    torch = importlib.import_module("torch")
    device = torch.device(getattr(given, "device", given))
    kind, index = device.type, device.index
    if kind == "cpu":
        return _core.Device("host:0")
    if kind not in ("cuda", "xpu"):
        raise _core.InvalidArgumentError(f"gpuglue has no backend for torch's device {str(device)!r}: expected cuda, xpu or cpu")
    if index is None:
        index = getattr(torch, kind).current_device()
    if kind == "xpu":
        return _of_xpu(torch, index)
    return _core.Device(f"{'hip' if torch.version.hip else 'cuda'}:{index}")
