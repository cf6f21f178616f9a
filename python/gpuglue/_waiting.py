"""Waits without a thread for each: `await event`, and the callbacks of streams. One thread polls the events of all."""

import _thread
import atexit
import collections
import os
import sys
import threading
import time

from . import _core

# Seconds between two polls: a share of the time since something was added or done, so that short waits end promptly
# and long ones cost little.
SHORTEST, LONGEST, SHARE = 20e-6, 2e-3, 1 / 16

EXIT_LIMIT = 2  # seconds that the exit of the process waits for a callback that runs
SLICE = 0.05  # seconds: a signal that comes just before a wait for a lock does not end that wait


class _Poller:
    """The thread, from the first wait on, and the entries that wait: objects with `event`, `abandoned`, `accept` and `finish`."""

    def __init__(self):
        # Ctrl-C, or a signal handler that adds a wait, may come between any two steps of the main thread. Hence no
        # `with lock`, and no threading.Thread, whose start has some: an interrupt there would leave the lock taken.
        self.added = collections.deque()  # by any thread
        self.entries = []  # of the thread alone
        self.role = [None]  # taken by the thread that polls
        self.thread = None  # identifier of that thread
        self.ended = _thread.allocate_lock()  # locked by that thread
        self.wakeup = _thread.allocate_lock()  # a binary semaphore, unlocked by wake()
        self.wakeup.acquire()
        self.started = self.asleep = self.stopping = self.some_abandoned = False

    def add(self, entry):
        if self.stopping:
            raise RuntimeError("the interpreter is shutting down: gpuglue accepts no more waits")
        if not self.started:
            _thread.start_new_thread(self.run, ())  # perhaps by several threads at once: see run()
            self.started = True
        self.added.append(entry)  # after the start, which can fail
        if self.asleep:
            self.wake()

    def wake(self):
        _unlock(self.wakeup)

    def abandon(self, entry):
        entry.abandoned = self.some_abandoned = True

    def stop(self):
        self.stopping = True
        self.wake()
        if self.ended.acquire(timeout=EXIT_LIMIT):
            self.ended.release()

    def run(self):
        try:
            self.role.pop()
        except IndexError:  # another was first
            return
        with self.ended:
            try:
                self.thread = threading.get_ident()
                threading.current_thread().name = "gpuglue-await"
                self.loop()
            finally:
                self.started, self.thread = False, None
                self.role.append(None)

    def loop(self):
        progress = ended = time.monotonic()
        began = ended
        while not self.stopping:
            try:
                self.sleep(max(SHORTEST, 2 * (ended - began), min(LONGEST, SHARE * (ended - progress))))
                began = time.monotonic()
                if self.collect() | self.poll():
                    progress = time.monotonic()
                ended = time.monotonic()
            except BaseException as error:  # MemoryError: the other waits must still end
                _report(error)
                time.sleep(LONGEST)

    def sleep(self, pause):
        self.asleep = True  # before the test of `added`: add() does the two in the other order
        if not self.added and not self.stopping:
            self.wakeup.acquire(timeout=pause if self.entries else -1)
        self.asleep = False

    def collect(self):
        """Whether there are new entries."""
        some = bool(self.added)
        while self.added:
            self.added[0].accept()
            self.entries.append(self.added[0])
            self.added.popleft()  # after what can fail
        if self.some_abandoned:  # those just added too
            self.some_abandoned = False
            self.entries = [entry for entry in self.entries if not entry.abandoned]
        return some

    def poll(self):
        """Whether any entry is done."""
        entries = self.entries
        try:
            done = _core._poll_events([entry.event for entry in entries])
        except Exception as error:  # MemoryError: nobody must wait forever
            done = [(index, error) for index in range(len(entries))]
        if done:
            indices = {index for index, _ in done}
            batches = _by_loop([(entries[index], error) for index, error in done])
            self.entries = [entry for index, entry in enumerate(entries) if index not in indices]
            for loop, batch in batches.items():
                _finish(loop, batch)
        return bool(done)


def _unlock(lock):
    try:
        lock.release()
    except RuntimeError:  # unlocked already
        pass


def _by_loop(done):
    """Group what is done by loop, since waking a loop costs a system call."""
    batches = collections.defaultdict(list)
    for entry, error in done:
        batches[entry.loop].append((entry, error))
    return batches


def _finish(loop, batch):
    """An error concerns this loop alone: it is reported, and the others go on."""
    try:
        if loop is None:
            _finish_all(batch)
        else:
            loop.call_soon_threadsafe(_finish_all, batch)
    except BaseException as error:
        if loop is None or not (isinstance(error, RuntimeError) and loop.is_closed()):  # closed: nobody waits
            _report(error)


def _finish_all(batch):
    for entry, error in batch:
        try:
            entry.finish(error)
        except Exception as failure:  # MemoryError: the others must still end
            _report(failure)


def _report(error):
    """As an exception that ends a thread, without ending it."""
    try:
        threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread())))
    except BaseException:  # the program's own hook
        pass


# ---- await ----


class _Await:
    """A future of an asyncio loop that is set when the event is done."""

    __slots__ = ("event", "future", "loop", "abandoned")

    def __init__(self, event, future, loop):
        self.event, self.future, self.loop, self.abandoned = event, future, loop, False

    def accept(self):
        pass

    def finish(self, error):
        if self.future.done():  # cancelled
            return
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)


