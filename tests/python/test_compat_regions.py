"""gpuglue.compat.pycuda: copies of rows and of layers of rows."""

import numpy as np
import pytest

from gpuglue import _core
from gpuglue.compat.pycuda import driver as cuda
from gpuglue.compat.pycuda import tools


pytestmark = pytest.mark.usefixtures("context")


def test_pitched_rows_and_boxes_are_copied():
    allocation, pitch = cuda.mem_alloc_pitch(50, 20, 4)
    assert pitch >= 50
    a = np.arange(1000, dtype=np.uint8).reshape(20, 50)
    copy = cuda.Memcpy2D()
    copy.set_src_host(a)
    copy.set_dst_device(allocation)
    copy.width_in_bytes, copy.src_pitch, copy.dst_pitch, copy.height = 50, 50, pitch, 20
    copy(aligned := True)
    back = np.zeros((5, 10), np.uint8)
    copy = cuda.Memcpy2D()
    copy.set_src_device(allocation)
    copy.set_dst_host(back)
    copy.src_pitch, copy.src_x_in_bytes, copy.src_y = pitch, 7, 3
    copy.dst_pitch, copy.width_in_bytes, copy.height = 10, 10, 5
    copy(aligned)
    np.testing.assert_array_equal(back, a[3:8, 7:17])


def test_a_copy_of_rows_accepts_aligned_by_keyword_or_a_stream():
    a, back, stream = np.arange(12, dtype=np.uint8).reshape(3, 4), np.zeros((3, 2), np.uint8), cuda.Stream()
    allocation = cuda.mem_alloc(100)
    copy = cuda.Memcpy2D()
    copy.set_src_host(a)
    copy.set_dst_device(allocation)
    copy.width_in_bytes, copy.src_pitch, copy.dst_pitch, copy.height = 4, 4, 32, 3
    copy(aligned=True)
    copy = cuda.Memcpy2D()
    copy.set_src_device(allocation)
    copy.set_dst_host(back)
    copy.src_x_in_bytes, copy.src_pitch, copy.width_in_bytes, copy.height = 1, 32, 2, 3
    copy(stream)
    stream.synchronize()
    np.testing.assert_array_equal(back, a[:, 1:3])


def test_columns_are_copied_inside_an_allocation():
    a = np.arange(24, dtype=np.uint8).reshape(4, 6)
    allocation = cuda.to_device(a)
    copy = cuda.Memcpy2D()
    copy.set_src_device(allocation)
    copy.set_dst_device(allocation)
    copy.src_pitch = copy.dst_pitch = 6
    copy.dst_x_in_bytes, copy.width_in_bytes, copy.height = 4, 2, 4
    copy(aligned=False)
    a[:, 4:] = a[:, :2]
    np.testing.assert_array_equal(cuda.from_device_like(allocation, a), a)


def test_rows_outside_of_the_memory_are_refused():
    a, allocation = np.zeros((4, 8), np.uint8), cuda.mem_alloc(32)
    for height, pitch in ((5, 8), (4, 9)):
        for ends in (("set_src_host", a, "set_dst_device", allocation), ("set_src_device", allocation, "set_dst_host", a),
                     ("set_src_host", a, "set_dst_host", a.copy())):
            copy = cuda.Memcpy2D()
            getattr(copy, ends[0])(ends[1])
            getattr(copy, ends[2])(ends[3])
            copy.width_in_bytes, copy.src_pitch, copy.dst_pitch, copy.height = 8, pitch, pitch, height
            with pytest.raises(cuda.LogicError, match="do not fit"):
                copy(True)


def test_a_box_is_copied_by_one_call(monkeypatch):
    calls = []
    real = _core._copy_region
    monkeypatch.setattr(_core, "_copy_region", lambda *args: (calls.append(args), real(*args)))
    a = np.arange(60, dtype=np.uint8).reshape(3, 4, 5)
    allocation = cuda.to_device(np.zeros(200, np.uint8))
    copy = cuda.Memcpy3D()
    copy.set_src_host(a)
    copy.set_dst_device(allocation)
    copy.width_in_bytes = copy.src_pitch = 5
    copy.dst_pitch, copy.src_height, copy.dst_height, copy.height, copy.depth = 8, 4, 5, 4, 3
    copy()
    box = cuda.from_device(allocation, 200, np.uint8)[:120].reshape(3, 5, 8)
    np.testing.assert_array_equal(box[:, :4, :5], a)
    assert len(calls) == 1 and box.sum() == a.sum()


