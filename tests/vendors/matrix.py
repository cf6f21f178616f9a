"""The wheel in several Debian roots, each with its own glibc, Python and vendors' libraries: `make test-vendors`.

    matrix.py WHEEL TESTS [ROOT…]

TESTS is the folder that the build of the tests filled; the roots are made in GPUGLUE_ROOTS (build/roots) and
kept. A root or package that cannot be had is named and skipped; a test that fails, fails. Needs root, debootstrap
and Debian's archive (GPUGLUE_MIRROR)."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
ROOTS = pathlib.Path(os.environ.get("GPUGLUE_ROOTS") or TREE / "build" / "roots")
MIRROR = os.environ.get("GPUGLUE_MIRROR", "http://deb.debian.org/debian")
PLACE = "/srv/gpuglue"  # in a root

BASE = ("python3", "python3-numpy", "python3-pytest", "python3-hypothesis", "ca-certificates")
# root: its suite, what is installed besides BASE if it can be had
MATRIX = {
    "bookworm": ("bookworm", ("libze1", "intel-opencl-icd", "libamdhip64-5")),
    "trixie": ("trixie", ("libze1", "libze-intel-gpu1", "libamdhip64-5")),
    "forky": ("forky", ("libze1", "libze-intel-gpu1", "libamdhip64-6")),
    "experimental": ("forky", ("libze1", "libze-intel-gpu1", "libamdhip64-7")),
}
OLD, NEW = f"{PLACE}/tests/sim/ze_old/libze_sim_old.so.1", f"{PLACE}/tests/sim/ze_new/libze_sim_new.so.1"
VALIDATED = {"ZE_ENABLE_VALIDATION_LAYER": "1", "ZE_ENABLE_PARAMETER_VALIDATION": "1"}
# The Python suite behind the root's real loader.
RUNS = {
    "host": {"GPUGLUE_BACKEND": "host"},
    "ze old": {"ZE_ENABLE_ALT_DRIVERS": OLD},
    "ze new": {"ZE_ENABLE_ALT_DRIVERS": NEW},
    "intercepted": {"ZE_ENABLE_ALT_DRIVERS": NEW, "ZE_ENABLE_LOADER_INTERCEPT": "1"},
    "two drivers": {"ZE_ENABLE_ALT_DRIVERS": f"{OLD},{NEW}", "GPUGLUE_SIM_DEVICES": "1"},
    "validated": {"ZE_ENABLE_ALT_DRIVERS": NEW, **VALIDATED},
}


class Unavailable(Exception):
    pass


def say(*words):
    print("vendors:", *words, flush=True)


# ---- roots -------------------------------------------------------------------------------------------------


def in_root(root, *command, environment=None, **options):
    variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", **(environment or {})}
    options = {"capture_output": True, "text": True, "errors": "replace", **options}
    return subprocess.run(["chroot", root, *command], env=variables, **options)


def make_root(name, suite):
    root = ROOTS / name
    if (root / "usr/bin/apt-get").exists():
        return root
    if not shutil.which("debootstrap"):
        raise Unavailable("debootstrap is not installed")
    scripts = pathlib.Path("/usr/share/debootstrap/scripts")
    options = [] if (scripts / suite).exists() else [str(scripts / "sid")]
    ROOTS.mkdir(parents=True, exist_ok=True)
    say(f"debootstrap {suite} into {root}")
    command = ["debootstrap", "--variant=minbase", suite, str(root), MIRROR, *options]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise Unavailable(f"debootstrap {suite} failed: {result.stdout.strip().splitlines()[-1:]}")
    return root


def apt(root, *words):
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    return in_root(root, "apt-get", "-qq", "-o", "Acquire::Check-Valid-Until=false", *words, environment=environment)


def install(name, root, packages):
    """What could not be installed."""
    if name == "experimental":
        source = f"deb {MIRROR} experimental main\n"
        (root / "etc/apt/sources.list.d/experimental.list").write_text(source)
    if apt(root, "update").returncode:
        raise Unavailable("apt-get update failed")
    result = apt(root, "install", "-y", "--no-install-recommends", *BASE)
    if result.returncode:
        raise Unavailable(f"Python and its packages: {result.stderr.strip()[-200:]}")
    extra = ("-t", "experimental") if name == "experimental" else ()
    return [p for p in packages if apt(root, "install", "-y", "--no-install-recommends", *extra, p).returncode]


def fill(root, wheel, tests):
    place = root / PLACE.lstrip("/")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.unpack_archive(wheel, place / "site", "zip")
    shutil.copytree(TREE / "tests/python", place / "tests/python")
    shutil.copytree(HERE, place / "tests/vendors")
    for file in sorted((*tests.glob("*.so"), *tests.glob("sim/**/*.so*"))):
        if file.is_file():
            to = place / "tests" / file.relative_to(tests)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, to)
    if not (root / "proc/self").exists():
        subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=False)
    if not (root / "dev/null").exists():
        subprocess.run(["mount", "--bind", "/dev", root / "dev"], check=False)


def let_go(root):
    for folder in ("proc", "dev"):
        if os.path.ismount(root / folder):
            subprocess.run(["umount", "-l", root / folder], check=False)


# ---- what is run in one ------------------------------------------------------------------------------------


def python(root, *arguments, **environment):
    variables = {"PYTHONPATH": f"{PLACE}/site", "GPUGLUE_TEST_LIBRARIES": f"{PLACE}/tests", **environment}
    return in_root(root, "python3", *arguments, environment=variables, timeout=900)


def suite(root, folder, **environment):
    environment = {"GPUGLUE_BACKEND": "ze", **environment}
    environment["GPUGLUE_REQUIRE"] = environment["GPUGLUE_BACKEND"]
    result = python(root, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{PLACE}/{folder}", **environment)
    last = ([line for line in result.stdout.splitlines() if " passed" in line or " failed" in line] or ["no result"])[-1]
    if result.returncode:
        print(result.stdout[-6000:], result.stderr[-2000:], sep="\n")
    return ("ok " if not result.returncode else "FAILED ") + re.sub(r" in .*", "", last.strip("= "))


def leaks(root):
    """Loader 1.20 and newer count what is created and destroyed, if asked."""
    environment = {"ZE_ENABLE_VALIDATION_LAYER": "1", "ZEL_ENABLE_BASIC_LEAK_CHECKER": "1", "ZE_ENABLE_ALT_DRIVERS": NEW}
    result = python(root, f"{PLACE}/tests/vendors/every_operation.py", GPUGLUE_BACKEND="ze", **environment)
    text = result.stdout + result.stderr
    counts = re.findall(r"LEAK = (\d+)", text)
    if "---> " not in text and not counts and "zeContextCreate" not in text:
        return "ok none in this loader" if result.returncode == 0 else "FAILED " + text[-200:]
    lost = [int(count) for count in counts if int(count)]
    return f"ok balanced, {text.count('zeContextCreate')} tables" if not lost and not result.returncode else "FAILED\n" + text


def answers(root):
    """What the probe says of each real vendor library: GPUGLUE_HIP_LIBRARY and others are not set."""
    code = (
        "import gpuglue as gg, platform, sys\n"
        "print(sys.version.split()[0], platform.libc_ver()[1])\n"
        "for b in gg.backends(probe='active'): print(b.name, b.status, '|', b.reason, '|', b.library or '', b.version or '')"
    )
    result = python(root, "-c", code)
    if result.returncode:
        return ["?", result.stderr[-500:]], False
    lines = result.stdout.splitlines()
    states = dict(line.split()[:2] for line in lines[1:])
    right = states.get("host") == "available" and states.get("ze") in ("no-device", "permission-denied", "library-not-found")
    return lines, right


def package_version(root, package):
    return in_root(root, "dpkg-query", "-W", "-f=${Version}", package).stdout.strip() or "-"


def run_root(name, wheel, tests):
    codename, packages = MATRIX[name]
    root = make_root(name, codename)
    missing = install(name, root, packages)
    for package in missing:
        say(f"{name}: skipped: package {package} cannot be had")
    try:
        fill(root, wheel, tests)
        lines, right = answers(root)
        print(*lines, sep="\n")
        row = {"root": name, "Python, glibc": lines[0], "probe": "ok" if right else "FAILED"}
        row |= {package: package_version(root, package) for package in packages}
        runs = {title: run for title, run in RUNS.items() if title == "host" or "libze1" not in missing}
        for title, environment in runs.items():
            row[title] = suite(root, "tests/python", **environment)
            say(f"{name}: {title}: {row[title]}")
        if "libze1" not in missing:
            row["leaks"] = leaks(root)
        if name == "bookworm":
            row["Intel 22.43, captured"] = suite(root, "tests/vendors")
    finally:
        let_go(root)
    return row


def print_row(row):
    print(f"\n== {row['root']}")
    for title, value in row.items():
        if title != "root":
            print(f"   {title:24} {value}")


def main(wheel, tests, *names):
    if os.geteuid():
        say("skipped: making roots needs to be root")
        return 0
    rows, failed = [], False
    for name in names or MATRIX:
        try:
            rows.append(run_root(name, pathlib.Path(wheel), pathlib.Path(tests)))
        except Unavailable as reason:
            rows.append({"root": name, "skipped": str(reason)})
    for row in rows:
        print_row(row)
        failed = failed or any(str(value).startswith("FAILED") for value in row.values())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
