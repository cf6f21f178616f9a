"""The rows of the tables: name, statement in Python, baseline, and target."""

from dataclasses import dataclass

import numpy as np

import gpuglue as gg
from timing import BURSTS, SLOW_BURSTS, bursts_of, copies_of, in_turn
from verdict import OK, judge, rounds_of

KIB, MIB = 1 << 10, 1 << 20
BULK = 256 * MIB


@dataclass
class Row:
    """One row of the table of small operations, with at most one target."""

    best = min  # of the figures of several processes

    name: str
    statement: str
    baseline: str = ""  # the row of raw.c with the same work
    plus: float = 0  # target: the baseline plus this many nanoseconds
    times: float = 0  # target: the baseline times this factor
    limit: float = 0  # target: this many nanoseconds
    beside: str = ""  # plus is added to this row of gpuglue instead of the baseline
    bursts: int = BURSTS  # in a round
    note: str = ""  # a mark in NOTES: what the baseline does not include
    floor: str = ""  # the same work by a function of floor.c
    asking: str = ""  # the same, and a question to the driver about the source

    def target(self, sides):
        """The target, in nanoseconds, from the other sides' figures; None without one."""
        base = sides.get("beside" if self.beside else "raw")
        if self.limit or base is None:
            return self.limit or None
        return base + self.plus if self.plus else base * self.times or None

    def excess(self, own, target):
        """How far a figure is beyond the target."""
        return own - target


# Calls that hold the GIL: + 60 ns. Calls that release it (which takes 50 to 120 ns, by the processor): + 120 ns.
SMALL = [
    Row("current device", "current_device()", "current_device", plus=60),
    Row("event query", "event.done", "event_query", plus=60, floor="floor.event_done()"),
    Row("event record + query", "event.record(stream); event.done", "event_record_query", plus=180, floor="floor.record(); floor.event_done()"),
    Row("stream query", "stream.done", "stream_query", plus=60, floor="floor.stream_done()"),
    Row("stream synchronize, idle", "stream.synchronize()", "stream_synchronize_idle", plus=60),
    Row("event record", "event.record(stream)", "event_record", plus=120, floor="floor.record()"),
    Row("wait for event", "stream.wait(event)", "wait_event", plus=120, floor="floor.wait()"),
    Row("event create + close", "Event(device).close()", "event_create_destroy", limit=350),
    Row("launch", "kernel(grid=1, block=32, stream=stream)", "launch", times=1.06,
        floor="floor.launch_with(grid=1, block=32, stream=stream)"),
    Row("launch, bound", "bound(stream=stream)", "launch", times=1.04, floor="floor.launch()"),
    Row("launch + synchronize", "bound(stream=stream); stream.synchronize()", "launch_synchronize", times=1.05),
    Row("launch, 16 arguments", "bound16(" + 8 * "array8, " + 8 * "7, " + "stream=stream)", "launch", plus=250,
        beside="launch, bound", note="+", floor="floor.launch_16(" + 8 * "floor_array, " + 8 * "7, " + "stream=stream)"),
    Row("H2D, 8 bytes", "array8.set(host8, stream)", "h2d_8_queue", times=1.05, floor="floor.set(host8, stream)"),
    Row("D2H, 8 bytes", "array8.get(host8, stream)", "d2h_8", times=1.05, floor="floor.get(host8, stream)"),
    Row("1 KiB round trip", "array1k.set(host1k, stream); array1k.get(host1k, stream)", "roundtrip_1kib",
        floor="floor.set(host1k, stream); floor.get(host1k, stream)"),
    Row("to_gpu of 1 KiB", "to_gpu(host1k, device, stream)", "h2d_1kib_queue", plus=600,
        bursts=SLOW_BURSTS, note="*", floor="floor.to_gpu(host1k)", asking="floor.to_gpu_asking(host1k)"),
    Row("to_gpu + get of 1 KiB", "to_gpu(host1k, device, stream).get(stream=stream)", "roundtrip_1kib",
        plus=900, bursts=SLOW_BURSTS, note="*", floor="floor.to_gpu(host1k).get()", asking="floor.to_gpu_asking(host1k).get()"),
    Row("alloc + close, 1 MiB", "alloc(MIB, device, stream).close()", "alloc_free_1mib", limit=300,
        bursts=SLOW_BURSTS),
    Row("stream create + close", "Stream(device).close()", "stream_create_destroy", bursts=SLOW_BURSTS),
]
KERNELS = b""".version 6.4
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry sixteen(%s)
{ ret; }
""" % b", ".join([b".param .u64 p%d" % i for i in range(8)] + [b".param .u32 w%d" % i for i in range(8)])
NOTES = {
    "+": "the baseline has no arguments: each may cost 15 ns more than gpuglue's launch without arguments",
    "*": "the baseline copies into existing memory; gpuglue allocates it from its pool",
}


