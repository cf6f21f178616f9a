"""For tests beside other users of CUDA (test_with_*.py): processes in which both are used, and, for the code
that runs there, the driver's own functions, and arrays with the interfaces of other libraries."""

import ctypes
import functools
import importlib.util
import os
import textwrap
import threading

from conftest import core_library, run_python, succeeds

GLOBAL, THREAD_LOCAL, RELAXED = range(3)  # modes of a capture

# Each library is imported and used, in the order that a test requests.
FIRST_USE = {
    "gpuglue": "import gpuglue as gg; gg.zeros(1)",
    "torch": "import torch; torch.zeros(1, device='cuda')",
    "cupy": "import cupy; cupy.zeros(1)",
    "cuda.core": "from cuda import core; native = core.Device(0); native.set_current()",
    # with a kernel: versions that are incompatible with the installed NumPy fail there
    "numba": "import numba.cuda, numpy; numba.cuda.jit(lambda a: None)[1, 1](numba.cuda.to_device(numpy.zeros(1)))",
    "triton": "import triton, torch; torch.zeros(1, device='cuda')",
    "warp": "import warp; warp.config.quiet = True; warp.init(); warp.zeros(1, device='cuda:0')",
    "cuda.compute": "import cuda.compute, torch; torch.zeros(1, device='cuda')",
    "cuda.tile": "import cuda.tile, torch; torch.zeros(1, device='cuda')",
    "jax": "import jax; assert jax.devices('gpu'); jax.numpy.zeros(1).block_until_ready()",
    "the driver": "import with_cuda as cuda; cuda.call('cuInit', 0)",
}
IMPORTS = "import gc, threading, weakref, numpy as np, gpuglue as gg, with_cuda as cuda"


# ---- in pytest's process ------------------------------------------------------------------------------


def installed(library):
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


@functools.cache
def first_error(library):
    """Why a library cannot be used on this machine, or None."""
    result = run_python(FIRST_USE[library], arguments=("-W", "ignore"))
    return result.stderr.strip().splitlines()[-1] if result.returncode else None


def missing(library, device):
    """Why a test of gpuglue beside a library cannot run, or None."""
    driver = os.environ.get("GPUGLUE_CUDA_LIBRARY", "")
    if library != "the driver" and not installed(library):
        return f"{library} is not installed"
    if not hasattr(device.default_stream, "__cuda_stream__"):
        return f"{library} shares no streams with {device}"
    if device.backend != "cuda":
        return f"{library} is tested beside cuda, and this run is of {device.backend}"
    if library != "the driver" and driver and os.path.dirname(driver) not in os.environ.get("LD_LIBRARY_PATH", ""):
        return f"{library} would use another driver than {driver}"
    error = first_error(library)
    return error and f"{library} cannot be used here: {error}"


def beside(library):
    """A function that runs code in a process that has first used `first` and then the other of the two."""

    def run(code, first=library, **environment):
        second = library if first == "gpuglue" else "gpuglue"
        lines = [FIRST_USE[first], FIRST_USE[second], IMPORTS, textwrap.dedent(code)]
        result = run_python("\n".join(lines), arguments=("-W", "ignore"), **environment)
        assert result.returncode == 0, f"exit {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout.strip()

    return run


def mapped_in(code, name):
    """The files of a process that runs code whose names begin so."""
    return succeeds(run_python(f"{code}; import with_cuda; print(*with_cuda.mapped('{name}'))")).split()


# ---- in the processes that the tests start --------------------------------------------------------------


@functools.cache
def driver():
    return ctypes.CDLL(os.environ.get("GPUGLUE_CUDA_LIBRARY") or "libcuda.so.1")


def call(name, *arguments):
    code = getattr(driver(), name)(*arguments)
    assert code == 0, f"{name} returns {code}"


def current_context():
    context = ctypes.c_void_p()
    call("cuCtxGetCurrent", ctypes.byref(context))
    return context.value


def primary_context(ordinal=0):
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
    call("cuDevicePrimaryCtxRelease_v2", ordinal)
    return context.value


def new_stream(flags=0):
    """A stream that gpuglue does not know."""
    import gpuglue as gg

    stream = ctypes.c_void_p()
    with gg.Device("cuda:0"):
        call("cuStreamCreate", ctypes.byref(stream), flags)
    return stream.value


def destroy_stream(handle):
    call("cuStreamDestroy_v2", ctypes.c_void_p(handle))


