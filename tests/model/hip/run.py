"""gpuglue on AMD's own HIP runtime, whose GPU is the model in this directory: `make test-hip-model`.

    run.py BUILD [--arch gfx942|gfx1100] [--wheel FILE] [--gpus N] [--jobs N] [--few] [NAME…]

BUILD is a build directory with tests; the Python package is the wheel's, or the one that is installed in BUILD. A NAME is a
suite of tests/conformance, a file of tests/python or of this directory (test_copy, test_kernels), or an example (doublify).
Without names, all that use a device run, or those of FEW. In the newest Debian root of `make test-vendors`, with the HIP runtime
7.2, HIPRTC compiles the kernels of tests/images. Then each name runs in one or more processes, with AMD's libraries and the
model. The last table has the passed, failed and skipped tests of each; KNOWN_FAILURES has the reasons.

Needs root and Debian's archive, as `make test-vendors`; skips with the reason if these are unavailable, or if the runtime has
another version of the model's interface. Everything else that does not work is a failure."""

import argparse
import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[2]
sys.path[:0] = [str(HERE), str(TREE / "tests/vendors")]

from matrix import DEVELOPMENT, MATRIX  # noqa: E402
from roots import Unavailable, dress, last_line, make_bare, need_tools, say  # noqa: E402
from topology import ARCHITECTURES, write_topology  # noqa: E402

ROOT = "experimental"  # of the matrix
PACKAGES = ("libamdhip64-7", "libhiprtc7", "libhiprtc-builtins7", "librccl1")  # those of its packages that are needed here
LIBRARY = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.7"
DEFAULT = "gfx942"  # of the architectures
PLACE = "/opt/gpuglue-model"  # where the root has the stage; the tree is at its own path
ENTER = (
    'mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount -t tmpfs tmpfs "$0/dev/shm" && '
    'mkdir -p "$0$TREE" "$0$PLACE" && mount --bind "$TREE" "$0$TREE" && mount --bind "$STAGE" "$0$PLACE" && '
    'mount --bind "$STAGE/class" "$0/sys/class" && exec chroot "$0" "$@"'  # RCCL reads the topology there
)
LATE = (124, 137)  # the exit status of `timeout` if the command reaches its limit
NONE_COLLECTED = 5  # that of pytest if a whole file is skipped
VERDICTS = {"ok": "passed", "FAILED": "failed", "skipped": "skipped"}
INTERFACE = "libhsa-runtime64 has another version of the model's interface"

# Files with tests of a device; NOT_THERE has the others.
PYTHON = (
    "allocators", "array", "array_dtypes", "asarray", "async_copies", "await", "bad_input", "bad_producers",
    "between", "callback_errors", "close_races", "closed", "communicator_arrays",
    "communicator_local", "communicator_staged", "compat_arithmetic", "compat_arrays", "compat_bad_calls",
    "compat_calls", "compat_compile", "compat_driver", "compat_generated", "compat_gpuarray", "compat_host_memory",
    "compat_members", "compat_names", "compat_pycuda", "compat_pygpu", "compat_random", "compat_regions",
    "compat_sobol", "compile", "copy", "cuda_interface", "cuda_on_hip", "current", "device", "dlpack", "drivers",
    "errors", "event", "exchange", "extension_table", "foreign_memory", "gil", "graph", "hip",
    "ipc", "kernel", "kernel_errors", "kernel_foreign", "memory", "names", "numa", "offers",
    "pool", "process", "random_chains", "ranges", "readback", "repr", "robustness", "stats", "stream",
    "strided", "trace", "views",
)  # fmt: skip
# Those with communicators of RCCL: see test_rccl.py. On the model the library takes up to a minute to connect the ranks.
VARIABLES = dict.fromkeys(("communicator_arrays", "communicator_local", "trace"), {"HSA_NO_SCRATCH_RECLAIM": "1", "GPUGLUE_TEST_PATIENCE": "400"})
RANKS = "its processes with RCCL take minutes each on the model; test_rccl has each operation, captures, groups and a rank that is killed"
NEEDS_OTHERS = "the root does not have the other library"
NOT_THERE = {  # Files with tests of a device that do not run there, by their reasons.
    RANKS: ("communicator_device", "communicator_device_behind", "communicator_device_end", "communicator_device_hang", "communicator_device_timeout",
            "communicator_group", "communicator_machines"),
    NEEDS_OTHERS: ("with_compilers", "with_cuda_core", "with_cuda_driver", "with_cuda_memory", "with_cupy", "with_protocols", "with_torch"),
    "it runs benchmarks, whose times mean nothing on the model": ("bench_before", "bench_floor", "bench_gil", "bench_programs"),
    "it needs a C++ compiler or NVRTC": ("convert", "host_compiler", "pycuda_command"),
    "it is about other vendors' devices, or about the host": ("communicator", "opencl", "spirv", "sycl"),
    "it needs a simulated driver": ("driver_calls", "environment", "fragmentation", "pipeline"),
    "each of its tests chooses its backend": ("doctor", "main", "registry"),
}
EXAMPLES = ("doublify",)
OWN = ("kernels", "faults", "rccl", "rccl_streams")  # tests in this directory: of the model itself, and of RCCL's library
# Some of each kind, for a run of a few minutes.
FEW = ("event", "graph", "capture_waits", "drain", "shortage", "pool_size", "pool_threads", "shutdown", "test_compile", "test_kernels",
       "test_faults", "test_rccl", "doublify")

