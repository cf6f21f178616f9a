"""Communicators: operations compared with NumPy, launchers' variables, and ranks that fail."""

import itertools
import os
import pickle
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
import rank_failures
from conftest import HANG, run_python, simulated, succeeds, time_limits

import gpuglue as gg
from gpuglue import _communicator_data as data
from gpuglue._communicator_device import ALL_REDUCE

HEAD = """
import os, signal, sys
import numpy as np
import gpuglue as gg
comm = gg.Communicator()
rank, size = comm.rank, comm.size
"""


@contextmanager
def reserved_port():
    """A port that no other process gets inside the block. Rank 0 can listen on it, since it sets SO_REUSEADDR too."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def run_ranks(code, size, *, rank_environment=None, before=()):
    """(output, exit status) of each rank; `before` is the command that starts it, if it has one."""
    with reserved_port() as port:
        return run_ranks_at(port, code if before else HEAD + code, size, rank_environment or {}, before or [()] * size)


def run_ranks_at(port, code, size, rank_environment, before):
    with others_end() as files:
        ranks = start_ranks(port, code, size, rank_environment, before, files)
    try:
        return [(output, rank.returncode) for rank in ranks for output in [rank.communicate(timeout=HANG)[0]]]
    finally:
        for rank in ranks:  # if one of them hangs
            rank.kill()


@contextmanager
def others_end():
    """The ends of a pipe that each rank inherits: one that has closed its end for writing reads the end of the file when all others
    have ended, or have closed theirs."""
    files = os.pipe()
    try:
        yield files
    finally:
        for file in files:
            os.close(file)


def start_ranks(port, code, size, rank_environment, before, files):
    ranks = []
    for rank in range(size):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "RANK": str(rank), "WORLD_SIZE": str(size),
                       "OTHERS_END": " ".join(map(str, files))}
        environment.update(MASTER_ADDR="127.0.0.1", GPUGLUE_COMM_PORT=str(port), **rank_environment.get(rank, {}))
        command = [*before[rank], sys.executable, "-P", "-c", code]
        ranks.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, pass_fds=files))
    return ranks


def all_pass(code, size, **options):
    results = run_ranks(code, size, **options)
    assert [status for _, status in results] == [0] * size, results


@pytest.fixture
def alone():
    with gg.Communicator(0, 1) as comm:
        yield comm


@pytest.mark.parametrize("size", range(1, 9) if os.environ.get("GPUGLUE_TEST_FULL") else (1, 2, 4, 8))
def test_results_are_those_of_numpy(size):
    all_pass("import rank_operations; rank_operations.check(comm)", size)


LARGE = """
import rank_operations
for nbytes in (262143, 262144, 262145, 3_000_001):  # from 256 KiB on ranks read each other's memory
    rank_operations.check_large(comm, nbytes)
"""


def test_large_moves_are_those_of_numpy():
    all_pass(LARGE, 3)


# A filter of system calls, as containers have one; the next communicator finds it.
REFUSE_READS = """
import ctypes, platform, struct
if rank == 1:
    number = {"x86_64": 310, "aarch64": 270}[platform.machine()]  # process_vm_readv
    allow, refuse = 0x7FFF0000, 0x50001
    steps = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, number, 0x06, 0, 0, refuse, 0x06, 0, 0, allow)
    class Filter(ctypes.Structure):
        _fields_ = [("count", ctypes.c_ushort), ("steps", ctypes.c_char_p)]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Filter(4, steps)), 0, 0):
        print("no filter")
    elif libc.process_vm_readv(os.getpid(), None, 0, None, 0, 0) != -1 or ctypes.get_errno() != 1:
        sys.exit("it is not refused")
"""


@pytest.mark.parametrize("after", ("", "comm = comm.split(0)"), ids=("while it is used", "before its creation"))
def test_large_moves_arrive_where_the_kernel_refuses_to_read_another_process(after):
    results = run_ranks(REFUSE_READS + after + LARGE, 3)
    assert [status for _, status in results] == [0, 0, 0], results
    if results[1][0]:
        pytest.skip("this kernel has no filters of system calls")


def test_a_rank_that_is_killed_during_large_moves_is_named():
    code = """
