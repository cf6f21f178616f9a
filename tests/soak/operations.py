"""What a thread of the soak test does. OPERATIONS are functions of a Worker: each makes random objects with the worker's
dice, uses them, compares the contents with NumPy, and drops them, keeps them or leaves them to another thread."""

import asyncio
import contextlib
import gc
import mmap
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref

import numpy as np

import gpuglue as gg

DTYPES = ["f8", "f4", "i4", "i2", "u1", "c8"]
HANG = 300  # seconds: only a safety net
STACKS = signal.SIGUSR1  # a process prints the stacks of its threads


class World:
    """What the threads share."""

    def __init__(self, backend, kernels=None, fail=None, torch=None):
        self.devices = gg.devices(backend)
        self.device = self.devices[0]
        self.kernels, self.fail, self.failing = kernels, fail, False
        self.torch = torch  # PyTorch, if it works on the device
        self.board = []  # objects that one thread leaves for another; append and pop are atomic
        self.alone = threading.Lock()  # for settings of the whole process, and forks
        self.captures = threading.Lock()  # a wait for the whole device invalidates a capture
        self.exports = has_dlpack_type(self.device)


def has_dlpack_type(device):
    try:
        gg.empty(1, device=device).__dlpack_device__()
    except BufferError:
        return False
    return True


class Worker:
    def __init__(self, world, dice):
        self.world, self.dice, self.kept = world, dice, []
        self.device = world.device if dice.random() < 0.75 else dice.choice(world.devices)

    def length(self):
        return self.dice.choice([0, 1, 7, 64, 1000, 1000, 5000, 5000, 40_000, 300_000])

    def host(self, dtype=None):
        """A random array of one or two axes."""
        count = self.length()
        start = self.dice.randrange(100)
        host = (np.arange(start, start + count) % 121).astype(dtype or self.dice.choice(DTYPES))
        return host.reshape(-1, 10) if count % 10 == 0 and self.dice.random() < 0.5 else host

    def array(self, host, **names):
        return gg.to_gpu(host, self.device, **names)

    def synchronize(self, device=None):
        with self.world.captures:
            (device or self.device).synchronize()

    def stream(self):
        least, greatest = self.device.stream_priority_range
        return gg.Stream(self.device, self.dice.random() < 0.7, self.dice.randint(greatest, least))


def expect(right, *what):
    if not right:
        raise AssertionError(*what)


def equal(found, expected):
    expect(found.dtype == expected.dtype and found.shape == expected.shape, found.dtype, found.shape, expected.dtype, expected.shape)
    expect(found.tobytes() == expected.tobytes(), "the contents differ from NumPy's", found.ravel()[:8], expected.ravel()[:8])


# ---- arrays and copies


def round_trip(worker):
    host = worker.host()
    equal(worker.array(host).get(), host)


def strided(worker):
    host = worker.host().copy()
    array = worker.array(host)
    index = (slice(None, None, worker.dice.choice([2, 3, -1])),) + (slice(8, 1, -2),) * (host.ndim - 1)
    equal(array[index].get(), host[index])
    array[index], host[index] = 3, 3
    equal(array.copy().get(), host)


def filled(worker):
    count, value = worker.length(), worker.dice.randrange(100)
    equal(gg.full(count, value, "i4", device=worker.device).get(), np.full(count, value, "i4"))
    buffer, back = gg.alloc(count, worker.device), bytearray(count)
    gg.fill(buffer, value)
    gg.copy(back, buffer)
    expect(back == bytes([value]) * count, "a fill of bytes")
    buffer.close()


def concatenated(worker):
    host = worker.host()
    array = worker.array(host)
    equal(gg.concatenate([array, array[:1], array]).get(), np.concatenate([host, host[:1], host]))


def through_streams(worker):
    host = worker.host()
    first, second = worker.stream(), worker.stream()
    array = worker.array(host, stream=first)
    second.wait(first.record() if worker.dice.random() < 0.5 else first)
    if worker.dice.random() < 0.5:
        first.close()
    copied = array.copy(stream=second)
    del array
    equal(copied.get(stream=second), host)


def asynchronous(worker):
    host = worker.host()
    stream = worker.stream()
    source, out = (gg.empty_pinned(host.shape, host.dtype, device=worker.device) for _ in range(2))
    source[...] = host
    array = gg.empty(host.shape, host.dtype, device=worker.device, stream=stream)
    array.set_async(source, stream=stream)
    del source
    array.get_async(out=out, stream=stream)
    del array
    stream.synchronize()
    equal(np.array(out), host)


