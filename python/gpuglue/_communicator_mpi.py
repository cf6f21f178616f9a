"""Communicator.from_mpi: the ranks of an MPI program, on one machine or several."""

import importlib
import os
import socket
import threading
import time
from typing import Any

from . import _core
from ._communicator_data import nanoseconds
from ._communicator_device import ReservedPort, check_transport, not_queued, own_address, warn_staged

_keys: "list[int]" = []  # the key under which a communicator of mpi4py has ours
_lock = threading.Lock()


def from_mpi(comm: Any = None, timeout: "float | None" = 600.0, *, device: Any = None, transport: str = "auto") -> Any:
    """Create a communicator of the ranks of an MPI communicator.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        Whose ranks become the ranks. All of them call this function, equally often. None is ``MPI.COMM_WORLD``.
    timeout : float or None, optional
        Seconds that the creation, and each wait for another rank, may take. None is no limit.
    device : Device, int, str or None, optional
        Device of this rank, as for `Communicator`.
    transport : {'auto', 'nccl', 'rccl', 'host', 'staged', 'mpi'}, optional
        'mpi' passes all arrays through messages of MPI; 'host' and 'staged' need ranks of one machine: see `Communicator`. Between machines,
        'auto' is the library of the devices if all ranks can use it, and 'mpi', with a warning if a rank gave a device, if not.

    Returns
    -------
    Communicator
        `Communicator.transport` is the transport.

    Raises
    ------
    CommunicatorError
        If not all ranks call the function in time, or do not connect, or an argument of another rank is refused, which
        `CommunicatorError.ranks` has.
    InvalidArgumentError
        If `transport` or `timeout` is another one, `device` does not exist, or the MPI communicator is COMM_NULL or connects two groups.
    UnsupportedError
        If the transport cannot be used, such as 'staged' between machines.
    ImportError
        If mpi4py is not installed.

    See Also
    --------
    gpuglue.mpi.Comm : MPI's own operations, with arrays in device memory.

    Notes
    -----
    Between machines with 'nccl' or 'rccl', arrays in host memory pass through MPI. The ranks then also connect to rank 0 by TCP: at its
    MASTER_ADDR, if that is set, or else at the address of its name or of its default route.

    With 'mpi' the data passes through messages of the MPI library, between pairs of ranks. Results are the same as with 'host', bit
    for bit, except for products of complex numbers. A rank that closes, aborts or does not take part in time is named by the others. A rank that is killed is
    one that does not take part; most launchers of MPI then end all ranks. Memory of a send that was under way at a failure
    is kept until the process ends, and ``MPI_Finalize`` may wait for it.

    Examples
    --------
    >>> with gg.Communicator.from_mpi() as comm:      # doctest: +SKIP
    ...     comm.all_reduce(np.ones(3))
    """
    mpi = importlib.import_module("gpuglue.mpi")._mpi()
    comm = mpi.COMM_WORLD if comm is None else getattr(comm, "comm", comm)  # of gpuglue.mpi
    if not isinstance(comm, mpi.Comm):
        raise TypeError(f"comm must be a communicator of mpi4py, not {type(comm).__name__}")
    if not comm:
        raise _core.InvalidArgumentError("comm is MPI.COMM_NULL, which has no ranks")
    if comm.Is_inter():
        raise _core.InvalidArgumentError("comm connects two groups of ranks, expected one group: an intracommunicator")
    own = _own(mpi, comm)  # first: what fails on one rank must not keep it from counting
    number = own.calls
    limit: "float | None" = 600.0
    problem: "Exception | None" = None
    try:
        nanoseconds(timeout)
        limit = timeout
        check_transport(transport, "mpi")
        device = None if device is None else _core.Device(device)
    except Exception as error:  # raised when the other ranks know it
        problem = error
    _wait(own.request, limit, problem)
    engine = importlib.import_module("gpuglue._mpi_transport")
    made = engine.MpiTransport(own.comm, range(comm.Get_size()), [number * engine._TAGS] * comm.Get_size(), limit)
    made.own = own
    return _reserve(engine, made, device, transport, problem)


class _Own:
    """A duplicate of an MPI communicator, which is kept with it, and the numbers of tags that are in use.

    All ranks of the MPI communicator count the calls of `from_mpi` alike. Each rank counts its parts for itself."""

    def __init__(self, comm: Any, most: int):
        self.comm, self.request = comm.Idup()
        self.calls, self.most_calls = 0, most // 8
        self.parts, self.most = self.most_calls, most

    def next_part(self) -> int:
        with _lock:
            self.parts += 1
            return self.parts


