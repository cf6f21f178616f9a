"""Arrays that other processes of this machine take from this one: by IPC handles, or through a socket where they cannot.

An offer is a dict of plain values. The array stays in memory until the receiver has taken it, has ended, or never came.
"""

import logging
import os
import socket
import struct
import threading
import time
from typing import Any

from . import _core

# backend: the variables that restrict its devices; the first that is set counts
VISIBLE = {"cuda": ("CUDA_VISIBLE_DEVICES",), "hip": ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"), "ze": ("ZE_AFFINITY_MASK",)}

HOLD_SECONDS = 120.0  # for an offer whose receiver exists, but does not come
ANSWER_SECONDS = 30.0  # for a sender that exists, but does not answer
_CHECK_SECONDS = 1.0  # between two checks whether receivers exist
_PART = 4 << 20  # bytes of one read or write of a socket
_TOKEN = 16

taken = {"here": 0, "handle": 0, "socket": 0}  # how many arrays came in which way
_logged: "set[str]" = set()
_log = logging.getLogger("gpuglue")


def place() -> "dict[str, Any]":
    """What another process needs to know of this one; it can be reached from where `machine` is the same."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    spaces = "/".join(os.readlink(f"/proc/self/ns/{name}") for name in ("net", "pid"))
    return {"machine": f"{boot}/{spaces}/{os.geteuid()}", "process": os.getpid()}


class Holder:
    """The arrays that this process offers, and the thread that answers those who take them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: "dict[bytes, tuple[Any, int | None, float]]" = {}  # array, process of the receiver, time
        self._name, self._process = b"", 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._held)

    def offer(self, array: Any, handle: bytes = b"", receiver: "int | None" = None) -> "dict[str, Any]":
        """An offer of a C-contiguous array, which a process of this machine takes. Without a receiver it is held until `drop`."""
        token = os.urandom(_TOKEN)
        with self._lock:
            self._start()
            self._held[token] = (array, receiver, time.monotonic())
        return {**place(), "socket": self._name, "token": token, "handle": handle}

    def drop(self, token: bytes) -> None:
        with self._lock:
            held = self._held.pop(token, None)
        del held  # the memory is released outside the lock

    def find(self, token: bytes) -> Any:
        """The array, or None."""
        with self._lock:
            return self._held.get(token, (None,))[0]

    def _start(self) -> None:
        if self._process == os.getpid():
            return
        self._held.clear()  # in a forked child: the parent's
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(b"")  # the kernel chooses a name
        listener.listen(4096)  # or what the system allows
        listener.settimeout(_CHECK_SECONDS)
        self._name, self._process = listener.getsockname(), os.getpid()
        threading.Thread(target=self._serve, args=(listener,), name="gpuglue-offers", daemon=True).start()

    def _serve(self, listener: socket.socket) -> None:
        check = 0.0
        while True:
            if time.monotonic() > check:
                check = time.monotonic() + _CHECK_SECONDS
                self._drop_abandoned()
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:  # too many open files
                time.sleep(_CHECK_SECONDS)
                continue
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _drop_abandoned(self) -> None:
        now = time.monotonic()
        with self._lock:
            waiting = [(token, receiver, since) for token, (_, receiver, since) in self._held.items() if receiver is not None]
        for token, receiver, since in waiting:
            if not _exists(receiver):
                self.drop(token)
            elif now - since > HOLD_SECONDS:
                warn(f"process {receiver} did not take an array of this process within {HOLD_SECONDS:.0f} s: its memory is released")
                self.drop(token)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(HOLD_SECONDS)
        try:
            self._give(connection)
        except (OSError, EOFError, _core.Error) as error:  # the receiver has ended or stopped, or the device has failed
            _log.debug("an array was not taken: %s", error)

    def _give(self, connection: socket.socket) -> None:
        token, receiver = b"", None
        try:
            with connection:  # closed before the array is released: a receiver that still copies then gets an error
                if not _same_user(connection):
                    return
                token = _read(connection, _TOKEN)
                with self._lock:
                    array, receiver, _ = self._held.get(token, (None, None, 0.0))
                connection.sendall(b"Y" if array is not None else b"N")
                if array is not None and _read(connection, 1) == b"C":
                    _send_elements(connection, array)
                    _read(connection, 1)
        finally:
            if receiver is not None:
                self.drop(token)


