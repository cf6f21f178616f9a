"""Communicators without a library: devices copy arrays, part by part, from and to the memory that the ranks share, or pinned buffers."""

import pytest
from conftest import needs
from test_communicator_device import native, ranks_pass, run_on_devices

__all__ = ["native"]

# Ranks may share a device.
LARGE = """
found = gg.devices(backend)
comm = connect(transport="staged", device=found[rank % len(found)])
random = np.random.default_rng(0)
equal = np.testing.assert_array_equal
def reach(array):  # rank 1 has its arrays in memory of the host
    return array.copy() if DEVICE_OF_ALL == "no" and rank == 1 else gg.to_gpu(array)
def back(array):
    return array if isinstance(array, np.ndarray) else array.get()
def room(*shape):
    return reach(np.empty(shape, dtype))
with comm.device:
    for name, n in LENGTHS:
        dtype = np.dtype(name)
        each = random.integers(0, 3, (size, size, n)).astype(dtype)  # what each rank has
        mine, x = each[rank], reach(each[rank])
        expected = np.add.reduce(each, axis=0, dtype=dtype)
        equal(back(comm.all_reduce(x, room(size, n))), expected, name)
        equal(back(comm.all_reduce(reach(mine))), expected, name)
        equal(back(comm.reduce_scatter(x, room(n))), expected[rank])
        whole = reach(mine)
        equal(back(comm.reduce_scatter(whole, whole[rank])), expected[rank])  # in place
        total = comm.reduce(reach(mine), root=size - 1)
        assert (total is None) == (rank != size - 1)
        if total is not None:
            equal(back(total), expected)
        equal(back(comm.broadcast(reach(mine), root=size - 1)), each[size - 1])
        equal(back(comm.all_gather(x[0], room(size, n))), each[:, 0])
        whole = reach(np.zeros((size, n), dtype))
        whole[rank] = x[rank]
        comm.all_gather(whole[rank], whole)
        equal(back(whole), each[np.arange(size), np.arange(size)])
        gathered = comm.gather(x, room(size, size, n) if rank == 0 else None)
        if rank == 0:
            equal(back(gathered), each)
        equal(back(comm.scatter(x if rank == size - 1 else None, room(n), root=size - 1)), each[size - 1, rank])
        equal(back(comm.all_to_all(x, room(size, n))), each[:, rank])
        equal(back(comm.all_to_all(reach(mine))), each[:, rank])
        equal(back(comm.send_recv(x, (rank + 1) % size, room(size, n), (rank - 1) % size)), each[rank - 1])
        equal(back(comm.send_recv(x, rank, room(size, n), rank)), mine)
        if rank == 0:
            comm.send(x, 1)
        elif rank == 1:
            equal(back(comm.recv(room(size, n), 0)), each[0])
        host = np.empty((size, n), dtype)
        equal(comm.all_reduce(x, host), expected)  # from a device to the host
        equal(back(comm.all_gather(mine[0], room(size, n))), each[:, 0])
comm.close()
"""


def results_are_those_of_numpy(size, on_devices, lengths):
    code = LARGE.replace("DEVICE_OF_ALL", repr(on_devices)).replace("LENGTHS", repr(lengths))
    ranks_pass(code, size, shared=True, GPUGLUE_SIM_DEVICES=str(max(4, size)))


@pytest.mark.parametrize(("size", "on_devices"), [(2, "all"), (3, "no")])
def test_arrays_of_several_buffers_have_the_results_of_numpy(device, size, on_devices):
    results_are_those_of_numpy(size, on_devices, [("float32", 700_001), ("float16", 600_011), ("complex128", 150_001), ("uint8", 1_048_577)])


# With more ranks a buffer has less of each block.
@pytest.mark.parametrize(("size", "on_devices"), [(5, "all"), (6, "no"), (7, "all"), (8, "all")])
def test_results_of_many_ranks_are_those_of_numpy(device, size, on_devices):
    results_are_those_of_numpy(size, on_devices, [("float32", 60_001), ("uint8", 7)])


@pytest.mark.parametrize("size", [1, 4])
def test_every_operation_has_the_result_of_numpy(device, size):
    code = "import rank_operations\nwith connect(transport='staged', device=f'{backend}:0') as comm, comm.device: rank_operations.check_devices(comm)"
    ranks_pass(code, size, shared=True)


PENDING = """
import conftest, threading
comm = connect(transport="staged")
with comm.device:
    x, stream = gg.full(1_000_000, rank + 1.0), gg.Stream()
    gg.synchronize()
    gate = conftest.Gate(conftest.gate_library()).hold(stream)
    with stream:
        gg.fill(x, 10.0 * (rank + 1))  # pending work on another stream
    threading.Timer(0.5, gate.open).start()  # an exchange that did not wait would have read x before
    with gg.Stream():  # unlike the default stream, it does not wait for others by itself
        assert (comm.all_reduce(x).get() == 30.0).all()
"""


