"""The wheel in several Debian roots, each with its own glibc, Python and vendors' libraries: `make test-vendors`.

    matrix.py WHEEL TESTS [ROOT…]

TESTS is the directory with the built tests. An unavailable root or package is reported as skipped; a failed test is a
failure. In each root these are tested:
- import, and `python -m gpuglue` on each real vendor library, which must report the right reason without a device;
- gpuglue's declarations against the vendors' headers of that release, with which the simulated Level Zero drivers must compile;
- the Python suite on host but for ALIKE in the root of the newest Python (WHOLE), in the others its files that use a device (the variable
  ON_DEVICE, else all files); these also on each simulated Level Zero driver through the root's real loader;
- some of these (FEW), also with each of the loader's layers, with two drivers at once, and on the
  simulated CUDA and HIP; of a root with the Python, the glibc and the loader of another, only those on HIP;
- AMD's and Intel's compilers, which need no device;
- compiled kernels on the simulated Level Zero drivers, where the root has PoCL;
- the result of the loader's leak checker;
- the functions and the refusal of RCCL, where the root has it;
- in bookworm, Intel's own driver in its capture mode; in trixie, torch on host; in experimental, some suites on AMD's own
  HIP runtime with a model of its GPU.

It needs the root user and Debian's archive. Each root has several jobs, which need not wait for each other; the longest of all roots
start first. One more job than there are processors runs at a time, because most also wait."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import time

from roots import HEADERS, PLACE, TREE, Unavailable, dress, fill, in_root, last_line, make_bare, need_tools, say, version_of

DEVELOPMENT = LEVEL_ZERO, HIP_HEADERS = "libze-dev", "libamdhip64-dev"
OCLOC = ("intel-ocloc", "libigc2", "libigdfcl2")
POCL = ("pocl-opencl-icd", "ocl-icd-libopencl1")
# root: its Debian suite, the release of its newest packages (or ""), and its packages besides Python
MATRIX = {
    "bookworm": ("bookworm", "", ("libze1", "intel-opencl-icd", "libamdhip64-5", "libhiprtc-builtins5", *POCL, "clang-15", "llvm-spirv-15")),
    "trixie": ("trixie", "", ("libze1", "libze-intel-gpu1", "libamdhip64-5", "libhiprtc-builtins5", "python3-torch", "librccl1", *OCLOC, *POCL, "clang-18", "llvm-spirv-18")),
    "forky": ("forky", "", ("libze1", "libze-intel-gpu1", "libamdhip64-6", "libhiprtc6", "libhiprtc-builtins6", *OCLOC)),
    "experimental": ("forky", "experimental", ("libze1", "libze-intel-gpu1", "libamdhip64-7", "libhiprtc7", "libhiprtc-builtins7", "librccl1", *OCLOC)),
}
# The packages that have a compiler; the first one that a root has is used.
COMPILERS = {"hiprtc": ("libhiprtc7", "libhiprtc6", "libamdhip64-5"), "ocloc": ("intel-ocloc", "intel-opencl-icd")}
CAPTURED = "bookworm"  # the root whose Intel driver can run without hardware
WHOLE = "forky"  # the root with the newest Python and glibc
MODELLED = "experimental"  # the root whose HIP runtime can: tests/model/hip
LIBRARIES = {"python3-torch": "tests/libraries/test_torch.py"}  # package: its tests, on host

SIMS = f"{PLACE}/tests/sim"
OLD, NEW = f"{SIMS}/ze_old/libze_sim_old.so.1", f"{SIMS}/ze_new/libze_sim_new.so.1"
BEHIND_OLD, BEHIND_NEW = ({"GPUGLUE_BACKEND": "ze", "ZE_ENABLE_ALT_DRIVERS": driver} for driver in (OLD, NEW))
BOTH = {"GPUGLUE_BACKEND": "ze", "ZE_ENABLE_ALT_DRIVERS": f"{OLD},{NEW}", "GPUGLUE_SIM_DEVICES": "1"}
# A loader that uses zeInitDrivers leaves out old drivers, so there is also a run with two new drivers.
SECOND = f"{SIMS}/second/libze_sim_new.so.1"
BOTH_NEW = {**BOTH, "ZE_ENABLE_ALT_DRIVERS": f"{NEW},{SECOND}"}
INTERCEPTED = {"ZE_ENABLE_LOADER_INTERCEPT": "1"}
VALIDATED = {"ZE_ENABLE_VALIDATION_LAYER": "1", "ZE_ENABLE_PARAMETER_VALIDATION": "1"}
LEAKS = {"ZE_ENABLE_VALIDATION_LAYER": "1", "ZEL_ENABLE_BASIC_LEAK_CHECKER": "1"}

# Sweeps of failures and of processes that exchange data, in which the releases do not differ.
ALIKE = tuple(f"tests/python/test_{name}.py" for name in ("communicator", "communicator_staged", "fault_sweep"))
ALL = tuple(file for file in sorted(f"tests/python/{path.name}" for path in pathlib.Path(TREE, "tests/python").glob("test_*.py")) if file not in ALIKE)
USING_A_DEVICE = tuple(os.environ.get("ON_DEVICE", "tests/python").split())
ON_DEVICE = (*USING_A_DEVICE, "tests/python/test_level_zero.py")
FEW = tuple(
    f"tests/python/test_{name}.py"
    for name in ("device", "current", "memory", "copy", "async_copies", "stream", "event", "array", "errors", "closed", "close_races", "process")
)
RUNS = {
    "host": (ALL, {"GPUGLUE_BACKEND": "host"}),
    "ze old": (ON_DEVICE, BEHIND_OLD),
    "ze new": (ON_DEVICE, BEHIND_NEW),
    "ze old, intercepted": (FEW, {**BEHIND_OLD, **INTERCEPTED}),
    "ze new, intercepted": (FEW, {**BEHIND_NEW, **INTERCEPTED}),
    "ze, old and new driver": (FEW, BOTH),
    "ze, two new drivers": (FEW, BOTH_NEW),
    "ze old, parameters validated": (FEW, {**BEHIND_OLD, **VALIDATED}),
    "ze new, parameters validated": (FEW, {**BEHIND_NEW, **VALIDATED}),
    "cuda-sim": (FEW, {"GPUGLUE_BACKEND": "cuda", "GPUGLUE_CUDA_LIBRARY": f"{SIMS}/cuda/libcuda.so.1"}),
    "hip-sim": (FEW, {"GPUGLUE_BACKEND": "hip"}),  # of the root's HIP version
}
# With PoCL, the files about modules and launches.
COMPILED = tuple(f"tests/python/test_{name}.py" for name in ("opencl", "kernel", "kernel_errors"))
COMPILED_RUNS = {"ze old": BEHIND_OLD, "ze new": BEHIND_NEW}
OPENCL = "libOpenCL.so.1"
BALANCES = {
    "ze old": BEHIND_OLD,
    "ze new": BEHIND_NEW,
    "ze new, intercepted": {**BEHIND_NEW, **INTERCEPTED},
    "ze, two new drivers": BOTH_NEW,
}
LIMIT = 1500  # seconds for one run of Python, the longest of which takes 4 minutes on two processors
LEAK_CHECKER_SINCE = (1, 32)  # loader version; some older loaders have it too


def numbers(version):
    """(1, 8, 12) of "1.8.12-1"."""
    return tuple(int(part) for part in re.findall(r"\d+", version.split("-")[0]))[:3]


# ---- the runs in a root -----------------------------------------------------------------------------------


def python(root, *arguments, **environment):
    """Run Python in the root; after LIMIT seconds it is aborted, where pytest prints the stacks of its threads."""
    variables = {"PYTHONPATH": f"{PLACE}/site", "GPUGLUE_TEST_LIBRARIES": f"{PLACE}/tests", **environment}
    return in_root(root, "timeout", "--signal=ABRT", "--kill-after=10", str(LIMIT), "python3", *arguments, environment=variables)


def failed(*text):
    return "FAILED: " + "\n".join(part.strip() for part in text if part.strip())


def suite(root, files, **environment):
    """The result of these files. With RERUN=1 they run once more if they fail: `make test-vendors` sets it in place of STEP_RERUN,
    which would repeat all roots (see scripts/step.sh)."""
    result = suite_once(root, files, **environment)
    if not result.startswith("FAILED") or os.environ.get("RERUN") != "1":
        return result
    say(f"{root.name}: runs once more: {result}")
    again = suite_once(root, files, **environment)
    return again if again.startswith("FAILED") else again.replace("ok:", "flaky:", 1)


def suite_once(root, files, **environment):
    environment["GPUGLUE_REQUIRE"] = environment["GPUGLUE_BACKEND"]
    result = python(root, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"{PLACE}/{file}" for file in files), **environment)
    if result.returncode:
        return failed(result.stdout[-6000:], result.stderr[-2000:])
    last = [line for line in result.stdout.splitlines() if " passed" in line][-1]
    return "ok: " + re.sub(r" in .*", "", last.strip("= "))


def leaks(root, loader, environment):
    """Run every operation once; report the objects that the loader counts as created but not destroyed."""
    result = python(root, f"{PLACE}/tests/vendors/every_operation.py", **environment, **LEAKS)
    text = result.stdout + result.stderr
    counts = [int(count) for count in re.findall(r"LEAK\s*=\s*(\d+)", text)]
    counted = "zeContextCreate" in text
    if result.returncode or any(counts) or (not counted and numbers(loader) >= LEAK_CHECKER_SINCE):
        return failed(text[-3000:])
    return f"ok: balanced ({len(set(re.findall(r'ze[A-Z][A-Za-z]+', text)))} functions counted)" if counted else "none: this loader has no leak checker"


# ---- the probe on real vendor libraries ---------------------------------------------------------------------


def probe(root, **environment):
    """Return ({backend: its record}, or {} if the program failed; its output)."""
    result = python(root, "-m", "gpuglue", "--timeout", "900", "--json", **environment)
    text = python(root, "-m", "gpuglue", "--timeout", "900", **environment).stdout
    if result.returncode or not text:
        return {}, result.stderr + result.stdout
    records = {record["name"]: record for record in json.loads(result.stdout)["backends"]}
    lost = [name for name, record in records.items() if record["reason"] not in text]
    return ({} if lost else records), text


def expected(hip, loader):
    """Return {title: (environment, backend, status, words of its reason)} for the root's real libraries."""
    code = "101, hipErrorInvalidDevice" if hip and numbers(hip)[0] == 5 else "100, hipErrorNoDevice"
    no_node = "there is no /dev/dri/renderD*"
    rows = {
        "host": ({}, "host", "available", ()),
        "cuda": ({}, "cuda", "library-not-found", ("libcuda.so.1 was not found", "GPUGLUE_CUDA_LIBRARY")),
        "hip, unasked": ({}, "hip", "no-device", ("not searched", "/dev/kfd")),
    }
    if hip:
        rows["hip"] = ({"GPUGLUE_BACKEND": "hip,host"}, "hip", "no-device", ("HIP sees no device", code))
    if loader:
        nowhere = {"ZE_ENABLE_ALT_DRIVERS": "/nonexistent.so"}
        rows["ze"] = ({}, "ze", "no-device", (no_node, "0x78000001"))
        rows["ze, no driver"] = (nowhere, "ze", "no-device", (no_node, "0x78000001", "/nonexistent.so"))
    return rows


