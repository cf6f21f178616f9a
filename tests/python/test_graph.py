"""Graphs: the block of gg.capture, launches, updates, and what is refused."""

import gc
import operator
import threading

import numpy as np
import pytest
from conftest import needs, succeeds
from kernels import load

import gpuglue as gg


@pytest.fixture
def captured(device):
    """A stream that can be captured."""
    needs(device, "capture_begin")
    stream = gg.Stream(device, nonblocking=True)
    yield stream
    stream.close()


def zeros(device, count=16):
    array = gg.zeros(count, np.float32, device=device)
    device.synchronize()  # a capture does not wait for earlier work
    return array


def filling(stream, array, value):
    with gg.capture(stream) as graph:
        array.fill(value)
    return graph


# ---- captures and launches ----


def test_a_block_is_recorded_and_runs_at_each_launch(device, captured):
    array = zeros(device)
    graph = filling(captured, array, 3)
    assert not array.get().any()
    for _ in range(2):
        graph.launch(captured)
        captured.synchronize()
        assert (array.get() == 3).all()
        array.fill(0)
        device.synchronize()


def test_a_chain_of_copies_and_kernels_is_repeated_with_new_input(device, captured):
    scale = load(device)["scale"]
    array, source = zeros(device), gg.empty_pinned(16, np.float32, device=device)
    result = gg.empty_pinned(16, np.float32, device=device)
    with gg.capture(captured) as graph:
        array.set_async(source)
        scale(array, np.uint32(16), np.float32(2), grid=1, block=32)
        scale(array, np.uint32(16), np.float32(5), grid=1, block=32)
        array.get_async(out=result)
    for value in (1, 7):
        source[:] = value
        graph.launch(captured)
        captured.synchronize()
        assert (result == 10 * value).all()


def test_memory_that_was_used_before_a_capture_is_ready_in_it(device, captured, gate):
    gate.hold(captured)  # other code has the handle from now on
    gg.to_gpu(np.zeros(16, np.float32), device, captured)  # its block serves again
    array = gg.to_gpu(np.ones(16, np.float32), device, captured)
    graph = filling(captured, array, 3)
    gate.open()
    assert array.get(stream=captured).tolist() == [1] * 16
    graph.launch(captured)
    assert array.get(stream=captured).tolist() == [3] * 16


def test_memory_whose_earlier_work_is_unfinished_is_refused_in_a_capture(device, captured, gate):
    gate.hold(captured)
    gg.to_gpu(np.zeros(16, np.float32), device, captured)  # its block serves again
    array, host = gg.empty(16, np.float32, device=device, stream=captured), np.full(16, 5, np.float32)
    with pytest.raises(gg.UnsupportedError, match="allocated while earlier work still used"), gg.capture(captured):
        array.set(host, captured)
    gate.open()
    captured.synchronize()
    array.set(host, captured)
    assert array.get(stream=captured).tolist() == [5] * 16


def test_a_launch_is_ordered_as_any_operation(device, captured):
    array = zeros(device)
    graph = filling(captured, array, 3)
    graph.launch()
    assert (array.get() == 3).all()  # waits for it
    array.fill(4)
    graph.launch(stream=None)
    device.synchronize()
    assert (array.get() == 3).all()


def test_a_stream_of_any_kind_can_be_captured(device, captured):
    needs(device, "stream_borrow", "stream_native")
    array = zeros(device)
    with gg.capture(gg.Stream.borrow(captured)) as graph:
        array.fill(5)
    graph.launch(captured)
    captured.synchronize()
    assert (array.get() == 5).all()


def test_a_stream_joins_by_a_wait(device, captured, stream):
    array = zeros(device)
    with gg.capture(captured) as graph:
        stream.wait(captured)
        gg.fill(array, 6, stream=stream)
        captured.wait(stream)
    assert not array.get().any()
    graph.launch(captured)
    captured.synchronize()
    assert (array.get() == 6).all()


# ---- what a graph holds ----


