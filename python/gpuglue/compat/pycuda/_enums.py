"""PyCUDA's numbers; those that gpuglue has a name for can be asked."""

import enum


class device_attribute(enum.IntEnum):
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
    CLOCK_RATE = 13
    TEXTURE_ALIGNMENT = 14
    MULTIPROCESSOR_COUNT = 16
    CONCURRENT_KERNELS = 31
    ASYNC_ENGINE_COUNT = 40
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    MANAGED_MEMORY = 83
    COOPERATIVE_LAUNCH = 95
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97


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
    _D.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: "shared_memory_optin"}


class function_attribute(enum.IntEnum):
    MAX_THREADS_PER_BLOCK = 0
    SHARED_SIZE_BYTES = 1
    CONST_SIZE_BYTES = 2
    LOCAL_SIZE_BYTES = 3
    NUM_REGS = 4
    PTX_VERSION = 5
    BINARY_VERSION = 6
    MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


_F = function_attribute
FUNCTION_ATTRIBUTES = {
    _F.MAX_THREADS_PER_BLOCK: "max_threads_per_block", _F.SHARED_SIZE_BYTES: "shared_size",
    _F.CONST_SIZE_BYTES: "constant_size", _F.LOCAL_SIZE_BYTES: "local_size", _F.NUM_REGS: "registers",
    _F.MAX_DYNAMIC_SHARED_SIZE_BYTES: "max_dynamic_shared_size"}


class compute_mode(enum.IntEnum):
    DEFAULT = 0
    PROHIBITED = 2
    EXCLUSIVE_PROCESS = 3


class ctx_flags(enum.IntFlag):
    SCHED_AUTO = 0
    SCHED_SPIN = 1
    SCHED_YIELD = 2
    SCHED_BLOCKING_SYNC = 4
    BLOCKING_SYNC = 4
    MAP_HOST = 8
    LMEM_RESIZE_TO_MAX = 16


class event_flags(enum.IntFlag):
    DEFAULT = 0
    BLOCKING_SYNC = 1
    DISABLE_TIMING = 2
    INTERPROCESS = 4


class host_alloc_flags(enum.IntFlag):
    PORTABLE = 1
    DEVICEMAP = 2
    WRITECOMBINED = 4


class mem_host_register_flags(enum.IntFlag):
    PORTABLE = 1
    DEVICEMAP = 2


class mem_attach_flags(enum.IntFlag):
    GLOBAL = 1
    HOST = 2
    SINGLE = 4


class func_cache(enum.IntEnum):
    PREFER_NONE = 0
    PREFER_SHARED = 1
    PREFER_L1 = 2
    PREFER_EQUAL = 3


class memory_type(enum.IntEnum):
    HOST = 1
    DEVICE = 2
    ARRAY = 3
    UNIFIED = 4
