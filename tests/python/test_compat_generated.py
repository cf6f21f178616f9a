"""gpuglue.compat.pycuda: kernels of one statement per element, reductions and scans, where there is a compiler."""

import numpy as np
import pytest
from kernels import needs_generated

from gpuglue.compat.pycuda import _generated, driver, gpuarray, tools
from gpuglue.compat.pycuda.elementwise import ElementwiseKernel
from gpuglue.compat.pycuda.reduction import ReductionKernel
from gpuglue.compat.pycuda.scan import ExclusiveScanKernel, InclusiveScanKernel


pytestmark = pytest.mark.usefixtures("context")


@pytest.fixture
def compiles(device):
    needs_generated(device)


@pytest.fixture
def compiles_cpp(device, compiles):
    if device.backend == "ze":
        pytest.skip("OpenCL C has neither complex numbers nor structs with constructors")


def test_a_statement_runs_for_each_element(compiles):
    combine = ElementwiseKernel("float a, float *x, float b, const double *y, float *z", "z[i] = a*x[i] + b*y[i]", "combine")
    x, y = np.arange(100_000, dtype=np.float32), np.arange(100_000.0)[::-1].copy()
    z = gpuarray.empty(100_000, np.float32)
    for a in (5, np.float64(2)):
        assert combine(a, gpuarray.to_gpu(x), 6, gpuarray.to_gpu(y), z, stream=driver.Stream()) is None
        driver.Context.synchronize()
        np.testing.assert_allclose(z.get(), a * x + 6 * y, rtol=1e-6)


def test_a_name_that_contains_complex_is_not_a_complex_number(compiles):
    out = gpuarray.zeros(3, np.float32)
    ElementwiseKernel("float complexity, float *out", "out[i] = complexity", "store")(2.5, out)
    assert out.get().tolist() == [2.5] * 3


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("value", [0.1, -3, True, 2**60 + 1, 1e300, -1e-46, float("inf"), float("nan"), np.float64(0.1), np.int8(-3)])
@pytest.mark.parametrize("kind, dtype", [("float", np.float32), ("double", np.float64)])
def test_a_number_becomes_that_of_its_declared_type(compiles, kind, dtype, value):
    out = gpuarray.zeros(1, dtype)
    ElementwiseKernel(f"{kind} a, {kind} *out", "out[i] = a", "store")(value, out)
    np.testing.assert_array_equal(out.get()[0], dtype(value))


def test_the_attributes_of_a_device_are_read_once_and_not_for_each_launch(device, monkeypatch):
    class Device:
        read = 0

        @property
        def attributes(self):
            self.read += 1
            return {"multiprocessors": 2}

    known = Device()
    monkeypatch.setattr(_generated.gpuglue, "current_device", lambda: known)
    assert [_generated.blocks_for(count) for count in (0, 1, _generated.BLOCK + 1, 10**9)] == [1, 1, 2, 32]
    assert known.read == 1


def test_complex_numbers_are_arguments_elements_and_results(compiles_cpp):
    a = (np.arange(1000) % 7 + 1j * (np.arange(1000) % 5)).astype(np.complex64)
    x, out = gpuarray.to_gpu(a), gpuarray.empty(1000, np.complex128)
    ElementwiseKernel("pycuda::complex<float> *x, pycuda::complex<float> by, pycuda::complex<double> *out",
                      "out[i] = conj(x[i]) * by + 2.0 * x[i].imag()")(x, 3 - 1j, out)
    np.testing.assert_array_equal(out.get(), a.conj() * (3 - 1j) + 2 * a.imag)
    vdot = ReductionKernel(np.complex64, "0", "a+b", "pycuda::conj(x[i]) * y[i]", "pycuda::complex<float> *x, pycuda::complex<float> *y")
    assert vdot(x, x).get() == np.vdot(a, a)
    InclusiveScanKernel(np.complex64, "a+b")(x)
    np.testing.assert_array_equal(x.get(), np.cumsum(a))


STRUCT = """
struct interval {
  float low, high;
  __device__ interval() {}
  __device__ interval(float low, float high) : low(low), high(high) {}
};
__device__ interval both(interval a, interval b) { return interval(fminf(a.low, b.low), fmaxf(a.high, b.high)); }
"""


