"""Compare gpuglue with the driver alone, in alternation and in several new processes: a table, and JSON.

    python bench.py [--raw LIBRARY] [--json FILE] [--device NAME] [--processes 8] [--quick] [--no-peers]

The baseline is raw.c, compiled. Without it, or without CUDA, the table has only gpuglue's figures. Each process makes a part of the
rounds. A figure is the median of the processes, and a target is judged by them: the rows that are too noisy to say are measured in more processes.
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
from peers import AGAINST, against_cuda_core, measure_peers
from processes import figures_of, given, result_of
from rows import BULK, BULKS, MIB, NOTES, SHARED, SMALL, Arrays, measure_stream, streams_of
from timing import BESIDE, loop_overhead, plans_of
from verdict import MISSED, NOISY, OK, RUNS, summary, verdict

TREE = Path(__file__).resolve().parents[1]
PROCESSES = 8
OWN_BESIDE = "own" + BESIDE
WITH_CUDA_CORE = "against cuda.core"  # beside the kinds of streams
ROW_OF = {WITH_CUDA_CORE: {row.name: row for row in AGAINST}, "ns": {row.name: row for row in SMALL}, "gbps": {row.name: row for row in BULKS}}


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


# ---- what one process measures ----


def measure_beside(arrays, device, streams, baseline, plan, runs=1, chosen=SHARED):
    """The parts of the chosen rows while a second process works on the device, and the rounds and seconds of that process."""
    with Neighbour(device) as neighbour:
        parts = measure_stream(arrays, device, streams, baseline, plan, runs, chosen)
    return parts, neighbour.done


def size_of_copies(options, only):
    """Bytes of the large arrays: few in a process that measures none of the large copies."""
    copies = only is None or any(name in ROW_OF["gbps"] for names in only.values() for name in names)
    return 16 * MIB if options.quick else BULK if copies else MIB


def device_of(options):
    """The device that is measured."""
    return gg.Device(options.device) if options.device else gg.current_device()


def measure_here(options, processes, runs=1, only=None):
    """What this process, one of several, measures. `tables` has table → unit → row → parts: a table is a kind of stream, or WITH_CUDA_CORE.
    `only`: table → names of rows; all other rows are left out."""
    device, (plan, beside_plan) = device_of(options), plans_of(options.quick, processes)
    arrays = Arrays(device, size_of_copies(options, only))
    baseline, reason = open_baseline(options.raw, device, options.driver)
    if baseline and not options.nothing_current:
        baseline.stay()
    kinds = {kind: streams for kind, streams in streams_of(device).items() if not options.streams or kind in options.streams}
    chosen = only if only is not None else dict.fromkeys(kinds) | {OWN_BESIDE: SHARED, WITH_CUDA_CORE: None}
    tables = {kind: measure_stream(arrays, device, pair, baseline, plan, runs, chosen[kind]) for kind, pair in kinds.items() if kind in chosen}
    done = why_not = None
    if "own" in kinds and OWN_BESIDE in chosen:
        tables[OWN_BESIDE], done = measure_beside(arrays, device, kinds["own"], baseline, beside_plan, runs, chosen[OWN_BESIDE])
    if baseline:
        baseline.close()
    if WITH_CUDA_CORE in chosen and not options.no_peers:
        rows, why_not = against_cuda_core(device, plan, runs, chosen[WITH_CUDA_CORE])
        tables[WITH_CUDA_CORE] = {"ns": rows}
    return {"device": device.name, "backend": device.backend, "name": f"{device.backend}:{device.ordinal}", "bulk_bytes": arrays.nbytes,
            "driver": baseline.driver if baseline else None, "no_baseline": reason, "no_cuda_core": why_not, "neighbour": done, "tables": tables}


# ---- what all processes have measured ----


def figures_of_tables(tables, alone):
    """The same tables with the figures of each row instead of its parts."""
    return {table: {unit: {row: figures_of(ROW_OF.get(table, ROW_OF[unit])[row], parts, alone) for row, parts in rows.items()}
                    for unit, rows in units.items()} for table, units in tables.items()}


def unsettled(figures):
    """Table → the names of its rows that are too noisy to say."""
    found = {table: [row for rows in units.values() for row, sides in rows.items() if sides["result"] == NOISY]
             for table, units in figures.items()}
    return {table: rows for table, rows in found.items() if rows}


def add_parts(tables, more):
    """Add the parts of one more process to those of others."""
    for table, units in more.items():
        for unit, rows in units.items():
            for row, parts in rows.items():
                tables.setdefault(table, {}).setdefault(unit, {}).setdefault(row, []).extend(parts)


def one_more(options, only):
    """The result of a new process."""
    wanted = ["--only", json.dumps(only)] if only is not None else []
    return result_of(__file__, "--part", *wanted, *given(options, "processes", "raw", "driver", "device", "quick", "nothing-current", "streams",
                                                        "no-peers"))


def measure_in_processes(options):
    """The first process's result, with the figures of all. More processes measure the rows that are too noisy to say, in further sets."""
    first, tables, only = None, {}, None
    for _ in range(1 if options.quick else options.sets):
        for _ in range(options.processes):
            found = one_more(options, only)
            first = first or found
            add_parts(tables, found["tables"])
        figures = figures_of_tables(tables, alone=False)
        only = unsettled(figures)
        if not only:
            break
    return {**first, "tables": figures}


