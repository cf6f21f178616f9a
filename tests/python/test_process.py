"""Forks, the end of the process, and interrupts: objects stay valid or become unusable, and nothing aborts."""

import os
import signal
import sys
import threading
import time

import pytest
from conftest import run_python, signal_during_the_wait, succeeds

import gpuglue as gg

GATED = (
    "import gpuglue as gg, os, sys\n"
    "from conftest import Gate, gate_library\n"
    "device = gg.Device(); stream = gg.Stream(device, nonblocking=True)\n"
    "gate = Gate(gate_library())\n"
)


def needs_gate(device):
    if not device.supports("stream_host_func"):
        pytest.skip("work cannot be blocked here")


def test_a_fork_before_the_first_use_works():
    code = (
        "import gpuglue as gg, os\n"
        "gg.backends()\n"  # passive: initialises nothing
        "pid = os.fork()\n"
        "gg.Stream().synchronize()\n"
        "if pid == 0: os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    assert succeeds(run_python(code)) == "7"


# Python 3.12 warns of every fork of a process with threads.
def forks(code):
    return succeeds(run_python(code, arguments=("-W", "ignore::DeprecationWarning")))


# A thread of a simulated driver that is inside the address sanitizer's allocator at the fork leaves its lock held
# in the child (gcc 12).
FORK_AFTER = (
    "import gpuglue as gg, os\n"
    "from conftest import other_threads_sleep, until\n"
    "stream = gg.Stream(); event = stream.record(); device = stream.device\n"
    "stream.synchronize(); until(other_threads_sleep)\n"
    "pid = os.fork()\n"
)


def test_after_a_fork_every_call_in_the_child_advises_spawn():
    code = FORK_AFTER + (
        "if pid == 0:\n"
        "    calls = [gg.Stream, stream.synchronize, event.record, device.memory_info, device.set_current, gg.current_device,\n"
        "             lambda: stream.done, lambda: event.done, lambda: stream.wait(event), lambda: gg.Event(device)]\n"
        "    for call in calls:\n"
        "        try: call()\n"
        "        except gg.ForkError as error: assert 'spawn' in str(error), error\n"
        "        else: os._exit(1)\n"
        "    os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    assert forks(code) == "0"


def test_after_a_fork_the_child_has_no_devices_and_their_backend_names_the_fork_as_the_reason():
    code = FORK_AFTER + (
        "if pid == 0:\n"
        "    try: gg.devices(device.backend)\n"
        "    except gg.ForkError as error: reason = str(error)\n"
        "    os._exit(0 if gg.devices() == gg.available_backends() == [] and 'spawn' in reason else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    assert forks(code) == "0"


def test_objects_inherited_by_a_fork_do_nothing_and_the_parent_works():
    code = FORK_AFTER + (
        "if pid == 0:\n"
        "    repr(stream), repr(event), repr(device)\n"
        "    event.close(); stream.close(); del stream, event, device\n"
        "    raise SystemExit(5)\n"  # through atexit
        "status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "event.record(stream); stream.synchronize(); print(status, event.done)"
    )
    assert forks(code) == "5 True"


def test_inherited_managed_memory_cannot_be_used_in_a_child(device):
    try:
        gg.alloc_managed(64, device).close()
    except gg.UnsupportedError:
        pytest.skip("this device has no managed memory")
    code = FORK_AFTER.replace("pid =", "managed = gg.alloc_managed(64); gg.fill(managed, 3); device.synchronize()\npid =") + (
        "if pid == 0:\n"
        "    calls = [lambda: memoryview(managed), lambda: bytes(managed), lambda: managed.__array_interface__, managed.prefetch,\n"
        "             lambda: gg.copy(bytearray(64), managed), lambda: gg.fill(managed, 4)]\n"
        "    for call in calls:\n"
        "        try: call()\n"
        "        except gg.ForkError as error: assert 'spawn' in str(error), error\n"
        "        else: os._exit(1)\n"
        "    repr(managed); managed.close(); os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), set(bytes(managed)))"
    )
    assert forks(code) == "0 {3}"


def test_a_with_block_that_a_fork_is_inside_of_can_be_left(backend):
    code = FORK_AFTER.replace("pid = os.fork()\n", "") + (
        "with stream:\n"
        "    pid = os.fork()\n"
        "if pid == 0: os._exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    assert forks(code) == "3"


def test_a_spawned_process_can_use_the_devices(tmp_path):
    script = tmp_path / "spawn.py"
    script.write_text(
        "import gpuglue as gg, multiprocessing\n"
        "def work(queue): s = gg.Stream(); s.synchronize(); queue.put(s.done)\n"
        "if __name__ == '__main__':\n"
        "    gg.Stream().synchronize()\n"
        "    context = multiprocessing.get_context('spawn'); queue = context.Queue()\n"
        "    child = context.Process(target=work, args=(queue,)); child.start()\n"
        "    print(queue.get()); child.join(); assert child.exitcode == 0\n"
    )
    assert succeeds(run_python(None, arguments=(str(script),))) == "True"


def test_the_process_ends_silently_with_objects_alive():
    code = (
        "import gpuglue as gg, sys\n"
        "sys.kept = [gg.Stream(), gg.Event(gg.Device()), gg.Device(), gg.Timer(), gg.alloc(1024)]\n"
        "sys.kept[0].__enter__()\n"
        "print('end')"
    )
    assert succeeds(run_python(code)) == "end"


def test_the_process_ends_silently_with_a_running_stream(device):
    needs_gate(device)
    code = GATED + (
        "gate.hold(stream); event = stream.record()\n"
        "while not gate.reached: pass\n"
        "print('end')"
    )
    assert succeeds(run_python(code)) == "end"


def test_the_process_ends_silently_with_copies_pending(device):
    pytest.importorskip("numpy")
    needs_gate(device)
    code = GATED + (
        "import threading\n"
        "array = gg.zeros(1000, 'f4', device=device); out = gg.empty_pinned(1000, 'f4')\n"
        "gate.hold(stream); array.get_async(out=out, stream=stream)\n"
        "timer = threading.Timer(0.2, gate.open); timer.daemon = True  # not waited for before the end\n"
        "timer.start()\n"
        "print('end')"
    )
    assert succeeds(run_python(code)) == "end"


def test_calls_after_the_end_are_refused_and_releases_do_nothing():
    code = (
        "import atexit\n"
        "def late():\n"
        "    try: gg.Stream()\n"
        "    except gg.Error as error: print(error.status)\n"
        "    stream.close(); print('closed')\n"
        "atexit.register(late)\n"  # registered first, so it runs after gpuglue's own
        "import gpuglue as gg\n"
        "stream = gg.Stream()"
    )
    assert succeeds(run_python(code)).split() == ["ERR_SHUT_DOWN", "closed"]


@pytest.mark.parametrize("waiter", ["stream", "event", "timer"])
def test_ctrl_c_ends_a_wait_while_the_work_is_blocked(stream, gate, waiter):
    gate.hold(stream)
    with gg.Timer(stream) as timer:
        pass
    event = stream.record()
    waits = {"stream": stream.synchronize, "event": event.synchronize, "timer": lambda: timer.ms}
    with pytest.raises(KeyboardInterrupt), signal_during_the_wait():
        waits[waiter]()
    assert not stream.done and not event.done
    gate.open()
    stream.synchronize()
    assert event.done and timer.ms >= 0


def test_a_signal_handler_that_returns_does_not_end_the_wait(stream, gate):
    gate.hold(stream)
    before = signal.signal(signal.SIGUSR1, lambda *_: gate.open())
    try:
        with signal_during_the_wait(signal.SIGUSR1):
            stream.synchronize()  # the handler opens the gate
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert stream.done


def test_a_wait_in_another_thread_is_not_interrupted(stream, gate):
    gate.hold(stream)
    ended = []
    waiter = threading.Thread(target=lambda: ended.append(stream.synchronize()))
    waiter.start()
    with pytest.raises(KeyboardInterrupt), signal_during_the_wait():
        while True:
            time.sleep(0.01)
    assert not ended
    gate.open()
    waiter.join()
    assert ended == [None] and sys.exc_info() == (None, None, None)


def test_threads_of_gpuglue_block_all_signals_but_those_of_faults(device):
    code = (
        "import gpuglue as gg, numpy as np, os\n"
        "device = gg.Device(); stream = gg.Stream(device)\n"
        "gg.to_gpu(np.ones(1 << 21), device, stream=stream).get(stream=stream)\n"
        "for task in os.listdir('/proc/self/task'):\n"
        "    said = dict(line.split(':', 1) for line in open(f'/proc/self/task/{task}/status'))\n"
        "    print(said['Name'].strip(), int(said['SigBlk'], 16))\n"
    )
    printed = succeeds(run_python(code, GPUGLUE_STAGING="always", GPUGLUE_COPY_THREADS="2"))
    blocked = {name: int(mask) for name, mask in map(str.split, printed.splitlines()) if name.startswith("gpuglue-")}
    assert "gpuglue-copy" in blocked
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1):
        assert all(mask >> (number - 1) & 1 for mask in blocked.values()), blocked
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
        assert not any(mask >> (number - 1) & 1 for mask in blocked.values()), blocked


def test_the_memory_of_an_interrupted_get_is_not_reused_before_the_copy_has_run(device):
    needs_gate(device)
    if not device.supports("mem_register"):
        pytest.skip("results are not pinned here, so a get() that has begun is completed")
    code = GATED + (
        "import numpy as np\nfrom conftest import signal_during_the_wait\n"
        "one, two = (gg.full(1 << 20, n, 'i4', device=device) for n in (1, 2))\n"
        "other = gg.Stream(device, nonblocking=True); device.synchronize()\n"
        # Pinned from its second use on. A stream of AMD's runtime keeps the copy engine of its first copy.
        "for _ in range(3): one.get(stream=other)\n"
        "gate.hold(stream)\n"
        "try:\n"
        "    with signal_during_the_wait(): one.get(stream=stream)\n"
        "    print('not interrupted')\n"
        "except KeyboardInterrupt: pass\n"
        "result = two.get(stream=other)\n"
        "gate.open(); stream.synchronize()\n"
        "print((result == 2).all())"
    )
    assert succeeds(run_python(code)) == "True"


PROTOCOLS = ("np.asarray(array)", "np.array(array)", "np.concatenate([array, array])", "np.copyto(out, array)", "out.__setitem__(..., array)",
             "bytes(array)", "np.frombuffer(array, 'u1')", "array.__array_interface__")


@pytest.mark.parametrize("wait", PROTOCOLS)
def test_ctrl_c_ends_the_wait_of_a_protocol_once(device, wait):
    """NumPy ignores any exception of the buffer protocol and uses the next protocol."""
    needs_gate(device)
    if not hasattr(gg.zeros(1, device=device), "__array_interface__"):
        pytest.skip("the host cannot access the memory")
    code = GATED + (
        "import numpy as np\nfrom conftest import signal_during_the_wait\n"
        "array, out = gg.zeros(1000, 'u1', device=device), np.empty(1000, 'u1'); device.synchronize()\n"
        "gate.hold(stream); array.fill(1, stream=stream)\n"
        "try:\n"
        f"    with signal_during_the_wait(): {wait}\n"
        "    print('not interrupted')\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "gate.open()\n"
        "print(np.asarray(array).sum())"
    )
    assert succeeds(run_python(code)).split() == ["interrupted", "1000"]


SUB_INTERPRETER = """
import sys
import numpy as np
import gpuglue as gg
try:
    import _interpreters as interpreters
    create = lambda: interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    create = lambda: interpreters.create(isolated=False)
array = gg.full(10, 3, "i4")
inner = create()
code = f'''
import sys
sys.path[:] = {sys.path!r}
try:
    import gpuglue
except ImportError as error:
    print(error, flush=True)
'''
interpreters.run_string(inner, code)
interpreters.destroy(inner)
print(array.get().sum(), gg.asarray(array[:5]).get().sum())
"""


def test_a_sub_interpreter_is_refused_and_the_main_one_works():
    lines = succeeds(run_python(SUB_INTERPRETER, arguments=["-W", "ignore"])).splitlines()
    assert "main interpreter only" in lines[0] and lines[1] == "30 15"
