"""`await` of events and streams in asyncio, and callbacks of streams."""

import _thread
import asyncio
import functools
import gc
import os
import signal
import threading
import time
import weakref

import pytest
from conftest import HANG, needs, run_python, succeeds, until

import gpuglue as gg
from gpuglue import _waiting

MANY = 10_000 if os.environ["GPUGLUE_BACKEND"] in ("host", "cuda") else 1000  # simulated Level Zero is slow


@pytest.fixture
def other(device):
    with_other = gg.Stream(device, nonblocking=True)
    yield with_other
    with_other.close()


def run(main):
    return asyncio.run(asyncio.wait_for(main, HANG))


# ---- await ----


def test_an_await_ends_when_the_work_is_done(stream, gate):
    async def main():
        gate.hold(stream)
        task = asyncio.ensure_future(stream.completion())
        await asyncio.sleep(0.02)  # the loop runs meanwhile
        assert not task.done()
        gate.open()
        assert await task is None
        assert stream.done

    run(main())


def test_an_await_of_an_event_does_not_wait_for_later_work(stream, gate, device):
    async def main():
        event = stream.record()
        gate.hold(stream)
        await event
        assert not stream.done
        gate.open()

    run(main())


@pytest.mark.parametrize("make", [lambda stream: gg.Event(), lambda stream: stream.record()], ids=["never recorded", "done"])
def test_an_await_of_an_event_that_is_done_returns_at_once(stream, make):
    event = make(stream)
    event.synchronize()
    with pytest.raises(StopIteration):
        next(event.__await__())  # without a loop


def test_events_complete_in_the_order_of_the_device_not_of_the_awaits(stream, other, gate):
    order = []

    async def wait(event, name):
        await event
        order.append(name)

    async def main():
        gate.hold(stream)
        first = asyncio.ensure_future(wait(stream.completion(), "held"))
        await asyncio.sleep(0)
        await wait(other.completion(), "free")
        gate.open()
        await first

    run(main())
    assert order == ["free", "held"]


def test_many_awaits_need_one_thread(stream, gate):
    async def main():
        gate.hold(stream)
        before = threading.active_count()
        waits = [asyncio.ensure_future(stream.completion()) for _ in range(MANY)]
        await asyncio.sleep(0)
        assert threading.active_count() <= before + 1 and not any(wait.done() for wait in waits)
        gate.open()
        await asyncio.gather(*waits)

    run(main())


def test_a_cancelled_await_leaves_the_work_and_is_polled_no_more(stream, gate):

    async def main():
        gate.hold(stream)
        task = asyncio.ensure_future(stream.completion())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        until(lambda: not _waiting._poller.entries)
        gate.open()
        await stream.completion()

    run(main())


def test_a_limit_of_time_ends_an_await(stream, gate):
    async def main():
        gate.hold(stream)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(stream.completion(), 0.01)
        gate.open()

    run(main())


def test_a_loop_may_be_closed_while_an_await_is_pending(stream, gate):
    loop = asyncio.new_event_loop()
    gate.hold(stream)
    pending = loop.create_task(asyncio.wait_for(stream.completion(), None))
    loop.run_until_complete(asyncio.sleep(0.01))
    pending._log_destroy_pending = False
    loop.close()
    gate.open()

    async def main():
        await stream.completion()  # other loops still work

    run(main())


