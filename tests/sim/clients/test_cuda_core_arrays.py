"""gpuglue and NVIDIA's cuda.core in one process, on the simulated driver: arrays, buffers and streams are passed in both
directions. cuda.core reads gpuglue's arrays through the DLPack exchange table where it supports it, else through __dlpack__."""

import os

import numpy as np
import pytest

os.environ["GPUGLUE_BACKEND"] = "cuda"

cuda_core = pytest.importorskip("cuda.core")
gg = pytest.importorskip("gpuglue")
utils = pytest.importorskip("cuda.core.utils")


@pytest.fixture(scope="module")
def core_device():
    device = cuda_core.Device(0)
    device.set_current()
    return device


@pytest.fixture
def array():
    return gg.arange(12, dtype="f4", device="cuda:0").reshape(3, 4)


def test_cuda_core_imports_a_gpuarray_in_place(core_device, array):
    stream = core_device.create_stream()
    for source in (array, array[1:, ::2], array.T):
        view = utils.StridedMemoryView.from_any_interface(source, stream_ptr=int(stream.handle))
        strides = tuple(stride // 4 for stride in source.strides)
        assert (view.ptr, view.shape, view.strides or strides) == (source.ptr, source.shape, strides)
        assert (np.dtype(view.dtype), view.device_id, view.is_device_accessible) == (source.dtype, 0, True)


def test_a_view_of_cuda_core_is_imported_in_place(core_device, array):
    stream = core_device.create_stream()
    view = utils.StridedMemoryView.from_any_interface(array[:, ::2], stream_ptr=int(stream.handle))
    for take in (gg.asarray, gg.from_dlpack):
        back = take(view)
        assert (back.ptr, back.strides) == (array.ptr, (16, 8)) and back.tolist() == array[:, ::2].tolist()


def test_a_buffer_of_cuda_core_is_imported_without_a_copy(core_device):
    stream = core_device.create_stream()
    buffer = core_device.allocate(64, stream=stream)
    stream.sync()
    for take in (gg.from_dlpack, gg.asarray):
        wrapped = take(buffer)
        assert (wrapped.ptr, wrapped.nbytes, str(wrapped.device.backend)) == (int(buffer.handle), 64, "cuda")
    wrapped.fill(7)
    assert (wrapped.get() == 7).all()


def test_streams_are_shared_in_both_directions(core_device):
    stream, own = core_device.create_stream(), gg.Stream("cuda:0")
    assert gg.Stream.borrow(stream).handle == int(stream.handle)
    assert int(core_device.create_stream(own).handle) == own.handle