import threading
data, out = np.ones((size, 1 << 22), "u1"), np.empty((size, 1 << 22), "u1")
comm.all_to_all(data, out)
if rank == 1:
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()
try:
    while True:
        comm.all_to_all(data, out)
        comm.send_recv(data, (rank + 1) % size, out, (rank - 1) % size)
except gg.CommunicatorError as error:
    assert error.ranks == (1,) and "rank 1 ended" in str(error), error
"""
    results = run_ranks(code, 3)
    assert [status for _, status in results] == [0, -9, 0], results


def test_ranks_with_different_dtypes_or_orders_all_get_an_error():
    code = """
mine = np.ones(2, "f4" if rank else "i4")
calls = [
    lambda: comm.broadcast(mine),
    lambda: comm.all_gather(mine, np.empty(4, mine.dtype)),
    lambda: comm.gather(mine, np.empty(4, mine.dtype)),
    lambda: comm.scatter(np.empty(4, mine.dtype), mine),
    lambda: comm.all_to_all(mine),
    lambda: comm.send(mine, 1) if rank == 0 else comm.recv(mine, 0),
    lambda: comm.send_recv(mine, 1 - rank, np.empty_like(mine), 1 - rank),
    lambda: comm.all_gather(np.ones(1, [("a", mine.dtype)]), np.ones(2, [("a", mine.dtype)])),
    lambda: comm.broadcast(np.ones((2, 3), order="F" if rank else "C")),
]
for number, call in enumerate(calls):
    try:
        call()
    except gg.InvalidArgumentError:
        assert mine.tolist() == [1, 1]
    else:
        sys.exit(f"no error: {number}")
comm.barrier()
"""
    all_pass(code, 2)


ARRAYS = """
stream = gg.Stream()
x = gg.full((1000,), rank + 1.0)
with stream:
    gg.fill(x, 10.0 * (rank + 1))  # pending work
assert comm.all_reduce(x) is x
assert x.get().tolist() == [30.0] * 1000
y = gg.zeros((2, 1000))
comm.all_gather(gg.full((1000,), float(rank)), y)
assert y.get().tolist() == [[0.0] * 1000, [1.0] * 1000]
assert comm.all_reduce(gg.zeros((0,))).size == 0
z = comm.broadcast(np.full(3, rank) if rank else gg.full((3,), 7, "int64"))
assert np.asarray(z if rank else z.get()).tolist() == [7, 7, 7]
comm.barrier()
"""


def test_arrays_of_a_device_can_be_combined(device):
    all_pass(ARRAYS, 2)


def test_ranks_may_have_devices_of_different_backends(sim_library):
    devices = {0: {"GPUGLUE_BACKEND": "host"}, 1: {"GPUGLUE_BACKEND": "cuda", "GPUGLUE_CUDA_LIBRARY": sim_library}}
    all_pass(ARRAYS + "assert x.device.backend == ('host', 'cuda')[rank]", 2, rank_environment=devices)


def test_one_communicator_has_ranks_on_cuda_hip_level_zero_and_host():
    runs = {1: ("cuda", "GPUGLUE_CUDA_LIBRARY", "cuda-sim"), 2: ("hip", "GPUGLUE_HIP_LIBRARY", "hip-sim-7"), 3: ("ze", "GPUGLUE_ZE_LIBRARY", "ze-sim-direct")}
    devices = {rank: {"GPUGLUE_BACKEND": backend, variable: simulated(run)} for rank, (backend, variable, run) in runs.items()}
    code = "import rank_operations; rank_operations.check_devices(comm); assert gg.current_device().backend == ('host', 'cuda', 'hip', 'ze')[rank]"
    all_pass(code, 4, rank_environment={0: {"GPUGLUE_BACKEND": "host"}, **devices})


def test_a_killed_rank_is_named_by_the_others():
    code = """