EXIT_WAITS = "libamdhip64's exit handler waits for host functions that are blocked"
WRONG_DEVICE = "libamdhip64 queues what a capture has of another device on the first device, which cannot run its kernel"
QUEUES = "libamdhip64 has four hardware queues: a stream may be queued behind another one that is blocked"
ENDS = "the model ends the process when a kernel accesses a bad address"
# Tests that fail for a reason that is not gpuglue's: (the reason, a pattern of how they fail). If one of them fails
# with another message, or passes, the run fails: correct or remove its entry.
NOT_SHARED = "AMD's runtime keeps its memory from forked children (MADV_DONTFORK)"
LATE_TEST = r"^it did not end in \d+ s"
KNOWN_FAILURES = {
    "pinned_memory_is_shared_with_a_child": (NOT_SHARED, "pinned memory is not shared with a child"),
    "exit_with_work_in_progress_is_silent": (EXIT_WAITS, LATE_TEST),
    "a_shutdown_waits_no_longer_than_its_limit": (EXIT_WAITS, LATE_TEST),
    "a_launch_orders_work_on_another_device": (WRONG_DEVICE, "GPU 0 cannot access the kernel"),
    "a_capture_of_two_devices_ends_beside_memory_that_its_stream_still_uses": (WRONG_DEVICE, "GPU 0 cannot access the kernel"),
    "test_with_debug_sync_a_bad_address_names_kernel_arguments_and_line": (ENDS, "returncode=-11"),
    "test_without_debug_sync_a_bad_address_names_no_other_kernel": (ENDS, "returncode=-11"),
}
# Tests of Python files that do not run for such a reason, because they would wait too long.
LEFT_OUT = {
    "test_the_process_ends_silently_with_a_running_stream": EXIT_WAITS,
    "test_the_process_ends_silently_with_everything_at_once": EXIT_WAITS,
    "test_the_process_ends_after_an_exception_with_its_own_status": EXIT_WAITS,
    "test_a_new_stream_with_a_reused_handle_does_not_free_memory_early": QUEUES,
}


class Broken(Exception):
    """The root is complete, but the model does not run there; the text is the reason."""


# ---- the root ----------------------------------------------------------------------------------------------------


def in_root(root, stage, *command, limit=600, **environment):
    """Run a command in the root, in its own mount namespace."""
    inside = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", **environment}
    outside = {**os.environ, "TREE": str(TREE), "PLACE": PLACE, "STAGE": str(stage)}
    bounded = ("timeout", "-k", "5", str(limit), "env", "-i", *(f"{k}={v}" for k, v in inside.items()), *map(str, command))
    line = ["unshare", "--mount", "sh", "-c", ENTER, str(root), *bounded]
    return subprocess.run(line, env=outside, capture_output=True, text=True, errors="replace")


