"""Operations of PyCUDA's arrays, as gpuglue.compat has them: nanoseconds per call.

    python compat.py [--device NAME] [--json FILE] [--rounds N]

The floor is what no operation can be without: a bound launch with the same number of arguments, and for a new result an
allocation. The limit is CuPy's time in the same run (operators: plus 2 us); without CuPy there is none. The first operation of the
process, which compiles its kernel or finds it in the cache, is a line of its own.
"""

import argparse
import json
import statistics
import time

import numpy as np

import gpuglue as gg
from timing import SLOW_BURSTS, bursts_of, in_turn, loop_overhead
from verdict import rounds_of, summary, verdict

# Name, statement, floor, CuPy's statement, nanoseconds that it may cost more than CuPy.
ROWS = [
    ("a + b", "a + b", "bound(x, y, alloc(1024), 7, 7)", "ca + cb", 2000),
    ("a * 2", "a * 2", "bound(x, y, alloc(1024), 7, 7)", "ca * 2", 2000),
    ("-a", "-a", "bound(x, y, alloc(1024), 7, 7)", "-ca", 2000),
    ("a == b", "a == b", "bound(x, y, alloc(256), 7, 7)", "ca == cb", 2000),
    ("a += b", "a.__iadd__(b)", "bound(x, y, z, 7, 7)", "ca.__iadd__(cb)", 2000),
    ("a.fill(3)", "a.fill(3)", "x.fill(3)", "ca.fill(3)", 2000),
    ("gpuarray.sum(a)", "gpuarray.sum(a)", "bound(x, y, alloc(4), 7, 7)", "ca.sum()", 2000),
    ("cumath.exp(a)", "cumath.exp(a)", "bound(x, y, alloc(1024), 7, 7)", "cupy.exp(ca)", 2000),
    ("ElementwiseKernel", "linear(2.0, a, b, c)", "bound(x, y, z, 7, 7)", "clinear(two, ca, cb, cc)", 0),
    ("ReductionKernel", "dot(a, b)", "bound(x, y, alloc(4), 7, 7)", "cdot(ca, cb)", 0),
]
EMPTY = 'extern "C" __global__ void gg_empty(float *x, float *y, float *z, long long m, long long n) {}'


def ours():
    """The names that the statements use."""
    from gpuglue.compat.pycuda import cumath, driver, gpuarray, tools
    from gpuglue.compat.pycuda.elementwise import ElementwiseKernel
    from gpuglue.compat.pycuda.reduction import ReductionKernel

    driver.init()
    tools.make_default_context()
    start = time.perf_counter()
    a = gpuarray.zeros(256, np.float32)
    a + a
    gg.synchronize()
    print(f"first array and first operation of the process: {(time.perf_counter() - start) * 1e3:.1f} ms")
    x, y, z = (gg.zeros(256, np.float32) for _ in range(3))
    return {
        "a": a, "b": gpuarray.ones(256, np.float32), "c": gpuarray.zeros(256, np.float32), "gpuarray": gpuarray, "cumath": cumath,
        "linear": ElementwiseKernel("float s, float *x, float *y, float *z", "z[i] = s * x[i] + y[i]", "linear"),
        "dot": ReductionKernel(np.float32, "0", "a + b", "x[i] * y[i]", "float *x, float *y", "dot"),
        "bound": gg.Module(gg.compile(EMPTY, lang="cuda"))["gg_empty"].bind("PPPqq", grid=1, block=256),
        "alloc": gg.alloc, "x": x, "y": y, "z": z}


def theirs(device):
    """The same for CuPy, or None."""
    try:
        import cupy
    except ImportError as error:
        print(f"without CuPy: {error}")
        return None
    if device.backend != ("hip" if cupy.cuda.runtime.is_hip else "cuda"):
        return None
    return {
        "cupy": cupy, "ca": cupy.zeros(256, np.float32), "cb": cupy.ones(256, np.float32), "cc": cupy.zeros(256, np.float32),
        "two": np.float32(2),
        "clinear": cupy.ElementwiseKernel("float32 s, float32 x, float32 y", "float32 z", "z = s * x + y", "linear"),
        "cdot": cupy.ReductionKernel("float32 x, float32 y", "float32 z", "x * y", "a + b", "z = a", "0", "dot")}


def measure(device, rounds):
    """The medians of each row's sides, which alternate; the time of the loop is subtracted."""
    empty, names, other, figures = loop_overhead(), ours(), theirs(device), {}
    print(f"{'':20}{'floor':>10}{'gpuglue':>10}{'CuPy':>10}  limit")
    for name, statement, floor, alike, more in ROWS:
        sides = {"gpuglue": bursts_of(statement, names, device.synchronize), "floor": bursts_of(floor, names, device.synchronize)}
        sides |= {"CuPy": bursts_of(alike, other, device.synchronize)} if other else {}
        times = in_turn(sides, rounds, SLOW_BURSTS)
        found = {side: statistics.median(each) - empty for side, each in times.items()}
        result = verdict([own - base - more for own, base in zip(*(rounds_of(times[side], SLOW_BURSTS) for side in ("gpuglue", "CuPy")))]) \
            if other else None
        figures[name] = {**found, "more": more, "result": result}
        print(f"{name:20}{found['floor']:10.0f}{found['gpuglue']:10.0f}{found.get('CuPy', float('nan')):10.0f}  {result or ''}")
    return figures


def main():
    """Print a table, and write JSON if requested."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="such as cuda:0; default: the current device")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    device = gg.Device(options.device)
    print(f"{device}, NumPy {np.__version__}; ns per call, median, arrays of 1 KiB")
    with device:
        figures = measure(device, options.rounds)
    print(summary([row["result"] for row in figures.values()]))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": str(device), "ns": figures}, file, indent=1)


if __name__ == "__main__":
    main()
