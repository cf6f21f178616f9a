"""gpuglue.compat.pycuda: the names of its documentation that the other suites do not use, and errors for what is not there."""

import gc

import numpy as np
import pytest
from conftest import needs
from kernels import needs_compiler, path_for, runs_code

from gpuglue.compat import pycuda
from gpuglue.compat.pycuda import _limits, characterize, compiler, elementwise, gpuarray, reduction, tools
from gpuglue.compat.pycuda import driver as cuda

pytestmark = [
    pytest.mark.usefixtures("context"),
    pytest.mark.filterwarnings("ignore:Function.* is deprecated since PyCUDA 2011.1:DeprecationWarning"),
]


def scale(device):
    needs(device, "module_load", "kernel_launch")
    return cuda.module_from_file(str(path_for(device))).get_function("scale")


# ---- memory


@pytest.mark.parametrize("fill, kind", [
    (cuda.memset_d2d8, "u1"), (cuda.memset_d2d16, "u2"), (cuda.memset_d2d32, "u4"), (cuda.memset_d2d8_async, "u1"),
    (cuda.memset_d2d16_async, "u2"), (cuda.memset_d2d32_async, "u4")])
def test_rows_are_filled_and_the_bytes_between_them_stay(fill, kind):
    kind = np.dtype(kind)
    pitch, width, height, first = 32, 5, 3, 8
    memory = cuda.mem_alloc(first + pitch * height)
    cuda.memset_d8(memory, 1, first + pitch * height)
    stream = (cuda.Stream(),) if fill.__name__.endswith("_async") else ()
    fill(int(memory) + first, pitch, 7, width, height, *stream)
    cuda.Context.synchronize()
    found = cuda.from_device(memory, first + pitch * height, np.uint8)
    rows = found[first:].reshape(height, pitch)
    assert (found[:first] == 1).all() and (rows[:, width * kind.itemsize:] == 1).all()
    assert (np.ascontiguousarray(rows[:, :width * kind.itemsize]).view(kind) == 7).all()


def test_a_fill_of_rows_may_end_with_the_allocation_and_has_to_fit_into_its_pitch():
    memory = cuda.mem_alloc(32 + 8)
    cuda.memset_d2d32(memory, 32, 7, 2, 2)
    assert cuda.from_device(memory, 10, np.uint32)[[0, 1, 8, 9]].tolist() == [7] * 4
    cuda.memset_d2d32(memory, 32, 9, 0, 2)
    cuda.memset_d2d32(memory, 32, 9, 2, 0)
    assert cuda.from_device(memory, 1, np.uint32)[0] == 7
    with pytest.raises(cuda.LogicError, match="pitch of 4"):
        cuda.memset_d2d32(memory, 4, 7, 2, 2)
    with pytest.raises(cuda.LogicError, match="3 rows needs 72 bytes, there are 40"):
        cuda.memset_d2d32(memory, 32, 7, 2, 3)


@pytest.mark.parametrize("fill, kind", [(cuda.memset_d8_async, "u1"), (cuda.memset_d16_async, "u2")])
def test_a_fill_on_a_stream_stays_within_its_count(fill, kind):
    stream, memory = cuda.Stream(), cuda.mem_alloc(64)
    assert isinstance(memory, cuda.DeviceAllocation)
    cuda.memset_d8(memory, 0, 64)
    fill(memory, 7, 5, stream)
    stream.synchronize()
    assert cuda.from_device(memory, 8, kind).tolist() == [7] * 5 + [0] * 3


def test_host_memory_is_made_like_another_array():
    like = np.ones((3, 2), np.int16, "F")
    for make, zero in ((cuda.managed_empty_like, False), (cuda.managed_zeros_like, True)):
        made = make(like)
        assert (made.shape, made.dtype, made.strides) == (like.shape, like.dtype, like.strides)
        assert not zero or not made.any()
    made = cuda.pagelocked_zeros((2, 3), np.float32)
    assert not made.any() and made.base.get_flags() & cuda.host_alloc_flags.PORTABLE


def test_an_error_of_the_compiler_has_a_message():
    error = cuda.CompileError("not compiled", "nvcc x.cu", "", "line 3")
    assert (error.msg, error.command_line, error.stdout, error.stderr) == ("not compiled", "nvcc x.cu", "", "line 3")