@dataclass
class BulkRow:
    """One row of the table of bandwidths."""

    best = max  # of the figures of several processes
    limit = 0  # every target counts from the baseline

    name: str
    baseline: str
    action: str  # the method of Arrays
    share: float = 0  # target: at least this fraction of the baseline
    bursts: int = 1

    def target(self, sides):
        """The target, in GB/s."""
        return sides["raw"] * self.share if "raw" in sides else None

    def excess(self, own, target):
        """How far a figure is below the target."""
        return target - own


BULKS = [
    BulkRow("H2D pinned", "h2d_pinned", "set_pinned", 0.98),
    BulkRow("D2H pinned", "d2h_pinned", "get_pinned", 0.98),
    BulkRow("H2D pageable", "h2d_pageable", "set_pageable", 4),
    BulkRow("H2D pageable, to pinned", "h2d_pinned", "set_pageable", 0.75),
    BulkRow("D2H pageable", "d2h_pageable", "get_pageable", 2.5),
    BulkRow("D2D", "d2d", "across", 0.98),
]
# The rows that are measured again while a second process uses the device (neighbour.py).
SHARED = {"event record", "launch, bound", "launch + synchronize", "H2D, 8 bytes", "D2H, 8 bytes", "alloc + close, 1 MiB",
          "H2D pinned", "D2H pinned", "H2D pageable", "D2H pageable", "D2D"}


class Arrays:
    """The large arrays of the bandwidth rows, which both sides use, and gpuglue's copies between them."""

    def __init__(self, device, nbytes):
        self.nbytes = nbytes
        self.array = gg.zeros(nbytes, np.uint8, device=device)
        self.other = gg.zeros(nbytes, np.uint8, device=device)
        self.pinned = gg.zeros_pinned(nbytes, np.uint8, device=device)
        self.pageable = np.ones(nbytes, np.uint8)
        self.stream = None

    def set_pinned(self):
        """Copy from pinned memory to the device."""
        self.array.set(self.pinned, self.stream)
        self.stream.synchronize()

    def get_pinned(self):
        """Copy from the device to pinned memory."""
        self.array.get(self.pinned, self.stream)

    def set_pageable(self):
        """Copy from pageable memory to the device."""
        self.array.set(self.pageable, self.stream)
        self.stream.synchronize()

    def get_pageable(self):
        """Copy from the device to pageable memory."""
        self.array.get(self.pageable, self.stream)

    def across(self):
        """Copy within the device."""
        gg.copy(self.other, self.array, stream=self.stream)
        self.stream.synchronize()


def takes_kernels(device):
    """Whether the device accepts KERNELS, which is PTX."""
    return device.arch.startswith("sm_")


def kernels_for(device):
    """The kernels that the launch rows use."""
    module, shape = gg.Module(KERNELS, device), {"grid": 1, "block": 32}
    kernel = module["nothing"]
    return {"kernel": kernel, "bound": kernel.bind("", **shape),
            "bound16": module["sixteen"].bind("P" * 8 + "I" * 8, **shape)}


