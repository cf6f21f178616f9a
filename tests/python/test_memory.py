"""Buffer: blocks of device and pinned memory: allocation, attributes, release."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

import gpuglue as gg


def as_bytes(buffer):
    host = bytearray(buffer.nbytes)
    gg.copy(host, buffer)
    return bytes(host)


def test_a_buffer_has_a_size_a_kind_a_device_and_an_aligned_address(device):
    with gg.alloc(1000, device) as buffer:
        assert (buffer.nbytes, buffer.kind, buffer.device, buffer.stream) == (1000, "device", device, None)
        assert buffer.ptr > 0 and buffer.ptr % 256 == 0


def test_a_pinned_buffer_has_its_kind(device):
    assert gg.alloc_pinned(10, device).kind == "pinned"


def test_a_buffer_reports_the_stream_it_was_allocated_for(stream):
    buffer = gg.alloc(10, stream=stream)
    assert buffer.stream is stream and buffer.device is stream.device


def test_a_buffer_of_no_bytes_has_a_null_pointer(device):
    for buffer in (gg.alloc(0, device), gg.alloc_pinned(0, device)):
        assert (buffer.ptr, buffer.nbytes) == (0, 0)


def test_ctypes_takes_a_buffer_as_a_pointer_of_full_width(device):
    buffer = gg.alloc(10, device)
    parameter = buffer._as_parameter_
    assert isinstance(parameter, ctypes.c_void_p) and parameter.value == buffer.ptr
    echo = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(lambda pointer: pointer)
    assert echo(buffer) == buffer.ptr


def test_ctypes_without_argtypes_does_not_truncate_the_pointer(device):
    buffer = gg.alloc_pinned(16, device)
    memoryview(buffer)[:] = b"abc" + bytes(13)
    strlen = ctypes.CDLL(None).strlen
    strlen.restype = ctypes.c_size_t
    assert strlen(buffer) == 3


def test_a_closed_buffer_refuses_everything_but_close(device):
    buffer = gg.alloc(10, device)
    buffer.close()
    buffer.close()
    for use in ("ptr", "nbytes", "device", "kind", "_as_parameter_"):
        with pytest.raises(ValueError, match="Buffer is closed"):
            getattr(buffer, use)
    with pytest.raises(ValueError, match="Buffer is closed"):
        gg.copy(bytearray(10), buffer)
    with pytest.raises(ValueError, match="Buffer is closed"):
        gg.fill(buffer, 0)
    assert "closed" in repr(buffer)


def test_leaving_a_with_block_closes_the_buffer(device):
    with gg.alloc(10, device) as buffer:
        pass
    with pytest.raises(ValueError, match="closed"):
        buffer.__enter__()


def test_repr_shows_size_kind_and_device(device):
    text = repr(gg.alloc(10, device))
    assert "10 bytes" in text and "device" in text and device.backend in text


def test_a_buffer_can_be_referenced_weakly(device):
    buffer = gg.alloc(10, device)
    reference = weakref.ref(buffer)
    assert reference() is buffer
    del buffer
    gc.collect()
    assert reference() is None


def test_buffers_are_only_made_by_functions():
    with pytest.raises(TypeError, match="cannot create"):
        gg.Buffer()


# ---- pinned memory as host memory --------------------------------------------------------------


def test_numpy_sees_pinned_memory_without_a_copy(device):
    buffer = gg.alloc_pinned(8, device)
    array = np.asarray(buffer)
    assert array.dtype == np.uint8 and array.ctypes.data == buffer.ptr
    array[:] = range(8)
    assert bytes(memoryview(buffer)) == bytes(range(8))


def test_array_method_returns_a_view_or_the_requested_copy(device):
    buffer = gg.alloc_pinned(4, device)
    memoryview(buffer)[:] = b"1234"
    assert buffer.__array__().ctypes.data == buffer.ptr
    assert buffer.__array__(copy=True).ctypes.data != buffer.ptr
    assert buffer.__array__(np.dtype("f8")).tolist() == [49, 50, 51, 52]


def test_the_array_interface_describes_pinned_memory(device):
    buffer = gg.alloc_pinned(8, device)
    interface = buffer.__array_interface__
    assert (interface["shape"], interface["typestr"], interface["version"]) == ((8,), "|u1", 3)
    assert interface["data"] == (buffer.ptr, False)


def test_memory_lives_as_long_as_a_view_of_it(device):
    buffer = gg.alloc_pinned(1 << 20, device)
    array = np.asarray(buffer)
    array[:] = 7
    buffer.close()
    del buffer
    gc.collect()
    gg.alloc_pinned(1 << 20, device)  # would reuse the memory if it were free
    assert (array == 7).all()


def test_an_array_over_the_interface_may_outlive_close(device):
    buffer = gg.alloc_pinned(64, device)
    address = buffer.__array_interface__["data"][0]
    buffer.close()
    ctypes.memset(address, 1, 64)  # the Buffer object is still there, and so is the memory


def test_an_export_waits_for_work_on_the_memory(device, stream, gate):
    source, buffer = gg.full(4, 9, "u1", device=device), gg.alloc_pinned(4, device)
    gg.synchronize(device)
    gate.hold(stream)
    gg.copy(buffer, source, stream=stream)
    opener = gate.open_later()
    assert bytes(buffer) == b"\x09" * 4
    opener.join()


def test_device_memory_does_not_support_the_buffer_protocol(device):
    buffer = gg.alloc(8, device)
    with pytest.raises(BufferError, match=r"gpuglue.copy.*get\(\)"):
        memoryview(buffer)
    assert not hasattr(buffer, "__array_interface__")
    with pytest.raises(TypeError, match="copy"):
        np.asarray(buffer)


def test_numpy_does_no_arithmetic_with_a_pinned_buffer(device):
    with pytest.raises(TypeError):
        np.ones(8) + gg.alloc_pinned(8, device)


# ---- arrays in pinned memory -------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_pinned_arrays_are_ordinary_arrays(device, order):
    array = gg.empty_pinned((3, 4), "f4", order, device)
    assert type(array) is np.ndarray and array.shape == (3, 4) and array.dtype == np.float32
    assert array.flags[f"{order}_CONTIGUOUS"] and array.flags.writeable
    array[:] = 2
    assert array.sum() == 24


def test_zeros_pinned_is_zero(device):
    assert not gg.zeros_pinned(1000, device=device).any()


def test_a_pinned_array_may_be_empty(device):
    assert gg.empty_pinned((0, 3), device=device).shape == (0, 3)


def test_the_buffer_under_a_pinned_array_can_be_reached(device):
    array = gg.zeros_pinned(4, "u1", device=device)
    assert isinstance(array.base.obj, gg.Buffer) and array.base.obj.ptr == array.ctypes.data


# ---- fills ------------------------------------------------------------------------------------------


def test_fill_writes_a_byte(device):
    buffer = gg.alloc(5, device)
    assert gg.fill(buffer, 0xAB) is None
    assert as_bytes(buffer) == b"\xab" * 5


@pytest.mark.parametrize("pattern", [b"ab", bytearray(b"abc"), np.float32(1.5), np.arange(6, dtype="i2")])
def test_fill_repeats_a_pattern(device, pattern):
    raw = bytes(memoryview(pattern).cast("B") if not isinstance(pattern, np.generic) else pattern.tobytes())
    buffer = gg.alloc(len(raw) * 7, device)
    gg.fill(buffer, pattern)
    assert as_bytes(buffer) == raw * 7


def test_a_fill_is_ordered_on_its_stream(device, stream, gate):
    buffer = gg.alloc(4, device)
    gg.fill(buffer, 1)
    gg.synchronize(device)
    gate.hold(stream)
    gg.fill(buffer, 2, stream=stream)
    assert not stream.done
    gate.open()
    assert as_bytes(buffer) == b"\x02" * 4


def test_record_use_makes_later_work_wait(device, stream, gate):
    buffer = gg.alloc(4, device)
    gate.hold(stream)
    buffer.record_use(stream)
    opener = gate.open_later()
    gg.fill(buffer, 1)  # without a stream: waits on the device for the use
    assert as_bytes(buffer) == b"\x01" * 4 and gate.opened
    opener.join()


def test_record_use_needs_a_stream(device):
    with pytest.raises(TypeError, match="stream"):
        gg.alloc(4, device).record_use(None)


def test_release_captured_is_allowed_where_nothing_was_captured(device):
    assert gg.alloc(4, device).release_captured() is None


def test_dropping_a_buffer_in_use_does_not_wait(device, stream, gate):
    buffer = gg.alloc(1 << 16, device)
    gg.synchronize(device)
    gate.hold(stream)
    gg.fill(buffer, 1, stream=stream)
    buffer.close()
    del buffer
    gc.collect()
    assert not stream.done
