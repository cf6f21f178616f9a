"""conformance.py PROGRAM BACKEND [SOURCE]: the C conformance tests, which PROGRAM runs, on a plugin.

GPUGLUE_PLUGIN_PATH names the plugin's directory. A backend that is not available has failed. With SOURCE, the C file
that has the plugin's table, a skipped test must name an optional operation that the table lacks, or be one that the
host backend skips too."""

import os
import re
import subprocess
import sys
from pathlib import Path

OPS = Path(__file__).resolve().parents[2] / "core/include/gpuglue/ops.def"
RESULT = re.compile(r"^(ok|skipped|FAILED) +[\d.]+ s  (\w+/\w+)(?:: (.*))?$", re.M)


def missing_operations(source):
    """The optional slots that the table in @source leaves NULL, and managed memory if @source never names it."""
    text = Path(source).read_text()
    filled = set(re.findall(r"^    \.(\w+) = \w+,", text, re.M))
    slots = dict(re.findall(r"^OP\((\w+), (\w+)\)", OPS.read_text(), re.M))
    assert {slot for slot, need in slots.items() if need == "GG_REQUIRED"} <= filled
    return set(slots) - filled | ({"managed_memory"} if "GG_MEMORY_MANAGED" not in text else set())


def run(program, backend, *names):
    """The exit status, the output, and for each test its result and its reason."""
    done = subprocess.run([program, backend, *names], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "GPUGLUE_REQUIRE": backend})
    return done.returncode, done.stdout, {name: (result, reason) for result, name, reason in RESULT.findall(done.stdout)}


def unexplained(tests, program, missing):
    """The skipped tests that name no missing operation and that run on the host backend."""
    without = [name for name, (result, reason) in tests.items()
               if result == "skipped" and re.sub(" is not supported$", "", reason) not in missing]
    on_host = run(program, "host", *without)[2] if without else {}
    return [name for name in without if on_host[name][0] != "skipped"]


def main(program, backend, source=None):
    program = Path(program).resolve()
    missing = missing_operations(source) if source else None
    status, output, tests = run(program, backend)
    print(output)
    wrong = unexplained(tests, program, missing) if missing is not None and not status else []
    print(*(f"skipped without a reason: {name}" for name in wrong), sep="\n")
    return 1 if status or not tests or wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
