"""gpuglue top: load, memory, power and temperature of all devices of all vendors, live or once.

Values that a vendor does not report are shown as -; in JSON they are null, and Prometheus gets no sample."""

import argparse
import json
import math
import sys
import time
from importlib import import_module

import gpuglue

VALUES = (
    "compute_utilization", "memory_utilization", "memory_used", "memory_total", "power", "temperature",
    "compute_clock", "memory_clock", "throttle_reasons", "processes", "source",
)  # fmt: skip
BETWEEN = 0.25  # seconds between two readings, for values that are means since the previous one


def seconds(text):
    value = float(text)
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, at most 86400, got {text}")
    return value


def add_options(parser):
    parser.add_argument("--once", action="store_true", help="print the values once, and end")
    parser.add_argument("--interval", type=seconds, default=1.0, help="seconds between two readings (default: 1)")
    parser.add_argument("--count", type=int, help="end after that many readings")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object for each reading, on a line")
    form.add_argument("--prometheus", action="store_true", help="the text format of Prometheus, once")


def main_of(options):
    """Exit status 0, also after Ctrl-C; 1 if there is no device."""
    try:
        return run(options)
    except KeyboardInterrupt:
        return 0


def run(options):
    devices = all_devices()
    if not devices:
        print("gpuglue top: there is no device; `gpuglue doctor` names the cause", file=sys.stderr)
        return 1
    if options.once or options.prometheus:
        read(devices)
        time.sleep(min(BETWEEN, options.interval))
        print(written(options)(read(devices)))
    elif not options.json and sys.stdout.isatty() and (rich := load_rich()):
        show_live(rich, devices, options)
    else:
        show_lines(devices, options)
    return 0


# ---- reading -------------------------------------------------------------------------------------------


def all_devices():
    """A backend that fails must not hide the others."""
    found = []
    for info in gpuglue.backends("active"):
        if info.status == "available":
            try:
                found += gpuglue.devices(info.name)
            except gpuglue.Error as error:
                print(f"gpuglue top: {error}", file=sys.stderr)
    return found


def read(devices):
    return {"time": round(time.time(), 3), "devices": [describe(device) for device in devices]}


def describe(device):
    """The facts that identify a device, and its statistics or the error."""
    row = {"device": f"{device.backend}:{device.ordinal}", "name": None, "uuid": None, "pci_bus_id": None}
    row |= dict.fromkeys(VALUES) | {"error": None}
    try:
        row |= {"name": device.name, "uuid": device.uuid, "pci_bus_id": device.pci_bus_id}
        row |= zip(VALUES, device.stats(), strict=True)
    except gpuglue.Error as error:
        row["error"] = str(error)
    if row["processes"] is not None:
        row["processes"] = [{"pid": process.pid, "memory": process.memory} for process in row["processes"]]
    return row


def readings(devices, options):
    """Until the count is reached or the user interrupts. The first values from counters have one interval behind them."""
    read(devices)
    number = 0
    while options.count is None or number < options.count:
        time.sleep(options.interval)
        yield read(devices)
        number += 1


# ---- a table ---------------------------------------------------------------------------------------------

COLUMNS = ("device", "name", "load", "mem load", "memory", "power", "temp", "clock", "throttled", "processes")


def number(value, unit, digits=0):
    return "-" if value is None else f"{value:.{digits}f} {unit}"


def memory_text(row):
    if row["memory_total"] is None or row["memory_used"] is None:
        return "-"
    return f"{row['memory_used'] / 2**30:.1f}/{row['memory_total'] / 2**30:.1f} GiB"


def throttle_text(reasons):
    return "-" if reasons is None else " ".join(reasons) or "no"


def cells(row):
    processes = row["processes"]
    return (
        row["device"], row["name"] or "-", number(row["compute_utilization"], "%"), number(row["memory_utilization"], "%"),
        memory_text(row), number(row["power"], "W"), number(row["temperature"], "°C"), number(row["compute_clock"], "MHz"),
        throttle_text(row["throttle_reasons"]), "-" if processes is None else str(len(processes)),
    )  # fmt: skip


