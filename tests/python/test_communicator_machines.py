"""Communicators of ranks on several machines: each machine is a mount namespace, in which the kernel has an identifier of its own.
Where their addresses count it is a network namespace, too."""

import contextlib
import os
import shutil
import subprocess

import pytest
import test_communicator_connect as connect
import test_communicator_device_hang as device_hang
from test_communicator import run_ranks
from test_communicator_device import HEAD, LIBRARIES, RESULTS, native, native_simulated, within_limits
from test_communicator_device_hang import hangs

import gpuglue as gg

__all__ = ["hangs", "native", "native_simulated"]

IDENTIFIER = "/proc/sys/kernel/random/boot_id"
NAMESPACE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount"]
START = """
import os, signal, sys
import numpy as np
import gpuglue as gg
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
""" + HEAD.replace("comm.close()\n", "")  # which has a communicator of one machine


@pytest.fixture
def machines(tmp_path):
    """What starts a rank on each of two machines."""
    def start(name):
        (tmp_path / name).write_text(f"machine-{name}\n")
        return [*NAMESPACE, "sh", "-c", f'mount --bind "$0" {IDENTIFIER} && exec "$@"', str(tmp_path / name)]
    found = [start("a"), start("b")]
    for one in found:
        done = subprocess.run([*one, "cat", IDENTIFIER], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"this user cannot create mount namespaces: {done.stderr}")
        assert done.stdout == f"machine-{one[-1][-1]}\n"
    return found


@pytest.fixture
def ranks_pass(machines, device):
    def run(code, places="ab", **variables):
        """Run the ranks on these machines."""
        size = len(places)
        if device.backend in LIBRARIES and "Simulated" not in device.name and len(gg.devices(device.backend)) < size:
            pytest.skip(f"{size} ranks need a device each")
        environment = dict.fromkeys(range(size), {"GPUGLUE_SIM_DEVICES": "4", **variables})
        results = run_ranks(START + code, size, rank_environment=environment, before=[machines["ab".index(place)] for place in places])
        assert [status for _, status in results if status != -9] == [0] * (size - ("SIGKILL" in code)), results
    return run


@pytest.fixture
def pass_within_limits(ranks_pass):
    """The same with LIMIT in the code, of two ranks on the first machine and one on the second."""
    return lambda code: within_limits(lambda code: ranks_pass(code, "aba"), code)


def test_results_between_machines_are_those_of_numpy(native, ranks_pass):
    line = "    equal(comm.all_reduce(np.ones(3)), [size] * 3)  # in host memory\n"
    assert line in RESULTS
    ranks_pass(RESULTS.replace(line, ""), "aba", TRANSPORT=native)


OPERATIONS = """
with connect() as comm, comm.device:
    assert comm.transport in ("nccl", "rccl") and comm.handle
    comm.barrier()
    for call in (lambda: comm.all_reduce(np.ones(3)), lambda: comm.send(np.ones(3), (rank + 1) % size)):
        try:
            call()
        except gg.UnsupportedError as error:
            assert "on several machines" in str(error), str(error)
        else:
            sys.exit("no error")
    with comm.split(rank % 2, key=-rank) as part:  # of two machines, and of one
        assert (part.size, part.transport) == (2 - rank % 2, comm.transport)
        assert part.all_reduce(gg.full(3, rank + 1)).get().tolist() == [2 if rank % 2 else 4] * 3
    assert (comm.split(None if rank else 3) is None) == (rank > 0)
    try:  # all of them get the error, and go on
        comm.split(0) if rank == 1 else comm.barrier()
    except gg.InvalidArgumentError as error:
        assert "ranks 0 and 1 call different operations" in str(error), str(error)
    else:
        sys.exit("no error")
    stream, x = gg.Stream(), gg.ones(100)
    gg.synchronize()
    with gg.capture(stream) as graph:
        comm.all_reduce(x, stream=stream)
    graph.launch(stream)
    stream.synchronize()
    assert x.get().tolist() == [3.0] * 100
    graph.close()
    comm.barrier()
"""


