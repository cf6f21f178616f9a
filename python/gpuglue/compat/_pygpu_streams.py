"""PyGPU's streams and events."""

import gpuglue

from ._pygpu_errors import _INVALID_HANDLE, _NOT_READY, _attempt, cudaError_t, failed
from ._pygpu_pointers import pointer_wrapper


class _Handle:
    def get(self):
        """Return the native handle.

        Returns
        -------
        pointer_wrapper
            0 if the object was not created.

        Examples
        --------
        >>> isinstance(PyGPU.cudaStream_t().get(), PyGPU.pointer_wrapper)
        True
        """
        return pointer_wrapper(self._object.handle if self._object is not None else 0, False)

    def last_status(self):
        """Return the result of the last function that used the object.

        Returns
        -------
        cudaError_t
            0 if it succeeded.

        Examples
        --------
        >>> PyGPU.cudaStream_t().last_status()
        <cudaError: code=0>
        """
        return self._status

    def __repr__(self):
        return f"<{type(self).__name__}: {self._object!r}>" if self._object is not None else \
            f"<{type(self).__name__}: not created, {self._status}>"


class cudaStream_t(_Handle):
    """A stream of the current device.

    Parameters
    ----------
    flags : int, default 0
        As of cudaStreamCreateWithFlags: 1 is non-blocking.
    priority : int, default 0
        Lower numbers are more urgent.

    Examples
    --------
    >>> stream = PyGPU.cudaStream_t()
    >>> PyGPU.cudaStreamSynchronize(stream)
    <cudaError: code=0>
    """

    def __init__(self, flags=0, priority=0):
        self._object, self._status = _attempt(lambda: gpuglue.Stream(nonblocking=bool(flags & 1), priority=priority))


class cudaEvent_t(_Handle):
    """An event.

    Parameters
    ----------
    flags : int, default 0
        As of cudaEventCreateWithFlags: 1 is blocking, 2 is without timing.

    Examples
    --------
    >>> event = PyGPU.cudaEvent_t()
    >>> PyGPU.cudaEventRecord(event)
    <cudaError: code=0>
    """

    def __init__(self, flags=0):
        self._object, self._status = _attempt(
            lambda: gpuglue.Event(timing=not flags & 2, blocking=bool(flags & 1)))

    def get(self):
        """Return the native handle.

        Returns
        -------
        pointer_wrapper
            0 if the object was not created.

        Examples
        --------
        >>> int(PyGPU.cudaEvent_t().get()) != 0
        True
        """
        if self._object is not None and self._object.device is None:
            self._status = _attempt(_create, self._object)[1]
            if int(self._status):
                return pointer_wrapper(0, False)
        return super().get()


def _create(event):
    """gpuglue creates a native event when it is first recorded. An idle stream leaves it complete, as a new one is."""
    stream = gpuglue.Stream(nonblocking=True)
    stream.record(event)
    stream.close()


def _status_of(function, *handles):
    """The status of function(objects of the handles...), which the first handle stores. None is an error, and so is a
    handle whose creation failed."""
    if any(handle is None or handle._object is None for handle in handles):
        return failed(_INVALID_HANDLE)
    _, handles[0]._status = _attempt(lambda: function(*(handle._object for handle in handles)))
    return handles[0]._status


def cudaEventRecord(event, stream=None):
    """Record the work that is enqueued on a stream.

    Parameters
    ----------
    event : cudaEvent_t
        The event.
    stream : cudaStream_t, optional
        The stream. None is the current one.

    Returns
    -------
    cudaError_t
        0 for success.

    Examples
    --------
    >>> PyGPU.cudaEventRecord(PyGPU.cudaEvent_t(), PyGPU.cudaStream_t())
    <cudaError: code=0>
    """
    if stream is None:
        return _status_of(lambda event: gpuglue.current_stream().record(event), event)
    return _status_of(lambda event, stream: stream.record(event), event, stream)


def cudaEventSynchronize(event):
    """Wait until the recorded point is reached.

    Parameters
    ----------
    event : cudaEvent_t
        The event.

    Returns
    -------
    cudaError_t
        The error of work that failed, or 0.

    Examples
    --------
    >>> PyGPU.cudaEventSynchronize(PyGPU.cudaEvent_t())
    <cudaError: code=0>
    """
    return _status_of(lambda object: object.synchronize(), event)


def _query(handle):
    done = []
    status = _status_of(lambda object: done.append(object.done), handle)
    return status if int(status) or done[0] else cudaError_t(_NOT_READY)


def cudaEventQuery(event):
    """Return whether the recorded point is reached.

    Parameters
    ----------
    event : cudaEvent_t
        The event.

    Returns
    -------
    cudaError_t
        0 if it is, 600 (cudaErrorNotReady) if not.

    Examples
    --------
    >>> PyGPU.cudaEventQuery(PyGPU.cudaEvent_t())
    <cudaError: code=0>
    """
    return _query(event)


def cudaEventElapsedTime(start, end):
    """Return the time between two records.

    Parameters
    ----------
    start : cudaEvent_t
        The earlier event.
    end : cudaEvent_t
        The later event, which must be done.

    Returns
    -------
    milliseconds : float
        Time on the device; 0.0 after an error.
    error : cudaError_t
        0 for success.

    Examples
    --------
    >>> start, end = PyGPU.cudaEvent_t(), PyGPU.cudaEvent_t()
    >>> for event in start, end:
    ...     assert PyGPU.cudaEventRecord(event) == PyGPU.cudaEventSynchronize(event) == 0
    >>> milliseconds, error = PyGPU.cudaEventElapsedTime(start, end)
    >>> milliseconds >= 0, error
    (True, <cudaError: code=0>)
    """
    elapsed = []
    error = _status_of(lambda first, last: elapsed.append(last.elapsed_since(first)), start, end)
    return (elapsed[0] if elapsed else 0.0), error


def cudaStreamSynchronize(stream):
    """Wait until all work of a stream is done.

    Parameters
    ----------
    stream : cudaStream_t
        The stream.

    Returns
    -------
    cudaError_t
        The error of work that failed, or 0.

    Examples
    --------
    >>> PyGPU.cudaStreamSynchronize(PyGPU.cudaStream_t())
    <cudaError: code=0>
    """
    return _status_of(lambda object: object.synchronize(), stream)


def cudaStreamQuery(stream):
    """Return whether all work of a stream is done.

    Parameters
    ----------
    stream : cudaStream_t
        The stream.

    Returns
    -------
    cudaError_t
        0 if it is, 600 (cudaErrorNotReady) if not.

    Examples
    --------
    >>> PyGPU.cudaStreamQuery(PyGPU.cudaStream_t())
    <cudaError: code=0>
    """
    return _query(stream)


def cudaStreamWaitEvent(stream, event, flags=0):
    """Make later work of a stream wait, on the device, for an event.

    Parameters
    ----------
    stream : cudaStream_t
        The stream.
    event : cudaEvent_t
        The event. One that was never recorded is nothing to wait for.
    flags : int, default 0
        Not used.

    Returns
    -------
    cudaError_t
        0 for success.

    Examples
    --------
    >>> PyGPU.cudaStreamWaitEvent(PyGPU.cudaStream_t(), PyGPU.cudaEvent_t())
    <cudaError: code=0>
    """
    return _status_of(lambda stream, event: stream.wait(event), stream, event)
