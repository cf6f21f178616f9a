"""pycuda.tools: pools, default contexts, and small helpers."""

import functools
import gc
import os
import threading

import numpy as np

from . import driver
from ._missing import refusing
from ._declarations import ScalarArg, VectorArg, parse_c_arg  # noqa: F401
from ._types import dtype_to_ctype, get_or_register_dtype, register_dtype  # noqa: F401
from ._occupancy import DeviceData, OccupancyRecord  # noqa: F401


def bitlog2(number):
    """Return the index of the highest set bit.

    Parameters
    ----------
    number : int
        1 or more.

    Returns
    -------
    int
        The logarithm to base 2, rounded down.

    Raises
    ------
    ValueError
        If the number is less than 1.

    Examples
    --------
    >>> tools.bitlog2(1000)
    9
    """
    if number < 1:
        raise ValueError(f"bitlog2 of {number}")
    return int(number).bit_length() - 1


def _chosen():
    """The device number from CUDA_DEVICE or ~/.cuda_device, or None."""
    number = os.environ.get("CUDA_DEVICE")
    if number is None:
        try:
            with open(os.path.join(os.path.expanduser("~"), ".cuda_device")) as file:
                number = file.read().strip() or None
        except OSError:
            return None
    return None if number is None else int(number)


def make_default_context(ctx_maker=None):
    """Make a context on the default device.

    Parameters
    ----------
    ctx_maker : function, optional
        Called with the Device; returns the context. None is Device.make_context.

    Returns
    -------
    Context
        Of the device that ``CUDA_DEVICE`` or ~/.cuda_device selects, else of the current device.

    Examples
    --------
    >>> context = tools.make_default_context()
    >>> context.pop()
    """
    ctx_maker = ctx_maker or (lambda device: device.make_context())
    number = _chosen()
    return ctx_maker(driver.Context.get_device() if number is None else driver.Device(number))


def get_default_device(default=0):
    """Return the device that ``CUDA_DEVICE`` or ~/.cuda_device selects.

    Parameters
    ----------
    default : int, default 0
        Number of the device if neither does.

    Returns
    -------
    Device
        The device.

    Examples
    --------
    >>> tools.get_default_device().name() == gg.Device(0).name
    True
    """
    number = _chosen()
    return driver.Device(default if number is None else number)


def clear_context_caches():
    """Do nothing: nothing is cached per context.

    Examples
    --------
    >>> tools.clear_context_caches()
    """


def context_dependent_memoize(function):
    """Cache the results of a function, per device and arguments.

    Parameters
    ----------
    function : function
        A function of hashable arguments.

    Returns
    -------
    function
        It calls `function` once for each device and arguments.

    Examples
    --------
    >>> @tools.context_dependent_memoize
    ... def double(number):
    ...     print("computed")
    ...     return 2 * number
    >>> double(2), double(2)
    computed
    (4, 4)
    """
    kept = {}

    @functools.wraps(function)
    def call(*args):
        key = (driver.Context.get_device(), args)
        if key not in kept:
            kept[key] = function(*args)
        return kept[key]

    return call


def mark_cuda_test(function):
    """Run a test inside a context of its own.

    Parameters
    ----------
    function : function
        The test.

    Returns
    -------
    function
        It makes a context, calls `function`, and pops the context.

    Examples
    --------
    >>> @tools.mark_cuda_test
    ... def test():
    ...     return gpuarray.zeros(3).get()
    >>> test()
    array([0., 0., 0.])
    """

    @functools.wraps(function)
    def run(*args, **kwargs):
        driver.init()
        context = make_default_context()
        try:
            assert isinstance(context.get_device().get_attributes(), dict)
            return function(*args, **kwargs)
        finally:
            context.pop()
            clear_context_caches()
            gc.collect()

    return run


def init_cuda_context_fixture():
    """Make a context around each test: a generator for a pytest fixture.

    Yields
    ------
    None
        While the context is current.

    Examples
    --------
    >>> for _ in tools.init_cuda_context_fixture():
    ...     a = gpuarray.zeros(3)
    """
    driver.init()
    context = make_default_context()
    try:
        yield
    finally:
        context.pop()
        clear_context_caches()
        gc.collect()


