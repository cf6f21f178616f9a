"""For test_fault_sweep.py: uses the Python API once per fault, each time in a child, and continues after each failure.

    fault_program.py BACKEND DIRECTORY RULE …      (RULE: as GPUGLUE_SIM_FAIL takes it; none: no fault)

The children fork before gpuglue has loaded any driver. A child's report is in DIRECTORY under its number; its
exit status and the classes of its failures are a line of JSON here.
"""

import json
import os
import pathlib
import sys

import numpy as np

import gpuglue as gg

failures = []
AT_ONCE = 4


def attempt(call, *arguments, **options):
    """None if it fails; an error that is not a failure of the device is raised."""
    try:
        return call(*arguments, **options)
    except gg.Error as error:
        if not str(error):
            raise
        failures.append(type(error).__name__)
        return None


def check(small):
    before = len(failures)
    got = attempt(small.get)
    if got is not None and not before and got.tolist() != list(range(64)):
        raise SystemExit("wrong data")


def queue(large, pinned, stream, start, stop):
    if start and stop:
        attempt(start.record, stream)
        attempt(large.fill, 2.0, stream=stream)
        attempt(stop.record, stream)
        attempt(stop.synchronize)
        attempt(stream.wait, stop)
    attempt(large.get)
    attempt(large.get_async, stream=stream)
    if pinned is not None:
        attempt(gg.copy, large, pinned, stream=stream)
    attempt(stream.synchronize)


def strided(large, host):
    """Every other row, and a transposed square: uploaded, downloaded and filled."""
    square = large.reshape(512, 512)
    attempt(square[::2].set, host[::2])
    attempt(square.T.get)
    attempt(square[:, ::3].fill, 2.0)
    attempt(gg.copy, square[:100, :100], square[200:300, 200:300])


def other_kinds(device, host):
    """Memory that is registered, managed, wrapped, exported; the attributes of a pointer."""
    registered = attempt(gg.host_register, host, device)
    if registered:
        attempt(registered.close)
    managed = attempt(gg.alloc_managed, 65536, device)
    if managed:
        attempt(managed.advise, "read_mostly")
        attempt(managed.prefetch)
        attempt(gg.fill, managed, 3)
        attempt(managed.close)
    block = attempt(gg.alloc, 1 << 16, device=device)
    if block:
        attempt(gg.pointer_info, block.ptr)
        attempt(block.ipc_handle)
        attempt(lambda: gg.Buffer.from_ptr(block.ptr, 100, device))
    attempt(gg.trim)


def work(device):
    stream = attempt(gg.Stream, device, nonblocking=True)
    start, stop = (attempt(gg.Event, device, timing=True) for _ in range(2))
    block = attempt(gg.alloc, 4096, device=device)
    small = attempt(gg.to_gpu, np.arange(64, dtype=np.int32), device=device)
    large = attempt(gg.to_gpu, np.ones(1 << 18, dtype=np.float32), device=device)
    pinned = attempt(gg.empty_pinned, 1 << 18, np.float32)
    attempt(device.memory_info)
    if large is not None and stream:
        queue(large, pinned, stream, start, stop)
    host = np.zeros((512, 512), np.float32)
    if large is not None:
        strided(large, host)
    other_kinds(device, host)
    if small is not None:
        check(small)
    if block:
        attempt(block.close)
    attempt(device.synchronize)


def run(backend, number, directory, rule):
    """In a child: exits as a program does, with its exit handlers."""
    output = os.open(directory / f"{number}.output", os.O_CREAT | os.O_WRONLY, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ["GPUGLUE_SIM_REPORT"] = str(directory / f"{number}.report")
    os.environ["GPUGLUE_SIM_FAIL"] = rule
    device = attempt(lambda: gg.Device(f"{backend}:0"))
    if device is not None:
        attempt(lambda: (device.name, device.arch, device.pci_bus_id, device.total_memory))
        work(device)
    (directory / f"{number}.failures").write_text(json.dumps(failures))


def finish(running, exits):
    child, status = os.wait()
    exits[running.pop(child)] = status


def main(backend, directory, rules):
    running, exits = {}, {}
    for number, rule in enumerate(rules or [""]):
        if len(running) == AT_ONCE:
            finish(running, exits)
        child = os.fork()
        if not child:
            run(backend, number, directory, rule)
            return
        running[child] = number
    while running:
        finish(running, exits)
    print(json.dumps([exits[number] for number in sorted(exits)]))


main(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:])
