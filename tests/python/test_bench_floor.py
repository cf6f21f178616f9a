"""bench/floor.c: copies by several threads, which wait asleep or spinning, and their rows of bench/pageable.py."""

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
import pageable  # bench/ is in the path now
import report
from baseline import open_baseline
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


# ---- pageable.py ----

IN_THREADS = {pageable.SLEEPING, pageable.SPINNING}
USUAL = {"gpuglue", "raw", "pinned", "floor"}


@pytest.fixture
def quick(monkeypatch):
    """Few and short rounds."""
    for name, value in {"GAP": 0.001, "ROUNDS": 1, "SPACED_ROUNDS": 1, "WARM_UP": MIB}.items():
        monkeypatch.setattr(pageable, name, value)


def measured(floor, baseline):
    streams = floor.stream, gg.Stream(floor.stream.device, nonblocking=True)
    return floor.call(pageable.measure_sizes, floor.stream.device, streams, baseline)


def sides_in(row, direction):
    return {side.removeprefix(f"{direction} ") for side in row if side.startswith(f"{direction} ")}


@pytest.mark.parametrize("direction", ["up", "down"])
def test_spaced_rows_have_both_kinds_of_threads_and_rows_of_their_sizes_in_a_row_have_spinning_ones(floor, quick, direction):
    rows = measured(floor, floor.baseline)
    assert all(value > 0 for row in rows.values() for value in row.values())
    for nbytes in pageable.SPACED:
        spaced, back_to_back = (rows[f"{nbytes // KIB} KiB, {kind}"] for kind in ("spaced", "back to back"))
        assert sides_in(spaced, direction) == USUAL | IN_THREADS
        assert sides_in(back_to_back, direction) == USUAL | {pageable.SPINNING}
    assert sides_in(rows["256 KiB, back to back"], direction) == USUAL
    assert len(rows) == len(pageable.SMALL + pageable.MEDIUM + pageable.SPACED)


def test_without_a_baseline_no_row_has_threads_of_c(floor, quick):
    assert {side.split(" ", 1)[1] for row in measured(floor, None).values() for side in row} <= {"gpuglue", "call gpuglue"}


def test_threads_spin_only_for_their_own_copies_and_from_before_the_other_work(floor, quick, monkeypatch):
    monkeypatch.setattr(pageable.os, "sched_getaffinity", lambda process: range(5))
    sides = floor.call(pageable.threaded_sides, pageable.Arrays(floor.stream.device, MIB), floor.baseline)
    numbers, seen = {threads for _, _, threads in sides}, {}

    def watched(key, side):
        def once():
            seen[key].append("copy")
            return 1

        return pageable.Side(once, side.meanwhile)

    def work(memory):
        key = next(keys)
        states = ["R"] * (key[2] - 1) if key[1] == pageable.SPINNING else []
        come_to(states + ["S"] * (4 - len(states)))
        seen[key] = ["other work"]

    monkeypatch.setattr(pageable, "other_work", work)
    keys = iter([*sides, *sides])  # the first round does not count
    floor.call(pageable.spaced, {key: watched(key, side) for key, side in sides.items()}, MIB)
    assert seen == dict.fromkeys(sides, ["other work", "copy"]) and numbers == {4, 5}
    come_to(["S"] * 4)


def test_no_more_threads_copy_than_the_process_has_processors(floor, monkeypatch):
    arrays = pageable.Arrays(floor.stream.device, MIB)
    for processors, numbers in ((1, {1}), (4, {4}), (7, {4, 7}), (64, {4, 12})):
        monkeypatch.setattr(pageable.os, "sched_getaffinity", lambda process, count=processors: range(count))
        assert {threads for _, _, threads in floor.call(pageable.threaded_sides, arrays, floor.baseline)} == numbers


def test_a_row_has_the_faster_number_of_threads():
    found = pageable.speeds({("up", "gpuglue"): [2, 4, 3], ("up", "threads", 4): [6, 5, 9], ("up", "threads", 12): [9, 4, 4],
                             ("down", "threads", 4): [2], ("down", "threads", 12): [3]}, 12)
    assert found == {("up", "gpuglue"): 4, ("up", "threads"): 3, ("down", "threads"): 6}


def test_the_table_of_pageable_copies_has_columns_for_the_threads_where_they_were_measured():
    def row(**sides):
        return {f"up {side}": pageable.summary([value]) for side, value in sides.items()}

    usual, threads = row(raw=1, floor=2, gpuglue=3, pinned=9), row(**{pageable.SLEEPING: 4, pageable.SPINNING: 5})
    assert set(report.IN_THREADS) == IN_THREADS

    def table(rows):
        return report.pageable(report.of_pageable({"gbps": rows, "results": {}}), "up")

    before, after = table({"256 KiB, spaced": usual}), table({"256 KiB, spaced": usual, "1024 KiB, spaced": usual | threads})
    assert "threads" not in before and "| raw C | C from Python | C, sleeping threads | C, spinning threads | gpuglue | pinned |" in after
    assert "| 256 KiB, spaced | 1.0 [1.0, 1.0] | 2.0 [2.0, 2.0] |  |  | 3.0 [3.0, 3.0] | 9.0 |" in after
    assert "| 1024 KiB, spaced | 1.0 [1.0, 1.0] | 2.0 [2.0, 2.0] | 4.0 | 5.0 | 3.0 [3.0, 3.0] | 9.0 |" in after
