"""Level Zero only: the start of a driver, the reasons why there is none, the order of its devices. The
simulated driver is loaded in place of a loader, so none needs to be installed."""

import ast
import json

import pytest
from conftest import HANG, MONITORS, SIMULATED, built, needed, nodes, run_python, succeeds

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


# ---- every result of a probe --------------------------------------------------------------------------------

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


def test_a_loader_that_does_not_exist_is_reported_with_its_path(sim, tmp_path):
    status, reason, _ = ask(sim, GPUGLUE_ZE_LIBRARY=str(tmp_path / "libze_loader.so.1"))
    assert status == "library-not-found" and f"GPUGLUE_ZE_LIBRARY={tmp_path}" in reason


def test_a_search_that_finds_no_loader_names_it(sim):
    status, reason, _ = ask(sim, GPUGLUE_ZE_LIBRARY=None, CONDA_PREFIX=None)
    if status != "library-not-found":
        pytest.skip("this machine has a Level Zero loader")
    assert "libze_loader.so.1 was not found" in reason and "set GPUGLUE_ZE_LIBRARY" in reason


def test_a_text_file_instead_of_the_loader_is_reported(sim, tmp_path):
    library = tmp_path / "libze_loader.so.1"
    library.write_text("no library")
    status, reason, _ = ask(sim, GPUGLUE_ZE_LIBRARY=str(library))
    assert status == "library-load-failed" and f"{library} is not a shared library (a text file" in reason


@pytest.mark.parametrize("where, words", ((NONE, "there is no /dev/dri/renderD*"), (ONE, "no Level Zero driver sees a GPU")))
def test_without_a_device_the_reason_reports_whether_there_is_a_node(sim, where, words):
    status, reason, notes = ask(sim, ZE_AFFINITY_MASK="7", **nodes(where))
    assert status == "no-device" and reason.startswith(words) and "0x78000001" in reason
    assert reason.endswith('; ZE_AFFINITY_MASK is set to "7"') and "ZE_AFFINITY_MASK" in notes


@pytest.mark.parametrize("variable, value", (("ZE_AFFINITY_MASK", "7"), ("GPUGLUE_SIM_ZE_TYPE", "5")))
def test_a_node_without_permission_is_reported_with_its_group(sim, variable, value):
    status, reason, _ = ask(sim, **nodes(REFUSED), **{variable: value})
    assert status == "permission-denied" and reason.startswith("/dev/dri/renderD129 exists and may not be read and written")
    assert "membership of group 61234" in reason
    assert ask(sim, **nodes(REFUSED))[0] == "available"  # a driver that works is not refused


def test_devices_that_are_not_gpus_do_not_count(sim):
    status, reason, _ = ask(sim, GPUGLUE_SIM_ZE_TYPE="5", **nodes(ONE))
    assert status == "no-device" and "the drivers reported 0 GPUs" in reason


def test_a_driver_that_is_too_old_is_named_with_its_version(sim):
    status, reason, _ = ask(sim, GPUGLUE_SIM_ZE_VERSION="0x10001")
    assert (status, "API is 1.1, expected 1.2 or newer" in reason) == ("version-unsupported", True)


def test_a_child_forked_after_the_first_use_gets_the_fork_as_the_reason(sim):
    code = (
        "import os, warnings, gpuglue as gg\nwarnings.simplefilter('ignore')  # newer Pythons warn of every fork\ngg.Device('ze:0').synchronize()\n"
        "if not os.fork():\n"
        "    print(*(b.status + ' ' + b.reason for b in gg.backends('active') if b.name == 'ze'), flush=True); os._exit(0)\n"
        "os.wait()"
    )
    message = sim(code)
    assert message.startswith("forked it was initialised before this process was forked") and '"spawn"' in message


@pytest.mark.parametrize("fault, words", (("HANG", "timed-out|no answer within 3 s"), ("CRASH", "crashed|")))
def test_an_isolated_probe_reports_a_driver_that_hangs_or_crashes(sim, fault, words):
    seconds = 3.0 if fault == "HANG" else HANG
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
    0x7FFFFFF0: ("init-failed", "an unknown code"),
}