def test_textures_are_refused(device):
    needs(device, "module_load")
    module = cuda.module_from_file(str(path_for(device)))
    assert isinstance(module, cuda.Module)
    for refused in (module.get_texref, module.get_surfref):
        with pytest.raises(cuda.LogicError, match="no texture and surface references: pass the array to the kernel"):
            refused("name")


@pytest.mark.parametrize("given", [np.zeros(1), np.zeros(3), 4096.0, "4096", None], ids=repr)
def test_host_memory_in_place_of_device_memory_is_refused_with_the_way_out(given):
    """int() of an array of one element is its value, which was an address."""
    for copy in (lambda: cuda.memcpy_htod(given, np.zeros(3)), lambda: cuda.memcpy_dtoh(np.zeros(3), given),
                 lambda: cuda.memset_d8(given, 1, 24)):
        with pytest.raises(TypeError, match=f"expected an allocation.*got {type(given).__name__}: upload host memory by to_device"):
            copy()


def test_a_layer_is_copied_between_layers_of_two_regions():
    source, dest = cuda.to_device(np.arange(24, dtype=np.uint8)), cuda.mem_alloc(24)
    cuda.memset_d8(dest, 99, 24)
    copy = cuda.Memcpy3D()
    copy.set_src_device(source)
    copy.set_dst_device(dest)
    copy.src_pitch = copy.dst_pitch = copy.width_in_bytes = 4
    copy.src_height = copy.dst_height = copy.height = 3
    copy.src_z, copy.dst_z, copy.depth = 1, 0, 1
    copy()
    assert cuda.from_device(dest, 24, np.uint8).tolist() == [*range(12, 24)] + [99] * 12


OPEN = """
from gpuglue.compat.pycuda import autoinit, driver
memory = driver.IPCMemoryHandle(%r)
driver.memset_d32(memory, 7, 4)
driver.Context.synchronize()
memory.close()
"""


def test_another_process_opens_an_allocation(device, run_python):
    memory = cuda.mem_alloc(16)
    try:
        handle = cuda.mem_get_ipc_handle(memory)
    except cuda.Error as error:
        pytest.skip(f"{device.name} has no handles for other processes: {error}")
    with pytest.raises(cuda.LogicError, match="4 bytes behind"):
        cuda.mem_get_ipc_handle(int(memory) + 4)
    assert isinstance(handle, bytes) and handle == cuda.mem_get_ipc_handle(memory)
    result = run_python(OPEN % handle)
    assert (result.returncode, result.stderr) == (0, "")
    assert cuda.from_device(memory, 4, np.uint32).tolist() == [7] * 4
    with pytest.raises(cuda.LogicError):
        cuda.IPCMemoryHandle(handle)  # of this process
    with pytest.raises(cuda.LogicError):
        cuda.IPCMemoryHandle(b"nothing")


def test_a_pool_counts_the_bytes_of_its_blocks():
    pool = tools.DeviceMemoryPool()
    block = pool.allocate(1000)
    assert len(block) == 1000 and bool(block) and pool.active_bytes == 1000 <= pool.managed_bytes
    managed = pool.managed_bytes
    block.free()
    assert (pool.active_bytes, pool.managed_bytes, pool.held_blocks, pool.active_blocks) == (0, managed, 1, 0)
    pool.stop_holding()
    assert pool.managed_bytes == 0
    host = tools.PageLockedMemoryPool(tools.PageLockedAllocator(cuda.host_alloc_flags.PORTABLE))
    array = host.allocate((2, 3), np.float32)
    assert (host.active_bytes, host.active_blocks) == (24, 1)
    del array
    gc.collect()
    assert (host.active_bytes, host.active_blocks, host.held_blocks) == (0, 0, 1)


# ---- devices and contexts


def test_a_device_has_data_for_the_occupancy_of_a_kernel(device):
    data = tools.DeviceData(cuda.Device(0))
    assert data.max_threads == device.attributes["max_threads_per_block"]
    assert data.warps_per_mp * data.warp_size == device.attributes["threads_per_multiprocessor"]
    assert (data.smem_granularity, data.thread_blocks_per_mp) == (32, 8)
    assert (data.align_bytes(), data.align(65), data.align_words(8), data.align_dtype(17, 4)) == (64, 128, 16, 32)
    assert [tools.DeviceData.make_valid_tex_channel_count(size) for size in (1, 2, 3)] == [1, 2, 4]
    for wrong in (lambda: data.align_bytes(5), lambda: data.make_valid_tex_channel_count(5)):
        with pytest.raises(ValueError, match="5"):
            wrong()


