"""Compare gpuglue with the driver alone, in alternation and in one process: a table, and JSON.

    python bench.py [--raw LIBRARY] [--json FILE] [--device NAME] [--quick] [--no-peers]

The baseline is raw.c, compiled. Without it, or without CUDA, the table has only gpuglue's figures.
"""

import argparse
import json
import platform
import sys
from pathlib import Path
from statistics import median

import gpuglue as gg

from baseline import open_baseline
from footprint import cached_module_cost, import_cost, wheel_size
from neighbour import Neighbour
from peers import against_cuda_core, measure_peers
from rows import BULK, BULKS, MIB, NOTES, SHARED, SMALL, Arrays, measure_stream, streams_of
from timing import BESIDE, ROUNDS, loop_overhead
from verdict import MISSED, NOISY, OK, summary, verdict

TREE = Path(__file__).resolve().parents[1]


def medians(figures):
    """The medians of the baseline (or None) and of gpuglue."""
    return figures.get("raw", {}).get("median"), figures["gpuglue"]["median"]


def result_text(result):
    """The last column."""
    return {OK: "ok", MISSED: "MISSED", NOISY: "noisy", None: ""}[result]


def number(value, digits=0):
    """Format a figure; None is a dash."""
    return "-" if value is None else f"{value:.{digits}f}"


def line_of(name, figures, digits):
    """Format the columns that both tables share."""
    baseline, own = medians(figures)
    base = figures.get("beside", {}).get("median") or baseline  # what the target counts from
    ratio, more = (own / base, own - base) if base else (None, None)
    floor = figures.get("floor", {}).get("median")
    return (f"  {name:26}{number(baseline, digits):>9}{number(floor, digits):>9}{number(own, digits):>9}{number(more, digits):>9}"
            f"{number(ratio, 2):>7}{number(figures['target'], digits):>9}  {result_text(figures['result']):7}")


class Report:
    """Prints lines, and keeps the results of all rows."""

    def __init__(self):
        self.results, self.missed = [], []

    def show(self, line, result):
        """Print a line with its result, a word of verdict.py, or None."""
        print(line.rstrip())
        self.results.append(result)
        if result == MISSED:
            self.missed.append(" ".join(line.split()))

    def end(self):
        """Print how many targets were reached, and the rows that missed theirs."""
        print(summary(self.results))
        for line in self.missed:
            print("missed:", line)


def show_stream(kind, result, peers, report):
    """Print the tables of one kind of stream."""
    measured = result["streams"][kind]
    peer_names = "".join(f"{name:>11}" for name in peers)
    print(f"\n== {kind.removesuffix(BESIDE)} stream{BESIDE if kind.endswith(BESIDE) else ''}")
    head = f"  {'ns per call':26}{'raw':>9}{'floor':>9}{'gpuglue':>9}{'more':>9}{'ratio':>7}{'target':>9}  {'':7}"
    print((head + peer_names).rstrip())
    for row in (row for row in SMALL if row.name in measured["ns"]):
        figures = measured["ns"][row.name]
        others = "".join(f"{number(peer.get(row.name)):>11}" for peer in peers.values())
        report.show(line_of(row.name + row.note, figures, 0) + others, figures["result"])
    print(f"  GB/s, {result['bulk_bytes'] // MIB} MiB")
    for row in (row for row in BULKS if row.name in measured["gbps"]):
        figures = measured["gbps"][row.name]
        report.show(line_of(row.name, figures, 2), figures["result"])


def show_against(rows, report):
    """Print the rows whose target is cuda.core's figure."""
    if rows:
        print(f"\n== beside cuda.core, in alternation\n  {'ns per call':26}{'cuda.core':>11}{'gpuglue':>9}")
    for name, figures in rows.items():
        line = f"  {name:26}{figures['cuda.core']['median']:11.0f}{figures['gpuglue']['median']:9.0f}"
        report.show(f"{line}  {result_text(figures['result'])}", figures["result"])


