"""Make the tables of docs/performance.md from the JSON of the benchmarks.

    python report.py --collect DIRECTORY --machine TEXT    docs/performance.json, from bench.json, pageable.json … in DIRECTORY
    python report.py --write                               the tables in docs/performance.md, from docs/performance.json
    python report.py --check                               status 1 if they differ

A table stands between the lines `<!-- table: NAME -->` and `<!-- end of table -->`. A file that is absent from DIRECTORY keeps
its earlier figures.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from statistics import median

from timing import BESIDE

DOCS = Path(__file__).resolve().parents[1] / "docs"
FIGURES, PAGE = DOCS / "performance.json", DOCS / "performance.md"
MARKED = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)
STREAMS = {"own": "own", "blocking": "blocking", "nonblocking": "shared", "legacy": "default"}  # kinds of bench.py, and their names on the page
PEERS = {"CuPy": "cupy", "PyTorch": "torch", "cuda.core": "cuda.core"}
BULK = {"H2D pinned": "pinned, to the device", "D2H pinned": "pinned, to the host", "H2D pageable": "pageable, to the device",
        "D2H pageable": "pageable, to the host", "D2D": "within the device"}
IN_THREADS = ("C, sleeping threads", "C, spinning threads")  # of pageable.py

# Where the time of a call goes: the beginnings of the names of libraries.
PARTS = {"driver": ("libcuda", "libamdhip", "libnvidia"), "extension": ("_core", "floor"), "core": ("libgpuglue",), "plugin": ("gpuglue_",),
         "Python": ("libpython", "python"), "C library": ("libc.", "libc-", "libpthread", "ld-", "linux-vdso")}
OTHER = "other"


# ---- what is kept of the JSON ----


def only(sides, digits=1):
    """The medians of a row, and its result."""
    kept = {name: round(side["median"], digits) for name, side in sides.items() if isinstance(side, dict) and "median" in side
            and name != "excess"}
    return kept | {key: sides[key] for key in ("target", "result") if sides.get(key) is not None} | ({"absolute": True} if sides.get("absolute") else {})


def spread_of(sides, digits=1):
    """The worst and the best process of each side, if there were several."""
    found = {name: [round(side[key], digits) for key in ("worst", "best")] for name, side in sides.items() if isinstance(side, dict) and "worst" in side}
    return {"spread": found} if found and sides.get("processes", 1) > 1 else {}


def of_bench(found):
    """Of bench.json. The tables of few columns also have the worst and the best process."""
    streams = {kind: {unit: {row: only(sides, 2) | (spread_of(sides) if unit == "gbps" else {}) for row, sides in rows.items()}
                      for unit, rows in units.items()} for kind, units in found["streams"].items()}
    against = {row: only(sides) | spread_of(sides, 0) for row, sides in found.get("against cuda.core", {}).items()}
    return {"streams": streams, "peers": found.get("peers", {}), "against": against}


def of_pageable(found):
    """Of pageable.json: the median, the worst and the best process, and the results."""
    results = {row: {f"{direction} result": result for direction, result in sides.items()} for row, sides in found["results"].items()}
    return {row: {side: [round(value[key], 1) for key in ("median", "worst", "best")] for side, value in sides.items()}
            | results.get(row, {}) for row, sides in found["gbps"].items()}


def of_alloc(found):
    """Of alloc.json."""
    return {title: {row: only(sides, 0) for row, sides in rows.items()} for title, rows in found.items() if title != "device"}


def of_copies(found):
    """Of copies.json."""
    def rounded(rows):
        return {row: {side: round(value, 1) for side, value in sides.items()} for row, sides in rows.items()}

    largest = max(found["sizes"], key=int)
    before = {row: {side: value if side == "result" else round(value["median"], 1) for side, value in figures.items()}
              for row, figures in found.get("strided before", {}).items()}
    return {"strided": rounded(found["strided"]), **({"strided before": before} if before else {}), "get": [round(value, 1) for value in found["get"]],
            "mib": int(largest), "largest": rounded(found["sizes"][largest])}


def of_sample(found):
    """Of sample.json: for each call of each side the nanoseconds in each part, by the beginnings of the libraries' names."""
    rows = {}
    for row, sampled in found["rows"].items():
        parts = dict.fromkeys([*PARTS, OTHER], 0)
        for library, nanoseconds in sampled["libraries"].items():
            (part,) = [part for part, names in PARTS.items() if library.startswith(names)] or [OTHER]
            parts[part] += nanoseconds
        rows[row] = {"ns": round(sampled["ns"]), "samples": sampled["samples"], **{part: round(value) for part, value in parts.items()}}
    return rows


