"""Communicators with devices: every operation on arrays in device memory, over each transport, compared with NumPy."""

import itertools
import os
import signal
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import time_limits
from test_communicator import run_ranks

import gpuglue as gg

LIBRARIES = {"cuda": ("nccl", "GPUGLUE_NCCL_LIBRARY"), "hip": ("rccl", "GPUGLUE_RCCL_LIBRARY")}
# Each rank has a device of its own. On hardware with fewer devices, ranks that exchange data through the host share them.
HEAD = """
import time, warnings
comm.close()
backend = os.environ["GPUGLUE_BACKEND"]
PATIENCE = float(os.environ.get("GPUGLUE_TEST_PATIENCE", 60))  # seconds, where no test waits for a timeout
def connect(**options):
    options.setdefault("device", f"{backend}:{rank % len(gg.devices(backend))}" if backend in ("cuda", "hip") else f"{backend}:0")
    return gg.Communicator(rank, size, f"127.0.0.1:{os.environ['GPUGLUE_COMM_PORT']}", **{"timeout": PATIENCE, **options})
def until_others_end():  # takes no part, longer than any timeout
    ends, own = map(int, os.environ["OTHERS_END"].split())
    os.close(own)
    os.read(ends, 1)
def fails(wait, words=""):  # wait() raises the failure of rank 1
    try:
        wait()
    except gg.CommunicatorError as error:
        assert error.ranks == (1,) and words in str(error), str(error)
    else:
        sys.exit(f"no error: {wait}")
"""


@pytest.fixture
def native(device):
    """The name of the transport that has a library on this backend."""
    if device.backend not in LIBRARIES:
        pytest.skip(f"the backend {device.backend} has no library of collective operations")
    name, variable = LIBRARIES[device.backend]
    if variable in os.environ and not Path(os.environ[variable]).exists():
        pytest.skip(f"{os.environ[variable]} was not built: the vendor's header is missing")
    return name


@pytest.fixture(params=["library", "staged"])
def transport(request, device):
    return request.getfixturevalue("native") if request.param == "library" else "staged"


@pytest.fixture
def native_simulated(native):
    """The same, where the library fails, is slow or does not return if it is asked to."""
    name = gg.current_device().name
    if "Simulated" not in name:
        pytest.skip(f"only a simulated library misbehaves on request, and this is that of {name}")
    return native


def run_on_devices(code, size, rank_environment, shared=False):
    """The results of ranks of which each has a device of its own, unless they share them."""
    device = gg.current_device()
    there = len(gg.devices(device.backend))
    if not shared and device.backend in LIBRARIES and "Simulated" not in device.name and there < size:
        pytest.skip(f"{size} ranks need a device each, and there are {there}")
    return run_ranks(HEAD + code, size, rank_environment=rank_environment)


def ranks_pass(code, size, shared=False, **variables):
    results = run_on_devices(code, size, dict.fromkeys(range(size), {"GPUGLUE_SIM_DEVICES": "4", **variables}), shared)
    assert [status for _, status in results] == [0] * size, results
    return [output for output, _ in results]


def within_limits(run, code):
    """Run ranks of which some wait for a timeout, LIMIT in the code. All others have to start and to call within it, so a busy machine
    needs a longer one."""
    for limit in itertools.islice(time_limits(), 5):
        try:
            return run(code.replace("LIMIT", str(limit)))
        except AssertionError as error:
            failed = error
    raise failed


def ranks_pass_within(code, size, **variables):
    """The same, where LIMIT in the code is the timeout."""
    return within_limits(lambda code: ranks_pass(code, size, **variables), code)


