"""An array that moves between two Dask workers of one machine, by an IPC handle and by the connection:  dask_transfer.py [DEVICE [MIB]]

Prints seconds of both and their ratio. The two ways alternate, and the fastest of each counts.
"""

import sys
import time

import gpuglue as gg
import gpuglue.dask


def make(nbytes):
    array = gg.ones(nbytes // 8, "f8")
    gg.synchronize()
    return array


def touch(array):
    return float(array[-1:].get()[0])


def use_handles(wanted):
    from gpuglue import _dask_handles

    _dask_handles.NBYTES = 0 if wanted else 1 << 62


def seconds(client, first, second, nbytes):
    made = client.submit(make, nbytes, workers=[first], pure=False)
    client.submit(touch, made, workers=[first], pure=False).result()
    start = time.perf_counter()
    assert client.submit(touch, made, workers=[second], pure=False).result() == 1.0
    return time.perf_counter() - start


def main():
    from dask.distributed import Client

    device, nbytes = sys.argv[1] if len(sys.argv) > 1 else "host:0", (int(sys.argv[2]) if len(sys.argv) > 2 else 1024) << 20
    devices = [device] * 2 if device.count(":") else list(gg.devices(device))[:2]
    with gpuglue.dask.LocalCluster(devices, dashboard_address=None, memory_limit=0) as cluster, Client(cluster) as client:
        first, second = client.scheduler_info()["workers"]
        times = {True: [], False: []}
        for _ in range(3):
            for handles in times:
                client.run(use_handles, handles)
                times[handles].append(seconds(client, first, second, nbytes))
    handle, connection = min(times[True]), min(times[False])
    print(f"{nbytes >> 20} MiB between two workers on {device}: by handle {handle:.3f} s, by the connection {connection:.3f} s, {connection / handle:.1f} times as long")


if __name__ == "__main__":
    main()