def problems(found):
    return [f"{row['device']}: {row['error']}" for row in found["devices"] if row["error"]]


def table(found):
    rows = [COLUMNS, *map(cells, found["devices"])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines + problems(found))


def show_lines(devices, options):
    between = ""
    for found in readings(devices, options):
        print(between + written(options)(found), flush=True)
        between = "" if options.json else "\n"


# ---- rich, if it is installed -----------------------------------------------------------------------------


def load_rich():
    """The package, or None. Type checkers must not need it."""
    try:
        for part in ("live", "table", "text"):
            import_module(f"rich.{part}")
    except ImportError:
        return None
    return sys.modules["rich"]


def rich_table(rich, found):
    shown = rich.table.Table(title=f"gpuglue {gpuglue.__version__}", caption=rich.text.Text("\n".join(problems(found))) or None)
    for name in COLUMNS:
        shown.add_column(name, no_wrap=name not in ("name", "throttled"))
    for row in found["devices"]:
        shown.add_row(*(rich.text.Text(cell) for cell in cells(row)))
    return shown


def show_live(rich, devices, options):
    with rich.live.Live(rich_table(rich, read(devices)), auto_refresh=False) as live:
        for found in readings(devices, options):
            live.update(rich_table(rich, found), refresh=True)


# ---- Prometheus --------------------------------------------------------------------------------------------

# Name, help, key, factor to the base unit.
METRICS = (
    ("compute_utilization_ratio", "Share of time in which kernels ran.", "compute_utilization", 0.01),
    ("memory_utilization_ratio", "Share of time in which device memory was read or written.", "memory_utilization", 0.01),
    ("memory_used_bytes", "Device memory in use by all processes.", "memory_used", 1),
    ("memory_size_bytes", "Device memory.", "memory_total", 1),
    ("power_watts", "Power.", "power", 1),
    ("temperature_celsius", "Temperature.", "temperature", 1),
    ("compute_clock_hertz", "Clock of the processors.", "compute_clock", 1e6),
    ("memory_clock_hertz", "Clock of the memory.", "memory_clock", 1e6),
)


def labels(**pairs):
    escaped = {key: str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for key, value in pairs.items()}
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped.items()) + "}"


def facts(row):
    return {key: row[key] for key in ("device", "name", "uuid", "pci_bus_id") if row[key] is not None}


def metric(name, text, samples):
    """All samples of a metric, below its help and type."""
    full = f"gpuglue_device_{name}"
    lines = [f"{full}{labels(**pairs)} {value:.15g}" for pairs, value in samples]
    return [f"# HELP {full} {text}", f"# TYPE {full} gauge", *lines] if lines else []


def prometheus(found):
    rows = found["devices"]
    lines = metric("up", "1 if the statistics of the device could be read.", [(facts(row), not row["error"]) for row in rows])
    for name, text, key, factor in METRICS:
        samples = [(facts(row), row[key] * factor) for row in rows if row[key] is not None and math.isfinite(row[key])]
        lines += metric(name, text, samples)
    throttled = [(facts(row) | {"reason": word}, 1) for row in rows for word in row["throttle_reasons"] or ()]
    lines += metric("throttled", "1 for each reason why the clocks are low.", throttled)
    processes = [
        (facts(row) | {"pid": process["pid"]}, process["memory"])
        for row in rows
        for process in row["processes"] or ()
        if process["memory"] is not None
    ]
    lines += metric("process_memory_bytes", "Device memory that a process uses.", processes)
    return "\n".join(lines)


def written(options):
    """The function that turns a reading into text."""
    if options.prometheus:
        return prometheus
    return (lambda found: json.dumps({"version": gpuglue.__version__, **found})) if options.json else table
