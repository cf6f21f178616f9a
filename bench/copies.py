"""Copies of pageable memory by size, and of strided views: the driver alone, gpuglue, CuPy, torch and cuda.core
in alternation.

    python copies.py [--raw LIBRARY] [--json FILE] [--device NAME] [--most MIB] [--against DIRECTORY [--processes 8]] [--sweep]

Figures are in GB/s. Pageable memory is warm except in "D2H, new array". --sweep repeats the measurement for several
numbers of copy threads, with staging forced, chosen and off, each in a new process, with gpuglue's rows only. --against compares
the strided rows with those of another version of gpuglue, whose package is in DIRECTORY (strided_before.py).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import gpuglue as gg

from baseline import open_baseline
from rows import MIB, Arrays
from verdict import RUNS
from strided_before import compare
from strided_before import show as show_before

ROUNDS = 7  # of each side in alternation, after one that is discarded
SIDE = 4096  # elements per side of the square in the strided rows
ALONE = dict.fromkeys(("CuPy", "torch", "cuda.core"), "--alone")


def gbps(nbytes, times):
    """Bytes per nanosecond of the median."""
    return nbytes / statistics.median(times)


def in_turn(sides, rounds=ROUNDS):
    """Nanoseconds of each side; the sides alternate."""
    times = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, action in sides.items():
            start = time.perf_counter_ns()
            action()
            if turn:
                times[name].append(time.perf_counter_ns() - start)
    return times


def raw_sides(baseline):
    """Rows of raw.c as functions."""
    return {} if baseline is None else {
        ("H2D", "raw pageable"): lambda: baseline.bursts_of("h2d_pageable")(1),
        ("H2D", "raw pinned"): lambda: baseline.bursts_of("h2d_pinned")(1),
        ("D2H", "raw pageable"): lambda: baseline.bursts_of("d2h_pageable")(1),
        ("D2H", "raw pinned"): lambda: baseline.bursts_of("d2h_pinned")(1),
    }


def cupy_sides(host):
    """CuPy's copies."""
    import cupy
    there = cupy.empty(host.shape, host.dtype)
    wait = cupy.cuda.get_current_stream().synchronize

    def up():
        there.set(host)
        wait()

    return {
        ("H2D", "CuPy"): up,
        ("D2H", "CuPy"): lambda: there.get(out=host),
        ("D2H, new array", "CuPy"): there.get,
    }


def torch_sides(host):
    """torch's copies. Its threads must not spin between two copies: they would slow down the next side."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import torch
    there = torch.empty(host.shape, dtype=torch.uint8, device="cuda")
    here = torch.from_numpy(host)

    def up():
        there.copy_(here)
        torch.cuda.synchronize()

    return {
        ("H2D", "torch"): up,
        ("D2H", "torch"): lambda: here.copy_(there),
        ("D2H, new array", "torch"): lambda: there.cpu().numpy(),
    }


def cuda_core_sides(host):
    """cuda.core's copies: between buffers, so with pinned memory only."""
    from cuda import core
    device = core.Device()
    device.set_current()
    stream = device.create_stream()
    there, here = device.allocate(host.nbytes, stream=stream), core.LegacyPinnedMemoryResource().allocate(host.nbytes)

    def up():
        there.copy_from(here, stream=stream)
        stream.sync()

    def down():
        there.copy_to(here, stream=stream)
        stream.sync()

    return {("H2D", "cuda.core pinned"): up, ("D2H", "cuda.core pinned"): down}


def peer_sides(host, absent):
    """The copies of the other packages; `absent` gets the reasons of those that are not available."""
    sides = {}
    for name, make in (("CuPy", cupy_sides), ("torch", torch_sides), ("cuda.core", cuda_core_sides)):
        if name in absent:
            continue
        try:
            sides |= make(host)
        except Exception as error:  # not installed, no device, or anything else
            absent[name] = str(error).splitlines()[0] if str(error) else type(error).__name__
    return sides


def own_sides(arrays):
    """gpuglue's copies."""
    return {
        ("H2D", "gpuglue"): arrays.set_pageable,
        ("D2H", "gpuglue"): arrays.get_pageable,
        ("D2H, new array", "gpuglue"): lambda: arrays.array.get(stream=arrays.stream),
    }


