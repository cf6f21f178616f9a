"""What gpuglue.compat uses of CuPy, where CuPy cannot run: NumPy computes on copies, ordered by the stream that is current."""

import types

import numpy as np

import gpuglue as gg


class Stream:
    """A stream; `used` lists the handles in the order of their use, and `after` is called on the stream after each result."""

    used: list = []
    current: list = []
    after = None

    def __init__(self, handle):
        self.handle = handle

    @classmethod
    def from_external(cls, stream):
        return cls(stream.__cuda_stream__()[1])

    def __enter__(self):
        Stream.used.append(self.handle)
        Stream.current.append(self.handle)

    def __exit__(self, *error):
        Stream.current.pop()


class OldStream:
    """Of versions without from_external."""


class Device:
    def __init__(self, number):
        self.number = number

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass


def borrowed():
    return gg.Stream.borrow(Stream.current[-1], gg.current_device())


class ndarray:
    def __init__(self, shape, dtype, memptr, strides):
        self.shape, self.dtype, self.strides, (self.block, self.offset) = shape, np.dtype(dtype), strides, memptr

    def _bytes(self):
        pointer, nbytes, _ = self.block
        return gg.Buffer.from_ptr(pointer, nbytes, gg.current_device()), np.empty(nbytes, np.uint8)

    def _fetch(self):
        buffer, host = self._bytes()
        stream = borrowed()
        gg.copy(host, buffer, stream=stream)
        stream.synchronize()
        return buffer, host, np.ndarray(self.shape, self.dtype, host, self.offset, self.strides)

    def set(self, value):
        buffer, host, elements = self._fetch()
        elements[...] = value
        stream = borrowed()
        gg.copy(buffer, host, stream=stream)
        stream.synchronize()
        if Stream.after:
            Stream.after(stream)

    def get(self):
        return self._fetch()[2]

    def __setitem__(self, index, value):
        assert index is Ellipsis
        self.set(plain(value))

    def __getattr__(self, name):
        return getattr(self.get(), name)

    def __getitem__(self, index):
        return self.get()[plain(index)]

    def __gt__(self, other):
        return self.get() > other

    def __ne__(self, other):
        return self.get() != other


def plain(value):
    return value.get() if isinstance(value, ndarray) else value


def module(is_hip, old=False):
    """The module, with the functions of NumPy."""
    class CuPy(types.ModuleType):
        def __getattr__(self, name):
            function = getattr(np, name)

            def call(*args, out=None, **options):
                with np.errstate(all="ignore"):
                    result = function(*map(plain, args), **options)
                if out is not None:
                    out.set(result)
                return result
            return call

    found = CuPy("cupy")
    found.ndarray, found.empty = ndarray, np.empty
    found.random = types.SimpleNamespace(Generator=np.random.Generator, XORWOW=np.random.Philox, MRG32k3a=np.random.SFC64)
    found.cuda = types.SimpleNamespace(
        Device=Device, ExternalStream=Stream, Stream=OldStream if old else Stream, runtime=types.SimpleNamespace(is_hip=is_hip),
        UnownedMemory=lambda pointer, nbytes, owner: (pointer, nbytes, owner), MemoryPointer=lambda block, offset: (block, offset))
    return found
