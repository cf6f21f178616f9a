"""Other libraries' arrays with one field wrong: each is refused by the right exception, its deleter is called
once, and its memory is not read."""

import ctypes
import gc

import numpy as np
import producers
import pytest
from producers import Producer

import gpuglue as gg

NULL64 = ctypes.POINTER(ctypes.c_int64)()


def refused(producer, error, match):
    with pytest.raises(error, match=match):
        gg.from_dlpack(producer)
    gc.collect()
    assert producer.deleted == 1


@pytest.mark.parametrize("versioned", [True, False])
def test_a_valid_tensor_is_imported_without_a_copy_and_released_once(versioned, backend):
    producer = Producer(versioned=versioned)
    array = gg.from_dlpack(producer)
    assert array.ptr == producer.host.ctypes.data and (array.get() == producer.host).all()
    assert array.strides == producer.host.strides and array.dtype == producer.host.dtype
    view = array[1:]
    del array
    gc.collect()
    assert producer.deleted == 0
    del view
    gg.zeros(1)  # any call releases finished work
    assert producer.deleted == 1


def test_a_tensor_of_version_2_is_refused_unread(backend):
    producer = Producer(major=2, minor=0, data=1, ndim=-5)
    producer.struct.tensor.shape = NULL64
    refused(producer, BufferError, "DLPack version 2.0")


def test_a_newer_minor_version_is_accepted(backend):
    assert gg.from_dlpack(Producer(minor=99)).shape == (2, 3)


def test_lanes_are_refused(backend):
    refused(Producer(lanes=2), BufferError, "2 lanes")


@pytest.mark.parametrize("code, bits", [(3, 64), (99, 32), (2, 7), (2, 128), (17, 4), (0, 24), (6, 1)])
def test_unknown_element_types_are_refused(backend, code, bits):
    refused(Producer(code=code, bits=bits), BufferError, "code")


def test_null_strides_mean_c_order(backend):
    array = gg.from_dlpack(Producer(strides=NULL64))
    assert array.strides == (12, 4) and array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_byte_offset_is_added(backend):
    producer = Producer(shape=(2, 3))
    producer.struct.tensor.byte_offset = 4
    producer.struct.tensor.shape[0] = 1
    array = gg.from_dlpack(producer)
    assert array.ptr == producer.host.ctypes.data + 4 and array.tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("data", [None, 0x1000])
def test_an_empty_tensor_may_have_a_null_address(backend, data):
    producer = Producer(shape=(0, 3), data=data)
    array = gg.from_dlpack(producer)
    assert (array.shape, array.ptr, array.get().shape) == ((0, 3), 0, (0, 3))


def test_a_null_address_with_elements_is_refused(backend):
    refused(Producer(data=None), BufferError, "data is NULL")


@pytest.mark.parametrize("where", [(4, 0), (99, 0), (-1, 0)])
def test_an_unknown_device_type_is_refused_before_the_capsule_is_requested(backend, where):
    producer = Producer(where=where)
    with pytest.raises(BufferError, match="device type"):
        gg.from_dlpack(producer)
    assert producer.deleted == 0 and not producer.asked


def test_a_device_that_does_not_exist_is_refused(backend):
    with pytest.raises(BufferError, match="there is no DLPack device"):
        gg.from_dlpack(Producer(where=(2, 1000)))


def test_a_tensor_on_another_device_than_reported_is_refused(backend):
    refused(Producer(device_type=99), BufferError, "device type")


def test_a_tensor_without_a_deleter_is_accepted(backend):
    producer = Producer(deleter=producers.DELETER())
    array = gg.from_dlpack(producer)
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    del array
    gc.collect()
    gg.zeros(1)


def test_a_capsule_can_be_consumed_once(backend):
    class Twice:
        def __init__(self):
            self.producer = Producer()
            self.capsule = self.producer.capsule()

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **names):
            return self.capsule

    twice = Twice()
    array = gg.from_dlpack(twice)
    with pytest.raises(BufferError, match="was already consumed"):
        gg.from_dlpack(twice)
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]] and twice.producer.deleted == 0


@pytest.mark.parametrize("ndim", [-1, 65, 2**31 - 1])
def test_impossible_dimensions_are_refused(backend, ndim):
    refused(Producer(ndim=ndim), BufferError, "ndim|dimensions")


def test_a_null_shape_is_refused(backend):
    producer = Producer()
    producer.struct.tensor.shape = NULL64
    refused(producer, BufferError, "shape is NULL")


@pytest.mark.parametrize("lengths", [(-1, 3), (2**62, 2**62), (2**63 - 1, 2)])
def test_impossible_lengths_are_refused(backend, lengths):
    producer = Producer()
    producer.struct.tensor.shape[0], producer.struct.tensor.shape[1] = lengths
    refused(producer, BufferError, "negative|63 bits")


