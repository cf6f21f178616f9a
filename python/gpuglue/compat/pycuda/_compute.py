"""What computes on the current device: NumPy where the host can access device memory, else gpuglue's kernels (see _formulas), which need
a compiler, and CuPy, if it is installed, for what they do not compute. How a library gets the arrays. What was found is kept as a plan:
the next operation with operands of the same forms finds it by one lookup in a dict."""

import contextlib

import numpy as np

import gpuglue

from . import _memory
from ._layouts import form_of


def is_array(value):
    return hasattr(value, "gpudata")


def check(*args):
    """Refuse operands of which none is an array of the device, or one is an array of the host."""
    others = [one for one in args if not is_array(one)]
    wrong = [one for one in others if np.ndim(one)] or others * (len(others) == len(args))
    if wrong:
        raise TypeError(f"expected a GPUArray, got {type(wrong[0]).__name__}: upload it by gpuarray.to_gpu()")


def _place(array):
    """(Buffer, offset of the first element)."""
    extent, first = array._form.span
    buffer, offset = _memory.locate(array.gpudata if not first else array.ptr - first, extent)
    return buffer, offset + first


class NumPy:
    """NumPy on the memory itself. The host waits for the work that uses it, and has computed when the call returns."""

    module = np

    @contextlib.contextmanager
    def views(self, arrays, stream):
        """What NumPy computes with, for arrays and numbers."""
        if stream is not None:
            _memory._stream(stream).synchronize()
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
        queue = _memory._stream(stream) or gpuglue.current_stream()
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


def form_of_result(args, dtype):
    """The Form of the result: in the order of the first array of that shape, if its elements are contiguous."""
    arrays = [one for one in args if is_array(one)]
    shape = np.broadcast_shapes(*(one.shape for one in arrays))
    like = next((one for one in arrays if one.shape == shape), None)
    return form_of(shape, dtype, order="F" if like is not None and like._form.fortran else "C")


def new(args, dtype):
    """An array for the result of arrays and numbers."""
    check(*args)
    from ._array import GPUArray  # which imports this file

    return GPUArray._of_form(form_of_result(args, dtype), next(one for one in args if is_array(one)).allocator)


def checked(out, args, dtype):
    """The array that is given for the result, if it can take it."""
    shape = np.broadcast_shapes(*(one.shape for one in args if is_array(one)))
    if out.shape != shape or not np.can_cast(dtype, out.dtype, "same_kind"):
        raise TypeError(f"out= is {out.shape} of {out.dtype}, and the result is {shape} of {dtype}")
    return out


KERNELS_FIRST = True  # else CuPy, where it is installed


def by_kernels(name, *args):
    """What a function of _formulas returns; None if a library is to compute, since the host can or kernels cannot."""
    chosen = library()
    if isinstance(chosen, NumPy) or chosen is not None and not KERNELS_FIRST:
        return None
    from . import _formulas  # the compiler is imported where it is needed

    try:
        return getattr(_formulas, name)(*args)
    except _formulas.Refused as refused:
        if chosen is None:
            raise refused.error from refused.__cause__
        return None


_plans: dict = {}
_MOST_PLANS = 2000
_BY_TYPE = int(np.__version__.split(".")[0]) >= 2  # else the type of a result depends on the values of numbers


def keep(key, plan):
    """Keep a plan for the next operation with this key."""
    if len(_plans) >= _MOST_PLANS:  # of a program whose arrays have ever other shapes
        _plans.clear()
    _plans[key] = plan
    return plan


def _sort(number):
    """What determines how a number is computed with."""
    kind = type(number)
    if kind is float or kind is int:
        return kind if _BY_TYPE else (kind, number)
    if hasattr(number, "gpudata") or isinstance(number, np.ndarray) and not _BY_TYPE:
        return object()  # another class than GPUArray, or no key: not found again
    kind = getattr(number, "dtype", type(number))
    return kind if _BY_TYPE else (kind, number)


def elementwise(name, *args, out=None, stream=None, allocator=None):
    """A function of NumPy with one result, for each element of arrays and numbers."""
    key = [name, gpuglue.current_device(), out if out is None else out._form]
    for one in args:
        form = getattr(one, "_form", None)
        key.append(form if form is not None else _sort(one))
    key = tuple(key)
    compute = _plans.get(key) or keep(key, _planned(name, args, out))
    return compute(args, out, stream, allocator)


def _planned(name, args, out):
    """A function of (args, out, stream, allocator) for operands of the same forms."""
    from ._array import GPUArray

    check(*args)
    dtype, = result_types(name, args)
    form = form_of_result(args, dtype) if out is None else checked(out, args, dtype)._form
    run = (by_kernels("elementwise", name, args, dtype, form) or _by_library(name)) if form.size else lambda *given: None
    first = next(at for at, one in enumerate(args) if is_array(one))

    def compute(args, out, stream, allocator):
        if out is None:
            out = GPUArray._of_form(form, allocator or args[first].allocator)
        run(out, args, stream)
        return out

    return compute


def _by_library(name):
    chosen = library()
    function = getattr(chosen.module, name)

    def run(out, args, stream):
        with chosen.views([out, *args], stream) as (target, *views):
            function(*views, out=target)

    return run
