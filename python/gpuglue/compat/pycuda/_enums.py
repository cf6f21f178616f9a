"""PyCUDA's numbers."""

import enum


def _name(number):
    """As PyCUDA's numbers are printed: the name of one that has a name. Flags together have none."""
    return number._name_ if number._name_ in type(number).__members__ else int.__repr__(number)


class _Number(enum.IntEnum):
    __str__ = _name


class _Flags(enum.IntFlag):
    __str__ = _name


class device_attribute(_Number):
    """Attributes of a device: all of the driver's, of which gpuglue reports some."""

    MAX_THREADS_PER_BLOCK = 1
    MAX_BLOCK_DIM_X = 2
    MAX_BLOCK_DIM_Y = 3
    MAX_BLOCK_DIM_Z = 4
    MAX_GRID_DIM_X = 5
    MAX_GRID_DIM_Y = 6
    MAX_GRID_DIM_Z = 7
    MAX_SHARED_MEMORY_PER_BLOCK = 8
    SHARED_MEMORY_PER_BLOCK = 8
    TOTAL_CONSTANT_MEMORY = 9
    WARP_SIZE = 10
    MAX_PITCH = 11
    MAX_REGISTERS_PER_BLOCK = 12
    REGISTERS_PER_BLOCK = 12
    CLOCK_RATE = 13
    TEXTURE_ALIGNMENT = 14
    GPU_OVERLAP = 15
    MULTIPROCESSOR_COUNT = 16
    KERNEL_EXEC_TIMEOUT = 17
    INTEGRATED = 18
    CAN_MAP_HOST_MEMORY = 19
    COMPUTE_MODE = 20
    MAXIMUM_TEXTURE1D_WIDTH = 21
    MAXIMUM_TEXTURE2D_WIDTH = 22
    MAXIMUM_TEXTURE2D_HEIGHT = 23
    MAXIMUM_TEXTURE3D_WIDTH = 24
    MAXIMUM_TEXTURE3D_HEIGHT = 25
    MAXIMUM_TEXTURE3D_DEPTH = 26
    MAXIMUM_TEXTURE2D_LAYERED_WIDTH = 27
    MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = 28
    MAXIMUM_TEXTURE2D_LAYERED_LAYERS = 29
    MAXIMUM_TEXTURE2D_ARRAY_WIDTH = 27
    MAXIMUM_TEXTURE2D_ARRAY_HEIGHT = 28
    MAXIMUM_TEXTURE2D_ARRAY_NUMSLICES = 29
    SURFACE_ALIGNMENT = 30
    CONCURRENT_KERNELS = 31
    ECC_ENABLED = 32
    PCI_BUS_ID = 33
    PCI_DEVICE_ID = 34
    TCC_DRIVER = 35
    MEMORY_CLOCK_RATE = 36
    GLOBAL_MEMORY_BUS_WIDTH = 37
    L2_CACHE_SIZE = 38
    MAX_THREADS_PER_MULTIPROCESSOR = 39
    ASYNC_ENGINE_COUNT = 40
    UNIFIED_ADDRESSING = 41
    MAXIMUM_TEXTURE1D_LAYERED_WIDTH = 42
    MAXIMUM_TEXTURE1D_LAYERED_LAYERS = 43
    CAN_TEX2D_GATHER = 44
    MAXIMUM_TEXTURE2D_GATHER_WIDTH = 45
    MAXIMUM_TEXTURE2D_GATHER_HEIGHT = 46
    MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE = 47
    MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE = 48
    MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE = 49
    PCI_DOMAIN_ID = 50
    TEXTURE_PITCH_ALIGNMENT = 51
    MAXIMUM_TEXTURECUBEMAP_WIDTH = 52
    MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH = 53
    MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS = 54
    MAXIMUM_SURFACE1D_WIDTH = 55
    MAXIMUM_SURFACE2D_WIDTH = 56
    MAXIMUM_SURFACE2D_HEIGHT = 57
    MAXIMUM_SURFACE3D_WIDTH = 58
    MAXIMUM_SURFACE3D_HEIGHT = 59
    MAXIMUM_SURFACE3D_DEPTH = 60
    MAXIMUM_SURFACE1D_LAYERED_WIDTH = 61
    MAXIMUM_SURFACE1D_LAYERED_LAYERS = 62
    MAXIMUM_SURFACE2D_LAYERED_WIDTH = 63
    MAXIMUM_SURFACE2D_LAYERED_HEIGHT = 64
    MAXIMUM_SURFACE2D_LAYERED_LAYERS = 65
    MAXIMUM_SURFACECUBEMAP_WIDTH = 66
    MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH = 67
    MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS = 68
    MAXIMUM_TEXTURE1D_LINEAR_WIDTH = 69
    MAXIMUM_TEXTURE2D_LINEAR_WIDTH = 70
    MAXIMUM_TEXTURE2D_LINEAR_HEIGHT = 71
    MAXIMUM_TEXTURE2D_LINEAR_PITCH = 72
    MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH = 73
    MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT = 74
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH = 77
    STREAM_PRIORITIES_SUPPORTED = 78
    GLOBAL_L1_CACHE_SUPPORTED = 79
    LOCAL_L1_CACHE_SUPPORTED = 80
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81
    MAX_REGISTERS_PER_MULTIPROCESSOR = 82
    MANAGED_MEMORY = 83
    MULTI_GPU_BOARD = 84
    MULTI_GPU_BOARD_GROUP_ID = 85
    HOST_NATIVE_ATOMIC_SUPPORTED = 86
    SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87
    PAGEABLE_MEMORY_ACCESS = 88
    CONCURRENT_MANAGED_ACCESS = 89
    COMPUTE_PREEMPTION_SUPPORTED = 90
    CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91
    CAN_USE_STREAM_MEM_OPS_V1 = 92
    CAN_USE_64_BIT_STREAM_MEM_OPS_V1 = 93
    CAN_USE_STREAM_WAIT_VALUE_NOR_V1 = 94
    COOPERATIVE_LAUNCH = 95
    COOPERATIVE_MULTI_DEVICE_LAUNCH = 96
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    CAN_FLUSH_REMOTE_WRITES = 98
    HOST_REGISTER_SUPPORTED = 99
    PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100
    DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101
    VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED = 102
    VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102
    HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103
    HANDLE_TYPE_WIN32_HANDLE_SUPPORTED = 104
    HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED = 105
    MAX_BLOCKS_PER_MULTIPROCESSOR = 106
    GENERIC_COMPRESSION_SUPPORTED = 107
    MAX_PERSISTING_L2_CACHE_SIZE = 108
    MAX_ACCESS_POLICY_WINDOW_SIZE = 109
    GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110
    RESERVED_SHARED_MEMORY_PER_BLOCK = 111
    SPARSE_CUDA_ARRAY_SUPPORTED = 112
    READ_ONLY_HOST_REGISTER_SUPPORTED = 113
    TIMELINE_SEMAPHORE_INTEROP_SUPPORTED = 114
    MEMORY_POOLS_SUPPORTED = 115
    GPU_DIRECT_RDMA_SUPPORTED = 116
    GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117
    GPU_DIRECT_RDMA_WRITES_ORDERING = 118
    MEMPOOL_SUPPORTED_HANDLE_TYPES = 119
    CLUSTER_LAUNCH = 120
    DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED = 121
    CAN_USE_64_BIT_STREAM_MEM_OPS = 122
    CAN_USE_STREAM_WAIT_VALUE_NOR = 123
    DMA_BUF_SUPPORTED = 124
    IPC_EVENT_SUPPORTED = 125
    MEM_SYNC_DOMAIN_COUNT = 126
    TENSOR_MAP_ACCESS_SUPPORTED = 127
    HANDLE_TYPE_FABRIC_SUPPORTED = 128
    UNIFIED_FUNCTION_POINTERS = 129
    NUMA_CONFIG = 130
    NUMA_ID = 131
    MULTICAST_SUPPORTED = 132
    MPS_ENABLED = 133
    HOST_NUMA_ID = 134


