"""Ready allocators for set_allocator(): gpuglue's device memory comes from the pools of other packages.

Each is made by a function that imports its package, and is called as allocator(nbytes, device, stream). It
returns an object with the address in `ptr`, which gpuglue releases when the memory is idle.
"""

from ._core import UnsupportedError


def _check(name, device, backends):
    if device.backend not in backends:
        raise UnsupportedError(f"the allocator of {name} does not support {device.backend}:{device.ordinal}")


class _TorchBlock:
    __slots__ = ("_delete", "ptr", "nbytes")

    def __init__(self, ptr, nbytes, delete):
        self.ptr, self.nbytes, self._delete = ptr, nbytes, delete

    def __del__(self):
        self._delete(self.ptr)


def _native(stream, device):
    """The handle as other packages write it: 0 for the default stream."""
    return 0 if stream == device.default_stream else stream.handle


def _torch():
    import torch  # type: ignore

    def allocate(nbytes, device, stream):
        _check("torch", device, ("hip",) if torch.version.hip else ("cuda",))
        ptr = torch.cuda.caching_allocator_alloc(nbytes, device.ordinal, _native(stream, device))
        return _TorchBlock(ptr, nbytes, torch.cuda.caching_allocator_delete)

    return allocate


def _cupy():
    import cupy  # type: ignore

    def allocate(nbytes, device, stream):
        _check("cupy", device, ("hip",) if cupy.cuda.runtime.is_hip else ("cuda",))
        with cupy.cuda.Device(device.ordinal), cupy.cuda.ExternalStream(_native(stream, device)):
            return cupy.cuda.alloc(nbytes)

    return allocate


def _rmm():
    import rmm  # type: ignore

    def allocate(nbytes, device, stream):
        _check("rmm", device, ("cuda",))
        with device:
            block = rmm.DeviceBuffer(size=nbytes)  # on the default stream
        if stream != device.default_stream:
            stream.wait(device.default_stream)
        return block

    return allocate


_MAKERS = {"torch": _torch, "cupy": _cupy, "rmm": _rmm}


def by_name(name):
    """The allocator of another package; ValueError for an unknown name, ImportError without the package."""
    try:
        return _MAKERS[name]()
    except KeyError:
        raise ValueError(f"set_allocator takes {', '.join(map(repr, _MAKERS))}, a callable or None, got {name!r}") from None
