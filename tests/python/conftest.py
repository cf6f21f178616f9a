"""The same tests for every backend. The vendor's library is fixed per process, so the suite is run once
per backend: `pytest --backend host`, `cuda-sim`, `hip-sim` (or -5, -5.7, -6, -7), `ze-sim-old`, `ze-sim-new`, `cuda`, …; without the option
GPUGLUE_BACKEND decides, else host. The tests' own libraries are found in GPUGLUE_TEST_LIBRARIES, else in
build/plain/tests; GPUGLUE_TEST_GATE, GPUGLUE_TEST_SIM_CUDA and GPUGLUE_TEST_SIM_HIP name one of them.

A backend that is absent skips its tests, or fails them if GPUGLUE_REQUIRE names it. No test
depends on the backend's name: it queries what the device supports."""

import contextlib
import ctypes
import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = pathlib.Path(os.environ.get("GPUGLUE_TEST_LIBRARIES") or ROOT / "build" / "plain" / "tests")


# Simulated backends: the variable for the library, the variable that may name it, its place in the build. The
# Level Zero ones are drivers with this machine's own loader; the last is a driver without a loader.
HIP = ("GPUGLUE_HIP_LIBRARY", "GPUGLUE_TEST_SIM_HIP")
SIMULATED = {
    "cuda-sim": ("GPUGLUE_CUDA_LIBRARY", "GPUGLUE_TEST_SIM_CUDA", "sim/cuda/libcuda.so.1"),
    "hip-sim": (*HIP, "sim/hip7/libamdhip64.so.7"),
    "hip-sim-7": (*HIP, "sim/hip7/libamdhip64.so.7"),
    "hip-sim-6": (*HIP, "sim/hip6/libamdhip64.so.6"),
    "hip-sim-5.7": (*HIP, "sim/hip5.7/libamdhip64.so.5"),
    "hip-sim-5": (*HIP, "sim/hip5/libamdhip64.so.5"),
    "ze-sim-old": ("ZE_ENABLE_ALT_DRIVERS", "GPUGLUE_TEST_SIM_ZE_OLD", "sim/ze_old/libze_sim_old.so.1"),
    "ze-sim-new": ("ZE_ENABLE_ALT_DRIVERS", "GPUGLUE_TEST_SIM_ZE_NEW", "sim/ze_new/libze_sim_new.so.1"),
    "ze-sim-direct": ("GPUGLUE_ZE_LIBRARY", "GPUGLUE_TEST_SIM_ZE_NEW", "sim/ze_new/libze_sim_new.so.1"),
}

# The management library that goes with a simulated driver.
MONITORS = {
    "cuda": ("GPUGLUE_NVML_LIBRARY", "sim/monitor/libnvidia-ml.so.1"),
    "hip": ("GPUGLUE_ROCM_SMI_LIBRARY", "sim/monitor/librocm_smi64.so.5"),
    "ze": ("GPUGLUE_ZES_LIBRARY", "sim/monitor/libzes.so.1"),
}
AMD_SMI = ("GPUGLUE_AMD_SMI_LIBRARY", "sim/monitor/libamd_smi.so.27")
if os.environ.get(AMD_SMI[0]):  # ROCm 7's
    MONITORS["hip"] = AMD_SMI

# The library of collective operations that goes with it, where the vendor's header was there.
COMMS = {"cuda": ("GPUGLUE_NCCL_LIBRARY", "sim/nccl/libnccl.so.2"), "hip": ("GPUGLUE_RCCL_LIBRARY", "sim/nccl/librccl.so.1")}

# No test depends on whether AMD's compiler is installed: an older one ends its process for the simulated architecture.
NO_HIPRTC = {"GPUGLUE_HIPRTC_LIBRARY": "/nonexistent/libhiprtc.so"}
VENDORS = [f"GPUGLUE_{name}_LIBRARY" for name in ("CUDA", "HIP", "ZE", "NVRTC", "HIPRTC", "OCLOC")]

GATE = ("GPUGLUE_TEST_GATE", "libgate.so")
LATE = ("GPUGLUE_TEST_LATE", "liblate.so")

# Seconds: only a safety net against endless waits; no test depends on the machine's speed.
HANG = 900

# For run_python: no vendor library is found.
NO_GPU = {f"GPUGLUE_{vendor}_LIBRARY": "/nonexistent/library" for vendor in ("CUDA", "HIP", "ZE")}


def pytest_addoption(parser):
    parser.addoption("--backend", choices=("host", *SIMULATED, "cuda", "hip", "ze"), help="where the tests run")


