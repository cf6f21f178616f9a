"""How much memory a caching allocator holds beyond what is in use: traces of allocations, replayed by gpuglue's pool and, if
they are installed and have a device, by the allocators of CuPy and torch and the driver's own pool.

    python fragmentation.py [--json FILE] [--device NAME] [--seeds 8] [--peer-seeds 3] [--live 1000] [--no-peers]

Each allocator replays each trace in a new process, on one stream and without work on the device. The figure is the most bytes
that it held from the driver, divided by the most bytes that were in use as requested: 1.00 is the optimum.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from traces import TRACES
from verdict import MISSED, OK

TARGET = 1.2
GIB = 1 << 30


# ---- allocators: each is (allocate, release, the most bytes held so far) ----


def gpuglue_side(device):
    """gpuglue's pool."""
    import gpuglue as gg
    device = gg.Device(device) if device else gg.current_device()
    stream = gg.Stream(device, nonblocking=True)
    pool = device.pool
    return lambda nbytes: gg.alloc(nbytes, device, stream), lambda memory: memory.close(), \
        lambda: pool.stats().reserved_peak


RESERVED_MEM_HIGH = 6  # CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH


def gpuglue_async_side(name):
    """gpuglue with GPUGLUE_ALLOCATOR=async: the driver's own pool."""
    import ctypes
    import os
    os.environ["GPUGLUE_ALLOCATOR"] = "async"
    allocate, release, _ = gpuglue_side(name)
    import gpuglue as gg
    device = gg.Device(name) if name else gg.current_device()
    driver = ctypes.CDLL(next(backend.library for backend in gg.backends() if backend.name == "cuda"))
    pool, held = ctypes.c_void_p(), ctypes.c_uint64()
    allocate(1).close()
    if driver.cuDeviceGetDefaultMemPool(ctypes.byref(pool), device.ordinal):
        raise RuntimeError("cuDeviceGetDefaultMemPool failed")

    def most():
        if driver.cuMemPoolGetAttribute(pool, RESERVED_MEM_HIGH, ctypes.byref(held)):
            raise RuntimeError("cuMemPoolGetAttribute failed")
        return held.value

    return allocate, release, most


def torch_side(_):
    """torch's caching allocator, with its default settings."""
    import torch
    torch.cuda.init()
    return torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete, \
        lambda: torch.cuda.memory_stats()["reserved_bytes.all.peak"]


def torch_expandable_side(_):
    """The same with segments that grow by mapping memory."""
    import os
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    return torch_side(_)


def _cupy_pool(pool):
    held = [0]

    def allocate(nbytes):
        memory = pool.malloc(nbytes)
        held[0] = max(held[0], pool.total_bytes())
        return [memory]

    return allocate, lambda block: block.clear(), lambda: held[0]


def cupy_side(_):
    """CuPy's memory pool."""
    import cupy
    return _cupy_pool(cupy.cuda.MemoryPool())


def async_side(_):
    """The driver's own pool (cudaMallocAsync), which CuPy exposes."""
    import cupy
    pool = cupy.cuda.MemoryAsyncPool()
    pool.free_all_blocks()
    return _cupy_pool(pool)


SIDES = {"gpuglue": gpuglue_side, "CuPy": cupy_side, "torch": torch_side, "torch, expandable": torch_expandable_side,
         "cudaMallocAsync": async_side, "gpuglue, async": gpuglue_async_side}


# ---- one process ----


def replay(trace, allocate, release):
    """The most bytes in use, and the seconds that the calls took."""
    blocks, used, peak = {}, 0, 0
    start = time.perf_counter()
    for number, nbytes in trace:
        if nbytes:
            blocks[number] = nbytes, allocate(nbytes)
            used += nbytes
            peak = max(peak, used)
        else:
            nbytes, block = blocks.pop(number)
            release(block)
            used -= nbytes
    seconds = time.perf_counter() - start
    for _, block in blocks.values():
        release(block)
    return peak, seconds


def one_process(options):
    """One allocator and one trace, as JSON."""
    try:
        allocate, release, held = SIDES[options.side](options.device)
    except Exception as error:  # not installed, no device, or anything else
        return {"absent": str(error).splitlines()[0] if str(error) else type(error).__name__}
    size = {"live": options.live} if options.trace.startswith("random") else {}
    trace = TRACES[options.trace](options.seed, **size)
    used, seconds = replay(trace, allocate, release)
    return {"used": used, "held": held(), "ratio": held() / used, "us_per_call": seconds / len(trace) * 1e6}


# ---- all processes ----


def run(options, side, trace, seed):
    """The result of a new process."""
    command = [sys.executable, __file__, "--side", side, "--trace", trace, "--seed", str(seed), "--live", str(options.live)]
    command += ["--device", options.device] if options.device else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"absent": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def row_of(options, side, trace):
    """The result of one allocator and kind of trace over all seeds, or why there is none."""
    found = []
    for seed in range(options.seeds if side == "gpuglue" else options.peer_seeds):
        found.append(run(options, side, trace, seed))
        if "absent" in found[-1]:
            return found[-1]
    ratios = [one["ratio"] for one in found]
    return {"median": statistics.median(ratios), "worst": max(ratios), "all": ratios,
            "used_gib": statistics.median(one["used"] for one in found) / GIB,
            "us_per_call": statistics.median(one["us_per_call"] for one in found)}


def show(trace, rows):
    """Print the table of one kind of trace."""
    print(f"\n== {trace}\n  {'held / in use':22}{'median':>8}{'worst':>8}{'GiB':>8}{'us/call':>10}")
    for side, row in rows.items():
        if "absent" in row:
            print(f"  {side:22}  not compared: {row['absent']}")
            continue
        result = f"  {row['result']}" if row.get("result") else ""
        print(f"  {side:22}{row['median']:8.2f}{row['worst']:8.2f}{row['used_gib']:8.1f}{row['us_per_call']:10.2f}{result}",
              flush=True)


def measure(options):
    """Trace → allocator → figures."""
    found = {}
    for trace in TRACES:
        found[trace] = rows = {}
        for side in ["gpuglue"] if options.no_peers else SIDES:
            rows[side] = row_of(options, side, trace)
        if "median" in rows["gpuglue"]:
            rows["gpuglue"]["result"] = OK if rows["gpuglue"]["median"] <= TARGET else MISSED
        show(trace, rows)
    return found


def main():
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--device", help="such as cuda:0; default: the current device")
    parser.add_argument("--seeds", type=int, default=8, help="how many traces of each kind")
    parser.add_argument("--peer-seeds", type=int, default=3, help="the same for the other allocators, which start slowly")
    parser.add_argument("--live", type=int, default=1000, help="the most blocks of a random trace at a time")
    parser.add_argument("--no-peers", action="store_true", help="gpuglue alone")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--trace", choices=TRACES, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(one_process(options)))
        return 0
    result = {"target": TARGET, "traces": measure(options)}
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
