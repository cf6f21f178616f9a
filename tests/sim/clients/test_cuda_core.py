"""NVIDIA's cuda-core runs over the simulated driver.

Run in an environment with cuda-core 1, NumPy and pytest, with the simulated library first in the path:
    LD_LIBRARY_PATH=<build>/tests/sim/cuda python -m pytest tests/sim/clients
Calls that use NVIDIA's runtime library (Device.sync, Device.pci_bus_id) do not work here.
"""

import pytest

core = pytest.importorskip("cuda.core")
np = pytest.importorskip("numpy")

SIZE = 4096


@pytest.fixture
def device():
    device = core.Device(0)
    device.set_current()
    return device


def bytes_of(buffer):
    return np.from_dlpack(buffer).view(np.uint8)


def test_devices_are_enumerated(device):
    devices = core.Device.get_all_devices()
    assert [one.device_id for one in devices] == list(range(len(devices)))
    assert all("Simulated" in one.name for one in devices)
    assert tuple(device.compute_capability) == (9, 0)


def test_a_round_trip_through_pools_keeps_the_bytes(device):
    stream, other = device.create_stream(), device.create_stream()
    pinned = core.LegacyPinnedMemoryResource()
    source, target = (pinned.allocate(SIZE, stream=stream) for _ in range(2))
    near, far = (device.allocate(SIZE, stream=stream) for _ in range(2))
    bytes_of(source)[:] = np.arange(SIZE) % 251
    bytes_of(target)[:] = 0

    source.copy_to(near, stream=stream)
    near.copy_to(far, stream=stream)
    other.wait(stream)
    far.copy_to(target, stream=other)
    other.sync()

    assert (bytes_of(source) == bytes_of(target)).all()
    assert not near.is_host_accessible and near.is_device_accessible
    assert source.is_host_accessible
    for buffer in near, far, source, target:
        buffer.close(stream)


def test_events_measure_time(device):
    stream = device.create_stream()
    timed = core.EventOptions(timing_enabled=True)
    buffer = device.allocate(SIZE, stream=stream)
    start = stream.record(options=timed)
    buffer.fill(7, stream=stream)
    stop = stream.record(options=timed)
    stop.sync()
    assert start.is_done and stop.is_done
    assert stop - start >= 0
    buffer.close(stream)


def test_a_user_created_pool_counts_its_bytes(device):
    stream = device.create_stream()
    pool = core.DeviceMemoryResource(device, core.DeviceMemoryResourceOptions(max_size=1 << 20))
    buffer = pool.allocate(SIZE, stream=stream)
    assert pool.attributes.used_mem_current == SIZE
    buffer.close(stream)
    stream.sync()
    assert pool.attributes.used_mem_current == 0


def test_pinned_pools_reach_the_host(device):
    stream = device.create_stream()
    buffer = core.PinnedMemoryResource().allocate(SIZE, stream=stream)
    buffer.fill(9, stream=stream)
    stream.sync()
    assert (bytes_of(buffer) == 9).all()
    buffer.close(stream)
