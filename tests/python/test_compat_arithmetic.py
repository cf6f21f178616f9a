"""gpuglue.compat.pycuda: what computes. NumPy does on host; elsewhere CuPy, for which a stand-in is used here, or kernels."""

import gc
import operator
import sys
import time

import numpy as np
import pytest
import stand_in_compiler
import stand_in_cupy
from kernels import needs_compiler, needs_generated, runs_code

import gpuglue as gg
from gpuglue.compat.pycuda import _compute, compiler, cumath, driver, gpuarray, tools
from gpuglue.compat.pycuda.elementwise import ElementwiseKernel

TYPES = [np.int32, np.uint8, np.float32, np.float64, np.complex64]
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.eq, operator.ne]
ORDERED = [operator.floordiv, operator.mod, operator.lt, operator.le, operator.gt, operator.ge]
MATHEMATICS = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"} | {
    name: name for name in "fabs ceil floor exp log log10 sqrt sin cos tan sinh cosh tanh".split()}


@pytest.fixture(autouse=True)
def context(device, monkeypatch, request):
    monkeypatch.setitem(sys.modules, "cupy", stand_in_cupy.module(device.backend == "hip"))
    monkeypatch.setattr(_compute, "_libraries", {})
    monkeypatch.setattr(_compute, "_plans", {})
    monkeypatch.setattr(_compute, "KERNELS_FIRST", False)  # simulated drivers run no compiled code
    monkeypatch.setattr(stand_in_cupy.Stream, "used", [])
    driver.init()
    if _compute.library() is None and "nothing_installed" not in request.fixturenames:
        needs_generated(device)  # before there is a context, which a skipped test would leave current
    context = tools.make_default_context()
    yield context
    context.pop()
    gc.collect()


@pytest.fixture
def by_kernels(device, monkeypatch):
    needs_generated(device)
    monkeypatch.setattr(_compute, "library", lambda: None)


@pytest.fixture
def library(device):
    if _compute.library() is None:
        pytest.skip(f"no library computes on {device}")


@pytest.fixture
def complex_kernels(device, by_kernels):
    if device.backend == "ze":
        pytest.skip("OpenCL C has no complex numbers")


@pytest.fixture
def nothing_installed(monkeypatch):
    def compile(*args, **options):
        raise gg.UnsupportedError("compile: no compiler is installed")

    monkeypatch.setattr(_compute, "library", lambda: None)
    monkeypatch.setattr(gg, "compile", compile)


def some(dtype, shape=(3, 4)):
    return np.random.default_rng(3).integers(1, 9, shape).astype(dtype)


def same(found, expected):
    expected = np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found.get(), expected, rtol=2e-6, atol=1e-30)


@pytest.mark.parametrize("dtype", TYPES)
def test_operators_compute_as_numpy_does(device, dtype):
    if device.backend == "ze" and dtype is np.complex64:
        pytest.skip("OpenCL C has no complex numbers")
    a, b = some(dtype), some(dtype)[::-1].copy()
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    for function in BINARY + ([] if dtype is np.complex64 else ORDERED):
        same(function(x, y), function(a, b))
        same(function(x, 3), function(a, 3))
        same(function(dtype(3), x), function(dtype(3), a))
    same(x ** 2, a ** 2)
    same(2 ** x, 2 ** a)
    same(-x, -a)
    same(abs(x), abs(a))
    assert +x is x


def test_a_comparison_with_no_number_is_of_the_objects():
    x = gpuarray.zeros(3)
    assert x != None and not x == "zeros"  # noqa: E711


def test_operators_on_bits_compute_as_numpy_does():
    a = some(np.int32)
    x = gpuarray.to_gpu(a)
    for function in (operator.and_, operator.or_, operator.xor):
        same(function(x, 5), function(a, 5))
        same(function(5, x), function(5, a))


