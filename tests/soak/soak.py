"""Random operations in many threads, for a while:    soak.py [--seconds N] [--seed N] [--threads N] [--rounds N] [--first ROUND]

In each round the threads make a fixed number of operations, which the seed and the number of the round determine; on a
simulated driver, and on the plugin faulty (faulty.c), calls fail at random in every second round. After each round everything
is released and counted: memory, descriptors, threads, objects of the simulated driver. After the first quarter of the time, in
which caches fill and threads start, the counts must not grow. GPUGLUE_BACKEND selects the backend, as for the other tests. A failure prints the options
that repeat its round; the order in which the threads run differs, so it may take several rounds."""

import argparse
import collections
import ctypes
import faulthandler
import gc
import os
import random
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "python"), str(Path(__file__).parent)]

import beside  # noqa: E402
import operations  # noqa: E402
import ranks  # noqa: E402
from kernels import path_for  # noqa: E402

import gpuglue as gg  # noqa: E402

OPERATIONS = operations.OPERATIONS + beside.OPERATIONS + ranks.OPERATIONS
LEAST = 4  # rounds
EACH = 30  # operations of a thread in a round
HANG = 600  # seconds for a round: only a safety net
STREAMS = 100  # no more have an error at the end of a round
LINGERING = 60  # seconds that a thread which has been joined, or a callback's, may take until it has dropped what it used
# How much more may be there at the end than after the first quarter. A device makes one stream that joins others when it first needs it.
# Threads and events are kept for reuse, as many as were needed at once: threads vary by a few, events by some dozens. malloc keeps
# memory, since 16 threads fragment its two arenas (runs of up to a minute grew by up to 81 MB), and so does a real driver. A leak of
# one object in each round exceeds the limit of streams after three rounds, and that of threads after nine. The bytes that are allocated
# with malloc do not depend on fragmentation. They are counted where neither a real driver nor PyTorch allocates any. A round has 480
# operations: in the long run a leak of 20 bytes, or of one block of Python's allocator, in each operation exceeds the limits.
KEPT = {"resident": 96 << 20, "device memory": 512 << 20, "driver's event": 256, "driver's stream": 2, "threads": 8,
        "allocated": 4 << 20, "Python's blocks": 3000}
