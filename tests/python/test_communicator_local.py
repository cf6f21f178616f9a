"""Communicator.from_devices: ranks that are threads of one process."""

import os
import warnings

import pytest
from conftest import simulated, time_limits
from test_communicator_device import (
    GROUPS,
    HEAD,
    LIBRARIES,
    ORDER,
    PRINT_MASK,
    RESULTS,
    assert_blocks_all_but_faults,
    native,
    native_simulated,
    ranks_pass,
    transport,
)

import gpuglue as gg

__all__ = ["native", "native_simulated", "transport"]

# Each rank has a device of its own, where the simulated driver has several.
THREADS = """
import linecache, threading, traceback
devices = [f"{backend}:{rank if backend in ('cuda', 'hip') else 0}" for rank in range(int(os.environ["RANKS"]))]
def create(given=devices, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gg.Communicator.from_devices(given, **{"timeout": PATIENCE, **options})
def each(body, comms):
    ended = []
    def run(comm):
        try:
            body(comm)
        except BaseException:
            ended.append(f"rank {comm.rank}: {traceback.format_exc()}")
            comm.abort()  # raises if the body has closed it
    threads = [threading.Thread(target=run, args=[comm]) for comm in comms]
    for thread in threads:
        thread.start()
    return threads, ended
def together(body, comms):
    threads, ended = each(body, comms)
    for thread in threads:
        thread.join()
    none_failed(ended)
def none_failed(ended):
    if ended:
        sys.exit("\\n".join(ended))
def run_program(text, names):
    linecache.cache["<program>"] = len(text), None, text.splitlines(True), "<program>"  # for tracebacks
    exec(compile(text, "<program>", "exec"), names)
def failure(call, *ranks):
    try:
        call()
    except gg.CommunicatorError as error:
        assert error.ranks == ranks, (error.ranks, str(error))
        return str(error)
    sys.exit("no error")
"""
assert HEAD  # ranks_pass begins with it


def passes(code, ranks=3, **variables):
    backend = gg.current_device().backend
    found = gg.devices(backend)
    if backend in LIBRARIES and len(found) < ranks and "Simulated" not in found[0].name:
        pytest.skip(f"{ranks} devices are needed, and there are {len(found)}")
    return ranks_pass(THREADS + code, 1, RANKS=str(ranks), **variables)


AS_PROCESSES = """
comms = create(transport=os.environ["TRANSPORT"])
assert [(comm.rank, comm.size, comm.device) for comm in comms] == [(rank, len(devices), gg.Device(name)) for rank, name in enumerate(devices)]
together(lambda comm: run_program(PROGRAM, {**globals(), "rank": comm.rank, "size": comm.size, "connect": lambda **options: comm}), comms)
"""


@pytest.mark.parametrize("ranks", [1, 4])
def test_results_of_threads_are_those_of_numpy(transport, ranks):
    passes(f"PROGRAM = {RESULTS!r}{AS_PROCESSES}", ranks, TRANSPORT=transport)


@pytest.mark.parametrize("program", [ORDER, GROUPS], ids=["order", "groups"])
def test_operations_of_threads_are_ordered_captured_and_grouped_as_those_of_processes(native, program):
    passes(f"PROGRAM = {program!r}{AS_PROCESSES}", 2, TRANSPORT="auto")


ALL = """
comms = create(None)
assert [comm.device for comm in comms] == gg.devices(backend), comms
together(lambda comm: comm.barrier(), comms)
for comm in comms:
    comm.close()
"""


def test_the_ranks_are_all_devices_of_the_backend_if_none_is_given(device):
    passes(ALL)


TWICE = """
given = [devices[0]] * 2
name = os.environ["TRANSPORT"]
try:
    create(given, transport=name)
except gg.UnsupportedError as error:
    assert "same device" in str(error), str(error)
else:
    sys.exit("no error")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    comms = gg.Communicator.from_devices(given, timeout=60)
assert len(caught) == 1 and "same device" in str(caught[0].message) and caught[0].filename == "<string>", caught
assert [comm.transport for comm in comms] == ["staged"] * 2
together(lambda comm: comm.all_reduce(gg.ones(3, device=comm.device)), comms)
"""


