"""What is measured: each row's name, the statement in Python, the floor it is held against, the target."""

from dataclasses import dataclass

import numpy as np

import gpuglue as gg
from timing import BULK_ROUNDS, BURSTS, ROUNDS, SLOW_BURSTS, bursts_of, copies_of, in_turn, spread

KIB, MIB = 1 << 10, 1 << 20
BULK = 256 * MIB


@dataclass
class Row:
    """One row of the table; at most one of the targets."""

    name: str
    statement: str
    floor: str = ""  # raw.c's name for the same work
    plus: float = 0  # target: floor + so many nanoseconds
    times: float = 0  # target: floor × so much
    limit: float = 0  # target: so many nanoseconds
    beside: str = ""  # the row of gpuglue's to which plus is added, instead of the floor
    bursts: int = BURSTS  # in a round
    note: str = ""  # a mark behind the name: what the floor leaves out


# GIL held: + 60 ns. GIL released (49 to 62 ns for that alone): + 120 ns.
SMALL = [
    Row("current device", "current_device()", "current_device", plus=60),
    Row("event query", "event.done", "event_query", plus=60),
    Row("stream query", "stream.done", "stream_query", plus=60),
    Row("stream synchronise, idle", "stream.synchronize()", "stream_synchronize_idle", plus=60),
    Row("event record", "event.record(stream)", "event_record", plus=120),
    Row("wait for event", "stream.wait(event)", "wait_event", plus=120),
    Row("event create + close", "Event(device).close()", "event_create_destroy", limit=350),
    Row("launch", "kernel(grid=1, block=32, stream=stream)", "launch", times=1.10),
    Row("launch, bound", "bound(stream=stream)", "launch", times=1.03),
    Row("launch + synchronise", "bound(stream=stream); stream.synchronize()", "launch_synchronize", times=1.05),
    Row("launch, 16 arguments", "bound16(" + 8 * "array8, " + 8 * "7, " + "stream=stream)", "launch", plus=400,
        beside="launch, bound", note="+"),
    Row("H2D, 8 bytes", "array8.set(host8, stream)", "h2d_8_queue", times=1.05),
    Row("D2H, 8 bytes", "array8.get(host8, stream)", "d2h_8", times=1.05),
    Row("1 KiB there and back", "array1k.set(host1k, stream); array1k.get(host1k, stream)", "roundtrip_1kib"),
    Row("to_gpu of 1 KiB", "to_gpu(host1k, device, stream)", "h2d_1kib_queue", plus=1000,
        bursts=SLOW_BURSTS, note="*"),
    Row("to_gpu + get of 1 KiB", "to_gpu(host1k, device, stream).get(stream=stream)", "roundtrip_1kib",
        plus=1500, bursts=SLOW_BURSTS, note="*"),
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
NOTES = {"+": "the floor has no arguments: each may cost 25 ns more than gpuglue's launch without them", "*": "the floor copies into memory that is there already, gpuglue takes it from its pool"}


@dataclass
class BulkRow:
    """One row of the table of bandwidths."""

    name: str
    floor: str
    action: str  # the method of Arrays
    share: float = 0  # target: at least so much of the floor


BULKS = [
    BulkRow("H2D pinned", "h2d_pinned", "set_pinned", 0.98),
    BulkRow("D2H pinned", "d2h_pinned", "get_pinned", 0.98),
    BulkRow("H2D pageable", "h2d_pageable", "set_pageable", 4),
    BulkRow("H2D pageable, to pinned", "h2d_pinned", "set_pageable", 0.75),
    BulkRow("D2H pageable", "d2h_pageable", "get_pageable", 2.5),
    BulkRow("D2D", "d2d", "across", 0.98),
]


class Arrays:
    """The large arrays that bandwidths are measured with, on either side, and gpuglue's copies between them."""

    def __init__(self, device, nbytes):
        self.nbytes = nbytes
        self.array = gg.zeros(nbytes, np.uint8, device=device)
        self.other = gg.zeros(nbytes, np.uint8, device=device)
        self.pinned = gg.zeros_pinned(nbytes, np.uint8, device=device)
        self.pageable = np.ones(nbytes, np.uint8)
        self.stream = None

    def set_pinned(self):
        """Up from pinned memory."""
        self.array.set(self.pinned, self.stream)
        self.stream.synchronize()

    def get_pinned(self):
        """Down to pinned memory."""
        self.array.get(self.pinned, self.stream)

    def set_pageable(self):
        """Up from memory of any kind."""
        self.array.set(self.pageable, self.stream)
        self.stream.synchronize()

    def get_pageable(self):
        """Down to memory of any kind."""
        self.array.get(self.pageable, self.stream)

    def across(self):
        """A copy on the device."""
        gg.copy(self.other, self.array, stream=self.stream)
        self.stream.synchronize()


def takes_kernels(device):
    """Whether the device takes the text of KERNELS."""
    return device.arch.startswith("sm_")


def kernels_for(device):
    """The kernels of the rows of launches."""
    module, shape = gg.Module(KERNELS, device), {"grid": 1, "block": 32}
    kernel = module["nothing"]
    return {"kernel": kernel, "bound": kernel.bind("", **shape),
            "bound16": module["sixteen"].bind("P" * 8 + "I" * 8, **shape)}


def names_for(device, stream):
    """What the statements refer to."""
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


def sides_of(floor, floor_name, own):
    """What takes turns: the floor, where there is one, and gpuglue."""
    return {**({"raw": floor.bursts_of(floor_name)} if floor else {}), "gpuglue": own}


def measure_small(device, stream, floor, quick):
    """Nanoseconds of each small row on a stream, of both sides."""
    names, rounds, figures = names_for(device, stream), 2 if quick else ROUNDS, {}
    gg.synchronize(device)
    for row in (row for row in SMALL if takes_kernels(device) or not row.name.startswith("launch")):
        own = bursts_of(row.statement, names, stream.synchronize)
        times = in_turn(sides_of(floor, row.floor, own), rounds, SLOW_BURSTS if quick else row.bursts)
        figures[row.name] = {side: spread(found) for side, found in times.items()}
    return figures


def measure_bulk(arrays, stream, floor, quick):
    """GB/s of each large copy on a stream, of both sides."""
    figures = {}
    arrays.stream = stream
    for row in BULKS:
        sides = sides_of(floor, row.floor, copies_of(getattr(arrays, row.action)))
        times = in_turn(sides, 2 if quick else BULK_ROUNDS, 1)
        figures[row.name] = {side: spread([arrays.nbytes / t for t in found]) for side, found in times.items()}
    return figures


def measure_stream(arrays, device, stream, floor, quick):
    """All rows on a stream."""
    if floor:
        floor.use(stream, arrays)
    return {
        "ns": measure_small(device, stream, floor, quick),
        "gbps": measure_bulk(arrays, stream, floor, quick),
    }


def streams_of(device):
    """The kinds of stream that differ in what the driver does for a call."""
    return {
        "nonblocking": gg.Stream(device, nonblocking=True),
        "blocking": gg.Stream(device),
        "legacy": device.default_stream,
    }
