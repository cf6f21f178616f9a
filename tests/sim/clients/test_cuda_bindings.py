"""NVIDIA's cuda-bindings runs over the simulated driver.

Run in an environment with cuda-bindings 13 and pytest, with the simulated library first in the path:
    LD_LIBRARY_PATH=<build>/tests/sim/cuda python -m pytest tests/sim/clients
Only its `driver` module is used, because NVIDIA's runtime library needs private tables of the driver.
"""

import ctypes

import pytest

driver = pytest.importorskip("cuda.bindings.driver")

SIZE = 4096


def ok(returned):
    """Check that a call succeeded; return its values."""
    error, *values = returned
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return values[0] if len(values) == 1 else values


@pytest.fixture
def context():
    ok(driver.cuInit(0))
    device = ok(driver.cuDeviceGet(0))
    context = ok(driver.cuDevicePrimaryCtxRetain(device))
    ok(driver.cuCtxSetCurrent(context))
    yield context
    ok(driver.cuCtxSetCurrent(driver.CUcontext(0)))
    ok(driver.cuDevicePrimaryCtxRelease(device))


def host(data=None):
    memory = (ctypes.c_ubyte * SIZE)()
    if data:
        memory[:] = data
    return memory


def test_devices_are_enumerated(context):
    count = ok(driver.cuDeviceGetCount())
    assert count >= 1
    for ordinal in range(count):
        device = ok(driver.cuDeviceGet(ordinal))
        assert b"Simulated" in ok(driver.cuDeviceGetName(64, device))
        assert ok(driver.cuDeviceTotalMem(device)) > 0
        bus = ok(driver.cuDeviceGetPCIBusId(32, device))
        assert int(ok(driver.cuDeviceGetByPCIBusId(bus.split(b"\0")[0]))) == ordinal


def test_a_round_trip_through_two_streams_keeps_the_bytes(context):
    nonblocking = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
    first, second = (ok(driver.cuStreamCreate(nonblocking)) for _ in range(2))
    start, copied = (ok(driver.cuEventCreate(0)) for _ in range(2))
    near, far = (ok(driver.cuMemAlloc(SIZE)) for _ in range(2))
    source, target = host([i % 251 for i in range(SIZE)]), host()

    ok(driver.cuEventRecord(start, first))
    ok(driver.cuMemcpyHtoDAsync(near, ctypes.addressof(source), SIZE, first))
    ok(driver.cuMemcpyDtoDAsync(far, near, SIZE, first))
    ok(driver.cuEventRecord(copied, first))
    ok(driver.cuStreamWaitEvent(second, copied, 0))
    ok(driver.cuMemcpyDtoHAsync(ctypes.addressof(target), far, SIZE, second))
    ok(driver.cuStreamSynchronize(second))

    assert bytes(source) == bytes(target)
    assert ok(driver.cuEventElapsedTime(start, copied)) >= 0
    for stream in first, second:
        ok(driver.cuStreamDestroy(stream))
    for event in start, copied:
        ok(driver.cuEventDestroy(event))
    for memory in near, far:
        ok(driver.cuMemFree(memory))


def test_polling_a_stream_ends(context):
    stream = ok(driver.cuStreamCreate(0))
    memory = ok(driver.cuMemAlloc(SIZE))
    ok(driver.cuMemsetD8Async(memory, 7, SIZE, stream))
    (first,) = driver.cuStreamQuery(stream)
    assert first in (driver.CUresult.CUDA_ERROR_NOT_READY, driver.CUresult.CUDA_SUCCESS)
    while driver.cuStreamQuery(stream)[0] == driver.CUresult.CUDA_ERROR_NOT_READY:
        pass
    assert driver.cuStreamQuery(stream)[0] == driver.CUresult.CUDA_SUCCESS
    ok(driver.cuMemFree(memory))
    ok(driver.cuStreamDestroy(stream))


def test_pools_allocate_in_stream_order(context):
    stream = ok(driver.cuStreamCreate(0))
    pool = ok(driver.cuDeviceGetDefaultMemPool(ok(driver.cuDeviceGet(0))))
    memory = ok(driver.cuMemAllocFromPoolAsync(SIZE, pool, stream))
    ok(driver.cuMemsetD8Async(memory, 7, SIZE, stream))
    target = host()
    ok(driver.cuMemcpyDtoHAsync(ctypes.addressof(target), memory, SIZE, stream))
    ok(driver.cuMemFreeAsync(memory, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert bytes(target) == b"\7" * SIZE
    ok(driver.cuStreamDestroy(stream))


def test_errors_have_names(context):
    (error, *_) = driver.cuMemAlloc(1 << 60)
    assert error == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    assert ok(driver.cuGetErrorName(error)) == b"CUDA_ERROR_OUT_OF_MEMORY"