class _Pool:
    """Free blocks in bins: powers of two, with 2**mantissa_bits steps between. A released block returns to its bin."""

    mantissa_bits = 2

    def __init__(self):
        # A garbage collection under the lock may release a block on this thread.
        self._lock, self._bins, self._holding = threading.RLock(), {}, True
        self.active_blocks = self.active_bytes = self._active_size = 0

    @property
    def managed_bytes(self):
        """Bytes of all blocks, in use and free."""
        with self._lock:
            return self._active_size + sum(self.alloc_size(number) * len(held) for number, held in self._bins.items())

    @property
    def held_blocks(self):
        """Number of free blocks that the pool keeps."""
        return sum(map(len, self._bins.values()))

    def bin_number(self, size):
        """Return the number of the bin for a size.

        Parameters
        ----------
        size : int
            Bytes.

        Returns
        -------
        int
            Sizes with one number share their free blocks.

        Raises
        ------
        ValueError
            If the size is negative.

        Examples
        --------
        >>> pool = tools.DeviceMemoryPool()
        >>> pool.bin_number(1000) == pool.bin_number(1001)
        True
        """
        size = int(size)
        if size < 0:
            raise ValueError(f"the size must not be negative, got {size}")
        if not size:
            return 0
        exponent = bitlog2(size)
        shift = exponent - self.mantissa_bits
        steps = size >> shift if shift >= 0 else size << -shift
        return exponent << self.mantissa_bits | steps & (1 << self.mantissa_bits) - 1

    def alloc_size(self, number):
        """Return the largest size of a bin.

        Parameters
        ----------
        number : int
            Number of the bin.

        Returns
        -------
        int
            Bytes of its blocks.

        Examples
        --------
        >>> pool = tools.DeviceMemoryPool()
        >>> pool.alloc_size(pool.bin_number(1000))
        1023
        """
        exponent, steps = number >> self.mantissa_bits, number & (1 << self.mantissa_bits) - 1
        base = steps | 1 << self.mantissa_bits
        shift = exponent - self.mantissa_bits
        return (base << shift) + ((1 << shift) - 1) if shift >= 0 else base >> -shift

    def _take(self, size):
        number = self.bin_number(size)
        with self._lock:
            held = self._bins.get(number)
            block = held.pop() if held else None
        if block is None:
            block = self._allocate_block(max(self.alloc_size(number), 1))
        self._count(1, number, size)
        return number, block

    def _count(self, sign, number, size):
        with self._lock:
            self.active_blocks += sign
            self.active_bytes += sign * size
            self._active_size += sign * self.alloc_size(number)

    def _allocate_block(self, size):
        try:
            return self._make(size)
        except driver.MemoryError:
            self.free_held()
            return self._make(size)

    def _give(self, number, block, size):
        self._count(-1, number, size)
        with self._lock:
            if self._holding:
                self._bins.setdefault(number, []).append(block)

    def free_held(self):
        """Release all free blocks.

        Examples
        --------
        >>> tools.DeviceMemoryPool().free_held()
        """
        with self._lock:
            held, self._bins = self._bins, {}
        held.clear()

    def stop_holding(self):
        """Release all free blocks, and keep none in the future.

        Examples
        --------
        >>> tools.DeviceMemoryPool().stop_holding()
        """
        self._holding = False
        self.free_held()


class PooledDeviceAllocation(driver.PointerHolderBase):
    """A block of a pool, returned by free() or with the last reference.

    Parameters
    ----------
    pool : DeviceMemoryPool
        The pool: its ``allocate`` makes the allocation.
    number : int
        Number of the bin.
    block : DeviceAllocation
        The memory.
    size : int
        Requested size in bytes.

    Examples
    --------
    >>> block = tools.DeviceMemoryPool().allocate(1000)
    >>> block.size
    1000
    """

    def __init__(self, pool, number, block, size):
        self._pool, self._number, self._block, self.size = pool, number, block, size
        self._gpuglue = block._gpuglue

    def get_pointer(self):
        """Return the address.

        Returns
        -------
        int
            The address on the device.

        Raises
        ------
        LogicError
            If the block was returned.

        Examples
        --------
        >>> block = tools.DeviceMemoryPool().allocate(1000)
        >>> block.get_pointer() == int(block)
        True
        """
        if self._block is None:
            raise driver.LogicError("this block was returned to its pool")
        return int(self._block)

    def free(self):
        """Return the block to its pool.

        Raises
        ------
        LogicError
            If it was returned already.

        Examples
        --------
        >>> tools.DeviceMemoryPool().allocate(1000).free()
        """
        block, self._block, self._gpuglue = self._block, None, None
        if block is None:
            raise driver.LogicError("this block was already returned to its pool")
        self._pool._give(self._number, block, self.size)

    def __len__(self):
        return self.size

    def __bool__(self):
        return True

    def __del__(self):
        if getattr(self, "_block", None) is not None:
            self.free()


