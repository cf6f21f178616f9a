"""The current device and stream of a thread."""

import os
import threading

import pytest
from conftest import core_library, run_python, succeeds

import gpuglue as gg


def in_thread(function):
    """What a fresh thread gets."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_without_anything_the_current_device_is_the_first(device):
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


def test_use_lasts_until_the_next_use_of_that_thread(device, second_device):
    def use():
        second_device.use()
        with device:
            assert gg.current_device() is device
        return gg.current_device()

    assert in_thread(use) is second_device
    assert in_thread(gg.current_device) is device


def test_what_is_current_belongs_to_the_thread(stream, device):
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


def test_a_scope_whose_thread_is_gone_can_be_left_elsewhere(stream, device):
    def inside():
        with stream:
            yield

    generator, thread = inside(), []
    in_thread(lambda: (next(generator), thread.append(threading.get_native_id())))
    while os.path.exists(f"/proc/self/task/{thread[0]}"):  # join() returns a little before its end
        pass
    generator.close()
    assert gg.current_stream() == device.default_stream


def test_leaving_what_was_not_entered_is_refused(stream):
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


def test_the_variable_names_the_current_device(backend):
    last = len(gg.devices(backend)) - 1
    code = "import gpuglue as gg; print(gg.current_device().ordinal)"
    for text in (str(last), f"{backend}:{last}"):
        assert succeeds(run_python(code, GPUGLUE_DEVICE=text)) == str(last)


def test_a_variable_that_contradicts_the_backend_is_refused(backend):
    code = "import gpuglue as gg\ntry: gg.current_device()\nexcept gg.Error as error: print(error)"
    message = succeeds(run_python(code, GPUGLUE_DEVICE="other:0"))
    assert "GPUGLUE_DEVICE=other:0" in message and backend in message


def test_a_with_block_sets_what_is_current_in_the_vendors_sense(second_device):
    core = core_library()
    before = in_thread(lambda: gg.current_device().ordinal)

    def vendor_then_ours():
        with second_device:
            assert core.gg_device_ordinal  # any library called here runs on that device
            inner = gg.current_device().ordinal
        return inner, gg.current_device().ordinal

    assert in_thread(vendor_then_ours) == (second_device.ordinal, before)