def test_one_device_for_two_ranks_is_staged_with_the_reason_or_refused(native):
    passes(TWICE, TRANSPORT=native)


@pytest.mark.parametrize(
    ("given", "options", "error", "text"),
    [
        ([], {}, gg.InvalidArgumentError, "devices is empty"),
        ([0] * 257, {}, gg.InvalidArgumentError, "size is 257, expected 1 to 256"),
        ("host:0", {}, TypeError, "list of devices, not str"),
        (0, {}, TypeError, "list of devices, not int"),
        ([0, 2.5], {}, TypeError, "2.5"),
        (["nosuch:0"], {}, gg.Error, "nosuch"),
        ([0], {"transport": "tcp"}, gg.InvalidArgumentError, "transport is 'tcp'"),
        ([0], {"timeout": 0}, gg.InvalidArgumentError, "timeout is 0"),
    ],
)
def test_devices_that_cannot_be_ranks_are_refused(device, given, options, error, text):
    with pytest.raises(error, match=text):
        gg.Communicator.from_devices(given, **options)


def test_no_library_can_be_named_where_the_backend_has_none(device):
    if device.backend in LIBRARIES:
        pytest.skip(f"the backend {device.backend} has a library")
    with pytest.raises(gg.UnsupportedError, match="the transport 'nccl' cannot be used"):
        gg.Communicator.from_devices([device] * 2, transport="nccl")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        comms = gg.Communicator.from_devices([device] * 2)
    assert len(caught) == 1 and [comm.transport for comm in comms] == ["staged"] * 2


ALONE = """
try:
    comms = create(timeout=float(os.environ["LIMIT"]))
except gg.CommunicatorError as error:
    assert "timeout" in str(error), str(error)
    print("too slow", flush=True)
    os._exit(0)
text = failure(comms[0].barrier, 1, 2)
assert "ranks 1 and 2 did not take part" in text and "a thread of its own" in text, text
failure(comms[2].barrier, 1, 2)
for comm in comms:
    comm.close()
"""


def test_one_thread_for_all_ranks_ends_at_the_timeout_which_names_the_others(device):
    for limit in time_limits():
        (printed,) = passes(ALONE, LIMIT=str(limit))
        if printed != "too slow\n":
            return
    pytest.fail(f"the communicators were not created within {limit} s")


ABORT = """
comms = create(transport=os.environ["TRANSPORT"])
waiting = threading.Barrier(len(comms) + 1)
def body(comm):
    x = gg.ones(1000, device=comm.device)
    comm.all_reduce(x).get()
    waiting.wait()
    text = failure(comm.barrier if comm.rank else lambda: comm.recv(x, 1).get(), 1)
    assert "aborted" in text, text
threads, ended = each(body, [comms[0], comms[2]])
def partner(comm):
    comm.all_reduce(gg.ones(1000, device=comm.device)).get()
    waiting.wait()
each(partner, comms[1:2])
waiting.wait()
comms[1].abort()  # in the main thread
for thread in threads:
    thread.join()
none_failed(ended)
for comm in comms:
    comm.close()
"""


def test_an_abort_by_another_thread_ends_the_waits_of_all(transport):
    passes(ABORT, TRANSPORT=transport)


CLOSES = """
comms = create(transport=os.environ["TRANSPORT"])
left = threading.Event()
def body(comm):
    x = gg.ones(1000, device=comm.device)
    comm.all_reduce(x).get()
    if comm.rank == 1:
        comm.close()
        left.set()
        return
    left.wait()
    text = failure(lambda: print("got", comm.all_reduce(x).get()[:4], flush=True), 1)
    assert "closed" in text, text
together(body, comms)
for comm in comms:
    comm.close()
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_rank_that_closes_early_is_named_by_the_others(transport, ranks):
    passes(CLOSES, ranks, TRANSPORT=transport)


KEPT = """
from gpuglue import _communicator_calls as calls
errors, staged = [], calls._staged
def fails(*sides):
    if threading.current_thread().name == "rank 1":
        raise MemoryError("in the middle")
    return staged(*sides)
