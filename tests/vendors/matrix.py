"""The wheel in several Debian roots, each with its own glibc, Python and vendors' libraries: `make test-vendors`.

    matrix.py WHEEL TESTS [ROOT…]

TESTS is the folder that the build of the tests filled. A root or package that cannot be had is named and skipped;
a test that fails, fails. In each root: import; `python -m gpuglue` on each real vendor library, with the reason that
is right where there is no device; the vendors' headers of that release against our declarations; the Python suite on
host and on each simulated Level Zero driver behind the root's real loader, all of it; and the files of it that work
on a device (FEW) once more behind each of the loader's layers, with two drivers at once, and on the simulated CUDA and HIP;
AMD's and Intel's compilers, which need no device; the balance that the loader's leak checker draws; in bookworm
Intel's own driver, in its capture mode; in trixie torch on host.

Needs root and Debian's archive. Two roots at a time, as many as there are processors."""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import time

from roots import HEADERS, PLACE, TREE, Unavailable, dress, fill, in_root, last_line, make_bare, need_tools, say, version_of

LEVEL_ZERO, HIP_HEADERS = "libze-dev", "libamdhip64-dev"
OCLOC = ("intel-ocloc", "libigc2", "libigdfcl2")
# root: its suite, the release that its last packages are from, and what is installed besides Python
MATRIX = {
    "bookworm": ("bookworm", "", ("libze1", "intel-opencl-icd", "libamdhip64-5", "libhiprtc-builtins5")),
    "trixie": ("trixie", "", ("libze1", "libze-intel-gpu1", "libamdhip64-5", "libhiprtc-builtins5", "python3-torch", *OCLOC)),
    "forky": ("forky", "", ("libze1", "libze-intel-gpu1", "libamdhip64-6", "libhiprtc6", "libhiprtc-builtins6", *OCLOC)),
    "experimental": ("forky", "experimental", ("libze1", "libze-intel-gpu1", "libamdhip64-7", "libhiprtc7", "libhiprtc-builtins7", *OCLOC)),
}
# Which packages a compiler is in; the first that a root is given counts.
COMPILERS = {"hiprtc": ("libhiprtc7", "libhiprtc6", "libamdhip64-5"), "ocloc": ("intel-ocloc", "intel-opencl-icd")}
CAPTURED = "bookworm"  # whose Intel driver can run without its hardware
LIBRARIES = {"python3-torch": "tests/libraries/test_torch.py"}  # package: its tests, on host

SIMS = f"{PLACE}/tests/sim"
OLD, NEW = f"{SIMS}/ze_old/libze_sim_old.so.1", f"{SIMS}/ze_new/libze_sim_new.so.1"
BEHIND_OLD, BEHIND_NEW = ({"GPUGLUE_BACKEND": "ze", "ZE_ENABLE_ALT_DRIVERS": driver} for driver in (OLD, NEW))
BOTH = {"GPUGLUE_BACKEND": "ze", "ZE_ENABLE_ALT_DRIVERS": f"{OLD},{NEW}", "GPUGLUE_SIM_DEVICES": "1"}
# A loader that starts drivers the new way leaves out what is too old for it, so two new ones, too.
SECOND = f"{SIMS}/second/libze_sim_new.so.1"
BOTH_NEW = {**BOTH, "ZE_ENABLE_ALT_DRIVERS": f"{NEW},{SECOND}"}
INTERCEPTED = {"ZE_ENABLE_LOADER_INTERCEPT": "1"}
VALIDATED = {"ZE_ENABLE_VALIDATION_LAYER": "1", "ZE_ENABLE_PARAMETER_VALIDATION": "1"}
LEAKS = {"ZE_ENABLE_VALIDATION_LAYER": "1", "ZEL_ENABLE_BASIC_LEAK_CHECKER": "1"}

