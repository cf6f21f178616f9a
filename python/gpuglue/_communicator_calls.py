"""The operations on memory of the host, by the transport of a communicator: the core's shared memory, or MPI."""

from typing import Any

from . import _core
from ._communicator_data import Data, address_of


def collective(handle: Any, operation: str, dst: "Data | None", src: "Data | None", count: int, kind: int, combines: int, root: int, type: str) -> None:
    """Run a collective operation: `count` elements of a reduction, or bytes of a block if kind is -1."""
    if hasattr(handle, "collective"):
        handle.collective(operation, dst, src, count, kind, combines, root, type)
    else:
        _core._comm_collective(handle, operation, address_of(dst), address_of(src), count, kind, combines, root, type)


def message(handle: Any, src: "Data | None", to: int, dst: "Data | None", source: int, type: str) -> None:
    """Send, receive or both; a rank of -1 leaves that side out."""
    if hasattr(handle, "message"):
        handle.message(src, to, dst, source, type)
    else:
        _core._comm_message(handle, address_of(src), 0 if src is None else src.nbytes, to, address_of(dst), 0 if dst is None else dst.nbytes, source, type)
