"""What a pipeline of 16 pieces queues: on cuda compared with the same pipeline by driver calls alone."""

import os

import pytest
from conftest import run_python

SETUP = """
import ctypes, os, numpy as np, gpuglue as gg, kernels
device, pieces, count = gg.Device(BACKEND), 16, 1 << 14
scale = kernels.load(device)["scale"]
streams = [gg.Stream(device, nonblocking=True) for _ in range(3)]
source, result = (gg.empty_pinned((pieces, count), "f4", device=device) for _ in range(2))
source[...] = np.arange(pieces * count, dtype="f4").reshape(pieces, count)
on_device = gg.zeros((pieces, count), "f4", device=device)
gg.synchronize(device)
driver = ctypes.CDLL(next(backend.library for backend in gg.backends() if backend.name == device.backend))
driver.sim_hold(1)
os.environ["GPUGLUE_SIM_WORK"] = RECORD
"""
OURS = """
for i in range(pieces):
    stream, part = streams[i % 3], on_device[i]
    gg.copy(part, source[i], stream=stream)
    scale(part, count, 3.0, grid=count // 256, block=256, stream=stream)
    gg.copy(result[i], part, stream=stream)
"""
RAW = """
u64, pointer, size = ctypes.c_uint64, ctypes.c_void_p, count * 4
module, function = pointer(), pointer()
with device:
    assert not driver.cuModuleLoadData(ctypes.byref(module), kernels.path_for(device).read_bytes() + b"\\0")
    assert not driver.cuModuleGetFunction(ctypes.byref(function), module, b"scale")
    for i in range(pieces):
        stream, place = pointer(streams[i % 3].handle), u64(on_device.ptr + i * size)
        values = place, ctypes.c_int(count), ctypes.c_float(3)
        arguments = (pointer * 3)(*(ctypes.addressof(value) for value in values))
        codes = (driver.cuMemcpyHtoDAsync_v2(place, pointer(source.ctypes.data + i * size), ctypes.c_size_t(size), stream),
                 driver.cuLaunchKernel(function, count // 256, 1, 1, 256, 1, 1, 0, stream, arguments, None),
                 driver.cuMemcpyDtoHAsync_v2(pointer(result.ctypes.data + i * size), place, ctypes.c_size_t(size), stream))
        assert codes == (0, 0, 0), codes
"""
END = """
del os.environ["GPUGLUE_SIM_WORK"]
driver.sim_hold(0)
gg.synchronize(device)
assert (result == 3 * source).all()
"""


def queued(backend, tmp_path, work):
    """The copies and kernels that were queued, as (kind, bytes, positions of those that it comes after), and the number of other commands."""
    record = tmp_path / "work"
    program = SETUP.replace("BACKEND", repr(backend)).replace("RECORD", repr(str(record))) + work + END
    done = run_python(program)
    assert not done.returncode, done.stderr
    lines = [line.split() for line in record.read_text().splitlines()]
    record.unlink()
    reached, found = {}, []  # the positions that each command, or one that passes its order on, comes after
    for number, _, kind, size, *after in lines:
        before = set().union(*(reached[n] for n in after))
        reached[number] = before if kind in ("mark", "wait") else {len(found)}
        if kind not in ("mark", "wait"):
            found.append((kind, int(size), sorted(before)))
    return found, len(lines) - len(found)


@pytest.fixture
def driver(device):
    """The backend, whose simulated driver records the work of its streams."""
    if device.backend not in ("cuda", "hip") or not os.environ.get("GPUGLUE_SIM_MONITOR"):
        pytest.skip("the driver is not one of the simulated ones whose streams are queues")
    return device.backend


def test_a_piece_comes_only_after_the_one_before_it_in_its_stream(driver, tmp_path):
    work, _ = queued(driver, tmp_path, OURS)
    assert [kind for kind, _, _ in work] == ["copy", "kernel", "copy"] * 16
    last = {}
    for place, (_, _, after) in enumerate(work):
        stream = place // 3 % 3
        assert after == ([last[stream]] if stream in last else []), (place, work)
        last[stream] = place


def test_a_pipeline_orders_its_pieces_as_the_drivers_own_calls_do(driver, tmp_path):
    """Only one event is recorded in each of the first two streams when the memory is used in a third one. Nothing waits for it."""
    if driver != "cuda":
        pytest.skip("the calls are CUDA's")
    ours, others = queued(driver, tmp_path, OURS)
    assert (ours, 0) == queued(driver, tmp_path, RAW)
    assert others <= 2
