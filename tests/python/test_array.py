"""GPUArray: constructors, attributes, values in and out."""

import ctypes
import gc
import itertools
import sys
import weakref

import numpy as np
import pytest

import gpuglue as gg


# ---- made from a shape ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [5, (5,), [5], np.int64(5), (2, 3), [2, 3, 4], (), (0,), (3, 0, 2), (1,) * 10])
def test_a_shape_is_an_int_or_a_tuple_or_list_of_ints(device, shape):
    expected = np.empty(shape)
    for made in (gg.GPUArray(shape, device=device), gg.empty(shape, device=device)):
        assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
        assert made.strides == expected.strides or not made.size  # NumPy's have changed there
        assert (made.size, made.nbytes, made.ndim) == (expected.size, expected.nbytes, expected.ndim)


def test_attributes_are_those_of_numpy(device):
    made, expected = gg.zeros((3, 4), "i2", "F", device), np.zeros((3, 4), "i2", "F")
    for name in ("shape", "dtype", "strides", "size", "nbytes", "itemsize", "ndim"):
        assert getattr(made, name) == getattr(expected, name)
    assert made.device is device and made.base is None


def test_the_pointer_has_three_names(device):
    made = gg.empty(3, device=device)
    assert made.ptr == made.gpudata == made._as_parameter_.value > 0
    assert isinstance(made._as_parameter_, ctypes.c_void_p)


def test_ctypes_takes_an_array_as_a_pointer_of_full_width(device):
    made = gg.empty(3, device=device)
    echo = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(lambda pointer: pointer)
    assert echo(made) == made.ptr
    length = ctypes.CDLL(None).strnlen  # without argtypes a bare int would be cut to 32 bits
    length.restype = ctypes.c_size_t
    assert length(made, ctypes.c_size_t(0)) == 0


def test_an_empty_array_has_a_null_pointer(device):
    assert gg.empty((0, 3), device=device).ptr == 0


@pytest.mark.parametrize("function", ["zeros", "ones"])
@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "f2", "f8", "c16", "S3"])
def test_zeros_and_ones_hold_what_numpy_has(device, function, dtype):
    made = getattr(gg, function)((2, 3), dtype, device=device).get()
    assert made.tobytes() == getattr(np, function)((2, 3), dtype).tobytes()


VALUES = [7, 2.5, True, 1 + 2j, np.float32(3), np.int8(-1), "abc", b"xy", np.datetime64("2026-11-20")]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_full_takes_the_dtype_of_its_value(device, value):
    made, expected = gg.full((2, 2), value, device=device).get(), np.full((2, 2), value)
    assert made.dtype == expected.dtype and made.tobytes() == expected.tobytes()


def test_full_casts_to_a_given_dtype(device):
    assert gg.full(3, 2.9, "i4", device=device).tolist() == [2, 2, 2]


def test_full_requires_a_single_value(device):
    with pytest.raises(ValueError, match="one element"):
        gg.full(3, [1, 2, 3], device=device)


@pytest.mark.parametrize("arguments", [(5,), (2, 9), (9, 0, -2), (0.5, 3), (0, 1, 0.25), (5, None), (0,), (3, 1)])
def test_arange_is_that_of_numpy(device, arguments):
    made, expected = gg.arange(*arguments, device=device).get(), np.arange(*arguments)
    assert made.dtype == expected.dtype and (made == expected).all() and made.shape == expected.shape


def test_arange_takes_a_dtype(device):
    made = gg.arange(53735, dtype=np.float64, device=device)
    assert made.dtype == np.float64 and made.get().sum() == 1443698245