def test_operators_in_place_write_to_the_array():
    for name in "iadd isub imul itruediv ifloordiv imod ipow".split():
        a = some(np.float64)
        x = kept = gpuarray.to_gpu(a)
        x = getattr(operator, name)(x, 2)
        assert x is kept
        same(kept, getattr(operator, name)(a, 2))
    x = gpuarray.to_gpu(some(np.int32))
    with pytest.raises(TypeError, match="out= is .* of int32, and the result is .* of float64"):
        x /= 2
    x &= 1
    x |= 2
    x ^= 4
    same(x, (some(np.int32) & 1 | 2) ^ 4)


def test_views_orders_and_shapes_that_broadcast_are_operands(library):
    a = some(np.float64, (4, 6))
    x, f = gpuarray.to_gpu(a), gpuarray.to_gpu(np.asfortranarray(a))
    same(x[:, ::-2] + x[:, :3], a[:, ::-2] + a[:, :3])
    assert (f + f).flags.f_contiguous
    same(f * 2, a * 2)
    same(x + x[1], a + a[1])
    same(x - gpuarray.to_gpu(np.array(2.0)), a - 2)
    same(gpuarray.zeros((0, 3)) + 1, np.zeros((0, 3)))
    part = x[1:3, 2:]
    part += 10
    a[1:3, 2:] += 10
    same(x, a)


def test_other_operands_are_refused():
    x = gpuarray.zeros(3)
    for attempt in (lambda: x + np.arange(3), lambda: np.arange(3) + x, lambda: x + "1", lambda: [1, 2, 3] * x, lambda: hash(x)):
        with pytest.raises(TypeError):
            attempt()
    with pytest.raises(ValueError):
        x + gpuarray.zeros(4)


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_elements_are_combined_as_numpy_does(dtype):
    a, b, chosen = some(dtype), some(dtype)[::-1].copy(), np.array([3, 0, 11, 3])
    x, y, subset = gpuarray.to_gpu(a), gpuarray.to_gpu(b), gpuarray.to_gpu(chosen)
    same(gpuarray.sum(x), a.sum(dtype=dtype))
    same(gpuarray.sum(x, np.float64, driver.Stream()), a.sum(dtype=np.float64))
    same(gpuarray.dot(x, y), (a * b).sum(dtype=dtype))
    same(gpuarray.max(x), a.max())
    same(gpuarray.min(x), a.min())
    same(gpuarray.any(x - x), False)
    same(x.any(), True)
    same(gpuarray.all(x), True)
    same((x - x[0, 0]).all(), False)
    same(gpuarray.subset_sum(subset, x), a.ravel()[chosen].sum(dtype=dtype))
    same(gpuarray.subset_dot(subset, x, y), (a.ravel() * b.ravel())[chosen].sum(dtype=dtype))
    same(gpuarray.subset_max(subset, x), a.ravel()[chosen].max())
    same(gpuarray.subset_min(subset, x), a.ravel()[chosen].min())
    with pytest.raises(ValueError, match="max of no elements"):
        gpuarray.max(gpuarray.zeros(0, dtype))
    with pytest.raises(ValueError, match="12 and 3 elements"):
        gpuarray.dot(x, x[0, :3])


def test_elements_are_chosen_as_numpy_does():
    a, b = np.arange(-3.0, 3), np.arange(6.0) * 10
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    same(gpuarray.if_positive(x, x, y), np.where(a > 0, a, b))
    same(gpuarray.where(x, x, 7.0), np.where(a != 0, a, 7.0))
    same(gpuarray.take(y, gpuarray.to_gpu(np.array([[5, 0], [1, 1]]))), b[[[5, 0], [1, 1]]])
    same(gpuarray.maximum(x, 1), np.maximum(a, 1))
    out = gpuarray.empty(6, np.float64)
    assert gpuarray.minimum(x, y, out=out) is out
    same(out, np.minimum(a, b))
    assert gpuarray.where(x, y, x, out=out) is out and gpuarray.take(y, gpuarray.arange(6), out=out) is out
    same(out, b)
    same(gpuarray.logical_and(x, y), np.logical_and(a, b))
    same(gpuarray.logical_or(x, 0), np.logical_or(a, 0))
    same(gpuarray.logical_not(x), np.logical_not(a))
    same(gpuarray.logical_not(1), False)
    assert gpuarray.transpose(x.reshape(2, 3)).shape == (3, 2)


