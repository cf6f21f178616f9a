"""How many driver calls an operation makes, so that no change adds one. The simulated drivers count them."""

import collections
import json
import os

import pytest
from conftest import succeeds
from kernels import path_for

import gpuglue as gg

MORE = 50  # operations in the second of two processes, whose counts are compared; or in one process that counts each
CODE = """
import collections, ctypes, json
import numpy as np
import gpuglue as gg
driver = ctypes.CDLL({library!r})
visitor = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p)
def calls():
    found = collections.Counter()
    driver.sim_each_call(visitor(lambda name, count, data: found.update({{name.decode(): count}})), None)
    return found
device = gg.Device({device!r})
stream, blocking, event = gg.Stream(device, nonblocking=True), gg.Stream(device), gg.Event(device)
shared = gg.Stream(device, nonblocking=True)
shared.handle
function = gg.Module({image!r}, device)["scale"]
kernel = function.bind("PIf", grid=1, block=32)
array, host, result = gg.zeros(4, np.float32, device=device), np.zeros(128), np.zeros(128)
target = gg.to_gpu(host, device, stream)
gg.alloc(1 << 20, device, stream).close()
event.record(stream)
seen = []
with device:  # its context is current
    for _ in range({count}):
        device.synchronize()
        before = calls()
        {statement}
        seen.append(dict(calls() - before))
print(json.dumps(seen))
"""
LAUNCHED = {
    "cuda": {"cuLaunchKernel": 1, "cuCtxGetCurrent": 1},  # the second reads a variable of the thread
    "hip": {"hipModuleLaunchKernel": 1, "hipGetDevice": 1},
    "ze": {"zeCommandListAppendLaunchKernel": 1, "zeKernelSetGroupSize": 1, "zeKernelSetArgumentValue": 3},
}
UPLOADED = {"cuda": {"cuMemcpyHtoDAsync_v2": 1}, "hip": {"hipMemcpyHtoDAsync": 1}, "ze": {"zeCommandListAppendMemoryCopy": 1}}
DOWNLOADED = {"cuda": {"cuMemcpyDtoHAsync_v2": 1}, "hip": {"hipMemcpyDtoHAsync": 1}, "ze": {"zeCommandListAppendMemoryCopy": 1}}
# Work of other libraries, behind which this stream may wait, may write to memory that the driver knows.
ASKED = {"cuda": {"cuPointerGetAttributes": 1},
         "hip": {"hipPointerGetAttributes": 1, "hipGetDevice": 1, "hipThreadExchangeStreamCaptureMode": 2},
         "ze": {}}
# The default stream is that of the current context. Other libraries may capture streams that are ordered with it: then nothing that it
# allocated while earlier work was unfinished is used.
ENTERED = {"cuda": {"cuCtxGetCurrent": 1}, "hip": {"hipGetDevice": 1}}
CAPTURED = {"cuda": {"cuStreamIsCapturing": 1}, "hip": {"hipStreamIsCapturing": 1}}


def added(*tables):
    return {name: sum((collections.Counter(table[name]) for table in tables), collections.Counter()) for name in tables[-1]}


STATEMENTS = {
    "kernel(array, 4, 1.0, stream=stream)": LAUNCHED,
    "kernel(array, 4, 1.0, grid=2, block=64, stream=stream)": LAUNCHED,
    "function(array, np.uint32(4), np.float32(1), grid=1, block=32, stream=stream)": LAUNCHED,
    "event.record(stream)": {"cuda": {"cuEventRecord": 1}, "hip": {"hipEventRecord": 1}},
    "stream.wait(event)": {"cuda": {"cuStreamWaitEvent": 1}, "hip": {"hipStreamWaitEvent": 1}},
    "stream.done": {"cuda": {"cuStreamQuery": 1}, "hip": {"hipStreamQuery": 1}},
    "gg.to_gpu(host, device, stream)": UPLOADED,
    "gg.to_gpu(host, device, blocking)": added(UPLOADED, ASKED),
    "gg.to_gpu(host, device, shared)": added(UPLOADED, ASKED, CAPTURED),
    "gg.to_gpu(host, device)": added(UPLOADED, ASKED, ENTERED),
    "target.set(host, shared); gg.to_gpu(host, device, shared)": added(UPLOADED, ASKED, CAPTURED, UPLOADED, ASKED, CAPTURED),
    "target.set(host, None); gg.to_gpu(host, device)": added(UPLOADED, ASKED, ENTERED, UPLOADED, ASKED, ENTERED, CAPTURED, ENTERED),
    "target.set(host, stream)": UPLOADED,
    "target.set(host, blocking)": added(UPLOADED, ASKED),
    "target.set(host)": added(UPLOADED, ASKED, ENTERED),
    "target.get(result, stream)": DOWNLOADED,
    "target.get(result, blocking)": DOWNLOADED,
    "target.get(result)": DOWNLOADED,
    "gg.alloc(1 << 20, device, stream).close()": {"cuda": {}, "hip": {}, "ze": {}},
    "gg.Event(device).close()": {"cuda": {}, "hip": {}, "ze": {}},
}
# How a wait ends is chosen by what was fastest, and polls are as many as time allows.
WAITS = {"cuStreamQuery", "cuEventQuery", "cuEventRecord", "cuStreamWriteValue64_v2", "hipStreamQuery", "hipEventQuery", "hipEventRecord",
         "hipEventElapsedTime", "zeEventQueryStatus", "zeEventHostSynchronize", "zeEventHostReset", "zeCommandListAppendSignalEvent"}
