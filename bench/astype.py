"""astype on the device: every pair of dtypes against NumPy, bit for bit and warning for warning, and GB/s beside CuPy's.

    python astype.py [--device NAME] [--json FILE] [--elements N] [--rounds N]

Two arrays are converted for each pair: elements that the kernel itself converts, and any bits, for which NumPy may warn, so that the
conversion ends on the host. The exit status is 1 if a result or a warning differs. GB/s counts the bytes read and written. Without
a compiler nothing is converted on the device, which the output says.
"""

import argparse
import itertools
import json
import statistics
import sys
import time
import warnings

import numpy as np

import gpuglue as gg
from gpuglue import _convert

DTYPES = [np.dtype(code) for code in "?bBhHiIqQefdFD"]
SHOWN = ["f4 f8", "f8 f4", "i4 f4", "f4 i4", "f8 i8", "u1 f4", "f4 u1", "f4 f2", "f2 f4", "f8 f2", "c8 c16", "c16 c8", "i8 i4", "b1 f4"]


def short(dtype):
    """Such as f8."""
    return f"{dtype.kind}{dtype.itemsize}"


def any_bits(dtype, count):
    """Elements with arbitrary bits, behind those at which conversions differ."""
    bits = np.random.default_rng(7).integers(0, 256, count * dtype.itemsize, np.uint8)
    rest = (bits & 1).astype(bool) if dtype.kind == "b" else bits.view(dtype)
    return np.resize(np.concatenate([_convert.edges(dtype), rest]), max(count, (1 << 20) // dtype.itemsize))


def with_warnings(convert):
    """What a conversion returns, and its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = convert()
    return result, sorted({f"{one.category.__name__}: {one.message}" for one in seen})


def differences(device, source, target, count):
    """What differs from NumPy, in words."""
    found = []
    host = any_bits(source, count)
    good = host[_convert.plain(host, target)] if _convert.recipe(source, target).checked else host
    for kind, elements in (("in range", np.resize(good, host.shape)), ("any bits", host)):
        made, ours = with_warnings(lambda elements=elements: gg.to_gpu(elements, device).astype(target).get())
        expected, theirs = with_warnings(lambda elements=elements: elements.astype(target))
        if made.tobytes() != expected.tobytes():
            found.append(f"{kind}: other bits")
        if ours != theirs and source.kind not in "fc":  # a signalling NaN is reported by NumPy alone
            found.append(f"{kind}: warnings {ours}, expected {theirs}")
        elif not set(ours) <= set(theirs) or set(theirs) - set(ours) - {"RuntimeWarning: invalid value encountered in cast"}:
            found.append(f"{kind}: warnings {ours}, expected {theirs}")
    return found


def rate(convert, wait, nbytes, rounds):
    """GB/s by the median of some rounds, after one that is discarded."""
    times = []
    for turn in range(rounds + 1):
        start = time.perf_counter_ns()
        result = convert()
        wait()
        if turn:
            times.append(time.perf_counter_ns() - start)
        del result
    return nbytes / statistics.median(times)


def cupy_or_reason():
    """CuPy with a device, or why not."""
    try:
        import cupy
        cupy.ones(1)
        return cupy, ""
    except Exception as error:  # of any type: the package is not ours
        return None, f"{type(error).__name__}: {error}"


def measure(device, pairs, elements, rounds):
    """GB/s of gpuglue and CuPy for each pair."""
    cupy, reason = cupy_or_reason()
    rows = {}
    for source, target in pairs:
        host = (np.arange(elements) % 2).astype(source)
        nbytes = elements * (source.itemsize + target.itemsize)
        ours = gg.to_gpu(host, device)
        row = {"gpuglue": rate(lambda: ours.astype(target), lambda: gg.synchronize(device), nbytes, rounds)}
        if cupy:
            theirs = cupy.asarray(host)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row["CuPy"] = rate(lambda: theirs.astype(target), cupy.cuda.get_current_stream().synchronize, nbytes, rounds)
            del theirs
        del ours
        rows[f"{short(source)} {short(target)}"] = row
    return rows, reason


def main():
    """Compare, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--json")
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    device = gg.Device(options.device)
    pairs = [pair for pair in itertools.product(DTYPES, DTYPES) if pair[0] != pair[1]]
    bad = {f"{short(s)} {short(t)}": found for s, t in pairs if (found := differences(device, s, t, 300_000))}
    kernels = sum(kernel is not None for kernel in _convert._kernels.values())
    print(f"{device}: {len(pairs)} pairs, {kernels} with a kernel on the device, {len(bad)} that differ from NumPy")
    for pair, found in bad.items():
        print(f"  {pair}: {'; '.join(found)}")
    shown = [pair for pair in pairs if f"{short(pair[0])} {short(pair[1])}" in SHOWN]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, reason = measure(device, shown, options.elements, options.rounds)
    for pair, row in rows.items():
        print(f"  {pair:9}" + "".join(f"  {side} {value:8.1f} GB/s" for side, value in row.items()))
    if reason:
        print(f"  without CuPy: {reason}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": device.name, "pairs": len(pairs), "kernels": kernels, "differ": bad, "rates": rows, "cupy": reason},
                      file, indent=1)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