@pytest.mark.parametrize("code", STARTS, ids=hex)
def test_a_driver_that_cannot_start_is_reported_with_its_code(sim, code):
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


def test_a_loader_that_returns_uninitialized_for_an_old_driver_is_initialised_with_zeinit(sim):
    assert ask(sim, driver="old", GPUGLUE_SIM_FAIL="zeInitDrivers:1=2013265921")[0] == "available"


def test_an_old_driver_is_initialised_with_zeinit(sim, tmp_path):
    report = tmp_path / "report.json"
    assert ask(sim, driver="old", GPUGLUE_SIM_REPORT=str(report))[0] == "available"
    assert calls(report)["zeInit"] == 1 and calls(report)["zeInitDrivers"] == 1


def test_a_new_driver_is_initialised_with_zeinitdrivers(sim, tmp_path):
    report = tmp_path / "report.json"
    assert ask(sim, GPUGLUE_SIM_REPORT=str(report))[0] == "available"
    assert "zeInit" not in calls(report)


@pytest.mark.parametrize("code", (0x78000001, 0x78000002, 0x78000003), ids=hex)
@pytest.mark.parametrize("call", ("zeCommandListHostSynchronize", "zeDeviceSynchronize", "zeCommandListAppendHostFunction"))
def test_functions_that_the_driver_lacks_are_replaced_whatever_error_the_loader_returns(sim, tmp_path, call, code):
    """For a function that the driver lacks an intercepting loader 1.32 reports an uninitialised driver."""
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


LIST = "import gpuglue as gg; print([(d.uuid, d.pci_bus_id, d.integrated) for d in gg.devices('ze')])"


@pytest.mark.parametrize("hierarchy, count", (("FLAT", 4), ("COMBINED", 4), ("COMPOSITE", 2)))
def test_devices_are_tiles_or_cards_as_the_hierarchy_requires(sim, hierarchy, count):
    text = sim(LIST, GPUGLUE_SIM_DEVICES="4", GPUGLUE_SIM_ZE_TILES="2", ZE_FLAT_DEVICE_HIERARCHY=hierarchy)
    devices = ast.literal_eval(text)
    assert len({uuid for uuid, *_ in devices}) == count and len({address for _, address, _ in devices}) == 2


VALUES = """
import gpuglue as gg
for device in gg.devices("ze"):
    device.stats()
    s = device.stats()
    print((s.compute_utilization, s.memory_used >> 30, s.memory_total >> 30, s.power, s.temperature, s.compute_clock, s.memory_clock))
"""


@pytest.mark.parametrize("hierarchy, fault", (("FLAT", ""), ("COMBINED", "zesDriverGetDeviceByUuidExp")))
def test_the_statistics_of_a_tile_are_its_own(sim, hierarchy, fault):
    library = str(built(*MONITORS["ze"]))
    text = sim(VALUES, GPUGLUE_SIM_DEVICES="4", GPUGLUE_SIM_ZE_TILES="2", ZE_FLAT_DEVICE_HIERARCHY=hierarchy,
               GPUGLUE_ZES_LIBRARY=library, GPUGLUE_SIM_MONITOR_FAIL=fault)
    assert [ast.literal_eval(line) for line in text.splitlines()] == [
        (pytest.approx(40 + n), n + 1, 64, pytest.approx(150.5 + n), 60 + n, 1500 + n, 1200 + n) for n in range(4)]


def test_the_memory_of_a_card_is_that_of_its_tiles(sim):
    code = "import gpuglue as gg; print([(d.stats().memory_used >> 30, d.stats().memory_total >> 30) for d in gg.devices('ze')])"
    text = sim(code, GPUGLUE_SIM_DEVICES="4", GPUGLUE_SIM_ZE_TILES="2", ZE_FLAT_DEVICE_HIERARCHY="COMPOSITE",
               GPUGLUE_ZES_LIBRARY=str(built(*MONITORS["ze"])))
    assert text == "[(3, 128), (7, 128)]"


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


