"""gpuglue beside a program that calls the driver itself: contexts, streams that are destroyed, captures."""

import pytest
from with_cuda import driver

import gpuglue as gg


# ---- contexts -------------------------------------------------------------------------------------------


def test_calls_leave_a_thread_without_a_context(with_driver):
    with_driver("""
        assert cuda.current_context() is None
        cuda.check_that_calls_leave_the_context_alone()
        cuda.in_thread(cuda.check_that_calls_leave_the_context_alone)
    """)


def test_a_context_that_the_program_created_is_ignored_and_restored(with_driver):
    with_driver("""
        import ctypes, sys
        own = ctypes.c_void_p()
        if cuda.driver().cuCtxCreate_v2(ctypes.byref(own), 0, 0): sys.exit()  # a driver without a second one
        assert cuda.current_context() == own.value != cuda.primary_context()
        cuda.check_that_calls_leave_the_context_alone()
        assert cuda.current_context() == own.value
    """)


def test_the_context_is_the_primary_one(with_driver):
    with_driver("""
        with gg.Device("cuda:0"):
            assert cuda.current_context() == cuda.primary_context()
        assert cuda.current_context() is None
    """)


def test_a_stream_of_another_context_is_refused_when_it_is_borrowed(with_driver):
    with_driver("""
        import ctypes
        device, own, stream = gg.Device("cuda:0"), ctypes.c_void_p(), ctypes.c_void_p()
        streams = []
        for other in gg.devices("cuda")[1:2]:
            with other: cuda.call("cuStreamCreate", ctypes.byref(stream), 1)
            streams.append(stream.value)
        if not cuda.driver().cuCtxCreate_v2(ctypes.byref(own), 0, 0):  # some drivers have no second one
            cuda.call("cuStreamCreate", ctypes.byref(stream), 1)
            streams.append(stream.value)
        for handle in streams:
            try: gg.Stream.borrow(handle, device)
            except gg.InvalidArgumentError as error: message = str(error)
            else: raise AssertionError("it was borrowed")
            assert f"{handle:#x}" in message and f"{cuda.primary_context():#x}" in message, message
            assert "not the primary context of device 0" in message, message
    """)


# ---- the program copies by itself -----------------------------------------------------------------------


def test_a_program_copies_to_and_from_memory_of_gpuglue(with_driver):
    with_driver("""
        import ctypes
        array, out = gg.arange(1000.0), np.zeros(1000)
        with gg.Device("cuda:0"):
            nbytes = ctypes.c_size_t(out.nbytes)
            cuda.call("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), array, nbytes)
            assert (out == np.arange(1000)).all()
            out += 1
            cuda.call("cuMemcpyHtoD_v2", array, ctypes.c_void_p(out.ctypes.data), nbytes)
        assert (array.get() == out).all()
    """)


def test_a_program_copies_memory_that_shares_a_page_with_registered_memory(with_driver):
    with_driver("""
        import ctypes
        whole, array = np.zeros(100_000, "u1"), gg.full(90_000, 7, "u1")
        mine, others = whole[:5000], whole[5100:]
        buffer = gg.host_register(mine)
        with gg.Device("cuda:0"):
            nbytes = ctypes.c_size_t(array.nbytes)
            cuda.call("cuMemcpyDtoH_v2", ctypes.c_void_p(others.ctypes.data), array, nbytes)
        assert (others[:90_000] == 7).all() and not mine.any()
    """)


# ---- streams that are destroyed ---------------------------------------------------------------------------

GATED = """
    SIZE = 100_000
    array, out = gg.zeros(SIZE), gg.zeros_pinned(SIZE)
    ones = gg.empty_pinned(SIZE); ones[:] = 1
    gg.synchronize()
    gate = cuda.gate()
"""


def test_memory_waits_for_the_unfinished_work_of_a_closed_stream(with_driver):
    with_driver(
        GATED
        + """
    old = gg.Stream(nonblocking=True); handle = old.handle
    gate.hold(old)
    gg.copy(array, ones, stream=old)
    old.close(); del old
    for new in [gg.Stream(nonblocking=True) for _ in range(20)]:
        assert new.handle != handle  # it lives on until its work is done
    with new:
        pending = array.copy()  # has to wait, on the device, for the old stream's copy
        assert not new.done
        gate.open()
        assert (pending.get() == 1).all()
    """
    )


