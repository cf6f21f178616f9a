"""gpuglue.trace() and gpuglue.range(): the file follows the Trace Event Format, and holds what ran."""

import json
import os
import subprocess
import threading

import numpy as np
import pytest
from compilers import needs_compiler
from conftest import run_python, succeeds
from kernels import load
from test_communicator_device import native

import gpuglue as gg

__all__ = ["native"]


def recorded(path):
    """All events of a file, which follow the rules of the format."""
    with open(path) as file:
        whole = json.load(file)
    assert set(whole) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert whole["otherData"]["dropped_records"] == 0
    for event in whole["traceEvents"]:
        assert {"ph", "pid", "tid", "name"} <= set(event)
        assert event["ph"] in "XM"
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "X":
            assert event["ts"] > 0 and event["dur"] >= 0 and event["cat"] in ("host", "device", "range")
        else:
            assert event["name"] == "thread_name" and event["args"]["name"]
    return whole["traceEvents"]


def complete(events, category, name=None):
    return [e for e in events if e["ph"] == "X" and e["cat"] == category and name in (None, e["name"])]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.json"


def test_operations_lie_inside_the_range_that_submitted_them(device, path):
    with device, gg.trace(path), gg.range("round trip"):
        gg.to_gpu(np.arange(6.0)).get()
    events = recorded(path)
    (around,) = complete(events, "range", "round trip")
    copies = complete(events, "host", "copy")
    assert len(copies) >= 2
    for event in copies:
        assert event["tid"] == around["tid"] == threading.get_native_id()
        assert around["ts"] <= event["ts"] and event["ts"] + event["dur"] <= around["ts"] + around["dur"]
        assert event["args"]["bytes"] == 48


def test_device_times_lie_between_submission_and_synchronization(device, path):
    stream = gg.Stream(device)
    array = gg.empty(1 << 20, np.uint8, device=device)
    with gg.trace(path, device_times=True):
        with gg.range("all"):
            for value in range(5):
                gg.fill(array, value, stream=stream)
            stream.synchronize()
        stream.synchronize()
    events = recorded(path)
    (around,) = complete(events, "range", "all")
    submitted, ran = complete(events, "host", "fill"), complete(events, "device", "fill")
    assert len(submitted) == len(ran) == 5
    slack = 1000  # µs: some drivers return times as floats
    for event in ran:
        assert event["dur"] > 0
        assert around["ts"] - slack <= event["ts"] <= around["ts"] + around["dur"] + slack
    starts = [event["ts"] for event in sorted(ran, key=lambda event: event["ts"])]
    assert all(later >= earlier for earlier, later in zip(starts, starts[1:]))
    names = [e["args"]["name"] for e in events if e["ph"] == "M"]
    assert any(name.startswith(f"{device.backend}:{device.ordinal} stream ") for name in names)


@pytest.mark.parametrize("transport", ["library", "staged"])
def test_operations_of_a_communicator_have_name_and_bytes_and_with_a_library_a_time_on_the_device(device, path, request, transport):
    name = request.getfixturevalue("native") if transport == "library" else "staged"
    with gg.Communicator(0, 1, device=device, transport=name) as comm, device:
        x, out = gg.ones(1000, "float32"), gg.empty((1, 1000), "float32")
        with gg.trace(path, device_times=True):
            comm.all_reduce(x)
            comm.all_gather(x, out)
            if name != "staged":
                with comm.group():
                    comm.broadcast(x)
                    comm.broadcast(out)
            device.synchronize()
    names = ["all_reduce", "all_gather"] if device.backend != "host" or name != "staged" else []
    names += ["group"] if name != "staged" else []
    events = recorded(path)
    for name_, count in zip(names, (1, 1, 2)):
        (call,) = complete(events, "host", name_)
        assert call["args"]["operation"] == "collective" and call["args"]["bytes"] == 4000 * count
        ran = complete(events, "device", name_)
        assert len(ran) == (name != "staged") and all(event["dur"] > 0 for event in ran)


# A system on which one reading of the clock takes 30 ms, where a program asks for that.
SLOW_CLOCK = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int slow_readings;
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const struct timespec pause = {.tv_nsec = 30000000};
    if (slow_readings && syscall(SYS_gettid) == getpid()) {
        slow_readings--;
        nanosleep(&pause, NULL);
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}
"""


@pytest.fixture(scope="module")
def slow_clock(tmp_path_factory):
    """A value of LD_PRELOAD that makes the clock slow."""
    library = tmp_path_factory.mktemp("clock") / "libclock.so"
    command = [*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-o", library, "-x", "c", "-"]
    subprocess.run(command, input=SLOW_CLOCK, text=True, check=True)
    return " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))


SLOW_SUBMISSION = """
import ctypes, sys
import gpuglue as gg, numpy as np
array = gg.empty(16, np.uint8)
stream = gg.Stream()
slow_readings = ctypes.c_int.in_dll(ctypes.CDLL(None), "slow_readings")
with gg.trace(sys.argv[-1], device_times=True), gg.range("all"):
    slow_readings.value = 1
    gg.fill(array, 1, stream=stream)
    stream.synchronize()
