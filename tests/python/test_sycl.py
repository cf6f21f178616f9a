"""Devices and streams of torch and dpctl, as far as stand-ins show them: torch's devices on any backend, SYCL's on Level Zero."""

import ctypes
import sys

import numpy as np
import producers
import pytest
import stand_in_sycl as sycl
from conftest import needed

import gpuglue as gg
from gpuglue import _sycl


@pytest.fixture
def level_zero(device):
    if device.backend != "ze":
        pytest.skip("SYCL's devices are those of ze")
    return device


@pytest.fixture
def runtime(level_zero):
    """The stand-in for libsycl, which stays loaded."""
    return ctypes.CDLL(str(needed("GPUGLUE_TEST_SYCL", "libsycl.so.8")))


def use_torch(monkeypatch, uuids=(), **options):
    monkeypatch.setitem(sys.modules, "torch", sycl.torch(uuids, **options))


# ---- torch's devices -------------------------------------------------------------------------------------------


def test_torchs_processor_is_host(device, monkeypatch):
    use_torch(monkeypatch)
    assert gg.Device.from_torch("cpu") is gg.Device("host:0")


def test_torchs_cuda_device_is_of_the_backend_that_torch_was_built_for(device, monkeypatch):
    if device.backend not in ("cuda", "hip"):
        pytest.skip("torch has no device of this name here")
    last = gg.devices(device.backend)[-1]
    use_torch(monkeypatch, hip="6.4" if device.backend == "hip" else None, current=last.ordinal)
    assert gg.Device.from_torch("cuda:0") is device and gg.Device.from_torch("cuda") is last


def test_torchs_xpu_device_is_the_one_of_its_uuid(level_zero, monkeypatch):
    devices = gg.devices("ze")
    use_torch(monkeypatch, [found.uuid for found in reversed(devices)], current=len(devices) - 1)
    assert gg.Device.from_torch(f"xpu:{len(devices) - 1}") is devices[0] and gg.Device.from_torch("xpu") is devices[0]
    assert gg.Device.from_torch("xpu:0") is devices[-1]


def test_an_object_with_a_device_names_it(device, monkeypatch):
    use_torch(monkeypatch)
    tensor = sycl.TorchDevice("meta")
    tensor.device = sycl.TorchDevice("cpu")
    assert gg.Device.from_torch(tensor) is gg.Device("host:0")


def test_an_xpu_device_that_gpuglue_does_not_see_is_refused_with_both_lists(level_zero, monkeypatch):
    other = "01234567-89ab-cdef-0123-456789abcdef"
    use_torch(monkeypatch, [other])
    with pytest.raises(gg.InvalidArgumentError, match=rf"xpu:0 has UUID {other}, and ze:0 has {level_zero.uuid}.*ZE_AFFINITY_MASK"):
        gg.Device.from_torch("xpu:0")


def test_a_torch_without_uuids_is_reported(device, monkeypatch):
    use_torch(monkeypatch, [None])
    with pytest.raises(gg.UnsupportedError, match="torch 2.99 does not report the UUID of xpu:0: use a newer one"):
        gg.Device.from_torch("xpu:0")


def test_a_device_of_torch_that_gpuglue_has_no_backend_for_is_refused(device, monkeypatch):
    use_torch(monkeypatch)
    with pytest.raises(gg.InvalidArgumentError, match="no backend for torch's device 'mps:0': expected cuda, xpu or cpu"):
        gg.Device.from_torch("mps:0")


# ---- native handles ----------------------------------------------------------------------------------------------


def test_a_device_has_the_handles_of_its_driver(device):
    handles = device.native_handles
    counts = {"cuda": 2, "hip": 1, "ze": 3, "host": 0}
    assert len(handles) == counts.get(device.backend, len(handles)) and all(isinstance(handle, int) for handle in handles)
    if device.backend == "hip":
        assert handles == (device.ordinal,)


# ---- SYCL's queues -----------------------------------------------------------------------------------------------