class Capture:
    """Capture the work that is queued on a stream inside the block."""

    def __init__(self, stream, mode=GLOBAL):
        self.stream, self.mode = ctypes.c_void_p(stream), mode
        self.graph, self.runnable = ctypes.c_void_p(), ctypes.c_void_p()

    def __enter__(self):
        call("cuStreamBeginCapture_v2", self.stream, self.mode)
        return self

    def __exit__(self, kind, *_):
        import gpuglue as gg

        code = driver().cuStreamEndCapture(self.stream, ctypes.byref(self.graph))
        if kind is None:
            assert code == 0, f"the capture ended with {code}"
            with gg.Device("cuda:0"):
                call("cuGraphInstantiateWithFlags", ctypes.byref(self.runnable), self.graph, ctypes.c_ulonglong(0))

    def replay(self):
        call("cuGraphLaunch", self.runnable, self.stream)
        call("cuStreamSynchronize", self.stream)

    def close(self):
        for destroy, handle in ("cuGraphExecDestroy", self.runnable), ("cuGraphDestroy", self.graph):
            if handle:
                call(destroy, handle)


class Exported:
    """A GPUArray with only the interface that torch and CuPy use."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = {
            "version": 2,
            "shape": array.shape,
            "strides": None,
            "typestr": array.dtype.str,
            "data": (array.ptr, False),
        }


def late(stream):
    """Queue about 50 ms of work, so that later work is late."""
    import gpuglue as gg

    block = gg.alloc(1 << 29, device=stream.device)
    for _ in range(300):
        gg.fill(block, 0, stream=stream)


def gate():
    from conftest import Gate, gate_library

    return Gate(gate_library())


def cycle(*members):
    """Garbage that only the garbage collector finds."""
    members = list(members)
    members.append(members)
    return members


def held_back():
    """How many released blocks of device 0 gpuglue has not given back to the driver, after a trim."""

    class Stats(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32)] + [
            (name, ctypes.c_uint64) for name in ("blocks", "bytes", "retired_blocks", "retired_bytes")
        ]

    core, device, stats = core_library(), ctypes.c_void_p(), Stats(ctypes.sizeof(Stats))
    assert core.gg_device_find(b"cuda:0", ctypes.byref(device)) == 0
    assert core.gg_device_synchronize(device) == 0 and core.gg_device_trim(device) == 0
    assert core.gg_device_memory_stats(device, ctypes.byref(stats)) == 0
    return stats.retired_blocks


def in_thread(function):
    failures = []

    def run():
        try:
            function()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def gpuglue_calls():
    """A call of each kind."""
    import gpuglue as gg
    import numpy as np

    device, stream = gg.Device("cuda:0"), gg.Stream("cuda:0", nonblocking=True)
    array, host = gg.zeros(100, device=device), gg.zeros_pinned(100, device=device)

    def enter(entered):
        with entered:
            array.fill(2)

    return {
        "to_gpu": lambda: gg.to_gpu(np.ones(100_000), device).get(),
        "get": array.get,
        "fill": lambda: array.fill(1),
        "copy": lambda: gg.copy(host, array, stream=stream),
        "alloc": lambda: gg.alloc(10, device).close(),
        "alloc too much": lambda: gg.alloc(1 << 50, device),
        "alloc_pinned": lambda: gg.alloc_pinned(10, device).close(),
        "stream": lambda: gg.Stream(device).close(),
        "borrow": lambda: gg.Stream.borrow(2, device).synchronize(),
        "event": lambda: gg.Event(device, timing=True).record(stream),
        "wait": lambda: stream.wait(device.default_stream),
        "synchronize": stream.synchronize,
        "device": lambda: (device.synchronize(), device.memory_info(), device.attributes),
        "with stream": lambda: enter(stream),
        "with device": lambda: enter(device),
        "lists": lambda: (gg.backends("active"), gg.devices(), gg.current_device()),
    }


def check_that_calls_leave_the_context_alone():
    import gpuglue as gg

    before = current_context()
    for name, function in gpuglue_calls().items():
        try:
            function()
        except gg.OutOfMemoryError:
            assert name == "alloc too much"
        assert current_context() == before, name


def mapped(name):
    """The files of this process whose names begin so."""
    with open("/proc/self/maps") as file:
        paths = {line.split()[-1] for line in file}
    return sorted(os.path.realpath(path) for path in paths if os.path.basename(path).startswith(name))