def pytest_configure(config):
    # A job in the background ignores interrupts, and its children inherit that; some tests are about interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen = config.getoption("--backend")
    if chosen:
        os.environ["GPUGLUE_BACKEND"] = chosen.split("-")[0]
    if chosen in SIMULATED:
        variable, override, place = SIMULATED[chosen]
        os.environ[variable] = str(built(override, place))
        if chosen == "hip-sim-7" and (BUILT / AMD_SMI[1]).exists():
            MONITORS["hip"] = AMD_SMI
        variable, place = MONITORS[chosen.split("-")[0]]
        os.environ |= {variable: str(BUILT / place), "GPUGLUE_SIM_MONITOR": "1"}
        if chosen.split("-")[0] in COMMS:
            variable, place = COMMS[chosen.split("-")[0]]
            os.environ[variable] = str(BUILT / place)
    if chosen in SIMULATED and chosen.startswith("hip"):
        os.environ |= NO_HIPRTC
    os.environ.setdefault("GPUGLUE_BACKEND", "host")


def pytest_terminal_summary(terminalreporter):
    """Which libraries of vendors the run could find: the result may depend on them."""
    given = [f"{variable[8:-8]}: {os.environ.get(variable) or 'searched'}" for variable in VENDORS]
    terminalreporter.write_line(f"libraries of vendors on {os.environ['GPUGLUE_BACKEND']}: {', '.join(given)}")


def built(variable, name):
    """A file from the build of the tests."""
    path = pathlib.Path(os.environ.get(variable) or BUILT / name)
    if not path.exists():
        raise pytest.UsageError(f"there is no {path}: build the tests, or set {variable}")
    return path


def needed(variable, name):
    """The same for one test, which is skipped if the tests were not built: a wheel can be tested alone."""
    if not os.environ.get("GPUGLUE_TEST_LIBRARIES") and not os.environ.get(variable) and not (BUILT / name).exists():
        pytest.skip(f"the tests were not built: there is no {BUILT / name}")
    return built(variable, name)


@pytest.fixture
def context(device):
    """The context of a program for PyCUDA; what the test leaves is collected while the device is there."""
    from gpuglue.compat.pycuda import driver, tools

    driver.init()
    made = tools.make_default_context()
    yield made
    made.pop()
    gc.collect()


@pytest.fixture(scope="session")
def backend():
    """The name of the backend under test, which is available."""
    import gpuglue

    name = os.environ["GPUGLUE_BACKEND"]
    try:
        return gpuglue.default_backend()
    except gpuglue.BackendUnavailableError as error:
        if name in os.environ.get("GPUGLUE_REQUIRE", "").split(","):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def device(backend):
    import gpuglue

    return gpuglue.Device(f"{backend}:0")


@pytest.fixture(scope="session")
def known_device(device):
    """The device, if DLPack has a device type for its backend: a user's plugin has none."""
    import gpuglue

    try:
        gpuglue.empty(1, device=device).__dlpack_device__()
    except BufferError as error:
        pytest.skip(str(error))
    return device


@pytest.fixture
def second_device(backend):
    import gpuglue

    devices = gpuglue.devices(backend)
    if len(devices) < 2:
        pytest.skip(f"{backend} has one device")
    return devices[1]


@pytest.fixture
def stream(device):
    import gpuglue

    stream = gpuglue.Stream(device, nonblocking=True)
    yield stream
    stream.close()


@pytest.fixture
def sim_library():
    """The simulated CUDA driver, for tests that need a driver to misbehave."""
    return simulated("cuda-sim")


def simulated(run):
    """The path of a simulated library; skips if it was not built."""
    try:
        return str(built(*SIMULATED[run][1:]))
    except pytest.UsageError as error:
        pytest.skip(str(error))


def nodes(what):
    """The environment in which /dev has these nodes: path=absent, path=there, path=refused:GROUP, separated by commas."""
    preload = [os.environ.get("LD_PRELOAD", ""), str(needed("GPUGLUE_TEST_NODES_LIBRARY", "libnodes.so"))]
    return {"LD_PRELOAD": " ".join(filter(None, preload)), "GPUGLUE_TEST_NODES": what}


