"""dpctl on Intel's own SYCL runtime, with the simulated Level Zero driver: what gpuglue's stand-in for SYCL claims of it.

    pip install dpctl pytest        # in an environment of its own: 900 MB with the runtime
    pytest tests/libraries/test_dpctl.py

dpctl 0.22.1, SYCL 2026.2 and the Level Zero loader 1.32 have been used.
"""

import ctypes
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

BUILT = pathlib.Path(os.environ.get("GPUGLUE_TEST_LIBRARIES") or pathlib.Path(__file__).resolve().parents[2] / "build/plain/tests")
DRIVER = BUILT / "sim/ze_new/libze_sim_new.so.1"
PROGRAM = """
import dpctl, dpctl.memory, numpy as np, gpuglue as gg
theirs = dpctl.get_devices()
ours = gg.devices("ze")
queue = dpctl.SyclQueue(theirs[1], property="in_order")
stream = gg.Stream.borrow(queue)
given = np.arange(1024, dtype="f4")
memory = dpctl.memory.MemoryUSMDevice(4096, queue=queue)
"""


@pytest.fixture
def run():
    """A function that runs a program, after PROGRAM, and returns the words that it prints."""
    if not importlib.util.find_spec("dpctl"):
        pytest.skip("dpctl is not installed")
    if not DRIVER.exists():
        pytest.skip(f"the tests were not built: there is no {DRIVER}")
    try:
        loader = ctypes.CDLL("libze_loader.so.1")
    except OSError:
        pytest.skip("there is no Level Zero loader")
    if not hasattr(loader, "zeInitDrivers"):
        pytest.skip("the Level Zero loader has no zeInitDrivers: those before it keep wrong pointers when SYCL initialises them again")
    settings = {"GPUGLUE_BACKEND": "ze", "ZE_ENABLE_ALT_DRIVERS": str(DRIVER), "ONEAPI_DEVICE_SELECTOR": "level_zero:*",
                "UR_L0_USE_IMMEDIATE_COMMANDLISTS": "1"}  # fmt: skip

    def words(program, copy_engine="0"):
        environment = {**os.environ, **settings, "UR_L0_USE_COPY_ENGINE": copy_engine}
        done = subprocess.run([sys.executable, "-c", PROGRAM + program], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return words


def test_devices_and_queues_of_dpctl_are_those_of_gpuglue(run):
    assert run("print(len(theirs), len(ours), stream.device.name[-1], *(ours[1 - i] is stream.device for i in range(2)))") == [
        "2", "2", "1", "True", "False"]  # fmt: skip


def test_the_number_in_dlpack_is_the_position_among_dpctls_devices(run):
    assert run("print(*(gg.zeros(3, device=d).__dlpack_device__()[1] for d in ours))") == ["0", "1"]


def test_work_on_a_queue_of_dpctl_is_in_order_with_that_of_gpuglue(run):
    program = """
memory.copy_from_host(given.view("u1"))
buffer = gg.Buffer.from_ptr(memory._pointer, 4096, device=stream.device)
array = gg.zeros(1024, "f4", device=stream.device)
gg.synchronize(stream.device)
gg.copy(array, buffer, stream=stream)
print((array.get(stream=stream) == given).all())
array.set(given * 2, stream=stream)
gg.copy(buffer, array, stream=stream)
print((memory.copy_to_host().view("f4") == given * 2).all())
"""
    assert run(program) == ["True", "True"]


def test_with_copy_engines_a_copy_of_sycl_comes_after_work_that_has_been_waited_for(run):
    """SYCL copies in another list than the one that it reports, and orders it after its own work only."""
    program = """
buffer = gg.Buffer.from_ptr(memory._pointer, 4096, device=stream.device)
array = gg.to_gpu(given, stream.device)
gg.synchronize(stream.device)
gg.copy(buffer, array, stream=stream)
stream.synchronize()
print((memory.copy_to_host().view("f4") == given).all())
"""
    assert run(program, copy_engine="1") == ["True"]


def test_a_queue_that_runs_out_of_order_is_refused(run):
    program = """
try: gg.Stream.borrow(dpctl.SyclQueue(theirs[0]))
except gg.InvalidArgumentError as error: print("out of order" in str(error))
"""
    assert run(program) == ["True"]


def test_memory_of_gpuglue_is_usm_memory_of_dpctl(run):
    """In the default context of SYCL, which is not gpuglue's."""
    program = """
array = gg.to_gpu(given, stream.device)
shared = dpctl.memory.as_usm_memory(array)
print(type(shared).__name__, shared._pointer == array.ptr, shared.nbytes, shared.sycl_device == theirs[1])
print((shared.copy_to_host().view("f4") == given).all())
shared.copy_from_host((given * 3).view("u1"))
print((array.get() == given * 3).all())
memory.copy_from_device(array)
print((memory.copy_to_host().view("f4") == given * 3).all())
"""
    assert run(program) == ["MemoryUSMDevice", "True", "4096", "True", "True", "True", "True"]


def test_memory_of_dpctl_is_an_array_of_gpuglue(run):
    program = """
memory.copy_from_host(given.view("u1"))
array = gg.asarray(memory)
print(array.ptr == memory._pointer, array.device is stream.device, array.shape, array.dtype)
print((array.view("f4").get() == given).all())
"""
    assert run(program) == ["True", "True", "(4096,)", "uint8", "True"]


SYCL_KERNELS = """
import importlib.util, pathlib, numpy as np, gpuglue as gg
file = pathlib.Path(importlib.util.find_spec("dpctl").origin).with_name("tests") / "input_files/local_accessor_kernel_inttys_fp32.spv"
module = gg.Module(file, "ze:0")
for letter, dtype in {"a": "i1", "h": "u1", "s": "i2", "t": "u2", "i": "i4", "j": "u4", "l": "i8", "m": "u8", "f": "f4"}.items():
    x = gg.to_gpu(np.ones(320, dtype), "ze:0")
    module[f"_ZTS14SyclKernel_SLMI{letter}E"](x, gg.LocalMemory(32 * x.itemsize), grid=10, block=32)
    print((x.get() == (np.arange(1, 321) * 64).astype(dtype)).all())
"""


def test_kernels_that_intels_compiler_made_from_sycl_run_on_pocl():
    """Those of dpctl's tests with a local accessor (libsyclinterface/tests/test_sycl_queue_submit_local_accessor_arg.cpp)."""
    if not importlib.util.find_spec("dpctl"):
        pytest.skip("dpctl is not installed")
    environment = {**os.environ, "GPUGLUE_BACKEND": "ze", "GPUGLUE_ZE_LIBRARY": str(DRIVER), "GPUGLUE_SIM_OPENCL": "libOpenCL.so.1"}
    why = pathlib.Path(__file__).resolve().parents[1] / "sim/opencl_missing.py"
    missing = subprocess.run([sys.executable, why, DRIVER], capture_output=True, text=True, env=environment, check=True).stdout
    if missing:
        pytest.skip(missing)
    done = subprocess.run([sys.executable, "-c", SYCL_KERNELS], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout.split()) == (0, ["True"] * 9), done.stderr
