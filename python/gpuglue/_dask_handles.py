"""Dask: arrays that the workers of one machine take from each other by IPC handles, rather than through connections."""

import asyncio
import functools
from typing import Any

from . import _core, _offers

NBYTES = 256 << 10  # smaller arrays are sent sooner than a handle is opened
_HEADER = 1 << 20  # bytes that the header of an offer has at most; larger frames have elements


def extend_handshake(connection: Any) -> None:
    """Add to the handshake of `connection`, Dask's class, where this process is, if it deserialises arrays."""
    original = getattr(connection, "handshake_info", None)
    if original is None:
        _offers.warn("this version of distributed has no Comm.handshake_info: arrays are sent through connections")
        return
    if hasattr(original, "gpuglue"):
        return

    @functools.wraps(original)
    def handshake_info(self: Any) -> Any:
        info = original(self)
        return {**info, "gpuglue": _offers.place()} if getattr(self, "deserialize", False) else info

    handshake_info.gpuglue = True  # type: ignore[attr-defined]
    connection.handshake_info = handshake_info


def extend_reads(tcp: Any, loads: Any) -> None:
    """Let `distributed.comm.tcp` deserialise messages with offers on another thread: the event loop does not wait for the senders.

    `loads` is that of `distributed.protocol`."""
    original = getattr(tcp, "from_frames", None)
    if original is None:
        _offers.warn("this version of distributed has no comm.tcp.from_frames: the event loop of a worker waits for arrays that it takes")
        return
    if hasattr(original, "gpuglue"):
        return

    @functools.wraps(original)
    async def from_frames(frames: Any, deserialize: bool = True, deserializers: Any = None, allow_offload: bool = True) -> Any:
        if deserialize and allow_offload and any(map(_has_offer, frames)):
            return await asyncio.to_thread(loads, frames, deserialize=True, deserializers=deserializers)
        return await original(frames, deserialize=deserialize, deserializers=deserializers, allow_offload=allow_offload)

    from_frames.gpuglue = True  # type: ignore[attr-defined]
    tcp.from_frames = from_frames


def _has_offer(frame: Any) -> bool:
    data = bytes(frame) if memoryview(frame).nbytes <= _HEADER else b""
    return b"gpuglue.GPUArray" in data and b"offer" in data


def offer(array: Any, context: Any) -> "dict[str, Any] | None":
    """An offer of a C-contiguous array, if the recipient of a connection can take it."""
    recipient = ((context or {}).get("recipient") or {}).get("gpuglue")
    here = _offers.place()
    if array.nbytes < NBYTES or not recipient or recipient["machine"] != here["machine"] or recipient["process"] == here["process"]:
        return None
    try:
        handle = _offers.handle_of(array)
    except _core.Error as error:
        _offers.warn(f"arrays are sent through connections, since {error}")
        return None
    return _offers.holder.offer(array, handle, recipient["process"])
