"""Communicators: processes that combine and exchange arrays."""

import operator
from typing import Any

from . import _core
from ._communicator_data import integer, launched, master_address, nanoseconds, split_address, split_numbers
from ._communicator_device import DeviceTransport, check_transport, not_queued
from ._communicator_local import from_devices
from ._communicator_mpi import from_mpi, split_mpi
from ._communicator_operations import Operations
from ._dask_communicator import from_dask


class Communicator(Operations):
    """Processes that combine and exchange arrays.

    Each process of a program is a rank. This constructor connects ranks of one machine or, if all have devices that NCCL or RCCL connects,
    of several; `from_mpi` connects the ranks of an MPI program, and `from_devices` threads of one process. All ranks call the same operations in the same order.

    Parameters
    ----------
    rank : int, optional
        Rank of this process, from 0. None takes rank and size from the variables of a launcher: RANK and WORLD_SIZE,
        or those of Open MPI, MPICH, MVAPICH, Flux, JSM or Slurm.
    size : int, optional
        Number of ranks, at most 256.
    address : str, optional
        ``'host:port'`` on which rank 0 listens while the ranks connect. None takes MASTER_ADDR and MASTER_PORT; in a
        job of Slurm both may be missing, and under torchrun the port is the next one, since torch uses MASTER_PORT.
    id : str, optional
        A string that must be the same on all ranks, such as the number of a job: at most 63 bytes. None is the job's
        identifier from the launcher, if rank and size are taken from it, else ''.
    timeout : float or None, optional
        Seconds that the creation, and each wait for another rank, may take. None is no limit.
    device : Device, int, str or None, optional
        Device of this rank, such as ``gg.Device.for_local_rank()``. None gives it none.
    transport : {'auto', 'nccl', 'rccl', 'host', 'staged'}, optional
        How arrays in device memory reach other ranks, the same on all ranks. 'auto' chooses the library of the devices'
        vendor if all ranks can use it, and 'staged', with a warning, if not.

    Raises
    ------
    CommunicatorError
        If ranks do not connect in time (`CommunicatorError.ranks` has them), the port is in use, or the ranks disagree.
    InvalidArgumentError
        If an argument is outside its range, or the environment lacks what was not given.
    TypeError
        If an argument has another type, such as an `id` that is a number.
    UnsupportedError
        If the system lacks files in memory, Unix sockets or record locks, a launcher other than Slurm started the
        ranks on several machines without MASTER_ADDR, or the transport cannot be used, which on several machines is any but 'nccl' and 'rccl'; the message has the reason.

    See Also
    --------
    CommunicatorError : A rank failed.

    Notes
    -----
    The operations take a `GPUArray`, and what `asarray` takes without a copy, if it is C-contiguous; those without blocks also take arrays
    that are all in Fortran order. The ranks exchange arrays in host memory through shared memory. An operation on them first waits for
    pending work on its arrays, and is complete when it returns.

    Ranks of several machines have only operations on arrays in device memory, and `barrier`. Other ranks connect to rank 0 by TCP, and keep the connection
    for failures. A machine that no longer answers is detected after 20 seconds, or at the end of the timeout.

    With the transports 'nccl' and 'rccl', operations on arrays in device memory are queued on the current stream, or on `stream`, and
    return at once. They are ordered as all operations of gpuglue are, and can be captured into a graph. All ranks
    then pass arrays in device memory, of sizes and dtypes that match: the library cannot compare them. With 'staged',
    such arrays pass through memory that the ranks share, in parts that devices copy during the exchange; the operation is complete when it
    returns. If a driver does not lock that memory, a warning says so, and the rank's device copies through pinned buffers.

    Operations that only move data take every dtype without objects. Reductions take integers, floats of 16 (also bfloat16), 32 and 64 bits, complex
    numbers (``'sum'`` and ``'prod'``) and bool. All ranks get the same bits.

    If a rank ends, does not take part within the timeout, closes or aborts, every other rank that calls or waits gets
    `CommunicatorError`, which names the rank. It names none if all ranks have queued an operation that does not end, and no rank
    is seen to be behind. Ctrl-C ends a wait, and aborts the communicator. One thread at a time may
    use a communicator. It is a context manager that closes it.

    Examples
    --------
    >>> with gg.Communicator(0, 1) as comm:
    ...     comm.all_reduce(np.array([1.0, 2.0]))
    array([1., 2.])
    """

    _borrowed = False  # from other code

    def __init__(
        self,
        rank: "int | None" = None,
        size: "int | None" = None,
        address: "str | None" = None,
        *,
        id: "str | None" = None,
        timeout: "float | None" = 600.0,
        device: Any = None,
        transport: str = "auto",
    ):
        self._comm: Any = None
        self._native: "DeviceTransport | None" = None
        self._queued = not_queued
        if (rank is None) != (size is None):
            raise _core.InvalidArgumentError("give both rank and size, or none of them")
        if rank is None or size is None:
            rank, size, run = launched()
            id = run if id is None else id
        self._rank, self._size = integer(rank, "rank"), integer(size, "size")
        id = "" if id is None else id
        if not isinstance(id, str):
            raise TypeError(f"id must be a str, not {type(id).__name__}")
        host, port = ("", 0) if self._size == 1 and address is None else split_address(master_address(self._size) if address is None else address)
        if "\0" in id:
            raise _core.InvalidArgumentError("id has a null character")
        check_transport(transport)
        device = None if device is None else _core.Device(device)
        self._timeout, self._wanted, self._device = timeout, transport, device
        comm = _core._comm_create(self._rank, self._size, host or "127.0.0.1", port, id, nanoseconds(timeout), device is not None)
        self._open(comm, _core._comm_open_device(comm, device, transport))

    def _open(self, comm: Any, found: "tuple[str, str, str, int]") -> None:
        self._comm, self._transport = comm, DeviceTransport(comm, found, self._device)
        self._native = self._transport if self._transport.native else None
        self._queued = _core._comm_queue_of(comm, self._native.queue if self._native else None)
        self._transport.warn()
        self._unwarned = self._wanted == "auto" and self.transport == "host"

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
        """How arrays in device memory reach other ranks.

        'nccl' or 'rccl' is the library that exchanges them between devices. 'staged' lets devices copy from and to memory of
        the host that the ranks share. 'host' means that no rank gave a device; device memory then passes through it as well, with a warning. Arrays in host memory pass through
        shared memory, which ranks of several machines do not have. With 'mpi' all arrays pass through messages of MPI: see `from_mpi`.
        """
        return self._transport.name

    @property
    def device(self) -> "_core.Device | None":
        """The device of this rank, or None."""
        return self._device

    @property
    def library(self) -> "tuple[str, str] | None":
        """Path and version of the library of the transport, or None."""
        if self._native is None:
            return None
        version = self._native.version
        return self._native.path, f"{version // 10000}.{version // 100 % 100}.{version % 100}"

    @property
    def handle(self) -> int:
        """The library's communicator (``ncclComm_t``) as an address, for other code.

        It is valid until this communicator is closed or fails.
        """
        handle = self._handle()
        if self._native is not None:
            handle = self._native.comm
        if hasattr(handle, "collective"):
            raise _core.UnsupportedError("the transport 'mpi' has no library whose communicator other code could use")
        return _core._comm_native(handle)

    def __repr__(self) -> str:
        return f"<gpuglue.Communicator rank {self._rank} of {self._size}{'' if self._comm else ', closed'}>"

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, *exception: Any) -> None:
        if exception[0] is not None and self._native is not None and self._comm is not None:
            self.abort()  # else close would wait for operations that the others may never come to
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a Communicator cannot be pickled: create one in each process")

    from_dask = staticmethod(from_dask)
    from_devices = staticmethod(from_devices)
    from_mpi = staticmethod(from_mpi)

    def split(self, color: "int | None", key: int = 0) -> "Communicator | None":
        """Create communicators of ranks that give the same color. All ranks call it.

        Parameters
        ----------
        color : int or None
            Ranks with equal colors are in one new communicator: 0 to 2147483647. None is in none.
        key : int, optional
            Orders the ranks of the new communicator, then their ranks here: -2147483648 to 2147483647.

        Returns
        -------
        Communicator or None
            With the same device, transport and timeout.

        Raises
        ------
        CommunicatorError
            If a rank fails.
        InvalidArgumentError
            If the communicator is closed, or `color` or `key` is outside its range.
        TypeError
            If `color` or `key` is not an int.
        UnsupportedError
            If the communicator was borrowed by `from_handle`, or MPI has no tags for more parts.

        Examples
        --------
        >>> with gg.Communicator(0, 1) as comm, comm.split(0) as part:
        ...     part.size
        1
        """
        color, key = split_numbers(color, key)
        if self._borrowed:
            raise _core.UnsupportedError("split: this communicator was borrowed from other code, which can split it: use from_handle for the parts")
        if hasattr(self._handle(), "split"):
            return split_mpi(self, color, key)
        found = _core._comm_split(self._handle(), -1 if color is None else color, key)
        if found is None:
            return None
        part = Communicator.__new__(Communicator)
        comm, part._rank, part._size = found
        part._timeout, part._wanted, part._device = self._timeout, self._wanted, self._device
        part._open(comm, _core._comm_open_device(comm, part._device, part._wanted))
        return part

    @staticmethod
    def from_handle(handle: int, device: Any = None, timeout: "float | None" = 600.0) -> "Communicator":
        """Use a communicator of NCCL or RCCL that other code has created, such as torch or CuPy.

        Parameters
        ----------
        handle : int
            Its address (``ncclComm_t``).
        device : Device, int or str, optional
            Its device. None is the current one.
        timeout : float or None, optional
            Seconds that the other ranks may take for an operation. None is no limit.

        Returns
        -------
        Communicator
            It takes arrays in device memory only. The other code keeps the handle valid and destroys it.

        Raises
        ------
        InvalidArgumentError
            If the handle belongs to another device.
        UnsupportedError
            If the library cannot be used.

        Notes
        -----
        After the timeout, or `abort`, waits for its operations raise `CommunicatorError`. It names no rank, and the operations
        remain on the device until the other code aborts its communicator.
        """
        limit, self = nanoseconds(timeout), Communicator.__new__(Communicator)
        self._device = _core.current_device() if device is None else _core.Device(device)
        self._timeout, self._wanted, self._borrowed = timeout, "auto", True
        comm, self._rank, self._size, name, path, version = _core._comm_borrow(self._device, operator.index(handle), limit)
        self._open(comm, (name, "", path, version))
        return self

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
        for part in (self._handle(), *([self._native.comm] if self._native is not None else [])):
            part.abort() if hasattr(part, "abort") else _core._comm_abort(part)

    def close(self) -> None:
        """Close this rank: others that need it later get `CommunicatorError`.

        Waits for the queued operations of all ranks, and up to two seconds until all ranks close; of ranks of one process
        (`from_devices`), only the last that closes waits for the others. A second call does nothing.

        Examples
        --------
        >>> comm = gg.Communicator(0, 1)
        >>> comm.close()
        >>> comm
        <gpuglue.Communicator rank 0 of 1, closed>
        """
        comm, self._comm = self._comm, None
        native, self._native, self._queued = self._native, None, not_queued
        try:
            if comm is not None and native is not None:
                _core._comm_close_device(native.comm)
        finally:  # Ctrl-C ends the wait, and not the close
            if hasattr(comm, "close"):
                comm.close()
            if isinstance(self._transport, DeviceTransport):
                self._transport.comm = None  # the last reference closes the rank
