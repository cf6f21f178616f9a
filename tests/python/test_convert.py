"""astype on the device: kernels against NumPy bit for bit, on the host backend; which conversions they are used for, and when NumPy
converts instead."""

import itertools
import os
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from compilers import ARCH, needs_compiler, needs_nvrtc, only_once, own_cache  # noqa: F401

import gpuglue as gg
from gpuglue import _convert

DTYPES = [np.dtype(code) for code in "?bBhHiIqQefdFD"]
PAIRS = [pair for pair in itertools.product(DTYPES, DTYPES) if pair[0] != pair[1]]
# The kernels are compiled for each pair of a device's; here, one of each form, or all with GPUGLUE_TEST_FULL.
FULL = os.environ.get("GPUGLUE_TEST_FULL") == "1"


def name(pair):
    return f"{pair[0].name} to {pair[1].name}"


def elements(dtype):
    bits = np.random.default_rng(5).integers(0, 256, 3000 * dtype.itemsize, np.uint8)
    rest = bits.astype(bool) if dtype.kind == "b" else bits.view(dtype)
    return np.concatenate([_convert.edges(dtype), rest])


def one_of_each(kind):
    """Pairs whose kernels differ in what `kind` returns."""
    return list({kind(*pair, _convert.recipe(*pair)): pair for pair in PAIRS}.values())


BY_KIND = PAIRS if FULL else one_of_each(
    lambda source, target, found: (source.kind, source.itemsize > 4, target.kind, found._replace(read="", written="", low="", high="")))
BY_CODE = one_of_each(lambda source, target, found: (found.written == "f8", found.value, found.low, found.writes))
CHECKED = [pair for pair in PAIRS if _convert.recipe(*pair).checked]


def converted(host, target, order="K"):
    return _convert.astype(gg.to_gpu(host, device="host"), np.dtype(target), order)


def by_numpy(host, target):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return host.astype(target)


@pytest.mark.parametrize("pair", PAIRS, ids=name)
def test_every_pair_of_numbers_has_a_kernel(pair):
    assert "gg_astype" in _convert.text(*pair, 0) and "gg_astype" in _convert.text(*pair, 1)


@needs_compiler
@pytest.mark.parametrize("pair", BY_KIND, ids=name)
def test_the_device_converts_bit_for_bit_as_numpy(pair):
    host = elements(pair[0])
    if _convert.recipe(*pair).checked:
        host = host[_convert.plain(host, pair[1])]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = converted(host, pair[1])
    assert made.dtype == pair[1] and made.get().tobytes() == by_numpy(host, pair[1]).tobytes()


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair not in CHECKED and not _convert.recipe(*pair).warns], ids=name)
def test_no_conversion_without_a_check_would_warn_in_numpy(pair):
    host = elements(pair[0])
    if host.dtype.kind in "fc":
        host = host[~np.isnan(host)]  # NumPy warns about signalling ones
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        host.astype(pair[1])