def wait(event):
    """The iterator of `await event`."""
    held = _core._event_hold(event)
    done = [(0, None)] if held is None else _core._poll_events([held])
    if done:
        _, error = done[0]
        if error is not None:
            raise error
        raise_errors(event, held)
        return
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(f"await of {event!r} needs a running event loop of asyncio (trio has none); without one call synchronize()") from None
    entry = _Await(held, loop.create_future(), loop)
    poller = _poller
    try:
        poller.add(entry)
        yield from entry.future
    except BaseException:  # cancelled, or the loop has dropped the coroutine
        poller.abandon(entry)
        raise
    raise_errors(event, held)


# ---- callbacks ----


class _Callback:
    """A function that the poller's thread calls after the event, and after the callbacks that its stream got before."""

    __slots__ = ("stream", "device", "event", "function", "queue", "done", "ran", "error", "turn", "sleepers")
    loop, abandoned = None, False

    def __init__(self, stream, function):
        self.stream, self.device, self.function = stream, stream.device, function
        self.event = _core._event_hold(stream.record())
        for _, error in _core._poll_events([self.event]):
            if isinstance(error, _core.InvalidArgumentError):  # captured: the event would never be done
                raise _core.UnsupportedError(
                    "stream is capturing: a callback cannot be captured; add it after the launch of the graph"
                )
            if error is not None:  # a driver may report it only once
                raise error
        self.queue, self.done, self.ran, self.error, self.sleepers = None, False, False, None, []
        self.turn = [None]  # taken by the wait that raises the error

    def accept(self):
        if self.queue is None:  # else tried before
            queue = _queues.setdefault(self.stream, collections.deque())
            queue.append(self)
            self.queue = queue

    def finish(self, error):
        """One poll may find a later event done and an earlier one not yet: the callbacks run in order all the same."""
        self.done, self.error = True, error
        queue = self.queue
        while queue and queue[0].done:
            entry = queue.popleft()
            try:
                entry.run()
            except Exception as failure:  # MemoryError: the others must still run
                _report(failure)
        if not queue:  # it must not keep its stream alive
            _queues.pop(self.stream, None)

    def run(self):
        try:
            if self.error is None:
                self.function()
        except BaseException as error:
            self.error = error
        try:
            if self.error is not None:
                _unsettled[self] = _failed[self] = None  # already in the first, unless an interrupt came before
        finally:
            self.ran = True
            self.settle()
            for sleeper in self.sleepers:
                _unlock(sleeper)

    def settle(self):
        if self.ran and (self.error is None or not self.turn):
            self.forget()

    def forget(self):
        _unsettled.pop(self, None)
        _failed.pop(self, None)

    def take(self):
        """Whether this thread is the first."""
        self.forget()
        try:
            self.turn.pop()
        except IndexError:
            return False
        return True

    def wait(self):
        """Until it has run. A list per callback, and not a condition: see _Poller."""
        sleeper = _thread.allocate_lock()
        sleeper.acquire()
        self.sleepers.append(sleeper)  # before the test of `ran`: run() does the two in the other order
        poller = _poller
        while not self.ran and not poller.stopping:
            sleeper.acquire(timeout=SLICE)


def add_callback(stream, function):
    """Stream.add_callback."""
    import inspect

    if inspect.iscoroutinefunction(function):
        raise TypeError("the callback is a coroutine function, expected one that runs when it is called")
    entry = _Callback(stream, function)
    _poller.add(entry)
    _unsettled[entry] = None  # last: an exception before it leaves nothing that a wait would wait for
    entry.settle()  # it may have run by now


def finish_callbacks(waited):
    """After a wait for a stream or a device: let its callbacks run, and raise their errors."""
    if not _unsettled or _poller.stopping or threading.get_ident() == _poller.thread:
        return
    entries = [entry for entry in list(_unsettled) if waited == entry.stream or waited is entry.device]
    for entry in reversed(entries):  # those before the last of a stream have run when it has
        entry.wait()
    _raise(entries, waited)


def raise_errors(waited, held=None):
    """After another wait, for an Event or for work of a Stream: raise the errors of the callbacks before it that have run."""
    if not _failed or _poller.stopping or threading.get_ident() == _poller.thread:
        return
    if isinstance(waited, _core.Event):
        held = held or _core._event_hold(waited)
        _raise([entry for entry in list(_failed) if held and _core._event_follows(held, entry.event)], waited)
    else:
        _raise([entry for entry in list(_failed) if waited == entry.stream], waited)


def _raise(entries, waited):
    errors = [entry.error for entry in entries if entry.ran and entry.error is not None and entry.take()]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} callbacks of {waited!r} failed", errors)


# ---- the process ----


def _reset():
    """In a forked child too, which has neither the thread nor the loops."""
    global _poller, _queues, _unsettled
    _poller = _Poller()
    _queues = {}  # stream: its callbacks in order; of the thread alone
    _unsettled = {}  # callbacks that have not run, or whose error no wait has raised: the keys
    _failed.clear()


def _exit():
    """Before gpuglue itself shuts down."""
    _poller.stop()
    for entry in list(_unsettled):
        if entry.error is not None and entry.turn:
            sys.excepthook(type(entry.error), entry.error, entry.error.__traceback__)


_failed: "dict[object, None]" = {}  # those of _unsettled that have run. The compiled module looks whether there are any
_reset()
os.register_at_fork(after_in_child=_reset)
atexit.register(_exit)
