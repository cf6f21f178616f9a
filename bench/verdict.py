"""Whether a row reaches its target: judged by the differences of its rounds, or of several processes, whose spread is the noise.

Both sides run in each round, so a slow second of the machine is in both, and the difference remains."""

import math
import statistics

OK, MISSED, NOISY = "ok", "missed", "too noisy to say"
RUNS = 3  # at most, of a row in one process that is not ok at once; or sets of processes
RISK = 0.01  # that the median of all possible rounds or processes lies outside of the interval


def rounds_of(times, bursts):
    """The median of each round, from the times of all its bursts."""
    return [statistics.median(times[first:first + bursts]) for first in range(0, len(times), bursts)]


def interval(values):
    """Two of the values, between which the median lies (by the sign test, so for any distribution); None: too few."""
    ordered, count = sorted(values), len(values)
    outside, tail = 0, 0.5 ** count
    while tail <= RISK / 2:
        outside += 1
        tail += math.comb(count, outside) / 2 ** count
    return (ordered[outside - 1], ordered[count - outside]) if outside else None


def verdict(excesses):
    """The result of one run, or of several processes: `excesses` are above 0 in the rounds, or processes, that miss the target."""
    limits = interval(excesses)
    if limits is None:
        return NOISY
    return OK if limits[1] <= 0 else MISSED if limits[0] > 0 else NOISY


def judge(runs):
    """The result of several runs of a row in one process, each a list of excesses: a miss counts only if every run shows it."""
    together = verdict([excess for run in runs for excess in run])
    if together == MISSED and any(verdict(run) != MISSED for run in runs):
        return NOISY
    return together


def summary(results):
    """One line about the results of all rows; None stands for a row without a target."""
    counts = {result: sum(found == result for found in results) for result in (OK, MISSED, NOISY)}
    line = f"{sum(counts.values())} targets: {counts[OK]} reached, {counts[MISSED]} missed"
    if counts[NOISY]:
        line += f", {counts[NOISY]} too noisy to say: for these, run it again while the machine is idle"
    return line
