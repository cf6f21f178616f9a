"""gpuglue bench: what it prints, and what it does about packages that are absent or do not work."""

import json
import os
import subprocess
import sys

import pytest
from conftest import HANG

QUICK = ("--seconds", "0.1", "--max-bytes", "4096")


def bench(*options, status=0, **environment):
    command = [sys.executable, "-P", "-m", "gpuglue", "bench", *QUICK, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, env={**os.environ, **environment})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + (done.stderr if status else "")


def package(directory, name, source):
    (directory / f"{name}.py").write_text(source)
    return {"PYTHONPATH": os.pathsep.join([str(directory), os.environ.get("PYTHONPATH", "")])}


def test_the_json_has_quartiles_of_each_call_and_copy(backend):
    found = json.loads(bench("--json"))
    assert found["device"] == f"{backend}:0" and found["sides"][0] == "gpuglue"
    assert {"record an event", "allocate and free 1 MiB"} <= found["calls"].keys()
    assert [step["bytes"] for step in found["copies"]] == [4096]
    assert {"to device", "from device", "on device"} <= found["copies"][0]["rows"].keys()
    for row in [*found["calls"].values(), *found["copies"][0]["rows"].values()]:
        figures = row["gpuglue"]
        assert 0 < figures["p25"] <= figures["median"] <= figures["p75"] and figures["repeats"] >= 5


def test_the_text_has_a_line_for_each_call_and_each_size(backend):
    lines = bench().splitlines()
    assert f"on {backend}:0" in lines[0]
    assert any(line.startswith("record an event ") and float(line.split()[3]) > 0 for line in lines)
    assert any(line.startswith("4 KiB ") for line in lines)


def test_a_package_that_is_not_compared_is_named_with_the_reason(backend, tmp_path):
    variables = package(tmp_path, "cupy", "raise ImportError('built for another driver')") | package(tmp_path, "torch", "")
    found = json.loads(bench("--json", **variables))
    assert found["sides"] == ["gpuglue"] and found["absent"].keys() == {"CuPy", "PyTorch"}
    compared = backend in ("cuda", "hip")
    assert found["absent"]["CuPy"] == ("built for another driver" if compared else f"not compared on {backend}")


def test_a_picture_without_matplotlib_names_the_package_before_measuring(tmp_path):
    variables = package(tmp_path, "matplotlib", "raise ImportError('absent')")
    assert "pip install matplotlib" in bench("--plot", str(tmp_path / "x.png"), status=1, **variables)
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize("option", [("--seconds", "0"), ("--seconds", "nan"), ("--max-bytes", "10")])
def test_a_time_or_a_size_out_of_range_is_an_error_that_names_the_range(option):
    assert "expected a number" in bench(*option, status=2)
