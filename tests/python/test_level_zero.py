"""What only Level Zero has: how a driver is started, why there is none, which of its devices comes first. The
simulated driver is loaded in place of a loader, so none needs to be installed."""

import json

import pytest
from conftest import SIMULATED, built, run_python, succeeds

ASK = (
    "import gpuglue as gg\n"
    "record, = [b for b in gg.backends(probe='active') if b.name == 'ze']\n"
    "print(record.status); print(record.reason); print(record.notes)"
)


@pytest.fixture
def sim(tmp_path):
    try:
        libraries = {name: str(built(*SIMULATED[name][1:])) for name in ("ze-sim-old", "ze-sim-new")}
    except pytest.UsageError as error:
        pytest.skip(str(error))

    def run(code, driver="new", **environment):
        environment = {"GPUGLUE_ZE_LIBRARY": libraries[f"ze-sim-{driver}"], "GPUGLUE_SIM_DEVICES": None, **environment}
        return succeeds(run_python(code, GPUGLUE_BACKEND="ze", GPUGLUE_DEVICE=None, ZE_ENABLE_ALT_DRIVERS=None, **environment))

    return run


def ask(sim, **environment):
    return sim(ASK, **environment).split("\n", 2)


def calls(report):
    return json.loads(report.read_text())["calls"]


# ---- why there is no device --------------------------------------------------------------------------------


def test_a_driver_without_devices_is_no_device_and_the_mask_is_named(sim):
    status, reason, notes = ask(sim, ZE_AFFINITY_MASK="7")
    assert status in ("no-device", "permission-denied") and "0x78000001" in reason
    assert status == "permission-denied" or 'ZE_AFFINITY_MASK is set to "7"' in reason
    assert "ZE_AFFINITY_MASK" in notes


def test_a_driver_that_is_too_old_is_named_with_its_version(sim):
    status, reason, _ = ask(sim, GPUGLUE_SIM_ZE_VERSION="0x10001")
    assert (status, "API is 1.1 and 1.2 is the oldest" in reason) == ("version-unsupported", True)


def test_devices_that_are_no_gpus_do_not_count(sim):
    status, reason, _ = ask(sim, GPUGLUE_SIM_ZE_TYPE="5")
    assert status in ("no-device", "permission-denied")


@pytest.mark.parametrize("code, status", ((0x70020000, "init-failed"), (0x7FFFFFFE, "init-failed"), (0x70010000, "permission-denied")))
def test_a_driver_that_cannot_start_gives_its_code(sim, code, status):
    found, reason, _ = ask(sim, GPUGLUE_SIM_FAIL=f"zeInitDrivers:1={code}")
    assert found == status and f"{code:#x}" in reason


def test_a_library_without_the_functions_is_named(sim):
    status, reason, _ = ask(sim, GPUGLUE_ZE_LIBRARY=str(built("GPUGLUE_TEST_GATE", "libgate.so")))
    assert (status, "zeInit" in reason) == ("symbol-missing", True)


# ---- how it is started --------------------------------------------------------------------------------------


def test_nothing_is_called_after_a_failed_init(sim, tmp_path):
    report = tmp_path / "report.json"
    ask(sim, GPUGLUE_SIM_FAIL="zeInitDrivers:1=1879179264", GPUGLUE_SIM_REPORT=str(report))
    assert calls(report) == {"zeInitDrivers": 1}
    ask(sim, driver="old", GPUGLUE_SIM_FAIL="zeInit:1=2013265921", GPUGLUE_SIM_REPORT=str(report))
    assert calls(report) == {"zeInitDrivers": 1, "zeInit": 1}


def test_a_loader_that_says_uninitialized_for_an_old_driver_is_asked_the_old_way(sim):
    assert ask(sim, driver="old", GPUGLUE_SIM_FAIL="zeInitDrivers:1=2013265921")[0] == "available"


def test_an_old_driver_is_started_the_old_way(sim, tmp_path):
    report = tmp_path / "report.json"
    assert ask(sim, driver="old", GPUGLUE_SIM_REPORT=str(report))[0] == "available"
    assert calls(report)["zeInit"] == 1 and calls(report)["zeInitDrivers"] == 1


def test_a_new_driver_is_started_the_new_way(sim, tmp_path):
    report = tmp_path / "report.json"
    assert ask(sim, GPUGLUE_SIM_REPORT=str(report))[0] == "available"
    assert "zeInit" not in calls(report)


# ---- devices and memory --------------------------------------------------------------------------------------


def test_a_discrete_device_comes_before_an_integrated_one(sim):
    code = "import gpuglue as gg; print(gg.current_device().ordinal, [d.ordinal for d in gg.devices('ze')], gg.Device(0).ordinal)"
    assert sim(code) == "0 [0, 1] 0"
    assert sim(code, GPUGLUE_SIM_INTEGRATED="1") == "1 [0, 1] 0"
    assert sim(code, GPUGLUE_SIM_INTEGRATED="3") == "0 [0, 1] 0"


def test_addresses_in_the_upper_half_are_positive_and_work(sim):
    code = (
        "import gpuglue as gg, numpy as np\n"
        "a = np.arange(1000.0); g = gg.to_gpu(a)\n"
        "assert g.ptr > 2**63, hex(g.ptr)\n"
        "assert (g.get() == a).all(); print('ok')"
    )
    assert sim(code) == "ok"


@pytest.mark.parametrize("driver", ("old", "new"))
def test_a_block_may_be_larger_than_the_drivers_limit_and_than_4_gib(sim, driver):
    code = (
        "import gpuglue as gg\n"
        "block = gg.alloc(5 << 30); print(block.nbytes); block.close()\n"
        "try: gg.alloc(7 << 30)\n"
        "except gg.OutOfMemoryError as error: print(type(error).__name__)"
    )
    assert sim(code, driver=driver, GPUGLUE_SIM_MEMORY=str(6 << 30)).split() == [str(5 << 30), "OutOfMemoryError"]


def test_work_reported_done_leaves_nothing_of_the_drivers_behind(sim, tmp_path):
    report = tmp_path / "report.json"
    code = "import gpuglue as gg, numpy as np\nfor i in range(300): gg.to_gpu(np.ones(9)).get()\ngg.Event(timing=True).record(); gg.synchronize()"
    sim(code, driver="old", GPUGLUE_SIM_REPORT=str(report))
    leaked = json.loads(report.read_text())["leaked"]
    assert not any(leaked.values()), leaked
    assert calls(report)["zeEventCreate"] <= 64  # they are used again