_D = device_attribute
ATTRIBUTES = {
    _D.MAX_THREADS_PER_BLOCK: "max_threads_per_block", _D.MAX_BLOCK_DIM_X: "max_block_x",
    _D.MAX_BLOCK_DIM_Y: "max_block_y", _D.MAX_BLOCK_DIM_Z: "max_block_z", _D.MAX_GRID_DIM_X: "max_grid_x",
    _D.MAX_GRID_DIM_Y: "max_grid_y", _D.MAX_GRID_DIM_Z: "max_grid_z",
    _D.MAX_SHARED_MEMORY_PER_BLOCK: "shared_memory_per_block", _D.WARP_SIZE: "warp_size",
    _D.CLOCK_RATE: "clock_khz", _D.MULTIPROCESSOR_COUNT: "multiprocessors",
    _D.CONCURRENT_KERNELS: "concurrent_kernels", _D.ASYNC_ENGINE_COUNT: "async_engines",
    _D.COMPUTE_CAPABILITY_MAJOR: "compute_major", _D.COMPUTE_CAPABILITY_MINOR: "compute_minor",
    _D.MANAGED_MEMORY: "managed_memory", _D.COOPERATIVE_LAUNCH: "cooperative_launch",
    _D.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: "shared_memory_optin",
    _D.MAX_REGISTERS_PER_BLOCK: "registers_per_block", _D.MAX_REGISTERS_PER_MULTIPROCESSOR: "registers_per_multiprocessor",
    _D.MAX_THREADS_PER_MULTIPROCESSOR: "threads_per_multiprocessor",
    _D.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: "shared_memory_per_multiprocessor",
    _D.TOTAL_CONSTANT_MEMORY: "constant_memory", _D.L2_CACHE_SIZE: "l2_cache_size",
    _D.MEMORY_CLOCK_RATE: "memory_clock_khz", _D.GLOBAL_MEMORY_BUS_WIDTH: "memory_bus_width", _D.ECC_ENABLED: "ecc"}


