"""Ray: the devices that it assigns, and arrays that actors pass to each other. Each test starts a cluster of its own."""

import os
import pathlib
import subprocess
import sys

import pytest

BUILT = pathlib.Path(os.environ.get("GPUGLUE_TEST_LIBRARIES") or pathlib.Path(__file__).resolve().parents[2] / "build/plain/tests")
LIBRARY = BUILT / "sim/cuda/libcuda.so.1"
VISIBILITY = ("CUDA_VISIBLE_DEVICES", "GPUGLUE_DEVICE")
HANG = 600  # seconds: only a safety net


def run(directory, gpus, **environment):
    """What the program prints before its last line, 'done'; each of its two actors has so many GPUs."""
    pytest.importorskip("ray")
    if gpus and not LIBRARY.exists():
        pytest.skip(f"the tests were not built: there is no {LIBRARY}")
    inherited = {name: value for name, value in os.environ.items() if name not in VISIBILITY}
    program = pathlib.Path(__file__).with_name("ray_program.py")
    # Ray writes below HOME; its sockets need a short path.
    settings = {"HOME": str(directory), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    done = subprocess.run([sys.executable, str(program), str(gpus)], capture_output=True, text=True, cwd=directory, timeout=HANG,
                          env={**inherited, **settings, **environment})
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr
    return done.stdout.removesuffix("done\n").splitlines()


def test_actors_without_gpus_pass_arrays_by_pickle_and_by_handles(tmp_path):
    assert run(tmp_path, 0, GPUGLUE_BACKEND="host") == [
        "devices visible=None", "devices visible=None", "taken {'here': 0, 'handle': 3, 'socket': 0}"]


def on_simulated_gpus(directory, **environment):
    return run(directory, 1, GPUGLUE_BACKEND="cuda", GPUGLUE_CUDA_LIBRARY=str(LIBRARY), GPUGLUE_SIM_DEVICES="2", **environment)


def test_an_actor_that_sees_only_its_own_gpu_takes_arrays_of_another_through_host_memory(tmp_path):
    first, second, taken = on_simulated_gpus(tmp_path)
    assert sorted((first[-1], second[-1])) == ["0", "1"]  # of the variable that Ray has set
    assert first.split()[1] == second.split()[1] == "cuda:0" and first.split()[2] != second.split()[2]
    assert taken == "taken {'here': 0, 'handle': 0, 'socket': 3}"


def test_actors_that_see_all_gpus_find_their_own_and_take_arrays_by_handles(tmp_path):
    first, second, taken = on_simulated_gpus(tmp_path, RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES="1")
    assert sorted((first.split()[1], second.split()[1])) == ["cuda:0", "cuda:1"] and first.endswith("visible=None")
    assert taken == "taken {'here': 0, 'handle': 3, 'socket': 0}"
