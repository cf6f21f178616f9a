"""The names that PyCUDA's documentation has: those of the table, and those of an sdist of PyCUDA to compare with.

    python tests/docs/pycuda_names.py pycuda-2026.1.tar.gz      prints the names that are in only one of the two
"""

import re
import sys
import tarfile

DIRECTIVE = re.compile(
    r"( *)\.\. +(module|currentmodule|class|exception|method|staticmethod|classmethod|attribute|function|data) *:: *(\S.*)")
ENUMERATIONS = set("""ctx_flags event_flags device_attribute pointer_attribute profiler_output_mode function_attribute func_cache
    shared_config array_format array3d_flags address_mode filter_mode memory_type compute_mode jit_option jit_target jit_fallback
    host_alloc_flags mem_attach_flags mem_host_register_flags limit ipc_mem_flags graphics_register_flags array_cubemap_face""".split())
TEXTURES = {"SurfaceReference", "TextureReference"}
# Module: its functions, and its classes with their members, without those of `left_out`.
PYCUDA = {
    "pycuda": """VERSION VERSION_STATUS VERSION_TEXT""",
    "pycuda.autoinit": """context device""",
    "pycuda.compiler": """DEFAULT_NVCC_FLAGS SourceModule compile""",
    "pycuda.cumath": """acos asin atan ceil cos cosh exp fabs floor fmod frexp ldexp log log10 modf sin sinh sqrt tan
        tanh""",
    "pycuda.curandom": """MRG32k3aRandomNumberGenerator(call_skip_ahead call_skip_ahead_array call_skip_ahead_sequence
        call_skip_ahead_sequence_array fill_log_normal fill_normal fill_poisson fill_uniform gen_log_normal gen_normal
        gen_poisson gen_uniform) ScrambledSobol32RandomNumberGenerator(call_skip_ahead call_skip_ahead_array
        fill_log_normal fill_normal fill_poisson fill_uniform gen_log_normal gen_normal gen_poisson gen_uniform)
        ScrambledSobol64RandomNumberGenerator(call_skip_ahead call_skip_ahead_array fill_log_normal fill_normal
        fill_poisson fill_uniform gen_log_normal gen_normal gen_poisson gen_uniform)
        Sobol32RandomNumberGenerator(call_skip_ahead call_skip_ahead_array fill_log_normal fill_normal fill_poisson
        fill_uniform gen_log_normal gen_normal gen_poisson gen_uniform) Sobol64RandomNumberGenerator(call_skip_ahead
        call_skip_ahead_array fill_log_normal fill_normal fill_poisson fill_uniform gen_log_normal gen_normal gen_poisson
        gen_uniform) XORWOWRandomNumberGenerator(call_skip_ahead call_skip_ahead_array call_skip_ahead_sequence
        call_skip_ahead_sequence_array fill_log_normal fill_normal fill_poisson fill_uniform gen_log_normal gen_normal
        gen_poisson gen_uniform) generate_direction_vectors generate_scramble_constants32 generate_scramble_constants64
        get_curand_version rand seed_getter_uniform seed_getter_unique""",
    "pycuda.driver": """AlignedHostAllocation(free) ArgumentHandler Array(free get_descriptor get_descriptor_3d handle)
        ArrayDescriptor(format height num_channels width) ArrayDescriptor3D(depth format height num_channels width)
        CompileError(command_line msg stderr stdout) Context(detach disable_peer_access enable_peer_access get_api_version
        get_cache_config get_device get_limit get_shared_config pop push set_cache_config set_limit set_shared_config
        synchronize) Device(__eq__ __hash__ __ne__ can_access_peer compute_capability count get_attribute get_attributes
        make_context name pci_bus_id retain_primary_context total_memory) DeviceAllocation(as_buffer free) Error
        Event(from_ipc_handle ipc_handle query record synchronize time_since time_till) Function(__call__ get_attribute
        launch launch_grid launch_grid_async local_size_bytes num_regs param_set param_set_size param_set_texref
        param_setf param_seti prepare prepared_async_call prepared_call prepared_timed_call set_attribute set_block_shape
        set_cache_config set_shared_config set_shared_size shared_size_bytes) HostAllocation
        HostPointer(get_device_pointer) IPCMemoryHandle(close) In InOut LaunchError LogicError ManagedAllocation(attach
        free get_device_pointer) Memcpy2D(__call__ dst_pitch dst_x_in_bytes dst_y height set_dst_array set_dst_device
        set_dst_host set_dst_unified set_src_array set_src_device set_src_host set_src_unified src_pitch src_x_in_bytes
        src_y width_in_bytes) Memcpy3D(depth dst_height dst_z src_height src_z) Memcpy3DPeer(set_dst_context
        set_src_context) MemoryError Module(get_function get_global get_surfref get_texref) Out
        PagelockedHostAllocation(free get_flags) PointerHolderBase(as_buffer get_pointer) RegisteredHostMemory(base
        unregister) RuntimeError Stream(is_done synchronize wait_for_event) SurfaceReference TRSA_OVERRIDE_FORMAT
        TRSF_NORMALIZED_COORDINATES TRSF_READ_AS_INTEGER TR_DEFAULT TextureReference address_mode aligned_empty
        aligned_empty_like aligned_zeros aligned_zeros_like array3d_flags array_cubemap_face array_format compute_mode
        ctx_flags device_attribute event_flags filter_mode from_device from_device_like func_cache function_attribute
        get_driver_version get_version gpuarray_to_array graphics_register_flags host_alloc_flags init initialize_profiler
        ipc_mem_flags jit_fallback jit_option jit_target limit make_multichannel_2d_array managed_empty managed_empty_like
        managed_zeros managed_zeros_like matrix_to_array mem_alloc mem_alloc_pitch mem_attach_flags mem_get_info
        mem_get_ipc_handle mem_host_register_flags memcpy_atoa memcpy_atod memcpy_atoh memcpy_dtoa memcpy_dtod
        memcpy_dtod_async memcpy_dtoh memcpy_dtoh_async memcpy_htoa memcpy_htod memcpy_htod_async memcpy_peer
        memcpy_peer_async memory_type memset_d16 memset_d16_async memset_d2d16 memset_d2d16_async memset_d2d32
        memset_d2d32_async memset_d2d8 memset_d2d8_async memset_d32 memset_d32_async memset_d8 memset_d8_async
        module_from_buffer module_from_file np_to_array pagelocked_empty pagelocked_empty_like pagelocked_zeros
        pagelocked_zeros_like pointer_attribute profiler_output_mode register_host_memory shared_config start_profiler
        stop_profiler to_device""",
    "pycuda.elementwise": """ElementwiseKernel(__call__)""",
    "pycuda.gpuarray": """GPUArray(__abs__ __add__ __cuda_array_interface__ __getitem__ __iadd__ __isub__ __len__ __mul__
        __neg__ __pow__ __radd__ __rmul__ __rpow__ __rsub__ __rtruediv__ __sub__ __truediv__ all any astype bind_to_texref
        bind_to_texref_ext conj conjugate copy dtype fill flags get get_async gpudata imag mem_size mul_add nbytes ptr
        ravel real reshape set set_async shape size squeeze strides view) all any arange concatenate dot empty empty_like
        if_positive logical_and logical_not logical_or max maximum min minimum ones ones_like stack subset_dot subset_max
        subset_min subset_sum sum take to_gpu to_gpu_async vec zeros zeros_like""",
    "pycuda.reduction": """ReductionKernel(__call__)""",
    "pycuda.scan": """ExclusiveScanKernel(__call__) InclusiveScanKernel""",
    "pycuda.tools": """DeviceData(align align_bytes align_dtype align_words make_valid_tex_channel_count max_threads
        registers shared_memory smem_alloc_granularity smem_granularity thread_blocks_per_mp warp_size warps_per_mp)
        DeviceMemoryPool(active_blocks active_bytes allocate free_held held_blocks managed_bytes stop_holding)
        OccupancyRecord(limited_by occupancy tb_per_mp warps_per_mp) PageLockedAllocator
        PageLockedMemoryPool(active_blocks allocate free_held held_blocks stop_holding) PooledDeviceAllocation(__len__
        free) PooledHostAllocation(__len__ free) clear_context_caches context_dependent_memoize get_default_device
        make_default_context mark_cuda_test register_dtype""",
}


