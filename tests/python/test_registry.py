"""The list of backends, the default, and the reasons for those that are missing."""

import os
import pathlib
import re
import shutil
import zipfile

import pytest
from conftest import HANG, NO_GPU, run_python, succeeds

import gpuglue as gg
from gpuglue import _discovery


def test_every_backend_has_a_record_with_its_name_and_status(backend):
    records = gg.backends()
    assert [record.status for record in records if record.name == backend] == ["available"]
    assert all(record.status == "available" or record.reason for record in records)


def test_records_name_the_library_its_version_and_the_paths_tried(backend):
    (record,) = (record for record in gg.backends("active") if record.name == backend)
    assert record.devices == len(gg.devices(backend))
    assert isinstance(record.tried, tuple) and isinstance(record.notes, tuple)
    assert all(isinstance(text, str) for text in (record.library, record.version, record.plugin))


def test_an_unknown_probe_level_is_refused_with_the_known_ones():
    with pytest.raises(gg.InvalidArgumentError, match="'deep'.*'passive', 'active' or 'isolated'"):
        gg.backends("deep")


def test_available_backends_begin_with_the_chosen_one(backend):
    code = "import gpuglue as gg; print(*gg.available_backends(), gg.default_backend())"
    assert succeeds(run_python(code)) == f"{backend} {backend}"  # GPUGLUE_BACKEND excludes all others


def test_devices_are_sorted_by_ordinal_and_the_same_objects_every_time(backend):
    devices = gg.devices(backend)
    assert [device.ordinal for device in devices] == list(range(len(devices)))
    ours = [device for device in gg.devices() if device.backend == backend]  # others may be open as well
    assert ours == devices and all(map(lambda a, b: a is b, ours, devices))


def test_devices_of_an_unknown_backend_raises_with_the_known_names():
    with pytest.raises(gg.BackendUnavailableError, match="plugin-not-found.*host"):
        gg.devices("metal")


def test_a_named_backend_that_is_missing_is_an_error_with_every_reason():
    code = (
        "import gpuglue as gg\n"
        "try: gg.Device()\n"
        "except gg.BackendUnavailableError as error:\n"
        "    assert error.status == 'ERR_UNAVAILABLE'\n"
        "    assert [r.status for r in error.reports if r.name == 'metal'] == ['plugin-not-found']\n"
        "    print(error)"
    )
    message = succeeds(run_python(code, GPUGLUE_BACKEND="metal", GPUGLUE_DEVICE=None))
    assert "metal" in message and "gpuglue_metal.so" in message and "host" in message


def test_names_and_exclusions_do_not_mix():
    code = "import gpuglue as gg\ntry: gg.default_backend()\nexcept ValueError as error: print(error)"
    assert "host,^cuda has '^' after its beginning" in succeeds(run_python(code, GPUGLUE_BACKEND="host,^cuda"))


def test_auto_without_a_gpu_selects_host_with_one_warning():
    code = (
        "import gpuglue as gg, warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    devices = [gg.current_device(), gg.Device(), gg.Device(0)]\n"
        "assert [w.category for w in caught] == [gg.NoDeviceWarning], caught\n"
        "print(gg.default_backend(), *{device.backend for device in devices})"
    )
    assert succeeds(run_python(code, GPUGLUE_BACKEND="auto", GPUGLUE_DEVICE=None, **NO_GPU)) == "host host"


def test_host_by_name_gives_no_warning():
    code = "import gpuglue as gg; print(gg.current_device().backend)"
    assert succeeds(run_python(code, GPUGLUE_BACKEND="host", GPUGLUE_DEVICE=None, arguments=("-W", "error"))) == "host"


def test_host_is_available_at_every_level_disabled_if_excluded_and_forked_in_a_child():
    code = (
        "import os, warnings, gpuglue as gg\nwarnings.simplefilter('ignore')  # newer Pythons warn of every fork\n"
        "def host(*level, **options): return [r.status for r in gg.backends(*level, **options) if r.name == 'host']\n"
        f"print(*host('passive'), *host('isolated', timeout={HANG}), *host('active'), flush=True)\n"
        "if host('passive') == ['available']: gg.zeros(1)\n"
        "if not os.fork(): print(*host('active'), flush=True); os._exit(0)\n"
        "os.wait()"
    )
    assert succeeds(run_python(code, GPUGLUE_BACKEND="host", GPUGLUE_DEVICE=None)).split() == ["available"] * 3 + ["forked"]
    assert succeeds(run_python(code, GPUGLUE_BACKEND="^host", GPUGLUE_DEVICE=None)).split() == ["disabled"] * 4


def test_use_backend_takes_precedence_over_the_variable():
    code = "import gpuglue as gg; gg.use_backend('host'); print(gg.default_backend(), gg.current_device().backend)"
    assert succeeds(run_python(code, GPUGLUE_BACKEND="metal", GPUGLUE_DEVICE=None)) == "host host"


