"""The GIL: calls that may wait release it, so that other Python threads run; short calls keep it.

A thread that requests the GIL gets it only when another releases it: these tests make the interpreter's switch
interval longer than any test."""

import ctypes
import sys
import threading
import time

import numpy as np
import pytest
from conftest import HANG
from kernels import load

import gpuglue as gg

LARGE = 1 << 18  # elements of eight bytes: no small copy


@pytest.fixture(autouse=True)
def only_voluntarily():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


class Other:
    """A Python thread that is ready to run from begin() on, and records whether it ran."""

    def __init__(self):
        self.ran, self.lock = False, threading.Lock()
        self.lock.acquire()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        self.lock.acquire()
        self.ran = True

    def begin(self):
        self.lock.release()  # keeps the GIL
        ctypes.PyDLL(None).usleep(20000)  # keeps it too; by now the thread asks for the GIL


@pytest.fixture
def other():
    made = Other()
    yield made
    if made.lock.locked() and not made.ran:
        made.lock.release()
    made.thread.join()


def busy_stream(device, gate):
    """A stream whose work is blocked, with an event after it."""
    stream = gg.Stream(device, nonblocking=True)
    gate.hold(stream)
    return stream, stream.record()


SHORT = {
    "current device": lambda device, stream, event: gg.current_device,
    "current stream": lambda device, stream, event: gg.current_stream,
    "query of a busy stream": lambda device, stream, event: lambda: stream.done,
    "query of a busy event": lambda device, stream, event: lambda: event.done,
    "making and closing an event": lambda device, stream, event: lambda: gg.Event(device).close(),
    "synchronising an idle stream": lambda device, stream, event: gg.Stream(device, nonblocking=True).synchronize,
    "synchronising an event not recorded": lambda device, stream, event: gg.Event(device).synchronize,
}


@pytest.mark.parametrize("name", SHORT)
def test_short_calls_keep_the_gil(device, gate, other, name):
    call = SHORT[name](device, *busy_stream(device, gate))
    call(), call()
    other.begin()
    for _ in range(3000):
        call()
    assert not other.ran


def numbers(device):
    return gg.zeros(LARGE, "i8", device=device)


LONG = {
    "a copy to the device": lambda device, stream: lambda host=np.zeros(LARGE, "i8"), to=numbers(device): to.set(host),
    "a copy to the host": lambda device, stream: lambda host=np.zeros(LARGE, "i8"), of=numbers(device): of.get(host),
    "a copy on the device": lambda device, stream: lambda a=numbers(device), b=numbers(device): gg.copy(a, b),
    "a fill": lambda device, stream: lambda a=numbers(device): a.fill(1),
    "an allocation from the driver": lambda device, stream: lambda: gg.alloc((256 << 20) + device.total_memory // 8, device),  # no pool keeps it
    "a kernel of a module": lambda device, stream: lambda module=load(device): module["scale"],
    "numbers of a kernel": lambda device, stream: lambda kernel=load(device)["scale"]: kernel.attributes,
    "recording an event": lambda device, stream: lambda event=gg.Event(device): event.record(stream),
    "waiting for an event on the device": lambda device, stream: lambda event=stream.record(): stream.wait(event),
}


@pytest.mark.parametrize("name", LONG)
def test_calls_that_may_take_long_release_the_gil(device, stream, other, name):
    call, ends_at = LONG[name](device, stream), time.monotonic() + HANG
    gg.synchronize(device)  # else an allocation could fail after its wait for work that earlier tests have queued
    other.begin()
    while not other.ran:  # the call, and nothing else here, releases the GIL
        call()
        assert time.monotonic() < ends_at


WAITS = {
    "stream": lambda device, stream, event: stream.synchronize,
    "event": lambda device, stream, event: event.synchronize,
    "blocking event": lambda device, stream, event: stream.record(gg.Event(blocking=True)).synchronize,
    "device": lambda device, stream, event: device.synchronize,
    "everything": lambda device, stream, event: lambda: gg.synchronize(device),
    "copy to the host": lambda device, stream, event: lambda of=gg.empty(3, device=device): of.get(stream=stream),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_busy_thread_continues_while_another_waits(device, gate, name):
    wait = WAITS[name](device, *busy_stream(device, gate))
    counted = []

    def count():
        while len(counted) < 1000:
            counted.append(len(counted))
            time.sleep(0)
        gate.open()  # only now can the wait end

    thread = threading.Thread(target=count)
    thread.start()
    wait()
    thread.join()
    assert len(counted) == 1000
