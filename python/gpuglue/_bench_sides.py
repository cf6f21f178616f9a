"""What `gpuglue bench` measures: the same calls and copies by gpuglue, CuPy and PyTorch.

A side has two methods: `calls` returns {row: function} and a function that waits for all of it; `copies` returns
{row: function} for a size, each of which waits itself."""

import importlib

import gpuglue

SMALL, LARGE = 1 << 10, 1 << 20  # bytes
CUDA_KERNEL = 'extern "C" __global__ void nothing() {}'
KERNELS = {"cuda": CUDA_KERNEL, "hip": CUDA_KERNEL, "host": CUDA_KERNEL, "ze": "__kernel void nothing() {}"}


def host_array(nbytes):
    import numpy as np

    return np.ones(nbytes, dtype=np.uint8)


class Gpuglue:
    name = "gpuglue"

    def __init__(self, device):
        self.device = device

    def calls(self):
        device = self.device
        stream, event = gpuglue.Stream(device), gpuglue.Event(device)
        small, large = host_array(SMALL), host_array(LARGE)
        out, array = large.copy(), gpuglue.to_gpu(large, device)
        rows = {
            "record an event": lambda: stream.record(event),
            "query a stream": lambda: stream.done,
            "synchronize an idle stream": stream.synchronize,
            "allocate and free 1 MiB": lambda: gpuglue.alloc(LARGE, device).close(),
            "1 KiB to the device and back": lambda: gpuglue.to_gpu(small, device).get(),
            "1 MiB to the device": lambda: array.set(large),
            "1 MiB from the device": lambda: array.get(out),
        }
        return rows | self.launch(stream), stream.synchronize

    def launch(self, stream):
        """The row of a launch, or nothing where no compiler of this backend is installed."""
        try:
            image = gpuglue.compile(KERNELS.get(self.device.backend, CUDA_KERNEL), backend=self.device.backend)
            kernel = gpuglue.Module(image, self.device)["nothing"]
        except gpuglue.Error:
            return {}
        return {"launch an empty kernel": lambda: kernel(grid=1, block=32, stream=stream)}

    def copies(self, nbytes):
        memory, other = (gpuglue.alloc(nbytes, self.device) for _ in range(2))
        pageable, stream = host_array(nbytes), gpuglue.current_stream(self.device)

        def waiting(target, source):
            return lambda: (gpuglue.copy(target, source), stream.synchronize())

        rows = {"to device": waiting(memory, pageable), "from device": waiting(pageable, memory), "on device": waiting(other, memory)}
        try:
            pinned = gpuglue.alloc_pinned(nbytes, self.device)
        except (gpuglue.UnsupportedError, gpuglue.OutOfMemoryError):
            return rows
        return rows | {"pinned to device": waiting(memory, pinned), "pinned from device": waiting(pinned, memory)}


class CuPy:
    name = "CuPy"

    def __init__(self, device):
        self.cupy = importlib.import_module("cupy")
        self.cupy.cuda.Device(device.ordinal).use()

    def calls(self):
        cp = self.cupy
        stream, event = cp.cuda.Stream(non_blocking=True), cp.cuda.Event(disable_timing=True)
        small, large = host_array(SMALL), host_array(LARGE)
        out, array = large.copy(), cp.asarray(large)
        kernel = cp.RawKernel(CUDA_KERNEL, "nothing")
        rows = {
            "record an event": lambda: event.record(stream),
            "query a stream": lambda: stream.done,
            "synchronize an idle stream": stream.synchronize,
            "allocate and free 1 MiB": lambda: cp.cuda.alloc(LARGE),
            "1 KiB to the device and back": lambda: cp.asarray(small).get(),
            "1 MiB to the device": lambda: array.set(large),
            "1 MiB from the device": lambda: array.get(out=out),
            "launch an empty kernel": lambda: kernel((1,), (32,), ()),
        }
        return rows, cp.cuda.Device().synchronize

    def copies(self, nbytes):
        cp = self.cupy
        pageable, array = host_array(nbytes), cp.empty(nbytes, "u1")
        wait = cp.cuda.Device().synchronize
        return {"to device": lambda: (array.set(pageable), wait()), "from device": lambda: array.get(out=pageable)}


class PyTorch:
    name = "PyTorch"

    def __init__(self, device):
        self.torch = importlib.import_module("torch")
        self.torch.cuda.set_device(device.ordinal)

    def calls(self):
        torch = self.torch
        stream, event = torch.cuda.Stream(), torch.cuda.Event()
        small, large = (torch.ones(nbytes, dtype=torch.uint8) for nbytes in (SMALL, LARGE))
        out, array = torch.empty_like(large), large.cuda()
        rows = {
            "record an event": lambda: event.record(stream),
            "query a stream": stream.query,
            "synchronize an idle stream": stream.synchronize,
            "allocate and free 1 MiB": lambda: torch.empty(LARGE, dtype=torch.uint8, device="cuda"),
            "1 KiB to the device and back": lambda: small.cuda().cpu(),
            "1 MiB to the device": lambda: array.copy_(large),
            "1 MiB from the device": lambda: out.copy_(array),
        }
        return rows, torch.cuda.synchronize

    def copies(self, nbytes):
        torch = self.torch
        pageable, array = torch.ones(nbytes, dtype=torch.uint8), torch.empty(nbytes, dtype=torch.uint8, device="cuda")
        wait = torch.cuda.synchronize
        return {"to device": lambda: (array.copy_(pageable), wait()), "from device": lambda: pageable.copy_(array)}


def sides_of(device):
    """gpuglue, the others that work on this device, and {name: reason} for those that do not."""
    sides, absent = [Gpuglue(device)], {}
    for peer in (CuPy, PyTorch):
        if device.backend not in ("cuda", "hip"):
            absent[peer.name] = f"not compared on {device.backend}"
            continue
        try:
            side = peer(device)
            side.copies(SMALL)["to device"]()
        except Exception as error:  # of any type: not installed, no device, or another vendor's build
            absent[peer.name] = (str(error).splitlines() or [type(error).__name__])[0]
        else:
            sides.append(side)
    return sides, absent