print(slow_readings.value)
"""


@needs_compiler
def test_a_delay_of_the_submitting_thread_moves_no_device_time_past_the_synchronization(path, slow_clock, run_python):
    code = f"import sys; sys.argv.append({str(path)!r})\n" + SLOW_SUBMISSION
    assert succeeds(run_python(code, LD_PRELOAD=slow_clock)) == "0"
    events = recorded(path)
    (around,), (ran,) = complete(events, "range", "all"), complete(events, "device", "fill")
    assert ran["ts"] + ran["dur"] <= around["ts"] + around["dur"] + 1000


def test_a_launch_has_the_name_of_its_kernel(device, path):
    module = load(device)
    with gg.trace(path):
        module["nothing"](grid=1, block=1)
    (launch,) = complete(recorded(path), "host", "nothing")
    assert launch["args"]["operation"] == "kernel_launch"


def test_each_thread_has_its_row_and_its_ranges(device, path):
    def work(name):
        with gg.range(name):
            pass

    with gg.trace(path):
        threads = [threading.Thread(target=work, args=(f"thread {i}",)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    events = recorded(path)
    rows = {e["name"]: e["tid"] for e in complete(events, "range")}
    assert sorted(rows) == ["thread 0", "thread 1", "thread 2"]
    assert set(rows.values()) <= {e["tid"] for e in events if e["ph"] == "M"}


def test_a_range_decorates_a_function_and_ends_with_an_exception(path):
    @gg.range("step")
    def step():
        raise ValueError

    with gg.trace(path):
        for _ in range(3):
            with pytest.raises(ValueError):
                step()
    assert len(complete(recorded(path), "range", "step")) == 3


def test_a_second_recording_is_refused_and_a_second_stop_does_nothing(path):
    with gg.trace(path) as first:
        assert repr(first) == f"<gpuglue.Trace {os.fspath(path)!r}, recording>"
        with pytest.raises(gg.InvalidArgumentError, match=f"a recording to {path} is in progress: stop it first"):
            gg.trace(path)
    first.stop()
    assert repr(first).endswith("stopped>")


@pytest.mark.parametrize(
    ("path", "error", "reason"),
    [
        ("/nonexistent/run.json", gg.InvalidArgumentError, "/nonexistent/run.json cannot be created: No such file or directory"),
        ("/tmp/%x.json", gg.InvalidArgumentError, 'the path contains "%x": expected %p'),
        ("/tmp/a\0b", gg.InvalidArgumentError, "null character"),
        (3, TypeError, "expected str, bytes or os.PathLike object, not int"),
    ],
)
def test_a_bad_path_is_refused_with_its_reason(path, error, reason):
    with pytest.raises(error, match=reason):
        gg.trace(path)


def test_a_range_needs_a_name():
    with pytest.raises(TypeError, match="the name of a range must be a str, not int"):
        gg.range(3)


def test_the_end_of_the_process_writes_the_file(path, backend):
    succeeds(run_python(f"import gpuglue as gg; gg.trace({str(path)!r}); gg.to_gpu([1.0])"))
    assert complete(recorded(path), "host", "device_open")


def test_the_variable_records_a_whole_program_each_process_in_its_file(tmp_path, backend):
    code = "import gpuglue as gg, numpy as np; gg.to_gpu(np.ones(3)).get(); gg.Device().synchronize()"
    succeeds(run_python(code, GPUGLUE_TRACE=f"device:{tmp_path}/run-%q{{GPUGLUE_TEST_RANK}}.json", GPUGLUE_TEST_RANK="7"))
    events = recorded(tmp_path / "run-7.json")
    assert complete(events, "host", "device_open") and complete(events, "host", "copy")


def test_a_forked_child_leaves_the_file_to_its_parent(path):
    code = f"""if True:
        import os, gpuglue as gg
        with gg.trace({str(path)!r}), gg.range("parent"):
            pid = os.fork()
            if not pid:
                os._exit(0)
            os.waitpid(pid, 0)
    """
    succeeds(run_python(code))
    assert len(complete(recorded(path), "range")) == 1