@pytest.mark.parametrize("pair", CHECKED, ids=name)
def test_elements_that_a_check_accepts_are_converted_without_an_invalid_value(pair):
    host = elements(pair[0])
    if pair[0].kind == "c" and np.__version__ < "2":
        host.imag = 0  # NumPy 1.24 also converts this part, in vectors, and reports what is invalid there
    with np.errstate(over="ignore", under="ignore", invalid="raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        host[_convert.plain(host, pair[1])].astype(pair[1])


BAD = {"too large": ("f8", 300.0, "i1"), "negative": ("f4", -1.0, "u4"), "NaN": ("f8", np.nan, "i8"), "infinite": ("f2", np.inf, "i4"),
       "beyond 2**63": ("f8", 2.0**63, "i8"), "beyond 2**64": ("f4", 2.0**64, "u8"), "complex": ("c8", 1e10, "i4"),
       "too large a float": ("f8", 1e300, "f4"), "too large for float16": ("f4", 65520.0, "f2"), "an integer": ("i4", 65520, "f2"),
       "complex numbers": ("c16", 1e300j, "c8")}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("case", BAD)
def test_one_element_about_which_numpy_may_warn_leaves_the_array_to_numpy(case):
    source, value, target = BAD[case]
    host = np.zeros(5000, source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert converted(host, target) is not None
        host[4321] = value
        assert converted(host, target) is None


@needs_compiler
@pytest.mark.parametrize("source, target, value, mode", [("f8", "f4", 1e300, "over"), ("f4", "f2", 1e5, "over"),
                                                         ("f8", "f4", 1e-310, "under"), ("f8", "f4", 1.1e-45, "under"), ("f4", "f2", 1e-6, "under")])
def test_overflow_and_underflow_are_left_to_numpy_if_it_would_report_them(source, target, value, mode):
    host = np.full(100, value, source)
    for action in ("ignore", "warn", "raise"):
        with np.errstate(**{mode: action}):
            made = converted(host, target)
        assert (made is not None) == (action == "ignore")
        if made is not None:
            assert made.get().tobytes() == by_numpy(host, target).tobytes()


@needs_compiler
@pytest.mark.parametrize("target", ["f4", "i4", "f2"])
def test_numpys_warning_about_imaginary_parts_comes_from_the_caller(target):
    host = np.arange(10).astype("c8")
    with pytest.warns(np.exceptions.ComplexWarning) as ours:
        made = converted(host, target)
    with pytest.warns(np.exceptions.ComplexWarning) as numpys:
        expected = host.astype(target)
    np.testing.assert_array_equal(made.get(), expected)
    assert [str(one.message) for one in ours] == [str(one.message) for one in numpys] and ours[0].filename == __file__


@pytest.mark.parametrize("source, target", [("g", "d"), ("d", "G"), ("i", "S8"), ("U3", "i"), ("i8", "M8[s]"), ("m8[s]", "i8")])
def test_conversions_that_devices_lack_are_left_to_numpy(source, target):
    assert _convert.recipe(np.dtype(source), np.dtype(target)) is None


@pytest.mark.parametrize("dtype", [">i4", "S4", "M8[s]", [("a", "i4")], ("i4", (2,))])
def test_other_dtypes_are_left_to_numpy(dtype):
    assert _convert.recipe(np.dtype(dtype), np.dtype("f8")) is None and _convert.recipe(np.dtype("i4"), np.dtype(dtype)) is None


VIEWS = {"whole": lambda x: x, "transposed": lambda x: x.T, "permuted": lambda x: x.transpose(1, 0, 2),
         "sliced": lambda x: x[::2, ::-1, 1::3], "one element": lambda x: x[1:2, 2:3, 3:4]}


@needs_compiler
@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("view", VIEWS)
def test_the_result_has_numpys_order_of_the_axes(view, order):
    host = np.arange(4 * 6 * 10, dtype=np.int32).reshape(4, 6, 10)
    made = _convert.astype(VIEWS[view](gg.to_gpu(host, device="host")), np.dtype("f8"), order)
    expected = VIEWS[view](host).astype("f8", order=order)
    np.testing.assert_array_equal(made.get(), expected)
    assert made.strides == expected.strides or expected.size == 1


@needs_nvrtc
@pytest.mark.parametrize("pair", BY_CODE, ids=name)
def test_nvidias_compiler_accepts_the_kernels(pair):
    assert gg.compile(_convert.text(*pair, 0), arch="sm_90").kernels.keys() == {"gg_astype"}


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize("pair", BY_CODE, ids=name)
def test_the_kernels_are_opencl_c(pair):
    done = subprocess.run(["clang", "-x", "cl", "-cl-std=CL2.0", "-Xclang", "-finclude-default-header", "-Wall", "-Werror",
                           "-Wno-unused-command-line-argument", "-fsyntax-only", "-target", "spir64", "-"],
                          input=_convert.text(*pair, 1), text=True, capture_output=True)
    assert not done.returncode, done.stderr


def test_large_arrays_are_converted_on_the_device_and_small_ones_are_not(device, monkeypatch):
    asked = []
    monkeypatch.setattr(_convert, "astype", lambda array, dtype, order: asked.append((array.size, dtype, order)))
    for size in (1000, 300_000):
        host = np.arange(size, dtype=np.int32)
        np.testing.assert_array_equal(gg.to_gpu(host, device).astype(np.float64, order="F").get(), host.astype(np.float64))
    assert asked == ([] if device.backend == "host" else [(300_000, np.dtype("f8"), "F")])


def test_a_kernel_that_computes_something_else_is_not_used(device, monkeypatch):
    """Drivers that are simulated run no compiled code, for instance."""
    monkeypatch.setattr(_convert, "_kernels", {})
    monkeypatch.setattr(_convert, "_launch", lambda kernel, array, result: result.fill(1))
    monkeypatch.setattr(_convert, "text", lambda *pair: _convert.KERNEL % {
        "source": "int", "target": "float", "store": ";", "functions": "", "each": 1, "parameter": "", "lanes": ""})
    assert _convert.astype(gg.zeros(10, "i4", device=device), np.dtype("f4"), "K") is None