CONTEXT = {"cuda": "cuCtxGetCurrent", "hip": "hipGetDevice"}
OFTEN = {"zeCommandListAppendBarrier"}  # Level Zero drivers before 1.7 need one after each append


def simulator(device):
    """The path of the simulated driver."""
    if device.backend == "ze":
        return (os.environ.get("ZE_ENABLE_ALT_DRIVERS") or os.environ["GPUGLUE_ZE_LIBRARY"]).split(",")[0]
    return next(one.library for one in gg.backends() if one.name == device.backend)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_operation_makes_no_more_calls_of_the_driver_than_it_needs(device, run_python, statement):
    if "Simulated" not in device.name:
        pytest.skip("only simulated drivers count their calls")
    expected = STATEMENTS[statement].get(device.backend)
    if expected is None:
        pytest.skip(f"{device.backend} has no driver function for it")
    code = CODE.format(device=f"{device.backend}:{device.ordinal}", library=simulator(device), image=str(path_for(device)),
                       count=MORE, statement=statement)
    uncounted = OFTEN | (WAITS if ".get(" in statement else set())
    if statement == "target.get(result)":
        uncounted.add(CONTEXT.get(device.backend))  # for the copy, and for the calls of the wait that name the default stream
    seen = [{name: count for name, count in each.items() if name not in uncounted}
            for each in json.loads(succeeds(run_python(code)))]
    others = [each for each in seen if each != expected]
    # The first may create what later ones reuse. A stream gets a marker after 16 operations, or more.
    assert len(others) <= 1 + MORE // 16, collections.Counter(str(each) for each in seen)


COLLECTIVE = """
import gpuglue as gg
with gg.Communicator(0, 1, device={device!r}) as comm, comm.device:
    x, out, stream = gg.zeros(8, "float32"), gg.zeros(8, "float32"), gg.Stream()
    {before}
    for _ in range({count}):
        {statement}
    stream.synchronize()
"""
LENT = "stream.handle"  # other code may capture the stream from now on, so each operation asks the driver once
COLLECTIVES = {
    "comm.all_reduce(x, out, stream=stream)": {"ncclAllReduce": 1},
    "comm.all_reduce(x)": {"ncclAllReduce": 1},
    "comm.all_gather(x, out, stream=stream)": {"ncclAllGather": 1},
    "comm.reduce_scatter(x, out, stream=stream)": {"ncclReduceScatter": 1},
    "comm.broadcast(x, stream=stream)": {"ncclBroadcast": 1},
    "comm.reduce(x, out, stream=stream)": {"ncclReduce": 1},
    "comm.all_to_all(x, out, stream=stream)": {"ncclGroupStart": 1, "ncclSend": 1, "ncclRecv": 1, "ncclGroupEnd": 1},
}
CAPTURING = {"cuda": "cuStreamIsCapturing", "hip": "hipStreamIsCapturing"}


def collective_calls(run_python, device, tmp_path, statement, before):
    """The calls of each of the operations in which the second of two processes has more."""
    counts = []
    for count in (20, 20 + MORE):
        path = tmp_path / f"{count}.json"
        code = COLLECTIVE.format(device=f"{device.backend}:{device.ordinal}", count=count, statement=statement, before=before)
        succeeds(run_python(code, GPUGLUE_SIM_REPORT=str(path)))
        counts.append(json.loads(path.read_text())["calls"])
    each = collections.Counter({name: (count - counts[0].get(name, 0)) / MORE for name, count in counts[1].items()})
    # An event is recorded before an operation if none is unfinished, and behind some. Each needs the context.
    each[CONTEXT[device.backend]] -= sum(each[f"{prefix}EventRecord"] for prefix in ("cu", "hip"))
    return {name: round(count) for name, count in each.items()}


