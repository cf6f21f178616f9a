"""repr of a GPUArray: its elements as NumPy prints them, of a large one only the corners. It does not wait for
long work: then it prints that work is pending."""

import time
from itertools import product
from typing import Any

import numpy as np

from . import _core


def _edges(length: int, edge: int) -> "list[tuple[slice, slice]]":
    """The slices of an axis to copy, and their places in an axis without its middle."""
    if length <= 2 * edge:
        return [(slice(None), slice(None))]
    return [(slice(0, edge), slice(0, edge)), (slice(length - edge, None), slice(edge + 1, None))]


def _corners(array: "_core.GPUArray", edge: int) -> "np.ndarray[Any, Any]":
    """The corners of an array, with one element between them on each axis that is too long to print."""
    shape = [min(length, 2 * edge + 1) for length in array.shape]
    host = np.zeros(shape, array.dtype)
    for parts in product(*(_edges(length, edge) for length in array.shape)):
        host[tuple(to for _, to in parts)] = array[tuple(part for part, _ in parts)].get()
    return host


def _elements(array: "_core.GPUArray") -> str:
    options = np.get_printoptions()
    prefix = "GPUArray("
    if array.size <= options["threshold"]:
        return np.array2string(array.get(), separator=", ", prefix=prefix)
    edge = options["edgeitems"]
    return np.array2string(_corners(array, edge), separator=", ", prefix=prefix, threshold=0, edgeitems=edge)


def _busy(array: "_core.GPUArray", patience: float = 0.02) -> bool:
    """Whether there is still work, after that many seconds, that fetching elements would have to wait for."""
    end, stream = time.monotonic() + patience, _core.current_stream(array.device)
    while _core._is_pending(array) or not stream.done:
        if time.monotonic() > end:
            return True
        time.sleep(0.0002)
    return False


def text(array: "_core.GPUArray") -> str:
    """repr(array)."""
    where = f"{array.device.backend}:{array.device.ordinal}"
    facts = f"dtype={array.dtype}, device='{where}'"
    try:
        if array.size and _busy(array):
            return f"<gpuglue.GPUArray shape={array.shape}, {facts}, ptr={array.ptr:#x}, work pending>"
        if not array.size:
            return f"GPUArray([], shape={array.shape}, {facts})"
        return f"GPUArray({_elements(array)}, {facts})"
    except Exception:  # a lost device, a forked child: print what is known
        return f"<gpuglue.GPUArray shape={array.shape}, {facts}, ptr={array.ptr:#x}>"
