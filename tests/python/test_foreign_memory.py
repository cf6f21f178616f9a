"""Memory of other owners: registered, wrapped by its address, queried; managed memory."""

import gc
import mmap
import weakref

import gpuglue as gg
import numpy as np
import pytest


@pytest.fixture
def registers(device):
    if not device.supports("mem_register"):
        with pytest.raises(gg.UnsupportedError, match="mem_register"):
            gg.host_register(np.zeros(10), device)
        pytest.skip("this device cannot register memory")
    return device


@pytest.fixture
def managed(device):
    try:
        return gg.alloc_managed(1 << 20, device)
    except gg.UnsupportedError:
        pytest.skip("this device has no managed memory")


class Owner:
    pass


# ---- register ------------------------------------------------------------------------------------------------


def test_a_registered_array_is_pinned(registers):
    array = np.arange(100_000, dtype="f8")
    buffer = gg.host_register(array, registers)
    assert (buffer.kind, buffer.ptr, buffer.nbytes) == ("pinned", array.ctypes.data, array.nbytes)
    target = gg.empty(array.shape, device=registers)
    stream = gg.Stream(registers)
    gg.copy(target, array, stream=stream, require_async=True)
    stream.synchronize()
    assert (target.get() == array).all()


def test_arrays_that_share_a_page_with_a_registered_one_are_copied_whatever_their_strides(registers):
    whole = np.zeros((300, 4096), "f4")
    middle = whole[100:101]
    buffer = gg.host_register(middle, registers)
    expected = np.arange(whole.size, dtype="f4").reshape(whole.shape)
    for view in (slice(None), (slice(None), slice(None, None, 2)), (slice(None), slice(1, -1))):
        whole[...] = expected
        array = gg.to_gpu(whole[view], registers)
        whole[...] = 0
        array.get(out=whole[view])
        assert (whole[view] == expected[view]).all()
    assert buffer.nbytes == middle.nbytes


@pytest.mark.parametrize("nbytes", [8, 4096, 65_536, 70_000, 131_072])
def test_an_upload_waits_for_a_queued_download_into_the_same_memory_whose_handle_was_closed(registers, nbytes):
    stream, work = gg.Stream(registers, nonblocking=True), gg.zeros(64 << 20, "u1", device=registers)
    sevens, found = gg.full(nbytes, 7, "u1", device=registers), gg.zeros(nbytes, "u1", device=registers)
    array = np.zeros(nbytes, "u1")
    buffer = gg.host_register(array, registers)
    gg.synchronize(registers)
    for _ in range(8):  # the download waits for them
        work.fill(1, stream=stream)
    gg.copy(array, sevens, stream=stream, require_async=True)
    buffer.close()
    found.set(array, stream)
    assert (found.get(stream=stream) == 7).all()


def test_an_upload_that_must_not_wait_is_refused_where_queued_work_may_write_to_a_part_of_its_memory(registers, gate):
    array, stream = np.ones(40_000, "u1"), gg.Stream(registers, nonblocking=True)
    target = gg.zeros(20_000, "u1", device=registers)
    buffer = gg.host_register(array[:30_000], registers)
    registers.synchronize()
    gate.hold(stream)
    opener = gate.open_later()
    with pytest.raises(gg.UnsupportedError, match="cannot be copied without waiting"):
        gg.copy(target, array[20_000:], stream=stream, require_async=True)
    opener.join()
    target.set(array[20_000:], stream)
    assert buffer.nbytes == 30_000 and (target.get(stream=stream) == 1).all()


def test_a_registered_array_lives_until_it_is_unlocked(registers):
    array = np.zeros(100_000)
    alive = weakref.ref(array)
    buffer = gg.host_register(array, registers)
    del array
    gc.collect()
    assert alive() is not None
    buffer.close()
    registers.synchronize()
    gg.trim()
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("call", [lambda device: gg.alloc(100, device).close(), lambda device: device.synchronize()])
def test_a_mapping_can_be_closed_after_its_registration_and_a_call_on_the_device(registers, call):
    registers.synchronize()
    mapping = mmap.mmap(-1, 8192)
    gg.host_register(mapping, registers).close()
    call(registers)
    mapping.close()