class DeviceMemoryPool(_Pool):
    """Device memory, kept for later allocations of similar size.

    Examples
    --------
    >>> pool = tools.DeviceMemoryPool()
    >>> a = gpuarray.zeros(1000, allocator=pool.allocate)
    >>> pool.active_blocks, pool.held_blocks
    (1, 0)
    """

    def _make(self, size):
        return driver.mem_alloc(size)

    def allocate(self, size):
        """Allocate device memory.

        Parameters
        ----------
        size : int
            Bytes.

        Returns
        -------
        PooledDeviceAllocation
            A free block if there is one of the bin, else a new one.

        Examples
        --------
        >>> block = tools.DeviceMemoryPool().allocate(1000)
        """
        number, block = self._take(size)
        return PooledDeviceAllocation(self, number, block, size)


class PageLockedAllocator:
    """How a PageLockedMemoryPool allocates.

    Parameters
    ----------
    flags : int, default 0
        Of host_alloc_flags. Every page-locked allocation of gpuglue is portable and mapped.

    Examples
    --------
    >>> pool = tools.PageLockedMemoryPool(tools.PageLockedAllocator())
    """

    def __init__(self, flags=0):
        self.flags = flags


class PageLockedMemoryPool(_Pool):
    """Page-locked host memory as arrays, kept for later allocations of similar size.

    Parameters
    ----------
    allocator : PageLockedAllocator, optional
        Flags of the allocations.

    Examples
    --------
    >>> pool = tools.PageLockedMemoryPool()
    >>> pool.allocate(3, np.float64).shape
    (3,)
    """

    def __init__(self, allocator=None):
        super().__init__()
        self._flags = allocator.flags if allocator is not None else 0

    def _make(self, size):
        return driver.pagelocked_empty(size, np.uint8, mem_flags=self._flags)

    def allocate(self, shape, dtype, order="C"):
        """Make an array in page-locked memory.

        Parameters
        ----------
        shape : int or sequence of int
            Length of each dimension.
        dtype : dtype
            Type of the elements.
        order : {'C', 'F'}, default 'C'
            Order of the axes in memory.

        Returns
        -------
        ndarray
            The block returns to the pool with the last view of the array.

        Examples
        --------
        >>> tools.PageLockedMemoryPool().allocate((2, 3), np.float32).nbytes
        24
        """
        import weakref

        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        number, block = self._take(nbytes)
        keeper = PooledHostAllocation(block, block[:nbytes].view(dtype).reshape(shape, order=order))
        keeper._finalizer = weakref.finalize(keeper, self._give, number, block, nbytes)
        return np.asarray(keeper)


class PooledHostAllocation:
    """The memory of an array of a PageLockedMemoryPool: the base of its arrays. It returns to the pool with the last of them.

    Parameters
    ----------
    block : ndarray
        The bytes.
    like : ndarray
        An array of the same form.

    Examples
    --------
    >>> isinstance(tools.PageLockedMemoryPool().allocate(3, np.float64).base, tools.PooledHostAllocation)
    True
    """

    _finalizer = None

    def __init__(self, block, like):
        self._nbytes = like.nbytes
        self.__array_interface__ = dict(like.__array_interface__, data=(block.ctypes.data, False))

    def __len__(self):
        return self._nbytes

    def free(self):
        """Return the memory to the pool now. Arrays on it must not be used afterwards.

        Raises
        ------
        LogicError
            If it was already returned.

        Examples
        --------
        >>> tools.PageLockedMemoryPool().allocate(3, np.float64).base.free()
        """
        if not self._finalizer or not self._finalizer.alive:
            raise driver.LogicError("this memory was already returned to its pool")
        self._finalizer()


__getattr__ = refusing(__name__)