def test_work_on_a_stream_of_torch_xpu_runs_on_its_command_list(runtime, level_zero, monkeypatch):
    theirs = gg.Stream(level_zero)
    use_torch(monkeypatch, [level_zero.uuid])
    stream = sycl.TorchStream("xpu:0", sycl.Object(sycl.LEVEL_ZERO, 1, theirs.handle))
    assert gg.Stream.borrow(stream).handle == theirs.handle
    array = gg.zeros(1000, "f4", device=level_zero)
    array.set(np.ones(1000, "f4"), stream=stream)
    theirs.synchronize()
    assert (array.get(stream=stream) == 1).all()


def test_a_queue_of_dpctl_is_a_stream_of_its_device(runtime, second_device):
    theirs = gg.Stream(second_device)
    queue = sycl.SyclQueue(sycl.SyclDevice("level_zero", second_device.native_handles[0]), theirs.handle)
    borrowed = gg.Stream.borrow(queue)
    assert borrowed.handle == theirs.handle and borrowed.device is second_device


@pytest.mark.parametrize("queue, error, words", [
    (sycl.Object(sycl.OPENCL, 1, 4096), gg.InvalidArgumentError, "uses backend 1, expected Level Zero"),
    (sycl.Object(sycl.LEVEL_ZERO, 0, 4096), gg.UnsupportedError, "is a command queue, expected an immediate command list"),
], ids=["of OpenCL", "with a command queue"])  # fmt: skip
def test_a_queue_without_a_command_list_is_refused(runtime, level_zero, monkeypatch, queue, error, words):
    use_torch(monkeypatch, [level_zero.uuid])
    with pytest.raises(error, match=words):
        gg.Stream.borrow(sycl.TorchStream("xpu:0", queue))


def test_a_queue_that_runs_out_of_order_is_refused(runtime, level_zero):
    queue = sycl.SyclQueue(sycl.SyclDevice("level_zero", level_zero.native_handles[0]), 4096, in_order=False)
    with pytest.raises(gg.InvalidArgumentError, match="out of order, expected one with property='in_order'"):
        gg.Stream.borrow(queue)


def test_without_sycl_in_the_process_a_queue_is_refused(device, monkeypatch):
    monkeypatch.setattr(_sycl, "LIBRARIES", ("libsycl-of-no-version.so",))
    with pytest.raises(gg.UnsupportedError, match="has not loaded SYCL: expected one of libsycl-of-no-version.so"):
        gg.Stream.borrow(sycl.TorchStream("xpu:0", sycl.Object(sycl.LEVEL_ZERO, 1, 4096)))


# ---- DLPack's numbers ------------------------------------------------------------------------------------------


def test_an_exported_array_has_dpctls_number_of_its_device(runtime, level_zero, second_device, monkeypatch):
    handles = [found.native_handles[0] for found in gg.devices("ze")]
    listed = [sycl.SyclDevice("opencl")] + [sycl.SyclDevice("level_zero", handle) for handle in reversed(handles)]
    monkeypatch.setattr(_sycl, "_numbers", {})
    arrays = [gg.zeros(3, device=found) for found in (level_zero, second_device)]
    before = [array.__dlpack_device__()[1] for array in arrays]
    monkeypatch.setitem(sys.modules, "dpctl", sycl.dpctl(listed))
    after = [array.__dlpack_device__()[1] for array in arrays]
    assert before == [0, 1] and after == [len(handles), len(handles) - 1]
    assert producers.look(arrays[1].__dlpack__()).tensor.device_id == after[1]


def test_without_that_device_in_dpctl_the_number_is_the_ordinal(runtime, level_zero, monkeypatch):
    monkeypatch.setattr(_sycl, "_numbers", {})
    monkeypatch.setitem(sys.modules, "dpctl", sycl.dpctl([]))
    assert gg.zeros(3, device=level_zero).__dlpack_device__()[1] == level_zero.ordinal


class Producer:
    """An array whose producer numbers devices in its own way, and differently in both places, as torch does."""

    def __init__(self, array, number):
        self.array, self.number = array, number

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()[0], self.number

    def __dlpack__(self, **names):
        capsule = self.array.__dlpack__(**names)
        producers.look(capsule).tensor.device_id = self.number + 5
        return capsule


@pytest.mark.parametrize("number", [0, 7])
def test_the_device_of_an_imported_tensor_is_that_of_its_address(level_zero, second_device, number):
    for found in (level_zero, second_device):
        array = gg.arange(5, device=found)
        made = gg.from_dlpack(Producer(array, number))
        assert made.device is found and made.tolist() == [0, 1, 2, 3, 4]


