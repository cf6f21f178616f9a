"""AMD's hip-python runs over the simulated HIP runtime.

Run in an environment with hip-python 6.4 and pytest, with the simulated library first in the path:
    LD_LIBRARY_PATH=<build>/tests/sim/hip6 python -m pytest tests/sim/clients/test_hip_python.py
hip-python opens libamdhip64.so, without a version.
"""

import ctypes
import ctypes.util

import pytest

hip = pytest.importorskip("hip.hip", reason="hip-python is not installed")

SIZE = 4096


@pytest.fixture(autouse=True)
def simulated():
    """hip-python raises an exception at the first call if the library is not found."""
    try:
        ctypes.CDLL("libamdhip64.so").sim_calls
    except (OSError, AttributeError):
        pytest.skip("no simulated libamdhip64.so on LD_LIBRARY_PATH")


def ok(returned):
    """Check that a call succeeded; return its values."""
    error, *values = returned
    assert error == hip.hipError_t.hipSuccess, error
    return values[0] if len(values) == 1 else tuple(values)


def host(data=None):
    memory = (ctypes.c_ubyte * SIZE)()
    if data:
        memory[:] = data
    return memory


def test_devices_are_enumerated():
    count = ok(hip.hipGetDeviceCount())
    assert count == 2
    for ordinal in range(count):
        ok(hip.hipSetDevice(ordinal))
        assert ok(hip.hipGetDevice()) == ordinal
        free, total = ok(hip.hipMemGetInfo())
        assert 0 < free <= total
    ok(hip.hipSetDevice(0))


def test_the_properties_of_a_device_are_read_in_the_new_layout():
    properties = hip.hipDeviceProp_t()
    ok(hip.hipGetDeviceProperties(properties, 0))
    assert properties.gcnArchName == b"gfx942:sramecc+:xnack-"
    assert properties.name == b"Simulated MI300X 0" and properties.totalGlobalMem == 1 << 30


def test_a_round_trip_through_two_streams_keeps_the_bytes():
    first, second = (ok(hip.hipStreamCreateWithFlags(hip.hipStreamNonBlocking)) for _ in range(2))
    start, copied = (ok(hip.hipEventCreateWithFlags(0)) for _ in range(2))
    near, far = (ok(hip.hipMalloc(SIZE)) for _ in range(2))
    source, target = host([i % 251 for i in range(SIZE)]), host()

    ok(hip.hipEventRecord(start, first))
    ok(hip.hipMemcpyAsync(near, source, SIZE, hip.hipMemcpyKind.hipMemcpyHostToDevice, first))
    ok(hip.hipMemcpyAsync(far, near, SIZE, hip.hipMemcpyKind.hipMemcpyDeviceToDevice, first))
    ok(hip.hipEventRecord(copied, first))
    ok(hip.hipStreamWaitEvent(second, copied, 0))
    ok(hip.hipMemcpyAsync(target, far, SIZE, hip.hipMemcpyKind.hipMemcpyDeviceToHost, second))
    ok(hip.hipStreamSynchronize(second))

    assert bytes(source) == bytes(target)
    assert ok(hip.hipEventElapsedTime(start, copied)) >= 0
    for stream in first, second:
        ok(hip.hipStreamDestroy(stream))
    for event in start, copied:
        ok(hip.hipEventDestroy(event))
    for memory in near, far:
        ok(hip.hipFree(memory))


def test_polling_a_stream_ends():
    stream = ok(hip.hipStreamCreate())
    memory = ok(hip.hipMalloc(SIZE))
    ok(hip.hipMemsetAsync(memory, 7, SIZE, stream))
    while (state := hip.hipStreamQuery(stream)[0]) == hip.hipError_t.hipErrorNotReady:
        pass
    assert state == hip.hipError_t.hipSuccess
    ok(hip.hipFree(memory))
    ok(hip.hipStreamDestroy(stream))


def test_allocation_and_free_are_ordered_on_a_stream():
    stream = ok(hip.hipStreamCreate())
    memory = ok(hip.hipMallocAsync(SIZE, stream))
    ok(hip.hipMemsetAsync(memory, 7, SIZE, stream))
    target = host()
    ok(hip.hipMemcpyAsync(target, memory, SIZE, hip.hipMemcpyKind.hipMemcpyDeviceToHost, stream))
    ok(hip.hipFreeAsync(memory, stream))
    ok(hip.hipStreamSynchronize(stream))
    assert bytes(target) == b"\7" * SIZE
    ok(hip.hipStreamDestroy(stream))


def test_errors_have_names():
    (error, *_) = hip.hipMalloc(1 << 60)
    assert error == hip.hipError_t.hipErrorOutOfMemory
    assert str(ok(hip.hipGetErrorName(error))) == "hipErrorOutOfMemory"
