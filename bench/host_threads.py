"""A compiled addition of 2^24 numbers on host, by the number of threads: each in a process of its own.

    python host_threads.py [--json FILE] [--threads N …] [--rounds N]
"""

import argparse
import json
import os
import subprocess
import sys

CHILD = """
import sys, time, statistics, numpy as np, gpuglue as gg
source = '''
extern "C" __global__ void add(const double *x, const double *y, double *z, unsigned long long count)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        z[i] = x[i] + y[i];
}
'''
device, count, rounds = gg.Device("host:0"), 1 << 24, int(sys.argv[1])
add = gg.Module(gg.compile(source, backend="host"), device)["add"]
x, y = (gg.to_gpu(np.arange(count, dtype="f8") * factor, device) for factor in (1, 3))
z, times = gg.zeros(count, "f8", device=device), []
for turn in range(rounds + 2):
    gg.synchronize(device)
    start = time.perf_counter_ns()
    add(x, y, z, np.uint64(count), grid=count // 256, block=256)
    gg.synchronize(device)
    times.append(time.perf_counter_ns() - start)
assert (z.get() == 4 * np.arange(count, dtype="f8")).all()
print(statistics.median(times[2:]) / 1e6)
"""


def main():
    """One row per number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--threads", type=int, nargs="+")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    counts = options.threads or sorted({1 << power for power in range(cores.bit_length())} | {cores})
    rows = {}
    for count in counts:
        done = subprocess.run([sys.executable, "-c", CHILD, str(options.rounds)], env={**os.environ, "GPUGLUE_HOST_THREADS": str(count)},
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        rows[count] = float(done.stdout)
        rate = 3 * 8 * (1 << 24) / rows[count] / 1e6
        print(f"  {count:4} threads {rows[count]:8.2f} ms  {rate:7.1f} GB/s  {rows[counts[0]] / rows[count]:5.2f} times")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"cores": cores, "milliseconds": rows}, file, indent=1)


if __name__ == "__main__":
    main()
