"""The operations of a `Communicator`: on arrays in host memory, or queued on a stream of a device."""

from typing import Any

from . import _core
from ._communicator_calls import collective, message
from ._communicator_data import Data, required, same_dtype
from ._communicator_device import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    GATHER,
    RECV,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
    SEND,
    SEND_RECV,
)
from ._communicator_group import group
from ._communicator_steps import Steps


class Operations(Steps):
    """The operations of a `Communicator`."""

    # ---- collective operations

    def barrier(self) -> None:
        """Return when all ranks have called it.

        It does not wait for operations that are queued on devices, of this rank or others: synchronize the stream for that.

        Raises
        ------
        CommunicatorError
            If a rank fails before that.
        InvalidArgumentError
            If the communicator is closed.

        Examples
        --------
        >>> gg.Communicator(0, 1).barrier()
        """
        self._move("barrier", None, None, 0)

    def all_reduce(self, x: Any, out: Any = None, op: str = "sum", *, stream: Any = None) -> Any:
        """Combine the arrays of all ranks element by element; all ranks get the result.

        Parameters
        ----------
        x : array
            This rank's array.
        out : array, optional
            Takes the result. None writes it to `x`.
        op : {'sum', 'prod', 'min', 'max', 'avg'}, optional
            The operator. 'min' and 'max' give NaN if an element is NaN; NCCL and RCCL ignore a NaN unless all elements are NaN. 'avg' is for floats and complex numbers.
        stream : Stream, optional
            Where the operation is queued, if the transport has a library: ordered only with the work of that stream. None is the current
            stream, behind all known uses of the arrays.

        Returns
        -------
        array
            `out`, or `x`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If an array that is written is read-only, the arrays do not fit, the ranks disagree, or the communicator is closed.
        TypeError
            If an argument is not an array.
        UnsupportedError
            If the dtype cannot be combined by the operator.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.all_reduce(np.arange(3))
        array([0, 1, 2])
        """
        out = x if out is None else out
        if self._queued(ALL_REDUCE, x, out, op, 0, 0, stream):
            return out
        self._settle(stream)
        src, dst = self._pair(x, out, 1, 1)
        self._combine("all_reduce", dst, src, src.size, op)
        return out

    def reduce(self, x: Any, out: Any = None, root: int = 0, op: str = "sum", *, stream: Any = None) -> Any:
        """Combine the arrays of all ranks element by element; the root gets the result.

        Parameters
        ----------
        x : array
            This rank's array.
        out : array, optional
            Takes the result on the root. None writes it to `x` there.
        root : int, optional
            The rank that gets the result.
        op : {'sum', 'prod', 'min', 'max', 'avg'}, optional
            The operator.
        stream : Stream, optional
            Where the operation is queued, if the transport has a library: ordered only with the work of that stream. None is the current
            stream, behind all known uses of the arrays.

        Returns
        -------
        array or None
            `out`, or `x`, on the root; None on the others.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If an array that is written is read-only, the arrays do not fit, the ranks disagree, or the communicator is closed.
        TypeError
            If an argument is not an array, or a rank not an int.
        UnsupportedError
            If the dtype cannot be combined by the operator.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.reduce(np.arange(3), op="max")
        array([0, 1, 2])
        """
        is_root = self._is_root(root)
        out = None if not is_root else x if out is None else out
        if self._queued(REDUCE, x, out, op, root, 0, stream):
            return out
        self._settle(stream)
        if not is_root:
            src = Data(x, "x", reads=True, writes=False)
            self._combine("reduce", None, src, src.size, op, root)
            return None
        src, dst = self._pair(x, out, 1, 1)
        self._combine("reduce", dst, src, src.size, op, root)
        return out

    def reduce_scatter(self, x: Any, out: Any, op: str = "sum", *, stream: Any = None) -> Any:
        """Combine the arrays of all ranks element by element; each rank gets its block of the result.

        Parameters
        ----------
        x : array
            This rank's array, of as many equal blocks as there are ranks.
        out : array
            Takes block `rank` of the result.
        op : {'sum', 'prod', 'min', 'max', 'avg'}, optional
            The operator.
        stream : Stream, optional
            Where the operation is queued, if the transport has a library: ordered only with the work of that stream. None is the current
            stream, behind all known uses of the arrays.

        Returns
        -------
        array
            `out`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If an array that is written is read-only, the arrays do not fit, the ranks disagree, or the communicator is closed.
        TypeError
            If an argument is not an array.
        UnsupportedError
            If the dtype cannot be combined by the operator.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.reduce_scatter(np.arange(3), np.empty(3, int))
        array([0, 1, 2])
        """
        if self._queued(REDUCE_SCATTER, x, out, op, 0, 0, stream):
            return out
        self._settle(stream)
        src, dst = self._pair(x, out, self._size, 1)
        self._combine("reduce_scatter", dst, src, dst.size, op)
        return out

    def broadcast(self, x: Any, root: int = 0, *, stream: Any = None) -> Any:
        """Copy the root's array to all ranks.

        Parameters
        ----------
        x : array
            Read on the root, and written on the others.
        root : int, optional
            The rank whose array is copied.
        stream : Stream, optional
            Where the operation is queued, if the transport has a library: ordered only with the work of that stream. None is the current
            stream, behind all known uses of the arrays.

        Returns
        -------
        array
            `x`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If `x` is read-only and not the root's, the ranks disagree, or the communicator is closed.
        TypeError
            If an argument is not an array, or a rank not an int.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.broadcast(np.arange(3))
        array([0, 1, 2])
        """
        is_root = self._is_root(root)
        if self._queued(BROADCAST, x, None, None, root, 0, stream):
            return x
        self._settle(stream)
        data = Data(x, "x", reads=is_root, writes=not is_root)
        collective(self._handle(data), "broadcast", data, data, data.nbytes, -1, 0, root, data.type_name)
        if not is_root:
            data.finish()
        return x

    def all_gather(self, x: Any, out: Any, *, stream: Any = None) -> Any:
        """Collect the arrays of all ranks, in the order of the ranks; all ranks get the result.

        Parameters
        ----------
        x : array
            This rank's array.
        out : array
            Takes the result: as many blocks of the size of `x` as there are ranks.
        stream : Stream, optional
            Where the operation is queued, if the transport has a library: ordered only with the work of that stream. None is the current
            stream, behind all known uses of the arrays.

        Returns
        -------
        array
            `out`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If an array that is written is read-only, the arrays do not fit, the ranks disagree, or the communicator is closed.
        TypeError
            If an argument is not an array.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.all_gather(np.arange(3), np.empty((1, 3), int))
        array([[0, 1, 2]])
        """
        if self._queued(ALL_GATHER, x, out, None, 0, 0, stream):
            return out
        self._settle(stream)
        src, dst = self._pair(x, out, 1, self._size)
        self._move("all_gather", dst, src, src.nbytes)
        return out

    def gather(self, x: Any, out: Any = None, root: int = 0, *, stream: Any = None) -> Any:
        """Collect the arrays of all ranks, in the order of the ranks, on the root.

        Parameters
        ----------
        x : array
            This rank's array.
        out : array, optional
            Takes the result on the root, where it is required: as many blocks of the size of `x` as there are ranks.
        root : int, optional
            The rank that collects.
        stream : Stream, optional
            Where the operation is queued, if the transport has a library: ordered only with the work of that stream. None is the current
            stream, behind all known uses of the arrays.

        Returns
        -------
        array or None
            `out` on the root; None on the others.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If an array that is written is read-only, the arrays do not fit, the ranks disagree, or the communicator is closed.
        TypeError
            If an argument is not an array, or a rank not an int.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.gather(np.arange(3), np.empty((1, 3), int))
        array([[0, 1, 2]])
        """
        is_root = self._is_root(root)
        out = required(out, "out") if is_root else None
        if self._queued(GATHER, x, out, None, root, 0, stream):
            return out
        self._settle(stream)
        if is_root:
            src, dst = self._pair(x, out, 1, self._size)
            self._move("gather", dst, src, src.nbytes, root)
            return out
        src = Data(x, "x", reads=True, writes=False)
        self._move("gather", None, src, src.nbytes, root)
        return None

    def scatter(self, x: Any, out: Any, root: int = 0, *, stream: Any = None) -> Any:
        """Distribute the blocks of the root's array: rank r gets block r.

        Parameters
        ----------
        x : array or None
            As many equal blocks as there are ranks. Only the root reads it.
        out : array
            Takes this rank's block.
        root : int, optional
            The rank that distributes.
        stream : Stream, optional
            Where the operation is queued, if the transport has a library: ordered only with the work of that stream. None is the current
            stream, behind all known uses of the arrays.

        Returns
        -------
        array
            `out`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If an array that is written is read-only, the arrays do not fit, the ranks disagree, or the communicator is closed.
        TypeError
            If an argument is not an array, or a rank not an int.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.scatter(np.arange(3), np.empty(3, int))
        array([0, 1, 2])
        """
        is_root = self._is_root(root)
        x = required(x, "x") if is_root else None
        if self._queued(SCATTER, x, out, None, root, 0, stream):
            return out
        self._settle(stream)
        if is_root:
            src, dst = self._pair(x, out, self._size, 1)
            self._move("scatter", dst, src, dst.nbytes, root)
        else:
            dst = Data(out, "out", reads=False, writes=True)
            self._move("scatter", dst, None, dst.nbytes, root)
        return out

    def all_to_all(self, x: Any, out: Any = None, *, stream: Any = None) -> Any:
        """Exchange blocks: block q of rank p becomes block p of rank q.

        Parameters
        ----------
        x : array
            As many equal blocks as there are ranks.
        out : array, optional
            Takes the result, of the same size. None writes it to `x`.
        stream : Stream, optional
            Where the operation is queued, if the transport has a library: ordered only with the work of that stream. None is the current
            stream, behind all known uses of the arrays.

        Returns
        -------
        array
            `out`, or `x`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If an array that is written is read-only, the arrays do not fit, the ranks disagree, or the communicator is closed.
        TypeError
            If an argument is not an array.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.all_to_all(np.arange(3))
        array([0, 1, 2])
        """
        out = x if out is None else out
        if self._queued(ALL_TO_ALL, x, out, None, 0, 0, stream):
            return out
        self._settle(stream)
        src, dst = self._pair(x, out, 1, 1)
        if src.size % self._size:
            raise _core.InvalidArgumentError(f"x has {src.size} elements, expected a multiple of {self._size}, the number of ranks")
        self._move("all_to_all", dst, src, src.nbytes // self._size)
        return out

    # ---- messages between two ranks

    def send(self, x: Any, to: int, *, stream: Any = None) -> None:
        """Send an array. An array in host memory has been received when it returns.

        Parameters
        ----------
        x : array
            The array.
        to : int
            Another rank, which calls `recv` or `send_recv`; in a group also this one.
        stream : Stream, optional
            Where the operation is queued, if the transport has a library: ordered only with the work of that stream. None is the current
            stream, behind all known uses of the arrays.

        Raises
        ------
        CommunicatorError
            If the other rank fails.
        InvalidArgumentError
            If the other rank expects another size or dtype, or the communicator is closed.
        TypeError
            If an argument is not an array, or a rank not an int.

        See Also
        --------
        send_recv : Send and receive at the same time.
        """
        self._handle()
        to = self._peer("to", to)
        if self._queued(SEND, x, None, None, to, 0, stream):
            return
        self._settle(stream)
        src = Data(x, "x", reads=True, writes=False)
        message(self._handle(src), src, to, None, -1, src.type_name)

    def recv(self, out: Any, source: int, *, stream: Any = None) -> Any:
        """Receive an array that another rank sends.

        Parameters
        ----------
        out : array
            Takes what is sent, which must have the same size and dtype.
        source : int
            Another rank, which calls `send` or `send_recv`; in a group also this one.
        stream : Stream, optional
            Where the operation is queued, if the transport has a library: ordered only with the work of that stream. None is the current
            stream, behind all known uses of the arrays.

        Returns
        -------
        array
            `out`.

        Raises
        ------
        CommunicatorError
            If the other rank fails.
        InvalidArgumentError
            If `out` is read-only, the other rank sends another size or dtype, or the communicator is closed.
        TypeError
            If an argument is not an array, or a rank not an int.

        See Also
        --------
        send_recv : Send and receive at the same time.
        """
        self._handle()
        source = self._peer("source", source)
        if self._queued(RECV, None, out, None, source, 0, stream):
            return out
        self._settle(stream)
        dst = Data(out, "out", reads=False, writes=True)
        message(self._handle(dst), None, -1, dst, source, dst.type_name)
        dst.finish()
        return out

    def send_recv(self, x: Any, to: int, out: Any, source: int, *, stream: Any = None) -> Any:
        """Send one array and receive another at the same time, as in a shift around a ring.

        Parameters
        ----------
        x : array
            The array that is sent.
        to : int
            The rank that receives it.
        out : array
            Receives the other array. It must not overlap `x`.
        source : int
            The rank that sends to this one. A rank may exchange with itself.
        stream : Stream, optional
            Where the operation is queued, if the transport has a library: ordered only with the work of that stream. None is the current
            stream, behind all known uses of the arrays.

        Returns
        -------
        array
            `out`.

        Raises
        ------
        CommunicatorError
            If one of the two ranks fails.
        InvalidArgumentError
            If `out` is read-only, sizes or dtypes differ, or the communicator is closed. `x` and `out` need one dtype: view one of them as the other's.
        TypeError
            If an argument is not an array, or a rank not an int.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.send_recv(np.arange(3), 0, np.empty(3, int), 0)
        array([0, 1, 2])
        """
        to, source = self._peer("to", to), self._peer("source", source)
        if self._queued(SEND_RECV, x, out, None, to, source, stream):
            return out
        self._settle(stream)
        src, dst = Data(x, "x", reads=True, writes=False), Data(out, "out", reads=False, writes=True)
        same_dtype(dst, src)
        message(self._handle(dst, src), src, to, dst, source, src.type_name)
        dst.finish()
        return out

    def group(self) -> Any:
        """Collect the operations of a with-block, which begin at its end and progress at the same time.

        Inside it a rank may send and receive in any order, also to and from itself. `barrier` is not collected. On arrays in
        device memory, all operations are on one stream.

        Returns
        -------
        context manager
            At its end the operations run, or are queued; after an exception none of them is.

        Raises
        ------
        InvalidArgumentError
            If the communicator is closed, also inside the block, is in a group, or two operations use the same memory, which one writes.

        Notes
        -----
        Until the end of the block nothing else may read or write its arrays: it would be before the operations. Without a library the ranks exchange the
        messages of the block first, in an order that all follow: all ranks of these messages use a group. Its collective operations come afterwards.

        Examples
        --------
        >>> with comm.group():  # doctest: +SKIP
        ...     comm.send(x, 1 - comm.rank)
        ...     comm.recv(y, 1 - comm.rank)
        """
        self._handle()
        return group(self)
