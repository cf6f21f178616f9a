"""Communicator.split, and ports for communicators that gpuglue itself creates."""

import contextlib
import importlib
import socket
from collections.abc import Iterator
from typing import Any

from . import _core


@contextlib.contextmanager
def reserved_port(host: str = "127.0.0.1") -> "Iterator[int]":
    """A port that no other process gets inside the block; rank 0 can listen on it, since it sets SO_REUSEADDR too."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((host, 0))
        yield holder.getsockname()[1]


def split(self: Any, color: "int | None", key: int = 0) -> Any:
    """Create communicators of groups of ranks. All ranks call it.

    Parameters
    ----------
    color : int or None
        Ranks with the same number, from 0, form a group. None is in no group.
    key : int, optional
        The ranks of a group are numbered by it, and by their ranks here where it is equal.

    Returns
    -------
    Communicator or None
        The communicator of this rank's group, with the timeout and the transport of this one; None if `color` is None.

    Raises
    ------
    CommunicatorError
        If a rank fails.
    InvalidArgumentError
        If `color` is below 0.

    Examples
    --------
    >>> with gg.Communicator(0, 1) as comm, comm.split(color=0) as group:
    ...     group.size
    1
    """
    np: Any = importlib.import_module("numpy")
    communicator: Any = importlib.import_module("gpuglue._communicator")
    if color is not None and color < 0:
        raise _core.InvalidArgumentError(f"color is {color}, expected a number from 0, or None")
    with reserved_port() as port:
        mine = np.array([-1 if color is None else color, key, port], "i8")
        table = self.all_gather(mine, np.empty((self.size, 3), "i8"))
        group = sorted((rank for rank in range(self.size) if table[rank, 0] == mine[0]), key=lambda rank: (table[rank, 1], rank))
        rank = group.index(self.rank)
        if self.transport == "mpi":
            return _split_mpi(communicator, self, color, rank, len(group))
        if color is None:
            return None
        address = f"127.0.0.1:{table[group[0], 2]}"
        return communicator.Communicator(rank, len(group), address, id=f"split {color} {group[0]}", timeout=self._timeout)


def _split_mpi(communicator: Any, self: Any, color: "int | None", rank: int, size: int) -> Any:
    engine: Any = importlib.import_module("gpuglue._mpi_transport")
    mpi = self._comm.mpi
    made = self._comm.comm.Split(mpi.UNDEFINED if color is None else color, rank)
    return None if color is None else communicator.adopt(engine.MpiTransport(made, 0, self._timeout), rank, size, self._timeout)