@pytest.mark.parametrize("driver", ("old", "new"))
def test_a_kernel_reaches_all_of_a_block_larger_than_4_gib(sim, driver):
    """ze_api.h: a module that uses such a block needs -ze-opt-greater-than-4GB-buffer-required."""
    code = (
        "import gpuglue as gg, numpy as np, kernels\n"
        "device = gg.Device('ze:0'); scale = kernels.load(device)['scale']\n"
        "large = gg.empty(5 << 30, 'u1'); end = large[-40:].view('f4')\n"
        "end[...] = np.arange(10, dtype='f4')\n"
        "scale(end, 10, 3.0, grid=1, block=32); print(end.get().astype(int).tolist())"
    )
    text = sim(code, driver=driver, GPUGLUE_SIM_MEMORY=str(6 << 30), GPUGLUE_CACHE="0")
    assert text == str([3 * i for i in range(10)])


@pytest.mark.parametrize("driver", ("old", "new"))
def test_a_device_without_shared_memory_has_no_managed_memory(sim, driver):
    code = (
        "import gpuglue as gg\n"
        "d = gg.Device(); print(d.attributes['managed_memory'], d.supports('mem_prefetch'), d.supports('mem_advise'))\n"
        "try: gg.alloc_managed(64)\n"
        "except gg.UnsupportedError as error: print('reports no shared memory' in str(error))\n"
    )
    lines = sim(code, driver=driver, GPUGLUE_SIM_ZE_SHARED="0").split("\n")
    assert lines == ["0 False False", "True"]


REGISTER = (
    "import gpuglue as gg, numpy as np\n"
    "print(gg.Device().supports('mem_register'))\n"
    "try: gg.host_register(np.zeros(9999)).close()\n"
    "except gg.UnsupportedError as error: print('does not export zexDriverImportExternalPointer' in str(error))\n"
)


@pytest.mark.parametrize("driver, works", (("old", "1"), ("new", "0")))
def test_a_driver_that_imports_no_host_memory_reports_it(sim, driver, works):
    assert sim(REGISTER, driver=driver, GPUGLUE_SIM_ZE_IMPORT=works).split() == ["False", "True"]


def test_host_memory_is_imported_once_and_released(sim, tmp_path):
    assert sim(REGISTER, GPUGLUE_SIM_REPORT=str(tmp_path / "report")) == "True"
    counts = calls(tmp_path / "report")
    assert counts["zexDriverImportExternalPointer"] == counts["zexDriverReleaseImportedPointer"] == 1


IMPORTED_BY_OTHERS = """
import ctypes, os, gpuglue as gg, numpy as np
driver, count, handle = ctypes.CDLL(os.environ["GPUGLUE_ZE_LIBRARY"]), ctypes.c_uint32(1), ctypes.c_void_p()
x, device = np.zeros(9999), gg.Device()
assert driver.zeDriverGet(ctypes.byref(count), ctypes.byref(handle)) == 0
address = ctypes.c_void_p(x.ctypes.data)
assert driver.zexDriverImportExternalPointer(handle, address, ctypes.c_size_t(x.nbytes)) == 0
try: gg.host_register(x)
except gg.InvalidArgumentError as error: print("has already imported" in str(error))
assert driver.zexDriverReleaseImportedPointer(handle, address) == 0
"""


def test_memory_that_other_code_has_imported_is_refused(sim):
    assert sim(IMPORTED_BY_OTHERS) == "True"


EXPORT = (
    "import gpuglue as gg\n"
    "memory = gg.alloc(1 << 20); print(bytes(memory.ipc_handle()).hex())\n"
)
OPEN = (
    "import gpuglue as gg\n"
    "try: gg.IpcHandle(bytes.fromhex({handle!r})).open()\n"
    "except gg.InvalidArgumentError as error: print(error)\n"
)


@pytest.mark.parametrize("driver", ("old", "new"))
def test_memory_of_a_process_that_has_ended_cannot_be_opened(sim, driver):
    handle = sim(EXPORT, driver=driver)
    assert "has ended, or is not visible here" in sim(OPEN.format(handle=handle), driver=driver)


