"""gpuglue.compat.pycuda: the names of PyCUDA's documentation, one by one."""

import gc
import threading

import numpy as np
import pytest
from kernels import needs_compiler, path_for, runs_code

import gpuglue as gg
import gpuglue.compat
from gpuglue.compat.pycuda import driver as cuda
from gpuglue.compat.pycuda import gpuarray, tools
from gpuglue.compat.pycuda.compiler import SourceModule


pytestmark = pytest.mark.usefixtures("context")


@pytest.fixture
def source(device, tmp_path, monkeypatch):
    """SourceModule, if code runs and a compiler is available."""
    if not runs_code(device):
        pytest.skip(f"{device} runs no compiled code")
    monkeypatch.setenv("GPUGLUE_CACHE_DIR", str(tmp_path))
    needs_compiler(device)
    return SourceModule


# ---- devices and contexts


def test_devices_have_attributes(known_device, device):
    assert cuda.Device.count() >= 1
    mine = cuda.Device(0)
    assert mine.name() == device.name and mine.total_memory() == device.total_memory
    assert isinstance(mine.get_attributes(), dict)
    number = cuda.device_attribute.MAX_THREADS_PER_BLOCK
    assert mine.get_attribute(number) == mine.max_threads_per_block >= 32
    assert mine == cuda.Device(0) and hash(mine) == hash(cuda.Device(0))
    assert len(mine.compute_capability()) == 2
    assert isinstance(cuda.get_version(), tuple)
    with pytest.raises(AttributeError):
        mine.nonsense


def test_the_version_of_a_driver_that_is_not_of_cuda_is_that_of_the_interface(device):
    version = cuda.get_driver_version()  # by which programs skip what newer versions have removed
    assert version >= 11000 and (device.backend == "cuda" or version == cuda.Context.get_api_version())


def test_contexts_are_a_stack_of_each_thread(context):
    assert cuda.Context.get_current() is context
    inner = cuda.Device(0).make_context()
    assert cuda.Context.get_current() is inner
    cuda.Context.pop()
    assert cuda.Context.get_current() is context
    cuda.Context.synchronize()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(cuda.Context.get_current()))
    thread.start()
    thread.join()
    assert seen == [None]
    assert isinstance(cuda.Context.get_device(), cuda.Device)


def test_a_pop_of_an_empty_stack_is_an_error_and_the_stack_stays_usable():
    cuda.Context.pop()
    with pytest.raises(cuda.LogicError, match="empty"):
        cuda.Context.pop()
    tools.make_default_context()


# ---- memory


def test_allocations_are_addresses_and_are_freed_once():
    allocation = cuda.mem_alloc(1024)
    assert int(allocation) == allocation.__index__() > 0 and bool(allocation)
    allocation.free()
    with pytest.raises(cuda.LogicError, match="freed"):
        allocation.free()
    with pytest.raises(cuda.LogicError, match="freed"):
        int(allocation)


def test_out_of_memory_is_both_exceptions():
    with pytest.raises(MemoryError) as caught:
        cuda.mem_alloc(1 << 62)
    assert isinstance(caught.value, cuda.MemoryError) and isinstance(caught.value, cuda.Error)


def test_copies_survive_a_round_trip():
    a = np.random.default_rng(1).random(1000).astype(np.float32)
    allocation = cuda.to_device(a)
    np.testing.assert_array_equal(cuda.from_device(allocation, a.shape, a.dtype), a)
    np.testing.assert_array_equal(cuda.from_device_like(allocation, a), a)
    other = cuda.mem_alloc_like(a)
    cuda.memcpy_dtod(other, allocation, a.nbytes)
    cuda.memcpy_htod(allocation, np.zeros_like(a))
    got = np.empty_like(a)
    cuda.memcpy_dtoh(got, other)
    np.testing.assert_array_equal(got, a)


def test_addresses_inside_an_allocation_are_accepted():
    a = np.arange(100, dtype=np.int32)
    allocation = cuda.to_device(a)
    part = np.empty(10, np.int32)
    cuda.memcpy_dtoh(part, int(allocation) + 40)
    np.testing.assert_array_equal(part, a[10:20])
    cuda.memcpy_htod(int(allocation) + 396, np.array([7], np.int32))
    assert cuda.from_device(allocation, 100, np.int32)[99] == 7


