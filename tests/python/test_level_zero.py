"""What only Level Zero has: how a driver is started, why there is none, which of its devices comes first. The
simulated driver is loaded in place of a loader, so none needs to be installed."""

import json

import pytest
from conftest import SIMULATED, built, needed, nodes, run_python, succeeds

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
        clean = dict.fromkeys(("GPUGLUE_SIM_DEVICES", "GPUGLUE_DEVICE", "ZE_ENABLE_ALT_DRIVERS", "ZE_AFFINITY_MASK"))
        library = {"GPUGLUE_BACKEND": "ze", "GPUGLUE_ZE_LIBRARY": libraries[f"ze-sim-{driver}"]}
        return succeeds(run_python(code, **{**clean, **library, **environment}))

    return run


def ask(sim, **environment):
    return sim(ASK, **environment).split("\n", 2)


def calls(report):
    return json.loads(report.read_text())["calls"]


# ---- every answer of a probe --------------------------------------------------------------------------------

NONE = "/dev/dri/renderD128=absent"
ONE = "/dev/dri/renderD128=there"
REFUSED = "/dev/dri/renderD128=there,/dev/dri/renderD129=refused:61234"


@pytest.mark.parametrize("driver, api", (("old", "1.3"), ("new", "1.17")))
def test_a_driver_with_devices_is_available(sim, driver, api):
    status, reason, notes = ask(sim, driver=driver)
    assert (status, reason) == ("available", "") and f"driver of API {api}" in notes


def test_an_excluded_driver_is_disabled(sim):
    code = "import gpuglue as gg; print(*(b.status + ' ' + b.reason for b in gg.backends('active') if b.name == 'ze'))"
    assert sim(code, GPUGLUE_BACKEND="^ze") == "disabled excluded by GPUGLUE_BACKEND=^ze"


def test_a_loader_that_does_not_exist_is_told_by_its_path(sim, tmp_path):
    status, reason, _ = ask(sim, GPUGLUE_ZE_LIBRARY=str(tmp_path / "libze_loader.so.1"))
    assert status == "library-not-found" and f"GPUGLUE_ZE_LIBRARY={tmp_path}" in reason


def test_a_search_that_finds_no_loader_names_it(sim):
    status, reason, _ = ask(sim, GPUGLUE_ZE_LIBRARY=None, CONDA_PREFIX=None)
    if status != "library-not-found":
        pytest.skip("this machine has a Level Zero loader")
    assert "libze_loader.so.1 was not found" in reason and "set GPUGLUE_ZE_LIBRARY" in reason


def test_a_text_file_in_the_loaders_place_is_told(sim, tmp_path):
    library = tmp_path / "libze_loader.so.1"
    library.write_text("no library")
    status, reason, _ = ask(sim, GPUGLUE_ZE_LIBRARY=str(library))
    assert status == "library-load-failed" and f"{library} is not a library (a text file" in reason


@pytest.mark.parametrize("where, words", ((NONE, "there is no /dev/dri/renderD*"), (ONE, "no Level Zero driver sees a GPU")))
def test_without_a_device_the_answer_tells_whether_there_is_a_node(sim, where, words):
    status, reason, notes = ask(sim, ZE_AFFINITY_MASK="7", **nodes(where))
    assert status == "no-device" and reason.startswith(words) and "0x78000001" in reason
    assert reason.endswith('; ZE_AFFINITY_MASK is set to "7"') and "ZE_AFFINITY_MASK" in notes


@pytest.mark.parametrize("variable, value", (("ZE_AFFINITY_MASK", "7"), ("GPUGLUE_SIM_ZE_TYPE", "5")))
def test_a_node_that_may_not_be_used_is_told_with_its_group(sim, variable, value):
    status, reason, _ = ask(sim, **nodes(REFUSED), **{variable: value})
    assert status == "permission-denied" and reason.startswith("/dev/dri/renderD129 exists and may not be read and written")
    assert "membership of group 61234" in reason
    assert ask(sim, **nodes(REFUSED))[0] == "available"  # what works is not doubted


