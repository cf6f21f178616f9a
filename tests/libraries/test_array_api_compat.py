"""array-api-compat's helpers that move data between libraries."""

import numpy as np
import pytest

import gpuglue as gg

compat = pytest.importorskip("array_api_compat")


def test_it_is_not_a_standard_array_because_it_does_no_arithmetic(device):
    array = gg.ones(3, device=device)
    assert not hasattr(array, "__array_namespace__") and not compat.is_array_api_obj(array)
    with pytest.raises(TypeError):
        compat.array_namespace(array)


def test_device_and_to_device_work(device):
    array = gg.arange(6, device=device).reshape(2, 3)
    assert compat.device(array) is device and compat.to_device(array, device) is array
    host = compat.to_device(array, "cpu")
    assert isinstance(host, np.ndarray) and host.tolist() == array.tolist()
    assert compat.size(array) == 6


def test_from_dlpack_of_its_namespaces_shares_the_memory(device):
    import array_api_compat.numpy as namespace

    array = gg.arange(6, device=device)
    assert namespace.from_dlpack(array).ctypes.data == array.ptr
