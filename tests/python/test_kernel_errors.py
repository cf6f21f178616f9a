"""Kernels that fail on the device, and images that would break a driver."""

import struct

import numpy as np
import pytest
from conftest import needs
from kernels import path_for, runs_code, typed

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
    """The exceptions of two launches, the first of which writes to a bad address; in its own process, which may crash."""
    if path_for(device).suffix == ".so":
        pytest.skip("on host a kernel's bad address ends the process, as any code's does")
    needs(device, "module_load", "kernel_launch")
    result = run_python(BAD_ADDRESS.format(path=str(path_for(device))), **environment)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_with_debug_sync_a_bad_address_names_kernel_arguments_and_line(device, run_python):
    messages = of_a_bad_address(device, run_python, GPUGLUE_DEBUG="sync")
    assert messages[0].startswith("kernel scale, grid 2 x 3 x 1, block 32 x 1 x 1, 0 bytes shared, arguments (0x40, 10, 2.5): ")
    assert messages[0].endswith("[<string>:6]")
    assert "kernel_launch" in messages[0]
    if len(messages) > 1:  # the text after it names the first call
        assert "first lost in kernel_launch: kernel scale" in messages[1]


def test_without_debug_sync_a_bad_address_names_no_other_kernel(device, run_python):
    messages = of_a_bad_address(device, run_python)
    assert not messages[0].startswith("kernel "), messages[0]


def test_a_kernel_of_the_image_that_the_driver_does_not_find_is_reported_as_not_linked(device):
    needs(device, "module_load")
    image = path_for(device).read_bytes().replace(b"wait_for", b"unlinked")  # which simulated drivers never find
    module = gg.Module(image, device)
    try:
        module["unlinked"]
    except gg.InvalidArgumentError as error:
        assert "does not find" in str(error) and "link" in str(error) and "it has" not in str(error)
    else:
        pytest.skip("this driver finds the kernel by its new name")
    with pytest.raises(gg.InvalidArgumentError, match='has no kernel "wait_for"; it has: .*unlinked'):
        module["wait_for"]


def test_block_local_memory_is_refused_for_other_parameters(device):
    needs(device, "module_load", "kernel_launch")
    scale = typed(gg.Module(path_for(device), device)["scale"], device)
    array = gg.zeros(10, np.float32, device=device)
    for arguments in ((gg.LocalMemory(64), 10, 2.0), (array, gg.LocalMemory(4), 2.0), (array, 10, gg.LocalMemory(4))):
        with pytest.raises(gg.InvalidArgumentError, match="is NULL|bytes where"):
            scale(*arguments, grid=1, block=32)
    assert repr(gg.LocalMemory(64)) == "gpuglue.LocalMemory(64)" and gg.LocalMemory(64).nbytes == 64
    for wrong, error in ((0, ValueError), (-1, ValueError), ("64", TypeError), (1 << 65, (ValueError, OverflowError))):
        with pytest.raises(error):
            gg.LocalMemory(wrong)


def bundle_of(archs, body):
    entries = [b"hip-amdgcn-amd-amdhsa--" + arch.encode() for arch in archs]
    head = 32 + sum(24 + len(entry) for entry in entries)
    table = b"".join(struct.pack("<QQQ", head, len(body), len(entry)) + entry for entry in entries)
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)) + table + body


def test_a_bundle_of_many_architectures_is_loaded_wherever_the_devices_own_is(device):
    if path_for(device).suffix != ".co":
        pytest.skip("this device does not load bundles of code objects")
    if runs_code(device):
        pytest.skip("the generic code object has one architecture")
    needs(device, "module_load")
    others = [f"gfx{number}" for number in range(1000, 1100)]
    for count in (1, 12, 100):
        assert gg.Module(bundle_of([*others[:count], device.arch], path_for(device).read_bytes()), device)
    with pytest.raises(gg.InvalidArgumentError, match="build it for"):
        gg.Module(bundle_of(others[:3], b"code"), device)


HEADERS = {
    "other byte order": lambda image: np.frombuffer(image, "<u4").byteswap().tobytes(),
    "expected 1.0 to 1.6": lambda image: image[:5] + bytes([99]) + image[6:],
    "0x.* is not a version of SPIR-V": lambda image: image[:6] + bytes([2]) + image[7:],
    "the format of the image is unknown": lambda image: bytes([image[0] ^ 1]) + image[1:],
}


@pytest.mark.parametrize("words", HEADERS)
def test_spirv_with_a_header_that_crashes_drivers_is_refused_before_it_is_loaded(device, words):
    if path_for(device).suffix != ".spv":
        pytest.skip("this device does not load SPIR-V")
    needs(device, "module_load")
    image = HEADERS[words](path_for(device).read_bytes())
    with pytest.raises(gg.InvalidArgumentError, match=words):
        gg.Module(image, device)