def names_for(device, stream):
    """The names that the statements use."""
    host8, host1k = np.ones(1), np.ones(KIB // 8)
    event = gg.Event(device)
    event.record(stream)
    stream.synchronize()
    return {
        **(kernels_for(device) if takes_kernels(device) else {}),
        "current_device": gg.current_device, "Event": gg.Event, "Stream": gg.Stream, "alloc": gg.alloc,
        "to_gpu": gg.to_gpu, "device": device, "stream": stream, "event": event, "MIB": MIB, "host8": host8,
        "host1k": host1k, "array8": gg.to_gpu(host8, device), "array1k": gg.to_gpu(host1k, device),
    }


def floor_names(baseline):
    """The names that the statements of the column "floor" use."""
    floor = baseline.floor() if baseline else None
    return {"floor": floor, "floor_array": floor.to_gpu(np.ones(KIB // 8)) if floor else None}


def sides_of(baseline, baseline_name, own):
    """The sides that alternate: the baseline, if there is one, and gpuglue."""
    return {**({"raw": baseline.bursts_of(baseline_name)} if baseline else {}), "gpuglue": own}


ROW_OF = {row.name: row for row in SMALL}


def other_sides(row, names, stream, baseline):
    """The sides of a small row besides the baseline and gpuglue: floors, what its target counts from, and the shim."""
    sides = {}
    if names["floor"]:
        statements = {"floor": row.floor, "floor, asking": row.asking, "floor beside": ROW_OF[row.beside].floor if row.beside else ""}
        sides = {side: bursts_of(statement, names, baseline.stream.synchronize) for side, statement in statements.items() if statement}
    if row.beside:
        sides["beside"] = bursts_of(ROW_OF[row.beside].statement, names, stream.synchronize)
    if baseline and baseline.shim:
        sides["shim"] = baseline.shim.bursts_of(row.baseline)
    return sides


class Measurement:
    """One row on one stream: its sides, and what each run has found."""

    def __init__(self, row, sides, rounds, bursts, unit=None):
        self.row, self.sides, self.rounds, self.bursts = row, sides, rounds, bursts
        self.unit = unit or (lambda nanoseconds: nanoseconds)
        self.parts = []

    def run(self):
        """Measure all sides in alternation. A part has the figure of each round, and how far the round is beyond the target."""
        times = in_turn(self.sides, self.rounds, self.bursts)
        rounds = {side: rounds_of([self.unit(t) for t in found], self.bursts) for side, found in times.items()}
        excesses = [self.excess(dict(zip(rounds, values, strict=True))) for values in zip(*rounds.values(), strict=True)]
        self.parts.append({"sides": rounds, "excesses": [] if None in excesses else excesses})

    def excess(self, sides):
        """How far one round is beyond the target; None without a target."""
        target = self.row.target(sides)
        return None if target is None else self.row.excess(sides["gpuglue"], target)

    def result(self):
        """Whether the target is reached, a word of verdict.py; None without a target."""
        runs = [part["excesses"] for part in self.parts if part["excesses"]]
        return judge(runs) if runs else None


def measured(measurements, runs):
    """Row → its parts. The rows that are not ok run again after all others, at another moment, until there were so many runs."""
    for measurement in measurements:
        measurement.run()
    for _ in range(runs - 1):
        for measurement in measurements:
            if measurement.result() not in (OK, None):
                measurement.run()
    return {measurement.row.name: measurement.parts for measurement in measurements}


def small_rows(device, stream, baseline, plan):
    """The measurements of the small rows on a stream."""
    names = names_for(device, stream)
    names |= floor_names(baseline)
    gg.synchronize(device)
    for row in (row for row in SMALL if takes_kernels(device) or not row.name.startswith("launch")):
        own = bursts_of(row.statement, names, stream.synchronize)
        sides = sides_of(baseline, row.baseline, own) | other_sides(row, names, stream, baseline)
        yield Measurement(row, sides, plan.rounds, plan.bursts or row.bursts)


def bulk_rows(arrays, stream, baseline, plan):
    """The measurements of the large copies on a stream, in GB/s."""
    arrays.stream = stream
    for row in BULKS:
        sides = sides_of(baseline, row.baseline, copies_of(getattr(arrays, row.action)))
        yield Measurement(row, sides, plan.bulk_rounds, row.bursts, unit=lambda t: arrays.nbytes / t)


def measure_stream(arrays, device, streams, baseline, plan, runs=1, chosen=None):
    """Measure all or the chosen rows on a stream: unit → row → its parts."""
    stream, raw_stream = streams
    if baseline:
        baseline.use(raw_stream, arrays)
    tables = {"ns": small_rows(device, stream, baseline, plan), "gbps": bulk_rows(arrays, stream, baseline, plan)}
    tables = {unit: [row for row in table if chosen is None or row.row.name in chosen] for unit, table in tables.items()}
    parts = measured([measurement for table in tables.values() for measurement in table], runs)
    return {unit: {row.row.name: parts[row.row.name] for row in table} for unit, table in tables.items()}


def streams_of(device):
    """The kinds of stream, each with the stream of the baseline: the driver does different work per call on each."""
    own, other = gg.Stream(device, nonblocking=True), gg.Stream(device, nonblocking=True)
    shared = {"nonblocking": gg.Stream(device, nonblocking=True), "blocking": gg.Stream(device), "legacy": device.default_stream}
    return {"own": (own, other), **{kind: (stream, stream) for kind, stream in shared.items()}}