def test_functions_of_mathematics_compute_as_numpy_does():
    for dtype in (np.float32, np.float64):
        a = np.linspace(0.1, 0.9, 50).astype(dtype)
        x = gpuarray.to_gpu(a)
        for name, numpy in MATHEMATICS.items():
            same(getattr(cumath, name)(x), getattr(np, numpy)(a))
        same(cumath.fmod(x * 10, x + 1), np.fmod(a * 10, a + 1))
        for found, expected in zip(cumath.frexp(x * 10), np.frexp(a * 10)):
            same(found, expected.astype(dtype))
        for found, expected in zip(cumath.modf(x * 10), np.modf(a * 10)):
            same(found, expected)
        same(cumath.ldexp(x, gpuarray.to_gpu(np.full(50, 3, dtype))), np.ldexp(a, 3))
    out = gpuarray.empty(50, np.float64)
    assert cumath.sin(x, out=out, stream=driver.Stream()) is out and cumath.cos(x, out) is out
    same(out, np.cos(a))
    same(cumath.sqrt(gpuarray.arange(5), driver.Stream()), np.sqrt(np.arange(5)))


@pytest.mark.parametrize("by_library", [True, False])
def test_conversions_need_no_compiler(monkeypatch, request, by_library):
    if by_library:
        request.getfixturevalue("library")
    else:
        monkeypatch.setattr(_compute, "library", lambda: None)
    c = (np.arange(6) + 1j * np.arange(6)[::-1]).reshape(2, 3)
    x = gpuarray.to_gpu(np.asfortranarray(c))
    same(x.real, c.real)
    same(x.imag, c.imag)
    same(x.real.astype(np.int16, driver.Stream()), c.real.astype(np.int16))
    same(gpuarray.arange(4).reverse(), np.arange(4)[::-1])
    real = gpuarray.arange(3)
    assert real.real is real and real.conj() is real
    same(real.imag, np.zeros(3, int))
    with pytest.raises(ValueError, match="one dimension"):
        x.reverse()
    if by_library:
        same(x.conj(), c.conj())
        same(x.conjugate(), c.conj())


def test_a_sum_of_multiples_is_one_call():
    a = some(np.float32)
    x, out = gpuarray.to_gpu(a), gpuarray.empty((3, 4), np.float32)
    same(x.mul_add(2, x, -1), a)
    assert x.mul_add(1, x, 1, stream=driver.Stream(), out=out) is out
    same(out, 2 * a)


# ---- order


def test_the_library_computes_after_pending_work_and_before_later_work(gate, device):
    """On another stream than the current one, which the memory is used on."""
    stream = gg.Stream(device, nonblocking=True)
    x = gpuarray.zeros(1000)
    driver.Context.synchronize()
    gate.hold(stream)
    buffer, _ = _compute._place(x)
    gg.asarray(buffer).view(np.float64).fill(2, stream=stream)
    gate.open_when(lambda: True)
    y = x + 1
    assert y.get().tolist() == [3] * 1000
    stream.close()


@pytest.mark.parametrize("explicit", [False, True])
def test_later_work_waits_for_what_cupy_has_queued(gate, device, monkeypatch, explicit):
    if not isinstance(_compute.library(), _compute.CuPy):
        pytest.skip(f"NumPy computes on {device}, before a call returns")
    stream, x, named = gg.Stream(device, nonblocking=True), gpuarray.zeros(10), driver.Stream()
    driver.Context.synchronize()
    named._stream = stream  # PyCUDA's own streams are ordered with the default stream
    monkeypatch.setattr(stand_in_cupy.Stream, "after", gate.hold)
    if explicit:
        with _compute.library().views([x], named):
            gate.hold(stream)  # work that gpuglue does not submit, unlike the stand-in's
        expected = 0
    else:
        with stream:
            x += 1
        expected = 1
    assert stand_in_cupy.Stream.used[-1] == stream.handle
    monkeypatch.setattr(stand_in_cupy.Stream, "after", None)
    copied, done = x.copy(), driver.Event().record()
    time.sleep(0.1)  # a copy that does not wait is done by then
    assert not done.query()
    gate.open()
    assert copied.get().tolist() == [expected] * 10
    stream.close()


