"""gpuglue.compat.pycuda: Array, the memory in rows that PyCUDA's programs fill for textures."""

import numpy as np
import pytest

from gpuglue.compat.pycuda import driver as cuda
from gpuglue.compat.pycuda import gpuarray


pytestmark = pytest.mark.usefixtures("context")


def described(width, height, form=cuda.array_format.FLOAT, channels=1, depth=None):
    descriptor = cuda.ArrayDescriptor() if depth is None else cuda.ArrayDescriptor3D()
    descriptor.width, descriptor.height, descriptor.format, descriptor.num_channels = width, height, form, channels
    if depth is not None:
        descriptor.depth = depth
    return descriptor


def content(array, dtype, shape):
    host = np.empty(shape, dtype)
    cuda.memcpy_atoh(host, array, 0)
    return host


def test_an_array_is_filled_and_read_from_the_host_and_the_device():
    array = cuda.Array(described(6, 0))
    cuda.memcpy_htoa(array, 0, np.arange(6, dtype=np.float32))
    device = cuda.to_device(np.array([7, 8], np.float32))
    cuda.memcpy_dtoa(array, 4, device, 8)
    assert content(array, np.float32, 6).tolist() == [0, 7, 8, 3, 4, 5]
    cuda.memcpy_atod(device, array, 16, 8)
    assert cuda.from_device(device, (2,), np.float32).tolist() == [4, 5]
    other = cuda.Array(described(3, 2))
    cuda.memcpy_htoa(other, 0, np.zeros(6, np.float32))
    cuda.memcpy_atoa(other, 4, array, 12, 12)
    assert content(other, np.float32, 6).tolist() == [0, 3, 4, 5, 0, 0]


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_matrix_becomes_an_array_whose_rows_are_those_of_the_order(order):
    matrix = np.arange(6, dtype=np.int32).reshape(2, 3)
    array = cuda.matrix_to_array(matrix, order)
    found = array.get_descriptor()
    assert (found.width, found.height) == ((3, 2) if order == "C" else (2, 3))
    assert (found.format, found.num_channels) == (cuda.array_format.SIGNED_INT32, 1)
    assert (content(array, np.int32, (found.height, found.width)) == (matrix if order == "C" else matrix.T)).all()


@pytest.mark.parametrize("dtype, channels", [("f4", 1), ("f8", 2), ("c8", 2), ("c16", 4), ("u2", 1)])
def test_arrays_of_host_and_device_become_arrays_of_their_size(dtype, channels):
    a = np.arange(24).astype(dtype).reshape(4, 2, 3)
    for array in cuda.np_to_array(a, "C", allowSurfaceBind=True), cuda.gpuarray_to_array(gpuarray.to_gpu(a), "C"):
        found = array.get_descriptor_3d()
        assert (found.width, found.height, found.depth, found.num_channels) == (3, 2, 4, channels)
        assert (content(array, dtype, (4, 2, 3)) == a).all()
    assert cuda.np_to_array(a, "C", allowSurfaceBind=True).get_descriptor_3d().flags == cuda.array3d_flags.SURFACE_LDST


def test_channels_are_the_last_index_in_c_order_and_the_first_in_f_order():
    a = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    for array in cuda.make_multichannel_2d_array(a, "C"), cuda.make_multichannel_2d_array(np.asfortranarray(a.T), "F"):
        found = array.get_descriptor()
        assert (found.width, found.height, found.num_channels) == (3, 2, 4)
        assert (content(array, np.uint8, a.shape) == a).all()


def test_rows_of_an_array_are_copied_at_any_place_of_it():
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    array = cuda.np_to_array(a, "C")
    part = np.zeros((1, 2, 2), np.float32)
    copy = cuda.Memcpy3D()
    copy.set_src_array(array)
    copy.set_dst_host(part)
    copy.src_x_in_bytes, copy.src_y, copy.src_z = 4, 1, 1
    copy.width_in_bytes = copy.dst_pitch = 8
    copy.height = copy.dst_height = 2
    copy()
    assert (part == a[1:, 1:, 1:3]).all()
    back = cuda.Memcpy2D()
    back.set_src_host(np.full((1, 2), 9, np.float32))
    back.set_dst_array(array)
    back.width_in_bytes = back.src_pitch = 8
    back.dst_y, back.dst_x_in_bytes = 2, 8
    back(aligned=True)
    a[0, 2, 2:] = 9
    assert (content(array, np.float32, a.shape) == a).all()
    for place in {"src_x_in_bytes": 12}, {"src_y": 2}, {"src_z": 2}, {"src_z": -1}:
        for name, value in ({"src_x_in_bytes": 4, "src_y": 1, "src_z": 1} | place).items():
            setattr(copy, name, value)
        with pytest.raises(cuda.LogicError, match="is not within an Array of"):
            copy()


def test_a_box_is_copied_between_devices_by_the_addresses_alone():
    a = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
    source, target = cuda.to_device(a), cuda.mem_alloc(8)
    copy = cuda.Memcpy3DPeer()
    copy.set_src_device(source)
    copy.set_dst_device(target)
    copy.set_src_context(cuda.Context.get_current())
    copy.set_dst_context(cuda.Context.get_current())
    copy.width_in_bytes = copy.height = copy.depth = 2
    copy()
    assert (cuda.from_device(target, a.shape, a.dtype) == a).all()


@pytest.mark.parametrize("bad, message", [
    (lambda: cuda.Array(described(0, 2)), "an Array has a width, 1, 2 or 4 channels"),
    (lambda: cuda.Array(described(3, 2, channels=3)), "and 3 channels"),
    (lambda: cuda.Array(described(3, 2, form=99)), "no format 99: expected one of array_format"),
    (lambda: cuda.matrix_to_array(np.zeros((2, 2), np.float32), "K"), "order must be 'C' or 'F': got 'K'"),
    (lambda: cuda.np_to_array(np.zeros(2, np.float32), "C"), "has 2 or 3 dimensions: got 1"),
    (lambda: cuda.memcpy_htoa(cuda.Array(described(2, 0)), 4, np.zeros(2, np.float32)), "8 bytes at 4 are not in an Array of 8 bytes"),
    (lambda: cuda.Array(described(2, 0)).handle, "is memory in rows, and no CUarray"),
])
def test_a_wrong_array_is_an_error_that_says_what_is_expected(bad, message):
    with pytest.raises(cuda.LogicError, match=message):
        bad()


def test_an_array_that_was_freed_is_an_error():
    array = cuda.Array(described(2, 0))
    array.free()
    for use in array.free, lambda: cuda.memcpy_htoa(array, 0, np.zeros(2, np.float32)):
        with pytest.raises(cuda.LogicError, match="this Array was freed"):
            use()


def test_a_dtype_without_a_format_is_an_error_that_lists_those_with_one():
    with pytest.raises(TypeError, match="no format for int64: expected one of uint8, "):
        cuda.matrix_to_array(np.zeros((2, 2), np.int64), "C")
    assert cuda.matrix_to_array(np.ones((2, 3)), "C", allow_double_hack=True).get_descriptor().num_channels == 2


def test_the_numbers_of_textures_are_the_drivers():
    assert [int(mode) for mode in cuda.address_mode] == [0, 1, 2, 3] and cuda.filter_mode.LINEAR == 1
    assert cuda.array_cubemap_face.NEGATIVE_Z == 5 and cuda.array3d_flags.ARRAY3D_LAYERED == 1
    assert cuda.dtype_to_array_format(np.float16) == cuda.array_format.HALF
