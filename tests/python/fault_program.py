"""For test_fault_sweep.py: uses what Python has, goes on after each failure, and prints the classes of all."""

import sys

import numpy as np

import gpuglue as gg

failures = []


def attempt(call, *arguments, **options):
    """None where it fails; what is no failure of the device's goes up."""
    try:
        return call(*arguments, **options)
    except (gg.Error, MemoryError) as error:
        if not isinstance(error, gg.Error) or not str(error):
            raise
        failures.append(type(error).__name__)
        return None


def work(device):
    stream = attempt(gg.Stream, device, nonblocking=True)
    start, stop = (attempt(gg.Event, device, timing=True) for _ in range(2))
    block = attempt(gg.alloc, 4096, device=device)
    small = attempt(gg.to_gpu, np.arange(64, dtype=np.int32), device=device)
    large = attempt(gg.to_gpu, np.ones(1 << 18, dtype=np.float32), device=device)
    pinned = attempt(gg.empty_pinned, 1 << 18, np.float32)
    attempt(device.memory_info)
    if stream and start and stop and attempt(start.record, stream) is None and large is not None:
        attempt(large.fill, 2.0, stream=stream)
        attempt(stop.record, stream)
        attempt(stop.synchronize)
        attempt(stream.wait, stop)
    if large is not None and stream:
        attempt(large.get)
        attempt(large.get_async, stream=stream)
        if pinned is not None:
            attempt(gg.copy, large, pinned, stream=stream)
        attempt(stream.synchronize)
    if small is not None:
        before = len(failures)
        got = attempt(small.get)
        if got is not None and not failures[:before] and got.tolist() != list(range(64)):
            sys.exit("wrong data")
    if block:
        attempt(block.close)
    attempt(device.synchronize)


device = attempt(lambda: gg.Device(f"{sys.argv[1]}:0"))
if device is not None:
    attempt(lambda: (device.name, device.arch, device.pci_bus_id, device.total_memory))
    work(device)
print(*failures)
