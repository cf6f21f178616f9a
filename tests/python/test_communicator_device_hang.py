"""Communicators with devices: which rank is named if a process stops or a device hangs after all ranks have queued the same."""

import pytest
from test_communicator_device import native, native_simulated, ranks_pass, ranks_pass_within

__all__ = ["native", "native_simulated"]

# hang(stream): the device does not go on with the stream, while the process runs.
HEAD = """
import ctypes
def failed(*error):
    sys.__excepthook__(*error)
    os._exit(1)  # a normal end would wait for the device
sys.excepthook = failed
def hang(stream):
    library, name = {"cuda": ("libcuda.so.1", "cuLaunchHostFunc"), "hip": ("libamdhip64.so", "hipLaunchHostFunc")}[backend]
    driver = ctypes.CDLL(os.environ.get(f"GPUGLUE_{backend.upper()}_LIBRARY", library))
    if not hasattr(driver, name):
        print("SKIP: this driver has no", name)
        return
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: time.sleep(100000))
    hang.functions = [*getattr(hang, "functions", []), function]
    assert getattr(driver, name)(ctypes.c_void_p(stream.handle), function, None) == 0
def wait(polls=rank == 1):
    if not polls:
        s.synchronize()
    while polls:  # a wait for a device that hangs would not end
        with comm.group():
            time.sleep(0.05)
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
        hang(s)
    for _ in range(COUNT):
        {operation}
"""
OPERATIONS = {"all_reduce": "comm.all_reduce(x, stream=s)", "graph": "graph.launch(s)"}


def hang_passes(code, size, **variables):
    outputs = ranks_pass_within(HEAD + code, size, **variables)
    if any("SKIP" in output for output in outputs):
        pytest.skip("this driver has no host function that is queued")


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("count", [1, 1000])
def test_the_rank_whose_device_hangs_is_named_within_the_timeout_of_one_operation(native, count, operation):
    hang_passes(HANGS.replace("COUNT", str(count)).format(operation=OPERATIONS[operation]) + FAILS, 3)


# The others queue their part once rank 1 has stopped, so that the operation is unfinished then.
STOPS = """
    import numpy as np
    pids = gg.to_gpu(np.array([os.getpid()] * (rank == 1) + [0] * (rank != 1)))
    pid = int(comm.all_reduce(pids).get()[0])
    while rank != 1 and open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)
    for _ in range(COUNT):
        comm.all_reduce(x, stream=s)
    if rank == 1:
        os.kill(pid, signal.SIGSTOP)
    if rank == 0:
        try:
            s.synchronize()
        except gg.CommunicatorError as error:
            first = error
        def wait():
            raise first
        os.kill(pid, signal.SIGCONT)
"""


@pytest.mark.parametrize("count", [1, 1000])
def test_a_rank_that_stops_after_it_has_queued_all_is_named(native_simulated, count):
    """The simulated device belongs to the process; a device would complete what is queued."""
    hang_passes(STOPS.replace("COUNT", str(count)) + FAILS, 3)


NOBODY = """
    os.environ["GPUGLUE_SIM_NCCL_WORK"] = "1000000"
    for _ in range(3):
        comm.all_reduce(x, stream=s)
    try:
        wait(True)
    except gg.CommunicatorError as error:
        assert error.ranks == () and "all ranks have queued their part" in str(error), str(error)
    else:
        sys.exit("no error")
os._exit(0)
"""


def test_no_rank_is_named_if_all_devices_have_begun(native_simulated):
    hang_passes(NOBODY, 3)


IN_THE_MIDDLE = """
    for at in range(200):
        if rank == 1 and at == 100:
            hang(s)
        comm.all_reduce(x, stream=s)
    try:
        wait()
    except gg.CommunicatorError as error:
        assert error.ranks in ((), (1,)) and "within the timeout" in str(error), str(error)
    else:
        sys.exit("no error")
os._exit(0)
"""


def test_a_hang_behind_many_operations_does_not_add_up_their_timeouts(native):
    hang_passes(IN_THE_MIDDLE, 3)


ENDS = """
    y = gg.ones(1000)
    gg.synchronize()
    if rank == 1:
        hang(s)
    {queue}
"""
QUEUED = {
    "graph": "graph.launch(s); graph.launch(s)",
    "group": "with comm.group(): comm.send(x, 1 - rank, stream=s); comm.recv(y, 1 - rank, stream=s)",
}


@pytest.mark.parametrize("queue", QUEUED.values(), ids=QUEUED)
def test_the_error_of_queued_work_does_not_name_another_call(native, queue):
    hang_passes(ENDS.format(queue=queue) + FAILS, 2)
