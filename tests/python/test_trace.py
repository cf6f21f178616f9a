"""gpuglue.trace() and gpuglue.range(): the file follows the Trace Event Format, and holds what ran."""

import json
import os
import threading

import numpy as np
import pytest
from conftest import run_python, succeeds
from kernels import load

import gpuglue as gg


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
    slack = 1000  # µs: the clocks of device and host are aligned by the work itself
    for event in ran:
        assert event["dur"] > 0
        assert around["ts"] - slack <= event["ts"] <= around["ts"] + around["dur"] + slack
    starts = [event["ts"] for event in sorted(ran, key=lambda event: event["ts"])]
    assert all(later >= earlier for earlier, later in zip(starts, starts[1:]))
    names = [e["args"]["name"] for e in events if e["ph"] == "M"]
    assert any(name.startswith(f"{device.backend}:{device.ordinal} stream ") for name in names)


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
