"""The operations of a communicator, compared with NumPy: every transport gives these results."""

import numpy as np


def check(comm):
    rank, size = comm.rank, comm.size
    root, other = 1 % size, 2 % size
    random = np.random.default_rng(0)
    for name in "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128 bool".split():
        dtype = np.dtype(name)
        values = random.integers(0, 2 if name == "bool" else 5, (size, size, 7)) - (dtype.kind in "ifc") * 2
        each = values.astype(dtype)  # what each rank has
        mine = each[rank]
        for op, function in {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}.items():
            if dtype.kind == "c" and op in ("min", "max"):
                continue
            expected = function.reduce(each, axis=0, dtype=dtype)
            total = comm.all_reduce(mine, np.empty_like(mine), op)
            np.testing.assert_array_equal(total, expected, f"{name} {op}")
            np.testing.assert_array_equal(comm.reduce_scatter(mine, np.empty(7, dtype), op), expected[rank])
            total = comm.reduce(mine.copy(), root=root, op=op)
            assert (total is None) == (rank != root)
            if rank == root:
                np.testing.assert_array_equal(total, expected)
        if dtype.kind in "fc":
            total = comm.all_reduce(mine, np.empty_like(mine), "avg")
            np.testing.assert_allclose(total, each.mean(0), rtol=np.finfo(dtype).eps)
        np.testing.assert_array_equal(comm.broadcast(mine.copy(), root=other), each[other])
        np.testing.assert_array_equal(comm.all_gather(mine, np.empty_like(each)), each)
        gathered = comm.gather(mine, np.empty_like(each) if rank == 0 else None)
        if rank == 0:
            np.testing.assert_array_equal(gathered, each)
        np.testing.assert_array_equal(comm.scatter(mine if rank == root else None, np.empty(7, dtype), root=root), each[root, rank])
        np.testing.assert_array_equal(comm.all_to_all(mine.copy()), each[:, rank])
        shifted = comm.send_recv(mine, (rank + 1) % size, np.empty_like(mine), (rank - 1) % size)
        np.testing.assert_array_equal(shifted, each[rank - 1])
    record = np.array([(rank, 0.5)], [("a", "i2"), ("b", "f8")])
    assert comm.all_gather(record, np.empty(size, record.dtype))["a"].tolist() == list(range(size))
    nan = np.array([np.nan if rank == root else 1.0, 2.0])
    assert np.isnan(comm.all_reduce(nan.copy(), op="max")[0]) and np.isnan(comm.all_reduce(nan.copy(), op="min")[0])
    if rank == 0 and size > 1:
        comm.send(np.arange(5), 1)
    elif rank == 1:
        assert comm.recv(np.empty(5, int), 0).tolist() == [0, 1, 2, 3, 4]
    comm.barrier()


def check_large(comm, nbytes):
    """Moves of blocks of this size, out of place and in place."""
    rank, size = comm.rank, comm.size
    each = np.random.default_rng(1).integers(0, 256, (size, size, nbytes), "u1")
    mine, first = each[rank], each[:, 0]
    same = np.testing.assert_array_equal
    same(comm.all_gather(mine[0], np.empty_like(first)), first)
    place = np.zeros_like(first)
    place[rank] = mine[0]
    same(comm.all_gather(place[rank], place), first)
    same(comm.all_to_all(mine, np.empty_like(mine)), each[:, rank])
    same(comm.all_to_all(mine.copy()), each[:, rank])
    same(comm.broadcast(mine.copy(), root=1), each[1])
    gathered = comm.gather(mine[0], np.empty_like(first) if rank == 1 else None, root=1)
    if rank == 1:
        same(gathered, first)
    same(comm.scatter(mine if rank == 1 else None, np.empty_like(mine[0]), root=1), each[1, rank])
    same(comm.send_recv(mine, (rank + 1) % size, np.empty_like(mine), (rank - 1) % size), each[rank - 1])
    if rank == 0:
        comm.send(mine, size - 1)
    elif rank == size - 1:
        same(comm.recv(np.empty_like(mine), 0), each[0])


def check_devices(comm):
    """The same with arrays in the memory of this rank's device."""
    import gpuglue as gg

    rank, size = comm.rank, comm.size
    root = 1 % size
    each = np.arange(size * size * 1000, dtype="f4").reshape(size, size, 1000)
    mine = gg.to_gpu(each[rank])
    with gg.Stream():
        gg.fill(mine, -1.0)
        mine.set(each[rank])  # pending work
    for result, expected in (
        (comm.all_reduce(mine, gg.empty_like(mine)), each.sum(0)),
        (comm.reduce_scatter(mine, gg.empty(1000, "f4"), "max"), each.max(0)[rank]),
        (comm.reduce(mine, gg.empty_like(mine), root=size - 1), each.sum(0) if rank == size - 1 else None),
        (comm.broadcast(mine.copy(), root=root), each[root]),
        (comm.all_gather(mine, gg.empty(each.shape, "f4")), each),
        (comm.gather(mine, gg.empty(each.shape, "f4")), None if rank else each),
        (comm.scatter(mine if rank == root else None, gg.empty(1000, "f4"), root=root), each[root, rank]),
        (comm.all_to_all(mine.copy()), each[:, rank]),
        (comm.send_recv(mine, (rank + 1) % size, gg.empty_like(mine), (rank - 1) % size), each[rank - 1]),
    ):
        if expected is None:
            assert result is None
        else:
            np.testing.assert_array_equal(result.get(), expected)
    total = comm.all_reduce(np.ones(3) if rank else gg.ones(3))  # of host memory and of device memory
    np.testing.assert_array_equal(total if rank else total.get(), [size] * 3)