def _own(mpi: Any, comm: Any) -> _Own:
    if not _keys:
        _keys.append(mpi.Comm.Create_keyval())
    own: "_Own | None" = comm.Get_attr(_keys[0])
    if own is None or own.calls >= own.most_calls:
        own = _Own(comm, comm.Get_attr(mpi.TAG_UB) // 6 - 1)
        comm.Set_attr(_keys[0], own)  # before the wait: after a timeout the next call waits for the same duplicate
    own.calls += 1
    return own


def _wait(request: Any, timeout: "float | None", problem: "Exception | None") -> None:
    end = float("inf") if timeout is None else time.monotonic() + timeout
    while not request.Test():
        if time.monotonic() > end:
            raise problem or _core.CommunicatorError(f"from_mpi: not all ranks of the MPI communicator called it within {timeout:g} s")
        time.sleep(1e-3)


def _reserve(engine: Any, made: Any, device: Any, transport: str, problem: "Exception | None" = None) -> Any:
    port = ReservedPort("")
    try:
        return _choose(made, device, transport, _meet(engine, made, device, transport, port.number, problem))
    finally:
        port.close()


def _meet(engine: Any, made: Any, device: Any, transport: str, port: int, problem: "Exception | None") -> "list[list[str]]":
    """All ranks learn where the others are, the address and id of rank 0, and whether a rank has a problem."""
    np: Any = importlib.import_module("numpy")
    mine = f"{engine.machine()} {port} {time.time_ns():x} {transport} {int(device is not None)} {_reachable()}"
    if problem is not None:
        mine = f"! {type(problem).__name__}: {problem}"
    places = np.zeros((made.size, 1024), "u1")
    places[made.rank] = np.frombuffer(mine.encode()[:1024].ljust(1024, b"\0"), "u1")
    made.call, made.keep = "from_mpi", (places,)
    try:
        made._drive(iter([made._all_to_all([places[made.rank]] * made.size, places)]))
    except _core.CommunicatorError as error:
        raise problem or error from None
    if problem is not None:
        raise problem
    texts = [bytes(place).rstrip(b"\0").decode(errors="replace") for place in places]
    failed = [rank for rank, text in enumerate(texts) if text.startswith("! ")]
    if failed:
        refused: Any = _core.CommunicatorError(f"from_mpi: rank {failed[0]} raised {texts[failed[0]][2:]}")
        refused.ranks = tuple(failed)
        raise refused
    return [text.split(" ") for text in texts]


def _choose(made: Any, device: Any, transport: str, texts: "list[list[str]]") -> Any:
    asked = sorted({text[3] for text in texts})
    if len(asked) > 1:
        raise _core.InvalidArgumentError(f"from_mpi: the ranks disagree on the transport: {', '.join(asked)}")
    machines = {text[0] for text in texts}
    if transport in ("host", "staged") and len(machines) > 1:
        raise _core.UnsupportedError(
            f"from_mpi: the ranks are on {len(machines)} machines, but the transport {transport!r} is within one: use transport='mpi'"
        )
    if transport == "mpi":
        return _adopt(made, device)
    if len(machines) > 1:
        return _choose_apart(made, device, transport, texts)
    return _connect(made, device, transport, "127.0.0.1", texts[0])


def _reachable() -> str:
    """Where other machines may reach this one."""
    if "MASTER_ADDR" in os.environ:
        return os.environ["MASTER_ADDR"]
    for other in (socket.gethostname(), "192.0.2.1"):  # of the interface of the default route; the address itself is no machine's
        try:
            own = own_address(other)
        except OSError:
            continue
        if not own.startswith("127.") and own != "::1":
            return own
    return "127.0.0.1"


def _connect(made: Any, device: Any, transport: str, host: str, first: "list[str]") -> Any:
    """A communicator of shared memory, or of the devices' library."""
    communicator: Any = importlib.import_module("gpuglue._communicator")
    address = f"[{host}]:{first[1]}" if ":" in host else f"{host}:{first[1]}"
    return communicator.Communicator(made.rank, made.size, address, id=f"mpi-{first[2]}", timeout=made.timeout, device=device, transport=transport)


def _choose_apart(made: Any, device: Any, transport: str, texts: "list[list[str]]") -> Any:
    """Between machines: arrays in device memory by the devices' library, if all ranks can use it, and all others by MPI."""
    without = [rank for rank, text in enumerate(texts) if text[4] == "0"]
    reason = f"rank {without[0]} has no device" if without else ""
    if not without or transport != "auto":
        try:
            return _adopt(made, device, native=_connect(made, device, transport, texts[0][5], texts[0]))
        except _core.UnsupportedError as error:  # on all ranks
            if transport != "auto":
                raise
            reason = str(error)
    if len(without) < made.size:
        warn_staged("mpi", reason)
    return _adopt(made, device)


def _adopt(made: Any, device: Any, native: Any = None) -> Any:
    """A communicator of the transport; `native` has the operations on arrays in device memory."""
    communicator: Any = importlib.import_module("gpuglue._communicator")
    self = communicator.Communicator.__new__(communicator.Communicator)
    self._rank, self._size, self._timeout, self._device = made.rank, made.size, made.timeout, device
    self._comm = self._transport = made
    self._native, self._queued, self._wanted = None, not_queued, "mpi"
    if native is not None:
        self._transport, self._native, self._queued, self._wanted = native._transport, native._native, native._queued, native._wanted
    return self


def split_mpi(self: Any, color: "int | None", key: int) -> Any:
    """`Communicator.split` of the transport 'mpi', or between machines.

    No communicator of MPI is made, since MPI has few, and waits for all ranks without a limit. Each rank names the tags
    by which the others of its part send to it."""
    np: Any = importlib.import_module("numpy")
    engine = importlib.import_module("gpuglue._mpi_transport")
    made, own = self._comm, self._comm.own
    given = made.exchange("split", np.array([-1 if color is None else color, key, own.next_part()], "i8")).tolist()
    if max(number for _, _, number in given) > own.most:
        raise _core.UnsupportedError("split: MPI has no tags for more parts of this MPI communicator; call from_mpi with a duplicate of it")
    if color is None:
        return None
    ranks = sorted((other for other in range(made.size) if given[other][0] == color), key=lambda other: given[other][1])
    part = engine.MpiTransport(own.comm, [made.members[other] for other in ranks], [given[other][2] * engine._TAGS for other in ranks], made.timeout)
    part.own = own
    return _adopt(part, self._device) if self._wanted == "mpi" else _reserve(engine, part, self._device, self._wanted)