def test_memory_waits_for_a_destroyed_stream_whose_handle_was_reused(with_driver):
    with_driver(
        GATED
        + """
    handle = cuda.new_stream(1)
    old = gg.Stream.borrow(handle, "cuda:0")
    gate.hold(old)
    gg.copy(array, ones, stream=old)
    old.close(); cuda.destroy_stream(handle)
    fresh = [cuda.new_stream(1) for _ in range(20)]
    new = gg.Stream.borrow(handle if handle in fresh else fresh[0], "cuda:0")
    with new:
        pending = array.copy()  # has to wait, on the device, for the old stream's copy
        assert not new.done
        gate.open()
        assert (pending.get() == 1).all()
    """
    )


def test_pinned_memory_used_on_a_destroyed_stream_can_be_read(with_driver):
    with_driver("""
        handle = cuda.new_stream(1)
        buffer = gg.alloc_pinned(1000)
        buffer.record_use(gg.Stream.borrow(handle, "cuda:0"))
        cuda.destroy_stream(handle)
        assert np.asarray(buffer).shape == (1000,)
    """)


def test_memory_used_on_a_destroyed_stream_is_reused(with_driver):
    with_driver("""
        handle = cuda.new_stream(1)
        with gg.alloc(1000) as buffer:
            gg.fill(buffer, 1, stream=gg.Stream.borrow(handle, "cuda:0"))
        cuda.destroy_stream(handle)
        assert cuda.held_back() == 0
    """)


def test_a_thread_allocates_while_another_waits_inside_the_drivers_free(with_driver):
    """cuMemFree waits for the whole device, also for work of other libraries."""
    if not hasattr(driver(), "sim_calls"):
        pytest.skip("only a simulated driver counts its calls")
    with_driver("""
        import ctypes, time
        stream, gate, device = cuda.new_stream(1), cuda.gate(), gg.Device("cuda:0")
        large = gg.alloc(300 << 20)  # goes back to the driver
        gg.synchronize()
        cuda.call("cuLaunchHostFunc", ctypes.c_void_p(stream), gate.library.gate_wait, gate.handle)
        large.close()
        calls = cuda.driver().sim_calls
        before = calls(b"cuMemFree_v2")
        first = threading.Thread(target=lambda: gg.alloc(5 << 20, device))
        first.start()
        while calls(b"cuMemFree_v2") == before and first.is_alive():
            time.sleep(0.001)
        assert first.is_alive()  # inside the free
        second = threading.Thread(target=lambda: [gg.alloc(size << 20, device) for size in (7, 9, 11)], daemon=True)
        second.start(); second.join(30)
        waits = second.is_alive()
        gate.open(); first.join(); second.join()
        assert not waits
    """)


# ---- captures ---------------------------------------------------------------------------------------------

