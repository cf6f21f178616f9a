"""What the operations of `Communicator` share: checks of arguments, and the calls of its transport."""

from typing import Any

from . import _core
from ._communicator_data import Data, address_of, reduction, same_dtype, type_name


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


class Checks:
    """The part of `Communicator` that its operations are made of."""

    _comm: Any
    _rank: int
    _size: int

    def _handle(self) -> Any:
        if self._comm is None:
            raise _core.InvalidArgumentError("Communicator is closed")
        return self._comm

    def _move(self, operation: str, dst: "Data | None", src: "Data | None", nbytes: int, root: int = 0) -> None:
        collective(self._handle(), operation, dst, src, nbytes, -1, 0, root, type_name(dst, src))
        if dst is not None:
            dst.finish()

    def _combine(self, operation: str, dst: "Data | None", src: Data, count: int, op: str, root: int = 0) -> None:
        kind, combines = reduction(src.dtype, op)
        collective(self._handle(), operation, dst, src, count, kind, combines, root, src.type_name)
        if dst is not None:
            dst.finish()

    def _pair(self, x: Any, out: Any, x_times: int, out_times: int) -> "tuple[Data, Data]":
        """Source and destination; the ratio of their sizes is fixed."""
        self._handle()
        src = Data(x, "x", reads=True, writes=out is x)
        dst = src if out is x else Data(out, "out", reads=False, writes=True)
        same_dtype(dst, src)
        expected, rest = divmod(src.size * out_times, x_times)
        if rest:
            raise _core.InvalidArgumentError(f"x has {src.size} elements, expected a multiple of {x_times}, the number of ranks")
        if dst.size != expected:
            ranks = "" if x_times == out_times else f": there are {self._size} ranks"
            raise _core.InvalidArgumentError(f"x has {src.size} elements and out has {dst.size}, expected {expected}{ranks}")
        return src, dst

    def _is_root(self, root: int) -> bool:
        self._handle()
        if not 0 <= root < self._size:
            raise _core.InvalidArgumentError(f"root is {root}, expected a rank: 0 to {self._size - 1}")
        return root == self._rank

    def _peer(self, name: str, rank: int) -> int:
        if not 0 <= rank < self._size:
            raise _core.InvalidArgumentError(f"{name} is {rank}, expected a rank: 0 to {self._size - 1}")
        return rank
