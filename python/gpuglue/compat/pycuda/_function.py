"""Modules and their kernels."""

import numpy as np

import gpuglue

from . import _enums, _memory
from ._errors import LogicError, translated
from ._host_memory import managed_owner


class ArgumentHandler:
    """An argument that is copied to the device before a launch, or back after it."""

    def __init__(self, array):
        self.array, self.dev_alloc = array, None

    def get_device_alloc(self):
        if self.dev_alloc is None:
            self.dev_alloc = _memory.mem_alloc_like(self.array)
        return self.dev_alloc

    def pre_call(self, stream):
        pass

    def post_call(self, stream):
        pass


class In(ArgumentHandler):
    def pre_call(self, stream):
        _memory.memcpy_htod_async(self.get_device_alloc(), self.array, stream)


class Out(ArgumentHandler):
    def post_call(self, stream):
        _memory.memcpy_dtoh_async(self.array, self.get_device_alloc(), stream)


class InOut(In, Out):
    pass


def _at(address):
    """What stands for an address in a launch: a view of the allocation, whose pending work then counts."""
    found = _memory._table.find(address)
    if found is None:
        return np.uintp(address)
    buffer, offset = found
    return gpuglue.asarray(buffer)[offset:] if offset else buffer


def _unwrap_host(array):
    """Managed memory is the one that both can reach."""
    owner = managed_owner(array)
    if owner is None:
        raise TypeError("a NumPy array is host memory: wrap it in In(), Out() or InOut(), or upload it with "
                        "gpuarray.to_gpu()")
    offset = array.ctypes.data - owner.get_device_pointer()
    return gpuglue.asarray(owner._gpuglue)[offset:] if offset else owner._gpuglue


def _unwrap(argument):
    """What gpuglue's kernel takes."""
    if isinstance(argument, ArgumentHandler):
        argument = argument.get_device_alloc()
    array = getattr(argument, "_pycuda_array", None)
    if array is not None:
        argument = array
    if isinstance(argument, (np.generic, float)) or hasattr(argument, "_fields_") or \
            isinstance(argument, gpuglue.raw):
        return argument
    if isinstance(argument, np.ndarray):
        return _unwrap_host(argument)
    if isinstance(argument, (gpuglue.GPUArray, gpuglue.Buffer)):
        return argument
    if isinstance(argument, bool) or (isinstance(argument, int) and not hasattr(argument, "__array__")):
        return argument
    if isinstance(argument, _memory.PointerHolderBase) or hasattr(argument, "gpudata") or hasattr(argument, "ptr"):
        return _at(_memory.address_of(argument))
    return argument


def _plain(argument):
    """A NumPy number as one of Python's, which is taken for any type that it fits."""
    value = argument.item() if isinstance(argument, (np.number, np.bool_)) else argument
    return value if isinstance(value, (int, float)) else argument


def _half(argument):
    return np.float16(argument) if isinstance(argument, (np.number, np.bool_, int, float)) else argument


def _converter(code):
    """What makes of an argument what the prepared type takes: as the struct module does, which PyCUDA packs with."""
    if isinstance(code, str) and len(code) == 1:
        return {"P": lambda argument: argument, "e": _half}.get(code, _plain)
    return _half if np.dtype(code) == np.float16 else _plain


@translated
def _wait(stream):
    (stream._stream if stream is not None else gpuglue.current_stream()).synchronize()


