"""Communicators with devices: how they are closed, and how they fail."""

import json

import pytest
from test_communicator_device import native, native_simulated, ranks_pass, ranks_pass_within, run_on_devices

__all__ = ["native", "native_simulated"]


# ---- the end

UNFINISHED = """
comm = connect()
x = gg.ones(1000, device=comm.device)
gg.synchronize()
time.sleep(rank * 0.5)
comm.all_reduce(x)  # of rank 0 it is unfinished when the communicator is closed
comm.close()
del x
"""


def leaked(code, size, tmp_path, **variables):
    """The objects of the simulated driver that are alive at the end of each rank."""
    paths = [tmp_path / f"report-{rank}" for rank in range(size)]
    environments = {rank: {"GPUGLUE_SIM_DEVICES": "4", "GPUGLUE_SIM_REPORT": str(path), **variables} for rank, path in enumerate(paths)}
    results = run_on_devices(code, size, environments)
    assert [status for _, status in results] == [0] * size, results
    if not paths[0].exists():
        pytest.skip("only simulated drivers count their objects")
    return [{kind: count for kind, count in json.loads(path.read_text())["leaked"].items() if count} for path in paths]


def test_a_device_is_closed_after_a_communicator_that_was_closed_with_unfinished_work(native, tmp_path):
    assert leaked(UNFINISHED, 2, tmp_path) == [{}, {}]


GROUP_OPEN = """
comm = connect()
x, stream = gg.ones(1000, device=comm.device), gg.Stream(comm.device)
comm.all_reduce(x, stream=stream)
gg._core._comm_group_begin(comm._native.comm)
comm.all_reduce(x, stream=stream)
comm.close()
stream.synchronize()
del x, stream
"""


def test_a_communicator_that_is_closed_in_a_group_releases_what_the_group_uses(native, tmp_path):
    assert leaked(GROUP_OPEN, 2, tmp_path) == [{}, {}]


GRAPH_OPEN = """
comm = connect()
x, stream = gg.ones(1000, device=comm.device), gg.Stream(comm.device)
other = gg.Stream(comm.device)
gg.synchronize()
graphs = []
for _ in range(2):
    with gg.capture(stream) as graph:
        comm.all_reduce(x, stream=stream)
    graphs.append(graph)
    graph.launch(other)
other.synchronize()
comm.close()
for graph in graphs:
    try:
        graph.launch(other)
    except gg.InvalidArgumentError as error:
        assert "closed" in str(error), str(error)
    else:
        sys.exit("no error")
    graph.close()
del x, stream, other, graph, graphs
"""


def test_a_communicator_is_closed_while_graphs_with_its_work_are_open(native, tmp_path):
    assert leaked(GRAPH_OPEN, 2, tmp_path) == [{}, {}]


CLOSED_EARLY = """
comm = connect()
closed = os.environ["CLOSED"]
with comm.device:
    x, y = gg.ones(10), gg.ones(10)
    gg.synchronize()
    comm.barrier()
    if rank == 0:
        comm.send(x, 1)
        comm.close()
        open(closed, "w").close()
    elif rank == 1:
        with comm.group():
            comm.recv(x, 0)
            comm.recv(y, 2)
    else:
        time.sleep(5)
        assert not os.path.exists(closed)
        comm.send(x, 1)
comm.close()
"""


def test_a_close_waits_for_ranks_whose_work_is_unfinished(native, tmp_path):
    ranks_pass(CLOSED_EARLY, 3, CLOSED=str(tmp_path / "closed"))


CLOSED_DURING_CALL = """
comm = connect()
closed = os.environ["CLOSED"]
with comm.device:
    x = gg.ones(10)
    gg.synchronize()
    comm.barrier()
    if rank == 0:
        comm.send(x, 1)
        comm.close()
        open(closed, "w").close()
    else:
        os.environ["GPUGLUE_SIM_NCCL_SLOW"] = "ncclRecv:6000"
        comm.recv(x, 0)
        assert not os.path.exists(closed)
comm.close()
"""


def test_a_close_waits_for_ranks_that_are_in_a_call_of_the_library(native, tmp_path):
    ranks_pass(CLOSED_DURING_CALL, 2, CLOSED=str(tmp_path / "closed"))


LACKING_LAUNCH = """
comm = connect(timeout=None)
with comm.device:
    x, y, stream = gg.ones(1000), gg.ones(1000), gg.Stream()
    comm.all_reduce(x).get()
    with gg.capture(stream) as graph:
        {call}
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    if rank == 0:
        graph.launch(stream)
        fails(stream.synchronize, "rank 1 closed the communicator")
    graph.close()
comm.close()
"""


