"""The program of test_dask.py that serialises arrays of the default backend in one process."""

import pickle

import dask
import numpy as np
from dask.sizeof import sizeof
from distributed.protocol import deserialize, serialize

import gpuglue as gg
import gpuglue.dask

PAIR = np.dtype([("count", "<i4"), ("position", ">f8", (2,))])
DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", ">f8", "c8", "c16", "M8[s]", "S3", "U2", "V7", PAIR]


def received(array):
    """What another process would get: the frames as Dask reads them, in memory of its own."""
    header, frames = serialize(array)
    assert header["serializer"] == "dask", header
    assert sum(memoryview(frame).nbytes for frame in frames) == array.nbytes  # the elements, and nothing else
    return deserialize(header, [bytearray(frame) for frame in frames])


def check(array):
    there = received(array)
    assert type(there) is gg.GPUArray and there.device == gg.current_device() and there.flags.writeable
    assert (there.shape, there.dtype) == (array.shape, array.dtype)
    assert there.get().tobytes() == array.get().tobytes()
    return there


def bytes_of(shape, dtype):
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.resize(np.arange(1, 98, dtype="u1"), count).view(dtype).reshape(shape) if count else np.empty(shape, dtype)


def main():
    assert serialize(gg.ones(3))[0]["serializer"] == "pickle"
    gpuglue.dask.register()
    gpuglue.dask.register()  # does nothing
    for dtype in DTYPES:
        host = np.zeros((3, 4), "?") if dtype == "?" else bytes_of((3, 4), dtype)
        if dtype == "U2":
            host = np.full((3, 4), "ab")
        check(gg.to_gpu(host))
    for shape in [(), (0,), (3, 0, 2), (1,), (2, 3, 4)]:
        check(gg.to_gpu(bytes_of(shape, "f8")))
    cube = gg.to_gpu(bytes_of((4, 5, 6), "i4"))
    assert check(cube.T).strides == cube.T.strides  # the order is kept
    for view in (cube[::2], cube[:, 1:3], cube[..., ::-1], cube[1:, 0], cube.T[1:]):
        assert check(view).flags.c_contiguous
        assert sizeof(view) == view.nbytes
    fixed = bytes_of((5,), "f4")
    fixed.flags.writeable = False
    check(gg.asarray(fixed))
    if gg.current_device().backend == "host":
        frame = memoryview(serialize(cube)[1][0])
        assert np.asarray(frame).ctypes.data == cube.ptr  # not a copy
    outside(cube)
    check_refusals()
    print("done")


def outside(array):
    """Pickle 5 without Dask: the elements are a buffer beside the pickle, as Ray and multiprocessing take them."""
    buffers = []
    inside = pickle.dumps(array, protocol=5, buffer_callback=buffers.append)
    assert len(inside) < 1000 and [buffer.raw().nbytes for buffer in buffers] == [array.nbytes]
    shared = [memoryview(bytes(buffer.raw())) for buffer in buffers]  # that cannot be written, as in Ray's object store
    there = pickle.loads(inside, buffers=shared)
    assert there.flags.writeable and there.get().tobytes() == array.get().tobytes()


def refusal(devices):
    try:
        gpuglue.dask.LocalCluster(devices)
    except gg.Error as error:
        return str(error)
    raise AssertionError("it started")


def check_refusals():
    assert "devices is [], which has no device" in refusal([])
    assert "no such backend" in refusal("no such backend")
    assert "no device 7" in refusal(["host:7"])
    with dask.config.set({"distributed.worker.multiprocessing-method": "fork"}):
        assert "is 'fork', expected 'spawn'" in refusal(["host:0"])


if __name__ == "__main__":
    main()
