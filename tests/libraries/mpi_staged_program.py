"""The program of the four ranks in test_mpi4py.py: gpuglue.mpi with arrays in memory of the current device."""

import numpy as np
from mpi4py import MPI

import gpuglue as gg
import gpuglue.mpi

world = gpuglue.mpi.Comm(MPI.COMM_WORLD)
rank, size = world.rank, world.size
assert size == 4
left, right = (rank - 1) % size, (rank + 1) % size
N = 1000

# the launcher's variables spread the ranks, all of this machine, over its devices; the launcher numbers them as it likes
gg.Device.for_local_rank().set_current()
count = len(gg.devices(gg.current_device().backend))
assert sorted(world.allgather(gg.current_device().ordinal)) == sorted(local % count for local in range(size))


def same(array, expected):
    np.testing.assert_array_equal(array.get(), expected)


# one message: whole, shorter than its buffer, a list with a count, by keyword
mine, other = gg.full(N, float(rank)), gg.full(N, -1.0)
world.Sendrecv(mine, right, recvbuf=other, source=left)
same(other, np.full(N, float(left)))
other.fill(-1)
status = MPI.Status()
if rank == 0:
    world.Send(mine[:10], dest=1)
elif rank == 1:
    world.Recv(other, 0, 0, status)
    assert status.Get_count(MPI.DOUBLE) == 10
    same(other, [0.0] * 10 + [-1.0] * (N - 10))
if rank == 2:
    world.Send([mine, 5, MPI.DOUBLE], 3)
elif rank == 3:
    world.Recv(buf=[other, 5, MPI.DOUBLE], source=2)
    same(other, [2.0] * 5 + [-1.0] * (N - 5))
world.Sendrecv_replace(mine, right, source=left)
same(mine, np.full(N, float(left)))

# collectives
total, some = gg.zeros(N), gg.arange(N, dtype="f8")
world.Allreduce(some, total)
same(total, size * np.arange(N))
world.Allreduce(MPI.IN_PLACE, total, MPI.MAX)
same(total, size * np.arange(N))
root = gg.full(3, float(rank))
world.Bcast(root, 2)
same(root, [2.0] * 3)
world.Reduce(gg.full(3, 1.0), root, root=1)
same(root, [4.0 if rank == 1 else 2.0] * 3)
gathered = gg.full((size, 2), -1.0)
world.Gather(gg.full(2, float(rank)), gathered, root=0)
same(gathered, np.repeat(np.arange(4.0), 2).reshape(4, 2) if rank == 0 else np.full((4, 2), -1.0))
world.Allgather(gg.full(2, float(rank)), gathered)
same(gathered, np.repeat(np.arange(4.0), 2).reshape(4, 2))
part = gg.zeros(2)
world.Scatter(gathered, part, root=3)
same(part, [float(rank)] * 2)
holes = gg.full(8, -1.0)
world.Allgatherv(gg.full(1, float(rank)), [holes, [1] * 4, [0, 2, 4, 6], MPI.DOUBLE])
same(holes, [0, -1, 1, -1, 2, -1, 3, -1])
before = gg.full(1, 7.0)
world.Exscan(gg.full(1, 1.0), before)
same(before, [float(rank) if rank else 7.0])

# pending work, Fortran order, NumPy arrays among device arrays
stream = gg.Stream()
some.fill(rank, stream=stream)
world.Allreduce(some, total)
same(total, np.full(N, 6.0))
matrix = gg.asarray(np.asfortranarray(np.arange(6.0).reshape(2, 3) + rank))
world.Bcast(matrix, 1)
same(matrix, np.arange(6.0).reshape(2, 3) + 1)
numbers = np.empty(2)
world.Allreduce(gg.ones(2), numbers)
assert numbers.tolist() == [4, 4]

# what cannot be done is refused; the communicators that it makes are like it
if gg.current_device().backend != "host":
    try:
        world.Isend(some, right)
    except gg.UnsupportedError as error:
        assert "Isend" in str(error) and "get()" in str(error)
    else:
        raise SystemExit("a call that returns at once took device memory")
try:
    world.Bcast(gg.zeros((4, 4))[:, 1])
except (BufferError, ValueError) as error:  # of gpuglue.mpi, or of mpi4py
    assert "contiguous" in str(error)
else:
    raise SystemExit("a strided array was taken")
half = world.Split(rank % 2, rank)
assert isinstance(half, gpuglue.mpi.Comm) and half.size == 2
one = gg.zeros(1)
half.Allreduce(gg.ones(1), one)
same(one, [2.0])
assert gpuglue.mpi.is_gpu_aware("host") and not gpuglue.mpi.is_gpu_aware("no such backend")
assert gpuglue.mpi.is_gpu_aware("cuda") is False and gpuglue.mpi.is_gpu_aware("ze") is False
if rank == 0:  # a child of a rank of several is a program of its own
    assert gpuglue.mpi._carries("host:0")
print(f"rank {rank} done", flush=True)
