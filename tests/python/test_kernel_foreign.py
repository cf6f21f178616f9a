"""Launches whose arguments are arrays of other libraries: accepted on their own device, refused elsewhere."""

import numpy as np
import pytest
from kernels import floats, load, typed
from producers import Producer

import gpuglue as gg

SHAPE = {"grid": 1, "block": 32}


class Dressed:
    """An array of another library, with only one protocol."""

    def __init__(self, array, *names):
        for name in names:
            setattr(self, name, getattr(array, name))


def expect(array, factor):
    np.testing.assert_array_equal(array.get(), np.arange(10, dtype=np.float32) * np.float32(factor))


@pytest.fixture
def scale(device):
    return typed(load(device)["scale"], device)


PROTOCOLS = {"DLPack": ("__dlpack__", "__dlpack_device__"), "CUDA Array Interface": ("__cuda_array_interface__",)}


def dressed(array, protocol):
    try:
        return Dressed(array, *PROTOCOLS[protocol])
    except AttributeError:
        pytest.skip(f"{array.device} has no {protocol}")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_of_other_libraries_are_accepted_on_their_own_device(known_device, device, scale, protocol):
    array = floats(device)
    if array.device.backend == "host" and protocol == "DLPack":
        pytest.skip("host's DLPack device is the CPU, whose tensors a launch refuses")
    scale(dressed(array, protocol), 10, 2.0, **SHAPE)
    gg.synchronize(device)
    expect(array, 2)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_view_of_another_library_is_passed_from_its_first_element(known_device, device, scale, protocol):
    array = floats(device)
    if array.device.backend == "host" and protocol == "DLPack":
        pytest.skip("host's DLPack device is the CPU, whose tensors a launch refuses")
    scale(dressed(array[5:], protocol), 5, 2.0, **SHAPE)
    gg.synchronize(device)
    np.testing.assert_array_equal(array.get(), np.arange(10) * np.where(np.arange(10) < 5, 1, 2))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_of_another_device_are_refused(device, scale, second_device, protocol):
    other = floats(second_device)
    with pytest.raises((ValueError, BufferError, gg.Error)) as caught:
        scale(dressed(other, protocol), 10, 2.0, **SHAPE)
    assert not isinstance(caught.value, gg.DeviceError)
    expect(other, 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_stream_of_a_launch_waits_for_pending_work_of_the_producer(device, scale, stream, gate, protocol):
    array, other = floats(device), gg.Stream(device, nonblocking=True)
    if not hasattr(array, "__cuda_array_interface__"):
        pytest.skip(f"{device} has no protocol with streams: a producer waits itself")
    host = gg.empty_pinned(10, np.float32)
    host[:] = 1
    gate.hold(stream)
    array.set_async(host, stream=stream)
    scale(dressed(array, protocol), 10, 2.0, stream=other, **SHAPE)
    assert not other.done
    gate.open()
    other.synchronize()
    np.testing.assert_array_equal(array.get(), np.full(10, 2, np.float32))


def test_a_launch_works_on_a_stream_that_the_producer_closes(device, scale, stream):
    array, closing = floats(device), gg.Stream(device)
    if not hasattr(array, "__cuda_array_interface__"):
        pytest.skip(f"{device} has no CUDA Array Interface")

    class Closing:
        @property
        def __cuda_array_interface__(self):
            closing.close()
            return array.__cuda_array_interface__

    scale(Closing(), 10, 2.0, stream=closing, **SHAPE)
    expect(array, 2)
    with pytest.raises(ValueError, match="Stream is closed"):
        scale(array, 10, 2.0, stream=closing, **SHAPE)


def test_cpu_tensors_are_refused_on_every_backend(scale):
    tensor = Producer((10,), "f4")  # of DLPack's device 1, the CPU
    with pytest.raises(TypeError, match="asarray|to_gpu"):
        scale(tensor, 10, 2.0, **SHAPE)
    np.testing.assert_array_equal(tensor.host, np.arange(10))


def test_the_exception_of_a_failing_producer_is_raised(scale):
    class Broken:
        def __dlpack_device__(self):
            raise RuntimeError("no device today")

        def __dlpack__(self, **_):
            raise RuntimeError("no array today")

    with pytest.raises(RuntimeError, match="today"):
        scale(Broken(), 10, 2.0, **SHAPE)


@pytest.mark.parametrize("position", range(3))
def test_tensors_imported_before_a_wrong_argument_are_released(device, scale, position):
    buffer = gg.alloc(40, device)
    arguments = [buffer, 10, 2.0]
    arguments[position] = object()
    with pytest.raises(TypeError, match=f"argument {position} "):
        scale(*arguments, **SHAPE)
    buffer.close()
    with pytest.raises(ValueError, match="closed"):
        scale(buffer, 10, 2.0, **SHAPE)