def of_graphs(found):
    """Of graphs.json."""
    return {"length": found["length"], "us": {side: {key: round(value, 2) for key, value in times.items()} for side, times in found["us"].items()},
            "results": found["results"]}


def of_fragmentation(found):
    """Of fragmentation.json."""
    keys = ("median", "worst", "used_gib", "us_per_call", "result")
    return {trace: {side: {key: round(row[key], 2) if key != "result" else row[key] for key in keys if key in row}
                    for side, row in rows.items() if "median" in row} for trace, rows in found["traces"].items()}


def of_host(found):
    """Of host.json."""
    keys = ("ratio", "worst", "best", "NumPy", "gpuglue", "result")
    return {row: {key: round(values[key], 3) if key != "result" else values[key] for key in keys}
            for row, values in found["rows"].items()}


def of_compat(found):
    """Of compat.json."""
    return {row: {key: value if key == "result" else round(value) for key, value in sides.items() if key != "more" and value is not None}
            for row, sides in found["ns"].items()}


def of_comm(found):
    """Of comm.json: the rows of each part."""
    results = found["results"]

    def rows(part):
        (found,) = [value for key, value in results.get(part, {}).items() if "(operation" in key] or [[]]
        return [row if part == "host" else row[:4] for row in found]  # without ratios

    peers = {key.removeprefix("host us: "): value for key, value in results.get("host", {}).items() if key.endswith(".distributed")}
    return {"ranks": found["ranks"], "bandwidth": rows("bandwidth"), "staged": rows("staged"), "host": rows("host"), **peers}


def of_gil(found):
    """Of gil.json: nanoseconds, and the share of its speed that the other thread keeps."""
    def kept(figures):
        ns = {"ns": [round(figures["ns"][key], 1) for key in ("median", "worst", "best")]}
        return ns | ({"kept": round(figures["kept"]["median"], 3)} if "kept" in figures else {})

    return {call: {condition: {side: kept(figures) for side, figures in sides.items()} for condition, sides in conditions.items()}
            for call, conditions in found["calls"].items()}


SOURCES = {"bench": of_bench, "pageable": of_pageable, "alloc": of_alloc, "copies": of_copies,
           "fragmentation": of_fragmentation, "host": of_host, "scale": dict, "graphs": of_graphs, "sample": of_sample, "compat": of_compat,
           "gil": of_gil, "bench-hip": of_bench, "comm-2": of_comm, "comm-4": of_comm, "host-comm-2": dict, "host-comm-4": dict}


def collect(directory, machine):
    """Write docs/performance.json."""
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    for name, keep in SOURCES.items():
        source = directory / f"{name}.json"
        if source.exists():
            figures[name] = {"machine": machine, "figures": keep(json.loads(source.read_text()))}
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")


# ---- the tables ----


def table(head, rows):
    """A table in Markdown: the first column, names of streams and results are text, all others figures."""
    marks = ["---"] + ["---" if name in ("stream", "target") else "--:" for name in head[1:]]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, marks, *rows]) + "\n"


def number(value, digits=0):
    """A figure, or an empty cell."""
    return "" if value is None else f"{value:.{digits}f}"


def with_spread(sides, side, digits=0):
    """A figure and, of several processes, the worst and the best: both in brackets."""
    if side not in sides.get("spread", {}):
        return number(sides.get(side), digits)
    worst, best = (number(value, digits) for value in sides["spread"][side])
    return f"{number(sides[side], digits)} [{worst}, {best}]"


def titled(title, rows):
    """The head of the first column, which also explains the brackets."""
    return f"{title}: median [worst, best]" if any("spread" in sides for sides in rows) else title


def with_floor(columns, rows, key):
    """Columns by head; before the last the floor's, if any row has a figure of it."""
    if not any(key in sides for sides in rows):
        return columns
    heads = list(columns)
    return {**{head: columns[head] for head in heads[:-1]}, "C from Python": key, heads[-1]: columns[heads[-1]]}


def own_rows(figures, unit):
    """The rows on a stream of gpuglue's own, then those beside another process, if they were measured."""
    shared = figures["streams"].get("own" + BESIDE, {unit: {}})[unit]
    return figures["streams"]["own"][unit] | {row + BESIDE: sides for row, sides in shared.items()}


def calls(figures):
    """The calls on a stream of gpuglue's own."""
    found, rows = own_rows(figures, "ns"), []
    own = with_floor({"raw C": "raw", "gpuglue": "gpuglue"}, found.values(), "floor")
    for row, sides in found.items():
        apart = {"cuda.core"} if row in figures["against"] else set()  # the table of `against` has them
        peers = ["" if key in apart else number(figures["peers"].get(key, {}).get(row)) for key in PEERS.values()]
        rows.append([row, *(number(sides.get(side)) for side in own.values()), *peers, sides.get("result", "")])
    return table(["ns per call", *own, *PEERS, "target"], rows)