def test_the_stream_of_a_call_is_the_librarys(device):
    if not isinstance(_compute.library(), _compute.CuPy):
        pytest.skip(f"NumPy computes on {device}, which has no streams")
    stream, x = driver.Stream(), gpuarray.ones(10)
    for module in (stand_in_cupy.module(device.backend == "hip", old) for old in (False, True)):
        _compute._libraries[gg.current_device()] = _compute.CuPy(module)
        gpuarray.sum(x, stream=stream)
        assert stand_in_cupy.Stream.used[-1] == stream._stream.handle
        x + x
        assert stand_in_cupy.Stream.used[-1] == gg.current_stream().handle


def test_a_library_computes_what_kernels_do_not(device, monkeypatch):
    if not isinstance(_compute.library(), _compute.CuPy):
        pytest.skip(f"NumPy computes on {device}")
    x, y, half = gpuarray.ones(10, np.float32), gpuarray.ones((2, 5), np.float32), gpuarray.ones(10, np.float16)
    at = gpuarray.zeros(10, np.int32)
    by_kernels = [lambda: x + x, lambda: x * 2, lambda: gpuarray.sum(x), lambda: gpuarray.where(x, x, 1.0), lambda: gpuarray.take(x, at)]
    by_library = [lambda: x + x[::-1], lambda: y + y[0], lambda: gpuarray.sum(y[:, ::2]), lambda: half + half,
                  lambda: gpuarray.sum(half), lambda: gpuarray.take(x[::2], at)]
    monkeypatch.setattr(_compute, "KERNELS_FIRST", True)
    if device.backend == "cuda" and not runs_code(device):
        monkeypatch.setattr(compiler, "compile", stand_in_compiler.compile)
    else:
        needs_compiler(device)
    for computes in by_kernels + by_library:
        stand_in_cupy.Stream.used.clear()
        computes()
        assert bool(stand_in_cupy.Stream.used) == (computes in by_library)


def test_a_library_computes_where_there_is_no_compiler(device, monkeypatch):
    if not isinstance(_compute.library(), _compute.CuPy):
        pytest.skip(f"NumPy computes on {device}")

    def compile(*args, **options):
        raise gg.UnsupportedError("compile: no compiler is installed")

    monkeypatch.setattr(_compute, "KERNELS_FIRST", True)
    monkeypatch.setattr(gg, "compile", compile)
    same(gpuarray.zeros(3, np.int16) + gpuarray.ones(3, np.int16), np.ones(3, np.int16))


@pytest.mark.parametrize("by_type", [True, False])
def test_numbers_of_one_type_share_what_computes_but_not_their_results(device, monkeypatch, by_type):
    """NumPy decides by the type of a number, or before NumPy 2 also by its value."""
    monkeypatch.setattr(_compute, "_BY_TYPE", by_type and _compute._BY_TYPE)
    x = gpuarray.to_gpu(np.array([100], np.int8))
    for number in (1, 27, np.int8(1), np.int16(1), np.float32(0.5), True, 1.0, np.array(2), np.array(2.0, np.float32),
                   *[1j] * (device.backend != "ze")):  # OpenCL C has no complex numbers
        for _ in range(2):
            same(x + number, np.array([100], np.int8) + (number[()] if isinstance(number, np.ndarray) else number))
            same(gpuarray.maximum(x, number), np.maximum(np.array([100], np.int8), number))
    if np.__version__ >= "2":
        for _ in range(2):
            with pytest.raises(OverflowError):
                x + 300