def test_use_backend_that_fails_reports_every_reason(backend):
    with pytest.raises(gg.BackendUnavailableError, match="metal.*vulkan"):
        gg.use_backend("metal,vulkan")
    assert gg.default_backend() == backend


def test_a_plugin_of_another_package_is_found_by_its_entry_point(tmp_path):
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gpuglue.backends]\nother = other:path\n")
    (tmp_path / "other.py").write_text(f"def path(): return {str(tmp_path / 'gpuglue_other.so')!r}\n")
    (tmp_path / "gpuglue_other.so").write_text("no library")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import gpuglue as gg\n"
        "print([r.status for r in gg.backends() if r.name == 'other'])"
    )
    os.chmod(tmp_path, 0o755)
    result = run_python(code, GPUGLUE_BACKEND="auto")
    assert result.stdout.strip() == "['plugin-load-failed']" and "is not a shared library" in result.stderr


def test_plugins_beside_the_library_are_not_taken_from_a_later_directory(tmp_path):
    """dlopen("lib/libgpuglue.so") gives the library a relative name, which means another file after a chdir."""
    for name in ("first", "second"):
        (tmp_path / name / "lib").mkdir(parents=True)
        (tmp_path / name / "lib").chmod(0o755)
        shutil.copy(gg._core._library()[0], tmp_path / name / "lib" / "libgpuglue.so")
        (tmp_path / name / "lib" / f"gpuglue_{name}.so").write_text("no library")
    code = (
        f"import ctypes, os; os.chdir({str(tmp_path / 'first')!r}); core = ctypes.CDLL('lib/libgpuglue.so'); os.chdir('../second')\n"
        "device = ctypes.c_void_p(); core.gg_device_get(b'cuda', 0, ctypes.byref(device))"
    )
    result = run_python(code, GPUGLUE_LOG="warn", GPUGLUE_BACKEND=None, GPUGLUE_PLUGIN_PATH=None)
    assert "first/lib/gpuglue_first.so" in result.stderr and "gpuglue_second" not in result.stderr


def test_a_negative_device_names_no_backend():
    text = run_python("import gpuglue as gg; gg.current_device()", GPUGLUE_BACKEND="host", GPUGLUE_DEVICE="-1").stderr
    assert 'GPUGLUE_DEVICE=-1: "-1" does not name a device: expected' in text and "another backend" not in text


def test_a_handle_that_is_not_a_stream_of_host_is_refused_with_what_to_pass():
    with pytest.raises(gg.InvalidArgumentError, match="0x0 is not a stream of this device: pass a gpuglue stream"):
        gg.zeros(4, device="host:0").get(stream=0)


def test_an_import_from_an_archive_is_refused_with_the_reason(tmp_path):
    package = pathlib.Path(gg.__file__).parent
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for file in package.rglob("*.py"):
            archive.write(file, file.relative_to(package.parent))
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'all.zip')!r}); import gpuglue"
    text = run_python(code, arguments=("-P",)).stderr
    assert "all.zip/gpuglue: its extension module must be a file" in text and "circular" not in text.splitlines()[-1]


def test_a_second_copy_in_a_process_is_refused_with_the_reason(tmp_path):
    root = pathlib.Path(gg.__file__).parent.parent
    shutil.copytree(root, tmp_path / "site", ignore=lambda _, names: [name for name in names if "gpuglue" not in name and _ == str(root)])
    code = (
        "import sys, gpuglue; [sys.modules.pop(name) for name in list(sys.modules) if name.partition('.')[0] == 'gpuglue']\n"
        f"sys.path.insert(0, {str(tmp_path / 'site')!r}); import gpuglue"
    )
    last = run_python(code, LD_LIBRARY_PATH=None).stderr.splitlines()[-1]
    assert "ImportError" in last and "LD_LIBRARY_PATH" not in last


def declare_entry_point(directory, value, name="other"):
    """A package's metadata with one entry point, and code that searches for it and prints the result."""
    info = directory / "other-1.0.dist-info"
    info.mkdir()
    os.chmod(directory, 0o755)
    (info / "METADATA").write_text("Name: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gpuglue.backends]\n{name} = {value}\n")
    return (
        f"import sys; sys.path.insert(0, {str(directory)!r}); import gpuglue as gg\n"
        f"found = [i for i in gg.backends() if i.name == {name!r}]; print(*(i.status + ' ' + i.reason for i in found))"
    )


BROKEN = {
    "no_such_module:path": "ModuleNotFoundError",
    "other:path": "SystemExit: 3",
    "other:relative": "is not the absolute path of a plugin",
    "other:nothing": "TypeError",
    "other:missing": "AttributeError",
    "no_such_package": "there is no package 'no_such_package'",
    "empty": "there is no .*/empty/gpuglue_other.so",
}


