"""bench/floor.c: copies by several threads, which wait asleep or spinning."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import HANG
from test_bench_programs import built

import gpuglue as gg
from baseline import open_baseline  # bench/ is in the path now
from rows import KIB, MIB, Arrays

SPINNING = pytest.mark.parametrize("spin", [False, True], ids=["asleep", "spinning"])
SIZES = pytest.mark.parametrize("nbytes", [1, 128 * KIB + 1, MIB, 3 * MIB + 4321])
MOST = 4 * MIB


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    directory = tmp_path_factory.mktemp("floor")
    built(directory, "floor.abi3.so")
    return built(directory, "libraw.so")


@pytest.fixture
def floor(libraries, device):
    """The module, the arrays that it copies, and a thread in which the context is current."""
    if device.backend != "cuda":
        pytest.skip("the baseline is CUDA's driver")
    baseline, reason = open_baseline(str(libraries), device)
    assert reason is None
    arrays, stream = Arrays(device, MOST), gg.Stream(device, nonblocking=True)
    gg.synchronize(device)  # for the zeros of the arrays
    baseline.use(stream, arrays)
    module = baseline.floor()
    with ThreadPoolExecutor(1, initializer=baseline.stay) as thread:
        yield SimpleNamespace(module=module, baseline=baseline, arrays=arrays, stream=stream,
                              call=lambda function, *given: thread.submit(function, *given).result(HANG))
        thread.submit(module.stop_threads).result(HANG)
    baseline.close()


def started(floor, threads, spin=False):
    """Start the threads, and return the module."""
    floor.call(floor.module.start_threads, threads, spin)
    return floor.module


def some_bytes(nbytes):
    return np.frombuffer(random.Random(nbytes).randbytes(nbytes), np.uint8)


@SPINNING
@SIZES
@pytest.mark.parametrize("threads", [1, 5, 16])
def test_each_byte_arrives_on_the_device(floor, spin, nbytes, threads):
    module = started(floor, threads, spin)
    for source in (some_bytes(nbytes), some_bytes(nbytes)[::-1].copy()):
        floor.call(module.set_in_threads, source, None, threads)
        floor.call(module.synchronize)
        found = floor.arrays.array.get(stream=floor.stream)
        assert (found[:nbytes] == source).all() and not found[nbytes:].any()


@SPINNING
@SIZES
@pytest.mark.parametrize("threads", [1, 5, 16])
def test_each_byte_arrives_in_the_memory_of_the_host(floor, spin, nbytes, threads):
    module = started(floor, threads, spin)
    for source in (some_bytes(MOST), some_bytes(MOST)[::-1].copy()):
        floor.arrays.array.set(source, floor.stream)
        found = np.zeros(nbytes + 1, np.uint8)
        floor.call(module.get_in_threads, found[:-1], None, threads)
        assert (found[:-1] == source[:nbytes]).all() and found[-1] == 0


def test_copies_of_different_threads_and_sizes_follow_each_other(floor):
    module, draw = started(floor, 8), random.Random(1)
    for _ in range(200):
        threads, nbytes = draw.randint(1, 8), draw.randint(1, MIB)
        source, found = some_bytes(nbytes), np.zeros(nbytes, np.uint8)
        floor.call(module.start_threads, threads, draw.random() < 0.3)
        floor.call(module.set_in_threads, source, None, threads)
        floor.call(module.get_in_threads, found, None, threads)
        assert (found == source).all()


def test_a_number_of_threads_that_is_impossible_or_not_started_is_an_error(floor):
    module = started(floor, 3)
    for threads in (0, -1, 17):
        with pytest.raises(ValueError, match="1 to 16 are possible"):
            floor.call(module.start_threads, threads, False)
    for function in (module.set_in_threads, module.get_in_threads):
        with pytest.raises(ValueError, match="4 threads: 1 to 3 are possible"):
            floor.call(function, bytearray(8), None, 4)
        with pytest.raises(TypeError):
            floor.call(function, bytearray(8), None, "2")


def test_arguments_that_are_missing_are_an_error(floor):
    for name in ("start_threads", "set_in_threads", "get_in_threads"):
        with pytest.raises(TypeError, match=name):
            floor.call(getattr(floor.module, name), 1)


def test_memory_that_is_too_large_or_cannot_be_written_is_an_error(floor):
    module = started(floor, 2)
    with pytest.raises(ValueError, match="larger than the pinned memory"):
        floor.call(module.set_in_threads, bytes(MOST + 1), None, 2)
    with pytest.raises(BufferError):
        floor.call(module.get_in_threads, bytes(8), None, 2)


@SPINNING
def test_an_error_of_the_driver_is_an_exception_and_the_threads_still_copy(floor, spin):
    module, arrays = started(floor, 4, spin), floor.arrays
    nowhere = SimpleNamespace(array=SimpleNamespace(ptr=0), other=arrays.other, pinned=arrays.pinned, pageable=arrays.pageable, nbytes=MOST)
    floor.baseline.use(floor.stream, nowhere)
    source, found = some_bytes(MOST), np.zeros(MOST, np.uint8)
    for function in (module.set_in_threads, module.get_in_threads):
        with pytest.raises(RuntimeError, match="the driver returned"):
            floor.call(function, source.copy(), None, 4)
    floor.baseline.use(floor.stream, arrays)
    floor.call(module.set_in_threads, source, None, 4)
    floor.call(module.get_in_threads, found, None, 4)
    assert (found == source).all()


def states_of_the_threads():
    """The kernel's states of the threads that floor.c has started: R, running or ready to run; S, asleep."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        try:
            name, rest = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:  # it has ended
            continue
        found += [rest.split()[0]] if name == "floor" else []
    return sorted(found)


def come_to(states):
    """Wait until these are the states."""
    end = time.monotonic() + HANG
    while (found := states_of_the_threads()) != states and time.monotonic() < end:
        time.sleep(0.001)
    assert found == states


def test_threads_spin_until_they_are_to_rest_and_end_when_they_are_stopped(floor):
    module = started(floor, 4)
    come_to(["S"] * 3)
    floor.call(module.start_threads, 3, True)
    come_to(["R"] * 2 + ["S"])
    floor.call(module.rest_threads)
    come_to(["S"] * 3)
    floor.call(module.stop_threads)
    assert states_of_the_threads() == []
