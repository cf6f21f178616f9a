"""Recordings of all operations, for Perfetto or chrome://tracing, and named ranges in them."""

import contextlib
import os

from . import _core
from ._core import _range_pop, _range_push


class Trace:
    """A recording that `trace` has started: a context manager whose end stops it.

    Parameters
    ----------
    path : str
        The file.

    See Also
    --------
    trace : Start a recording.

    Examples
    --------
    >>> import os, tempfile
    >>> recording = gg.trace(os.path.join(tempfile.mkdtemp(), "run.json"))
    >>> recording.stop()
    """

    def __init__(self, path):
        self.path = path
        self._pid = os.getpid()

    def stop(self):
        """Stop recording and write the file.

        A second call does nothing.

        Raises
        ------
        InvalidArgumentError
            If the file cannot be written.

        Examples
        --------
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "run.json")
        >>> gg.trace(path).stop()
        >>> os.path.getsize(path) > 0
        True
        """
        pid, self._pid = self._pid, None
        if pid == os.getpid():
            _core._trace_stop()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()

    def __repr__(self):
        return f"<gpuglue.Trace {self.path!r}, {'recording' if self._pid == os.getpid() else 'stopped'}>"


def trace(path, *, device_times=False):
    """Record every operation of this process in a file for Perfetto or chrome://tracing.

    Parameters
    ----------
    path : str or os.PathLike
        The file, which is created or emptied at once, and written when the recording stops. ``%p`` in it is the
        process id, ``%h`` the host's name and ``%q{NAME}`` the environment variable ``NAME``: each rank of a job
        needs a file of its own. ``%%`` is a percent sign.
    device_times : bool, default False
        Measure on the device too, by an event before and one after each operation on a stream. This costs driver
        calls. Operations that are captured into a graph, or not done when the recording stops, have no such time:
        call ``synchronize()`` first.

    Returns
    -------
    Trace
        Its ``stop()`` ends the recording; so does the end of its ``with`` block, or of the process.

    Raises
    ------
    InvalidArgumentError
        If a recording is in progress, or the file cannot be created.

    See Also
    --------
    range : Name a phase of the program.

    Notes
    -----
    The recording has the operations of all threads. It is kept in memory until it is written, at most 4.5 million
    operations (330 MiB); the file has the number of those that were dropped. A forked child does not continue it.
    ``GPUGLUE_TRACE=path`` records a whole program without changing it, ``GPUGLUE_TRACE=device:path`` with device times.

    Examples
    --------
    >>> import json, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.json")
    >>> with gg.trace(path), gg.range("upload"):
    ...     array = gg.to_gpu([1.0, 2.0])
    >>> events = json.load(open(path))["traceEvents"]
    >>> [event["name"] for event in events if event.get("cat") == "range"]
    ['upload']
    """
    path = os.fspath(path)
    _core._trace_start(os.fsdecode(path), device_times)
    return Trace(path)


class range(contextlib.ContextDecorator):
    """A phase of the program with a name, in the recording of `trace` and in the profilers of NVIDIA, AMD and Intel.

    Parameters
    ----------
    name : str
        Any text.

    Raises
    ------
    TypeError
        If the name is not a str.

    See Also
    --------
    trace : Start a recording.

    Notes
    -----
    It is a context manager, or a decorator of a function. Ranges belong to the thread, and nest up to 64 deep.
    Without a recording and a profiler it costs two calls from Python that do nothing. A profiler shows ranges that begin
    after the first device of its vendor was opened, by NVTX (Nsight), roctx (rocprofv3) or ITT
    (VTune).

    Examples
    --------
    >>> with gg.range("step"):
    ...     pass
    """

    __slots__ = {"name": "Text that the recording shows."}

    def __init__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"the name of a range must be a str, not {type(name).__name__}")
        self.name = name

    def __enter__(self):
        _range_push(self.name)
        return self

    def __exit__(self, *exception):
        _range_pop()

    def __repr__(self):
        return f"gpuglue.range({self.name!r})"
