"""Dask: messages with arrays are received into page-locked memory, from which the device copies without another copy."""

import functools
import weakref
from typing import Any

from . import _core, _offers

NBYTES = 256 << 10
# Larger messages pass through pageable memory. The pools of pinned memory keep less than a few of them need, and new memory takes
# several times longer to page-lock than the device needs to copy it from pageable memory.
LARGEST = 64 << 20
_HEAD = 64 << 10  # bytes of a message that have Dask's header
_PART = 1 << 30  # bytes of one read
_NAME = b"gpuglue.GPUArray"  # in that header, which precedes the elements

_announced: Any = weakref.WeakSet()  # streams of which the present message has arrays


def extend_reads(tcp: Any) -> None:
    """Let `distributed.comm.tcp` receive into pinned memory what belongs to a message with arrays."""
    if not all(hasattr(tcp, name) for name in ("TCP", "read_bytes_rw", "host_array")):
        _offers.warn("this version of distributed has no read_bytes_rw: arrays are received in pageable memory")
    elif not hasattr(tcp.read_bytes_rw, "gpuglue"):
        tcp.TCP.read = _starting(tcp.TCP.read)
        tcp.read_bytes_rw = _reading(tcp.read_bytes_rw, tcp.host_array)


def _starting(original: Any) -> Any:
    @functools.wraps(original)
    async def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.stream is not None:  # after a close
            _announced.discard(self.stream)
        return await original(self, *args, **kwargs)

    return read


def _reading(original: Any, host_array: Any) -> Any:
    @functools.wraps(original)
    async def read_bytes_rw(stream: Any, n: int) -> memoryview:
        if n < NBYTES:
            small: memoryview = await original(stream, n)
            _announce(stream, small)
            return small
        head = memoryview(bytearray(_HEAD))
        await stream.read_into(head)
        _announce(stream, head)
        data: memoryview = _pinned(n, host_array) if n <= LARGEST and stream in _announced else host_array(n)
        data[:_HEAD] = head
        for at in range(_HEAD, n, _PART):
            await stream.read_into(data[at : at + _PART])
        return data

    read_bytes_rw.gpuglue = True  # type: ignore[attr-defined]
    return read_bytes_rw


def _announce(stream: Any, part: memoryview) -> None:
    if stream not in _announced and _NAME in bytes(part):
        _announced.add(stream)


def _pinned(nbytes: int, host_array: Any) -> Any:
    try:
        memory: Any = _core.empty_pinned(nbytes, "u1")
    except _core.Error as error:
        _offers.warn(f"arrays are received in pageable memory, since {error}")
        return host_array(nbytes)
    return memoryview(memory)
