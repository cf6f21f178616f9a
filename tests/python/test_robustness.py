"""Forks, exits, interrupts and reused handles while memory is in use: nothing aborts, no data is lost."""

import os
import signal
import threading

import numpy as np
import pytest
from conftest import run_python, signal_during_the_wait, succeeds

import gpuglue as gg

LARGE = 1 << 18  # elements of eight bytes: no small copy


# ---- fork ------------------------------------------------------------------------------------------------

# Python 3.12 warns of every fork of a process with threads.
NO_WARNING = ("-W", "ignore::DeprecationWarning")
AFTER_FORK = (  # other threads: see FORK_AFTER in test_process.py
    "import gpuglue as gg, numpy as np, os\n"
    "from conftest import other_threads_sleep, until\n"
    "array, buffer, pinned = gg.full(4, 7), gg.alloc(4), gg.alloc_pinned(4)\n"
    "stream = gg.Stream(); gg.synchronize(); until(other_threads_sleep)\n"
    "pid = os.fork()\n"
)
REPORT = "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), array.tolist())"


def test_a_child_can_move_data_if_the_fork_came_before_the_first_use():
    code = (
        "import gpuglue as gg, os\n"
        "assert gg.__version__ and gg.backends()\n"
        "pid = os.fork()\n"
        "array = gg.full(4, 7)\n"
        "assert array.tolist() == [7] * 4\n"
        "if pid == 0: os._exit(3)\n" + REPORT
    )
    assert succeeds(run_python(code)) == "3 [7, 7, 7, 7]"


def test_memory_advises_spawn_in_a_child_and_the_parents_is_unchanged():
    code = AFTER_FORK + (
        "if pid == 0:\n"
        "    calls = [array.get, array.tolist, lambda: array.item(0), array.copy, lambda: array.set(np.zeros(4, 'i8')), lambda: array.fill(1),\n"
        "             lambda: gg.zeros(3), lambda: gg.to_gpu([1]), lambda: gg.alloc(1), lambda: gg.alloc_pinned(1),\n"
        "             lambda: gg.empty_pinned(3), lambda: gg.copy(buffer, b'1'), lambda: gg.copy(bytearray(4), buffer),\n"
        "             lambda: gg.fill(buffer, 1), lambda: array.get_async(stream=stream), lambda: buffer.record_use(stream),\n"
        "             gg.synchronize, array.device.synchronize, stream.__enter__, array.device.__enter__, gg.default_backend]\n"
        "    for number, call in enumerate(calls):\n"
        "        try: call()\n"
        "        except gg.ForkError as error: assert 'spawn' in str(error), error\n"
        "        else: print('call', number, 'was made', flush=True)\n"
        "    os._exit(0)\n" + REPORT
    )
    assert succeeds(run_python(code, arguments=NO_WARNING)) == "0 [7, 7, 7, 7]"


def test_inherited_memory_does_nothing_in_a_child_and_the_parents_is_unchanged():
    code = AFTER_FORK + (
        "if pid == 0:\n"
        "    repr(array), repr(buffer), array.shape, array.ptr, buffer.nbytes\n"
        "    buffer.close(); pinned.close(); del array, buffer, pinned, stream\n"
        "    raise SystemExit(5)\n" + REPORT  # through atexit
    )
    assert succeeds(run_python(code, arguments=NO_WARNING)) == "5 [7, 7, 7, 7]"


def test_the_list_of_backends_in_a_child_reports_the_fork(backend):
    code = AFTER_FORK + (
        "if pid == 0:\n"
        "    for level in 'passive', 'active':\n"
        f"        (record,) = (r for r in gg.backends(level) if r.name == {backend!r})\n"
        "        assert record.status == 'forked' and 'spawn' in record.reason, record\n"
        "    os._exit(0)\n" + REPORT
    )
    assert succeeds(run_python(code, arguments=NO_WARNING)) == "0 [7, 7, 7, 7]"


def test_thirty_two_threads_race_for_the_first_use():
    rounds = 5 if "LD_PRELOAD" in os.environ else 20  # a sanitizer takes a second for each
    code = (
        "import gpuglue as gg, os, threading\n"
        "def race():\n"
        "    barrier, found = threading.Barrier(32), []\n"
        "    def use():\n"
        "        barrier.wait(); buffer, back = gg.alloc(3), bytearray(3)\n"
        "        gg.copy(buffer, b'123'); gg.copy(back, buffer); found.append((buffer.device, bytes(back)))\n"
        "    threads = [threading.Thread(target=use) for _ in range(32)]\n"
        "    [t.start() for t in threads]; [t.join() for t in threads]\n"
        "    return len(found) == 32 and set(found) == {(gg.current_device(), b'123')}\n"
        "gg.backends()\n"  # passive: each child is the first to use the device
        f"for _ in range({rounds}):\n"
        "    pid = os.fork()\n"
        "    if pid == 0: os._exit(not race())\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
        "print('end')"
    )
    assert succeeds(run_python(code, arguments=NO_WARNING)) == "end"


# ---- exit ------------------------------------------------------------------------------------------------