def test_a_graph_keeps_arrays_alive_that_the_program_has_dropped(device, captured):
    out = zeros(device)
    temporary = zeros(device)
    with gg.capture(captured) as graph:
        temporary.fill(8)
        gg.copy(out, temporary)
    address = temporary.ptr
    del temporary
    gc.collect()
    others = [zeros(device) for _ in range(20)]
    assert address not in [other.ptr for other in others]
    graph.launch(captured)
    captured.synchronize()
    assert (out.get() == 8).all() and not any(other.get().any() for other in others)


def test_a_closed_graph_releases_its_memory(device, captured):
    gc.collect()  # what earlier tests left, of which a later collection would free a part
    gg.trim()  # also what their graphs held
    before = device.pool.stats().used_bytes
    graph = filling(captured, zeros(device, 1 << 16), 1)
    graph.launch(captured)
    assert device.pool.stats().used_bytes > before
    graph.close()
    graph.close()
    captured.synchronize()
    gg.trim()
    assert device.pool.stats().used_bytes == before


def test_a_dropped_graph_finishes_its_launches(device, captured):
    array = zeros(device)
    filling(captured, array, 2).launch(captured)
    gc.collect()
    captured.synchronize()
    assert (array.get() == 2).all()


# ---- updates ----


def test_an_update_changes_the_arguments_of_later_launches(device, captured):
    needs(device, "graph_update")
    array, other = zeros(device), zeros(device)
    graph, changed = filling(captured, array, 1), filling(captured, other, 2)
    graph.update(changed)
    changed.close()
    del changed
    graph.launch(captured)
    captured.synchronize()
    assert not array.get().any() and (other.get() == 2).all()


def test_an_update_from_other_work_is_refused(device, captured):
    needs(device, "graph_update")
    array = zeros(device)
    graph = filling(captured, array, 1)
    with gg.capture(captured) as other:
        array.fill(1)
        array.fill(2)
    with pytest.raises(gg.InvalidArgumentError, match="differ"):
        graph.update(other)
    with pytest.raises(TypeError, match="other must be a Graph"):
        graph.update(3)


# ---- events of a capture ----


def test_an_event_of_a_capture_only_orders_its_work(device, captured, stream):
    array = zeros(device)
    with gg.capture(captured) as graph:
        array.fill(1)
        event = captured.record()
        with gg.Timer(captured) as timer:
            array.fill(2)
    graph.launch(captured)
    for call in (lambda: event.done, event.synchronize, lambda: stream.wait(event), lambda: timer.ms):
        with pytest.raises(gg.InvalidArgumentError, match="recorded in a capture"):
            call()
    captured.record(event).synchronize()
    assert event.done and (array.get() == 2).all()


# ---- the end of a capture ----


def test_an_exception_ends_the_capture_and_closes_the_graph(device, captured):
    array = zeros(device)
    with pytest.raises(ZeroDivisionError), gg.capture(captured) as graph:
        array.fill(1)
        1 / 0  # noqa: B018
    with pytest.raises(gg.InvalidArgumentError, match="Graph is closed"):
        graph.launch()
    array.fill(4)  # runs
    device.synchronize()
    with gg.capture(captured) as graph:
        array.fill(5)
    graph.launch(captured)
    captured.synchronize()
    assert (array.get() == 5).all()


def test_a_refused_operation_leaves_the_capture_valid_if_it_is_caught(device, captured):
    array = zeros(device)
    with gg.capture(captured) as graph:
        with pytest.raises(gg.UnsupportedError, match="stream is capturing"):
            array.get()
        array.fill(7)
    graph.launch(captured)
    captured.synchronize()
    assert (array.get() == 7).all()


def test_a_synchronize_of_the_captured_stream_is_an_error_of_the_block(device, captured):
    array = zeros(device)
    with pytest.raises(gg.UnsupportedError, match="stream is capturing"), gg.capture(captured):
        array.fill(1)
        captured.synchronize()
    assert captured.done


def test_a_block_that_is_abandoned_ends_its_capture(device, captured):
    array = zeros(device)
    block = gg.capture(captured)
    graph = block.__enter__()
    array.fill(1)
    assert "being captured" in repr(graph)
    del block
    gc.collect()
    assert repr(graph) == "<gpuglue.Graph closed>"
    array.fill(2)
    captured.synchronize()
    assert (array.get() == 2).all()


