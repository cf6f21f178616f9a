"""DLPack's exchange table of GPUArray, through which extensions import and allocate arrays without calling Python."""

import ctypes
import gc

import numpy as np
import producers
import pytest
from conftest import needs
from producers import HEAP, Producer, Tensor, Versioned

import gpuglue as gg

pytestmark = pytest.mark.usefixtures("known_device")

P = ctypes.c_void_p
SET_ERROR = ctypes.CFUNCTYPE(None, P, ctypes.c_char_p, ctypes.c_char_p)


class Table(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", P),
        ("allocate", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Tensor), ctypes.POINTER(P), P, SET_ERROR)),
        ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(P))),
        ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, P, ctypes.POINTER(P))),
        ("borrow", P),
        ("current_stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(P))),
    ]


@pytest.fixture(scope="module")
def table():
    capsule = gg.GPUArray.__dlpack_c_exchange_api__
    return Table.from_address(HEAP.PyCapsule_GetPointer(capsule, b"dlpack_exchange_api"))


@pytest.fixture
def taken(table):
    """The tensor of an array; released at the end."""
    made = []

    def take(array):
        out = P()
        table.from_object(array, out)
        made.append(Versioned.from_address(out.value))
        return made[-1]

    yield take
    for struct in made:
        struct.deleter(ctypes.addressof(struct))


def made_of(table, address):
    """The array that to_object creates."""
    out = P()
    table.to_object(address, out)
    array = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(array))  # the reference returned in out
    return array


def prototype(device, shape, dtype="f4"):
    where = gg.empty(1, device=device).__dlpack_device__()
    sizes = producers.int64s(shape)
    kind = np.dtype(dtype)
    tensor = Tensor(None, *where, len(shape), producers.CODES[kind.kind], kind.itemsize * 8, 1, sizes, None, 0)
    tensor.keep = sizes
    return tensor


def allocated(table, requested):
    """The tensor, or None, and the errors that were reported."""
    errors, out = [], P()
    status = table.allocate(requested, out, None, SET_ERROR(lambda _, kind, text: errors.append((kind, text))))
    assert (status == 0) == (not errors)
    return Versioned.from_address(out.value) if out.value else None, errors


def test_the_table_is_of_version_1_and_has_every_row_but_borrow(table):
    assert (table.major, table.previous, table.borrow) == (1, None, None)
    assert all(getattr(table, row) for row in ("allocate", "from_object", "to_object", "current_stream"))


def test_a_tensor_describes_the_array(device, table, taken):
    array = gg.arange(12, dtype="f4", device=device).reshape(3, 4)[1:, ::-2]
    struct = taken(array)
    tensor = struct.tensor
    assert (tensor.data, tensor.ndim, tensor.shape[:2], tensor.strides[:2]) == (array.ptr, 2, [2, 2], [4, -2])
    assert (tensor.device_type, tensor.device_id) == array.__dlpack_device__()
    assert (struct.major, struct.flags, tensor.code, tensor.bits) == (1, 0, 2, 32)


def test_an_object_of_another_type_is_refused(table, taken):
    with pytest.raises(TypeError, match="for GPUArrays"):
        taken(np.zeros(3))


def test_an_array_survives_an_export_and_an_import(device, table):
    array, out = gg.arange(6, dtype="i2", device=device).reshape(2, 3), P()
    table.from_object(array, out)
    back = made_of(table, out.value)
    assert (back.ptr, back.shape, back.dtype, back.device) == (array.ptr, array.shape, array.dtype, device)
    del array
    gc.collect()
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_foreign_tensor_is_released_with_its_array(table, backend):
    producer = Producer()
    array = made_of(table, ctypes.addressof(producer.struct))
    assert array.tolist() == producer.host.tolist() and not producer.deleted
    del array
    gc.collect()
    gg.zeros(1)
    assert producer.deleted == 1


def test_a_tensor_that_is_refused_is_released(table, backend):
    producer = Producer(lanes=4)
    with pytest.raises(BufferError, match="4 lanes"):
        made_of(table, ctypes.addressof(producer.struct))
    gc.collect()
    assert producer.deleted == 1


def test_the_stream_is_the_current_one(device, stream, table):
    where, out = gg.empty(1, device=device).__dlpack_device__(), P(7)
    with stream:
        table.current_stream(*where, out)
    numbered = hasattr(stream, "__cuda_stream__")
    assert (out.value or 0) == (stream.handle if numbered else 0)
    with pytest.raises(BufferError, match="device type 99"):
        table.current_stream(99, 0, out)