def check_probes(root, hip, loader):
    """Return ({title: "ok: status, reason" or the failure}, {title: the backend's record})."""
    probes, records = {}, {}
    for title, (environment, name, status, words) in expected(hip, loader).items():
        found, text = probe(root, **environment)
        record = found.get(name, {"status": "?", "reason": text})
        right = record["status"] == status and all(word in record["reason"] for word in words)
        if title == "hip":
            right = right and numbers(record["version"])[:2] == numbers(hip)[:2]
        probes[title] = f"ok: {record['status']}" if right else failed(f"{record['status']}: {record['reason']}")
        probes[title] += f": {record['reason']}" if right and record["reason"] else ""
        records[title] = record
    return probes, records


def layers_of(root, environment):
    """Return the notes about the loader and its layers, and those about its drivers."""
    found, _ = probe(root, **environment, **VALIDATED, ZE_ENABLE_TRACING_LAYER="1")
    notes = found["ze"]["notes"] if found else []
    return [note for note in notes if re.match(r"[\w ]+ \d+\.\d+\.\d+, API", note)], [n for n in notes if n.startswith("driver of API")]


# ---- vendors' headers ----------------------------------------------------------------------------------------


def absent_names(header, pattern):
    """The names of that pattern which tests/headers checks for, and which the header lacks."""
    asked = re.findall(rf"'({pattern})'", (TREE / "tests/headers/meson.build").read_text())
    text = header.read_text()
    return [name for name in asked if not re.search(rf"\b{name}\b", text)]


