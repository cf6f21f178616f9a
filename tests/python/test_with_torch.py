"""gpuglue beside torch: one context, one default stream, each other's memory, streams and captures."""

import pytest
from test_with_cuda_driver import MEANWHILE
from with_cuda import beside, mapped_in, missing

ORDERS = pytest.mark.parametrize("first", ["torch", "gpuglue"])


@pytest.fixture
def with_torch(device):
    reason = missing("torch", device)
    if reason:
        pytest.skip(reason)
    return beside("torch")


# ---- contexts ---------------------------------------------------------------------------------------------


@ORDERS
def test_gpuglue_uses_the_context_that_torch_uses(with_torch, first):
    with_torch(
        """
        assert cuda.current_context() == cuda.primary_context()  # torch's
        with gg.Device("cuda:0"):
            assert cuda.current_context() == cuda.primary_context()
        """,
        first,
    )


@ORDERS
def test_calls_of_gpuglue_leave_torchs_context_current(with_torch, first):
    with_torch("torch.cuda.set_device(0); cuda.check_that_calls_leave_the_context_alone()", first)


def test_calls_of_gpuglue_leave_a_fresh_thread_without_a_context(with_torch):
    with_torch("""
        def fresh():
            assert cuda.current_context() is None
            cuda.check_that_calls_leave_the_context_alone()
        cuda.in_thread(fresh)
    """)


def test_the_device_that_torch_set_is_the_current_one(with_torch, second_device):
    with_torch("""
        torch.cuda.set_device(1); torch.zeros(1, device="cuda")
        assert gg.current_device().ordinal == 1 and gg.zeros(1).device.ordinal == 1
        torch.cuda.set_device(0)
        assert gg.current_device().ordinal == 0
    """)


def test_torch_finds_its_own_runtime_library_after_a_search_by_gpuglue(with_torch):
    use = "import torch; torch.zeros(1, device='cuda')"
    alone = mapped_in(use, "libcudart.so")
    both = mapped_in(f"import gpuglue; gpuglue.backends('active'); {use}", "libcudart.so")
    assert both == alone and len(alone) == 1


# ---- memory -------------------------------------------------------------------------------------------------

EACH_READS = """
array = gg.arange(1000.0)
tensor = torch.as_tensor(cuda.Exported(array), device="cuda")
assert tensor.data_ptr() == array.ptr
tensor.mul_(1); torch.cuda.synchronize()
{streams}
with ours, torch.cuda.stream(theirs):
    cuda.late(ours)
    tensor.mul_(2)
    assert (array.get() == 2 * np.arange(1000)).all()
    cuda.late(ours)
    array.fill(5)
    assert (tensor.cpu() == 5).all()
"""


@ORDERS
def test_each_reads_on_the_default_stream_what_the_other_wrote(with_torch, first):
    streams = "ours = gg.Device('cuda:0').default_stream; theirs = torch.cuda.default_stream()"
    with_torch(EACH_READS.format(streams=streams), first)


@ORDERS
def test_each_reads_on_a_stream_of_torch_what_the_other_wrote(with_torch, first):
    streams = "theirs = torch.cuda.Stream(); ours = gg.Stream.borrow(theirs)"
    with_torch(EACH_READS.format(streams=streams), first)


@pytest.mark.parametrize("nonblocking", [True, False], ids=["nonblocking", "blocking"])
def test_each_reads_on_a_stream_of_gpuglue_what_the_other_wrote(with_torch, nonblocking):
    streams = f"ours = gg.Stream(nonblocking={nonblocking}); theirs = torch.cuda.ExternalStream(ours.handle)"
    with_torch(EACH_READS.format(streams=streams))


def test_pinned_tensors_are_copied_without_waiting(with_torch):
    with_torch("""
        host = torch.arange(100_000, dtype=torch.float64).pin_memory().numpy()
        out = torch.zeros(100_000, dtype=torch.float64).pin_memory().numpy()
        array, stream = gg.zeros(100_000), gg.Stream(nonblocking=True)
        gg.synchronize()
        for copy in (lambda: gg.copy(array, host, stream=stream, require_async=True),
                     lambda: array.set_async(host, stream),
                     lambda: gg.copy(out, array, stream=stream, require_async=True),
                     lambda: array.get_async(out, stream)):
            cuda.late(stream); copy()
            assert not stream.done
            stream.synchronize()
        assert (array.get() == host).all() and (out == host).all()
    """)


def test_require_async_refuses_pageable_tensors(with_torch):
    message = with_torch("""
        host = torch.zeros(100_000, dtype=torch.float64).numpy()
        try: gg.copy(gg.zeros(100_000), host, stream=gg.Stream(), require_async=True)
        except gg.UnsupportedError as error: print(error)
    """)
    assert "pageable" in message and "pinned memory" in message


# ---- streams ------------------------------------------------------------------------------------------------


def test_streams_of_torch_are_borrowed(with_torch):
    with_torch("""
        device = gg.Device("cuda:0")
        stream = torch.cuda.Stream()
        assert gg.Stream.borrow(stream).handle == stream.cuda_stream
        with torch.cuda.stream(stream):
            assert gg.Stream.borrow(torch.cuda.current_stream()).handle == stream.cuda_stream
        assert gg.Stream.borrow(torch.cuda.current_stream()) == device.default_stream
        assert gg.Stream.borrow(0) == gg.Stream.borrow(1) == device.default_stream
        assert gg.Stream.borrow(2).handle == device.per_thread_stream.handle
    """)


