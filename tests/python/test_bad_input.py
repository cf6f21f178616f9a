"""Bad input: each message names the value, the expected form and a remedy."""

import re

import numpy as np
import pytest
from kernels import load

import gpuglue as gg

MAKERS = [gg.empty, gg.zeros, gg.ones, gg.GPUArray, lambda shape, **k: gg.full(shape, 1, **k), gg.empty_pinned]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shape", [-1, (2, -3), [0, -1]])
def test_negative_shapes_are_refused_with_the_shape(device, make, shape):
    with pytest.raises(ValueError) as caught:
        make(shape, device=device)
    assert repr(shape) in str(caught.value) and "negative" in str(caught.value)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shape", [(2**40, 2**40), (2**62, 2), 2**63, (0, 2**62, 2**62), (1, 10**30)])
def test_overflowing_shapes_are_refused_with_the_shape(device, make, shape):
    with pytest.raises(ValueError) as caught:
        make(shape, device=device)
    assert repr(shape) in str(caught.value) and "too large" in str(caught.value)


def test_shapes_whose_bytes_overflow_are_refused(device):
    gg.empty((2**62, 0), "i1", device=device)
    with pytest.raises(ValueError, match="float64 is too large"):
        gg.empty(2**61, device=device)


@pytest.mark.parametrize("shape", [1.5, (1.5,), ["a"], (None,), {2, 3}, "3", None])
def test_shapes_must_consist_of_ints(device, shape):
    with pytest.raises(TypeError):
        gg.empty(shape, device=device)


@pytest.mark.parametrize("data", [[1.5, 2.0], "text", None, 2.5, {1: 2}, object()])
def test_an_argument_that_is_neither_shape_nor_data_is_refused(device, data):
    with pytest.raises(TypeError, match="shape|buffer"):
        gg.GPUArray(data, device=device)


def test_too_many_dimensions_are_refused(device):
    with pytest.raises(ValueError, match="65 dimensions"):
        gg.empty((1,) * 65, device=device)


@pytest.mark.parametrize("order, error", [("X", ValueError), ("", ValueError), ("CF", ValueError), (3, TypeError), (b"C", TypeError)])
def test_an_unknown_order_is_refused(device, order, error):
    with pytest.raises(error, match="order must be"):
        gg.empty(3, order=order, device=device)


@pytest.mark.parametrize("allocate", [gg.alloc, gg.alloc_pinned])
def test_sizes_must_be_non_negative_integers(device, allocate):
    with pytest.raises(ValueError, match="nbytes must be from 0 to 9223372036854775807, got -1"):
        allocate(-1, device)
    with pytest.raises(TypeError, match="nbytes must be an int, got 1.5"):
        allocate(1.5, device)


TOO_LARGE = {
    "alloc": lambda device: gg.alloc(2**50, device),
    "alloc much more": lambda device: gg.alloc(2**62, device),
    "empty": lambda device: gg.empty(2**47, device=device),
    "alloc_pinned": lambda device: gg.alloc_pinned(2**50, device),
}


@pytest.mark.parametrize("make", TOO_LARGE.values(), ids=TOO_LARGE)
def test_out_of_memory_is_a_memory_error_with_sizes(device, make):
    with pytest.raises(MemoryError) as caught:
        make(device)
    error = caught.value
    assert isinstance(error, gg.OutOfMemoryError) and isinstance(error, gg.Error)
    assert any(str(2**power) in str(error) for power in (50, 62)) and "gpuglue holds" in str(error)
    assert " bytes) free of " in str(error) or not device.supports("device_memory_info")
    assert (error.backend, error.status) == (device.backend, "ERR_OUT_OF_MEMORY")
    assert gg.zeros(10, device=device).get().sum() == 0  # everything still works


@pytest.mark.parametrize("allocate", [gg.alloc, gg.alloc_pinned])
def test_sizes_beyond_64_bits_are_out_of_memory_with_the_given_size(device, allocate):
    with pytest.raises(gg.OutOfMemoryError, match=f"nbytes is {10**30}: expected at most"):
        allocate(10**30, device)
    with pytest.raises(gg.OutOfMemoryError, match="nbytes is an int of 16610 bits: expected at most"):
        allocate(10**5000, device)
    with pytest.raises(gg.InvalidArgumentError, match=f"from 0 to {2**63 - 1}, got {-(10**30)}"):
        allocate(-(10**30), device)


@pytest.mark.parametrize("call", ["empty", "to_gpu", "alloc", "copy", "fill", "full", "arange"])
def test_unknown_and_missing_arguments_are_named(call):
    function = getattr(gg, call)
    with pytest.raises(TypeError, match=f"{call}.*missing"):
        function()
    with pytest.raises(TypeError, match=f"{call}.*nonsense"):
        function(1, 2, nonsense=3) if call in ("copy", "fill", "full") else function(1, nonsense=3)


def test_set_names_both_shapes_and_dtypes(device):
    made = gg.zeros((2, 3), "f4", device=device)
    with pytest.raises(ValueError, match=r"destination \(2, 3\), source \(3, 2\)"):
        made.set(np.zeros((3, 2), "f4"))
    with pytest.raises(TypeError, match="destination float32, source float64"):
        made.set(np.zeros((2, 3)))


