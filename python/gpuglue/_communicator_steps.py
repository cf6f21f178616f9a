"""The steps that the operations of a `Communicator` share."""

from collections.abc import Callable
from typing import Any

from . import _core
from ._communicator_calls import collective
from ._communicator_data import Data, integer, reduction, same_dtype, type_name
from ._communicator_device import DeviceTransport, warn_staged


class Steps:
    """What the operations do, of a `Communicator`, which has the attributes below."""

    _comm: Any
    _native: "DeviceTransport | None"
    _queued: "Callable[[int, Any, Any, str | None, int, int, Any], bool]"  # whether it took the operation: `not_queued`, or a function of C
    _grouping = False
    _rank: int
    _size: int
    _unwarned = False  # device memory passes through the host because no rank gave a device

    @property
    def transport(self) -> str:
        """How arrays in device memory reach other ranks."""
        raise NotImplementedError

    def _handle(self, *sides: "Data | None") -> Any:
        """The communicator, for an operation on these arrays."""
        if self._comm is None:
            raise _core.InvalidArgumentError("Communicator is closed")
        if self._unwarned and any(data is not None and data.staged for data in sides):
            self._unwarned = False
            warn_staged("host", "no rank gave a device: pass device=")
        return self._comm

    def _move(self, operation: str, dst: "Data | None", src: "Data | None", nbytes: int, root: int = 0) -> None:
        collective(self._handle(dst, src), operation, dst, src, nbytes, -1, 0, root, type_name(dst, src))
        if dst is not None:
            dst.finish()

    def _combine(self, operation: str, dst: "Data | None", src: Data, count: int, op: str, root: int = 0) -> None:
        kind, combines = reduction(src.dtype, op)
        collective(self._handle(dst, src), operation, dst, src, count, kind, combines, root, src.type_name)
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
        return self._peer("root", root) == self._rank

    def _settle(self, stream: Any) -> None:
        """Before an operation on the host: the work of the stream is complete."""
        if stream is not None:
            (stream if isinstance(stream, _core.Stream) else _core.Stream.borrow(stream)).synchronize()

    def _peer(self, name: str, rank: int) -> int:
        rank = integer(rank, name)
        if not 0 <= rank < self._size:
            raise _core.InvalidArgumentError(f"{name} is {rank}, expected a rank: 0 to {self._size - 1}")
        return rank
