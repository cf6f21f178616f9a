"""The cost of an import in new processes: time, memory, size on disk; and of a module from the disk cache."""

import json
import subprocess
import sys
import time
from pathlib import Path

CODE = """
import json, time
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
before, start = resident(), time.perf_counter()
{statement}
seconds = time.perf_counter() - start
import sys
print(json.dumps([seconds * 1e3, (resident() - before) / 2**20, "numpy" in sys.modules]))
"""


def import_cost(statement, runs=15):
    """Milliseconds and MiB that an import statement adds, of each run, and whether it imports NumPy."""
    results = []
    for _ in range(runs):
        command = [sys.executable, "-c", CODE.format(statement=statement)]
        results.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return {
        "ms": [result[0] for result in results],
        "mib": [result[1] for result in results],
        "numpy": results[0][2],
    }


def wheel_size(tree):
    """Bytes of the newest wheel in dist/, or None."""
    wheels = sorted(Path(tree).glob("dist/**/gpuglue-*.whl"), key=lambda path: path.stat().st_mtime)
    return wheels[-1].stat().st_size if wheels else None


SOURCE = "__global__ void doublify(float *a) { int i = threadIdx.x + threadIdx.y * 4; a[i] *= 2; }"


def cached_module_cost(runs=50):
    """Milliseconds of SourceModule and get_function from the disk cache, each time, and None; or None and a reason."""
    import gpuglue as gg
    from gpuglue.compat.pycuda import driver
    from gpuglue.compat.pycuda.compiler import SourceModule

    def load():
        start = time.perf_counter()
        SourceModule(SOURCE).get_function("doublify")
        return (time.perf_counter() - start) * 1e3

    try:
        load()
    except (gg.Error, driver.Error) as error:
        return None, str(error).splitlines()[0]
    return [load() for _ in range(runs)], None
