"""The program of test_dask.py that starts a cluster with one worker for each of two devices:  dask_cluster_program.py DEVICE DEVICE"""

import os
import sys

import numpy as np
from dask.distributed import Client

import gpuglue as gg
import gpuglue.dask

N = 1 << 16


def about():
    device = gg.current_device()
    names = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPUGLUE_DEVICE")
    return device.backend, device.ordinal, device.uuid, {name: os.environ[name] for name in names if name in os.environ}


def family():
    from distributed.protocol import serialize

    return serialize(gg.ones(3))[0]["serializer"]


def make():
    return gg.arange(N, dtype="f8")


def where_and_sum(array):
    return array.device.uuid, array.device == gg.current_device(), float(array.get().sum())


def ways():
    from gpuglue import _offers

    return _offers.taken


def main(names):
    devices = [gg.Device(name) for name in names]
    with gpuglue.dask.LocalCluster(names, dashboard_address=None) as cluster, Client(cluster) as client:
        workers = client.scheduler_info()["workers"]
        address = {info["name"]: address for address, info in workers.items()}
        assert sorted(address) == [0, 1], workers
        for number, device in enumerate(devices):
            backend, ordinal, uuid, variables = client.submit(about, workers=[address[number]], pure=False).result()
            assert (backend, uuid) == (device.backend, device.uuid), (variables, uuid)
            assert variables["GPUGLUE_DEVICE"] == f"{backend}:{ordinal}", variables
            assert workers[address[number]]["resources"] == ({} if backend == "host" else {"GPU": 1})
            print(*(f"{name}={value}" for name, value in variables.items()))
            assert client.submit(family, workers=[address[number]], pure=False).result() == "dask"
        made = client.submit(make, workers=[address[0]])
        used = client.submit(where_and_sum, made, workers=[address[1]])
        total = float(np.arange(N, dtype="f8").sum())
        assert used.result() == (devices[1].uuid, True, total), used.result()
        assert client.submit(ways, workers=[address[1]], pure=False).result() == {"here": 0, "handle": 1, "socket": 0}
        assert float(made.result().get().sum()) == total
    print("done")


if __name__ == "__main__":
    main(sys.argv[1:])
