"""Figures of several new processes: how the processes are started, and what they have found together.

A process may be lucky for all of its time, for instance with the addresses of its memory: so the rounds of one process do not show how
far another one may be from it."""

import json
import os
import statistics
import subprocess
import sys

from timing import spread
from verdict import interval, judge, verdict


def result_of(program, *options, **variables):
    """The JSON in the last line that a new process of a Python program prints. `variables`: of its environment, besides those of this process."""
    command = [sys.executable, str(program), *options]
    done = subprocess.run(command, env=os.environ | variables, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def given(options, *names):
    """These of a program's options again, for a new process of it; those that were not given are left out."""
    found = []
    for name in names:
        value = getattr(options, name.replace("-", "_"))
        if isinstance(value, list):
            found += [f"--{name}", *value]
        elif value not in (None, False):
            found += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return found


def summary(values, best=max):
    """The median of the processes, and the worst and the best of them."""
    worst = min if best is max else max
    return {"median": statistics.median(values), "worst": worst(values), "best": best(values), "all": values}


def side_figures(parts, best):
    """Of the rounds of each process: the median, the worst and the best of the processes' medians, and quartiles of all rounds."""
    found = summary([statistics.median(rounds) for rounds in parts], best)
    together = spread([value for rounds in parts for value in rounds])
    return {key: found[key] for key in ("median", "worst", "best")} | {key: together[key] for key in ("p25", "p75", "count")}


def figures_of(row, parts, alone=False):
    """What the JSON has of a row of rows.py, from the parts that several processes have measured. A process counts with the median of its
    rounds' excesses. `alone`: the parts are runs of one process, and each round counts."""
    sides = {side: side_figures([part["sides"][side] for part in parts], row.best) for side in parts[0]["sides"]}
    runs = [part["excesses"] for part in parts if part["excesses"]]
    excesses = [excess for run in runs for excess in run] if alone else [statistics.median(run) for run in runs]
    result = (judge(runs) if alone else verdict(excesses)) if runs else None
    return {**sides, "target": row.target({side: figures["median"] for side, figures in sides.items()}), "absolute": bool(row.limit),
            "result": result, "runs" if alone else "processes": len(parts),
            "excess": {"median": statistics.median(excesses), "interval": interval(excesses)} if runs else None}