class function_attribute(_Number):
    """Attributes of a kernel, for Function.get_attribute."""

    MAX_THREADS_PER_BLOCK = 0
    SHARED_SIZE_BYTES = 1
    CONST_SIZE_BYTES = 2
    LOCAL_SIZE_BYTES = 3
    NUM_REGS = 4
    PTX_VERSION = 5
    BINARY_VERSION = 6
    CACHE_MODE_CA = 7
    MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
    PREFERRED_SHARED_MEMORY_CARVEOUT = 9
    MAX = 10


_F = function_attribute
FUNCTION_ATTRIBUTES = {
    _F.MAX_THREADS_PER_BLOCK: "max_threads_per_block", _F.SHARED_SIZE_BYTES: "shared_size",
    _F.CONST_SIZE_BYTES: "constant_size", _F.LOCAL_SIZE_BYTES: "local_size", _F.NUM_REGS: "registers",
    _F.MAX_DYNAMIC_SHARED_SIZE_BYTES: "max_dynamic_shared_size"}


class compute_mode(_Number):
    """Who may use a device."""

    DEFAULT = 0
    PROHIBITED = 2
    EXCLUSIVE_PROCESS = 3


class ctx_flags(_Flags):
    """Flags of a context; gpuglue uses the primary context as it is."""

    SCHED_AUTO = 0
    SCHED_SPIN = 1
    SCHED_YIELD = 2
    SCHED_BLOCKING_SYNC = 4
    BLOCKING_SYNC = 4
    MAP_HOST = 8
    LMEM_RESIZE_TO_MAX = 16
    SCHED_MASK = 7
    FLAGS_MASK = 31


class event_flags(_Flags):
    """Flags of an Event."""

    DEFAULT = 0
    BLOCKING_SYNC = 1
    DISABLE_TIMING = 2
    INTERPROCESS = 4


class host_alloc_flags(_Flags):
    """Flags of page-locked memory."""

    PORTABLE = 1
    DEVICEMAP = 2
    WRITECOMBINED = 4


class mem_host_register_flags(_Flags):
    """Flags of registered memory."""

    PORTABLE = 1
    DEVICEMAP = 2


class mem_attach_flags(_Flags):
    """Who will access managed memory."""

    GLOBAL = 1
    HOST = 2
    SINGLE = 4


class func_cache(_Number):
    """Hints for the caches of a kernel."""

    PREFER_NONE = 0
    PREFER_SHARED = 1
    PREFER_L1 = 2
    PREFER_EQUAL = 3


class memory_type(_Number):
    """Kinds of memory."""

    HOST = 1
    DEVICE = 2
    ARRAY = 3
    UNIFIED = 4


class shared_config(_Number):
    """Hints for the banks of shared memory, which current devices ignore."""

    DEFAULT_BANK_SIZE = 0
    FOUR_BYTE_BANK_SIZE = 1
    EIGHT_BYTE_BANK_SIZE = 2


class jit_input_type(_Flags):
    """Kinds of code that DynamicModule links."""

    CUBIN = 0
    PTX = 1
    FATBINARY = 2
    OBJECT = 3
    LIBRARY = 4


class ipc_mem_flags(_Flags):
    """Flags of an IPCMemoryHandle."""

    LAZY_ENABLE_PEER_ACCESS = 1


class profiler_output_mode(_Number):
    """Formats of initialize_profiler(), which no driver since CUDA 12.0 has."""

    KEY_VALUE_PAIR = 0
    CSV = 1


class graphics_register_flags(_Flags):
    """How a program uses a buffer of OpenGL: for an extension that registers it."""

    NONE = 0
    READ_ONLY = 1
    WRITE_DISCARD = 2
    SURFACE_LDST = 4
    TEXTURE_GATHER = 8


class pointer_attribute(_Number):
    """What the driver knows about an address."""

    CONTEXT = 1
    MEMORY_TYPE = 2
    DEVICE_POINTER = 3
    HOST_POINTER = 4


class jit_option(_Number):
    """Options of a module, which are hints: see module_from_buffer."""

    MAX_REGISTERS = 0
    THREADS_PER_BLOCK = 1
    WALL_TIME = 2
    INFO_LOG_BUFFER = 3
    INFO_LOG_BUFFER_SIZE_BYTES = 4
    ERROR_LOG_BUFFER = 5
    ERROR_LOG_BUFFER_SIZE_BYTES = 6
    OPTIMIZATION_LEVEL = 7
    TARGET_FROM_CUCONTEXT = 8
    TARGET = 9
    FALLBACK_STRATEGY = 10


class jit_target(_Number):
    """Architectures, for jit_option.TARGET."""

    COMPUTE_10 = 10
    COMPUTE_11 = 11
    COMPUTE_12 = 12
    COMPUTE_13 = 13
    COMPUTE_20 = 20
    COMPUTE_21 = 21
    COMPUTE_30 = 30
    COMPUTE_32 = 32
    COMPUTE_35 = 35
    COMPUTE_37 = 37
    COMPUTE_50 = 50
    COMPUTE_52 = 52


class jit_fallback(_Number):
    """What the driver prefers where an image has code of several kinds, for jit_option.FALLBACK_STRATEGY."""

    PREFER_PTX = 0
    PREFER_BINARY = 1