def calls_alone(figures):
    """The same without other packages, and with the shim below the hip backend, if it was measured."""
    found = own_rows(figures, "ns")
    sides = {"raw C": "raw", "raw C, through the shim": "shim", "gpuglue": "gpuglue", "at most": "target"}
    sides = {head: key for head, key in sides.items() if any(key in row for row in found.values())}
    rows = [[row, *(number(values.get(key)) for key in sides.values()), values.get("result", "")] for row, values in found.items()]
    return table(["ns per call", *sides, "target"], rows)


def more_than(base, value):
    """How much more than the baseline a figure is, in nanoseconds and in percent; an empty cell without one."""
    return "" if None in (base, value) else f"{round(value - base)} ({round(100 * (value - base) / base)} %)"


def floors(figures, kinds):
    """The calls of these kinds of streams whose target counts from a baseline, beside the least that they cost from Python: those with
    a figure of it, and all others that are not ok."""
    found = {kind: figures["streams"][kind]["ns"] for kind in kinds if kind in figures["streams"]}
    rows = []
    for row in dict.fromkeys(row for rows in found.values() for row in rows):
        each = {kind: rows[row] for kind, rows in found.items() if "raw" in rows.get(row, {}) and "target" in rows[row]}
        if any("floor" in sides or sides["result"] != "ok" for sides in each.values()):
            rows += [[row, STREAMS[kind], *floor_cells(sides), sides["result"]] for kind, sides in each.items()]
    return table(["ns more than the baseline", "stream", "baseline", "at most", "C from Python", "C that asks", "gpuglue", "target"], rows)


def floor_cells(sides):
    """Baseline, target, C from Python, the same with a question to the driver, and gpuglue. A target that counts from another row counts
    from that of the same side; one that counts from nothing stands alone."""
    if sides.get("absolute"):
        return ["", f"{number(sides['target'])} in all", "", "", f"{number(sides['gpuglue'])} in all"]
    base = sides.get("beside", sides["raw"])
    floor = sides.get("floor beside", None if "beside" in sides else sides["raw"])
    return [number(base), more_than(base, sides["target"]), more_than(floor, sides.get("floor")),
            more_than(floor, sides.get("floor, asking")), more_than(base, sides["gpuglue"])]


def against(figures):
    """Rows whose target is cuda.core's figure."""
    found = figures["against"]
    rows = [[row, with_spread(sides, "cuda.core"), with_spread(sides, "gpuglue"), sides["result"]] for row, sides in found.items()]
    return table([titled("ns per call", found.values()), "cuda.core", "gpuglue", "target"], rows)


def bulk(figures):
    """Copies of 256 MiB."""
    found = own_rows(figures, "gbps")
    titles = BULK | {row + BESIDE: title + BESIDE for row, title in BULK.items()}
    rows = [[title, with_spread(found[row], "raw", 1), with_spread(found[row], "gpuglue", 1), found[row].get("result", "")]
            for row, title in titles.items() if row in found]
    return table([titled("GB/s, 256 MiB", found.values()), "raw C", "gpuglue", "target"], rows)


def pageable(figures, direction):
    """Pageable copies in new processes. The columns of C's threads and of pinned memory have only medians."""

    def cell(head, value):
        medians = head == "pinned" or head in IN_THREADS
        return "" if value is None else number(value[0], 1) if medians else f"{value[0]:.1f} [{value[1]:.1f}, {value[2]:.1f}]"

    judged = any(f"{direction} result" in sides for sides in figures.values())  # in earlier figures no row is
    columns = {"raw C": "raw", "C from Python": "floor", **{head: head for head in IN_THREADS}, "gpuglue": "gpuglue", "pinned": "pinned"}
    columns = {head: f"{direction} {side}" for head, side in columns.items()}
    columns = {head: key for head, key in columns.items()
               if head in ("raw C", "gpuglue", "pinned") or any(key in sides for sides in figures.values())}
    rows = [[row.replace("back to back", "in a row"), *(cell(head, sides.get(key)) for head, key in columns.items()),
             *([sides.get(f"{direction} result", "")] if judged else [])] for row, sides in figures.items()]
    return table(["GB/s: median [worst, best]", *columns, *(["target"] if judged else [])], rows)


