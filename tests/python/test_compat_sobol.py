"""gpuglue.compat.pycuda.curandom: Sobol's sequences. tests/libraries/test_scipy.py compares them with SciPy's."""

import sys

import numpy as np
import pytest

from gpuglue.compat.pycuda import curandom, driver, gpuarray

KINDS = {32: curandom.Sobol32RandomNumberGenerator, 64: curandom.Sobol64RandomNumberGenerator}
SCRAMBLED = {32: curandom.ScrambledSobol32RandomNumberGenerator, 64: curandom.ScrambledSobol64RandomNumberGenerator}
BITS = pytest.mark.parametrize("bits", [32, 64])


pytestmark = pytest.mark.usefixtures("context")


def word(bits):
    return np.dtype(f"u{bits // 8}")


def vectors(bits, count=1):
    """The first dimension, whose numbers are van der Corput's, for each of the generators."""
    return np.tile(word(bits).type(1) << np.arange(bits - 1, -1, -1).astype(word(bits)), (count, 1))


def uniform(generator, *args):
    return generator.gen_uniform(*args).get()


@BITS
def test_the_first_numbers_are_those_of_the_sequence(bits):
    generator = KINDS[bits](gpuarray.to_gpu(vectors(bits)))
    found = uniform(generator, 8, np.float64)
    assert np.abs(found - [0, 1 / 2, 3 / 4, 1 / 4, 3 / 8, 7 / 8, 5 / 8, 1 / 8]).max() <= 2.0**-bits
    assert uniform(generator, (2, 1), np.float32).ravel() == pytest.approx([3 / 16, 11 / 16])
    assert abs(uniform(KINDS[bits](gpuarray.to_gpu(vectors(bits)), offset=3), 1, np.float32)[0] - 0.25) < 1e-6


@BITS
def test_each_generator_draws_its_own_elements_and_goes_on_where_it_was(bits):
    generator = KINDS[bits](gpuarray.to_gpu(vectors(bits, 3)))
    first, second = uniform(generator, 4, np.float64), uniform(generator, 3, np.float64)
    assert np.abs(first - [0, 0, 0, 1 / 2]).max() <= 2.0**-bits
    assert np.abs(second - [3 / 4, 1 / 2, 1 / 2]).max() <= 2.0**-bits


@BITS
def test_numbers_are_skipped_of_all_generators_and_of_each(bits):
    generator = KINDS[bits](gpuarray.to_gpu(vectors(bits, 3)))
    generator.call_skip_ahead(1)
    generator.call_skip_ahead_array(gpuarray.to_gpu(np.array([0, 1, 2], np.uint32)))
    assert uniform(generator, 3, np.float32) == pytest.approx([1 / 2, 3 / 4, 1 / 4])


@BITS
def test_a_scramble_constant_is_combined_with_each_number(bits):
    constants = np.array([5, 0], word(bits))
    generator = SCRAMBLED[bits](gpuarray.to_gpu(vectors(bits, 2)), gpuarray.to_gpu(constants))
    assert uniform(generator, 3, word(bits)).tolist() == [5, 0, 2 ** (bits - 1) + 5]
    random = [uniform(SCRAMBLED[bits](gpuarray.to_gpu(vectors(bits, 2))), 2, word(bits)).tolist() for _ in range(2)]
    assert random[0] != random[1]


@BITS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_have_their_distribution(bits, dtype):
    generator, stream = KINDS[bits](gpuarray.to_gpu(vectors(bits))), driver.Stream()
    normal = generator.gen_normal((10, 409), dtype, stream).get()
    assert normal.dtype == dtype and np.isfinite(normal).all() and abs(normal.mean()) < 0.01 and abs(normal.std() - 1) < 0.01
    logarithms = np.log(generator.gen_log_normal(4096, dtype, 2, 0.5).get())
    assert abs(logarithms.mean() - 2) < 0.01 and abs(logarithms.std() - 0.5) < 0.01
    poisson = generator.gen_poisson(4096, np.uint32, 5).get()
    assert abs(poisson.mean() - 5) < 0.05 and abs(poisson.var() - 5) < 0.2
    assert not generator.gen_poisson(5, np.uint32, 0).get().any()
    means = gpuarray.to_gpu(np.repeat(np.array([0, 5], np.uint32), 2048).reshape(2, 2048))
    generator.fill_poisson(means, stream=driver.Stream())
    assert not means.get()[0].any() and abs(means.get()[1].mean() - 5) < 0.1


@BITS
def test_the_constants_are_random_numbers_of_the_width(bits):
    generate = {32: curandom.generate_scramble_constants32, 64: curandom.generate_scramble_constants64}
    constants = generate[bits](100).get()
    assert constants.dtype == word(bits) and len(set(constants.tolist())) > 90


def test_a_wrong_vector_is_an_error_that_says_what_is_expected():
    with pytest.raises(ValueError, match=r"dir_vector is \(31,\) of uint32: expected uint32 and a multiple of 32 numbers"):
        KINDS[32](gpuarray.to_gpu(np.zeros(31, np.uint32)))
    with pytest.raises(ValueError, match="of float64: expected uint64"):
        KINDS[64](gpuarray.to_gpu(np.zeros(64)))
    with pytest.raises(ValueError, match="scramble_vector has 2 numbers for 1 vectors: expected one for each"):
        SCRAMBLED[32](gpuarray.to_gpu(vectors(32)), gpuarray.to_gpu(np.zeros(2, np.uint32)))
    generator = KINDS[32](gpuarray.to_gpu(vectors(32)))
    with pytest.raises(NotImplementedError, match="use Sobol64RandomNumberGenerator"):
        generator.gen_uniform(1, np.uint64)
    with pytest.raises(NotImplementedError, match="random numbers of complex64"):
        generator.gen_normal(1, np.complex64)
    with pytest.raises(ValueError, match="not negative: got -1"):
        generator.gen_poisson(1, np.uint32, -1)


def test_without_vectors_the_table_is_scipys_and_the_error_names_it(monkeypatch):
    with pytest.raises(ValueError, match="for 1 to 20000 generators: got 20001"):
        curandom.generate_direction_vectors(20001)
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    for make in KINDS[32], SCRAMBLED[64], lambda: curandom.generate_direction_vectors(3, curandom.direction_vector_set.VECTOR_64):
        with pytest.raises(ImportError, match="pip install scipy"):
            make()


def test_the_version_of_curand_is_none_as_in_pycuda_without_it():
    assert curandom.get_curand_version() is None
