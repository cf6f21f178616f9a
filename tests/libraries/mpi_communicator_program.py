"""The program of the ranks in test_mpi_communicator.py: Communicator.from_mpi, by the transport that is the first argument."""

import os
import sys

import numpy as np
from mpi4py import MPI

if len(sys.argv) > 3:  # the backend of each rank
    os.environ["GPUGLUE_BACKEND"] = sys.argv[3].split(",")[MPI.COMM_WORLD.rank]

import gpuglue as gg  # noqa: E402

sys.path.insert(0, sys.argv[2])
import rank_operations  # noqa: E402

WORLD, TRANSPORT = MPI.COMM_WORLD, sys.argv[1]
HANG = 240.0  # seconds: only a safety net
SEPARATE = len(set(WORLD.allgather(os.readlink("/proc/self/ns/net")))) > 1  # as on several machines
EXPECTED = {"auto": "mpi" if SEPARATE else "host"}.get(TRANSPORT, TRANSPORT)


def refused(call, *words):
    """The message of an InvalidArgumentError, which has these words."""
    try:
        call()
    except gg.InvalidArgumentError as error:
        assert all(word in str(error) for word in words), str(error)
    else:
        raise AssertionError(f"no error with {words}")


def check_large(comm):
    rank, size = comm.rank, comm.size
    for count in (10_000, 3_000_001):  # shares of which are not equal
        x = np.arange(count, dtype="f4") * (rank + 1)
        total = np.arange(count, dtype="f4") * (size * (size + 1) // 2)
        np.testing.assert_allclose(comm.all_reduce(x.copy()), total, rtol=1e-6)
        reduced = comm.reduce(x.copy(), root=size - 1)
        assert (reduced is None) == (rank != size - 1)
        if reduced is not None:
            np.testing.assert_allclose(reduced, total, rtol=1e-6)
        np.testing.assert_array_equal(comm.broadcast(x.copy(), root=1), np.arange(count, dtype="f4") * 2)
        everyone = comm.all_gather(x, np.empty((size, count), "f4"))
        np.testing.assert_array_equal(everyone[rank], x)
        np.testing.assert_array_equal(everyone[0], np.arange(count, dtype="f4"))
        blocks = np.repeat(np.arange(size, dtype="i4") + 100 * rank, count)
        np.testing.assert_array_equal(comm.all_to_all(blocks).reshape(size, count)[:, 0], np.arange(size) * 100 + rank)
        np.testing.assert_array_equal(comm.reduce_scatter(np.ones(size * count, "i8"), np.empty(count, "i8")), np.full(count, size))


def check_small(comm):
    """Blocks that travel with the description of their call, and blocks that are just too large for that."""
    rank, size, equal = comm.rank, comm.size, np.testing.assert_array_equal
    most = getattr(comm._comm, "carried", 4096)
    for n in (1, most - 1, most, most + 1):
        each = np.random.default_rng(n).integers(0, 7, (size, size, n), "u1")  # of each rank, a block for each
        mine, out = each[rank], np.empty((size, n), "u1")
        total = each[:, 0].sum(0, dtype="u1")
        equal(comm.all_reduce(mine[0], out[0]), total)
        equal(comm.all_reduce(mine[0].copy()), total)
        equal(comm.reduce_scatter(mine, out[0]), each[:, rank].sum(0, dtype="u1"))
        out[0] = 99
        assert (comm.reduce(mine[0], out[0] if rank == 1 else None, root=1) is None) == (rank != 1)
        equal(out[0], total if rank == 1 else 99)
        given = mine[0].copy()
        given.flags.writeable = rank != 1
        equal(comm.broadcast(given, 1), each[1, 0])
        equal(comm.all_gather(mine[0], out), each[:, 0])
        out[:], out[rank] = 99, mine[0]
        equal(comm.all_gather(out[rank], out), each[:, 0])  # in place
        out[:] = 99
        comm.gather(mine[0], out if rank == 0 else None)
        equal(out, each[:, 0] if rank == 0 else 99)
        equal(comm.scatter(mine if rank == 1 else None, out[0], 1), each[1, rank])
        equal(comm.all_to_all(mine, out), each[:, rank])
        equal(comm.all_to_all(mine.copy()), each[:, rank])
    for n in (0, 1, 32768, 32769):
        each = np.random.default_rng(n).integers(0, 7, (size, n), "u1")
        equal(comm.send_recv(each[rank], (rank + 1) % size, np.empty(n, "u1"), (rank - 1) % size), each[rank - 1])


def check_bits(comm):
    """The same on all ranks, and those of the host transport."""
    if SEPARATE:
        return
    random = np.random.default_rng(comm.rank)
    for dtype in ("f2", "f4", "f8", "c8"):
        x = random.standard_normal(5000).astype(dtype)
        total = comm.all_reduce(x.copy())
        everyone = comm.all_gather(total, np.empty((comm.size, 5000), dtype))
        assert all(one.tobytes() == total.tobytes() for one in everyone)
        with gg.Communicator.from_mpi(WORLD, transport="host") as other:
            assert other.all_reduce(x.copy()).tobytes() == total.tobytes(), dtype
    x = np.array([1.5, np.nan, -0.0, 3e38], "f4").view("u2")[1::2].copy()  # bfloat16
    try:
        import ml_dtypes
    except ImportError:
        return
    total = comm.all_reduce(x.view(ml_dtypes.bfloat16))
    with gg.Communicator.from_mpi(WORLD, transport="host") as other:
        expected = other.all_reduce(np.array([1.5, np.nan, -0.0, 3e38], "f4").view("u2")[1::2].copy().view(ml_dtypes.bfloat16))
    assert total.tobytes() == expected.tobytes()


def check_arguments(comm):
    rank = comm.rank
    refused(lambda: comm.all_reduce(np.ones(2 + (rank == 1))), "the ranks disagree", "rank 1 calls all_reduce of 24 bytes of '<f8', 'sum' of float64")
    refused(lambda: comm.broadcast(np.ones(2, "f4" if rank else "i4")), "the ranks disagree", "'<f4'", "'<i4'")
    refused(lambda: comm.barrier() if rank else comm.all_gather(np.ones(1), np.empty(comm.size)), "barrier", "all_gather")
    if rank == 0:
        refused(lambda: comm.send(np.ones(3), 1), "rank 1 expects another size or type")
    elif rank == 1:
        refused(lambda: comm.recv(np.empty(4), 0), "rank 0 sends 24 bytes, but this rank expects 32")
    both = np.zeros(4)
    refused(lambda: comm.send_recv(both[:3], rank, both[1:], rank), "overlap")
    comm.barrier()  # remains usable


def check_messages(comm):
    """A chain in which one rank sends and receives at once, and the others one after the other."""
    rank, size, mine, got = comm.rank, comm.size, np.full(200_000, comm.rank), np.empty(200_000, int)
    if rank == 0:
        comm.send_recv(mine, 1, got, size - 1)
    else:
        comm.recv(got, rank - 1)
        comm.send(mine, (rank + 1) % size)
    assert (got == (rank - 1) % size).all()
    blocks, out, total = np.arange(size) + 10 * rank, np.zeros(size, int), np.ones(2)
    with comm.group():
        comm.all_reduce(total)
        for other in range(size):
            comm.recv(out[other : other + 1], other)
            comm.send(blocks[other : other + 1], other)
    assert (out.tolist(), total.tolist()) == ([10 * other + rank for other in range(size)], [size] * 2)


def check_split(comm):
    group = comm.split(comm.rank % 2, key=-comm.rank)
    members = [rank for rank in reversed(range(comm.size)) if rank % 2 == comm.rank % 2]
    assert group.size == len(members) and members[group.rank] == comm.rank and group.transport == comm.transport
    assert group.all_gather(np.array([comm.rank]), np.empty(group.size, int)).tolist() == members
    assert (comm.split(None if comm.rank else 3) is None) == (comm.rank != 0)
    with group.split(0, key=-group.rank) as reversed_group:  # all three exchange data in turn
        for each, ranks in ((reversed_group, members[::-1]), (comm, list(range(comm.size))), (group, members)):
            assert each.all_gather(np.array([comm.rank]), np.empty(each.size, int)).tolist() == ranks
    group.close()
    if comm.transport == "mpi":
        refused(lambda: comm.barrier() if comm.rank == 1 else comm.split(0), "the ranks disagree", "barrier", "split")
        check_tags(comm)


def check_tags(comm):
    """One rank has no tags for another part: all of them learn it, and the communicator remains usable."""
    own = comm._comm.own
    parts, own.parts = own.parts, own.most if comm.rank == 1 else own.parts
    try:
        comm.split(0)
    except gg.UnsupportedError as error:
        assert "call from_mpi with a duplicate" in str(error), str(error)
    else:
        raise AssertionError("no UnsupportedError")
    own.parts = parts + 1
    comm.split(0).close()


def failure(call):
    try:
        call()
    except gg.CommunicatorError as error:
        return error.ranks, str(error)
    raise AssertionError("no CommunicatorError")


def check_refusals():
    refused(lambda: gg.Communicator.from_mpi(WORLD, transport="tcp"), "'tcp'")
    refused(lambda: gg.Communicator.from_mpi(WORLD, transport="mpi" if WORLD.rank else "host"), "disagree", "host, mpi")
    if SEPARATE:
        try:
            gg.Communicator.from_mpi(WORLD, transport="host")
        except gg.UnsupportedError as error:
            assert f"on {WORLD.size} machines" in str(error)
        else:
            raise AssertionError("no UnsupportedError")


def check_refusal_of_one_rank():
    """All ranks raise an error, with the reason, and the next call works."""
    for options, words in (({"device": "host:99"}, "99"), ({"transport": "tcp"}, "'tcp'"), ({"timeout": -1.0}, "-1.0")):
        try:
            gg.Communicator.from_mpi(WORLD, **{"timeout": HANG / 4, **(options if WORLD.rank == 1 else {})})
        except gg.CommunicatorError as error:
            assert WORLD.rank != 1 and error.ranks == (1,) and "rank 1" in str(error) and words in str(error), str(error)
        except gg.InvalidArgumentError as error:
            assert WORLD.rank == 1 and words in str(error), str(error)
        else:
            raise AssertionError("no error")
        with gg.Communicator.from_mpi(WORLD, timeout=HANG / 4, transport=TRANSPORT) as comm:
            comm.barrier()
            WORLD.Barrier()


def check_late_ranks():
    """Rank 0 calls from_mpi before the others, which come when it has given up; then all of them call it again."""
    other = WORLD.Dup()
    for calls in (WORLD.rank == 0, WORLD.rank != 0):
        if calls:
            failure(lambda: gg.Communicator.from_mpi(other, timeout=0.5, transport=TRANSPORT))
        WORLD.Barrier()
    with gg.Communicator.from_mpi(other, timeout=HANG / 4, transport=TRANSPORT) as comm:
        comm.barrier()
        WORLD.Barrier()


def check_close_and_abort():
    with gg.Communicator.from_mpi(WORLD, transport=TRANSPORT) as comm:
        if comm.rank != 1:
            ranks, text = failure(comm.barrier)
            assert ranks == (1,) and text.startswith("barrier: rank 1 closed the communicator"), text
    comm = gg.Communicator.from_mpi(WORLD, transport=TRANSPORT)
    if comm.rank == comm.size - 1:
        comm.abort()
    ranks, text = failure(lambda: comm.all_reduce(np.ones(3)))
    assert ranks == (comm.size - 1,) and "aborted the communicator" in text, text
    WORLD.Barrier()


def check_hang():
    """Rank 0 does not take part; the last rank waits for another one that waits for it."""
    comm = gg.Communicator.from_mpi(WORLD, transport=TRANSPORT, timeout=1.0)
    if comm.rank:
        ranks, text = failure(lambda: comm.all_reduce(np.ones(3)))
        assert ranks == (0,) and text.startswith("all_reduce: rank 0 did not take part within the timeout"), text
    WORLD.Barrier()
    comm.close()
    if EXPECTED == "mpi":
        check_hang_in_split()


def check_hang_in_split():
    """The last rank stops after it has begun to split."""
    comm = gg.Communicator.from_mpi(WORLD, transport=TRANSPORT, timeout=1.0)
    last = comm.size - 1
    if comm.rank == last:
        comm._comm._agree("split", "", -1, 0, 0, 24)
    else:
        ranks, text = failure(lambda: comm.split(0))
        assert ranks == (last,) and text.startswith(f"split: rank {last} did not take part within the timeout"), text
    WORLD.Barrier()
    comm.close()


def main():
    with gg.Communicator.from_mpi(WORLD, transport=TRANSPORT, timeout=None) as comm:
        assert (comm.rank, comm.size, comm.transport) == (WORLD.rank, WORLD.size, EXPECTED)
        for check in (rank_operations.check, check_small, check_large, check_bits, check_arguments, check_messages, rank_operations.check_devices, check_split):
            check(comm)
            comm.barrier()
        WORLD.Barrier()  # nobody closes before the others have finished
    check_refusals()
    check_refusal_of_one_rank()
    check_late_ranks()
    check_close_and_abort()
    check_hang()
    print(f"rank {WORLD.rank} done", flush=True)


main()
