"""DLPack export and import: the contents of a capsule, synchronization, lifetimes."""

import ctypes
import gc
import threading

import numpy as np
import producers
import pytest
from conftest import run_python, succeeds

import gpuglue as gg

pytestmark = pytest.mark.usefixtures("known_device")

CPU = 1
CUDA, ROCM, ONE_API = 2, 10, 14


@pytest.fixture
def numbers(device):
    array = gg.arange(24, dtype="f4", device=device).reshape(2, 3, 4)
    gg.synchronize(device)
    return array


def host_memory(device):
    return gg.empty(1, device=device).__dlpack_device__()[0] == CPU


def tensor_of(array, **names):
    names = {"max_version": (1, 3), **names}
    capsule = array.__dlpack__(**names)
    struct = producers.look(capsule)
    struct.capsule = capsule  # lives as long as the struct
    return struct, struct.tensor


# ---- contents of a capsule ----------------------------------------------------------------------------------


@pytest.mark.parametrize("versioned", [True, False])
def test_a_capsule_describes_the_array(numbers, versioned):
    view = numbers[:, ::-1, 1:3]
    capsule = view.__dlpack__(max_version=(1, 0)) if versioned else view.__dlpack__()
    struct, tensor = producers.look(capsule), producers.look(capsule).tensor
    assert isinstance(struct, producers.Versioned) == versioned
    assert (tensor.data, tensor.byte_offset, tensor.ndim) == (view.ptr, 0, 3)
    assert tuple(tensor.shape[:3]) == (2, 3, 2) and tuple(tensor.strides[:3]) == (12, -4, 1)
    assert (tensor.code, tensor.bits, tensor.lanes) == (2, 32, 1)
    assert (tensor.device_type, tensor.device_id) == view.__dlpack_device__()
    if versioned:
        assert (struct.major, struct.minor, struct.flags) == (1, 3, 0)


@pytest.mark.parametrize("max_version, versioned", [(None, False), ((0, 8), False), ((1, 0), True), ((7, 0), True)])
def test_the_consumers_version_decides_which_capsule_it_gets(numbers, max_version, versioned):
    struct = producers.look(numbers.__dlpack__(max_version=max_version))
    assert isinstance(struct, producers.Versioned) == versioned


def test_axes_of_one_element_have_stride_1(device):
    made = gg.zeros((1, 5, 1), "i2", "F", device)
    _, tensor = tensor_of(made)
    assert tuple(tensor.strides[:3]) == (1, 1, 1)


def test_an_empty_array_has_no_address(device):
    _, tensor = tensor_of(gg.zeros((4, 4), device=device)[:, :0])
    assert tensor.data is None and tuple(tensor.shape[:2]) == (4, 0)


CODES = {"?": 6, "i1": 0, "u8": 1, "f2": 2, "f8": 2, "c8": 5, "c16": 5}


@pytest.mark.parametrize("dtype", CODES)
def test_element_types_have_dlpacks_codes_and_survive_a_round_trip(device, dtype):
    made = gg.zeros(3, dtype, device=device)
    _, tensor = tensor_of(made)
    assert (tensor.code, tensor.bits, tensor.lanes) == (CODES[dtype], np.dtype(dtype).itemsize * 8, 1)
    assert gg.from_dlpack(made).dtype == made.dtype


@pytest.mark.parametrize("dtype", [">f4", "S3", "U2", "M8[s]", "m8[ns]", [("a", "i4")], "g"])
def test_types_without_a_dlpack_code_are_refused(device, dtype):
    with pytest.raises(BufferError, match="dtype"):
        gg.zeros(3, dtype, device=device).__dlpack__()


def test_strides_that_are_not_multiples_of_the_element_are_refused(device):
    made = gg.zeros(4, [("a", "i2"), ("b", "i1")], device=device).view("u1")[:8]
    assert made.__dlpack__()
    odd = gg.zeros((3, 5), "u1", device=device)[:, :4].view("f4")
    with pytest.raises(BufferError, match="strides"):
        odd.__dlpack__()


