"""get() returns ordinary arrays, whose memory is reused when the last view is released."""

import gc
import os
import threading

import numpy as np
import pytest

import gpuglue as gg

COUNT = 1 << 20  # of four bytes: large enough for memory of gpuglue's


@pytest.fixture
def numbers(device):
    return gg.to_gpu(np.arange(COUNT, dtype="i4"), device)


def test_get_returns_an_ordinary_array(numbers):
    result = numbers.get()
    assert type(result) is np.ndarray and result.base is None
    assert result.flags.owndata and result.flags.writeable and result.flags.c_contiguous
    assert (result == np.arange(COUNT)).all()


def test_get_keeps_the_order_of_the_array(device):
    host = np.asfortranarray(np.arange(COUNT, dtype="i4").reshape(1024, -1))
    result = gg.to_gpu(host, device).get()
    assert result.flags.f_contiguous and (result == host).all()


def test_an_array_of_get_can_be_resized(numbers):
    result = numbers.get()
    result.resize(2 * COUNT, refcheck=False)
    assert (result[:COUNT] == np.arange(COUNT)).all()
    result.resize(10, refcheck=False)
    assert (result == np.arange(10)).all()


def test_readback_memory_is_reused(numbers):
    first = numbers.get()
    address = first.ctypes.data
    del first
    assert numbers.get().ctypes.data == address


def test_readback_memory_is_not_reused_while_a_view_lives(numbers):
    result = numbers.get()
    view, expected = result[5:900:7], np.arange(COUNT)[5:900:7]
    del result
    numbers.fill(-1)
    others = [numbers.get() for _ in range(4)]
    assert (view == expected).all() and all((other == -1).all() for other in others)


def test_the_bytes_of_every_use_are_correct(numbers):
    for use in range(6):  # fresh, pageable, pinned
        numbers.fill(use)
        result = numbers.get()
        assert (result == use).all()
        del result


def test_readback_memory_outlives_its_array_and_trim(device):
    array = gg.to_gpu(np.arange(COUNT, dtype="i4"), device)
    kept = [array.get() for _ in range(2)]
    del kept[0]
    kept.append(array.get())
    del array
    gc.collect()
    gg.synchronize(device)
    assert all((result == np.arange(COUNT)).all() for result in kept)


def test_each_thread_gets_its_own_memory(numbers):
    wrong = []

    def get_often():
        for _ in range(20):
            if not (numbers.get() == np.arange(COUNT)).all():
                wrong.append(1)

    threads = [threading.Thread(target=get_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_only_arrays_of_get_live_in_readback_memory(numbers):
    handlers = pytest.importorskip("numpy._core.multiarray", reason="NumPy 1 has it elsewhere")
    usual = handlers.get_handler_name()
    result = numbers.get()
    assert handlers.get_handler_name(result) == "gpuglue_readback"
    assert handlers.get_handler_name() == usual == handlers.get_handler_name(np.ones(COUNT, "i4"))
    assert handlers.get_handler_name(numbers[:10].get()) == usual


def test_an_array_of_get_can_be_resized_in_a_forked_child(numbers):
    result = numbers.get()
    child = os.fork()
    if not child:
        try:
            result.resize(2 * COUNT, refcheck=False)
            os._exit(0 if (result[:COUNT] == np.arange(COUNT)).all() else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_array_of_get_can_be_registered(device, numbers):
    if not device.supports("mem_register"):
        pytest.skip("this device cannot register memory")
    for _ in range(3):  # fresh, pageable, pinned
        result = numbers.get()
        with gg.host_register(result, device) as registered:
            assert registered.ptr == result.ctypes.data and registered.nbytes == result.nbytes
        del result
        device.synchronize()
        gg.trim()


def test_finalizers_that_run_inside_get_may_allocate_arrays(device, monkeypatch):
    """Before Python 3.12 the collector runs inside allocations, also of those that set NumPy's data handler."""
    failed, remaining, before = [], 0, gc.get_threshold()
    monkeypatch.setattr("sys.unraisablehook", failed.append)

    class Finalized:
        def __init__(self):
            self.cycle = self

        def __del__(self):
            nonlocal remaining
            assert np.ones(1000).sum() == 1000
            remaining -= 1
            if remaining > 0:
                Finalized()  # so that the next collection runs a finalizer, too

    array = gg.zeros(1 << 22, "u1", device=device)
    array.get()
    try:
        for threshold in range(1, 12):
            gc.collect()
            remaining = 6
            Finalized()
            gc.set_threshold(threshold)
            array.get()
            remaining = 0
    finally:
        gc.set_threshold(*before)
    assert not failed
