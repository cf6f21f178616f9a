"""The program of test_dask.py in which a Dask array has chunks on devices, and a library of C works on them:  dask_array_program.py LIBRARY"""

import ctypes
import sys

import dask.array as da
import numpy as np
from dask.distributed import Client

import gpuglue as gg
import gpuglue.dask


def scale(chunk, path, factor):
    assert type(chunk) is gg.GPUArray and chunk.device == gg.current_device()
    result = chunk.copy()
    gg.synchronize(result.device)
    ctypes.CDLL(path).scale(result, ctypes.c_size_t(result.size), ctypes.c_double(factor))
    return result


def download(chunk):
    return chunk.get()


def check_chunks_are_joined(x, host):
    for whole in (x.compute(), x.rechunk((5, 4)).compute(), x.rechunk((5, 7)).blocks[0, 0].compute()):
        assert type(whole) is gg.GPUArray and (whole.get() == host).all()


def main(path):
    host = np.arange(35.0).reshape(5, 7)
    kind = {"dtype": "f8", "meta": np.empty((0, 0))}
    with gpuglue.dask.LocalCluster([f"{gg.default_backend()}:0"] * 2, dashboard_address=None) as cluster, Client(cluster) as client:
        x = da.from_array(host, chunks=(2, 3)).map_blocks(gg.to_gpu, **kind)
        check_chunks_are_joined(x, host)
        if gg.default_backend() != "host":  # whose memory the library cannot use
            return
        y = client.persist(x.map_blocks(scale, path, 3.0, **kind))
        assert {type(block) for block in client.gather(client.futures_of(y))} == {gg.GPUArray}
        assert (y.map_blocks(download, **kind).compute() == 3 * host).all()
        assert (x.map_blocks(download, **kind).sum(axis=0).compute() == host.sum(axis=0)).all()


if __name__ == "__main__":
    main(sys.argv[1])
    print("done")
