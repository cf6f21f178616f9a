"""The program of the two ranks in test_mpi4py.py: arrays of the host backend and pinned buffers in mpi4py's calls."""

import numpy as np
from mpi4py import MPI

import gpuglue as gg

world = MPI.COMM_WORLD
rank = world.rank
assert world.size == 2

sent, received = gg.arange(8, dtype="f8"), gg.zeros(8)
if rank == 0:
    world.Send(sent[:4], 1)
    world.Send([sent, 8, MPI.DOUBLE], 1)
else:
    world.Recv(received[4:], 0)
    assert received.tolist() == [0, 0, 0, 0, 0, 1, 2, 3]
    world.Recv(received, 0)
    assert received.tolist() == sent.tolist()

received.fill(0)
world.Allreduce(sent, received)
assert received.tolist() == (2 * np.arange(8.0)).tolist()

pinned, total = gg.empty_pinned(4, "i4"), gg.zeros_pinned(4, "i4")
pinned[:] = rank + 1
world.Allreduce(pinned, total)
assert total.tolist() == [3] * 4

buffer, other = gg.alloc_pinned(16), gg.alloc_pinned(16)
memoryview(buffer)[:] = bytes([rank + 1] * 16)
world.Sendrecv([buffer, MPI.BYTE], 1 - rank, recvbuf=[other, MPI.BYTE])
assert bytes(other) == bytes([2 - rank] * 16)

stream = gg.Stream()
sent.fill(rank, stream=stream)  # pending: the buffer protocol waits for it
world.Allreduce(sent, received)
assert received.tolist() == [1] * 8
try:
    world.Send(sent[::2], 1 - rank)
except (BufferError, ValueError, TypeError) as error:
    print(f"rank {rank} done, strided: {type(error).__name__}", flush=True)
else:
    raise AssertionError("mpi4py accepted a strided array")