def test_the_owner_of_memory_with_an_address_is_released_with_the_buffer(device):
    base, owner = gg.alloc(100, device), bytearray(1)
    buffer = gg.Buffer.from_ptr(base.ptr, 100, owner=memoryview(owner))
    buffer.close()
    owner.extend(b"no view is left")


def test_memory_is_registered_once(registers):
    array = np.zeros(100_000)
    buffer = gg.host_register(array, registers)
    with pytest.raises(ValueError, match="gpuglue has already pinned"):
        gg.host_register(array[10:], registers)
    buffer.close()
    registers.synchronize()
    gg.host_register(array, registers).close()


def test_read_only_memory_and_objects_without_a_buffer_cannot_be_registered(registers):
    frozen = np.zeros(10)
    frozen.flags.writeable = False
    for bad in (b"bytes", frozen):
        with pytest.raises(BufferError):
            gg.host_register(bad, registers)
    with pytest.raises(TypeError):
        gg.host_register(3, registers)
    with pytest.raises(BufferError):
        gg.host_register(np.zeros((10, 10))[:, ::2], registers)
    with pytest.raises(ValueError, match="expected at least 1 byte"):
        gg.host_register(np.zeros(0), registers)


# ---- pointers ------------------------------------------------------------------------------------------------


def test_a_pointer_has_the_attributes_of_its_memory(device):
    if not device.supports("pointer_info"):
        pytest.skip("this driver does not report on pointers")
    buffer, pinned = gg.alloc(1000, device), gg.alloc_pinned(1000, device)
    info = gg.pointer_info(buffer.ptr + 999)
    assert (info.backend, info.device, info.kind) == (device.backend, device, "device")
    assert info.base is None or info.base <= buffer.ptr < info.base + info.size
    assert gg.pointer_info(pinned.ptr).kind == "pinned"
    host = np.zeros(10)
    assert gg.pointer_info(host.ctypes.data) == (None, None, "host", None, None)


def test_a_freed_pointer_is_unknown(device):
    if not device.supports("pointer_info"):
        pytest.skip("this driver does not report on pointers")
    buffer = gg.alloc(5 << 20, device)
    address = buffer.ptr
    buffer.close()
    device.synchronize()
    gg.trim()
    assert gg.pointer_info(address).kind == "host"


@pytest.mark.parametrize("bad", [0, -1, 1 << 64, "x", None, 1.5])
def test_an_argument_that_is_not_a_pointer_is_refused(device, bad):
    with pytest.raises((ValueError, TypeError)):
        gg.pointer_info(bad)


def test_a_buffer_can_wrap_memory_of_another_library(device):
    if not device.supports("pointer_info"):
        pytest.skip("this driver does not report on pointers")
    base = gg.to_gpu(np.arange(100, dtype="u1"), device=device)
    owner = Owner()
    alive = weakref.ref(owner)
    buffer = gg.Buffer.from_ptr(base.ptr + 10, 20, owner=owner)
    del owner
    assert (buffer.device, buffer.kind, buffer.nbytes) == (device, "device", 20)
    out = np.zeros(20, "u1")
    gg.copy(out, buffer)
    assert (out == np.arange(10, 30)).all() and alive() is not None
    buffer.close()
    device.synchronize()
    gg.trim()
    gc.collect()
    assert alive() is None


