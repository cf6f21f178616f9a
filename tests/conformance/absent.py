"""absent.py PROGRAM BACKEND LIBHIDDEN DEF… [--stats DEF]: the conformance tests, with each optional function of the driver absent in turn.

DEF… are the tables of the backend's functions, such as backends/cuda/cuda.def. First each test runs once, but for those of the
suites --not-each (with GPUGLUE_TEST_FULL=1 those too), and the simulated driver records its calls. Then, for each function that a table marks GG_OPTIONAL, the tests that call it run
with the function hidden from dlsym; and at last all tests, with all of them hidden. Each test must pass, or be skipped: because
an operation is not supported, for a reason in LACKING, or for one for which it is also skipped when nothing is hidden. With
--all-only SUITES, whose names are separated by commas, there is only the last run, of these suites. The table of --stats is that of the vendor's management library, whose optional functions are
hidden from the suite `stats`, each alone and then all with all others.

A function that many tests call is hidden from 20 of them; GPUGLUE_TEST_FULL=1 runs all. A function that no test calls is an error, unless it is in NOT_CALLED."""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

ROW = re.compile(r"^(?:FN|OWN|GIVES|TEXT)\(\w+, \(.*\), ([\w, ]+)\)$", re.M)
OP = re.compile(r"^OP\((\w+), GG_OPTIONAL\)$", re.M)
RESULT = re.compile(r"^(ok|skipped|FAILED) +[\d.]+ s  (\w+/\w+)(?:: (.*))?$", re.M)
MANY = 20  # tests of one function
# HIP 5 has the one and HIP 6 the other: from them gpuglue gets the version and the architecture.
NEVER_ABSENT = {"hipGetDeviceProperties", "hipGetDevicePropertiesR0600"}
# Called only where a newer function is absent: hidden with it, from the tests that call the newer one.
OLDER = {"cuDeviceGetUuid": "cuDeviceGetUuid_v2", "cuStreamGetCtx": "cuStreamGetCtx_v2", "hipStreamAddCallback": "hipLaunchHostFunc"}
# Calls that the simulated driver does not count: hidden from these suites.
NOT_COUNTED = {"hipGetLastError": ("errors", "faults"), "hipPeekAtLastError": ("errors", "faults")}
# Functions that no test of the program calls, and why.
NAMES = "gpuglue has the names of all codes that the simulated driver returns"
OTHERS = "only for a context that is not gpuglue's: tests/python/test_current.py makes one"
LOADER = "the driver that is its own loader does not have it"
LISTS = "only for lists that gpuglue did not make: tests/faults/steps_borrowed.c has some"
KERNELS = "only for images that do not list their kernels, which the simulated driver does not list either"
NOT_CALLED = {
    "cuGetErrorName": NAMES, "cuGetErrorString": NAMES, "hipDrvGetErrorName": NAMES, "hipDrvGetErrorString": NAMES,
    "cuCtxGetDevice": OTHERS, "cuDevicePrimaryCtxGetState": OTHERS,
    "cuMemHostGetDevicePointer_v2": "only for devices that access registered memory at another address: tests/python/test_kernel.py has one",
    "hipStreamWriteValue64": "gpuglue writes no words on hip",
    "hipModuleLaunchCooperativeKernel": "the simulated devices of hip have no cooperative launches",
    "cuFuncGetParamInfo": "only for images without parameters: tests/python/test_driver_errors.py has one",
    "ncclGetLastError": "the program has no communicators: tests/faults/steps_comm.c has some",
    "cuModuleGetFunctionCount": KERNELS, "cuModuleEnumerateFunctions": KERNELS, "cuFuncGetName": KERNELS,
    "zelLoaderGetVersions": LOADER, "zelLoaderTranslateHandle": LOADER, "zeCommandListIsImmediate": LISTS,
    "zeCommandListGetDeviceHandle": LISTS, "zeModuleGetKernelNames": KERNELS,
}  # fmt: skip
COLUMN = {"cuda": 0, "hip": 1, "ze": 0}
UNSUPPORTED = {f"{op} is not supported" for op in OP.findall((Path(__file__).parents[2] / "core/include/gpuglue/ops.def").read_text())}
# Further reasons that name what a driver without one of the functions lacks.
LACKING = {
    "managed_memory is not supported",
    "the device has no managed memory",
    "no two devices copy directly",
    "the devices have no peer access",
    "the device has no UUID",
    "the device has no PCI address or no UUID",
    "ipc_export: hip:0 has no UUID, so another process cannot identify it",
    "the device has no cooperative launches",
    "the driver does not report the sizes of allocations",
    "the library is not initialised by a function of its own",
}


def optional(backend, tables):
    """The functions that the backend can do without."""
    names = []
    for table in tables:
        for columns in (row.split(", ") for row in ROW.findall(Path(table).read_text())):
            if "GG_OPTIONAL" in columns:
                names.append(columns[COLUMN[backend] if len(columns) > 2 else 0])
    names = [name for name in names if name not in NEVER_ABSENT]
    assert names and len(set(names)) == len(names)
    return names