def compile_simulators(include):
    """The compiler's errors for the simulated Level Zero drivers and monitors, which declare functions that older headers lack."""
    directory = TREE / "tests/sim"
    includes = [f"-I{directory}", f"-I{TREE / 'core/include'}", "-isystem", str(include)]
    command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-DSIM_ZE_API=0x10011", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *includes]
    sources = (*sorted(directory.glob("sim_ze*.c")), directory / "monitor/sim_zes.c")
    return subprocess.run([*command, *map(str, sources)], capture_output=True, text=True).stderr


def compile_sysman(command, include):
    """The compiler's errors for the declarations of Sysman."""
    absent = "".join(f"extern const not_yet {name};" for name in absent_names(include / "level_zero/zes_api.h", r"zes[A-Z]\w+"))
    source = str(TREE / "tests/headers/zes_headers.cc")
    return subprocess.run([*command, f"-DABSENT_FUNCTIONS={absent}", source], capture_output=True, text=True).stderr


def compile_headers(root, package, source):
    """Check gpuglue's declarations against the headers of that package, with this machine's compiler."""
    include = root / HEADERS.lstrip("/") / package / "usr/include"
    compiler = ["c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-isystem", str(include)]
    command = list(compiler)
    if package == LEVEL_ZERO:
        absent = absent_names(include / "level_zero/ze_api.h", r"ze[A-Z]\w+|ZE_\w+")
        functions = "".join(f"extern const not_yet {name};" for name in absent if name.startswith("ze"))
        others = "".join(f"static const int {name} = declared::{name};" for name in absent if name.startswith("ZE_"))
        command += [f"-DABSENT_FUNCTIONS={functions}", f"-DABSENT_NUMBERS={others}", *([] if absent else ["-DHAVE_NEWER_STRUCTS"])]
    result = subprocess.run([*command, str(TREE / "tests/headers" / source)], capture_output=True, text=True)
    version = version_of(root, package)
    wrong = result.stderr if result.returncode else (compile_simulators(include) or compile_sysman(compiler, include)) if package == LEVEL_ZERO else ""
    if wrong:
        return failed(f"{package} {version}", wrong[-3000:])
    rest = f", without {len(absent)} newer names" if package == LEVEL_ZERO and absent else ""
    return f"ok: {version}{rest}"


