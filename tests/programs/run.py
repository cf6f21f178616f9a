"""Programs for PyCUDA and PybindGPU, as their authors wrote them, on gpuglue: PyCUDA's examples, tutorial and tests, PybindGPU's tests.

    run.py --pycuda SDIST [--pybindgpu DIRECTORY] [--way WAY]… [--jobs N] [--limit SECONDS] [--out DIRECTORY] [--write COLUMN] [NAME…]
    run.py --results FILE --write COLUMN    the table from results.json of a run on another machine

SDIST is PyCUDA's source archive from PyPI, and DIRECTORY a clone of PybindGPU's repository. A NAME is a program as the table has it,
or `suite` for PyCUDA's tests; without names, everything runs. They run with this interpreter, on the backend that GPUGLUE_BACKEND
names. WAY is what computes: `default` is gpuglue's kernels, and CuPy what they do not; `cupy`, CuPy first; `kernels`, as if CuPy were not
installed; `exact`, PyCUDA's own Python files, by `gpuglue pycuda add`.

--out keeps the output of each program, and results.json. --write puts the results of programs into a column of the table in
docs/reference/programs.md. The exit status is 1 if something failed for another reason than those in REASONS.
"""

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/reference/programs.md"
WAYS = ("default", "cupy", "kernels", "exact")
SUITE = ("test_driver", "test_gpuarray", "test_cumath")
LARGE = "big_array or 8gb or 16gb"  # tests that need gigabytes of the device's memory: these run one after the other
FILLS = ("fill_gpu_with_nans.py",)  # programs that take all of it: these run at the end, with nothing beside them

# Why a program does not run, with gpuglue as with PyCUDA: (program, what its output has, reason).
REASONS = [
    ("", r"No module named '(\w+)'", "needs the package {}"),
    ("", r"import of (\w+) halted", "needs the package {}"),
    ("", r"module 'numpy' has no attribute '(row_stack)'", "this numba needs an older NumPy"),
    ("", "lang='cuda' for ze|Level Zero has no compiler for CUDA", "has kernels in CUDA C++, for which Level Zero has no compiler"),
    ("", "OpenCL C, which Level Zero compiles, has no complex numbers", "computes with complex numbers, which OpenCL C has not"),
    ("distance_element_wise3d.py", "source.cl:.*\n.*math.h", "includes math.h, which OpenCL C has not"),
    ("cai_numba.py", "Cannot determine Numba type", "numba takes arrays on CUDA's devices only"),
    ("arithmetic_example.py", "'float' object cannot be interpreted as an integer", "is written for Python 2"),
    ("demo_cdpSimplePrint.py", "DEV_RUNTIME_SYNC_DEPTH", "sets a limit that CUDA has not from Hopper on"),
    ("demo_cdpSimplePrint.py", "kernels launch kernels on cuda only", "its kernel launches kernels, which only CUDA can"),
    ("gpu_scalar_mult.py", "get_linear_combination_kernel|texture", "uses texture references, which CUDA 12 has not"),
    ("rotate.py", "texture|errors detected|error: ", "uses texture references, which CUDA 12 has not"),
    ("mandelbrot_interactive.py", "drawtype", "needs an older Matplotlib"),
    ("simple_rgb2gray.py", "scipy.misc", "needs a SciPy from before 1.2"),
    ("sparse_solve.py", "list index out of range", "needs a file with a matrix"),
    ("thrust_interop.py", "codepy.CompileError", "needs the library of Boost.Python to link an extension"),
    ("cai_cupy_arrays.py", "cudaErrorInsufficientDriver|CUDARuntimeError", "needs CuPy's device"),
    ("", "MemoryError", "needs more memory"),
]
ARGUMENTS = {"game_of_life.py": ["64", "10"], "mandelbrot.py": ["gpu"]}
ENDLESS = {"game_of_life.py": "live cells after"}  # programs that run until their window is closed, and what they print before


@dataclasses.dataclass
class Result:
    """How a program or a file of tests ended."""

    name: str
    source: str
    way: str
    result: str
    seconds: float
    tests: dict = dataclasses.field(default_factory=dict)

    @property
    def failed(self):
        return self.result.startswith("FAILED") or bool(self.tests.get("failed"))


