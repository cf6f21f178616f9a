"""Device: lookup, attributes, identity."""

import gc
import weakref

import pytest

import gpuglue as gg
from conftest import run_python, succeeds


def test_there_is_one_object_per_device(device):
    same = (gg.Device(f"{device.backend}:0"), gg.Device(device.backend), gg.Device(0), gg.Device("0"))
    assert all(other is device for other in same)
    assert len({device, *same}) == 1


def is_of_several(device, **name):
    """Whether other devices of the backend have it, too, such as those of two drivers; then an error names them."""
    ((attribute, value),) = name.items()
    if sum(getattr(other, attribute) == value for other in gg.devices(device.backend)) == 1:
        return False
    with pytest.raises(gg.InvalidArgumentError, match=f"is that of {device.backend}:0 and {device.backend}:1"):
        gg.Device(**{attribute.removesuffix("_bus_id"): value})
    return True


def test_a_device_is_found_by_its_pci_address(device):
    if device.pci_bus_id is None:
        pytest.skip("the device has no PCI address")
    if is_of_several(device, pci_bus_id=device.pci_bus_id):
        return
    assert gg.Device(pci=device.pci_bus_id) is device
    assert gg.Device(f"pci:{device.pci_bus_id}") is device


def test_a_device_is_found_by_its_uuid(device):
    if device.uuid is None:
        pytest.skip("the device has no UUID")
    if is_of_several(device, uuid=device.uuid):
        return
    assert gg.Device(uuid=device.uuid) is device
    assert gg.Device(uuid="GPU-" + device.uuid) is device


def test_only_one_way_to_name_a_device_may_be_given():
    with pytest.raises(gg.InvalidArgumentError, match="one of"):
        gg.Device(0, pci="0000:00:00.0")


@pytest.mark.parametrize("ordinal", [-1, 10**6, 2**31, 2**70])
def test_an_ordinal_that_does_not_exist_is_refused(backend, ordinal):
    with pytest.raises(ValueError, match=str(ordinal)):
        gg.Device(ordinal)


@pytest.mark.parametrize("name", ["nope:0", "nope", "host:x", "", "pci:", "uuid:12"])
def test_an_invalid_device_name_is_refused(backend, name):
    with pytest.raises(gg.Error):
        gg.Device(name)


@pytest.mark.parametrize("wrong", [1.5, b"host", [], object()])
def test_an_argument_that_cannot_name_a_device_is_a_type_error(wrong):
    with pytest.raises(TypeError, match="device must be"):
        gg.Device(wrong)


def test_a_device_describes_itself(device):
    assert device.backend and device.name and device.arch and device.total_memory > 0
    assert device.index == device.ordinal == 0
    assert device.numa_node is None or device.numa_node >= 0
    assert device.uuid is None or len(device.uuid) == 36
    assert repr(device) == f"<gpuglue.Device {device.backend}:0 '{device.name}'>"


def test_memory_info_is_free_and_total_in_bytes(device):
    if not device.supports("device_memory_info"):
        with pytest.raises(gg.UnsupportedError):
            device.memory_info()
        return
    free, total = device.memory_info()
    assert 0 < free <= total
    assert device.memory_info().total == total


def test_limits_of_a_multiprocessor_are_attributes(device):
    limits = device.attributes
    if device.backend not in ("cuda", "hip", "host"):
        pytest.skip(f"{device} does not report them")
    assert limits["threads_per_multiprocessor"] >= limits["max_threads_per_block"]
    assert limits["shared_memory_per_multiprocessor"] >= limits["shared_memory_per_block"]
    assert limits["registers_per_block"] > 0 and limits["constant_memory"] > 0
    assert limits.get("registers_per_multiprocessor", 1 << 30) >= limits["registers_per_block"]  # ROCm 5 has none
    assert limits.get("l2_cache_size", 1) > 0 and limits.get("ecc", 0) in (0, 1)
    assert device.backend == "host" or limits["memory_clock_khz"] > 0 and limits["memory_bus_width"] > 0


def test_attributes_are_integers_by_name(device):
    attributes = device.attributes
    assert all(isinstance(value, int) for value in attributes.values())
    assert not device.supports("device_attribute") or attributes["multiprocessors"] > 0


def test_supports_names_the_operation_that_is_nearest_to_a_misspelt_one(device):
    with pytest.raises(gg.InvalidArgumentError, match="unknown operation 'mem_aloc_async': did you mean 'mem_alloc_async'?"):
        device.supports("mem_aloc_async")


def test_supports_accepts_only_names_of_operations(device):
    assert device.supports("mem_alloc") is True
    with pytest.raises(gg.InvalidArgumentError, match="levitate"):
        device.supports("levitate")


def test_the_default_stream_is_the_same_stream_every_time(device):
    assert device.default_stream == device.default_stream
    assert device.default_stream.device is device


def test_the_per_thread_stream_exists_on_cuda_only(device):
    if device.backend == "cuda":
        assert device.per_thread_stream.handle == 2
    else:
        with pytest.raises(gg.UnsupportedError, match="only cuda"):
            device.per_thread_stream


def test_the_priority_range_goes_from_least_to_greatest(device):
    if not device.supports("stream_priority_range"):
        pytest.skip("no priorities here")
    least, greatest = device.stream_priority_range
    assert least >= greatest


def test_synchronize_waits_for_every_stream(device, stream, gate):
    gate.hold(stream)
    event = stream.record()
    assert not event.done
    opener = gate.open_when(lambda: gate.reached)
    device.synchronize()
    opener.join()
    assert event.done


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID", "LOCAL_RANK"])
def test_the_local_rank_selects_the_device_modulo_their_number(backend, monkeypatch, variable):
    devices = gg.devices(backend)
    monkeypatch.setenv(variable, "5")
    assert gg.Device.for_local_rank() is devices[5 % len(devices)]


def test_without_a_launcher_the_first_device_is_chosen(device):
    assert gg.Device.for_local_rank() is device


def test_a_local_rank_that_is_not_a_number_is_refused(backend, monkeypatch):
    monkeypatch.setenv("SLURM_LOCALID", "two")
    with pytest.raises(gg.InvalidArgumentError, match="SLURM_LOCALID is 'two'"):
        gg.Device.for_local_rank()


def test_devices_take_weak_references_and_cannot_be_subclassed(device):
    assert weakref.ref(device)() is device
    gc.collect()
    with pytest.raises(TypeError):
        type("Other", (gg.Device,), {})


def test_threads_that_race_for_the_first_use_agree():
    code = (
        "import gpuglue as gg, threading\n"
        "barrier, found = threading.Barrier(32), []\n"
        "def use():\n"
        "    barrier.wait(); s = gg.Stream(); found.append(s.device); s.synchronize(); s.close()\n"
        "threads = [threading.Thread(target=use) for _ in range(32)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(len(found), len(set(map(id, found))))"
    )
    for _ in range(races()):
        assert succeeds(run_python(code)) == "32 1"


def races():
    import os

    return 100 if os.environ.get("GPUGLUE_TEST_FULL") else 10


def test_the_error_shows_the_ordinal_as_it_was_given(backend):
    with pytest.raises(gg.InvalidArgumentError, match="no device 99999999999999999999:"):
        gg.Device(f"{backend}:99999999999999999999")
    assert gg.Device(f"{backend}:00000000000000000000") == gg.Device(f"{backend}:0")
