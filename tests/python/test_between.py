"""Several backends open in one process, and copies between their devices. Beside the backend under test and
the host there are those that GPUGLUE_TOGETHER lists."""

import os

import numpy as np
import pytest
from conftest import Gate, gate_library, run_python, succeeds

import gpuglue as gg

TOGETHER = os.environ.get("GPUGLUE_TOGETHER", "").split(",")


@pytest.fixture(scope="module")
def devices(backend):
    """The first device of each backend, and a second one of the backend under test."""
    names = dict.fromkeys([backend, *filter(None, TOGETHER), "host"])
    return [gg.Device(f"{name}:0") for name in names] + gg.devices(backend)[1:2]


@pytest.fixture(scope="module")
def pairs(devices):
    pairs = [(source, destination) for source in devices for destination in devices if source is not destination]
    return [pair for pair in pairs if pair[0] != pair[1]] or pytest.skip("there is one device")


def is_direct(source, destination):
    """A direct copy need not wait for anything."""
    try:
        gg.copy(number(destination, 2), number(source, 1), stream=gg.Stream(source), require_async=True)
    except gg.UnsupportedError:
        return False
    return True


@pytest.fixture(scope="module")
def pairs_apart(pairs):
    """Those whose copies go through the host."""
    return [pair for pair in pairs if not is_direct(*pair)]


@pytest.fixture(scope="module")
def direct_pairs(pairs):
    return [pair for pair in pairs if is_direct(*pair)] or pytest.skip("no two devices have peer access")


@pytest.fixture
def gates():
    """Makes gates; all are open at the end."""
    made = []

    def new(stream):
        made.append(Gate(gate_library()).hold(stream))
        return made[-1]

    yield new
    for gate in made:
        gate.open()
    gg.synchronize()


def number(device, value, shape=4):
    """Uploaded: work on an explicit stream would not wait for it."""
    array = gg.to_gpu(np.full(shape, value, "i4"), device)
    device.synchronize()
    return array


def test_every_backend_works_beside_the_others(devices):
    arrays = [number(device, 10 + i) for i, device in enumerate(devices)]
    assert [array.get().tolist() for array in arrays] == [[10 + i] * 4 for i in range(len(devices))]
    assert [array.device for array in arrays] == devices


@pytest.mark.parametrize("size", [1, 1000, 1 << 20])
def test_arrays_are_copied_between_all_pairs_of_devices(pairs, size):
    numbers = np.random.default_rng(size).random(size)
    for source, destination in pairs:
        result = gg.empty(size, device=destination)
        assert gg.copy(result, gg.to_gpu(numbers, source)) is None
        assert (result.get() == numbers).all() and result.device == destination


