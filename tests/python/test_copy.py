"""copy(): every pair of operands with any layout; which copies are refused and why."""

import array
import mmap

import numpy as np
import pytest

import gpuglue as gg


def buffer_with(data, device):
    buffer = gg.alloc(len(data), device)
    gg.copy(buffer, data)
    return buffer


def bytes_of(buffer):
    host = bytearray(buffer.nbytes)
    gg.copy(host, buffer)
    return bytes(host)


SOURCES = {
    "bytes": lambda: b"12345678",
    "bytearray": lambda: bytearray(b"12345678"),
    "memoryview": lambda: memoryview(b"12345678"),
    "array": lambda: array.array("B", b"12345678"),
    "ndarray": lambda: np.frombuffer(b"12345678", "f8"),
    "strided memoryview": lambda: memoryview(b"1_2_3_4_5_6_7_8_")[::2],
    "strided ndarray": lambda: np.frombuffer(b"1_2_3_4_5_6_7_8_", "u1")[::2],
    "reversed ndarray": lambda: np.frombuffer(b"87654321", "u1")[::-1],
}


@pytest.mark.parametrize("source", SOURCES)
def test_any_buffer_can_be_the_source(device, source):
    buffer = gg.alloc(8, device)
    assert gg.copy(buffer, SOURCES[source]()) is None
    assert bytes_of(buffer) == b"12345678"


def test_any_writable_buffer_can_be_the_destination(device):
    source = buffer_with(b"12345678", device)
    anonymous = mmap.mmap(-1, 8)
    for destination in (bytearray(8), array.array("B", bytes(8)), np.zeros(8, "u1"), np.zeros(1), anonymous):
        gg.copy(destination, source)
        assert bytes(memoryview(destination)) == b"12345678"


def test_strided_destinations_keep_the_bytes_between(device):
    source = buffer_with(b"1234", device)
    whole, array = bytearray(b"_" * 8), np.full(8, ord("_"), "u1")
    gg.copy(memoryview(whole)[::2], source)
    gg.copy(array[::2], source)
    assert bytes(whole) == bytes(array) == b"1_2_3_4_"


def test_two_buffers_are_copied(device):
    source, destination = buffer_with(b"12345678", device), gg.alloc(8, device)
    gg.copy(destination, source)
    assert bytes_of(destination) == b"12345678"


def test_pinned_and_device_buffers_are_copied(device):
    pinned, memory, back = gg.alloc_pinned(4, device), gg.alloc(4, device), gg.alloc_pinned(4, device)
    memoryview(pinned)[:] = b"1234"
    gg.copy(memory, pinned)
    gg.copy(back, memory)
    assert bytes(back) == b"1234"


def test_a_longer_buffer_is_filled_from_its_beginning(device):
    buffer = buffer_with(b"12345678", device)
    gg.copy(buffer, b"ab")
    assert bytes_of(buffer) == b"ab345678"


def test_an_array_is_filled_from_the_beginning_of_a_buffer(device):
    numbers = gg.empty(2, "u2", device=device)
    gg.copy(numbers, buffer_with(np.arange(4, dtype="u2").tobytes(), device))
    assert numbers.tolist() == [0, 1]


def test_two_arrays_are_copied(device):
    source = gg.arange(12, dtype="i4", device=device)
    destination = gg.empty(12, "i4", device=device)
    gg.copy(destination, source)
    assert destination.tolist() == list(range(12))


@pytest.mark.parametrize("to", ["C", "F"])
@pytest.mark.parametrize("source", ["C", "F"])
def test_arrays_of_any_order_are_copied(device, to, source):
    matrix = np.arange(24.0).reshape(2, 3, 4)
    destination = gg.empty((2, 3, 4), order=to, device=device)
    gg.copy(destination, gg.to_gpu(np.asarray(matrix, order=source), device))
    fetched = destination.get()
    assert (fetched == matrix).all() and fetched.flags[f"{to}_CONTIGUOUS"]


def test_a_typed_memoryview_is_an_array_beside_an_array(device):
    numbers = gg.empty(3, "f8", device=device)
    gg.copy(numbers, array.array("d", [1, 2, 3]))
    destination = array.array("d", [0, 0, 0])
    gg.copy(destination, numbers)
    assert list(destination) == [1, 2, 3]


def test_a_large_pageable_array_survives_a_round_trip(device):
    numbers = np.random.default_rng(1).integers(0, 255, 5_000_001, dtype="u1")
    back = np.empty_like(numbers)
    gg.copy(back, gg.to_gpu(numbers, device))
    assert (back == numbers).all()


def test_zero_bytes_succeed_and_do_nothing(device):
    gg.copy(gg.alloc(0, device), b"")
    gg.copy(gg.empty((0, 3), device=device), np.empty((0, 3)))
    gg.copy(bytearray(), gg.alloc(0, device))
    gg.fill(gg.empty(0, device=device), 1)


# ---- refused ----------------------------------------------------------------------------------------