def on_model(root, stage, *command, limit=600, **environment):
    """Run a command on AMD's runtime with the model as its GPUs."""
    model = f"{PLACE}/libhip_model.so"
    variables = {
        "HSA_MODEL_TOPOLOGY": f"{PLACE}/topology", "HSA_MODEL_LIB": model, "LD_PRELOAD": model, "HSA_ENABLE_INTERRUPT": "0",
        "GPUGLUE_TEST_MODEL_TARGET": (stage / "architecture").read_text(),
        "GPUGLUE_BACKEND": "hip", "GPUGLUE_REQUIRE": "hip", "GPUGLUE_HIP_LIBRARY": LIBRARY,
        "GPUGLUE_TEST_LIBRARIES": f"{PLACE}/tests", "PYTHONPATH": f"{PLACE}/site", **environment,
    }  # fmt: skip
    return in_root(root, stage, *command, limit=limit, **variables)


# ---- what runs there ---------------------------------------------------------------------------------------------


def build_model(to):
    """The model as a library. AMD's disassembler is opened when it runs."""
    compiler = [*(["ccache"] if shutil.which("ccache") else []), *os.environ.get("CC", "cc").split()]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-builtin"]
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    objects = {file: to.with_name(f"{file.stem}.o") for file in sorted(HERE.glob("*.c"))}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        commands = [[*compiler, *flags, *warnings, "-c", str(file), "-o", str(made)] for file, made in objects.items()]
        list(pool.map(functools.partial(subprocess.run, check=True), commands))
    subprocess.run([*os.environ.get("CC", "cc").split(), "-shared", *map(str, objects.values()), "-o", str(to), "-lm", "-ldl"], check=True)


def copy_build(build, stage, wheel):
    """The library, its plugins, the tests' programs and their libraries, and the Python package."""
    shutil.rmtree(stage, ignore_errors=True)
    (stage / "tests").mkdir(parents=True)
    (stage / "lib").mkdir()
    for file in (*build.glob("*.so*"), *build.glob("tests/*")):
        if file.is_file():
            shutil.copy(file, stage / file.relative_to(build))
    for place in ("tests/sim/broken_hip", "tests/images", "tests/core/plugins"):
        shutil.copytree(build / place, stage / place, ignore=shutil.ignore_patterns("*.p"))
    for path in pathlib.Path("/usr/lib").glob("*/libcmocka.so.0"):
        shutil.copy(path, stage / "lib")
    if wheel:
        shutil.unpack_archive(wheel, stage / "site", "zip")
    else:
        shutil.copytree(build / "root/site", stage / "site")


def ended(result):
    """How a command ended, and its last line."""
    how = "it did not end within its limit" if result.returncode in LATE else f"exit status {result.returncode}"
    return f"{how}: {last_line(result.stdout + result.stderr)}"


def compile_kernels(root, stage, architecture):
    """The tests' kernels compiled by HIPRTC, instead of the image for simulated drivers, whose name the tests know."""
    image = f"{PLACE}/tests/images/kernels.gfx942.co"
    result = on_model(root, stage, "python3", HERE / "compile.py", TREE / "tests/images/kernels.cu", architecture, image)
    if result.returncode:
        raise Broken(f"HIPRTC does not compile the tests' kernels: {ended(result)}")


def check_runtime(root, stage, gpus):
    """Return the runtime's version. Raise Unavailable if it has another interface, Broken if it does not use the model's GPUs."""
    result = on_model(root, stage, "python3", "-m", "gpuglue", "--json", limit=120)
    if "Model has interface version" in result.stderr:
        raise Unavailable(f"{INTERFACE}: {last_line(result.stderr)}")
    if result.returncode:
        raise Broken(f"`python3 -m gpuglue`: {ended(result)}")
    hip = next(record for record in json.loads(result.stdout)["backends"] if record["name"] == "hip")
    if (hip["status"], hip["devices"]) != ("available", gpus):
        raise Broken(f"the runtime does not use the model's GPUs: hip: {hip['status']}, {hip['devices']} devices: {hip['reason']}")
    return hip["version"]