@pytest.mark.parametrize("names", [{"max_version": 1}, {"dl_device": 1}, {"nothing": 1}])
def test_odd_arguments_are_type_errors(numbers, names):
    with pytest.raises(TypeError):
        numbers.__dlpack__(**names)


def test_there_are_no_positional_arguments(numbers):
    with pytest.raises(TypeError):
        numbers.__dlpack__(1)


# ---- device and copy ------------------------------------------------------------------------------------------


def test_the_own_device_may_be_requested(numbers):
    _, tensor = tensor_of(numbers, dl_device=numbers.__dlpack_device__())
    assert tensor.data == numbers.ptr


@pytest.mark.parametrize("where", [(2, 99), (4, 0), (1, 1)])
def test_other_devices_are_refused(numbers, where):
    with pytest.raises(BufferError, match="not to"):
        numbers.__dlpack__(dl_device=where)


def test_export_to_the_host_copies_the_elements(numbers):
    struct, tensor = tensor_of(numbers, dl_device=(CPU, 0))
    copied = bool(struct.flags & producers.COPIED)
    assert (tensor.device_type, tensor.device_id) == (CPU, 0) and copied != host_memory(numbers.device)
    elements = np.ctypeslib.as_array(ctypes.cast(tensor.data, ctypes.POINTER(ctypes.c_float)), (24,))
    assert (elements == np.arange(24)).all()


def test_copy_false_refuses_exports_that_need_a_copy(numbers):
    if host_memory(numbers.device):
        pytest.skip("the host can access the memory: no copy is needed")
    with pytest.raises(ValueError, match="copy=False"):
        numbers.__dlpack__(dl_device=(CPU, 0), copy=False)


def test_copy_true_copies_and_sets_the_flag(numbers):
    struct, tensor = tensor_of(numbers[:, 1:], copy=True)
    assert struct.flags & producers.COPIED and tensor.data != numbers[:, 1:].ptr
    assert (tensor.device_type, tensor.device_id) == numbers.__dlpack_device__()
    copy = gg.from_dlpack(numbers[:, 1:], copy=True)
    numbers.fill(0)
    assert copy.tolist() == np.arange(24.0).reshape(2, 3, 4)[:, 1:].tolist()


# ---- synchronization ------------------------------------------------------------------------------------------


def consumer_stream(device):
    """A stream as another library would pass it, or a skip if streams have no numbers."""
    if not hasattr(device.default_stream, "__cuda_stream__"):
        pytest.skip(f"a stream of {device} has no number in DLPack")
    return gg.Stream(device, nonblocking=True)


def test_the_consumers_stream_waits_on_the_device_and_the_host_does_not(device, stream, gate):
    consumer, array = consumer_stream(device), gg.zeros(1000, device=device)
    out = gg.zeros_pinned(1000, device=device)
    gg.synchronize(device)
    gate.hold(stream)
    array.fill(7, stream=stream)
    array.__dlpack__(stream=consumer.handle)  # returns: nothing has run
    assert not stream.done
    array.get_async(out, stream=consumer)  # with a stream no synchronization is added: the consumer's own order
    assert not consumer.done and not out.any()
    gate.open()
    consumer.synchronize()
    assert (out == 7).all()
    consumer.close()


def test_stream_none_makes_the_default_stream_wait(device, stream, gate):
    consumer_stream(device).close()
    array, out = gg.zeros(1000, device=device), gg.zeros_pinned(1000, device=device)
    gg.synchronize(device)
    gate.hold(stream)
    array.fill(7, stream=stream)
    array.__dlpack__()
    array.get_async(out, stream=device.default_stream)
    assert not out.any()
    gate.open()
    device.default_stream.synchronize()
    assert (out == 7).all()


def test_stream_minus_1_adds_no_synchronization(device, stream, gate):
    array, other = gg.zeros(1000, device=device), gg.Stream(device, nonblocking=True)
    gg.synchronize(device)
    gate.hold(stream)
    array.fill(7, stream=stream)
    array.__dlpack__(stream=-1)
    array.__dlpack__(stream=-1, max_version=(1, 0))
    assert not stream.done and other.done
    other.close()