def test_devices_that_are_no_gpus_do_not_count(sim):
    status, reason, _ = ask(sim, GPUGLUE_SIM_ZE_TYPE="5", **nodes(ONE))
    assert status == "no-device" and "its drivers counted 0" in reason


def test_a_driver_that_is_too_old_is_named_with_its_version(sim):
    status, reason, _ = ask(sim, GPUGLUE_SIM_ZE_VERSION="0x10001")
    assert (status, "API is 1.1 and 1.2 is the oldest" in reason) == ("version-unsupported", True)


def test_a_child_that_was_forked_after_the_first_use_is_told_so(sim):
    code = (
        "import os, warnings, gpuglue as gg\nwarnings.simplefilter('ignore')  # newer Pythons warn of every fork\ngg.Device('ze:0').synchronize()\n"
        "if not os.fork():\n"
        "    print(*(b.status + ' ' + b.reason for b in gg.backends('active') if b.name == 'ze'), flush=True); os._exit(0)\n"
        "os.wait()"
    )
    message = sim(code)
    assert message.startswith("forked it was initialised before this process was forked") and '"spawn"' in message


@pytest.mark.parametrize("fault, words", (("HANG", "timed-out|no answer within 3 s"), ("CRASH", "crashed|")))
def test_a_driver_that_hangs_or_crashes_is_a_line_of_the_isolated_answer(sim, fault, words):
    seconds = 3.0 if fault == "HANG" else 60.0
    code = f"import gpuglue as gg; print(*(b.status + '|' + b.reason for b in gg.backends('isolated', timeout={seconds}) if b.name == 'ze'))"
    message = sim(code, **{f"GPUGLUE_SIM_{fault}": "zeInitDrivers"})
    assert message.startswith(words) and (fault == "HANG" or "SIGABRT" in message)


def test_a_passive_probe_names_the_loader_and_calls_nothing(sim, tmp_path):
    report = tmp_path / "report.json"
    code = "import gpuglue as gg; print(*(b.status + '|' + b.reason for b in gg.backends('passive') if b.name == 'ze'))"
    message = sim(code, GPUGLUE_SIM_REPORT=str(report))
    assert message.startswith("not-probed|") and "has not been initialised" in message and calls(report) == {}


STARTS = {
    0x70020000: ("init-failed", "a library that the driver needs is missing"),
    0x70010000: ("permission-denied", "`ls -l /dev/dri`"),
    0x7FFFFFFE: ("init-failed", "ZE_RESULT_ERROR_UNKNOWN"),
    0x7FFFFFF0: ("init-failed", "a code that is not known here"),
}


@pytest.mark.parametrize("code", STARTS, ids=hex)
def test_a_driver_that_cannot_start_gives_its_code(sim, code):
    found, reason, _ = ask(sim, GPUGLUE_SIM_FAIL=f"zeInitDrivers:1={code}")
    status, words = STARTS[code]
    assert found == status and f"{code:#x}" in reason and words in reason


def test_a_library_without_the_functions_is_named(sim):
    status, reason, _ = ask(sim, GPUGLUE_ZE_LIBRARY=str(needed("GPUGLUE_TEST_GATE", "libgate.so")))
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


@pytest.mark.parametrize("code", (0x78000001, 0x78000002, 0x78000003), ids=hex)
@pytest.mark.parametrize("call", ("zeCommandListHostSynchronize", "zeDeviceSynchronize", "zeCommandListAppendHostFunction"))
def test_what_the_driver_lacks_is_done_another_way_whatever_the_loader_calls_it(sim, tmp_path, call, code):
    """An intercepting loader 1.32 says of a call that the driver lacks that nothing is initialised."""
    report = tmp_path / "report.json"
    text = (
        "import gpuglue as gg, numpy as np\nfrom conftest import Gate, gate_library\n"
        "s = gg.Stream(); gate = Gate(gate_library()).hold(s); assert not s.done\n"
        "gate.open(); s.synchronize(); assert s.done and gate.reached\n"
        "a = np.arange(9.0); assert (gg.to_gpu(a, stream=s).get() == a).all(); gg.synchronize(); print('ok')"
    )
    assert sim(text, GPUGLUE_SIM_FAIL=f"{call}:1+={code}", GPUGLUE_SIM_REPORT=str(report)) == "ok"
    assert calls(report)[call] > 0


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