def measure_size(nbytes, device, stream, baseline, absent):
    """Row → side → GB/s."""
    arrays = Arrays(device, nbytes)
    arrays.stream = stream
    if baseline:
        baseline.use(stream, arrays)
    for action in own_sides(arrays).values():
        for _ in range(max(1, 32 * MIB // nbytes)):  # so much that gpuglue has slots and threads
            action()
    sides = raw_sides(baseline) | own_sides(arrays) | peer_sides(arrays.pageable, absent)
    rows = {}
    for (row, side), times in in_turn(sides).items():
        rows.setdefault(row, {})[side] = gbps(nbytes, times)
    return rows


def first_and_third(device, nbytes):
    """GB/s of the first five calls of .get(); each result is dropped before the next call."""
    array = gg.zeros(nbytes, np.uint8, device=device)
    gg.zeros(nbytes // 2, np.uint8, device=device).get()  # another size: allocates the slots and starts the threads
    gg.current_stream(device).synchronize()
    found = []
    for _ in range(5):
        start = time.perf_counter_ns()
        result = array.get()
        found.append(nbytes / (time.perf_counter_ns() - start))
        del result
    return found


# ---- strided ----


def views(side):
    """Name → view of a square of float32 on the host."""
    square = np.arange(side * side, dtype=np.float32).reshape(side, side)
    return {"transposed": square.T, "every other row": np.concatenate([square, square])[::2]}


def strided_own(view, device):
    """gpuglue: copy a view to a C-contiguous array, and that array back into the view."""
    there = gg.empty(view.shape, view.dtype, device=device)
    return {("H2D", "gpuglue"): lambda: there.set(view), ("D2H", "gpuglue"): lambda: there.get(view)}


def strided_cupy(view):
    """The same with CuPy."""
    import cupy
    there = cupy.empty(view.shape, view.dtype)
    wait = cupy.cuda.get_current_stream().synchronize

    def up():
        there[...] = cupy.asarray(view, order="C")
        wait()

    def down():
        view[...] = there.get()

    return {("H2D", "CuPy"): up, ("D2H", "CuPy"): down}


def strided_torch(view):
    """The same with torch."""
    import torch
    there = torch.empty(view.shape, dtype=torch.float32, device="cuda")
    here = torch.from_numpy(view)

    def up():
        there.copy_(here)
        torch.cuda.synchronize()

    return {("H2D", "torch"): up, ("D2H", "torch"): lambda: here.copy_(there)}


def measure_strided(device, absent, length):
    """Row → side → GB/s of views of a square of that side length."""
    found = {}
    for name, view in views(length).items():
        sides = strided_own(view, device)
        for peer, make in (("CuPy", strided_cupy), ("torch", strided_torch)):
            if peer not in absent:
                sides |= make(view)
        for (row, side), times in in_turn(sides).items():
            found.setdefault(f"{name}, {row}", {})[side] = gbps(view.nbytes, times)
    return found


# ---- everything ----


def show(title, rows):
    """Print a line for each row."""
    for row, sides in rows.items():
        print(f"{title:>10} {row:22}" + "".join(f"  {side} {value:.1f}" for side, value in sides.items()), flush=True)


def measure(options):
    """All figures; each is printed when it is measured."""
    device = gg.Device(options.device) if options.device else gg.current_device()
    absent = dict(ALONE) if options.alone else {}
    baseline, reason = open_baseline(options.raw, device)
    stream = gg.Stream(device, nonblocking=True)
    result = {"device": device.name, "no_baseline": reason, "sizes": {}, "absent": absent}
    fresh = first_and_third(device, options.most * MIB)
    print(f"{options.most} MiB, the first five calls of .get(), GB/s: " + " ".join(f"{value:.1f}" for value in fresh))
    result["get"] = fresh
    for mib in (1, 4, 16, 64, 256):
        if mib <= options.most:
            result["sizes"][mib] = measure_size(mib * MIB, device, stream, baseline, absent)
            show(f"{mib} MiB", result["sizes"][mib])
    result["strided"] = measure_strided(device, absent, options.side)
    show(f"{options.side ** 2 * 4 / MIB:g} MiB", result["strided"])
    for name, reason in absent.items():
        print(f"not compared with {name}: {reason}")
    return result


def keep(result, path):
    """Write the JSON."""
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1))


def strided_only(options):
    """Gpuglue's strided rows, and which package it was, as JSON."""
    device = gg.Device(options.device) if options.device else gg.current_device()
    print(json.dumps({"package": str(Path(gg.__file__).resolve()), "strided": measure_strided(device, ALONE, options.side)}))


def sweep(options):
    """The same in new processes, for several numbers of copy threads and each value of GPUGLUE_STAGING."""
    for staging in ("never", "auto", "always"):
        for threads in (1, 2, 4, 8, 16):
            print(f"\n== GPUGLUE_STAGING={staging} GPUGLUE_COPY_THREADS={threads}", flush=True)
            settings = {"GPUGLUE_STAGING": staging, "GPUGLUE_COPY_THREADS": str(threads), "GPUGLUE_LOG": "info"}
            command = [sys.executable, __file__, "--alone", "--most", str(options.most)]
            command += ["--raw", options.raw] if options.raw else []
            command += ["--device", options.device] if options.device else []
            subprocess.run(command, env=os.environ | settings, check=False)
            if staging == "never":
                break


def main():
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raw", help="raw.c, compiled as a library")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--device", help="such as cuda:0; default: the current device")
    parser.add_argument("--most", type=int, default=256, help="the largest size, in MiB")
    parser.add_argument("--alone", action="store_true", help="without CuPy and torch")
    parser.add_argument("--sweep", action="store_true", help="also with other numbers of copy threads")
    parser.add_argument("--against", type=Path, help="also compare the strided rows with the package in this directory")
    parser.add_argument("--processes", type=int, default=8, help="of each version, with --against")
    parser.add_argument("--sets", type=int, default=RUNS, help="how many sets of processes at most, with --against")
    parser.add_argument("--side", type=int, default=SIDE, help="elements per side of the square in the strided rows")
    parser.add_argument("--strided-only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.strided_only:
        strided_only(options)
        return 0
    result = measure(options)
    keep(result, options.json)
    if options.against:
        result["strided before"] = compare(options)
        show_before(result["strided before"])
        keep(result, options.json)
    if options.sweep:
        sweep(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
