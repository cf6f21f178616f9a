"""Communicators with devices: what the timeout ends, and which rank it names."""

import pytest
from test_communicator_device import native, native_simulated, ranks_pass, ranks_pass_within

__all__ = ["native", "native_simulated"]


LATE_BESIDE_IDLE = """
comm = connect(timeout=LIMIT)
with comm.device:
    x, idle, busy = gg.ones(1000), gg.Stream(), gg.Stream()
    comm.all_reduce(x, stream=idle)
    idle.synchronize()
    if rank == 1:
        until_others_end()
        os._exit(0)
    comm.all_reduce(x, stream=busy)
    fails(busy.synchronize, "timeout")
"""


def test_the_timeout_holds_beside_streams_whose_work_is_complete(native):
    ranks_pass_within(LATE_BESIDE_IDLE, 2)


LATE_IN_FIRST_CALL = """
comm = connect(timeout=2)
with comm.device:
    x = gg.ones(1000)
    gg.synchronize()
    if rank == 1:
        until_others_end()
        os._exit(0)
    os.environ["GPUGLUE_SIM_NCCL_CONNECTS"] = "ncclAllReduce"
    try:
        comm.all_reduce(x)
    except gg.CommunicatorError as error:
        assert error.ranks == (1,) and "timeout" in str(error), str(error)
    else:
        sys.exit("no error")
"""


def test_a_rank_to_which_the_library_cannot_connect_is_named_after_the_timeout(native_simulated):
    ranks_pass(LATE_IN_FIRST_CALL, 2)


CONNECTS_LATER = """
import threading
comm = connect(timeout=2)
with comm.device:
    x = gg.ones(1000)
    try:
        comm.all_reduce(x)
    except gg.InvalidArgumentError:
        pass
    else:
        sys.exit("no error")
    os.environ["GPUGLUE_SIM_NCCL_CONNECTS"] = "ncclAllReduce"
    threading.Timer(30, os._exit, (1,)).start()  # also if the call does not return
    try:
        comm.all_reduce(x)
    except gg.CommunicatorError:
        os._exit(0)
os._exit(1)
"""


def test_the_timeout_holds_for_a_first_call_after_one_that_was_refused(native_simulated):
    ranks_pass(CONNECTS_LATER, 2, GPUGLUE_SIM_FAIL="ncclAllReduce:1=4")


LATE_MESSAGE = """
comm = connect(timeout=2)
with comm.device:
    x, y = gg.ones(1000), gg.ones(1000)
    gg.synchronize()
    if rank == 0:
        with comm.group():
            comm.recv(x, 1)
            comm.recv(y, 2)
        try:
            gg.current_stream().synchronize()
        except gg.CommunicatorError as error:
            assert error.ranks == (1,) and "timeout" in str(error), str(error)
        else:
            sys.exit("no error")
    elif rank == 2:
        comm.send(y, 0)
    if rank:
        until_others_end()
os._exit(0)
"""


def test_the_rank_whose_message_is_missing_is_named_after_the_timeout(native):
    ranks_pass(LATE_MESSAGE, 3)


REFUSED_LAUNCH = """
    other, stream = comm.split(0), gg.Stream()
    for each in (comm, other):
        each.all_reduce(x).get()
    with gg.capture(stream) as graph:
        other.all_reduce(x, stream=stream)
        comm.all_reduce(x, stream=stream)
    other.close()
    if rank == 0:
        try:
            graph.launch(stream)
        except gg.InvalidArgumentError as error:
            assert "closed" in str(error), str(error)
        else:
            sys.exit("no error")
"""
RAISES = """
    if rank == 0:
        try:
            {call}
        except gg.{error}:
            pass
        else:
            sys.exit("no error")
"""
FAILED_CALL = """
    comm.all_reduce(x).get()
""" + RAISES.format(call="comm.all_reduce(x)", error="InvalidArgumentError")
FAILED_LAUNCH = """
    stream = gg.Stream()
    comm.all_reduce(x).get()
    with gg.capture(stream) as graph:
        comm.all_reduce(x, stream=stream)
        with comm.group():
            comm.send(x, (rank + 1) % size)
            comm.recv(y, (rank - 1) % size)
""" + RAISES.format(call="graph.launch(stream)", error="OutOfMemoryError")
REFUSED_CAPTURE = """
    stream = gg.Stream()
    comm.all_reduce(x).get()
    if rank == 0:
        with gg.capture(stream) as graph:
            try:
                comm.all_reduce(x, stream=stream)
            except gg.InvalidArgumentError:
                gg.copy(y, x, stream=stream)
            else:
                sys.exit("no error")
        graph.launch(stream)
"""


def after(setup):
    head = "    gg.synchronize()\n"
    assert LATE_MESSAGE.count(head) == 1
    return LATE_MESSAGE.replace(head, setup + "    comm.barrier()\n" + head)


def test_a_launch_that_another_communicator_refuses_is_not_counted(native):
    """A rank that counts what it did not queue names ranks that have queued all."""
    ranks_pass(after(REFUSED_LAUNCH), 3)


def test_a_call_that_fails_is_not_counted(native_simulated):
    ranks_pass(after(FAILED_CALL), 3, GPUGLUE_SIM_FAIL="ncclAllReduce:2=4")


