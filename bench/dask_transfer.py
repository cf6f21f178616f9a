"""An array that moves between two Dask workers of one machine, by an IPC handle and by the connection, and one of NumPy:  dask_transfer.py [DEVICE [MIB]]

Prints a table of seconds. The last line compares the connection with its bound: the time of NumPy's array, and a copy from the device to pinned
memory and one back. All take turns in one run, and the fastest of each counts.
"""

import sys
import time

import gpuglue as gg
import gpuglue.dask

ROUNDS = 3
HANDLE, CONNECTION, NUMPY, DOWN, UP = "by handle", "by the connection", "NumPy's by the connection", "copy to pinned memory", "copy from pinned memory"


def make(nbytes, device):
    import numpy as np

    array = gg.ones(nbytes // 8, "f8") if device else np.ones(nbytes // 8)
    gg.synchronize()
    return array


def touch(array):
    last = array[-1:]
    return float(last.get()[0] if isinstance(array, gg.GPUArray) else last[0])


def use_handles(wanted):
    from gpuglue import _dask_handles

    _dask_handles.NBYTES = 0 if wanted else 1 << 62


def copies(array):
    """Seconds of a copy to pinned memory, and of one from it."""
    pinned, other, times = gg.empty_pinned(array.shape, array.dtype), gg.empty_like(array), []
    for copy in (lambda: array.get(pinned), lambda: other.set(pinned)):
        copy()
        gg.synchronize()
        start = time.perf_counter()
        copy()
        gg.synchronize()
        times.append(time.perf_counter() - start)
    return times


def moved(client, first, second, nbytes, device):
    """Seconds from the request until the second worker has read an element, and the array on the first one."""
    made = client.submit(make, nbytes, device, workers=[first], pure=False)
    client.submit(touch, made, workers=[first], pure=False).result()
    start = time.perf_counter()
    assert client.submit(touch, made, workers=[second], pure=False).result() == 1.0
    return time.perf_counter() - start, made


def measure(client, first, second, nbytes):
    times = {}
    for name in (HANDLE, CONNECTION, NUMPY):
        client.run(use_handles, name == HANDLE)
        times[name], made = moved(client, first, second, nbytes, name != NUMPY)
        if name == CONNECTION:
            times[DOWN], times[UP] = client.submit(copies, made, workers=[first], pure=False).result()
        del made
    return times


def report(device, nbytes, rounds):
    best = {name: min(times[name] for times in rounds) for name in rounds[0]}
    bound = best[NUMPY] + best[DOWN] + best[UP]
    print(f"{nbytes >> 20} MiB between two workers on {device}, seconds:\n")
    for name, seconds in {**best, "NumPy's and the two copies": bound}.items():
        print(f"| {name:26} | {seconds:8.4f} |")
    print(f"\nby the connection: {best[CONNECTION] / bound:.2f} of NumPy's and the two copies, {best[CONNECTION] / best[HANDLE]:.1f} times as long as by handle")


def main():
    from dask.distributed import Client

    device, nbytes = sys.argv[1] if len(sys.argv) > 1 else "host:0", (int(sys.argv[2]) if len(sys.argv) > 2 else 1024) << 20
    devices = [device] * 2 if device.count(":") else list(gg.devices(device))[:2]
    with gpuglue.dask.LocalCluster(devices, dashboard_address=None, memory_limit=0) as cluster, Client(cluster) as client:
        first, second = client.scheduler_info()["workers"]
        report(device, nbytes, [measure(client, first, second, nbytes) for _ in range(ROUNDS)])


if __name__ == "__main__":
    main()