@pytest.mark.parametrize("call", ("comm.all_reduce(x, stream=stream)", "comm.send_recv(x, 1 - rank, y, 1 - rank, stream=stream)"))
def test_a_launch_that_needs_a_rank_which_has_closed_ends_with_an_error(native, call):
    """Both ranks waited for each other until the timeout."""
    ranks_pass(LACKING_LAUNCH.format(call=call), 2)


LACKING = """
comm = connect()
with comm.device:
    x = gg.ones(1000)
    comm.all_reduce(x).get()
    if rank == 0:
        try:
            {call}  # raises it if the failure is found before the call returns
            gg.synchronize()
        except gg.CommunicatorError as error:
            assert error.ranks == (1,) and "closed" in str(error), str(error)
        else:
            sys.exit("no error")
comm.close()
"""


@pytest.mark.parametrize("call", ["comm.all_reduce(x)", "comm.recv(x, 1)"])
def test_work_that_needs_a_rank_which_has_closed_ends_with_an_error(native, call):
    ranks_pass(LACKING.format(call=call), 2)


# The communicator has ended the work when the copy's words are written, which the host then finds at once.
SMALL_READ = """
comm = connect()
with comm.device:
    x = gg.ones(int(os.environ["COUNT"]))
    comm.all_reduce(x).get()
    if rank == 0:
        os.environ["GPUGLUE_SIM_PROMPT"] = "1"
        try:
            comm.all_reduce(x)
            got = x.get()
        except gg.CommunicatorError as error:
            assert error.ranks == (1,) and "closed" in str(error), str(error)
        else:
            sys.exit(f"no error: {got[:4]}")
comm.close()
"""


@pytest.mark.parametrize("count", [1, 1000, 12000])  # 8 bytes; within a slot of the ring; within two
def test_a_small_read_of_a_result_that_never_came_is_an_error(native, count):
    ranks_pass(SMALL_READ, 2, COUNT=str(count))


CLOSE_INTERRUPTED = """
import threading
comm = connect()
x = gg.ones(1000, device=comm.device)
comm.all_reduce(x).get()
comm.barrier()
if rank == 0:
    comm.all_reduce(x)  # rank 1 does not
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        comm.close()
    except KeyboardInterrupt:
        pass
    else:
        sys.exit("no error")
    time.sleep(5)
    os._exit(0)
try:
    comm.barrier()
except gg.CommunicatorError as error:
    assert error.ranks == (0,) and "closed" in str(error), str(error)
else:
    sys.exit("no error")
"""


def test_ctrl_c_during_a_close_still_closes_the_rank(native):
    ranks_pass(CLOSE_INTERRUPTED, 2)


# ---- failures

SLOW = """
import threading
comm = connect()
with comm.device:
    x = gg.ones(1000)
    comm.all_reduce(x).get()
    comm.barrier()
    os.environ["GPUGLUE_SIM_NCCL_SLOW"] = "ncclAllReduce"
    threading.Timer(0.1, comm.abort).start()
    try:
        while True:
            comm.all_reduce(x)
    except gg.CommunicatorError as error:
        assert "aborted" in str(error), str(error)
comm.close()
"""


def test_an_abort_waits_for_a_call_that_is_on_its_way(native):
    ranks_pass(SLOW, 2)


FULL = """
import ctypes
comm = connect()
with comm.device:
    x = gg.ones(1000)
    comm.all_reduce(x).get()
    comm.barrier()
    if rank == 1:
        time.sleep(1)  # meanwhile the other rank's queue of commands is full
        comm.abort()
    else:
        if "Simulated" in comm.device.name:
            driver = ctypes.CDLL(gg.backends()[0].library)
            driver.sim_room(300)
            driver.sim_room_blocks(1)
        try:
            while True:
                comm.all_reduce(x)
        except gg.CommunicatorError as error:
            assert "aborted" in str(error), str(error)
comm.close()
"""


def test_work_behind_a_full_queue_ends_when_another_rank_aborts(native):
    ranks_pass(FULL, 2)


STUCK = """
import threading
stuck, other = connect(), connect(id="other")
here = stuck.device
x, y = gg.ones(1000, device=here), gg.ones(1000, device=here)
gg.synchronize()
errors = []
def send():
    try:
        with here:
            stuck.send(x, 1)
    except gg.CommunicatorError as error:
        errors.append(error)
thread = threading.Thread(target=send)
if rank == 0:
    os.environ["GPUGLUE_SIM_NCCL_CONNECTS"] = "ncclSend"
    thread.start()
    time.sleep(0.5)
with here:
    other.all_reduce(y).get()
    with connect(id="third") as third:
        third.all_reduce(y).get()
assert not errors
other.barrier()
if rank == 0:
    stuck.abort()
    thread.join()
    assert errors
stuck.close()
other.close()
"""