# What a program may do with gpuglue while some stream is captured: before, and then during the capture.
MEANWHILE = {
    "dropped buffers": (
        "garbage = cuda.cycle(gg.to_gpu(np.ones(100_000)), gg.zeros(10), gg.alloc_pinned(10))",
        "del garbage; gc.collect(); gg.alloc(16)",
    ),
    "buffers that another thread drops": (
        "kept = [gg.to_gpu(np.ones(100_000)), gg.alloc_pinned(10)]",
        "cuda.in_thread(lambda: (kept.clear(), gg.alloc(16)))",
    ),
    "closed streams and events": (
        "other = gg.Stream(nonblocking=True); event = other.record()",
        "other.close(); event.close(); gg.alloc(16)",
    ),
    "streams and events made and closed": (
        "",
        "other = gg.Stream(nonblocking=True); event = other.record()\nother.close(); event.close(); gg.alloc(16)",
    ),
    "new memory": ("", "gg.alloc(1 << 20), gg.alloc_pinned(1 << 20)"),
    "work on another stream": (
        "array = gg.zeros(1000, 'f4'); other = gg.Stream(nonblocking=True); gg.synchronize()",
        "array.fill(1, stream=other); gg.to_gpu(np.ones(10), stream=other); del array; gg.alloc(16)",
    ),
    "too much memory": (
        "array = gg.zeros(1000)",
        "del array\ntry: gg.alloc(1 << 50)\nexcept MemoryError: pass",
    ),
    "too much memory while some is held back": (
        "array = gg.zeros(1000, 'f4'); other = gg.Stream(nonblocking=True); gate = cuda.gate().hold(other)",
        "array.fill(1, stream=other); del array\ntry: gg.alloc(1 << 50)\nexcept MemoryError: pass\ngate.open()",
    ),
    "the first copy between two devices": (
        "there = [gg.zeros(8, device=each) for each in gg.devices('cuda')]; gg.synchronize()",
        "gg.copy(there[-1], there[0], stream=gg.Stream(nonblocking=True)) if len(there) > 1 else None",
    ),
    "exported memory that was released": (
        "array = gg.zeros(100_000); capsule = array.__dlpack__(stream=-1); other = gg.zeros(10); other.__cuda_array_interface__",
        "del array, capsule, other; gg.alloc(16); gg.alloc(1 << 21); gg.trim()",
    ),
    "much pinned memory that was exported and released": (
        "kept = [gg.asarray(gg.alloc_pinned(20 << 20)).__dlpack__() for _ in range(4)]",
        "kept.clear(); gg.alloc(16); gg.alloc(1 << 21)",
    ),
    "too much memory while exported memory is held back": (
        "array = gg.zeros(100_000); capsule = array.__dlpack__(stream=-1)",
        "del array, capsule\ntry: gg.alloc(1 << 50)\nexcept MemoryError: pass",
    ),
    "a query of free memory": ("array = gg.zeros(1000)", "del array; gg.Device('cuda:0').memory_info()"),
    "an event of the capture": ("", "event = ours.record(); del event; gg.alloc(16)"),
    "an await in another thread": (
        "import asyncio, threading; other = gg.Stream(nonblocking=True); gate = cuda.gate().hold(other); event = other.record()\n"
        "async def main(): await event\n"
        "waiter = threading.Thread(target=asyncio.run, args=(main(),), daemon=True); waiter.start()\n"
        "from conftest import until; from gpuglue import _waiting; until(lambda: _waiting._poller.entries)",
        "import time; time.sleep(0.02); gate.open(); waiter.join()",
    ),
    "a callback of another stream": (
        "other = gg.Stream(nonblocking=True); gate = cuda.gate().hold(other); called = []; other.add_callback(lambda: called.append(1))",
        "from conftest import until; gate.open(); until(lambda: called)",
    ),
    "a wait among captured streams": (
        "other = gg.Stream(nonblocking=True)",
        "other.wait(ours); ours.wait(other); other.close(); del other; gg.alloc(16)",
    ),
    "a get that is refused": (
        "array = gg.zeros(100_000); gg.synchronize()",
        "try: array.get(stream=ours)\nexcept gg.UnsupportedError: pass\nelse: raise AssertionError('it was done')",
    ),
}


# What is captured, of which gpuglue knows a handle or nothing, and the default stream is ordered with a blocking stream.
CAPTURED = {
    "nonblocking": "ours = gg.Stream(nonblocking=True); captured = ours.handle",
    "blocking": "ours = gg.Stream(nonblocking=False); captured = ours.handle",
    "unknown": "ours, captured = gg.Stream(nonblocking=True), cuda.new_stream(0); gg.fill(gg.alloc(1 << 24), 1)",
}


def capture_code(meanwhile, stream):
    """A capture in which something else happens, and a replay."""
    before, during = MEANWHILE[meanwhile]
    lines = ["target = gg.zeros(1000, 'f4'); gg.synchronize()", "for mode in (cuda.GLOBAL, cuda.THREAD_LOCAL, cuda.RELAXED):"]
    lines += [f"    {line}" for line in [*before.splitlines(), CAPTURED[stream]]]
    lines += ["    with cuda.Capture(captured, mode) as graph:"]
    lines += [f"        {line}" for line in during.splitlines()]
    lines += ["        gg.fill(target, 1, stream=ours)"]
    lines += ["    graph.replay(); assert (target.get() == 1).all(), mode; gg.fill(target, 0); gg.synchronize()"]
    return "\n".join(lines)


@pytest.mark.parametrize("stream", CAPTURED)
@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_a_capture_survives(with_driver, meanwhile, stream):
    if stream == "unknown" and meanwhile == "a get that is refused":
        pytest.skip("it is not refused on another stream than the captured one")
    with_driver(capture_code(meanwhile, stream))


