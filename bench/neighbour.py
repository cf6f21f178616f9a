"""A second process on the same device, which launches and copies while bench.py measures.

    python neighbour.py [--device NAME]

It prints a line when its first round is done, and after that its rounds and seconds as JSON when its standard input is closed.
"""

import argparse
import json
import select
import subprocess
import sys
import time

import numpy as np

import gpuglue as gg
from rows import MIB, kernels_for, takes_kernels

COPIED = 16 * MIB
LAUNCHES = 100


class NeighbourError(Exception):
    """The second process ended by itself."""


class Neighbour:
    """The process; a context manager. `done` has its rounds and seconds, at the end."""

    def __init__(self, device):
        command = [sys.executable, __file__, "--device", f"{device.backend}:{device.ordinal}"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.done = None

    def __enter__(self):
        if self.process.stdout.readline() != "ready\n":
            self.process.communicate()
            raise NeighbourError(f"it ended before its first round, with status {self.process.returncode}")
        return self

    def __exit__(self, kind, error, trace):
        lived = self.process.poll() is None
        text, _ = self.process.communicate()
        if kind:
            return
        if not lived or self.process.returncode:
            raise NeighbourError(f"it ended while others were measured, with status {self.process.returncode}")
        self.done = json.loads(text)


def rounds_on(device):
    """A function that makes one round: launches, and copies of pinned memory in both directions."""
    stream = gg.Stream(device, nonblocking=True)
    array, pinned = gg.zeros(COPIED, np.uint8, device=device), gg.zeros_pinned(COPIED, np.uint8, device=device)
    launch = kernels_for(device)["bound"] if takes_kernels(device) else lambda stream: array.fill(1, stream)

    def make_round():
        for _ in range(LAUNCHES):
            launch(stream=stream)
        array.set(pinned, stream)
        array.get(pinned, stream)

    return make_round


def main():
    """Work until standard input is closed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="such as cuda:0; default: the current device")
    make_round, rounds = rounds_on(gg.Device(parser.parse_args().device)), 1
    make_round()
    print("ready", flush=True)
    start = time.perf_counter()
    while not select.select([sys.stdin], [], [], 0)[0]:
        make_round()
        rounds += 1
    print(json.dumps({"rounds": rounds, "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
