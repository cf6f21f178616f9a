"""gpuglue beside a program that calls the driver itself: memory that it pinned, and what it has queued."""

import pytest


@pytest.mark.parametrize("lent", [True, False])  # whether other code has the handle of the stream, and may have queued what writes
def test_an_upload_reads_memory_that_other_code_pinned_after_the_work_that_writes_to_it(with_driver, lent):
    with_driver(f"""
        import ctypes
        stream, held = gg.Stream("cuda:0", nonblocking=True), gg.Stream("cuda:0", nonblocking=True)
        if {lent}: stream.handle
        for nbytes in (8, 24, 4096, 65_536, 70_000, 98_304, 131_072):
            pointer = ctypes.c_void_p()
            with gg.Device("cuda:0"): cuda.call("cuMemHostAlloc", ctypes.byref(pointer), ctypes.c_size_t(nbytes), 1)
            host = np.ctypeslib.as_array((ctypes.c_ubyte * nbytes).from_address(pointer.value))
            sevens, found = gg.full(nbytes, 7, "u1", device="cuda:0"), gg.zeros(nbytes, "u1", device="cuda:0")
            gg.synchronize("cuda:0")
            for waits in (True, False):
                host[:] = 0
                found.fill(0)
                gg.synchronize("cuda:0")
                gate, event = cuda.gate().hold(held), gg.Event("cuda:0")
                event.record(held)
                stream.wait(event)
                sevens.get_async(host, stream)
                if waits:
                    thread = gate.open_later()
                    found.set(host, stream)
                    thread.join()
                else:  # a queued copy: the gate is still closed when the call returns
                    gg.copy(found, host, stream=stream, require_async=True)
                    gate.open()
                assert (found.get(stream=stream) == 7).all(), (nbytes, waits)
    """)


@pytest.mark.parametrize("staging", ["always", "never"])
def test_an_upload_reads_memory_after_the_work_that_other_code_queued_on_the_stream(with_driver, staging):
    with_driver("""
        import ctypes
        stream, held = gg.Stream("cuda:0", nonblocking=True), gg.Stream("cuda:0", nonblocking=True)
        for nbytes in (8, 4096, 65_536, 131_072, 300_000, 3_000_000):
            pointer = ctypes.c_void_p()
            with gg.Device("cuda:0"): cuda.call("cuMemHostAlloc", ctypes.byref(pointer), ctypes.c_size_t(nbytes), 1)
            host = np.ctypeslib.as_array((ctypes.c_ubyte * nbytes).from_address(pointer.value))
            host[:] = 0
            sevens, found = gg.full(nbytes, 7, "u1", device="cuda:0"), gg.zeros(nbytes, "u1", device="cuda:0")
            gg.synchronize("cuda:0")
            gate, event, ours = cuda.gate().hold(held), gg.Event("cuda:0"), ctypes.c_void_p(stream.handle)
            event.record(held)
            with gg.Device("cuda:0"):
                cuda.call("cuStreamWaitEvent", ours, ctypes.c_void_p(event.handle), 0)
                cuda.call("cuMemcpyDtoHAsync_v2", pointer, ctypes.c_uint64(sevens.ptr), ctypes.c_size_t(nbytes), ours)
            thread = gate.open_later()
            found.set(host, stream)
            thread.join()
            assert (found.get(stream=stream) == 7).all(), nbytes
    """, GPUGLUE_STAGING=staging)
