"""The first and the last call of each vendor function fails in turn; tests/faults has more of them, in C."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).with_name("fault_program.py")
CUDA_AND_HIP = {"an error": 999, "out of memory": 2, "device lost": 719}
LEVEL_ZERO = {"an error": 0x7FFFFFFE, "out of memory": 0x70000003, "device lost": 0x70000001}
ALLOWED = {
    "an error": {"DeviceError", "UnsupportedError", "BackendUnavailableError"},
    "out of memory": {"OutOfMemoryError", "UnsupportedError", "BackendUnavailableError"},
    "device lost": {"DeviceLostError", "UnsupportedError", "BackendUnavailableError"},
}
# The simulated driver fails one call as if the device were lost, and then its work continues.
GOES_ON = {"gpuglue sim: a list with unfinished work is destroyed",
           "gpuglue sim: an event is destroyed before its signal came"}


def run_program(backend, directory, rules=()):
    """Of each rule (wait status, names of the failures, report, output)."""
    directory.mkdir()
    done = subprocess.run([sys.executable, PROGRAM, backend, directory, *rules], check=True, text=True,
                          stdout=subprocess.PIPE)

    def read(number, kind):
        file = directory / f"{number}.{kind}"
        return json.loads(file.read_text()) if file.exists() else None

    return [(status, read(number, "failures"), read(number, "report"), (directory / f"{number}.output").read_text())
            for number, status in enumerate(json.loads(done.stdout))]


def complaint(kind, status, failures, report, output):
    """What is wrong with this failure, or None."""
    excused = GOES_ON if kind == "device lost" else set()
    if status or set(output.splitlines()) - excused or failures is None:
        return f"wait status {status}: {output[-500:]}"
    if not set(failures) <= ALLOWED[kind]:
        return f"{failures}"
    if report is None or any(report["leaked"].values()):
        return f"leaked {report and report['leaked']}"
    return None


# The thread sanitizer is slow with so many processes, and this test is not about threads.
@pytest.mark.skipif("libtsan" in os.environ.get("LD_PRELOAD", ""), reason="under the thread sanitizer")
def test_a_vendor_call_that_fails_raises_its_class_and_leaks_nothing(backend, tmp_path):
    [(status, failures, report, output)] = run_program(backend, tmp_path / "none")
    assert (status, output) == (0, "") and set(failures) <= {"UnsupportedError"}  # operations that the device lacks
    if report is None:
        pytest.skip(f"{backend} does not run on a simulated driver here, which the injection of faults needs")
    assert not any(report["leaked"].values())
    codes = LEVEL_ZERO if any(name.startswith("ze") for name in report["calls"]) else CUDA_AND_HIP
    faults = [(name, nth, kind) for name, calls in sorted(report["calls"].items())
              for nth in sorted({1, calls}) for kind in codes if calls]
    results = run_program(backend, tmp_path / "faults", [f"{name}:{nth}={codes[kind]}" for name, nth, kind in faults])
    complaints = [f"{name}, call {nth}, {kind}: {wrong}" for (name, nth, kind), result in zip(faults, results)
                  if (wrong := complaint(kind, *result))]
    reported = sum(names != failures for _, names, _, _ in results)
    print(f"{backend}: {len(report['calls'])} vendor functions, {len(faults)} failures injected, {reported} reported")
    assert not complaints, f"{len(complaints)} of {len(faults)}:\n" + "\n".join(complaints[:10])
    assert reported > len(faults) // 3