def body(comm):
    if comm.rank:
        threading.current_thread().name = "rank 1"
        try:
            comm.barrier()
        except MemoryError as error:
            errors.append(error)
        comm.close()
        return
    assert "rank 1 closed the communicator" in failure(comm.barrier, 1)
comms, calls._staged = create(transport="staged", timeout=10), fails
threads, ended = each(body, comms)
for thread in threads:
    thread.join()
none_failed(ended)
assert "in the middle" in str(errors[0])
"""


def test_a_rank_is_closed_although_the_program_keeps_the_exception_of_its_operation(device):
    passes(KEPT, 2)


ONE_BY_ONE = """
comms = create()
arrays = [gg.ones(1000, device=device) for device in devices]
together(lambda comm: comm.all_reduce(arrays[comm.rank]), comms)
for comm in comms:
    comm.close()
assert [array.get()[0] for array in arrays] == [3.0] * 3
"""


def test_one_thread_closes_all_and_none_is_aborted(native):
    passes(ONE_BY_ONE, GPUGLUE_SIM_CRASH="ncclCommAbort")


INTERRUPTED = """
comms = create(transport=os.environ["TRANSPORT"])
threads, ended = each(lambda comm: failure(comm.barrier, 0), comms[1:])
timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
timer.start()
try:
    comms[0].recv(np.empty(3), 1)  # in the main thread
except KeyboardInterrupt:
    pass
else:
    sys.exit("no error")
for thread in threads:
    thread.join()
none_failed(ended)
for comm in comms:
    comm.close()
"""


def test_ctrl_c_in_the_main_thread_ends_the_waits_of_all(transport):
    passes(INTERRUPTED, TRANSPORT=transport)


INTERRUPTED_CREATION = """
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    create()
except KeyboardInterrupt:
    os._exit(0)
sys.exit("no error")
"""


def test_ctrl_c_ends_the_creation(native_simulated):
    passes(INTERRUPTED_CREATION, GPUGLUE_SIM_HANG="ncclCommInitRank")


FAILED = """
try:
    create()
except gg.CommunicatorError as error:
    assert len(error.ranks) == 1 and "injected" in str(error), (error.ranks, str(error))
else:
    sys.exit("no error")
"""


def test_a_library_that_fails_for_one_rank_is_reported(native_simulated):
    passes(FAILED, GPUGLUE_SIM_FAIL="ncclCommInitRank:2")


# A size that no stack can have: no thread can be started.
WITHOUT_THREADS = """
import ctypes
with gg.Device(devices[0]) as device:
    gg.ones(3).get()
libc, attributes = ctypes.CDLL(None), ctypes.create_string_buffer(256)
assert libc.pthread_attr_init(attributes) == 0
assert libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(1 << 46)) == 0
assert libc.pthread_setattr_default_np(attributes) == 0
try:
    create(timeout=None)
except gg.OutOfMemoryError as error:
    assert "a thread cannot be started" in str(error), str(error)
else:
    sys.exit("no error")
"""


def test_a_rank_that_gets_no_thread_ends_the_creation_and_explains_it(device):
    passes(WITHOUT_THREADS)


# A driver maps such memory, too: only mappings count whose size is that of a communicator.
LEAVES_NOTHING = """
def shared():
    places = (line.split(maxsplit=1)[0].split("-") for line in open("/proc/self/maps") if "/dev/zero" in line)
    return [int(end, 16) - int(begin, 16) for begin, end in places]
def close(comms, size, before):
    for comm in comms:
        comm.close()
    while shared().count(size) > before:  # the ranks' own threads release it
        time.sleep(0.01)