def test_a_launch_that_fails_is_not_counted(native_simulated):
    ranks_pass(after(FAILED_LAUNCH), 3, GPUGLUE_SIM_FAIL="cuGraphLaunch:1=2,hipGraphLaunch:1=2")


def test_a_captured_operation_that_was_refused_is_not_counted(native_simulated):
    ranks_pass(after(REFUSED_CAPTURE), 3, GPUGLUE_SIM_FAIL="ncclAllReduce:2=4")


LATE_REPLAY = """
comm = connect(timeout=LIMIT)
with comm.device:
    x, stream = gg.ones(1000), gg.Stream()
    comm.all_reduce(x).get()
    with gg.capture(stream) as graph:
        comm.all_reduce(x, stream=stream)
    comm.barrier()
    if rank == 1:
        until_others_end()
        os._exit(0)
    graph.launch(stream)
    fails(stream.synchronize, "timeout")
os._exit(0)
"""


def test_a_rank_that_does_not_launch_its_graph_is_named_after_the_timeout(native):
    ranks_pass_within(LATE_REPLAY, 2)


LONG_CLOSE = """
comm = connect(timeout=8)
with comm.device:
    arrays, streams = [gg.ones(10) for _ in range(2)], [gg.Stream() for _ in range(2)]
    gg.synchronize()
    comm.barrier()
    if rank == 0:
        for source, (array, stream) in enumerate(zip(arrays, streams), 1):
            comm.recv(array, source, stream=stream)
    else:
        time.sleep(5 * rank)
        comm.send(arrays[0], 0)
comm.close()
"""


def test_a_close_waits_longer_than_the_timeout_while_work_progresses(native):
    ranks_pass(LONG_CLOSE, 3)


BURST = """
comm = connect(timeout=4)
with comm.device:
    x, y = gg.ones(1000), gg.empty(1000)
    gg.synchronize()
    comm.barrier()
    for _ in range(7):
        if rank:
            time.sleep(PAUSE)  # rank 0 has queued all before the first is complete, and then waits for rank 1
        comm.all_reduce(x, y)
    assert y.get().tolist() == [2.0] * 1000
comm.close()
"""


@pytest.mark.parametrize(("work", "pause"), [(1000, 0), (0, 1)])
def test_operations_that_progress_are_not_late_together(native, work, pause):
    ranks_pass(BURST.replace("PAUSE", str(pause)), 2, GPUGLUE_SIM_NCCL_WORK=str(work))


STUCK_BESIDE_BUSY = """
comm = connect(timeout=3)
with comm.device:
    x, y, z, stuck, busy = gg.ones(10), gg.ones(10), gg.ones(10), gg.Stream(), gg.Stream()
    gg.synchronize()
    comm.barrier()
    if rank == 2:
        until_others_end()
        os._exit(0)
    if rank == 0:
        comm.recv(z, 2, stream=stuck)
    try:
        for _ in range(60):
            comm.send_recv(x, 1 - rank, y, 1 - rank, stream=busy)
            busy.synchronize()
            time.sleep(0.4)
    except gg.CommunicatorError as error:
        assert error.ranks == (2,) and "timeout" in str(error), str(error)
        os._exit(0)
sys.exit("no error")
"""


def test_the_timeout_holds_beside_streams_whose_work_progresses(native):
    ranks_pass(STUCK_BESIDE_BUSY, 3)


BORROWED = """
import asyncio
def fails(wait, ranks=(), words="within the timeout"):
    try:
        wait()
    except gg.CommunicatorError as error:
        assert error.ranks == ranks and words in str(error), (error.ranks, str(error))
    else:
        sys.exit(f"no error: {wait}")
comm = connect(timeout=60)
with comm.device:
    borrowed = gg.Communicator.from_handle(comm.handle, comm.device, timeout=LIMIT)
    x, busy = gg.ones(1000), gg.Stream()
    event = gg.Event()
    borrowed.all_reduce(x, stream=busy)
    busy.synchronize()
    if rank == 1:
        fails(comm.barrier, (0,), "aborted")
        os._exit(0)
    borrowed.all_reduce(x, stream=busy)
    event.record(busy)
    behind, other = gg.ones(3), gg.Stream(nonblocking=True)  # the driver lets the default stream wait for the other
    late, done = gg.current_stream().record(), other.record()
    async def wait_for(what):
        await what
    for wait in (gg.synchronize, busy.synchronize, busy.synchronize, event.synchronize, x.get, behind.get, lambda: borrowed.all_reduce(x), gg.synchronize,
                 late.synchronize, lambda: late.done, lambda: asyncio.run(wait_for(late))):
        fails(wait)
    done.synchronize()  # is behind nothing
    comm.abort()  # ends the work, too
    while not busy.done:
        time.sleep(0.01)
    x.fill(2, stream=busy)
    busy.synchronize()
    assert x.get().tolist() == [2] * 1000
    borrowed.close()
"""


def test_waits_for_a_borrowed_communicator_end_with_its_timeout_though_the_work_does_not(native):
    ranks_pass_within(BORROWED, 2)
