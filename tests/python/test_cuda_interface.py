"""The CUDA Array Interface of gpuglue's arrays: its fields, and the stream that a consumer has to wait for."""

import numpy as np
import pytest

import gpuglue as gg

pytestmark = pytest.mark.usefixtures("known_device")


@pytest.fixture
def array(device):
    made = gg.zeros(1000, device=device)
    gg.synchronize(device)
    assert gg.from_dlpack(made) is not None
    if not hasattr(made, "__cuda_array_interface__"):
        pytest.skip(f"{device} has no CUDA Array Interface")
    return made


def stream_of(array):
    return array.__cuda_array_interface__["stream"]


def test_a_backend_without_the_interface_has_no_such_attribute(device):
    made = gg.zeros(3, device=device)
    like_cuda = made.__dlpack_device__()[0] in (2, 10)
    assert hasattr(made, "__cuda_array_interface__") == like_cuda
    assert hasattr(device.default_stream, "__cuda_stream__") == like_cuda


def test_it_describes_the_array(array):
    view = array.view("i4").reshape(4, 500)[:, ::2]
    described = view.__cuda_array_interface__
    assert described == {
        "shape": (4, 250),
        "typestr": "<i4",
        "data": (view.ptr, False),
        "version": 3,
        "strides": (2000, 8),
        "stream": None,
    }
    assert array.__cuda_array_interface__["strides"] is None


def test_records_show_their_fields(array):
    described = array[:3].view([("a", "<f4"), ("b", "<i4")]).__cuda_array_interface__
    assert (described["typestr"], described["descr"]) == ("|V8", [("a", "<f4"), ("b", "<i4")])


@pytest.mark.parametrize("dtype", ["V8", [("a", "<f4"), ("b", "<i4")], [("a", "<f8")]], ids=str)
def test_types_without_a_name_survive_a_round_trip(array, dtype):
    view = array.view(dtype)

    class Foreign:
        __cuda_array_interface__ = view.__cuda_array_interface__

    assert gg.asarray(Foreign()).dtype == view.dtype


@pytest.mark.parametrize("fields", [[("a", "<i2")], [("a", "<i8"), ("b", "<i8")]], ids=["smaller", "larger"])
def test_fields_of_another_size_are_refused(array, fields):
    class Foreign:
        __cuda_array_interface__ = {**array.view("V8").__cuda_array_interface__, "descr": fields}

    with pytest.raises(gg.InvalidArgumentError, match="different sizes"):
        gg.asarray(Foreign())


def test_an_empty_array_has_address_0(array):
    assert array[:0].__cuda_array_interface__["data"] == (0, False)


def test_without_pending_work_there_is_no_stream(array):
    assert stream_of(array) is None


def test_the_one_stream_with_pending_work_is_named(array, device, stream, gate):
    gate.hold(stream)
    array.fill(7, stream=stream)
    assert stream_of(array) == stream.handle and not stream.done


def test_its_handle_is_valid_as_long_as_the_array(array, device, gate):
    stream = gg.Stream(device, nonblocking=True)
    handle = stream.handle
    gate.hold(stream)
    array.fill(7, stream=stream)
    assert stream_of(array) == handle
    stream.close()
    del stream
    gate.open()
    gg.synchronize(device)
    gg.empty(1, device=device)  # would destroy closed and idle streams
    borrowed = gg.Stream.borrow(handle, device)
    borrowed.synchronize()
    assert borrowed.done


def test_the_default_stream_is_1_on_cuda_and_a_stream_that_waits_for_it_on_hip(array, device, gate):
    gate.hold(device.default_stream)
    array.fill(7)
    if array.__dlpack_device__()[0] == 2:
        assert stream_of(array) == 1
    else:
        check_that_it_waits(array, device, gate)


def check_that_it_waits(array, device, gate):
    """The named stream is not one of the vendor's numbered streams, and waits for all pending work."""
    handle = stream_of(array)
    assert handle not in (None, 0, 1, 2)
    out, consumer = gg.zeros_pinned(1000, device=device), gg.Stream.borrow(handle, device)
    array.get_async(out, stream=consumer)
    assert not consumer.done and not out.any()
    gate.open()
    consumer.synchronize()
    assert (out == 7).all()


def test_for_several_streams_one_that_waits_for_all_is_named(array, device, stream, gate):
    other = gg.Stream(device, nonblocking=True)
    gate.hold(stream)
    array[500:].fill(7, stream=other)
    array[:500].fill(7, stream=stream)
    other.wait(stream)
    array[:1].fill(7, stream=other)
    assert stream_of(array) not in (stream.handle, other.handle)
    check_that_it_waits(array, device, gate)
    other.close()


def test_a_consumer_follows_the_stream_that_is_named(array, device, stream, gate):
    class Foreign:
        __cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": stream.handle}

    gate.hold(stream)
    array.fill(7, stream=stream)
    taken = gg.asarray(Foreign())
    assert not stream.done and taken.ptr == array.ptr
    copy = gg.empty_like(taken)
    with gg.Stream(device, nonblocking=True) as ours:
        gg.copy(copy, taken)
        assert not ours.done
        gate.open()
        assert (copy.get() == 7).all()


def test_the_current_stream_waits_for_the_stream_that_is_named(array, device, stream, gate):
    class Foreign:
        __cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": stream.handle}

    gate.hold(stream)
    with gg.Stream(device, nonblocking=True) as ours:
        gg.asarray(Foreign())
        seen = gg.Event(device).record(ours)
        assert not seen.done
        gate.open()
        seen.synchronize()
        assert stream.done


def test_hip_refuses_1_and_2_as_streams(array, device):
    if array.__dlpack_device__()[0] != 10:
        pytest.skip(f"{device} is not a hip device")
    for number in (1, 2):

        class Foreign:
            __cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": number}

        with pytest.raises(ValueError, match="not streams of hip"):
            gg.asarray(Foreign())


def test_its_address_is_that_of_the_first_element(array):
    view = array[::-1]
    described = view.__cuda_array_interface__
    assert described["data"][0] == array.ptr + 999 * 8 and described["strides"] == (-8,)

    class Foreign:
        __cuda_array_interface__ = described
        keep = array

    array.set(np.arange(1000.0))
    assert gg.asarray(Foreign()).tolist() == list(range(999, -1, -1))
