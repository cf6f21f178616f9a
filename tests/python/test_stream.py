"""Stream: order, waiting, other libraries' streams, lifetime."""

import ctypes
import gc
import os
import threading
import types
import weakref

import pytest
from conftest import needs, until

import gpuglue as gg


def test_a_new_stream_is_idle(stream, device):
    assert stream.done is True and stream.device is device
    assert stream.synchronize() is None


def test_a_stream_is_not_done_while_its_work_is_blocked(stream, gate):
    gate.hold(stream)
    assert stream.done is False
    gate.open()
    stream.synchronize()
    assert stream.done is True


def test_synchronize_lets_other_python_threads_run(stream, gate):
    gate.hold(stream)
    opener = gate.open_when(lambda: gate.reached)  # a Python thread: it needs the GIL to open
    stream.synchronize()
    opener.join()


def test_a_stream_that_waits_for_an_event_runs_after_it(stream, device, gate):
    other = gg.Stream(device, nonblocking=True)
    gate.hold(stream)
    assert other.wait(stream.record()) is None
    assert not other.record().done
    gate.open()
    other.synchronize()
    assert stream.done


def test_a_stream_that_waits_for_a_stream_runs_after_its_work(stream, device, gate):
    other = gg.Stream(device, nonblocking=True)
    gate.hold(stream)
    other.wait(stream)
    last = other.record()
    assert not last.done
    gate.open()
    last.synchronize()


def test_waiting_for_an_event_never_recorded_does_nothing(stream):
    stream.wait(gg.Event())
    assert stream.done


@pytest.mark.parametrize("wrong", [None, "event", object()])
def test_waiting_for_something_else_is_a_type_error(stream, wrong):
    with pytest.raises(TypeError):
        stream.wait(wrong)


def test_record_creates_an_event_or_uses_the_given_one(stream):
    event = gg.Event(timing=True)
    assert stream.record(event) is event
    assert stream.record(event=event) is event
    assert isinstance(stream.record(), gg.Event)


def test_close_is_idempotent_and_makes_the_stream_unusable(device):
    stream = gg.Stream(device)
    stream.close()
    stream.close()
    event = gg.Event(device)
    for use in (stream.synchronize, stream.record, stream.__enter__, lambda: stream.done, lambda: stream.handle):
        with pytest.raises(ValueError, match="Stream is closed"):
            use()
    with pytest.raises(gg.InvalidArgumentError, match="Stream is closed"):
        event.record(stream)
    assert "closed" in repr(stream)


def test_close_does_not_wait_and_queued_work_still_runs(device, gate):
    stream = gg.Stream(device, nonblocking=True)
    gate.hold(stream)
    event = stream.record()
    stream.close()
    assert not event.done
    gate.open()
    event.synchronize()


def test_closing_during_a_wait_of_another_thread_is_harmless(device, gate):
    stream = gg.Stream(device, nonblocking=True)
    gate.hold(stream)
    waiter = threading.Thread(target=stream.synchronize)
    waiter.start()
    stream.close()
    gate.open()
    waiter.join()


def test_the_handle_of_a_destroyed_stream_may_be_reused(device, gate):
    first = gg.Stream(device, nonblocking=True)
    gate.hold(first)
    event = first.record()
    first.close()
    second = gg.Stream(device, nonblocking=True)
    second.synchronize()
    assert second.done and not event.done


def test_dropping_a_stream_in_another_thread_is_harmless(device):
    streams = [gg.Stream(device) for _ in range(8)]
    thread = threading.Thread(target=streams.clear)
    thread.start()
    thread.join()
    gc.collect()
    device.synchronize()


def test_streams_are_equal_when_they_are_the_same_stream(device, stream):
    other = gg.Stream(device)
    assert stream == stream and stream != other and stream != 1
    assert hash(device.default_stream) == hash(device.default_stream)
    stream.close()
    assert stream == stream and stream != other


def test_priorities_are_clamped(device):
    gg.Stream(device, priority=-(10**6)).synchronize()
    gg.Stream(device, priority=10**6).synchronize()


def test_ctypes_takes_a_stream_as_a_pointer(stream, device):
    needs(device, "stream_native")
    identity = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda pointer: pointer)
    assert (identity(stream) or 0) == stream.handle
    assert (stream._as_parameter_.value or 0) == stream.handle


# ---- streams of others ---------------------------------------------------------------------------


def foreign_streams(handle, ordinal):
    """One handle as the stream object of each library."""

    class Protocol:
        def __cuda_stream__(self):
            return (0, handle)

    place = types.SimpleNamespace(type="cuda", index=ordinal)
    return {
        "protocol": Protocol(),
        "protocol as attribute": types.SimpleNamespace(__cuda_stream__=(0, handle)),
        "torch": types.SimpleNamespace(cuda_stream=handle, device=place),
        "cupy": types.SimpleNamespace(ptr=handle, device_id=ordinal, wait_event=print),
        "cupy without device": types.SimpleNamespace(ptr=handle, device_id=-1, wait_event=print),
        "numba": types.SimpleNamespace(handle=ctypes.c_void_p(handle), auto_synchronize=print),
    }


