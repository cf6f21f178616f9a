"""RCCL's own library on AMD's runtime: order on streams, captures, groups, borrowed handles, and a rank that dies."""

import signal

from test_rccl import KEEPS_SCRATCH, outputs, ranks_end  # finds the next one

from test_communicator_device import BORROWED, GROUPS, ORDER  # isort: skip


def test_operations_are_ordered_as_all_others_and_can_be_captured():
    outputs(ORDER, 2, **KEEPS_SCRATCH)


def test_messages_of_a_group_progress_together():
    outputs(GROUPS, 2, **KEEPS_SCRATCH)


def test_a_handle_is_borrowed_from_other_code():
    outputs(BORROWED, 2, **KEEPS_SCRATCH)


KILLED = """
comm = connect(timeout=600)
x = gg.ones(1000, device=comm.device)
gg.synchronize()
comm.barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.all_reduce(x)
    gg.synchronize()
except gg.CommunicatorError as error:
    assert error.ranks == (1,), (error.ranks, str(error))
    print(error)
else:
    sys.exit("no error")
comm.close()
with gg.Communicator(0, 1, "127.0.0.1:0", device=comm.device, transport="rccl", timeout=600) as alone:
    print(alone.all_reduce(gg.full(3, 2.0, device=comm.device)).get())
"""


def test_a_killed_rank_is_named_and_the_other_creates_a_new_communicator():
    (survivor, status), (_, killed) = ranks_end(KILLED, 2, **KEEPS_SCRATCH)
    assert (status, killed) == (0, -signal.SIGKILL) and "rank 1" in survivor and "[2. 2. 2.]" in survivor, survivor