def closed_while_in_use(worker):
    stream = worker.stream()
    for _ in range(worker.dice.randrange(1, 6)):
        buffer = gg.alloc(worker.length(), worker.device, stream)
        gg.fill(buffer, 1, stream)
        buffer.record_use(worker.device.default_stream)
        buffer.close()
    stream.close()


def between_devices(worker):
    host = worker.host()
    other = worker.dice.choice(worker.world.devices)
    array = worker.array(host)
    copied = gg.empty(host.shape, host.dtype, device=other)
    worker.synchronize()
    worker.synchronize(other)
    gg.copy(copied, array)
    worker.synchronize()
    equal(copied.get(), host)


def kept(worker):
    """Contents stay while other memory comes and goes."""
    if len(worker.kept) < 8:
        host = worker.host()
        worker.kept.append((worker.array(host), host))
    array, host = worker.dice.choice(worker.kept)
    equal(array.get(), host)
    if worker.dice.random() < 0.3:
        worker.kept.pop(worker.dice.randrange(len(worker.kept)))


def exchanged(worker):
    """An array that one thread made is read and released by another."""
    board = worker.world.board
    if len(board) < 32:
        host = worker.host()
        array = worker.array(host)
        worker.synchronize(array.device)
        board.append((array, host))
    with contextlib.suppress(IndexError):  # another thread was first
        array, host = board.pop(0)
        equal(array.get(), host)


# ---- streams and events


def events(worker):
    stream = worker.stream()
    first, last = (gg.Event(worker.device, timing=True, blocking=worker.dice.random() < 0.5) for _ in range(2))
    first.record(stream)
    array = gg.zeros(worker.length(), device=worker.device, stream=stream)
    last.record(stream)
    expect(worker.device.default_stream.wait(last) is None)
    last.synchronize()
    expect(first.done and last.done and last.elapsed_since(first) >= 0, "the events of a stream")
    expect(not array.get().any(), "zeros")
    with gg.Timer(stream) as timer:
        array.fill(1, stream=stream)
    expect(timer.ms >= 0)


def callbacks(worker):
    stream, ran = worker.stream(), threading.Event()
    stream.add_callback(ran.set)
    stream.synchronize()
    # It is not called if the poll of its event fails; another thread's wait for the device may have raised that error.
    expect(ran.is_set() or worker.world.failing, "a callback has not run")


def awaited(worker):
    stream = worker.stream()
    array = gg.full(worker.length(), 5, "u1", device=worker.device, stream=stream)

    async def wait():
        await asyncio.wait_for(asyncio.gather(completed(stream), completed(stream)), HANG)

    async def completed(stream):
        await stream.record()

    asyncio.run(wait())
    expect((array.get(stream=stream) == 5).all())


def current(worker):
    host = worker.host()
    with worker.device, worker.stream() as stream:
        expect(gg.current_stream() == stream and gg.current_device() == worker.device)
        equal(gg.to_gpu(host).get(), host)


def short_thread(worker):
    """The state of a thread ends with it."""
    host, found = worker.host(), []

    def run():
        with contextlib.suppress(gg.Error, MemoryError):
            with worker.device:
                found.append(gg.to_gpu(host).get())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for result in found:
        equal(result, host)


# ---- memory


def pinned(worker):
    host = worker.host()
    made = gg.zeros_pinned(host.shape, host.dtype, device=worker.device)
    worker.array(host).get(out=made)
    equal(np.array(made), host)
    memory = mmap.mmap(-1, 1 << 16)  # has its pages for itself
    with gg.host_register(memory, worker.device) as registered:
        array = gg.full(registered.nbytes, 9, "u1", device=worker.device)
        gg.copy(registered, array)
        worker.synchronize()
        expect(bytes(registered) == b"\x09" * (1 << 16), "registered memory")
    worker.synchronize()


def managed(worker):
    with gg.alloc_managed(max(worker.length(), 1), worker.device) as buffer:
        gg.fill(buffer, 4)
        if worker.device.supports("mem_prefetch"):
            buffer.prefetch("host")
        worker.synchronize()
        expect(set(bytes(buffer)) == {4}, "managed memory")


class Owner:
    pass


def owned_elsewhere(worker):
    """The owner of the memory is released when the buffer is."""
    whole, owner = gg.alloc(4096, worker.device), Owner()
    owner.whole, released = whole, weakref.ref(owner)
    part = gg.Buffer.from_ptr(whole.ptr + 1024, 1024, worker.device, owner=owner)
    del owner
    gg.fill(part, 7)
    back = bytearray(1024)
    gg.copy(back, part)
    expect(set(back) == {7}, "a part of a buffer")
    expect(released() is not None, "the owner was released early")
    part.close()


