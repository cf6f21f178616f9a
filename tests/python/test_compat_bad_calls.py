"""gpuglue.compat: calls that a program gets wrong say what was given, what is expected and what to do."""

import numpy as np
import pytest
from kernels import needs_generated

from gpuglue.compat import PyGPU
from gpuglue.compat.pycuda import cumath, driver, gpuarray, tools
from gpuglue.compat.pycuda.elementwise import ElementwiseKernel
from gpuglue.compat.pycuda.reduction import ReductionKernel


pytestmark = pytest.mark.usefixtures("context")


@pytest.fixture
def compiles(device):
    needs_generated(device)


def floats(*shape):
    return gpuarray.zeros(shape, np.float32)


# ---- arrays of the host, and numbers


def test_map_does_not_end_early_at_a_number():
    with pytest.raises(TypeError, match="expected a GPUArray, got float: .*to_gpu"):
        list(map(cumath.sin, [0.1, 0.2]))


@pytest.mark.parametrize("call", [
    cumath.sin, cumath.frexp, gpuarray.sum, gpuarray.max, lambda h: gpuarray.dot(floats(3), h), lambda h: gpuarray.take(floats(3), h),
    lambda h: gpuarray.take(h, floats(3)), lambda h: gpuarray.maximum(floats(3), h), lambda h: gpuarray.where(h, floats(3), 0),
    lambda h: gpuarray.where(floats(3), h, 0), lambda h: gpuarray.subset_sum(h, floats(3)), lambda h: cumath.ldexp(floats(3), h),
    lambda h: floats(3) + h, lambda h: h + floats(3), lambda h: floats(3) < h])
def test_an_array_of_the_host_is_answered_with_the_way_to_the_device(call):
    with pytest.raises(TypeError, match="expected a GPUArray, got ndarray: .*to_gpu"):
        call(np.zeros(3, np.float32))


@pytest.mark.parametrize("call", [
    lambda: gpuarray.maximum(1, 2), lambda: gpuarray.sum(5), lambda: gpuarray.if_positive(1, 2, 3), lambda: cumath.modf(1),
    lambda: cumath.fmod(7, 2)])
def test_numbers_alone_are_no_operands(call):
    with pytest.raises(TypeError, match="expected a GPUArray, got int: .*to_gpu"):
        call()


def test_a_comparison_for_equality_with_an_array_of_the_host_is_false_as_in_pycuda():
    assert (floats(3) == np.zeros(3)) is False


def test_a_number_is_no_stream():
    with pytest.raises(TypeError, match=r"stream= is a driver\.Stream or None, got int"):
        driver.memcpy_htod_async(driver.mem_alloc(12), np.zeros(3, np.float32), 5)


def test_a_number_is_no_stream_of_a_kernel(compiles):
    with pytest.raises(TypeError, match=r"stream= is a driver\.Stream or None, got int"):
        ElementwiseKernel("float *x", "x[i] = 1")(floats(3), stream=5)


def test_a_copy_of_elements_with_gaps_names_what_makes_them_contiguous():
    with pytest.raises(ValueError, match=r"contiguous: copy it with np\.ascontiguousarray\(\)"):
        driver.memcpy_htod(driver.mem_alloc(12), np.zeros(9, np.float32)[::3])


# ---- copies between shapes


@pytest.mark.parametrize("method", ["set", "set_async"])
def test_an_array_is_set_from_one_of_another_shape_with_a_warning(method):
    array = floats(2, 3)
    with pytest.warns(UserWarning, match=r"ary has shape \(6,\), the array on the device \(2, 3\)"):
        getattr(array, method)(np.arange(6, dtype=np.float32))
    assert array.get().tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("method", ["get", "get_async"])
def test_an_array_is_read_into_one_of_another_shape_with_a_warning(method):
    host = np.zeros(6, np.float32)
    array = gpuarray.to_gpu(np.arange(6, dtype=np.float32).reshape(2, 3))
    with pytest.warns(DeprecationWarning, match=r"ary has shape \(6,\), the array on the device \(2, 3\)"):
        result = getattr(array, method)(ary=host)
    driver.Context.synchronize()
    assert host.tolist() == [0, 1, 2, 3, 4, 5] and result.shape == (2, 3)


