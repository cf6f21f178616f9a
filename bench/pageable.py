"""Copies of pageable memory as programs make them: the first of a process, the next ones, medium and small sizes, back
to back and spaced by other work. Each figure is of several new processes, since a process may be lucky.

    python pageable.py [--raw LIBRARY] [--json FILE] [--device NAME] [--processes 8] [--most MIB]

The driver alone ("raw") runs in alternation with gpuglue in the same process, except for the first copies: there each side
has processes of its own. "pinned" is the driver's copy of pinned memory of the same size: no copy of pageable memory
can be faster. "floor" is C functions that Python calls in the same way (floor.c), which copy in the calling thread. "C, sleeping threads" and
"C, spinning threads" copy with several threads: of 4 and 12, whichever is faster in a process. Figures are GB/s: the
median of the processes, and [the worst, the best]. A target is judged by the processes: where they disagree, more are started.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import gpuglue as gg

from baseline import open_for_part
from processes import given, result_of, summary
from rows import KIB, MIB, Arrays
from verdict import MISSED, NOISY, OK, RUNS, verdict

SMALL = (4 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 96 * KIB, 128 * KIB)
MEDIUM = (256 * KIB, MIB, 4 * MIB, 16 * MIB)
SPACED = MEDIUM[1:]
ROUNDS, BURST = 7, 10  # back to back: rounds of so many copies of each side
SPACED_ROUNDS = 5
THREADS = (4, 12)  # of floor.c, with the calling one
SLEEPING, SPINNING = "C, sleeping threads", "C, spinning threads"
GAP = 0.05  # seconds of other work
FIRST = 5
WARM_UP = 64 * MIB  # so that slots and threads exist
# Targets in GB/s, by MiB; of the slowest of the later copies of 256 MiB; and ratios.
MEDIUM_TARGETS = {"up": {1: 12, 4: 25, 16: 38}, "down": {1: 14, 4: 28, 16: 42}}
LATER_TARGET, LATER_SPREAD = 42, 1.15
FIRST_FASTER, SMALL_SLOWER = 1.5, 1.05


# ---- one process ----


class Floor:
    """The copies of Arrays by functions of floor.c."""

    def __init__(self, module, arrays):
        self.array, self.pageable, self.stream = module, arrays.pageable, arrays.stream

    def set_pageable(self):
        """Copy from pageable memory to the device."""
        self.array.set(self.pageable, self.stream)
        self.array.synchronize()

    def get_pageable(self):
        """Copy from the device to pageable memory."""
        self.array.get(self.pageable, self.stream)


class InThreads:
    """The same by several threads of floor.c."""

    def __init__(self, module, arrays, threads):
        self.module, self.pageable, self.stream, self.threads = module, arrays.pageable, arrays.stream, threads

    def set_pageable(self):
        """Copy from pageable memory to the device."""
        self.module.set_in_threads(self.pageable, self.stream, self.threads)
        self.module.synchronize()

    def get_pageable(self):
        """Copy from the device to pageable memory."""
        self.module.get_in_threads(self.pageable, self.stream, self.threads)

    @contextmanager
    def spinning(self):
        """Meanwhile the threads spin when they have nothing to copy; otherwise they sleep."""
        self.module.start_threads(self.threads, True)
        try:
            yield
        finally:
            self.module.rest_threads()


@dataclass
class Side:
    """One side of a row: a function that makes one copy and returns its nanoseconds, and what holds from before the other work until then."""

    once: Callable
    meanwhile: Callable = nullcontext


def timed(action, settle=lambda: None):
    """Return a function that returns the nanoseconds of an action; what it settles afterwards does not count."""

    def once():
        start = time.perf_counter_ns()
        action()
        taken = time.perf_counter_ns() - start
        settle()
        return taken

    return once


def threaded_sides(arrays, baseline):
    """(direction, side, number of threads) → Side, for each number that this process has processors for."""
    module = baseline.floor() if baseline else None
    sides = {}
    for threads in sorted({min(threads, len(os.sched_getaffinity(0))) for threads in THREADS}) if module else ():
        copies = InThreads(module, arrays, threads)
        module.start_threads(threads, False)
        for direction, action in (("up", copies.set_pageable), ("down", copies.get_pageable)):
            sides[direction, SLEEPING, threads] = Side(timed(action))
            sides[direction, SPINNING, threads] = Side(timed(action), copies.spinning)
    return sides


def sides_of(arrays, baseline):
    """(direction, side) → function that makes one copy and returns its nanoseconds. "up, call" is the time until the
    call returns: the source may change then, but the copy may be queued."""

    def raw(row):
        run = baseline.bursts_of(row)
        return lambda: run(1)[0]

    module = baseline.floor() if baseline else None
    sides = {("up", "gpuglue"): timed(arrays.set_pageable), ("down", "gpuglue"): timed(arrays.get_pageable),
             ("up, call", "gpuglue"): timed(lambda: arrays.array.set(arrays.pageable, arrays.stream),
                                            arrays.stream.synchronize)}
    if baseline:
        sides["up, call", "raw"] = raw("h2d_pageable_queue")
        for direction, row in (("up", "h2d"), ("down", "d2h")):
            sides[direction, "raw"] = raw(row + "_pageable")
            sides[direction, "pinned"] = raw(row + "_pinned")
    if module:
        floor = Floor(module, arrays)
        sides |= {("up", "floor"): timed(floor.set_pageable), ("down", "floor"): timed(floor.get_pageable)}
    return sides


def arrays_of(nbytes, device, streams, baseline):
    """Arrays of that size, which both sides use, each on its own stream."""
    arrays = Arrays(device, nbytes)
    arrays.stream, other = streams
    if baseline:
        baseline.use(other, arrays)
    return arrays


def speeds(times, nbytes):
    """(direction, side) → GB/s, from the nanoseconds of each side: of threads, with the number of them that is faster."""
    found = {}
    for (direction, side, *_), values in times.items():
        found[direction, side] = max(nbytes / statistics.median(values), found.get((direction, side), 0))
    return found


def back_to_back(sides, nbytes):
    """(direction, side) → GB/s: the median of all copies; each side makes several in a row."""
    times = {key: [] for key in sides}
    for turn in range(ROUNDS + 1):
        for key, side in sides.items():
            with side.meanwhile():
                found = [side.once() for _ in range(BURST)]
            times[key] += found if turn else []
    return speeds(times, nbytes)


def other_work(memory):
    """What a program does between two copies: it computes with one thread, in other memory."""
    end = time.perf_counter() + GAP
    while time.perf_counter() < end:
        memory += 1


def spaced(sides, nbytes):
    """The same with other work before each copy."""
    memory = np.zeros(4 * MIB, np.uint32)
    times = {key: [] for key in sides}
    for turn in range(SPACED_ROUNDS + 1):
        for key, side in sides.items():
            with side.meanwhile():
                other_work(memory)
                found = side.once()
            times[key] += [found] if turn else []
    return speeds(times, nbytes)


def measure_first(side, most, device, streams, baseline):
    """Direction → GB/s of the first copies of this process. The driver's processes then copy as often from and to pinned memory."""
    sides = sides_of(arrays_of(most, device, streams, baseline), baseline)
    found = {direction: [most / sides[direction, side]() for _ in range(FIRST)] for direction in ("up", "down")}
    if side == "raw":
        found |= {f"{direction} pinned": [most / sides[direction, "pinned"]() for _ in range(FIRST)] for direction in ("up", "down")}
    return found


