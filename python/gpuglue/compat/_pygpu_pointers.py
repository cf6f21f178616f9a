"""PyGPU's pointers: ptr_wrapper_<dtype>, also named pointer_wrapper_<dtype>."""

import ctypes

import numpy as np

from ._pygpu_errors import SUPPORTED_DTYPES


class pointer_wrapper:
    """An address, of the host or of a device.

    Parameters
    ----------
    address : int, optional
        The address; None is 0.
    safe : bool, default False
        Whether Python can read it: host memory that is kept alive.
    owner : object, optional
        What keeps the memory alive.

    Examples
    --------
    >>> pointer = PyGPU.pointer_wrapper(4096, False)
    >>> pointer
    <pointer 0x1000>
    """

    _dtype = "uint8"

    def __init__(self, address=None, safe=False, owner=None):
        self._address, self._safe, self._owner = int(address or 0), bool(safe), owner

    def create(self, count):
        """Point to new host memory, which the pointer keeps alive.

        Parameters
        ----------
        count : int
            Number of elements; of bytes, if the pointer has no type.

        Examples
        --------
        >>> pointer = PyGPU.ptr_wrapper_float64()
        >>> pointer.create(10)
        >>> pointer.is_safe()
        True
        """
        memory = np.empty(count, self._dtype)
        self._address, self._safe, self._owner = memory.ctypes.data, True, memory

    def destroy(self):
        """Release the memory, once no other object uses it.

        Examples
        --------
        >>> pointer = PyGPU.ptr_wrapper_float64()
        >>> pointer.create(10)
        >>> pointer.destroy()
        >>> pointer
        <pointer 0x0>
        """
        self._address, self._safe, self._owner = 0, False, None

    def get(self):
        """Return the address where it is safe to read.

        Returns
        -------
        address : int or None
            None for memory of a device.
        safe : bool
            Whether it is safe to read.

        Examples
        --------
        >>> PyGPU.pointer_wrapper(4096, False).get()
        (None, False)
        """
        return (self._address, True) if self._safe else (None, False)

    def is_safe(self):
        """Return whether the address is safe to read.

        Returns
        -------
        bool
            Whether it is host memory that Python keeps alive.

        Examples
        --------
        >>> PyGPU.pointer_wrapper(4096, False).is_safe()
        False
        """
        return self._safe

    def unsafe_get(self):
        """Return the address in any case.

        Returns
        -------
        int
            The address.

        Examples
        --------
        >>> PyGPU.pointer_wrapper(4096, False).unsafe_get()
        4096
        """
        return self._address

    def print_address(self):
        """Print the address.

        Examples
        --------
        >>> PyGPU.pointer_wrapper(4096, False).print_address()
        Address of ptr is 0x1000
        """
        print(f"Address of ptr is {self._address:#x}" if self._address else "Address of ptr is (nil)")

    def __int__(self):
        return self._address

    __index__ = __int__

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self._address)

    def __repr__(self):
        return f"<pointer 0x{self._address:x}>"


ptr_wrapper = pointer_wrapper
for _name in SUPPORTED_DTYPES:
    globals()["pointer_wrapper_" + _name] = globals()["ptr_wrapper_" + _name] = type(
        "pointer_wrapper_" + _name, (pointer_wrapper,), {"__doc__": pointer_wrapper.__doc__, "_dtype": _name})
