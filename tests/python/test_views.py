"""Views of the same memory, whose uses they share; assignment, copies, joining, pickling."""

import copy
import gc
import pickle
import sys
import weakref

import numpy as np
import pytest
from conftest import run_python, succeeds

import gpuglue as gg


@pytest.fixture
def numbers(device):
    return gg.arange(24, device=device).reshape(2, 3, 4)


# ---- views --------------------------------------------------------------------------------------------------


def test_a_view_shares_memory_and_base(numbers):
    view = numbers[1:, ::2]
    assert view.ptr == numbers.ptr + 12 * 8 and view.base is numbers.base
    view.fill(7)
    assert numbers.get()[1, 0].tolist() == [7] * 4 and numbers.get()[1, 1].tolist() == [16, 17, 18, 19]


def test_the_base_of_a_view_of_a_view_is_the_first_array(device):
    array = gg.zeros((4, 4), device=device)
    assert array.base is None and array.flags.owndata
    view = array[1:].T[0].reshape(3, 1)
    assert view.base is array and not view.flags.owndata


def test_a_view_keeps_the_memory_of_a_deleted_array(device):
    array = gg.full(1000, 7, "u1", device=device)
    gone, view = weakref.ref(array), array[:10]
    assert view.base is array
    del array
    gc.collect()
    assert gone() is view.base and (view.get() == 7).all()


def test_an_element_is_a_0_d_array(numbers):
    element = numbers[1, 2, 3]
    assert isinstance(element, gg.GPUArray) and element.shape == () and element.item() == 23


def test_iteration_gives_views(numbers):
    parts = list(numbers)
    assert [part.shape for part in parts] == [(3, 4)] * 2 and parts[1].ptr == numbers[1].ptr
    with pytest.raises(TypeError, match="0-d"):
        iter(numbers[0, 0, 0])


def test_views_share_their_use_tracking(device, stream, gate):
    array = gg.zeros(2000, device=device)
    gg.synchronize(device)
    gate.hold(stream)
    array[:1000].fill(7, stream=stream)
    opener = gate.open_when(lambda: True)
    assert (array[500:1000].get() == 7).all()  # without a stream: waits for the work on another view
    opener.join()


@pytest.mark.parametrize("index", [[0, 1], np.array([0, 1]), True, np.True_, "a", 1.0, (0, [1])])
def test_an_index_that_needs_a_copy_is_refused(numbers, index):
    with pytest.raises(IndexError, match="integers, slices"):
        numbers[index]


@pytest.mark.parametrize("index", [np.int64(1), np.array(1), np.uint8(1)])
def test_numpy_integers_are_indices(numbers, index):
    assert numbers[index].tolist() == numbers[1].tolist()


@pytest.mark.parametrize("step", [2**60, -(2**60), 2**62, sys.maxsize, -sys.maxsize - 1])
def test_a_step_over_the_end_leaves_one_element(device, step):
    host = np.arange(5.0)
    array = gg.to_gpu(host, device)
    for one, like in ((array[::step], host[::step]), (array[2::step, None], host[2::step, None])):
        assert (one.shape, one.strides) == (like.shape, like.strides)
        assert one.get().tolist() == one.copy().tolist() == like.tolist()
        assert one.ravel("K").tolist() == one.T.ravel().tolist() == like.ravel().tolist()


def test_deleting_elements_is_refused(numbers):
    with pytest.raises(ValueError, match="delete"):
        del numbers[0]


def test_flags_have_numpys_names_and_values(numbers):
    host = numbers.get()
    for view, expected in ((numbers, host), (numbers.T, host.T), (numbers[:, 1:], host[:, 1:])):
        for name in ("c_contiguous", "f_contiguous", "contiguous", "forc", "fnc", "writeable"):
            assert getattr(view.flags, name) == getattr(expected.flags, name)
        for name in ("C_CONTIGUOUS", "F_CONTIGUOUS", "C", "F", "W", "WRITEABLE", "FORC", "FNC"):
            assert view.flags[name] == expected.flags[name]
    assert "C_CONTIGUOUS : True" in repr(numbers.flags)
    with pytest.raises(KeyError):
        numbers.flags["NOTHING"]