@pytest.mark.parametrize("meanwhile", ["dropped buffers", "buffers that another thread drops", "new memory", "too much memory",
                                       "exported memory that was released", "a query of free memory"])
@pytest.mark.parametrize("stream", ["blocking", "unknown"])
def test_a_capture_survives_beside_the_drivers_own_pool(with_driver, meanwhile, stream):
    with_driver(capture_code(meanwhile, stream), GPUGLUE_ALLOCATOR="async")


@pytest.mark.parametrize("refused", ["1", "1+"])  # queries: the stream is known to be idle before the copy
@pytest.mark.parametrize("call", ["get", "set"])
def test_a_capture_survives_a_copy_whose_wait_fails(with_driver, call, refused):
    if not hasattr(driver(), "sim_calls"):
        pytest.skip("only a simulated driver refuses a query")
    with_driver(f"""
        captured, other, sim = cuda.new_stream(1), gg.Stream(nonblocking=True), cuda.driver()
        array, data = gg.zeros(3_000_000, "u1"), np.empty(3_000_000, "u1")
        gg.synchronize()
        with cuda.Capture(captured, cuda.RELAXED):
            sim.sim_fail(b"cuStreamQuery:{refused}=1")
            try: array.{call}(data, stream=other)
            except gg.DeviceError: pass
            else: raise AssertionError("no query failed")
            assert not sim.sim_calls(b"cuCtxSynchronize")
            sim.sim_fail(b"")
            assert sim.cuStreamQuery(cuda.ctypes.c_void_p(other.handle)) == 0  # the copy is over
    """)


# On which stream the memory was allocated; how often the driver refuses to free it.
@pytest.mark.parametrize("refusals", [0, 1])
@pytest.mark.parametrize("stream", ["device.default_stream", "gg.Stream(nonblocking=True)", "gg.Stream()"])
def test_memory_of_the_drivers_own_pool_that_is_released_beside_a_capture_is_freed(with_driver, stream, refusals):
    if refusals and not hasattr(driver(), "sim_calls"):
        pytest.skip("only a simulated driver refuses it")
    fails = {"GPUGLUE_SIM_FAIL": "cuMemFreeAsync:1"} if refusals else {}
    with_driver(f"""
        device, captured = gg.Device("cuda:0"), cuda.new_stream(0)
        ours = gg.Stream(nonblocking=True)
        before = device.pool.stats().reserved_bytes
        for _ in range(3):
            stream = {stream}
            buffer = gg.alloc(1 << 20, stream=stream)
            gg.fill(buffer, 1, stream=stream); gg.synchronize()
            stream is device.default_stream or stream.close(); del stream; gg.trim()
            with cuda.Capture(captured, cuda.RELAXED) as graph:
                buffer.close(); gg.alloc(16, stream=ours).close(); gg.trim()
            graph.replay()
        assert cuda.held_back() == 0
        assert device.pool.stats().reserved_bytes == before
    """, GPUGLUE_ALLOCATOR="async", **fails)


UNFINISHED = {
    "a wait for the stream": "ours.wait(gg.Device('cuda:0').default_stream)",
    "an implicit use": "ours.__enter__(); gg.fill(array, 2)",
    "DLPack": "array.__dlpack__(stream=ours.handle)",
}


@pytest.mark.parametrize("use", UNFINISHED)
def test_a_wait_for_the_default_stream_is_refused_while_a_stream_that_it_is_ordered_with_is_captured(with_driver, use):
    message = with_driver(f"""
        array, ours, captured = gg.zeros(1000, "f4"), gg.Stream(nonblocking=True), cuda.new_stream(0)
        gg.synchronize()
        gate = cuda.gate().hold(gg.Device("cuda:0").default_stream)
        array.fill(1)
        with cuda.Capture(captured, cuda.RELAXED) as graph:
            try: {UNFINISHED[use]}
            except gg.UnsupportedError as error: print(error)
        gate.open(); graph.replay()
        assert (array.get(stream=gg.Device("cuda:0").default_stream) == 1).all()
    """)
    assert "the default stream is ordered with it" in message and "before the capture begins" in message


def test_a_capture_does_not_wait_for_earlier_uses_on_the_default_stream(with_driver):
    with_driver("""
        array, stream = gg.zeros(1000, "f4"), gg.Stream()
        gg.synchronize()  # all is done
        with cuda.Capture(stream.handle) as graph, stream:
            gg.fill(array, 3)
        graph.replay()
        assert (array.get() == 3).all()
    """)


