"""Strided copies between two devices of one backend, beside contiguous ones: GB/s.

    python strided_peers.py [--devices NAME NAME] [--json FILE] [--mib N] [--rounds N]

Rows of a matrix with a gap between them go to a contiguous array on the other device, and back. The target is 60 % of the
contiguous rate for rows of 4 KiB.
"""

import argparse
import json
import statistics
import sys
import time

import numpy as np

import gpuglue as gg

ROWS = (512, 1 << 10, 4 << 10, 64 << 10)  # bytes
TARGET_ROW, TARGET = 4 << 10, 0.6


def rate(dst, src, devices, rounds):
    """GB/s by the median of some rounds, after one that is discarded, and whether the call returned before the copy was done."""
    times, early = [], 0
    for turn in range(rounds + 1):
        for device in devices:
            gg.synchronize(device)
        start = time.perf_counter_ns()
        gg.copy(dst, src)
        returned = time.perf_counter_ns() - start
        for device in devices:
            gg.synchronize(device)
        if turn:
            times.append(time.perf_counter_ns() - start)
            early += returned < times[-1] / 2
    return dst.nbytes / statistics.median(times), early > rounds / 2


def main():
    """Measure each row size in both directions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", nargs=2)
    parser.add_argument("--json")
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    first, second = [gg.Device(name) for name in options.devices] if options.devices else gg.devices()[:2]
    nbytes = options.mib << 20
    print(f"{first} and {second}: {'direct' if first.can_access(second) else 'through the host'}")
    wide = [gg.zeros(2 * nbytes, "u1", device=device) for device in (first, second)]
    flat = [gg.zeros(nbytes, "u1", device=device) for device in (first, second)]
    wide[0].set(np.arange(2 * nbytes // 4, dtype="u4").view("u1"))
    contiguous, _ = rate(flat[1], flat[0], (first, second), options.rounds)
    print(f"  contiguous            {contiguous:8.1f} GB/s")
    rows = {}
    for row in ROWS:
        strided = [array.reshape(nbytes // row, 2 * row)[:, :row] for array in wide]
        to = flat[1].reshape(nbytes // row, row)
        gathered, early = rate(to, strided[0], (first, second), options.rounds)
        expected = wide[0].get().reshape(nbytes // row, 2 * row)[:, :row]
        right = bool((to.get() == expected).all())
        scattered, _ = rate(strided[0], to, (first, second), options.rounds)
        rows[row] = {"gather": gathered, "scatter": scattered, "share": min(gathered, scattered) / contiguous, "right": right,
                     "asynchronous": early}
        print(f"  rows of {row:6} bytes  {gathered:8.1f} GB/s, back {scattered:8.1f} GB/s: {100 * rows[row]['share']:5.1f} %; "
              f"{'right' if right else 'WRONG'}, {'asynchronous' if early else 'waits'}")
    met = rows[TARGET_ROW]["share"] >= TARGET
    print(f"  target {TARGET:.0%} for rows of {TARGET_ROW} bytes: {'ok' if met else 'missed'}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"devices": [first.name, second.name], "contiguous": contiguous, "rows": rows}, file, indent=1)
    sys.exit(not all(row["right"] for row in rows.values()))


if __name__ == "__main__":
    main()
