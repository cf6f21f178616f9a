"""The current device and stream of a thread."""

import ctypes
import os
import threading

import numpy as np
import pytest
from conftest import run_python, succeeds

import gpuglue as gg


def in_thread(function):
    """What a fresh thread gets."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_by_default_the_current_device_is_the_first(device):
    assert in_thread(gg.current_device) is device


def test_with_a_device_makes_it_current_and_restores(device, second_device):
    before = gg.current_device()
    with second_device as entered:
        assert entered is gg.current_device() is second_device
        with device:
            assert gg.current_device() is device
        assert gg.current_device() is second_device
    assert gg.current_device() is before


def test_with_restores_after_an_exception(second_device):
    before = gg.current_device()
    with pytest.raises(KeyError), second_device:
        raise KeyError
    assert gg.current_device() is before


def test_with_a_stream_makes_it_and_its_device_current(second_device):
    stream = gg.Stream(second_device)
    with stream as entered:
        assert entered is stream
        assert gg.current_device() is second_device
        assert gg.current_stream() == stream
    assert gg.current_stream(second_device) == second_device.default_stream


def test_a_stream_is_current_on_its_own_device_only(stream, device, second_device):
    with stream, second_device:
        assert gg.current_stream(device) == stream
        assert gg.current_stream() == second_device.default_stream


def test_a_stream_may_be_entered_twice(stream, device):
    other = gg.Stream(device)
    with stream, other, stream:
        assert gg.current_stream() == stream
    assert gg.current_stream() == device.default_stream


def test_set_current_lasts_until_the_next_call_in_that_thread(device, second_device):
    def use():
        second_device.set_current()
        with device:
            assert gg.current_device() is device
        return gg.current_device()

    assert in_thread(use) is second_device
    assert in_thread(gg.current_device) is device


def test_the_current_device_and_stream_belong_to_the_thread(stream, device):
    with stream:
        assert in_thread(gg.current_stream) == device.default_stream


def test_a_generator_may_leave_out_of_order(stream, device):
    def inside(entered):
        with entered:
            yield

    other = gg.Stream(device)
    first, second = inside(stream), inside(other)
    next(first), next(second)
    first.close()
    assert gg.current_stream() == other
    second.close()
    assert gg.current_stream() == device.default_stream


def test_a_scope_of_a_finished_thread_can_be_left_elsewhere(stream, device):
    def inside():
        with stream:
            yield

    generator, thread = inside(), []
    in_thread(lambda: (next(generator), thread.append(threading.get_native_id())))
    while os.path.exists(f"/proc/self/task/{thread[0]}"):  # join() returns a little before its end
        pass
    generator.close()
    assert gg.current_stream() == device.default_stream


def test_leaving_a_scope_that_was_not_entered_is_refused(stream):
    with pytest.raises(gg.InvalidArgumentError, match="not entered"):
        stream.__exit__(None, None, None)


def test_a_closed_stream_stays_current_until_its_block_ends(device):
    stream = gg.Stream(device)
    with stream:
        stream.close()
        gg.current_stream().synchronize()
    assert gg.current_stream() == device.default_stream


def test_synchronize_waits_for_the_device_given_or_current(device, stream, gate):
    gate.hold(stream)
    opener = gate.open_when(lambda: gate.reached)
    gg.synchronize()
    opener.join()
    assert stream.done
    assert gg.synchronize(device) is None


def test_the_variable_selects_the_current_device(backend):
    last = len(gg.devices(backend)) - 1
    code = "import gpuglue as gg; print(gg.current_device().ordinal)"
    for text in (str(last), f"{backend}:{last}"):
        assert succeeds(run_python(code, GPUGLUE_DEVICE=text)) == str(last)


def test_a_variable_that_contradicts_the_backend_is_refused(backend):
    code = "import gpuglue as gg\ntry: gg.current_device()\nexcept gg.Error as error: print(error)"
    message = succeeds(run_python(code, GPUGLUE_DEVICE="other:0"))
    assert "GPUGLUE_DEVICE=other:0" in message and backend in message


def vendors_device(driver):
    """The ordinal of the vendor's current device in this thread, or None."""
    ordinal = ctypes.c_int(-1)
    return None if driver.cuCtxGetDevice(ctypes.byref(ordinal)) else ordinal.value


@pytest.fixture
def driver(device):
    """The vendor's library, if it has a current device that can be queried."""
    (record,) = (record for record in gg.backends() if record.name == device.backend)
    library = ctypes.CDLL(record.library) if record.library else None
    if not hasattr(library, "cuCtxGetDevice"):
        pytest.skip(f"{device.backend} has no current context of its own")
    return library


@pytest.fixture
def vendors(driver):
    """A function that runs another in a thread without a current device, with a query of the current device."""
    return lambda function: in_thread(lambda: function(lambda: vendors_device(driver)))