def size_of(ranks):
    before = shared()
    comms = create(["host:0"] * ranks, transport="staged")
    (size,) = [size for size in set(shared()) if shared().count(size) > before.count(size)]
    close(comms, size, before.count(size))
    return size
for given, transport in ((devices, "staged"), (devices[:1] * 2, "nccl" if backend != "hip" else "rccl")):
    size = size_of(len(given))
    before = shared().count(size)
    try:
        comms = create(given, transport=transport)
    except gg.UnsupportedError:
        comms = []
    assert bool(comms) == (transport == "staged"), (transport, comms)
    assert shared().count(size) == before + bool(comms), (transport, size, before, shared())
    close(comms, size, before)
"""


def test_a_creation_that_fails_leaves_no_shared_memory(device):
    passes(LEAVES_NOTHING)


def test_the_threads_that_open_communicators_block_all_signals_but_those_of_faults(native_simulated):
    (printed,) = passes(PRINT_MASK + "create()", THREAD="gpuglue-open", GPUGLUE_SIM_HANG="ncclCommInitRank")
    assert_blocks_all_but_faults(printed, "gpuglue-open")


FORKED = """
comms = create()
child = os.fork()
if child == 0:
    try:
        comms[0].barrier()
    except gg.ForkError:
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
together(lambda comm: comm.barrier(), comms)
"""


def test_a_forked_child_cannot_use_them_and_the_parent_still_can(device):
    passes(FORKED)


SPLIT = """
comms = create()
def body(comm):
    for _ in range(2):
        part = comm.split(comm.rank % 2, key=-comm.rank)
        assert (part.size, part.device, part.transport) == (2, comm.device, comm.transport)
        assert part.rank == (1 if comm.rank < 2 else 0)
        x = part.all_reduce(gg.full(3, comm.rank, device=comm.device))
        assert x.get().tolist() == [comm.rank % 2 * 2 + 2] * 3
        part.close()
    assert (comm.split(None if comm.rank else 7) is None) == (comm.rank != 0)
together(body, comms)
"""


def test_ranks_of_one_process_can_be_split(device):
    passes(SPLIT, 4)


TWO_BACKENDS = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    comms = gg.Communicator.from_devices(["cuda:0", "hip:0", "cuda:0"], timeout=60)
texts = [str(warning.message) for warning in caught]
assert ["locked it for" in text for text in texts] in ([False, True], [True, False]), texts
arrays = [gg.full(300_000, comm.rank + 1.0, device=comm.device) for comm in comms]
results = [gg.empty((3, 300_000), device=comm.device) for comm in comms]
together(lambda comm: comm.all_gather(arrays[comm.rank], results[comm.rank]), comms)
for result in results:
    assert (result.get() == [[1], [2], [3]]).all()
for comm in comms:
    comm.close()
gg.synchronize()
"""


def test_ranks_of_one_process_with_devices_of_two_backends_share_memory_that_one_driver_locks(device):
    if device.backend != "cuda" or "Simulated" not in device.name:
        pytest.skip(f"the simulated drivers of two vendors are needed, and the device is {device}")
    passes(TWO_BACKENDS, GPUGLUE_HIP_LIBRARY=simulated("hip-sim-7"))


MEMORY = """
import ctypes
def resident():
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def body(comm):
    with comm.device, gg.Stream():
        x = gg.ones(300_000, "f4")
        assert (comm.all_reduce(x).get() == 2).all()
    comm.close()
before = 0
for number in range(12):
    if number == 2:
        before = resident()
    together(body, create())
grown = resident() - before
assert grown < 32e6, grown  # ten times four copies of the array are 48 MB
"""


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer keeps freed memory")
def test_closed_communicators_of_a_simulated_library_leave_no_copies_of_arrays(native_simulated):
    passes(MEMORY, 2)