ALL = ("tests/python",)
FEW = tuple(
    f"tests/python/test_{name}.py"
    for name in ("device", "current", "memory", "copy", "async_copies", "stream", "event", "array", "errors", "closed", "close_races", "life")
)
RUNS = {
    "host": (ALL, {"GPUGLUE_BACKEND": "host"}),
    "ze old": (ALL, BEHIND_OLD),
    "ze new": (ALL, BEHIND_NEW),
    "ze old, intercepted": (FEW, {**BEHIND_OLD, **INTERCEPTED}),
    "ze new, intercepted": (FEW, {**BEHIND_NEW, **INTERCEPTED}),
    "ze, old and new driver": (FEW, BOTH),
    "ze, two new drivers": (FEW, BOTH_NEW),
    "ze old, parameters validated": (FEW, {**BEHIND_OLD, **VALIDATED}),
    "ze new, parameters validated": (FEW, {**BEHIND_NEW, **VALIDATED}),
    "cuda-sim": (FEW, {"GPUGLUE_BACKEND": "cuda", "GPUGLUE_CUDA_LIBRARY": f"{SIMS}/cuda/libcuda.so.1"}),
    "hip-sim": (FEW, {"GPUGLUE_BACKEND": "hip"}),  # of the root's own HIP version
}
BALANCES = {
    "ze old": BEHIND_OLD,
    "ze new": BEHIND_NEW,
    "ze new, intercepted": {**BEHIND_NEW, **INTERCEPTED},
    "ze, two new drivers": BOTH_NEW,
}
LEAK_CHECKER_SINCE = (1, 32)  # of the loader; older ones may have it


def numbers(version):
    """(1, 8, 12) of "1.8.12-1"."""
    return tuple(int(part) for part in re.findall(r"\d+", version.split("-")[0]))[:3]


# ---- what is run in one ------------------------------------------------------------------------------------


def python(root, *arguments, **environment):
    variables = {"PYTHONPATH": f"{PLACE}/site", "GPUGLUE_TEST_LIBRARIES": f"{PLACE}/tests", **environment}
    return in_root(root, "python3", *arguments, environment=variables)


def failed(*text):
    return "FAILED: " + "\n".join(part.strip() for part in text if part.strip())


def suite(root, files, **environment):
    environment["GPUGLUE_REQUIRE"] = environment["GPUGLUE_BACKEND"]
    result = python(root, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"{PLACE}/{file}" for file in files), **environment)
    if result.returncode:
        return failed(result.stdout[-6000:], result.stderr[-2000:])
    last = [line for line in result.stdout.splitlines() if " passed" in line][-1]
    return "ok: " + re.sub(r" in .*", "", last.strip("= "))


def leaks(root, loader, environment):
    """Every operation once, and what the loader then counts as created and not destroyed."""
    result = python(root, f"{PLACE}/tests/vendors/every_operation.py", **environment, **LEAKS)
    text = result.stdout + result.stderr
    counts = [int(count) for count in re.findall(r"LEAK\s*=\s*(\d+)", text)]
    counted = "zeContextCreate" in text
    if result.returncode or any(counts) or (not counted and numbers(loader) >= LEAK_CHECKER_SINCE):
        return failed(text[-3000:])
    return f"ok: balanced ({len(set(re.findall(r'ze[A-Z][A-Za-z]+', text)))} functions counted)" if counted else "none: this loader has no leak checker"


# ---- the probe on real vendor libraries ---------------------------------------------------------------------


def probe(root, **environment):
    """{backend: its record}, {} where the program failed; and what it printed."""
    result = python(root, "-m", "gpuglue", "--json", **environment)
    text = python(root, "-m", "gpuglue", **environment).stdout
    if result.returncode or not text:
        return {}, result.stderr + result.stdout
    records = {record["name"]: record for record in json.loads(result.stdout)["backends"]}
    lost = [name for name, record in records.items() if record["reason"] not in text]
    return ({} if lost else records), text


def expected(hip, loader):
    """Title: (environment, backend, status, words of its reason), for the real libraries in the root."""
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


def check_answers(root, hip, loader):
    """Title: "ok: status, reason", or what is wrong with it; and the records of the last with that backend."""
    told, records = {}, {}
    for title, (environment, name, status, words) in expected(hip, loader).items():
        found, text = probe(root, **environment)
        record = found.get(name, {"status": "?", "reason": text})
        right = record["status"] == status and all(word in record["reason"] for word in words)
        if title == "hip":
            right = right and numbers(record["version"])[:2] == numbers(hip)[:2]
        told[title] = f"ok: {record['status']}" if right else failed(f"{record['status']}: {record['reason']}")
        told[title] += f": {record['reason']}" if right and record["reason"] else ""
        records[title] = record
    return told, records