def test_impossible_strides_are_refused(backend):
    producer = Producer()
    producer.struct.tensor.strides[0] = 2**62
    refused(producer, BufferError, "63 bits")


def test_strides_of_both_signs_that_span_more_than_63_bits_are_refused(backend):
    producer = Producer(shape=(2, 2), dtype="u1")
    producer.struct.tensor.strides[0], producer.struct.tensor.strides[1] = 2**62, -(2**62)
    refused(producer, BufferError, "63 bits")


@pytest.mark.parametrize("versioned", [True, False])
def test_elements_outside_the_address_space_are_refused(versioned, backend):
    refused(Producer(byte_offset=2**64 - 4, versioned=versioned), BufferError, "address space")
    before = Producer(shape=(2,), dtype="u1", versioned=versioned)
    before.struct.tensor.strides[0] = -(2**62)
    refused(before, BufferError, "address space")
    after = Producer(shape=(2,), dtype="u1", data=2**64 - 1, versioned=versioned)
    refused(after, BufferError, "address space")


def test_an_address_whose_array_leaves_the_address_space_is_refused(backend):
    with pytest.raises(ValueError, match="address space"):
        gg.asarray(2**64 - 8, shape=(2,), dtype="f8", device="host")
    with pytest.raises(ValueError, match="address space"):
        gg.asarray(2**20, shape=(2,), strides=(-(2**40),), dtype="f8", device="host")


def test_negative_strides_are_accepted(backend):
    producer = Producer(shape=(4,))
    producer.struct.tensor.data += 12
    producer.struct.tensor.strides[0] = -1
    assert gg.from_dlpack(producer).tolist() == [3, 2, 1, 0]


def test_a_read_only_tensor_is_read_only(backend):
    array = gg.from_dlpack(Producer(flags=producers.READ_ONLY))
    assert not array.flags.writeable and not array[0].flags.writeable
    for write in (lambda: array.fill(1), lambda: array.set(np.zeros((2, 3), "f4")), lambda: array[0].set(array[1])):
        with pytest.raises(ValueError, match="read-only"):
            write()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    assert array.copy().flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        array.__dlpack__()
    assert producers.look(array.__dlpack__(max_version=(1, 0))).flags & producers.READ_ONLY


class Answers:
    """DLPack methods with the given return values."""

    def __init__(self, capsule=None, where=(1, 0)):
        self.capsule, self.where = capsule, where

    def __dlpack_device__(self):
        return self.where

    def __dlpack__(self, **names):
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.capsule


@pytest.mark.parametrize("answer", [None, 3, "capsule"])
def test_a_result_that_is_not_a_capsule_is_refused(backend, answer):
    with pytest.raises(TypeError, match="capsule"):
        gg.from_dlpack(Answers(answer))


@pytest.mark.parametrize("where", [None, (1,), (1, 0, 0), ("a", "b")])
def test_an_invalid_dlpack_device_is_refused(backend, where):
    with pytest.raises((BufferError, TypeError)):
        gg.from_dlpack(Answers(where=where))


def test_the_exception_of_a_producer_is_passed_on(backend):
    with pytest.raises(ZeroDivisionError, match="mine"):
        gg.from_dlpack(Answers(ZeroDivisionError("mine")))


def test_a_producer_older_than_version_1_is_called_again(backend):
    class Old(Producer):
        def __dlpack__(self, stream=None):
            return self.capsule()

    assert gg.from_dlpack(Old(versioned=False)).shape == (2, 3)


def test_an_unversioned_tensor_of_a_versioned_producer_is_read_only(backend):
    class Old(Producer):
        def __dlpack__(self, stream=None):
            return self.capsule()

    knows, old = gg.from_dlpack(Producer(versioned=False)), gg.from_dlpack(Old(versioned=False))
    assert not knows.flags.writeable and old.flags.writeable
    assert producers.look(knows[1:].__dlpack__()).tensor.data and producers.look(old.__dlpack__()).tensor.data


def test_an_object_without_dlpack_is_refused(backend):
    with pytest.raises(AttributeError, match="__dlpack_device__"):
        gg.from_dlpack(object())


# ---- the exchange table -------------------------------------------------------------------------------------


TABLE = ctypes.c_void_p * 7


def with_table(producer, major=1, previous=0, name=b"dlpack_exchange_api", status=0, empty=False):
    """A type whose objects are given by the table: from_object gives the producer's struct."""

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def from_object(_, out):
        out[0] = None if empty else ctypes.addressof(producer.struct)
        return status

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
    def current_stream(_, __, out):
        out[0] = None
        return 0

    table = TABLE(major | 3 << 32, previous, 0, ctypes.cast(from_object, ctypes.c_void_p).value, 0, 0,
                  ctypes.cast(current_stream, ctypes.c_void_p).value)  # fmt: skip

    class Exchanged:
        keep = (table, from_object, current_stream, name)
        __dlpack_c_exchange_api__ = producers.HEAP.PyCapsule_New(ctypes.addressof(table), name, None)

    return Exchanged()


