"""Device.stats(): the same test for every backend; the simulated management libraries have known values."""

import os
import pathlib
import threading

import pytest
from conftest import MONITORS, built, needed, run_python, succeeds

import gpuglue as gg

FLOATS = ("compute_utilization", "memory_utilization", "power", "temperature", "compute_clock", "memory_clock")


@pytest.fixture
def simulated_stats(device):
    """A function that reads the statistics of a device twice, since load and power may be counters."""
    variable = MONITORS.get(device.backend, ("",))[0]
    if not os.environ.get("GPUGLUE_SIM_MONITOR") or not pathlib.Path(os.environ.get(variable, "/nonexistent")).exists():
        pytest.skip(f"the statistics of {device} are not simulated")

    def read(device=device):
        device.stats()
        return device.stats()

    return read


@pytest.fixture
def odd(monkeypatch):
    """A function that makes the simulated library behave as another version does."""
    return lambda word: monkeypatch.setenv("GPUGLUE_SIM_MONITOR_ODD", word)


def stats_or_skip(device):
    try:
        return device.stats()
    except gg.UnsupportedError as error:
        assert str(error).startswith(f"{device.backend}: device_stats") or "device_stats" in str(error)
        pytest.skip(str(error))


def test_each_value_is_of_its_type_or_none(device):
    stats = stats_or_skip(device)
    assert all(value is None or isinstance(value, float) for value in (getattr(stats, name) for name in FLOATS))
    assert stats.memory_total is None or 0 <= stats.memory_used <= stats.memory_total
    assert stats.throttle_reasons is None or all(isinstance(word, str) for word in stats.throttle_reasons)
    assert stats.processes is None or all(isinstance(process.pid, int) for process in stats.processes)
    assert isinstance(stats.source, str) and stats.source


def test_the_representation_has_the_names_of_the_values(device):
    text = repr(stats_or_skip(device))
    assert text.startswith("gpuglue.DeviceStats(compute_utilization=") and "memory_total=" in text


def test_statistics_are_supported_exactly_if_they_can_be_read(device):
    try:
        device.stats()
    except gg.UnsupportedError:
        assert not device.supports("device_stats")
    else:
        assert device.supports("device_stats")


def test_the_load_of_the_processor_is_that_since_the_previous_call():
    device = gg.Device("host")
    device.stats()
    until = os.times()
    while (now := os.times()).user + now.system < until.user + until.system + 0.1:
        pass  # the kernel counts in hundredths of a second
    assert 0 < device.stats().compute_utilization <= 100
    assert device.stats().source == "/proc and /sys"


def test_each_device_has_its_own_simulated_values(simulated_stats, backend):
    for number, device in enumerate(gg.devices(backend)[:2]):
        stats = simulated_stats(device)
        assert stats.compute_utilization == pytest.approx(40 + number)
        assert stats.memory_utilization in (None, 10 + number)
        assert (stats.memory_used, stats.memory_total) == ((number + 1) << 30, 64 << 30)
        assert stats.power == pytest.approx((150 if stats.source == "AMD SMI" else 150.5) + number)  # AMD SMI has whole watts
        assert stats.temperature == 60 + number
        assert (stats.compute_clock, stats.memory_clock) == (1500 + number, 1200 + number)
        assert stats.throttle_reasons in (None, ("power", "thermal"))
        assert stats.processes == ((os.getpid(), 256 << 20), (4242, 128 << 20))


def test_a_slice_of_a_gpu_has_its_own_memory_and_none_for_what_it_shares(simulated_stats, odd, device):
    if device.backend != "cuda":
        pytest.skip("slices are NVIDIA's")
    odd("mig")
    stats = simulated_stats()
    assert (stats.compute_utilization, stats.power, stats.temperature, stats.throttle_reasons) == (None,) * 4
    assert (stats.memory_used, stats.memory_total) == (1 << 30, 8 << 30) and stats.processes[1].memory is None


