"""Timing as raw.c does it: the median over bursts of 16 calls, with a wait between bursts off the clock."""

import statistics
import time

BURST = 16
BURSTS = 2000
SLOW_BURSTS = 200  # of calls that take tens of microseconds
BULK_RUNS = 10

LOOP = """
def burst({names}, SIXTEEN=range({count}), now=now):
    start = now()
    for _ in SIXTEEN:
        {statement}
    return now() - start
"""


def compiled(statement, names):
    """A function that runs a statement 16 times and gives the nanoseconds; names are fast locals."""
    space = {"now": time.perf_counter_ns, **names}
    arguments = ", ".join(f"{name}={name}" for name in names)
    source = LOOP.format(names=arguments, count=BURST, statement=statement)
    exec(source.replace("(, ", "("), space)
    return space["burst"]


def nanoseconds(statement, names, settle=lambda: None, bursts=BURSTS):
    """Median nanoseconds of one execution of a statement, the loop around it included."""
    burst = compiled(statement, names)
    times = []
    for _ in range(bursts):
        times.append(burst() / BURST)
        settle()
    return statistics.median(times)


def loop_overhead():
    """Nanoseconds of an empty turn of the loop: part of each figure, taken off none."""
    return nanoseconds("pass", {})


def gigabytes_per_second(nbytes, action, runs=BULK_RUNS):
    """Median rate of an action that moves so many bytes and waits for them; once before to warm up."""
    action()
    times = []
    for _ in range(runs):
        start = time.perf_counter_ns()
        action()
        times.append(time.perf_counter_ns() - start)
    return nbytes / statistics.median(times)
