"""The host transport of gg.Communicator beside MPI on one machine:  mpiexec -n 4 python bench/host_comm.py [SECONDS [JSON]]

Prints the time of an operation in MPI divided by gpuglue's, so that above 1 gpuglue is faster. Both run in turn in short batches, and
the fastest batch of each counts, since other work on the machine only ever adds time.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

import gpuglue as gg

WORLD = MPI.COMM_WORLD
SIZES = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20]
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0


def operations(comm, nbytes):
    """(name, call of MPI, call of gpuglue) on arrays of nbytes in all."""
    rank, size = WORLD.rank, WORLD.size
    x, out = np.ones(nbytes // 4, "f4"), np.empty(nbytes // 4, "f4")
    part, other = x[: len(x) // size], (rank + 1) % size
    before = (rank - 1) % size
    return [
        ("all_reduce", lambda: WORLD.Allreduce(x, out), lambda: comm.all_reduce(x, out)),
        ("broadcast", lambda: WORLD.Bcast(x, 0), lambda: comm.broadcast(x, 0)),
        ("all_gather", lambda: WORLD.Allgather(part, out[: len(part) * size]), lambda: comm.all_gather(part, out[: len(part) * size])),
        ("all_to_all", lambda: WORLD.Alltoall(x[: len(part) * size], out[: len(part) * size]), lambda: comm.all_to_all(x[: len(part) * size], out[: len(part) * size])),
        ("send_recv", lambda: WORLD.Sendrecv(x, other, 0, out, before, 0), lambda: comm.send_recv(x, other, out, before)),
    ]


def batch(call, count):
    """Seconds of one call, on the slowest rank."""
    WORLD.Barrier()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return WORLD.allreduce((time.perf_counter() - start) / count, MPI.MAX)


def compare(first, second):
    """The fastest batch of each."""
    one = max(batch(first, 2), batch(second, 2), 1e-6)
    count = WORLD.bcast(max(1, min(200, int(0.05 / one))))
    rounds = WORLD.bcast(max(3, int(SECONDS / (2 * count * one))))
    times = [(batch(first, count), batch(second, count)) for _ in range(min(rounds, 40))]
    return min(time for time, _ in times), min(time for _, time in times)


def main():
    with gg.Communicator.from_mpi(WORLD, transport="host") as comm:
        if WORLD.rank == 0:
            print(f"{WORLD.size} ranks, {MPI.Get_library_version().splitlines()[0].strip()}: MPI's time / gpuglue's (gpuglue's GB/s or us)")
        rows = []
        for nbytes in SIZES:
            texts = []
            for name, mpi, ours in operations(comm, nbytes):
                theirs, own = compare(mpi, ours)
                rows.append({"bytes": nbytes, "operation": name, "gpuglue": own, "mpi": theirs})  # seconds
                texts.append(f"{name} {theirs / own:5.2f} ({nbytes / own / 1e9:.2f} GB/s)" if nbytes >= 1 << 20 else f"{name} {theirs / own:5.2f} ({own * 1e6:.0f} us)")
            if WORLD.rank == 0:
                print(f"{nbytes >> 10:6} KiB  " + "  ".join(texts), flush=True)
        if WORLD.rank == 0 and len(sys.argv) > 2:
            found = {"ranks": WORLD.size, "mpi": MPI.Get_library_version().splitlines()[0].strip(), "rows": rows}
            Path(sys.argv[2]).write_text(json.dumps(found, indent=1) + "\n")


main()
