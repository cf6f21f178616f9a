"""What importing a package costs, in fresh processes: time, memory, size on disk."""

import json
import statistics
import subprocess
import sys
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
    """Milliseconds and MiB of an import statement over bare Python (medians), and whether NumPy came along."""
    results = []
    for _ in range(runs):
        command = [sys.executable, "-c", CODE.format(statement=statement)]
        results.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return {
        "ms": statistics.median(result[0] for result in results),
        "mib": statistics.median(result[1] for result in results),
        "numpy": results[0][2],
    }


def wheel_size(tree):
    """Bytes of the newest wheel in dist/, or None."""
    wheels = sorted(Path(tree).glob("dist/**/gpuglue-*.whl"), key=lambda path: path.stat().st_mtime)
    return wheels[-1].stat().st_size if wheels else None
