"""raw.c as a library: the baseline, which runs in this process and on gpuglue's own stream."""

import ctypes
import importlib.util
import shutil
import tempfile
from pathlib import Path

import gpuglue as gg


class Bulk(ctypes.Structure):
    """struct raw_bulk: the source and destination memory of large copies."""

    _fields_ = [
        ("memory", ctypes.c_uint64), ("other", ctypes.c_uint64), ("pinned", ctypes.c_void_p),
        ("pageable", ctypes.c_void_p), ("nbytes", ctypes.c_size_t),
    ]


def library_of(name):
    """The library that a backend of gpuglue has loaded."""
    return next(backend.library for backend in gg.backends() if backend.name == name)


class BaselineError(Exception):
    """There is no baseline, or one of its driver calls failed."""


class Baseline:
    """The driver alone, on one device; `shim`: the same calls through the library of the hip backend, or None."""

    def __init__(self, path, device, driver=None):
        if device.backend != "cuda" and not driver:
            raise BaselineError(f"raw.c supports CUDA only, this is {device.backend}")
        if not path or not Path(path).exists():
            raise BaselineError("raw.c was not compiled")
        self.path, self.shim = Path(path).resolve(), None
        self.driver = driver or library_of("cuda")
        self.open(ctypes.CDLL(str(self.path)), device)
        if device.backend == "hip":
            self.shim = Through(self.path, device, self.driver)

    def open(self, library, device):
        """Open the device with raw.c, loaded as that library."""
        self.library = library
        self.library.raw_error.restype = ctypes.c_char_p
        self.library.raw_open.restype = ctypes.c_void_p
        opened = self.library.raw_open(self.driver.encode(), device.ordinal)
        if not opened:
            raise BaselineError(self.library.raw_error().decode())
        self.raw = ctypes.c_void_p(opened)

    def check(self, code):
        """Raise an exception for an error code of the driver."""
        if code:
            raise BaselineError(self.library.raw_error().decode())

    def stay(self):
        """Make the context current in this thread permanently, as in a C program."""
        self.check(self.library.raw_stay(self.raw))
        if self.shim:
            self.shim.stay()

    def use(self, stream, arrays):
        """Use this stream for all calls from now on, and these arrays, or None, for large copies."""
        bulk = Bulk(arrays.array.ptr, arrays.other.ptr, arrays.pinned.ctypes.data, arrays.pageable.ctypes.data,
                    arrays.nbytes) if arrays else Bulk()
        self.check(self.library.raw_use(self.raw, ctypes.c_void_p(stream.handle), ctypes.byref(bulk)))
        self.stream = stream
        if self.shim:
            self.shim.use(stream, arrays)

    def floor(self):
        """Return the module that floor.c makes, which uses the baseline's stream, or None if it was not compiled."""
        path = self.path.with_name("floor.abi3.so")
        if not path.exists():
            return None
        spec = importlib.util.spec_from_file_location("floor", path)
        module = importlib.util.module_from_spec(spec)
        module.use(self.raw.value, ctypes.addressof(ctypes.c_char.in_dll(self.library, "raw_cu")))
        return module

    def allocate(self, nbytes):
        """Set the size for the rows alloc_free and alloc_free_async."""
        self.library.raw_alloc_bytes(self.raw, ctypes.c_size_t(nbytes))

    def bursts_of(self, name):
        """Return a function that measures bursts of a row of raw.c and returns their nanoseconds."""

        def run(count):
            times = (ctypes.c_double * count)()
            self.check(self.library.raw_run(self.raw, name.encode(), count, times))
            return list(times)

        return run

    def close(self):
        """Release the context."""
        if self.shim:
            self.shim.close()
        self.library.raw_close(self.raw)


class Through(Baseline):
    """The same calls of HIP's functions on CUDA's driver: what the shim itself costs."""

    def __init__(self, path, device, driver):
        self.path, self.driver, self.shim = path, driver, None
        with tempfile.TemporaryDirectory() as directory:  # a copy, since a file is loaded once
            self.open(ctypes.CDLL(shutil.copy(path, directory)), device)
        self.check(self.library.raw_through(self.raw, library_of("hip").encode()))


def open_for_part(options):
    """The device of a new process's options, its baseline with the context current in this thread, or None with the reason, and a stream for each side."""
    device = gg.Device(options.device) if options.device else gg.current_device()
    baseline, reason = open_baseline(options.raw, device)
    streams = gg.Stream(device, nonblocking=True), gg.Stream(device, nonblocking=True)
    if baseline:
        baseline.stay()
    return device, baseline, reason, streams


def open_baseline(path, device, driver=None):
    """Return (baseline, None), or (None, the reason). The driver is gpuglue's, or a path: CUDA's below the library of the hip backend."""
    try:
        return Baseline(path, device, driver), None
    except (BaselineError, OSError) as error:
        return None, str(error)
