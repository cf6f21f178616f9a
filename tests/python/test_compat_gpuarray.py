"""gpuglue.compat.pycuda.gpuarray: storage, views, copies, makers; and slices as arguments of kernels."""

import copy
import gc
import pickle

import numpy as np
import pytest
from kernels import path_for

from gpuglue.compat.pycuda import driver as cuda
from gpuglue.compat.pycuda import gpuarray


pytestmark = pytest.mark.usefixtures("context")


def test_arrays_have_shape_dtype_and_device():
    a = gpuarray.empty((3, 4), np.float32, order="F")
    assert (a.shape, a.dtype, a.strides, a.size, a.ndim) == ((3, 4), np.float32, (4, 12), 12, 2)
    assert (a.nbytes, a.itemsize, a.mem_size, len(a)) == (48, 4, 12, 3)
    assert a.flags.f_contiguous and not a.flags.c_contiguous and int(a.gpudata) == a.ptr
    with pytest.raises(TypeError):
        len(gpuarray.zeros((), np.float32))
    with pytest.raises(ValueError, match="truth value"):
        bool(a)
    assert bool(gpuarray.ones(1)) and not bool(gpuarray.zeros((1, 1)))


def test_memory_that_others_have_read_the_address_of_is_not_reused_at_once(device):
    if device.backend not in ("cuda", "hip"):
        pytest.skip(f"{device.backend} has no __cuda_array_interface__")
    array = gpuarray.zeros(1000, np.float32)
    address = array.__cuda_array_interface__["data"][0]
    del array
    gc.collect()
    assert gpuarray.zeros(1000, np.float32).ptr != address


def test_the_interface_for_other_packages_has_the_strides_as_that_of_pycuda(device):
    if device.backend not in ("cuda", "hip"):
        pytest.skip(f"{device.backend} has no __cuda_array_interface__")
    for array in (gpuarray.zeros((2, 3), np.float32), gpuarray.zeros((2, 3), np.float32, order="F"), gpuarray.zeros((), np.int64)):
        assert array.__cuda_array_interface__["strides"] == array.strides


def test_round_trips_keep_order_and_values():
    for order in "CF":
        a = np.asarray(np.random.default_rng(5).random((4, 5)), order=order)
        g = gpuarray.to_gpu(a)
        got = g.get()
        np.testing.assert_array_equal(got, a)
        assert got.strides == a.strides
        g.set(a * 2)
        np.testing.assert_array_equal(g.get(np.empty_like(a)), a * 2)
    np.testing.assert_array_equal(gpuarray.to_gpu(a[::2, ::-1]).get(), a[::2, ::-1])


def test_an_asynchronous_round_trip_keeps_the_bytes():
    stream = cuda.Stream()
    a = cuda.pagelocked_empty(100, np.float32)
    a[:] = np.arange(100)
    g = gpuarray.to_gpu_async(a, stream=stream)
    got = g.get_async(stream)
    stream.synchronize()
    np.testing.assert_array_equal(got, a)


@pytest.mark.parametrize("index", [
    np.s_[3], np.s_[2:7], np.s_[5:3], np.s_[::-1], np.s_[::3], np.s_[-2:], np.s_[...], np.s_[None], np.s_[1:4, 2],
    np.s_[:, ::2], np.s_[..., -1], np.s_[7:2:-2, None, 1:3], np.s_[0, 0]])
def test_slices_are_views_as_in_numpy(index):
    a = np.arange(80, dtype=np.int32).reshape(10, 8)
    g = gpuarray.to_gpu(a)
    part = g[index]
    np.testing.assert_array_equal(part.get(), a[index])
    assert part.shape == a[index].shape
    if part.size:
        part.fill(-1)
        a[index] = -1
        np.testing.assert_array_equal(g.get(), a)


def test_slices_are_assigned():
    a = np.arange(20, dtype=np.float32).reshape(4, 5)
    g = gpuarray.to_gpu(a)
    g[1] = gpuarray.to_gpu(np.full(5, 7, np.float32))
    g[:, 2] = 3
    g[3, 3:] = np.array([1, 2], np.float32)
    a[1], a[:, 2], a[3, 3:] = 7, 3, [1, 2]
    np.testing.assert_array_equal(g.get(), a)


def test_shapes_change_without_copies():
    a = np.arange(24, dtype=np.float32)
    g = gpuarray.to_gpu(a)
    for view, expected in ((g.reshape(2, 3, 4), a.reshape(2, 3, 4)), (g.reshape((4, -1)), a.reshape(4, 6)),
                           (g.reshape(4, 6).T, a.reshape(4, 6).T), (g.reshape(1, 24, 1).squeeze(), a),
                           (g.reshape(2, 3, 4).transpose((2, 0, 1)), a.reshape(2, 3, 4).transpose(2, 0, 1)),
                           (g.reshape(4, 6).ravel(), a), (g.view(np.int32), a.view(np.int32)),
                           (g.view(np.int64), a.view(np.int64)), (g.view(np.int16), a.view(np.int16))):
        np.testing.assert_array_equal(view.get(), expected)
        assert view.ptr == g.ptr
    with pytest.raises(ValueError):
        g.reshape(5, 5)


def test_like_functions_keep_shape_type_and_order():
    f = gpuarray.to_gpu(np.asfortranarray(np.ones((3, 4), np.float32)))
    assert gpuarray.empty_like(f).strides == f.strides
    assert gpuarray.zeros_like(f, order="C").strides == (16, 4)
    np.testing.assert_array_equal(gpuarray.zeros_like(f).get(), np.zeros((3, 4)))
    np.testing.assert_array_equal(gpuarray.ones_like(f, np.int16).get(), np.ones((3, 4), np.int16))
    np.testing.assert_array_equal(gpuarray.zeros_like(f[:, ::2]).get(), np.zeros((3, 2)))


