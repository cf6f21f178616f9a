"""AMD's runtime: every status of a search for it, the current device of a thread, and the differences between HIP 5.2,
5.7, 6 and 7. Run once, with the runs on hip."""

import json
import os
import pathlib
import shutil

import pytest
from conftest import BUILT, HANG, nodes, run_python, simulated, succeeds

pytestmark = pytest.mark.skipif(os.environ.get("GPUGLUE_BACKEND") != "hip", reason="runs with the suite on hip")

VERSIONS = ("5", "5.7", "6", "7")
UP_TO_6 = VERSIONS[:3]  # 7 does not check whether a stream exists
NO_NODES = "/dev/kfd=absent,/dev/dxg=absent,/dev/dri/renderD128=absent"
KFD = "/dev/kfd=there,/dev/dri/renderD128=absent"
CLEAN = dict.fromkeys(("GPUGLUE_BACKEND", "GPUGLUE_DEVICE", "GPUGLUE_HIP_LIBRARY", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"))
ASK = (
    "import json, gpuglue as gg\n"
    f"def hip(level='active', timeout={HANG}):\n"
    "    (r,) = (r for r in gg.backends(level, timeout=timeout) if r.name == 'hip')\n"
    "    return {name: getattr(r, name) for name in type(r).__match_args__}\n"
)
PRINT = ASK + "print(json.dumps(hip()))"


def sim(version="7"):
    return simulated(f"hip-sim-{version}") if version != "7" else simulated("hip-sim")


def run(code=PRINT, where=KFD, **environment):
    return succeeds(run_python(code, **{**CLEAN, **nodes(where), **environment}))


def found(where=KFD, **environment):
    return json.loads(run(where=where, **environment))


def broken(kind):
    return str(BUILT / "sim/broken_hip" / kind / "libamdhip64.so.6")


def directory(version):
    return str(pathlib.Path(sim(version)).parent)


# ---- every status ----


@pytest.mark.parametrize("version", VERSIONS)
def test_a_runtime_with_devices_is_available(version):
    record = found(GPUGLUE_HIP_LIBRARY=sim(version))
    assert (record["status"], record["reason"], record["devices"]) == ("available", "", 2)
    assert record["version"].startswith(f"{version}.") and record["library"] == sim(version)


def test_an_excluded_one_is_disabled():
    record = found(GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_BACKEND="^hip")
    assert record["status"] == "disabled" and "^hip" in record["reason"]


def test_a_path_that_does_not_exist_is_reported(tmp_path):
    record = found(GPUGLUE_HIP_LIBRARY=str(tmp_path / "libamdhip64.so.7"))
    assert record["status"] == "library-not-found" and "GPUGLUE_HIP_LIBRARY" in record["reason"]


def test_a_search_that_finds_nothing_reports_the_names_and_the_variable(tmp_path):
    record = found(LD_LIBRARY_PATH=str(tmp_path), GPUGLUE_BACKEND="hip")
    if record["status"] != "library-not-found":
        pytest.skip("this machine has a HIP runtime")
    names = ["libamdhip64.so.8", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"]
    assert f"none of {', '.join(names)} was found" in record["reason"] and "GPUGLUE_HIP_LIBRARY" in record["reason"]
    assert [path for path, _ in record["tried"] if "/" not in path] == names
    assert any("ROCm's runtime" in note for note in record["notes"])


def test_a_file_that_is_not_a_library_is_reported(tmp_path):
    library = tmp_path / "libamdhip64.so.7"
    library.write_text("not a library")
    for path in (str(library), broken("elf32")):
        record = found(GPUGLUE_HIP_LIBRARY=path)
        assert record["status"] == "library-load-failed" and path in record["reason"]


def test_a_library_that_lacks_functions_names_the_first():
    record = found(GPUGLUE_HIP_LIBRARY=broken("missing"))
    assert record["status"] == "symbol-missing"
    assert "lacks the function hip" in record["reason"] and broken("missing") in record["reason"]


def test_a_version_before_5_is_refused_with_both_numbers():
    record = found(GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_VERSION="40421401")
    assert record["status"] == "version-unsupported"
    assert "4.4.21401" in record["reason"] and "expected 5.0.0 or newer" in record["reason"]


def test_a_version_after_7_is_used_with_a_note():
    record = found(GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_VERSION="80100000")
    assert (record["status"], record["version"]) == ("available", "8.1.0")
    assert any("HIP 8.1.0 is newer" in note and "5 to 7" in note for note in record["notes"])


@pytest.mark.parametrize("version", VERSIONS)
def test_no_device_is_distinct_from_a_failure_in_each_version(version):
    record = found(GPUGLUE_HIP_LIBRARY=sim(version), GPUGLUE_SIM_DEVICES="0")
    code = "101, hipErrorInvalidDevice" if version in ("5", "5.7") else "100, hipErrorNoDevice"
    assert record["status"] == "no-device"
    assert "HIP sees no device" in record["reason"] and code in record["reason"] and "rocminfo" in record["reason"]


@pytest.mark.parametrize("variable", ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"])
def test_a_mask_is_part_of_the_reason_and_a_note(variable):
    record = found(GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_DEVICES="0", **{variable: "7"})
    assert record["status"] == "no-device" and f'{variable} is set to "7"' in record["reason"]
    record = found(GPUGLUE_HIP_LIBRARY=sim(), **{variable: "0"})
    assert record["status"] == "available" and f'{variable} is set to "0"' in record["notes"]


def test_a_mask_that_names_no_device_hides_all_devices():
    record = found(GPUGLUE_HIP_LIBRARY=sim(), HIP_VISIBLE_DEVICES="9")
    assert record["status"] == "no-device" and 'HIP_VISIBLE_DEVICES is set to "9": unset it' in record["reason"]


@pytest.mark.parametrize("version", VERSIONS)
def test_error_101_of_a_runtime_that_counts_devices_is_a_failed_start(version):
    record = found(GPUGLUE_HIP_LIBRARY=sim(version), GPUGLUE_SIM_FAIL="hipInit:1=101")
    assert record["status"] == "init-failed" and "HIP reports 2 devices and could not start" in record["reason"]


@pytest.mark.parametrize(
    "code, words",
    [
        (2, "ran out of memory"),
        (3, "'spawn'"),
        (35, "kernel driver is too old"),
        (304, "operating system refused"),
        (999, "see `dmesg` for amdgpu"),
        (1234, "an unknown code"),
    ],
)
def test_a_failed_start_has_its_own_sentence(code, words):
    for call in "hipInit", "hipGetDeviceCount":
        record = found(GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_FAIL=f"{call}:1={code}")
        assert record["status"] == "init-failed" and words in record["reason"] and str(code) in record["reason"]


@pytest.mark.parametrize("group, words", [("0", "root (0)"), ("61234", "61234 (it has no name here)")])
def test_a_node_without_permission_is_reported_with_its_group(group, words):
    record = found(f"/dev/kfd=refused:{group}", GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_DEVICES="0")
    assert record["status"] == "permission-denied"
    assert "/dev/kfd exists and may not be read and written" in record["reason"] and words in record["reason"]
    record = found(f"/dev/kfd=refused:{group}", GPUGLUE_HIP_LIBRARY=sim())
    assert record["status"] == "available"  # a runtime that works is not refused


def test_the_render_node_counts_too():
    where = "/dev/kfd=there,/dev/dri/renderD128=refused:61234"
    record = found(where, GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_DEVICES="0")
    assert record["status"] == "permission-denied" and "/dev/dri/renderD128" in record["reason"]


def test_a_passive_probe_names_the_library_and_calls_nothing(tmp_path):
    report = tmp_path / "report"
    text = run(ASK + "print(json.dumps(hip('passive')))", GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_REPORT=str(report))
    record = json.loads(text)
    assert (record["status"], record["library"]) == ("not-probed", sim())
    assert json.loads(report.read_text())["calls"] == {}


def test_a_forked_child_gets_the_fork_as_the_reason():
    code = ASK + (
        "import os, sys\nassert hip()['status'] == 'available'\nsys.stdout.flush()\n"
        "if not os.fork():\n    print(hip()['status'], flush=True)\n    os._exit(0)\nos.wait()"
    )
    arguments = ("-W", "ignore::DeprecationWarning")  # of a fork with threads, from Python 3.12 on
    assert run(code, arguments=arguments, GPUGLUE_HIP_LIBRARY=sim()) == "forked"


def test_an_isolated_probe_reports_a_runtime_that_hangs_or_crashes():
    code = ASK + "r = hip('isolated', timeout=SECONDS); print(r['status'], r['reason'], sep='|')"
    hangs = run(code.replace("SECONDS", "3.0"), GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_HANG="hipInit")
    assert hangs.startswith("timed-out|no answer within 3 s")
    crashes = run(code.replace("SECONDS", str(HANG)), GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_CRASH="hipInit")
    assert crashes.startswith("crashed|") and "SIGABRT" in crashes


# ---- the search ----


@pytest.mark.parametrize("level", ["passive", "active", "isolated"])
def test_without_a_device_node_nothing_is_opened_by_default(level):
    code = ASK + f"r = hip('{level}'); print(json.dumps(r)); assert 'libamdhip64' not in open('/proc/self/maps').read()"
    record = json.loads(run(code, NO_NODES, LD_LIBRARY_PATH=directory("7")))
    assert record["status"] == "no-device" and record["reason"].startswith("not searched: ")
    assert "/dev/kfd" in record["reason"] and "GPUGLUE_BACKEND=hip" in record["reason"]
    assert (record["tried"], record["library"]) == ([], "")


@pytest.mark.parametrize("where", ["/dev/kfd=there,/dev/dxg=absent", "/dev/kfd=absent,/dev/dxg=there"])
def test_with_either_node_it_is_searched(where):
    record = found(where, LD_LIBRARY_PATH=directory("7"))
    assert (record["status"], record["found_by"]) == ("available", "soname")


@pytest.mark.parametrize(
    "code",
    [
        "print(gg.Device('hip:0').backend)",
        "print(gg.devices('hip')[1].backend)",
        "gg.use_backend('hip'); print(gg.default_backend())",
        "gg.use_backend('metal,hip'); print(gg.default_backend())",
    ],
)
def test_a_backend_that_is_selected_is_searched_even_after_an_earlier_probe(code):
    before = ASK + "assert hip()['reason'].startswith('not searched'); gg.devices()\n"
    for first in before, ASK:
        assert run(first + code, NO_NODES, LD_LIBRARY_PATH=directory("7")) == "hip"


@pytest.mark.parametrize("level", ["passive", "active", "isolated"])
def test_the_variables_select_it(level):
    code = ASK + f"print(hip('{level}')['status'])"
    expected = "not-probed" if level == "passive" else "available"
    for environment in {"GPUGLUE_BACKEND": "host,hip", "LD_LIBRARY_PATH": directory("7")}, {"GPUGLUE_HIP_LIBRARY": sim()}:
        assert run(code, NO_NODES, **environment) == expected


def test_auto_does_not_search_it_without_a_node():
    code = "import warnings, gpuglue as gg\nwarnings.simplefilter('ignore'); print(gg.default_backend())"
    others = "^cuda"
    assert run(code, NO_NODES, LD_LIBRARY_PATH=directory("7"), GPUGLUE_BACKEND=others) == "host"
    assert run(code, KFD, LD_LIBRARY_PATH=directory("7"), GPUGLUE_BACKEND=others) == "hip"


def test_a_loaded_copy_is_preferred_even_if_its_file_was_renamed(tmp_path):
    mine = tmp_path / "libamdhip64-0a1b2c3d.so"
    shutil.copy(sim("6"), mine)
    code = f"import ctypes; ctypes.CDLL({str(mine)!r})\n" + PRINT
    record = json.loads(run(code, NO_NODES, LD_LIBRARY_PATH=directory("7")))
    assert (record["status"], record["found_by"]) == ("available", "already loaded")
    assert record["library"] == str(mine)


@pytest.mark.parametrize("package, file", [("torch", "libamdhip64.so"), ("_rocm_sdk_core", "libamdhip64.so.7")])
def test_the_copy_of_a_wheel_comes_before_the_systems(tmp_path, package, file):
    library = tmp_path / package / "lib" / file
    library.parent.mkdir(parents=True)
    (tmp_path / package / "__init__.py").write_text("raise RuntimeError('imported')")
    shutil.copy(sim("7"), library)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + PRINT
    record = json.loads(run(code, LD_LIBRARY_PATH=directory("6")))
    assert (record["library"], record["found_by"]) == (str(library), "search directory")


def test_the_newest_name_is_tried_first():
    path = ":".join(directory(version) for version in ("5", "6", "7"))
    assert found(LD_LIBRARY_PATH=path)["library"] == sim("7")


def test_rocms_own_variable_is_used_to_find_it(tmp_path):
    (tmp_path / "lib").mkdir()
    shutil.copy(sim("6"), tmp_path / "lib")
    record = found(ROCM_PATH=str(tmp_path), LD_LIBRARY_PATH=None)
    if record["found_by"] == "soname":
        pytest.skip("this machine has a HIP runtime")
    assert (record["library"], record["found_by"]) == (str(tmp_path / "lib/libamdhip64.so.6"), "directory")


# ---- differences between the versions ----


@pytest.mark.parametrize("version", VERSIONS)
def test_properties_are_read_in_the_layout_of_the_version(version):
    code = "import gpuglue as gg; d = gg.Device('hip:1'); print(d.arch, d.name, d.pci_bus_id, d.attributes['warp_size'], sep='|')"
    assert run(code, GPUGLUE_HIP_LIBRARY=sim(version)) == "gfx942:sramecc+:xnack-|Simulated MI300X 1|0000:41:00.0|64"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("header, size", ((1, "<I"), (2, "<I"), (3, "<Q")))
def test_a_compressed_bundle_is_passed_to_versions_that_decompress_it(version, header, size):
    """The simulated driver decompresses nothing: its own error shows that it got the bundle."""
    code = (
        "import struct, gpuglue as gg\n"
        f"rest = bytes(24) + b' scale '; length = 8 + struct.calcsize({size!r}) + len(rest)\n"
        f"image = b'CCOB' + struct.pack('<HH', {header}, 1) + struct.pack({size!r}, length) + rest\n"
        "try:\n    gg.Module(image, 'hip')\nexcept gg.Error as error:\n    print(type(error).__name__, error)"
    )
    text = run(code, GPUGLUE_HIP_LIBRARY=sim(version))
    if version in ("5", "5.7"):
        assert text.startswith("UnsupportedError")
        assert "does not decompress it: expected HIP 6.2.0 or newer; or compile with --no-offload-compress" in text
    elif header == 1:
        assert "has version 1, which HIP" in text and "expected version 2 or 3" in text
    else:
        assert text.startswith("InvalidArgumentError") and "hipErrorInvalidImage" in text


@pytest.mark.parametrize("version", VERSIONS)
def test_a_uuid_is_the_number_that_rocminfo_shows(version):
    """HIP returns its digits as text."""
    code = "import gpuglue as gg; d = gg.Device('hip:1'); print(d.uuid, gg.Device(uuid='GPU-8f3c0a51e6d70241') is d)"
    text = run(code, GPUGLUE_HIP_LIBRARY=sim(version))
    assert text == "00000000-0000-0000-8f3c-0a51e6d70241 True"


def test_a_device_without_a_number_has_no_uuid():
    """Its text is "GPU-XX". Two such devices are not the same, so no handle is opened on either."""
    code = (
        "import gpuglue as gg; d = gg.Device('hip:0'); print(d.uuid)\n"
        "try: gg.alloc(4096, d).ipc_handle()\n"
        "except gg.UnsupportedError as error: print('has no UUID' in str(error))"
    )
    assert run(code, GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_UNIQUE_IDS="0").split() == ["None", "True"]


def test_a_device_without_a_name_works_and_has_none_or_an_empty_one_in_the_compatibility_modules():
    code = (
        "import gpuglue as gg; from gpuglue.compat import install; install()\n"
        "import PyGPU, pycuda.driver as drv; drv.init(); print(gg.Device('hip:0').name, [drv.Device(0).name(), PyGPU.cudaDeviceProp(0).name()])"
    )
    names = {"GPUGLUE_BACKEND": "hip", "GPUGLUE_HIP_LIBRARY": sim(), "GPUGLUE_SIM_NAMES": "0"}
    assert run(code, **names) == "None ['', '']"
    assert "None" not in run("import runpy; runpy.run_module('gpuglue', run_name='__main__')", **names)


FIND = """
import gpuglue as gg
for names in ({"pci": "0000:40:00.0"}, {"pci": "0000:40:00.1"}, {"uuid": "GPU-8f3c0a51e6d70240"}, {"uuid": "GPU-8f3c0a51e6d70241"}):
    try: print(gg.Device(**names).ordinal)
    except gg.Error as error: print(error)
"""


@pytest.mark.parametrize("where, expected", [
    ("functions", ["0", "1", "is that of hip:0 and hip:1 and hip:2", "no device has"]), ("numbered", ["0", "1", "0", "1"]),
    ("location", ["is that of hip:0 and hip:1 and hip:2", "no device has", "is that of hip:0 and hip:1 and hip:2", "no device has"]),
])  # fmt: skip
def test_an_address_or_uuid_of_several_partitions_finds_none_of_them(where, expected):
    lines = run(FIND, GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_PARTITIONS=where, GPUGLUE_SIM_DEVICES="3").splitlines()
    assert all(wanted in line for wanted, line in zip(expected, lines, strict=True)), lines


EXPORT = """
import subprocess, sys, numpy as np, gpuglue as gg
buffer = gg.alloc(4096, "hip:1")
gg.fill(buffer, 7)
gg.synchronize("hip:1")
code = "import sys, pickle, gpuglue as gg\\ntry: print(pickle.load(sys.stdin.buffer).open().device.ordinal)\\nexcept gg.Error as error: print(error)"
import pickle
print(subprocess.run([sys.executable, "-c", code], input=pickle.dumps(buffer.ipc_handle()), capture_output=True).stdout.decode())
"""


@pytest.mark.parametrize("where, expected", [
    ("functions", "1"), ("numbered", "1"), ("location", "2 of the 2 devices of hip here have the UUID of the handle, and 2 of them its PCI function 0"),
])  # fmt: skip
def test_a_handle_is_opened_on_the_exporters_partition_or_not_at_all(where, expected):
    assert expected in run(EXPORT, GPUGLUE_HIP_LIBRARY=sim(), GPUGLUE_SIM_PARTITIONS=where)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_operations_are_supported_in_every_version(version):
    code = (
        "import gpuglue as gg; d = gg.Device('hip:0')\n"
        "print(*(name for name in ('stream_host_func', 'pointer_info', 'stream_capturing', 'device_record', 'write_word')"
        " if d.supports(name)))"
    )
    assert run(code, GPUGLUE_HIP_LIBRARY=sim(version)) == "stream_host_func pointer_info stream_capturing"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_has_a_name_and_a_message_in_every_version(version):
    code = (
        "import gpuglue as gg\n"
        "try: gg.alloc(4096, 'hip:0')\n"
        "except gg.Error as error: print(error.code, error.name, error.text, sep='|')"
    )
    text = run(code, GPUGLUE_HIP_LIBRARY=sim(version), GPUGLUE_SIM_FAIL="hipMalloc:1+=719")
    assert text == "719|hipErrorLaunchFailure|a kernel failed"


@pytest.mark.parametrize("version", UP_TO_6)
def test_a_stream_that_was_destroyed_is_an_error_and_no_lost_device(version):
    """Up to HIP 6 it returns 709, "context is destroyed", for each stream that it does not know. HIP 7 reads its memory."""
    code = (
        f"import ctypes, gpuglue as gg\nhip, native = ctypes.CDLL({sim(version)!r}), ctypes.c_void_p()\n"
        "device = gg.Device('hip:0')\n"
        "assert not hip.hipStreamCreateWithFlags(ctypes.byref(native), 1)\n"
        "stream = gg.Stream.borrow(native.value, device)\n"
        "assert not hip.hipStreamDestroy(native)\n"
        "try: stream.synchronize()\n"
        "except gg.DeviceError as error: print(type(error).__name__, error.code, error.text)"
    )
    text = run(code, GPUGLUE_HIP_LIBRARY=sim(version))
    assert text == "DeviceError 709 the stream or its context was destroyed"


@pytest.mark.parametrize("version", VERSIONS)
def test_pinned_memory_is_coherent(version):
    """A kernel that polls a flag in other memory may never see it change. ROCm/clr, ihipHostMalloc: memory is coherent
    without flags, or with one of Coherent, Mapped and NumaUser; Portable alone is not enough."""
    code = (
        f"import ctypes, gpuglue as gg\nhip, flags = ctypes.CDLL({sim(version)!r}), ctypes.c_uint(7)\n"
        "memory = gg.alloc_pinned(4096, gg.Device('hip:0'))\n"
        "assert not hip.hipHostGetFlags(ctypes.byref(flags), ctypes.c_void_p(memory.ptr))\n"
        "print(hex(flags.value))"
    )
    flags = int(run(code, GPUGLUE_HIP_LIBRARY=sim(version)), 16)
    assert flags == 0 or flags & (0x40000000 | 0x2 | 0x20000000)
    assert flags & 1  # portable: used with every device


# ---- the device that is current in the thread ----

def thread(code, version="7", **environment):
    library = sim(version)
    text = (
        f"import ctypes, gpuglue as gg\nhip = ctypes.CDLL({library!r})\n"
        "def now():\n    n = ctypes.c_int(-1); assert not hip.hipGetDevice(ctypes.byref(n)); return n.value\n"
    )
    environment = {"GPUGLUE_BACKEND": "hip", **environment}
    assert run(text + code + "\nprint('well')", GPUGLUE_HIP_LIBRARY=library, **environment) == "well"


@pytest.mark.parametrize("version", UP_TO_6)
def test_an_error_of_an_unknown_stream_is_not_left_for_others_to_find(version):
    thread(
        "d = gg.Device('hip:0')\n"
        "try: gg.Stream.borrow(12345, d).synchronize()\n"
        "except gg.Error: pass\n"
        "assert hip.hipPeekAtLastError() == 0",
        version,
    )


def test_operations_restore_the_device_of_the_caller():
    thread(
        "hip.hipSetDevice(1)\n"
        "d = gg.Device('hip:0'); s = gg.Stream(d); e = gg.Event(d)\n"
        "b = gg.alloc(4096, d); a = gg.to_gpu(bytearray(b'x' * 64), d); a.get()\n"
        "s.record(e); e.synchronize(); d.synchronize(); d.memory_info()\n"
        "assert now() == 1\n"
        "b.close(); s.close(); gg.trim() if hasattr(gg, 'trim') else None\n"
        "assert now() == 1"
    )


def test_operations_restore_the_device_also_when_they_fail():
    thread(
        "hip.hipSetDevice(1); d = gg.Device('hip:0')\n"
        "try: gg.alloc(4096, d)\n"
        "except gg.OutOfMemoryError: pass\n"
        "else: assert False\n"
        "assert now() == 1",
        GPUGLUE_SIM_FAIL="hipMalloc:1+=2",
    )


def test_the_current_device_is_the_one_that_hip_has_in_this_thread():
    thread(
        "assert gg.current_device() == gg.Device('hip:0')\n"
        "hip.hipSetDevice(1); assert gg.current_device() == gg.Device('hip:1')\n"
        "with gg.Device('hip:0'): assert now() == 0\n"
        "assert now() == 1\n"
        "gg.Device('hip:0').set_current(); assert now() == 0"
    )


def test_no_error_of_gpuglue_is_left_for_others_to_find():
    """torch queries the last error after each launch, and raises it."""
    thread(
        "d = gg.Device('hip:0'); s = gg.Stream(d)\n"
        "def clean(): return hip.hipPeekAtLastError() == 0\n"
        "assert clean()\n"
        "a = gg.to_gpu(bytearray(1 << 20), d, stream=s)\n"
        "while not s.done: assert clean()\n"
        "a = gg.to_gpu(bytearray(1 << 20), d, stream=s); s.record().synchronize(); assert clean()\n"
        "b = gg.GPUArray(1 << 20, 'u1', device=d); b.fill(3, stream=s); s.synchronize(); assert clean()\n"
        "b.fill(3); d.synchronize(); assert clean()\n"
        "for n in range(50): b.fill(n, stream=s); s.synchronize(); assert clean()\n"
        "try: gg.alloc(1 << 50, d)\n"
        "except gg.OutOfMemoryError: pass\n"
        "assert clean()\n"
        "del a, b; d.memory_info(); assert clean()"
    )


def test_from_7_on_an_error_of_the_application_stays_for_the_application_to_find():
    """Up to HIP 6 any later call replaces it. torch reads it after a launch, and polls of ours may come in between."""
    thread(
        "from conftest import Gate, gate_library\n"
        "d = gg.Device('hip:0'); s = gg.Stream(d); gate = Gate(gate_library()).hold(s)\n"
        "assert hip.hipSetDevice(99) == 101\n"
        "assert not s.done and not s.record().done\n"
        "assert hip.hipPeekAtLastError() == 101\n"
        "gate.open(); s.synchronize(); d.synchronize()\n"
        "assert hip.hipGetLastError() == 101"
    )


def test_handles_0_and_1_are_the_default_stream_and_2_is_refused():
    thread(
        "d = gg.Device('hip:0')\n"
        "assert gg.Stream.borrow(0, d) == gg.Stream.borrow(1, d) == d.default_stream\n"
        "assert d.default_stream.handle == 0\n"
        "try: gg.Stream.borrow(2, d)\n"
        "except gg.UnsupportedError as error: assert 'per-thread' in str(error), error\n"
        "else: assert False"
    )


def test_nothing_is_left_behind_at_the_end(tmp_path):
    report = tmp_path / "report"
    thread(
        "d = gg.Device('hip:0'); s = gg.Stream(d); a = gg.to_gpu(bytearray(4096), d, stream=s); e = s.record()\n"
        "d.synchronize(); del a, s, e",
        GPUGLUE_SIM_REPORT=str(report),
    )
    assert not any(json.loads(report.read_text())["leaked"].values())


# ---- captures ----

MODES = {"global": 0, "thread-local": 1, "relaxed": 2}
CAPTURE = """
import ctypes, gpuglue as gg
hip, native, graph = ctypes.CDLL({library!r}), ctypes.c_void_p(), ctypes.c_void_p()
device = gg.Device('hip:0')
{before}
assert not hip.hipStreamCreateWithFlags(ctypes.byref(native), 1) and not hip.hipStreamBeginCapture(native, {mode})
waits = hip.sim_calls(b'hipDeviceSynchronize')
{during}
assert hip.sim_calls(b'hipDeviceSynchronize') == waits
print(hip.hipStreamEndCapture(native, ctypes.byref(graph)))
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", VERSIONS)
def test_exported_memory_that_was_released_leaves_a_capture_valid(version, mode):
    """hipDeviceSynchronize invalidates all captures, whatever the modes (ROCm/clr, CHECK_SUPPORTED_DURING_CAPTURE)."""
    before = "kept = [gg.asarray(gg.alloc_pinned(20 << 20, device)).__dlpack__() for _ in range(4)]"
    before += "\narray = gg.zeros(100_000, device=device); capsule = array.__dlpack__(stream=-1); gg.synchronize(device)"
    during = "kept.clear(); del array, capsule; gg.alloc(16, device); gg.alloc(1 << 21, device); gg.trim()"
    code = CAPTURE.format(library=sim(version), before=before, during=during, mode=MODES[mode])
    assert run(code, GPUGLUE_HIP_LIBRARY=sim(version)) == "0"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_full_device_leaves_a_capture_valid(version, mode):
    """The first allocation fits only after the released memory has been freed, the second one never."""
    before = "kept = [gg.zeros(2 << 20, 'u1', device=device).__dlpack__(stream=-1) for _ in range(7)]; gg.synchronize(device)"
    during = "kept.clear(); gg.alloc(12 << 20, device)\ntry: gg.alloc(1 << 50, device)\nexcept gg.OutOfMemoryError: pass"
    during += "\nelse: raise AssertionError('it is larger than the device')"
    code = CAPTURE.format(library=sim(version), before=before, during=during, mode=MODES[mode])
    assert run(code, GPUGLUE_HIP_LIBRARY=sim(version), GPUGLUE_SIM_MEMORY=str(16 << 20)) == "0"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_poll_leaves_the_capture_of_a_busy_stream_valid(version):
    """HIP 6's hipEventQuery invalidates a capture on the stream that the event was recorded on before."""
    before = "hip.sim_hold(1); stream = gg.Stream(device, nonblocking=True); array = gg.empty(100_000, device=device)"
    before += "\narray.fill(1, stream=stream); del array; gg.alloc(1 << 20, device)"
    before += "\nours = ctypes.c_void_p(stream.handle); assert not hip.hipStreamBeginCapture(ours, 2)"
    before += "\nfor n in range(21, 25): gg.alloc(1 << n, device)"
    before += "\nprint(hip.hipStreamEndCapture(ours, ctypes.byref(graph))); hip.sim_hold(0)"
    code = CAPTURE.format(library=sim(version), before=before, during="", mode=0)
    assert run(code, GPUGLUE_HIP_LIBRARY=sim(version)).split() == ["0", "0"]


@pytest.mark.parametrize("version", VERSIONS)
def test_work_on_a_stream_that_was_destroyed_is_polled(version):
    """From 6.2 on hipEventQuery reads the stream's memory, which hipStreamDestroy has freed (ROCm/clr, ihipEventQuery)."""
    code = (
        f"import ctypes, gpuglue as gg\nhip, native = ctypes.CDLL({sim(version)!r}), ctypes.c_void_p()\n"
        "device = gg.Device('hip:0'); array = gg.zeros(100_000, 'f4', device=device); gg.synchronize(device)\n"
        "assert not hip.hipStreamCreateWithFlags(ctypes.byref(native), 1)\n"
        "event = gg.Event(device)\n"
        "array.fill(3, stream=native.value); event.record(gg.Stream.borrow(native.value, device))\n"
        "assert not hip.hipStreamDestroy(native)\n"
        "for n in range(10): gg.alloc(1 << n, device)\n"
        "event.synchronize(); print(event.done, (array.get() == 3).all())"
    )
    assert run(code, GPUGLUE_HIP_LIBRARY=sim(version)) == "True True"