def test_asynchronous_copies_are_in_the_streams_order():
    stream = cuda.Stream()
    a = cuda.pagelocked_empty(500, np.float64)
    a[:] = np.arange(500)
    got = cuda.pagelocked_zeros_like(a)
    allocation, other = cuda.mem_alloc(a.nbytes), cuda.mem_alloc(a.nbytes)
    cuda.memcpy_htod_async(allocation, a, stream)
    cuda.memcpy_dtod_async(other, allocation, a.nbytes, stream)
    cuda.memcpy_dtoh_async(got, other, stream)
    stream.synchronize()
    assert stream.is_done()
    np.testing.assert_array_equal(got, a)


def test_memory_is_filled():
    allocation = cuda.mem_alloc(64)
    for fill, dtype, value in ((cuda.memset_d8, np.uint8, 0xab), (cuda.memset_d16, np.uint16, 0xabcd),
                               (cuda.memset_d32, np.uint32, 0xdeadbeef)):
        count = 64 // np.dtype(dtype).itemsize
        fill(allocation, value, count)
        np.testing.assert_array_equal(cuda.from_device(allocation, count, dtype), np.full(count, value, dtype))
    stream = cuda.Stream()
    cuda.memset_d32_async(int(allocation) + 4, 5, 1, stream)
    stream.synchronize()
    assert cuda.from_device(allocation, 16, np.uint32)[:3].tolist() == [0xdeadbeef, 5, 0xdeadbeef]


def test_memory_get_info_returns_free_and_total_memory(device):
    try:
        device.memory_info()
    except gg.UnsupportedError as error:
        pytest.skip(str(error))
    free, total = cuda.mem_get_info()
    assert 0 < free <= total


# ---- streams and events


def test_events_measure_time_and_order_work():
    stream, start, stop = cuda.Stream(), cuda.Event(), cuda.Event()
    start.record(stream)
    stop.record(stream)
    stop.synchronize()
    assert stop.query() and stop.time_since(start) >= 0 and start.time_till(stop) == stop.time_since(start)
    cuda.Stream().wait_for_event(stop)
    assert isinstance(stream.handle, int)


def test_errors_have_the_drivers_message(known_device):
    with pytest.raises(cuda.LogicError) as caught:
        cuda.module_from_buffer(b"no image at all")
    assert "the format of the image is unknown" in str(caught.value) and hasattr(caught.value, "code")


# ---- modules


def test_modules_are_loaded_from_files_and_buffers(device):
    if not device.supports("module_load"):
        pytest.skip("no modules")
    path = path_for(device)
    a = np.arange(10, dtype=np.float32)
    for module in (cuda.module_from_file(str(path)), cuda.module_from_buffer(path.read_bytes())):
        allocation = cuda.to_device(a)
        module.get_function("scale")(allocation, np.uint32(10), np.float32(3), block=(32, 1, 1), grid=(1, 1))
        np.testing.assert_array_equal(cuda.from_device_like(allocation, a), a * 3)
    pointer, size = module.get_global("table")
    cuda.memcpy_htod(pointer, np.arange(4, dtype=np.uint32))
    assert size == 16 and cuda.from_device(pointer, 4, np.uint32).tolist() == [0, 1, 2, 3]


def test_prepared_functions_are_called_with_their_types(device):
    if not device.supports("module_load"):
        pytest.skip("no modules")
    function = cuda.module_from_file(str(path_for(device))).get_function("scale")
    with pytest.raises(cuda.LogicError, match="prepare"):
        function.prepared_call((1, 1), (32, 1, 1))
    function.prepare("PIf")
    a = np.arange(10, dtype=np.float32)
    allocation, stream = cuda.to_device(a), cuda.Stream()
    function.prepared_call((1, 1), (32, 1, 1), allocation, 10, 2)
    function.prepared_async_call((1, 1), (32, 1, 1), stream, allocation, 10, 2)
    stream.synchronize()
    assert function.prepared_timed_call((1, 1), (32, 1, 1), allocation, 10, 2.0)() >= 0
    np.testing.assert_array_equal(cuda.from_device_like(allocation, a), a * 8)
    assert function.max_threads_per_block >= 32


def test_in_out_and_inout_arguments_are_copied(device):
    if not device.supports("module_load"):
        pytest.skip("no modules")
    function = cuda.module_from_file(str(path_for(device))).get_function("scale")
    a = np.arange(10, dtype=np.float32)
    function(cuda.InOut(a), np.uint32(10), np.float32(2), block=(32, 1, 1))
    np.testing.assert_array_equal(a, np.arange(10) * 2)
    function(cuda.In(a), np.uint32(10), np.float32(2), block=(32, 1, 1))
    np.testing.assert_array_equal(a, np.arange(10) * 2)
    with pytest.raises(TypeError, match="wrap it in In"):
        function(a, np.uint32(10), np.float32(2), block=(32, 1, 1))
    with pytest.raises(ValueError, match="block size"):
        function(cuda.In(a), np.uint32(10), np.float32(2))
    assert function(cuda.InOut(a), np.uint32(10), np.float32(2), block=(32, 1, 1), time_kernel=True) >= 0