def test_types_of_numpy_that_are_equal_stay_what_they_are():
    for dtype in ("l", "q"):  # both of 8 bytes
        assert gpuarray.zeros(3, dtype).dtype.char == dtype


# ---- without a library


def test_a_cupy_of_another_vendor_is_not_used(device, monkeypatch):
    if device.backend not in ("cuda", "hip"):
        pytest.skip("for backends that CuPy is built for")
    monkeypatch.setitem(sys.modules, "cupy", stand_in_cupy.module(device.backend == "cuda"))
    assert _compute._choose(device) is None
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert _compute._choose(device) is None


def test_kernels_compute_where_there_is_no_library(by_kernels):
    a, b = np.arange(-8.0, 8), np.where(np.arange(16) % 5, np.arange(16) - 7.5, 0)
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    with np.errstate(all="ignore"):
        same(x // y, a // b)
        same(x <= y, a <= b)
        same(gpuarray.if_positive(x, y, 1.5), np.where(a > 0, b, 1.5))
        i, j = (one.astype(np.int32) for one in (a, b))
        m, n = gpuarray.to_gpu(i), gpuarray.to_gpu(j)
        same(m // n, i // j)
        same(m ** 3, i ** 3)
    m += 1
    same(m, i + 1)
    for found, expected in zip(cumath.frexp(x), np.frexp(a)):
        same(found, expected.astype(np.float64))
    same(gpuarray.take(x, gpuarray.to_gpu(np.array([3, 1]))), a[[3, 1]])


def test_kernels_combine_where_there_is_no_library(by_kernels):
    a, chosen = np.random.default_rng(1).standard_normal(1000), np.array([5, 7, 9])
    x, subset = gpuarray.to_gpu(a), gpuarray.to_gpu(chosen)
    np.testing.assert_allclose(gpuarray.subset_dot(subset, x, x).get(), (a * a)[chosen].sum(), rtol=1e-9)
    assert gpuarray.max(x).get() == a.max()
    assert gpuarray.max(gpuarray.to_gpu(np.full(3, -np.inf))).get() == -np.inf
    assert gpuarray.min(x.astype(np.int64)).get() == a.astype(np.int64).min()
    assert x.any()


def some_complex(dtype, count=60):
    parts = np.random.default_rng(5).standard_normal((2, count)) * np.logspace(-3, 1, count)
    return (parts[0] + 1j * parts[1]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_kernels_compute_with_complex_numbers_as_numpy_does(complex_kernels, dtype):
    a, b, bound = some_complex(dtype), some_complex(dtype)[::-1].copy(), 1e-5 if dtype is np.complex64 else 1e-13
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)

    def near(found, expected):
        expected = np.asarray(expected)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found.get(), expected, rtol=bound)

    for function in BINARY[:4]:
        near(function(x, y), function(a, b))
    near((2 - 3j) * x, (2 - 3j) * a)
    near(x / a.real.dtype.type(4), a / a.real.dtype.type(4))
    near(x ** y, a ** b)
    near(x ** 3, a ** 3)
    near(-x, -a)
    near(abs(x), abs(a))
    near(x.conj(), a.conj())
    near(x.real, a.real)
    near(x.imag, a.imag)
    x += gpuarray.to_gpu(a.real.copy())
    near(x, a + a.real)


def test_kernels_compare_complex_numbers_as_numpy_does(complex_kernels):
    values = [complex(re, im) for re in (0, 1, np.nan) for im in (0, -1, np.nan)]
    a, b = (np.array(one, np.complex64).ravel() for one in np.meshgrid(values, values))
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    for function in (operator.eq, operator.ne, operator.lt, operator.ge):
        with np.errstate(invalid="ignore"):
            expected = function(a, b)
        same(function(x, y), expected)
    same(gpuarray.logical_and(x, y), np.logical_and(a, b))
    for name in ("maximum", "minimum"):
        np.testing.assert_array_equal(getattr(gpuarray, name)(x, y).get(), getattr(np, name)(a, b))


OF_COMPLEX = [name for name in MATHEMATICS if name not in ("fabs", "ceil", "floor")]


@pytest.mark.parametrize("dtype, bound", [(np.complex64, 2e-6), (np.complex128, 5e-15)])
def test_kernels_have_the_functions_of_complex_numbers(complex_kernels, monkeypatch, dtype, bound):
    """All in one kernel: a program's, which includes the header that PyCUDA's programs include."""
    a = some_complex(dtype)
    kind = tools.dtype_to_ctype(dtype)
    kernel = ElementwiseKernel(f"{kind} *x, {kind} *out", " ".join(f"out[{at} * n + i] = pycuda::{name}(x[i]);" for at, name in enumerate(OF_COMPLEX)),
                               preamble="#include <pycuda-complex.hpp>")
    out = gpuarray.empty((len(OF_COMPLEX), a.size), dtype)
    kernel(gpuarray.to_gpu(a), out)
    for name, found in zip(OF_COMPLEX, out.get()):
        expected = getattr(np, MATHEMATICS[name])(a)
        np.testing.assert_array_less(abs(found - expected), bound * abs(expected), err_msg=name)
    same(cumath.exp(gpuarray.to_gpu(a)), np.exp(a))
    with pytest.raises(TypeError):
        cumath.ceil(gpuarray.to_gpu(a))


def test_kernels_combine_complex_numbers(complex_kernels):
    a, b = some_complex(np.complex64, 1000), some_complex(np.complex64, 1000)[::-1].copy()
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    found = gpuarray.dot(x, y)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found.get(), (a * b).sum(), rtol=1e-4)
    np.testing.assert_allclose(gpuarray.sum(x, np.complex128).get(), a.sum(dtype=np.complex128), rtol=1e-9)
    assert gpuarray.max(x).get() == a.max()
    assert x.any() and not gpuarray.any(gpuarray.zeros(3, np.complex64))