def test_a_function_cannot_be_captured_by_a_decorator(captured):
    """Each call would record the function, drop the graph and run nothing."""
    with pytest.raises(TypeError, match="not callable"):

        @gg.capture(captured)
        def work():
            pass


def test_a_block_may_be_entered_again(device, captured):
    array, block = zeros(device), gg.capture(captured)
    for value in (1, 2):
        with block as graph:
            array.fill(value)
        graph.launch(captured)
        captured.synchronize()
        assert (array.get() == value).all()


def test_the_repr_of_a_stream_does_not_disturb_its_capture(device, captured):
    """As a read of the handle would, after which a failed capture cannot replace the stream on hip."""
    needs(device, "event_native")
    assert repr(captured) == f"<gpuglue.Stream on {device.backend}:0>"
    other, event = gg.Stream(device, nonblocking=True), gg.Event()
    event.record(other).handle  # noqa: B018 -- other code may have recorded it, so the driver is asked
    with pytest.raises(gg.UnsupportedError), gg.capture(captured):
        repr(captured)
        captured.wait(event)
    assert captured.done


def test_a_graph_is_used_after_its_block(device, captured):
    with gg.capture(captured) as graph:
        assert graph.device is device
        for call in (graph.launch, lambda: graph.update(graph)):
            with pytest.raises(gg.InvalidArgumentError, match="after the with-block"):
                call()
    graph.launch()
    assert graph.device is device and repr(graph) == f"<gpuglue.Graph on {device.backend}:0>"


def test_a_graph_that_is_closed_in_its_block_is_an_error_at_the_end(device, captured):
    with pytest.raises(gg.InvalidArgumentError, match="Graph is closed"), gg.capture(captured) as graph:
        graph.close()
    assert captured.done


def test_closing_the_stream_in_the_block_does_not_end_the_capture(device):
    needs(device, "capture_begin")
    array, stream = zeros(device), gg.Stream(device, nonblocking=True)
    with gg.capture(stream) as graph:
        array.fill(9)
        stream.close()
    graph.launch()
    assert (array.get() == 9).all()


@pytest.mark.parametrize("dtype", ["int64", "float64", "complex128"])
def test_elements_of_more_than_four_bytes_are_filled_in_a_graph(device, captured, dtype):
    array = gg.zeros((6, 5), dtype, device=device)
    device.synchronize()
    with gg.capture(captured) as graph:
        array[:, 1:3].fill(3)
        copy = gg.full(7, 1.5, dtype)
    graph.launch(captured)
    captured.synchronize()
    expected = np.zeros((6, 5), dtype)
    expected[:, 1:3] = 3
    assert (array.get() == expected).all() and (copy.get() == np.full(7, 1.5, dtype)).all()


# ---- what is refused ----


def test_calls_that_would_invalidate_the_capture_are_refused_and_leave_it_valid(device, captured):
    array, outside = zeros(device), gg.Stream(device, nonblocking=True)
    event = outside.record()
    with gg.capture(captured) as graph:
        array.fill(6)
        for call in (
            lambda: captured.done,
            captured.synchronize,
            device.synchronize,
            lambda: captured.add_callback(lambda: None),
            lambda: captured.wait(outside),
            lambda: captured.wait(event),
        ):
            with pytest.raises(gg.UnsupportedError, match="stream is capturing"):
                call()
        assert "GPUArray" in repr(array)
    graph.launch()
    assert (array.get() == 6).all()


