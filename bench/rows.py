"""What is measured: each row's name, the statement in Python, the floor it is held against, the target."""

from dataclasses import dataclass

import numpy as np

import gpuglue as gg
from timing import BURSTS, SLOW_BURSTS, gigabytes_per_second, nanoseconds

KIB, MIB = 1 << 10, 1 << 20
BULK = 256 * MIB


@dataclass
class Row:
    """One row of the table; at most one of the targets."""

    name: str
    statement: str
    floor: str = ""  # raw.c's name for the same work
    plus: float = 0  # target: floor + so many nanoseconds
    times: float = 0  # target: floor × so much (bandwidths: at least)
    limit: float = 0  # target: so many nanoseconds
    bursts: int = BURSTS


# GIL held: + 60 ns. GIL released (49 to 62 ns for that alone): + 120 ns.
SMALL = [
    Row("current device", "current_device()", "current_device", plus=60),
    Row("event query", "event.done", "event_query", plus=60),
    Row("stream query", "stream.done", "stream_query", plus=60),
    Row("stream synchronise, idle", "stream.synchronize()", "stream_synchronize_idle", plus=60),
    Row("event record", "event.record(stream)", "event_record", plus=120),
    Row("wait for event", "stream.wait(event)", "wait_event", plus=120),
    Row("event create + close", "Event(device).close()", "event_create_destroy", limit=350),
    Row("H2D, 8 bytes", "array8.set(host8, stream)", "h2d_8_queue", times=1.05),
    Row("D2H, 8 bytes", "array8.get(host8, stream)", "d2h_8", times=1.05),
    Row("1 KiB there and back", "array1k.set(host1k, stream); array1k.get(host1k, stream)", "roundtrip_1kib"),
    Row("to_gpu of 1 KiB", "to_gpu(host1k, device, stream)", bursts=SLOW_BURSTS),
    Row("to_gpu + get of 1 KiB", "to_gpu(host1k, device, stream).get(stream=stream)", bursts=SLOW_BURSTS),
    Row("alloc + close, 1 MiB", "alloc(MIB, device, stream).close()", "alloc_free_1mib", bursts=SLOW_BURSTS),
    Row("stream create + close", "Stream(device).close()", "stream_create_destroy", bursts=SLOW_BURSTS),
]

BULKS = [
    ("H2D pinned", "h2d_pinned_256mib_gbps", lambda a, o: a.array.set(a.pinned, a.stream), 0.98),
    ("D2H pinned", "d2h_pinned_256mib_gbps", lambda a, o: a.array.get(a.pinned, a.stream), 0.98),
    ("H2D pageable", "h2d_pageable_256mib_gbps", lambda a, o: a.array.set(a.pageable, a.stream), 0),
    ("D2H pageable", "d2h_pageable_256mib_gbps", lambda a, o: a.array.get(a.pageable, a.stream), 0),
    ("D2D", "d2d_256mib_gbps", lambda a, o: o(), 0.98),
]


class Arrays:
    """The large arrays that bandwidths are measured with."""

    def __init__(self, device, nbytes):
        self.nbytes = nbytes
        self.array = gg.zeros(nbytes, np.uint8, device=device)
        self.other = gg.zeros(nbytes, np.uint8, device=device)
        self.pinned = gg.zeros_pinned(nbytes, np.uint8, device=device)
        self.pageable = np.ones(nbytes, np.uint8)
        self.stream = None

    def across(self):
        """A copy on the device, waited for."""
        gg.copy(self.other, self.array, stream=self.stream)
        self.stream.synchronize()


def names_for(device, stream):
    """What the statements refer to."""
    host8, host1k = np.ones(1), np.ones(KIB // 8)
    event = gg.Event(device)
    event.record(stream)
    stream.synchronize()
    return {
        "current_device": gg.current_device, "Event": gg.Event, "Stream": gg.Stream, "alloc": gg.alloc,
        "to_gpu": gg.to_gpu, "device": device, "stream": stream, "event": event, "MIB": MIB, "host8": host8,
        "host1k": host1k, "array8": gg.to_gpu(host8, device), "array1k": gg.to_gpu(host1k, device),
    }


def measure_small(device, stream, scale):
    """Nanoseconds of each small row on a stream."""
    names = names_for(device, stream)
    gg.synchronize(device)
    return {
        row.name: nanoseconds(row.statement, names, stream.synchronize, max(1, int(row.bursts * scale)))
        for row in SMALL
    }


def measure_bulk(arrays, stream):
    """GB/s of each large copy on a stream."""
    arrays.stream = stream
    return {
        name: gigabytes_per_second(arrays.nbytes, lambda run=run: run(arrays, arrays.across))
        for name, _, run, _ in BULKS
    }


def streams_of(device):
    """The kinds of stream that raw.c measures, under its names."""
    return {
        "nonblocking": gg.Stream(device, nonblocking=True),
        "blocking": gg.Stream(device),
        "legacy": device.default_stream,
    }
