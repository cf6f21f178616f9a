"""What is run on a machine with an NVIDIA GPU before a release, with the files of `make carry`; only the benchmarks build their C:

    gpu.py [--carried DIRECTORY] [--out DIRECTORY] [--seconds N] PART[=SECONDS]…

PART  what runs
suites   the conformance suites on cuda, then the units of the core
shim     the conformance suites on the hip backend, on NVIDIA's driver (tests/shim)
python, python-shim    all Python files, on cuda or on the shim
memcheck, initcheck    the conformance suites on cuda under these tools of compute-sanitizer, a process for each suite
programs PyCUDA's and PybindGPU's programs, each way
names    the tests of gpuglue.compat, for scripts/compat_columns.py
bench    all benchmarks of one GPU
comm     the tests and benchmarks of communicators
soak     random operations in 16 threads, for all of its time but 30 s

--out gets the output of each step as NAME.txt, and what it writes; it is created. --seconds limits a part (default 600): a part that takes longer
is stopped and fails. PYCUDA is PyCUDA's source archive and PYBINDGPU a clone of its repository, both for `programs`: by default
what the carried directory has. Prints one line for each step: its result, seconds and last line. The exit status is 1 if one failed."""

import argparse
import os
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCHES = ("bench", "alloc", "pageable", "gil", "copies", "compat", "exchange", "recording", "pipeline", "graphs", "astype", "host_threads", "fragmentation")
JOBS = max(1, min(6, (os.cpu_count() or 1) // 3))  # tests at a time: most of a test's time is that of a context
# Tests that count all that a process has, or need one where the backend is not in use.
OWN_PROCESS = (
    "drain/idle_events_do_not_pile_up_behind_memory_that_unknown_streams_use",
    "pool_large/free_blocks_of_the_smallest_large_size_are_kept_up_to_an_eighth_of_the_device",
    "pool_large/free_large_blocks_beyond_an_eighth_of_the_device_are_freed",
    "pool_pieces/idle_blocks_are_freed_before_the_pool_holds_much_more_than_was_in_use",
    "shortage/a_large_block_may_wait_twice_for_its_stream",
    "stats/a_library_that_cannot_be_initialised_is_an_error_until_it_can",
    "stats/asking_whether_there_are_statistics_leaves_the_last_error",
)
# Suites and tests whose processes end, or shut down, while memory is in use: no leak check.
LEAVE_MEMORY = (
    "faults",
    "process",
    "readback/a_forked_child_may_free_readback_memory_of_its_parent",
    "shutdown",
    "staging/a_process_may_end_during_a_staged_copy",
    "threads/a_shutdown_ends_calls_of_other_threads_and_is_silent",
)
BASELINES = {"bench": "raw", "alloc": "raw", "pageable": "raw", "gil": "raw", "copies": "raw", "pipeline": "pipeline_raw", "graphs": "graphs_raw"}


class Machine:
    """Where the carried files are, and the environments of the steps."""

    def __init__(self, carried, out):
        self.carried, self.out, self.tests = carried, out, carried / "tests"
        self.site = out / "site"
        for wheel in [*carried.glob("gpuglue-*.whl"), *(carried / "wheelhouse").glob("*.whl")]:
            zipfile.ZipFile(wheel).extractall(self.site)

    def environment(self, run):
        backend = {"shim": "hip"}.get(run, run)
        variables = os.environ | {"GPUGLUE_BACKEND": backend, "GPUGLUE_REQUIRE": backend, "GPUGLUE_TEST_LIBRARIES": f"{self.tests}/tests",
                                  "LD_LIBRARY_PATH": f"{self.tests}/lib:{os.environ.get('LD_LIBRARY_PATH', '')}"}
        variables["PYTHONPATH"] = f"{self.site}:{os.environ.get('PYTHONPATH', '')}"
        if run == "shim":
            variables["GPUGLUE_HIP_LIBRARY"] = f"{self.tests}/tests/shim/libamdhip64.so.6"
        return variables

    def conformance(self, run, *before):
        return [*before, f"{self.tests}/tests/conformance", "hip" if run == "shim" else run, "--timeout", "300", "-j", str(JOBS)]

    def pytest(self, name, *files):
        return [sys.executable, "-m", "pytest", "-q", f"--junitxml={self.out}/{name}.xml", "-o", "faulthandler_timeout=120", *files]

    def existing(self, variable, pattern):
        found = os.environ.get(variable) or next(map(str, sorted(self.carried.glob(pattern))), None)
        return [f"--{variable.lower()}", found] if found else []


def sanitized(machine, tool):
    """One step for each suite, whose tests share a process, since the tool takes seconds for each context; then those that cannot share it."""
    options = ["--error-exitcode", "9", "--target-processes", "all", "--report-api-errors", "no"]
    variables = ["GPUGLUE_TEST_GATE_SECONDS=3"]  # since the tool waits for the device in calls that a test's gate must not hold back
    if tool == "initcheck":  # it does not see what another device, or another process, writes
        variables.append("CUDA_VISIBLE_DEVICES=0")
    before = ["env", *variables, "compute-sanitizer", "--tool", tool, *options]
    leaks = ["--leak-check", "full"] if tool == "memcheck" else []
    program = f"{machine.tests}/tests/conformance"
    names = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    if tool == "initcheck":
        names = [name for name in names if not name.startswith("ipc/")]
    kept, shared = ([name for name in names if name not in OWN_PROCESS and leaves_memory(name) == leaves] for leaves in (True, False))
    yield f"{tool}-own-process", "cuda", [*machine.conformance("cuda", *before, *leaks), *OWN_PROCESS]
    for tests, more in [(tests, leaks) for tests in by_suite(shared)] + [(tests, []) for tests in by_suite(kept)]:
        name = f"{tool}-{tests[0].partition('/')[0]}{'' if tests[0] in shared else '-leaving-memory'}"
        yield name, "cuda", [*before, *more, program, "cuda", "--here", *tests]


def by_suite(names):
    suites = [list(tests) for _, tests in groupby(names, lambda name: name.partition("/")[0])]
    return sorted(suites, key=len, reverse=True)


def leaves_memory(name):
    return name in LEAVE_MEMORY or name.partition("/")[0] in LEAVE_MEMORY


def of_suites(machine):
    yield "suites", "cuda", machine.conformance("cuda")
    yield "core", "host", [f"{machine.tests}/tests/core_units", f"{machine.tests}/tests/core/plugins", "--timeout", "120"]


def of_programs(machine):
    sources = machine.existing("PYCUDA", "pycuda-*.tar.gz") + machine.existing("PYBINDGPU", "pybindgpu")
    for way in ("default", "exact", "cupy", "kernels"):
        yield f"programs-{way}", "cuda", [sys.executable, "tests/programs/run.py", *sources, "--way", way, "--jobs", "4", "--out", f"{machine.out}/programs-{way}"]


def of_bench(machine):
    built = machine.out / "bench"
    yield "baselines", "cuda", ["make", "-C", "bench", f"OUT={built}", f"PYTHON={sys.executable}",
                                *(f"{built}/{name}" for name in ("libraw.so", "libpipeline_raw.so", "libgraphs_raw.so", "floor.abi3.so", "libsample.so", "scale"))]
    for name in BENCHES:
        raw = ["--raw", f"{built}/lib{BASELINES[name]}.so"] if name in BASELINES else []
        yield f"bench-{name}", "cuda", [sys.executable, f"bench/{name}.py", *raw, "--json", f"{built}/{name}.json"]
    yield "bench-scale", "cuda", [sys.executable, "bench/scale.py", f"{built}/scale", "--json", f"{built}/scale.json"]
    yield "bench-sample", "cuda", [sys.executable, "bench/sample.py", "--sampler", f"{built}/libsample.so", "--raw", f"{built}/libraw.so",
                                   "--json", f"{built}/sample.json"]
    yield "bench-host", "host", [sys.executable, "bench/host.py", "--json", f"{built}/host.json"]


def of_comm(machine):
    files = sorted(map(str, Path("tests/python").glob("test_communicator*.py")))
    yield "comm-tests", "cuda", machine.pytest("comm-tests", *files)
    built = machine.out / "bench"
    yield "comm-baseline", "cuda", ["make", "-C", "bench", f"OUT={built}", f"{built}/libcomm_raw.so"]
    yield "comm", "cuda", [sys.executable, "bench/comm.py", "--raw", f"{built}/libcomm_raw.so", "--json", f"{built}/comm.json"]


PARTS = {
    "suites": of_suites,
    "shim": lambda machine: [("shim", "shim", machine.conformance("shim"))],
    "python": lambda machine: [("python", "cuda", machine.pytest("python", "tests/python"))],
    "python-shim": lambda machine: [("python-shim", "shim", machine.pytest("python-shim", "tests/python"))],
    "memcheck": lambda machine: sanitized(machine, "memcheck"),
    "initcheck": lambda machine: sanitized(machine, "initcheck"),
    "programs": of_programs,
    "names": lambda machine: [("names", "cuda", machine.pytest("names", *sorted(map(str, Path("tests/python").glob("test_compat_*.py")))))],
    "bench": of_bench,
    "comm": of_comm,
    "soak": lambda machine: [("soak", "cuda", [sys.executable, "tests/soak/soak.py", "--seconds", "{left}", "--seed", "1"])],
}


def run_step(machine, name, run, command, seconds):
    """Whether it ended with status 0 within the time."""
    began = time.monotonic()
    command = [word.replace("{left}", str(int(seconds - 30))) for word in command]
    output = machine.out / f"{name}.txt"
    with output.open("w") as file:
        process = subprocess.Popen(command, cwd=ROOT, env=machine.environment(run), stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            status = f"ended after {seconds:.0f} s"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    lines = output.read_text(errors="replace").strip().splitlines() or [""]
    print(f"{'ok' if status == 0 else 'FAILED':7} {time.monotonic() - began:5.0f} s  {name}: {'' if status == 0 else f'{status}: '}{lines[-1][:150]}", flush=True)
    return status == 0


def run_part(machine, part, seconds):
    ends_at = time.monotonic() + seconds

    def run(step):
        return run_step(machine, *step, max(ends_at - time.monotonic(), 1))

    with ThreadPoolExecutor(JOBS if part in ("memcheck", "initcheck") else 1) as steps:
        return all(list(steps.map(run, PARTS[part](machine))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--carried", type=Path, default=ROOT / "dist/carry")
    parser.add_argument("--out", type=Path, default=ROOT / "build/gpu")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("parts", nargs="+", metavar="PART[=SECONDS]")
    options = parser.parse_args()
    wanted = [(part, float(seconds or options.seconds)) for part, _, seconds in (each.partition("=") for each in options.parts)]
    if unknown := [part for part, _ in wanted if part not in PARTS]:
        parser.error(f"unknown part {unknown[0]!r}; expected {', '.join(PARTS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    machine = Machine(options.carried.resolve(), options.out.resolve())
    return 0 if all([run_part(machine, part, seconds) for part, seconds in wanted]) else 1


if __name__ == "__main__":
    sys.exit(main())
