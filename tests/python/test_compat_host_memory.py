"""gpuglue.compat.pycuda: host memory that the device knows, and pools of it."""

import gc

import numpy as np
import pytest
from conftest import needs
from kernels import path_for

import gpuglue as gg
from gpuglue.compat.pycuda import driver as cuda
from gpuglue.compat.pycuda import tools


pytestmark = pytest.mark.usefixtures("context")


KINDS = {"pagelocked": cuda.PagelockedHostAllocation, "managed": cuda.ManagedAllocation}


@pytest.fixture
def managed(device):
    try:
        gg.alloc_managed(16, device).close()
    except gg.UnsupportedError:
        pytest.skip(f"{device} has no managed memory")


@pytest.fixture(params=KINDS)
def kind(request):
    if request.param == "managed":
        request.getfixturevalue("managed")
    return request.param


def maker(kind, name):
    return getattr(cuda, f"{kind}_{name}")


def test_arrays_of_both_kinds_have_shape_order_and_base(kind):
    for shape in (7, (3, 4), (2, 3, 4)):
        for order in "CF":
            array = maker(kind, "zeros")(shape, np.float32, order=order)
            assert array.shape == np.empty(shape).shape and array.dtype == np.float32
            assert array.strides == np.empty(shape, np.float32, order).strides
            assert not array.any() and isinstance(array.base, KINDS[kind])
            assert array.base.get_device_pointer() == array.ctypes.data
            like = maker(kind, "empty_like")(array)
            assert like.strides == array.strides and like.shape == array.shape
    record = np.dtype([("a", "i4"), ("b", "f8")])
    assert maker(kind, "zeros_like")(np.empty((2, 2), record)).dtype == record
    assert maker(kind, "empty")((0, 3), np.int8).shape == (0, 3)


def test_their_memory_survives_a_round_trip(kind):
    host = maker(kind, "empty")(1000, np.int32)
    host[:] = np.arange(1000)
    stream = cuda.Stream()
    device = cuda.mem_alloc(host.nbytes)
    cuda.memcpy_htod_async(device, host, stream)
    back = maker(kind, "zeros_like")(host)
    cuda.memcpy_dtoh_async(back, device, stream)
    stream.synchronize()
    np.testing.assert_array_equal(back, np.arange(1000))


def test_memory_cannot_be_freed_twice(kind):
    array = maker(kind, "empty")(10, np.uint8)
    array.base.free()
    with pytest.raises(cuda.LogicError, match="already freed"):
        array.base.free()
    with pytest.raises(cuda.LogicError, match="freed"):
        array.base.get_device_pointer()


def test_views_keep_the_memory(kind):
    part = maker(kind, "zeros")((100, 100), np.float64)[10:, 5:]
    gc.collect()
    part[:] = 3
    assert part.sum() == 3 * part.size


def test_invalid_arrays_are_refused(kind):
    with pytest.raises(cuda.LogicError, match="order"):
        maker(kind, "empty")(3, np.int8, order="K")
    with pytest.raises(TypeError, match="Python objects"):
        maker(kind, "empty")(3, object)
    with pytest.raises(cuda.MemoryError):
        maker(kind, "empty")(1 << 50, np.uint8)


def test_managed_arrays_and_their_views_can_be_arguments(device, managed):
    needs(device, "module_load", "kernel_launch")
    scale = cuda.module_from_file(str(path_for(device))).get_function("scale")
    x = cuda.managed_empty(20, np.float32)
    x[:] = np.arange(20)
    scale(x, np.uint32(20), np.float32(2), block=(32, 1, 1), grid=(1, 1))
    scale(x[10:], np.uint32(10), np.float32(10), block=(32, 1, 1))
    cuda.Context.synchronize()
    np.testing.assert_array_equal(x, np.arange(20) * np.where(np.arange(20) < 10, 2, 20))
    with pytest.raises(TypeError, match="host memory"):
        scale(np.zeros(20, np.float32), np.uint32(20), np.float32(2), block=(32, 1, 1))


def test_managed_memory_accepts_only_known_attach_flags(managed):
    x = cuda.managed_zeros(10, np.int32, mem_flags=cuda.mem_attach_flags.GLOBAL)
    x.base.attach(cuda.mem_attach_flags.HOST)
    with pytest.raises(cuda.LogicError, match="mem_attach_flags"):
        x.base.attach(8)


def test_a_registered_array_shares_its_memory(device):
    needs(device, "mem_register")
    original = cuda.aligned_empty((512, 4), np.float32)
    original[:] = 1
    array = cuda.register_host_memory(original, flags=cuda.mem_host_register_flags.DEVICEMAP)
    assert array.ctypes.data == original.ctypes.data and array.shape == original.shape
    assert isinstance(array.base, cuda.RegisteredHostMemory) and array.base.base is original
    memory, stream = cuda.mem_alloc_like(array), cuda.Stream()
    cuda.memcpy_htod_async(memory, array, stream)
    array_back = cuda.pagelocked_empty_like(array)
    cuda.memcpy_dtoh_async(array_back, memory, stream)
    stream.synchronize()
    assert (array_back == 1).all()
    array.base.unregister()
    assert (original == 1).all()
    with pytest.raises(cuda.LogicError):
        array.base.unregister()