def measure_sizes(device, streams, baseline):
    """Row → "direction side" → GB/s, in a process that has copied before."""
    warm = arrays_of(WARM_UP, device, streams, baseline)
    for _ in range(4):
        warm.set_pageable()
        warm.get_pageable()
    rows = {}
    for nbytes in SMALL + MEDIUM:
        arrays = arrays_of(nbytes, device, streams, baseline)
        sides = {key: Side(once) for key, once in sides_of(arrays, baseline).items() if nbytes in SMALL or "," not in key[0]}
        threaded = threaded_sides(arrays, baseline) if nbytes in SPACED else {}
        found = {"back to back": back_to_back(sides | {key: side for key, side in threaded.items() if key[1] == SPINNING}, nbytes)}
        if nbytes in SPACED:
            found["spaced"] = spaced(sides | threaded, nbytes)
        for kind, values in found.items():
            rows[f"{nbytes // KIB} KiB, {kind}"] = {" ".join(side): value for side, value in values.items()}
    return rows


def one_process(options):
    """What the process `--part` measures, as JSON."""
    device, baseline, reason, streams = open_for_part(options)
    if options.part == "sizes":
        found = measure_sizes(device, streams, baseline)
    elif options.part == "raw" and not baseline:
        found = {}
    else:
        found = measure_first(options.part, options.most * MIB, device, streams, baseline)
    print(json.dumps({"device": device.name, "no_baseline": reason, "found": found}))


