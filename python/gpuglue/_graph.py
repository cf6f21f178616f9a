"""Captures of streams into graphs."""

from . import _core


class capture:
    """Record the work of a ``with`` block into a graph instead of running it.

    The block receives a `Graph`, which can be launched after it. If an exception leaves the block, the graph is closed.

    Parameters
    ----------
    stream : stream
        The stream that is captured. It is the current stream in the block. It must not be a default stream, and should
        have ``nonblocking=True``: otherwise work on the default stream invalidates the capture.

    Raises
    ------
    UnsupportedError
        If the driver has no graphs (before CUDA 11.4), or at the end of the block, if the capture was invalidated or
        another stream took part in it that `stream` did not wait for.
    InvalidArgumentError
        If the stream is closed, a default stream, or captured already.
    TypeError
        If `stream` is not a stream.

    See Also
    --------
    Graph.launch : Run the captured work.

    Notes
    -----
    The block can launch kernels, copy within the device or with pinned memory, and fill. Other operations are refused,
    as are waits for work from before the block: synchronize first. The values of a kernel's arguments are those of the
    capture. A stream that waits for an event of the captured stream takes part in the capture; the captured stream must wait
    for it before the block ends. While any thread captures, ``gg.synchronize()`` of the device raises UnsupportedError in every thread. On host and ze only operations
    of gpuglue are captured: work that another library queues on the stream runs at once.

    Examples
    --------
    >>> stream = gg.Stream(nonblocking=True)
    >>> a = gg.zeros(4, np.float32)
    >>> gg.synchronize()
    >>> with gg.capture(stream) as graph:
    ...     a.fill(1)
    >>> graph.launch(stream)
    >>> a.get()
    array([1., 1., 1., 1.], dtype=float32)
    """

    def __init__(self, stream):
        self._graph = None
        self._stream = stream if isinstance(stream, _core.Stream) else _core.Stream.borrow(stream)

    def __enter__(self):
        graph = _core._capture_begin(self._stream)
        try:
            self._stream.__enter__()
        except BaseException:
            graph.close()
            raise
        self._graph = graph
        return graph

    def __exit__(self, kind, value, traceback):
        graph, self._graph = self._graph, None
        try:
            self._stream.__exit__(kind, value, traceback)
            if kind is None:
                _core._capture_end(graph)
                return
        except BaseException:
            graph.close()
            raise
        graph.close()

    def __del__(self):
        if self._graph is not None:  # nothing will end the block
            self.__exit__(GeneratorExit, None, None)