# ---- AMD's runtime on a model of its GPU ----------------------------------------------------------------------


def modelled(wheel, tests):
    """Some of the suites that `make test-hip-model` runs whole."""
    command = [sys.executable, str(TREE / "tests/model/hip/run.py"), str(tests.parent), "--wheel", str(wheel), "--few"]
    result = subprocess.run(command, capture_output=True, text=True)
    verdict = last_line(result.stdout)
    return failed(result.stdout[-6000:], result.stderr[-2000:]) if result.returncode or not verdict.startswith(("ok:", "skipped:")) else verdict


# ---- other libraries ------------------------------------------------------------------------------------------


def build_extension(root):
    """Build a stable ABI extension on this machine with the wheel's headers; return "" or the failure."""
    site = root / PLACE.lstrip("/") / "site"
    includes = [f"-I{sysconfig.get_paths()['include']}", f"-I{site / 'gpuglue/include'}"]
    source = TREE / "examples/extensions/zero_c.c"
    command = ["cc", "-std=c11", "-shared", "-fPIC", "-DPy_LIMITED_API=0x030b0000", *includes, str(source)]
    result = subprocess.run([*command, "-o", str(site / "zero_c.abi3.so")], capture_output=True, text=True)
    return failed(result.stderr[-3000:]) if result.returncode else ""


def library_rows(root, packages):
    for package in packages:
        why = build_extension(root)
        row = why or suite(root, (LIBRARIES[package],), GPUGLUE_BACKEND="host")
        yield f"{package} {version_of(root, package)}", row


# ---- one root ---------------------------------------------------------------------------------------------------


