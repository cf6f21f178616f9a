"""Communicators: processes that combine and exchange arrays."""

import operator
from typing import Any

from . import _core
from ._communicator_calls import Checks, collective, message
from ._communicator_data import Data, launched, master_address, nanoseconds, required, same_dtype, split_address
from ._communicator_mpi import from_mpi
from ._communicator_split import split
from ._dask_communicator import from_dask


class Communicator(Checks):
    """Processes that combine and exchange arrays.

    Each process of a program is a rank. This constructor connects ranks of one machine; `from_mpi` also connects those of several. All ranks call the same operations in the same order.

    Parameters
    ----------
    rank : int, optional
        Rank of this process, from 0. None takes rank and size from the variables of a launcher: RANK and WORLD_SIZE,
        or those of Open MPI, MPICH or Slurm.
    size : int, optional
        Number of ranks, at most 256.
    address : str, optional
        ``'host:port'`` on which rank 0 listens while the ranks connect. None takes MASTER_ADDR and MASTER_PORT; in a
        job of Slurm MASTER_PORT may be missing, and under torchrun the port is the next one, since torch uses MASTER_PORT.
    id : str, optional
        A text that must be the same on all ranks, such as the number of a job: at most 63 bytes. None is the job's
        identifier from the launcher, if rank and size are taken from it, else ''.
    timeout : float or None, optional
        Seconds that the creation, and each wait for another rank, may take. None is no limit.

    Raises
    ------
    CommunicatorError
        If ranks do not connect in time (`CommunicatorError.ranks` has them), the port is in use, or the ranks disagree.
    InvalidArgumentError
        If an argument is outside its range, or the environment lacks what was not given.
    UnsupportedError
        If the system lacks files in memory, Unix sockets or record locks, or the ranks are on several machines.

    See Also
    --------
    CommunicatorError : A rank failed.

    Notes
    -----
    The operations take NumPy arrays and a `GPUArray`, or a device array of another library, if it is C-contiguous. The
    ranks of one machine exchange the data through shared memory. Arrays in device memory are copied to pinned memory before, and back
    after it. An operation first waits for pending work on its arrays, and is complete when it returns.

    Operations that only move data take every dtype without objects. Reductions take integers, floats of 16 (also bfloat16), 32 and 64 bits, complex
    numbers (``'sum'`` and ``'prod'``) and bool. All ranks get the same bits.

    If a rank ends, does not take part within the timeout, closes or aborts, every other rank that calls or waits gets
    `CommunicatorError`, which names the rank. Ctrl-C ends a wait, and aborts the communicator. One thread at a time may
    use a communicator. It is a context manager that closes it.

    Examples
    --------
    >>> with gg.Communicator(0, 1) as comm:
    ...     comm.all_reduce(np.array([1.0, 2.0]))
    array([1., 2.])
    """

    def __init__(
        self,
        rank: "int | None" = None,
        size: "int | None" = None,
        address: "str | None" = None,
        *,
        id: "str | None" = None,
        timeout: "float | None" = 600.0,
    ):
        self._comm: Any = None
        self._timeout = timeout
        if (rank is None) != (size is None):
            raise _core.InvalidArgumentError("give both rank and size, or none of them")
        if rank is None or size is None:
            rank, size, run = launched()
            id = run if id is None else id
        self._rank, self._size = operator.index(rank), operator.index(size)
        id = "" if id is None else id
        if not isinstance(id, str):
            raise TypeError(f"id must be a str, not {type(id).__name__}")
        host, port = ("", 0) if self._size == 1 and address is None else split_address(master_address() if address is None else address)
        if "\0" in id:
            raise _core.InvalidArgumentError("id has a null character")
        self._comm = _core._comm_create(self._rank, self._size, host or "127.0.0.1", port, id, nanoseconds(timeout))

    @property
    def rank(self) -> int:
        """Rank of this process: 0 to size - 1."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    @property
    def transport(self) -> str:
        """How data reach other ranks: 'host', shared memory of one machine, or 'mpi', an MPI library."""
        return getattr(self._comm, "transport", "host")

    def __repr__(self) -> str:
        return f"<gpuglue.Communicator rank {self._rank} of {self._size}{'' if self._comm else ', closed'}>"

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a Communicator cannot be pickled: create one in each process")

    from_dask = staticmethod(from_dask)
    from_mpi = staticmethod(from_mpi)
    split = split

    # ---- collective operations

    def barrier(self) -> None:
        """Return when all ranks have called it.

        Raises
        ------
        CommunicatorError
            If a rank fails before that.

        Examples
        --------
        >>> gg.Communicator(0, 1).barrier()
        """
        self._move("barrier", None, None, 0)

    def all_reduce(self, x: Any, out: Any = None, op: str = "sum") -> Any:
        """Combine the arrays of all ranks element by element; all ranks get the result.

        Parameters
        ----------
        x : array_like
            This rank's array.
        out : array, optional
            Takes the result. None writes it to `x`.
        op : {'sum', 'prod', 'min', 'max'}, optional
            The operator. 'min' and 'max' are NaN if an element is.

        Returns
        -------
        array
            `out`, or `x`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If the arrays do not fit, or the ranks disagree.
        UnsupportedError
            If the dtype cannot be combined by the operator.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.all_reduce(np.arange(3))
        array([0, 1, 2])
        """
        out = x if out is None else out
        src, dst = self._pair(x, out, 1, 1)
        self._combine("all_reduce", dst, src, src.size, op)
        return out

    def reduce(self, x: Any, out: Any = None, root: int = 0, op: str = "sum") -> Any:
        """Combine the arrays of all ranks element by element; the root gets the result.

        Parameters
        ----------
        x : array_like
            This rank's array.
        out : array, optional
            Takes the result on the root. None writes it to `x` there.
        root : int, optional
            The rank that gets the result.
        op : {'sum', 'prod', 'min', 'max'}, optional
            The operator.

        Returns
        -------
        array or None
            `out`, or `x`, on the root; None on the others.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If the arrays do not fit, or the ranks disagree.
        UnsupportedError
            If the dtype cannot be combined by the operator.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.reduce(np.arange(3), op="max")
        array([0, 1, 2])
        """
        if not self._is_root(root):
            src = Data(x, "x", reads=True, writes=False)
            self._combine("reduce", None, src, src.size, op, root)
            return None
        out = x if out is None else out
        src, dst = self._pair(x, out, 1, 1)
        self._combine("reduce", dst, src, src.size, op, root)
        return out

    def reduce_scatter(self, x: Any, out: Any, op: str = "sum") -> Any:
        """Combine the arrays of all ranks element by element; each rank gets its block of the result.

        Parameters
        ----------
        x : array_like
            This rank's array, of as many equal blocks as there are ranks.
        out : array
            Takes block `rank` of the result.
        op : {'sum', 'prod', 'min', 'max'}, optional
            The operator.

        Returns
        -------
        array
            `out`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If the arrays do not fit, or the ranks disagree.
        UnsupportedError
            If the dtype cannot be combined by the operator.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.reduce_scatter(np.arange(3), np.empty(3, int))
        array([0, 1, 2])
        """
        src, dst = self._pair(x, out, self._size, 1)
        self._combine("reduce_scatter", dst, src, dst.size, op)
        return out

    def broadcast(self, x: Any, root: int = 0) -> Any:
        """Copy the root's array to all ranks.

        Parameters
        ----------
        x : array
            Read on the root, and written on the others.
        root : int, optional
            The rank whose array is copied.

        Returns
        -------
        array
            `x`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If the ranks disagree.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.broadcast(np.arange(3))
        array([0, 1, 2])
        """
        is_root = self._is_root(root)
        data = Data(x, "x", reads=is_root, writes=not is_root)
        collective(self._handle(), "broadcast", data, data, data.nbytes, -1, 0, root, data.type_name)
        if not is_root:
            data.finish()
        return x

    def all_gather(self, x: Any, out: Any) -> Any:
        """Collect the arrays of all ranks, in the order of the ranks; all ranks get the result.

        Parameters
        ----------
        x : array_like
            This rank's array.
        out : array
            Takes the result: as many blocks of the size of `x` as there are ranks.

        Returns
        -------
        array
            `out`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If the arrays do not fit, or the ranks disagree.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.all_gather(np.arange(3), np.empty((1, 3), int))
        array([[0, 1, 2]])
        """
        src, dst = self._pair(x, out, 1, self._size)
        self._move("all_gather", dst, src, src.nbytes)
        return out

    def gather(self, x: Any, out: Any = None, root: int = 0) -> Any:
        """Collect the arrays of all ranks, in the order of the ranks, on the root.

        Parameters
        ----------
        x : array_like
            This rank's array.
        out : array, optional
            Takes the result on the root, where it is required: as many blocks of the size of `x` as there are ranks.
        root : int, optional
            The rank that collects.

        Returns
        -------
        array or None
            `out` on the root; None on the others.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If the arrays do not fit, or the ranks disagree.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.gather(np.arange(3), np.empty((1, 3), int))
        array([[0, 1, 2]])
        """
        if self._is_root(root):
            src, dst = self._pair(x, required(out, "out"), 1, self._size)
            self._move("gather", dst, src, src.nbytes, root)
            return out
        src = Data(x, "x", reads=True, writes=False)
        self._move("gather", None, src, src.nbytes, root)
        return None

    def scatter(self, x: Any, out: Any, root: int = 0) -> Any:
        """Distribute the blocks of the root's array: rank r gets block r.

        Parameters
        ----------
        x : array_like or None
            As many equal blocks as there are ranks. Only the root reads it.
        out : array
            Takes this rank's block.
        root : int, optional
            The rank that distributes.

        Returns
        -------
        array
            `out`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If the arrays do not fit, or the ranks disagree.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.scatter(np.arange(3), np.empty(3, int))
        array([0, 1, 2])
        """
        if self._is_root(root):
            src, dst = self._pair(required(x, "x"), out, self._size, 1)
            self._move("scatter", dst, src, dst.nbytes, root)
        else:
            dst = Data(out, "out", reads=False, writes=True)
            self._move("scatter", dst, None, dst.nbytes, root)
        return out

    def all_to_all(self, x: Any, out: Any = None) -> Any:
        """Exchange blocks: block q of rank p becomes block p of rank q.

        Parameters
        ----------
        x : array_like
            As many equal blocks as there are ranks.
        out : array, optional
            Takes the result, of the same size. None writes it to `x`.

        Returns
        -------
        array
            `out`, or `x`.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If the arrays do not fit, or the ranks disagree.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.all_to_all(np.arange(3))
        array([0, 1, 2])
        """
        out = x if out is None else out
        src, dst = self._pair(x, out, 1, 1)
        if src.size % self._size:
            raise _core.InvalidArgumentError(f"x has {src.size} elements, expected a multiple of {self._size}, the number of ranks")
        self._move("all_to_all", dst, src, src.nbytes // self._size)
        return out

    # ---- messages between two ranks

    def send(self, x: Any, to: int) -> None:
        """Send an array. Returns when the other rank has received it.

        Parameters
        ----------
        x : array_like
            The array.
        to : int
            Another rank, which calls `recv` or `send_recv`.

        Raises
        ------
        CommunicatorError
            If the other rank fails.
        InvalidArgumentError
            If the other rank expects another size or dtype.

        See Also
        --------
        send_recv : Send and receive at the same time.
        """
        src = Data(x, "x", reads=True, writes=False)
        message(self._handle(), src, self._peer("to", to), None, -1, src.type_name)

    def recv(self, out: Any, source: int) -> Any:
        """Receive an array that another rank sends.

        Parameters
        ----------
        out : array
            Takes what is sent, which must have the same size and dtype.
        source : int
            Another rank, which calls `send` or `send_recv`.

        Returns
        -------
        array
            `out`.

        Raises
        ------
        CommunicatorError
            If the other rank fails.
        InvalidArgumentError
            If the other rank sends another size or dtype.

        See Also
        --------
        send_recv : Send and receive at the same time.
        """
        dst = Data(out, "out", reads=False, writes=True)
        message(self._handle(), None, -1, dst, self._peer("source", source), dst.type_name)
        dst.finish()
        return out

    def send_recv(self, x: Any, to: int, out: Any, source: int) -> Any:
        """Send one array and receive another at the same time, as in a shift around a ring.

        Parameters
        ----------
        x : array_like
            The array that is sent.
        to : int
            The rank that receives it.
        out : array
            Receives the other array. It must not overlap `x`.
        source : int
            The rank that sends to this one. A rank may exchange with itself.

        Returns
        -------
        array
            `out`.

        Raises
        ------
        CommunicatorError
            If one of the two ranks fails.
        InvalidArgumentError
            If sizes differ, or dtypes. `x` and `out` need the same: view one of them as the other's dtype.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm:
        ...     comm.send_recv(np.arange(3), 0, np.empty(3, int), 0)
        array([0, 1, 2])
        """
        src, dst = Data(x, "x", reads=True, writes=False), Data(out, "out", reads=False, writes=True)
        same_dtype(dst, src)
        to, source = self._peer("to", to), self._peer("source", source)
        message(self._handle(), src, to, dst, source, src.type_name)
        dst.finish()
        return out

    # ---- the end

    def abort(self) -> None:
        """Make all waits of all ranks in this communicator fail, now or when they begin.

        Any thread may call it. It does not wait.

        Raises
        ------
        InvalidArgumentError
            If the communicator is closed.

        Examples
        --------
        >>> comm = gg.Communicator(0, 1)
        >>> comm.abort()
        >>> comm.barrier()
        Traceback (most recent call last):
            ...
        gpuglue.CommunicatorError: barrier: rank 0 (this rank) aborted the communicator...
        """
        handle = self._handle()
        handle.abort() if hasattr(handle, "abort") else _core._comm_abort(handle)

    def close(self) -> None:
        """Close this rank: others that need it later get `CommunicatorError`.

        A second call does nothing.

        Examples
        --------
        >>> comm = gg.Communicator(0, 1)
        >>> comm.close()
        >>> comm
        <gpuglue.Communicator rank 0 of 1, closed>
        """
        handle, self._comm = self._comm, None
        if hasattr(handle, "close"):
            handle.close()


def adopt(transport: Any, rank: int, size: int, timeout: "float | None") -> Communicator:
    """A communicator of a transport that exists."""
    made = Communicator.__new__(Communicator)
    made._comm, made._rank, made._size, made._timeout = transport, rank, size, timeout
    return made
