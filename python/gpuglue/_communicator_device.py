"""The operations of a `Communicator` on arrays in device memory, where the transport has a library for them."""

import socket
import sys
import warnings
from typing import Any

import numpy as np

from . import _core
from ._communicator_data import TYPES, reduction, wrapped

# gg_comm_operation
BROADCAST, ALL_GATHER, GATHER, SCATTER, ALL_TO_ALL, ALL_REDUCE, REDUCE, REDUCE_SCATTER, SEND, RECV, SEND_RECV = range(11)

_DEVICE_TYPES = {**TYPES, "float8_e4m3fn": 14, "float8_e5m2": 15}


def _kind(dtype: Any, op: str) -> int:
    """The numbers of both in C: 16 * type + reduction."""
    type, combines = reduction(dtype, op, _DEVICE_TYPES)
    return 16 * type + combines


def check_transport(transport: Any, *more: str) -> None:
    """Raise an error unless it is a transport."""
    names = ("auto", "nccl", "rccl", "host", "staged", *more)
    if transport == "oneccl":
        raise _core.UnsupportedError(
            "the transport 'oneccl' cannot be used: oneCCL queues its operations on SYCL queues only, and cannot end those that a failed rank "
            "leaves unfinished; use 'staged'"
        )
    if transport not in names:
        raise _core.InvalidArgumentError(f"transport is {transport!r}, expected one of {', '.join(map(repr, names))}")


def warn_staged(name: str, reason: str) -> None:
    """A warning at the line that called this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("gpuglue."):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"the ranks exchange device memory through the host (transport '{name}'): {reason}", RuntimeWarning, stacklevel=level)


def not_queued(operation: int, x: Any, out: Any, op: "str | None", root: int, source: int, stream: Any) -> bool:
    """Of a communicator that is closed, or whose transport is MPI."""
    return False


class DeviceTransport:
    """What a communicator knows of the library of its transport."""

    def __init__(self, comm: Any, found: "tuple[str, str, str, int]", device: Any):
        self.comm = comm
        self.name, self.reason, self.path, self.version = found
        self.device = device
        self.native = bool(self.path)

    def warn(self) -> None:
        if self.reason:
            warn_staged(self.name, self.reason)

    def queue(self, operation: int, x: Any, out: Any, op: "str | None", root: int, source: int, stream: Any) -> bool:
        """Queue an operation that `_core._comm_queue` did not take as it was given; False if the arrays are in host memory."""
        x_ = wrapped(x)
        out_ = x_ if out is x else wrapped(out)
        if op is None and x_ is x and out_ is out:
            self._check_host(x, out)
            return False
        kind = None if op is None else _kind(x_.dtype, op) if isinstance(x_, _core.GPUArray) else 0
        if _core._comm_queue(self.comm, operation, x_, out_, kind, root, source, stream):
            return True
        self._check_host(x_, out_)
        return False

    @staticmethod
    def _check_host(x: Any, out: Any) -> None:
        given = [array for array in (x, out) if array is not None]
        if len({_is_device_array(array) for array in given}) > 1:
            raise _core.InvalidArgumentError("x and out must both be in device memory, or both in host memory")


def _is_device_array(array: Any) -> bool:
    return isinstance(array, _core.GPUArray) and _core.pointer_info(array.ptr).kind not in ("host", "pinned")


def own_address(other: str) -> str:
    """The address of this machine by which it reaches another, as that one reaches it; no packet is sent."""
    family, kind, _, _, place = socket.getaddrinfo(other, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(place)
        return probe.getsockname()[0]


class ReservedPort:
    """A port that no other process gets while this exists; rank 0 can listen on it, since it sets SO_REUSEADDR too."""

    def __init__(self, host: str):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._holder = socket.socket(family)
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._holder.bind((host, 0))
        self.number = self._holder.getsockname()[1]

    def close(self) -> None:
        self._holder.close()
