"""How long the creation of a communicator takes, of gpuglue and of NCCL alone: the first of a process beside the first of another."""

import ctypes
import os
import subprocess
import sys
import time

import numpy as np
from comm_ranks import communicator, keep


def met(port):
    """A communicator of the host, after all ranks have opened their devices; the times of that, and the path of the library."""
    import gpuglue as gg

    host = communicator(port, device=None, transport="host")
    path = np.zeros(4096, np.uint8)
    if host.rank == 0:  # another process: here nothing is loaded yet, but the file is read once, for both parts
        code = f"import gpuglue as gg; print(gg.Communicator(0, 1, device='{os.environ.get('BENCH_BACKEND', 'cuda')}:0').library[0])"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()[-1].encode()
        path[: len(found)] = np.frombuffer(found, np.uint8)
    host.broadcast(path)
    start = time.perf_counter()
    device = gg.Device(f"{os.environ.get('BENCH_BACKEND', 'cuda')}:{host.rank}")
    with device:
        gg.zeros(1).get()
    keep("device ms", since(start))
    host.barrier()
    return host, device, path.tobytes().rstrip(b"\0").decode()


def since(start):
    return round(1e3 * (time.perf_counter() - start), 1)


def slowest(host, times):
    """Of all ranks."""
    return host.all_reduce(np.array(times), op="max").tolist()


def part_creation(options):
    """Of gpuglue, three times."""
    host, device, _ = met(1)
    created, closed = [], []
    for i in range(3):
        host.barrier()
        start = time.perf_counter()
        comm = communicator(16 + i, device=device)
        created.append(since(start))
        host.barrier()
        start = time.perf_counter()
        comm.close()
        closed.append(since(start))
    keep("creation ms: the first of the process, then others", slowest(host, created))
    keep("close ms", slowest(host, closed))


def part_creation_raw(options):
    """Of NCCL alone, three times, in processes in which gpuglue has not loaded it."""
    host, device, path = met(2)
    start = time.perf_counter()
    library = ctypes.CDLL(path)
    keep("dlopen ms", since(start))

    class Id(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_char * 128)]

    ids, created, joined, closed = np.zeros(128, np.uint8), [], [], []
    with device:
        for _ in range(3):
            host.barrier()
            start = time.perf_counter()
            if host.rank == 0:
                assert library.ncclGetUniqueId(ids.ctypes.data_as(ctypes.c_void_p)) == 0
            host.broadcast(ids)
            native, began = ctypes.c_void_p(), time.perf_counter()
            assert library.ncclCommInitRank(ctypes.byref(native), host.size, Id.from_buffer_copy(ids.tobytes()), host.rank) == 0
            joined.append(since(began))
            created.append(since(start))
            host.barrier()
            start = time.perf_counter()
            library.ncclCommDestroy(native)
            closed.append(since(start))
    keep("raw ms, with the exchange of the id: the first of the process, then others", slowest(host, created))
    keep("raw ms, ncclCommInitRank alone", slowest(host, joined))
    keep("raw ncclCommDestroy ms", slowest(host, closed))