# ---- all processes ----


def first_rows(sets):
    """Rows of the first copy and of the worst from the third on, from `first` → side → list of results."""
    rows = {}
    for side, results in sets.items():
        for copies in ("up", "down", "up pinned", "down pinned"):
            found = [result[copies] for result in results if copies in result]
            if found:
                name = copies if "pinned" in copies else f"{copies} {side}"
                rows.setdefault("first copy", {})[name] = summary([values[0] for values in found])
                rows.setdefault("third on", {})[name] = summary([min(values[2:]) for values in found])
    return rows


def size_rows(results):
    """Rows by size, from the results of several processes."""
    return {row: {side: summary([result[row][side] for result in results]) for side in results[0][row]}
            for row in results[0]}


# ---- targets ----


def shortfalls(row, direction, sides):
    """How much slower than its target each process is; None for a row without a target."""
    own, raw = (sides.get(f"{direction} {side}", {}).get("all") for side in ("gpuglue", "raw"))
    size, kind = row.split(", ")
    number, unit = size.split()
    if kind == "first copy":
        return [FIRST_FASTER * theirs - ours for ours, theirs in zip(own, raw)] if raw and direction == "up" else None
    if kind == "third on":
        return [LATER_TARGET - ours for ours in own] if direction == "up" else None
    nbytes = int(number) * (KIB if unit == "KiB" else MIB)
    if nbytes in SMALL:
        return [theirs / SMALL_SLOWER - ours for ours, theirs in zip(own, raw)] if raw else None
    target = MEDIUM_TARGETS[direction].get(nbytes // MIB)
    return [target - ours for ours in own] if target else None


def results_of(rows):
    """Row → direction → result, for the rows with a target."""
    results = {}
    for row, sides in rows.items():
        for direction in ("up", "down"):
            short = shortfalls(row, direction, sides)
            if short is None:
                continue
            own, result = sides[f"{direction} gpuglue"], verdict(short)
            if row.endswith("third on"):  # targets of the worst process, so each counts
                result = MISSED if max(short) > 0 or own["best"] > LATER_SPREAD * own["worst"] else OK
            results.setdefault(row, {})[direction] = result
    return results


def show(rows, results):
    """Print a table."""
    for row, sides in rows.items():
        print(row)
        for side, value in sides.items():
            result = results.get(row, {}).get(side.removesuffix(" gpuglue"), "")
            print(f"    {side:24} {value['median']:6.2f}  [{value['worst']:.2f}, {value['best']:.2f}]  {result}".rstrip())


def rows_of(sets, most):
    """All rows, from the results of the processes of each part."""
    first = {side: [result["found"] for result in sets[side]] for side in ("raw", "gpuglue")}
    rows = {f"{most} MiB, {name}": sides for name, sides in first_rows(first).items()}
    return rows | size_rows([result["found"] for result in sets["sizes"]])


def measure(options):
    """All rows, and their results. While any is too noisy to say, more processes are started."""
    sets = {"raw": [], "gpuglue": [], "sizes": []}
    for _ in range(options.sets):
        for _ in range(options.processes):
            for part, found in sets.items():
                found.append(result_of(__file__, "--part", part, *given(options, "most", "raw", "device")))
        rows = rows_of(sets, options.most)
        results = results_of(rows)
        if not any(NOISY in found.values() for found in results.values()):
            break
    last = sets["sizes"][-1]
    return {"device": last["device"], "no_baseline": last["no_baseline"], "processes": len(sets["sizes"]), "gbps": rows,
            "results": results}


def main():
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raw", help="raw.c, compiled as a library")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--device", help="such as cuda:0; default: the current device")
    parser.add_argument("--processes", type=int, default=8, help="how many new processes of each kind at a time")
    parser.add_argument("--sets", type=int, default=RUNS, help="how many sets of processes at most, where rows are too noisy to say")
    parser.add_argument("--most", type=int, default=256, help="MiB of the first copies")
    parser.add_argument("--part", choices=("raw", "gpuglue", "sizes"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        one_process(options)
        return 0
    result = measure(options)
    show(result["gbps"], result["results"])
    if result["no_baseline"]:
        print("without the driver alone:", result["no_baseline"])
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
