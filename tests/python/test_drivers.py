"""NVIDIA's driver where it cannot be used: each reason names what was found, what was expected and a remedy."""

import json
import os
import pathlib
import shutil

import pytest
from conftest import BUILT, HANG, nodes, run_python, succeeds, time_limits

ASK = (
    "import gpuglue as gg\n"
    "try: gg.Device()\n"
    "except gg.BackendUnavailableError as error:\n"
    "    (report,) = (r for r in error.reports if r.name == 'cuda')\n"
    "    assert report.status in str(error) and report.reason in str(error), error\n"
    "    print(report.status, report.reason)\n"
    "else: print('available')"
)


def reason_of(library, **environment):
    """Status and reason, which are also in the exception's message: with cuda selected, host is not used instead."""
    return succeeds(
        run_python(ASK, GPUGLUE_BACKEND="cuda", GPUGLUE_DEVICE=None, GPUGLUE_CUDA_LIBRARY=str(library), **environment)
    )


def record(library, level="active", **environment):
    """The record of the driver as a dict."""
    code = (
        "import json, gpuglue as gg\n"
        f"(r,) = (r for r in gg.backends({level!r}) if r.name == 'cuda')\n"
        "print(json.dumps({name: getattr(r, name) for name in type(r).__match_args__}))"
    )
    environment = {"GPUGLUE_BACKEND": "cuda", "GPUGLUE_DEVICE": None, "CUDA_VISIBLE_DEVICES": None, "GPUGLUE_CUDA_LIBRARY": library, **environment}
    return json.loads(succeeds(run_python(code, **environment)))


ANSWERS = {
    2: ("init-failed", "out of memory while it started", "see which processes fill"),
    3: ("forked", "before this process was forked", "'spawn'"),
    304: ("init-failed", "operating system refused", "`dmesg`"),
    101: ("no-device", "sees no device that it can use", "nvidia-smi -L"),
    34: ("driver-stub", "stub", "remove the directory `stubs` from LD_LIBRARY_PATH"),
    100: ("no-device", "sees no device", "nvidia-smi -L"),
    999: ("init-failed", "nvidia_uvm", "modprobe nvidia_uvm"),
    802: ("init-failed", "not ready", "nvidia-fabricmanager"),
    803: ("init-failed", "different driver versions", "reboot or reload"),
    804: ("init-failed", "forward compatibility", "remove its directory from LD_LIBRARY_PATH"),
}


@pytest.mark.parametrize("code", ANSWERS)
def test_the_drivers_error_is_reported_with_its_number_and_a_remedy(sim_library, code):
    message = reason_of(sim_library, GPUGLUE_SIM_FAIL=f"cuInit:1+={code}")
    status, *words = ANSWERS[code]
    assert message.startswith(status) and f"the driver returned {code}, CUDA_ERROR_" in message
    assert all(word in message for word in words)


def test_an_unknown_code_is_reported_with_its_number(sim_library):
    message = reason_of(sim_library, GPUGLUE_SIM_FAIL="cuInit:1+=987")
    assert message.startswith("init-failed") and "987" in message


def test_a_driver_with_devices_is_available(sim_library):
    found = record(sim_library)
    assert (found["status"], found["reason"], found["devices"], found["version"]) == ("available", "", 2, "13.0")
    assert found["library"] == sim_library


def test_an_excluded_driver_is_disabled(sim_library):
    found = record(sim_library, GPUGLUE_BACKEND="^cuda")
    assert found["status"] == "disabled" and "excluded by GPUGLUE_BACKEND=^cuda" in found["reason"]


def test_a_passive_probe_names_the_driver_and_calls_nothing(sim_library, tmp_path):
    report = tmp_path / "report"
    found = record(sim_library, "passive", GPUGLUE_SIM_REPORT=str(report))
    assert (found["status"], found["library"]) == ("not-probed", sim_library)
    assert "has not been initialised" in found["reason"] and json.loads(report.read_text())["calls"] == {}