def prepare(build, architecture, gpus, wheel):
    """The root and the stage that it runs. Raise Unavailable if the root or a package is unavailable."""
    need_tools()
    suite, release, packages = MATRIX[ROOT]
    make_bare(suite, [ROOT])
    root, missing = dress(ROOT, packages, DEVELOPMENT, release)
    missing = [package for package in PACKAGES if package in missing]
    if missing:
        raise Unavailable(f"{', '.join(missing)} cannot be had from Debian {release}")
    stage = build.parent / ("hip-model" if architecture == DEFAULT else f"hip-model-{architecture}")
    copy_build(build, stage, wheel)
    (stage / "architecture").write_text(architecture)
    build_model(stage / "libhip_model.so")
    write_topology(stage / "topology", architecture, gpus)
    (stage / "class/kfd/kfd").mkdir(parents=True)
    (stage / "class/kfd/kfd/topology").symlink_to(f"{PLACE}/topology")
    compile_kernels(root, stage, architecture)
    return root, stage


# ---- one name ----------------------------------------------------------------------------------------------------


def conformance(root, stage, *options, limit=900):
    """Run the conformance program."""
    return on_model(root, stage, f"{PLACE}/tests/conformance", *options, limit=limit)


def conformance_suites(root, stage):
    result = conformance(root, stage, "--list", limit=120)
    suites = list(dict.fromkeys(name.split("/")[0] for name in result.stdout.split()))
    if result.returncode or not suites:
        raise Broken(f"the conformance program lists {len(suites)} suites: {ended(result)}")
    return suites


def judge_end(found, result, normal):
    """Add a failure if the process did not end normally, if its exit status has no reason, or if no test ran."""
    unexplained = result.returncode == 1 and not found["failed"]
    if result.returncode not in normal or unexplained or not any(found.values()):
        found["failed"]["the process"] = ended(result)


def run_conformance(root, stage, suite):
    """{verdict: {test: reason}}, and the output."""
    result = conformance(root, stage, "hip", "--jobs", "2", "--timeout", "240", "--suite", suite)
    text = result.stdout + result.stderr
    found = {"passed": {}, "failed": {}, "skipped": {}}
    # A test's output follows its line, up to the next test or the summary.
    for word, name, why, output in re.findall(r"^(ok|FAILED|skipped) +[\d.]+ s  \w+/(\w+)(?:: (.*))?$((?:\n(?!ok |FAILED |skipped |  failed: ).*)*)", text, re.M):
        found[VERDICTS[word]][name] = (why + output).rstrip() if word == "FAILED" else why
    judge_end(found, result, (0, 1, 77))
    return found, text


def run_python(root, stage, name):
    return run_pytest(root, stage, TREE / f"tests/python/test_{name}.py", **VARIABLES.get(name, {}))


def run_pytest(root, stage, file, **variables):
    report = f"{PLACE}/{file.stem}.xml"
    without = {test: why for test, why in LEFT_OUT.items() if f"def {test}(" in file.read_text()}
    options = ("-k", " and ".join(f"not {test}" for test in without)) if without else ()
    # If the model ends the process, its message is the last line of stderr.
    reporting = ("--capture=sys", "-p", "no:faulthandler")
    pytest = ("python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", *reporting, "-rfEs", "--tb=short", f"--junit-xml={report}", *options, file)
    result = on_model(root, stage, *pytest, limit=600, **variables)
    found = {"passed": {}, "failed": {}, "skipped": dict(without)}
    path = stage / f"{file.stem}.xml"
    cases = xml.etree.ElementTree.parse(path).iter("testcase") if path.exists() else ()
    for case in cases:
        kinds = {child.tag: child.get("message", "") for child in case}
        verdict = "skipped" if "skipped" in kinds else "failed" if kinds.keys() & {"failure", "error"} else "passed"
        found[verdict][case.get("name")] = next(iter(kinds.values()), "")
    judge_end(found, result, (0, 1, NONE_COLLECTED) if found["skipped"] and path.exists() else (0, 1))
    return found, result.stdout + result.stderr


def run_example(root, stage, name):
    result = on_model(root, stage, "python3", TREE / f"examples/{name}.py", limit=120)
    why = last_line(result.stdout + result.stderr)
    return {"passed": {} if result.returncode else {name: ""}, "failed": {name: why} if result.returncode else {}, "skipped": {}}, why


def run_own(root, stage, name):
    return run_pytest(root, stage, HERE / f"test_{name}.py")


