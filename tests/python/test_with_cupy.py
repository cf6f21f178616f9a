"""gpuglue beside CuPy: one context, one default stream, each other's memory and streams."""

import pytest
from with_cuda import beside, missing

ORDERS = pytest.mark.parametrize("first", ["cupy", "gpuglue"])


@pytest.fixture
def with_cupy(device):
    reason = missing("cupy", device)
    if reason:
        pytest.skip(reason)
    return beside("cupy")


@ORDERS
def test_gpuglue_uses_the_context_that_cupy_uses(with_cupy, first):
    with_cupy(
        """
        assert cuda.current_context() == cuda.primary_context()  # CuPy's
        with gg.Device("cuda:0"):
            assert cuda.current_context() == cuda.primary_context()
        """,
        first,
    )


@ORDERS
def test_calls_of_gpuglue_leave_cupys_context_current(with_cupy, first):
    with_cupy("cupy.cuda.Device(0).use(); cuda.check_that_calls_leave_the_context_alone()", first)


@ORDERS
def test_arrays_of_the_compatibility_module_compute_by_cupy_on_their_memory(with_cupy, first):
    with_cupy(
        """
        from gpuglue.compat.pycuda import _compute, cumath, driver, gpuarray, tools

        driver.init()
        tools.make_default_context()
        assert isinstance(_compute.library(), _compute.CuPy)
        _compute.KERNELS_FIRST = False
        a, stream = np.arange(1000.0), driver.Stream()
        x = gpuarray.to_gpu(a)
        y = 2 * x + x[::-1]
        y -= 1
        assert (y.get() == 2 * a + a[::-1] - 1).all()
        assert gpuarray.sum(x, stream=stream).get() == a.sum() and gpuarray.dot(x, x).get() == a @ a
        assert np.allclose(cumath.sin(x).get(), np.sin(a)) and (gpuarray.where(x > 5, x, 0.0).get() == a * (a > 5)).all()
        """,
        first,
    )


# ---- memory -------------------------------------------------------------------------------------------------

EACH_READS = """
array = gg.arange(1000.0)
block = cupy.cuda.UnownedMemory(array.ptr, array.nbytes, array, 0)
view = cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(block, 0))
view += 0; view *= 1; cupy.cuda.Device().synchronize()
{streams}
with ours, theirs:
    cuda.late(ours)
    view *= 2
    assert (array.get() == 2 * np.arange(1000)).all()
    cuda.late(ours)
    array.fill(5)
    assert (cupy.asnumpy(view) == 5).all()
"""


@ORDERS
def test_each_reads_on_the_default_stream_what_the_other_wrote(with_cupy, first):
    streams = "ours = gg.Device('cuda:0').default_stream; theirs = cupy.cuda.Stream.null"
    with_cupy(EACH_READS.format(streams=streams), first)


@ORDERS
def test_each_reads_on_a_stream_of_cupy_what_the_other_wrote(with_cupy, first):
    streams = "theirs = cupy.cuda.Stream(non_blocking=True); ours = gg.Stream.borrow(theirs)"
    with_cupy(EACH_READS.format(streams=streams), first)


def test_each_reads_on_a_stream_of_gpuglue_what_the_other_wrote(with_cupy):
    streams = "ours = gg.Stream(nonblocking=True); theirs = cupy.cuda.ExternalStream(ours.handle)"
    with_cupy(EACH_READS.format(streams=streams))


def test_cupy_imports_an_array_through_its_interface(with_cupy):
    with_cupy("""
        array = gg.arange(1000.0)
        view = cupy.asarray(cuda.Exported(array))
        assert view.data.ptr == array.ptr
        view += 1
        assert (array.get() == np.arange(1000) + 1).all()
    """)


def test_pinned_memory_of_cupy_is_copied_without_waiting(with_cupy):
    with_cupy("""
        host = np.frombuffer(cupy.cuda.alloc_pinned_memory(800_000), "f8", 100_000)
        host[:] = np.arange(100_000)
        array, stream = gg.zeros(100_000), gg.Stream(nonblocking=True)
        gg.synchronize()
        cuda.late(stream)
        gg.copy(array, host, stream=stream, require_async=True)
        assert not stream.done
        assert (array.get() == host).all()
    """)


# ---- streams ------------------------------------------------------------------------------------------------


def test_streams_of_cupy_are_borrowed(with_cupy):
    with_cupy("""
        device = gg.Device("cuda:0")
        for stream in (cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)):
            assert gg.Stream.borrow(stream).handle == stream.ptr
        assert gg.Stream.borrow(cupy.cuda.Stream.null) == device.default_stream
        assert gg.Stream.borrow(cupy.cuda.get_current_stream()) == device.default_stream
        assert gg.Stream.borrow(cupy.cuda.Stream.ptds).handle == device.per_thread_stream.handle
    """)


def test_a_capture_of_cupy_survives_dropped_buffers_and_records_copies_and_fills(with_cupy):
    with_cupy("""
        view, stream = cupy.zeros(1000), cupy.cuda.Stream(non_blocking=True)
        view += 1; cupy.cuda.Device().synchronize()
        array, result = gg.zeros(1000, "f4"), gg.zeros_pinned(1000, "f4")
        garbage = cuda.cycle(gg.zeros(1000), gg.alloc_pinned(10)); gg.synchronize()
        with stream, gg.Stream.borrow(stream):
            stream.begin_capture(cupy.cuda.runtime.streamCaptureModeGlobal)
            view += 1
            del garbage; gc.collect(); gg.alloc(16)
            array.fill(7); gg.copy(result, array)
            graph = stream.end_capture()
            graph.launch(stream); stream.synchronize()
        assert (view.get() == 2).all() and (result == 7).all()
    """)


def test_a_communicator_of_cupy_and_one_of_gpuglue_take_the_same_array_in_one_process(with_cupy):
    reason = with_cupy("""
        from cupy.cuda import nccl
        if not nccl.available:
            raise SystemExit(print("CuPy finds no NCCL"))
        array, ours = gg.arange(1000, dtype="f4", device="cuda:0"), gg.Stream("cuda:0", nonblocking=True)
        theirs = nccl.NcclCommunicator(1, nccl.get_unique_id(), 0)
        (comm,) = gg.Communicator.from_devices(["cuda:0"])
        for _ in range(10):
            theirs.allReduce(array.ptr, array.ptr, array.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, ours.handle)
            comm.all_reduce(array, stream=ours)
        ours.synchronize()
        assert comm.transport == "nccl" and (array.get() == np.arange(1000)).all()
        comm.close()
        theirs.allReduce(array.ptr, array.ptr, array.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, ours.handle)
        ours.synchronize()
        assert (array.get() == np.arange(1000)).all()
    """)
    if reason:
        pytest.skip(reason)
