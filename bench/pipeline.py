"""Upload, kernel and download of 16 pieces, beside the time of each of the three alone.

    python pipeline.py [--device NAME] [--json FILE] [--mib N] [--pieces N] [--rounds N] [--steps N | --kernel RATIO]
                       [--streams N] [--raw LIBRARY]

Pinned memory, one kernel per piece (compiled from source). Two pipelines: with the three operations of a piece on one of
`--streams` streams ("by piece"), and with a stream for each kind of operation, ordered by events ("by engine"). The target is
1.1 times the longest of the three.

"both ways" has the uploads and the downloads at the same time and independent of each other, without the kernels. Where a
machine is slower in both directions at once than in one, no pipeline that copies for most of its time can be faster than
that, and one piece more: the ideal that is printed is the longer of this and of the kernels, with the first upload and the last
download, which nothing overlaps.

`--steps` is the amount of computation per element; `--kernel 2` chooses it such that the kernels take twice as long as the
uploads. `--raw` is pipeline_raw.c as a library: the same by calls of the CUDA driver alone, in turn with gpuglue's, which is
the floor on this machine.
"""

import argparse
import ctypes
import json
import statistics
import time

import numpy as np

import gpuglue as gg

LIMIT = 1.1
PERIOD = 100  # of the values
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

# Operations of a run, as in pipeline_raw.c.
UPLOAD, KERNEL, DOWNLOAD, BY_ENGINE, INDEPENDENT = 1, 2, 4, 8, 16
RUNS = {"upload": UPLOAD, "kernel": KERNEL, "download": DOWNLOAD, "both ways": UPLOAD | DOWNLOAD | BY_ENGINE | INDEPENDENT,
        "by piece": UPLOAD | KERNEL | DOWNLOAD, "by engine": UPLOAD | KERNEL | DOWNLOAD | BY_ENGINE}  # fmt: skip
PIPELINES = ("by piece", "by engine")


