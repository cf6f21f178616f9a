"""The page about the suites on each driver, docs/reference/drivers.md, from results of runs:

    driver_table.py keep COLUMN --machine TEXT [--date DATE] PATH …    put the results of a run into docs/drivers.json
    driver_table.py page [--check]                                     write the page from it, or check that it is written

PATHs are those of scripts/suites.py; testlog.json gives every column that has a run of Meson. A run with a failure is not kept."""

import argparse
import collections
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

import suites

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs/drivers.json"
PAGE = ROOT / "docs/reference/drivers.md"
SUITES = sorted(path.stem.removeprefix("test_") for path in (ROOT / "tests/conformance").glob("test_*.c"))

# heading: (title of its table, what it is)
HOST, HIP = "Host, CUDA and Level Zero", "HIP"
COLUMNS = {
    "host": (HOST, "the host backend"),
    "cuda-sim": (HOST, "the simulated NVIDIA driver"),
    "cuda": (HOST, "NVIDIA's driver and a GPU"),
    "ze-sim-old": (HOST, "the simulated Level Zero driver of API 1.3, behind the installed loader"),
    "ze-sim-new": (HOST, "the same of API 1.17"),
    "ze-sim-old with PoCL": (HOST, "ze-sim-old, with kernels in SPIR-V, which PoCL runs"),
    "ze-sim-new with PoCL": (HOST, "the same with ze-sim-new"),
    "hip-sim 5.2": (HIP, "the simulated HIP runtime, from AMD's headers of 5.2"),
    "hip-sim 5.7": (HIP, "the same of 5.7"),
    "hip-sim 6.4": (HIP, "the same of 6.4"),
    "hip-sim 7.2": (HIP, "the same of 7.2"),
    "hip model": (HIP, "AMD's own runtime 7.2 with the model of a GPU of architecture gfx942: `make test-hip-model`"),
    "hip shim": (HIP, "the hip backend on NVIDIA's driver and a GPU, through a library with HIP's functions"),
}
# The columns of runs of Meson.
MESON = {name: name for name in ("host", "cuda-sim", "ze-sim-old", "ze-sim-new")} | {
    "hip-sim-5": "hip-sim 5.2", "hip-sim-5.7": "hip-sim 5.7", "hip-sim-6": "hip-sim 6.4", "hip-sim-7": "hip-sim 7.2"}
HEAD = """# The suites on each driver

The conformance suites in `tests/conformance` are the same for every backend. The tables have, for each suite and driver, the tests
that passed, and in parentheses those that were skipped: `12 (3)` is 12 passed and 3 skipped. A dash: the suite was added after the run.
No test failed for a reason of gpuglue's; a run with such a failure is not entered. In the column "hip model" tests that fail because
of AMD's runtime, in the way that `KNOWN_FAILURES` in `tests/model/hip/run.py` has for each, are among the skipped ones, with the
reason. Below the tables is what each column is, on which machine and day it was run, and why tests were skipped.
`scripts/driver_table.py` writes this page from the results of runs; [Testing](../testing.md#the-conformance-program) has the commands.
"""


def commit():
    return subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()


# ---- results of runs ---------------------------------------------------------------------------------------------


def condense(found):
    """Of {suite: {verdict: {test: reason}}}: the counts of each suite, and the suites of each reason."""
    found = {name: found[name] for name in SUITES if name in found}
    reasons = collections.defaultdict(collections.Counter)
    for name, verdicts in found.items():
        for reason in verdicts["skipped"].values():
            reasons[reason][name] += 1
    return {"suites": {name: [len(verdicts["passed"]), len(verdicts["skipped"])] for name, verdicts in found.items()},
            "skipped": {reason: dict(sorted(its.items())) for reason, its in sorted(reasons.items())}}


def wrong(found):
    """Why these results are not kept, or ""."""
    failed = [f"{name}/{test}: {reason}" for name, verdicts in found.items() for test, reason in verdicts["failed"].items()]
    missing = [name for name in SUITES if name not in found]
    return "; ".join([f"failed: {test}" for test in failed] + [f"no result of the suite {name}" for name in missing])


def results_of(column, paths):
    """{column: its results}"""
    if column != "meson":
        return {column: suites.read([f"{column}={path}" for path in paths])[column]}
    return {MESON[run]: found for run, found in suites.read(paths).items() if run in MESON}


def keep(options):
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for column, found in results_of(options.column, options.paths).items():
        if reason := wrong(found):
            sys.exit(f"{column}: {reason}")
        kept[column] = {"machine": options.machine, "date": options.date, "commit": options.commit or commit(), **condense(found)}
        print(f"{column}: {sum(counts[0] for counts in kept[column]['suites'].values())} passed")
    text = json.dumps({column: kept[column] for column in COLUMNS if column in kept}, indent=1)
    KEPT.write_text(re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", text) + "\n")  # the counts of a suite on one line


# ---- the page ----------------------------------------------------------------------------------------------------


def cell(counts):
    return "–" if counts is None else f"{counts[0]} ({counts[1]})" if counts[1] else str(counts[0])


def rows_of(kept, columns):
    yield ["suite", *columns]
    yield ["---", *["---:"] * len(columns)]
    for name in SUITES:
        yield [name, *(cell(kept[column]["suites"].get(name)) for column in columns)]
    sums = [[sum(each) for each in zip(*kept[column]["suites"].values(), strict=True)] for column in columns]
    yield ["**passed**", *(str(passed) for passed, _ in sums)]
    yield ["**skipped**", *(str(skipped) for _, skipped in sums)]
    yield ["**failed**", *["0"] * len(columns)]


def table(rows):
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def reasons_of(kept):
    """[(reason, {column: number})], those of most tests first."""
    found = collections.defaultdict(dict)
    for column, results in kept.items():
        for reason, its in results["skipped"].items():
            found[reason][column] = sum(its.values())
    return sorted(found.items(), key=lambda item: (-sum(item[1].values()), item[0]))


def page(kept):
    text = HEAD
    for title in dict.fromkeys(title for title, _ in COLUMNS.values()):
        columns = [column for column in COLUMNS if column in kept and COLUMNS[column][0] == title]
        text += f"\n## {title}\n\n" + table(rows_of(kept, columns))
    text += "\n## The columns\n\n" + table([["column", "driver", "machine", "date", "commit"], ["---"] * 5, *(
        [column, COLUMNS[column][1], its["machine"], its["date"], f"`{its['commit']}`"] for column, its in kept.items())])
    text += "\n## Why tests were skipped\n\n" + table([["reason", "tests"], ["---"] * 2, *(
        [reason, ", ".join(f"{column} {number}" for column, number in its.items())] for reason, its in reasons_of(kept))])
    return text


def write(check):
    text = page(json.loads(KEPT.read_text()))
    if not check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what scripts/driver_table.py makes of {KEPT.relative_to(ROOT)}: driver_table.py page")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    adder = commands.add_parser("keep")
    adder.add_argument("column", choices=("meson", *COLUMNS))
    adder.add_argument("--machine", required=True)
    adder.add_argument("--date", default=datetime.date.today().isoformat())
    adder.add_argument("--commit", help="that of the tests that ran, if it is not that of this tree")
    adder.add_argument("paths", nargs="+")
    commands.add_parser("page").add_argument("--check", action="store_true")
    return parser.parse_args()


def main():
    options = parse()
    keep(options) if options.command == "keep" else write(options.check)


if __name__ == "__main__":
    main()
