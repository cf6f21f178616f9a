"""Intel's own Level Zero driver, without the hardware: release 22.43 can record the commands that it would send
to a simulated GPU. The real driver checks every call of gpuglue, but nothing is executed, so no test here checks
data. Needs Debian 12's intel-opencl-icd and libze1."""

import glob
import json
import os
import pathlib
import subprocess
import sys

import pytest

DRIVERS = glob.glob("/usr/lib/*/libze_intel_gpu.so.1.3.24595")
LOADERS = glob.glob("/usr/lib/*/libze_loader.so.1")
pytestmark = pytest.mark.skipif(
    not (DRIVERS and LOADERS), reason="needs the packages intel-opencl-icd 22.43 and libze1 (Debian 12)"
)
FAMILIES = {"tgllp": True, "dg1": False}  # integrated?
HANG = 300  # seconds: a time limit for a program


def capture(code, family, devices=1, **environment):
    """The output of code on the simulated GPUs. It raises if the driver refuses a call."""
    variables = {
        **os.environ,
        "NEOReadDebugKeys": "1",
        "SetCommandStreamReceiver": "1",
        "ProductFamilyOverride": family,
        "AUBDumpCaptureFileName": "/dev/null",
        "CreateMultipleRootDevices": str(devices),
        "GPUGLUE_BACKEND": "ze",
        **environment,
    }
    for name in ("ZE_ENABLE_ALT_DRIVERS", "GPUGLUE_ZE_LIBRARY", "GPUGLUE_DEVICE"):
        if name not in environment:
            variables.pop(name, None)
    result = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=HANG, env=variables)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


ON_EACH = pytest.mark.parametrize("devices", (1, 2))
OF_EACH = pytest.mark.parametrize("family", FAMILIES)

PROPERTIES = """
import gpuglue as gg, json
print(json.dumps([dict(name=d.name, arch=d.arch, total=d.total_memory, integrated=d.integrated, uuid=str(d.uuid),
    ordinal=d.ordinal, attributes=dict(d.attributes)) for d in gg.devices('ze')]))
"""


@OF_EACH
@ON_EACH
def test_properties_are_read(family, devices):
    found = json.loads(capture(PROPERTIES, family, devices))
    assert [device["ordinal"] for device in found] == list(range(devices))
    for device in found:
        attributes = device["attributes"]
        assert "Intel" in device["name"] and device["arch"].startswith("0x") and device["total"] > 1 << 30
        assert attributes["warp_size"] == 32 and attributes["max_threads_per_block"] >= 256
        assert attributes["multiprocessors"] > 0 and "clock_khz" not in attributes  # the driver reports 0
        assert device["integrated"] is FAMILIES[family]
        assert attributes["shared_memory_per_block"] >= 32768 and attributes["max_grid_x"] > 65535
        assert device["uuid"].startswith("86800")  # Intel's vendor id


EVERY_OPERATION = (pathlib.Path(__file__).parent / "every_operation.py").read_text()


@OF_EACH
@ON_EACH
def test_every_operation_is_accepted(family, devices):
    assert capture(EVERY_OPERATION, family, devices) == "ok\n"


@OF_EACH
@pytest.mark.parametrize(
    "layers",
    ({"ZE_ENABLE_LOADER_INTERCEPT": "1"}, {"ZE_ENABLE_VALIDATION_LAYER": "1", "ZE_ENABLE_PARAMETER_VALIDATION": "1"}),
    ids=("intercepted", "parameters validated"),
)
def test_every_operation_is_accepted_with_the_loaders_layers(family, layers):
    assert capture(EVERY_OPERATION, family, 2, **layers) == "ok\n"


SPIRV = """
import gpuglue as gg, numpy as np
source = "kernel void scale(global float *x, uint n, float by) {{ uint i = get_global_id(0); if (i < n) x[i] *= by; }}"
image = gg.compile(source, backend="ze", arch={family!r})
device = gg.Device("ze:0")
"""


@OF_EACH
def test_output_of_ocloc_is_loaded_and_launched(family):
    code = SPIRV.format(family=family) + (
        "kernel = gg.Module(image, device)['scale']\n"
        "x = gg.zeros(100, np.float32)\n"
        "kernel(x, 100, 2.0, grid=4, block=32); gg.synchronize()\n"
        "print(len(kernel.parameters), kernel.attributes['max_threads_per_block'] > 0)"
    )
    assert capture(code, family) == "3 True\n"


