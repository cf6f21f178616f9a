"""What every rank of a communicator reports when one fails, and when. As a program it prints the table of docs/howto/communicators.md.

rank_failures.py                         run all failures
rank_failures.py TRANSPORT NAME RANK    one rank of one of them
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

SIZE, FAILS = 3, 1  # the rank that fails, where it is one
FAILURES = {
    "killed": "rank 1 is killed by `kill -9`",
    "absent": "rank 1 is never started",
    "hangs": "rank 1 hangs",
    "port": "another program has the port",
    "id": "rank 1 has another id",
}
# Of operations on device memory: NAME or NAME-COUNT, where each rank calls, or queues, so many operations. The last with a library only, which queues.
DEVICE_FAILURES = {
    "killed": FAILURES["killed"],
    "hangs": FAILURES["hangs"],
    "device-1": "rank 1's device hangs",
    "device-1000": "rank 1's device hangs; 1000 operations",
    "stopped-2": "rank 1 hangs after it has queued 2 operations",
    "stopped-1000": "rank 1 hangs after it has queued 1000 operations",
    "connecting": "rank 1 hangs while the library connects the ranks",
}
STAGED = ("killed", "hangs", "device-1")
DRIVERS = {"cuda": ("libcuda.so.1", "cuLaunchHostFunc"), "hip": ("libamdhip64.so", "hipLaunchHostFunc")}


def host_function(backend):
    """The driver's function that queues a function of the host, or None: HIP has it since 5.7."""
    library, name = DRIVERS[backend]
    return getattr(ctypes.CDLL(os.environ.get(f"GPUGLUE_{backend.upper()}_LIBRARY", library)), name, None)


def hang_device(stream, backend):
    """The device does not go on with the stream, while the process runs."""
    hang_device.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: time.sleep(100000))
    assert host_function(backend)(ctypes.c_void_p(stream.handle), hang_device.function, None) == 0


def is_stopped(process):
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def is_in_call():
    """Whether a thread is in a call of the library that may wait for other ranks."""
    for name in Path("/proc/self/task").glob("*/comm"):
        try:
            if name.read_text() == "gpuglue-call\n":
                return True
        except OSError:  # the thread has ended
            pass
    return False


def stop_in_call():
    """Stop this process in the next such call."""
    def stop():
        while not is_in_call():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGSTOP)
    while is_in_call():
        time.sleep(0.001)
    threading.Thread(target=stop, daemon=True).start()


def fail(failure):
    if failure in ("killed", "hangs", "stopped"):
        os.kill(os.getpid(), signal.SIGKILL if failure == "killed" else signal.SIGSTOP)


def use_host(comm, failure):
    import numpy as np

    yield
    if comm.rank == FAILS:
        fail(failure)
    comm.all_reduce(np.ones(3))


def use_device(comm, failure):
    """The others begin once rank 1 is stopped, if it is. So it may have sent its part of the first operation, but not of the second."""
    import numpy as np

    import gpuglue as gg

    name, _, count = failure.partition("-")
    with comm.device:
        stream, x = gg.Stream(nonblocking=True), gg.ones(3)
        process = gg.to_gpu(np.array([os.getpid() if comm.rank == FAILS else 0]))
        process = int(comm.all_reduce(process).get()[0])
        comm.all_reduce(x, stream=stream)
        stream.synchronize()
        comm.barrier()
        if comm.rank == FAILS and name == "device":
            hang_device(stream, comm.device.backend)
        elif comm.rank == FAILS and name != "stopped":
            fail(name)
        while comm.rank != FAILS and name == "stopped" and not is_stopped(process):
            time.sleep(0.01)
        yield
        for _ in range(int(count or 1)):
            comm.all_reduce(x, stream=stream)
        if comm.rank == FAILS:
            fail(name)
        stream.synchronize()


def rank_main(transport, failure, rank):
    import gpuglue as gg

    began = time.monotonic()
    if (failure, rank) == ("connecting", FAILS):
        os.environ["GPUGLUE_SIM_HANG"] = "ncclCommInitRank"  # a library of a vendor needs longer than this rank until it stops
        stop_in_call()
    options = {} if transport == "host" else {"device": f"{os.environ['GPUGLUE_BACKEND']}:{rank}", "transport": transport}
    try:
        comm = gg.Communicator(rank, SIZE, os.environ["ADDRESS"], id="b" if failure == "id" and rank == FAILS else "a", timeout=float(os.environ["TIMEOUT"]), **options)
        comm.barrier()
        began = time.monotonic()
        for _ in (use_host if transport == "host" else use_device)(comm, failure):
            began = time.monotonic()
    except gg.CommunicatorError as error:
        print(json.dumps({"ranks": error.ranks, "text": str(error), "seconds": time.monotonic() - began}), flush=True)
    if transport != "host":
        os._exit(0)  # a normal end would wait for a device that hangs


def occupied(failure):
    """A socket that keeps a port; in the failure 'port' it listens, as another program would."""
    holder = socket.socket()
    if failure == "port":
        holder.bind(("127.0.0.1", 0))
        holder.listen()
    else:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
    return holder


def run(failure, timeout=2.0, transport="host"):
    """{rank: {ranks, text, seconds}} of the ranks that reported a failure."""
    stays = failure.partition("-")[0] in ("hangs", "device", "stopped", "connecting")
    with occupied(failure) as holder:
        environment = {**os.environ, "TIMEOUT": str(timeout), "ADDRESS": f"127.0.0.1:{holder.getsockname()[1]}", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        environment.setdefault("GPUGLUE_SIM_DEVICES", str(SIZE))
        ranks = {rank: subprocess.Popen([sys.executable, "-P", __file__, transport, failure, str(rank)], stdout=subprocess.PIPE, text=True, env=environment)
                 for rank in range(SIZE) if (failure, rank) != ("absent", FAILS)}
        outputs = {rank: process.communicate()[0] for rank, process in ranks.items() if rank != FAILS or not stays}
        if stays:
            ranks[FAILS].kill()
            ranks[FAILS].communicate()
    return {rank: json.loads(output) for rank, output in outputs.items() if output}


def device_runs():
    """(transport, failure) of the backend that is named, if it has a library: all that a device adds."""
    library = {"cuda": "nccl", "hip": "rccl"}.get(os.environ.get("GPUGLUE_BACKEND", ""))
    return [] if library is None else [("staged", failure) for failure in STAGED] + [(library, failure) for failure in DEVICE_FAILURES]


def main():
    print("| transport | what happens | rank | `ranks` | seconds | the error |\n|---|---|---|---|--:|---|")
    for transport, failure in [("host", failure) for failure in FAILURES] + device_runs():
        for rank, report in sorted(run(failure, transport=transport).items()):
            what = (FAILURES if transport == "host" else DEVICE_FAILURES)[failure]
            print(f"| {transport} | {what} | {rank} | {tuple(report['ranks'])} | {report['seconds']:.2f} | {report['text'].splitlines()[0]} |", flush=True)


if __name__ == "__main__":
    rank_main(sys.argv[1], sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 1 else main()
