"""gpuglue against the driver alone, in one run: a table, and JSON.

    python bench.py [--raw PROGRAM] [--json FILE] [--device NAME] [--quick] [--no-peers]

The floor is raw.c, compiled. Where it is missing, or finds no driver, the table has gpuglue's figures only.
"""

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path

import gpuglue as gg

from footprint import import_cost, wheel_size
from peers import measure_peers
from rows import BULK, BULKS, MIB, SMALL, Arrays, measure_bulk, measure_small, streams_of
from timing import loop_overhead

TREE = Path(__file__).resolve().parents[1]


def measure_floor(program, device):
    """What raw.c prints, or {"error": why there is nothing}."""
    if device.backend != "cuda":
        return {"error": f"raw.c speaks to CUDA only, this is {device.backend}"}
    if not program or not Path(program).exists():
        return {"error": "raw.c was not compiled"}
    done = subprocess.run([program, str(device.ordinal)], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip()}


def target_of(row, floor):
    """The most nanoseconds a row may take, or None."""
    if row.limit:
        return row.limit
    if floor is None or not (row.plus or row.times):
        return None
    return floor + row.plus if row.plus else floor * row.times


def verdict(reached):
    """The last column."""
    return {True: "ok", False: "MISSED", None: ""}[reached]


def number(value, digits=0):
    """A figure, or a dash."""
    return "-" if value is None else f"{value:.{digits}f}"


def small_lines(figures, floors, peers):
    """Lines of the table of calls."""
    for row in SMALL:
        own, floor = figures[row.name], floors.get(row.floor)
        target = target_of(row, floor)
        reached = None if target is None else own <= target
        ratio, more = (own / floor, own - floor) if floor else (None, None)
        others = "".join(f"{number(peer.get(row.name)):>11}" for peer in peers.values())
        yield (f"  {row.name:26}{number(floor):>9}{number(own):>9}{number(more):>9}{number(ratio, 2):>7}"
               f"{number(target):>9}  {verdict(reached):7}{others}"), reached


def bulk_lines(figures, floors):
    """Lines of the table of bandwidths."""
    for name, floor_name, _, share in BULKS:
        own, floor = figures[name], floors.get(floor_name)
        target = floor * share if floor and share else None
        reached = None if target is None else own >= target
        yield (f"  {name:26}{number(floor, 2):>9}{number(own, 2):>9}{'':>9}"
               f"{number(own / floor if floor else None, 2):>7}{number(target, 2):>9}  {verdict(reached)}"), reached


def show(lines, missed):
    """Print lines and count those that miss their target."""
    for line, reached in lines:
        print(line)
        missed.append(line.strip()) if reached is False else None


def show_stream(kind, result, peers, missed):
    """The tables for one kind of stream."""
    floors = result["floor"].get(kind, {})
    peer_names = "".join(f"{name:>11}" for name in peers)
    print(f"\n== {kind} stream")
    print(f"  {'ns per call':26}{'raw':>9}{'gpuglue':>9}{'more':>9}{'ratio':>7}{'target':>9}  {'':7}{peer_names}")
    show(small_lines(result["gpuglue"][kind], floors, peers), missed)
    print(f"  GB/s, {result['bulk_bytes'] // MIB} MiB")
    show(bulk_lines(result["gpuglue"][kind], floors), missed)


def show_footprint(result, missed):
    """Import time, memory, size of the wheel."""
    cost, size = result["import"], result["wheel_bytes"]
    rows = [("import gpuglue, ms", cost["ms"], 15), ("  MiB over bare Python", cost["mib"], 15)]
    rows += [("wheel, MB", size / 1e6, 1)] if size else []
    print("\n== footprint")
    lines = ((f"  {name:44}{value:9.2f}{target:>16}  {verdict(value <= target)}", value <= target)
             for name, value, target in rows)
    show(lines, missed)
    print(f"  NumPy loaded by it: {'yes: MISSED' if cost['numpy'] else 'no'}")


def measure(options):
    """All figures, as they go into the JSON."""
    device = gg.Device(options.device) if options.device else gg.current_device()
    print(f"{device.backend}:{device.ordinal} {device.name}, Python {platform.python_version()}, gpuglue {gg.__version__}")
    nbytes = BULK if not options.quick else 16 * MIB
    arrays, scale = Arrays(device, nbytes), 0.05 if options.quick else 1
    figures = {
        kind: {**measure_small(device, stream, scale), **measure_bulk(arrays, stream)}
        for kind, stream in streams_of(device).items()
    }
    return {
        "device": device.name, "backend": device.backend, "python": platform.python_version(),
        "gpuglue_version": gg.__version__, "loop_ns": loop_overhead(), "bulk_bytes": nbytes,
        "gpuglue": figures, "floor": measure_floor(options.raw, device),
        "import": import_cost("import gpuglue", 3 if options.quick else 15), "wheel_bytes": wheel_size(TREE),
    }


def main():
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raw", help="raw.c, compiled")
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--device", help="such as cuda:0; else the current one")
    parser.add_argument("--quick", action="store_true", help="few bursts and small copies: to see that it runs")
    parser.add_argument("--no-peers", action="store_true", help="do not import CuPy, torch and cuda.core")
    options = parser.parse_args()
    missed = []
    result = measure(options)
    result["peers"], absent = ({}, {}) if options.no_peers else measure_peers()
    for kind in result["gpuglue"]:
        show_stream(kind, result, result["peers"] if kind == "nonblocking" else {}, missed)
    show_footprint(result, missed)
    print(f"\nloop: {result['loop_ns']:.1f} ns per call, part of each figure of gpuglue and taken off none")
    if "error" in result["floor"]:
        print("no floor:", result["floor"]["error"])
    for name, reason in absent.items():
        print(f"not compared with {name}: {reason}")
    print(f"{len(missed)} targets missed" if missed else "no target missed")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
