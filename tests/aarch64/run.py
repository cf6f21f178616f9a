"""The wheel for AArch64, cross-built, and the tests on it in emulation: `make test-aarch64`.

    run.py BUILD OUT [--nvidia-include DIRS] [--wheel-only] [--runs WORDS] [--jobs N] [FILE…]

BUILD is the directory of the cross build, OUT that of the finished wheel. FILE: the files of tests/python that run.
- It installs the cross compiler and qemu, if they are missing (as root; else it prints the command).
- It unpacks Python 3.11 and its libraries for arm64 in build/roots/aarch64, with package lists of their own: this machine's
  dpkg does not change.
- It builds the wheel with Python's stable ABI, and checks it as `make wheel` does.
- It runs the units of the core, the conformance program on host and on the simulated CUDA driver, and the Python files on both.

The kernel starts qemu for each program for arm64, also for those that tests start. If the machine has no such rule of
binfmt_misc, one is registered in a new user namespace (Linux 6.7 or newer): other programs of the machine do not see it.

qemu on x86 has the memory order and the page size of x86, and no GPU: these tests do not show what depends on them."""

import argparse
import collections
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time
import zipfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "scripts"))

import suites  # noqa: E402

ROOT = pathlib.Path(os.environ.get("GPUGLUE_ROOTS") or TREE / "build/roots") / "aarch64"
PYTHON = ROOT / "usr/bin/python3.11"
SITE = ROOT / "usr/lib/python3/dist-packages"  # that Python's own directory for packages
INSTALLED = ROOT / "wheel"  # the contents of the wheel
DONE = ROOT / "unpacked.txt"  # the packages of the root; without this file the root is created again
TOOLS = {"aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu", "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
         "qemu-aarch64-static": "qemu-user-static", "unshare": "util-linux", "pkg-config": "pkg-config"}  # fmt: skip
PACKAGES = ("python3.11", "libpython3.11-dev", "libcmocka-dev", "libstdc++6")
MACHINES = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
LIMIT = 900  # seconds for one test of the C programs

# ELF, 64 bits, little-endian, executable or shared, AArch64; the flags and the ABI's version may have any value.
MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
# F: the interpreter is opened now, and so is found in any namespace of mounts.
REGISTER = ("mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc && "
            f"printf '%s' ':gpuglue-aarch64:M::{MAGIC}:{MASK}:'\"$0\":F > /proc/sys/fs/binfmt_misc/register && exec \"$@\"")  # fmt: skip
CROSS = """[binaries]
c = {c}
cpp = {cpp}
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
python = '{python}'
pkg-config = 'pkg-config'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
[built-in options]
c_args = ['--sysroot={root}']
cpp_args = ['--sysroot={root}']
c_link_args = ['--sysroot={root}']
cpp_link_args = ['--sysroot={root}']
[properties]
pkg_config_libdir = '{root}/usr/lib/aarch64-linux-gnu/pkgconfig'
sys_root = '{root}'
"""

# Tests that fail for a reason that is not gpuglue's. If one of them passes, that is a failure too: remove it from the list.
KNOWN_FAILURES = {"test_a_failure_that_a_query_or_a_device_wide_wait_found_is_raised_once": "qemu ignores limits of the address space"}
# The same in a namespace, which has no user but root.
KNOWN_IN_NAMESPACE = dict.fromkeys(
    ("variables_are_ignored_in_a_set_user_id_process", "an_unreadable_file_is_reported_with_its_mode"),
    "the namespace in which the rule for qemu is registered has no second user")


class Unavailable(Exception):
    """What is missing, and the command that installs it."""


def say(*words):
    print("aarch64:", *words, flush=True)


def last_line(text):
    return (text.strip().splitlines() or ["no message"])[-1]


