"""Timing as in raw.c: bursts of 16 calls with an unmeasured wait between bursts; the sides alternate."""

import statistics
import time
from dataclasses import dataclass

BURST = 16
ROUNDS = 100  # of bursts of each side in alternation, so that noise affects both; in all processes together
BURSTS = 20  # of each side in a round
SLOW_BURSTS = 10  # of calls that take tens of microseconds
BULK_ROUNDS = 10  # of one large copy of each side
BESIDE_ROUNDS = 20  # beside another process: the two take turns on the device, so each wait takes milliseconds
QUICK_ROUNDS = 2  # of each row, where only the program is tried
BESIDE = ", beside another process"  # what follows the name of a row or stream that is measured so



@dataclass(frozen=True)
class Plan:
    """How many rounds each row has in a process, and how many bursts a round."""

    rounds: int
    bulk_rounds: int
    bursts: int = 0  # 0: those of the row


def plans_of(quick, processes):
    """The plan of most rows, and that of the rows beside another process: each process makes its share of the rounds."""
    if quick:
        return (Plan(QUICK_ROUNDS, QUICK_ROUNDS, SLOW_BURSTS),) * 2
    rounds, bulk, beside = (-(-together // processes) for together in (ROUNDS, BULK_ROUNDS, BESIDE_ROUNDS))
    return Plan(rounds, bulk), Plan(beside, bulk, SLOW_BURSTS)


LOOP = """
def burst({names}, SIXTEEN=range({count}), now=now):
    start = now()
    for _ in SIXTEEN:
        {statement}
    return now() - start
"""


def compiled(statement, names):
    """Return a function that runs a statement 16 times and returns the nanoseconds; names are fast locals."""
    space = {"now": time.perf_counter_ns, **names}
    arguments = ", ".join(f"{name}={name}" for name in names)
    source = LOOP.format(names=arguments, count=BURST, statement=statement)
    exec(source.replace("(, ", "("), space)
    return space["burst"]


def bursts_of(statement, names, settle=lambda: None):
    """Return a function that measures bursts and returns their nanoseconds, including the loop."""
    burst = compiled(statement, names)

    def run(count):
        times = []
        for _ in range(count):
            times.append(burst() / BURST)
            settle()
        return times

    return run


def copies_of(action):
    """Return a function that measures runs of an action that waits itself, and returns their nanoseconds."""

    def run(count):
        times = []
        for _ in range(count):
            start = time.perf_counter_ns()
            action()
            times.append(time.perf_counter_ns() - start)
        return times

    return run


def in_turn(sides, rounds, bursts):
    """The nanoseconds of each side's bursts. The sides alternate, and the first round is discarded."""
    times = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, run in sides.items():
            found = run(bursts)
            times[name] += found if turn else []
    return times


def spread(values):
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": middle, "p25": low, "p75": high, "count": len(values)}


def nanoseconds(statement, names, settle=lambda: None, bursts=500):
    """Median nanoseconds of one execution of a statement, measured alone."""
    times = in_turn({"alone": bursts_of(statement, names, settle)}, rounds=5, bursts=max(2, bursts // 5))
    return statistics.median(times["alone"])


def loop_overhead():
    """Nanoseconds of an empty iteration of the loop, which each figure of a statement includes."""
    return nanoseconds("pass", {})