def test_views_of_the_host_are_refused_for_an_array_that_captured_work_uses(device, captured):
    array, other = (gg.asarray(gg.alloc_pinned(16, device)) for _ in range(2))
    array.fill(1)
    other.fill(2)
    source = gg.full(12, 3, "uint8", device=device)
    device.synchronize()
    read = []
    with gg.capture(captured) as graph:
        assert bytes(memoryview(array)) == bytes([1] * 16)
        array[4:].set_async(source)
        for view in (memoryview, np.asarray, lambda a: a.__array_interface__):
            with pytest.raises(gg.UnsupportedError, match="what is captured does not run yet"):
                view(array)
        assert bytes(memoryview(other)) == bytes([2] * 16)
        thread = threading.Thread(target=lambda: read.append(bytes(memoryview(array))))  # it is in no capture
        thread.start()
        thread.join()
    assert read == [bytes([1] * 16)] == [bytes(memoryview(array))]
    graph.launch()
    assert bytes(memoryview(array)) == bytes([1] * 4 + [3] * 12)


def test_dlpack_for_the_host_is_refused_for_an_array_that_captured_work_uses(known_device, captured):
    array = gg.asarray(gg.alloc_pinned(16, known_device))
    with gg.capture(captured) as graph:
        array.set_async(gg.ones(16, "uint8", device=known_device))
        with pytest.raises(gg.UnsupportedError, match="what is captured does not run yet"):
            np.from_dlpack(array)
    graph.launch()
    captured.synchronize()
    assert bytes(memoryview(array)) == bytes([1] * 16)


def test_an_assignment_that_a_capture_refuses_raises_its_error_also_as_a_function(device, captured):
    array = zeros(device)
    with gg.capture(captured):
        for assign in (operator.setitem, type(array).__setitem__):
            with pytest.raises(gg.UnsupportedError, match="captur"):
                assign(array, slice(None), np.ones(16, array.dtype))


def test_a_stream_of_another_library_may_be_named_in_the_block_too(device, captured):
    """Each argument that is not a Stream makes another handle of the same stream."""
    array = zeros(device)
    with gg.capture(captured) as graph:
        array.fill(4, stream=captured.handle)
    graph.launch(captured)
    other = gg.Stream(device, nonblocking=True)
    with other:
        assert (array.get() == 4).all()


def test_a_device_without_graphs_does_not_run_the_block(device, stream):
    if device.supports("capture_begin"):
        pytest.skip("the device has graphs")
    ran = []
    with pytest.raises(gg.UnsupportedError, match="capture_begin"), gg.capture(stream):
        ran.append(1)
    assert not ran and stream.done


def test_the_arguments_of_a_capture_are_checked(device, captured):
    with pytest.raises(gg.InvalidArgumentError, match="default stream cannot be captured"), gg.capture(device.default_stream):
        pass
    with pytest.raises(TypeError), gg.capture(None):
        pass
    with pytest.raises(gg.InvalidArgumentError, match="end that capture first"), gg.capture(captured), gg.capture(captured):
        pass
    closed = gg.Stream(device)
    closed.close()
    with pytest.raises(gg.InvalidArgumentError, match="Stream is closed"), gg.capture(closed):
        pass
    assert captured.done


def test_a_graph_is_made_by_capture_only():
    with pytest.raises(TypeError, match="Graph"):
        gg.Graph()


def test_a_launch_takes_streams_of_its_device(device, captured, second_device):
    graph = filling(captured, zeros(device), 1)
    with pytest.raises(gg.InvalidArgumentError, match="stream belongs to"):
        graph.launch(gg.Stream(second_device))


# ---- threads and the end of the process ----


def test_threads_launch_the_same_graph(device, captured):
    array = zeros(device)
    graph, failures = filling(captured, array, 2), []

    def launch():
        try:
            with gg.Stream(device, nonblocking=True) as mine:
                for _ in range(50):
                    graph.launch(mine)
                mine.synchronize()
        except gg.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and (array.get() == 2).all()


@pytest.mark.parametrize("last", ["graph.launch(stream)", "block = gg.capture(stream); block.__enter__()"])
def test_graphs_and_captures_may_be_left_to_the_end_of_the_process(device, captured, run_python, last):
    code = f"""
import numpy as np, gpuglue as gg
stream, array = gg.Stream(nonblocking=True), gg.zeros(1000, np.float32)
gg.synchronize()
with gg.capture(stream) as graph:
    array.fill(1)
{last}
"""
    assert succeeds(run_python(code)) == ""