SLICE = "import gpuglue as gg\nfor d in gg.devices('cuda'):\n    try: print(d.stats().memory_used)\n    except gg.UnsupportedError as e: print(e)"


def test_slices_of_one_gpu_have_their_own_values(simulated_stats, device):
    if device.backend != "cuda":
        pytest.skip("slices are NVIDIA's")
    assert run_python(SLICE, GPUGLUE_SIM_MIG="1", CUDA_VISIBLE_DEVICES=None).stdout.split() == [str(1 << 30), str(2 << 30)]


FOUND = """
import gpuglue as gg
first, second = gg.devices("cuda")
print(first.pci_bus_id == second.pci_bus_id, gg.Device(uuid="MIG-" + first.uuid) is first, gg.Device(uuid="MIG-" + second.uuid) is second)
print(gg.Device(uuid="MIG-" + second.uuid.upper()) is second, gg.Device("uuid:MIG-" + second.uuid) is second)
try: gg.Device(uuid="MIG-00000000-0000-0000-0000-000000000000")
except gg.Error as error: print(type(error).__name__, error)
"""


def test_a_slice_is_found_by_its_uuid(sim_library):
    environment = {"GPUGLUE_BACKEND": "cuda", "GPUGLUE_DEVICE": None, "CUDA_VISIBLE_DEVICES": None, "GPUGLUE_CUDA_LIBRARY": sim_library,
                   "GPUGLUE_SIM_DEVICES": "2"}
    lines = succeeds(run_python(FOUND, GPUGLUE_SIM_MIG="1", **environment)).splitlines()
    assert lines[:2] == ["True True True", "True True"], lines
    assert lines[2].startswith("InvalidArgumentError no device has the UUID") and "00000000-0000" in lines[2]


def test_a_driver_that_reports_the_uuid_of_the_gpu_for_its_slices_gives_no_values(simulated_stats, device):
    """CUDA before 11.4: the values of the whole GPU, or of its first slice, would be wrong."""
    if device.backend != "cuda":
        pytest.skip("slices are NVIDIA's")
    if "LD_PRELOAD" in os.environ:
        pytest.skip("the library that hides functions cannot be loaded beside a sanitizer")
    hidden = {"LD_PRELOAD": str(needed("GPUGLUE_TEST_HIDDEN_LIBRARY", "libhidden.so")), "GPUGLUE_TEST_HIDDEN": "cuDeviceGetUuid_v2"}
    text = run_python(SLICE, GPUGLUE_SIM_MIG="1", CUDA_VISIBLE_DEVICES=None, **hidden).stdout
    assert text.count("the GPU at 0000:10:00.0 has MIG slices, and this driver does not report which") == 2


# ---- partitions of AMD's GPUs: which number the drivers report where is in tests/sim/README.md

PARTS = "import gpuglue as gg\nfor d in gg.devices('hip'):\n    try: print(d.stats().memory_used)\n    except gg.UnsupportedError as e: print(e)"


def partitions(device, where, **environment):
    if device.backend != "hip":
        pytest.skip("partitions are AMD's")
    return run_python(PARTS, GPUGLUE_SIM_PARTITIONS=where, GPUGLUE_SIM_DEVICES="4", **environment).stdout.splitlines()


def runtime_writes_functions(device):
    version = next(found.version for found in gg.backends() if found.name == device.backend)
    return tuple(map(int, version.split(".")[:2])) >= (6, 2)


@pytest.mark.parametrize("where", ["functions", "numbered"])
def test_partitions_that_the_pci_function_numbers_have_their_own_values(simulated_stats, device, where):
    if device.backend == "hip" and not runtime_writes_functions(device):
        pytest.skip("HIP before 6.2 writes no function")
    assert partitions(device, where) == [str((1 + number) << 30) for number in range(4)]
    assert partitions(device, where, HIP_VISIBLE_DEVICES="2,0") == [str(3 << 30), str(1 << 30)]