def test_structs_with_a_registered_dtype_are_results_elements_and_arguments(compiles_cpp):
    interval = np.dtype([("low", np.float32), ("high", np.float32)])
    tools.register_dtype(interval, "interval")
    assert tools.dtype_to_ctype(interval) == "interval" and tools.get_or_register_dtype("interval") == interval
    x = np.random.default_rng(1).random(5000, np.float32)
    extent = ReductionKernel(interval, neutral="interval(1e9f, -1e9f)", reduce_expr="both(a, b)", map_expr="interval(x[i], x[i])",
                             arguments="float *x", preamble=STRUCT)(gpuarray.to_gpu(x)).get()
    assert extent["low"] == x.min() and extent["high"] == x.max()
    out = gpuarray.empty(3, interval)
    ElementwiseKernel("interval *out, interval by", "out[i] = interval(by.low + i, by.high)", preamble=STRUCT)(out, np.array((2, 9), interval)[()])
    np.testing.assert_array_equal(out.get(), np.array([(2, 9), (3, 9), (4, 9)], interval))


def test_a_name_of_a_type_stands_for_one_dtype():
    assert tools.get_or_register_dtype(["gg_pair", "gg_two"], "i4,i4") == tools.get_or_register_dtype("gg_two") == np.dtype("i4,i4")
    assert tools.dtype_to_ctype("i4,i4") == "gg_pair" and tools.dtype_to_ctype(gpuarray.vec.float3) == "float3"
    with pytest.raises(RuntimeError, match="another name"):
        tools.register_dtype(np.float32, "gg_pair")
    with pytest.raises(KeyError, match="unheard"):
        tools.get_or_register_dtype("unheard")
    with pytest.raises(ValueError, match="register_dtype"):
        tools.dtype_to_ctype("i4,i2")


def test_qualifiers_of_c_do_not_change_what_an_argument_is():
    given = "float *__restrict__ x, const float a, volatile int *y, double *const z, const unsigned int n"
    arguments = _generated.arguments_of(given)
    assert [one.is_vector for one in arguments] == [True, False, True, True, False]
    assert [one.name for one in arguments] == ["x", "a", "y", "z", "n"] and arguments[4].value(3).dtype == np.uint32


@pytest.mark.parametrize("part", [slice(None), slice(1, None, 3), slice(-1, None, -2), slice(5, 5), slice(2, 7)])
def test_a_slice_or_a_range_selects_elements(compiles, part):
    add = ElementwiseKernel("int *x", "x[i] += n")
    for form in ("slice", "range"):
        x = gpuarray.zeros(10, np.int32)
        add(x, **{form: part if form == "slice" else range(*part.indices(10))})
        expected = np.zeros(10, np.int32)
        expected[part] += 10
        np.testing.assert_array_equal(x.get(), expected)


def test_source_surrounds_the_loop(compiles):
    kernel = ElementwiseKernel(
        "int *x, unsigned long long count", "x[i] = twice(i) + base", preamble="__device__ int twice(int v) { return 2 * v; }",
        loop_prep="const int base = (int)count", after_loop="if (n == 3 && blockIdx.x == 0 && threadIdx.x == 0) x[0] = -1")
    x = gpuarray.empty((1, 3), np.int32)
    kernel(x, 10)
    assert x.get().tolist() == [[-1, 12, 14]]
    kernel(gpuarray.empty(0, np.int32), 10)  # no element, no launch


@pytest.mark.parametrize("size", [1, 255, 256, 257, 10_007])
def test_a_reduction_combines_all_elements(compiles, size):
    x = np.random.default_rng(1).integers(-100, 100, size).astype(np.int32)
    on_device = gpuarray.to_gpu(x)
    total = ReductionKernel(np.int64, "0", "a+b", "(long)x[i] * y[i]", "const int *x, const int *y")
    found = total(on_device, on_device)
    assert found.shape == () and found.dtype == np.int64 and found.get() == (x.astype(np.int64) ** 2).sum()
    least = ReductionKernel(np.int32, "2147483647", "a < b ? a : b")
    out = gpuarray.empty((), np.int32)
    assert least(on_device, out=out) is out and out.get() == x.min()
    assert least(on_device, slice=slice(0, None, 2)).get() == x[::2].min()
    assert total(on_device, on_device, range=range(0, 0)).get() == 0


def composed(pairs):
    """The scan of pairs (f, s), which stand for x -> f * x + s modulo 997 and do not commute."""
    found, state = [], (1, 0)
    for factor, summand in pairs:
        state = (state[0] * factor % 997, (state[1] * factor + summand) % 997)
        found.append(state)
    return found