UNSHARED = (
    "import gpuglue as gg\n"
    "print(gg.Device().supports('ipc_export'))\n"
    "try: gg.alloc(100).ipc_handle()\n"
    "except gg.UnsupportedError as error: print('ipc_export' in str(error))\n"
)


def test_a_driver_that_shares_no_memory_between_processes_reports_it(sim):
    assert sim(UNSHARED, GPUGLUE_SIM_ZE_IPC="0").split() == ["False", "True"]


def test_completed_work_leaves_no_driver_objects_behind(sim, tmp_path):
    report = tmp_path / "report.json"
    code = "import gpuglue as gg, numpy as np\nfor i in range(300): gg.to_gpu(np.ones(9)).get()\ngg.Event(timing=True).record(); gg.synchronize()"
    sim(code, driver="old", GPUGLUE_SIM_REPORT=str(report))
    leaked = json.loads(report.read_text())["leaked"]
    assert not any(leaked.values()), leaked
    assert calls(report)["zeEventCreate"] <= 64  # they are used again


# ---- copy engines ---------------------------------------------------------------------------------------------

PIPELINE = """
import ctypes, os, numpy as np, gpuglue as gg, kernels
device, pieces, count, streams = gg.Device("ze:0"), 16, 1 << 16, [gg.Stream() for _ in range(3)]
scale = kernels.load(device)["scale"]
source, result = gg.empty_pinned((pieces, count), "f4", device=device), gg.empty_pinned((pieces, count), "f4", device=device)
source[...] = np.arange(pieces * count, dtype="f4").reshape(pieces, count)
on_device = gg.zeros((pieces, count), "f4", device=device)
gg.synchronize()
driver = ctypes.CDLL(os.environ["GPUGLUE_ZE_LIBRARY"])
driver.sim_hold(1)
os.environ["GPUGLUE_SIM_WORK"] = RECORD
for i in range(pieces):
    stream, part = streams[i % 3], on_device[i]
    gg.copy(part, source[i], stream=stream)
    scale(part, count, 3.0, grid=count // 256, block=256, stream=stream)
    gg.copy(result[i], part, stream=stream)
driver.sim_hold(0)
gg.synchronize()
assert (result == 3 * source).all()
"""


def engine_work(record):
    """The commands of the engines, in the order of submission: {number: (engine, kind, what it comes after)}."""
    after, work = {}, {}
    for line in record.read_text().splitlines():
        number, engine, kind, size, *needed_ = line.split()
        after[number] = set().union(*({n} if n in work else after.get(n, ()) for n in needed_))
        if engine != "-" and (kind == "kernel" or int(size) > 1 << 16):
            work[number] = engine, kind, after[number]
    return work


def spans(work):
    """When each command runs, if each takes one unit of time, and an idle engine takes the first command that it can."""
    ends, left, now = {}, dict(work), 0
    while left:
        for engine in {engine for engine, _, _ in left.values()}:
            ready = [n for n, (its, _, after) in left.items() if its == engine and all(ends.get(a, now + 1) <= now for a in after)]
            if ready:
                ends[ready[0]] = now + 1
                del left[ready[0]]
        now += 1
        assert now <= len(work), "commands that wait for each other"
    return ends


# 1.13 is the newest without the flag that leaves the choice of the engine to the driver.
DRIVERS_WITH_ENGINES = {"1.3": ("old", {}), "1.13": ("new", {"GPUGLUE_SIM_ZE_VERSION": "0x1000d"}), "1.17": ("new", {})}


