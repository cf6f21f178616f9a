"""PyGPU's devices and their properties, and the last error."""

import ctypes
import struct

import gpuglue
from gpuglue import _rtc

from ._pygpu_errors import _INVALID_DEVICE, _NAMES, _attempt, failed, take_last
from ._pygpu_pointers import pointer_wrapper

# The fields of CUDA's struct: where they are until CUDA 12, and in HIP since 6; where they are since CUDA 13; format; attributes.
_FIELDS = [tuple(line.split()) for line in """\
296 296 Q shared_memory_per_block
304 304 i registers_per_block
308 308 i warp_size
320 320 i max_threads_per_block
324 324 6i max_block_x max_block_y max_block_z max_grid_x max_grid_y max_grid_z
348 - i clock_khz
352 352 Q constant_memory
360 360 2i compute_major compute_minor
388 384 i multiprocessors
576 560 2i concurrent_kernels ecc
600 584 i async_engines
608 - 2i memory_clock_khz memory_bus_width
- 592 i memory_bus_width
616 596 i l2_cache_size
624 604 i threads_per_multiprocessor
640 624 Q shared_memory_per_multiprocessor
648 632 2i registers_per_multiprocessor managed_memory
688 668 i cooperative_launch
696 672 Q shared_memory_optin""".split("\n")]


def _device(number):
    return gpuglue.Device(int(number))


def cudaSetDevice(device):
    """Make a device current in this thread.

    Parameters
    ----------
    device : int
        Number of the device.

    Returns
    -------
    cudaError_t
        101 if there is no such device.

    Examples
    --------
    >>> PyGPU.cudaSetDevice(0)
    <cudaError: code=0>
    """
    def use():
        count = len(gpuglue.devices(gpuglue.default_backend()))
        if not 0 <= int(device) < count:
            raise IndexError
        _device(device).set_current()

    try:
        return _attempt(use)[1]
    except IndexError:
        return failed(_INVALID_DEVICE)


def cudaGetDevice():
    """Return the current device.

    Returns
    -------
    device : int
        Its number; -1 after an error.
    error : cudaError_t
        0 for success.

    Examples
    --------
    >>> device, error = PyGPU.cudaGetDevice()
    >>> error == 0
    True
    """
    device, error = _attempt(gpuglue.current_device)
    return (device.ordinal if device is not None else -1), error


def cudaGetDeviceCount():
    """Count the devices of the default backend.

    Returns
    -------
    count : int
        Their number.
    error : cudaError_t
        0 for success.

    Examples
    --------
    >>> count, error = PyGPU.cudaGetDeviceCount()
    >>> count >= 1
    True
    """
    devices, error = _attempt(lambda: gpuglue.devices(gpuglue.default_backend()))
    return len(devices or ()), error


def cudaDeviceSynchronize():
    """Wait for all work of the current device.

    Returns
    -------
    cudaError_t
        The error of work that failed, or 0.

    Examples
    --------
    >>> PyGPU.cudaDeviceSynchronize()
    <cudaError: code=0>
    """
    return _attempt(gpuglue.synchronize)[1]


def cudaDeviceReset():
    """Wait for the current device.

    The context is shared within the process, so it is not destroyed.

    Returns
    -------
    cudaError_t
        The error of work that failed, or 0.

    Examples
    --------
    >>> PyGPU.cudaDeviceReset()
    <cudaError: code=0>
    """
    return cudaDeviceSynchronize()


def cudaGetLastError():
    """Return the last error and reset it.

    Returns
    -------
    cudaError_t
        0 if there was none.

    Examples
    --------
    >>> error = PyGPU.cudaSetDevice(1000)
    >>> PyGPU.cudaGetLastError() == error, PyGPU.cudaGetLastError() == 0
    (True, True)
    """
    return take_last()


def cudaGetErrorName(error):
    """Return the name of an error.

    Parameters
    ----------
    error : cudaError_t or int
        The error.

    Returns
    -------
    str
        CUDA's name.

    Examples
    --------
    >>> PyGPU.cudaGetErrorName(2)
    'cudaErrorMemoryAllocation'
    """
    return _NAMES.get(int(error), ("unrecognized error code",))[0]