def test_a_direct_copy_between_devices_with_a_stream_becomes_part_of_a_graph(with_driver):
    if len(gg.devices("cuda")) < 2 or not gg.Device("cuda:0").can_access("cuda:1"):
        pytest.skip("there are no two cuda devices with peer access")
    message = with_driver("""
        here, there = gg.full(100, 5.0, device="cuda:0"), gg.zeros(100, device="cuda:1")
        gg.copy(there, gg.zeros(100, device="cuda:0"))  # they are known to reach each other from here on
        stream = gg.Stream(device="cuda:0", nonblocking=True)
        for each in gg.devices("cuda"):
            each.synchronize()
        with cuda.Capture(stream.handle, cuda.RELAXED) as graph:
            gg.copy(there, here, stream=stream)
            with stream:
                try: gg.copy(there, here)
                except gg.UnsupportedError as error: print(error)
        assert not there.get().any()
        graph.replay()
        assert (there.get() == 5).all()
    """)
    assert "only if the stream is passed" in message


def test_an_await_of_an_event_in_a_graph_is_refused(with_driver):
    message = with_driver("""
        import asyncio
        stream = gg.Stream(nonblocking=True)
        async def main():
            with cuda.Capture(stream.handle) as graph:
                try: await stream.completion()
                except gg.InvalidArgumentError as error: print(error)
            graph.replay()
            await stream.completion()
        asyncio.run(main())
    """)
    assert "recorded in a capture" in message and "after the launch" in message


def test_the_end_of_a_capture_that_other_code_has_replaced_leaves_theirs_valid(with_driver):
    message = with_driver("""
        import ctypes
        array, stream, mine = gg.zeros(1000, "f4"), gg.Stream(nonblocking=True), ctypes.c_void_p()
        gg.synchronize()
        gate = cuda.gate().hold(stream)
        array.fill(1, stream=stream)
        block = gg.capture(stream); block.__enter__()
        cuda.call("cuStreamEndCapture", ctypes.c_void_p(stream.handle), ctypes.byref(mine))
        with cuda.Capture(stream.handle, cuda.RELAXED) as theirs:
            gg.fill(array, 2, stream=stream)
            try: block.__exit__(None, None, None)
            except gg.InvalidArgumentError as error: print(error)
        gate.open()
        theirs.replay()
        assert (array.get() == 2).all()
    """)
    assert "other code has ended this capture" in message


def test_work_that_ran_between_two_captures_is_not_taken_for_captured_work(with_driver):
    message = with_driver("""
        import ctypes
        array, result, graph = gg.zeros(1000, "f4"), gg.zeros(1000, "f4"), ctypes.c_void_p()
        stream, other = gg.Stream(nonblocking=True), gg.Stream(nonblocking=True)
        gg.synchronize()
        block = gg.capture(stream); block.__enter__(); block_stream = ctypes.c_void_p(stream.handle)
        cuda.call("cuStreamEndCapture", block_stream, ctypes.byref(graph))
        gate = cuda.gate().hold(stream)
        array.fill(1, stream=stream)  # runs
        with cuda.Capture(stream.handle, cuda.RELAXED), other:
            try: gg.copy(result, array)
            except gg.UnsupportedError as error: print(error)
        gate.open()
        try: block.__exit__(None, None, None)
        except gg.Error: pass
    """)
    assert "its work from before the capture cannot be waited for" in message


def test_a_refused_get_reports_what_to_do(with_driver):
    message = with_driver("""
        array, stream = gg.zeros(100), gg.Stream(nonblocking=True)
        gg.synchronize()
        with cuda.Capture(stream.handle), stream:
            try: array.get()
            except gg.UnsupportedError as error: print(error)
    """)
    assert "stream is capturing" in message and "use pinned memory" in message


def test_a_capture_does_not_wait_for_unfinished_work_outside_it(with_driver):
    message = with_driver("""
        array, host, inside = gg.zeros(1000, "f4"), gg.zeros_pinned(1000, "f4"), gg.alloc(1000)
        stream, other = gg.Stream(nonblocking=True), gg.Stream(nonblocking=True)
        gg.synchronize()
        gate = cuda.gate().hold(other)
        array.fill(1, stream=other)
        with cuda.Capture(stream.handle) as graph:
            gg.fill(inside, 1, stream=stream)
            with stream:
                try: gg.copy(host, array)
                except gg.UnsupportedError as error: print(error)
        gate.open(); graph.replay()
    """)
    assert "stream is capturing" in message and "synchronize that stream" in message


