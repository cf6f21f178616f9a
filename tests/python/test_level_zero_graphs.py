"""Level Zero: graphs that the driver records. The simulated driver is loaded in place of a loader, because a loader before
1.32 lacks the functions."""

import pytest
from test_level_zero import sim  # noqa: F401 (a fixture)

START = """
import ctypes, os, gpuglue as gg, kernels, numpy as np
driver, device = ctypes.CDLL(os.environ["GPUGLUE_ZE_LIBRARY"]), gg.Device("ze:0")
stream, array = gg.Stream(device, nonblocking=True), gg.zeros(16, "f4", device=device)
scale = kernels.load(device)["scale"]
device.synchronize()

def calls(name):
    return driver.sim_calls(name.encode())

def launches():
    return calls("zeCommandListAppendGraphExt")

def capture(value, factor):
    with gg.capture(stream) as graph:
        array.fill(value)
        scale(array, np.uint32(16), np.float32(factor), grid=1, block=16)
    return graph

def launch(graph, on=stream):
    graph.launch(on)
    on.synchronize()
    return array.get()[3].item()

def left():
    gg.synchronize(); gg.trim()
    return driver.sim_alive(b"exec") + driver.sim_alive(b"graph")
"""

AGAIN = START + """
graph = capture(2, 3)
for _ in range(4):
    print(launch(graph), calls("zeCommandListAppendLaunchKernel"), launches())
    scale(array, np.uint32(16), np.float32(7), grid=1, block=16)  # leaves the graph's arguments as they are
print(driver.sim_alive(b"exec"))
graph.close()
print(left())
"""


def test_a_graph_that_is_launched_again_is_one_call_of_the_driver(sim):  # noqa: F811
    # kernels: that of the first launch and its recording for the second one, and one of the loop between two
    assert sim(AGAIN).splitlines() == ["6.0 1 0", "6.0 3 1", "6.0 4 2", "6.0 5 3", "1", "0"]


@pytest.mark.parametrize("case", [{"driver": "old"}, {"GPUGLUE_SIM_ZE_GRAPHS": "0"}], ids=["driver", "device"])
def test_a_driver_or_a_device_without_graphs_queues_the_operations(sim, case):  # noqa: F811
    code = START + "graph = capture(2, 3); print([launch(graph) for _ in range(3)], calls('zeCommandListBeginGraphCaptureExt'))"
    assert sim(code, **case) == "[6.0, 6.0, 6.0] 0"


UPDATED = START + """
graph, other = capture(2, 3), capture(4, 5)
print([launch(graph) for _ in range(2)], launches())
result = gg.empty_pinned(16, "f4", device=device)
driver.sim_hold(1)
graph.launch(stream)
array.get_async(out=result, stream=stream)
graph.update(other)
graph.launch(stream)
graph.close()
driver.sim_hold(0)
stream.synchronize()
print(result[3], array.get()[3], launches(), left())
graph = capture(6, 7)
for _ in range(3):  # one that is updated before each launch is never recorded
    graph.update(other)
    launch(graph)
print([launch(graph) for _ in range(2)], launches())
graph.update(capture(8, 9))
print([launch(graph) for _ in range(3)], launches())
graph.close()
print(left())
"""


def test_an_update_leaves_launches_of_the_drivers_graph_as_they_are_and_later_ones_queue_the_operations(sim):  # noqa: F811
    assert sim(UPDATED).splitlines() == ["[6.0, 6.0] 1", "6.0 20.0 2 0", "[20.0, 20.0] 4", "[72.0, 72.0, 72.0] 4", "0"]


FAILING = START + """
streams = driver.sim_alive(b"stream")
for name in ("zeCommandListCreateImmediate", "zeCommandListBeginGraphCaptureExt", "zeCommandListAppendMemoryFill",
             "zeCommandListAppendLaunchKernel", "zeCommandListEndGraphCaptureExt", "zeGraphInstantiateExt"):
    graph, before, failed = capture(2, 3), launches(), calls(name)
    launch(graph)
    driver.sim_fail(f"{name}:1".encode())
    print(name, [launch(graph) for _ in range(2)], launches() - before)
    driver.sim_fail(b"")
    graph.close()
print(left(), driver.sim_alive(b"stream") - streams)
graph = capture(2, 3)
launch(graph)
driver.sim_fail(b"zeCommandListAppendGraphExt:2")
launch(graph)
try: launch(graph)
except gg.DeviceError as error: print("launching a graph" in str(error))
print(launch(graph))
"""


def test_a_graph_that_the_driver_fails_to_record_queues_its_operations(sim):  # noqa: F811
    *names, left, refused, after = sim(FAILING).splitlines()
    assert len(names) == 6 and all(name.endswith(" [6.0, 6.0] 0") for name in names)
    assert (left, refused, after) == ("0 0", "True", "6.0")


OTHERS = START + """
with gg.capture(stream) as single:
    array.fill(9)
second = gg.Stream(gg.Device("ze:1"), nonblocking=True)
there = gg.zeros(16, "f4", device=second.device)
gg.synchronize()
with gg.capture(stream) as both:
    array.fill(8)
    second.wait(stream)
    gg.fill(there, 8, stream=second)
    stream.wait(second)
print([launch(single) for _ in range(3)], [launch(both) for _ in range(3)], calls("zeCommandListBeginGraphCaptureExt"))
class Description(ctypes.Structure):
    _fields_ = [("stype", ctypes.c_uint32), ("next", ctypes.c_void_p),
                *((name, ctypes.c_uint32) for name in ("ordinal", "index", "flags", "mode", "priority"))]
native, context, *_ = map(ctypes.c_void_p, device.native_handles)
made = ctypes.c_void_p()
in_order = Description(stype=0xe, ordinal=1, flags=2, mode=2)
assert not driver.zeCommandListCreateImmediate(context, native, ctypes.byref(in_order), ctypes.byref(made))
graph, borrowed = capture(2, 3), gg.Stream.borrow(made.value, device)
print([launch(graph, borrowed) for _ in range(3)], [launch(graph) for _ in range(2)], launch(graph, borrowed), launches())
"""


def test_one_operation_several_devices_and_borrowed_streams_queue_the_operations(sim):  # noqa: F811
    first, second = sim(OTHERS).splitlines()
    assert first == "[9.0, 9.0, 9.0] [8.0, 8.0, 8.0] 0"
    assert second == "[6.0, 6.0, 6.0] [6.0, 6.0] 6.0 1"


PRINTS = START + """
import struct
image = kernels.path_for(device).read_bytes()
for end in (b"", struct.pack("<6I", 6 << 16 | 12, 1, 2, 3, 183, 4), struct.pack("<6I", 6 << 16 | 12, 1, 2, 3, 184, 4),
            struct.pack("<4I", 4 << 16 | 7, 1, *struct.unpack("<2I", b"printf\\0\\0"))):
    scale, before = gg.Module(image + end, device)["scale"], launches()
    graph = capture(2, 3)
    print([launch(graph) for _ in range(3)], launches() - before)
"""


def test_kernels_of_modules_that_print_are_queued_since_the_driver_would_not_write_their_output(sim):  # noqa: F811
    # SPIR-V as it is; with another instruction of an extended set at its end; with OpenCL's printf; with a string
    assert sim(PRINTS).splitlines() == [f"[6.0, 6.0, 6.0] {launches}" for launches in (2, 2, 0, 0)]