def test_set_and_get_refuse_objects_without_elements(device):
    made = gg.zeros(3, device=device)
    for wrong in (5, "abc"):
        with pytest.raises(TypeError, match="source of a copy"):
            made.set(wrong)
    for wrong in ([1, 2, 3], 5, "abc"):
        with pytest.raises(TypeError, match="destination of a copy"):
            made.get(wrong)


def test_get_does_not_write_to_read_only_arrays(device):
    out = np.zeros(3)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        gg.ones(3, device=device).get(out)
    assert not out.any()


def test_device_data_is_not_accepted_as_host_data(device):
    for data in (gg.zeros(3, device=device), gg.alloc(8, device)):
        with pytest.raises(TypeError, match="expected host data"):
            gg.to_gpu(data)
        with pytest.raises(TypeError, match="expected host data"):
            gg.GPUArray(data)


@pytest.mark.parametrize("stream", ["text", 1.5, object()])
def test_an_object_that_is_not_a_stream_is_refused(device, stream):
    with pytest.raises(TypeError):
        gg.zeros(3, device=device, stream=stream)


def test_a_closed_stream_is_refused(device):
    stream = gg.Stream(device)
    stream.close()
    made = gg.zeros(3, device=device)
    for use in (made.get, made.copy, made.get_async):
        with pytest.raises(ValueError, match="closed"):
            use(stream=stream)


def test_a_stream_of_another_device_is_refused(device, second_device):
    stream, made = gg.Stream(second_device), gg.zeros(3, device=device)
    with pytest.raises(ValueError, match="belongs to"):
        made.get(stream=stream)
    with pytest.raises(ValueError, match="belongs to"):
        gg.zeros(3, device=device, stream=stream)


def test_failed_calls_do_not_change_the_destination(device):
    out = np.full(3, 7.0)
    with pytest.raises(ValueError):
        gg.copy(out, gg.zeros(4, device=device))
    made = gg.full(3, 7.0, device=device)
    with pytest.raises(TypeError):
        made.set(np.zeros(3, "f4"))
    assert (out == 7).all() and (made.get() == 7).all()


class OfAnotherVersion:
    def __init__(self, version):
        self.__cuda_stream__ = (version, 1)


INTEGERS = {
    "priority": (lambda device, n: gg.Stream(device, priority=n), "-2147483648 to 2147483647"),
    "shape": (lambda device, n: gg.empty((1, n), device=device), "shape"),
    "ordinal": (lambda device, n: gg.Device(n), "ordinal must be from 0 to 2147483647"),
    "handle": (lambda device, n: gg.Stream.borrow(n, device), "between 0 and 2\\*\\*64 - 1"),
    "version": (lambda device, n: gg.Stream.borrow(OfAnotherVersion(n), device), "version"),
    "byte": (lambda device, n: gg.fill(gg.alloc(4, device), n), "from 0 to 255"),
}
ENORMOUS = {"2**70": 2**70, "-2**70": -(2**70), "10**5000": 10**5000}
SHOWN = {"10**5000": "16610 bits|too long to show"}  # Python refuses to write so many digits


@pytest.mark.parametrize("number", ENORMOUS)
@pytest.mark.parametrize("argument", INTEGERS)
def test_integers_out_of_range_are_refused_with_the_expected_range(device, argument, number):
    use, expected = INTEGERS[argument]
    value = ENORMOUS[number]
    with pytest.raises(gg.InvalidArgumentError, match=expected) as caught:
        use(device, value)
    assert re.search(SHOWN.get(number) or str(value), str(caught.value))


@pytest.mark.parametrize("fault, memory", [("not C-contiguous", np.zeros(8)[::2]), ("not writable", np.frombuffer(bytes(8)))])
def test_memory_that_cannot_be_registered_is_refused_with_the_fault_and_the_expected_form(device, fault, memory):
    with pytest.raises(BufferError, match=f"needs writable memory that is contiguous in C order .*{fault}"):
        gg.host_register(memory, device)


def test_a_raw_argument_without_bytes_is_refused_with_the_value():
    with pytest.raises(TypeError, match="RawArgument takes bytes or another buffer.*got 3"):
        gg.RawArgument(3)


def test_a_selection_without_a_usable_backend_is_shown_as_given_and_the_doctor_named():
    with pytest.raises(gg.BackendUnavailableError, match=r'with use_backend\("nobody"\): nobody: plugin-not-found') as caught:
        gg.use_backend("nobody")
    assert str(caught.value).endswith("`gpuglue doctor` names the cause, and the command that corrects it")


NAMERS = {
    "device": lambda device, text: gg.Device(text),
    "devices": lambda device, text: gg.devices(text),
    "backend": lambda device, text: gg.use_backend(text),
    "uuid": lambda device, text: gg.Device(uuid=text),
    "kernel": lambda device, text: load(device)[text],
    "variable": lambda device, text: load(device).get_global(text),
}


@pytest.mark.parametrize("name", NAMERS)
def test_a_null_character_in_a_name_is_refused(device, name):
    text = {"device": f"{device.backend}:0", "devices": device.backend, "backend": device.backend, "uuid": device.uuid,
            "kernel": "scale", "variable": "table"}[name]
    with pytest.raises(gg.InvalidArgumentError, match="null character"):
        NAMERS[name](device, f"{text}\0garbage")
