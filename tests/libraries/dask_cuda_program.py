"""dask-cuda beside gpuglue.dask: their order of import, families of serialisers, the store of dask-cuda's workers."""

import importlib
import sys

import numpy as np
from distributed import Client, LocalCluster
from distributed.protocol import deserialize, serialize
from distributed.protocol.cuda import cuda_serialize

import gpuglue as gg

MIB = 1 << 20
COUNT = 8
FAMILIES = {"tcp": ("dask", "pickle"), "ucxx": ("cuda", "dask", "pickle")}


def make(number):
    return gg.full(MIB // 8, float(number))


def check(array, number):
    assert isinstance(array, gg.GPUArray) and array.nbytes == MIB, array
    return bool((array.get() == number).all())


def state(dask_worker):
    store = dask_worker.data
    host = sum(type(value).__name__ == "DeviceSerialized" for value in store.host.values())
    return type(store).__name__, len(store.device), host, len(store.disk)


def check_families():
    from dask_cuda.is_device_object import is_device_object

    x = gg.arange(1000.0)
    assert is_device_object(x)
    for families in FAMILIES.values():
        header, frames = serialize(x, serializers=families)
        assert header["serializer"] == "dask" and header["sub-header"].keys() == {"shape", "dtype", "transposed"}, header
        assert [len(frame) for frame in frames] == [x.nbytes]
        back = deserialize(header, frames, deserializers=families)
        assert isinstance(back, gg.GPUArray) and (back.get() == np.arange(1000)).all()
    assert gg.GPUArray not in cuda_serialize._lookup  # its frames would be those of RMM


def check_cluster():
    from dask_cuda.device_host_file import DeviceHostFile

    store = (DeviceHostFile, {"device_memory_limit": 2 * MIB + MIB // 2, "memory_limit": 3 * MIB})
    workers = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": 0, "preload": ["dask_cuda", "gpuglue.dask"]}
    with LocalCluster(**workers, data=store, dashboard_address=None) as cluster, Client(cluster) as client:
        first, second = client.scheduler_info()["workers"]
        made = client.map(make, range(COUNT), workers=[first], pure=False)
        assert all(client.gather(client.map(check, made, range(COUNT), workers=[first], pure=False)))
        kind, on_device, in_host, on_disk = client.run(state, workers=[first])[first]
        assert kind == "DeviceHostFile" and on_device <= 2 and in_host <= 3 and on_device + in_host + on_disk >= COUNT, (on_device, in_host, on_disk)
        assert on_disk and in_host
        assert all(client.gather(client.map(check, made, range(COUNT), workers=[second], pure=False)))  # sent to another worker
        del made


if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        importlib.import_module(name)
    gg.dask.register()
    check_families()
    check_cluster()
    print("done")
