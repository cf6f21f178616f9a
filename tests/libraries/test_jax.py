"""JAX on the CPU and arrays of the host backend."""

import numpy as np
import pytest

import gpuglue as gg

jax = pytest.importorskip("jax")


def test_jax_takes_an_array_without_a_copy(device):
    array = gg.arange(12, dtype="f4", device=device).reshape(3, 4)
    taken = jax.numpy.from_dlpack(array)
    assert taken.unsafe_buffer_pointer() == array.ptr and np.asarray(taken).tolist() == array.tolist()


def test_jax_takes_another_layout_right(device):
    array = gg.arange(12, dtype="f4", device=device).reshape(3, 4)
    for view in (array.T, array[1:], array[:, ::2].copy()):  # JAX itself refuses strided arrays
        assert np.asarray(jax.numpy.from_dlpack(view)).tolist() == view.tolist()


def test_an_array_of_jax_is_imported_without_a_copy(device):
    jax_array = jax.numpy.arange(1000.0).block_until_ready()
    for take in (gg.from_dlpack, lambda a: gg.asarray(a, device=device)):
        array = take(jax_array)
        assert array.ptr == jax_array.unsafe_buffer_pointer() and array.get().tolist() == np.asarray(jax_array).tolist()


def test_an_array_of_jax_is_not_written(device):
    jax_array = jax.numpy.arange(3.0)
    array = gg.asarray(jax_array, device=device)
    with pytest.raises(ValueError, match="read-only"):
        array.fill(7)
    assert jax.numpy.from_dlpack(array[1:]).tolist() == [1, 2] and jax_array.tolist() == [0, 1, 2]


def test_an_array_of_jax_is_data_and_no_shape(device):
    for jax_array in (jax.numpy.asarray(5), jax.numpy.arange(3)):
        assert gg.GPUArray(jax_array, device=device).get().tolist() == jax_array.tolist()


def test_bfloat16_survives_a_round_trip(device):
    jax_array = jax.numpy.arange(8).astype("bfloat16")
    array = gg.from_dlpack(jax_array)
    assert array.dtype == jax_array.dtype and array.tolist() == list(range(8))
    assert np.asarray(jax.numpy.from_dlpack(array)).tolist() == list(range(8))


def test_results_of_jax_are_imported(device):
    array = gg.arange(1000, dtype="f4", device=device)
    doubled = gg.from_dlpack(jax.jit(lambda a: a * 2)(jax.numpy.from_dlpack(array)))
    assert doubled.tolist() == [2.0 * i for i in range(1000)]