def alloc(figures):
    """Allocations by size and by the number of live blocks."""
    rows = [[title.split(", ")[-1] + ": " + row, number(sides.get("raw")), number(sides["gpuglue"]), sides.get("result", "")]
            for title, found in figures.items() for row, sides in found.items()]
    return table(["ns for alloc + close", "raw C", "gpuglue", "target"], rows)


def scale(figures):
    """Allocations from many streams and threads, in C. Figures of one process have no column for the worst of all processes."""
    heads = {"mean": "mean", "median": "median", "99.9 %": "p999", "worst": "worst", "which call": "worst_at", "of it the driver": "worst_driver",
             "worst of all": "worst_worst"}
    heads = {head: key for head, key in heads.items() if any(key in found for found in figures.values())}
    rows = [[row, *(number(found.get(key)) for key in heads.values()), found["result"]] for row, found in figures.items()]
    return table(["ns for alloc + close", *heads, "target"], rows)


def fragmentation(figures):
    """What the pools hold beyond what is in use."""
    rows = [[trace, side, number(row["median"], 2), number(row["worst"], 2), number(row.get("us_per_call"), 1), row.get("result", "")]
            for trace, found in figures.items() for side, row in found.items()]
    return table(["trace", "allocator", "held / in use", "worst", "µs per call", "target"], rows)


def host(figures):
    """Memory of the host backend beside NumPy's."""
    rows = [[row, number(found["NumPy"], 1), number(found["gpuglue"], 1), number(found["ratio"], 2),
             f"[{found['worst']:.2f}, {found['best']:.2f}]", found["result"]] for row, found in figures.items()]
    return table(["GB/s", "NumPy", "gpuglue", "ratio", "[worst, best]", "target"], rows)


def strided(figures):
    """Strided copies, and those of new processes of this version and of the one before, if they were compared."""
    before = figures.get("strided before", {})
    heads = {"in new processes": "gpuglue", "version before": "before"} if before else {}
    rows = [[row, *(number(sides.get(side), 1) for side in ("gpuglue", "CuPy", "torch")),
             *(number(before.get(row, {}).get(side), 1) for side in heads.values()), *([before.get(row, {}).get("result", "")] if before else [])]
            for row, sides in figures["strided"].items()]
    return table(["GB/s, 64 MiB of float32", "gpuglue", "CuPy", "PyTorch", *heads, *(["target"] if before else [])], rows)


def packages(figures):
    """Pageable copies of the largest size, and of strided views, beside other packages."""
    titles = {"H2D": "to the device", "D2H": "to the host, into existing memory", "D2H, new array": "`.get()`: to the host, into a new array"}
    got = {"`.get()`, the first call with this size": {"gpuglue": figures["get"][0]},
           "`.get()`, from the third call on": {"gpuglue": median(figures["get"][2:])}}
    found = {titles[row]: sides for row, sides in figures["largest"].items()} | got
    sides = {"raw C": "raw pageable", "raw C, pinned": "raw pinned", "gpuglue": "gpuglue", "CuPy": "CuPy", "PyTorch": "torch"}
    rows = [[row, *(number(values.get(side), 1) for side in sides.values())] for row, values in found.items()]
    return table([f"GB/s, pageable, {figures['mib']} MiB", *sides], rows)


def graphs(figures):
    """A graph beside the launches one by one, and how many times longer those take."""
    times = figures["us"]
    rows = [[side, number(found["call"], 2), number(found["done"], 1)] for side, found in times.items()]
    for side in (name.removeprefix("graph, ") for name in times if name.startswith("graph, ")):
        ratios = [number(times[f"launches, {side}"][key] / times[f"graph, {side}"][key], 1) for key in ("call", "done")]
        rows.append([f"launches / graph, {side}", *ratios])
    return table(["µs", "call", "done"], rows)


def sample(figures):
    """Where the nanoseconds of a call go, by sampling."""
    parts = [part for part in [*PARTS, OTHER] if any(found[part] for found in figures.values())]
    rows = [[row.replace(", floor", ", C from Python"), *(number(found[key]) for key in ["ns", *parts])] for row, found in figures.items()]
    return table(["ns", "together", *parts], rows)


def compat(figures):
    """Operations of PyCUDA's arrays."""
    rows = [[f"`{row}`", *(number(sides.get(side)) for side in ("floor", "gpuglue", "CuPy")), sides.get("result", "")]
            for row, sides in figures.items()]
    return table(["ns per call", "launch and allocation", "gpuglue", "CuPy", "target"], rows)