def test_torch_waits_for_work_on_a_stream_of_gpuglue(with_torch):
    with_torch("""
        stream, array = gg.Stream(nonblocking=True), gg.zeros(1000)
        tensor = torch.as_tensor(cuda.Exported(array), device="cuda")
        gg.synchronize()
        cuda.late(stream); array.fill(3, stream=stream)
        torch.cuda.current_stream().wait_stream(torch.cuda.ExternalStream(stream.handle))
        assert (tensor.cpu() == 3).all()
    """)


# ---- captures -----------------------------------------------------------------------------------------------


# Once a graph of torch's has run, NVIDIA's driver itself waits for all work before it says that memory is
# out (driver 580: cuMemAlloc called directly does). A test that blocks work then needs a process per capture.
# PyTorch waits for the device when a capture begins, so no await of earlier work is left then.
@pytest.mark.parametrize("meanwhile", [name for name in MEANWHILE if name != "an await in another thread"])
def test_a_capture_survives(with_torch, meanwhile):
    before, during = MEANWHILE[meanwhile]
    held = "gate" in before
    lines = [f"    {line}" for line in before.replace("; gate = cuda.gate().hold(other)", "").splitlines()]
    lines += ["    graph, theirs = torch.cuda.CUDAGraph(), torch.cuda.Stream(); ours = gg.Stream.borrow(theirs)"]
    lines += ["    with torch.cuda.graph(graph, stream=theirs, capture_error_mode=mode):", "        x += 1"]
    lines += ["        gate = cuda.gate().hold(other)"] if held else []
    lines += [f"        {line}" for line in [*during.splitlines(), "x += 1"]]
    lines += ["    x.zero_(); graph.replay(); assert (x.cpu() == 2).all(), mode"]
    for modes in [("global",), ("thread_local",)] if held else [("global", "thread_local")]:
        first = ["x = torch.zeros(1000, device='cuda'); x += 1", f"for mode in {modes}:"]
        with_torch("\n".join([*first, *lines]))


GRAPH = """
array, other = gg.zeros(1000), gg.alloc(8000)
source, result = gg.empty_pinned(1000), gg.zeros_pinned(1000)
gg.synchronize()
graph, theirs = torch.cuda.CUDAGraph(), torch.cuda.Stream()
with gg.Stream.borrow(theirs), torch.cuda.graph(graph, stream=theirs):
    gg.copy(array, source)
    gg.copy(other, array)
    gg.copy(result, other)
    gg.fill(array, 0)
def replay(value):
    source[:] = value
    graph.replay(); torch.cuda.synchronize()
    assert (result == value).all()
replay(1)
"""


@pytest.mark.parametrize("obj", ["current_stream()", "current_stream().cuda_stream"])
def test_a_capturing_stream_can_be_borrowed(with_torch, obj):
    with_torch(f"""
        x, array, graph = torch.ones(1000, device="cuda"), gg.zeros(1000), torch.cuda.CUDAGraph()
        x += 1; gg.synchronize()
        with torch.cuda.graph(graph):
            x += 1
            with gg.Stream.borrow(torch.cuda.{obj}, "cuda:0"):
                gg.fill(array, 0)
            x += 1
        graph.replay(); assert (x.cpu() == 4).all()
    """)


def test_copies_and_fills_become_part_of_a_graph(with_torch):
    with_torch(GRAPH + "replay(2); assert not array.get().any()")


def test_memory_of_a_graph_survives_being_dropped(with_torch):
    code = """
addresses = {array.ptr, other.ptr}
del array, other; gc.collect()
fresh = [gg.alloc(8000) for _ in range(100)]
assert not addresses & {buffer.ptr for buffer in fresh}
for buffer in fresh: gg.fill(buffer, 255)
replay(3)
"""
    with_torch(GRAPH + code)


def test_memory_that_is_released_from_graphs_is_reused(with_torch):
    code = """
del array; other.close(); assert cuda.held_back() == 2
"""
    released = """
array.release_captured(); other.release_captured()
del array; other.close(); assert cuda.held_back() == 0
"""
    with_torch(GRAPH + code)
    with_torch(GRAPH + released)


def test_a_pinned_tensor_of_a_graph_lives_on(with_torch):
    with_torch("""
        class Owner(np.ndarray): pass
        host = torch.ones(1000, dtype=torch.float64).pin_memory().numpy().view(Owner)
        array, alive, graph = gg.zeros(1000), weakref.ref(host), torch.cuda.CUDAGraph()
        theirs = torch.cuda.Stream(); ours = gg.Stream.borrow(theirs)
        gg.synchronize()
        with torch.cuda.graph(graph, stream=theirs):
            gg.copy(array, host, stream=ours)
        del host, ours
        gc.collect(); gg.synchronize(); gg.alloc(16); gg.synchronize()
        assert alive() is not None
        graph.replay(); assert (array.get() == 1).all()
    """)


def test_a_get_inside_a_capture_is_refused_with_a_remedy(with_torch):
    message = with_torch("""
        array, x, graph = gg.zeros(1000), torch.zeros(1000, device="cuda"), torch.cuda.CUDAGraph()
        x += 1; gg.synchronize()
        with torch.cuda.graph(graph):
            x += 1
            with gg.Stream.borrow(torch.cuda.current_stream()):
                try: array.get()
                except gg.UnsupportedError as error: print(error)
        graph.replay(); assert (x.cpu() == 2).all()
    """)
    assert "stream is capturing" in message and "use pinned memory" in message
