"""astype on the device: kernels against NumPy bit for bit, on the host backend; and which conversions they are used for."""

import itertools
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from compilers import ARCH, needs_compiler, needs_nvrtc, only_once, own_cache  # noqa: F401

import gpuglue as gg
from gpuglue import _convert

DTYPES = [np.dtype(code) for code in "?bBhHiIqQefdgFD"]
PAIRS = [pair for pair in itertools.product(DTYPES, DTYPES) if pair[0] != pair[1] and _convert.recipe(*pair)]


def name(pair):
    return f"{pair[0].name} to {pair[1].name}"


def elements(dtype):
    bits = np.random.default_rng(5).integers(0, 256, 3000 * dtype.itemsize, np.uint8)
    rest = bits.astype(bool) if dtype.kind == "b" else bits.view(dtype)
    return np.concatenate([_convert.edges(dtype), rest])


def one_of_each(kind):
    """Pairs whose kernels differ in what `kind` returns."""
    return list({kind(source, target, *_convert.recipe(source, target)): (source, target) for source, target in PAIRS}.values())


BY_KIND = one_of_each(lambda source, target, read, written, value, each: (source.kind, source.itemsize > 4, target.kind, value, each))
BY_CODE = one_of_each(lambda source, target, read, written, value, each: (written == "f8", value, each))


@needs_compiler
@pytest.mark.parametrize("pair", BY_KIND, ids=name)
def test_the_device_converts_bit_for_bit_as_numpy(pair):
    host = elements(pair[0])
    made = _convert.astype(gg.to_gpu(host, device="host"), pair[1], "K")
    with np.errstate(invalid="ignore"):
        assert made.dtype == pair[1] and made.get().tobytes() == host.astype(pair[1]).tobytes()


@pytest.mark.parametrize("pair", PAIRS, ids=name)
def test_no_conversion_on_the_device_would_warn_in_numpy(pair):
    host = elements(pair[0])
    if host.dtype.kind in "fc":
        host = host[~np.isnan(host)]  # NumPy warns about signalling ones
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        host.astype(pair[1])


@pytest.mark.parametrize("source, target", ["df", "dq", "fi", "Dd", "Ff", "ef", "fe", "gd", "FB"])
def test_conversions_that_may_warn_or_that_devices_lack_are_left_to_numpy(source, target):
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
    monkeypatch.setattr(_convert, "text", lambda *pair: _convert.KERNEL % {"source": "int", "target": "float", "store": ";", "widen": ""})
    assert _convert.astype(gg.zeros(10, "i4", device=device), np.dtype("f4"), "K") is None