# ---- lists that others append to ----------------------------------------------------------------------------

SHARED = """
import ctypes, os, gpuglue as gg
stream = gg.Stream()
driver, handle = ctypes.CDLL(os.environ["GPUGLUE_ZE_LIBRARY"]), ctypes.c_void_p(stream.handle)
stream.record(); stream.synchronize()
driver.sim_hold(1)
assert driver.zeCommandListAppendBarrier(handle, None, 0, None) == 0
event = stream.record()
print(event.done, end=" ")
driver.sim_hold(0); event.synchronize()
print(event.done)
"""


@pytest.mark.parametrize("driver", ("old", "new"))
def test_an_event_stands_behind_what_others_appended_to_the_list(sim, driver):
    assert sim(SHARED, driver=driver) == "False True"


BEHIND = """
import ctypes, os, gpuglue as gg, numpy as np
stream = gg.Stream()
driver, handle = ctypes.CDLL(os.environ["GPUGLUE_ZE_LIBRARY"]), ctypes.c_void_p(stream.handle)
one, other, result = gg.zeros(1 << 20, "u1"), gg.full(1 << 20, 7, "u1"), gg.zeros(1 << 20, "u1")
gg.synchronize()
for _ in range(20):
    result.fill(0, stream=stream); one.fill(0, stream=stream); stream.synchronize()
    copied = ctypes.c_void_p(one.ptr), ctypes.c_void_p(other.ptr), ctypes.c_size_t(1 << 20)
    assert driver.zeCommandListAppendMemoryCopy(handle, *copied, None, 0, None) == 0
    gg.copy(result, one, stream=stream)
    assert (result.get(stream=stream) == 7).all()
print("ok")
"""


@pytest.mark.parametrize("driver", ("old", "new"))
def test_work_of_ours_comes_behind_what_others_appended_to_the_list(sim, driver):
    assert sim(BEHIND, driver=driver) == "ok"


REUSED = """
import ctypes, os, gpuglue as gg
from conftest import core_library
stream = gg.Stream()
core, device, ours, handles = core_library(), ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_uint64 * 4)()
assert core.gg_device_find(b"ze:0", ctypes.byref(device)) == 0
assert core.gg_stream_borrow(device, ctypes.c_uint64(stream.handle), None, None, ctypes.byref(ours)) == 0
assert core.gg_stream_native(ours, handles) == 0
driver = ctypes.CDLL(os.environ["GPUGLUE_ZE_LIBRARY"])
class Description(ctypes.Structure):
    _fields_ = [("stype", ctypes.c_uint32), ("next", ctypes.c_void_p)] + [
        (name, ctypes.c_uint32) for name in ("ordinal", "index", "flags", "mode", "priority")]
theirs, description = ctypes.c_void_p(), Description(0xE, None, 0, 0, 0, 2, 0)
assert driver.zeCommandListCreateImmediate(
    ctypes.c_void_p(handles[2]), ctypes.c_void_p(handles[1]), ctypes.byref(description), ctypes.byref(theirs)) == 0
borrowed = gg.Stream.borrow(theirs.value, gg.Device("ze:0")); borrowed.synchronize()
assert driver.zeCommandListDestroy(theirs) == 0
new = gg.Stream()
assert new.handle == theirs.value, "its address was not given out again"
gg.zeros(10, stream=new); new.synchronize(); new.close(); gg.synchronize(); gg.alloc(16).close(); gg.trim()
print(driver.sim_alive(b"stream"))
"""


@pytest.mark.parametrize("driver", ("old", "new"))
def test_a_new_stream_is_its_own_whoever_had_its_lists_address(sim, driver):
    alive = int(sim(REUSED, driver=driver))
    assert alive == int(sim(REUSED.split("class Desc")[0] + "print(driver.sim_alive(b'stream'))", driver=driver))
