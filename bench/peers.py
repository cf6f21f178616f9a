"""The same work by other packages, if they are installed, measured in the same way. For comparison only."""

import importlib
from dataclasses import dataclass

import numpy as np

import gpuglue as gg
from rows import Measurement, measured
from timing import BURSTS, bursts_of, nanoseconds

NOTHING = 'extern "C" __global__ void nothing() {}'
CUPY = {
    "current device": "cp.cuda.runtime.getDevice()",
    "event query": "event.done",
    "stream query": "stream.done",
    "stream synchronize, idle": "stream.synchronize()",
    "event record": "event.record(stream)",
    "wait for event": "stream.wait_event(event)",
    "event create + close": "cp.cuda.Event(disable_timing=True)",
    "H2D, 8 bytes": "array8.set(host8, stream)",
    "D2H, 8 bytes": "array8.get(stream, out=host8)",
    "to_gpu + get of 1 KiB": "cp.asarray(host1k).get()",
    "alloc + close, 1 MiB": "cp.cuda.alloc(1 << 20)",
    "launch": "kernel((1,), (32,), ())",
}
TORCH = {
    "current device": "torch.cuda.current_device()",
    "event query": "event.query()",
    "stream query": "stream.query()",
    "stream synchronize, idle": "stream.synchronize()",
    "event record": "event.record(stream)",
    "wait for event": "stream.wait_event(event)",
    "H2D, 8 bytes": "array8.copy_(host8)",
    "D2H, 8 bytes": "host8.copy_(array8)",
    "to_gpu + get of 1 KiB": "host1k.cuda().cpu()",
    "alloc + close, 1 MiB": "torch.empty(1 << 20, dtype=torch.uint8, device='cuda')",
}
CUDA_CORE = {
    "stream synchronize, idle": "stream.sync()",
    "event query": "event.is_done",
    "event record": "stream.record(event)",
    "wait for event": "stream.wait(event)",
    "alloc + close, 1 MiB": "device.allocate(1 << 20, stream=stream).close()",
    "launch": "launch(stream, one_warp, kernel)",
}


def cupy_names():
    """The names that CuPy's statements use."""
    cp = importlib.import_module("cupy")
    stream, event = cp.cuda.Stream(non_blocking=True), cp.cuda.Event(disable_timing=True)
    event.record(stream)
    stream.use()  # launches take no stream
    return {"cp": cp, "stream": stream, "event": event, "host8": np.ones(1), "host1k": np.ones(128),
            "array8": cp.ones(1), "kernel": cp.RawKernel(NOTHING, "nothing")}, stream.synchronize


def torch_names():
    """The names that PyTorch's statements use."""
    torch = importlib.import_module("torch")
    stream, event = torch.cuda.Stream(), torch.cuda.Event()
    event.record(stream)
    names = {"torch": torch, "stream": stream, "event": event, "array8": torch.ones(1, dtype=torch.float64).cuda()}
    return {**names, "host8": torch.ones(1, dtype=torch.float64), "host1k": torch.ones(128)}, torch.cuda.synchronize


def cuda_core_stream():
    """cuda.core's device, a stream of it, and an event."""
    core = importlib.import_module("cuda.core")
    device = core.Device()
    device.set_current()
    stream = device.create_stream()
    return {"device": device, "stream": stream, "event": stream.record()}, stream.sync


def cuda_core_names():
    """The names that cuda.core's statements use."""
    names, settle = cuda_core_stream()
    core = importlib.import_module("cuda.core")
    options = core.ProgramOptions(arch=f"sm_{names['device'].arch}")
    kernel = core.Program(NOTHING, "c++", options).compile("cubin").get_kernel("nothing")
    return {**names, "launch": core.launch, "kernel": kernel, "one_warp": core.LaunchConfig(grid=1, block=32)}, settle


PEERS = {"cupy": (cupy_names, CUPY), "torch": (torch_names, TORCH), "cuda.core": (cuda_core_names, CUDA_CORE)}


def measure_statement(statement, names, settle, bursts):
    """Nanoseconds, or None if this version of the package does not have the call."""
    try:
        return nanoseconds(statement, names, settle, bursts)
    except Exception as error:  # of any type: the package is not ours
        print(f"  {statement}: {error}")
        return None


def measure_peers(bursts=500):
    """Nanoseconds of each row by each package that is installed and has a device, and the reasons of the others."""
    results, absent = {}, {}
    for name, (prepare, statements) in PEERS.items():
        try:
            names, settle = prepare()
        except Exception as error:  # not installed, no device, or a missing library
            absent[name] = str(error).splitlines()[0] if str(error) else type(error).__name__
            continue
        results[name] = {
            row: measure_statement(statement, names, settle, bursts) for row, statement in statements.items()
        }
    return results, absent


# ---- rows whose target is cuda.core's own figure: both alternate ----


@dataclass
class AgainstRow:
    """A row of both."""

    name: str
    statement: str  # gpuglue's
    best = min  # of the figures of several processes
    limit = 0  # the target counts from cuda.core's figure

    def target(self, sides):
        """The target, in nanoseconds."""
        return sides["cuda.core"]

    def excess(self, own, target):
        """How far a figure is beyond the target."""
        return own - target


AGAINST = [AgainstRow("event record", "event.record(stream)"), AgainstRow("wait for event", "stream.wait(event)")]


def against_cuda_core(device, plan, runs=1, chosen=None):
    """Row → its parts (rows.py) and None; or no rows, and the reason."""
    try:
        names, settle = cuda_core_stream()
    except Exception as error:  # not installed, no device, or a missing library
        return {}, str(error).splitlines()[0] if str(error) else type(error).__name__
    stream, event = gg.Stream(device, nonblocking=True), gg.Event(device)
    event.record(stream)
    measurements = []
    for row in (row for row in AGAINST if chosen is None or row.name in chosen):
        sides = {"cuda.core": bursts_of(CUDA_CORE[row.name], names, settle),
                 "gpuglue": bursts_of(row.statement, {"event": event, "stream": stream}, stream.synchronize)}
        measurements.append(Measurement(row, sides, plan.rounds, plan.bursts or BURSTS))
    return measured(measurements, runs), None
