"""A graph of 100 small launches, beside the same launches one by one and beside the same graph by the CUDA driver alone.

    python graphs.py [--device NAME] [--json FILE] [--length N] [--rounds N] [--raw LIBRARY]

`call` is the time until the call has returned, `done` until the device has run the chain. The targets: a graph is done after at
most 1.02 times raw C's time, and its call takes at most a fifth of the launches' calls. `--raw` is graphs_raw.c as a library: the
same kernel and argument on a stream of its own.
"""

import argparse
import ctypes
import json
import statistics
import time

import numpy as np

import gpuglue as gg
from verdict import MISSED, OK, summary, verdict

LAUNCHES = 10  # of the graph in a round
SOURCE = 'extern "C" __global__ void step(float *x) { x[threadIdx.x] += 1.0f; }'
# struct raw_chain_calls: the driver's functions.
CALLS = ("cuStreamCreate", "cuStreamSynchronize", "cuStreamDestroy_v2", "cuStreamBeginCapture_v2", "cuStreamEndCapture",
         "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphDestroy", "cuGraphExecDestroy", "cuLaunchKernel",
         "cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction")  # fmt: skip


class Chain:
    """The launches, one by one and as a graph."""

    def __init__(self, device, length):
        self.device, self.length = device, length
        self.image = gg.compile(SOURCE, backend=device.backend)
        self.x = gg.zeros(256, "f4", device=device)
        self.stream = gg.Stream(device, nonblocking=True)
        self.kernel = gg.Module(self.image, device)["step"].bind("P", grid=1, block=256)
        gg.synchronize(device)
        self.queue()
        self.stream.synchronize()
        with gg.capture(self.stream) as self.graph:
            self.queue()
        self.x.fill(0)
        gg.synchronize(device)

    def queue(self):
        for _ in range(self.length):
            self.kernel(self.x, stream=self.stream)

    def run(self, one_by_one):
        """Nanoseconds per chain: until the calls have returned, and until the stream is done."""
        launch, stream, now = self.queue if one_by_one else self.graph.launch, self.stream, time.perf_counter_ns
        arguments = () if one_by_one else (stream,)
        start = now()
        for _ in range(LAUNCHES):
            launch(*arguments)
        called = now()
        stream.synchronize()
        return (called - start) / LAUNCHES, (now() - start) / LAUNCHES


class RawState(ctypes.Structure):
    """struct raw_chain."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in CALLS), ("image", ctypes.c_char_p), ("memory", ctypes.c_uint64), ("length", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("stream", "module", "function", "graph", "exec")),
    ]  # fmt: skip


class RawChain:
    """graphs_raw.c on the memory of a Chain."""

    def __init__(self, path, chain):
        self.library = ctypes.CDLL(path)
        driver = ctypes.CDLL(next(backend.library for backend in gg.backends() if backend.name == "cuda"))
        calls = [ctypes.cast(getattr(driver, name), ctypes.c_void_p) for name in CALLS]
        self.state = RawState(*calls, bytes(chain.image) + b"\0", chain.x.ptr, chain.length)
        self.device = chain.device
        self.call(self.library.raw_chain_begin)

    def call(self, function, *arguments):
        """Call a function of graphs_raw.c with the device's context current."""
        with self.device:
            code = function(ctypes.byref(self.state), *arguments)
        if code:
            raise RuntimeError(f"the driver returned {code} in the raw chain")

    def run(self, one_by_one):
        """As Chain.run."""
        returned = (ctypes.c_int64 * 2)()
        self.call(self.library.raw_chain_run, LAUNCHES, one_by_one, returned)
        return returned[0] / LAUNCHES, returned[1] / LAUNCHES

    def close(self):
        """Destroy what it made."""
        with self.device:
            self.library.raw_chain_end(ctypes.byref(self.state))


def measure(sides, rounds):
    """Per side, graph or launches: the pairs of all rounds. The sides alternate, and the first round is discarded."""
    times = {(side, work): [] for side in sides for work in ("graph", "launches")}
    for turn in range(rounds + 1):
        for (side, work), found in times.items():
            pair = sides[side].run(work == "launches")
            if turn:
                found.append(pair)
    return times


def results(times):
    """The verdicts of the targets: names and results."""
    ours = times["gpuglue", "graph"]
    calls = zip(ours, times["gpuglue", "launches"])
    found = {"a call at most a fifth of the launches' calls": verdict([5 * graph[0] - launches[0] for graph, launches in calls])}
    if ("raw C", "graph") in times:
        pairs = zip(ours, times["raw C", "graph"])
        found["done after at most 1.02 times raw C's time"] = verdict([own[1] - 1.02 * raw[1] for own, raw in pairs])
    return found


def main():
    """Print a table, and write JSON if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--json")
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--raw", metavar="LIBRARY")
    options = parser.parse_args()
    chain = Chain(gg.Device(options.device), options.length)
    raw = RawChain(options.raw, chain) if options.raw and chain.device.backend == "cuda" else None
    times = measure({"gpuglue": chain} | ({"raw C": raw} if raw else {}), options.rounds)
    launched = 2 * (2 if raw else 1) * LAUNCHES * (options.rounds + 1) * options.length
    right = bool((chain.x.get() == np.float32(launched)).all())
    print(f"{chain.device}, a chain of {options.length} launches; microseconds per chain, median")
    figures = {}
    for (side, work), found in times.items():
        called, done = (statistics.median(pair[i] for pair in found) / 1e3 for i in range(2))
        figures[f"{work}, {side}"] = {"call": called, "done": done}
        print(f"  {side:8} {work:9} call {called:9.2f}   done {done:9.2f}")
    found = results(times)
    for name, result in found.items():
        print(f"  {name}: {result}")
    print(f"  results {'right' if right else 'WRONG'}; {summary(list(found.values()))}")
    if raw:
        raw.close()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": chain.device.name, "length": options.length, "us": figures, "results": found, "right": right}, file, indent=1)


if __name__ == "__main__":
    main()