@pytest.mark.parametrize("before", ["pass", LENT])
@pytest.mark.parametrize("statement", COLLECTIVES)
def test_a_collective_operation_makes_no_more_calls_than_it_needs(device, tmp_path, run_python, statement, before):
    if "Simulated" not in device.name or device.backend not in CONTEXT:
        pytest.skip("only simulated drivers count their calls, and only cuda and hip have a library of collective operations")
    for _ in range(5):
        each = collective_calls(run_python, device, tmp_path, statement, before)
        if each[CONTEXT[device.backend]] == 1:  # the thread that watches the communicator asks the driver too, more often if operations take longer
            break
    library = {name: count for name, count in each.items() if name.startswith("nccl") and count}
    assert library == COLLECTIVES[statement]
    assert each[CONTEXT[device.backend]] == 1 and not any(each.get(f"{prefix}EventRecord", 0) > 2 for prefix in ("cu", "hip"))
    asked = 1 if before == LENT and "stream=" in statement else 0
    own = 1  # the simulated library asks once itself
    assert each.get(CAPTURING[device.backend], 0) == own + asked
    assert not any(each.get(f"{prefix}StreamWaitEvent") for prefix in ("cu", "hip"))


EVENTS = """
import gpuglue as gg
from conftest import Gate, gate_library
with gg.Communicator(0, 1, device={device!r}) as comm, comm.device:
    x, stream = gg.zeros(8, "float32"), gg.Stream(nonblocking=True)
    for i in range({waited}):
        comm.all_reduce(x, stream=stream)
        if i % 20 == 0:
            stream.synchronize()
    gate = Gate(gate_library()).hold(stream)
    for i in range({unfinished}):
        comm.all_reduce(x, stream=stream)
    gate.open()
"""


@pytest.mark.parametrize(("waited", "unfinished"), [((200, 1200), (0, 0)), ((0, 0), (4200, 4600))])
def test_the_events_behind_collective_operations_serve_again(device, tmp_path, run_python, waited, unfinished):
    if "Simulated" not in device.name or device.backend not in CONTEXT:
        pytest.skip("only simulated drivers count their calls, and only cuda and hip have a library of collective operations")
    made = []
    for before, behind in zip(waited, unfinished):
        path = tmp_path / f"{before}-{behind}.json"
        code = EVENTS.format(device=f"{device.backend}:{device.ordinal}", waited=before, unfinished=behind)
        succeeds(run_python(code, GPUGLUE_SIM_REPORT=str(path)))
        found = json.loads(path.read_text())["calls"]
        made.append(sum(count for name, count in found.items() if "EventCreate" in name))
    assert made[1] - made[0] <= 40  # the longer loop may have more of them unfinished at once


QUERIES = """
import gpuglue as gg
device = gg.Device({device!r})
stream, event = gg.Stream(device, nonblocking=True), gg.Event(device)
event.record(stream)
while not stream.done:
    pass
{before}
for _ in range({count}):
    {again}
    event.done
"""


@pytest.mark.parametrize(("before", "again", "queries"), [("pass", "pass", 0), ("event.handle", "pass", 1),
                                                          ("pass", "event.record(stream)\n    while not stream.done: pass", 1)])
def test_an_event_that_was_found_done_is_queried_again_only_if_it_was_recorded_since(device, tmp_path, run_python, before, again, queries):
    if "Simulated" not in device.name or device.backend == "ze":
        pytest.skip("only simulated drivers count their calls, and a query of Level Zero's streams queries an event")
    counts = []
    for count in (20, 20 + MORE):
        path = tmp_path / f"{count}.json"
        code = QUERIES.format(device=f"{device.backend}:{device.ordinal}", count=count, before=before, again=again)
        succeeds(run_python(code, GPUGLUE_SIM_REPORT=str(path)))
        found = json.loads(path.read_text())["calls"]
        counts.append(found.get("cuEventQuery", 0) + found.get("hipEventElapsedTime", 0))
    assert counts[1] - counts[0] == queries * MORE


STAGED = """
import numpy as np
import gpuglue as gg
device = gg.Device({device!r})
stream, host = gg.Stream(device, nonblocking=True), np.zeros(1 << 17)
array = gg.to_gpu(host, device, stream)
for _ in range({count}):
    array.set(host, stream)
"""