@pytest.mark.parametrize("order", ["C", "F"])
def test_like_functions_use_the_shape_dtype_order_and_device(device, order):
    model = gg.ones((3, 4), "i2", order, device)
    for made in (gg.empty_like(model), gg.zeros_like(model), gg.ones_like(model), gg.full_like(model, 3)):
        assert (made.shape, made.dtype, made.strides, made.device) == (model.shape, model.dtype, model.strides, device)
    assert gg.full_like(model, 3).item(0) == 3 and gg.zeros_like(model).item(0) == 0


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("index", [np.s_[:], np.s_[::2, :, ::-1], np.s_[:, :1]], ids=str)
def test_like_functions_keep_the_order_of_the_axes(device, axes, index):
    host = np.zeros((2, 3, 4), "i2").transpose(axes)[index]
    model = gg.zeros((2, 3, 4), "i2", device=device).transpose(axes)[index]
    for order in "KACF":
        expected = np.empty_like(host, "f4", order).strides
        for made in (gg.empty_like(model, "f4", order), gg.full_like(host, 3, "f4", order, device)):
            assert made.strides == expected
    assert (gg.full_like(model, 3).get() == 3).all()


def test_like_functions_accept_another_dtype_and_order(device):
    made = gg.zeros_like(np.ones((3, 4), "i2"), "f8", "F", device)
    assert (made.dtype, made.strides) == (np.float64, (8, 24))


def test_a_stream_determines_the_device(second_device):
    stream = gg.Stream(second_device)
    assert gg.empty(3, stream=stream).device is second_device
    assert gg.to_gpu(np.zeros(3), stream=stream).device is second_device


# ---- made from data ---------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [bytearray(b"abc"), b"abc", memoryview(b"abc"), (ctypes.c_double * 3)(1, 2, 3)])
def test_any_buffer_is_data(device, data):
    expected = np.asarray(memoryview(data))
    for made in (gg.GPUArray(data, device=device), gg.to_gpu(data, device)):
        assert made.dtype == expected.dtype and (made.get() == expected).all()


def test_data_is_copied(device):
    host = np.arange(4)
    made = gg.to_gpu(host, device)
    host[:] = 0
    assert made.tolist() == [0, 1, 2, 3]


def test_data_is_cast_on_the_host_to_a_given_dtype(device):
    made = gg.GPUArray(np.array([1.7, 2.2]), dtype="i4", device=device)
    assert made.dtype == np.int32 and made.tolist() == [1, 2]


def test_a_zero_dimensional_array_is_data_and_not_a_shape(device):
    made = gg.GPUArray(np.array(5), device=device)
    assert made.shape == () and made.item() == 5


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_order_of_data_is_kept(device, order):
    host = np.asarray(np.arange(24.0).reshape(2, 3, 4), order=order)
    for made in (gg.to_gpu(host, device), gg.GPUArray(host, device=device)):
        assert made.strides == host.strides and made.get().strides == host.strides
        assert (made.get() == host).all()


def test_another_order_may_be_requested(device):
    host = np.arange(6.0).reshape(2, 3)
    made = gg.GPUArray(host, order="F", device=device)
    assert made.strides == (8, 16) and (made.get() == host).all()


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[:, ::-1], np.s_[1:3, 1:2], np.s_[:, None, ::3], np.s_[2:2]])
def test_sources_that_are_not_contiguous_are_copied_correctly(device, view):
    host = np.arange(40.0).reshape(4, 10)[view]
    made = gg.to_gpu(host, device)
    assert made.shape == host.shape and (made.get() == host).all()


def test_transposed_sources_are_copied_correctly(device):
    host = np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0)
    assert (gg.to_gpu(host, device).get() == host).all()


def test_lists_and_scalars_are_data_for_to_gpu(device):
    assert gg.to_gpu([[1.5, 2], [3, 4]], device).tolist() == [[1.5, 2], [3, 4]]
    assert gg.to_gpu(3, device).item() == 3


# ---- values in and out ------------------------------------------------------------------------------


def test_set_and_get_are_complete_on_return(device):
    made = gg.empty(3, device=device)
    assert made.set(np.array([1.0, 2, 3])) is None
    assert made.get().tolist() == [1, 2, 3]