GATED = (
    "import gpuglue as gg, numpy as np, sys, threading\n"
    "from conftest import Gate, gate_library\n"
    "device = gg.Device(); stream = gg.Stream(device, nonblocking=True)\n"
    "array, other = gg.zeros(1000, device=device), gg.alloc(1000, device)\n"
    "pinned = gg.zeros_pinned(1000, device=device); gg.synchronize()\n"
    "gate = Gate(gate_library()); gate.hold(stream)\n"
)


def test_the_process_ends_silently_with_everything_at_once(device, gate):
    code = GATED + (
        "array.set_async(pinned, stream); array.get_async(stream=stream); array.get_async(pinned, stream)\n"
        "gg.fill(other, 1, stream=stream); copied = array.copy(stream=stream); event = stream.record()\n"
        "view = memoryview(gg.alloc_pinned(10)); stream.__enter__(); device.set_current()\n"
        "sys.cycle = [array, copied, stream, event, view]; sys.cycle.append(sys.cycle)\n"
        "print('end')"
    )
    assert succeeds(run_python(code)) == "end"


def test_the_process_ends_after_an_exception_with_its_own_status(device, gate):
    result = run_python(GATED + "array.get_async(stream=stream); raise SystemExit(3)")
    assert (result.returncode, result.stderr) == (3, "")


def test_copies_to_the_host_that_are_queued_at_the_end_arrive():
    code = (
        "import atexit\n"
        "atexit.register(lambda: print((fetched == 7).all()))\n"  # registered first, so it runs after gpuglue's own
        "import gpuglue as gg\n"
        "array, stream = gg.full(1 << 18, 7), gg.Stream()\n"
        "fetched = array.get_async(stream=stream)"
    )
    assert succeeds(run_python(code)) == "True"


# ---- Ctrl-C ------------------------------------------------------------------------------------------------

WAITS = {
    "device.synchronize": lambda a, s: a.device.synchronize(),
    "synchronize": lambda a, s: gg.synchronize(a.device),
    "get": lambda a, s: a.get(stream=s),
    "get into": lambda a, s: a.get(np.zeros(LARGE), s),
    "set": lambda a, s: a.set(np.zeros(LARGE), s),
    "get without a stream": lambda a, s: a.get(),
    "copy": lambda a, s: gg.copy(np.zeros(LARGE), a, stream=s),
    "set_async": lambda a, s: a.set_async(np.zeros(LARGE), s),
    "item": lambda a, s: a.item(5),
    "export": lambda a, s: memoryview(pinned_after(a, s)),
}


def pinned_after(array, stream):
    """Pinned memory to which a copy is still queued."""
    buffer = gg.alloc_pinned(array.nbytes, array.device)
    gg.copy(buffer, array, stream=stream)
    return buffer


@pytest.mark.parametrize("name", WAITS)
def test_ctrl_c_ends_a_wait_and_leaves_work_and_objects_valid(device, stream, gate, name):
    array = gg.full(LARGE, 1.0, device=device)
    gg.synchronize(device)
    gate.hold(stream)
    array.fill(7, stream=stream)
    with pytest.raises(KeyboardInterrupt), signal_during_the_wait():
        WAITS[name](array, stream)
    assert not stream.done  # the work is still blocked
    gate.open()
    stream.synchronize()
    assert array.item(5) in (7, 0)  # 0: a set that had been queued
    array.fill(3)
    assert (array.get() == 3).all()


# ---- reused handles ------------------------------------------------------------------------------------


def test_a_new_stream_with_a_reused_handle_has_no_work_of_the_old_one(device, gate):
    array, old = gg.zeros(4, device=device), gg.Stream(device, nonblocking=True)
    gg.synchronize(device)
    gate.hold(old)
    array.fill(7, stream=old)
    handle = old.handle
    old.close()
    streams = [gg.Stream(device, nonblocking=True) for _ in range(4)]  # one may reuse the handle
    assert all(stream.done for stream in streams), handle
    opener = gate.open_when(lambda: gate.reached)
    with streams[0]:
        assert array.tolist() == [7] * 4  # waits for the work of the old stream, although its handle may be reused
    opener.join()


def test_a_new_stream_with_a_reused_handle_does_not_free_memory_early(device, gate):
    array, old = gg.zeros(LARGE, "u1", device=device), gg.Stream(device, nonblocking=True)
    pinned = gg.zeros_pinned(LARGE, "u1", device=device)
    gg.synchronize(device)
    gate.hold(old)
    array.fill(7, stream=old)
    array.get_async(pinned, old)
    old.close()
    del array
    # They are read after the gate has opened: on AMD's runtime a copy may be queued behind those of other streams on its copy engine.
    streams = [gg.Stream(device, nonblocking=True) for _ in range(2)]
    others = [gg.full(LARGE, value, "u1", device=device, stream=stream) for value, stream in enumerate(streams)]
    for stream in streams:
        stream.synchronize()
    gate.open()
    device.synchronize()
    assert (pinned == 7).all()
    for value, other in enumerate(others):
        assert (other.get() == value).all()  # not the 7 of the old stream, whose memory was still in use
