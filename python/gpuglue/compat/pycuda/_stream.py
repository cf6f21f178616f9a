"""Streams and events."""

import gpuglue

from . import _enums
from ._errors import translated


class Stream:
    """Work in order; also ordered with the default stream, as every stream of PyCUDA's is."""

    @translated
    def __init__(self, flags=0):
        self._stream = gpuglue.Stream()

    @translated
    def synchronize(self):
        self._stream.synchronize()

    @translated
    def is_done(self):
        return self._stream.done

    @translated
    def wait_for_event(self, event):
        self._stream.wait(event._event)

    @property
    def handle(self):
        return self._stream.handle

    def __cuda_stream__(self):
        return self._stream.__cuda_stream__()


class Event:
    @translated
    def __init__(self, flags=0):
        self._event = gpuglue.Event(timing=not flags & _enums.event_flags.DISABLE_TIMING,
                                    blocking=bool(flags & _enums.event_flags.BLOCKING_SYNC))

    @translated
    def record(self, stream=None):
        (stream._stream if stream is not None else gpuglue.current_stream()).record(self._event)
        return self

    @translated
    def synchronize(self):
        self._event.synchronize()
        return self

    @translated
    def query(self):
        return self._event.done

    @translated
    def time_since(self, other):
        """Milliseconds from other to this."""
        return self._event.elapsed_since(other._event)

    @translated
    def time_till(self, other):
        return other._event.elapsed_since(self._event)
