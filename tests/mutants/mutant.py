"""A mutant, and the names of the runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str
    rule: str
    file: str
    old: str
    new: str
    runs: tuple


def on(suites, *runs):
    """Every suite on every run."""
    return tuple(f"{suite}-{run}" for run in runs for suite in suites.split())


CUDA, HIP, OLD, NEW, HOST = "cuda-sim", "hip-sim-7", "ze-sim-old", "ze-sim-new", "host"