@pytest.mark.parametrize("value", BROKEN)
@pytest.mark.parametrize("name", ["other", "Not a name"])
def test_an_entry_point_that_fails_becomes_the_reason(tmp_path, value, name):
    code = declare_entry_point(tmp_path, value, name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.py").write_text(
        "def path(): raise SystemExit(3)\ndef relative(): return 'x/gpuglue_other.so'\ndef nothing(): return None\n"
    )
    result = run_python(code, arguments=["-W", "error"])
    assert result.returncode == 0, result.stderr
    wanted = BROKEN[value].replace("gpuglue_other", f"gpuglue_{name}")
    start = f"plugin-load-failed entry point '{name}' = '{value}' of gpuglue.backends"
    assert re.fullmatch(f"{start}.*{wanted}.*\n", result.stdout)


def test_a_broken_entry_point_is_the_reason_of_a_selection_too(tmp_path):
    code = declare_entry_point(tmp_path, "no_such_module:path")
    code += "\ntry: gg.Device()\nexcept gg.BackendUnavailableError as e: print(e)"
    result = run_python(code, GPUGLUE_BACKEND="other")
    assert result.returncode == 0 and "no_such_module" in result.stdout.splitlines()[1]


def test_an_entry_point_that_names_a_package_imports_nothing(tmp_path):
    code = declare_entry_point(tmp_path, "quiet") + "; print(sorted({'quiet', 'numpy', 'importlib.metadata'} & {*sys.modules}))"
    (tmp_path / "quiet").mkdir(mode=0o755)
    (tmp_path / "quiet" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "quiet" / "gpuglue_other.so").write_text("no library")
    lines = run_python(code).stdout.splitlines()
    assert lines[0].startswith("plugin-load-failed") and "is not a shared library" in lines[0]
    assert lines[1] == "['importlib.metadata']"


def test_importing_gpuglue_reads_no_entry_points(tmp_path):
    declare_entry_point(tmp_path, "other:path")
    (tmp_path / "other.py").write_text("raise RuntimeError('imported')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import gpuglue\n"
    code += "print('other' in sys.modules, 'importlib.metadata' in sys.modules)"
    assert succeeds(run_python(code)) == "False False"


def test_directories_of_the_vendors_wheels_are_searched_without_importing_them(tmp_path):
    for directory in ("torch/lib", "_rocm_sdk_core/lib", "nvidia/cu99/lib"):
        (tmp_path / directory).mkdir(parents=True)
    for package in ("torch", "_rocm_sdk_core"):
        (tmp_path / package / "__init__.py").write_text("raise RuntimeError('imported')")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from gpuglue import _discovery; print(*_discovery.library_directories())"
    )
    found = succeeds(run_python(code)).split()
    assert succeeds(run_python(f"import os; os.chdir({str(tmp_path)!r}); " + code)).find(str(tmp_path)) < 0
    assert found[:2] == [f"{tmp_path}/torch/lib", f"{tmp_path}/_rocm_sdk_core/lib"]
    assert f"{tmp_path}/nvidia/cu99/lib" in found


def test_a_removed_current_directory_disables_no_backend(tmp_path, backend):
    (tmp_path / "gone").mkdir()
    (tmp_path / "torch/lib").mkdir(parents=True)
    (tmp_path / "torch/__init__.py").touch()
    code = (
        f"import os, sys; sys.path[:0] = ['', {str(tmp_path)!r}]; os.chdir({str(tmp_path / 'gone')!r}); os.rmdir(os.getcwd())\n"
        "import gpuglue as gg; from gpuglue import _discovery\n"
        "print(gg.default_backend(), *_discovery.library_directories())"
    )
    found = succeeds(run_python(code)).split()
    assert found[0] == backend and f"{tmp_path}/torch/lib" in found


def test_the_next_call_repeats_a_search_that_failed():
    code = (
        "import gpuglue as gg; from gpuglue import _discovery\n"
        "right = _discovery.library_directories\n"
        "def wrong(): raise MemoryError('just now')\n"
        "_discovery.library_directories = wrong\n"
        "try: gg.backends()\n"
        "except MemoryError as error: print(error)\n"
        "seen = []; _discovery.library_directories = lambda: seen.append(1) or right()\n"
        "gg.backends(); gg.backends(); print(seen)"
    )
    assert succeeds(run_python(code)).splitlines() == ["just now", "[1]"]


def test_a_directory_without_read_permission_is_skipped(tmp_path, monkeypatch):
    (tmp_path / "nvidia").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_discovery.os, "listdir", lambda directory: (_ for _ in ()).throw(PermissionError(directory)))
    assert not [directory for directory in _discovery.library_directories() if "nvidia" in directory]


def test_an_error_about_one_backend_names_it_and_lists_no_file_of_another(tmp_path):
    code = (
        "import gpuglue as gg\n"
        "for name in ('nosuch', 'cuda'):\n"
        "    try: gg.devices(name)\n"
        "    except gg.BackendUnavailableError as error:\n"
        "        *backends, last = str(error).splitlines()[1:]\n"
        "        print(error.backend, {line.split(':')[0].strip() for line in backends}, 'gpuglue doctor' in last)"
    )
    assert succeeds(run_python(code, GPUGLUE_BACKEND="auto", **NO_GPU)) == "nosuch set() True\ncuda {'cuda'} True"
