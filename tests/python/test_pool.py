"""Device.pool: reuse of memory; Device.pinned_pool; gpuglue.trim()."""

import ctypes
import gc
import os
import threading

import gpuglue as gg
import numpy as np
import pytest

MIB = 1 << 20


@pytest.fixture
def pool(device):
    gc.collect()
    device.synchronize()
    gg.trim()
    yield device.pool
    device.pool.limit = None
    device.pool.release_threshold = None


def test_a_closed_block_is_reused_without_a_driver_call(device, pool):
    for nbytes in (1, 1000, MIB, 64 * MIB):
        first = gg.alloc(nbytes, device)
        address = first.ptr
        first.close()
        calls = pool.stats().driver_calls
        assert gg.alloc(nbytes, device).ptr == address
        assert pool.stats().driver_calls == calls


def test_the_block_of_a_dropped_array_is_reused(device, pool):
    array = gg.zeros(MIB, "u1", device=device)
    address = array.ptr
    del array
    assert gg.empty(MIB, "u1", device=device).ptr == address


def test_the_statistics_count_used_and_free_bytes(device, pool):
    before = pool.stats()
    blocks = [gg.alloc(3 * MIB, device) for _ in range(4)]
    used = pool.stats()
    assert used.used_blocks == before.used_blocks + 4 and used.used_bytes == before.used_bytes + 12 * MIB
    assert used.reserved_bytes >= 12 * MIB and used.used_peak >= 12 * MIB
    assert used.allocations == before.allocations + 4
    for block in blocks:
        block.close()
    after = pool.stats()
    assert after.used_bytes == before.used_bytes and after.cached_blocks == 4 and after.cached_bytes == 12 * MIB
    assert after.reserved_bytes == used.reserved_bytes and after.reserved_peak >= used.reserved_bytes


def test_trim_returns_free_memory(device, pool):
    kept = gg.alloc(3 * MIB, device)
    for n in (1, 2, 3):
        gg.alloc(n * 4 * MIB, device).close()
    pool.trim(keep=9 * MIB)
    assert pool.stats().cached_bytes <= 9 * MIB
    pool.trim()
    stats = pool.stats()
    assert (stats.cached_bytes, stats.retired_bytes, stats.reserved_bytes) == (0, 0, 3 * MIB)
    kept.close()
    gg.trim()
    assert pool.stats().reserved_bytes == 0


def test_a_limit_is_kept_and_readable(device, pool):
    assert pool.limit is None
    pool.limit = 8 * MIB
    assert pool.limit == 8 * MIB
    block = gg.alloc(6 * MIB, device)
    with pytest.raises(MemoryError, match=rf"limit is 8.0 MiB \({8 * MIB} bytes\).*{6 * MIB} bytes\) in 1 blocks are in use"):
        gg.alloc(6 * MIB, device)
    block.close()
    gg.alloc(7 * MIB, device)  # the free block of another size was returned to the driver


def test_a_limit_below_what_is_used_is_refused(device, pool):
    block = gg.alloc(3 * MIB, device)
    with pytest.raises(ValueError, match=rf"a limit of 1.0 MiB \({MIB} bytes\) is below the 3.0 MiB \({3 * MIB} bytes\) that are in use"):
        pool.limit = MIB
    assert pool.limit is None
    block.close()
    pool.limit = MIB  # free memory is released instead


@pytest.mark.parametrize("bad", [-1, 0, 1 << 64])
def test_a_bad_limit_is_refused(pool, bad):
    with pytest.raises(ValueError):
        pool.limit = bad
    assert pool.limit is None


def test_limits_are_numbers_or_none(pool):
    for name in ("limit", "release_threshold"):
        with pytest.raises((TypeError, ValueError)):
            setattr(pool, name, "many")
        with pytest.raises(AttributeError):
            delattr(pool, name)


def test_free_memory_does_not_exceed_the_release_threshold(device, pool):
    pool.release_threshold = 4 * MIB
    for n in (3, 5, 7):
        gg.alloc(n * MIB, device).close()
    device.synchronize()
    assert pool.stats().cached_bytes <= 4 * MIB
    assert device.pinned_pool.release_threshold == 256 * MIB


def test_pinned_memory_has_its_own_pool(device, pool):
    first = gg.alloc_pinned(3 * MIB, device)
    address = first.ptr
    first.close()
    assert device.pinned_pool.stats().cached_bytes == 3 * MIB
    assert pool.stats().cached_bytes == 0
    second = gg.alloc_pinned(3 * MIB, device)
    assert second.ptr == address
    view = np.asarray(second)
    second.close()
    assert gg.alloc_pinned(3 * MIB, device).ptr != address  # a view of it is alive
    del view
    device.pinned_pool.trim()
    assert device.pinned_pool.stats().reserved_bytes == 0


def test_a_block_in_use_on_another_stream_is_not_reused(device, pool, gate):
    home, other = gg.Stream(device, nonblocking=True), gg.Stream(device, nonblocking=True)
    block = gg.alloc(3 * MIB, stream=home)
    address = block.ptr
    gate.hold(other)
    gg.fill(block, 1, stream=other)
    block.close()
    assert gg.alloc(3 * MIB, stream=home).ptr != address
    gate.open()


def test_memory_of_different_sizes_and_threads_is_never_shared(device, pool):
    problems = []

    def work(number):
        random = np.random.default_rng(number)
        for _ in range(60):
            data = random.integers(0, 255, random.integers(1, 50_000), dtype="u1")
            arrays = [gg.to_gpu(data + i, device=device) for i in range(3)]
            if any((array.get() != data + i).any() for i, array in enumerate(arrays)):
                problems.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_repr_of_a_pool_shows_its_device(device):
    assert repr(device.pool) == f"<gpuglue.Pool of device memory, {device.backend}:{device.ordinal}>"
    assert "pinned memory" in repr(device.pinned_pool)
    with pytest.raises(TypeError):
        type(device.pool)()


ALLOCATIONS = {"cuda": b"cuMemAlloc_v2", "hip": b"hipMalloc"}


@pytest.fixture
def driver(device):
    """The simulated driver, whose calls can be made to fail."""
    library = os.environ.get({"cuda": "GPUGLUE_CUDA_LIBRARY", "hip": "GPUGLUE_HIP_LIBRARY"}.get(device.backend, ""))
    if not library or "Simulated" not in device.name:
        pytest.skip("the driver is not a simulated one of CUDA or HIP")
    return ctypes.CDLL(library)


def test_every_error_of_the_driver_is_raised_when_the_pool_grows(device, stream, driver):
    kept, errors = [], 0
    for _ in range(100):
        driver.sim_fail(ALLOCATIONS[device.backend] + b":1=304")
        for _ in range(200):
            try:
                kept.append(gg.alloc(65536, device, stream))
            except gg.DeviceError:
                errors += 1
                break
        driver.sim_fail(b"")
    assert errors == 100


def test_a_full_device_is_not_asked_for_memory_as_long_as_nothing_was_freed(device, driver):
    streams = [gg.Stream(device, nonblocking=True) for _ in range(100)]
    kept = [gg.alloc(4096, device, one) for one in streams]
    before = device.pool.stats().driver_calls
    try:
        driver.sim_fail(ALLOCATIONS[device.backend] + b":1+=2")
        for number in range(4000):
            buffer = gg.alloc(4096, device, streams[number % 100])
            buffer.record_use(streams[(number + 1) % 100])
            buffer.close()
    finally:
        driver.sim_fail(b"")
    del kept
    assert device.pool.stats().driver_calls - before <= 2
