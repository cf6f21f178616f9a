"""How the ranks of a communicator exchange data by MPI, when they are on several machines.

Before each operation every rank sends a description of its call to all others. Small data travels with it.
Only messages between two ranks are used, never MPI's collective operations: a wait then knows which ranks it waits for, ends with
its timeout, and can be interrupted. Reductions are computed here, in the order of the ranks, as the host transport does.
"""

import ctypes
import importlib
import os
import struct
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _core
from ._communicator_data import REDUCTIONS, TYPES
from ._mpi_reduce import combine

_HEAD, _DATA, _OFFER, _ANSWER, _MESSAGE, _NOTICE = range(6)  # what a message is; the tag
_TAGS = 6
_CALL = struct.Struct("16s24siiiQ")
_CLOSED, _ABORTED, _LATE, _ASK, _HERE, _LEAVES = range(6)
_REASONS = {_CLOSED: "closed the communicator, which the others still use", _ABORTED: "aborted the communicator",
            _LATE: "did not take part within the timeout"}  # fmt: skip
_PIECE = 16 << 20  # bytes of a reduction that are in flight
_MOST = 1 << 30  # bytes of one message of MPI, whose counts may be of 31 bits
_SMALL = 32768  # bytes up to which each rank sends all it has to each other, and of what travels with the description of a call
_GRACE = 2.0  # seconds in which a rank that waits answers another
_SPINS = 300

_dtypes = {number: name for name, number in TYPES.items()}
_operators = {number: name for name, number in REDUCTIONS.items()}
_left: "list[Any]" = []  # requests of failed communicators, and their memory: MPI may still use it
_closing: "list[MpiTransport]" = []  # closed by this rank: the notices of the others are still received, since MPI would keep them

Step = Iterator["list[tuple[Any, int]]"]


def _bytes(data: Any) -> Any:
    """The memory of an array as bytes."""
    if data is None or not data.nbytes:
        return np.empty(0, "u1")
    return np.frombuffer((ctypes.c_ubyte * data.nbytes).from_address(data.address), "u1")