RESULTS = """
comm = connect(transport=os.environ["TRANSPORT"])
assert comm.transport == os.environ["TRANSPORT"], comm.transport
library = comm.transport != "staged"
assert (comm.library is not None) == library, comm.library
random = np.random.default_rng(0)
equal = np.testing.assert_array_equal
names = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128 bool".split()
with comm.device:
    for name in names:
        dtype = np.dtype(name)
        values = random.integers(0, 2 if name == "bool" else 4, (size, size, 7)) - (dtype.kind in "ifc") * 2
        each = values.astype(dtype)  # what each rank has
        mine, x = each[rank], gg.to_gpu(each[rank])
        for op, function in {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}.items():
            if dtype.kind == "c" and op in ("min", "max"):
                continue
            if library and (name in ("int16", "uint16") or dtype.kind == "c" and op == "prod"):
                try:
                    comm.all_reduce(x, op=op)
                except gg.UnsupportedError as error:
                    assert "staged" in str(error)
                else:
                    sys.exit(f"{name} {op}: no error")
                continue
            expected = function.reduce(each, axis=0, dtype=dtype)
            equal(comm.all_reduce(x, gg.empty(mine.shape, dtype), op).get(), expected, f"{name} {op}")
            equal(comm.all_reduce(x.copy(), op=op).get(), expected, f"{name} {op} in place")
            equal(comm.reduce_scatter(x, gg.empty(7, dtype), op).get(), expected[rank])
            total = comm.reduce(x.copy(), root=size - 1, op=op)
            assert (total is None) == (rank != size - 1), (name, op, total)
            if total is not None:
                equal(total.get(), expected)
        equal(comm.broadcast(x.copy(), root=size - 1).get(), each[size - 1])
        equal(comm.all_gather(x, gg.empty(each.shape, dtype)).get(), each)
        gathered = comm.gather(x, gg.empty(each.shape, dtype) if rank == 0 else None)
        if rank == 0:
            equal(gathered.get(), each)
        equal(comm.scatter(x if rank == size - 1 else None, gg.empty(7, dtype), root=size - 1).get(), each[size - 1, rank])
        equal(comm.all_to_all(x.copy()).get(), each[:, rank])
        equal(comm.all_to_all(x, gg.empty(x.shape, dtype)).get(), each[:, rank])
        if size > 1:
            equal(comm.send_recv(x, (rank + 1) % size, gg.empty(mine.shape, dtype), (rank - 1) % size).get(), each[rank - 1])
            if rank == 0:
                comm.send(x, 1)
            elif rank == 1:
                equal(comm.recv(gg.empty(mine.shape, dtype), 0).get(), each[0])
    for name in ("float16", "float32", "float64", "complex64"):
        mean = comm.all_reduce(gg.full(1000, rank + 1.0, name), op="avg")
        equal(mean.get(), (size + 1) / 2, name)
    for name in ("float16", "float32", "float64"):
        values = np.array([np.nan if rank == 0 else 1.0, 2.0, np.nan], name)
        for op in ("min", "max"):
            expected = [1.0 if library and size > 1 else np.nan, 2.0, np.nan]  # the vendors' libraries ignore a NaN, if not all are
            equal(comm.all_reduce(gg.to_gpu(values), op=op).get(), expected, f"{name} {op} of NaN")
    equal(comm.all_reduce(gg.zeros(0)).size, 0)
    whole = gg.zeros((size, 5))
    whole[rank].fill(rank)
    comm.all_gather(whole[rank], whole)  # in place: this rank's block
    equal(whole.get()[:, 0], range(size))
    equal(comm.all_reduce(np.ones(3)), [size] * 3)  # in host memory
comm.barrier()
comm.close()
"""


@pytest.mark.parametrize("size", [1, 2, 4])
def test_results_of_device_memory_are_those_of_numpy(transport, size):
    ranks_pass(RESULTS, size, TRANSPORT=transport)