def loads_what_was_built(root):
    """Return "" if the root's glibc can load the simulated libraries, else the loader's message."""
    result = python(root, "-c", f"import ctypes; ctypes.CDLL({NEW!r}); ctypes.CDLL('{PLACE}/tests/libgate.so')")
    return "" if result.returncode == 0 else last_line(result.stderr)


def repeated(name, title, same):
    """Why this run would repeat another root's, or "". `same`: the loader is that of the root with the packages of the release alone."""
    suite, release, _ = MATRIX[name]
    if release and title in ("host", "cuda-sim"):
        return f"none: Python and glibc are those of {suite}"
    if release and same and title.startswith(("ze", "leaks")):
        return f"none: Python, glibc and the loader are those of {suite}"
    return ""


def host_run(root, environment):
    """The Python suite on host, of which the older roots run the files that use a device."""
    if root.name == WHOLE:
        return suite(root, ALL, **environment)
    return f"{suite(root, USING_A_DEVICE, **environment)} (files that use a device: {WHOLE} runs all)"


def one_run(root, title, hip, loader):
    files, environment = RUNS[title]
    if title == "host":
        return host_run(root, environment)
    if title.startswith("ze") and not loader:
        return "skipped: libze1 is unavailable"
    if title == "hip-sim":
        version = numbers(hip)[0] if hip else 7
        environment = {**environment, "GPUGLUE_HIP_LIBRARY": f"{SIMS}/hip{version}/libamdhip64.so.{version}"}
        if not (root / environment["GPUGLUE_HIP_LIBRARY"].lstrip("/")).exists():
            return "skipped: it was not built"
    return suite(root, files, **environment)


def runs_of(place, titles):
    """{title: result} of these of the RUNS, each printed when it ends."""
    row = {}
    for title in titles:
        began = time.monotonic()
        row[title] = repeated(place.name, title, place.same_loader) or one_run(place.root, title, place.hip, place.loader)
        say(f"{place.name}: {title}: {row[title]}  ({time.monotonic() - began:.0f} s)")
    return row


def leaks_of(place):
    if not place.loader:
        return {}
    titles = {f"leaks, {title}": environment for title, environment in BALANCES.items()}
    return {title: repeated(place.name, title, place.same_loader) or leaks(place.root, place.loader, environment) for title, environment in titles.items()}


def compiled_of(root):
    """Tests of compiled kernels, on each simulated Level Zero driver."""
    missing = python(root, f"{PLACE}/tests/sim/opencl_missing.py", NEW, GPUGLUE_SIM_OPENCL=OPENCL)
    if missing.returncode or missing.stdout:
        return {"compiled kernels": failed(missing.stdout, missing.stderr)}
    return {f"{title}, compiled kernels": suite(root, COMPILED, **environment, GPUGLUE_SIM_OPENCL=OPENCL) for title, environment in COMPILED_RUNS.items()}


def compilers_of(root, packages, missing):
    """Test HIPRTC and ocloc with real targets, except targets that are newer than the root's compilers."""
    found = {name: next((package for package in its if package in packages), "") for name, its in COMPILERS.items()}
    have = [name for name, package in found.items() if package and package not in missing]
    if not have:
        return "skipped: HIPRTC and ocloc are unavailable"
    older_hip = numbers(version_of(root, found["hiprtc"]) or "9") < (6,)
    older_ocloc = numbers(version_of(root, found["ocloc"]) or "99") < (23,)
    known = {"GPUGLUE_GFX": "gfx90a" if older_hip else "gfx90a,gfx942", "GPUGLUE_INTEL": "tgllp" if older_ocloc else "tgllp,dg2"}
    row = suite(root, ("tests/vendors/test_compilers.py",), GPUGLUE_BACKEND="host", GPUGLUE_COMPILERS=",".join(have), **known)
    return f"{row} ({', '.join(f'{name} {version_of(root, found[name])}' for name in have)})"


