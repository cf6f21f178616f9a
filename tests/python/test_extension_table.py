"""The view of an array that an extension receives through the table of gpuglue/python.h."""

import ctypes

import extension_table as sdk
import numpy as np
import pytest
from conftest import core_library, needs

import gpuglue as gg


@pytest.fixture
def views():
    """Views that are released at the end."""
    made = []

    def new(array, requested=None):
        made.append(sdk.view_of(array, requested))
        return made[-1]

    yield new
    for view in made:
        sdk.release(view)


def handle_of(device):
    """A gg_device."""
    found = ctypes.c_void_p()
    assert core_library().gg_device_find(f"{device.backend}:{device.ordinal}".encode(), ctypes.byref(found)) == 0
    return found.value


def test_a_view_describes_the_array(device, views):
    array = gg.zeros((3, 4), "f4", device=device)
    view = views(array[1:, ::-2])
    assert (view.data, view.ndim, view.size, view.itemsize) == (array.ptr + 16 + 12, 2, 4, 4)
    assert (view.shape[:2], view.strides[:2]) == ([2, 2], [16, -8])
    assert (view.code, view.bits, view.readonly, view.device) == (2, 32, 0, handle_of(device))
    assert view.host == hasattr(array, "__array_interface__")


@pytest.mark.parametrize("dtype, code, bits", [("?", 6, 8), ("c16", 5, 128), ("M8[s]", 255, 0), ([("a", "i4")], 255, 0)])
def test_a_view_has_an_element_type_or_only_its_size(device, views, dtype, code, bits):
    view = views(gg.zeros(3, dtype, device=device))
    assert (view.code, view.bits, view.itemsize) == (code, bits, np.dtype(dtype).itemsize)


def test_an_empty_array_has_no_address(device, views):
    assert views(gg.zeros((0, 3), device=device)).data is None


WRONG = {
    "another device": (lambda array, other: sdk.request(device=other), r"is on \S+, expected \S+: use to_device"),
    "Fortran order": (lambda array, other: sdk.request(sdk.F_ORDER), "Fortran order"),
    "an unknown bit": (lambda array, other: sdk.request(1 << 20), "unknown bit"),
    "no size": (lambda array, other: sdk.Request(), "struct_size"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_array_that_does_not_match_the_request_is_refused_and_the_view_is_unchanged(device, wrong):
    make, match = WRONG[wrong]
    other = handle_of(gg.devices(device.backend)[-1] if len(gg.devices(device.backend)) > 1 else gg.Device("host:0"))
    if wrong == "another device" and other == handle_of(device):
        pytest.skip("there is one device")
    array, view = gg.zeros((3, 4), device=device), sdk.View(ctypes.sizeof(sdk.View))
    with pytest.raises(ValueError, match=match):
        sdk.FROM_OBJECT(sdk.table().array_from_object)(array, make(array, other), view)
    assert not view.memory and not view.data
    sdk.release(view)


def test_host_arrays_are_accepted_only_on_request(device, views):
    host = np.zeros(5)
    with device, pytest.raises(TypeError, match="is host memory"):
        views(host, sdk.request())
    view = views(host, sdk.request(sdk.HOST))
    assert (view.data, view.host) == (host.ctypes.data, 1)


@pytest.mark.parametrize("odd", [3, 2.5, [1, 2], (1.5,), np.float32(3), np.int64(3), None], ids=repr)
def test_an_object_without_memory_of_its_own_is_a_type_error(device, odd):
    with device, pytest.raises(TypeError):
        sdk.view_of(odd, sdk.request(sdk.HOST | sdk.WRITABLE))


def test_a_view_is_released_once(device):
    view = sdk.view_of(gg.zeros(3, device=device))
    sdk.release(view)
    sdk.release(view)
    assert not view.memory


def test_the_stream_of_a_view_is_the_current_one(device, stream, views):
    array = gg.zeros(3, device=device)
    needs(device, "stream_native")
    with stream:
        assert views(array).stream_handle == stream.handle
    requested = sdk.request(sdk.NATIVE_STREAM, native_stream=stream.handle)
    assert views(array, requested).stream_handle == stream.handle


def test_the_views_stream_waits_for_pending_work_and_later_work_for_the_view(device, stream, gate):
    needs(device, "stream_native")
    array = gg.zeros(3, "u1", device=device)
    device.synchronize()
    writer = gg.Stream(device, nonblocking=True)
    gate.hold(writer)
    array.fill(7, stream=writer)
    with stream:
        view = sdk.view_of(array)
    seen = gg.Event(device)
    seen.record(stream)
    assert not seen.done
    sdk.release(view)
    gate.open()
    assert array.tolist() == [7, 7, 7] and seen.done


def test_functions_of_the_header_are_found_by_name():
    assert sdk.function("gg_fill") and not sdk.function("gg_no_such_function") and not sdk.function("malloc")