def run(program, backend, tests, *options, **environment):
    """The exit status, the output, and for each test its result and its reason."""
    done = subprocess.run([program, backend, "--timeout", "360", *options, *tests], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env={**os.environ, "GPUGLUE_REQUIRE": backend, **environment})
    return done.returncode, done.stdout, {name: (result, reason) for result, name, reason in RESULT.findall(done.stdout)}


def some(tests, function):
    """At most MANY of them, by a checksum: a new test changes the choice by one test at most."""
    if os.environ.get("GPUGLUE_TEST_FULL"):
        return tests
    return sorted(tests, key=lambda test: zlib.crc32(f"{function} {test}".encode()))[:MANY]


class Sweep:
    def __init__(self, program, backend, library):
        self.program, self.backend, self.library = program, backend, library
        self.runs = self.failures = 0
        self.skipped = set()  # with all functions

    def fail(self, message):
        self.failures += 1
        print(f"FAILED {message}", flush=True)

    def hide(self, functions, tests, title):
        """Run the tests without the functions; print the failures, and why more tests were skipped."""
        hidden = {"LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {self.library}", "GPUGLUE_TEST_HIDDEN": ",".join(functions)}
        began = time.monotonic()
        status, output, results = run(self.program, self.backend, tests, **hidden)
        failed = [name for name, (result, _) in results.items() if result == "FAILED"]
        skipped = {reason for name, (result, reason) in results.items() if result == "skipped" and name not in self.skipped}
        self.runs += len(results)
        unexplained = self.unexplained(results)
        self.failures += len(failed) + len(unexplained) + (not results) + bool(status and not failed)
        print(f"{title:60} {len(results):4} tests, {len(failed)} failed, {time.monotonic() - began:5.1f} s", *sorted(skipped), sep="\n    ", flush=True)
        for name, reason in unexplained.items():
            print(f"FAILED {name}: skipped only without the function, for a reason that names nothing unsupported: {reason}", flush=True)
        if status:
            print(output)

    def unexplained(self, results):
        """{test: its reason} of those that are skipped for another reason than what the driver lacks, and not when nothing is hidden."""
        doubtful = {name: reason for name, (result, reason) in results.items() if result == "skipped" and reason not in UNSUPPORTED | LACKING}
        if not doubtful:
            return {}
        usual = run(self.program, self.backend, sorted(doubtful))[2]
        return {name: reason for name, reason in doubtful.items() if usual.get(name) != ("skipped", reason)}


def record(program, backend, left_out):
    """{test: the names of the driver's functions that it and its processes call}, and the tests that were skipped."""
    options = [word for suite in left_out for word in ("--without", suite)]
    with tempfile.TemporaryDirectory() as directory:
        _, _, results = run(program, backend, [], *options, GPUGLUE_SIM_REPORT=f"{directory}/%p")
        calls = {test: set() for test in results}
        for file in Path(directory).iterdir():
            with contextlib.suppress(json.JSONDecodeError):  # of a process that was killed at the end of its test
                report = json.loads(file.read_text())
                if report["test"]:  # the check before all tests has none
                    calls[report["test"]].update(report["calls"])
    return calls, {test for test, (result, _) in results.items() if result == "skipped"}


def hide_each(sweep, functions, calls):
    """Each function, from the tests that call it."""
    for function in functions:
        newer = OLDER.get(function)
        suites = NOT_COUNTED.get(function, ())
        tests = [test for test, names in calls.items() if (newer or function) in names or test.split("/")[0] in suites]
        if tests:
            hidden = [function, newer] if newer else [function]
            sweep.hide(hidden, some(tests, function), f"{' and '.join(hidden)}: {len(tests)} tests call {'the newer' if newer else 'it'}")
        elif function in NOT_CALLED:
            print(f"{function}: no test calls it: {NOT_CALLED[function]}")
        else:
            sweep.fail(f"{function}: no test calls it")
    for function in NOT_CALLED.keys() & {name for names in calls.values() for name in names}:
        sweep.fail(f"{function}: tests call it, and NOT_CALLED has it")


def main(arguments):
    began = time.monotonic()
    functions = optional(arguments.backend, arguments.tables)
    of_stats = optional(arguments.backend, [arguments.stats]) if arguments.stats else []
    sweep = Sweep(arguments.program, arguments.backend, arguments.library)
    if not arguments.all_only:
        left_out = [] if os.environ.get("GPUGLUE_TEST_FULL") == "1" else arguments.not_each
        calls, sweep.skipped = record(arguments.program, arguments.backend, left_out)
        print(f"{len(calls)} tests were recorded in {time.monotonic() - began:.0f} s")
        hide_each(sweep, functions, calls)
    for function in of_stats:
        sweep.hide([function], ["stats"], function)
    functions += of_stats
    sweep.hide(functions, arguments.all_only, f"all {len(functions)} at once")
    print(f"{arguments.backend}: {len(functions)} optional functions, {sweep.runs} tests run, {sweep.failures} failures, {time.monotonic() - began:.0f} s")
    return 1 if sweep.failures else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for option in ("--all-only", "--not-each"):
        parser.add_argument(option, metavar="SUITES", type=lambda names: names.split(","), default=[])
    parser.add_argument("--stats", metavar="DEF")
    for name in ("program", "backend", "library"):
        parser.add_argument(name)
    parser.add_argument("tables", nargs="+")
    sys.exit(main(parser.parse_args()))