@pytest.mark.parametrize("library", foreign_streams(1, 0))
def test_a_stream_of_another_library_is_borrowed_if_the_backend_supports_it(device, stream, library):
    needs(device, "stream_borrow", "stream_native")
    obj = foreign_streams(stream.handle, device.ordinal)[library]
    if not hasattr(stream, "__cuda_stream__"):
        with pytest.raises(gg.UnsupportedError, match="CUDA or HIP"):
            gg.Stream.borrow(obj, device)
        return
    borrowed = gg.Stream.borrow(obj)
    assert borrowed.handle == stream.handle and borrowed.device is device
    borrowed.synchronize()


@pytest.mark.parametrize("library", ["torch", "cupy"])
@pytest.mark.parametrize("number", ["its own", 0])
def test_a_stream_of_another_device_keeps_its_device(device, second_device, library, number):
    needs(device, "stream_borrow", "stream_native")
    stream, array = gg.Stream(second_device, nonblocking=True), gg.zeros(4, device=device)
    if not hasattr(stream, "__cuda_stream__"):
        pytest.skip("only cuda and hip borrow objects")
    theirs = foreign_streams(stream.handle if number else 0, second_device.ordinal)[library]
    theirs.stream = stream  # an owner keeps its stream alive
    made = gg.zeros(4, stream=theirs), gg.to_gpu([1.0], stream=theirs), gg.zeros_like(array, stream=theirs)
    assert {one.device for one in made} == {second_device} and gg.alloc(4, stream=theirs).device is second_device
    array.record_use(theirs)
    for wrong in (lambda: gg.Stream.borrow(theirs, device), lambda: array.fill(1, stream=theirs)):
        with pytest.raises(gg.InvalidArgumentError, match=rf"{device.backend}:1.*{device.backend}:0"):
            wrong()


def test_a_native_handle_is_borrowed_as_an_integer(device, stream, gate):
    borrowed = gg.Stream.borrow(stream.handle, device)
    gate.hold(stream)
    assert not borrowed.done
    gate.open()
    borrowed.synchronize()
    borrowed.close()
    assert stream.done


def test_borrowing_a_gpuglue_stream_returns_that_stream(stream):
    assert gg.Stream.borrow(stream) == stream


def test_the_owner_of_a_borrowed_stream_lives_until_the_stream_is_released(device, stream):
    needs(device, "stream_borrow")
    if not hasattr(stream, "__cuda_stream__"):
        pytest.skip("only cuda and hip borrow objects")
    owner = foreign_streams(stream.handle, device.ordinal)["protocol"]
    borrowed, alive = gg.Stream.borrow(owner), weakref.ref(owner)
    del owner
    assert alive() is not None
    borrowed.close()
    until(lambda: device.synchronize() or alive() is None)


@pytest.mark.parametrize("wrong", [None, "stream", 1.5, object()])
def test_an_object_that_is_not_a_stream_is_a_type_error(wrong):
    with pytest.raises(TypeError, match="stream must be"):
        gg.Stream.borrow(wrong)


@pytest.mark.parametrize("wrong", ["event of cupy", "memory of cupy", "event of numba", "array", "buffer", "event"])
def test_an_object_with_a_handle_that_is_not_a_stream_is_refused(device, stream, wrong):
    handle = ctypes.c_void_p(stream.handle)
    made = {
        "event of cupy": types.SimpleNamespace(ptr=handle.value, record=print, synchronize=print, done=True),
        "memory of cupy": types.SimpleNamespace(ptr=handle.value, device_id=device.ordinal),
        "event of numba": types.SimpleNamespace(handle=handle, record=print, wait=print, elapsed_time=print),
        "array": gg.empty(3, device=device),
        "buffer": gg.alloc(3, device),
        "event": stream.record(),
    }[wrong]
    with pytest.raises(TypeError, match="stream must be a Stream") as caught:
        gg.Stream.borrow(made, device)
    assert repr(made)[:200] in str(caught.value)


def test_a_negative_handle_is_refused(device):
    with pytest.raises(gg.InvalidArgumentError, match="-1"):
        gg.Stream.borrow(-1, device)


def test_a_later_version_of_the_stream_protocol_is_refused():
    with pytest.raises(gg.InvalidArgumentError, match="version 1"):
        gg.Stream.borrow(types.SimpleNamespace(__cuda_stream__=lambda: (1, 0)))


def test_only_cuda_and_hip_provide_the_stream_protocol(device, stream):
    if device.backend in ("cuda", "hip"):
        assert stream.__cuda_stream__() == (0, stream.handle)
    else:
        assert not hasattr(stream, "__cuda_stream__")


def test_a_stream_of_another_device_is_refused(second_device, stream):
    event = gg.Event(second_device)
    with pytest.raises(gg.InvalidArgumentError):
        event.record(stream)


DRIVERS = {"cuda": "GPUGLUE_CUDA_LIBRARY", "hip": "GPUGLUE_HIP_LIBRARY", "ze": "ZE_ENABLE_ALT_DRIVERS"}


def test_trim_releases_the_streams_of_small_copies(device):
    library = os.environ.get(DRIVERS.get(device.backend, ""))
    if not library or "Simulated" not in device.name:
        pytest.skip("the driver is not one that counts its streams")
    drivers = [ctypes.CDLL(path) for path in library.split(",")]  # Level Zero's loader takes a list
    alive = lambda: sum(driver.sim_alive(b"stream") for driver in drivers)
    device.synchronize()
    gg.trim()
    before = alive()
    for _ in range(3):
        with gg.Stream(device) as stream:
            gg.to_gpu(bytes(30000), stream=stream)
            stream.synchronize()
        stream.close()
    gg.trim()
    assert alive() <= before