def test_if_streams_have_no_numbers_the_host_waits(device, stream, gate):
    if hasattr(device.default_stream, "__cuda_stream__"):
        pytest.skip(f"{device} has streams with numbers")
    array = gg.zeros(1000, device=device)
    gate.hold(stream)
    array.fill(7, stream=stream)
    opener = gate.open_when(lambda: True)
    array.__dlpack__()
    assert stream.done
    opener.join()
    with pytest.raises(ValueError, match="None or -1"):
        array.__dlpack__(stream=5)


MEANINGLESS = {CUDA: [0, -2], ROCM: [1, 2, -2]}


def test_invalid_stream_numbers_are_refused(device):
    array = gg.zeros(3, device=device)
    for number in MEANINGLESS.get(array.__dlpack_device__()[0], [0, 1]):
        with pytest.raises(ValueError, match=f"stream={number}"):
            array.__dlpack__(stream=number)


def test_default_streams_have_their_vendors_numbers(device):
    consumer_stream(device).close()
    array = gg.zeros(3, device=device)
    for number in ([1, 2] if array.__dlpack_device__()[0] == CUDA else [0]):
        assert array.__dlpack__(stream=number)


def test_a_producer_gets_our_stream_and_our_other_streams_wait(device, stream, gate):
    consumer_stream(device).close()
    array, asked = gg.zeros(1000, device=device), []
    gg.synchronize(device)

    class Foreign:
        __dlpack_device__ = array.__dlpack_device__

        def __dlpack__(self, **names):
            asked.append(names)
            return array.__dlpack__(**names)

    gate.hold(stream)
    array.fill(7, stream=stream)
    ours = gg.Stream(device, nonblocking=True)
    taken = gg.from_dlpack(Foreign(), stream=ours)
    assert asked == [{"max_version": (1, 3), "stream": ours.handle}] and not stream.done
    with gg.Stream(device, nonblocking=True):
        copy = taken.copy()  # on a third stream, which waits for ours
    gate.open()
    assert (copy.get() == 7).all()


def test_the_default_stream_has_its_vendors_number(device):
    consumer_stream(device).close()
    array, asked = gg.zeros(3, device=device), []

    class Foreign:
        __dlpack_device__ = array.__dlpack_device__

        def __dlpack__(self, **names):
            asked.append(names["stream"])
            return array.__dlpack__(**names)

    gg.from_dlpack(Foreign())
    assert asked == [1 if array.__dlpack_device__()[0] == CUDA else 0]


# ---- lifetimes --------------------------------------------------------------------------------------------------


def test_a_capsule_without_a_consumer_releases_its_tensor(device):
    array = gg.zeros(1000, device=device)
    capsule = array.__dlpack__()
    del array
    gc.collect()
    del capsule
    gg.synchronize(device)


def test_a_consumed_tensor_keeps_the_memory_without_the_array(device):
    array = gg.full(1000, 7, "u1", device=device)
    struct = producers.take(array.__dlpack__(max_version=(1, 0)))
    pointer = array.ptr
    del array
    gc.collect()
    others = [gg.full(1000, 9, "u1", device=device) for _ in range(20)]
    assert all(other.ptr != pointer for other in others)
    struct.deleter(ctypes.addressof(struct))


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_memory_used_on_the_default_stream_is_reused_there_at_once(device, version, gate):
    """Work on a stream runs in order, so that its next user needs no wait. The consumer's stream is the default one."""
    consumer_stream(device).close()
    array = gg.zeros(3 << 20, "u1", device=device)
    gate.hold(device.default_stream)
    capsule, pointer = array.__dlpack__(max_version=version), array.ptr
    del array, capsule
    again = gg.empty(3 << 20, "u1", device=device)
    assert again.ptr == pointer
    gate.open()


def test_memory_used_on_a_stream_of_gpuglue_is_reused_after_its_work(device):
    """Without a wait for the whole device, as other streams need one."""
    gg.synchronize(device)
    gg.trim()  # no other block fits
    consumer = consumer_stream(device)
    array = gg.zeros(3 << 20, "u1", device=device)
    capsule, pointer = array.__dlpack__(stream=consumer.handle), array.ptr
    del array, capsule
    consumer.synchronize()
    assert gg.empty(3 << 20, "u1", device=device).ptr == pointer


