"""Two ranks, each a thread with a device: CuPy creates the communicators, and gpuglue uses their handles."""

import ctypes
import sys
import threading

from cupy.cuda import nccl

import gpuglue as gg

SIZE = 2
driver = ctypes.CDLL("libcuda.so.1")


def make_current(rank):
    """CuPy's runtime cannot do it here: it is not that of the simulated driver."""
    context = ctypes.c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), rank) == 0
    assert driver.cuCtxSetCurrent(context) == 0


def theirs_adds(theirs, x, device):
    stream = gg.Stream(device)
    stream.wait(gg.current_stream(device))
    theirs.allReduce(x.ptr, x.ptr, x.size, nccl.NCCL_FLOAT64, nccl.NCCL_SUM, stream.handle)
    x.record_use(stream)


def work(rank, identity, done):
    device = gg.Device(f"cuda:{rank}")
    make_current(rank)
    theirs = nccl.NcclCommunicator(SIZE, identity, rank)
    with device:
        x = gg.full(1000, rank + 1.0)
        with gg.Communicator.from_handle(theirs.comm, device) as ours:
            assert (ours.rank, ours.size, ours.transport) == (theirs.rank_id(), theirs.size(), "nccl")
            assert ours.handle == theirs.comm
            ours.all_reduce(x)
            assert (x.get() == 3).all()
            theirs_adds(theirs, x, device)
            ours.all_reduce(x)
            assert (x.get() == 12).all()
        theirs_adds(theirs, x, device)  # gpuglue has not destroyed what CuPy created
        assert (x.get() == 24).all()
    theirs.destroy()
    done.append(rank)


if __name__ == "__main__":
    assert nccl.available
    done = []
    threads = [threading.Thread(target=work, args=(rank, identity, done)) for identity in [nccl.get_unique_id()] for rank in range(SIZE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if sorted(done) != list(range(SIZE)):
        sys.exit(f"done: {done}")
    print("done")
