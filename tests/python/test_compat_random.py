"""gpuglue.compat.pycuda.curandom: NumPy draws on host; elsewhere CuPy, for which a stand-in is used here, or NumPy with a copy."""

import gc
import sys
import time

import numpy as np
import pytest
import stand_in_cupy

import gpuglue as gg
from gpuglue.compat.pycuda import _compute, curandom, driver, gpuarray, tools
from gpuglue.compat.pycuda.curandom import MRG32k3aRandomNumberGenerator, XORWOWRandomNumberGenerator

GENERATORS = pytest.mark.parametrize("kind", [XORWOWRandomNumberGenerator, MRG32k3aRandomNumberGenerator])


@pytest.fixture(autouse=True, params=["a library", "no library"])
def context(request, device, monkeypatch):
    cupy = stand_in_cupy.module(device.backend == "hip") if request.param == "a library" else None
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(_compute, "_libraries", {} if cupy else {device: None})
    monkeypatch.setattr(curandom, "_generators", {})
    driver.init()
    context = tools.make_default_context()
    yield context
    context.pop()
    gc.collect()


def seed(n):
    return gpuarray.to_gpu(np.full(n, 7, np.int32))


@GENERATORS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_have_their_distribution(kind, dtype):
    generator, stream = kind(seed), driver.Stream()
    uniform = generator.gen_uniform(20_000, dtype).get()
    assert uniform.dtype == dtype and 0 <= uniform.min() and uniform.max() <= 1 and abs(uniform.mean() - 0.5) < 0.02
    normal = generator.gen_normal((100, 200), dtype, stream).get()
    assert normal.shape == (100, 200) and abs(normal.mean()) < 0.05 and abs(normal.std() - 1) < 0.05
    logarithms = np.log(generator.gen_log_normal(20_000, dtype, 2, 0.5).get())
    assert abs(logarithms.mean() - 2) < 0.05 and abs(logarithms.std() - 0.5) < 0.05
    poisson = generator.gen_poisson(20_000, np.uint32, 5, stream).get()
    assert poisson.dtype == np.uint32 and abs(poisson.mean() - 5) < 0.2
    whole = generator.gen_uniform(1000, np.uint32).get()
    assert whole.max() > 2**31 and len(set(whole.tolist())) > 990


@GENERATORS
def test_a_generator_fills_arrays(kind):
    generator, x = kind(seed), gpuarray.zeros((3, 4), np.float64)
    for fill in (generator.fill_uniform, generator.fill_normal, lambda x: generator.fill_log_normal(x, 0, 1)):
        before = x.get()
        fill(x)
        assert (x.get() != before).all()
    generator.fill_poisson(x, 3)
    assert (x.get() == np.round(x.get())).all()
    means = gpuarray.to_gpu(np.repeat(np.array([0, 10], np.float32), 10_000))
    generator.fill_poisson(means)  # each element is the mean of what it becomes
    assert not means.get()[:10_000].any() and abs(means.get()[10_000:].mean() - 10) < 0.3
    generator.fill_uniform(gpuarray.empty(0, np.float32))
    with pytest.raises(NotImplementedError, match="random numbers of complex64: expected float32 or float64"):
        generator.fill_normal(x.astype(np.complex64))


@GENERATORS
def test_equal_seeds_give_equal_numbers(kind):
    draw = [kind(seed), kind(seed), kind(seed, offset=1), kind(), kind(curandom.seed_getter_unique)]
    numbers = [one.gen_uniform(10, np.float32).get().tolist() for one in draw]
    assert numbers[0] == numbers[1] and len({*map(tuple, numbers)}) == 4
    assert draw[0].gen_uniform(10, np.float32).get().tolist() != numbers[0]


def test_the_function_rand_makes_an_array_of_uniform_numbers():
    x, y = curandom.rand((10, 100)), curandom.rand(1000, np.float64, stream=driver.Stream())
    assert (x.shape, x.dtype, y.dtype) == ((10, 100), np.float32, np.float64)
    assert abs(x.get().mean() - 0.5) < 0.1 and abs(y.get().mean() - 0.5) < 0.1


def test_seeds_are_equal_or_differ():
    assert len({*curandom.seed_getter_uniform(100).get().tolist()}) == 1
    assert len({*curandom.seed_getter_unique(100).get().tolist()}) > 90


def test_numbers_on_another_stream_are_drawn_after_those_before(gate, device, monkeypatch):
    """CuPy keeps the generator's state on the device."""
    if not isinstance(_compute.library(), _compute.CuPy):
        pytest.skip(f"NumPy draws for {device}, on the host")
    generator, first, second = XORWOWRandomNumberGenerator(seed), *(gg.Stream(device, nonblocking=True) for _ in range(2))
    x, y = gpuarray.zeros(10, np.float32), gpuarray.zeros(10, np.float32)
    opened = []
    monkeypatch.setattr(stand_in_cupy.Stream, "after", gate.hold)  # as if the numbers were not drawn yet
    with first:
        generator.fill_uniform(x)
    monkeypatch.setattr(stand_in_cupy.Stream, "after", lambda stream: opened.append(gate.opened))
    gate.open_when(lambda: time.sleep(0.1) or True)  # a call in the wrong order ends before
    with second:
        generator.fill_uniform(y)
    assert opened == [True]


@GENERATORS
def test_an_offset_and_a_number_of_eight_bytes_count_as_in_curand(kind):
    """An offset is a count of numbers that are skipped, each of 4 bytes."""
    ahead, offset = kind(seed), kind(seed, offset=7)
    ahead.call_skip_ahead(7)
    assert offset.gen_uniform(4, np.float32).get().tolist() == ahead.gen_uniform(4, np.float32).get().tolist()
    skips, draws = kind(seed), kind(seed)
    skips.gen_uniform(2, np.float64), skips.call_skip_ahead_sequence(1), draws.call_skip_ahead_sequence(1), draws.call_skip_ahead(4)
    assert skips.gen_uniform(4, np.float32).get().tolist() == draws.gen_uniform(4, np.float32).get().tolist()


def test_a_sequence_of_mrg32k3a_has_two_to_the_51_subsequences():
    one, other, third = (MRG32k3aRandomNumberGenerator(seed) for _ in range(3))
    one.call_skip_ahead_sequence(1)
    other.call_skip_ahead_subsequence((1 << 51) - 1)
    other.call_skip_ahead_subsequence_array(gpuarray.to_gpu(np.array([1], np.uint64)))
    third.call_skip_ahead_subsequence(1)
    first, second, third = (generator.gen_uniform(4, np.float32).get().tolist() for generator in (one, other, third))
    assert first == second != third and not hasattr(XORWOWRandomNumberGenerator, "call_skip_ahead_subsequence")


@GENERATORS
def test_counts_that_do_not_fit_are_refused(kind):
    generator = kind(seed)
    assert generator.block_count * generator.generators_per_block == 1
    for skip in (generator.call_skip_ahead, generator.call_skip_ahead_sequence):
        with pytest.raises(ValueError, match="skip -1 numbers: expected 0 or more"):
            skip(-1)
    for skip in (generator.call_skip_ahead_array, generator.call_skip_ahead_sequence_array):
        with pytest.raises(ValueError, match=r"2 counts for one generator: expected block_count \* generators_per_block, which is 1"):
            skip(gpuarray.zeros(2, np.uint64))
    assert generator.gen_uniform(4, np.float32).get().tolist() == kind(seed).gen_uniform(4, np.float32).get().tolist()