def layers_of(root, environment):
    """What the loader says of itself and its layers, and the drivers behind it."""
    found, _ = probe(root, **environment, **VALIDATED, ZE_ENABLE_TRACING_LAYER="1")
    notes = found["ze"]["notes"] if found else []
    return [note for note in notes if re.match(r"[\w ]+ \d+\.\d+\.\d+, API", note)], [n for n in notes if n.startswith("driver of API")]


# ---- vendors' headers ----------------------------------------------------------------------------------------


def compile_headers(root, package, source):
    """Our declarations against the headers of that package, by this machine's compiler, which runs nothing."""
    include = root / HEADERS.lstrip("/") / package / "usr/include"
    command = ["c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-isystem", str(include)]
    if package == LEVEL_ZERO:
        text = (include / "level_zero/ze_api.h").read_text()
        asked = re.findall(r"'(z[eE]\w+|ZE_\w+)'", (TREE / "tests/headers/meson.build").read_text())
        names = [name for name in asked if name not in ("ze_headers",)]
        absent = [name for name in names if not re.search(rf"\b{name}\b", text)]
        functions = "".join(f"extern const not_yet {name};" for name in absent if name.startswith("ze"))
        others = "".join(f"static const int {name} = ours::{name};" for name in absent if name.startswith("ZE_"))
        command += [f"-DABSENT_FUNCTIONS={functions}", f"-DABSENT_NUMBERS={others}", *([] if absent else ["-DHAVE_NEWER_STRUCTS"])]
    result = subprocess.run([*command, str(TREE / "tests/headers" / source)], capture_output=True, text=True)
    version = version_of(root, package)
    if result.returncode:
        return failed(f"{package} {version}", result.stderr[-3000:])
    rest = f", without {len(absent)} newer names" if package == LEVEL_ZERO and absent else ""
    return f"ok: {version}{rest}"


# ---- other libraries ------------------------------------------------------------------------------------------


def build_extension(root):
    """An extension of the stable ABI, built here with the wheel's headers; "" or why there is none."""
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
    """Whether the root's glibc is new enough for the simulated libraries; else what the loader said."""
    result = python(root, "-c", f"import ctypes; ctypes.CDLL({NEW!r}); ctypes.CDLL('{PLACE}/tests/libgate.so')")
    return "" if result.returncode == 0 else last_line(result.stderr)


def runs_of(root, name, hip, loader, row):
    for title, (files, environment) in RUNS.items():
        if title.startswith("ze") and not loader:
            row[title] = "skipped: there is no libze1"
            continue
        if title == "hip-sim":
            version = numbers(hip)[0] if hip else 7
            environment = {**environment, "GPUGLUE_HIP_LIBRARY": f"{SIMS}/hip{version}/libamdhip64.so.{version}"}
            if not (root / environment["GPUGLUE_HIP_LIBRARY"].lstrip("/")).exists():
                row[title] = "skipped: it was not built"
                continue
        began = time.monotonic()
        row[title] = suite(root, files, **environment)
        say(f"{name}: {title}: {row[title]}  ({time.monotonic() - began:.0f} s)")
    for title, environment in BALANCES.items() if loader else ():
        row[f"leaks, {title}"] = leaks(root, loader, environment)


def compilers_of(root, packages, missing):
    """HIPRTC and ocloc compile for real targets; what the root's release does not know of is not asked for."""
    found = {name: next((package for package in its if package in packages), "") for name, its in COMPILERS.items()}
    have = [name for name, package in found.items() if package and package not in missing]
    if not have:
        return "skipped: neither HIPRTC nor ocloc can be had"
    older_hip = numbers(version_of(root, found["hiprtc"]) or "9") < (6,)
    older_ocloc = numbers(version_of(root, found["ocloc"]) or "99") < (23,)
    known = {"GPUGLUE_GFX": "gfx90a" if older_hip else "gfx90a,gfx942", "GPUGLUE_INTEL": "tgllp" if older_ocloc else "tgllp,dg2"}
    row = suite(root, ("tests/vendors/test_compilers.py",), GPUGLUE_BACKEND="host", GPUGLUE_COMPILERS=",".join(have), **known)
    return f"{row} ({', '.join(f'{name} {version_of(root, found[name])}' for name in have)})"


