"""close() from one thread while another is inside a call on the same object."""

import sys
import threading

import gpuglue as gg
import pytest


def race(device, make, use):
    """Let a thread use objects while this one closes them; the user sees success or "closed"."""
    box, stop, failures = [make(device)], threading.Event(), []

    def run():
        while not stop.is_set():
            try:
                use(box[0])
            except ValueError as error:
                if "closed" not in str(error):
                    failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    for _ in range(300):
        box[0], old = make(device), box[0]
        old[-1].close()
    stop.set()
    thread.join()
    assert not failures


def test_a_stream_may_be_closed_while_an_event_is_recorded_on_it(device):
    race(device, lambda d: (gg.Event(d), gg.Stream(d)), lambda pair: pair[0].record(pair[1]))


def test_an_event_may_be_closed_while_it_is_recorded(device):
    stream = gg.Stream(device)
    race(device, lambda d: (gg.Event(d),), lambda pair: pair[0].record(stream))


def test_an_event_may_be_closed_while_a_stream_is_made_to_wait_for_it(device):
    stream = gg.Stream(device)
    race(device, lambda d: (stream.record(gg.Event(d)),), lambda pair: stream.wait(pair[0]))


def test_a_buffer_may_be_closed_while_it_is_filled(device):
    race(device, lambda d: (gg.alloc(64, device=d),), lambda pair: gg.fill(pair[0], 1))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no __buffer__ in Python code")
def test_a_buffer_may_be_closed_by_the_value_that_fills_it(device):
    class Closing:
        def __buffer__(self, flags):
            buffer.close()
            return memoryview(b"ab")

    buffer = gg.alloc(64, device=device)
    gg.fill(buffer, Closing())
    device.synchronize()