def test_memory_that_differs_from_its_description_is_refused(device):
    if not device.supports("pointer_info"):
        pytest.skip("this driver does not report on pointers")
    buffer = gg.alloc(1000, device)
    with pytest.raises(ValueError, match="no driver in use knows"):
        gg.Buffer.from_ptr(np.zeros(10).ctypes.data, 8)
    if gg.pointer_info(buffer.ptr).base is not None:
        with pytest.raises(ValueError, match="go past the end of the allocation"):
            gg.Buffer.from_ptr(buffer.ptr, 1 << 40)
    for bad in ((0, 8), (buffer.ptr, -1), (buffer.ptr, 1 << 64)):
        with pytest.raises(ValueError):
            gg.Buffer.from_ptr(*bad)
    with pytest.raises(TypeError):
        gg.Buffer.from_ptr(buffer.ptr)


# ---- managed memory ------------------------------------------------------------------------------------------


def test_host_and_device_can_access_managed_memory(managed, device):
    assert managed.kind == "managed"
    host = np.asarray(managed)
    host[:] = 7
    array = gg.empty(1 << 20, "u1", device=device)
    gg.copy(array, managed)
    assert (array.get() == 7).all()
    gg.fill(managed, 9)
    device.synchronize()
    assert (host == 9).all()


def test_the_host_can_access_an_array_over_managed_memory(known_device, managed, device):
    with device:
        array = gg.asarray(managed.ptr, "u1", shape=(2, 3), owner=managed)
    host = np.asarray(array)
    gg.fill(managed, 5)
    device.synchronize()
    assert host.tolist() == array.tolist() == [[5] * 3] * 2
    assert gg.from_dlpack(array).ptr == array.ptr


def test_managed_memory_supports_prefetch_and_advise(managed, device):
    if not device.supports("mem_prefetch"):
        with pytest.raises(gg.UnsupportedError):
            managed.prefetch()
        pytest.skip("this device does not support prefetch")
    stream = gg.Stream(device)
    managed.prefetch(stream=stream)
    managed.prefetch("host", stream)
    managed.prefetch(device)
    stream.synchronize()
    for advice in ("read_mostly", "preferred_location", "accessed_by", "coarse_grained"):
        managed.advise(advice)
        managed.advise(advice, "host")
    for advice in ("not_read_mostly", "no_preferred_location", "not_accessed_by", "not_coarse_grained"):
        managed.advise(advice, device)


def test_bad_advice_is_refused(managed, device):
    for bad in ("fast", 1, None):
        with pytest.raises(ValueError, match="advice must be 'read_mostly'"):
            managed.advise(bad)
    with pytest.raises(ValueError, match="expected managed memory, got device memory"):
        gg.alloc(10, device).prefetch()
    with pytest.raises(ValueError, match="expected managed memory, got pinned memory"):
        gg.alloc_pinned(10, device).prefetch()
    managed.close()
    with pytest.raises(ValueError, match="Buffer is closed"):
        managed.advise("read_mostly")


def test_a_buffer_over_memory_in_use_waits_before_the_host_reads(device, gate):
    pinned, stream = gg.alloc_pinned(1 << 16, device=device), gg.Stream(device, nonblocking=True)
    np.asarray(pinned).view("u1")[...] = 0
    ones = gg.full(1 << 16, 1, "u1", device=device)
    device.synchronize()
    gate.hold(stream)
    gg.copy(pinned, ones, stream=stream)
    opener = gate.open_later()
    over = gg.Buffer.from_ptr(pinned.ptr, 1 << 16, owner=pinned)
    assert (np.frombuffer(over, "u1") == 1).all()
    opener.join()


def test_pinned_memory_is_exposed_to_the_host_when_its_work_is_done(known_device, gate):
    numbers = gg.asarray(gg.alloc_pinned(1 << 16, device=known_device))
    if numbers.__dlpack_device__()[0] == 14:
        pytest.skip("NumPy cannot import memory of oneAPI")
    np.asarray(numbers)[...] = 0
    ones, stream = gg.full(1 << 16, 1, "u1", device=known_device), gg.Stream(known_device, nonblocking=True)
    known_device.synchronize()
    gate.hold(stream)
    gg.copy(numbers, ones, stream=stream)
    opener = gate.open_later()
    assert (np.from_dlpack(numbers) == 1).all()
    opener.join()
