"""Use after close is a ValueError that names the closed object, for every way to pass it."""

import ctypes

import numpy as np
import pytest

import gpuglue as gg


def closed(made):
    made.close()
    return made


def refuses(kind, use):
    with pytest.raises(ValueError, match=f"{kind} is closed") as caught:
        use()
    assert isinstance(caught.value, gg.InvalidArgumentError)


STREAM_METHODS = {
    "synchronize": lambda s: s.synchronize(),
    "record": lambda s: s.record(),
    "wait": lambda s: s.wait(gg.Event()),
    "done": lambda s: s.done,
    "device": lambda s: s.device,
    "handle": lambda s: s.handle,
    "with": lambda s: s.__enter__(),
    "ctypes": lambda s: s._as_parameter_,
    "borrow": lambda s: gg.Stream.borrow(s),
}
STREAM_ARGUMENTS = {
    "get": lambda a, b, s: a.get(stream=s),
    "set": lambda a, b, s: a.set(np.zeros(4), stream=s),
    "get_async": lambda a, b, s: a.get_async(stream=s),
    "set_async": lambda a, b, s: a.set_async(np.zeros(4), stream=s),
    "array.fill": lambda a, b, s: a.fill(1, stream=s),
    "array.copy": lambda a, b, s: a.copy(stream=s),
    "array.record_use": lambda a, b, s: a.record_use(s),
    "buffer.record_use": lambda a, b, s: b.record_use(s),
    "copy": lambda a, b, s: gg.copy(b, b"1", stream=s),
    "fill": lambda a, b, s: gg.fill(b, 1, stream=s),
    "alloc": lambda a, b, s: gg.alloc(4, stream=s),
    "empty": lambda a, b, s: gg.empty(4, stream=s),
    "zeros": lambda a, b, s: gg.zeros(4, stream=s),
    "full_like": lambda a, b, s: gg.full_like(a, 1, stream=s),
    "arange": lambda a, b, s: gg.arange(4, stream=s),
    "to_gpu": lambda a, b, s: gg.to_gpu(np.zeros(4), stream=s),
    "GPUArray": lambda a, b, s: gg.GPUArray(4, stream=s),
    "event.record": lambda a, b, s: gg.Event().record(s),
    "stream.wait": lambda a, b, s: a.device.default_stream.wait(s),
    "timer": lambda a, b, s: gg.Timer(s).__enter__(),
}


@pytest.mark.parametrize("name", STREAM_METHODS)
def test_a_closed_stream_is_refused_by_its_own_methods(device, name):
    refuses("Stream", lambda: STREAM_METHODS[name](closed(gg.Stream(device))))


@pytest.mark.parametrize("name", STREAM_ARGUMENTS)
def test_a_closed_stream_is_refused_as_an_argument_of(device, name):
    array, buffer = gg.zeros(4, device=device), gg.alloc(4, device)
    refuses("Stream", lambda: STREAM_ARGUMENTS[name](array, buffer, closed(gg.Stream(device))))
    assert array.tolist() == [0] * 4


EVENT_USES = {
    "synchronize": lambda e, s: e.synchronize(),
    "done": lambda e, s: e.done,
    "device": lambda e, s: e.device,
    "handle": lambda e, s: e.handle,
    "record": lambda e, s: e.record(s),
    "elapsed_since its": lambda e, s: e.elapsed_since(s.record(gg.Event(timing=True))),
    "elapsed_since it": lambda e, s: s.record(gg.Event(timing=True)).elapsed_since(e),
    "stream.record": lambda e, s: s.record(e),
    "stream.wait": lambda e, s: s.wait(e),
}


@pytest.mark.parametrize("name", EVENT_USES)
def test_a_closed_event_is_refused_by(stream, name):
    refuses("Event", lambda: EVENT_USES[name](closed(stream.record(gg.Event(timing=True))), stream))


BUFFER_USES = {
    "ptr": lambda b: b.ptr,
    "nbytes": lambda b: b.nbytes,
    "device": lambda b: b.device,
    "kind": lambda b: b.kind,
    "stream": lambda b: b.stream,
    "ctypes": lambda b: ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda p: None)(b),
    "with": lambda b: b.__enter__(),
    "record_use": lambda b: b.record_use(gg.current_stream(0)),
    "release_captured": lambda b: b.release_captured(),
    "memoryview": memoryview,
    "numpy": np.asarray,
    "array interface": lambda b: b.__array_interface__,
    "fill": lambda b: gg.fill(b, 0),
    "copy from it": lambda b: gg.copy(bytearray(4), b),
    "copy to it": lambda b: gg.copy(b, b"1234"),
    "copy of nothing to it": lambda b: gg.copy(b, b""),
    "copy between two": lambda b: gg.copy(b, closed(gg.alloc(4))),
    "copy to itself": lambda b: gg.copy(b, b),
    "copy to an array": lambda b: gg.copy(gg.zeros(4, "u1"), b),
    "get": lambda b: gg.zeros(4, "u1").get(b),
    "set": lambda b: gg.zeros(4, "u1").set(b),
}


@pytest.mark.parametrize("name", BUFFER_USES)
def test_a_closed_buffer_is_refused_by(device, name):
    if name != "ctypes":
        refuses("Buffer", lambda: BUFFER_USES[name](closed(gg.alloc_pinned(4, device))))
    else:
        with pytest.raises((ValueError, ctypes.ArgumentError), match="closed"):
            BUFFER_USES[name](closed(gg.alloc_pinned(4, device)))


CLOSABLE = {
    "Stream": gg.Stream,
    "Event": gg.Event,
    "Buffer": lambda device: gg.alloc(4, device),
    "pinned Buffer": lambda device: gg.alloc_pinned(4, device),
}


@pytest.mark.parametrize("kind", CLOSABLE)
def test_close_may_be_repeated_and_repr_shows_closed(device, kind):
    made = CLOSABLE[kind](device)
    assert [made.close(), made.close(), made.close()] == [None] * 3
    assert repr(made) == f"<gpuglue.{kind.split()[-1]} closed>"


def test_a_closed_stream_or_buffer_cannot_be_entered_again(device):
    for made in (gg.Stream(device), gg.alloc(4, device)):
        with made:
            made.close()  # inside its own block
        refuses(type(made).__name__.split(".")[-1], made.__enter__)
