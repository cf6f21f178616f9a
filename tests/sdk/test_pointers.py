"""gpuglue/compat/ptr_wrapper.h: an extension that takes pointers accepts all objects for device memory."""

import importlib
import os
import sys

import numpy as np
import pytest
from test_sdk import EXAMPLES, SUFFIX, WARNINGS, flags, package_of, run

import gpuglue as gg
import gpuglue.compat
from gpuglue.compat import PyGPU


@pytest.fixture(scope="session")
def pointers(tmp_path_factory):
    """The extension module."""
    out = tmp_path_factory.mktemp("pointers")
    includes = [f"-isystem{package_of('pybind11') / 'include'}", f"-I{gpuglue.compat.get_include()}"]
    options = ["-std=c++17", "-fvisibility=hidden", *includes]
    run("c++", *WARNINGS, EXAMPLES / "pointers_pybind11.cpp", *options, *flags(), "-o", out / f"pointers_pybind11{SUFFIX}")
    sys.path.insert(0, str(out))
    yield importlib.import_module("pointers_pybind11")
    sys.path.remove(str(out))


@pytest.fixture(scope="session")
def device():
    return gg.Device(os.environ["GPUGLUE_BACKEND"].split(",")[0] + ":0")


@pytest.fixture
def reached(device):
    """The device, if host code can access its memory."""
    if not hasattr(gg.zeros(1, device=device), "__array_interface__"):
        pytest.skip(f"the host cannot access the memory of {device}")
    return device


def test_a_function_of_pointers_is_called_as_in_pygpus_readme(pointers, reached):
    A = np.array([1, 2, 3, 4, 5, 6])
    with reached:
        da = PyGPU.DeviceArray_int64(A)
        da.allocate()
        da.to_device()
        pointers.fn(da.device_data())
        da.to_host()
    assert A.tolist() == [2, 4, 6, 8, 10, 12] and da.last_status().as_int() == 0


@pytest.mark.parametrize("dress", ["array", "buffer", "int", "numpy int", "PyGPU array", "PyGPU pointer", "Dressed"])
def test_every_object_that_names_device_memory_is_accepted(pointers, device, dress):
    class Dressed:
        ptr = 0

    with device:
        array = gg.zeros(8, np.float64, device=device)
        pygpu_array = PyGPU.GPUArray((8,), dtype=np.float64)
        pygpu_array.allocate()
        Dressed.ptr = array.ptr
        given, address = {
            "array": (array, array.ptr),
            "buffer": (buffer := gg.alloc(64, device), buffer.ptr),
            "int": (array.ptr, array.ptr),
            "numpy int": (np.uint64(array.ptr), array.ptr),
            "PyGPU array": (pygpu_array, int(pygpu_array.device_data)),
            "PyGPU pointer": (pygpu_array.device_data, int(pygpu_array.device_data)),
            "Dressed": (Dressed(), array.ptr),
        }[dress]
        assert address and pointers.behind(given, 3) == address + 24


def test_a_view_is_imported_from_its_first_element(pointers, reached):
    array = gg.arange(6, dtype=np.float64, device=reached)
    pointers.twice(array[2:], 3)
    assert array.tolist() == [0, 1, 4, 6, 8, 5]


@pytest.mark.parametrize("odd", [None, 1.5, "text", True, np.zeros(3), np.array(5), [1, 2]])
def test_an_object_that_is_not_a_pointer_is_a_type_error(pointers, odd):
    with pytest.raises(TypeError):
        pointers.behind(odd, 0)


@pytest.mark.parametrize("odd", [-1, 1 << 64])
def test_a_number_that_is_not_an_address_is_an_overflow(pointers, odd):
    with pytest.raises(OverflowError):
        pointers.behind(odd, 0)


def test_a_closed_object_is_an_error_and_not_a_null_pointer(pointers, device):
    closed = gg.alloc(64, device)
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        pointers.behind(closed, 0)
