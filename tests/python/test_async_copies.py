"""Asynchronous copies: when a call returns, which objects it keeps alive, which copies it refuses."""

import gc
import threading
import weakref

import numpy as np
import pytest

import gpuglue as gg

LARGE = 1 << 18  # of eight bytes: more than a slot of the pinned ring


@pytest.fixture
def numbers(device):
    made = gg.to_gpu(np.arange(LARGE, dtype="i8"), device)
    gg.synchronize(device)
    return made


def pinned_numbers(device, count=LARGE):
    host = gg.empty_pinned(count, "i8", device=device)
    host[:] = np.arange(count)
    return host


# ---- returns early, from and to pinned memory --------------------------------------------------


def test_get_async_returns_before_the_copy_is_complete(numbers, stream, gate):
    gate.hold(stream)
    fetched = numbers.get_async(stream=stream)
    assert not stream.done
    gate.open()
    stream.synchronize()
    assert (fetched == np.arange(LARGE)).all()


def test_get_async_returns_pinned_memory_of_the_same_layout(device, stream):
    made = gg.to_gpu(np.asfortranarray(np.arange(6.0).reshape(2, 3)), device)
    gg.synchronize(device)
    fetched = made.get_async(stream=stream)
    stream.synchronize()
    assert isinstance(fetched.base.obj, gg.Buffer) and fetched.base.obj.kind == "pinned"
    assert fetched.flags.f_contiguous and fetched.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_get_async_into_a_pinned_array_returns_early(numbers, device, stream, gate):
    out = gg.zeros_pinned(LARGE, "i8", device=device)
    gate.hold(stream)
    assert numbers.get_async(out, stream) is out
    assert not stream.done and not out.any()
    gate.open()
    stream.synchronize()
    assert (out == np.arange(LARGE)).all()


def test_set_async_from_a_pinned_array_returns_early(numbers, device, stream, gate):
    host = pinned_numbers(device)
    host += 1
    gate.hold(stream)
    assert numbers.set_async(host, stream) is None
    assert not stream.done
    gate.open()
    stream.synchronize()
    assert (numbers.get() == np.arange(LARGE) + 1).all()


def test_copy_with_a_stream_returns_early_between_pinned_and_device(numbers, device, stream, gate):
    out = gg.zeros_pinned(LARGE, "i8", device=device)
    gate.hold(stream)
    gg.copy(out, numbers, stream=stream)
    gg.copy(numbers, out, stream=stream, require_async=True)
    assert not stream.done
    gate.open()
    stream.synchronize()
    assert (out == np.arange(LARGE)).all()


def test_copy_on_the_device_returns_early(numbers, stream, gate):
    other = gg.zeros_like(numbers)
    gg.synchronize(numbers.device)
    gate.hold(stream)
    gg.copy(other, numbers, stream=stream, require_async=True)
    assert not stream.done
    gate.open()
    assert (other.get() == np.arange(LARGE)).all()


def test_small_pageable_sources_are_queued(device, stream, gate):
    made, host = gg.zeros(100, device=device), np.arange(100.0)
    gg.synchronize(device)
    gate.hold(stream)
    gg.copy(made, host, stream=stream, require_async=True)
    assert not stream.done
    host[:] = 0  # it has been read
    gate.open()
    assert (made.get() == np.arange(100)).all()


# ---- does not return early --------------------------------------------------------------------------


def test_large_pageable_sources_have_been_read_on_return(numbers, stream, gate):
    host = np.full(LARGE, 5)
    gate.hold(stream)
    opener = gate.open_later()
    numbers.set_async(host, stream)
    host[:] = 0
    assert (numbers.get() == 5).all()
    opener.join()


def test_pageable_destinations_are_written_on_return(numbers, stream, gate):
    out = np.zeros(LARGE, "i8")
    gate.hold(stream)
    opener = gate.open_later()
    numbers.get_async(out, stream)
    assert (out == np.arange(LARGE)).all()
    opener.join()


def test_strided_pinned_destinations_of_few_calls_are_queued(device, stream, gate):
    made = gg.to_gpu(np.arange(50), device)
    gg.synchronize(device)
    out = gg.zeros_pinned(100, "i8", device=device)
    gate.hold(stream)
    made.get_async(out[::2], stream)
    assert not stream.done and not out.any()
    gate.open()
    stream.synchronize()
    assert (out[::2] == np.arange(50)).all() and not out[1::2].any()


def test_get_and_set_with_a_stream_are_complete_on_return(numbers, device, stream, gate):
    host, out = pinned_numbers(device), gg.zeros_pinned(LARGE, "i8", device=device)
    gate.hold(stream)
    opener = gate.open_later()
    numbers.set(host, stream)
    host[:] = 0
    assert (numbers.get(out, stream) == np.arange(LARGE)).all()
    opener.join()