def test_an_address_that_no_driver_knows_is_refused(level_zero):
    array = gg.arange(5, device=level_zero)
    producer, foreign = Producer(array, 0), np.arange(5)

    def elsewhere(**names):
        capsule = array.__dlpack__(**names)
        producers.look(capsule).tensor.data = foreign.ctypes.data
        return capsule

    producer.__dlpack__ = elsewhere
    with pytest.raises(BufferError, match="no driver of ze knows the memory at"):
        gg.from_dlpack(producer)


# ---- dpctl's interface -----------------------------------------------------------------------------------------


@pytest.fixture
def reader(level_zero):
    made = sycl.UsmReader(next(found.library for found in gg.backends() if found.name == "ze"), level_zero)
    yield made
    made.close()


@pytest.mark.parametrize("make, kind", [(gg.alloc, 2), (gg.alloc_managed, 3)])
def test_dpctl_reads_an_array_in_a_context_of_its_own(level_zero, reader, make, kind):
    if kind == 3 and not level_zero.attributes["managed_memory"]:
        pytest.skip("the device has no managed memory")
    given = np.arange(12, dtype="i4").reshape(3, 4)
    array = gg.asarray(make(48, device=level_zero)).view("i4").reshape(3, 4)
    array.set(given)
    assert reader.read(array) == (kind, level_zero.native_handles[0], given.tobytes())
    assert reader.read(array[1:, 1::2])[2][:4] == given[1, 1].tobytes()
    described = array.T.__sycl_usm_array_interface__
    assert (described["shape"], described["strides"], described["typestr"], described["data"]) == ((4, 3), (1, 4), "<i4", (array.ptr, False))


def test_dpctl_reads_what_queued_work_writes(level_zero, reader):
    array, stream = gg.zeros(1 << 16, "u1", device=level_zero), gg.Stream(level_zero)
    array.fill(7, stream=stream)
    assert set(reader.read(array)[2]) == {7}


def test_the_syclobj_is_dpctls_number_of_the_device_or_its_name(runtime, level_zero, monkeypatch):
    monkeypatch.setattr(_sycl, "_numbers", {})
    array = gg.zeros(3, device=level_zero)
    assert array.__sycl_usm_array_interface__["syclobj"] == f"level_zero:gpu:{level_zero.ordinal}"
    monkeypatch.setitem(sys.modules, "dpctl", sycl.dpctl([sycl.SyclDevice("opencl"), sycl.SyclDevice("level_zero", level_zero.native_handles[0])]))
    assert array.__sycl_usm_array_interface__["syclobj"] == "1"


def test_arrays_of_other_backends_have_no_interface_of_sycl(device):
    if device.backend != "ze":
        assert not hasattr(gg.zeros(3, device=device), "__sycl_usm_array_interface__")


class Usm:
    """A dpctl.memory object, or an array of dpnp: strides and offset count elements."""

    def __init__(self, array, queue, **changes):
        self.array = array
        self.__sycl_usm_array_interface__ = {"shape": array.shape, "typestr": array.dtype.str, "data": (array.ptr, True), "version": 1,
                                             "syclobj": queue, **changes}  # fmt: skip


def test_memory_of_dpctl_becomes_an_array_on_its_device(runtime, level_zero, second_device):
    for found in (level_zero, second_device):
        theirs = gg.arange(12, dtype="i4", device=found)
        queue = sycl.SyclQueue(sycl.SyclDevice("level_zero", found.native_handles[0]), 0)
        ours = gg.asarray(Usm(theirs, queue))
        assert ours.device is found and ours.ptr == theirs.ptr and ours.tolist() == list(range(12))
        picked = gg.asarray(Usm(theirs, queue, shape=(2, 2), strides=(6, 2), offset=1))
        assert picked.tolist() == [[1, 3], [7, 9]]


def test_an_interface_without_a_queue_is_refused(level_zero):
    with pytest.raises(gg.UnsupportedError, match="syclobj of __sycl_usm_array_interface__ is 'level_zero:gpu:0', expected a dpctl.SyclQueue"):
        gg.asarray(Usm(gg.zeros(3, device=level_zero), "level_zero:gpu:0"))