def test_the_exchange_table_of_a_type_is_used(backend):
    producer = Producer()
    array = gg.asarray(with_table(producer), device="host:0")
    assert array.ptr == producer.host.ctypes.data and not producer.asked
    del array
    gc.collect()
    gg.zeros(1)
    assert producer.deleted == 1


def test_a_newer_table_refers_to_an_older_one(backend):
    producer = Producer()
    old = with_table(producer)
    new = with_table(Producer(), major=2, previous=ctypes.addressof(old.keep[0]))
    assert gg.asarray(new, device="host:0").ptr == producer.host.ctypes.data


@pytest.mark.parametrize("wrong", [{"major": 2}, {"name": b"another"}])
def test_an_incompatible_table_is_skipped(backend, wrong):
    with pytest.raises(TypeError, match="asarray takes"):
        gg.asarray(with_table(Producer(), **wrong))


@pytest.mark.parametrize("wrong", [{"status": -1}, {"empty": True}])
def test_a_table_that_fails_without_a_reason_is_an_error(backend, wrong):
    with pytest.raises(BufferError, match="no reason"):
        gg.asarray(with_table(Producer(), **wrong))


def test_a_bad_tensor_from_a_table_is_refused_and_released(backend):
    producer = Producer(lanes=4)
    with pytest.raises(BufferError, match="4 lanes"):
        gg.asarray(with_table(producer))
    gc.collect()
    assert producer.deleted == 1


# ---- __cuda_array_interface__ ---------------------------------------------------------------------------------


class Interface:
    def __init__(self, array, **changed):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changed}
        for name in [name for name, value in changed.items() if value is KeyError]:
            del self.__cuda_array_interface__[name]


@pytest.fixture
def described(device):
    array = gg.arange(6, dtype="f4", device=device)
    gg.synchronize(device)
    if not hasattr(array, "__cuda_array_interface__"):
        pytest.skip(f"{device} has no CUDA Array Interface")
    return array


def test_a_valid_interface_is_imported_without_a_copy(described):
    array = gg.asarray(Interface(described))
    assert array.ptr == described.ptr and array.device == described.device and array.tolist() == described.tolist()


WRONG = {
    "stream 0": ({"stream": 0}, "stream 0 is ambiguous"),
    "a negative stream": ({"stream": -1}, "stream"),
    "a mask": ({"mask": 1}, "mask"),
    "no typestr": ({"typestr": KeyError}, "typestr"),
    "an odd typestr": ({"typestr": "<q9"}, "typestr"),
    "a typestr of objects": ({"typestr": "|O"}, "typestr"),
    "no data": ({"data": KeyError}, "data"),
    "data that is not a pair": ({"data": 3}, "data"),
    "an address of 0": ({"data": (0, False)}, "at address 0"),
    "a negative address": ({"data": (-1, False)}, "address"),
    "no shape": ({"shape": KeyError}, "shape"),
    "a negative length": ({"shape": (-1,)}, "shape"),
    "a length that is too large": ({"shape": (2**62, 4)}, "63 bits"),
    "strides of another length": ({"strides": (4, 4)}, "strides"),
    "no version": ({"version": KeyError}, "version"),
    "version 1": ({"version": 1}, "version"),
    "more than the allocation": ({"shape": (2**40,)}, "go past the end of the allocation"),
    "memory of the host": ({"data": (0x10000, False)}, "no driver in use knows"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_bad_interface_is_refused(described, wrong):
    changed, match = WRONG[wrong]
    with pytest.raises(ValueError, match=match):
        gg.asarray(Interface(described, **changed))


def test_an_interface_that_is_not_a_dict_is_refused(described):
    class Odd:
        __cuda_array_interface__ = 3

    with pytest.raises(TypeError, match="dict"):
        gg.asarray(Odd())


def test_a_read_only_interface_is_read_only(described):
    array = gg.asarray(Interface(described, data=(described.ptr, True)))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_strides_and_fields_of_an_interface_are_used(described):
    made = gg.asarray(Interface(described, shape=(2, 2), strides=(4, 8)))
    assert made.tolist() == [[0, 2], [1, 3]]
    fields = [("a", "<f4"), ("b", "<f4")]
    made = gg.asarray(Interface(described, shape=(3,), typestr="|V8", descr=fields))
    assert made.dtype == np.dtype(fields) and made.tolist() == [(0, 1), (2, 3), (4, 5)]
