"""Run the fuzzers of a build with -Dfuzz=true:    run.py BUILD [--runs N] [--merge] [TARGET…]

--runs N: at least N executions of each target, from the inputs in corpus/ and those of earlier runs in BUILD/corpus.
0, the default: each input of corpus/ once. --merge: add to corpus/ the inputs of BUILD/corpus that reach more code.

Prints a table: executions, edges covered (cache: lines of Python), features (edges or lines with their counts), inputs in the corpus, findings. A finding
is an input that ends the process; it is kept in BUILD/findings. The exit status is 1 if there is one."""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
TARGETS = ("elf", "fatbin", "msgpack", "ptx", "spirv", "env", "selection", "ipc", "host_ipc", "comm", "dlpack", "cache")
PYTHON = ("dlpack", "cache")  # contain an interpreter, which frees little at its end
MAX_LENGTH = {"cache": 2048, "comm": 2048, "elf": 640, "env": 64, "ptx": 256, "selection": 300, "ipc": 160, "host_ipc": 57, "msgpack": 400, "dlpack": 256}
STATE = re.compile(r"cov: (\d+) ft: (\d+)(?: corp: (\d+))?")
LINES = re.compile(r"^python: (\d+) lines$", re.M)


def environment(target, build):
    found = {**os.environ, "GPUGLUE_BACKEND": "host", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
    leaks = int(target not in PYTHON)
    found["ASAN_OPTIONS"] = f"detect_leaks={leaks}:allocator_may_return_null=1:strict_string_checks=1"
    if target in PYTHON:
        found |= {"GPUGLUE_PYTHON": sys.executable, "PYTHONPATH": str(build / "root/site")}
    return found


def command(target, build, options, *directories):
    dictionary = HERE / f"dict/{target}.dict"
    return [str(build / f"tests/fuzz/fuzz_{target}"), f"-max_len={MAX_LENGTH.get(target, 1024)}", "-rss_limit_mb=4096",
            f"-detect_leaks={int(target not in PYTHON)}", f"-artifact_prefix={build / 'findings'}/{target}-",
            "-print_final_stats=1", *([f"-dict={dictionary}"] if dictionary.exists() else []), *options,
            *map(str, directories)]


def directories(build, target):
    for path in (build / "findings", build / "corpus" / target, build / "logs", HERE / "corpus" / target):
        path.mkdir(parents=True, exist_ok=True)
    return build / "corpus" / target, HERE / "corpus" / target


def start(target, build, options, *directories, name=""):
    """Its exit status and its output, which is also kept in BUILD/logs."""
    path = build / f"logs/{target}{name}.log"
    with path.open("w") as log:
        status = subprocess.run(command(target, build, options, *directories), stdout=log, stderr=subprocess.STDOUT,
                                env=environment(target, build), check=False).returncode
    return status, path.read_text(errors="replace")


def inputs_of(directory):
    return sum(1 for path in directory.iterdir() if path.is_file())


def run(target, build, runs):
    work, kept = directories(build, target)
    before = time.monotonic()
    if runs:
        status, text = start(target, build, [f"-runs={runs}"], work, kept)
    else:
        status, text = start(target, build, ["-runs=0"], kept, name="-corpus")
    states = STATE.findall(text)
    executions = re.search(r"number_of_executed_units: (\d+)", text)
    cov, ft, corpus = states[-1] if states else ("0", "0", "0")
    lines = LINES.search(text)
    return {"target": target, "executions": int(executions[1]) if executions else 0, "edges": int(lines[1] if lines else cov), "features": int(ft),
            "corpus": int(corpus or 0), "kept": inputs_of(kept), "findings": int(status != 0),
            "seconds": round(time.monotonic() - before)}, text


def copied(work, directory):
    """A copy of the inputs: a fuzzer that is running replaces its own by smaller ones."""
    for path in work.iterdir():
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(path, directory)
    return directory


def merge(target, build):
    """By edges alone: the kept corpus stays small."""
    work, kept = directories(build, target)
    with tempfile.TemporaryDirectory() as directory:
        status, text = start(target, build, ["-merge=1", "-use_counters=0"], kept, copied(work, directory), name="-merge")
    print(f"{target}: {inputs_of(kept)} inputs of {sum(path.stat().st_size for path in kept.iterdir())} bytes", flush=True)
    if status:
        print(text[-3000:])
    return status


def row(values):
    first, *rest = values
    return f"{first:<10}" + "".join(f"{value:>12}" for value in rest)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=lambda text: Path(text).resolve())
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--merge", action="store_true")
    given = parser.parse_intermixed_args()
    targets = given.targets or TARGETS
    if given.merge:
        return max([abs(merge(target, given.build)) for target in targets])
    results = []
    for target in targets:
        result, text = run(target, given.build, given.runs)
        if not results:
            print(row(result))
        print(row(result.values()), flush=True)
        results.append(result)
        if result["findings"]:
            print(text[-6000:])
    return int(any(result["findings"] for result in results))


if __name__ == "__main__":
    sys.exit(main())