def test_get_fills_and_returns_the_given_array(device):
    made, out = gg.ones((2, 2), device=device), np.zeros((2, 2))
    assert made.get(out) is out and made.get(out=out) is out
    assert (out == 1).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_get_fills_outputs_of_any_layout(device, order):
    host = np.arange(12.0).reshape(3, 4)
    made = gg.GPUArray(host, order=order, device=device)
    for out in (np.zeros((3, 4)), np.zeros((3, 4), order="F"), np.zeros((6, 8))[::2, ::2], np.zeros((4, 3)).T):
        assert (made.get(out) == host).all()


def test_set_takes_sources_of_any_layout(device):
    made = gg.empty((3, 4), device=device)
    host = np.arange(12.0).reshape(3, 4)
    for source in (host, np.asfortranarray(host), np.repeat(host, 2, axis=1)[:, ::2], gg.to_gpu(host, device)):
        made.fill(0)
        made.set(source)
        assert (made.get() == host).all()


def test_get_returns_an_array_that_owns_its_memory(device):
    fetched = gg.zeros(3, device=device).get()
    assert type(fetched) is np.ndarray and fetched.flags.owndata and fetched.flags.writeable


def test_item_fetches_one_element(device):
    made, host = gg.to_gpu(np.arange(6).reshape(2, 3), device), np.arange(6).reshape(2, 3)
    for index in [(0,), (5,), (-1,), (1, 2), (-2, -3), ((1, 0),)]:
        assert made.item(*index) == host.item(*index)
    assert type(made.item(0)) is int


def test_item_without_an_index_takes_the_only_element(device):
    assert gg.full((1, 1), 2.5, device=device).item() == 2.5
    with pytest.raises(ValueError, match="one element, this one has 2"):
        gg.zeros(2, device=device).item()


def test_item_follows_the_order_of_indices_not_of_memory(device):
    host = np.asfortranarray(np.arange(6).reshape(2, 3))
    made = gg.to_gpu(host, device)
    assert [made.item(i) for i in range(6)] == list(range(6))


@pytest.mark.parametrize("index", [(6,), (-7,), (2, 0), (0, 3)])
def test_item_checks_its_bounds(device, index):
    with pytest.raises(IndexError, match="out of bounds"):
        gg.zeros((2, 3), device=device).item(*index)


def test_item_checks_the_number_of_indices(device):
    with pytest.raises(ValueError, match="3 indices for 2 dimensions"):
        gg.zeros((2, 3), device=device).item(0, 0, 0)
    with pytest.raises(TypeError):
        gg.zeros((2, 3), device=device).item("a")


def test_tolist_is_that_of_numpy(device):
    host = np.arange(6).reshape(2, 3)
    assert gg.to_gpu(host, device).tolist() == host.tolist()


def test_fill_casts_as_an_assignment_does(device):
    made = gg.empty((2, 2), "i4", device=device)
    assert made.fill(3.7) is None
    assert made.tolist() == [[3, 3], [3, 3]]
    with pytest.raises(ValueError):
        made.fill("many")


def test_copy_returns_another_array(device):
    made = gg.to_gpu(np.asfortranarray(np.arange(6.0).reshape(2, 3)), device)
    other = made.copy()
    made.fill(0)
    assert other.ptr != made.ptr and other.strides == made.strides and other.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_with_a_stream_get_and_set_are_ordered_there_and_complete(device, stream, gate):
    made = gg.zeros(3, device=device)
    gg.synchronize(device)
    gate.hold(stream)
    gate.open_when(lambda: gate.reached)
    made.fill(1, stream=stream)
    assert made.get(stream=stream).tolist() == [1, 1, 1]
    made.set(np.full(3, 2.0), stream=stream)
    assert made.get(stream=stream).tolist() == [2, 2, 2]


# ---- unsupported ------------------------------------------------------------------------------------


def test_device_memory_cannot_be_read_as_host_memory(known_device, device):
    made = gg.zeros(3, device=device)
    if made.__dlpack_device__()[0] == 1:
        pytest.skip(f"the host can access the memory of {device}")
    with pytest.raises(TypeError, match=r"\.get\(\)"):
        np.asarray(made)
    with pytest.raises(BufferError, match="host"):
        memoryview(made)
    assert not hasattr(made, "__array_interface__")


