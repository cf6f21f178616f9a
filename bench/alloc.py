"""Allocate and close: by size, and by how many blocks live; gpuglue beside the driver's own calls."""

import argparse
import json
from pathlib import Path

import gpuglue as gg
from floor import open_floor
from timing import SLOW_BURSTS, bursts_of, in_turn, loop_overhead, spread

KIB, MIB = 1 << 10, 1 << 20
SIZES = [1, 256, 4 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB]
LIVE = [1, 100, 10_000, 100_000]
TARGET = 300  # nanoseconds, at any size and number


def sides_of(nbytes, device, floor):
    """Pairs of calls of one size: the driver's, where there is a floor, and gpuglue's."""
    gg.alloc(nbytes, device).close()  # from the driver, once
    sides = {"gpuglue": bursts_of("alloc(nbytes, device).close()",
                                  {"alloc": gg.alloc, "device": device, "nbytes": nbytes})}
    if floor is None:
        return sides
    run = floor.bursts_of("alloc_free")

    def raw(count):
        floor.allocate(nbytes)
        return run(count)

    return {"raw": raw, **sides}


def measure(sizes, device, floor, rounds):
    """Size → side → nanoseconds of one pair of calls; all sizes in turn, so that they meet the same machine."""
    runs = {(nbytes, side): run for nbytes in sizes for side, run in sides_of(nbytes, device, floor).items()}
    rows = {}
    for (nbytes, side), times in in_turn(runs, rounds, SLOW_BURSTS).items():
        rows.setdefault(str(nbytes), {})[side] = spread(times)
    return rows


def by_number(device, floor, rounds, most):
    """A row for each number of live blocks: small ones, so that 100 000 of them fit anywhere."""
    rows, live = {}, []
    for count in (count for count in LIVE if count <= most):
        live += [gg.alloc(256, device) for _ in range(count - len(live))]
        measured = measure([256, MIB], device, floor, rounds)
        rows |= {f"{nbytes} beside {count}": sides for nbytes, sides in measured.items()}
    return rows


def show(title, rows):
    """One table."""
    first = next(iter(rows.values()))["gpuglue"]["median"]
    print(f"\n== {title}\n  {'bytes':24}{'raw ns':>12}{'gpuglue ns':>12}{'flat':>8}")
    for name, sides in rows.items():
        own = sides["gpuglue"]["median"]
        raw = f"{sides['raw']['median']:12.0f}" if "raw" in sides else f"{'':12}"
        verdict = "" if own <= TARGET else f"  above {TARGET} ns"
        print(f"  {name:24}{raw}{own:12.0f}{own / first:8.2f}{verdict}")


def main():
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raw", help="raw.c, compiled as a library")
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--device", help="such as cuda:0; else the current one")
    parser.add_argument("--quick", action="store_true", help="few rounds and blocks: to see that it runs")
    options = parser.parse_args()
    device = gg.Device(options.device)
    floor, why = open_floor(options.raw, device)
    if floor:
        floor.stay()
    print(f"{device}" + ("" if floor else f"; no floor: {why}"))
    rounds = 2 if options.quick else 20
    tables = {
        "alloc + close, by size": measure(SIZES, device, floor, rounds),
        "alloc + close, by live blocks": by_number(device, floor, rounds, 100 if options.quick else LIVE[-1]),
    }
    if floor:
        floor.close()
    for title, rows in tables.items():
        show(title, rows)
    print(f"\nThe loop itself: {loop_overhead():.0f} ns per turn, taken off nothing.")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"device": str(device), **tables}, indent=1))


if __name__ == "__main__":
    main()