def test_other_operations_between_machines(native, ranks_pass):
    ranks_pass(OPERATIONS, "aab")


KILLED = """
comm = connect(timeout=None)
with comm.device:
    x, stream = gg.ones(10), gg.Stream()
    comm.all_reduce(x)
    gg.synchronize()
    comm.barrier()
    if rank == 1:
        if os.fork() == 0:  # which has all files of its parent
            os.closerange(0, 3)
            time.sleep(5)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    comm.all_reduce(x, stream=stream)
    began = time.monotonic()
    fails(stream.synchronize, "ended without closing")
    fails(comm.barrier, "ended without closing")
    assert time.monotonic() - began < 4
comm.close()
"""


@pytest.mark.parametrize("places", ["abb", "aba"])
def test_a_rank_that_is_killed_on_another_machine_is_named(native, ranks_pass, places):
    ranks_pass(KILLED, places)


FIRST_KILLED = """
comm = connect(timeout=None)
with comm.device:
    x, stream = gg.ones(10), gg.Stream()
    gg.synchronize()
    comm.barrier()
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.all_reduce(x, stream=stream)
    try:
        stream.synchronize()
    except gg.CommunicatorError as error:
        assert error.ranks == (0,), str(error)
    else:
        sys.exit("no error")
"""


def test_rank_0_that_is_killed_on_another_machine_is_named(native, ranks_pass):
    ranks_pass(FIRST_KILLED, "abb")


HANGS = """
connect().close()  # so that all ranks have started: the timeout below is not for this
comm = connect(timeout=3)
with comm.device:
    x, stream = gg.ones(10), gg.Stream()
    gg.synchronize()
    comm.barrier()
    if rank == 1:
        until_others_end()
        os._exit(0)
    comm.all_reduce(x, stream=stream)
    fails(stream.synchronize, "did not take part within the timeout")
"""


def test_a_rank_that_hangs_on_another_machine_is_named(native, ranks_pass):
    ranks_pass(HANGS, "aab")


MESSAGE_HANGS = """
connect().close()  # so that all ranks have started: the timeout below is not for this
comm = connect(timeout=3)
with comm.device:
    x, stream = gg.ones(10), gg.Stream()
    for _ in range(3):
        comm.send_recv(x, (rank + 1) % size, gg.empty(10), (rank - 1) % size)
    gg.synchronize()
    comm.barrier()
    if rank == 2:
        comm.recv(x, 1, stream=stream)
        fails(stream.synchronize, "did not take part within the timeout")
    else:
        until_others_end()
    os._exit(0)  # rank 0 is idle
"""


def test_a_rank_whose_message_is_missing_is_named_and_not_one_that_is_idle(native, ranks_pass):
    ranks_pass(MESSAGE_HANGS, "aba")


ABORTED = """
comm = connect(timeout=None)
with comm.device:
    x, stream = gg.ones(10), gg.Stream()
    gg.synchronize()
    comm.barrier()
    if rank == 1:
        comm.abort()
    else:
        comm.all_reduce(x, stream=stream)
        fails(stream.synchronize, "aborted")
    fails(comm.barrier, "aborted")
comm.close()
"""


def test_an_abort_ends_the_waits_on_other_machines(native, ranks_pass):
    ranks_pass(ABORTED, "aab")


ABSENT = """
if rank == 1:
    os._exit(0)
fails(lambda: connect(timeout=1), "rank 1 of 3 did not connect")
"""


def test_a_rank_that_never_comes_to_other_machines_is_named(ranks_pass):
    ranks_pass(ABSENT, "aab")


REFUSED = """
try:
    connect(transport=os.environ["TRANSPORT"])
except (gg.UnsupportedError, gg.CommunicatorError) as error:
    assert "several machines" in str(error) and "NCCL" in str(error), str(error)
else:
    sys.exit("no error")
"""