def test_reshape_copies_only_where_numpy_does(numbers):
    assert numbers.reshape(6, 4).ptr == numbers.ptr
    assert numbers.T.reshape(24).ptr != numbers.ptr
    assert numbers.reshape(24, copy=True).ptr != numbers.ptr
    with pytest.raises(ValueError, match="copy=False"):
        numbers.T.reshape(24, copy=False)


def test_arrays_may_have_more_dimensions_than_are_kept_inline(device):
    host = np.arange(64).reshape((2,) * 6)
    made = gg.to_gpu(host, device)
    assert made[..., 1, ::-1].tolist() == host[..., 1, ::-1].tolist() and made.T.shape == host.T.shape
    many = made[(None,) * 20]
    assert many.ndim == 26 and many.squeeze().tolist() == host.tolist()
    with pytest.raises(IndexError, match="dimensions"):
        made[(None,) * 64]


# ---- get, set and assignment ------------------------------------------------------------------------------------


def test_views_support_get_and_set(numbers, stream):
    expected = np.arange(24).reshape(2, 3, 4)
    view, other = numbers[:, ::-1, 1::2], expected[:, ::-1, 1::2]
    out = np.zeros((2, 3, 8), int)[:, :, ::4]
    assert view.get(out) is out and (out == other).all()
    view.set(other * 10)
    other *= 10
    assert (numbers.get() == expected).all()
    pinned = view.get_async(stream=stream)
    stream.synchronize()
    assert (pinned == other).all()
    view.set_async(np.ascontiguousarray(other + 1), stream=stream)
    stream.synchronize()
    other += 1
    assert (numbers.get() == expected).all()


def test_an_assignment_that_overlaps_goes_through_a_temporary(device):
    for to, source in ((np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[::-1], np.s_[:]), (np.s_[:], np.s_[::-1])):
        host = np.arange(1000)
        made = gg.to_gpu(host, device)
        made[to] = made[source]
        host[to] = host[source]
        assert (made.get() == host).all()


def test_assigning_an_array_to_itself_does_nothing(numbers):
    numbers[...] = numbers
    assert numbers.tolist() == np.arange(24).reshape(2, 3, 4).tolist()


def test_a_device_array_of_another_dtype_is_a_type_error_that_names_astype(numbers):
    with pytest.raises(TypeError, match="astype"):
        numbers[0] = gg.zeros((3, 4), "f4", device=numbers.device)


def test_host_values_are_cast_as_numpy_casts(device):
    made, host = gg.zeros((2, 3), "i2", device=device), np.zeros((2, 3), "i2")
    for value in (2.9, np.float32(-1.5), True, [1, 2, 3], np.array([[7.7], [8.8]]), np.arange(3, dtype="u1")):
        made[...] = value
        host[...] = value
        assert (made.get() == host).all()
    for value in ("text", 1 + 2j, [1, 2], None, object()):
        with pytest.raises((TypeError, ValueError)) as expected:
            host[...] = value
        with pytest.raises(expected.type):
            made[...] = value


@pytest.mark.parametrize("value", [[1, 2], [[1]], [], (), "x", b"1", "7", None, 1j, 2**70, 300])
def test_an_invalid_element_is_refused_as_in_numpy(device, value):
    for dtype in ("u1", "i4", "f8", "S2"):
        host = np.zeros((2, 3), dtype)
        array, errors = gg.to_gpu(host, device), []
        for target in (host, array):
            try:
                target[1, 2] = value
                errors.append(None)
            except Exception as error:
                errors.append(type(error))
        assert errors[0] is errors[1] and array.get().tobytes() == host.tobytes()


def test_records_are_assigned_as_tuples(device):
    made = gg.zeros(3, [("a", "i2"), ("b", "f8")], device=device)
    made[1] = (3, 2.5)
    made[2:] = np.array([(4, 1.5)], made.dtype)
    assert made.tolist() == [(0, 0.0), (3, 2.5), (4, 1.5)]


def test_small_floats_are_kept(device):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        host = np.arange(8).astype(getattr(ml_dtypes, name))
        made = gg.to_gpu(host, device)
        made[::2] = 3
        host[::2] = 3
        assert made.dtype == host.dtype and (made.get() == host).all() and made.astype("f4").tolist() == host.tolist()