holder = Holder()


def handle_of(array: Any) -> bytes:
    """The IPC handle of a C-contiguous array, whose pending work is complete.

    Raises UnsupportedError or InvalidArgumentError if its memory has none."""
    _core._wait(array)
    return bytes(_core.Buffer.from_ptr(array.ptr, array.nbytes, device=array.device, owner=array).ipc_handle())


def take(offer: "dict[str, Any]", shape: "tuple[int, ...]", dtype: Any) -> Any:
    """A new array on the current device, with the elements of an offer.

    Raises ConnectionError if the process that offered them has ended, does not answer, or holds them no longer."""
    if offer["process"] == os.getpid() and offer["machine"] == place()["machine"]:
        return _take_here(offer)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_SECONDS)
        try:
            _connect(connection, offer["socket"])
        except OSError as error:
            raise ConnectionError(f"process {offer['process']}, which has the array, cannot be reached: {error}") from error
        if not _same_user(connection):
            raise ConnectionError(f"process {offer['process']}, which has the array, belongs to another user")
        try:
            connection.sendall(offer["token"])
            if _read(connection, 1) != b"Y":
                raise ConnectionError(f"process {offer['process']} holds the array no longer")
            array = _core.empty(shape, dtype)  # after the connection: if it fails, the sender learns that, and keeps its array no longer
            _take_from(connection, offer, array)
            return array
        except EOFError:
            raise ConnectionError(f"process {offer['process']} ended before the array was taken") from None
        except TimeoutError:
            raise ConnectionError(f"process {offer['process']}, which has the array, did not answer within {ANSWER_SECONDS:g} s") from None


def _connect(connection: socket.socket, name: bytes) -> None:
    end = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return connection.connect(name)
        except BlockingIOError:  # the sender's queue is full
            if time.monotonic() > end:
                raise
        time.sleep(0.01)


def _take_here(offer: "dict[str, Any]") -> Any:
    array = holder.find(offer["token"])
    if array is None:
        raise ConnectionError("this process holds the array no longer")
    taken["here"] += 1
    return array.copy()


def _take_from(connection: socket.socket, offer: "dict[str, Any]", array: Any) -> None:
    try:
        _copy_from_handle(offer["handle"], array)
        taken["handle"] += 1
    except _core.Error as error:
        warn(f"arrays of process {offer['process']} come through host memory, since {error}")
        connection.sendall(b"C")
        _receive_elements(connection, array)
        taken["socket"] += 1
    connection.sendall(b"D")


def _copy_from_handle(handle: bytes, array: Any) -> None:
    if not handle:
        raise _core.UnsupportedError("their memory has no handles for other processes")
    with _core.IpcHandle(handle).open() as memory:
        stream = _core.Stream(array.device)
        _core.copy(array, memory, stream=stream)
        stream.synchronize()


def warn(text: str) -> None:
    """Log a text once."""
    if text not in _logged:
        _logged.add(text)
        _log.warning("%s", text)


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        pass
    return True


def _same_user(connection: socket.socket) -> bool:
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return user == os.geteuid()


def _read(connection: socket.socket, nbytes: int) -> bytes:
    data = b""
    while len(data) < nbytes:
        part = connection.recv(nbytes - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def _send_elements(connection: socket.socket, array: Any) -> None:
    view = memoryview(array.get().reshape(-1).view("u1"))
    for at in range(0, len(view), _PART):
        connection.sendall(view[at : at + _PART])


def _receive_elements(connection: socket.socket, array: Any) -> None:
    host: Any = _core.empty_pinned(array.shape, array.dtype, device=array.device)
    view, at = memoryview(host.reshape(-1).view("u1")), 0
    while at < len(view):
        count = connection.recv_into(view[at : at + _PART])
        if not count:
            raise EOFError
        at += count
    array.set(host)
