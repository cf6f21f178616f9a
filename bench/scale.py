"""Alloc + close at scale, by scale.c in several new processes: a table of nanoseconds, and JSON.

    python scale.py PROGRAM [--calls 1000000] [--kind all] [--processes 8] [--json FILE]

Each figure is the median of the processes. A target is judged by them: it is reached or missed only if they agree. Where they disagree,
more are started for that kind of rows. Every third of the first processes also measures the rows without a target.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from processes import summary
from verdict import MISSED, NOISY, OK, RUNS, verdict
from verdict import summary as counted

EVERY = 3  # so many of the first processes, of which one measures the rows without a target
MEDIANS = ("median", "p999")
SPREAD = ("mean", "worst")  # these also have the worst and the best process


def run(program, calls, kind, floors):
    """Row → the figures of a new process."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "scale.json"
        command = [program, str(calls), kind, str(path)] + ([] if floors else ["targets"])
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads(path.read_text())


def result_for(key, processes):
    """The result of one target of a row. One that is missed is too noisy to say if threads that do nothing missed it in half of the processes."""
    target = processes[0][f"{key}_target"]
    result = verdict([found[key] / target - 1 for found in processes])
    idle = [found["idle"][key] for found in processes if "idle" in found]
    return NOISY if result == MISSED and statistics.median_high(idle) > target else result


def result_of(processes):
    """The result of a row; "" without a target. A row is missed if one of its targets is, and ok if all are reached."""
    results = {result_for(key, processes) for key in SPREAD if f"{key}_target" in processes[0]}
    return next((result for result in (MISSED, NOISY, OK) if result in results), "")


def merged(processes):
    """The figures of a row, from those of each process. The worst call is that of one process, with the call's number and the driver's part."""
    figures = {key: statistics.median(found[key] for found in processes) for key in MEDIANS}
    for key in SPREAD:
        spread = summary([found[key] for found in processes], min)
        figures |= {key: spread["median"], f"{key}_worst": spread["worst"], f"{key}_best": spread["best"]}
    middle = sorted(processes, key=lambda found: found["worst"])[len(processes) // 2]
    figures |= {key: middle[key] for key in ("worst", "worst_at", "worst_driver")}
    return figures | {"processes": len(processes), "result": result_of(processes)}


def measure(options):
    """Row → its figures, in the order of the first process, which has all rows. While any row of a kind is too noisy to say, more processes
    measure that kind."""
    parts, kinds = {}, [options.kind]
    for turn in range(options.sets):
        for number in range(options.processes):
            for kind in kinds:
                for row, found in run(options.program, options.calls, kind, turn == 0 and number % EVERY == 0).items():
                    parts.setdefault(row, []).append(found)
        rows = {row: merged(processes) for row, processes in parts.items()}
        kinds = sorted({parts[row][0]["kind"] for row, figures in rows.items() if figures["result"] == NOISY})
        if not kinds:
            break
    return rows


def show(rows):
    """Print the table."""
    heads = {"mean": "mean", "worst": "mean_worst", "median": "median", "99.9 %": "p999", "worst call": "worst", "of all": "worst_worst",
             "which": "worst_at", "driver": "worst_driver"}
    print(f"{'alloc + close, ns':36}" + "".join(f"{head:>11}" for head in heads))
    for row, figures in rows.items():
        print((f"{row:36}" + "".join(f"{figures[key]:11.0f}" for key in heads.values()) + f"  {figures['result']}").rstrip())
    print(counted([figures["result"] or None for figures in rows.values()]))


def main():
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="scale.c, compiled")
    parser.add_argument("--calls", type=int, default=1000000, help="of each row, in each process")
    parser.add_argument("--kind", default="all", help="streams, live, retired, threads, large, or all")
    parser.add_argument("--processes", type=int, default=8, help="how many new processes of each kind at a time")
    parser.add_argument("--sets", type=int, default=RUNS, help="how many sets of processes at most, where rows are too noisy to say")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    rows = measure(options)
    show(rows)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
