"""Arrays between workers over ucxx: through the connection, since ucxx does not tell a serialiser the recipient."""

import sys

import numpy as np
from distributed import Client

import gpuglue as gg
import gpuglue.dask

SMALL, LARGE = 100, 1 << 17


def make(n):
    return gg.arange(float(n))


def check(array, n):
    from gpuglue import _offers

    assert isinstance(array, gg.GPUArray) and (array.get() == np.arange(n)).all(), array
    return dict(_offers.taken)


def main(device):
    with gpuglue.dask.LocalCluster([device] * 2, protocol="ucxx", dashboard_address=None) as cluster, Client(cluster) as client:
        assert cluster.scheduler_address.startswith("ucxx://"), cluster.scheduler_address
        first, second = client.scheduler_info()["workers"]
        for n in (SMALL, LARGE):
            made = client.submit(make, n, workers=[first], pure=False)
            taken = client.submit(check, made, n, workers=[second], pure=False).result()
            assert taken == {"here": 0, "handle": 0, "socket": 0}, taken
            assert (made.result().get() == np.arange(n)).all()  # to the client
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