def interprocess(worker):
    """A handle, and rarely a process that opens it and writes there."""
    with gg.alloc(max(worker.length(), 1), worker.device) as buffer:
        handle = buffer.ipc_handle()
        expect(pickle.loads(pickle.dumps(handle)).nbytes == buffer.nbytes)
        if worker.dice.random() < 0.05:
            back = bytearray(buffer.nbytes)
            gg.fill(buffer, 3)
            worker.synchronize()
            opened_elsewhere(handle)
            gg.copy(back, buffer)
            expect(set(back) == {4}, "what another process has written")


OPENING = """
import pickle, sys
import gpuglue as gg
with pickle.loads(sys.stdin.buffer.read()).open() as buffer:
    back = bytearray(buffer.nbytes)
    gg.copy(back, buffer)
    gg.fill(buffer, 4)
    gg.synchronize(buffer.device)
sys.exit(set(back) != {3})
"""


def opened_elsewhere(handle):
    done = subprocess.run([sys.executable, "-c", OPENING], input=pickle.dumps(handle), capture_output=True, timeout=HANG)
    expect(done.returncode == 0, "a process that opened a handle ended with", done.returncode, done.stderr.decode())


def pressure(worker):
    """Allocations until memory runs out or the pool reaches its limit; other threads then have none either."""
    pool, blocks = worker.device.pool, []
    with exclusive(worker):
        with contextlib.suppress(gg.InvalidArgumentError):  # other threads use more by now
            pool.limit = pool.stats().reserved_bytes + worker.dice.randrange(1 << 24)
        try:
            for _ in range(200):
                blocks.append(gg.alloc(worker.dice.randrange(1 << 20), worker.device))
                gg.fill(blocks[-1], 1)
        except gg.OutOfMemoryError:
            pass
        finally:
            pool.limit = None


def trimmed(worker):
    pool = worker.dice.choice([worker.device.pool, worker.device.pinned_pool])
    choice = worker.dice.randrange(4)
    if choice == 0:
        gg.trim()
    elif choice == 1:
        pool.trim(worker.dice.randrange(1 << 22))
    else:
        pool.release_threshold = None if choice == 2 else worker.dice.randrange(1 << 24)


def other_allocator(worker):
    device = worker.device

    def allocate(nbytes, where, stream):
        if where != device or nbytes > 4096:
            raise MemoryError("this allocator has blocks of 4096 bytes on one device")
        try:
            return blocks.pop()
        except IndexError:
            raise MemoryError("this allocator has no more blocks") from None

    with exclusive(worker):
        blocks = [gg.alloc(4096, device) for _ in range(8)]
        worker.synchronize()
        gg.set_allocator(allocate)
        try:
            equal(gg.full(100, 2, "i4", device=device).get(), np.full(100, 2, "i4"))
        finally:
            gg.set_allocator(None)


@contextlib.contextmanager
def exclusive(worker):
    """For settings of the whole process: one thread at a time changes them."""
    with worker.world.alone:
        yield


# ---- exports


class Exported:
    def __init__(self, array, **names):
        self.capsule, self.where = array.__dlpack__(max_version=(1, 3), **names), array.__dlpack_device__()

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return self.where


def exported(worker):
    """A capsule that another thread takes, or that nothing takes."""
    if not worker.world.exports:
        return
    host, board = worker.host(), worker.world.board
    array = worker.array(host)
    worker.synchronize()
    capsule = Exported(array)
    del array
    choice = worker.dice.randrange(4)
    if choice == 0:
        return
    if choice == 1 and len(board) < 32:
        board.append((gg.from_dlpack(capsule), host))
        return
    taken = gg.from_dlpack(capsule, copy=True if choice == 2 else None)
    equal(taken.get(), host)


def exported_to_the_host(worker):
    if not worker.world.exports:
        return
    host = worker.host()
    array = worker.array(host)
    array.__dlpack__(dl_device=(1, 0))
    if hasattr(array, "__array_interface__"):
        equal(np.array(array), host)
    else:
        equal(np.asarray(array.get()), host)


# ---- graphs