def test_an_upload_in_chunks_records_one_event_where_it_uses_no_slot_twice(device, tmp_path, run_python):
    if "Simulated" not in device.name or device.backend == "ze":
        pytest.skip("only simulated drivers count their calls, and those of Level Zero signal an event in each copy")
    counts = []
    for count in (20, 20 + MORE):
        path = tmp_path / f"{count}.json"
        code = STAGED.format(device=f"{device.backend}:{device.ordinal}", count=count)
        succeeds(run_python(code, GPUGLUE_SIM_REPORT=str(path), GPUGLUE_STAGING="always"))
        found = json.loads(path.read_text())["calls"]
        counts.append([sum(n for name, n in found.items() if part in name) for part in ("EventRecord", "HtoDAsync")])
    (few, before), (many, after) = counts
    assert after - before == 7 * MORE
    assert many - few <= 1.2 * MORE  # a marker of the stream is rarer


@pytest.mark.parametrize("staging", ["always", "never"])
def test_a_large_upload_does_not_ask_whether_a_stream_is_idle_that_is_known_to_be(device, tmp_path, run_python, staging):
    if "Simulated" not in device.name or device.backend == "ze":
        pytest.skip("only simulated drivers count their calls, and Level Zero has no query of a stream")
    counts = []
    for count in (20, 20 + MORE):
        path = tmp_path / f"{count}.json"
        code = STAGED.format(device=f"{device.backend}:{device.ordinal}", count=count)
        succeeds(run_python(code, GPUGLUE_SIM_REPORT=str(path), GPUGLUE_STAGING=staging))
        found = json.loads(path.read_text())["calls"]
        counts.append(sum(n for name, n in found.items() if name in ("cuStreamQuery", "cuStreamSynchronize", "hipStreamQuery", "hipStreamSynchronize")))
    few, many = counts
    assert many - few == (MORE if staging == "never" else 0)  # the driver's own copy of pageable memory ends later


MANY = """
import gpuglue as gg
device = gg.Device({device!r})
streams = [gg.Stream(device, nonblocking=True) for _ in range(100)]
with device:
    for i in range({count}):
        block = gg.alloc(4096, device, streams[i % 100])
        other = streams[(i + 1) % 100]
        {use}
        block.close()
"""


@pytest.mark.parametrize(("use", "most"), [("block.record_use(other)", 0.12), ("gg.fill(block, 0, other)", 0.8)])
def test_allocations_on_many_streams_rarely_poll_the_driver(use, most, device, tmp_path, run_python):
    if "Simulated" not in device.name:
        pytest.skip("only simulated drivers count their calls")
    counts = []
    for count in (12000, 16000):  # the pool grows at first
        path = tmp_path / f"{count}.json"
        code = MANY.format(device=f"{device.backend}:{device.ordinal}", count=count, use=use)
        succeeds(run_python(code, GPUGLUE_SIM_REPORT=str(path)))
        calls_by_name = json.loads(path.read_text())["calls"]
        counts.append(sum(n for name, n in calls_by_name.items() if any(part in name for part in ("Query", "EventRecord", "WaitEvent"))))
    each = 5 if device.backend == "ze" else 1  # a poll queries several events there
    assert counts[1] - counts[0] < 4000 * most * each


WAITED = """
import numpy as np
import gpuglue as gg
device = gg.Device({device!r})
stream, host = gg.Stream(device, nonblocking=True), np.zeros(128)
array = gg.to_gpu(host, device, stream)
with device:
    for i in range({count}):
        array.set(host, stream)
        if i % {between} == 0:
            stream.synchronize()
"""


@pytest.mark.parametrize("between", [10, 40])
def test_small_uploads_record_events_only_where_nobody_waits(device, tmp_path, run_python, between):
    if "Simulated" not in device.name or device.backend == "ze":
        pytest.skip("only simulated drivers count their calls, and those of Level Zero need an event for each wait")
    counts = []
    for count in (100, 420):
        path = tmp_path / f"{count}.json"
        code = WAITED.format(device=f"{device.backend}:{device.ordinal}", count=count, between=between)
        succeeds(run_python(code, GPUGLUE_SIM_REPORT=str(path)))
        found = json.loads(path.read_text())["calls"]
        counts.append(found.get("cuEventRecord", 0) + found.get("hipEventRecord", 0))
    waits = 320 / between  # each may record an event of its own, and some more where the machine is slow
    assert counts[1] - counts[0] <= waits + (320 / 32 if between <= 10 else 320 / 16)