class Function:
    """A kernel: called with its arguments, block= and grid=."""

    def __init__(self, kernel):
        self._kernel, self._bound, self._converters = kernel, None, ()

    @translated
    def _run(self, kernel, args, grid, block, shared, stream):
        kernel(*map(_unwrap, args), grid=grid, block=block, smem=shared,
               stream=stream._stream if stream is not None else None)

    def __call__(self, *args, grid=(1, 1), block=None, shared=0, stream=None, texrefs=(), time_kernel=False):
        if block is None:
            raise ValueError("must specify block size")
        if texrefs:
            raise LogicError("texture references are not part of gpuglue")
        handlers = [argument for argument in args if isinstance(argument, ArgumentHandler)]
        for handler in handlers:
            handler.pre_call(stream)
        timer = _timer(stream) if time_kernel else None
        self._run(self._kernel, args, tuple(grid), tuple(block), shared, stream)
        took = timer() if timer else None
        for handler in handlers:
            handler.post_call(stream)
        if stream is None and handlers or any(isinstance(handler, Out) for handler in handlers):
            _wait(stream)
        return took

    @translated
    def prepare(self, arg_types, block=None, shared=None, texrefs=()):
        """Fix the types: codes of the struct module, or NumPy dtypes."""
        if texrefs:
            raise LogicError("texture references are not part of gpuglue")
        types = tuple(arg_types)
        self._bound, self._converters = self._kernel.bind(types), tuple(map(_converter, types))
        return self

    def _prepared(self, args, grid, block, shared, stream):
        if self._bound is None:
            raise LogicError("prepare() has to be called first")
        if len(args) == len(self._converters):  # else the launch says so
            args = [convert(argument) for convert, argument in zip(self._converters, args)]
        self._run(self._bound, args, tuple(grid), tuple(block), shared, stream)

    def prepared_call(self, grid, block, *args, shared_size=0):
        self._prepared(args, grid, block, shared_size, None)

    def prepared_async_call(self, grid, block, stream, *args, shared_size=0):
        self._prepared(args, grid, block, shared_size, stream)

    def prepared_timed_call(self, grid, block, *args, shared_size=0):
        """A function that waits and gives the time, in seconds."""
        timer = _timer(None)
        self._prepared(args, grid, block, shared_size, None)
        return timer.later()

    # ---- numbers

    def get_attribute(self, attribute):
        known = self._kernel.attributes
        name = _enums.FUNCTION_ATTRIBUTES.get(_enums.function_attribute(attribute))
        if name not in known:
            raise LogicError(f"{self._kernel} does not tell {attribute!r}")
        return known[name]

    def set_attribute(self, attribute, value):
        """MAX_DYNAMIC_SHARED_SIZE_BYTES needs no setting: a launch asks for what it takes."""
        if attribute != _enums.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES:
            raise LogicError(f"{attribute} cannot be set")

    def set_cache_config(self, fc):
        """A hint, which drivers may ignore; so does this."""

    num_regs = property(lambda self: self.get_attribute(_enums.function_attribute.NUM_REGS))
    shared_size_bytes = property(lambda self: self.get_attribute(_enums.function_attribute.SHARED_SIZE_BYTES))
    local_size_bytes = property(lambda self: self.get_attribute(_enums.function_attribute.LOCAL_SIZE_BYTES))
    const_size_bytes = property(lambda self: self.get_attribute(_enums.function_attribute.CONST_SIZE_BYTES))
    max_threads_per_block = property(
        lambda self: self.get_attribute(_enums.function_attribute.MAX_THREADS_PER_BLOCK))


class _timer:
    """Two events around a launch; called, it waits and gives seconds."""

    def __init__(self, stream):
        self.stream = stream._stream if stream is not None else gpuglue.current_stream()
        self.start = self.stream.record(gpuglue.Event(timing=True))

    def __call__(self):
        return self.later()()

    def later(self):
        start, stop = self.start, self.stream.record(gpuglue.Event(timing=True))

        def seconds():
            stop.synchronize()
            return stop.elapsed_since(start) * 1e-3

        return seconds


class Module:
    """Device code that is loaded."""

    @translated
    def __init__(self, image):
        self._module = gpuglue.Module(image)

    @translated
    def get_function(self, name):
        return Function(self._module[name])

    @translated
    def get_global(self, name):
        """(allocation, bytes)"""
        buffer = self._module.get_global(name)
        return _memory.DeviceAllocation(buffer), buffer.nbytes

    def get_texref(self, name):
        raise LogicError("texture references are not part of gpuglue")

    get_surfref = get_texref


def module_from_file(filename):
    return Module(filename)


def module_from_buffer(buffer, options=(), message_handler=None):
    return Module(bytes(buffer))
