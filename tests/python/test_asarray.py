"""asarray: any object with memory becomes a GPUArray over it."""

import gc
import mmap
import weakref

import numpy as np
import producers
import pytest
from conftest import run_python, succeeds

import gpuglue as gg

pytestmark = pytest.mark.usefixtures("known_device")


def is_host(device):
    return gg.empty(1, device=device).__dlpack_device__()[0] == 1


@pytest.fixture
def numbers(device):
    return gg.arange(12, dtype="f4", device=device).reshape(3, 4)


class Shows:
    def __init__(self, array, *names, **more):
        vars(self).update({name: getattr(array, name) for name in names}, **more, keep=array)


def test_asarray_of_a_gpuarray_returns_it(numbers, device):
    assert gg.asarray(numbers) is numbers and gg.asarray(numbers, device=device) is numbers
    assert gg.asarray(numbers, "f4") is numbers


def test_copy_true_returns_another_array(numbers):
    copy = gg.asarray(numbers, copy=True)
    assert copy.ptr != numbers.ptr and copy.tolist() == numbers.tolist()


def test_dtype_converts_the_elements(numbers):
    assert gg.asarray(numbers, "i2").dtype == np.int16


def test_a_buffer_becomes_an_array_of_its_bytes(device):
    buffer = gg.alloc(16, device)
    array = gg.asarray(buffer)
    assert (array.ptr, array.shape, array.dtype, array.base) == (buffer.ptr, (16,), np.uint8, buffer)
    array.view("f4").fill(1.5)
    buffer.close()
    assert array.view("f4").tolist() == [1.5] * 4


def test_pinned_memory_is_an_array_of_its_device(device):
    buffer = gg.alloc_pinned(16, device)
    array = gg.asarray(buffer).view("i4")
    array.fill(3)
    array[1] = 5
    assert np.asarray(array).tolist() == [3, 5, 3, 3] and np.asarray(array).ctypes.data == buffer.ptr
    assert array.device is device