def show_footprint(result, report):
    """Print import time, memory, and size of the wheel."""
    cost, size, cached = result["import"], result["wheel_bytes"], result["cached_module_ms"]
    rows = [("import gpuglue, ms", cost["ms"], 15), ("  MiB more than Python alone", cost["mib"], 15)]
    rows += [("SourceModule from the cache, ms", cached, 2)] if cached else []
    print("\n== footprint")
    for name, values, target in rows:
        found = verdict([value - target for value in values])
        report.show(f"  {name:44}{median(values):9.2f}{target:>16}  {result_text(found)}", found)
    if size:
        found = OK if size <= 1e6 else MISSED
        report.show(f"  {'wheel, MB':44}{size / 1e6:9.2f}{1:>16}  {result_text(found)}", found)
    report.show(f"  imports NumPy: {'yes: MISSED' if cost['numpy'] else 'no'}", MISSED if cost["numpy"] else OK)


def measure_beside(arrays, device, streams, baseline, quick):
    """The figures of SHARED while a second process works on the device, and the rounds and seconds of that process."""
    with Neighbour(device) as neighbour:
        figures = measure_stream(arrays, device, streams, baseline, quick, SHARED)
    return figures, neighbour.done


def measure(options):
    """All figures, as the JSON has them."""
    device = gg.Device(options.device) if options.device else gg.current_device()
    versions = f"Python {platform.python_version()}, gpuglue {gg.__version__}"
    print(f"{device.backend}:{device.ordinal} {device.name}, {versions}")
    nbytes = BULK if not options.quick else 16 * MIB
    arrays = Arrays(device, nbytes)
    baseline, reason = open_baseline(options.raw, device, options.driver)
    if baseline and not options.nothing_current:
        baseline.stay()
    kinds = {kind: streams for kind, streams in streams_of(device).items() if not options.streams or kind in options.streams}
    streams = {kind: measure_stream(arrays, device, pair, baseline, options.quick) for kind, pair in kinds.items()}
    beside = None
    if "own" in kinds:
        streams["own" + BESIDE], beside = measure_beside(arrays, device, kinds["own"], baseline, options.quick)
    if baseline:
        baseline.close()
    with device:
        cached, why_not = cached_module_cost()
    return {
        "device": device.name, "backend": device.backend, "python": platform.python_version(),
        "gpuglue_version": gg.__version__, "loop_ns": loop_overhead(), "bulk_bytes": nbytes,
        "driver": baseline.driver if baseline else None, "no_baseline": reason, "streams": streams, "neighbour": beside,
        "import": import_cost("import gpuglue", 3 if options.quick else 15), "wheel_bytes": wheel_size(TREE),
        "cached_module_ms": cached, "no_module": why_not,
    }


def main():
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raw", help="raw.c, compiled as a library")
    parser.add_argument("--driver", help="CUDA's driver for the baseline, where the hip backend runs on it through tests/shim")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--device", help="such as cuda:0; default: the current device")
    parser.add_argument("--quick", action="store_true", help="few bursts and small copies: only to check that it runs")
    parser.add_argument("--nothing-current", action="store_true",
                        help="measure without a current context, which costs two more calls on the legacy stream")
    parser.add_argument("--streams", nargs="*", help="only these kinds, of own, nonblocking, blocking and legacy")
    parser.add_argument("--no-peers", action="store_true", help="do not import CuPy, torch and cuda.core")
    options = parser.parse_args()
    report = Report()
    result = measure(options)
    result["peers"], absent = ({}, {}) if options.no_peers else measure_peers()
    if not options.no_peers and "cuda.core" not in absent:
        device = gg.Device(options.device) if options.device else gg.current_device()
        result["against cuda.core"], _ = against_cuda_core(device, 2 if options.quick else ROUNDS)
    for kind in result["streams"]:
        show_stream(kind, result, result["peers"] if kind == "own" else {}, report)
    show_against(result.get("against cuda.core", {}), report)
    show_footprint(result, report)
    print(f"\nloop: {result['loop_ns']:.1f} ns per call, included in each figure of gpuglue")
    for mark, text in NOTES.items():
        print(f"{mark} {text}")
    if result["no_baseline"]:
        print("no baseline, only gpuglue's figures:", result["no_baseline"])
    if result["no_module"]:
        print("no SourceModule:", result["no_module"])
    for name, reason in absent.items():
        print(f"not compared with {name}: {reason}")
    report.end()
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