class MpiTransport:
    """One rank of `members`, which are ranks of `comm`, a communicator of mpi4py which only gpuglue uses.

    Each receives messages of this transport by tags of its own, of which tags[rank] is the first."""

    name, native, split = "mpi", False, True  # as `DeviceTransport` has

    def __init__(self, comm: Any, members: Any, tags: "list[int]", timeout: "float | None"):
        self.mpi = importlib.import_module("mpi4py.MPI")
        self.comm, self.members, self.tags, self.timeout = comm, list(members), tags, timeout
        self.own: Any = None  # what has counted the tags
        self.rank, self.size = self.members.index(comm.Get_rank()), len(self.members)
        self.call, self.busy, self.abort_requested = "", False, False
        self.failure: "tuple[int, list[int]] | None" = None
        self.closed: "set[int]" = set()
        self.answered: "set[int]" = set()  # by what the other ranks reply to _ASK
        self.note = struct.Struct(f"i{(self.size + 7) // 8}s")  # kind, ranks
        self.keep: "tuple[Any, ...]" = ()  # memory of the operation
        self.carried = _SMALL // self.size & -16  # bytes of a rank that travel with its call, at most
        self.calls = np.zeros((self.size, _CALL.size + self.carried), "u1")  # of each rank

    # ---- messages of MPI

    def _send(self, data: Any, to: int, kind: int) -> "list[tuple[Any, int]]":
        place = self.members[to], self.tags[to] + kind
        return [(self.comm.Isend([data[at : at + _MOST], self.mpi.BYTE], *place), to) for at in range(0, len(data), _MOST)]

    def _receive(self, data: Any, source: int, kind: int) -> "list[tuple[Any, int]]":
        place = self.members[source], self.tags[self.rank] + kind
        return [(self.comm.Irecv([data[at : at + _MOST], self.mpi.BYTE], *place), source) for at in range(0, len(data), _MOST)]

    def _others(self) -> "list[int]":
        """The next rank first, so that not all send to the same one."""
        return [(self.rank + step) % self.size for step in range(1, self.size)]

    # ---- notices, which any wait reads

    def _notify(self, kind: int, ranks: Any = (), to: "list[int] | None" = None) -> None:
        bits = sum(1 << rank for rank in ranks).to_bytes((self.size + 7) // 8, "little")
        note = np.frombuffer(self.note.pack(kind, bits), "u1").copy()
        for rank in self._others() if to is None else to:
            _left.append((self.comm.Isend([note, self.mpi.BYTE], self.members[rank], self.tags[rank] + _NOTICE), note))
        _left[:] = [entry for entry in _left if not (len(entry) == 2 and entry[0].Test())]

    def _listen(self) -> None:
        status, note = self.mpi.Status(), np.empty(self.note.size, "u1")
        while message := self.comm.Improbe(self.mpi.ANY_SOURCE, self.tags[self.rank] + _NOTICE, status):
            message.Recv([note, self.mpi.BYTE])
            kind, bits = self.note.unpack(note.tobytes())
            self._hear(self.members.index(status.Get_source()), kind, int.from_bytes(bits, "little"))
        if self.abort_requested:
            self._fail(_ABORTED, [self.rank])

    def _hear(self, source: int, kind: int, bits: int) -> None:
        if kind == _LEAVES:
            self.closed.add(source)
        elif kind == _ASK:
            self._notify(_HERE, to=[source])
        elif kind == _HERE:
            self.answered.add(source)
        elif self.failure is None:
            self.failure = kind, [rank for rank in range(self.size) if bits >> rank & 1]

    def _fail(self, kind: int, ranks: "list[int]") -> None:
        """The first failure counts; the others learn it."""
        if self.failure is None:
            self.failure = kind, ranks
            self._notify(kind, ranks)

    def _check(self) -> None:
        if self.failure is None:
            return
        kind, ranks = self.failure
        names = ", ".join(map(str, ranks[:-1])) + (" and " if ranks[:-1] else "") + str(ranks[-1])
        this = " (this rank)" if self.rank in ranks else ""
        error: Any = _core.CommunicatorError(
            f"{self.call}: rank{'s' * (len(ranks) > 1)} {names}{this} {_REASONS[kind]}; close this communicator, and create a new one from the remaining ranks"
        )
        error.ranks = tuple(ranks)
        raise error

    # ---- waits

    def _drive(self, *steps: Step) -> None:
        """Run steps that yield the requests which they wait for, side by side. What one of them raises is raised in the end."""
        active: "list[tuple[Step, list[tuple[Any, int]]]]" = [(step, []) for step in steps]
        errors: "list[Exception]" = []
        until, spins = self._until(), 0
        try:
            while active:
                spins += 1
                if self._advance(active, errors):
                    spins, until = 0, self._until()
                elif spins % 20 == 0:
                    self._pause([request for _, requests in active for request in requests], until, spins)
        except BaseException as error:
            self._leave(active)
            if isinstance(error, self.mpi.Exception):
                raise _core.CommunicatorError(f"{self.call}: the MPI library failed: {error}") from error
            if not isinstance(error, Exception):  # Ctrl-C
                self._fail(_ABORTED, [self.rank])
            raise
        if errors:
            raise errors[0]

    @staticmethod
    def _advance(active: "list[tuple[Step, list[tuple[Any, int]]]]", errors: "list[Exception]") -> bool:
        """Whether a step had all that it waited for; those that have ended leave the list."""
        moved = False
        for at in reversed(range(len(active))):
            step, requests = active[at]
            requests = [request for request in requests if not request[0].Test()]
            moved = moved or not requests
            try:
                active[at] = step, requests or next(step)
            except StopIteration:
                del active[at]
            except _core.InvalidArgumentError as error:
                errors.append(error)
                del active[at]
        return moved

    def _until(self) -> float:
        return float("inf") if self.timeout is None else time.monotonic() + self.timeout

    def _pause(self, waiting: "list[tuple[Any, int]]", until: float, spins: int) -> None:
        self._listen()
        self._find_lost(waiting, time.monotonic() > until)
        self._check()
        time.sleep(0 if spins < _SPINS else min(spins * 1e-6, 1e-3))

    def _find_lost(self, waiting: "list[tuple[Any, int]]", late: bool) -> None:
        missing = sorted({rank for request, rank in waiting if rank in self.closed and not request.Test()})
        if missing:
            self._fail(_CLOSED, missing)
        if late and self.failure is None:
            missing = sorted({rank for _, rank in waiting})
            here = self._ask(missing)
            self._fail(_LATE, [rank for rank in missing if rank not in here] or missing)

    def _ask(self, ranks: "list[int]") -> "set[int]":
        """Those of the ranks that wait too, for a third one."""
        self.answered = set()
        self._notify(_ASK, to=ranks)
        end = time.monotonic() + _GRACE
        while time.monotonic() < end and len(self.answered) < len(ranks) and self.failure is None:
            self._listen()
            time.sleep(1e-3)
        return self.answered

    def _leave(self, active: "list[tuple[Step, list[tuple[Any, int]]]]") -> None:
        """Requests remain, with the memory that MPI may still use."""
        _left.append((active, self.keep, None))

    # ---- around each operation

    def _enter(self, call: str, *keep: Any) -> None:
        if self.busy:
            raise _core.InvalidArgumentError(f"{call}: another thread is in an operation of this communicator; call one at a time")
        self.call, self.keep, self.busy = call, keep, True

    def collective(self, operation: str, dst: Any, src: Any, count: int, kind: int, combines: int, root: int, type: str) -> None:
        """As `_core._comm_collective`."""
        self._enter(operation, dst, src)
        try:
            self._listen()
            self._check()
            size = 1 if kind < 0 else np.dtype("u2" if _dtypes[kind] == "bfloat16" else _dtypes[kind]).itemsize
            nbytes, into, out = count * size, _bytes(dst), _bytes(src)
            self._check_overlap(dst, src, nbytes, np.may_share_memory(into, out))
            small = 0 < nbytes <= self.carried and operation != "barrier"
            self._agree(operation, type, kind, combines, root, nbytes, carries=self._blocks(operation, out, nbytes, root) if small else None)
            if small:
                self._deliver(operation, into, self.calls[:, _CALL.size : _CALL.size + nbytes], root, kind, combines)
            else:
                self._run(operation, into, out, nbytes, root, (kind, combines, size))
        finally:
            self.busy = False

    def message(self, src: Any, to: int, dst: Any, source: int, type: str) -> None:
        """As `_core._comm_message`."""
        self._enter("send" if source < 0 else "recv" if to < 0 else "send_recv", dst, src)
        try:
            self._listen()
            self._check()
            into, out = _bytes(dst), _bytes(src)
            self._check_overlap(dst, src, None, np.may_share_memory(into, out))
            self._exchange(out, to, into, source, type)
        finally:
            self.busy = False

    def exchange(self, call: str, mine: Any) -> Any:
        """What all ranks give, an array of the same type and size each, in the order of the ranks."""
        given = np.empty((self.size, *mine.shape), mine.dtype)
        given[self.rank] = mine
        rows = given.view("u1").reshape(self.size, -1)
        self._enter(call, given)
        try:
            self._listen()
            self._check()
            self._agree(call, "", -1, 0, 0, mine.nbytes)
            self._drive(iter([self._all_to_all([rows[self.rank]] * self.size, rows)]))
        finally:
            self.busy = False
        return given

    def abort(self) -> None:
        self.abort_requested = True
        if not self.busy:
            self._listen()

    def close(self) -> None:
        self._notify(_LEAVES)
        self.keep = ()
        _closing.append(self)
        drop_closed()

    # ---- whether the arguments are right, and the ranks agree

    def _check_overlap(self, dst: Any, src: Any, block: "int | None", shared: bool) -> None:
        """In place is the same address, or this rank's block."""
        if dst is None or src is None or dst is src or not shared:
            return
        mine = self.rank * (block or 0)
        if block is None or src.address not in (dst.address, dst.address + mine) and dst.address != src.address + mine:
            raise _core.InvalidArgumentError(f"{self.call}: the source and the destination overlap; give separate memory, or one that is in place")

    def _agree(self, *call: Any, carries: "list[Any] | None" = None) -> None:
        """All ranks compare the same calls, so all of them find the same difference. Each may carry data for each other."""
        mine = np.frombuffer(_packed(call), "u1")
        out = [mine] * self.size if carries is None else [np.concatenate((mine, block)) for block in carries]
        self.calls[self.rank, : len(out[self.rank])] = out[self.rank]
        self._drive(iter([self._all_to_all(out, self.calls, _HEAD)]))
        if (self.calls[:, : _CALL.size] == mine).all():
            return
        first, rank_of_first = call_of(self.calls[0, : _CALL.size]), 0
        for rank in range(1, self.size):
            other = call_of(self.calls[rank, : _CALL.size])
            if other[0] != first[0] or other[2:] != first[2:] or (other[1] and first[1] and other[1] != first[1]):
                raise _core.InvalidArgumentError(
                    f"{self.call}: the ranks disagree: rank {rank_of_first} calls {_call_text(first)}, rank {rank} calls {_call_text(other)}; "
                    "all ranks must call the same operations in the same order"
                )
            if other[1] and not first[1]:
                first, rank_of_first = other, rank

    # ---- the operations

    def _all_to_all(self, out: Any, into: Any, kind: int = _DATA) -> "list[tuple[Any, int]]":
        """Send out[r] to each other rank r, and receive into[r] from it; None is nothing."""
        received = [request for rank in self._others() if into is not None for request in self._receive(into[rank], rank, kind)]
        return received + [request for rank in self._others() if out is not None for request in self._send(out[rank], rank, kind)]

    def _blocks(self, operation: str, src: Any, nbytes: int, root: int) -> "list[Any]":
        """What this rank has for each."""
        rooted = self.rank == root
        if operation in ("all_to_all", "reduce_scatter") or operation == "scatter" and rooted:
            return list(src.reshape(self.size, nbytes))
        to_all = operation in ("all_reduce", "all_gather") or operation == "broadcast" and rooted
        return [src if to_all or operation in ("reduce", "gather") and rank == root else src[:0] for rank in range(self.size)]

    def _deliver(self, operation: str, dst: Any, blocks: Any, root: int, kind: int, combines: int) -> None:
        """What all ranks have for this one."""
        if operation == "scatter" or operation == "broadcast" and self.rank != root:
            dst[:] = blocks[root]
        elif operation in ("all_gather", "all_to_all") or operation == "gather" and self.rank == root:
            dst.reshape(blocks.shape)[:] = blocks
        elif operation in ("all_reduce", "reduce_scatter") or operation == "reduce" and self.rank == root:
            dst[:] = combine(list(blocks), _dtypes[kind], _operators[combines])

    def _run(self, operation: str, dst: Any, src: Any, nbytes: int, root: int, reduction: "tuple[int, int, int]") -> None:
        if not nbytes or operation == "barrier":
            return
        if operation in ("all_reduce", "reduce", "reduce_scatter"):
            self._reduce(operation, dst, src, nbytes, root, reduction)
        elif operation == "broadcast":
            self._broadcast(src if self.rank == root else dst, root)
        else:
            src = src.copy() if _in_place(dst, src) and operation != "scatter" else src
            out, into = self._blocks(operation, src, nbytes, root), dst.reshape(-1, nbytes) if len(dst) else None
            if operation == "scatter":
                into = [dst if rank == root else dst[:0] for rank in range(self.size)]
            self._drive(iter([self._all_to_all(out, into)]))
            if into is not None:
                into[self.rank][:] = out[self.rank]

    def _broadcast(self, data: Any, root: int) -> None:
        """Large ones in parts: each other rank gets one from the root, and sends it to the rest."""
        others = [rank for rank in range(self.size) if rank != root]
        if len(data) <= _SMALL or len(others) == 1:
            parts = dict.fromkeys(others, data)
        else:
            parts = dict(zip(others, np.array_split(data, len(others))))
        if self.rank == root:
            self._drive(iter([[request for rank in others for request in self._send(parts[rank], rank, _DATA)]]))
            return
        self._drive(iter([self._receive(parts[self.rank], root, _DATA)]))
        if parts[self.rank] is not data:
            rest = [rank for rank in others if rank != self.rank]
            requests = [request for rank in rest for request in self._receive(parts[rank], rank, _DATA)]
            self._drive(iter([requests + [request for rank in rest for request in self._send(parts[self.rank], rank, _DATA)]]))

    def _reduce(self, operation: str, dst: Any, src: Any, nbytes: int, root: int, reduction: "tuple[int, int, int]") -> None:
        """In pieces: each rank combines its share of a piece."""
        kind, combines, itemsize = reduction
        ranks, scattered = self.size, operation == "reduce_scatter"
        blocks = src.reshape(ranks, nbytes) if scattered else None
        step = max(_PIECE // (ranks if scattered else 1) // itemsize, 1) * itemsize
        for at in range(0, nbytes, step):
            end = min(at + step, nbytes)
            if blocks is not None:
                dst[at:end] = self._shared([block[at:end] for block in blocks], kind, combines)
                continue
            parts = np.array_split(np.arange(at, end, itemsize), ranks)
            bounds = [(part[0], part[-1] + itemsize) if len(part) else (end, end) for part in parts]
            own = self._shared([src[low:high] for low, high in bounds], kind, combines)
            if operation == "all_reduce" or self.rank == root:
                dst[slice(*bounds[self.rank])] = own
            self._collect(own, dst, bounds, None if operation == "all_reduce" else root)

    def _shared(self, parts: "list[Any]", kind: int, combines: int) -> Any:
        """What all ranks have for this one, combined."""
        own = parts[self.rank]
        given = np.empty((self.size, len(own)), "u1")
        given[self.rank] = own
        self._drive(iter([self._all_to_all(parts, given)]))
        return combine(list(given), _dtypes[kind], _operators[combines])

    def _collect(self, own: Any, dst: Any, bounds: "list[tuple[int, int]]", root: "int | None") -> None:
        takes = root is None or root == self.rank
        out = [own if root is None or rank == root else own[:0] for rank in range(self.size)]
        self._drive(iter([self._all_to_all(out, [dst[low:high] for low, high in bounds] if takes else None)]))

    # ---- messages between two ranks

    def _exchange(self, src: Any, to: int, dst: Any, source: int, type: str) -> None:
        if self.rank in (to, source):
            if to != source:
                raise _core.InvalidArgumentError(f"{self.call}: a rank exchanges with itself on both sides or on neither")
            if len(src) != len(dst):
                raise _core.InvalidArgumentError(f"{self.call}: this rank sends {len(src)} bytes to itself, but expects {len(dst)}")
            dst[:] = src
            return
        self._drive(*([self._sending(src, to, type)] if to >= 0 else []), *([self._receiving(dst, source, type)] if source >= 0 else []))

    def _sending(self, data: Any, to: int, type: str) -> Step:
        answer, small = np.empty(1, "u1"), len(data) <= _SMALL
        offer = np.frombuffer(_packed(("", type, 0, 0, 0, len(data))) + (data.tobytes() if small else b""), "u1")
        yield self._send(offer, to, _OFFER) + self._receive(answer, to, _ANSWER)
        if not answer[0]:
            raise _core.InvalidArgumentError(
                f"{self.call}: rank {to} expects another size or type than the {len(data)} bytes that this rank sends; nothing was copied"
            )
        if not small:
            yield self._send(data, to, _MESSAGE)

    def _receiving(self, data: Any, source: int, type: str) -> Step:
        offer = np.empty(_CALL.size + _SMALL, "u1")
        yield self._receive(offer, source, _OFFER)
        offered = call_of(offer[: _CALL.size])
        good = offered[5] == len(data) and (not type or not offered[1] or offered[1] == type)
        yield self._send(np.array([good], "u1"), source, _ANSWER)
        if not good:
            what = f"elements of {offered[1]!r}" if offered[5] == len(data) else f"{offered[5]} bytes"
            expected = repr(type) if offered[5] == len(data) else str(len(data))
            raise _core.InvalidArgumentError(f"{self.call}: rank {source} sends {what}, but this rank expects {expected}; nothing was copied")
        if len(data) > _SMALL:
            yield self._receive(data, source, _MESSAGE)
        else:
            data[:] = offer[_CALL.size : _CALL.size + len(data)]


def drop_closed() -> None:
    for closing in list(_closing):
        closing._listen()
        if len(closing.closed) == closing.size - 1:
            _closing.remove(closing)


def _in_place(dst: Any, src: Any) -> bool:
    return len(dst) > 0 and np.may_share_memory(dst, src)


def _packed(call: Any) -> bytes:
    operation, type, *rest = call
    return _CALL.pack(operation.encode(), type.encode(), *rest)


def call_of(packed: Any) -> "tuple[Any, ...]":
    operation, type, *rest = _CALL.unpack(packed.tobytes())
    return operation.rstrip(b"\0").decode(), type.rstrip(b"\0").decode(), *rest


def _call_text(call: "tuple[Any, ...]") -> str:
    operation, type, kind, combines, root, nbytes = call
    combined = f", {_operators[combines]!r} of {_dtypes[kind]}" if kind >= 0 else ""
    at = f", root {root}" if operation in ("broadcast", "gather", "scatter", "reduce") else ""
    return f"{operation} of {nbytes} bytes{f' of {type!r}' if type else ''}{combined}{at}"


def machine() -> str:
    """Equal for processes that can share memory."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()}/{os.readlink('/proc/self/ns/net')}/{os.geteuid()}"