SCOPES = {
    "device": lambda device, stream: device,
    "stream": lambda device, stream: stream,
}


@pytest.mark.parametrize("kind", SCOPES)
def test_a_with_block_sets_the_vendors_current_context(vendors, device, second_device, kind):
    outer, inner = (SCOPES[kind](d, gg.Stream(d)) for d in (device, second_device))

    def work(current):
        found = [current()]
        with outer:
            found.append(current())
            with inner:
                found.append(current())
            found.append(current())
        return [*found, current()]

    assert vendors(work) == [None, 0, 1, 0, None]


def test_a_with_block_restores_the_vendors_current_context_after_an_exception(vendors, second_device):
    def work(current):
        with pytest.raises(KeyError), second_device, gg.Stream(second_device):
            assert current() == 1
            raise KeyError
        return current()

    assert vendors(work) is None


def test_set_current_sets_the_vendors_current_context(vendors, device, second_device):
    def work(current):
        second_device.set_current()
        found = [current()]
        with device:
            found.append(current())
        return [*found, current()]

    assert vendors(work) == [1, 0, 1]


CALLS = {
    "to_gpu": lambda device: gg.to_gpu([1, 2, 3], device).get(),
    "alloc": lambda device: gg.alloc(10, device).close(),
    "pinned": lambda device: gg.alloc_pinned(10, device).close(),
    "stream": lambda device: gg.Stream(device).close(),
    "event": lambda device: device.default_stream.record(gg.Event(device)).synchronize(),
    "synchronize": lambda device: device.synchronize(),
    "memory_info": lambda device: device.memory_info(),
    "out of memory": lambda device: pytest.raises(MemoryError, gg.alloc, 2**50, device),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_do_not_change_the_vendors_current_context(vendors, device, second_device, name):
    def work(current):
        CALLS[name](second_device)
        found = [current()]
        with device:
            CALLS[name](second_device)
            found.append(current())
        return [*found, current()]

    assert vendors(work) == [None, 0, None]


@pytest.fixture
def foreign(driver, second_device):
    """Makes the second device current as another library does, by its primary context."""
    context = ctypes.c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), second_device.ordinal) == 0
    yield lambda: driver.cuCtxSetCurrent(context)
    driver.cuDevicePrimaryCtxRelease_v2(second_device.ordinal)


def test_the_context_of_another_library_is_used_unless_a_device_was_chosen(vendors, foreign, device, second_device):
    def work(current):
        found = [foreign(), gg.current_device(), gg.zeros(3).device]
        with device:
            found += [gg.current_device(), gg.zeros(3).device]
        return [*found, current()]

    assert vendors(work) == [0, second_device, second_device, device, device, second_device.ordinal]


def test_a_context_that_is_not_primary_is_ignored_and_restored(vendors, driver, device, second_device):
    def work(current):
        context, now = ctypes.c_void_p(), ctypes.c_void_p()
        assert driver.cuCtxCreate_v2(ctypes.byref(context), 0, second_device.ordinal) == 0
        found = [gg.current_device(), gg.zeros(3).tolist(), current()]
        driver.cuCtxGetCurrent(ctypes.byref(now))
        driver.cuCtxDestroy_v2(context)
        return [*found, now.value == context.value]

    assert vendors(work) == [device, [0] * 3, second_device.ordinal, True]


# ---- implicit operations wait, explicit ones do not --------------------------------------------------------------


def test_work_without_a_stream_waits_on_the_device_and_not_on_the_host(device, gate):
    array, other = gg.zeros(4, device=device), gg.Stream(device, nonblocking=True)
    busy = gg.Stream(device, nonblocking=True)
    gg.synchronize(device)
    gate.hold(busy)
    array.fill(3, stream=busy)
    with other:
        array.fill(4)  # after the fill on the busy stream, without waiting for it here
    assert not other.done
    gate.open()
    assert array.tolist() == [4] * 4


def test_work_with_a_stream_does_not_wait_for_other_streams(device, stream, gate):
    array, busy = gg.zeros(4, device=device), gg.Stream(device, nonblocking=True)
    gg.synchronize(device)
    gate.hold(busy)
    array.fill(3, stream=busy)
    assert array.get(stream=stream).tolist() in ([0] * 4, [3] * 4)  # returned: it did not wait for the gate
    assert not busy.done


def test_a_write_waits_for_reads_on_other_streams(device, gate):
    array, pinned = gg.full(4, 1.0, device=device), gg.zeros_pinned(4, device=device)
    busy = gg.Stream(device, nonblocking=True)
    gg.synchronize(device)
    gate.hold(busy)
    array.get_async(pinned, busy)
    opener = gate.open_when(lambda: gate.reached)
    array.set(np.full(4, 2.0))
    opener.join()
    busy.synchronize()
    assert pinned.tolist() == [1] * 4 and array.tolist() == [2] * 4