class Gate:
    """Holds streams until open() is called: work that is queued after the gate does not begin before."""

    def __init__(self, library):
        self.library, self.opened = library, False
        self.handle = ctypes.c_void_p(library.gate_new())

    def hold(self, stream):
        """Queue the gate on a gpuglue.Stream, through the public C interface."""
        core = core_library()
        device, borrowed = ctypes.c_void_p(), ctypes.c_void_p()
        name = f"{stream.device.backend}:{stream.device.ordinal}".encode()
        function = ctypes.cast(self.library.gate_wait, ctypes.c_void_p)
        assert core.gg_device_find(name, ctypes.byref(device)) == 0
        handle = ctypes.c_uint64(stream.handle)
        assert core.gg_stream_borrow(device, handle, None, None, ctypes.byref(borrowed)) == 0
        assert core.gg_stream_host_func(borrowed, function, self.handle) == 0
        core.gg_stream_release(borrowed)
        return self

    @property
    def reached(self):
        return bool(self.library.gate_reached(self.handle))

    def open(self):
        self.opened = True
        self.library.gate_open(self.handle)

    def open_when(self, condition):
        """Open from another Python thread, once `condition()` is true."""

        def wait():
            while not condition():
                time.sleep(0.001)
            self.open()

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    def open_later(self):
        """Open once the next call has had some time to return too early."""
        opens_at = time.monotonic() + 0.05
        return self.open_when(lambda: self.reached and time.monotonic() > opens_at)


def until(condition):
    """Wait until condition() is true."""
    ends_at = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < ends_at, f"still false after {HANG} s"
        time.sleep(0.001)


def time_limits():
    """Rising limits in seconds, for a test in which one process must reach its limit and another must finish within
    it: use the next limit if the machine was too slow for the second. The first limit is a multiple of the present
    start time of an interpreter."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-P", "-c", "import gpuglue; gpuglue.backends('active')"], check=True, capture_output=True,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "GPUGLUE_BACKEND": "host"})
    limit = max(2.0, round(4 * (time.monotonic() - begun), 1))
    while limit < HANG:
        yield limit
        limit *= 2


@contextlib.contextmanager
def signal_during_the_wait(number=signal.SIGINT):
    """Send this process a signal once the main thread waits inside the block: the thread that sends it needs the GIL,
    and with this interval nothing takes the GIL from a thread that does not release it."""
    before, ended, sent, begin = sys.getswitchinterval(), [], [], threading.Lock()

    def send():
        begin.acquire()
        time.sleep(0.02)  # a call that releases the GIL without a wait has time to return
        if not ended:
            sent.append(number)
            os.kill(os.getpid(), number)

    begin.acquire()
    thread = threading.Thread(target=send)
    thread.start()
    sys.setswitchinterval(HANG)
    begin.release()
    try:
        yield
    finally:
        ended.append(True)
        sys.setswitchinterval(before)
        thread.join()
    assert sent, "nothing waited in this block"


def other_threads_sleep():
    """Whether no other thread of gpuglue or of a simulated driver runs: none is inside an allocator, whose lock a fork would
    copy. Threads of a real driver may never sleep."""
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/self/task/{task}/stat") as file:
            name, _, values = file.read().rpartition(")")
            if int(task) != threading.get_native_id() and "(gpuglue" in name and values.split()[0] != "S":
                return False
    return True


def core_library():
    """The libgpuglue that gpuglue uses, for ctypes."""
    import gpuglue

    return ctypes.CDLL(gpuglue._core._library()[0])


def gate_library():
    library = ctypes.CDLL(str(needed(*GATE)))
    library.gate_new.restype = ctypes.c_void_p
    return library


def late_library():
    """The library with late_calls, of tests/support/late.c."""
    library = ctypes.CDLL(str(needed(*LATE)))
    library.late_calls.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
    return library


def needs(device, *operations):
    """Skip if the device does not support the operations of a test."""
    missing = [operation for operation in operations if not device.supports(operation)]
    if missing:
        pytest.skip(f"{device} does not support {', '.join(missing)}")


@pytest.fixture
def gate(device):
    needs(device, "stream_host_func", "stream_borrow", "stream_native")
    gate = Gate(gate_library())
    yield gate
    gate.open()
    device.synchronize()


def run_python(code, *, arguments=(), **environment):
    """Run code in a fresh interpreter with the tests' environment; None removes a variable."""
    for function, library in (("gate_library", GATE), ("late_library", LATE)):
        if function in (code or ""):
            needed(*library)  # here, where a test can be skipped
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "tests/python"), *sys.path]))}
    variables |= {name: value for name, value in environment.items() if value is not None}
    for name in (name for name, value in environment.items() if value is None):
        variables.pop(name, None)
    command = [sys.executable, "-P", *arguments, *(["-c", code] if code else [])]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, env=variables)


def succeeds(result):
    """The output of a run that succeeded without messages."""
    assert (result.returncode, result.stderr) == (0, ""), result.stdout + result.stderr
    return result.stdout.strip()


@pytest.fixture(name="run_python")
def run_python_fixture(backend):
    return run_python


@pytest.fixture
def with_driver(device):
    """Run code that calls the driver itself; where that is not possible, the test is skipped."""
    from with_cuda import beside, missing
    reason = missing("the driver", device)
    if reason:
        pytest.skip(reason)
    return beside("the driver")
