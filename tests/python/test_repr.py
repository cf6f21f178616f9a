"""repr of a GPUArray: as NumPy shows it, of a large array the corners, without a wait for long work."""

import re

import numpy as np
import pytest
from conftest import run_python

import gpuglue as gg


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 0), (5, 7, 3)])
def test_repr_shows_the_elements_as_numpy_does(device, shape):
    host = np.arange(np.prod(shape, dtype=int), dtype="f4").reshape(shape)
    made = gg.to_gpu(host, device)
    gg.synchronize(device)
    text = repr(made)
    assert "float32" in text and f"{device.backend}:{device.ordinal}" in text
    shown = np.array2string(host, separator=", ", prefix="GPUArray(") if host.size else f"[], shape={shape}"
    assert text.startswith(f"GPUArray({shown}, dtype")


@pytest.mark.parametrize("shape", [(3000,), (40, 50), (1500, 2), (2, 3, 400), (11, 11, 11)])
def test_repr_of_a_large_array_shows_the_corners_as_numpy_does(device, shape):
    host = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    made = gg.to_gpu(host, device)
    gg.synchronize(device)
    assert repr(made).startswith(f"GPUArray({np.array2string(host, separator=', ', prefix='GPUArray(')}, dtype")


def test_repr_waits_for_no_work(device, stream, gate):
    made = gg.zeros(3, device=device)
    gg.synchronize(device)
    gate.hold(stream)
    made.fill(1, stream=stream)
    assert "pending" in repr(made) and not stream.done


def test_repr_does_not_wait_behind_work_of_others_on_the_current_stream(device, stream, gate):
    made = gg.zeros(3, device=device)
    gg.synchronize(device)
    gate.hold(stream)
    with stream:
        assert "pending" in repr(made) and not stream.done


CORNERS = """
import gpuglue as gg
array = gg.zeros((2000, 1000))
gg.synchronize()
assert "..." in repr(array)
"""


def test_repr_of_a_large_array_fetches_the_corners_only(backend):
    result = run_python(CORNERS, GPUGLUE_LOG="trace")
    assert result.returncode == 0, result.stderr
    copies = re.findall(r"trace: copy\w* \S+ \S+ bytes=(\d+) OK", result.stderr)
    assert 4 * 9 * 8 <= sum(map(int, copies)) <= 4096