def test_a_call_that_is_stuck_does_not_delay_other_communicators(native_simulated):
    ranks_pass(STUCK, 2)


UNFINISHED_STREAMS = """
comm = connect()
with comm.device:
    x, streams = gg.ones(1000), [gg.Stream() for _ in range(9)]
    arrays = [gg.ones(1000) for _ in streams]
    comm.all_reduce(x).get()
    with gg.capture(streams[0]) as graph:
        comm.all_reduce(x, stream=streams[0])
    gg.synchronize()
    comm.barrier()
    if rank == 0:
        for array, stream in zip(arrays[1:], streams[1:-1]):
            comm.all_reduce(array, stream=stream)
        graph.launch(streams[-1])
    comm.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    for number, stream in enumerate(streams[1:]):
        fails(stream.synchronize)
"""


def test_a_failure_is_reported_by_every_stream_with_unfinished_work_replays_too(native):
    results = run_on_devices(UNFINISHED_STREAMS, 2, dict.fromkeys(range(2), {"GPUGLUE_SIM_DEVICES": "4"}))
    assert [status for _, status in results] == [0, -9], results


KILLED = """
comm = connect()
with comm.device:
    x = gg.ones(1000)
    comm.all_reduce(x).get()
    comm.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        comm.all_reduce(x)
        gg.current_stream().synchronize()
    except gg.CommunicatorError as error:
        assert error.ranks == (1,) and "ended" in str(error), str(error)
    else:
        sys.exit("no error")
    try:
        comm.all_reduce(x)
    except gg.CommunicatorError as error:
        assert error.ranks == (1,)
    else:
        sys.exit("no error")
    comm.close()
    ranks = [0, 2]
    with gg.Communicator(ranks.index(rank), 2, f"127.0.0.1:{os.environ['GPUGLUE_COMM_PORT']}", id="again", device=comm.device, timeout=60) as again:
        assert again.transport == comm.transport
        assert again.all_reduce(gg.ones(3)).get().tolist() == [2.0] * 3
"""


def test_a_killed_rank_is_named_and_the_survivors_create_a_new_communicator(native):
    results = run_on_devices(KILLED, 3, dict.fromkeys(range(3), {"GPUGLUE_SIM_DEVICES": "4"}))
    assert [status for _, status in results] == [0, -9, 0], results


LATE = """
comm = connect(timeout=LIMIT)
with comm.device:
    x = gg.ones(1000)
    comm.all_reduce(x).get()
    if rank == 1:
        until_others_end()
        os._exit(0)
    try:
        comm.all_reduce(x)
        x.get()
    except gg.CommunicatorError as error:
        assert error.ranks == (1,) and "timeout" in str(error), str(error)
    else:
        sys.exit("no error")
"""


def test_a_rank_that_does_not_take_part_is_named_after_the_timeout(native):
    ranks_pass_within(LATE, 2)


ABORTED = """
comm = connect()
with comm.device:
    x = gg.ones(1000)
    comm.all_reduce(x).get()
    if rank == 1:
        comm.abort()
    try:
        for _ in range(100):
            comm.all_reduce(x)
            x.get()
    except gg.CommunicatorError as error:
        assert error.ranks == (1,) and "aborted" in str(error), str(error)
    else:
        sys.exit("no error")
comm.close()
"""


def test_an_abort_of_one_rank_ends_the_work_of_all(native):
    ranks_pass(ABORTED, 2)


RAISED = """
try:
    with connect() as comm, comm.device:
        x = gg.ones(1000)
        comm.all_reduce(x).get()
        if rank == 1:
            raise KeyError
        comm.all_reduce(x).get()
except gg.CommunicatorError as error:
    assert rank == 0 and error.ranks == (1,), str(error)
except KeyError:
    assert rank == 1
else:
    sys.exit("no error")
"""


def test_an_exception_in_the_block_of_one_rank_ends_the_work_of_all(native):
    ranks_pass(RAISED, 2)


INTERRUPTED = """
import threading
comm = connect()
with comm.device:
    x = gg.ones(1000)
    comm.barrier()
    if rank == 1:
        until_others_end()
        os._exit(0)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        comm.all_reduce(x)
        x.get()
    except KeyboardInterrupt:
        pass
    else:
        sys.exit("no error")
os._exit(0)
"""