def cudaGetErrorString(error):
    """Return the description of an error.

    Parameters
    ----------
    error : cudaError_t or int
        The error.

    Returns
    -------
    str
        CUDA's text.

    Examples
    --------
    >>> PyGPU.cudaGetErrorString(0)
    'no error'
    """
    return _NAMES.get(int(error), ("", "unrecognized error code"))[1]


class cudaDeviceProp:
    """The properties of a device.

    Parameters
    ----------
    device : int
        Number of the device. If there is none, `last_status` returns the error.

    Examples
    --------
    >>> PyGPU.cudaDeviceProp(0).name() == gg.Device(0).name
    True
    """

    def __init__(self, device):
        self._device, self._status = _attempt(_device, device)
        self._struct = None

    def __repr__(self):
        return f"<cudaDeviceProp: {self.name() or self._status}>"

    def _pci(self, part):
        text = self._device.pci_bus_id if self._device is not None else ""
        domain, _, rest = (text or "0000:00:00.0").partition(":")
        bus, _, place = rest.partition(":")
        return int({"domain": domain, "bus": bus, "device": place.partition(".")[0]}[part], 16)

    def _fill(self, memory):
        device, newer = self._device, False
        if device.backend == "cuda":
            try:
                newer = _rtc.nvrtc.version()[0] > 12
            except LookupError:
                pass
        struct.pack_into("255sx16s16xQ", memory, 0, self.name().encode(), bytes.fromhex(self.uuid()), device.total_memory)
        struct.pack_into("3i", memory, 568 if newer else 584, self.pciBusID(), self.pciDeviceID(), self.pciDomainID())
        for old, new, form, *names in _FIELDS:
            at = new if newer else old
            if at != "-":
                struct.pack_into(form, memory, int(at), *(min(device.attributes.get(name, 0), 2**31 - 1) for name in names))

    def get(self):
        """Return the struct of CUDA's runtime, filled with what gpuglue knows of the device.

        Returns
        -------
        pointer_wrapper
            Points to the struct of CUDA 13 where NVRTC is of CUDA 13, else of CUDA 12, which HIP has since 6.

        Examples
        --------
        >>> PyGPU.cudaDeviceProp(0).get().is_safe()
        True
        """
        if self._struct is None:
            self._struct = ctypes.create_string_buffer(1472)
            if self._device is not None:
                self._fill(self._struct)
        return pointer_wrapper(ctypes.addressof(self._struct), True, self._struct)

    def name(self):
        """Return the name of the device.

        Returns
        -------
        str
            The driver's name; '' after an error.

        Examples
        --------
        >>> isinstance(PyGPU.cudaDeviceProp(0).name(), str)
        True
        """
        return (self._device.name if self._device is not None else None) or ""

    def uuid(self):
        """Return the UUID.

        Returns
        -------
        str
            32 hexadecimal digits, or ''.

        Examples
        --------
        >>> len(PyGPU.cudaDeviceProp(0).uuid()) in (0, 32)
        True
        """
        return str(self._device.uuid or "").replace("-", "").removeprefix("GPU") if self._device is not None else ""

    def pciBusID(self):
        """Return the bus of the PCI address.

        Returns
        -------
        int
            0 if the device has no address.

        Examples
        --------
        >>> PyGPU.cudaDeviceProp(0).pciBusID() >= 0
        True
        """
        return self._pci("bus")

    def pciDeviceID(self):
        """Return the device of the PCI address.

        Returns
        -------
        int
            0 if the device has no address.

        Examples
        --------
        >>> PyGPU.cudaDeviceProp(0).pciDeviceID() >= 0
        True
        """
        return self._pci("device")

    def pciDomainID(self):
        """Return the domain of the PCI address.

        Returns
        -------
        int
            0 if the device has no address.

        Examples
        --------
        >>> PyGPU.cudaDeviceProp(0).pciDomainID() >= 0
        True
        """
        return self._pci("domain")

    def last_status(self):
        """Return whether the device was found.

        Returns
        -------
        cudaError_t
            0 if it was.

        Examples
        --------
        >>> PyGPU.cudaDeviceProp(0).last_status()
        <cudaError: code=0>
        """
        return self._status
