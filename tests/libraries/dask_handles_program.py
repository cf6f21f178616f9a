"""The program of test_dask.py about handles: a receiver that cannot open one, one that is killed, and arrays that are sent."""

import os
import signal
import sys
import time

import numpy as np
from dask.distributed import Client

import gpuglue as gg
import gpuglue.dask

N = 1 << 17
TOTAL = float(np.arange(N, dtype="f8").sum())


def make(transposed=False):
    array = gg.arange(N, dtype="f8").reshape(2, -1)
    return array.T if transposed else array


def held():
    from gpuglue import _offers

    return len(_offers.holder)


def ways():
    from gpuglue import _offers

    return _offers.taken


def total(array):
    return array.shape, float(array.get().sum())


def refuse():
    from gpuglue import _offers

    def copy_from_handle(handle, array):
        raise gg.UnsupportedError("this worker opens no handles")

    _offers._copy_from_handle = copy_from_handle


def end():
    from gpuglue import _offers

    _offers.take = lambda *args: os.kill(os.getpid(), signal.SIGKILL)


def watch():
    """Note for each array that is taken whether the worker's event loop waits for it."""
    import asyncio

    from gpuglue import _offers

    original, on_loop = _offers._take_from, []

    def take_from(*args):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            on_loop.append(False)
        else:
            on_loop.append(True)
        original(*args)

    _offers._take_from, _offers.on_loop, _offers.ANSWER_SECONDS = take_from, on_loop, 1.0


def watched():
    from gpuglue import _offers

    _offers.ANSWER_SECONDS = 30.0
    return _offers.on_loop


def stop_once():
    """The first receiver gets no answer until it has gone."""
    from gpuglue import _offers

    original, tokens = _offers.Holder._give, []

    def give(self, connection):
        if tokens:
            return original(self, connection)
        tokens.append(_offers._read(connection, 16))
        while connection.recv(64):
            pass
        self.drop(tokens[0])

    _offers.Holder._give, _offers.stopped = give, tokens


def stopped():
    from gpuglue import _offers

    return len(_offers.stopped)


def check_sender_that_stops(client, on, first, second):
    """The receiver's loop does not wait, and Dask fetches the array again."""
    on(second, watch).result()
    on(first, stop_once).result()
    made = on(first, make)
    assert on(second, total, made).result()[1] == TOTAL
    assert on(first, stopped).result() == 1
    loops = on(second, watched).result()
    assert loops and not any(loops), loops


def until(condition):
    while not condition():
        time.sleep(0.05)


def main(device):
    with gpuglue.dask.LocalCluster([device] * 3, dashboard_address=None) as cluster, Client(cluster) as client:
        first, second, third = client.scheduler_info()["workers"]
        on = lambda worker, function, *args: client.submit(function, *args, workers=[worker], pure=False)  # noqa: E731
        for transposed in (False, True):
            made = on(first, make, transposed)
            assert on(second, total, made).result() == ((N // 2, 2) if transposed else (2, N // 2), TOTAL)
        assert on(second, ways).result() == {"here": 0, "handle": 2, "socket": 0}
        strided = on(first, lambda array: array[::2], made)
        assert on(second, total, strided).result()[0] == (N // 4, 2)
        check_sender_that_stops(client, on, first, second)
        taken = on(second, ways).result()["handle"]
        on(second, refuse).result()
        made = on(first, make)
        assert on(second, total, made).result()[1] == TOTAL
        assert on(second, ways).result() == {"here": 0, "handle": taken, "socket": 1}
        until(lambda: on(first, held).result() == 0)
        on(third, end).result()
        lost = on(third, total, made)
        until(lambda: third not in client.scheduler_info()["workers"])
        client.cancel([lost])
        until(lambda: on(first, held).result() == 0)
        assert on(first, total, made).result()[1] == TOTAL
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