FLOAT8 = """
import ml_dtypes
comm = connect(transport=os.environ["TRANSPORT"])
has = comm.transport != "staged" and tuple(map(int, comm.library[1].split("."))) >= (2, 24)
random = np.random.default_rng(0)
def equal(array, expected):
    np.testing.assert_array_equal(array.get().astype("f4"), expected)
def refused(call, words):
    try:
        call()
    except gg.UnsupportedError as error:
        assert words in str(error), error
    else:
        sys.exit(f"no error: {words}")
with comm.device:
    for name in ("float8_e4m3fn", "float8_e5m2"):
        dtype = np.dtype(getattr(ml_dtypes, name))
        each = random.integers(-2, 2, (size, size, 7)).astype("f4")  # whose sums and products both types have
        mine, x = each[rank].astype(dtype), gg.to_gpu(each[rank].astype(dtype))
        for op, function in {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "avg": np.add}.items():
            if not has:
                words = "cannot be combined" if comm.transport == "staged" else f"has no '{op}' of {name[:11]}"
                refused(lambda: comm.all_reduce(x.copy(), op=op), words)
                refused(lambda: comm.reduce(x.copy(), root=size - 1, op=op), words)
                refused(lambda: comm.reduce_scatter(x, gg.empty(7, dtype), op), words)
                continue
            expected = function.reduce(each, axis=0) / (size if op == "avg" else 1)
            equal(comm.all_reduce(x, gg.empty(x.shape, dtype), op), expected)
            equal(comm.all_reduce(x.copy(), op=op), expected)
            equal(comm.reduce_scatter(x, gg.empty(7, dtype), op), expected[rank])
            total = comm.reduce(x.copy(), root=size - 1, op=op)
            if total is not None:
                equal(total, expected)
        refused(lambda: comm.all_reduce(mine), "cannot be combined")  # in host memory
        assert comm.broadcast(each[rank].astype(dtype)).astype("f4").tolist() == each[0].tolist()
        equal(comm.broadcast(x.copy(), root=size - 1), each[size - 1])
        equal(comm.all_gather(x, gg.empty(each.shape, dtype)), each)
        gathered = comm.gather(x, gg.empty(each.shape, dtype) if rank == 0 else None)
        if rank == 0:
            equal(gathered, each)
        equal(comm.scatter(x if rank == size - 1 else None, gg.empty(7, dtype), root=size - 1), each[size - 1, rank])
        equal(comm.all_to_all(x, gg.empty(x.shape, dtype)), each[:, rank])
        equal(comm.send_recv(x, (rank + 1) % size, gg.empty(x.shape, dtype), (rank - 1) % size), each[rank - 1])
    comm.barrier()
comm.close()
"""


@pytest.mark.parametrize("version", ["22400", "22304"])  # of a simulated library
def test_floats_of_8_bits_are_combined_by_a_new_library_and_moved_by_all_transports(transport, version):
    pytest.importorskip("ml_dtypes")
    ranks_pass(FLOAT8, 2, TRANSPORT=transport, GPUGLUE_SIM_NCCL_VERSION=version)


ORDER = """
with connect() as comm, comm.device:
    x, stream = gg.full(1000, rank + 1.0), gg.Stream()
    with stream:
        gg.fill(x, 10.0 * (rank + 1))  # pending work on another stream
    comm.all_reduce(x)
    assert x.get().tolist() == [30.0] * 1000
    y = gg.empty(1000)
    comm.all_reduce(x, y, stream=stream)
    stream.synchronize()
    assert y.get().tolist() == [60.0] * 1000
    del y, x  # memory that queued operations use is kept
    for _ in range(20):
        comm.all_reduce(gg.ones(100), gg.empty(100))
    a = gg.ones(100)
    a.get()  # on HIP a wait for a device invalidates the captures of all, such as that of another rank's thread
    with gg.capture(stream) as graph:
        comm.all_reduce(a, stream=stream)
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert a.get().tolist() == [8.0] * 100
    graph.close()
"""


def test_operations_are_ordered_as_all_others_and_can_be_captured(native):
    ranks_pass(ORDER, 2)


GROUPS = """
with connect() as comm, comm.device:
    got, sent = gg.empty(5, "int64"), gg.full(5, rank, "int64")
    with comm.group():
        comm.recv(got, 1 - rank)
        comm.send(sent, 1 - rank)
        comm.all_reduce(sent, total := gg.empty(5, "int64"))
    assert got.get().tolist() == [1 - rank] * 5 and total.get().tolist() == [1] * 5
    try:
        with comm.group():
            comm.send(sent, 1 - rank)
            raise KeyError
    except KeyError:
        pass
    comm.all_reduce(sent)  # nothing of the group was queued
    assert sent.get().tolist() == [1] * 5
"""


def test_messages_of_a_group_progress_together(native):
    ranks_pass(GROUPS, 2)


SPLIT = """
with connect() as comm, comm.device:
    with comm.split(rank % 2, key=-rank) as part:
        assert (part.size, part.transport) == (2, comm.transport)
        assert part.rank == (1 if rank < 2 else 0)
        assert part.all_reduce(gg.full(3, rank)).get().tolist() == [rank % 2 * 2 + 2] * 3
    none = comm.split(None if rank else 7)
    assert (none is None) == (rank != 0)
"""


def test_a_communicator_is_split_by_color_and_key(native):
    ranks_pass(SPLIT, 4)


