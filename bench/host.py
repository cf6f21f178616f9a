"""Memory of the host backend compared with NumPy's: copies, and with mpi4py a ping-pong of two processes.

    python host.py [--json FILE] [--processes 8] [--no-mpi]

Each figure is of several new processes, since one may get huge pages and another may not. In each, both kinds of memory
alternate. A row is the ratio of gpuglue's bandwidth to NumPy's: the median of the processes, and [the worst, the best].
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import gpuglue as gg

from verdict import verdict

KIB, MIB = 1 << 10, 1 << 20
COPIES = (64 * KIB, MIB, 16 * MIB, 256 * MIB)
MESSAGES = (64 * KIB, MIB, 16 * MIB)
TARGET = 0.95
ROUNDS = 9  # of both sides in alternation, after one that is discarded
MOVED = 32 * MIB  # bytes in each round, at least


def arrays_of(nbytes):
    """Side → a function that makes an array of bytes."""
    host = gg.Device("host")

    def own():
        memory = gg.empty(nbytes, np.uint8, device=host)
        return np.asarray(memoryview(memory)), memory

    return {"NumPy": lambda: (np.empty(nbytes, np.uint8), None), "gpuglue": own}


def in_turn(actions, nbytes):
    """Side → GB/s of its median round."""
    times, count = {side: [] for side in actions}, max(1, MOVED // nbytes)
    for turn in range(ROUNDS + 1):
        for side, action in actions.items():
            start = time.perf_counter()
            for _ in range(count):
                action()
            if turn:
                times[side].append((time.perf_counter() - start) / count)
    return {side: nbytes / statistics.median(found) / 1e9 for side, found in times.items()}


def copies():
    """Size → side → GB/s of copies within one kind of memory."""
    found = {}
    for nbytes in COPIES:
        kept, actions = [], {}
        for side, make in arrays_of(nbytes).items():
            (source, *_), (target, *_) = pair = make(), make()
            kept.append(pair)
            source[:] = 1
            actions[side] = lambda target=target, source=source: np.copyto(target, source)
        found[f"copy, {nbytes // KIB} KiB"] = in_turn(actions, nbytes)
    return found


def ping_pong():
    """The same for messages there and back, in rank 0; None in rank 1."""
    from mpi4py import MPI
    world, found = MPI.COMM_WORLD, {}
    for nbytes in MESSAGES:
        kept, actions = [], {}
        for side, make in arrays_of(nbytes).items():
            kept.append(make())
            buffer = kept[-1][0] if side == "NumPy" else kept[-1][1]
            kept[-1][0][:] = 1

            def once(buffer=buffer):
                if world.rank == 0:
                    world.Send([buffer, MPI.BYTE], 1)
                    world.Recv([buffer, MPI.BYTE], 1)
                else:
                    world.Recv([buffer, MPI.BYTE], 0)
                    world.Send([buffer, MPI.BYTE], 0)

            actions[side] = once
        found[f"ping-pong, {nbytes // KIB} KiB"] = in_turn(actions, 2 * nbytes)
    return found if world.rank == 0 else None


def run(part):
    """The result of new processes, or (None, the reason)."""
    command = [sys.executable, __file__, "--part", part]
    if part == "ping_pong":
        beside = Path(sys.executable).parent / "mpiexec"
        launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
        if not launcher:
            return None, "there is no mpiexec: pip install mpi4py mpich"
        command = [launcher, "-n", "2", *command]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{"))), None


def rows_of(results):
    """Row → figures, from the results of several processes."""
    rows = {}
    for row in results[0]:
        ratios = [result[row]["gpuglue"] / result[row]["NumPy"] for result in results]
        rows[row] = {"ratio": statistics.median(ratios), "worst": min(ratios), "best": max(ratios), "all": ratios,
                     "result": verdict([TARGET - ratio for ratio in ratios]),
                     **{side: statistics.median(result[row][side] for result in results) for side in ("NumPy", "gpuglue")}}
    return rows


def measure(options):
    """All rows, and why some are absent."""
    rows, absent = {}, {}
    for part in ("copies",) if options.no_mpi else ("copies", "ping_pong"):
        results = []
        for _ in range(options.processes):
            result, reason = run(part)
            if result is None:
                absent[part] = reason
                break
            results.append(result)
        else:
            rows |= rows_of(results)
    return {"target": TARGET, "processes": options.processes, "rows": rows, "absent": absent}


def main():
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--processes", type=int, default=8, help="how many new processes of each kind")
    parser.add_argument("--no-mpi", action="store_true", help="copies only")
    parser.add_argument("--part", choices=("copies", "ping_pong"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        found = copies() if options.part == "copies" else ping_pong()
        if found:
            print(json.dumps(found), flush=True)
        return 0
    result = measure(options)
    print(f"{'gpuglue / NumPy':26}{'median':>8}{'worst':>8}{'best':>8}{'NumPy':>9}{'gpuglue':>9}  GB/s")
    for row, found in result["rows"].items():
        print(f"{row:26}{found['ratio']:8.3f}{found['worst']:8.3f}{found['best']:8.3f}{found['NumPy']:9.1f}"
              f"{found['gpuglue']:9.1f}  {found['result']}")
    for part, reason in result["absent"].items():
        print(f"no {part}: {reason}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
