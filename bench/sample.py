"""Where the nanoseconds of a call go, by sampling: a table by library, and JSON with the functions.

    python sample.py --sampler LIBRARY [--raw LIBRARY] [--json FILE] [--seconds N]

For each statement bursts of 16 calls run as in bench.py. A timer interrupts them every 197 microseconds; the share of a library in
these samples, times the measured time of a call, is its time. Beside gpuglue's calls the same calls of floor.c.
"""

import argparse
import ctypes
import json
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from time import perf_counter

import gpuglue as gg

from baseline import open_baseline
from rows import SMALL, Arrays, floor_names, names_for
from timing import BURST, compiled

ROWS = ("launch, bound", "launch", "launch, 16 arguments", "event record", "wait for event", "to_gpu of 1 KiB", "to_gpu + get of 1 KiB")


def sampled(library, statement, names, settle, seconds):
    """The median nanoseconds of a call, and how many samples each function has."""
    burst, on = compiled(statement, names), ctypes.c_int.in_dll(library, "sample_on")
    times, name = [], ctypes.create_string_buffer(256)
    burst()
    settle()
    if library.sample_start():
        sys.exit("no timer")
    end = perf_counter() + seconds
    while perf_counter() < end:
        on.value = 1
        times.append(burst() / BURST)
        on.value = 0
        settle()
    found = Counter()
    for index in range(library.sample_stop()):
        library.sample_name(index, name, ctypes.c_size_t(256))
        found[name.value.decode()] += 1
    return median(times), found


def by_library(nanoseconds, found):
    """Nanoseconds of a call by library, most first."""
    libraries = Counter()
    for name, count in found.items():
        libraries[name.split(" ")[0]] += count
    total = max(1, sum(libraries.values()))
    return {name: round(nanoseconds * count / total, 1) for name, count in libraries.most_common()}


def main():
    """Sample, print and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sampler", required=True, help="sample.c, compiled as a library")
    parser.add_argument("--raw", help="raw.c, compiled as a library; floor.c beside it")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    library, device = ctypes.CDLL(options.sampler), gg.current_device()
    stream, other = gg.Stream(device, nonblocking=True), gg.Stream(device, nonblocking=True)
    names, results = names_for(device, stream), {}
    baseline, reason = open_baseline(options.raw, device)
    if baseline:
        baseline.stay()
        baseline.use(other, Arrays(device, 1 << 20))
        names |= floor_names(baseline)
    for row in (row for row in SMALL if row.name in ROWS):
        sides = {"gpuglue": (row.statement, stream)}
        if names.get("floor"):
            sides["floor"] = (row.floor, other)
        for side, (statement, on) in sides.items():
            nanoseconds, found = sampled(library, statement, names, on.synchronize, options.seconds)
            shares = by_library(nanoseconds, found)
            results[f"{row.name}, {side}"] = {"ns": nanoseconds, "samples": sum(found.values()), "libraries": shares, "functions": dict(found.most_common(60))}
            print(f"{row.name}, {side}: {nanoseconds:.0f} ns, {sum(found.values())} samples:",
                  ", ".join(f"{name} {value:.0f}" for name, value in list(shares.items())[:7]))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"device": device.name, "rows": results, "no_baseline": reason}, indent=1))


if __name__ == "__main__":
    main()
