"""Communicators with devices: which rank is named if a process stops or a device hangs after all ranks have queued the same."""

import itertools

import pytest
import rank_failures
from conftest import HANG, time_limits
from test_communicator_device import native, native_simulated, ranks_pass_within, transport

import gpuglue as gg

__all__ = ["native", "native_simulated", "transport"]

CHECKS = """
from rank_failures import hang_device
def failed(*error):
    sys.__excepthook__(*error)
    os._exit(1)  # a normal end would wait for the device
sys.excepthook = failed
def wait(polls=rank == 1):
    if not polls:
        s.synchronize()
    while polls:  # a wait for a device that hangs would not end
        with comm.group():
            time.sleep(0.05)
def ends(wait, named, words):  # wait() raises a failure that names one of these tuples of ranks
    try:
        wait()
    except gg.CommunicatorError as error:
        assert error.ranks in named and words in str(error), str(error)
    else:
        sys.exit("no error")
"""
HEAD = CHECKS + """
comm = connect(timeout=LIMIT)
with comm.device:
    x, s = gg.ones(1000), gg.Stream(nonblocking=True)
    gg.synchronize()
    comm.all_reduce(x, stream=s)
    s.synchronize()
    with gg.capture(s) as graph:
        comm.all_reduce(x, stream=s)
    comm.barrier()
"""
FAILS = """
    fails(wait, "rank 1 (this rank) did not take part" if rank == 1 else "a queued operation: rank 1 did not take part within the timeout")
os._exit(0)
"""
HANGS = """
    if rank == 1:
        hang_device(s, backend)
    for _ in range(COUNT):
        {operation}
"""
OPERATIONS = {"all_reduce": "comm.all_reduce(x, stream=s)", "graph": "graph.launch(s)"}


@pytest.fixture
def hangs(native):
    if not rank_failures.host_function(gg.current_device().backend):
        pytest.skip("this driver cannot queue a function of the host, which lets a device hang")


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("count", [1, 1000])
def test_the_rank_whose_device_hangs_is_named_within_the_timeout_of_one_operation(hangs, count, operation):
    ranks_pass_within(HEAD + HANGS.replace("COUNT", str(count)).format(operation=OPERATIONS[operation]) + FAILS, 3)


PIDS = """
    import numpy as np
    pids = comm.all_reduce(gg.to_gpu(np.eye(size, dtype=int)[rank] * os.getpid())).get().tolist()
    def await_state(of, states):
        while open(f"/proc/{pids[of]}/stat").read().rpartition(")")[2].split()[0] not in states:
            time.sleep(0.01)
"""
# The others queue their part once rank 1 has stopped. So it may have sent its part of the first operation, but not of the second.
STOPS = PIDS + """
    if rank != 1:
        await_state(1, "T")
    for _ in range(COUNT):
        comm.all_reduce(x, stream=s)
    if rank == 1:
        os.kill(pids[1], signal.SIGSTOP)
    elif rank == 0:
        try:
            fails(wait, "a queued operation: rank 1 did not take part within the timeout")
        finally:
            await_state(2, "Z")  # which has failed, too: rank 1 would complete its operation
            os.kill(pids[1], signal.SIGCONT)
        os._exit(0)
"""


@pytest.mark.parametrize("count", [2, 1000])
def test_a_rank_that_stops_after_it_has_queued_all_is_named(native_simulated, count):
    """The simulated device belongs to the process; a device would complete what is queued."""
    ranks_pass_within(HEAD + STOPS.replace("COUNT", str(count)) + FAILS, 3)


CONNECTS = """
    os.environ["GPUGLUE_SIM_NCCL_CONNECTS"] = "ncclSend"
    y = gg.ones(1000)
    gg.synchronize()
    if rank == 1:
        hang_device(s, backend)
    fails(lambda: comm.send_recv(x, (rank + 1) % size, y, (rank - 1) % size, stream=s), "did not take part within the timeout")
os._exit(0)
"""


def test_the_rank_whose_device_hangs_is_named_if_the_library_connects_the_ranks_meanwhile(hangs, native_simulated):
    ranks_pass_within(HEAD + CONNECTS, 3)


WAITS = """
    os.environ["GPUGLUE_SIM_NCCL_CONNECTS"] = "ncclAllReduce"
    ends(lambda: comm.all_reduce(x, stream=s), [()], "all ranks have queued their part")
os._exit(0)
"""


def test_a_call_of_the_library_that_waits_after_all_work_is_done_ends_with_the_timeout(native_simulated):
    ranks_pass_within(HEAD + WAITS, 3)


NOBODY = """
    os.environ["GPUGLUE_SIM_NCCL_WORK"] = "1000000"
    for _ in range(3):
        comm.all_reduce(x, stream=s)
    ends(lambda: wait(True), [()], "all ranks have queued their part")
os._exit(0)
"""


def test_no_rank_is_named_if_all_devices_have_begun(native_simulated):
    ranks_pass_within(HEAD + NOBODY, 3)


IN_THE_MIDDLE = """
    for at in range(200):
        if rank == 1 and at == 100:
            hang_device(s, backend)
        comm.all_reduce(x, stream=s)
    ends(wait, [(), (1,)], "within the timeout")
os._exit(0)
"""


def test_a_hang_behind_many_operations_does_not_add_up_their_timeouts(hangs):
    ranks_pass_within(HEAD + IN_THE_MIDDLE, 3)


ENDS = """
    y = gg.ones(1000)
    for hangs in (False, True):  # the library connects the ranks in the first call
        gg.synchronize()
        if hangs and rank == 1:
            hang_device(s, backend)
        {queue}
"""
QUEUED = {
    "graph": "graph.launch(s); graph.launch(s)",
    "group": "with comm.group(): comm.send(x, 1 - rank, stream=s); comm.recv(y, 1 - rank, stream=s)",
}


@pytest.mark.parametrize("queue", QUEUED.values(), ids=QUEUED)
def test_the_error_of_queued_work_does_not_name_another_call(hangs, queue):
    ranks_pass_within(HEAD + ENDS.format(queue=queue) + FAILS, 2)


@pytest.mark.parametrize("failure", rank_failures.DEVICE_FAILURES)
def test_every_other_rank_names_the_one_that_fails(request, transport, native_simulated, failure):
    if transport == "staged" and failure not in rank_failures.STAGED:
        pytest.skip("without a library nothing is queued")
    if failure.startswith("device"):
        request.getfixturevalue("hangs")
    text = "ended without closing the communicator" if failure == "killed" else "did not take part within the timeout"
    expected = dict.fromkeys((0, 2), ([1], True))
    for limit in [HANG] if failure == "killed" else itertools.islice(time_limits(), 3):  # all ranks have to start within it
        reports = rank_failures.run(failure, limit, transport if transport == "staged" else native_simulated)
        named = {rank: (report["ranks"], text in report["text"]) for rank, report in reports.items()}
        if named == expected:
            break
    assert named == expected, reports