@pytest.mark.filterwarnings("ignore:ary has shape")
def test_an_array_that_cannot_be_seen_in_the_other_shape_is_refused():
    with pytest.raises(ValueError, match="make it contiguous"):
        floats(2, 3).get(np.zeros((3, 2), np.float32, order="F"))


def test_an_array_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"ary has shape \(5,\)"):
        floats(2, 3).set(np.zeros(5, np.float32))


# ---- generated kernels


def test_range_and_slice_exclude_each_other(compiles):
    with pytest.raises(TypeError, match="give range= or slice=, not both"):
        ElementwiseKernel("float *x", "x[i] = 1")(floats(10), range=slice(0, 5), slice=slice(0, 5))


@pytest.mark.parametrize("range", [slice(2, 80), slice(-1, 5), slice(10, 12), slice(20, 0, -1)])
def test_a_range_beyond_the_array_is_refused(compiles, range):
    x = floats(10)
    with pytest.raises(ValueError, match="of an array with 10 elements would be accessed"):
        ElementwiseKernel("float *x", "x[i] = 1")(x, range=range)
    assert not x.get().any()


def test_an_array_smaller_than_the_first_is_refused(compiles):
    with pytest.raises(ValueError, match="element 399 of an array with 10 elements would be accessed"):
        ElementwiseKernel("float *x, float *y", "x[i]=y[i]")(floats(400), floats(10))


def test_a_reduction_of_arrays_of_different_sizes_is_refused(compiles):
    dot = ReductionKernel(np.float32, "0", "a+b", "x[i]*y[i]", "float *x, float *y")
    with pytest.raises(ValueError, match="element 399 of an array with 10 elements would be accessed"):
        dot(floats(400), floats(10))


def test_a_table_may_be_smaller_than_the_array(compiles):
    x = floats(400)
    ElementwiseKernel("float *x, float *table", "x[i] = table[i % 2]")(x, gpuarray.to_gpu(np.array([1, 2], np.float32)))
    assert x.get().tolist() == [1, 2] * 200


def test_a_condition_may_protect_a_smaller_array(compiles):
    x = floats(4)
    ElementwiseKernel("float *x, float *y", "if (i < 2) x[i] = y[i]")(x, gpuarray.to_gpu(np.array([1, 2], np.float32)))
    assert x.get().tolist() == [1, 2, 0, 0]


GUARDED = [
    ("#define FIRST(statement) if (i < 2) statement", "FIRST(x[i] = y[i])", []), ("#define HERE if (i < 2)", "HERE x[i] = y[i]", []),
    ("", "i < 2 and (x[i] = y[i])", []), ("", "HERE x[i] = y[i]", ["-DHERE=if(i<2)"]), ("", "HERE x[i] = y[i]", ["-D", "HERE=if(i<2)"]),
    ("", "long at = i & 1; { long i{at}; x[i] = y[i]; }", []), ("", "long at = i & 1; { long i(at); x[i] = y[i]; }", []),
    ("", "__typeof__(y[i]) one = 1; x[i] = one", []), ("", "decltype(+y[i]) one = 1; x[i] = one", []), ("", "const char *text = \"y[i]\"; x[i] = text[0] - 'x'", []),
    ("#if 1\n#define HERE if (i < 2)\n#endif", "HERE x[i] = y[i]", []),
    ("__device__ float at(const float *y, unsigned i) { return i < 2 ? y[i] : 0; }", "x[i] += at(y, i)", [])]


@pytest.mark.parametrize("preamble, operation, options", GUARDED)
def test_an_element_of_a_smaller_array_need_not_be_reached(device, compiles, preamble, operation, options):
    if device.backend == "ze":
        pytest.skip("the sources are C++")
    if device.backend == "cuda" and "__typeof__" in operation:
        pytest.skip("NVRTC has not this word of GCC's")
    x, y = floats(4), gpuarray.to_gpu(np.array([1, 1], np.float32))
    ElementwiseKernel("float *x, float *y", operation, preamble=preamble, options=options)(x, y)
    assert x.get()[:2].tolist() == [1, 1]


