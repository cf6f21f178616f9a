"""Streams and events."""

import gpuglue

from . import _enums
from ._errors import translated
from ._missing import Refusing


class Stream:
    """A stream of the current device.

    As in PyCUDA, it is also ordered with the default stream.

    Parameters
    ----------
    flags : int, default 0
        Not used.

    Raises
    ------
    Error
        If the driver cannot create the stream.

    Examples
    --------
    >>> stream = drv.Stream()
    >>> stream.synchronize()
    >>> stream.is_done()
    True
    """

    @translated
    def __init__(self, flags=0):
        self._stream = gpuglue.Stream()

    @translated
    def synchronize(self):
        """Wait until all work queued so far is done.

        Raises
        ------
        Error
            If the work failed.

        Examples
        --------
        >>> drv.Stream().synchronize()
        """
        self._stream.synchronize()

    @translated
    def is_done(self):
        """Return whether all work queued so far is done.

        Returns
        -------
        bool
            The call does not wait.

        Raises
        ------
        Error
            If the work failed.

        Examples
        --------
        >>> drv.Stream().is_done()
        True
        """
        return self._stream.done

    @translated
    def wait_for_event(self, event):
        """Make later work of the stream wait, on the device, for an event.

        Parameters
        ----------
        event : Event
            One that was never recorded is nothing to wait for.

        Raises
        ------
        Error
            If the driver fails.

        Examples
        --------
        >>> drv.Stream().wait_for_event(drv.Event().record())
        """
        self._stream.wait(event._event)

    @property
    def handle(self):
        """The native handle, an int."""
        return self._stream.handle

    def __cuda_stream__(self):
        return self._stream.__cuda_stream__()


class Event(Refusing):
    """A point in the work of a stream.

    Parameters
    ----------
    flags : event_flags, default 0
        BLOCKING_SYNC lets a waiting thread sleep at once; DISABLE_TIMING makes an event without a time.

    Raises
    ------
    Error
        If the driver cannot create the event.

    Examples
    --------
    >>> start, end = drv.Event().record(), drv.Event().record()
    >>> end.synchronize().time_since(start) >= 0
    True
    """

    @translated
    def __init__(self, flags=0):
        self._event = gpuglue.Event(timing=not flags & _enums.event_flags.DISABLE_TIMING,
                                    blocking=bool(flags & _enums.event_flags.BLOCKING_SYNC))

    @translated
    def record(self, stream=None):
        """Record the work that is enqueued on a stream.

        Parameters
        ----------
        stream : Stream, optional
            The stream. None is the current one.

        Returns
        -------
        Event
            The event itself.

        Raises
        ------
        Error
            If the driver fails.

        Examples
        --------
        >>> event = drv.Event().record(drv.Stream())
        """
        (stream._stream if stream is not None else gpuglue.current_stream()).record(self._event)
        return self

    @translated
    def synchronize(self):
        """Wait until the recorded point is reached.

        Returns
        -------
        Event
            The event itself.

        Raises
        ------
        Error
            If the work failed.

        Examples
        --------
        >>> event = drv.Event().record().synchronize()
        """
        self._event.synchronize()
        return self

    @translated
    def query(self):
        """Return whether the recorded point is reached.

        Returns
        -------
        bool
            The call does not wait.

        Raises
        ------
        Error
            If the work failed.

        Examples
        --------
        >>> drv.Event().record().synchronize().query()
        True
        """
        return self._event.done

    @translated
    def time_since(self, other):
        """Return the time from an earlier event.

        Parameters
        ----------
        other : Event
            The earlier event. Both must be done.

        Returns
        -------
        float
            Milliseconds on the device.

        Raises
        ------
        LogicError
            If one of them is not recorded, is not done, or was made without timing.

        Examples
        --------
        >>> start, end = drv.Event().record(), drv.Event().record().synchronize()
        >>> end.time_since(start) >= 0
        True
        """
        return self._event.elapsed_since(other._event)

    @translated
    def time_till(self, other):
        """Return the time to a later event.

        Parameters
        ----------
        other : Event
            The later event. Both must be done.

        Returns
        -------
        float
            Milliseconds on the device.

        Raises
        ------
        LogicError
            If one of them is not recorded, is not done, or was made without timing.

        Examples
        --------
        >>> start, end = drv.Event().record(), drv.Event().record().synchronize()
        >>> start.time_till(end) >= 0
        True
        """
        return other._event.elapsed_since(self._event)
