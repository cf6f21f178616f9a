"""The test kernels' image for a device, by the name of its architecture."""

import ctypes
import os
import platform

import numpy as np
import pytest
from conftest import BUILT, needs

import gpuglue as gg


def path_for(device):
    arch = device.arch
    name = ("kernels.ptx" if arch.startswith("sm_") else "kernels.gfx942.co" if arch.startswith("gfx") else
            "kernels_host.so" if arch == platform.machine() else "kernels.spv")
    path = BUILT / "images" / name
    if not path.exists():
        pytest.skip(f"there is no {path}: the tests were not built")
    return path


def load(device):
    needs(device, "module_load", "kernel_launch")
    return gg.Module(path_for(device), device)


# The types of the test kernels' arguments.
SIGNATURES = {"nothing": "", "scale": "PIf", "add_table": "PI", "say": ["P", "b", "H", "i", "q", "f", "d", "V16"]}


def typed(kernel, device):
    """The kernel with the types of its arguments, which HIPRTC's images do not declare."""
    image = path_for(device).read_bytes()
    untyped = b"amdhsa.kernels" in image and b".type_name" not in image
    return kernel.bind(SIGNATURES[kernel.name]) if untyped else kernel


def floats(device, count=10):
    array = gg.to_gpu(np.arange(count, dtype=np.float32), device)
    device.synchronize()  # tests then use their own streams
    return array


def runs_code(device):
    """Whether launches run compiled code: simulated drivers have functions for the test kernels only."""
    return "Simulated" not in device.name


def missing_opencl():
    """Why the simulated Level Zero driver runs no compiled code; "" if it does."""
    path = os.environ.get("ZE_ENABLE_ALT_DRIVERS") or os.environ["GPUGLUE_ZE_LIBRARY"]
    library = ctypes.CDLL(path.split(",")[0])
    library.sim_opencl_missing.restype = ctypes.c_char_p
    return library.sim_opencl_missing().decode()


def needs_generated(device):
    """Skip where kernels that are compiled while the program runs do not run; an error of a compiler is a failure."""
    if not runs_code(device):
        missing = missing_opencl() if device.backend == "ze" else "it has functions for the kernels of tests only"
        if missing:
            pytest.skip(f"{device} runs no compiled code: {missing}")
    needs_compiler(device)


def needs_compiler(device):
    """Skip where no compiler for the device is installed; an error of a compiler is a failure."""
    try:
        gg.compile("kernel void f() {}" if device.backend == "ze" else 'extern "C" __global__ void f() {}', backend=device.backend)
    except gg.UnsupportedError as error:
        pytest.skip(str(error).splitlines()[0])