def test_memory_used_by_a_capture_is_kept_until_release_captured(with_driver):
    with_driver("""
        kept, buffer, stream = gg.alloc(1000), gg.alloc(1000), gg.Stream(nonblocking=True)
        array = gg.zeros(1000, "f4"); gg.synchronize()
        with cuda.Capture(stream.handle) as graph:
            for one in (kept, buffer, array): gg.fill(one, 1, stream=stream)
        graph.replay()
        buffer.release_captured(); array.release_captured()
        buffer.close(); del array; assert cuda.held_back() == 0
        kept.close(); assert cuda.held_back() == 1
    """)


JOINS = {
    "its event": "other.wait(ours.record())",
    "its work": "other.wait(ours)",
    "an event that others recorded": "cuda.call('cuEventRecord', ctypes.c_void_p(handle), ctypes.c_void_p(ours.handle)); "
                                     "other.wait(event)",
}


@pytest.mark.parametrize("join", JOINS)
def test_a_stream_that_nobody_else_knows_joins_a_capture_by_a_wait(with_driver, join):
    with_driver(f"""
        import ctypes
        kept, ours, other = gg.alloc(1000), gg.Stream(nonblocking=True), gg.Stream(nonblocking=True)
        event = gg.Event("cuda:0").record(other); handle = event.handle
        gg.synchronize()
        with cuda.Capture(ours.handle) as graph:
            {JOINS[join]}
            gg.fill(kept, 1, stream=other)
            ours.wait(other)
        graph.replay()
        kept.close(); assert cuda.held_back() == 1  # the graph uses it
    """)


@pytest.mark.parametrize("borrowed", [True, False], ids=["borrowed", "ours"])
def test_a_stream_used_in_a_capture_delays_nothing_afterwards(with_driver, borrowed):
    stream = 'gg.Stream.borrow(cuda.new_stream(1), "cuda:0")' if borrowed else "gg.Stream(nonblocking=True)"
    with_driver(f"""
        stream = {stream}; other = gg.Stream(nonblocking=True)
        with cuda.Capture(stream.handle):
            event = stream.record(); stream.wait(event); other.wait(event); stream.wait(other)
        del event, other; stream.close(); del stream
        for _ in range(3): gg.alloc_pinned(100).close()
        assert cuda.held_back() == 0
    """)


def test_the_owner_of_pinned_memory_in_a_graph_lives_on(with_driver):
    with_driver("""
        import ctypes, mmap
        class Owner(np.ndarray): pass
        block = mmap.mmap(-1, 1 << 20)
        host = np.frombuffer(block, "u1").view(Owner)
        nbytes = ctypes.c_size_t(1 << 20)
        array, alive = gg.zeros(1 << 20, "u1"), weakref.ref(host)
        with gg.Device("cuda:0"):
            cuda.call("cuMemHostRegister_v2", ctypes.c_void_p(host.ctypes.data), nbytes, 0)
        handle = cuda.new_stream(1); stream = gg.Stream.borrow(handle, "cuda:0")
        with cuda.Capture(handle) as graph:
            gg.copy(array, host, stream=stream, require_async=True)
        stream.close(); del stream, host
        gc.collect(); gg.synchronize(); gg.alloc(16); gg.synchronize()
        assert alive() is not None
        graph.replay()
    """)


@pytest.mark.parametrize("copy", ["gg.copy(array, host)", "array.set(host, stream=ours)", "array.get(out=host, stream=ours)"])
def test_host_memory_of_a_captured_copy_lives_as_the_graph_does(with_driver, copy):
    with_driver(f"""
        import weakref
        array, ours = gg.zeros(1 << 20, "f4"), gg.Stream(nonblocking=True)
        for _ in range(3): host = array.get()  # pinned from its second use on
        gg.synchronize()
        with cuda.Capture(ours.handle) as graph, ours:
            {copy}
        kept = weakref.ref(host)
        del host; gc.collect(); gg.alloc(16)
        assert kept() is not None
        graph.replay()
    """)
