"""Memory of the host backend: ranges of a file without a name, which other processes can map."""

import os
import struct
import tempfile
import threading

import numpy as np
import pytest
from compilers import ARCH, needs_compiler, only_once, own_cache  # noqa: F401
from conftest import run_python, succeeds

import gpuglue as gg

# The program closes the descriptor of that file, and its own file gets the number.
TAKEN = """
import os, tempfile
import gpuglue as gg, numpy as np
def is_memory(entry):
    try: return "gpuglue-memory" in os.readlink(f"/proc/self/fd/{entry}")
    except OSError: return False  # closed since
before = gg.alloc(4 << 20, device="host")
number = next(int(entry) for entry in os.listdir("/proc/self/fd") if is_memory(entry))
os.close(number)
own = tempfile.TemporaryFile()
if own.fileno() != number: os.dup2(own.fileno(), number)
own.write(b"precious" * (2 << 20)); own.flush()
"""
UNCHANGED = """
assert os.fstat(number).st_size == 16 << 20
own.seek(0); assert own.read() == b"precious" * (2 << 20)
print("unchanged")
"""


def test_a_file_that_got_the_number_of_the_closed_descriptor_is_not_written():
    code = (
        "after = gg.alloc(4 << 20, device='host'); gg.fill(after, 1); gg.fill(before, 2)\n"
        "there = np.empty(4 << 20, 'u1'); gg.copy(there, before); assert (there == 2).all()\n"
        "after.close(); before.close(); gg.trim()\n"
    )
    assert succeeds(run_python(TAKEN + code + UNCHANGED)) == "unchanged"


def test_memory_without_its_descriptor_has_no_handle_and_new_memory_has_one():
    code = (
        "after = gg.alloc(4 << 20, device='host'); after.ipc_handle()\n"
        "try: before.ipc_handle()\n"
        "except gg.InvalidArgumentError as error: assert 'closed the file descriptor' in str(error), error\n"
        "else: raise AssertionError('it has a handle')\n"
    )
    assert succeeds(run_python(TAKEN + code + UNCHANGED)) == "unchanged"


# A limit of the size of files, with the signal's default, which Python changes and C programs have.
LIMITED = """
import resource, signal
import gpuglue as gg, numpy as np
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (10 << 20, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
blocks = [gg.alloc(4 << 20, device="host") for _ in range(5)]
"""


def test_memory_can_be_allocated_beyond_the_limit_of_file_sizes():
    code = (
        "there = np.empty(4 << 20, 'u1')\n"
        "for i, block in enumerate(blocks): gg.fill(block, i)\n"
        "for i, block in enumerate(blocks): gg.copy(there, block); assert (there == i).all()\n"
        "print('complete')"
    )
    assert succeeds(run_python(LIMITED + code)) == "complete"


def test_an_export_beyond_the_limit_of_file_sizes_is_refused():
    code = (
        "large = gg.alloc(16 << 20, device='host')\n"
        "try: large.ipc_handle()\n"
        "except gg.OutOfMemoryError as error: print(error)\n"
    )
    assert "cannot be shared with other processes: File too large" in succeeds(run_python(LIMITED + code))


NATIVE = struct.Struct("<IiiIQQQQQ")  # as struct host_ipc of backends/host/ipc.c


def refusal(handle, **changed):
    """The error of another process that opens the handle with other members, as if the exporter had made it so."""
    data = bytearray(bytes(handle))
    start = data.index(b"GHIP")
    names = ("magic", "process", "file", "reserved", "started", "inode", "offset", "size", "checksum")
    members = dict(zip(names, NATIVE.unpack_from(data, start))) | changed
    members["checksum"] = 0xCBF29CE484222325  # FNV-1a
    for byte in NATIVE.pack(*members.values())[:-8]:
        members["checksum"] = (members["checksum"] ^ byte) * 0x100000001B3 % 2**64
    NATIVE.pack_into(data, start, *members.values())
    code = (
        f"import gpuglue as gg\nhandle = gg.IpcHandle(bytes.fromhex('{data.hex()}'))\n"
        "try: print(handle.open())\n"
        "except gg.Error as error: print(type(error).__name__, error)\n"
    )
    return succeeds(run_python(code))


def test_a_handle_whose_end_is_beyond_all_numbers_is_refused():
    with gg.alloc(4 << 20, device="host") as memory:
        error = refusal(memory.ipc_handle(), offset=2**64 - 4096, size=8192)
    assert error.startswith("InvalidArgumentError") and "the handle claims 8192 bytes" in error


def test_a_handle_opens_no_other_file_of_the_exporter():
    with gg.alloc(4 << 20, device="host") as memory, tempfile.TemporaryFile() as private:
        private.truncate(8 << 20)
        error = refusal(memory.ipc_handle(), file=private.fileno(), inode=os.fstat(private.fileno()).st_ino, offset=0)
    assert error.startswith("InvalidArgumentError") and "no longer exist" in error


@needs_compiler
def test_a_variable_of_a_module_has_no_handle_and_the_error_names_an_alternative():
    text = "__device__ float table[1000]; extern \"C\" __global__ void first(float *x) { x[0] = table[0]; }"
    module = gg.Module(gg.compile(text, arch=ARCH), "host")
    with pytest.raises(gg.UnsupportedError, match="a variable of a module, which .* copy it to allocated memory"):
        module.get_global("table").ipc_handle()


@needs_compiler
def test_kernels_that_run_during_an_export_lose_no_result():
    text = "extern \"C\" __global__ void count(int *x, int n) { x[0] += 1; x[n - 1] += 1; }"
    count = gg.Module(gg.compile(text, arch=ARCH), "host")["count"]
    n = 4 << 20
    streams = [gg.Stream("host") for _ in range(2)]  # which wait for each other
    with gg.alloc(4 * n, device="host") as memory:
        launches, exported = 0, threading.Event()
        gg.fill(memory, 0)
        gg.synchronize("host")

        def export():
            memory.ipc_handle()
            exported.set()

        thread = threading.Thread(target=export)
        thread.start()
        while launches < 100 or not exported.is_set():
            stream, other = streams[launches % 2], streams[(launches + 1) % 2]
            stream.wait(other)
            # By its address, so that the handle does not wait for the end of the loop.
            count(memory.ptr, n, grid=1, block=1, stream=stream)
            launches += 1
            if launches % 16 == 0:
                stream.synchronize()
        thread.join()
        for stream in streams:
            stream.synchronize()
        values = np.empty(n, "i4")
        gg.copy(values, memory)
        assert (values[0], values[-1]) == (launches, launches)
