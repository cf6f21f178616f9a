"""What the parts of comm.py share: results, communicators of their ranks, and the library called directly."""

import ctypes
import os

RESULTS = {}


def say(*words):
    if int(os.environ.get("RANK", 0)) == 0:
        print(*words, flush=True)


def keep(name, value):
    RESULTS[name] = value
    say(f"  {name}: {value}")


def communicator(port, **options):
    import gpuglue as gg

    rank, backend = int(os.environ["RANK"]), os.environ.get("BENCH_BACKEND", "cuda")
    if "device" not in options:  # ranks may share one with the transport 'staged'
        options["device"] = f"{backend}:{rank % len(gg.devices(backend))}"
    options.setdefault("timeout", 60)
    return gg.Communicator(rank, int(os.environ["WORLD_SIZE"]), f"127.0.0.1:{int(os.environ['BENCH_PORT']) + port}", **options)


class Raw:
    """The library of a communicator, called directly."""

    def __init__(self, comm, path):
        self.comm, self.library = comm, ctypes.CDLL(comm.library[0])
        self.loops = ctypes.CDLL(path)
        self.loops.raw_all_reduce.restype = self.loops.raw_all_gather.restype = ctypes.c_int64

    def address(self, name):
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p)

    def all_reduce(self, x, out, stream, calls):
        arguments = ctypes.c_void_p(x.ptr), ctypes.c_void_p(out.ptr), ctypes.c_size_t(x.size), 7, 0, ctypes.c_void_p(self.comm.handle)
        return self.loops.raw_all_reduce(self.address("ncclAllReduce"), *arguments, ctypes.c_void_p(stream.handle), calls)

    def all_gather(self, x, out, stream, calls):
        arguments = ctypes.c_void_p(x.ptr), ctypes.c_void_p(out.ptr), ctypes.c_size_t(x.size), 7, ctypes.c_void_p(self.comm.handle)
        return self.loops.raw_all_gather(self.address("ncclAllGather"), *arguments, ctypes.c_void_p(stream.handle), calls)

    def reduce_scatter(self, x, out, stream, calls):
        arguments = ctypes.c_void_p(x.ptr), ctypes.c_void_p(out.ptr), ctypes.c_size_t(out.size), 7, 0, ctypes.c_void_p(self.comm.handle)
        return self.loops.raw_all_reduce(self.address("ncclReduceScatter"), *arguments, ctypes.c_void_p(stream.handle), calls)
