"""Arrays that another process of this machine takes: by a handle, through a socket, and what happens if one of them ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import gpuglue as gg
from gpuglue import _core, _offers
from conftest import HANG

RECEIVER = """
import base64, json, os, sys
import numpy as np
import gpuglue as gg
from gpuglue import _offers
def offers():
    for line in sys.stdin:
        offer = json.loads(line)
        yield {name: base64.b64decode(value["bytes"]) if isinstance(value, dict) else value for name, value in offer.items()}
def take(offer, count=1000):
    return _offers.take(offer, (count,), np.dtype("f8"))
"""


def receiver(code):
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen([sys.executable, "-P", "-c", RECEIVER + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": path})


def send(process, offer):
    import base64

    plain = {name: {"bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value for name, value in offer.items()}
    process.stdin.write(json.dumps(plain) + "\n")
    process.stdin.flush()


def until(condition):
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def array(device):
    return gg.arange(1000, dtype="f8", device=device)


@pytest.fixture
def handle(array):
    try:
        return _offers.handle_of(array)
    except gg.UnsupportedError as error:
        pytest.skip(str(error))


TAKE = "[offer] = offers()\nx = take(offer)\nprint(float(x.get().sum()), {way for way, count in _offers.taken.items() if count})\n"


def taken_by_another(offer):
    process = receiver(TAKE)
    send(process, offer)
    return process.communicate(timeout=HANG)[0].strip()


def test_an_array_is_taken_by_its_handle_and_then_released(array, handle):
    offer = _offers.holder.offer(array, handle, receiver=os.getpid())
    assert taken_by_another(offer) == "499500.0 {'handle'}"
    until(lambda: _offers.holder.find(offer["token"]) is None)


def test_pending_work_on_the_array_is_part_of_what_is_taken(array, handle):
    with gg.Stream(array.device):
        gg.fill(array, 2.0)
    offer = _offers.holder.offer(array, _offers.handle_of(array), receiver=os.getpid())
    assert taken_by_another(offer) == "2000.0 {'handle'}"


def test_pending_work_on_the_array_is_waited_for_while_a_stream_is_captured(array, handle, gate):
    stream, captured = gg.Stream(array.device), gg.Stream(array.device)
    gate.hold(stream)
    gg.fill(array, 2.0, stream=stream)
    with gg.capture(captured):
        gate.open_later()
        _offers.handle_of(array)
        done = not _core._is_pending(array)
    assert done and array.get().tolist() == [2.0] * 1000


def test_a_receiver_that_cannot_open_the_handle_gets_the_elements_through_a_socket(array):
    offer = _offers.holder.offer(array, b"", receiver=os.getpid())
    assert taken_by_another(offer) == "499500.0 {'socket'}"
    until(lambda: _offers.holder.find(offer["token"]) is None)


def test_an_offer_without_a_receiver_is_taken_several_times(array, handle):
    offer = _offers.holder.offer(array, handle)
    assert taken_by_another(offer) == taken_by_another(offer) == "499500.0 {'handle'}"
    assert _offers.take(offer, (1000,), np.dtype("f8")).get().sum() == 499500.0  # of this process itself
    assert _offers.holder.find(offer["token"]) is array
    _offers.holder.drop(offer["token"])
    with pytest.raises(ConnectionError, match="holds the array no longer"):
        _offers.take(offer, (1000,), np.dtype("f8"))


def test_the_array_is_released_when_its_receiver_has_ended_before_it_came(array):
    process = receiver("sys.stdin.read()")
    offer = _offers.holder.offer(array, b"", receiver=process.pid)
    assert _offers.holder.find(offer["token"]) is array
    process.kill()
    process.wait()
    until(lambda: _offers.holder.find(offer["token"]) is None)


def test_the_array_is_released_when_its_receiver_is_killed_while_it_takes(array):
    code = """
[offer] = offers()
import socket
connection = socket.socket(socket.AF_UNIX)
connection.connect(offer["socket"])
connection.sendall(offer["token"])
assert connection.recv(1) == b"Y"
print("connected", flush=True)
os.kill(os.getpid(), 9)
"""
    process = receiver(code)
    offer = _offers.holder.offer(array, b"", receiver=process.pid)
    send(process, offer)
    process.stdin.close()
    assert process.stdout.readline() == "connected\n"
    until(lambda: _offers.holder.find(offer["token"]) is None)
    assert process.wait() == -signal.SIGKILL


def test_the_array_is_released_when_its_receiver_has_no_memory_for_it(array, monkeypatch):
    monkeypatch.setattr(_offers, "HOLD_SECONDS", 2 * HANG)
    code = """
try:
    take(next(offers()), 1 << 50)
except gg.OutOfMemoryError:
    print("out of memory", flush=True)
