"""What a launch, an event's record and a wait for it cost with the GIL released and held, alone and beside a second thread.

    python gil.py [--raw LIBRARY] [--json FILE] [--device NAME] [--processes 8] [--rounds 3] [--seconds 0.15]

"floor" is a C function that Python calls, and that makes the driver call without the GIL; "floor, held" makes it with the GIL
(floor.c). Beside Python, the second thread computes without a pause, with Python's switch interval and with shorter ones. Beside C it
hashes 16 MiB at a time without the GIL. A figure is the mean of all calls of a process, including the time in which the other thread
had the GIL. "kept" is the speed of the other thread, divided by its speed while this one sleeps. Of several new processes: the median, and
[the worst, the best].
"""

import argparse
import hashlib
import json
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import gpuglue as gg

from baseline import open_for_part
from processes import given, result_of, summary
from rows import KERNELS, MIB, takes_kernels
from timing import BURST, compiled

INTERVALS = (1e-4, 1e-5)  # seconds, besides Python's own
SHORT = 1 / 4  # of the seconds, where no turn of the other thread takes milliseconds
CALLS = {
    "launch, bound": {"floor": "floor.launch()", "floor, held": "floor.launch_held()", "gpuglue": "bound(stream=stream)"},
    "event record": {"floor": "floor.record()", "floor, held": "floor.record_held()", "gpuglue": "event.record(stream)"},
    "wait for event": {"floor": "floor.wait()", "floor, held": "floor.wait_held()", "gpuglue": "stream.wait(event)"},
}


# ---- the other thread ----


def compute():
    """Some microseconds of Python."""
    total = 0
    for number in range(100):
        total += number * number


def hashing():
    """A function that hashes 16 MiB, for which hashlib releases the GIL."""
    data = bytes(16 * MIB)
    return lambda: hashlib.sha256(data)


class Other:
    """A thread that repeats some work, and counts how often it was done."""

    def __init__(self, work):
        self.work, self.count, self.ends = work, 0, False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        """What the thread does."""
        while not self.ends:
            self.work()
            self.count += 1

    def speed(self, seconds):
        """Times per second while this thread sleeps, for at least that long and until the work was done once."""
        before, start = self.count, time.perf_counter()
        while time.perf_counter() - start < seconds or self.count == before:
            time.sleep(seconds)
        return (self.count - before) / (time.perf_counter() - start)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.ends = True
        self.thread.join()


