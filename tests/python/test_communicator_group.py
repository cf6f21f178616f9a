"""Communicator.group over each transport, with arrays of both kinds of memory; and the names in errors."""

import pytest
from test_communicator_device import native, ranks_pass, transport
from test_communicator_local import passes

import gpuglue as gg

__all__ = ["native", "transport"]

# A rank is a thread; `put` makes the arrays of a test, and `got` is what NumPy sees of them.
KINDS = """
def refused(call, *words, error=gg.InvalidArgumentError):
    try:
        call()
    except error as raised:
        assert all(word in str(raised) for word in words), raised
    else:
        sys.exit(f"no error: {words}")
def body(comm):
    with comm, comm.device:
        for put, got in ((np.array, np.array), (gg.to_gpu, lambda array: array.get())):
            program(comm, lambda *given: put(np.array(*given)), lambda array: got(array).tolist())
            comm.barrier()
"""
RUN = 'together(body, create(transport=os.environ["TRANSPORT"]))\n'


def passes_with(program, transport, ranks=2):
    passes(f"{KINDS}\ndef program(comm, put, got):\n    rank, size, other = comm.rank, comm.size, 1 - comm.rank\n{program}\n{RUN}", ranks, TRANSPORT=transport)


RING = """
    ahead, behind = put([rank] * 3), put([0] * 3)
    with comm.group():
        comm.send(ahead, (rank + 1) % size)
        assert comm.recv(behind, (rank - 1) % size) is behind
    assert got(behind) == [(rank - 1) % size] * 3
    with comm.group():
        comm.recv(behind, (rank + 1) % size)
        comm.send(ahead, (rank - 1) % size)
    assert got(behind) == [(rank + 1) % size] * 3
"""


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_messages_around_a_ring_need_no_order(transport, ranks):
    passes_with(RING, transport, ranks)


ALL_TO_ALL = """
    x, out = put([10 * rank + p for p in range(size)]), put([0] * size)
    with comm.group():
        for p in range(size):
            comm.send(x[p : p + 1], p)
            comm.recv(out[p : p + 1], p)
    assert got(out) == [10 * p + rank for p in range(size)]
"""


@pytest.mark.parametrize("ranks", [1, 4])
def test_each_rank_sends_to_all_and_to_itself(transport, ranks):
    passes_with(ALL_TO_ALL, transport, ranks)


MIXED = """
    first, second, third, total = put([0.0] * 2), put([0], "i4"), put([0.0] * 5), put([1.0] * 7)
    shifted = put([0.0])
    with comm.group():
        assert comm.all_reduce(total) is total
        if rank == 0:
            comm.send(put([3.0] * 2), 1)
            comm.send(put([4], "i4"), 1)
        elif rank == 1:
            comm.send(put([5.0] * 5), 2)
            comm.recv(first, 0)
            comm.recv(second, 0)
        else:
            comm.recv(third, 1)
        comm.send_recv(put([rank + 0.5]), (rank + 1) % 3, shifted, (rank + 2) % 3)
        assert comm.gather(put([rank]), gathered := put([0] * 3) if rank == 1 else None, root=1) is gathered
    assert (got(first), got(second)) == (([3.0] * 2, [4]) if rank == 1 else ([0.0] * 2, [0]))
    assert got(third) == ([5.0] * 5 if rank == 2 else [0.0] * 5)
    assert (got(total), got(shifted)) == ([3.0] * 7, [(rank + 2) % 3 + 0.5])
    assert rank != 1 or got(gathered) == [0, 1, 2]
"""


def test_a_group_has_several_messages_to_one_rank_and_collective_operations(transport):
    passes_with(MIXED, transport, 3)


DROPPED = """
    x, out = put([rank]), put([7])
    try:
        with comm.group():
            comm.send(x, other)
            comm.recv(out, other)
            comm.all_reduce(x, put([0]))
            raise KeyError
    except KeyError:
        pass
    comm.barrier()
    assert (got(x), got(out)) == ([rank], [7])
    assert got(comm.all_reduce(x)) == [1]
"""


def test_an_exception_in_a_group_drops_its_operations(transport):
    passes_with(DROPPED, transport)


DISAGREEING = """
    x, out, total = put([7, 8]), put([0, 0]), put([rank])
    def messages():
        with comm.group():
            if rank == 0:
                comm.send(x[:1], 1)
                comm.send(x, 2)
            else:
                comm.recv(out, 0)
            comm.all_reduce(total)
    if rank == 2:
        messages()
        assert got(out) == [7, 8]
    else:
        refused(messages, "rank 0" if rank else "rank 1")
    assert got(total) == [3]
    assert got(comm.all_reduce(put([1]))) == [3]
"""