@pytest.mark.parametrize("transport", ["staged", "host"])
def test_a_transport_of_one_machine_is_refused_between_machines(ranks_pass, transport):
    ranks_pass(REFUSED, TRANSPORT=transport)


def test_ranks_of_several_machines_without_a_library_are_refused_with_the_reason(device, ranks_pass):
    variables = {LIBRARIES[device.backend][1]: "/nonexistent"} if device.backend in LIBRARIES else {}
    ranks_pass(REFUSED, TRANSPORT="auto", **variables)


# Rank 0 listens on all addresses. Each other rank gets another one of them.
LOOPBACK = """
with connect() as comm, comm.device:
    assert comm.transport in ("nccl", "rccl")
    for color, key, ranks in ((0 if rank else None, rank, (1, 2)), (0, (rank + 2) % 3, (1, 2, 0)), (rank // 2, -rank, (1, 0)), (0, -rank, (2, 1, 0))):
        part = comm.split(color, key)
        assert (part is None) == (color is None)
        if rank in ranks:
            assert (part.size, part.rank) == (len(ranks), ranks.index(rank))
            assert part.all_reduce(gg.full(3, rank + 1)).get().tolist() == [sum(ranks) + len(ranks)] * 3
        if part:
            part.close()
"""


@pytest.fixture
def networks(machines):
    """The machines a and b with networks of their own, and the address of a on the network between them."""
    names, address = [f"gpuglue-{os.getpid()}-{name}" for name in "ab"], "198.51.100.{}"  # RFC 5737: of no machine
    if not shutil.which("ip"):
        pytest.skip("there is no ip: install iproute2")
    with contextlib.ExitStack() as stack:
        for name in names:
            made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
            if made.returncode:
                pytest.skip(f"this user cannot create network namespaces: {made.stderr}")
            stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=True)
        places = [["ip", "netns", "exec", name] for name in names]
        subprocess.run([*places[0], "ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", names[1]], check=True)
        for number, place in enumerate(places):
            subprocess.run([*place, "ip", "address", "add", f"{address.format(number + 1)}/24", "dev", "wire"], check=True)
            for device in ("lo", "wire"):
                subprocess.run([*place, "ip", "link", "set", device, "up"], check=True)
        yield [[*place, *machine] for place, machine in zip(places, machines)], address.format(1)


def test_a_part_whose_first_rank_is_reached_by_loopback_has_the_address_of_rank_0(native, networks):
    (a, b), address = networks
    if "Simulated" not in gg.current_device().name and len(gg.devices()) < 3:
        pytest.skip("3 ranks need a device each")
    variables = [{"GPUGLUE_SIM_DEVICES": "4", "RANK_0": where} for where in ("0.0.0.0", "127.0.0.1", address)]
    results = run_ranks(START.replace("127.0.0.1:", "{os.environ['RANK_0']}:") + LOOPBACK, 3, rank_environment=dict(enumerate(variables)), before=[a, a, b])
    assert [status for _, status in results] == [0] * 3, results


def test_a_rank_whose_device_hangs_on_another_machine_is_named(hangs, pass_within_limits):
    code = device_hang.HANGS.replace("COUNT", "10").format(operation="comm.all_reduce(x, stream=s)")
    pass_within_limits(device_hang.HEAD + code + device_hang.FAILS)


def test_a_rank_that_stops_on_another_machine_is_named(native_simulated, pass_within_limits):
    pass_within_limits(device_hang.HEAD + device_hang.STOPS.replace("COUNT", "2") + device_hang.FAILS)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("code", [device_hang.CHECKS + connect.CREATION, connect.first_call("all_reduce")], ids=["creation", "first_call"])
def test_a_rank_that_stops_while_the_library_connects_several_machines_is_named(native_simulated, pass_within_limits, code, rank):
    pass_within_limits(connect.stops(code, rank))


def test_no_rank_is_named_if_the_library_does_not_connect_several_machines(native_simulated, pass_within_limits):
    pass_within_limits(connect.first_call("all_reduce") + connect.NOBODY)
