"""bench/: the rows beside a second process, and those of GPUGLUE_ALLOCATOR=async. No figure is judged."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import HANG

BENCH = Path(__file__).parents[2] / "bench"
if not BENCH.is_dir():
    pytest.skip("the source tree is not there", allow_module_level=True)
sys.path.insert(0, str(BENCH))

import alloc  # noqa: E402
import bench  # noqa: E402
import neighbour  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import sample  # noqa: E402
from timing import BESIDE, plans_of  # noqa: E402


def program(name, *options, **environment):
    done = subprocess.run([sys.executable, str(BENCH / f"{name}.py"), *options], capture_output=True, text=True, timeout=HANG,
                          env={**os.environ, **environment})
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def test_the_second_process_works_until_it_is_told_to_end(device):
    with neighbour.Neighbour(device) as other:
        assert other.process.poll() is None
    assert other.process.returncode == 0 and other.done["rounds"] >= 1 and other.done["seconds"] >= 0


def test_a_second_process_that_ends_by_itself_is_an_error(device):
    other = neighbour.Neighbour(device)
    with pytest.raises(neighbour.NeighbourError, match="while others were measured"), other:
        other.process.kill()
        other.process.wait(HANG)


def test_a_second_process_that_cannot_start_is_an_error():
    nowhere = SimpleNamespace(backend="absent", ordinal=0)
    with pytest.raises(neighbour.NeighbourError, match="before its first round"), neighbour.Neighbour(nowhere):
        pass


def test_the_chosen_rows_are_measured_beside_another_process(device):
    arrays = rows.Arrays(device, rows.MIB)
    parts, done = bench.measure_beside(arrays, device, rows.streams_of(device)["own"], None, plans_of(True, 1)[1])
    launches = set() if rows.takes_kernels(device) else {"launch, bound", "launch + synchronize"}
    assert parts["ns"].keys() | parts["gbps"].keys() == rows.SHARED - launches
    assert all(min(part["sides"]["gpuglue"]) > 0 for unit in parts.values() for row in unit.values() for part in row)
    assert done["rounds"] >= 1


def test_new_processes_measure_all_rows_and_their_figures_are_merged(tmp_path, device):
    path = tmp_path / "bench.json"
    text = program("bench", "--quick", "--processes", "2", "--streams", "own", "--no-peers", "--json", str(path))
    found = json.loads(path.read_text())
    assert found["processes"] == 2 and found["streams"].keys() == {"own", "own" + BESIDE} and "2 processes" in text
    for unit in found["streams"]["own"].values():
        for row in unit.values():
            own = row["gpuglue"]
            assert row["processes"] == 2 and min(own["worst"], own["best"]) <= own["median"] <= max(own["worst"], own["best"])
    assert {row.name for row in rows.BULKS} == found["streams"]["own"]["gbps"].keys()


def test_a_further_process_measures_only_the_rows_that_are_named(device):
    text = program("bench", "--part", "--quick", "--processes", "2", "--no-peers", "--only", '{"legacy": ["event record"]}')
    assert [(table, unit, list(found)) for table, units in json.loads(text)["tables"].items() for unit, found in units.items()] == \
        [("legacy", "ns", ["event record"]), ("legacy", "gbps", [])]


def test_the_chosen_rows_exist():
    assert {row.name for row in [*rows.SMALL, *rows.BULKS]} >= rows.SHARED


def found_of(*kinds):
    side = {"median": 12.0, "p25": 11.0, "p75": 13.0, "count": 10}
    units = {"ns": {"event record": {"raw": side, "gpuglue": side, "result": "ok"}},
             "gbps": {"D2D": {"raw": side, "gpuglue": side, "result": "missed"}}}
    return report.of_bench({"streams": dict.fromkeys(kinds, units)})


def test_the_tables_have_the_rows_beside_another_process_where_they_were_measured():
    alone, both = found_of("own"), found_of("own", "own" + BESIDE)
    assert BESIDE not in report.calls(alone) + report.calls_alone(alone) + report.bulk(alone)
    assert "| event record, beside another process | 12 | 12 |  |  |  | ok |" in report.calls(both)
    assert "| within the device, beside another process | 12.0 | 12.0 | missed |" in report.bulk(both)


def test_the_rows_of_the_asynchronous_allocator_are_those_of_each_size_or_a_reason(device):
    found = json.loads(program("alloc", "--async-rows", "--quick", GPUGLUE_ALLOCATOR="async"))
    if "absent" in found:
        assert "GPUGLUE_ALLOCATOR=async" in found["absent"] and device.backend not in ("cuda", "hip")
        return
    assert list(found) == [str(nbytes) for nbytes in alloc.SIZES]
    assert all(row["gpuglue"]["median"] > 0 and "result" not in row for row in found.values())


def test_the_table_of_allocations_has_the_rows_of_the_asynchronous_allocator_without_a_result():
    side = {"median": 812.0, "p25": 800.0, "p75": 900.0, "count": 10}
    figures = report.of_alloc({"device": "a", "alloc + close, GPUGLUE_ALLOCATOR=async": {"4096": {"raw": side, "gpuglue": side}}})
    assert "| GPUGLUE_ALLOCATOR=async: 4096 | 812 | 812 |  |" in report.alloc(figures)


def test_the_drivers_own_pool_is_replayed_as_gpuglue_uses_it(device):
    found = json.loads(program("fragmentation", "--side", "gpuglue, async", "--trace", "random, 512 B to 64 MiB", "--seed", "1",
                               "--live", "8", "--device", f"{device.backend}:0"))
    if device.backend == "cuda":
        assert found["ratio"] >= 1
    else:
        assert "absent" in found


def built(directory, name):
    """A program or library of bench/, compiled."""
    if not (shutil.which("make") and shutil.which("cc")):
        pytest.skip("make and a C compiler are not there")
    target = directory / name
    subprocess.run(["make", "-s", "-C", str(BENCH), f"OUT={directory}", f"PYTHON={sys.executable}", str(target)], check=True, timeout=HANG)
    return target


@pytest.mark.parametrize(("kind", "rows_of_it"), [("streams", 9), ("threads", 9)])
def test_each_row_of_scale_has_its_figures_and_the_drivers_part_of_the_worst_call(tmp_path, kind, rows_of_it):
    path = tmp_path / "scale.json"
    subprocess.run([built(tmp_path, "scale"), "300", kind, path], check=True, capture_output=True, timeout=HANG)
    found = json.loads(path.read_text())
    assert len(found) == rows_of_it
    for row in found.values():
        assert 0 < row["median"] <= row["p999"] <= row["worst"] and row["mean"] <= row["worst"]
        assert row["worst_driver"] <= row["worst"] and row["worst_at"] >= 0
        assert ("idle" in row) == (row["result"] in ("missed", "too noisy to say")) and ("mean_target" in row) == (row["result"] != "")
    assert report.scale(found).count("\n") == rows_of_it + 2


def test_new_processes_measure_each_row_of_scale_with_a_target(tmp_path):
    """One process decides nothing, so it is started three times; the rows without a target are measured once."""
    path = tmp_path / "scale.json"
    text = program("scale", str(built(tmp_path, "scale")), "--calls", "300", "--kind", "streams", "--processes", "1", "--json", str(path))
    found = json.loads(path.read_text())
    assert {row: figures["processes"] for row, figures in found.items()} == \
        {row: 1 if ":" in row else 3 for row in found} and len(found) == 9
    for row, figures in found.items():
        assert 0 < figures["mean_best"] <= figures["mean"] <= figures["mean_worst"] and row in text
        assert figures["worst_best"] <= figures["worst"] <= figures["worst_worst"] and figures["worst_driver"] <= figures["worst"]
        assert figures["result"] == ("" if ":" in row else "too noisy to say")


def test_the_samples_of_each_call_are_attributed_to_libraries(tmp_path, device):
    if not rows.takes_kernels(device):
        pytest.skip("the launches are in PTX")
    sampler, path = built(tmp_path, "libsample.so"), tmp_path / "sample.json"
    program("sample", "--sampler", str(sampler), "--seconds", "0.05", "--json", str(path))
    found = report.of_sample(json.loads(path.read_text()))
    assert found.keys() == {f"{row}, gpuglue" for row in sample.ROWS}
    for row in found.values():
        parts = sum(row[part] for part in [*report.PARTS, report.OTHER])
        assert row["samples"] == 0 or abs(parts - row["ns"]) <= 0.02 * row["ns"] + 10
