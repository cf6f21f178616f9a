"""Sobol's sequences of gpuglue.compat against SciPy's, whose direction numbers they use."""

import gpuglue.compat.pycuda.autoinit  # noqa: F401
import numpy as np
import pytest
from gpuglue.compat.pycuda import curandom

qmc = pytest.importorskip("scipy.stats.qmc")


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("dimensions", [1, 7, 1000])
def test_the_numbers_of_each_generator_are_a_dimension_of_scipys_points(bits, dimensions):
    kind = getattr(curandom, f"Sobol{bits}RandomNumberGenerator")
    direction = getattr(curandom.direction_vector_set, f"VECTOR_{bits}")
    vectors = curandom.generate_direction_vectors(dimensions, direction)
    assert vectors.shape == (dimensions, bits)
    found = kind(vectors).gen_uniform((64, dimensions), np.float64).get()
    expected = qmc.Sobol(dimensions, scramble=False, bits=bits).random(64)
    assert np.abs(found - expected).max() <= 2.0**-min(bits, 52)


def test_without_vectors_there_are_as_many_generators_as_dimensions_of_the_table_in_use():
    found = curandom.Sobol32RandomNumberGenerator().gen_uniform(2048, np.float32).get()
    assert abs(found[1024:].mean() - 0.5) < 1e-6 and (found[:1024] < 1e-6).all()
    assert len(set(curandom.ScrambledSobol32RandomNumberGenerator().gen_uniform(1024, np.uint32).get().tolist())) > 1000
