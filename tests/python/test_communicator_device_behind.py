"""What waits behind operations of a communicator that end without a result."""

import pytest
from test_communicator_device import native, native_simulated, ranks_pass

__all__ = ["native", "native_simulated"]


# Each of these needs the result of an operation that ends without one, queued on the stream a.
BEHIND_FAILURE = """
import asyncio
comm = connect()
async def wait_for(what):
    await what
with comm.device:
    x, y, pinned, a, b = gg.ones(1000), gg.empty(1000), gg.empty_pinned(1000), gg.Stream(), gg.Stream()
    comm.all_reduce(x, stream=a)
    gg.synchronize()
    comm.barrier()
    if rank == 0:
        try:
            comm.all_reduce(x, stream=a)  # as above
            event = a.record()
            {wait}
        except gg.CommunicatorError as error:
            assert error.ranks == (1,) and "closed" in str(error), str(error)
        else:
            sys.exit("no error")
        for stream in (a, b, gg.current_stream()):  # all have had the error, or none of it: later work is not concerned
            try:
                stream.synchronize()
            except gg.CommunicatorError:
                pass
            z = gg.ones(3, stream=stream)
            stream.record().synchronize()
            assert z.get(stream=stream).tolist() == [1] * 3
comm.close()
"""
CLOSED = "c = gg.Stream(); c.wait(a); gg.copy(y, x, stream=c); late = c.record(); c.close(); "
AFTER_END = "time.sleep(1); gg.Stream(); "  # a new stream lets gpuglue destroy those that were closed
WAITS = {
    "a read through another stream": "x.get()",
    "a copy through another stream": "gg.copy(y, x); y.get()",
    "a copy to pinned memory": "x.get_async(pinned); gg.current_stream().synchronize()",
    "a stream behind it": "b.wait(a); b.synchronize()",
    "a stream behind another": "b.wait(a); c = gg.Stream(); c.wait(b); c.synchronize()",
    "a stream behind its event": "b.wait(event); x.get(stream=b)",
    "its event": "event.synchronize()",
    "an event of a stream behind it": "b.wait(a); b.record().synchronize()",
    "an event of a closed stream": CLOSED + "late.synchronize()",
    "an await of its event": "asyncio.run(wait_for(event))",
    "an await of its stream": "asyncio.run(wait_for(a.completion()))",
    "a callback": "a.add_callback(lambda: os._exit(1)); a.synchronize()",
    "a read after its end": "time.sleep(1); x.get()",
    "a read of what a closed stream has copied, after its end": CLOSED + AFTER_END + "y.get()",
    "an export of what a closed stream has copied, after its end": CLOSED + AFTER_END + "y.__dlpack__()",
    "a wait after its end": "time.sleep(1); b.wait(a); b.synchronize()",
    "an event after its end": "time.sleep(1); a.record().synchronize()",
    "a stream behind an event after its end": "time.sleep(1); b.wait(a.record()); b.synchronize()",
    "a query of an event after its end": "time.sleep(1); late = a.record()\n            while not late.done: time.sleep(0.01)",
    "an await after its end": "time.sleep(1); asyncio.run(wait_for(a.completion()))",
    "a callback after its end": "time.sleep(1); a.add_callback(lambda: os._exit(1)); a.synchronize()",
    "a wait for its event after its end": "time.sleep(1); b.wait(event); b.synchronize()",
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_whatever_needs_a_result_that_never_came_is_an_error(native, wait):
    ranks_pass(BEHIND_FAILURE.format(wait=wait), 2)


OF_GRAPH = """
comm = connect()
with comm.device:
    x, y, z, w, a = gg.ones(1000), gg.empty(1000), gg.ones(1000), gg.ones(1000), gg.Stream()
    comm.all_reduce(x, stream=a)
    gg.synchronize()
    with gg.capture(a) as graph:
        comm.all_reduce(x, stream=a)
        gg.copy(y, x, stream=a)
        gg.copy(w, x, stream=a)
    graph.launch(a)
    a.synchronize()
    assert y.get().tolist() == [4] * 1000
    comm.barrier()
    if rank == 1:
        os._exit(0)
    graph.launch(a)
    fails(a.synchronize, "ended without closing")  # as by another thread, which shares the stream
    gg.copy(w, z)  # w is written again
    for array in (x, y):
        fails(array.get, "ended without closing")
        array.get()  # it has been reported
    assert w.get().tolist() == z.get().tolist() == [1] * 1000
    graph.close()
comm.close()
"""


def test_each_array_of_a_graph_that_ended_without_a_result_has_the_error(native):
    """One thread waits for the stream and gets it; another one, which reads an array, got wrong data."""
    ranks_pass(OF_GRAPH, 2)


TWO = """
comm, other = connect(), connect(id="other")
with comm.device:
    x, y, w, a, b, c = gg.ones(1000), gg.empty(1000), gg.ones(1000), gg.Stream(), gg.Stream(), gg.Stream()
    comm.all_reduce(x, stream=a)
    other.all_reduce(w, stream=c)
    gg.synchronize()
    if rank == 0:  # b is behind unfinished operations of both
        comm.all_reduce(x, stream=a)
        other.all_reduce(w, stream=c)
        b.wait(a)
        gg.copy(y, x, stream=b)
        b.wait(c)
    other.barrier()
    if rank == 1:
        comm.close()
    for number, stream in enumerate((a, b, c)[: 2 if rank == 0 else 0]):  # a ends when the other streams have the error
        if number == 1:
            other.barrier()
        fails(stream.synchronize, "closed")
    if rank == 1:
        other.barrier()
        other.all_reduce(w, stream=c)
    c.synchronize()
    assert w.get().tolist() == [4] * 1000
"""


def test_a_stream_behind_two_communicators_gets_the_failure_of_either(native):
    ranks_pass(TWO, 2)


MANY_COMMUNICATORS = """
def connected(number):
    return connect(id=str(number))
comms = [connected(0)]
for number in range({closed}):
    connected(number).close()
comms += map(connected, range(1, {alive}))
helper, failing = connect(id="helper"), {failing}
with helper.device:
    arrays, streams = [gg.ones(10) for _ in comms], [gg.Stream(nonblocking=True) for _ in comms]
    work = list(zip(comms, arrays, streams))
    gg.synchronize()
    for comm, array, stream in work:
        comm.all_reduce(array, stream=stream)
    gg.synchronize()
    helper.barrier()
    behind = []
    if rank == 0:
        for comm, array, stream in work:
            comm.all_reduce(array, stream=stream)
        for first, second in zip(streams, streams[1:]):
            behind.append(gg.Stream(nonblocking=True))
            behind[-1].wait(first)
            behind[-1].wait(second)
    helper.barrier()
    if rank == 1:
        comms[failing].close()
    else:
        fails(streams[failing].synchronize, "closed")
    helper.barrier()
    del work[failing]
    for comm, array, stream in work if rank == 1 else ():
        comm.all_reduce(array, stream=stream)
    for comm, array, stream in work:
        stream.record().synchronize()
        stream.synchronize()
        assert array.get(stream=stream).tolist() == [4] * 10
    for number, stream in enumerate(behind):
        if failing in (number, number + 1):
            fails(stream.synchronize, "closed")
        else:
            stream.synchronize()
    if rank == 0:
        fails(arrays[failing].get, "closed")
    helper.barrier()
"""


@pytest.mark.parametrize("alive, closed, failing", [(66, 0, 0), (130, 0, 40), (2, 63, 0)], ids=["66", "130", "2 after 63 closed"])
def test_the_failure_of_one_of_many_communicators_is_not_that_of_another(native_simulated, alive, closed, failing):
    ranks_pass(MANY_COMMUNICATORS.format(alive=alive, closed=closed, failing=failing), 2)


TWO_STREAMS = """
comm = connect()
with comm.device:
    x, y, a, b = gg.ones(1000), gg.ones(1000), gg.Stream(), gg.Stream()
    for _ in range(50):
        comm.all_reduce(x, op="max", stream=a)
        comm.all_reduce(y, op="max", stream=b)
    gg.synchronize()
"""


def test_operations_on_two_streams_of_one_communicator_run_in_the_order_of_the_calls(native):
    ranks_pass(TWO_STREAMS, 2)


ONE_STREAM = """
comm, other, third = connect(), connect(id="other"), connect(id="third")
with comm.device:
    x, w, v, a, b = gg.ones(1000), gg.ones(1000), gg.ones(1000), gg.Stream(), gg.Stream()
    comm.all_reduce(x, stream=a)
    other.all_reduce(w, stream=a)
    comm.all_reduce(v, stream=b)
    gg.synchronize()
    third.barrier()
    if rank == 0:  # on each stream work of the one communicator, then of the other, which fails
        comm.all_reduce(x, stream=a)
        before = a.record()
        other.all_reduce(w, stream=a)
        behind = a.record()
        comm.all_reduce(v, stream=b)
        between = b.record()
        b.wait(a)
        last = b.record()
    third.barrier()
    if rank == 1:
        other.close()
        third.barrier()
        comm.all_reduce(x, stream=a)
        comm.all_reduce(v, stream=b)
    else:
        fails(other.barrier)
        time.sleep(0.5)  # most likely the work of other has ended when that of comm does
        third.barrier()
        for event in before, between:
            event.synchronize()
            assert event.done
        for event in behind, last:
            fails(event.synchronize, "closed")
        for wait in a.synchronize, b.synchronize, w.get:
            fails(wait, "closed")
    assert x.get(stream=a).tolist() == v.get(stream=b).tolist() == [4] * 1000
    third.barrier()
"""


def test_an_event_or_array_does_not_have_the_later_failure_of_another_communicator(native):
    ranks_pass(ONE_STREAM, 2)


DONE_BEFORE = """
comm = connect()
with comm.device:
    x, done, a = gg.ones(1000), gg.empty(1000), gg.Stream()
    comm.all_reduce(x, stream=a)
    gg.copy(done, x, stream=a)
    a.synchronize()
    comm.barrier()
    if rank == 0:
        event = a.record()
        comm.all_reduce(x, stream=a)
    comm.barrier()
    if rank == 0:
        try:
            a.record().synchronize()
        except gg.CommunicatorError:
            pass
        event.synchronize()  # not concerned
        assert event.done and done.get().tolist() == [2] * 1000  # nor is this
        fails(x.get)
comm.close()
"""


def test_an_array_or_event_whose_work_was_done_before_the_failure_has_no_error(native):
    ranks_pass(DONE_BEFORE, 2)


FOREIGN = """
import ctypes
comm, other = connect(), connect(id="other")
driver = ctypes.CDLL(os.environ[f"GPUGLUE_{backend.upper()}_LIBRARY"])
theirs = ctypes.c_void_p()
if backend == "cuda":
    context = ctypes.c_void_p()
    assert driver.cuInit(0) == driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), rank) == driver.cuCtxSetCurrent(context) == 0
    assert driver.cuStreamCreate(ctypes.byref(theirs), 1) == 0
    synchronize = driver.cuStreamSynchronize
else:
    assert driver.hipSetDevice(rank) == driver.hipStreamCreateWithFlags(ctypes.byref(theirs), 1) == 0
    synchronize = driver.hipStreamSynchronize
with comm.device:
    x, a = gg.ones(1000), gg.Stream()
    comm.all_reduce(x, stream=a)
    a.synchronize()
    if rank == 0:
        comm.all_reduce(x, stream=a)
        event = a.record()
        x.__dlpack__(stream=theirs.value)  # as another package takes it
    other.barrier()
    if rank == 1:
        comm.close()
    else:
        assert synchronize(theirs) == 0
        fails(event.synchronize)
"""


def test_streams_of_other_code_do_not_learn_of_a_failure_which_gpuglues_event_reports(native_simulated):
    ranks_pass(FOREIGN, 2)


CLOSED_STREAM = """
import gc
comm = connect()
with comm.device:
    x, a, b = gg.ones(1000), gg.Stream(nonblocking=True), gg.Stream()
    comm.all_reduce(x, stream=a)
    gg.synchronize()
    comm.barrier()
    if rank == 0:
        comm.all_reduce(x, stream=a)
    comm.barrier()
    if rank == 0:
        event = a.record()
        while True:
            try:
                if event.done:
                    sys.exit("no error of the event")
            except gg.CommunicatorError:
                break
        del a
        gc.collect()
        for _ in range(20):  # until the stream of the driver is destroyed
            gg.trim()
            b.synchronize()
        fails(x.get)
comm.close()
"""


def test_an_array_has_the_error_after_the_stream_of_the_failed_operation_was_closed(native):
    ranks_pass(CLOSED_STREAM, 2)


MANY = """
comm = connect()
with comm.device:
    x, a, b = gg.ones(1000), gg.Stream(nonblocking=True), gg.Stream(nonblocking=True)
    many = [gg.Stream(nonblocking=True) for _ in range(900)]
    first, late, another = many[-3:]
    comm.all_reduce(x, stream=a)
    gg.synchronize()
    comm.barrier()
    if rank == 0:
        comm.all_reduce(x, stream=a)
        event = a.record()
        for stream in b, *many[:-2]:
            stream.wait(a)
        comm.barrier()
        try:
            while True:
                another.wait(first)  # which gets the error before most others
        except gg.CommunicatorError:
            pass
        fails(lambda: (late.wait(b), late.synchronize()))
        fails(event.synchronize)
    else:
        comm.barrier()
comm.close()
"""


def test_a_stream_that_waits_while_the_failure_is_reported_to_many_others_gets_it_too(native):
    ranks_pass(MANY, 2)


RING = """
comm = connect()
with comm.device:
    x, a, b = gg.ones(1000), gg.Stream(nonblocking=True), gg.Stream(nonblocking=True)
    one, other, host = gg.zeros(4000, "u1"), gg.zeros(4000, "u1"), np.arange(4000, dtype="u1")
    comm.all_reduce(x, stream=a)
    gg.synchronize()
    comm.barrier()
    if rank == 0:
        comm.all_reduce(x, stream=a)
    comm.barrier()
    if rank == 0:
        for _ in range(32):  # then no pinned memory is left for small copies
            one.set(host, a)
        other.set(host, b)
        assert (other.get(stream=b) == host).all()
        fails(a.synchronize)
comm.close()
"""


def test_a_copy_that_waits_for_pinned_memory_leaves_the_error_to_the_stream_of_the_operation(native):
    ranks_pass(RING, 2)


OTHER_CODE = """
import ctypes
library, prefix, instantiate = {
    "cuda": ("libcuda.so.1", "cu", "GraphInstantiateWithFlags"), "hip": ("libamdhip64.so", "hip", "GraphInstantiate")}[backend]
library = ctypes.CDLL(os.environ.get(f"GPUGLUE_{backend.upper()}_LIBRARY", library))
def call(name, *args):
    assert getattr(library, prefix + name)(*args) == 0, name
comm = connect()
with comm.device:
    x, a, b = gg.ones(1000), gg.Stream(nonblocking=True), gg.Stream(nonblocking=True)
    comm.all_reduce(x, stream=a)
    gg.synchronize()
    handle, graph, ready = ctypes.c_void_p(a.handle), ctypes.c_void_p(), ctypes.c_void_p()
    call("StreamBeginCapture" + "_v2" * (backend == "cuda"), handle, 2)
    comm.all_reduce(x, stream=a)
    call("StreamEndCapture", handle, ctypes.byref(graph))
    call(instantiate, ctypes.byref(ready), graph, *([ctypes.c_uint64(0)] if backend == "cuda" else [None, None, ctypes.c_size_t(0)]))
    comm.barrier()
    if rank == 0:
        call("GraphLaunch", ready, handle)
        event = a.record()
        b.wait(a)
        for what in (event, b.record(), b):
            fails(what.synchronize)
os._exit(0)  # the library would wait for the graph
"""


def test_what_is_behind_a_graph_of_other_code_is_an_error_too(native):
    ranks_pass(OTHER_CODE, 2)


UNENDED = """
    try:
        with gg.capture(a):
            comm.all_reduce(x, stream=a)
    except gg.Error:
        pass
    else:
        sys.exit("no error")
"""


def test_a_capture_that_the_driver_continues_after_a_failed_end_is_of_other_code(native_simulated):
    """The communicator counted in freed memory."""
    begin = OTHER_CODE[OTHER_CODE.index('    call("StreamBeginCapture"'):OTHER_CODE.index("    comm.all_reduce(x, stream=a)\n    call(")]
    twice = ",".join(f"{prefix}StreamEndCapture:{nth}=1" for prefix in ("cu", "hip") for nth in (1, 2))
    ranks_pass(OTHER_CODE.replace(begin, UNENDED), 2, GPUGLUE_SIM_FAIL=twice)


# The work of the borrowed communicator is on the stream a, and does not begin before the gate opens.
BEFORE_BORROWED = """
from conftest import Gate, gate_library
def aborted(wait):
    try:
        wait()
    except gg.CommunicatorError as error:
        assert "aborted" in str(error), str(error)
    else:
        sys.exit(f"no error: {wait}")
comm = connect()
with comm.device:
    borrowed = gg.Communicator.from_handle(comm.handle, comm.device)
    x, y, default, a, b = gg.ones(1000), gg.empty(1000), gg.current_stream(), gg.Stream(), gg.Stream()
    c = gg.Stream(nonblocking=True)
    borrowed.all_reduce(x, y, stream=a)
    gg.synchronize()
    gate = Gate(gate_library())
    for stream in HELD:
        gate.hold(stream)
    before = HELD[0].record()
    borrowed.all_reduce(x, y, stream=a)
    behind = [a.record(), default.record(), b.record()]  # the driver lets the default stream wait for a, and b for that
    c.wait(behind[1])
    borrowed.abort()
    aborted(behind[0].synchronize)
    assert not before.done
    for event in behind:
        aborted(event.synchronize)
        aborted(lambda: event.done)
    aborted(c.synchronize)
    for stream in (a, default, b):
        late = stream.record()
        aborted(late.synchronize)
    gate.open()
    before.synchronize()
    assert before.done
    borrowed.close()
"""


@pytest.mark.parametrize("held", ["a", "default", "b, a"])
def test_an_event_before_the_failed_work_of_a_borrowed_communicator_completes(native, held):
    """Work on its stream, on the default stream or on another stream comes before the failed work, which comes after the event."""
    ranks_pass(BEFORE_BORROWED.replace("HELD", f"({held},)"), 1)