comm.barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.all_reduce(np.ones(3))
except gg.CommunicatorError as error:
    assert error.ranks == (1,) and error.status == "ERR_COMMUNICATOR" and "rank 1 ended" in str(error), error
else:
    sys.exit("no error")
"""
    assert [status for _, status in run_ranks(code, 3)] == [0, -9, 0]


def test_a_rank_that_closes_and_lives_on_is_named_by_the_others():
    code = """
processes = comm.all_gather(np.array([os.getpid()]), np.empty(size, int))
if rank == 1:
    comm.close()
    print("closed", flush=True)
    signal.pause()
try:
    comm.barrier()
except gg.CommunicatorError as error:
    assert error.ranks == (1,) and "rank 1 closed the communicator" in str(error), error
else:
    sys.exit("no error")
finally:
    os.kill(int(processes[1]), signal.SIGTERM)
"""
    (text, first), (output, second) = run_ranks(code, 2)
    assert (first, output, second) == (0, "closed\n", -signal.SIGTERM), text


def test_groups_of_ranks_have_communicators_of_their_own():
    code = """
group = comm.split(rank % 2, key=-rank)
members = [0, 2] if rank % 2 == 0 else [1, 3]
assert (group.size, members[::-1][group.rank]) == (2, rank)
assert group.all_gather(np.array([rank]), np.empty(2, int)).tolist() == members[::-1]
assert comm.split(None if rank else 0, 7) is None or rank == 0
with comm.split(0) as same:
    assert (same.rank, same.size) == (rank, size)
    assert same.all_reduce(np.ones(1))[0] == size
comm.barrier()
"""
    all_pass(code, 4)


def test_an_interrupt_ends_a_wait_and_the_other_rank_learns_it():
    code = """
from conftest import signal_during_the_wait
if rank == 0:
    comm.recv(np.empty(1, "i4"), 1)
    try:
        with signal_during_the_wait():
            comm.barrier()
    except KeyboardInterrupt:
        pass
    else:
        sys.exit("no interrupt")
else:
    comm.send(np.ones(1, "i4"), 0)
    try:
        comm.recv(np.empty(1), 0)  # not a barrier: rank 0 waits until it is interrupted
    except gg.CommunicatorError as error:
        assert error.ranks == (0,), error
    else:
        sys.exit("no error")
