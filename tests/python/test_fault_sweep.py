"""The first and the last call of each vendor function fails in turn; tests/faults has every one, in C."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).with_name("fault_program.py")
TWINS = {"an error": 999, "out of memory": 2, "device lost": 719}
LEVEL_ZERO = {"an error": 0x7FFFFFFE, "out of memory": 0x70000003, "device lost": 0x70000001}
UNAVAILABLE = {"BackendUnavailableError"}
ALLOWED = {
    "an error": {"DeviceError", "Error", "UnsupportedError"},
    "out of memory": {"OutOfMemoryError", "UnsupportedError"},
    "device lost": {"DeviceLostError", "UnsupportedError"},
}


def run_program(backend, folder, fault=""):
    """(exit status, output, names of the failures, report) with one fault."""
    report = folder / (fault.replace(":", "-").replace("=", "-") or "none")
    environment = dict(os.environ, GPUGLUE_SIM_FAIL=fault, GPUGLUE_SIM_REPORT=str(report))
    done = subprocess.run([sys.executable, PROGRAM, backend], env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    found = json.loads(report.read_text()) if report.exists() else None
    return done.returncode, done.stderr, done.stdout.split(), found


def complaint(backend, folder, name, nth, kind, code):
    """What is wrong with this failure, or None."""
    status, stderr, failures, report = run_program(backend, folder, f"{name}:{nth}={code}")
    what = f"{name}, call {nth}, {kind}"
    if status or stderr:
        return f"{what}: exit {status}: {stderr[-500:]}"
    if not set(failures) <= ALLOWED[kind] | UNAVAILABLE:
        return f"{what}: {failures}"
    if report is None or any(report["leaked"].values()):
        return f"{what}: leaked {report and report['leaked']}"
    return None


def test_a_vendor_call_that_fails_is_told_in_its_class_and_leaves_nothing(backend, tmp_path):
    status, stderr, failures, report = run_program(backend, tmp_path)
    if report is None:
        pytest.skip(f"{backend} runs on no simulated driver here, and only that fails on demand")
    assert (status, stderr, failures) == (0, "", [])
    codes = LEVEL_ZERO if any(name.startswith("ze") for name in report["calls"]) else TWINS
    faults = [(name, nth, kind, code) for name, calls in sorted(report["calls"].items())
              for nth in sorted({1, calls}) for kind, code in codes.items() if calls]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        complaints = list(filter(None, pool.map(lambda fault: complaint(backend, tmp_path, *fault), faults)))
    print(f"{backend}: {len(report['calls'])} vendor functions, {len(faults)} failures injected")
    assert not complaints, f"{len(complaints)} of {len(faults)}:\n" + "\n".join(complaints[:10])