@pytest.mark.parametrize("code", (100, 999))
@pytest.mark.parametrize("node", ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"))
def test_an_inaccessible_node_is_the_reason_for_no_device_and_for_a_failed_start(sim_library, node, code):
    found = record(sim_library, GPUGLUE_SIM_FAIL=f"cuInit:1+={code}", **nodes(f"{node}=refused:61234"))
    assert found["status"] == "permission-denied" and f"the driver returned {code}" in found["reason"]
    assert f"{node} exists and may not be read and written" in found["reason"] and f"`ls -l {node}`" in found["reason"]
    assert record(sim_library, **nodes(f"{node}=refused:61234"))["status"] == "available"  # a driver that works is not refused


def test_a_child_forked_after_the_first_use_gets_the_fork_as_the_reason(sim_library):
    code = (
        "import os, warnings, gpuglue as gg\nwarnings.simplefilter('ignore')  # newer Pythons warn of every fork\ngg.Device('cuda:0').synchronize()\n"
        "if not os.fork():\n"
        "    print(*(r.status + ' ' + r.reason for r in gg.backends('active') if r.name == 'cuda'), flush=True); os._exit(0)\n"
        "os.wait()"
    )
    message = succeeds(run_python(code, GPUGLUE_BACKEND="cuda", GPUGLUE_DEVICE=None, GPUGLUE_CUDA_LIBRARY=sim_library))
    assert message.startswith("forked it was initialised before this process was forked") and '"spawn"' in message


def test_a_search_that_finds_no_driver_reports_what_to_install():
    found = record(None, CONDA_PREFIX=None)
    if found["status"] != "library-not-found":
        pytest.skip(f"this machine has {found['library']}")
    assert "libcuda.so.1 was not found" in found["reason"] and "set GPUGLUE_CUDA_LIBRARY" in found["reason"]
    assert "libcuda.so.1" in [os.path.basename(path) for path, _ in found["tried"]]


@pytest.mark.parametrize("mask", ["", "-1", "NoDevFiles"])
def test_a_mask_that_hides_every_device_is_named(sim_library, mask):
    message = reason_of(sim_library, CUDA_VISIBLE_DEVICES=mask)
    assert message.startswith("no-device") and f'CUDA_VISIBLE_DEVICES is set to "{mask}": unset it' in message


def test_a_driver_that_is_too_old_is_reported_with_both_versions(sim_library):
    message = reason_of(sim_library, GPUGLUE_SIM_VERSION="10020")
    assert message.startswith("version-unsupported") and "10.2" in message and "11.0" in message and "update" in message


BROKEN = {
    "stub": ("driver-stub", "set GPUGLUE_CUDA_LIBRARY to the driver's libcuda.so.1"),
    "missing": ("symbol-missing", "the driver is too old, or this is another library"),
    "elf32": ("library-load-failed", "is a 32-bit library, but this process is 64-bit"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_library_that_is_not_a_driver_is_reported(sim_library, kind):
    status, words = BROKEN[kind]
    message = reason_of(pathlib.Path(sim_library).parents[1] / "broken" / kind / "libcuda.so.1")
    assert message.startswith(status) and words in message


def test_a_text_file_is_reported_with_its_path_and_a_remedy(tmp_path):
    library = tmp_path / "libcuda.so.1"
    library.write_text("no library")
    message = reason_of(library)
    assert message.startswith("library-load-failed") and f"{library} is not a shared library (a text file" in message
    assert "correct or unset GPUGLUE_CUDA_LIBRARY" in message


def test_a_relative_path_of_the_driver_is_refused():
    message = reason_of("libcuda.so.1")
    assert message.startswith("library-not-found") and "=libcuda.so.1: expected the absolute path" in message


def test_two_copies_of_the_driver_in_one_process_are_reported_with_both_paths(sim_library, tmp_path):
    copies = [shutil.copy(sim_library, tmp_path / name) for name in ("libcuda.so.1", "libcuda-other.so.1")]
    code = (
        f"import ctypes, gpuglue as gg; kept = [ctypes.CDLL(path) for path in {[str(copy) for copy in copies]}]\n"
        "for level in 'passive', 'active':\n"
        "    (record,) = (r for r in gg.backends(level) if r.name == 'cuda')\n"
        "    print(record.found_by, record.library, *record.notes)"
    )
    for line in succeeds(run_python(code, GPUGLUE_BACKEND="cuda", GPUGLUE_CUDA_LIBRARY=None)).splitlines():
        assert line.startswith(f"already loaded {copies[0]} two copies of libcuda")
        assert f"other code uses {copies[1]}" in line


def test_the_exception_lists_every_file_that_was_tried(tmp_path):
    missing = tmp_path / "libcuda.so.1"
    code = ASK.replace("print(report.status, report.reason)", "print(dict(report.tried))")
    message = succeeds(
        run_python(code, GPUGLUE_BACKEND="cuda", GPUGLUE_DEVICE=None, GPUGLUE_CUDA_LIBRARY=str(missing))
    )
    assert str(missing) in message and "No such file" in message


def table_of_an_isolated_probe(library, seconds, **fault):
    arguments = ("-m", "gpuglue", "--probe", "isolated", "--timeout", str(seconds))
    return succeeds(run_python(None, arguments=arguments, GPUGLUE_BACKEND="auto", GPUGLUE_CUDA_LIBRARY=library, **fault))


def test_the_table_of_an_isolated_probe_lists_a_driver_that_crashes(sim_library):
    table = table_of_an_isolated_probe(sim_library, HANG, GPUGLUE_SIM_CRASH="cuInit")
    assert "cuda   crashed" in table and "host   available" in table


def test_the_table_of_an_isolated_probe_lists_a_driver_that_hangs(sim_library):
    for limit in time_limits():
        table = table_of_an_isolated_probe(sim_library, limit, GPUGLUE_SIM_HANG="cuInit")
        assert "cuda   timed-out" in table
        if "host   timed-out" not in table:
            break
    assert "host   available" in table


def test_a_crash_is_reported_with_the_last_output_of_the_driver(sim_library):
    code = f"import gpuglue as gg; print(*(r.reason for r in gg.backends('isolated', timeout={HANG}) if r.name == 'cuda'))"
    message = succeeds(run_python(code, GPUGLUE_BACKEND="auto", GPUGLUE_CUDA_LIBRARY=sim_library, GPUGLUE_SIM_CRASH="cuInit"))
    assert "was killed by SIGABRT" in message


# ---- named, and missing ---------------------------------------------------------------------------------


def test_a_missing_backend_that_was_named_is_never_replaced_by_host(tmp_path):
    code = (
        "import gpuglue as gg\n"
        "calls = [gg.default_backend, gg.Device, gg.current_device, gg.Stream, lambda: gg.alloc(1), lambda: gg.zeros(1),\n"
        "         gg.synchronize, lambda: gg.devices('cuda'), lambda: gg.Device('cuda:0')]\n"
        "for call in calls:\n"
        "    try: print('made', call())\n"
        "    except gg.BackendUnavailableError as error: assert 'library-not-found' in str(error), error\n"
        "print(gg.available_backends(), gg.devices())"
    )
    environment = {"GPUGLUE_BACKEND": "cuda", "GPUGLUE_CUDA_LIBRARY": str(tmp_path / "none"), "GPUGLUE_DEVICE": None}
    assert succeeds(run_python(code, **environment)) == "[] []"


def test_every_name_of_a_list_gives_its_reason(tmp_path):
    code = "import gpuglue as gg\ntry: gg.Device()\nexcept gg.BackendUnavailableError as error: print(error)"
    environment = {"GPUGLUE_CUDA_LIBRARY": str(tmp_path / "none"), "GPUGLUE_DEVICE": None}
    message = succeeds(run_python(code, GPUGLUE_BACKEND="cuda,metal,vulkan", **environment))
    assert "GPUGLUE_BACKEND=cuda,metal,vulkan" in message and "cuda: library-not-found" in message
    assert "metal: plugin-not-found" in message and "vulkan: plugin-not-found" in message


def test_a_caret_among_names_is_reported_with_its_place():
    code = "import gpuglue as gg\ntry: gg.Device()\nexcept gg.InvalidArgumentError as error: print(error)"
    for selection in ("host,^cuda", "^cuda,^host"):
        message = succeeds(run_python(code, GPUGLUE_BACKEND=selection, GPUGLUE_DEVICE=None))
        assert f"GPUGLUE_BACKEND={selection} has '^' after its beginning" in message
        assert "once, at the beginning" in message and "expected auto, name[,name...] or ^name[,name...]" in message


# ---- plugins ------------------------------------------------------------------------------------------------


def refusal(path):
    """The table's row for an entry of GPUGLUE_PLUGIN_PATH."""
    result = run_python(None, arguments=("-m", "gpuglue", "--timeout", str(HANG)), GPUGLUE_BACKEND="host", GPUGLUE_PLUGIN_PATH=path, GPUGLUE_LOG="error")
    return succeeds(result).partition("GPUGLUE_PLUGIN_PATH ")[2]


@pytest.mark.parametrize("path, why", [("plugins", "it is relative"), (":", "it is empty"), (".", "it is relative")])
def test_a_relative_or_empty_plugin_path_is_refused(path, why):
    assert f"was refused: {why}" in refusal(path) and "give absolute directories or files" in refusal(path)


def test_a_plugin_path_that_others_may_write_to_is_refused_naming_the_mode(tmp_path):
    tmp_path.chmod(0o777)
    text = refusal(str(tmp_path))
    assert f"{tmp_path} is writable by others (mode 0777)" in text and f"run chmod o-w {tmp_path}" in text


def fixture_plugin(name):
    """A plugin that the build of the core's tests made."""
    path = BUILT / "core" / "plugins" / f"gpuglue_{name}.so"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    return path


BAD_PLUGINS = {
    "other_major": "built for plugin ABI 2.0, but this gpuglue has 1.0: install a plugin of the same major version",
    "missing_op": "operation table lacks mem_alloc, which is required",
    "wrong_magic": "magic 0x12345678, expected 0x42474747",
}


@pytest.mark.parametrize("name", BAD_PLUGINS)
def test_an_incompatible_plugin_is_reported_with_its_path_and_the_others_work(name):
    plugin = fixture_plugin(name)
    code = f"import gpuglue as gg; print(*(r.status + ' ' + r.reason for r in gg.backends() if r.name == {name!r}), gg.default_backend())"
    message = succeeds(run_python(code, GPUGLUE_BACKEND=f"{name},host", GPUGLUE_PLUGIN_PATH=str(plugin), GPUGLUE_LOG="error"))
    assert message.startswith(f"plugin-abi-mismatch plugin {plugin} cannot be used") and BAD_PLUGINS[name] in message
    assert message.endswith("host")