"""
    all_pass(code, 2)


def test_a_rank_that_does_not_come_is_named():
    with reserved_port() as port, pytest.raises(gg.CommunicatorError, match="rank 1 of 2 did not connect within 0.1 s") as caught:
        gg.Communicator(0, 2, f"127.0.0.1:{port}", timeout=0.1)
    assert caught.value.ranks == (1,)
    with reserved_port() as port, pytest.raises(gg.CommunicatorError, match="rank 0 did not listen") as caught:
        gg.Communicator(1, 2, f"tcp://127.0.0.1:{port}", timeout=0.1)
    assert caught.value.ranks == (0,)


def test_a_port_that_is_taken_is_reported():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with pytest.raises(gg.CommunicatorError, match="choose another port") as caught:
            gg.Communicator(0, 2, f"127.0.0.1:{listener.getsockname()[1]}", timeout=HANG)
    assert caught.value.ranks == ()


def read_only():
    array = np.ones(2)
    array.flags.writeable = False
    return gg.asarray(array, device="host")


def unaligned():
    return np.zeros(33, "u1")[1:].view("f8")


class MadeOnDemand:
    """An object without an array of its own, such as a NumPy scalar or a lazy array."""

    @property
    def __array_interface__(self):
        self.last = getattr(self, "last", ()) + (np.ones(2),)  # all remain, so that none has the memory of another
        return self.last[-1].__array_interface__


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda c: c.all_reduce(np.ones(3), op="mean"), gg.InvalidArgumentError, "op is 'mean', expected one of 'sum'"),
        (lambda c: c.all_reduce(np.ones(3), op=None), gg.InvalidArgumentError, "op is None, expected one of 'sum'"),
        (lambda c: c.all_reduce(np.ones(3, complex), op="max"), gg.UnsupportedError, "complex numbers have no maximum"),
        (lambda c: c.all_reduce(np.ones(3, ">f8")), gg.UnsupportedError, "cannot be combined"),
        (lambda c: c.all_reduce(np.array(["a"])), gg.UnsupportedError, "cannot be combined"),
        (lambda c: c.broadcast(np.array([None])), gg.InvalidArgumentError, "objects cannot be sent"),
        (lambda c: c.all_reduce(np.ones((3, 3))[:, :2]), gg.InvalidArgumentError, "expected a contiguous array"),
        (lambda c: c.all_reduce(np.ones(3), np.ones(4)), gg.InvalidArgumentError, "x has 3 elements and out has 4, expected 3"),
        (lambda c: c.all_reduce(np.ones(3), np.ones(3, "f4")), gg.InvalidArgumentError, "out has dtype float32, expected that of x: float64"),
        (lambda c: c.all_reduce(np.frombuffer(bytes(8))), gg.InvalidArgumentError, "x is read-only, but"),
        (lambda c: c.all_reduce(unaligned()), gg.InvalidArgumentError, "x is not aligned"),
        (lambda c: c.all_reduce(read_only()), gg.InvalidArgumentError, "x is read-only"),
        (lambda c: c.recv(read_only(), 0), gg.InvalidArgumentError, "out is read-only"),
        (lambda c: c.all_gather(np.ones(2), read_only()), gg.InvalidArgumentError, "out is read-only"),
        (lambda c: c.all_reduce([1, 2]), TypeError, "x must be an array, not list"),
        (lambda c: c.all_reduce(np.float64(1)), TypeError, r"x is a float64, which cannot be written to: pass an array, such as np.array\(x\)"),
        (lambda c: c.all_reduce(np.ones(1), np.float64(1)), TypeError, "out is a float64, which cannot be written to"),
        (lambda c: c.recv(np.ones(3).mean(), 0), TypeError, "out is a float64, which cannot be written to"),
        (lambda c: c.all_reduce(MadeOnDemand()), TypeError, "x is a MadeOnDemand, which cannot be written to"),
        (lambda c: c.all_reduce(np.ma.array([1, 2], mask=[0, 1])), TypeError, "x is a masked array"),
        (lambda c: c.broadcast(np.ones(3), root=1), gg.InvalidArgumentError, "root is 1, expected a rank: 0 to 0"),
        (lambda c: c.send(np.ones(3), -1), gg.InvalidArgumentError, "to is -1, expected a rank"),
        (lambda c: c.send_recv(np.ones(3), 0, np.ones(3, "i8"), 0), gg.InvalidArgumentError, "out has dtype int64, expected that of x: float64"),
        (lambda c: c.gather(np.ones(3)), gg.InvalidArgumentError, "out is None"),
        (pickle.dumps, TypeError, "cannot be pickled"),
    ],
)
def test_wrong_arguments_are_refused(alone, call, error, text):
    with pytest.raises(error, match=text):
        call(alone)


@pytest.mark.parametrize(
    "x, out, op",
    [
        (np.arange(8.0)[::2], np.zeros(4), "sum"),
        (np.arange(4.0), np.zeros(8)[::2], "sum"),
        (np.arange(4.0), np.zeros(3), "sum"),
        (np.arange(4.0), np.zeros(4, "i8"), "sum"),
        (np.arange(4.0), np.frombuffer(bytes(32)), "sum"),
        (np.arange(4.0, dtype=">f8"), np.zeros(4, ">f8"), "sum"),
        (np.arange(4.0), unaligned(), "sum"),
        (np.ma.array(np.arange(4.0)), np.zeros(4), "sum"),
        (np.arange(4.0), np.zeros(4), "mean"),
        (np.arange(4.0), np.zeros(4), None),
        (np.arange(4), np.zeros(4, int), "avg"),
        ([0.0, 1.0], np.zeros(2), "sum"),
        (np.arange(4.0), None, "sum"),
    ],
)
def test_arrays_that_are_not_plain_are_left_to_python_with_nothing_done(alone, x, out, op):
    before = None if out is None else out.tolist()
    assert not alone._queued(ALL_REDUCE, x, out, op, 0, 0, None)
    assert out is None or out.tolist() == before


def test_plain_arrays_need_no_python_objects(alone):
    x, out = np.arange(4.0), np.zeros(4)
    assert alone._queued(ALL_REDUCE, x, out, "sum", 0, 0, None) and out.tolist() == [0, 1, 2, 3]


def test_creation_refuses_what_it_cannot_understand():
    for arguments, text in {
        (0,): "both rank and size",
        (0, 2, "somewhere"): "expected 'host:port'",
        (2, 2, "127.0.0.1:1"): "rank is 2, expected 0 to 1",
        (0, 999, "127.0.0.1:1"): "size is 999, expected 1 to 256",
        (0, 2, "127.0.0.1:99999"): "port is 99999",
    }.items():
        with pytest.raises(gg.InvalidArgumentError, match=text):
            gg.Communicator(*arguments)
    with pytest.raises(gg.InvalidArgumentError, match="timeout is 0"):
        gg.Communicator(0, 1, timeout=0)
    with pytest.raises(gg.InvalidArgumentError, match="expected 'host:port'"):
        gg.Communicator(0, 2, "a\0b:1")
    with pytest.raises(TypeError, match="rank is 0.9, expected an integer"):
        gg.Communicator(0.9, 1)
    with pytest.raises(TypeError, match="id must be a str, not int"):
        gg.Communicator(0, 1, id=7)


@pytest.mark.parametrize("given", ({"color": -1}, {"color": 1 << 31}, {"color": 0, "key": 1 << 31}, {"color": 0, "key": -(1 << 31) - 1}))
def test_a_color_or_key_that_c_and_mpi_do_not_have_is_refused(alone, given):
    with pytest.raises(gg.InvalidArgumentError, match="^split: (color|key) is -?[0-9]+, expected"):
        alone.split(**given)
    with alone.split((1 << 31) - 1, -(1 << 31)) as part:
        assert part.size == 1


def test_a_closed_communicator_is_refused_and_repr_shows_it(alone):
    assert repr(alone) == "<gpuglue.Communicator rank 0 of 1>" and alone.transport == "host"
    alone.close()
    alone.close()
    assert repr(alone) == "<gpuglue.Communicator rank 0 of 1, closed>"
    for call in (alone.barrier, alone.abort, lambda: alone.all_reduce(np.ones(2))):
        with pytest.raises(gg.InvalidArgumentError, match="Communicator is closed"):
            call()


def test_an_aborted_communicator_names_its_rank(alone):
    alone.abort()
    with pytest.raises(gg.CommunicatorError, match=r"rank 0 \(this rank\) aborted") as caught:
        alone.barrier()
    assert caught.value.ranks == (0,)


def without_launcher(monkeypatch):
    for name in os.environ:
        if name.startswith(("SLURM_", "PMI", "OMPI_", "MPI_LOCAL", "MV2_", "FLUX_", "JSM_", "MASTER_", "TORCHELASTIC_", "GPUGLUE_COMM_")) or name in ("RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name)


def test_rank_size_and_address_come_from_the_variables_of_launchers(monkeypatch):
    without_launcher(monkeypatch)
    with pytest.raises(gg.InvalidArgumentError, match="RANK and WORLD_SIZE"):
        gg.Communicator()
    monkeypatch.setenv("SLURM_PROCID", "3")
    monkeypatch.setenv("SLURM_NTASKS", "4")
    assert data.launched() == (3, 4, "")
    with pytest.raises(gg.InvalidArgumentError, match="MASTER_PORT"):
        gg.Communicator()
    monkeypatch.setenv("SLURM_JOB_ID", "123456")
    assert data.master_address(4) == "127.0.0.1:23456"
    monkeypatch.setenv("MASTER_PORT", "29500")
    assert data.master_address(4) == "127.0.0.1:29500"
    monkeypatch.setenv("RANK", "x")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(gg.InvalidArgumentError, match="RANK is 'x', expected a number"):
        gg.Communicator()
    assert data.split_address("[::1]:5") == ("::1", 5)


@pytest.mark.parametrize("rank, size, run", [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"), ("PMI_RANK", "PMI_SIZE", "SLURM_JOB_ID"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "SLURM_JOB_ID"), ("FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_JOB_ID"),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "LSB_JOBID"), ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID"),
])  # fmt: skip
def test_each_launcher_is_known_by_its_variables(monkeypatch, rank, size, run):
    without_launcher(monkeypatch)
    for name, value in {rank: "2", size: "5", run: "77"}.items():
        monkeypatch.setenv(name, value)
    assert data.launched() == (2, 5, "77")


def test_torchrun_keeps_its_own_port(monkeypatch):
    without_launcher(monkeypatch)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    for port, expected in {"29500": "127.0.0.1:29501", "65535": "127.0.0.1:65534"}.items():
        monkeypatch.setenv("MASTER_PORT", port)
        assert data.master_address(4) == expected
    monkeypatch.setenv("GPUGLUE_COMM_PORT", "4000")
    assert data.master_address(4) == "127.0.0.1:4000"


def test_each_run_of_a_launcher_has_an_id_of_its_own(monkeypatch):
    without_launcher(monkeypatch)
    # The variables RANK and WORLD_SIZE do not come from the step: each rank may be a step of its own.
    for rank, size, expected in (("RANK", "WORLD_SIZE", "12"), ("SLURM_PROCID", "SLURM_NTASKS", "12.3")):
        monkeypatch.setenv(rank, "0")
        monkeypatch.setenv(size, "1")
        monkeypatch.setenv("SLURM_JOB_ID", "12")
        monkeypatch.setenv("SLURM_STEP_ID", "3")
        assert data.launched() == (0, 1, expected)
        monkeypatch.delenv(rank)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    monkeypatch.setenv("PMIX_NAMESPACE", "x" * 70 + "@1")
    assert data.launched() == (0, 1, "x" * 61 + "@1")
    created = []
    monkeypatch.setattr(gg._core, "_comm_create", lambda *arguments: created.append(arguments[4]))
    monkeypatch.setattr(gg._core, "_comm_open_device", lambda *arguments: ("host", "", "", 0))
    gg.Communicator()
    gg.Communicator(id="mine")
    gg.Communicator(0, 1)
    assert created == ["x" * 61 + "@1", "mine", ""]


SLURM = {"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "1", "SLURM_NNODES": "2"}


@pytest.mark.parametrize("listed, first", [("node1,node2", "node1"), ("node[01-03,7],other", "node01"), ("rack[2,4]n[08-9]-ib", "rack2n08-ib"), ("n[7]", "n7")])
def test_rank_0_is_on_the_first_node_of_the_slurm_step(monkeypatch, listed, first):
    without_launcher(monkeypatch)
    for name, value in {**SLURM, "SLURM_JOB_NODELIST": listed}.items():
        monkeypatch.setenv(name, value)
    assert data.master_address(4) == f"{first}:20001"
    monkeypatch.setenv("SLURM_STEP_NODELIST", "step")
    assert data.master_address(4) == "step:20001"
    with pytest.raises(gg.UnsupportedError, match="on several nodes"):  # not all ranks of the step
        data.master_address(2)
    monkeypatch.setenv("MASTER_ADDR", "given")
    assert data.master_address(4) == "given:20001"


OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
HYDRA = {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "3"}


@pytest.mark.parametrize("variables", [OPEN_MPI, HYDRA, {**SLURM, "SLURM_STEP_NODELIST": "node[1-2]", **OPEN_MPI}, SLURM], ids=["Open MPI", "MPICH", "in Slurm", "Slurm"])
def test_ranks_on_several_nodes_are_refused_at_once_if_the_first_is_unknown(monkeypatch, variables):
    without_launcher(monkeypatch)
    for name, value in {**variables, "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(gg.UnsupportedError, match="on several nodes.*from_mpi"):
        gg.Communicator(timeout=1)


@pytest.mark.parametrize("size, local", [(4, "4"), (2, "2"), (8, "4")], ids=["all", "those of this node", "of programs of a rank"])
def test_ranks_of_one_node_of_open_mpi_meet_there(monkeypatch, size, local):
    without_launcher(monkeypatch)
    for name, value in {**SLURM, **OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": local}.items():
        monkeypatch.setenv(name, value)
    assert data.master_address(size) == "127.0.0.1:20001"


def test_a_slurm_step_on_one_node_meets_there(monkeypatch):
    without_launcher(monkeypatch)
    for name, value in {**SLURM, "SLURM_STEP_NUM_NODES": "1"}.items():
        monkeypatch.setenv(name, value)
    assert data.master_address(4) == "127.0.0.1:20001"


@pytest.mark.parametrize("call, package", [
    ("gg.Communicator.from_mpi()", "mpi4py"), ("gpuglue.mpi.is_gpu_aware('cuda')", "mpi4py"), ("gg.Communicator.from_dask()", "distributed"),
    ("gpuglue.dask.LocalCluster()", "distributed"), ("gpuglue.dask.DeviceStore(1)", "distributed"),
])  # fmt: skip
def test_a_missing_package_is_named_with_the_command_that_installs_it(call, package):
    code = (
        "import sys, gpuglue as gg, gpuglue.dask, gpuglue.mpi; sys.modules.update(mpi4py=None, distributed=None)\n"
        f"try: {call}\nexcept ImportError as error: print('pip install {package}' in str(error))"
    )
    assert succeeds(run_python(code)) == "True"


def test_bfloat16_is_combined():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with gg.Communicator(0, 1) as comm:
        x = np.array([1.5, -2], ml_dtypes.bfloat16)
        assert comm.all_reduce(x, np.empty_like(x)).tolist() == [1.5, -2]


# Of each failure: what the ranks report, by rank; the words, and the ranks that the error names.
REPORTS = {
    "killed": {0: ("ended without closing the communicator", [1]), 2: ("ended without closing the communicator", [1])},
    "absent": {0: ("rank 1 of 3 did not connect within", [1]), 2: ("rank 1 of 3 did not connect within", [1])},
    "hangs": {0: ("rank 1 did not take part within the timeout", [1]), 2: ("rank 1 did not take part within the timeout", [1])},
    "port": {0: ("Address already in use; choose another port", []), 1: ("is another program than rank 0, choose another port", [0]),
             2: ("is another program than rank 0, choose another port", [0])},
    "id": {0: ("rank 0 refused rank 1: its id is 'b', and rank 0 has 'a'", [1]), 1: ("its id is 'b', and rank 0 has 'a'", []),
           2: ("rank 0 refused rank 1: its id is 'b', and rank 0 has 'a'", [1])},
}


def has_words_and_ranks(reports, expected):
    return reports.keys() == expected.keys() and all(
        words in reports[rank]["text"] and reports[rank]["ranks"] == ranks for rank, (words, ranks) in expected.items())


@pytest.mark.parametrize("failure", rank_failures.FAILURES)
def test_every_other_rank_reports_a_failure_and_who_failed(failure):
    for limit in [HANG] if failure == "killed" else itertools.islice(time_limits(), 5):  # all ranks have to start within it
        reports = rank_failures.run(failure, limit)
        if has_words_and_ranks(reports, REPORTS[failure]):
            break
    assert has_words_and_ranks(reports, REPORTS[failure]), reports
