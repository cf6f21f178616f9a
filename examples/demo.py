"""Show what gpuglue does on this machine, and check each step: `make demo`.

    python examples/demo.py

Lists the backends with reasons, copies arrays of many types to the device and back, calls a library that does
not use gpuglue with a device pointer, and measures the copies. The exit status is 0 if every check passed.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import gpuglue as gg

HERE = Path(__file__).resolve().parent
TREE = HERE.parent
CARRIED = Path(os.environ.get("EXISTING_LIBRARY", TREE / "dist" / "carry" / "existing_library"))
SCRATCH = Path(os.environ.get("DEMO_SCRATCH", TREE / "build" / "existing_library"))

POINT = np.dtype([("x", "f4"), ("y", "f4"), ("id", "i8")])
DTYPES = "bool int8 uint16 int32 uint64 float16 float32 float64 complex64 complex128 S7 U5 datetime64[us]"
SIZES = (0, 1, 1000, 1_000_003)
MIB = 1 << 20

failures: list[str] = []


def check(name: str, passed: bool | np.bool_) -> None:
    """Record a check and print its result."""
    print(f"  {'ok  ' if passed else 'FAIL'} {name}")
    if not passed:
        failures.append(name)


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n== {text}")


def show_backends() -> gg.Device:
    """List the backends, and why a backend is unavailable."""
    title("backends")
    for backend in gg.backends(probe="active"):
        what = f"{backend.devices} device(s)" if backend.status == "available" else backend.reason
        print(f"  {backend.name:6} {backend.status:20} {what}")
    device = gg.current_device()
    print(f"  this demo runs on {device.backend}:{device.ordinal}, {device.name}")
    return device


def sample(dtype: np.dtype[Any], size: int) -> npt.NDArray[Any]:
    """An array of many values."""
    generator = np.random.default_rng(size)
    if dtype.kind in "SU":
        return generator.integers(0, 99999, size).astype(dtype)
    raw = generator.integers(0, 2 if dtype.kind == "b" else 200, size * dtype.itemsize, dtype=np.uint8)
    return raw.view(dtype)


def same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Whether both are equal bit by bit, including NaNs."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def round_trip(array: npt.NDArray[Any]) -> bool:
    """Copy to the device, on the device, and back, by every kind of copy."""
    on_device = gg.to_gpu(array)
    across = gg.empty_like(on_device)
    gg.copy(across, on_device)
    back = np.empty_like(array)
    gg.copy(back, across)
    stream = gg.Stream()
    later = across.get_async(stream=stream)
    stream.synchronize()
    return same(on_device.get(), array) and same(back, array) and same(later, array)


def show_round_trips() -> None:
    """Check round trips of several dtypes, sizes and orders."""
    title("round trips, compared with NumPy bit by bit")
    for dtype in [np.dtype(name) for name in DTYPES.split()] + [POINT]:
        passed = all(round_trip(sample(dtype, size)) for size in SIZES)
        check(f"{dtype!s:55.55} {len(SIZES)} sizes up to {SIZES[-1] * dtype.itemsize / MIB:.1f} MiB", passed)
    matrix = np.asfortranarray(sample(np.dtype("f8"), 600).reshape(20, 30))
    fetched = gg.to_gpu(matrix).get()
    check("Fortran order is kept", same(fetched, matrix) and fetched.flags.f_contiguous)
    every_other = matrix[::2, ::3]
    check("a strided source", same(gg.to_gpu(every_other).get(), np.ascontiguousarray(every_other)))
    check("fill", (gg.full((3, 5), 1.5, "f4").get() == np.float32(1.5)).all())
    check("arange", same(gg.arange(10, 0, -3).get(), np.arange(10, 0, -3)))


def obtain_library(device: gg.Device) -> tuple[Any, str]:
    """The example library for the device's backend, or the reason why there is none."""
    if device.backend == "cuda" and os.environ.get("GPUGLUE_CUDA_LIBRARY"):
        return None, "GPUGLUE_CUDA_LIBRARY is set, and the library itself would use another driver"
    sys.path.insert(0, str(HERE / "existing_library"))
    import build

    try:
        return build.obtain(device.backend, SCRATCH, CARRIED if CARRIED.exists() else None), ""
    except build.CannotBuild as error:
        return None, str(error)


def show_library(device: gg.Device) -> None:
    """Call an existing library with device pointers."""
    title("an existing library, called through .ptr")
    example, reason = obtain_library(device)
    if example is None:
        print(f"  not shown: {reason}")
        return
    with device:
        check("sum of arange(53735) as float64", example.sum(gg.arange(53735, dtype=np.float64)) == 1443698245)
        halves = gg.full((125, 8), 0.5, np.float32)
        check("sum of 1000 halves as float32", example.sum(halves) == 500)
        try:
            example.sum(gg.arange(3))
            check("int64 is refused", False)
        except TypeError as error:
            check(f"int64 is refused: {error}", True)
        try:
            example.sum(gg.arange(10, dtype=np.float64)[::2])
            check("a strided view is refused", False)
        except TypeError as error:
            check(f"a strided view is refused: {error}", True)


def best_rate(nbytes: int, copy: Callable[[], None], times: int = 5) -> float:
    """GB/s of the fastest run."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        copy()
        gg.synchronize()
        best = min(best, time.perf_counter() - start)
    return nbytes / best / 1e9


def rates(nbytes: int) -> list[float]:
    """GB/s of five kinds of copy."""
    device, other = gg.alloc(nbytes), gg.alloc(nbytes)
    pageable, pinned = np.ones(nbytes, np.uint8), gg.zeros_pinned(nbytes, np.uint8)
    pairs: list[tuple[Any, Any]] = [
        (device, pageable), (pageable, device), (device, pinned), (pinned, device), (other, device)]
    return [best_rate(nbytes, partial(gg.copy, dst, src)) for dst, src in pairs]


def show_rates() -> None:
    """Print the bandwidth of copies of several sizes."""
    title("bandwidth in GB/s, best of 5")
    names = ["H2D pageable", "D2H pageable", "H2D pinned", "D2H pinned", "D2D"]
    print(" " * 12 + "".join(f"{name:>14}" for name in names))
    for mib in (1, 16, 128):
        print(f"  {mib:4} MiB  " + "".join(f"{rate:14.2f}" for rate in rates(mib * MIB)))


def main() -> int:
    """Run all parts."""
    device = show_backends()
    show_round_trips()
    show_library(device)
    show_rates()
    title(f"{len(failures)} checks failed" if failures else "every check passed")
    for name in failures:
        print("  FAIL", name)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