def of_list():
    """The names of PYCUDA: module, slash, name."""
    for module, listed in PYCUDA.items():
        for owner, members in re.findall(r"(\w+)(?:\(([^)]*)\))?", listed):
            yield from (f"{module}/{owner}", *(f"{module}/{owner}.{member}" for member in members.split()))


def indentation(line):
    return len(line) - len(line.lstrip())


def of_page(lines):
    """The names of a page in reStructuredText: those of its directives, each of which may have more names in lines below."""
    module, owners, below = "", [], None
    for line in lines:
        found = DIRECTIVE.fullmatch(line.rstrip())
        if found and found[2].endswith("module"):
            module, owners, below = found[3].strip(), [], None
        elif found:
            owners = [one for one in owners if one[0] < len(found[1])]
            below = found.start(3), ".".join(name for _, name in owners)
            yield module, below[1], re.split(r"[(\s]", found[3])[0]
            owners += [(len(found[1]), re.split(r"[(\s]", found[3])[0])] if found[2] in ("class", "exception") else []
        elif below and indentation(line) == below[0] and re.match(r"\s+\w+ *(\(.*)?$", line):
            yield module, below[1], line.strip().partition("(")[0].strip()
        else:
            below = None


def of_sdist(sdist):
    """The names in doc/*.rst of an sdist of PyCUDA: module, slash, name."""
    names = set()
    with tarfile.open(sdist) as archive:
        for page in archive:
            if re.fullmatch(r"[^/]+/doc/[^/]+\.rst", page.name):
                for module, owner, name in of_page(archive.extractfile(page).read().decode().splitlines()):
                    if name.startswith("pycuda."):
                        module, _, name = name.rpartition(".")
                    names.add(f"{module}/{owner}.{name}" if owner else f"{module}/{name}")
    return names


def left_out(name):
    """Why the table does not have a name of the documentation: "gl", "textures" or "enumerations"; "" if it has."""
    module, _, path = name.partition("/")
    owner, _, member = path.partition(".")
    return "gl" if module.startswith("pycuda.gl") else "enumerations" if member and owner in ENUMERATIONS else \
        "textures" if member and owner in TEXTURES else ""


if __name__ == "__main__":
    print(*sorted(set(of_list()) ^ {name for name in of_sdist(sys.argv[1]) if not left_out(name)}), sep="\n")
