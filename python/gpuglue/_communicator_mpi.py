"""Communicator.from_mpi: the ranks of an MPI program, on one machine or several."""

import importlib
import time
from typing import Any

from . import _core
from ._communicator_split import reserved_port

_keys: "list[int]" = []  # the key under which a communicator of mpi4py has ours


def from_mpi(comm: Any = None, timeout: "float | None" = 600.0, transport: str = "auto") -> Any:
    """Create a communicator of the ranks of an MPI communicator.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        Whose ranks become the ranks. All of them call this function. None is ``MPI.COMM_WORLD``.
    timeout : float or None, optional
        Seconds that the creation, and each wait for another rank, may take. None is no limit.
    transport : {'auto', 'host', 'mpi'}, optional
        How data reach other ranks. 'auto' is 'host', shared memory, if all ranks are on one machine, and 'mpi' if not.

    Returns
    -------
    Communicator
        `Communicator.transport` is the transport.

    Raises
    ------
    CommunicatorError
        If not all ranks call the function in time, or do not connect.
    InvalidArgumentError
        If `transport` is another one, or the MPI communicator connects two groups.
    UnsupportedError
        If `transport` is 'host', and the ranks are on several machines.
    ImportError
        If mpi4py is not installed.

    See Also
    --------
    gpuglue.mpi.Comm : MPI's own operations, with arrays in device memory.

    Notes
    -----
    With 'mpi' the data pass through messages of the MPI library, between pairs of ranks. Results are the same as with 'host', bit
    for bit, except for products of complex numbers. A rank that closes, aborts or does not take part in time is named by the others. A rank that is killed is
    one that does not take part; most launchers of MPI then end all ranks. Memory of a send that was under way at a failure
    is kept until the process ends, and ``MPI_Finalize`` may wait for it.

    Examples
    --------
    >>> with gg.Communicator.from_mpi() as comm:      # doctest: +SKIP
    ...     comm.all_reduce(np.ones(3))
    """
    try:
        mpi: Any = importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        raise ImportError(f"from_mpi needs mpi4py, built for the MPI library of the launcher: pip install mpi4py ({error})") from error
    comm = mpi.COMM_WORLD if comm is None else getattr(comm, "comm", comm)  # of gpuglue.mpi
    if transport not in ("auto", "host", "mpi"):
        raise _core.InvalidArgumentError(f"transport is {transport!r}, expected 'auto', 'host' or 'mpi'")
    if comm.Is_inter():
        raise _core.InvalidArgumentError("comm connects two groups of ranks, expected one group: an intracommunicator")
    engine = importlib.import_module("gpuglue._mpi_transport")
    own, number = _own(mpi, comm, timeout)
    made = engine.MpiTransport(own, number * engine._TAGS, timeout)
    return _choose(engine, made, transport, timeout)


def _own(mpi: Any, comm: Any, timeout: "float | None") -> "tuple[Any, int]":
    """A duplicate of the communicator, which is kept with it, and how often it has been used; all ranks count alike."""
    if not _keys:
        _keys.append(mpi.Comm.Create_keyval())
    kept = comm.Get_attr(_keys[0])
    most = comm.Get_attr(mpi.TAG_UB) // 6 - 1
    if kept is None or kept[1] >= most:
        own, request = comm.Idup()
        _wait(request, timeout)
        kept = [own, 0]
        comm.Set_attr(_keys[0], kept)
    kept[1] += 1
    return kept[0], kept[1]


def _wait(request: Any, timeout: "float | None") -> None:
    end = float("inf") if timeout is None else time.monotonic() + timeout
    while not request.Test():
        if time.monotonic() > end:
            raise _core.CommunicatorError(f"from_mpi: not all ranks of the MPI communicator called it within {timeout:g} s")
        time.sleep(1e-3)


def _choose(engine: Any, made: Any, transport: str, timeout: "float | None") -> Any:
    """All ranks learn where the others are, and the address and id of rank 0."""
    np: Any = importlib.import_module("numpy")
    communicator: Any = importlib.import_module("gpuglue._communicator")
    with reserved_port() as port:
        mine = f"{engine.machine()} {port} {made.rank} {time.time_ns():x} {transport}".encode()
        places = np.zeros((made.size, 256), "u1")
        places[made.rank, : len(mine)] = np.frombuffer(mine, "u1")
        places[made.rank, len(mine) :] = 0
        made.call = "from_mpi"
        made.keep = (places,)
        made._drive(iter([made._all_to_all([places[made.rank]] * made.size, places)]))
        texts = [bytes(place).rstrip(b"\0").decode().split(" ") for place in places]
        asked = sorted({text[4] for text in texts})
        if len(asked) > 1:
            raise _core.InvalidArgumentError(f"from_mpi: the ranks disagree on the transport: {', '.join(asked)}")
        machines = {text[0] for text in texts}
        if transport == "host" and len(machines) > 1:
            raise _core.UnsupportedError(
                f"from_mpi: the ranks are on {len(machines)} machines, but the transport 'host' is shared memory of one: use transport='mpi'"
            )
        if transport == "mpi" or len(machines) > 1:
            return communicator.adopt(made, made.rank, made.size, timeout)
        address = f"127.0.0.1:{texts[0][1]}"
        return communicator.Communicator(made.rank, made.size, address, id=f"mpi-{texts[0][3]}", timeout=timeout)
