"""The environment variables that matter to gpuglue and to the vendors' libraries."""

KNOWN = (
    "GPUGLUE_ALLOCATOR",
    "GPUGLUE_AMD_SMI_LIBRARY",
    "GPUGLUE_BACKEND",
    "GPUGLUE_CACHE",
    "GPUGLUE_CACHE_DIR",
    "GPUGLUE_CACHE_SIZE",
    "GPUGLUE_COMM_PORT",
    "GPUGLUE_COPY_THREADS",
    "GPUGLUE_CUDA_LIBRARY",
    "GPUGLUE_CXX",
    "GPUGLUE_DEBUG",
    "GPUGLUE_DEVICE",
    "GPUGLUE_HIPRTC_LIBRARY",
    "GPUGLUE_HIP_LIBRARY",
    "GPUGLUE_HOST_DEVICES",
    "GPUGLUE_HOST_THREADS",
    "GPUGLUE_LOG",
    "GPUGLUE_NCCL_LIBRARY",
    "GPUGLUE_NVML_LIBRARY",
    "GPUGLUE_NVRTC_LIBRARY",
    "GPUGLUE_OCLOC",
    "GPUGLUE_OCLOC_LIBRARY",
    "GPUGLUE_PLUGIN_PATH",
    "GPUGLUE_RESULT_CACHE",
    "GPUGLUE_RCCL_LIBRARY",
    "GPUGLUE_ROCM_SMI_LIBRARY",
    "GPUGLUE_ROCTX_LIBRARY",
    "GPUGLUE_STAGING",
    "GPUGLUE_TRACE",
    "GPUGLUE_ZES_LIBRARY",
    "GPUGLUE_ZE_LIBRARY",
)
# Read by the tests of gpuglue itself.
OF_TESTS = ("GPUGLUE_TEST_", "GPUGLUE_SIM_")
PREFIXES = ("GPUGLUE_", "CUDA_", "HIP_", "ROCR_", "ROCM_", "HSA_", "AMD_", "ZE_", "ZES_", "ZEL_", "NVIDIA_", "ONEAPI_", "GPU_DEVICE_")
OTHERS = ("CONDA_PREFIX", "LD_LIBRARY_PATH", "LD_PRELOAD", "SLURM_JOB_ID", "SLURM_JOB_GPUS", "PBS_JOBID", "TMPDIR", "VIRTUAL_ENV")


def relevant(environ):
    """Those of the environment that matter, by name."""
    return {name: environ[name] for name in sorted(environ) if name.startswith(PREFIXES) or name in OTHERS}


def misspelt(environ):
    """(name, nearest known name or None) of each GPUGLUE_ variable that gpuglue does not have."""
    return [(name, nearest(name, KNOWN)) for name in sorted(environ) if is_unknown(name)]


def is_unknown(name):
    if not name.startswith("GPUGLUE_") or name in KNOWN or name.startswith(OF_TESTS) or name in read_by_tests():
        return False
    return not name.endswith("_LIBRARY")  # any backend may read one


def read_by_tests():
    """Variables of the tests without the prefix for tests: rows of core/base/env.c."""
    rest = "COMPILERS GFX INTEL MIRROR PYTHON REQUIRE ROOTS SWEEP_BESIDE SWEEP_CALLS SWEEP_VERBOSE TOGETHER WHEEL"
    return ["GPUGLUE_" + name for name in rest.split()]


def nearest(name, known):
    """The known name that is most similar, or None."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, 1, 0.75)), None)
