"""Collective operations beside NCCL itself and torch.distributed, on several GPUs of one machine.

    python bench/comm.py [--ranks N] [--raw comm_raw.so] [--json FILE] [--parts correct,bandwidth,…] [--quick]

Starts one process for each rank. With --raw (bench/comm_raw.c) each operation is also called directly, on the same communicator,
arrays and stream. Bus bandwidth is as nccl-tests define it. A part that fails is reported, and the others run.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time

import comm_correct
import comm_creation
import numpy as np
from comm_ranks import RESULTS, Raw, communicator, keep, say

MIB = 1 << 20
PARTS = "correct correct_staged creation creation_raw bandwidth queued host captured coexist staged mixed kill hang".split()


# ---- speed


def timed(call, stream, comm, calls):
    """Seconds for one call, after all ranks have come."""
    stream.synchronize()
    comm.barrier()
    start = time.perf_counter()
    call(calls)
    stream.synchronize()
    return (time.perf_counter() - start) / calls


def sides_of(size, x, out):
    """(operation, bus bandwidth per byte and second, source, destination)"""
    part = x.size // size
    return (
        ("all_reduce", 2 * (size - 1) / size, x, out),
        ("all_gather", (size - 1) / size, x[:part], out),
        ("reduce_scatter", (size - 1) / size, x, out[:part]),
        ("all_to_all", (size - 1) / size, x, out),
    )


def part_bandwidth(options):
    import gpuglue as gg

    with communicator(3) as comm, comm.device:
        size, raw, stream = comm.size, options.raw and Raw(comm, options.raw), gg.Stream()
        most = 256 * MIB if options.quick else 1024 * MIB
        x, out = gg.zeros(most // 4, "float32"), gg.empty(most // 4, "float32")
        gg.synchronize()
        rows = []
        nbytes = MIB
        while nbytes <= most:
            n = nbytes // 4
            for name, factor, a, b in sides_of(size, x[:n], out[:n]):
                rows.append(bandwidth_row(comm, raw, stream, name, factor, nbytes, a, b))
            nbytes *= 4
        keep("bandwidth GB/s (operation, MiB, gpuglue, raw, ratio)", rows)


def bandwidth_row(comm, raw, stream, name, factor, nbytes, a, b):
    calls = max(3, min(200, int(4e9 // nbytes)))
    operation = getattr(comm, name)

    def ours(calls):
        for _ in range(calls):
            operation(a, b, stream=stream)

    def theirs(calls):
        assert getattr(raw, name)(a, b, stream, calls) >= 0

    both = [ours] + ([theirs] if raw and hasattr(raw, name) else [])
    best = [float("inf")] * 2
    for call in both:
        timed(call, stream, comm, 3)
    for _ in range(5):
        for i, call in enumerate(both):
            best[i] = min(best[i], timed(call, stream, comm, calls))
    ours_speed, raw_speed = (round(factor * nbytes / t / 1e9, 1) if t < 1e9 else None for t in best)
    row = name, nbytes // MIB, ours_speed, raw_speed, round(ours_speed / raw_speed, 3) if raw_speed else None
    say("   ", *row)
    return row


def part_queued(options):
    """As `bandwidth`, of small arrays, while the host is ahead of the device: all calls are queued behind a large one."""
    import gpuglue as gg

    if not options.raw:
        keep("queued", "it needs --raw")
        return
    calls = 100
    with communicator(14) as comm, comm.device:
        raw, stream = Raw(comm, options.raw), gg.Stream()
        large, x, out = gg.zeros((64 if options.quick else 256) * MIB, "float32"), gg.zeros(MIB, "float32"), gg.zeros(MIB, "float32")
        start, stop = gg.Event(timing=True), gg.Event(timing=True)

        def seconds(call):
            stream.synchronize()
            comm.barrier()
            comm.all_reduce(large, stream=stream)
            start.record(stream)
            call(calls)
            stop.record(stream)
            ahead = not start.done
            stop.synchronize()
            return stop.elapsed_since(start) / 1e3 / calls if ahead else float("inf")

        rows = []
        for nbytes in (MIB, 4 * MIB):
            n = nbytes // 4
            for name, factor, a, b in sides_of(comm.size, x[:n], out[:n])[:3]:
                operation = getattr(comm, name)
                ours = lambda calls: [operation(a, b, stream=stream) for _ in range(calls)]  # noqa: E731
                theirs = lambda calls: getattr(raw, name)(a, b, stream, calls)  # noqa: E731
                times = zip(*([seconds(call) for call in (ours, theirs)] for _ in range(7)))
                speeds = [round(factor * nbytes / min(each[1:]) / 1e9, 1) for each in times]
                rows.append((name, nbytes // MIB, *speeds, round(speeds[0] / speeds[1], 3) if speeds[1] else None))
                say("   ", *rows[-1])
        keep("queued GB/s (operation, MiB, gpuglue, raw, ratio); 0.0: the host was not ahead", rows)


def host_costs(comm, streams, calls, batches, batch=50):
    """Median microseconds of the host for one of each call, in alternation, without waiting for the device."""
    times = [[] for _ in calls]
    for _ in range(batches + 1):
        for call, each in zip(calls, times):
            start = time.perf_counter()
            call(batch)
            each.append((time.perf_counter() - start) / batch)
            for stream in streams:
                stream.synchronize()
            comm.device.synchronize()
            comm.barrier()
    return [round(1e6 * sorted(each[1:])[batches // 2], 2) for each in times]


def host_rows(comm, raw, nbytes, batches):
    """(operation, KiB, on a stream of gpuglue's own, on one that other code has, on the current one, raw C)"""
    import gpuglue as gg

    own, shared = gg.Stream(), gg.Stream()
    assert shared.handle
    n = nbytes // 4
    x, out = gg.zeros(n, "float32"), gg.zeros(n, "float32")
    rows = []
    for name, a, b in (("all_reduce", x, x), ("all_gather", x[: n // comm.size], out), ("reduce_scatter", x, out[: n // comm.size])):
        operation = getattr(comm, name)

        def explicit(calls, stream):
            for _ in range(calls):
                operation(a, b, stream=stream)

        def implicit(calls):
            for _ in range(calls):
                operation(a, b)

        calls = [lambda calls: explicit(calls, own), lambda calls: explicit(calls, shared), implicit]
        if raw:
            calls.append(lambda calls: getattr(raw, name)(a, b, shared, calls))
        rows.append((name, nbytes >> 10, *host_costs(comm, (own, shared), calls, batches)))
        say("   ", *rows[-1])
    return rows


def part_host(options):
    """Microseconds of the host for one call, of 4 KiB and of 1 MiB, without waiting."""
    batch, batches = 50, 10 if options.quick else 40
    with communicator(4) as comm, comm.device:
        raw = options.raw and Raw(comm, options.raw)
        rows = [row for nbytes in (4096, MIB) for row in host_rows(comm, raw, nbytes, batches)]
        keep("host us (operation, KiB, own stream, shared stream, current stream, raw C)", rows)
    dist, torch = torch_group(5)
    if dist is not None:
        t = torch.zeros(1024, device="cuda")
        keep("host us: torch.distributed", peer_cost(lambda: dist.all_reduce(t), torch.cuda.synchronize, batch, batches))
        dist.destroy_process_group()
    cupy, backend = cupy_backend(9)
    if cupy is not None:
        a = cupy.zeros(1024, "float32")
        keep("host us: cupyx.distributed", peer_cost(lambda: backend.all_reduce(a, a), cupy.cuda.Device().synchronize, batch, batches))


def peer_cost(call, synchronize, batch, batches):
    """Median microseconds of the host for a call of another package, without waiting for the device."""
    times = []
    for _ in range(batches + 1):
        start = time.perf_counter()
        for _ in range(batch):
            call()
        times.append((time.perf_counter() - start) / batch)
        synchronize()
    return round(1e6 * sorted(times[1:])[batches // 2], 2)


def cupy_backend(port):
    """CuPy and its communicator of all ranks."""
    try:
        import cupy
        from cupyx.distributed import NCCLBackend
        cupy.cuda.Device(int(os.environ["RANK"])).use()
        return cupy, NCCLBackend(int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]), "127.0.0.1", int(os.environ["BENCH_PORT"]) + port)
    except Exception as error:
        keep("cupyx.distributed", f"{type(error).__name__}: {error}")
        return None, None


def torch_group(port):
    try:
        import torch
        import torch.distributed as dist
    except ImportError as error:
        keep("torch", str(error))
        return None, None
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    where = f"tcp://127.0.0.1:{int(os.environ['BENCH_PORT']) + port}"
    dist.init_process_group("nccl", init_method=where, rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
    return dist, torch


def part_captured(options):
    import gpuglue as gg

    with communicator(6) as comm, comm.device:
        x, stream = gg.ones(16384, "float32"), gg.Stream()
        comm.all_reduce(x, stream=stream)
        with gg.capture(stream) as graph:
            for _ in range(20):
                comm.all_reduce(x, op="avg", stream=stream)

        def launch(calls):
            for _ in range(calls):
                graph.launch(stream)

        def single(calls):
            for _ in range(calls * 20):
                comm.all_reduce(x, op="avg", stream=stream)

        graphs, singles = timed(launch, stream, comm, 10), timed(single, stream, comm, 10)
        assert (x.get() == comm.size).all()
        keep("20 all_reduce of 64 KiB, us: captured, single", (round(1e6 * graphs, 1), round(1e6 * singles, 1)))
        graph.close()


def part_coexist(options):
    """torch's process group and ours in one process, and its communicator used by ours."""
    import gpuglue as gg

    dist, torch = torch_group(7)
    if dist is None:
        return
    t = torch.ones(MIB, device="cuda")
    dist.all_reduce(t)
    with communicator(8) as comm, comm.device:
        for i in range(10):
            comm.all_reduce(t, op="avg")
            dist.all_reduce(t, op=dist.ReduceOp.AVG)
        torch.cuda.synchronize()
        assert (t == comm.size).all()
        keep("coexist: library", comm.library)
        maps = {line.split()[-1] for line in open("/proc/self/maps") if "libnccl.so" in line}
        keep("coexist: mapped", sorted(maps))
    try:
        backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cuda"))
        pointer = backend._comm_ptr()
    except Exception as error:
        keep("coexist: torch's handle", f"{type(error).__name__}: {error}")
    else:
        with gg.Communicator.from_handle(pointer, f"cuda:{os.environ['RANK']}") as borrowed, borrowed.device:
            total = borrowed.all_reduce(gg.ones(5, "float32")).get()
            assert (total == borrowed.size).all()
            keep("coexist: torch's handle", f"rank {borrowed.rank} of {borrowed.size}, right")
    borrow_from_cupy(gg)
    dist.all_reduce(t, op=dist.ReduceOp.AVG)
    torch.cuda.synchronize()
    dist.destroy_process_group()


def borrow_from_cupy(gg):
    """CuPy's communicator used by ours, and by CuPy again; torch's process group gives the ranks its identifier."""
    import torch.distributed as dist

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    try:
        import cupy
        from cupy.cuda import nccl

        cupy.cuda.Device(rank).use()
        shared = [nccl.get_unique_id() if rank == 0 else None]
    except Exception as error:
        keep("coexist: CuPy's handle", f"{type(error).__name__}: {error}")
        return
    dist.broadcast_object_list(shared, 0)
    theirs = nccl.NcclCommunicator(size, shared[0], rank)
    with gg.Communicator.from_handle(theirs.comm, f"cuda:{rank}") as borrowed, borrowed.device:
        x = cupy.full(1000, rank + 1, "float32")
        borrowed.all_reduce(x)  # behind CuPy's work on its current stream, as all operations are
        total = borrowed.all_reduce(gg.ones(5, "float32")).get()
        assert (borrowed.rank, borrowed.size) == (rank, size) and (total == size).all()
        gg.synchronize()
        assert (x == size * (size + 1) / 2).all()
    theirs.allReduce(x.data.ptr, x.data.ptr, x.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, cupy.cuda.Stream.null.ptr)
    assert (x == size * size * (size + 1) / 2).all()
    keep("coexist: CuPy's handle", f"rank {rank} of {size}, right; NCCL {nccl.get_version()}")
    theirs.destroy()


def fastest(call, comm, times=5):
    """Seconds of one call, after all ranks have come, on the slowest rank: the fastest of several."""
    call()
    best = float("inf")
    for _ in range(times):
        comm.barrier()
        start = time.perf_counter()
        call()
        took = np.array([time.perf_counter() - start])
        best = min(best, float(comm.all_reduce(took, op="max")[0]))
    return best


def pinned_rates(device, comm, nbytes):
    """GB/s of copies of pinned memory to the host, to the device, and of both at once (the sum), on all ranks at the same time."""
    import gpuglue as gg

    x, host = gg.empty(nbytes // 4, "float32"), gg.empty_pinned(nbytes // 4, "float32")
    y, other = gg.empty(nbytes // 4, "float32"), gg.empty_pinned(nbytes // 4, "float32")
    down, up = gg.Stream(), gg.Stream()

    def both(first, second):
        if first:
            x.get_async(host, stream=down)
        if second:
            y.set(other, stream=up)
        down.synchronize(), up.synchronize()

    rates = [fastest(lambda: both(*which), comm) for which in ((1, 0), (0, 1), (1, 1))]
    return [round(n * nbytes / t / 1e9, 2) for n, t in zip((1, 1, 2), rates)]


def calls_of(comm, x, out):
    """The operations of one array, of the same bytes on each rank."""
    part = x.size // comm.size
    return {
        "all_reduce": lambda: comm.all_reduce(x, out, "sum"),
        "all_gather": lambda: comm.all_gather(x[:part], out[: part * comm.size]),
        "reduce_scatter": lambda: comm.reduce_scatter(x[: part * comm.size], out[:part]),
        "all_to_all": lambda: comm.all_to_all(x[: part * comm.size], out[: part * comm.size]),
        "broadcast": lambda: comm.broadcast(x),
        "send_recv": lambda: comm.send_recv(x, (comm.rank + 1) % comm.size, out, (comm.rank - 1) % comm.size),
    }


def staged_rows(comm, x, out, bound, of):
    """(operation, GB/s of arrays on the device, of arrays on the host, the ratio to the smaller of that and of the copies)."""
    hosts = np.ones(x.size, "float32"), np.empty(x.size, "float32")
    rows = []
    device_calls, host_calls = calls_of(comm, x, out), calls_of(comm, *hosts)
    for name in of:
        ours, host = (round(x.nbytes / fastest(calls[name], comm) / 1e9, 2) for calls in (device_calls, host_calls))
        rows.append((name, x.nbytes // MIB, ours, host, round(ours / min(bound, host), 3)))
        say("   ", *rows[-1])
    return rows


def part_staged(options):
    """The transport 'staged' beside its bounds: copies of pinned memory, and the same operation on arrays of the host."""
    import gpuglue as gg

    with communicator(9, transport="staged") as comm, comm.device:
        x = gg.ones(16 * MIB, "float32")
        assert (comm.all_reduce(x, op="avg").get() == 1).all()
        rates = pinned_rates(comm.device, comm, 64 * MIB)
        keep("pinned copies of 64 MiB, GB/s: down, up, both at once", rates)
        rows = []
        for mib in (1, 16, 64) if options.quick else (1, 4, 16, 64, 256):
            x, out = gg.ones(mib * MIB // 4, "float32"), gg.empty(mib * MIB // 4, "float32")
            names = calls_of(comm, x, out) if mib in (16, 64) else ["all_reduce"]
            rows += staged_rows(comm, x, out, min(rates[:2]), names)
        keep("staged GB/s (operation, MiB, on devices, on the host, ratio to the smaller bound)", rows)


def part_mixed(options):
    """Rank 0 with a GPU, the others without."""
    import warnings

    import gpuglue as gg

    rank = int(os.environ["RANK"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        device = f"{os.environ.get('BENCH_BACKEND', 'cuda')}:0"
        comm = communicator(10, device=device if rank == 0 else None)
    with comm:
        x = gg.full(1000, 1.0, device=comm.device) if rank == 0 else np.full(1000, rank + 1.0)
        comm.all_reduce(x)
        assert (np.asarray(x.get() if rank == 0 else x) == comm.size * (comm.size + 1) / 2).all()
        keep("mixed", f"{comm.transport}: {[str(w.message) for w in caught]}")
        n = 16 * MIB
        x, host = gg.ones(n, "float32", device=comm.device) if rank == 0 else np.ones(n, "float32"), np.ones(n, "float32")
        rates = [round(host.nbytes / fastest(lambda: comm.all_reduce(array, op="avg"), comm) / 1e9, 2) for array in (x, host)]
        keep("mixed all_reduce of 64 MiB, GB/s: one array on a device, all on the host", rates)


# ---- failures


def part_kill(options):
    """Rank 1 is killed while the others wait for it on the device."""
    import gpuglue as gg

    comm = communicator(11)
    with comm.device:
        x = gg.ones(MIB, "float32")
        comm.all_reduce(x)
        x.get()
        comm.barrier()
        if comm.rank == 1:
            print(f"killed at {time.time():.3f}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        start = time.time()
        try:
            comm.all_reduce(x)
            gg.current_stream().synchronize()
            what = "NO ERROR from the wait"
        except gg.CommunicatorError as error:
            what = f"ranks {error.ranks}: {error}"
        print(f"  rank {comm.rank} after {time.time() - start:.3f} s: {what}", flush=True)
        try:
            comm.all_reduce(x)
        except gg.CommunicatorError as error:
            print(f"  rank {comm.rank}, next call: ranks {error.ranks}", flush=True)
    start = time.time()
    comm.close()
    print(f"  rank {comm.rank} closed in {time.time() - start:.3f} s", flush=True)
    if comm.size > 2:  # the survivors go on
        ranks = [rank for rank in range(comm.size) if rank != 1]
        where = f"127.0.0.1:{int(os.environ['BENCH_PORT']) + 12}"
        with gg.Communicator(ranks.index(comm.rank), len(ranks), where, device=comm.device, timeout=60) as again, again.device:
            assert again.all_reduce(gg.ones(3)).get().tolist() == [len(ranks)] * 3
            print(f"  rank {comm.rank}: {len(ranks)} survivors, {again.transport}, right", flush=True)


def part_hang(options):
    """Rank 1 does not take part within the timeout of three seconds."""
    import gpuglue as gg

    comm = communicator(13, timeout=3)
    with comm.device:
        x = gg.ones(MIB, "float32")
        comm.all_reduce(x)
        x.get()
        comm.barrier()
        if comm.rank == 1:
            time.sleep(6)
            return
        start = time.time()
        try:
            comm.all_reduce(x)
            x.get()
            what = "NO ERROR"
        except gg.CommunicatorError as error:
            what = f"ranks {error.ranks}: {error}"
        print(f"  rank {comm.rank} after {time.time() - start:.3f} s: {what}", flush=True)


# ---- the processes


def run_part(name, options, port):
    environment = {**os.environ, "WORLD_SIZE": str(options.ranks), "BENCH_PORT": str(port), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, os.path.abspath(__file__), "--part", name, *sys.argv[1:]]
    ranks = [subprocess.Popen(command, env={**environment, "RANK": str(rank)}) for rank in range(options.ranks)]
    limit = time.monotonic() + options.limit
    codes = []
    for rank in ranks:
        try:
            codes.append(rank.wait(max(0.1, limit - time.monotonic())))
        except subprocess.TimeoutExpired:
            rank.kill()
            rank.wait()
            codes.append("did not end")
    return codes


def free_port():
    """The first of 20 that are free now."""
    for port in range(23000, 60000, 97):
        try:
            for i in range(20):
                with socket.create_server(("127.0.0.1", port + i)):
                    pass
            return port
        except OSError:
            continue
    raise SystemExit("no free ports")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--raw")
    parser.add_argument("--json")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--part")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--limit", type=int, default=90, help="seconds for a part")
    options = parser.parse_args()
    if options.part:
        name = f"part_{options.part}"
        next(vars(module)[name] for module in (sys.modules[__name__], comm_correct, comm_creation) if hasattr(module, name))(options)
        if options.json and os.environ["RANK"] == "0":
            with open(f"{options.json}.{options.part}", "w") as file:
                json.dump(RESULTS, file, default=str)
        return
    results, failed = {}, False
    for name in options.parts.split(","):
        print(f"== {name}, {options.ranks} ranks", flush=True)
        start = time.monotonic()
        codes = run_part(name, options, free_port())
        expected = [0] * options.ranks
        if name == "kill":
            expected[1] = -signal.SIGKILL
        print(f"== {name}: {'ok' if codes == expected else f'FAILED, exit codes {codes}'}, {time.monotonic() - start:.1f} s", flush=True)
        failed = failed or codes != expected
        if options.json and os.path.exists(f"{options.json}.{name}"):
            with open(f"{options.json}.{name}") as file:
                results[name] = json.load(file)
            os.unlink(f"{options.json}.{name}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"ranks": options.ranks, "results": results}, file, indent=1)
    sys.exit(failed)


if __name__ == "__main__":
    main()
