"""The program of test_dask.py that sends arrays through a connection, and asks what memory they arrive in."""

import asyncio
import sys

import numpy as np
from dask.distributed import Client
from distributed.comm import CommClosedError, connect, listen

import gpuglue as gg
import gpuglue.dask

N = 1 << 18  # elements of 8 bytes


def send_without_handles():
    from gpuglue import _dask_handles

    _dask_handles.NBYTES = 1 << 62


def limit_to_less():
    from gpuglue import _dask_pinned

    _dask_pinned.LARGEST = 8 * N - 1


def kind_of(memory):
    return gg.pointer_info(np.frombuffer(memory, "u1").ctypes.data).kind


def watch():
    from distributed.protocol.serialize import dask_deserialize

    def deserialize(header, frames):
        gpuglue.dask.kinds.extend(map(kind_of, frames))
        return gpuglue.dask._deserialize(header, frames)

    gpuglue.dask.kinds = []
    dask_deserialize.register(gg.GPUArray, deserialize)


def make(names):
    return {name: (np if name[0] == "n" else gg).full(N, i + 1.0) for i, name in enumerate(names)}


def received(made):
    """Kind of memory of each array of NumPy, and of the elements of those of gpuglue as they came."""
    for i, array in enumerate(made.values()):
        assert (array if isinstance(array, np.ndarray) else array.get()).tolist() == [i + 1.0] * N
    kinds, gpuglue.dask.kinds = gpuglue.dask.kinds, []
    return [kind_of(array) for array in made.values() if isinstance(array, np.ndarray)], kinds


async def read_closed():
    """What a connection that this process has closed says to one who reads."""
    async with listen("tcp://127.0.0.1:0", lambda comm: None) as listener:
        connection = await connect(listener.contact_address)
        connection.abort()
        try:
            await connection.read()
        except Exception as error:
            return error


def main(device):
    gpuglue.dask.register()
    assert isinstance(asyncio.run(read_closed()), CommClosedError)
    with gpuglue.dask.LocalCluster([device] * 2, dashboard_address=None) as cluster, Client(cluster) as client:
        first, second = client.scheduler_info()["workers"]
        client.run(send_without_handles)
        client.run(watch)
        for names in (["g"], ["g1", "g2"], ["n"], ["n1", "g", "n2", "g2"]):
            made = client.submit(make, names, workers=[first], pure=False)
            arrays, elements = client.submit(received, made, workers=[second], pure=False).result()
            assert elements == ["pinned"] * sum(name[0] == "g" for name in names), (names, elements)
            assert elements or arrays == ["host"], arrays  # NumPy's alone
        client.run(limit_to_less)
        made = client.submit(make, ["g"], workers=[first], pure=False)
        _, elements = client.submit(received, made, workers=[second], pure=False).result()
        assert elements == ["host"], elements
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
