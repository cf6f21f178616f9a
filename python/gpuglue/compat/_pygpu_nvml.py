"""PyGPU's part of NVML, on NVIDIA."""

import ctypes

from ._pygpu_errors import cudaError_t
from ._pygpu_pointers import pointer_wrapper


class nvmlReturn_t(cudaError_t):
    """A number that NVML returned; 0 is success.

    Parameters
    ----------
    code : int
        The number; 12 if NVML is not installed.

    Examples
    --------
    >>> PyGPU.nvmlReturn_t(12)
    <nvmlReturn: code=12>
    """

    def __repr__(self):
        return f"<nvmlReturn: code={self._code}>"


def _nvml(name, *arguments):
    try:
        return nvmlReturn_t(getattr(ctypes.CDLL("libnvidia-ml.so.1"), name)(*arguments))
    except (OSError, AttributeError):
        return nvmlReturn_t(12)  # NVML_ERROR_LIBRARY_NOT_FOUND


def nvmlInit():
    """Initialise NVML.

    Returns
    -------
    nvmlReturn_t
        12 if libnvidia-ml.so.1 is not installed.

    Examples
    --------
    >>> error = PyGPU.nvmlInit()
    >>> isinstance(error, PyGPU.nvmlReturn_t)
    True
    """
    return _nvml("nvmlInit_v2")


def nvmlShutdown():
    """Shut NVML down.

    Returns
    -------
    nvmlReturn_t
        12 if libnvidia-ml.so.1 is not installed.

    Examples
    --------
    >>> error = PyGPU.nvmlShutdown()
    """
    return _nvml("nvmlShutdown")


class nvmlDevice:
    """Measurements of an NVIDIA device; call `nvmlInit` first.

    Parameters
    ----------
    device : int
        NVML's index, which does not depend on CUDA_VISIBLE_DEVICES.

    Examples
    --------
    >>> device = PyGPU.nvmlDevice(0)
    >>> isinstance(device.last_status(), PyGPU.nvmlReturn_t)
    True
    """

    def __init__(self, device):
        self._handle = ctypes.c_void_p()
        self._status = _nvml("nvmlDeviceGetHandleByIndex_v2", int(device), ctypes.byref(self._handle))

    def get(self):
        """Return NVML's handle.

        Returns
        -------
        ptr_wrapper
            0 after an error.

        Examples
        --------
        >>> isinstance(PyGPU.nvmlDevice(0).get(), PyGPU.ptr_wrapper)
        True
        """
        return pointer_wrapper(self._handle.value)

    def __repr__(self):
        return f"<nvmlDevice: handle {self.get()}, {self._status}>"

    def utilization_rates(self):
        """Return how busy the device is.

        Returns
        -------
        gpu : int
            Percent of the time in which a kernel ran.
        memory : int
            Percent of the time in which memory was accessed.
        """
        rates = (ctypes.c_uint * 2)()
        self._status = _nvml("nvmlDeviceGetUtilizationRates", self._handle, rates)
        return rates[0], rates[1]

    def memory_info(self):
        """Return sizes of the memory.

        Returns
        -------
        free : int
            Free bytes.
        total : int
            Bytes of the device.
        used : int
            Used bytes.
        """
        sizes = (ctypes.c_ulonglong * 3)()  # NVML's order: total, free, used
        self._status = _nvml("nvmlDeviceGetMemoryInfo", self._handle, sizes)
        return sizes[1], sizes[0], sizes[2]

    def last_status(self):
        """Return what NVML returned last.

        Returns
        -------
        nvmlReturn_t
            0 for success.

        Examples
        --------
        >>> isinstance(PyGPU.nvmlDevice(0).last_status(), PyGPU.nvmlReturn_t)
        True
        """
        return self._status
