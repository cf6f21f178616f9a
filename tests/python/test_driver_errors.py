"""Errors that a driver reports, now or later, and the functions of it that are called. Each test runs the simulated NVIDIA driver
in a process of its own, so one run is enough."""

import json

import pytest
from conftest import BUILT, run_python, succeeds

# ---- found later ----------------------------------------------------------------------------------------


def with_fault(sim_library, fault, code, **environment):
    return succeeds(
        run_python(
            "import gpuglue as gg, numpy as np\n"
            "stream, buffer = gg.Stream(), gg.alloc(1 << 20)\n" + code,
            GPUGLUE_BACKEND="cuda",
            GPUGLUE_DEVICE=None,
            GPUGLUE_CUDA_LIBRARY=sim_library,
            GPUGLUE_SIM_FAIL=fault,
            **environment,
        )
    )


FILL = (
    "def attempt(name, call):\n"
    "    try: call(); print(name, 'went well')\n"
    "    except gg.Error as error: print(name, type(error).__name__, error.code, error.name)\n"
    "attempt('fill', lambda: gg.fill(buffer, 1, stream=stream))\n"
    "attempt('wait', stream.synchronize)\n"
)


def test_a_failure_found_later_is_raised_by_the_next_wait(sim_library):
    lines = with_fault(sim_library, "@fill:1=999", FILL).splitlines()
    assert lines == ["fill went well", "wait DeviceError 999 CUDA_ERROR_UNKNOWN"]


def test_with_debug_sync_a_failure_is_raised_by_the_call_that_queued_it(sim_library):
    lines = with_fault(sim_library, "@fill:1=999", FILL, GPUGLUE_DEBUG="sync").splitlines()
    assert lines[0] == "fill DeviceError 999 CUDA_ERROR_UNKNOWN"


def test_a_lost_device_is_reported_with_the_operation_that_found_it(sim_library):
    code = FILL + (
        "for call in (lambda: gg.zeros(3), stream.synchronize, lambda: gg.copy(buffer, b'1')):\n"
        "    try: call()\n"
        "    except gg.DeviceLostError as error: assert 'the device was first lost in stream_wait' in str(error), error\n"
        "    else: print('went well')\n"
        "buffer.close(); stream.close(); print('end')"
    )
    lines = with_fault(sim_library, "@fill:1=700", code).splitlines()
    assert lines == ["fill went well", "wait DeviceLostError 700 CUDA_ERROR_ILLEGAL_ADDRESS", "end"]


LOST_BETWEEN_SLICES = (
    "import ctypes, signal\n"
    "cuda = ctypes.CDLL('{}')\n"
    "def lose(*_):\n"
    "    cuda.sim_hold(0)\n"
    "    while cuda.cuStreamQuery(ctypes.c_void_p(stream.handle)) != 700: pass\n"
    "signal.signal(signal.SIGALRM, lose)\n"
    "cuda.sim_hold(1)\n"
)
SET_TIMER = "signal.setitimer(signal.ITIMER_REAL, 0.01)\n"


def test_a_device_lost_between_two_slices_of_a_wait_is_reported_with_the_drivers_error(sim_library):
    wait = "attempt('wait'"
    code = LOST_BETWEEN_SLICES.format(sim_library) + FILL.replace(wait, SET_TIMER + wait)
    lines = with_fault(sim_library, "@fill:1=700", code).splitlines()
    assert lines == ["fill went well", "wait DeviceLostError 700 CUDA_ERROR_ILLEGAL_ADDRESS"]


STICKY = (
    "for call in (lambda: gg.alloc(5 << 20, 'cuda:0'), lambda: gg.Stream('cuda:0')):\n"
    "    try: call()\n"
    "    except gg.Error as error: print(type(error).__name__, error.code)"
)


@pytest.mark.parametrize("code", (214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911))
def test_an_error_that_all_later_calls_return_is_a_lost_device(sim_library, code):
    lines = with_fault(sim_library, f"cuMemAlloc_v2:2={code}", STICKY).splitlines()
    assert lines == [f"DeviceLostError {code}"] * 2


LOST_WITH_BLOCKS_IN_USE = (
    "import ctypes\n"
    "sim, other = ctypes.CDLL('{}'), gg.Stream()\n"
    "polls = lambda: sim.sim_calls(b'cuEventQuery') + sim.sim_calls(b'cuStreamQuery')\n"
    "sim.sim_hold(1)\n"
    "gg.fill(buffer, 1, stream=stream); buffer.record_use(other); gg.fill(buffer, 2, stream=other); buffer.close()\n"
    "assert other.device.pool.stats().retired_blocks == 1\n"
    "sim.sim_fail(b'cuMemAlloc_v2:1={}')\n"
    "for attempt in range(3):\n"
    "    before = polls()\n"
    "    try: gg.alloc(700 << 20)\n"
    "    except gg.DeviceLostError: print('lost', end=' ')\n"
    "print(other.device.pool.stats().retired_blocks, polls() - before)\n"
    "sim.sim_hold(0)"
)