@contextmanager
def switching(interval):
    """Set Python's switch interval for a while."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(interval)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def condition_name(interval):
    """The name of the condition beside Python with that switch interval."""
    return f"beside Python, {interval * 1e3:g} ms"


# ---- one process ----


class Side:
    """One call of one side, and what all rounds so far have found."""

    def __init__(self, burst, is_done):
        self.burst, self.is_done = burst, is_done
        self.calls = self.taken = self.iterations = self.elapsed = 0

    def run(self, seconds, other):
        """Make calls for that long, at least one burst. After each burst poll the stream with the GIL held, so that no queue builds up."""
        before, start = other.count if other else 0, time.perf_counter_ns()
        end = start + round(seconds * 1e9)
        while True:
            self.taken += self.burst()
            self.calls += BURST
            while not self.is_done():
                pass
            if time.perf_counter_ns() >= end:
                break
        self.elapsed += time.perf_counter_ns() - start
        self.iterations += other.count - before if other else 0


def bursts_of(device, streams, baseline):
    """Call → side → a burst of calls and what polls the stream: the floor's on one stream and gpuglue's on another."""
    stream, other = streams
    event = gg.Event(device)
    event.record(stream)
    floor = baseline.floor() if baseline else None
    if baseline:
        baseline.use(other, None)
    names = {"stream": stream, "event": event, "floor": floor}
    if takes_kernels(device):
        names["bound"] = gg.Module(KERNELS, device)["nothing"].bind("", grid=1, block=32)
    done = {"gpuglue": lambda: stream.done, **({"floor": floor.stream_done, "floor, held": floor.stream_done} if floor else {})}
    found = {call: {side: (compiled(sides[side], names), done[side]) for side in sides if side in done}
             for call, sides in CALLS.items() if "bound" in names or not call.startswith("launch")}
    for sides in found.values():
        for burst, _ in sides.values():
            burst()  # the first calls are not counted
    return found


def measure_call(options, bursts, seconds, other):
    """Side → what several rounds have found. The sides alternate; each ends after that many seconds, at the end of a burst."""
    sides = {name: Side(*found) for name, found in bursts.items()}
    for _ in range(options.rounds):
        for side in sides.values():
            if side.elapsed < seconds * 1e9:  # one burst may take longer than a round
                side.run(seconds / options.rounds, other)
    return sides


def measure_condition(options, calls, other=None, share=1.0):
    """Call → side → the mean nanoseconds of a call, and what the other thread keeps of its speed. `share`: of the seconds."""
    seconds = share * options.seconds
    alone = other.speed(options.seconds) if other else None
    return {call: {name: {"ns": side.taken / side.calls, **({"kept": side.iterations / (side.elapsed / 1e9) / alone} if alone else {})}
                   for name, side in measure_call(options, bursts, seconds, other).items()} for call, bursts in calls.items()}


def measure_all(options, calls):
    """Condition → call → side → figures."""
    found = {"alone": measure_condition(options, calls, share=SHORT)}
    for interval in (sys.getswitchinterval(), *INTERVALS):
        with switching(interval), Other(compute) as other:
            found[condition_name(interval)] = measure_condition(options, calls, other, SHORT if interval in INTERVALS else 1.0)
    with Other(hashing()) as other:
        found["beside C"] = measure_condition(options, calls, other)
    return found


def one_process(options):
    """All figures of this process, as JSON."""
    device, baseline, reason, streams = open_for_part(options)
    calls = bursts_of(device, streams, baseline)
    if baseline and not baseline.floor():
        reason = "floor.c was not compiled"
    print(json.dumps({"device": device.name, "no_baseline": reason, "found": measure_all(options, calls)}))


# ---- all processes ----


def rows_of(results):
    """Call → condition → side → "ns" and "kept" → figures of all processes."""
    rows = {}
    for condition, calls in results[0].items():
        for call, sides in calls.items():
            rows.setdefault(call, {})[condition] = {side: {
                key: summary([result[condition][call][side][key] for result in results], min if key == "ns" else max)
                for key in figures} for side, figures in sides.items()}
    return rows


def show(rows):
    """Print a table."""
    for call, conditions in rows.items():
        for condition, sides in conditions.items():
            print(f"{call}, {condition}")
            for side, figures in sides.items():
                ns = figures["ns"]
                kept = f"  the other thread keeps {100 * figures['kept']['median']:.0f} %" if "kept" in figures else ""
                print(f"    {side:12} {ns['median']:12,.0f} ns  [{ns['worst']:,.0f}, {ns['best']:,.0f}]{kept}")


def main():
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raw", help="raw.c, compiled as a library, with floor.c beside it")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--device", help="such as cuda:0; default: the current device")
    parser.add_argument("--processes", type=int, default=8, help="how many new processes")
    parser.add_argument("--rounds", type=int, default=3, help="at most, of each side in alternation")
    parser.add_argument("--seconds", type=float, default=0.15, help="at most, of each side in all rounds")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one_process(options)
        return 0
    results = [result_of(__file__, "--one", *given(options, "rounds", "seconds", "raw", "device")) for _ in range(options.processes)]
    rows, last = rows_of([result["found"] for result in results]), results[-1]
    show(rows)
    if last["no_baseline"]:
        print("without C functions:", last["no_baseline"])
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"device": last["device"], "no_baseline": last["no_baseline"], "processes": len(results),
                                            "switch_interval": sys.getswitchinterval(), "calls": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