class Place:
    """A directory with the programs, and how they are run in it."""

    def __init__(self, options):
        self.root = Path(tempfile.mkdtemp(prefix="gpuglue-programs-"))
        self.out = Path(options.out).resolve() if options.out else self.root / "out"
        self.out.mkdir(parents=True, exist_ok=True)
        self.limit, self.sdist = options.limit, Path(options.pycuda).resolve()
        with tarfile.open(self.sdist) as archive:
            archive.extractall(self.root, filter="data")
        self.pycuda = next(self.root.glob("pycuda-2*"))
        self.pybindgpu = None
        if options.pybindgpu:
            self.pybindgpu = self.root / "PybindGPU"
            shutil.copytree(options.pybindgpu, self.pybindgpu, ignore=shutil.ignore_patterns(".git"))

    def environment(self, way):
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONSTARTUP"}
        paths = [str(HERE / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return kept | {"PYTHONPATH": os.pathsep.join(paths), "WAY": way, "PYTHONUNBUFFERED": "1", "MPLBACKEND": "agg", "HOME": str(self.root),
                       "XDG_DATA_HOME": str(self.root / ("data" if way == "exact" else "none")),
                       "XDG_CACHE_HOME": str(self.root / f"cache-{way}")}

    def run(self, name, command, cwd, way, limit=None):
        """(exit status or None at the limit, output, seconds)."""
        began = time.monotonic()
        try:
            ended = subprocess.run(list(map(str, command)), cwd=cwd, env=self.environment(way), text=True, errors="replace", input="\n" * 20,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit or self.limit)
            status, text = ended.returncode, ended.stdout
        except subprocess.TimeoutExpired as error:
            status, text = None, (error.stdout or b"").decode(errors="replace")
        (self.out / (re.sub(r"\W+", "_", f"{way} {name}") + ".log")).write_text(text)
        return status, text, time.monotonic() - began


# ---- programs


def reason_of(name, text):
    """Why a program cannot run, or None."""
    for program, pattern, reason in REASONS:
        found = re.search(pattern, text[-6000:])
        if found and program in ("", name):
            return reason.format(*found.groups())
    return None


def verdict(name, status, text, limit):
    """The result of a program."""
    if status == 0 or status is None and name in ENDLESS and ENDLESS[name] in text:
        return "ok"
    reason = reason_of(name, text) if status is not None else None
    last = (text.strip().splitlines() or ["no output"])[-1].replace("|", "/")
    return reason or (f"not in {limit:.0f} s" if status is None else f"FAILED: {last[:120]}")


def program(place, name, source, path, way):
    """Run a program."""
    limit = min(place.limit, 40) if name in ENDLESS else place.limit
    status, text, seconds = place.run(name, [sys.executable, path, *ARGUMENTS.get(path.name, [])], path.parent, way, limit)
    return Result(name, source, way, verdict(name, status, text, limit), seconds)


def code_of(page):
    """The literal blocks of a page in reStructuredText that are Python, as one program."""
    blocks = re.findall(r"::\n\n((?:(?: +.*)?\n)+)", page.read_text())
    found = []
    for block in map(textwrap.dedent, blocks):
        try:
            compile(block, page.name, "exec")
        except SyntaxError:
            continue
        found.append(block)
    return "\n".join(found)


def tutorial(place):
    """PyCUDA's tutorial as a program. Its last part passes other libraries' arrays to a kernel of one array, the first of the text."""
    text = "import struct\nimport numpy\n" + code_of(place.pycuda / "doc/tutorial.rst")
    text = text.replace('func = mod.get_function("doublify")', 'first = mod\nfunc = mod.get_function("doublify")')
    text = text.replace('func = mod.get_function("double_array")\nfunc(cupy_a', 'func = first.get_function("doublify")\nfunc(cupy_a')
    path = place.root / "tutorial.py"
    path.write_text(text)
    return path


def build_ctypes(place):
    """The library that PybindGPU's test of ctypes loads, as its Makefile builds it; True if there is nvcc."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        return False
    command = [nvcc, "-shared", "-Xcompiler", "-fPIC", "-std=c++17", "-I", place.pybindgpu / "PybindGPU", "-I",
               place.pybindgpu / "PybindGPU/include", "-o", "test_ctypes.so", "test_ctypes.cu"]
    return place.run("nvcc", command, place.pybindgpu / "test/ctypes", "default")[0] == 0


def programs_of(place):
    """(name, source, path) of all programs."""
    for path in sorted(place.pycuda.glob("examples/**/*.py")):
        yield path.name, f"PyCUDA, {path.parent.relative_to(place.pycuda)}", path
    yield "tutorial", "PyCUDA, doc/tutorial.rst", tutorial(place)
    if place.pybindgpu:
        has_nvcc = build_ctypes(place)
        for path in sorted(place.pybindgpu.glob("test/*/*.py")):
            if path.name != "utils.py" and (has_nvcc or path.name != "test_ctypes.py"):
                yield path.name, f"PybindGPU, {path.parent.relative_to(place.pybindgpu)}", path


# ---- PyCUDA's tests


def counted(report):
    """{"passed": [names], …} of a report in JUnit's form."""
    found = {"passed": [], "failed": [], "skipped": [], "xfailed": []}
    if not report.exists():
        return found | {"failed": ["the whole file"]}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag: child for child in case}
        skipped = kinds.get("skipped")
        kind = "failed" if {"failure", "error"} & set(kinds) else "passed" if skipped is None else \
            "xfailed" if "xfail" in (skipped.get("type") or "") else "skipped"
        found[kind].append(case.get("name"))
    return found


def suite(place, file, way, selected=None):
    """A file of PyCUDA's tests, or those of it that an expression selects."""
    name = f"suite {file}" + (f" ({selected})" if selected else "")
    report = place.out / (re.sub(r"\W+", "_", f"{way} {name}") + ".xml")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", f"{file}.py"]
    status, text, seconds = place.run(name, [*command, *(["-k", selected] if selected else [])], place.pycuda / "test", way, 1200)
    tests = counted(report)
    return Result(name, "PyCUDA, test", way, ", ".join(f"{len(names)} {kind}" for kind, names in tests.items() if names), seconds, tests)


def totals(results):
    """The tests of all files, for each way."""
    for way in WAYS:
        mine = [one.tests for one in results if one.way == way and one.tests]
        if mine:
            yield way, {kind: sum(len(tests[kind]) for tests in mine) for kind in mine[0]}, [name for tests in mine for name in tests["failed"]]


# ---- the table


def cell(one):
    """What the table has of a result."""
    return f"ok, {one.seconds:.1f} s" if one.result == "ok" else one.result


def written(text, column, results):
    """The page with the results in that column; rows of new programs come last."""
    lines = text.splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("| program |"))
    names = [name.strip() for name in lines[head].split("|")[1:-1]]
    rows = {}
    end = head + 2
    while end < len(lines) and lines[end].startswith("|"):
        cells = [one.strip() for one in lines[end].split("|")[1:-1]]
        rows[cells[0]] = cells
        end += 1
    for one in results:
        row = rows.setdefault(f"`{one.name}`", [f"`{one.name}`", one.source] + [""] * (len(names) - 2))
        row[names.index(column)] = cell(one)
    made = ["| " + " | ".join(row) + " |" for row in rows.values()]
    return "\n".join([*lines[:head + 2], *made, *lines[end:]]) + "\n"


