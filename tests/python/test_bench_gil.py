"""bench/gil.py: calls with the GIL released and held. No figure is judged."""

import json
import time
from types import SimpleNamespace

import pytest
from test_bench_programs import built, program

import gil  # bench/ is in the path now
import report
import rows

CONDITIONS = {"alone", "beside Python, 5 ms", "beside Python, 0.1 ms", "beside Python, 0.01 ms", "beside C"}


def measured(directory, device, *options):
    path = directory / "gil.json"
    program("gil", "--processes", "2", "--rounds", "1", "--seconds", "0.001", "--device", f"{device.backend}:0", "--json", str(path), *options)
    return json.loads(path.read_text())


def test_each_call_has_its_time_and_what_the_other_thread_keeps_in_each_condition(tmp_path, device):
    found = measured(tmp_path, device)
    assert found["calls"].keys() == {call for call in gil.CALLS if rows.takes_kernels(device) or not call.startswith("launch")}
    assert (found["processes"], found["switch_interval"]) == (2, 0.005) and found["no_baseline"]
    for conditions in found["calls"].values():
        assert conditions.keys() == CONDITIONS
        for condition, sides in conditions.items():
            (figures,) = sides.values()
            ns = figures["ns"]
            assert 0 < ns["best"] <= ns["median"] <= ns["worst"] and len(ns["all"]) == 2
            assert ("kept" in figures) == (condition != "alone")
            assert figures.get("kept", {"worst": 0})["worst"] >= 0


def test_the_c_functions_are_measured_with_the_gil_released_and_held(tmp_path, device):
    if device.backend != "cuda":
        pytest.skip("the baseline is CUDA's driver")
    built(tmp_path, "floor.abi3.so")
    found = measured(tmp_path, device, "--raw", str(built(tmp_path, "libraw.so")))
    assert found["no_baseline"] is None and found["calls"].keys() == gil.CALLS.keys()
    assert all(sides.keys() == {"floor", "floor, held", "gpuglue"} for conditions in found["calls"].values() for sides in conditions.values())
    table = report.gil(report.of_gil(found))
    assert table.count("\n") == 2 + len(gil.CALLS) * len(CONDITIONS) and "| wait for event, beside C |" in table


def test_the_switch_interval_is_restored():
    before = gil.sys.getswitchinterval()
    with pytest.raises(ZeroDivisionError), gil.switching(1e-3):
        assert gil.sys.getswitchinterval() == pytest.approx(1e-3)
        1 / 0  # noqa: B018
    assert gil.sys.getswitchinterval() == before


def test_the_speed_of_the_other_thread_counts_work_that_was_done():
    done = []
    with gil.Other(lambda: done.append(None)) as other:
        assert other.speed(0.001) > 0
    assert other.count == len(done) and not other.thread.is_alive()


def test_a_side_ends_with_the_burst_in_which_it_reaches_its_seconds():
    def burst(seconds):
        time.sleep(seconds)
        return 7

    bursts = {"slow": (lambda: burst(0.002), lambda: True), "fast": (lambda: burst(0), lambda: True)}
    sides = gil.measure_call(SimpleNamespace(rounds=3), bursts, 0.001, None)
    assert (sides["slow"].calls, sides["slow"].taken) == (16, 7)
    assert sides["fast"].calls >= 16 and sides["fast"].elapsed >= 1e6 / 3


def test_a_row_has_the_median_the_slowest_and_the_fastest_process():
    def process(ns, kept):
        return {"beside C": {"event record": {"gpuglue": {"ns": ns, "kept": kept}}}}

    figures = gil.rows_of([process(3.0, 0.5), process(1.0, 0.9), process(2.0, 0.7)])["event record"]["beside C"]["gpuglue"]
    assert figures["ns"] == {"median": 2.0, "worst": 3.0, "best": 1.0, "all": [3.0, 1.0, 2.0]}
    assert figures["kept"] == {"median": 0.7, "worst": 0.5, "best": 0.9, "all": [0.5, 0.9, 0.7]}


def test_the_table_has_the_time_of_a_call_and_the_share_of_the_other_thread():
    side = {"ns": {"median": 350.4, "worst": 400.2, "best": 300.1}, "kept": {"median": 0.914}}
    alone = {"ns": {"median": 150.0, "worst": 200.0, "best": 100.0}}
    found = report.gil(report.of_gil({"calls": {"event record": {"alone": {"floor": alone, "gpuglue": alone}, "beside C": {"gpuglue": side}}}}))
    assert "| event record, alone | 0.15 [0.20, 0.10] |  |  |  | 0.15 [0.20, 0.10] |  |" in found
    assert "| event record, beside C |  |  |  |  | 0.35 [0.40, 0.30] | 91 % |" in found