COMPUTATIONS = [
    lambda a: np.ones(3) + a,
    lambda a: a + np.ones(3),
    lambda a: a * 2,
    lambda a: 2 / a,
    lambda a: a**2,
    lambda a: -a,
    lambda a: a @ a,
    lambda a: exec("a += 1", {"a": a}),
    lambda a: divmod(a, 2),
    lambda a: a < 1,
]


@pytest.mark.parametrize("compute", COMPUTATIONS)
def test_numpy_does_no_arithmetic_with_it(device, compute):
    with pytest.raises(TypeError, match="cupy.from_dlpack"):
        compute(gg.zeros(3, device=device))
    with pytest.raises(TypeError):
        np.sin(gg.zeros(3, device=device))


def test_comparing_raises(device):
    made = gg.zeros(3, device=device)
    for compare in ("__eq__", "__ne__", "__lt__", "__ge__"):
        with pytest.raises(TypeError, match="not compared"):
            getattr(made, compare)(made)


def test_it_has_no_hash(device):
    assert gg.GPUArray.__hash__ is None
    with pytest.raises(TypeError, match="unhashable"):
        hash(gg.zeros(3, device=device))


def test_its_truth_is_that_of_its_only_element(device):
    assert bool(gg.ones((), device=device)) and not bool(gg.zeros((1, 1), device=device))
    for size in (0, 2):
        with pytest.raises(ValueError, match="ambiguous"):
            bool(gg.zeros(size, device=device))


def test_only_a_0_d_array_converts_to_a_number(device):
    assert int(gg.full((), 7.5, device=device)) == 7 and float(gg.full((), 3, "i4", device=device)) == 3.0
    for many in (gg.zeros(1, device=device), gg.to_gpu(np.frombuffer(b"12", "u1"), device)):
        for convert in (int, float):
            with pytest.raises(TypeError, match="0-d"):
                convert(many)


def test_len_is_the_first_dimension(device):
    assert len(gg.empty((4, 2), device=device)) == 4
    with pytest.raises(TypeError, match="0-d"):
        len(gg.empty((), device=device))


MAKERS = {
    "GPUArray": lambda device: gg.zeros(3, device=device),
    "Buffer": lambda device: gg.alloc(3, device),
    "Stream": gg.Stream,
    "Event": gg.Event,
    "timer": lambda device: gg.Timer(device.default_stream),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_it_can_be_referenced_weakly(device, kind):
    made = MAKERS[kind](device)
    reference = weakref.ref(made)
    assert reference() is made
    del made
    gc.collect()
    assert reference() is None


def test_dropping_arrays_leaves_no_references(device):
    references = sys.getrefcount(np.dtype("f8"))
    for _ in range(100):
        gg.zeros(1 << 16, device=device)
    assert sys.getrefcount(np.dtype("f8")) <= references + 1


def test_a_0d_array_is_a_complex_number(device):
    assert complex(gg.full((), 1 + 2j, "c16", device=device)) == 1 + 2j and complex(gg.full((), 3, "i4", device=device)) == 3
    with pytest.raises(TypeError, match="only a 0-d GPUArray can be converted to a number"):
        complex(gg.zeros(1, device=device))


@pytest.mark.parametrize("setter", ["set", "set_async"])
def test_lists_are_set_with_the_arrays_dtype(device, setter):
    array = gg.zeros((2, 2), "f4", device=device)
    getattr(array, setter)([[1, 2], (3, 4)])
    device.synchronize()
    assert array.get().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="shapes differ"):
        array.set([1, 2])


@pytest.mark.parametrize("name", ["dtype\0", "dtype\0x", "\ud800", "dtyp\u00e9", "", "Dtype"])
def test_a_keyword_that_is_no_parameter_is_refused_by_name(name):
    with pytest.raises(TypeError, match="unexpected keyword argument") as caught:
        gg.empty(3, **{name: "float32"})
    assert name in str(caught.value)


def test_a_keyword_may_be_a_string_made_at_run_time():
    assert gg.empty(3, **{"".join(("dt", "ype")): "float32"}).dtype == np.float32
