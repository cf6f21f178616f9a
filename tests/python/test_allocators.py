"""set_allocator(): device memory from a callable, and from other packages' pools."""

import ctypes
import gc
import sys
import time
import types

import gpuglue as gg
import numpy as np
import pytest
from conftest import core_library

DEVICE = 1  # enum gg_memory_kind


class Block:
    """Memory from the C interface, as if from another package."""

    alive = 0

    def __init__(self, nbytes, device, size=None):
        core, handle, at = core_library(), ctypes.c_void_p(), ctypes.c_void_p()
        core.gg_memory_pointer.restype = ctypes.c_void_p
        assert core.gg_device_find(f"{device.backend}:{device.ordinal}".encode(), ctypes.byref(at)) == 0
        assert core.gg_memory_alloc(at, DEVICE, ctypes.c_size_t(nbytes), None, ctypes.byref(handle)) == 0
        self.core, self.handle, self.ptr = core, handle, core.gg_memory_pointer(handle)
        if size is not None:
            self.nbytes = size
        Block.alive += 1

    def __del__(self):
        Block.alive -= 1
        self.core.gg_memory_release(self.handle)


@pytest.fixture(autouse=True)
def own_pool_again():
    yield
    gg.set_allocator(None)


def settle(device):
    device.synchronize()
    gg.trim()
    gc.collect()


def test_all_device_memory_comes_from_the_callable(device):
    calls = []

    def allocator(nbytes, where, stream):
        calls.append((nbytes, where, stream))
        return Block(nbytes, where)

    gg.set_allocator(allocator)
    stream = gg.Stream(device)
    buffer = gg.alloc(100, stream=stream)
    array = gg.to_gpu(np.arange(10.0), device=device)
    gg.set_allocator(None)
    assert calls == [(100, device, stream), (80, device, gg.current_stream(device))]
    assert (array.get() == np.arange(10.0)).all() and buffer.nbytes == 100
    assert Block.alive == 2
    del buffer, array, calls
    settle(device)
    assert Block.alive == 0


def test_its_memory_is_dropped_after_the_work_on_it(device, gate):
    gg.set_allocator(lambda nbytes, where, stream: Block(nbytes, where))
    stream = gg.Stream(device, nonblocking=True)
    buffer = gg.alloc(1000, device)
    gate.hold(stream)
    gg.fill(buffer, 1, stream=stream)
    buffer.close()
    gg.trim()
    assert Block.alive == 1
    gate.open()
    settle(device)
    assert Block.alive == 0


def test_its_memory_is_allocated_in_the_order_of_the_stream(device, gate):
    gg.set_allocator(lambda nbytes, where, stream: Block(nbytes, where))
    home, other = gg.Stream(device, nonblocking=True), gg.Stream(device, nonblocking=True)
    gate.hold(home)  # the earlier user of the memory works on this stream
    buffer = gg.alloc(1000, stream=home)
    gg.fill(buffer, 1, stream=other)
    assert not any(other.done for _ in range(2000))
    gate.open()
    other.synchronize()


def use_and_drop(device):
    """A block that a fill uses, and that is idle before it is dropped."""
    buffer = gg.alloc(1000, device)
    gg.fill(buffer, 1)
    event = gg.current_stream(device).record()
    while not event.done:  # which finds out about the event only
        pass
    del buffer


def test_its_blocks_are_returned_by_later_allocations(device):
    gg.set_allocator(lambda nbytes, where, stream: Block(nbytes, where))
    most = 0
    for _ in range(100):
        use_and_drop(device)
        most = max(most, Block.alive)
    assert 1 <= most <= 10  # a simulated driver may say four times that it is busy


def test_an_allocator_without_memory_is_called_again_after_blocks_were_returned(device):
    attempts = []

    def allocator(nbytes, where, stream):
        attempts.append(Block.alive)
        if Block.alive and attempts.count(Block.alive) < 2:
            raise MemoryError("all blocks are in use")
        return Block(nbytes, where)

    gg.set_allocator(allocator)
    with gg.alloc(1000, device), gg.alloc(1000, device):
        assert attempts == [0, 1, 1]
        gg.set_allocator(None)


def test_another_exception_is_not_followed_by_a_second_attempt(device):
    attempts = []

    def allocator(nbytes, where, stream):
        attempts.append(nbytes)
        raise RuntimeError("not now")

    gg.set_allocator(allocator)
    with pytest.raises(RuntimeError, match="not now"):
        gg.alloc(10, device)
    assert attempts == [10]