def test_prepared_complex_numbers_and_bytes_are_packed(source):
    kernel = source("""
      struct three { float x, y, z; };
      __global__ void f(double *out, float2 c, double2 d, three s, int n)
      {
        out[0] = c.x; out[1] = c.y; out[2] = d.x; out[3] = d.y; out[4] = s.x + 10 * s.y + 100 * s.z; out[5] = n;
      }
      """).get_function("f")
    values = np.array([4, 5, 6], np.float32)
    for types in ("PFD12si", ["P", "F", "D", "12s", "i"], ["P", np.complex64, np.dtype(np.complex128), "12s", np.int32]):
        for c in (1 + 2j, np.complex64(1 + 2j), np.array(1 + 2j)):
            for packed in (values, values.tobytes(), bytearray(values)):
                out = gpuarray.zeros(6, np.float64)
                kernel.prepare(types).prepared_call((1, 1), (1, 1, 1), out.gpudata, c, c * 2, packed, 7)
                assert out.get().tolist() == [1, 2, 2, 4, 654, 7]
    kernel.prepare("PFD12si").prepared_call((1, 1), (1, 1, 1), out.gpudata, 3, 2.5, values[:2].tobytes(), 7)
    assert out.get().tolist() == [3, 0, 2.5, 0, 54, 7]  # as by the struct module, with zeros at the end
    with pytest.raises(cuda.LogicError, match="11"):
        kernel.prepare("PFD11si")


def test_a_count_repeats_a_prepared_type(device):
    if not device.supports("module_load"):
        pytest.skip("no modules")
    function = cuda.module_from_file(str(path_for(device))).get_function("scale")
    allocation = cuda.to_device(np.arange(10, dtype=np.float32))
    function.prepare("1P 1I1f").prepared_call((1, 1), (32, 1, 1), allocation, 10, 2)
    np.testing.assert_array_equal(cuda.from_device(allocation, 10, np.float32), np.arange(10) * 2)
    with pytest.raises(cuda.LogicError):
        function.prepare("P2f2I")


def test_host_arrays_are_passed_by_value_where_the_kernel_takes_a_struct(source):
    kernel = source("""
      struct three { float x[3]; };
      __global__ void f(float *out, float3 v, three s, float factor)
      {
        out[0] = (v.x + 10 * v.y + 100 * v.z) * factor; out[1] = s.x[0] + 10 * s.x[1] + 100 * s.x[2];
      }
      """).get_function("f")
    out, factor = gpuarray.zeros(2, np.float32), np.float32(2)
    vector = gpuarray.vec.make_float3(1, 2, 3)
    values = np.array([4, 5, 6], np.float32)
    for v in (vector, np.array(vector), np.array([1, 2, 3], np.float32)):
        for f in (factor, np.array(factor)):
            kernel(out, v, values, f, block=(1, 1, 1))
            assert out.get().tolist() == [642, 654]
    kernel(out, vector, np.arange(6, dtype=np.float32)[::2], factor, block=(1, 1, 1))
    assert out.get()[1] == 420
    with pytest.raises(TypeError, match="argument 0.*wrap it in In"):
        kernel(values, vector, values, factor, block=(1, 1, 1))
    with pytest.raises(cuda.LogicError, match="16 bytes where the kernel takes 12"):
        kernel(out, vector, np.zeros(4, np.float32), factor, block=(1, 1, 1))


def test_the_tutorials_doublify_runs(source):
    a = np.random.default_rng(4).standard_normal((4, 4)).astype(np.float32)
    a_gpu = cuda.mem_alloc(a.nbytes)
    cuda.memcpy_htod(a_gpu, a)
    function = source("""
      __global__ void doublify(float *a)
      {
        int idx = threadIdx.x + threadIdx.y*4;
        a[idx] *= 2;
      }""").get_function("doublify")
    function(a_gpu, block=(4, 4, 1))
    doubled = np.empty_like(a)
    cuda.memcpy_dtoh(doubled, a_gpu)
    np.testing.assert_array_equal(doubled, 2 * a)


