"""Forms: what arrays of one shape, type and order have in common. Two arrays have the same form exactly if they have the same Form, by
which an operation finds what computes it."""

import functools

import numpy as np


def phantom(shape, dtype, strides):
    """An array of NumPy with a layout, whose elements are never read."""
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)


def strides_for(shape, dtype, order):
    strides, step = [], dtype.itemsize
    for size in (shape if order == "F" else shape[::-1]):
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides if order == "F" else strides[::-1])


class Form:
    """The attributes of arrays of a layout."""

    def __init__(self, shape, dtype, strides):
        layout = phantom(shape, dtype, strides)
        self.flags, self.shape, self.dtype, self.size, self.nbytes = layout.flags, layout.shape, layout.dtype, layout.size, layout.nbytes
        self.origin = layout.__array_interface__["data"][0]  # where views of the layout begin to count
        self.contiguous = bool(layout.flags.forc)
        self.fortran = layout.flags.f_contiguous and not layout.flags.c_contiguous
        reach = [(count - 1) * step for count, step in zip(shape, strides)]
        first = -sum(step for step in reach if step < 0)
        # bytes from the first to the last, and the offset of element 0 in them
        self.span = (first + sum(step for step in reach if step > 0) + dtype.itemsize, first) if self.size else (0, 0)
        self.attributes = {
            "_form": self, "_layout": layout, "shape": layout.shape, "dtype": layout.dtype, "strides": layout.strides, "size": layout.size,
            "ndim": layout.ndim, "flags": layout.flags, "itemsize": dtype.itemsize, "nbytes": layout.nbytes, "mem_size": layout.size,
            "base": None}


@functools.lru_cache(maxsize=4096)
def _form(shape, dtype, strides, _number):
    return Form(shape, dtype, strides)


@functools.lru_cache(maxsize=4096)
def _form_in_order(shape, dtype, order, number):
    if order not in ("C", "F"):
        raise ValueError(f"order must be C or F, got {order!r}")
    shape = tuple(map(int, shape))
    if any(size < 0 for size in shape):
        raise ValueError(f"negative sizes in the shape {shape}")
    return _form(shape, dtype, strides_for(shape, dtype, order), number)


def form_like(layout):
    """The Form of an array of NumPy."""
    return _form(layout.shape, layout.dtype, layout.strides, layout.dtype.num)


def form_of(shape, dtype, strides=None, order="C"):
    """The Form of a layout. NumPy has several types that are equal, such as those of long and long long."""
    if strides is None:
        return _form_in_order(shape, dtype, order, dtype.num)
    if any(size < 0 for size in shape):
        raise ValueError(f"negative sizes in the shape {shape}")
    return _form(tuple(map(int, shape)), dtype, tuple(map(int, strides)), dtype.num)
