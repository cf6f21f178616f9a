"""Which library computes on the current device, and how it gets the arrays: NumPy where the host can access device memory, else
CuPy, which must be installed. Where there is none, gpuglue's kernels compute: see _formulas."""

import contextlib

import numpy as np

import gpuglue

from . import _memory


def is_array(value):
    return hasattr(value, "gpudata")


def _place(array):
    """(Buffer, offset of the first element)."""
    extent, first = array._span()
    buffer, offset = _memory.locate(array.gpudata if not first else array.ptr - first, extent)
    return buffer, offset + first


class NumPy:
    """NumPy on the memory itself. The host waits for the work that uses it, and has computed when the call returns."""

    module = np

    @contextlib.contextmanager
    def views(self, arrays, stream):
        """What NumPy computes with, for arrays and numbers."""
        if stream is not None:
            stream.synchronize()
        with np.errstate(all="ignore"):  # as on a device
            yield [self._view(one) if is_array(one) else one for one in arrays]

    @staticmethod
    def _view(array):
        if not array.size:
            return np.empty(array.shape, array.dtype)
        buffer, offset = _place(array)
        return np.ndarray(array.shape, array.dtype, np.asarray(gpuglue.asarray(buffer)), offset, array.strides)


class CuPy:
    """CuPy on the same memory and the same stream, without waiting."""

    def __init__(self, module):
        self.module = module

    @contextlib.contextmanager
    def views(self, arrays, stream):
        """What CuPy computes with, for arrays and numbers."""
        cuda, device = self.module.cuda, gpuglue.current_device()
        queue = stream._stream if stream is not None else gpuglue.current_stream()
        places = [_place(one) if is_array(one) and one.size else None for one in arrays]
        buffers = {place[0].ptr: place[0] for place in places if place}.values()
        if stream is None:  # an implicit operation runs after all pending work on its memory
            for buffer in buffers:
                gpuglue.asarray(buffer).__dlpack__(stream=queue.handle or (1 if device.backend == "cuda" else 0))
        with cuda.Device(device.ordinal), self._stream(queue):
            try:
                yield [self._view(one, place) if is_array(one) else one for one, place in zip(arrays, places)]
            finally:
                for buffer in buffers:
                    buffer.record_use(queue)

    def _stream(self, queue):
        borrow = getattr(self.module.cuda.Stream, "from_external", None)  # of newer versions, in place of ExternalStream
        return borrow(queue) if borrow and hasattr(queue, "__cuda_stream__") else self.module.cuda.ExternalStream(queue.handle)

    def _view(self, array, place):
        if not place:
            return self.module.empty(array.shape, array.dtype)
        buffer, offset = place
        block = self.module.cuda.UnownedMemory(buffer.ptr, buffer.nbytes, buffer)
        return self.module.ndarray(array.shape, array.dtype, self.module.cuda.MemoryPointer(block, offset), array.strides)


_libraries: dict = {}


def library():
    """The library for the current device, or None."""
    device = gpuglue.current_device()
    if device not in _libraries:
        _libraries[device] = _choose(device)
    return _libraries[device]


def _choose(device):
    if hasattr(gpuglue.empty(1, np.uint8, device=device), "__array_interface__"):
        return NumPy()
    try:
        import cupy  # type: ignore
    except ImportError:
        return None
    return CuPy(cupy) if device.backend == ("hip" if cupy.cuda.runtime.is_hip else "cuda") else None


# ---- functions of NumPy for each element


_ones: dict = {}


def _one(value):
    """What stands for an operand where only the type of the result matters."""
    if not is_array(value):
        return value
    if value.dtype not in _ones:
        _ones[value.dtype] = np.ones(1, value.dtype)
    return _ones[value.dtype]


def result_types(name, args):
    """The dtypes of the results, by NumPy's rules for arrays and numbers."""
    with np.errstate(all="ignore"):
        results = getattr(np, name)(*map(_one, args))
    return [one.dtype for one in (results if isinstance(results, tuple) else (results,))]


def new(args, dtype, allocator=None):
    """An array for the result: in the order of the first array of that shape, if its elements are contiguous."""
    from .gpuarray import empty  # which imports this file

    arrays = [one for one in args if is_array(one)]
    shape = np.broadcast_shapes(*(one.shape for one in arrays))
    like = next((one for one in arrays if one.shape == shape), None)
    fortran = like is not None and like.flags.f_contiguous and not like.flags.c_contiguous
    return empty(shape, dtype, allocator or arrays[0].allocator, order="F" if fortran else "C")


def checked(out, args, dtype):
    """The array that is given for the result, if it can take it."""
    shape = np.broadcast_shapes(*(one.shape for one in args if is_array(one)))
    if out.shape != shape or not np.can_cast(dtype, out.dtype, "same_kind"):
        raise TypeError(f"out= is {out.shape} of {out.dtype}, and the result is {shape} of {dtype}")
    return out


def elementwise(name, *args, out=None, stream=None, allocator=None):
    """A function of NumPy with one result, for each element of arrays and numbers."""
    dtype, = result_types(name, args)
    out = checked(out, args, dtype) if out is not None else new(args, dtype, allocator)
    if out.size:
        _elementwise(name, args, dtype, out, stream)
    return out


def _elementwise(name, args, dtype, out, stream):
    chosen = library()
    if chosen is None:
        from . import _formulas  # the compiler is imported where it is needed

        _formulas.elementwise(name, args, dtype, out, stream)
        return
    with chosen.views([out, *args], stream) as (target, *views):
        getattr(chosen.module, name)(*views, out=target)
