"""NumPy and arrays of the host backend share memory in both directions, by every protocol of NumPy."""

import numpy as np
import pytest

import gpuglue as gg


@pytest.mark.parametrize("take", [np.from_dlpack, np.asarray, lambda a: np.asarray(memoryview(a)), lambda a: np.asarray(a.__array__())])
@pytest.mark.parametrize("view", [np.s_[:], np.s_[:, ::-1], np.s_[1:, 1], np.s_[:0], np.s_[2, 3]])
def test_numpy_sees_the_same_memory(device, take, view):
    array = gg.arange(12, dtype="i4", device=device).reshape(3, 4)[view]
    host = take(array)
    assert host.shape == array.shape and host.tolist() == array.tolist()
    assert not host.size or host.ctypes.data == array.ptr and host.strides == array.strides


PADDED = np.dtype({"names": ["a", "b"], "formats": ["u1", "<f4"], "offsets": [0, 4], "itemsize": 12})
OVERLAPPING = np.dtype({"names": ["a", "b"], "formats": ["u4", "<f4"], "offsets": [0, 2], "itemsize": 8})
NUMPYS = ["f4", "M8[s]", [("a", "i2"), ("b", "S3")], "U5", ">i4", "?", "V5", PADDED, OVERLAPPING]


@pytest.mark.parametrize("dtype", [*NUMPYS, "bfloat16", "float8_e4m3fn"], ids=str)
def test_every_dtype_is_supported_by_one_of_the_protocols(device, dtype):
    if isinstance(dtype, str) and "float" in dtype:
        dtype = getattr(pytest.importorskip("ml_dtypes"), dtype)
    host = np.zeros(3, dtype)
    array = gg.to_gpu(host, device)
    seen = np.asarray(array)
    assert seen.dtype == host.dtype and seen.tobytes() == host.tobytes() and seen.ctypes.data == array.ptr


@pytest.mark.parametrize("dtype", [PADDED, OVERLAPPING], ids=["padded", "overlapping"])
def test_a_protocol_refuses_dtypes_that_it_cannot_express(device, dtype):
    array = gg.zeros(3, dtype, device=device)
    with pytest.raises(BufferError, match="numpy.asarray"):
        memoryview(array)
    with pytest.raises(AttributeError, match="numpy.asarray"):
        array.__array_interface__


def test_array_with_copy_false_never_copies(device):
    array = gg.zeros(3, device=device)
    assert array.__array__("f8", copy=False).ctypes.data == array.ptr != array.__array__(copy=True).ctypes.data
    with pytest.raises(ValueError, match="copy=False"):
        array.__array__("f4", copy=False)


def test_numpy_arrays_are_imported_through_dlpack(device):
    host = np.arange(12.0).reshape(3, 4)[:, ::2]
    array = gg.from_dlpack(host)
    assert array.ptr == host.ctypes.data and array.strides == host.strides
    host[1, 1] = 99
    assert array.get()[1, 1] == 99


def test_a_read_only_array_of_numpys_is_read_only(device):
    host = np.arange(3.0)
    host.flags.writeable = False
    array = gg.from_dlpack(host)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    assert not np.from_dlpack(array).flags.writeable and not np.asarray(array).flags.writeable


def test_numpy_can_keep_an_imported_array(device):
    host = np.from_dlpack(gg.full(1000, 7, "u1", device=device))
    others = [gg.full(1000, 9, "u1", device=device) for _ in range(50)]
    assert (host == 7).all() and len(others) == 50


def test_numpys_functions_do_not_compute_silently(device):
    array = gg.ones(3, device=device)
    for compute in (lambda: np.add(array, 1), lambda: np.ones(3) * array, lambda: array + np.ones(3)):
        with pytest.raises(TypeError):
            compute()