def test_a_reduction_may_protect_a_smaller_array_by_a_macro(compiles):
    total = ReductionKernel(np.float32, "0", "a+b", "x[i] + EACH(y[i])", "const float *x, const float *y",
                            preamble="#define EACH(value) (i < 2 ? (value) : 0)")
    assert total(gpuarray.to_gpu(np.ones(4, np.float32)), gpuarray.to_gpu(np.array([1, 1], np.float32))).get() == 6


def test_macros_and_functions_that_a_program_does_not_use_keep_the_check(compiles):
    with pytest.raises(ValueError, match="element 399 of an array with 10 elements would be accessed"):
        ElementwiseKernel("float *x, float *y", "x[i] = twice(y[i])",
                          preamble="#define LIMIT 3\n__device__ float twice(float a) { return 2 * a; }")(floats(400), floats(10))


def test_a_range_may_exceed_an_array_that_is_not_indexed_by_it(compiles):
    x = floats(2)
    ElementwiseKernel("float *x", "x[i / 4] = i")(x, range=slice(3, 8, 4))
    assert x.get().tolist() == [3, 7]


@pytest.mark.parametrize("declared, dtype", [("float *x", np.float64), ("const double *x", np.float32), ("int *x", np.int64),
                                             ("float *x", np.int64)])
def test_an_array_of_numbers_of_another_size_than_declared_is_refused(compiles, declared, dtype):
    with pytest.raises(TypeError, match=f"x is declared as .*, got an array of {np.dtype(dtype)}: convert it by astype"):
        ElementwiseKernel(f"{declared}, float *y", "y[i] = x[i]")(gpuarray.zeros(4, dtype), floats(4))


@pytest.mark.parametrize("declared, dtype", [("int *x", np.uint32), ("unsigned int *x", np.float32), ("unsigned char *x", np.float32),
                                             ("unsigned char *x", bool), ("float *x", np.complex64)])
def test_an_array_may_be_read_as_numbers_of_the_same_size_or_as_parts(compiles, declared, dtype):
    y = floats(4)
    ElementwiseKernel(f"{declared}, float *y", "y[i] = x[i]")(gpuarray.zeros(4, dtype), y)
    assert y.get().tolist() == [0] * 4


# ---- memory and handles


def test_memory_that_the_host_can_access_is_a_buffer(device):
    memory = driver.to_device(np.arange(16, dtype=np.uint8))
    if device.backend != "host":
        with pytest.raises(driver.LogicError, match="memcpy_dtoh"):
            memory.as_buffer(4, 8)
        return
    view = memory.as_buffer(4, 8)
    assert bytes(view) == bytes([8, 9, 10, 11])
    view[0] = 5
    assert driver.from_device(memory, 16, np.uint8)[8] == 5


@pytest.mark.parametrize("size, offset", [(17, 0), (1, 16), (-1, 4), (1, -1)])
def test_a_buffer_beyond_the_memory_is_refused(device, size, offset):
    if device.backend != "host":
        pytest.skip(f"the host cannot access the memory of {device.backend}")
    with pytest.raises(ValueError, match="are not in memory of 16"):
        driver.mem_alloc(16).as_buffer(size, offset)


def test_the_memory_of_a_page_locked_pool_has_a_length_in_bytes():
    assert len(tools.PageLockedMemoryPool().allocate(4, np.float32).base) == 16


def test_the_flags_of_arrays_have_their_names_with_and_without_a_prefix():
    flags = driver.array3d_flags
    assert flags.LAYERED == getattr(flags, "2DARRAY") == flags.ARRAY3D_LAYERED == flags.ARRAY3D_2DARRAY == 1


@pytest.mark.parametrize("function", [PyGPU.cudaEventSynchronize, PyGPU.cudaEventQuery, PyGPU.cudaEventRecord,
                                      lambda none: PyGPU.cudaEventElapsedTime(PyGPU.cudaEvent_t(), none)[1]])
def test_none_is_no_event(function):
    assert function(None) == 400
