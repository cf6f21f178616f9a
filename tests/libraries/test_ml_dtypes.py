"""A round trip of every small float of ml_dtypes, also through DLPack if DLPack has the type."""

import numpy as np
import pytest

import gpuglue as gg

ml_dtypes = pytest.importorskip("ml_dtypes")
NAMES = [name for name in dir(ml_dtypes) if name.startswith(("bfloat16", "float8_"))]


@pytest.mark.parametrize("name", NAMES)
def test_small_floats_survive_a_round_trip(device, name):
    host = np.array([1, 2, 0.5, 4]).astype(getattr(ml_dtypes, name))
    array = gg.to_gpu(host, device)
    array[1:2] = array[:1]
    assert array.dtype == host.dtype and array.get().astype("f4").tolist() == [1, 1, 0.5, 4]
    back = gg.from_dlpack(array)
    assert back.dtype == host.dtype and back.ptr == array.ptr