sys.stdin.read()
"""
    process = receiver(code)
    offer = _offers.holder.offer(array, b"", receiver=process.pid)
    send(process, offer)
    assert process.stdout.readline() == "out of memory\n"
    until(lambda: _offers.holder.find(offer["token"]) is None)
    assert process.poll() is None
    process.communicate(timeout=HANG)


def test_the_array_is_released_when_its_receiver_has_stopped_waiting_before_the_answer(array, monkeypatch):
    left, same_user = threading.Event(), _offers._same_user
    monkeypatch.setattr(_offers, "_same_user", lambda connection: left.wait(HANG) and same_user(connection))
    offer = _offers.holder.offer(array, b"", receiver=os.getpid())
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(offer["socket"])
        connection.sendall(offer["token"])
    left.set()
    until(lambda: _offers.holder.find(offer["token"]) is None)


def test_a_receiver_does_not_wait_for_ever_for_a_sender_that_has_stopped(array, monkeypatch):
    monkeypatch.setattr(_offers, "ANSWER_SECONDS", 0.1)
    offer = _offers.holder.offer(array, b"")
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(b"")
        stopped.listen(1)
        with pytest.raises(ConnectionError, match="did not answer within 0.1 s"):
            _offers.take({**offer, "process": os.getppid(), "socket": stopped.getsockname()}, (1000,), np.dtype("f8"))
    _offers.holder.drop(offer["token"])


def test_a_receiver_that_never_comes_does_not_keep_the_array(array, monkeypatch):
    monkeypatch.setattr(_offers, "HOLD_SECONDS", 0.0)
    offer = _offers.holder.offer(array, b"", receiver=os.getpid())
    until(lambda: _offers.holder.find(offer["token"]) is None)


def test_a_receiver_waits_while_the_queue_of_the_sender_is_full(array, monkeypatch):
    offer = _offers.holder.offer(array, b"", receiver=os.getpid())
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(b"")
        listener.listen(0)
        waiting = socket.socket(socket.AF_UNIX)
        waiting.connect(listener.getsockname())

        def answer():
            waiting.close()
            for connection in (listener.accept()[0], listener.accept()[0]):
                _offers.holder._answer(connection)

        thread = threading.Thread(target=answer)
        monkeypatch.setattr(time, "sleep", lambda seconds: monkeypatch.undo() or thread.start())
        array = _offers.take({**offer, "process": os.getppid(), "socket": listener.getsockname()}, (1000,), np.dtype("f8"))
        thread.join(HANG)
    assert array.get().sum() == 499500.0 and _offers.holder.find(offer["token"]) is None


def test_a_sender_does_not_wait_for_ever_for_a_receiver_that_has_stopped(array, monkeypatch):
    monkeypatch.setattr(_offers, "HOLD_SECONDS", 0.5)
    offer = _offers.holder.offer(array, b"")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(HANG)
        connection.connect(offer["socket"])
        connection.sendall(offer["token"])
        assert connection.recv(1) == b"Y"
        assert connection.recv(1) == b""  # closed
    _offers.holder.drop(offer["token"])


def test_an_array_is_released_after_its_connection_is_closed(array, monkeypatch):
    """So a receiver that still copies gets an error: the memory may have other elements then."""
    drop, after = _offers.holder.drop, []
    offer = _offers.holder.offer(array, b"", receiver=os.getpid())
    here, there = socket.socketpair()
    monkeypatch.setattr(_offers.holder, "drop", lambda token: after.append(here.fileno()) or drop(token))
    with there:
        there.sendall(offer["token"])
        there.shutdown(socket.SHUT_WR)
        _offers.holder._answer(here)
    assert after == [-1]


def other_user(monkeypatch):
    """The processes that connect belong to another user than this one, as far as this process can tell."""
    user = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)


def test_an_array_is_not_sent_to_another_user(array, monkeypatch):
    offer = _offers.holder.offer(array, b"")
    other_user(monkeypatch)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(HANG)
        connection.connect(offer["socket"])
        try:
            connection.sendall(offer["token"])
            assert connection.recv(1) == b""
        except (BrokenPipeError, ConnectionResetError):
            pass  # it had been closed before
    assert _offers.holder.find(offer["token"]) is array
    _offers.holder.drop(offer["token"])


def test_nothing_is_taken_from_another_user(array, monkeypatch):
    offer = _offers.holder.offer(array, b"")
    with monkeypatch.context() as patch:
        other_user(patch)
        with pytest.raises(ConnectionError, match="belongs to another user"):
            _offers.take({**offer, "process": os.getppid()}, (1000,), np.dtype("f8"))
    _offers.holder.drop(offer["token"])


def test_a_token_that_is_wrong_gets_nothing(array):
    offer = _offers.holder.offer(array, b"")
    with pytest.raises(ConnectionError, match="holds the array no longer"):
        _offers.take({**offer, "process": os.getppid(), "token": bytes(16)}, (1000,), np.dtype("f8"))
    assert _offers.holder.find(offer["token"]) is array
    _offers.holder.drop(offer["token"])


def test_a_receiver_learns_that_the_sender_has_ended(device):
    code = """
array = gg.arange(1000, dtype="f8")
offer = _offers.holder.offer(array, b"")
print(offer["socket"].hex(), offer["token"].hex(), flush=True)
os.kill(os.getpid(), 9)
"""
    process = receiver(code)
    name, token = map(bytes.fromhex, process.communicate(timeout=HANG)[0].split())
    offer = {**_offers.place(), "process": process.pid, "socket": name, "token": token, "handle": b""}
    with pytest.raises(ConnectionError, match=f"process {process.pid}.*cannot be reached"):
        _offers.take(offer, (1000,), np.dtype("f8"))
