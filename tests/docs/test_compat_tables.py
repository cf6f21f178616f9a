"""The tables of other packages' names are complete, and each name exists and is in the file that is said to test it."""

import importlib
import re

import gpuglue.compat
import numpy as np
import pytest
from blocks import ROOT

PAGES = {name: ROOT / "docs/reference" / name for name in ("compat-names.md", "pycuda-names.md")}
BACKENDS = ("cuda", "hip", "host", "ze")
DTYPES = "int16 int32 int64 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
# What PybindGPU/__init__.py, gpuarray.py and the functions generate_* of its sources define, and what its README names.
PYGPU = {
    "": """cudaSetDevice cudaGetDevice cudaGetDeviceCount cudaDeviceSynchronize cudaDeviceReset cudaEventRecord
        cudaEventSynchronize cudaEventElapsedTime cudaGetLastError cudaGetErrorName cudaGetErrorString nvmlInit nvmlShutdown
        to_gpu SUPPORTED_DTYPES dtype UnsupportedDataType cuda_enabled use_hip major_version minor_version release_version
        gpuarray backend""",
    "GPUArray": """get set to_host to_device to_gpu set_val size nbytes shape strides dtype flag_c_contiguous ptr device_data
        host_data allocate last_status __cuda_array_interface__""",
    "Allocator": "ptr host_ptr data host_data", "HostAllocator": "get ptr", "PagelockedAllocator": "get ptr",
    "DeviceArray_<dtype>": """allocate allocated to_device to_host set set_val size nbytes shape strides device_data host_data
        last_status""",
    "HostAllocator_<dtype>": "allocate ptr", "PagelockedAllocator_<dtype>": "allocate ptr",
    "DeviceAllocator_<dtype>": "allocate ptr", "ptr_wrapper_<dtype>": "create destroy is_safe print_address",
    "pointer_wrapper_<dtype>": "get", "cudaStream_t": "get last_status", "cudaEvent_t": "get last_status",
    "cudaError_t": "as_int", "nvmlReturn_t": "as_int",
    "cudaDeviceProp": "get name uuid pciBusID pciDeviceID pciDomainID last_status",
    "nvmlDevice": "get utilization_rates memory_info last_status",
}


