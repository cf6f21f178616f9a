"""CuPy's communicators, without a GPU: CuPy and gpuglue use one simulated NCCL. Beside CuPy on a GPU: tests/python/test_with_cupy.py."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

BUILT = pathlib.Path(os.environ.get("GPUGLUE_TEST_LIBRARIES") or pathlib.Path(__file__).resolve().parents[2] / "build/plain/tests")
DRIVER, NCCL = BUILT / "sim/cuda/libcuda.so.1", BUILT / "sim/nccl/libnccl.so.2"
# CuPy is linked with these, too, which the simulated library lacks. CuPy creates communicators by the last one.
LACKING = """
#include <stdlib.h>

struct id {
    char bytes[128];
};
int ncclCommInitRank(void **comm, int size, struct id id, int rank);

void ncclBcast(void)
{
    abort();
}
void ncclCommInitAll(void)
{
    abort();
}
void ncclCommSplit(void)
{
    abort();
}
int ncclCommInitRankConfig(void **comm, int size, struct id id, int rank, const void *config)
{
    return config ? 5 : ncclCommInitRank(comm, size, id, rank); /* without one it is the same */
}
"""


@pytest.fixture
def lacking(tmp_path):
    """A library with them."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("there is neither gcc nor clang")
    source, library = tmp_path / "lacking.c", tmp_path / "liblacking.so"
    source.write_text(LACKING)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


def test_gpuglue_uses_the_handle_of_a_communicator_of_cupy(lacking):
    if not importlib.util.find_spec("cupy"):
        pytest.skip("cupy is not installed")
    for library in (DRIVER, NCCL):
        if not library.exists():
            pytest.skip(f"the tests were not built: there is no {library}")
    environment = {"GPUGLUE_BACKEND": "cuda", "GPUGLUE_SIM_DEVICES": "2", "GPUGLUE_CUDA_LIBRARY": str(DRIVER), "GPUGLUE_NCCL_LIBRARY": str(NCCL),
                   "LD_LIBRARY_PATH": f"{DRIVER.parent}:{NCCL.parent}", "LD_PRELOAD": str(lacking)}
    program = pathlib.Path(__file__).with_name("cupy_program.py")
    done = subprocess.run([sys.executable, "-W", "ignore", str(program)], capture_output=True, text=True, env={**os.environ, **environment})
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
