"""Exceptions of a stream's callbacks: the next wait raises them."""

import asyncio

import numpy
import pytest
from conftest import HANG, until
from test_await import other, run

import gpuglue as gg
from gpuglue import _waiting

__all__ = ["other"]


async def completion(stream):
    await stream.completion()


WAITS = {
    "stream": lambda stream: stream.synchronize(),
    "device": lambda stream: stream.device.synchronize(),
    "event": lambda stream: stream.record().synchronize(),
    "await": lambda stream: run(completion(stream)),
    "get": lambda stream: gg.ones(3, stream=stream).get(stream=stream),
    "get(out=)": lambda stream: gg.ones(3, stream=stream).get(numpy.empty(3), stream=stream),
    "get(out=) of pinned memory": lambda stream: gg.ones(3, stream=stream).get(gg.empty_pinned(3), stream=stream),
    "get of columns": lambda stream: gg.ones((3, 3), stream=stream)[:, 1].get(stream=stream),
    "item": lambda stream: _in(stream, lambda: gg.ones(1).item()),
    "bytes": lambda stream: _in(stream, lambda: gg.copy(bytearray(8), gg.alloc(8))),
}


def _in(stream, read):
    with stream:
        return read()


def fail_a_callback(stream):
    stream.add_callback(lambda: 1 / 0)
    until(lambda: _waiting._failed)


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_the_exception_of_a_callback_is_raised_by_the_next_wait_of_any_kind_and_once(stream, wait):
    fail_a_callback(stream)
    with pytest.raises(ZeroDivisionError):
        wait(stream)
    for other in WAITS.values():
        other(stream)


def test_a_read_in_several_parts_reads_all_before_it_raises_it(stream):
    record = numpy.dtype([("x", "i4"), ("y", "i4"), ("z", "i4")])
    part = numpy.zeros(1, record)[["x", "z"]].dtype  # without y, whose bytes are between x and z
    array = gg.full(6, (7, 8), part, device=stream.device, stream=stream)
    out = numpy.zeros(6, record)
    fail_a_callback(stream)
    with pytest.raises(ZeroDivisionError):
        array.get(out[["x", "z"]], stream=stream)
    assert out.tolist() == [(7, 0, 8)] * 6


def test_an_await_that_waits_raises_it(stream, gate):
    fail_a_callback(stream)

    async def main():
        gate.hold(stream)
        task = asyncio.ensure_future(stream.completion())
        await asyncio.sleep(0.01)
        assert not task.done()
        gate.open()
        with pytest.raises(ZeroDivisionError):
            await task

    run(main())


def test_a_wait_for_other_work_does_not_raise_it(stream, other):
    before = stream.record()
    array = gg.ones(3, stream=stream)
    fail_a_callback(stream)
    before.synchronize()
    run(asyncio.wait_for(before, HANG))
    gg.Event().synchronize()
    for name, wait in WAITS.items():
        if name != "device":
            wait(other)
    array.get_async(stream=stream)
    array.set(numpy.zeros(3), stream=stream)
    with pytest.raises(ZeroDivisionError):
        stream.synchronize()


def test_a_wait_in_a_callback_does_not_raise_it(stream):
    called = []
    stream.add_callback(lambda: 1 / 0)
    stream.add_callback(lambda: called.append(gg.ones(3, stream=stream).get(stream=stream).tolist()))
    with pytest.raises(ZeroDivisionError):
        stream.synchronize()
    assert called == [[1] * 3]
