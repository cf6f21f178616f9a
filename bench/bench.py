"""gpuglue against the driver alone, in turn and in one process: a table, and JSON.

    python bench.py [--raw LIBRARY] [--json FILE] [--device NAME] [--quick] [--no-peers]

The floor is raw.c, compiled. Where it is missing, or there is no CUDA, the table has gpuglue's figures only.
"""

import argparse
import json
import platform
import sys
from pathlib import Path

import gpuglue as gg

from floor import open_floor
from footprint import cached_module_cost, import_cost, wheel_size
from peers import measure_peers
from rows import BULK, BULKS, MIB, NOTES, SMALL, Arrays, measure_stream, streams_of
from timing import loop_overhead

TREE = Path(__file__).resolve().parents[1]


def target_of(row, floor, measured):
    """The most nanoseconds a row may take, or None."""
    if row.limit:
        return row.limit
    if row.beside:
        return medians(measured[row.beside])[1] + row.plus
    if floor is None or not (row.plus or row.times):
        return None
    return floor + row.plus if row.plus else floor * row.times


def medians(figures):
    """The floor, or None, and gpuglue."""
    return figures.get("raw", {}).get("median"), figures["gpuglue"]["median"]


def judge(measured):
    """Write each row's target beside its figures, and whether it is reached."""
    for row in (row for row in SMALL if row.name in measured["ns"]):
        floor, own = medians(measured["ns"][row.name])
        target = target_of(row, floor, measured["ns"])
        measured["ns"][row.name] |= {"target": target, "reached": None if target is None else own <= target}
    for row in BULKS:
        floor, own = medians(measured["gbps"][row.name])
        target = floor * row.share if floor and row.share else None
        measured["gbps"][row.name] |= {"target": target, "reached": None if target is None else own >= target}
    return measured


def verdict(reached):
    """The last column."""
    return {True: "ok", False: "MISSED", None: ""}[reached]


def number(value, digits=0):
    """A figure, or a dash."""
    return "-" if value is None else f"{value:.{digits}f}"


def line_of(name, figures, digits):
    """What both tables say of a row, and whether it reached its target."""
    floor, own = medians(figures)
    ratio, more = (own / floor, own - floor) if floor else (None, None)
    return (f"  {name:26}{number(floor, digits):>9}{number(own, digits):>9}{number(more, digits):>9}"
            f"{number(ratio, 2):>7}{number(figures['target'], digits):>9}  {verdict(figures['reached']):7}")


def show(line, reached, missed):
    """Print a line and keep it if it misses its target."""
    print(line.rstrip())
    if reached is False:
        missed.append(line.strip())


def show_stream(kind, result, peers, missed):
    """The tables for one kind of stream."""
    measured = result["streams"][kind]
    peer_names = "".join(f"{name:>11}" for name in peers)
    print(f"\n== {kind} stream")
    head = f"  {'ns per call':26}{'raw':>9}{'gpuglue':>9}{'more':>9}{'ratio':>7}{'target':>9}  {'':7}"
    print((head + peer_names).rstrip())
    for row in (row for row in SMALL if row.name in measured["ns"]):
        figures = measured["ns"][row.name]
        others = "".join(f"{number(peer.get(row.name)):>11}" for peer in peers.values())
        show(line_of(row.name + row.note, figures, 0) + others, figures["reached"], missed)
    print(f"  GB/s, {result['bulk_bytes'] // MIB} MiB")
    for row in BULKS:
        figures = measured["gbps"][row.name]
        show(line_of(row.name, figures, 2), figures["reached"], missed)


def show_footprint(result, missed):
    """Import time, memory, size of the wheel."""
    cost, size = result["import"], result["wheel_bytes"]
    rows = [("import gpuglue, ms", cost["ms"], 15), ("  MiB over bare Python", cost["mib"], 15)]
    rows += [("wheel, MB", size / 1e6, 1)] if size else []
    rows += [("SourceModule from the cache, ms", result["cached_module_ms"], 2)] if result["cached_module_ms"] else []
    print("\n== footprint")
    for name, value, target in rows:
        reached = value <= target
        show(f"  {name:44}{value:9.2f}{target:>16}  {verdict(reached)}", reached, missed)
    print(f"  NumPy loaded by it: {'yes: MISSED' if cost['numpy'] else 'no'}")


def measure(options):
    """All figures, as they go into the JSON."""
    device = gg.Device(options.device) if options.device else gg.current_device()
    versions = f"Python {platform.python_version()}, gpuglue {gg.__version__}"
    print(f"{device.backend}:{device.ordinal} {device.name}, {versions}")
    nbytes = BULK if not options.quick else 16 * MIB
    arrays = Arrays(device, nbytes)
    floor, reason = open_floor(options.raw, device)
    if floor and not options.nothing_current:
        floor.stay()
    streams = {
        kind: judge(measure_stream(arrays, device, stream, floor, options.quick))
        for kind, stream in streams_of(device).items()
    }
    if floor:
        floor.close()
    with device:
        cached, why_not = cached_module_cost()
    return {
        "device": device.name, "backend": device.backend, "python": platform.python_version(),
        "gpuglue_version": gg.__version__, "loop_ns": loop_overhead(), "bulk_bytes": nbytes,
        "driver": floor.driver if floor else None, "no_floor": reason, "streams": streams,
        "import": import_cost("import gpuglue", 3 if options.quick else 15), "wheel_bytes": wheel_size(TREE),
        "cached_module_ms": cached, "no_module": why_not,
    }


def main():
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raw", help="raw.c, compiled as a library")
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--device", help="such as cuda:0; else the current one")
    parser.add_argument("--quick", action="store_true", help="few bursts and small copies: to see that it runs")
    parser.add_argument("--nothing-current", action="store_true",
                        help="leave the thread without a current context, which the legacy stream costs two calls")
    parser.add_argument("--no-peers", action="store_true", help="do not import CuPy, torch and cuda.core")
    options = parser.parse_args()
    missed = []
    result = measure(options)
    result["peers"], absent = ({}, {}) if options.no_peers else measure_peers()
    for kind in result["streams"]:
        show_stream(kind, result, result["peers"] if kind == "nonblocking" else {}, missed)
    show_footprint(result, missed)
    print(f"\nloop: {result['loop_ns']:.1f} ns per call, part of each figure of gpuglue and taken off none")
    for mark, text in NOTES.items():
        print(f"{mark} {text}")
    if result["no_floor"]:
        print("no floor, gpuglue's side alone:", result["no_floor"])
    if result["no_module"]:
        print("no SourceModule:", result["no_module"])
    for name, reason in absent.items():
        print(f"not compared with {name}: {reason}")
    print(f"{len(missed)} targets missed" if missed else "no target missed")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