class H200:
    """The limits that a multiprocessor of an H200 has."""

    max_threads, warp_size, warps_per_mp, thread_blocks_per_mp = 1024, 32, 64, 8
    registers, shared_memory, smem_alloc_granularity = 65536, 49152, 128


@pytest.mark.parametrize("threads, shared, registers, limit, blocks", [
    (64, 0, 0, "device", 8), (1024, 0, 0, "warps", 2), (512, 0, 64, "regs", 2), (128, 20000, 0, "smem", 2),
    (33, 0, 255, "regs", 4)])
def test_occupancy_is_the_smallest_of_the_limits(threads, shared, registers, limit, blocks):
    record = tools.OccupancyRecord(H200, threads, shared, registers)
    assert (record.limited_by, record.tb_per_mp) == (limit, blocks)
    assert record.warps_per_mp == blocks * -(-threads // 32) and record.occupancy == record.warps_per_mp / 64


def test_occupancy_refuses_blocks_that_the_device_cannot_run():
    with pytest.raises(ValueError, match="1 to 1024 threads, got 1025"):
        tools.OccupancyRecord(H200, 1025)


def test_hints_are_accepted(device, context):
    cuda.Context.set_cache_config(cuda.func_cache.PREFER_L1)
    cuda.Context.set_shared_config(cuda.shared_config.EIGHT_BYTE_BANK_SIZE)
    assert cuda.Context.get_cache_config() in list(cuda.func_cache)
    assert cuda.Context.get_shared_config() in list(cuda.shared_config)
    function = scale(device)
    function.set_cache_config(cuda.func_cache.PREFER_SHARED)
    function.set_shared_config(cuda.shared_config.FOUR_BYTE_BANK_SIZE)
    assert cuda.function_attribute.CACHE_MODE_CA == 7 and cuda.function_attribute.PREFERRED_SHARED_MEMORY_CARVEOUT == 9


def test_peer_access_is_enabled_where_devices_have_it(context):
    mine = cuda.Context.get_device()
    for number in range(cuda.Device.count()):
        other = cuda.Device(number)
        peer = other.retain_primary_context()
        if mine.can_access_peer(other):
            cuda.Context.enable_peer_access(peer)
        else:
            with pytest.raises(cuda.LogicError, match="memcpy_peer"):
                cuda.Context.enable_peer_access(peer)
        cuda.Context.disable_peer_access(peer)


# ---- kernels


def test_a_function_is_prepared_with_its_block_as_in_old_programs(device):
    function = scale(device)
    with pytest.raises(cuda.LogicError, match="block as a tuple"):
        function.prepare("PIf").prepared_call((1, 1), cuda.mem_alloc(4), 1, 2.0)
    memory = cuda.to_device(np.arange(10, dtype=np.float32))
    function.prepare("PIf", block=(32, 1, 1)).prepared_call((1, 1), memory, 10, 2.0)
    assert function.prepared_timed_call((1, 1), memory, 10, 2.0)() >= 0
    function.prepared_call((1, 1), (16, 1, 1), memory, 10, 2.0)
    for stream in (None, cuda.Stream()):
        function.prepared_async_call((1, 1), stream, memory, 10, 2.0)
    cuda.Context.synchronize()
    np.testing.assert_array_equal(cuda.from_device(memory, 10, np.float32), np.arange(10) * 32)


def test_options_of_a_module_are_hints(device):
    needs(device, "module_load")
    options = [(cuda.jit_option.MAX_REGISTERS, 32), (cuda.jit_option.TARGET, cuda.jit_target.COMPUTE_50),
               (cuda.jit_option.FALLBACK_STRATEGY, cuda.jit_fallback.PREFER_PTX)]
    assert cuda.module_from_buffer(path_for(device).read_bytes(), options).get_function("scale")
    assert str(cuda.pointer_attribute.MEMORY_TYPE) == "MEMORY_TYPE" and cuda.pointer_attribute.HOST_POINTER == 4


def test_a_profiler_is_started_and_stopped_by_the_driver(device, monkeypatch):
    called, result = [], [0]

    class Driver:
        def __getattr__(self, name):
            if name.endswith("Stop"):
                raise AttributeError(name)
            return lambda: called.append(name) or result[0]

    monkeypatch.setattr(_limits, "_driver", lambda backend: Driver())
    cuda.start_profiler()
    if device.backend not in ("cuda", "hip"):
        cuda.stop_profiler()
        assert called == []
        return
    assert called == ["cuProfilerStart" if device.backend == "cuda" else "hipProfilerStart"]
    with pytest.raises(cuda.LogicError, match="has no .*ProfilerStop: use gpuglue.trace"):
        cuda.stop_profiler()
    result[0] = 100
    with pytest.raises(cuda.LogicError, match="ProfilerStart on .* returned error 100"):
        cuda.start_profiler()


def test_a_launch_takes_what_was_set_before_as_in_old_programs(device):
    function, x = scale(device), np.arange(64, dtype=np.float32)
    with pytest.raises(cuda.LogicError, match="call set_block_shape"):
        function.launch()
    function.set_block_shape(16, 1, 1)
    if device.backend != "ze":  # whose kernels take it as an argument
        function.set_shared_size(64)
    argument = cuda.InOut(x.copy())
    handler, = function.param_set(argument, np.uint32(64), np.float32(2))
    assert handler is argument
    handler.pre_call(None)
    function.launch()
    function.launch_grid(2, 1)
    function.launch_grid_async(4, 1, cuda.Stream())
    cuda.Context.synchronize()
    handler.post_call(None)
    cuda.Context.synchronize()
    np.testing.assert_array_equal(argument.array, x * np.repeat([8, 4, 2], [16, 16, 32]))
    with pytest.warns(DeprecationWarning, match="Function.launch is deprecated since PyCUDA 2011.1: call the function"):
        function.launch()


def test_arguments_are_set_by_their_offsets_as_in_old_programs(device):
    function, memory = scale(device), cuda.to_device(np.ones(16, np.float32))
    function.set_block_shape(16, 1, 1)
    if not function._kernel.parameters or not function._kernel.parameters[-1][0]:  # SPIR-V has no offsets
        function.param_seti(8, 16)
        with pytest.raises(cuda.LogicError, match="where the parameters of .* are: call the function with its arguments"):
            function.launch()
        return
    with pytest.raises(cuda.LogicError, match="argument 0 of .*, 8 bytes at 0, is not set: byte 0 is missing"):
        function.launch()
    function.param_setv(0, np.uintp(int(memory)))
    function.param_seti(8, 16)
    function.param_setf(12, 3)
    function.param_set_size(16)
    function.launch()
    function.param_setv(8, np.array([4], np.uint32).tobytes() + np.float32(2).tobytes())
    function.launch()
    np.testing.assert_array_equal(cuda.from_device(memory, 16, np.float32), np.repeat([6, 3], [4, 12]).astype(np.float32))
    function.param_set(memory, np.uint32(16), np.float32(0))
    function.param_setf(12, 5)
    function.launch()
    assert cuda.from_device(memory, 16, np.float32)[-1] == 15
    function.param_set_size(12)
    with pytest.raises(cuda.LogicError, match=r"param_set_size\(12\): argument 2 of .* ends at 16"):
        function.launch()
    function.param_set(memory)
    function.param_setf(12, 5)
    with pytest.raises(cuda.LogicError, match="param_set got 1 arguments, and .* has 3"):
        function.launch()
    with pytest.raises(cuda.LogicError, match="does not fit into 4 bytes"):
        function.param_seti(8, 1 << 32)
    with pytest.raises(cuda.LogicError, match="offset -4: expected 0 or more"):
        function.param_setf(-4, 1)
    with pytest.raises(cuda.LogicError, match="pass the array to the kernel"):
        function.param_set_texref(None)


def test_the_platform_is_characterized(device):
    assert characterize.has_stack() and characterize.has_double_support() and characterize.platform_bits() == 64
    if runs_code(device):
        needs_compiler(device)
        assert characterize.sizeof("float") == 4
        assert characterize.sizeof("struct two", "struct two { double one; char other; };") == 16


def test_the_modules_have_versions_and_the_context_an_interface():
    assert pycuda.VERSION >= (2022, 1) and pycuda.VERSION_TEXT.startswith(str(pycuda.VERSION[0]))
    assert pycuda.VERSION_STATUS == "" and cuda.Context.get_api_version() == cuda.get_version()[0] * 1000
    assert cuda.ipc_mem_flags.LAZY_ENABLE_PEER_ACCESS == 1
    assert list(map(int, cuda.profiler_output_mode)) == [0, 1]  # of cudaProfiler.h; the flags of cuda.h
    assert [cuda.graphics_register_flags(2**bit).name for bit in range(4)] == "READ_ONLY WRITE_DISCARD SURFACE_LDST TEXTURE_GATHER".split()
    assert cuda.graphics_register_flags.NONE == 0


def test_a_memoized_function_runs_once_per_context_and_arguments():
    calls = []
    double = tools.context_dependent_memoize(lambda number: calls.append(number) or 2 * number)
    assert [double(3), double(3), double(4)] == [6, 6, 8] and calls == [3, 4]
    assert isinstance(tools.DeviceMemoryPool().allocate(8), tools.PooledDeviceAllocation)


def test_an_argument_is_copied_back_after_the_launch(device):
    function = scale(device)
    handler = cuda.InOut(np.arange(4, dtype=np.float32))
    assert isinstance(handler, cuda.Out) and isinstance(handler, cuda.ArgumentHandler)
    function(handler, np.uint32(4), np.float32(3), block=(32, 1, 1))
    assert handler.array.tolist() == [0, 3, 6, 9]


def test_a_function_accepts_the_size_of_its_dynamic_shared_memory(device):
    function = scale(device)
    function.set_attribute(cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 14)
    with pytest.raises(cuda.LogicError, match="cannot be set"):
        function.set_attribute(cuda.function_attribute.NUM_REGS, 1)


def test_a_function_has_the_size_of_its_shared_memory(device):
    function = scale(device)
    if "shared_size" not in function._kernel.attributes:
        pytest.skip(f"{device} does not report shared_size")
    assert function.shared_size_bytes == 0


def test_where_there_are_no_limits_they_are_accepted_and_cannot_be_read(device):
    if device.backend in ("cuda", "hip"):
        pytest.skip(f"{device} has limits")
    assert cuda.Context.set_limit(cuda.limit.MALLOC_HEAP_SIZE, 1 << 24) is None
    with pytest.raises(cuda.LogicError, match=f"{device.backend} has no limits"):
        cuda.Context.get_limit(cuda.limit.MALLOC_HEAP_SIZE)


def test_limits_are_those_of_the_current_context(device):
    if device.backend not in ("cuda", "hip"):
        pytest.skip(f"{device} has no limits")
    before = cuda.Context.get_limit(cuda.limit.STACK_SIZE)
    try:
        cuda.Context.set_limit(cuda.limit.STACK_SIZE, before + 4096)
    except cuda.LogicError as error:
        assert "is older than its function hipDeviceSetLimit" in str(error)
        return
    assert cuda.Context.get_limit(cuda.limit.STACK_SIZE) >= before + 4096
    cuda.Context.set_limit(cuda.limit.STACK_SIZE, before)
    with pytest.raises(cuda.LogicError, match="refuses the limit 99: .*GetLimit returned error"):
        cuda.Context.get_limit(99)


# ---- what is not there


def test_a_missing_name_names_the_way_out(device):
    for module, name, way in [
            (cuda, "TextureReference", "pass the array to the kernel"), (cuda, "initialize_profiler", "CUDA 12.0 .* gpuglue.trace"),
            (gpuarray, "multi_take", r"cupy\.asarray"), (tools, "match_dtype_to_c_struct", "register_dtype"),
            (cuda, "Linker", "DynamicModule"), (elementwise, "get_elwise_kernel", "gpuglue pycuda add"),
            (elementwise, "get_axpbyz_kernel", "gpuglue pycuda add"), (reduction, "get_minmax_neutral", "gpuglue pycuda add"),
            (compiler, "CudaModule", "SourceModule"), (tools, "Argument", "gpuglue pycuda add"), (gpuarray, "splay", "gpuglue pycuda add"),
            (reduction, "get_sum_kernel", "gpuglue pycuda add")]:
        with pytest.raises(AttributeError, match=f"has no '{name}' on gpuglue: .*{way}") as caught:
            getattr(module, name)
        assert "\n" not in str(caught.value)
        with pytest.raises(ImportError) as imported:
            exec(f"from {module.__name__} import {name}")
        assert str(imported.value) == str(caught.value) and not hasattr(module, name)
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            module.nothing
    with pytest.raises(AttributeError, match="Event has no 'ipc_handle' on gpuglue: .*mem_get_ipc_handle"):
        cuda.Event().ipc_handle()
    with pytest.raises(AttributeError, match="Event has no 'from_ipc_handle' on gpuglue"):
        cuda.Event.from_ipc_handle(b"")
    with pytest.raises(cuda.LogicError, match="as an argument"):
        gpuarray.zeros(3, np.float32).bind_to_texref(None)
    assert gpuarray.GPUArray.bind_to_texref_ext is gpuarray.GPUArray.bind_to_texref


DECLARES_A_TEXTURE = "texture<float, 2> image;"
ELSEWHERE = {  # a source that is not compiled: the end of the first line of the error, which names another way
    DECLARES_A_TEXTURE: "pass the array to the kernel as an argument",
    "__global__ void g(float *x) { *x = tex2D(image, 0, 0); }": "pass the array to the kernel as an argument",
    "__global__ void g(int *x) { if (*x) g<<<1, 1>>>(x, 0); }": "DynamicSourceModule: else launch them from Python",
    '#include "curand_of_another.h"': "an array that pycuda.curandom has filled",
    "#include <thrust/sort.h>\nno C++": "else use pycuda.reduction and pycuda.scan",
    "no C++": "",
}
NOT_ON_CUDA = {
    '__device__ int f() { int x; asm volatile("mov %0, %laneid" : "=r"(x)); return x; } no C++': "else write them in C++",
    "#include <cuda_bf16.h>\nno C++": "else compute with float or half",
}


@pytest.mark.parametrize("source", [*ELSEWHERE, *NOT_ON_CUDA])
def test_what_a_source_has_that_no_compiler_takes_is_in_the_first_line_of_the_error(device, source):
    if not runs_code(device) or device.backend == "ze":
        pytest.skip(f"{device} has no compiler for CUDA C++")
    needs_compiler(device)
    if source == DECLARES_A_TEXTURE and device.backend == "hip":
        pytest.skip("HIPRTC has texture references")
    way = ELSEWHERE.get(source) or (device.backend != "cuda") * NOT_ON_CUDA.get(source, "")
    with pytest.raises(cuda.CompileError) as caught:
        compiler.SourceModule(source)
    first = str(caught.value).splitlines()[0]
    assert first.startswith("the kernel was not compiled") and first.endswith(way) and (way or ":" not in first)


def test_level_zero_compiles_no_source_in_cuda_cpp(device):
    if device.backend != "ze":
        pytest.skip("others have a compiler for CUDA C++")
    with pytest.raises(cuda.LogicError, match="lang='cuda' for ze .*: expected 'opencl'; or choose a device of cuda, hip or host"):
        compiler.SourceModule("__global__ void f() {}")


@pytest.mark.parametrize("name, kind, reason", [
    ("sparse", "ModuleNotFoundError", ""), ("_cluda", "ModuleNotFoundError", "use PyCUDA's own files (gpuglue pycuda add)"),
    ("gl", "ImportError", "PyCUDA itself has it only where it was built with CUDA_ENABLE_GL: ")])  # what its import raises else
def test_a_missing_module_names_the_way_out(run_python, name, kind, reason):
    code = f"""
import gpuglue.compat
gpuglue.compat.install("pycuda")
try:
    import pycuda.{name}
except ImportError as error:
    print(error, error.name, type(error).__name__)
import pycuda
try:
    import pycuda.nothing
except ModuleNotFoundError as error:
    print(error.name)
"""
    result = run_python(code)
    first, second = result.stdout.splitlines()
    assert first.startswith(f"there is no pycuda.{name} on gpuglue: {reason}") and first.endswith(f" pycuda.{name} {kind}")
    assert (second, result.stderr) == ("pycuda.nothing", "")