def must(*command, **options):
    """Run a command; raise Unavailable with the end of its output if it fails."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", **options)
    if result.returncode:
        end = "\n".join((result.stdout + result.stderr).strip().splitlines()[-4:])
        raise Unavailable(f"`{' '.join(map(str, command))}` failed:\n{end}")
    return result.stdout


# ---- what it needs ----------------------------------------------------------------------------------------


def need_tools():
    missing = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    if not missing:
        return
    install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)
    if os.geteuid() or not shutil.which("apt-get"):
        raise Unavailable(f"these packages are missing: sudo apt-get install {' '.join(missing)}")
    say("installing", *missing)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    must("apt-get", "update", "-qq", env=environment)
    must(*install, env=environment)


def apt(state, *words):
    own = {"Dir::State": state / "state", "Dir::State::status": state / "status", "Dir::Cache": state / "cache",
           "APT::Architecture": "arm64", "APT::Architectures": "arm64", "Acquire::Languages": "none",
           "APT::Sandbox::User": "root", "Acquire::Check-Valid-Until": "false", "Acquire::Retries": "3"}  # fmt: skip
    options = [word for name, value in own.items() for word in ("-o", f"{name}={value}")]
    return must("apt-get", *options, "-qq", *words)


def unpack_root():
    """Python for arm64 and its libraries, by apt with lists of its own, and NumPy and pytest, by pip."""
    requirements = TREE / "scripts/requirements-run.txt"
    wanted = "\n".join((*PACKAGES, *MACHINES, requirements.read_text()))
    if DONE.exists() and DONE.read_text() == wanted:
        return
    shutil.rmtree(ROOT, ignore_errors=True)
    state = ROOT / "apt"
    for directory in "state/lists/partial", "cache/archives/partial":
        (state / directory).mkdir(parents=True)
    (state / "status").touch()
    say("downloading", *PACKAGES, "for arm64")
    apt(state, "update")
    apt(state, "-y", "--no-install-recommends", "--download-only", "install", *PACKAGES)
    for package in sorted((state / "cache/archives").glob("*.deb")):
        must("dpkg-deb", "-x", package, ROOT)
    shutil.rmtree(state)
    platforms = [f"--platform={machine}" for machine in MACHINES]
    must(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", SITE, *platforms,
         "--python-version=3.11", "--only-binary=:all:", "-r", requirements)  # fmt: skip
    DONE.write_text(wanted)


# ---- emulation ---------------------------------------------------------------------------------------------


def rule():
    """What stands before a command so that programs for arm64 run."""
    qemu = shutil.which("qemu-aarch64-static")
    return ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", REGISTER, qemu)


def emulated(*command, before=(), **variables):
    """Run a command where programs for arm64 run, without variables of the caller that change gpuglue or Python."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUGLUE_", "PYTHON"))}
    environment = {**kept, "QEMU_LD_PREFIX": str(ROOT), **variables}
    line = [str(word) for word in (*before, *command)]
    return subprocess.run(line, env=environment, capture_output=True, text=True, errors="replace", cwd=TREE)


def need_emulation():
    """The rule of this machine, else one in a namespace; what stands before each command."""
    code = "import platform, numpy; print('Python', platform.python_version(), 'NumPy', numpy.__version__, platform.machine())"
    for before in (), rule():
        try:
            result = emulated(PYTHON, "-c", code, before=before)
        except OSError:  # this machine has no rule
            continue
        if result.returncode == 0:
            say(result.stdout.strip(), "in a namespace" if before else "by this machine's rule")
            return before
    raise Unavailable(f"programs for arm64 do not run: {last_line(result.stdout + result.stderr)}; needs a rule of binfmt_misc for "
                      f"qemu-aarch64, or user namespaces and Linux 6.7 (this is {platform.release()})")  # fmt: skip


# ---- the wheel ---------------------------------------------------------------------------------------------


def write_cross(path):
    cache = ["ccache"] if shutil.which("ccache") else []
    compilers = {"c": [*cache, "aarch64-linux-gnu-gcc"], "cpp": [*cache, "aarch64-linux-gnu-g++"]}
    path.write_text(CROSS.format(root=ROOT, python=PYTHON, **compilers))


