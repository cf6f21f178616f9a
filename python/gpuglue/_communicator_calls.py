"""The operations of a communicator that are complete when they return: by the core, with shared memory, or by MPI."""

from typing import Any

from . import _core
from ._communicator_data import Data, address_of, check_order, side_of

NAMES = "broadcast all_gather gather scatter all_to_all all_reduce reduce reduce_scatter send recv send_recv".split()  # gg_comm_operation


def _staged(*sides: "Data | None") -> bool:
    return any(data is not None and data.staged for data in sides)


def _load(*sides: "Data | None") -> None:
    for data in sides:
        if data is not None:
            data.load()


def collective(handle: Any, operation: str, dst: "Data | None", src: "Data | None", count: int, kind: int, combines: int, root: int, type: str) -> None:
    """Run a collective operation: `count` elements of a reduction, or bytes of a block if kind is -1."""
    check_order(operation, dst, src)
    try:
        if hasattr(handle, "collective"):
            _load(dst, src)
            handle.collective(operation, dst, src, count, kind, combines, root, type)
        elif _staged(dst, src):
            _core._comm_staged(handle, NAMES.index(operation), side_of(dst), side_of(src), count, 0, max(kind, 0), combines, root, 0, type)
        else:
            _core._comm_collective(handle, operation, address_of(dst), address_of(src), count, kind, combines, root, type)
    finally:
        del handle  # the last reference closes the rank: an exception that is kept has this frame, and must not have one


def message(handle: Any, src: "Data | None", to: int, dst: "Data | None", source: int, type: str) -> None:
    """Send, receive or both; a rank of -1 leaves that side out."""
    check_order("message", dst, src)
    sent, received = (0 if data is None else data.nbytes for data in (src, dst))
    try:
        if hasattr(handle, "message"):
            _load(dst, src)
            handle.message(src, to, dst, source, type)
        elif _staged(dst, src):
            name = "send" if dst is None else "recv" if src is None else "send_recv"
            root, count = (source, received) if src is None else (to, sent)
            _core._comm_staged(handle, NAMES.index(name), side_of(dst), side_of(src), count, received, 0, 0, root, source, type)
        else:
            _core._comm_message(handle, address_of(src), sent, to, address_of(dst), received, source, type)
    finally:
        del handle