@pytest.mark.parametrize("transport", ["host", "staged"])
def test_the_other_operations_of_a_group_run_if_two_ranks_disagree_on_a_message(transport):
    passes_with(DISAGREEING, transport, 3)


WRONG = """
    x, y = put([1, 2, 3, 4]), put([0, 0, 0, 0])
    def nested():
        with comm.group(), comm.group():
            pass
    refused(nested, "group: a group has begun, and is not ended")
    def grouped(first, second):
        with comm.group():
            first()
            second()
    refused(lambda: grouped(lambda: comm.send(x, other), lambda: comm.recv(x, other)), "send and recv of one group")
    refused(lambda: grouped(lambda: comm.all_reduce(x), lambda: comm.all_reduce(x[1:2], y[1:2])), "all_reduce and all_reduce of one group")
    refused(lambda: grouped(lambda: comm.recv(x[:2], other), lambda: comm.broadcast(x[1:], 0)), "recv and broadcast of one group")
    refused(lambda: grouped(lambda: comm.send(x[::2], other), lambda: None), "contiguous")
    grouped(lambda: comm.all_reduce(x[:2]), lambda: comm.all_reduce(x[2:], y[:2]))
    assert (got(x), got(y)) == ([2, 4, 3, 4], [6, 8, 0, 0])
"""


def test_operations_of_a_group_that_need_an_order_are_refused(transport):
    passes_with(WRONG, transport)


CLOSED = """
def body(comm):
    with comm.device:
        def closes():
            with comm.group():
                comm.send(gg.ones(3), 1 - comm.rank)
                comm.close()
        refused(closes, "closed in its group")
        refused(comm.group, "closed")
"""


def test_a_communicator_that_is_closed_in_its_group_is_named(transport):
    passes(KINDS + CLOSED + RUN, 2, TRANSPORT=transport)


KEPT = """
kept = []
def body(comm):
    if comm.rank == 1:
        try:
            with comm.group():
                raise KeyError
        except KeyError as error:
            kept.append(error)
    else:
        refused(comm.barrier, "rank 1 closed the communicator", error=gg.CommunicatorError)
    comm.close()
"""


def test_an_exception_of_a_group_that_is_kept_does_not_keep_the_rank_open(transport):
    passes(KINDS + KEPT + RUN, 2, TRANSPORT=transport)


# ---- the names in errors


def test_errors_of_the_creation_name_what_python_calls(device):
    with pytest.raises(gg.InvalidArgumentError, match=r"^Communicator: rank is 5, expected 0 to 1$"):
        gg.Communicator(5, 2, "127.0.0.1:1")
    with pytest.raises(gg.UnsupportedError, match=r"^Communicator: the transport 'rccl' cannot be used"):
        gg.Communicator(0, 1, device="host:0", transport="rccl")
    with pytest.raises(gg.InvalidArgumentError, match=r"^from_devices: size is 257, expected 1 to 256$"):
        gg.Communicator.from_devices(["host:0"] * 257)


DISAGREE = """
    refused(lambda: comm.all_reduce(np.ones(2 + 2 * rank, "f4" if rank else "f8"), op="min" if rank else "sum"),
            "rank 0 calls all_reduce of 16 bytes of '<f8', 'sum' of float64, rank 1 calls all_reduce of 16 bytes of '<f4', 'min' of float32;")
    refused(lambda: comm.broadcast(np.ones(1, "i8"), rank), "rank 0 calls broadcast of 8 bytes of '<i8', root 0, rank 1", "root 1;")
"""


def test_a_disagreement_names_types_and_operators():
    passes_with(DISAGREE, "host")


LIBRARY = """
    refused(lambda: comm.all_reduce(gg.ones(3, "i2")), "all_reduce: the transport", "has no 'sum' of int16; convert the elements, or use", error=gg.UnsupportedError)
    refused(lambda: comm.all_reduce(gg.ones(3, "c8"), op="prod"), "has no 'prod' of complex64;", error=gg.UnsupportedError)
    refused(lambda: comm.all_reduce(gg.ones(3, "c8"), op="max"), "complex numbers have no maximum", error=gg.UnsupportedError)
"""


def test_what_a_library_cannot_combine_is_named(native):
    passes_with(LIBRARY, native)


ABORTED = """
with connect(transport=os.environ["TRANSPORT"]) as comm, comm.device:
    comm.abort()
    try:
        comm.all_reduce(gg.ones(3))
    except gg.CommunicatorError as error:
        assert str(error).startswith("all_reduce: rank 0 (this rank) aborted"), error
    else:
        sys.exit("no error")
"""


def test_an_operation_after_an_abort_is_named(transport):
    ranks_pass(ABORTED, 1, TRANSPORT=transport, PYTHONWARNINGS="ignore")
