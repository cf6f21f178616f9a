"""The parts of comm.py that compare results with NumPy's."""

import numpy as np
from comm_ranks import communicator, keep, say


def part_correct(options):
    import gpuglue as gg

    with communicator(0) as comm, comm.device:
        say(f"  transport {comm.transport}, library {comm.library}")
        rank, size = comm.rank, comm.size
        random = np.random.default_rng(0)
        count = 0
        for name in "int8 uint8 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128 bool".split():
            for n in (7, 100_003):
                dtype = np.dtype(name)
                values = random.integers(0, 2 if name == "bool" else 4, (size, size, n)) - (dtype.kind in "ifc")
                count += check(gg, comm, values.astype(dtype), rank, size)
        keep("correct operations", count)
        sums = comm.all_reduce(gg.full(1 << 20, rank + 1.0, "float32"), op="avg").get()
        assert (sums == (size + 1) / 2).all()
        try:
            import ml_dtypes

            total = comm.all_reduce(gg.to_gpu(np.full(100, rank + 1, ml_dtypes.bfloat16))).get()
            assert (total.astype(float) == size * (size + 1) / 2).all()
            keep("bfloat16", "right")
        except ImportError:
            keep("bfloat16", "ml_dtypes is missing")
        check_float8(gg, comm, random)
        with comm.group():
            got = gg.empty(5, "int64")
            comm.recv(got, (rank - 1) % size)
            comm.send(gg.full(5, rank, "int64"), (rank + 1) % size)
        assert got.get().tolist() == [(rank - 1) % size] * 5
        with comm.split(rank % 2, -rank) as half:
            assert half.all_reduce(gg.ones(3)).get().tolist() == [half.size] * 3
            keep("split", f"{half.size} ranks, {half.transport}")


def check_float8(gg, comm, random):
    """All operations on numbers whose results are exact; of two ranks also sums that are rounded to the nearest."""
    try:
        import ml_dtypes
    except ImportError:
        keep("float8", "ml_dtypes is missing")
        return
    rank, size, count = comm.rank, comm.size, 0
    for name in ("float8_e4m3fn", "float8_e5m2"):
        dtype = np.dtype(getattr(ml_dtypes, name))
        for n in (7, 10_007):
            each = (random.integers(0, 3, (size, size, n)) - 1.0).astype(dtype)
            try:
                comm.all_reduce(gg.to_gpu(each[rank]))
            except gg.UnsupportedError as error:
                keep(name, f"moved only: {error}")
                check_moves(gg, comm, each, rank, size)
            else:
                count += check(gg, comm, each, rank, size)
        if count:
            each = (random.integers(-64, 65, (size, 10_007)) / 16).astype(dtype)
            for op, function in (("sum", np.add), ("max", np.maximum))[0 if size == 2 else 1 :]:
                wide = function.reduce(each.astype("float32"), axis=0)
                total = comm.all_reduce(gg.to_gpu(each[rank]), op=op).get().astype("float32")
                nearest = wide.astype(dtype).astype("float32")
                np.testing.assert_array_equal(abs(total - wide), abs(nearest - wide), f"{name} {op}")
                keep(f"{name} {op}", f"{(nearest != wide).sum()} of {wide.size} rounded, {(total != nearest).sum()} of them not to even")
    keep("float8 operations", count)


def check(gg, comm, each, rank, size):
    dtype, mine = each.dtype, each[rank]
    x, n = gg.to_gpu(mine), each.shape[2]
    equal = np.testing.assert_array_equal
    done = 0
    for op, function in {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}.items():
        if dtype.kind == "c" and op != "sum":
            continue
        expected = function.reduce(each, axis=0, dtype=dtype)
        equal(comm.all_reduce(x, gg.empty(mine.shape, dtype), op).get(), expected)
        equal(comm.all_reduce(x.copy(), op=op).get(), expected)
        equal(comm.reduce_scatter(x, gg.empty(n, dtype), op).get(), expected[rank])
        total = comm.reduce(x.copy(), root=1, op=op)
        if rank == 1:
            equal(total.get(), expected)
        done += 4
    return done + check_moves(gg, comm, each, rank, size)


def check_moves(gg, comm, each, rank, size):
    dtype, mine = each.dtype, each[rank]
    x, n, equal = gg.to_gpu(mine), each.shape[2], np.testing.assert_array_equal
    equal(comm.broadcast(x.copy(), root=size - 1).get(), each[size - 1])
    equal(comm.all_gather(x, gg.empty(each.shape, dtype)).get(), each)
    own = gg.empty(each.shape, dtype)
    own[rank].set(mine)
    equal(comm.all_gather(own[rank], own).get(), each)
    gathered = comm.gather(x, gg.empty(each.shape, dtype) if rank == 0 else None)
    if rank == 0:
        equal(gathered.get(), each)
    equal(comm.scatter(x if rank == 1 else None, gg.empty(n, dtype), root=1).get(), each[1, rank])
    equal(comm.all_to_all(x.copy()).get(), each[:, rank])
    equal(comm.all_to_all(x, gg.empty(x.shape, dtype)).get(), each[:, rank])
    equal(comm.send_recv(x, (rank + 1) % size, gg.empty(mine.shape, dtype), (rank - 1) % size).get(), each[rank - 1])
    return 8


def part_correct_staged(options):
    """Arrays of several buffers."""
    import gpuglue as gg

    with communicator(15, transport="staged") as comm, comm.device:
        random = np.random.default_rng(0)
        count = 0
        for name, n in (("float32", 700_001), ("float16", 600_011), ("complex128", 150_001), ("uint8", 1_048_577)):
            values = random.integers(0, 4, (comm.size, comm.size, n))
            count += check(gg, comm, values.astype(name), comm.rank, comm.size)
        keep("correct staged operations", count)
