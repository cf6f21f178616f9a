"""The same work by other packages, if they are installed, measured in the same way. For comparison only."""

import importlib

import numpy as np

import gpuglue as gg
from timing import BURSTS, ROUNDS, bursts_of, in_turn, nanoseconds, spread
from verdict import interval, rounds_of, verdict

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


def cuda_core_names():
    """The names that cuda.core's statements use."""
    core = importlib.import_module("cuda.core")
    device = core.Device()
    device.set_current()
    stream = device.create_stream()
    options = core.ProgramOptions(arch=f"sm_{device.arch}")
    kernel = core.Program(NOTHING, "c++", options).compile("cubin").get_kernel("nothing")
    return {"device": device, "stream": stream, "event": stream.record(), "launch": core.launch, "kernel": kernel,
            "one_warp": core.LaunchConfig(grid=1, block=32)}, stream.sync


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

AGAINST = {"event record": "event.record(stream)", "wait for event": "stream.wait(event)"}


def against_cuda_core(device, rounds=ROUNDS):
    """Row → the figures of both, as in bench.json; and the reason if there are none."""
    try:
        names, settle = cuda_core_names()
    except Exception as error:  # not installed, no device, or a missing library
        return {}, str(error).splitlines()[0] if str(error) else type(error).__name__
    stream, event = gg.Stream(device, nonblocking=True), gg.Event(device)
    event.record(stream)
    rows = {}
    for row, statement in AGAINST.items():
        sides = {"cuda.core": bursts_of(CUDA_CORE[row], names, settle),
                 "gpuglue": bursts_of(statement, {"event": event, "stream": stream}, stream.synchronize)}
        times = in_turn(sides, rounds, BURSTS)
        both = zip(*(rounds_of(times[side], BURSTS) for side in ("gpuglue", "cuda.core")), strict=True)
        excesses = [own - other for own, other in both]
        rows[row] = {side: spread(found) for side, found in times.items()}
        rows[row] |= {"result": verdict(excesses), "excess": {"interval": interval(excesses)}}
    return rows, None
