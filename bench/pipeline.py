"""Upload, kernel and download of 16 pieces on three streams, beside the time of each of the three alone.

    python pipeline.py [--device NAME] [--json FILE] [--mib N] [--rounds N] [--steps N]

Pinned memory, one kernel per piece (compiled from source). The target is 1.1 times the longest of the three. `--steps` is the
amount of computation per element.
"""

import argparse
import json
import statistics
import time

import numpy as np

import gpuglue as gg

PIECES = 16
LIMIT = 1.1
SOURCE = """
extern "C" __global__ void advance(float *x, unsigned long long count, int steps)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float y = x[i];
    for (int step = 0; step < steps; step++)
        y = y * 0.5f + 1.0f;
    x[i] = y;
}
"""


class Pipeline:
    """The pieces in pinned memory and on the device, and the operations on them."""

    def __init__(self, device, mib, steps):
        self.count = (mib << 20) // 4
        shape = (PIECES, self.count)
        self.given, self.result = (gg.empty_pinned(shape, "f4", device=device) for _ in range(2))
        self.given[...] = np.arange(self.count, dtype="f4") % 100
        self.pieces = gg.zeros(shape, "f4", device=device)
        self.kernel = gg.Module(gg.compile(SOURCE, backend=device.backend), device)["advance"]
        self.streams = [gg.Stream(device, nonblocking=True) for _ in range(3)]
        self.device, self.steps = device, steps

    def upload(self, i, stream):
        gg.copy(self.pieces[i], self.given[i], stream=stream)

    def compute(self, i, stream):
        self.kernel(self.pieces[i], np.uint64(self.count), np.int32(self.steps), grid=-(-self.count // 256), block=256, stream=stream)

    def download(self, i, stream):
        gg.copy(self.result[i], self.pieces[i], stream=stream)

    def run(self, *operations):
        """Nanoseconds for all pieces."""
        gg.synchronize(self.device)
        start = time.perf_counter_ns()
        for i in range(PIECES):
            for operation in operations:
                operation(i, self.streams[i % len(self.streams)])
        gg.synchronize(self.device)
        return time.perf_counter_ns() - start

    def check(self):
        """Whether the results are right."""
        y = np.array(self.given[0])
        for _ in range(self.steps):
            y = y * np.float32(0.5) + np.float32(1)
        return all(np.allclose(part, y, rtol=1e-5) for part in self.result)


def main():
    """Measure the three alone and together, in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--json")
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=32)
    options = parser.parse_args()
    pipeline = Pipeline(gg.Device(options.device), options.mib, options.steps)
    sides = {"upload": (pipeline.upload,), "kernel": (pipeline.compute,), "download": (pipeline.download,),
             "pipeline": (pipeline.upload, pipeline.compute, pipeline.download)}  # fmt: skip
    times = {name: [] for name in sides}
    for turn in range(options.rounds + 1):
        for name, operations in sides.items():
            spent = pipeline.run(*operations)
            if turn:
                times[name].append(spent)
    medians = {name: statistics.median(values) / 1e6 for name, values in times.items()}
    longest = max(medians[name] for name in ("upload", "kernel", "download"))
    ratios = [a / max(b) for a, *b in zip(times["pipeline"], times["upload"], times["kernel"], times["download"])]
    ratio, right = statistics.median(ratios), pipeline.check()
    for name, value in medians.items():
        print(f"  {name:9} {value:8.2f} ms  {PIECES * options.mib / 1024 * 1.073741824 / value * 1e3:7.1f} GB/s")
    print(f"  pipeline / longest = {ratio:.3f} (limit {LIMIT}, from {min(ratios):.3f} to {max(ratios):.3f}): "
          f"{'ok' if ratio <= LIMIT else 'missed'}; results {'right' if right else 'WRONG'}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": pipeline.device.name, "milliseconds": medians, "ratio": ratio, "ratios": ratios, "longest": longest,
                       "right": right}, file, indent=1)


if __name__ == "__main__":
    main()