BORROWED = """
with connect() as comm, comm.device:
    with gg.Communicator.from_handle(comm.handle, comm.device) as borrowed:
        assert (borrowed.rank, borrowed.size, borrowed.transport) == (rank, size, comm.transport)
        assert borrowed.all_reduce(gg.ones(3)).get().tolist() == [2.0] * 3
        for call in (borrowed.barrier, lambda: borrowed.all_reduce(np.ones(3))):
            try:
                call()
            except gg.UnsupportedError:
                pass
            else:
                sys.exit("no error")
        try:
            borrowed.split(0)
        except gg.UnsupportedError as error:
            assert str(error).startswith("split: this communicator was borrowed"), error
        else:
            sys.exit("no error")
    assert comm.all_reduce(gg.ones(3)).get().tolist() == [2.0] * 3
"""


def test_a_handle_is_borrowed_from_other_code(native):
    ranks_pass(BORROWED, 2)


WRONG = """
comm = connect()
here, other = comm.device, gg.Device(f"{backend}:{1 - rank}")
x = gg.ones(4, device=here)
for call, error, words in [
    (lambda: comm.all_reduce(gg.ones(4, device=other)), gg.InvalidArgumentError, "expected the communicator's device"),
    (lambda: comm.all_reduce(x, gg.ones(3, device=here)), gg.InvalidArgumentError, "expected 4"),
    (lambda: comm.all_reduce(x, gg.ones(4, "f4", device=here)), gg.InvalidArgumentError, "dtype"),
    (lambda: comm.all_reduce(x, x[::-1]), gg.InvalidArgumentError, "C-contiguous"),
    (lambda: comm.all_reduce(x, np.ones(4)), gg.InvalidArgumentError, "both"),
    (lambda: comm.all_reduce(x, op="mean"), gg.InvalidArgumentError, "'avg'"),
    (lambda: comm.all_reduce(x, op=None), gg.InvalidArgumentError, "op is None"),
    (lambda: comm.all_reduce(x, op=1), gg.InvalidArgumentError, "op is 1"),
    (lambda: comm.all_reduce(x, op=True), gg.InvalidArgumentError, "op is True"),
    (lambda: comm.all_reduce(gg.ones(4, "i4", device=here), op="avg"), gg.UnsupportedError, "average"),
    (lambda: comm.all_gather(x, x), gg.InvalidArgumentError, "there are 2 ranks"),
    (lambda: comm.reduce_scatter(gg.ones(3, device=here), x), gg.InvalidArgumentError, "multiple of 2"),
    (lambda: comm.send(x, rank), gg.InvalidArgumentError, "send_recv"),
    (lambda: comm.send(x, 5), gg.InvalidArgumentError, "expected a rank"),
    (lambda: comm.all_reduce(x[:3], x[1:]), gg.InvalidArgumentError, "overlap"),
]:
    try:
        call()
    except error as caught:
        assert words in str(caught), (words, str(caught))
    else:
        sys.exit(f"no error: {words}")
assert comm.all_reduce(x).get().tolist() == [2.0] * 4
comm.close()
"""


def test_a_wrong_argument_is_an_error_and_queues_nothing(native):
    ranks_pass(WRONG, 2)


# ---- threads

# Print the signals that the thread of this name blocks, and end the process.
PRINT_MASK = """
import threading
def masks():
    for task in os.listdir("/proc/self/task"):
        try:
            lines = dict(line.split(":", 1) for line in open(f"/proc/self/task/{task}/status"))
        except OSError:  # the thread has ended
            continue
        yield lines["Name"].strip(), int(lines["SigBlk"], 16)
def wait_for(name):
    found, reads = {}, 0
    while name not in found or found[name] & 0xff == 0xff and (reads := reads + 1) < 1000:  # pthread_create blocks all for a moment
        time.sleep(0.01)
        found = dict(masks())
    print(name, found[name], flush=True)
    os._exit(0)
threading.Thread(target=wait_for, args=[os.environ["THREAD"]], daemon=True).start()
"""
# For Communicator() the library never returns, so that the thread which runs that call can be read, too.
THREADS = PRINT_MASK + """
comm = connect()
if "GPUGLUE_SIM_HANG" in os.environ:
    print("not simulated", flush=True)
    os._exit(0)
time.sleep(120)
"""