# ---- copies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copying", [lambda a: a.copy(), copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_copies_have_their_own_memory(numbers, copying):
    for view in (numbers, numbers.T, numbers[:, ::2], numbers[0, 0, 0], numbers[:0]):
        made = copying(view)
        assert made.tolist() == view.tolist() and made.dtype == view.dtype and made.device is view.device
        assert not made.size or made.ptr != view.ptr
        assert made.flags.fnc == view.flags.fnc


def test_a_pickle_may_be_opened_without_the_device(numbers, tmp_path):
    path = tmp_path / "array"
    path.write_bytes(pickle.dumps(numbers))
    code = f"import pickle; a = pickle.load(open({str(path)!r}, 'rb')); print(a.shape, a.get().sum(), a.device.backend)"
    assert succeeds(run_python(code, GPUGLUE_BACKEND="host")).split()[:4] == ["(2,", "3,", "4)", "276"]


def test_a_pickle_may_have_an_array_of_any_layout(numbers):
    make, (host, device) = numbers.__reduce__()
    for view in (host, host.T, host[::-1], host[:, ::2]):
        assert make(view, device).tolist() == view.tolist()


def test_astype_converts_as_numpy_does(numbers):
    host = numbers.get()
    for dtype in ("f4", "i1", "c8", "S3", "?"):
        made = numbers.T.astype(dtype)
        assert made.dtype == dtype and (made.get() == host.T.astype(dtype)).all()
    assert numbers.astype("i8", copy=False) is numbers and numbers.astype("i8").ptr != numbers.ptr
    assert numbers.astype("i8", order="F", copy=False).flags.fnc


def test_a_void_dtype_without_a_size_gets_the_itemsize(numbers):
    assert numbers.view("V").dtype == np.zeros(1, numbers.dtype).view("V").dtype


@pytest.mark.parametrize("shape", [(0, 2**60), (2**60, 0), (2**31, 0, 2**31), (-1, 2**60)])
def test_an_empty_array_cannot_get_an_impossible_shape(device, shape):
    with pytest.raises(ValueError):
        np.zeros(0).reshape(shape)
    with pytest.raises(ValueError, match="cannot reshape"):
        gg.zeros(0, device=device).reshape(shape)


@pytest.mark.parametrize("make", [np.array, lambda sizes: np.array(sizes, "u1"), list])
def test_a_shape_is_any_sequence_of_ints(device, make):
    sizes = make([2, 3])
    flat = gg.arange(6, device=device)
    assert flat.reshape(sizes).shape == gg.zeros(sizes, device=device).shape == (2, 3)
    assert gg.empty(range(1, 3), device=device).shape == (1, 2) == np.empty(range(1, 3)).shape
    assert flat.reshape(2, 3).transpose(make([1, 0])).shape == (3, 2)
    with device:
        assert gg.asarray(flat.ptr, "i8", shape=sizes, strides=make([24, 8]), owner=flat).shape == (2, 3)
    assert gg.zeros(np.array(3), device=device).shape == (3,) and flat.reshape(np.array(6)).shape == (6,)


@pytest.mark.parametrize("index", [np.s_[:], np.s_[::2], np.s_[0], np.s_[..., 0], np.s_[:0]])
def test_flags_are_those_of_numpy(device, index):
    for order in "CF":
        host, made = np.zeros((3, 4), "f8", order), gg.zeros((3, 4), "f8", order, device)
        odd, odd_made = np.zeros(97, "u1")[1:].view("f8"), gg.zeros(97, "u1", device=device)[1:].view("f8")
        for one, other in ((host[index], made[index]), (host.T, made.T), (odd, odd_made)):
            assert other.flags.num == one.flags.num and other.flags.aligned == one.flags["A"]
            assert repr(one.flags).startswith(repr(other.flags))


RECORDS = [
    [("a", "i4"), ("b", "f8")],
    np.dtype([("a", "i1"), ("b", "f8")], align=True),
    [("c", "S3"), ("a", "f4", (2, 3)), ("b", [("x", "u1"), ("y", "?")])],
]


