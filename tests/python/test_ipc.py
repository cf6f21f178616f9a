"""Handles to device memory: the other process is a new Python that receives the handle as a pickle."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gpuglue as gg


PROLOGUE = """
import pickle, sys
import numpy as np, gpuglue as gg
def read(buffer, dtype="u1"):
    there = np.empty(buffer.nbytes // np.dtype(dtype).itemsize, dtype)
    gg.copy(there, buffer)
    return there
handles = pickle.loads(sys.stdin.buffer.read())
"""


def read(buffer, dtype="u1"):
    there = np.empty(buffer.nbytes // np.dtype(dtype).itemsize, dtype)
    gg.copy(there, buffer)
    return there


@pytest.fixture
def buffer(device):
    """A Buffer of 4000 bytes of 7, on a device with handles."""
    made = gg.alloc(4000, device=device)
    gg.fill(made, 7)
    try:
        made.ipc_handle()
    except gg.UnsupportedError:
        pytest.skip(f"{device.name} has no handles for other processes")
    return made


def elsewhere(code, *handles):
    """The output of a new process that runs code with `handles`."""
    done = subprocess.run([sys.executable, "-c", PROLOGUE + textwrap.dedent(code)], input=pickle.dumps(handles),
                          capture_output=True)
    assert not done.returncode, done.stderr.decode()
    return done.stdout.decode().strip()


def test_another_process_opens_a_pickled_handle(device, buffer):
    output = elsewhere("""
        buffer = handles[0].open()
        print(buffer.kind, buffer.nbytes, buffer.device.uuid, set(read(buffer).tolist()))
        gg.fill(buffer, 9)
        gg.synchronize(buffer.device)  # an exit does not wait for it
        buffer.close()
    """, buffer.ipc_handle())
    assert output == f"device 4000 {device.uuid} {{7}}"
    assert (read(buffer) == 9).all()


def test_arrays_pass_through_a_handle(device, buffer):
    gg.copy(buffer, gg.arange(1000, dtype="f4", device=device))
    output = elsewhere("""
        there = handles[0].open()
        print(float(read(there, "f4").sum()))
        gg.copy(there, gg.ones(1000, "f4", device=there.device))
        gg.synchronize(there.device)  # between blocks a copy is queued, and an exit does not wait for it
    """, buffer.ipc_handle())
    assert output == "499500.0"
    assert (read(buffer, "f4") == 1).all()


def test_several_handles_to_one_block_can_be_open_at_once(device, buffer):
    other = gg.alloc(4000, device=device)
    gg.fill(other, 3)
    output = elsewhere("""
        first, second, again = (handle.open() for handle in handles)
        value = lambda buffer: set(read(buffer).tolist())
        print(value(first), value(second), again.ptr == first.ptr)
        first.close(); gg.trim()
        print(value(again), value(second))
    """, buffer.ipc_handle(), other.ipc_handle(), buffer.ipc_handle())
    assert output.split("\n") == ["{7} {3} True", "{7} {3}"]


def test_a_handle_describes_its_memory(device, buffer):
    handle = buffer.ipc_handle()
    assert (handle.nbytes, handle.device_uuid) == (4000, device.uuid)
    assert gg.Device(f"{handle.backend}:{device.ordinal}") == device
    assert handle.offset >= 0
    assert handle == gg.IpcHandle(bytes(handle)) == pickle.loads(pickle.dumps(handle))
    assert hash(handle) == hash(buffer.ipc_handle())
    assert "4000 bytes" in repr(handle) and device.uuid in repr(handle)


def test_a_process_cannot_open_its_own_handle(buffer):
    with pytest.raises(gg.InvalidArgumentError, match="is from this process"):
        buffer.ipc_handle().open()


def test_a_damaged_handle_is_refused(buffer):
    data = bytearray(bytes(buffer.ipc_handle()))
    with pytest.raises(ValueError, match="as bytes\\(handle\\) returns them; got 3"):
        gg.IpcHandle(b"abc")
    data[4] ^= 1
    with pytest.raises(gg.InvalidArgumentError, match="another version of gpuglue"):
        gg.IpcHandle(bytes(data)).open()
    with pytest.raises(TypeError):
        gg.IpcHandle("text")


@pytest.mark.parametrize("arguments", [(), (3, "{}"), ([1], "{}"), (np.zeros(3), 2.5), (np.zeros(3), "{}", 1), (np.array([{}]), "{}")])
def test_a_damaged_pickle_of_an_array_is_refused(device, arguments):
    unpickle, _ = gg.zeros(3, device=device).__reduce__()
    name = f"{device.backend}:{device.ordinal}"
    with pytest.raises((TypeError, gg.InvalidArgumentError)):
        unpickle(*(name if isinstance(argument, str) else argument for argument in arguments))
    assert (unpickle(np.arange(3.0), name).get() == [0, 1, 2]).all()


def test_only_open_device_memory_has_a_handle(device, buffer):
    with pytest.raises(gg.InvalidArgumentError, match="expected device memory"):
        gg.alloc_pinned(10, device=device).ipc_handle()
    buffer.close()
    with pytest.raises(ValueError, match="closed"):
        buffer.ipc_handle()


def test_unsupported_handles_are_reported(device):
    try:
        gg.alloc(10, device=device).ipc_handle()
    except gg.UnsupportedError as error:
        assert "ipc_export" in str(error)
