"""The program of the ranks in test_mpi_communicator.py whose devices a library connects, on one machine, or on one for each rank."""

import sys
import warnings

import numpy as np
from mpi4py import MPI

import gpuglue as gg

WORLD, (BACKEND, LIBRARY, MACHINES) = MPI.COMM_WORLD, sys.argv[1:]
DEVICE = gg.Device(f"{BACKEND}:{WORLD.rank}")


def made(words="", device=DEVICE, **options):
    """A communicator, and that there is a warning with these words, or none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        comm = gg.Communicator.from_mpi(WORLD, device=device, **options)
    texts = [str(one.message) for one in caught]
    assert len(texts) == bool(words) and all(words in text for text in texts), texts
    assert all(one.filename == __file__ for one in caught), caught
    return comm


def check_operations(comm):
    size = comm.size
    with comm.device:
        assert comm.all_reduce(gg.full(5, comm.rank + 1.0)).get().tolist() == [size * (size + 1) / 2] * 5
    assert comm.all_reduce(np.ones(3)).tolist() == [size] * 3  # by MPI
    comm.barrier()


def check_library():
    for transport in ("auto", LIBRARY):
        with made(transport=transport) as comm:
            assert comm.transport == LIBRARY and comm.library and comm.handle
            check_operations(comm)
            with comm.split(comm.rank % 2) as part:
                assert (part.size, part.transport) == ((comm.size + 1 - comm.rank % 2) // 2, LIBRARY if part.size > 1 else part.transport)
                check_operations(part)


def check_mpi():
    """All arrays by MPI: a rank has no device, or MPI is named."""
    last = WORLD.size - 1
    words = f"(transport 'mpi'): rank {last} has no device"
    for comm in (made(words, None if WORLD.rank == last else DEVICE), made(transport="mpi"), made(device=None)):
        with comm:
            assert comm.transport == "mpi" and comm.library is None
            assert comm.all_reduce(gg.ones(3, device=DEVICE)).get().tolist() == [WORLD.size] * 3
    for transport in ("host", "staged"):
        try:
            made(transport=transport)
        except gg.UnsupportedError as error:
            assert f"on {WORLD.size} machines" in str(error), str(error)
        else:
            raise AssertionError("no UnsupportedError")


def check_abort():
    comm = made(timeout=None)
    with comm.device:
        x, stream = gg.ones(5), gg.Stream()
        gg.synchronize()
        comm.barrier()
        if comm.rank == 1:
            comm.abort()
        else:
            comm.all_reduce(x, stream=stream)
        for call in (stream.synchronize, comm.barrier):
            if comm.rank == 1 and call == stream.synchronize:
                continue
            try:
                call()
            except gg.CommunicatorError as error:
                assert error.ranks == (1,) and "aborted" in str(error), str(error)
            else:
                raise AssertionError("no CommunicatorError")
    WORLD.Barrier()
    comm.close()


def check_staged():
    with made("(transport 'staged'): ranks 0 and 1 use the same device", gg.Device(f"{BACKEND}:0")) as comm:
        assert comm.transport == "staged"
        check_operations(comm)


def read_machine():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read()


def main():
    machines = len(set(WORLD.allgather(read_machine())))
    assert machines == int(MACHINES)
    check_library()
    for check in (check_abort, check_mpi) if machines > 1 else (check_staged,):
        check()
    print(f"rank {WORLD.rank} done", flush=True)


main()