@pytest.mark.parametrize("dtype", RECORDS, ids=str)
@pytest.mark.parametrize("index", [np.s_[:], np.s_[::-2, 1], np.s_[0, 0], np.s_[:0]])
def test_a_field_is_a_view(device, dtype, index):
    host = np.frombuffer(np.arange(12 * np.dtype(dtype).itemsize, dtype="u1") % 2, dtype).reshape(4, 3)
    whole = gg.to_gpu(host, device)
    for name in ("a", "b"):
        made, expected = whole[index][name], np.asarray(host[index][name])
        assert (made.shape, made.dtype) == (expected.shape, expected.dtype) and made.base is whole
        assert made.get().tobytes() == np.ascontiguousarray(expected).tobytes()
        assert made.strides == host[index][name].strides or not made.size or not made.ndim


def test_a_field_is_assigned_and_the_others_stay(device):
    host = np.zeros((2, 3), [("a", "i4"), ("b", "f8")])
    made = gg.to_gpu(host, device)
    for array in (made, host):
        array["a"] = 7
        array["b"][1] = np.arange(3.0)
    assert (made.get() == host).all()


def test_unknown_fields_are_refused_as_in_numpy(device):
    made = gg.zeros(3, [("a", "i4")], device=device)
    with pytest.raises(ValueError, match="no field"):
        made["b"]
    with pytest.raises(IndexError):
        gg.zeros(3, device=device)["a"]
    with pytest.raises(IndexError):
        made[["a"]]


@pytest.mark.parametrize("axes", [(1.0, 0), ("a",), (True, False), ([0], 1)], ids=str)
def test_axes_that_are_not_integers_are_type_errors(numbers, axes):
    for array in (numbers, numbers.get()):
        with pytest.raises(TypeError):
            array.transpose(*axes)
        with pytest.raises(TypeError):
            array.squeeze(axes)
        with pytest.raises(TypeError):
            array.squeeze(axes[0])


def test_filling_a_view_does_not_change_the_rest(device):
    made, host = gg.zeros((6, 7), "i2", device=device), np.zeros((6, 7), "i2")
    for number, index in enumerate((np.s_[::2, ::3], np.s_[:, 1], np.s_[4], np.s_[::-1, ::-2], np.s_[:0]), 1):
        made[index].fill(number)
        host[index] = number
        assert (made.get() == host).all()


# ---- joining ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concatenate_is_that_of_numpy(numbers, axis):
    parts = [numbers, numbers[:, :, ::-1], numbers]
    expected = np.concatenate([part.get() for part in parts], axis)
    made = gg.concatenate(parts, axis)
    assert made.shape == expected.shape and (made.get() == expected).all()


def test_flattened_parts_are_joined_on_the_given_stream_only(device, stream, gate):
    host = np.arange(1, 1025, dtype="f4").reshape(32, 32)
    part, current = gg.to_gpu(host, device).T, gg.Stream(device, nonblocking=True)
    device.synchronize()
    gate.hold(current)
    with current:  # which is blocked until the end
        made = gg.concatenate([part, part], None, stream=stream)
    assert (made.get(stream=stream) == np.concatenate([host.T, host.T], None)).all()


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_stack_is_that_of_numpy(numbers, axis):
    parts = [numbers, numbers[::-1]]
    assert (gg.stack(parts, axis).get() == np.stack([part.get() for part in parts], axis)).all()


def test_arrays_that_cannot_be_joined_are_refused(numbers, device):
    flat = numbers.reshape(6, 4)
    with pytest.raises(ValueError, match="shapes"):
        gg.concatenate([flat, numbers[0].T])
    with pytest.raises(ValueError, match="same shape"):
        gg.stack([flat, flat[1:]])
    with pytest.raises(TypeError, match="astype"):
        gg.concatenate([flat, flat.astype("f4")])
    with pytest.raises(TypeError, match="asarray"):
        gg.stack([flat, np.zeros((6, 4))])
    with pytest.raises(ValueError, match="at least one"):
        gg.concatenate([])
    with pytest.raises(IndexError):
        gg.stack([flat], 5)