def test_a_copy_past_the_end_names_both_sizes(device):
    buffer = gg.alloc(4, device)
    with pytest.raises(ValueError, match="8 bytes extends past the end: the destination has 4 bytes"):
        gg.copy(buffer, bytes(8))
    with pytest.raises(ValueError, match="8 bytes extends past the end: the source has 4 bytes"):
        gg.copy(np.zeros(1), buffer)


def test_shapes_must_be_equal(device):
    numbers = gg.empty((2, 3), device=device)
    with pytest.raises(ValueError, match=r"destination \(2, 3\), source \(3, 2\)"):
        gg.copy(numbers, np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"destination \(6,\), source \(2, 3\)"):
        gg.copy(np.zeros(6), numbers)


def test_dtypes_must_be_equal(device):
    numbers = gg.empty(3, "f4", device=device)
    with pytest.raises(TypeError, match="destination float32, source float64"):
        gg.copy(numbers, np.zeros(3))
    with pytest.raises(TypeError, match="destination float32, source >f4"):
        gg.copy(numbers, np.zeros(3, ">f4"))


@pytest.mark.parametrize("destination", [b"1234", memoryview(b"1234")])
def test_a_read_only_destination_is_refused(device, destination):
    with pytest.raises(ValueError, match="read-only"):
        gg.copy(destination, gg.alloc(4, device))


def test_a_read_only_array_is_refused(device):
    destination = np.zeros(3)
    destination.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        gg.copy(destination, gg.zeros(3, device=device))


def test_overlapping_operands_are_refused(device):
    buffer, numbers = gg.alloc(8, device), gg.zeros(8, device=device)
    for end in (buffer, numbers):
        with pytest.raises(ValueError, match="overlap"):
            gg.copy(end, end)


def test_the_error_for_overlapping_operands_has_the_overlap_and_a_remedy(device):
    buffer = gg.alloc(8, device)
    with pytest.raises(ValueError, match=r"8 bytes, 0 apart.*copy through a third block"):
        gg.copy(buffer, buffer)


def test_a_view_of_pinned_memory_overlaps_its_buffer(device):
    buffer = gg.alloc_pinned(8, device)
    with pytest.raises(ValueError, match="overlap"):
        gg.copy(memoryview(buffer)[2:6], buffer)


def test_a_copy_of_zero_bytes_checks_its_operands(device):
    with pytest.raises(ValueError, match="differ"):
        gg.copy(gg.empty((0, 3), device=device), np.empty((3, 0)))
    with pytest.raises(ValueError, match="read-only"):
        gg.copy(b"", gg.alloc(0, device))
    stream = gg.Stream(device)
    gg.copy(gg.alloc(0, device), b"", stream=stream, require_async=True)
    assert stream.done


def test_two_host_operands_are_refused():
    with pytest.raises(TypeError, match="numpy.copyto"):
        gg.copy(np.zeros(3), np.ones(3))


@pytest.mark.parametrize("end", [5, "text", None, [1, 2]])
def test_an_object_without_memory_is_refused(device, end):
    with pytest.raises(TypeError, match="buffer protocol"):
        gg.copy(gg.alloc(8, device), end)
    with pytest.raises(TypeError, match="buffer protocol"):
        gg.copy(end, gg.alloc(8, device))


def test_objects_are_refused(device):
    with pytest.raises(TypeError, match="astype"):
        gg.copy(gg.alloc(800, device), np.array([object()]))


def test_a_stream_of_another_device_is_refused(device, second_device):
    with pytest.raises(ValueError, match="belongs to"):
        gg.copy(gg.alloc(4, device), b"1234", stream=gg.Stream(second_device))


def test_a_fill_pattern_must_fit(device):
    buffer = gg.alloc(8, device)
    for value in (256, -1, b"", b"123", bytes(65537)):
        with pytest.raises(ValueError, match="byte"):
            gg.fill(buffer, value)
    with pytest.raises(TypeError, match="int from 0 to 255"):
        gg.fill(buffer, 1.5)
    with pytest.raises(TypeError, match="GPUArray or a Buffer"):
        gg.fill(bytearray(8), 1)


# ---- order ------------------------------------------------------------------------------------------


def test_a_copy_without_a_stream_waits_for_work_on_both_operands(device, stream, gate):
    source, destination = gg.zeros(4, device=device), gg.empty(4, device=device)
    gg.synchronize(device)
    gate.hold(stream)
    source.fill(3, stream=stream)
    opener = gate.open_later()
    gg.copy(destination, source)
    assert destination.tolist() == [3] * 4
    opener.join()


def test_copies_in_a_with_block_run_on_its_stream(device, stream, gate):
    source, destination = gg.ones(4, device=device), gg.zeros(4, device=device)
    gg.synchronize(device)
    gate.hold(stream)
    with stream:
        gg.copy(destination, source)
    assert not stream.done
    gate.open()
    assert destination.tolist() == [1] * 4


def test_a_buffer_closed_during_a_copy_is_kept(device, stream, gate):
    source, destination = buffer_with(b"12345678", device), gg.alloc(8, device)
    gg.synchronize(device)
    gate.hold(stream)
    gg.copy(destination, source, stream=stream)
    source.close()
    gate.open()
    assert bytes_of(destination) == b"12345678"