KEPT_EACH_ROUND = {"resident": 16 << 10, "allocated": 8 << 10, "Python's blocks": 300}
# On Level Zero events are in pools of 64, each with an allocation for their times.
KEPT_ON = {"ze": {"driver's pool": 256 // 64, "driver's pinned": 256 // 64}}

LIBRARIES = {"cuda": "GPUGLUE_CUDA_LIBRARY", "hip": "GPUGLUE_HIP_LIBRARY", "ze": "ZE_ENABLE_ALT_DRIVERS", "faulty": "GPUGLUE_PLUGIN_PATH"}
# Out of memory, invalid argument and the like. None of them loses the device. 801 is not among them: as the answer to whether
# the default stream is captured it means yes, and memory that a capture uses is kept.
CODES = {"cuda": (2, 1, 304), "hip": (2, 1, 304), "ze": (0x70000002, 0x70000003, 0x78000004), "faulty": (3, 2, 11)}
# Calls that release something: the object would live until the end.
RELEASING = ("Free", "Destroy", "Abort", "Unload", "Release", "Unregister", "Close", "Reset", "Pop", "SetCurrent", "SetDevice", "GetLastError")
KINDS = ("stream", "event", "context", "pool", "graph", "exec", "module", "device", "pinned", "managed", "registered")


class Simulator:
    """The controls of a simulated driver or of the plugin faulty, tests/sim/sim_control.h."""

    def __init__(self, backend):
        self.library = ctypes.CDLL(os.environ[LIBRARIES[backend]])
        self.codes = CODES[backend]
        self.names = []

    def list_calls(self):
        visitor = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p)
        found = []
        self.library.sim_each_call(visitor(lambda name, calls, data: found.append(name.decode())), None)
        self.names = sorted(name for name in found if not any(word in name for word in RELEASING))

    def fail(self, dice):
        rule = f"{dice.choice(self.names)}:{dice.randint(1, 5)}={dice.choice(self.codes)}"
        self.library.sim_fail(rule.encode())

    def stop_failing(self):
        self.library.sim_fail(b"")

    def alive(self):
        found = {f"driver's {kind}": self.library.sim_alive(kind.encode()) for kind in KINDS}
        return {kind: count for kind, count in found.items() if count >= 0}  # below zero: not known to this driver


class Round:
    """The threads of one round, and what went wrong in them."""

    def __init__(self, world, seed, number, failing):
        self.world, self.seed, self.number, self.failing = world, seed, number, failing
        self.operations, self.problems = 0, []
        self.lock, self.refused = threading.Lock(), collections.Counter()

    def run(self, threads):
        self.world.failing = self.failing
        started = [threading.Thread(target=self.work, args=(thread,)) for thread in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        self.world.board.clear()

    def work(self, thread):
        dice = random.Random(f"{self.seed} {self.number} {thread}")
        worker = operations.Worker(self.world, dice)
        for _ in range(EACH):
            if self.failing and dice.random() < 0.3:
                self.world.fail(dice)
            operation = dice.choice(OPERATIONS)
            worker.dice = random.Random(dice.random())  # what an operation uses does not change the later ones
            try:
                operation(worker)
            except Exception as error:
                with self.lock:
                    self.refused[f"{operation.__name__}: {type(error).__name__}: {error}"[:150]] += 1
                if not self.permitted(error):
                    self.problems.append(f"{operation.__name__} in thread {thread}: {traceback.format_exc()}")
        with self.lock:
            self.operations += EACH

    def permitted(self, error):
        """Whether a random operation may raise it."""
        if isinstance(error, ExceptionGroup):  # of several callbacks
            return all(map(self.permitted, error.exceptions))
        if isinstance(error, (MemoryError, gg.UnsupportedError)):
            return True
        return self.failing and isinstance(error, (gg.Error, BufferError)) and not isinstance(error, (gg.DeviceLostError, gg.ForkError))


def resident():
    """Bytes of resident memory, without what malloc keeps, and without a simulated device's memory, whose pages stay."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/smaps") as file:
        mappings = re.split(r"^[0-9a-f]+-[0-9a-f]+ ", file.read(), flags=re.MULTILINE)
    pages = [re.search(r"^Rss: +(\d+) kB$", mapping, re.MULTILINE) for mapping in mappings if "memfd:gpuglue-sim" not in mapping]
    return sum(int(size[1]) << 10 for size in pages if size)


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def allocated():
    """The number of bytes that are allocated with malloc. None before glibc 2.33, which cannot report it."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return None
    library.mallinfo2.restype = Mallinfo
    found = library.mallinfo2()
    return found.uordblks + found.hblkhd


def released(world):
    for _ in range(2):
        gc.collect()
        for device in world.devices:
            synchronize(device)
        gg.trim()


def synchronize(device):
    """Also after work that has failed: each call reports the error of one stream, and later rounds must not get any."""
    for _ in range(STREAMS):
        try:
            return device.synchronize()
        except (gg.DeviceError, gg.CommunicatorError, ExceptionGroup):
            continue
    return device.synchronize()


def device_memory(world):
    """Bytes in use on the first device that neither gpuglue's pool nor PyTorch's has reserved."""
    try:
        free, total = world.device.memory_info()
    except gg.UnsupportedError:
        return 0
    others = world.torch.cuda.memory_reserved(world.device.ordinal) if world.torch else 0
    return total - free - world.device.pool.stats().reserved_bytes - others


def threads():
    """How many there are, without the workers of a simulated driver, which keeps as many as had commands to run at once."""
    count = 0
    for task in os.listdir("/proc/self/task"):
        try:
            count += Path(f"/proc/self/task/{task}/comm").read_text().strip() != "gpuglue-sim"
        except OSError:  # it has ended
            continue
    return count


def counts(world, simulator):
    released(world)
    found = simulator.alive() if simulator else {}
    for device in world.devices:
        for name, pool in ("device", device.pool), ("pinned", device.pinned_pool):
            stats = pool.stats()
            found[f"{device.backend}:{device.ordinal}: used {name} blocks"] = stats.used_blocks
            found[f"{device.backend}:{device.ordinal}: retired {name} blocks"] = stats.retired_blocks
    if not simulator and world.device.backend != "host":
        found["device memory"] = device_memory(world)
    found["descriptors"] = len(os.listdir("/proc/self/fd"))
    found["threads"] = threads()
    found["resident"] = resident()
    if world.torch is None and (simulator or world.device.backend == "host"):
        found["Python's blocks"] = sys.getallocatedblocks()
        if allocated() is not None:
            found["allocated"] = allocated()
    return found


def grown(first, last, backend, rounds):
    kept = KEPT | KEPT_ON.get(backend, {})
    return [f"{name}: {first[name]} at the beginning, {last[name]} at the end, {rounds} rounds later" for name in first
            if last[name] - first[name] > kept.get(name, 0) + rounds * KEPT_EACH_ROUND.get(name, 0)]


def prepare():
    backend = gg.default_backend()
    simulated = backend == "faulty" or "Simulated" in (gg.Device(f"{backend}:0").name or "")
    simulator = Simulator(backend) if simulated else None
    device = gg.Device(f"{backend}:0")
    kernels = path_for(device) if device.supports("module_load") and device.supports("kernel_launch") else None
    world = operations.World(backend, kernels, simulator and simulator.fail, usable_torch(backend, simulated))
    world.collectives = ranks.simulated_collectives(world.devices) if simulator else None
    return world, simulator


def usable_torch(backend, simulated):
    """PyTorch, where it is installed and works on the same device."""
    if simulated or backend not in ("host", "cuda"):
        return None
    try:
        import torch
    except ImportError:
        return None
    return torch if backend == "host" or torch.cuda.is_available() else None


class Soak:
    def __init__(self, options):
        self.options = options
        self.world, self.simulator = prepare()
        self.command = f"--seed {options.seed} --threads {options.threads}"
        self.begun = time.monotonic()
        self.first = self.last = None  # counts
        self.counted_from = 0  # the round of the first ones
        self.rounds, self.operations, self.refusals = 0, 0, 0

    def run(self):
        options = self.options
        beside = f", beside PyTorch {self.world.torch.__version__}" if self.world.torch else ""
        print(f"{self.world.device}: soak.py {self.command} --seconds {options.seconds:g}{beside}", flush=True)
        while self.rounds < options.rounds if options.rounds else self.elapsed() < 1 or self.rounds < LEAST:
            faulthandler.dump_traceback_later(HANG, exit=True)
            problems = self.round(options.first + self.rounds)
            self.rounds += 1
            if problems:
                print(*problems, f"repeat with: soak.py {self.command} --first {options.first + self.rounds - 1} --rounds 1", sep="\n")
                return 1
        faulthandler.cancel_dump_traceback_later()
        self.summary()
        return 0

    def elapsed(self):
        """The part of the time that has passed."""
        return (time.monotonic() - self.begun) / max(self.options.seconds, 1e-3)

    def round(self, number):
        """Runs one round; returns what went wrong."""
        if self.simulator:
            self.simulator.list_calls()
        one = Round(self.world, self.options.seed, number, self.simulator is not None and number % 2 == 1)
        one.run(self.options.threads)
        if self.simulator:
            self.simulator.stop_failing()
        growth = self.count()
        self.operations += one.operations
        self.refusals += sum(one.refused.values())
        if self.options.verbose:
            print(number, {name: count for name, count in self.last.items() if count}, one.refused.most_common(9), flush=True)
        if not self.first and (self.elapsed() > 0.25 and self.rounds >= LEAST - 2):
            self.first, self.counted_from = self.last, self.rounds
        return one.problems + growth

    def count(self):
        """What has grown, and still has when threads that end have had the time."""
        ends_at = time.monotonic() + LINGERING
        while True:
            self.last = counts(self.world, self.simulator)
            growth = grown(self.first, self.last, self.world.device.backend, self.rounds - self.counted_from) if self.first else []
            if not growth or time.monotonic() > ends_at:
                return growth
            time.sleep(0.01)

    def summary(self):
        print(f"{self.rounds} rounds, {self.operations} operations, {self.refusals} refused or failed")
        if self.first:
            print("at the beginning and at the end:", ", ".join(
                f"{name} {self.first[name]} {self.last[name]}" for name in self.first if self.first[name] or self.last[name]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    warnings.filterwarnings("ignore", category=DeprecationWarning)  # forks with threads
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    return Soak(options).run()


if __name__ == "__main__":
    sys.exit(main())
