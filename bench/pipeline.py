"""Upload, kernel and download of 16 pieces on three streams, beside the time of each of the three alone.

    python pipeline.py [--device NAME] [--json FILE] [--mib N] [--rounds N] [--steps N] [--streams N] [--raw LIBRARY]

Pinned memory, one kernel per piece (compiled from source). The target is 1.1 times the longest of the three. `--steps` is the
amount of computation per element. `--raw` is pipeline_raw.c as a library: the same pieces, memory and kernel by calls of the
CUDA driver alone, in turn with gpuglue's, which is the floor on this machine.
"""

import argparse
import ctypes
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

    def __init__(self, device, mib, steps, streams):
        self.count = (mib << 20) // 4
        shape = (PIECES, self.count)
        self.given, self.result = (gg.empty_pinned(shape, "f4", device=device) for _ in range(2))
        self.given[...] = np.arange(self.count, dtype="f4") % 100
        self.pieces = gg.zeros(shape, "f4", device=device)
        self.image = gg.compile(SOURCE, backend=device.backend)
        self.kernel = gg.Module(self.image, device)["advance"]
        self.streams = [gg.Stream(device, nonblocking=True) for _ in range(streams)]
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


# struct raw_pipeline_calls: the driver's functions.
CALLS = ("cuStreamCreate", "cuStreamSynchronize", "cuStreamDestroy_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuLaunchKernel",
         "cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction")  # fmt: skip
OPERATIONS = {"upload": 1, "kernel": 2, "download": 4, "pipeline": 7}


class RawState(ctypes.Structure):
    """struct raw_pipeline."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in CALLS), ("given", ctypes.c_void_p), ("result", ctypes.c_void_p), ("memory", ctypes.c_uint64),
        ("count", ctypes.c_uint64), ("image", ctypes.c_char_p), ("pieces", ctypes.c_int), ("stream_count", ctypes.c_int),
        ("steps", ctypes.c_int), ("streams", ctypes.c_void_p * 16), ("module", ctypes.c_void_p), ("function", ctypes.c_void_p),
    ]  # fmt: skip


class RawPipeline:
    """pipeline_raw.c on the memory of a Pipeline."""

    def __init__(self, path, pipeline):
        self.library = ctypes.CDLL(path)
        self.library.raw_pipeline_run.restype = ctypes.c_int64
        driver = ctypes.CDLL(next(backend.library for backend in gg.backends() if backend.name == "cuda"))
        calls = [ctypes.cast(getattr(driver, name), ctypes.c_void_p) for name in CALLS]
        self.state = RawState(*calls, pipeline.given.ctypes.data, pipeline.result.ctypes.data, pipeline.pieces.ptr, pipeline.count,
                              bytes(pipeline.image) + b"\0", PIECES, len(pipeline.streams), pipeline.steps)  # fmt: skip
        self.device = pipeline.device
        with self.device:
            code = self.library.raw_pipeline_begin(ctypes.byref(self.state))
        if code:
            raise RuntimeError(f"the driver returned {code} when the raw pipeline was made")

    def run(self, name):
        """Nanoseconds for all pieces."""
        gg.synchronize(self.device)
        with self.device:
            spent = self.library.raw_pipeline_run(ctypes.byref(self.state), OPERATIONS[name])
        if spent < 0:
            raise RuntimeError(f"the driver returned {-spent} in the raw pipeline")
        return spent

    def close(self):
        """Destroy its streams and unload its module."""
        with self.device:
            self.library.raw_pipeline_end(ctypes.byref(self.state))


def summarize(label, times):
    """Print the medians of one side; its ratios of the pipeline to the longest of the three."""
    ratios = [a / max(b) for a, *b in zip(times["pipeline"], times["upload"], times["kernel"], times["download"])]
    for name, values in times.items():
        print(f"  {label:8} {name:9} {statistics.median(values) / 1e6:8.2f} ms")
    print(f"  {label:8} pipeline / longest = {statistics.median(ratios):.3f} (from {min(ratios):.3f} to {max(ratios):.3f})")
    return ratios


def main():
    """Measure the three alone and together, in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--json")
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--streams", type=int, default=3, choices=range(1, 17), metavar="N")
    parser.add_argument("--raw", metavar="LIBRARY")
    options = parser.parse_args()
    pipeline = Pipeline(gg.Device(options.device), options.mib, options.steps, options.streams)
    raw = RawPipeline(options.raw, pipeline) if options.raw and pipeline.device.backend == "cuda" else None
    sides = {"upload": (pipeline.upload,), "kernel": (pipeline.compute,), "download": (pipeline.download,),
             "pipeline": (pipeline.upload, pipeline.compute, pipeline.download)}  # fmt: skip
    times, floor = ({name: [] for name in sides} for _ in range(2))
    for turn in range(options.rounds + 1):
        for name, operations in sides.items():
            spent = pipeline.run(*operations), raw.run(name) if raw else 0
            if turn:
                times[name].append(spent[0])
                floor[name].append(spent[1])
    pipeline.result[...] = 0
    pipeline.run(*sides["pipeline"])
    right = pipeline.check()
    ratios = summarize("gpuglue", times)
    ratio = statistics.median(ratios)
    result = {"device": pipeline.device.name, "milliseconds": {name: statistics.median(values) / 1e6 for name, values in times.items()},
              "ratio": ratio, "ratios": ratios, "right": right}  # fmt: skip
    if raw:
        pipeline.result[...] = 0
        raw.run("pipeline")
        result["raw_right"] = pipeline.check()
        result["raw_milliseconds"] = {name: statistics.median(values) / 1e6 for name, values in floor.items()}
        result["raw_ratios"] = summarize("raw C", floor)
        to_raw = [a / b for a, b in zip(times["pipeline"], floor["pipeline"])]
        result["to_raw"] = statistics.median(to_raw)
        print(f"  gpuglue / raw C = {result['to_raw']:.3f} (from {min(to_raw):.3f} to {max(to_raw):.3f}); results of raw C "
              f"{'right' if result['raw_right'] else 'WRONG'}")
        raw.close()
    print(f"  pipeline / longest = {ratio:.3f} (limit {LIMIT}): {'ok' if ratio <= LIMIT else 'missed'}; "
          f"results {'right' if right else 'WRONG'}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
