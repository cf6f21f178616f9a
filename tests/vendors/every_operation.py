"""Every operation that Python reaches, on each device of Level Zero, without a look at data."""

import numpy as np

import gpuglue as gg

for device in gg.devices("ze"):
    with device:
        default = device.default_stream
        one, two = gg.Stream(), gg.Stream(priority=-1)
        plain, timed, later = gg.Event(), gg.Event(timing=True), gg.Event(timing=True)
        host = np.arange(50000.0)
        a = gg.to_gpu(host)
        a.get()
        gg.zeros(1 << 20, np.uint8), gg.full(1000, 7, np.int32), gg.full(100, 1.5)
        pinned = gg.empty_pinned(1000)
        b = gg.GPUArray(1000)
        for stream in (one, two, default):
            b.set_async(pinned, stream=stream)
            plain.record(stream), timed.record(stream), later.record(stream)
            one.wait(plain), two.wait(timed), two.wait(one)
            b.get_async(out=pinned, stream=stream)
            stream.synchronize(), plain.synchronize(), timed.synchronize(), later.synchronize()
        assert plain.done and timed.done and later.done
        later.elapsed_since(timed)
        assert device.supports("stream_host_func")
        borrowed = gg.Stream.borrow(one.handle, device)
        borrowed.synchronize()
        gg.copy(gg.alloc(100), gg.alloc(100)), gg.synchronize()
        assert gg.alloc(64).ptr > 0
print("ok")