def test_rows_of_strided_host_arrays_are_copied():
    whole = np.arange(60, dtype=np.int32).reshape(6, 10)
    part, expected = whole[1:5, 3:7], whole[1:5, 3:7].copy()
    device = cuda.mem_alloc(part.size * 4)
    copy = cuda.Memcpy2D()
    copy.set_src_host(part)
    copy.set_dst_device(device)
    copy.width_in_bytes, copy.height, copy.src_pitch, copy.dst_pitch = 16, 4, whole.strides[0], 16
    copy(aligned=True)
    np.testing.assert_array_equal(cuda.from_device(device, part.shape, part.dtype), expected)
    part[...] = 0
    kept, copy = whole.copy(), cuda.Memcpy2D()
    copy.set_src_device(device)
    copy.set_dst_host(part)
    copy.width_in_bytes, copy.height, copy.src_pitch, copy.dst_pitch = 16, 4, 16, whole.strides[0]
    copy(aligned=True)
    kept[1:5, 3:7] = expected
    np.testing.assert_array_equal(whole, kept)
    copy.height = 5  # one row more than the part has
    with pytest.raises(cuda.LogicError, match="do not fit"):
        copy(aligned=True)


def test_layers_of_strided_host_arrays_are_copied():
    whole = np.arange(4 * 5 * 6, dtype=np.int16).reshape(4, 5, 6)
    part, device, copy = whole[1:3, 1:4, 2:6], cuda.mem_alloc(2 * 3 * 8), cuda.Memcpy3D()
    copy.set_src_host(part)
    copy.set_dst_device(device)
    copy.width_in_bytes, copy.height, copy.depth = 8, 3, 2
    copy.src_pitch, copy.src_height, copy.dst_pitch, copy.dst_height = 12, 5, 8, 3
    copy()
    np.testing.assert_array_equal(cuda.from_device(device, part.shape, part.dtype), part)


def test_read_only_host_arrays_are_no_destination():
    fixed = np.zeros((4, 8), np.uint8)
    fixed.flags.writeable = False
    for array in (fixed, fixed[:, ::2]):
        with pytest.raises(ValueError, match="read-only"):
            cuda.Memcpy2D().set_dst_host(array)
        cuda.Memcpy2D().set_src_host(array)


@pytest.mark.parametrize("kind", ["pageable", "pinned", "managed"])
def test_a_unified_side_is_an_array_or_device_memory(device, kind):
    if kind == "managed" and not device.attributes.get("managed_memory"):
        pytest.skip(f"{device} has no managed memory")
    make = {"pageable": np.empty, "pinned": cuda.pagelocked_empty,
            "managed": lambda *args: cuda.managed_empty(*args, mem_flags=cuda.mem_attach_flags.GLOBAL)}[kind]
    host, back = make((3, 4), np.uint8), make((3, 4), np.uint8)
    host[...], back[...] = np.arange(12).reshape(3, 4), 0
    memory = cuda.mem_alloc(12)
    for source, target in ((host, memory), (memory, back)):
        copy = cuda.Memcpy2D()
        copy.set_src_unified(source)
        copy.set_dst_unified(target)
        copy.width_in_bytes = copy.src_pitch = copy.dst_pitch = 4
        copy.height = 3
        copy(aligned=True)
    cuda.Context.synchronize()
    np.testing.assert_array_equal(back, host)


def test_three_dimensional_boxes_are_copied():
    a = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    allocation = cuda.mem_alloc(a.nbytes)
    copy = cuda.Memcpy3D()
    copy.set_src_host(a)
    copy.set_dst_device(allocation)
    copy.width_in_bytes = copy.src_pitch = copy.dst_pitch = 16
    copy.src_height = copy.dst_height = copy.height = 3
    copy.depth = 2
    copy()
    np.testing.assert_array_equal(cuda.from_device(allocation, a.shape, a.dtype), a)