OBJECTS = {
    "DLPack": lambda a: Shows(a, "__dlpack__", "__dlpack_device__"),
    "ptr": lambda a: Shows(a, "ptr", "shape", "dtype", "strides"),
    "gpudata": lambda a: Shows(a, "gpudata", "shape", "dtype"),
    "data_ptr()": lambda a: Shows(a, "shape", "dtype", data_ptr=lambda: a.ptr),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_other_libraries_arrays_are_wrapped_without_a_copy(numbers, kind, device):
    with device:
        array = gg.asarray(OBJECTS[kind](numbers))
    assert (array.ptr, array.shape, array.dtype) == (numbers.ptr, numbers.shape, numbers.dtype)
    assert array.device is device and array.tolist() == numbers.tolist()


def test_the_owner_is_kept_until_the_last_view_is_released(numbers, device):
    with device:
        shown = Shows(numbers, "ptr", "shape", "dtype")
        gone = weakref.ref(shown)
        view = gg.asarray(shown)[1:]
        del shown
        gc.collect()
        assert gone()
        view.get()
        del view
        gg.synchronize(device)
        gg.asarray(gg.empty(1, device=device))
        gc.collect()
        assert not gone()


def test_an_address_needs_shape_and_dtype(numbers, device):
    with device:
        array = gg.asarray(numbers.ptr + 4, "f4", shape=(2, 2), strides=(16, 4), owner=numbers)
        assert array.tolist() == [[1, 2], [5, 6]] and array.base is numbers
        for missing in ({}, {"shape": 3}, {"dtype": "f4"}):
            with pytest.raises(TypeError, match="shape= and dtype="):
                gg.asarray(numbers.ptr, **missing)


def test_with_a_shape_a_numpy_integer_is_an_address(numbers, device):
    with device:
        array = gg.asarray(np.uint64(numbers.ptr), "f4", shape=12, owner=numbers)
    assert array.ptr == numbers.ptr and array.tolist() == list(range(12))
    assert gg.asarray(np.uint64(7), device=device).shape == ()


@pytest.mark.parametrize("name, value", [("shape", 12), ("strides", (4,)), ("owner", [])])
@pytest.mark.parametrize("kind", ["GPUArray", "Buffer", "NumPy", "list", "DLPack"])
def test_parameters_for_addresses_are_refused_with_an_array(numbers, device, kind, name, value):
    given = {"GPUArray": numbers, "Buffer": gg.alloc(48, device), "NumPy": np.zeros(12), "list": [1, 2]}
    given["DLPack"] = OBJECTS["DLPack"](numbers)
    with pytest.raises(TypeError, match="only with an address"):
        gg.asarray(given[kind], device=device, **{name: value})


def test_at_an_address_a_string_dtype_needs_a_length(numbers, device):
    with device, pytest.raises(ValueError, match="length"):
        gg.asarray(numbers.ptr, "S", shape=3, owner=numbers)


def test_copy_false_never_copies(numbers, device):
    host = np.arange(3, dtype="i8")
    for data, dtype in ((numbers, "i2"), (host, "f4"), ([1, 2], None), (2.5, None), (b"abc", "u2"), (np.int8(1), None)):
        with pytest.raises(ValueError, match="copy=False"):
            gg.asarray(data, dtype, copy=False, device=device)
    assert gg.asarray(numbers, "f4", copy=False) is numbers
    if is_host(device):
        assert gg.asarray(host, "i8", copy=False, device=device).ptr == host.ctypes.data
        assert gg.asarray(bytearray(3), copy=False, device=device).shape == (3,)


def test_owndata_is_false_for_foreign_memory(numbers, device):
    with device:
        assert not gg.asarray(numbers.ptr, "f4", shape=12).flags.owndata
    assert not gg.from_dlpack(numbers).flags.owndata and numbers.copy().flags.owndata


@pytest.mark.parametrize("address, error", [(-1, ValueError), (2**64, ValueError), (0, ValueError)])
def test_impossible_addresses_are_refused(device, address, error):
    with device, pytest.raises(error):
        gg.asarray(address, "f4", shape=3)


def test_an_address_that_the_driver_does_not_know_is_refused(device):
    if is_host(device) or not device.supports("pointer_info"):
        pytest.skip(f"{device} accepts any address")
    host = np.zeros(10)
    with device, pytest.raises(ValueError, match="no driver in use knows"):
        gg.asarray(host.ctypes.data, "f8", shape=10, owner=host)


def test_an_address_of_another_device_is_refused(device, second_device):
    array = gg.zeros(3, device=second_device)
    if not device.supports("pointer_info"):
        pytest.skip(f"{device} does not report the device of an address")
    with pytest.raises(ValueError, match="is memory of"):
        gg.asarray(array.ptr, "f8", shape=3, device=device)
    with device:
        assert gg.asarray(array.ptr, "f8", shape=3, owner=array).device is second_device


def test_host_data_is_aliased_on_a_host_device_and_copied_to_another(device):
    host = np.arange(6.0).reshape(2, 3)
    array = gg.asarray(host, device=device)
    assert array.tolist() == host.tolist() and (array.ptr == host.ctypes.data) == is_host(device)
    assert gg.asarray(host[:, ::-1], device=device).tolist() == host[:, ::-1].tolist()
    if is_host(device):
        array[0, 0] = 9
        assert host[0, 0] == 9
    else:
        with pytest.raises(ValueError, match="copy=False"):
            gg.asarray(host, device=device, copy=False)


def test_cpu_tensors_are_host_data(device):
    producer = producers.Producer(shape=(2, 3))
    array = gg.asarray(producer, device=device)
    assert array.device is device and array.tolist() == producer.host.tolist()
    assert (array.ptr == producer.host.ctypes.data) == is_host(device)


def test_read_only_host_data_is_read_only_where_it_is_aliased(device):
    host = np.zeros(3)
    host.flags.writeable = False
    assert gg.asarray(host, device=device).flags.writeable != is_host(device)


@pytest.mark.parametrize("data", [[1, 2, 3], (1.5, 2.5), b"abc", 2.5, bytearray(3)])
def test_lists_and_buffers_are_host_data(device, data):
    expected = np.asarray(memoryview(data) if isinstance(data, bytes) else data)
    assert gg.asarray(data, device=device).tolist() == expected.tolist()


@pytest.mark.parametrize("odd", [object(), "text", {}, {1, 2}, lambda: 0])
def test_an_object_without_memory_is_a_type_error(device, odd):
    with pytest.raises(TypeError):
        gg.asarray(odd, device=device)


def test_objects_of_host_data_are_refused(device):
    with pytest.raises(TypeError):
        gg.asarray(np.array([object()]), device=device)


def test_from_dlpack_goes_to_another_device_only_when_asked(device, second_device):
    array = gg.arange(3, device=second_device)
    assert gg.from_dlpack(array).device is second_device
    moved = gg.from_dlpack(array, device=device)
    assert moved.device is device and moved.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="copy=False"):
        gg.from_dlpack(array, device=device, copy=False)


