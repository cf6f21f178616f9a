"""Every operation of the Python API on each Level Zero device; the data is not checked."""

import numpy as np

import gpuglue as gg


def move(streams, events, memory, pinned):
    """Copies, records and waits; all of them have finished at the end."""
    for stream in streams:
        memory.set_async(pinned, stream=stream)
        for event in events:
            event.record(stream)
        streams[0].wait(events[0])
        streams[1].wait(events[1])
        streams[1].wait(streams[0])
        memory.get_async(out=pinned, stream=stream)
        stream.synchronize()
        for event in events:
            event.synchronize()
    assert all(event.done for event in events)


def run(device):
    streams = gg.Stream(), gg.Stream(priority=-1), device.default_stream
    events = gg.Event(), gg.Event(timing=True), gg.Event(timing=True)
    gg.to_gpu(np.arange(50000.0)).get()
    for array in gg.zeros(1 << 20, np.uint8), gg.full(1000, 7, np.int32), gg.full(100, 1.5):
        assert array.ptr > 0
    move(streams, events, gg.GPUArray(1000), gg.empty_pinned(1000))
    events[2].elapsed_since(events[1])
    assert device.supports("stream_host_func")
    gg.Stream.borrow(streams[0].handle, device).synchronize()
    gg.copy(gg.alloc(100), gg.alloc(100))
    gg.synchronize()


for gpu in gg.devices("ze"):
    with gpu:
        run(gpu)  # run() keeps no object
print("ok")
