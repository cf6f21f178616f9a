"""Break one rule at a time and show which test detects it.

    python tests/mutants/run.py [--build DIR] [NAME …]      (words of names; none: all)

Works on a copy of the tree in one build directory: applies a change, builds, runs the relevant tests until one
fails, and reverts the change. A run that hangs has failed. Ends with a table, and with status 1 if a mutant
survives. The options of the build come from MESON_OPTIONS.
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

from mutants import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST = 90  # seconds: a run that takes longer, and SLOWER times as long as without a mutant, hangs
SLOWER = 5
LONGEST = 1800  # of a run without a mutant


def command(arguments, timeout=None, **options):
    """In its own session, so that its children end with it."""
    process = subprocess.Popen([str(a) for a in arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True, **options)
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(arguments, process.returncode, output)


def copy_tree(to):
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split("\n")
    for name in filter(None, names):
        source, target = ROOT / name, to / name
        if not source.is_file():
            continue
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


class Bench:
    def __init__(self, directory):
        self.tree, self.build, self.root = directory / "tree", directory / "build", directory / "root"
        self.took = {}  # seconds of each run without a mutant
        copy_tree(self.tree)
        if not (self.build / "build.ninja").exists():
            options = shlex.split(os.environ.get("MESON_OPTIONS", ""))
            made = command(["meson", "setup", self.build, self.tree, "-Dtests=true", "-Doptimization=1",
                            f"--prefix={self.root}", "-Dpython.platlibdir=site", "-Dpython.purelibdir=site", *options])
            if made.returncode:
                sys.exit(made.stdout)
        self.compile()
        listed = command(["meson", "test", "--list", "-C", self.build], cwd=self.build).stdout
        self.tests = {line.rsplit(":", 1)[-1].strip() for line in listed.splitlines()}

    def compile(self):
        made = command(["meson", "compile", "-C", self.build])
        if made.returncode:
            sys.exit(made.stdout[-4000:])

    def limit(self, name):
        return max(LEAST, SLOWER * self.took[name]) if name in self.took else LONGEST

    def python(self, run, file, limit):  # or one test: FILE::TEST
        made = command(["meson", "install", "-C", self.build, "--no-rebuild", "--quiet"])
        if made.returncode:
            sys.exit(made.stdout)
        environment = dict(os.environ, PYTHONPATH=str(self.root / "site"),
                           GPUGLUE_TEST_LIBRARIES=str(self.build / "tests"))
        return command([sys.executable, "-m", "pytest", "-q", "-x", "--backend", run, file],
                       cwd=self.tree, env=environment, timeout=limit)

    def measure(self, name):
        """A run without a mutant: its duration determines the time limit of runs with one."""
        begun = time.monotonic()
        result = self.run(name)
        self.took[name] = time.monotonic() - begun
        return result

    @staticmethod
    def resolve(name, limit):
        """The test of meson's for "SUITE-RUN", "UNIT", each with ":TEST" or without, or another test of meson's; its
        arguments; and what makes its time limit @limit. A test of the runner's that hangs is ended by the runner."""
        name, _, function = name.partition(":")
        suite, _, run = name.partition("-")
        if name.startswith(("fault-sweep", "sim-")):
            return name, [function] if function else [], limit / 120
        test = f"conformance-{run}" if run else "core"
        return test, [f"--timeout={min(int(limit), 120)}", f"{suite}/{function}" if function else suite], 1

    def run(self, name):
        """None if the run is unavailable here, "" if it passes, else what failed."""
        limit = self.limit(name)
        try:
            if name.startswith("python:"):
                done = self.python(*name.split(":", 2)[1:], limit)
                failed = re.search(r"^FAILED \S*::(\S+)", done.stdout, re.M)
            else:
                test, arguments, scale = self.resolve(name, limit)
                if test not in self.tests:
                    return None
                only = [f"--test-args={argument}" for argument in arguments]
                done = command(["meson", "test", "-C", self.build, "--no-rebuild", "--print-errorlogs", "-t", scale, test, *only])  # meson ends a test with all its children
                if re.search(r"\bTIMEOUT\b", done.stdout):
                    return "it hangs"
                failed = re.search(r"^  failed: \w+/(\w+): |\[  FAILED  \] (?:\w+: )?(\w+)$|^\w+: (\w+, call .*?: [a-z ]+): ", done.stdout, re.M)
        except subprocess.TimeoutExpired:
            return "it hangs"
        if not done.returncode:
            return ""
        return next(filter(None, failed.groups()), "it fails") if failed else "it fails"


def try_mutant(bench, mutant):
    """(run, test) that detected the mutant; (None, the reason why none did)."""
    file = bench.tree / mutant.file
    text = file.read_text()
    if text.count(mutant.old) != 1:
        return None, f"its text stands {text.count(mutant.old)} times in {mutant.file}: correct the entry"
    file.write_text(text.replace(mutant.old, mutant.new))
    try:
        bench.compile()
        results = []
        for name in mutant.runs:
            result = bench.run(name)
            if result:
                return name, result
            results.append((name, result))
        missing = [name for name, result in results if result is None]
        return None, "SURVIVED" + (f" (not to be had here: {', '.join(missing)})" if missing else "")
    finally:
        file.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--trust", action="store_true", help="do not see first that every run passes without a mutant, nor how long it takes")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    chosen = [m for m in MUTANTS if not options.names or any(n in m.name for n in options.names)]
    bench = Bench(options.build)
    # Without a mutant every run must pass, or a failure proves nothing.
    broken = {}
    for name in sorted({run for mutant in chosen for run in mutant.runs} if not options.trust else ()):
        result = bench.measure(name)
        if result:
            broken[name] = result
            print(f"fails without a mutant: {name}: {result}", flush=True)
    survivors = 0
    for mutant in chosen:
        run, what = try_mutant(bench, mutant)
        survivors += run is None
        print(f"| {mutant.name} | {mutant.rule} | {f'{run}: {what}' if run else what} |", flush=True)
    bench.compile()
    print(f"{len(chosen)} mutants, {len(chosen) - survivors} caught, {survivors} survived")
    return 1 if survivors or broken else 0


if __name__ == "__main__":
    sys.exit(main())