def refusal_of(root, hip, why):
    """RCCL's own library on AMD's runtime, which sees no device. `why`: the root cannot load the built libraries."""
    if why or not hip:
        return f"skipped: {why or 'there is no HIP'}"
    version = numbers(hip)[0]
    names = re.findall(r"^(?:FN|TEXT)\(.*\), (nccl\w+), GG_\w+\)$", (TREE / "backends/cuda_hip/comm.def").read_text(), re.M)
    variables = {"GPUGLUE_HIP_LIBRARY": f"{SIMS}/hip{version}/libamdhip64.so.{version}", "GPUGLUE_TEST_HIP": f"libamdhip64.so.{version}"}
    row = suite(root, ("tests/vendors/test_rccl.py",), GPUGLUE_BACKEND="hip", GPUGLUE_TEST_RCCL_NAMES=" ".join(names), **variables)
    return f"{row} (librccl1 {version_of(root, 'librccl1')})"


def facts_of(root, packages, hip, loader, records):
    """The root's row in the last table."""
    result = python(root, "-c", "import platform, sys; print(sys.version.split()[0], platform.libc_ver()[1], sep=', ')")
    record = records.get("hip", {})
    code = re.search(r"\d+, hipError\w+", record.get("reason", ""))
    layers, drivers = layers_of(root, BOTH_NEW) if loader else ([], [])
    mixed = layers_of(root, BOTH)[1] if loader else []
    driver = next((package for package in packages if "intel" in package), "")
    return {
        "Python, glibc": result.stdout.strip(),
        "HIP version, error": f"{record['version']}: {code.group() if code else '?'}" if record else "-",
        "loader": loader or "-",
        "layers": "; ".join(layers) or "none reported",
        "simulated drivers": f"{len(drivers)} of two new ones, {len(mixed)} of an old and a new one" if loader else "-",
        "real driver": f"{driver} {version_of(root, driver) or 'unavailable'}" if driver else "-",
    }


@dataclasses.dataclass
class Place:
    """A root with its packages, the wheel and the tests."""

    name: str
    root: pathlib.Path
    missing: list  # packages
    hip: str  # version, or ""
    loader: str
    why: str  # it cannot load the built libraries, or ""
    same_loader: bool = False  # as the root with the packages of the release alone

    @property
    def packages(self):
        return MATRIX[self.name][2]


def prepare(name, wheel, tests):
    _, release, packages = MATRIX[name]
    root, missing = dress(name, packages, DEVELOPMENT, release)
    fill(root, wheel, tests)
    hip = next((version_of(root, package) for package in packages if "hip" in package), "")
    return Place(name, root, missing, hip, version_of(root, "libze1"), loads_what_was_built(root))


# The jobs in a root. Each returns {title: result}, and the first also the root's facts.


def probes_and_headers(place):
    row = {f"package {package}": "skipped: unavailable" for package in place.missing}
    probes, records = check_probes(place.root, place.hip, place.loader)
    row |= {f"probe: {title}": text for title, text in probes.items()}
    for package, source in (LEVEL_ZERO, "ze_headers.cc"), (HIP_HEADERS, "hip_headers.cc"):
        if package not in place.missing:
            row[f"headers: {package}"] = compile_headers(place.root, package, source)
    if place.why:
        row["suites"] = f"skipped: the root cannot load the built libraries: {place.why}"
    row["facts"] = facts_of(place.root, place.packages, place.hip, place.loader, records)
    return row


def on_host(place):
    return {} if place.why else runs_of(place, ["host"])


def on_devices(place):
    return {} if place.why else runs_of(place, [title for title in RUNS if title != "host"]) | leaks_of(place)


def with_compilers(place):
    row, missing = {}, place.missing
    if POCL[0] in place.packages and not set(POCL) & set(missing) and place.loader and not place.why:
        row |= compiled_of(place.root)
    row["compilers"] = compilers_of(place.root, place.packages, missing)
    say(f"{place.name}: compilers: {row['compilers']}")
    if place.name == CAPTURED and "intel-opencl-icd" not in missing and place.loader:
        row["Intel's driver, captured"] = suite(place.root, ("tests/vendors/test_intel_capture.py",), GPUGLUE_BACKEND="ze")
    if "librccl1" in place.packages:
        row["RCCL without a GPU"] = refusal_of(place.root, place.hip, place.why) if "librccl1" not in missing else "skipped: librccl1 is unavailable"
    return row | dict(library_rows(place.root, [package for package in place.packages if package in LIBRARIES and package not in missing]))