@pytest.mark.parametrize("code", (214, 700, 719, 810, 911))
def test_an_allocation_on_a_lost_device_does_not_wait_for_blocks_in_use(sim_library, code):
    code = LOST_WITH_BLOCKS_IN_USE.format(sim_library, code)
    assert with_fault(sim_library, "", code) == "lost lost lost 0 0"


CALLS = {
    "cuMemHostAlloc": "gg.alloc_pinned(100)",
    "cuMemcpyHtoDAsync_v2": "gg.copy(buffer, bytes(1 << 20))",
    "cuMemcpyDtoHAsync_v2": "gg.copy(bytearray(1 << 20), buffer)",
    "cuMemsetD8Async": "gg.fill(buffer, 1)",
    "cuEventRecord": "stream.record()",
    "cuStreamCreateWithPriority": "gg.Stream()",
}


@pytest.mark.parametrize("function", CALLS)
def test_a_call_that_the_driver_refuses_once_raises_and_works_again(sim_library, function):
    code = (
        "import ctypes; ctypes.CDLL(gg.backends()[0].library).sim_fail(b'%s:1=801')\n"
        "try: %s\n"
        "except gg.UnsupportedError as error: print(error.code, error.name, error.backend, error.device)\n"
        "else: print('went well')\n"
        "%s; gg.synchronize(); assert gg.zeros(3).tolist() == [0, 0, 0]"
    ) % (function, CALLS[function], CALLS[function])
    assert with_fault(sim_library, "", code) == "801 CUDA_ERROR_NOT_SUPPORTED cuda 0"


def test_a_failed_query_of_a_kernels_parameters_has_the_drivers_code(sim_library):
    image = BUILT / "images" / "kernels.fatbin"  # compressed: only the driver knows what its kernels take
    code = (
        "import ctypes; ctypes.CDLL(gg.backends()[0].library).sim_fail(b'cuFuncGetParamInfo:1=999')\n"
        f"module = gg.Module({str(image)!r})\n"
        "try: module['scale']\n"
        "except gg.DeviceError as error: print(error.code, error.name, error.op)\n"
        "print(module['scale'].name)"
    )
    assert with_fault(sim_library, "", code).splitlines() == ["999 CUDA_ERROR_UNKNOWN kernel_parameter", "scale"]


def test_an_error_that_the_driver_reports_while_a_callback_is_added_is_raised(sim_library):
    code = (
        "import ctypes; ctypes.CDLL(gg.backends()[0].library).sim_fail(b'cuEventQuery:1=999')\n"
        "try: stream.add_callback(lambda: print('ran'))\n"
        "except gg.DeviceError as error: print(error.code, error.name, error.op)\n"
        "gg.synchronize()"
    )
    assert with_fault(sim_library, "", code) == "999 CUDA_ERROR_UNKNOWN event_query"


# ---- calls of the vendor's functions --------------------------------------------------------------------

EVERYTHING = (
    "host = np.arange(1 << 17, dtype='f8'); made = gg.to_gpu(host); made.get(); made.set(host); made.fill(3)\n"
    "gg.copy(made, made.copy()); pinned = gg.empty_pinned(host.shape); made.get_async(pinned, stream)\n"
    "made.set_async(pinned, stream); made.item(3); gg.full(3, (1, 2.5), 'i4,f8'); gg.fill(buffer, b'abcd')\n"
    "gg.copy(buffer, b'1234'); gg.copy(bytearray(9), buffer); made.get_async(stream=stream); stream.synchronize()\n"
    "event = stream.record(); stream.wait(event); gg.arange(3).tolist(); gg.zeros_pinned(3)\n"
    "with gg.Timer(stream) as timer: pass\n"
    "timer.ms; gg.synchronize()\n"
    "del made, pinned, buffer, event, timer, stream"
)
SYNCHRONOUS = ("cuMemcpy_", "cuMemcpyHtoD_", "cuMemcpyDtoH_", "cuMemcpyDtoD_", "cuMemsetD8_", "cuMemsetD16_", "cuMemsetD32_")


def test_only_the_vendors_asynchronous_entry_points_are_called_and_nothing_leaks(sim_library, tmp_path):
    with_fault(sim_library, "", EVERYTHING, GPUGLUE_SIM_REPORT=str(tmp_path / "report"))
    report = json.loads((tmp_path / "report").read_text())
    assert not [name for name in report["calls"] if (name + "_").startswith(SYNCHRONOUS)]
    assert "cuMemcpyHtoDAsync_v2" in report["calls"] and "cuMemcpyDtoHAsync_v2" in report["calls"]
    assert not any(report["leaked"].values()), report["leaked"]


def test_only_the_primary_context_is_used(sim_library, tmp_path):
    with_fault(sim_library, "", EVERYTHING, GPUGLUE_SIM_REPORT=str(tmp_path / "report"))
    calls = json.loads((tmp_path / "report").read_text())["calls"]
    assert "cuDevicePrimaryCtxRetain" in calls and not [name for name in calls if name.startswith("cuCtxCreate")]
