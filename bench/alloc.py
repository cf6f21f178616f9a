"""Allocate and close: by size, by number of live blocks, and with GPUGLUE_ALLOCATOR=async; gpuglue and the driver's own calls."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import gpuglue as gg
from baseline import open_baseline
from timing import SLOW_BURSTS, bursts_of, in_turn, loop_overhead, spread
from verdict import MISSED, NOISY, OK, rounds_of, verdict

KIB, MIB = 1 << 10, 1 << 20
SIZES = [1, 256, 4 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB]
LIVE = [1, 100, 10_000, 100_000, 1_000_000]
TARGET = 300  # nanoseconds, at any size and number


def sides_of(nbytes, device, baseline):
    """Pairs of calls of one size: gpuglue's and, with a baseline, the driver's."""
    gg.alloc(nbytes, device).close()  # from the driver, once
    sides = {"gpuglue": bursts_of("alloc(nbytes, device).close()",
                                  {"alloc": gg.alloc, "device": device, "nbytes": nbytes})}
    if baseline is None:
        return sides
    run = baseline.bursts_of("alloc_free")

    def raw(count):
        baseline.allocate(nbytes)
        return run(count)

    return {"raw": raw, **sides}


def async_sides_of(nbytes, stream, baseline):
    """The same from the driver's own pool, on a stream that both share."""
    own = bursts_of("alloc(nbytes, device, stream).close()",
                    {"alloc": gg.alloc, "device": stream.device, "nbytes": nbytes, "stream": stream}, stream.synchronize)
    if baseline is None:
        return {"gpuglue": own}
    run = baseline.bursts_of("alloc_free_async")

    def raw(count):
        baseline.allocate(nbytes)
        return run(count)

    return {"raw": raw, "gpuglue": own}


def measure(sides_of_sizes, rounds, target=TARGET):
    """Size → side → nanoseconds of one pair of calls; all sizes alternate, so that noise affects all of them."""
    runs = {(nbytes, side): run for nbytes, sides in sides_of_sizes.items() for side, run in sides.items()}
    rows = {}
    for (nbytes, side), times in in_turn(runs, rounds, SLOW_BURSTS).items():
        rows.setdefault(str(nbytes), {})[side] = spread(times)
        if side == "gpuglue" and target:
            rows[str(nbytes)]["result"] = verdict([t - target for t in rounds_of(times, SLOW_BURSTS)])
    return rows


def by_size(sizes, device, baseline, rounds):
    """A row for each size."""
    return measure({nbytes: sides_of(nbytes, device, baseline) for nbytes in sizes}, rounds)


def by_number(device, baseline, rounds, most):
    """A row for each number of live blocks: small ones, so that a million of them fits on any device."""
    rows, live = {}, []
    for count in (count for count in LIVE if count <= most):
        live += [gg.alloc(256, device) for _ in range(count - len(live))]
        measured = by_size([256, MIB], device, baseline, rounds)
        rows |= {f"{nbytes} beside {count}": sides for nbytes, sides in measured.items()}
    return rows


def async_rows(device, baseline, rounds):
    """A row for each size, in a process whose GPUGLUE_ALLOCATOR is async; without a target. Or {"absent": the reason}."""
    stream = gg.Stream(device, nonblocking=True)
    if baseline:
        baseline.use(stream, None)
    try:
        gg.alloc(MIB, device, stream).close()
    except gg.UnsupportedError as error:
        return {"absent": str(error)}
    return measure({nbytes: async_sides_of(nbytes, stream, baseline) for nbytes in SIZES}, rounds, target=None)


def async_process(options):
    """The same in a new process: the variable is read when a device is first used."""
    command = [sys.executable, __file__, "--async-rows", *(["--quick"] if options.quick else [])]
    for name in ("raw", "device"):
        command += [f"--{name}", getattr(options, name)] if getattr(options, name) else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "GPUGLUE_ALLOCATOR": "async"})
    return json.loads(done.stdout)


def show(title, rows):
    """Print one table."""
    first = next(iter(rows.values()))["gpuglue"]["median"]
    print(f"\n== {title}\n  {'bytes':24}{'raw ns':>12}{'gpuglue ns':>12}{'flat':>8}")
    for name, sides in rows.items():
        own = sides["gpuglue"]["median"]
        raw = f"{sides['raw']['median']:12.0f}" if "raw" in sides else f"{'':12}"
        result = {None: "", OK: "", MISSED: f"  above {TARGET} ns", NOISY: f"  {NOISY}"}[sides.get("result")]
        print(f"  {name:24}{raw}{own:12.0f}{own / first:8.2f}{result}")


def tables_of(options, device, baseline, rounds):
    """Title → rows, of this process and of one with the other allocator."""
    tables = {
        "alloc + close, by size": by_size(SIZES, device, baseline, rounds),
        "alloc + close, by live blocks": by_number(device, baseline, rounds, 100 if options.quick else LIVE[-1]),
    }
    found = async_process(options)
    if "absent" in found:
        print(f"no rows of GPUGLUE_ALLOCATOR=async: {found['absent']}")
        return tables
    return {**tables, "alloc + close, GPUGLUE_ALLOCATOR=async": found}


def main():
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raw", help="raw.c, compiled as a library")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--device", help="such as cuda:0; default: the current device")
    parser.add_argument("--quick", action="store_true", help="few rounds and blocks: only to check that it runs")
    parser.add_argument("--async-rows", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    device = gg.Device(options.device)
    baseline, reason = open_baseline(options.raw, device)
    if baseline:
        baseline.stay()
    rounds = 2 if options.quick else 20
    if options.async_rows:
        print(json.dumps(async_rows(device, baseline, rounds)))
        return
    print(f"{device}" + ("" if baseline else f"; no baseline: {reason}"))
    tables = tables_of(options, device, baseline, rounds)
    if baseline:
        baseline.close()
    for title, rows in tables.items():
        show(title, rows)
    print(f"\nThe loop itself takes {loop_overhead():.0f} ns per iteration; it is not subtracted.")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"device": str(device), **tables}, indent=1))


if __name__ == "__main__":
    main()
