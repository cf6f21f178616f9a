"""python -m gpuglue: the table and the JSON, on machines with and without a GPU."""

import json
import os
import pathlib

import pytest
from conftest import HANG, needed, run_python, succeeds

import gpuglue as gg


def main(*options, **environment):
    return succeeds(run_python(None, arguments=("-m", "gpuglue", "--timeout", str(HANG), *options), **environment))


def test_the_table_names_the_backend_its_status_and_its_devices(backend):
    text = main()
    assert gg.__version__ in text and f"default backend: {backend}" in text
    assert all(f"{device.backend}:{device.ordinal}" in text and device.name in text for device in gg.devices(backend))


def test_the_json_has_the_same_contents_as_the_table(backend):
    found = json.loads(main("--json"))
    (record,) = (record for record in found["backends"] if record["name"] == backend)
    assert (record["status"], record["devices"]) == ("available", len(gg.devices(backend)))
    assert [row["name"] for row in found["devices"]] == [f"{d.backend}:{d.ordinal}" for d in gg.devices(backend)]
    assert found["default"] == backend and found["version"] == gg.__version__


@pytest.mark.parametrize("fault, status", [("CRASH", "crashed"), ("HANG", "timed-out")])
def test_a_driver_that_crashes_or_hangs_is_a_line_of_the_table(sim_library, fault, status):
    environment = {f"GPUGLUE_SIM_{fault}": "cuInit", "GPUGLUE_BACKEND": "cuda", "GPUGLUE_DEVICE": None}
    text = main("--timeout", "2" if fault == "HANG" else str(HANG), GPUGLUE_CUDA_LIBRARY=sim_library, **environment)
    assert f"cuda   {status}" in text and f"the active probe: {status}" in text and "`gpuglue doctor` names the cause" in text


def slots(backend, **environment):
    """The table's cells of one backend, and what its first device lacks."""
    found = json.loads(main("--slots", "--json", **environment))
    device = next(row for row in found["devices"] if row["name"] == f"{backend}:0")
    return {row["slot"]: row["backends"].get(backend) for row in found["slots"]}, device["lacks"]


def test_the_table_of_slots_agrees_with_the_device(backend, device):
    cells, lacks = slots(backend)
    if not any(cells.values()):
        pytest.skip("the table has the backends of this package")
    for slot, cell in cells.items():
        has = cell["since"] is not None and slot not in lacks
        recorded = slot.startswith(("graph_", "capture_")) and slot != "capture_mode" and not cells["stream_capturing"]["since"]
        assert device.supports(slot) == (has or recorded) or slot == "device_supports", slot  # the core records where it must


def test_every_slot_that_a_backend_has_not_has_a_reason_and_a_source():
    rows = json.loads(main("--slots", "--json", "--probe", "passive"))["slots"]
    cells = [cell for row in rows for cell in row["backends"].values()]
    assert len(cells) == 4 * len(rows) and all(cell["since"] or (cell["reason"] and cell["source"]) for cell in cells)


def test_the_text_of_the_slots_has_each_reason_once(backend):
    text = main("--slots")
    rows = json.loads(main("--slots", "--json", "--probe", "passive"))["slots"]
    reasons = {cell["reason"] for row in rows for cell in row["backends"].values() if not cell["since"]}
    assert all(f": {reason} (" in text for reason in reasons) and all(row["slot"] in text for row in rows)
    assert f"{backend}:0: " in text


@pytest.mark.parametrize("function, slot", [("cuMemAllocAsync", "mem_alloc_async"), ("cuFuncGetParamInfo", "kernel_parameter"),
                                            ("cuCtxRecordEvent", "device_record"), ("cuIpcOpenMemHandle_v2", "ipc_open")])
def test_a_driver_without_a_function_lacks_the_slots_that_need_it(sim_library, function, slot):
    hidden = str(needed("GPUGLUE_TEST_HIDDEN_LIBRARY", "libhidden.so"))
    if os.environ.get("LD_PRELOAD"):
        pytest.skip("the library that hides functions cannot be loaded beside a sanitizer")
    environment = {"GPUGLUE_BACKEND": "cuda", "GPUGLUE_DEVICE": None, "GPUGLUE_CUDA_LIBRARY": sim_library}
    cells, before = slots("cuda", **environment)
    _, after = slots("cuda", LD_PRELOAD=hidden, GPUGLUE_TEST_HIDDEN=function, **environment)
    need = {name for name, cell in cells.items() if cell.get("functions") and all(function in names for names in cell["functions"])}
    assert slot in need and set(after) == set(before) | need


def test_a_passive_probe_lists_no_devices(backend):
    found = json.loads(main("--json", "--probe", "passive"))
    assert "devices" not in found and backend in [record["name"] for record in found["backends"]]


def test_a_missing_driver_is_reported_with_the_files_tried_and_exit_0(tmp_path):
    missing = tmp_path / "libcuda.so.1"
    text = main(GPUGLUE_BACKEND="cuda", GPUGLUE_CUDA_LIBRARY=str(missing), GPUGLUE_DEVICE=None)
    assert "library-not-found" in text and f"tried {missing}: cannot open" in text and "default backend: none" in text


def test_an_unknown_backend_is_reported_with_the_known_names():
    text = main(GPUGLUE_BACKEND="metal", GPUGLUE_DEVICE=None)
    assert "plugin-not-found" in text and "gpuglue_metal.so" in text and "host" in text


def test_a_library_that_is_a_text_file_is_reported(tmp_path):
    library = tmp_path / "libcuda.so.1"
    library.write_text("not a library")
    text = main(GPUGLUE_BACKEND="cuda", GPUGLUE_CUDA_LIBRARY=str(library), GPUGLUE_DEVICE=None)
    assert "library-load-failed" in text and str(library) in text


@pytest.mark.parametrize("kind, status", [("stub", "driver-stub"), ("missing", "symbol-missing"), ("elf32", "library-load-failed")])
def test_a_library_that_is_not_a_driver_is_reported(sim_library, kind, status):
    library = pathlib.Path(sim_library).parents[1] / "broken" / kind / "libcuda.so.1"
    text = main(GPUGLUE_BACKEND="cuda", GPUGLUE_CUDA_LIBRARY=str(library), GPUGLUE_DEVICE=None)
    assert status in text and str(library) in text


def test_a_misspelt_subcommand_is_answered_with_the_nearest():
    typed = lambda name: run_python(None, arguments=("-m", "gpuglue", name))
    assert (typed("dcotor").returncode, "there is no subcommand 'dcotor': did you mean doctor?" in typed("dcotor").stderr) == (2, True)
    assert "invalid choice: 'xyz'" in typed("xyz").stderr
