"""gpuglue bench: how fast the calls and copies of a device are, compared with CuPy and PyTorch if they are installed.

Calls are medians in microseconds, of bursts of 16; copies are in GB/s (10^9 bytes a second), by the median time. The sides
alternate, so that noise affects each. The figures compare packages in one run; bench/ in the sources compares with raw C."""

import argparse
import importlib
import json
import sys
import time

import gpuglue

BURST = 16
ROUNDS = 5  # at least, of each side
SIZES = tuple(1 << power for power in (12, 16, 20, 22, 24, 26, 28))  # bytes of the copies


def seconds(text):
    value = float(text)
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, at most 3600, got {text}")
    return value


def size(text):
    value = int(text)
    if value < SIZES[0]:
        raise argparse.ArgumentTypeError(f"expected a number of bytes, at least {SIZES[0]}, got {text}")
    return value


def add_options(parser):
    parser.add_argument("--device", help="the device, such as cuda:1 (default: the current device)")
    parser.add_argument("--seconds", type=seconds, default=20.0, help="time for the measurements (default: 20); more if a row needs it")
    parser.add_argument("--max-bytes", type=size, default=SIZES[-1], help=f"largest copy (default: {SIZES[-1]})")
    parser.add_argument("--json", action="store_true", help="one JSON object, with quartiles in seconds")
    parser.add_argument("--plot", metavar="FILE", help="also draw the copies with matplotlib, and write the picture to FILE")


def main_of(options):
    """Exit status 0; 1 if the picture cannot be drawn."""
    pyplot = load_pyplot() if options.plot else None
    if options.plot and not pyplot:
        print("gpuglue bench: --plot needs matplotlib, which is not installed: pip install matplotlib", file=sys.stderr)
        return 1
    device = gpuglue.Device(options.device) if options.device else gpuglue.current_device()
    found = measure(device, options.seconds, options.max_bytes)
    print(json.dumps(found) if options.json else text_of(found))
    if pyplot:
        draw(pyplot, found, options.plot)
    return 0


# ---- measuring -------------------------------------------------------------------------------------------


def timed(function, count):
    """Seconds of one call, as the mean of a burst."""
    start = time.perf_counter_ns()
    for _ in range(count):
        function()
    return (time.perf_counter_ns() - start) / count * 1e-9


def in_turn(functions, count, budget):
    """{side: {median, p25, p75, repeats}} of functions that alternate until the budget in seconds is used."""
    times = {name: [] for name in functions}
    for function, _ in functions.values():
        function()  # the first call may set something up
    end = time.monotonic() + budget
    while time.monotonic() < end or min(map(len, times.values())) < ROUNDS:
        for name, (function, settle) in functions.items():
            times[name].append(timed(function, count))
            settle()
    return {name: spread(values) for name, values in times.items()}


def spread(values):
    import statistics  # takes longer than all else that the command imports

    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": middle, "p25": low, "p75": high, "repeats": len(values)}


def by_row(prepared):
    """{row: {side: (function, settle)}} from {side: ({row: function}, settle)}, in the order of the first side."""
    names = dict.fromkeys(row for rows, _ in prepared.values() for row in rows)
    return {name: {side: (rows[name], settle) for side, (rows, settle) in prepared.items() if name in rows} for name in names}


def nothing():
    pass


def room(device):
    """Bytes of free memory, or of all memory where the driver does not report what is free."""
    try:
        return device.memory_info().free
    except gpuglue.UnsupportedError:
        return device.total_memory


def measure(device, budget, max_bytes):
    """All figures. A third of the time is for the calls, the rest for the copies."""
    from gpuglue import _bench_sides

    sides, absent = _bench_sides.sides_of(device)
    sizes = [nbytes for nbytes in SIZES if nbytes <= min(max_bytes, room(device) // 4)]
    rows = by_row({side.name: side.calls() for side in sides})
    calls = {name: in_turn(functions, BURST, budget / 3 / len(rows)) for name, functions in rows.items()}
    copies = []
    for nbytes in sizes:
        rows = by_row({side.name: (side.copies(nbytes), nothing) for side in sides})
        share = budget * 2 / 3 / len(sizes) / len(rows)
        copies.append({"bytes": nbytes, "rows": {name: in_turn(functions, 1, share) for name, functions in rows.items()}})
    found = {"version": gpuglue.__version__, "device": f"{device.backend}:{device.ordinal}", "name": device.name}
    return found | {"sides": [side.name for side in sides], "absent": absent, "calls": calls, "copies": copies}


# ---- text --------------------------------------------------------------------------------------------------


def columns(rows):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def size_text(nbytes):
    return f"{nbytes >> 20} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10} KiB"


def rate(step, kind, side):
    """GB/s, or None where a side has no such row."""
    figures = step["rows"].get(kind, {}).get(side)
    return step["bytes"] / figures["median"] * 1e-9 if figures else None


def cell(value):
    return "-" if value is None else f"{value:.2f}"


def calls_table(found):
    sides = found["sides"]
    lines = [[name, *(cell(row[side]["median"] * 1e6 if side in row else None) for side in sides)] for name, row in found["calls"].items()]
    return columns([["microseconds a call", *sides], *lines])


def copies_table(found, side):
    """A line for each size, a column for each kind of copy."""
    kinds = [kind for kind, row in found["copies"][0]["rows"].items() if side in row]
    lines = [[size_text(step["bytes"]), *(cell(rate(step, kind, side)) for kind in kinds)] for step in found["copies"]]
    return columns([[f"GB/s, {side}", *kinds], *lines])


def text_of(found):
    lines = [f"gpuglue {found['version']} on {found['device']}, {found['name']}", "", *calls_table(found)]
    for side in found["sides"]:
        lines += ["", *copies_table(found, side)]
    lines += [f"\nwithout {name}: {reason}" for name, reason in found["absent"].items()]
    return "\n".join(lines)


# ---- a picture, if matplotlib is installed ---------------------------------------------------------------------


def load_pyplot():
    try:
        importlib.import_module("matplotlib").use("Agg")
        return importlib.import_module("matplotlib.pyplot")
    except ImportError:
        return None


def draw(pyplot, found, path):
    """Bandwidth against size, a line for each kind of copy and side."""
    figure, axes = pyplot.subplots(figsize=(9, 5))
    for name in dict.fromkeys(name for step in found["copies"] for name in step["rows"]):
        for side in found["sides"]:
            rates = [(step["bytes"], rate(step, name, side)) for step in found["copies"]]
            points = [point for point in rates if point[1] is not None]
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", label=f"{side}, {name}")
    axes.set(xscale="log", yscale="log", xlabel="bytes", ylabel="GB/s", title=f"copies on {found['device']} {found['name']}")
    axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path)