@pytest.mark.parametrize("api", DRIVERS_WITH_ENGINES)
def test_uploads_kernels_and_downloads_of_a_pipeline_overlap(sim, tmp_path, api):
    driver, environment = DRIVERS_WITH_ENGINES[api]
    record = tmp_path / "work"
    sim(PIPELINE.replace("RECORD", repr(str(record))), driver=driver, **environment)
    work = engine_work(record)
    assert [(engine, kind) for engine, kind, _ in work.values()] == [("copy", "copy"), ("compute", "kernel"), ("copy", "copy")] * 16
    ends = spans(work)
    kernels = {ends[n] for n, (engine, *_) in work.items() if engine == "compute"}
    copies = {ends[n] for n, (engine, *_) in work.items() if engine == "copy"}
    assert len(kernels & copies) >= 14, "kernels run while nothing is copied"
    assert max(ends.values()) <= 34, ends  # 48 one after another


def test_without_a_copy_engine_copies_make_no_further_call(sim, tmp_path):
    report, record = tmp_path / "report.json", tmp_path / "work"
    code = PIPELINE.replace("RECORD", repr(str(record)))
    sim(code, driver="old", GPUGLUE_SIM_ZE_COPY="0", GPUGLUE_SIM_REPORT=str(report))
    made = calls(report)
    assert {engine for engine, *_ in engine_work(record).values()} == {"compute"}
    assert made["zeCommandListCreateImmediate"] == 4  # the default stream's and three


ORDER = """
import numpy as np, gpuglue as gg
stream, event_stream = gg.Stream(), gg.Stream()
large, small = 1 << 18, 1 << 10
host = gg.empty_pinned((4, large), "u1"); host[...] = np.arange(4)[:, None]
one, two, back = gg.zeros(large, "u1"), gg.zeros(large, "u1"), gg.empty_pinned(large, "u1")
gg.synchronize()
for turn in range(12):
    gg.copy(one, host[turn % 4], stream=stream)           # copy engine
    one[:small].fill(9, stream=stream)                    # compute
    gg.copy(two, one, stream=stream)                      # compute
    gg.copy(back[:small], two[:small], stream=stream)     # the engine of the copy before
    gg.copy(back[small:], two[small:], stream=stream)     # copy engine
    event = stream.record()
    event_stream.wait(event)
    two.fill(0, stream=event_stream)
    stream.wait(event_stream.record())
    stream.synchronize()
    assert (back[:small] == 9).all() and (back[small:] == turn % 4).all(), turn
print("ok")
"""


@pytest.mark.parametrize("api", DRIVERS_WITH_ENGINES)
def test_a_stream_keeps_its_order_on_both_engines(sim, api):
    driver, environment = DRIVERS_WITH_ENGINES[api]
    assert sim(ORDER, driver=driver, **environment) == "ok"


MOVED = """
import ctypes, os, gpuglue as gg
stream, host, target = gg.Stream(), gg.empty_pinned(1 << 20, "u1"), gg.zeros(1 << 20, "u1")
host[...] = 7
other = gg.zeros(1 << 20, "u1"); gg.synchronize()
driver = ctypes.CDLL(os.environ["GPUGLUE_ZE_LIBRARY"])
driver.sim_hold(1)
os.environ["GPUGLUE_SIM_WORK"] = RECORD
gg.copy(target, host, stream=stream)
handle = ctypes.c_void_p(stream.handle)
copied = ctypes.c_void_p(other.ptr), ctypes.c_void_p(target.ptr), ctypes.c_size_t(1 << 20)
assert driver.zeCommandListAppendMemoryCopy(handle, *copied, None, 0, None) == 0
driver.sim_hold(0)
print(int(other.get(stream=stream).min()))
"""


@pytest.mark.parametrize("api", DRIVERS_WITH_ENGINES)
def test_work_on_a_streams_handle_comes_after_its_copies(sim, tmp_path, api):
    driver, environment = DRIVERS_WITH_ENGINES[api]
    record = tmp_path / "work"
    assert sim(MOVED.replace("RECORD", repr(str(record))), driver=driver, **environment) == "7"
    (upload, engines), (_, others) = [(n, work) for n, work in engine_work(record).items()][:2]
    assert (engines[0], others[0], others[2]) == ("copy", "compute", {upload})


def test_a_list_for_copies_that_cannot_be_created_is_replaced_by_the_streams_own(sim):
    assert sim(ORDER, driver="old", GPUGLUE_SIM_FAIL="zeCommandListCreateImmediate:4+=0x70000003") == "ok"


