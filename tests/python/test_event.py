"""Event: points in a stream's work, and the time between them."""

import gc
import threading
import time
import weakref

import pytest
from conftest import needs

import gpuglue as gg


def test_an_event_never_recorded_is_done():
    event = gg.Event()
    assert event.done is True and event.device is None
    assert event.synchronize() is None


def test_the_first_record_binds_an_event_to_its_device(stream, device):
    event = gg.Event()
    assert event.record(stream) is event
    assert event.device is device


def test_an_event_created_for_a_device_is_bound_at_once(device):
    assert gg.Event(device).device is device


def test_without_a_stream_the_current_one_is_recorded(stream, gate):
    gate.hold(stream)
    with stream:
        event = gg.Event().record()
    assert not event.done
    gate.open()
    event.synchronize()
    assert event.done


def test_an_event_is_done_when_its_point_is_reached(stream, gate):
    before = stream.record()
    gate.hold(stream)
    after = stream.record()
    before.synchronize()
    assert before.done is True and after.done is False
    gate.open()
    after.synchronize()
    assert after.done is True


def test_recording_again_moves_the_event(stream, gate):
    event = stream.record()
    event.synchronize()
    gate.hold(stream)
    event.record(stream)
    assert not event.done


def test_synchronize_lets_other_python_threads_run(stream, gate):
    gate.hold(stream)
    event = stream.record(gg.Event(blocking=True))
    opener = gate.open_when(lambda: gate.reached)
    event.synchronize()
    opener.join()


def test_elapsed_time_is_in_milliseconds_and_never_negative(stream, device):
    needs(device, "event_elapsed")
    begun = time.perf_counter()
    start, stop = stream.record(gg.Event(timing=True)), stream.record(gg.Event(timing=True))
    stop.synchronize()
    assert 0 <= stop.elapsed_since(start) <= (time.perf_counter() - begun) * 1e3 + 1


def test_the_error_for_elapsed_time_of_unfinished_events_reports_what_to_do(stream, device, gate):
    needs(device, "event_elapsed")
    start = stream.record(gg.Event(timing=True))
    gate.hold(stream)
    stop = stream.record(gg.Event(timing=True))
    with pytest.raises(gg.Error, match="synchronize"):
        stop.elapsed_since(start)


def test_elapsed_time_requires_events_with_timing(stream):
    start, stop = stream.record(gg.Event(timing=True)), stream.record()
    stop.synchronize()
    with pytest.raises(gg.InvalidArgumentError, match="timing"):
        stop.elapsed_since(start)


def test_elapsed_time_requires_recorded_events(device, stream):
    start, stop = gg.Event(timing=True), stream.record(gg.Event(timing=True))
    for event in (start, gg.Event(device, timing=True)):
        with pytest.raises(gg.InvalidArgumentError, match="recorded"):
            stop.elapsed_since(event)
    with pytest.raises(TypeError, match="Event"):
        stop.elapsed_since(1.5)


def test_timer_measures_a_block(stream, device):
    needs(device, "event_elapsed")
    with gg.Timer(stream) as timer:
        stream.wait(gg.Event())
    assert timer.ms >= 0


def test_timer_uses_the_current_stream_of_each_entry(stream, device, gate):
    needs(device, "event_elapsed")
    timer = gg.Timer()
    with timer:
        pass
    assert timer.ms >= 0
    gate.hold(stream)
    with stream, timer:
        pass
    opener = gate.open_when(lambda: gate.reached)
    assert timer.ms >= 0  # waits for the held stream
    opener.join()


def test_timer_has_no_time_before_the_end_of_its_block(stream):
    timer = gg.Timer(stream)
    with pytest.raises(gg.InvalidArgumentError, match="after the with-block"):
        timer.ms
    with timer, pytest.raises(gg.InvalidArgumentError, match="after the with-block"):
        timer.ms


def test_close_is_idempotent_and_makes_the_event_unusable(stream):
    event = stream.record()
    event.close()
    event.close()
    for use in (event.record, event.synchronize, lambda: event.done, lambda: event.handle, lambda: event.device):
        with pytest.raises(gg.InvalidArgumentError, match="Event is closed"):
            use()
    with pytest.raises(ValueError, match="Event is closed"):
        stream.wait(event)
    assert repr(event) == "<gpuglue.Event closed>"


def test_close_before_its_point_is_reached_does_not_wait(stream, gate):
    gate.hold(stream)
    event = stream.record()
    event.close()
    assert not stream.done


def test_an_event_may_be_dropped_by_any_thread(stream):
    events = [stream.record() for _ in range(8)]
    thread = threading.Thread(target=events.clear)
    thread.start()
    thread.join()
    gc.collect()


def test_events_take_weak_references(stream):
    event = gg.Event()
    alive = weakref.ref(event)
    del event
    assert alive() is None


def test_two_threads_may_bind_one_event(device):
    for _ in range(50):
        event, barrier = gg.Event(), threading.Barrier(2)
        streams = [gg.Stream(device), gg.Stream(device)]

        def record(stream):
            barrier.wait()
            event.record(stream)

        threads = [threading.Thread(target=record, args=(stream,)) for stream in streams]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        event.synchronize()


def test_the_native_handle_is_an_integer(device):
    needs(device, "event_native")
    assert gg.Event(device).handle > 0
    with pytest.raises(gg.InvalidArgumentError, match="not been recorded"):
        gg.Event().handle