# What PyCUDA's documentation names, without the members of enumerations and of classes that are not here.
PYCUDA = {
    "pycuda.gpuarray": """GPUArray(bind_to_texref bind_to_texref_ext) to_gpu to_gpu_async empty zeros ones empty_like zeros_like
        ones_like arange take concatenate stack logical_and logical_or logical_not if_positive maximum
        minimum sum any all subset_sum dot subset_dot max min subset_max subset_min""",
    "pycuda.cumath": """fabs ceil floor exp log log10 sqrt sin cos tan asin acos atan sinh cosh tanh fmod frexp ldexp modf""",
    "pycuda.curandom": """rand get_curand_version seed_getter_uniform seed_getter_unique XORWOWRandomNumberGenerator
        MRG32k3aRandomNumberGenerator generate_direction_vectors generate_scramble_constants32
        generate_scramble_constants64 Sobol32RandomNumberGenerator ScrambledSobol32RandomNumberGenerator
        Sobol64RandomNumberGenerator ScrambledSobol64RandomNumberGenerator""",
    "pycuda.elementwise": """ElementwiseKernel""",
    "pycuda.reduction": """ReductionKernel""",
    "pycuda.scan": """ExclusiveScanKernel InclusiveScanKernel""",
    "pycuda.tools": """register_dtype make_default_context get_default_device context_dependent_memoize clear_context_caches
        mark_cuda_test DeviceData(max_threads warp_size warps_per_mp thread_blocks_per_mp registers
        shared_memory smem_granularity smem_alloc_granularity align_bytes align align_words align_dtype
        make_valid_tex_channel_count) OccupancyRecord(tb_per_mp limited_by warps_per_mp occupancy)
        PooledDeviceAllocation(free) DeviceMemoryPool(held_blocks active_blocks managed_bytes
        active_bytes allocate free_held stop_holding) PooledHostAllocation PageLockedAllocator
        PageLockedMemoryPool(held_blocks active_blocks allocate free_held stop_holding)""",
    "pycuda": """VERSION VERSION_STATUS VERSION_TEXT""",
    "pycuda.driver": """Error CompileError(msg stdout stderr command_line) MemoryError LogicError LaunchError RuntimeError
        ctx_flags event_flags device_attribute pointer_attribute profiler_output_mode function_attribute
        func_cache shared_config array_format array3d_flags address_mode filter_mode memory_type
        compute_mode jit_option jit_target jit_fallback host_alloc_flags mem_attach_flags
        mem_host_register_flags limit ipc_mem_flags graphics_register_flags array_cubemap_face
        get_version get_driver_version init Device(count name pci_bus_id compute_capability total_memory
        get_attribute get_attributes make_context retain_primary_context can_access_peer) Context(detach
        push pop get_device synchronize set_limit get_limit set_cache_config get_cache_config
        set_shared_config get_shared_config get_api_version enable_peer_access disable_peer_access)
        Stream(synchronize is_done wait_for_event) Event(record synchronize query time_since time_till
        ipc_handle from_ipc_handle) mem_get_info mem_alloc to_device from_device from_device_like
        mem_alloc_pitch DeviceAllocation(free as_buffer) mem_get_ipc_handle IPCMemoryHandle(close)
        PointerHolderBase(get_pointer as_buffer) pagelocked_empty pagelocked_zeros pagelocked_empty_like
        pagelocked_zeros_like PagelockedHostAllocation(free get_flags) HostAllocation aligned_empty
        aligned_zeros aligned_empty_like aligned_zeros_like AlignedHostAllocation register_host_memory
        RegisteredHostMemory(unregister base) HostPointer managed_empty managed_zeros managed_empty_like
        managed_zeros_like ManagedAllocation(free get_device_pointer attach) ArrayDescriptor
        ArrayDescriptor3D Array SurfaceReference TextureReference TRSA_OVERRIDE_FORMAT
        TRSF_READ_AS_INTEGER TRSF_NORMALIZED_COORDINATES TR_DEFAULT matrix_to_array np_to_array
        gpuarray_to_array make_multichannel_2d_array memset_d8 memset_d16 memset_d32 memset_d2d8
        memset_d2d16 memset_d2d32 memset_d8_async memset_d16_async memset_d32_async memset_d2d8_async
        memset_d2d16_async memset_d2d32_async memcpy_htod memcpy_htod_async memcpy_dtoh
        memcpy_dtoh_async memcpy_dtod memcpy_dtod_async memcpy_peer memcpy_peer_async memcpy_dtoa
        memcpy_atod memcpy_htoa memcpy_atoh memcpy_atoa Memcpy2D(src_x_in_bytes src_y src_pitch
        set_src_host set_src_array set_src_device set_src_unified set_dst_host set_dst_array
        set_dst_device set_dst_unified width_in_bytes height) Memcpy3D(src_height src_z dst_height dst_z
        depth) Memcpy3DPeer Module(get_function get_global get_texref get_surfref) module_from_file
        module_from_buffer Function(param_set_texref prepare prepared_call prepared_timed_call
        prepared_async_call get_attribute set_attribute set_cache_config set_shared_config
        local_size_bytes shared_size_bytes num_regs set_shared_size set_block_shape param_set
        param_set_size param_seti param_setf launch launch_grid launch_grid_async) ArgumentHandler In
        Out InOut initialize_profiler start_profiler stop_profiler""",
    "pycuda.compiler": """DEFAULT_NVCC_FLAGS SourceModule compile""",
    "pycuda.autoinit": """device context""",
}
# These raise when they are called: tests/python/test_compat_driver.py.
CALLS_RAISE = """GPUArray.bind_to_texref GPUArray.bind_to_texref_ext Module.get_texref Module.get_surfref
    Function.param_set_texref""".split()


def expected_of_pygpu():
    for owner, members in PYGPU.items():
        if owner:
            yield owner
        yield from (f"{owner}.{member}" if owner else member for member in members.split())


def expected_of_pycuda():
    for module, listed in PYCUDA.items():
        for owner, members in re.findall(r"(\w+)(?:\(([^)]*)\))?", listed):
            yield from (f"{module}/{owner}", *(f"{module}/{owner}.{member}" for member in members.split()))


def rows(page):
    """(name, what it is on gpuglue, file that tests it) of each row; PyCUDA's names begin with their module and a slash."""
    module = ""
    for line in PAGES[page].read_text().splitlines():
        module = f"{line[3:]}/" if line.startswith("## pycuda") else module
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 7 and cells[0].startswith("`"):
            yield from ((module + name, cells[1], cells[2].strip("`")) for name in re.findall(r"`([^`]+)`", cells[0]))