def test_partitions_that_hip_does_not_tell_apart_have_no_values(simulated_stats, device):
    lines = partitions(device, "location")
    assert len(lines) == 4 and all("lists 4 partitions of the GPU at 0000:40:00.0, and HIP does not report which" in line for line in lines)


def test_before_hip_6_2_the_function_0_of_an_address_is_no_number(simulated_stats, device):
    older = {"GPUGLUE_SIM_VERSION": "60140092"} if device.backend == "hip" and runtime_writes_functions(device) else {}
    lines = partitions(device, "functions", **older)
    assert len(lines) == 4 and all("lists 4 partitions of the GPU at 0000:40:00.0, and HIP does not report which" in line for line in lines)


def test_all_processes_are_listed_however_many_there_are(simulated_stats, odd, device):
    if device.backend != "cuda":
        pytest.skip("simulated in one library")
    odd("many")
    assert [process.pid for process in simulated_stats().processes] == [os.getpid(), *range(4242, 4242 + 99)]


def test_clocks_and_power_of_rocm_6_are_read(simulated_stats, odd, device):
    if simulated_stats().source != "ROCm SMI":
        pytest.skip("an odd ROCm SMI")
    odd("rocm6")
    stats = simulated_stats()
    assert (stats.compute_clock, stats.memory_clock, stats.power) == (1500, 1200, 150.5)
    odd("edge")
    assert simulated_stats().temperature == 60


def amd_smi_or_skip(device):
    if device.stats().source != "AMD SMI":
        pytest.skip("an odd AMD SMI")


def test_the_sensor_at_the_edge_and_average_power_of_amd_smi_are_used_if_there_are_no_others(simulated_stats, odd, device):
    amd_smi_or_skip(device)
    odd("edge")
    assert (simulated_stats().temperature, simulated_stats().power) == (60, 150)


def test_values_that_amd_smi_marks_as_not_available_are_none(simulated_stats, odd, device):
    amd_smi_or_skip(device)
    odd("unknown")
    stats = simulated_stats()
    assert [getattr(stats, name) for name in (*FLOATS, "throttle_reasons")] == [None] * (len(FLOATS) + 1)
    assert stats.memory_total == 64 << 30


def test_throttle_reasons_of_amd_smi_that_are_counters_are_those_that_grew_since_the_previous_call(simulated_stats, device):
    amd_smi_or_skip(device)
    code = "import gpuglue as gg\nd = gg.Device('hip:0')\nprint(d.stats().throttle_reasons, d.stats().throttle_reasons)"
    assert run_python(code, GPUGLUE_SIM_MONITOR_ODD="counters").stdout.strip() == "None ('power',)"


def test_the_table_of_amd_smi_26_is_read_at_its_own_offsets(simulated_stats, device):
    amd_smi_or_skip(device)
    code = "import gpuglue as gg\nprint(gg.Device('hip:0').stats().throttle_reasons)"
    assert run_python(code, GPUGLUE_SIM_MONITOR_ODD="older").stdout.strip() == "('power', 'thermal')"


def test_another_version_of_amd_smi_is_refused_with_its_number(simulated_stats, device):
    amd_smi_or_skip(device)
    code = "import gpuglue as gg\ntry:\n    gg.Device('hip:0').stats()\nexcept gg.UnsupportedError as e:\n    print(e)"
    assert "version 25: expected 26 or 27" in run_python(code, GPUGLUE_SIM_MONITOR_ODD="version").stdout