def test_an_exchange_waits_for_work_on_other_streams(device):
    needs(device, "stream_host_func", "stream_borrow", "stream_native")
    ranks_pass(PENDING, 2)


CAPTURED = """
comm = connect(transport="staged")
with comm.device:
    x, stream = gg.ones(1000, "float32"), gg.Stream()
    gg.synchronize()
    for named, words in ((True, "captur"), (False, "exchange through the host, which cannot be captured")):
        try:
            with gg.capture(stream), stream:
                gg.fill(x, 2.0, stream=stream)
                comm.all_reduce(x, stream=stream if named else None)
        except gg.Error as error:
            assert words in str(error), str(error)
        else:
            sys.exit("no error")
    assert comm.all_reduce(gg.ones(5)).get().tolist() == [size] * 5
"""


def test_an_exchange_through_the_host_is_not_captured(native):
    ranks_pass(CAPTURED, 2)


FAILS = """
comm = connect(transport="staged")
with comm.device:
    x = gg.zeros(4_000_000)
    gg.synchronize()
    comm.barrier()
    try:
        comm.all_reduce(x)
    except gg.CommunicatorError as error:
        assert rank == 0 and error.ranks == (1,) and "got an error" in str(error) and "SYMBOL" in str(error), str(error)
    except gg.DeviceError as error:
        assert rank == 1 and "SYMBOL" in str(error), str(error)
        try:
            comm.barrier()
        except gg.CommunicatorError as later:
            assert later.ranks == (1,), later.ranks
    else:
        sys.exit("no error")
"""


FUNCTIONS = {
    "cuda": {"reading": "cuMemcpyDtoHAsync_v2:4", "writing": "cuMemcpyHtoDAsync_v2:3"},
    "hip": {"reading": "hipMemcpyDtoHAsync:4", "writing": "hipMemcpyHtoDAsync:3"},
}


@pytest.mark.parametrize("side", ["reading", "writing"])
def test_a_copy_that_fails_during_an_exchange_is_reported_on_all_ranks(device, side):
    if device.backend not in FUNCTIONS:
        pytest.skip(f"the functions that copy on {device.backend} are not named")
    if "Simulated" not in device.name:
        pytest.skip(f"only a simulated driver fails on request, and this is {device.name}")
    variables = {rank: {"GPUGLUE_SIM_DEVICES": "2"} for rank in range(2)}
    variables[1]["GPUGLUE_SIM_FAIL"] = FUNCTIONS[device.backend][side]
    code = FAILS.replace("SYMBOL", {"cuda": "CUDA_ERROR", "hip": "hipError"}[device.backend])
    results = run_on_devices(code, 2, variables)
    assert [status for _, status in results] == [0, 0], results


DIES = """
import threading
comm = connect(transport="staged")
with comm.device:
    x = gg.ones(1_000_000)
    comm.all_reduce(x)
    if rank == 1:
        threading.Timer(0.5, os.kill, (os.getpid(), 9)).start()
    try:
        while True:
            comm.all_reduce(x, op="avg")
    except gg.CommunicatorError as error:
        assert error.ranks == (1,), str(error)
"""


def test_a_rank_that_is_killed_during_an_exchange_is_named(device):
    results = run_on_devices(DIES, 3, dict.fromkeys(range(3), {"GPUGLUE_SIM_DEVICES": "4"}))
    assert [status for _, status in results] == [0, -9, 0], results


LATE = """
from pathlib import Path
comm = connect(transport="staged", timeout=2)
done = Path(os.environ["DONE"])
with comm.device:
    x = gg.ones(1_000_000)
    comm.all_reduce(x)
    if rank == 1:
        while not done.exists():
            time.sleep(0.1)
        os._exit(0)
    try:
        comm.all_reduce(x)
    except gg.CommunicatorError as error:
        done.touch()
        assert error.ranks == (1,) and "timeout" in str(error), str(error)
    else:
        sys.exit("no error")
"""


def test_a_rank_that_does_not_come_to_an_exchange_is_named_after_the_timeout(device, tmp_path):
    ranks_pass(LATE, 2, DONE=str(tmp_path / "done"))


