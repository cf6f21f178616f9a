"""PyGPU's errors, which are numbers of CUDA's runtime on every backend and are not raised, and its types."""

import enum
import types

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


class dtype(enum.IntEnum):
    """The types of elements: those of SUPPORTED_DTYPES, by number, and their names in C with the suffix _alias."""

    int16 = short_alias = 0
    int32 = int_alias = 1
    int64 = long_alias = 2
    uint16 = unsigned_short_alias = 3
    uint32 = unsigned_alias = unsigned_int_alias = 4
    uint64 = unsigned_long_alias = 5
    float32 = float_alias = 6
    float64 = double_alias = 7
    complex64 = complex64_alias = 8
    complex128 = complex128_alias = 9


dtype.__size__ = types.SimpleNamespace(name="__size__", value=len(dtype))  # type: ignore # an enum has no such member


class UnsupportedDataType(Exception):
    """No DeviceArray supports this dtype."""


class cudaError_t:
    """An error number of CUDA's runtime; 0 is success.

    It is equal to an int of the same number.

    Parameters
    ----------
    code : int
        The number.

    Examples
    --------
    >>> PyGPU.cudaError_t(2)
    <cudaError: code=2>
    """

    def __init__(self, code):
        self._code = int(code)

    def as_int(self):
        """Return the number.

        Returns
        -------
        int
            The same as ``int(error)``.

        Examples
        --------
        >>> PyGPU.cudaError_t(2).as_int()
        2
        """
        return self._code

    __int__ = as_int

    def __eq__(self, other):
        return self._code == int(other) if isinstance(other, (cudaError_t, int)) else NotImplemented

    def __hash__(self):
        return hash(self._code)

    def __repr__(self):
        return f"<cudaError: code={self._code}>"


def _code_of(error):
    """The runtime's number for an exception. CUDA and HIP use the same numbers."""
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
    """The last error, which is then reset."""
    global _last
    last, _last = _last, _SUCCESS
    return cudaError_t(last)


def failed(code):
    """Record an error that was found without a driver call."""
    global _last
    _last = code
    return cudaError_t(code)
