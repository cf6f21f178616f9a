"""Kernels that fail on the device, and images that would break a driver."""

import struct

import numpy as np
import pytest
from conftest import needs
from kernels import path_for, runs_code

import gpuglue as gg

BAD_ADDRESS = """
import gpuglue as gg, numpy as np
module = gg.Module({path!r})
good, kernel = gg.zeros(10, np.float32), module["scale"]
try:
    kernel(np.uint64(0x40), np.uint32(10), np.float32(2.5), grid=(2, 3), block=32)  # line 6
    module["nothing"](grid=1, block=1)
    gg.synchronize()
except gg.Error as error:
    print(error)
try:
    kernel(good, 10, 2.0, grid=1, block=32)
except gg.DeviceLostError as error:
    print(error)
"""


def of_a_bad_address(device, run_python, **environment):
    """What two launches raise, the first of which wrote to a bad address; from a process that may break."""
    if path_for(device).suffix == ".so":
        pytest.skip("on host a kernel's bad address ends the process, as any code's does")
    needs(device, "module_load", "kernel_launch")
    result = run_python(BAD_ADDRESS.format(path=str(path_for(device))), **environment)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_with_debug_sync_a_bad_address_names_kernel_arguments_and_line(device, run_python):
    told = of_a_bad_address(device, run_python, GPUGLUE_DEBUG="sync")
    assert told[0].startswith("kernel scale, grid 2 x 3 x 1, block 32 x 1 x 1, 0 bytes shared, arguments (0x40, 10, 2.5): ")
    assert told[0].endswith("[<string>:6]")
    assert "kernel_launch" in told[0]
    if len(told) > 1:  # what follows tells the first site
        assert "first lost in kernel_launch: kernel scale" in told[1]


def test_without_it_a_bad_address_blames_no_other_kernel(device, run_python):
    told = of_a_bad_address(device, run_python)
    assert not told[0].startswith("kernel "), told[0]


def test_a_blocks_own_memory_is_refused_where_the_kernel_takes_none(device):
    needs(device, "module_load", "kernel_launch")
    scale = gg.Module(path_for(device), device)["scale"]
    array = gg.zeros(10, np.float32, device=device)
    for arguments in ((gg.local(64), 10, 2.0), (array, gg.local(4), 2.0), (array, 10, gg.local(4))):
        with pytest.raises(gg.InvalidArgumentError, match="has no value|bytes where"):
            scale(*arguments, grid=1, block=32)
    assert repr(gg.local(64)) == "gpuglue.local(64)" and gg.local(64).nbytes == 64
    for wrong, error in ((0, ValueError), (-1, ValueError), ("64", TypeError), (1 << 65, (ValueError, OverflowError))):
        with pytest.raises(error):
            gg.local(wrong)


def bundle_of(archs, body):
    entries = [b"hip-amdgcn-amd-amdhsa--" + arch.encode() for arch in archs]
    head = 32 + sum(24 + len(entry) for entry in entries)
    table = b"".join(struct.pack("<QQQ", head, len(body), len(entry)) + entry for entry in entries)
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)) + table + body


def test_a_bundle_of_many_architectures_is_loaded_wherever_the_devices_own_stands(device):
    if path_for(device).suffix != ".co":
        pytest.skip("bundles of code objects are not what this device takes")
    if runs_code(device):
        pytest.skip("the code object that stands for all is of one architecture")
    needs(device, "module_load")
    others = [f"gfx{number}" for number in range(1000, 1100)]
    for count in (1, 12, 100):
        assert gg.Module(bundle_of([*others[:count], device.arch], path_for(device).read_bytes()), device)
    with pytest.raises(gg.InvalidArgumentError, match="build it for"):
        gg.Module(bundle_of(others[:3], b"code"), device)


HEADERS = {
    "other byte order": lambda image: np.frombuffer(image, "<u4").byteswap().tobytes(),
    "expected 1.0 to 1.6": lambda image: image[:5] + bytes([99]) + image[6:],
    "version of SPIR-V, 0x.*, is none": lambda image: image[:6] + bytes([2]) + image[7:],
    "no image of a known format": lambda image: bytes([image[0] ^ 1]) + image[1:],
}


@pytest.mark.parametrize("words", HEADERS)
def test_spirv_with_a_header_that_ends_drivers_is_refused_before_they_see_it(device, words):
    if path_for(device).suffix != ".spv":
        pytest.skip("SPIR-V is not what this device takes")
    needs(device, "module_load")
    image = HEADERS[words](path_for(device).read_bytes())
    with pytest.raises(gg.InvalidArgumentError, match=words):
        gg.Module(image, device)