def test_an_allocation_of_zero_bytes_does_not_call_it(device):
    gg.set_allocator(lambda *args: pytest.fail("it was called"))
    assert gg.alloc(0, device).ptr == 0


def test_pinned_memory_does_not_come_from_it(device):
    gg.set_allocator(lambda *args: pytest.fail("it was called"))
    gg.alloc_pinned(10, device).close()


def test_its_exception_reaches_the_caller(device):
    def allocator(nbytes, where, stream):
        raise MemoryError("the pool is dry")

    gg.set_allocator(allocator)
    with pytest.raises(MemoryError, match="the pool is dry"):
        gg.alloc(10, device)


WRONG = {
    "None": (lambda n, d, s: None, TypeError, "with the address in its ptr, got None"),
    "an int": (lambda n, d, s: 4096, TypeError, "with the address in its ptr"),
    "NULL": (lambda n, d, s: types.SimpleNamespace(ptr=0), ValueError, "^the allocator returned a NULL pointer for 100 bytes"),
    "no number": (lambda n, d, s: types.SimpleNamespace(ptr="x"), (TypeError, ValueError), "ptr"),
    "too few bytes": (lambda n, d, s: Block(n, d, size=n - 1), ValueError, "returned 99 bytes, 100 were requested"),
    "a bad size": (lambda n, d, s: Block(n, d, size=-1), ValueError, "size"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_its_result_is_checked(device, wrong):
    allocator, error, message = WRONG[wrong]
    gg.set_allocator(allocator)
    with pytest.raises(error, match=message):
        gg.alloc(100, device)
    settle(device)
    assert Block.alive == 0


def test_host_memory_is_refused(device):
    if not device.supports("pointer_info"):
        pytest.skip("this driver does not report on pointers")
    host = np.zeros(100)
    gg.set_allocator(lambda n, d, s: types.SimpleNamespace(ptr=host.ctypes.data))
    with pytest.raises(ValueError, match=r"^the allocator returned 0x\w+, which is not memory of"):
        gg.alloc(100, device)


def test_an_unknown_name_is_refused(device):
    for bad in ("tensorflow", "", 3):
        with pytest.raises(ValueError, match="set_allocator takes 'torch', 'cupy', 'rmm', a callable or None"):
            gg.set_allocator(bad)
    gg.alloc(10, device).close()


def test_a_missing_package_is_an_import_error(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "rmm", None)
    with pytest.raises(ImportError):
        gg.set_allocator("rmm")
    gg.alloc(10, device).close()


def test_a_block_that_is_returned_before_a_call_may_reset_the_allocator(device, gate):
    class Resetting(Block):
        def __del__(self):
            super().__del__()
            gg.set_allocator(None)

    calls = []
    gg.set_allocator(lambda nbytes, device, stream: calls.append(nbytes) or Resetting(nbytes, device))
    stream = gg.Stream(device)
    buffer = gg.alloc(10, stream=stream)
    gate.hold(stream)
    gg.fill(buffer, 1, stream=stream)
    buffer.close()
    gate.open()
    time.sleep(0.1)  # the fill ends, and no call of gpuglue returns the block yet
    gg.alloc(20, stream=stream)  # does, and is still served by the allocator that it found
    assert calls == [10, 20]


def test_the_allocator_of_torch_is_used(device, monkeypatch):
    """A module with torch's names; the real one is used in test_with_torch."""
    blocks = {}

    def allocate(nbytes, ordinal, stream):
        block = Block(nbytes, gg.Device(f"{device.backend}:{ordinal}"))
        blocks[block.ptr] = (block, stream)
        return block.ptr

    cuda = types.SimpleNamespace(caching_allocator_alloc=allocate, caching_allocator_delete=blocks.pop)
    version = types.SimpleNamespace(hip="7" if device.backend == "hip" else None)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda, version=version))
    gg.set_allocator("torch")
    if device.backend not in ("cuda", "hip"):
        with pytest.raises(gg.UnsupportedError, match="the allocator of torch does not support"):
            gg.alloc(10, device)
        return
    stream = gg.Stream(device)
    buffer, other = gg.alloc(100, stream=stream), gg.alloc(50, device)
    assert [stream for _, stream in blocks.values()] == [stream.handle, 0]
    del buffer, other
    settle(device)
    assert not blocks