class Pipeline:
    """The pieces in pinned memory and on the device, and the operations on them."""

    def __init__(self, device, options):
        self.count = (options.mib << 20) // 4
        shape = (options.pieces, self.count)
        self.given, self.result = (gg.empty_pinned(shape, "f4", device=device) for _ in range(2))
        self.given[...] = np.arange(self.count, dtype="f4") % PERIOD
        self.pieces = gg.zeros(shape, "f4", device=device)
        self.image = gg.compile(SOURCE, backend=device.backend)
        self.kernel = gg.Module(self.image, device)["advance"]
        self.streams = [gg.Stream(device, nonblocking=True) for _ in range(options.streams)]
        self.engines = [gg.Stream(device, nonblocking=True) for _ in range(3)]
        self.device, self.steps = device, options.steps

    def queue(self, i, how):
        own = self.streams[i % len(self.streams)]
        up, on, down = self.engines if how & BY_ENGINE else (own, own, own)
        ordered = how & BY_ENGINE and not how & INDEPENDENT
        if how & UPLOAD:
            gg.copy(self.pieces[i], self.given[i], stream=up)
        if how & KERNEL:
            if ordered:
                on.wait(up)
            self.kernel(self.pieces[i], np.uint64(self.count), np.int32(self.steps), grid=-(-self.count // 256), block=256, stream=on)
        if how & DOWNLOAD:
            if ordered:
                down.wait(on)
            gg.copy(self.result[i], self.pieces[i], stream=down)

    def run(self, name):
        """Nanoseconds for all pieces."""
        gg.synchronize(self.device)
        start = time.perf_counter_ns()
        for i in range(len(self.given)):
            self.queue(i, RUNS[name])
        gg.synchronize(self.device)
        return time.perf_counter_ns() - start

    def choose_steps(self, ratio):
        """Set the steps such that the kernels take `ratio` times as long as the uploads."""
        times = []
        for self.steps in (256, 256, 4096):
            times.append(self.run("kernel"))
        self.run("upload")
        per_step = max((times[2] - times[1]) / (4096 - 256), 1)
        self.steps = max(1, 256 + round((ratio * self.run("upload") - times[1]) / per_step))

    def check(self):
        """Whether the results are right; they are erased."""
        y = np.arange(PERIOD, dtype="f4")
        for _ in range(self.steps):
            y = y * np.float32(0.5) + np.float32(1)
        y = np.resize(y, self.count)
        right = all(np.array_equal(part, y) for part in self.result)  # halving is exact, so fused or not gives the same bits
        self.result[...] = 0
        return right


# struct raw_pipeline_calls: the driver's functions.
CALLS = ("cuStreamCreate", "cuStreamSynchronize", "cuStreamDestroy_v2", "cuStreamWaitEvent", "cuEventCreate", "cuEventRecord",
         "cuEventDestroy_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuLaunchKernel", "cuModuleLoadData", "cuModuleUnload",
         "cuModuleGetFunction")  # fmt: skip


class RawState(ctypes.Structure):
    """struct raw_pipeline."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in CALLS), ("given", ctypes.c_void_p), ("result", ctypes.c_void_p), ("memory", ctypes.c_uint64),
        ("count", ctypes.c_uint64), ("image", ctypes.c_char_p), ("pieces", ctypes.c_int), ("stream_count", ctypes.c_int),
        ("steps", ctypes.c_int), ("streams", ctypes.c_void_p * 16), ("module", ctypes.c_void_p), ("function", ctypes.c_void_p),
        ("uploaded", ctypes.c_void_p), ("computed", ctypes.c_void_p),
    ]  # fmt: skip


class RawPipeline:
    """pipeline_raw.c on the memory of a Pipeline."""

    def __init__(self, path, pipeline):
        self.library = ctypes.CDLL(path)
        self.library.raw_pipeline_run.restype = ctypes.c_int64
        driver = ctypes.CDLL(next(backend.library for backend in gg.backends() if backend.name == "cuda"))
        calls = [ctypes.cast(getattr(driver, name), ctypes.c_void_p) for name in CALLS]
        self.state = RawState(*calls, pipeline.given.ctypes.data, pipeline.result.ctypes.data, pipeline.pieces.ptr, pipeline.count,
                              bytes(pipeline.image) + b"\0", len(pipeline.given), len(pipeline.streams), pipeline.steps)  # fmt: skip
        self.device = pipeline.device
        with self.device:
            code = self.library.raw_pipeline_begin(ctypes.byref(self.state))
        if code:
            raise RuntimeError(f"the driver returned {code} when the raw pipeline was made")

    def run(self, name):
        """Nanoseconds for all pieces."""
        gg.synchronize(self.device)
        with self.device:
            spent = self.library.raw_pipeline_run(ctypes.byref(self.state), RUNS[name])
        if spent < 0:
            raise RuntimeError(f"the driver returned {-spent} in the raw pipeline")
        return spent

    def close(self):
        """Destroy its streams and unload its module."""
        with self.device:
            self.library.raw_pipeline_end(ctypes.byref(self.state))


def ratios_of(times, name):
    """The time of a pipeline divided by the longest of the three, in each round."""
    return [a / max(b) for a, *b in zip(times[name], times["upload"], times["kernel"], times["download"])]


def summarize(label, times, pieces):
    """Print the medians of one side and the ratios of its pipelines; return these, and the milliseconds."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, value in medians.items():
        print(f"  {label:8} {name:9} {value / 1e6:8.2f} ms")
    bound = max(medians["both ways"], medians["kernel"])
    ends = (medians["upload"] + medians["download"]) / pieces if bound == medians["kernel"] else bound / pieces
    ideal = (bound + ends) / max(medians[name] for name in ("upload", "kernel", "download"))
    print(f"  {label:8} ideal / longest = {ideal:.3f}")
    result = {"milliseconds": {name: value / 1e6 for name, value in medians.items()}, "ideal": ideal}
    for name in PIPELINES:
        ratios = ratios_of(times, name)
        result[name] = {"ratio": statistics.median(ratios), "ratios": ratios}
        print(f"  {label:8} {name} / longest = {result[name]['ratio']:.3f} (from {min(ratios):.3f} to {max(ratios):.3f})")
    return result


def parse():
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--json")
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--pieces", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--kernel", type=float, metavar="RATIO")
    parser.add_argument("--streams", type=int, default=3, choices=range(1, 17), metavar="N")
    parser.add_argument("--raw", metavar="LIBRARY")
    return parser.parse_args()


def main():
    """Measure the three alone and together, in turn."""
    options = parse()
    pipeline = Pipeline(gg.Device(options.device), options)
    if options.kernel:
        pipeline.choose_steps(options.kernel)
    print(f"{pipeline.device.name}: {options.pieces} pieces of {options.mib} MiB, {pipeline.steps} steps, {options.streams} streams by piece")
    sides = {"gpuglue": pipeline}
    if options.raw and pipeline.device.backend == "cuda":
        sides["raw C"] = RawPipeline(options.raw, pipeline)
    times = {side: {name: [] for name in RUNS} for side in sides}
    for turn in range(options.rounds + 1):
        for name in RUNS:
            for side, runner in sides.items():
                spent = runner.run(name)
                if turn:
                    times[side][name].append(spent)
    right = {}
    for side, runner in sides.items():
        for name in PIPELINES:
            pipeline.result[...] = 0
            runner.run(name)
            right[f"{side}, {name}"] = pipeline.check()
    result = {"device": pipeline.device.name, "pieces": options.pieces, "mib": options.mib, "steps": pipeline.steps, "right": right}
    result.update({side: summarize(side, times[side], options.pieces) for side in sides})
    if "raw C" in sides:
        sides["raw C"].close()
        for name in PIPELINES:
            to_raw = [a / b for a, b in zip(times["gpuglue"][name], times["raw C"][name])]
            result["gpuglue"][name]["to_raw"] = statistics.median(to_raw)
            print(f"  {name}: gpuglue / raw C = {statistics.median(to_raw):.3f} (from {min(to_raw):.3f} to {max(to_raw):.3f})")
    best = min(result["gpuglue"][name]["ratio"] for name in PIPELINES)
    wrong = [name for name, good in right.items() if not good]
    print(f"  better pipeline / longest = {best:.3f} (limit {LIMIT}): {'ok' if best <= LIMIT else 'missed'}; "
          f"results {'WRONG: ' + '; '.join(wrong) if wrong else 'right'}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