def facts_of(root, packages, hip, loader, records):
    """The row of the last table."""
    result = python(root, "-c", "import platform, sys; print(sys.version.split()[0], platform.libc_ver()[1], sep=', ')")
    answer = records.get("hip", {})
    code = re.search(r"\d+, hipError\w+", answer.get("reason", ""))
    layers, drivers = layers_of(root, BOTH_NEW) if loader else ([], [])
    mixed = layers_of(root, BOTH)[1] if loader else []
    driver = next((package for package in packages if "intel" in package), "")
    return {
        "Python, glibc": result.stdout.strip(),
        "HIP, its answer": f"{answer['version']}: {code.group() if code else '?'}" if answer else "-",
        "loader": loader or "-",
        "layers": "; ".join(layers) or "tells none",
        "simulated drivers": f"{len(drivers)} of two new ones, {len(mixed)} of an old and a new one" if loader else "-",
        "real driver": f"{driver} {version_of(root, driver) or 'cannot be had'}" if driver else "-",
    }


def run_root(name, wheel, tests):
    began = time.monotonic()
    _, release, packages = MATRIX[name]
    root, missing = dress(name, packages, (LEVEL_ZERO, HIP_HEADERS), release)
    fill(root, wheel, tests)
    hip = next((version_of(root, package) for package in packages if "hip" in package), "")
    loader = version_of(root, "libze1")
    row = {f"package {package}": "skipped: it cannot be had" for package in missing}
    told, records = check_answers(root, hip, loader)
    row |= {f"probe: {title}": text for title, text in told.items()}
    for package, source in (LEVEL_ZERO, "ze_headers.cc"), (HIP_HEADERS, "hip_headers.cc"):
        if package not in missing:
            row[f"headers: {package}"] = compile_headers(root, package, source)
    why = loads_what_was_built(root)
    if why:
        row["suites"] = f"skipped: what was built here does not load there: {why}"
    else:
        runs_of(root, name, hip, loader, row)
    row["compilers"] = compilers_of(root, packages, missing)
    say(f"{name}: compilers: {row['compilers']}")
    if name == CAPTURED and "intel-opencl-icd" not in missing and loader:
        row["Intel's driver, captured"] = suite(root, ("tests/vendors/test_intel_capture.py",), GPUGLUE_BACKEND="ze")
    row |= library_rows(root, [package for package in packages if package in LIBRARIES and package not in missing])
    facts = facts_of(root, packages, hip, loader, records)
    say(f"{name}: done in {time.monotonic() - began:.0f} s")
    return facts, row


# ---- all of them ------------------------------------------------------------------------------------------------


def attempt(function, *arguments):
    """(what it returns, None), or (None, why it cannot be had)."""
    try:
        return function(*arguments), None
    except Unavailable as reason:
        return None, str(reason)


def run_all(names, wheel, tests):
    """{root: (facts, row) or the reason why there is none}"""
    suites = {}
    for name in names:
        suites.setdefault(MATRIX[name][0], []).append(name)
    workers = max(1, min(len(names), os.cpu_count() or 1))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        bare = {codename: pool.submit(attempt, make_bare, codename, its) for codename, its in suites.items()}
        lost = {codename: future.result()[1] for codename, future in bare.items()}
        there = [name for name in names if not lost[MATRIX[name][0]]]
        running = {name: pool.submit(attempt, run_root, name, wheel, tests) for name in there}
        results = {name: future.result() for name, future in running.items()}
    return {name: results[name][0] or results[name][1] if name in results else lost[MATRIX[name][0]] for name in names}


def print_row(name, row):
    print(f"\n== {name}")
    for title, value in row.items():
        print(f"   {title:30} {value}")


def print_table(results):
    """One line per root: what there was."""
    titles = ["root", "Python, glibc", "HIP, its answer", "loader", "layers", "simulated drivers", "real driver", "result"]
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
        say(f"no root is called {unknown[0]}: there are {', '.join(MATRIX)}" if unknown else "needs to be root: sudo make test-vendors")
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
