"""Run `meson test` in a build directory:    c_tests.py BUILD [ARGUMENT…]

With STEP_AGAIN=1, which scripts/step.sh sets when it repeats a failed step, only the tests that failed before run."""

import json
import os
import pathlib
import subprocess
import sys


def failed_tests(build):
    """The names of the tests that failed in the last run, empty if it did not get that far."""
    log = pathlib.Path(build, "meson-logs/testlog.json")
    tests = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [test["name"].rpartition(" ")[2] for test in tests if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")]


def main(build, *arguments):
    again = failed_tests(build) if os.environ.get("STEP_AGAIN") == "1" else []
    if again:
        print("only the tests that failed:", *again, flush=True)
    return subprocess.run(["meson", "test", "-C", build, "--no-rebuild", *arguments, *again]).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
