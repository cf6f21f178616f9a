"""gpuglue and NVIDIA's cuda.core in one process, on the simulated driver: arrays, buffers and streams go both ways.
cuda.core looks at our arrays through the exchange table where it knows that, else through __dlpack__."""

import os

import numpy as np
import pytest

os.environ["GPUGLUE_BACKEND"] = "cuda"

cuda_core = pytest.importorskip("cuda.core")
gg = pytest.importorskip("gpuglue")
utils = pytest.importorskip("cuda.core.utils")


@pytest.fixture(scope="module")
def theirs():
    device = cuda_core.Device(0)
    device.set_current()
    return device


@pytest.fixture
def array():
    return gg.arange(12, dtype="f4", device="cuda:0").reshape(3, 4)


def test_cuda_core_looks_at_our_array_where_it_is(theirs, array):
    stream = theirs.create_stream()
    for ours in (array, array[1:, ::2], array.T):
        view = utils.StridedMemoryView.from_any_interface(ours, stream_ptr=int(stream.handle))
        strides = tuple(stride // 4 for stride in ours.strides)
        assert (view.ptr, view.shape, view.strides or strides) == (ours.ptr, ours.shape, strides)
        assert (np.dtype(view.dtype), view.device_id, view.is_device_accessible) == (ours.dtype, 0, True)


def test_a_view_of_cuda_core_is_taken_where_it_is(theirs, array):
    stream = theirs.create_stream()
    view = utils.StridedMemoryView.from_any_interface(array[:, ::2], stream_ptr=int(stream.handle))
    for take in (gg.asarray, gg.from_dlpack):
        back = take(view)
        assert (back.ptr, back.strides) == (array.ptr, (16, 8)) and back.tolist() == array[:, ::2].tolist()


def test_a_buffer_of_cuda_core_is_taken_without_a_copy(theirs):
    stream = theirs.create_stream()
    buffer = theirs.allocate(64, stream=stream)
    stream.sync()
    for take in (gg.from_dlpack, gg.asarray):
        ours = take(buffer)
        assert (ours.ptr, ours.nbytes, str(ours.device.backend)) == (int(buffer.handle), 64, "cuda")
    ours.fill(7)
    assert (ours.get() == 7).all()


def test_streams_go_both_ways(theirs):
    stream, ours = theirs.create_stream(), gg.Stream("cuda:0")
    assert gg.Stream.borrow(stream).handle == int(stream.handle)
    assert int(theirs.create_stream(ours).handle) == ours.handle