def test_the_current_stream_waits_for_pending_work(device, stream, gate, table, taken):
    if not hasattr(device.default_stream, "__cuda_stream__"):
        pytest.skip(f"{device} has no streams with numbers: the host waits")
    array, writer, seen = gg.zeros(3, "u1", device=device), gg.Stream(device, nonblocking=True), gg.Event(device)
    device.synchronize()
    gate.hold(writer)
    array.fill(7, stream=writer)
    with stream:
        taken(array)  # while the gate is closed: the host does not wait
    seen.record(stream)
    assert not seen.done
    gate.open()
    seen.synchronize()
    assert array.tolist() == [7, 7, 7]


def test_if_streams_have_no_numbers_the_host_waits(device, stream, table, taken):
    if hasattr(device.default_stream, "__cuda_stream__"):
        pytest.skip(f"{device} has streams with numbers")
    array = gg.zeros(1 << 20, "u1", device=device)
    array.fill(7, stream=stream)
    taken(array)
    assert stream.done


def test_gpuglues_work_waits_for_the_stream_of_the_producer(device, stream, gate, table):
    if not hasattr(device.default_stream, "__cuda_stream__"):
        pytest.skip(f"{device} has no streams with numbers")
    array, out = gg.zeros(3, "u1", device=device), P()
    device.synchronize()
    table.from_object(array, out)
    gate.hold(stream)
    with stream:
        array.fill(7, stream=stream)  # the maker's work
        back = made_of(table, out.value)
    other, seen = gg.Stream(device, nonblocking=True), gg.Event(device)
    with other:
        copied = back.copy()
        seen.record(other)
    assert not seen.done
    gate.open()
    assert copied.tolist() == [7, 7, 7]


@pytest.fixture
def foreign(table, stream):
    """An object over an array, of a library with its own table, whose current stream is `stream`."""

    def current_stream(kind, number, out):
        out[0] = stream.handle
        return 0

    rows = dict(Table._fields_)
    ours = Table(
        major=1,
        minor=3,
        from_object=rows["from_object"](lambda object, out: table.from_object(object.array, out)),
        current_stream=rows["current_stream"](current_stream),
    )

    class Foreign:
        __dlpack_c_exchange_api__ = HEAP.PyCapsule_New(ctypes.addressof(ours), b"dlpack_exchange_api", None)

        def __init__(self, array):
            self.array, self.table = array, ours

    return Foreign


def test_the_current_stream_waits_for_the_stream_of_the_tables_library(device, stream, gate, foreign):
    if not hasattr(device.default_stream, "__cuda_stream__"):
        pytest.skip(f"{device} has no streams with numbers")
    array = gg.zeros(3, "u1", device=device)
    device.synchronize()
    gate.hold(stream)  # the library's work
    with gg.Stream(device, nonblocking=True) as ours:
        taken = gg.asarray(foreign(array))
        seen = gg.Event(device).record(ours)
        assert taken.ptr == array.ptr and not seen.done
        gate.open()
        seen.synchronize()
        assert stream.done


def test_memory_allocated_for_others_is_kept_while_unknown_streams_may_use_it(
    device, stream, gate, table
):
    device.synchronize()
    gc.collect()
    struct, _ = allocated(table, prototype(device, (4096,)))
    address = struct.tensor.data
    gate.hold(stream)
    struct.deleter(ctypes.addressof(struct))
    assert gg.empty(4096, "f4", device=device).ptr != address


@pytest.mark.parametrize("shape, dtype", [((2, 3), "f4"), ((), "i8"), ((0, 3), "u1"), ((4, 1, 2), "c16")])
def test_a_tensor_is_allocated_for_another_library(device, table, shape, dtype):
    struct, _ = allocated(table, prototype(device, shape, dtype))
    array = made_of(table, ctypes.addressof(struct))
    assert (array.shape, array.dtype, array.device, array.flags.c_contiguous) == (shape, np.dtype(dtype), device, True)
    array.fill(3)
    assert (array.get() == 3).all()


def test_a_tensor_that_cannot_be_allocated_is_reported_through_the_callers_function(device, table):
    unknown, negative, huge = prototype(device, (3,)), prototype(device, (-1,)), prototype(device, (2**40, 2**40))
    unknown.device_type = 99
    for requested, kind in ((unknown, b"BufferError"), (negative, b"ValueError"), (huge, b"ValueError")):
        struct, errors = allocated(table, requested)
        assert struct is None and errors[0][0] == kind and errors[0][1]


def test_out_of_memory_is_a_memory_error(device, table):
    needs(device, "mem_alloc")
    struct, errors = allocated(table, prototype(device, (2**46,), "u1"))
    assert struct is None and errors[0][0] == b"MemoryError"
