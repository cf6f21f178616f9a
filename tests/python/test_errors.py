"""The message and the fields of an exception."""

import os
import pickle
import platform
import sys

import pytest
from conftest import run_python, succeeds
from kernels import path_for

import gpuglue as gg

PARTS = ("status", "backend", "device", "op", "code", "name", "text", "library", "library_version")


def record_of(backend):
    (record,) = (record for record in gg.backends() if record.name == backend)
    return record


def test_a_failed_operation_names_backend_device_operation_and_the_drivers_message(device):
    with pytest.raises(gg.OutOfMemoryError) as caught:
        gg.alloc(2**50, device)
    error, record = caught.value, record_of(device.backend)
    assert (error.backend, error.device, error.op) == (device.backend, device.ordinal, "mem_alloc")
    assert error.status == "ERR_OUT_OF_MEMORY" and error.reports is None
    if record.library:  # a vendor's
        assert (error.library, error.library_version) == (record.library, record.version)
        assert isinstance(error.code, int) and error.code and error.name and error.text
    else:
        assert (error.library, error.library_version, error.name) == (None, None, None)


def test_an_argument_that_never_reached_the_device_has_no_device_in_its_record(device):
    with pytest.raises(gg.InvalidArgumentError) as caught:
        gg.alloc(-1, device)
    assert [getattr(caught.value, part) for part in PARTS] == [None] * len(PARTS)


def test_each_exception_has_its_own_record(device):
    errors = []
    for size in (2**50, 2**51):
        with pytest.raises(gg.OutOfMemoryError) as caught:
            gg.alloc(size, device)
        errors.append(caught.value)
        gg.zeros(3, device=device).get()  # calls that succeed meanwhile change nothing
    assert str(2**50) in str(errors[0]) and str(2**51) in str(errors[1])


def test_exceptions_can_be_pickled_and_keep_their_message(device):
    with pytest.raises(gg.OutOfMemoryError) as caught:
        gg.alloc(2**50, device)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is gg.OutOfMemoryError and str(again) == str(caught.value)
    assert (again.op, again.device) == ("mem_alloc", device.ordinal)


def test_out_of_pinned_memory_is_reported_as_such(device):
    with pytest.raises(MemoryError, match=rf"{2**50} bytes\) of pinned host memory"):
        gg.alloc_pinned(2**50, device)
    with pytest.raises(MemoryError, match="Close what is no longer needed, or ask for less"):
        gg.empty_pinned(2**47, device=device)


def test_failed_allocations_leave_nothing_behind(device):
    before, references = gg.zeros(4, device=device), sys.getrefcount(gg.OutOfMemoryError)
    for _ in range(50):
        with pytest.raises(MemoryError):
            gg.zeros(2**47, device=device)
    assert before.tolist() == [0] * 4 and sys.getrefcount(gg.OutOfMemoryError) < references + 10


NO_MEMORY = (
    "import resource, gpuglue as gg, kernels\n"
    "device = gg.Device('{}:0')\n"
    "kernel, array = kernels.load(device)['scale'], kernels.floats(device)\n"
    "stream, before = gg.Stream(device), gg.Event(device)\n"
    "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
    "limits = resource.getrlimit(resource.RLIMIT_AS)\n"
    "before.record(stream); before.synchronize()\n"
    "resource.setrlimit(resource.RLIMIT_AS, (used, limits[1]))\n"
    "kernel(array, kernels.np.uint32(10), kernels.np.float32(2), grid=1, block=1, smem=1 << 16, stream=stream)\n"
    "before.record(stream); before.synchronize()\n"
    "resource.setrlimit(resource.RLIMIT_AS, limits)\n"
    "for call in (lambda: {}, stream.synchronize):\n"
    "    try: call()\n"
    "    except gg.DeviceError as error: print(error)\n"
)


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="the test limits the address space, which a sanitizer needs")
@pytest.mark.parametrize("look", ["gg.trim()", "device.synchronize()"])
def test_a_failure_that_a_query_or_a_device_wide_wait_found_is_raised_once(device, look):
    if device.arch != platform.machine():
        pytest.skip("its kernels do not run in this process's memory")
    path_for(device)
    assert succeeds(run_python(NO_MEMORY.format(device.backend, look))).count("kernel did not run") == 1
