"""What every rank of a communicator reports when one fails, and when. As a program it prints the table of docs/howto/communicators.md.

rank_failures.py              run all failures
rank_failures.py NAME RANK    one rank of one of them
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

SIZE, FAILS = 3, 1  # the rank that fails, where it is one
FAILURES = {
    "killed": "rank 1 is killed by `kill -9`",
    "absent": "rank 1 is never started",
    "hangs": "rank 1 hangs",
    "port": "another program has the port",
    "id": "rank 1 has another id",
}


def rank_main(failure, rank):
    import numpy as np

    import gpuglue as gg

    began = time.monotonic()
    try:
        comm = gg.Communicator(rank, SIZE, os.environ["ADDRESS"], id="b" if failure == "id" and rank == FAILS else "a", timeout=float(os.environ["TIMEOUT"]))
        comm.barrier()
        began = time.monotonic()
        if rank == FAILS and failure in ("killed", "hangs"):
            os.kill(os.getpid(), signal.SIGKILL if failure == "killed" else signal.SIGSTOP)
        comm.all_reduce(np.ones(3))
    except gg.CommunicatorError as error:
        print(json.dumps({"ranks": error.ranks, "text": str(error), "seconds": time.monotonic() - began}))


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


def run(failure, timeout=2.0):
    """{rank: {ranks, text, seconds}} of the ranks that reported a failure."""
    with occupied(failure) as holder:
        environment = {**os.environ, "TIMEOUT": str(timeout), "ADDRESS": f"127.0.0.1:{holder.getsockname()[1]}", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        ranks = {rank: subprocess.Popen([sys.executable, "-P", __file__, failure, str(rank)], stdout=subprocess.PIPE, text=True, env=environment)
                 for rank in range(SIZE) if (failure, rank) != ("absent", FAILS)}
        outputs = {rank: process.communicate()[0] for rank, process in ranks.items() if (failure, rank) != ("hangs", FAILS)}
        if failure == "hangs":
            ranks[FAILS].kill()
            ranks[FAILS].communicate()
    return {rank: json.loads(output) for rank, output in outputs.items() if output}


def main():
    print("| what happens | rank | `ranks` | seconds | the error |\n|---|---|---|--:|---|")
    for failure, what in FAILURES.items():
        for rank, report in sorted(run(failure).items()):
            print(f"| {what} | {rank} | {tuple(report['ranks'])} | {report['seconds']:.2f} | {report['text'].splitlines()[0]} |", flush=True)


if __name__ == "__main__":
    rank_main(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 1 else main()