def test_ctrl_c_ends_a_wait_for_a_rank(native):
    ranks_pass(INTERRUPTED, 2)


FIRST_INTERRUPTED = """
import threading
comm = connect()
with comm.device:
    x = gg.ones(1000)
    gg.synchronize()
    os.environ["GPUGLUE_SIM_NCCL_CONNECTS"] = "ncclAllReduce"
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    threading.Timer(30, os._exit, (1,)).start()  # also if the call does not return
    try:
        comm.all_reduce(x)
    except (KeyboardInterrupt, gg.CommunicatorError):  # the other rank may be first
        os._exit(0)
os._exit(1)
"""


def test_ctrl_c_ends_a_call_that_connects_to_a_rank(native_simulated):
    ranks_pass(FIRST_INTERRUPTED, 2)


GROUP_FAILS = """
comm = connect()
with comm.device:
    x = gg.ones(10)
    try:
        with comm.group():
            comm.all_reduce(x)
    except gg.CommunicatorError as error:
        assert "group" in str(error) or "ncclInternalError" in str(error), str(error)
    else:
        sys.exit("no error")
os._exit(0)
"""


def test_a_failure_of_a_group_is_reported_at_its_end(native_simulated):
    ranks_pass(GROUP_FAILS, 1, GPUGLUE_SIM_FAIL="ncclAllReduce:1")


@pytest.mark.parametrize("function", ["ncclAllReduce", "ncclGetUniqueId", "ncclGetVersion", "ncclCommDestroy", "ncclCommGetAsyncError"])
def test_a_failing_function_of_the_library_is_reported(native_simulated, function):
    code = """
try:
    comm = connect()
    with comm.device:
        for _ in range(3):
            comm.all_reduce(gg.ones(10)).get()
            time.sleep(0.2)
    comm.close()
    print("done")
except (gg.CommunicatorError, gg.DeviceError) as error:
    print("error", error)
"""
    outputs = ranks_pass(code, 2, GPUGLUE_SIM_FAIL=f"{function}:1", PYTHONWARNINGS="ignore")
    quiet = function in ("ncclCommDestroy", "ncclGetVersion", "ncclCommGetAsyncError")
    assert all("error" in output or quiet for output in outputs), outputs


ABORT_HANGS = """
import threading
threading.Timer(200, os._exit, (1,)).start()  # if it does not return
try:
    connect()
except gg.CommunicatorError as error:
    assert error.ranks == (1,) and "injected" in str(error), str(error)
else:
    sys.exit("no error")
os._exit(0)
"""


def test_a_failed_creation_ends_though_the_librarys_abort_does_not(native_simulated):
    variables = [{"GPUGLUE_SIM_DEVICES": "4", "GPUGLUE_SIM_HANG": "ncclCommAbort"},
                 {"GPUGLUE_SIM_DEVICES": "4", "GPUGLUE_SIM_FAIL": "ncclCommInitRank_joined:1"}]
    results = run_on_devices(ABORT_HANGS, 2, dict(enumerate(variables)))
    assert [status for _, status in results] == [0, 0], results
    assert "has not returned for 10 s" in results[0][0] and not results[1][0], results


HANGS_ONCE = """
comm = connect()
gg.ones(10, device=comm.device)
comm.abort()
comm.close()  # before the thread that watches the communicator has seen the abort, or after
print("closed")
os._exit(0)
"""


def test_an_abort_that_does_not_return_is_waited_for_once(native_simulated):
    (printed,) = ranks_pass(HANGS_ONCE, 1, GPUGLUE_SIM_HANG="ncclCommAbort")
    assert printed.count("has not returned for 10 s") == 1 and "closed" in printed, printed


ASYNCHRONOUS = """
comm = connect()
with comm.device:
    x = gg.ones(10)
    comm.recv(x, 1 - rank)  # what no rank sends
    for call in (gg.synchronize, lambda: comm.send(x, 1 - rank)):
        try:
            call()
        except gg.CommunicatorError as error:
            assert error.ranks == (1,), error.ranks
            assert "got an error" in str(error) and "internal error" in str(error) and "injected" in str(error), str(error)
        else:
            sys.exit("no error")
"""


def test_all_ranks_get_the_text_of_an_error_that_the_library_reports_later(native_simulated):
    variables = {rank: {"GPUGLUE_SIM_DEVICES": "4"} for rank in range(2)}
    variables[1]["GPUGLUE_SIM_FAIL"] = "ncclCommGetAsyncError:1"
    results = run_on_devices(ASYNCHRONOUS, 2, variables)
    assert [status for _, status in results] == [0, 0], results