def test_arrays_of_host_memory_have_their_memory_as_base(device):
    aligned = cuda.aligned_empty((3, 4), np.float32, order="F", alignment=256)
    aligned[:] = 5
    assert isinstance(aligned.base, cuda.AlignedHostAllocation) and aligned.flags.f_contiguous and aligned.ctypes.data % 256 == 0
    part = aligned[1:]
    base = aligned.base
    del aligned
    gc.collect()
    assert (part == 5).all()
    del part
    base.free()
    with pytest.raises(cuda.LogicError, match="already freed"):
        base.free()
    assert cuda.aligned_zeros(0, np.float32).size == 0
    pinned = cuda.pagelocked_empty(3, np.float32)
    assert isinstance(pinned.base, cuda.HostAllocation) and isinstance(pinned.base, cuda.HostPointer)
    assert not issubclass(cuda.RegisteredHostMemory, cuda.HostAllocation) and issubclass(cuda.ManagedAllocation, cuda.HostAllocation)


def test_the_memory_of_a_pools_array_returns_to_the_pool_when_it_is_freed(device):
    pool = tools.PageLockedMemoryPool()
    array = pool.allocate((4, 8), np.float32)
    array[:] = 1
    base = array.base
    assert isinstance(base, tools.PooledHostAllocation) and (pool.active_blocks, pool.held_blocks) == (1, 0)
    del array
    base.free()
    assert (pool.active_blocks, pool.held_blocks) == (0, 1)
    with pytest.raises(cuda.LogicError, match="already returned"):
        base.free()
    del base
    gc.collect()
    assert (pool.active_blocks, pool.held_blocks) == (0, 1)  # not twice
    again = pool.allocate(32, np.float32)
    assert again[0] == 1 and (pool.active_blocks, pool.held_blocks) == (1, 0)


def test_an_array_can_be_registered_again_after_unregister(device):
    needs(device, "mem_register")
    original = cuda.aligned_zeros(1 << 14, np.uint8)
    array = cuda.register_host_memory(original)
    with pytest.raises(cuda.LogicError):
        cuda.register_host_memory(original)
    array.base.unregister()
    assert cuda.register_host_memory(original).base.get_device_pointer() == original.ctypes.data
    gc.collect()  # dropped without unregister()
    cuda.register_host_memory(original).base.unregister()


def test_arrays_that_cannot_be_registered_are_refused(device):
    needs(device, "mem_register")
    with pytest.raises(TypeError, match="NumPy array"):
        cuda.register_host_memory(b"bytes")
    with pytest.raises(ValueError, match="contiguous"):
        cuda.register_host_memory(np.zeros((10, 10))[:, ::2])


def test_a_launch_on_an_address_inside_an_allocation_waits_for_its_work(device, gate):
    needs(device, "module_load", "kernel_launch")
    scale = cuda.module_from_file(str(path_for(device))).get_function("scale")
    host = cuda.pagelocked_empty(20, np.float32)
    host[:] = np.arange(20)
    memory, late, other = cuda.mem_alloc(80), cuda.Stream(), cuda.Stream()
    cuda.Context.synchronize()
    gate.hold(late._stream)
    cuda.memcpy_htod_async(memory, host, late)
    with other._stream:
        scale(holder(int(memory) + 40), np.uint32(10), np.float32(2), block=(32, 1, 1))
    assert not other._stream.done
    gate.open()
    other.synchronize()
    np.testing.assert_array_equal(cuda.from_device(memory, 20, np.float32), np.arange(20) * np.where(np.arange(20) < 10, 1, 2))


def holder(address):
    """A number that claims to be an address."""

    class Holder(cuda.PointerHolderBase):
        def get_pointer(self):
            return address

    return Holder()


def test_a_failed_allocation_does_not_count_as_active():
    pool = tools.DeviceMemoryPool()
    with pytest.raises(cuda.MemoryError):
        pool.allocate(1 << 62)
    assert (pool.active_blocks, pool.held_blocks) == (0, 0)


def test_a_block_may_be_dropped_during_a_call_of_its_pool():
    pool = tools.DeviceMemoryPool()
    block = pool.allocate(100)
    with pool._lock:  # as where a collection begins inside
        assert pool._lock.acquire(blocking=False)  # else the next line would never end
        pool._lock.release()
        del block
    assert (pool.active_blocks, pool.held_blocks) == (0, 1)