def test_every_constructor_creates_an_array():
    np.testing.assert_array_equal(gpuarray.arange(1, 10, 2, dtype=np.int32).get(), np.arange(1, 10, 2))
    np.testing.assert_array_equal(gpuarray.zeros((2, 2), np.complex64).get(), np.zeros((2, 2), np.complex64))
    np.testing.assert_array_equal(gpuarray.ones(3).get(), np.ones(3))
    a, b = gpuarray.arange(4), gpuarray.to_gpu(np.arange(4) * 2)
    np.testing.assert_array_equal(gpuarray.stack([a, b]).get(), np.stack([a.get(), b.get()]))
    np.testing.assert_array_equal(gpuarray.stack([a, b], 1).get(), np.stack([a.get(), b.get()], 1))
    np.testing.assert_array_equal(gpuarray.concatenate([a, b]).get(), np.concatenate([a.get(), b.get()]))
    np.testing.assert_array_equal(a.copy().get(), a.get())
    assert gpuarray.empty((0, 3)).get().shape == (0, 3)


def test_a_slice_can_be_a_kernel_argument(device):
    if not device.supports("module_load"):
        pytest.skip("no modules")
    function = cuda.module_from_file(str(path_for(device))).get_function("scale")
    g = gpuarray.arange(10, dtype=np.float32)
    function(g[5:], np.uint32(3), np.float32(10), block=(32, 1, 1))
    assert g.get().tolist() == [0, 1, 2, 3, 4, 50, 60, 70, 8, 9]
    function(g.gpudata, np.uint32(1), np.float32(10), block=(32, 1, 1))
    function(np.uintp(g.ptr + 4), np.uint32(1), np.float32(10), block=(32, 1, 1))
    assert g.get()[1] == 10


def test_pointer_holders_can_replace_memory(device):
    if not device.supports("module_load"):
        pytest.skip("no modules")

    class Holder(cuda.PointerHolderBase):
        def __init__(self, pointer):
            self.pointer = pointer

        def get_pointer(self):
            return int(self.pointer)

    g = gpuarray.arange(4, dtype=np.float32)
    holder = Holder(g.gpudata)
    cuda.module_from_file(str(path_for(device))).get_function("scale")(holder, np.uint32(4), np.float32(2), block=(32, 1, 1))
    np.testing.assert_array_equal(cuda.from_device(holder, 4, np.float32), np.arange(4) * 2)


def test_host_memory_is_aligned_and_ordered():
    a = cuda.aligned_zeros((3, 5), np.float32, order="F", alignment=4096)
    assert a.ctypes.data % 4096 == 0 and a.flags.f_contiguous and not a.any()
    assert cuda.aligned_empty_like(a).shape == (3, 5)
    locked = cuda.pagelocked_empty((3, 5), np.float32, order="F")
    assert locked.shape == (3, 5) and locked.flags.f_contiguous


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_stack_inserts_the_given_axis(axis):
    a, b = (gpuarray.to_gpu(np.arange(6, dtype="f4").reshape(2, 3) + n) for n in (0, 10))
    np.testing.assert_array_equal(gpuarray.stack([a, b], axis).get(), np.stack([a.get(), b.get()], axis))
    with pytest.raises(ValueError, match="axis 3"):
        gpuarray.stack([a, b], 3)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_pickled_and_copied_deeply(order):
    a = gpuarray.to_gpu(np.arange(50000, dtype="f4").reshape(100, 500, order=order))
    for other in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a)):
        assert other.ptr != a.ptr and other.strides == a.strides
        np.testing.assert_array_equal(other.get(), a.get())


@pytest.mark.parametrize("index", [[0, 2], np.array([0, 2]), np.array([True, False, True])], ids=repr)
def test_an_index_that_is_an_array_names_take(index, device):
    with pytest.raises(NotImplementedError, match=r"indexing by an array: use pycuda\.gpuarray\.take\("):
        gpuarray.to_gpu(np.arange(3))[index]


@pytest.mark.parametrize("index", [True, np.bool_(True), range(3), ((0, 1),), "x", 1.0], ids=repr)
def test_an_index_that_is_not_basic_is_refused(index):
    a = gpuarray.zeros(20, np.float32)
    with pytest.raises(IndexError, match="invalid subindex"):
        a[index]
    with pytest.raises(IndexError, match="invalid subindex"):
        a[index] = 5
    assert not a.get().any()


def test_a_fill_requires_a_single_value():
    a = gpuarray.zeros(40, np.float32)
    with pytest.raises(TypeError, match="one value"):
        a[0:5] = [1, 2, 3]
    with pytest.raises(TypeError, match="one value"):
        a.fill([1, 2])
    assert not a.get().any()


def test_like_functions_and_copies_use_the_allocator_and_the_stream():
    calls = []

    def allocator(nbytes):
        calls.append(nbytes)
        return cuda.mem_alloc(nbytes)

    a = gpuarray.to_gpu(np.arange(5, dtype="f4"), allocator)
    gpuarray.empty_like(a), gpuarray.zeros_like(a), gpuarray.ones_like(a)
    copied = a.copy(cuda.Stream())
    assert calls == [20] * 5
    cuda.Context.synchronize()
    np.testing.assert_array_equal(copied.get(), a.get())


def test_arrays_are_recognised_by_the_module_of_their_type():
    assert type(gpuarray.zeros(1)).__module__ == "pycuda.gpuarray"
    assert repr(gpuarray.GPUArray) == "<class 'pycuda.gpuarray.GPUArray'>"
