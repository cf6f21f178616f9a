"""bench/strided_before.py: strided copies of two versions. No figure of a copy is judged."""

import json
import subprocess
import sys
from pathlib import Path

import gpuglue as gg
import pytest
from conftest import HANG
from test_bench_programs import BENCH, program

import report  # bench/ is in the path now
import strided_before
import verdict

ROWS = {f"{view}, {direction}" for view in ("transposed", "every other row") for direction in ("H2D", "D2H")}


def options_of(directory, device):
    return ["--alone", "--most", "1", "--side", "64", "--device", f"{device.backend}:0", "--processes", "1", "--against", str(directory)]


def test_each_strided_row_has_both_versions_and_a_result(tmp_path, device):
    """Both versions are this one. One pair of processes decides nothing, so it is started three times."""
    path = tmp_path / "copies.json"
    program("copies", "--json", str(path), *options_of(Path(gg.__file__).parents[1], device))
    found = json.loads(path.read_text())
    assert found["strided before"].keys() == found["strided"].keys() == ROWS
    for figures in found["strided before"].values():
        assert figures.keys() == {"gpuglue", "before", "result"} and figures["result"] == verdict.NOISY
        for side in (figures["gpuglue"], figures["before"]):
            assert 0 < side["worst"] <= side["median"] <= side["best"] and len(side["all"]) == verdict.RUNS
    assert f"| {verdict.NOISY} |" in report.strided(report.of_copies(found))


def test_a_directory_without_the_package_is_an_error(tmp_path, device):
    done = subprocess.run([sys.executable, str(BENCH / "copies.py"), *options_of(tmp_path, device)], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 1 and f"{tmp_path} has no package gpuglue" in done.stderr


@pytest.mark.parametrize(("ours", "before", "result"), [
    ([10.0] * 8, [10.0] * 8, verdict.OK),
    ([9.6] * 8, [10.0] * 8, verdict.OK),
    ([9.4] * 8, [10.0] * 8, verdict.MISSED),
    ([9.4] * 4 + [10.0] * 4, [10.0] * 8, verdict.NOISY),
])
def test_a_row_is_judged_by_the_pairs_of_processes(ours, before, result):
    rows = strided_before.rows_of([({"transposed, H2D": one}, {"transposed, H2D": other}) for one, other in zip(ours, before, strict=True)])
    assert rows["transposed, H2D"]["result"] == result


def test_the_table_of_strided_copies_has_the_version_before_where_it_was_compared():
    copies = {"strided": {"transposed, H2D": {"gpuglue": 19.72, "CuPy": 0.4}}, "get": [1.0] * 5, "sizes": {"1": {}}}
    assert "| transposed, H2D | 19.7 | 0.4 |  |\n" in report.strided(report.of_copies(copies))
    both = {"gpuglue": {"median": 19.5}, "before": {"median": 18.9}, "result": "ok"}
    found = report.strided(report.of_copies(copies | {"strided before": {"transposed, H2D": both}}))
    assert "| version before | target |" in found and "| transposed, H2D | 19.7 | 0.4 |  | 19.5 | 18.9 | ok |" in found