def test_loops_of_several_threads_wait_at_once(stream, gate):
    gate.hold(stream)
    finished = []

    async def main():
        await stream.completion()
        finished.append(gate.opened)

    threads = [threading.Thread(target=run, args=(main(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.open()
    for thread in threads:
        thread.join()
    assert finished == [True] * 4


def test_an_event_closed_during_an_await_still_completes_it(stream, gate):
    async def main():
        gate.hold(stream)
        event = stream.record()
        task = asyncio.ensure_future(event)
        await asyncio.sleep(0.01)
        event.close()
        gate.open()
        await task

    run(main())


def test_an_await_of_a_closed_event_is_refused(stream):
    event = stream.record()
    event.close()

    async def main():
        with pytest.raises(gg.InvalidArgumentError, match="Event is closed"):
            await event

    run(main())


def test_an_await_outside_of_asyncio_names_what_to_call(stream, gate):
    gate.hold(stream)
    with pytest.raises(RuntimeError, match=r"needs a running event loop of asyncio.*synchronize\(\)"):
        next(stream.completion().__await__())
    gate.open()


# ---- callbacks ----


def test_a_callback_runs_after_the_work_and_before_synchronize_returns(stream, gate):
    called = []
    gate.hold(stream)
    work = stream.record()
    stream.add_callback(lambda: called.append((work.done, threading.current_thread().name)))
    assert called == []
    gate.open()
    stream.synchronize()
    assert called == [(True, "gpuglue-await")]


@pytest.mark.parametrize("wait", [lambda device: device.synchronize(), lambda device: gg.synchronize(device)], ids=["method", "function"])
def test_a_wait_for_the_device_includes_the_callbacks_of_its_streams(device, stream, other, wait):
    called = []
    stream.add_callback(lambda: called.append(1))
    other.add_callback(lambda: called.append(1))
    wait(device)
    assert called == [1, 1]


def test_many_callbacks_run_in_order(stream, gate):
    called = []
    gate.hold(stream)
    for number in range(MANY):
        stream.add_callback(lambda number=number: called.append(number))
    gate.open()
    stream.synchronize()
    assert called == list(range(MANY))


def test_callbacks_run_in_order_if_a_poll_finds_a_later_event_first(stream, gate, monkeypatch):
    called, poll = [], gg._core._poll_events

    def without_the_first(events):
        found = poll(events)
        return found[1:] or found

    monkeypatch.setattr(gg._core, "_poll_events", without_the_first)
    gate.hold(stream)
    for number in range(20):
        stream.add_callback(lambda number=number: called.append(number))
    gate.open()
    stream.synchronize()
    assert called == list(range(20))


def test_later_work_does_not_wait_for_a_callback(stream):
    go = threading.Event()
    stream.add_callback(lambda: go.wait(HANG))
    stream.record().synchronize()
    go.set()
    stream.synchronize()


def test_a_callback_may_call_gpuglue(stream, device):
    results = []

    def callback():
        results.append(gg.ones(3, device=device).get().sum())
        stream.synchronize()  # does not wait for itself
        stream.add_callback(lambda: results.append("second"))

    stream.add_callback(callback)
    until(lambda: len(results) == 2)
    assert results == [3.0, "second"]


def test_a_wait_that_comes_before_add_callback_returns_is_the_only_one_to_raise_the_exception(stream, monkeypatch):
    poller = _waiting._poller
    add = poller.add

    def add_and_wait(entry):
        add(entry)
        while not entry.ran:
            time.sleep(1e-3)
        with pytest.raises(ZeroDivisionError):
            stream.synchronize()

    monkeypatch.setattr(poller, "add", add_and_wait)
    stream.add_callback(lambda: 1 / 0)
    stream.synchronize()
    assert not _waiting._unsettled


def test_several_exceptions_are_raised_as_a_group_and_later_callbacks_run(stream):
    called = []
    for callback in (lambda: 1 / 0, lambda: called.append(1), lambda: [][0]):
        stream.add_callback(callback)
    with pytest.raises(ExceptionGroup) as raised:
        stream.synchronize()
    assert [type(error) for error in raised.value.exceptions] == [ZeroDivisionError, IndexError] and called == [1]


def test_a_wait_for_another_stream_does_not_raise_it(stream, other):
    stream.add_callback(lambda: 1 / 0)
    other.synchronize()
    with pytest.raises(ZeroDivisionError):
        stream.synchronize()


def test_a_callback_and_its_stream_are_dropped_after_the_call(device):
    class Callback:
        def __call__(self):
            pass

    stream, callback = gg.Stream(device), Callback()
    alive = [weakref.ref(stream), weakref.ref(callback)]
    stream.add_callback(callback)
    stream.synchronize()
    del stream, callback
    until(lambda: gc.collect() is not None and [ref() for ref in alive] == [None, None])


def test_a_callback_must_be_callable(stream):
    with pytest.raises(TypeError, match="must be callable, got 3"):
        stream.add_callback(3)


def test_a_callback_must_not_be_a_coroutine_function(stream):
    async def callback():
        pass

    for given in (callback, functools.partial(callback)):
        with pytest.raises(TypeError, match="is a coroutine function"):
            stream.add_callback(given)


def test_a_closed_stream_takes_no_callback(device):
    stream = gg.Stream(device)
    stream.close()
    for call in (stream.completion, lambda: stream.add_callback(print)):
        with pytest.raises(gg.InvalidArgumentError, match="Stream is closed"):
            call()


# ---- the process ----

HELD = "import asyncio, os, signal, threading, gpuglue as gg\nfrom conftest import Gate, gate_library\n"
HELD += "stream = gg.Stream(nonblocking=True); gate = Gate(gate_library()).hold(stream)\n"


def test_an_interrupt_ends_an_await(gate):
    code = HELD + (
        "async def main():\n"
        "    loop = asyncio.get_running_loop()\n"
        "    loop.call_later(0.05, os.kill, os.getpid(), signal.SIGINT)\n"
        "    await stream.completion()\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try: asyncio.run(main())\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "gate.open()\n"
    )
    assert succeeds(run_python(code)) == "interrupted"


def test_interrupts_end_waits_for_callbacks(gate):
    # Many: a signal that comes just before Python waits for a lock is noticed only when that wait ends.
    code = HELD + (
        "signal.signal(signal.SIGINT, signal.default_int_handler); gate.open(); interrupted = 0\n"
        "for _ in range(50):\n"
        "    go = threading.Event()\n"
        "    try: stream.add_callback(lambda: (os.kill(os.getpid(), signal.SIGINT), go.wait())); stream.synchronize()\n"
        "    except KeyboardInterrupt: interrupted += 1\n"
        "    go.set(); stream.synchronize()\n"
        "print(interrupted)\n"
    )
    assert succeeds(run_python(code)) == "50"


# The profiler runs `act` at the n-th place, for every n, at which the interpreter could run a signal handler.
AT_EVERY_PLACE = (
    "import sys, threading, gpuglue as gg\n"
    "from gpuglue import _waiting\n"
    "stream = gg.Stream()\n"
    "def at(place):\n"
    "    def profile(frame, event, argument):\n"
    "        nonlocal place\n"
    "        if event in ('call', 'c_return'):\n"
    "            place -= 1\n"
    "            if place < 0: sys.setprofile(None); act()\n"
    "    return profile\n"
    "def interrupt(): raise KeyboardInterrupt\n"
    "def add(): stream.add_callback(lambda: called.append('handler'))\n"
    "def add_and_wait(): add(); stream.synchronize()\n"
    "def first(place):\n"
    "    sys.setprofile(at(place))\n"
    "    try: stream.add_callback(lambda: called.append('first')); finished = sys.getprofile() is not None; sys.setprofile(None)\n"
    "    except KeyboardInterrupt: return True\n"
    "    return not finished\n"
    "stream.add_callback(print); stream.synchronize()\n"
    "for place in range(1000):\n"
    "    called = []\n"
    "    _waiting._poller.stop(); _waiting._reset()\n"
    "    if not first(place): break\n"
    "    stream.add_callback(lambda: called.append('last')); stream.synchronize()\n"
    "    assert called[-1] == 'last' and set(called) - {'first', 'last'} == others, (place, called)\n"
    "    assert act is interrupt or 'first' in called, (place, called)\n"
    "assert 5 < place < 999\n"
)


@pytest.mark.parametrize("act", ["interrupt", "add", "add_and_wait"])
def test_a_signal_handler_may_interrupt_add_callback_at_any_place(act):
    code = AT_EVERY_PLACE.replace("for place", f"act, others = {act}, {set() if act == 'interrupt' else {'handler'}}\nfor place")
    succeeds(run_python(code))


@pytest.fixture
def poller():
    """The one of this test."""

    _waiting._poller.stop()
    _waiting._reset()
    return _waiting._poller


def test_an_interrupt_while_the_thread_starts_leaves_one_thread(stream, poller, monkeypatch):
    start = _thread.start_new_thread

    def interrupted(function, arguments):
        start(function, arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream.add_callback(lambda: None)
    called = []
    stream.add_callback(lambda: called.append(1))
    stream.synchronize()
    assert called == [1] and len(poller.role) == 0


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()], ids=["RuntimeError", "MemoryError"])
def test_a_callback_that_no_thread_could_take_is_not_kept(stream, poller, monkeypatch, error):
    called = []

    def fail(function, arguments):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", fail)
        with pytest.raises(type(error)):
            stream.add_callback(lambda: called.append("lost"))
    assert not poller.added
    stream.add_callback(lambda: called.append("kept"))
    stream.synchronize()
    assert called == ["kept"]


def test_an_await_that_is_cancelled_before_the_first_poll_is_not_polled(poller):

    poller.started = True  # without a thread that polls
    entry = _waiting._Await(None, None, None)
    poller.add(entry)
    poller.abandon(entry)
    poller.collect()
    poller.started = False
    assert poller.entries == []


def test_a_loop_that_fails_does_not_end_the_waits_of_others(stream, gate, poller, monkeypatch):
    reported = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: reported.append(arguments.exc_type))

    async def main():
        def fail(*arguments, **options):
            raise OSError("no wake-up")

        gate.hold(stream)
        task = asyncio.ensure_future(stream.completion())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon_threadsafe = fail
        gate.open()
        while not reported:
            await asyncio.sleep(0.001)
        task.cancel()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.close()
    assert reported == [OSError] and poller.started

    async def other():
        await stream.completion()

    run(other())
    called = []
    stream.add_callback(lambda: called.append(1))
    stream.synchronize()
    assert called == [1]


@pytest.mark.parametrize("step", ["collect", "poll"])
def test_a_poll_that_fails_is_reported_and_tried_again(stream, poller, monkeypatch, step):
    reported, called, right = [], [], getattr(poller, step)

    def fail():
        setattr(poller, step, right)
        raise MemoryError

    monkeypatch.setattr(threading, "excepthook", lambda arguments: reported.append(arguments.exc_type))
    setattr(poller, step, fail)
    stream.add_callback(lambda: called.append(1))
    until(lambda: called)
    stream.synchronize()
    assert reported == [MemoryError]


def test_the_process_ends_while_waits_are_pending(gate):
    code = HELD + (
        "async def main():\n"
        "    task = asyncio.ensure_future(stream.completion()); await asyncio.sleep(0.01)\n"
        "asyncio.run(main()); stream.add_callback(print); import atexit; atexit.register(gate.open)\n"
    )
    assert succeeds(run_python(code)) == ""


def test_an_exception_that_no_wait_raised_is_printed_at_exit(gate):
    code = HELD + "gate.open(); stream.add_callback(lambda: 1 / 0)\nfrom conftest import until; unsettled = gg._waiting._unsettled\n"
    code += "until(lambda: next(iter(unsettled)).error)\n"
    result = run_python(code)
    assert result.returncode == 0 and "ZeroDivisionError" in result.stderr


def test_a_forked_child_awaits_with_a_thread_of_its_own(gate):
    code = HELD + (
        "async def main(): await asyncio.wait_for(gg.Event(), 9)\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "stream.add_callback(print); pid = os.fork()\n"
        "if not pid:\n"
        "    try: asyncio.run(main()); gg.synchronize()\n"
        "    except gg.ForkError: print('ForkError', flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0); gate.open()\n"
    )
    assert succeeds(run_python(code)).split() == ["ForkError"]


def test_importing_gpuglue_imports_neither_asyncio_nor_the_waits():
    code = "import sys, gpuglue; print([name for name in ('asyncio', 'gpuglue._waiting') if name in sys.modules])"
    assert succeeds(run_python(code)) == "[]"