def test_a_loader_that_refuses_the_flag_of_copy_engines_is_not_an_error(sim):
    assert sim(ORDER, GPUGLUE_SIM_FAIL="zeCommandListCreateImmediate:1=0x7800000c") == "ok"


# ---- lists that others append to ----------------------------------------------------------------------------

SHARED = """
import ctypes, os, gpuglue as gg
stream = gg.Stream()
driver, handle = ctypes.CDLL(os.environ["GPUGLUE_ZE_LIBRARY"]), ctypes.c_void_p(stream.handle)
stream.record(); stream.synchronize()
driver.sim_hold(1)
assert driver.zeCommandListAppendBarrier(handle, None, 0, None) == 0
event = stream.record()
print(stream.done, event.done, end=" ")
driver.sim_hold(0); event.synchronize()
print(stream.done, event.done)
"""


@pytest.mark.parametrize("driver, done", (("old", True), ("new", False)))
def test_an_event_comes_after_work_that_others_appended_to_the_list(sim, driver, done):
    """Where lists cannot be queried, neither that work nor an event that a wait recorded makes the stream busy."""
    assert sim(SHARED, driver=driver) == f"{done} False True True"


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
def test_gpuglues_work_comes_after_work_that_others_appended_to_the_list(sim, driver):
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
assert new.handle == theirs.value, "its address was not reused"
gg.zeros(10, stream=new); new.synchronize(); new.close(); gg.synchronize(); gg.alloc(16).close(); gg.trim()
print(driver.sim_alive(b"stream"))
"""


@pytest.mark.parametrize("driver", ("old", "new"))
def test_a_new_stream_is_a_new_object_even_if_its_list_has_a_reused_address(sim, driver):
    alive = int(sim(REUSED, driver=driver))
    assert alive == int(sim(REUSED.split("class Desc")[0] + "print(driver.sim_alive(b'stream'))", driver=driver))


def test_the_drivers_build_log_is_in_the_message(sim):
    image = needed("GPUGLUE_TEST_SPIRV", "images/kernels.spv")
    code = (
        "import gpuglue as gg\n"
        f"try: gg.Module({str(image)!r}, gg.Device('ze:0'))\n"
        "except gg.UnsupportedError as error: print(error)"
    )
    message = sim(code, GPUGLUE_SIM_OPENCL="/nonexistent/libOpenCL.so.1")
    assert "UNSUPPORTED_FEATURE" in message and "/nonexistent/libOpenCL.so.1: cannot open shared object file" in message


# Their memory is freed without gpuglue, and other memory gets its address.
FREED = REUSED[: REUSED.index("class Description")] + """
class OfDevice(ctypes.Structure):
    _fields_ = [("stype", ctypes.c_uint32), ("next", ctypes.c_void_p), ("flags", ctypes.c_uint32), ("ordinal", ctypes.c_uint32)]
context, gpu, description = ctypes.c_void_p(handles[2]), ctypes.c_void_p(handles[1]), OfDevice(0x15)
def allocated(made):
    sizes = ctypes.c_size_t(1 << 20), ctypes.c_size_t(64)
    return driver.zeMemAllocDevice(context, ctypes.byref(description), *sizes, gpu, ctypes.byref(made)) or made.value
def exported(address):
    gg._core._wrap_pointer(address, 1 << 20, gg.Device("ze:0"), None).ipc_handle()
    return driver.sim_calls(b"zeMemGetIpcHandle")
first = allocated(ctypes.c_void_p())
once, again = exported(first), exported(first)
assert not driver.zeMemFree(context, ctypes.c_void_p(first))
print(once, again, exported(second := allocated(ctypes.c_void_p())), first == second)
"""


@pytest.mark.parametrize("driver", ("old", "new"))
def test_memory_at_the_address_of_freed_memory_of_others_has_a_handle_of_its_own(sim, driver):
    assert sim(FREED, driver=driver) == "1 1 2 True"
