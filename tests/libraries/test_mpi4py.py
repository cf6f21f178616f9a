"""mpi4py between two ranks: Send, Recv and Allreduce on arrays of the host backend and on page-locked memory."""

import pathlib
import shutil
import subprocess
import sys

import pytest


def launcher():
    beside = pathlib.Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def test_two_ranks_exchange_arrays_and_pinned_memory():
    pytest.importorskip("mpi4py")
    if not launcher():
        pytest.skip("there is no mpiexec: pip install mpich")
    program = pathlib.Path(__file__).with_name("mpi_program.py")
    done = subprocess.run([launcher(), "-n", "2", sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("done") == 2
