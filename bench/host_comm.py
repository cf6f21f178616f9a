"""A transport of gg.Communicator beside MPI on one machine:

    mpiexec -n 4 python bench/host_comm.py [SECONDS [JSON]] [--transport mpi]

Prints the time of an operation in MPI divided by gpuglue's, so that above 1 gpuglue is faster. With --transport mpi, gpuglue passes
the arrays through messages of MPI, as between machines; then it prints a table with gpuglue's time divided by MPI's. Both run in turn in short batches, and
the fastest batch of each counts, since other work on the machine only ever adds time.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

import gpuglue as gg

WORLD = MPI.COMM_WORLD
LIBRARY = MPI.Get_library_version().splitlines()[0].strip()
NAMES = ("all_reduce", "broadcast", "all_gather", "all_to_all", "send_recv")
SIZES = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20]
PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("seconds", type=float, nargs="?", default=2.0, help="for each operation and size")
PARSER.add_argument("json", nargs="?", help="file for the results")
PARSER.add_argument("--transport", choices=("host", "mpi"), default="host")
OPTIONS = PARSER.parse_args()


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
    rounds = WORLD.bcast(max(3, int(OPTIONS.seconds / (2 * count * one))))
    times = [(batch(first, count), batch(second, count)) for _ in range(min(rounds, 40))]
    return min(time for time, _ in times), min(time for _, time in times)


def text_of(name, nbytes, theirs, own):
    if nbytes >= 1 << 20:
        return f"{name} {theirs / own:5.2f} ({nbytes / own / 1e9:.2f} GB/s)"
    return f"{name} {theirs / own:5.2f} ({own * 1e6:.0f} us)"


def measure(comm, nbytes, chosen):
    """Seconds of each operation, as a row of the results; the ranks go through them together."""
    for name, mpi, ours in operations(comm, nbytes):
        if name in chosen:
            theirs, own = compare(mpi, ours)
            yield {"bytes": nbytes, "operation": name, "gpuglue": own, "mpi": theirs}


def print_host(comm, say):
    say(f"{WORLD.size} ranks, {LIBRARY}: MPI's time / gpuglue's (gpuglue's GB/s or us)")
    rows = []
    for nbytes in SIZES:
        found = list(measure(comm, nbytes, NAMES))
        say(f"{nbytes >> 10:6} KiB  " + "  ".join(text_of(row["operation"], nbytes, row["mpi"], row["gpuglue"]) for row in found))
        rows += found
    return rows


def print_mpi(comm, say):
    say(f"{WORLD.size} ranks, {LIBRARY}")
    say(f"{'operation':12}{'KiB':>8}{'gpuglue, us':>13}{'MPI, us':>11}{'ratio':>8}")
    rows = []
    for nbytes in SIZES[:4]:
        for row in measure(comm, nbytes, ("all_reduce", "broadcast", "send_recv")):
            own, theirs = 1e6 * row["gpuglue"], 1e6 * row["mpi"]
            say(f"{row['operation']:12}{nbytes >> 10:8}{own:13.1f}{theirs:11.1f}{own / theirs:8.1f}")
            rows.append(row)
    return rows


def main():
    say = lambda text: WORLD.rank or print(text, flush=True)  # noqa: E731
    with gg.Communicator.from_mpi(WORLD, transport=OPTIONS.transport) as comm:
        rows = (print_mpi if OPTIONS.transport == "mpi" else print_host)(comm, say)
        if WORLD.rank == 0 and OPTIONS.json:
            Path(OPTIONS.json).write_text(json.dumps({"ranks": WORLD.size, "mpi": LIBRARY, "rows": rows}, indent=1) + "\n")
        WORLD.Barrier()


main()