def test_to_gpu_with_a_stream_has_read_its_source_on_return(device, stream, gate):
    host = pinned_numbers(device)
    gate.hold(stream)
    opener = gate.open_later()
    made = gg.to_gpu(host, stream=stream)
    host[:] = 0
    assert (made.get() == np.arange(LARGE)).all()
    opener.join()


def test_copy_without_a_stream_is_complete_on_return(numbers, device, stream, gate):
    out = gg.zeros_pinned(LARGE, "i8", device=device)
    gate.hold(stream)
    numbers.fill(3, stream=stream)
    opener = gate.open_later()
    gg.copy(out, numbers)
    assert (out == 3).all()
    opener.join()


# ---- refused ----------------------------------------------------------------------------------------


def test_require_async_refuses_copies_that_would_wait(numbers, stream):
    out = np.zeros(LARGE, "i8")
    with pytest.raises(gg.UnsupportedError, match="waiting"):
        gg.copy(out, numbers, stream=stream, require_async=True)
    with pytest.raises(gg.UnsupportedError, match="waiting"):
        gg.copy(numbers, out, stream=stream, require_async=True)
    assert not out.any()


def test_require_async_refuses_layouts_that_take_too_many_calls(device, stream):
    made, out = gg.zeros((41,) * 4, "u1", device=device), gg.zeros_pinned((41,) * 4, "u1", device=device)
    with pytest.raises(gg.UnsupportedError, match="65536 driver calls"):
        gg.copy(out.T, made, stream=stream, require_async=True)


def test_require_async_needs_a_stream(numbers):
    with pytest.raises(ValueError, match="stream="):
        gg.copy(np.zeros(LARGE, "i8"), numbers, require_async=True)


# ---- life -------------------------------------------------------------------------------------------


def test_the_source_is_kept_until_the_copy_has_run(numbers, device, stream, gate):
    class Watched(np.ndarray):
        """An array that can be referenced weakly."""

    host = pinned_numbers(device).view(Watched)
    host[:] = 9
    gone = weakref.ref(host)
    gate.hold(stream)
    numbers.set_async(host, stream)
    del host
    gc.collect()
    assert gone() is not None
    gate.open()
    assert (numbers.get() == 9).all()


def test_the_destination_is_kept_until_the_copy_has_run(numbers, device, stream, gate):
    class Watched(np.ndarray):
        """An array that can be referenced weakly."""

    out = gg.zeros_pinned(LARGE, "i8", device=device).view(Watched)
    gone, whole = weakref.ref(out), np.asarray(out.base)
    gate.hold(stream)
    numbers.get_async(out, stream)
    del out
    gc.collect()
    assert gone() is not None
    gate.open()
    stream.synchronize()
    assert (whole.view("i8") == np.arange(LARGE)).all()


def test_a_read_only_destination_is_refused_and_not_changed(numbers, device, stream):
    out = gg.zeros_pinned(LARGE, "i8", device=device)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        numbers.get_async(out, stream)
    stream.synchronize()
    assert not out.any()


def test_owners_are_released_after_the_copy(numbers, device, stream):
    class Watched(np.ndarray):
        """An array that can be referenced weakly."""

    host = pinned_numbers(device).view(Watched)
    gone = weakref.ref(host)
    numbers.set_async(host, stream)
    del host
    stream.synchronize()
    for _ in range(3):  # the list of owners is emptied by the next calls
        gg.alloc(8, device).close()
        gg.synchronize(device)
        gc.collect()
    assert gone() is None


def test_the_array_of_get_async_may_be_dropped_before_the_copy_has_run(numbers, stream, gate):
    gate.hold(stream)
    numbers.get_async(stream=stream)
    gc.collect()
    gate.open()
    stream.synchronize()
    assert numbers.item(5) == 5


def test_arrays_may_be_dropped_before_their_copies_have_run(device, stream, gate):
    made = gg.to_gpu(np.arange(LARGE), device)
    gg.synchronize(device)
    gate.hold(stream)
    fetched = made.get_async(stream=stream)
    del made
    gc.collect()
    gate.open()
    stream.synchronize()
    assert (fetched == np.arange(LARGE)).all()


def test_many_threads_copy_at_once(device):
    wrong = []

    def work(seed):
        host = np.random.default_rng(seed).integers(0, 255, 100_000, dtype="u1")
        stream = gg.Stream(device)
        for _ in range(20):
            made = gg.to_gpu(host, device, stream)
            out = made.get_async(stream=stream)
            stream.synchronize()
            if not (out == host).all() or not (made.get() == host).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_python_threads_run_during_a_copy(numbers, stream, gate):
    gate.hold(stream)
    opener = gate.open_when(lambda: gate.reached)  # a Python thread: it needs the GIL to open
    numbers.set(np.zeros(LARGE, "i8"), stream)
    opener.join()