def test_vector_types_structs_and_constant_memory_work(source):
    module = source("""
      #include <stdio.h>
      __constant__ float factors[2];
      struct pair { int n; float *data; };
      __global__ void combine(float3 by, pair p, float *out) { out[0] = by.x * factors[0] + by.y * factors[1] + by.z + p.n; }
    """)
    pointer, size = module.get_global("factors")
    cuda.memcpy_htod(pointer, np.array([10, 100], np.float32))
    out = gpuarray.zeros(1, np.float32)
    pair = np.zeros((), np.dtype([("n", np.int32), ("data", np.uintp)], align=True))
    pair["n"] = 4
    module.get_function("combine")(gpuarray.vec.make_float3(1, 2, 3), pair[()], out, block=(1, 1, 1))
    assert size == 8 and out.get()[0] == 10 + 200 + 3 + 4


def test_a_source_that_does_not_compile_shows_the_log(source):
    with pytest.raises(cuda.CompileError, match="nonsense"):
        source("__global__ void f() { nonsense(); }")


# ---- tools


def test_pools_keep_blocks_in_bins():
    pool = tools.DeviceMemoryPool()
    for size in (1, 2, 5, 100, 1000, 123456):
        number = pool.bin_number(size)
        assert pool.alloc_size(number) >= size
        assert pool.bin_number(pool.alloc_size(number)) == number
    block = pool.allocate(2000)
    assert (pool.active_blocks, pool.held_blocks) == (1, 0) and int(block) > 0
    block.free()
    assert (pool.active_blocks, pool.held_blocks) == (0, 1)
    a = gpuarray.to_gpu(np.arange(500, dtype=np.float32), allocator=pool.allocate)
    assert (pool.active_blocks, pool.held_blocks) == (1, 0)
    np.testing.assert_array_equal(a.get(), np.arange(500))
    del a
    pool.free_held()
    assert pool.held_blocks == 0
    pool.stop_holding()
    del block
    pool.allocate(100)
    assert pool.held_blocks == 0


def test_a_pool_of_page_locked_memory_counts_active_blocks():
    pool = tools.PageLockedMemoryPool()
    a = pool.allocate((10, 10), np.float32)
    a[:] = 1
    view = a[2:]
    del a
    gc.collect()
    assert pool.active_blocks == 1
    del view
    gc.collect()
    assert (pool.active_blocks, pool.held_blocks) == (0, 1)


def test_the_small_helpers_return_the_same_as_pycudas():
    assert [tools.bitlog2(n) for n in (1, 2, 3, 1 << 20)] == [0, 1, 1, 20]
    assert tools.dtype_to_ctype(np.float32) == "float" and tools.dtype_to_ctype(np.uint8) == "unsigned char"
    assert tools.mark_cuda_test(lambda: 3)() == 3
    fixture = tools.init_cuda_context_fixture()
    next(fixture)
    with pytest.raises(StopIteration):
        next(fixture)
    tools.clear_context_caches()


# ---- install


INSTALL = """
import sys
import gpuglue.compat
gpuglue.compat.install("pycuda")
import pycuda.autoinit
import pycuda.driver as drv
import gpuglue.compat.pycuda.driver as ours
import pycuda.gpuarray as gpuarray, pycuda
assert drv is ours and pycuda.driver is ours and sys.modules["pycuda"] is gpuglue.compat.pycuda
assert drv.Context.get_current() is pycuda.autoinit.context
print(gpuarray.arange(5).get().sum())
"""


def test_the_alias_imports_the_same_modules(run_python):
    result = run_python(INSTALL)
    assert (result.returncode, result.stdout.strip()) == (0, "10"), result.stderr


def test_without_a_name_every_package_is_installed(run_python):
    result = run_python("import gpuglue.compat\ngpuglue.compat.install()\nimport pycuda.driver, PyGPU, PybindGPU.gpuarray")
    assert result.returncode == 0, result.stderr


def test_a_real_package_is_not_hidden(run_python, tmp_path):
    (tmp_path / "pycuda").mkdir()
    (tmp_path / "pycuda" / "__init__.py").write_text("real = True\n")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import gpuglue.compat
for before in (lambda: None, lambda: __import__("pycuda")):
    before()
    try:
        gpuglue.compat.install("pycuda")
    except ImportError as error:
        print("refused", "force=True" in str(error))
gpuglue.compat.install("pycuda", force=True)
import pycuda.driver
print(hasattr(pycuda, "real"))
"""
    result = run_python(code)
    assert result.stdout.split("\n")[:3] == ["refused True", "refused True", "False"], result.stderr


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="PyGPU"):
        gpuglue.compat.install("cupy")