def judge_known_failures(found):
    """Move the known failures to the skipped tests."""
    for test in KNOWN_FAILURES.keys() & found["failed"].keys():
        reason, how = KNOWN_FAILURES[test]
        if re.search(how, found["failed"][test]):
            found["skipped"][test] = reason
            del found["failed"][test]
    for test in KNOWN_FAILURES.keys() & found["passed"].keys():
        found["failed"][test] = "passes, but is in KNOWN_FAILURES"
        del found["passed"][test]


def run_name(root, stage, runner, name):
    began = time.monotonic()
    found, text = runner(root, stage, name)
    judge_known_failures(found)
    (stage / f"{name}.{runner.__name__}.txt").write_text(text)
    counts = ", ".join(f"{len(names)} {verdict}" for verdict, names in found.items())
    say(f"{name}: {counts}  ({time.monotonic() - began:.0f} s)")
    return found


# ---- all ---------------------------------------------------------------------------------------------------------


def name_of(runner, name):
    """The name on the command line."""
    return f"test_{name}" if runner in (run_python, run_own) else name


def plan(root, stage, names):
    """(runner, name) of each; raise Broken for a name that does not exist."""
    kinds = {run_conformance: conformance_suites(root, stage), run_python: PYTHON, run_example: EXAMPLES, run_own: OWN}
    rows = {name_of(runner, name): (runner, name) for runner, its in kinds.items() for name in its}
    unknown = [name for name in names if name not in rows]
    if unknown:
        raise Broken(f"unknown: {', '.join(unknown)}. The names are {', '.join(rows)}")
    return [row for name, row in rows.items() if name in names or not names]


def write_results(path, rows):
    """As the conformance program prints them, for scripts/suites.py; known failures are skipped tests."""
    words = {verdict: word for word, verdict in VERDICTS.items()}
    lines = []
    for (runner, name), found in rows.items():
        suite = name_of(runner, name)
        for verdict, tests in found.items():
            lines += [f"{words[verdict]:9} 0.00 s  {suite}/{re.sub(r'[^0-9A-Za-z_]', '_', test)}" + (f": {' '.join(why.split())}" if why else "")
                      for test, why in tests.items()]
    path.write_text("\n".join(lines) + "\n")


def print_table(rows):
    """A line per name, then each reason of a skip with its number, then each failure."""
    kinds = {run_conformance: "conformance", run_python: "python", run_example: "examples", run_own: "model"}
    reasons = collections.Counter()
    print(f"\n{'suite':34} passed failed skipped")
    for (runner, name), found in rows.items():
        counts = " ".join(f"{len(found[verdict]):6}" for verdict in ("passed", "failed", "skipped"))
        print(f"{kinds[runner] + '/' + name:34} {counts}")
        reasons.update(found["skipped"].values())
    print("\nskipped:", *(f"{count:5} {reason}" for reason, count in reasons.most_common()), sep="\n")
    failed = [f"{name}/{test}: {why.rstrip()}" for (_, name), found in rows.items() for test, why in found["failed"].items()]
    print("\nfailed:", *(failed or ["none"]), sep="\n    ")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--arch", choices=tuple(ARCHITECTURES), default=DEFAULT)
    parser.add_argument("--wheel", type=pathlib.Path)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("names", nargs="*")
    return parser.parse_intermixed_args()


def run_all(options):
    """Return {(runner, name): its results}, and the stage."""
    if os.geteuid():
        raise Unavailable("needs to be root: sudo make test-hip-model")
    root, stage = prepare(options.build.resolve(), options.arch, options.gpus, options.wheel)
    say(f"HIP {check_runtime(root, stage, options.gpus)}, {options.gpus} x {options.arch}")
    rows = plan(root, stage, (*options.names, *(FEW if options.few else ())))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {row: pool.submit(run_name, root, stage, *row) for row in rows}
        return {row: future.result() for row, future in running.items()}, stage


def main():
    try:
        rows, stage = run_all(parse())
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 0
    except Broken as reason:
        print(f"FAILED: {reason}")
        return 1
    print_table(rows)
    write_results(stage / "results.txt", rows)
    counts = {verdict: sum(len(found[verdict]) for found in rows.values()) for verdict in ("passed", "failed", "skipped")}
    print(f"{'FAILED' if counts['failed'] else 'ok'}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