def test_rocm_smi_is_used_where_amd_smi_is_missing_or_of_another_version(simulated_stats, device, tmp_path):
    amd_smi_or_skip(device)
    for name, target in ("libamd_smi.so.27", "libamd_smi.so.27"), ("librocm_smi64.so.5", "librocm_smi64.so.5"):
        (tmp_path / name).symlink_to(built(*MONITORS["hip"]).parent / target)
    code = "import gpuglue as gg\nprint(gg.Device('hip:0').stats().source)"
    unnamed = {"GPUGLUE_AMD_SMI_LIBRARY": "", "GPUGLUE_ROCM_SMI_LIBRARY": "", "LD_LIBRARY_PATH": str(tmp_path)}
    assert run_python(code, **unnamed).stdout.strip() == "AMD SMI"
    assert run_python(code, **unnamed, GPUGLUE_SIM_MONITOR_ODD="version").stdout.strip() == "ROCm SMI"
    (tmp_path / "libamd_smi.so.27").unlink()
    assert run_python(code, **unnamed).stdout.strip() == "ROCm SMI"


def test_the_sensor_of_the_whole_device_is_used_if_there_is_no_other(simulated_stats, odd, device):
    if device.backend != "ze":
        pytest.skip("an odd Sysman")
    odd("global")
    assert simulated_stats().temperature == 60


def test_load_and_power_from_counters_are_unknown_at_the_first_call(simulated_stats, device):
    if device.backend != "ze":
        pytest.skip("the library has no counters")
    code = ("import gpuglue as gg\nd = gg.Device('ze:0')\na, b = d.stats(), d.stats()\n"
            "print(a.compute_utilization, a.power, round(b.compute_utilization), b.power)")
    assert run_python(code).stdout.split() == ["None", "None", "40", "150.5"]


def test_statistics_create_no_context(device):
    stats_or_skip(device)
    code = f"import gpuglue as gg\ngg.Device('{device.backend}:0').stats()"
    report = run_python(code, GPUGLUE_SIM_REPORT="stderr")
    assert report.returncode == 0
    assert not any(name in report.stderr for name in ("cuDevicePrimaryCtxRetain", "hipMalloc", "zeContextCreate"))
    opened = run_python(f"{code}\ngg.zeros(3, device='{device.backend}:0')", GPUGLUE_SIM_REPORT="stderr").stderr
    assert not opened or any(name in opened for name in ("cuDevicePrimaryCtxRetain", "hipMalloc", "zeContextCreate"))


def broken_variants(tmp_path):
    (tmp_path / "text.so").write_text("not a library")
    yield str(tmp_path / "absent.so"), "absent.so"
    yield str(tmp_path / "text.so"), "text.so"
    yield str(built("GPUGLUE_TEST_GATE", "libgate.so")), "libgate.so"  # without any of the functions


def test_a_broken_library_is_an_error_that_names_it_and_what_to_do(device, tmp_path):
    if device.backend not in MONITORS:
        pytest.skip("host reads /proc")
    variable = MONITORS[device.backend][0]
    for path, name in broken_variants(tmp_path):
        code = (f"import gpuglue as gg\nd = gg.Device('{device.backend}:0')\n"
                "try:\n    d.stats()\nexcept gg.UnsupportedError as e:\n    print(e)\nprint(gg.zeros(3, device=d).get())")
        text = run_python(code, **{variable: path}).stdout
        assert "device_stats" in text and name in text and "[0. 0. 0.]" in text


def test_a_library_that_fails_at_every_function_does_not_end_the_program(simulated_stats, monkeypatch, device):
    simulated_stats()
    names = ("nvmlDeviceGetHandleByUUID", "rsmi_num_monitor_devices", "amdsmi_get_socket_handles", "zesDriverGet")
    monkeypatch.setenv("GPUGLUE_SIM_MONITOR_FAIL", ",".join(names))
    with pytest.raises(gg.UnsupportedError, match="device"):
        device.stats()
    monkeypatch.delenv("GPUGLUE_SIM_MONITOR_FAIL")
    assert simulated_stats().memory_total == 64 << 30


def test_threads_read_statistics_at_the_same_time(device):
    stats_or_skip(device)
    seen = []
    threads = [threading.Thread(target=lambda: seen.append([device.stats() for _ in range(20)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