@pytest.mark.parametrize("page, expected", [("compat-names.md", expected_of_pygpu), ("pycuda-names.md", expected_of_pycuda)])
def test_the_table_has_each_name_once(page, expected):
    assert sorted(name for name, *_ in rows(page)) == sorted(expected())


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_name_of_pygpu_exists(dtype):
    package, missing = importlib.import_module("gpuglue.compat.PyGPU.gpuarray").backend.PyGPU, []
    for name, *_ in rows("compat-names.md"):
        owner, _, member = name.replace("<dtype>", dtype).partition(".")
        found = getattr(package, owner, None)
        instance = member in ("data", "host_data") and owner == "Allocator"  # attributes of objects
        if found is None or member and not instance and not hasattr(found, member):
            missing.append(name)
    assert not missing


@pytest.fixture
def objects():
    """Objects whose attributes their classes do not have."""
    from gpuglue.compat.pycuda import driver, tools

    driver.init()
    context = tools.make_default_context()
    data = tools.DeviceData()
    yield {"CompileError": driver.CompileError(""), "DeviceData": data, "OccupancyRecord": tools.OccupancyRecord(data, 32),
           "DeviceMemoryPool": tools.DeviceMemoryPool(), "PageLockedMemoryPool": tools.PageLockedMemoryPool(),
           "Memcpy2D": driver.Memcpy2D(), "Memcpy3D": driver.Memcpy3D(),
           "RegisteredHostMemory": driver.register_host_memory(np.zeros(1000)).base}
    context.pop()


def test_each_name_of_pycuda_exists_or_its_error_names_the_way_out(objects):
    gpuglue.compat.install("pycuda", force=True)
    wrong = []
    for name, ours, _ in rows("pycuda-names.md"):
        module, _, path = name.partition("/")
        owner, _, member = path.partition(".")
        text = ours.partition("not available: ")[2]
        try:
            found = getattr(importlib.import_module(module), owner)
            found = getattr(objects.get(owner, found), member) if member else found
        except (AttributeError, ModuleNotFoundError) as error:
            if not text or not str(error).endswith(f" on gpuglue: {text}"):
                wrong.append((name, str(error)))
        else:
            if bool(text) != (path in CALLS_RAISE):
                wrong.append((name, ours))
    assert not wrong


@pytest.mark.parametrize("page", PAGES)
def test_each_name_is_in_the_file_that_tests_it(page):
    missing = []
    for name, ours, path in rows(page):
        word = re.split(r"[./]", name.replace("_<dtype>", ""))[-1]
        tested = ours.startswith("not available") or re.search(rf"(?<![a-zA-Z]){word}", (ROOT / "tests/python" / path).read_text())
        if not tested:
            missing.append((name, path))
    assert not missing


def columns(page):
    """{backend: names that work there} by the last four columns."""
    working = {backend: set() for backend in BACKENDS}
    for line in PAGES[page].read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 7 and cells[0].startswith("`"):
            names = set(re.findall(r"`([^`]+)`", cells[0]))
            for backend, cell in zip(BACKENDS, cells[3:]):
                assert cell in ("yes", "no") or cell.startswith("not: "), line
                assert cell == "no" or not cells[1].startswith("not available"), line
                lacking = set(re.findall(r"`([^`]+)`", cell))
                assert lacking <= names, line
                working[backend] |= {(line, name) for name in names - lacking if cell != "no"}
    return working


@pytest.mark.parametrize("page", PAGES)
def test_the_page_counts_the_names_that_work(page):
    total, counts = len(list(rows(page))), [str(len(names)) for names in columns(page).values()]
    assert f"| names that work, of {total} | {' | '.join(counts)} |" in PAGES[page].read_text()


def test_nine_of_ten_names_of_pycuda_work_on_each_backend_with_a_compiler_for_cuda():
    total, working = len(list(rows("pycuda-names.md"))), columns("pycuda-names.md")
    assert {backend: len(working[backend]) for backend in ("cuda", "hip", "host") if len(working[backend]) < 0.9 * total} == {}


def test_every_name_of_pygpu_works_on_each_backend():
    total = len(list(rows("compat-names.md")))
    assert [len(names) for names in columns("compat-names.md").values()] == [total] * len(BACKENDS)
