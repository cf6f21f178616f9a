"""The program of test_dask.py in which a worker holds more than its limits of device and host memory:  dask_spill_program.py DEVICE"""

import sys

import dask
from dask.distributed import Client

import gpuglue as gg
import gpuglue.dask

MIB = 1 << 20
COUNT = 8  # arrays of a MiB: two in device memory, two in host memory, the others on disk


def make(number):
    return gg.full(MIB // 8, float(number))


def check(array, number):
    assert array.device == gg.current_device()
    return bool((array.get() == number).all())


def total(arrays):
    return sum(float(array.get().sum()) for array in arrays)


def state(dask_worker):
    store = dask_worker.data
    return repr(type(store)), store.device_memory_limit, store.device_bytes, store.host_bytes, len(store.slow)


def main(device):
    with dask.config.set({"distributed.worker.memory.target": 1 / 1024, "distributed.worker.memory.spill": False}):
        limit = f"{int(2.5 * 1024)} MiB"  # of which a 1024th is in host memory
        cluster = gpuglue.dask.LocalCluster(device, device_memory_limit="2 MiB", memory_limit=limit, dashboard_address=None)
    with cluster, Client(cluster) as client:
        made = client.map(make, range(COUNT), pure=False)
        client.gather(client.map(check, made, range(COUNT), pure=False))
        (kind, limit, on_device, in_host, on_disk), = client.run(state).values()
        assert "DeviceStore" in kind and limit == 2 * MIB and on_device <= limit and in_host <= 2.5 * MIB and on_disk >= COUNT - 5, (kind, on_device, in_host, on_disk)
        assert all(client.gather(client.map(check, made, range(COUNT), pure=False)))
        assert client.submit(total, made[:3], pure=False).result() == (0 + 1 + 2) * MIB / 8  # more at once than the limit
        assert [float(array.get()[0]) for array in client.gather(made)] == list(range(COUNT))
        del made
    print("done")


if __name__ == "__main__":
    main([gg.Device(sys.argv[1])])
