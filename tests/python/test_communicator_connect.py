"""Communicators with devices: which rank is named if the library does not connect the ranks, in the creation or in a first call."""

import pytest
from test_communicator_device import native, native_simulated, ranks_pass_within
from test_communicator_device_hang import CHECKS, HEAD, PIDS

__all__ = ["native", "native_simulated"]

CREATION = """
comm = connect()
with comm.device:
""" + PIDS + """
comm.close()
os.environ["GPUGLUE_SIM_HANG"] = "ncclCommInitRank" if rank in HANGS else ""
call = lambda: connect(timeout=LIMIT + rank / 2)
"""
CALLS = {
    "all_reduce": ("ncclAllReduce", "comm.all_reduce(y, stream=s)"),
    "send_recv": ("ncclSend", "comm.send_recv(y, (rank + 1) % size, z, (rank - 1) % size, stream=s)"),
}
FIRST_CALL = HEAD.replace("timeout=LIMIT", "timeout=LIMIT + rank / 2") + PIDS + """
    y, z = gg.ones(100000), gg.ones(100000)
    gg.synchronize()
    os.environ["GPUGLUE_SIM_NCCL_CONNECTS"] = "FUNCTION"
    comm.barrier()
call = lambda: CALL
"""
NOBODY = """
ends(call, [()], "the library did not connect the ranks within the timeout")
os._exit(0)
"""
# The last of the others lets the rank go on: it then has the same failure.
STOPS = """
from rank_failures import stop_in_call
if rank == STOPPED:
    stop_in_call()
named = "rank STOPPED (this rank)" if rank == STOPPED else "rank STOPPED"
try:
    ends(call, [(STOPPED,)], named + " did not take part within the timeout")
finally:
    if rank == (1 if STOPPED == 0 else 0):
        await_state(2, "Z")
        os.kill(pids[STOPPED], signal.SIGCONT)
os._exit(0)
"""
BORROWED = """
owner = connect()
with owner.device:
    comm, x = gg.Communicator.from_handle(owner.handle, owner.device, timeout=LIMIT), gg.ones(1000)
    gg.synchronize()
    os.environ["GPUGLUE_SIM_NCCL_CONNECTS"] = "ncclAllReduce"
    ends(lambda: comm.all_reduce(x), [()], "which did not is unknown")
os._exit(0)
"""


def first_call(name):
    function, call = CALLS[name]
    return FIRST_CALL.replace("FUNCTION", function).replace("CALL", call)


def stops(code, rank):
    return (code + STOPS).replace("HANGS", f"({rank},)").replace("STOPPED", str(rank))


@pytest.mark.parametrize("hangs", ["(0, 1, 2)", "(1,)"])
def test_no_rank_is_named_if_the_library_does_not_connect_them(native_simulated, hangs):
    ranks_pass_within(CHECKS + CREATION.replace("HANGS", hangs) + NOBODY, 3)


@pytest.mark.parametrize("name", CALLS)
def test_no_rank_is_named_if_the_library_does_not_connect_them_in_a_first_call(native_simulated, name):
    ranks_pass_within(first_call(name) + NOBODY, 3)


def test_a_rank_that_stops_while_the_library_connects_the_ranks_is_named(native_simulated):
    ranks_pass_within(stops(CHECKS + CREATION, 1), 3)


@pytest.mark.parametrize("name", CALLS)
def test_a_rank_that_stops_in_a_first_call_is_named(native_simulated, name):
    ranks_pass_within(stops(first_call(name), 1), 3)


def test_no_rank_is_named_in_a_first_call_of_a_borrowed_communicator(native_simulated):
    ranks_pass_within(CHECKS + BORROWED, 2)