def assert_blocks_all_but_faults(printed, thread):
    name, mask = printed.split()
    blocked = {number for number in range(1, 65) if int(mask) >> (number - 1) & 1}
    assert name == thread and {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1} <= blocked
    assert not {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL} & blocked


@pytest.mark.parametrize("thread, variables", [("gpuglue-watch", {}), ("gpuglue-call", {"GPUGLUE_SIM_HANG": "ncclCommInitRank"})])
def test_threads_of_a_communicator_block_all_signals_but_those_of_faults(native, thread, variables):
    (printed,) = ranks_pass(THREADS, 1, THREAD=thread, **variables)
    if printed == "not simulated\n":
        pytest.skip("only a simulated library does not return when it is asked not to")
    assert_blocks_all_but_faults(printed, thread)


# ---- the choice

CHOICE = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    comm = connect({options})
reason = str(caught[0].message) if caught else ""
assert comm.transport == {transport!r} and {words!r} in reason and bool(reason) == bool({words!r}), (comm.transport, reason)
x = np.ones(3) if comm.device is None else gg.ones(3, device=comm.device)
assert np.asarray(comm.all_reduce(x) if comm.device is None else comm.all_reduce(x).get()).tolist() == [size] * 3
comm.close()
"""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ('device=f"{backend}:0"', "ranks 0 and 1 use the same device"),
        ('device=f"{backend}:0" if rank == 0 else None', "rank 1 has no device"),
        ('device=f"{backend}:0" if rank == 0 else "host"', "rank 1: "),
        ('transport="staged"', ""),
    ],
    ids=["same-device", "no-device", "host-device", "requested"],
)
def test_ranks_that_cannot_use_a_library_are_staged_with_the_reason(native, options, words):
    ranks_pass(CHOICE.format(options=options, transport="staged", words=words), 2)


def test_a_library_that_is_too_old_is_not_used(native_simulated):
    code = CHOICE.format(options="", transport="staged", words="has version 2.10.0, expected 2.13 or newer")
    ranks_pass(code, 2, GPUGLUE_SIM_NCCL_VERSION="21000")


def test_ranks_with_different_versions_of_the_library_are_staged(native_simulated):
    code = CHOICE.format(options="", transport="staged", words="rank 0 has version 2.20.3")
    variables = {rank: {"GPUGLUE_SIM_DEVICES": "4", "GPUGLUE_SIM_NCCL_VERSION": version} for rank, version in enumerate(["22003", "22105"])}
    results = run_on_devices(code, 2, variables)
    assert [status for _, status in results] == [0, 0], results


def test_without_devices_the_transport_is_host():
    ranks_pass(CHOICE.format(options="device=None", transport="host", words=""), 2)


REFUSED = """
try:
    connect({options})
except {error} as error:
    assert {words!r} in str(error), str(error)
else:
    sys.exit("no error")
"""


def test_a_transport_that_is_named_and_cannot_be_used_is_an_error_on_all_ranks(native):
    other = "rccl" if native == "nccl" else "nccl"
    code = REFUSED.format(options=f"transport={other!r}", error="gg.UnsupportedError", words=f"whose library is '{native}'")
    ranks_pass(code, 2)
    ranks_pass(REFUSED.format(options='device=f"{backend}:0", transport=%r' % native, error="gg.UnsupportedError", words="the same device"), 2)


def test_ranks_that_want_different_transports_are_refused(native):
    options = 'transport="staged" if rank else "auto"'
    ranks_pass(REFUSED.format(options=options, error="gg.InvalidArgumentError", words="rank 0 wants the transport 'auto', and rank 1 'staged'"), 2)


def test_a_transport_that_does_not_exist_is_refused():
    with pytest.raises(gg.InvalidArgumentError, match="'mpi', expected one of"):
        gg.Communicator(0, 1, transport="mpi")


def test_oneccl_is_refused_with_the_reason(device):
    for create in (lambda **options: gg.Communicator(0, 1, **options), lambda **options: gg.Communicator.from_devices([device], **options)):
        with pytest.raises(gg.UnsupportedError, match="'oneccl' cannot be used: .* SYCL queue.* 'staged'"):
            create(transport="oneccl")


def test_a_failed_creation_is_the_same_error_on_all_ranks(native_simulated):
    code = REFUSED.format(options="", error="gg.CommunicatorError", words="rank 1: ")
    variables = {rank: {"GPUGLUE_SIM_DEVICES": "4"} for rank in range(3)}
    variables[1]["GPUGLUE_SIM_FAIL"] = "ncclCommInitRank:1"
    results = run_on_devices(code, 3, variables)
    assert [status for _, status in results] == [0] * 3, results


OPENED_AGAIN = """
from gpuglue import _core
from gpuglue._communicator_device import ALL_REDUCE
comm = _core._comm_create(rank, size, "127.0.0.1", int(os.environ["GPUGLUE_COMM_PORT"]), "again", 60 * 10**9)
device = gg.Device(f"{backend}:{rank}")
try:
    _core._comm_open_device(comm, device, "auto")
