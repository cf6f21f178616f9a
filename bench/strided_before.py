"""Strided copies of this version of gpuglue and of another one, in new processes in alternation (copies.py --against).

A row is judged by the pairs of processes: this version has to reach TOLERANCE of the other's GB/s."""

import os
from pathlib import Path

from processes import given, result_of, summary
from verdict import NOISY, verdict

TOLERANCE = 0.95  # since processes of one version differ
PROGRAM = Path(__file__).with_name("copies.py")


class OtherVersionError(Exception):
    """The directory has no other version of the package."""


def run(options, directory=None):
    """Row → GB/s of a new process, with the package in that directory, or with that of this process."""
    path = os.pathsep.join(filter(None, [str(directory or ""), os.environ.get("PYTHONPATH")]))
    found = result_of(PROGRAM, "--strided-only", *given(options, "side", "device"), PYTHONPATH=path, LD_LIBRARY_PATH="")  # else the other version's
    if directory and directory not in Path(found["package"]).parents:
        raise OtherVersionError(f"{directory} has no package gpuglue: a new process loaded {found['package']}")
    return {row: sides["gpuglue"] for row, sides in found["strided"].items()}


def rows_of(pairs):
    """Row → figures of this version and of the one before, and the result, from (this, before) of each pair of processes."""
    rows = {}
    for row in pairs[0][0]:
        own, before = ([found[row] for found in side] for side in zip(*pairs, strict=True))
        result = verdict([TOLERANCE * theirs - ours for ours, theirs in zip(own, before, strict=True)])
        rows[row] = {"gpuglue": summary(own), "before": summary(before), "result": result}
    return rows


def compare(options):
    """All rows. In every other pair the version before comes first. While any row is too noisy to say, more pairs are started."""
    directory, pairs = options.against.resolve(), []
    for _ in range(options.sets):
        for turn in range(options.processes):
            if turn % 2:
                before, own = run(options, directory), run(options)
            else:
                own, before = run(options), run(options, directory)
            pairs.append((own, before))
        rows = rows_of(pairs)
        if all(figures["result"] != NOISY for figures in rows.values()):
            break
    return rows


def show(rows):
    """Print a line for each row."""
    for row, figures in rows.items():
        cells = [f"  {side} {value['median']:.1f} [{value['worst']:.1f}, {value['best']:.1f}]" for side, value in figures.items() if side != "result"]
        print(f"{row:28}{''.join(cells)}  {figures['result']}", flush=True)