def build(before, directory, out, nvidia_include, jobs):
    """Build the wheel and the tests in a directory; return the checked wheel."""
    raw = directory.with_name(directory.name + "-wheel")
    shutil.rmtree(raw, ignore_errors=True)
    raw.mkdir(parents=True)
    cross = raw / "cross.ini"
    write_cross(cross)
    setup = (f"--cross-file={cross}", "-Dtests=true", "-Dwerror=true", f"-Dnvidia_include={nvidia_include}", "-Dhip_include=")
    options = [f"-Csetup-args={word}" for word in setup]
    made = emulated(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", raw, f"-Cbuild-dir={directory}", *options,
                    "-Ccompile-args=for-check", f"-Ccompile-args=-j{jobs}", TREE,
                    before=before, PYTHONNOUSERSITE="1", _PYTHON_HOST_PLATFORM="linux-aarch64")  # fmt: skip
    if made.returncode:
        sys.exit(f"{made.stdout}{made.stderr}aarch64: the build failed")
    for old in out.glob("*_aarch64.whl"):
        old.unlink()
    checked = subprocess.run([sys.executable, TREE / "tests/wheel/check_wheel.py", "--retag", out, *raw.glob("*.whl")])
    if checked.returncode:
        sys.exit("aarch64: check_wheel.py refuses the wheel")
    (wheel,) = out.glob("*_aarch64.whl")
    shutil.rmtree(INSTALLED, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(INSTALLED)
    return wheel


# ---- the tests ---------------------------------------------------------------------------------------------


def backends(tests):
    """The environment of each backend."""
    simulated = tests / "sim/cuda/libcuda.so.1"
    yield "host", {"GPUGLUE_BACKEND": "host", "GPUGLUE_REQUIRE": "host"}
    if simulated.exists():
        monitor = {"GPUGLUE_SIM_MONITOR": "1", "GPUGLUE_NVML_LIBRARY": str(tests / "sim/monitor/libnvidia-ml.so.1")}
        yield "cuda-sim", {"GPUGLUE_BACKEND": "cuda", "GPUGLUE_REQUIRE": "cuda", "GPUGLUE_CUDA_LIBRARY": str(simulated), **monitor}
    else:
        say("no cuda-sim: it is built with NVIDIA's headers, see --nvidia-include")


def plan(directory, files, jobs):
    """(run, command, what it writes, variables) of each part."""
    tests, limits = directory / "tests", ("--timeout", str(LIMIT), "-j", str(jobs))
    yield "core", [tests / "core_units", tests / "core/plugins", *limits], directory / "core.txt", {}
    for name, variables in backends(tests):
        yield name, [tests / "conformance", variables["GPUGLUE_BACKEND"], *limits], directory / f"conformance-{name}.txt", variables
    for name, variables in backends(tests):
        report = directory / f"python-{name}.xml"
        # Kernels for host are compiled by the cross compiler, which itself is not emulated.
        own = {"GPUGLUE_TEST_LIBRARIES": str(tests), "GPUGLUE_CXX": "aarch64-linux-gnu-g++", "PYTHONPATH": str(INSTALLED)}
        command = [PYTHON, "-P", "-m", "pytest", "-q", "-n", str(jobs), "--dist", "worksteal",
                   "--tb=short", f"--junit-xml={report}", *files]  # fmt: skip
        yield name, command, report, {**variables, **own}


def run_part(before, command, path, variables):
    """Run it; return its results, as suites.py reads them, and its output."""
    path.unlink(missing_ok=True)
    result = emulated(*command, before=before, **variables)
    text = result.stdout + result.stderr
    path.with_suffix(".txt").write_text(text)
    tests = list(suites.results(path)) if path.exists() else []
    if result.returncode not in (0, 77) and not any(verdict == "failed" for _, verdict, _, _ in tests):
        tests.append((path.stem, "failed", "the process", f"ended with {result.returncode}: {last_line(text)}"))
    return tests, text


def judged(verdict, test, reason, before):
    """A known failure is a skipped test; a test that is known to fail and passes is a failure."""
    known = {**KNOWN_FAILURES, **(KNOWN_IN_NAMESPACE if before else {})}
    test = test.partition("[")[0]  # without its parameters
    if test in known and verdict != "skipped":
        return ("skipped", known[test]) if verdict == "failed" else ("failed", "passes, but is in KNOWN_FAILURES")
    return verdict, suites.shorten(reason)


def run_tests(before, directory, files, words, jobs):
    """{run: {suite: {verdict: {test: reason}}}}, as suites.py prints them, of the parts whose file has one of the words."""
    found = {}
    for run, command, path, variables in plan(directory, files, jobs):
        if words and not any(word in path.name for word in words):
            continue
        began = time.monotonic()
        tests, text = run_part(before, command, path, variables)
        counts = collections.Counter()
        for suite, verdict, test, reason in tests:
            verdict, reason = judged(verdict, test, reason, before)
            found.setdefault(run, {}).setdefault(suite, collections.defaultdict(dict))[verdict][test] = reason
            counts[verdict] += 1
        numbers = (f"{counts[verdict]} {verdict}" for verdict in ("passed", "failed", "skipped"))
        say(f"{path.stem}:", ", ".join(numbers), f"({time.monotonic() - began:.0f} s)")
        if counts["failed"]:
            print(text[-6000:], flush=True)
    return found


def parsed(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--nvidia-include", default="")
    parser.add_argument("--wheel-only", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--runs", default="", help="parts whose name has one of these words: core, conformance-host, python, …")
    parser.add_argument("files", nargs="*")
    return parser.parse_intermixed_args(arguments)  # files may follow the options


def main():
    options = parsed(sys.argv[1:])
    try:
        need_tools()
        unpack_root()
        before = need_emulation()
    except Unavailable as reason:
        sys.exit(f"aarch64: {reason}")
    directory = options.build.resolve()
    wheel = build(before, directory, options.out.resolve(), options.nvidia_include, options.jobs)
    say("built", wheel.name)
    if options.wheel_only:
        return 0
    found = run_tests(before, directory, options.files, options.runs.split(), options.jobs)
    suites.print_table(found)
    suites.print_reasons(found)
    failed = suites.print_failures(found)
    passed = {run: suites.count(tests, tests)["passed"] for run, tests in found.items()}
    return int(failed or not passed or not all(passed.values()))


if __name__ == "__main__":
    sys.exit(main())