def measure_tables(options):
    """The tables of calls and copies, in this process or in several new ones."""
    if options.processes > 1:
        return measure_in_processes(options)
    found = measure_here(options, 1, 1 if options.quick else options.sets)
    return {**found, "tables": figures_of_tables(found["tables"], alone=True)}


def measure(options):
    """All figures, as the JSON has them."""
    found = measure_tables(options)
    versions = f"Python {platform.python_version()}, gpuglue {gg.__version__}"
    print(f"{found['name']} {found['device']}, {versions}, {options.processes} processes")
    with gg.Device(found["name"]):
        cached, why_not = cached_module_cost()
    tables = found.pop("tables")
    against = tables.pop(WITH_CUDA_CORE, {"ns": {}})
    return {
        **found, "python": platform.python_version(), "gpuglue_version": gg.__version__, "processes": options.processes,
        "loop_ns": loop_overhead(), "streams": tables, WITH_CUDA_CORE: against["ns"],
        "import": import_cost("import gpuglue", 3 if options.quick else 15), "wheel_bytes": wheel_size(TREE),
        "cached_module_ms": cached, "no_module": why_not,
    }


def parsed():
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raw", help="raw.c, compiled as a library")
    parser.add_argument("--driver", help="CUDA's driver for the baseline, where the hip backend runs on it through tests/shim")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--device", help="such as cuda:0; default: the current device")
    parser.add_argument("--processes", type=int, help=f"how many new processes measure; 1: this one (default: {PROCESSES}, with --quick 1)")
    parser.add_argument("--sets", type=int, default=RUNS, help="how many sets of processes at most, where rows are too noisy to say")
    parser.add_argument("--quick", action="store_true", help="few bursts and small copies: only to check that it runs")
    parser.add_argument("--nothing-current", action="store_true",
                        help="measure without a current context, which costs two more calls on the legacy stream")
    parser.add_argument("--streams", nargs="*", help="only these kinds, of own, nonblocking, blocking and legacy")
    parser.add_argument("--no-peers", action="store_true", help="do not import CuPy, torch and cuda.core")
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)  # one of several processes
    parser.add_argument("--only", type=json.loads, help=argparse.SUPPRESS)  # the rows of a part
    options = parser.parse_args()
    options.processes = options.processes or (1 if options.quick else PROCESSES)
    return options


def main():
    """Measure, print, and write the JSON."""
    options = parsed()
    if options.part:
        print(json.dumps(measure_here(options, options.processes, only=options.only)))
        return 0
    report = Report()
    result = measure(options)
    result["peers"], absent = ({}, {}) if options.no_peers else measure_peers()
    for kind in result["streams"]:
        show_stream(kind, result, result["peers"] if kind == "own" else {}, report)
    show_against(result[WITH_CUDA_CORE], report)
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
