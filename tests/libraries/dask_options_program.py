"""The program of test_dask.py that gives a cluster the arguments and the configuration that distributed's own takes."""

import asyncio
import pathlib
import sys

import dask
from dask.distributed import Client

import gpuglue as gg
import gpuglue.dask

from dask_errors import error_of

PRELOAD = """
def dask_setup(worker):
    worker.preloaded_by_test = True
"""


def check_refusals():
    for name, advice in {"n_workers": "starts two", "threads_per_worker": "use nthreads", "processes": "each worker is a process"}.items():
        error = error_of(gpuglue.dask.LocalCluster, ["host:0"], **{name: 2})
        assert isinstance(error, gg.InvalidArgumentError) and f"has no argument {name}" in str(error) and advice in str(error), error
    error = error_of(gpuglue.dask.LocalCluster, "host:7")
    assert isinstance(error, gg.InvalidArgumentError) and "no device 7" in str(error), error


def check_scale():
    with gpuglue.dask.LocalCluster("host:0", dashboard_address=None) as cluster:
        error = error_of(cluster.scale, 2)
        assert isinstance(error, gg.UnsupportedError) and "one worker for each device" in str(error), error
        assert len(cluster.workers) == 1


def family(dask_worker=None):
    from distributed.protocol import serialize

    return serialize(gg.ones(3))[0]["serializer"], getattr(dask_worker, "preloaded_by_test", False)


def check_configured_preload():
    pathlib.Path("of_the_user.py").write_text(PRELOAD)
    with dask.config.set({"distributed.worker.preload": [str(pathlib.Path("of_the_user.py").resolve())]}):
        with gpuglue.dask.LocalCluster(gg.Device("host:0"), dashboard_address=None) as cluster, Client(cluster) as client:
            assert list(client.run(family).values()) == [("dask", True)]


def check_arguments_of_preloads():
    worker = gpuglue.dask._worker(gg.Device("host:0"), 1, None, {"preload": "a.py", "preload_argv": ["-x"]})
    assert (worker["preload"], worker["preload_argv"]) == (["gpuglue.dask", "a.py"], [[], ["-x"]])
    worker = gpuglue.dask._worker(gg.Device("host:0"), 1, None, {"preload": ["a.py", "b.py"], "preload_argv": [["-x"], []]})
    assert worker["preload_argv"] == [[], ["-x"], []]


def check_encryption():
    from distributed import Security

    encrypted = gpuglue.dask._connection(sys.modules["distributed"], {"security": Security(require_encryption=True)})
    assert encrypted["protocol"] == "tls://" and encrypted["security"].require_encryption
    assert gpuglue.dask._connection(sys.modules["distributed"], {})["protocol"] == "tcp://"


async def check_asynchronous_client():
    async with Client(n_workers=1, threads_per_worker=1, dashboard_address=None, asynchronous=True) as client:
        assert list((await client.run(family)).values()) == [("pickle", False)]
        await gpuglue.dask.register(client)
        assert list((await client.run(family)).values()) == [("dask", False)]


def main():
    check_refusals()
    check_scale()
    check_arguments_of_preloads()
    check_encryption()
    check_configured_preload()
    asyncio.run(check_asynchronous_client())
    print("done")


if __name__ == "__main__":
    main()
