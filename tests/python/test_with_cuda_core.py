"""gpuglue beside NVIDIA's cuda.core: one context, each other's streams and memory."""

import pytest
from with_cuda import beside, missing

ORDERS = pytest.mark.parametrize("first", ["cuda.core", "gpuglue"])


@pytest.fixture
def with_core(device):
    reason = missing("cuda.core", device)
    if reason:
        pytest.skip(reason)
    return beside("cuda.core")


@ORDERS
def test_calls_of_gpuglue_leave_the_context_of_cuda_core_current(with_core, first):
    with_core(
        """
        assert cuda.current_context() == cuda.primary_context()
        cuda.check_that_calls_leave_the_context_alone()
        """,
        first,
    )


def test_streams_of_cuda_core_are_borrowed(with_core):
    with_core("""
        stream = native.create_stream()
        borrowed = gg.Stream.borrow(stream)
        assert borrowed.handle == int(stream.handle) and borrowed.device == gg.Device("cuda:0")
        borrowed.synchronize()
    """)


def test_cuda_core_accepts_streams_of_gpuglue(with_core):
    with_core("""
        stream = gg.Stream(nonblocking=True)
        taken = native.create_stream(stream)
        assert int(taken.handle) == stream.handle
        gate = cuda.gate().hold(stream)
        event = taken.record()
        assert not event.is_done
        gate.open(); taken.sync()
        assert stream.done and event.is_done
    """)


EACH_READS = """
array, copied = gg.zeros(1000, "u1"), gg.zeros(1000, "u1")
view, copy = (core.Buffer.from_handle(one.ptr, one.nbytes) for one in (array, copied))
{streams}
gg.synchronize()
gate = cuda.gate().hold(ours)
view.fill(7, stream=theirs)
with ours:
    result = gg.zeros_pinned(1000, "u1")
    gg.copy(result, array, stream=ours)
    gg.fill(array, 9, stream=ours)
    copy.copy_from(view, stream=theirs)
    gate.open()
    assert (array.get() == 9).all() and (copied.get() == 9).all() and (result == 7).all()
"""


@ORDERS
def test_each_reads_on_a_stream_of_cuda_core_what_the_other_wrote(with_core, first):
    streams = "theirs = native.create_stream(); ours = gg.Stream.borrow(theirs)"
    with_core(EACH_READS.format(streams=streams), first)


@ORDERS
def test_each_reads_on_a_stream_of_gpuglue_what_the_other_wrote(with_core, first):
    streams = "ours = gg.Stream(nonblocking=True); theirs = native.create_stream(ours)"
    with_core(EACH_READS.format(streams=streams), first)
