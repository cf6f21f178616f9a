"""Communicators without a library: arrays in device memory pass through pinned buffers, part by part."""

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
