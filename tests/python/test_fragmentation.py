"""What the pool holds beyond what is in use: bench/fragmentation.py on a simulated device, where a replay gives the same figures
each time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HANG

BENCH = Path(__file__).parents[2] / "bench"
if not BENCH.is_dir():
    pytest.skip("the source tree is not there", allow_module_level=True)
sys.path.insert(0, str(BENCH))

import fragmentation  # noqa: E402
import traces  # noqa: E402

SEEDS = 8
MEMORY = 150_000_000_000  # of the simulated device: what the pool keeps depends on it


def replayed(trace, seed):
    """What a new process says about gpuglue's pool."""
    command = [sys.executable, fragmentation.__file__, "--side", "gpuglue", "--trace", trace, "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, env={**os.environ, "GPUGLUE_SIM_MEMORY": str(MEMORY)})
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("trace", traces.TRACES)
def test_the_pool_holds_at_most_a_fifth_more_than_was_in_use(device, trace):
    if device.backend not in ("cuda", "hip") or "simulated" not in device.name.lower():
        pytest.skip(f"the test sets the memory of a simulated device of cuda or hip, and this is {device.name}")
    ratios = [replayed(trace, seed)["ratio"] for seed in range(SEEDS)]
    assert all(1 <= ratio <= fragmentation.TARGET for ratio in ratios), ratios