# ---- the command


def jobs_of(place, options):
    """Functions without arguments, each of which returns a Result: small ones, those that use much memory, those that use all of it."""
    wanted, small, large, filling = options.names, [], [], []
    for way in options.way or ["default"]:
        if not wanted or "suite" in wanted:
            small += [lambda file=file, way=way: suite(place, file, way, f"not ({LARGE})") for file in SUITE]
            large += [lambda way=way: suite(place, "test_gpuarray", way, LARGE)] if not options.small else []
        for name, source, path in programs_of(place):
            if not wanted or name in wanted:
                group = filling if name in FILLS else small
                group.append(lambda name=name, source=source, path=path, way=way: program(place, name, source, path, way))
    return small, large, filling


def arguments():
    """The options of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--pycuda", help="PyCUDA's source archive")
    source.add_argument("--results", type=Path, help="results.json of a run, in place of a run")
    parser.add_argument("--pybindgpu", help="a clone of PybindGPU's repository")
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=120, help="seconds for each program")
    parser.add_argument("--small", action="store_true", help="without the tests that need gigabytes")
    parser.add_argument("--out", help="directory for the output of the programs, and results.json")
    parser.add_argument("--write", metavar="COLUMN", help="write the programs' results into the page")
    parser.add_argument("names", nargs="*", metavar="NAME")
    return parser.parse_args()


def write(column, results):
    """The programs' results into the page: those of the first way that ran them."""
    ended = {one.name: one for one in sorted(results, key=lambda one: WAYS.index(one.way), reverse=True) if not one.tests}
    PAGE.write_text(written(PAGE.read_text(), column, [ended[name] for name in sorted(ended)]))


def results_of(side_by_side, jobs, one_by_one=()):
    """The results as they come: of some functions with so many at once, and beside them of others one after the other."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool, concurrent.futures.ThreadPoolExecutor(1) as in_turn:
        for done in concurrent.futures.as_completed([*map(in_turn.submit, one_by_one), *map(pool.submit, side_by_side)]):
            yield done.result()


def run_all(options):
    """The results, each printed as it comes."""
    place, results = Place(options), []
    if "exact" in (options.way or ()):
        added = place.run("pycuda add", [sys.executable, "-m", "gpuglue", "pycuda", "add", place.sdist], place.root, "exact")
        print("gpuglue pycuda add:", added[1].strip().splitlines()[-1], flush=True)
    small, large, filling = jobs_of(place, options)
    for one in itertools.chain(results_of(small, options.jobs, large), results_of(filling, 1)):
        results.append(one)
        print(f"{one.seconds:6.1f} s  {one.way:8} {one.name:42} {one.result}", flush=True)
        (place.out / "results.json").write_text(json.dumps(list(map(dataclasses.asdict, results)), indent=1))
    for way, counts, failed in totals(results):
        print(f"PyCUDA's tests, {way}: {counts} {failed or ''}")
    shutil.rmtree(place.root, ignore_errors=True)
    return results


def main():
    """Run the programs, print each result as it comes, and write the table."""
    options = arguments()
    results = [Result(**one) for one in json.loads(options.results.read_text())] if options.results else run_all(options)
    if options.write:
        write(options.write, results)
    return any(one.failed for one in results)


if __name__ == "__main__":
    sys.exit(main())
