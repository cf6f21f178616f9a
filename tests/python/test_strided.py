"""Copies of arrays with any strides on both sides, compared with NumPy."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpuglue as gg

COUNT = 550 if os.environ.get("GPUGLUE_TEST_FULL") else 55  # of each of the four properties
DTYPES = ["u1", "i2", "f4", "f8", "c16", "S3", "i4,f8"]

at_random = settings(max_examples=COUNT, deadline=None, derandomize=not os.environ.get("GPUGLUE_TEST_FULL"),
                     suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@st.composite
def slices(draw, size):
    """A slice of an axis of that size, of either direction."""
    step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
    start = draw(st.none() | st.integers(-1, size))
    stop = draw(st.none() | st.integers(-1, size))
    return slice(start, stop, step)


@st.composite
def views(draw):
    """A shape, slices of its axes and a permutation of them, which make a view of an array."""
    shape = tuple(draw(st.lists(st.integers(0, 6), max_size=5)))
    cut = tuple(draw(slices(size)) for size in shape)
    return shape, cut, tuple(draw(st.permutations(range(len(shape)))))


def numbers(shape, dtype, seed=0):
    """An array with a nonzero pattern in each byte."""
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return ((np.arange(nbytes) * 7 + seed) % 251).astype("u1").view(dtype).reshape(shape)


def view_of(array, made):
    """That view of an array of NumPy or of gpuglue."""
    _, cut, order = made
    return array[(*cut, ...)].transpose(order)


def same(one, other):
    """Byte for byte: not every pattern is a number."""
    return one.shape == other.shape and one.tobytes() == other.tobytes()


@at_random
@given(made=views(), dtype=st.sampled_from(DTYPES), order=st.sampled_from("CF"))
def test_any_view_is_copied_to_the_device(device, made, dtype, order):
    view = view_of(numbers(made[0], dtype), made)
    there = gg.empty(view.shape, dtype, order=order, device=device)
    there.set(view)
    assert same(there.get(), np.array(view, order=order))


@at_random
@given(made=views(), dtype=st.sampled_from(DTYPES), order=st.sampled_from("CF"))
def test_any_view_is_filled_from_the_device_and_nothing_else(device, made, dtype, order):
    whole, expected = numbers(made[0], dtype, 100), numbers(made[0], dtype, 100)
    shape = view_of(whole, made).shape
    source = np.array(numbers(shape, dtype, 3), order=order)
    there = gg.GPUArray(source, device=device)
    there.get(out=view_of(whole, made))
    view_of(expected, made)[...] = source
    assert same(whole, expected)


@at_random
@given(made=views(), dtype=st.sampled_from(DTYPES))
def test_any_view_on_the_device_is_filled_and_nothing_else(device, made, dtype):
    expected = numbers(made[0], dtype, 100)
    there = gg.GPUArray(expected, device=device)
    source = numbers(view_of(expected, made).shape, dtype, 3)
    view_of(there, made).set(source)
    view_of(expected, made)[...] = source
    assert same(there.get(), expected)
    assert same(view_of(there, made).get(), np.array(view_of(expected, made)))


@at_random
@given(made=views(), dtype=st.sampled_from(DTYPES), data=st.data())
def test_any_view_is_copied_to_any_other_on_the_device(device, made, dtype, data):
    whole = numbers(made[0], dtype, 9)
    source = view_of(gg.GPUArray(whole, device=device), made)
    expected = numbers(tuple(2 * size for size in source.shape), dtype, 50)
    cut = tuple(data.draw(st.sampled_from([slice(None, None, 2), slice(size, None), slice(size - 1, None, -1)]))
                if size else slice(0, 0) for size in source.shape)
    there = gg.GPUArray(expected, device=device)
    gg.copy(there[cut], source)
    expected[cut] = view_of(whole, made)
    assert same(there.get(), expected)


def test_a_broadcast_source_is_repeated(device):
    there = gg.empty((5, 4, 3), "i4", device=device)
    row = np.arange(3, dtype="i4")
    there.set(np.broadcast_to(row, there.shape))
    assert (there.get() == row).all()


def test_a_destination_that_overlaps_itself_is_refused(device):
    out = np.lib.stride_tricks.as_strided(np.zeros(8, "i4"), (4, 3), (4, 4))
    with pytest.raises(gg.InvalidArgumentError, match="overlap each other"):
        gg.zeros((4, 3), "i4", device=device).get(out=out)


@pytest.mark.parametrize("transposed", [True, False])
def test_large_views_are_copied_in_both_directions(device, transposed):
    square = np.arange(700 * 700, dtype="f4").reshape(700, 700)
    view = square.T if transposed else square[::2]
    there = gg.empty(view.shape, "f4", device=device)
    there.set(view)
    assert (there.get() == view).all()
    out = np.zeros_like(square)
    target = out.T if transposed else out[::2]
    there.get(out=target)
    assert (target == view).all() and (transposed or not out[1::2].any())


def test_the_source_of_a_strided_copy_may_change_at_once(device, stream):
    host = np.ones((900, 900), "f4")
    there = gg.empty(host.shape, "f4", device=device)
    there.set(host.T, stream)
    host[:] = 0
    assert (there.get(stream=stream) == 1).all()


@at_random
@given(made=views(), dtype=st.sampled_from(DTYPES))
def test_to_gpu_accepts_any_view(device, made, dtype):
    view = view_of(numbers(made[0], dtype), made)
    there = gg.to_gpu(view, device)
    assert same(there.get(), np.array(view))
    assert there.flags.c_contiguous or there.flags.f_contiguous
