"""The program of test_dask.py in which the workers of a cluster are the ranks of a communicator."""

import os
import signal
import threading
import time

import numpy as np
from dask.distributed import Client

import gpuglue as gg
import gpuglue.dask

from dask_errors import error_of

HANG = 120  # seconds: only a safety net


def total(comm, x):
    array = gg.full(1000, x + comm.rank)
    comm.all_reduce(array)
    return comm.rank, comm.size, os.getpid(), set(array.get().tolist())


class LateError(ArithmeticError):
    """Reaches the client later than the errors of the ranks that wait for this one."""

    def __reduce__(self):
        time.sleep(0.5)
        return ArithmeticError, self.args


def fail_on_one(comm):
    if comm.rank == 1:
        raise LateError("of rank 1")
    comm.barrier()


def hang_on_one(comm, path):
    if comm.rank == 1:
        for _ in range(600):
            if os.path.exists(path):
                return
            time.sleep(0.1)
        raise LateError("the client waited for the rank that hangs")
    comm.barrier()


def keep_busy(begun, end):
    open(begun, "w").close()
    for _ in range(600):
        if os.path.exists(end):
            return
        time.sleep(0.1)


def check_busy(client, rank):
    """A creation ends at its timeout, though the worker of a rank is not free, and the error names this worker."""
    addresses = tuple(client.nthreads())
    begun, end = (os.path.abspath(f"{name} {rank}") for name in ("busy", "free"))
    busy = client.submit(keep_busy, begun, end, workers=[addresses[rank]], pure=False)
    while not os.path.exists(begun):
        time.sleep(0.1)
    error = error_of(gg.Communicator.from_dask, client, addresses, timeout=2 + 6 * rank)
    assert isinstance(error, gg.CommunicatorError) and rank in error.ranks and addresses[rank] in str(error), error
    open(end, "w").close()
    busy.result()
    assert set(map(tuple, client.run(kept).values())) == {()}, client.run(kept)


def end_one(comm):
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier()


def check_arguments(client):
    addresses = list(client.nthreads())
    error = error_of(gg.Communicator.from_dask, client, ["tcp://127.0.0.1:1"])
    assert isinstance(error, gg.InvalidArgumentError) and "'tcp://127.0.0.1:1' is not a worker: the cluster has tcp://" in str(error), error
    error = error_of(gg.Communicator.from_dask, client, addresses[:1] * 2)
    assert isinstance(error, gg.InvalidArgumentError) and "expected each address once" in str(error), error
    with gg.Communicator.from_dask(client, addresses[:1]) as one:
        assert [result[:2] for result in one.run(total, 1.0)] == [(0, 1)]


def kept():
    return list(gpuglue._dask_communicator._here)


def check_creation(client):
    """What a worker has of a communicator that could not be created is closed."""
    error = error_of(gg.Communicator.from_dask, client, transport="nccl")
    assert isinstance(error, gg.UnsupportedError), error
    assert set(map(tuple, client.run(kept).values())) == {()}, client.run(kept)


def check_failures(client):
    with gg.Communicator.from_dask(client, timeout=None) as ranks:  # nothing but the failure ends a wait
        error = error_of(ranks.run, fail_on_one)  # not the error of rank 0, which was there first
        assert isinstance(error, ArithmeticError) and str(error) == "of rank 1", error
        error = error_of(ranks.run, total, 1.0)
        assert isinstance(error, gg.CommunicatorError) and error.ranks == (1,), error
    assert isinstance(error_of(ranks.run, total, 1.0), gg.InvalidArgumentError)
    with gg.Communicator.from_dask(client, timeout=None) as ranks:
        error = error_of(ranks.run, end_one)
        assert isinstance(error, gg.CommunicatorError) and error.ranks == (1,), error


def check_hang(client):
    gpuglue._dask_communicator._GRACE = 3600
    with gg.Communicator.from_dask(client, timeout=5) as ranks:
        error = error_of(ranks.run, hang_on_one, os.path.abspath("go on"))
        assert isinstance(error, gg.CommunicatorError) and error.ranks == (1,), error
        open("go on", "w").close()


def interrupt_when_begun(path):
    while not os.path.exists(path):
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)


def wait_for_ever(comm, path):
    if comm.rank == 0:
        open(path, "w").close()
        comm.barrier()


def check_interrupt(client):
    """Ctrl-C also ends the wait of the rank whose peer does not come: its worker, which has one thread, runs the next task."""
    path = os.path.abspath("begun")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in what it starts in the background
    with gg.Communicator.from_dask(client, timeout=None) as ranks:
        threading.Thread(target=interrupt_when_begun, args=(path,)).start()
        try:
            ranks.run(wait_for_ever, path)
        except KeyboardInterrupt:
            pass
        assert client.submit(os.getpid, workers=ranks.addresses[:1], pure=False).result(timeout=HANG)
        error = error_of(ranks.run, total, 1.0)
        assert isinstance(error, gg.CommunicatorError) and "aborted" in str(error), error


def watch_close():
    """Note whether the worker's event loop waits for the close of a communicator."""
    close, gg.on_loop = gg.Communicator.close, []

    def closed(self):
        gg.on_loop.append(threading.current_thread() is threading.main_thread())
        close(self)

    gg.Communicator.close = closed


def check_close(client):
    client.run(watch_close)
    with gg.Communicator.from_dask(client) as ranks:
        ranks.run(total, 1.0)
    assert set(map(tuple, client.run(lambda: gg.on_loop).values())) == {(False,)}


def main():
    with gpuglue.dask.LocalCluster(["host:0"] * 2, dashboard_address=None) as cluster, Client(cluster) as client:
        with gg.Communicator.from_dask(client) as ranks:
            assert ranks.size == 2 and sorted(ranks.addresses) == sorted(client.nthreads())
            for x in (1.0, 5.0):
                results = ranks.run(total, x)
                assert [result[0] for result in results] == [0, 1] and {result[1] for result in results} == {2}
                assert len({result[2] for result in results} | {os.getpid()}) == 3  # processes of their own
                assert all(result[3] == {2 * x + 1} for result in results), results
        check_arguments(client)
        check_creation(client)
        for rank in (0, 1):
            check_busy(client, rank)
        check_close(client)
        check_interrupt(client)
        check_hang(client)
        check_failures(client)
    print("done")


if __name__ == "__main__":
    main()
