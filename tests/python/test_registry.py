"""Which backends there are, the default, and what is said about those that are missing."""

import os

import pytest
from conftest import NO_GPU, run_python, succeeds

import gpuglue as gg


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
    assert gg.available_backends() == [backend]  # GPUGLUE_BACKEND excludes all others
    assert gg.default_backend() == backend


def test_devices_are_sorted_by_ordinal_and_the_same_objects_every_time(backend):
    devices = gg.devices(backend)
    assert [device.ordinal for device in devices] == list(range(len(devices)))
    assert gg.devices() == devices and all(map(lambda a, b: a is b, gg.devices(), devices))


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


def test_an_entry_point_that_fails_is_a_warning(tmp_path):
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gpuglue.backends]\nother = no_such_module:path\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import gpuglue as gg; print(len(gg.backends()) > 0)"
    result = run_python(code)
    assert result.stdout.strip() == "True" and "no_such_module" in result.stderr


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
