"""Host memory that the device can access: page-locked, managed, registered. Each is a NumPy array whose base is
the allocation."""

import numpy as np

import gpuglue

from ._enums import host_alloc_flags
from ._errors import LogicError, translated


def shape_of(shape):
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(map(int, shape))


def order_of(array):
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


class HostPointer:
    """Memory with an address on the host and on the device: a base class. An array of such memory has it as its base.

    Parameters
    ----------
    buffer : gpuglue.Buffer
        The memory.
    like : ndarray
        An array of the same form.

    Examples
    --------
    >>> isinstance(drv.pagelocked_empty(3, np.float64).base, drv.HostPointer)
    True
    """

    def __init__(self, buffer, like):
        self._buffer = self._gpuglue = buffer
        self.__array_interface__ = dict(like.__array_interface__, data=(buffer.ptr, False))

    def get_device_pointer(self):
        """Return the address of the memory on the device.

        Returns
        -------
        int
            The same as on the host.

        Raises
        ------
        LogicError
            If the memory was freed.

        Examples
        --------
        >>> host = drv.pagelocked_empty(3, np.float64)
        >>> host.base.get_device_pointer() == host.ctypes.data
        True
        """
        if self._buffer is None:
            raise LogicError("this memory was freed")
        return self._buffer.ptr

    def _end(self):
        buffer, self._buffer = self._buffer, None
        if buffer is None:
            raise LogicError("this memory was already freed")
        buffer.close()


class HostAllocation(HostPointer):
    """Host memory that PyCUDA's functions have allocated, and not registered: a base class.

    Parameters
    ----------
    buffer : gpuglue.Buffer
        The memory.
    like : ndarray
        An array of the same form.

    Examples
    --------
    >>> isinstance(drv.pagelocked_empty(3, np.float64).base, drv.HostAllocation)
    True
    """


class PagelockedHostAllocation(HostAllocation):
    """The memory of pagelocked_empty() and similar functions: the base of their arrays.

    Parameters
    ----------
    buffer : gpuglue.Buffer
        The memory.
    like : ndarray
        The form of the array.

    Examples
    --------
    >>> host = drv.pagelocked_empty(3, np.float64)
    >>> isinstance(host.base, drv.PagelockedHostAllocation)
    True
    """

    def free(self):
        """Release the memory; its arrays must not be used afterwards.

        Examples
        --------
        >>> host = drv.pagelocked_empty(3, np.float64)
        >>> host.base.free()
        """
        self._end()

    def get_flags(self):
        """Return how the memory was allocated.

        Returns
        -------
        host_alloc_flags
            PORTABLE and DEVICEMAP, whatever was asked for.

        Examples
        --------
        >>> drv.host_alloc_flags.PORTABLE in drv.pagelocked_empty(3, np.float64).base.get_flags()
        True
        """
        return host_alloc_flags.PORTABLE | host_alloc_flags.DEVICEMAP


class ManagedAllocation(HostAllocation):
    """The memory of managed_empty() and similar functions: one address for host and device.

    Parameters
    ----------
    buffer : gpuglue.Buffer
        The memory.
    like : ndarray
        The form of the array.

    Examples
    --------
    >>> array = drv.managed_empty(3, np.float64)
    >>> isinstance(array.base, drv.ManagedAllocation)
    True
    """

    def free(self):
        """Release the memory; its arrays must not be used afterwards.

        Examples
        --------
        >>> array = drv.managed_empty(3, np.float64)
        >>> array.base.free()
        """
        self._end()

    def attach(self, mem_flags, stream=None):
        """Do nothing.

        It has an effect only on devices that cannot access managed memory concurrently with the host.

        Parameters
        ----------
        mem_flags : mem_attach_flags
            Who will access the memory.
        stream : Stream, optional
            Not used.

        Raises
        ------
        LogicError
            If the flag is unknown, or the memory was freed.

        Examples
        --------
        >>> array = drv.managed_empty(3, np.float64)
        >>> array.base.attach(drv.mem_attach_flags.GLOBAL)
        """
        if not isinstance(mem_flags, (int, np.integer)) or mem_flags not in (1, 2, 4):
            raise LogicError(f"attach: {mem_flags!r} is not one of mem_attach_flags")
        if self._buffer is None:
            raise LogicError("this memory was freed")


class RegisteredHostMemory(HostPointer):
    """The memory of a register_host_memory() array: the base of the array.

    Parameters
    ----------
    buffer : gpuglue.Buffer
        The registered memory.
    like : ndarray
        The array that it belongs to.

    Examples
    --------
    >>> array = drv.register_host_memory(np.zeros(1000))
    >>> isinstance(array.base, drv.RegisteredHostMemory)
    True
    """

    def __init__(self, buffer, like):
        super().__init__(buffer, like)
        self.base = like

    def unregister(self):
        """Unlock the memory; it is not freed.

        Examples
        --------
        >>> drv.register_host_memory(np.zeros(1000)).base.unregister()
        """
        self._end()


def _make(kind, alloc, shape, dtype, order):
    if order not in ("C", "F"):
        raise LogicError(f"order must be C or F, got {order!r}")
    shape, dtype = shape_of(shape), np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(f"{dtype} holds Python objects, which a device cannot use")
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if not nbytes:
        return np.empty(shape, dtype, order)
    layout = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, _strides(shape, dtype, order))
    return np.asarray(kind(alloc(nbytes), layout))


def _strides(shape, dtype, order):
    """NumPy's strides, computed without an array, which may be too large to create."""
    strides, step = [], dtype.itemsize
    for size in (shape if order == "F" else shape[::-1]):
        strides.append(step)
        step *= size
    return tuple(strides if order == "F" else strides[::-1])


