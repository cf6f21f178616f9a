"""pycuda.tools: pools, default contexts, and small helpers."""

import functools
import gc
import os
import threading

import numpy as np

from . import driver


def bitlog2(number):
    """The place of the highest set bit."""
    if number < 1:
        raise ValueError(f"bitlog2 of {number}")
    return int(number).bit_length() - 1


def dtype_to_ctype(dtype):
    """What CUDA C++ calls a NumPy type."""
    names = {"b1": "bool", "i1": "signed char", "u1": "unsigned char", "i2": "short", "u2": "unsigned short",
             "i4": "int", "u4": "unsigned int", "i8": "long long", "u8": "unsigned long long", "f4": "float",
             "f8": "double", "c8": "pycuda::complex<float>", "c16": "pycuda::complex<double>"}
    dtype = np.dtype(dtype)
    try:
        return names[dtype.str[1:]]
    except KeyError:
        raise ValueError(f"unable to map dtype {dtype!r}") from None


def _chosen():
    """The number that CUDA_DEVICE or ~/.cuda_device tells, or None."""
    number = os.environ.get("CUDA_DEVICE")
    if number is None:
        try:
            with open(os.path.join(os.path.expanduser("~"), ".cuda_device")) as file:
                number = file.read().strip() or None
        except OSError:
            return None
    return None if number is None else int(number)


def make_default_context(ctx_maker=None):
    """The context of CUDA_DEVICE's device, of ~/.cuda_device's, or of the current one."""
    ctx_maker = ctx_maker or (lambda device: device.make_context())
    number = _chosen()
    return ctx_maker(driver.Context.get_device() if number is None else driver.Device(number))


def get_default_device(default=0):
    number = _chosen()
    return driver.Device(default if number is None else number)


def clear_context_caches():
    """There is nothing that a context would have to keep."""


def context_dependent_memoize(function):
    """Keep results, one for each device and set of arguments."""
    kept = {}

    @functools.wraps(function)
    def call(*args):
        key = (driver.Context.get_device(), args)
        if key not in kept:
            kept[key] = function(*args)
        return kept[key]

    return call


def mark_cuda_test(function):
    """Run a test inside a context of its own."""

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
    """A generator for a pytest fixture: a context around each test."""
    driver.init()
    context = make_default_context()
    try:
        yield
    finally:
        context.pop()
        clear_context_caches()
        gc.collect()


class _Pool:
    """Blocks in bins, powers of two with mantissa_bits of steps between; a block goes back to its bin."""

    mantissa_bits = 2

    def __init__(self):
        # A collection under the lock may give a block back, on this thread.
        self._lock, self._bins, self._holding = threading.RLock(), {}, True
        self.active_blocks = 0

    @property
    def held_blocks(self):
        return sum(map(len, self._bins.values()))

    def bin_number(self, size):
        size = int(size)
        if size < 0:
            raise ValueError(f"a size of {size}")
        if not size:
            return 0
        exponent = bitlog2(size)
        shift = exponent - self.mantissa_bits
        steps = size >> shift if shift >= 0 else size << -shift
        return exponent << self.mantissa_bits | steps & (1 << self.mantissa_bits) - 1

    def alloc_size(self, number):
        """The largest size of the bin."""
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
            block = self._made(max(self.alloc_size(number), 1))
        with self._lock:
            self.active_blocks += 1
        return number, block

    def _made(self, size):
        try:
            return self._make(size)
        except driver.MemoryError:
            self.free_held()
            return self._make(size)

    def _give(self, number, block):
        with self._lock:
            self.active_blocks -= 1
            if self._holding:
                self._bins.setdefault(number, []).append(block)

    def free_held(self):
        with self._lock:
            held, self._bins = self._bins, {}
        held.clear()

    def stop_holding(self):
        self._holding = False
        self.free_held()


class PooledDeviceAllocation(driver.PointerHolderBase):
    """A block of a pool, given back by free() or when nothing refers to it."""

    def __init__(self, pool, number, block, size):
        self._pool, self._number, self._block, self.size = pool, number, block, size
        self._gpuglue = block._gpuglue

    def get_pointer(self):
        if self._block is None:
            raise driver.LogicError("this block was given back to its pool")
        return int(self._block)

    def free(self):
        block, self._block = self._block, None
        if block is None:
            raise driver.LogicError("this block was given back to its pool before")
        self._pool._give(self._number, block)

    def __del__(self):
        if getattr(self, "_block", None) is not None:
            self.free()


class DeviceMemoryPool(_Pool):
    """Device memory that is kept for the next who asks for about as much."""

    def _make(self, size):
        return driver.mem_alloc(size)

    def allocate(self, size):
        number, block = self._take(size)
        return PooledDeviceAllocation(self, number, block, size)


class PageLockedMemoryPool(_Pool):
    """The same for page-locked host memory, as NumPy arrays."""

    def _make(self, size):
        return driver.pagelocked_empty(size, np.uint8)

    def allocate(self, shape, dtype, order="C"):
        import weakref

        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        number, block = self._take(nbytes)
        keeper = _Held(block)
        weakref.finalize(keeper, self._give, number, block)
        return np.asarray(keeper)[:nbytes].view(dtype).reshape(shape, order=order)


class _Held:
    """What the arrays over a block refer to; the block goes back when it goes."""

    def __init__(self, block):
        self.__array_interface__ = dict(block.__array_interface__)