def test_any_thread_may_release_a_tensor_without_the_gil(device):
    """ctypes releases the GIL around a call: the deleter runs in many threads at once without it."""
    array = gg.zeros(1000, device=device)
    structs = [producers.take(array.__dlpack__(max_version=(1, 0))) for _ in range(64)]
    del array

    def drop(part):
        for struct in part:
            struct.deleter(ctypes.addressof(struct))

    threads = [threading.Thread(target=drop, args=(structs[i::8],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gg.synchronize(device)


EXIT = """
import sys; sys.path.insert(0, {tests!r})
import ctypes, producers, gpuglue as gg
array = gg.zeros(1000)
struct = producers.take(array.__dlpack__(max_version=(1, 0)))
{held}
print("ended")
"""
HELD = {
    "an array": "",
    "a capsule that was not taken": "keep = array.__dlpack__()",
    "a deleter that runs in atexit": "import atexit; atexit.register(lambda: struct.deleter(ctypes.addressof(struct)))",
    "a deleter that runs when modules go": (
        "class Last:\n    def __del__(self, drop=struct.deleter, at=ctypes.addressof(struct)): drop(at)\n"
        "sys.last = Last()"
    ),
    "a foreign tensor": "theirs = producers.Producer(); ours = gg.from_dlpack(theirs); del theirs",
    "a cycle through a foreign tensor": "array.__dlpack__; x = [gg.from_dlpack(array)]; x.append(x)",
}


@pytest.mark.parametrize("held", HELD)
def test_the_process_ends_silently_with_live_exports(backend, held):
    import pathlib

    code = EXIT.format(tests=str(pathlib.Path(__file__).parent), held=HELD[held])
    assert succeeds(run_python(code)) == "ended"


LATE = """
import ctypes, threading, time, producers, gpuglue as gg
array = gg.zeros(1000)
structs = [producers.take(array.__dlpack__(max_version=(1, 0))) for _ in range(200)]
library = ctypes.CDLL(None)
def drop():
    for struct in structs:
        struct.deleter(ctypes.addressof(struct))
        time.sleep(0.001)
threading.Thread(target=drop, daemon=True).start()
time.sleep(0.02)
print("ended")
"""


def test_a_thread_may_release_memory_while_the_interpreter_ends(backend):
    assert succeeds(run_python(LATE)) == "ended"


# ---- NumPy, where the memory is the host's -----------------------------------------------------------------------


def test_numpy_shares_the_hosts_memory(device):
    array = gg.zeros((3, 4), device=device)
    if not host_memory(device):
        pytest.skip(f"the host cannot access the memory of {device}")
    shared = (np.from_dlpack(array), np.asarray(array), np.asarray(memoryview(array)))
    assert all(host.ctypes.data == array.ptr for host in shared)
    assert shared[1].flags.writeable and shared[2].flags.writeable
    writeable = [host for host in shared if host.flags.writeable]  # older NumPys only read what DLPack gives them
    for host in writeable:
        host[1, 2] += 1
    assert array.get()[1, 2] == len(writeable)


def test_the_host_waits_for_pending_work_before_it_reads(device, stream, gate):
    array = gg.zeros(1000, device=device)
    if not host_memory(device):
        pytest.skip(f"the host cannot access the memory of {device}")
    for look in (np.asarray, np.from_dlpack, lambda a: a.__array__(), lambda a: np.array(a, copy=True)):
        array.fill(7, stream=stream)
        assert (look(array) == 7).all()
        array.fill(0, stream=stream)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats_have_dlpacks_codes_and_survive_a_round_trip(device, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    made = gg.to_gpu(np.arange(4).astype(getattr(ml_dtypes, name)), device)
    _, tensor = tensor_of(made)
    assert tensor.code in (4, 10, 12) and tensor.bits == made.itemsize * 8
    back = gg.from_dlpack(made)
    assert back.dtype == made.dtype and back.tolist() == [0, 1, 2, 3]
