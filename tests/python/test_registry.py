"""Which backends there are, the default, and what is said about those that are missing."""

import os
import re

import pytest
from conftest import NO_GPU, run_python, succeeds

import gpuglue as gg
from gpuglue import _search


def test_every_backend_has_a_record_with_its_name_and_status(backend):
    records = gg.backends()
    assert [record.status for record in records if record.name == backend] == ["available"]
    assert all(record.status == "available" or record.reason for record in records)


def test_records_tell_the_library_its_version_and_the_paths_tried(backend):
    (record,) = (record for record in gg.backends("active") if record.name == backend)
    assert record.devices == len(gg.devices(backend))
    assert isinstance(record.tried, tuple) and isinstance(record.notes, tuple)
    assert all(isinstance(text, str) for text in (record.library, record.version, record.plugin))


def test_an_unknown_probe_level_is_refused_with_the_ones_there_are():
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


def test_devices_of_an_unknown_backend_name_those_there_are():
    with pytest.raises(gg.BackendUnavailableError, match="plugin-not-found.*host"):
        gg.devices("nvidia")


def test_a_named_backend_that_is_missing_is_an_error_with_every_reason():
    code = (
        "import gpuglue as gg\n"
        "try: gg.Device()\n"
        "except gg.BackendUnavailableError as error:\n"
        "    assert error.status == 'ERR_UNAVAILABLE'\n"
        "    assert [r.status for r in error.reports if r.name == 'nvidia'] == ['plugin-not-found']\n"
        "    print(error)"
    )
    message = succeeds(run_python(code, GPUGLUE_BACKEND="nvidia", GPUGLUE_DEVICE=None))
    assert "nvidia" in message and "gpuglue_nvidia.so" in message and "host" in message


def test_names_and_exclusions_do_not_mix():
    code = "import gpuglue as gg\ntry: gg.default_backend()\nexcept ValueError as error: print(error)"
    assert "host,^cuda mixes '^' with names" in succeeds(run_python(code, GPUGLUE_BACKEND="host,^cuda"))


def test_auto_without_a_gpu_falls_to_host_with_one_warning():
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
        "print(*host('passive'), *host('isolated', timeout=60.0), *host('active'), flush=True)\n"
        "if host('passive') == ['available']: gg.zeros(1)\n"
        "if not os.fork(): print(*host('active'), flush=True); os._exit(0)\n"
        "os.wait()"
    )
    assert succeeds(run_python(code, GPUGLUE_BACKEND="host", GPUGLUE_DEVICE=None)).split() == ["available"] * 3 + ["forked"]
    assert succeeds(run_python(code, GPUGLUE_BACKEND="^host", GPUGLUE_DEVICE=None)).split() == ["disabled"] * 4


def test_use_backend_beats_the_variable():
    code = "import gpuglue as gg; gg.use_backend('host'); print(gg.default_backend(), gg.current_device().backend)"
    assert succeeds(run_python(code, GPUGLUE_BACKEND="nvidia", GPUGLUE_DEVICE=None)) == "host host"


def test_use_backend_that_fails_gives_every_reason(backend):
    with pytest.raises(gg.BackendUnavailableError, match="nvidia.*amd"):
        gg.use_backend("nvidia,amd")
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
    assert result.stdout.strip() == "['plugin-load-failed']" and "is not a library" in result.stderr