def captured(worker):
    """A graph of gpuglue's own does what was queued in the block, whatever other threads do meanwhile."""
    if not worker.device.supports("capture_begin"):
        return
    host, stream = worker.host(), gg.Stream(worker.device, nonblocking=True)
    source, target = worker.array(host, stream=stream), gg.empty(host.shape, host.dtype, device=worker.device, stream=stream)
    stream.synchronize()
    value = worker.dice.randrange(2)  # a fill of wide elements is several operations, unless all their bytes are the same
    with worker.world.captures, gg.capture(stream) as graph:
        target.fill(value)
        gg.copy(target, source)
    if worker.dice.random() < 0.3 and worker.device.supports("graph_update"):
        with worker.world.captures, gg.capture(stream) as other:
            target.fill(2 * value)
            gg.copy(target, source)
        graph.update(other)
    for _ in range(worker.dice.randrange(1, 4)):
        graph.launch(stream)
    if worker.dice.random() < 0.5:
        graph.close()
    equal(target.get(stream=stream), host)


# ---- kernels


def launched(worker):
    if worker.world.kernels is None:
        return
    module = gg.Module(worker.world.kernels, worker.device)
    scale = module["scale"]
    if worker.dice.random() < 0.5:
        module.close()
    host = np.arange(worker.dice.randrange(1, 1000), dtype="f4")
    stream = worker.stream()
    array = worker.array(host, stream=stream)
    scale(array, len(host), 2.0, grid=-(-len(host) // 32), block=32, stream=stream)
    equal(array.get(stream=stream), host * np.float32(2))


# ---- the process


def questions(worker):
    device = worker.device
    choice = worker.dice.randrange(6)
    if choice == 0:
        expect(device.memory_info().free >= 0 and device.attributes)
    elif choice == 1:
        gg.backends(worker.dice.choice(["passive", "active"]))
    elif choice == 2:
        expect(gg.pointer_info(id(worker)).kind == "host")
    elif choice == 3:
        with contextlib.suppress(gg.UnsupportedError):
            device.stats()
    elif choice == 4:
        expect(repr(device.pool.stats()) and repr(device) and repr(gg.current_stream(device)))
    else:
        gg.devices(device.backend)


def refused(worker):
    buffer = gg.alloc(64, worker.device)
    buffer.close()
    for call in (lambda: gg.fill(buffer, 1), lambda: gg.alloc(-1), lambda: gg.zeros(6).reshape(7), lambda: gg.Device("nothing:0"),
                 lambda: gg.alloc(1 << 60, worker.device)):
        try:
            call()
        except (ValueError, MemoryError, gg.Error):
            continue
        raise AssertionError("a wrong call was not refused")


def recorded(worker):
    with exclusive(worker), tempfile.TemporaryDirectory() as directory:
        with gg.trace(os.path.join(directory, "trace.json"), device_times=worker.dice.random() < 0.5):
            with gg.range("soak"):
                round_trip(worker)


def forked(worker):
    """In the child, inherited objects do nothing, and calls refer to the fork."""
    host = np.arange(1 + worker.length())
    array = worker.array(host)
    worker.synchronize()
    with exclusive(worker):
        gc.disable()  # a child that releases PyTorch's tensors in cycles could wait for a lock that another thread had at the fork
        child = os.fork()
        if not child:
            end_child(worker, array)
        gc.enable()
        status = wait_for(child)
    expect(status == 0, "a forked child ended with", status)
    equal(array.get(), host)


def end_child(worker, array):
    status = 1
    with contextlib.suppress(BaseException):
        signal.alarm(2 * HANG)  # if the parent has ended
        for call in (array.get, array.copy, worker.device.synchronize, lambda: gg.zeros(3, device=worker.device)):
            try:
                call()
            except gg.ForkError:
                status = 0
                continue
            status = 2
            break
        array = None
        worker.kept.clear()
        worker.world.board.clear()
    os._exit(status)


def wait_for(child):
    ends_at = time.monotonic() + HANG
    while time.monotonic() < ends_at:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, STACKS)  # prints where it is
    time.sleep(2)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "no end"


def collected(worker):
    gc.collect(worker.dice.randrange(3))


FREQUENT = (round_trip, strided, filled, concatenated, through_streams, asynchronous, closed_while_in_use, between_devices, kept,
            exchanged, events, callbacks, current, pinned, managed, owned_elsewhere, exported, exported_to_the_host, launched)
SOMETIMES = (awaited, captured, interprocess, pressure, trimmed, questions, refused, short_thread)
RARELY = (recorded, other_allocator, forked, collected)
OPERATIONS = 4 * FREQUENT + 2 * SOMETIMES + RARELY