@pytest.mark.parametrize("to", ["C", "F"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_may_have_another_order_on_the_other_device(pairs, to, order):
    matrix = np.arange(24.0).reshape(2, 3, 4)
    for source, destination in pairs:
        result = gg.empty(matrix.shape, order=to, device=destination)
        gg.copy(result, gg.to_gpu(np.asarray(matrix, order=order), source))
        assert (result.get() == matrix).all()


def test_set_and_get_accept_an_array_of_another_device(pairs):
    for source, destination in pairs:
        here, there = number(source, 7), number(destination, 0)
        assert there.set(here) is None
        assert there.tolist() == [7] * 4
        here.fill(8)
        assert here.get(out=there) is there
        assert there.tolist() == [8] * 4


def test_buffers_of_two_devices_are_copied_as_bytes(pairs):
    for source, destination in pairs:
        here, there = gg.alloc(8, source), gg.alloc(9, destination)
        gg.copy(here, b"12345678")
        gg.fill(there, ord("_"))
        gg.copy(there, here)
        back = bytearray(9)
        gg.copy(back, there)
        assert back == b"12345678_"


def test_pinned_memory_of_another_device_can_be_copied(pairs):
    for source, destination in pairs:
        pinned = gg.empty_pinned(300_000, "u1", device=source)
        pinned[:] = 9
        there = gg.to_gpu(pinned, destination)
        pinned[:] = 0
        there.get(out=pinned)
        assert (pinned == 9).all()


def test_a_copy_between_devices_waits_for_work_on_both_operands(pairs_apart, gates):
    for source, destination in pairs_apart:
        here, there = number(source, 1), number(destination, 2)
        down, up = (gg.Stream(device, nonblocking=True) for device in (source, destination))
        held = [gates(down), gates(up)]
        here.fill(3, stream=down)
        there.fill(4, stream=up)
        openers = [gate.open_later() for gate in held]
        gg.copy(there, here)
        assert down.done and up.done
        assert there.tolist() == [3] * 4
        for opener in openers:
            opener.join()


def test_the_given_stream_may_be_of_either_device(pairs_apart, gates):
    for source, destination in pairs_apart:
        for device in (source, destination):
            here, there = number(source, 1), number(destination, 2)
            stream = gg.Stream(device, nonblocking=True)
            gate = gates(stream)
            (here if device == source else there).fill(5, stream=stream)
            opener = gate.open_later()
            gg.copy(there, here, stream=stream)
            assert stream.done
            assert there.tolist() == [5 if device == source else 1] * 4
            opener.join()


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_stream_of_a_third_device_is_refused(devices, order):
    if len(devices) < 3:
        pytest.skip("there are fewer than three devices")
    source, destination = gg.zeros((2, 2), device=devices[0]), gg.ones((2, 2), order=order, device=devices[1])
    with pytest.raises(ValueError, match="stream belongs to"):
        gg.copy(destination, source, stream=gg.Stream(devices[2]))
    assert (destination.get() == 1).all()


def test_require_async_refuses_a_copy_between_devices(pairs_apart):
    for source, destination in pairs_apart:
        there = number(destination, 2)
        with pytest.raises(gg.UnsupportedError, match=f"from {source.backend}:.* to {destination.backend}:.*the host"):
            gg.copy(there, number(source, 1), stream=gg.Stream(source), require_async=True)
        assert there.tolist() == [2] * 4


def test_a_copy_between_devices_with_peer_access_is_queued(direct_pairs, gates):
    for source, destination in direct_pairs:
        here, there = number(source, 3), number(destination, 2)
        stream = gg.Stream(source, nonblocking=True)
        gate = gates(stream)
        gg.copy(there, here, stream=stream)
        assert not stream.done
        gate.open()
        assert there.tolist() == [3] * 4
        assert source.can_access(destination) is True


def test_a_device_can_access_itself_and_no_device_of_another_backend(devices):
    for device in devices:
        assert device.can_access(device) is True
        assert not any(device.can_access(other) for other in devices if other.backend != device.backend)
    with pytest.raises(TypeError):
        devices[0].can_access(1.5)


def test_copies_between_devices_require_equal_shape_and_dtype(pairs):
    for source, destination in pairs:
        with pytest.raises(ValueError, match="shapes differ"):
            gg.copy(number(destination, 0), number(source, 0, 5))
        with pytest.raises(TypeError, match="dtypes differ"):
            gg.copy(gg.zeros(4, "f4", device=destination), number(source, 0))


def test_to_gpu_of_a_device_array_reports_what_to_use_instead(devices):
    with pytest.raises(TypeError, match=r"use copy\(destination, source\)"):
        gg.to_gpu(number(devices[0], 1), devices[-1])


# ---- addresses ---------------------------------------------------------------------------------------


def test_an_address_is_found_whatever_device_is_current(devices):
    known = [device for device in devices if device.supports("pointer_info")]
    for current in devices:
        for device in known:
            array = number(device, 7)
            with current:
                found = gg.asarray(array.ptr, "i4", shape=4, owner=array)
            assert found.device is device and found.tolist() == [7] * 4


def test_an_address_of_another_backend_than_given_is_refused(devices):
    known = [device for device in devices if device.supports("pointer_info")]
    for device in known:
        array = number(device, 7)
        for said in known:
            if said is not device:
                with pytest.raises(ValueError, match=f"is memory of {device.backend}:{device.ordinal}, not of"):
                    gg.asarray(array.ptr, "i4", shape=4, device=said)


class Interface:
    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__
        self.keep = array


def test_a_cuda_array_interface_is_imported_whatever_device_is_current(devices):
    sources = [device for device in devices if hasattr(gg.empty(1, device=device), "__cuda_array_interface__")]
    for source in sources:
        if not source.supports("pointer_info"):
            continue
        for current in devices:
            array = number(source, 8)
            with current:
                found = gg.asarray(Interface(array))
            assert found.ptr == array.ptr and found.device is source


# ---- the list ---------------------------------------------------------------------------------------

NAMES = "import gpuglue as gg; print(*(f'{d.backend}:{d.ordinal}' for d in gg.devices()))"


def test_devices_are_listed_by_backend_and_then_by_ordinal(backend):
    found = succeeds(run_python(NAMES, GPUGLUE_BACKEND="auto")).split()
    backends = list(dict.fromkeys(name.split(":")[0] for name in found))
    ordinals = {name: [int(n.split(":")[1]) for n in found if n.split(":")[0] == name] for name in backends}
    assert found == [f"{name}:{i}" for name in backends for i in ordinals[name]]
    assert all(numbers == list(range(len(numbers))) for numbers in ordinals.values())
    assert {backend, "host"} <= set(backends)
    wanted = [name for name in ("cuda", "hip", "ze", "host") if name in TOGETHER]
    assert [name for name in backends if name in wanted] == wanted


def test_auto_selects_the_first_by_priority_that_is_not_excluded(backend):
    names = [name for name in ("cuda", "hip", "ze", "host") if name in TOGETHER]
    if not names:
        pytest.skip("GPUGLUE_TOGETHER is not set: one backend is simulated")
    code = "import gpuglue as gg; print(gg.default_backend(), gg.to_gpu([1]).device.backend)"
    for i, first in enumerate(names):
        without = "^" + ",".join(names[:i]) if i else "auto"
        result = run_python(code, arguments=["-W", "ignore"], GPUGLUE_BACKEND=without)
        assert succeeds(result) == f"{first} {first}"
    hidden = run_python(code, GPUGLUE_BACKEND="auto", GPUGLUE_CUDA_LIBRARY="/nonexistent/libcuda.so.1")
    assert succeeds(hidden) == " ".join([names[1]] * 2)
