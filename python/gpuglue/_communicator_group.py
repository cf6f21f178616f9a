"""Communicator.group: operations of a with-block, which progress at the same time."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

from . import _core
from ._communicator_calls import NAMES, message
from ._communicator_data import Data, same_dtype, type_name
from ._communicator_device import BROADCAST, RECV, SEND, SEND_RECV


@contextmanager
def group(comm: Any) -> Iterator[None]:
    if comm._grouping:
        raise _core.InvalidArgumentError("group: a group has begun, and is not ended")
    native, queued = comm._native, comm._queued
    kept: "list[tuple[Any, ...]]" = []
    uses: "list[tuple[int, int, int, bool, Data]]" = []

    def collect(operation: int, x: Any, out: Any, op: "str | None", root: int, source: int, stream: Any) -> bool:
        if native is not None and queued(operation, x, out, op, root, source, stream):
            return True  # by the core
        if operation == SEND_RECV:
            same_dtype(Data(out, "out", reads=False, writes=True), Data(x, "x", reads=True, writes=False))
            return collect(SEND, x, None, None, root, 0, stream) and collect(RECV, None, out, None, source, 0, stream)
        mine = list(_uses(operation, x, out, operation == BROADCAST and root != comm._rank))
        for _, begin, end, writes, _ in mine:
            for other, at, stop, written, _ in uses:
                if begin < stop and at < end and (writes or written):
                    raise _core.InvalidArgumentError(
                        f"{NAMES[other]} and {NAMES[operation]} of one group use the same memory, which one of them writes; use two groups"
                    )
        uses.extend(mine)
        kept.append((operation, x, out, op, root, stream))
        return True

    if native is not None:
        _core._comm_group_begin(native.comm)
    comm._queued, comm._grouping, drop = collect, True, True
    try:
        yield
        drop = False
    finally:
        comm._grouping = False
        if comm._comm is not None:
            comm._queued = queued
        queued = None  # an exception that is kept has this frame, which must not have the last reference to the rank
        if comm._comm is not None and native is not None:
            _core._comm_group_end(native.comm, drop)
    if comm._comm is None:
        raise _core.InvalidArgumentError("Communicator was closed in its group: the group's operations are dropped")
    refused = _exchange(comm, kept)
    for operation, x, out, op, root, stream in kept:
        if operation < SEND:
            given = {"out": out, "op": op, "root": root or None}
            getattr(comm, NAMES[operation])(x, stream=stream, **{name: value for name, value in given.items() if value is not None})
    if refused is not None:
        raise refused


def _uses(operation: int, x: Any, out: Any, writes_x: bool) -> "Iterator[tuple[int, int, int, bool, Data]]":
    """The operation, begin and end of memory, whether it is written, and what keeps it, of arrays that fit."""
    for name, array, writes in (("x", x, writes_x or out is x), ("out", out, True)):
        if array is not None or (operation, name) in ((SEND, "x"), (RECV, "out")):
            data = Data(array, name, reads=not writes, writes=writes)
            if data.nbytes:
                yield operation, data.address, data.address + data.nbytes, writes, data


def _exchange(comm: Any, kept: "list[tuple[Any, ...]]") -> "_core.InvalidArgumentError | None":
    """Messages, in steps: the k-th to the rank at a distance ahead, with the k-th from the rank as far behind.

    Returns the first error of a message that does not fit. The others are exchanged all the same, since the other ranks wait for them.

    No cycle can arise: both ranks of a message are in the same step for it, all go through the steps in one order, and so no rank waits in the earliest
    step that is not complete for one that is in another step.
    """
    refused = None
    for *_, stream in kept:
        comm._settle(stream)
    for distance in range(comm._size):
        to, source = (comm._rank + distance) % comm._size, (comm._rank - distance) % comm._size
        sent = [Data(x, "x", reads=True, writes=False) for operation, x, _, _, peer, _ in kept if (operation, peer) == (SEND, to)]
        received = [Data(out, "out", reads=False, writes=True) for operation, _, out, _, peer, _ in kept if (operation, peer) == (RECV, source)]
        for src, dst in zip_longest(sent, received):
            type = "" if src and dst and src.type_name != dst.type_name else type_name(src, dst)
            try:
                message(comm._handle(), src, to if src else -1, dst, source if dst else -1, type)
            except _core.InvalidArgumentError as error:
                refused = refused or error
            else:
                if dst:
                    dst.finish()
    return refused
