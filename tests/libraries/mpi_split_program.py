"""The program of the ranks in test_mpi_communicator.py that split when MPICH, which has about 2,000 communicators, has none left."""

import numpy as np
from mpi4py import MPI

import gpuglue as gg
from gpuglue import _mpi_transport

MOST, SPLITS = 2048, 20


def use_up():
    """As many communicators of MPI as there are, up to MOST."""
    made = []
    try:
        while len(made) < MOST:
            made.append(MPI.COMM_WORLD.Dup())
    except MPI.Exception:
        pass
    return made


def main():
    with gg.Communicator.from_mpi(transport="mpi") as comm:
        made = use_up()
        for _ in range(SPLITS):
            with comm.split(0, key=-comm.rank) as part:
                assert part.all_reduce(np.ones(1)).tolist() == [comm.size]
        MPI.COMM_WORLD.Barrier()
        while _mpi_transport._closing:  # the notices of all parts arrive
            _mpi_transport.drop_closed()
        for other in made:
            other.Free()
    print(f"rank {MPI.COMM_WORLD.rank} done", flush=True)


main()
