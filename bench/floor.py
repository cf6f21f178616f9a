"""raw.c as a library: the floor, run in this process and on gpuglue's own stream."""

import ctypes
from pathlib import Path

import gpuglue as gg


class Bulk(ctypes.Structure):
    """struct raw_bulk: the memory that large copies run between."""

    _fields_ = [
        ("memory", ctypes.c_uint64), ("other", ctypes.c_uint64), ("pinned", ctypes.c_void_p),
        ("pageable", ctypes.c_void_p), ("nbytes", ctypes.c_size_t),
    ]


class FloorError(Exception):
    """There is no floor, or the driver refused a call of it."""


class Floor:
    """The driver alone, on one device."""

    def __init__(self, path, device):
        if device.backend != "cuda":
            raise FloorError(f"raw.c speaks to CUDA only, this is {device.backend}")
        if not path or not Path(path).exists():
            raise FloorError("raw.c was not compiled")
        self.library = ctypes.CDLL(str(Path(path).resolve()))
        self.library.raw_error.restype = ctypes.c_char_p
        self.library.raw_open.restype = ctypes.c_void_p
        self.driver = next(backend.library for backend in gg.backends() if backend.name == "cuda")
        opened = self.library.raw_open(self.driver.encode(), device.ordinal)
        if not opened:
            raise FloorError(self.library.raw_error().decode())
        self.raw = ctypes.c_void_p(opened)

    def check(self, code):
        """Turn a code of the driver into an exception."""
        if code:
            raise FloorError(self.library.raw_error().decode())

    def stay(self):
        """Make the context current in this thread from now on, as C has it."""
        self.check(self.library.raw_stay(self.raw))

    def use(self, stream, arrays):
        """Run what follows on this stream, large copies between these arrays."""
        bulk = Bulk(arrays.array.ptr, arrays.other.ptr, arrays.pinned.ctypes.data, arrays.pageable.ctypes.data,
                    arrays.nbytes)
        self.check(self.library.raw_use(self.raw, ctypes.c_void_p(stream.handle), ctypes.byref(bulk)))

    def allocate(self, nbytes):
        """What the row alloc_free allocates from now on."""
        self.library.raw_alloc_bytes(self.raw, ctypes.c_size_t(nbytes))

    def bursts_of(self, name):
        """A function that gives the nanoseconds of so many bursts of one of raw.c's rows."""

        def run(count):
            times = (ctypes.c_double * count)()
            self.check(self.library.raw_run(self.raw, name.encode(), count, times))
            return list(times)

        return run

    def close(self):
        """Let go of the context."""
        self.library.raw_close(self.raw)


def open_floor(path, device):
    """The floor, or None and the reason."""
    try:
        return Floor(path, device), None
    except (FloorError, OSError) as error:
        return None, str(error)