@translated
def pagelocked_empty(shape, dtype, order="C", mem_flags=0):
    """Make an array in page-locked memory without initialising it.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    mem_flags : host_alloc_flags, default 0
        Not used: the memory is always portable and mapped.

    Returns
    -------
    ndarray
        Its base is a PagelockedHostAllocation.

    Raises
    ------
    MemoryError
        If there is not enough memory.

    Examples
    --------
    >>> drv.pagelocked_empty((2, 3), np.float32).shape
    (2, 3)
    """
    return _make(PagelockedHostAllocation, gpuglue.alloc_pinned, shape, dtype, order)


def pagelocked_zeros(shape, dtype, order="C", mem_flags=0):
    """Make an array of zeros in page-locked memory.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    mem_flags : host_alloc_flags, default 0
        Not used.

    Returns
    -------
    ndarray
        Its base is a PagelockedHostAllocation.

    Examples
    --------
    >>> drv.pagelocked_zeros(3, np.float64)
    array([0., 0., 0.])
    """
    array = pagelocked_empty(shape, dtype, order, mem_flags)
    array.fill(0)
    return array


def pagelocked_empty_like(array, mem_flags=0):
    """Make an array of the form of another in page-locked memory.

    Parameters
    ----------
    array : ndarray
        The other array.
    mem_flags : host_alloc_flags, default 0
        Not used.

    Returns
    -------
    ndarray
        An uninitialised array.

    Examples
    --------
    >>> drv.pagelocked_empty_like(np.zeros(3)).shape
    (3,)
    """
    return pagelocked_empty(array.shape, array.dtype, order_of(array), mem_flags)


def pagelocked_zeros_like(array, mem_flags=0):
    """Make an array of zeros of the form of another in page-locked memory.

    Parameters
    ----------
    array : ndarray
        The other array.
    mem_flags : host_alloc_flags, default 0
        Not used.

    Returns
    -------
    ndarray
        An array of zeros.

    Examples
    --------
    >>> drv.pagelocked_zeros_like(np.ones(3))
    array([0., 0., 0.])
    """
    return pagelocked_zeros(array.shape, array.dtype, order_of(array), mem_flags)


@translated
def managed_empty(shape, dtype, order="C", mem_flags=0):
    """Make an array in managed memory without initialising it.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    mem_flags : mem_attach_flags, default 0
        Not used.

    Returns
    -------
    ndarray
        An array that kernels take as an argument. The host must not access it while a kernel runs.

    Raises
    ------
    MemoryError
        If there is not enough memory.
    LogicError
        If the device has no managed memory.

    Examples
    --------
    >>> drv.managed_empty(3, np.float64).shape
    (3,)
    """
    return _make(ManagedAllocation, gpuglue.alloc_managed, shape, dtype, order)


def managed_zeros(shape, dtype, order="C", mem_flags=0):
    """Make an array of zeros in managed memory.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    mem_flags : mem_attach_flags, default 0
        Not used.

    Returns
    -------
    ndarray
        An array that kernels take as an argument.

    Examples
    --------
    >>> drv.managed_zeros(3, np.float64)
    array([0., 0., 0.])
    """
    array = managed_empty(shape, dtype, order, mem_flags)
    array.fill(0)
    return array


def managed_empty_like(array, mem_flags=0):
    """Make an array of the form of another in managed memory.

    Parameters
    ----------
    array : ndarray
        The other array.
    mem_flags : mem_attach_flags, default 0
        Not used.

    Returns
    -------
    ndarray
        An uninitialised array.

    Examples
    --------
    >>> drv.managed_empty_like(np.zeros(3)).shape
    (3,)
    """
    return managed_empty(array.shape, array.dtype, order_of(array), mem_flags)


def managed_zeros_like(array, mem_flags=0):
    """Make an array of zeros of the form of another in managed memory.

    Parameters
    ----------
    array : ndarray
        The other array.
    mem_flags : mem_attach_flags, default 0
        Not used.

    Returns
    -------
    ndarray
        An array of zeros.

    Examples
    --------
    >>> drv.managed_zeros_like(np.ones(3))
    array([0., 0., 0.])
    """
    return managed_zeros(array.shape, array.dtype, order_of(array), mem_flags)


def managed_owner(array):
    """The ManagedAllocation of an array or of a view, or None."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, ManagedAllocation) else None


@translated
def register_host_memory(ary, flags=0):
    """Page-lock the memory of an array in place.

    Parameters
    ----------
    ary : ndarray
        The array, contiguous and writable.
    flags : mem_host_register_flags, default 0
        Not used.

    Returns
    -------
    ndarray
        An array over the same memory. It is unlocked by ``base.unregister()``, or when nothing refers to it any more.

    Raises
    ------
    TypeError
        If `ary` is not an array.
    ValueError
        If it is not contiguous.
    LogicError
        If it is registered already.

    Examples
    --------
    >>> array = drv.register_host_memory(np.zeros(1000))
    >>> array.base.unregister()
    """
    if not isinstance(ary, np.ndarray):
        raise TypeError(f"register_host_memory() takes a NumPy array, got a {type(ary).__name__}")
    if not (ary.flags.c_contiguous or ary.flags.f_contiguous):
        raise ValueError("only contiguous memory can be page-locked")
    whole = ary if ary.flags.c_contiguous else ary.T
    return np.asarray(RegisteredHostMemory(gpuglue.host_register(whole), ary))