SHARED = """
import threading
import numpy as np
import gpuglue as gg
device = gg.Device({device!r})
arrays = [gg.zeros(100, device=device), gg.zeros(1 << 20, device=device)]
def use():
    for array in arrays:
        array.set(array.get() + 1)
threads = [threading.Thread(target=use) for _ in range({threads})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert all((array.get() == {threads}).any() for array in arrays) or {threads} > 1
del arrays
"""


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_no_memory_is_left_at_the_end_where_other_threads_have_copied(device, tmp_path, run_python, threads):
    if "Simulated" not in device.name:
        pytest.skip("only simulated drivers count their objects")
    path = tmp_path / "report.json"
    code = SHARED.format(device=f"{device.backend}:{device.ordinal}", threads=threads)
    succeeds(run_python(code, GPUGLUE_SIM_REPORT=str(path)))
    alive = json.loads(path.read_text())["alive"]
    assert {kind: alive[kind] for kind in ("device", "pinned", "managed")} == {"device": 0, "pinned": 0, "managed": 0}


OUTSIDE = """
import numpy as np
import gpuglue as gg
device = gg.Device({device!r})
stream, host = gg.Stream(device, nonblocking=True), np.zeros(1 << 12)
array = gg.to_gpu(host, device, stream)
stream.synchronize()
for _ in range({count}):  # no context is current
    array.set(host, stream)
    stream.synchronize()
    array.get(host, stream)
"""
CONTEXT_CALLS = ("cuCtxGetCurrent", "cuCtxSetCurrent", "hipGetDevice", "hipSetDevice")


def test_copies_and_waits_on_a_stream_leave_the_current_context_alone(device, tmp_path, run_python):
    if "Simulated" not in device.name or device.backend == "ze":
        pytest.skip("only simulated drivers count their calls, and those of Level Zero have no current context")
    counts = []
    for count in (20, 20 + MORE):
        path = tmp_path / f"{count}.json"
        code = OUTSIDE.format(device=f"{device.backend}:{device.ordinal}", count=count)
        succeeds(run_python(code, GPUGLUE_SIM_REPORT=str(path)))
        found = json.loads(path.read_text())["calls"]
        counts.append(sum(found.get(name, 0) for name in CONTEXT_CALLS))
    assert counts[1] - counts[0] < MORE / 5  # a poll of the pool, or a new event, is rarer


SLOTS = """
import numpy as np
import gpuglue as gg
device = gg.Device({device!r})
stream, host = gg.Stream(device, nonblocking=True), np.zeros(12288)
array = gg.to_gpu(host, device, stream)
for _ in range({count}):
    array.set(host, stream)
    stream.synchronize()
"""
UPLOADS = ("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync", "zeCommandListAppendMemoryCopy")


def test_an_upload_a_little_larger_than_a_slot_takes_two(device, tmp_path, run_python):
    if "Simulated" not in device.name:
        pytest.skip("only simulated drivers count their calls")
    slots = 2 if device.backend == "cuda" else 1  # one copy by the driver on others, which were not measured
    counts = []
    for count in (20, 20 + MORE):
        path = tmp_path / f"{count}.json"
        succeeds(run_python(SLOTS.format(device=f"{device.backend}:{device.ordinal}", count=count), GPUGLUE_SIM_REPORT=str(path)))
        found = json.loads(path.read_text())["calls"]
        counts.append(sum(found.get(name, 0) for name in UPLOADS))
    assert counts[1] - counts[0] == slots * MORE


DOWNLOADS = """
import numpy as np
import gpuglue as gg
device = gg.Device({device!r})
stream, host = gg.Stream(device, nonblocking=True), np.zeros(128)
array = gg.ones(128, device=device, stream=stream)
for _ in range(256):
    array.get(host, stream)
    assert (host == 1).all()
    host[:] = 0
"""


def words_of_downloads(device, path, run_python, late):
    """How many of 256 small downloads wait for a word, which arrives so many milliseconds late."""
    code = DOWNLOADS.format(device=f"{device.backend}:{device.ordinal}")
    succeeds(run_python(code, GPUGLUE_SIM_REPORT=str(path), GPUGLUE_SIM_LATE_WORDS=str(late)))
    calls = json.loads(path.read_text())["calls"]
    assert calls["cuMemcpyDtoHAsync_v2"] == 256
    return calls["cuStreamWriteValue64_v2"]


def test_small_downloads_do_not_wait_for_a_word_that_arrives_late(device, tmp_path, run_python):
    if "Simulated" not in device.name or device.backend != "cuda":
        pytest.skip("only the simulated driver of CUDA writes words in streams")
    path = tmp_path / "calls.json"
    assert words_of_downloads(device, path, run_python, 0) >= 63  # the first trial of a query is the 64th download
    late = 2  # on a busy machine a query takes milliseconds, too
    while (words := words_of_downloads(device, path, run_python, late)) >= 200:
        late *= 4
        assert late < 100, words
