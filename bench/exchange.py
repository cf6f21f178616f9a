"""The cost of attributes, views, and exchange with other libraries: nanoseconds per call.

    python exchange.py [--device NAME] [--json FILE] [--rounds N]

Most rows call no driver, so there is no baseline. The limits are absolute, and the time of NumPy for the
corresponding operation in the same run shows the speed of the machine. torch's rows need torch and a device that
torch supports.
"""

import argparse
import json
import statistics

import numpy as np

import gpuglue as gg
from timing import BURSTS, bursts_of, in_turn, loop_overhead
from verdict import rounds_of, verdict

# Name, statement, limit in nanoseconds (0: none), the corresponding statement of NumPy.
ROWS = [
    ("slice a[1:-1]", "array[1:-1]", 250, "flat[1:-1]"),
    ("slice a[1:, ::2]", "matrix[1:, ::2]", 250, "square[1:, ::2]"),
    ("element a[3]", "array[3]", 250, "flat[3:4]"),
    ("a.T", "matrix.T", 250, "square.T"),
    ("a.shape", "matrix.shape", 60, "square.shape"),
    ("a.strides", "matrix.strides", 60, "square.strides"),
    ("a.dtype", "matrix.dtype", 60, "square.dtype"),
    ("a.ptr", "matrix.ptr", 60, ""),
    ("a.size", "matrix.size", 60, "square.size"),
    ("a.nbytes", "matrix.nbytes", 60, "square.nbytes"),
    ("a.ndim", "matrix.ndim", 60, "square.ndim"),
    ("a.device", "matrix.device", 60, "square.device"),
    ("a.flags", "matrix.flags", 60, "square.flags"),
    ("a.base", "matrix.base", 60, "square.base"),
    ("__dlpack__(stream, max_version)", "matrix.__dlpack__(stream=number, max_version=version)", 400, ""),
    ("__dlpack__()", "matrix.__dlpack__()", 400, "square.__dlpack__()"),
    ("__dlpack_device__()", "matrix.__dlpack_device__()", 0, "square.__dlpack_device__()"),
    ("__cuda_array_interface__", "matrix.__cuda_array_interface__", 400, "square.__array_interface__"),
    ("from_dlpack(GPUArray)", "from_dlpack(matrix)", 0, "numpy_from_dlpack(square)"),
    ("asarray(GPUArray)", "asarray(matrix)", 0, "numpy_asarray(square)"),
]
TORCH = [
    ("asarray(torch tensor)", "asarray(tensor)", 1500, ""),
    ("from_dlpack(torch tensor)", "from_dlpack(tensor)", 0, ""),
    ("torch.from_dlpack(GPUArray)", "torch_from_dlpack(matrix)", 0, ""),
]


def names_of(device):
    """The names that the statements use."""
    array = gg.zeros(1000, "f4", device=device)
    matrix = gg.zeros((100, 100), "f4", device=device)
    gg.synchronize(device)
    for made in (array, matrix):
        made.get()  # now all work on it is known to be done
    numbers = {2: 1, 10: 0}  # the default stream in DLPack
    return {
        "array": array,
        "matrix": matrix,
        "number": numbers.get(array.__dlpack_device__()[0]),
        "version": (1, 3),
        "flat": np.zeros(1000, "f4"),
        "square": np.zeros((100, 100), "f4"),
        "numpy_asarray": np.asarray,
        "numpy_from_dlpack": np.from_dlpack,
        "asarray": gg.asarray,
        "from_dlpack": gg.from_dlpack,
    }


def torch_names(device):
    """The tensor for torch's rows, or None."""
    try:
        import torch

        where = f"cuda:{device.ordinal}" if device.backend in ("cuda", "hip") else "cpu"
        tensor = torch.zeros((100, 100), device=where)
    except Exception as error:  # not installed, or no such device
        print(f"without torch: {error}")
        return None
    print(f"torch {torch.__version__}, exchange table: {hasattr(torch.Tensor, '__dlpack_c_exchange_api__')}")
    return {"tensor": tensor, "torch_from_dlpack": torch.from_dlpack}


def measure(rows, names, rounds, settle=lambda: None):
    """The medians of each row's statement and of NumPy's, which alternate; the time of the loop is subtracted."""
    empty, figures = loop_overhead(), {}
    for name, statement, limit, alike in rows:
        try:
            eval(statement, dict(names))
        except AttributeError as error:
            print(f"{name:34} {'-':>8}  {error}")
            continue
        sides = {"ns": bursts_of(statement, names, settle=settle)}
        sides |= {"numpy": bursts_of(alike, names)} if alike else {}
        times = in_turn(sides, rounds, BURSTS)
        found = {side: statistics.median(each) - empty for side, each in times.items()}
        result = verdict([t - empty - limit for t in rounds_of(times["ns"], BURSTS)]) if limit else None
        figures[name] = {**found, "limit": limit or None, "result": result}
        beside = f"{found['numpy']:8.0f}" if alike else f"{'-':>8}"
        print(f"{name:34} {found['ns']:8.0f} {beside}  {limit or '-':>6}  {result or ''}")
    return figures


def main():
    """Print a table, and write JSON if requested."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="such as cuda:0; default: the current device")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    device = gg.Device(options.device)
    print(f"{device}, NumPy {np.__version__}; ns per call, median; NumPy; limit")
    with device:
        names = names_of(device)
        figures = measure(ROWS, names, options.rounds)  # none of them queues work
        extra = torch_names(device)
        if extra:
            figures |= measure(TORCH, names | extra, options.rounds, device.synchronize)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": str(device), "ns": figures}, file, indent=1)


if __name__ == "__main__":
    main()
