"""What a recording of gg.trace costs for each operation, in nanoseconds: without and with one in alternation, in several processes.

    python recording.py [--device NAME] [--processes N] [--json FILE]

Each round runs the same bursts of calls without a recording and with one. A half of a round is the median of its bursts, and the figure of
a process the median of the rounds' differences, so that what slows both halves is not attributed to the recording. The target is 200 ns.
Beyond 16,000 operations each 500th also maps memory: some microseconds, which are not in these figures.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter_ns

import numpy as np

import gpuglue as gg
from gpuglue._core import _range_pop, _range_push

ROUNDS, BURSTS, BURST, TARGET = 61, 25, 16, 200


def statements(device, stream):
    """The calls of the table: each is one operation, or one range."""
    event, pinned, array = gg.Event(device), gg.empty_pinned(1, np.float64), gg.empty(1, np.float64, device=device)

    def marked():
        _range_push("step")
        _range_pop()

    return {"range": marked, "stream query": lambda: stream.done, "event record": lambda: event.record(stream),
            "copy of 8 bytes": lambda: gg.copy(array, pinned, stream=stream)}  # fmt: skip


def nanoseconds(call):
    """The time of a call."""
    times = []
    for _ in range(BURSTS):
        begin = perf_counter_ns()
        for _ in range(BURST):
            call()
        times.append(perf_counter_ns() - begin)
    return median(times) / BURST


def one_process(name):
    """{statement: [without, with, difference]}: medians of the rounds."""
    device = gg.Device(name) if name else gg.Device()
    stream, found = gg.Stream(device), {}
    with tempfile.TemporaryDirectory() as folder:
        for statement, call in statements(device, stream).items():
            rows = []
            for _ in range(ROUNDS):
                without = nanoseconds(call)
                stream.synchronize()
                with gg.trace(Path(folder, "trace.json")):
                    recorded = nanoseconds(call)
                stream.synchronize()
                rows.append((without, recorded, recorded - without))
            found[statement] = [median(column) for column in zip(*rows)]
    return found


def main():
    """Measure in new processes, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device")
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # a process of this program
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_process(options.device)))
        return
    command = [sys.executable, __file__, "--one", *(["--device", options.device] if options.device else [])]
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(options.processes)]
    print(f"{'ns per call':18}{'without':>9}{'with':>9}{'more':>8}  of each process")
    for name in runs[0]:
        without, recorded, more = (median(run[name][column] for run in runs) for column in range(3))
        each = " ".join(f"{run[name][2]:.0f}" for run in runs)
        print(f"{name:18}{without:>9.0f}{recorded:>9.0f}{more:>8.0f}  {each}{'  MISSED' if more > TARGET else ''}")
    if options.json:
        options.json.write_text(json.dumps(runs, indent=1))


if __name__ == "__main__":
    main()