def test_what_kernels_do_not_compute_names_what_to_install(device, nothing_installed):
    x, way = gpuarray.zeros((2, 2), np.float32), "use torch or dpnp, which take" if device.backend == "ze" else "install CuPy"
    for error, match, compute in [
            (TypeError, f"not with float16: {way}", lambda: gpuarray.sum(x.astype(np.float16))),
            (NotImplementedError, f"operands of the shapes .*: {way}", lambda: x + x[0]),
            (RuntimeError, f"in one order of their elements only: copy one of them, or {way}", lambda: x + x.T)]:
        with pytest.raises(error, match=match):
            compute()


def test_without_a_library_and_a_compiler_the_error_names_what_to_install(device, nothing_installed):
    way = "use torch or dpnp," if device.backend == "ze" else "install CuPy"
    with pytest.raises(driver.LogicError, match=f"nothing computes on .*: {way} .* need a compiler: compile: no compiler is"):
        gpuarray.zeros(3, np.int16) + gpuarray.zeros(3, np.int16)


def test_opencl_c_has_no_complex_numbers_and_the_error_names_the_way_out(device, by_kernels):
    if device.backend != "ze":
        pytest.skip(f"{device} compiles CUDA C++")
    with pytest.raises(TypeError, match="integers, float and double, not with complex64: use torch or dpnp"):
        gpuarray.zeros(3, np.complex64) + 1
    with pytest.raises(driver.LogicError, match="OpenCL C.* has no complex numbers: copy with"):
        ElementwiseKernel("pycuda::complex<float> *x", "x[i] = 1")(gpuarray.zeros(3, np.complex64))


def test_numbers_of_type_bool_are_operands(by_kernels):
    a = np.array([False, True])
    x = gpuarray.to_gpu(a)
    for function in (operator.and_, operator.or_, operator.xor, operator.add, operator.eq):
        for number in (False, True):
            same(function(x, number), function(a, number))