CONNECTED = """
arrays = [gg.ones(1000, device=comm.device) for comm in comms]
def connect(comm):
    with comm.device:
        comm.all_reduce(arrays[comm.rank])
        gg.synchronize()
together(connect, comms)
"""
SHARED_STREAM = "comms = create()" + CONNECTED + """
x, y, stream = arrays[0], gg.ones(1000, device=devices[0]), comms[0].device.default_stream
gg.synchronize(comms[0].device)
comms[0].all_reduce(x)  # on the default stream; rank 1 never calls it
found = []
def wait(call):
    try:
        call()
        found.append("no error")
    except gg.CommunicatorError as error:
        found.append(error.ranks)
def others():  # one of the threads that wait for the stream gets its error
    try:
        stream.synchronize()
    except gg.CommunicatorError:
        pass
if os.environ["BEGUN"] == "before":
    reads = [x.get, x.get, lambda: x.get(stream=gg.Stream(comms[0].device))]
    threads = [threading.Thread(target=others)] + [threading.Thread(target=wait, args=[read]) for read in reads]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    comms[1].close()
    for thread in threads:
        thread.join()
else:
    comms[1].close()
    others()
    wait(x.get)
assert set(found) == {(1,)}, found
assert y.get().tolist() == [1] * 1000  # it has nothing to do with it
x.fill(5)
assert x.get().tolist() == [5] * 1000
comms[0].close()
"""


@pytest.mark.parametrize("begun", ["before", "after"])
def test_a_read_of_what_a_failed_operation_writes_raises_though_another_thread_has_waited_for_the_stream(native_simulated, begun):
    passes(SHARED_STREAM, 2, BEGUN=begun)


FINISHED = """
import ctypes
driver = ctypes.CDLL(next(one.library for one in gg.backends() if one.name == backend))
comms = create()
""" + CONNECTED + """
comms[1].close()
called = driver.sim_calls(b"ncclAllReduce")
assert "closed" in failure(lambda: comms[0].all_reduce(arrays[0]), 1)
assert driver.sim_calls(b"ncclAllReduce") == called
for comm in comms:
    comm.close()
"""


def test_an_operation_that_a_closed_rank_lacks_does_not_begin(native_simulated):
    """It would use memory of that rank, which the library frees."""
    passes(FINISHED, 2)


LAST = """
import time
comms = create()
arrays = [gg.full(10, comm.rank + 1.0, device=comm.device) for comm in comms]
together(lambda comm: comm.all_reduce(arrays[comm.rank]).get(), comms)
def body(comm):
    time.sleep(comm.rank)
    comm.broadcast(arrays[comm.rank], 0)
    if comm.rank == 0:
        comm.close()
    else:
        assert arrays[1].get().tolist() == [3.0] * 10
together(body, comms)
comms[1].close()
"""


def test_a_rank_may_close_after_its_last_operation_before_the_others_call_it(native_simulated):
    passes(LAST, 2)


ABORT_FAILS = """
import ctypes
driver = ctypes.CDLL(next(one.library for one in gg.backends() if one.name == backend))
comms = create(timeout=600)
""" + CONNECTED + """
comms[0].all_reduce(arrays[0])  # rank 1 never calls it
driver.sim_fail(os.environ["RULE"].encode())
comms[1].abort()
until = time.monotonic() + 200
while driver.sim_calls(b"ncclCommAbort") < 2 and time.monotonic() < until:  # each rank's own
    time.sleep(0.01)
driver.sim_fail(b"")
assert driver.sim_calls(b"ncclCommAbort") == 2
try:
    comms[0].device.synchronize()
except (gg.CommunicatorError, gg.DeviceError):  # or that of the watcher's query, which had the same fault
    pass
failure(arrays[0].get, 1)
for comm in comms:
    comm.close()
"""


@pytest.mark.parametrize("function", ["abort", "context"])
def test_an_abort_ends_the_work_although_a_function_fails(native_simulated, device, function):
    context = {"cuda": "cuCtxGetCurrent", "hip": "hipGetDevice"}[device.backend]
    passes(ABORT_FAILS, 2, RULE=f"{'ncclCommAbort' if function == 'abort' else context}:1+=1")