def announce(folder, value, name="other"):
    """A package's metadata with one entry point, and code that looks for it and prints what was found."""
    info = folder / "other-1.0.dist-info"
    info.mkdir()
    os.chmod(folder, 0o755)
    (info / "METADATA").write_text("Name: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gpuglue.backends]\n{name} = {value}\n")
    return (
        f"import sys; sys.path.insert(0, {str(folder)!r}); import gpuglue as gg\n"
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
    code = announce(tmp_path, value, name)
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
    code = announce(tmp_path, "no_such_module:path")
    code += "\ntry: gg.Device()\nexcept gg.BackendUnavailableError as e: print(e)"
    result = run_python(code, GPUGLUE_BACKEND="other")
    assert result.returncode == 0 and "no_such_module" in result.stdout.splitlines()[1]


def test_an_entry_point_that_names_a_package_imports_nothing(tmp_path):
    code = announce(tmp_path, "quiet") + "; print(sorted({'quiet', 'numpy', 'importlib.metadata'} & {*sys.modules}))"
    (tmp_path / "quiet").mkdir(mode=0o755)
    (tmp_path / "quiet" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "quiet" / "gpuglue_other.so").write_text("no library")
    lines = run_python(code).stdout.splitlines()
    assert lines[0].startswith("plugin-load-failed") and "is not a library" in lines[0]
    assert lines[1] == "['importlib.metadata']"


def test_importing_gpuglue_looks_at_no_entry_point(tmp_path):
    announce(tmp_path, "other:path")
    (tmp_path / "other.py").write_text("raise RuntimeError('imported')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import gpuglue\n"
    code += "print('other' in sys.modules, 'importlib.metadata' in sys.modules)"
    assert succeeds(run_python(code)) == "False False"


def test_folders_of_the_vendors_wheels_are_searched_without_importing_them(tmp_path):
    for folder in ("torch/lib", "_rocm_sdk_core/lib", "nvidia/cu99/lib"):
        (tmp_path / folder).mkdir(parents=True)
    for package in ("torch", "_rocm_sdk_core"):
        (tmp_path / package / "__init__.py").write_text("raise RuntimeError('imported')")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from gpuglue import _search; print(*_search.library_directories())"
    )
    found = succeeds(run_python(code)).split()
    assert succeeds(run_python(f"import os; os.chdir({str(tmp_path)!r}); " + code)).find(str(tmp_path)) < 0
    assert found[:2] == [f"{tmp_path}/torch/lib", f"{tmp_path}/_rocm_sdk_core/lib"]
    assert f"{tmp_path}/nvidia/cu99/lib" in found


def test_a_current_directory_that_was_removed_takes_no_backend_away(tmp_path, backend):
    (tmp_path / "gone").mkdir()
    (tmp_path / "torch/lib").mkdir(parents=True)
    (tmp_path / "torch/__init__.py").touch()
    code = (
        f"import os, sys; sys.path[:0] = ['', {str(tmp_path)!r}]; os.chdir({str(tmp_path / 'gone')!r}); os.rmdir(os.getcwd())\n"
        "import gpuglue as gg; from gpuglue import _search\n"
        "print(gg.default_backend(), *_search.library_directories())"
    )
    found = succeeds(run_python(code)).split()
    assert found[0] == backend and f"{tmp_path}/torch/lib" in found


def test_a_search_that_failed_is_begun_again_by_the_next_call():
    code = (
        "import gpuglue as gg; from gpuglue import _search\n"
        "right = _search.library_directories\n"
        "def wrong(): raise MemoryError('just now')\n"
        "_search.library_directories = wrong\n"
        "try: gg.backends()\n"
        "except MemoryError as error: print(error)\n"
        "seen = []; _search.library_directories = lambda: seen.append(1) or right()\n"
        "gg.backends(); gg.backends(); print(seen)"
    )
    assert succeeds(run_python(code)).splitlines() == ["just now", "[1]"]


def test_a_folder_that_may_not_be_read_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "nvidia").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_search.os, "listdir", lambda folder: (_ for _ in ()).throw(PermissionError(folder)))
    assert not [folder for folder in _search.library_directories() if "nvidia" in folder]


def test_an_error_about_one_backend_names_it_and_lists_no_file_of_another(tmp_path):
    code = (
        "import gpuglue as gg\n"
        "for name in ('nosuch', 'cuda'):\n"
        "    try: gg.devices(name)\n"
        "    except gg.BackendUnavailableError as error: print(error.backend, {line.split(':')[0].strip() for line in str(error).splitlines()[1:]})"
    )
    assert succeeds(run_python(code, GPUGLUE_BACKEND="auto", **NO_GPU)) == "nosuch set()\ncuda {'cuda'}"
