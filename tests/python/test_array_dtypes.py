"""Every dtype of fixed size survives a round trip; others are refused with advice."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpuglue as gg

FULL = bool(os.environ.get("GPUGLUE_TEST_FULL"))
RANDOM = settings(max_examples=200 if FULL else 20, deadline=None, derandomize=not FULL, suppress_health_check=list(HealthCheck))

SIMPLE = "? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16 S1 S9 U1 U4 V5 M8[D] M8[ns] m8[s] >i4 >f8 >c8 >U3".split()
STRUCTURED = [
    np.dtype([("a", "i4"), ("b", "f8")]),
    np.dtype([("a", "i1"), ("b", "f8")], align=True),
    np.dtype([("name", "S3"), ("matrix", "f4", (2, 2)), ("inner", [("x", "u1"), ("y", "?")])]),
]
DTYPES = [np.dtype(name) for name in SIMPLE] + STRUCTURED


def bits(dtype, shape, order, seed=0):
    """An array of random bytes; if not every bit pattern is a value, of small values."""
    raw = np.random.default_rng(seed).integers(0, 255, int(np.prod(shape)) * dtype.itemsize, dtype="u1")
    if dtype.kind == "b":
        raw &= 1
    if dtype.kind == "U":
        return np.asarray(raw[: int(np.prod(shape))].astype(dtype).reshape(shape), order=order)
    return np.ndarray(shape, dtype, raw.tobytes(), order=order)


def content(array):
    """The bytes of the elements, without the padding between fields."""
    if array.dtype.names is None:
        return array.tobytes()
    return b"".join(content(array[name]) for name in array.dtype.names)


def order_of(array):
    return array.flags.c_contiguous, array.flags.f_contiguous


def same(one, other):
    return (one.dtype, one.shape, order_of(one)) == (other.dtype, other.shape, order_of(other)) and (
        content(one) == content(other)
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_dtype_survives_a_round_trip(device, dtype, order):
    host = bits(dtype, (3, 4), order)
    made = gg.to_gpu(host, device)
    assert made.dtype == dtype and made.itemsize == dtype.itemsize
    assert same(made.get(), host)


@RANDOM
@given(
    dtype=st.sampled_from(DTYPES),
    shape=st.lists(st.integers(0, 7), max_size=5).map(tuple),
    order=st.sampled_from("CF"),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_shape_survives_a_round_trip(device, dtype, shape, order, seed):
    host = bits(dtype, shape, order, seed)
    made = gg.to_gpu(host, device)
    assert same(made.get(), host) and made.nbytes == host.nbytes
    out = np.empty(shape, dtype)
    assert content(made.get(out)) == content(host)
    assert made.strides == host.strides or 0 in shape or 1 in shape  # there NumPy's are arbitrary
    other = gg.empty(shape, dtype, device=device)
    other.set(host)
    assert content(other.get()) == content(host)


@RANDOM
@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
    steps=st.lists(st.sampled_from([-2, -1, 1, 2, 3]), min_size=4, max_size=4),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_view_of_a_host_array_survives_a_round_trip(device, shape, steps, seed):
    whole = np.random.default_rng(seed).random(shape)
    view = whole.T[tuple(slice(None, None, step) for step in steps[: len(shape)])]
    made = gg.to_gpu(view, device)
    assert (made.get() == view).all()
    target = np.zeros_like(whole).T[tuple(slice(None, None, step) for step in steps[: len(shape)])]
    assert (made.get(target) == view).all()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "V"], ids=str)
def test_fill_repeats_an_element_of_any_dtype(device, dtype):
    value = bits(dtype, (1,), "C", 3)[0]
    expected = np.full((2, 3), value, dtype)
    made = gg.full((2, 3), value, dtype, device=device)
    assert made.get().tobytes() == expected.tobytes()


def test_fill_takes_structures_and_elements_of_any_length(device):
    pair = gg.full(3, (1, 2.5), STRUCTURED[0], device=device)
    assert pair.tolist() == [(1, 2.5)] * 3
    long = gg.full(3, b"x" * 70000, "S70001", device=device)  # more than one fill pattern can have
    assert long.tolist() == [b"x" * 70000] * 3


@pytest.mark.parametrize("dtype", ["S", "U"])
def test_strings_without_a_length_get_one_as_in_numpy(device, dtype):
    assert gg.zeros(3, dtype, device=device).dtype == np.zeros(3, dtype).dtype


@pytest.mark.parametrize("kind", ["S", "U", "V"])
def test_a_cast_to_strings_uses_the_length_they_need(device, kind):
    for host in (np.array(["abc", "defgh"]), np.array([b"a", b"bcd"]), np.arange(8, 12), np.zeros(0, "f4")):
        try:
            expected = host.astype(kind)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                gg.to_gpu(host, device).astype(kind)
            continue
        made = gg.to_gpu(host, device).astype(kind), gg.GPUArray(host, kind, device=device), gg.asarray(host, kind)
        assert all(same(one.get(), expected) for one in made)
    if kind != "V":
        words = np.asarray(["hello", "you"], kind)
        assert same(gg.asarray(["hello", "you"], kind, device=device).get(), words)


def test_strings_are_not_cast_to_strings_of_any_length(device):
    made = gg.to_gpu(np.array(["abc"]), device)
    assert made.astype("U", copy=False) is made and gg.asarray(made, str) is made


@pytest.mark.parametrize("dtype", ["S", "U", np.dtype([]), "S0"])
def test_a_view_as_a_type_without_a_size_is_refused(device, dtype):
    with pytest.raises(ValueError, match="size"):
        gg.zeros(3, device=device).view(dtype)


def test_the_default_is_float64(device):
    for made in (gg.GPUArray(3, device=device), gg.empty(3, device=device), gg.ones(3, None, device=device)):
        assert made.dtype == np.float64


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_dtypes_of_ml_dtypes_survive_a_round_trip(device, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    host = np.arange(6).astype(getattr(ml_dtypes, name)).reshape(2, 3)
    made = gg.to_gpu(host, device)
    assert made.dtype == host.dtype and (made.get() == host).all()
    assert (gg.ones_like(made).get() == np.ones_like(host)).all()


# ---- refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [object, [("a", "i4"), ("b", object)]])
def test_objects_are_refused_with_advice(device, dtype):
    with pytest.raises(TypeError, match="Python objects.*astype"):
        gg.empty(3, dtype, device=device)
    with pytest.raises(TypeError, match="Python objects.*astype"):
        gg.to_gpu(np.empty(3, dtype), device)


def test_variable_strings_are_refused_with_advice(device):
    if not hasattr(getattr(np, "dtypes", None), "StringDType"):
        pytest.skip("this NumPy has no variable-width strings")
    with pytest.raises(TypeError, match="no fixed size.*astype"):
        gg.to_gpu(np.array(["a", "bc"], np.dtypes.StringDType()), device)


def test_subarrays_are_refused_with_advice(device):
    with pytest.raises(TypeError, match="append its shape"):
        gg.empty(3, "(2,)f4", device=device)


def test_ragged_lists_are_refused(device):
    with pytest.raises((TypeError, ValueError)):
        gg.to_gpu([[1, 2], [3]], device)


def test_dtypes_that_do_not_exist_are_refused(device):
    with pytest.raises(TypeError, match="nonsense"):
        gg.empty(3, "nonsense", device=device)


RECORD = np.dtype([("x", "i4"), ("y", "i2", 3), ("z", "f8")])
PART = np.zeros(1, RECORD)[["x", "z"]].dtype  # without y, whose bytes are between x and z
WRITES = {
    "fill": lambda view, part: view.fill((7, 8.5)),
    "assign a value": lambda view, part: view.__setitem__(..., (7, 8.5)),
    "assign an element": lambda view, part: [view.__setitem__(i, (7, 8.5)) for i in range(len(view))],
    "assign host data": lambda view, part: view.__setitem__(..., part),
    "assign a slice": lambda view, part: [view.__setitem__(slice(i, None, 2), part[i::2]) for i in (0, 1)],
    "assign a device array": lambda view, part: view.__setitem__(..., gg.to_gpu(part, device=view.device)),
    "broadcast a device array": lambda view, part: view.__setitem__(..., gg.to_gpu(part[:1], device=view.device)),
    "set": lambda view, part: view.set(part),
    "copy from the device": lambda view, part: gg.copy(view, gg.to_gpu(part, device=view.device)),
    "copy on a stream": lambda view, part: gg.copy(view, part, stream=gg.Stream(view.device)),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_through_some_fields_does_not_change_the_others(device, write):
    records = np.array([(1, (2, 3, 4), 5)] * 6, RECORD)
    part = np.array([(7, (9, 9, 9), 8.5)] * 6, RECORD)[["x", "z"]]
    array = gg.to_gpu(records, device=device)
    WRITES[write](array.view(PART), part)
    device.synchronize()
    records["x"], records["z"] = 7, 8.5
    np.testing.assert_array_equal(array.get(), records)


def test_get_into_some_fields_does_not_change_the_others(device):
    records = np.array([(1, (2, 3, 4), 5)] * 6, RECORD)
    gg.full(6, (7, 8.5), PART, device=device).get(records[["x", "z"]])
    np.testing.assert_array_equal(records, np.array([(7, (2, 3, 4), 8.5)] * 6, RECORD))


def test_a_field_of_strings_without_a_length_reads_as_empty_strings(device):
    records = np.array([(b"", 1)] * 1000, [("a", "S0"), ("b", "i4")])
    assert (gg.to_gpu(records, device=device)["a"].get() == b"").all()
