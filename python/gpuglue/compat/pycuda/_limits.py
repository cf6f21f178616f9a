"""Limits of a context. The driver has them, and gpuglue has no function for them."""

import ctypes
import functools

import gpuglue

from ._enums import _Number
from ._errors import LogicError

_FUNCTIONS = {"cuda": ("cuCtxGetLimit", "cuCtxSetLimit"), "hip": ("hipDeviceGetLimit", "hipDeviceSetLimit")}


class limit(_Number):
    """Limits of a context."""

    STACK_SIZE = 0
    PRINTF_FIFO_SIZE = 1
    MALLOC_HEAP_SIZE = 2
    DEV_RUNTIME_SYNC_DEPTH = 3
    DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4
    MAX_L2_FETCH_GRANULARITY = 5
    PERSISTING_L2_CACHE_SIZE = 6


@functools.lru_cache(maxsize=None)
def _driver(backend):
    path = next(record.library for record in gpuglue.backends() if record.name == backend)
    return ctypes.CDLL(path)


def _call(name, which, *args):
    device = gpuglue.current_device()
    function = getattr(_driver(device.backend), name, None)
    if function is None:
        raise LogicError(f"the driver of {device} is older than its function {name}")
    with device:
        code = function(*args)
    if code:
        raise LogicError(f"{device} refuses the limit {which!r}: {name} returned error {code}")


def get(which):
    backend = gpuglue.current_device().backend
    if backend not in _FUNCTIONS:
        raise LogicError(f"{backend} has no limits: do without, its kernels allocate and print as programs of the host do")
    value = ctypes.c_size_t()
    _call(_FUNCTIONS[backend][0], which, ctypes.byref(value), ctypes.c_int(which))
    return value.value


def set(which, value):  # noqa: A001
    backend = gpuglue.current_device().backend
    if backend in _FUNCTIONS:
        _call(_FUNCTIONS[backend][1], which, ctypes.c_int(which), ctypes.c_size_t(value))