MOVES = """
import json
comm = connect(transport="staged")
block, whole = 4 * 700_001, 4 * 700_001 * size
def copied(call, *expected):  # bytes that are copied, by rank
    with gg.trace(os.environ["TRACE"] + str(rank)):
        call()
    with open(os.environ["TRACE"] + str(rank)) as file:
        copies = [event for event in json.load(file)["traceEvents"] if event["name"] == "copy"]
    assert sum(copy["args"]["bytes"] for copy in copies) == expected[min(rank, len(expected) - 1)], (expected, copies)
with comm.device:
    x, out = gg.full((size, 700_001), rank, "float32"), gg.zeros((size, 700_001), "float32")
    copied(lambda: comm.all_to_all(x, out), 2 * whole)
    copied(lambda: comm.all_gather(x[0], out), block + whole)
    copied(lambda: comm.gather(x[0], out if rank == 0 else None), block + whole, block)
    copied(lambda: comm.scatter(x if rank == 0 else None, out[0]), whole + block, block)
    copied(lambda: comm.broadcast(x), whole)
    copied(lambda: comm.send_recv(x, (rank + 1) % size, out, (rank - 1) % size), 2 * whole)
    copied(lambda: comm.send(x, 1) if rank == 0 else comm.recv(out, 0) if rank == 1 else None, whole, whole, 0)
    copied(lambda: comm.all_reduce(x, out), 2 * whole)
    assert (out.get() == 0).all()  # of rank 0's x, which was broadcast
    assert comm.device.pinned_pool.stats().allocations == 0  # no buffer, from or to which a processor would copy
"""


def copies_through_the_host(device, code, size, **variables):
    needs(device, "mem_register")
    if device.backend == "host":
        pytest.skip("arrays on the host are not staged")
    ranks_pass(code, size, shared=True, **variables)


def test_the_device_copies_each_byte_itself_where_the_shared_memory_is_locked(device, tmp_path):
    copies_through_the_host(device, MOVES, 3, TRACE=str(tmp_path / "trace"))


LOCKS = {
    "cuda": ("cuMemHostRegister_v2", "CUDA_ERROR", "cuMemHostUnregister"),
    "hip": ("hipHostRegister", "hipError", "hipHostUnregister"),
    "ze": ("zexDriverImportExternalPointer", "importing", "zexDriverReleaseImportedPointer"),
}


def lock_of(device):
    if "Simulated" not in device.name:
        pytest.skip(f"only a simulated driver fails on request, and this is {device.name}")
    return LOCKS[device.backend]


REPORTS = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    comm = connect(transport="staged", device=f"{backend}:0")
texts = [str(warning.message) for warning in caught]
assert ["copies through buffers" in text and "SYMBOL" in text for text in texts] == [True] * (rank in REFUSED), texts
with comm.device:
    for n in (700_001, 1):
        each = np.arange(size * size * n, dtype="float32").reshape(size, size, n)
        x, out = gg.to_gpu(each[rank]), gg.zeros((size, n), "float32")
        for _ in range(2):
            assert (comm.all_to_all(x, out).get() == each[:, rank]).all()
            assert (comm.all_reduce(x, out).get() == np.add.reduce(each)).all()
            assert (comm.send_recv(x, (rank + 1) % size, out, (rank - 1) % size).get() == each[rank - 1]).all()
            assert (comm.broadcast(x if rank == 0 else out).get() == each[0]).all()
        assert n == 1 or (comm.device.pinned_pool.stats().allocations > 0) == (rank in REFUSED or size < 3)
"""


@pytest.mark.parametrize("refused", [{0, 1, 2}, {1}, {0}], ids=["all", "one of three", "one of two"])
def test_ranks_whose_driver_refuses_to_lock_memory_copy_through_buffers_and_say_so(device, refused):
    needs(device, "mem_register")
    if device.backend == "host":
        pytest.skip("arrays on the host are not staged")
    function, symbol, _ = lock_of(device)
    size = 2 if refused == {0} else 3
    variables = {rank: {"GPUGLUE_SIM_FAIL": f"{function}:1+"} if rank in refused else {} for rank in range(size)}
    results = run_on_devices(REPORTS.replace("REFUSED", repr(refused)).replace("SYMBOL", symbol), size, variables, shared=True)
    assert [status for _, status in results] == [0] * size, results


ENDS = """
def mapped():
    with open("/proc/self/maps") as file:
        return sum("gpuglue-comm" in line for line in file)
def exchanges(comm):
    assert comm.all_gather(x, out).get().tolist() == [[0.0] * 1000, [1.0] * 1000]
comm = connect(transport="staged")
with comm.device:
    x, out = gg.full(1000, float(rank)), gg.empty((2, 1000))
    exchanges(comm)
    child = os.fork()
    if child == 0:
        comm.close()
        os._exit(0 if mapped() else 1)  # the parent's driver has locked it
    assert os.waitpid(child, 0)[1] == 0
    exchanges(comm)
    assert mapped() == 1
    comm.close()
    gg.synchronize()
    assert mapped() == KEPT, mapped()
    again = connect(transport="staged")
    exchanges(again)
"""


@pytest.mark.parametrize("kept", [0, 1], ids=["unlocked", "not unlocked"])
def test_the_shared_memory_is_mapped_until_the_driver_has_unlocked_it(device, kept):
    function = lock_of(device)[2] if kept and device.backend != "host" else ""
    if device.backend == "host":
        pytest.skip("arrays on the host are not staged")
    copies_through_the_host(device, ENDS.replace("KEPT", str(kept)), 2, **({"GPUGLUE_SIM_FAIL": f"{function}:1"} if kept else {}))