LOCAL = """
import gpuglue as gg, numpy as np
source = "kernel void turn(global int *x, local int *room) {{ uint i = get_local_id(0); room[i] = x[i]; barrier(1); x[i] = room[get_local_size(0) - 1 - i]; }}"
turn = gg.Module(gg.compile(source, backend="ze", arch={family!r}), gg.Device("ze:0"))["turn"]
x = gg.zeros(64, np.int32)
turn(x, gg.LocalMemory(256), grid=1, block=64); gg.synchronize()
print(turn.parameters[1][2])
for wrong in (gg.LocalMemory(1 << 30), x, 256, np.int32(256)):
    try: turn(x, wrong, grid=1, block=64); print("went well", wrong)
    except (gg.InvalidArgumentError, TypeError) as error: pass
turn(x, gg.LocalMemory(128), grid=1, block=32); gg.synchronize(); print("alive")
"""


@OF_EACH
def test_a_blocks_own_memory_is_an_argument(family):
    assert capture(LOCAL.format(family=family), family) == "local\nalive\n"


def test_wrong_launches_are_refused_before_the_driver_sees_them():
    code = SPIRV.format(family="tgllp") + (
        "kernel, x = gg.Module(image, device)['scale'], gg.zeros(100, np.float32)\n"
        "for arguments, shape in (((x, 100), {}), ((x, 100, 2.0, 3), {}), ((x, 100, np.float64(2)), {}),\n"
        "                         ((x, 100, 2.0), {'block': 0}), ((x, 100, 2.0), {'block': 1 << 20}), ((x, 100, 2.0), {'smem': 1 << 30})):\n"
        "    try: kernel(*arguments, **{'grid': 1, 'block': 8, **shape}); print('went well', shape)\n"
        "    except (gg.Error, TypeError): pass\n"
        "try: gg.Module(image, device)['skale']\n"
        "except ValueError as error: print('scale' in str(error))\n"
        "kernel(x, 100, 2.0, grid=4, block=32); gg.synchronize(); print('alive')"
    )
    assert capture(code, "tgllp") == "True\nalive\n"


# Intel's compiler ends the process at the first of these, without a message.
DAMAGED = {
    "bad magic": "bytes([image[0] ^ 1]) + image[1:]",
    "no magic": "bytes(4) + image[4:]",
    "swapped": "np.frombuffer(image, '<u4').byteswap().tobytes()",
    "an invalid version": "image[:7] + bytes([1]) + image[8:]",
    "a future version": "image[:5] + bytes([99]) + image[6:]",
    "truncated": "image[:len(image) // 2 // 4 * 4 + 2]",
    "header only": "image[:20]",
    "a byte": "image[:1]",
    "nothing": "b''",
    "an instruction without length": "image[:20] + bytes(4) + image[24:]",
}


@OF_EACH
@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_spirv_is_an_error_and_does_not_end_the_process(family, damage):
    code = SPIRV.format(family=family) + (
        f"try: gg.Module({DAMAGED[damage]}, device)['scale']; print('went well')\n"
        "except gg.Error as error: print(len(str(error)) > 20)\n"
        "gg.Module(image, device)['scale']; print('alive')"
    )
    assert capture(code, family) == "True\nalive\n"


def test_one_allocation_may_be_larger_than_4_gib():
    code = "import gpuglue as gg; b = gg.alloc(5 << 30); print(b.nbytes)"
    assert capture(code, "tgllp") == f"{5 << 30}\n"


def test_an_array_that_does_not_fit_is_out_of_memory_and_not_too_large():
    code = (
        "import gpuglue as gg\n"
        "try: gg.alloc(5 << 30)\n"
        "except gg.OutOfMemoryError as error: print(hex(error.code), 'bytes free' in str(error))"
    )
    assert capture(code, "dg1") == "0x70000003 False\n"


@OF_EACH
def test_the_affinity_mask_chooses(family):
    code = "import gpuglue as gg; print(len(gg.devices('ze')))"
    assert capture(code, family, 2, ZE_AFFINITY_MASK="1") == "1\n"


def test_without_its_keys_the_driver_finds_nothing_and_nothing_else_is_called():
    code = "import gpuglue as gg; print(*[b.status for b in gg.backends(probe='active') if b.name == 'ze'])"
    assert capture(code, "tgllp", SetCommandStreamReceiver="0").strip() in ("no-device", "permission-denied", "available")


def test_the_drivers_sigsegv_handler_is_left_alone():
    code = (
        "import ctypes, gpuglue as gg\n"
        "def handler():\n"
        "    action = (ctypes.c_uint64 * 20)(); ctypes.CDLL(None).sigaction(11, None, action); return action[0]\n"
        "gg.to_gpu([1.0]).get(); before = handler()\n"
        "gg.zeros(5); s = gg.Stream(); s.synchronize(); s.close(); assert handler() == before; print('ok')"
    )
    assert capture(code, "dg1") == "ok\n"
