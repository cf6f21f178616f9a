"""PyGPU's low-level arrays: DeviceArray_<dtype>, the host side of which is the buffer that was passed in."""

import ctypes

import numpy as np

import gpuglue
from gpuglue import _core

from . import _pygpu_pointers
from ._pygpu_errors import _INVALID_VALUE, _SUCCESS, SUPPORTED_DTYPES, UnsupportedDataType, _attempt, cudaError_t
from ._pygpu_pointers import pointer_wrapper


class _DeviceArray:
    """A host array, and memory of the same size on the device once it is allocated.

    Parameters
    ----------
    *args : object
        The host array, which is shared; or a number of elements; or a shape; or a pointer to existing host memory and a
        shape; or the addresses of existing host memory and device memory, and a shape. True after a shape is C order.
    **kwargs : object
        The same by name: ``a`` is the pointer, ``host_addr`` and ``device_addr`` the addresses, ``l`` the shape,
        ``flag_c_contiguous`` whether it is in C order.

    Raises
    ------
    TypeError
        If the array has another dtype, or the pointer is not safe to read.

    Notes
    -----
    No method raises a driver's error: `last_status` returns it.

    Examples
    --------
    >>> array = PyGPU.DeviceArray_float64(np.arange(3.0))
    >>> array.allocate()
    >>> array.to_device()
    >>> array.last_status()
    <cudaError: code=0>
    """

    _dtype = None

    def __init__(self, *args, **kwargs):
        self._status = cudaError_t(_SUCCESS)
        self._device, self._address = None, 0
        buffer, *more = self._owners = self._positional(args, kwargs)  # pointers keep their memory
        if isinstance(buffer, (list, tuple)):
            self._host = np.empty(tuple(buffer), self._dtype, order="C" if not more or more[0] else "F")
        elif len(more) >= 2 and isinstance(more[1], (list, tuple)):
            self._host, self._address = _existing(int(buffer), more[1], self._dtype, more[2:], buffer), int(more[0])
        elif isinstance(buffer, pointer_wrapper):
            if not buffer.is_safe() or not more:
                raise TypeError(f"DeviceArray_{self._dtype}: expected a pointer to host memory, then a shape, got {buffer!r}")
            self._host = _existing(int(buffer), more[0], self._dtype, more[1:], buffer)
        elif isinstance(buffer, (int, np.integer)):
            self._host = np.empty(int(buffer), self._dtype)
        else:
            self._host = np.asarray(buffer)
        if self._host.dtype != self._dtype:
            raise TypeError(f"DeviceArray_{self._dtype}: the buffer is of {self._host.dtype}")

    def _positional(self, args, kwargs):
        """The arguments in the order of the form that has the names of kwargs after args."""
        for form in (("l", "flag_c_contiguous"), ("a", "l", "flag_c_contiguous"),
                     ("host_addr", "device_addr", "l", "flag_c_contiguous")):
            rest = form[len(args):len(args) + len(kwargs)]
            if (args or kwargs) and {*rest} == {*kwargs}:
                return [*args, *(kwargs[name] for name in rest)]
        raise TypeError(f"DeviceArray_{self._dtype}: expected (array), (size), (l, flag_c_contiguous=1), "
                        "(a, l, flag_c_contiguous=1) or (host_addr, device_addr, l, flag_c_contiguous=1), got "
                        f"{len(args)} arguments and {', '.join(kwargs) or 'no names'}")

    def size(self):
        """Return the number of elements.

        Returns
        -------
        int
            The number.

        Examples
        --------
        >>> PyGPU.DeviceArray_float64([2, 3]).size()
        6
        """
        return self._host.size

    def nbytes(self):
        """Return the size in bytes.

        Returns
        -------
        int
            Bytes of all elements.

        Examples
        --------
        >>> PyGPU.DeviceArray_float64([2, 3]).nbytes()
        48
        """
        return self._host.nbytes

    def shape(self):
        """Return the length of each dimension.

        Returns
        -------
        list of int
            The lengths.

        Examples
        --------
        >>> PyGPU.DeviceArray_float64([2, 3]).shape()
        [2, 3]
        """
        return list(self._host.shape)

    def ndim(self):
        """Return the number of dimensions.

        Returns
        -------
        int
            The number.

        Examples
        --------
        >>> PyGPU.DeviceArray_float64([2, 3]).ndim()
        2
        """
        return self._host.ndim

    def strides(self):
        """Return the bytes between elements per dimension.

        Returns
        -------
        list of int
            Those of the host array.

        Examples
        --------
        >>> PyGPU.DeviceArray_float64([2, 3]).strides()
        [24, 8]
        """
        return list(self._host.strides)

    def host_data(self):
        """Return the address of the host array.

        Returns
        -------
        pointer_wrapper
            It keeps the array alive, and is safe to read.

        Examples
        --------
        >>> PyGPU.DeviceArray_float64([3]).host_data().is_safe()
        True
        """
        return getattr(_pygpu_pointers, "pointer_wrapper_" + self._dtype)(self._host.ctypes.data, True, self._host)

    def device_data(self):
        """Return the address of the device memory.

        Returns
        -------
        pointer_wrapper
            0 before `allocate`.

        Examples
        --------
        >>> int(PyGPU.DeviceArray_float64([3]).device_data())
        0
        """
        address = self._device.ptr if self._device is not None else self._address
        return getattr(_pygpu_pointers, "pointer_wrapper_" + self._dtype)(address, False, (self._device, self._owners))

    def last_status(self):
        """Return the result of the last method that used the driver.

        Returns
        -------
        cudaError_t
            0 if it succeeded.

        Examples
        --------
        >>> PyGPU.DeviceArray_float64([3]).last_status() == 0
        True
        """
        return self._status

    def allocate(self):
        """Allocate memory of the same size on the current device.

        Examples
        --------
        >>> array = PyGPU.DeviceArray_float64([3])
        >>> array.allocate()
        >>> int(array.device_data()) != 0
        True
        """
        device, self._status = _attempt(gpuglue.alloc, self._host.nbytes)
        self._device = device

    def allocated(self):
        """Return whether the array has allocated memory of the device.

        Returns
        -------
        bool
            False before `allocate`, and with memory at an address that was passed in.

        Examples
        --------
        >>> PyGPU.DeviceArray_float64([3]).allocated()
        False
        """
        return self._device is not None and not self._address

    def _copy(self, function):
        if self._device is None and self._address:
            self._device, self._status = _attempt(lambda: _core._wrap_pointer(
                self._address, self._host.nbytes, gpuglue.current_device(), None))
        self._status = _attempt(function)[1] if self._device is not None else cudaError_t(_INVALID_VALUE)

    # The device side is contiguous: for a host buffer with gaps its elements are in C order.

    def _upload(self):
        host = self._host if self._host.flags.forc else self._host.copy(order="C")
        _core._copy_bytes(self._device, 0, host, 0, host.nbytes, None, False)

    def _download(self):
        host = self._host if self._host.flags.forc else np.empty(self._host.shape, self._host.dtype)
        _core._copy_bytes(host, 0, self._device, 0, host.nbytes, None, False)
        if host is not self._host:
            self._host[...] = host

    def to_device(self):
        """Copy the host array to the device; complete for the host on return.

        Examples
        --------
        >>> array = PyGPU.DeviceArray_float64(np.arange(3.0))
        >>> array.allocate()
        >>> array.to_device()
        """
        self._copy(self._upload)

    def to_host(self):
        """Copy the device memory to the host array; complete on return.

        Examples
        --------
        >>> host = np.zeros(2)
        >>> array = PyGPU.DeviceArray_float64(host)
        >>> array.allocate()
        >>> array.to_device()
        >>> host[:] = 5
        >>> array.to_host()
        >>> host
        array([0., 0.])
        """
        self._copy(self._download)

    def set(self, external_host_addr):
        """Copy from other host memory to the device; complete on return. The host array stays as it is.

        Parameters
        ----------
        external_host_addr : int or pointer_wrapper
            The address of as many bytes as the array has.

        Examples
        --------
        >>> other, array = np.arange(3.0), PyGPU.DeviceArray_float64(np.zeros(3))
        >>> array.allocate()
        >>> array.set(other.ctypes.data)
        """
        self._copy(lambda: self._copy_from(int(external_host_addr)))

    def _copy_from(self, address):
        nbytes = self._host.nbytes
        _core._copy_bytes(self._device, 0, (ctypes.c_char * nbytes).from_address(address), 0, nbytes, None, False)

    def _set(self, index, element):
        flags = self._host.flags
        if isinstance(index, tuple):
            index = np.ravel_multi_index(index, self._host.shape, order="F" if flags.fnc else "C")
        _core._copy_bytes(self._device, int(index) * element.nbytes, element, 0, element.nbytes, None, False)

    def set_val(self, index, value):
        """Set one element on the device.

        Parameters
        ----------
        index : int or tuple of int
            The element, by its index in memory or by one index per dimension.
        value : scalar
            The value.

        Raises
        ------
        TypeError
            If the value has dimensions.

        Examples
        --------
        >>> array = PyGPU.DeviceArray_float64([2])
        >>> array.allocate()
        >>> array.set_val(1, 2.5)
        """
        element = np.array(value, self._host.dtype)
        if element.ndim:
            raise TypeError(f"set_val: expected one value, got {value!r}")
        self._copy(lambda: self._set(index, element))

    def __repr__(self):
        return f"<{type(self).__name__}: shape {self.shape()}, host {self.host_data()}, device {self.device_data()}>"

    def __array__(self, dtype=None, copy=None):
        return np.array(self._host, dtype=dtype, copy=True) if copy or dtype is not None else self._host


def _existing(host, shape, dtype, order, owner=None):
    """An ndarray over existing host memory, which keeps the owner."""
    count = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(host)
    memory.owner = owner
    return np.frombuffer(memory, dtype).reshape(shape, order="C" if not order or order[0] else "F")


for _name in SUPPORTED_DTYPES:
    globals()["DeviceArray_" + _name] = type(
        "DeviceArray_" + _name, (_DeviceArray,), {"__doc__": _DeviceArray.__doc__, "_dtype": _name})


def _supported(dtype):
    """The name of a dtype that arrays can have."""
    name = np.dtype(dtype).name
    if name not in SUPPORTED_DTYPES or np.dtype(dtype) != name:
        raise UnsupportedDataType(f"Data type: {name} is not supported: expected one of {', '.join(SUPPORTED_DTYPES)}")
    return name


def _class_for(dtype):
    return globals()["DeviceArray_" + _supported(dtype)]