def test_a_scan_combines_the_elements_in_their_order(compiles):
    compose = dict(dtype=np.int32, neutral="1 << 16",
                   scan_expr="((a >> 16) * (b >> 16) % 997) << 16 | ((a & 65535) * (b >> 16) + (b & 65535)) % 997")
    inclusive, exclusive = InclusiveScanKernel(**compose), ExclusiveScanKernel(**compose)
    for size in (1, 255, 256, 257, 4096, 4097, 20_000):
        pairs = np.random.default_rng(size).integers(1, 997, (size, 2))
        expected = [f << 16 | s for f, s in composed(pairs.tolist())]
        given = gpuarray.to_gpu((pairs[:, 0] << 16 | pairs[:, 1]).astype(np.int32))
        new = inclusive(given, output_ary="new", stream=driver.Stream())
        assert new is not given and new.get().tolist() == expected
        assert exclusive(given) is given  # in place
        assert given.get().tolist() == [1 << 16, *expected[:-1]]


def test_a_scan_writes_to_the_array_that_is_given_and_needs_no_neutral_element(compiles):
    greatest = InclusiveScanKernel(np.float32, "a > b ? a : b")
    x = np.random.default_rng(2).standard_normal(10_000).astype(np.float32)
    out = gpuarray.empty(10_000, np.float32)
    assert greatest(gpuarray.to_gpu(x), out) is out
    np.testing.assert_array_equal(out.get(), np.maximum.accumulate(x))


def test_scans_that_do_not_fit_are_refused_before_anything_is_compiled():
    with pytest.raises(ValueError, match="needs neutral=, its first result"):
        ExclusiveScanKernel(np.int32, "a+b")
    scan, x = InclusiveScanKernel(np.int32, "a+b"), gpuarray.zeros(4, np.int32)
    with pytest.raises(TypeError, match="a scan of int32 got an array of float64"):
        scan(gpuarray.zeros(4))
    for given in (x[::2], x.reshape(2, 2)):
        with pytest.raises(RuntimeError, match="contiguous arrays of one dimension"):
            scan(given)
    for out in (gpuarray.zeros(5, np.int32), gpuarray.zeros(4, np.int16), gpuarray.zeros(8, np.int32)[::2]):
        with pytest.raises(ValueError, match=r"\(4,\) of int32, as the input is; got"):
            scan(x, out)
    empty = gpuarray.zeros(0, np.int32)
    assert scan(empty) is empty  # no element, no launch


def test_arguments_are_those_of_c():
    names = [(one.name, one.is_vector) for one in _generated.arguments_of("const float *x, unsigned int n, float* y, my_t z")]
    assert names == [("x", True), ("n", False), ("y", True), ("z", False)]
    value = _generated.Argument("unsigned int n").value(7)
    assert (type(value), value) == (np.uint32, 7)
    with pytest.raises(driver.LogicError, match="as 'float \\*x', got 'x'"):
        ElementwiseKernel("x", "x[i] = 0")


def test_arguments_are_objects_too(compiles):
    given = [tools.VectorArg(np.float32, "x"), tools.ScalarArg(np.float32, "a")]
    x = gpuarray.ones(5, np.float32)
    ElementwiseKernel(given, "x[i] += a")(x, 2)
    assert ReductionKernel(np.float32, "0", "a+b", "x[i]*a", arguments=given)(x, 2).get() == 30


def test_an_argument_in_c_is_parsed_to_an_object():
    x, n = tools.parse_c_arg("const float * x"), tools.parse_c_arg("unsigned int n")
    assert (type(x), x.dtype, x.name, x.struct_char) == (tools.VectorArg, np.float32, "x", "P")
    assert (type(n), n.dtype, n.name, n.struct_char) == (tools.ScalarArg, np.uint32, "n", "I")
    assert (x.declarator(), n.declarator()) == ("float *x", "unsigned int n")
    with pytest.raises(ValueError, match="unknown type 'unheard_of' in .*register_dtype"):
        tools.parse_c_arg("unheard_of x")
    with pytest.raises(driver.LogicError, match="as 'float \\*x', got 'x'"):
        tools.parse_c_arg("x")


def test_calls_that_do_not_fit_are_refused_before_anything_is_compiled():
    kernel = ElementwiseKernel("float *x, float a", "x[i] = a")
    x = gpuarray.zeros((4, 4), np.float32)
    with pytest.raises(TypeError, match=r"expected 2 arguments \(x, a\), got 1"):
        kernel(x)
    with pytest.raises(RuntimeError, match="x: generated kernels take contiguous arrays"):
        kernel(x[:, ::2], 1)
    with pytest.raises(TypeError, match="expected an array"):
        ElementwiseKernel("float a", "a = 0")(1)
