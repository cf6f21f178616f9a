"""RCCL's own library on AMD's runtime: every function that gpuglue needs, every operation between the model's two GPUs, and a refusal."""

import ctypes
import os
import re
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TREE / "tests/python"))

from test_communicator import run_ranks  # noqa: E402
from test_communicator_device import HEAD, REFUSED, RESULTS  # noqa: E402

# RCCL refuses to run with the model's firmware, which has no version, unless the runtime keeps the kernels' memory.
KEEPS_SCRATCH = {"HSA_NO_SCRATCH_RECLAIM": "1"}
LIBRARY = "librccl.so.1"
runs_kernels = pytest.mark.skipif(
    os.environ["GPUGLUE_TEST_MODEL_TARGET"].startswith("gfx11"), reason="RCCL's kernels have waves of 64 lanes, which the model of gfx11 lacks"
)
SLOW_HEAD = HEAD.replace('"timeout": 60', '"timeout": 600')  # a communicator takes long on the model


def ranks_end(code, size, **variables):
    """(output, exit status) of each rank."""
    return run_ranks(SLOW_HEAD + code, size, rank_environment=dict.fromkeys(range(size), {"TRANSPORT": "rccl", **variables}))


def outputs(code, size, **variables):
    """The output of each rank, all of which succeed."""
    results = ranks_end(code, size, **variables)
    assert [status for _, status in results] == [0] * size, results
    return [output for output, _ in results]


def library():
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as error:
        pytest.fail(f"{LIBRARY} of the package librccl1 is not loaded: {error}")


def test_the_library_has_every_function_of_the_table():
    table = (TREE / "backends/cuda_hip/comm.def").read_text()
    names = re.findall(r"^(?:FN|TEXT)\(.*\), (nccl\w+), GG_\w+\)$", table, re.M)
    assert "ncclCommInitRank" in names and "ncclGetLastError" in names
    assert not [name for name in names if not hasattr(library(), name)]


@runs_kernels
def test_path_and_version_are_those_of_the_library():
    version = ctypes.c_int()
    assert library().ncclGetVersion(ctypes.byref(version)) == 0
    path, text = outputs("comm = connect(transport='rccl')\nprint(*comm.library)\ncomm.close()", 1, **KEEPS_SCRATCH)[0].split()[-2:]
    assert path.endswith(("/librccl.so.1", "/librccl.so.1.0"))
    major, minor, patch = map(int, text.split("."))
    assert major * 10000 + minor * 100 + patch == version.value


@runs_kernels
def test_every_operation_between_two_gpus_has_the_results_of_numpy():
    outputs(RESULTS, 2, **KEEPS_SCRATCH)


@runs_kernels
def test_a_refusal_is_reported_by_both_ranks_with_its_code_and_path():
    words = "ncclSystemError (2) unhandled system error (run with NCCL_DEBUG=INFO for details): making an id with rccl"
    code = REFUSED.format(options="transport='rccl'", error="gg.CommunicatorError", words=words).replace("else:", "    print(error)\nelse:")
    for output in outputs(code, 2):
        assert LIBRARY in output and "rank 0: hip: comm_create on device 0 failed" in output, output