def test_to_device_returns_the_array_itself_or_a_host_copy(device):
    array = gg.arange(6, device=device).reshape(2, 3)
    assert array.to_device(device) is array
    host = array.T.to_device("cpu")
    assert isinstance(host, np.ndarray) and host.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_to_device_copies_to_another_device(device, second_device):
    array = gg.arange(6, device=device).reshape(2, 3)
    moved = array.T.to_device(second_device)
    assert moved.device is second_device and moved.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_an_array_of_another_library_may_be_assigned(device):
    source, to = gg.arange(6, dtype="f4", device=device), gg.zeros((2, 3), "f4", device=device)
    to[1] = Shows(source[3:], "__dlpack__", "__dlpack_device__")
    assert to.tolist() == [[0, 0, 0], [3, 4, 5]]
    to[0] = producers.Producer(shape=(3,)) if is_host(device) else np.arange(3)
    assert to.tolist() == [[0, 1, 2], [3, 4, 5]]


CLOSED_MEANWHILE = """
import sys
import gpuglue as gg

class CloseAtImport:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            buffer.close()
            gg.trim()
            others.extend(gg.alloc(64 << i) for i in range(12))

others, buffer = [], gg.alloc(1 << 20)
assert "numpy" not in sys.modules
sys.meta_path.insert(0, CloseAtImport())
try:
    print(gg.asarray(buffer).nbytes)
except gg.Error as error:
    print(error)
"""


def test_a_buffer_that_is_closed_while_numpy_is_imported_is_refused(device):
    assert "Buffer is closed" in succeeds(run_python(CLOSED_MEANWHILE))


def test_the_owner_of_host_memory_is_released_with_the_last_reference(device):
    with mmap.mmap(-1, 4096) as memory, gg.Device("host"):
        array = gg.asarray(memory, device="host")
        del array
    grows = bytearray(100)
    array = gg.asarray(grows, device="host")
    with pytest.raises(BufferError):
        grows.append(1)
    del array
    grows.append(1)


def test_the_producer_of_an_imported_array_is_released_with_the_last_reference(backend):
    source = np.arange(4.0)
    alive = weakref.ref(source)
    with gg.Device("host"):
        array = gg.from_dlpack(source)
    del source
    assert alive() is not None and array.tolist() == [0, 1, 2, 3]
    del array
    assert alive() is None


class OnlyArray:
    """As pandas' Series: no buffer, no interface, only __array__."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(3, dtype=dtype or "i4")


def test_objects_with_only_the_array_method_are_copied_to_the_device(device):
    array = gg.asarray(OnlyArray(), device=device)
    assert array.device == device and array.get().tolist() == [0, 1, 2]
    assert gg.asarray(OnlyArray(), "f8", device=device).dtype == np.float64
