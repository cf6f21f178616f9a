"""PyGPU's errors: numbers of CUDA's runtime on every backend; nothing is raised."""

import gpuglue

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


def take_last():
    """The last failure, which is then forgotten."""
    global _last
    last, _last = _last, _SUCCESS
    return cudaError_t(last)


def failed(code):
    """Note a failure that no driver was asked about."""
    global _last
    _last = code
    return cudaError_t(code)