except gg.CommunicatorError as error:
    assert "rank 1: " in str(error), str(error)
else:
    sys.exit("no error")
if rank == 2:
    os.environ["GPUGLUE_SIM_NCCL_SLOW"] = "ncclCommInitRank"  # the others wait for it
name = _core._comm_open_device(comm, device, "auto")[0]
assert name in ("nccl", "rccl"), name
with device:
    x = gg.ones(10)
    _core._comm_queue(comm, ALL_REDUCE, x, x, "sum", 0, 0, None)
    assert x.get().tolist() == [3.0] * 10
_core._comm_close_device(comm)
"""


def test_a_device_is_opened_again_after_a_failure(native_simulated):
    variables = {rank: {"GPUGLUE_SIM_DEVICES": "4"} for rank in range(3)}
    variables[1]["GPUGLUE_SIM_FAIL"] = "ncclCommInitRank:1"
    results = run_on_devices(OPENED_AGAIN, 3, variables)
    assert [status for _, status in results] == [0] * 3, results


REAL_PATHS = [
    str(Path(np.__file__).parents[1] / "nvidia/nccl/lib/libnccl.so.2"),
    *(f"/usr/local/{name}/libnccl.so.2" for name in ("cuda/lib64", "cuda/lib", "cuda-13.0/lib")),
    "/usr/lib/x86_64-linux-gnu/libnccl.so.2",
]
REAL = """
try:
    connect(transport="nccl")
except (gg.CommunicatorError, gg.UnsupportedError) as error:
    print("refused", error)
else:
    sys.exit("no error")
"""


def test_nvidias_own_library_has_every_function_and_its_refusal_is_reported(device):
    if not device.backend == "cuda" or "GPUGLUE_NCCL_LIBRARY" not in os.environ:
        pytest.skip("needs the simulated CUDA driver")
    found = [path.resolve() for path in map(Path, REAL_PATHS) if path.exists()]
    if not found:
        pytest.skip(f"there is none of {', '.join(REAL_PATHS)}")
    for output in ranks_pass(REAL, 2, GPUGLUE_NCCL_LIBRARY=str(found[0])):
        assert "lacks the function" not in output and str(found[0]) in output and "ncclUnhandledCudaError" in output, output


COPIES = """
import ctypes
ctypes.CDLL(os.environ["OTHER_COPY"])
comm = connect()
print(comm.library[0])
comm.close()
"""


def test_two_copies_of_the_library_are_both_named(native, tmp_path):
    used = Path(os.environ.get(LIBRARIES["cuda" if native == "nccl" else "hip"][1], "/nonexistent"))
    if not used.exists():
        pytest.skip("needs the simulated library")
    other = tmp_path / used.name
    other.write_bytes(used.read_bytes())
    [output] = ranks_pass(COPIES, 1, OTHER_COPY=str(other), GPUGLUE_LOG="warn")
    assert f"gpuglue uses {used}" in output and str(other) in output, output


class Owner:
    """Of memory that another library allocated."""


def test_imported_memory_is_returned_while_operations_are_queued(device, native):
    alive, most = weakref.WeakSet(), 0
    with gg.Communicator(0, 1, device=device, transport=native) as comm, device:
        x, memory, stream, event = gg.zeros(8, "f4"), gg.zeros(64, "u1"), gg.Stream(nonblocking=True), gg.Event()
        for i in range(1000):
            owner = Owner()
            alive.add(owner)
            gg.Buffer.from_ptr(memory.ptr, 64, device=device, owner=owner).record_use(stream)
            comm.all_reduce(x, stream=stream)
            del owner
            most = max(most, len(alive))
            if i % 16 == 0:
                event.record(stream)
                while not event.done:
                    pass
    assert most < 400