def on_model(place, wheel, tests):
    verdict = modelled(wheel, tests)
    say(f"{place.name}: AMD's runtime on a model: {verdict}")
    return {"AMD's runtime on a model": verdict}


# ---- all of them ------------------------------------------------------------------------------------------------


def attempt(function, *arguments):
    """Return (the function's result, None), or (None, the reason of Unavailable)."""
    try:
        return function(*arguments), None
    except Unavailable as reason:
        return None, str(reason)


def prepare_all(pool, names, wheel, tests):
    """{root: the future of (its Place, None), or of (None, the reason why it is unavailable)}"""
    suites = {}
    for name in names:
        suites.setdefault(MATRIX[name][0], []).append(name)
    bare = {codename: pool.submit(attempt, make_bare, codename, its) for codename, its in suites.items()}

    def prepare_one(name):
        lost = bare[MATRIX[name][0]].result()[1]
        return (None, lost) if lost else attempt(prepare, name, wheel, tests)

    # Those whose host run is long first.
    return {name: pool.submit(prepare_one, name) for name in sorted(names, key=lambda name: (bool(MATRIX[name][1]), name == CAPTURED))}


def run_job(job, name, ready, *arguments):
    place, lost = ready[name].result()
    if lost:
        return lost
    base = ready.get(MATRIX[name][0]) if MATRIX[name][1] else None
    place.same_loader = bool(base and base.result()[0] and base.result()[0].loader == place.loader)
    began = time.monotonic()
    row, lost = attempt(job, place, *arguments)
    say(f"{name}: {job.__name__} done in {time.monotonic() - began:.0f} s")
    return row if lost is None else lost


def run_all(names, wheel, tests):
    """Return {root: (facts, row), or the reason why the root is unavailable}."""
    with concurrent.futures.ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
        ready = prepare_all(pool, names, wheel, tests)
        # No job waits long for a root: all roots were begun before. The order in which the results are printed is another.
        order = [*((on_model, name, wheel, tests) for name in names if name == MODELLED),
                 *((job, name) for job in (on_host, on_devices, with_compilers, probes_and_headers) for name in ready)]
        running = {(job, name): pool.submit(run_job, job, name, ready, *rest) for job, name, *rest in order}
        results = {name: [running[job, name].result() for job in JOBS if (job, name) in running] for name in names}
    return {name: joined(rows) for name, rows in results.items()}


JOBS = (probes_and_headers, on_host, on_devices, with_compilers, on_model)


def joined(rows):
    """(the facts, all results) of a root's jobs, or the reason why it is unavailable."""
    lost = next((row for row in rows if isinstance(row, str)), None)
    row = {} if lost else {title: result for part in rows for title, result in part.items()}
    return lost or (row.pop("facts"), row)


def print_row(name, row):
    print(f"\n== {name}")
    for title, value in row.items():
        print(f"   {title:30} {value}")


def print_table(results):
    """One line per root: its packages and results."""
    titles = ["root", "Python, glibc", "HIP version, error", "loader", "layers", "simulated drivers", "real driver", "result"]
    print("\n== the roots\n" + " | ".join(titles))
    for name, result in results.items():
        if isinstance(result, str):
            print(f"{name} | skipped: {result}")
            continue
        facts, row = result
        verdicts = [value.split(":")[0] for value in row.values()]
        counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
        print(" | ".join([name, *(facts[title] for title in titles[1:-1]), counts]))


def main(wheel, tests, *names):
    unknown = [name for name in names if name not in MATRIX]
    if unknown or os.geteuid():
        say(f"unknown root {unknown[0]}; the roots are {', '.join(MATRIX)}" if unknown else "this needs the root user: sudo make test-vendors")
        return 2
    try:
        need_tools()
    except Unavailable as reason:
        say(f"skipped: {reason}")
        return 0
    began = time.monotonic()
    results = run_all(names or tuple(MATRIX), pathlib.Path(wheel), pathlib.Path(tests))
    rows = {name: result[1] for name, result in results.items() if not isinstance(result, str)}
    for name, row in rows.items():
        print_row(name, row)
    print_table(results)
    say(f"{time.monotonic() - began:.0f} s in all")
    return 1 if any(value.startswith("FAILED") for row in rows.values() for value in row.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