def gil(figures):
    """Calls that release the GIL and that hold it, alone and beside a second thread, and what that thread keeps of its speed."""

    def cells(found):
        if not found:
            return ["", ""]
        middle, worst, best = (f"{ns / 1000:.{1 if ns < 99_950 else 0}f}" if ns >= 9_950 else f"{ns / 1000:.2f}" for ns in found["ns"])
        return [f"{middle} [{worst}, {best}]", f"{100 * found['kept']:.0f} %" if "kept" in found else ""]

    sides = {"C, GIL released": "floor", "C, GIL held": "floor, held", "gpuglue": "gpuglue"}
    rows = [[f"{call}, {condition}", *(cell for side in sides.values() for cell in cells(found.get(side)))]
            for call, conditions in figures.items() for condition, found in conditions.items()]
    return table(["µs per call: median [worst, best]", *(head for side in sides for head in (side, "the other keeps"))], rows)


def collectives(figures):
    """Bus bandwidth of each operation beside the library's, called from C."""
    rows = [row for row in figures["bandwidth"] if row[3] is not None]
    names = list(dict.fromkeys(row[0] for row in rows))
    found = {(name, mib): speeds for name, mib, *speeds in rows}
    made = [[f"{mib} MiB" if mib < 1024 else f"{mib // 1024} GiB", *(number(value, 1) for name in names for value in found[name, mib])]
            for mib in sorted({row[1] for row in rows})]
    return table(["GB/s", *(text for name in names for text in (name, "raw"))], made)


def staged(figures):
    """The transport through the host, beside the same operation on arrays of the host."""
    rows = [[f"{name}, {mib} MiB", number(ours, 1), number(host, 1)] for name, mib, ours, host in figures["staged"]]
    return table(["GB/s", "staged", "on the host"], rows)


def host_calls(figures):
    """What a call costs the host, by operation and size."""
    rows = [[f"{name}, {kib} KiB", *(number(value, 1) for value in values)] for name, kib, *values in figures["host"]]
    return table(["µs per call", "own stream", "shared stream", "current stream", "raw C"], rows)


def beside_mpi(figures):
    """The host transport: gpuglue's time, and in brackets MPI's."""

    def cell(ours, theirs):
        scale, digits, unit = (1e3, 2, "ms") if ours > 1e-3 else (1e6, 0, "µs")
        return f"{scale * ours:.{digits}f} {unit} ({scale * theirs:.{digits}f})"

    names = list(dict.fromkeys(row["operation"] for row in figures["rows"]))
    found = {(row["bytes"], row["operation"]): cell(row["gpuglue"], row["mpi"]) for row in figures["rows"]}
    sizes = sorted({row["bytes"] for row in figures["rows"]})
    rows = [[f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB", *(found[size, name] for name in names)] for size in sizes]
    return table([f"{figures['ranks']} ranks", *names], rows)


TABLES = {"calls": ("bench", calls), "calls, hip": ("bench-hip", calls_alone),
          "floors": ("bench", lambda found: floors(found, ("own", "blocking"))),
          "floors, other streams": ("bench", lambda found: floors(found, ("nonblocking", "legacy"))),
          "records and waits": ("bench", against), "copies": ("bench", bulk), "copies, hip": ("bench-hip", bulk),
          "pageable, to the device": ("pageable", lambda found: pageable(found, "up")),
          "pageable, to the host": ("pageable", lambda found: pageable(found, "down")),
          "allocation": ("alloc", alloc), "scale": ("scale", scale), "fragmentation": ("fragmentation", fragmentation),
          "host": ("host", host), "strided": ("copies", strided), "copies, packages": ("copies", packages),
          "graphs": ("graphs", graphs), "sample": ("sample", sample), "compat": ("compat", compat), "gil": ("gil", gil),
          **{f"{name}, {ranks} ranks": (f"{source}-{ranks}", make) for ranks in (2, 4)
             for name, source, make in (("collectives", "comm", collectives), ("staged", "comm", staged), ("host cost", "comm", host_calls),
                                        ("beside MPI", "host-comm", beside_mpi))}}


def page(text, figures):
    """The page with its tables made from the figures."""

    def made(match):
        source, make = TABLES[match[2]]
        if source not in figures:  # not measured yet with this file
            return match[0]
        found = figures[source]
        return f"{match[1]}\n{make(found['figures'])}\n{found['machine']}\n\n{match[3]}"

    return MARKED.sub(made, text)


def main(arguments=None):
    """Collect, write or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collect", type=Path, help="directory with the JSON of the benchmarks")
    parser.add_argument("--machine", default="", help="where it was measured, and when: a sentence")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    if options.collect:
        collect(options.collect, options.machine)
    text, figures = PAGE.read_text(), json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    made = page(text, figures)
    if options.write:
        PAGE.write_text(made)
    if options.check and made != text:
        print("docs/performance.md differs from docs/performance.json: run python bench/report.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
