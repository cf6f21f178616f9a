"""Level Zero: the end of a stream's list. The simulated driver is loaded in place of a loader."""

from test_level_zero import sim  # noqa: F401 (a fixture)

CLOSED = """
import ctypes, os, threading, gpuglue as gg
stream = gg.Stream()
driver, handle = ctypes.CDLL(os.environ["GPUGLUE_ZE_LIBRARY"]), stream.handle
gg.empty(100, "u1").fill(7, stream=stream); stream.synchronize()
driver.sim_hold(1)
event = stream.record()
driver.sim_fail(b"zeEventHostSynchronize:1=1879048195")
threading.Timer(0.2, driver.sim_hold, (0,)).start()
stream.close(); gg.trim(); gg.synchronize()
print(event.done, driver.sim_calls(b"zeEventHostSynchronize") > 0)
"""


def test_a_list_is_not_destroyed_before_its_last_signal_if_a_wait_for_it_fails(sim):  # noqa: F811
    assert sim(CLOSED, driver="old") == "True True"


LATE = """
import ctypes, os, gpuglue as gg
stream = gg.Stream()
driver, handle = ctypes.CDLL(os.environ["GPUGLUE_ZE_LIBRARY"]), stream.handle
gg.empty(100, "u1").fill(7, stream=stream); stream.synchronize()
driver.sim_hold(1)
event = stream.record()
driver.sim_fail(b"zeEventHostSynchronize:1+=1")  # not ready, as after its time
stream.close(); gg.trim()
driver.sim_fail(b""); driver.sim_hold(0)
event.synchronize(); gg.trim()
print(event.done)
"""


def test_a_list_whose_last_signal_comes_too_late_is_not_destroyed(sim):  # noqa: F811
    assert sim(LATE, driver="old") == "True"


UNKNOWN = """
import ctypes, os, threading, gpuglue as gg
stream, event = gg.Stream(), gg.Event(timing=True)
driver = ctypes.CDLL(os.environ["GPUGLUE_ZE_LIBRARY"])
driver.sim_hold(1)
driver.sim_fail(b"zeCommandListAppendBarrier:1=1879048195")  # after the timestamp was appended
try:
    stream.record(event)
except gg.Error as error:
    print(error)
driver.sim_fail(b"")
threading.Timer(0.2, driver.sim_hold, (0,)).start()
stream.close(); gg.trim(); gg.synchronize()
"""


def test_a_list_with_work_of_a_call_that_failed_is_not_destroyed_before_its_end(sim):  # noqa: F811
    assert "recording an event" in sim(UNKNOWN, driver="old")
