"""python -m gpuglue: the table and its JSON, on machines with and without a GPU."""

import json
import pathlib

import pytest
from conftest import run_python, succeeds

import gpuglue as gg


def main(*options, **environment):
    return succeeds(run_python(None, arguments=("-m", "gpuglue", *options), **environment))


def test_the_table_names_the_backend_its_status_and_its_devices(backend):
    text = main()
    assert gg.__version__ in text and f"default backend: {backend}" in text
    assert all(f"{device.backend}:{device.ordinal}" in text and device.name in text for device in gg.devices(backend))


def test_the_json_holds_what_the_table_says(backend):
    found = json.loads(main("--json"))
    (record,) = (record for record in found["backends"] if record["name"] == backend)
    assert (record["status"], record["devices"]) == ("available", len(gg.devices(backend)))
    assert [row["name"] for row in found["devices"]] == [f"{d.backend}:{d.ordinal}" for d in gg.devices(backend)]
    assert found["default"] == backend and found["version"] == gg.__version__


def test_a_passive_probe_lists_no_devices(backend):
    found = json.loads(main("--json", "--probe", "passive"))
    assert "devices" not in found and backend in [record["name"] for record in found["backends"]]


def test_a_missing_driver_is_told_with_the_files_tried_and_exit_0(tmp_path):
    missing = tmp_path / "libcuda.so.1"
    text = main(GPUGLUE_BACKEND="cuda", GPUGLUE_CUDA_LIBRARY=str(missing), GPUGLUE_DEVICE=None)
    assert "library-not-found" in text and f"tried {missing}" in text and "default backend: none" in text


def test_an_unknown_backend_is_told_with_the_names_there_are():
    text = main(GPUGLUE_BACKEND="nvidia", GPUGLUE_DEVICE=None)
    assert "plugin-not-found" in text and "gpuglue_nvidia.so" in text and "host" in text


def test_a_library_that_is_a_text_file_is_told(tmp_path):
    library = tmp_path / "libcuda.so.1"
    library.write_text("not a library")
    text = main(GPUGLUE_BACKEND="cuda", GPUGLUE_CUDA_LIBRARY=str(library), GPUGLUE_DEVICE=None)
    assert "library-load-failed" in text and str(library) in text


@pytest.mark.parametrize("kind, status", [("stub", "driver-stub"), ("missing", "symbol-missing"), ("elf32", "library-load-failed")])
def test_a_library_that_is_no_driver_is_told(sim_library, kind, status):
    library = pathlib.Path(sim_library).parents[1] / "broken" / kind / "libcuda.so.1"
    text = main(GPUGLUE_BACKEND="cuda", GPUGLUE_CUDA_LIBRARY=str(library), GPUGLUE_DEVICE=None)
    assert status in text and str(library) in text
